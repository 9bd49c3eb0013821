//! Phases and the working set.

use std::time::Duration;

use assay_workload::model::{Goal, Phase, Ramp, Schedule, Thermostat, WorkingSet};

use super::{Builder, UniqueNames};
use crate::diagnostic::{Code, Diagnostic};
use crate::eval::Registrations;
use crate::source::Span;
use crate::value::Record;

/// Factors at the end of the last phase, at which those of the next phase begin.
#[derive(Debug, Clone, Copy)]
struct FactorLevels {
    load: f64,
    recurrence: f64,
    population: f64,
    special: f64,
}

impl Builder<'_> {
    /// The schedule; if nothing is scheduled, Web Polygraph's default phase.
    pub(super) fn schedule(&mut self, registrations: &Registrations) -> Schedule {
        let mut levels = FactorLevels { load: 1.0, recurrence: 1.0, population: 1.0, special: 1.0 };
        let mut names = UniqueNames::default();
        let mut phases: Vec<Phase> = registrations
            .scheduled
            .iter()
            .enumerate()
            .map(|(index, (record, span))| {
                let script = registrations.scripts.get(index).cloned().flatten();
                Phase { script, ..self.phase(record, *span, &mut levels, &mut names) }
            })
            .collect();
        if phases.is_empty() {
            phases.push(Phase::default_phase(Goal::ENDLESS));
        }
        Schedule { phases, working_set: self.working_set(registrations) }
    }

    fn working_set(&mut self, registrations: &Registrations) -> WorkingSet {
        match (registrations.working_set_length, registrations.working_set_cap) {
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

    fn phase(
        &mut self,
        record: &Record,
        span: Span,
        levels: &mut FactorLevels,
        names: &mut UniqueNames,
    ) -> Phase {
        self.warn_unsupported_fields(record);
        let goal = self.goal(record);
        let has_goal = goal.duration.is_some() || goal.transactions.is_some() || goal.fill_bytes.is_some();
        let load = self.ramp(record, "load_factor", &mut levels.load, has_goal);
        let recurrence = self.ramp(record, "recur_factor", &mut levels.recurrence, has_goal);
        let population = self.ramp(record, "populus_factor", &mut levels.population, has_goal);
        let special = self.ramp(record, "special_msg_factor", &mut levels.special, has_goal);
        let name = self.phase_name(record, span, names);
        if !has_goal && !self.diagnostics.has_errors() {
            self.diagnostics.add(
                Diagnostic::warning(Code::Schedule, span, format!("the phase `{name}` has no goal"))
                    .label("it never ends by itself")
                    .help("set `goal.duration`, `goal.xactions` or `goal.fill_size`"),
            );
        }
        if self.boolean(record, "synchronize") == Some(false) {
            let at = record.get("synchronize").map_or(span, |slot| slot.span);
            self.warn_unsupported(
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
            log_stats: self.boolean(record, "log_stats").unwrap_or(true),
            primary: self.boolean(record, "primary").unwrap_or(false),
            wait_for_freeze: self.boolean(record, "wait_wss_freeze").unwrap_or(false),
            thermostat: self.thermostat(record),
            script: None,
        }
    }

    /// `rptmstat`.
    fn thermostat(&mut self, phase: &Record) -> Option<Thermostat> {
        let record = self.object(phase, "rptmstat")?;
        let span = self.field_span(phase, "rptmstat");
        self.warn_unsupported_fields(record);
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
                self.field_span(record, "rptm_max"),
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

    /// A factor, which starts at the last phase's end and is constant by default.
    fn ramp(&mut self, record: &Record, factor: &str, levels: &mut f64, has_goal: bool) -> Ramp {
        let (begin, end) = (format!("{factor}_beg"), format!("{factor}_end"));
        let begin = self.share(record, &begin).unwrap_or(*levels);
        let end_value = self.share(record, &end).unwrap_or(begin);
        if begin != end_value && !has_goal && !self.goal_is_broken(record) {
            let at = record.get(&end).map_or(Span::default(), |slot| slot.span);
            self.diagnostics.add(
                Diagnostic::error(Code::Schedule, at, "a factor can only change on the way to a goal")
                    .label(format!("it goes from {begin} to {end_value}, but the phase has no goal"))
                    .help("set `goal.duration`, `goal.xactions` or `goal.fill_size`"),
            );
        }
        *levels = end_value;
        Ramp { begin, end: end_value }
    }

    /// True for a goal that is set, but not valid, which was reported.
    fn goal_is_broken(&self, record: &Record) -> bool {
        let set = |goal: &Record| {
            ["duration", "xactions", "fill_size"].iter().any(|field| goal.get(field).is_some())
        };
        record.get("goal").is_some_and(|slot| slot.value.is_broken())
            || self.object(record, "goal").is_some_and(set)
    }

    /// A unique name for a phase; warns if its own is taken.
    fn phase_name(&mut self, record: &Record, span: Span, names: &mut UniqueNames) -> String {
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
