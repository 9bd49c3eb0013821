//! Expressions, by precedence climbing.

use super::{ErrorReported, KEYWORDS, ParseResult, Parser};
use crate::ast::{Expr, ExprKind, Operator};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::{Literal, Token, TokenKind};
use crate::units::{self, Unit};

/// Precedence of the operand of `!`: `!a == b` is `!(a == b)`.
const EQUALITY: u8 = 5;

struct Infix {
    operator: Operator,
    /// Higher precedence binds tighter.
    precedence: u8,
    /// Whether operators of this precedence can follow each other.
    chains: bool,
}

fn infix_operator(mark: &str) -> Option<Infix> {
    let (operator, precedence, chains) = match mark {
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
    };
    Some(Infix { operator, precedence, chains })
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> ParseResult<Expr> {
        self.deeper(|parser| parser.operators(0))
    }

    /// Parses operators of at least the given precedence.
    fn operators(&mut self, least: u8) -> ParseResult<Expr> {
        let mut left = self.prefix()?;
        while let Some(Infix { precedence, chains, .. }) =
            self.infix().filter(|infix| infix.precedence >= least)
        {
            let mut rest = Vec::new();
            while let Some(Infix { operator, .. }) =
                self.infix().filter(|infix| infix.precedence == precedence)
            {
                if !chains && !rest.is_empty() {
                    return self.unexpected(&format!(
                        "parentheses: `{}` cannot follow another operator of its kind",
                        operator.text()
                    ));
                }
                let span = self.bump().span;
                rest.push((operator, span, self.operators(precedence + 1)?));
            }
            let span = rest.last().map_or(left.span, |(.., last)| left.span.to(last.span));
            left = Expr { kind: ExprKind::Chain(Box::new(left), rest), span };
        }
        Ok(left)
    }

    fn infix(&self) -> Option<Infix> {
        match self.token().kind {
            TokenKind::Mark(mark) => infix_operator(mark),
            _ => None,
        }
    }

    fn prefix(&mut self) -> ParseResult<Expr> {
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
            _ => parser.prefix(),
        })?;
        let span = start.to(operand.span);
        Ok(Expr { kind: ExprKind::Unary(operator, Box::new(operand)), span })
    }

    fn primary(&mut self) -> ParseResult<Expr> {
        let token = self.token();
        let span = token.span;
        match &token.kind {
            TokenKind::Literal(literal) => {
                self.bump();
                if is_percent_before(token, self.token()) {
                    self.diagnostics.add(percent_diagnostic(token, self.token()));
                    return Err(ErrorReported);
                }
                Ok(Expr { kind: ExprKind::Literal(literal.clone()), span })
            }
            TokenKind::Word(_) => self.word(),
            TokenKind::Mark("(") => {
                self.bump();
                let inner = self.expression()?;
                let close = self.expect(")")?;
                Ok(Expr { span: span.to(close), ..inner })
            }
            TokenKind::Mark("[") => self.array(),
            TokenKind::Mark("{") => {
                let diagnostic = Diagnostic::error(Code::Syntax, span, "a block is no value")
                    .label("expected a value")
                    .help("declare the object first, `Type name = { ... };`, and write its name here");
                self.diagnostics.add(diagnostic);
                Err(ErrorReported)
            }
            _ => self.unexpected("a value"),
        }
    }

    /// A value that begins with a word.
    fn word(&mut self) -> ParseResult<Expr> {
        let token = self.token();
        let span = token.span;
        let TokenKind::Word(word) = &token.kind else {
            return self.unexpected("a value");
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
            return self.unexpected("a value");
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
            return Err(ErrorReported);
        }
        Ok(Expr { kind: ExprKind::Path(path), span })
    }

    /// `[ item, item: probability ]`.
    fn array(&mut self) -> ParseResult<Expr> {
        let open = self.expect("[")?;
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
            return self.unexpected("`,` or `]`");
        }
        let close = self.bump().span;
        Ok(Expr { kind: ExprKind::Array(items), span: open.to(close) })
    }
}

/// The literal that a word stands for; none for a name.
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

/// True for `7%2`: a percent literal with a value directly behind it.
pub(super) fn is_percent_before(before: &Token, after: &Token) -> bool {
    matches!(before.kind, TokenKind::Literal(Literal::Percent(_)))
        && matches!(after.kind, TokenKind::Literal(_) | TokenKind::Word(_) | TokenKind::Mark("("))
        && before.span.source == after.span.source
        && before.span.end == after.span.start
}

/// Error about `7%2`, which is no remainder.
pub(super) fn percent_diagnostic(before: &Token, after: &Token) -> Diagnostic {
    Diagnostic::error(
        Code::PercentNotRemainder,
        before.span.to(after.span),
        "a number directly before `%` is a percentage",
    )
    .label("this reads as a percentage followed by another value")
    .help("for the remainder of a division write spaces around it: `7 % 2`")
}
