//! The script of a phase, compiled: everything that is known is computed now, the rest is written down.
//!
//! A script is run here like the program itself, once, with numbers that are not known yet standing for
//! themselves ([`Value::Measured`]). What is done with them becomes statements of the compiled script; the
//! branches of an `if` that depends on them are both run. Numbers may depend on what is measured; objects and
//! strings may change only where they are known.

use std::collections::HashSet;
use std::rc::Rc;

use assay_workload::model::{Script, ScriptExpr, ScriptStatement};

use super::lookup::{Place, Root};
use super::{Evaluated, Interpreter, Reported};
use crate::ast::{Block, Expr, Name, StatementKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::{Base, RecordKind, Ty};
use crate::source::Span;
use crate::value::frame::Frame;
use crate::value::{Code as CodeValue, Measured, Record, Value};

pub(super) mod measured;
mod orders;
mod statistics;

/// Variables or samples of one script.
const MAX_VARIABLES: u16 = 10_000;
/// Blocks of `every` inside each other.
const MAX_EVERY: u32 = 8;

/// A script in the making.
#[derive(Debug, Default)]
pub(super) struct State {
    /// Statements of the block that is being compiled.
    out: Vec<ScriptStatement>,
    variables: u16,
    samples: u16,
    /// Blocks of `every` around.
    every: u32,
    /// The first frame of the script's own names.
    base: usize,
    /// The phase's place in the schedule.
    place: Span,
    /// Names that the script assigns.
    assigned: HashSet<Rc<str>>,
}

/// Why a value that depends on measurements is refused where a type is wanted.
pub(super) fn refused(value: &Value, ty: Ty, span: Span) -> Diagnostic {
    match (value, measured::number_base(ty)) {
        (Value::Measured(number), Some(base)) if number.base != base => {
            let found = value.type_name();
            let whole = base == Base::Int && number.base == Base::Float;
            Diagnostic::error(Code::TypeMismatch, span, format!("expected {}, found {found}", ty.name()))
                .label(format!("this is {found}"))
                .maybe_help(whole.then(|| "`int(x)` cuts off what is behind the point".to_owned()))
        }
        _ => not_known_yet(value, span),
    }
}

/// Why a value that depends on measurements is refused.
fn not_known_yet(value: &Value, span: Span) -> Diagnostic {
    let found = value.type_name();
    Diagnostic::error(Code::NotHere, span, format!("{found} is only known while the phase runs"))
        .label("this must be known when the workload is compiled")
        .help("conditions, printed values, and the factors that a script sets may depend on what is measured")
}

/// Why a name cannot be read.
pub(super) fn depends(name: &Name) -> Diagnostic {
    Diagnostic::error(
        Code::NotHere,
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
        let phases = &self.registered.scheduled;
        let codes: Vec<_> = phases.iter().map(|(phase, span)| (code_of(phase), *span)).collect();
        let mut last: Option<(Rc<CodeValue>, Script)> = None;
        for (code, place) in codes {
            let script = code.map(|code| match &last {
                Some((same, script)) if Rc::ptr_eq(same, &code) => script.clone(),
                _ => {
                    let script = self.compile_script(&code, place);
                    last = Some((code, script.clone()));
                    script
                }
            });
            self.registered.scripts.push(script.filter(|script| !script.0.is_empty()));
        }
    }

    fn compile_script(&mut self, code: &CodeValue, place: Span) -> Script {
        self.frames.truncate(1);
        self.frames.extend(code.frames.iter().cloned());
        let mut assigned = HashSet::new();
        assigned_names(&code.block, &mut assigned);
        self.script = Some(State { base: self.frames.len(), place, assigned, ..State::default() });
        self.frames.push(Frame::default());
        self.copy_assigned();
        self.block(&code.block);
        self.frames.truncate(1);
        Script(self.script.take().map_or_else(Vec::new, |state| state.out))
    }

    /// Names from outside that the script assigns become the script's own: every phase begins with what the program left.
    fn copy_assigned(&mut self) {
        let Some(state) = &self.script else { return };
        let mut names: Vec<Rc<str>> = state.assigned.iter().cloned().collect();
        names.sort_unstable();
        for name in names {
            let Some((Root::Local { frame, name }, ty)) = self.root(&name) else { continue };
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
            Value::Measured(_) | Value::Taken { .. } => self.runtime_variable(ty, first),
            first if assigned => self.runtime_variable(ty, first),
            first => first,
        }
    }

    /// A number gets a place of its own while the phase runs; statistics are taken. All else stays as it is.
    fn runtime_variable(&mut self, ty: Option<Ty>, first: Value) -> Value {
        if let Value::Taken { whole_phase } = first {
            return self.take_sample(whole_phase);
        }
        let Some(base) = ty.and_then(measured::number_base) else { return first };
        let Some(number) = self.next_number(|state| &mut state.variables) else { return Value::Broken };
        if let Some(value) = measured::expr_of(&first) {
            self.emit(ScriptStatement::Set { variable: number, value });
        }
        measured::counting(ScriptExpr::Variable(number), base, measured::counted(&first))
    }

    fn take_sample(&mut self, whole_phase: bool) -> Value {
        let Some(variable) = self.next_number(|state| &mut state.samples) else { return Value::Broken };
        self.emit(ScriptStatement::TakeSample { variable, whole_phase });
        Value::Sample(variable)
    }

    fn next_number(&mut self, of: fn(&mut State) -> &mut u16) -> Option<u16> {
        let state = self.script.as_mut()?;
        let counter = of(state);
        let number = *counter;
        *counter += u16::from(number < MAX_VARIABLES);
        if number >= MAX_VARIABLES {
            let diagnostic = Diagnostic::error(Code::TooMany, state.place, "a script has too many variables")
                .label(format!("its phase; at most {MAX_VARIABLES}"));
            self.diagnostics.add_once("script variables", diagnostic);
            return None;
        }
        Some(number)
    }

    /// A measured value as a value of a type; none when it is not measured, or does not fit.
    pub(super) fn measured_as(&self, value: &Value, ty: Ty) -> Option<Value> {
        self.script.as_ref()?;
        match value {
            Value::Taken { .. } | Value::Sample(_) if ty.record() == Some(RecordKind::StatSample) => {
                Some(value.clone())
            }
            Value::Measured(measured) => measured::widened(measured, measured::number_base(ty)?),
            _ => None,
        }
    }

    /// Puts a value where a path leads: into a field or variable, or, of a script, into a variable of the running phase.
    pub(super) fn store(&mut self, place: &Place, value: Value, span: Span) -> Evaluated<()> {
        if self.script.is_none() {
            self.write_place(place, value, span);
            return Ok(());
        }
        let value = match value {
            Value::Taken { whole_phase } if place.fields.is_empty() => self.take_sample(whole_phase),
            value => value,
        };
        if place.fields.is_empty()
            && let Value::Measured(target) = self.read_place(place)
            && let ScriptExpr::Variable(variable) = target.expr
        {
            let Some(value) = measured::expr_of(&value) else { return Err(Reported) };
            self.emit(ScriptStatement::Set { variable, value });
            return Ok(());
        }
        if matches!(value, Value::Measured(_)) {
            return self.fail(not_known_yet(&value, span));
        }
        if let Root::Local { frame, name } = &place.root
            && let Some(variable) = self.frames.get_mut(*frame).and_then(|frame| frame.names.get_mut(name))
            && place.fields.is_empty()
        {
            variable.uncertain = false;
        }
        self.write_place(place, value, span);
        Ok(())
    }

    /// Compiles a block into statements of its own, with names of its own.
    fn inner_block(&mut self, block: &Block) -> Vec<ScriptStatement> {
        let Some(state) = &mut self.script else { return vec![] };
        let outer = std::mem::take(&mut state.out);
        self.frames.push(Frame::default());
        self.block(block);
        self.frames.pop();
        let Some(state) = &mut self.script else { return vec![] };
        std::mem::replace(&mut state.out, outer)
    }

    /// The names of the script as they are now.
    fn own_frames(&self) -> Vec<Frame> {
        let base = self.script.as_ref().map_or(self.frames.len(), |state| state.base);
        self.frames.get(base..).map_or_else(Vec::new, <[Frame]>::to_vec)
    }

    /// Goes back to the names as they were. Names that are not what they were are uncertain from here on.
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

    /// `if` with a condition that is only known while the phase runs: both ways are compiled.
    pub(super) fn measured_branch(
        &mut self,
        condition: &Measured,
        span: Span,
        then: &Block,
        otherwise: Option<&Block>,
    ) -> Evaluated<()> {
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
    pub(super) fn every(&mut self, goal: &Expr, body: &Block) -> Evaluated<()> {
        let sampling = self.goal_value(goal)?;
        let Some(state) = &mut self.script else { return Err(Reported) };
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
