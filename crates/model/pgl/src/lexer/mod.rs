//! Lexer: comments, numbers with units, quoted literals and `#include`.

use std::rc::Rc;

use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostics::Diagnostics;
use crate::source::{REPLACEMENT, Resolver, Source, Span};
use crate::value::address::AddrRange;
use crate::value::pattern::Pattern;

mod include;
mod number;
mod quoted;

#[cfg(test)]
mod tests;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub span: Span,
    pub first_on_line: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TokenKind {
    /// A name, keyword, unit or Boolean literal; the parser tells them apart.
    Word(Rc<str>),
    Literal(Literal),
    /// `=~/pattern/options` or `==/pattern/options`, with the operator.
    Regex(Rc<str>),
    /// An operator or a delimiter.
    Mark(&'static str),
    /// An invalid character, which was reported.
    Stray,
    /// The end of the program.
    End,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Literal {
    Bool(bool),
    Int(i32),
    Float(f64),
    /// As written, not divided by 100.
    Percent(f64),
    /// Seconds.
    Time(f64),
    /// Bytes.
    Size(f64),
    /// Seconds since 1970.
    Date(f64),
    Text(Rc<Pattern>),
    Address(Rc<AddrRange>),
    Header(Rc<str>, Rc<str>),
    /// A literal whose error was reported.
    Broken,
}

/// Operators and delimiters, longest first.
const MARKS: [&str; 29] = [
    "==", "!=", "<=", ">=", "&&", "||", "^^", "..", "**", "=", "<", ">", "+", "-", "*", "/", "%", "^", "!",
    "(", ")", "[", "]", "{", "}", ";", ".", ",", ":",
];
/// Upper bound on the tokens of a program with its inclusions.
const MAX_TOKENS: usize = 4_000_000;
/// Upper bound, in bytes, on a source; offsets in spans have 32 bits.
const MAX_BYTES: usize = 64 << 20;

/// Reads the main source (the first of `sources`), and adds each included one to `sources`.
pub(crate) fn lex(
    sources: &mut Vec<Source>,
    resolver: &dyn Resolver,
    diagnostics: &mut Diagnostics,
) -> Vec<Token> {
    let mut lexer =
        Lexer { sources, resolver, diagnostics, tokens: Vec::new(), includes: 0, chain: Vec::new() };
    lexer.source(0);
    let end = lexer.sources.first().map_or(0, |source| source.text.len()) as u32;
    let mut tokens = lexer.tokens;
    tokens.push(Token {
        kind: TokenKind::End,
        span: Span { source: 0, start: end, end },
        first_on_line: true,
    });
    tokens
}

/// State that the sources of a program share.
struct Lexer<'a> {
    sources: &'a mut Vec<Source>,
    resolver: &'a dyn Resolver,
    diagnostics: &'a mut Diagnostics,
    tokens: Vec<Token>,
    includes: usize,
    /// Stack of inclusions: indices of the sources being read, outermost first.
    chain: Vec<u32>,
}

impl Lexer<'_> {
    fn source(&mut self, index: u32) {
        let Some(source) = self.sources.get(index as usize) else {
            return;
        };
        let text: Rc<str> = source.text.as_str().into();
        let has_replacement = text.contains(REPLACEMENT);
        if text.len() > MAX_BYTES {
            let span = Span { source: index, start: 0, end: 0 };
            let message =
                format!("this file has {} MB; a workload has at most {}", text.len() >> 20, MAX_BYTES >> 20);
            self.diagnostics.add(Diagnostic::error(Code::TooMany, span, message));
            return;
        }
        self.chain.push(index);
        let mut scanner =
            Scanner { lexer: self, text: &text, source: index, at: 0, fresh_line: true, has_replacement };
        scanner.run();
        self.chain.pop();
    }
}

/// Reader of one source.
struct Scanner<'l, 'a, 't> {
    lexer: &'l mut Lexer<'a>,
    text: &'t str,
    source: u32,
    at: usize,
    /// True before the first token of a line.
    fresh_line: bool,
    /// The source contains [`REPLACEMENT`].
    has_replacement: bool,
}

impl<'t> Scanner<'_, '_, 't> {
    fn run(&mut self) {
        while self.at < self.text.len() {
            if self.lexer.tokens.len() >= MAX_TOKENS {
                let span = self.span(self.at);
                self.error(Code::TooMany, span, "the program is too long", "no more is read from here on");
                return;
            }
            self.next();
        }
    }

