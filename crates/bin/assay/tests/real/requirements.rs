//! What a run must show, on the command line and in the workload: judged, watched, and told by the exit code.

use serde_json::Value;

use crate::samples::requiring;
use crate::support::{Assay, Said};

/// How a short run of the workload ends, and its document.
fn run(assay: &Assay, required: &str, more: &[&str]) -> (Said, Value) {
    let name = assay.file("guarded.pg", &requiring(required));
    let mut arguments = vec!["run", name, "--run-dir", "r", "--json", "--no-report"];
    arguments.extend(more);
    let said = assay.run(&arguments);
    let document = serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    (said, document)
}

#[test]
fn requirements_of_workload_and_command_line_are_judged_and_one_that_fails_is_exit_code_99() {
    let assay = Assay::new();
    let more = ["--rehearse", "3s", "--require", "steady.dhr > 99%", "--require", "unsent < 50%"];
    let (said, document) = run(&assay, r#""errors == 0", "mean(hit) < 1min""#, &more);
    // What failed is said first, whatever else could not be decided on a busy machine.
    assert_eq!(said.code, Some(99), "{said:?}");
    let judged = document["requirements"].as_array().expect("requirements");
    let of =
        |text: &str| judged.iter().find(|one| one["text"] == text).unwrap_or_else(|| panic!("no {text}"));
    assert_eq!(judged.len(), 4, "{judged:#?}");
    assert_eq!(of("errors == 0")["held"], true);
    assert_eq!(of("steady.dhr > 99%")["held"], false);
    assert_eq!(of("steady.dhr > 99%")["phases"][0], "steady");
    let words = assay.run(&["report", "r", "--no-report"]).exits(0).stdout;
    assert!(words.contains("✗ steady.dhr > 99%") && words.contains("✓ errors == 0"), "{words}");
    let kept = std::fs::read_to_string(assay.path("r/workload.json")).expect("a workload");
    assert!(kept.contains("mean(hit) < 1min"), "the workload does not keep what it requires");
}

#[test]
fn a_requirement_that_has_failed_for_good_ends_the_run_when_that_is_wanted() {
    let assay = Assay::new();
    let (said, document) = run(&assay, r#""requests < 100""#, &["--stop-on-failure"]);
    assert_eq!(said.code, Some(99), "{said:?}");
    assert_eq!(document["partial"], true, "two minutes went by");
    assert_eq!(document["requirements"][0]["held"], false);
    said.complains("stopped: a requirement failed: requests < 100");
}
