//! State of a run that goes on: all of its events, added up. Nothing is forgotten, and nothing is kept per second.
//!
//! Pure: events go in, [`crate::serve::metrics`] reads metrics out.

use std::collections::BTreeMap;
use std::path::PathBuf;

use assay_measurement::adapted::Decided;
use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::doubt::Reason;
use assay_measurement::histogram::Histogram;
use assay_measurement::interval::{HostInterval, RobotInterval, RobotLevels, Times};
use assay_measurement::measured::Measured;
use assay_measurement::robot_times::RobotTimes;
use assay_protocol::message::{PhaseEvent, ProxyCounters};
use assay_record::event::{RunEvent, Stage};
use assay_record::run::{PhaseInfo, TargetInfo};
use strum::{IntoStaticStr, VariantArray};

use crate::serve::times::TimeBuckets;

/// Stage of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum RunStage {
    /// Before its first request.
    #[default]
    Preparing,
    /// The schedule goes on.
    Running,
    /// Stopping was requested: what is under way may finish.
    Draining,
    /// Everything is being stopped and collected.
    Collecting,
    /// Everything is stopped and written.
    Finished,
}

impl RunStage {
    /// Value of the label.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Identity of a run, known before it begins.
#[derive(Debug, Clone, Default)]
pub struct RunIdentity {
    /// Name of the workload.
    pub workload: String,
    /// Name of what is under test.
    pub target: String,
    pub seed: u64,
    pub version: String,
}

/// Times of a class of requests.
#[derive(Debug, Default)]
pub(crate) struct ClassTimes {
    pub response: TimeBuckets,
    pub service: TimeBuckets,
    pub ttfb: TimeBuckets,
}

/// A phase and its counts so far.
#[derive(Debug, Default)]
pub(crate) struct LivePhase {
    pub info: PhaseInfo,
    pub began_ms: Option<u64>,
    pub ended: bool,
    pub progress: Option<f64>,
    pub load: Option<f64>,
    pub robots: RobotCounts,
    pub origins: OriginCounts,
}

/// Usage of a role's processes.
#[derive(Debug, Default)]
pub(crate) struct RoleUsage {
    pub cpu_us: u64,
    pub run_delay_us: u64,
    pub steal_us: u64,
    /// As they are now.
    pub last: HostInterval,
}

/// Counters of the network stack.
#[derive(Debug, Default)]
pub(crate) struct NetworkCounters {
    pub retransmitted: u64,
    pub listen_overflows: u64,
    pub time_wait: u64,
}

/// Sums of the events so far.
#[derive(Debug, Default)]
pub(crate) struct LiveState {
    pub about: RunIdentity,
    pub stage: RunStage,
    pub run_dir: Option<PathBuf>,
    pub started_unix_ms: Option<u64>,
    pub target: TargetInfo,
    pub phases: Vec<LivePhase>,
    pub robots: RobotCounts,
    pub origins: OriginCounts,
    pub levels: RobotLevels,
    pub origin_connections: u64,
    pub times: RobotTimes<ClassTimes, TimeBuckets>,
    pub origin_service: TimeBuckets,
    pub timer_lag: BTreeMap<String, TimeBuckets>,
    pub used: BTreeMap<String, RoleUsage>,
    /// Number of stalls, and their length together in microseconds.
    pub stalls: BTreeMap<String, (u64, u64)>,
    pub network: BTreeMap<String, NetworkCounters>,
    /// Number of doubts, by reason and whether they are serious.
    pub doubts: BTreeMap<(Reason, bool), u64>,
    /// Counters of each cache of the target, as last read.
    proxy: BTreeMap<String, ProxyCounters>,
    scale: Histogram,
}

impl LiveState {
    pub fn new(about: RunIdentity) -> Self {
        let target = TargetInfo { name: about.target.clone(), ..TargetInfo::default() };
        Self { about, target, ..Self::default() }
    }

