//! How are counters shown to Prometheus? Its text format; names and labels are an interface.

use std::fmt::Write;
use std::time::Duration;

use assay_http::head::RequestHead;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use crate::tally::{ServerNow, Snapshot, Tally, Times};

/// A family of counters or gauges: its name, what it counts, and how it is taken from `T`.
type Family<T, V> = (&'static str, &'static str, fn(&T) -> V);

const COUNTS: [Family<Tally, u64>; 3] = [
    ("bytes_total", "Bytes of bodies to clients", |tally| tally.bytes),
    ("failed_total", "Requests that a server failed", |tally| tally.failed),
    ("retried_total", "Of these, requests that went to another server", |tally| tally.retried),
];
const SERVER: [Family<ServerNow, f64>; 4] = [
    ("server_up", "Whether a server can be asked, now", |server| f64::from(u8::from(server.up))),
    ("server_weight", "The weight of a server, now", |server| server.weight),
    ("server_in_flight", "Requests that a server has, now", |server| server.in_flight as f64),
    ("server_idle", "Connections to a server that are idle, now", |server| server.idle as f64),
];

/// Ends of the buckets that are shown, as powers of two of microseconds: 64 µs to 67 s. They are exact.
const POWERS: std::ops::RangeInclusive<u32> = 6..=26;

/// All of it as text.
pub fn text(all: &Snapshot) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut out, all);
    out
}

fn write(out: &mut String, all: &Snapshot) -> std::fmt::Result {
    gauge(out, "clients", "Connections of clients, now", all.clients)?;
    gauge(out, "in_flight", "Requests that have a server, now", all.in_flight)?;
    gauge(out, "waiting", "Requests that wait for a server with room, now", all.waiting)?;
    counter(out, "accepted_total", "Connections that were accepted", all.accepted)?;
    let refused = "Requests that were refused because they are not HTTP, or too large";
    counter(out, "refused_total", refused, all.refused)?;
    counter(out, "left_total", "Requests whose client left while they waited for a server", all.left)?;
    counter(out, "connects_total", "Connections that were opened to servers", all.connects)?;
    write_tallies(out, all)?;
    for (name, help, value) in SERVER {
        head(out, name, "gauge", help)?;
        for server in &all.servers {
            writeln!(out, "assay_switch_{name}{{server=\"{}\"}} {}", server.name, value(server))?;
        }
    }
    Ok(())
}

/// What there is of each class at each server.
fn write_tallies(out: &mut String, all: &Snapshot) -> std::fmt::Result {
    let mut tallies: Vec<(String, &Tally)> = all
        .tallies
        .iter()
        .map(|(class, server, tally)| {
            let server = server.as_deref().unwrap_or("");
            (format!("class=\"{class}\",server=\"{server}\""), tally)
        })
        .collect();
    tallies.sort_by(|(own, _), (other, _)| own.cmp(other));
    let requests = "Requests by class, server and first digit of the status; no server: the switch answered";
    head(out, "requests_total", "counter", requests)?;
    for (labels, tally) in &tallies {
        for (digit, count) in (1..).zip(tally.answers).filter(|(_, count)| *count > 0) {
            writeln!(out, "assay_switch_requests_total{{{labels},code=\"{digit}xx\"}} {count}")?;
        }
    }
    for (name, help, count) in COUNTS {
        head(out, name, "counter", help)?;
        for (labels, tally) in &tallies {
            writeln!(out, "assay_switch_{name}{{{labels}}} {}", count(tally))?;
        }
    }
    head(out, "duration_seconds", "histogram", "From a request's head to the end of its answer")?;
    for (labels, tally) in &tallies {
        histogram(out, "duration_seconds", labels, &tally.times)?;
    }
    head(out, "first_byte_seconds", "histogram", "From a request's head to the beginning of its answer")?;
    for (labels, tally) in &tallies {
        histogram(out, "first_byte_seconds", labels, &tally.first_byte)?;
    }
    Ok(())
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) -> std::fmt::Result {
    writeln!(out, "# HELP assay_switch_{name} {help}\n# TYPE assay_switch_{name} {kind}")
}

