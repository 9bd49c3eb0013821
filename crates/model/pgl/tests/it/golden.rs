//! Programs and what they give, kept as files: `err/*.pg` and `bad/*.pg` with the messages in `.diag`, `ok/*.pg` with the
//! workload in `.outline` and, where something is said, `.diag`.
//!
//! `UPDATE_GOLDEN=1 cargo test -p assay-pgl` writes the files anew; read the difference before keeping it.

use std::fs;
use std::path::Path;

use assay_testbed::pages::outline;

use crate::{compile_text, data, rendered};

/// Compares a text with a file, or writes it.
fn same(path: &Path, text: &str, differences: &mut Vec<String>) {
    let kept = fs::read_to_string(path).unwrap_or_default();
    if kept == text {
        return;
    }
    if std::env::var_os("UPDATE_GOLDEN").is_none() {
        differences.push(format!("{}\n--- kept\n{kept}\n--- now\n{text}", path.display()));
    } else if text.is_empty() {
        fs::remove_file(path).unwrap();
    } else {
        fs::write(path, text).unwrap();
    }
}

fn programs(directory: &str) -> Vec<std::path::PathBuf> {
    let mut all: Vec<_> = fs::read_dir(data(directory))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "pg"))
        .collect();
    all.sort();
    assert!(!all.is_empty());
    all
}

/// Files that programs of the tests may include.
fn others() -> Vec<(&'static str, &'static str)> {
    vec![
        ("broken.pg", "size s = 5;\n"),
        ("circle-a.pg", "#include \"circle-b.pg\"\n"),
        ("circle-b.pg", "int a = 1;\n#include \"circle-a.pg\"\n"),
        ("pages.cdb", "\0\0\0\u{2}\0\0\0\u{1}some entry"),
        ("words.txt", "one line\nanother line\n"),
        ("ages.table", "float_distr ages = {\n 0:0.1 60\n :1 40\n}\n"),
        ("bench.zone", "$ORIGIN bench.tst.\nw1 IN A 10.0.0.1\nw2 IN A 10.0.0.2\n"),
        ("own.urls", "http://www.a.com/x\nhttp://b.com:8080/\nhttps://www.a.com/\nftp://www.a.com/\n"),
        ("loop.pg", "#include \"loop.pg\"\n"),
        ("sizes.table", "size_distr sizes = {\n 1KB 10\n 2KB:4KB 20\n :8KB */100\n}\n"),
        ("bad.table", "size_distr sizes = {\n 1KB ten\n}\n"),
        ("hosts.urls", "# a trace\nGET http://b.com:8080/x 200\nhttp://a.com/\nhttp://b.com:8080/y\n"),
    ]
}

#[test]
fn wrong_programs_give_the_messages_that_are_kept() {
    let mut differences = Vec::new();
    for path in programs("err").into_iter().chain(programs("bad")) {
        let result = compile_text(&fs::read_to_string(&path).unwrap(), &others());
        assert!(result.is_err(), "{} compiles", path.display());
        same(&path.with_extension("diag"), &rendered(&result), &mut differences);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn right_programs_give_the_workloads_that_are_kept() {
    let mut differences = Vec::new();
    for path in programs("ok") {
        let result = compile_text(&fs::read_to_string(&path).unwrap(), &others());
        let rendered = rendered(&result);
        let compiled = result.unwrap_or_else(|_| panic!("{}\n{rendered}", path.display()));
        let outline = outline(&serde_json::to_value(&compiled.workload).unwrap());
        same(&path.with_extension("outline"), &outline, &mut differences);
        same(&path.with_extension("diag"), &rendered, &mut differences);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn shares_are_warned_of_where_all_that_is_listed_counts() {
    let program = |codings: &str, sharing: &str| {
        format!(
            "Content C = {{ size = exp(13KB); }};\n\
             Server S = {{ contents = [C]; addresses = ['10.0.0.1:80']; }};\n\
             Robot R = {{ addresses = ['10.0.1.1-3']; origins = S.addresses; accept_content_encodings = [{codings}]; \
             req_methods = [{sharing}]; }};\n\
             Phase p = {{ name = \"p\"; goal.duration = 1min; }};\nschedule(p);\nuse(S, R);\n"
        )
    };
    let warned = |text: &str| rendered(&compile_text(text, &[])).matches("warning[PGL069]").count();
    let shared = "\"GET\": 60%, \"HEAD\": 40%";
    assert_eq!(warned(&program("\"gzip\", \"identity\"", shared)), 0);
    assert_eq!(warned(&program("\"gzip\": 25%, \"identity\"", shared)), 1);
    assert_eq!(warned(&program("\"gzip\": 25%, \"identity\": 75%", shared)), 1);
}

#[test]
fn a_host_with_and_without_the_port_of_http_is_one() {
    let text = "Content C = { size = exp(13KB); };\n\
                Server S = { contents = [C]; addresses = ['10.0.0.1:80']; };\n\
                AddrMap M = { names = tracedHosts(\"t.urls\"); addresses = S.addresses; };\n\
                Robot R = { addresses = ['10.0.1.1-3']; origins = S.addresses; interests = [\"foreign\"]; \
                foreign_trace = \"t.urls\"; };\n\
                Phase p = { name = \"p\"; goal.duration = 1min; };\nschedule(p);\nuse(S, M, R);\n";
    let urls = "http://www.a.test/1\nhttp://www.a.test:80/2\nhttp://www.a.test:/1\n";
    let result = compile_text(text, &[("t.urls", urls)]);
    assert_eq!(rendered(&result), "");
    let compiled = result.unwrap_or_else(|_| panic!("it compiles"));
    let paths: Vec<&str> = compiled.workload.foreign.iter().map(|url| url.path.as_str()).collect();
    assert_eq!(paths, ["/1", "/2", "/1"]);
    let urls = "# a trace\nhttp://www.a.test/1\n/2\n\nwww.a.test/3\nhttps://www.a.test/4\n";
    let said = rendered(&compile_text(text, &[("t.urls", urls)]));
    assert!(
        said.contains("3 lines of `t.urls` are not used") && said.contains("line 3 is the first"),
        "{said}"
    );
}

#[test]
fn a_phase_that_sends_nothing_is_remarked_on_unless_it_is_left_out_of_the_results() {
    let said = |load: &str| {
        let text = format!(
            "Content C = {{ size = exp(13KB); }};\n\
             Server S = {{ contents = [C]; addresses = ['10.0.0.1:80']; }};\n\
             Robot R = {{ addresses = ['10.0.1.1-3']; origins = S.addresses; req_rate = 1/sec; }};\n\
             Phase p = {{ name = \"p\"; goal.duration = 1min; {load} }};\nschedule(p);\nuse(S, R);\n"
        );
        rendered(&compile_text(&text, &[]))
    };
    assert!(said("load_factor_beg = 0%;").contains("the phase `p` sends nothing"));
    for load in ["", "load_factor_beg = 0%; load_factor_end = 1;", "load_factor_beg = 0%; log_stats = no;"] {
        assert_eq!(said(load), "", "{load}");
    }
}
