//! A cluster to try a switch on: back-end nodes, and clients that send requests without a pause as WebStone's do.
//!
//! Nodes ([`nodes`]) speak HTTP and serve what a cluster file describes: files, and programs that take processor and disk
//! time. A *virtual* node works a request off in `dispatch`'s model of a machine and waits as long as that takes, so dozens
//! fit in a process and on a small machine; a *real* one burns processor time and writes to a disk ([`real`]). Clients
//! ([`clients`]) form a closed loop. What they request is the simulation's stream, request by request, and what comes out
//! has the form of its results, so that a live cluster and a simulated one can be held against each other. WebStone's own
//! files are read as they stand ([`webstone`]), nodes that somebody else started are watched ([`node_monitor`]), and a node's own service times are found by [`calibrate`].
//!
//! *Does not:* balance (that is a switch's work), open settings files, print, or judge results.

pub mod calibrate;
pub mod clients;
mod model_clock;
pub mod node_monitor;
pub mod nodes;
mod real;
mod router;
mod serve;
mod virtual_nodes;
pub mod webstone;

pub use model_clock::ModelClock;

use std::io;
use std::net::SocketAddr;

use assay_cluster::dispatch::ServerId;
use assay_net::listen::advice;
use thiserror::Error;

/// Failure of nodes or clients. Causes are part of the message, and so no `source`.
#[derive(Debug, Error)]
pub enum NodeError {
    /// A node cannot listen where it should.
    #[error("node {} cannot listen on {address}: {cause}; {}", node.0, advice(cause))]
    Listen { node: ServerId, address: SocketAddr, cause: io::Error },
    /// Port numbers end before the last node.
    #[error("{nodes} nodes from port {port} on are more than there are ports; begin lower")]
    Ports { nodes: usize, port: u16 },
    #[error("cannot start {component}: {cause}")]
    Start { component: &'static str, cause: io::Error },
    /// A real node cannot have its directory.
    #[error("cannot make the directory {path} for a node's files: {cause}")]
    Directory { path: String, cause: io::Error },
    /// A thread of ours panicked; the message is on standard error.
    #[error("{component} panicked: this is a bug of Assay")]
    Panicked { component: &'static str },
}

impl NodeError {
    pub(crate) fn start(component: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::Start { component, cause }
    }
}
