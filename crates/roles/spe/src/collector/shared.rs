//! What all connections of the Collector share.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::spec::{CollectorSpec, Route};
use assay_base::clock::monotonic_ns;
use assay_http::head::RequestHead;
use assay_net::connection::Resources;
use assay_net::limits::{SPARED, room_of};
use assay_net::listen::leads_to;
use assay_net::timer::{Ticket, Timer};
use assay_net::tls::client::{Client, Name};
use assay_net::upstream::{self, Patience, Upstream, UpstreamError};
use assay_net::watch::{Longest, Wait};
use assay_net::worker::descriptor_limit;
use assay_protocol::network::Destinations;
use tokio::sync::Notify;

use crate::collector::choice::Limits;
use crate::collector::disk::Disk;
use crate::collector::error::CollectorError;
use crate::collector::log::Log;
use crate::collector::secured::Secured;
use crate::collector::shelf::Shelf;
use crate::collector::url::{self, Target, UrlError};
use crate::reasons;

use assay_protocol::evaluation::{CollectorCounters, ListenerRow};
use assay_record::spe::DIRECT;

/// A client connection without a request, and each step of receiving one.
pub const CLIENT_READ: Duration = Duration::from_secs(120);
/// Each step of sending a response.
pub const CLIENT_WRITE: Duration = Duration::from_secs(60);
/// How long origins may take.
const PATIENCE: Patience = Patience { connect: Duration::from_secs(10), response: Duration::from_secs(60) };

/// Descriptors for what is neither a connection at a listener nor made for one.
const OTHER_DESCRIPTORS: u64 = 200;

/// Everything that outlives a connection.
pub struct Shared {
    pub shelf: RefCell<Shelf>,
    pub resources: Rc<Resources>,
    /// What marks in place of responses that are gone are made with.
    pub lost_key: String,
    /// Responses keep the pace of their recording.
    pub replays: bool,
    /// Where the origins are.
    pub routes: Routes,
    /// The origin that is spoken to over TLS: what is trusted, and the name that its certificate is verified for.
    origin_tls: Option<(SocketAddr, (Client, Name))>,
    /// The origins of tunnels that the Multiplier opens.
    secured: Option<Secured>,
    /// Which addresses are requested; none: all.
    destinations: Option<Destinations>,
    /// When something is due.
    pub timer: Timer<Rc<Notify>>,
    /// Each request, where that is logged.
    pub log: RefCell<Option<Log>>,
    listeners: Box<[Listener]>,
    /// Most connections of one proxy.
    most_of_one: u64,
    counters: Cell<CollectorCounters>,
}

struct Listener {
    address: SocketAddr,
    is_direct: bool,
    counters: Cell<ListenerRow>,
    connections: Cell<u64>,
    /// Those that end first when there is no room for others.
    longest: RefCell<Longest>,
}

/// A connection at a listener, as it is counted.
pub struct Connected {
    pub shared: Rc<Shared>,
    pub listener: u16,
}

impl Connected {
    pub fn new(shared: &Rc<Shared>, listener: u16) -> Self {
        let connections = &shared.listeners[usize::from(listener)].connections;
        connections.set(connections.get() + 1);
        Self { shared: Rc::clone(shared), listener }
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let connections = &self.shared.listeners[usize::from(self.listener)].connections;
        connections.set(connections.get() - 1);
    }
}

/// As what a connection at a listener keeps its place; 0 is nobody's.
pub fn place_of(listener: u16) -> u32 {
    u32::from(listener) + 1
}

