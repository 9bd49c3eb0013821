//! Operators on values, with their units.

use std::rc::Rc;

use super::convert::convert;
use super::script::runtime;
use crate::ast::Operator;
use crate::schema::{Base, Ty};
use crate::source::Span;
use crate::value::array::{Array, Item};
use crate::value::{Random, Value};

/// An operation without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OperatorError {
    /// The operand types do not have this operator; with advice on what to write instead.
    NoSuchOperator(Option<&'static str>),
    /// The operand types have the operator, but not for these values.
    Arithmetic(&'static str),
    /// The result has too many items.
    TooMany,
}

type OperatorResult = Result<Value, OperatorError>;

/// The dimension of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
enum NumberKind {
    Int,
    Float,
    Time,
    Size,
    Rate,
    Bandwidth,
}

fn number_of(value: &Value) -> Option<(NumberKind, f64)> {
    Some(match value {
        Value::Int(x) => (NumberKind::Int, f64::from(*x)),
        Value::Float(_) | Value::Percent(_) => (NumberKind::Float, value.float()?),
        Value::Time(x) => (NumberKind::Time, *x),
        Value::Size(x) => (NumberKind::Size, *x),
        Value::Rate(x) => (NumberKind::Rate, *x),
        Value::Bandwidth(x) => (NumberKind::Bandwidth, *x),
        _ => return None,
    })
}

fn number_value(kind: NumberKind, x: f64) -> OperatorResult {
    if !x.is_finite() {
        return Err(OperatorError::Arithmetic("the result is too large"));
    }
    Ok(match kind {
        NumberKind::Int | NumberKind::Float => Value::Float(x),
        NumberKind::Time => Value::Time(x),
        NumberKind::Size => Value::Size(x),
        NumberKind::Rate => Value::Rate(x),
        NumberKind::Bandwidth => Value::Bandwidth(x),
    })
}

/// `operator value`.
pub(crate) fn unary(operator: Operator, value: &Value) -> OperatorResult {
    match (operator, value) {
        (_, Value::RuntimeNumber(operand)) => runtime::unary(operator, operand),
        (Operator::Not, Value::Bool(x)) => Ok(Value::Bool(!x)),
        (Operator::Not, Value::Int(x)) => Ok(Value::Bool(*x == 0)),
        (Operator::Not, Value::Regex(x)) => Ok(Value::Regex(format!("!({x})").into())),
        (Operator::Minus, Value::Percent(x)) => Ok(Value::Percent(-x)),
        (Operator::Minus, Value::Int(x)) => x.checked_neg().map(Value::Int).ok_or_else(overflow),
        (Operator::Plus | Operator::Minus, value) => match number_of(value) {
            Some(_) if operator == Operator::Plus => Ok(value.clone()),
            Some((kind, x)) => number_value(kind, -x),
            None => Err(OperatorError::NoSuchOperator(None)),
        },
        _ => Err(OperatorError::NoSuchOperator(None)),
    }
}

/// A plain zero as a quantity of the dimension of another value; any other value unchanged.
pub(crate) fn zero_like(value: &Value, other: &Value) -> Value {
    match (value, number_of(other)) {
        (
            Value::Int(0),
            Some((
                kind @ (NumberKind::Time | NumberKind::Size | NumberKind::Rate | NumberKind::Bandwidth),
                _,
            )),
        ) => number_value(kind, 0.0).unwrap_or_else(|_| value.clone()),
        _ => value.clone(),
    }
}

/// `left operator right`.
pub(crate) fn binary(left: &Value, operator: Operator, right: &Value, spans: (Span, Span)) -> OperatorResult {
    if matches!(left, Value::RuntimeNumber(_)) || matches!(right, Value::RuntimeNumber(_)) {
        return runtime::binary(left, operator, right, spans);
    }
    let takes_zero = matches!(
        operator,
        Operator::Plus
            | Operator::Minus
            | Operator::Equal
            | Operator::NotEqual
            | Operator::Less
            | Operator::LessOrEqual
            | Operator::Greater
            | Operator::GreaterOrEqual
    );
    // Zero needs no unit; as a factor or divisor it is a plain number.
    let right = if takes_zero { &zero_like(right, left) } else { right };
    match operator {
        Operator::Range => range(left, right, spans.0),
        Operator::Clone => clone(left, right, spans.0),
        Operator::And | Operator::Or | Operator::Xor => logic(left, operator, right),
        Operator::Equal => equal(left, right).map(Value::Bool),
        Operator::NotEqual => equal(left, right).map(|same| Value::Bool(!same)),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            order(left, operator, right)
        }
        Operator::Plus if matches!(left, Value::Moment(_)) => qualify(left, right),
        Operator::Plus if matches!(left, Value::Array(_)) => concat(left, right, spans),
        Operator::Not => Err(OperatorError::NoSuchOperator(None)),
        _ => number_operation(left, operator, right),
    }
}

