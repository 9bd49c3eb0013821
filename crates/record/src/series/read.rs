//! How measurements come back from the Parquet files.

use std::collections::BTreeMap;
use std::path::Path;

use super::{ProxySample, Series};
use crate::columns::{self, TableSpec, adapted, health, host};
use crate::dir::{RunDir, RunDirError};
use crate::error_kind::ErrorExample;
use crate::histogram::SparseHistogram;
use crate::interval::RobotInterval;
use crate::table::Table;

impl Series {
    pub(super) fn read_tables(dir: &RunDir) -> Result<Self, RunDirError> {
        let open = |spec: &TableSpec| Table::read(&dir.path().join(spec.file), &spec.names());
        // A run of an earlier version did not watch itself, and has no such tables.
        let open_if_there = |spec: &TableSpec| {
            let there = dir.path().join(spec.file).exists();
            if there { open(spec).map(Some) } else { Ok(None) }
        };
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
        if let Some(table) = open_if_there(&health::THREADS)? {
            series.threads = health::read_all(&table, health::read_thread)?;
        }
        if let Some(table) = open_if_there(&health::BASELINES)? {
            series.baselines = health::read_all(&table, health::read_baseline)?;
        }
        if let Some(table) = open_if_there(&health::STALLS)? {
            series.stalls = health::read_all(&table, health::read_stall)?;
        }
        if let Some(table) = open_if_there(&host::NETWORK)? {
            series.network = health::read_all(&table, host::read_network)?;
        }
        if let Some(table) = open_if_there(&health::PROCESSORS)? {
            series.processors = health::read_all(&table, health::read_processor)?;
        }
        if let Some(table) = open_if_there(&adapted::ADAPTED)? {
            series.adapted = health::read_all(&table, adapted::read)?;
        }
        if let Some(table) = open_if_there(&host::MACHINE)? {
            series.machine = health::read_all(&table, host::read_machine)?;
        }
        if let Some(table) = open_if_there(&host::DISKS)? {
            series.disks = health::read_all(&table, host::read_disk)?;
        }
        if let Some(table) = open_if_there(&host::INTERFACES)? {
            series.interfaces = health::read_all(&table, host::read_interface)?;
        }
        if let Some(table) = open_if_there(&host::BLOCKS)? {
            series.blocks = health::read_all(&table, host::read_block)?;
            host::read_seeks(&open(&host::SEEKS)?, &mut series.blocks)?;
        }
        if let Some(table) = open_if_there(&health::LINKS)? {
            series.links = health::read_all(&table, health::read_link)?;
        }
        series.read_histograms(&open(&columns::TIMES)?, &dir.path().join(columns::HISTOGRAMS.file))?;
        series.host = health::read_all(&open(&host::HOST)?, host::read_host)?;
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
        let number = table.uint("interval", row)?;
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let unknown = || table.unknown("interval", &number.to_string());
        let place = match table.text("side", row)? {
            "robots" => {
                let interval = self.robots.get_mut(index).ok_or_else(unknown)?;
                columns::robot_histogram_mut(interval, metric, class)
            }
            "origins" => {
                let interval = self.origins.get_mut(index).ok_or_else(unknown)?;
                columns::origin_histogram_mut(interval, metric)
            }
            "threads" => Some(&mut self.threads.get_mut(index).ok_or_else(unknown)?.timer_lag),
            "links" => Some(&mut self.links.get_mut(index).ok_or_else(unknown)?.lateness),
            "baseline" => Some(&mut self.baselines.get_mut(index).ok_or_else(unknown)?.lag),
            other => return Err(table.unknown("side", other)),
        };
        place.ok_or_else(|| table.unknown("metric", metric))
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

fn read_examples(path: &Path) -> Result<Vec<ErrorExample>, RunDirError> {
    match std::fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|e| RunDirError::columns(path, e.to_string())),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(RunDirError::read(path, source)),
    }
}
