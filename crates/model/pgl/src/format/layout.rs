//! Layout of elements: nothing, a blank, or a line end with an indentation between two.

use super::elements::{Element, ElementKind, columns};
use crate::units;

/// Columns per level of indentation.
const INDENT: usize = 4;
/// Upper bound, in columns, on a line with a block that stays on one line.
const WIDTH: usize = 120;
/// Upper bound, in columns, on code whose trailing comment is aligned with those of neighbouring lines.
const ALIGNED: usize = 80;

pub(super) fn lay_out(elements: &[Element<'_>]) -> String {
    let mut layout = Layout {
        elements,
        unary: unary_operators(elements),
        closing: closing_braces(elements),
        lines: Vec::new(),
        open: Vec::new(),
        statement_indent: 0,
        begins_statement: true,
    };
    for at in 0..elements.len() {
        layout.element(at);
    }
    layout.text()
}

/// A line of the result.
struct LayoutLine {
    indent: usize,
    /// Code without the indentation; empty for an empty line.
    code: String,
    comment: Option<String>,
}

/// Separator of two elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    Nothing,
    Blank,
    Line,
}

/// An open bracket, parenthesis or brace.
struct OpenBracket {
    mark: &'static str,
    /// Indentation of the line or statement that opened the bracket.
    indent: usize,
    /// True for a list, and for a block whose statements have lines of their own.
    expanded: bool,
}

struct Layout<'p, 't> {
    elements: &'p [Element<'t>],
    /// Per element, whether it is a unary operator.
    unary: Vec<bool>,
    /// Per element, for an opening brace, the index of its closing brace.
    closing: Vec<Option<usize>>,
    lines: Vec<LayoutLine>,
    open: Vec<OpenBracket>,
    /// Indentation of the current statement.
    statement_indent: usize,
    /// The next element begins a statement.
    begins_statement: bool,
}

impl Layout<'_, '_> {
    fn element(&mut self, at: usize) {
        let element = self.elements[at];
        let separator = if at == 0 { Separator::Line } else { self.separator(at) };
        let closed = match element.kind {
            ElementKind::Mark(")" | "]" | "}") => self.open.pop(),
            _ => None,
        };
        match separator {
            Separator::Line => self.new_line(at, closed.as_ref()),
            Separator::Blank => self.append(" "),
            Separator::Nothing => {}
        }
        self.write(&element, separator);
        self.update_state(at, closed);
    }

    fn write(&mut self, element: &Element<'_>, separator: Separator) {
        let Some(line) = self.lines.last_mut() else { return };
        match element.kind {
            ElementKind::LineComment if separator == Separator::Blank => {
                line.code.truncate(line.code.trim_end().len());
                line.comment = Some(element.text.to_owned());
            }
            ElementKind::BlockComment if element.text.contains('\n') => {
                // Inner lines keep their position relative to the start of the comment.
                let column = line.indent + columns(&line.code);
                let mut lines = element.text.lines();
                line.code.push_str(lines.next().unwrap_or_default().trim_end());
                for inner in lines {
                    let code = inner.trim();
                    let blanks = columns(&inner[..inner.len() - inner.trim_start().len()]);
                    let indent = (blanks + column).saturating_sub(element.column);
                    self.lines.push(LayoutLine { indent, code: code.to_owned(), comment: None });
                }
            }
            _ => line.code.push_str(element.text),
        }
    }

    /// Updates the open brackets and the statement after an element.
    fn update_state(&mut self, at: usize, closed: Option<OpenBracket>) {
        let element = &self.elements[at];
        match element.kind {
            ElementKind::LineComment | ElementKind::BlockComment | ElementKind::Directive => {}
            ElementKind::Mark(mark @ ("(" | "[")) => {
                let indent = self.lines.last().map_or(0, |line| line.indent);
                self.open.push(OpenBracket { mark, indent, expanded: true });
                self.begins_statement = false;
            }
            ElementKind::Mark("{") => {
                let expanded = !self.fits_one_line(at);
                self.open.push(OpenBracket { mark: "{", indent: self.statement_indent, expanded });
                self.begins_statement = true;
            }
            ElementKind::Mark("}") => {
                self.statement_indent = closed.map_or(0, |open| open.indent);
                self.begins_statement = true;
            }
            ElementKind::Mark(";") if self.in_block() => self.begins_statement = true,
            _ => self.begins_statement = false,
        }
    }

