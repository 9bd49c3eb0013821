//! Who sends what, and when. Pure: times are numbers, and chance comes from a seed.

pub mod list;
pub mod log;
mod order;
mod spread;

use assay_logs::access::Version;

use crate::replay::request::Call;

/// What a log says became of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Told {
    /// It was served from a cache; none: the log does not say.
    pub hit: Option<bool>,
    /// Bytes of the response, as the log counts them.
    pub bytes: u64,
    /// Version of HTTP that the request came in; none: the log does not say.
    pub version: Option<Version>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// When, in nanoseconds since the start.
    pub due_ns: u64,
    /// Whose connections it goes over.
    pub client: Box<str>,
    /// What; several are sent one after the other, each when the response before it is complete.
    pub calls: Vec<Call>,
    /// The connection may be used for more afterwards.
    pub keep: bool,
    /// What became of it then.
    pub told: Told,
}
