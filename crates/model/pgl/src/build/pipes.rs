//! `NetPipe`: the links of agents, as one link for each side of the target.
//!
//! Web Polygraph configures its pipes in the network of the machine (dummynet), one for each direction of each address.
//! Here all robots have one link to the target and all servers another, each symmetric, as with the flags of the command
//! line. The link of a side is that of most of its addresses; differences cause warnings.

use std::collections::{HashMap, HashSet};

use assay_workload::model::{Distribution, Link, Links};

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::eval::Registrations;
use crate::schema::RecordKind;
use crate::source::Span;
use crate::value::address::AddrRange;
use crate::value::array::{Array, MAX_ITEMS};
use crate::value::{Record, Value};

/// Bytes of a packet in a queue that is counted in packets: Ethernet's MTU.
const PACKET_BYTES: f64 = 1500.0;

struct Pipe {
    span: Span,
    /// Carries packets to its addresses.
    is_inward: bool,
    /// Carries packets from its addresses.
    is_outward: bool,
    addresses: HashSet<HostPort>,
    /// Hosts of `addresses`.
    hosts: HashSet<String>,
    link: Link,
    is_used: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct HostPort {
    host: String,
    port: Option<u16>,
}

/// The pipes of an address, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct PipePair {
    inward: Option<usize>,
    outward: Option<usize>,
}

impl PipePair {
    fn any(self) -> Option<usize> {
        self.inward.or(self.outward)
    }
}

/// A side of the target.
struct TargetSide {
    kind: RecordKind,
    agents: &'static str,
    flag: &'static str,
}

const ROBOTS: TargetSide = TargetSide { kind: RecordKind::Robot, agents: "robots", flag: "--robot-link" };
const SERVERS: TargetSide = TargetSide { kind: RecordKind::Server, agents: "servers", flag: "--origin-link" };

