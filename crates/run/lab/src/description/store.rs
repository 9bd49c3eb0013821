//! The places where a proxy keeps objects.

use serde::Deserialize;

/// A place where objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Store {
    Memory,
    Disk,
}

impl Store {
    /// As a description spells it.
    pub fn name(self) -> &'static str {
        match self {
            Store::Memory => "memory",
            Store::Disk => "disk",
        }
    }
}
