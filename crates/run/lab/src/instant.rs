//! The instant at which everybody begins. One instant for all roles, on both clocks.

use std::time::Duration;

use assay_base::clock::{monotonic_ns, realtime_ns};
use assay_protocol::message::Command;

/// The least time between the start command and the start.
const LEAD: Duration = Duration::from_millis(300);

/// The instant at which everybody begins: a whole second, so that what is dated in whole seconds is exact.
#[derive(Debug, Clone, Copy)]
pub struct StartInstant {
    /// On `CLOCK_MONOTONIC`, in nanoseconds.
    pub monotonic_ns: u64,
    /// On the wall clock, in seconds.
    pub unix_s: u64,
}

impl StartInstant {
    /// Start at that second; none where it does not leave everybody time to hear of it.
    pub fn at(unix_s: u64) -> Option<Self> {
        let (realtime_ns, monotonic_ns) = (realtime_ns(), monotonic_ns());
        let lead_ns = unix_s.checked_mul(1_000_000_000)?.checked_sub(realtime_ns)?;
        let is_enough = lead_ns >= u64::try_from(LEAD.as_nanos()).unwrap_or(0);
        is_enough.then(|| Self { monotonic_ns: monotonic_ns + lead_ns, unix_s })
    }

    /// The first whole second that leaves everybody time to hear of it.
    pub fn soon() -> Self {
        Self::in_at_least(LEAD)
    }

    /// The first whole second that is at least so far ahead.
    pub fn in_at_least(lead: Duration) -> Self {
        Self::after(realtime_ns(), monotonic_ns(), lead)
    }

    fn after(realtime_ns: u64, monotonic_ns: u64, lead: Duration) -> Self {
        let lead_ns = u64::try_from(lead.as_nanos()).unwrap_or(0);
        let unix_s = (realtime_ns + lead_ns).div_ceil(1_000_000_000);
        Self { monotonic_ns: monotonic_ns + (unix_s * 1_000_000_000 - realtime_ns), unix_s }
    }

    /// Command that tells a role of it.
    pub fn command(self) -> Command {
        Command::Start { at_monotonic_ns: self.monotonic_ns, at_unix_s: self.unix_s }
    }

    /// Milliseconds since then; 0 before.
    pub fn elapsed_ms(self) -> u64 {
        monotonic_ns().saturating_sub(self.monotonic_ns) / 1_000_000
    }

    /// Milliseconds until then; 0 after.
    pub fn remaining_ms(self) -> u64 {
        self.monotonic_ns.saturating_sub(monotonic_ns()) / 1_000_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_a_whole_second_that_is_far_enough_away() {
        for (realtime_ns, unix_s) in [
            (10_000_000_000, 11),
            (10_500_000_000, 11),
            (10_700_000_000, 11),
            (10_700_000_001, 12),
            (10_999_999_999, 12),
        ] {
            let start = StartInstant::after(realtime_ns, 5, LEAD);
            assert_eq!(start.unix_s, unix_s);
            assert_eq!(start.monotonic_ns - 5, unix_s * 1_000_000_000 - realtime_ns);
        }
    }
}
