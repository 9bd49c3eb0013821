//! Failures to make a report.

use std::io;
use std::path::PathBuf;

use assay_record::dir::RunDirError;
use assay_record::spe::SpeDirError;

/// Failure to make a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The run directory cannot be read, or the report cannot be written into it.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The directory of an evaluation cannot be read, or the report cannot be written into it.
    #[error(transparent)]
    SpeDir(#[from] SpeDirError),
    /// There is no experiment in the directory.
    #[error(
        "{} is not an experiment directory (it has no experiment.json); name a directory that `assay lab` made",
        assay_base::quote::line::path(path)
    )]
    NotAnExperiment { path: PathBuf },
    /// The head of an experiment cannot be read.
    #[error("cannot read {}: {cause}; check its permissions", assay_base::quote::line::path(path))]
    ReadExperiment {
        path: PathBuf,
        /// The system's error. Part of the message, and so no `source`.
        cause: io::Error,
    },
    /// The head of an experiment does not hold what its name says.
    #[error(
        "cannot make sense of {}: {detail}; it is damaged, or was written by another version of Assay",
        assay_base::quote::line::path(path)
    )]
    DamagedExperiment {
        path: PathBuf,
        /// The parser's message.
        detail: String,
    },
    /// The comparison cannot be written into the experiment directory.
    #[error(
        "cannot write {}: {cause}; check that there is room on the disk and that you may write there",
        assay_base::quote::line::path(path)
    )]
    WriteComparison {
        path: PathBuf,
        /// The system's error. Part of the message, and so no `source`.
        cause: io::Error,
    },
    /// Somebody wants a table that there is none of.
    #[error("a run directory has no table {name:?}; it has {}", known.join(", "))]
    NoSuchTable {
        /// The format that was requested.
        name: String,
        known: Vec<&'static str>,
    },
    /// An export cannot be written.
    #[error(
        "cannot write {}: {cause}; check that there is room and that you may write there",
        assay_base::quote::line::path(path)
    )]
    Export {
        /// The file or directory.
        path: PathBuf,
        /// The system's error. Part of the message, and so no `source`.
        cause: io::Error,
    },
    /// The page could not be put together.
    #[error("cannot put the HTML report together: {0}; this is a fault of Assay, please report it")]
    Page(#[from] minijinja::Error),
    /// The numbers could not be written as JSON.
    #[error("cannot write the report's numbers as JSON: {0}; this is a fault of Assay, please report it")]
    Json(#[from] serde_json::Error),
}
