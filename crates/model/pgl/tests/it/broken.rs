//! Whatever is given to it, the compiler returns a workload, or errors that have a place.

use proptest::prelude::*;

use crate::{compile_text, data, rendered};

/// A small generator, so that a failing variant can be made again from its number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides.max(1)
    }
}

#[test]
fn robots_that_no_machine_can_be_are_refused_without_making_them() {
    let text = |times: &str| {
        format!(
            "Content C = {{ kind = \"c\"; size = const(1KB); cachable = 80%; }};
             Server S = {{ kind = \"s\"; contents = [ C ]; direct_access = contents; addresses = ['127.0.0.1:9'] ** 1; }};
             Robot R = {{ kind = \"r\"; origins = S.addresses; req_rate = 1/sec; addresses = ['127.0.0.1' ** {times}]; }};
             Phase p = {{ name = \"p\"; goal.duration = 1sec; }};
             schedule(p); use(S, R);"
        )
    };
    for times in ["10000001", "1000000000", "2147483647"] {
        let rendered = rendered(&compile_text(&text(times), &[]));
        assert!(rendered.contains("too many robots") && rendered.contains("at most 10000000"), "{rendered}");
    }
    assert_eq!(
        compile_text(&text("10000000"), &[]).expect("is a workload").workload.robot_count(),
        10_000_000
    );
}

/// The text cut at the borders of words, numbers, blanks and marks.
fn tokens(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let class = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            0
        } else if c.is_whitespace() {
            1
        } else {
            2
        }
    };
    for c in text.chars() {
        match all.last_mut() {
            Some(last) if class(c) != 2 && last.chars().all(|d| class(d) == class(c)) => last.push(c),
            _ => all.push(c.to_string()),
        }
    }
    all
}

/// One to three changes of tokens or characters.
fn mutate(text: &str, dice: &mut Dice) -> String {
    const INSERTED: [&str; 18] = [
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ";",
        "=",
        "'",
        "\"",
        "%",
        "..",
        "**",
        "/*",
        "#",
        "now",
        "99999999999",
        "undef()",
    ];
    let mut parts = tokens(text);
    for _ in 0..=dice.roll(3) {
        let at = dice.roll(parts.len());
        match dice.roll(6) {
            0 => {
                parts.remove(at);
            }
            1 => parts.insert(at, INSERTED[dice.roll(INSERTED.len())].to_owned()),
            2 => {
                let other = dice.roll(parts.len());
                parts.swap(at, other);
            }
            3 => {
                let other = parts[dice.roll(parts.len())].clone();
                parts.insert(at, other);
            }
            4 => {
                let mut characters: Vec<char> = parts[at].chars().collect();
                let place = dice.roll(characters.len());
                characters[place] = char::from(32 + dice.roll(95) as u8);
                parts[at] = characters.into_iter().collect();
            }
            _ => {
                parts.truncate(at.max(1));
            }
        }
        if parts.is_empty() {
            parts.push(String::new());
        }
    }
    parts.concat()
}

/// Compiles, and checks that a failure says where.
fn compiles_or_has_diagnostics(text: &str) {
    let result = compile_text(text, &[]);
    let shown = rendered(&result);
    if let Err(failure) = &result {
        let errors: Vec<_> = failure.diagnostics.iter().filter(|d| d.is_error()).collect();
        assert!(!errors.is_empty(), "failed without an error\n{text}");
        let placed = errors.iter().any(|d| !d.location(&failure.sources).is_empty());
        assert!(placed, "no place\n{shown}\n{text}");
    }
}

#[test]
fn broken_variants_of_the_listings_give_errors_with_a_place() {
    for name in ["image.pg", "mixed.pg"] {
        let text = std::fs::read_to_string(data("listings").join(name)).unwrap();
        for variant in 0..200 {
            compiles_or_has_diagnostics(&mutate(&text, &mut Dice(variant)));
        }
    }
}

#[test]
fn broken_variants_of_other_programs_give_errors_with_a_place() {
    for entry in std::fs::read_dir(data("ok")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "pg") {
            let text = std::fs::read_to_string(path).unwrap();
            (0..40).for_each(|variant| compiles_or_has_diagnostics(&mutate(&text, &mut Dice(variant))));
        }
    }
}

#[test]
fn deep_and_long_programs_end_in_an_error() {
    let deep =
        |open: &str, close: &str| format!("int x = {}1{};", open.repeat(100_000), close.repeat(100_000));
    compiles_or_has_diagnostics(&deep("(", ")"));
    compiles_or_has_diagnostics(&deep("[", "]"));
    compiles_or_has_diagnostics(&deep("-", ""));
    compiles_or_has_diagnostics(&deep("!", ""));
    compiles_or_has_diagnostics(&deep("f(", ")"));
    compiles_or_has_diagnostics(&"{".repeat(100_000));
    compiles_or_has_diagnostics(&"}".repeat(1000));
    compiles_or_has_diagnostics(&format!("int x = 1{};", "+1".repeat(200_000)));
    compiles_or_has_diagnostics(&format!("{}x = 1;", "a.".repeat(100_000)));
    compiles_or_has_diagnostics(&format!("int[] a; a = [1];{}", "a = [a, a];".repeat(200)));
    compiles_or_has_diagnostics(&format!("int[] a; a = [1];{}", "a = [a];".repeat(10_000)));
    compiles_or_has_diagnostics(&format!("int[] a; a = [1];{}", "a = a ** 1000;".repeat(100)));
    compiles_or_has_diagnostics(&format!("int[] a; a = [];{}", "a = [a, a];".repeat(1000)));
    compiles_or_has_diagnostics(&format!(
        "Content c = {{ size = exp(1KB); }};{}Server s = {{ contents = [c]; addresses = '1.1.1.1:80'; }}; use(s);",
        "c.embedded_obj_cnt = const(1); c.may_contain = [c, c];".repeat(40)
    ));
    compiles_or_has_diagnostics(
        "addr[] a = '10.0-255.0-255.0-255' ** 1000; Robot r = { addresses = a; }; use(r);",
    );
    compiles_or_has_diagnostics("print(select('10.0-255.0-255.0-255:1-60000', 1000));");
}

proptest! {
    #[test]
    fn any_text_compiles_or_has_diagnostics(text in "\\PC*") {
        compiles_or_has_diagnostics(&text);
    }

    #[test]
    fn any_bytes_compile_or_have_diagnostics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        compiles_or_has_diagnostics(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_words_of_the_language_compile_or_have_diagnostics(words in prop::collection::vec(prop::sample::select(WORDS), 0..120)) {
        compiles_or_has_diagnostics(&words.join(" "));
    }

    #[test]
    fn any_mutation_of_a_listing_compiles_or_has_diagnostics(seed in any::<u64>()) {
        let text = std::fs::read_to_string(data("listings").join("mixed.pg")).unwrap();
        compiles_or_has_diagnostics(&mutate(&text, &mut Dice(seed)));
    }
}

const WORDS: &[&str] = &[
    "Robot",
    "Server",
    "Content",
    "Phase",
    "PopModel",
    "Goal",
    "addr[]",
    "int",
    "float",
    "time_distr",
    "string",
    "R",
    "S",
    "C",
    "P",
    "x",
    "=",
    "=",
    "=",
    ";",
    ";",
    ";",
    "{",
    "}",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    ".",
    "..",
    "**",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "&&",
    "!",
    "==",
    "<",
    "1",
    "5",
    "0",
    "7%",
    "2.5",
    "5sec",
    "13KB",
    "400/sec",
    "\"Basic\"",
    "\"u[1-3]\"",
    "'10.0.0.1-3:80'",
    "'a: b'",
    "'2001/01/01'",
    "url =~/x/",
    "now",
    "lmt",
    "if",
    "then",
    "else",
    "every",
    "do",
    "undef()",
    "exp(13KB)",
    "const(5)",
    "zipf(13)",
    "count(x)",
    "select(x, 2)",
    "use(R, S)",
    "schedule(P)",
    "kind",
    "addresses",
    "origins",
    "contents",
    "size",
    "recurrence",
    "pop_model",
    "req_types",
    "goal",
    "duration",
    "load_factor_beg",
    "yes",
    "min",
    "working_set_cap(5)",
    "print(x)",
    "#include \"contents.pg\"\n",
    "script",
    "every g do {",
    "StatSample",
    "s",
    "g",
    "currentSample()",
    "currentPhase()",
    "currentLoadFactor()",
    "changeLoadFactorBy(x)",
    "setSamplingGoalTo(g)",
    "reachedPositiveGoal()",
    "s.rep.rptm.mean",
    "100ms",
    "Goal",
    "SingleRange",
    "ranges",
    "first_byte_pos_absolute",
    "http_headers",
    "'X-A: b': 5%",
    "credentials",
    "credentials(3, \"r\")",
    "session",
    "popTable(\"ages.table\")",
    "document_root",
    "\"words.txt\"",
    "inject_db",
    "encodings",
    "\"gzip\"",
    "AddrMap",
    "names",
    "Map",
    "note_substitutes(x)",
    "interests",
    "\"foreign\"",
    "foreign_trace",
    "error_prob",
    "rptmstat",
];
