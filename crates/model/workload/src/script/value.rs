//! What an expression of a script comes to. Numbers, times and text, and the arithmetic between them.

use std::fmt;

/// A value. Truth is a number: 0 is false.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptValue {
    /// A number, a size in bytes or a rate per second.
    Number(f64),
    /// A time in seconds; printed with its unit.
    Seconds(f64),
    /// Text, for printing and comparing.
    Text(String),
}

impl Default for ScriptValue {
    /// A variable that was never set: no number.
    fn default() -> Self {
        Self::Number(f64::NAN)
    }
}

impl ScriptValue {
    /// As a number; text is none.
    pub fn number(&self) -> f64 {
        match self {
            Self::Number(number) | Self::Seconds(number) => *number,
            Self::Text(_) => f64::NAN,
        }
    }

    /// True for numbers other than 0, and for text that is not empty.
    pub fn is_true(&self) -> bool {
        match self {
            Self::Number(number) | Self::Seconds(number) => *number != 0.0 && !number.is_nan(),
            Self::Text(text) => !text.is_empty(),
        }
    }

    fn is_time(&self) -> bool {
        matches!(self, Self::Seconds(_))
    }

    fn of(number: f64, is_time: bool) -> Self {
        if is_time { Self::Seconds(number) } else { Self::Number(number) }
    }
}

impl fmt::Display for ScriptValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Number(number) => f.write_str(&short(*number)),
            Self::Seconds(seconds) => {
                let magnitude = libm::fabs(*seconds);
                let (value, unit) = match magnitude {
                    m if m < 1.0 && m > 0.0 => (seconds * 1e3, "msec"),
                    m if m < 120.0 => (*seconds, "sec"),
                    m if m < 7200.0 => (seconds / 60.0, "min"),
                    _ => (seconds / 3600.0, "hour"),
                };
                write!(f, "{}{unit}", short(value))
            }
        }
    }
}

/// At most three digits after the point, and no trailing zeros.
fn short(number: f64) -> String {
    let text = format!("{number:.3}");
    if !text.contains('.') {
        return text;
    }
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".into(),
        short => short.into(),
    }
}

/// `!` and `-`.
pub(super) fn unary(sign: char, value: ScriptValue) -> ScriptValue {
    match sign {
        '!' => ScriptValue::Number(f64::from(u8::from(!value.is_true()))),
        '-' => ScriptValue::of(-value.number(), value.is_time()),
        _ => value,
    }
}

/// All operators between two values. A sum with text puts texts together.
pub(super) fn binary(sign: &str, left: ScriptValue, right: ScriptValue) -> ScriptValue {
    let truth = |truth: bool| ScriptValue::Number(f64::from(u8::from(truth)));
    if let (ScriptValue::Text(_), _) | (_, ScriptValue::Text(_)) = (&left, &right) {
        match sign {
            "+" => return ScriptValue::Text(format!("{left}{right}")),
            "==" => return truth(left.to_string() == right.to_string()),
            "!=" => return truth(left.to_string() != right.to_string()),
            _ => {}
        }
    }
    let (a, b) = (left.number(), right.number());
    let (time_a, time_b) = (left.is_time(), right.is_time());
    match sign {
        "+" => ScriptValue::of(a + b, time_a || time_b),
        "-" => ScriptValue::of(a - b, time_a || time_b),
        "*" => ScriptValue::of(a * b, time_a != time_b),
        "/" => ScriptValue::of(a / b, time_a && !time_b),
        "%" => ScriptValue::of(a % b, time_a),
        "^" => ScriptValue::Number(libm::pow(a, b)),
        "==" => truth(a == b),
        "!=" => truth(a != b),
        "<" => truth(a < b),
        "<=" => truth(a <= b),
        ">" => truth(a > b),
        ">=" => truth(a >= b),
        "&&" => truth(left.is_true() && right.is_true()),
        "||" => truth(left.is_true() || right.is_true()),
        "^^" => truth(left.is_true() != right.is_true()),
        _ => ScriptValue::default(),
    }
}

/// The greatest or least of some values.
pub(super) fn extreme(greatest: bool, values: impl Iterator<Item = ScriptValue>) -> ScriptValue {
    let better = |a: &ScriptValue, b: &ScriptValue| {
        if greatest { b.number() > a.number() } else { b.number() < a.number() }
    };
    values.reduce(|a, b| if better(&a, &b) { b } else { a }).unwrap_or_default()
}
