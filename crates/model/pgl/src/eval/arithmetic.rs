//! Operators, and the kinds of values that they take.

use std::rc::Rc;

use super::convert::convert;
use super::script::measured;
use crate::ast::Operator;
use crate::schema::{Base, Ty};
use crate::source::Span;
use crate::value::array::{Array, Item};
use crate::value::{Random, Value};

/// Why an operation gives no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failed {
    /// These kinds of values do not have it; what to write instead.
    NoSuchOperator(Option<&'static str>),
    /// They have it, but not these values.
    Arithmetic(String),
    /// The result has too many items.
    TooMany,
}

type Outcome = Result<Value, Failed>;

/// A number among units: what is left when the unit is taken away.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Int,
    Float,
    Time,
    Size,
    Rate,
    Bandwidth,
}

fn kind(value: &Value) -> Option<(Kind, f64)> {
    Some(match value {
        Value::Int(x) => (Kind::Int, f64::from(*x)),
        Value::Float(_) | Value::Percent(_) => (Kind::Float, value.float()?),
        Value::Time(x) => (Kind::Time, *x),
        Value::Size(x) => (Kind::Size, *x),
        Value::Rate(x) => (Kind::Rate, *x),
        Value::Bandwidth(x) => (Kind::Bandwidth, *x),
        _ => return None,
    })
}

fn of_kind(kind: Kind, x: f64) -> Outcome {
    if !x.is_finite() {
        return Err(Failed::Arithmetic("the result is too large".into()));
    }
    Ok(match kind {
        Kind::Int | Kind::Float => Value::Float(x),
        Kind::Time => Value::Time(x),
        Kind::Size => Value::Size(x),
        Kind::Rate => Value::Rate(x),
        Kind::Bandwidth => Value::Bandwidth(x),
    })
}

/// `operator value`.
pub(crate) fn unary(operator: Operator, value: &Value) -> Outcome {
    match (operator, value) {
        (_, Value::Measured(operand)) => measured::unary(operator, operand),
        (Operator::Not, Value::Bool(x)) => Ok(Value::Bool(!x)),
        (Operator::Not, Value::Int(x)) => Ok(Value::Bool(*x == 0)),
        (Operator::Not, Value::Regex(x)) => Ok(Value::Regex(format!("!({x})").into())),
        (Operator::Minus, Value::Percent(x)) => Ok(Value::Percent(-x)),
        (Operator::Minus, Value::Int(x)) => x.checked_neg().map(Value::Int).ok_or_else(overflow),
        (Operator::Plus | Operator::Minus, value) => match kind(value) {
            Some(_) if operator == Operator::Plus => Ok(value.clone()),
            Some((kind, x)) => of_kind(kind, -x),
            None => Err(Failed::NoSuchOperator(None)),
        },
        _ => Err(Failed::NoSuchOperator(None)),
    }
}

/// A plain zero as a quantity of the kind of another value; all else as it is.
pub(crate) fn zero_like(value: &Value, other: &Value) -> Value {
    match (value, kind(other)) {
        (Value::Int(0), Some((kind @ (Kind::Time | Kind::Size | Kind::Rate | Kind::Bandwidth), _))) => {
            of_kind(kind, 0.0).unwrap_or_else(|_| value.clone())
        }
        _ => value.clone(),
    }
}

/// `left operator right`.
pub(crate) fn binary(left: &Value, operator: Operator, right: &Value, spans: (Span, Span)) -> Outcome {
    if matches!(left, Value::Measured(_)) || matches!(right, Value::Measured(_)) {
        return measured::binary(left, operator, right, spans);
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
        Operator::Not => Err(Failed::NoSuchOperator(None)),
        _ => number(left, operator, right),
    }
}

fn overflow() -> Failed {
    Failed::Arithmetic("the result does not fit an integer (at most 2147483647)".into())
}

fn number(left: &Value, operator: Operator, right: &Value) -> Outcome {
    if let (Value::Int(a), Value::Int(b)) = (left, right) {
        return integers(*a, operator, *b);
    }
    let (Some((a_kind, a)), Some((b_kind, b))) = (kind(left), kind(right)) else {
        return Err(Failed::NoSuchOperator(number_help(left, right)));
    };
    let plain = |kind: Kind| matches!(kind, Kind::Int | Kind::Float);
    let both_plain = plain(a_kind) && plain(b_kind);
    match operator {
        Operator::Plus if a_kind == b_kind || both_plain => of_kind(a_kind, a + b),
        Operator::Minus if a_kind == b_kind || both_plain => of_kind(a_kind, a - b),
        Operator::Power if both_plain => of_kind(Kind::Float, libm::pow(a, b)),
        Operator::Times => product(a_kind, b_kind).map_or_else(no_operator, |kind| of_kind(kind, a * b)),
        Operator::Divide => match quotient(a_kind, b_kind) {
            Some(_) if b == 0.0 => Err(Failed::Arithmetic("division by zero".into())),
            Some(kind) => of_kind(kind, a / b),
            None => no_operator(),
        },
        Operator::Remainder if both_plain => Err(Failed::NoSuchOperator(Some(
            "the remainder is of integers; for a percentage write `5%` without a space",
        ))),
        Operator::Plus | Operator::Minus => {
            let help = (plain(a_kind) || plain(b_kind)).then_some("give the number the same unit");
            Err(Failed::NoSuchOperator(help))
        }
        _ => no_operator(),
    }
}

