//! Control of load that adapts: from measurements, and requests of thermostats and scripts, to the changes that all workers
//! make. Pure: time is an argument, in nanoseconds since the start of the run.
//!
//! A load factor moves the clock: at half the load that is planned, schedule time runs half as fast. The stream itself
//! only has to be told of another population, and where in the schedule the phase ends. That is known when the phase is
//! nearly over, so until then the stream takes it for endless ([`LoadController::first_timeline`]).

use std::sync::Arc;
use std::time::Duration;

use assay_measurement::adapted::{Adapted, Decided};
use assay_workload::model::{Phase, Workload};
use assay_workload::script::{Factors, ResponseClass, Sample, ScriptAction, ScriptRun, ThermostatRun};
use assay_workload::{Adaptation, AdaptiveClock, Freeze, ScheduleError, Timeline, UniverseOptions};

use super::schedule::{LoadChange, nanoseconds};

/// Time from the announcement of a phase's end to that end. Nothing else is decided about the phase after that.
pub const LAST_NS: u64 = 300_000_000;
/// Length of an endless phase in the schedule.
const ENDLESS: Duration = Duration::from_secs(30 * 24 * 3600);

/// Decides about phases with load that adapts.
#[derive(Debug)]
pub struct LoadController {
    workload: Arc<Workload>,
    options: UniverseOptions,
    /// Some robot has a rate, which a load factor can change.
    has_rates: bool,
    plan: PhasePlan,
    /// Beginning of each phase so far.
    begins_ns: Vec<u64>,
    phase: Option<ControlledPhase>,
}

/// Decisions so far.
#[derive(Debug, Clone)]
struct PhasePlan {
    /// As all phases were, up to the one that is on.
    adaptations: Vec<Adaptation>,
    /// The schedule with the end of the phase as things are.
    timeline: Arc<Timeline>,
    clock: AdaptiveClock,
    /// End of the controlled phase as things are; none: never.
    end_ns: Option<u64>,
}

/// A phase that is steered.
#[derive(Debug)]
struct ControlledPhase {
    index: u16,
    begin_ns: u64,
    begin_schedule_ns: u64,
    script: Option<ScriptRun>,
    thermometer: Option<ThermostatRun>,
    /// Share of robots alive, once it was changed.
    population: Option<f64>,
    /// Measurements since the last decision.
    since: Sample,
    /// The last piece that was measured.
    last_sample_end_ns: u64,
    /// The end of the phase was announced, or is not decided here.
    closed: bool,
}

/// Change that a thermostat, a script or the parent requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadRequest {
    pub load: Option<f64>,
    /// Share of robots alive.
    pub population: Option<f64>,
    /// The phase is to end.
    pub end: bool,
    pub lines: Vec<String>,
}

/// A change that could be made.
#[derive(Debug)]
pub struct ProposedChange {
    pub change: LoadChange,
    pub notes: Vec<Adapted>,
    plan: PhasePlan,
    population: Option<f64>,
    closes: bool,
}

impl LoadRequest {
    /// Request for another load factor alone.
    pub fn load(factor: f64) -> Self {
        Self { load: Some(factor), ..Self::default() }
    }

    fn from_actions(actions: Vec<ScriptAction>) -> Self {
        let mut request = Self::default();
        for action in actions {
            match action {
                ScriptAction::Load(load) => request.load = Some(load),
                ScriptAction::Population(share) => request.population = Some(share),
                ScriptAction::Print(line) => request.lines.push(line),
                ScriptAction::EndPhase => request.end = true,
            }
        }
        request
    }

    /// True if the request changes the schedule.
    pub fn is_change(&self) -> bool {
        self.load.is_some() || self.population.is_some() || self.end
    }
}

/// True when the load of some phase can adapt.
pub fn adapts(workload: &Workload) -> bool {
    workload.schedule.phases.iter().any(phase_adapts)
}

fn phase_adapts(phase: &Phase) -> bool {
    phase.thermostat.is_some() || phase.script.is_some()
}

