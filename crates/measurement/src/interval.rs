//! One second of one phase, as role processes report it and as the run directory keeps it.

use serde::{Deserialize, Serialize};

use crate::counts::{OriginCounts, RobotCounts};
use crate::histogram::SparseHistogram;

/// Times of one class of xacts in one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// `last_byte − due`.
    pub response: SparseHistogram,
    /// `last_byte − sent`.
    pub service: SparseHistogram,
    /// `first_byte − sent`.
    pub ttfb: SparseHistogram,
}

/// Levels at the end of an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RobotLevels {
    /// Requests ready or due that wait for a connection slot.
    pub waiting: u64,
    /// Requests sent and not yet answered.
    pub in_flight: u64,
    /// Open connections.
    pub connections: u64,
}

/// What the robots did in one interval that lies within one phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RobotInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
    /// Index of the phase that its xacts belong to.
    pub phase: u16,
    /// Counts.
    pub counts: RobotCounts,
    /// Times of all xacts whose outcome is hit, basic or not.
    pub hit: Times,
    /// Times of all xacts whose outcome is miss, basic or not.
    pub miss: Times,
    /// Times of all other xacts that completed: collapsed, revalidated, and those of which nothing tells the outcome.
    pub other: Times,
    /// Open waits of xacts that timed out: how long they had waited when they were given up. One that was never sent is
    /// in `response` alone; one that was answered in part is in `ttfb` with the time of its first byte.
    pub timed_out: Times,
    /// `sent − max(due, ready)` of every xact sent: what Assay itself added.
    pub lateness: SparseHistogram,
    /// Open waits of what was never sent: phase end − due.
    pub unsent_wait: SparseHistogram,
    /// Levels at the end.
    pub levels: RobotLevels,
}

impl RobotInterval {
    /// Times of the xacts that completed, by class: together, they are all of them.
    pub fn completed(&self) -> [&Times; 3] {
        [&self.hit, &self.miss, &self.other]
    }

    /// All its histograms, each with the metric and the class under which tables keep it.
    pub fn histograms(&self) -> [(&'static str, &'static str, &SparseHistogram); 14] {
        [
            ("response", "hit", &self.hit.response),
            ("response", "miss", &self.miss.response),
            ("response", "other", &self.other.response),
            ("response", "timed_out", &self.timed_out.response),
            ("service", "hit", &self.hit.service),
            ("service", "miss", &self.miss.service),
            ("service", "other", &self.other.service),
            ("service", "timed_out", &self.timed_out.service),
            ("ttfb", "hit", &self.hit.ttfb),
            ("ttfb", "miss", &self.miss.ttfb),
            ("ttfb", "other", &self.other.ttfb),
            ("ttfb", "timed_out", &self.timed_out.ttfb),
            ("lateness", "all", &self.lateness),
            ("unsent_wait", "all", &self.unsent_wait),
        ]
    }
}

/// What the origins did in one interval that lies within one phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OriginInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
    /// Index of the phase, as the requests themselves say.
    pub phase: u16,
    /// Counts.
    pub counts: OriginCounts,
    /// Last byte written − request complete, think time included.
    pub service: SparseHistogram,
    /// How much later than asked think times ended.
    pub lateness: SparseHistogram,
    /// Open connections at the end.
    pub connections: u64,
}

/// What a process (or a tree of them) used in one interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
    /// `robots`, `origins`, `proxy` or `host`.
    pub role: String,
    /// CPU time used, user and system, in microseconds.
    pub cpu_us: u64,
    /// Resident memory at the end, in bytes.
    pub rss_bytes: u64,
    /// Time that runnable threads waited for a processor, in microseconds.
    pub run_delay_us: u64,
    /// Open file descriptors at the end.
    pub descriptors: u64,
    /// Time stolen by the hypervisor, all processors (role `host` only), in microseconds.
    pub steal_us: u64,
    /// Of the CPU time, what was spent in the program itself, in microseconds.
    pub user_us: u64,
    /// Of the CPU time, what was spent in the kernel for it, in microseconds.
    pub system_us: u64,
    /// Times that its threads gave up the processor because they had to wait (not `host`).
    pub voluntary_switches: u64,
    /// Times that the processor was taken from its threads (not `host`).
    pub involuntary_switches: u64,
    /// Page faults served without a disk (not `host`).
    pub minor_faults: u64,
    /// Page faults that had to read from a disk (not `host`).
    pub major_faults: u64,
    /// Processes at the end (not `host`).
    pub processes: u64,
    /// Threads at the end (not `host`).
    pub threads: u64,
    /// Memory, pages that are shared counted in parts (PSS); read every 10 seconds at most.
    pub pss_bytes: Option<u64>,
    /// Bytes that were read from disks; none where the kernel does not tell.
    pub disk_read_bytes: Option<u64>,
    /// Bytes that were (or will be) written to disks; none where the kernel does not tell.
    pub disk_written_bytes: Option<u64>,
    /// Memory charged to the role's control group, where it has one of its own.
    pub group_bytes: Option<u64>,
    /// Page cache: of the role's control group, where it has one of its own; of the whole machine (`host`).
    pub cache_bytes: Option<u64>,
}
