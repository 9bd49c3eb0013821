//! One connection of a robot as it stands: what it carries, and its place in the lists of its robot.

use assay_net::byte_stream::ByteStream;
use socket2::Socket;

use super::response::Response;
use super::streams::Streams;
use super::xact::NONE;

/// One connection of a robot.
#[derive(Debug)]
pub struct Connection {
    /// Tells it from another that has taken its place in the slab.
    pub id: u64,
    /// Place of its robot.
    pub robot: u32,
    /// Which connection of the robot it is, from 0.
    pub serial: u32,
    pub destination: u16,
    /// How many more requests it may carry.
    pub uses_left: u32,
    /// The request it carries, the one whose response is next; [`NONE`]: it is idle.
    pub xact: u32,
    pub response: Response,
    /// It has not carried a request to its end yet.
    pub is_fresh: bool,
    /// How far it has come.
    pub stage: Stage,
    /// When it was begun, or left idle.
    pub since_ns: u64,
    /// What it carries behind the request whose turn it is.
    pub pipeline: Pipeline,
    /// Its place in its robot's lists.
    pub link: Link,
    /// Its byte stream.
    pub transport: ByteStream<Socket>,
    /// What the stream would not take yet.
    pub unsent: Vec<u8>,
    /// What it carries if it is one of HTTP/2. `xact`, `response`, `pipeline` and `unsent` mean nothing then.
    pub streams: Option<Box<Streams>>,
}

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its TCP handshake goes on.
    Connecting,
    /// That is over, and its TLS handshake goes on.
    Securing,
    /// Requests can be sent.
    Established,
}

impl Connection {
    /// Requests can be sent on it.
    pub fn is_established(&self) -> bool {
        self.stage == Stage::Established
    }

    /// The whole request has been written.
    pub fn is_through(&self) -> bool {
        self.unsent.is_empty() && !self.transport.has_unsent()
    }
}

/// What a connection carries behind the request whose turn it is. Linked through the xacts: nothing is allocated.
#[derive(Debug, Clone, Copy)]
pub struct Pipeline {
    /// How many requests may be under way.
    pub depth: u16,
    /// How many are, the one whose turn it is among them.
    pub load: u16,
    /// Those behind have yet to be written, each when its turn comes.
    pub owes: bool,
    /// The first of those behind; [`NONE`]: there are none.
    pub first: u32,
    /// The last of them.
    pub last: u32,
}

impl Pipeline {
    /// For a connection that is opened for a request; `behind` is the first of those that were cut off with it.
    pub fn new(depth: u16, behind: u32) -> Self {
        Self { depth, load: 1, owes: behind != NONE, first: behind, last: NONE }
    }

    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

/// One of a robot's lists of connections.
#[derive(Debug, Clone, Copy)]
pub struct List {
    /// The last that was put in.
    pub first: u32,
    /// The one that has been in it longest.
    pub last: u32,
}

impl List {
    /// A list of nothing.
    pub const EMPTY: List = List { first: NONE, last: NONE };
}

/// A connection's place in a list.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// Which list; none: it is in none.
    pub listed: Option<Listed>,
    /// The one that was put in before it.
    pub next: u32,
    /// The one that was put in after it.
    pub previous: u32,
}

impl Link {
    pub const FREE: Link = Link { listed: None, next: NONE, previous: NONE };
}

/// What a list is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Connections that carry nothing.
    Idle,
    /// Connections that carry something and may be given more.
    Pipelining,
}
