//! Conversion of a journal to Parquet files.

use std::collections::BTreeMap;
use std::path::Path;

use super::read_journal;
use crate::checksums::Checksums;
use crate::columns::{self, TableSpec, health, host, rows};
use crate::dir::{RunDir, RunDirError};
use crate::table::{Cell, FileError, TableWriter};
use assay_measurement::declared::Described;
use assay_measurement::error_kind::ErrorExample;
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::interval::{OriginInterval, RobotInterval};
use assay_measurement::machine::BlockInterval;
use assay_measurement::measured::{Measured, ProxySample};

/// Converts a journal to Parquet, and removes it once everything else is in place.
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

/// Writes the tables of a journal into a directory; examples have no table, and are returned.
pub(super) fn convert_to(
    dir: &RunDir,
    out: &Path,
    on_error: &mut dyn FnMut(RunDirError) -> Result<(), RunDirError>,
) -> Result<Vec<ErrorExample>, RunDirError> {
    let mut tables = Tables::create(out)?;
    let mut examples: Vec<ErrorExample> = Vec::new();
    read_journal(&dir.journal_path(), on_error, |measured| match measured {
        Measured::Example(example) => {
            examples.push(*example);
            Ok(())
        }
        measured => Ok(tables.push_measured(&measured)?),
    })?;
    tables.finish()?;
    Ok(examples)
}

/// The Parquet files of the series, being written.
struct Tables {
    /// Writers by file name, each with its number of rows so far.
    writers: BTreeMap<&'static str, (TableWriter, u64)>,
    /// Source of the upper ends of buckets.
    ruler: Histogram,
}

/// Interval that a histogram belongs to.
#[derive(Clone, Copy)]
struct Owner {
    side: &'static str,
    interval: u64,
    start_ms: u64,
    phase: u16,
}

