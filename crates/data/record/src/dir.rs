//! The run directory: paths of its files, and errors of reading and writing them.

use std::io;
use std::path::{Path, PathBuf};

use crate::checksums::Checksums;
use crate::file;
use crate::run::RunInfo;
use crate::table::FileError;

/// A directory that holds one run.
///
/// `run.json` is written anew on every change (to a temporary name, then renamed), so it is whole at any
/// moment. Measurements are appended to `journal.jsonl` while the run goes on and become Parquet when it
/// ends: see [`crate::series`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    path: PathBuf,
}

/// Errors of a run directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunDirError {
    /// The directory exists and is not empty.
    #[error("{} is not empty; name another directory, or empty it", assay_base::quote::line::path(path))]
    NotEmpty { path: PathBuf },
    /// The directory cannot be created.
    #[error("cannot make the run directory {}: {cause}; {}", assay_base::quote::line::path(path), advice(cause.kind()))]
    Create {
        path: PathBuf,
        /// Error of the system call; part of the message, and therefore no `source` of this error.
        cause: io::Error,
    },
    /// The path holds no run.
    #[error(
        "{} is not a run directory ({why}); name a directory that `assay run` made",
        assay_base::quote::line::path(path)
    )]
    NotARun {
        path: PathBuf,
        /// Description of what the path holds instead.
        why: String,
    },
    /// A file cannot be read or written, or has other contents than its name says. The message contains that error, which is
    /// therefore no `source`.
    #[error("{}; {}", .0, file_advice(.0))]
    File(FileError),
}

impl RunDirError {
    /// Whether the error loses no data: a table stays unfinished, and can be read as it is.
    pub fn is_kept(&self) -> bool {
        matches!(self, Self::File(error) if error.is_kept())
    }
}

impl From<FileError> for RunDirError {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// Advice on a file error.
fn file_advice(error: &FileError) -> &'static str {
    match error {
        FileError::Read { cause, .. } | FileError::Write { cause, .. } => advice(cause.kind()),
        FileError::Kept { cause, .. } => advice(*cause),
        FileError::Damaged { .. } | FileError::Footer { .. } => {
            "it is damaged, or was written by another version of Assay"
        }
    }
}

/// Advice on an error of the file system.
fn advice(cause: io::ErrorKind) -> &'static str {
    match cause {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the disk is full: make room there, or put the run elsewhere with --run-dir (an evaluation, and what an agent writes: with --dir)"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "choose a directory that you may write to with --run-dir, or fix its permissions"
        }
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => {
            "put back the file that was written there, or remove it"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a part of the path is a file: choose another path with --run-dir"
        }
        _ => "check the disk, or put the run elsewhere with --run-dir",
    }
}

/// Description of a path that holds no run; of a directory of runs, it names one of them.
fn describe_path(path: &Path) -> String {
    if path.is_file() {
        return "it is a file".into();
    }
    let Ok(entries) = std::fs::read_dir(path) else {
        let why = if path.exists() { "it cannot be read" } else { "there is nothing of that name" };
        return why.into();
    };
    let inner = entries.flatten().map(|entry| RunDir { path: entry.path() });
    let mut runs: Vec<PathBuf> = inner.filter(RunDir::is_run).map(|run| run.path).collect();
    runs.sort();
    match runs.last() {
        Some(last) => format!("it holds runs, such as {}", assay_base::quote::line::path(last)),
        None if path.join("spe.json").is_file() => {
            "it is of an evaluation, which `assay spe report` reports".into()
        }
        None => "it has no run.json".into(),
    }
}

impl RunDir {
    /// Creates the directory (and its parents) with its `proxy/`. An existing empty directory is used.
    pub fn create(path: &Path) -> Result<Self, RunDirError> {
        let cannot = |cause| RunDirError::Create { path: path.to_owned(), cause };
        std::fs::create_dir_all(path).map_err(cannot)?;
        if std::fs::read_dir(path).map_err(cannot)?.next().is_some() {
            return Err(RunDirError::NotEmpty { path: path.to_owned() });
        }
        let dir = Self { path: path.to_owned() };
        std::fs::create_dir(dir.proxy_dir()).map_err(cannot)?;
        Ok(dir)
    }

    /// Opens the directory of a run that has ended or is in progress.
    pub fn open(path: &Path) -> Result<Self, RunDirError> {
        let dir = Self { path: path.to_owned() };
        if dir.is_run() {
            return Ok(dir);
        }
        Err(RunDirError::NotARun { path: path.to_owned(), why: describe_path(path) })
    }

