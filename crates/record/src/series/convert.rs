//! How a journal becomes Parquet files.

use std::path::Path;

use super::{Entry, ProxySample, read_journal};
use crate::checksums::Checksums;
use crate::columns::{self, TableSpec, adapted, health, host};
use crate::dir::{RunDir, RunDirError};
use assay_measurement::error_kind::ErrorExample;
use assay_measurement::health::{Baseline, LinkInterval, ThreadInterval};
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::interval::{OriginInterval, RobotInterval};
use assay_measurement::machine::BlockInterval;
use assay_table::{Cell, FileError, TableWriter};

/// Turns a journal into Parquet, and removes it when everything else is in its place.
pub(super) fn convert(dir: &RunDir) -> Result<(), RunDirError> {
    let journal = dir.journal_path();
    let examples = convert_to(dir, dir.path(), &mut Err)?;
    let path = dir.examples_path();
    let text = serde_json::to_vec_pretty(&examples).map_err(|e| FileError::write(&path, e.into()))?;
    dir.write_whole(&path, &text)?;
    let mut sums = Checksums::default();
    for table in columns::SERIES {
        sums.add(&dir.path().join(table.file))?;
    }
    sums.add(&path)?;
    if dir.xacts_path().exists() {
        sums.add(&dir.xacts_path())?;
    }
    sums.write(dir)?;
    Ok(std::fs::remove_file(&journal).map_err(|source| FileError::write(&journal, source))?)
}

/// Writes the tables of a journal into a directory; examples are no table, and are handed back.
pub(super) fn convert_to(
    dir: &RunDir,
    out: &Path,
    bad: &mut dyn FnMut(RunDirError) -> Result<(), RunDirError>,
) -> Result<Vec<ErrorExample>, RunDirError> {
    let mut tables = Tables::create(out)?;
    let mut examples: Vec<ErrorExample> = Vec::new();
    read_journal(&dir.journal_path(), bad, |entry| match entry {
        Entry::Example(example) => {
            examples.push(example.into_owned());
            Ok(())
        }
        entry => Ok(tables.take(&entry)?),
    })?;
    tables.finish()?;
    Ok(examples)
}

/// The Parquet files of the series, being written.
struct Tables {
    robots: TableWriter,
    origins: TableWriter,
    classes: TableWriter,
    errors: TableWriter,
    times: TableWriter,
    histograms: TableWriter,
    host: TableWriter,
    proxy: TableWriter,
    threads: TableWriter,
    stalls: TableWriter,
    baselines: TableWriter,
    network: TableWriter,
    processors: TableWriter,
    adapted: TableWriter,
    machine: TableWriter,
    disks: TableWriter,
    interfaces: TableWriter,
    blocks: TableWriter,
    seeks: TableWriter,
    block_intervals: u64,
    links: TableWriter,
    robot_intervals: u64,
    origin_intervals: u64,
    thread_intervals: u64,
    baseline_count: u64,
    link_intervals: u64,
    histogram_count: u64,
    /// Knows where buckets end.
    ruler: Histogram,
}

/// Which interval a histogram belongs to.
#[derive(Clone, Copy)]
struct Owner {
    side: &'static str,
    interval: u64,
    start_ms: u64,
    phase: u16,
}

impl Tables {
    fn create(out: &Path) -> Result<Self, FileError> {
        let create = |spec: &TableSpec| TableWriter::create(&out.join(spec.file), (spec.columns)());
        Ok(Self {
            robots: create(&columns::ROBOTS)?,
            origins: create(&columns::ORIGINS)?,
            classes: create(&columns::CLASSES)?,
            errors: create(&columns::ERRORS)?,
            times: create(&columns::TIMES)?,
            histograms: create(&columns::HISTOGRAMS)?,
            host: create(&host::HOST)?,
            proxy: create(&columns::PROXY)?,
            threads: create(&health::THREADS)?,
            stalls: create(&health::STALLS)?,
            baselines: create(&health::BASELINES)?,
            network: create(&host::NETWORK)?,
            processors: create(&health::PROCESSORS)?,
            adapted: create(&adapted::ADAPTED)?,
            machine: create(&host::MACHINE)?,
            disks: create(&host::DISKS)?,
            interfaces: create(&host::INTERFACES)?,
            blocks: create(&host::BLOCKS)?,
            seeks: create(&host::SEEKS)?,
            block_intervals: 0,
            links: create(&health::LINKS)?,
            robot_intervals: 0,
            origin_intervals: 0,
            thread_intervals: 0,
            baseline_count: 0,
            link_intervals: 0,
            histogram_count: 0,
            ruler: Histogram::new(),
        })
    }

