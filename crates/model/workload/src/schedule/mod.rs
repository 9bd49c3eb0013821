//! When each phase ends. Solves goals, ramps and the freeze of the working set, phase after phase.

mod adapt;
mod error;
mod expected;
mod plan;
mod shape;
mod span;

use std::time::Duration;

pub use self::adapt::Adaptation;
pub use self::error::ScheduleError;
use self::plan::PhasePlan;
use self::shape::GoalCount;
pub(crate) use self::shape::Segment;
pub use self::span::{Expected, Freeze, PhaseSpan, WorkingSetSize};
use crate::density::Densities;
use crate::model::{Phase, Ramp, Thermostat, WorkingSet, Workload};

const LONGEST_YEARS: f64 = 100.0;
const YEAR_S: f64 = 365.25 * 86_400.0;

pub(crate) struct SolvedSchedule {
    pub(crate) spans: Vec<PhaseSpan>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) freeze: Freeze,
    pub(crate) working_set: Option<WorkingSetSize>,
}

struct ScheduleSolver<'a> {
    densities: &'a Densities,
    working_set: WorkingSet,
    /// Some robot is best effort; some robot has a rate.
    closed: bool,
    scheduled: bool,
    /// End of the last phase; none once one has been open.
    now_ns: Option<u64>,
    fill_objects: f64,
    freeze: Freeze,
    segments: Vec<Segment>,
    adaptations: &'a [Adaptation],
}

/// Solves all phases of a workload that has been validated, as its load was adapted.
pub(crate) fn solve(
    workload: &Workload,
    densities: &Densities,
    adaptations: &[Adaptation],
) -> Result<SolvedSchedule, ScheduleError> {
    if workload.schedule.phases.is_empty() {
        return Err(ScheduleError::Empty);
    }
    let living_groups = || densities.groups.iter().filter(|g| g.count > 0);
    let mut solver = ScheduleSolver {
        densities,
        working_set: workload.schedule.working_set,
        closed: living_groups().any(|g| g.per_second.is_none()),
        scheduled: living_groups().any(|g| g.per_second.is_some()),
        now_ns: Some(0),
        fill_objects: 0.0,
        freeze: Freeze::Never,
        segments: Vec::new(),
        adaptations,
    };
    solver.freeze = solver.known_freeze()?;
    let phases = workload.schedule.phases.iter().enumerate();
    let spans = phases.map(|(index, phase)| solver.phase(index as u16, phase));
    let mut spans: Vec<PhaseSpan> = spans.collect::<Result<_, _>>()?;
    let mut working_set = None;
    if !solver.closed {
        let frozen_ns = match solver.freeze {
            Freeze::At(at) => u64::try_from(at.as_nanos()).unwrap_or(u64::MAX),
            Freeze::Never | Freeze::Live { .. } => u64::MAX,
        };
        let (expected, size) =
            expected::expected(workload, densities, &solver.segments, spans.len(), frozen_ns);
        spans.iter_mut().zip(expected).for_each(|(span, expected)| span.expected = Some(expected));
        working_set = Some(size);
    }
    Ok(SolvedSchedule { spans, segments: solver.segments, freeze: solver.freeze, working_set })
}

impl<'a> ScheduleSolver<'a> {
    /// The freeze as far as it is known before any phase.
    fn known_freeze(&self) -> Result<Freeze, ScheduleError> {
        Ok(match self.working_set {
            WorkingSet::FrozenAfter(after) => Freeze::At(after),
            WorkingSet::FrozenAtFill(_) if self.closed && self.scheduled => {
                return Err(ScheduleError::MixedFreeze);
            }
            WorkingSet::FrozenAtFill(fill_objects) if self.closed => Freeze::Live { fill_objects },
            WorkingSet::FrozenAtFill(_) | WorkingSet::Grows => Freeze::Never,
        })
    }

    fn phase(&mut self, index: u16, phase: &Phase) -> Result<PhaseSpan, ScheduleError> {
        check_factors(phase)?;
        let start_ns = self.now_ns;
        let goal = &phase.goal;
        let counts = positive(goal.transactions).is_some() || positive(goal.fill_bytes).is_some();
        let duration = goal.duration.filter(|d| !d.is_zero());
        if !counts && duration.is_none() {
            return Err(ScheduleError::never(
                phase,
                "it has no positive goal; give it goal.duration, goal.xactions or goal.fill_size",
            ));
        }
        if phase.wait_for_freeze && matches!(self.working_set, WorkingSet::Grows) {
            return Err(ScheduleError::never(
                phase,
                "it waits for a working set that is never frozen; call working_set_length()",
            ));
        }
        let waits_live = phase.wait_for_freeze && matches!(self.freeze, Freeze::Live { .. });
        let open = self.closed && (counts || waits_live);
        if open && self.scheduled {
            return Err(ScheduleError::Mixed { phase: phase.name.clone() });
        }
        self.now_ns = match start_ns {
            Some(start_ns) if !open => Some(self.close(index, phase, start_ns, duration)?),
            _ => None,
        };
        let since_start = |ns: Option<u64>| ns.map(Duration::from_nanos);
        Ok(PhaseSpan {
            name: phase.name.clone(),
            start: since_start(start_ns),
            end: since_start(self.now_ns),
            expected: None,
        })
    }