impl LoadController {
    /// Before the start; none where nothing adapts.
    pub fn new(workload: Arc<Workload>, options: UniverseOptions, planned: Arc<Timeline>) -> Option<Self> {
        adapts(&workload).then(|| {
            let (adaptations, clock) = (Vec::new(), AdaptiveClock::new());
            let plan = PhasePlan { adaptations, timeline: planned, clock, end_ns: None };
            let has_rates = workload.robots.iter().any(|group| !group.pace.is_closed());
            Self { workload, options, has_rates, plan, begins_ns: Vec::new(), phase: None }
        })
    }

    /// Timeline that streams begin with: the first phase that adapts does not end.
    pub fn first_timeline(&self) -> Result<Arc<Timeline>, ScheduleError> {
        self.endless(&self.plan.adaptations, self.next_adapting(0))
    }

    /// End of each phase, as far as it is known before the start.
    pub fn first_ends_ns(&self) -> Vec<Option<u64>> {
        self.ends_ns(&self.plan, None)
    }

    pub fn schedule_ns(&self, now_ns: u64) -> u64 {
        self.plan.clock.schedule_ns(now_ns)
    }

    /// End of the controlled phase, as things are.
    pub fn end_ns(&self) -> Option<u64> {
        self.phase.as_ref().filter(|phase| !phase.closed).and(self.plan.end_ns)
    }

    /// True for the phase whose end is decided here, from its beginning on until that is announced.
    pub fn controls(&self, phase: u16) -> bool {
        self.phase.as_ref().is_some_and(|controlled| controlled.index == phase && !controlled.closed)
    }

    /// Phase that begins next, or has just begun, as seen from here.
    pub fn next_phase(&self) -> u16 {
        self.phase.as_ref().map_or(0, |phase| phase.index + 1)
    }

    /// Begins a phase, now or soon. Gives what its script requests at once.
    pub fn begin(&mut self, index: u16, begin_ns: u64) -> LoadRequest {
        let phase = &self.workload.schedule.phases[usize::from(index)];
        // A load factor holds for its phase only.
        if self.plan.clock.multiple() != 1.0 {
            self.plan.clock.change(begin_ns, 1.0);
        }
        self.begins_ns.push(begin_ns);
        let span = &self.plan.timeline.phases()[usize::from(index)];
        let begin_schedule_ns = span.start.map(nanoseconds);
        let is_placed = begin_schedule_ns.is_some() && span.end.is_some();
        let end_schedule_ns = span.end.map(nanoseconds);
        self.plan.end_ns = end_schedule_ns.and_then(|end_ns| self.plan.clock.real_ns(end_ns));
        let factors = Factors { load: phase.load.begin, population: phase.population.begin };
        let started = phase.script.as_ref().map(|script| ScriptRun::start(script, factors));
        let (script, actions) = started.map_or((None, Vec::new()), |(run, actions)| (Some(run), actions));
        self.phase = Some(ControlledPhase {
            index,
            begin_ns,
            begin_schedule_ns: begin_schedule_ns.unwrap_or_default(),
            script,
            thermometer: phase.thermostat.map(ThermostatRun::new),
            population: None,
            since: Sample::default(),
            last_sample_end_ns: begin_ns,
            closed: !is_placed || !phase_adapts(phase),
        });
        LoadRequest::from_actions(actions)
    }

    /// Tells what was measured of a phase up to a moment. Gives what thermostat and script want now.
    pub fn observe(&mut self, phase: u16, mut sample: Sample, end_ns: u64) -> LoadRequest {
        let factors = self.factors(end_ns);
        let Some(controlled) = self.phase.as_mut().filter(|controlled| controlled.index == phase) else {
            return LoadRequest::default();
        };
        // Samples can be missing: this one stands for the time since the last.
        let length_ns = end_ns.saturating_sub(controlled.last_sample_end_ns);
        controlled.last_sample_end_ns = controlled.last_sample_end_ns.max(end_ns);
        sample.duration_s = length_ns as f64 / 1e9;
        controlled.since.add(&sample);
        let mut actions =
            controlled.script.as_mut().map(|script| script.on_interval(&sample, factors)).unwrap_or_default();
        let moved =
            controlled.thermometer.as_mut().and_then(|meter| meter.on_interval(&sample, factors.load));
        actions.extend(moved.map(ScriptAction::Load));
        LoadRequest::from_actions(actions)
    }

