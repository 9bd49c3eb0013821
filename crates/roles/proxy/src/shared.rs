//! State that all connections of the worker share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_cache::freshness::{RequestControl, Reuse};
use assay_protocol::message::ProxyCounters;

use crate::access_log::AccessLog;
use crate::fetched::Fetch;
use crate::peers::Peers;
use crate::prefetch::Prefetcher;
use crate::spec::{OriginRoute, ProxySpec};
use crate::store::{CacheKey, Store};
use crate::target::{RoutingTable, Target};
use assay_net::connection::Resources;
use assay_net::exchange::ClientLimits;
use assay_net::pool::{Pool, UpstreamTls};
use assay_net::upstream::UpstreamTimeouts;
use assay_net::worker::descriptor_limit;
use tokio::sync::Notify;

#[derive(Debug, Clone)]
pub enum Clock {
    /// The system's wall clock.
    System,
    /// Unix milliseconds set by a test.
    Manual(Rc<Cell<i64>>),
}

impl Clock {
    pub fn now_ms(&self) -> i64 {
        match self {
            Clock::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
            Clock::Manual(now_ms) => now_ms.get(),
        }
    }
}

/// Timeouts and limits of the proxy.
#[derive(Debug, Clone, Copy)]
pub struct ProxyLimits {
    /// Idle client connection, and each step of receiving a request.
    pub client_read: Duration,
    /// Each step of sending a response.
    pub client_write: Duration,
    /// Connection establishment to an origin.
    pub origin_connect: Duration,
    /// Each step of an origin's response, including the first byte.
    pub origin_response: Duration,
    /// Idle origin connection.
    pub origin_idle: Duration,
    /// Maximum of client connections.
    pub clients: usize,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            client_read: Duration::from_secs(120),
            client_write: Duration::from_secs(60),
            origin_connect: Duration::from_secs(10),
            origin_response: Duration::from_secs(60),
            origin_idle: Duration::from_secs(60),
            clients: max_clients(),
        }
    }
}

/// Descriptors reserved for anything but connections of clients and origins.
const OTHER_DESCRIPTORS: u64 = 200;
/// Client connections that the descriptor limit permits if each needs one to an origin; without a limit, as many as there are
/// ports at one address.
fn max_clients() -> usize {
    (descriptor_limit().saturating_sub(OTHER_DESCRIPTORS) / 2).clamp(1, 1 << 16) as usize
}

impl ProxyLimits {
    pub fn of_clients(&self) -> ClientLimits {
        ClientLimits::new(self.client_read, self.client_write)
    }
}

/// Pool of origin connections. With several origins, each may use three quarters of the client limit: a slow one leaves the rest
/// to the others.
fn pool(
    resources: &Rc<Resources>,
    origins: &[OriginRoute],
    tls: Option<UpstreamTls>,
    limits: ProxyLimits,
) -> Pool {
    let pool = Pool::with_tls(resources, tls);
    let is_only_one = origins.windows(2).all(|two| two[0].address == two[1].address) && !origins.is_empty();
    if is_only_one { pool } else { pool.with_max_per_server((limits.clients * 3 / 4).max(1)) }
}

/// State that outlives a connection.
pub struct ProxyShared {
    /// Name in `Via` and `Cache-Status`.
    pub name: String,
    pub peers: Peers,
    /// Other caches are configured, as peers or as clients.
    pub is_cooperating: bool,
    pub store: RefCell<Store>,
    /// Fetches that other requests may join.
    pub fetches: RefCell<HashMap<CacheKey, Rc<Fetch>>>,
    pub pool: Pool,
    pub resources: Rc<Resources>,
    pub clients: Cell<usize>,
    /// Notified when a client connection ends.
    pub client_left: Notify,
    pub routes: RoutingTable,
    pub clock: Clock,
    pub limits: ProxyLimits,
    /// Default for `stale-if-error`, in seconds.
    pub stale_if_error_s: u64,
    /// Freshness lifetime of responses that state none, in seconds.
    pub default_lifetime_s: u64,
    pub prefetcher: Prefetcher,
    pub address: SocketAddr,
    /// `None`: requests are not logged.
    pub access_log: Option<RefCell<AccessLog>>,
    counters: RefCell<ProxyCounters>,
}

impl ProxyShared {
    pub fn new(
        spec: &ProxySpec,
        peers: Peers,
        clock: Clock,
        limits: ProxyLimits,
        address: SocketAddr,
        access_log: Option<AccessLog>,
        origin_tls: Option<UpstreamTls>,
    ) -> Self {
        let resources = Resources::new();
        let over_http2 = spec.origins.iter().filter(|_| spec.origin_http2).map(|origin| origin.address);
        Self {
            name: spec.name.clone(),
            peers,
            is_cooperating: spec.cooperation.is_some(),
            store: RefCell::new(Store::new(spec.memory_bytes, spec.storing)),
            fetches: RefCell::default(),
            pool: pool(&resources, &spec.origins, origin_tls, limits).with_http2_servers(over_http2),
            resources,
            clients: Cell::new(0),
            client_left: Notify::new(),
            routes: RoutingTable::new(&spec.origins, spec.tls.is_some()),
            clock,
            limits,
            stale_if_error_s: spec.stale_if_error_s,
            default_lifetime_s: spec.storing.default_lifetime_s,
            prefetcher: Prefetcher::new(spec.prefetch),
            address,
            access_log: access_log.map(RefCell::new),
            counters: RefCell::default(),
        }
    }

    pub fn count(&self, add: impl FnOnce(&mut ProxyCounters)) {
        add(&mut self.counters.borrow_mut());
    }

    /// Counters, with the state of the store.
    pub fn counters(&self) -> ProxyCounters {
        let (store, counters) = (self.store.borrow(), *self.counters.borrow());
        ProxyCounters {
            refused: counters.refused + self.resources.refusals.total(),
            objects: store.objects(),
            stored_bytes: store.stored_bytes(),
            evictions: store.evictions(),
            peers: self.peers.counters(),
            prefetch: self.prefetcher.counters(),
            slow_clients: self.resources.deadlines.counts().slow,
            dismissed_clients: self.resources.deadlines.counts().dismissed,
            ..counters
        }
    }

    pub fn upstream_timeouts(&self) -> UpstreamTimeouts {
        UpstreamTimeouts { connect: self.limits.origin_connect, response: self.limits.origin_response }
    }

    /// Whether a response is stored that is fresh for a plain request.
    pub fn holds(&self, target: &Target<'_>) -> bool {
        let mut key = Vec::new();
        self.routes.write_key(target, &mut key);
        let store = self.store.borrow();
        let now_ms = self.clock.now_ms();
        store.peek(&key).is_some_and(|stored| {
            stored.response.freshness.reuse(&RequestControl::default(), now_ms) == Reuse::Serve
        })
    }

    /// Removes the response stored under a key, and keeps fetches under way for it from being stored or joined.
    pub fn invalidate(&self, key: &[u8]) {
        self.store.borrow_mut().invalidate(key);
        self.fetches.borrow_mut().remove(key);
    }
}
