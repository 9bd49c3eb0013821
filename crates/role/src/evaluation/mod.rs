//! The Collector and the Multiplier: their specs and the counters that they report.

mod counters;
mod spec;

pub use counters::{CollectorCounters, CollectorInterval, DoorRow, MultiplierCounters, TargetCounters};
pub use spec::{CollectorSpec, DiskSpec, Door, MultiplierSpec, ProxyUnderTest, Route, Turns, When};
