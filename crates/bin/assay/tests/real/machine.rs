//! What Assay uses of its machine, and what it finds out of it: processors are kept, calibrations found again.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use assay_measurement::health::Calibration;
use assay_record::run::RunInfo;

use crate::helpers::assert_nothing_left;
use crate::samples::small;
use crate::support::{Assay, Said, processors, send, wait_for};

fn info(assay: &Assay, run_dir: &str) -> RunInfo {
    let text = std::fs::read_to_string(assay.path(run_dir).join("run.json")).expect("a run directory");
    serde_json::from_str(&text).expect("run.json")
}

#[test]
fn processors_that_are_named_are_used_and_kept_in_the_record() {
    let assay = Assay::new();
    let name = assay.file("small.pg", &small("10/sec"));
    let cpus = processors();
    let (first, last) = (&cpus[0], &cpus[cpus.len() - 1]);
    let flags = ["--robot-cpus", last, "--origin-cpus", first, "--spin", "20us", "--no-report"];
    let said = assay.run(&[&["run", name, "--direct", "--run-dir", "r"], flags.as_slice()].concat());
    assert!(said.went_well(), "{said:?}");
    let info = info(&assay, "r");
    let placed = |role: &str| {
        let of_role = info.placement.iter().find(|placed| placed.role == role).expect("placed");
        of_role.cpus.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!((placed("robots"), placed("origins")), (vec![last.clone()], vec![first.clone()]));
}

#[test]
fn a_calibration_is_kept_and_later_runs_find_it() {
    let assay = Assay::new();
    let name = assay.file("small.pg", &small("50/sec"));
    let flags = ["run", name, "--calibrate", "--rehearse", "15s", "--json"];
    let said = assay.run(&flags);
    assert!(said.stderr.contains("x the peak): "), "no steps: {}", said.stderr);
    if said.code == Some(96) {
        // A machine that is busy with other tests carries nothing without a doubt, and then nothing is kept.
        assert!(!assay.path("runs/calibrations").exists());
        return;
    }
    let said = said.exits(0);
    let found: Calibration = serde_json::from_str(&said.stdout).expect("one JSON document");
    assert_eq!(found.schema, Calibration::SCHEMA);
    assert!(found.requests_per_s > 0.0 && !found.limit.is_empty() && !found.steps.is_empty(), "{found:#?}");
    let path = assay.path("runs/calibrations").join(format!("{}.json", found.key));
    let kept: Calibration = serde_json::from_slice(&std::fs::read(&path).expect("kept")).expect("whole");
    assert_eq!(kept, found);
    let files = std::fs::read_dir(assay.path("runs")).expect("a directory").count();
    assert_eq!(files, 1, "a step left its run directory");

    // Where it says that there is less than the schedule requests, the user is warned.
    let slow = Calibration { requests_per_s: 1.0, ..found };
    std::fs::write(&path, serde_json::to_vec(&slow).expect("JSON")).expect("a writable directory");
    let said = assay.run(&["run", name, "--run-dir", "runs/r", "--no-report"]);
    assert!(said.went_well(), "{said:?}");
    let said = said.complains("up to 200 requests/s, and this machine was calibrated to offer 1");
    drop(said);
    assert_eq!(info(&assay, "runs/r").calibration.expect("found").requests_per_s, 1.0);
}

#[test]
fn best_effort_robots_are_calibrated_by_their_median() {
    let assay = Assay::new();
    let name = assay.file("best.pg", &small(""));
    let said = assay.run(&["run", name, "--calibrate", "--rehearse", "15s"]).exits(0);
    assert_eq!(said.stderr.matches("best effort: ").count(), 3, "{}", said.stderr);
    assert!(said.stdout.contains("this machine can offer"), "{}", said.stdout);
}

#[test]
fn an_interrupted_calibration_leaves_nothing() {
    let assay = Assay::new();
    let name = assay.file("small.pg", &small("50/sec"));
    let mut command = assay.command(&["run", name, "--calibrate"]);
    command.env("TMPDIR", assay.directory.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    wait_for(&mut lines, "calibrating small");
    send(&child, libc::SIGINT);
    let rest: Vec<_> = lines.map_while(Result::ok).collect();
    let said = Said::from(child.wait_with_output().expect("ends"));
    assert_eq!(said.code, Some(105), "{said:?} {rest:#?}");
    assert_nothing_left(assay.directory.path());
    let left: Vec<_> = std::fs::read_dir(assay.directory.path()).expect("a directory").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
