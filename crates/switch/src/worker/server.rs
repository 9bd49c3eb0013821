//! What a worker knows of a server, and which connections to it are idle.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use assay_dispatch::ServerId;

use super::stream::Stream;
use crate::secure::ToServer;
use assay_plane::memory::Input;

/// Most idle connections that are kept to one server.
const MOST_IDLE: usize = 4096;

/// A server, as a worker sees it. It stays the same over a reload.
pub struct Server {
    /// Its number.
    pub id: ServerId,
    /// What it is called.
    pub name: String,
    /// Where it is.
    pub address: SocketAddr,
    /// Requests that it has now, from this worker.
    pub in_flight: Cell<u32>,
    /// Most requests that it may have from this worker.
    pub most: Cell<u32>,
    /// Its weight; none while it may not get requests.
    pub standing: Cell<Option<f64>>,
    /// Used only when no other server of a group is there.
    pub is_backup: Cell<bool>,
    /// It speaks TLS.
    pub tls: RefCell<Option<Rc<ToServer>>>,
    idle: RefCell<Vec<Idle>>,
}

struct Idle {
    stream: Stream,
    since_ns: u64,
}

/// A connection to a server, and what came and was not used.
pub struct Upstream {
    /// The connection.
    pub stream: Stream,
    /// What came and was not used.
    pub input: Input,
    /// Interim responses to the current request so far.
    pub interim_responses: u32,
}

impl Upstream {
    /// A connection on which nothing has come for the current request.
    pub fn new(stream: Stream) -> Self {
        Self { stream, input: Input::default(), interim_responses: 0 }
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
            most: Cell::new(u32::MAX),
            standing: Cell::new(None),
            is_backup: Cell::new(false),
            tls: RefCell::new(None),
            idle: RefCell::default(),
        }
    }

    /// Connects to it.
    pub async fn connect(&self) -> io::Result<Stream> {
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
        self.idle.borrow().len()
    }

    /// Closes what has been idle for longer than this, or was closed by the server.
    pub fn sweep(&self, now_ns: u64, longest_ns: u64) {
        let is_young = |idle: &Idle| now_ns.saturating_sub(idle.since_ns) < longest_ns;
        self.idle.borrow_mut().retain_mut(|idle| is_young(idle) && idle.stream.is_quiet());
    }

    /// Closes all that are idle.
    pub fn close_idle(&self) {
        self.idle.borrow_mut().clear();
    }
}
