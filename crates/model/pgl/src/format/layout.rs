//! What stands between the pieces: nothing, a blank, or a line end with an indentation.

use super::pieces::{Kind, Piece, columns};
use crate::units;

/// Columns of a level.
const INDENT: usize = 4;
/// Columns of a block on one line, with all that stands before it on that line.
const WIDTH: usize = 120;
/// Columns of code, to the right of which comments of several lines are not aligned.
const ALIGNED: usize = 80;

/// Lays out a whole text.
pub(super) fn lay_out(pieces: &[Piece<'_>]) -> String {
    let mut layout = Layout {
        pieces,
        unary: unary(pieces),
        closing: closing(pieces),
        lines: Vec::new(),
        open: Vec::new(),
        statement_indent: 0,
        begins: true,
    };
    for at in 0..pieces.len() {
        layout.piece(at);
    }
    layout.text()
}

/// A line of the result.
struct Line {
    indent: usize,
    /// Without the indentation; empty for an empty line.
    code: String,
    /// The comment behind the code.
    comment: Option<String>,
}

/// What separates two pieces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    Nothing,
    Blank,
    Line,
}

/// A bracket, parenthesis or brace that is open.
struct Open {
    mark: &'static str,
    /// Where the line or statement stands in which it was opened.
    indent: usize,
    /// A block whose statements have lines of their own; a list.
    expanded: bool,
}

struct Layout<'p, 't> {
    pieces: &'p [Piece<'t>],
    /// Which of the pieces are operators of a single operand.
    unary: Vec<bool>,
    /// For each opening brace, where it is closed.
    closing: Vec<Option<usize>>,
    lines: Vec<Line>,
    open: Vec<Open>,
    /// Of the statement that is being laid out.
    statement_indent: usize,
    /// The next piece begins a statement.
    begins: bool,
}

impl Layout<'_, '_> {
    fn piece(&mut self, at: usize) {
        let piece = self.pieces[at];
        let gap = if at == 0 { Gap::Line } else { self.gap(at) };
        let closed = match piece.kind {
            Kind::Mark(")" | "]" | "}") => self.open.pop(),
            _ => None,
        };
        match gap {
            Gap::Line => self.new_line(at, closed.as_ref()),
            Gap::Blank => self.append(" "),
            Gap::Nothing => {}
        }
        self.write(&piece, gap);
        self.after(at, closed);
    }

    /// Writes a piece where the gap has led.
    fn write(&mut self, piece: &Piece<'_>, gap: Gap) {
        let Some(line) = self.lines.last_mut() else { return };
        match piece.kind {
            Kind::LineComment if gap == Gap::Blank => {
                line.code.truncate(line.code.trim_end().len());
                line.comment = Some(piece.text.to_owned());
            }
            Kind::BlockComment if piece.text.contains('\n') => {
                let column = line.indent + columns(&line.code);
                let mut lines = piece.text.lines();
                line.code.push_str(lines.next().unwrap_or_default().trim_end());
                for inner in lines {
                    let code = inner.trim();
                    let blanks = columns(&inner[..inner.len() - inner.trim_start().len()]);
                    let indent = (blanks + column).saturating_sub(piece.column);
                    self.lines.push(Line { indent, code: code.to_owned(), comment: None });
                }
            }
            _ => line.code.push_str(piece.text),
        }
    }

    /// Takes note of what a piece has opened, closed or ended.
    fn after(&mut self, at: usize, closed: Option<Open>) {
        let piece = &self.pieces[at];
        match piece.kind {
            Kind::LineComment | Kind::BlockComment | Kind::Directive => {}
            Kind::Mark(mark @ ("(" | "[")) => {
                let indent = self.lines.last().map_or(0, |line| line.indent);
                self.open.push(Open { mark, indent, expanded: true });
                self.begins = false;
            }
            Kind::Mark("{") => {
                let expanded = !self.fits_one_line(at);
                self.open.push(Open { mark: "{", indent: self.statement_indent, expanded });
                self.begins = true;
            }
            Kind::Mark("}") => {
                self.statement_indent = closed.map_or(0, |open| open.indent);
                self.begins = true;
            }
            Kind::Mark(";") if self.in_block() => self.begins = true,
            _ => self.begins = false,
        }
    }

