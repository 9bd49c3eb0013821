//! Why did the proxy not start, or not go on?

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

/// What ends the proxy.
#[derive(Debug, Error)]
pub enum ProxyError {
    /// More threads than one.
    #[error("the built-in proxy runs on one thread, not {0}: its store is not shared between threads; say 1")]
    Threads(u32),
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}: {source}; name another address, or stop what listens there")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The processor does not exist, or may not be used.
    #[error("cannot run on processor {cpu}: {source}; name one that this process may use, or none")]
    Pin {
        /// The processor.
        cpu: u32,
        /// What the system said.
        source: io::Error,
    },
    /// The runtime could not be made.
    #[error("cannot start the proxy's runtime: {0}")]
    Runtime(io::Error),
    /// Nobody takes the events any more.
    #[error("cannot report an event on standard output: {0}")]
    Report(io::Error),
}
