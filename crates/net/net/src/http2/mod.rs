//! HTTP/2 for everything that speaks HTTP/1.1: each stream is a connection of its own with one request.
//!
//! [`serve`] owns a client's connection. For a request it makes a [`Pipe`], a byte stream on which the request lies as HTTP/1.1
//! writes it, and hands it to `start`, which serves it like any other connection ([`crate::exchange::serve`]). What is written into the
//! pipe is a response of HTTP/1.1, and goes out as one of HTTP/2. So the rules for requests, bodies, time limits and refusals
//! are the same for both versions, because they are the same code. A handler that waits for another request on its pipe gets the next one
//! that comes on any stream: to begin a new handler would cost more than everything else about a small request.
//!
//! [`Client`] is the other side: a connection to a server, on which each request has a [`Pipe`] too. The request is written into it as
//! HTTP/1.1 has it, and the response is read from it. [`Clients`] are the connections to one server.
//!
//! *Bounds:* a stream keeps at most its window of a request's body, and 64 KiB of a response, all streams of a connection some 2 MiB of their
//! responses (`share`); a client that opens no window has as long for each stream as one that takes nothing has over HTTP/1.1, and
//! so has one that does not send a body; a frame or header block that has begun has the time of a head, and to the preface belong the settings. A connection
//! ends with a stream on which its client did nothing in time, if no other goes on. There are at most
//! [`MOST_STREAMS`] streams, and [`MOST_PIPES`] pipes where handlers have not noticed yet that theirs was reset. Floods of frames end the
//! connection (`assay_http2::flood`).
//!
//! # Where HTTP/2 enters
//!
//! *Where a protocol enters.* TLS is another stream below `Connection`. HTTP/2 from clients is one too: `net::http2` owns a client's
//! connection and makes each request a stream of bytes (`Pipe`) in the form of HTTP/1.1; the response that is written there goes out as frames.
//! Handlers, and all rules for requests, are therefore the same for both versions, at the cost of writing and parsing a head once more. A pipe
//! reports that its client has left when the stream is reset, also to a handler that waits for its server (`Stream::until_gone`, and `switch::worker::exchange`).
//! What pipes keep of responses is bounded for each, and for all of a connection together (`share`). A stream whose handler is done and whose window is closed has a
//! deadline of its own; where nobody but the client can go on with any stream, the connection makes room for others (`Patience::Client`). After a complete response it is what a kept connection is: for a second it may
//! bring its handler the next request, of whatever stream, and then it ends. The unread part of a stream's body stays
//! in its window. `exchange::Request::received` states which version a request used. A client that ends its side of the connection gets the
//! responses to all requests that it has sent completely. A PING once a second checks whether the client is still there: the socket looks the
//! same if it has gone. Towards servers, an `Upstream` lies on an `HttpStream`, which is a socket or a pipe of an `http2::Client`: nothing above it
//! differs. `Pool::speaking_http2` names the servers that this applies to (the origins of the built-in proxy).
//!
//! *Does not:* push responses, pass on trailers, open tunnels (CONNECT gets a 501 response), or upgrade a connection of HTTP/1.1. Priorities of clients are not heeded: streams
//! take turns.

#[cfg(test)]
mod bound_tests;
mod client;
#[cfg(test)]
mod client_tests;
mod clients;
mod connection;
#[cfg(test)]
mod ending_tests;
pub mod pipe;
#[cfg(test)]
mod pool_tests;
mod response;
mod share;
#[cfg(test)]
mod tests;

use std::io;

pub use self::client::Client;
pub use self::clients::Clients;
pub use self::connection::serve;
pub use self::pipe::{Pipe, UNPROCESSED};
use crate::connection::Connection;
use crate::exchange::{self, ClientLimits, Stream};
use crate::watch::Awaits;

/// Most streams that a client may have open.
pub const MOST_STREAMS: u32 = 128;
/// Most pipes of a connection: those of open streams, and those of streams that were reset and are still handled.
pub const MOST_PIPES: usize = 2 * MOST_STREAMS as usize;
/// What a client may send of a body that nobody reads, in bytes.
pub const STREAM_WINDOW_BYTES: u32 = 128 * 1024;

/// Whether a client begins with the preface of HTTP/2 (RFC 9113, 3.4), over TLS or in clear with prior knowledge. What it has sent
/// stays in the input.
pub async fn is_begun<S: Stream>(connection: &mut Connection<S>, limits: &ClientLimits) -> io::Result<bool> {
    let is_opening = connection.stream.is_opening();
    connection.deadline.set(if is_opening { limits.head } else { limits.idle });
    loop {
        let unread = connection.input.unread();
        let is_open = unread.len() < assay_http2::PREFACE.len() && assay_http2::PREFACE.starts_with(unread);
        if !is_open {
            connection.deadline.set_awaits(Awaits::Other);
            connection.stream.set_slow(false);
            return Ok(unread.starts_with(assay_http2::PREFACE));
        }
        let is_idle = unread.is_empty();
        let mut input = std::mem::take(&mut connection.input);
        let awaits = if is_idle && !is_opening { Awaits::Request } else { Awaits::Head };
        let read = exchange::wait(connection, &mut input, awaits).await;
        connection.input = input;
        if read? == 0 {
            return Ok(false);
        }
        if is_idle {
            connection.deadline.set(limits.head);
        }
    }
}