    /// Finds the end of a phase whose start is known, and adds its segments.
    fn close(
        &mut self,
        index: u16,
        phase: &Phase,
        start_ns: u64,
        duration: Option<Duration>,
    ) -> Result<u64, ScheduleError> {
        let mut plan = PhasePlan::new(phase, self.densities);
        let goals = [
            (GoalCount::Requests, positive(phase.goal.transactions)),
            (GoalCount::FillBytes, positive(phase.goal.fill_bytes)),
        ];
        let mut end_s = plan.stretch(duration, &goals)?;
        for (count, goal) in goals {
            if let Some(reached) = goal.and_then(|goal| plan.reach(count, goal)) {
                end_s = end_s.min(reached);
            }
        }
        let freeze_before = self.freeze;
        end_s = self.wait_for_freeze(&plan, start_ns, end_s)?;
        let adaptation = self.adaptations.iter().find(|adaptation| adaptation.phase == index);
        let imposed = adaptation.and_then(|adaptation| adaptation.length);
        if let Some(length) = imposed {
            end_s = length.as_secs_f64().max(1e-9);
        }
        let years = (start_ns as f64 / 1e9 + end_s) / YEAR_S;
        if years.is_nan() || years > LONGEST_YEARS {
            return Err(ScheduleError::TooLong { phase: phase.name.clone(), years });
        }
        // A duration stays what it is, to the nanosecond.
        let exact = imposed.or(duration).filter(|d| end_s == d.as_secs_f64()).map(|d| d.as_nanos() as u64);
        let end_ns = start_ns + exact.unwrap_or_else(|| libm::round(end_s * 1e9) as u64);
        if phase.thermostat.is_some() || phase.script.is_some() {
            if adaptation.is_some() {
                // What was planned does not hold: where the fill is reached, the segments tell.
                self.freeze = freeze_before;
            }
            let population = adaptation.map_or(&[][..], |adaptation| adaptation.population.as_slice());
            self.adapt(&plan, index, start_ns, end_ns, population);
            return Ok(end_ns);
        }
        self.fill_objects += plan.sum_until(GoalCount::FillObjects, end_s);
        plan.emit(index, start_ns, end_ns, end_s, &mut self.segments);
        Ok(end_ns)
    }

    /// Notes a freeze within the phase, and puts off its end if it waits for one.
    fn wait_for_freeze(&mut self, plan: &PhasePlan, start_ns: u64, end_s: f64) -> Result<f64, ScheduleError> {
        let start_s = start_ns as f64 / 1e9;
        if let (WorkingSet::FrozenAtFill(cap), Freeze::Never) = (self.working_set, self.freeze) {
            let left = cap as f64 - self.fill_objects;
            match plan.reach(GoalCount::FillObjects, left) {
                Some(at_s) if at_s <= end_s || plan.phase.wait_for_freeze => {
                    self.freeze =
                        Freeze::At(Duration::from_nanos(libm::round((start_s + at_s) * 1e9) as u64));
                    return Ok(if plan.phase.wait_for_freeze { end_s.max(at_s) } else { end_s });
                }
                None if plan.phase.wait_for_freeze => {
                    let why = "it waits for the working set to be frozen at a fill that is never reached";
                    return Err(ScheduleError::never(plan.phase, why));
                }
                _ => {}
            }
        } else if let (Freeze::At(at), true) = (self.freeze, plan.phase.wait_for_freeze) {
            return Ok(end_s.max(at.as_secs_f64() - start_s));
        }
        Ok(end_s)
    }
}

fn positive(goal: Option<u64>) -> Option<f64> {
    goal.filter(|goal| *goal > 0).map(|goal| goal as f64)
}

fn check_factors(phase: &Phase) -> Result<(), ScheduleError> {
    let fields: [(&'static str, Ramp, f64); 4] = [
        ("load_factor", phase.load, f64::MAX),
        ("recur_factor", phase.recurrence, f64::MAX),
        ("populus_factor", phase.population, 1.0),
        ("special_msg_factor", phase.special, 1.0),
    ];
    for (field, ramp, most) in fields {
        for seen in [ramp.begin, ramp.end] {
            if !(0.0..=most).contains(&seen) {
                return Err(ScheduleError::Factor { phase: phase.name.clone(), field, seen });
            }
        }
    }
    let Some(Thermostat { sample, step, low, high }) = phase.thermostat else { return Ok(()) };
    let error = |why| Err(ScheduleError::Thermostat { phase: phase.name.clone(), why });
    if sample.is_zero() {
        error("its samples take no time; set sample_dur")
    } else if !(step > 0.0 && step <= 1.0) {
        error("load_delta must be more than 0 and at most 100%")
    } else if low.is_none() && high.is_none() {
        error("it has no bounds; set rptm_min or rptm_max")
    } else if low.zip(high).is_some_and(|(low, high)| low > high) {
        error("rptm_min is above rptm_max")
    } else {
        Ok(())
    }
}
