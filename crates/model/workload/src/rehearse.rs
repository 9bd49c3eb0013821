//! A schedule made shorter without making it another. Every duration, volume and count is scaled alike; rates, sizes,
//! probabilities, think times, idle timeouts and sessions stay. Samples of thermostats and scripts are parts of their phase
//! and shrink with it, but not below a fifth of a second.

use std::time::Duration;

use crate::model::{Goal, Phase, ScriptStatement, WorkingSet, Workload};
use crate::timeline::{Freeze, ScheduleError, Timeline};

/// Counts are whole, so a scaled schedule misses its length a little; it is mended until it is this close.
const CLOSE_ENOUGH_NS: i128 = 1_000;
/// Farther than this from the wanted length is a failure.
const TOO_FAR_NS: i128 = 1_000_000;
const MENDINGS: u32 = 8;
const ENDLESS: &str = "its schedule has no end, so there is nothing to squeeze; give the run a --duration";
/// Nothing is learned from a shorter sample.
const SHORTEST_SAMPLE: Duration = Duration::from_millis(200);

/// Length of a rehearsal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rehearsal {
    /// As long as that.
    Length(Duration),
    /// Share of its own length, more than 0 and at most 1; also where that length depends on counts.
    Share(f64),
}

impl Rehearsal {
    /// The workload with a shorter schedule, and the scale that was used.
    pub fn apply(self, workload: &Workload) -> Result<(Workload, f64), ScheduleError> {
        let share = match self {
            Self::Length(total) => return rehearse(workload, total),
            Self::Share(share) => share,
        };
        let timeline = Timeline::new(workload)?;
        match timeline.total() {
            Some(total) => rehearse(workload, total.mul_f64(share).max(Duration::from_nanos(1))),
            None if timeline.is_endless() => {
                let wanted = format!("{} % of it", share * 100.0);
                Err(ScheduleError::Rehearsal { wanted, why: ENDLESS.into() })
            }
            None => Ok((scaled(workload, share), share)),
        }
    }
}

/// The workload with a schedule that takes `total`, and the scale that was used.
///
/// With best-effort robots the length of a phase that ends at a count cannot be known: then the phases that
/// have a duration add up to `total`, and counts are scaled by the same factor.
pub fn rehearse(workload: &Workload, total: Duration) -> Result<(Workload, f64), ScheduleError> {
    let timeline = Timeline::new(workload)?;
    let fail = |why: &str| ScheduleError::Rehearsal { wanted: format!("in {total:?}"), why: why.into() };
    if total.is_zero() {
        return Err(fail("a rehearsal takes some time"));
    }
    if timeline.is_endless() {
        return Err(fail(ENDLESS));
    }
    let Some(whole) = timeline.total() else {
        let durations = workload.schedule.phases.iter().filter_map(|phase| phase.goal.duration);
        let known: f64 = durations.map(|duration| duration.as_secs_f64()).sum();
        if known <= 0.0 {
            return Err(fail(
                "its phases end at counts, which best-effort robots reach when they do, so its length is not known; say what \
                 share of the counts is wanted instead, like --rehearse 5%",
            ));
        }
        let scale = total.as_secs_f64() / known;
        return Ok((scaled(workload, scale), scale));
    };
    let scale = total.as_secs_f64() / whole.as_secs_f64();
    let mut rehearsal = scaled(workload, scale);
    for _ in 0..MENDINGS {
        let timeline = Timeline::new(&rehearsal)?;
        let missing = missing_ns(&timeline, total);
        if missing.abs() <= CLOSE_ENOUGH_NS {
            return Ok((rehearsal, scale));
        }
        mend(&mut rehearsal, &timeline, missing);
    }
    if missing_ns(&Timeline::new(&rehearsal)?, total).abs() <= TOO_FAR_NS {
        Ok((rehearsal, scale))
    } else {
        Err(fail("its counts cannot be scaled that far; give more time"))
    }
}

/// Length that the schedule lacks.
fn missing_ns(timeline: &Timeline, total: Duration) -> i128 {
    nanoseconds(total) - nanoseconds(timeline.total().unwrap_or_default())
}

fn nanoseconds(duration: Duration) -> i128 {
    duration.as_nanos() as i128
}

fn scaled(workload: &Workload, scale: f64) -> Workload {
    let mut workload = workload.clone();
    for phase in &mut workload.schedule.phases {
        scale_goal(&mut phase.goal, scale);
        if let Some(thermostat) = &mut phase.thermostat {
            thermostat.sample = scale_duration(thermostat.sample, scale).max(SHORTEST_SAMPLE);
        }
        if let Some(script) = &mut phase.script {
            scale_samples(&mut script.0, scale);
        }
    }
    let working_set = &mut workload.schedule.working_set;
    *working_set = match *working_set {
        WorkingSet::Grows => WorkingSet::Grows,
        WorkingSet::FrozenAfter(after) => WorkingSet::FrozenAfter(scale_duration(after, scale)),
        WorkingSet::FrozenAtFill(objects) => WorkingSet::FrozenAtFill(scale_count(objects, scale)),
    };
    workload
}

