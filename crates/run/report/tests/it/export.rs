//! What is taken along is what the run directory holds.

use assay_record::layout;
use assay_report::ReportError;
use assay_report::export::{self, TableForm};
use assay_report::summary::Summary;

use crate::synthetic::{self, Story};

fn table(run: &synthetic::Run, name: &str, form: TableForm) -> String {
    let mut out = Vec::new();
    export::table(&run.dir, name, form, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_table_goes_out_whole_in_both_forms() {
    let run = synthetic::make(Story::Troubled, 2);
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

#[test]
fn the_log_of_times_says_its_version_and_has_a_tag_for_each_phase_and_class() {
    let run = synthetic::run(Story::Good);
    let mut out = Vec::new();
    export::hdr_log(&run.dir, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("#[Histogram log format version 1.3]\n"));
    assert!(text.contains("\nTag=top1/robots/response/hit,"), "{}", &text[..400]);
}
