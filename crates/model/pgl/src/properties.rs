//! Properties of the compiler and its parts that hold for every text.

use proptest::prelude::*;

use crate::value::Value;
use crate::value::address::AddrRange;
use crate::value::array::{Array, Item};
use crate::{SearchPath, Span, compile};

/// Compiles a text; a failure must have an error with a place, and every diagnostic must render.
fn compiles_or_has_diagnostics(text: &str) {
    let resolver = SearchPath::from_fn(vec![], |name| (name == "main.pg").then(|| text.to_owned()));
    let (diagnostics, sources, failed) = match compile("main.pg", &resolver) {
        Ok(compiled) => (compiled.warnings, compiled.sources, false),
        Err(failure) => (failure.diagnostics, failure.sources, true),
    };
    let placed = diagnostics.iter().any(|d| d.is_error() && !d.location(&sources).is_empty());
    assert_eq!(failed, placed, "{text}");
    for diagnostic in &diagnostics {
        assert!(!diagnostic.render(&sources, true).is_empty());
    }
}

proptest! {
    #[test]
    fn any_bytes_compile_or_have_diagnostics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        compiles_or_has_diagnostics(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_statement_like_text_compiles_or_has_diagnostics(
        text in "((int|addr\\[\\]|Robot|Content|Phase) )?[a-c](\\.[a-z]{1,9})? = ([0-9]{1,3}(KB|sec|%)?|\\[[a-c](: 5%)?, 1\\]|\\{|'10.0.0.[0-9]-9:80')( [*/+%-] [a-c0-9]){0,3}(;|\\};)?",
    ) {
        compiles_or_has_diagnostics(&text.repeat(3));
    }

    #[test]
    fn addresses_read_back_as_they_are_shown(
        parts in prop::array::uniform4((0_u16..200, 0_u16..50)),
        port in prop::option::of(0_u16..60_000),
        bits in prop::option::of(1_u8..=32),
    ) {
        let host: Vec<String> = parts.iter().map(|(low, more)| match more {
            0 => low.to_string(),
            more => format!("{low}-{}", low + more),
        }).collect();
        let port = port.map_or(String::new(), |port| format!(":{port}"));
        let bits = bits.map_or(String::new(), |bits| format!("/{bits}"));
        let text = format!("{}{port}{bits}", host.join("."));
        let range = AddrRange::parse(&text).unwrap();
        prop_assert_eq!(range.to_string(), text);
        let expected: u64 = parts.iter().map(|(_, more)| u64::from(*more) + 1).product();
        prop_assert_eq!(range.count(), expected);
        for index in [0, expected / 2, expected - 1] {
            let one = range.nth(index);
            prop_assert_eq!(one.count(), 1);
            prop_assert_eq!(&AddrRange::parse(&one.to_string()).unwrap(), &one);
        }
    }

    #[test]
    fn any_text_is_an_address_or_says_what_was_expected(text in "\\PC{0,30}") {
        if let Ok(range) = AddrRange::parse(&text) {
            prop_assert!(range.count() > 0);
            range.nth(0);
        }
    }

    #[test]
    fn probabilities_of_a_selector_add_up_to_one(
        items in prop::collection::vec((prop::option::of(0.0_f64..3.0), 1_u32..4, prop::collection::vec(prop::option::of(0.0_f64..2.0), 0..4)), 1..6),
    ) {
        let leaf = |probability: Option<f64>| Item { probability, ..Item::plain(Value::Int(1), Span::default()) };
        let array = Array::new(items.into_iter().map(|(probability, times, inner)| {
            let value = if inner.is_empty() { Value::Int(0) } else { Value::array(inner.into_iter().map(leaf).collect()) };
            Item { value, probability, times, span: Span::default() }
        }).collect());
        let (choices, _) = array.choices().unwrap();
        let sum: f64 = choices.iter().map(|choice| choice.probability).sum();
        prop_assert!((sum - 1.0).abs() < 0.011, "{}", sum);
        prop_assert!(choices.iter().all(|choice| choice.probability >= 0.0));
    }
}
