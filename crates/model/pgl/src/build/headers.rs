//! Header fields that a workload adds to messages.

use assay_workload::model::HeaderRule;

use super::Builder;
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::array::{Array, Item};
use crate::value::{Record, Value};

/// Fields that delimit messages, or are part of the protocol between robots and origins.
const RESERVED_FIELDS: [&str; 3] = ["content-length", "transfer-encoding", "x-assay"];
/// Fields that change what a cache may do with a message. `Vary` is absent because the model of the ideal cache obeys it.
const CACHING_FIELDS: [&str; 20] = [
    "age",
    "authorization",
    "cache-control",
    "cdn-cache-control",
    "content-encoding",
    "content-range",
    "cookie",
    "date",
    "etag",
    "expires",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "pragma",
    "range",
    "set-cookie",
    "surrogate-control",
];
/// Upper bound on the fields of a list.
const MAX_FIELDS: u64 = 1000;

impl Builder<'_> {
    /// The rules of a list. Each item has a probability of its own; the fields of an inner list are added together.
    pub(super) fn header_rules(&mut self, record: &Record, field: &str) -> Vec<HeaderRule> {
        let Some((array, span)) = self.array(record, field) else { return vec![] };
        if array.count() > MAX_FIELDS {
            let label = format!("{} of them; at most {MAX_FIELDS}", array.count());
            self.error(Code::TooMany, span, "too many header fields", label);
            return vec![];
        }
        array.items().iter().filter_map(|item| self.header_rule(item, span)).collect()
    }

    fn header_rule(&mut self, item: &Item, list: Span) -> Option<HeaderRule> {
        let span = if item.span == Span::default() { list } else { item.span };
        let probability = item.probability.unwrap_or(1.0);
        if probability > 1.0 + 1e-9 {
            let percent = (probability * 1e8).round() / 1e6;
            self.error(
                Code::OutOfRange,
                span,
                "a header field is added with a probability of its own",
                format!("this is {percent}%; expected 0% to 100%"),
            );
            return None;
        }
        let alone;
        let together = match &item.value {
            Value::Array(inner) => inner.as_ref(),
            value => {
                alone = Array::new(vec![Item::plain(value.clone(), span)]);
                &alone
            }
        };
        let mut fields = Vec::new();
        for run in together.runs()? {
            let Value::Record(header) = &run.value else { continue };
            fields.extend(self.header_field(header, span));
        }
        (!fields.is_empty()).then(|| HeaderRule { fields, probability: probability.min(1.0) })
    }

    /// Name and value of a field; reports those that are not valid (RFC 9110, section 5).
    fn header_field(&mut self, header: &Record, span: Span) -> Option<(String, String)> {
        self.warn_unsupported_fields(header);
        let name = self.text(header, "name").unwrap_or_default();
        let value = self.text(header, "value").unwrap_or_default();
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let wrong = if name.is_empty() || !name.chars().all(is_token) {
            Some((
                "this is no name of a header field",
                format!("`{name}`; expected letters, digits and dashes"),
            ))
        } else if value.chars().any(|c| c.is_control() && c != '\t') {
            Some(("this is no value of a header field", "expected one line".to_owned()))
        } else if RESERVED_FIELDS.contains(&name.to_ascii_lowercase().as_str()) {
            Some((
                "this header field is not free",
                format!("`{name}` is written by robots and origins themselves"),
            ))
        } else {
            None
        };
        if let Some((message, label)) = wrong {
            self.diagnostics.add(Diagnostic::error(Code::BadLiteral, span, message).label(label));
            return None;
        }
        if CACHING_FIELDS.contains(&name.to_ascii_lowercase().as_str()) {
            let message = format!("`{name}` changes what caches may do");
            self.diagnostics.add(
                Diagnostic::warning(Code::CachingField, span, message)
                    .label("ideal hit ratios and the checks of responses take no account of it"),
            );
        }
        Some((name, value.trim().to_owned()))
    }
}
