//! Collects diagnostics, without duplicates and up to a readable number.

use std::collections::HashSet;

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::schema::OmittedFeature;
use crate::source::Span;

/// Errors that are kept; further ones are counted.
const MAX_ERRORS: usize = 100;
/// Warnings and notes that are kept; further ones are counted.
const MAX_OTHERS: usize = 500;

/// Proof that an error was added to the [`Diagnostics`], so that its consequences need no report of their own.
pub(crate) struct ErrorReported;

/// The diagnostics of one compilation.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    list: Vec<Diagnostic>,
    error_count: usize,
    other_count: usize,
    reported_keys: HashSet<String>,
}

impl Diagnostics {
    /// Adds a diagnostic, unless the same one is there for the same place.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        let is_same_place = |d: &Diagnostic| d.span == diagnostic.span && d.code == diagnostic.code;
        if self.list.iter().rev().take(64).any(|d| is_same_place(d) && d.message == diagnostic.message) {
            return;
        }
        let (count, limit) = if diagnostic.is_error() {
            (&mut self.error_count, MAX_ERRORS)
        } else {
            (&mut self.other_count, MAX_OTHERS)
        };
        *count += 1;
        if *count <= limit {
            self.list.push(diagnostic);
        }
    }

    /// Adds a diagnostic, unless another was added under this key.
    pub fn add_once(&mut self, key: impl Into<String>, diagnostic: Diagnostic) {
        if self.reported_keys.insert(key.into()) {
            self.add(diagnostic);
        }
    }

    /// Warns about the use of an omitted feature, once for all its types and fields.
    pub fn out_of_scope(&mut self, feature: OmittedFeature, span: Span) {
        self.add_once(
            format!("topic {}", feature.name()),
            Diagnostic::warning(Code::OutOfScope, span, format!("left out on purpose: {}", feature.name()))
                .label(feature.replacement())
                .help("whatever else belongs to it is accepted too, without another warning"),
        );
    }

    /// True once further errors are only counted, so that a caller need not look for suggestions.
    pub fn is_full(&self) -> bool {
        self.error_count > MAX_ERRORS
    }

    pub fn has_errors(&self) -> bool {
        self.error_count > 0
    }

    /// All diagnostics, in order of appearance in the sources.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|d| d.span.map(|span| (span.source, span.start)));
        if self.error_count > MAX_ERRORS {
            let more = self.error_count - MAX_ERRORS;
            self.list.push(Diagnostic::without_span(
                Code::TooManyErrors,
                format!("{more} more errors are not shown"),
            ));
        }
        if self.other_count > MAX_OTHERS {
            let more = self.other_count - MAX_OTHERS;
            let message = format!("{more} more warnings and notes are not shown");
            let last = Diagnostic::without_span(Code::TooManyErrors, message);
            let last = Diagnostic { severity: Severity::Warning, ..last };
            self.list.push(last);
        }
        self.list
    }
}
