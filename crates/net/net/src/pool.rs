//! Connections to servers that are kept for the next request.
//!
//! *Does not:* choose a server, or read a response ([`crate::upstream`] does).

use std::borrow::Borrow;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::hash::Hash;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use foldhash::HashMap;

use crate::tls::HTTP_2;
use crate::tls::client::{TlsClient, TlsServerName};
use crate::tls::session::Session;
use assay_http::head::ResponseHead;
use tokio::task::spawn_local;

use crate::connection::Resources;
use crate::http2;
use crate::limits::MAX_IDLE;
use crate::upstream::{MAX_RETRIES, ReceivedHead, Upstream, UpstreamError, UpstreamTimeouts};
use assay_base::clock::coarse_ns;

/// Idle connections to servers, by address or by another key.
pub struct Pool<K = SocketAddr> {
    resources: Rc<Resources>,
    /// TLS to servers; none: in the clear.
    tls: Option<UpstreamTls>,
    /// Servers of HTTP/2, and the connections to them.
    http2: HashMap<K, Http2Server>,
    opened: Cell<u64>,
    idle: RefCell<HashMap<K, Vec<IdleUpstream>>>,
    /// Bound on the connections of each server.
    bounded: Option<ServerLimit>,
}

/// Bounds the requests that wait for one server, so that a slow one leaves clients' connections to the others.
struct ServerLimit {
    most: usize,
    taken: RefCell<HashMap<SocketAddr, Rc<Cell<usize>>>>,
}

impl ServerLimit {
    fn count(&self, address: SocketAddr) -> Result<ServerSlot, UpstreamError> {
        let taken = Rc::clone(self.taken.borrow_mut().entry(address).or_default());
        if taken.get() >= self.most {
            return Err(UpstreamError::Full(address));
        }
        taken.set(taken.get() + 1);
        Ok(ServerSlot(taken))
    }
}

/// Slot of a server, for as long as it is held: one of its connections, or of the requests on those of HTTP/2.
pub(crate) struct ServerSlot(Rc<Cell<usize>>);

impl Drop for ServerSlot {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// TLS to servers. A server without a name is connected to in the clear.
#[derive(Debug)]
pub struct UpstreamTls {
    pub client: TlsClient,
    /// The name that each server's certificate is verified for.
    pub names: BTreeMap<SocketAddr, TlsServerName>,
}

impl UpstreamTls {
    fn session(&self, address: SocketAddr) -> Result<Option<Session>, UpstreamError> {
        let Some(name) = self.names.get(&address) else { return Ok(None) };
        let session = self.client.connect(name, true);
        session.map(Some).map_err(|error| UpstreamError::Tls(address, error))
    }
}

/// A server of HTTP/2: over TLS it has to agree on that (ALPN), in the clear it has to know (RFC 9113, 3.3).
struct Http2Server {
    address: SocketAddr,
    clients: http2::Http2ClientPool,
}

struct IdleUpstream {
    upstream: Box<Upstream>,
    since_ns: u64,
}

impl<K: Eq + Hash> Pool<K> {
    pub fn new(resources: &Rc<Resources>) -> Self {
        Self::with_tls(resources, None)
    }

    /// An empty pool, with TLS to its servers.
    pub fn with_tls(resources: &Rc<Resources>, tls: Option<UpstreamTls>) -> Self {
        Self {
            resources: Rc::clone(resources),
            tls,
            http2: HashMap::default(),
            opened: Cell::new(0),
            idle: RefCell::default(),
            bounded: None,
        }
    }

    /// Takes the idle connection that was used last and is not known to be closed; of a server of HTTP/2, a stream on an open connection.
    pub fn take<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<Box<Upstream>>
    where
        K: Borrow<Q>,
    {
        if !self.http2.is_empty()
            && let Some(Http2Server { address, clients }) = self.http2.get(key)
        {
            // Of a server that is full, this is said when a connection is to be opened.
            let counted = self.count(*address).ok()?;
            return Some(self.upstream_from_pipe(clients.pipe()?, *address, counted));
        }
        let mut idle = self.idle.borrow_mut();
        let connections = idle.get_mut(key)?;
        while let Some(IdleUpstream { mut upstream, .. }) = connections.pop() {
            if upstream.is_quiet() {
                return Some(upstream);
            }
        }
        None
    }

    fn count(&self, address: SocketAddr) -> Result<Option<ServerSlot>, UpstreamError> {
        self.bounded.as_ref().map(|bounded| bounded.count(address)).transpose()
    }

    fn upstream_from_pipe(
        &self,
        pipe: http2::Pipe,
        address: SocketAddr,
        counted: Option<ServerSlot>,
    ) -> Box<Upstream> {
        let mut upstream = Upstream::from_pipe(pipe, address, &self.resources);
        upstream.slot = counted;
        upstream
    }