impl Builder<'_> {
    /// The links of a run; none if no pipe is used.
    pub(super) fn links(&mut self, registrations: &Registrations) -> Option<Links> {
        let used = registrations.used.iter().filter(|(record, _)| record.kind == RecordKind::NetPipe);
        let mut pipes: Vec<Pipe> = used.filter_map(|(record, span)| self.pipe(record, *span)).collect();
        if pipes.is_empty() {
            return None;
        }
        let robots = self.side_link(&ROBOTS, registrations, &mut pipes);
        let origins = self.side_link(&SERVERS, registrations, &mut pipes);
        for pipe in pipes.iter().filter(|pipe| !pipe.is_used) {
            self.warn(
                Code::Unsupported,
                pipe.span,
                "no robot and no server has an address of this NetPipe",
                "it has no effect",
            );
        }
        (robots.is_some() || origins.is_some()).then_some(Links { robots, origins })
    }

    /// Reads a pipe; none, with a warning, if it has no addresses.
    fn pipe(&mut self, record: &Record, span: Span) -> Option<Pipe> {
        self.warn_unsupported_fields(record);
        let link = self.pipe_link(record);
        let addresses = match self.array(record, "addresses").filter(|(array, _)| array.count() > 0) {
            Some((addresses, _)) => list_addresses(addresses),
            None => {
                let label = self.text(record, "kind").map_or(String::new(), |label| format!(" \"{label}\""));
                self.diagnostics.add(
                    Diagnostic::warning(
                        Code::NoAddresses,
                        span,
                        format!("the NetPipe{label} has no addresses"),
                    )
                    .label("it is skipped")
                    .help("set its `addresses` before `use()`, which copies it"),
                );
                return None;
            }
        };
        let Some(addresses) = addresses else {
            let label = "these cannot be listed";
            self.error(Code::TooMany, span, "this NetPipe has too many addresses", label);
            return None;
        };
        // Without the field, a pipe carries both directions.
        let outgoing = self.boolean(record, "outgoing");
        let addresses: HashSet<HostPort> = addresses.into_iter().map(|(address, _)| address).collect();
        let hosts = addresses.iter().map(|address| address.host.clone()).collect();
        Some(Pipe {
            span,
            is_inward: outgoing != Some(true),
            is_outward: outgoing != Some(false),
            addresses,
            hosts,
            link,
            is_used: false,
        })
    }

    fn pipe_link(&mut self, record: &Record) -> Link {
        let (delay_s, jitter_s) = self.pipe_delay(record);
        let loss = self.share(record, "packet_loss").unwrap_or(0.0);
        self.check_range(record, "packet_loss", loss < 1.0, "less than 100%");
        let bits_per_s = self.quantity(record, "bandwidth", false).map(|bytes_per_s| bytes_per_s * 8.0);
        let (slowest, fastest) = Link::RATES;
        let is_possible = bits_per_s.is_none_or(|rate| (slowest..=fastest).contains(&rate));
        self.check_range(record, "bandwidth", is_possible, "1,000 bits to 125 GB a second");
        let queue_bytes = self.pipe_queue(record, bits_per_s.is_some());
        let bits_per_s = bits_per_s.map(|rate| rate.round() as u64);
        Link { delay_s, jitter_s, loss, bits_per_s, queue_bytes }
    }

    /// Mean delay, and jitter (half the range of the delay), in seconds.
    fn pipe_delay(&mut self, record: &Record) -> (f64, f64) {
        let Some(law) = self.distribution(record, "packet_delay") else { return (0.0, 0.0) };
        let (delay_s, deviation_s) = (law.mean(), law.deviation());
        self.check_range(record, "packet_delay", delay_s <= Link::MOST_DELAY_S, "a mean of at most 60 s");
        if !matches!(law, Distribution::Constant(_) | Distribution::Uniform { .. }) {
            let at = self.field_span(record, "packet_delay");
            let label = "it is drawn uniformly, with the same mean and, as far as zero allows, deviation";
            self.warn(Code::Unsupported, at, "delays of packets are constant or uniform here", label);
        }
        // The standard deviation of a uniform variable is half its range over the root of 3.
        (delay_s, (deviation_s * 3_f64.sqrt()).min(delay_s))
    }

    /// Length of the queue in bytes.
    fn pipe_queue(&mut self, record: &Record, has_rate: bool) -> Option<u64> {
        let message = "a queue is counted in packets or in bytes";
        self.check_exclusive(record, ["queue_packet_size", "queue_byte_size"], message);
        let packets =
            self.integer(record, "queue_packet_size", 1).map(|packets| f64::from(packets) * PACKET_BYTES);
        let sized = self.quantity(record, "queue_byte_size", false);
        let field = if packets.is_some() { "queue_packet_size" } else { "queue_byte_size" };
        let bytes = packets.or(sized)?;
        if !has_rate {
            let at = self.field_span(record, field);
            let label = "it has no effect: without `bandwidth`, nothing waits";
            self.warn(Code::Unsupported, at, format!("`NetPipe.{field}` without a bandwidth"), label);
            return None;
        }
        let (least, most) = Link::QUEUES;
        self.check_range(record, field, (least..=most).contains(&bytes), "1,500 bytes (one packet) to 1 GB");
        Some(bytes.round() as u64)
    }

    /// Reports a value that no link can have.
    fn check_range(&mut self, record: &Record, field: &str, is_possible: bool, limits: &str) {
        let Some(slot) = record.get(field).filter(|_| !is_possible) else { return };
        let message = format!("`NetPipe.{field}` is out of range");
        let label = format!("this is {}; expected {limits}", slot.value);
        self.error(Code::OutOfRange, slot.span, message, label);
    }

    /// The link of a side, which is that of most of its addresses.
    fn side_link(
        &mut self,
        side: &TargetSide,
        registrations: &Registrations,
        pipes: &mut [Pipe],
    ) -> Option<Link> {
        let agents = registrations.used.iter().filter(|(record, _)| record.kind == side.kind);
        let pairs = count_pairs(agents.map(|(record, _)| &**record), pipes);
        for index in pairs.iter().flat_map(|(pair, _)| [pair.inward, pair.outward]).flatten() {
            pipes[index].is_used = true;
        }
        // `max_by_key` returns the last maximum; reversed, the first of equal counts wins.
        let (most, _) = *pairs.iter().rev().max_by_key(|(_, count)| *count)?;
        let span_of = |pair: PipePair| pair.any().map(|index| pipes[index].span);
        if pairs.len() > 1 {
            let span = span_of(most).or_else(|| pairs.iter().find_map(|(pair, _)| span_of(*pair)))?;
            let label = match most.any() {
                None => "most have none: no link is emulated".to_owned(),
                Some(_) => format!("that of most is taken for all; `{}` sets another", side.flag),
            };
            let message = format!("not all {} have the same NetPipe", side.agents);
            self.warn(Code::Unsupported, span, message, label);
        }
        let span = span_of(most)?;
        let link = |index: Option<usize>| index.map_or_else(Link::default, |index| pipes[index].link);
        let (inward, outward) = (link(most.inward), link(most.outward));
        if inward == outward {
            return Some(inward).filter(|link| !link.is_plain());
        }
        let message = format!("the NetPipes of {} differ by direction", side.agents);
        let label = "both directions have the mean delay, and bandwidth, queue and loss of that of responses";
        self.warn(Code::Unsupported, span, message, label);
        let responses = if side.kind == RecordKind::Robot { inward } else { outward };
        let link = Link {
            delay_s: f64::midpoint(inward.delay_s, outward.delay_s),
            jitter_s: f64::midpoint(inward.jitter_s, outward.jitter_s),
            ..responses
        };
        Some(link).filter(|link| !link.is_plain())
    }
}

