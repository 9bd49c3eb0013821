//! What was seen, added up phase by phase: all that a judgement needs, in memory that does not grow with the run.

use std::collections::BTreeMap;

use assay_measurement::counts::RobotCounts;
use assay_measurement::health::{Baseline, NetworkInterval, ProcessorInterval, Stall, ThreadInterval};
use assay_measurement::histogram::Histogram;
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval};
use assay_measurement::measured::Measured;
use assay_measurement::ratios::ratio;
use assay_record::run::PhaseInfo;

/// A role whose threads are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Robots,
    Origins,
}

impl Side {
    pub const ALL: [Side; 2] = [Side::Robots, Side::Origins];

    /// Its name in the record.
    pub fn name(self) -> &'static str {
        match self {
            Side::Robots => "robots",
            Side::Origins => "origins",
        }
    }

    fn of(role: &str) -> Option<Side> {
        Self::ALL.into_iter().find(|side| side.name() == role)
    }
}

/// Everything that was seen in a run.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Phase by phase, in the order of `run.json`.
    pub phases: Vec<PhaseEvidence>,
    /// How late a bare timer was before the run, of each thread: its 99th percentile, in microseconds.
    pub baselines: Vec<(Side, u32, u64)>,
}

/// What was seen in a phase.
#[derive(Debug, Default)]
pub struct PhaseEvidence {
    /// From when to when, in milliseconds since the start of the run.
    span_ms: (u64, u64),
    pub robots: RobotCounts,
    /// Response times, and how long those waited that were never sent.
    pub response: Histogram,
    /// Of the robots' requests.
    pub lateness: Histogram,
    /// Of the origins' think times.
    pub origin_lateness: Histogram,
    /// Worker threads, by their number within the role.
    pub threads: BTreeMap<(Side, u32), ThreadSum>,
    /// What each processor did.
    pub processors: BTreeMap<u32, ProcessorSum>,
    /// What the hypervisor took from all processors together, in microseconds, and out of how much time.
    pub machine: ProcessorSum,
    /// Processor time of the target, if the lab started it.
    pub proxy_cpu_us: u64,
    /// What the network stack counted; levels are not added up.
    pub network: NetworkInterval,
    /// Where threads stood still.
    pub stalls: BTreeMap<Side, StallSum>,
}

/// What a worker thread did in a phase.
#[derive(Debug, Clone, Default)]
pub struct ThreadSum {
    /// The processor it is pinned to.
    pub cpu: Option<u32>,
    /// How long it was watched.
    pub wall_us: u64,
    pub cpu_us: u64,
    /// Time that it was ready to run and had no processor.
    pub run_delay_us: u64,
    /// Times it was put on a processor.
    pub slices: u64,
    /// The interval in which it waited most: when it began, and the share of it.
    pub worst_wait: (u64, f64),
    /// How late its timer was served: how often, by the least microseconds of a bucket.
    lags: BTreeMap<u64, u64>,
    /// The fullest accept queue, and its limit.
    pub accept_queue: (u32, u32),
    pub accept_queue_at_ms: u64,
}

impl ThreadSum {
    /// How often its timer was served more than so late, and how often in all.
    pub fn lags_above(&self, late_us: u64) -> (u64, u64) {
        (self.lags.range(late_us..).map(|(_, count)| count).sum(), self.lags.values().sum())
    }

    /// Share of the time that it was running or ready to run.
    pub fn wanted(&self) -> f64 {
        share(self.cpu_us + self.run_delay_us, self.wall_us)
    }

    /// Share of the time that it was ready to run and had no processor.
    pub fn waited(&self) -> f64 {
        share(self.run_delay_us, self.wall_us)
    }

    /// Share of the time that it was running.
    pub fn ran(&self) -> f64 {
        share(self.cpu_us, self.wall_us)
    }
}

/// What a processor did in a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessorSum {
    /// How long it was watched.
    pub wall_us: u64,
    /// Time that it worked, for whomever.
    pub busy_us: u64,
    /// Time that the hypervisor took.
    pub steal_us: u64,
}

