//! Tests of the parser: precedence, and recovery from errors.

use super::*;
use crate::ast::Operator;
use crate::lexer::lex;
use crate::source::{ResolvedSource, Resolver, Source};

struct NoFiles;

impl Resolver for NoFiles {
    fn read(&self, _: &str, _: Option<&str>) -> Result<ResolvedSource, crate::ResolveError> {
        Err(crate::ResolveError::NoFile(vec![]))
    }
}

fn parsed(text: &str) -> (Block, Vec<Code>) {
    let mut sources = vec![Source { name: "t.pg".into(), text: text.into(), included_from: None }];
    let mut diagnostics = Diagnostics::default();
    let tokens = lex(&mut sources, &NoFiles, &mut diagnostics);
    let parsed = parse(&tokens, &mut diagnostics);
    (parsed.program, diagnostics.finish().into_iter().map(|d| d.code).collect())
}

/// An expression with parentheses around everything.
fn shown(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Literal(Literal::Int(x)) => x.to_string(),
        ExprKind::Literal(other) => format!("{other:?}"),
        ExprKind::Path(path) => {
            let names = path.rest.iter().map(|name| format!(".{}", name.text));
            format!("{}{}", path.first.text, names.collect::<String>())
        }
        ExprKind::Unary(operator, operand) => format!("({}{})", operator.text(), shown(operand)),
        ExprKind::Chain(first, rest) => rest.iter().fold(shown(first), |left, (operator, _, right)| {
            format!("({left} {} {})", operator.text(), shown(right))
        }),
        ExprKind::Array(items) => {
            let items = items.iter().map(|(item, p)| match p {
                Some(p) => format!("{}: {}", shown(item), shown(p)),
                None => shown(item),
            });
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        ExprKind::Call(call) => {
            let arguments: Vec<String> = call.arguments.iter().map(shown).collect();
            format!("{}({})", call.name.text, arguments.join(", "))
        }
        ExprKind::Regex { subject, text } => format!("{} {text}", subject.text),
        ExprKind::Broken => "broken".into(),
    }
}

fn expression(text: &str) -> String {
    let (program, codes) = parsed(&format!("x = {text};"));
    assert_eq!(codes, [], "{text}");
    match &program.statements[0].kind {
        StatementKind::Assign { value: RightSide::Expr(expr), .. } => shown(expr),
        other => panic!("{other:?}"),
    }
}

#[test]
fn operators_bind_as_the_reference_says() {
    for (text, meaning) in [
        ("2*3^2", "((2 * 3) ^ 2)"),
        ("1 + 2*3 - 4", "((1 + (2 * 3)) - 4)"),
        ("a || b && c ^^ d", "(a || (b && (c ^^ d)))"),
        ("!a == b", "(!(a == b))"),
        ("!a && b", "((!a) && b)"),
        ("a + 1 < b * 2", "((a + 1) < (b * 2))"),
        ("-a.b * +c", "((-a.b) * (+c))"),
        ("1 + 2 .. 5", "((1 + 2) .. 5)"),
        ("(1 + 2) * 3", "((1 + 2) * 3)"),
        ("now + const(1)", "(now + const(1))"),
        ("[a: 1, b ** 2]", "[a: 1, (b ** 2)]"),
        ("url =~/x/ || !host ==/y/", "(url =~/x/ || (!host ==/y/))"),
        ("min(a, min)", "min(a, Time(60.0))"),
        ("a.min", "a.min"),
    ] {
        assert_eq!(expression(text), meaning, "{text}");
    }
}

#[test]
fn every_operator_has_a_level() {
    for operator in [Operator::Range, Operator::Clone, Operator::Power, Operator::NotEqual, Operator::Xor] {
        assert!(expression(&format!("a {} b", operator.text())).contains(operator.text()));
    }
}

#[test]
fn statements_are_told_by_their_beginning() {
    let (program, codes) = parsed(
        "int x; addr[] a = b; T_distr[] t; x = 5; a.b = { c = 1 }; [a, b: 5] = c; f(x); { x = 1; } if x then { };",
    );
    assert_eq!(codes, []);
    let kinds: Vec<&str> = program
        .statements
        .iter()
        .map(|statement| match &statement.kind {
            StatementKind::Declare { .. } => "declare",
            StatementKind::Assign { .. } => "assign",
            StatementKind::Group { .. } => "group",
            StatementKind::Call(_) => "call",
            StatementKind::If { .. } => "if",
            StatementKind::Every { .. } => "every",
            StatementKind::Block(_) => "block",
            StatementKind::Broken => "broken",
        })
        .collect();
    assert_eq!(kinds, ["declare", "declare", "declare", "assign", "assign", "group", "call", "block", "if"]);
}

#[test]
fn a_mistake_costs_its_own_statement_only() {
    let (program, codes) = parsed("int a = ; int b = (1; int c = 3;\nint d = 4 4\nint e = 5;");
    assert_eq!(codes, [Code::Syntax; 3]);
    let declared: Vec<&str> = program
        .statements
        .iter()
        .filter_map(|statement| match &statement.kind {
            StatementKind::Declare { name, .. } => Some(&*name.text),
            _ => None,
        })
        .collect();
    assert_eq!(declared, ["a", "b", "c", "d", "e"]);
}

#[test]
fn names_in_skipped_text_are_remembered() {
    let mut sources =
        vec![Source { name: "t.pg".into(), text: "int int hidden = 5;".into(), included_from: None }];
    let mut diagnostics = Diagnostics::default();
    let tokens = lex(&mut sources, &NoFiles, &mut diagnostics);
    assert!(parse(&tokens, &mut diagnostics).skipped.contains("hidden"));
}
