//! Collects what is to be said, and keeps it to a readable amount.

use std::collections::HashSet;

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::schema::Topic;
use crate::source::Span;

/// Errors shown before the rest is only counted.
const MAX_ERRORS: usize = 100;
/// Warnings and notes shown before the rest is only counted.
const MAX_OTHERS: usize = 500;

/// The diagnostics of one compilation.
#[derive(Debug, Default)]
pub(crate) struct Diagnostics {
    list: Vec<Diagnostic>,
    errors: usize,
    others: usize,
    said: HashSet<String>,
}

impl Diagnostics {
    /// Adds one, unless the same was said about the same place.
    pub fn add(&mut self, diagnostic: Diagnostic) {
        let again = |d: &Diagnostic| d.span == diagnostic.span && d.code == diagnostic.code;
        if self.list.iter().rev().take(64).any(|d| again(d) && d.message == diagnostic.message) {
            return;
        }
        let (count, limit) = if diagnostic.is_error() {
            (&mut self.errors, MAX_ERRORS)
        } else {
            (&mut self.others, MAX_OTHERS)
        };
        *count += 1;
        if *count <= limit {
            self.list.push(diagnostic);
        }
    }

    /// Adds one unless another was added under this key.
    pub fn add_once(&mut self, key: impl Into<String>, diagnostic: Diagnostic) {
        if self.said.insert(key.into()) {
            self.add(diagnostic);
        }
    }

    /// Says, once for all that belongs to it, that something is left out.
    pub fn left_out(&mut self, topic: Topic, span: Span) {
        self.add_once(
            format!("topic {}", topic.name()),
            Diagnostic::warning(Code::LeftOut, span, format!("left out on purpose: {}", topic.name()))
                .label(topic.instead())
                .help("whatever else belongs to it is accepted too, without another warning"),
        );
    }

    /// True once no more errors are shown, so that there is no use in finding words for them.
    pub fn full(&self) -> bool {
        self.errors > MAX_ERRORS
    }

    /// True once there is an error.
    pub fn failed(&self) -> bool {
        self.errors > 0
    }

    /// All of them in order of appearance in the sources.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|d| d.span.map(|span| (span.source, span.start)));
        if self.errors > MAX_ERRORS {
            let more = self.errors - MAX_ERRORS;
            self.list.push(Diagnostic::placeless(
                Code::TooManyErrors,
                format!("{more} more errors are not shown"),
            ));
        }
        if self.others > MAX_OTHERS {
            let more = self.others - MAX_OTHERS;
            let message = format!("{more} more warnings and notes are not shown");
            let last = Diagnostic::placeless(Code::TooManyErrors, message);
            let last = Diagnostic { severity: Severity::Warning, ..last };
            self.list.push(last);
        }
        self.list
    }
}
