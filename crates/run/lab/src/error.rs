//! Errors of a run, and the exit code that each of them means.

use std::io;
use std::path::{Path, PathBuf};

use crate::description::DescriptionError;

/// Cause of an error, as the operation that failed reports it. Its text is the whole message.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Reason why there is no (complete) run: how far it had come, and the cause. Causes are part of the message, and so no `source` of
/// the error.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The machine, or the plan, cannot carry the run. Found before anything was started.
    #[error("{0}")]
    Plan(Cause),
    /// A proxy's description cannot be used. Found before anything was started.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// Something was started and went wrong; everything is stopped again.
    #[error("{0}")]
    Run(Cause),
    /// The target ended in the middle; everything is stopped again.
    #[error("{0}")]
    Target(Cause),
    /// A part of Assay ended or fell silent; everything is stopped again.
    #[error("{0}")]
    Assay(Cause),
    /// Everything ran to its end, and nothing of it can be trusted.
    #[error("{0}")]
    Unsound(Cause),
    /// Stopped by the user before the first request was sent; nothing was measured.
    #[error("interrupted before the first request; nothing was measured")]
    Interrupted,
}

impl LabError {
    /// True when nothing had been started yet (exit code 2); else something failed on the way (exit code 1).
    pub fn before_start(&self) -> bool {
        matches!(self, LabError::Plan(_) | LabError::Description(_))
    }

    /// A plan that cannot be carried out, for this cause.
    pub fn plan(cause: impl Into<Cause>) -> Self {
        LabError::Plan(cause.into())
    }

    /// A run that failed, for this cause.
    pub fn run(cause: impl Into<Cause>) -> Self {
        LabError::Run(cause.into())
    }

    /// The end of the target in the middle of a run.
    pub fn target(cause: impl Into<Cause>) -> Self {
        LabError::Target(cause.into())
    }

    /// The end, or the silence, of a part of Assay.
    pub fn assay(cause: impl Into<Cause>) -> Self {
        LabError::Assay(cause.into())
    }
}

/// A file or directory that cannot be used. The cause is part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {cause}", path.display())]
pub struct FileError {
    action: &'static str,
    path: PathBuf,
    cause: io::Error,
}

impl FileError {
    /// A failed attempt to read, write or make what is at `path`, from what the system or an encoder says.
    pub fn new(action: &'static str, path: &Path, cause: impl Into<io::Error>) -> Self {
        Self { action, path: path.to_owned(), cause: cause.into() }
    }

    pub(crate) fn read(path: &Path, cause: impl Into<io::Error>) -> Self {
        Self::new("read", path, cause)
    }

    pub(crate) fn write(path: &Path, cause: impl Into<io::Error>) -> Self {
        Self::new("write", path, cause)
    }

    pub(crate) fn make(path: &Path, cause: impl Into<io::Error>) -> Self {
        Self::new("make", path, cause)
    }
}

/// The end of a run in the middle, with the place of what had been measured.
#[derive(Debug, thiserror::Error)]
#[error("{cause}\nWhat was measured until then is in {}.", run_dir.display())]
pub(crate) struct PartialRunError {
    pub(crate) cause: Cause,
    pub(crate) run_dir: PathBuf,
}
