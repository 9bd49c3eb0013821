//! The document: golden, and true to its schema.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::histogram::Histogram;
use assay_report::summary::{Mood, StallCause, Summary, Topic};
use assay_testbed::pages::golden;
use serde_json::Value;

use crate::synthetic::{self, Story};

/// Where a text is kept.
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

/// Every field that the summary can have, by its path.
#[test]
fn every_field_of_the_summary_keeps_its_name() {
    let schema = serde_json::to_value(Summary::json_schema()).unwrap();
    let mut paths = Vec::new();
    fields(&schema, &schema, "", &mut paths);
    paths.sort();
    paths.dedup();
    golden(&golden_path("summary-fields.txt"), &(paths.join("\n") + "\n"));
}

fn fields(root: &Value, schema: &Value, at: &str, paths: &mut Vec<String>) {
    if !schema.is_object() {
        return;
    }
    if let Some(target) = schema["$ref"].as_str() {
        fields(root, root.pointer(target.trim_start_matches('#')).unwrap(), at, paths);
    }
    let required: Vec<&Value> = schema["required"].as_array().into_iter().flatten().collect();
    for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
        let mark = if required.contains(&&Value::from(name.as_str())) { " required" } else { "" };
        paths.push(format!("{at}/{name}{mark}"));
        fields(root, inner, &format!("{at}/{name}"), paths);
    }
    for key in ["items", "additionalProperties"] {
        fields(root, &schema[key], &format!("{at}/*"), paths);
    }
    for key in ["anyOf", "allOf", "oneOf"] {
        schema[key].as_array().into_iter().flatten().for_each(|one| fields(root, one, at, paths));
    }
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
    assert!(summary.phases[3].figures.counts.requests > 0);
    assert_eq!(summary.phases[4].figures.counts.requests, 0);
    assert_eq!(summary.phases[4].start_ms, None);
    assert_eq!(summary.phases[4].figures.rate.offered, None);
    let nothing = of(Story::Nothing);
    assert_eq!(nothing.total.counts.requests, 0);
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
fn invalid_phases_are_named_with_their_reasons_and_the_others_stand() {
    let summary = of(Story::Stalled);
    let spoilt: Vec<(&str, &[Reason])> = summary
        .phases
        .iter()
        .filter(|phase| phase.invalid)
        .map(|phase| (phase.name.as_str(), phase.doubts.as_slice()))
        .collect();
    let expected: [(&str, &[Reason]); 2] =
        [("top1", &[Reason::Stalled, Reason::Stolen]), ("top2", &[Reason::Starved, Reason::Stolen])];
    assert_eq!(spoilt, expected);
    assert_eq!(
        summary.phases[0].doubts,
        [Reason::Stolen],
        "what is worth knowing of the whole run is, of each phase"
    );
    assert!(
        of(Story::Invalid).phases.iter().all(|phase| phase.invalid),
        "one doubt is of the run as a whole"
    );
}

#[test]
fn how_well_assay_did_can_be_found_from_the_tables() {
    let run = synthetic::run(Story::Stalled);
    let (summary, series) = (Summary::from_run(&run.dir).unwrap(), run.dir.read_series().unwrap());
    let robots = &summary.health.roles["robots"];
    let mut lag = Histogram::new();
    let threads = || series.threads.iter().filter(|thread| thread.role == "robots");
    threads().for_each(|thread| lag.merge_sparse(&thread.timer_lag));
    assert_eq!(robots.timer_lag_us.p99, lag.quantile_us(0.99));
    assert_eq!(robots.timer_lag_us.max, threads().map(|thread| thread.longest_lag_us).max());
    let waited: u64 = threads().map(|thread| thread.run_delay_us).sum();
    let watched: u64 = threads().map(|thread| thread.length_ms * 1000).sum();
    assert!((robots.run_delay_share.unwrap() - waited as f64 / watched as f64).abs() < 1e-4);
    assert_eq!(robots.run_delay_share_peak, Some(0.41));
    assert_eq!(robots.lateness_us.p99, summary.total.lateness_us.p99);
    assert_eq!((robots.stalls, robots.stalled_ms), (3, 353.532));
    let longest = summary.health.longest_stall.as_ref().unwrap();
    assert_eq!((longest.at_ms, longest.phase.as_deref()), (24_350, Some("top1")));
    assert_eq!(longest.cause, StallCause::Stopped);
    let network = summary.health.network.as_ref().unwrap();
    assert_eq!(network.listen_drops, series.network.iter().map(|second| second.listen_drops).sum::<u64>());
    assert_eq!(network.time_wait_peak, 1200);
}

#[test]
fn the_calibrated_rate_is_used_by_the_busiest_phase() {
    let used = of(Story::Calibrated).calibration.unwrap();
    assert_eq!(used.phase.as_deref(), Some("top1"));
    assert_eq!(used.share, Some(((used.rate.unwrap() / 10_400.0) * 1e4).round() / 1e4));
    assert_eq!(of(Story::Good).calibration, None);
    assert_eq!(of(Story::Nothing).calibration, None);
}

#[test]
fn a_killed_run_keeps_the_doubts_that_were_known_and_finds_its_own_limits() {
    let run = synthetic::run(Story::Killed);
    let mut info = run.dir.read_info().unwrap();
    info.verdict.doubts = vec![Doubt::invalid(Reason::RoleFailed, "origins ended early")];
    run.dir.write_info(&info).unwrap();
    let summary = Summary::from_run(&run.dir).unwrap();
    assert!(!summary.valid && summary.unfinished);
    assert_eq!(summary.doubts[0].reason, Reason::RoleFailed);
    let trust = |summary: &Summary| summary.verdict.iter().find(|f| f.about == Topic::Trust).unwrap().clone();
    assert_eq!(trust(&summary).mood, Mood::Bad);
    assert_eq!(trust(&of(Story::Killed)).mood, Mood::Doubtful, "nobody judged it");
}

#[test]
fn hit_ratios_far_from_ideal_are_named_by_phase_and_explained() {
    let summary = of(Story::Troubled);
    let about: Vec<&String> =
        summary.warnings.iter().filter(|warning| warning.contains("below ideal")).collect();
    assert_eq!(about.len(), 1, "{:?}", summary.warnings);
    assert!(about[0].contains("top1 (46.5 % of 54.4 %)") && about[0].contains("under Notes"), "{about:?}");
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
