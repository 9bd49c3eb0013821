//! Bounds that every role keeps in HTTP, in one table.
//!
//! Lengths of heads are bounds of the parser ([`assay_http::head::MAX_HEAD_BYTES`], [`assay_http::head::MAX_HEADERS`]). Each role sets how
//! long a peer may take: it depends on what the role stands for.

use std::time::Duration;

/// Upper bound on interim responses (1xx) before the response to a request: a server without an end of them holds all requests that wait
/// for it.
pub const MAX_INTERIM_RESPONSES: u32 = 32;

/// Time for the head of a request, from its first byte on, unless the role sets another. The limit of a read does not bound it: a client
/// that sends a byte now and then would hold its connection for ever.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Lowest rate of a client's body in bytes a second, unless the role sets another: a client that sends a byte now and then would have all
/// the time of each read again and again.
pub const MIN_BODY_RATE: u64 = 500;

/// Time for which a connection that waits for its client is safe from eviction, and after which a head or a handshake counts as slow.
pub const EVICTION_GRACE: Duration = Duration::from_secs(1);

/// Free slots, of `most` in all, below which each new connection evicts the one that has waited longest for its client: so it need not wait
/// itself until that has gone.
pub fn eviction_reserve(most: usize) -> usize {
    (most / 64).min(8)
}

/// Bytes that one read takes.
pub const READ_BYTES: usize = 64 * 1024;

/// Bytes that the system accepts for a peer and cannot send yet, because the peer has no room for them (`TCP_NOTSENT_LOWAT`). What is in
/// flight does not count, so that it bounds no rate. The system takes a segment more than that, of 64 KiB at most.
pub const MAX_UNSENT_BYTES: u32 = 64 * 1024;

/// Chunks of a body that are taken, and written, at once: with what is written around them far below the system's limit on slices.
pub const BATCH_CHUNKS: usize = 32;

/// Idle connections that are kept to one server.
pub const MAX_IDLE: usize = 4096;

/// Time in which the rest of a refused request is read, so that its client gets to read the response: closing a connection on which
/// something is unread resets it.
pub const LINGER: Duration = Duration::from_secs(1);
/// Number of reads in which it is.
pub const LINGER_READS: usize = 64;

/// Pause of accepting when no descriptor is left: other connections have to end first.
pub const ACCEPT_RETRY: Duration = Duration::from_millis(20);

/// Connections that may wait to be accepted.
pub const BACKLOG: i32 = 4096;

/// Time for which a handler waits for another request on streams of HTTP/2. It keeps its memory meanwhile, and the next request may as well
/// get a new handler.
pub const NEXT_REQUEST_WAIT: Duration = Duration::from_secs(1);
