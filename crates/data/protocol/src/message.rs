//! How a role process and the command that started it talk: one JSON document per line.
//!
//! Commands go to the role's standard input, events come from its standard output; its standard error is
//! for people. End of input means that the parent is gone: the role stops at once.
//!
//! # Roles
//!
//! `assay role robots|origins|proxy|target|links SPEC.json` (hidden; `proxy` once for each built-in cache, `target` for a real proxy on an agent's machine): reads its spec, sends `Ready`,
//! waits for `Start`, reports `protocol::message::Event`s as JSON lines on stdout, obeys `protocol::message::Command`s on stdin, and ends at
//! end of input. A role that cannot start prints the reason on stderr and exits 1.

use std::net::SocketAddr;

use crate::evaluation::{CollectorInterval, MultiplierCounters};
use assay_measurement::counts;
use assay_measurement::declared::{Described, Metric, add, named};
use assay_measurement::doubt::Reason;
use assay_measurement::measured::{Measured, ProxySample};
use assay_measurement::waits::WaitReport;
use serde::{Deserialize, Serialize};

/// To a role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "command")]
pub enum Command {
    /// Begin at this instant. Origins use it to number intervals and to date objects, robots to start.
    Start {
        /// `CLOCK_MONOTONIC`, nanoseconds.
        at_monotonic_ns: u64,
        /// The same instant as Unix time, in whole seconds: the epoch of life cycles.
        at_unix_s: u64,
    },
    /// Robots, in a phase whose load adapts: this load factor from now on. Others do nothing.
    Load {
        /// As in the schedule.
        factor: f64,
    },
    /// Robots whose origins are on other machines: by how much an instant of an origin can differ from the same instant of
    /// theirs, from now on. Others do nothing.
    Clock {
        /// In microseconds.
        error_us: u64,
    },
    /// Robots whose spec says `joins_waits`: when the target waited for processors that others had. Others do nothing.
    Waits(WaitReport),
    /// Robots: send nothing new, wait for what is under way, report, end. Others: report and end.
    Stop,
}

/// From a role.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// Everything that can fail before the start has not failed.
    Ready {
        /// Where it listens (origins: in the workload's order; proxy: one; robots: none).
        listening: Vec<SocketAddr>,
    },
    /// Something that was measured. How quiet a worker's processor was comes before `Ready`.
    Measured(Measured),
    /// How far the schedule is (robots).
    Phase(PhaseEvent),
    /// The built-in proxy's counters, cumulative.
    Proxy(Box<ProxyCounters>),
    /// What the Collector did in the last second, and its counters (collector).
    Collector(Box<CollectorInterval>),
    /// The Multiplier's counters, cumulative (multiplier).
    Multiplier(Box<MultiplierCounters>),
    /// Something outside the target went wrong; the run is invalid.
    Fault {
        /// Which of the reasons there are.
        reason: Reason,
        /// What was attempted, what was seen, what to do.
        message: String,
    },
    /// The schedule is over (or Stop was obeyed) and everything is reported. Last event.
    Done,
}

/// How far the schedule is, as robots play it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseEvent {
    /// A phase began.
    Began {
        /// Its index.
        phase: u16,
        /// Milliseconds since the start of the run.
        at_ms: u64,
    },
    /// A phase ended.
    Ended {
        /// Its index.
        phase: u16,
        /// Milliseconds since the start of the run.
        at_ms: u64,
        /// Requests that each robot launched in it; only where best-effort robots make it a result.
        launched: Vec<u32>,
    },
    /// How far a best-effort phase with a count goal is (others can be computed from time).
    Progress {
        /// Its index.
        phase: u16,
        /// 0 to 1.
        done: f64,
    },
}

const fn by_outcome(outcome: &'static str) -> Metric {
    let help = "The target's own word on how it answered; what it does not count is 0.";
    Metric::counter("proxy_outcomes").with("outcome", outcome, help)
}

