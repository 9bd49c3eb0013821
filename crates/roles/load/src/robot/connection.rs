//! One connection of a robot, and its place in the lists of its robot.

use assay_net::byte_stream::ByteStream;
use socket2::Socket;

use super::response::ResponseReader;
use super::streams::Streams;
use super::xact::NONE;

/// One connection of a robot.
#[derive(Debug)]
pub struct RobotConnection {
    /// Tells it from another that has taken its place in the slab.
    pub id: u64,
    /// Place of its robot.
    pub robot: u32,
    /// Number of the connection among those of its robot, from 0.
    pub serial: u32,
    pub destination: u16,
    /// Requests that may still be sent on it.
    pub uses_left: u32,
    /// The request it carries, the one whose response is next; [`NONE`]: it is idle.
    pub xact: u32,
    pub response: ResponseReader,
    /// True until the first request has been carried to its end.
    pub is_fresh: bool,
    pub stage: ConnectionStage,
    /// Instant of the connect, or of the last response.
    pub since_ns: u64,
    /// Requests behind the one whose turn it is.
    pub pipeline: ConnectionPipeline,
    /// Links within the robot's lists.
    pub link: ListLink,
    pub transport: ByteStream<Socket>,
    /// Bytes of a request that the socket has not taken yet.
    pub unsent: Vec<u8>,
    /// Streams of an HTTP/2 connection. `xact`, `response`, `pipeline` and `unsent` mean nothing then.
    pub streams: Option<Box<Streams>>,
}

/// Progress of a connection towards the first request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionStage {
    /// TCP handshake under way.
    Connecting,
    /// TLS handshake under way.
    Securing,
    /// Requests can be sent.
    Established,
}

impl RobotConnection {
    /// Requests can be sent on it.
    pub fn is_established(&self) -> bool {
        self.stage == ConnectionStage::Established
    }

    /// True if all of the requests has been written.
    pub fn is_written(&self) -> bool {
        self.unsent.is_empty() && !self.transport.has_unsent()
    }
}

/// Requests behind the one whose turn it is. Linked through the xacts: nothing is allocated.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionPipeline {
    /// Most requests that may be under way.
    pub depth: u16,
    /// Requests under way, with the one whose turn it is.
    pub load: u16,
    /// The requests behind the first have yet to be written, each when its turn comes.
    pub is_unwritten: bool,
    /// The first of those behind; [`NONE`]: there are none.
    pub first: u32,
    /// The last of them.
    pub last: u32,
}

impl ConnectionPipeline {
    /// For a connection that is opened for a request; `behind` is the first of those that were cut off with it.
    pub fn new(depth: u16, behind: u32) -> Self {
        Self { depth, load: 1, is_unwritten: behind != NONE, first: behind, last: NONE }
    }

    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

/// One of a robot's lists of connections.
#[derive(Debug, Clone, Copy)]
pub struct ListEnds {
    /// The last that was put in.
    pub first: u32,
    /// The one that has been in it longest.
    pub last: u32,
}

impl ListEnds {
    /// A list of nothing.
    pub const EMPTY: ListEnds = ListEnds { first: NONE, last: NONE };
}

/// A connection's place in a list.
#[derive(Debug, Clone, Copy)]
pub struct ListLink {
    /// List that the connection is in, if any.
    pub list: Option<ConnectionList>,
    /// The one that was put in before it.
    pub next: u32,
    /// The one that was put in after it.
    pub previous: u32,
}

impl ListLink {
    pub const FREE: ListLink = ListLink { list: None, next: NONE, previous: NONE };
}

/// The lists of a robot's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionList {
    /// Connections that carry nothing.
    Idle,
    /// Connections that carry something and may be given more.
    Pipelining,
}
