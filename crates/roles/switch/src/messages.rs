//! Messages from the control thread to workers, and reports back to it.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use assay_cluster::dispatch::ServerId;
use tokio::sync::{mpsc, oneshot};

use crate::config::Config;
use crate::tally::SwitchSnapshot;
use crate::tls::TlsContext;

/// A configuration with the state of its servers, as sent to workers.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    pub config: Arc<Config>,
    /// Identifiers of the servers, in the order of the servers in the settings.
    pub server_ids: Arc<Vec<ServerId>>,
    /// Addresses to listen at, with the ports that the system assigned.
    pub listen: Arc<Vec<SocketAddr>>,
    /// Subset of `listen` where clients speak TLS.
    pub tls_addresses: Arc<Vec<SocketAddr>>,
    pub tls_context: Arc<TlsContext>,
    /// Weights of the servers that may get requests.
    pub weights: Arc<HashMap<ServerId, f64>>,
}

pub enum ControlMessage {
    /// A new configuration, with listening sockets for new addresses; confirmed once it is in force.
    Reload(WorkerConfig, Vec<TcpListener>, oneshot::Sender<()>),
    /// Weight of a server; `None` if it must not get requests.
    Availability(ServerId, Option<f64>),
    Snapshot(oneshot::Sender<SwitchSnapshot>),
    /// Accept nothing more, and end after the last response.
    Stop,
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerReport {
    /// A server failed a request.
    Failed(ServerId),
}

pub type ReportSender = mpsc::UnboundedSender<WorkerReport>;

/// Share of a limit that one worker gets; the shares of all workers add up to the whole.
pub fn worker_share(whole: u32, worker: usize, workers: usize) -> u32 {
    let (worker, workers) = (worker as u32, (workers as u32).max(1));
    whole / workers + u32::from(worker < whole % workers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        for (whole, workers) in [(10, 3), (7, 7), (9000, 1), (5, 2)] {
            let all: u32 = (0..workers).map(|worker| worker_share(whole, worker, workers)).sum();
            assert_eq!(all, whole);
            assert!((0..workers).all(|worker| worker_share(whole, worker, workers) >= 1));
        }
    }
}
