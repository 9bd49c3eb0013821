//! Counters of the switch: those of a worker, and their sum over workers.

use std::cell::{Cell, RefCell};

use assay_net::http2::RefusalCounts;
use serde::Serialize;
use strum::VariantArray;

use crate::reason::{NoServerReason, RefusalReason};

/// Four buckets for each doubling, from 1 µs to more than an hour.
const BUCKETS: usize = 132;

/// Histogram of times in microseconds, in buckets that are a quarter of a doubling wide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeHistogram {
    buckets: Vec<u64>,
    sum_us: u64,
}

impl Default for TimeHistogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], sum_us: 0 }
    }
}

fn bucket_of(us: u64) -> usize {
    // Below four microseconds a bucket is a microsecond wide.
    let index = if us < 4 {
        us as usize
    } else {
        let doublings = us.ilog2() as usize;
        let quarter = (us >> (doublings - 2)) as usize & 3;
        4 * (doublings - 1) + quarter
    };
    index.min(BUCKETS - 1)
}

/// Exclusive upper bound of a bucket.
fn end_of(bucket: usize) -> u64 {
    let next = bucket as u64 + 1;
    if next < 4 { next } else { (4 + next % 4) << (next / 4 - 1) }
}

impl TimeHistogram {
    pub fn record(&mut self, us: u64) {
        self.buckets[bucket_of(us)] += 1;
        self.sum_us = self.sum_us.saturating_add(us);
    }

    pub fn merge(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(own, more)| *own += more);
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
    }

    /// Difference to an earlier state of the same histogram.
    pub fn since(&self, earlier: &Self) -> Self {
        let buckets = self.buckets.iter().zip(&earlier.buckets).map(|(now, then)| now.saturating_sub(*then));
        Self { buckets: buckets.collect(), sum_us: self.sum_us.saturating_sub(earlier.sum_us) }
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    pub fn sum_us(&self) -> u64 {
        self.sum_us
    }

    /// Count below a power of two of microseconds: exact, since buckets end there.
    pub fn below(&self, us: u64) -> u64 {
        self.buckets.iter().enumerate().take_while(|(index, _)| end_of(*index) <= us).map(|(_, n)| n).sum()
    }

    /// Upper bound, at most a quarter too long, on the time that a `quantile` of all does not exceed; `None` without any.
    pub fn quantile_us(&self, quantile: f64) -> Option<u64> {
        let all = self.count();
        let wanted = ((all as f64 * quantile).ceil() as u64).max(1);
        let mut cumulative = 0;
        (all > 0).then(|| {
            let at = self.buckets.iter().position(|count| {
                cumulative += count;
                cumulative >= wanted
            });
            end_of(at.unwrap_or(BUCKETS - 1))
        })
    }
}

/// Counters of one class at one server, or of the switch's own responses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerTally {
    /// Responses sent, by the first digit of their status: 1 to 5 at indices 0 to 4.
    pub responses: [u64; 5],
    /// Bytes of bodies to clients.
    pub bytes: u64,
    /// Connections of layer 4 that have ended.
    pub connections: u64,
    /// Of these, those that broke off, or got no server.
    pub broken: u64,
    /// Bytes that clients sent on layer-4 connections.
    pub received: u64,
    /// Bytes of both directions that the kernel moved without a copy.
    pub spliced: u64,
    /// Requests that failed at the server and were sent again.
    pub retried: u64,
    /// Requests that failed at the server.
    pub failed: u64,
    /// From a request's head to the end of its response.
    pub times: TimeHistogram,
    /// From a request's head to the beginning of its response.
    pub first_byte: TimeHistogram,
}

impl ServerTally {
    pub fn merge(&mut self, other: &Self) {
        self.responses.iter_mut().zip(other.responses).for_each(|(own, more)| *own += more);
        self.bytes += other.bytes;
        self.connections += other.connections;
        self.broken += other.broken;
        self.received += other.received;
        self.spliced += other.spliced;
        self.retried += other.retried;
        self.failed += other.failed;
        self.times.merge(&other.times);
        self.first_byte.merge(&other.first_byte);
    }

