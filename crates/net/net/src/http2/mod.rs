//! HTTP/2 for everything that speaks HTTP/1.1: each stream is a connection of its own with one request.
//!
//! [`serve`] owns a client's connection. For a request it makes a [`Pipe`], a byte stream on which the request lies as HTTP/1.1
//! writes it, and hands it to `start`, which serves it like any other connection ([`crate::exchange::serve`]). What is written into the
//! pipe is a response of HTTP/1.1, and goes out as one of HTTP/2. So the rules for requests, bodies, time limits and refusals
//! are the same for both versions, because they are the same code. A handler that waits for another request on its pipe gets the next one
//! that comes on any stream: to begin a new handler would cost more than everything else about a small request.
//!
//! [`Http2Client`] is the other side: a connection to a server, on which each request has a [`Pipe`] too. The request is written into it as
//! HTTP/1.1 has it, and the response is read from it. [`Http2ClientPool`] are the connections to one server.
//!
//! *Bounds:* a stream keeps at most its window of a request's body, and 64 KiB of a response, all streams of a connection some 2 MiB of their
//! responses (`share`); a client that opens no window has as long for each stream as one that takes nothing has over HTTP/1.1, and
//! so has one that does not send a body; a frame or header block that has begun has the time of a head, and to the preface belong the settings. A connection
//! ends with a stream on which its client did nothing in time, if no other goes on. There are at most
//! [`MAX_STREAMS`] streams, and [`MAX_PIPES`] pipes where handlers have not noticed yet that theirs was reset. Floods of frames end the
//! connection (`assay_http2::flood`).
//!
//! # Where HTTP/2 enters
//!
//! *Where a protocol enters.* TLS is another stream below `Connection`. HTTP/2 from clients is one too: `net::http2` owns a client's
//! connection and makes each request a stream of bytes (`Pipe`) in the form of HTTP/1.1; the response that is written there goes out as frames.
//! Handlers, and all rules for requests, are therefore the same for both versions, at the cost of writing and parsing a head once more. A pipe
//! reports that its client has left when the stream is reset, also to a handler that waits for its server (`Transport::wait_disconnected`, and `switch::worker::exchange`).
//! What pipes keep of responses is bounded for each, and for all of a connection together (`share`). A stream whose handler is done and whose window is closed has a
//! deadline of its own; where nobody but the client can go on with any stream, the connection makes room for others (`DeadlinePurpose::Client`). After a complete response it is what a kept connection is: for a second it may
//! bring its handler the next request, of whatever stream, and then it ends. The unread part of a stream's body stays
//! in its window. `exchange::Request::received` states which version a request used. A client that ends its side of the connection gets the
//! responses to all requests that it has sent completely. A PING once a second checks whether the client is still there: the socket looks the
//! same if it has gone. Towards servers, an `Upstream` lies on an `HttpStream`, which is a socket or a pipe of an `http2::Http2Client`: nothing above it
//! differs. `Pool::with_http2_servers` names the servers that this applies to (the origins of the built-in proxy).
//!
//! *Does not:* push responses, pass on trailers, open tunnels (CONNECT gets a 501 response), or upgrade a connection of HTTP/1.1. Priorities of clients are not heeded: streams
//! take turns.

#[cfg(test)]
mod bound_tests;
mod client;
mod client_pool;
#[cfg(test)]
mod client_tests;
mod connection;
#[cfg(test)]
mod ending_tests;
pub mod pipe;
#[cfg(test)]
mod pool_tests;
mod share;
#[cfg(test)]
mod tests;
mod translate;

use std::cell::Cell;
use std::io;

use assay_http2::{ConnectionError, Malformed, StreamError};

pub use self::client::Http2Client;
pub use self::client_pool::Http2ClientPool;
pub use self::connection::serve;
pub use self::pipe::{Pipe, UNPROCESSED};
use crate::connection::Connection;
use crate::deadlines::WaitReason;
use crate::exchange::{self, ClientLimits, Transport};

/// Upper bound on the open streams of a client.
pub const MAX_STREAMS: u32 = 128;
/// Upper bound on the pipes of a connection: those of open streams, and those of streams that were reset and are still handled.
pub const MAX_PIPES: usize = 2 * MAX_STREAMS as usize;
/// Bytes of a body that a client may send before anybody reads them.
pub const STREAM_WINDOW_BYTES: u32 = 128 * 1024;

/// Whether a client begins with the preface of HTTP/2 (RFC 9113, 3.4), over TLS or in the clear with prior knowledge. The bytes stay in the
/// input.
pub async fn has_preface<S: Transport>(
    connection: &mut Connection<S>,
    limits: &ClientLimits,
) -> io::Result<bool> {
    let is_opening = connection.stream.is_handshaking();
    connection.deadline.set(if is_opening { limits.head } else { limits.idle });
    loop {
        let unread = connection.input.unread();
        let is_open = unread.len() < assay_http2::PREFACE.len() && assay_http2::PREFACE.starts_with(unread);
        if !is_open {
            connection.deadline.set_wait_reason(WaitReason::Other);
            connection.stream.set_slow(false);
            return Ok(unread.starts_with(assay_http2::PREFACE));
        }
        let is_idle = unread.is_empty();
        let mut input = std::mem::take(&mut connection.input);
        let awaits = if is_idle && !is_opening { WaitReason::Request } else { WaitReason::Head };
        let read = exchange::read_request_bytes(connection, &mut input, awaits).await;
        connection.input = input;
        if read? == 0 {
            return Ok(false);
        }
        if is_idle {
            connection.deadline.set(limits.head);
        }
    }
}

/// Requests of HTTP/2 that were refused before a handler had seen them, by reason. One that breaks the rules of the connection, which ends it, counts as well.
#[derive(Debug, Default)]
pub struct RefusalCounts {
    /// Malformed, or against the rules of the connection.
    pub malformed: Cell<u64>,
    /// With a head that is too long.
    pub too_long: Cell<u64>,
    /// Of a kind that is not served.
    pub not_served: Cell<u64>,
    /// More at once, or with more work for this side, than may be.
    pub too_many: Cell<u64>,
}

impl RefusalCounts {
    pub fn total(&self) -> u64 {
        [&self.malformed, &self.too_long, &self.not_served, &self.too_many].map(Cell::get).iter().sum()
    }

    /// Counts a request that ends the connection.
    pub(crate) fn count_connection_error(&self, error: ConnectionError) {
        add(match error {
            ConnectionError::BlockTooLong => &self.too_long,
            ConnectionError::Flood(_) => &self.too_many,
            _ => &self.malformed,
        });
    }

    /// Counts a request whose stream has failed.
    pub(crate) fn count_stream_error(&self, error: StreamError) {
        add(match error {
            StreamError::Malformed(Malformed::TooLarge(_)) => &self.too_long,
            _ => &self.malformed,
        });
    }

    /// Counts a request of a kind that is not served.
    pub(crate) fn count_not_served(&self) {
        add(&self.not_served);
    }

    /// Counts a request beyond the limit.
    pub(crate) fn count_too_many(&self) {
        add(&self.too_many);
    }
}

fn add(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}
