//! Times summed for metrics, in exponential and in classic buckets.

use std::collections::BTreeMap;

use assay_base::metrics::Histogram as MetricHistogram;
use assay_measurement::histogram::{Histogram, SparseHistogram};

use crate::serve::exponential::{CLASSIC_BOUNDS_S, index};

/// All times since the start.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeBuckets {
    pub count: u64,
    /// Exact sum, in microseconds.
    pub sum_us: u64,
    /// The longest, exactly, in microseconds.
    pub max_us: u64,
    /// Times that count as zero.
    pub zeros: u64,
    /// All others, by the index of their exponential bucket.
    pub exponential: BTreeMap<i32, u64>,
    /// Counts up to each of [`CLASSIC_BOUNDS_S`] and above the one before.
    pub classic: [u64; CLASSIC_BOUNDS_S.len()],
}

impl Default for TimeBuckets {
    fn default() -> Self {
        let classic = [0; CLASSIC_BOUNDS_S.len()];
        Self { count: 0, sum_us: 0, max_us: 0, zeros: 0, exponential: BTreeMap::new(), classic }
    }
}

impl TimeBuckets {
    /// Adds the times of an interval; `scale` is any histogram, which knows how wide their buckets are.
    pub fn add(&mut self, times: &SparseHistogram, scale: &Histogram) {
        for &(low_us, count) in &times.buckets {
            let middle_s = (low_us + scale.bucket_high_us(low_us)) as f64 / 2e6;
            self.count += count;
            match index(middle_s) {
                Some(index) => *self.exponential.entry(index).or_default() += count,
                None => self.zeros += count,
            }
            if let Some(bucket) = CLASSIC_BOUNDS_S.iter().position(|bound| middle_s <= *bound) {
                self.classic[bucket] += count;
            }
        }
        self.sum_us += times.sum_us;
        self.max_us = self.max_us.max(times.max_us);
    }
}

impl MetricHistogram for TimeBuckets {
    fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        CLASSIC_BOUNDS_S.into_iter().zip(self.classic).map(move |(bound, count)| {
            sum += count;
            (bound, sum)
        })
    }

    fn sum_s(&self) -> f64 {
        self.sum_us as f64 / 1e6
    }

    fn count(&self) -> u64 {
        self.count
    }
}

/// A family with such times.
pub type Family = assay_base::metrics::Family<TimeBuckets>;
/// A series of one.
pub type Sample = assay_base::metrics::Sample<TimeBuckets>;
pub type Value = assay_base::metrics::SampleValue<TimeBuckets>;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::serve::exponential::upper_bound_s;

    pub fn times(values_us: &[u64]) -> TimeBuckets {
        let mut histogram = Histogram::new();
        values_us.iter().for_each(|us| histogram.record(*us));
        let mut times = TimeBuckets::default();
        times.add(&histogram.to_sparse(), &histogram);
        times
    }

    #[test]
    fn zero_is_counted_as_zero_and_an_hour_is_above_every_classic_bound() {
        let times = times(&[0, 0, 3_600_000_000]);
        assert_eq!((times.count, times.zeros), (3, 2));
        assert_eq!(times.cumulative().last(), Some((60.0, 2)));
        assert_eq!(times.max_us, 3_600_000_000);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_quantiles_are_off_by_less_than_a_bucket(values in prop::collection::vec(1u64..100_000_000, 1..200)) {
            let times = times(&values);
            prop_assert_eq!(times.count, values.len() as u64);
            prop_assert_eq!(times.zeros + times.exponential.values().sum::<u64>(), times.count);
            prop_assert_eq!(times.sum_us, values.iter().sum::<u64>());
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let (mut seen, rank) = (0, values.len().div_ceil(2) as u64);
            let median = times.exponential.iter().find(|(_, count)| { seen += *count; seen >= rank });
            let upper_us = upper_bound_s(*median.unwrap().0) * 1e6;
            let true_us = sorted[rank as usize - 1] as f64;
            // A bucket is 4.43 % wide; ours are 0.1 %.
            prop_assert!(upper_us > true_us * 0.999 && upper_us < true_us * 1.046, "{} for {}", upper_us, true_us);
        }
    }
}
