//! What can keep the Multiplier from its work.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use assay_net::tls::setup::TlsSetupError;
use assay_net::worker::WorkerError;
use assay_protocol::stdio::StdioError;
use assay_record::dir::RunDirError;
use thiserror::Error;

use crate::validate::rules::RulesError;

/// Why the Multiplier cannot run. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, Error)]
pub enum MultiplierError {
    #[error(
        "cannot listen for clients on {address}: {cause}; choose a free address of this machine with --listen"
    )]
    Listen {
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// TLS to clients or to proxies cannot be spoken as it was told.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// More proxies than an order has room for.
    #[error("{0} proxies are more than the 64 that one evaluation can have")]
    TooMany(usize),
    #[error(transparent)]
    Rules(#[from] RulesError),
    /// The table of responses.
    #[error("responses cannot be written down: {0}")]
    Table(RunDirError),
    #[error("cannot write {}: {cause}", assay_base::quote::line::path(path))]
    Log {
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// No thread, or no runtime.
    #[error("cannot start a thread: {0}")]
    Start(io::Error),
    /// A thread panicked; the message is on standard error.
    #[error("a thread of the Multiplier panicked: this is a bug of Assay")]
    Panicked,
    /// The processors that were named.
    #[error(transparent)]
    Pin(#[from] WorkerError),
    #[error(transparent)]
    Parent(#[from] StdioError),
}
