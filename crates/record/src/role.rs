//! How a role process and the command that started it talk: one JSON document per line.
//!
//! Commands go to the role's standard input, events come from its standard output; its standard error is
//! for people. End of input means that the parent is gone: the role stops at once.

use std::net::SocketAddr;

use crate::adapted::Adapted;
use crate::doubt::Reason;
use crate::error_kind::ErrorExample;
use crate::health::{Baseline, LinkInterval, Stall, ThreadInterval};
use crate::interval::{OriginInterval, RobotInterval};
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
}
