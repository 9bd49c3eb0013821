//! State of requirements while the run goes on, from the reports so far. *Failed* is stated only where nothing that can still
//! come would change it.

use std::collections::BTreeMap;

use assay_measurement::interval::{OriginInterval, RobotInterval};
use assay_record::run::PhaseInfo;

use super::metric::{RatioKind, RequiredMetric, Statistic, TimeKind};
use super::{Comparator, Decision, Requirement};
use crate::tally::Tally;

/// State of a requirement during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequirementState {
    /// No phase of it has begun, or too little was measured to say anything.
    Early,
    /// Holds so far.
    Holding,
    /// Undecided so far, because of what Assay and the lab did.
    Undecided,
    /// Fails so far, and may hold in the end.
    Failing,
    /// Held, and its phases are over.
    Held,
    /// Failed, whatever is still to come.
    Failed,
}

impl RequirementState {
    pub fn text(self) -> &'static str {
        match self {
            RequirementState::Early => "too early to say",
            RequirementState::Holding => "holds so far",
            RequirementState::Undecided => "undecided so far",
            RequirementState::Failing => "failing so far",
            RequirementState::Held => "held",
            RequirementState::Failed => "failed",
        }
    }
}

/// A requirement on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequirementStatus {
    /// As it was written.
    pub text: String,
    pub state: RequirementState,
    /// Measurement so far, as text.
    pub seen: String,
}

/// Watches requirements. Reports of a run go in, in any order.
pub struct RequirementTracker {
    requirements: Vec<(Requirement, Vec<usize>)>,
    /// Sums of the reports by set of phases, as requirements name them.
    sums: BTreeMap<Vec<usize>, Tally>,
    phases: Vec<PhaseProgress>,
}

/// Progress of one phase.
#[derive(Default)]
struct PhaseProgress {
    /// Requests that are to be expected; none: that depends on what happens.
    expected: Option<f64>,
    began_ms: Option<u64>,
    ended_ms: Option<u64>,
    /// The end of the last interval.
    seen_ms: u64,
    due: u64,
    /// Requests of which it is known what became of them.
    settled: u64,
}

impl RequirementTracker {
    /// Watches `requirements` in a run through a schedule.
    pub fn new(requirements: &[Requirement], schedule: &[PhaseInfo]) -> Self {
        let requirements: Vec<_> =
            requirements.iter().map(|required| (required.clone(), required.phases(schedule))).collect();
        let sums = requirements.iter().map(|(_, phases)| (phases.clone(), Tally::default())).collect();
        let planned =
            |info: &PhaseInfo| PhaseProgress { expected: info.expected_requests, ..PhaseProgress::default() };
        // What belongs to no phase comes last.
        let phases = schedule.iter().map(planned).chain([PhaseProgress::default()]).collect();
        Self { requirements, sums, phases }
    }

    /// Takes in what robots report.
    pub fn add_robots(&mut self, interval: &RobotInterval) {
        let index = usize::from(interval.phase).min(self.phases.len() - 1);
        let phase = &mut self.phases[index];
        let counts = &interval.counts;
        phase.seen_ms = phase.seen_ms.max(interval.start_ms + interval.length_ms);
        phase.due += counts.due;
        let errors: u64 = counts.errors.values().sum();
        phase.settled += counts.completed + errors + counts.unsent + counts.not_reached;
        self.sums_of(index).for_each(|sum| sum.add_robots(interval));
    }

    /// Takes in what origins report.
    pub fn add_origins(&mut self, interval: &OriginInterval) {
        let index = usize::from(interval.phase).min(self.phases.len() - 1);
        self.sums_of(index).for_each(|sum| sum.add_origins(interval));
    }

    pub fn phase_began(&mut self, phase: u16, at_ms: u64) {
        if let Some(phase) = self.phases.get_mut(usize::from(phase)) {
            phase.began_ms = Some(at_ms);
        }
    }

    pub fn phase_ended(&mut self, phase: u16, at_ms: u64) {
        if let Some(phase) = self.phases.get_mut(usize::from(phase)) {
            phase.ended_ms = Some(at_ms);
        }
    }

    fn sums_of(&mut self, phase: usize) -> impl Iterator<Item = &mut Tally> {
        self.sums.iter_mut().filter(move |(phases, _)| phases.contains(&phase)).map(|(_, sum)| sum)
    }

    /// State of every requirement now.
    pub fn statuses(&self) -> Vec<RequirementStatus> {
        self.requirements.iter().map(|(required, phases)| self.status(required, phases)).collect()
    }

