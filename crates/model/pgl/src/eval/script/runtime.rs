//! Arithmetic with numbers that are known only while a phase runs.

use std::rc::Rc;
use std::time::Duration;

use assay_workload::model::ScriptExpr;

use crate::ast::Operator;
use crate::eval::arithmetic::{self, OperatorError};
use crate::schema::{Base, Ty};
use crate::source::Span;
use crate::value::{NumberUnit, RuntimeNumber, Value};

/// Nested operators in one expression.
const MAX_DEPTH: u32 = 200;

/// The base of a numeric type; none for other types.
pub(in crate::eval) fn number_base(ty: Ty) -> Option<Base> {
    let single = ty.arrays == 0 && !ty.random;
    let number = matches!(
        ty.base,
        Base::Bool | Base::Int | Base::Float | Base::Time | Base::Size | Base::Rate | Base::Bandwidth
    );
    (single && number).then_some(ty.base)
}

/// A number as an expression of a script, in seconds, bytes or per second.
pub(in crate::eval) fn script_expr(value: &Value) -> Option<ScriptExpr> {
    Some(match value {
        Value::RuntimeNumber(number) => number.expr.clone(),
        Value::Bool(x) => ScriptExpr::Number(f64::from(u8::from(*x))),
        Value::Int(x) => ScriptExpr::Number(f64::from(*x)),
        Value::Time(x) => match Duration::try_from_secs_f64(*x) {
            Ok(time) => ScriptExpr::Time(time),
            // A negative time.
            Err(_) => ScriptExpr::Number(*x),
        },
        Value::Float(_) | Value::Percent(_) => ScriptExpr::Number(value.float()?),
        Value::Size(x) | Value::Rate(x) | Value::Bandwidth(x) => ScriptExpr::Number(*x),
        _ => return None,
    })
}

/// A runtime number, in a unit if it is a plain number whose unit is known.
pub(in crate::eval) fn runtime_value(expr: ScriptExpr, base: Base, unit: Option<NumberUnit>) -> Value {
    Value::RuntimeNumber(Rc::new(RuntimeNumber { expr, base, unit }))
}

/// The unit of a runtime number.
pub(in crate::eval) fn unit(value: &Value) -> Option<NumberUnit> {
    match value {
        Value::RuntimeNumber(number) => number.unit,
        _ => None,
    }
}

/// An operand beside a plain number that is in a unit: a quantity of that dimension becomes a plain number in the same unit.
pub(in crate::eval) fn in_unit_of(number: Option<NumberUnit>, value: &Value, span: Span) -> Value {
    let one = match (number, value) {
        (Some(NumberUnit::Percents), Value::Percent(x)) => return Value::Float(*x),
        (Some(NumberUnit::Milliseconds), _) => Value::Time(1e-3),
        (Some(NumberUnit::Bytes), _) => Value::Size(1.0),
        (Some(NumberUnit::PerSecond), _) => Value::Rate(1.0),
        _ => return value.clone(),
    };
    let plain =
        (value.ty() == one.ty()).then(|| arithmetic::binary(value, Operator::Divide, &one, (span, span)));
    plain.and_then(Result::ok).unwrap_or_else(|| value.clone())
}

/// True for a comparison of percents with a real number up to 1, which may be meant as a share.
pub(in crate::eval) fn may_confuse_share_and_percents(
    left: &Value,
    operator: Operator,
    right: &Value,
) -> bool {
    let (number, other) = if unit(left).is_some() { (left, right) } else { (right, left) };
    is_comparison(operator)
        && unit(number) == Some(NumberUnit::Percents)
        && matches!(other, Value::Float(x) if *x > 0.0 && *x <= 1.0)
}

fn is_comparison(operator: Operator) -> bool {
    matches!(operator, Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual)
}

/// The unit of the result of an operator.
fn counted_together(left: &Value, operator: Operator, right: &Value) -> Option<NumberUnit> {
    let is_plain = |value: &Value| {
        let number = matches!(value.ty().and_then(number_base), Some(Base::Int | Base::Float));
        number && unit(value).is_none()
    };
    match operator {
        Operator::Plus | Operator::Minus => unit(left).or(unit(right)),
        Operator::Times | Operator::Divide if is_plain(right) => unit(left),
        Operator::Times if is_plain(left) => unit(right),
        _ => None,
    }
}

