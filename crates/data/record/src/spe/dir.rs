//! The directory of an evaluation.

use std::io;
use std::path::{Path, PathBuf};

use super::info::SpeInfo;
use crate::dir::RunDirError;
use crate::file;
use crate::table::FileError;

/// The directory of an evaluation. `spe.json` is written at the start and replaced whole, so it can be read at any
/// moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeDir {
    path: PathBuf,
}

/// Errors of the directory of an evaluation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpeDirError {
    /// The directory exists and is not empty.
    #[error("{} is not empty; name another directory, or empty it", assay_base::quote::line::path(path))]
    NotEmpty { path: PathBuf },
    /// The directory cannot be created.
    #[error(
        "cannot make the directory {}: {cause}; choose one that you may write to",
        assay_base::quote::line::path(path)
    )]
    Create {
        path: PathBuf,
        /// Error of the system call; part of the message, and therefore no `source` of this error.
        cause: io::Error,
    },
    /// The path holds no evaluation.
    #[error(
        "{} holds no evaluation (it has no spe.json); name a directory that `assay spe` made",
        assay_base::quote::line::path(path)
    )]
    NotAnEvaluation { path: PathBuf },
    /// A file of it cannot be read or written.
    #[error(transparent)]
    File(#[from] RunDirError),
}

impl From<FileError> for SpeDirError {
    fn from(error: FileError) -> Self {
        Self::File(error.into())
    }
}

impl SpeDir {
    /// Creates the directory and its parents. An existing empty directory is used.
    pub fn create(path: &Path) -> Result<Self, SpeDirError> {
        let cannot = |cause| SpeDirError::Create { path: path.to_owned(), cause };
        std::fs::create_dir_all(path).map_err(cannot)?;
        if std::fs::read_dir(path).map_err(cannot)?.next().is_some() {
            return Err(SpeDirError::NotEmpty { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned() })
    }

    /// Opens the directory of an evaluation that has ended or is in progress.
    pub fn open(path: &Path) -> Result<Self, SpeDirError> {
        let dir = Self { path: path.to_owned() };
        if dir.info_path().is_file() {
            Ok(dir)
        } else {
            Err(SpeDirError::NotAnEvaluation { path: path.to_owned() })
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `spe.json`.
    pub fn info_path(&self) -> PathBuf {
        self.path.join("spe.json")
    }

    /// `responses.parquet`.
    pub fn responses_path(&self) -> PathBuf {
        self.path.join("responses.parquet")
    }

    /// `listeners.parquet`.
    pub fn listeners_path(&self) -> PathBuf {
        self.path.join("listeners.parquet")
    }

    /// `collector.parquet`: the Collector's own log.
    pub fn exchanges_path(&self) -> PathBuf {
        self.path.join("collector.parquet")
    }

    /// `responses.log`: the document's text form, where it was requested.
    pub fn log_path(&self) -> PathBuf {
        self.path.join("responses.log")
    }

    /// `proxies/<label>/`: configuration and logs of a proxy that was started here.
    pub fn proxy_dir(&self, label: &str) -> PathBuf {
        self.path.join("proxies").join(label)
    }

    /// `summary.json`: what the report says, for programs.
    pub fn summary_path(&self) -> PathBuf {
        self.path.join("summary.json")
    }

    /// `report.html`.
    pub fn report_path(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// Writes `spe.json`; a reader sees the old one or the new one, never a part.
    pub fn write_info(&self, info: &SpeInfo) -> Result<(), SpeDirError> {
        Ok(file::write_json(&self.info_path(), info)?)
    }

    /// Reads `spe.json`.
    pub fn read_info(&self) -> Result<SpeInfo, SpeDirError> {
        Ok(file::read_json(&self.info_path())?)
    }

    /// Writes a file of this directory under a temporary name and renames it.
    pub fn write_whole(&self, path: &Path, bytes: &[u8]) -> Result<(), SpeDirError> {
        Ok(file::write_whole(path, bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use super::super::info::{Ended, EvaluationTarget, How};
    use super::*;

    #[test]
    fn an_evaluation_is_found_once_it_has_begun() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("spe/first");
        let dir = SpeDir::create(&path).unwrap();
        assert!(matches!(SpeDir::open(&path), Err(SpeDirError::NotAnEvaluation { .. })));
        let info = SpeInfo {
            seed: u64::MAX,
            ended: Some(Ended { at_ms: 7, how: How::Failed("no room".into()) }),
            targets: vec![EvaluationTarget { label: "direct".into(), ..EvaluationTarget::default() }],
            ..SpeInfo::default()
        };
        dir.write_info(&info).unwrap();
        assert_eq!(SpeDir::open(&path).unwrap().read_info().unwrap(), info);
        assert!(matches!(SpeDir::create(&path), Err(SpeDirError::NotEmpty { .. })));
    }

    #[test]
    fn a_damaged_head_is_an_error_and_no_panic() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("spe.json"), "{\"seed\": \"x").unwrap();
        let error = SpeDir::open(tmp.path()).unwrap().read_info().unwrap_err();
        assert!(error.to_string().contains("spe.json"), "{error}");
    }
}