    fn status(&self, required: &Requirement, phases: &[usize]) -> RequirementStatus {
        let text = required.text().to_owned();
        let Some(sum) = self.sums.get(phases) else {
            return RequirementStatus { text, state: RequirementState::Early, seen: String::new() };
        };
        let seconds = self.seconds(phases);
        let value = required.metric.read(sum, seconds);
        let decision = value.map(|value| required.decide(&value));
        let fails = decision == Some(Decision::Failed);
        let over = self.have_ended(phases);
        let state = if (fails && over) || is_bound_to_fail(required, sum, self.bound(phases, sum)) {
            RequirementState::Failed
        } else if value.is_none() || !required.metric.has_enough(sum, seconds) {
            RequirementState::Early
        } else if decision == Some(Decision::Undecided) {
            RequirementState::Undecided
        } else if fails {
            RequirementState::Failing
        } else if over {
            RequirementState::Held
        } else {
            RequirementState::Holding
        };
        RequirementStatus { text, state, seen: required.value_text(value) }
    }

    /// Time that phases have lasted, together.
    fn seconds(&self, phases: &[usize]) -> Option<f64> {
        let gone = phases.iter().filter_map(|index| self.phases.get(*index)).filter_map(|phase| {
            let end_ms = phase.ended_ms.unwrap_or(phase.seen_ms);
            Some(end_ms.saturating_sub(phase.began_ms?) as f64 / 1000.0)
        });
        gone.fold(None, |sum, length| Some(sum.unwrap_or(0.0) + length))
    }

    /// True when the phases have ended and it is known what became of all their requests.
    fn have_ended(&self, phases: &[usize]) -> bool {
        let schedule = self.phases.len() - 1;
        let real = || phases.iter().filter(|index| **index < schedule).map(|index| &self.phases[*index]);
        real().next().is_some() && real().all(|phase| phase.ended_ms.is_some() && phase.settled >= phase.due)
    }

    /// No more requests than this will come due in phases; none: that is not known.
    fn bound(&self, phases: &[usize], sum: &Tally) -> Option<f64> {
        let schedule = self.phases.len() - 1;
        let expected = |index: &usize| {
            let phase = &self.phases[*index];
            // A phase that is over has what it has.
            if phase.ended_ms.is_some() { Some(phase.due as f64) } else { phase.expected }
        };
        let expected: f64 =
            phases.iter().filter(|index| **index < schedule).map(expected).sum::<Option<f64>>()?;
        // What is drawn at random is hardly ever so far from what is expected.
        let most = expected + 5.0 * libm::sqrt(expected) + 10.0;
        Some(most.max(sum.robots.due as f64))
    }
}

/// True when nothing that can still come makes a requirement hold. `bound` is the largest number of requests that there
/// can be in the end.
fn is_bound_to_fail(required: &Requirement, sum: &Tally, bound: Option<f64>) -> bool {
    let Requirement { metric, op, limit, .. } = required;
    let (op, limit) = (*op, *limit);
    match *metric {
        // It only grows.
        RequiredMetric::Count { of, share: false } => {
            let value = of.count(sum) as f64;
            op.is_upper() && !op.compare(value, limit) && value >= limit
        }
        RequiredMetric::Count { of, share: true } => {
            let count = of.count(sum) as f64;
            op.is_upper() && count > 0.0 && bound.is_some_and(|bound| count > limit * bound.max(count))
        }
        RequiredMetric::Time { kind: TimeKind::Span(span), class, stat } => {
            let stated = sum.times(span, class);
            // What Assay can have made of it is not the target's failure yet.
            let (times, histogram) = (stated.times(), stated.least());
            let over = || histogram.count_over_us(limit as u64) as f64;
            match (stat, op) {
                // What has no end stays without one.
                (Statistic::Max | Statistic::Mean, Comparator::Less | Comparator::AtMost)
                    if times.open() > 0 =>
                {
                    true
                }
                (Statistic::Max, Comparator::Less | Comparator::AtMost) => over() > 0.0,
                (Statistic::Min, Comparator::More | Comparator::AtLeast) => {
                    times.min().is_some_and(|least| !op.compare(least.low_us, limit))
                }
                (Statistic::Quantile(quantile), Comparator::Less | Comparator::AtMost) => {
                    bound.is_some_and(|bound| over() > (1.0 - quantile) * bound)
                }
                (Statistic::Mean, Comparator::Less | Comparator::AtMost) => {
                    let total = histogram.mean_us().unwrap_or(0.0) * histogram.count() as f64;
                    bound.is_some_and(|bound| total > limit * bound)
                }
                _ => false,
            }
        }
        // The best that can come: everything is a hit from now on.
        RequiredMetric::HitRatio { bytes: false, which: RatioKind::Measured, over: None } => {
            let (basic, ratio) =
                (sum.robots.basic as f64, metric.read(sum, None).map_or(0.0, |ratio| ratio.value));
            let best = |bound: f64| (ratio * basic + (bound - basic).max(0.0)) / bound.max(basic).max(1.0);
            matches!(op, Comparator::More | Comparator::AtLeast)
                && bound.is_some_and(|bound| best(bound) < limit)
        }
        _ => false,
    }
}
