//! One connection of a robot, and its place in the lists of its robot.

use assay_net::byte_stream::ByteStream;
use slotmap::new_key_type;
use socket2::Socket;

use super::response::ResponseReader;
use super::streams::Streams;
use super::worker::RobotKey;
use super::xact::{XactKey, XactQueue};

new_key_type! {
    /// Key of a connection that is open or being opened. A key of one that was closed finds nothing, whatever came
    /// since.
    pub struct ConnectionKey;
}

/// One connection of a robot.
#[derive(Debug)]
pub struct RobotConnection {
    pub robot: RobotKey,
    /// Number of the connection among those of its robot, from 0.
    pub serial: u32,
    pub destination: u16,
    /// Requests that may still be sent on it.
    pub uses_left: u32,
    /// The request it carries, the one whose response is next; none: it is idle.
    pub xact: Option<XactKey>,
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

    /// Xacts on its streams, if it has streams.
    pub fn xacts_on_streams(&self) -> impl Iterator<Item = XactKey> {
        self.streams.iter().flat_map(|streams| streams.iter()).map(|exchange| exchange.xact)
    }

    /// True if all of the requests has been written.
    pub fn is_written(&self) -> bool {
        self.unsent.is_empty() && !self.transport.has_unsent()
    }
}

/// Requests behind the one whose turn it is.
#[derive(Debug)]
pub struct ConnectionPipeline {
    /// Limit of requests under way, including the one whose turn it is.
    pub depth: u16,
    /// The requests behind the first have yet to be written, each when its turn comes.
    pub is_unwritten: bool,
    pub behind: XactQueue,
}

impl ConnectionPipeline {
    /// For a connection that is opened for a request; `behind` are those that were cut off with it.
    pub fn new(depth: u16, behind: XactQueue) -> Self {
        Self { depth, is_unwritten: !behind.is_empty(), behind }
    }

    /// Requests under way, with the one whose turn it is.
    pub fn load(&self) -> u32 {
        1 + self.behind.len()
    }
}

/// One of a robot's lists of connections.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListEnds {
    /// The last that was put in.
    pub first: Option<ConnectionKey>,
    /// The one that has been in it longest.
    pub last: Option<ConnectionKey>,
}

/// A connection's place in a list.
#[derive(Debug, Clone, Copy, Default)]
pub struct ListLink {
    /// List that the connection is in, if any.
    pub list: Option<ConnectionList>,
    /// The one that was put in before it.
    pub next: Option<ConnectionKey>,
    /// The one that was put in after it.
    pub previous: Option<ConnectionKey>,
}

/// The lists of a robot's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionList {
    /// Connections that carry nothing.
    Idle,
    /// Connections that carry something and may be given more.
    Pipelining,
}
