//! The Collector and the Multiplier: their specs and the counters that they report.

mod counters;
mod spec;

pub use counters::{
    CollectorCounters, CollectorInterval, ExchangeRow, ListenerRow, MultiplierCounters, OpenedCounters,
    TargetCounters,
};
pub use spec::{
    CollectorLog, CollectorSpec, DiskSpec, Listener, MultiplierSpec, ProxyUnderTest, Route, TlsTo, Turns,
    When,
};
