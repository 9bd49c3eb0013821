//! Can the numbers be trusted? Adds up what the run reported and judges Assay, not the target; whether that kept
//! up is seen in the numbers, and the report says it.

use assay_record::counts::{OriginCounts, RobotCounts};
use assay_record::doubt::{Doubt, Reason};
use assay_record::error_kind::ErrorKind;
use assay_record::histogram::Histogram;
use assay_record::interval::{HostInterval, OriginInterval, RobotInterval};
use assay_record::role::ProxyCounters;
use assay_record::run::Verdict;

use crate::checks::size;

/// Above this share of requests late by so much, Assay shaped the result: 99th percentile, in microseconds.
const LATE_FAULT_US: u64 = 10_000;
/// Above this it is worth knowing.
const LATE_WARNING_US: u64 = 1_000;
/// Share of stolen processor time that is worth knowing.
const STEAL_WARNING: f64 = 0.02;
/// Share of their processors that robots or origins can use before they are the limit.
const BUSY_WARNING: f64 = 0.95;

/// Share of requests that Assay itself came to too late above which the schedule was not kept.
const UNSENT_LATE_FAULT: f64 = 0.001;

/// What the cache could hold, and what it is called.
#[derive(Debug, Clone, Default)]
pub struct CacheSize {
    /// Bytes; none: not known, or there is no cache.
    pub bytes: Option<u64>,
}

/// Sums of everything reported so far.
#[derive(Debug, Default)]
pub struct Tally {
    robots: RobotCounts,
    origins: OriginCounts,
    lateness: Histogram,
    last_proxy: ProxyCounters,
    peak_stored_bytes: u64,
    host: Vec<HostInterval>,
    doubts: Vec<Doubt>,
    warnings: Vec<String>,
}

impl Tally {
    /// Adds an interval of the robots.
    pub fn robots(&mut self, interval: &RobotInterval) {
        self.robots.merge(&interval.counts);
        self.lateness.merge_sparse(&interval.lateness);
    }

    /// Adds an interval of the origins.
    pub fn origins(&mut self, interval: &OriginInterval) {
        self.origins.merge(&interval.counts);
    }

    /// Adds what was used in an interval.
    pub fn host(&mut self, interval: &HostInterval) {
        let sum = match self.host.iter_mut().find(|sum| sum.role == interval.role) {
            Some(sum) => sum,
            None => {
                self.host.push(HostInterval { role: interval.role.clone(), ..HostInterval::default() });
                let last = self.host.len() - 1;
                &mut self.host[last]
            }
        };
        sum.length_ms += interval.length_ms;
        sum.cpu_us += interval.cpu_us;
        sum.steal_us += interval.steal_us;
    }

    /// Takes note of the target's own counters.
    pub fn proxy(&mut self, counters: &ProxyCounters) {
        self.last_proxy = *counters;
        self.peak_stored_bytes = self.peak_stored_bytes.max(counters.stored_bytes);
    }

    /// Something outside the target went wrong.
    pub fn doubt(&mut self, doubt: Doubt) {
        self.doubts.push(doubt);
    }

    /// Something that a reader should know. Said once, however often it happens.
    pub fn warn(&mut self, message: impl Into<String>) {
        let message = message.into();
        if !self.warnings.contains(&message) {
            self.warnings.push(message);
        }
    }

    /// The judgement. `cpus` are the processors of robots and origins (shared), `all_cpus` those of the
    /// machine.
    pub fn verdict(mut self, partial: bool, cache: &CacheSize, cpus: usize, all_cpus: usize) -> Verdict {
        self.judge_own_limits();
        self.judge_lateness();
        self.judge_machine(cpus, all_cpus);
        self.judge_cache(cache);
        Verdict {
            valid: !self.doubts.iter().any(|doubt| doubt.invalidates),
            partial,
            doubts: self.doubts,
            warnings: self.warnings,
        }
    }

    fn judge_own_limits(&mut self) {
        let of = |kind: ErrorKind| self.robots.errors.get(&kind).copied().unwrap_or(0);
        let ports = of(ErrorKind::PortsExhausted);
        let descriptors = of(ErrorKind::DescriptorsExhausted);
        if ports > 0 {
            self.doubt(Doubt::invalid(Reason::Ports, format!("{ports} requests found no free source port")));
        }
        if descriptors > 0 {
            let seen = format!("{descriptors} requests found no free file descriptor");
            self.doubt(Doubt::invalid(Reason::Descriptors, seen));
        }
        if self.robots.dropped_samples > 0 {
            let dropped = self.robots.dropped_samples;
            self.doubt(Doubt::invalid(Reason::SamplesDropped, format!("{dropped} samples were dropped")));
        }
    }

    fn judge_lateness(&mut self) {
        let (due, late) = (self.robots.due, self.robots.unsent_late);
        if late as f64 > due as f64 * UNSENT_LATE_FAULT {
            let seen = format!(
                "{late} of {due} requests were not sent because Assay came to them after their phase had ended"
            );
            self.doubt(Doubt::invalid(Reason::UnsentLate, seen));
        }
        let Some(p99) = self.lateness.quantile_us(0.99) else { return };
        let seen = format!(
            "1 % of requests were sent more than {:.1} ms later than they could be",
            p99 as f64 / 1e3
        );
        if p99 > LATE_FAULT_US {
            self.doubt(Doubt::invalid(Reason::Late, seen));
        } else if p99 > LATE_WARNING_US {
            self.warn(format!("{seen}; response times count from when requests were due and hold that"));
        }
    }

