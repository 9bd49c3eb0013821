//! What a run leaves behind, however it ends.

use std::fs::OpenOptions;
use std::io::Write;

use assay_measurement::measured::{Measured, Series};
use assay_record::dir::{RunDir, RunDirError};
use assay_record::run::RunInfo;
use assay_record::series::SeriesWriter;
use assay_record::table::FileError;

use crate::sample;

fn new_run() -> (tempfile::TempDir, RunDir) {
    let tmp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&tmp.path().join("run")).unwrap();
    dir.write_info(&RunInfo::default()).unwrap();
    (tmp, dir)
}

fn write(dir: &RunDir, series: &Series) -> SeriesWriter {
    let mut writer = SeriesWriter::create(dir).unwrap();
    series.clone().into_measured().for_each(|measured| writer.keep(&measured).unwrap());
    writer
}

#[test]
fn what_was_measured_comes_back_from_parquet_in_full() {
    let (_tmp, dir) = new_run();
    let series = sample::series();
    write(&dir, &series).finish().unwrap();
    assert!(!dir.journal_path().exists());
    assert_eq!(dir.read_series().unwrap(), series);
}

#[test]
fn what_was_measured_can_be_gone_through_whether_the_run_ended_or_not() {
    let (_tmp, dir) = new_run();
    let series = sample::series();
    let writer = write(&dir, &series);
    let gone_through = || {
        let mut seen = Series::default();
        dir.for_each_measured(|measured| seen.take(measured)).unwrap();
        seen
    };
    assert_eq!(gone_through(), series, "journal");
    writer.finish().unwrap();
    assert_eq!(gone_through(), series, "tables");
}

#[test]
fn an_empty_run_is_a_run() {
    let (_tmp, dir) = new_run();
    SeriesWriter::create(&dir).unwrap().finish().unwrap();
    assert_eq!(dir.read_series().unwrap(), Series::default());
}

#[test]
fn a_killed_run_is_readable_up_to_its_last_whole_line_and_can_be_finished() {
    let (_tmp, dir) = new_run();
    let series = sample::series();
    drop(write(&dir, &series));
    let mut journal = OpenOptions::new().append(true).open(dir.journal_path()).unwrap();
    journal.write_all(b"{\"robots\":{\"start_ms\":20").unwrap();

    assert_eq!(dir.read_series().unwrap(), series, "as it lies");
    assert!(dir.recover().unwrap());
    assert_eq!(dir.read_series().unwrap(), series, "recovered");
    let info = dir.read_info().unwrap();
    assert!(info.finished && info.verdict.partial);
    assert!(info.verdict.warnings[0].contains("killed"));
    assert!(!dir.recover().unwrap(), "nothing is left to do");
}

#[test]
fn a_finished_run_has_nothing_to_recover() {
    let (_tmp, dir) = new_run();
    write(&dir, &sample::series()).finish().unwrap();
    let info = RunInfo { finished: true, ..RunInfo::default() };
    dir.write_info(&info).unwrap();
    assert!(!dir.recover().unwrap());
    assert_eq!(dir.read_info().unwrap(), info);
}

#[test]
fn damage_in_the_middle_of_a_journal_is_said_with_its_line() {
    let (_tmp, dir) = new_run();
    std::fs::write(dir.journal_path(), "{\"nonsense\":1}\n{}\n").unwrap();
    let error = dir.read_series().unwrap_err();
    assert!(matches!(error, RunDirError::File(FileError::Damaged { .. })));
    assert!(error.to_string().contains("line 1"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_that_says_what_to_do() {
    let (_tmp, dir) = new_run();
    std::os::unix::fs::symlink("/dev/full", dir.journal_path()).unwrap();
    let mut writer = SeriesWriter::create(&dir).unwrap();
    let error = writer.keep(&Measured::Robots(sample::robots(0, 0).into())).unwrap_err().to_string();
    assert!(error.contains("disk is full") && error.contains("journal.jsonl"), "{error}");

    let (_tmp, dir) = new_run();
    std::os::unix::fs::symlink("/dev/full", dir.path().join("histograms.parquet.partial")).unwrap();
    let error = write(&dir, &sample::series()).finish().unwrap_err().to_string();
    assert!(error.contains("disk is full"), "{error}");
    assert_eq!(dir.read_series().unwrap(), sample::series(), "the journal is still there");
}
