//! `NetPipe`: the links of agents, as one link for each side of the target.
//!
//! Web Polygraph has its pipes configured in the network of the machine (dummynet), one for each direction of each address.
//! Here all robots have one link to the target and all servers another, each alike in both directions, as with the flags of the
//! command line. What most addresses of a side have is taken, and what differs from it is warned about.

use std::collections::{HashMap, HashSet};

use assay_workload::model::{Distribution, Link, Links};

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::eval::Registered;
use crate::schema::RecordKind;
use crate::source::Span;
use crate::value::address::AddrRange;
use crate::value::array::{Array, MAX_ITEMS};
use crate::value::{Record, Value};

/// Bytes of a place in a queue that is counted in packets: Ethernet's MTU.
const PACKET_BYTES: f64 = 1500.0;

/// A pipe with its ends.
struct Pipe {
    place: Span,
    /// It carries what comes to its addresses.
    is_inward: bool,
    /// It carries what leaves them.
    is_outward: bool,
    /// Its addresses as given, and their hosts.
    addresses: HashSet<Address>,
    hosts: HashSet<String>,
    road: Link,
    is_used: bool,
}

/// A host, with the port if there is one.
type Address = (String, Option<u16>);

/// The pipes of an address, by index: what it receives passes the first, what it sends the second.
type Ends = (Option<usize>, Option<usize>);

/// A side of the target.
struct Side {
    kind: RecordKind,
    agents: &'static str,
    flag: &'static str,
}

const ROBOTS: Side = Side { kind: RecordKind::Robot, agents: "robots", flag: "--robot-link" };
const SERVERS: Side = Side { kind: RecordKind::Server, agents: "servers", flag: "--origin-link" };

impl Builder<'_> {
    /// The links of a run; none where no pipe is used.
    pub(super) fn links(&mut self, registered: &Registered) -> Option<Links> {
        let used = registered.used.iter().filter(|(record, _)| record.kind == RecordKind::NetPipe);
        let mut pipes: Vec<Pipe> = used.filter_map(|(record, span)| self.pipe(record, *span)).collect();
        if pipes.is_empty() {
            return None;
        }
        let robots = self.link_of(&ROBOTS, registered, &mut pipes);
        let origins = self.link_of(&SERVERS, registered, &mut pipes);
        for pipe in pipes.iter().filter(|pipe| !pipe.is_used) {
            self.warn(
                Code::NotActedOn,
                pipe.place,
                "no robot and no server has an address of this NetPipe",
                "it has no effect",
            );
        }
        (robots.is_some() || origins.is_some()).then_some(Links { robots, origins })
    }

    /// What one pipe says; none, with a warning, when it has no addresses.
    fn pipe(&mut self, record: &Record, span: Span) -> Option<Pipe> {
        self.note_fields(record);
        let road = self.road(record);
        let addresses = match self.array(record, "addresses").filter(|(array, _)| array.count() > 0) {
            Some((addresses, _)) => listed(addresses),
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
        let outgoing = self.truth(record, "outgoing");
        let addresses: HashSet<Address> = addresses.into_iter().map(|(address, _)| address).collect();
        let hosts = addresses.iter().map(|(host, _)| host.clone()).collect();
        Some(Pipe {
            place: span,
            is_inward: outgoing != Some(true),
            is_outward: outgoing != Some(false),
            addresses,
            hosts,
            road,
            is_used: false,
        })
    }

    /// What a packet meets in a pipe.
    fn road(&mut self, record: &Record) -> Link {
        let (delay_s, jitter_s) = self.pipe_delay(record);
        let loss = self.share(record, "packet_loss").unwrap_or(0.0);
        self.within(record, "packet_loss", loss < 1.0, "less than 100%");
        let bits_per_s = self.quantity(record, "bandwidth", false).map(|bytes_per_s| bytes_per_s * 8.0);
        let (slowest, fastest) = Link::RATES;
        let is_possible = bits_per_s.is_none_or(|rate| (slowest..=fastest).contains(&rate));
        self.within(record, "bandwidth", is_possible, "1,000 bits to 125 GB a second");
        let queue_bytes = self.pipe_queue(record, bits_per_s.is_some());
        let bits_per_s = bits_per_s.map(|rate| rate.round() as u64);
        Link { delay_s, jitter_s, loss, bits_per_s, queue_bytes }
    }

    /// Mean and half the range of the delay, in seconds.
    fn pipe_delay(&mut self, record: &Record) -> (f64, f64) {
        let Some(law) = self.distribution(record, "packet_delay") else { return (0.0, 0.0) };
        let (delay_s, deviation_s) = (law.mean(), law.deviation());
        self.within(record, "packet_delay", delay_s <= Link::MOST_DELAY_S, "a mean of at most 60 s");
        if !matches!(law, Distribution::Constant(_) | Distribution::Uniform { .. }) {
            let at = self.place(record, "packet_delay");
            let label = "it is drawn uniformly, with the same mean and, as far as zero allows, deviation";
            self.warn(Code::NotActedOn, at, "delays of packets are constant or uniform here", label);
        }
        // A uniform variable deviates by its half range over the root of 3.
        (delay_s, (deviation_s * 3_f64.sqrt()).min(delay_s))
    }

    /// Bytes that may wait.
    fn pipe_queue(&mut self, record: &Record, has_rate: bool) -> Option<u64> {
        let message = "a queue is counted in packets or in bytes";
        self.exclude(record, ["queue_packet_size", "queue_byte_size"], message);
        let packets =
            self.whole(record, "queue_packet_size", 1).map(|packets| f64::from(packets) * PACKET_BYTES);
        let sized = self.quantity(record, "queue_byte_size", false);
        let field = if packets.is_some() { "queue_packet_size" } else { "queue_byte_size" };
        let bytes = packets.or(sized)?;
        if !has_rate {
            let at = self.place(record, field);
            let label = "it has no effect: without `bandwidth`, nothing waits";
            self.warn(Code::NotActedOn, at, format!("`NetPipe.{field}` without a bandwidth"), label);
            return None;
        }
        let (least, most) = Link::QUEUES;
        self.within(record, field, (least..=most).contains(&bytes), "1,500 bytes (one packet) to 1 GB");
        Some(bytes.round() as u64)
    }

    /// Complains about a value that no link can have.
    fn within(&mut self, record: &Record, field: &str, is_possible: bool, limits: &str) {
        let Some(slot) = record.get(field).filter(|_| !is_possible) else { return };
        let message = format!("`NetPipe.{field}` is out of range");
        let label = format!("this is {}; expected {limits}", slot.value);
        self.error(Code::OutOfRange, slot.span, message, label);
    }

    /// The link of a side: that of most of its addresses.
    fn link_of(&mut self, side: &Side, registered: &Registered, pipes: &mut [Pipe]) -> Option<Link> {
        let agents = registered.used.iter().filter(|(record, _)| record.kind == side.kind);
        let classes = classes(agents.map(|(record, _)| &**record), pipes);
        for index in classes.iter().flat_map(|(ends, _)| [ends.0, ends.1]).flatten() {
            pipes[index].is_used = true;
        }
        // Of two as large, the first.
        let (taken, _) = classes.iter().rev().max_by_key(|(_, count)| *count)?;
        let place_of = |ends: &Ends| ends.0.or(ends.1).map(|index| pipes[index].place);
        if classes.len() > 1 {
            let place = place_of(taken).or_else(|| classes.iter().find_map(|(ends, _)| place_of(ends)))?;
            let label = match taken {
                (None, None) => "most have none: no link is emulated".to_owned(),
                _ => format!("that of most is taken for all; `{}` sets another", side.flag),
            };
            let message = format!("not all {} have the same NetPipe", side.agents);
            self.warn(Code::NotActedOn, place, message, label);
        }
        let place = place_of(taken)?;
        let road = |index: Option<usize>| index.map_or_else(Link::default, |index| pipes[index].road);
        let (inward, outward) = (road(taken.0), road(taken.1));
        if inward == outward {
            return Some(inward).filter(|link| !link.is_plain());
        }
        let message = format!("the NetPipes of {} differ by direction", side.agents);
        let label = "both directions have the mean delay, and bandwidth, queue and loss of that of responses";
        self.warn(Code::NotActedOn, place, message, label);
        let responses = if side.kind == RecordKind::Robot { inward } else { outward };
        let link = Link {
            delay_s: f64::midpoint(inward.delay_s, outward.delay_s),
            jitter_s: f64::midpoint(inward.jitter_s, outward.jitter_s),
            ..responses
        };
        Some(link).filter(|link| !link.is_plain())
    }
}

