//! What can keep a replay from being made.

use std::io;
use std::path::PathBuf;

use assay_logs::error::LogsError;
use assay_record::dir::RunDirError;
use thiserror::Error;

/// Why there is no replay. What becomes of single requests is never an error.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// A log cannot be read.
    #[error(transparent)]
    Logs(#[from] LogsError),
    /// A list cannot be read.
    #[error("cannot read the list of URLs {}: {cause}; check the path", assay_base::quote::line::path(path))]
    List {
        path: PathBuf,
        /// What the system said. It is part of the message, and so no `source` of this error.
        cause: io::Error,
    },
    /// There is nothing to send.
    #[error("there is no request in {name} that can be sent: {why}")]
    Nothing {
        name: String,
        /// What there was instead, and what to do.
        why: String,
    },
    /// The timer, a thread or a descriptor was not to be had.
    #[error("cannot get ready to send: {0}")]
    System(#[from] io::Error),
    /// Simulated origins cannot listen.
    #[error("cannot listen on {address} for simulated origins: {cause}; name another address with --origins")]
    Origin {
        address: std::net::SocketAddr,
        /// What the system said. It is part of the message, and so no `source` of this error.
        cause: io::Error,
    },
    /// The table of requests cannot be written.
    #[error(transparent)]
    Table(#[from] RunDirError),
    /// The result cannot be written as JSON.
    #[error("cannot write the result as JSON: {0}; this is a fault of Assay, please report it")]
    Json(#[from] serde_json::Error),
}
