//! Faults of origins on purpose: planned by a workload, named in records.

/// A fault on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlannedFault {
    /// An error status in place of the object.
    Status,
    /// The connection is reset once the request has been read.
    Reset,
    /// The same, after the origin has thought about it for as long as it gives any request.
    Expired,
    /// The first byte comes late.
    SlowStart,
    /// The body is sent slowly.
    SlowBody,
}

impl PlannedFault {
    pub const ALL: [PlannedFault; 5] = [
        PlannedFault::Status,
        PlannedFault::Reset,
        PlannedFault::Expired,
        PlannedFault::SlowStart,
        PlannedFault::SlowBody,
    ];

    /// The name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            PlannedFault::Status => "status",
            PlannedFault::Reset => "reset",
            PlannedFault::Expired => "expired",
            PlannedFault::SlowStart => "slow_start",
            PlannedFault::SlowBody => "slow_body",
        }
    }

    /// The fault with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }
}
