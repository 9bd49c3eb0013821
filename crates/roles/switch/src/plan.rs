//! Messages from the thread that steers to a worker, and news back to it.

use std::collections::HashMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use assay_cluster::dispatch::ServerId;
use tokio::sync::{mpsc, oneshot};

use crate::config::Config;
use crate::secure::Secure;
use crate::tally::Snapshot;

/// A configuration, and the number of each of its servers.
#[derive(Debug, Clone)]
pub struct Plan {
    pub config: Arc<Config>,
    /// Numbers of servers, by their places in the settings.
    pub numbers: Arc<Vec<ServerId>>,
    /// Where to listen, with the ports that the system gave.
    pub listen: Arc<Vec<SocketAddr>>,
    /// Those of them where clients speak TLS.
    pub secured: Arc<Vec<SocketAddr>>,
    pub secure: Arc<Secure>,
    /// Weights of servers that can get requests now, by number.
    pub standings: Arc<HashMap<ServerId, f64>>,
}

/// What a worker is told.
pub enum Word {
    /// Another configuration; listening sockets for addresses that are new. Confirmed when it is in force.
    Plan(Plan, Vec<TcpListener>, oneshot::Sender<()>),
    /// A server's weight; none: it must not get requests.
    Standing(ServerId, Option<f64>),
    /// Say what you have done.
    Snapshot(oneshot::Sender<Snapshot>),
    /// Accept nothing more, and end after the last response.
    Stop,
    End,
}

/// What a worker tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// A server has failed a request.
    Failed(ServerId),
}

pub type NewsSender = mpsc::UnboundedSender<News>;

/// The part of a limit that a worker has: parts of all workers add up to the whole.
pub fn part_of(whole: u32, worker: usize, workers: usize) -> u32 {
    let (worker, workers) = (worker as u32, (workers as u32).max(1));
    whole / workers + u32::from(worker < whole % workers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up() {
        for (whole, workers) in [(10, 3), (7, 7), (9000, 1), (5, 2)] {
            let all: u32 = (0..workers).map(|worker| part_of(whole, worker, workers)).sum();
            assert_eq!(all, whole);
            assert!((0..workers).all(|worker| part_of(whole, worker, workers) >= 1));
        }
    }
}
