//! Settings of a switch as text, with notes on what is unusual about them.

use std::fmt::Write;
use std::time::Duration;

use assay_cluster::dispatch::PolicyConfig;

use super::{ClientHttp2, Config, GroupSpec, HealthCheck, LogFormat, Mode, ServerTls, Splice};
use crate::classes::Condition;

/// Describes a switch; notes come last.
pub fn explain(config: &Config) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut out, config);
    for note in notes(config) {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

fn write(out: &mut String, config: &Config) -> std::fmt::Result {
    let listen: Vec<String> = config.listen.iter().map(ToString::to_string).collect();
    let threads =
        if config.workers == 1 { "1 worker".to_owned() } else { format!("{} workers", config.workers) };
    match listen.is_empty() {
        true => writeln!(out, "listens with {threads}")?,
        false => writeln!(out, "listens on {} with {threads}", listen.join(" and "))?,
    }
    if let Some(tls) = &config.tls {
        let listen: Vec<String> = tls.listen.iter().map(ToString::to_string).collect();
        let files: Vec<String> =
            tls.certificates.iter().map(|files| files.certificate.display().to_string()).collect();
        writeln!(
            out,
            "listens on {} with TLS {} and later, and shows {}",
            listen.join(" and "),
            tls.oldest.name(),
            files.join(", ")
        )?;
    }
    if config.mode == Mode::Tcp {
        writeln!(out, "passes connections on as they are (layer 4)")?;
    }
    match config.splice {
        Splice::Auto => {
            writeln!(out, "the kernel moves bytes where many come at once; fewer are copied (splice)")?
        }
        Splice::Always => writeln!(out, "the kernel moves bytes (splice)")?,
        Splice::Never => writeln!(out, "bytes are copied (splice)")?,
    }
    match config.http2 {
        _ if config.mode == Mode::Tcp => {}
        ClientHttp2::None => writeln!(out, "speaks HTTP/1.1 to clients (http2: none)")?,
        ClientHttp2::OverTls if config.tls.is_none() => {
            writeln!(out, "speaks HTTP/1.1 to clients, as none speaks TLS (http2: tls)")?
        }
        ClientHttp2::OverTls => {
            writeln!(out, "speaks HTTP/2 to clients that agree on it over TLS, else HTTP/1.1 (http2: tls)")?
        }
        ClientHttp2::All => {
            writeln!(out, "speaks HTTP/2 to clients that begin with it, else HTTP/1.1 (http2: all)")?
        }
    }
    if config.mode == Mode::Http {
        writeln!(out, "calls itself {} (name)", config.name)?;
    }
    match config.max_pause {
        Duration::ZERO => writeln!(out, "never pauses (pause-us)")?,
        pause => writeln!(
            out,
            "pauses {pause:?} before it reads messages, while connections come less than that apart (pause-us)"
        )?,
    }
    for (number, class) in config.classes.iter().enumerate() {
        let group = &config.groups[class.group];
        let unit = if config.mode == Mode::Tcp {
            "all connections".to_owned()
        } else if class.conditions.is_empty() {
            "all other requests".to_owned()
        } else {
            class.conditions.iter().map(condition).collect::<Vec<_>>().join(" and ")
        };
        writeln!(
            out,
            "class {:<12} {unit}\n{:18} {}{} over {}",
            class.name,
            "",
            group.policy.name(),
            settings(&group.policy),
            servers_of(config, group, number)
        )?;
    }
    for server in &config.servers {
        write!(out, "server {:<11} {}, weight {}", server.name, server.address, server.weight)?;
        write!(out, ", at most {} {} at once", server.connections, unit(config))?;
        if let Some(slow) = server.slow_start {
            write!(out, ", slow start {slow:?}")?;
        }
        if let Some(tls) = &server.tls {
            write!(out, ", {}", upstream_tls(tls))?;
        }
        if server.speaks_http2 {
            write!(out, ", HTTP/2")?;
        }
        if server.is_backup {
            write!(out, ", backup")?;
        }
        if server.drains {
            write!(out, ", draining")?;
        }
        writeln!(out)?;
        match &server.check {
            Some(check) => writeln!(out, "{:18} {}", "", checks(check))?,
            None => writeln!(out, "{:18} not checked (health)", "")?,
        }
    }
    match &config.passive {
        Some(rules) => writeln!(
            out,
            "a server that fails {} {} within {:?} is out for {:?} (passive)",
            rules.failures,
            unit(config),
            rules.within,
            rules.ejection
        )?,
        None => writeln!(out, "a server that fails {} goes on getting them (passive)", unit(config))?,
    }
    match config.state.interval {
        Some(every) => {
            writeln!(out, "servers are asked for their state at {} every {every:?}", config.state.path)?
        }
        None => writeln!(
            out,
            "servers are asked for their state at {} if a policy needs it (state-path, state-interval)",
            config.state.path
        )?,
    }
    writeln!(out, "random numbers of policies come from seed {}", config.seed)?;
    bounds(out, config)?;
    match config.mode {
        Mode::Http => writeln!(
            out,
            "a request that is lost and safe to repeat goes to up to {} other servers",
            config.retries
        )?,
        Mode::Tcp => writeln!(
            out,
            "a connection whose server cannot be reached goes to up to {} other servers",
            config.retries
        )?,
    }
    if let Some(log) = &config.access_log {
        let format = match log.format {
            LogFormat::Switch => "switch",
            LogFormat::Combined => "combined",
            LogFormat::Common => "common",
        };
        writeln!(out, "writes {} in the format {format}", log.file.display())?;
    }
    if let Some(metrics) = &config.metrics {
        writeln!(out, "shows its counters at http://{metrics}/metrics")?;
    }
    Ok(())
}

/// Writes limits and timeouts.
fn bounds(out: &mut String, config: &Config) -> std::fmt::Result {
    let (limits, times) = (&config.limits, &config.timeouts);
    writeln!(
        out,
        "up to {} connections of clients; up to {} {} wait for a server, {:?} at most",
        limits.connections,
        limits.queue,
        unit(config),
        times.queue
    )?;
    if config.mode == Mode::Tcp {
        writeln!(out, "a server has {:?} to accept a connection", times.connect)?;
        writeln!(
            out,
            "connections are closed when nothing has come from either side for {:?}",
            times.tunnel
        )?;
        return writeln!(out, "told to stop, it leaves connections {:?}", times.stop);
    }
    let body =
        limits.body_bytes.map_or("any body".to_owned(), |bytes| format!("bodies of up to {bytes} bytes"));
    writeln!(
        out,
        "heads of up to {} bytes and {} fields, targets of up to {} bytes, {body}",
        limits.head_bytes, limits.head_fields, limits.target_bytes
    )?;
    writeln!(
        out,
        "a server has {:?} to accept a connection and {:?} to respond; a client has {:?} for each step of a request",
        times.connect, times.response, times.client_request
    )?;
    if limits.client_rate > 0 {
        writeln!(
            out,
            "after that, it sends and takes bodies at {} bytes a second at least",
            limits.client_rate
        )?;
    }
    writeln!(
        out,
        "idle connections are closed after {:?} (clients) and {:?} (servers), those of another protocol after {:?}",
        times.client_idle, times.server_idle, times.tunnel
    )?;
    match config.upgrades.is_empty() {
        true => writeln!(out, "no connection goes over to another protocol")?,
        false => writeln!(out, "connections may go over to {}", config.upgrades.join(" or "))?,
    }
    let trusted: Vec<String> = config.trusted.iter().map(ToString::to_string).collect();
    match trusted.is_empty() {
        true => writeln!(out, "believes nobody on who the client is (trusted-proxies)")?,
        false => writeln!(out, "believes {} on who the client is (trusted-proxies)", trusted.join(", "))?,
    }
    writeln!(out, "told to stop, it leaves running requests {:?}", times.stop)
}

/// Settings of a policy, with the defaults of its paper filled in.
fn settings(policy: &PolicyConfig) -> String {
    match policy {
        PolicyConfig::PeakEwma(own) => format!(" (decay {} s)", own.decay_s),
        PolicyConfig::BoundedHash(own) => format!(" (bound {})", own.bound),
        PolicyConfig::Lard(own) => format!(" (t-low {}, t-high {})", own.t_low, own.t_high),
        PolicyConfig::LardReplicated(own) => format!(
            " (t-low {}, t-high {}, shrink-after {} s)",
            own.lard.t_low, own.lard.t_high, own.shrink_after_s
        ),
        PolicyConfig::Prequal(own) => {
            format!(" (probes {}, pool {}, age {} s)", own.probes, own.pool, own.age_s)
        }
        PolicyConfig::Ward(core) => format!(" (core of {} documents)", core.len()),
        PolicyConfig::CapWithState(own) => {
            format!(" (trust {}, stale-after {} s)", own.trust, own.stale_after_s)
        }
        PolicyConfig::WeightedByLoad(own) => {
            format!(" (trust {}, stale-after {} s)", own.trust, own.stale_after_s)
        }
        PolicyConfig::Random
        | PolicyConfig::RoundRobin
        | PolicyConfig::WeightedRoundRobin
        | PolicyConfig::LeastConnections
        | PolicyConfig::WeightedLeastConnections
        | PolicyConfig::PowerOfTwo
        | PolicyConfig::Cap(_) => String::new(),
    }
}

fn checks(check: &HealthCheck) -> String {
    let counts = format!(
        "{:?} for a response; {} good ones bring it up, {} bad ones down",
        check.timeout, check.rules.rise, check.rules.fall
    );
    if check.connects {
        return format!("checked by a connection every {:?}, {counts}", check.interval);
    }
    let statuses: Vec<String> = check
        .statuses
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    let host = check.host.as_ref().map_or(String::new(), |host| format!(" of {host}"));
    format!(
        "checked at {}{host} every {:?}, {counts}; status {} is good",
        check.path,
        check.interval,
        statuses.join(", ")
    )
}

fn upstream_tls(tls: &ServerTls) -> String {
    let oldest = tls.oldest.name();
    match (&tls.ca, &tls.name) {
        (None, _) => format!("TLS {oldest} and later that is not verified"),
        (Some(ca), None) => format!("TLS {oldest} and later, verified by {}", ca.display()),
        (Some(ca), Some(name)) => format!("TLS {oldest} and later, verified by {} as {name}", ca.display()),
    }
}

fn unit(config: &Config) -> &'static str {
    match config.mode {
        Mode::Http => "requests",
        Mode::Tcp => "connections",
    }
}

