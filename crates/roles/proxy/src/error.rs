//! Why the proxy did not start, or not go on.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use assay_net::tls::client::SettingsError;
use assay_net::tls::setup::TlsSetupError;
use assay_net::worker::WorkerError;
use assay_protocol::stdio::StdioError;
use thiserror::Error;

/// What ends the proxy. Causes are part of the message, and so no `source`.
#[derive(Debug, Error)]
pub enum ProxyError {
    /// More threads than one.
    #[error("the built-in proxy runs on one thread, not {0}: its store is not shared between threads; say 1")]
    Threads(u32),
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}: {cause}; name another address, or stop what listens there")]
    Listen {
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// The access log cannot be written.
    #[error(
        "cannot write the access log {}: {cause}; name another file, or make room for it",
        assay_base::quote::line::path(path)
    )]
    Log {
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It cannot speak TLS as it was told.
    #[error("the built-in proxy cannot speak TLS: {0}")]
    Tls(#[from] TlsSetupError),
    /// The certificate of an origin cannot be verified.
    #[error("the built-in proxy cannot speak TLS to the origin {authority}: {cause}")]
    Name {
        /// The authority of the origin.
        authority: String,
        /// What is wrong with its host.
        cause: SettingsError,
    },
    /// The thread could not be tied to its processor.
    #[error(transparent)]
    Pin(#[from] WorkerError),
    /// The runtime could not be made.
    #[error("cannot start the proxy's runtime: {0}")]
    Runtime(io::Error),
    /// Proxy and parent do not understand each other.
    #[error(transparent)]
    Parent(#[from] StdioError),
}
