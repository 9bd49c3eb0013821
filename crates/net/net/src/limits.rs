//! Bounds that everyone who speaks HTTP here keeps, in one table.
//!
//! Lengths of heads are bounds of the parser ([`assay_http::head::MAX_HEAD_BYTES`], [`assay_http::head::MAX_HEADERS`]). How long a
//! peer may take is for each role to say: it depends on what the role stands for.

use std::time::Duration;

/// Most interim responses (1xx) before the response to a request: a server without an end of them holds all requests that wait
/// for it.
pub const MOST_INTERIM_RESPONSES: u32 = 32;

/// How long a client may take for the head of a request, from its first byte on, where its role says nothing else. The limit of a
/// read does not bound it: a client that sends a byte now and then would hold its connection for ever.
pub const HEAD: Duration = Duration::from_secs(30);

/// How many bytes of a body a client has to send or take in a second at least, where its role says nothing else: one that sends a
/// byte now and then would have all the time of each read again and again.
pub const LEAST_RATE: u64 = 500;

/// A connection that waits for its client is not ended for the sake of others before it has waited for so long, and is not slow with a
/// head or a handshake before that has taken so long.
pub const SPARED: Duration = Duration::from_secs(1);

/// Where no more than so many connections may still come, of `most` in all, each that comes ends the one that has waited longest for its
/// client: so it need not wait itself until that has gone.
pub fn room_of(most: usize) -> usize {
    (most / 64).min(8)
}

/// Most bytes that one read takes.
pub const READ_BYTES: usize = 64 * 1024;

/// Most bytes that the system takes for a peer and cannot send yet, because the peer has no room for them (`TCP_NOTSENT_LOWAT`). What is on
/// its way does not count, so that it bounds no rate. The system takes a segment more than that, of 64 KiB at most.
pub const MOST_UNSENT: u32 = 64 * 1024;

/// Most chunks of a body that are taken, and written, at once: with what is written around them far below the system's limit on
/// slices.
pub const BATCH_CHUNKS: usize = 32;

/// Most idle connections that are kept to one server.
pub const MOST_IDLE: usize = 4096;

/// How long, and in how many reads, the rest of a refused request is read, so that its client gets to read why: closing a
/// connection on which something is unread resets it.
pub const LINGER: Duration = Duration::from_secs(1);
/// See [`LINGER`].
pub const LINGER_READS: usize = 64;

/// How long nobody is accepted when no descriptor is left: other connections have to end first.
pub const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(20);

/// Connections that may wait to be accepted.
pub const BACKLOG: i32 = 4096;

/// How long a handler waits for another request on streams of HTTP/2. It keeps its memory meanwhile, and the next request may as well get a
/// new handler.
pub const RESTING: Duration = Duration::from_secs(1);
