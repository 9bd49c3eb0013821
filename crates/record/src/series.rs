//! How measurements are kept while a run goes on, and how they are read when it is over.
//!
//! A Parquet file is readable only once its footer is written, at its end. So measurements are first
//! appended to a journal (`journal.jsonl`, one JSON document per line, handed to the system line by line):
//! a run that is killed leaves a journal that is whole up to its last line. [`SeriesWriter::finish`] turns
//! the journal into Parquet and removes it; it is removed last, so whenever it is there, it is the truth.
//! [`Series::read`] reads whichever is there, and [`RunDir::recover`] finishes what a killed run could not.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::columns::{self, TableSpec};
use crate::dir::{RunDir, RunDirError};
use crate::error_kind::ErrorExample;
use crate::histogram::{Histogram, SparseHistogram};
use crate::interval::{HostInterval, OriginInterval, RobotInterval};
use crate::table::{Cell, Table, TableWriter};

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one at a time, never kept")]
enum Entry<'a> {
    Robots(Cow<'a, RobotInterval>),
    Origins(Cow<'a, OriginInterval>),
    Host(Cow<'a, HostInterval>),
    Proxy(Cow<'a, ProxySample>),
    Example(Cow<'a, ErrorExample>),
}

/// One reading of the target's own counters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProxySample {
    /// Milliseconds since the start of the run.
    pub at_ms: u64,
    /// Values by name, in the target's words; cumulative unless the target means otherwise.
    pub counters: BTreeMap<String, f64>,
}

/// Everything that was measured, in the order in which it came.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// The robots' side.
    pub robots: Vec<RobotInterval>,
    /// The origins' side.
    pub origins: Vec<OriginInterval>,
    /// What processes used.
    pub host: Vec<HostInterval>,
    /// The target's own counters.
    pub proxy: Vec<ProxySample>,
    /// The first errors of each kind.
    pub examples: Vec<ErrorExample>,
}

/// Keeps measurements as they come.
#[derive(Debug)]
pub struct SeriesWriter {
    dir: RunDir,
    path: PathBuf,
    journal: File,
    /// Length of the journal up to its last whole line.
    whole_bytes: u64,
}

impl SeriesWriter {
    /// Starts the journal.
    pub fn create(dir: &RunDir) -> Result<Self, RunDirError> {
        let path = dir.journal_path();
        let journal = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|source| RunDirError::write(&path, source))?;
        let whole_bytes = journal.metadata().map_err(|source| RunDirError::write(&path, source))?.len();
        Ok(Self { dir: dir.clone(), path, journal, whole_bytes })
    }

    /// Keeps an interval of the robots.
    pub fn robots(&mut self, interval: &RobotInterval) -> Result<(), RunDirError> {
        self.append(&Entry::Robots(Cow::Borrowed(interval)))
    }

    /// Keeps an interval of the origins.
    pub fn origins(&mut self, interval: &OriginInterval) -> Result<(), RunDirError> {
        self.append(&Entry::Origins(Cow::Borrowed(interval)))
    }

    /// Keeps an interval of a role's processes.
    pub fn host(&mut self, interval: &HostInterval) -> Result<(), RunDirError> {
        self.append(&Entry::Host(Cow::Borrowed(interval)))
    }

    /// Keeps a reading of the target's counters. Values that are no numbers are left out.
    pub fn proxy_counters(
        &mut self,
        at_ms: u64,
        counters: &BTreeMap<String, f64>,
    ) -> Result<(), RunDirError> {
        let finite = counters.iter().filter(|(_, value)| value.is_finite());
        let counters = finite.map(|(name, value)| (name.clone(), *value)).collect();
        self.append(&Entry::Proxy(Cow::Owned(ProxySample { at_ms, counters })))
    }

    /// Keeps an error for people to look at.
    pub fn example(&mut self, example: &ErrorExample) -> Result<(), RunDirError> {
        self.append(&Entry::Example(Cow::Borrowed(example)))
    }

    fn append(&mut self, entry: &Entry<'_>) -> Result<(), RunDirError> {
        let mut line = serde_json::to_vec(entry).map_err(|e| RunDirError::write(&self.path, e.into()))?;
        line.push(b'\n');
        match self.journal.write_all(&line) {
            Ok(()) => {
                self.whole_bytes += line.len() as u64;
                Ok(())
            }
            Err(source) => {
                // Half a line in the middle would make everything after it unreadable. If this fails too,
                // the error that is returned is still the one that matters.
                let _ = self.journal.set_len(self.whole_bytes);
                Err(RunDirError::write(&self.path, source))
            }
        }
    }

    /// Turns the journal into Parquet. If that fails (a full disk), the journal stays and nothing is lost.
    pub fn finish(self) -> Result<(), RunDirError> {
        drop(self.journal);
        convert(&self.dir)
    }
}

impl Series {
    /// Reads the measurements of a run, whether it ended, was killed, or still goes on.
    pub fn read(dir: &RunDir) -> Result<Self, RunDirError> {
        let journal = dir.journal_path();
        if !journal.exists() {
            return Self::read_tables(dir);
        }
        let mut series = Self::default();
        read_journal(&journal, |entry| {
            match entry {
                Entry::Robots(interval) => series.robots.push(interval.into_owned()),
                Entry::Origins(interval) => series.origins.push(interval.into_owned()),
                Entry::Host(interval) => series.host.push(interval.into_owned()),
                Entry::Proxy(sample) => series.proxy.push(sample.into_owned()),
                Entry::Example(example) => series.examples.push(example.into_owned()),
            }
            Ok(())
        })?;
        Ok(series)
    }

    fn read_tables(dir: &RunDir) -> Result<Self, RunDirError> {
        let open = |spec: &TableSpec| Table::read(&dir.path().join(spec.file), &spec.names());
        let mut series = Self::default();
        let robots = open(&columns::ROBOTS)?;
        for row in 0..robots.rows() {
            series.robots.push(columns::read_robots(&robots, row)?);
        }
        let origins = open(&columns::ORIGINS)?;
        for row in 0..origins.rows() {
            series.origins.push(columns::read_origins(&origins, row)?);
        }
        series.read_classes(&open(&columns::CLASSES)?)?;
        series.read_errors(&open(&columns::ERRORS)?)?;
        series.read_histograms(&open(&columns::TIMES)?, &dir.path().join(columns::HISTOGRAMS.file))?;
        series.read_host(&open(&columns::HOST)?)?;
        series.read_proxy(&open(&columns::PROXY)?)?;
        series.examples = read_examples(&dir.examples_path())?;
        Ok(series)
    }

    /// The robots' interval that a row of another table belongs to.
    fn robots_of(&mut self, table: &Table, row: usize) -> Result<&mut RobotInterval, RunDirError> {
        let number = table.uint("interval", row)?;
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        self.robots.get_mut(index).ok_or_else(|| table.unknown("interval", &number.to_string()))
    }

    fn read_classes(&mut self, table: &Table) -> Result<(), RunDirError> {
        for row in 0..table.rows() {
            let (by, value, count) =
                (table.text("by", row)?, table.text("value", row)?, table.uint("count", row)?);
            let counts = &mut self.robots_of(table, row)?.counts;
            match by {
                "method" => *counts.by_method.entry(value.to_owned()).or_default() += count,
                "type" => *counts.by_type.entry(value.to_owned()).or_default() += count,
                "status" => {
                    let status = value.parse().map_err(|_| table.unknown("value", value))?;
                    *counts.by_status.entry(status).or_default() += count;
                }
                other => return Err(table.unknown("by", other)),
            }
        }
        Ok(())
    }

    fn read_errors(&mut self, table: &Table) -> Result<(), RunDirError> {
        for row in 0..table.rows() {
            let name = table.text("kind", row)?;
            let kind = columns::error_kind(name).ok_or_else(|| table.unknown("kind", name))?;
            let count = table.uint("count", row)?;
            *self.robots_of(table, row)?.counts.errors.entry(kind).or_default() += count;
        }
        Ok(())
    }

    /// Both tables are in the order of the histograms' numbers; the buckets are read as they are needed,
    /// because they are most of what a run leaves.
    fn read_histograms(&mut self, heads: &Table, buckets: &Path) -> Result<(), RunDirError> {
        for row in 0..heads.rows() {
            let (sum_us, max_us) = (heads.uint("sum_us", row)?, heads.uint("max_us", row)?);
            *self.histogram_of(heads, row)? = SparseHistogram { sum_us, max_us, buckets: Vec::new() };
        }
        let mut head = 0;
        Table::read_in_groups(buckets, &["histogram", "low_us", "count"], |group| {
            let mut row = 0;
            while row < group.rows() {
                let number = group.uint("histogram", row)?;
                while head < heads.rows() && heads.uint("histogram", head)? != number {
                    head += 1;
                }
                if head == heads.rows() {
                    return Err(group.unknown("histogram", &number.to_string()));
                }
                let histogram = self.histogram_of(heads, head)?;
                while row < group.rows() && group.uint("histogram", row)? == number {
                    histogram.buckets.push((group.uint("low_us", row)?, group.uint("count", row)?));
                    row += 1;
                }
                histogram.buckets.shrink_to_fit();
            }
            Ok(())
        })
    }

    fn histogram_of(&mut self, table: &Table, row: usize) -> Result<&mut SparseHistogram, RunDirError> {
        let (metric, class) = (table.text("metric", row)?, table.text("class", row)?);
        let place = match table.text("side", row)? {
            "robots" => columns::robot_histogram_mut(self.robots_of(table, row)?, metric, class),
            "origins" => {
                let number = table.uint("interval", row)?;
                let index = usize::try_from(number).unwrap_or(usize::MAX);
                let interval = self
                    .origins
                    .get_mut(index)
                    .ok_or_else(|| table.unknown("interval", &number.to_string()))?;
                columns::origin_histogram_mut(interval, metric)
            }
            other => return Err(table.unknown("side", other)),
        };
        place.ok_or_else(|| table.unknown("metric", metric))
    }

    fn read_host(&mut self, table: &Table) -> Result<(), RunDirError> {
        for row in 0..table.rows() {
            self.host.push(HostInterval {
                start_ms: table.uint("start_ms", row)?,
                length_ms: table.uint("length_ms", row)?,
                role: table.text("role", row)?.to_owned(),
                cpu_us: table.uint("cpu_us", row)?,
                rss_bytes: table.uint("rss_bytes", row)?,
                run_delay_us: table.uint("run_delay_us", row)?,
                descriptors: table.uint("descriptors", row)?,
                steal_us: table.uint("steal_us", row)?,
            });
        }
        Ok(())
    }

    fn read_proxy(&mut self, table: &Table) -> Result<(), RunDirError> {
        for row in 0..table.rows() {
            let at_ms = table.uint("at_ms", row)?;
            if self.proxy.last().is_none_or(|sample| sample.at_ms != at_ms) {
                self.proxy.push(ProxySample { at_ms, counters: BTreeMap::new() });
            }
            let (name, value) = (table.text("counter", row)?.to_owned(), table.float("value", row)?);
            if let Some(sample) = self.proxy.last_mut() {
                sample.counters.insert(name, value);
            }
        }
        Ok(())
    }
}

impl RunDir {
    /// True when the run's end was not written: it still goes on, or was killed.
    pub fn is_unfinished(&self) -> Result<bool, RunDirError> {
        Ok(self.journal_path().exists() || !self.read_info()?.finished)
    }

    /// Finishes what a killed run left: its journal becomes Parquet, and `run.json` says that it is partial.
    /// Returns false when there was nothing to do. Not for a run that still goes on.
    pub fn recover(&self) -> Result<bool, RunDirError> {
        if !self.is_unfinished()? {
            return Ok(false);
        }
        if self.journal_path().exists() {
            convert(self)?;
        }
        let mut info = self.read_info()?;
        if !info.finished {
            info.finished = true;
            info.verdict.partial = true;
            // Nobody was there to judge: what is known to be wrong is all that speaks against it.
            info.verdict.valid = !info.verdict.doubts.iter().any(|doubt| doubt.invalidates);
            info.verdict.warnings.insert(
                0,
                "The run was killed before it could end; its measurements go up to the last whole second."
                    .into(),
            );
            self.write_info(&info)?;
        }
        Ok(true)
    }
}

/// Calls `each` for every line of a journal. A last line without an end is left out.
fn read_journal(
    path: &Path,
    mut each: impl FnMut(Entry<'static>) -> Result<(), RunDirError>,
) -> Result<(), RunDirError> {
    let file = File::open(path).map_err(|source| RunDirError::read(path, source))?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(|source| RunDirError::read(path, source))?;
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
        let entry = serde_json::from_slice(&line)
            .map_err(|e| RunDirError::columns(path, format!("line {number}: {e}")))?;
        each(entry)?;
    }
    Ok(())
}

fn read_examples(path: &Path) -> Result<Vec<ErrorExample>, RunDirError> {
    match std::fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|e| RunDirError::columns(path, e.to_string())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(RunDirError::read(path, source)),
    }
}