    /// The text that has not been read.
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The span from `start` to the current offset.
    fn span(&self, start: usize) -> Span {
        Span { source: self.source, start: start as u32, end: self.at as u32 }
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>, label: impl Into<String>) {
        self.lexer.diagnostics.add(Diagnostic::error(code, span, message).label(label));
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        if self.has_replacement {
            self.refuse_replacement(start);
        }
        let span = self.span(start);
        self.lexer.tokens.push(Token { kind, span, first_on_line: self.fresh_line });
        self.fresh_line = false;
    }

    /// Reports bytes that were not UTF-8 in the token that ends here. Comments are no tokens, and may contain any bytes.
    fn refuse_replacement(&mut self, start: usize) {
        let Some(before) = self.text[start..self.at].find(REPLACEMENT) else { return };
        let at = (start + before) as u32;
        let span = Span { source: self.source, start: at, end: at + REPLACEMENT.len_utf8() as u32 };
        self.lexer.diagnostics.add(
            Diagnostic::error(Code::StrayCharacter, span, "this is not text (UTF-8)")
                .label("U+FFFD stands for bytes that are none; expected a character")
                .help("save the file as UTF-8: `iconv -f LATIN1 -t UTF-8`; in comments, any bytes are read"),
        );
    }

    fn take_while(&mut self, test: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let taken = rest.find(|c| !test(c)).unwrap_or(rest.len());
        self.at += taken;
        &rest[..taken]
    }

    fn next(&mut self) {
        let start = self.at;
        let rest = self.rest();
        let Some(c) = self.peek() else {
            return;
        };
        if let Some(length) = template_mark_length(rest) {
            return self.template_mark(length);
        }
        match c {
            '\n' => {
                self.at += 1;
                self.fresh_line = true;
            }
            ' ' | '\t' | '\x0b' | '\x0c' | '\r' => self.at += 1,
            '/' if rest.starts_with("//") => {
                self.take_while(|c| c != '\n');
            }
            '/' if rest.starts_with("/*") => self.comment(),
            '#' => self.directive(),
            '"' => self.string(),
            '\'' => self.quoted(),
            '`' => self.shell_command(),
            '0'..='9' => self.number(),
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number_without_integer_part(),
            '=' if rest.starts_with("=~") || is_regex(rest) => self.regex(),
            c if is_word_start(c) => {
                let word = self.take_while(is_word);
                self.push(TokenKind::Word(word.into()), start);
            }
            c => match MARKS.iter().find(|mark| rest.starts_with(**mark)) {
                Some(mark) => {
                    self.at += mark.len();
                    self.push(TokenKind::Mark(mark), start);
                }
                None => self.stray(c),
            },
        }
    }

    fn stray(&mut self, c: char) {
        let start = self.at;
        self.at += c.len_utf8();
        if c == REPLACEMENT {
            return self.push(TokenKind::Stray, start);
        }
        if matches!(c, '\u{201c}' | '\u{201d}' | '\u{2018}' | '\u{2019}') {
            return self.typographic_quotes(start, c);
        }
        let span = self.span(start);
        let message = format!("`{}` means nothing here", c.escape_debug());
        let diagnostic = Diagnostic::error(Code::StrayCharacter, span, message).maybe_help(match c {
            '&' => Some("`and` is written `&&`".to_owned()),
            '|' => Some("`or` is written `||`".to_owned()),
            '\u{feff}' => Some("save the file without a byte order mark".to_owned()),
            '?' => Some("there is no conditional expression; use `if ... then { } else { }`".to_owned()),
            _ => None,
        });
        self.lexer.diagnostics.add(diagnostic);
        if c != '\u{feff}' {
            self.push(TokenKind::Stray, start);
        }
    }

    /// Text in typographic quotes, as word processors put them.
    fn typographic_quotes(&mut self, start: usize, open: char) {
        let double = matches!(open, '\u{201c}' | '\u{201d}');
        let closes = move |c: char| match double {
            true => matches!(c, '\u{201c}' | '\u{201d}' | '"'),
            false => matches!(c, '\u{2018}' | '\u{2019}' | '\''),
        };
        let inside = self.take_while(|c| !closes(c) && c != '\n' && c != ';');
        if let Some(c) = self.peek().filter(|c| closes(*c)) {
            self.at += c.len_utf8();
        }
        let span = self.span(start);
        let plain = if double { '"' } else { '\'' };
        self.lexer.diagnostics.add(
            Diagnostic::error(Code::StrayCharacter, span, "typographic quotes mean nothing here")
                .label("expected plain quotes")
                .help(format!("write {plain}{inside}{plain}"))
                .replacement(format!("{plain}{inside}{plain}")),
        );
        self.push(TokenKind::Literal(Literal::Broken), start);
    }

