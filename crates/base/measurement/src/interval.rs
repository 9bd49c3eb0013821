//! One second of one phase, as role processes report it and as the run directory keeps it.

use serde::{Deserialize, Serialize};

use crate::counts::{OriginCounts, RobotCounts};
use crate::declared::{Described, Metric, Value};
use crate::histogram::SparseHistogram;
use crate::robot_times::RobotTimes;
use crate::series;

/// Times of one class of xacts in one interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Times {
    /// `last_byte − due`, less what it was sent later, up to [`BEGUN_LATE_US`](crate::own_error::BEGUN_LATE_US).
    pub response: SparseHistogram,
    /// `last_byte − sent`.
    pub service: SparseHistogram,
    /// `first_byte − sent`.
    pub ttfb: SparseHistogram,
    /// The same of those xacts among them that Assay disturbed ([`crate::own_error::Unrecorded`] says from which delay on).
    #[serde(skip_serializing_if = "Disturbed::is_empty")]
    pub disturbed: Disturbed,
}

/// Times of the xacts that Assay disturbed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disturbed {
    /// `last_byte − due`, less what it was sent later, up to [`BEGUN_LATE_US`](crate::own_error::BEGUN_LATE_US).
    pub response: Disturbance,
    /// `last_byte − sent`.
    pub service: Disturbance,
    /// `first_byte − sent`.
    pub ttfb: Disturbance,
    /// Of those that were among requests that Assay held back, or met the burst of them: how long these were delayed. It is not part
    /// of the above.
    pub aftermath: SparseHistogram,
    /// The same of those that were in flight while it could be felt, and met it only if the target happened to be busy.
    pub passing: SparseHistogram,
}

/// The same times twice over: each xact is once in each of the histograms.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Disturbance {
    /// As they were seen.
    pub seen: SparseHistogram,
    /// The least that they can have been without Assay's own delays of them.
    pub least: SparseHistogram,
}

impl Disturbed {
    /// No xact was disturbed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Times {
    /// All its histograms, each with the metric under which tables keep it.
    pub fn histograms(&self) -> [(&'static str, &SparseHistogram); 11] {
        let Disturbed { response, service, ttfb, aftermath, passing } = &self.disturbed;
        [
            ("response", &self.response),
            ("response_disturbed", &response.seen),
            ("response_least", &response.least),
            ("service", &self.service),
            ("service_disturbed", &service.seen),
            ("service_least", &service.least),
            ("ttfb", &self.ttfb),
            ("ttfb_disturbed", &ttfb.seen),
            ("ttfb_least", &ttfb.least),
            ("aftermath", aftermath),
            ("passing", passing),
        ]
    }

    /// Adds the times of other xacts.
    pub fn merge(&mut self, other: &Self) {
        for (metric, histogram) in other.histograms() {
            if let Some(sum) = self.histogram_mut(metric) {
                sum.merge(histogram);
            }
        }
    }

    /// The histogram that tables keep under this metric.
    pub fn histogram_mut(&mut self, metric: &str) -> Option<&mut SparseHistogram> {
        let Disturbed { response, service, ttfb, aftermath, passing } = &mut self.disturbed;
        Some(match metric {
            "response" => &mut self.response,
            "response_disturbed" => &mut response.seen,
            "response_least" => &mut response.least,
            "service" => &mut self.service,
            "service_disturbed" => &mut service.seen,
            "service_least" => &mut service.least,
            "ttfb" => &mut self.ttfb,
            "ttfb_disturbed" => &mut ttfb.seen,
            "ttfb_least" => &mut ttfb.least,
            "aftermath" => aftermath,
            "passing" => passing,
            _ => return None,
        })
    }
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
        in_flight: u64 = "at the end of the interval: requests sent whose response is not complete",
            metric Metric::gauge("requests_in_flight");
        connections: u64 = "at the end of the interval: open connections",
            metric open_connections("robots");
    }
}

/// Counts and times of the robots in one interval, which lies within one phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RobotInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// Length of the interval in milliseconds.
    pub length_ms: u64,
    /// Index of the phase that its xacts belong to.
    pub phase: u16,
    /// Counts.
    pub counts: RobotCounts,
    pub times: RobotTimes<Times, SparseHistogram>,
    /// Levels at the end.
    pub levels: RobotLevels,
}

