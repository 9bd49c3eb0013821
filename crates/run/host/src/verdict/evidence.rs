//! Evidence for the judgement, summed by phase, in memory that does not grow with the run.

use std::collections::BTreeMap;
use std::ops::Range;

use assay_measurement::counts::RobotCounts;
use assay_measurement::health::{Baseline, NetworkInterval, ProcessorInterval, Stall, ThreadInterval};
use assay_measurement::histogram::Histogram;
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval};
use assay_measurement::measured::Measured;
use assay_measurement::ratios::ratio;
use assay_record::run::{PhaseInfo, RunInfo};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A role whose threads report their own scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub enum WatchedRole {
    Robots,
    Origins,
}

impl WatchedRole {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Evidence of a run.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Phases in the order of `run.json`.
    pub phases: Vec<PhaseEvidence>,
    /// Lateness of a bare timer before the run, of each thread.
    pub baselines: Vec<TimerBaseline>,
}

/// Lateness of a bare timer in a thread before the run.
#[derive(Debug)]
pub struct TimerBaseline {
    pub role: WatchedRole,
    pub p99_us: u64,
}

/// Evidence of a phase.
#[derive(Debug, Default)]
pub struct PhaseEvidence {
    /// Milliseconds since the start of the run.
    span_ms: Range<u64>,
    pub robots: RobotCounts,
    /// Response times, and waits of requests that were never sent.
    pub response: Histogram,
    /// Lateness of requests.
    pub lateness: Histogram,
    /// Lateness of the ends of think times.
    pub origin_lateness: Histogram,
    /// Worker threads, by their number within the role.
    pub threads: BTreeMap<(WatchedRole, u32), ThreadSum>,
    pub processors: BTreeMap<u32, ProcessorSum>,
    /// All processors together, of which steal counts.
    pub machine: ProcessorSum,
    /// Processor time of the target, if the lab started it.
    pub proxy_cpu_us: u64,
    /// Counters of the network stack, without levels.
    pub network: NetworkInterval,
    pub stalls: BTreeMap<WatchedRole, StallSum>,
}

/// Activity of a worker thread in a phase.
#[derive(Debug, Clone, Default)]
pub struct ThreadSum {
    /// The processor to which the thread is pinned.
    pub cpu: Option<u32>,
    /// Time covered by reports.
    pub wall_us: u64,
    pub cpu_us: u64,
    /// Time ready to run, but without a processor.
    pub run_delay_us: u64,
    /// Number of times the thread got a processor.
    pub slices: u64,
    /// The interval with the largest share of waiting.
    pub worst_wait: WorstWait,
    /// Histogram of timer lags: counts by the lower bound of a bucket, in microseconds.
    lags: BTreeMap<u64, u64>,
    /// The fullest accept queue.
    pub accept_queue: AcceptQueue,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WorstWait {
    pub at_ms: u64,
    pub share: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AcceptQueue {
    pub length: u32,
    pub limit: u32,
    pub at_ms: u64,
}

impl AcceptQueue {
    pub fn fullness(&self) -> f64 {
        share(self.length.into(), self.limit.into())
    }
}

impl ThreadSum {
    /// Number of timer lags above a limit, and of all.
    pub fn lags_above(&self, late_us: u64) -> (u64, u64) {
        (self.lags.range(late_us..).map(|(_, count)| count).sum(), self.lags.values().sum())
    }

    /// Share of the time running or ready to run.
    pub fn wanted(&self) -> f64 {
        share(self.cpu_us + self.run_delay_us, self.wall_us)
    }

    /// Share of the time ready to run, but without a processor.
    pub fn waited(&self) -> f64 {
        share(self.run_delay_us, self.wall_us)
    }

    /// Share of the time running.
    pub fn ran(&self) -> f64 {
        share(self.cpu_us, self.wall_us)
    }
}

/// Activity of a processor in a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessorSum {
    /// Time covered by readings.
    pub wall_us: u64,
    pub busy_us: u64,
    /// Time stolen by the hypervisor.
    pub steal_us: u64,
}

/// Upper bound on the stalls of a phase that are listed.
const MAX_LISTED_STALLS: usize = 4;

/// Stalls of the threads of a role in a phase.
#[derive(Debug, Clone, Default)]
pub struct StallSum {
    /// The longest ones, longest first.
    pub longest: Vec<Stall>,
    pub count: u64,
    pub total_us: u64,
}

/// A run under judgement.
pub struct JudgedRun<'a> {
    pub info: &'a RunInfo,
    pub evidence: &'a Evidence,
}

