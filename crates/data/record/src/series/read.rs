//! Reading of measurements from the Parquet files: all of them, or as many as are readable.

use std::collections::BTreeMap;
use std::path::Path;

use crate::checksums::Checksums;
use crate::columns::{self, TableSpec, health, host, rows};
use crate::dir::{RunDir, RunDirError};
use crate::file;
use crate::missing::{Gap, Gaps};
use crate::table::{FileError, Table};
use assay_measurement::error_kind::ErrorExample;
use assay_measurement::histogram::SparseHistogram;
use assay_measurement::interval::{OriginInterval, RobotInterval};
use assay_measurement::measured::{ProxySample, Series};

/// Upper bound on the number of intervals, about those of twelve days: more are damage.
const MAX_INTERVALS: usize = 1 << 20;

/// Reads all tables of a run that ended.
pub(super) fn read_tables(dir: &RunDir, gaps: &mut Gaps) -> Result<Series, RunDirError> {
    // Damage of the checksums is noted; the tables can be read without them.
    let sums = match Checksums::read(dir) {
        Ok(sums) => sums,
        Err(error) => gaps.error(error).map(|()| Checksums::default())?,
    };
    if sums.is_empty() && is_whole(dir) && !dir.checksums_path().exists() {
        gaps.note(&dir.checksums_path(), Gap::Absent, "it is not there");
    }
    let mut reader = Reader { dir, sums, gaps, series: Series::default() };
    reader.read()?;
    reader.note_unknown_tables();
    Ok(reader.series)
}

/// Whether a run of this version has ended: then it wrote every table, and their checksums.
fn is_whole(dir: &RunDir) -> bool {
    dir.read_info().is_ok_and(|info| info.finished && info.assay_version == env!("CARGO_PKG_VERSION"))
}

struct Reader<'a> {
    dir: &'a RunDir,
    sums: Checksums,
    gaps: &'a mut Gaps,
    series: Series,
}

