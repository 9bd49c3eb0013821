//! The clocks of this machine.

use rustix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// The wall clock, in microseconds of Unix time.
pub fn unix_us() -> u64 {
    read_ns(ClockId::Realtime) / 1000
}

fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
