//! Load that adapts, and where it goes. From what was measured, and what thermostats and scripts want, to the changes that
//! all workers make. Pure: time is an argument, in nanoseconds since the start of the run.
//!
//! A load factor moves the clock: at half the load that is planned, schedule time runs half as fast. The stream itself
//! only has to be told of another population, and where in the schedule the phase ends. That is known when the phase is
//! nearly over, so until then the stream takes it for endless ([`Steering::first_timeline`]).

use std::sync::Arc;
use std::time::Duration;

use assay_measurement::adapted::{Adapted, Decided};
use assay_workload::model::{Phase, Workload};
use assay_workload::script::{Action, Class, Factors, Sample, ScriptRun, Thermometer};
use assay_workload::{Adaptation, AdaptiveClock, Freeze, ScheduleError, Timeline, UniverseOptions};

use super::agenda::Change;

/// How far ahead of the end of a phase that end is announced; nothing else is decided about the phase after that.
pub const LAST_NS: u64 = 300_000_000;
/// What an endless phase takes of the schedule beyond what was planned.
const ENDLESS: Duration = Duration::from_secs(30 * 24 * 3600);

/// Decides about phases with load that adapts.
#[derive(Debug)]
pub struct Steering {
    workload: Arc<Workload>,
    options: UniverseOptions,
    /// Some robot has a rate, which a load factor can change.
    has_rates: bool,
    course: Course,
    /// When each phase began.
    begins_ns: Vec<u64>,
    phase: Option<Steered>,
}

/// What has been decided so far.
#[derive(Debug, Clone)]
struct Course {
    /// As all phases were, up to the one that is on.
    adaptations: Vec<Adaptation>,
    /// The schedule with the end of the phase as things are.
    timeline: Arc<Timeline>,
    clock: AdaptiveClock,
    /// When the phase that is steered will end as things are; none: never.
    end_ns: Option<u64>,
}

/// A phase that is steered.
#[derive(Debug)]
struct Steered {
    index: u16,
    begin_ns: u64,
    begin_schedule_ns: u64,
    script: Option<ScriptRun>,
    thermometer: Option<Thermometer>,
    /// Share of robots alive, once it was changed.
    population: Option<f64>,
    /// What was measured since the last decision.
    since: Sample,
    /// The last piece that was measured.
    last_piece_end_ns: u64,
    /// Its end was announced, or is none of ours.
    closed: bool,
}

/// What thermostats and scripts want.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wishes {
    pub load: Option<f64>,
    /// This share of robots alive.
    pub population: Option<f64>,
    /// The phase is to end.
    pub end: bool,
    pub lines: Vec<String>,
}

/// A change that could be made.
#[derive(Debug)]
pub struct Proposal {
    pub change: Change,
    pub notes: Vec<Adapted>,
    course: Course,
    population: Option<f64>,
    closes: bool,
}

impl Wishes {
    /// Nothing but another load factor.
    pub fn load(factor: f64) -> Self {
        Self { load: Some(factor), ..Self::default() }
    }

    fn of(actions: Vec<Action>) -> Self {
        let mut wishes = Self::default();
        for action in actions {
            match action {
                Action::Load(load) => wishes.load = Some(load),
                Action::Population(share) => wishes.population = Some(share),
                Action::Print(line) => wishes.lines.push(line),
                Action::EndPhase => wishes.end = true,
            }
        }
        wishes
    }

    /// They want something of the schedule.
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

impl Steering {
    /// Before the start; none where nothing adapts.
    pub fn new(workload: Arc<Workload>, options: UniverseOptions, planned: Arc<Timeline>) -> Option<Self> {
        adapts(&workload).then(|| {
            let (adaptations, clock) = (Vec::new(), AdaptiveClock::new());
            let course = Course { adaptations, timeline: planned, clock, end_ns: None };
            let has_rates = workload.robots.iter().any(|group| !group.pace.is_closed());
            Self { workload, options, has_rates, course, begins_ns: Vec::new(), phase: None }
        })
    }

    /// What streams are made with: the first phase that adapts does not end.
    pub fn first_timeline(&self) -> Result<Arc<Timeline>, ScheduleError> {
        self.endless(&self.course.adaptations, self.next_adapting(0))
    }

    /// When each phase ends, as far as it is known before the start.
    pub fn first_ends_ns(&self) -> Vec<Option<u64>> {
        self.ends_ns(&self.course, None)
    }

    /// The moment of the schedule.
    pub fn schedule_ns(&self, now_ns: u64) -> u64 {
        self.course.clock.schedule_ns(now_ns)
    }

