//! What scripts do to a running phase, and what they read of it.

use assay_workload::model::{Goal, ScriptExpr, ScriptStatement};

use super::measured;
use crate::ast::{Call, Expr};
use crate::diagnostic::{Code, Diagnostic};
use crate::eval::argument::Argument;
use crate::eval::{Evaluated, Interpreter, Reported};
use crate::schema::{Base, RecordKind, Ty};
use crate::source::Span;
use crate::value::Value;

impl Interpreter<'_> {
    /// Complains about a call that only a script may have.
    fn only_in_script(&mut self, call: &Call, does: &str) -> Evaluated<()> {
        if self.script.is_some() {
            return Ok(());
        }
        self.fail(
            Diagnostic::error(
                Code::NotHere,
                call.span,
                format!("`{}()` {does} a running phase", call.name.text),
            )
            .label("only the script of a phase may call it"),
        )
    }

    /// `currentLoadFactor()` and `currentPopulusFactor()`.
    pub(in crate::eval) fn current_factor(&mut self, call: &Call, factor: ScriptExpr) -> Evaluated<Value> {
        self.only_in_script(call, "asks about")?;
        Ok(measured::value(factor, Base::Float))
    }

    /// `currentSample()` and `currentPhase()`.
    pub(in crate::eval) fn current_statistics(&mut self, call: &Call, whole_phase: bool) -> Evaluated<Value> {
        self.only_in_script(call, "asks about")?;
        let every = self.script.as_ref().map_or(0, |state| state.every);
        if !whole_phase && every == 0 {
            return self.fail(
                Diagnostic::error(Code::NotHere, call.span, "there is no sample outside of `every`")
                    .label("expected `every goal do { }` around it")
                    .help("`currentPhase()` has the statistics since the phase began"),
            );
        }
        Ok(Value::Taken { whole_phase })
    }

    /// `changeLoadFactorBy()`, `setLoadFactorTo()`, and the same for the population.
    pub(in crate::eval) fn set_factor(
        &mut self,
        call: &Call,
        arguments: &[Argument],
        make: fn(ScriptExpr) -> ScriptStatement,
    ) -> Evaluated<()> {
        self.only_in_script(call, "changes")?;
        let [argument] = arguments else { return Err(Reported) };
        let value = match self.measured_as(&argument.value, Ty::one(Base::Float)) {
            Some(value) => value,
            None => self.argument(argument, Base::Float)?,
        };
        let Some(value) = measured::expr_of(&value) else { return Err(Reported) };
        self.emit(make(value));
        Ok(())
    }

    /// `setSamplingGoalTo(goal)`.
    pub(in crate::eval) fn set_sampling_goal(
        &mut self,
        call: &Call,
        arguments: &[Argument],
    ) -> Evaluated<()> {
        self.only_in_script(call, "changes")?;
        if self.script.as_ref().is_none_or(|state| state.every == 0) {
            return self.fail(
                Diagnostic::error(Code::NotHere, call.span, "there is no sample outside of `every`")
                    .label("expected `every goal do { }` around it"),
            );
        }
        let [argument] = arguments else { return Err(Reported) };
        let goal = self.goal_of(argument.value.clone(), argument.span)?;
        self.emit(ScriptStatement::SampleGoal(goal));
        Ok(())
    }

    /// `reachedPositiveGoal([reason])`.
    pub(in crate::eval) fn end_phase(&mut self, call: &Call, arguments: &[Argument]) -> Evaluated<()> {
        self.only_in_script(call, "ends")?;
        if let Some(reason) = arguments.first() {
            let text = self.argument(reason, Base::Text)?.to_string();
            self.emit(ScriptStatement::Print(vec![ScriptExpr::Text(text)]));
        }
        self.emit(ScriptStatement::EndPhase);
        Ok(())
    }

    /// `print(...)` in a script.
    pub(in crate::eval) fn print_later(&mut self, arguments: &[Argument]) {
        let part = |argument: &Argument| match &argument.value {
            Value::Measured(measured) => measured.expr.clone(),
            known => ScriptExpr::Text(known.to_string()),
        };
        self.emit(ScriptStatement::Print(arguments.iter().map(part).collect()));
    }

    /// `printV(level, ...)`: nothing is said about levels above zero, as by Web Polygraph unless it is told to.
    pub(in crate::eval) fn print_at_level(&mut self, call: &Call, arguments: &[Argument]) -> Evaluated<()> {
        self.only_in_script(call, "reports on")?;
        let Some((level, rest)) = arguments.split_first() else { return Err(Reported) };
        match self.argument(level, Base::Int)? {
            Value::Int(level) if level <= 0 => self.print_later(rest),
            _ => {}
        }
        Ok(())
    }

    /// The goal of `every`.
    pub(super) fn goal_value(&mut self, expr: &Expr) -> Evaluated<Goal> {
        let value = self.value(expr)?;
        self.goal_of(value, expr.span)
    }

    fn goal_of(&mut self, value: Value, span: Span) -> Evaluated<Goal> {
        let Value::Record(record) = self.fit(value, Ty::one(Base::Record(RecordKind::Goal)), span)? else {
            return Err(Reported);
        };
        let goal = crate::build::goal(&record, self.diagnostics);
        let reached = goal.duration.is_some()
            || goal.transactions.is_some()
            || goal.fill_bytes.is_some()
            || goal.errors.is_some();
        if !reached && !self.diagnostics.failed() {
            return self.fail(
                Diagnostic::error(Code::Required, span, "this goal is never reached")
                    .label("expected `duration`, `xactions`, `fill_size` or `errors` to be set"),
            );
        }
        Ok(goal)
    }
}
