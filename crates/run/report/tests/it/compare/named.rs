//! Comparisons of runs that were named one by one.

use std::path::{Path, PathBuf};

use assay_record::dir::RunDir;
use assay_record::run::RunInfo;
use assay_report::compare::document::{Contrast, Verdict, Weight};
use assay_report::compare::{self as compare, CompareOptions, Comparison, GateOutcome, InputDirectory};
use assay_report::terminal::Style;

use crate::compare::experiments::{self, ATS, Plan, VARNISH};
use assay_testbed::pages::golden;

/// Directories of the runs of `image`: of varnish first, then of ats.
fn runs(dir: &Path, plan: &Plan<'_>) -> Vec<PathBuf> {
    let info = experiments::write(dir, &Plan { workloads: &["image"], ..*plan });
    // Named runs stand for themselves: there is no experiment around them.
    std::fs::remove_file(dir.join("experiment.json")).unwrap();
    info.cells.iter().map(|cell| dir.join(cell.run.as_ref().unwrap())).collect()
}

fn change(dir: &Path, change: impl Fn(&mut RunInfo)) {
    let dir = RunDir::open(dir).unwrap();
    let mut info = dir.read_info().unwrap();
    change(&mut info);
    dir.write_info(&info).unwrap();
}

fn named(paths: &[PathBuf]) -> Vec<InputDirectory> {
    paths.iter().map(|path| InputDirectory { label: None, path: path.clone() }).collect()
}

fn compared(paths: &[PathBuf], liberties: CompareOptions) -> Comparison {
    compare::runs(&named(paths), liberties, &["assay".into(), "compare".into()]).unwrap()
}

fn contrast<'a>(comparison: &'a Comparison, metric: &str) -> &'a Contrast {
    let rows = || comparison.tables.iter().find(|table| table.judged).unwrap().rows.iter();
    &rows().find(|row| row.metric == metric).unwrap().contrasts[0]
}

#[test]
fn runs_that_are_named_say_the_same_as_the_experiment_they_are_from() {
    let tmp = tempfile::tempdir().unwrap();
    let plan = Plan { workloads: &["image"], ..Plan::default() };
    experiments::write(tmp.path(), &plan);
    let whole = compare::experiment(tmp.path()).unwrap();
    let again = compared(&[tmp.path().to_owned()], CompareOptions::default());
    assert_eq!(again.to_json().unwrap(), whole.to_json().unwrap());
    std::fs::remove_file(tmp.path().join("experiment.json")).unwrap();
    let one_by_one = compared(&[tmp.path().join("cells")], CompareOptions::default());
    let labels: Vec<&str> = one_by_one.subjects.iter().map(|subject| subject.label.as_str()).collect();
    assert_eq!(labels, ["trafficserver", "varnish"], "by the names of their directories");
    let (there, here) = (contrast(&whole, "dhr"), contrast(&one_by_one, "dhr"));
    assert_eq!((here.pairs, here.verdict), (5, Verdict::Worse));
    assert!((there.difference.unwrap() + here.difference.unwrap()).abs() < 1e-12);
    assert_eq!(one_by_one.runs.len(), 10);
    assert!(one_by_one.runs.iter().all(|run| run.counts && !run.stream_digest.is_empty()));
}

#[test]
fn one_run_a_side_has_differences_and_no_verdict_and_a_log_says_how_exact_they_are_within_these_two() {
    let tmp = tempfile::tempdir().unwrap();
    let paths = runs(tmp.path(), &Plan { repetitions: 1, logs: true, ..Plan::default() });
    let found = compared(&paths, CompareOptions::default());
    let mean = contrast(&found, "response_mean_ms");
    assert_eq!((mean.verdict, mean.interval), (Verdict::NotEnoughRuns, None));
    let within = mean.within_runs.as_ref().unwrap();
    assert!(within.interval.0 < mean.difference.unwrap() && mean.difference.unwrap() < within.interval.1);
    assert_eq!(contrast(&found, "dhr").within_runs, None);
    let text = found.to_terminal(None, &Style { colour: false, width: 200 });
    assert!(text.contains("within these two runs alone"), "{text}");
    assert!(found.to_markdown().contains("within these two runs alone"));
}

