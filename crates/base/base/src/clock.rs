//! The system's clocks, in nanoseconds.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_does_not_go_back() {
        let before = monotonic_ns();
        assert!(monotonic_ns() >= before);
    }
}
