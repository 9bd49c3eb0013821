//! Programs as Web Polygraph reads them: each must mean the same here, or be refused.

use assay_workload::script::{Factors, ResponseClass, Sample, ScriptAction, ScriptRun};

use crate::{compile_text, rendered};

/// A workload whose phase has this script.
fn scripted(script: &str) -> String {
    format!(
        "Content C = {{ size = const(1KB); }};
         Server S = {{ contents = [C]; addresses = ['10.0.0.1:80']; }};
         Robot R = {{ addresses = ['10.0.1.1']; origins = S.addresses; }};
         Goal g = {{ duration = 1sec; }};
         float limit = 7%; float half = 50% / 100;
         Phase p = {{ name = \"p\"; goal.duration = 1min; script = {{ {script} }}; }};
         schedule(p); use(S, R);"
    )
}

/// A second with 7 errors in 100 xacts, 30 hits of 40, and response times of 100 and 300 ms.
fn second() -> Sample {
    let mut sample = Sample::default();
    (sample.duration_s, sample.requests, sample.ok, sample.errors) = (1.0, 100, 93, 7);
    (0..30).for_each(|_| sample.class_mut(ResponseClass::RealHit).record(0.1, 1000));
    (0..10).for_each(|_| sample.class_mut(ResponseClass::RealMiss).record(0.1, 1000));
    sample.class_mut(ResponseClass::Rep).record(0.1, 500);
    sample.class_mut(ResponseClass::Rep).record(0.3, 1500);
    sample
}

/// What a script prints that has the sample `s` of that second.
fn printed(statements: &str) -> Vec<String> {
    let text = scripted(&format!("every g do {{ StatSample s = currentSample(); {statements} }}"));
    let result = compile_text(&text, &[]);
    let rendered = rendered(&result);
    let Ok(compiled) = result else { panic!("{statements}: {rendered}") };
    let script = compiled.workload.schedule.phases[0].script.as_ref().expect("a script");
    let factors = Factors { load: 1.0, population: 1.0 };
    let (mut run, _) = ScriptRun::start(script, factors);
    let line = |action| match action {
        ScriptAction::Print(line) => line,
        other => panic!("{other:?}"),
    };
    run.on_interval(&second(), factors).into_iter().map(line).collect()
}

/// Whether a condition on `s` is true.
fn holds(condition: &str) -> bool {
    printed(&format!("if ({condition}) then {{ print(\"yes\"); }} else {{ print(\"no\"); }}")) == ["yes"]
}

#[test]
fn ratios_are_percents_and_a_percent_sign_means_what_it_says() {
    for (condition, expected) in [
        ("s.err_xact.ratio > 5", true),
        ("s.err_xact.ratio > 7.5", false),
        ("s.err_xact.ratio >= 7%", true),
        ("7% <= s.err_xact.ratio", true),
        ("s.err_xact.ratio > 7%", false),
        ("s.err_xact.ratio < 8%", true),
        ("s.err_xact.ratio >= limit", true),
        ("s.err_xact.ratio > limit", false),
        ("s.real.ratio.obj >= 75", true),
        ("s.real.ratio.byte < 76%", true),
        ("s.real.ratio.obj - 70% >= 5%", true),
        ("-s.real.ratio.obj < -74%", true),
        ("s.real.ratio.obj * 2 > 149%", true),
        ("s.real.ratio.obj / 2 < 38%", true),
        ("max(s.err_xact.ratio, 5%) < 8", true),
        ("min(10%, s.err_xact.ratio) < 7.1", true),
        ("int(s.err_xact.ratio) == 7", true),
        ("s.rep.rptm.rel_dev > 49", true),
        ("s.rep.size.rel_dev < 51%", true),
        ("s.real.ratio.obj / s.err_xact.ratio > 10", true),
    ] {
        assert_eq!(holds(condition), expected, "{condition}");
    }
    assert_eq!(printed("print(s.real.ratio.obj);"), ["75"]);
    assert_eq!(
        printed("float r = s.real.ratio.obj; if (r > 74%) then { r = r + 1%; print(r); }"),
        ["76"],
        "a variable that begins with a ratio"
    );
    assert_eq!(
        printed("print(10% * 2, \" \", 2.5%, \" \", int(250%), \" \", [5%] == [0.05]);"),
        ["0.2 0.025 2 yes"]
    );
}

#[test]
fn a_share_that_is_compared_with_percents_is_warned_of() {
    for (condition, expected) in [
        ("s.err_xact.ratio > 0.5", 1),
        ("half < s.err_xact.ratio", 1),
        ("s.err_xact.ratio > 0.5%", 0),
        ("s.err_xact.ratio > limit", 0),
        ("s.err_xact.ratio > 1", 0),
        ("s.err_xact.ratio > 1.5", 0),
        ("s.err_xact.ratio > 0", 0),
        ("s.rep.rptm.std_dev > 0.5", 0),
    ] {
        let script = format!("StatSample s = currentPhase(); if ({condition}) then {{ print(1); }}");
        let result = compile_text(&scripted(&script), &[]);
        assert!(result.is_ok(), "{condition}: {}", rendered(&result));
        assert_eq!(rendered(&result).matches("PGL061").count(), expected, "{condition}");
    }
}

#[test]
fn deviations_and_rates_are_plain_numbers_and_may_be_compared_with_units() {
    for (condition, expected) in [
        ("s.rep.rptm.std_dev > 99", true),
        ("s.rep.rptm.std_dev > 101", false),
        ("s.rep.rptm.std_dev > 99msec", true),
        ("s.rep.rptm.std_dev < 0.2sec", true),
        ("s.rep.rptm.std_dev < s.rep.rptm.mean", true),
        ("s.rep.rptm.std_dev / s.rep.rptm.mean < 0.6", true),
        ("s.rep.rptm.std_dev + 10msec > 109", true),
        ("max(s.rep.rptm.std_dev, 150msec) > 149", true),
        ("s.rep.size.std_dev >= 500", true),
        ("s.rep.size.std_dev < 1KB", true),
        ("s.baseline.req.rate > 99", true),
        ("s.baseline.req.rate > 101/sec", false),
        ("s.baseline.rep.rate < 120/min", false),
        ("s.baseline.rep.rate < 121/min", true),
    ] {
        assert_eq!(holds(condition), expected, "{condition}");
    }
    assert_eq!(printed("float f = s.rep.rptm.std_dev; print(f, \" \", s.baseline.req.rate);"), ["100 100"]);
}

#[test]
fn a_statistic_that_is_not_measured_is_said_to_be_no_number() {
    let script = "StatSample s = currentPhase(); if (s.ssl.conn.started > 5) then { print(1); }";
    let rendered = rendered(&compile_text(&scripted(script), &[]));
    assert!(
        rendered.contains("`ssl.conn.started` is not measured") && rendered.contains("it is no number"),
        "{rendered}"
    );
}

#[test]
fn a_measured_time_may_be_compared_with_a_plain_zero() {
    for (condition, expected) in [
        ("s.rep.rptm.mean > 0", true),
        ("s.rep.rptm.mean == 0", false),
        ("s.rep.size.sum != 0", true),
        ("s.rep.rptm.mean - 0 <= 0", false),
        ("max(s.rep.rptm.min, 0) > 99msec", true),
        ("max(0, s.rep.rptm.min) > 99msec", true),
    ] {
        assert_eq!(holds(condition), expected, "{condition}");
    }
    for condition in ["0 < s.rep.rptm.mean", "s.rep.rptm.mean > 1", "s.rep.rptm.mean > 0.0"] {
        let script = format!("StatSample s = currentPhase(); if ({condition}) then {{ print(1); }}");
        assert!(rendered(&compile_text(&scripted(&script), &[])).contains("PGL031"), "{condition}");
    }
}

/// A workload with these statements before `use`, and the robot's and server's addresses.
fn linked(robot: &str, server: &str, statements: &str) -> String {
    format!(
        "Content C = {{ size = const(1KB); }};
         Server S = {{ contents = [C]; addresses = ['{server}']; }};
         Robot R = {{ addresses = ['{robot}']; origins = S.addresses; }};
         Phase p = {{ name = \"p\"; goal.duration = 1min; }};
         schedule(p); {statements}
         use(S, R);"
    )
}

#[test]
fn what_follows_an_include_on_its_line_is_read_after_the_file() {
    let files = [("one.pg", "int one = 1;\n"), ("items.pg", "1, 2")];
    for (text, result) in [
        ("#include \"one.pg\"; print(one);", Ok("1")),
        ("#include \"one.pg\" print(one); // a comment", Ok("1")),
        ("#include \"one.pg\" /* a\ncomment */ print(one);", Ok("1")),
        ("int[] a = [\n#include \"items.pg\" , 3 ]; print(a);", Ok("[1, 2, 3]")),
        ("#include \"one.pg\" #include \"items.pg\"", Err("`#` means nothing here")),
        ("#include one.pg", Err("this line is not an `#include`")),
        ("#include \"\"", Err("this line is not an `#include`")),
    ] {
        let rendered =
            rendered(&compile_text(&linked("10.0.1.1", "10.0.0.1:80", &format!("\n{text}\n")), &files));
        match result {
            Ok(shown) => assert!(
                rendered.contains(&format!("script output: {shown}\n")) && !rendered.contains("error"),
                "{rendered}"
            ),
            Err(why) => assert!(rendered.contains(why), "{rendered}"),
        }
    }
}

#[test]
fn a_pipe_of_an_address_with_its_port_comes_before_one_of_the_host() {
    let pipes = |first: &str, second: &str| {
        linked(
            "127.0.0.1",
            "127.0.0.1:8080",
            &format!(
                "NetPipe a = {{ bandwidth = 1Mb/sec; addresses = R.addresses; }};
                 NetPipe b = {{ bandwidth = 8Mb/sec; addresses = S.addresses; }};
                 use({first}, {second});"
            ),
        )
    };
    for text in [pipes("a", "b"), pipes("b", "a")] {
        let result = compile_text(&text, &[]);
        assert_eq!(rendered(&result), "");
        let links = result.expect("is a workload").workload.links.expect("has links");
        assert_eq!(links.robots.expect("a link").bits_per_s, Some(1 << 20));
        assert_eq!(links.origins.expect("a link").bits_per_s, Some(8 << 20));
    }
    // A host alone is that of all its ports.
    let alone = linked(
        "10.0.1.1",
        "10.0.0.1:80",
        "NetPipe a = { bandwidth = 1Mb/sec; addresses = ['10.0.0.1']; }; use(a);",
    );
    let links = compile_text(&alone, &[]).expect("is a workload").workload.links.expect("has links");
    assert_eq!((links.robots, links.origins.map(|link| link.bits_per_s)), (None, Some(Some(1 << 20))));
}

#[test]
fn a_field_that_is_gone_is_explained_though_a_name_is_like_it() {
    let text = linked("10.0.1.1", "10.0.0.1:80", "Robot ClientR = R; Proxy P = { client = ClientR; };");
    let rendered = rendered(&compile_text(&text, &[]));
    assert!(rendered.contains("the proxy under test is named on the command line"), "{rendered}");
    assert!(!rendered.contains("did you mean"), "{rendered}");
}

#[test]
fn a_setting_that_means_none_is_not_said_to_have_no_effect() {
    let of_robot =
        |field: &str| linked("10.0.1.1", "10.0.0.1:80", &format!("R.{field}; R.req_rate = 1/sec;"));
    let of_server = |field: &str| linked("10.0.1.1", "10.0.0.1:80", &format!("S.{field};"));
    for text in [
        of_robot("foreign_trace = \"\""),
        of_robot("xact_think = 0"),
        of_robot("req_body_pause_prob = 0%"),
        of_robot("raw_uri_thrower = \"\""),
        of_server("xact_lifetime = const(0sec)"),
        of_server("auth_realm = \"\""),
        of_server("auth_prob = 0"),
        of_server("slow_start = 0"),
    ] {
        assert_eq!(rendered(&compile_text(&text, &[])), "", "{text}");
    }
    for text in [
        of_robot("foreign_trace = \"x\""),
        of_robot("xact_think = const(1sec)"),
        of_server("auth_realm = \"x\""),
        of_server("xact_lifetime = now + const(0sec)"),
    ] {
        assert!(rendered(&compile_text(&text, &[])).contains("PGL069"), "{text}");
    }
}

#[test]
fn a_template_is_refused_once_with_what_to_do() {
    for marked in [
        "rate a = [% rate %]/sec; rate b = [% rate %]/sec;",
        "\n[% FOREACH x IN y %]\nint c = 5;\n[% END %]\n",
        "rate a = @RATE@/sec;",
        "addr a = '[% host %]:80'; addr b = '@HOST@';",
        "string s = \"[% name %]\";",
    ] {
        let rendered = rendered(&compile_text(&linked("10.0.1.1", "10.0.0.1:80", marked), &[]));
        assert_eq!(rendered.matches("error").count(), 1, "{rendered}");
        assert!(rendered.contains("this looks like a template"), "{rendered}");
    }
    for plain in [
        "string s = \"@NAME@\";",
        "string s = \"a[%1-5]\";",
        "int[] a = [7, 1]; print(7 %2);",
        "addr a = 'a@b.c';",
    ] {
        assert!(
            !rendered(&compile_text(&linked("10.0.1.1", "10.0.0.1:80", plain), &[])).contains("template")
        );
    }
}