impl Shared {
    /// At the beginning; `addresses` are those of the listeners. Needs a tokio runtime.
    pub fn new(
        spec: &CollectorSpec,
        addresses: &[SocketAddr],
        disk: Option<Disk>,
    ) -> Result<Self, CollectorError> {
        let ns = |ms: u64| ms.saturating_mul(1_000_000);
        let limits = Limits {
            minimum_freshness_ns: ns(spec.minimum_freshness_ms),
            maximum_age_ns: ns(spec.maximum_age_ms),
        };
        let listeners = spec.listeners.iter().zip(addresses).map(|(listener, &address)| Listener {
            address,
            is_direct: listener.who == DIRECT,
            counters: Cell::default(),
            connections: Cell::default(),
            longest: RefCell::default(),
        });
        let origin_tls = spec
            .origin_tls
            .as_ref()
            .map(|to| assay_net::tls::setup::client_to(&to.client, &to.authority))
            .transpose()?;
        Ok(Self {
            origin_tls: spec.default_origin.zip(origin_tls),
            secured: spec.tunnels_tls.as_ref().map(Secured::new).transpose()?,
            shelf: RefCell::new(Shelf::new(spec.memory_bytes, limits, spec.listeners.len(), disk)),
            resources: Resources::new(),
            lost_key: spec.lost_key.clone(),
            replays: spec.replay,
            routes: Routes::new(&spec.origins, spec.default_origin),
            destinations: spec.destinations.clone(),
            timer: Timer::new(0).map_err(CollectorError::Runtime)?,
            log: RefCell::new(spec.log.as_ref().map(Log::start).transpose()?),
            listeners: listeners.collect(),
            most_of_one: (descriptor_limit().saturating_sub(OTHER_DESCRIPTORS) / 4).max(1),
            counters: Cell::default(),
        })
    }

    /// What a request requests, at this listener.
    pub fn target<'b>(&'b self, head: &RequestHead<'b>, listener: u16) -> Result<Target<'b>, UrlError> {
        let target = Target::of(head, self.routes.fallback_authority())?;
        let secured = self.secured.as_ref();
        let is_secured = secured.is_some_and(|tls| tls.is_for(head, &target, self.is_direct(listener)));
        Ok(Target { is_secured, ..target })
    }

    /// The Multiplier comes in here, for clients.
    pub fn is_direct(&self, listener: u16) -> bool {
        self.listeners[usize::from(listener)].is_direct
    }

    /// Whether a listener may accept no more connections now: a proxy has a quarter of the descriptors at most, and as many for what
    /// it makes the Collector fetch, which leaves half of them to others. One that it keeps without a use ends where there is not much
    /// room, that which has waited longest. The Multiplier bounds its own.
    pub fn is_full(&self, listener: u16) -> bool {
        let one = &self.listeners[usize::from(listener)];
        let most = self.most_of_one as usize;
        let room = most.saturating_sub(one.connections.get() as usize);
        if one.is_direct || room > room_of(most) {
            return false;
        }
        let is_own = |wait: Wait| wait.keeps == place_of(listener);
        one.longest.borrow_mut().dismiss(&self.resources.watch, SPARED, is_own);
        room == 0
    }

    /// Counts something for a listener.
    pub fn count_listener(&self, listener: u16, add: impl FnOnce(&mut ListenerRow)) {
        change(&self.listeners[usize::from(listener)].counters, add);
    }

    pub fn count(&self, add: impl FnOnce(&mut CollectorCounters)) {
        change(&self.counters, add);
    }

    /// What each listener has seen since the start; the latest lateness is forgotten with it.
    pub fn take_listeners(&self) -> Vec<ListenerRow> {
        let take = |listener: &Listener| {
            let counters = listener.counters.get();
            listener.counters.set(ListenerRow { late_max_us: 0, ..counters });
            counters
        };
        self.listeners.iter().map(take).collect()
    }

    /// The counters, with the state of the shelf. Of the process's memory it knows nothing.
    pub fn counters(&self) -> CollectorCounters {
        let shelf = self.shelf.borrow();
        CollectorCounters {
            requests: self.listeners.iter().map(|listener| listener.counters.get().requests).sum(),
            evictions: shelf.evictions(),
            not_kept: shelf.not_kept(),
            recordings: shelf.keys(),
            memory_bytes: shelf.stored_bytes(),
            peak_recordings_bytes: shelf.peak_bytes(),
            disk_bytes: shelf.disk_bytes(),
            dismissed_connections: self.resources.watch.ended().dismissed,
            ..self.counters.get()
        }
    }