fn servers_of(config: &Config, group: &GroupSpec, class: usize) -> String {
    if let PolicyConfig::Cap(settings) = &group.policy
        && let Some(Some(list)) = settings.lists.get(class)
    {
        let names: Vec<&str> = list.iter().map(|id| config.servers[id.0 as usize].name.as_str()).collect();
        return names.join(", ");
    }
    if group.servers.len() == config.servers.len() {
        return "all servers".to_owned();
    }
    let names: Vec<&str> = group.servers.iter().map(|index| config.servers[*index].name.as_str()).collect();
    names.join(", ")
}

fn condition(condition: &Condition) -> String {
    let any = |all: &[String]| all.join(" or ");
    match condition {
        Condition::Path(all) => format!("path {}", any(all)),
        Condition::Prefix(all) => format!("path begins with {}", any(all)),
        Condition::Suffix(all) => format!("path ends with {}", any(all)),
        Condition::Regex(all) => {
            format!("path has {}", any(&all.iter().map(|one| one.text().to_owned()).collect::<Vec<_>>()))
        }
        Condition::Method(all) => format!("method {}", any(all)),
        Condition::Header(all) => {
            let texts: Vec<String> = all
                .iter()
                .map(|one| {
                    one.value.as_ref().map_or(one.name.clone(), |value| format!("{}: {value}", one.name))
                })
                .collect();
            format!("field {}", any(&texts))
        }
        Condition::Query(all) => {
            let texts: Vec<String> = all
                .iter()
                .map(|one| {
                    one.value.as_ref().map_or(one.name.clone(), |value| format!("{}={value}", one.name))
                })
                .collect();
            format!("query has {}", any(&texts))
        }
    }
}

