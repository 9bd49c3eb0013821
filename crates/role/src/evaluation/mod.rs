//! The Collector and the Multiplier: their specs and the counters that they report.

mod counters;
mod spec;

pub use counters::{
    CollectorCounters, CollectorInterval, ExchangeRow, ListenerRow, MultiplierCounters, TargetCounters,
};
pub use spec::{
    CollectorLog, CollectorSpec, DiskSpec, Listener, MultiplierSpec, OriginTls, ProxyUnderTest, Route, Turns,
    When,
};
