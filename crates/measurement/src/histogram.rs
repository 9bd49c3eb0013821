//! Latency histograms: mergeable, sparse on disk, in microseconds.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest time kept apart; longer ones count as this: one hour, in microseconds.
pub const MAX_US: u64 = 3_600_000_000;
/// Three significant digits: 0.1 %.
const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of microseconds with 0.1 % resolution, 1 µs to one hour.
///
/// Percentiles are only ever taken from a (merged) histogram, never averaged.
#[derive(Debug, Clone)]
pub struct Histogram {
    inner: hdrhistogram::Histogram<u64>,
    /// Exact sum of the recorded values, for the mean.
    sum_us: u64,
    /// Exact largest of the recorded values: a bucket is up to 0.1 % wide.
    max_us: u64,
}

/// A histogram as it is stored and sent: only the buckets that have something in them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SparseHistogram {
    /// Sum of all values, in microseconds.
    pub sum_us: u64,
    /// Exact maximum, in microseconds.
    pub max_us: u64,
    /// (lowest value of the bucket in microseconds, count), ascending.
    pub buckets: Vec<(u64, u64)>,
}

impl SparseHistogram {
    /// Number of values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// Adds all of another's values. Buckets are the same everywhere, so nothing is lost by it.
    pub fn merge(&mut self, other: &Self) {
        let mut buckets: BTreeMap<u64, u64> = self.buckets.iter().copied().collect();
        for &(low_us, count) in &other.buckets {
            let sum = buckets.entry(low_us).or_default();
            *sum = sum.saturating_add(count);
        }
        self.buckets = buckets.into_iter().collect();
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.max_us = self.max_us.max(other.max_us);
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Self {
        let inner = hdrhistogram::Histogram::new_with_bounds(1, MAX_US, SIGNIFICANT_DIGITS)
            .expect("bounds are constant and valid");
        Self { inner, sum_us: 0, max_us: 0 }
    }

    /// Counts one value; longer than [`MAX_US`] counts as that.
    #[inline]
    pub fn record(&mut self, value_us: u64) {
        let value_us = value_us.min(MAX_US);
        self.inner.saturating_record(value_us);
        self.sum_us += value_us;
        self.max_us = self.max_us.max(value_us);
    }

    /// Counts one value so many times.
    pub fn record_many(&mut self, value_us: u64, count: u64) {
        let value_us = value_us.min(MAX_US);
        self.inner.saturating_record_n(value_us, count);
        self.sum_us = self.sum_us.saturating_add(value_us.saturating_mul(count));
        self.max_us = if count > 0 { self.max_us.max(value_us) } else { self.max_us };
    }

    /// Adds all of another's values.
    pub fn merge(&mut self, other: &Histogram) {
        self.inner.add(&other.inner).expect("same bounds");
        self.sum_us += other.sum_us;
        self.max_us = self.max_us.max(other.max_us);
    }

    /// Adds all values of a stored histogram.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        for &(low_us, count) in &other.buckets {
            self.inner.saturating_record_n(low_us.min(MAX_US), count);
        }
        self.sum_us += other.sum_us;
        self.max_us = self.max_us.max(other.max_us.min(MAX_US));
    }

    /// These values without those of another histogram, which are all among them. The largest of those that are left is
    /// known as well as its bucket.
    #[must_use]
    pub fn without(&self, part: &Histogram) -> Self {
        let mut rest = Self::new();
        for step in self.inner.iter_recorded() {
            let value = step.value_iterated_to();
            // Fewer than there should be: the record is damaged, and none are left.
            let left = step.count_since_last_iteration().saturating_sub(part.inner.count_at(value));
            if left > 0 {
                rest.inner.saturating_record_n(value, left);
                rest.max_us = value.min(self.max_us);
            }
        }
        rest.sum_us = self.sum_us.saturating_sub(part.sum_us);
        rest
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.inner.len()
    }

    /// Mean in microseconds; none when empty.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_us as f64 / self.count() as f64)
    }

    /// The value that `quantile` (0 to 1) of all values do not exceed, in microseconds; none when empty.
    pub fn quantile_us(&self, quantile: f64) -> Option<u64> {
        (self.count() > 0).then(|| self.inner.value_at_quantile(quantile).min(self.max_us))
    }

    /// Largest value in microseconds; none when empty.
    pub fn max_us(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_us)
    }

    /// Smallest value in microseconds, to 0.1 %; none when empty.
    pub fn min_us(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.inner.min())
    }

    /// Number of values that are longer than `value_us` and do not share its bucket.
    pub fn count_over_us(&self, value_us: u64) -> u64 {
        let above = self.inner.highest_equivalent(value_us.min(MAX_US)).saturating_add(1);
        if above > MAX_US { 0 } else { self.inner.count_between(above, MAX_US) }
    }

    /// Largest value that shares a bucket with `value_us`.
    pub fn bucket_high_us(&self, value_us: u64) -> u64 {
        self.inner.highest_equivalent(value_us)
    }

    /// Smallest value that shares a bucket with `value_us`.
    pub fn bucket_low_us(&self, value_us: u64) -> u64 {
        self.inner.lowest_equivalent(value_us)
    }

    /// The histogram of the library, for its encodings.
    pub(crate) fn as_hdr(&self) -> &hdrhistogram::Histogram<u64> {
        &self.inner
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.inner.reset();
        self.sum_us = 0;
        self.max_us = 0;
    }

    /// The buckets that have something in them.
    pub fn to_sparse(&self) -> SparseHistogram {
        SparseHistogram {
            sum_us: self.sum_us,
            max_us: self.max_us,
            buckets: self
                .inner
                .iter_recorded()
                .map(|step| {
                    (
                        self.inner.lowest_equivalent(step.value_iterated_to()),
                        step.count_since_last_iteration(),
                    )
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_over_a_limit_are_counted_without_those_of_its_bucket() {
        let mut histogram = Histogram::new();
        assert_eq!((histogram.min_us(), histogram.count_over_us(0)), (None, 0));
        [5, 10, 1000, 2_000_000, u64::MAX].into_iter().for_each(|us| histogram.record(us));
        assert_eq!(histogram.min_us(), Some(5));
        assert_eq!(
            [0, 5, 999, 1000, 2_000_000, MAX_US, u64::MAX].map(|us| histogram.count_over_us(us)),
            [5, 4, 3, 2, 1, 0, 0]
        );
    }

    #[test]
    fn the_maximum_is_exact_also_after_merging_and_storing() {
        let (mut one, mut other) = (Histogram::new(), Histogram::new());
        one.record(1_234_567);
        one.record(1_234_001);
        other.record(7);
        other.merge(&one);
        assert_eq!((one.max_us(), other.max_us()), (Some(1_234_567), Some(1_234_567)));
        let mut read = Histogram::new();
        read.merge_sparse(&other.to_sparse());
        assert_eq!((read.max_us(), read.count()), (Some(1_234_567), 3));
        assert_eq!(read.to_sparse(), other.to_sparse());
        read.clear();
        assert_eq!(read.max_us(), None);
        read.record(u64::MAX);
        assert_eq!(read.max_us(), Some(MAX_US));
    }
}