fn overflow() -> OperatorError {
    OperatorError::Arithmetic("the result does not fit an integer (at most 2147483647)")
}

fn number_operation(left: &Value, operator: Operator, right: &Value) -> OperatorResult {
    if let (Value::Int(a), Value::Int(b)) = (left, right) {
        return integers(*a, operator, *b);
    }
    let (Some((a_kind, a)), Some((b_kind, b))) = (number_of(left), number_of(right)) else {
        return Err(OperatorError::NoSuchOperator(number_help(left, right)));
    };
    let is_plain = |kind: NumberKind| matches!(kind, NumberKind::Int | NumberKind::Float);
    let both_plain = is_plain(a_kind) && is_plain(b_kind);
    match operator {
        Operator::Plus if a_kind == b_kind || both_plain => number_value(a_kind, a + b),
        Operator::Minus if a_kind == b_kind || both_plain => number_value(a_kind, a - b),
        // `libm`, unlike the system's library, gives the same bits on every machine.
        Operator::Power if both_plain => number_value(NumberKind::Float, libm::pow(a, b)),
        Operator::Times => product(a_kind, b_kind).map_or_else(no_operator, |kind| number_value(kind, a * b)),
        Operator::Divide => match quotient(a_kind, b_kind) {
            Some(_) if b == 0.0 => Err(OperatorError::Arithmetic("division by zero")),
            Some(kind) => number_value(kind, a / b),
            None => no_operator(),
        },
        Operator::Remainder if both_plain => Err(OperatorError::NoSuchOperator(Some(
            "the remainder is of integers; for a percentage write `5%` without a space",
        ))),
        Operator::Plus | Operator::Minus => {
            let help = (is_plain(a_kind) || is_plain(b_kind)).then_some("give the number the same unit");
            Err(OperatorError::NoSuchOperator(help))
        }
        _ => no_operator(),
    }
}

fn no_operator() -> OperatorResult {
    Err(OperatorError::NoSuchOperator(None))
}

fn number_help(left: &Value, right: &Value) -> Option<&'static str> {
    match (left, right) {
        (Value::Random(_), _) | (_, Value::Random(_)) => Some("distributions have no arithmetic"),
        (Value::Text(_), _) | (_, Value::Text(_)) => {
            Some("strings have no operators; `int(x)` and `float(x)` read them")
        }
        _ => None,
    }
}

fn product(a: NumberKind, b: NumberKind) -> Option<NumberKind> {
    Some(match (a, b) {
        (NumberKind::Int | NumberKind::Float, other) | (other, NumberKind::Int | NumberKind::Float) => other,
        (NumberKind::Size, NumberKind::Rate) | (NumberKind::Rate, NumberKind::Size) => NumberKind::Bandwidth,
        (NumberKind::Rate, NumberKind::Time) | (NumberKind::Time, NumberKind::Rate) => NumberKind::Float,
        (NumberKind::Bandwidth, NumberKind::Time) | (NumberKind::Time, NumberKind::Bandwidth) => {
            NumberKind::Size
        }
        _ => return None,
    })
}

fn quotient(a: NumberKind, b: NumberKind) -> Option<NumberKind> {
    Some(match (a, b) {
        (same, other) if same == other => NumberKind::Float,
        (other, NumberKind::Int | NumberKind::Float) => other,
        (NumberKind::Int | NumberKind::Float, NumberKind::Time) => NumberKind::Rate,
        (NumberKind::Int | NumberKind::Float, NumberKind::Rate) => NumberKind::Time,
        (NumberKind::Size, NumberKind::Time) => NumberKind::Bandwidth,
        (NumberKind::Size, NumberKind::Bandwidth) => NumberKind::Time,
        _ => return None,
    })
}

fn integers(a: i32, operator: Operator, b: i32) -> OperatorResult {
    let divides = matches!(operator, Operator::Divide | Operator::Remainder);
    if divides && b == 0 {
        return Err(OperatorError::Arithmetic("division by zero"));
    }
    let result = match operator {
        Operator::Plus => a.checked_add(b),
        Operator::Minus => a.checked_sub(b),
        Operator::Times => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        Operator::Remainder => a.checked_rem(b),
        Operator::Power => match u32::try_from(b) {
            Ok(power) => a.checked_pow(power),
            Err(_) if a == 0 => return Err(OperatorError::Arithmetic("division by zero")),
            // A negative power of an integer is a fraction, truncated like any division of integers.
            Err(_) => Some(match a {
                1 => 1,
                -1 if b % 2 == 0 => 1,
                -1 => -1,
                _ => 0,
            }),
        },
        _ => return no_operator(),
    };
    result.map(Value::Int).ok_or_else(overflow)
}

