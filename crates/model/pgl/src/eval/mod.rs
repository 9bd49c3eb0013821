//! Runs a program: statement after statement, once.
//!
//! There are no loops, so every program ends; what could still grow without bound (arrays of arrays of
//! arrays) is limited where it is made. After a mistake a value is broken, and nothing that is made of a
//! broken value is reported again.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use std::cell::Cell;

use assay_base::random::Rng;
use assay_workload::model::Script;

use crate::ast::{Assigned, Block, Expr, Name, Path, Statement, StatementKind, TypeName};
use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostics::Diagnostics;
use crate::schema::{Base, Effect, RecordKind, Ty};
use crate::source::{Resolver, Source, Span};
use crate::value::array::Array;
use crate::value::frame::{Frame, Variable};
use crate::value::{Code as CodeValue, Record, Value};
use assay_base::settings::suggest::nearest;

mod append;
mod argument;
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

/// What a program registered.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    /// Everything given to `use()`, in order.
    pub used: Vec<(Rc<Record>, Span)>,
    /// Everything given to `schedule()`, in order.
    pub scheduled: Vec<(Rc<Record>, Span)>,
    /// The script of each of those, compiled.
    pub scripts: Vec<Option<Script>>,
    /// Everything given to `note_substitutes()`: groups of addresses.
    pub substitutes: Vec<(Rc<Array>, Span)>,
    /// Everything given to `require()`.
    pub requirements: Vec<(String, Span)>,
    /// Objects of the main source that nothing has read: what they are, what they are called, and where.
    pub unread: Vec<(RecordKind, Rc<str>, Span)>,
    /// `working_set_length()` in seconds.
    pub working_set_length: Option<(f64, Span)>,
    /// `working_set_cap()`.
    pub working_set_cap: Option<(i32, Span)>,
    /// The end of the main source.
    pub end: Span,
}

pub(crate) fn run(
    program: &Block,
    skipped: &HashSet<Rc<str>>,
    sources: &[Source],
    resolver: &dyn Resolver,
    diagnostics: &mut Diagnostics,
) -> Registered {
    let length = sources.first().map_or(0, |source| source.text.trim_end().len()) as u32;
    let end = Span { source: 0, start: length, end: length };
    let mut interpreter = Interpreter {
        diagnostics,
        sources,
        resolver,
        skipped,
        frames: vec![Frame::default()],
        registered: Registered { end, ..Registered::default() },
        generator: Rng::new(GENERATOR_SEED),
        ids: 0,
        suggestions: MAX_COMPARED,
        script: None,
    };
    interpreter.block(program);
    interpreter.compile_scripts();
    interpreter.note_unread();
    interpreter.registered
}

/// Names that misspelt ones are compared with, in one program: with a hundred thousand names it takes its time.
const MAX_COMPARED: usize = 1_000_000;
/// Seed of `select()` and of group assignments: all runs of all processes agree.
const GENERATOR_SEED: u64 = 1;

/// A mistake that was reported.
struct Reported;

type Evaluated<T> = Result<T, Reported>;

struct Interpreter<'a> {
    diagnostics: &'a mut Diagnostics,
    sources: &'a [Source],
    resolver: &'a dyn Resolver,
    /// Names in statements that could not be read: nobody knows whether they were declared.
    skipped: &'a HashSet<Rc<str>>,
    /// Innermost last; never empty.
    frames: Vec<Frame>,
    registered: Registered,
    generator: Rng,
    ids: u32,
    /// Names that misspelt ones may still be compared with.
    suggestions: usize,
    /// The script that is being compiled.
    script: Option<script::State>,
}

