//! Output of a running switch: on a terminal a small view that is drawn anew each second, elsewhere a line a second on
//! standard error, or a JSON document on standard output.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::io::{IsTerminal, stderr};
use std::net::SocketAddr;

use assay_switch::Switch;
use assay_switch::tally::{ServerTally, SwitchSnapshot};
use serde_json::{Value, json};

use crate::exit::Failure;
use crate::opened;
use crate::output;
use crate::shown::on_terminal;

/// A line names so many servers; more would not fit.
const SERVERS_IN_LINE: usize = 6;
/// The view shows so many; it must fit a terminal.
const SERVERS_IN_VIEW: usize = 16;

pub struct Show {
    as_json: bool,
    is_quiet: bool,
    on_terminal: bool,
    /// Lines of the view that are on the terminal and can be drawn over.
    drawn: usize,
    /// Counters at the last second.
    before: Option<ServerTally>,
    /// Requests of each server by the last second.
    by_server: HashMap<String, u64>,
    /// Lines of the access log that were told to be lost.
    log_lost: u64,
    /// Addresses that were printed last.
    told: HashSet<SocketAddr>,
}

impl Show {
    /// As JSON, or in words.
    pub fn new(as_json: bool, is_quiet: bool) -> Self {
        let on_terminal = stderr().is_terminal();
        Self {
            as_json,
            is_quiet,
            on_terminal,
            drawn: 0,
            before: None,
            by_server: HashMap::new(),
            log_lost: 0,
            told: HashSet::new(),
        }
    }

    /// Prints that it accepts connections.
    pub fn ready(&mut self, switch: &Switch) -> Result<(), Failure> {
        self.listening("ready", "listening on", switch)
    }

    /// Prints that another configuration is in force.
    pub fn reloaded(&mut self, switch: &Switch) -> Result<(), Failure> {
        self.listening("reloaded", "reloaded, listening on", switch)
    }

    fn listening(&mut self, event: &str, words: &str, switch: &Switch) -> Result<(), Failure> {
        let listen: Vec<String> = switch.addresses().iter().map(ToString::to_string).collect();
        self.tell_opened(switch);
        let metrics = switch.metrics().map(|address| format!("http://{address}/metrics"));
        if self.as_json {
            return self.event(&json!({ "event": event, "listen": listen, "metrics": metrics }));
        }
        self.drawn = 0;
        let counters = metrics.map(|url| format!(", counters at {url}")).unwrap_or_default();
        output::say(&format!("{words} {}{counters}", listen.join(" ")));
        Ok(())
    }

    /// Says what is open to other machines, if that is new.
    fn tell_opened(&mut self, switch: &Switch) {
        let told = &self.told;
        let is_new = |address: &&SocketAddr| !told.contains(*address);
        let listen: Vec<SocketAddr> = switch.addresses().iter().filter(is_new).copied().collect();
        let metrics: Vec<SocketAddr> = switch.metrics().iter().filter(is_new).copied().collect();
        opened::print_notice_of_file(&listen, "send requests to its servers", "listen");
        opened::print_notice_of_file(&metrics, "read its counters", "metrics");
        self.told = switch.addresses().iter().copied().chain(switch.metrics()).collect();
    }

    /// A configuration was not taken on.
    pub fn kept(&mut self, why: &str) -> Result<(), Failure> {
        self.drawn = 0;
        if self.as_json { self.event(&json!({ "event": "kept", "why": why })) } else { Ok(()) }
    }

    /// Prints that it stops.
    pub fn stopping(&mut self) -> Result<(), Failure> {
        if self.as_json {
            return self.event(&json!({ "event": "stopping" }));
        }
        self.drawn = 0;
        output::eprint("stopping when open requests are complete; again: now\n");
        Ok(())
    }

    /// A second has passed.
    pub fn second(&mut self, now: &SwitchSnapshot) -> Result<(), Failure> {
        self.warn_of_lost_lines(now.log_lost);
        let total = now.total();
        let before = self.before.replace(total.clone()).unwrap_or_default();
        if self.as_json {
            return self.event(&second_as_json(now, &total, &before));
        }
        if self.is_quiet {
            return Ok(());
        }
        if !self.on_terminal {
            output::eprint(&second_in_words(now, &total, &before));
            return Ok(());
        }
        let by_server = requests_by_server(now);
        let view = view(now, &second_in_words(now, &total, &before), &by_server, &self.by_server);
        // Up to where the last one began, and clear from there.
        let over = if self.drawn > 0 { format!("\x1b[{}A\x1b[J", self.drawn) } else { String::new() };
        output::draw(&format!("{over}{}", on_terminal(&view)));
        (self.drawn, self.by_server) = (view.lines().count(), by_server);
        Ok(())
    }

    /// Whoever reads the log must know that it is not whole; said again only when more are lost.
    fn warn_of_lost_lines(&mut self, log_lost: u64) {
        if log_lost > self.log_lost {
            self.drawn = 0;
            output::eprint(&format!(
                "warning: {log_lost} lines of the access log could not be written; is the disk full?\n"
            ));
            self.log_lost = log_lost;
        }
    }

    fn event(&self, event: &Value) -> Result<(), Failure> {
        output::stdout(&format!("{event}\n"))
    }
}

