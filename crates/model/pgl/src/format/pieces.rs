//! All of a text in pieces: tokens, comments, `#include` lines, and how many line ends stood before each.

use crate::lexer::{Token, TokenKind};

/// What a piece is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An operator or a mark.
    Mark(&'static str),
    /// A name or keyword.
    Word,
    /// A value, or a regular expression with its operator.
    Value,
    /// From `//` to the end of the line.
    LineComment,
    /// `/* … */`.
    BlockComment,
    /// `#include "name"`, with the comments behind it.
    Directive,
}

/// A piece of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece<'t> {
    pub kind: Kind,
    /// As written, without blanks at the end of a line.
    pub text: &'t str,
    /// Line ends between it and the piece before it.
    pub line_ends: usize,
    /// The blanks before it on its line; where something else stands there, the columns of that too.
    pub column: usize,
}

impl Piece<'_> {
    pub fn is(&self, mark: &str) -> bool {
        matches!(self.kind, Kind::Mark(m) if m == mark)
    }

    pub fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }

    pub fn is_comment(&self) -> bool {
        matches!(self.kind, Kind::LineComment | Kind::BlockComment)
    }

    /// True for what nothing can follow on its line.
    pub fn ends_line(&self) -> bool {
        matches!(self.kind, Kind::LineComment | Kind::Directive)
    }
}

/// Cuts a text, whose tokens were read without an error.
pub(super) fn pieces<'t>(text: &'t str, tokens: &[Token]) -> Vec<Piece<'t>> {
    let mut cutter =
        Cutter { text, at: 0, line_start: 0, line_ends: 0, pieces: Vec::with_capacity(tokens.len()) };
    for token in tokens.iter().filter(|token| token.span.source == 0) {
        let (start, end) = (token.span.start as usize, token.span.end as usize);
        cutter.between(start);
        let kind = match token.kind {
            TokenKind::Mark(mark) => Kind::Mark(mark),
            TokenKind::Word(_) => Kind::Word,
            TokenKind::Literal(_) | TokenKind::Regex(_) | TokenKind::Stray => Kind::Value,
            TokenKind::End => continue,
        };
        cutter.push(kind, end);
    }
    cutter.between(text.len());
    cutter.pieces
}

struct Cutter<'t> {
    text: &'t str,
    at: usize,
    /// Where the line began that is being cut.
    line_start: usize,
    line_ends: usize,
    pieces: Vec<Piece<'t>>,
}

impl Cutter<'_> {
    /// The piece from here to `end`.
    fn push(&mut self, kind: Kind, end: usize) {
        let text = self.text[self.at..end].trim_end();
        let column = columns(&self.text[self.line_start..self.at]);
        self.pieces.push(Piece { kind, text, line_ends: self.line_ends, column });
        self.line_ends = 0;
        if let Some(last) = text.rfind('\n') {
            self.line_start = self.at + last + 1;
        }
        self.at = end;
    }

    /// Cuts what stands between two tokens: blanks, comments, and lines that begin with `#`.
    fn between(&mut self, end: usize) {
        while self.at < end {
            let rest = &self.text[self.at..end];
            let line = self.at + rest.find('\n').unwrap_or(rest.len());
            match rest.as_bytes()[0] {
                b'\n' => {
                    self.at += 1;
                    self.line_start = self.at;
                    self.line_ends += 1;
                }
                b'#' => self.push(Kind::Directive, line),
                b'/' if rest.starts_with("//") => self.push(Kind::LineComment, line),
                b'/' if rest.starts_with("/*") => {
                    self.push(Kind::BlockComment, self.at + comment_length(rest))
                }
                _ => self.at += rest.chars().next().map_or(1, char::len_utf8),
            }
        }
    }
}

/// Bytes of the comment that a text begins with; comments nest.
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

/// Columns that a text takes, with tabs to every fourth.
pub(super) fn columns(text: &str) -> usize {
    text.chars().fold(0, |column, c| if c == '\t' { column / 4 * 4 + 4 } else { column + 1 })
}
