//! Why the Collector did not start, or not go on.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use assay_net::tls::setup::TlsSetupError;
use assay_net::worker::WorkerError;
use assay_protocol::stdio::StdioError;
use assay_record::dir::RunDirError;
use thiserror::Error;

/// What ends the Collector. Causes are part of the message, and so no `source`.
#[derive(Debug, Error)]
pub enum CollectorError {
    /// None, or too many.
    #[error("the Collector was given {given} listeners; it needs one at least and can have {most}")]
    Listeners {
        /// How many it can have.
        most: usize,
        /// How many it was given.
        given: usize,
    },
    /// An address is taken, or not ours.
    #[error("cannot listen on {address}: {cause}; name another address, or stop what listens there")]
    Listen {
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// The directory for recordings cannot be made.
    #[error(
        "cannot make the directory {} for recordings: {cause}; name another one",
        assay_base::quote::line::path(directory)
    )]
    Disk {
        directory: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The log cannot be written.
    #[error(
        "cannot write the Collector's log in {}: {cause}; check the disk, or name another directory",
        assay_base::quote::line::path(directory)
    )]
    Log {
        directory: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    #[error(transparent)]
    Table(RunDirError),
    /// TLS to the origin cannot be spoken as it was told.
    #[error(transparent)]
    OriginTls(#[from] TlsSetupError),
    /// The thread could not be tied to its processor.
    #[error(transparent)]
    Pin(#[from] WorkerError),
    /// The runtime could not be made, or its timer failed.
    #[error("cannot run the Collector: {0}")]
    Runtime(io::Error),
    /// Collector and parent do not understand each other.
    #[error(transparent)]
    Parent(#[from] StdioError),
}