    /// Unix time in milliseconds.
    pub fn now_ms(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    /// How long origins may take.
    pub fn patience(&self) -> Patience {
        PATIENCE
    }

    /// Connects to an origin, with TLS if that is how it is spoken to.
    pub async fn connect(
        &self,
        address: SocketAddr,
        secured: Option<&str>,
    ) -> Result<Box<Upstream>, UpstreamError> {
        let tls = self.origin_tls.as_ref().filter(|(origin, _)| *origin == address);
        let session = match (tls, self.secured.as_ref().zip(secured)) {
            (_, Some((tunnels, authority))) => tunnels.session(authority).map(Some),
            (Some((_, (client, name))), None) => client.connect(name, true).map(Some),
            (None, None) => Ok(None),
        };
        let opened = match session {
            Ok(session) => Upstream::open(address, session, self.patience(), &self.resources).await,
            Err(error) => Err(UpstreamError::Tls(address, error)),
        };
        opened.inspect_err(reasons::tell)
    }

    /// The address of a place; names are looked up each time, since that is part of what a response costs.
    pub async fn address_of(&self, place: &Place) -> Result<SocketAddr, FetchError> {
        let address = match place {
            Place::Address(address) => *address,
            Place::Name(name) => upstream::resolve(name, self.patience()).await?,
        };
        if self.listeners.iter().any(|listener| leads_to(address, listener.address)) {
            return Err(FetchError::Loop);
        }
        // That of the connection: a name could have another one when it is looked up again.
        match self.destinations.as_ref().is_none_or(|destinations| destinations.allow(address.ip())) {
            true => Ok(address),
            false => Err(FetchError::NotAllowed),
        }
    }

    /// Counts a request that has no response of an origin.
    pub fn count_failed(&self, error: &FetchError) {
        self.count(|c| match error {
            FetchError::NotAllowed => c.not_allowed += 1,
            _ => c.origin_errors += 1,
        });
    }

    /// Sleeps until an instant, to within microseconds; `bell` is for this alone.
    pub async fn sleep_until(&self, at_ns: u64, bell: &Rc<Notify>) {
        while monotonic_ns() < at_ns {
            let _sleeping =
                Sleeping { timer: &self.timer, ticket: self.timer.schedule(at_ns, Rc::clone(bell)) };
            bell.notified().await;
        }
    }
}

/// A deadline that is taken back when nothing waits for it any more.
struct Sleeping<'t> {
    timer: &'t Timer<Rc<Notify>>,
    ticket: Ticket,
}

impl Drop for Sleeping<'_> {
    fn drop(&mut self) {
        self.timer.cancel(self.ticket);
    }
}

fn change<T: Copy>(cell: &Cell<T>, change: impl FnOnce(&mut T)) {
    let mut value = cell.get();
    change(&mut value);
    cell.set(value);
}

/// Why there is no response of an origin. The texts go to the client.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// It is this Collector itself.
    #[error("the request leads back to the Collector")]
    Loop,
    /// It is at an address where nothing may be requested.
    #[error(
        "this host is in a network in which nothing may be requested here: it is not public, and was not named (--may-request)"
    )]
    NotAllowed,
    /// It did not respond, or not in HTTP.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// A 304 to a request without a condition.
    #[error("the server confirmed what was not in the request")]
    BadConfirmation,
}

impl FetchError {
    /// The status that tells the client.
    pub fn status(&self) -> u16 {
        match self {
            FetchError::Upstream(error) => error.status(),
            FetchError::Loop => 508,
            FetchError::NotAllowed => 403,
            FetchError::BadConfirmation => 502,
        }
    }
}

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Address(SocketAddr),
    /// To `host:port`, whose address has to be looked up.
    Name(String),
}

/// Which origin is where. With a default origin (reverse), nothing but that and the listed ones is ever connected to:
/// a name in a request chooses among them and cannot add to them.
#[derive(Debug)]
pub struct Routes {
    by_authority: HashMap<Vec<u8>, SocketAddr>,
    fallback: Option<(SocketAddr, String)>,
}

impl Routes {
    /// From what the Collector was told.
    pub fn new(origins: &[Route], fallback: Option<SocketAddr>) -> Self {
        // The first of two that have the same name is the one that counts.
        let by_authority = origins.iter().rev().map(|origin| (name_of(&origin.authority), origin.address));
        Self {
            by_authority: by_authority.collect(),
            fallback: fallback.map(|address| (address, address.to_string())),
        }
    }

    /// What stands for the host of a request that names none.
    pub fn fallback_authority(&self) -> Option<&str> {
        self.fallback.as_ref().map(|(_, name)| name.as_str())
    }