fn heeds_weights(policy: &PolicyConfig) -> bool {
    matches!(
        policy,
        PolicyConfig::WeightedRoundRobin
            | PolicyConfig::WeightedLeastConnections
            | PolicyConfig::PowerOfTwo
            | PolicyConfig::PeakEwma(_)
            | PolicyConfig::BoundedHash(_)
            | PolicyConfig::Ward(_)
            | PolicyConfig::CapWithState(_)
            | PolicyConfig::WeightedByLoad(_)
    )
}

/// Notes on what is allowed, and perhaps not meant.
fn notes(config: &Config) -> Vec<String> {
    let mut notes = Vec::new();
    if config.workers > 1 {
        notes.push(format!(
            "each of the {} workers has policies of its own, and an even part of all limits: policies that count \
             requests see only their worker's",
            config.workers
        ));
    }
    for group in &config.groups {
        let weighted = group
            .servers
            .iter()
            .map(|index| &config.servers[*index])
            .find(|s| s.weight != 1.0 || s.slow_start.is_some());
        if let (Some(server), false) = (weighted, heeds_weights(&group.policy)) {
            notes.push(format!(
                "{} pays no heed to weights: the weight or slow start of {} changes nothing there",
                group.policy.name(),
                server.name
            ));
        }
        if group.policy.wants_reports() && config.state.interval.is_none() {
            notes.push(format!(
                "{} knows only what servers say in their responses (endpoint-load-metrics); `state-interval` has them asked",
                group.policy.name()
            ));
        }
        if group.servers.iter().all(|index| config.servers[*index].drains) {
            notes.push(format!("all servers of a {} group drain: its requests get 503", group.policy.name()));
        }
    }
    if config.servers.iter().all(|server| server.check.is_none()) && config.passive.is_none() {
        notes.push(
            "no server is watched: without [health] or [passive], one that is down gets requests again and again"
                .to_owned(),
        );
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    #[test]
    fn pauses_are_said_as_they_are_in_force() {
        let text = |rest: &str| {
            let server = "[[server]]\naddress = \"127.0.0.1:9001\"\n";
            explain(&read("s.toml", &format!("listen = \"127.0.0.1:0\"\n{rest}{server}")).expect("is right"))
        };
        assert!(text("").contains("pauses 50µs before"));
        assert!(text("pause-us = 200\n").contains("pauses 200µs before"));
        assert!(text("pause-us = 0\n").contains("never pauses"));
    }

    #[test]
    fn settings_that_a_file_leaves_out_are_told() {
        let file = "listen = \"127.0.0.1:0\"\n[health]\n[[server]]\nname = \"a\"\naddress = \"127.0.0.1:9001\"\n\
                    [[server]]\nname = \"b\"\naddress = \"127.0.0.1:9002\"\nhealth = false\n\
                    [[class]]\nname = \"c\"\npolicy = \"lard\"\n";
        let text = explain(&read("s.toml", file).expect("is right"));
        for part in [
            "fewer are copied (splice)",
            "HTTP/1.1 to clients, as none speaks TLS (http2: tls)",
            "calls itself assay (name)",
            "lard (t-low 25, t-high 65) over",
            "checked at / every 2s, 1s for a response; 2 good ones bring it up, 3 bad ones down; status 200-399 is good",
            "not checked (health)",
            "a server that fails requests goes on getting them (passive)",
            "at /assay/state if a policy needs it",
            "seed 1",
            "believes nobody on who the client is",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
        let file = file.replace(
            "[health]",
            "access-log = \"a.log\"\nname = \"front\"\nseed = 7\nstate-interval = \"1s\"\n\
                    trusted-proxies = \"10.0.0.0/8\"\n[passive]\n[health]\nhost = \"h\"\nstatus = \"204\"",
        );
        let text = explain(&read("s.toml", &file).expect("is right"));
        for part in [
            "calls itself front",
            "at / of h every",
            "status 204 is good",
            "fails 5 requests within 10s is out for 10s",
            "at /assay/state every 1s",
            "seed 7",
            "believes 10.0.0.0/8",
            "a.log in the format switch",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
    }

    #[test]
    fn classes_servers_and_what_is_odd_are_told() {
        let text = "listen = \"127.0.0.1:8080\"\nworkers = 2\npolicy = \"rr\"\n[[server]]\nname = \"a\"\n\
                    address = \"127.0.0.1:9001\"\nweight = 3\ndrain = true\n[[class]]\nname = \"cgi\"\n\
                    suffix = [\".cgi\", \".php\"]\nquery = \"x=1\"\n";
        let text = explain(&read("s.toml", text).expect("is right"));
        for part in [
            "listens on 127.0.0.1:8080 with 2 workers",
            "path ends with .cgi or .php and query has x=1",
            "rr over all servers",
            "class other",
            "draining",
            "policies of its own",
            "rr pays no heed to weights",
            "get 503",
            "no server is watched",
            "pauses 50µs before",
            "1000 requests wait for a server, 5s at most",
            "heads of up to 32768 bytes and 100 fields",
            "may go over to websocket",
            "leaves running requests 30s",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
    }
}
