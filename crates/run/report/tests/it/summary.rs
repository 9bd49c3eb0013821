//! The document: golden, and true to its schema.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::histogram::Histogram;
use assay_measurement::own_error::{Certainty, OwnInterval};
use assay_record::run::RunInfo;
use assay_report::headline::RunConclusion;
use assay_report::require::Decision;
use assay_report::summary::{Figures, Mood, Percentiles, StallCause, Summary, Topic};
use assay_testbed::fixture;
use assay_testbed::pages::{golden, outline};
use assay_testbed::violations;
use serde_json::Value;

use crate::once;
use crate::synthetic::{self, Story};

/// Where a text is kept.
pub fn golden_path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The summary of a story, with a run directory that does not change.
pub fn of(story: Story) -> Summary {
    let make = || {
        let mut summary = Summary::from_run(&synthetic::run(story).dir).unwrap();
        summary.run = "runs/image-varnish".into();
        summary.to_json().unwrap().into_bytes()
    };
    let kept = fixture::cached(&once::place(), &format!("{story:?}.json"), make);
    serde_json::from_slice(&kept).unwrap()
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
    let schema = Summary::json_schema();
    for story in Story::ALL {
        // Not `of`, which has come back from JSON already.
        let summary = Summary::from_run(&synthetic::run(story).dir).unwrap();
        let text = summary.to_json().unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(violations(&schema, &document), [""; 0], "{story:?}");
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary, "{story:?}");
    }
}

#[test]
fn the_document_of_a_good_and_of_a_troubled_run_stay_as_they_are() {
    for (story, name) in [(Story::Good, "good.outline"), (Story::Troubled, "troubled.outline")] {
        golden(&golden_path(name), &outline(&serde_json::to_value(of(story)).unwrap()));
    }
}

#[test]
fn the_document_holds_what_is_promised() {
    let document = serde_json::to_value(of(Story::Good)).unwrap();
    for field in ["schema", "run", "workload", "proxy", "stream_digest"] {
        assert!(document[field].is_string(), "{field}");
    }
    assert!(
        document["seed"].is_u64() && document["own_errors_recorded"] == true && document["partial"] == false
    );
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
    assert!(summary.partial && summary.disturbance.is_none());
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
    assert!(killed.partial && killed.disturbance.is_none());
    assert_eq!(killed.total, interrupted.total);
    assert!(killed.unfinished && !interrupted.unfinished);
}

/// All numbers that an own error can be told of, by their name below a phase or the whole run: its certainty, and the number
/// itself.
fn stated(figures: &Figures) -> BTreeMap<String, (Certainty, Option<f64>)> {
    let document = serde_json::to_value(figures).unwrap();
    let mut found = BTreeMap::new();
    let mut add = |at: &str, within: &Value, own: &BTreeMap<String, OwnInterval>| {
        for (name, own) in own {
            let value = within.pointer(&format!("/{}", name.replace('.', "/"))).unwrap();
            found.insert(format!("{at}{name}"), (own.certainty, value.as_f64()));
        }
    };
    add("", &document, &figures.own);
    let spans = [
        ("response_time_ms", &figures.response_time_ms),
        ("service_time_ms", &figures.service_time_ms),
        ("ttfb_ms", &figures.ttfb_ms),
    ];
    for (span, times) in spans {
        let classes = [
            ("all", &times.all),
            ("completed", &times.completed),
            ("hit", &times.hit),
            ("miss", &times.miss),
            ("other", &times.other),
        ];
        for (class, times) in classes {
            add(&format!("{span}.{class}."), &document[span][class], &times.own);
        }
    }
    found
}

#[test]
fn every_time_has_an_interval_that_holds_it_or_is_null() {
    for story in Story::ALL {
        let summary = of(story);
        for figures in summary.phases.iter().map(|phase| &phase.figures).chain([&summary.total]) {
            let document = serde_json::to_value(figures).unwrap();
            for span in ["response_time_ms", "service_time_ms", "ttfb_ms"] {
                for class in ["all", "completed", "hit", "miss", "other"] {
                    let times: Percentiles = serde_json::from_value(document[span][class].clone()).unwrap();
                    let names = ["mean", "p50", "p90", "p99", "p999", "max"];
                    assert_eq!(
                        times.own.len(),
                        if times.count > 0 { 6 } else { 0 },
                        "{story:?} {span} {class}"
                    );
                    for name in names.into_iter().filter(|_| times.count > 0) {
                        let figure = times.figure(name).unwrap();
                        let own = figure.own.unwrap();
                        let Some(value) = figure.value else {
                            assert_eq!(own, OwnInterval::UNKNOWN, "{story:?} {span} {class} {name}");
                            continue;
                        };
                        assert!(
                            own.low.unwrap() <= value,
                            "{story:?} {span} {class} {name}: {own:?} {value}"
                        );
                        assert!(
                            own.high.is_none_or(|high| value <= high),
                            "{story:?} {span} {class} {name}: {own:?}"
                        );
                        assert_ne!(own.certainty, Certainty::Unknown);
                    }
                }
            }
        }
    }
}