/// A runtime number as a number of another base type; none if that needs an explicit conversion.
pub(in crate::eval) fn widen(number: &Rc<RuntimeNumber>, wanted: Base) -> Option<Value> {
    match (number.base, wanted) {
        (same, other) if same == other => Some(Value::RuntimeNumber(number.clone())),
        (Base::Int, Base::Float) => Some(runtime_value(number.expr.clone(), Base::Float, None)),
        (Base::Int, Base::Bool) => Some(runtime_value(
            ScriptExpr::Binary("!=".into(), Box::new(number.expr.clone()), Box::new(ScriptExpr::Number(0.0))),
            Base::Bool,
            None,
        )),
        _ => None,
    }
}

/// A constant of the same type, to find the type of a result by applying an operator to it.
fn example_value(value: &Value) -> Value {
    let Value::RuntimeNumber(number) = value else { return value.clone() };
    match number.base {
        Base::Bool => Value::Bool(true),
        Base::Int => Value::Int(1),
        Base::Time => Value::Time(1.0),
        Base::Size => Value::Size(1.0),
        Base::Rate => Value::Rate(1.0),
        Base::Bandwidth => Value::Bandwidth(1.0),
        _ => Value::Float(1.0),
    }
}

fn base_of(value: &Value) -> Result<Base, OperatorError> {
    value.ty().and_then(number_base).ok_or(OperatorError::NoSuchOperator(None))
}

/// `left operator right`, where at least one is a runtime number.
pub(in crate::eval) fn binary(
    left: &Value,
    operator: Operator,
    right: &Value,
    spans: (Span, Span),
) -> Result<Value, OperatorError> {
    let counts = counted_together(left, operator, right);
    let joins =
        matches!(operator, Operator::Plus | Operator::Minus | Operator::Divide) || is_comparison(operator);
    let (of_left, of_right) = (unit(left).filter(|_| joins), unit(right).filter(|_| joins));
    let (left, right) = (in_unit_of(of_right, left, spans.0), in_unit_of(of_left, right, spans.1));
    let tried = arithmetic::binary(&example_value(&left), operator, &example_value(&right), spans)?;
    let base = base_of(&tried)?;
    let (Some(a), Some(b)) = (script_expr(&left), script_expr(&right)) else {
        return Err(OperatorError::NoSuchOperator(None));
    };
    if depth(&a).max(depth(&b)) >= MAX_DEPTH {
        return Err(OperatorError::Arithmetic("the expression is too long"));
    }
    let whole = operator == Operator::Divide && base == Base::Int;
    let expr = ScriptExpr::Binary(operator.text().to_owned(), Box::new(a), Box::new(b));
    Ok(runtime_value(if whole { truncate(expr) } else { expr }, base, counts))
}

/// `operator value` of a runtime number.
pub(in crate::eval) fn unary(operator: Operator, operand: &RuntimeNumber) -> Result<Value, OperatorError> {
    let of = Value::RuntimeNumber(Rc::new(operand.clone()));
    let tried = arithmetic::unary(operator, &example_value(&of))?;
    let base = base_of(&tried)?;
    let sign = match operator {
        Operator::Plus => return Ok(of),
        Operator::Not => '!',
        _ => '-',
    };
    if depth(&operand.expr) >= MAX_DEPTH {
        return Err(OperatorError::Arithmetic("the expression is too long"));
    }
    let counts = operand.unit.filter(|_| sign == '-');
    Ok(runtime_value(ScriptExpr::Unary(sign, Box::new(operand.expr.clone())), base, counts))
}

/// The integer part of a number: `x - x % 1`.
pub(in crate::eval) fn truncate(expr: ScriptExpr) -> ScriptExpr {
    let rest = ScriptExpr::Binary("%".into(), Box::new(expr.clone()), Box::new(ScriptExpr::Number(1.0)));
    ScriptExpr::Binary("-".into(), Box::new(expr), Box::new(rest))
}

/// Nesting depth of operators.
fn depth(expr: &ScriptExpr) -> u32 {
    match expr {
        ScriptExpr::Unary(_, inner) => 1 + depth(inner),
        ScriptExpr::Binary(_, left, right) => 1 + depth(left).max(depth(right)),
        ScriptExpr::Extreme { of, .. } => 1 + of.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
