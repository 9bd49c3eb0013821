//! Errors that end the proxy.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use assay_net::tls::client::TlsSettingsError;
use assay_net::tls::setup::TlsSetupError;
use assay_net::worker::WorkerError;
use assay_protocol::stdio::StdioError;
use thiserror::Error;

/// Causes are part of the message, and so no `source`.
#[derive(Debug, Error)]
pub enum ProxyError {
    #[error("the built-in proxy runs on one thread, not {0}: its store is not shared between threads; say 1")]
    Threads(u32),
    #[error("cannot listen on {address}: {cause}; name another address, or stop what listens there")]
    Listen { address: SocketAddr, cause: io::Error },
    #[error(
        "cannot write the access log {}: {cause}; name another file, or make room for it",
        assay_base::quote::line::path(path)
    )]
    Log { path: PathBuf, cause: io::Error },
    #[error("the built-in proxy cannot speak TLS: {0}")]
    Tls(#[from] TlsSetupError),
    /// The certificate of an origin cannot be verified.
    #[error("the built-in proxy cannot speak TLS to the origin {authority}: {cause}")]
    Name {
        /// Authority of the origin.
        authority: String,
        cause: TlsSettingsError,
    },
    #[error(transparent)]
    Pin(#[from] WorkerError),
    #[error("cannot start the proxy's runtime: {0}")]
    Runtime(io::Error),
    #[error(transparent)]
    Parent(#[from] StdioError),
}
