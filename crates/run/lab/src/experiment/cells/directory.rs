//! The directory of an experiment. A directory with its head, its file as given, and the run directories of its cells.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{FileError, LabError};
use assay_record::experiment::{CellInfo, ExperimentInfo};

use super::Experiment;

const HEAD: &str = "experiment.json";
const AS_GIVEN: &str = "experiment.toml";
const CELLS: &str = "cells";
const FAILED: &str = "failed";

/// An experiment's directory, which no other process uses as long as this lives.
#[derive(Debug)]
pub struct ExperimentDir {
    path: PathBuf,
    /// Locked; the lock goes with the process, however it ends.
    _lock: File,
}

impl ExperimentDir {
    /// Makes one that must not be there yet (or be empty).
    pub fn create(path: &Path, experiment: &Experiment, info: &ExperimentInfo) -> Result<Self, LabError> {
        let cannot =
            |e: io::Error| LabError::plan(FileError::new("make the experiment's directory", path, e));
        fs::create_dir_all(path).map_err(cannot)?;
        if fs::read_dir(path).map_err(cannot)?.next().is_some() {
            return Err(LabError::plan(format!(
                "{} is not empty; name a directory that is not there yet, or go on with the experiment in it \
                 (--resume)",
                path.display()
            )));
        }
        let dir = Self::lock(path)?;
        for inner in [CELLS, FAILED] {
            fs::create_dir(dir.path.join(inner)).map_err(cannot)?;
        }
        fs::write(dir.path.join(AS_GIVEN), &experiment.source).map_err(cannot)?;
        dir.write(info)?;
        Ok(dir)
    }

    /// Opens one that is there; gives its head and its file as it was given.
    pub fn open(path: &Path) -> Result<(Self, ExperimentInfo, String), LabError> {
        let dir = Self::lock(path)?;
        let info = read_head(path)?;
        let source = assay_base::files::text(&path.join(AS_GIVEN), assay_base::files::SETTINGS_MAX)
            .map_err(|e| LabError::plan(FileError::read(&path.join(AS_GIVEN), e)))?;
        Ok((dir, info, source))
    }

    fn lock(path: &Path) -> Result<Self, LabError> {
        let cannot = |e: io::Error| LabError::plan(FileError::new("use", path, e));
        let path = std::path::absolute(path).map_err(cannot)?;
        let lock = File::open(&path).map_err(cannot)?;
        match rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self { path, _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(LabError::plan(format!(
                "another Assay works in {}; wait for it, or name another directory",
                path.display()
            ))),
            Err(e) => Err(cannot(e.into())),
        }
    }

    /// Absolute path of it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes its head: whoever reads it sees the one before or this one, whole.
    pub fn write(&self, info: &ExperimentInfo) -> Result<(), LabError> {
        let write = || -> io::Result<()> {
            let text = serde_json::to_vec_pretty(info)?;
            let fresh = self.path.join(format!("{HEAD}.new"));
            let mut file = File::create(&fresh)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&fresh, self.path.join(HEAD))
        };
        write().map_err(|e| LabError::run(FileError::write(&self.path.join(HEAD), e)))
    }

    /// The run directory of a cell, relative to this one.
    pub fn cell(id: &str) -> String {
        format!("{CELLS}/{id}")
    }

    /// Puts what a cell left aside, so that it can be run again; gives where, relative to this directory. None when it left
    /// nothing.
    pub fn set_aside(&self, cell: &CellInfo) -> Result<Option<String>, LabError> {
        let from = self.path.join(Self::cell(&cell.id));
        if !from.exists() {
            return Ok(None);
        }
        let numbers = std::iter::successors(Some(cell.tries.max(1)), |number| Some(number + 1));
        let mut names = numbers.map(|number| format!("{FAILED}/{}-{number}", cell.id));
        let to = names.find(|name| !self.path.join(name).exists()).unwrap_or_default();
        match fs::rename(&from, self.path.join(&to)) {
            Ok(()) => Ok(Some(to)),
            Err(e) => Err(LabError::run(format!("cannot put {} aside: {e}", from.display()))),
        }
    }

    /// Unfinished experiments of that name below `parent`, newest last.
    pub fn unfinished(parent: &Path, name: &str) -> Vec<(PathBuf, ExperimentInfo)> {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let heads = entries.filter_map(|entry| Some((entry.path(), read_head(&entry.path()).ok()?)));
        let mut found: Vec<_> = heads.filter(|(_, info)| info.name == name && !info.finished).collect();
        found.sort_by_key(|(_, info)| info.started_unix_ms);
        found
    }
}

/// The head of the experiment in a directory.
fn read_head(path: &Path) -> Result<ExperimentInfo, LabError> {
    let file = path.join(HEAD);
    let cannot = |e: &dyn std::fmt::Display| {
        LabError::plan(format!("{} holds no experiment: cannot read {}: {e}", path.display(), file.display()))
    };
    let text = assay_base::files::text(&file, assay_base::files::DOCUMENT_MAX).map_err(|e| cannot(&e))?;
    serde_json::from_str(&text).map_err(|e| cannot(&e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(path: &Path) -> (ExperimentDir, ExperimentInfo) {
        let text = "workloads = [\"demo\"]\n[[proxy]]\nname = \"builtin\"\n";
        let experiment = Experiment::read("x.toml", "x", text).unwrap();
        let info = super::super::info(&experiment);
        (ExperimentDir::create(path, &experiment, &info).unwrap(), info)
    }

    #[test]
    fn what_is_written_is_read_back_and_only_one_process_has_it() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("x");
        let (dir, mut info) = made(&path);
        info.cells[0].tries = 3;
        dir.write(&info).unwrap();
        assert!(ExperimentDir::open(&path).unwrap_err().to_string().contains("another Assay works in"));
        drop(dir);
        let (_dir, read, source) = ExperimentDir::open(&path).unwrap();
        assert_eq!(read, info);
        assert!(source.starts_with("workloads"));
        assert_eq!(ExperimentDir::unfinished(temp.path(), "x").len(), 1);
        assert_eq!(ExperimentDir::unfinished(temp.path(), "y").len(), 0);
    }

    #[test]
    fn one_is_not_made_over_something_else() {
        let temp = tempfile::tempdir().unwrap();
        drop(made(&temp.path().join("x")));
        let text = "workloads = [\"demo\"]\n[[proxy]]\nname = \"builtin\"\n";
        let experiment = Experiment::read("x.toml", "x", text).unwrap();
        let again = ExperimentDir::create(&temp.path().join("x"), &experiment, &ExperimentInfo::default());
        assert!(again.unwrap_err().to_string().contains("--resume"));
        assert!(ExperimentDir::open(temp.path()).unwrap_err().to_string().contains("holds no experiment"));
    }

    #[test]
    fn what_a_cell_left_is_put_aside_under_a_name_of_its_own() {
        let temp = tempfile::tempdir().unwrap();
        let (dir, info) = made(&temp.path().join("x"));
        let cell = CellInfo { tries: 1, ..info.cells[0].clone() };
        assert_eq!(dir.set_aside(&cell).unwrap(), None);
        for expected in ["failed/r1-demo-builtin-1", "failed/r1-demo-builtin-2"] {
            fs::create_dir(dir.path().join(ExperimentDir::cell(&cell.id))).unwrap();
            assert_eq!(dir.set_aside(&cell).unwrap().as_deref(), Some(expected));
            assert!(dir.path().join(expected).is_dir());
        }
    }
}
