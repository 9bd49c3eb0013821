//! Parser of statements, with recovery from errors.
//!
//! There is always a tree. A statement with a syntax error is reported and skipped to its end; the names in it are
//! collected, so that the interpreter does not report them as undeclared.

use std::collections::HashSet;
use std::rc::Rc;

use crate::ast::{Block, Call, Expr, ExprKind, Name, Path, RightSide, Statement, StatementKind, TypeName};
use crate::diagnostic::{Code, Diagnostic};
use crate::diagnostics::{Diagnostics, ErrorReported};
use crate::lexer::{Literal, Token, TokenKind};
use crate::source::Span;

mod expression;

#[cfg(test)]
mod tests;

/// Upper bound on nested blocks, parentheses and brackets; bounds the recursion of parser and interpreter.
const MAX_DEPTH: u32 = 60;

const KEYWORDS: [&str; 8] = ["if", "then", "else", "every", "do", "lmt", "now", "nmt"];

/// True for a keyword or literal, which cannot be a name.
pub(crate) fn is_reserved(word: &str) -> bool {
    KEYWORDS.contains(&word) || expression::word_literal(word).is_some()
}

/// A program, with the names in skipped statements.
pub(crate) struct Parsed {
    pub program: Block,
    pub skipped: HashSet<Rc<str>>,
}

pub(crate) fn parse(tokens: &[Token], diagnostics: &mut Diagnostics) -> Parsed {
    let mut parser = Parser {
        tokens,
        at: 0,
        depth: 0,
        diagnostics,
        skipped: HashSet::new(),
        unclosed: false,
        statement_start: 0,
    };
    let mut program = Block::default();
    while !parser.at_end() {
        parser.statements(&mut program.statements);
        if parser.is("}") {
            let span = parser.token().span;
            let diagnostic = Diagnostic::error(Code::Syntax, span, "a `}` without its `{`")
                .label("expected a statement, or the end of the file");
            parser.diagnostics.add(diagnostic);
            parser.bump();
            parser.eat(";");
        }
    }
    Parsed { program, skipped: parser.skipped }
}

type ParseResult<T> = Result<T, ErrorReported>;

struct Parser<'a> {
    /// Never empty; the last one is [`TokenKind::End`].
    tokens: &'a [Token],
    at: usize,
    depth: u32,
    diagnostics: &'a mut Diagnostics,
    skipped: HashSet<Rc<str>>,
    /// A block without an end was reported, so that the missing ends of its statements are not.
    unclosed: bool,
    /// Index of the first token of the current statement.
    statement_start: usize,
}

