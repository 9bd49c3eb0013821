//! Arithmetic with numbers that are only known while a phase runs.

use std::rc::Rc;
use std::time::Duration;

use assay_workload::model::ScriptExpr;

use crate::ast::Operator;
use crate::eval::arithmetic::{self, Failed};
use crate::schema::{Base, Ty};
use crate::source::Span;
use crate::value::{Counted, Measured, Value};

/// Operators inside each other in one value.
const MAX_DEPTH: u32 = 200;

/// The kind of number that variables of a type hold; none for all that is no number.
pub(in crate::eval) fn number_base(ty: Ty) -> Option<Base> {
    let single = ty.arrays == 0 && !ty.random;
    let number = matches!(
        ty.base,
        Base::Bool | Base::Int | Base::Float | Base::Time | Base::Size | Base::Rate | Base::Bandwidth
    );
    (single && number).then_some(ty.base)
}

/// A number as an expression of a script: in seconds, bytes, per second.
pub(in crate::eval) fn expr_of(value: &Value) -> Option<ScriptExpr> {
    Some(match value {
        Value::Measured(measured) => measured.expr.clone(),
        Value::Bool(x) => ScriptExpr::Number(f64::from(u8::from(*x))),
        Value::Int(x) => ScriptExpr::Number(f64::from(*x)),
        Value::Time(x) => match Duration::try_from_secs_f64(*x) {
            Ok(time) => ScriptExpr::Time(time),
            // Less than nothing.
            Err(_) => ScriptExpr::Number(*x),
        },
        Value::Float(_) | Value::Percent(_) => ScriptExpr::Number(value.float()?),
        Value::Size(x) | Value::Rate(x) | Value::Bandwidth(x) => ScriptExpr::Number(*x),
        _ => return None,
    })
}

/// A measured value of a kind.
pub(in crate::eval) fn value(expr: ScriptExpr, base: Base) -> Value {
    counting(expr, base, None)
}

/// A measured value that counts something.
pub(in crate::eval) fn counting(expr: ScriptExpr, base: Base, counted: Option<Counted>) -> Value {
    Value::Measured(Rc::new(Measured { expr, base, counted }))
}

/// What a value counts, if it is a measured number.
pub(in crate::eval) fn counted(value: &Value) -> Option<Counted> {
    match value {
        Value::Measured(measured) => measured.counted,
        _ => None,
    }
}

/// A value that stands beside a plain number: what has the unit of that number becomes a plain number, too.
pub(in crate::eval) fn beside(number: Option<Counted>, value: &Value, span: Span) -> Value {
    let one = match (number, value) {
        (Some(Counted::Percents), Value::Percent(x)) => return Value::Float(*x),
        (Some(Counted::Milliseconds), _) => Value::Time(1e-3),
        (Some(Counted::Bytes), _) => Value::Size(1.0),
        (Some(Counted::PerSecond), _) => Value::Rate(1.0),
        _ => return value.clone(),
    };
    let plain =
        (value.ty() == one.ty()).then(|| arithmetic::binary(value, Operator::Divide, &one, (span, span)));
    plain.and_then(Result::ok).unwrap_or_else(|| value.clone())
}

/// A real number up to 1 that is compared with percents: it may be meant as a share.
pub(in crate::eval) fn is_share_of_percents(left: &Value, operator: Operator, right: &Value) -> bool {
    let (number, other) = if counted(left).is_some() { (left, right) } else { (right, left) };
    is_comparison(operator)
        && counted(number) == Some(Counted::Percents)
        && matches!(other, Value::Float(x) if *x > 0.0 && *x <= 1.0)
}

fn is_comparison(operator: Operator) -> bool {
    matches!(operator, Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual)
}

/// What the result of an operator counts.
fn counted_together(left: &Value, operator: Operator, right: &Value) -> Option<Counted> {
    let is_plain = |value: &Value| {
        let number = matches!(value.ty().and_then(number_base), Some(Base::Int | Base::Float));
        number && counted(value).is_none()
    };
    match operator {
        Operator::Plus | Operator::Minus => counted(left).or(counted(right)),
        Operator::Times | Operator::Divide if is_plain(right) => counted(left),
        Operator::Times if is_plain(left) => counted(right),
        _ => None,
    }
}

