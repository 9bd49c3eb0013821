//! One request of an input.

/// The object of a request that no cache may serve.
pub const UNCACHABLE: u32 = u32::MAX;

/// A request of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRequest {
    /// Size of the object, as of this request: the room that it takes in a cache. In a sample, of a request that no cache may
    /// serve: its key.
    pub bytes: u64,
    /// Bytes of the response to this request: fewer than the object's for a part of it.
    pub sent_bytes: u64,
    /// The object's number, or [`UNCACHABLE`].
    pub object: u32,
    /// Seconds since the first request.
    pub at_s: u32,
}