    /// Factors in effect, or decided.
    fn factors(&self, at_ns: u64) -> Factors {
        let Some(controlled) = &self.phase else { return Factors { load: 1.0, population: 1.0 } };
        let phase = &self.workload.schedule.phases[usize::from(controlled.index)];
        let at = Duration::from_nanos(self.plan.clock.schedule_ns(at_ns));
        let planned = self.plan.timeline.load_at(at).unwrap_or(phase.load.end);
        let passed = at.saturating_sub(Duration::from_nanos(controlled.begin_schedule_ns)).as_secs_f64();
        let ramp_s = phase.goal.duration.map_or(f64::INFINITY, |duration| duration.as_secs_f64());
        let part = (passed / ramp_s).clamp(0.0, 1.0);
        let ramp = phase.population;
        let population = controlled.population.unwrap_or(ramp.begin + (ramp.end - ramp.begin) * part);
        Factors { load: planned * self.plan.clock.multiple(), population }
    }

    /// Notes of lines that a script printed.
    pub fn lines(&self, request: &LoadRequest, at_ns: u64) -> Vec<Adapted> {
        let note = |line: &String| Adapted { text: line.clone(), ..self.note(Decided::Print, at_ns, 0.0) };
        request.lines.iter().map(note).collect()
    }

    /// Computes the change that a request makes at a moment; none where it is too late for anything but the end.
    pub fn propose(
        &self,
        request: &LoadRequest,
        at_ns: u64,
    ) -> Result<Option<ProposedChange>, ScheduleError> {
        let Some(controlled) = self.phase.as_ref().filter(|controlled| !controlled.closed) else {
            return Ok(None);
        };
        let at_ns = at_ns.max(controlled.begin_ns);
        if self.plan.end_ns.is_some_and(|end_ns| at_ns + LAST_NS > end_ns) {
            return Ok(None);
        }
        let (mut plan, mut notes) = (self.plan.clone(), Vec::new());
        if let Some(load) = request.load.filter(|_| self.has_rates) {
            let at = Duration::from_nanos(plan.clock.schedule_ns(at_ns));
            // Where nothing is planned, no multiple of it is anything.
            if let Some(planned) = plan.timeline.load_at(at).filter(|planned| *planned > 0.0) {
                plan.clock.change(at_ns, load / planned);
                notes.push(self.note(Decided::Load, at_ns, load));
            }
        }
        if let Some(share) = request.population {
            let at_schedule_ns = plan.clock.schedule_ns(at_ns);
            let into = Duration::from_nanos(at_schedule_ns.saturating_sub(controlled.begin_schedule_ns));
            adaptation(&mut plan.adaptations, controlled.index).population.push((into, share));
            notes.push(self.note(Decided::Population, at_ns, share));
        }
        plan.end_ns = match request.end {
            true => Some(at_ns + LAST_NS),
            false => self.find_end(&plan, controlled)?,
        };
        self.place_end(&mut plan, controlled)?;
        let timeline = match request.population {
            Some(_) => Some(self.endless(&plan.adaptations, Some(controlled.index))?),
            None => None,
        };
        let ends_ns = self.ends_ns(&plan, None);
        let change = LoadChange { at_ns, clock: plan.clock.clone(), timeline, ends_ns };
        let population = request.population.or(controlled.population);
        Ok(Some(ProposedChange { change, notes, plan, population, closes: false }))
    }

