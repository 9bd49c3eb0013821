//! Functions and procedures of scripts: reading and changing the running phase.

use assay_workload::model::{Goal, ScriptExpr, ScriptStatement};

use super::runtime;
use crate::ast::{Call, Expr};
use crate::diagnostic::{Code, Diagnostic};
use crate::eval::functions::Argument;
use crate::eval::{ErrorReported, EvalResult, Interpreter};
use crate::schema::{Base, RecordKind, Ty};
use crate::source::Span;
use crate::value::Value;

impl Interpreter<'_> {
    /// Reports a call that only a script may contain.
    fn require_script(&mut self, call: &Call, does: &str) -> EvalResult<()> {
        if self.script.is_some() {
            return Ok(());
        }
        self.fail(
            Diagnostic::error(
                Code::Misplaced,
                call.span,
                format!("`{}()` {does} a running phase", call.name.text),
            )
            .label("only the script of a phase may call it"),
        )
    }

    /// `currentLoadFactor()` and `currentPopulusFactor()`.
    pub(in crate::eval) fn current_factor(&mut self, call: &Call, factor: ScriptExpr) -> EvalResult<Value> {
        self.require_script(call, "asks about")?;
        Ok(runtime::runtime_value(factor, Base::Float, None))
    }

    /// `currentSample()` and `currentPhase()`.
    pub(in crate::eval) fn current_statistics(
        &mut self,
        call: &Call,
        whole_phase: bool,
    ) -> EvalResult<Value> {
        self.require_script(call, "asks about")?;
        let every = self.script.as_ref().map_or(0, |state| state.every);
        if !whole_phase && every == 0 {
            return self.fail(
                Diagnostic::error(Code::Misplaced, call.span, "there is no sample outside of `every`")
                    .label("expected `every goal do { }` around it")
                    .help("`currentPhase()` has the statistics since the phase began"),
            );
        }
        Ok(Value::SampleRequest { whole_phase })
    }

    /// `changeLoadFactorBy()`, `setLoadFactorTo()`, `changePopulusFactorBy()` and `setPopulusFactorTo()`.
    pub(in crate::eval) fn set_factor(
        &mut self,
        call: &Call,
        arguments: &[Argument],
        make: fn(ScriptExpr) -> ScriptStatement,
    ) -> EvalResult<()> {
        self.require_script(call, "changes")?;
        let [argument] = arguments else { return Err(ErrorReported) };
        let value = match self.runtime_value_as(&argument.value, Ty::one(Base::Float)) {
            Some(value) => value,
            None => self.argument(argument, Base::Float)?,
        };
        let Some(value) = runtime::script_expr(&value) else { return Err(ErrorReported) };
        self.emit(make(value));
        Ok(())
    }

    pub(in crate::eval) fn set_sampling_goal(
        &mut self,
        call: &Call,
        arguments: &[Argument],
    ) -> EvalResult<()> {
        self.require_script(call, "changes")?;
        if self.script.as_ref().is_none_or(|state| state.every == 0) {
            return self.fail(
                Diagnostic::error(Code::Misplaced, call.span, "there is no sample outside of `every`")
                    .label("expected `every goal do { }` around it"),
            );
        }
        let [argument] = arguments else { return Err(ErrorReported) };
        let goal = self.sampling_goal(argument.value.clone(), argument.span)?;
        self.emit(ScriptStatement::SampleGoal(goal));
        Ok(())
    }

    /// `reachedPositiveGoal([reason])`.
    pub(in crate::eval) fn end_phase(&mut self, call: &Call, arguments: &[Argument]) -> EvalResult<()> {
        self.require_script(call, "ends")?;
        if let Some(reason) = arguments.first() {
            let text = self.argument(reason, Base::Text)?.to_string();
            self.emit(ScriptStatement::Print(vec![ScriptExpr::Text(text)]));
        }
        self.emit(ScriptStatement::EndPhase);
        Ok(())
    }

    /// `print(...)` in a script.
    pub(in crate::eval) fn emit_print(&mut self, arguments: &[Argument]) {
        let part = |argument: &Argument| match &argument.value {
            Value::RuntimeNumber(number) => number.expr.clone(),
            known => ScriptExpr::Text(known.to_string()),
        };
        self.emit(ScriptStatement::Print(arguments.iter().map(part).collect()));
    }

    /// `printV(level, ...)`: prints nothing at levels above zero, like Web Polygraph at its default verbosity.
    pub(in crate::eval) fn print_at_level(&mut self, call: &Call, arguments: &[Argument]) -> EvalResult<()> {
        self.require_script(call, "reports on")?;
        let Some((level, rest)) = arguments.split_first() else { return Err(ErrorReported) };
        match self.argument(level, Base::Int)? {
            Value::Int(level) if level <= 0 => self.emit_print(rest),
            _ => {}
        }
        Ok(())
    }

    /// The goal of `every`.
    pub(super) fn goal_value(&mut self, expr: &Expr) -> EvalResult<Goal> {
        let value = self.value(expr)?;
        self.sampling_goal(value, expr.span)
    }

    fn sampling_goal(&mut self, value: Value, span: Span) -> EvalResult<Goal> {
        let Value::Record(record) = self.fit(value, Ty::one(Base::Record(RecordKind::Goal)), span)? else {
            return Err(ErrorReported);
        };
        let goal = crate::build::goal(&record, self.diagnostics);
        let reached = goal.duration.is_some()
            || goal.transactions.is_some()
            || goal.fill_bytes.is_some()
            || goal.errors.is_some();
        if !reached && !self.diagnostics.has_errors() {
            return self.fail(
                Diagnostic::error(Code::Required, span, "this goal is never reached")
                    .label("expected `duration`, `xactions`, `fill_size` or `errors` to be set"),
            );
        }
        Ok(goal)
    }
}
