//! What somebody does first: look at the machine, write an experiment and a workload.

use serde_json::Value;

use crate::support::Assay;

fn document(text: &str) -> Value {
    serde_json::from_str(text).expect("one JSON document")
}

#[test]
fn doctor_says_how_things_stand_and_what_would_mend_them() {
    let assay = Assay::new();
    let words = assay.run(&["doctor"]).exits(0).stdout;
    for topic in ["processors", "memory", "disk", "proxies", "links", "calibration"] {
        assert!(words.lines().any(|line| line.contains(topic)), "no {topic} in\n{words}");
    }
    // Nothing was calibrated in this directory.
    assert!(words.contains("→ assay run WORKLOAD --calibrate"), "{words}");
    let findings = document(&assay.run(&["doctor", "--json"]).exits(0).stdout)["findings"].clone();
    for finding in findings.as_array().expect("a list") {
        assert_eq!(finding["standing"] == "good", finding["mend"].is_null(), "{finding}");
    }
    assert_eq!(std::fs::read_dir(assay.directory.path()).expect("a directory").count(), 0, "nothing is left");
}

#[test]
fn init_writes_an_experiment_that_lab_explains() {
    let assay = Assay::new();
    assay.run(&["init", "--proxy", "builtin", "--proxy", "vrnish"]).exits(2).complains("varnish");
    let said = assay.run(&["init", "--proxy", "builtin", "--workload", "demo", "--length", "5s"]).exits(0);
    assert!(said.stdout.contains("assay lab show experiment.toml"), "{}", said.stdout);
    let shown = assay.run(&["lab", "show", "experiment.toml"]).exits(0).stdout;
    assert!(shown.contains("3 cells") && shown.contains("demo: 5s"), "{shown}");
    assay.run(&["init"]).exits(2).complains("experiment.toml exists already");
}

#[test]
fn init_writes_a_workload_that_check_finds_no_mistake_in() {
    let assay = Assay::new();
    assay
        .run(&["init", "mine.pg", "--rate", "20", "--size", "5KB", "--revisits", "50%", "--length", "10s"])
        .exits(0);
    let said = assay.run(&["check", "mine.pg"]).exits(0);
    assert!(!said.stderr.contains("warning") && !said.stderr.contains("error"), "{}", said.stderr);
    for mistaken in
        [&["init", "mine"][..], &["init", "x.pg", "--revisits", "120%"], &["init", "x.pg", "--rate", "0"]]
    {
        assay.run(mistaken).exits(2);
    }
    assert!(!assay.path("x.pg").exists());
}