/// Whether other tables reference rows by number.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbered {
    Yes,
    No,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), RunDirError> {
        use Numbered::{No, Yes};
        self.series.robots = self.rows(&columns::ROBOTS, Yes, columns::read_robots)?;
        self.series.origins = self.rows(&columns::ORIGINS, Yes, columns::read_origins)?;
        self.restore_intervals()?;
        self.add_rows(&columns::CLASSES, read_class)?;
        self.add_rows(&columns::ERRORS, read_error)?;
        self.series.threads = self.rows(&health::THREADS, Yes, rows::read)?;
        self.series.baselines = self.rows(&health::BASELINES, Yes, rows::read)?;
        self.series.stalls = self.rows(&health::STALLS, No, rows::read)?;
        self.series.network = self.rows(&host::NETWORK, No, rows::read)?;
        self.series.processors = self.rows(&health::PROCESSORS, No, rows::read)?;
        self.series.adapted = self.rows(&columns::ADAPTED, No, rows::read)?;
        self.series.machine = self.rows(&host::MACHINE, No, rows::read)?;
        self.series.disks = self.rows(&host::DISKS, No, rows::read)?;
        self.series.interfaces = self.rows(&host::INTERFACES, No, rows::read)?;
        self.series.blocks = self.rows(&host::BLOCKS, Yes, rows::read)?;
        if let Some(seeks) = self.open(&host::SEEKS)? {
            host::read_seeks(&seeks, &mut self.series.blocks).or_else(|error| self.gaps.error(error))?;
        }
        self.series.links = self.rows(&health::LINKS, Yes, rows::read)?;
        self.series.host = self.rows(&host::HOST, Yes, rows::read)?;
        self.read_histograms()?;
        self.add_rows(&columns::PROXY, read_counter)?;
        self.read_examples()
    }

    /// Opens a table; none: it is absent or unreadable, which is noted.
    fn open(&mut self, spec: &TableSpec) -> Result<Option<Table>, RunDirError> {
        let path = self.dir.path().join(spec.file);
        match self.sums.check(&path).and_then(|()| Ok(Table::read(&path, &spec.names())?)) {
            Ok(table) => {
                if !table.others().is_empty() {
                    let columns = table.others().join(", ");
                    self.gaps.note(&path, Gap::Unknown, format!("it has the columns {columns} besides ours"));
                }
                Ok(Some(table))
            }
            Err(error) => self.gaps.error(error).map(|()| None),
        }
    }

    /// All rows of a table. If other tables reference them by number, an empty row replaces a damaged one.
    fn rows<T: Default>(
        &mut self,
        spec: &TableSpec,
        numbered: Numbered,
        read: fn(&Table, usize) -> Result<T, FileError>,
    ) -> Result<Vec<T>, RunDirError> {
        let Some(table) = self.open(spec)? else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for row in 0..table.rows() {
            match read(&table, row) {
                Ok(value) => all.push(value),
                Err(error) => {
                    self.gaps.error(error)?;
                    if numbered == Numbered::Yes {
                        all.push(T::default());
                    }
                }
            }
        }
        Ok(all)
    }

    /// Adds each row of a table to the series.
    fn add_rows(
        &mut self,
        spec: &TableSpec,
        add: fn(&mut Series, &Table, usize) -> Result<(), FileError>,
    ) -> Result<(), RunDirError> {
        let Some(table) = self.open(spec)? else { return Ok(()) };
        for row in 0..table.rows() {
            add(&mut self.series, &table, row).or_else(|error| self.gaps.error(error))?;
        }
        Ok(())
    }

    /// Restores empty intervals of a side whose table is lost from times.parquet, which states the start and phase of each.
    fn restore_intervals(&mut self) -> Result<(), RunDirError> {
        if !(self.series.robots.is_empty() || self.series.origins.is_empty()) {
            return Ok(());
        }
        let times = self.dir.path().join(columns::TIMES.file);
        let names = ["side", "interval", "start_ms", "phase"];
        // Damage of times.parquet is noted where it is read.
        let Ok(heads) = self.sums.check(&times).and_then(|()| Ok(Table::read(&times, &names)?)) else {
            return Ok(());
        };
        let robots_lost = self.series.robots.is_empty();
        let origins_lost = self.series.origins.is_empty();
        for row in 0..heads.rows() {
            let position = || -> Result<(usize, u64, u16), FileError> {
                let index = heads.narrow::<u32>("interval", heads.uint("interval", row)?)?;
                let phase = heads.narrow("phase", heads.uint("phase", row)?)?;
                Ok((index as usize, heads.uint("start_ms", row)?, phase))
            };
            let (Ok(side), Ok((index, start_ms, phase))) = (heads.text("side", row), position()) else {
                continue;
            };
            if index >= MAX_INTERVALS {
                continue;
            }
            match side {
                "robots" if robots_lost => {
                    let interval = RobotInterval { start_ms, phase, ..RobotInterval::default() };
                    set_at(&mut self.series.robots, index, interval);
                }
                "origins" if origins_lost => {
                    let interval = OriginInterval { start_ms, phase, ..OriginInterval::default() };
                    set_at(&mut self.series.origins, index, interval);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Reads times.parquet and histograms.parquet. Both are in the order of the histograms' numbers; buckets are read a row
    /// group at a time, because they are most of what a run leaves.
    fn read_histograms(&mut self) -> Result<(), RunDirError> {
        let heads = self.open(&columns::TIMES)?;
        let path = self.dir.path().join(columns::HISTOGRAMS.file);
        let Some(heads) = heads else {
            if !path.exists() {
                self.gaps.note(&path, Gap::Absent, "it is not there");
            }
            return Ok(());
        };
        for row in 0..heads.rows() {
            read_head(&mut self.series, &heads, row).or_else(|error| self.gaps.error(error))?;
        }
        let (sums, series, gaps) = (&self.sums, &mut self.series, &mut *self.gaps);
        let mut head = 0;
        let read = sums.check(&path).and_then(|()| {
            Table::read_in_groups(&path, &["histogram", "low_us", "count"], |group| {
                read_buckets(series, &heads, &mut head, group).or_else(|error| gaps.error(error))
            })
        });
        read.or_else(|error| self.gaps.error(error))
    }

    fn read_examples(&mut self) -> Result<(), RunDirError> {
        let path = self.dir.examples_path();
        let read = |path: &Path| -> Result<Vec<serde_json::Value>, RunDirError> {
            self.sums.check(path)?;
            Ok(file::read_json(path)?)
        };
        match read(&path) {
            Ok(values) => {
                for value in values {
                    match serde_json::from_value::<ErrorExample>(value) {
                        Ok(example) => self.series.examples.push(example),
                        Err(e) => self.gaps.error(FileError::damaged(&path, e.to_string()))?,
                    }
                }
                Ok(())
            }
            Err(error) => self.gaps.error(error),
        }
    }

    /// Notes tables that only another version can read, and an xact log that is gone.
    fn note_unknown_tables(&mut self) {
        let known =
            |name: &str| columns::SERIES.into_iter().chain([&columns::XACTS]).any(|table| table.file == name);
        let entries = std::fs::read_dir(self.dir.path()).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        for name in names.iter().filter(|name| name.ends_with(".parquet") && !known(name)) {
            let path = self.dir.path().join(name);
            self.gaps.note(&path, Gap::Unknown, "this one does not know the table");
        }
        if self.sums.contains(columns::XACTS.file) && !self.dir.xacts_path().exists() {
            self.gaps.note(&self.dir.xacts_path(), Gap::Absent, "it is not there");
        }
    }
}

/// Sets the interval at an index; those before it that are not known are empty.
fn set_at<T: Default + Clone>(all: &mut Vec<T>, index: usize, interval: T) {
    if index >= all.len() {
        all.resize(index + 1, T::default());
    }
    all[index] = interval;
}

/// Interval of robots that a row of another table belongs to.
fn robots_interval<'a>(
    series: &'a mut Series,
    table: &Table,
    row: usize,
) -> Result<&'a mut RobotInterval, FileError> {
    let number = table.uint("interval", row)?;
    let index = usize::try_from(number).unwrap_or(usize::MAX);
    series.robots.get_mut(index).ok_or_else(|| table.unknown("interval", &number.to_string()))
}

fn read_class(series: &mut Series, table: &Table, row: usize) -> Result<(), FileError> {
    let (by, value, count) = (table.text("by", row)?, table.text("value", row)?, table.count("count", row)?);
    let counts = &mut robots_interval(series, table, row)?.counts;
    match by {
        "method" => *counts.by_method.entry(value.to_owned()).or_default() += count,
        "type" => *counts.by_type.entry(value.to_owned()).or_default() += count,
        "tls" => *counts.by_tls.entry(value.to_owned()).or_default() += count,
        "changed field" => *counts.changed_fields.entry(value.to_owned()).or_default() += count,
        "status" => {
            let status = value.parse().map_err(|_| table.unknown("value", value))?;
            *counts.by_status.entry(status).or_default() += count;
        }
        other => return Err(table.unknown("by", other)),
    }
    Ok(())
}

fn read_error(series: &mut Series, table: &Table, row: usize) -> Result<(), FileError> {
    let name = table.text("kind", row)?;
    let kind = name.parse().map_err(|_| table.unknown("kind", name))?;
    let count = table.count("count", row)?;
    *robots_interval(series, table, row)?.counts.errors.entry(kind).or_default() += count;
    Ok(())
}

fn read_head(series: &mut Series, heads: &Table, row: usize) -> Result<(), FileError> {
    let (sum_us, max_us) = (heads.count("sum_us", row)?, heads.count("max_us", row)?);
    *histogram_mut(series, heads, row)? = SparseHistogram { sum_us, max_us, buckets: Vec::new() };
    Ok(())
}

/// Adds a row group of buckets to their histograms; `head` is the row in `heads` that was reached.
fn read_buckets(
    series: &mut Series,
    heads: &Table,
    head: &mut usize,
    group: &Table,
) -> Result<(), FileError> {
    let known = heads.integers("histogram")?;
    let [numbers, lowest, counts] = ["histogram", "low_us", "count"].map(|name| group.integers(name));
    let (numbers, lowest, counts) = (numbers?, lowest?, counts?);
    let mut row = 0;
    while row < group.rows() {
        let number = numbers.uint(row)?;
        while *head < heads.rows() && known.uint(*head)? != number {
            *head += 1;
        }
        if *head == heads.rows() {
            return Err(group.unknown("histogram", &number.to_string()));
        }
        let histogram = histogram_mut(series, heads, *head)?;
        while row < group.rows() && numbers.uint(row)? == number {
            histogram.buckets.push((lowest.count(row)?, counts.count(row)?));
            row += 1;
        }
        histogram.buckets.shrink_to_fit();
    }
    Ok(())
}

fn histogram_mut<'a>(
    series: &'a mut Series,
    table: &Table,
    row: usize,
) -> Result<&'a mut SparseHistogram, FileError> {
    let (metric, class) = (table.text("metric", row)?, table.text("class", row)?);
    let number = table.uint("interval", row)?;
    let index = usize::try_from(number).unwrap_or(usize::MAX);
    let unknown = || table.unknown("interval", &number.to_string());
    let histogram = match table.text("side", row)? {
        "robots" => {
            let interval = series.robots.get_mut(index).ok_or_else(unknown)?;
            interval.times.histogram_mut(metric, class)
        }
        "origins" => {
            let interval = series.origins.get_mut(index).ok_or_else(unknown)?;
            columns::origin_histogram_mut(interval, metric)
        }
        "host" => Some(&mut series.host.get_mut(index).ok_or_else(unknown)?.waits),
        "threads" => Some(&mut series.threads.get_mut(index).ok_or_else(unknown)?.timer_lag),
        "links" => Some(&mut series.links.get_mut(index).ok_or_else(unknown)?.lateness),
        "baseline" => Some(&mut series.baselines.get_mut(index).ok_or_else(unknown)?.lag),
        other => return Err(table.unknown("side", other)),
    };
    histogram.ok_or_else(|| table.unknown("metric", metric))
}