fn no_operator() -> Outcome {
    Err(Failed::NoSuchOperator(None))
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

fn product(a: Kind, b: Kind) -> Option<Kind> {
    Some(match (a, b) {
        (Kind::Int | Kind::Float, other) | (other, Kind::Int | Kind::Float) => other,
        (Kind::Size, Kind::Rate) | (Kind::Rate, Kind::Size) => Kind::Bandwidth,
        (Kind::Rate, Kind::Time) | (Kind::Time, Kind::Rate) => Kind::Float,
        (Kind::Bandwidth, Kind::Time) | (Kind::Time, Kind::Bandwidth) => Kind::Size,
        _ => return None,
    })
}

fn quotient(a: Kind, b: Kind) -> Option<Kind> {
    Some(match (a, b) {
        (same, other) if same == other => Kind::Float,
        (other, Kind::Int | Kind::Float) => other,
        (Kind::Int | Kind::Float, Kind::Time) => Kind::Rate,
        (Kind::Int | Kind::Float, Kind::Rate) => Kind::Time,
        (Kind::Size, Kind::Time) => Kind::Bandwidth,
        (Kind::Size, Kind::Bandwidth) => Kind::Time,
        _ => return None,
    })
}

fn integers(a: i32, operator: Operator, b: i32) -> Outcome {
    let divides = matches!(operator, Operator::Divide | Operator::Remainder);
    if divides && b == 0 {
        return Err(Failed::Arithmetic("division by zero".into()));
    }
    let result = match operator {
        Operator::Plus => a.checked_add(b),
        Operator::Minus => a.checked_sub(b),
        Operator::Times => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        Operator::Remainder => a.checked_rem(b),
        Operator::Power => match u32::try_from(b) {
            Ok(power) => a.checked_pow(power),
            Err(_) if a == 0 => return Err(Failed::Arithmetic("division by zero".into())),
            // A whole number to a negative power, cut off like any division.
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

fn logic(left: &Value, operator: Operator, right: &Value) -> Outcome {
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

fn equal(left: &Value, right: &Value) -> Result<bool, Failed> {
    Ok(match (left, right) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Bool(a), Value::Int(b)) | (Value::Int(b), Value::Bool(a)) => *a == (*b != 0),
        (Value::Time(a), Value::Time(b)) | (Value::Size(a), Value::Size(b)) => a == b,
        (Value::Array(a), Value::Array(b)) => {
            let flat = |array: &Array| array.runs();
            let (Some(a), Some(b)) = (flat(a), flat(b)) else {
                return Err(Failed::TooMany);
            };
            let same = |(a, b): (&crate::value::array::Run, &crate::value::array::Run)| {
                a.times == b.times && a.value.fingerprint() == b.value.fingerprint()
            };
            a.len() == b.len() && a.iter().zip(&b).all(same)
        }
        _ => {
            let is_real =
                |value: &Value| matches!(kind(value), Some((Kind::Float | Kind::Int | Kind::Rate, _)));
            let help = "real numbers are seldom equal; compare with `<=` or `>=`";
            return Err(Failed::NoSuchOperator((is_real(left) && is_real(right)).then_some(help)));
        }
    })
}

fn order(left: &Value, operator: Operator, right: &Value) -> Outcome {
    let (Some((a_kind, a)), Some((b_kind, b))) = (kind(left), kind(right)) else {
        return no_operator();
    };
    let plain = |kind: Kind| matches!(kind, Kind::Int | Kind::Float);
    if a_kind != b_kind && !(plain(a_kind) && plain(b_kind)) {
        let number = plain(a_kind) || plain(b_kind);
        return Err(Failed::NoSuchOperator(
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
fn range(left: &Value, right: &Value, span: Span) -> Outcome {
    let (Value::Int(from), Value::Int(to)) = (left, right) else {
        return Err(Failed::NoSuchOperator(Some("`..` stands between integers")));
    };
    if from.abs_diff(*to) as u64 >= crate::value::array::MAX_ITEMS {
        return Err(Failed::TooMany);
    }
    let up = (*from.min(to)..=*from.max(to)).map(Value::Int);
    Ok(if from <= to { Value::list(up, span) } else { Value::list(up.rev(), span) })
}

/// `value ** n`.
fn clone(left: &Value, right: &Value, span: Span) -> Outcome {
    let Value::Int(times) = right else {
        return Err(Failed::NoSuchOperator(Some("how many times it is repeated must be an integer")));
    };
    let Ok(times) = u32::try_from(*times) else {
        return Err(Failed::Arithmetic("nothing can be repeated a negative number of times".into()));
    };
    checked(Array::new(vec![Item { times, ..Item::plain(left.clone(), span) }]))
}

fn concat(left: &Value, right: &Value, spans: (Span, Span)) -> Outcome {
    let Value::Array(array) = left else {
        return no_operator();
    };
    checked(match right {
        Value::Array(other) => array.concat(other.items()),
        item => array.concat(&[Item::plain(item.clone(), spans.1)]),
    })
}

/// An array that can be worked with.
pub(crate) fn checked(array: Array) -> Outcome {
    if fits(&array) { Ok(Value::Array(Rc::new(array))) } else { Err(Failed::TooMany) }
}

/// True for an array that can be worked with.
pub(crate) fn fits(array: &Array) -> bool {
    let deep = array.depth() > crate::value::array::MAX_DEPTH;
    !(array.too_large() || deep || array.count() > u64::from(u32::MAX))
}

/// `now + distribution`. A qualifier that the distribution has already is replaced.
fn qualify(left: &Value, right: &Value) -> Outcome {
    match (left, convert(right.clone(), Ty::random(Base::Time))) {
        (Value::Moment(moment), Ok(Value::Random(random))) => {
            Ok(Value::Random(Rc::new(Random { moment: Some(*moment), ..(*random).clone() })))
        }
        _ => Err(Failed::NoSuchOperator(Some(
            "a distribution of times follows `now`, `lmt` and `nmt`: `now + const(1day)`",
        ))),
    }
}