    /// True between statements and in one, but in no list.
    fn in_block(&self) -> bool {
        self.open.last().is_none_or(|open| open.mark == "{")
    }

    /// True where each statement has a line of its own.
    fn expanded(&self) -> bool {
        self.open.last().is_none_or(|open| open.expanded)
    }

    fn append(&mut self, text: &str) {
        if let Some(line) = self.lines.last_mut() {
            line.code.push_str(text);
        }
    }

    /// Begins a line, after an empty one where the author has left some.
    fn new_line(&mut self, at: usize, closed: Option<&Open>) {
        let piece = &self.pieces[at];
        let opened = at.checked_sub(1).is_some_and(|before| {
            matches!(self.pieces[before].kind, Kind::Mark("{" | "[" | "(")) // none after them
        });
        if piece.line_ends > 1 && at > 0 && !opened && closed.is_none() {
            self.lines.push(Line { indent: 0, code: String::new(), comment: None });
        }
        let indent = match (closed, self.open.last()) {
            (Some(open), _) => open.indent,
            (None, Some(open)) if open.mark != "{" => open.indent + INDENT,
            (None, open) => {
                let level = open.map_or(0, |open| open.indent + INDENT);
                if self.begins && !piece.is_word("else") {
                    level
                } else if piece.is_word("else") {
                    self.statement_indent
                } else {
                    self.statement_indent + INDENT
                }
            }
        };
        if self.begins && closed.is_none() && !piece.is_word("else") {
            self.statement_indent = indent;
        }
        self.lines.push(Line { indent, code: String::new(), comment: None });
    }

    /// What separates a piece from the one before it.
    fn gap(&self, at: usize) -> Gap {
        let (before, piece) = (&self.pieces[at - 1], &self.pieces[at]);
        let same_line = piece.line_ends == 0;
        if before.kind == Kind::Directive && same_line && piece.is(";") {
            return Gap::Nothing;
        }
        if before.ends_line() || piece.kind == Kind::Directive {
            return Gap::Line;
        }
        match piece.kind {
            Kind::LineComment => return if same_line { Gap::Blank } else { Gap::Line },
            Kind::BlockComment if !same_line => return Gap::Line,
            // What is followed by something on its line belongs to that.
            Kind::BlockComment
                if self.begins
                    && self.expanded()
                    && self.pieces.get(at + 1).is_some_and(|next| next.line_ends == 0) =>
            {
                return Gap::Line;
            }
            _ if before.kind == Kind::BlockComment && !same_line => return Gap::Line,
            _ => {}
        }
        if piece.is(";") {
            return Gap::Nothing;
        }
        if piece.is("}") {
            return match () {
                () if before.is("{") => Gap::Nothing,
                () if self.expanded() => Gap::Line,
                () => Gap::Blank,
            };
        }
        if before.is("}") && piece.is_word("else") {
            return Gap::Blank;
        }
        if self.begins && self.in_block() && !before.is_comment() {
            return if self.expanded() && !piece.is_comment() { Gap::Line } else { Gap::Blank };
        }
        if !same_line && self.may_break(at) {
            return Gap::Line;
        }
        if self.blank(at) { Gap::Blank } else { Gap::Nothing }
    }

    /// True where a line end that the author has put within a statement stays.
    fn may_break(&self, at: usize) -> bool {
        let (before, piece) = (&self.pieces[at - 1], &self.pieces[at]);
        let joined = matches!(piece.kind, Kind::Mark("," | ":" | "." | "{"))
            || before.is(".")
            || (matches!(piece.kind, Kind::Mark("(" | "[")) && is_name(before))
            || ["then", "else", "do"].into_iter().any(|word| piece.is_word(word));
        !joined && (!self.in_block() || before.is("=") || is_infix(before) || is_infix(piece))
    }

    /// True if a blank stands before a piece on its line.
    fn blank(&self, at: usize) -> bool {
        let (before, piece) = (&self.pieces[at - 1], &self.pieces[at]);
        if self.unary[at - 1] || self.is_per_unit(at) || self.is_per_unit(at - 1) {
            return false;
        }
        match (before.kind, piece.kind) {
            (_, Kind::Mark("," | ")" | "." | ":")) | (Kind::Mark("." | "("), _) => false,
            (Kind::Mark("["), Kind::Mark("]")) => false,
            (Kind::Mark("]"), Kind::Mark("[")) => false,
            (_, Kind::Mark("(" | "[")) => !is_name(before),
            _ => true,
        }
    }

