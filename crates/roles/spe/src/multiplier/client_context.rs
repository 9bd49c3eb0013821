//! State that all clients' connections share.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::spec::{Turns, When};
use assay_net::connection::Resources;
use assay_net::pool::Pool;
use assay_net::tls::intercept::Interceptor;
use assay_net::upstream::UpstreamTimeouts;
use assay_net::worker::descriptor_limit;
use assay_protocol::evaluation::MultiplierCounters;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedSender;

use super::deferred::DeferredWork;
use super::limits::ConnectionLimits;
use super::proxy_connections::ProxyCommand;
use super::shared_state::SharedState;
use crate::validate::Rules;

/// Timeouts and limits of the Multiplier.
#[derive(Debug, Clone, Copy)]
pub struct MultiplierLimits {
    /// Idle client, and each step of receiving a request.
    pub client_read: Duration,
    /// Each step of sending a response.
    pub client_write: Duration,
    pub collector: UpstreamTimeouts,
    /// Limit of file descriptors.
    pub descriptors: u64,
}

impl Default for MultiplierLimits {
    fn default() -> Self {
        Self {
            client_read: Duration::from_secs(120),
            client_write: Duration::from_secs(60),
            collector: UpstreamTimeouts {
                connect: Duration::from_secs(10),
                response: Duration::from_secs(600),
            },
            descriptors: descriptor_limit(),
        }
    }
}

pub struct ClientContext {
    /// Counters, and the log of responses.
    pub state: Arc<SharedState>,
    /// Rules of comparison.
    pub rules: Arc<Rules>,
    /// Idle connections to the Collector.
    pub pool: Pool,
    pub resources: Rc<Resources>,
    pub collector: SocketAddr,
    /// `None`: tunnels are relayed unseen.
    pub interceptor: Option<Interceptor>,
    /// Requests must have absolute URLs.
    pub is_forward: bool,
    pub when: When,
    pub turns: Turns,
    /// Seed of the order of proxies.
    pub seed: u64,
    /// Number of proxies.
    pub proxies: u8,
    /// Commands to the proxies' thread.
    pub to_proxies: UnboundedSender<ProxyCommand>,
    /// Work deferred until clients are not waiting.
    pub deferred: DeferredWork,
    /// Name in `Via`; differs in each process, since one Multiplier may be behind another.
    pub name: String,
    pub limits: MultiplierLimits,
    pub connection_limits: ConnectionLimits,
    /// Tunnels that are relayed unseen.
    pub tunnels: Cell<u64>,
    /// Requests under way to the Collector.
    pub in_flight: Cell<u64>,
    /// No new request is accepted.
    pub is_stopping: Cell<bool>,
    /// Notified when a client has left.
    pub left: Notify,
    pub next_request: Cell<u64>,
}

impl ClientContext {
    /// Counters, including HTTP/2 requests refused before any handler saw them.
    pub fn counters(&self) -> MultiplierCounters {
        let (counters, ended) = (self.state.counters(), self.resources.deadlines.counts());
        MultiplierCounters {
            refused: counters.refused + self.resources.refusals.total(),
            slow_clients: ended.slow,
            dismissed_clients: ended.dismissed,
            ..counters
        }
    }
}
