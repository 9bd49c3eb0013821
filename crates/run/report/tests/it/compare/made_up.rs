//! Comparisons of made-up experiments, as their readers see them.

use std::path::Path;

use assay_record::experiment::CellState;
use assay_report::compare::document::{Contrast, MetricTable, Verdict};
use assay_report::compare::{self as compare, Comparison};
use assay_report::terminal::Style;

use crate::compare::experiments::{self, ATS, Plan, SQUID, VARNISH, compared, twenty};
use assay_testbed::pages::{HOSTILE, golden};
use assay_testbed::violations;

fn table<'a>(comparison: &'a Comparison, workload: &str, scope: &str) -> &'a MetricTable {
    comparison.tables.iter().find(|table| table.workload == workload && table.scope == scope).unwrap()
}

fn contrast<'a>(table: &'a MetricTable, metric: &str) -> &'a Contrast {
    &table.rows.iter().find(|row| row.metric == metric).unwrap().contrasts[0]
}

fn words(comparison: &Comparison, scenario: &str, metric: &str) -> String {
    let scenario = comparison.scenarios.iter().find(|found| found.name == scenario).unwrap();
    scenario.cells.iter().find(|cell| cell.metric == metric).unwrap().text.clone()
}

#[test]
fn the_better_performer_of_each_scenario_falls_out_of_the_runs() {
    let found = compared(&Plan::default());
    let names: Vec<&str> = found.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    assert_eq!(names, ["image", "mixed: top1", "mixed: inc"], "a ramp is a scenario of its own");
    assert!(words(&found, "image", "response_mean_ms").starts_with("varnish, "));
    assert!(words(&found, "image", "dhr").starts_with("ats, "), "{}", words(&found, "image", "dhr"));
    assert!(words(&found, "image", "cpu_us_per_request").starts_with("varnish, "));
    assert!(words(&found, "image", "rss_peak_bytes").starts_with("ats, "));
    let saturation = words(&found, "mixed: inc", "saturation_per_s");
    assert!(saturation.starts_with("varnish, at least "), "{saturation}");
    let image = &found.scenarios[0];
    assert!(
        !image.cells.iter().any(|cell| cell.metric == "saturation_per_s"),
        "there the load does not rise"
    );
    let speaks =
        |about: &str| found.verdict.iter().find(|response| response.question.contains(about)).unwrap();
    assert!(
        speaks("carries more").text.contains("varnish is better in mixed: inc"),
        "{:?}",
        speaks("carries")
    );
    assert!(speaks("wrong").text.starts_with("ats: errors in up to"), "{:?}", speaks("wrong"));
}

#[test]
fn what_differs_between_subjects_is_listed_and_what_is_alike_is_not() {
    let found = compared(&Plan { repetitions: 1, ..Plan::default() });
    let names: Vec<&str> = found.differences.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["proxy", "version", "disk", "storage"]);
    assert_eq!(found.differences[2].values, [None, Some("1GB".to_owned())]);
}

#[test]
fn one_run_each_is_measured_and_not_judged() {
    let found = compared(&Plan { repetitions: 1, ..Plan::default() });
    assert_eq!(words(&found, "image", "dhr"), "not enough runs");
    let dhr = contrast(table(&found, "image", "top1"), "dhr");
    assert_eq!((dhr.verdict, dhr.pairs, dhr.interval), (Verdict::NotEnoughRuns, 1, None));
    assert!(dhr.difference.unwrap() > 0.05 && dhr.why.is_some());
    let why = found.verdict.iter().find(|said| said.question == "Why are there not enough runs?").unwrap();
    assert!(
        why.text.starts_with("One repetition has a run of both that counts; it takes 3 to tell"),
        "{}",
        why.text
    );
    assert!(why.text.contains("--seed"), "{}", why.text);
}

#[test]
fn why_runs_are_not_enough_is_said_where_they_are_not_and_nowhere_else() {
    let again = experiments::Kind { label: "again", memory_mb: VARNISH.memory_mb + 1, ..VARNISH };
    let alike = Plan { subjects: &[VARNISH, again], workloads: &["image"], ..Plan::default() };
    for (plan, is_short) in [(Plan { repetitions: 1, ..Plan::default() }, true), (alike, false)] {
        let found = compared(&plan);
        let cells = found.scenarios.iter().flat_map(|scenario| &scenario.cells);
        assert_eq!(cells.filter(|cell| cell.text == "not enough runs").count() > 0, is_short);
        let why = found.verdict.iter().any(|said| said.question == "Why are there not enough runs?");
        assert_eq!(why, is_short, "{:?}", found.verdict);
    }
}

#[test]
fn a_subject_against_itself_shows_no_difference() {
    let again = experiments::Kind { label: "again", memory_mb: VARNISH.memory_mb + 1, ..VARNISH };
    let found = compared(&Plan { subjects: &[VARNISH, again], workloads: &["image"], ..Plan::default() });
    for table in &found.tables {
        for row in &table.rows {
            let verdict = row.contrasts[0].verdict;
            assert!(!matches!(verdict, Verdict::Better | Verdict::Worse), "{}: {verdict:?}", row.metric);
        }
    }
}

