//! Times of which some have no end: of a request that was never sent, or was given up, it is known only how long it had
//! waited by then. Such a wait is *open*: the time would have been at least as long.
//!
//! A figure of such times lies between two bounds. For the lower one, every open wait ends where it was cut off; for the
//! upper one, it never ends. Where both are the same, the figure is known though some waits are open.

use crate::histogram::{Histogram, MAX_US};

/// Times that ended, and waits that did not.
#[derive(Debug, Clone)]
pub struct Censored {
    ended: Histogram,
    /// Number of open waits.
    open: u64,
    /// All, the open waits as long as they were when they were cut off.
    shortest: Histogram,
    /// All, the open waits as [`MAX_US`]. None: no wait is open.
    longest: Option<Histogram>,
}

/// A figure in microseconds, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Lower bound.
    pub low_us: f64,
    /// Upper bound; none: there is none.
    pub high_us: Option<f64>,
}

impl Bounds {
    /// A figure that is known.
    pub fn exact(us: f64) -> Self {
        Self { low_us: us, high_us: Some(us) }
    }

    /// True where it is known; else `low_us` is a lower bound.
    pub fn is_exact(&self) -> bool {
        self.high_us == Some(self.low_us)
    }
}

impl From<Histogram> for Censored {
    fn from(ended: Histogram) -> Self {
        Self { shortest: ended.clone(), ended, open: 0, longest: None }
    }
}

impl Censored {
    /// Times that ended, and how long those that did not had waited.
    pub fn new(ended: Histogram, waits: &[&Histogram]) -> Self {
        let open: u64 = waits.iter().map(|waits| waits.count()).sum();
        if open == 0 {
            return ended.into();
        }
        let (mut shortest, mut longest) = (ended.clone(), ended.clone());
        waits.iter().for_each(|waits| shortest.merge(waits));
        longest.record_many(MAX_US, open);
        Self { ended, open, shortest, longest: Some(longest) }
    }

    /// Number of times, open ones included.
    pub fn count(&self) -> u64 {
        self.shortest.count()
    }

    /// Number of open waits.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// All times, the open ones as long as they had waited.
    pub fn shortest(&self) -> &Histogram {
        &self.shortest
    }

    /// The value that `quantile` (0 to 1) of all do not exceed; none: there are none.
    pub fn quantile(&self, quantile: f64) -> Option<Bounds> {
        let low_us = self.shortest.quantile_us(quantile)?;
        let Some(longest) = &self.longest else { return Some(Bounds::exact(low_us as f64)) };
        let high_us = longest.quantile_us(quantile)?;
        let high_us = if self.shortest.bucket_high_us(low_us) == longest.bucket_high_us(high_us) {
            Some(low_us as f64)
        } else {
            // As long as those that never end: without a bound.
            Some(high_us as f64).filter(|_| longest.bucket_high_us(high_us) < MAX_US)
        };
        Some(Bounds { low_us: low_us as f64, high_us })
    }

    pub fn mean(&self) -> Option<Bounds> {
        self.shortest.mean_us().map(|us| self.unless_open(us))
    }

    pub fn max(&self) -> Option<Bounds> {
        self.shortest.max_us().map(|us| self.unless_open(us as f64))
    }

    pub fn min(&self) -> Option<Bounds> {
        let low_us = self.shortest.min_us()? as f64;
        Some(Bounds { low_us, high_us: self.ended.min_us().map(|us| us as f64) })
    }

    fn unless_open(&self, us: f64) -> Bounds {
        Bounds { low_us: us, high_us: (self.open == 0).then_some(us) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|us| histogram.record(*us));
        histogram
    }

    /// The value at this share of some times, as the definition says it: sorted, and counted off.
    fn counted_off(mut times: Vec<u64>, share: f64) -> u64 {
        times.sort_unstable();
        let rank = ((times.len() as f64 * share).ceil() as usize).max(1);
        times[rank - 1]
    }

    proptest! {
        #[test]
        fn bounds_hold_whatever_the_open_waits_would_have_come_to(
            ended in prop::collection::vec(1u64..2000, 0..40),
            open in prop::collection::vec((1u64..2000, 0u64..5000), 0..10),
            percent in 1u32..=100,
        ) {
            let share = f64::from(percent) / 100.0;
            let waits: Vec<u64> = open.iter().map(|(waited, _)| *waited).collect();
            let found = Censored::new(histogram(&ended), &[&histogram(&waits)]).quantile(share);
            if ended.is_empty() && open.is_empty() {
                prop_assert_eq!(found, None);
                return Ok(());
            }
            let found = found.unwrap();
            // What came of them in the end, and the two extremes of what could have.
            let with = |of: &dyn Fn(&(u64, u64)) -> u64| -> u64 {
                counted_off(ended.iter().copied().chain(open.iter().map(of)).collect(), share)
            };
            let (truth, low, high) = (with(&|o| o.0 + o.1), with(&|o| o.0), with(&|_| u64::MAX));
            prop_assert!(truth >= low && truth <= high);
            // Up to 2,047 µs, each microsecond has a bucket of its own.
            prop_assert_eq!(found.low_us, low as f64);
            prop_assert_eq!(found.high_us, (high < u64::MAX).then_some(high as f64));
            prop_assert_eq!(found.is_exact(), low == high);
        }
    }

    #[test]
    fn a_percentile_below_the_open_waits_is_known_and_one_among_them_is_not() {
        let times = Censored::new(histogram(&[1000; 90]), &[&histogram(&[500_000; 10])]);
        assert_eq!(times.count(), 100);
        assert_eq!(times.quantile(0.9), Some(Bounds::exact(1000.0)));
        let p99 = times.quantile(0.99).unwrap();
        assert!(p99.low_us >= 499_500.0 && p99.high_us.is_none(), "{p99:?}");
        assert_eq!(times.max().unwrap().high_us, None);
        assert_eq!(times.mean(), Some(Bounds { low_us: 50_900.0, high_us: None }));
        assert_eq!(times.min(), Some(Bounds::exact(1000.0)));
    }

    #[test]
    fn an_open_wait_that_was_cut_off_early_leaves_the_percentiles_open_that_it_could_raise() {
        let ended: Vec<u64> = (1..=99).collect();
        let times = Censored::new(histogram(&ended), &[&histogram(&[1])]);
        assert_eq!(times.quantile(0.5), Some(Bounds { low_us: 49.0, high_us: Some(50.0) }));
        assert_eq!(times.quantile(1.0), Some(Bounds { low_us: 99.0, high_us: None }));
    }

    #[test]
    fn without_open_waits_everything_is_known() {
        let times = Censored::from(histogram(&[1, 2, 1_234_567]));
        assert_eq!(times.quantile(1.0), Some(Bounds::exact(1_234_567.0)));
        assert_eq!(times.max(), Some(Bounds::exact(1_234_567.0)));
        assert!(times.mean().is_some_and(|mean| mean.is_exact()));
        assert_eq!(Censored::from(Histogram::new()).quantile(0.5), None);
    }
}
