//! Interpreter: executes the statements of a program in order, once.
//!
//! There are no loops, so every program ends; what could still grow without bound (arrays of arrays of
//! arrays) is limited where it is made. After a mistake a value is broken, and nothing that is made of a
//! broken value is reported again.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use std::cell::Cell;

use assay_base::random::Rng;
use assay_workload::model::Script;

use crate::ast::{Block, Expr, Name, Path, RightSide, Statement, StatementKind, TypeName};
use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostics::{Diagnostics, ErrorReported};
use crate::schema::{Base, RecordKind, Support, Ty};
use crate::source::{Resolver, Source, Span};
use crate::value::array::Array;
use crate::value::{Frame, Record, ScriptCode, Value, Variable};
use assay_base::settings::suggest::nearest;

mod append;
mod arithmetic;
mod convert;
mod distributions;
mod expression;
mod functions;
mod group;
mod lookup;
mod procedures;
mod schemes;
mod script;
mod table;
mod zone;

#[cfg(test)]
mod tests;

pub(crate) use functions::FUNCTIONS;
pub(crate) use procedures::PROCEDURES;

/// Objects and settings that a program has registered.
#[derive(Debug, Default)]
pub(crate) struct Registrations {
    /// Arguments of `use()`, in order.
    pub used: Vec<(Rc<Record>, Span)>,
    /// Arguments of `schedule()`, in order.
    pub scheduled: Vec<(Rc<Record>, Span)>,
    /// Compiled script of each scheduled phase.
    pub scripts: Vec<Option<Script>>,
    /// Arguments of `note_substitutes()`: groups of addresses.
    pub substitutes: Vec<(Rc<Array>, Span)>,
    /// Arguments of `require()`.
    pub requirements: Vec<(String, Span)>,
    /// Objects of the main source that nothing reads.
    pub unused: Vec<UnusedObject>,
    /// `working_set_length()` in seconds.
    pub working_set_length: Option<(f64, Span)>,
    pub working_set_cap: Option<(i32, Span)>,
    /// The end of the main source.
    pub end: Span,
}

/// A declared object that nothing reads.
#[derive(Debug)]
pub(crate) struct UnusedObject {
    pub kind: RecordKind,
    pub name: Rc<str>,
    pub span: Span,
}

pub(crate) fn run(
    program: &Block,
    skipped: &HashSet<Rc<str>>,
    sources: &[Source],
    resolver: &dyn Resolver,
    diagnostics: &mut Diagnostics,
) -> Registrations {
    let length = sources.first().map_or(0, |source| source.text.trim_end().len()) as u32;
    let end = Span { source: 0, start: length, end: length };
    let mut interpreter = Interpreter {
        diagnostics,
        sources,
        resolver,
        skipped,
        frames: vec![Frame::default()],
        registrations: Registrations { end, ..Registrations::default() },
        generator: Rng::new(GENERATOR_SEED),
        ids: 0,
        comparisons_left: MAX_COMPARED,
        script: None,
    };
    interpreter.block(program);
    interpreter.compile_scripts();
    interpreter.collect_unused();
    interpreter.registrations
}

/// Comparisons of misspelt names with declared ones in one program. Each error compares one name with all others, which
/// is quadratic for a program with as many names as errors.
const MAX_COMPARED: usize = 1_000_000;
/// Seed of `select()` and of group assignments: fixed, so that every compilation of a workload gives the same result.
const GENERATOR_SEED: u64 = 1;

type EvalResult<T> = Result<T, ErrorReported>;

struct Interpreter<'a> {
    diagnostics: &'a mut Diagnostics,
    sources: &'a [Source],
    resolver: &'a dyn Resolver,
    /// Names in statements that could not be parsed, which may have been declared there.
    skipped: &'a HashSet<Rc<str>>,
    /// Innermost last; never empty.
    frames: Vec<Frame>,
    registrations: Registrations,
    generator: Rng,
    ids: u32,
    /// Comparisons left of [`MAX_COMPARED`].
    comparisons_left: usize,
    /// The script that is being compiled.
    script: Option<script::ScriptCompiler>,
}

