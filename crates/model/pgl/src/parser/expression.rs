//! Expressions, by precedence.

use super::{KEYWORDS, Parse, Parser, Reported};
use crate::ast::{Expr, ExprKind, Operator};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::{Literal, Token, TokenKind};
use crate::units::{self, Unit};

/// The level of the operators that come after `!`: `!a == b` is `!(a == b)`.
const EQUALITY: u8 = 5;

/// An infix operator, its level (higher binds tighter), and whether it can be repeated.
fn infix(mark: &str) -> Option<(Operator, u8, bool)> {
    Some(match mark {
        ".." => (Operator::Range, 1, false),
        "**" => (Operator::Clone, 1, false),
        "||" => (Operator::Or, 2, true),
        "&&" => (Operator::And, 3, true),
        "^^" => (Operator::Xor, 4, true),
        "==" => (Operator::Equal, EQUALITY, false),
        "!=" => (Operator::NotEqual, EQUALITY, false),
        "<" => (Operator::Less, 6, false),
        "<=" => (Operator::LessOrEqual, 6, false),
        ">" => (Operator::Greater, 6, false),
        ">=" => (Operator::GreaterOrEqual, 6, false),
        "+" => (Operator::Plus, 7, true),
        "-" => (Operator::Minus, 7, true),
        "*" => (Operator::Times, 8, true),
        "/" => (Operator::Divide, 8, true),
        "%" => (Operator::Remainder, 8, true),
        "^" => (Operator::Power, 8, true),
        _ => return None,
    })
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        self.deeper(|parser| parser.operators(0))
    }

    /// Operators of at least this level.
    fn operators(&mut self, least: u8) -> Parse<Expr> {
        let mut left = self.prefixed()?;
        while let Some((_, level, repeats)) = self.operator().filter(|(_, level, _)| *level >= least) {
            let mut rest = Vec::new();
            while let Some((operator, ..)) = self.operator().filter(|(_, l, _)| *l == level) {
                if !repeats && !rest.is_empty() {
                    return self.expected(&format!(
                        "parentheses: `{}` cannot follow another operator of its kind",
                        operator.text()
                    ));
                }
                let place = self.bump().span;
                rest.push((operator, place, self.operators(level + 1)?));
            }
            let span = rest.last().map_or(left.span, |(.., last)| left.span.to(last.span));
            left = Expr { kind: ExprKind::Chain(Box::new(left), rest), span };
        }
        Ok(left)
    }

    fn operator(&self) -> Option<(Operator, u8, bool)> {
        match self.token().kind {
            TokenKind::Mark(mark) => infix(mark),
            _ => None,
        }
    }

    fn prefixed(&mut self) -> Parse<Expr> {
        let start = self.token().span;
        let operator = match self.token().kind {
            TokenKind::Mark("!") => Operator::Not,
            TokenKind::Mark("-") => Operator::Minus,
            TokenKind::Mark("+") => Operator::Plus,
            _ => return self.primary(),
        };
        self.bump();
        let operand = self.deeper(|parser| match operator {
            Operator::Not => parser.operators(EQUALITY),
            _ => parser.prefixed(),
        })?;
        let span = start.to(operand.span);
        Ok(Expr { kind: ExprKind::Unary(operator, Box::new(operand)), span })
    }

    fn primary(&mut self) -> Parse<Expr> {
        let token = self.token();
        let span = token.span;
        match &token.kind {
            TokenKind::Literal(literal) => {
                self.bump();
                if percent_before(token, self.token()) {
                    self.diagnostics.add(percent_diagnostic(token, self.token()));
                    return Err(Reported);
                }
                Ok(Expr { kind: ExprKind::Literal(literal.clone()), span })
            }
            TokenKind::Word(_) => self.word(),
            TokenKind::Mark("(") => {
                self.bump();
                let inner = self.expression()?;
                let close = self.need(")")?;
                Ok(Expr { span: span.to(close), ..inner })
            }
            TokenKind::Mark("[") => self.array(),
            TokenKind::Mark("{") => {
                let diagnostic = Diagnostic::error(Code::Syntax, span, "a block is no value")
                    .label("expected a value")
                    .help("declare the object first, `Type name = { ... };`, and write its name here");
                self.diagnostics.add(diagnostic);
                Err(Reported)
            }
            _ => self.expected("a value"),
        }
    }

    /// A value that begins with a word.
    fn word(&mut self) -> Parse<Expr> {
        let token = self.token();
        let span = token.span;
        let TokenKind::Word(word) = &token.kind else {
            return self.expected("a value");
        };
        if matches!(self.peek(1).kind, TokenKind::Mark("(")) {
            let call = self.call()?;
            return Ok(Expr { span: call.span, kind: ExprKind::Call(call) });
        }
        if let Some(literal) = word_literal(word) {
            self.bump();
            return Ok(Expr { kind: ExprKind::Literal(literal), span });
        }
        if KEYWORDS.contains(&&**word) && !matches!(&**word, "now" | "lmt" | "nmt") {
            return self.expected("a value");
        }
        if matches!(&**word, "now" | "lmt" | "nmt") {
            self.bump();
            let name = crate::ast::Name { text: word.clone(), span };
            return Ok(Expr { kind: ExprKind::Path(crate::ast::Path { first: name, rest: vec![] }), span });
        }
        let path = self.path()?;
        let span = path.span();
        if let TokenKind::Regex(text) = &self.token().kind {
            let span = span.to(self.bump().span);
            return Ok(Expr { kind: ExprKind::Regex { subject: path.first, text: text.clone() }, span });
        }
        if self.is("(") {
            let call = self.token().span;
            self.diagnostics.add(
                Diagnostic::error(Code::Syntax, call, "objects have no functions")
                    .label("expected an operator or the end of the expression"),
            );
            return Err(Reported);
        }
        Ok(Expr { kind: ExprKind::Path(path), span })
    }

    /// `[ item, item: probability ]`.
    fn array(&mut self) -> Parse<Expr> {
        let open = self.need("[")?;
        let items = self.deeper(|parser| {
            let mut items = Vec::new();
            while !parser.is("]") {
                let item = parser.expression()?;
                let probability = if parser.eat(":") { Some(parser.expression()?) } else { None };
                items.push((item, probability));
                if !parser.eat(",") {
                    break;
                }
            }
            Ok(items)
        })?;
        if !self.is("]") {
            return self.expected("`,` or `]`");
        }
        let close = self.bump().span;
        Ok(Expr { kind: ExprKind::Array(items), span: open.to(close) })
    }
}

