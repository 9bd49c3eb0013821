//! State that all connections of the Collector share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::spec::{CollectorSpec, Route};
use assay_base::clock::monotonic_ns;
use assay_http::head::RequestHead;
use assay_net::connection::Resources;
use assay_net::deadlines::{LongestWaits, PeerWait};
use assay_net::limits::{EVICTION_GRACE, eviction_reserve};
use assay_net::listen::leads_to;
use assay_net::timer::{Timer, TimerKey};
use assay_net::tls::client::{TlsClient, TlsServerName};
use assay_net::upstream::{self, Upstream, UpstreamError, UpstreamTimeouts};
use assay_net::worker::descriptor_limit;
use assay_protocol::network::Destinations;
use tokio::sync::Notify;

use crate::collector::choice::RecordingLimits;
use crate::collector::disk::Disk;
use crate::collector::error::CollectorError;
use crate::collector::log::ExchangeLog;
use crate::collector::recording_store::RecordingStore;
use crate::collector::tunnel_tls::TunnelTls;
use crate::collector::url::{self, FetchTarget, FetchTargetError};
use crate::connect_errors;

use assay_protocol::evaluation::{CollectorCounters, ListenerRow};
use assay_record::spe::DIRECT;

/// Limit of an idle client connection, and of each step of receiving a request.
pub const CLIENT_READ: Duration = Duration::from_secs(120);
/// Limit of each step of sending a response.
pub const CLIENT_WRITE: Duration = Duration::from_secs(60);
const ORIGIN_TIMEOUTS: UpstreamTimeouts =
    UpstreamTimeouts { connect: Duration::from_secs(10), response: Duration::from_secs(60) };

/// Descriptors reserved for anything but connections at listeners and fetches for them.
const OTHER_DESCRIPTORS: u64 = 200;

/// State that outlives a connection.
pub struct CollectorShared {
    pub store: RefCell<RecordingStore>,
    pub resources: Rc<Resources>,
    /// Key of the marks on replacements for lost responses.
    pub lost_key: String,
    /// Responses keep the pace of their recording.
    pub replays: bool,
    pub routes: OriginRoutes,
    /// TLS to the default origin: trust, and the name that the certificate is verified for.
    origin_tls: Option<(SocketAddr, (TlsClient, TlsServerName))>,
    /// TLS to the origins of intercepted tunnels.
    tunnel_tls: Option<TunnelTls>,
    /// Permitted addresses; `None`: all.
    destinations: Option<Destinations>,
    pub timer: Timer<Rc<Notify>>,
    pub log: RefCell<Option<ExchangeLog>>,
    listeners: Box<[ListenerState]>,
    /// Connection limit of one proxy.
    max_per_proxy: u64,
    counters: Cell<CollectorCounters>,
}

struct ListenerState {
    address: SocketAddr,
    is_direct: bool,
    counters: Cell<ListenerRow>,
    connections: Cell<u64>,
    /// Connections in the order in which they are closed to make room for others.
    longest_waits: RefCell<LongestWaits>,
}

/// Counts a connection at a listener while it is open.
pub struct ListenerConnection {
    pub shared: Rc<CollectorShared>,
    pub listener: u16,
}

impl ListenerConnection {
    pub fn new(shared: &Rc<CollectorShared>, listener: u16) -> Self {
        let connections = &shared.listeners[usize::from(listener)].connections;
        connections.set(connections.get() + 1);
        Self { shared: Rc::clone(shared), listener }
    }
}

impl Drop for ListenerConnection {
    fn drop(&mut self) {
        let connections = &self.shared.listeners[usize::from(self.listener)].connections;
        connections.set(connections.get() - 1);
    }
}

/// Key under which connections of a listener hold a slot; 0 is nobody's.
pub fn slot_key(listener: u16) -> u32 {
    u32::from(listener) + 1
}