impl<'a> JudgedRun<'a> {
    /// Evidence of each phase, with its index.
    pub fn phases(&self) -> impl Iterator<Item = (u16, &'a PhaseEvidence)> + use<'a> {
        (0..).zip(&self.evidence.phases)
    }

    /// Lateness of a bare timer before the run, in the worst thread of a role.
    pub fn baseline_us(&self, role: WatchedRole) -> Option<u64> {
        let baselines = self.evidence.baselines.iter().filter(|baseline| baseline.role == role);
        baselines.map(|baseline| baseline.p99_us).max()
    }

    /// Number of processors of the proxy, if it shares that of a thread; 0 if it may use all. None without a proxy of the lab.
    pub fn proxy_beside(&self, cpu: Option<u32>) -> Option<usize> {
        let proxy = self.info.placement.iter().find(|placed| placed.role == "proxy")?;
        let shares = proxy.cpus.is_empty() || cpu.is_none_or(|cpu| proxy.cpus.contains(&cpu));
        shares.then_some(proxy.cpus.len())
    }
}

/// A part of a whole; 0 of nothing.
pub fn share(part: u64, whole: u64) -> f64 {
    ratio(part, whole).unwrap_or(0.0)
}

impl PhaseEvidence {
    /// A phase without evidence. One without times overlaps no interval.
    fn new(phase: &PhaseInfo) -> Self {
        let start_ms = phase.start_ms.unwrap_or(u64::MAX);
        Self { span_ms: start_ms..phase.end_ms.unwrap_or(u64::MAX).max(start_ms), ..Self::default() }
    }

    /// Length of the phase; 0 if it is not known.
    pub fn length_ms(&self) -> u64 {
        if self.span_ms.end == u64::MAX { 0 } else { self.span_ms.end - self.span_ms.start }
    }

    /// Overlap with an interval, in milliseconds.
    fn overlap_ms(&self, start_ms: u64, length_ms: u64) -> u64 {
        (start_ms + length_ms).min(self.span_ms.end).saturating_sub(start_ms.max(self.span_ms.start))
    }

    /// Processor time of the threads of robots and origins on a processor; for none, of those that are not pinned.
    pub fn own_cpu_us(&self, cpu: Option<u32>) -> u64 {
        self.threads.values().filter(|thread| thread.cpu == cpu).map(|thread| thread.cpu_us).sum()
    }

    /// Activity of the processors of a thread: the one to which it is pinned, or all.
    pub fn processors_of(&self, cpu: Option<u32>) -> ProcessorSum {
        match cpu {
            Some(cpu) => self.processors.get(&cpu).copied().unwrap_or_default(),
            None => self.processors.values().fold(ProcessorSum::default(), |sum, each| ProcessorSum {
                wall_us: sum.wall_us + each.wall_us,
                busy_us: sum.busy_us + each.busy_us,
                steal_us: sum.steal_us + each.steal_us,
            }),
        }
    }
}

impl Evidence {
    /// Phases without evidence. Their times must be known, since intervals are assigned by time.
    pub fn new(phases: &[PhaseInfo]) -> Self {
        Self { phases: phases.iter().map(PhaseEvidence::new).collect(), baselines: Vec::new() }
    }

    /// Adds a measurement.
    pub fn add(&mut self, measured: &Measured) {
        match measured {
            Measured::Robots(interval) => self.robots(interval),
            Measured::Origins(interval) => self.origins(interval),
            Measured::Thread(interval) => self.thread(interval),
            Measured::Stall(stall) => self.stall(stall),
            Measured::Baseline(baseline) => self.baseline(baseline),
            Measured::Network(interval) => self.network(interval),
            Measured::Processors(intervals) => intervals.iter().for_each(|interval| self.processor(interval)),
            Measured::Host(interval) => self.host(interval),
            // The behaviour of the target and its machine is no reason for doubt, and links are checked against their plan
            // elsewhere.
            _ => {}
        }
    }