#[test]
fn an_undisturbed_run_is_known_in_all_of_its_headline() {
    let summary = of(Story::Good);
    assert_eq!(summary.headline.phases, ["top1", "top2"]);
    assert_eq!(summary.headline.known, ["dhr", "bhr", "rate", "errors", "p50(hit)", "p50(miss)"]);
    assert!(summary.headline.roughly.is_empty() && summary.headline.unknown.is_empty());
    assert!(summary.disturbance.is_none() && summary.phases.iter().all(|phase| !phase.disturbed));
    assert_eq!(summary.conclusion(), RunConclusion::Fine);
}

#[test]
fn requests_that_assay_lost_and_sent_late_widen_what_they_can_have_moved_and_nothing_else() {
    let summary = of(Story::Ports);
    assert_eq!(summary.disturbance.as_deref(), Some("Assay ran out of connections"));
    assert!(summary.doubts.iter().any(|doubt| doubt.seen.contains("source port")), "{:?}", summary.doubts);
    assert!(summary.headline.unknown.is_empty() && summary.headline.roughly.is_empty());
    let top1 = &summary.phases[3].figures;
    let rate = &top1.own["rate.measured"];
    let lost = top1.errors.by_kind[&ErrorKind::PortsExhausted];
    let at_most = (top1.counts.completed + lost) as f64 / top1.duration_s.unwrap();
    assert_eq!(rate.low, top1.rate.measured);
    assert!((rate.high.unwrap() - at_most).abs() < 0.001, "the lost could all have got a response: {rate:?}");
    let dhr = top1.own["dhr.measured"];
    assert!(dhr.low.unwrap() < top1.dhr.measured.unwrap() && top1.dhr.measured.unwrap() < dhr.high.unwrap());
    assert_eq!((rate.certainty, dhr.certainty), (Certainty::Known, Certainty::Known));
    let hit = &top1.response_time_ms.hit;
    assert_eq!(hit.own["p50"].certainty, Certainty::Known, "{hit:?}");
    assert_eq!(hit.own["p99"].certainty, Certainty::Roughly, "{hit:?}");
    assert_eq!(hit.own["max"].high, None, "one of the lost could have taken for ever");
    assert!(!summary.phases[2].figures.own.contains_key("rate.measured"), "nothing was lost before");
    let trust = summary.verdict.iter().find(|finding| finding.about == Topic::Trust).unwrap();
    assert_eq!(trust.mood, Mood::Plain);
    assert_eq!(summary.conclusion(), RunConclusion::Fine, "that Assay lost some is not the target's failure");
    let speed = summary.verdict.iter().find(|finding| finding.about == Topic::Speed).unwrap();
    assert!(speed.text.contains("apart from 75 that Assay itself lost"), "{}", speed.text);
}

#[test]
fn a_role_that_failed_leaves_nothing_known_and_the_run_undecided() {
    let summary = of(Story::Failed);
    assert_eq!(summary.headline.unknown, ["dhr", "bhr", "rate", "errors", "p50(hit)", "p50(miss)"]);
    assert!(summary.headline.known.is_empty() && summary.headline.roughly.is_empty());
    for figures in summary.phases.iter().map(|phase| &phase.figures).chain([&summary.total]) {
        let stated = stated(figures);
        for wanted in ["rate.measured", "dhr.measured", "offload.bytes", "response_time_ms.hit.p50"] {
            assert!(stated.contains_key(wanted), "{wanted} in {stated:?}");
        }
        assert!(stated.values().all(|known| *known == (Certainty::Unknown, None)), "{stated:?}");
        assert!(figures.rate.offered.is_some() && figures.counts.completed > 0, "what was counted is shown");
    }
    assert_eq!(summary.conclusion(), RunConclusion::Undecided);
    let trust = summary.verdict.iter().find(|finding| finding.about == Topic::Trust).unwrap();
    assert_eq!(trust.mood, Mood::Doubtful);
}

