//! Tests of the analysis for editors. `|` in a text is the cursor.

use super::*;
use crate::{SearchPath, compile};

const INCLUDED: &str = "// A thing.\nContent cntThing = { kind = \"thing\"; size = exp(13KB); };\n";

fn analysed(text: &str) -> Analysis {
    let text = text.to_owned();
    let resolver = SearchPath::from_fn(vec![], move |name| match name {
        "main.pg" => Some(text.clone()),
        "inc.pg" => Some(INCLUDED.to_owned()),
        _ => None,
    });
    analyse("main.pg", &resolver)
}

/// The analysis of a text without its cursor, and where that was.
#[track_caller]
fn at_cursor(text: &str) -> (Analysis, usize) {
    let offset = text.find('|').expect("a cursor");
    (analysed(&text.replacen('|', "", 1)), offset)
}

#[track_caller]
fn offered(text: &str) -> Vec<String> {
    let (analysis, offset) = at_cursor(text);
    let mut all = analysis.completions(offset);
    all.sort_by(|a, b| (a.rank, &a.label).cmp(&(b.rank, &b.label)));
    all.into_iter().map(|completion| completion.label).collect()
}

#[track_caller]
fn hovered(text: &str) -> String {
    let (analysis, offset) = at_cursor(text);
    analysis.hover(offset).map_or_else(String::new, |hover| hover.text)
}

#[test]
fn in_the_block_of_an_object_its_fields_come_first() {
    let all = offered("Robot R = { req|\n};");
    assert_eq!(all[0], "abort_prob");
    assert!(all.contains(&"req_rate".to_owned()) && all.contains(&"PopModel".to_owned()));
    let all = offered("Robot R = { pop_model = { |");
    assert_eq!(all[..4], ["bhr_discrimination", "hot_set_frac", "hot_set_prob", "pop_distr"]);
    let all = offered("Phase p = { script = { every g do { |");
    assert!(!all.contains(&"load_factor_beg".to_owned()) && all.contains(&"setLoadFactorTo".to_owned()));
}

#[test]
fn after_a_point_stand_the_fields_of_what_is_before_it() {
    let goal = ["duration", "errors", "fill_size", "xactions"];
    assert_eq!(offered("Phase p; p.goal.|"), goal);
    assert_eq!(offered("Phase p = { goal.du|ration = 1min; };"), goal);
    assert_eq!(offered("Goal g; Phase p = { x = g.|\n name = \"n\"; };"), goal);
    assert_eq!(offered("addr a = 'h:1'; int p = a.|"), ["host", "if_name", "port", "subnet"]);
    assert_eq!(offered("x.y.|"), [""; 0]);
}

#[test]
fn strings_are_offered_that_their_field_knows() {
    let types = ["Basic", "Ims200", "Ims304", "Range", "Reload", "Upload"];
    assert_eq!(offered("Robot R = { req_types = [ \"Basic\": 5%, \"I|\" ]; };"), types);
    assert_eq!(offered("Robot R = { req_types = [ \"I|\n };"), types);
    assert_eq!(offered("Robot R = { kind = \"I|\"; };"), [""; 0]);
    assert_eq!(offered("Robot R = { req_types = [ | ]; };")[0], "\"Basic\"");
    let (analysis, offset) = at_cursor("Robot R = { req_types = [ \"Ims|3\" ]; };");
    let replaced = analysis.completions(offset)[0].replaces;
    assert_eq!((replaced.start, replaced.end), (27, 31));
}

#[test]
fn values_that_fit_come_before_those_that_do_not() {
    let text = "size a = 1KB; time b = 1sec; Goal g = { duration = |; };";
    let all = offered(text);
    let place = |name: &str| all.iter().position(|other| other == name).expect("is offered");
    assert!(place("b") < place("a") && place("b") < place("count"));
    let all = offered("Content C = { size = | };");
    assert!(all[..8].contains(&"exp".to_owned()) && all.contains(&"min".to_owned()));
    assert_eq!(offered("Phase p = { log_stats = |; };")[..2], ["no", "yes"]);
    assert!(offered("x = 5m|").contains(&"msec".to_owned()));
    assert_eq!(offered("x = 5|"), [""; 0]);
}

#[test]
fn nothing_is_offered_in_comments_and_files_are_after_include() {
    assert_eq!(offered("// Robot |"), [""; 0]);
    assert_eq!(offered("/* Robot | */"), [""; 0]);
    assert!(!offered("/* c */ |").is_empty());
    assert!(offered("#include \"con|").contains(&"contents.pg".to_owned()));
}

#[test]
fn a_field_is_shown_with_its_type_unit_and_meaning() {
    let rate = hovered("Robot R = { req_r|ate = 0.4/sec; };");
    assert!(rate.contains("Robot.req_rate: rate") && rate.contains("Mean rate"), "{rate}");
    assert!(rate.contains("`0.4/sec`"), "{rate}");
    assert!(hovered("Phase p; p.goal.fill|_size = 1GB;").contains("Goal.fill_size: size"));
    let types = hovered("Robot R = { req_type|s = [ \"Basic\" ]; };");
    assert!(types.contains("`\"Ims304\"`"), "{types}");
    assert!(hovered("Cont|ent C;").contains("A content type"));
    assert!(hovered("use|(R);").contains("part of the workload"));
    assert!(hovered("size s = 13K|B;").contains("13312 bytes"));
    assert!(hovered("addr[] a = '10.0.0-1.1-250|:80';").contains("500 addresses"));
    assert!(hovered("Robot R = { xact_li|fetime = const(1sec); }; // x").contains("Robot.xact_lifetime"));
    assert_eq!(hovered("// Rob|ot"), "");
}