    fn robots(&mut self, interval: &RobotInterval) {
        let Some(phase) = self.phases.get_mut(usize::from(interval.phase)) else { return };
        phase.robots.merge(&interval.counts);
        phase.lateness.merge_sparse(&interval.times.lateness);
        let all = interval
            .times
            .completed()
            .into_iter()
            .chain([&interval.times.timed_out])
            .map(|times| &times.response);
        all.chain([&interval.times.unsent_wait]).for_each(|times| phase.response.merge_sparse(times));
    }

    fn origins(&mut self, interval: &OriginInterval) {
        let Some(phase) = self.phases.get_mut(usize::from(interval.phase)) else { return };
        phase.origin_lateness.merge_sparse(&interval.lateness);
    }

    /// Calls `add` for each phase that shares time with an interval, with a function that gives its share of a sum.
    fn apportion(
        &mut self,
        start_ms: u64,
        length_ms: u64,
        mut add: impl FnMut(&mut PhaseEvidence, &dyn Fn(u64) -> u64),
    ) {
        for phase in &mut self.phases {
            let common_ms = phase.overlap_ms(start_ms, length_ms);
            if common_ms > 0 {
                let part = |sum: u64| (sum as f64 * common_ms as f64 / length_ms as f64).round() as u64;
                add(phase, &part);
            }
        }
    }

    fn thread(&mut self, interval: &ThreadInterval) {
        let Ok(role) = interval.role.parse::<WatchedRole>() else { return };
        let waited = share(interval.run_delay_us, interval.length_ms * 1000);
        self.apportion(interval.start_ms, interval.length_ms, |phase, part| {
            let sum = phase.threads.entry((role, interval.thread)).or_default();
            sum.cpu = interval.cpu;
            sum.wall_us += part(interval.length_ms * 1000);
            sum.cpu_us += part(interval.cpu_us);
            sum.run_delay_us += part(interval.run_delay_us);
            sum.slices += part(interval.slices);
            if waited > sum.worst_wait.share {
                sum.worst_wait = WorstWait { at_ms: interval.start_ms, share: waited };
            }
            for &(low_us, count) in &interval.timer_lag.buckets {
                *sum.lags.entry(low_us).or_default() += part(count);
            }
            if interval.accept_queue >= sum.accept_queue.length {
                sum.accept_queue = AcceptQueue {
                    length: interval.accept_queue,
                    limit: interval.accept_queue_limit,
                    at_ms: interval.start_ms,
                };
            }
        });
    }

    fn stall(&mut self, stall: &Stall) {
        let Ok(role) = stall.role.parse::<WatchedRole>() else { return };
        let length_ms = stall.length_us.div_ceil(1000).max(1);
        let last = self.phases.iter().rposition(|phase| phase.span_ms.end <= stall.at_ms);
        let add = |phase: &mut PhaseEvidence, length_us: u64| {
            let sum = phase.stalls.entry(role).or_default();
            sum.count += 1;
            sum.total_us += length_us;
            let place = sum.longest.partition_point(|longer| longer.length_us >= stall.length_us);
            sum.longest.insert(place, stall.clone());
            sum.longest.truncate(MAX_LISTED_STALLS);
        };
        let mut seen = false;
        self.apportion(stall.at_ms, length_ms, |phase, part| {
            seen = true;
            add(phase, part(stall.length_us));
        });
        // A stall after the last phase delays the last responses of that phase.
        if !seen && let Some(phase) = last.and_then(|last| self.phases.get_mut(last)) {
            add(phase, stall.length_us);
        }
    }

    fn baseline(&mut self, baseline: &Baseline) {
        let Ok(role) = baseline.role.parse::<WatchedRole>() else { return };
        let mut lag = Histogram::new();
        lag.merge_sparse(&baseline.lag);
        if let Some(p99_us) = lag.quantile_us(0.99) {
            self.baselines.push(TimerBaseline { role, p99_us });
        }
    }

    fn network(&mut self, interval: &NetworkInterval) {
        self.apportion(interval.start_ms, interval.length_ms, |phase, part| {
            let sum = &mut phase.network;
            sum.segments_out += part(interval.segments_out);
            sum.retransmitted += part(interval.retransmitted);
            sum.listen_overflows += part(interval.listen_overflows);
            sum.listen_drops += part(interval.listen_drops);
            sum.backlog_drops += part(interval.backlog_drops);
            sum.receive_drops += part(interval.receive_drops);
            sum.memory_pressures += part(interval.memory_pressures);
        });
    }