    /// A row, or some, of whatever it is.
    fn take(&mut self, entry: &Entry<'_>) -> Result<(), FileError> {
        match entry {
            Entry::Robots(interval) => self.robots(interval),
            Entry::Origins(interval) => self.origins(interval),
            Entry::Host(interval) => self.host.push(&host::host_row(interval)),
            Entry::Proxy(sample) => self.proxy(sample),
            // Examples are no table.
            Entry::Example(_) => Ok(()),
            Entry::Thread(interval) => self.thread(interval),
            Entry::Stall(stall) => self.stalls.push(&health::stall_row(stall)),
            Entry::Baseline(baseline) => self.baseline(baseline),
            Entry::Adapted(decision) => self.adapted.push(&adapted::row(decision)),
            Entry::Link(interval) => self.link(interval),
            Entry::Network(interval) => self.network.push(&host::network_row(interval)),
            Entry::Processors(intervals) => intervals
                .iter()
                .try_for_each(|interval| self.processors.push(&health::processor_row(interval))),
            Entry::Machine(interval) => self.machine.push(&host::machine_row(interval)),
            Entry::Disks(intervals) => {
                intervals.iter().try_for_each(|interval| self.disks.push(&host::disk_row(interval)))
            }
            Entry::Interfaces(intervals) => {
                intervals.iter().try_for_each(|interval| self.interfaces.push(&host::interface_row(interval)))
            }
            Entry::Blocks(intervals) => intervals.iter().try_for_each(|interval| self.block(interval)),
        }
    }

    fn robots(&mut self, interval: &RobotInterval) -> Result<(), FileError> {
        let number = self.robot_intervals;
        self.robot_intervals += 1;
        self.robots.push(&columns::robots_row(number, interval))?;
        let owner =
            Owner { side: "robots", interval: number, start_ms: interval.start_ms, phase: interval.phase };
        let counts = &interval.counts;
        for (method, count) in &counts.by_method {
            self.class(owner, "method", method, *count)?;
        }
        for (request_type, count) in &counts.by_type {
            self.class(owner, "type", request_type, *count)?;
        }
        for (status, count) in &counts.by_status {
            self.class(owner, "status", &status.to_string(), *count)?;
        }
        for (kind, count) in &counts.errors {
            let mut row = owner.cells().to_vec();
            row.extend([Cell::Text(kind.name()), Cell::Uint(*count)]);
            self.errors.push(&row)?;
        }
        for (metric, class, histogram) in interval.histograms() {
            self.histogram(owner, metric, class, histogram)?;
        }
        Ok(())
    }

    fn origins(&mut self, interval: &OriginInterval) -> Result<(), FileError> {
        let number = self.origin_intervals;
        self.origin_intervals += 1;
        self.origins.push(&columns::origins_row(number, interval))?;
        let owner =
            Owner { side: "origins", interval: number, start_ms: interval.start_ms, phase: interval.phase };
        for (metric, class, histogram) in columns::origin_histograms(interval) {
            self.histogram(owner, metric, class, histogram)?;
        }
        Ok(())
    }

    fn thread(&mut self, interval: &ThreadInterval) -> Result<(), FileError> {
        let number = self.thread_intervals;
        self.thread_intervals += 1;
        self.threads.push(&health::thread_row(number, interval))?;
        let owner =
            Owner { side: "threads", interval: number, start_ms: interval.start_ms, phase: interval.phase };
        self.histogram(owner, "timer_lag", "all", &interval.timer_lag)
    }

    fn baseline(&mut self, baseline: &Baseline) -> Result<(), FileError> {
        let number = self.baseline_count;
        self.baseline_count += 1;
        self.baselines.push(&health::baseline_row(number, baseline))?;
        let owner = Owner { side: "baseline", interval: number, start_ms: 0, phase: 0 };
        self.histogram(owner, "timer_lag", "all", &baseline.lag)
    }

    fn link(&mut self, interval: &LinkInterval) -> Result<(), FileError> {
        let number = self.link_intervals;
        self.link_intervals += 1;
        self.links.push(&health::link_row(number, interval))?;
        let owner = Owner { side: "links", interval: number, start_ms: interval.start_ms, phase: 0 };
        self.histogram(owner, "lateness", "all", &interval.lateness)
    }

