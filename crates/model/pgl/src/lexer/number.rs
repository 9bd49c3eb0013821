//! Numbers: integers, reals, percents, times and sizes.

use super::{Literal, Scanner, TokenKind, is_word, is_word_start};
use crate::diagnostic::{Code, Diagnostic};
use crate::units::{self, Unit};
use assay_base::settings::suggest::nearest;

impl Scanner<'_, '_, '_> {
    /// Digits, with an optional point, exponent, and a percent sign or unit directly after them.
    pub(super) fn number(&mut self) {
        let start = self.at;
        let real = self.digits_and_exponent();
        let digits = &self.text[start..self.at];
        let number: f64 = digits.parse().unwrap_or(f64::INFINITY);
        let literal = if self.peek() == Some('%') {
            self.at += 1;
            Literal::Percent(number)
        } else if self.peek().is_some_and(is_word_start) {
            self.unit(start, number)
        } else if real {
            Literal::Float(number)
        } else {
            self.integer(start)
        };
        let literal = self.finite(start, literal);
        self.push(TokenKind::Literal(literal), start);
    }

    /// Reads an unsigned number; true for a real one.
    fn digits_and_exponent(&mut self) -> bool {
        let is_digit = |c: char| c.is_ascii_digit();
        let mut real = false;
        self.take_while(is_digit);
        let rest = self.rest();
        if rest.starts_with('.') && !rest.starts_with("..") {
            real = true;
            self.at += 1;
            self.take_while(is_digit);
        }
        let exponent = self.rest();
        if let Some(after) = exponent.strip_prefix('e') {
            let sign = usize::from(after.starts_with(['+', '-']));
            if after[sign..].starts_with(is_digit) {
                real = true;
                self.at += 1 + sign;
                self.take_while(is_digit);
            }
        }
        real
    }

    fn integer(&mut self, start: usize) -> Literal {
        match self.text[start..self.at].parse() {
            Ok(number) => Literal::Int(number),
            Err(_) => {
                let span = self.span(start);
                self.lexer.diagnostics.add(
                    Diagnostic::error(Code::BadNumber, span, "this integer is too large")
                        .label(format!("the largest is {}", i32::MAX))
                        .help("write it as a real number: put a point after it"),
                );
                Literal::Broken
            }
        }
    }

    /// Reads the unit after a number.
    fn unit(&mut self, start: usize, number: f64) -> Literal {
        let at = self.at;
        let name = self.take_while(is_word);
        match units::unit(name) {
            Some(unit @ Unit::Time(_)) => Literal::Time(unit.times(number)),
            Some(unit @ Unit::Size(_)) => {
                let bytes = unit.times(number);
                if name == "bit" && bytes.fract() != 0.0 {
                    let span = self.span(start);
                    self.error(
                        Code::BadNumber,
                        span,
                        format!("{number} bits are not a whole number of bytes"),
                        "expected a multiple of 8",
                    );
                    return Literal::Broken;
                }
                Literal::Size(bytes)
            }
            None => {
                let span = self.span(at);
                let all: Vec<&str> = units::names().collect();
                self.lexer.diagnostics.add(
                    Diagnostic::error(Code::BadNumber, span, format!("`{name}` is not a unit"))
                        .label("expected a unit of time or size, or nothing, after the number")
                        .help(format!("units are {}", all.join(" ")))
                        .suggest(nearest(name, units::names())),
                );
                Literal::Broken
            }
        }
    }

    fn finite(&mut self, start: usize, literal: Literal) -> Literal {
        match literal {
            Literal::Float(x) | Literal::Percent(x) | Literal::Time(x) | Literal::Size(x)
                if !x.is_finite() =>
            {
                let span = self.span(start);
                self.error(
                    Code::BadNumber,
                    span,
                    "this number is too large",
                    "it does not fit a real number",
                );
                Literal::Broken
            }
            other => other,
        }
    }

    /// `.5`, which is an error.
    pub(super) fn number_without_integer_part(&mut self) {
        let start = self.at;
        self.at += 1;
        let digits = self.take_while(|c| c.is_ascii_digit());
        let span = self.span(start);
        self.lexer.diagnostics.add(
            Diagnostic::error(Code::BadNumber, span, "a number cannot begin with its point")
                .label("expected a digit before the point")
                .help(format!("write `0.{digits}`"))
                .replacement(format!("0.{digits}")),
        );
        // A unit or percent sign belongs to the number.
        self.take_while(|c| c == '%' || is_word(c));
        self.push(TokenKind::Literal(Literal::Broken), start);
    }
}
