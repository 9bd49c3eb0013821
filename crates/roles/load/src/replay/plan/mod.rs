//! Plans: clients, requests and due times. Pure: times are numbers, and chance comes from a seed.

pub mod list;
pub mod log;
mod order;
mod spread;

use assay_logs::access::HttpVersion;

use crate::replay::request::ReplayRequest;

/// Outcome of a request by the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoggedOutcome {
    /// True for a hit; none: the log does not say.
    pub hit: Option<bool>,
    /// Bytes of the response, as the log counts them.
    pub bytes: u64,
    /// Version of HTTP that the request came in; none: the log does not say.
    pub version: Option<HttpVersion>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Due time, in nanoseconds since the start.
    pub due_ns: u64,
    /// Client whose connections are used.
    pub client: Box<str>,
    /// Requests; several are sent one after the other, each when the response before it is complete.
    pub requests: Vec<ReplayRequest>,
    /// The connection may be used for more afterwards.
    pub keep: bool,
    pub logged_outcome: LoggedOutcome,
}
