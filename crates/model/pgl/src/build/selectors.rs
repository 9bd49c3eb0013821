//! Arrays as random selectors.

use assay_workload::model::{HttpVersion, Method, RequestType, Weighted};

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::array::{Array, Choice, Scaled};
use crate::value::{Record, Value};

/// Upper bound on the choices of a selector.
const MAX_CHOICES: u64 = 1 << 16;

impl Builder<'_> {
    pub(super) fn array<'r>(&self, record: &'r Record, field: &str) -> Option<(&'r Array, Span)> {
        let slot = record.get(field)?;
        match &slot.value {
            Value::Array(array) => Some((array, slot.span)),
            _ => None,
        }
    }

    /// The choices of an array field, with ranges expanded; empty if it is not set.
    pub(super) fn choices(&mut self, record: &Record, field: &str) -> Vec<Choice> {
        let Some((array, span)) = self.array(record, field) else { return vec![] };
        let name = format!("{}.{field}", record.kind.name());
        let Some((choices, scaled)) = array.choices().filter(|_| array.count() <= u64::from(u32::MAX)) else {
            self.error(
                Code::TooMany,
                span,
                format!("`{name}` has too many items"),
                "this is not a list to choose from",
            );
            return vec![];
        };
        if let Some(scaled) = scaled {
            self.warn_scaled(&name, scaled, span);
        }
        let singles: u64 = choices.iter().map(|choice| choice.value.count()).fold(0, u64::saturating_add);
        if singles > MAX_CHOICES {
            let label = format!("{singles} items; at most {MAX_CHOICES} can be chosen from");
            self.error(Code::TooMany, span, format!("`{name}` has too many items"), label);
            return vec![];
        }
        choices.into_iter().flat_map(expand_range).map(|choice| with_span(choice, span)).collect()
    }

    /// The items of a list that is used as a whole; warns about probabilities, which have no effect there.
    pub(super) fn used_items(&mut self, record: &Record, field: &str) -> Vec<Choice> {
        if let Some((array, span)) = self.array(record, field)
            && array.weighted()
        {
            let message = format!("shares in `{}.{field}` have no effect", record.kind.name());
            let warning = Diagnostic::warning(Code::NoEffect, span, &message);
            self.diagnostics.add_once(message, warning.label("all items of this list are used"));
        }
        self.choices(record, field)
    }

    fn warn_scaled(&mut self, name: &str, scaled: Scaled, span: Span) {
        let (sum, then) = match scaled {
            Scaled::Up(sum) => (sum, "they are scaled up to 100%"),
            Scaled::Down(sum) => {
                (sum, "they are scaled down to 100%, and items without a probability get none")
            }
        };
        let percent = (sum * 10_000.0).round() / 100.0;
        self.diagnostics.add(
            Diagnostic::warning(
                Code::Probabilities,
                span,
                format!("the probabilities in `{name}` add up to {percent}%"),
            )
            .label(then),
        );
    }

    /// A selector of strings.
    pub(super) fn text_choices(&mut self, record: &Record, field: &str) -> Weighted<String> {
        let choices = self.choices(record, field);
        Weighted::new(choices.into_iter().map(|choice| (choice.value.to_string(), choice.probability)))
    }

    /// A selector of known keywords; none if it is not set or empty.
    pub(super) fn keywords<T: Copy + PartialEq>(
        &mut self,
        record: &Record,
        field: &str,
        known: &[(&'static str, T)],
    ) -> Option<Weighted<T>> {
        let mut sums: Vec<(T, f64)> = Vec::new();
        for choice in self.choices(record, field) {
            let word = choice.value.to_string();
            let Some((_, meant)) = known.iter().find(|(name, _)| *name == word) else {
                self.report_unknown_keyword(&word, choice.span, known.iter().map(|(name, _)| *name));
                continue;
            };
            match sums.iter_mut().find(|(other, _)| other == meant) {
                Some((_, sum)) => *sum += choice.probability,
                None => sums.push((*meant, choice.probability)),
            }
        }
        (!sums.is_empty()).then(|| Weighted::new(sums))
    }

    pub(super) fn request_types(&mut self, record: &Record) -> Option<Weighted<RequestType>> {
        let known = [
            ("Basic", RequestType::Basic),
            ("Ims200", RequestType::Ims200),
            ("Ims304", RequestType::Ims304),
            ("Reload", RequestType::Reload),
            ("Range", RequestType::Range),
            ("Upload", RequestType::Upload),
        ];
        self.keywords(record, "req_types", &known)
    }

    pub(super) fn methods(&mut self, record: &Record) -> Option<Weighted<Method>> {
        let known =
            [("GET", Method::Get), ("HEAD", Method::Head), ("POST", Method::Post), ("PUT", Method::Put)];
        self.keywords(record, "req_methods", &known)
    }

    /// Versions of HTTP; 1.1 by default.
    pub(super) fn versions(&mut self, record: &Record) -> Weighted<HttpVersion> {
        let known = [
            ("1.0", HttpVersion::Http10),
            ("1.1", HttpVersion::Http11),
            ("2", HttpVersion::Http2),
            ("3", HttpVersion::Http11),
        ];
        let choices = self.choices(record, "http_versions");
        if let Some(choice) = choices.iter().find(|choice| choice.value.to_string() == "3") {
            self.warn(
                Code::Unsupported,
                choice.span,
                "HTTP/3 is not spoken",
                "these agents speak HTTP/1.1 in its place",
            );
        }
        self.keywords(record, "http_versions", &known).unwrap_or_else(|| Weighted::one(HttpVersion::Http11))
    }
}

/// The values of a choice that is a range, which share its probability.
fn expand_range(choice: Choice) -> impl Iterator<Item = Choice> {
    let count = choice.value.count();
    (0..count).map(move |index| Choice {
        value: choice.value.nth(index),
        probability: choice.probability / count as f64,
        span: choice.span,
    })
}

/// A choice with the span of its field, if it is from a conversion and has no span of its own.
fn with_span(choice: Choice, field: Span) -> Choice {
    if choice.span == Span::default() { Choice { span: field, ..choice } } else { choice }
}