fn logic(left: &Value, operator: Operator, right: &Value) -> OperatorResult {
    if let (Value::Regex(a), Value::Regex(b)) = (left, right) {
        return match operator {
            Operator::Xor => no_operator(),
            _ => Ok(Value::Regex(format!("({a} {} {b})", operator.text()).into())),
        };
    }
    let truth = |value: &Value| match value {
        Value::Bool(x) => Some(*x),
        Value::Int(x) => Some(*x != 0),
        _ => None,
    };
    let (Some(a), Some(b)) = (truth(left), truth(right)) else {
        return no_operator();
    };
    Ok(Value::Bool(match operator {
        Operator::And => a && b,
        Operator::Or => a || b,
        _ => a != b,
    }))
}

fn equal(left: &Value, right: &Value) -> Result<bool, OperatorError> {
    Ok(match (left, right) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Bool(a), Value::Int(b)) | (Value::Int(b), Value::Bool(a)) => *a == (*b != 0),
        (Value::Time(a), Value::Time(b)) | (Value::Size(a), Value::Size(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            let (Some(a), Some(b)) = (a.runs(), b.runs()) else {
                return Err(OperatorError::TooMany);
            };
            // Runs are compared by hash: items can be objects and arrays of any size.
            let same = |(a, b): (&crate::value::array::Run, &crate::value::array::Run)| {
                a.times == b.times && a.value.fingerprint() == b.value.fingerprint()
            };
            a.len() == b.len() && a.iter().zip(&b).all(same)
        }
        _ => {
            let is_real = |value: &Value| {
                matches!(number_of(value), Some((NumberKind::Float | NumberKind::Int | NumberKind::Rate, _)))
            };
            let help = "real numbers are seldom equal; compare with `<=` or `>=`";
            return Err(OperatorError::NoSuchOperator((is_real(left) && is_real(right)).then_some(help)));
        }
    })
}

fn order(left: &Value, operator: Operator, right: &Value) -> OperatorResult {
    let (Some((a_kind, a)), Some((b_kind, b))) = (number_of(left), number_of(right)) else {
        return no_operator();
    };
    let is_plain = |kind: NumberKind| matches!(kind, NumberKind::Int | NumberKind::Float);
    if a_kind != b_kind && !(is_plain(a_kind) && is_plain(b_kind)) {
        let number = is_plain(a_kind) || is_plain(b_kind);
        return Err(OperatorError::NoSuchOperator(
            number.then_some("give the number the same unit; only a zero on the right needs none"),
        ));
    }
    Ok(Value::Bool(match operator {
        Operator::Less => a < b,
        Operator::LessOrEqual => a <= b,
        Operator::Greater => a > b,
        _ => a >= b,
    }))
}

/// `lo .. hi`, up or down, both included.
fn range(left: &Value, right: &Value, span: Span) -> OperatorResult {
    let (Value::Int(from), Value::Int(to)) = (left, right) else {
        return Err(OperatorError::NoSuchOperator(Some("`..` stands between integers")));
    };
    if from.abs_diff(*to) as u64 >= crate::value::array::MAX_ITEMS {
        return Err(OperatorError::TooMany);
    }
    // Checked above: the sequence is expanded.
    let up = (*from.min(to)..=*from.max(to)).map(Value::Int);
    Ok(if from <= to { Value::list(up, span) } else { Value::list(up.rev(), span) })
}

/// `value ** n`.
fn clone(left: &Value, right: &Value, span: Span) -> OperatorResult {
    let Value::Int(times) = right else {
        return Err(OperatorError::NoSuchOperator(Some("how many times it is repeated must be an integer")));
    };
    let Ok(times) = u32::try_from(*times) else {
        return Err(OperatorError::Arithmetic("nothing can be repeated a negative number of times"));
    };
    checked_array(Array::new(vec![Item { times, ..Item::plain(left.clone(), span) }]))
}

fn concat(left: &Value, right: &Value, spans: (Span, Span)) -> OperatorResult {
    let Value::Array(array) = left else {
        return no_operator();
    };
    checked_array(match right {
        Value::Array(other) => array.concat(other.items()),
        item => array.concat(&[Item::plain(item.clone(), spans.1)]),
    })
}

pub(crate) fn checked_array(array: Array) -> OperatorResult {
    if is_workable(&array) { Ok(Value::Array(Rc::new(array))) } else { Err(OperatorError::TooMany) }
}

/// True for an array within the limits on size and depth.
pub(crate) fn is_workable(array: &Array) -> bool {
    let deep = array.depth() > crate::value::array::MAX_DEPTH;
    !(array.too_large() || deep || array.count() > u64::from(u32::MAX))
}

/// `now + distribution`; replaces the moment of a distribution that has one.
fn qualify(left: &Value, right: &Value) -> OperatorResult {
    match (left, convert(right.clone(), Ty::random(Base::Time))) {
        (Value::Moment(moment), Ok(Value::Random(random))) => {
            Ok(Value::Random(Rc::new(Random { moment: Some(*moment), ..(*random).clone() })))
        }
        _ => Err(OperatorError::NoSuchOperator(Some(
            "a distribution of times follows `now`, `lmt` and `nmt`: `now + const(1day)`",
        ))),
    }
}