/// How many addresses of agents have which pipes, in the order in which they come.
fn classes<'r>(agents: impl Iterator<Item = &'r Record>, pipes: &[Pipe]) -> Vec<(Ends, u64)> {
    // The pipe of just this address comes before one of its host: robots and servers may share a host.
    let first = |address: &Address, carries: fn(&Pipe) -> bool| {
        let exact = pipes.iter().position(|pipe| carries(pipe) && pipe.addresses.contains(address));
        exact.or_else(|| pipes.iter().position(|pipe| carries(pipe) && pipe.hosts.contains(&address.0)))
    };
    let mut classes: Vec<(Ends, u64)> = Vec::new();
    let mut places: HashMap<Ends, usize> = HashMap::new();
    for agent in agents {
        let Some(Value::Array(array)) = agent.get("addresses").map(|slot| &slot.value) else { continue };
        for (address, times) in listed(array).into_iter().flatten() {
            let ends = (first(&address, |pipe| pipe.is_inward), first(&address, |pipe| pipe.is_outward));
            let place = *places.entry(ends).or_insert_with(|| {
                classes.push((ends, 0));
                classes.len() - 1
            });
            classes[place].1 += times;
        }
    }
    classes
}

/// Addresses, each with how often it is repeated; none if there are too many to list.
fn listed(addresses: &Array) -> Option<Vec<(Address, u64)>> {
    let runs = addresses.runs()?;
    let ranges = runs.iter().filter_map(|run| match &run.value {
        Value::Address(range) => Some((range.clone(), run.times)),
        _ => None,
    });
    let ranges: Vec<_> = ranges.collect();
    let count = ranges.iter().fold(0_u64, |sum, (range, _)| sum.saturating_add(range.count()));
    let of_range = |address: AddrRange, times: u64| ((address.host(), address.port()), times);
    let all = ranges.iter().flat_map(|(range, times)| range.iter().map(|address| of_range(address, *times)));
    (count <= MAX_ITEMS).then(|| all.collect())
}