    /// True outside of lists.
    fn in_block(&self) -> bool {
        self.open.last().is_none_or(|open| open.mark == "{")
    }

    /// True in a block in which each statement has a line of its own.
    fn expanded(&self) -> bool {
        self.open.last().is_none_or(|open| open.expanded)
    }

    fn append(&mut self, text: &str) {
        if let Some(line) = self.lines.last_mut() {
            line.code.push_str(text);
        }
    }

    /// Begins a line, after an empty one if the author has left any.
    fn new_line(&mut self, at: usize, closed: Option<&OpenBracket>) {
        let element = &self.elements[at];
        let opened = at.checked_sub(1).is_some_and(|before| {
            matches!(self.elements[before].kind, ElementKind::Mark("{" | "[" | "(")) // none after them
        });
        if element.line_ends > 1 && at > 0 && !opened && closed.is_none() {
            self.lines.push(LayoutLine { indent: 0, code: String::new(), comment: None });
        }
        let indent = match (closed, self.open.last()) {
            (Some(open), _) => open.indent,
            (None, Some(open)) if open.mark != "{" => open.indent + INDENT,
            (None, open) => {
                let level = open.map_or(0, |open| open.indent + INDENT);
                if self.begins_statement && !element.is_word("else") {
                    level
                } else if element.is_word("else") {
                    self.statement_indent
                } else {
                    self.statement_indent + INDENT
                }
            }
        };
        if self.begins_statement && closed.is_none() && !element.is_word("else") {
            self.statement_indent = indent;
        }
        self.lines.push(LayoutLine { indent, code: String::new(), comment: None });
    }

    /// The separator before an element.
    fn separator(&self, at: usize) -> Separator {
        let (before, element) = (&self.elements[at - 1], &self.elements[at]);
        let same_line = element.line_ends == 0;
        if before.kind == ElementKind::Directive && same_line && element.is_mark(";") {
            return Separator::Nothing;
        }
        if before.ends_line() || element.kind == ElementKind::Directive {
            return Separator::Line;
        }
        match element.kind {
            ElementKind::LineComment => return if same_line { Separator::Blank } else { Separator::Line },
            ElementKind::BlockComment if !same_line => return Separator::Line,
            // A comment before code on the same line belongs to that code.
            ElementKind::BlockComment
                if self.begins_statement
                    && self.expanded()
                    && self.elements.get(at + 1).is_some_and(|next| next.line_ends == 0) =>
            {
                return Separator::Line;
            }
            _ if before.kind == ElementKind::BlockComment && !same_line => return Separator::Line,
            _ => {}
        }
        if element.is_mark(";") {
            return Separator::Nothing;
        }
        if element.is_mark("}") {
            return match () {
                () if before.is_mark("{") => Separator::Nothing,
                () if self.expanded() => Separator::Line,
                () => Separator::Blank,
            };
        }
        if before.is_mark("}") && element.is_word("else") {
            return Separator::Blank;
        }
        if self.begins_statement && self.in_block() && !before.is_comment() {
            return if self.expanded() && !element.is_comment() { Separator::Line } else { Separator::Blank };
        }
        if !same_line && self.keeps_line_end(at) {
            return Separator::Line;
        }
        if self.has_blank(at) { Separator::Blank } else { Separator::Nothing }
    }

    /// True if a line end that the author has put within a statement is kept.
    fn keeps_line_end(&self, at: usize) -> bool {
        let (before, element) = (&self.elements[at - 1], &self.elements[at]);
        let joined = matches!(element.kind, ElementKind::Mark("," | ":" | "." | "{"))
            || before.is_mark(".")
            || (matches!(element.kind, ElementKind::Mark("(" | "[")) && is_name(before))
            || ["then", "else", "do"].into_iter().any(|word| element.is_word(word));
        !joined && (!self.in_block() || before.is_mark("=") || is_infix(before) || is_infix(element))
    }

