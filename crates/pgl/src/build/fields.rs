//! Reads the fields of an object, with the limits that numbers have.

use std::time::Duration;

use assay_workload::model::Distribution;

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::{Random, Record, Value};

/// What is forgiven above 100%: rounding.
const SLACK: f64 = 1e-9;

impl Builder<'_> {
    /// A string.
    pub(super) fn text(&self, record: &Record, field: &str) -> Option<String> {
        match &record.get(field)?.value {
            Value::Text(text) => Some(text.to_string()),
            _ => None,
        }
    }

    /// A truth value.
    pub(super) fn truth(&self, record: &Record, field: &str) -> Option<bool> {
        match record.get(field)?.value {
            Value::Bool(x) => Some(x),
            _ => None,
        }
    }

    /// An object.
    pub(super) fn object<'r>(&self, record: &'r Record, field: &str) -> Option<&'r Record> {
        match &record.get(field)?.value {
            Value::Record(inner) => Some(inner),
            _ => None,
        }
    }

    /// Complains about a field that must be set and is not.
    pub(super) fn require(&mut self, record: &Record, field: &str, span: Span, help: &str) -> bool {
        let missing = record.get(field).is_none();
        if missing {
            let kind = record.kind.name();
            self.diagnostics.add(
                Diagnostic::error(Code::Required, span, format!("this `{kind}` has no `{field}`"))
                    .label(format!("`{field}` must be set"))
                    .help(help),
            );
        }
        !missing
    }

    /// A number within limits.
    fn number(&mut self, record: &Record, field: &str, low: f64, high: f64, limits: &str) -> Option<f64> {
        let slot = record.get(field)?;
        let x = match slot.value {
            Value::Float(x) => x,
            Value::Int(x) => f64::from(x),
            _ => return None,
        };
        if x.is_finite() && x >= low && x <= high + SLACK {
            return Some(x.min(high));
        }
        let message = format!("`{}.{field}` is out of range", record.kind.name());
        self.error(
            Code::OutOfRange,
            slot.span,
            message,
            format!("this is {}; expected {limits}", slot.value),
        );
        None
    }

    /// A share of something, 0 to 1.
    pub(super) fn share(&mut self, record: &Record, field: &str) -> Option<f64> {
        self.number(record, field, 0.0, 1.0, "0% to 100%")
    }

    /// A number that is not negative.
    pub(super) fn amount(&mut self, record: &Record, field: &str) -> Option<f64> {
        self.number(record, field, 0.0, f64::MAX, "zero or more")
    }

    /// A whole number, at least `low`.
    pub(super) fn whole(&mut self, record: &Record, field: &str, low: u32) -> Option<u32> {
        let limits = format!("{low} or more");
        self.number(record, field, f64::from(low), f64::from(i32::MAX), &limits).map(|x| x as u32)
    }

    /// A positive quantity with a unit: seconds, bytes, per second.
    pub(super) fn quantity(&mut self, record: &Record, field: &str, zero: bool) -> Option<f64> {
        let slot = record.get(field)?;
        let x = match slot.value {
            Value::Time(x) | Value::Size(x) | Value::Rate(x) => x,
            Value::Date(_) => f64::NAN,
            _ => return None,
        };
        if x > 0.0 || (zero && x == 0.0) {
            return Some(x);
        }
        let message = format!("`{}.{field}` is out of range", record.kind.name());
        let limits = if zero { "zero or more" } else { "more than zero" };
        self.error(
            Code::OutOfRange,
            slot.span,
            message,
            format!("this is {}; expected {limits}", slot.value),
        );
        None
    }

    /// A time.
    pub(super) fn duration(&mut self, record: &Record, field: &str, zero: bool) -> Option<Duration> {
        let seconds = self.quantity(record, field, zero)?;
        let duration = Duration::try_from_secs_f64(seconds).ok();
        if duration.is_none() {
            let span = record.get(field).map_or(Span::default(), |slot| slot.span);
            self.error(
                Code::OutOfRange,
                span,
                "this time is too long",
                "expected at most some billion years",
            );
        }
        duration
    }

    /// A distribution that draws nothing below zero, and is not counted from some moment.
    pub(super) fn distribution(&mut self, record: &Record, field: &str) -> Option<Distribution> {
        let slot = record.get(field)?;
        let Value::Random(random) = &slot.value else { return None };
        let random: &Random = random;
        if random.moment.is_some() {
            let message = format!("`{}.{field}` is no moment", record.kind.name());
            self.error(Code::TypeMismatch, slot.span, message, "expected no `now`, `lmt` or `nmt` before it");
            return None;
        }
        let negative = match &random.law {
            Distribution::Constant(x)
            | Distribution::Exponential { mean: x }
            | Distribution::Sequence { first: x } => *x < 0.0,
            Distribution::Uniform { low, .. } => *low < 0.0,
            Distribution::Normal { mean, .. } => *mean < 0.0,
            Distribution::LogNormal { .. } | Distribution::Zipf { .. } => false,
            Distribution::Table(bins) => bins.iter().any(|bin| bin.low < 0.0),
        };
        if negative {
            let message = format!("`{}.{field}` cannot be negative", record.kind.name());
            self.error(Code::OutOfRange, slot.span, message, format!("this is {random}"));
            return None;
        }
        Some(random.law.clone())
    }
}