    fn is_run(&self) -> bool {
        // A directory that lost its run.json may still have measurements.
        let parts = [self.info_path(), self.journal_path(), self.path.join("robots.parquet")];
        parts.iter().any(|part| part.is_file())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `run.json`: what was run, when, with what.
    pub fn info_path(&self) -> PathBuf {
        self.path.join("run.json")
    }

    /// `workload.json`: the workload as compiled (and scaled).
    pub fn workload_path(&self) -> PathBuf {
        self.path.join("workload.json")
    }

    /// `proxy/`: configuration, logs and counters of the target, in its own formats.
    pub fn proxy_dir(&self) -> PathBuf {
        self.path.join("proxy")
    }

    /// `journal.jsonl`: measurements of a run that has not ended.
    pub fn journal_path(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    /// `xacts.parquet`: every xact, when it was requested.
    pub fn xacts_path(&self) -> PathBuf {
        self.path.join("xacts.parquet")
    }

    /// `SHA256SUMS`: what the files were when the run had written them.
    pub fn checksums_path(&self) -> PathBuf {
        self.path.join("SHA256SUMS")
    }

    /// `examples.json`: the first errors of each kind.
    pub fn examples_path(&self) -> PathBuf {
        self.path.join("examples.json")
    }

    /// `report.html`.
    pub fn report_path(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// `summary.json`.
    pub fn summary_path(&self) -> PathBuf {
        self.path.join("summary.json")
    }

    /// Writes `run.json`; a reader sees the old one or the new one, never a part.
    pub fn write_info(&self, info: &RunInfo) -> Result<(), RunDirError> {
        let path = self.info_path();
        if !self.checksums_path().exists() {
            return Ok(file::write_json(&path, info)?);
        }
        // A concurrent reader finds no digest of the file, rather than a stale one.
        let mut sums = Checksums::read(self)?;
        sums.remove("run.json");
        sums.write(self)?;
        file::write_json(&path, info)?;
        sums.add(&path)?;
        sums.write(self)
    }

    /// Reads `run.json`.
    pub fn read_info(&self) -> Result<RunInfo, RunDirError> {
        Ok(file::read_json(&self.info_path())?)
    }

    /// Adds a file that was written after the tables to the checksums. Before there are any, nothing is done: they will be made
    /// of all files.
    pub(crate) fn add_checksum(&self, path: &Path) -> Result<(), RunDirError> {
        if !self.checksums_path().exists() {
            return Ok(());
        }
        let mut sums = Checksums::read(self)?;
        sums.add(path)?;
        sums.write(self)
    }

    /// Verifies a file against its checksum.
    pub(crate) fn check_file(&self, path: &Path) -> Result<(), RunDirError> {
        Checksums::read(self)?.check(path)
    }

    /// Writes a file of this directory under a temporary name and renames it.
    pub fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), RunDirError> {
        Ok(file::write_whole(path, bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_directory_is_made_with_those_above_it_and_opened_once_it_has_a_run() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("runs/first");
        let dir = RunDir::create(&path).unwrap();
        assert!(matches!(RunDir::open(&path), Err(RunDirError::NotARun { .. })));
        let why = |path: &Path| RunDir::open(path).unwrap_err().to_string();
        assert!(why(&path).contains("it has no run.json"));
        std::fs::write(path.join("spe.json"), "{}").expect("writable");
        assert!(why(&path).contains("`assay spe report`"));
        assert!(why(&tmp.path().join("none")).contains("there is nothing of that name"));
        let info = RunInfo { seed: u64::MAX, finished: true, ..RunInfo::default() };
        dir.write_info(&info).unwrap();
        assert_eq!(RunDir::open(&path).unwrap().read_info().unwrap(), info);
        assert!(dir.proxy_dir().is_dir());
        assert!(why(&dir.info_path()).contains("it is a file"));
        assert!(why(&tmp.path().join("runs")).contains("it holds runs, such as"));
    }

    #[test]
    fn a_directory_with_something_in_it_is_refused() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("precious"), "x").unwrap();
        let error = RunDir::create(tmp.path()).unwrap_err();
        assert!(matches!(error, RunDirError::NotEmpty { .. }));
        assert!(error.to_string().contains("not empty"), "{error}");
    }

    #[test]
    fn a_path_that_cannot_be_made_says_what_to_do() {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let error = RunDir::create(&file.join("run")).unwrap_err().to_string();
        assert!(error.contains("--run-dir"), "{error}");
    }

    #[test]
    fn a_full_disk_says_that_it_is_full_and_what_to_do() {
        let cause = io::Error::from_raw_os_error(28);
        let full = RunDirError::from(FileError::write(Path::new("/x/journal.jsonl"), cause));
        assert!(full.to_string().contains("the disk is full"), "{full}");
    }

    #[test]
    fn what_the_system_said_is_said_once_also_where_causes_are_listed() {
        let cause = io::Error::from_raw_os_error(28);
        let full = RunDirError::from(FileError::write(Path::new("/x/summary.json"), cause));
        assert_eq!(full.to_string().matches("os error 28").count(), 1, "{full}");
        assert!(std::error::Error::source(&full).is_none());
    }

    #[test]
    fn a_damaged_head_is_an_error_and_no_panic() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("run.json"), "{\"seed\": \"x").unwrap();
        let error = RunDir::open(tmp.path()).unwrap().read_info().unwrap_err();
        assert!(matches!(error, RunDirError::File(FileError::Damaged { .. })));
    }
}