    pub fn requests(&self) -> u64 {
        self.responses.iter().sum()
    }
}

/// Counters that a worker increments.
#[derive(Debug, Default)]
pub struct LiveServerTally(RefCell<ServerTally>);

impl LiveServerTally {
    pub fn with(&self, write: impl FnOnce(&mut ServerTally)) {
        write(&mut self.0.borrow_mut());
    }

    pub fn copy(&self) -> ServerTally {
        self.0.borrow().clone()
    }
}

/// Counters of a worker that belong to no class.
#[derive(Debug, Default)]
pub struct LiveCounts {
    /// Open connections of clients.
    pub clients: Cell<u32>,
    pub accepted: Cell<u64>,
    /// Requests at a server.
    pub in_flight: Cell<u32>,
    /// Refused requests by reason. HTTP/2 requests refused before any handler saw them are counted elsewhere
    /// ([`assay_net::connection::Resources::refusals`]).
    pub refused: [Cell<u64>; RefusalReason::VARIANTS.len()],
    /// Requests, and layer-4 connections, that got no server, by reason.
    pub no_server: [Cell<u64>; NoServerReason::VARIANTS.len()],
    /// Requests whose client went away before the server responded.
    pub left: Cell<u64>,
    /// Connections opened to servers.
    pub connects: Cell<u64>,
    /// Lines of the access log that could not be written.
    pub log_lost: Cell<u64>,
}

impl LiveCounts {
    pub fn refuse(&self, reason: impl Into<RefusalReason>) {
        add(&self.refused[reason.into() as usize]);
    }

    /// Refused requests by reason, with the HTTP/2 requests refused before any handler saw them.
    pub fn refused_with(&self, early: &RefusalCounts) -> [u64; RefusalReason::VARIANTS.len()] {
        let mut all = self.refused.each_ref().map(Cell::get);
        for (reason, count) in [
            (RefusalReason::Malformed, &early.malformed),
            (RefusalReason::HeadTooLong, &early.too_long),
            (RefusalReason::NotServed, &early.not_served),
            (RefusalReason::TooMany, &early.too_many),
        ] {
            all[reason as usize] += count.get();
        }
        all
    }
}

pub fn add(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

/// Counters of one worker, or of all together.
#[derive(Debug, Clone, Default)]
pub struct SwitchSnapshot {
    /// By class and server; no server: responses of the switch itself.
    pub tallies: Vec<(String, Option<String>, ServerTally)>,
    pub servers: Vec<ServerStatus>,
    /// Open connections of clients.
    pub clients: u64,
    /// Requests at a server.
    pub in_flight: u64,
    /// Queued requests.
    pub waiting: u64,
    pub accepted: u64,
    /// Refused requests, in the order of [`RefusalReason::VARIANTS`].
    pub refused: [u64; RefusalReason::VARIANTS.len()],
    /// Requests, and layer-4 connections, that got no server, in the order of [`NoServerReason::VARIANTS`].
    pub no_server: [u64; NoServerReason::VARIANTS.len()],
    /// Requests whose client went away before the server responded.
    pub left: u64,
    /// Connections opened to servers.
    pub connects: u64,
    /// Clients that took too long with a handshake, a head, or with sending or taking a body.
    pub slow: u64,
    /// Client connections ended, while they waited for the client, to make room for others.
    pub dismissed: u64,
    /// Lines of the access log that could not be written.
    pub log_lost: u64,
}

/// State of a server.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerStatus {
    pub name: String,
    /// Whether the server gets requests.
    pub up: bool,
    /// 0 while the server gets no requests.
    pub weight: f64,
    pub in_flight: u64,
    /// Idle connections.
    pub idle: u64,
}