    /// `/* ... */`; comments nest.
    fn comment(&mut self) {
        let start = self.at;
        self.at += 2;
        let mut depth = 1_u32;
        while depth > 0 {
            let rest = self.rest();
            let Some(found) = rest.find(['*', '/']) else {
                self.at = self.text.len();
                let span = Span { source: self.source, start: start as u32, end: start as u32 + 2 };
                self.error(
                    Code::Unterminated,
                    span,
                    "this comment has no end",
                    "expected `*/` somewhere after it",
                );
                return;
            };
            self.at += found;
            if self.rest().starts_with("*/") {
                depth -= 1;
                self.at += 2;
            } else if self.rest().starts_with("/*") {
                depth += 1;
                let inner = self.at;
                self.at += 2;
                let span = self.span(inner);
                self.lexer.diagnostics.add(
                    Diagnostic::warning(Code::NestedComment, span, "a comment begins inside a comment")
                        .label("comments nest: this one needs an end of its own"),
                );
            } else {
                self.at += 1;
            }
        }
        if self.text[start..self.at].contains('\n') {
            self.fresh_line = true;
        }
    }

    /// A shell command in back quotes, which Web Polygraph would run.
    fn shell_command(&mut self) {
        let start = self.at;
        self.at += 1;
        self.take_while(|c| c != '`' && c != '\n');
        if self.peek() == Some('`') {
            self.at += 1;
        }
        let span = self.span(start);
        self.lexer.diagnostics.add(
            Diagnostic::error(Code::Refused, span, "shell commands in a workload are not run")
                .label("its output would become part of the program")
                .help(
                    "run the command yourself and write what it prints here: a workload must mean the same on every \
                     machine, and reading one must be safe",
                ),
        );
        self.push(TokenKind::Literal(Literal::Broken), start);
    }

    /// `=~/pattern/options`, with the operator.
    fn regex(&mut self) {
        let start = self.at;
        self.at += 2;
        let delimiter = match self.peek() {
            Some(c @ ('/' | '@')) => c,
            _ => {
                let span = self.span(start);
                self.lexer.diagnostics.add(
                    Diagnostic::error(Code::BadLiteral, span, "`=~` is not followed by a regular expression")
                        .label("expected `/` or `@` directly after it")
                        .help("write no space between them: `url =~/pattern/i`"),
                );
                self.push(TokenKind::Regex("".into()), start);
                return;
            }
        };
        self.at += 1;
        let mut escaped = false;
        loop {
            match self.peek() {
                None | Some('\n') => {
                    let span = self.span(start);
                    let label = format!("expected `{delimiter}` before the end of the line");
                    self.error(Code::Unterminated, span, "this regular expression has no end", label);
                    break;
                }
                Some(c) => {
                    self.at += c.len_utf8();
                    if c == delimiter && !escaped {
                        self.take_while(|c| c.is_ascii_alphabetic());
                        break;
                    }
                    escaped = c == '\\' && !escaped;
                }
            }
        }
        let text = &self.text[start..self.at];
        self.push(TokenKind::Regex(text.into()), start);
    }

    /// A template mark of `length` bytes, in place of a value unless it begins a line.
    fn template_mark(&mut self, length: usize) {
        let start = self.at;
        self.at += length;
        self.refuse_template(Code::StrayCharacter, self.span(start));
        if !self.fresh_line {
            self.push(TokenKind::Literal(Literal::Broken), start);
        }
    }

    /// Reports that the source is a template: once for its text, and once for its quoted literals.
    fn refuse_template(&mut self, code: Code, span: Span) {
        self.lexer.diagnostics.add_once(
            format!("template {code}"),
            Diagnostic::error(code, span, "this looks like a template, not a workload")
                .label("something must be filled in here")
                .help("let its own tool make the workload, and read that (Template Toolkit has `[% … %]`, automake `@NAME@`)"),
        );
    }
}

/// Length, in bytes, of the template mark that a text begins with: `[% … %]` on one line, or `@NAME@`.
fn template_mark_length(text: &str) -> Option<usize> {
    if let Some(after) = text.strip_prefix("[%") {
        let line = after.lines().next()?;
        return line.find("%]").map(|end| end + 4);
    }
    let after = text.strip_prefix('@')?;
    let length = after.find(|c| !is_word(c)).filter(|length| *length > 0)?;
    after[length..].starts_with('@').then_some(length + 2)
}

/// True if there is a template mark anywhere in a text.
fn has_template_mark(text: &str) -> bool {
    text.match_indices(['[', '@']).any(|(at, _)| template_mark_length(&text[at..]).is_some())
}

/// `==/` and `==@` start a regular expression, but `==//` and `==/*` end in a comment.
fn is_regex(rest: &str) -> bool {
    rest.strip_prefix("==").is_some_and(|after| {
        after.starts_with('@')
            || (after.starts_with('/') && !after.starts_with("//") && !after.starts_with("/*"))
    })
}

fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
