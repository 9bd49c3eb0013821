//! The document: golden, and true to its schema.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use assay_report::summary::{Mood, Summary, Topic};
use serde_json::Value;

use crate::synthetic::{self, Story};

/// Compares with a file that is kept; `UPDATE_GOLDEN=1` rewrites it.
pub fn golden(path: &Path, text: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, text).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(kept == text, "{} differs; look at it after UPDATE_GOLDEN=1. Now:\n{text}", path.display());
}

pub fn golden_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The summary of a story, with a run directory that does not change.
pub fn of(story: Story) -> Summary {
    static MADE: Mutex<Vec<(Story, Summary)>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap();
    if let Some((_, summary)) = made.iter().find(|(known, _)| *known == story) {
        return summary.clone();
    }
    let mut summary = Summary::from_run(&synthetic::run(story).dir).unwrap();
    summary.run = "runs/image-varnish".into();
    made.push((story, summary.clone()));
    summary
}

#[test]
fn the_published_schema_is_that_of_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/summary.schema.json");
    golden(&path, &format!("{:#}\n", Summary::json_schema()));
}

#[test]
fn every_summary_is_true_to_the_schema_and_comes_back_as_it_was() {
    let validator = jsonschema::validator_for(&Summary::json_schema()).unwrap();
    for story in Story::ALL {
        let summary = of(story);
        let text = summary.to_json().unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let errors: Vec<String> =
            validator.iter_errors(&document).map(|e| format!("{} at {}", e, e.instance_path())).collect();
        assert!(errors.is_empty(), "{story:?}: {errors:?}");
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary, "{story:?}");
    }
}

#[test]
fn the_document_of_a_good_and_of_a_troubled_run_stay_as_they_are() {
    for (story, name) in [(Story::Good, "good.json"), (Story::Troubled, "troubled.json")] {
        golden(&golden_path(name), &of(story).to_json().unwrap());
    }
}

#[test]
fn the_document_holds_what_is_promised() {
    let document = serde_json::to_value(of(Story::Good)).unwrap();
    for field in ["schema", "run", "workload", "proxy", "stream_digest"] {
        assert!(document[field].is_string(), "{field}");
    }
    assert!(document["seed"].is_u64() && document["valid"] == true && document["partial"] == false);
    assert!(document["warnings"].is_array());
    let phases = document["phases"].as_array().unwrap();
    assert!(phases.iter().all(|phase| phase["name"].is_string()));
    for part in phases.iter().chain([&document["total"]]) {
        let number =
            |path: &str| assert!(part.pointer(path).is_some_and(Value::is_number), "{path} in {part:#}");
        ["/requests", "/rate/offered", "/rate/measured", "/unsent", "/errors/total"]
            .into_iter()
            .for_each(number);
        for ratio in ["dhr", "bhr"] {
            ["offered", "ideal", "measured"].iter().for_each(|which| number(&format!("/{ratio}/{which}")));
        }
        ["/offload/requests", "/offload/bytes"].into_iter().for_each(number);
        for times in ["response_time_ms", "service_time_ms", "ttfb_ms"] {
            for class in ["all", "hit", "miss"] {
                for value in ["mean", "p50", "p90", "p99", "p999", "max"] {
                    number(&format!("/{times}/{class}/{value}"));
                }
            }
        }
        ["p50", "p99", "max"].iter().for_each(|value| number(&format!("/lateness_us/{value}")));
        assert!(part["errors"]["by_kind"].is_object());
    }
}

#[test]
fn a_run_without_hits_has_null_where_there_is_nothing() {
    let document = serde_json::to_value(of(Story::Direct)).unwrap();
    assert!(document["total"]["response_time_ms"]["hit"]["p99"].is_null());
    assert_eq!(document["total"]["dhr"]["measured"], 0.0);
    assert_eq!(document["total"]["offload"]["requests"], 0.0);
}

#[test]
fn phases_that_never_ran_are_listed_with_zero_requests() {
    let summary = of(Story::Interrupted);
    assert!(summary.partial && summary.valid);
    assert_eq!(summary.phases.len(), 9);
    let names: Vec<&str> = summary.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names[3..5], ["top1", "dec"]);
    assert!(summary.phases[3].figures.requests > 0);
    assert_eq!(summary.phases[4].figures.requests, 0);
    assert_eq!(summary.phases[4].start_ms, None);
    assert_eq!(summary.phases[4].figures.rate.offered, None);
    let nothing = of(Story::Nothing);
    assert_eq!(nothing.total.requests, 0);
    assert_eq!(nothing.total.duration_s, None);
}

#[test]
fn a_killed_run_says_the_same_as_an_interrupted_one_and_that_it_is_partial() {
    let (killed, interrupted) = (of(Story::Killed), of(Story::Interrupted));
    assert!(killed.partial && killed.valid);
    assert_eq!(killed.total, interrupted.total);
    assert!(killed.unfinished && !interrupted.unfinished);
}

#[test]
fn running_into_a_limit_of_our_own_makes_a_run_invalid() {
    let summary = of(Story::Invalid);
    assert!(!summary.valid);
    assert!(summary.doubts.iter().any(|doubt| doubt.seen.contains("source port")), "{:?}", summary.doubts);
    let trust = summary.verdict.iter().find(|finding| finding.about == Topic::Trust).unwrap();
    assert_eq!(trust.mood, Mood::Bad);
}

#[test]
fn hit_ratios_far_from_ideal_are_named_by_phase_and_explained() {
    let summary = of(Story::Troubled);
    let about: Vec<&String> =
        summary.warnings.iter().filter(|warning| warning.contains("below ideal")).collect();
    assert_eq!(about.len(), 1, "{:?}", summary.warnings);
    assert!(about[0].contains("top1 (46.4 % of 54.4 %)") && about[0].contains("under Notes"), "{about:?}");
    assert!(!about[0].contains("idle"), "too few requests to judge: {about:?}");
    assert!(of(Story::Good).warnings.iter().all(|warning| !warning.contains("ideal")));
}

#[test]
fn what_the_lab_said_is_said_once() {
    for story in Story::ALL {
        let summary = of(story);
        let mut said: Vec<&String> = summary.warnings.iter().chain(&summary.notes).collect();
        let all = said.len();
        said.sort();
        said.dedup();
        assert_eq!(said.len(), all, "{story:?}: {said:?}");
    }
}
