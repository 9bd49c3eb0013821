//! Access to the fields of objects, with checks of their ranges.

use std::ops::RangeInclusive;
use std::time::Duration;

use assay_workload::model::Distribution;

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostics::Diagnostics;
use crate::source::Span;
use crate::value::{Random, Record, Value};
use assay_base::settings::suggest::nearest;

/// Tolerance above 100%, for rounding errors.
const SLACK: f64 = 1e-9;

fn number(
    diagnostics: &mut Diagnostics,
    record: &Record,
    field: &str,
    range: RangeInclusive<f64>,
    limits: &str,
) -> Option<f64> {
    let slot = record.get(field)?;
    let x = match slot.value {
        Value::Int(x) => f64::from(x),
        _ => slot.value.float()?,
    };
    let (low, high) = range.into_inner();
    if x.is_finite() && x >= low && x <= high + SLACK {
        return Some(x.min(high));
    }
    let percent = high <= 1.0 && x.is_finite();
    let shown = if percent { format!("{}%", (x * 1e8).round() / 1e6) } else { slot.value.to_string() };
    let message = format!("`{}.{field}` is out of range", record.kind.name());
    diagnostics.add(
        Diagnostic::error(Code::OutOfRange, slot.span, message)
            .label(format!("this is {shown}; expected {limits}")),
    );
    None
}

pub(super) fn non_negative(diagnostics: &mut Diagnostics, record: &Record, field: &str) -> Option<f64> {
    number(diagnostics, record, field, 0.0..=f64::MAX, "zero or more")
}

/// An integer, at least `low`.
pub(super) fn integer(diagnostics: &mut Diagnostics, record: &Record, field: &str, low: u32) -> Option<u32> {
    let limits = format!("{low} or more");
    number(diagnostics, record, field, f64::from(low)..=f64::from(i32::MAX), &limits).map(|x| x as u32)
}

/// A quantity in its base unit (seconds, bytes, per second), above zero or, if `zero`, not below it.
pub(super) fn quantity(
    diagnostics: &mut Diagnostics,
    record: &Record,
    field: &str,
    zero: bool,
) -> Option<f64> {
    let slot = record.get(field)?;
    let x = match slot.value {
        Value::Time(x) | Value::Size(x) | Value::Rate(x) | Value::Bandwidth(x) => x,
        Value::Date(_) => f64::NAN,
        _ => return None,
    };
    if x > 0.0 || (zero && x == 0.0) {
        return Some(x);
    }
    let message = format!("`{}.{field}` is out of range", record.kind.name());
    let limits = if zero { "zero or more" } else { "more than zero" };
    diagnostics.add(
        Diagnostic::error(Code::OutOfRange, slot.span, message)
            .label(format!("this is {}; expected {limits}", slot.value)),
    );
    None
}

pub(super) fn duration(
    diagnostics: &mut Diagnostics,
    record: &Record,
    field: &str,
    zero: bool,
) -> Option<Duration> {
    let seconds = quantity(diagnostics, record, field, zero)?;
    let duration = Duration::try_from_secs_f64(seconds).ok();
    if duration.is_none() {
        let span = record.get(field).map_or(Span::default(), |slot| slot.span);
        diagnostics.add(
            Diagnostic::error(Code::OutOfRange, span, "this time is too long")
                .label("expected at most some billion years"),
        );
    }
    duration
}

