//! Why a run did not happen, or did not end well, and which exit code that is.

use crate::description::DescriptionError;

/// Why there is no (complete) run.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// This machine, or this plan, cannot carry the run. Found before anything was started.
    #[error("{0}")]
    Plan(String),
    /// A proxy's description cannot be used. Found before anything was started.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// Something was started and went wrong; everything is stopped again.
    #[error("{0}")]
    Run(String),
    /// The target ended in the middle; everything is stopped again.
    #[error("{0}")]
    Target(String),
    /// A part of Assay ended or fell silent; everything is stopped again.
    #[error("{0}")]
    Assay(String),
    /// Everything ran to its end, and nothing of it can be trusted.
    #[error("{0}")]
    Unsound(String),
    /// Stopped by the user before the first request was sent; nothing was measured.
    #[error("interrupted before the first request; nothing was measured")]
    Interrupted,
}

impl LabError {
    /// True when nothing had been started yet (exit code 2); else something failed on the way (exit code 1).
    pub fn before_start(&self) -> bool {
        matches!(self, LabError::Plan(_) | LabError::Description(_))
    }

    /// A plan that cannot be carried out.
    pub fn plan(message: impl Into<String>) -> Self {
        LabError::Plan(message.into())
    }

    /// A run that failed.
    pub fn run(message: impl Into<String>) -> Self {
        LabError::Run(message.into())
    }
}