impl Interpreter<'_> {
    fn fail<T>(&mut self, diagnostic: Diagnostic) -> Evaluated<T> {
        self.diagnostics.add(diagnostic);
        Err(Reported)
    }

    fn block(&mut self, block: &Block) {
        for statement in &block.statements {
            // What went wrong was reported; the next statement is tried anyway.
            let _: Evaluated<()> = self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) -> Evaluated<()> {
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
                Diagnostic::error(Code::NotHere, statement.span, "`every` watches a running phase")
                    .label("only the script of a phase may have it"),
            ),
            StatementKind::Block(block) => {
                self.block(block);
                Ok(())
            }
            StatementKind::Broken => Ok(()),
        }
    }

    fn branch(&mut self, condition: &Expr, then: &Block, otherwise: Option<&Block>) -> Evaluated<()> {
        let value = self.value(condition)?;
        if let Value::Measured(measured) = &value {
            return self.measured_branch(measured, condition.span, then, otherwise);
        }
        match self.fit(value, Ty::one(Base::Bool), condition.span)? {
            Value::Bool(true) => self.block(then),
            Value::Bool(false) => otherwise.into_iter().for_each(|block| self.block(block)),
            _ => {}
        }
        Ok(())
    }

    fn declare(&mut self, ty: &TypeName, name: &Name, value: Option<&Assigned>) -> Evaluated<()> {
        // A name of an unknown type is still a name: it must not be reported as undeclared.
        let ty = self.type_named(ty);
        self.check_name(name);
        let first = match (ty, value) {
            (None, _) => Value::Broken,
            (Some(ty), Some(value)) => self.assigned(value, ty, Value::Undefined).unwrap_or(Value::Broken),
            (Some(ty), None) => match ty.record() {
                Some(kind) => Value::Record(Rc::new(Record::new(kind))),
                None => Value::Undefined,
            },
        };
        if let Some(Ty { base: Base::Record(kind), .. }) = ty {
            self.warn_type(kind, name.span);
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
            .meant(nearest(&ty.name.text, names));
            self.diagnostics.add(diagnostic);
        }
        found
    }

    /// Complains about names that cannot be declared, or hide others.
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
                    .also(before, "declared here")
                    .help("to give it another value leave out the type"),
            );
            return;
        }
        let outer = self.frames[..current].iter().rev().find_map(|frame| frame.names.get(&name.text));
        if let Some(before) = outer.map(|variable| variable.declared) {
            self.diagnostics.add(
                Diagnostic::warning(Code::Shadowed, name.span, format!("this hides another `{}`", name.text))
                    .label("in this block the name means this")
                    .also(before, "declared here"),
            );
        }
    }

    /// Says once that objects of a type have no effect.
    fn warn_type(&mut self, kind: RecordKind, span: Span) {
        match kind.definition().effect {
            Effect::None(instead) => self.diagnostics.add_once(
                format!("type {}", kind.name()),
                Diagnostic::warning(
                    Code::NotActedOn,
                    span,
                    format!("`{}` is accepted, but has no effect", kind.name()),
                )
                .label(instead),
            ),
            Effect::LeftOut(topic) => self.diagnostics.left_out(topic, span),
            Effect::Full | Effect::Part(_) => {}
        }
    }

    /// The value of the right side of `=` for a target of a type; blocks go on from what is there.
    fn assigned(&mut self, value: &Assigned, ty: Ty, current: Value) -> Evaluated<Value> {
        match value {
            Assigned::Expr(expr) => {
                let value = self.value(expr)?;
                match self.measured_as(&value, ty) {
                    Some(value) => Ok(value),
                    None => self.fit(value, ty, expr.span),
                }
            }
            Assigned::Block(block, span) => self.object(block, ty, current, *span),
        }
    }

    /// Runs a block with an object as its scope.
    fn object(&mut self, block: &Rc<Block>, ty: Ty, current: Value, span: Span) -> Evaluated<Value> {
        if ty == Ty::one(Base::Code) {
            let frames = self.frames.get(1..).map_or_else(Vec::new, <[Frame]>::to_vec);
            return Ok(Value::Code(Rc::new(CodeValue { block: block.clone(), frames })));
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

    fn assign(&mut self, target: &Path, value: &Assigned) -> Evaluated<()> {
        let place = self.place(target)?;
        if let Some(appended) = self.appended(target, &place, value) {
            return self.append(&place, appended, target.span());
        }
        let current = self.read_place(&place);
        let value = self.assigned(value, place.ty, current).unwrap_or(Value::Broken);
        self.store(&place, value, target.span())
    }

    /// Remembers the objects of the main source that nothing has read.
    fn note_unread(&mut self) {
        let Some(program) = self.frames.first() else { return };
        let unread = program.names.iter().filter_map(|(name, variable)| match variable {
            Variable { ty: Some(Ty { base: Base::Record(kind), .. }), declared, read, .. }
                if declared.source == 0 && !read.get() =>
            {
                Some((*kind, name.clone(), *declared))
            }
            _ => None,
        });
        let mut unread: Vec<_> = unread.collect();
        unread.sort_by_key(|(.., span)| span.start);
        self.registered.unread = unread;
    }

    /// The value as a value of a type; what is only known while a phase runs does not fit anywhere.
    fn fit(&mut self, value: Value, ty: Ty, span: Span) -> Evaluated<Value> {
        if matches!(value, Value::Measured(_) | Value::Taken { .. } | Value::Sample(_)) {
            return self.fail(script::refused(&value, ty, span));
        }
        convert::convert(value, ty).or_else(|why| {
            self.fail(
                Diagnostic::error(
                    Code::TypeMismatch,
                    why.place.unwrap_or(span),
                    format!("expected {}, found {}", why.expected, why.found),
                )
                .label(format!("this is {}", why.found))
                .maybe_help(why.help),
            )
        })
    }
}

/// The words for truth, which cannot be names.
fn is_truth(word: &str) -> bool {
    matches!(word, "yes" | "true" | "on" | "no" | "false" | "off")
}