fn second_as_json(now: &SwitchSnapshot, total: &ServerTally, before: &ServerTally) -> Value {
    let times = total.times.since(&before.times);
    json!({
        "event": "second",
        "requests": total.requests() - before.requests(),
        "bytes": total.bytes - before.bytes,
        "connections": total.connections - before.connections,
        "received_bytes": total.received - before.received,
        "spliced_bytes": total.spliced - before.spliced,
        "broken": total.broken - before.broken,
        "server_errors": total.responses[4] - before.responses[4],
        "failed": total.failed - before.failed,
        "retried": total.retried - before.retried,
        "p50_us": times.quantile_us(0.5),
        "p99_us": times.quantile_us(0.99),
        "clients": now.clients,
        "in_flight": now.in_flight,
        "waiting": now.waiting,
        "refused_total": now.refused(),
        "left_total": now.left,
        "log_lost_total": now.log_lost,
        "servers": now.servers,
    })
}

fn second_in_words(now: &SwitchSnapshot, total: &ServerTally, before: &ServerTally) -> String {
    let times = total.times.since(&before.times);
    let ms =
        |quantile| times.quantile_us(quantile).map_or("-".to_owned(), |us| format!("{:.1}", us as f64 / 1e3));
    // A switch has one mode at a time, unless a reload changed it within this second.
    let connections = total.connections - before.connections;
    let (count, what) = match connections {
        0 => (total.requests() - before.requests(), "req/s"),
        some => (some, "conn/s"),
    };
    let mut line = format!(
        "{count:>7} {what}  {:>5} in flight  {:>4} waiting  {:>5} clients  p50 {} ms  p99 {} ms",
        now.in_flight,
        now.waiting,
        now.clients,
        ms(0.5),
        ms(0.99),
    );
    let errors = total.responses[4] - before.responses[4];
    let retried = total.retried - before.retried;
    let broken = total.broken - before.broken;
    if broken > 0 {
        let _ = write!(line, "  {broken} broken off");
    }
    // Writing to a string does not fail.
    if errors + retried > 0 {
        let _ = write!(line, "  {errors} × 5xx  {retried} retried");
    }
    line.push_str("  |");
    for server in now.servers.iter().take(SERVERS_IN_LINE) {
        let state = if server.up { server.in_flight.to_string() } else { "out".to_owned() };
        let _ = write!(line, " {} {state}", server.name);
    }
    if now.servers.len() > SERVERS_IN_LINE {
        let out = now.servers.iter().filter(|server| !server.up).count();
        let _ = write!(line, " … {} servers, {out} out", now.servers.len());
    }
    line.push('\n');
    line
}

fn requests_by_server(now: &SwitchSnapshot) -> HashMap<String, u64> {
    let mut all = HashMap::new();
    for (_, server, tally) in &now.tallies {
        if let Some(server) = server {
            *all.entry(server.clone()).or_default() += tally.requests() + tally.connections;
        }
    }
    all
}

/// All of it in a line, and a line for each server.
fn view(
    now: &SwitchSnapshot,
    line: &str,
    requests: &HashMap<String, u64>,
    before: &HashMap<String, u64>,
) -> String {
    let mut text = line.split("  |").next().unwrap_or_default().to_owned();
    text.push_str("\n  server            req/s  in flight   idle  weight\n");
    for server in now.servers.iter().take(SERVERS_IN_VIEW) {
        let count = |all: &HashMap<String, u64>| all.get(&server.name).copied().unwrap_or(0);
        let weight = if server.up { format!("{:.2}", server.weight) } else { "out".to_owned() };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "  {:<14} {:>8} {:>10} {:>6} {weight:>7}",
            server.name,
            count(requests) - count(before).min(count(requests)),
            server.in_flight,
            server.idle,
        );
    }
    if now.servers.len() > SERVERS_IN_VIEW {
        let _ = writeln!(text, "  … {} more", now.servers.len() - SERVERS_IN_VIEW);
    }
    text
}

#[cfg(test)]
mod tests {
    use assay_switch::tally::ServerStatus;

    use super::*;

    #[test]
    fn a_second_is_told_as_the_difference_to_the_one_before() {
        let server = |up| ServerStatus { name: "a".into(), up, weight: 1.0, in_flight: 3, idle: 0 };
        let tally = |ok, failed| {
            let mut tally =
                ServerTally { responses: [0, ok, 0, 0, failed], retried: failed, ..ServerTally::default() };
            (0..ok).for_each(|_| tally.times.record(1500));
            tally
        };
        let now = SwitchSnapshot {
            in_flight: 3,
            clients: 9,
            servers: vec![server(true)],
            ..SwitchSnapshot::default()
        };
        let said = second_in_words(&now, &tally(30, 1), &tally(10, 0));
        assert!(
            said.contains(" 21 req/s") && said.contains("1 × 5xx  1 retried") && said.ends_with("| a 3\n"),
            "{said}"
        );
        let document = second_as_json(&now, &tally(30, 0), &tally(10, 0));
        assert_eq!(
            (document["requests"].as_u64(), document["servers"][0]["name"].as_str()),
            (Some(20), Some("a"))
        );
        let requests = HashMap::from([("a".to_owned(), 30)]);
        let seen = view(&now, &said, &requests, &HashMap::from([("a".to_owned(), 10)]));
        let lines: Vec<&str> = seen.lines().collect();
        assert!(lines.len() == 3 && !lines[0].contains('|'), "{seen}");
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["a", "20", "3", "0", "1.00"]);
        let out = SwitchSnapshot { servers: vec![server(false)], ..SwitchSnapshot::default() };
        assert!(second_in_words(&out, &tally(0, 0), &tally(0, 0)).contains("p50 - ms"));
        assert!(second_in_words(&out, &tally(0, 0), &tally(0, 0)).ends_with("| a out\n"));
    }
}
