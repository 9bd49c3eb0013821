//! What a run must show, on the command line and in the workload: judged, watched, and told by the exit code.

use serde_json::Value;

use crate::support::{Assay, Said};

/// A small workload that requires something.
fn workload(required: &str) -> String {
    format!(
        r#"
Content C = {{ kind = "c"; size = const(1KB); cachable = 100%; }};
Server S = {{ kind = "s"; contents = [C]; direct_access = contents; addresses = ['10.0.0.1:80']; }};
Robot R = {{ kind = "r"; origins = S.addresses; req_rate = 50/sec; recurrence = 50%;
    pop_model = {{ pop_distr = popUnif(); }}; addresses = ['10.0.1.1-4']; }};
Phase P = {{ name = "steady"; goal.duration = 2min; }};
schedule(P);
require({required});
use(S, R);
"#
    )
}

/// How a short run of the workload ends, and its document.
fn run(assay: &Assay, required: &str, more: &[&str]) -> (Said, Value) {
    let name = assay.file("guarded.pg", &workload(required));
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

#[test]
fn a_mistake_in_a_requirement_is_shown_with_its_place_before_anything_starts() {
    let assay = Assay::new();
    let name = assay.file("guarded.pg", &workload(r#""errors == 0", "stedy.p99(hit) < 5ms""#));
    let said = assay.run(&["check", name]).exits(2);
    assert!(
        said.stderr.contains("guarded.pg:8:25") && said.stderr.contains("did you mean `steady`?"),
        "{said:?}"
    );
    assay.run(&["run", "demo", "--require", "p99(hits) < 5ms"]).exits(2).complains("did you mean `hit`?");
    assay.run(&["run", "demo", "--require", "top9.p99 < 5ms"]).exits(2).complains("did you mean `top1`?");
}
