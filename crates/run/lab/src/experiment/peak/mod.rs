//! The highest rate at which a target keeps a promise. One run on one world: the cache is warmed at a constant rate,
//! and then stretches of constant rate follow one another, each chosen by what the ones before it showed ([`search`](crate::search)).
//!
//! A rate is set by moving the schedule's clock, as load that adapts does, so the stream goes on from step to step and the
//! cache stays as warm as it is. After each change the target has time to settle; after a step that was
//! not kept or leaves a queue, the rate is low until nothing waits any more, so what a step shows is its own.
//!
//! Whether the promise was kept is for the caller to say, for all values that its numbers can have had ([`step`]). A step that is
//! undecided is repeated; whatever comes of that counts, once ([`assay_measurement::belief`]).
//!
//! # How the limit is found
//!
//! *Limit.* `--find-peak` (`lab::experiment::peak`) is one run whose second phase adapts and has an empty script: the lab orders load factors
//! (`Command::Load`), and the stretches between these orders are judged one by one. The search keeps a probability for each possible position
//! of the limit, and for each step that it moved since then ([`assay_measurement::belief`]), since counting contradictions would let one series of disturbed
//! steps decide. Every step counts once. Disturbances by Assay are determined without looking at the outcome (`lab::experiment::peak::step`):
//! seconds in which it was late are excluded, and the remaining lateness is subtracted to see whether a broken step would be broken without it;
//! errors are never excused. The search and its driver are pure; a function from `assay`, based on `report::require::Promise`, judges whether a
//! stretch meets the requirements. `lab::experiment::peak::trials` tests the search in virtual time, with targets whose limit is calculated.

mod backlog;
mod bottleneck;
mod driver;
mod step;
#[cfg(test)]
mod trials;
mod window;

use std::time::Duration;

use assay_protocol::message::Command;
use assay_record::dir::RunDir;
use assay_record::peak::{Check, Peak, Step};
use assay_workload::model::{Goal, Phase, Ramp, Schedule, Script, WorkingSet, Workload};
use tokio::sync::{mpsc, watch};

use crate::error::LabError;
use crate::experiment::calibrate::flat::PeakLoad;
use crate::plan::{RunOutcome, RunPlan};
use driver::Driver;
pub use window::MeasurementWindow;

/// Index of the phase in which rates are tried.
const SEARCH_PHASE: u16 = 1;

#[derive(Debug, Clone, PartialEq)]
pub struct PeakPlan {
    /// The promise, part by part, as it was written.
    pub promise: Vec<String>,
    /// Time for which the cache is warmed.
    pub warm: Duration,
    /// Time for which a rate is measured, in whole seconds.
    pub step: Duration,
    /// Limit of the whole search.
    pub most: Duration,
    /// The first rate, in requests per second; none: what the workload requests at its peak.
    pub from_per_s: Option<f64>,
}

