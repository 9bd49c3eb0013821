//! Phases and the working set.

use std::time::Duration;

use assay_workload::model::{Goal, Phase, Ramp, Schedule, Thermostat, WorkingSet};

use super::{Builder, Names};
use crate::diagnostic::{Code, Diagnostic};
use crate::eval::Registered;
use crate::source::Span;
use crate::value::Record;

/// What each factor has reached at the end of the phases so far.
#[derive(Debug, Clone, Copy)]
struct Reached {
    load: f64,
    recurrence: f64,
    population: f64,
    special: f64,
}

impl Builder<'_> {
    /// The schedule. Where nothing is scheduled, Web Polygraph's default phase.
    pub(super) fn schedule(&mut self, registered: &Registered) -> Schedule {
        let mut reached = Reached { load: 1.0, recurrence: 1.0, population: 1.0, special: 1.0 };
        let mut names = Names::default();
        let mut phases: Vec<Phase> = registered
            .scheduled
            .iter()
            .enumerate()
            .map(|(index, (record, span))| {
                let script = registered.scripts.get(index).cloned().flatten();
                Phase { script, ..self.phase(record, *span, &mut reached, &mut names) }
            })
            .collect();
        if phases.is_empty() {
            phases.push(Phase::default_phase(Goal::ENDLESS));
        }
        Schedule { phases, working_set: self.working_set(registered) }
    }

    fn working_set(&mut self, registered: &Registered) -> WorkingSet {
        match (registered.working_set_length, registered.working_set_cap) {
            (Some((seconds, span)), _) => match Duration::try_from_secs_f64(seconds) {
                Ok(length) => WorkingSet::FrozenAfter(length),
                Err(_) => {
                    self.error(
                        Code::OutOfRange,
                        span,
                        "this time is too long",
                        "the working set is never frozen",
                    );
                    WorkingSet::Grows
                }
            },
            (None, Some((cap, _))) => WorkingSet::FrozenAtFill(u64::from(cap.unsigned_abs())),
            (None, None) => WorkingSet::Grows,
        }
    }

    fn phase(&mut self, record: &Record, span: Span, reached: &mut Reached, names: &mut Names) -> Phase {
        self.note_fields(record);
        let goal = self.goal(record);
        let positive = goal.duration.is_some() || goal.transactions.is_some() || goal.fill_bytes.is_some();
        let load = self.ramp(record, "load_factor", &mut reached.load, positive);
        let recurrence = self.ramp(record, "recur_factor", &mut reached.recurrence, positive);
        let population = self.ramp(record, "populus_factor", &mut reached.population, positive);
        let special = self.ramp(record, "special_msg_factor", &mut reached.special, positive);
        let name = self.phase_name(record, span, names);
        if !positive && !self.diagnostics.failed() {
            self.diagnostics.add(
                Diagnostic::warning(Code::Schedule, span, format!("the phase `{name}` has no goal"))
                    .label("it never ends by itself")
                    .help("set `goal.duration`, `goal.xactions` or `goal.fill_size`"),
            );
        }
        if self.truth(record, "synchronize") == Some(false) {
            let at = record.get("synchronize").map_or(span, |slot| slot.span);
            self.not_acted_on(
                "Phase.synchronize",
                at,
                "all robots share one schedule, so phases are synchronised",
            );
        }
        Phase {
            name,
            goal,
            load,
            recurrence,
            population,
            special,
            log_stats: self.truth(record, "log_stats").unwrap_or(true),
            primary: self.truth(record, "primary").unwrap_or(false),
            wait_for_freeze: self.truth(record, "wait_wss_freeze").unwrap_or(false),
            thermostat: self.thermostat(record),
            script: None,
        }
    }

    /// `rptmstat`.
    fn thermostat(&mut self, phase: &Record) -> Option<Thermostat> {
        let record = self.object(phase, "rptmstat")?;
        let span = self.place(phase, "rptmstat");
        self.note_fields(record);
        let sampled =
            self.require(record, "sample_dur", span, "say how long a sample is: `sample_dur = 1min;`");
        let stepped =
            self.require(record, "load_delta", span, "say how far the load moves: `load_delta = 2%;`");
        let low = self.duration(record, "rptm_min", false);
        let high = self.duration(record, "rptm_max", false);
        let bounded = record.get("rptm_min").is_some() || record.get("rptm_max").is_some();
        if !bounded {
            self.error(
                Code::Required,
                span,
                "this `Rptmstat` has no bounds",
                "`rptm_min` or `rptm_max` must be set",
            );
        }
        if let (Some(low), Some(high)) = (low, high)
            && low > high
        {
            self.error(
                Code::OutOfRange,
                self.place(record, "rptm_max"),
                "the bounds of this `Rptmstat` are the wrong way round",
                "expected `rptm_min` below `rptm_max`",
            );
        }
        let sample = self.duration(record, "sample_dur", false);
        let step = self.share(record, "load_delta");
        if !sampled || !stepped || !bounded {
            return None;
        }
        Some(Thermostat { sample: sample?, step: step?, low, high })
    }

    fn goal(&mut self, record: &Record) -> Goal {
        match self.object(record, "goal") {
            Some(goal) => super::goal(goal, self.diagnostics),
            None => Goal::default(),
        }
    }

    /// A factor: it begins where it was left, and stays there, unless said otherwise.
    fn ramp(&mut self, record: &Record, factor: &str, reached: &mut f64, positive_goal: bool) -> Ramp {
        let (begin, end) = (format!("{factor}_beg"), format!("{factor}_end"));
        let begin = self.share(record, &begin).unwrap_or(*reached);
        let end_value = self.share(record, &end).unwrap_or(begin);
        if begin != end_value && !positive_goal && !self.goal_is_broken(record) {
            let at = record.get(&end).map_or(Span::default(), |slot| slot.span);
            self.diagnostics.add(
                Diagnostic::error(Code::Schedule, at, "a factor can only change on the way to a goal")
                    .label(format!("it goes from {begin} to {end_value}, but the phase has no goal"))
                    .help("set `goal.duration`, `goal.xactions` or `goal.fill_size`"),
            );
        }
        *reached = end_value;
        Ramp { begin, end: end_value }
    }

    /// True when a goal is set, but was reported as broken or out of range.
    fn goal_is_broken(&self, record: &Record) -> bool {
        let set = |goal: &Record| {
            ["duration", "xactions", "fill_size"].iter().any(|field| goal.get(field).is_some())
        };
        record.get("goal").is_some_and(|slot| slot.value.is_broken())
            || self.object(record, "goal").is_some_and(set)
    }

    /// A name that no other phase has.
    fn phase_name(&mut self, record: &Record, span: Span, names: &mut Names) -> String {
        let given = self.text(record, "name").filter(|name| !name.is_empty());
        let name = given.unwrap_or_else(|| "phase".to_owned());
        let unique = names.unique(&name);
        if unique == name {
            return name;
        }
        self.warn(
            Code::Duplicate,
            span,
            format!("another phase is called `{name}`"),
            format!("this one is called `{unique}` in results"),
        );
        unique
    }
}