#[test]
fn cells_that_do_not_count_are_left_out_with_their_reason() {
    let tmp = tempfile::tempdir().unwrap();
    let mut info = experiments::write(tmp.path(), &Plan { workloads: &["image"], ..Plan::default() });
    info.cells[0].state = CellState::Invalid;
    info.cells[1].state = CellState::Failed;
    info.cells[1].why = Some("varnishd: Child died signal=6".into());
    info.cells[2].state = CellState::Waiting;
    info.cells[5].run = Some("cells/nowhere".into());
    info.cells[6].subject = "nobody".into();
    info.finished = false;
    experiments::save(tmp.path(), &info);
    std::fs::write(tmp.path().join(info.cells[7].run.as_ref().unwrap()).join("robots.parquet"), "x").unwrap();
    let found = compare::experiment(tmp.path()).unwrap();
    let why = |index: usize| {
        let id = &info.cells[index].id;
        found.left_out.iter().find(|cell| cell.cell == *id).map(|cell| cell.why.clone()).unwrap()
    };
    assert_eq!(why(0), "its numbers are not known");
    assert_eq!(why(1), "it failed: varnishd: Child died signal=6");
    assert_eq!(why(2), "it has not run yet");
    assert!(why(5).contains("not a run directory"), "{}", why(5));
    assert!(why(6).contains("nobody") && why(7).contains("robots.parquet"));
    assert_eq!(found.left_out.len(), 6);
    assert_eq!(words(&found, "image", "dhr"), "not enough runs", "two repetitions have both");
    assert!(found.to_terminal(None, &Style { colour: false, width: 100 }).contains("Child died"));
    let page = found.to_html().unwrap();
    assert!(page.contains("Where nothing else is said, “not enough runs” means:"), "said in every row");
}

#[test]
fn a_run_of_another_stream_is_not_compared() {
    let tmp = tempfile::tempdir().unwrap();
    let info = experiments::write(tmp.path(), &Plan { workloads: &["image"], ..Plan::default() });
    let dir = assay_record::dir::RunDir::open(&tmp.path().join(info.cells[9].run.as_ref().unwrap())).unwrap();
    let mut head = dir.read_info().unwrap();
    let digest = std::mem::replace(&mut head.stream_digest, "another".into());
    dir.write_info(&head).unwrap();
    let found = compare::experiment(tmp.path()).unwrap();
    assert_eq!(found.left_out.len(), 1);
    assert!(found.left_out[0].why.contains("another stream"), "{:?}", found.left_out);
    head.stream_digest = digest;
    head.stream_version = 2;
    dir.write_info(&head).unwrap();
    let found = compare::experiment(tmp.path()).unwrap();
    assert!(found.left_out[0].why.contains("version"), "{:?}", found.left_out);
}

#[test]
fn where_both_runs_kept_their_log_the_same_requests_are_compared() {
    let plan = Plan { workloads: &["image"], logs: true, ..Plan::default() };
    let found = compared(&plan);
    let by_request = contrast(table(&found, "image", "top1"), "response_mean_ms").clone();
    // Of 200, each subject lost every seventh, and not the same ones.
    assert_eq!(by_request.common_xacts, Some(5 * (200 - 28 - 29)));
    assert_eq!((by_request.pairs, by_request.verdict), (5, Verdict::Worse));
    assert!((by_request.ratio.unwrap() - 4.3 / 3.4).abs() < 0.1, "{by_request:?}");
    assert_eq!(contrast(table(&found, "image", "top1"), "response_p50_ms").common_xacts, None);
}

#[test]
fn several_subjects_are_compared_with_the_first_and_all_with_each_other() {
    let plan = Plan {
        subjects: &[VARNISH, ATS, SQUID],
        workloads: &["image"],
        conditions: &["plain", "far"],
        ..Plan::default()
    };
    let found = compared(&plan);
    assert_eq!(found.scenarios.len(), 2);
    assert_eq!(found.scenarios[1].name, "image, far");
    assert!(
        found.scenarios.iter().flat_map(|scenario| &scenario.cells).all(|cell| cell.contrasts.len() == 3)
    );
    assert!(found.tables.iter().flat_map(|table| &table.rows).all(|row| row.contrasts.len() == 2));
    let page = found.to_html().unwrap();
    assert!(page.contains("image, far") && page.contains("squid"));
}

