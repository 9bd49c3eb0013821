//! State of the live view: all reports of the lab so far, summed up for display.
//!
//! Pure: events and the time go in, figures come out. Drawing is in `draw` and `line`.

use std::collections::{BTreeMap, VecDeque};

use assay_measurement::adapted::{Adapted, Decided};
use assay_measurement::censored::Censored;
use assay_measurement::counts::{OriginCounts, RobotCounts};
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval, RobotLevels};
use assay_measurement::measured::Measured;
use assay_measurement::ratios::{HitRatio, Outcomes};
use assay_protocol::message::PhaseEvent;
use assay_record::event::{RunEvent, Stage};
use assay_record::run::{PhaseInfo, PlannedWorkingSet};

use super::own::OwnHealth;
use crate::requirement_listener::RequirementStatuses;

/// Seconds kept for the curves.
const SECONDS_KEPT: usize = 400;
/// Seconds that response times are taken from: long enough for a 99th percentile, short enough to be "now".
const RECENT_SECONDS: usize = 5;
const MESSAGES_KEPT: usize = 8;

/// Description of a run, known before it starts.
#[derive(Debug, Clone, Default)]
pub struct Header {
    /// Name of the workload.
    pub workload: String,
    /// Name (and, once known, version) of the target.
    pub target: String,
    pub robots: u32,
    pub origins: u32,
    pub seed: u64,
    /// The schedule is squeezed into less time.
    pub rehearsal: bool,
    /// The working set that is planned; none: it depends on the target.
    pub working_set: Option<PlannedWorkingSet>,
}

/// One phase, planned and as it goes.
#[derive(Debug, Clone, Default)]
pub struct PhaseState {
    /// The plan.
    pub info: PhaseInfo,
    /// Start, in milliseconds since the start of the run.
    pub began_ms: Option<u64>,
    /// End, likewise.
    pub ended_ms: Option<u64>,
    /// Told progress of a best-effort phase, 0 to 1.
    pub progress: Option<f64>,
    /// Robots' counts of this phase.
    pub counts: RobotCounts,
    /// Origins' counts of this phase.
    pub origins: OriginCounts,
    /// Response times of hits; none: there was none.
    pub hit: Option<Box<Histogram>>,
    /// Response times of misses.
    pub miss: Option<Box<Histogram>>,
    /// Of all other responses.
    pub other: Option<Box<Histogram>>,
    /// Waits of requests that timed out or were never sent.
    pub waits: Option<Box<Histogram>>,
}

/// Figures of a second that is over.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SecondFigures {
    /// Response times of hits: median and 99th percentile, in microseconds.
    pub hit_us: (Option<u64>, Option<u64>),
    /// Mean and 99th percentile of misses, in microseconds.
    pub miss_us: (Option<u64>, Option<u64>),
    /// Measured document hit ratio.
    pub dhr: Option<f64>,
}

/// Usage of a role in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RoleSample {
    start_ms: u64,
    /// Processors: 1 is one of them.
    pub processors: f64,
    /// Resident memory at its end.
    pub memory_bytes: u64,
}

/// One second of the run, all phases.
#[derive(Debug, Clone, Default)]
pub struct LiveSecond {
    /// Start, in milliseconds since the start of the run.
    pub start_ms: u64,
    length_ms: u64,
    pub counts: RobotCounts,
    origins: OriginCounts,
    hit: Vec<SparseHistogram>,
    miss: Vec<SparseHistogram>,
    other: Vec<SparseHistogram>,
    waits: Vec<SparseHistogram>,
    lateness: Vec<SparseHistogram>,
    /// None: it is not over.
    pub settled: Option<SecondFigures>,
}

impl LiveSecond {
    /// Events per second of a count of this second.
    fn rate(&self, count: u64) -> f64 {
        count as f64 * 1000.0 / self.length_ms.max(1) as f64
    }