    /// When the phase that is steered will end, as things are.
    pub fn end_ns(&self) -> Option<u64> {
        self.phase.as_ref().filter(|phase| !phase.closed).and(self.course.end_ns)
    }

    /// The phase whose end is decided here, from its beginning on until that is announced.
    pub fn steers(&self, phase: u16) -> bool {
        self.phase.as_ref().is_some_and(|steered| steered.index == phase && !steered.closed)
    }

    /// The phase that begins next, or has just begun, as seen from here.
    pub fn next_phase(&self) -> u16 {
        self.phase.as_ref().map_or(0, |phase| phase.index + 1)
    }

    /// A phase begins, now or soon. Gives what its script wants at once.
    pub fn begin(&mut self, index: u16, begin_ns: u64) -> Wishes {
        let phase = &self.workload.schedule.phases[usize::from(index)];
        if self.course.clock.multiple() != 1.0 {
            self.course.clock.change(begin_ns, 1.0);
        }
        self.begins_ns.push(begin_ns);
        let span = &self.course.timeline.phases()[usize::from(index)];
        let begin_schedule_ns = span.start.map(nanoseconds);
        let is_placed = begin_schedule_ns.is_some() && span.end.is_some();
        let end_schedule_ns = span.end.map(nanoseconds);
        self.course.end_ns = end_schedule_ns.and_then(|end_ns| self.course.clock.real_ns(end_ns));
        let factors = Factors { load: phase.load.begin, population: phase.population.begin };
        let started = phase.script.as_ref().map(|script| ScriptRun::start(script, factors));
        let (script, actions) = started.map_or((None, Vec::new()), |(run, actions)| (Some(run), actions));
        self.phase = Some(Steered {
            index,
            begin_ns,
            begin_schedule_ns: begin_schedule_ns.unwrap_or_default(),
            script,
            thermometer: phase.thermostat.map(Thermometer::new),
            population: None,
            since: Sample::default(),
            last_piece_end_ns: begin_ns,
            closed: !is_placed || !phase_adapts(phase),
        });
        Wishes::of(actions)
    }

    /// Tells what was measured of a phase up to a moment. Gives what thermostat and script want now.
    pub fn tell(&mut self, phase: u16, mut sample: Sample, end_ns: u64) -> Wishes {
        let factors = self.factors(end_ns);
        let Some(steered) = self.phase.as_mut().filter(|steered| steered.index == phase) else {
            return Wishes::default();
        };
        let length_ns = end_ns.saturating_sub(steered.last_piece_end_ns);
        steered.last_piece_end_ns = steered.last_piece_end_ns.max(end_ns);
        sample.duration_s = length_ns as f64 / 1e9;
        steered.since.add(&sample);
        let mut actions =
            steered.script.as_mut().map(|script| script.tell(&sample, factors)).unwrap_or_default();
        let moved = steered.thermometer.as_mut().and_then(|meter| meter.tell(&sample, factors.load));
        actions.extend(moved.map(Action::Load));
        Wishes::of(actions)
    }

    /// The factors that are on, or were decided.
    fn factors(&self, at_ns: u64) -> Factors {
        let Some(steered) = &self.phase else { return Factors { load: 1.0, population: 1.0 } };
        let phase = &self.workload.schedule.phases[usize::from(steered.index)];
        let at = Duration::from_nanos(self.course.clock.schedule_ns(at_ns));
        let planned = self.course.timeline.load_at(at).unwrap_or(phase.load.end);
        let passed = at.saturating_sub(Duration::from_nanos(steered.begin_schedule_ns)).as_secs_f64();
        let ramp_s = phase.goal.duration.map_or(f64::INFINITY, |duration| duration.as_secs_f64());
        let part = (passed / ramp_s).clamp(0.0, 1.0);
        let ramp = phase.population;
        let population = steered.population.unwrap_or(ramp.begin + (ramp.end - ramp.begin) * part);
        Factors { load: planned * self.course.clock.multiple(), population }
    }

    /// Notes of lines that a script printed.
    pub fn lines(&self, wishes: &Wishes, at_ns: u64) -> Vec<Adapted> {
        let note = |line: &String| Adapted { text: line.clone(), ..self.note(Decided::Print, at_ns, 0.0) };
        wishes.lines.iter().map(note).collect()
    }

