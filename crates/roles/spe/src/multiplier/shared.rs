//! What all clients' connections share.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::spec::{Turns, When};
use assay_net::connection::Resources;
use assay_net::pool::Pool;
use assay_net::tls::intercept::Interceptor;
use assay_net::upstream::Patience;
use assay_net::worker::descriptor_limit;
use assay_protocol::evaluation::MultiplierCounters;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use super::board::Board;
use super::lanes::ToProxies;
use super::later::Later;
use super::room::Room;
use crate::validate::Rules;

/// How long others may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A client without a request, and each step of receiving one.
    pub client_read: Duration,
    /// Each step of sending a response.
    pub client_write: Duration,
    /// The Collector.
    pub collector: Patience,
    /// How many descriptors there may be.
    pub descriptors: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            client_read: Duration::from_secs(120),
            client_write: Duration::from_secs(60),
            collector: Patience { connect: Duration::from_secs(10), response: Duration::from_secs(600) },
            descriptors: descriptor_limit(),
        }
    }
}

/// What all clients' connections share.
pub struct Shared {
    /// Counters, and where responses are reported.
    pub board: Arc<Board>,
    /// What is a difference.
    pub rules: Arc<Rules>,
    /// Idle connections to the Collector.
    pub pool: Pool,
    pub resources: Rc<Resources>,
    /// The Collector.
    pub collector: SocketAddr,
    /// Opens tunnels; none: they go through unseen.
    pub interceptor: Option<Interceptor>,
    /// Requests must name the whole URL.
    pub is_forward: bool,
    /// When requests are sent to the proxies.
    pub when: When,
    pub turns: Turns,
    /// Seed of the order.
    pub seed: u64,
    /// How many proxies there are.
    pub proxies: u8,
    /// Where requests to proxies go.
    pub to_proxies: UnboundedSender<ToProxies>,
    /// What is done when clients are not waiting.
    pub later: Later,
    /// What we are called in `Via`: another name in each process, since one may stand behind another.
    pub name: String,
    pub limits: Limits,
    /// How much there may be at once.
    pub room: Room,
    /// Tunnels that are not opened.
    pub tunnels: Cell<u64>,
    /// Requests under way to the Collector.
    pub under_way: Cell<u64>,
    /// No new request is begun.
    pub is_stopping: Cell<bool>,
    /// Wakes the tasks that wait for a client to leave.
    pub left: Notify,
    /// Number of the next request.
    pub next_request: Cell<u64>,
}

impl Shared {
    /// What has been done so far; requests of HTTP/2 that no handler has seen are among those refused.
    pub fn counters(&self) -> MultiplierCounters {
        let (counters, ended) = (self.board.counters(), self.resources.watch.ended());
        MultiplierCounters {
            refused: counters.refused + self.resources.refused.all(),
            slow_clients: ended.slow,
            dismissed_clients: ended.dismissed,
            ..counters
        }
    }
}
