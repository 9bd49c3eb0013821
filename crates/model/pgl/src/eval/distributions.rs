//! The functions that make distributions and popularity laws.

use std::rc::Rc;

use assay_workload::model::{Distribution, PopularityLaw};

use super::argument::Argument;
use super::{Evaluated, Interpreter, Reported};
use crate::ast::Call;
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::Base;
use crate::source::Span;
use crate::value::{Random, Value};

/// What a number measures, and the number in basic units.
fn measured(value: &Value) -> Option<(Base, f64)> {
    Some(match value {
        Value::Int(x) => (Base::Int, f64::from(*x)),
        Value::Float(_) | Value::Percent(_) => (Base::Float, value.float()?),
        Value::Time(x) | Value::Date(x) => (Base::Time, *x),
        Value::Size(x) => (Base::Size, *x),
        Value::Rate(x) => (Base::Rate, *x),
        Value::Bandwidth(x) => (Base::Bandwidth, *x),
        _ => return None,
    })
}

impl Interpreter<'_> {
    /// The arguments as numbers of one kind, which is that of the first.
    fn numbers<const N: usize>(&mut self, arguments: &[Argument]) -> Evaluated<(Base, [f64; N])> {
        let mut kind: Option<Base> = None;
        let mut numbers = [0.0; N];
        for (argument, number) in arguments.iter().zip(&mut numbers) {
            let Some((base, x)) = measured(&argument.value) else {
                let found = argument.value.type_name();
                return self.fail(
                    Diagnostic::error(
                        Code::Arguments,
                        argument.span,
                        format!("expected a number, found {found}"),
                    )
                    .label("expected a number, time, size or rate"),
                );
            };
            *number = x;
            let zero = matches!(argument.value, Value::Int(0));
            kind = Some(match kind {
                None => base,
                Some(first) if first == base || zero => first,
                Some(Base::Int) if numbers_before_are_zero(arguments, argument.span) => base,
                Some(Base::Int | Base::Float) if matches!(base, Base::Int | Base::Float) => Base::Float,
                Some(first) => {
                    let message = format!("expected {}, found {}", first.name(), base.name());
                    return self.fail(
                        Diagnostic::error(Code::Arguments, argument.span, message)
                            .label(format!("the first argument is of type {}", first.name())),
                    );
                }
            });
        }
        Ok((kind.ok_or(Reported)?, numbers))
    }

    /// Complains unless the arguments make sense.
    fn sensible(&mut self, call: &Call, holds: bool, wanted: &str) -> Evaluated<()> {
        if holds {
            return Ok(());
        }
        self.fail(
            Diagnostic::error(
                Code::OutOfRange,
                call.span,
                format!("there is no such `{}()`", call.name.text),
            )
            .label(format!("expected {wanted}")),
        )
    }
}

/// True when all arguments before a place are plain zeros, which have any unit.
fn numbers_before_are_zero(arguments: &[Argument], place: Span) -> bool {
    arguments.iter().take_while(|argument| argument.span != place).all(|a| matches!(a.value, Value::Int(0)))
}

fn made(kind: Base, law: Distribution) -> Evaluated<Value> {
    Ok(Value::Random(Rc::new(Random { kind, law, moment: None })))
}

pub(super) fn constant(i: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> Evaluated<Value> {
    let (kind, [x]) = i.numbers(arguments)?;
    made(kind, Distribution::Constant(x))
}

pub(super) fn uniform(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> Evaluated<Value> {
    let (kind, [low, high]) = i.numbers(arguments)?;
    i.sensible(call, low <= high, "the lower end first")?;
    made(kind, Distribution::Uniform { low, high })
}

pub(super) fn exponential(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> Evaluated<Value> {
    let (kind, [mean]) = i.numbers(arguments)?;
    i.sensible(call, mean != 0.0, "a mean that is not zero")?;
    made(kind, Distribution::Exponential { mean })
}

pub(super) fn normal(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> Evaluated<Value> {
    let (kind, [mean, deviation]) = i.numbers(arguments)?;
    i.sensible(call, deviation >= 0.0, "a deviation that is not negative")?;
    made(kind, Distribution::Normal { mean, deviation })
}

pub(super) fn log_normal(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> Evaluated<Value> {
    let (kind, [mean, deviation]) = i.numbers(arguments)?;
    i.sensible(call, mean > 0.0 && deviation >= 0.0, "a positive mean and a deviation that is not negative")?;
    made(kind, Distribution::LogNormal { mean, deviation })
}

pub(super) fn zipf(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> Evaluated<Value> {
    let (kind, [n]) = i.numbers(arguments)?;
    i.sensible(call, n > 0.0 && matches!(kind, Base::Int | Base::Float), "a positive number without a unit")?;
    made(kind, Distribution::Zipf { n })
}

pub(super) fn sequence(i: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> Evaluated<Value> {
    let (kind, [first]) = i.numbers(arguments)?;
    made(kind, Distribution::Sequence { first })
}

pub(super) fn popularity_uniform(_: &mut Interpreter<'_>, _: &Call, _: &[Argument]) -> Evaluated<Value> {
    Ok(Value::Popularity(PopularityLaw::Uniform))
}

pub(super) fn popularity_zipf(
    i: &mut Interpreter<'_>,
    call: &Call,
    arguments: &[Argument],
) -> Evaluated<Value> {
    let [argument] = arguments else { return Err(Reported) };
    let skew = i.argument(argument, Base::Float)?.float().ok_or(Reported)?;
    i.sensible(call, skew > 0.0, "a positive skew")?;
    Ok(Value::Popularity(PopularityLaw::Zipf { skew }))
}
