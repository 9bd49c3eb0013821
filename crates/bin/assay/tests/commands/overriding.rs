//! Length, rate and number of robots from the command line.

use serde_json::Value;

use crate::support::Assay;

/// The document of `assay check --json`.
fn checked(assay: &Assay, arguments: &[&str]) -> Value {
    let all = [&["check", "--json"], arguments].concat();
    serde_json::from_str(&assay.run(&all).exits(0).stdout).expect("one JSON document")
}

#[test]
fn length_rate_and_robots_are_those_of_the_command_line() {
    let assay = Assay::new();
    let document = checked(&assay, &["image", "--duration", "30s", "--rate", "200/s", "--robots", "50"]);
    assert_eq!((&document["length_s"], &document["robots"]), (&30.0.into(), &50.into()));
    let phases = document["phases"].as_array().expect("phases");
    assert_eq!((phases.len(), &phases[0]["name"]), (1, &"dflt".into()));
    let requests = phases[0]["requests"].as_f64().expect("a number");
    assert!((requests - 6000.0).abs() < 1e-3, "{requests}");
    let explained = document["explained"].to_string();
    assert!(explained.contains("the command line changes the workload"), "{explained}");
}

#[test]
fn another_rate_or_number_of_robots_is_another_stream_and_the_same_ones_are_the_same() {
    let assay = Assay::new();
    let digest = |arguments: &[&str]| {
        let all = [&["demo", "--stream-digest", "20"], arguments].concat();
        checked(&assay, &all)["stream_digest"].clone()
    };
    let all = [
        digest(&[]),
        digest(&["--duration", "20s"]),
        digest(&["--duration", "20s", "--rate", "50"]),
        digest(&["--duration", "20s", "--robots", "50"]),
    ];
    let different: std::collections::BTreeSet<String> = all.iter().map(Value::to_string).collect();
    assert_eq!(different.len(), all.len(), "{all:?}");
    assert_eq!(all[2], digest(&["--duration", "20s", "--rate", "50"]));
}

#[test]
fn a_requirement_about_a_replaced_phase_is_left_out_with_a_note() {
    let assay = Assay::new();
    let text = assay.run(&["workloads", "show", "demo"]).exits(0).stdout;
    let name = assay.file("mine.pg", &(text + "\nrequire(\"top2.errors == 0\", \"errors == 0\");\n"));
    let document = checked(&assay, &[name, "--duration", "5s"]);
    let notes = document["notes"].to_string();
    assert!(notes.contains("`top2.errors == 0`") && notes.contains("not judged"), "{notes}");
    assert_eq!(document["compiled"]["requirements"], serde_json::json!(["errors == 0"]));
}

#[test]
fn lengths_rates_and_robots_that_make_no_sense_are_refused() {
    let assay = Assay::new();
    for (arguments, complaint) in [
        (["--robots", "0"], "one robot at least"),
        (["--robots", "-3"], "whole number of robots"),
        (["--robots", "99999999"], "too many"),
        (["--rate", "0"], "more than 0"),
        (["--rate", "-5"], "more than 0"),
        (["--rate", "1e12"], "too much"),
        (["--duration", "0s"], "no time at all"),
        (["--duration", "30"], "30s for seconds"),
        (["--duration", "400d"], "takes less than"),
    ] {
        for command in ["run", "check"] {
            let all = [&[command, "demo"][..], &arguments].concat();
            assay.run(&all).exits(2).complains(complaint);
        }
    }
    let both = ["run", "demo", "--duration", "5s", "--rehearse", "5s"];
    assay.run(&both).exits(2).complains("--rehearse");
    assay.run(&["run", "demo", "--find-peak", "p99 < 5ms", "--rate", "5"]).exits(2).complains("--rate");
    assert!(!assay.path("runs").exists(), "a run directory was made for nothing");
}

#[test]
fn parts_of_a_run_take_the_same_overrides() {
    let assay = Assay::new();
    let help = assay.run(&["robots", "--help"]).exits(0).stdout;
    for flag in ["--duration", "--rate", "--all-robots"] {
        assert!(help.contains(flag), "{help}");
    }
    let robots = ["robots", "demo", "--start-at", "+60s", "--all-robots", "20", "--robots", "0-20"];
    assay.run(&robots).exits(2).complains("the workload has 20 robots");
}
