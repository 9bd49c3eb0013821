//! Errors that end the Multiplier.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use assay_net::tls::setup::TlsSetupError;
use assay_net::worker::WorkerError;
use assay_protocol::stdio::StdioError;
use assay_record::dir::RunDirError;
use thiserror::Error;

use crate::validate::rules::RulesError;

/// Causes are part of the message, and so no `source`.
#[derive(Debug, Error)]
pub enum MultiplierError {
    #[error(
        "cannot listen for clients on {address}: {cause}; choose a free address of this machine with --listen"
    )]
    Listen { address: SocketAddr, cause: io::Error },
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    #[error("{0} proxies are more than the 64 that one evaluation can have")]
    TooMany(usize),
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error("responses cannot be written down: {0}")]
    Table(RunDirError),
    #[error("cannot write {}: {cause}", assay_base::quote::line::path(path))]
    Log { path: PathBuf, cause: io::Error },
    /// A thread or a runtime.
    #[error("cannot start a thread: {0}")]
    Start(io::Error),
    /// The message of the panic is on standard error.
    #[error("a thread of the Multiplier panicked: this is a bug of Assay")]
    Panicked,
    #[error(transparent)]
    Pin(#[from] WorkerError),
    #[error(transparent)]
    Parent(#[from] StdioError),
}