#[test]
fn a_name_is_shown_with_its_type_and_its_comment() {
    let text = "// How often.\n// Really.\nrate Peak = 5/sec; // a guess\nRobot R = { req_rate = Pe|ak; };";
    let shown = hovered(text);
    assert!(shown.contains("rate Peak") && shown.contains("How often. Really. a guess"), "{shown}");
    let shown = hovered("#include \"inc.pg\"\nServer S = { contents = [ cntTh|ing ]; };");
    assert!(shown.contains("Content cntThing") && shown.contains("A thing.") && shown.contains("`inc.pg`"));
}

#[test]
fn names_lead_to_their_declaration_across_includes() {
    let (analysis, offset) = at_cursor("#include \"inc.pg\"\nServer S = { contents = [ cntTh|ing ]; };");
    let span = analysis.definition(offset).expect("a place");
    assert_eq!((span.source, &INCLUDED[span.start as usize..span.end as usize]), (1, "cntThing"));
    assert_eq!(analysis.references(offset).len(), 2);
    let (analysis, offset) = at_cursor("#inc|lude \"inc.pg\"\n");
    assert_eq!(analysis.definition(offset).map(|span| (span.source, span.start)), Some((1, 0)));
    // A script knows what is declared after it.
    let text = "Phase p = { script = { every sam|ple do { } }; };\nGoal sample;";
    let (analysis, offset) = at_cursor(text);
    assert_eq!(
        analysis.definition(offset).map(|span| span.start as usize),
        text.find("sample;").map(|at| at - 1)
    );
    // In the block of a robot, `origins` is its field.
    let (analysis, offset) = at_cursor("addr[] origins; Robot R = { origins = orig|ins; };");
    assert_eq!(analysis.definition(offset), None);
}

#[test]
fn the_outline_has_declarations_with_those_inside_them() {
    let text = "rate r = 1/sec;\nPhase p = {\n    script = { int n = 1; };\n};\nRobot[] all;";
    let symbols = analysed(text).symbols();
    let names: Vec<_> = symbols.iter().map(|s| (s.name.as_str(), s.ty.as_str(), s.kind)).collect();
    let expected = [
        ("r", "rate", SymbolKind::Number),
        ("p", "Phase", SymbolKind::Object),
        ("all", "Robot[]", SymbolKind::List),
    ];
    assert_eq!(names, expected);
    let full_span = symbols[1].full_span;
    assert!(text[full_span.start as usize..full_span.end as usize].starts_with("Phase p = {"));
    assert!(text[full_span.start as usize..full_span.end as usize].ends_with("};"));
    assert_eq!(symbols[1].children[0].name, "n");
}

#[test]
fn diagnostics_are_the_compilers_own() {
    for text in [
        "Robot R = { req_rat = 0.4/sec; };\nuse(R);",
        "Server S = { contents = [C]; };\nuse(S)",
        "#include \"inc.pg\"\nsize s = 5; use(cntThing);",
    ] {
        let owned = text.to_owned();
        let resolver = SearchPath::from_fn(vec![], move |name| match name {
            "main.pg" => Some(owned.clone()),
            "inc.pg" => Some(INCLUDED.to_owned()),
            _ => None,
        });
        let failure = compile("main.pg", &resolver).expect_err("is wrong");
        assert_eq!(analysed(text).diagnostics, failure.diagnostics);
    }
    // A file that others include is not held to be a workload.
    assert_eq!(analysed(INCLUDED).diagnostics, []);
}

#[test]
fn corrections_are_what_the_compiler_would_write() {
    let corrected = |text: &str| {
        let analysis = analysed(text);
        let first = analysis.diagnostics.iter().find(|d| d.replacement.is_some());
        let first = first.unwrap_or_else(|| panic!("no correction of {text}: {:?}", analysis.diagnostics));
        let (span, by) = (first.span.expect("a place"), first.replacement.as_ref().expect("a text"));
        format!("{}{by}{}", &text[..span.start as usize], &text[span.end as usize..])
    };
    for (wrong, right) in [
        ("Robot R = { recurence = 5%; };", "Robot R = { recurrence = 5%; };"),
        ("Robott R;", "Robot R;"),
        ("float_distr x = unfi(1, 2);", "float_distr x = unif(1, 2);"),
        ("schedul();", "schedule();"),
        ("rate peak = 1/sec; rate x = peek;", "rate peak = 1/sec; rate x = peak;"),
        ("float x = .5;", "float x = 0.5;"),
        ("time t = 5mins;", "time t = 5min;"),
        ("int a = 1\nint b = 2;", "int a = 1;\nint b = 2;"),
        ("string s = 'a text';", "string s = \"a text\";"),
        ("string s = \u{201c}text\u{201d};", "string s = \"text\";"),
    ] {
        assert_eq!(corrected(wrong), right);
    }
    let text = "Content C = { size = const(1KB); }; Server S = { contents = [C]; addresses = ['10.0.0.1:80']; };\n\
                Robot R = { origins = S.addresses; addresses = ['10.0.0.2']; req_types = [ \"Basik\" ]; };\nuse(S, R);";
    assert!(corrected(text).contains("[ \"Basic\" ]"));
}

#[test]
fn anything_can_be_asked_at_any_place() {
    let text = "#include \"inc.pg\"\nRobot R = { req_types = [ \"Basic\": 5% ]; goal.x = é; }; // c\nuse(R, cntThing";
    let analysis = analysed(text);
    for offset in 0..text.len() + 3 {
        analysis.hover(offset);
        analysis.definition(offset);
        analysis.references(offset);
        analysis.completions(offset);
    }
}