#[test]
fn what_the_lab_could_not_keep_leaves_times_and_rates_unknown_and_what_was_counted_stands() {
    let summary = changed(Story::Good, |info| {
        info.verdict.doubts = vec![Doubt::serious(Reason::LabFailed, "the link between the roles was lost")];
    });
    assert_eq!(summary.headline.unknown, ["rate", "p50(hit)", "p50(miss)"]);
    assert_eq!(summary.headline.known, ["dhr", "bhr", "errors"]);
    assert_eq!((summary.total.rate.measured, summary.total.response_time_ms.all.max), (None, None));
    assert_eq!(summary.total.dhr, of(Story::Good).total.dhr);
    assert_eq!(summary.conclusion(), RunConclusion::Undecided);
}

#[test]
fn disturbed_phases_are_named_with_their_reasons_and_the_others_stand() {
    let summary = of(Story::Stalled);
    let disturbed: Vec<(&str, &[Reason])> = summary
        .phases
        .iter()
        .filter(|phase| phase.disturbed)
        .map(|phase| (phase.name.as_str(), phase.doubts.as_slice()))
        .collect();
    let expected: [(&str, &[Reason]); 2] =
        [("top1", &[Reason::Stalled, Reason::Stolen]), ("top2", &[Reason::Starved, Reason::Stolen])];
    assert_eq!(disturbed, expected);
    assert_eq!(
        summary.phases[0].doubts,
        [Reason::Stolen],
        "what is worth knowing of the whole run is, of each phase"
    );
    let times = |story| of(story).phases[4].figures.response_time_ms.clone();
    assert_eq!(times(Story::Stalled), times(Story::Good), "nobody touched it");
    assert!(
        of(Story::Ports).phases.iter().all(|phase| phase.disturbed),
        "one doubt is of the run as a whole"
    );
}

#[test]
fn delays_of_assay_leave_hit_ratios_and_errors_known_and_times_roughly() {
    let (summary, quiet) = (of(Story::Stalled), of(Story::Good));
    assert!(summary.headline.unknown.is_empty());
    assert_eq!(
        summary.headline.roughly,
        ["p50(hit)"],
        "{:?}",
        summary.headline.figures.as_ref().unwrap().response_time_ms
    );
    assert_eq!(
        summary.headline.known,
        ["dhr", "bhr", "rate", "errors", "p50(miss)"],
        "{:?}",
        summary.headline.figures.as_ref().unwrap().response_time_ms.miss
    );
    assert_eq!(summary.conclusion(), RunConclusion::Fine, "what is known roughly is known");
    for (phase, as_it_was) in summary.phases.iter().zip(&quiet.phases) {
        let figures = &phase.figures;
        assert_eq!((&figures.dhr, &figures.bhr), (&as_it_was.figures.dhr, &as_it_was.figures.bhr));
        let is_exact = |own: &OwnInterval| own.low == own.high && own.certainty == Certainty::Known;
        assert!(figures.own.values().all(is_exact), "{}: nothing was lost: {:?}", phase.name, figures.own);
    }
    // The interval holds what the same second was without the delays.
    for index in [3, 7] {
        let hit = |summary: &Summary, name| {
            summary.phases[index].figures.response_time_ms.hit.figure(name).unwrap()
        };
        for name in ["mean", "p50", "p90"] {
            let (own, truth) = (hit(&summary, name).own.unwrap(), hit(&quiet, name).value.unwrap());
            assert!(own.low.unwrap() <= truth * 1.02, "{index} {name}: {own:?} {truth}");
            assert!(truth * 0.98 <= own.high.unwrap(), "{index} {name}: {own:?} {truth}");
        }
    }
    let p99 = summary.phases[3].figures.response_time_ms.hit.own["p99"];
    assert_eq!(p99.certainty, Certainty::Roughly, "{p99:?}");
    let p50 = summary.phases[3].figures.response_time_ms.hit.own["p50"];
    assert_eq!(p50.certainty, Certainty::Known, "a stall of 0.3 s in 14 s does not move the median: {p50:?}");
}

#[test]
fn a_requirement_within_an_interval_is_undecided_and_one_beyond_it_is_decided() {
    let summary = changed(Story::Stalled, |info| {
        let limits = ["p50(hit) < 1us", "p50(hit) < 1s", "p50(hit) < 0.7ms", "dhr > 0.4"];
        info.requirements = limits.map(|limit| format!("top2.{limit}")).into();
    });
    let decided: Vec<_> = summary.requirements.iter().map(|one| (one.decision.unwrap(), one.held)).collect();
    let expected = [
        (Decision::Failed, Some(false)),
        (Decision::Held, Some(true)),
        (Decision::Undecided, None),
        (Decision::Held, Some(true)),
    ];
    assert_eq!(decided, expected, "{:?}", summary.requirements);
    assert_eq!(summary.conclusion(), RunConclusion::Failed);
    let undecided = &summary.requirements[2].own.unwrap();
    assert!(undecided.low.unwrap() < 0.7 && 0.7 < undecided.high.unwrap(), "{undecided:?}");
}

