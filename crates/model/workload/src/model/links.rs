//! Links as a workload says them (PGL `NetPipe`): what packets meet between robots, the target and origins.
//!
//! All agents on one side of the target have the same link, and a link is alike in both directions.

use serde::{Deserialize, Serialize};

/// Links from the pipes of all agents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Links {
    /// Between robots and the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robots: Option<Link>,
    /// Between the target and origins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origins: Option<Link>,
}

/// A link, alike in both directions. The default lets everything pass at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// One-way delay, in seconds.
    pub delay_s: f64,
    /// The most that is added to or taken from the delay, uniformly, in seconds.
    pub jitter_s: f64,
    /// Share of packets that are lost, 0 to 1.
    pub loss: f64,
    /// The most that passes, in bits per second; none: no limit.
    pub bits_per_s: Option<u64>,
    /// Bytes that may wait for the rate; none: as is usual. Set only where there is a rate.
    pub queue_bytes: Option<u64>,
}

impl Link {
    /// The longest delay of a link, in seconds.
    pub const MOST_DELAY_S: f64 = 60.0;
    /// Slowest and fastest rate of a link, in bits per second.
    pub const RATES: (f64, f64) = (1e3, 1e12);
    /// The shortest and the longest queue, in bytes: one packet, and what a link can be given.
    pub const QUEUES: (f64, f64) = (1500.0, 1e9);

    /// True for a link that does nothing.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}
