//! Parts of one run, joined into one record.
//!
//! Robots and origins of a run can be in several places, each with a directory of its own. Joining them is exact: counts are added,
//! histograms are merged bucket by bucket, and a figure is computed afterwards, from the sums. Parts belong together if they have the
//! same stream of requests and the same start; each robot and each origin is in one of them.
//!
//! Measurements that only one process can make are left out rather than added up: the ideal cache of several parts, and the machine-wide
//! measurements of all machines but the first.
//!
//! # Parts of a run
//!
//! *Parts of a run.* `assay robots` and `assay origins` run a range of robots or of origins with `Slice` and nothing else: seed,
//! world, start second and schedule make their streams parts of one stream. The due digests of parts add up to the whole's.
//! Each part records which robots and origins it has (`PartInfo`), and `record::merge` joins their directories: intervals of one instant
//! and phase become one, counts are added, histograms are merged bucket by bucket.
//!
//! *Does not:* judge (doubts are those of the parts), or measure how far clocks of different machines are apart.

mod head;
mod series;

use std::path::Path;
use std::time::Duration;

use crate::dir::{RunDir, RunDirError};
use crate::run::RunInfo;
use crate::series::SeriesWriter;
use crate::table::FileError;
use crate::xact_log::XactLog;
use assay_measurement::measured::Series;

pub use series::{PartSeries, join};

/// Parts that cannot be joined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// The directory holds a whole run.
    #[error(
        "{name} is not a part of a run: it has all robots and all origins, or was recorded before parts said what they hold; \
         name directories of `assay robots` and `assay origins`"
    )]
    NotAPart { name: String },
    /// The part has not ended.
    #[error(
        "{name} has not ended, or was killed; wait for its end, or write it with `assay report {name}` first"
    )]
    Unfinished { name: String },
    /// The parts are of different runs.
    #[error(
        "{first} and {second} are not parts of one run: {what} is {one} there and {other} here; give all parts the same workload, \
         --seed, --world and --start-at"
    )]
    Differ {
        first: String,
        second: String,
        what: &'static str,
        /// Value in the first.
        one: String,
        /// Value in the second.
        other: String,
    },
    /// Two parts have the same robots or origins.
    #[error("{first} and {second} both have {whose} {which}; name each part once")]
    Overlap {
        first: String,
        second: String,
        /// `robots` or `origins`.
        whose: &'static str,
        which: String,
    },
    /// No part has robots.
    #[error("none of these parts has robots; name the directories of `assay robots` too")]
    NoRobots,
    /// A directory cannot be read or written.
    #[error(transparent)]
    Dir(#[from] RunDirError),
}

impl From<FileError> for MergeError {
    fn from(error: FileError) -> Self {
        Self::Dir(error.into())
    }
}

/// Options of a merge.
#[derive(Debug, Clone, Default)]
pub struct MergeOptions {
    /// Command line of the merge, for the record.
    pub command: Vec<String>,
    /// Upper bound on the distance between the clocks of the machines, if known.
    pub clock_error: Option<Duration>,
}

/// Joins the parts in `dirs` into a new run directory at `out`. Nothing is created there if they do not belong together.
pub fn merge(dirs: &[RunDir], out: &Path, options: &MergeOptions) -> Result<RunDir, MergeError> {
    let mut parts = dirs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    // Robots first: `run.json` begins as that of the first part.
    parts.sort_by_key(|(_, info)| {
        (info.part.as_ref().is_none_or(|part| part.robots.is_empty()), first_robot(info))
    });
    let infos: Vec<(String, &RunInfo)> = parts.iter().map(|(dir, info)| (name(dir), info)).collect();
    let info = head::merge_infos(&infos, options)?;
    let out = RunDir::create(out)?;
    let is_one_cache = parts.iter().filter(|(_, info)| info.workload.robots > 0).count() == 1;
    let mut parts_series = Vec::new();
    for (dir, part) in &parts {
        parts_series.push(PartSeries { clock: part.host.clock.clone(), series: dir.read_series()? });
    }
    write_series(&out, join(parts_series, is_one_cache))?;
    copy_documents(&parts, &out)?;
    // Last, because its checksum joins those of the tables.
    out.write_info(&info)?;
    Ok(out)
}

fn open(dir: &RunDir) -> Result<(RunDir, RunInfo), MergeError> {
    let info = dir.read_info()?;
    if !info.finished || dir.journal_path().exists() {
        return Err(MergeError::Unfinished { name: name(dir) });
    }
    Ok((dir.clone(), info))
}

fn name(dir: &RunDir) -> String {
    dir.path().display().to_string()
}

fn first_robot(info: &RunInfo) -> Option<u32> {
    info.part.as_ref().and_then(|part| part.robots.first()).map(|(first, _)| *first)
}

fn write_series(out: &RunDir, series: Series) -> Result<(), MergeError> {
    let mut writer = SeriesWriter::create(out)?;
    for measured in series.into_measured() {
        writer.keep(&measured)?;
    }
    Ok(writer.finish()?)
}

/// Copies what parts have beside their measurements: the workload, its sources, and the log of requests if all robots kept one.
fn copy_documents(parts: &[(RunDir, RunInfo)], out: &RunDir) -> Result<(), MergeError> {
    let with_robots: Vec<&RunDir> =
        parts.iter().filter(|(_, info)| info.workload.robots > 0).map(|(dir, _)| dir).collect();
    let first = with_robots.first().ok_or(MergeError::NoRobots)?;
    copy(&first.workload_path(), &out.workload_path())?;
    let (from, to) = (first.path().join("sources"), out.path().join("sources"));
    if from.is_dir() {
        std::fs::create_dir_all(&to).map_err(|cause| FileError::write(&to, cause))?;
        for entry in std::fs::read_dir(&from).map_err(|cause| FileError::read(&from, cause))?.flatten() {
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    }
    if with_robots.iter().all(|dir| dir.xacts_path().is_file()) {
        let mut log = XactLog::create(&out.xacts_path())?;
        for dir in with_robots {
            XactLog::read(&dir.xacts_path())?.iter().try_for_each(|row| log.push(row))?;
        }
        log.finish()?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), MergeError> {
    if !from.is_file() {
        return Ok(());
    }
    let bytes = assay_base::files::bytes(from, assay_base::files::DOCUMENT_MAX)
        .map_err(|cause| FileError::read(from, cause))?;
    Ok(std::fs::write(to, bytes).map_err(|cause| FileError::write(to, cause))?)
}
