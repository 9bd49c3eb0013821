//! Pacing of costly readings, so that they take only a small share of a processor.

use std::time::{Duration, Instant};

use assay_base::clock::thread_cpu_ns;

/// Pause after a reading, as a multiple of its cost: 0.2 % of a processor.
const COST_FACTOR: u32 = 500;
/// Tolerance for ticks that come early.
const SLACK: Duration = Duration::from_millis(200);

/// Schedule of a costly reading.
#[derive(Debug)]
pub struct Pacer {
    least: Duration,
    next: Option<Instant>,
}

impl Pacer {
    /// A schedule with a least interval.
    pub fn new(least: Duration) -> Self {
        Self { least, next: None }
    }

    pub fn if_due<T>(&mut self, now: Instant, reading: impl FnOnce() -> T) -> Option<T> {
        if !self.is_due(now) {
            return None;
        }
        let before = thread_cpu_time();
        let read = reading();
        self.record_cost(now, thread_cpu_time().saturating_sub(before));
        Some(read)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| now >= next)
    }

    fn record_cost(&mut self, now: Instant, cost: Duration) {
        self.next = Some(now + (cost * COST_FACTOR).max(self.least.saturating_sub(SLACK)));
    }
}

/// Processor time of the calling thread.
pub fn thread_cpu_time() -> Duration {
    Duration::from_nanos(thread_cpu_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cheap_reading_is_made_every_second_and_a_costly_one_when_it_has_paid_for_itself() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pacer = Pacer::new(Duration::from_secs(1));
        assert!(pacer.is_due(start));
        pacer.record_cost(start, Duration::from_micros(50));
        assert!(!pacer.is_due(at(700)) && pacer.is_due(at(990)));
        pacer.record_cost(at(990), Duration::from_millis(20));
        assert!(!pacer.is_due(at(10_000)) && pacer.is_due(at(11_000)));
        assert_eq!(pacer.if_due(at(11_000), || 7), Some(7));
        assert_eq!(pacer.if_due(at(11_000), || 7), None);
    }
}
