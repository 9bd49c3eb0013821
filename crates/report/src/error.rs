//! Why a report cannot be made.

use assay_record::dir::RunDirError;

/// What can go wrong with a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The run directory cannot be read, or the report cannot be written into it.
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    /// The page could not be put together.
    #[error("cannot put the HTML report together: {0}; this is a fault of Assay, please report it")]
    Page(#[from] minijinja::Error),
    /// The numbers could not be written as JSON.
    #[error("cannot write the report's numbers as JSON: {0}; this is a fault of Assay, please report it")]
    Json(#[from] serde_json::Error),
}
