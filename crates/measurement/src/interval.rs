//! One second of one phase, as role processes report it and as the run directory keeps it.

use serde::{Deserialize, Serialize};

use crate::counts::{OriginCounts, RobotCounts};
use crate::declared::Metric;
use crate::histogram::SparseHistogram;
use crate::series;

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

/// Open connections of a side, as a metric.
pub const fn open_connections(side: &'static str) -> Metric {
    Metric::gauge("connections").with("side", side, "Open connections.")
}

series! {
    /// Levels at the end of an interval.
    #[derive(Copy, Eq)]
    pub struct RobotLevels {
        waiting: u64 = "at the end of the interval: requests that wait for a connection",
            metric Metric::gauge("requests_waiting");
        in_flight: u64 = "at the end of the interval: requests sent and not yet answered",
            metric Metric::gauge("requests_in_flight");
        connections: u64 = "at the end of the interval: open connections",
            metric open_connections("robots");
    }
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
    /// in `response` alone; one that got a part of its response is in `ttfb` with the time of its first byte.
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
    /// How much later than due think times ended.
    pub lateness: SparseHistogram,
    /// Open connections at the end.
    pub connections: u64,
}

series! {
    /// What a process (or a tree of them) used in one interval.
    pub struct HostInterval {
        start_ms: u64 = "when the interval began, in milliseconds since the start of the run";
        length_ms: u64 = "how long it lasted, in milliseconds";
        role: String = "`robots`, `origins`, `proxy`, or `host` for the whole machine";
        cpu_us: u64 = "processor time used, user and system, in microseconds";
        rss_bytes: u64 = "resident memory at the end, in bytes";
        run_delay_us: u64 = "time that runnable threads waited for a processor, in microseconds";
        descriptors: u64 = "open file descriptors at the end";
        steal_us: u64 = "time stolen by the hypervisor (`host` only), in microseconds";
        user_us: u64 = "of `cpu_us`: in the programs themselves";
        system_us: u64 = "of `cpu_us`: in the kernel, for them";
        voluntary_switches: u64 = "times that a thread gave up its processor because it had to wait (not `host`)";
        involuntary_switches: u64 = "times that a processor was taken from a thread (not `host`)";
        minor_faults: u64 = "page faults that needed no disk (not `host`)";
        major_faults: u64 = "page faults that had to read from a disk (not `host`)";
        processes: u64 = "processes at the end (not `host`)";
        threads: u64 = "threads at the end (not `host`)";
        pss_bytes: Option<u64> =
            "memory at the end with shared pages counted in parts (PSS), in bytes; every 10 seconds, else null";
        disk_read_bytes: Option<u64> = "bytes read from disks for them; null where the kernel does not tell";
        disk_written_bytes: Option<u64> =
            "bytes of theirs that were or will be written to disks; null where the kernel does not tell";
        group_bytes: Option<u64> =
            "memory charged to the role's control group, page cache included; null where it has none of its own";
        cache_bytes: Option<u64> =
            "page cache at the end: of the role's control group (null where it has none), of the machine (`host`)";
    }
}