    /// Figures of the second.
    fn settle(&self) -> SecondFigures {
        let merged = |times: &[SparseHistogram]| {
            let mut all = Histogram::new();
            times.iter().for_each(|times| all.merge_sparse(times));
            (all.quantile_us(0.5), all.quantile_us(0.99))
        };
        SecondFigures {
            hit_us: merged(&self.hit),
            miss_us: merged(&self.miss),
            dhr: HitRatio::of_documents(&self.counts, &self.origins).measured,
        }
    }

    /// Requests that came due, per second.
    pub fn offered(&self) -> f64 {
        self.rate(self.counts.due)
    }

    /// Requests completed without error, per second.
    pub fn measured(&self) -> f64 {
        self.rate(self.counts.completed)
    }
}

/// The last few seconds, merged.
#[derive(Debug, Clone, Default)]
pub struct RecentTimes {
    /// Response times of hits.
    pub hit: Histogram,
    /// Response times of misses.
    pub miss: Histogram,
    /// Of all other responses.
    pub other: Histogram,
    /// Waits of requests that timed out or were never sent.
    pub waits: Histogram,
    /// Delay that Assay itself added.
    pub lateness: Histogram,
    pub dhr: HitRatio,
}

/// Everything the live view knows.
#[derive(Debug, Clone, Default)]
pub struct LiveState {
    pub header: Header,
    /// Current activity as text, while no phase runs.
    pub stage: String,
    pub run_dir: String,
    pub started: bool,
    pub draining: bool,
    pub phases: Vec<PhaseState>,
    /// Milliseconds since the start of the run.
    pub now_ms: u64,
    /// Last seconds, oldest first.
    pub seconds: VecDeque<LiveSecond>,
    /// Levels at the end of the last interval.
    pub levels: RobotLevels,
    /// Usage of each role, oldest first.
    used: BTreeMap<String, VecDeque<RoleSample>>,
    /// Messages for the user: faults and first errors, oldest first.
    pub messages: VecDeque<String>,
    pub requirements: RequirementStatuses,
    pub own: OwnHealth,
}

impl LiveState {
    /// A state before anything has happened.
    pub fn new(header: Header) -> Self {
        Self { header, stage: "getting ready".into(), ..Self::default() }
    }

