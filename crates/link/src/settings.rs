//! What a link does to a packet, in each direction, and how that is written.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A link, the same in both directions. The default lets everything pass at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkSettings {
    /// One-way delay.
    pub delay: Duration,
    /// Most that is added to or taken from the delay, uniformly; packets keep their order.
    pub jitter: Duration,
    /// Share of packets that are lost, from 0 to 1; which ones follows from a seed.
    pub loss: f64,
    /// Most that passes, in bits per second; none: no limit.
    pub rate_bits_per_s: Option<u64>,
    /// Bytes that may wait for the rate; none: 100 kB. What comes on top is dropped.
    pub queue_bytes: Option<u64>,
}

/// A link that cannot be: what was written, and what is expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SettingsError {
    /// The whole message.
    pub message: String,
}
