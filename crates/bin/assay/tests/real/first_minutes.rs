//! What somebody does with the first runs: list them, open a report, tidy up.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::Assay;

fn document(text: &str) -> Value {
    serde_json::from_str(text).expect("one JSON document")
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
