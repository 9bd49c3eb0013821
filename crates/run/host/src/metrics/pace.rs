//! What a reading costs, and how often one may be made that costs much. As often as is wanted, but never for more than a
//! small part of the time.

use std::time::{Duration, Instant};

use assay_base::clock::thread_cpu_ns;

/// A reading that took this long is not made again before 500 times as long has passed: 0.2 % of a processor.
const TIMES: u32 = 500;
/// Ticks of a second come a little early or late.
const SLACK: Duration = Duration::from_millis(200);

/// When a costly reading is due again.
#[derive(Debug)]
pub struct Pace {
    least: Duration,
    next: Option<Instant>,
}

impl Pace {
    /// One that is made no more often than this.
    pub fn new(least: Duration) -> Self {
        Self { least, next: None }
    }

    /// Makes the reading if it is due.
    pub fn when_due<T>(&mut self, now: Instant, reading: impl FnOnce() -> T) -> Option<T> {
        if !self.is_due(now) {
            return None;
        }
        let before = own_time();
        let read = reading();
        self.took(now, own_time().saturating_sub(before));
        Some(read)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| now >= next)
    }

    fn took(&mut self, now: Instant, cost: Duration) {
        self.next = Some(now + (cost * TIMES).max(self.least.saturating_sub(SLACK)));
    }
}

/// Processor time of this thread: what others do meanwhile costs nobody anything here.
pub fn own_time() -> Duration {
    Duration::from_nanos(thread_cpu_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cheap_reading_is_made_every_second_and_a_costly_one_when_it_has_paid_for_itself() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pace = Pace::new(Duration::from_secs(1));
        assert!(pace.is_due(start));
        pace.took(start, Duration::from_micros(50));
        assert!(!pace.is_due(at(700)) && pace.is_due(at(990)));
        pace.took(at(990), Duration::from_millis(20));
        assert!(!pace.is_due(at(10_000)) && pace.is_due(at(11_000)));
        assert_eq!(pace.when_due(at(11_000), || 7), Some(7));
        assert_eq!(pace.when_due(at(11_000), || 7), None);
    }
}
