//! What all clients' connections share.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use assay_plane::connection::Resources;
use assay_plane::pool::Pool;
use assay_plane::upstream::Patience;
use assay_role::evaluation::{Turns, When};
use assay_tls::intercept::Interceptor;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use super::board::Board;
use super::lanes::ToProxies;
use super::later::Later;
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
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            client_read: Duration::from_secs(120),
            client_write: Duration::from_secs(60),
            collector: Patience { connect: Duration::from_secs(10), response: Duration::from_secs(600) },
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
    /// Buffers and deadlines.
    pub resources: Rc<Resources>,
    /// The Collector.
    pub collector: SocketAddr,
    /// Opens tunnels; none: they go through unseen.
    pub interceptor: Option<Interceptor>,
    /// Requests must name the whole URL.
    pub is_forward: bool,
    /// When requests are sent to the proxies.
    pub when: When,
    /// In which order.
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
    /// Patience.
    pub limits: Limits,
    /// No new request is begun.
    pub is_stopping: Cell<bool>,
    /// Wakes the task that waits for the last client.
    pub left: Notify,
    /// Number of the next request.
    pub next_request: Cell<u64>,
}
