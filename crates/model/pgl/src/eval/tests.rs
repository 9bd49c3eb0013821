//! Tests of the interpreter, by what programs print.

use super::*;
use crate::source::{ResolvedSource, SearchPath};

/// Lines that a program gives: the text of its prints, and the codes of its errors and warnings.
fn output(text: &str) -> Vec<String> {
    let mut sources = vec![Source { name: "t.pg".into(), text: text.into(), included_from: None }];
    let resolver = SearchPath::from_fn(vec![], |_| None);
    let mut diagnostics = Diagnostics::default();
    let tokens = crate::lexer::lex(&mut sources, &resolver, &mut diagnostics);
    let parsed = crate::parser::parse(&tokens, &mut diagnostics);
    run(&parsed.program, &parsed.skipped, &sources, &resolver, &mut diagnostics);
    let line = |d: Diagnostic| match d.message.strip_prefix("script output: ") {
        Some(text) => text.to_owned(),
        None => d.code.to_string(),
    };
    diagnostics.finish().into_iter().map(line).collect()
}

fn value(expression: &str) -> String {
    output(&format!("print({expression});")).join(" ")
}

#[test]
fn arithmetic_keeps_its_units() {
    for (expression, result) in [
        ("2*3^2", "36"),
        ("-7/2", "-3"),
        ("7 % 2", "1"),
        ("2^-1", "0"),
        ("2.0^-1", "0.5"),
        ("100%*(1600/sec)", "1600/sec"),
        ("100MB/(10KB*(10%*(1600/sec)))/5%/80%", "26.666667min"),
        ("5min + 30sec", "5.5min"),
        ("1min/1sec", "60"),
        ("13KB*2", "26KB"),
        ("2*13KB", "26KB"),
        ("1MB/1KB", "1024"),
        ("100/(50/sec)", "2sec"),
        ("(1/sec)/(4/sec)", "0.25"),
        ("0.4/sec*1hour", "1440"),
        ("8Mb/sec*2sec", "2MB"),
        ("10MB/(1MB/sec)", "10sec"),
        ("(1MB/sec) + (1MB/sec)", "2MB/sec"),
        ("3sec < 4sec && 1KB >= 1024Byte", "yes"),
        ("5 == 5 ^^ 5min != 300sec", "yes"),
        ("[1,2] + [3] + 4", "[1, 2, 3, 4]"),
        ("count([1,2] ** 3)", "6"),
        ("count('10.0-255.0-255.0-127')", "8388608"),
        // A plain zero on the right needs no unit.
        ("3sec > 0", "yes"),
        ("5sec + 0", "5sec"),
        ("0KB - 0", "0Byte"),
        ("(1KB - 1KB) == 0", "yes"),
        ("3sec != 0", "yes"),
        ("(1/sec) >= 0", "yes"),
        ("(1KB/sec) <= 0", "no"),
        ("max(5sec, 0)", "5sec"),
        ("max(0, 5sec)", "5sec"),
        ("min(1KB, 0)", "0"),
        // The last qualifier counts.
        ("lmt + (now + norm(2sec, 1sec))", "lmt + norm(2sec, 1sec)"),
        ("now + 0", "now + const(0sec)"),
    ] {
        assert_eq!(value(expression), result, "{expression}");
    }
}

#[test]
fn kinds_that_do_not_go_together_are_refused() {
    for expression in [
        "5sec + 3",
        "5sec * 3sec",
        "0 < 3sec",
        "0 + 3sec",
        "0 == 3sec",
        "3sec > 1",
        "3sec > 0.0",
        "1/sec == 0",
        "5 + 0KB",
        "now + 1",
        "now + exp(3KB)",
        "1.5 == 1.5",
        "\"a\" + \"b\"",
        "exp(3) + 1",
        "5sec ^ 2",
        "1/1KB",
        "2.5 % 2.0",
        "'10.0.0.1' == '10.0.0.1'",
        "1 .. 2.5",
        "5 ** 2.5",
        "now + 5sec",
    ] {
        assert_eq!(value(expression), "PGL031", "{expression}");
    }
}

#[test]
fn overflow_and_division_by_zero_are_errors() {
    for expression in
        ["2147483647 + 1", "2^31", "5/0", "5 % 0", "5sec/0", "1.0/0.0", "0^-1", "1e300*1e300", "5 ** -1"]
    {
        assert_eq!(value(expression), "PGL032", "{expression}");
    }
}

#[test]
fn what_is_made_of_something_broken_is_not_reported_again() {
    assert_eq!(output("int a = nope; int b = a + 1; time c = b; int[] d = [a, b]; use(d);"), ["PGL020"]);
    assert_eq!(output("Nope a; a = 5; a.b = 6; print(a);"), ["PGL021"]);
    assert_eq!(output("Content c = { size = nope; }; print(c.size);"), ["PGL020"]);
}

#[test]
fn assigning_copies() {
    let program = "Content a = { kind = \"one\"; }; Content b = a; a.kind = \"two\"; Content[] c = [a];
        a = { kind = \"three\"; cachable = 80%; }; print(a.kind, b.kind, c);";
    assert_eq!(output(program), ["threeone[{ kind = two; }]"]);
}

#[test]
fn objects_on_the_way_are_made_as_needed() {
    let program = "Phase p; p.goal.duration = 5min; p = { goal.xactions = 3; }; print(p.goal);";
    assert_eq!(output(program), ["{ duration = 5min; xactions = 3; }"]);
}

#[test]
fn fields_come_before_names_from_outside_and_outer_objects_after_inner() {
    let program = "Bench b = { client_side = { max_host_load = 5/sec; };
        server_side = { max_host_load = client_side.max_host_load; max_agent_load = max_host_load; }; };
        print(b.server_side.max_agent_load);";
    assert_eq!(output(program), ["5/sec"]);
    assert_eq!(output("string kind = \"x\"; Robot r = { kind = kind; };"), ["PGL026"]);
}