impl SwitchSnapshot {
    pub fn merge(&mut self, other: Self) {
        for (class, server, tally) in other.tallies {
            match self.tallies.iter_mut().find(|(c, s, _)| *c == class && *s == server) {
                Some((_, _, own)) => own.merge(&tally),
                None => self.tallies.push((class, server, tally)),
            }
        }
        for server in other.servers {
            match self.servers.iter_mut().find(|own| own.name == server.name) {
                Some(own) => {
                    own.in_flight += server.in_flight;
                    own.idle += server.idle;
                }
                None => self.servers.push(server),
            }
        }
        self.clients += other.clients;
        self.in_flight += other.in_flight;
        self.waiting += other.waiting;
        self.accepted += other.accepted;
        self.refused.iter_mut().zip(other.refused).for_each(|(own, more)| *own += more);
        self.no_server.iter_mut().zip(other.no_server).for_each(|(own, more)| *own += more);
        self.left += other.left;
        self.connects += other.connects;
        self.slow += other.slow;
        self.dismissed += other.dismissed;
        self.log_lost += other.log_lost;
    }

    pub fn refused_as(&self, reason: RefusalReason) -> u64 {
        self.refused[reason as usize]
    }

    /// Refused requests in total.
    pub fn refused(&self) -> u64 {
        self.refused.iter().sum()
    }

    pub fn no_server_as(&self, reason: NoServerReason) -> u64 {
        self.no_server[reason as usize]
    }

    pub fn total(&self) -> ServerTally {
        let mut total = ServerTally::default();
        self.tallies.iter().for_each(|(_, _, tally)| total.merge(tally));
        total
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_time_lies_in_its_bucket(us in 0u64..8_000_000_000) {
            let bucket = bucket_of(us);
            prop_assert!(us < end_of(bucket) || bucket == BUCKETS - 1);
            prop_assert!(bucket == 0 || end_of(bucket - 1) <= us);
        }

        #[test]
        fn counts_below_a_power_of_two_are_exact(all in prop::collection::vec(0u64..100_000, 0..50), power in 0u32..20) {
            let mut times = TimeHistogram::default();
            all.iter().for_each(|us| times.record(*us));
            let expected = all.iter().filter(|us| **us < 1 << power).count() as u64;
            prop_assert_eq!(times.below(1 << power), expected);
            prop_assert_eq!((times.count(), times.sum_us()), (all.len() as u64, all.iter().sum()));
        }

        #[test]
        fn times_of_two_workers_are_those_that_one_would_have_counted(
            ones in prop::collection::vec(0u64..100_000, 0..20), others in prop::collection::vec(0u64..100_000, 0..20)
        ) {
            let times = |all: &[u64]| {
                let mut times = TimeHistogram::default();
                all.iter().for_each(|us| times.record(*us));
                times
            };
            let mut merged = times(&ones);
            merged.merge(&times(&others));
            prop_assert_eq!(merged, times(&[ones, others].concat()));
        }
    }

    #[test]
    fn quantiles_are_a_quarter_too_long_at_most() {
        let mut times = TimeHistogram::default();
        assert_eq!(times.quantile_us(0.5), None);
        (1..=1000).for_each(|us| times.record(us));
        for (quantile, us) in [(0.5, 500), (0.99, 990)] {
            let told = times.quantile_us(quantile).expect("has some");
            assert!((us..us * 5 / 4 + 2).contains(&told), "{quantile}: {told}");
        }
        let mut later = times.clone();
        later.record(7);
        assert_eq!((later.since(&times).count(), later.since(&times).sum_us()), (1, 7));
    }

    #[test]
    fn what_workers_counted_adds_up() {
        let tally = |n| ServerTally { responses: [0, n, 0, 0, 0], ..ServerTally::default() };
        let one = |n| SwitchSnapshot {
            tallies: vec![("a".into(), Some("s".into()), tally(n)), ("b".into(), None, tally(1))],
            servers: vec![ServerStatus { name: "s".into(), up: true, weight: 1.0, in_flight: n, idle: 1 }],
            clients: n,
            ..SwitchSnapshot::default()
        };
        let mut all = one(2);
        all.merge(one(3));
        assert_eq!((all.tallies.len(), all.total().requests(), all.clients), (2, 7, 5));
        assert_eq!((all.servers[0].in_flight, all.servers[0].idle), (5, 2));
    }
}
