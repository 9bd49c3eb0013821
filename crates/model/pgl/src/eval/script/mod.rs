//! Compiler of the scripts of phases, by partial evaluation.
//!
//! A script is interpreted once, like the program itself, with symbolic values for numbers that are known only while the
//! phase runs ([`Value::RuntimeNumber`]). Operations on those become statements of the compiled script; both branches of an
//! `if` that depends on one are interpreted. Numbers may depend on measurements; objects and strings must be constant.

use std::collections::HashSet;
use std::rc::Rc;

use assay_workload::model::{Script, ScriptExpr, ScriptStatement};

use super::lookup::{AssignmentTarget, TargetRoot};
use super::{ErrorReported, EvalResult, Interpreter};
use crate::ast::{Block, Expr, Name, StatementKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::{Base, RecordKind, Ty};
use crate::source::Span;
use crate::value::{Frame, Record, RuntimeNumber, ScriptCode, Value};

mod actions;
pub(super) mod runtime;
mod statistics;

/// Variables of one script; also samples of one script.
const MAX_VARIABLES: u16 = 10_000;
/// Nested blocks of `every`.
const MAX_EVERY: u32 = 8;

/// State of the compilation of one script.
#[derive(Debug, Default)]
pub(super) struct ScriptCompiler {
    /// Statements of the block that is being compiled.
    out: Vec<ScriptStatement>,
    variables: u16,
    samples: u16,
    /// Enclosing blocks of `every`.
    every: u32,
    /// Index of the first frame with names of the script.
    base: usize,
    /// Argument of `schedule()` that is the phase.
    phase: Span,
    /// Names that the script assigns.
    assigned: HashSet<Rc<str>>,
}

/// Error about a runtime number where a value of another type is wanted.
pub(super) fn runtime_mismatch(value: &Value, ty: Ty, span: Span) -> Diagnostic {
    match (value, runtime::number_base(ty)) {
        (Value::RuntimeNumber(number), Some(base)) if number.base != base => {
            let found = value.type_name();
            let whole = base == Base::Int && number.base == Base::Float;
            Diagnostic::error(Code::TypeMismatch, span, format!("expected {}, found {found}", ty.name()))
                .label(format!("this is {found}"))
                .maybe_help(whole.then(|| "`int(x)` cuts off what is behind the point".to_owned()))
        }
        _ => not_constant(value, span),
    }
}

/// Error about a runtime value where a constant is wanted.
fn not_constant(value: &Value, span: Span) -> Diagnostic {
    let found = value.type_name();
    Diagnostic::error(Code::Misplaced, span, format!("{found} is only known while the phase runs"))
        .label("this must be known when the workload is compiled")
        .help("conditions, printed values, and the factors that a script sets may depend on what is measured")
}

/// Error about an object whose value depends on a measured condition.
pub(super) fn uncertain_name(name: &Name) -> Diagnostic {
    Diagnostic::error(
        Code::Misplaced,
        name.span,
        format!("what `{}` is depends on what was measured", name.text),
    )
    .label("only numbers may depend on it")
    .help("declare the object in the block that needs it")
}

impl Interpreter<'_> {
    /// Compiles the scripts of all scheduled phases.
    pub(super) fn compile_scripts(&mut self) {
        let code_of = |phase: &Record| match phase.get("script").map(|slot| &slot.value) {
            Some(Value::Code(code)) => Some(code.clone()),
            _ => None,
        };
        let phases = &self.registrations.scheduled;
        let codes: Vec<_> = phases.iter().map(|(phase, span)| (code_of(phase), *span)).collect();
        let mut last: Option<(Rc<ScriptCode>, Script)> = None;
        for (code, phase) in codes {
            let script = code.map(|code| match &last {
                Some((same, script)) if Rc::ptr_eq(same, &code) => script.clone(),
                _ => {
                    let script = self.compile_script(&code, phase);
                    last = Some((code, script.clone()));
                    script
                }
            });
            self.registrations.scripts.push(script.filter(|script| !script.0.is_empty()));
        }
    }

    fn compile_script(&mut self, code: &ScriptCode, phase: Span) -> Script {
        self.frames.truncate(1);
        self.frames.extend(code.frames.iter().cloned());
        let mut assigned = HashSet::new();
        assigned_names(&code.block, &mut assigned);
        self.script =
            Some(ScriptCompiler { base: self.frames.len(), phase, assigned, ..ScriptCompiler::default() });
        self.frames.push(Frame::default());
        self.copy_assigned();
        self.block(&code.block);
        self.frames.truncate(1);
        Script(self.script.take().map_or_else(Vec::new, |state| state.out))
    }

    /// Gives the script a copy of each outer variable that it assigns, so that every phase begins with the program's value.
    fn copy_assigned(&mut self) {
        let Some(state) = &self.script else { return };
        let mut names: Vec<Rc<str>> = state.assigned.iter().cloned().collect();
        names.sort_unstable();
        for name in names {
            let Some((TargetRoot::Local { frame, name }, ty)) = self.root(&name) else { continue };
            let Some(outer) = self.frames.get(frame).and_then(|frame| frame.names.get(&name)) else {
                continue;
            };
            let mut own = outer.clone();
            own.value = self.runtime_variable(ty, own.value);
            if let Some(frame) = self.frames.last_mut() {
                frame.names.insert(name, own);
            }
        }
    }

    fn emit(&mut self, statement: ScriptStatement) {
        if let Some(state) = &mut self.script {
            state.out.push(statement);
        }
    }

    /// The value of a variable that a script declares.
    pub(super) fn script_variable(&mut self, name: &Name, ty: Option<Ty>, first: Value) -> Value {
        let assigned = self.script.as_ref().is_some_and(|state| state.assigned.contains(&name.text));
        match first {
            Value::RuntimeNumber(_) | Value::SampleRequest { .. } => self.runtime_variable(ty, first),
            first if assigned => self.runtime_variable(ty, first),
            first => first,
        }
    }

    /// Allocates a runtime variable for a number, or takes a sample; other values stay constant.
    fn runtime_variable(&mut self, ty: Option<Ty>, first: Value) -> Value {
        if let Value::SampleRequest { whole_phase } = first {
            return self.emit_sample(whole_phase);
        }
        let Some(base) = ty.and_then(runtime::number_base) else { return first };
        let Some(number) = self.next_number(|state| &mut state.variables) else { return Value::Broken };
        if let Some(value) = runtime::script_expr(&first) {
            self.emit(ScriptStatement::Set { variable: number, value });
        }
        runtime::runtime_value(ScriptExpr::Variable(number), base, runtime::unit(&first))
    }

    fn emit_sample(&mut self, whole_phase: bool) -> Value {
        let Some(variable) = self.next_number(|state| &mut state.samples) else { return Value::Broken };
        self.emit(ScriptStatement::TakeSample { variable, whole_phase });
        Value::Sample(variable)
    }

    fn next_number(&mut self, of: fn(&mut ScriptCompiler) -> &mut u16) -> Option<u16> {
        let state = self.script.as_mut()?;
        let counter = of(state);
        let number = *counter;
        *counter += u16::from(number < MAX_VARIABLES);
        if number >= MAX_VARIABLES {
            let diagnostic = Diagnostic::error(Code::TooMany, state.phase, "a script has too many variables")
                .label(format!("its phase; at most {MAX_VARIABLES}"));
            self.diagnostics.add_once("script variables", diagnostic);
            return None;
        }
        Some(number)
    }

    /// A runtime value as a value of a type; none if it is a constant, or does not fit.
    pub(super) fn runtime_value_as(&self, value: &Value, ty: Ty) -> Option<Value> {
        self.script.as_ref()?;
        match value {
            Value::SampleRequest { .. } | Value::Sample(_) if ty.record() == Some(RecordKind::StatSample) => {
                Some(value.clone())
            }
            Value::RuntimeNumber(number) => runtime::widen(number, runtime::number_base(ty)?),
            _ => None,
        }
    }

    /// Assigns a value: to a field or variable now, or to a runtime variable when the script runs.
    pub(super) fn store(&mut self, target: &AssignmentTarget, value: Value, span: Span) -> EvalResult<()> {
        if self.script.is_none() {
            self.write_target(target, value, span);
            return Ok(());
        }
        let value = match value {
            Value::SampleRequest { whole_phase } if target.fields.is_empty() => self.emit_sample(whole_phase),
            value => value,
        };
        if target.fields.is_empty()
            && let Value::RuntimeNumber(assigned) = self.read_target(target)
            && let ScriptExpr::Variable(variable) = assigned.expr
        {
            let Some(value) = runtime::script_expr(&value) else { return Err(ErrorReported) };
            self.emit(ScriptStatement::Set { variable, value });
            return Ok(());
        }
        if matches!(value, Value::RuntimeNumber(_)) {
            return self.fail(not_constant(&value, span));
        }
        if let TargetRoot::Local { frame, name } = &target.root
            && let Some(variable) = self.frames.get_mut(*frame).and_then(|frame| frame.names.get_mut(name))
            && target.fields.is_empty()
        {
            variable.uncertain = false;
        }
        self.write_target(target, value, span);
        Ok(())
    }

    /// Compiles a nested block, in a scope of its own.
    fn inner_block(&mut self, block: &Block) -> Vec<ScriptStatement> {
        let Some(state) = &mut self.script else { return vec![] };
        let outer = std::mem::take(&mut state.out);
        self.frames.push(Frame::default());
        self.block(block);
        self.frames.pop();
        let Some(state) = &mut self.script else { return vec![] };
        std::mem::replace(&mut state.out, outer)
    }

    /// A copy of the scopes of the script.
    fn own_frames(&self) -> Vec<Frame> {
        let base = self.script.as_ref().map_or(self.frames.len(), |state| state.base);
        self.frames.get(base..).map_or_else(Vec::new, <[Frame]>::to_vec)
    }

    /// Restores the scopes from before a conditional block. Variables that the block has changed are uncertain from here on.
    fn restore(&mut self, before: Vec<Frame>) {
        let base = self.script.as_ref().map_or(self.frames.len(), |state| state.base);
        for (index, mut old) in before.into_iter().enumerate() {
            let Some(now) = self.frames.get_mut(base + index) else { continue };
            for (name, variable) in &mut old.names {
                let changed = now.names.get(name).is_none_or(|new| {
                    new.uncertain || new.value.fingerprint() != variable.value.fingerprint()
                });
                variable.uncertain |= changed;
            }
            *now = old;
        }
    }

    /// `if` with a condition that is known only while the phase runs: compiles both branches.
    pub(super) fn runtime_branch(
        &mut self,
        condition: &RuntimeNumber,
        span: Span,
        then: &Block,
        otherwise: Option<&Block>,
    ) -> EvalResult<()> {
        if !matches!(condition.base, Base::Bool | Base::Int) {
            let found = condition.base.name();
            return self.fail(
                Diagnostic::error(Code::TypeMismatch, span, format!("expected bool, found {found}"))
                    .label(format!("this is a measured {found}")),
            );
        }
        let before = self.own_frames();
        let then = self.inner_block(then);
        self.restore(before);
        let before = self.own_frames();
        let otherwise = otherwise.map_or_else(Vec::new, |block| self.inner_block(block));
        self.restore(before);
        self.emit(ScriptStatement::If { condition: condition.expr.clone(), then, otherwise });
        Ok(())
    }

    /// `every goal do { }`.
    pub(super) fn every(&mut self, goal: &Expr, body: &Block) -> EvalResult<()> {
        let sampling = self.goal_value(goal)?;
        let Some(state) = &mut self.script else { return Err(ErrorReported) };
        if state.every >= MAX_EVERY {
            let span = goal.span;
            return self.fail(
                Diagnostic::error(Code::TooDeep, span, "`every` is nested too deeply")
                    .label(format!("at most {MAX_EVERY} inside each other")),
            );
        }
        state.every += 1;
        let before = self.own_frames();
        let compiled = self.inner_block(body);
        self.restore(before);
        if let Some(state) = &mut self.script {
            state.every -= 1;
        }
        self.emit(ScriptStatement::Every { goal: sampling, body: compiled });
        Ok(())
    }
}

/// The names that a block assigns, at any depth.
fn assigned_names(block: &Block, names: &mut HashSet<Rc<str>>) {
    for statement in &block.statements {
        match &statement.kind {
            StatementKind::Assign { target, .. } => {
                names.insert(target.first.text.clone());
            }
            StatementKind::Group { targets, .. } => {
                names.extend(targets.iter().map(|(target, _)| target.first.text.clone()));
            }
            StatementKind::If { then, otherwise, .. } => {
                assigned_names(then, names);
                otherwise.iter().for_each(|block| assigned_names(block, names));
            }
            StatementKind::Every { body, .. } => assigned_names(body, names),
            StatementKind::Block(block) => assigned_names(block, names),
            StatementKind::Declare { .. } | StatementKind::Call(_) | StatementKind::Broken => {}
        }
    }
}