impl CollectorShared {
    /// Creates the state; `addresses` are those of the listeners. Needs a tokio runtime.
    pub fn new(
        spec: &CollectorSpec,
        addresses: &[SocketAddr],
        disk: Option<Disk>,
    ) -> Result<Self, CollectorError> {
        let ns = |ms: u64| ms.saturating_mul(1_000_000);
        let limits = RecordingLimits {
            minimum_freshness_ns: ns(spec.minimum_freshness_ms),
            maximum_age_ns: ns(spec.maximum_age_ms),
        };
        let listeners = spec.listeners.iter().zip(addresses).map(|(listener, &address)| ListenerState {
            address,
            is_direct: listener.client == DIRECT,
            counters: Cell::default(),
            connections: Cell::default(),
            longest_waits: RefCell::default(),
        });
        let origin_tls = spec
            .origin_tls
            .as_ref()
            .map(|to| assay_net::tls::setup::client_to(&to.client, &to.authority))
            .transpose()?;
        Ok(Self {
            origin_tls: spec.default_origin.zip(origin_tls),
            tunnel_tls: spec.tunnels_tls.as_ref().map(TunnelTls::new).transpose()?,
            store: RefCell::new(RecordingStore::new(spec.memory_bytes, limits, spec.listeners.len(), disk)),
            resources: Resources::new(),
            lost_key: spec.lost_key.clone(),
            replays: spec.replay,
            routes: OriginRoutes::new(&spec.origins, spec.default_origin),
            destinations: spec.destinations.clone(),
            timer: Timer::new(0).map_err(CollectorError::Runtime)?,
            log: RefCell::new(spec.log.as_ref().map(ExchangeLog::start).transpose()?),
            listeners: listeners.collect(),
            max_per_proxy: (descriptor_limit().saturating_sub(OTHER_DESCRIPTORS) / 4).max(1),
            counters: Cell::default(),
        })
    }

    /// Target of a request at this listener.
    pub fn target<'b>(
        &'b self,
        head: &RequestHead<'b>,
        listener: u16,
    ) -> Result<FetchTarget<'b>, FetchTargetError> {
        let target = FetchTarget::from_head(head, self.routes.fallback_authority())?;
        let tunnel_tls = self.tunnel_tls.as_ref();
        let is_secured = tunnel_tls.is_some_and(|tls| tls.is_https(head, &target, self.is_direct(listener)));
        Ok(FetchTarget { is_secured, ..target })
    }

    /// Whether a listener is the Multiplier's.
    pub fn is_direct(&self, listener: u16) -> bool {
        self.listeners[usize::from(listener)].is_direct
    }

    /// Whether a listener may accept no more connections now. A proxy has a quarter of the descriptors at most, and as many for
    /// the fetches that it causes, which leaves half of them to others. Close to the limit, the connection that has been idle for
    /// longest is closed. The Multiplier limits itself.
    pub fn is_full(&self, listener: u16) -> bool {
        let listener_state = &self.listeners[usize::from(listener)];
        let max_connections = self.max_per_proxy as usize;
        let free_slots = max_connections.saturating_sub(listener_state.connections.get() as usize);
        if listener_state.is_direct || free_slots > eviction_reserve(max_connections) {
            return false;
        }
        let is_own = |wait: PeerWait| wait.held_slot == slot_key(listener);
        listener_state.longest_waits.borrow_mut().dismiss(&self.resources.deadlines, EVICTION_GRACE, is_own);
        free_slots == 0
    }

    pub fn count_listener(&self, listener: u16, add: impl FnOnce(&mut ListenerRow)) {
        change(&self.listeners[usize::from(listener)].counters, add);
    }

    pub fn count(&self, add: impl FnOnce(&mut CollectorCounters)) {
        change(&self.counters, add);
    }

    /// Counters of each listener since the start; resets the maximum lateness.
    pub fn take_listeners(&self) -> Vec<ListenerRow> {
        let take = |listener: &ListenerState| {
            let counters = listener.counters.get();
            listener.counters.set(ListenerRow { late_max_us: 0, ..counters });
            counters
        };
        self.listeners.iter().map(take).collect()
    }

    /// Counters with the state of the store, but without the memory of the process.
    pub fn counters(&self) -> CollectorCounters {
        let store = self.store.borrow();
        CollectorCounters {
            requests: self.listeners.iter().map(|listener| listener.counters.get().requests).sum(),
            evictions: store.evictions(),
            not_kept: store.not_kept(),
            recordings: store.keys(),
            memory_bytes: store.stored_bytes(),
            peak_recordings_bytes: store.peak_bytes(),
            disk_bytes: store.disk_bytes(),
            dismissed_connections: self.resources.deadlines.counts().dismissed,
            ..self.counters.get()
        }
    }

    pub fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    pub fn origin_timeouts(&self) -> UpstreamTimeouts {
        ORIGIN_TIMEOUTS
    }

    /// Connects to an origin, with TLS if required.
    pub async fn connect(
        &self,
        address: SocketAddr,
        tls_authority: Option<&str>,
    ) -> Result<Box<Upstream>, UpstreamError> {
        let tls = self.origin_tls.as_ref().filter(|(origin, _)| *origin == address);
        let session = match (tls, self.tunnel_tls.as_ref().zip(tls_authority)) {
            (_, Some((tunnels, authority))) => tunnels.session(authority).map(Some),
            (Some((_, (client, name))), None) => client.connect(name, true).map(Some),
            (None, None) => Ok(None),
        };
        let opened = match session {
            Ok(session) => Upstream::open(address, session, self.origin_timeouts(), &self.resources).await,
            Err(error) => Err(UpstreamError::Tls(address, error)),
        };
        opened.inspect_err(connect_errors::log_once)
    }

    /// Resolves an address. Names are looked up each time, since that is part of what a response costs.
    pub async fn address_of(&self, destination: &FetchAddress) -> Result<SocketAddr, FetchError> {
        let address = match destination {
            FetchAddress::Address(address) => *address,
            FetchAddress::Name(name) => upstream::resolve(name, self.origin_timeouts()).await?,
        };
        if self.listeners.iter().any(|listener| leads_to(address, listener.address)) {
            return Err(FetchError::Loop);
        }
        // Checked on the address that is connected to: another lookup of the name could return another one.
        match self.destinations.as_ref().is_none_or(|destinations| destinations.allow(address.ip())) {
            true => Ok(address),
            false => Err(FetchError::NotAllowed),
        }
    }

    /// Counts a request without a response of an origin.
    pub fn count_failed(&self, error: &FetchError) {
        self.count(|c| match error {
            FetchError::NotAllowed => c.not_allowed += 1,
            _ => c.origin_errors += 1,
        });
    }

    /// Sleeps until an instant, to within microseconds; `wakeup` must not be used by anything else.
    pub async fn sleep_until(&self, at_ns: u64, wakeup: &Rc<Notify>) {
        while monotonic_ns() < at_ns {
            let _sleeping =
                Sleeping { timer: &self.timer, key: self.timer.schedule(at_ns, Rc::clone(wakeup)) };
            wakeup.notified().await;
        }
    }
}

