//! The clocks of this machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};
use tokio::signal::unix::{SignalKind, signal};

/// `CLOCK_MONOTONIC`, in nanoseconds.
pub fn monotonic_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// The wall clock, in microseconds of Unix time.
pub fn unix_us() -> u64 {
    read_ns(ClockId::Realtime) / 1000
}

/// The clock that an agent gives as its machine's: `CLOCK_MONOTONIC`, or for tests one whose rate differs from it. A namespace can
/// shift a clock, but cannot make it drift.
#[derive(Debug, Clone, Default)]
pub struct MachineClock {
    /// By how many millionths it is faster.
    pub drift_ppm: i32,
    /// By how much it is set forward each time that it is told to; 0: it is never set.
    pub step_ms: u32,
    /// By how much it was set forward so far, in nanoseconds.
    pub stepped_ns: Arc<AtomicU64>,
}

impl MachineClock {
    /// What it shows now, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.shown_ns(monotonic_ns())
    }

    /// Sets the clock forward at each SIGUSR1, where it may be set.
    pub async fn step_when_told(self) {
        let told = (self.step_ms > 0).then(|| signal(SignalKind::user_defined1()).ok()).flatten();
        let Some(mut told) = told else { return };
        while told.recv().await.is_some() {
            self.stepped_ns.fetch_add(u64::from(self.step_ms) * 1_000_000, Ordering::Relaxed);
        }
    }

    /// What it shows when `CLOCK_MONOTONIC` shows this.
    fn shown_ns(&self, monotonic_ns: u64) -> u64 {
        let ns = scaled(monotonic_ns, 1_000_000 + i128::from(self.drift_ppm), 1_000_000);
        ns.saturating_add(self.stepped_ns.load(Ordering::Relaxed))
    }

    /// What `CLOCK_MONOTONIC` shows when it shows this.
    pub fn monotonic_ns_at(&self, shown_ns: u64) -> u64 {
        let shown_ns = shown_ns.saturating_sub(self.stepped_ns.load(Ordering::Relaxed));
        scaled(shown_ns, 1_000_000, 1_000_000 + i128::from(self.drift_ppm))
    }
}

/// `ns * by / of`; drifts are far below a million, so that neither is 0.
fn scaled(ns: u64, by: i128, of: i128) -> u64 {
    u64::try_from(i128::from(ns) * by / of.max(1)).unwrap_or(u64::MAX)
}

fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_drifts_moves_away_by_its_drift_and_back_again() {
        let hour_ns = 3_600_000_000_000;
        assert_eq!(MachineClock::default().shown_ns(hour_ns), hour_ns);
        for (drift_ppm, ahead_ns) in [(100, 360_000_000_i64), (-100, -360_000_000)] {
            let clock = MachineClock { drift_ppm, ..MachineClock::default() };
            let shown_ns = clock.shown_ns(hour_ns);
            assert_eq!(shown_ns, hour_ns.saturating_add_signed(ahead_ns));
            assert!(clock.monotonic_ns_at(shown_ns).abs_diff(hour_ns) <= 1);
        }
    }
}