fn scale_goal(goal: &mut Goal, scale: f64) {
    let Goal { duration, transactions, fill_bytes, errors } = goal;
    scale_each(duration, |d| scale_duration(d, scale));
    scale_each(transactions, |count| scale_count(count, scale));
    scale_each(fill_bytes, |bytes| scale_count(bytes, scale));
    // A share of errors stays what it is, and a number of them must not become a share.
    scale_each(errors, |errors| if errors >= 1.0 { libm::ceil(errors * scale).max(1.0) } else { errors });
}

/// Samples of a script are parts of its phase.
fn scale_samples(statements: &mut [ScriptStatement], scale: f64) {
    let sample = |goal: &mut Goal| {
        scale_goal(goal, scale);
        goal.duration = goal.duration.map(|d| if d.is_zero() { d } else { d.max(SHORTEST_SAMPLE) });
    };
    for statement in statements {
        match statement {
            ScriptStatement::Every { goal, body } => {
                sample(goal);
                scale_samples(body, scale);
            }
            ScriptStatement::SampleGoal(goal) => sample(goal),
            ScriptStatement::If { then, otherwise, .. } => {
                scale_samples(then, scale);
                scale_samples(otherwise, scale);
            }
            ScriptStatement::Set { .. }
            | ScriptStatement::TakeSample { .. }
            | ScriptStatement::Load { .. }
            | ScriptStatement::Population { .. }
            | ScriptStatement::Print(_)
            | ScriptStatement::EndPhase => {}
        }
    }
}

fn scale_each<T: Copy>(goal: &mut Option<T>, scale: impl Fn(T) -> T) {
    *goal = goal.map(scale);
}

/// A goal that was positive stays positive; zero means no goal and stays so.
fn scale_duration(duration: Duration, scale: f64) -> Duration {
    if duration.is_zero() {
        return duration;
    }
    let scaled = Duration::try_from_secs_f64(duration.as_secs_f64() * scale).unwrap_or(Duration::MAX);
    scaled.max(Duration::from_nanos(1))
}

/// Rounded up, so that mending makes phases shorter, which a duration can do.
fn scale_count(count: u64, scale: f64) -> u64 {
    if count == 0 { 0 } else { (libm::ceil(count as f64 * scale) as u64).max(1) }
}

/// Moves the end of one phase: the longest that ends by its duration; else the longest of all, which gets one;
/// else the freeze that phases wait for is set by time.
fn mend(workload: &mut Workload, timeline: &Timeline, missing: i128) {
    let spans = timeline.phases().iter().map(|span| match (span.start, span.end) {
        (Some(start), Some(end)) => nanoseconds(end.saturating_sub(start)),
        _ => 0,
    });
    let spans: Vec<i128> = spans.collect();
    let phases = &workload.schedule.phases;
    // A phase that waits for the freeze takes up whatever changes before it.
    let waits = |index: &usize| {
        let end = timeline.phases()[*index].end.map_or(0, nanoseconds);
        let late = frozen_at(timeline).map(|at_ns| end - i128::from(at_ns));
        phases[*index].wait_for_freeze && late.is_some_and(|late| late.abs() <= CLOSE_ENOUGH_NS)
    };
    let free = (0..spans.len()).rev().find(waits).map_or(0, |index| index + 1);
    let by_duration =
        |index: usize| phases[index].goal.duration.is_some_and(|d| nanoseconds(d) == spans[index]);
    let longest = |fits: &dyn Fn(usize) -> bool| {
        (free..spans.len()).filter(|i| fits(*i) && spans[*i] + missing > 0).max_by_key(|i| spans[*i])
    };
    let moved = |ns: i128| Duration::from_nanos(u64::try_from(ns).unwrap_or(1));
    if let Some(index) = longest(&by_duration) {
        workload.schedule.phases[index].goal.duration = Some(moved(spans[index] + missing));
    } else if let Some(index) = longest(&|_| true) {
        pin(&mut workload.schedule.phases[index], moved(spans[index]), moved(spans[index] + missing));
    } else if let Some(at_ns) = frozen_at(timeline) {
        workload.schedule.working_set = WorkingSet::FrozenAfter(moved(i128::from(at_ns) + missing));
    }
}

/// Makes a phase that a count ended after `span` end after `length` instead, with its ramps as far as they got.
fn pin(phase: &mut Phase, span: Duration, length: Duration) {
    if let Some(duration) = phase.goal.duration.filter(|duration| !duration.is_zero()) {
        let reached = (span.as_secs_f64() / duration.as_secs_f64()).min(1.0);
        for ramp in [&mut phase.load, &mut phase.recurrence, &mut phase.population, &mut phase.special] {
            ramp.end = ramp.begin + (ramp.end - ramp.begin) * reached;
        }
    }
    phase.goal = Goal { duration: Some(length), errors: phase.goal.errors, ..Goal::default() };
}

fn frozen_at(timeline: &Timeline) -> Option<u64> {
    match timeline.freeze() {
        Freeze::At(at) => u64::try_from(at.as_nanos()).ok(),
        Freeze::Never | Freeze::Live { .. } => None,
    }
}