/// Cancels the timer when dropped.
struct Sleeping<'t> {
    timer: &'t Timer<Rc<Notify>>,
    key: TimerKey,
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.timer.cancel(self.key);
    }
}

fn change<T: Copy>(cell: &Cell<T>, change: impl FnOnce(&mut T)) {
    let mut value = cell.get();
    change(&mut value);
    cell.set(value);
}

/// Reasons for which there is no response of an origin. The texts go to the client.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("the request leads back to the Collector")]
    Loop,
    #[error(
        "this host is in a network in which nothing may be requested here: it is not public, and was not named (--may-request)"
    )]
    NotAllowed,
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// A 304 to a request without a condition.
    #[error("the server confirmed what was not in the request")]
    BadConfirmation,
}

impl FetchError {
    pub fn status(&self) -> u16 {
        match self {
            FetchError::Upstream(error) => error.status(),
            FetchError::Loop => 508,
            FetchError::NotAllowed => 403,
            FetchError::BadConfirmation => 502,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchAddress {
    Address(SocketAddr),
    /// `host:port`, whose address has to be looked up.
    Name(String),
}

/// Addresses of origins. With a default origin (reverse), only that and the listed ones are ever connected to: a name in a
/// request chooses among them and cannot add to them.
#[derive(Debug)]
pub struct OriginRoutes {
    by_authority: HashMap<Vec<u8>, SocketAddr>,
    fallback: Option<(SocketAddr, String)>,
}

impl OriginRoutes {
    pub fn new(origins: &[Route], fallback: Option<SocketAddr>) -> Self {
        // Of two origins with the same name, the first counts.
        let by_authority = origins.iter().rev().map(|origin| (name_of(&origin.authority), origin.address));
        Self {
            by_authority: by_authority.collect(),
            fallback: fallback.map(|address| (address, address.to_string())),
        }
    }

    /// Authority of a request that names none.
    pub fn fallback_authority(&self) -> Option<&str> {
        self.fallback.as_ref().map(|(_, name)| name.as_str())
    }

    /// Address for a request.
    pub fn destination(&self, target: &FetchTarget<'_>) -> FetchAddress {
        let mut name = Vec::with_capacity(target.authority.len());
        target.write_server(&mut name);
        match (self.by_authority.get(&name), &self.fallback) {
            (Some(address), _) | (None, Some((address, _))) => FetchAddress::Address(*address),
            // The normalised name, as in the recording's key, so that two spellings cannot be two hosts.
            (None, None) => {
                named(&String::from_utf8_lossy(&name), if target.is_secured { "443" } else { "80" })
            }
        }
    }

    /// Address for a tunnel; `None` in front of a default origin.
    pub fn tunnel(&self, authority: &str) -> Option<FetchAddress> {
        if self.fallback.is_some() {
            return None;
        }
        let known = self.by_authority.get(&name_of(authority)).map(|&address| FetchAddress::Address(address));
        Some(known.unwrap_or_else(|| named(authority, "443")))
    }
}

fn name_of(authority: &str) -> Vec<u8> {
    let mut name = Vec::with_capacity(authority.len());
    url::write_authority(authority, "80", &mut name);
    name
}

fn named(authority: &str, default_port: &str) -> FetchAddress {
    let (host, port) = url::split_port(authority);
    let with_port = format!("{host}:{}", if port.is_empty() { default_port } else { port });
    with_port.parse().map_or(FetchAddress::Name(with_port), FetchAddress::Address)
}

#[cfg(test)]
pub mod testing {
    use crate::spec::Listener;

    use super::*;

    /// A Collector with a listener for the Multiplier and one for a proxy.
    pub fn spec(address: SocketAddr) -> CollectorSpec {
        let listener = |client: &str| Listener { listen: address, client: client.into() };
        CollectorSpec {
            listeners: vec![listener(DIRECT), listener("proxy")],
            lost_key: String::new(),
            origins: Vec::new(),
            default_origin: None,
            origin_tls: None,
            tunnels_tls: None,
            destinations: None,
            minimum_freshness_ms: 0,
            maximum_age_ms: 0,
            replay: false,
            memory_bytes: 1 << 20,
            disk: None,
            log: None,
            cpus: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_net::deadlines::{TICK_NS, WaitReason};

    use super::testing::spec;
    use super::*;

    fn routes(fallback: Option<SocketAddr>) -> OriginRoutes {
        let route = |authority: &str, port| Route {
            authority: authority.into(),
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        };
        OriginRoutes::new(&[route("a:8000", 1), route("B:80", 2)], fallback)
    }

    fn destination(routes: &OriginRoutes, authority: &str) -> FetchAddress {
        routes.destination(&FetchTarget { authority, path: "/", is_secured: false })
    }

    fn at(port: u16) -> FetchAddress {
        FetchAddress::Address(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    #[test]
    fn known_hosts_are_where_they_are_said_to_be_and_others_where_they_say() {
        let plain = routes(None);
        assert_eq!(destination(&plain, "A:8000"), at(1));
        assert_eq!(destination(&plain, "b"), at(2));
        assert_eq!(destination(&plain, "c"), FetchAddress::Name("c:80".into()));
        assert_eq!(destination(&plain, "C:080"), FetchAddress::Name("c:80".into()), "as it is recorded");
        assert_eq!(destination(&plain, "127.0.0.1:7"), at(7));
        assert_eq!(plain.tunnel("c"), Some(FetchAddress::Name("c:443".into())));
        assert_eq!(plain.tunnel("c:80"), Some(FetchAddress::Name("c:80".into())));
        assert_eq!(plain.fallback_authority(), None);
        let over_tls = |authority| plain.destination(&FetchTarget { authority, path: "/", is_secured: true });
        assert_eq!(over_tls("C:443"), FetchAddress::Name("c:443".into()));
        assert_eq!(
            (over_tls("c"), over_tls("c:80")),
            (FetchAddress::Name("c:443".into()), FetchAddress::Name("c:80".into()))
        );
    }

    #[test]
    fn a_connection_of_a_proxy_that_makes_room_for_another_is_counted() {
        assay_testbed::run(async {
            let address = SocketAddr::from(([127, 0, 0, 1], 1));
            let shared = CollectorShared {
                max_per_proxy: 1,
                ..CollectorShared::new(&spec(address), &[address; 2], None).unwrap()
            };
            let shared = Rc::new(shared);
            assert!(!shared.is_full(1));
            let _connected = ListenerConnection::new(&shared, 1);
            let watch = &shared.resources.deadlines;
            let deadline = watch.register();
            deadline.hold_slot(slot_key(1));
            deadline.set(CLIENT_READ);
            deadline.set_wait_reason(WaitReason::Request);
            // A second is how long each is spared.
            let now_ns = monotonic_ns();
            for tick in 1..=25 {
                watch.tick(now_ns + tick * TICK_NS);
            }
            assert!(shared.is_full(1) && deadline.is_dismissed());
            assert_eq!(shared.counters().dismissed_connections, 1);
        });
    }

    #[test]
    fn in_front_of_an_origin_no_name_leads_anywhere_else() {
        let reverse = routes(Some(SocketAddr::from(([127, 0, 0, 1], 9))));
        assert_eq!(destination(&reverse, "b:80"), at(2), "listed beside it");
        for authority in
            ["c", "c:81", "127.0.0.1:7", "127.0.0.1", "[::1]:7", "a.", "a:8001", "b:0", "%63", "localhost:9"]
        {
            assert_eq!(destination(&reverse, authority), at(9), "{authority}");
            assert_eq!(reverse.tunnel(authority), None);
        }
        assert_eq!(reverse.tunnel("a:8000"), None);
        assert_eq!(reverse.fallback_authority(), Some("127.0.0.1:9"));
    }
}
