//! Every number of a summary is recomputed from the Parquet tables by a script that shares no code with Assay.

use std::path::Path;

use assay_report::html;
use serde_json::Value;

use crate::python::{python, run};
use crate::synthetic::{self, Story};

/// Holds a summary against what the script says: every number and null of the one must be in the other. Strings are
/// words, except digests.
fn compare(path: &str, summary: &Value, script: &Value, differences: &mut Vec<String>, checked: &mut usize) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match summary {
        Value::Object(fields) => {
            for (name, value) in fields {
                compare(&below(name), value, &script[name], differences, checked);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                compare(&below(&index.to_string()), value, &script[index], differences, checked);
            }
        }
        Value::Number(number) => {
            *checked += 1;
            let (ours, theirs) = (number.as_f64().unwrap(), script.as_f64());
            let equal = theirs.is_some_and(|theirs| (ours - theirs).abs() <= 1e-9 * ours.abs().max(1.0));
            if !equal {
                differences.push(format!("{path}: the summary says {number}, the script {script}"));
            }
        }
        // Null says that there is nothing to measure; where that is so, the script must say it too.
        Value::Null if !script.is_null() => {
            differences.push(format!("{path}: the summary says nothing, the script {script}"));
        }
        Value::String(digest) if path.ends_with("due_digest") => {
            *checked += 1;
            if script.as_str() != Some(digest) {
                differences.push(format!("{path}: {digest} and {script}"));
            }
        }
        _ => {}
    }
}

/// The number of figures that were compared; none of the run's may differ.
fn recompute(python: &Path, dir: &assay_record::dir::RunDir) -> usize {
    html::write(dir).unwrap();
    let summary: Value = serde_json::from_slice(&std::fs::read(dir.summary_path()).unwrap()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute.py");
    let text = run(python, &[script.as_os_str(), dir.path().as_os_str()], dir.path());
    let script: Value = serde_json::from_str(&text).unwrap();
    let (mut differences, mut checked) = (Vec::new(), 0);
    compare("", &summary, &script, &mut differences, &mut checked);
    assert!(
        differences.is_empty(),
        "{} of {checked} figures differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
    checked
}

#[test]
fn every_figure_of_the_summary_is_recomputed_from_the_tables_and_equals_it() {
    let Some(python) = python() else { return };
    // A real run, when somebody names one.
    if let Some(run) = std::env::var_os("ASSAY_RECOMPUTE_RUN") {
        let dir = assay_record::dir::RunDir::open(Path::new(&run)).unwrap();
        eprintln!("{} figures of {} are equal", recompute(&python, &dir), run.to_string_lossy());
    }
    for story in
        [Story::Good, Story::Troubled, Story::Interrupted, Story::Stalled, Story::Calibrated, Story::Direct]
    {
        let run = synthetic::run(story);
        let checked = recompute(&python, &run.dir);
        assert!(checked > 300, "{story:?}: only {checked} figures were compared");
    }
}
