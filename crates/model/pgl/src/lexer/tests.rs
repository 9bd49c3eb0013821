//! Tests of the lexer.

use super::*;
use crate::source::ResolvedSource;

/// Knows `inc.pg` and nothing else.
struct OneFile;

impl Resolver for OneFile {
    fn read(&self, name: &str, _: Option<&str>) -> Result<ResolvedSource, crate::ResolveError> {
        match name {
            "inc.pg" => Ok(ResolvedSource { name: name.into(), text: "included 5\n".into() }),
            _ => Err(crate::ResolveError::NoFile(vec![name.into()])),
        }
    }
}

/// The kinds of tokens of a text, and the codes of what was said about it.
fn lexed(text: &str) -> (Vec<TokenKind>, Vec<Code>) {
    let mut sources = vec![Source { name: "t.pg".into(), text: text.into(), included_from: None }];
    let mut diagnostics = Diagnostics::default();
    let tokens = lex(&mut sources, &OneFile, &mut diagnostics);
    let mut kinds: Vec<TokenKind> = tokens.into_iter().map(|token| token.kind).collect();
    assert_eq!(kinds.pop(), Some(TokenKind::End));
    (kinds, diagnostics.finish().into_iter().map(|d| d.code).collect())
}

fn literal(text: &str) -> Literal {
    match lexed(text) {
        (kinds, codes) if codes.is_empty() => match kinds.as_slice() {
            [TokenKind::Literal(literal)] => literal.clone(),
            other => panic!("{text}: {other:?}"),
        },
        (_, codes) => panic!("{text}: {codes:?}"),
    }
}

fn word(text: &str) -> TokenKind {
    TokenKind::Word(text.into())
}

#[test]
fn numbers_carry_their_unit_and_percent_sign() {
    assert_eq!(literal("42"), Literal::Int(42));
    assert_eq!(literal("2."), Literal::Float(2.0));
    assert_eq!(literal("1e3"), Literal::Float(1000.0));
    assert_eq!(literal("2.5e-1"), Literal::Float(0.25));
    assert_eq!(literal("13%"), Literal::Percent(13.0));
    assert_eq!(literal("0.01%"), Literal::Percent(0.01));
    assert_eq!(literal("5min"), Literal::Time(300.0));
    assert_eq!(literal("0.5year"), Literal::Time(15_768_000.0));
    assert_eq!(literal("8.5KB"), Literal::Size(8704.0));
    assert_eq!(literal("16bit"), Literal::Size(2.0));
}

#[test]
fn a_percent_sign_belongs_to_the_number_before_it() {
    let (kinds, codes) = lexed("7%2");
    assert_eq!(kinds, [TokenKind::Literal(Literal::Percent(7.0)), TokenKind::Literal(Literal::Int(2))]);
    assert!(codes.is_empty());
    assert!(lexed("7 % 2").0.contains(&TokenKind::Mark("%")));
}

#[test]
fn two_points_are_an_operator_even_after_a_number() {
    let int = |n| TokenKind::Literal(Literal::Int(n));
    assert_eq!(lexed("1..5").0, [int(1), TokenKind::Mark(".."), int(5)]);
}

#[test]
fn comments_nest_and_end_nothing_inside_strings() {
    assert_eq!(lexed("a /* b /* c */ d */ e"), (vec![word("a"), word("e")], vec![Code::NestedComment]));
    assert_eq!(lexed("a // b\nc").0, [word("a"), word("c")]);
    assert_eq!(literal("\"// no /* comment\""), Literal::Text(Rc::new(Pattern::plain("// no /* comment"))));
}

#[test]
fn single_quotes_are_typed_by_what_is_in_them() {
    assert!(
        matches!(literal("'X-Name: some value'"), Literal::Header(name, value) if &*name == "X-Name" && &*value == "some value")
    );
    assert_eq!(literal("'1970/01/02'"), Literal::Date(86_400.0));
    assert!(matches!(literal("'10.0.0.1-4:80'"), Literal::Address(range) if range.count() == 4));
    assert!(matches!(literal("'eth0::[::1]:80/64'"), Literal::Address(range) if range.count() == 1));
}

#[test]
fn strings_have_ranges_and_escapes() {
    assert!(
        matches!(literal(r#""u[1-10]\[x\"""#), Literal::Text(text) if text.count() == 10 && text.nth(4).to_string() == "u5[x\"")
    );
}

#[test]
fn regular_expressions_follow_their_operator_directly() {
    assert_eq!(lexed("url =~/a\\/b/i").0, [word("url"), TokenKind::Regex("=~/a\\/b/i".into())]);
    assert_eq!(lexed("url ==@x@").0, [word("url"), TokenKind::Regex("==@x@".into())]);
    assert_eq!(lexed("a == /* b */ c").0, [word("a"), TokenKind::Mark("=="), word("c")]);
    assert_eq!(lexed("url =~ /x/").1, [Code::BadLiteral]);
}

#[test]
fn includes_are_spliced_and_other_directives_are_not() {
    let (kinds, codes) = lexed("a\n#include \"inc.pg\" // why\nb");
    assert_eq!(kinds, [word("a"), word("included"), TokenKind::Literal(Literal::Int(5)), word("b")]);
    assert!(codes.is_empty());
    let (kinds, codes) = lexed("#include \"inc.pg\"; b");
    assert_eq!(kinds[2..], [TokenKind::Mark(";"), word("b")]);
    assert!(codes.is_empty());
    assert_eq!(lexed("#\n  #  \n").1, []);
    for wrong in ["#include \"none.pg\"", "#include inc.pg", "#define A", "#include \"none.pg\" x"] {
        assert_eq!(lexed(wrong).1, [Code::Directive], "{wrong}");
    }
    assert_eq!(lexed("a # b").1, [Code::StrayCharacter]);
}

#[test]
fn everything_that_is_cut_off_is_reported_once() {
    for (text, code) in [
        ("/* a", Code::Unterminated),
        ("\"a", Code::Unterminated),
        ("'a", Code::Unterminated),
        ("url =~/a", Code::Unterminated),
        ("`a", Code::Refused),
        ("\"a[1-\"", Code::BadLiteral),
    ] {
        assert_eq!(lexed(text).1.first(), Some(&code), "{text}");
    }
}

#[test]
fn what_is_no_text_is_read_in_comments_and_is_an_error_at_its_place_elsewhere() {
    assert_eq!(lexed("// caf\u{fffd}\na /* \u{fffd}\n\u{fffd} */ b").1, []);
    for text in [
        "a\n \u{fffd}b",
        "a\n\"\u{fffd}\"",
        "a\n'\u{fffd}'",
        "a\n`\u{fffd}`",
        "a\nu =~/\u{fffd}/",
        "a\n\"[1-\u{fffd}]\"",
    ] {
        let mut sources = vec![Source { name: "t.pg".into(), text: text.into(), included_from: None }];
        let mut diagnostics = Diagnostics::default();
        lex(&mut sources, &OneFile, &mut diagnostics);
        let of_text = |d: &Diagnostic| d.message == "this is not text (UTF-8)";
        let places: Vec<_> = diagnostics.finish().iter().filter(|d| of_text(d)).map(|d| d.span).collect();
        let at = text.find(REPLACEMENT).unwrap();
        assert_eq!(places.len(), 1, "{text}");
        assert_eq!(
            places[0].map(|span| sources[0].position(span.start as usize)),
            Some(sources[0].position(at)),
            "{text}"
        );
    }
}