impl RobotInterval {
    /// Adds what other robots did in the same interval of the same phase. Of two ends, the later one counts: only the last
    /// interval of those that end first is shorter.
    pub fn merge(&mut self, other: &Self) {
        self.length_ms = self.length_ms.max(other.length_ms);
        self.counts.merge(&other.counts);
        self.times.add(&other.times, Times::merge, SparseHistogram::merge);
        self.levels.waiting += other.levels.waiting;
        self.levels.in_flight += other.levels.in_flight;
        self.levels.connections += other.levels.connections;
    }
}

/// Counts and times of the origins in one interval, which lies within one phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OriginInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// Length of the interval in milliseconds.
    pub length_ms: u64,
    /// Index of the phase, as the requests themselves say.
    pub phase: u16,
    /// Counts.
    pub counts: OriginCounts,
    /// Last byte written − request complete, think time included.
    pub service: SparseHistogram,
    /// Delay of the ends of think times.
    pub lateness: SparseHistogram,
    /// Open connections at the end.
    pub connections: u64,
}

impl OriginInterval {
    /// Adds what other origins did in the same interval of the same phase.
    pub fn merge(&mut self, other: &Self) {
        self.length_ms = self.length_ms.max(other.length_ms);
        self.counts.merge(&other.counts);
        self.service.merge(&other.service);
        self.lateness.merge(&other.lateness);
        self.connections += other.connections;
    }
}

series! {
    /// Resources that a process (or a tree of them) used in one interval.
    pub struct HostInterval {
        start_ms: u64 = "when the interval began, in milliseconds since the start of the run";
        length_ms: u64 = "how long it lasted, in milliseconds";
        role: String = "`robots`, `origins`, `proxy`, `links` (the process that emulates links), or `host` for the whole machine";
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
    } beside {
        /// Waits of the target's threads for processors in each stretch of 2 ms, added up; empty for all others.
        waits: SparseHistogram,
    }
}

impl HostInterval {
    /// Adds what other processes of the same role used in the same interval. What is unknown of one is unknown of all.
    pub fn merge(&mut self, other: &Self) {
        for field in <Self as Described>::FIELDS {
            let sum = match (field.name, (field.get)(self), (field.get)(other)) {
                ("start_ms" | "length_ms", ..) | (_, Value::Text(_) | Value::Float(_), _) => continue,
                (_, Value::Uint(one), Value::Uint(more)) => Value::Uint(one.saturating_add(more)),
                _ => Value::None,
            };
            (field.set)(self, sum);
        }
        self.length_ms = self.length_ms.max(other.length_ms);
        self.waits.merge(&other.waits);
    }
}

#[cfg(test)]
mod tests {
    use crate::histogram::Histogram;

    use super::*;

    fn of(values_us: &[u64]) -> SparseHistogram {
        let mut histogram = Histogram::new();
        values_us.iter().for_each(|value| histogram.record(*value));
        histogram.to_sparse()
    }

    #[test]
    fn the_histograms_of_two_parts_are_that_of_all_their_values() {
        let mut one = RobotInterval { length_ms: 900, ..RobotInterval::default() };
        one.times.hit.response = of(&[3, 1_000_000, 77]);
        one.counts.due = 3;
        let mut other = RobotInterval { length_ms: 1000, ..RobotInterval::default() };
        other.times.hit.response = of(&[77, 12]);
        other.levels.connections = 2;
        one.merge(&other);
        assert_eq!(one.times.hit.response, of(&[3, 12, 77, 77, 1_000_000]));
        assert_eq!((one.length_ms, one.counts.due, one.levels.connections), (1000, 3, 2));
        let mut origins = OriginInterval { service: of(&[5]), connections: 1, ..OriginInterval::default() };
        origins.merge(&OriginInterval { service: of(&[9]), connections: 2, ..OriginInterval::default() });
        assert_eq!((origins.service, origins.connections), (of(&[5, 9]), 3));
    }

    #[test]
    fn what_is_unknown_of_one_process_is_unknown_of_all() {
        let host = |cpu_us, pss_bytes| HostInterval {
            start_ms: 1000,
            length_ms: 1000,
            role: "robots".into(),
            cpu_us,
            pss_bytes,
            ..HostInterval::default()
        };
        let mut sum = host(5, Some(7));
        sum.merge(&host(6, Some(8)));
        assert_eq!(sum, host(11, Some(15)));
        sum.merge(&host(1, None));
        assert_eq!(sum, host(12, None));
    }
}
