//! Functions that return distributions and popularity laws.

use std::rc::Rc;

use assay_workload::model::{Distribution, PopularityLaw};

use super::functions::Argument;
use super::{ErrorReported, EvalResult, Interpreter};
use crate::ast::Call;
use crate::diagnostic::{Code, Diagnostic};
use crate::schema::Base;
use crate::source::Span;
use crate::value::{Random, Value};

/// The base type of a number, and the number in basic units.
fn base_and_number(value: &Value) -> Option<(Base, f64)> {
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
    fn numbers<const N: usize>(&mut self, arguments: &[Argument]) -> EvalResult<(Base, [f64; N])> {
        let mut kind: Option<Base> = None;
        let mut numbers = [0.0; N];
        for (argument, number) in arguments.iter().zip(&mut numbers) {
            let Some((base, x)) = base_and_number(&argument.value) else {
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
                Some(Base::Int) if only_zeros_before(arguments, argument.span) => base,
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
        Ok((kind.ok_or(ErrorReported)?, numbers))
    }

    /// Reports parameters for which the distribution is not defined.
    fn check_parameters(&mut self, call: &Call, holds: bool, wanted: &str) -> EvalResult<()> {
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

/// True if all arguments before `place` are plain zeros, which have no unit of their own.
fn only_zeros_before(arguments: &[Argument], place: Span) -> bool {
    arguments.iter().take_while(|argument| argument.span != place).all(|a| matches!(a.value, Value::Int(0)))
}

fn random_value(kind: Base, law: Distribution) -> EvalResult<Value> {
    Ok(Value::Random(Rc::new(Random { kind, law, moment: None })))
}

pub(super) fn constant(i: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let (kind, [x]) = i.numbers(arguments)?;
    random_value(kind, Distribution::Constant(x))
}

pub(super) fn uniform(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let (kind, [low, high]) = i.numbers(arguments)?;
    i.check_parameters(call, low <= high, "the lower end first")?;
    random_value(kind, Distribution::Uniform { low, high })
}

pub(super) fn exponential(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let (kind, [mean]) = i.numbers(arguments)?;
    i.check_parameters(call, mean != 0.0, "a mean that is not zero")?;
    random_value(kind, Distribution::Exponential { mean })
}

pub(super) fn normal(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let (kind, [mean, deviation]) = i.numbers(arguments)?;
    i.check_parameters(call, deviation >= 0.0, "a deviation that is not negative")?;
    random_value(kind, Distribution::Normal { mean, deviation })
}

pub(super) fn log_normal(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let (kind, [mean, deviation]) = i.numbers(arguments)?;
    i.check_parameters(
        call,
        mean > 0.0 && deviation >= 0.0,
        "a positive mean and a deviation that is not negative",
    )?;
    random_value(kind, Distribution::LogNormal { mean, deviation })
}

pub(super) fn zipf(i: &mut Interpreter<'_>, call: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let (kind, [n]) = i.numbers(arguments)?;
    i.check_parameters(
        call,
        n > 0.0 && matches!(kind, Base::Int | Base::Float),
        "a positive number without a unit",
    )?;
    random_value(kind, Distribution::Zipf { n })
}

pub(super) fn sequence(i: &mut Interpreter<'_>, _: &Call, arguments: &[Argument]) -> EvalResult<Value> {
    let (kind, [first]) = i.numbers(arguments)?;
    random_value(kind, Distribution::Sequence { first })
}

pub(super) fn popularity_uniform(_: &mut Interpreter<'_>, _: &Call, _: &[Argument]) -> EvalResult<Value> {
    Ok(Value::Popularity(PopularityLaw::Uniform))
}

pub(super) fn popularity_zipf(
    i: &mut Interpreter<'_>,
    call: &Call,
    arguments: &[Argument],
) -> EvalResult<Value> {
    let [argument] = arguments else { return Err(ErrorReported) };
    let skew = i.argument(argument, Base::Float)?.float().ok_or(ErrorReported)?;
    i.check_parameters(call, skew > 0.0, "a positive skew")?;
    Ok(Value::Popularity(PopularityLaw::Zipf { skew }))
}