#[test]
fn runs_of_another_stream_are_shown_and_not_judged_unless_that_is_wished() {
    let tmp = tempfile::tempdir().unwrap();
    let paths = runs(tmp.path(), &Plan::default());
    for path in &paths[5..] {
        change(path, |info| info.stream_digest.push_str("-another"));
    }
    let found = compared(&paths, CompareOptions::default());
    assert!(found.is_meaningless());
    assert_eq!(found.differences[0].name, "stream digest");
    assert_eq!(found.differences[0].weight, Weight::Meaningless);
    let dhr = contrast(&found, "dhr");
    assert_eq!((dhr.verdict, dhr.interval), (Verdict::NotComparable, None));
    assert!(dhr.difference.is_some() && dhr.why.as_ref().unwrap().contains("other streams"));
    assert!(found.to_markdown().contains("**Not comparable.**"));
    let text = found.to_terminal(None, &Style { colour: false, width: 100 });
    assert!(text.contains("Can they be compared? No"), "{text}");
    assert!(
        found.scenarios[0].cells.iter().all(|cell| cell.text == "not comparable"),
        "{:?}",
        found.scenarios
    );
    let forced = compared(&paths, CompareOptions { any_stream: true, ..CompareOptions::default() });
    assert_eq!(contrast(&forced, "dhr").verdict, Verdict::Better);
    assert!(
        !forced.is_meaningless() && forced.differences[0].weight == Weight::Meaningless,
        "it is still said"
    );
}

#[test]
fn streams_of_another_version_are_not_judged_though_their_digests_agree() {
    let tmp = tempfile::tempdir().unwrap();
    let paths = runs(tmp.path(), &Plan::default());
    let versions = |first: u32, second: u32| {
        let (one, other) = paths.split_at(5);
        one.iter().for_each(|path| change(path, |info| info.stream_version = first));
        other.iter().for_each(|path| change(path, |info| info.stream_version = second));
        compared(&paths, CompareOptions::default())
    };
    for (first, second) in [(1, 2), (2, 1)] {
        let found = versions(first, second);
        let dhr = contrast(&found, "dhr");
        assert_eq!(dhr.verdict, Verdict::NotComparable, "versions {first} and {second}");
        assert!(dhr.why.as_ref().unwrap().contains("different versions"), "{:?}", dhr.why);
        assert_eq!(found.differences[0].name, "stream version");
    }
    for (first, second) in [(1, 1), (2, 2)] {
        let found = versions(first, second);
        assert_eq!(contrast(&found, "dhr").verdict, Verdict::Better, "versions {first} and {second}");
    }
}

#[test]
fn runs_with_other_phases_cannot_be_held_against_each_other() {
    let tmp = tempfile::tempdir().unwrap();
    let paths = runs(tmp.path(), &Plan { repetitions: 1, ..Plan::default() });
    change(&paths[1], |info| info.phases[1].name = "plateau".into());
    let mut found = compared(&paths, CompareOptions::default());
    assert_eq!(found.left_out.len(), 1);
    assert!(found.is_meaningless() && found.incomparable[0].contains("phases"), "{:?}", found.incomparable);
    assert_eq!(found.check_tolerances(&["5%".parse().unwrap()]).outcome, GateOutcome::NotCompared);
}

#[test]
fn a_tolerance_is_kept_by_the_same_and_not_by_the_slower_and_a_run_of_unknown_numbers_is_no_gate() {
    let tmp = tempfile::tempdir().unwrap();
    let paths = runs(tmp.path(), &Plan::default());
    let tolerances = ["mean=10%".parse().unwrap()];
    let mut found = compared(&paths, CompareOptions::default());
    assert_eq!(found.check_tolerances(&tolerances).outcome, GateOutcome::Regressed);
    assert!(found.to_terminal(None, &Style { colour: false, width: 100 }).contains("REGRESSED"));
    let backwards: Vec<PathBuf> = paths[5..].iter().chain(&paths[..5]).cloned().collect();
    let mut found = compared(&backwards, CompareOptions::default());
    assert_eq!(found.check_tolerances(&tolerances).outcome, GateOutcome::Held, "faster is never worse");
    change(&paths[2], |info| {
        info.verdict.doubts = vec![assay_measurement::doubt::Doubt::serious(
            assay_measurement::doubt::Reason::RoleFailed,
            "gone",
        )];
    });
    let mut found = compared(&paths, CompareOptions::default());
    assert_eq!(found.check_tolerances(&tolerances).outcome, GateOutcome::Invalid);
    let mut found = compared(&paths, CompareOptions { with_invalid: true, ..CompareOptions::default() });
    assert_eq!(found.check_tolerances(&tolerances).outcome, GateOutcome::Invalid);
    assert_eq!(contrast(&found, "dhr").verdict, Verdict::NotComparable);
    assert!(found.left_out.is_empty());
}