/// Turns a journal into Parquet, and removes it when everything else is in its place.
fn convert(dir: &RunDir) -> Result<(), RunDirError> {
    let journal = dir.journal_path();
    let mut tables = Tables::create(dir)?;
    let mut examples: Vec<ErrorExample> = Vec::new();
    read_journal(&journal, |entry| match entry {
        Entry::Robots(interval) => tables.robots(&interval),
        Entry::Origins(interval) => tables.origins(&interval),
        Entry::Host(interval) => tables.host(&interval),
        Entry::Proxy(sample) => tables.proxy(&sample),
        Entry::Example(example) => {
            examples.push(example.into_owned());
            Ok(())
        }
    })?;
    tables.finish()?;
    let path = dir.examples_path();
    let text = serde_json::to_vec_pretty(&examples).map_err(|e| RunDirError::write(&path, e.into()))?;
    dir.write_whole(&path, &text)?;
    std::fs::remove_file(&journal).map_err(|source| RunDirError::write(&journal, source))
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
    robot_intervals: u64,
    origin_intervals: u64,
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
    fn create(dir: &RunDir) -> Result<Self, RunDirError> {
        let create = |spec: &TableSpec| TableWriter::create(&dir.path().join(spec.file), (spec.columns)());
        Ok(Self {
            robots: create(&columns::ROBOTS)?,
            origins: create(&columns::ORIGINS)?,
            classes: create(&columns::CLASSES)?,
            errors: create(&columns::ERRORS)?,
            times: create(&columns::TIMES)?,
            histograms: create(&columns::HISTOGRAMS)?,
            host: create(&columns::HOST)?,
            proxy: create(&columns::PROXY)?,
            robot_intervals: 0,
            origin_intervals: 0,
            histogram_count: 0,
            ruler: Histogram::new(),
        })
    }

    fn robots(&mut self, interval: &RobotInterval) -> Result<(), RunDirError> {
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
        for (metric, class, histogram) in columns::robot_histograms(interval) {
            self.histogram(owner, metric, class, histogram)?;
        }
        Ok(())
    }

    fn origins(&mut self, interval: &OriginInterval) -> Result<(), RunDirError> {
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

    fn class(&mut self, owner: Owner, by: &str, value: &str, count: u64) -> Result<(), RunDirError> {
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
    ) -> Result<(), RunDirError> {
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

    fn host(&mut self, interval: &HostInterval) -> Result<(), RunDirError> {
        self.host.push(&[
            Cell::Uint(interval.start_ms),
            Cell::Uint(interval.length_ms),
            Cell::Text(&interval.role),
            Cell::Uint(interval.cpu_us),
            Cell::Uint(interval.rss_bytes),
            Cell::Uint(interval.run_delay_us),
            Cell::Uint(interval.descriptors),
            Cell::Uint(interval.steal_us),
        ])
    }

    fn proxy(&mut self, sample: &ProxySample) -> Result<(), RunDirError> {
        for (name, value) in &sample.counters {
            self.proxy.push(&[Cell::Uint(sample.at_ms), Cell::Text(name), Cell::Float(*value)])?;
        }
        Ok(())
    }

    fn finish(self) -> Result<(), RunDirError> {
        let Self { robots, origins, classes, errors, times, histograms, host, proxy, .. } = self;
        for table in [robots, origins, classes, errors, times, histograms, host, proxy] {
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
    use super::*;

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
