//! Errors that end the Collector.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use assay_net::tls::setup::TlsSetupError;
use assay_net::worker::WorkerError;
use assay_protocol::stdio::StdioError;
use assay_record::dir::RunDirError;
use thiserror::Error;

/// Causes are part of the message, and so no `source`.
#[derive(Debug, Error)]
pub enum CollectorError {
    #[error("the Collector was given {given} listeners; it needs one at least and can have {most}")]
    Listeners { most: usize, given: usize },
    #[error("cannot listen on {address}: {cause}; name another address, or stop what listens there")]
    Listen { address: SocketAddr, cause: io::Error },
    #[error(
        "cannot make the directory {} for recordings: {cause}; name another one",
        assay_base::quote::line::path(directory)
    )]
    Disk { directory: PathBuf, cause: io::Error },
    #[error(
        "cannot write the Collector's log in {}: {cause}; check the disk, or name another directory",
        assay_base::quote::line::path(directory)
    )]
    Log { directory: PathBuf, cause: io::Error },
    #[error(transparent)]
    Table(RunDirError),
    #[error(transparent)]
    OriginTls(#[from] TlsSetupError),
    #[error(transparent)]
    Pin(#[from] WorkerError),
    /// The runtime could not be created, or its timer failed.
    #[error("cannot run the Collector: {0}")]
    Runtime(io::Error),
    #[error(transparent)]
    Parent(#[from] StdioError),
}
