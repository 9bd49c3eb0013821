//! What can go wrong with nodes and clients.

use std::io;
use std::net::SocketAddr;

use assay_net::listen::advice;
use thiserror::Error;

/// Why nodes or clients could not do their work. Causes are part of the message, and so no `source`.
#[derive(Debug, Error)]
pub enum NodeError {
    /// A node cannot listen where it should.
    #[error("node {node} cannot listen on {address}: {cause}; {}", advice(cause))]
    Listen { node: usize, address: SocketAddr, cause: io::Error },
    /// There are not so many ports after the first.
    #[error("{nodes} nodes from port {port} on are more than there are ports; begin lower")]
    Ports { nodes: usize, port: u16 },
    /// A thread, a runtime or a timer of ours could not be made.
    #[error("cannot start {what}: {cause}")]
    Start { what: &'static str, cause: io::Error },
    /// A real node cannot have its directory.
    #[error("cannot make the directory {path} for a node's files: {cause}")]
    Directory { path: String, cause: io::Error },
    /// A thread of ours panicked; the message is on standard error.
    #[error("{what} panicked: this is a bug of Assay")]
    Panicked { what: &'static str },
}

impl NodeError {
    pub(crate) fn start(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Start { what, cause }
    }
}
