//! How a role process and the command that started it talk: one JSON document per line.
//!
//! Commands go to the role's standard input, events come from its standard output; its standard error is
//! for people. End of input means that the parent is gone: the role stops at once.

use std::net::SocketAddr;

use crate::evaluation::{CollectorInterval, MultiplierCounters};
use assay_measurement::adapted::Adapted;
use assay_measurement::doubt::Reason;
use assay_measurement::error_kind::ErrorExample;
use assay_measurement::health::{Baseline, LinkInterval, Stall, ThreadInterval};
use assay_measurement::interval::{OriginInterval, RobotInterval};
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
    /// Robots' measurements of an interval.
    Robots(Box<RobotInterval>),
    /// Origins' measurements of an interval.
    Origins(Box<OriginInterval>),
    /// The built-in proxy's counters, cumulative.
    Proxy(ProxyCounters),
    /// What the Collector did in the last second, and its counters (collector).
    Collector(Box<CollectorInterval>),
    /// The Multiplier's counters, cumulative (multiplier).
    Multiplier(Box<MultiplierCounters>),
    /// A phase began (robots).
    PhaseBegan {
        /// Its index.
        phase: u16,
        /// Milliseconds since the start of the run.
        at_ms: u64,
    },
    /// A phase ended (robots).
    PhaseEnded {
        /// Its index.
        phase: u16,
        /// Milliseconds since the start of the run.
        at_ms: u64,
        /// Requests that each robot launched in it; only where best-effort robots make it a result.
        launched: Vec<u32>,
    },
    /// How far a best-effort phase with a count goal is, 0 to 1 (robots; others can be computed from time).
    Progress {
        /// Index of the phase.
        phase: u16,
        /// 0 to 1.
        done: f64,
    },
    /// The first errors of each kind.
    Example(ErrorExample),
    /// What was decided about load that adapts (robots).
    Adapted(Box<Adapted>),
    /// How a worker thread did in an interval (robots, origins).
    Thread(Box<ThreadInterval>),
    /// A worker thread stood still (robots, origins).
    Stall(Stall),
    /// How quiet a worker's processor was before the run; comes before `Ready` (robots, origins).
    Baseline(Box<Baseline>),
    /// What a direction of a link carried in an interval (links).
    Link(Box<LinkInterval>),
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

/// Counters of the built-in proxy, since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProxyCounters {
    /// Requests answered.
    pub requests: u64,
    /// From the store.
    pub hits: u64,
    /// Joined another's fetch.
    pub collapsed: u64,
    /// Confirmed by the origin.
    pub revalidated: u64,
    /// Fetched.
    pub misses: u64,
    /// Not cachable at all (methods, directives).
    pub passed: u64,
    /// Objects dropped to make room.
    pub evictions: u64,
    /// Objects stored now.
    pub objects: u64,
    /// Bytes stored now, overhead included.
    pub stored_bytes: u64,
    /// Requests sent to origins.
    pub origin_requests: u64,
    /// Origin fetches that failed.
    pub origin_errors: u64,
    /// What came of asking other caches, and of being asked by them.
    #[serde(default, skip_serializing_if = "PeerCounters::is_nothing")]
    pub peers: PeerCounters,
    /// What came of fetching before being asked.
    #[serde(default, skip_serializing_if = "PrefetchCounters::is_nothing")]
    pub prefetch: PrefetchCounters,
}

/// What a cache fetched before it was asked for it, since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PrefetchCounters {
    /// Fetches begun.
    pub fetches: u64,
    /// Bytes of bodies that they brought.
    pub bytes: u64,
    /// Objects fetched in this way that were hit later.
    pub used: u64,
    /// References that were not followed because too many were waiting.
    pub dropped: u64,
}

impl PrefetchCounters {
    /// There was nothing of the kind.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Names and numbers.
    pub fn by_name(&self) -> [(&'static str, u64); 4] {
        [
            ("prefetched", self.fetches),
            ("prefetched_bytes", self.bytes),
            ("prefetched_used", self.used),
            ("prefetches_dropped", self.dropped),
        ]
    }

    /// Of both.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        Self {
            fetches: self.fetches.saturating_add(other.fetches),
            bytes: self.bytes.saturating_add(other.bytes),
            used: self.used.saturating_add(other.used),
            dropped: self.dropped.saturating_add(other.dropped),
        }
    }
}

