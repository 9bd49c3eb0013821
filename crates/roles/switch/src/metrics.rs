//! Counters in Prometheus' text format; names and labels are an interface.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use assay_base::metrics::text::{PROMETHEUS_TYPE, prometheus};
use assay_base::metrics::{Histogram, Kind, Labels, Unit};
use assay_http::framing::BodyFraming;
use assay_net::allowed_hosts::{host_name, is_allowed_host};
use assay_net::connection::Resources;
use assay_net::connection_limit::{ConnectionLimit, ConnectionSlot};
use assay_net::exchange::{self, AfterResponse, ClientLimits, Exchange, Handler, Refusal, Request};
use assay_net::listen::accept;
use strum::VariantArray;
use tokio::net::{TcpListener, TcpStream};

use crate::reason::{NoServerReason, RefusalReason};
use crate::tally::{ServerStatus, ServerTally, SwitchSnapshot, TimeHistogram};

type Family = assay_base::metrics::Family<TimeHistogram>;
type Sample = assay_base::metrics::Sample<TimeHistogram>;
type Value = assay_base::metrics::SampleValue<TimeHistogram>;

/// Upper bounds of the histogram buckets, as powers of two of microseconds: 64 µs to 67 s. Bounds of our own buckets, so the
/// counts are exact.
const POWERS: std::ops::RangeInclusive<u32> = 6..=26;

impl Histogram for TimeHistogram {
    fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        POWERS.map(|power| (f64::from(1u32 << power) / 1e6, self.below(1 << power)))
    }

    fn sum_s(&self) -> f64 {
        self.sum_us() as f64 / 1e6
    }

    fn count(&self) -> u64 {
        Self::count(self)
    }
}

fn exposition(all: &SwitchSnapshot, readers: ReaderCounts) -> String {
    prometheus(&families(all, readers))
}

fn families(all: &SwitchSnapshot, readers: ReaderCounts) -> Vec<Family> {
    let one = |kind, stem, help: &'static str, count| Family {
        kind,
        stem,
        unit: Unit::None,
        help: help.into(),
        samples: vec![Sample { labels: Labels::new(), value: Value::Count(count) }],
    };
    let gauge = |stem, help, count| one(Kind::Gauge, stem, help, count);
    let counter = |stem, help, count| one(Kind::Counter, stem, help, count);
    let slow = "Clients that took too long with a handshake, a head, or with sending or taking a body";
    let dismissed = "Connections of clients that were waited for, and ended to make room for others";
    let mut families = vec![
        gauge("switch_clients", "Connections of clients, now", all.clients),
        gauge("switch_in_flight", "Requests that have a server, now", all.in_flight),
        gauge("switch_waiting", "Requests that wait for a server with room, now", all.waiting),
        counter("switch_accepted", "Connections that were accepted", all.accepted),
        by_reason(
            "switch_refused",
            "Requests that were refused: malformed, too large, too slow, or of a kind that is not served",
            |reason: RefusalReason| all.refused_as(reason),
        ),
        by_reason(
            "switch_no_server",
            "Requests, and connections of layer 4, that got no server",
            |reason: NoServerReason| all.no_server_as(reason),
        ),
        counter(
            "switch_left",
            "Requests whose client left while they waited for a server or its response",
            all.left,
        ),
        counter("switch_connects", "Connections that were opened to servers", all.connects),
        counter("switch_slow", slow, all.slow),
        counter("switch_dismissed", dismissed, all.dismissed),
        counter("switch_log_lost", "Lines of the access log that could not be written", all.log_lost),
        counter(
            "switch_metrics_dismissed",
            "Connections to these counters that were ended to make room for others: there may be 64 at a time",
            readers.dismissed,
        ),
        counter(
            "switch_metrics_slow",
            "Connections to these counters that took too long with a request or a response",
            readers.slow,
        ),
    ];
    families.extend(class_families(all));
    families.extend(server_families(all));
    families
}

/// A counter with one series per reason, including reasons that did not occur.
/// One sample of each reason, which `count` counts.
fn by_reason<R: VariantArray + Copy + Into<&'static str>>(
    stem: &'static str,
    help: &'static str,
    count: impl Fn(R) -> u64,
) -> Family {
    let sample = |reason: &R| Sample {
        labels: vec![("reason", Into::<&str>::into(*reason).to_owned())],
        value: Value::Count(count(*reason)),
    };
    let samples = R::VARIANTS.iter().map(sample).collect();
    Family { kind: Kind::Counter, stem, unit: Unit::None, help: help.into(), samples }
}