    /// Takes in one event.
    pub fn apply(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Stage(stage) => self.apply_stage(stage),
            RunEvent::Started { phases, target, .. } => {
                self.header.target = match target.name.as_str() {
                    "builtin" => "the built-in proxy".into(),
                    name => format!("{name} {}", target.version).trim_end().to_owned(),
                };
                self.phases = phases
                    .iter()
                    .map(|info| PhaseState { info: info.clone(), ..PhaseState::default() })
                    .collect();
                self.started = true;
            }
            RunEvent::Measured(measured) => self.apply_measured(measured),
            RunEvent::Phase(event) => self.apply_phase(event),
            RunEvent::Doubt(doubt) => {
                let words = self.own.doubt(doubt);
                self.message(words);
            }
            RunEvent::Finished => {}
        }
    }

    fn apply_measured(&mut self, measured: &Measured) {
        match measured {
            Measured::Robots(interval) => self.apply_robots(interval),
            Measured::Origins(interval) => self.apply_origins(interval),
            Measured::Host(interval) => self.apply_host(interval),
            Measured::Example(example) => {
                self.message(format!("{}: {} ({})", example.kind, example.detail, example.request));
            }
            Measured::Adapted(adapted) => self.message(adapted_words(adapted)),
            Measured::Thread(interval) => self.own.thread(interval),
            Measured::Stall(stall) => self.own.stall(stall),
            // The others are for the report.
            _ => {}
        }
    }

    fn apply_phase(&mut self, event: &PhaseEvent) {
        match *event {
            PhaseEvent::Began { phase, at_ms } => self.with_phase(phase, |p| p.began_ms = Some(at_ms)),
            PhaseEvent::Ended { phase, at_ms, .. } => self.with_phase(phase, |p| p.ended_ms = Some(at_ms)),
            PhaseEvent::Progress { phase, done } => self.with_phase(phase, |p| p.progress = Some(done)),
        }
        let is_under_way = |phase: &PhaseState| phase.began_ms.is_some() && phase.ended_ms.is_none();
        self.own.expects_reports = self.phases.iter().any(is_under_way);
    }

    fn apply_stage(&mut self, stage: &Stage) {
        self.stage = stage_words(stage);
        match stage {
            Stage::Planned { run_dir } => self.run_dir = run_dir.display().to_string(),
            Stage::Draining => self.draining = true,
            _ => {}
        }
    }

    fn apply_host(&mut self, interval: &HostInterval) {
        let processors = interval.cpu_us as f64 / (interval.length_ms.max(1) as f64 * 1000.0);
        let used = RoleSample { start_ms: interval.start_ms, processors, memory_bytes: interval.rss_bytes };
        let kept = self.used.entry(interval.role.clone()).or_default();
        if kept.len() == SECONDS_KEPT {
            kept.pop_front();
        }
        kept.push_back(used);
    }

    fn apply_robots(&mut self, interval: &RobotInterval) {
        self.with_phase(interval.phase, |phase| {
            phase.counts.merge(&interval.counts);
            let add = |sum: &mut Option<Box<Histogram>>, times: &SparseHistogram| {
                if !times.buckets.is_empty() {
                    sum.get_or_insert_default().merge_sparse(times);
                }
            };
            add(&mut phase.hit, &interval.times.hit.response);
            add(&mut phase.miss, &interval.times.miss.response);
            add(&mut phase.other, &interval.times.other.response);
            add(&mut phase.waits, &interval.times.timed_out.response);
            add(&mut phase.waits, &interval.times.unsent_wait);
        });
        // Intervals that lie in the same second (two phases, or several workers) are one second here.
        let second_ms = interval.start_ms / 1000 * 1000;
        if self.seconds.back().is_none_or(|last| last.start_ms < second_ms) {
            if self.seconds.len() == SECONDS_KEPT {
                self.seconds.pop_front();
            }
            self.seconds.push_back(LiveSecond { start_ms: second_ms, ..LiveSecond::default() });
            self.settle();
        }
        let Some(second) = self.seconds.iter_mut().rev().find(|s| s.start_ms <= second_ms) else { return };
        let end_ms = interval.start_ms + interval.length_ms;
        second.length_ms = second.length_ms.max(end_ms.saturating_sub(second.start_ms).min(1000));
        second.counts.merge(&interval.counts);
        second.hit.push(interval.times.hit.response.clone());
        second.miss.push(interval.times.miss.response.clone());
        second.other.push(interval.times.other.response.clone());
        second.waits.extend([interval.times.timed_out.response.clone(), interval.times.unsent_wait.clone()]);
        second.lateness.push(interval.times.lateness.clone());
        self.levels = interval.levels;
    }

    fn apply_origins(&mut self, interval: &OriginInterval) {
        self.with_phase(interval.phase, |phase| phase.origins.merge(&interval.counts));
        if let Some(second) = self.seconds.iter_mut().rev().find(|s| s.start_ms <= interval.start_ms) {
            second.origins.merge(&interval.counts);
        }
    }

    /// Says what seconds came to that are over by now. Late responses may change the last few; older ones let go of what
    /// it was taken from.
    fn settle(&mut self) {
        let now = self.seconds.len();
        for (index, second) in self.seconds.iter_mut().enumerate().rev().skip(1).take(RECENT_SECONDS + 1) {
            second.settled = Some(second.settle());
            if index + RECENT_SECONDS + 1 < now {
                (second.hit, second.miss, second.lateness) = Default::default();
                (second.other, second.waits) = Default::default();
            }
        }
    }

    fn with_phase(&mut self, index: u16, change: impl FnOnce(&mut PhaseState)) {
        if let Some(phase) = self.phases.get_mut(usize::from(index)) {
            change(phase);
        }
    }

    fn message(&mut self, text: String) {
        if self.messages.len() == MESSAGES_KEPT {
            self.messages.pop_front();
        }
        self.messages.push_back(text);
    }

    /// The phase that runs, else the last that ran.
    pub fn current(&self) -> Option<&PhaseState> {
        let began = |phase: &&PhaseState| phase.began_ms.is_some();
        self.phases.iter().find(|phase| began(phase) && phase.ended_ms.is_none()).or(self
            .phases
            .iter()
            .rev()
            .find(began))
    }

    /// Completed share of a phase, 0 to 1.
    pub fn done(&self, phase: &PhaseState) -> f64 {
        self.share_done(phase).unwrap_or(0.0)
    }

    /// Completed share of a phase, 0 to 1; none where its length is not known.
    pub fn share_done(&self, phase: &PhaseState) -> Option<f64> {
        if phase.ended_ms.is_some() {
            return Some(1.0);
        }
        let planned = phase.info.planned_start_ms.zip(phase.info.planned_end_ms);
        let length_ms =
            planned.map(|(start_ms, end_ms)| end_ms.saturating_sub(start_ms)).filter(|ms| *ms > 0);
        match (phase.began_ms, phase.progress, length_ms) {
            (None, ..) => Some(0.0),
            (_, Some(done), _) => Some(done.clamp(0.0, 1.0)),
            (Some(began_ms), None, Some(length_ms)) => {
                Some((self.now_ms.saturating_sub(began_ms) as f64 / length_ms as f64).clamp(0.0, 1.0))
            }
            (Some(_), None, None) => None,
        }
    }

    /// A phase by its name and how much of it is done, where its length is known: `top 40 %`.
    pub fn name_and_done(&self, phase: &PhaseState) -> String {
        match self.share_done(phase) {
            Some(_) => format!("{} {:.0} %", phase.info.name, self.done(phase) * 100.0),
            None => phase.info.name.clone(),
        }
    }

    /// Time since the start of a phase, in seconds; none: it has not begun.
    pub fn phase_seconds(&self, phase: &PhaseState) -> Option<f64> {
        let end_ms = phase.ended_ms.unwrap_or(self.now_ms);
        Some(end_ms.saturating_sub(phase.began_ms?) as f64 / 1000.0)
    }

    /// Remaining time of a phase, by its plan or by its progress so far; none: not known.
    pub fn phase_left_ms(&self, phase: &PhaseState) -> Option<u64> {
        let planned = phase.info.planned_end_ms.zip(phase.info.planned_start_ms);
        let length_ms = planned.map(|(end_ms, start_ms)| end_ms.saturating_sub(start_ms));
        match (phase.began_ms, phase.progress) {
            (None, _) => length_ms,
            (Some(began_ms), Some(done)) if done > 0.01 => {
                let gone_ms = self.now_ms.saturating_sub(began_ms) as f64;
                Some((gone_ms / done * (1.0 - done).max(0.0)) as u64)
            }
            (Some(began_ms), _) => Some((began_ms + length_ms?).saturating_sub(self.now_ms)),
        }
    }

    /// Planned length of the whole schedule; none when it depends on best-effort robots.
    pub fn planned_ms(&self) -> Option<u64> {
        self.phases.last()?.info.planned_end_ms
    }

    /// The last second that is complete enough to be looked at.
    pub fn last_second(&self) -> Option<&LiveSecond> {
        self.seconds.iter().rev().find(|second| second.length_ms >= 500).or(self.seconds.back())
    }

    /// The last few seconds.
    pub fn recent(&self) -> RecentTimes {
        let mut recent = RecentTimes::default();
        let (mut counts, mut origins) = (RobotCounts::default(), OriginCounts::default());
        for second in self.seconds.iter().rev().take(RECENT_SECONDS) {
            counts.merge(&second.counts);
            origins.merge(&second.origins);
            for (sum, times) in [
                (&mut recent.hit, &second.hit),
                (&mut recent.miss, &second.miss),
                (&mut recent.other, &second.other),
                (&mut recent.waits, &second.waits),
                (&mut recent.lateness, &second.lateness),
            ] {
                times.iter().for_each(|times| sum.merge_sparse(times));
            }
        }
        recent.dhr = HitRatio::of_documents(&counts, &origins);
        recent
    }

    /// Errors of the whole run, most frequent first.
    pub fn errors(&self) -> Vec<(&'static str, u64)> {
        let mut sums: BTreeMap<_, u64> = BTreeMap::new();
        for (kind, count) in self.phases.iter().flat_map(|phase| &phase.counts.errors) {
            *sums.entry(kind.name()).or_default() += count;
        }
        let mut errors: Vec<_> = sums.into_iter().filter(|(_, count)| *count > 0).collect();
        errors.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        errors
    }

    /// Requests that were due but not sent by the end of their phase, whole run.
    pub fn unsent(&self) -> u64 {
        self.phases.iter().map(|phase| phase.counts.unsent).sum()
    }

    /// Processors that roles used in their last interval, together; none: nobody watched.
    pub fn processors(&self, roles: &[&str]) -> Option<f64> {
        self.sum(roles, |used| used.processors)
    }

    /// Memory of some roles, in bytes.
    pub fn memory(&self, roles: &[&str]) -> Option<u64> {
        self.sum(roles, |used| used.memory_bytes as f64).map(|bytes| bytes as u64)
    }

    fn sum(&self, roles: &[&str], of: impl Fn(&RoleSample) -> f64) -> Option<f64> {
        let last = |role: &&str| self.used.get(*role)?.back().map(&of);
        let known: Vec<f64> = roles.iter().filter_map(last).collect();
        (!known.is_empty()).then(|| known.iter().sum())
    }

    /// Usage of some roles together in the seconds that are kept, oldest first.
    pub fn history(&self, roles: &[&str], of: impl Fn(&RoleSample) -> u64) -> Vec<u64> {
        let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
        for used in roles.iter().filter_map(|role| self.used.get(*role)).flatten() {
            *sums.entry(used.start_ms / 1000).or_default() += of(used);
        }
        sums.into_values().collect()
    }
}