impl ProxyCounters {
    /// Of both.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        let Self { requests, hits, collapsed, revalidated, misses, passed, evictions, .. } = other;
        let Self { objects, stored_bytes, origin_requests, origin_errors, peers, prefetch, .. } = other;
        for (sum, more) in [
            (&mut self.requests, requests),
            (&mut self.hits, hits),
            (&mut self.collapsed, collapsed),
            (&mut self.revalidated, revalidated),
            (&mut self.misses, misses),
            (&mut self.passed, passed),
            (&mut self.evictions, evictions),
            (&mut self.objects, objects),
            (&mut self.stored_bytes, stored_bytes),
            (&mut self.origin_requests, origin_requests),
            (&mut self.origin_errors, origin_errors),
        ] {
            *sum = sum.saturating_add(*more);
        }
        self.peers = self.peers.plus(peers);
        self.prefetch = self.prefetch.plus(prefetch);
        self
    }
}

/// What a cache asked others for, and what others asked it for, since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PeerCounters {
    /// ICP queries sent.
    pub icp_sent: u64,
    /// Answers to them that came in time.
    pub icp_replies: u64,
    /// Of these, hits.
    pub icp_hits: u64,
    /// Queries that nobody answered in time, of those that were waited for.
    pub icp_timeouts: u64,
    /// ICP queries of others that were answered.
    pub icp_answered: u64,
    /// Of these, with a hit.
    pub icp_answered_hits: u64,
    /// Queries and messages that were refused: from strangers, or not understood.
    pub icp_refused: u64,
    /// Bytes of ICP messages sent, questions and answers.
    pub icp_bytes: u64,
    /// How long fetches have waited for answers, added up, in microseconds.
    pub icp_wait_us: u64,
    /// Fetches that a sibling answered from its store.
    pub sibling_hits: u64,
    /// Siblings that had said hit and then had nothing.
    pub false_hits: u64,
    /// Fetches that a parent answered.
    pub parent_fetches: u64,
    /// Of these, from the parent's store, as it says itself.
    pub parent_hits: u64,
    /// Fetches that a peer was asked for in vain: no connection, or no answer.
    pub peer_errors: u64,
    /// Bytes of bodies that siblings sent.
    pub sibling_bytes: u64,
    /// Bytes of bodies that parents sent.
    pub parent_bytes: u64,
    /// Requests that came from other caches; they are among all requests.
    pub requests: u64,
    /// Of these, answered from the store; they are among all hits.
    pub hits: u64,
    /// Requests that had been here before, and went to their origin straight.
    pub loops: u64,
}

impl PeerCounters {
    /// Of both.
    #[must_use]
    pub fn plus(mut self, other: &Self) -> Self {
        for (sum, (_, more)) in [
            &mut self.icp_sent,
            &mut self.icp_replies,
            &mut self.icp_hits,
            &mut self.icp_timeouts,
            &mut self.icp_answered,
            &mut self.icp_answered_hits,
            &mut self.icp_refused,
            &mut self.icp_bytes,
            &mut self.icp_wait_us,
            &mut self.sibling_hits,
            &mut self.false_hits,
            &mut self.parent_fetches,
            &mut self.parent_hits,
            &mut self.peer_errors,
            &mut self.sibling_bytes,
            &mut self.parent_bytes,
            &mut self.requests,
            &mut self.hits,
            &mut self.loops,
        ]
        .into_iter()
        .zip(other.by_name())
        {
            *sum = sum.saturating_add(more);
        }
        self
    }

    /// True of a cache that stands alone.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Every counter by its name in the record.
    pub fn by_name(&self) -> [(&'static str, u64); 19] {
        [
            ("icp_sent", self.icp_sent),
            ("icp_replies", self.icp_replies),
            ("icp_hits", self.icp_hits),
            ("icp_timeouts", self.icp_timeouts),
            ("icp_answered", self.icp_answered),
            ("icp_answered_hits", self.icp_answered_hits),
            ("icp_refused", self.icp_refused),
            ("icp_bytes", self.icp_bytes),
            ("icp_wait_us", self.icp_wait_us),
            ("sibling_hits", self.sibling_hits),
            ("false_hits", self.false_hits),
            ("parent_fetches", self.parent_fetches),
            ("parent_hits", self.parent_hits),
            ("peer_errors", self.peer_errors),
            ("sibling_bytes", self.sibling_bytes),
            ("parent_bytes", self.parent_bytes),
            ("peer_requests", self.requests),
            ("peer_hits", self.hits),
            ("loops", self.loops),
        ]
    }
}
