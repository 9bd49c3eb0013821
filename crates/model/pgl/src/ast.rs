//! Syntax tree of a program.

use std::rc::Rc;

use crate::lexer::Literal;
use crate::source::Span;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Name {
    pub text: Rc<str>,
    pub span: Span,
}

/// `a.b.c`; never empty.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path {
    pub first: Name,
    pub rest: Vec<Name>,
}

impl Path {
    pub fn span(&self) -> Span {
        self.first.span.to(self.rest.last().unwrap_or(&self.first).span)
    }
}

/// `Type`, `Type[]`, `Type[][]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TypeName {
    pub name: Name,
    pub arrays: u8,
}

/// Statements between braces, or a whole file.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Block {
    pub statements: Vec<Statement>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    pub kind: StatementKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StatementKind {
    /// `Type name [= value]`.
    Declare {
        ty: TypeName,
        name: Name,
        value: Option<RightSide>,
    },
    /// `path = value`.
    Assign {
        target: Path,
        value: RightSide,
    },
    /// `[a, b: 25%] = value`.
    Group {
        targets: Vec<(Path, Option<Expr>)>,
        value: Expr,
    },
    /// `name(arguments)`.
    Call(Call),
    /// `if condition then { } else { }`.
    If {
        condition: Expr,
        then: Block,
        otherwise: Option<Block>,
    },
    /// `every goal do { }`, allowed in scripts only.
    Every {
        goal: Expr,
        body: Block,
    },
    /// `{ }`.
    Block(Block),
    Broken,
}

/// The right side of `=`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RightSide {
    Expr(Expr),
    /// Statements that fill an object, or the body of a script.
    Block(Rc<Block>, Span),
}

/// `name(arguments)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub name: Name,
    pub arguments: Vec<Expr>,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ExprKind {
    Literal(Literal),
    Path(Path),
    Unary(Operator, Box<Expr>),
    /// Left-associative operators of one precedence. A list rather than nested pairs, so that the depth of the tree does not
    /// grow with the length of the expression.
    Chain(Box<Expr>, Vec<(Operator, Span, Expr)>),
    /// Items, each with its probability.
    Array(Vec<(Expr, Option<Expr>)>),
    Call(Call),
    /// `subject =~/pattern/options`.
    Regex {
        subject: Name,
        text: Rc<str>,
    },
    Broken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Range,
    Clone,
    Or,
    And,
    Xor,
    Not,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Plus,
    Minus,
    Times,
    Divide,
    Remainder,
    Power,
}

impl Operator {
    pub fn text(self) -> &'static str {
        match self {
            Operator::Range => "..",
            Operator::Clone => "**",
            Operator::Or => "||",
            Operator::And => "&&",
            Operator::Xor => "^^",
            Operator::Not => "!",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessOrEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterOrEqual => ">=",
            Operator::Plus => "+",
            Operator::Minus => "-",
            Operator::Times => "*",
            Operator::Divide => "/",
            Operator::Remainder => "%",
            Operator::Power => "^",
        }
    }
}