#[test]
fn every_comparison_is_true_to_the_schema_and_comes_back_as_it_was() {
    let schema = Comparison::json_schema();
    for repetitions in [1, 3] {
        let found = compared(&Plan { repetitions, ..Plan::default() });
        let text = found.to_json().unwrap();
        let document = serde_json::from_str(&text).unwrap();
        assert_eq!(violations(&schema, &document), [""; 0]);
        let back: Comparison = serde_json::from_str(&text).unwrap();
        assert_eq!(back.to_json().unwrap(), text);
        assert_eq!(back.to_markdown(), found.to_markdown());
    }
}

#[test]
fn text_and_markdown_stay_as_they_are() {
    let mut found = compared(&Plan::default());
    found.experiment = "lab/varnish-vs-ats".into();
    let path = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    golden(&path("comparison-100.txt"), &found.to_terminal(None, &Style { colour: false, width: 100 }));
    golden(&path("comparison.md"), &found.to_markdown());
}

#[test]
fn the_page_loads_nothing_from_the_network_and_names_cannot_become_markup() {
    let hostile = experiments::Kind { label: HOSTILE, ..ATS };
    let plan = Plan {
        name: HOSTILE,
        title: HOSTILE,
        subjects: &[VARNISH, hostile],
        workloads: &[],
        ..Plan::default()
    };
    let tmp = tempfile::tempdir().unwrap();
    let mut info = experiments::write(tmp.path(), &plan);
    info.workloads = vec![HOSTILE.into()];
    info.conditions[0].label = HOSTILE.into();
    experiments::save(tmp.path(), &info);
    let found = compare::experiment(tmp.path()).unwrap();
    let empty = found.to_html().unwrap();
    assert!(!empty.contains(HOSTILE) && empty.contains("No run counts yet"));
    assert!(!found.to_markdown().contains(HOSTILE));
    let page = compared(&Plan { name: HOSTILE, repetitions: 1, ..Plan::default() }).to_html().unwrap();
    assert_eq!(page.matches("</script>").count(), 2);
    for reference in
        ["src=\"http", "href=\"http", "src=\"//", "url(http", "@import", "<link", "<iframe", "<img"]
    {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.contains("default-src 'none'") && page.len() < 3_000_000);
}

#[test]
fn a_directory_without_an_experiment_is_refused() {
    let tmp = tempfile::tempdir().unwrap();
    assert!(!compare::is_experiment(tmp.path()));
    let error = compare::experiment(tmp.path()).unwrap_err().to_string();
    assert!(error.contains("not an experiment directory") && error.contains("assay lab"), "{error}");
    std::fs::write(tmp.path().join("experiment.json"), "{").unwrap();
    assert!(compare::experiment(tmp.path()).unwrap_err().to_string().contains("damaged"));
}

#[test]
fn documents_are_written_into_the_experiment() {
    let tmp = tempfile::tempdir().unwrap();
    experiments::write(tmp.path(), &Plan { repetitions: 1, workloads: &["image"], ..Plan::default() });
    let found = compare::experiment(tmp.path()).unwrap();
    assert_eq!(found.write_json(tmp.path()).unwrap(), tmp.path().join("comparison.json"));
    assert_eq!(found.write_html(tmp.path()).unwrap(), tmp.path().join("comparison.html"));
    assert!(!tmp.path().join("comparison.partial").exists());
}

#[test]
fn twenty_subjects_fit_on_a_page() {
    let subjects = twenty();
    let plan = Plan { repetitions: 1, subjects: &subjects, workloads: &["mixed"], ..Plan::default() };
    let page = compared(&plan).to_html().unwrap();
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    assert!(!page.contains("Each against each"), "190 columns are for the document");
}

/// Leaves pages in `ASSAY_PAGES`, to be looked at.
#[test]
fn comparisons_can_be_kept_to_be_looked_at() {
    let Some(keep) = std::env::var_os("ASSAY_PAGES") else { return };
    let keep = Path::new(&keep);
    let five = Plan { workloads: &["best-effort", "image", "html", "download", "mixed"], ..Plan::default() };
    std::fs::write(keep.join("comparison-two.html"), compared(&five).to_html().unwrap()).unwrap();
    let three = Plan { subjects: &[VARNISH, ATS, SQUID], ..Plan::default() };
    std::fs::write(keep.join("comparison-three.html"), compared(&three).to_html().unwrap()).unwrap();
    let hour = Plan { repetitions: 1, subjects: &twenty(), workloads: &["hour"], ..Plan::default() };
    std::fs::write(keep.join("comparison-twenty-hours.html"), compared(&hour).to_html().unwrap()).unwrap();
    let mut held = compared(&Plan { repetitions: 3, workloads: &["mixed"], ..Plan::default() });
    held.incomparable = vec!["ats and varnish in mixed: made up, to be looked at.".into()];
    held.check_tolerances(&["5%".parse().unwrap()]);
    std::fs::write(keep.join("comparison-held.html"), held.to_html().unwrap()).unwrap();
    let one = Plan { repetitions: 1, ..Plan::default() };
    std::fs::write(keep.join("comparison-one-run.html"), compared(&one).to_html().unwrap()).unwrap();
}