    /// What it would be to do this at that moment; none where it is too late for anything but the end.
    pub fn propose(&self, wishes: &Wishes, at_ns: u64) -> Result<Option<Proposal>, ScheduleError> {
        let Some(steered) = self.phase.as_ref().filter(|steered| !steered.closed) else { return Ok(None) };
        let at_ns = at_ns.max(steered.begin_ns);
        if self.course.end_ns.is_some_and(|end_ns| at_ns + LAST_NS > end_ns) {
            return Ok(None);
        }
        let (mut course, mut notes) = (self.course.clone(), Vec::new());
        if let Some(load) = wishes.load.filter(|_| self.has_rates) {
            let at = Duration::from_nanos(course.clock.schedule_ns(at_ns));
            // Where nothing is planned, no multiple of it is anything.
            if let Some(planned) = course.timeline.load_at(at).filter(|planned| *planned > 0.0) {
                course.clock.change(at_ns, load / planned);
                notes.push(self.note(Decided::Load, at_ns, load));
            }
        }
        if let Some(share) = wishes.population {
            let at_schedule_ns = course.clock.schedule_ns(at_ns);
            let into = Duration::from_nanos(at_schedule_ns.saturating_sub(steered.begin_schedule_ns));
            adaptation(&mut course.adaptations, steered.index).population.push((into, share));
            notes.push(self.note(Decided::Population, at_ns, share));
        }
        course.end_ns = match wishes.end {
            true => Some(at_ns + LAST_NS),
            false => self.find_end(&course, steered)?,
        };
        self.place_end(&mut course, steered)?;
        let timeline = match wishes.population {
            Some(_) => Some(self.endless(&course.adaptations, Some(steered.index))?),
            None => None,
        };
        let ends_ns = self.ends_ns(&course, None);
        let change = Change { at_ns, clock: course.clock.clone(), timeline, ends_ns };
        let population = wishes.population.or(steered.population);
        Ok(Some(Proposal { change, notes, course, population, closes: false }))
    }

    /// The end of the phase, for announcing at a moment before it; if that has become too late, the end is put off.
    pub fn propose_end(&self, at_ns: u64) -> Result<Option<Proposal>, ScheduleError> {
        let steered = self.phase.as_ref().filter(|steered| !steered.closed);
        let (Some(steered), Some(end_ns)) = (steered, self.course.end_ns) else { return Ok(None) };
        let mut course = self.course.clone();
        let end_ns = end_ns.max(at_ns);
        course.end_ns = Some(end_ns);
        self.place_end(&mut course, steered)?;
        let following = self.next_adapting(steered.index + 1);
        let timeline = Some(self.endless(&course.adaptations, following)?);
        let mut clock = course.clock.clone();
        clock.change(end_ns, 1.0);
        let ends_ns = self.ends_ns(&Course { clock: clock.clone(), ..course.clone() }, Some(end_ns));
        let note = self.note(Decided::End, end_ns, 0.0);
        let change = Change { at_ns, clock, timeline, ends_ns };
        let population = steered.population;
        Ok(Some(Proposal { change, notes: vec![note], course, population, closes: true }))
    }

    /// A proposal was announced: it holds.
    pub fn settle(&mut self, proposal: Proposal) -> Vec<Adapted> {
        let Proposal { course, population, closes, notes, .. } = proposal;
        self.course = course;
        if let Some(steered) = &mut self.phase {
            steered.population = population;
            steered.closed |= closes;
            steered.since = Sample::default();
        }
        notes
    }

    fn note(&self, what: Decided, at_ns: u64, value: f64) -> Adapted {
        let Some(steered) = &self.phase else { return Adapted::default() };
        let responses = steered.since.class(Class::Rep);
        let mean_us = || (responses.time_s.sum / responses.count as f64 * 1e6) as u64;
        Adapted {
            at_ms: at_ns / 1_000_000,
            schedule_ns: self.course.clock.schedule_ns(at_ns).saturating_sub(steered.begin_schedule_ns),
            phase: steered.index,
            what,
            value,
            response_us: (responses.count > 0).then(mean_us),
            text: String::new(),
        }
    }