counts! {
    /// Counters of the built-in proxy, since its start.
    #[derive(Copy)]
    pub struct ProxyCounters {
        requests: "requests that the target says it answered", metric Metric::counter("proxy_requests");
        hits: "requests answered from the store", metric by_outcome("hit");
        collapsed: "requests that joined another's fetch", metric by_outcome("collapsed");
        revalidated: "requests confirmed by the origin", metric by_outcome("revalidated");
        misses: "requests that were fetched", metric by_outcome("miss");
        passed: "requests that are not cachable at all (methods, directives)", metric by_outcome("passed");
        evictions: "objects that the target says it dropped to make room",
            metric Metric::counter("proxy_evictions");
        objects: "objects that the target says it stores", metric Metric::gauge("proxy_objects");
        stored_bytes: "bytes that the target says it stores, overhead included", metric Metric::gauge("proxy_stored");
        origin_requests: "requests that the target says it sent", metric Metric::counter("proxy_origin_requests");
        origin_errors: "fetches that the target says failed", metric Metric::counter("proxy_origin_errors");
        refused: "requests that the target says it refused: malformed, too large, or of a kind that it does not serve",
            metric Metric::counter("proxy_refused");
        slow_clients: "clients that took too long with a request or a response, as the target says",
            metric Metric::counter("proxy_slow_clients");
        dismissed_clients: "connections of clients that the target says it ended to make room for others",
            metric Metric::counter("proxy_dismissed_clients");
    }
    beside {
        /// What came of querying other caches, and of their queries.
        #[serde(default, skip_serializing_if = "PeerCounters::is_nothing")]
        peers: PeerCounters,
        /// What came of prefetching.
        #[serde(default, skip_serializing_if = "PrefetchCounters::is_nothing")]
        prefetch: PrefetchCounters,
    }
}

counts! {
    /// What a cache fetched before it was requested, since its start.
    #[derive(Copy)]
    pub struct PrefetchCounters {
        prefetched: "fetches begun before anybody requested the object";
        prefetched_bytes: "bytes of bodies that they brought";
        prefetched_used: "objects fetched in this way that were hit later";
        prefetches_dropped: "references that were not followed because too many were waiting";
    }
}

counts! {
    /// What a cache requested from others, and others from it, since its start.
    #[derive(Copy)]
    pub struct PeerCounters {
        icp_sent: "ICP queries sent";
        icp_responses: "responses to ICP queries that came in time";
        icp_hits: "responses to ICP queries that said hit";
        icp_timeouts: "ICP queries without a response in time, of those that were waited for";
        icp_responses_sent: "responses to ICP queries of others";
        icp_hits_sent: "of these, those that said hit";
        icp_refused: "ICP queries and messages that were refused: from strangers, or not understood";
        icp_bytes: "bytes of ICP messages sent, queries and responses";
        icp_wait_us: "how long fetches have waited for responses to ICP queries, added up, in microseconds";
        sibling_hits: "fetches that a sibling answered from its store";
        false_hits: "siblings that had said hit and then had nothing";
        parent_fetches: "fetches that a parent answered";
        parent_hits: "fetches that a parent answered from its store, as it says itself";
        peer_errors: "fetches through a peer that failed: no connection, or no response";
        sibling_bytes: "bytes of bodies that siblings sent";
        parent_bytes: "bytes of bodies that parents sent";
        peer_requests: "requests that came from other caches; they are among all requests";
        peer_hits: "requests of other caches that were answered from the store; they are among all hits";
        loops: "requests that had been here before, and went to their origin straight";
    }
}

impl PeerCounters {
    /// True of a cache that stands alone.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl PrefetchCounters {
    /// There was nothing of the kind.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl ProxyCounters {
    /// As a reading for the record, so many milliseconds after the start of the run. Of a cache that stands alone, there is
    /// nothing to say about others.
    pub fn sample(&self, cache: &str, at_ms: u64) -> ProxySample {
        let peers = Some(&self.peers).filter(|peers| !peers.is_nothing());
        let prefetch = Some(&self.prefetch).filter(|prefetch| !prefetch.is_nothing());
        let of_others = peers.into_iter().flat_map(named).chain(prefetch.into_iter().flat_map(named));
        let all = named(self).chain(of_others).map(|(name, value)| (name.to_owned(), value as f64));
        ProxySample { cache: cache.to_owned(), at_ms, counters: all.collect() }
    }

    /// The names of all counters.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let of_others = PeerCounters::FIELDS.iter().map(|field| field.name);
        let of_others = of_others.chain(PrefetchCounters::FIELDS.iter().map(|field| field.name));
        Self::FIELDS.iter().map(|field| field.name).chain(of_others)
    }

    /// Adds to the counter of this name; false: there is no such counter.
    pub fn add(&mut self, name: &str, more: u64) -> bool {
        add(self, name, more) || add(&mut self.peers, name, more) || add(&mut self.prefetch, name, more)
    }
}

impl From<&ProxySample> for ProxyCounters {
    /// What a target counts that is not one of ours is left out.
    fn from(sample: &ProxySample) -> Self {
        let mut counters = Self::default();
        for (name, value) in &sample.counters {
            counters.add(name, *value as u64);
        }
        counters
    }
}
