//! Made-up runs for the tests of each reason.

use assay_measurement::counts::RobotCounts;
use assay_measurement::doubt::Doubt;
use assay_measurement::health::{Baseline, NetworkInterval, ProcessorInterval, Stall, ThreadInterval};
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval};
use assay_measurement::measured::Measured;
use assay_record::run::{PhaseInfo, PlacementInfo, RunInfo};

use super::{Evidence, judge};

/// How long each phase is, in milliseconds.
pub const PHASE_MS: u64 = 10_000;

/// A run with phases of ten seconds each.
pub struct Run {
    pub info: RunInfo,
    evidence: Evidence,
}

/// A thread on processor 0 that used so much in each second, in a thousand slices, in the first phase.
pub fn used(cpu_us: u64, run_delay_us: u64) -> ThreadInterval {
    let scale = PHASE_MS / 1000;
    ThreadInterval {
        length_ms: PHASE_MS,
        cpu: Some(0),
        cpu_us: cpu_us * scale,
        run_delay_us: run_delay_us * scale,
        slices: 1_000 * scale,
        ..ThreadInterval::default()
    }
}

/// The same, with a timer that was served 5 ms late so often, of 1,000 times.
pub fn late_timer(interval: ThreadInterval, times: usize) -> ThreadInterval {
    let lags: Vec<u64> = (0..1000).map(|i| if i < times { 5_000 } else { 30 }).collect();
    ThreadInterval { timer_lag: histogram(&lags), ..interval }
}

fn histogram(values_us: &[u64]) -> SparseHistogram {
    let mut histogram = Histogram::new();
    values_us.iter().for_each(|us| histogram.record(*us));
    histogram.to_sparse()
}

impl Run {
    /// Phases of these names.
    pub fn new(names: &[&str]) -> Self {
        let phases = names.iter().zip(0..).map(|(name, index)| PhaseInfo {
            name: (*name).into(),
            start_ms: Some(index * PHASE_MS),
            end_ms: Some((index + 1) * PHASE_MS),
            ..PhaseInfo::default()
        });
        let info = RunInfo { phases: phases.collect(), ..RunInfo::default() };
        Self { evidence: Evidence::new(&info.phases), info }
    }

    pub fn judge(&self) -> Vec<Doubt> {
        judge(&self.info, &self.evidence)
    }

    fn robots(&mut self, interval: RobotInterval) {
        self.evidence.add(&Measured::Robots(interval.into()));
    }

    /// Robots counted this in a phase.
    pub fn counts(&mut self, phase: u16, change: impl FnOnce(&mut RobotCounts)) {
        let mut interval = RobotInterval { phase, ..RobotInterval::default() };
        change(&mut interval.counts);
        self.robots(interval);
    }

    /// Response times and lateness in a phase.
    pub fn times(&mut self, phase: u16, response_us: &[u64], lateness_us: &[u64]) {
        let mut interval = RobotInterval { phase, ..RobotInterval::default() };
        interval.times.lateness = histogram(lateness_us);
        interval.times.miss.response = histogram(response_us);
        self.robots(interval);
    }

    /// How long those waited that were never sent.
    pub fn unsent_wait(&mut self, phase: u16, waited_us: &[u64]) {
        let mut interval = RobotInterval { phase, ..RobotInterval::default() };
        interval.times.unsent_wait = histogram(waited_us);
        self.robots(interval);
    }

    /// How late think times ended.
    pub fn origin_lateness(&mut self, phase: u16, lateness_us: &[u64]) {
        let interval =
            OriginInterval { phase, lateness: histogram(lateness_us), ..OriginInterval::default() };
        self.evidence.add(&Measured::Origins(interval.into()));
    }

    /// What a thread did.
    pub fn thread(&mut self, role: &str, interval: ThreadInterval) {
        let interval = ThreadInterval { role: role.into(), ..interval };
        self.evidence.add(&Measured::Thread(interval.into()));
    }

    /// A thread stood still.
    pub fn stall(&mut self, stall: Stall) {
        self.evidence.add(&Measured::Stall(stall.into()));
    }

    /// How late a bare timer was, all the time.
    pub fn baseline(&mut self, role: &str, thread: u32, lag_us: u64) {
        let lag = histogram(&[lag_us; 200]);
        let baseline = Baseline { role: role.into(), thread, lag, ..Baseline::default() };
        self.evidence.add(&Measured::Baseline(baseline.into()));
    }

    /// How busy a processor was in each second of the first phase.
    pub fn processor(&mut self, cpu: u32, busy_us: u64) {
        let busy_us = busy_us * PHASE_MS / 1000;
        let interval =
            ProcessorInterval { length_ms: PHASE_MS, cpu, busy_us, ..ProcessorInterval::default() };
        self.evidence.add(&Measured::Processors(vec![interval]));
    }

    /// What the target used in each second of the first phase, and the processors it is placed on.
    pub fn proxy(&mut self, cpu_us: u64, cpus: &[u32]) {
        let cpu_us = cpu_us * PHASE_MS / 1000;
        let interval =
            HostInterval { role: "proxy".into(), length_ms: PHASE_MS, cpu_us, ..HostInterval::default() };
        self.evidence.add(&Measured::Host(interval.into()));
        let placed = PlacementInfo { role: "proxy".into(), cpus: cpus.to_vec(), ..PlacementInfo::default() };
        self.info.placement.push(placed);
    }

    /// What the hypervisor took from two processors in each second of the first phase.
    pub fn machine(&mut self, steal_us: u64) {
        self.processor(0, 0);
        self.processor(1, 0);
        let steal_us = steal_us * PHASE_MS / 1000;
        let interval =
            HostInterval { role: "host".into(), length_ms: PHASE_MS, steal_us, ..HostInterval::default() };
        self.evidence.add(&Measured::Host(interval.into()));
    }

    /// What the network stack counted in the first phase.
    pub fn network(&mut self, interval: NetworkInterval) {
        let interval = NetworkInterval { length_ms: PHASE_MS, ..interval };
        self.evidence.add(&Measured::Network(interval.into()));
    }
}