/// What a word means when it is no name.
pub(super) fn word_literal(word: &str) -> Option<Literal> {
    match word {
        "yes" | "true" | "on" => Some(Literal::Bool(true)),
        "no" | "false" | "off" => Some(Literal::Bool(false)),
        unit => units::bare_unit(unit).map(|unit| match unit {
            Unit::Time(seconds) => Literal::Time(seconds),
            Unit::Size(bytes) => Literal::Size(bytes),
        }),
    }
}

/// `7%2`: a percent literal with a value directly behind it.
pub(super) fn percent_before(before: &Token, after: &Token) -> bool {
    matches!(before.kind, TokenKind::Literal(Literal::Percent(_)))
        && matches!(after.kind, TokenKind::Literal(_) | TokenKind::Word(_) | TokenKind::Mark("("))
        && before.span.source == after.span.source
        && before.span.end == after.span.start
}

/// Why `7%2` is not a remainder.
pub(super) fn percent_diagnostic(before: &Token, after: &Token) -> Diagnostic {
    Diagnostic::error(
        Code::PercentNotRemainder,
        before.span.to(after.span),
        "a number directly before `%` is a percentage",
    )
    .label("this reads as a percentage followed by another value")
    .help("for the remainder of a division write spaces around it: `7 % 2`")
}
