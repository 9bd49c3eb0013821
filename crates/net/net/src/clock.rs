//! Time, and how long the run has been going.
//!
//! One clock for everything within a host: `CLOCK_MONOTONIC`. Wall-clock seconds (`Date`, life cycles) are counted
//! from the start instant of the run, so a step of the system's clock does not reach into a run.

/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// `CLOCK_MONOTONIC`, now, in nanoseconds.
#[inline]
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// The wall clock (`CLOCK_REALTIME`), in nanoseconds since 1970.
#[inline]
pub fn realtime_ns() -> u64 {
    read_ns(libc::CLOCK_REALTIME)
}

/// Processor time of the calling thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// One of the system's clocks, in nanoseconds; 0 for one that the system does not have.
#[inline]
fn read_ns(clock: libc::clockid_t) -> u64 {
    // The system library's, not rustix's: that one looks for the vDSO in vain, and crashes, where it is hidden (valgrind).
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec that outlives the call, which writes to it and to nothing else.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}

/// `CLOCK_MONOTONIC` as of the system's last tick: a few milliseconds late, and a fraction of the cost.
#[inline]
pub fn coarse_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a timespec that outlives the call, which writes to it and to nothing else.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}

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
        Self { start_ns: monotonic_ns(), start_unix_s: read_ns(libc::CLOCK_REALTIME) / SECOND_NS }
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

    #[test]
    fn the_clock_does_not_go_back() {
        let before = monotonic_ns();
        assert!(monotonic_ns() >= before);
    }
}
