//! What all connections of the worker share.

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
use crate::store::{Key, Store};
use crate::target::{Routes, Target};
use assay_net::connection::Resources;
use assay_net::exchange::ClientLimits;
use assay_net::pool::{Pool, UpstreamTls};
use assay_net::upstream::Patience;
use assay_net::worker::descriptor_limit;
use tokio::sync::Notify;

/// Where the time comes from.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The system's wall clock.
    System,
    /// Whatever is set, in Unix milliseconds.
    Manual(Rc<Cell<i64>>),
}

impl Clock {
    /// Unix time in milliseconds.
    pub fn now_ms(&self) -> i64 {
        match self {
            Clock::System => SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX)),
            Clock::Manual(now_ms) => now_ms.get(),
        }
    }
}

/// How long the proxy waits for others.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A client connection without a request, and each step of receiving one.
    pub client_read: Duration,
    /// Each step of sending a response.
    pub client_write: Duration,
    /// Until an origin accepts a connection.
    pub origin_connect: Duration,
    /// Each step of an origin's response, its first byte among them.
    pub origin_response: Duration,
    /// An origin connection that is not used.
    pub origin_idle: Duration,
    /// Most connections of clients.
    pub clients: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            client_read: Duration::from_secs(120),
            client_write: Duration::from_secs(60),
            origin_connect: Duration::from_secs(10),
            origin_response: Duration::from_secs(60),
            origin_idle: Duration::from_secs(60),
            clients: most_clients(),
        }
    }
}

/// Descriptors for what is neither a client's connection nor an origin's.
const OTHER_DESCRIPTORS: u64 = 200;
/// As many connections of clients as this process may have if each needs one to an origin; where there is no limit of
/// descriptors, as many as there are ports at one address.
fn most_clients() -> usize {
    (descriptor_limit().saturating_sub(OTHER_DESCRIPTORS) / 2).clamp(1, 1 << 16) as usize
}

impl Limits {
    /// As far as clients are concerned.
    pub fn of_clients(&self) -> ClientLimits {
        ClientLimits::new(self.client_read, self.client_write)
    }
}

/// Connections to origins. Where there are several, one gets three quarters of what clients may have at most: a slow one leaves the
/// rest of them to the others.
fn pool(
    resources: &Rc<Resources>,
    origins: &[OriginRoute],
    tls: Option<UpstreamTls>,
    limits: Limits,
) -> Pool {
    let pool = Pool::with_tls(resources, tls);
    let is_only_one = origins.windows(2).all(|two| two[0].address == two[1].address) && !origins.is_empty();
    if is_only_one { pool } else { pool.with_most_per_server((limits.clients * 3 / 4).max(1)) }
}

/// Everything that outlives a connection.
pub struct Shared {
    /// What it calls itself.
    pub name: String,
    pub peers: Peers,
    /// There are other caches, which it queries or which query it.
    pub is_cooperating: bool,
    pub store: RefCell<Store>,
    /// Fetches that others may join, by name.
    pub fetches: RefCell<HashMap<Key, Rc<Fetch>>>,
    pub pool: Pool,
    pub resources: Rc<Resources>,
    pub clients: Cell<usize>,
    /// One of them has ended.
    pub client_left: Notify,
    /// Which origin is where.
    pub routes: Routes,
    pub clock: Clock,
    pub limits: Limits,
    /// How stale a response may be served when its origin fails and it says nothing about that, in seconds.
    pub stale_if_error_s: u64,
    /// How long a response is fresh that does not say so, in seconds.
    pub default_lifetime_s: u64,
    pub prefetcher: Prefetcher,
    /// Where this proxy listens.
    pub address: SocketAddr,
    /// Where each request is written down; none: nowhere.
    pub access_log: Option<RefCell<AccessLog>>,
    /// What happened so far.
    counters: RefCell<ProxyCounters>,
}

impl Shared {
    pub fn new(
        spec: &ProxySpec,
        peers: Peers,
        clock: Clock,
        limits: Limits,
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
            pool: pool(&resources, &spec.origins, origin_tls, limits).speaking_http2(over_http2),
            resources,
            clients: Cell::new(0),
            client_left: Notify::new(),
            routes: Routes::new(&spec.origins, spec.tls.is_some()),
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

    /// The counters, with the state of the store.
    pub fn counters(&self) -> ProxyCounters {
        let (store, counters) = (self.store.borrow(), *self.counters.borrow());
        ProxyCounters {
            refused: counters.refused + self.resources.refused.all(),
            objects: store.objects(),
            stored_bytes: store.stored_bytes(),
            evictions: store.evictions(),
            peers: self.peers.counters(),
            prefetch: self.prefetcher.counters(),
            slow_clients: self.resources.watch.ended().slow,
            dismissed_clients: self.resources.watch.ended().dismissed,
            ..counters
        }
    }

    /// How long origins may take.
    pub fn patience(&self) -> Patience {
        Patience { connect: self.limits.origin_connect, response: self.limits.origin_response }
    }

    /// What this names is stored, and fresh for a request that requests nothing special.
    pub fn holds(&self, target: &Target<'_>) -> bool {
        let mut key = Vec::new();
        self.routes.write_key(target, &mut key);
        let store = self.store.borrow();
        let now_ms = self.clock.now_ms();
        store.peek(&key).is_some_and(|stored| {
            stored.response.freshness.reuse(&RequestControl::default(), now_ms) == Reuse::Serve
        })
    }

    /// Drops what is stored under a name and keeps what is being fetched for it from being stored or joined.
    pub fn invalidate(&self, key: &[u8]) {
        self.store.borrow_mut().invalidate(key);
        self.fetches.borrow_mut().remove(key);
    }
}
