//! A real run, taken along: as tables, as figures, and into a Python that knows nothing of Assay.

use std::path::Path;
use std::process::Command;

use crate::support::{Assay, root};
use assay_testbed::python;

fn succeeds(python: &Path, script: &str, argument: &Path, within: &Path) -> String {
    let script = root().join("crates/run/report/tests").join(script);
    let output =
        Command::new(python).arg(script).arg(argument).current_dir(within).output().expect("a Python");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn a_real_run_is_taken_along_in_every_form_and_its_figures_are_recomputed() {
    let assay = Assay::new();
    let said =
        assay.run(&["run", "demo", "--rehearse", "5s", "--memory", "64MB", "--run-dir", "r", "--json"]);
    assert!(said.went_well(), "{said:?}");

    let take = [
        "report",
        "r",
        "--csv",
        "tables",
        "--ndjson",
        "lines",
        "--hdr",
        "times.hlog",
        "--figures",
        "figures",
    ];
    let said = assay.run(&take).exits(0);
    assert!(said.stdout.is_empty() && said.stderr.contains("figures are in figures"), "{said:?}");
    for file in ["tables/robots.csv", "tables/summary.csv", "lines/times.ndjson", "figures/rate.svg"] {
        assert!(assay.path(file).is_file(), "no {file}");
    }
    let log = std::fs::read_to_string(assay.path("times.hlog")).expect("a log");
    assert!(log.lines().any(|line| line.starts_with("Tag=top1/robots/response/miss,")), "{log}");
    let robots = assay.run(&["report", "r", "--table", "robots"]).exits(0).stdout;
    assert_eq!(robots, std::fs::read_to_string(assay.path("tables/robots.csv")).expect("a table"));
    assay.run(&["report", "r", "--table", "robot"]).exits(2).complains("histograms");

    let Some(python) = python() else { return };
    let said = succeeds(&python, "recompute.py", &assay.path("r"), &assay.path("r"));
    assert!(said.contains(" 0 differ"), "{said}");
    let page = root().join("docs/how-to/analyse-with-duckdb-and-pandas.md");
    let said = succeeds(&python, "examples.py", &page, &assay.path("r"));
    assert!(said.ends_with("examples ran\n"), "{said}");
}