/// Stalls of a phase that are told one by one.
const STALLS_TOLD: usize = 4;

/// Where threads of a role stood still in a phase.
#[derive(Debug, Clone, Default)]
pub struct StallSum {
    /// The longest ones, longest first.
    pub longest: Vec<Stall>,
    pub count: u64,
    /// All together, in microseconds.
    pub total_us: u64,
}

/// A part of a whole; 0 of nothing.
pub fn share(part: u64, whole: u64) -> f64 {
    ratio(part, whole).unwrap_or(0.0)
}

impl PhaseEvidence {
    /// What phases belong to which time is known once they are over.
    fn new(phase: &PhaseInfo) -> Self {
        let start_ms = phase.start_ms.unwrap_or(u64::MAX);
        Self { span_ms: (start_ms, phase.end_ms.unwrap_or(u64::MAX).max(start_ms)), ..Self::default() }
    }

    /// How long it lasted, as far as that is known.
    pub fn length_ms(&self) -> u64 {
        if self.span_ms.1 == u64::MAX { 0 } else { self.span_ms.1 - self.span_ms.0 }
    }

    /// Milliseconds that it shares with an interval.
    fn overlap_ms(&self, start_ms: u64, length_ms: u64) -> u64 {
        (start_ms + length_ms).min(self.span_ms.1).saturating_sub(start_ms.max(self.span_ms.0))
    }

    /// Processor time of robots and origins that are pinned to a processor; none: of those that are not pinned.
    pub fn own_cpu_us(&self, cpu: Option<u32>) -> u64 {
        self.threads.values().filter(|thread| thread.cpu == cpu).map(|thread| thread.cpu_us).sum()
    }

    /// What the processors of a thread did, for whomever: its own one, or all.
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
    /// Nothing was seen yet in these phases. Times of phases must be known: intervals are sorted by them.
    pub fn new(phases: &[PhaseInfo]) -> Self {
        Self { phases: phases.iter().map(PhaseEvidence::new).collect(), baselines: Vec::new() }
    }

    /// Adds something that was measured.
    pub fn take(&mut self, measured: &Measured) {
        match measured {
            Measured::Robots(interval) => self.robots(interval),
            Measured::Origins(interval) => self.origins(interval),
            Measured::Thread(interval) => self.thread(interval),
            Measured::Stall(stall) => self.stall(stall),
            Measured::Baseline(baseline) => self.baseline(baseline),
            Measured::Network(interval) => self.network(interval),
            Measured::Processors(intervals) => intervals.iter().for_each(|interval| self.processor(interval)),
            Measured::Host(interval) => self.host(interval),
            // What the target and the machine under it did speaks for or against nobody, and what links did is held against
            // their plan as it comes.
            _ => {}
        }
    }

    fn robots(&mut self, interval: &RobotInterval) {
        let Some(phase) = self.phases.get_mut(usize::from(interval.phase)) else { return };
        phase.robots.merge(&interval.counts);
        phase.lateness.merge_sparse(&interval.lateness);
        let all = interval.completed().into_iter().chain([&interval.timed_out]).map(|times| &times.response);
        all.chain([&interval.unsent_wait]).for_each(|times| phase.response.merge_sparse(times));
    }

    fn origins(&mut self, interval: &OriginInterval) {
        let Some(phase) = self.phases.get_mut(usize::from(interval.phase)) else { return };
        phase.origin_lateness.merge_sparse(&interval.lateness);
    }

    /// Calls `add` for each phase that shares time with an interval, with a function that gives its share of a sum.
    fn spread(
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
        let Some(side) = Side::of(&interval.role) else { return };
        let waited = share(interval.run_delay_us, interval.length_ms * 1000);
        self.spread(interval.start_ms, interval.length_ms, |phase, part| {
            let sum = phase.threads.entry((side, interval.thread)).or_default();
            sum.cpu = interval.cpu;
            sum.wall_us += part(interval.length_ms * 1000);
            sum.cpu_us += part(interval.cpu_us);
            sum.run_delay_us += part(interval.run_delay_us);
            sum.slices += part(interval.slices);
            if waited > sum.worst_wait.1 {
                sum.worst_wait = (interval.start_ms, waited);
            }
            for &(low_us, count) in &interval.timer_lag.buckets {
                *sum.lags.entry(low_us).or_default() += part(count);
            }
            if interval.accept_queue >= sum.accept_queue.0 {
                sum.accept_queue = (interval.accept_queue, interval.accept_queue_limit);
                sum.accept_queue_at_ms = interval.start_ms;
            }
        });
    }