fn read_counter(series: &mut Series, table: &Table, row: usize) -> Result<(), FileError> {
    let at_ms = table.uint("at_ms", row)?;
    let cache = table.text("cache", row)?;
    let (name, value) = (table.text("counter", row)?.to_owned(), table.float("value", row)?);
    if series.proxy.last().is_none_or(|sample| (sample.at_ms, sample.cache.as_str()) != (at_ms, cache)) {
        series.proxy.push(ProxySample { cache: cache.to_owned(), at_ms, counters: BTreeMap::new() });
    }
    if let Some(sample) = series.proxy.last_mut() {
        sample.counters.insert(name, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Cell, Column, ColumnKind, TableWriter};

    #[test]
    fn columns_of_a_newer_version_are_named_and_the_others_are_read() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = RunDir::create(&tmp.path().join("run")).unwrap();
        let mut columns = (columns::PROXY.columns)();
        columns.extend(["mood", "mood"].map(|name| Column::new(name, ColumnKind::Text, "")));
        let mut table = TableWriter::create(&dir.path().join("proxy.parquet"), columns).unwrap();
        let good = Cell::Text("good");
        let row = [Cell::Uint(5), Cell::Text("hits"), Cell::Float(7.0), Cell::Text(""), good, good];
        table.push(&row).unwrap();
        table.finish().unwrap();
        let mut gaps = Gaps::tolerant();
        let series = read_tables(&dir, &mut gaps).unwrap();
        assert_eq!(series.proxy[0].counters["hits"], 7.0);
        let found = gaps.into_found();
        let proxy = found.iter().find(|missing| missing.file == "proxy.parquet").unwrap();
        assert!(proxy.gap == Gap::Unknown && proxy.what.contains("the columns mood besides"), "{proxy:?}");
        assert!(found.iter().any(|missing| missing.file == "robots.parquet" && missing.gap == Gap::Absent));
    }
}