impl RecentTimes {
    /// Response times of all requests.
    pub fn all(&self) -> Censored {
        together([&self.hit, &self.miss, &self.other], Some(&self.waits))
    }
}

/// Response times of all requests: those with a response, and how long the others had waited.
fn together<'a>(responded: impl IntoIterator<Item = &'a Histogram>, waits: Option<&Histogram>) -> Censored {
    let mut all = Histogram::new();
    responded.into_iter().for_each(|times| all.merge(times));
    Censored::new(all, waits.as_slice())
}

impl PhaseState {
    /// Response times of all requests so far.
    pub fn all(&self) -> Censored {
        let responded = [&self.hit, &self.miss, &self.other].into_iter().filter_map(Option::as_deref);
        together(responded, self.waits.as_deref())
    }

    /// Document hit ratios so far.
    pub fn dhr(&self) -> HitRatio {
        HitRatio::of_documents(&self.counts, &self.origins)
    }

    /// Byte hit ratios so far.
    pub fn bhr(&self) -> HitRatio {
        HitRatio::of_bytes(&self.counts, &self.origins)
    }

    pub fn outcomes(&self) -> Outcomes {
        Outcomes::of(&self.counts, &self.origins)
    }
}

/// Text of a stage.
pub fn stage_words(stage: &Stage) -> String {
    match stage {
        Stage::Planned { .. } => "planned".into(),
        Stage::TestingLinks => "measuring links".into(),
        Stage::StartingOrigins => "starting origins".into(),
        Stage::StartingTarget { name } => format!("starting {name}"),
        Stage::TargetReady { address } => format!("the proxy is ready at {address}"),
        Stage::StartingRobots => "starting robots".into(),
        Stage::Draining => "stopping: what is under way may finish".into(),
        Stage::Collecting => "collecting".into(),
    }
}

/// A decision about load that adapts, in words.
fn adapted_words(adapted: &Adapted) -> String {
    let seen = adapted.response_us.map_or_else(
        || "no responses".to_owned(),
        |us| format!("mean response time {:.1} ms", us as f64 / 1_000.0),
    );
    match adapted.what {
        Decided::Load => format!("load factor {:.3} ({seen})", adapted.value),
        Decided::Population => format!("population factor {:.3} ({seen})", adapted.value),
        Decided::End => format!("the load was adapted up to here ({seen})"),
        Decided::Print => format!("the workload says: {}", adapted.text),
    }
}