/// Holds a stretch against the promise: each part is kept, broken or undecided.
pub type PromiseJudge = Box<dyn FnMut(&MeasurementWindow<'_>) -> Vec<Check>>;

/// Progress of the search.
#[derive(Debug, Clone, PartialEq)]
pub enum PeakEvent {
    /// The cache is being warmed at this rate.
    Warming {
        /// Requests per second.
        rate_per_s: f64,
    },
    /// A rate is being tried.
    Trying {
        /// Requests per second.
        rate_per_s: f64,
    },
    Tried(Step),
    /// The target is left to recover at a low rate.
    Resting {
        /// Requests per second.
        rate_per_s: f64,
    },
}

/// Looks for the highest rate at which the promise is kept. The run directory is that of any run. `stop` turning true ends
/// it early; what is known by then is the result. The plan has no requirement for a phase: those of the workload are not run. Call it on a runtime whose threads outlive it.
pub async fn find(
    plan: RunPlan,
    peak_plan: PeakPlan,
    judge: PromiseJudge,
    events: mpsc::UnboundedSender<PeakEvent>,
    stop: watch::Receiver<bool>,
) -> Result<(Peak, RunOutcome), LabError> {
    let busiest = PeakLoad::of(&plan.workload).map_err(LabError::plan)?;
    let usual_per_s = busiest.requests_per_s.filter(|rate| *rate > 0.0).ok_or_else(|| {
        LabError::plan(
            "robots of this workload are best effort, or send nothing: there is no rate to look for; give \
             them one (req_rate)",
        )
    })?;
    let first_per_s = peak_plan.from_per_s.unwrap_or(usual_per_s);
    let plan = RunPlan {
        workload: stepped(&plan.workload, &busiest, first_per_s / usual_per_s, &peak_plan),
        ..plan
    };
    let (orders, given) = mpsc::unbounded_channel();
    let (run_event_sender, mut run_events) = mpsc::unbounded_channel();
    let mut driver = Driver::new(&peak_plan, first_per_s, busiest.load() / usual_per_s, judge, events);
    let drive = async {
        while let Some(event) = run_events.recv().await {
            for command in driver.on_event(event) {
                // A run that has just ended needs no more orders.
                let _ = orders.send(command);
            }
        }
        driver
    };
    let (workload, target) = (plan.workload.name.clone(), plan.target.name());
    let version = plan.assay_version.clone();
    let stopped = stop.clone();
    let (outcome, driver) =
        tokio::join!(crate::run_with_commands(plan, run_event_sender, stop, Some(given)), drive);
    let outcome = outcome?;
    let mut peak = Peak {
        schema: Peak::SCHEMA.into(),
        assay_version: version,
        workload,
        target,
        promise: peak_plan.promise.clone(),
        warm_s: peak_plan.warm.as_secs_f64(),
        step_s: peak_plan.step.as_secs_f64(),
        ..driver.result(*stopped.borrow())
    };
    peak.suspects = bottlenecks(&outcome, &peak);
    Ok((peak, outcome))
}

/// Resources that were used up, from the run directory; nothing where that cannot be read.
fn bottlenecks(outcome: &RunOutcome, peak: &Peak) -> Vec<assay_record::peak::Suspect> {
    let Some(step) = bottleneck::telling_step(peak) else { return Vec::new() };
    let read = || {
        let dir = RunDir::open(&outcome.run_dir).ok()?;
        Some((dir.read_info().ok()?, dir.read_series().ok()?))
    };
    read().map(|(info, series)| bottleneck::suspects(&info, &series, step)).unwrap_or_default()
}

/// The workload at a constant rate, and then at whatever rate is ordered.
fn stepped(workload: &Workload, busiest: &PeakLoad, multiple: f64, peak_plan: &PeakPlan) -> Workload {
    let level = |value: f64| Ramp { begin: value, end: value };
    let phase = |name: &str, duration: Duration, script: Option<Script>| Phase {
        name: name.into(),
        goal: Goal { duration: Some(duration), ..Goal::default() },
        load: level(busiest.load() * multiple),
        script,
        ..busiest.phase()
    };
    // A script that says nothing makes the load of its phase one that adapts.
    let phases = vec![
        phase("warm", peak_plan.warm, None),
        phase("search", 2 * peak_plan.most, Some(Script::default())),
    ];
    Workload { schedule: Schedule { phases, working_set: WorkingSet::Grows }, ..workload.clone() }
}

/// An order for the robots.
fn load_command(rate_per_s: f64, load_per_rate: f64) -> Command {
    Command::Load { factor: rate_per_s * load_per_rate }
}

#[cfg(test)]
mod tests {
    use assay_workload::timeline::Timeline;

    use super::*;
    use crate::testing;

    pub(super) fn peak_plan() -> PeakPlan {
        PeakPlan {
            promise: vec!["p99 < 50ms".into()],
            warm: Duration::from_secs(3),
            step: Duration::from_secs(2),
            most: Duration::from_secs(600),
            from_per_s: None,
        }
    }

    #[test]
    fn the_schedule_is_one_rate_and_then_one_that_adapts() {
        let workload = testing::workload();
        let busiest = PeakLoad::of(&workload).unwrap();
        let stepped = stepped(&workload, &busiest, 3.0, &peak_plan());
        let timeline = Timeline::new(&stepped).unwrap();
        let expected = timeline.phases()[0].expected.unwrap();
        assert!((expected.requests - 90.0).abs() < 1e-6, "{expected:?}");
        assert!(stepped.schedule.phases[usize::from(SEARCH_PHASE)].script.is_some());
    }
}