#[test]
fn names_of_functions_and_variables_do_not_meet() {
    assert_eq!(output("int count = count([1, 2]); print(count, count(3..1));"), ["23"]);
}

#[test]
fn undefining_takes_a_value_away() {
    assert_eq!(
        output("Robot r = { recurrence = 5%; }; r.recurrence = undef(); print(r.recurrence);"),
        ["PGL026"]
    );
}

#[test]
fn selections_repeat_themselves_and_nothing_in_them() {
    let selected = value("select('10.0.0.1-100', 40)");
    assert_eq!(selected, value("select('10.0.0.1-100', 40)"));
    let unique = "[a] = [select(1..50, 50)]; print(count(a)); print(max(1, 2), min(3sec, 2sec));";
    assert_eq!(output(&format!("int[] a; {unique}")), ["50", "22sec"]);
    assert_eq!(value("count(select([1, 2], 5))"), "5 PGL033");
}

#[test]
fn both_branches_are_read_and_one_is_run() {
    assert_eq!(output("if 1 < 2 then { print(\"a\"); } else { print(\"b\"); }"), ["a"]);
    assert_eq!(output("if (off) then { print(nope); } else { { int x = 5; } print(x); }"), ["5"]);
    assert_eq!(output("if 5sec then { print(1); }"), ["PGL030"]);
}

#[test]
fn bench_addresses_are_dealt_by_subnet() {
    let bench = "Bench b = { peak_req_rate = 10/sec; client_side = { max_host_load = 5/sec; max_agent_load = 2/sec;
        addr_space = ['lo0::10.1.0-7.1-250/22']; }; server_side = { addr_space = ['lo0::10.1.128-251.1-250:80/22'];
        addr_mask = '10.2.0.0:80'; }; };";
    let robots = "PolyMix4As s = { agents_per_addr = 2; }; print(robotAddrs(s, b));";
    let dealt = "['lo0::10.1.0.1/22' ** 2, 'lo0::10.1.0.2/22' ** 2, 'lo0::10.1.4.1/22' ** 2, 'lo0::10.1.4.2/22' ** 2]";
    assert_eq!(output(&format!("{bench}{robots}")), [dealt]);
    let servers = "PolyMix4As s; print(count(serverAddrs(s, b)), \" \", clientHostCount(b));";
    assert_eq!(output(&format!("{bench}{servers}")), ["502 2"]);
    let third = "PolyMix3As s; print(select(serverAddrs(s, b), 1));";
    assert!(output(&format!("{bench}{third}"))[0].starts_with("['10.2.1"));
    let small = "PolyMix4As s; b.client_side.addr_space = ['10.1.0.1-2/22']; print(robotAddrs(s, b));";
    assert_eq!(output(&format!("{bench}{small}")), ["PGL035"]);
    assert_eq!(output("Bench b; print(clientHostCount(b));"), ["PGL026"]);
}

#[test]
fn a_resolver_reads_tables_only_when_they_are_needed() {
    struct Never;
    impl Resolver for Never {
        fn read(&self, name: &str, _: Option<&str>) -> Result<ResolvedSource, crate::ResolveError> {
            panic!("requested {name}")
        }
    }
    let mut sources = vec![Source {
        name: "t.pg".into(),
        text: "if no then { size_distr s = table(\"x\"); }".into(),
        included_from: None,
    }];
    let mut diagnostics = Diagnostics::default();
    let tokens = crate::lexer::lex(&mut sources, &Never, &mut diagnostics);
    let parsed = crate::parser::parse(&tokens, &mut diagnostics);
    run(&parsed.program, &parsed.skipped, &sources, &Never, &mut diagnostics);
    assert!(!diagnostics.has_errors());
}

#[test]
fn what_is_put_behind_a_list_is_behind_it() {
    let lines = output(
        "int[] a = [1]; a = a + 2; a = a + [3, 4] + 5; a = a + a; print(a);\n\
         int[] b = a; b = b + 6; print(count(a), \" \", count(b));\n\
         addr[] none; none = none + '10.0.0.1'; a = a + \"x\"; print(count(a));\n\
         Robot R = { addresses = ['10.0.0.1']; }; Robot Q = R; R.addresses = R.addresses + '10.0.0.2-3';\n\
         print(count(R.addresses), \" \", count(Q.addresses)); Robot[] all = []; all = all + R; print(count(all));",
    );
    assert_eq!(lines, ["[1, 2, 3, 4, 5, 1, 2, 3, 4, 5]", "10 11", "PGL026", "PGL030", "3 1", "1"]);
}

#[test]
fn scripts_are_compiled_where_they_are_scheduled_and_only_there() {
    let script =
        |body: &str| format!("Phase p = {{ goal.duration = 1min; script = {{ {body} }}; }}; schedule(p);");
    assert_eq!(output(&script("print(1);")), Vec::<String>::new());
    assert_eq!(output(&script("float f = currentLoadFactor(); int i = f;")), ["PGL030"]);
    assert_eq!(output(&script("StatSample s = currentSample();")), ["PGL034"]);
    assert_eq!(output("Phase p = { script = { nonsense(); }; };"), Vec::<String>::new());
}
