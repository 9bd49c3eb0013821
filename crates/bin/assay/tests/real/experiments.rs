//! `assay lab` as people use it: an experiment runs, is interrupted or killed, goes on, and leaves nothing behind.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use assay_record::experiment::{CellInfo, CellState, ExperimentInfo};
use serde_json::Value;

use crate::helpers::{assert_nothing_left, freeze, process_of};
use crate::samples::{EXPERIMENT, TINY, with_experiment};
use crate::support::{Assay, read, send, wait_for};

fn info(dir: &Path) -> ExperimentInfo {
    serde_json::from_str(&read(&dir.join("experiment.json"))).expect("an experiment's head")
}

/// The only directory below `runs`.
fn only_run(assay: &Assay) -> PathBuf {
    let all: Vec<PathBuf> =
        std::fs::read_dir(assay.path("runs")).expect("runs").flatten().map(|entry| entry.path()).collect();
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

/// It ended, and its numbers are known: some only roughly, if this machine was busy, or not at all, if a thread of ours had no processor.
fn has_result(cell: &CellInfo) -> bool {
    let had_no_processor = || cell.why.as_deref().is_some_and(|why| why.contains("had no processor"));
    cell.state == CellState::Done || cell.state == CellState::Invalid && had_no_processor()
}

fn start(assay: &Assay, arguments: &[&str]) -> (Child, impl Iterator<Item = std::io::Result<String>>) {
    let mut child =
        assay.command(arguments).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
    let stderr = child.stderr.take().expect("piped");
    (child, BufReader::new(stderr).lines())
}

#[test]
fn every_subject_gets_the_same_requests_and_the_comparison_is_made() {
    let assay = with_experiment();
    let said = assay.run(&["lab", "which.toml", "--dir", "e", "--no-live"]);
    assert!(said.went_well(), "{said:?}");
    let info = info(&assay.path("e"));
    assert!(info.finished && info.cells.len() == 4 && info.cells.iter().all(has_result), "{info:#?}");
    assert!(info.subjects.iter().all(|subject| !subject.version.is_empty()));
    let run = |cell: &CellInfo| -> Value {
        let dir = assay.path("e").join(cell.run.as_ref().expect("a run directory"));
        serde_json::from_str(&read(&dir.join("run.json"))).expect("run.json")
    };
    for repetition in [1, 2] {
        let cells = info.cells.iter().filter(|cell| cell.repetition == repetition);
        let requested: Vec<_> =
            cells.map(|cell| [run(cell)["stream_digest"].clone(), run(cell)["world"].clone()]).collect();
        assert_eq!(requested[0], requested[1], "subjects of one repetition are asked different things");
    }
    assert_eq!(said.stderr.lines().filter(|line| line.contains(": runs; ")).count(), 4, "{}", said.stderr);
    assert_eq!(read(&assay.path("e/experiment.toml")), EXPERIMENT);
    let again = assay.run(&["lab", "which.toml", "--resume", "e", "--no-live"]);
    assert!(again.went_well() && !again.stderr.contains(": runs; "), "{again:?}");
}

#[test]
fn a_proxy_that_is_killed_fails_its_cell_and_only_that_one_runs_again() {
    let assay = with_experiment();
    let (child, mut lines) =
        start(&assay, &["lab", "which.toml", "--dir", "e", "--no-live", "--rehearse", "4s"]);
    wait_for(&mut lines, "2/4  ");
    let first = info(&assay.path("e")).cells[1].clone();
    let cell = assay.path("e/cells").join(&first.id);
    let proxy = process_of(&cell, "proxy.json");
    // SAFETY: a plain system call; the process is one that our child has started and holds.
    assert_eq!(unsafe { libc::kill(proxy, libc::SIGKILL) }, 0);
    lines.for_each(drop);
    let said = crate::support::Said::from(child.wait_with_output().expect("ends"));
    assert_eq!(said.code, Some(1), "{said:?}");
    let after = info(&assay.path("e"));
    let failed = &after.cells[1];
    assert_eq!(failed.state, CellState::Failed);
    assert!(failed.why.as_deref().unwrap_or_default().contains("SIGKILL"), "{failed:?}");
    assert!(assay.path("e").join(failed.run.as_ref().expect("what it left")).is_dir() && !cell.exists());
    assert!(after.cells.iter().filter(|cell| cell.id != first.id).all(has_result), "{after:#?}");
    assert_nothing_left(&assay.path("e"));

    let again = assay.run(&["lab", "which.toml", "--resume", "e", "--no-live"]);
    assert!(again.went_well(), "{again:?}");
    let tries: Vec<u32> = info(&assay.path("e")).cells.iter().map(|cell| cell.tries).collect();
    assert_eq!(tries, [1, 2, 1, 1]);
    assert!(info(&assay.path("e")).cells.iter().all(has_result));
}

#[test]
fn a_lab_that_is_killed_leaves_no_process_and_goes_on_where_it_was() {
    let assay = with_experiment();
    let (mut child, mut lines) = start(&assay, &["lab", "which.toml", "--no-live"]);
    wait_for(&mut lines, "2/4  ");
    send(&child, libc::SIGKILL);
    child.wait().expect("ends");
    let dir = only_run(&assay);
    assert_nothing_left(&dir);
    assert_eq!(info(&dir).cells[1].state, CellState::Running);

    assay.run(&["lab", "which.toml"]).exits(2).complains("--resume runs/which-");
    assay.file("which.toml", &EXPERIMENT.replace("16MB", "32MB"));
    assay
        .run(&["lab", "which.toml", "--resume"])
        .exits(2)
        .complains("the proxy `builtin, memory 32MB` is new");
    assay.file("which.toml", EXPERIMENT);
    assay.file("tiny.pg", &TINY.replace("1KB", "2KB"));
    assay.run(&["lab", "which.toml", "--resume"]).exits(2).complains("the workload tiny.pg was changed");
    assay.file("tiny.pg", TINY);

    let again = assay.run(&["lab", "which.toml", "--resume", "--no-live"]);
    assert!(again.went_well() && again.stderr.contains("was interrupted"), "{again:?}");
    let after = info(&dir);
    assert!(after.finished && after.cells.iter().all(has_result), "{after:#?}");
    assert_eq!((after.cells[0].tries, after.cells[1].tries), (1, 2));
}

#[test]
fn an_interrupt_ends_the_cell_and_keeps_it_for_later() {
    let assay = with_experiment();
    let (child, mut lines) =
        start(&assay, &["lab", "which.toml", "--dir", "e", "--no-live", "--rehearse", "10m"]);
    wait_for(&mut lines, "1/4  ");
    process_of(&assay.path("e"), "robots.json");
    send(&child, libc::SIGINT);
    lines.for_each(drop);
    let said = crate::support::Said::from(child.wait_with_output().expect("ends"));
    assert_eq!(said.code, Some(105), "{said:?}");
    let info = info(&assay.path("e"));
    assert!(!info.finished && info.cells.iter().all(|cell| cell.state == CellState::Waiting), "{info:#?}");
    assert_nothing_left(&assay.path("e"));
}

#[test]
fn an_experiment_whose_runs_are_all_disturbed_ends_early_and_says_by_what() {
    let assay = with_experiment();
    // Requests to an origin that stands still time out.
    let text = EXPERIMENT.replace("retries = 0", "retries = 1").replace("\"10s\"", "\"1s\"");
    assay.file("which.toml", &text);
    let (child, mut lines) =
        start(&assay, &["lab", "which.toml", "--dir", "e", "--no-live", "--rehearse", "2s"]);
    for cell in [0, 0, 1, 1] {
        wait_for(&mut lines, &format!("{}/4  ", cell + 1));
        let run = assay.path("e/cells").join(&info(&assay.path("e")).cells[cell].id);
        // Once there are robots, origins are ready.
        process_of(&run, "robots.json");
        freeze(process_of(&run, "origins.json"));
        wait_for(&mut lines, "unknown: ");
    }
    let rest: String = lines.map_while(Result::ok).collect::<Vec<_>>().join("\n");
    let said = crate::support::Said::from(child.wait_with_output().expect("ends"));
    assert_eq!(said.code, Some(96), "{rest}");
    for words in [
        "no result: 4 of 4 runs were disturbed, and headline numbers are unknown (",
        "4 × role-failed: read its own words",
        "the remaining cells were not run; go on with: assay lab which.toml --resume ",
        "--redo-invalid",
    ] {
        assert!(rest.contains(words), "{words}: {rest}");
    }
    let after = info(&assay.path("e"));
    let states: Vec<(CellState, u32)> = after.cells.iter().map(|cell| (cell.state, cell.tries)).collect();
    let (bad, open) = ((CellState::Invalid, 2), (CellState::Waiting, 0));
    assert_eq!(states, [bad, bad, open, open]);
    assert!(!after.finished && assay.path("e/failed").read_dir().expect("the first tries").count() == 2);
    assert_nothing_left(&assay.path("e"));
}

#[test]
fn cells_in_which_no_request_came_due_are_no_result() {
    let assay = with_experiment();
    let said = assay.run(&["lab", "which.toml", "--dir", "e", "--no-live", "--rehearse", "1ms"]).exits(96);
    let why = "all numbers, because no request came to its end";
    assert!(said.stderr.contains(why), "{}", said.stderr);
    let after = info(&assay.path("e"));
    assert!(after.cells.iter().all(|cell| cell.state != CellState::Done), "{:?}", after.cells);
    assert_nothing_left(&assay.path("e"));
}

#[test]
fn a_cell_or_a_search_with_wrong_responses_fails_whatever_is_required() {
    let assay = with_experiment();
    // Every object is private, and a field for caches lets them share it all the same.
    let shared = TINY
        .replace("cachable = 100%", "cachable = 0%")
        .replace("direct_access = [ cnt ];", "direct_access = [ cnt ]; http_headers = [ wrong ];");
    let wrong = "MimeHeader wrong = { name = \"CDN-Cache-Control\"; value = \"max-age=1000\"; };";
    assay.file("tiny.pg", &format!("{wrong}{shared}"));
    assay.file(
        "which.toml",
        "workloads = [\"tiny.pg\"]\n[[proxy]]\nname = \"builtin\"\n[[proxy]]\nname = \"direct\"\n",
    );
    let said = assay.run(&["lab", "which.toml", "--dir", "e", "--no-live", "--junit", "e.xml"]).exits(99);
    assert!(said.stderr.contains("tiny.pg-builtin: "), "{}", said.stderr);
    let faults: Vec<Option<bool>> = info(&assay.path("e"))
        .cells
        .iter()
        .map(|cell| cell.fault.as_ref().map(|fault| fault.contains("hit_on_uncachable")))
        .collect();
    let mut faults_of_both = faults.clone();
    faults_of_both.sort();
    assert_eq!(faults_of_both, [None, Some(true)], "{faults:?}");
    assert!(read(&assay.path("e.xml")).contains("failures=\"1\""));
    let search =
        ["run", "tiny.pg", "--no-live", "--no-report", "--find-peak", "errors <= 100%", "--rehearse", "8s"];
    let steps = ["--peak-warm", "2s", "--peak-step", "1s"];
    assay.run(&[&search[..], &steps].concat()).exits(99).complains("hit_on_uncachable");
}