/// Families by class and server.
fn class_families(all: &SwitchSnapshot) -> [Family; 10] {
    let mut tallies: Vec<(Labels, &ServerTally)> = all
        .tallies
        .iter()
        .map(|(class, server, tally)| {
            (vec![("class", class.clone()), ("server", server.clone().unwrap_or_default())], tally)
        })
        .collect();
    tallies.sort_by(|(own, _), (other, _)| own.cmp(other));
    let of = |value: fn(&ServerTally) -> Value| {
        tallies.iter().map(|(labels, tally)| Sample { labels: labels.clone(), value: value(tally) }).collect()
    };
    let counter = |stem, unit, help: &'static str, value| Family {
        kind: Kind::Counter,
        stem,
        unit,
        help: help.into(),
        samples: of(value),
    };
    let times = |stem, help: &'static str, value| Family {
        kind: Kind::Histogram,
        stem,
        unit: Unit::Seconds,
        help: help.into(),
        samples: of(value),
    };
    let by_code = |(labels, tally): &(Labels, &ServerTally)| -> Vec<Sample> {
        let codes = (1..).zip(tally.responses).filter(|(_, count)| *count > 0);
        let sample = |(digit, count): (u32, u64)| {
            let code = [("code", format!("{digit}xx"))];
            Sample { labels: labels.iter().cloned().chain(code).collect(), value: Value::Count(count) }
        };
        codes.map(sample).collect()
    };
    let requests = Family {
        kind: Kind::Counter,
        stem: "switch_requests",
        unit: Unit::None,
        help: "Requests by class, server and first digit of the status; no server: the switch itself".into(),
        samples: tallies.iter().flat_map(by_code).collect(),
    };
    [
        requests,
        counter("switch", Unit::Bytes, "Bytes of bodies to clients", |tally| Value::Count(tally.bytes)),
        counter("switch_failed", Unit::None, "Requests that a server failed", |tally| {
            Value::Count(tally.failed)
        }),
        counter("switch_retried", Unit::None, "Of these, requests that went to another server", |tally| {
            Value::Count(tally.retried)
        }),
        counter("switch_connections", Unit::None, "Connections of layer 4 that have ended", |tally| {
            Value::Count(tally.connections)
        }),
        counter("switch_broken", Unit::None, "Of these, those that broke off, or got no server", |tally| {
            Value::Count(tally.broken)
        }),
        counter(
            "switch_received",
            Unit::Bytes,
            "Bytes that clients sent on connections of layer 4",
            |tally| Value::Count(tally.received),
        ),
        counter("switch_spliced", Unit::Bytes, "Bytes that the kernel moved without a copy", |tally| {
            Value::Count(tally.spliced)
        }),
        times(
            "switch_duration",
            "From a request's head to the end of its response; layer 4: from the start of a connection to its end",
            |tally| Value::Times(Box::new(tally.times.clone())),
        ),
        times(
            "switch_first_byte",
            "From a request's head to the beginning of its response; layer 4: from the start of a connection to the server's first byte",
            |tally| Value::Times(Box::new(tally.first_byte.clone())),
        ),
    ]
}

/// Families by server.
fn server_families(all: &SwitchSnapshot) -> [Family; 4] {
    let gauge = |stem, help: &'static str, value: fn(&ServerStatus) -> Value| {
        let of = |server: &ServerStatus| Sample {
            labels: vec![("server", server.name.clone())],
            value: value(server),
        };
        let samples = all.servers.iter().map(of).collect();
        Family { kind: Kind::Gauge, stem, unit: Unit::None, help: help.into(), samples }
    };
    [
        gauge("switch_server_up", "Whether a server is available now", |server| {
            Value::Count(u64::from(server.up))
        }),
        gauge("switch_server_weight", "The weight of a server, now", |server| Value::Number(server.weight)),
        gauge("switch_server_in_flight", "Requests that a server has, now", |server| {
            Value::Count(server.in_flight)
        }),
        gauge("switch_server_idle", "Connections to a server that are idle, now", |server| {
            Value::Count(server.idle)
        }),
    ]
}

/// Limit on each step of a request for counters.
const STEP_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections at a time; another one replaces the one that has waited longest for a request.
const CONNECTIONS_MAX: usize = 64;

