//! Faults of origins on purpose: planned by a workload, named in records.

use strum::{EnumString, IntoStaticStr, VariantArray};

/// A fault on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
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
    /// The name used in tables.
    pub fn name(self) -> &'static str {
        self.into()
    }
}
