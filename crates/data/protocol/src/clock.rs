//! How long a run has been going.
//!
//! One clock for everything within a host: `CLOCK_MONOTONIC`. Wall-clock seconds (`Date`, life cycles) are counted
//! from the start instant of the run, so a step of the system's clock does not reach into a run.

use assay_base::clock::{SECOND_NS, monotonic_ns, realtime_ns};

/// When the run started, on both scales.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunClock {
    /// The start on `CLOCK_MONOTONIC`, in nanoseconds. May lie ahead.
    pub start_ns: u64,
    /// The same instant as Unix time, in whole seconds: the epoch of life cycles.
    pub start_unix_s: u64,
}

impl RunClock {
    /// A clock for the time before a run has a start instant: it starts now.
    pub fn provisional() -> Self {
        Self { start_ns: monotonic_ns(), start_unix_s: realtime_ns() / SECOND_NS }
    }

    /// Nanoseconds from the start to `at_ns`; 0 before it.
    #[inline]
    pub fn since_start_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.start_ns)
    }

    /// Microseconds from the start to `at_ns`; 0 before it.
    #[inline]
    pub fn since_start_us(&self, at_ns: u64) -> u64 {
        self.since_start_ns(at_ns) / 1_000
    }

    /// Microseconds from the start to `at_ns`; negative before it.
    #[inline]
    pub fn offset_us(&self, at_ns: u64) -> i64 {
        (at_ns as i64 - self.start_ns as i64).div_euclid(1_000)
    }

    /// Unix time at `at_ns`, in whole seconds.
    #[inline]
    pub fn unix_s(&self, at_ns: u64) -> u64 {
        self.start_unix_s + self.since_start_ns(at_ns) / SECOND_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_counted_from_the_start_of_the_run() {
        let clock = RunClock { start_ns: 5_500_000_000, start_unix_s: 1000 };
        assert_eq!(clock.unix_s(0), 1000);
        assert_eq!(clock.unix_s(6_499_999_999), 1000);
        assert_eq!(clock.unix_s(6_500_000_000), 1001);
        assert_eq!(clock.since_start_us(5_500_001_999), 1);
        assert_eq!(clock.offset_us(5_499_999_000), -1);
    }
}