    fn class(&mut self, owner: Owner, by: &str, value: &str, count: u64) -> Result<(), FileError> {
        let mut row = owner.cells().to_vec();
        row.extend([Cell::Text(by), Cell::Text(value), Cell::Uint(count)]);
        self.classes.push(&row)
    }

    fn histogram(
        &mut self,
        owner: Owner,
        metric: &str,
        class: &str,
        histogram: &SparseHistogram,
    ) -> Result<(), FileError> {
        if *histogram == SparseHistogram::default() {
            return Ok(());
        }
        let [interval, start, phase] = owner.cells();
        let number = Cell::Uint(self.histogram_count);
        self.histogram_count += 1;
        let head =
            [number, Cell::Text(owner.side), interval, start, phase, Cell::Text(metric), Cell::Text(class)];
        let row = |values: [u64; 3]| {
            let mut row = [Cell::Null; 10];
            row[..7].copy_from_slice(&head);
            row[7..].copy_from_slice(&values.map(Cell::Uint));
            row
        };
        let count = histogram.buckets.iter().map(|(_, count)| count).sum();
        self.times.push(&row([count, histogram.sum_us, histogram.max_us]))?;
        for &(low_us, count) in &histogram.buckets {
            self.histograms.push(&row([low_us, self.ruler.bucket_high_us(low_us), count]))?;
        }
        Ok(())
    }

    fn block(&mut self, interval: &BlockInterval) -> Result<(), FileError> {
        let number = self.block_intervals;
        self.block_intervals += 1;
        self.blocks.push(&host::block_row(interval))?;
        host::seek_rows(number, interval).try_for_each(|row| self.seeks.push(&row))
    }

    fn proxy(&mut self, sample: &ProxySample) -> Result<(), FileError> {
        for (name, value) in &sample.counters {
            self.proxy.push(&[
                Cell::Uint(sample.at_ms),
                Cell::Text(name),
                Cell::Float(*value),
                Cell::Text(&sample.cache),
            ])?;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), FileError> {
        let Self { robots, origins, classes, errors, times, histograms, host, proxy, .. } = self;
        let Self { threads, stalls, baselines, network, processors, adapted, links, .. } = self;
        let Self { machine, disks, interfaces, blocks, seeks, .. } = self;
        let of_the_run = [robots, origins, classes, errors, times, histograms, host, proxy];
        let of_itself = [threads, stalls, baselines, network, processors, adapted, links];
        let below = [machine, disks, interfaces, blocks, seeks];
        for table in of_the_run.into_iter().chain(of_itself).chain(below) {
            table.finish()?;
        }
        Ok(())
    }
}

impl Owner {
    fn cells(self) -> [Cell<'static>; 3] {
        [Cell::Uint(self.interval), Cell::Uint(self.start_ms), Cell::Uint(self.phase.into())]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::series::SeriesWriter;
    use assay_table::Table;

    /// The recipe of the reference page, by hand.
    #[test]
    fn percentiles_can_be_computed_from_the_buckets_alone() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&tmp.path().join("run")).unwrap();
        let mut writer = SeriesWriter::create(&dir).unwrap();
        let mut merged = Histogram::new();
        for second in 0..3u64 {
            let mut histogram = Histogram::new();
            (0..2000).for_each(|value| histogram.record(value * value * (second + 1)));
            merged.merge(&histogram);
            let mut interval = RobotInterval { start_ms: second * 1000, ..RobotInterval::default() };
            interval.miss.response = histogram.to_sparse();
            writer.robots(&interval).unwrap();
        }
        writer.finish().unwrap();

        let table = |spec: &TableSpec| Table::read(&dir.path().join(spec.file), &spec.names()).unwrap();
        let (heads, buckets) = (table(&columns::TIMES), table(&columns::HISTOGRAMS));
        let max_us = (0..heads.rows()).map(|row| heads.uint("max_us", row).unwrap()).max().unwrap();
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for row in 0..buckets.rows() {
            assert_eq!(buckets.text("metric", row).unwrap(), "response");
            let high_us = buckets.uint("high_us", row).unwrap();
            *counts.entry(high_us).or_default() += buckets.uint("count", row).unwrap();
        }
        let total: u64 = counts.values().sum();
        for quantile in [0.5, 0.9, 0.99, 1.0] {
            let mut upto = 0;
            let reached = counts.iter().find(|(_, count)| {
                upto += **count;
                upto as f64 >= quantile * total as f64
            });
            assert_eq!(
                reached.map(|(high_us, _)| (*high_us).min(max_us)),
                merged.quantile_us(quantile),
                "{quantile}"
            );
        }
    }
}
