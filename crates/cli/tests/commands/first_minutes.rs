//! What somebody does first: look at the machine, write an experiment, open a report, tidy up.

use std::os::unix::fs::PermissionsExt;

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

#[test]
fn runs_are_listed_opened_and_removed() {
    let assay = Assay::new();
    assert!(assay.run(&["runs"]).exits(0).stdout.contains("no runs in runs"));
    assay.run(&["open"]).exits(2).complains("there is no run in runs");
    let run = |dir: &str| {
        let more = ["--duration", "1s", "--rate", "20", "--no-report", "--run-dir"];
        let arguments: Vec<&str> = ["run", "demo"].into_iter().chain(more).chain([dir]).collect();
        // A machine that is busy with other tests may leave the numbers of so short a run unknown.
        let said = assay.run(&arguments);
        assert!(matches!(said.code, Some(0 | 96)), "{said:?}");
        assert!(
            !said.stderr.contains("next:") && !said.stdout.contains("next:"),
            "no hint in a pipe: {said:?}"
        );
    };
    run("runs/one");
    run("runs/two");
    let list = document(&assay.run(&["runs", "--json"]).exits(0).stdout)["runs"].clone();
    assert_eq!((&list[0]["name"], &list[1]["name"]), (&"two".into(), &"one".into()));
    assert_eq!(list[0]["title"], "demo through builtin");
    let words = assay.run(&["runs"]).exits(0).stdout;
    assert!(words.contains("runs/one") && words.contains("2 runs and experiments"), "{words}");

    // The page is made where there is none, and handed to the browser.
    assert_eq!(assay.run(&["open", "one", "--print"]).exits(0).stdout, "runs/one/report.html\n");
    assert!(assay.path("runs/one/report.html").is_file());
    let browser = assay.path("browser");
    std::fs::write(&browser, "#!/bin/sh\nprintf %s \"$1\" > \"$(dirname \"$0\")/shown\"\n")
        .expect("a script");
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).expect("a script");
    let output = assay.command(&["open"]).env("BROWSER", &browser).output().expect("the binary starts");
    assert!(output.status.success());
    let shown = std::fs::read_to_string(assay.path("shown")).expect("the browser was started");
    assert!(shown.starts_with('/') && shown.ends_with("runs/two/report.html"), "{shown}");
    let none = assay
        .command(&["open"])
        .env("BROWSER", "/none")
        .env("PATH", "/none")
        .output()
        .expect("the binary starts");
    assert_eq!(none.status.code(), Some(1));

    assay.run(&["runs", "remove", "two", "calibrations"]).exits(2).complains("calibrations");
    assert!(assay.path("runs/two").exists(), "nothing is removed where one of the names is wrong");
    assay.run(&["runs", "remove"]).exits(2);
    let would = assay.run(&["runs", "remove", "--keep", "1", "--dry-run"]).exits(0).stdout;
    assert!(would.contains("would remove runs/one"), "{would}");
    assay.run(&["runs", "remove", "--keep", "1"]).exits(0);
    assert!(!assay.path("runs/one").exists() && assay.path("runs/two").exists());
    assay.run(&["runs", "remove", "runs/two"]).exits(0);
    assert_eq!(std::fs::read_dir(assay.path("runs")).expect("a directory").count(), 0);
}
