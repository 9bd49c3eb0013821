//! What a worker knows of a server, and which connections to it are there to be used.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use super::runtime::spawn;
use super::stream::Stream;
use crate::secure::ToServer;
use assay_cluster::dispatch::ServerId;
use assay_net::connection::{Connection, Resources};
use assay_net::http2;
use assay_net::memory::Input;
use assay_net::watch::Longest;

/// Most idle connections that are kept to one server.
const MOST_IDLE: usize = 4096;

/// A server, as a worker sees it. It stays the same over a reload.
pub struct Server {
    pub id: ServerId,
    /// What it is called.
    pub name: String,
    pub address: SocketAddr,
    /// Requests that it has now, from this worker.
    pub in_flight: Cell<u32>,
    /// Those of its requests that end first when they leave others no room.
    pub longest: RefCell<Longest>,
    /// Most requests that it may have from this worker.
    pub most: Cell<u32>,
    /// Its weight; none while it may not get requests.
    pub standing: Cell<Option<f64>>,
    /// Used only when no other server of a group is there.
    pub is_backup: Cell<bool>,
    /// It speaks TLS.
    pub tls: RefCell<Option<Rc<ToServer>>>,
    /// It is spoken to over HTTP/2.
    pub speaks_http2: Cell<bool>,
    /// Connections of HTTP/2.
    shared: http2::Clients,
    idle: RefCell<Vec<Idle>>,
}

struct Idle {
    stream: Stream,
    since_ns: u64,
}

/// A connection to a server, and what came and was not used.
pub struct Upstream {
    pub stream: Stream,
    /// What came and was not used.
    pub input: Input,
    /// Interim responses to the current request so far.
    pub interim_responses: u32,
    /// Other requests were there before it on its connection.
    pub is_reused: bool,
    /// A body was sent on in parts, and is not here any more.
    pub has_upload: bool,
}

impl Upstream {
    /// A connection on which nothing has come for the current request.
    pub fn new(stream: Stream) -> Self {
        Self { stream, input: Input::default(), interim_responses: 0, is_reused: false, has_upload: false }
    }
}

impl Server {
    /// One without connections.
    pub fn new(id: ServerId, name: String, address: SocketAddr) -> Self {
        Self {
            id,
            name,
            address,
            in_flight: Cell::new(0),
            longest: RefCell::default(),
            most: Cell::new(u32::MAX),
            standing: Cell::new(None),
            is_backup: Cell::new(false),
            tls: RefCell::new(None),
            speaks_http2: Cell::new(false),
            shared: http2::Clients::default(),
            idle: RefCell::default(),
        }
    }

    /// A connection for one request: a new one, or a stream of HTTP/2.
    pub async fn connect(&self, resources: &Rc<Resources>) -> io::Result<Upstream> {
        if !self.speaks_http2.get() {
            return Ok(Upstream::new(self.open().await?));
        }
        let connect = async || {
            let mut stream = self.open().await?;
            if !stream.may_speak_http2() {
                return Err(io::Error::other("it does not agree on HTTP/2 (ALPN)"));
            }
            let is_secured = matches!(stream, Stream::Secured(_));
            let (client, carried) = http2::Client::new(Connection::new(stream, resources), is_secured);
            // How it ends is told to the requests on it.
            spawn(async move { drop(carried.await) });
            Ok(client)
        };
        let (pipe, is_reused) = self.shared.connect(connect).await?;
        Ok(Upstream { is_reused, ..Upstream::new(Stream::Http2(pipe)) })
    }

    async fn open(&self) -> io::Result<Stream> {
        let tls = self.tls.borrow().clone();
        Stream::connect(self.address, tls.as_deref()).await
    }

    /// Whether one more request is allowed.
    pub fn has_room(&self) -> bool {
        self.in_flight.get() < self.most.get()
    }

    /// The idle connection that was used last and is not known to be closed: bytes or an end make it useless.
    pub fn take_idle(&self) -> Option<Upstream> {
        let mut idle = self.idle.borrow_mut();
        while let Some(Idle { mut stream, .. }) = idle.pop() {
            if stream.is_quiet() {
                return Some(Upstream::new(stream));
            }
        }
        None
    }

    /// Keeps a connection whose exchange is complete.
    pub fn put_back(&self, stream: Stream, now_ns: u64) {
        let mut idle = self.idle.borrow_mut();
        // Those in use and those at rest together are never more than the server is to have.
        let room = self.most.get().saturating_sub(self.in_flight.get()) as usize;
        if idle.len() < room.min(MOST_IDLE) || (idle.is_empty() && room == 0) {
            idle.push(Idle { stream, since_ns: now_ns });
        }
    }

    /// How many connections are idle.
    pub fn idle(&self) -> usize {
        self.idle.borrow().len() + self.shared.idle()
    }

    /// Closes what has been idle for longer than this, or was closed by the server.
    pub fn sweep(&self, now_ns: u64, longest_ns: u64) {
        let is_young = |idle: &Idle| now_ns.saturating_sub(idle.since_ns) < longest_ns;
        self.idle.borrow_mut().retain_mut(|idle| is_young(idle) && idle.stream.is_quiet());
        self.shared.close_older_than(Duration::from_nanos(longest_ns));
    }

    /// Closes all that are idle; those of HTTP/2 take no new requests, and end with the last that they have.
    pub fn close_idle(&self) {
        self.idle.borrow_mut().clear();
        self.shared.close();
    }
}
