//! What an installation brings beside the program: manual pages, the version for scripts.

use crate::support::Assay;

#[test]
fn a_shell_without_a_script_is_refused_with_those_that_have_one() {
    let said = Assay::new().run(&["completions", "tcsh"]).exits(2);
    said.complains("bash");
}

#[test]
fn every_command_has_a_manual_page() {
    let assay = Assay::new();
    let said = assay.run(&["man", "--dir", "share/man/man1"]).exits(0);
    assert!(said.stdout.contains("manual pages in share/man/man1"), "{}", said.stdout);
    for page in ["assay.1", "assay-run.1", "assay-lab-show.1", "assay-completions.1"] {
        let text = std::fs::read_to_string(assay.path("share/man/man1").join(page)).expect(page);
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
}

#[test]
fn a_manual_page_is_named_as_its_command_is() {
    let assay = Assay::new();
    for named in [&["man", "lab", "show"][..], &["man", "lab-show"], &["man", "assay-lab-show"]] {
        assert!(assay.run(named).exits(0).stdout.contains("assay-lab-show 1"), "{named:?}");
    }
    let top = assay.run(&["man"]).exits(0).stdout;
    assert!(top.contains(".SH \"EXIT CODES\"") && top.contains("assay\\-run(1)"), "{top}");
    assay.run(&["man", "rnu"]).exits(2).complains("did you mean `run`?");
}

#[test]
fn the_version_is_there_for_scripts() {
    let assay = Assay::new();
    let document = |arguments: &[&str]| {
        let said = assay.run(arguments).exits(0);
        serde_json::from_str::<serde_json::Value>(&said.stdout).expect("JSON")
    };
    let one = document(&["version", "--json"]);
    assert_eq!(one, document(&["--version", "--json"]));
    assert_eq!(one["schema"], "assay-version/1");
    let words = assay.run(&["--version"]).exits(0).stdout;
    assert_eq!(words.trim(), format!("assay {}", one["version"].as_str().expect("text")));
}