    /// Proposes the end of the phase, to be announced at a moment before it; if that has become too late, the end is
    /// put off.
    pub fn propose_end(&self, at_ns: u64) -> Result<Option<ProposedChange>, ScheduleError> {
        let controlled = self.phase.as_ref().filter(|controlled| !controlled.closed);
        let (Some(controlled), Some(end_ns)) = (controlled, self.plan.end_ns) else { return Ok(None) };
        let mut plan = self.plan.clone();
        let end_ns = end_ns.max(at_ns);
        plan.end_ns = Some(end_ns);
        self.place_end(&mut plan, controlled)?;
        let following = self.next_adapting(controlled.index + 1);
        let timeline = Some(self.endless(&plan.adaptations, following)?);
        let mut clock = plan.clock.clone();
        clock.change(end_ns, 1.0);
        let ends_ns = self.ends_ns(&PhasePlan { clock: clock.clone(), ..plan.clone() }, Some(end_ns));
        let note = self.note(Decided::End, end_ns, 0.0);
        let change = LoadChange { at_ns, clock, timeline, ends_ns };
        let population = controlled.population;
        Ok(Some(ProposedChange { change, notes: vec![note], plan, population, closes: true }))
    }

    /// Commits a proposal that was announced.
    pub fn commit(&mut self, proposal: ProposedChange) -> Vec<Adapted> {
        let ProposedChange { plan, population, closes, notes, .. } = proposal;
        self.plan = plan;
        if let Some(controlled) = &mut self.phase {
            controlled.population = population;
            controlled.closed |= closes;
            controlled.since = Sample::default();
        }
        notes
    }

    fn note(&self, what: Decided, at_ns: u64, value: f64) -> Adapted {
        let Some(controlled) = &self.phase else { return Adapted::default() };
        let responses = controlled.since.class(ResponseClass::Rep);
        let mean_us = || (responses.time_s.sum / responses.count as f64 * 1e6) as u64;
        Adapted {
            at_ms: at_ns / 1_000_000,
            schedule_ns: self.plan.clock.schedule_ns(at_ns).saturating_sub(controlled.begin_schedule_ns),
            phase: controlled.index,
            what,
            value,
            response_us: (responses.count > 0).then(mean_us),
            text: String::new(),
        }
    }

    /// End of the phase by its goals: a duration in real time, counts where the schedule expects them.
    fn find_end(&self, plan: &PhasePlan, controlled: &ControlledPhase) -> Result<Option<u64>, ScheduleError> {
        let phase = &self.workload.schedule.phases[usize::from(controlled.index)];
        let real_ns = |schedule_ns: u64| plan.clock.real_ns(schedule_ns);
        let duration = phase.goal.duration.filter(|duration| !duration.is_zero());
        let mut end_ns = duration.map(|duration| controlled.begin_ns + nanoseconds(duration));
        let counted = self.counted_length_ns(plan, controlled)?;
        let counted_ns = counted.and_then(|length_ns| real_ns(controlled.begin_schedule_ns + length_ns));
        // The goal that is reached first ends the phase, but not before the working set is frozen where it waits
        // for that.
        end_ns = end_ns.into_iter().chain(counted_ns).min();
        if phase.wait_for_freeze {
            let endless = self.endless(&plan.adaptations, Some(controlled.index))?;
            if let Freeze::At(at) = endless.freeze() {
                end_ns = end_ns.and_then(|end_ns| Some(end_ns.max(real_ns(nanoseconds(at))?)));
            }
        }
        let longest_ns = controlled.begin_schedule_ns + nanoseconds(ENDLESS);
        Ok(end_ns.into_iter().chain(real_ns(longest_ns)).min())
    }