    /// True if a blank separates an element from the one before it on its line.
    fn has_blank(&self, at: usize) -> bool {
        let (before, element) = (&self.elements[at - 1], &self.elements[at]);
        if self.unary[at - 1] || self.is_per_unit(at) || self.is_per_unit(at - 1) {
            return false;
        }
        match (before.kind, element.kind) {
            (_, ElementKind::Mark("," | ")" | "." | ":")) | (ElementKind::Mark("." | "("), _) => false,
            (ElementKind::Mark("["), ElementKind::Mark("]")) => false,
            (ElementKind::Mark("]"), ElementKind::Mark("[")) => false,
            (_, ElementKind::Mark("(" | "[")) => !is_name(before),
            _ => true,
        }
    }

    /// True for the stroke of `400/sec`.
    fn is_per_unit(&self, at: usize) -> bool {
        let unit =
            |next: &Element<'_>| next.kind == ElementKind::Word && units::bare_unit(next.text).is_some();
        self.elements[at].is_mark("/")
            && self.elements.get(at + 1).is_some_and(unit)
            && !self.elements.get(at + 2).is_some_and(|after| after.is_mark("("))
    }

    /// True if the block that is opened here is on one line, and short enough to stay there.
    fn fits_one_line(&self, at: usize) -> bool {
        // The line of the outer block, this one included, was measured before.
        if self.open.last().is_some_and(|open| !open.expanded) {
            return true;
        }
        let Some(end) = self.closing[at] else { return false };
        let inside = &self.elements[at + 1..=end];
        let one_line = inside
            .iter()
            .all(|element| element.line_ends == 0 && !element.ends_line() && !element.text.contains('\n'));
        let Some(line) = self.lines.last().filter(|_| one_line) else { return false };
        let mut width = line.indent + columns(&line.code);
        for inner in at + 1..=end {
            let blank = match (&self.elements[inner - 1], &self.elements[inner]) {
                (before, element) if before.is_mark("{") => !element.is_mark("}"),
                (_, element) if element.is_mark(";") => false,
                (before, element) if element.is_mark("}") || before.is_mark(";") || before.is_mark("}") => {
                    true
                }
                _ => self.has_blank(inner),
            };
            width += columns(self.elements[inner].text) + usize::from(blank);
            if width > WIDTH {
                return false;
            }
        }
        // The `;` after it.
        width < WIDTH
    }

    /// The text of all lines, with trailing comments of consecutive lines aligned.
    fn text(self) -> String {
        let mut out = String::new();
        let mut at = 0;
        while at < self.lines.len() {
            let first = &self.lines[at];
            let alike = |line: &&LayoutLine| {
                // A comment behind an opening brace is about the block, and not aligned.
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

/// Per element, whether it is a unary operator: a sign that follows no value, or `!`.
fn unary_operators(elements: &[Element<'_>]) -> Vec<bool> {
    let mut after_value = false;
    let unary = |element: &Element<'_>| {
        if element.is_comment() {
            return false;
        }
        let is = match element.kind {
            ElementKind::Mark("!") => true,
            ElementKind::Mark("-" | "+") => !after_value,
            _ => false,
        };
        after_value = match element.kind {
            ElementKind::Mark(mark) => matches!(mark, ")" | "]" | "}"),
            ElementKind::Word => is_name(element),
            _ => true,
        };
        is
    };
    elements.iter().map(unary).collect()
}

/// Per element, for an opening brace, the index of its closing brace.
fn closing_braces(elements: &[Element<'_>]) -> Vec<Option<usize>> {
    let mut closing = vec![None; elements.len()];
    let mut open = Vec::new();
    for (at, element) in elements.iter().enumerate() {
        if element.is_mark("{") {
            open.push(at);
        } else if element.is_mark("}")
            && let Some(opened) = open.pop()
        {
            closing[opened] = Some(at);
        }
    }
    closing
}

/// True for a word that is no keyword, and so can be called or indexed.
fn is_name(element: &Element<'_>) -> bool {
    element.kind == ElementKind::Word && !matches!(element.text, "if" | "then" | "else" | "every" | "do")
}

/// True for an operator, binary or unary.
fn is_infix(element: &Element<'_>) -> bool {
    let ElementKind::Mark(mark) = element.kind else { return false };
    !matches!(mark, "=" | "(" | ")" | "[" | "]" | "{" | "}" | ";" | "." | "," | ":")
}
