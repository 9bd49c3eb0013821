//! Somebody who has never seen Assay gets on with the result of a first run, and with one that came to nothing.

use crate::support::{Assay, read};

#[test]
fn a_file_is_written_in_the_form_that_its_name_says_or_not_at_all() {
    let assay = Assay::new();
    let said = assay.run(&["run", "demo", "--duration", "1s", "--run-dir", "r", "-o", "run.html"]);
    assert!(said.went_well(), "{said:?}");
    let text = |name: &str| read(&assay.path(name));
    assert!(
        text("run.html").starts_with("<!DOCTYPE html>") || text("run.html").starts_with("<!doctype html>")
    );
    for name in ["again.html", "again.json", "again.txt", "again"] {
        assay.run(&["report", "r", "-o", name]).exits(0);
    }
    assert_eq!(text("again.html"), text("r/report.html"));
    let document: serde_json::Value = serde_json::from_str(&text("again.json")).expect("JSON");
    assert!(document["phases"].is_array(), "{document:#}");
    assert!(text("again.txt").starts_with("demo ") && text("again") == text("again.txt"));
    for (arguments, complaint) in [
        (&["-o", "x.pdf"][..], ".json, .html, .md (a comparison) or .txt"),
        (&["-o", "x.csv"], "--table NAME"),
        (&["-o", "x.md"], "only comparisons are written as Markdown"),
        (&["--json", "-o", "x.html"], "named as if it were HTML"),
    ] {
        let all = [&["report", "r"][..], arguments].concat();
        assay.run(&all).exits(2).complains(complaint);
    }
}

#[test]
fn a_run_or_a_replay_that_sent_nothing_is_no_success() {
    let assay = Assay::new();
    let said = assay.run(&["run", "demo", "--rehearse", "1ms", "--run-dir", "r"]).exits(1);
    assert!(
        said.stdout.contains("No request came due") && said.stdout.contains("rehearse for longer"),
        "{said:?}"
    );
    assert!(!said.stdout.contains('✓'), "{}", said.stdout);
    assert!(assay.run(&["runs", "--dir", "."]).exits(0).stdout.contains("nothing was measured"));
    let said = assay.run(&["compare", "r", "r"]);
    assert!(said.stdout.contains("Nothing was measured") && !said.stdout.contains('✓'), "{}", said.stdout);
    let said = assay.run(&["conform", "builtin", "--no-cache", "--case", "freshness"]).exits(96);
    assert!(said.stderr.contains("nothing was found out"), "{}", said.stderr);
    let said =
        assay.run(&["spe", "--listen", "127.0.0.1:0", "--proxy", "builtin", "--duration", "100ms"]).exits(1);
    assert!(said.stderr.contains("no client sent a request"), "{}", said.stderr);
}