#[test]
fn a_run_that_cannot_be_read_absolves_nobody() {
    let tmp = tempfile::tempdir().unwrap();
    let paths = runs(tmp.path(), &Plan::default());
    let backwards: Vec<PathBuf> = paths[5..].iter().chain(&paths[..5]).cloned().collect();
    let wrong = |found: &Comparison| {
        found.verdict.iter().find(|one| one.question == "Was anything wrong?").unwrap().text.clone()
    };
    let whole = wrong(&compared(&backwards, CompareOptions::default()));
    std::fs::write(paths[0].join("times.parquet"), "cut off").unwrap();
    let mut found = compared(&backwards, CompareOptions::default());
    assert_eq!(found.left_out.len(), 1);
    assert_eq!(wrong(&found), whole + " Of 1 run left out it is not known.");
    let gate = found.check_tolerances(&["mean=10%".parse().unwrap()]);
    assert_eq!(gate.outcome, GateOutcome::Invalid, "{}", gate.why);
    // What can be read of it counts: this one had errors.
    std::fs::write(paths[5].join("times.parquet"), "cut off").unwrap();
    let found = compared(&backwards, CompareOptions::default());
    assert_eq!(found.left_out.iter().filter(|run| run.errors > 0 && !run.are_errors_known).count(), 1);
    assert!(wrong(&found).contains(", which is left out"), "{}", wrong(&found));
}

#[test]
fn directories_are_the_subjects_where_everything_else_is_the_same() {
    let tmp = tempfile::tempdir().unwrap();
    let (base, head) = (tmp.path().join("base"), tmp.path().join("head"));
    for dir in [&base, &head] {
        let again =
            experiments::Kind { miss_us: if dir.ends_with("head") { 4000.0 } else { 2400.0 }, ..VARNISH };
        experiments::write(dir, &Plan { subjects: &[again], workloads: &["image"], ..Plan::default() });
    }
    let cells = [base.join("cells"), head.join("cells")];
    let found = compare::runs(
        &[
            InputDirectory { label: Some("base".into()), path: cells[0].clone() },
            InputDirectory { label: Some("head".into()), path: cells[1].clone() },
        ],
        CompareOptions::default(),
        &[],
    )
    .unwrap();
    assert_eq!((found.name.as_str(), found.subjects.len()), ("head against base", 2));
    assert_eq!(contrast(&found, "response_mean_ms").verdict, Verdict::Worse);
    assert!(found.differences.is_empty(), "{:?}", found.differences);
    let unlabelled = compared(&cells, CompareOptions::default());
    let labels: Vec<&str> = unlabelled.subjects.iter().map(|subject| subject.label.as_str()).collect();
    assert_eq!(labels, ["cells (1)", "cells (2)"]);
    // Two experiments with the same subjects: their names tell them apart.
    let both = compared(&[base, head], CompareOptions::default());
    let labels: Vec<&str> = both.subjects.iter().map(|subject| subject.label.as_str()).collect();
    assert_eq!(labels, ["base: varnish", "head: varnish"]);
}

#[test]
fn a_path_that_is_no_run_directory_is_an_error_and_named() {
    let tmp = tempfile::tempdir().unwrap();
    let error = compare::runs(&named(&[tmp.path().to_owned()]), CompareOptions::default(), &[])
        .unwrap_err()
        .to_string();
    assert!(error.contains("run directory"), "{error}");
}

#[test]
fn a_comparison_for_a_pull_request_stays_as_it_is() {
    let tmp = tempfile::tempdir().unwrap();
    let paths = runs(tmp.path(), &Plan { subjects: &[VARNISH, ATS], ..Plan::default() });
    for path in &paths[5..] {
        change(path, |info| info.host.kernel = "6.12.0".into());
    }
    let mut found = compared(&paths, CompareOptions::default());
    found.check_tolerances(&[
        "5%".parse().unwrap(),
        "p99=20%".parse().unwrap(),
        "memory=0%".parse().unwrap(),
    ]);
    let path = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    golden(&path("compare-100.txt"), &found.to_terminal(None, &Style { colour: false, width: 100 }));
    golden(&path("compare.md"), &found.to_markdown());
}