    /// True for the stroke of `400/sec`.
    fn is_per_unit(&self, at: usize) -> bool {
        let unit = |next: &Piece<'_>| next.kind == Kind::Word && units::bare_unit(next.text).is_some();
        self.pieces[at].is("/")
            && self.pieces.get(at + 1).is_some_and(unit)
            && !self.pieces.get(at + 2).is_some_and(|after| after.is("("))
    }

    /// True if the block that is opened here is written on one line, and short enough to stay there.
    fn fits_one_line(&self, at: usize) -> bool {
        if self.open.last().is_some_and(|open| !open.expanded) {
            return true;
        }
        let Some(end) = self.closing[at] else { return false };
        let inside = &self.pieces[at + 1..=end];
        let one_line = inside
            .iter()
            .all(|piece| piece.line_ends == 0 && !piece.ends_line() && !piece.text.contains('\n'));
        let Some(line) = self.lines.last().filter(|_| one_line) else { return false };
        let mut width = line.indent + columns(&line.code);
        for inner in at + 1..=end {
            let blank = match (&self.pieces[inner - 1], &self.pieces[inner]) {
                (before, piece) if before.is("{") => !piece.is("}"),
                (_, piece) if piece.is(";") => false,
                (before, piece) if piece.is("}") || before.is(";") || before.is("}") => true,
                _ => self.blank(inner),
            };
            width += columns(self.pieces[inner].text) + usize::from(blank);
            if width > WIDTH {
                return false;
            }
        }
        // The `;` after it.
        width < WIDTH
    }

    /// The lines, with comments behind consecutive ones in one column.
    fn text(self) -> String {
        let mut out = String::new();
        let mut at = 0;
        while at < self.lines.len() {
            let first = &self.lines[at];
            let alike = |line: &&Line| {
                // What stands behind an opening brace is about the block.
                line.comment.is_some()
                    && !line.code.ends_with('{')
                    && line.indent == first.indent
                    && line.indent + columns(&line.code) <= ALIGNED
            };
            let group = self.lines[at..].iter().take_while(alike).count().max(1);
            let lines = &self.lines[at..at + group];
            let width = lines.iter().map(|line| columns(&line.code)).max().unwrap_or(0);
            for line in lines {
                if !line.code.is_empty() {
                    out.push_str(&" ".repeat(line.indent));
                    out.push_str(&line.code);
                }
                if let Some(comment) = &line.comment {
                    out.push_str(&" ".repeat(width + 1 - columns(&line.code).min(width)));
                    out.push_str(comment);
                }
                out.push('\n');
            }
            at += group;
        }
        out
    }
}

/// Which marks are operators of a single operand: those before which no value stands.
fn unary(pieces: &[Piece<'_>]) -> Vec<bool> {
    let mut after_value = false;
    let unary = |piece: &Piece<'_>| {
        if piece.is_comment() {
            return false;
        }
        let is = match piece.kind {
            Kind::Mark("!") => true,
            Kind::Mark("-" | "+") => !after_value,
            _ => false,
        };
        after_value = match piece.kind {
            Kind::Mark(mark) => matches!(mark, ")" | "]" | "}"),
            Kind::Word => is_name(piece),
            _ => true,
        };
        is
    };
    pieces.iter().map(unary).collect()
}

/// For each opening brace, where it is closed.
fn closing(pieces: &[Piece<'_>]) -> Vec<Option<usize>> {
    let mut closing = vec![None; pieces.len()];
    let mut open = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        if piece.is("{") {
            open.push(at);
        } else if piece.is("}")
            && let Some(opened) = open.pop()
        {
            closing[opened] = Some(at);
        }
    }
    closing
}

/// True for a word that can be called or indexed: not for those that begin a part of a statement.
fn is_name(piece: &Piece<'_>) -> bool {
    piece.kind == Kind::Word && !matches!(piece.text, "if" | "then" | "else" | "every" | "do")
}

/// True for an operator between two operands, or one before a single one.
fn is_infix(piece: &Piece<'_>) -> bool {
    let Kind::Mark(mark) = piece.kind else { return false };
    !matches!(mark, "=" | "(" | ")" | "[" | "]" | "{" | "}" | ";" | "." | "," | ":")
}