    /// Stretch of the schedule after which the counts of the phase's goal are expected; none: it has no counts.
    fn counted_length_ns(
        &self,
        plan: &PhasePlan,
        controlled: &ControlledPhase,
    ) -> Result<Option<u64>, ScheduleError> {
        let goal = &self.workload.schedule.phases[usize::from(controlled.index)].goal;
        let (xacts, fill) = (goal.transactions.unwrap_or(0), goal.fill_bytes.unwrap_or(0));
        if xacts == 0 && fill == 0 {
            return Ok(None);
        }
        let reached = |length_ns: u64| -> Result<bool, ScheduleError> {
            let mut adaptations = plan.adaptations.clone();
            adaptation(&mut adaptations, controlled.index).length = Some(Duration::from_nanos(length_ns));
            let timeline = Timeline::with(&self.workload, self.options, &adaptations)?;
            let expected = timeline.phases()[usize::from(controlled.index)].expected.unwrap_or_default();
            Ok((xacts > 0 && expected.requests >= xacts as f64)
                || (fill > 0 && expected.fill_bytes >= fill as f64))
        };
        let (mut low, mut high) = (0, nanoseconds(ENDLESS));
        if !reached(high)? {
            return Ok(None);
        }
        // To the millisecond.
        while high - low > 1_000_000 {
            let middle = low + (high - low) / 2;
            if reached(middle)? { high = middle } else { low = middle }
        }
        Ok(Some(high))
    }

    /// Makes the schedule end the phase where its end is.
    fn place_end(&self, plan: &mut PhasePlan, controlled: &ControlledPhase) -> Result<(), ScheduleError> {
        let length = match plan.end_ns {
            Some(end_ns) => plan.clock.schedule_length(controlled.begin_schedule_ns, end_ns),
            None => ENDLESS,
        };
        adaptation(&mut plan.adaptations, controlled.index).length =
            Some(length.max(Duration::from_nanos(1)));
        plan.timeline = Arc::new(Timeline::with(&self.workload, self.options, &plan.adaptations)?);
        Ok(())
    }

    /// Schedule in which a phase does not end.
    fn endless(
        &self,
        adaptations: &[Adaptation],
        phase: Option<u16>,
    ) -> Result<Arc<Timeline>, ScheduleError> {
        let mut adaptations = adaptations.to_vec();
        if let Some(phase) = phase {
            let placed = self.plan.timeline.phases().get(usize::from(phase));
            if placed.is_some_and(|span| span.start.is_some() && span.end.is_some()) {
                adaptation(&mut adaptations, phase).length = Some(ENDLESS);
            }
        }
        Timeline::with(&self.workload, self.options, &adaptations).map(Arc::new)
    }

    /// First phase from `first` on that adapts.
    fn next_adapting(&self, first: u16) -> Option<u16> {
        let phases = self.workload.schedule.phases.iter().enumerate().skip(usize::from(first));
        phases.filter(|(_, phase)| phase_adapts(phase)).map(|(index, _)| index as u16).next()
    }

    /// End of each phase: of those before the controlled one, of that one if its end is given, and of those after it up
    /// to the next that adapts.
    fn ends_ns(&self, plan: &PhasePlan, closing_ns: Option<u64>) -> Vec<Option<u64>> {
        let controlled = self.phase.as_ref().map(|controlled| controlled.index);
        let mut known = true;
        let end = |(index, span): (usize, &assay_workload::PhaseSpan)| {
            let is_before = controlled.is_some_and(|controlled| index < usize::from(controlled));
            let is_steered = controlled.is_some_and(|controlled| index == usize::from(controlled));
            let end_ns = || span.end.and_then(|end| plan.clock.real_ns(nanoseconds(end)));
            if is_before {
                return self.begins_ns.get(index + 1).copied();
            }
            if is_steered && let Some(closing_ns) = closing_ns {
                return Some(closing_ns);
            }
            known &= !(phase_adapts(&self.workload.schedule.phases[index]) && span.end.is_some());
            if known { end_ns() } else { None }
        };
        plan.timeline.phases().iter().enumerate().map(end).collect()
    }
}

/// Entry of a phase, made when it is first needed.
fn adaptation(adaptations: &mut Vec<Adaptation>, phase: u16) -> &mut Adaptation {
    let at = adaptations.iter().position(|adaptation| adaptation.phase == phase).unwrap_or_else(|| {
        adaptations.push(Adaptation { phase, ..Adaptation::default() });
        adaptations.len() - 1
    });
    &mut adaptations[at]
}

#[cfg(test)]
#[path = "load_controller_tests.rs"]
mod tests;
