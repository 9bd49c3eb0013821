//! Calls as statements: `use()`, `schedule()` and their like.

use std::ops::RangeInclusive;
use std::rc::Rc;

use super::expression::too_many_items;
use super::functions::{Argument, FUNCTIONS};
use super::{ErrorReported, EvalResult, Interpreter};
use assay_workload::model::ScriptStatement;

use crate::ast::Call;
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::{Base, RecordKind};
use crate::source::Span;
use crate::value::array::Array;
use crate::value::{Record, Value};
use assay_base::settings::suggest::nearest;

/// Procedures that a script cannot call, because registration is complete when it runs.
const REGISTRATION: [&str; 6] =
    ["use", "schedule", "working_set_length", "working_set_cap", "note_substitutes", "require"];

pub(crate) struct Procedure {
    pub name: &'static str,
    /// Parameters, as messages show them.
    pub arguments: &'static str,
    count: RangeInclusive<usize>,
    run: fn(&mut Interpreter<'_>, &Call, &[Argument]) -> EvalResult<()>,
}

const MANY: usize = usize::MAX;

const fn procedure(
    name: &'static str,
    arguments: &'static str,
    count: RangeInclusive<usize>,
    run: fn(&mut Interpreter<'_>, &Call, &[Argument]) -> EvalResult<()>,
) -> Procedure {
    Procedure { name, arguments, count, run }
}

pub(crate) const PROCEDURES: [Procedure; 14] = [
    procedure("use", "agent, ...", 1..=MANY, use_objects),
    procedure("schedule", "phase, ...", 0..=MANY, schedule),
    procedure("working_set_length", "time", 1..=1, working_set_length),
    procedure("working_set_cap", "int", 1..=1, working_set_cap),
    procedure("note_substitutes", "addresses, ...", 1..=MANY, note_substitutes),
    procedure("require", "requirement, ...", 1..=MANY, require),
    procedure("print", "value, ...", 0..=MANY, print),
    procedure("printV", "level, value, ...", 1..=MANY, |i, call, arguments| {
        i.print_at_level(call, arguments)
    }),
    procedure("changeLoadFactorBy", "factor", 1..=1, |i, call, arguments| {
        i.set_factor(call, arguments, |value| ScriptStatement::Load { value, relative: true })
    }),
    procedure("setLoadFactorTo", "factor", 1..=1, |i, call, arguments| {
        i.set_factor(call, arguments, |value| ScriptStatement::Load { value, relative: false })
    }),
    procedure("changePopulusFactorBy", "factor", 1..=1, |i, call, arguments| {
        i.set_factor(call, arguments, |value| ScriptStatement::Population { value, relative: true })
    }),
    procedure("setPopulusFactorTo", "factor", 1..=1, |i, call, arguments| {
        i.set_factor(call, arguments, |value| ScriptStatement::Population { value, relative: false })
    }),
    procedure("setSamplingGoalTo", "goal", 1..=1, |i, call, arguments| i.set_sampling_goal(call, arguments)),
    procedure("reachedPositiveGoal", "reason", 0..=1, |i, call, arguments| i.end_phase(call, arguments)),
];

pub(super) fn is_procedure(name: &str) -> bool {
    PROCEDURES.iter().any(|procedure| procedure.name == name)
}

impl Interpreter<'_> {
    pub(super) fn call_statement(&mut self, call: &Call) -> EvalResult<()> {
        let name = &*call.name.text;
        if let Some(procedure) = PROCEDURES.iter().find(|procedure| procedure.name == name) {
            let arguments = self.arguments(call);
            self.check_count(call, &procedure.count, procedure.arguments)?;
            if self.script.is_some() && REGISTRATION.contains(&name) {
                return self.fail(
                    Diagnostic::error(
                        Code::Misplaced,
                        call.span,
                        format!("`{name}()` belongs to the program"),
                    )
                    .label("a script runs when all is registered already"),
                );
            }
            // Procedures skip the broken items of a list and register the others.
            return (procedure.run)(self, call, &arguments?);
        }
        if FUNCTIONS.iter().any(|function| function.name == name) {
            self.call_function(call)?;
            self.diagnostics.add(
                Diagnostic::warning(
                    Code::NoEffect,
                    call.span,
                    format!("the value of `{name}()` is not used"),
                )
                .label("this statement does nothing"),
            );
            return Ok(());
        }
        let known = PROCEDURES.iter().map(|procedure| procedure.name);
        let meant = nearest(name, known);
        self.arguments(call).ok();
        self.fail(
            Diagnostic::error(
                Code::UnknownFunction,
                call.name.span,
                format!("there is no procedure `{name}`"),
            )
            .label("expected the name of a procedure")
            .suggest(meant),
        )
    }

    /// The objects in an argument, with nested lists flattened.
    fn objects(&mut self, argument: &Argument) -> EvalResult<Vec<(Rc<Record>, Span)>> {
        let single = match &argument.value {
            Value::Array(array) => array.clone(),
            value => {
                Rc::new(Array::new(vec![crate::value::array::Item::plain(value.clone(), argument.span)]))
            }
        };
        let Some(runs) = single.runs().filter(|runs| runs.iter().map(|run| run.times).sum::<u64>() < 100_000)
        else {
            return self.fail(too_many_items(argument.span));
        };
        let mut objects = Vec::new();
        for run in runs {
            match run.value {
                Value::Record(record) => {
                    objects.extend((0..run.times).map(|_| (record.clone(), argument.span)));
                }
                other => {
                    let found = other.type_name();
                    return self.fail(
                        Diagnostic::error(
                            Code::TypeMismatch,
                            argument.span,
                            format!("expected an object, found {found}"),
                        )
                        .label(format!("this is {found}")),
                    );
                }
            }
        }
        Ok(objects)
    }
}

fn use_objects(i: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<()> {
    for argument in arguments {
        let Ok(objects) = i.objects(argument) else { continue };
        for (record, span) in objects {
            match record.kind {
                RecordKind::Robot | RecordKind::Server | RecordKind::AddrMap | RecordKind::NetPipe => {
                    i.registrations.used.push((record, span));
                }
                RecordKind::MembershipMap => i.warn_unsupported_type(record.kind, span),
                RecordKind::Proxy => {
                    i.warn_unsupported_type(record.kind, span);
                    i.registrations.used.push((record, span));
                }
                // Takes effect through the agents that it was assigned to.
                RecordKind::SslWrap => {}
                // Takes effect through the functions that deal addresses.
                RecordKind::Bench => {}
                kind => {
                    let help = match kind {
                        RecordKind::Phase | RecordKind::StatsSample => {
                            Some("phases go to `schedule()`".to_owned())
                        }
                        RecordKind::Content => Some("content types go into a server's `contents`".to_owned()),
                        _ => None,
                    };
                    i.diagnostics.add(
                        Diagnostic::error(
                            Code::Arguments,
                            span,
                            format!("a `{}` cannot be used by itself", kind.name()),
                        )
                        .label("expected robots, servers, and what belongs to them")
                        .maybe_help(help),
                    );
                }
            }
        }
    }
    Ok(())
}

fn schedule(i: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<()> {
    for argument in arguments {
        let Ok(objects) = i.objects(argument) else { continue };
        for (record, span) in objects {
            match record.kind {
                RecordKind::Phase => i.registrations.scheduled.push((record, span)),
                RecordKind::StatsSample => i.warn_unsupported_type(RecordKind::StatsSample, span),
                kind => i.diagnostics.add(
                    Diagnostic::error(
                        Code::Arguments,
                        span,
                        format!("a `{}` cannot be scheduled", kind.name()),
                    )
                    .label("expected phases")
                    .maybe_help(
                        matches!(kind, RecordKind::Robot | RecordKind::Server)
                            .then(|| "agents go to `use()`".to_owned()),
                    ),
                ),
            }
        }
    }
    Ok(())
}

fn working_set_length(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<()> {
    let [argument] = arguments else { return Err(ErrorReported) };
    let length = match i.argument(argument, Base::Time)? {
        Value::Time(seconds) if seconds > 0.0 => seconds,
        other => {
            return i.fail(
                Diagnostic::error(Code::OutOfRange, argument.span, "the working set needs time to grow")
                    .label(format!("this is {other}; expected a positive time")),
            );
        }
    };
    if let Some((_, before)) = i.registrations.working_set_length.replace((length, call.span)) {
        i.warn_repeated_call(call, before);
    }
    i.check_one_freeze(call, i.registrations.working_set_cap.map(|(_, span)| span))
}

fn working_set_cap(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<()> {
    let [argument] = arguments else { return Err(ErrorReported) };
    let cap = match i.argument(argument, Base::Int)? {
        Value::Int(cap) if cap > 0 => cap,
        other => {
            return i.fail(
                Diagnostic::error(Code::OutOfRange, argument.span, "the working set must hold something")
                    .label(format!("this is {other}; expected 1 or more")),
            );
        }
    };
    if let Some((_, before)) = i.registrations.working_set_cap.replace((cap, call.span)) {
        i.warn_repeated_call(call, before);
    }
    i.check_one_freeze(call, i.registrations.working_set_length.map(|(_, span)| span))
}

impl Interpreter<'_> {
    fn warn_repeated_call(&mut self, call: &Call, before: Span) {
        self.diagnostics.add(
            Diagnostic::warning(
                Code::Duplicate,
                call.span,
                format!("`{}()` is called again", call.name.text),
            )
            .label("this one counts")
            .secondary(before, "not this one"),
        );
    }

    /// Reports a second rule by which the working set would be frozen.
    fn check_one_freeze(&mut self, call: &Call, other: Option<Span>) -> EvalResult<()> {
        let Some(other) = other else { return Ok(()) };
        self.fail(
            Diagnostic::error(Code::Conflict, call.span, "the working set cannot be frozen in two ways")
                .label("expected either `working_set_length()` or `working_set_cap()`")
                .secondary(other, "frozen here already"),
        )
    }
}

fn note_substitutes(i: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<()> {
    for argument in arguments {
        let addresses = i.addresses(argument)?;
        i.registrations.substitutes.push((addresses, argument.span));
    }
    Ok(())
}

// Requirements are about measured values, and are parsed by those who check them.
fn require(i: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<()> {
    for argument in arguments {
        let Ok(Value::Text(text)) = i.argument(argument, Base::Text) else { continue };
        i.registrations.requirements.push((text.to_string(), argument.span));
    }
    Ok(())
}

fn print(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<()> {
    if i.script.is_some() {
        i.emit_print(arguments);
        return Ok(());
    }
    let text: String = arguments.iter().map(|argument| argument.value.to_string()).collect();
    i.diagnostics.add(Diagnostic::note(Code::Print, call.span, format!("script output: {text}")));
    Ok(())
}
