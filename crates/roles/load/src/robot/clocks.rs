//! How far the clock of an origin can be from the robots'. Nothing, where both are on one machine.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Upper bound on the difference between an instant of an origin and the same instant of a robot, for all workers.
#[derive(Debug, Default)]
pub struct ClockError(AtomicU64);

impl ClockError {
    /// Raises the bound, in microseconds. Smaller values change nothing: what was decided stands.
    pub fn raise_to_us(&self, error_us: u64) {
        self.0.fetch_max(error_us, Relaxed);
    }

    /// In microseconds.
    #[inline]
    pub fn error_us(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
