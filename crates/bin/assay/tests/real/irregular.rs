//! Runs in which a file is missing or no regular file: every command ends in order, and names it.

use std::path::{Path, PathBuf};

use crate::irregular_file::{KINDS, bounded, ends, without};
use crate::support::Assay;

/// Files that no report needs: they are copies for people, written by the reports themselves, or read by commands that are not run here.
const UNREAD: [&str; 5] = ["roles/", "sources/", "proxy/", "summary.json", "workload.json"];

/// Files that the list of results is made of.
const HEADS: [&str; 2] = ["run.json", "summary.json"];

/// All files below a directory, by their paths in it.
fn files(directory: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(inner) = open.pop() {
        for entry in std::fs::read_dir(inner).expect("a directory").flatten() {
            match entry.path() {
                path if path.is_dir() => open.push(path),
                path => found.push(path.strip_prefix(directory).expect("is below it").to_owned()),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_run_in_which_a_file_is_a_device_or_a_pipe_is_read_without_it_and_the_file_is_named() {
    let assay = Assay::new();
    let run = |directory: &str| {
        let said = assay.run(&["run", "demo", "--rehearse", "1s", "--run-dir", directory, "--no-report"]);
        assert!(said.went_well(), "{said:?}");
    };
    run("kept/one");
    run("other");
    let directory = assay.path("kept/one");
    for file in files(&directory) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_read = !UNREAD.iter().any(|unread| file.to_string_lossy().starts_with(unread));
        for kind in KINDS {
            without(&directory.join(&file), kind, || {
                let case = |command: &str| format!("{command} with {} as a {kind}", file.display());
                let report = bounded(&assay, &["report", "kept/one", "-o", "page.html"]);
                ends(&report, &[0, 1, 2, 96], &case("report"));
                let page = std::fs::read_to_string(assay.path("page.html")).unwrap_or_default();
                let told =
                    report.stderr.contains(&name) || page.contains(&format!("{name} is damaged: it is"));
                assert!(told || !is_read, "{}: {report:?}", case("report"));
                let compared = bounded(&assay, &["compare", "other", "kept/one"]);
                ends(&compared, &[0, 1, 2, 96, 99], &case("compare"));
                assert!(compared.code == Some(0) || !compared.stderr.is_empty() || !is_read, "{compared:?}");
                ends(&bounded(&assay, &["logs", "kept/one"]), &[0, 1, 2], &case("logs"));
                if HEADS.contains(&name.as_str()) {
                    ends(&bounded(&assay, &["runs", "--dir", "kept"]), &[0], &case("runs"));
                }
            });
            let _ = std::fs::remove_file(assay.path("page.html"));
        }
    }
}

#[test]
fn what_a_finished_run_has_lost_is_named_even_if_its_checksums_are_gone_with_it() {
    let assay = Assay::new();
    let said = assay.run(&["run", "demo", "--rehearse", "1s", "--run-dir", "run", "--no-report"]);
    assert!(said.went_well(), "{said:?}");
    let directory = assay.path("run");
    std::fs::remove_file(directory.join("SHA256SUMS")).expect("a run has them");
    let files = files(&directory);
    let lost = |name: &&PathBuf| {
        name.extension().is_some_and(|kind| kind == "parquet") || name.ends_with("examples.json")
    };
    let lost: Vec<&PathBuf> = files.iter().filter(lost).collect();
    assert!(lost.len() > 10, "{files:?}");
    for file in lost {
        let (there, aside) = (directory.join(file), assay.path("aside"));
        std::fs::rename(&there, &aside).expect("is there");
        let said = bounded(&assay, &["report", "run", "--no-report"]);
        let words = format!("{} is missing", file.display());
        assert!(
            said.stdout.contains(&words) && said.stdout.contains("SHA256SUMS is missing"),
            "{words}: {said:?}"
        );
        std::fs::rename(&aside, &there).expect("is there");
    }
}