    fn judge_machine(&mut self, cpus: usize, all_cpus: usize) {
        let share =
            |us: u64, ms: u64, cpus: usize| us as f64 / (ms as f64 * 1e3 * cpus.max(1) as f64).max(1.0);
        let of = |role: &str| self.host.iter().find(|sum| sum.role == role).cloned().unwrap_or_default();
        let (robots, origins, host) = (of("robots"), of("origins"), of("host"));
        let busy = share(robots.cpu_us + origins.cpu_us, robots.length_ms, cpus);
        if busy > BUSY_WARNING {
            self.warn(format!(
                "robots and origins used {:.0} % of their processors: what was reached may be their limit, not the \
                 target's",
                busy * 100.0
            ));
        }
        let steal = share(host.steal_us, host.length_ms, all_cpus);
        if steal > STEAL_WARNING {
            self.warn(format!("the hypervisor took {:.1} % of the processors' time away", steal * 100.0));
        }
    }

    fn judge_cache(&mut self, cache: &CacheSize) {
        let filled = self.origins.body_bytes_out.max(self.peak_stored_bytes);
        if let Some(capacity) = cache.bytes
            && filled < capacity
            && self.last_proxy.evictions == 0
            && self.robots.completed > 0
        {
            self.warn(format!(
                "the cache was never full: at most {} of {} were put into it, so hit ratios are those of a cache \
                 without bounds",
                size(filled),
                size(capacity)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_record::doubt::Blame;

    use super::*;

    fn with(counts: RobotCounts, lateness_us: &[u64]) -> Tally {
        let mut lateness = Histogram::new();
        lateness_us.iter().for_each(|us| lateness.record(*us));
        let mut tally = Tally::default();
        tally.robots(&RobotInterval { counts, lateness: lateness.to_sparse(), ..RobotInterval::default() });
        tally
    }

    fn verdict(tally: Tally) -> Verdict {
        tally.verdict(false, &CacheSize::default(), 1, 2)
    }

    #[test]
    fn a_quiet_run_is_valid_and_has_no_warnings() {
        let verdict = verdict(with(RobotCounts { completed: 10, ..RobotCounts::default() }, &[20, 30]));
        assert_eq!(verdict, Verdict { valid: true, ..Verdict::default() });
    }

    #[test]
    fn own_limits_make_a_run_invalid() {
        let mut counts = RobotCounts { dropped_samples: 1, ..RobotCounts::default() };
        counts.errors.insert(ErrorKind::PortsExhausted, 2);
        counts.errors.insert(ErrorKind::DescriptorsExhausted, 3);
        let verdict = verdict(with(counts, &[]));
        assert!(!verdict.valid);
        assert_eq!(verdict.doubts.len(), 3);
        assert!(verdict.doubts.iter().all(|doubt| doubt.blame == Blame::Assay));
    }

    #[test]
    fn errors_of_the_target_leave_the_run_valid() {
        let mut counts = RobotCounts::default();
        counts.errors.insert(ErrorKind::WrongBytes, 1);
        counts.errors.insert(ErrorKind::Stale, 7);
        let verdict = verdict(with(counts, &[]));
        assert!(verdict.valid && verdict.warnings.is_empty());
    }

    #[test]
    fn lateness_warns_first_and_then_makes_invalid() {
        assert!(verdict(with(RobotCounts::default(), &[900; 100])).warnings.is_empty());
        let late = verdict(with(RobotCounts::default(), &[2_000; 100]));
        assert!(late.valid && late.warnings[0].contains("2.0 ms"), "{late:?}");
        assert!(!verdict(with(RobotCounts::default(), &[20_000; 100])).valid);
    }

    #[test]
    fn what_assay_itself_was_too_late_for_is_its_own_fault() {
        let judge = |unsent_late| {
            let counts = RobotCounts { due: 10_000, unsent: 100, unsent_late, ..RobotCounts::default() };
            verdict(with(counts, &[]))
        };
        assert!(judge(10).valid);
        let late = judge(11);
        assert_eq!((late.valid, late.doubts[0].reason), (false, Reason::UnsentLate));
    }

    #[test]
    fn a_cache_that_was_never_full_is_told() {
        let judge = |filled: u64, evictions: u64| {
            let mut tally = with(RobotCounts { completed: 1, ..RobotCounts::default() }, &[]);
            let counts = OriginCounts { body_bytes_out: filled, ..OriginCounts::default() };
            tally.origins(&OriginInterval { counts, ..OriginInterval::default() });
            tally.proxy(&ProxyCounters { evictions, ..ProxyCounters::default() });
            tally.verdict(false, &CacheSize { bytes: Some(1 << 30) }, 1, 2).warnings
        };
        assert!(judge(1 << 20, 0)[0].contains("never full: at most 1.0 MB of 1.0 GB"));
        assert!(judge(1 << 20, 5).is_empty());
        assert!(judge(2 << 30, 0).is_empty());
    }

    #[test]
    fn busy_robots_and_a_greedy_hypervisor_are_told() {
        let mut tally = Tally::default();
        let used = |role: &str, cpu_us, steal_us| HostInterval {
            role: role.into(),
            length_ms: 1000,
            cpu_us,
            steal_us,
            ..HostInterval::default()
        };
        tally.host(&used("robots", 700_000, 0));
        tally.host(&used("origins", 290_000, 0));
        tally.host(&used("host", 0, 100_000));
        let warnings = verdict(tally).warnings;
        assert!(warnings[0].contains("99 % of their processors"), "{warnings:?}");
        assert!(warnings[1].contains("5.0 %"), "{warnings:?}");
    }

    #[test]
    fn a_warning_is_said_once() {
        let mut tally = Tally::default();
        tally.warn("x");
        tally.warn("x");
        assert_eq!(verdict(tally).warnings, ["x"]);
    }
}