impl<'a> Parser<'a> {
    fn token(&self) -> &'a Token {
        self.peek(0)
    }

    fn peek(&self, ahead: usize) -> &'a Token {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)]
    }

    fn previous(&self) -> &'a Token {
        &self.tokens[self.at.saturating_sub(1)]
    }

    fn at_end(&self) -> bool {
        matches!(self.token().kind, TokenKind::End)
    }

    fn bump(&mut self) -> &'a Token {
        let token = self.token();
        if !self.at_end() {
            self.at += 1;
        }
        token
    }

    fn is(&self, mark: &str) -> bool {
        matches!(self.token().kind, TokenKind::Mark(m) if m == mark)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.token().kind, TokenKind::Word(w) if **w == *word)
    }

    fn eat(&mut self, mark: &str) -> bool {
        let found = self.is(mark);
        if found {
            self.bump();
        }
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.bump();
        }
        found
    }

    /// Reports the next token as unexpected.
    fn unexpected<T>(&mut self, what: &str) -> ParseResult<T> {
        let token = self.token();
        if matches!(token.kind, TokenKind::Stray) {
            return Err(ErrorReported);
        }
        let diagnostic =
            Diagnostic::error(Code::Syntax, token.span, format!("unexpected {}", describe(token)))
                .label(format!("expected {what}"))
                .maybe_help(self.help_for(token));
        self.diagnostics.add(diagnostic);
        Err(ErrorReported)
    }

    /// Advice on the usual cause of an unexpected token.
    fn help_for(&self, token: &Token) -> Option<String> {
        match &token.kind {
            TokenKind::Word(word) if matches!(&**word, "then" | "else" | "do") => {
                Some(format!("`{word}` belongs to `if ... then {{ }} else {{ }}` and `every ... do {{ }}`"))
            }
            TokenKind::Word(word) if crate::units::unit(word).is_some() && is_number(self.before(token)) => {
                Some(format!("write the unit directly behind the number, without a space: `5{word}`"))
            }
            TokenKind::Mark("/") => {
                Some("a regular expression follows its operator without a space: `url =~/x/`".to_owned())
            }
            _ => None,
        }
    }

    /// The token before `token`.
    fn before(&self, token: &Token) -> Option<&'a Token> {
        let previous = self.previous();
        (previous.span.end <= token.span.start || previous.span.source != token.span.source)
            .then_some(previous)
    }

    fn expect(&mut self, mark: &'static str) -> ParseResult<Span> {
        if self.is(mark) { Ok(self.bump().span) } else { self.unexpected(&format!("`{mark}`")) }
    }

    /// A name that is no keyword.
    fn name(&mut self, what: &str) -> ParseResult<Name> {
        match &self.token().kind {
            TokenKind::Word(word) if !KEYWORDS.contains(&&**word) => {
                let span = self.bump().span;
                Ok(Name { text: word.clone(), span })
            }
            _ => self.unexpected(what),
        }
    }

    /// A word after a point, which may be a keyword.
    fn member(&mut self) -> ParseResult<Name> {
        match &self.token().kind {
            TokenKind::Word(word) => {
                let span = self.bump().span;
                Ok(Name { text: word.clone(), span })
            }
            _ => self.unexpected("the name of a field after `.`"),
        }
    }

    fn path(&mut self) -> ParseResult<Path> {
        let first = self.name("a name")?;
        let mut rest = Vec::new();
        while self.eat(".") {
            rest.push(self.member()?);
        }
        Ok(Path { first, rest })
    }

    /// Parses one level deeper. A program that is nested too deeply ends there.
    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        if self.depth >= MAX_DEPTH {
            let span = self.token().span;
            let diagnostic = Diagnostic::error(Code::TooDeep, span, "nested too deeply")
                .label(format!("at most {MAX_DEPTH} levels; nothing after this place was read"));
            self.diagnostics.add(diagnostic);
            self.at = self.tokens.len() - 1;
            return Err(ErrorReported);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Statements up to a `}` or the end.
    fn statements(&mut self, out: &mut Vec<Statement>) {
        while !self.at_end() && !self.is("}") {
            if self.eat(";") {
                continue;
            }
            let start = self.token().span;
            self.statement_start = self.at;
            let kind = self.statement().unwrap_or_else(|ErrorReported| {
                self.skip_statement();
                StatementKind::Broken
            });
            out.push(Statement { kind, span: start.to(self.previous().span) });
        }
    }

    /// Skips to the end of a statement: past the next `;` outside of braces, or before the `}` of the block or a line that
    /// begins like a declaration or an assignment.
    fn skip_statement(&mut self) {
        let mut braces = 0_u32;
        while !self.at_end() {
            match &self.token().kind {
                TokenKind::Mark("{") => braces += 1,
                TokenKind::Mark("}") if braces == 0 => return,
                TokenKind::Mark("}") => braces -= 1,
                TokenKind::Mark(";") if braces == 0 => {
                    self.bump();
                    return;
                }
                TokenKind::Word(_) if braces == 0 && self.begins_statement() => return,
                TokenKind::Word(word) => {
                    self.skipped.insert(word.clone());
                }
                _ => {}
            }
            self.bump();
        }
    }

    /// True at a line that begins with `Type name`, or `name =` outside of any list.
    fn begins_statement(&self) -> bool {
        let TokenKind::Word(word) = &self.token().kind else { return false };
        let next = self.peek(1);
        let declares = matches!(&next.kind, TokenKind::Word(_)) && crate::schema::Ty::named(word).is_some();
        let assigns = matches!(next.kind, TokenKind::Mark("="));
        // Not at the start of the statement itself, where skipping would make no progress.
        self.token().first_on_line && self.at > self.statement_start && (declares || assigns)
    }

    /// Reports a loop of another language, once, and skips its head and body.
    fn reject_loop(&mut self) -> ParseResult<StatementKind> {
        let span = self.token().span;
        self.diagnostics.add(
            Diagnostic::error(Code::Syntax, span, "there are no loops")
                .label("expected a statement")
                .help("arrays, ranges and `**` repeat things: `'10.0.0.1-250'`, `[x ** 100]`"),
        );
        self.bump();
        let mut open = 0_u32;
        while !self.at_end() {
            match self.bump().kind {
                TokenKind::Mark("(" | "{") => open += 1,
                TokenKind::Mark(mark @ (")" | "}")) => {
                    open = open.saturating_sub(1);
                    if open == 0 && (mark == "}" || !self.is("{")) {
                        break;
                    }
                }
                _ => {}
            }
        }
        self.eat(";");
        Ok(StatementKind::Broken)
    }

    fn statement(&mut self) -> ParseResult<StatementKind> {
        match &self.token().kind {
            TokenKind::Mark("{") => self.block().map(|(block, _)| StatementKind::Block(block)),
            TokenKind::Mark("[") => self.group(),
            TokenKind::Word(word) if **word == *"if" => self.condition(),
            TokenKind::Word(word) if **word == *"every" => self.every(),
            TokenKind::Word(word)
                if matches!(&**word, "for" | "while" | "foreach")
                    && matches!(self.peek(1).kind, TokenKind::Mark("(")) =>
            {
                self.reject_loop()
            }
            TokenKind::Word(_) => match &self.peek(1).kind {
                TokenKind::Word(_) => self.declaration(),
                TokenKind::Mark("[") if matches!(self.peek(2).kind, TokenKind::Mark("]")) => {
                    self.declaration()
                }
                TokenKind::Mark("(") => {
                    let call = self.call()?;
                    self.end_of_statement();
                    Ok(StatementKind::Call(call))
                }
                _ => self.assignment(),
            },
            _ => self.unexpected("a statement: a declaration, an assignment or a call"),
        }
    }

    /// Expects `;`, which is optional before `}`.
    fn end_of_statement(&mut self) {
        if self.eat(";") || self.is("}") {
            return;
        }
        let token = self.token();
        let next_line = token.first_on_line || self.at_end();
        let reported = match self.previous().kind {
            // An unterminated literal may have swallowed the `;`.
            TokenKind::Literal(Literal::Broken) | TokenKind::Regex(_) => next_line,
            _ => self.unclosed && self.at_end(),
        };
        if reported {
            return;
        }
        if matches!(token.kind, TokenKind::Stray) {
            return self.skip_statement();
        }
        let percent = expression::is_percent_before(self.previous(), token);
        let diagnostic = if percent {
            expression::percent_diagnostic(self.previous(), token)
        } else if next_line {
            Diagnostic::error(Code::Syntax, self.previous().span.after(), "the statement has no end")
                .label("expected `;` here")
                .replacement(";")
        } else {
            let label = "expected an operator, or `;` to end the statement";
            Diagnostic::error(Code::Syntax, token.span, format!("unexpected {}", describe(token)))
                .label(label)
                .maybe_help(self.help_for(token))
        };
        self.diagnostics.add(diagnostic);
        if !next_line {
            self.skip_statement();
        }
    }

    fn declaration(&mut self) -> ParseResult<StatementKind> {
        let ty = TypeName { name: self.name("the name of a type")?, arrays: self.brackets()? };
        let name = self.name("the name that is declared")?;
        let value = if self.is("=") {
            match self.right_side() {
                Ok(value) => Some(value),
                // Declare the name anyway, so that its uses are not reported.
                Err(ErrorReported) => {
                    let span = self.token().span;
                    self.skip_statement();
                    let value = Some(RightSide::Expr(Expr { kind: ExprKind::Broken, span }));
                    return Ok(StatementKind::Declare { ty, name, value });
                }
            }
        } else {
            None
        };
        self.end_of_statement();
        Ok(StatementKind::Declare { ty, name, value })
    }

    /// `[]`, `[][]`, or nothing.
    fn brackets(&mut self) -> ParseResult<u8> {
        let mut arrays = 0_u8;
        while self.eat("[") {
            self.expect("]")?;
            arrays = arrays.saturating_add(1);
        }
        Ok(arrays)
    }

    /// `= value` or `= { statements }`.
    fn right_side(&mut self) -> ParseResult<RightSide> {
        self.expect("=")?;
        if self.is("{") {
            let (block, span) = self.block()?;
            return Ok(RightSide::Block(Rc::new(block), span));
        }
        self.expression().map(RightSide::Expr)
    }

    fn assignment(&mut self) -> ParseResult<StatementKind> {
        let target = self.path()?;
        if !self.is("=") {
            return match self.token().kind {
                TokenKind::Mark("==") => {
                    let span = self.token().span;
                    self.diagnostics.add(
                        Diagnostic::error(Code::Syntax, span, "a comparison is no statement")
                            .label("expected `=`")
                            .help("a single `=` assigns"),
                    );
                    Err(ErrorReported)
                }
                TokenKind::Mark("[") => self.unexpected("`=`: an item of an array cannot be picked"),
                _ if target.rest.is_empty() => {
                    self.unexpected("`=` to assign, `(` to call, or a name to declare")
                }
                _ => self.unexpected("`=`"),
            };
        }
        let value = self.right_side()?;
        self.end_of_statement();
        Ok(StatementKind::Assign { target, value })
    }

    fn group(&mut self) -> ParseResult<StatementKind> {
        self.expect("[")?;
        let mut targets = Vec::new();
        while !self.is("]") {
            let target = self.path()?;
            let share = if self.eat(":") { Some(self.expression()?) } else { None };
            targets.push((target, share));
            if !self.eat(",") {
                break;
            }
        }
        self.expect("]")?;
        self.expect("=")?;
        let value = self.expression()?;
        self.end_of_statement();
        Ok(StatementKind::Group { targets, value })
    }

    fn condition(&mut self) -> ParseResult<StatementKind> {
        self.bump();
        let condition = self.expression()?;
        if !self.eat_word("then") {
            return self.unexpected("`then`");
        }
        let (then, _) = self.block()?;
        let otherwise = if self.eat_word("else") { Some(self.block()?.0) } else { None };
        Ok(StatementKind::If { condition, then, otherwise })
    }

    fn every(&mut self) -> ParseResult<StatementKind> {
        self.bump();
        let goal = self.expression()?;
        if !self.eat_word("do") {
            return self.unexpected("`do`");
        }
        let (body, _) = self.block()?;
        Ok(StatementKind::Every { goal, body })
    }

    /// `{ statements }` and its place.
    fn block(&mut self) -> ParseResult<(Block, Span)> {
        let open = self.expect("{")?;
        self.deeper(|parser| {
            let mut block = Block::default();
            parser.statements(&mut block.statements);
            let close = parser.token().span;
            if !parser.eat("}") && !std::mem::replace(&mut parser.unclosed, true) {
                parser.diagnostics.add(
                    Diagnostic::error(Code::Syntax, open, "this block has no end")
                        .label("expected a `}` that closes it before the end of the file"),
                );
            }
            Ok((block, open.to(close)))
        })
    }

    /// `name(arguments)`.
    fn call(&mut self) -> ParseResult<Call> {
        let TokenKind::Word(word) = &self.token().kind else {
            return self.unexpected("the name of a function");
        };
        let name = Name { text: word.clone(), span: self.bump().span };
        self.expect("(")?;
        let arguments = self.deeper(|parser| {
            let mut arguments = Vec::new();
            while !parser.is(")") {
                arguments.push(parser.expression()?);
                if !parser.eat(",") {
                    break;
                }
            }
            Ok(arguments)
        })?;
        if !self.is(")") {
            return self.unexpected("`,` or `)`");
        }
        let close = self.bump().span;
        let span = name.span.to(close);
        Ok(Call { name, arguments, span })
    }
}

/// True for a number without a unit.
fn is_number(token: Option<&Token>) -> bool {
    matches!(token.map(|token| &token.kind), Some(TokenKind::Literal(Literal::Int(_) | Literal::Float(_))))
}

fn describe(token: &Token) -> String {
    match &token.kind {
        TokenKind::Word(word) => format!("`{word}`"),
        TokenKind::Literal(_) => "value".to_owned(),
        TokenKind::Regex(_) => "regular expression".to_owned(),
        TokenKind::Mark(mark) => format!("`{mark}`"),
        TokenKind::Stray => "character".to_owned(),
        TokenKind::End => "end of file".to_owned(),
    }
}
