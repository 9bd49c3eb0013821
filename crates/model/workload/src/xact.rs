//! Which request is meant ([`XactId`]), and how its origin may misbehave towards it on purpose.

use std::time::Duration;

use crate::model::RobotIndex;

/// Identity of an xact, unique in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct XactId {
    pub robot: RobotIndex,
    /// Request number ([`crate::Launch::number`]).
    pub number: u64,
    /// 0: launched by the stream; else the place in its page.
    pub place: u16,
}

impl XactId {
    /// A request that names no xact: one that a proxy makes on its own, or whose name it dropped. Nothing is
    /// ever in store for it.
    pub const NOBODY: Self = Self { robot: RobotIndex::MAX, number: 0, place: 0 };
}

/// Deliberate fault of an origin for one request; one at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// Responses with this status, and no object.
    Status(u16),
    /// Resets the connection once the request has been read.
    Reset,
    /// The same, after having thought for so long in vain.
    Expired(Duration),
    /// Lets the first byte wait for so long (beside its think time).
    SlowStart(Duration),
    /// Sends the body no faster than this.
    SlowBody {
        /// Bytes per second, positive.
        bytes_per_s: f64,
    },
}
