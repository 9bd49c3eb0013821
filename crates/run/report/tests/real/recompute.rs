//! Every number of a summary is recomputed from the Parquet tables by a script that shares no code with Assay.

use std::path::Path;

use assay_measurement::doubt::{Doubt, Reason};
use assay_report::html;

use assay_testbed::python;

use crate::python::run;
use crate::synthetic::{self, Story};

#[test]
fn every_figure_of_the_summary_is_recomputed_from_the_tables_and_equals_it() {
    let Some(python) = python() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute.py");
    let stories = [
        Story::Good,
        Story::Troubled,
        Story::Interrupted,
        Story::Ports,
        Story::Failed,
        Story::Stalled,
        Story::Calibrated,
        Story::Direct,
    ];
    let mut cases: Vec<(Story, Vec<Doubt>)> = stories.map(|story| (story, Vec::new())).into();
    let serious = |reason| Doubt::serious(reason, "added");
    // Influences that no story has by itself.
    cases.push((Story::Stalled, vec![serious(Reason::Retransmissions), serious(Reason::AcceptBacklog)]));
    cases.push((Story::Direct, vec![serious(Reason::Saturated)]));
    cases.push((Story::Direct, vec![serious(Reason::LabFailed)]));
    for (story, added) in cases {
        let made = synthetic::run(story);
        let mut info = made.dir.read_info().unwrap();
        info.verdict.doubts.extend(added);
        made.dir.write_info(&info).unwrap();
        html::write(&made.dir).unwrap();
        let said = run(&python, &[script.as_os_str(), made.dir.path().as_os_str()], made.dir.path());
        let compared: u64 = said.split(' ').next().unwrap().parse().unwrap();
        assert!(compared > 300, "{story:?}: {said}");
    }
}

#[test]
fn a_figure_that_is_wrong_or_that_nobody_recomputes_is_found() {
    let Some(python) = python() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute.py");
    let made = synthetic::run(Story::Direct);
    html::write(&made.dir).unwrap();
    let path = made.dir.summary_path();
    let mut summary: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    summary["total"]["completed"] = (summary["total"]["completed"].as_u64().unwrap() + 1).into();
    summary["total"]["luck"] = 7.into();
    summary["total"]["response_time_ms"]["miss"]["own"]["p99"]["low"] = 0.5.into();
    summary["headline"]["figures"]["ttfb_ms"]["miss"]["own"]["p50"]["certainty"] = "unknown".into();
    std::fs::write(&path, summary.to_string()).unwrap();
    let output = std::process::Command::new(python).arg(script).arg(made.dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!output.status.success() && said.contains("4 differ"), "{said}");
    for changed in [
        ".total.completed",
        ".total.luck",
        ".total.response_time_ms.miss.own.p99",
        ".headline.figures.ttfb_ms.miss.own.p50",
    ] {
        assert!(said.contains(changed), "{changed}: {said}");
    }
}

#[test]
fn every_example_of_the_documentation_runs_and_has_something_to_show() {
    let Some(python) = python() else { return };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = here.join("../../../docs/how-to/analyse-with-duckdb-and-pandas.md").canonicalize().unwrap();
    let made = synthetic::run(Story::Good);
    let script = here.join("tests/examples.py");
    let said = run(&python, &[script.as_os_str(), page.as_os_str()], made.dir.path());
    assert!(said.ends_with("examples ran\n"), "{said}");
}