    fn stall(&mut self, stall: &Stall) {
        let Some(side) = Side::of(&stall.role) else { return };
        let length_ms = stall.length_us.div_ceil(1000).max(1);
        let last = self.phases.iter().rposition(|phase| phase.span_ms.1 <= stall.at_ms);
        let add = |phase: &mut PhaseEvidence, length_us: u64| {
            let sum = phase.stalls.entry(side).or_default();
            sum.count += 1;
            sum.total_us += length_us;
            let place = sum.longest.partition_point(|longer| longer.length_us >= stall.length_us);
            sum.longest.insert(place, stall.clone());
            sum.longest.truncate(STALLS_TOLD);
        };
        let mut seen = false;
        self.spread(stall.at_ms, length_ms, |phase, part| {
            seen = true;
            add(phase, part(stall.length_us));
        });
        // After the last phase, its last responses are still under way.
        if !seen && let Some(phase) = last.and_then(|last| self.phases.get_mut(last)) {
            add(phase, stall.length_us);
        }
    }

    fn baseline(&mut self, baseline: &Baseline) {
        let Some(side) = Side::of(&baseline.role) else { return };
        let mut lag = Histogram::new();
        lag.merge_sparse(&baseline.lag);
        if let Some(p99_us) = lag.quantile_us(0.99) {
            self.baselines.push((side, baseline.thread, p99_us));
        }
    }

    fn network(&mut self, interval: &NetworkInterval) {
        self.spread(interval.start_ms, interval.length_ms, |phase, part| {
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
        self.spread(interval.start_ms, interval.length_ms, |phase, part| {
            let sum = phase.processors.entry(interval.cpu).or_default();
            sum.wall_us += part(interval.length_ms * 1000);
            sum.busy_us += part(interval.busy_us);
            sum.steal_us += part(interval.steal_us);
        });
    }

    /// Robots and origins watch their threads themselves: what is needed here is the machine's steal, and the target.
    fn host(&mut self, interval: &HostInterval) {
        self.spread(interval.start_ms, interval.length_ms, |phase, part| match interval.role.as_str() {
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
            let sum = &phase.threads[&(Side::Origins, 0)];
            assert_eq!((sum.wall_us, sum.cpu_us, sum.run_delay_us), (500_000, 200, 150));
            assert_eq!((sum.worst_wait, sum.accept_queue.0), ((1000, 300e-6), 7));
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
            let sum = &phase.stalls[&Side::Robots];
            assert_eq!((sum.count, sum.total_us, sum.longest[0].length_us), (1, 100_000, 200_000));
        }
        evidence.stall(&stall(3100, 50_000));
        assert_eq!(
            evidence.phases[1].stalls[&Side::Robots].count,
            2,
            "the last responses are still under way"
        );
    }

    #[test]
    fn a_stall_that_begins_as_the_last_phase_ends_counts_for_that_phase() {
        let mut evidence = two_phases();
        evidence.stall(&Stall { role: "robots".into(), at_ms: 3000, length_us: 50_000, ..Stall::default() });
        let counts = |phase: &PhaseEvidence| phase.stalls.get(&Side::Robots).map_or(0, |sum| sum.count);
        assert_eq!(evidence.phases.iter().map(counts).collect::<Vec<_>>(), [0, 1, 0]);
    }

    #[test]
    fn the_use_of_processors_is_added_up_one_by_one() {
        let mut evidence = two_phases();
        for cpu in [0, 1] {
            evidence.take(&Measured::Processors(vec![ProcessorInterval {
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
