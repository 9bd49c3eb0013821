//! The journal of a run in progress, its conversion to tables, and reading of either.
//!
//! A Parquet file is readable only once its footer is written, at its end. So measurements are first
//! appended to a journal (`journal.jsonl`, one JSON document per line, handed to the system line by line):
//! a run that is killed leaves a journal that is whole up to its last line. [`SeriesWriter::finish`] turns
//! the journal into Parquet and removes it; it is removed last, so while it exists, it is authoritative.
//! [`RunDir::read_series`] reads whichever is there, and [`RunDir::recover`] finishes what a killed run could not.

mod convert;
mod read;

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use crate::dir::{RunDir, RunDirError};
use crate::missing::Gaps;
use crate::table::FileError;
use assay_measurement::measured::{Measured, Series};

/// Appends measurements to the journal as they arrive.
#[derive(Debug)]
pub struct SeriesWriter {
    dir: RunDir,
    path: PathBuf,
    journal: File,
    /// Length of the journal up to its last whole line.
    whole_bytes: u64,
}

impl SeriesWriter {
    pub fn create(dir: &RunDir) -> Result<Self, RunDirError> {
        let path = dir.journal_path();
        let journal = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .map_err(|source| FileError::write(&path, source))?;
        let whole_bytes = journal.metadata().map_err(|source| FileError::write(&path, source))?.len();
        Ok(Self { dir: dir.clone(), path, journal, whole_bytes })
    }

    /// Appends a measurement as a line of the journal.
    pub fn keep(&mut self, measured: &Measured) -> Result<(), RunDirError> {
        let mut line = serde_json::to_vec(measured).map_err(|e| FileError::write(&self.path, e.into()))?;
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
                Err(FileError::write(&self.path, source).into())
            }
        }
    }

    /// Converts the journal to Parquet. If that fails (a full disk), the journal stays and nothing is lost.
    pub fn finish(self) -> Result<(), RunDirError> {
        drop(self.journal);
        convert::convert(&self.dir)
    }
}

impl RunDir {
    /// Reads the measurements of a run that ended, was killed, or is in progress. Damage is an error.
    pub fn read_series(&self) -> Result<Series, RunDirError> {
        self.read_series_with(&mut Gaps::strict())
    }

    pub(crate) fn read_series_with(&self, gaps: &mut Gaps) -> Result<Series, RunDirError> {
        let journal = self.journal_path();
        if !journal.exists() {
            return read::read_tables(self, gaps);
        }
        let mut series = Series::default();
        let read = read_journal(&journal, &mut |error| gaps.error(error), |measured| {
            series.take(measured);
            Ok(())
        });
        read.or_else(|error| gaps.error(error))?;
        Ok(series)
    }

    /// Calls `each` for every measurement. While there is a journal, only one line of it is in memory at a time, in the order in
    /// which they came; the tables of a run that ended are read whole.
    pub fn for_each_measured(&self, mut each: impl FnMut(Measured)) -> Result<(), RunDirError> {
        let journal = self.journal_path();
        if journal.exists() {
            return read_journal(&journal, &mut Err, |measured| {
                each(measured);
                Ok(())
            });
        }
        self.read_series()?.into_measured().for_each(each);
        Ok(())
    }

    /// Writes the tables of a run that has not ended into another directory. Lines of the journal that cannot be read
    /// are left out. The run directory stays as it is.
    pub fn tables_so_far(&self, out: &Path) -> Result<(), RunDirError> {
        convert::convert_to(self, out, &mut |_| Ok(())).map(drop)
    }

    /// True when the run's end was not written: it is in progress, or was killed.
    pub fn is_unfinished(&self) -> Result<bool, RunDirError> {
        Ok(self.journal_path().exists() || !self.read_info()?.finished)
    }

    /// Finishes a run that was killed: its journal becomes Parquet, and `run.json` says that it is partial. Returns false when
    /// there was nothing to do. Not for a run in progress.
    pub fn recover(&self) -> Result<bool, RunDirError> {
        if !self.is_unfinished()? {
            return Ok(false);
        }
        if self.journal_path().exists() {
            convert::convert(self)?;
        }
        let mut info = self.read_info()?;
        if !info.finished {
            info.finished = true;
            info.verdict.partial = true;
            // The run was never judged; the one known fault is stated.
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

/// Upper bound on the bytes of a journal's line, which holds one interval: its histograms have a few thousand buckets each.
const LINE_MAX: u64 = 64 << 20;

/// Calls `each` for every line of a journal, and `on_error` for every one that cannot be read. A last line without an end
/// is left out.
fn read_journal(
    path: &Path,
    on_error: &mut dyn FnMut(RunDirError) -> Result<(), RunDirError>,
    mut each: impl FnMut(Measured) -> Result<(), RunDirError>,
) -> Result<(), RunDirError> {
    let file = assay_base::files::open(path).map_err(|source| FileError::read(path, source))?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let mut rest = reader.by_ref().take(LINE_MAX);
        let length = rest.read_until(b'\n', &mut line).map_err(|source| FileError::read(path, source))?;
        if length as u64 == LINE_MAX {
            on_error(
                FileError::damaged(path, format!("line {number} and what follows it is no journal")).into(),
            )?;
            return Ok(());
        }
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
        match serde_json::from_slice(&line) {
            Ok(measured) => each(measured)?,
            Err(e) => on_error(FileError::damaged(path, format!("line {number}: {e}")).into())?,
        }
    }
    Ok(())
}