impl Interpreter<'_> {
    fn fail<T>(&mut self, diagnostic: Diagnostic) -> EvalResult<T> {
        self.diagnostics.add(diagnostic);
        Err(ErrorReported)
    }

    fn block(&mut self, block: &Block) {
        for statement in &block.statements {
            // Its errors were reported; the next statement is executed anyway, to report more in one run.
            let _: EvalResult<()> = self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) -> EvalResult<()> {
        match &statement.kind {
            StatementKind::Declare { ty, name, value } => self.declare(ty, name, value.as_ref()),
            StatementKind::Assign { target, value } => self.assign(target, value),
            StatementKind::Group { targets, value } => self.assign_group(targets, value, statement.span),
            StatementKind::Call(call) => self.call_statement(call),
            StatementKind::If { condition, then, otherwise } => {
                self.branch(condition, then, otherwise.as_ref())
            }
            StatementKind::Every { goal, body } if self.script.is_some() => self.every(goal, body),
            StatementKind::Every { .. } => self.fail(
                Diagnostic::error(Code::Misplaced, statement.span, "`every` watches a running phase")
                    .label("only the script of a phase may have it"),
            ),
            StatementKind::Block(block) => {
                self.block(block);
                Ok(())
            }
            StatementKind::Broken => Ok(()),
        }
    }

    fn branch(&mut self, condition: &Expr, then: &Block, otherwise: Option<&Block>) -> EvalResult<()> {
        let value = self.value(condition)?;
        if let Value::RuntimeNumber(number) = &value {
            return self.runtime_branch(number, condition.span, then, otherwise);
        }
        match self.fit(value, Ty::one(Base::Bool), condition.span)? {
            Value::Bool(true) => self.block(then),
            Value::Bool(false) => otherwise.into_iter().for_each(|block| self.block(block)),
            _ => {}
        }
        Ok(())
    }

    fn declare(&mut self, ty: &TypeName, name: &Name, value: Option<&RightSide>) -> EvalResult<()> {
        // A name of an unknown type is still a name: it must not be reported as undeclared.
        let ty = self.type_named(ty);
        self.check_name(name);
        let first = match (ty, value) {
            (None, _) => Value::Broken,
            (Some(ty), Some(value)) => self.right_side(value, ty, Value::Undefined).unwrap_or(Value::Broken),
            (Some(ty), None) => match ty.record() {
                Some(kind) => Value::Record(Rc::new(Record::new(kind))),
                None => Value::Undefined,
            },
        };
        if let Some(Ty { base: Base::Record(kind), .. }) = ty {
            self.warn_unsupported_type(kind, name.span);
        }
        let first = if self.script.is_some() { self.script_variable(name, ty, first) } else { first };
        let variable =
            Variable { ty, value: first, declared: name.span, read: Cell::new(false), uncertain: false };
        if let Some(frame) = self.frames.last_mut() {
            frame.names.insert(name.text.clone(), variable);
        }
        Ok(())
    }

    fn type_named(&mut self, ty: &TypeName) -> Option<Ty> {
        let found = Ty::named(&ty.name.text).map(|found| Ty { arrays: ty.arrays, ..found });
        if found.is_none() {
            let names = Base::all().map(Base::name);
            let diagnostic = Diagnostic::error(
                Code::UnknownType,
                ty.name.span,
                format!("there is no type `{}`", ty.name.text),
            )
            .label("expected the name of a type")
            .suggest(nearest(&ty.name.text, names));
            self.diagnostics.add(diagnostic);
        }
        found
    }

    /// Reports names that cannot be declared, and warns about those that shadow others.
    fn check_name(&mut self, name: &Name) {
        if crate::units::bare_unit(&name.text).is_some() || is_truth(&name.text) {
            self.diagnostics.add(
                Diagnostic::error(
                    Code::Redeclared,
                    name.span,
                    format!("`{}` is not free to be a name", name.text),
                )
                .label("it always means a unit or a truth value"),
            );
        }
        let current = self.frames.len() - 1;
        let same = self.frames[current].names.get(&name.text).map(|variable| variable.declared);
        if let Some(before) = same {
            self.diagnostics.add(
                Diagnostic::error(Code::Redeclared, name.span, format!("`{}` is declared twice", name.text))
                    .label("it exists already")
                    .secondary(before, "declared here")
                    .help("to give it another value leave out the type"),
            );
            return;
        }
        let outer = self.frames[..current].iter().rev().find_map(|frame| frame.names.get(&name.text));
        if let Some(before) = outer.map(|variable| variable.declared) {
            self.diagnostics.add(
                Diagnostic::warning(Code::Shadowed, name.span, format!("this hides another `{}`", name.text))
                    .label("in this block the name means this")
                    .secondary(before, "declared here"),
            );
        }
    }

    /// Warns, once per type, about objects of a type that has no effect.
    fn warn_unsupported_type(&mut self, kind: RecordKind, span: Span) {
        match kind.definition().support {
            Support::Ignored(instead) => self.diagnostics.add_once(
                format!("type {}", kind.name()),
                Diagnostic::warning(
                    Code::Unsupported,
                    span,
                    format!("`{}` is accepted, but has no effect", kind.name()),
                )
                .label(instead),
            ),
            Support::OutOfScope(feature) => self.diagnostics.out_of_scope(feature, span),
            Support::Full | Support::Partial(_) => {}
        }
    }

    /// The value of the right side of `=` for a target of type `ty`; a block starts from the `current` value.
    fn right_side(&mut self, value: &RightSide, ty: Ty, current: Value) -> EvalResult<Value> {
        match value {
            RightSide::Expr(expr) => {
                let value = self.value(expr)?;
                match self.runtime_value_as(&value, ty) {
                    Some(value) => Ok(value),
                    None => self.fit(value, ty, expr.span),
                }
            }
            RightSide::Block(block, span) => self.object(block, ty, current, *span),
        }
    }

    /// Executes a block in the scope of an object.
    fn object(&mut self, block: &Rc<Block>, ty: Ty, current: Value, span: Span) -> EvalResult<Value> {
        if ty == Ty::one(Base::Code) {
            // Scripts are compiled last, when these frames are gone; the outermost one still exists then.
            let frames = self.frames.get(1..).map_or_else(Vec::new, <[Frame]>::to_vec);
            return Ok(Value::Code(Rc::new(ScriptCode { block: block.clone(), frames })));
        }
        let single = Ty { arrays: 0, ..ty };
        let Some(kind) = single.record() else {
            return self.fail(
                Diagnostic::error(Code::TypeMismatch, span, "a block fills an object")
                    .label(format!("expected a value of type `{}`", ty.name())),
            );
        };
        let object = match current {
            Value::Record(record) if ty.arrays == 0 => record,
            _ => Rc::new(Record::new(kind)),
        };
        self.frames.push(Frame { object: Some(object), names: HashMap::new() });
        self.block(block);
        let object = self.frames.pop().and_then(|frame| frame.object);
        let value = object.map_or(Value::Broken, Value::Record);
        // An array may be given a single object.
        Ok(if ty.arrays > 0 { Value::list([value], span) } else { value })
    }

    fn assign(&mut self, path: &Path, value: &RightSide) -> EvalResult<()> {
        let target = self.assignment_target(path)?;
        if let Some(operands) = self.appended_operands(path, &target, value) {
            return self.append(&target, operands, path.span());
        }
        let current = self.read_target(&target);
        let value = self.right_side(value, target.ty, current).unwrap_or(Value::Broken);
        self.store(&target, value, path.span())
    }

    fn collect_unused(&mut self) {
        let Some(program) = self.frames.first() else { return };
        // Objects of included sources are libraries, of which a program may use as few as it likes.
        let unused = program.names.iter().filter_map(|(name, variable)| match variable {
            Variable { ty: Some(Ty { base: Base::Record(kind), .. }), declared, read, .. }
                if declared.source == 0 && !read.get() =>
            {
                Some(UnusedObject { kind: *kind, name: name.clone(), span: *declared })
            }
            _ => None,
        });
        let mut unused: Vec<_> = unused.collect();
        // Names come from a hash map, in no stable order.
        unused.sort_by_key(|object| object.span.start);
        self.registrations.unused = unused;
    }

    /// Converts a value to a type. Values known only while a phase runs have no conversion.
    fn fit(&mut self, value: Value, ty: Ty, span: Span) -> EvalResult<Value> {
        if matches!(value, Value::RuntimeNumber(_) | Value::SampleRequest { .. } | Value::Sample(_)) {
            return self.fail(script::runtime_mismatch(&value, ty, span));
        }
        convert::convert(value, ty).or_else(|why| {
            self.fail(
                Diagnostic::error(
                    Code::TypeMismatch,
                    why.item.unwrap_or(span),
                    format!("expected {}, found {}", why.expected, why.found),
                )
                .label(format!("this is {}", why.found))
                .maybe_help(why.help),
            )
        })
    }
}

/// True for the Boolean literals, which cannot be names.
fn is_truth(word: &str) -> bool {
    matches!(word, "yes" | "true" | "on" | "no" | "false" | "off")
}