#[test]
fn an_undecided_requirement_leaves_the_run_undecided_and_a_held_one_is_all_that_counts() {
    let required =
        |story, limit: &str| changed(story, |info| info.requirements = vec![limit.to_owned()]).conclusion();
    assert_eq!(required(Story::Stalled, "top2.p50(hit) < 0.7ms"), RunConclusion::Undecided);
    assert_eq!(required(Story::Failed, "errors < 1"), RunConclusion::Undecided);
    assert_eq!(required(Story::Stalled, "top2.p50(hit) < 1s"), RunConclusion::Fine);
    // Times are unknown, but nobody required any.
    let summary = changed(Story::Good, |info| {
        info.verdict.doubts = vec![Doubt::serious(Reason::LabFailed, "the link between the roles was lost")];
        info.requirements = vec!["dhr > 0.4".into()];
    });
    assert_eq!((summary.conclusion(), summary.headline.unknown.is_empty()), (RunConclusion::Fine, false));
}

#[test]
fn wrong_content_and_responses_that_do_not_come_fail_a_run_of_which_nothing_was_required() {
    let summary = of(Story::Troubled);
    assert!(summary.requirements.is_empty() && summary.total.errors.by_kind[&ErrorKind::Stale] > 0);
    assert_eq!(summary.conclusion(), RunConclusion::Failed);
    assert_eq!(of(Story::Interrupted).conclusion(), RunConclusion::Fine, "what ran was right");
    assert_eq!(of(Story::Nothing).conclusion(), RunConclusion::NothingMeasured);
}

#[test]
fn a_run_of_before_says_that_own_errors_were_not_recorded() {
    let run = synthetic::run(Story::Good);
    let path = run.dir.info_path();
    let mut head: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    // As it was written then.
    head.as_object_mut().unwrap().remove("own_errors");
    head["assay_version"] = "0.0.9".into();
    head["phases"][3]["disturbed"] = true.into();
    head["verdict"]["doubts"] =
        serde_json::json!([{"reason": "late", "serious": true, "phases": [3], "seen": "late"}]);
    std::fs::write(&path, head.to_string()).unwrap();
    std::fs::remove_file(run.dir.checksums_path()).unwrap();
    let summary = Summary::from_run(&run.dir).unwrap();
    assert!(!summary.own_errors_recorded && summary.phases[3].disturbed && !summary.phases[2].disturbed);
    assert!(summary.doubts[0].serious && summary.disturbance.is_some());
    let trust = summary.verdict.iter().find(|finding| finding.about == Topic::Trust).unwrap();
    assert_eq!(trust.mood, Mood::Plain);
    assert!(trust.text.contains("before Assay recorded its own errors"), "{}", trust.text);
    assert_eq!(stated(&summary.total), BTreeMap::new(), "no interval");
    assert!(summary.headline.unknown.is_empty() && summary.headline.roughly.is_empty());
    assert_eq!(summary.total.dhr, of(Story::Good).total.dhr);
    assert_eq!(summary.total.response_time_ms.all.p50, of(Story::Good).total.response_time_ms.all.p50);
}

/// The summary of a story whose head was changed.
fn changed(story: Story, change: impl FnOnce(&mut RunInfo)) -> Summary {
    let run = synthetic::run(story);
    let mut info = run.dir.read_info().unwrap();
    change(&mut info);
    run.dir.write_info(&info).unwrap();
    Summary::from_run(&run.dir).unwrap()
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
    info.verdict.doubts = vec![Doubt::serious(Reason::RoleFailed, "origins ended early")];
    run.dir.write_info(&info).unwrap();
    let summary = Summary::from_run(&run.dir).unwrap();
    assert!(summary.disturbance.is_some() && summary.unfinished);
    assert!(!summary.headline.unknown.is_empty());
    assert_eq!(summary.doubts[0].reason, Reason::RoleFailed);
    let trust = |summary: &Summary| summary.verdict.iter().find(|f| f.about == Topic::Trust).unwrap().clone();
    assert_eq!(trust(&summary).mood, Mood::Doubtful);
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