    pub fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Stage(Stage::Planned { run_dir }) => self.run_dir = Some(run_dir.clone()),
            RunEvent::Stage(Stage::Draining) => self.stage = RunStage::Draining,
            RunEvent::Stage(Stage::Collecting) => self.stage = RunStage::Collecting,
            RunEvent::Stage(_) => {}
            RunEvent::Started { phases, target, started_unix_ms } => {
                self.stage = RunStage::Running;
                self.target = target.clone();
                self.started_unix_ms = Some(*started_unix_ms);
                let planned = |info: &PhaseInfo| LivePhase { info: info.clone(), ..LivePhase::default() };
                self.phases = phases.iter().map(planned).collect();
            }
            RunEvent::Measured(measured) => self.apply_measured(measured),
            RunEvent::Phase(event) => self.apply_phase(event),
            RunEvent::Doubt(doubt) => {
                *self.doubts.entry((doubt.reason, doubt.serious)).or_default() += 1;
            }
            RunEvent::Finished => self.stage = RunStage::Finished,
        }
    }

    fn apply_measured(&mut self, measured: &Measured) {
        match measured {
            Measured::Robots(interval) => self.apply_robots(interval),
            Measured::Origins(interval) => {
                self.origins.merge(&interval.counts);
                self.with_phase(interval.phase, |phase| phase.origins.merge(&interval.counts));
                self.origin_service.add(&interval.service, &self.scale);
                self.origin_connections = interval.connections;
            }
            Measured::Host(interval) => {
                let used = self.used.entry(interval.role.clone()).or_default();
                used.cpu_us += interval.cpu_us;
                used.run_delay_us += interval.run_delay_us;
                used.steal_us += interval.steal_us;
                used.last.clone_from(interval);
            }
            Measured::Thread(interval) => {
                let lag = self.timer_lag.entry(interval.role.clone()).or_default();
                lag.add(&interval.timer_lag, &self.scale);
            }
            Measured::Stall(stall) => {
                let (stalls, length_us) = self.stalls.entry(stall.role.clone()).or_default();
                *stalls += 1;
                *length_us += stall.length_us;
            }
            Measured::Network(interval) => {
                let network = self.network.entry(interval.role.clone()).or_default();
                network.retransmitted += interval.retransmitted;
                network.listen_overflows += interval.listen_overflows;
                network.time_wait = interval.time_wait;
            }
            Measured::Proxy(sample) => {
                self.proxy.insert(sample.cache.clone(), ProxyCounters::from(&**sample));
            }
            Measured::Adapted(adapted) if adapted.what == Decided::Load => {
                self.with_phase(adapted.phase, |phase| phase.load = Some(adapted.value));
            }
            // No metric shows the others.
            _ => {}
        }
    }

    fn apply_phase(&mut self, event: &PhaseEvent) {
        match *event {
            PhaseEvent::Began { phase, at_ms } => self.with_phase(phase, |p| p.began_ms = Some(at_ms)),
            PhaseEvent::Ended { phase, .. } => self.with_phase(phase, |p| p.ended = true),
            PhaseEvent::Progress { phase, done } => self.with_phase(phase, |p| p.progress = Some(done)),
        }
    }

    /// Counters of all caches of the target, added up; none: they were never read.
    pub fn proxy(&self) -> Option<ProxyCounters> {
        self.proxy.values().copied().reduce(|mut sum, one| {
            sum.merge(&one);
            sum
        })
    }

    fn apply_robots(&mut self, interval: &RobotInterval) {
        self.robots.merge(&interval.counts);
        self.with_phase(interval.phase, |phase| phase.robots.merge(&interval.counts));
        let scale = &self.scale;
        let add_class = |class: &mut ClassTimes, times: &Times| {
            class.response.add(&times.response, scale);
            class.service.add(&times.service, scale);
            class.ttfb.add(&times.ttfb, scale);
        };
        self.times.add(&interval.times, add_class, |value, times| value.add(times, scale));
        self.levels = interval.levels;
    }

    fn with_phase(&mut self, index: u16, change: impl FnOnce(&mut LivePhase)) {
        if let Some(phase) = self.phases.get_mut(usize::from(index)) {
            change(phase);
        }
    }

    /// The phase that runs, else the last that ran, with its index.
    pub fn current(&self) -> Option<(usize, &LivePhase)> {
        let began = || self.phases.iter().enumerate().filter(|(_, phase)| phase.began_ms.is_some());
        began().find(|(_, phase)| !phase.ended).or(began().next_back())
    }

    /// Milliseconds since the start of the schedule; none before.
    pub fn elapsed_ms(&self, now_unix_ms: u64) -> Option<u64> {
        now_unix_ms.checked_sub(self.started_unix_ms?)
    }
}

impl LivePhase {
    /// Completed share, 0 to 1.
    pub fn done(&self, elapsed_ms: u64) -> f64 {
        let planned = self.info.planned_start_ms.zip(self.info.planned_end_ms);
        match (self.ended, self.progress, planned, self.began_ms) {
            (true, ..) => 1.0,
            (_, Some(done), ..) => done.clamp(0.0, 1.0),
            (_, _, Some((start_ms, end_ms)), Some(began_ms)) if end_ms > start_ms => {
                (elapsed_ms.saturating_sub(began_ms) as f64 / (end_ms - start_ms) as f64).clamp(0.0, 1.0)
            }
            _ => 0.0,
        }
    }

    /// The load factor: what was decided last, else what the schedule says.
    pub fn load(&self, elapsed_ms: u64) -> f64 {
        let (from, to) = self.info.load;
        self.load.unwrap_or(from + (to - from) * self.done(elapsed_ms))
    }
}