/// Counts the addresses of agents by their pipes, in order of appearance.
fn count_pairs<'r>(agents: impl Iterator<Item = &'r Record>, pipes: &[Pipe]) -> Vec<(PipePair, u64)> {
    // A pipe for the address with its port precedes one for the host, which robots and servers may share.
    let find = |address: &HostPort, carries: fn(&Pipe) -> bool| {
        let exact = pipes.iter().position(|pipe| carries(pipe) && pipe.addresses.contains(address));
        exact.or_else(|| pipes.iter().position(|pipe| carries(pipe) && pipe.hosts.contains(&address.host)))
    };
    let mut pairs: Vec<(PipePair, u64)> = Vec::new();
    let mut indices: HashMap<PipePair, usize> = HashMap::new();
    for agent in agents {
        let Some(Value::Array(array)) = agent.get("addresses").map(|slot| &slot.value) else { continue };
        for (address, times) in list_addresses(array).into_iter().flatten() {
            let pair = PipePair {
                inward: find(&address, |pipe| pipe.is_inward),
                outward: find(&address, |pipe| pipe.is_outward),
            };
            let index = *indices.entry(pair).or_insert_with(|| {
                pairs.push((pair, 0));
                pairs.len() - 1
            });
            pairs[index].1 += times;
        }
    }
    pairs
}

/// Addresses, each with its number of repetitions; none if there are too many.
fn list_addresses(addresses: &Array) -> Option<Vec<(HostPort, u64)>> {
    let runs = addresses.runs()?;
    let ranges = runs.iter().filter_map(|run| match &run.value {
        Value::Address(range) => Some((range.clone(), run.times)),
        _ => None,
    });
    let ranges: Vec<_> = ranges.collect();
    let count = ranges.iter().fold(0_u64, |sum, (range, _)| sum.saturating_add(range.count()));
    let host_port = |address: &AddrRange| HostPort { host: address.host(), port: address.port() };
    let all = ranges
        .iter()
        .flat_map(|(range, times)| range.iter().map(move |address| (host_port(&address), *times)));
    (count <= MAX_ITEMS).then(|| all.collect())
}
