//! Tests of the layout, rule by rule.

use proptest::prelude::*;

use super::format;

/// Lays out a text, and checks that its layout is its own.
#[track_caller]
fn laid_out(text: &str) -> String {
    let once = format("w.pg", text).unwrap_or_else(|failure| panic!("{failure}\n{text}"));
    let twice = format("w.pg", &once).unwrap_or_else(|failure| panic!("{failure}\n{once}"));
    assert_eq!(once, twice, "not idempotent");
    once
}

#[test]
fn a_statement_has_a_line_and_a_block_indents_by_four() {
    let text = "Robot R={kind=\"r\";\nreq_rate=0.4 / sec;pop_model.hot_set_prob=10%;}; use( R );";
    let expected = "Robot R = {\n    kind = \"r\";\n    req_rate = 0.4/sec;\n    pop_model.hot_set_prob = 10%;\n};\nuse(R);\n";
    assert_eq!(laid_out(text), expected);
}

#[test]
fn a_block_on_one_line_stays_there_if_it_fits() {
    assert_eq!(
        laid_out("Goal g={duration=5sec;xactions=3};"),
        "Goal g = { duration = 5sec; xactions = 3 };\n"
    );
    assert_eq!(laid_out("Goal g = {};Goal h = { };"), "Goal g = {};\nGoal h = {};\n");
    let long = format!("Goal g = {{ duration = 5sec; xactions = 1{}; }};", " + 1".repeat(30));
    let expected =
        format!("Goal g = {{\n    duration = 5sec;\n    xactions = 1{};\n}};\n", " + 1".repeat(30));
    assert_eq!(laid_out(&long), expected);
    // One column more than fits.
    let fits = format!("string s = {{ a = \"{}\"; }};", "x".repeat(97));
    assert_eq!(laid_out(&fits).lines().count(), 1, "{}", fits.len());
    let wide = format!("string s = {{ a = \"{}\"; }};", "x".repeat(98));
    assert_eq!(laid_out(&wide).lines().count(), 3, "{}", wide.len());
}

#[test]
fn operators_have_blanks_and_signs_and_units_have_none() {
    assert_eq!(laid_out("int a=1+2*-3-(-4)  ;"), "int a = 1 + 2 * -3 - (-4);\n");
    assert_eq!(laid_out("bool b=!yes&&!( a==b );"), "bool b = !yes && !(a == b);\n");
    assert_eq!(laid_out("int r = 7 %2;"), "int r = 7 % 2;\n");
    assert_eq!(laid_out("rate r=5 /sec+2/ min (a,b);"), "rate r = 5/sec + 2 / min(a, b);\n");
    assert_eq!(laid_out("int[] i=1..5;int[] j=[x**3];"), "int[] i = 1 .. 5;\nint[] j = [ x ** 3 ];\n");
    assert_eq!(laid_out("re a=url =~/x y/i&&url==@b@;"), "re a = url =~/x y/i && url ==@b@;\n");
    assert_eq!(laid_out("addr [] [] a=[[],[ 'h' ]];"), "addr[][] a = [ [], [ 'h' ] ];\n");
    assert_eq!(laid_out("[ a:30% ,b ]=x ;"), "[ a: 30%, b ] = x;\n");
    assert_eq!(laid_out("S . contents=[ C :80%,D ];"), "S.contents = [ C: 80%, D ];\n");
}

#[test]
fn conditions_and_scripts_are_blocks() {
    let text = "if(a<b)then{print(1);}\nelse{print(2);}";
    assert_eq!(laid_out(text), "if (a < b) then { print(1); } else { print(2); }\n");
    let text = "script={every g do{\nStatSample s=currentSample();}};";
    let expected = "script = {\n    every g do {\n        StatSample s = currentSample();\n    }\n};\n";
    assert_eq!(laid_out(text), expected);
}

#[test]
fn comments_stay_where_they_belong() {
    let text = "// about a\n\n\n\nint a = 1;   // one\nint  bcd=2;// two\n{   // of the block\n  /* before */ int c = 3; /* after */\n  // last\n}\n";
    let expected = "// about a\n\nint a = 1;   // one\nint bcd = 2; // two\n{ // of the block\n    /* before */ int c = 3; /* after */\n    // last\n}\n";
    assert_eq!(laid_out(text), expected);
    let text = "int[] a = [ // why\n1, // one\n  2 /* two */ ,\n\n3 ];";
    let expected = "int[] a = [ // why\n    1, // one\n    2 /* two */,\n\n    3 ];\n";
    assert_eq!(laid_out(text), expected);
    let text = "{\n  /* a box\n   * of lines  \n\n   */\n  int a = 1;\n}";
    let expected = "{\n    /* a box\n     * of lines\n\n     */\n    int a = 1;\n}\n";
    assert_eq!(laid_out(text), expected);
    assert_eq!(laid_out("int a = // one\n1 // two\n;"), "int a = // one\n    1 // two\n    ;\n");
}

