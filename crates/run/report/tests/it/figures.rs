//! Figures of made-up runs: all charts are there, in both forms, and look as they did.

use std::path::Path;

use assay_report::figure;

use crate::synthetic::{self, HOSTILE, Story};

const GOLDEN: [&str; 6] =
    ["rate", "response-cdf", "response-distribution", "study-hit-ratios", "study-disk", "study-summary"];

#[test]
fn every_chart_is_drawn_in_both_forms_and_listed() {
    let run = synthetic::run(Story::Direct);
    let out = tempfile::tempdir().unwrap();
    let names = figure::write(&run.dir, out.path()).unwrap();
    for wanted in ["rate", "response-p99", "study-throughput", "study-connections", "study-cpu-memory"] {
        assert!(names.iter().any(|name| name == wanted), "{wanted}: {names:?}");
    }
    let list = std::fs::read_to_string(out.path().join("figures.csv")).unwrap();
    for name in &names {
        let bytes = |extension: &str| std::fs::read(out.path().join(format!("{name}.{extension}"))).unwrap();
        let svg = String::from_utf8(bytes("svg")).unwrap();
        assert!(svg.starts_with("<svg ") && svg.contains("<text "), "{name}");
        assert!(!svg.contains("NaN") && svg.len() < 400_000, "{name}: {} bytes", svg.len());
        assert!(String::from_utf8(bytes("csv")).unwrap().lines().count() > 1, "{name} has no numbers");
        assert!(list.contains(&format!("\n{name},")), "{name}");
    }
}

#[test]
fn figures_look_as_they_did() {
    let run = synthetic::run(Story::Good);
    let out = tempfile::tempdir().unwrap();
    figure::write(&run.dir, out.path()).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/figures");
    for name in GOLDEN {
        let file = format!("{name}.svg");
        let drawn = std::fs::read_to_string(out.path().join(&file)).unwrap();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(golden.join(&file), &drawn).unwrap();
            continue;
        }
        let known = std::fs::read_to_string(golden.join(&file)).unwrap();
        assert!(drawn == known, "{file} looks otherwise: look at it, then UPDATE_GOLDEN=1");
    }
}

#[test]
fn runs_of_every_kind_have_figures_and_no_name_gets_out_of_its_place() {
    for story in [Story::Nothing, Story::Killed, Story::Hostile, Story::Failed] {
        let run = synthetic::run(story);
        let out = tempfile::tempdir().unwrap();
        for name in figure::write(&run.dir, out.path()).unwrap() {
            let svg = std::fs::read_to_string(out.path().join(format!("{name}.svg"))).unwrap();
            assert!(!svg.contains(HOSTILE) && !svg.contains("<script"), "{story:?} {name}");
        }
    }
}