/// Serves the snapshot that `collect` returns at `/metrics`, for ever.
pub async fn serve<F: Future<Output = SwitchSnapshot> + 'static>(
    listener: TcpListener,
    collect: impl Fn() -> F + Clone + 'static,
) {
    let server = MetricsServer {
        places: ConnectionLimit::new(CONNECTIONS_MAX),
        resources: Resources::new(),
        host_name: Rc::from(host_name()),
    };
    server.resources.run_deadlines();
    loop {
        let (stream, _) = accept(&listener).await;
        let exchange =
            Exchange::new(stream, &server.resources, ClientLimits::new(STEP_TIMEOUT, STEP_TIMEOUT));
        let (collect, own) = (collect.clone(), server.clone());
        let serve = |slot| async move {
            // A client that went away, or is too slow, can repeat its request.
            let _ = exchange::serve(&mut MetricsClient { exchange, collect, server: own, slot }).await;
        };
        server.places.serve(serve).await;
    }
}

/// State shared by all connections.
#[derive(Clone)]
struct MetricsServer {
    places: Rc<ConnectionLimit>,
    resources: Rc<Resources>,
    /// Host name of this machine.
    host_name: Rc<str>,
}

/// Connections of metrics clients that were ended early.
#[derive(Debug, Clone, Copy, Default)]
struct ReaderCounts {
    /// To make room for others.
    dismissed: u64,
    /// A request or a response took too long.
    slow: u64,
}

impl MetricsServer {
    fn readers(&self) -> ReaderCounts {
        ReaderCounts { dismissed: self.places.dismissed(), slow: self.resources.deadlines.counts().slow }
    }
}

/// Connection of a metrics client.
struct MetricsClient<G> {
    exchange: Exchange,
    collect: G,
    server: MetricsServer,
    slot: ConnectionSlot,
}

impl<F: Future<Output = SwitchSnapshot>, G: Fn() -> F> Handler for MetricsClient<G> {
    type Transport = TcpStream;

    fn exchange(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    async fn respond(&mut self, Request { head, .. }: &Request<'_>) -> io::Result<AfterResponse> {
        self.slot.set_busy(true);
        let is_head = head.method == "HEAD";
        // Scrapes are too rare to keep a connection for.
        self.exchange.persists = false;
        if !is_allowed_host(head.host, &self.server.host_name) {
            let text = "name an address of this machine, its own name, or localhost in the URL\n";
            self.exchange.close_after_response();
            self.exchange.send_text(421, b"", text, is_head).await?;
            return Ok(AfterResponse::Request);
        }
        if !matches!(head.method, "GET" | "HEAD") {
            self.exchange.close_after_response();
            self.exchange.send_text(405, b"Allow: GET, HEAD\r\n", "counters are only read\n", false).await?;
            return Ok(AfterResponse::Request);
        }
        if head.target != "/metrics" {
            self.exchange.send_text(404, b"", "counters are at /metrics\n", is_head).await?;
            return Ok(AfterResponse::Request);
        }
        let body = exposition(&(self.collect)().await, self.server.readers());
        let mut response = format!("HTTP/1.1 200 OK\r\nContent-Type: {PROMETHEUS_TYPE}\r\n").into_bytes();
        self.exchange.append_framing(&mut response, BodyFraming::Length(body.len() as u64));
        self.exchange.write(&[&response, if is_head { b"" } else { body.as_bytes() }]).await?;
        Ok(AfterResponse::Request)
    }

    async fn refuse(&mut self, refusal: Refusal, is_head: bool) -> io::Result<()> {
        self.exchange.send_text(refusal.status(), b"", &format!("{refusal}\n"), is_head).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_shown_by_class_and_server() {
        let mut tally = ServerTally {
            responses: [0, 3, 0, 1, 0],
            bytes: 9,
            failed: 2,
            retried: 1,
            ..ServerTally::default()
        };
        [10, 100, 1_000_000].into_iter().for_each(|us| tally.times.record(us));
        let server = ServerStatus { name: "a".into(), up: true, weight: 0.5, in_flight: 2, idle: 1 };
        let all = SwitchSnapshot {
            tallies: vec![
                ("disk".into(), Some("a".into()), tally),
                ("disk".into(), None, ServerTally::default()),
            ],
            servers: vec![server],
            clients: 7,
            ..SwitchSnapshot::default()
        };
        let text = exposition(&all, ReaderCounts { dismissed: 5, slow: 4 });
        for line in [
            "assay_switch_clients 7",
            "assay_switch_metrics_dismissed_total 5",
            "assay_switch_metrics_slow_total 4",
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