fn gauge(out: &mut String, name: &str, help: &str, value: u64) -> std::fmt::Result {
    head(out, name, "gauge", help)?;
    writeln!(out, "assay_switch_{name} {value}")
}

fn counter(out: &mut String, name: &str, help: &str, value: u64) -> std::fmt::Result {
    head(out, name, "counter", help)?;
    writeln!(out, "assay_switch_{name} {value}")
}

fn histogram(out: &mut String, name: &str, labels: &str, times: &Times) -> std::fmt::Result {
    for power in POWERS {
        let us = 1u64 << power;
        let seconds = us as f64 / 1e6;
        writeln!(out, "assay_switch_{name}_bucket{{{labels},le=\"{seconds}\"}} {}", times.below(us))?;
    }
    writeln!(out, "assay_switch_{name}_bucket{{{labels},le=\"+Inf\"}} {}", times.count())?;
    writeln!(out, "assay_switch_{name}_sum{{{labels}}} {}", times.sum_us() as f64 / 1e6)?;
    writeln!(out, "assay_switch_{name}_count{{{labels}}} {}", times.count())
}

/// How long whoever asks may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Shows what `gather` gives to everyone who asks for `/metrics`, for ever.
pub async fn serve<F: Future<Output = Snapshot> + 'static>(
    listener: TcpListener,
    gather: impl Fn() -> F + Clone + 'static,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let gather = gather.clone();
                // Whoever went away, or is too slow, asks again.
                spawn_local(async move { timeout(PATIENCE, answer(stream, gather)).await });
            }
            // No descriptor is left: others end, and then there are some again.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn answer<F: Future<Output = Snapshot>>(
    mut stream: TcpStream,
    gather: impl Fn() -> F,
) -> std::io::Result<()> {
    let mut asked = Vec::new();
    let path = loop {
        match RequestHead::parse(&asked) {
            Err(_) => break String::new(),
            Ok(Some((head, _))) => break head.target.to_owned(),
            Ok(None) => {
                if stream.read_buf(&mut asked).await? == 0 {
                    return Ok(());
                }
            }
        }
    };
    let (status, body) = match path.as_str() {
        "/metrics" => ("200 OK", text(&gather().await)),
        _ => ("404 Not Found", "counters are at /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_shown_by_class_and_server() {
        let mut tally =
            Tally { answers: [0, 3, 0, 1, 0], bytes: 9, failed: 2, retried: 1, ..Tally::default() };
        [10, 100, 1_000_000].into_iter().for_each(|us| tally.times.record(us));
        let server = ServerNow { name: "a".into(), up: true, weight: 0.5, in_flight: 2, idle: 1 };
        let all = Snapshot {
            tallies: vec![("disk".into(), Some("a".into()), tally), ("disk".into(), None, Tally::default())],
            servers: vec![server],
            clients: 7,
            ..Snapshot::default()
        };
        let text = text(&all);
        for line in [
            "assay_switch_clients 7",
            "assay_switch_requests_total{class=\"disk\",server=\"a\",code=\"2xx\"} 3",
            "assay_switch_requests_total{class=\"disk\",server=\"a\",code=\"4xx\"} 1",
            "assay_switch_failed_total{class=\"disk\",server=\"a\"} 2",
            "assay_switch_duration_seconds_bucket{class=\"disk\",server=\"a\",le=\"0.000064\"} 1",
            "assay_switch_duration_seconds_bucket{class=\"disk\",server=\"a\",le=\"0.000128\"} 2",
            "assay_switch_duration_seconds_bucket{class=\"disk\",server=\"a\",le=\"+Inf\"} 3",
            "assay_switch_duration_seconds_sum{class=\"disk\",server=\"a\"} 1.00011",
            "assay_switch_server_up{server=\"a\"} 1",
            "assay_switch_server_weight{server=\"a\"} 0.5",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} is not in:\n{text}");
        }
        let families = text.lines().filter(|line| line.starts_with("# TYPE")).count();
        assert_eq!(families, text.lines().filter(|line| line.starts_with("# HELP")).count());
    }
}
