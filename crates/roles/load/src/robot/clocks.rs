//! How far the clock of an origin can be from the robots'. Nothing, where both are on one machine.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// By how much an instant of an origin can differ from the same instant of a robot; all workers share it.
#[derive(Debug, Default)]
pub struct Clocks(AtomicU64);

impl Clocks {
    /// From now on by so much, in microseconds. Smaller values than before change nothing: what was decided stands.
    pub fn differ_by_us(&self, error_us: u64) {
        self.0.fetch_max(error_us, Relaxed);
    }

    /// In microseconds.
    #[inline]
    pub fn error_us(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