/// A measured value where another kind of number is wanted.
pub(in crate::eval) fn widened(measured: &Rc<Measured>, wanted: Base) -> Option<Value> {
    match (measured.base, wanted) {
        (same, other) if same == other => Some(Value::Measured(measured.clone())),
        (Base::Int, Base::Float) => Some(value(measured.expr.clone(), Base::Float)),
        (Base::Int, Base::Bool) => Some(value(
            ScriptExpr::Binary(
                "!=".into(),
                Box::new(measured.expr.clone()),
                Box::new(ScriptExpr::Number(0.0)),
            ),
            Base::Bool,
        )),
        _ => None,
    }
}

/// A known value of the same kind, to try an operator with.
fn stand_in(value: &Value) -> Value {
    let Value::Measured(measured) = value else { return value.clone() };
    match measured.base {
        Base::Bool => Value::Bool(true),
        Base::Int => Value::Int(1),
        Base::Time => Value::Time(1.0),
        Base::Size => Value::Size(1.0),
        Base::Rate => Value::Rate(1.0),
        Base::Bandwidth => Value::Bandwidth(1.0),
        _ => Value::Float(1.0),
    }
}

fn base_of(value: &Value) -> Result<Base, Failed> {
    value.ty().and_then(number_base).ok_or(Failed::NoSuchOperator(None))
}

/// `left operator right`, where at least one is measured.
pub(in crate::eval) fn binary(
    left: &Value,
    operator: Operator,
    right: &Value,
    spans: (Span, Span),
) -> Result<Value, Failed> {
    let counts = counted_together(left, operator, right);
    let joins =
        matches!(operator, Operator::Plus | Operator::Minus | Operator::Divide) || is_comparison(operator);
    let (of_left, of_right) = (counted(left).filter(|_| joins), counted(right).filter(|_| joins));
    let (left, right) = (beside(of_right, left, spans.0), beside(of_left, right, spans.1));
    let tried = arithmetic::binary(&stand_in(&left), operator, &stand_in(&right), spans)?;
    let base = base_of(&tried)?;
    let (Some(a), Some(b)) = (expr_of(&left), expr_of(&right)) else {
        return Err(Failed::NoSuchOperator(None));
    };
    if depth(&a).max(depth(&b)) >= MAX_DEPTH {
        return Err(Failed::Arithmetic("the expression is too long".into()));
    }
    let whole = operator == Operator::Divide && base == Base::Int;
    let expr = ScriptExpr::Binary(operator.text().to_owned(), Box::new(a), Box::new(b));
    Ok(counting(if whole { truncated(expr) } else { expr }, base, counts))
}

/// `operator value` of a measured value.
pub(in crate::eval) fn unary(operator: Operator, operand: &Measured) -> Result<Value, Failed> {
    let of = Value::Measured(Rc::new(operand.clone()));
    let tried = arithmetic::unary(operator, &stand_in(&of))?;
    let base = base_of(&tried)?;
    let sign = match operator {
        Operator::Plus => return Ok(of),
        Operator::Not => '!',
        _ => '-',
    };
    if depth(&operand.expr) >= MAX_DEPTH {
        return Err(Failed::Arithmetic("the expression is too long".into()));
    }
    let counts = operand.counted.filter(|_| sign == '-');
    Ok(counting(ScriptExpr::Unary(sign, Box::new(operand.expr.clone())), base, counts))
}

/// A number without what is behind its point: x - x % 1.
pub(in crate::eval) fn truncated(expr: ScriptExpr) -> ScriptExpr {
    let rest = ScriptExpr::Binary("%".into(), Box::new(expr.clone()), Box::new(ScriptExpr::Number(1.0)));
    ScriptExpr::Binary("-".into(), Box::new(expr), Box::new(rest))
}

/// How deep operators are nested.
fn depth(expr: &ScriptExpr) -> u32 {
    match expr {
        ScriptExpr::Unary(_, inner) => 1 + depth(inner),
        ScriptExpr::Binary(_, left, right) => 1 + depth(left).max(depth(right)),
        ScriptExpr::Extreme { of, .. } => 1 + of.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
