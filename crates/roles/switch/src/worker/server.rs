//! Servers as a worker sees them, with their pools of connections.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use super::runtime::spawn;
use super::transport::Transport;
use crate::tls::UpstreamTls;
use assay_cluster::dispatch::ServerId;
use assay_net::buffers::InputBuffer;
use assay_net::connection::{Connection, Resources};
use assay_net::deadlines::LongestWaits;
use assay_net::http2;

/// Limit of idle connections to one server.
const IDLE_MAX: usize = 4096;

/// State of a server in a worker, kept over a reload.
pub struct Server {
    pub id: ServerId,
    pub name: String,
    pub address: SocketAddr,
    /// Requests of this worker at the server.
    pub in_flight: Cell<u32>,
    /// Requests in the order in which they are ended when they leave no room for others.
    pub longest_waits: RefCell<LongestWaits>,
    /// Limit of requests of this worker.
    pub max_requests: Cell<u32>,
    /// `None` while the server may not get requests.
    pub weight: Cell<Option<f64>>,
    /// Used only while no other server of a group is available.
    pub is_backup: Cell<bool>,
    pub tls: RefCell<Option<Rc<UpstreamTls>>>,
    pub speaks_http2: Cell<bool>,
    /// Shared HTTP/2 connections.
    http2_connections: http2::Http2ClientPool,
    idle: RefCell<Vec<Idle>>,
}

struct Idle {
    stream: Transport,
    since_ns: u64,
}

/// A connection to a server, with its input buffer.
pub struct Upstream {
    pub stream: Transport,
    /// Bytes received and not yet consumed.
    pub input: InputBuffer,
    /// Interim responses to the current request so far.
    pub interim_responses: u32,
    /// An HTTP/2 connection that other requests used before.
    pub is_reused: bool,
    /// The body was streamed, and cannot be sent again.
    pub has_upload: bool,
}

impl Upstream {
    pub fn new(stream: Transport) -> Self {
        Self {
            stream,
            input: InputBuffer::default(),
            interim_responses: 0,
            is_reused: false,
            has_upload: false,
        }
    }
}

impl Server {
    pub fn new(id: ServerId, name: String, address: SocketAddr) -> Self {
        Self {
            id,
            name,
            address,
            in_flight: Cell::new(0),
            longest_waits: RefCell::default(),
            max_requests: Cell::new(u32::MAX),
            weight: Cell::new(None),
            is_backup: Cell::new(false),
            tls: RefCell::new(None),
            speaks_http2: Cell::new(false),
            http2_connections: http2::Http2ClientPool::default(),
            idle: RefCell::default(),
        }
    }

    /// Opens a connection for one request, or a stream on a shared HTTP/2 connection.
    pub async fn connect(&self, resources: &Rc<Resources>) -> io::Result<Upstream> {
        if !self.speaks_http2.get() {
            return Ok(Upstream::new(self.open().await?));
        }
        let connect = async || {
            let mut stream = self.open().await?;
            if !stream.may_speak_http2() {
                return Err(io::Error::other("it does not agree on HTTP/2 (ALPN)"));
            }
            let is_secured = matches!(stream, Transport::Tls(_));
            let (client, connection) =
                http2::Http2Client::new(Connection::new(stream, resources), is_secured);
            // Requests on the connection are told how it ends.
            spawn(async move { drop(connection.await) });
            Ok(client)
        };
        let (pipe, is_reused) = self.http2_connections.connect(connect).await?;
        Ok(Upstream { is_reused, ..Upstream::new(Transport::Http2(pipe)) })
    }

    async fn open(&self) -> io::Result<Transport> {
        let tls = self.tls.borrow().clone();
        Transport::connect(self.address, tls.as_deref()).await
    }

    /// Whether the limit permits one more request.
    pub fn has_room(&self) -> bool {
        self.in_flight.get() < self.max_requests.get()
    }

    /// The most recently used idle connection that is still open and silent: unexpected bytes or an end make it useless.
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
    pub fn put_back(&self, stream: Transport, now_ns: u64) {
        let mut idle = self.idle.borrow_mut();
        // Connections in use and idle ones together stay within the server's limit.
        let free_slots = self.max_requests.get().saturating_sub(self.in_flight.get()) as usize;
        if idle.len() < free_slots.min(IDLE_MAX) || (idle.is_empty() && free_slots == 0) {
            idle.push(Idle { stream, since_ns: now_ns });
        }
    }

    /// Idle connections.
    pub fn idle(&self) -> usize {
        self.idle.borrow().len() + self.http2_connections.idle()
    }

    /// Closes connections that were idle for longer than `longest_ns`, or that the server has closed.
    pub fn sweep(&self, now_ns: u64, longest_ns: u64) {
        let is_young = |idle: &Idle| now_ns.saturating_sub(idle.since_ns) < longest_ns;
        self.idle.borrow_mut().retain_mut(|idle| is_young(idle) && idle.stream.is_quiet());
        self.http2_connections.close_older_than(Duration::from_nanos(longest_ns));
    }

    /// Closes idle connections; HTTP/2 connections take no new requests, and end with their last one.
    pub fn close_idle(&self) {
        self.idle.borrow_mut().clear();
        self.http2_connections.close();
    }
}
