//! Connections of HTTP: what every process on the path of a request has in common.
//!
//! Robots, origins, the built-in proxy and all else that speaks HTTP here is made of these parts:
//!
//! - connections ([`connection`]) with shared buffers ([`buffers`]) and deadlines that cost nothing to set ([`deadlines`]), over TCP or TLS
//!   ([`byte_stream`]); requests of HTTP/2 as connections of that kind ([`http2`], [`http_stream`]);
//! - requests and responses on them ([`exchange`]): bodies decoded ([`body`]), relayed from one connection to another ([`relay`])
//!   and shared by several readers while they arrive ([`shared_body`]), fields ([`fields`]) and interim responses ([`interim`]) forwarded as
//!   intermediaries must;
//! - connections to servers ([`upstream`]) and their reuse ([`pool`]); listening ([`listen`]), a bound on the number of clients
//!   ([`connection_limit`]) and the hosts that they may name ([`allowed_hosts`]); one table of bounds ([`limits`]);
//! - timers that are exact to microseconds ([`timer`]), sockets without tasks ([`sockets`]), receive timestamps ([`rx_timestamps`]), worker
//!   threads ([`worker`]) with the times that they ran and waited ([`thread_times`]), and coalescing of messages where there are many
//!   ([`coalesce`]).
//!
//! # Connections
//!
//! `net::connection::Connection` is a byte stream with its unread input, its deadline, and the buffers that all
//! connections of a thread share (`Resources`). The stream is TCP, or any other implementation of `net::exchange::Transport`; `net::byte_stream` is TCP in the clear or TLS on it
//! (`net::listen` sets up its socket, so that a peer that takes nothing leaves no more than 128 KiB in the memory that the system has for TCP). Two modules
//! use it, one for each side:
//!
//! - `net::exchange`: `serve` reads the requests of a connection and passes the head of each to a `Handler`, which takes the body
//!   with `Exchange::next_part` and responds with field lines, a `BodyFraming` and parts of a body. The end of a head, the time limits
//!   of a client, the framing of a body, keeping the connection alive, and lingering with unread data are all implemented here,
//!   once, for the proxy, the switch, the Multiplier, the Collector, nodes, simulated origins of a replay, the live page and the
//!   switch's counters.
//! - `net::upstream`: an `Upstream` takes a request and returns the heads of its responses, parsed in place (`ReceivedHead`),
//!   including interim ones; a `Pool` keeps idle connections, distinguished by server or by any other key, and shares those of HTTP/2
//!   among requests (`http2::Http2ClientPool`, also in the switch). `ResponseError` names errors
//!   in the vocabulary of the record.
//!
//! `net::limits` is the table of bounds; those of a head are the parser's (`http::head`). Robots and origins have connections of their
//! own (`load::robot::connection`, `load::origin::connection`): a task and a buffer for each would be most of the cost of an idle
//! connection (1,309 bytes against 519). The switch connects to its servers through its own sockets (`switch::worker::socket`, and TLS or a
//! stream of HTTP/2 in `switch::worker::transport`), under the deadline of the client.
//!
//! *Does not:* decide what is requested, sent, stored or compared; that is left to its users.

pub mod allowed_hosts;
pub mod body;
pub mod buffers;
pub mod byte_stream;
pub mod coalesce;
pub mod connection;
pub mod connection_limit;
pub mod deadlines;
pub mod exchange;
pub mod fields;
pub mod http2;
pub mod http_stream;
pub mod interim;
pub mod limits;
pub mod listen;
pub mod pool;
pub mod relay;
pub mod rx_timestamps;
pub mod shared_body;
pub mod sockets;
pub mod thread_times;
pub mod timer;
pub mod tls;
pub mod upstream;
pub mod worker;

/// Robots' origins, simulated origins, nodes and the Collector respond to a GET of this path with 200 and count it nowhere: the
/// program that starts them, or a proxy before them, uses it to find out whether requests come through.
pub const HEALTH_PATH: &str = "/assay/health";

/// Prefix of the line in a response to a health check that names the origin of a run that responds.
pub const HEALTH_ORIGIN_PREFIX: &str = "origin ";
