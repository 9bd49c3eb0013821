//! Quoted literals: strings with ranges, addresses, dates and header fields.

use std::rc::Rc;

use super::{Literal, Scanner, TokenKind, has_template_mark, template_mark_length};
use crate::diagnostic::{Code, Diagnostic};
use crate::source::Span;
use crate::value::address::AddrRange;
use crate::value::pattern::{Pattern, PatternPart};

impl Scanner<'_, '_, '_> {
    /// A string in double quotes. A backslash escapes any character; `[lo-hi]` is a range.
    pub(super) fn string(&mut self) {
        let start = self.at;
        self.at += 1;
        let mut parts: Vec<PatternPart> = Vec::new();
        let mut text = String::new();
        let mut broken = false;
        loop {
            let at = self.at;
            let Some(c) = self.peek() else {
                self.unterminated(start, '"');
                broken = true;
                break;
            };
            self.at += c.len_utf8();
            match c {
                '"' => break,
                '\n' => {
                    self.at = at;
                    self.unterminated(start, '"');
                    broken = true;
                    break;
                }
                '\\' => match self.peek() {
                    Some(escaped) => {
                        self.at += escaped.len_utf8();
                        text.push(escaped);
                    }
                    // The next turn reports the end of the text.
                    None => continue,
                },
                '[' => match self.string_range(at) {
                    Some(range) => {
                        parts.push(PatternPart::Text(std::mem::take(&mut text)));
                        parts.push(range);
                    }
                    None => broken = true,
                },
                c => text.push(c),
            }
        }
        parts.push(PatternPart::Text(text));
        let literal = if broken { Literal::Broken } else { Literal::Text(Rc::new(Pattern::new(parts))) };
        self.push(TokenKind::Literal(literal), start);
    }

    /// Reads `lo-hi]`, after the bracket at `open`; reports anything else.
    fn string_range(&mut self, open: usize) -> Option<PatternPart> {
        let inside = self.take_while(|c| !matches!(c, ']' | '"' | '\n'));
        let closed = self.peek() == Some(']');
        if closed {
            self.at += 1;
        }
        let range = closed.then(|| PatternPart::range(inside)).flatten();
        let span = self.span(open);
        if range.is_none() && template_mark_length(&self.text[open..]).is_some() {
            self.refuse_template(Code::BadLiteral, span);
        } else if range.is_none() {
            self.lexer.diagnostics.add(
                Diagnostic::error(Code::BadLiteral, span, "this is not a range")
                    .label("expected `[lo-hi]` with whole numbers, lo not above hi")
                    .help("for a plain bracket write `\\[`; a list needs a string for each range"),
            );
        }
        range
    }

    fn unterminated(&mut self, start: usize, quote: char) {
        let span = Span { source: self.source, start: start as u32, end: start as u32 + 1 };
        self.lexer.diagnostics.add(
            Diagnostic::error(Code::Unterminated, span, "this quote is not closed")
                .label(format!("expected another `{quote}` before the end of the line")),
        );
    }

    /// A literal in single quotes; its content decides on its type.
    pub(super) fn quoted(&mut self) {
        let start = self.at;
        self.at += 1;
        let inside = self.take_while(|c| c != '\'' && c != '\n');
        if self.peek() != Some('\'') {
            self.unterminated(start, '\'');
            self.push(TokenKind::Literal(Literal::Broken), start);
            return;
        }
        self.at += 1;
        let literal = self.quoted_literal(start, inside);
        self.push(TokenKind::Literal(literal), start);
    }

    fn quoted_literal(&mut self, start: usize, inside: &str) -> Literal {
        let span = self.span(start);
        // Neither addresses nor dates have a blank after a colon.
        if let Some((name, value)) = inside.split_once(": ") {
            return Literal::Header(name.into(), value.trim().into());
        }
        if inside.matches('/').count() == 2 {
            return match date(inside) {
                Some(seconds) => Literal::Date(seconds),
                None => {
                    self.lexer.diagnostics.add(
                        Diagnostic::error(Code::BadLiteral, span, "this is not a date")
                            .label("expected 'YYYY/MM/DD' or 'YYYY/MM/DD HH:MM:SS'"),
                    );
                    Literal::Broken
                }
            };
        }
        match AddrRange::parse(inside) {
            Ok(address) => Literal::Address(Rc::new(address)),
            Err(_) if has_template_mark(inside) => {
                self.refuse_template(Code::BadLiteral, span);
                Literal::Broken
            }
            Err(why) => {
                let looks_like_text = !inside.contains('.') && !inside.contains(':');
                let mut diagnostic = Diagnostic::error(Code::BadLiteral, span, "this is not an address")
                    .label(why.to_string());
                if looks_like_text {
                    let quoted = format!("\"{inside}\"");
                    diagnostic = diagnostic
                        .help(format!("a string needs double quotes: {quoted}"))
                        .replacement(quoted);
                }
                self.lexer.diagnostics.add(diagnostic);
                Literal::Broken
            }
        }
    }
}

/// Seconds since 1970 of `YYYY/MM/DD[ HH:MM[:SS]]`, in UTC.
fn date(text: &str) -> Option<f64> {
    let (day, clock) = text.split_once(' ').unwrap_or((text, "00:00"));
    let number = |part: &str| part.parse::<u32>().ok().filter(|_| part.len() <= 4);
    let mut parts = day.split('/').map(number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let mut parts = clock.trim().split(':').map(number);
    let (hour, minute) = (parts.next()??, parts.next()??);
    let second = match parts.next() {
        Some(second) => second?,
        None => 0,
    };
    // A second of 60 is a leap second.
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let days = days_since_1970(year, month, day)?;
    Some(days as f64 * 86_400.0 + f64::from(hour * 3600 + minute * 60 + second))
}

/// Days from 1970-01-01 to a day of the Gregorian calendar.
fn days_since_1970(year: u32, month: u32, day: u32) -> Option<i64> {
    let leap = |year: u32| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let lengths = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *lengths.get(month.checked_sub(1)? as usize)?;
    if year < 1900 || day < 1 || day > length {
        return None;
    }
    let before = |year: i64| (year - 1) * 365 + (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400;
    let in_year: u32 = lengths.iter().take(month as usize - 1).sum::<u32>() + day - 1;
    Some(before(i64::from(year)) - before(1970) + i64::from(in_year))
}

#[cfg(test)]
mod date_tests {
    use super::date;

    #[test]
    fn dates_are_seconds_of_the_gregorian_calendar() {
        assert_eq!(date("1970/01/01"), Some(0.0));
        assert_eq!(date("2000/03/01 12:30"), Some(951_913_800.0));
        assert_eq!(date("2024/02/29 00:00:01"), Some(1_709_164_801.0));
        for wrong in ["2023/02/29", "1/2/3", "2020/13/01", "2020/00/01", "2020/01/01 25:00", "x/y/z"] {
            assert_eq!(date(wrong), None, "{wrong}");
        }
    }
}
