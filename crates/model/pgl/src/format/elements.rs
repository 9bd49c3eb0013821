//! Splitting of a text into elements: tokens, comments and `#include` lines.

use crate::lexer::{Token, TokenKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElementKind {
    /// An operator or a delimiter.
    Mark(&'static str),
    /// A name or keyword.
    Word,
    /// A literal, or a regular expression with its operator.
    Value,
    /// From `//` to the end of the line.
    LineComment,
    /// `/* … */`.
    BlockComment,
    /// `#include "name"`, with the comments behind it.
    Directive,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Element<'t> {
    pub kind: ElementKind,
    /// Text as written, without trailing blanks.
    pub text: &'t str,
    /// Line ends between the previous element and this one.
    pub line_ends: usize,
    /// Column of the first character in the original text.
    pub column: usize,
}

impl Element<'_> {
    pub fn is_mark(&self, mark: &str) -> bool {
        matches!(self.kind, ElementKind::Mark(m) if m == mark)
    }

    pub fn is_word(&self, word: &str) -> bool {
        self.kind == ElementKind::Word && self.text == word
    }

    pub fn is_comment(&self) -> bool {
        matches!(self.kind, ElementKind::LineComment | ElementKind::BlockComment)
    }

    /// True for an element that extends to the end of its line.
    pub fn ends_line(&self) -> bool {
        matches!(self.kind, ElementKind::LineComment | ElementKind::Directive)
    }
}

/// Splits a text whose tokens were read without an error.
pub(super) fn elements<'t>(text: &'t str, tokens: &[Token]) -> Vec<Element<'t>> {
    let mut splitter =
        Splitter { text, at: 0, line_start: 0, line_ends: 0, elements: Vec::with_capacity(tokens.len()) };
    for token in tokens.iter().filter(|token| token.span.source == 0) {
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        splitter.split_gap(start);
        let kind = match token.kind {
            TokenKind::Mark(mark) => ElementKind::Mark(mark),
            TokenKind::Word(_) => ElementKind::Word,
            TokenKind::Literal(_) | TokenKind::Regex(_) | TokenKind::Stray => ElementKind::Value,
            TokenKind::End => continue,
        };
        splitter.push(kind, end);
    }
    splitter.split_gap(text.len());
    splitter.elements
}

struct Splitter<'t> {
    text: &'t str,
    at: usize,
    /// Offset of the current line.
    line_start: usize,
    line_ends: usize,
    elements: Vec<Element<'t>>,
}

impl Splitter<'_> {
    /// Adds the element from the current offset to `end`.
    fn push(&mut self, kind: ElementKind, end: usize) {
        let text = self.text[self.at..end].trim_end();
        let column = columns(&self.text[self.line_start..self.at]);
        self.elements.push(Element { kind, text, line_ends: self.line_ends, column });
        self.line_ends = 0;
        if let Some(last) = text.rfind('\n') {
            self.line_start = self.at + last + 1;
        }
        self.at = end;
    }

    /// Splits the text between two tokens: blanks, comments, and lines that begin with `#`.
    fn split_gap(&mut self, end: usize) {
        while self.at < end {
            let rest = &self.text[self.at..end];
            let line = self.at + rest.find('\n').unwrap_or(rest.len());
            match rest.as_bytes()[0] {
                b'\n' => {
                    self.at += 1;
                    self.line_start = self.at;
                    self.line_ends += 1;
                }
                b'#' => self.push(ElementKind::Directive, line),
                b'/' if rest.starts_with("//") => self.push(ElementKind::LineComment, line),
                b'/' if rest.starts_with("/*") => {
                    self.push(ElementKind::BlockComment, self.at + comment_length(rest))
                }
                _ => self.at += rest.chars().next().map_or(1, char::len_utf8),
            }
        }
    }
}

/// Length, in bytes, of the comment that a text begins with; comments nest.
fn comment_length(text: &str) -> usize {
    let (mut at, mut depth) = (2, 1_u32);
    while depth > 0 {
        let Some(found) = text[at..].find(['*', '/']) else { return text.len() };
        at += found;
        if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
        } else if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else {
            at += 1;
        }
    }
    at
}

/// Columns of a text, with tab stops at every fourth column.
pub(super) fn columns(text: &str) -> usize {
    text.chars().fold(0, |column, c| if c == '\t' { column / 4 * 4 + 4 } else { column + 1 })
}