impl Tables {
    fn create(out: &Path) -> Result<Self, FileError> {
        let create = |spec: &&'static TableSpec| {
            TableWriter::create(&out.join(spec.file), (spec.columns)()).map(|writer| (spec.file, (writer, 0)))
        };
        let writers = columns::SERIES.iter().map(create).collect::<Result<_, _>>()?;
        Ok(Self { writers, ruler: Histogram::new() })
    }

    /// Adds a row to one of the series' tables.
    fn push(&mut self, spec: &TableSpec, row: &[Cell<'_>]) -> Result<(), FileError> {
        let Some((writer, rows)) = self.writers.get_mut(spec.file) else { return Ok(()) };
        *rows += 1;
        writer.push(row)
    }

    /// Number of the next row of a table.
    fn next(&self, spec: &TableSpec) -> u64 {
        self.writers.get(spec.file).map_or(0, |(_, rows)| *rows)
    }

    /// Adds the rows of a measurement.
    fn push_measured(&mut self, measured: &Measured) -> Result<(), FileError> {
        match measured {
            Measured::Robots(interval) => self.robots(interval),
            Measured::Origins(interval) => self.origins(interval),
            Measured::Host(interval) => {
                let owner = self.numbered(&host::HOST, "host", &**interval, interval.start_ms, 0)?;
                self.histogram(owner, "waits", "all", &interval.waits)
            }
            Measured::Proxy(sample) => self.proxy(sample),
            // Examples are no table.
            Measured::Example(_) => Ok(()),
            Measured::Thread(interval) => {
                let (start_ms, phase) = (interval.start_ms, interval.phase);
                let owner = self.numbered(&health::THREADS, "threads", &**interval, start_ms, phase)?;
                self.histogram(owner, "timer_lag", "all", &interval.timer_lag)
            }
            Measured::Stall(stall) => self.plain(&health::STALLS, &**stall),
            Measured::Baseline(baseline) => {
                let owner = self.numbered(&health::BASELINES, "baseline", &**baseline, 0, 0)?;
                self.histogram(owner, "timer_lag", "all", &baseline.lag)
            }
            Measured::Adapted(decision) => self.plain(&columns::ADAPTED, &**decision),
            Measured::Link(interval) => {
                let owner = self.numbered(&health::LINKS, "links", &**interval, interval.start_ms, 0)?;
                self.histogram(owner, "lateness", "all", &interval.lateness)
            }
            Measured::Network(interval) => self.plain(&host::NETWORK, &**interval),
            Measured::Processors(all) => all.iter().try_for_each(|one| self.plain(&health::PROCESSORS, one)),
            Measured::Machine(interval) => self.plain(&host::MACHINE, &**interval),
            Measured::Disks(all) => all.iter().try_for_each(|one| self.plain(&host::DISKS, one)),
            Measured::Interfaces(all) => all.iter().try_for_each(|one| self.plain(&host::INTERFACES, one)),
            Measured::Blocks(all) => all.iter().try_for_each(|one| self.block(one)),
        }
    }

    /// Adds a row to a table whose columns are the fields of its type.
    fn plain<T: Described>(&mut self, spec: &TableSpec, item: &T) -> Result<(), FileError> {
        self.push(spec, &rows::row(None, item))
    }

    /// The same, for a table whose rows other tables reference by number.
    fn numbered<T: Described>(
        &mut self,
        spec: &TableSpec,
        side: &'static str,
        item: &T,
        start_ms: u64,
        phase: u16,
    ) -> Result<Owner, FileError> {
        let owner = Owner { side, interval: self.next(spec), start_ms, phase };
        self.push(spec, &rows::row(Some(owner.interval), item))?;
        Ok(owner)
    }

    fn robots(&mut self, interval: &RobotInterval) -> Result<(), FileError> {
        let number = self.next(&columns::ROBOTS);
        self.push(&columns::ROBOTS, &columns::robots_row(number, interval))?;
        let owner =
            Owner { side: "robots", interval: number, start_ms: interval.start_ms, phase: interval.phase };
        let counts = &interval.counts;
        for (method, count) in &counts.by_method {
            self.class(owner, "method", method, *count)?;
        }
        for (request_type, count) in &counts.by_type {
            self.class(owner, "type", request_type, *count)?;
        }
        for (agreed, count) in &counts.by_tls {
            self.class(owner, "tls", agreed, *count)?;
        }
        for (field, count) in &counts.changed_fields {
            self.class(owner, "changed field", field, *count)?;
        }
        for (status, count) in &counts.by_status {
            self.class(owner, "status", &status.to_string(), *count)?;
        }
        for (kind, count) in &counts.errors {
            let mut row = owner.cells().to_vec();
            row.extend([Cell::Text(kind.name()), Cell::Uint(*count)]);
            self.push(&columns::ERRORS, &row)?;
        }
        for (metric, class, histogram) in interval.times.histograms() {
            self.histogram(owner, metric, class, histogram)?;
        }
        Ok(())
    }

    fn origins(&mut self, interval: &OriginInterval) -> Result<(), FileError> {
        let number = self.next(&columns::ORIGINS);
        self.push(&columns::ORIGINS, &columns::origins_row(number, interval))?;
        let owner =
            Owner { side: "origins", interval: number, start_ms: interval.start_ms, phase: interval.phase };
        for (metric, class, histogram) in columns::origin_histograms(interval) {
            self.histogram(owner, metric, class, histogram)?;
        }
        Ok(())
    }

    fn class(&mut self, owner: Owner, by: &str, value: &str, count: u64) -> Result<(), FileError> {
        let mut row = owner.cells().to_vec();
        row.extend([Cell::Text(by), Cell::Text(value), Cell::Uint(count)]);
        self.push(&columns::CLASSES, &row)
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
        let number = Cell::Uint(self.next(&columns::TIMES));
        let head =
            [number, Cell::Text(owner.side), interval, start, phase, Cell::Text(metric), Cell::Text(class)];
        let row = |values: [u64; 3]| {
            let mut row = [Cell::Null; 10];
            row[..7].copy_from_slice(&head);
            row[7..].copy_from_slice(&values.map(Cell::Uint));
            row
        };
        let count = histogram.count();
        self.push(&columns::TIMES, &row([count, histogram.sum_us, histogram.max_us]))?;
        for &(low_us, count) in &histogram.buckets {
            let high_us = self.ruler.bucket_high_us(low_us);
            self.push(&columns::HISTOGRAMS, &row([low_us, high_us, count]))?;
        }
        Ok(())
    }

    fn block(&mut self, interval: &BlockInterval) -> Result<(), FileError> {
        let number = self.next(&host::BLOCKS);
        self.plain(&host::BLOCKS, interval)?;
        host::seek_rows(number, interval).try_for_each(|row| self.push(&host::SEEKS, &row))
    }

    fn proxy(&mut self, sample: &ProxySample) -> Result<(), FileError> {
        for (name, value) in &sample.counters {
            let (at, cache) = (Cell::Uint(sample.at_ms), Cell::Text(&sample.cache));
            self.push(&columns::PROXY, &[at, Cell::Text(name), Cell::Float(*value), cache])?;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), FileError> {
        self.writers.into_values().try_for_each(|(writer, _)| writer.finish())
    }
}

impl Owner {
    fn cells(self) -> [Cell<'static>; 3] {
        [Cell::Uint(self.interval), Cell::Uint(self.start_ms), Cell::Uint(self.phase.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::SeriesWriter;
    use crate::table::Table;

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
            interval.times.miss.response = histogram.to_sparse();
            writer.keep(&Measured::Robots(interval.into())).unwrap();
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