    /// Opens a connection, with TLS if there is a session for it.
    pub async fn open(
        &self,
        address: SocketAddr,
        session: Option<Session>,
        timeouts: UpstreamTimeouts,
    ) -> Result<Box<Upstream>, UpstreamError> {
        self.opened.set(self.opened.get() + 1);
        Upstream::open(address, session, timeouts, &self.resources).await
    }

    /// Number of attempts to open a connection since the last call.
    pub fn take_opened(&self) -> u64 {
        self.opened.take()
    }

    /// Keeps a connection whose exchange is complete, unless more bytes came than the response has.
    pub fn keep(&self, key: K, mut upstream: Box<Upstream>) {
        if upstream.is_http2() || !upstream.connection.input.unread().is_empty() {
            return;
        }
        upstream.connection.input.release_if_empty(&self.resources.memory);
        let mut idle = self.idle.borrow_mut();
        let connections = idle.entry(key).or_default();
        if connections.len() < MAX_IDLE {
            connections.push(IdleUpstream { upstream, since_ns: coarse_ns() });
        }
    }

    /// Closes connections that have been idle for longer than this.
    pub fn close_older_than(&self, age: Duration) {
        self.http2.values().for_each(|server| server.clients.close_older_than(age));
        let now_ns = coarse_ns();
        self.idle.borrow_mut().retain(|_, connections| {
            connections.retain(|idle| u128::from(now_ns.saturating_sub(idle.since_ns)) < age.as_nanos());
            !connections.is_empty()
        });
    }
}

impl Pool {
    /// Uses HTTP/2 with these servers; where there are any, with all that are connected to over TLS.
    #[must_use]
    pub fn with_http2_servers(mut self, servers: impl IntoIterator<Item = SocketAddr>) -> Self {
        let server = |address| (address, Http2Server { address, clients: http2::Http2ClientPool::default() });
        self.http2 = servers.into_iter().map(server).collect();
        if self.http2.is_empty() {
            return self;
        }
        self.tls = self.tls.map(|tls| UpstreamTls { client: tls.client.with_protocol(HTTP_2), ..tls });
        self
    }

    /// Bounds the connections, and requests over HTTP/2, of each server: more are [`UpstreamError::Full`].
    #[must_use]
    pub fn with_max_per_server(mut self, most: usize) -> Self {
        self.bounded = Some(ServerLimit { most, taken: RefCell::default() });
        self
    }

    /// Opens a connection; to a server of HTTP/2, a stream, on a new connection if need be.
    pub async fn connect(
        &self,
        address: SocketAddr,
        timeouts: UpstreamTimeouts,
    ) -> Result<Box<Upstream>, UpstreamError> {
        let counted = self.count(address)?;
        let Some(server) = self.http2.get(&address) else {
            let mut upstream = self.connect_unshared(address, timeouts).await?;
            upstream.slot = counted;
            return Ok(upstream);
        };
        let connect = async || {
            let upstream = *self.connect_unshared(address, timeouts).await?;
            let (client, carried) = upstream.into_http2()?;
            // How it ends is told to the requests on it.
            spawn_local(async move { drop(carried.await) });
            Ok(client)
        };
        let (pipe, _) = Box::pin(server.clients.connect(connect)).await?;
        Ok(self.upstream_from_pipe(pipe, address, counted))
    }

    /// Opens a connection of one request at a time.
    async fn connect_unshared(
        &self,
        address: SocketAddr,
        timeouts: UpstreamTimeouts,
    ) -> Result<Box<Upstream>, UpstreamError> {
        let session = self.tls.as_ref().map_or(Ok(None), |tls| tls.session(address))?;
        self.open(address, session, timeouts).await
    }

    /// Returns a connection for the next request to that server.
    pub fn put_back(&self, upstream: Box<Upstream>) {
        self.keep(upstream.address, upstream);
    }

    /// Sends a request without a body and waits for the head of the final response, of which `take` takes what is needed;
    /// `interim` sees those before it. An idle connection may have been closed by the server just now: then a new one is tried.
    pub async fn exchange<T>(
        &self,
        address: SocketAddr,
        request: &[u8],
        timeouts: UpstreamTimeouts,
        interim: impl Fn(&ResponseHead<'_>),
        take: impl Fn(ReceivedHead<'_>) -> T,
    ) -> Result<(Box<Upstream>, T), UpstreamError> {
        if let Some(mut upstream) = self.take(&address) {
            match upstream.attempt(request, timeouts, &interim, &take).await {
                Ok(taken) => return Ok((upstream, taken)),
                Err(UpstreamError::Lost(_) | UpstreamError::Unprocessed(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        let mut tries = 1..=MAX_RETRIES;
        loop {
            let mut upstream = self.connect(address, timeouts).await?;
            match upstream.attempt(request, timeouts, &interim, &take).await {
                Ok(taken) => return Ok((upstream, taken)),
                Err(UpstreamError::Unprocessed(_)) if tries.next().is_some() => {}
                Err(failure) => return Err(failure),
            }
        }
    }
}