    fn processor(&mut self, interval: &ProcessorInterval) {
        self.apportion(interval.start_ms, interval.length_ms, |phase, part| {
            let sum = phase.processors.entry(interval.cpu).or_default();
            sum.wall_us += part(interval.length_ms * 1000);
            sum.busy_us += part(interval.busy_us);
            sum.steal_us += part(interval.steal_us);
        });
    }

    /// Of host metrics, only steal and the target count here: robots and origins report their threads themselves.
    fn host(&mut self, interval: &HostInterval) {
        self.apportion(interval.start_ms, interval.length_ms, |phase, part| match interval.role.as_str() {
            "proxy" => phase.proxy_cpu_us += part(interval.cpu_us),
            "host" => {
                let sum = &mut phase.machine;
                sum.wall_us += part(interval.length_ms * 1000);
                sum.busy_us += part(interval.cpu_us);
                sum.steal_us += part(interval.steal_us);
            }
            _ => {}
        });
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::histogram::SparseHistogram;

    use super::*;

    fn two_phases() -> Evidence {
        let phase =
            |start, end| PhaseInfo { start_ms: Some(start), end_ms: Some(end), ..PhaseInfo::default() };
        Evidence::new(&[phase(0, 1500), phase(1500, 3000), PhaseInfo::default()])
    }

    #[test]
    fn an_interval_on_the_border_is_shared_by_time() {
        let mut evidence = two_phases();
        evidence.thread(&ThreadInterval {
            start_ms: 1000,
            length_ms: 1000,
            role: "origins".into(),
            cpu_us: 400,
            run_delay_us: 300,
            timer_lag: SparseHistogram { buckets: vec![(50, 8), (2_000, 4)], ..SparseHistogram::default() },
            accept_queue: 7,
            ..ThreadInterval::default()
        });
        for phase in &evidence.phases[..2] {
            let sum = &phase.threads[&(WatchedRole::Origins, 0)];
            assert_eq!((sum.wall_us, sum.cpu_us, sum.run_delay_us), (500_000, 200, 150));
            assert_eq!(
                (sum.worst_wait.at_ms, sum.worst_wait.share, sum.accept_queue.length),
                (1000, 300e-6, 7)
            );
            assert_eq!((sum.lags_above(1_000), sum.lags_above(3_000)), ((2, 6), (0, 6)));
        }
        assert!(evidence.phases[2].threads.is_empty(), "it never began");
    }

    #[test]
    fn a_stall_counts_for_every_phase_that_it_touches() {
        let mut evidence = two_phases();
        let stall = |at_ms, length_us| Stall { role: "robots".into(), at_ms, length_us, ..Stall::default() };
        evidence.stall(&stall(1400, 200_000));
        for phase in &evidence.phases[..2] {
            let sum = &phase.stalls[&WatchedRole::Robots];
            assert_eq!((sum.count, sum.total_us, sum.longest[0].length_us), (1, 100_000, 200_000));
        }
        evidence.stall(&stall(3100, 50_000));
        assert_eq!(
            evidence.phases[1].stalls[&WatchedRole::Robots].count,
            2,
            "the last responses are still under way"
        );
    }

    #[test]
    fn a_stall_that_begins_as_the_last_phase_ends_counts_for_that_phase() {
        let mut evidence = two_phases();
        evidence.stall(&Stall { role: "robots".into(), at_ms: 3000, length_us: 50_000, ..Stall::default() });
        let counts =
            |phase: &PhaseEvidence| phase.stalls.get(&WatchedRole::Robots).map_or(0, |sum| sum.count);
        assert_eq!(evidence.phases.iter().map(counts).collect::<Vec<_>>(), [0, 1, 0]);
    }

    #[test]
    fn the_use_of_processors_is_added_up_one_by_one() {
        let mut evidence = two_phases();
        for cpu in [0, 1] {
            evidence.add(&Measured::Processors(vec![ProcessorInterval {
                length_ms: 1000,
                cpu,
                busy_us: 100 + u64::from(cpu),
                ..ProcessorInterval::default()
            }]));
        }
        let phase = &evidence.phases[0];
        assert_eq!((phase.processors_of(Some(1)).busy_us, phase.processors_of(None).busy_us), (101, 201));
        assert_eq!(phase.processors_of(None).wall_us, 2_000_000);
        assert_eq!(phase.processors_of(Some(9)), ProcessorSum::default());
    }
}