    /// When the phase ends by its goals: a duration in real time, counts where the schedule expects them.
    fn find_end(&self, course: &Course, steered: &Steered) -> Result<Option<u64>, ScheduleError> {
        let phase = &self.workload.schedule.phases[usize::from(steered.index)];
        let real_ns = |schedule_ns: u64| course.clock.real_ns(schedule_ns);
        let duration = phase.goal.duration.filter(|duration| !duration.is_zero());
        let mut end_ns = duration.map(|duration| steered.begin_ns + nanoseconds(duration));
        let counted = self.counted_length_ns(course, steered)?;
        let counted_ns = counted.and_then(|length_ns| real_ns(steered.begin_schedule_ns + length_ns));
        end_ns = end_ns.into_iter().chain(counted_ns).min();
        if phase.wait_for_freeze {
            let endless = self.endless(&course.adaptations, Some(steered.index))?;
            if let Freeze::At(at) = endless.freeze() {
                end_ns = end_ns.and_then(|end_ns| Some(end_ns.max(real_ns(nanoseconds(at))?)));
            }
        }
        let longest_ns = steered.begin_schedule_ns + nanoseconds(ENDLESS);
        Ok(end_ns.into_iter().chain(real_ns(longest_ns)).min())
    }

    /// How much of the schedule it takes until the counts of the phase's goal are expected; none: it has none.
    fn counted_length_ns(&self, course: &Course, steered: &Steered) -> Result<Option<u64>, ScheduleError> {
        let goal = &self.workload.schedule.phases[usize::from(steered.index)].goal;
        let (xacts, fill) = (goal.transactions.unwrap_or(0), goal.fill_bytes.unwrap_or(0));
        if xacts == 0 && fill == 0 {
            return Ok(None);
        }
        let reached = |length_ns: u64| -> Result<bool, ScheduleError> {
            let mut adaptations = course.adaptations.clone();
            adaptation(&mut adaptations, steered.index).length = Some(Duration::from_nanos(length_ns));
            let timeline = Timeline::with(&self.workload, self.options, &adaptations)?;
            let expected = timeline.phases()[usize::from(steered.index)].expected.unwrap_or_default();
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
    fn place_end(&self, course: &mut Course, steered: &Steered) -> Result<(), ScheduleError> {
        let length = match course.end_ns {
            Some(end_ns) => course.clock.schedule_length(steered.begin_schedule_ns, end_ns),
            None => ENDLESS,
        };
        adaptation(&mut course.adaptations, steered.index).length = Some(length.max(Duration::from_nanos(1)));
        course.timeline = Arc::new(Timeline::with(&self.workload, self.options, &course.adaptations)?);
        Ok(())
    }

    /// The schedule in which a phase does not end.
    fn endless(
        &self,
        adaptations: &[Adaptation],
        phase: Option<u16>,
    ) -> Result<Arc<Timeline>, ScheduleError> {
        let mut adaptations = adaptations.to_vec();
        if let Some(phase) = phase {
            let placed = self.course.timeline.phases().get(usize::from(phase));
            if placed.is_some_and(|span| span.start.is_some() && span.end.is_some()) {
                adaptation(&mut adaptations, phase).length = Some(ENDLESS);
            }
        }
        Timeline::with(&self.workload, self.options, &adaptations).map(Arc::new)
    }

    /// The first phase from `first` on that adapts.
    fn next_adapting(&self, first: u16) -> Option<u16> {
        let phases = self.workload.schedule.phases.iter().enumerate().skip(usize::from(first));
        phases.filter(|(_, phase)| phase_adapts(phase)).map(|(index, _)| index as u16).next()
    }

    /// When each phase ends: those before the one that is steered, that one if its end is given, and those after it up to
    /// the next that adapts.
    fn ends_ns(&self, course: &Course, closing_ns: Option<u64>) -> Vec<Option<u64>> {
        let steered = self.phase.as_ref().map(|steered| steered.index);
        let mut known = true;
        let end = |(index, span): (usize, &assay_workload::PhaseSpan)| {
            let is_before = steered.is_some_and(|steered| index < usize::from(steered));
            let is_steered = steered.is_some_and(|steered| index == usize::from(steered));
            let end_ns = || span.end.and_then(|end| course.clock.real_ns(nanoseconds(end)));
            if is_before {
                return self.begins_ns.get(index + 1).copied();
            }
            if is_steered && let Some(closing_ns) = closing_ns {
                return Some(closing_ns);
            }
            known &= !(phase_adapts(&self.workload.schedule.phases[index]) && span.end.is_some());
            if known { end_ns() } else { None }
        };
        course.timeline.phases().iter().enumerate().map(end).collect()
    }
}

/// The entry of a phase, made when it is first needed.
fn adaptation(adaptations: &mut Vec<Adaptation>, phase: u16) -> &mut Adaptation {
    let at = adaptations.iter().position(|adaptation| adaptation.phase == phase).unwrap_or_else(|| {
        adaptations.push(Adaptation { phase, ..Adaptation::default() });
        adaptations.len() - 1
    });
    &mut adaptations[at]
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "steering_tests.rs"]
mod tests;
