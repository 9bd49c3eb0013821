//! What is taken along is what the run directory holds, in the eyes of other programs.

use assay_record::layout;
use assay_report::ReportError;
use assay_report::export::{self, TableForm};
use assay_report::summary::Summary;

use crate::python::{python, run};
use crate::synthetic::{self, Story};

fn table(run: &synthetic::Run, name: &str, form: TableForm) -> String {
    let mut out = Vec::new();
    export::table(&run.dir, name, form, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_table_goes_out_whole_in_both_forms() {
    let run = synthetic::run(Story::Troubled);
    let out = tempfile::tempdir().unwrap();
    for (form, extension) in [(TableForm::Csv, "csv"), (TableForm::JsonLines, "ndjson")] {
        let exported = export::tables(&run.dir, out.path(), form).unwrap();
        assert!(exported.left_out.is_empty(), "{:?}", exported.left_out);
        // All but the log of xacts, which this run has not, and the summary beside them.
        assert_eq!(exported.files.len(), layout::tables().len());
        let robots = std::fs::read_to_string(out.path().join(format!("robots.{extension}"))).unwrap();
        assert_eq!(robots, table(&run, "robots", form));
    }
    let csv = table(&run, "robots.parquet", TableForm::Csv);
    let names: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let documented = layout::tables();
    let documented = documented.iter().find(|table| table.name == "robots").unwrap();
    assert_eq!(names, documented.columns.iter().map(|column| column.name).collect::<Vec<_>>());
    let column = names.iter().position(|name| *name == "sent").unwrap();
    let sent: u64 =
        csv.lines().skip(1).map(|row| row.split(',').nth(column).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(sent, Summary::from_run(&run.dir).unwrap().total.counts.requests);
}

#[test]
fn a_run_that_was_killed_can_be_taken_along_and_stays_as_it_is() {
    let run = synthetic::run(Story::Killed);
    let before = std::fs::read(run.dir.journal_path()).unwrap();
    assert!(table(&run, "times", TableForm::Csv).lines().count() > 10);
    assert_eq!(std::fs::read(run.dir.journal_path()).unwrap(), before);
    assert!(!run.dir.path().join("times.parquet").exists());
}

#[test]
fn a_table_that_is_damaged_is_left_out_and_named() {
    let run = synthetic::run(Story::Direct);
    let out = tempfile::tempdir().unwrap();
    std::fs::write(run.dir.path().join("host.parquet"), "PAR1").unwrap();
    std::fs::remove_file(run.dir.path().join("origins.parquet")).unwrap();
    let exported = export::tables(&run.dir, out.path(), TableForm::Csv).unwrap();
    let said = exported.left_out.join("\n");
    assert!(said.contains("host.parquet") && said.contains("origins.parquet"), "{said}");
    assert!(!out.path().join("host.csv").exists() && out.path().join("robots.csv").exists());
}

#[test]
fn a_table_that_there_is_not_is_an_error_that_names_those_that_there_are() {
    let run = synthetic::run(Story::Nothing);
    let error = export::table(&run.dir, "robot", TableForm::Csv, &mut Vec::new()).unwrap_err();
    assert!(matches!(error, ReportError::NoSuchTable { .. }));
    assert!(error.to_string().contains("histograms"), "{error}");
}

#[test]
fn the_summary_in_long_form_has_every_figure_of_every_phase() {
    let run = synthetic::run(Story::Good);
    let out = tempfile::tempdir().unwrap();
    export::tables(&run.dir, out.path(), TableForm::Csv).unwrap();
    let text = std::fs::read_to_string(out.path().join("summary.csv")).unwrap();
    let summary = Summary::from_run(&run.dir).unwrap();
    let p99 = summary.phases[3].figures.response_time_ms.hit.p99.unwrap();
    assert!(text.contains(&format!("\ntop1,response_time_ms.hit.p99,{p99}\n")), "{text}");
    assert!(text.contains(&format!("\ntotal,requests,{}\n", summary.total.counts.requests)));
}

/// Reads the log with HdrHistogram's own Python library and adds up what it finds.
const DECODE: &str = r"
import json, sys
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
reader = HistogramLogReader(sys.argv[1], HdrHistogram(1, 3600000000, 3))
sums, tags = {}, 0
while True:
    one = reader.get_next_interval_histogram()
    if one is None:
        break
    tags += 1
    into = sums.setdefault(one.get_tag(), HdrHistogram(1, 3600000000, 3))
    into.add(one)
print(json.dumps({tag: [h.get_total_count(), h.get_max_value()] for tag, h in sums.items()}))
";

#[test]
fn the_log_of_times_is_read_by_hdrhistograms_own_tools() {
    let run_dir = synthetic::run(Story::Good);
    let mut out = Vec::new();
    export::hdr_log(&run_dir.dir, &mut out).unwrap();
    let text = String::from_utf8(out.clone()).unwrap();
    assert!(text.contains("#[Histogram log format version 1.3]\n"));
    assert!(text.contains("\nTag=top1/robots/response/hit,"), "{}", &text[..400]);
    let Some(python) = python() else { return };
    let place = tempfile::tempdir().unwrap();
    let (log, script) = (place.path().join("times.hlog"), place.path().join("decode.py"));
    std::fs::write(&log, out).unwrap();
    std::fs::write(&script, DECODE).unwrap();
    let text = run(&python, &[script.as_os_str(), log.as_os_str()], place.path());
    let decoded: serde_json::Value = serde_json::from_str(&text).unwrap();
    let summary = Summary::from_run(&run_dir.dir).unwrap();
    for phase in &summary.phases {
        let hits = &phase.figures.response_time_ms.hit;
        let found = &decoded[format!("{}/robots/response/hit", phase.name)];
        assert_eq!(found[0].as_u64(), Some(hits.count), "{}", phase.name);
        // Its buckets are as wide as ours; its percentiles round ranks otherwise.
        let (theirs, ours) = (found[1].as_f64().unwrap(), hits.max.unwrap() * 1000.0);
        assert!((theirs - ours).abs() <= ours / 1000.0 + 1.0, "{}: {theirs} and {ours}", phase.name);
    }
}