impl Builder<'_> {
    pub(super) fn text(&self, record: &Record, field: &str) -> Option<String> {
        match &record.get(field)?.value {
            Value::Text(text) => Some(text.to_string()),
            _ => None,
        }
    }

    /// A string that is one of the known keywords.
    pub(super) fn keyword<T: Copy>(
        &mut self,
        record: &Record,
        field: &str,
        known: &[(&'static str, T)],
    ) -> Option<T> {
        let word = self.text(record, field)?;
        let found = known.iter().find(|(name, _)| *name == word).map(|(_, meaning)| *meaning);
        if found.is_none() {
            self.report_unknown_keyword(
                &word,
                self.field_span(record, field),
                known.iter().map(|(name, _)| *name),
            );
        }
        found
    }

    pub(super) fn report_unknown_keyword(
        &mut self,
        word: &str,
        span: Span,
        known: impl Iterator<Item = &'static str>,
    ) {
        let known: Vec<&str> = known.collect();
        let list: Vec<String> = known.iter().map(|word| format!("\"{word}\"")).collect();
        let meant = nearest(word, known);
        let diagnostic = Diagnostic::error(Code::OutOfRange, span, format!("\"{word}\" means nothing here"))
            .label(format!("expected {}", list.join(", ")))
            .suggest(meant);
        // The span includes the quotes.
        self.diagnostics.add(match meant {
            Some(meant) => diagnostic.replacement(format!("\"{meant}\"")),
            None => diagnostic,
        });
    }

    pub(super) fn boolean(&self, record: &Record, field: &str) -> Option<bool> {
        match record.get(field)?.value {
            Value::Bool(x) => Some(x),
            _ => None,
        }
    }

    pub(super) fn object<'r>(&self, record: &'r Record, field: &str) -> Option<&'r Record> {
        match &record.get(field)?.value {
            Value::Record(inner) => Some(inner),
            _ => None,
        }
    }

    /// Place of the assignment of a field.
    pub(super) fn field_span(&self, record: &Record, field: &str) -> Span {
        record.get(field).map_or_else(Span::default, |slot| slot.span)
    }

    /// Reports a required field that is not set; true if it is set.
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

    /// Reports two fields that exclude each other and are both set.
    pub(super) fn check_exclusive(&mut self, record: &Record, fields: [&str; 2], message: &str) {
        if let [Some(first), Some(second)] = fields.map(|field| record.get(field)) {
            self.diagnostics.add(
                Diagnostic::error(Code::Conflict, second.span, message)
                    .label(format!("expected either `{}` or `{}`", fields[0], fields[1]))
                    .secondary(first.span, "the other is set here"),
            );
        }
    }

    /// A share, from 0 to 1.
    pub(super) fn share(&mut self, record: &Record, field: &str) -> Option<f64> {
        number(self.diagnostics, record, field, 0.0..=1.0, "0% to 100%")
    }

    pub(super) fn integer(&mut self, record: &Record, field: &str, low: u32) -> Option<u32> {
        integer(self.diagnostics, record, field, low)
    }

    pub(super) fn quantity(&mut self, record: &Record, field: &str, zero: bool) -> Option<f64> {
        quantity(self.diagnostics, record, field, zero)
    }

    pub(super) fn duration(&mut self, record: &Record, field: &str, zero: bool) -> Option<Duration> {
        duration(self.diagnostics, record, field, zero)
    }

    /// A distribution of values that are not negative, without a moment.
    pub(super) fn distribution(&mut self, record: &Record, field: &str) -> Option<Distribution> {
        let slot = record.get(field)?;
        let Value::Random(random) = &slot.value else { return None };
        let random: &Random = random;
        if random.moment.is_some() {
            let message = format!("`{}.{field}` is no moment", record.kind.name());
            self.error(Code::TypeMismatch, slot.span, message, "expected no `now`, `lmt` or `nmt` before it");
            return None;
        }
        if lower_bound(&random.law) < 0.0 {
            let message = format!("`{}.{field}` cannot be negative", record.kind.name());
            self.error(Code::OutOfRange, slot.span, message, format!("this is {random}"));
            return None;
        }
        Some(random.law.clone())
    }

    /// A distribution of shares, from 0 to 1.
    pub(super) fn share_distribution(&mut self, record: &Record, field: &str) -> Option<Distribution> {
        let law = self.distribution(record, field)?;
        let most = match &law {
            Distribution::Constant(x) => *x,
            Distribution::Uniform { high, .. } => *high,
            Distribution::Table(bins) => bins.iter().fold(0.0, |most, bin| bin.high.max(most)),
            _ => 0.0,
        };
        if most > 1.0 + SLACK {
            let message = format!("`{}.{field}` is out of range", record.kind.name());
            let shown = record.get(field).map_or_else(String::new, |slot| slot.value.to_string());
            self.error(
                Code::OutOfRange,
                self.field_span(record, field),
                message,
                format!("this is {shown}; expected shares from 0 to 1"),
            );
            return None;
        }
        Some(law)
    }
}

/// Lower bound of the values of a distribution; its mean for a distribution with tails.
fn lower_bound(law: &Distribution) -> f64 {
    match law {
        Distribution::Constant(x)
        | Distribution::Exponential { mean: x }
        | Distribution::Sequence { first: x }
        | Distribution::Uniform { low: x, .. }
        | Distribution::Normal { mean: x, .. } => *x,
        Distribution::LogNormal { .. } | Distribution::Zipf { .. } => 0.0,
        Distribution::Table(bins) => bins.iter().fold(0.0, |least, bin| bin.low.min(least)),
    }
}
