//! What a run leaves behind, however it ends.

use std::fs::OpenOptions;
use std::io::Write;

use assay_record::dir::{RunDir, RunDirError};
use assay_record::run::RunInfo;
use assay_record::series::{Series, SeriesWriter};
use assay_table::FileError;

use crate::sample;

fn new_run() -> (tempfile::TempDir, RunDir) {
    let tmp = tempfile::tempdir().unwrap();
    let dir = RunDir::create(&tmp.path().join("run")).unwrap();
    dir.write_info(&RunInfo::default()).unwrap();
    (tmp, dir)
}

fn write(dir: &RunDir, series: &Series) -> SeriesWriter {
    let mut writer = SeriesWriter::create(dir).unwrap();
    series.robots.iter().for_each(|interval| writer.robots(interval).unwrap());
    series.origins.iter().for_each(|interval| writer.origins(interval).unwrap());
    series.host.iter().for_each(|interval| writer.host(interval).unwrap());
    series.proxy.iter().for_each(|sample| {
        writer.proxy_counters(&sample.cache, sample.at_ms, &sample.counters).unwrap();
    });
    series.examples.iter().for_each(|example| writer.example(example).unwrap());
    series.threads.iter().for_each(|interval| writer.thread(interval).unwrap());
    series.stalls.iter().for_each(|stall| writer.stall(stall).unwrap());
    series.baselines.iter().for_each(|baseline| writer.baseline(baseline).unwrap());
    series.network.iter().for_each(|interval| writer.network(interval).unwrap());
    series.processors.chunks(2).for_each(|both| writer.processors(both).unwrap());
    series.machine.iter().for_each(|interval| writer.machine(interval).unwrap());
    series.adapted.iter().for_each(|adapted| writer.adapted(adapted).unwrap());
    series.links.iter().for_each(|interval| writer.link(interval).unwrap());
    writer.disks(&series.disks).unwrap();
    writer.interfaces(&series.interfaces).unwrap();
    writer.blocks(&series.blocks).unwrap();
    writer
}

#[test]
fn what_was_measured_comes_back_from_parquet_in_full() {
    let (_tmp, dir) = new_run();
    let series = sample::series();
    write(&dir, &series).finish().unwrap();
    assert!(!dir.journal_path().exists());
    assert_eq!(Series::read(&dir).unwrap(), series);
}

#[test]
fn what_was_measured_can_be_gone_through_whether_the_run_ended_or_not() {
    let (_tmp, dir) = new_run();
    let series = sample::series();
    let writer = write(&dir, &series);
    let gone_through = || {
        let mut seen = Series::default();
        dir.for_each_entry(|entry| seen.take(entry.clone())).unwrap();
        seen
    };
    assert_eq!(gone_through(), series, "journal");
    writer.finish().unwrap();
    assert_eq!(gone_through(), series, "tables");
}

#[test]
fn a_run_that_did_not_watch_itself_can_still_be_read() {
    let (_tmp, dir) = new_run();
    let watched = sample::series();
    let Series { robots, origins, host, proxy, examples, .. } = watched;
    let series = Series { robots, origins, host, proxy, examples, ..Series::default() };
    write(&dir, &series).finish().unwrap();
    let own = ["threads", "stalls", "baselines", "network", "processors"];
    for table in
        own.into_iter().chain(["machine", "disks", "interfaces", "blocks", "seeks", "adapted", "links"])
    {
        std::fs::remove_file(dir.path().join(format!("{table}.parquet"))).unwrap();
    }
    // Nor did it keep checksums, which would say that something is gone.
    assert!(Series::read(&dir).is_err());
    std::fs::remove_file(dir.checksums_path()).unwrap();
    assert_eq!(Series::read(&dir).unwrap(), series);
}

#[test]
fn an_empty_run_is_a_run() {
    let (_tmp, dir) = new_run();
    SeriesWriter::create(&dir).unwrap().finish().unwrap();
    assert_eq!(Series::read(&dir).unwrap(), Series::default());
}

#[test]
fn a_killed_run_is_readable_up_to_its_last_whole_line_and_can_be_finished() {
    let (_tmp, dir) = new_run();
    let series = sample::series();
    drop(write(&dir, &series));
    let mut journal = OpenOptions::new().append(true).open(dir.journal_path()).unwrap();
    journal.write_all(b"{\"robots\":{\"start_ms\":20").unwrap();

    assert_eq!(Series::read(&dir).unwrap(), series, "as it lies");
    assert!(dir.recover().unwrap());
    assert_eq!(Series::read(&dir).unwrap(), series, "recovered");
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
    let error = Series::read(&dir).unwrap_err();
    assert!(matches!(error, RunDirError::File(FileError::Damaged { .. })));
    assert!(error.to_string().contains("line 1"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_that_says_what_to_do() {
    let (_tmp, dir) = new_run();
    std::os::unix::fs::symlink("/dev/full", dir.journal_path()).unwrap();
    let mut writer = SeriesWriter::create(&dir).unwrap();
    let error = writer.robots(&sample::robots(0, 0)).unwrap_err().to_string();
    assert!(error.contains("disk is full") && error.contains("journal.jsonl"), "{error}");

    let (_tmp, dir) = new_run();
    std::os::unix::fs::symlink("/dev/full", dir.path().join("histograms.parquet.partial")).unwrap();
    let error = write(&dir, &sample::series()).finish().unwrap_err().to_string();
    assert!(error.contains("disk is full"), "{error}");
    assert_eq!(Series::read(&dir).unwrap(), sample::series(), "the journal is still there");
}