#[test]
fn lines_of_lists_and_expressions_are_the_authors() {
    let text =
        "S.contents = [\n A: 10%,\n  B\n ];\nuse(\nA, B\n);\nint a = 1\n + 2;\nint b =\n3;\nint\nc\n=4\n;";
    let expected = "S.contents = [\n    A: 10%,\n    B\n];\nuse(\n    A, B\n);\nint a = 1\n    + 2;\nint b =\n    3;\nint c = 4;\n";
    assert_eq!(laid_out(text), expected);
    assert_eq!(laid_out("f([\n1,\n2\n]);"), "f([\n    1,\n    2\n]);\n");
}

#[test]
fn includes_stay_on_lines_of_their_own() {
    let text = "  #include \"a.pg\"  \nint[] a = [\n#include \"items.pg\"\n];";
    assert_eq!(laid_out(text), "#include \"a.pg\"\nint[] a = [\n    #include \"items.pg\"\n];\n");
    let text = "#include \"a.pg\" ; // c\n#include \"b.pg\" int x=1;";
    assert_eq!(laid_out(text), "#include \"a.pg\"; // c\n#include \"b.pg\"\nint x = 1;\n");
}

#[test]
fn line_ends_of_another_system_stay() {
    assert_eq!(
        laid_out("int a=1; // x\r\n\r\n/* b\r\n c */\r\n"),
        "int a = 1; // x\r\n\r\n/* b\r\n c */\r\n"
    );
}

#[test]
fn empty_lines_stay_single_and_none_stand_at_the_ends_of_blocks() {
    assert_eq!(laid_out("\n\n{\n\nint a;\n\n\nint b;\n\n}\n\n\n"), "{\n    int a;\n\n    int b;\n}\n");
    assert_eq!(laid_out(" \n "), "");
}

#[test]
fn a_text_with_mistakes_is_refused_with_their_places() {
    for (text, message) in [
        ("int a = ;", "unexpected `;`"),
        ("int a = @;", "`@` means nothing here"),
        ("/* a", "this comment has no end"),
        ("Robot R = { ", "this block has no end"),
    ] {
        let failure = format("w.pg", text).unwrap_err();
        let first = &failure.diagnostics[0];
        assert_eq!((first.message.as_str(), first.location(&failure.sources).is_empty()), (message, false));
    }
}

proptest! {
    #[test]
    fn any_text_that_parses_keeps_its_tokens_and_is_laid_out_once(
        parts in prop::collection::vec(prop::sample::select(vec![
            "int ", "a", "b", " = ", "1", "2.", "5sec", "7%", " + ", "-", "*", "/", "..", "**", "(", ")", "[", "]", "{", "}", "; ", ";\n",
            ",", ".", ":", "'h:80'", "\"s\"", "// c\n", "/* d */", "/* e\n  f */", "\n", "\n\n", "#include \"x\"\n", "if ", "then ", "else ",
            "every ", "do ", "sec", "!", "==", "\t", "\r\n", "Robot r = {", "};", "int a = 1;", "use(", ");", "a = [", "];",
        ]), 0..40),
    ) {
        let text: String = parts.concat();
        // Mistakes in the syntax are most of what comes; that is what it is refused for, and for nothing else.
        match format("w.pg", &text) {
            Ok(once) => prop_assert_eq!(format("w.pg", &once).unwrap(), once),
            Err(failure) => prop_assert!(failure.diagnostics.iter().any(|d| d.span.is_some()), "{}", failure),
        }
    }

    #[test]
    fn statements_with_comments_anywhere_keep_them(
        parts in prop::collection::vec((
            prop::sample::select(vec!["Robot r = {", "};", "int a = 1 + -2;", "use(a, [b, c: 5%]);", "if (a) then { b = 1; } else { c(); }", "{", "}", "a.b = { c = 1; };"]),
            prop::sample::select(vec!["", " ", "\n", "\n\n\n", " // x\n", "/* y */", "\n/* z\n   w */\n", "\n#include \"i\"\n"]),
        ), 0..20),
    ) {
        let text: String = parts.iter().map(|(statement, between)| format!("{statement}{between}")).collect();
        if let Ok(once) = format("w.pg", &text) {
            let letters = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(letters(&once), letters(&text));
            prop_assert_eq!(format("w.pg", &once).unwrap(), once);
        }
    }
}
