//! Marks of templates: files from which a workload is made by filling something in.

use super::{Literal, Scanner, TokenKind, is_word};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;

/// The length of the mark that a text begins with: `[% … %]` on one line, or `@NAME@`.
pub(super) fn mark_length(text: &str) -> Option<usize> {
    if let Some(after) = text.strip_prefix("[%") {
        let line = after.lines().next()?;
        return line.find("%]").map(|end| end + 4);
    }
    let after = text.strip_prefix('@')?;
    let length = after.find(|c| !is_word(c)).filter(|length| *length > 0)?;
    after[length..].starts_with('@').then_some(length + 2)
}

/// True when there is a mark anywhere in a text.
pub(super) fn is_marked(text: &str) -> bool {
    text.match_indices(['[', '@']).any(|(at, _)| mark_length(&text[at..]).is_some())
}

impl Scanner<'_, '_, '_> {
    /// A mark of so many bytes. One that is alone on its line stands for no value.
    pub(super) fn template_mark(&mut self, length: usize) {
        let start = self.at;
        self.at += length;
        self.refuse_template(Code::StrayCharacter, self.span(start));
        if !self.fresh_line {
            self.push(TokenKind::Literal(Literal::Broken), start);
        }
    }

    /// Says that a file is a template: once of its text, and once of what stands in quotes.
    pub(super) fn refuse_template(&mut self, code: Code, span: Span) {
        self.lexer.diagnostics.add_once(
            format!("template {code}"),
            Diagnostic::error(code, span, "this looks like a template, not a workload")
                .label("something must be filled in here")
                .help("let its own tool make the workload, and read that (Template Toolkit has `[% … %]`, automake `@NAME@`)"),
        );
    }
}