    /// Where a request goes.
    pub fn place(&self, target: &Target<'_>) -> Place {
        let mut name = Vec::with_capacity(target.authority.len());
        target.write_server(&mut name);
        match (self.by_authority.get(&name), &self.fallback) {
            (Some(address), _) | (None, Some((address, _))) => Place::Address(*address),
            // The name under which it is recorded, so that two spellings of it cannot be two hosts.
            (None, None) => {
                named(&String::from_utf8_lossy(&name), if target.is_secured { "443" } else { "80" })
            }
        }
    }

    /// Where a tunnel goes; none: there are no tunnels in front of a default origin.
    pub fn tunnel(&self, authority: &str) -> Option<Place> {
        if self.fallback.is_some() {
            return None;
        }
        let known = self.by_authority.get(&name_of(authority)).map(|&address| Place::Address(address));
        Some(known.unwrap_or_else(|| named(authority, "443")))
    }
}

fn name_of(authority: &str) -> Vec<u8> {
    let mut name = Vec::with_capacity(authority.len());
    url::write_authority(authority, "80", &mut name);
    name
}

fn named(authority: &str, default_port: &str) -> Place {
    let (host, port) = url::split_port(authority);
    let with_port = format!("{host}:{}", if port.is_empty() { default_port } else { port });
    with_port.parse().map_or(Place::Name(with_port), Place::Address)
}

#[cfg(test)]
mod tests {
    use crate::spec::Listener;
    use assay_net::watch::{Awaits, TICK_NS};

    use super::*;

    fn routes(fallback: Option<SocketAddr>) -> Routes {
        let route = |authority: &str, port| Route {
            authority: authority.into(),
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        };
        Routes::new(&[route("a:8000", 1), route("B:80", 2)], fallback)
    }

    fn place(routes: &Routes, authority: &str) -> Place {
        routes.place(&Target { authority, path: "/", is_secured: false })
    }

    fn at(port: u16) -> Place {
        Place::Address(SocketAddr::from(([127, 0, 0, 1], port)))
    }

    #[test]
    fn known_hosts_are_where_they_are_said_to_be_and_others_where_they_say() {
        let plain = routes(None);
        assert_eq!(place(&plain, "A:8000"), at(1));
        assert_eq!(place(&plain, "b"), at(2));
        assert_eq!(place(&plain, "c"), Place::Name("c:80".into()));
        assert_eq!(place(&plain, "C:080"), Place::Name("c:80".into()), "as it is recorded");
        assert_eq!(place(&plain, "127.0.0.1:7"), at(7));
        assert_eq!(plain.tunnel("c"), Some(Place::Name("c:443".into())));
        assert_eq!(plain.tunnel("c:80"), Some(Place::Name("c:80".into())));
        assert_eq!(plain.fallback_authority(), None);
        let over_tls = |authority| plain.place(&Target { authority, path: "/", is_secured: true });
        assert_eq!(over_tls("C:443"), Place::Name("c:443".into()));
        assert_eq!(
            (over_tls("c"), over_tls("c:80")),
            (Place::Name("c:443".into()), Place::Name("c:80".into()))
        );
    }

    #[test]
    fn a_connection_of_a_proxy_that_makes_room_for_another_is_counted() {
        assay_testbed::run(async {
            let address = SocketAddr::from(([127, 0, 0, 1], 1));
            let listener = |who: &str| Listener { listen: address, who: who.into() };
            let spec = CollectorSpec {
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
            };
            let shared = Shared { most_of_one: 1, ..Shared::new(&spec, &[address; 2], None).unwrap() };
            let shared = Rc::new(shared);
            assert!(!shared.is_full(1));
            let _connected = Connected::new(&shared, 1);
            let watch = &shared.resources.watch;
            let deadline = watch.enter();
            deadline.keep(place_of(1));
            deadline.set(CLIENT_READ);
            deadline.set_awaits(Awaits::Request);
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
        assert_eq!(place(&reverse, "b:80"), at(2), "listed beside it");
        for authority in
            ["c", "c:81", "127.0.0.1:7", "127.0.0.1", "[::1]:7", "a.", "a:8001", "b:0", "%63", "localhost:9"]
        {
            assert_eq!(place(&reverse, authority), at(9), "{authority}");
            assert_eq!(reverse.tunnel(authority), None);
        }
        assert_eq!(reverse.tunnel("a:8000"), None);
        assert_eq!(reverse.fallback_authority(), Some("127.0.0.1:9"));
    }
}
