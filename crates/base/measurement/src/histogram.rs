//! Latency histograms: mergeable, sparse on disk, in microseconds.
//!
//! Buckets are those of HdrHistogram with three significant digits: 1 µs wide below 2,048 µs, and twice as wide with each doubling.
//! A histogram keeps a count for each bucket up to the last one that it has needed, so that times of 2 to 100 ms take 20 to 70 KB
//! in place of the 190 KB of an hour, and what looks at all buckets looks at no more than these.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest time kept apart; longer ones count as this: one hour, in microseconds.
pub const MAX_US: u64 = 3_600_000_000;
/// Buckets for each doubling of the time; half of them for three significant digits (0.1 %), as the lower half of a range is the
/// range below it.
const BUCKETS: usize = 1024;

/// A histogram of microseconds with 0.1 % resolution, 1 µs to one hour.
///
/// Percentiles are only ever taken from a (merged) histogram, never averaged.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// Values in each bucket; those behind its end have none.
    counts: Vec<u64>,
    count: u64,
    /// Exact sum of the recorded values, for the mean.
    sum_us: u64,
    /// Exact largest of the recorded values: a bucket is up to 0.1 % wide.
    max_us: u64,
}

/// The bucket of a value.
#[inline]
const fn bucket_of(value_us: u64) -> usize {
    let doublings = (value_us | (2 * BUCKETS as u64 - 1)).ilog2() - BUCKETS.ilog2();
    doublings as usize * BUCKETS + (value_us >> doublings) as usize
}

/// The smallest value of a bucket.
const fn low_us(bucket: usize) -> u64 {
    match bucket / BUCKETS {
        0 => bucket as u64,
        range => ((bucket % BUCKETS + BUCKETS) as u64) << (range - 1),
    }
}

/// The largest value of a bucket.
const fn high_us(bucket: usize) -> u64 {
    let width = match bucket / BUCKETS {
        0 => 1,
        range => 1 << (range - 1),
    };
    low_us(bucket) + (width - 1)
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
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
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

/// Counts of a damaged record may be more than there can be.
fn sum(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
}

impl Histogram {
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty one with room for all that this one has counted.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self { counts: vec![0; self.counts.len()], ..Self::default() }
    }

    /// Buckets for which there is room.
    pub fn room(&self) -> usize {
        self.counts.len()
    }

    /// Counts one value; longer than [`MAX_US`] counts as that.
    #[inline]
    pub fn record(&mut self, value_us: u64) {
        let value_us = value_us.min(MAX_US);
        self.add(bucket_of(value_us), 1);
        self.sum_us += value_us;
        self.max_us = self.max_us.max(value_us);
    }

    /// Counts one value so many times.
    pub fn record_many(&mut self, value_us: u64, count: u64) {
        if count > 0 {
            let value_us = value_us.min(MAX_US);
            self.add(bucket_of(value_us), count);
            self.sum_us = self.sum_us.saturating_add(value_us.saturating_mul(count));
            self.max_us = self.max_us.max(value_us);
        }
    }

    #[inline]
    fn add(&mut self, bucket: usize, count: u64) {
        if bucket >= self.counts.len() {
            self.grow(bucket + 1);
        }
        self.counts[bucket] = self.counts[bucket].saturating_add(count);
        self.count = self.count.saturating_add(count);
    }

    /// Makes room for so many buckets at least: for a whole range of them, as values of one size come together.
    ///
    /// A function of its own, as counts of instructions leave it out: how often it is called depends on how late responses come.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, buckets: usize) {
        // The system gives zeroes, which costs less than to write them.
        let mut counts = vec![0; buckets.next_multiple_of(BUCKETS)];
        counts[..self.counts.len()].copy_from_slice(&self.counts);
        self.counts = counts;
    }

    /// Adds all of another's values.
    pub fn merge(&mut self, other: &Histogram) {
        if other.counts.len() > self.counts.len() {
            self.grow(other.counts.len());
        }
        for (sum, count) in self.counts.iter_mut().zip(&other.counts) {
            *sum = sum.saturating_add(*count);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.max_us = self.max_us.max(other.max_us);
    }

    /// Adds all values of a stored histogram.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        for &(low_us, count) in other.buckets.iter().filter(|(_, count)| *count > 0) {
            self.add(bucket_of(low_us.min(MAX_US)), count);
        }
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        self.max_us = self.max_us.max(other.max_us.min(MAX_US));
    }

    /// The buckets that have something in them, ascending, each with how much.
    fn filled(&self) -> impl DoubleEndedIterator<Item = (usize, u64)> {
        self.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }

    /// The values without those of another histogram, which are all among them. The largest of those that are left is known as well as its
    /// bucket.
    #[must_use]
    pub fn without(&self, part: &Histogram) -> Self {
        let mut rest = Self::new();
        for (bucket, count) in self.filled() {
            // Fewer than there should be: the record is damaged, and none are left.
            let left = count.saturating_sub(part.counts.get(bucket).copied().unwrap_or(0));
            if left > 0 {
                rest.add(bucket, left);
                rest.max_us = high_us(bucket).min(self.max_us);
            }
        }
        rest.sum_us = self.sum_us.saturating_sub(part.sum_us);
        rest
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// Mean in microseconds; none when empty.
    pub fn mean_us(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.sum_us as f64 / self.count() as f64)
    }

    /// The value that `quantile` (0 to 1) of all values do not exceed, in microseconds; none when empty. It is the largest of its
    /// bucket, but for the quantile 0, which is the smallest of the first.
    pub fn quantile_us(&self, quantile: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((quantile.min(1.0) * self.count as f64).ceil() as u64).max(1);
        let bucket = self.bucket_at(rank);
        let of = if quantile == 0.0 { low_us } else { high_us };
        Some(bucket.map_or(0, of).min(self.max_us))
    }

    /// The bucket of the value that so many values do not exceed; none: there are not so many.
    fn bucket_at(&self, rank: u64) -> Option<usize> {
        // First in steps, then within one.
        let mut below: u64 = 0;
        let mut steps = self.counts.chunks(16).enumerate();
        let (step, counts) = steps.find(|(_, counts)| {
            let with_it = below.saturating_add(sum(counts));
            let is_in_it = with_it >= rank;
            below = if is_in_it { below } else { with_it };
            is_in_it
        })?;
        let within = counts.iter().position(|count| {
            below = below.saturating_add(*count);
            below >= rank
        })?;
        Some(step * 16 + within)
    }

    /// Largest value in microseconds; none when empty.
    pub fn max_us(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_us)
    }

    /// Smallest value in microseconds, to 0.1 %; none when empty.
    pub fn min_us(&self) -> Option<u64> {
        self.filled().next().map(|(bucket, _)| low_us(bucket))
    }

    /// Number of values that are longer than `value_us` and do not share its bucket.
    pub fn count_over_us(&self, value_us: u64) -> u64 {
        self.counts.get(bucket_of(value_us.min(MAX_US)) + 1..).map_or(0, sum)
    }

    /// Largest value that shares a bucket with `value_us`.
    pub fn bucket_high_us(&self, value_us: u64) -> u64 {
        high_us(bucket_of(value_us))
    }

    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.sum_us, self.max_us) = (0, 0, 0);
    }

    /// The lowest value of each bucket that has something in it, in microseconds, and how much; ascending.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        self.filled().map(|(bucket, count)| (low_us(bucket), count))
    }

    /// The buckets that have something in them.
    pub fn to_sparse(&self) -> SparseHistogram {
        SparseHistogram { sum_us: self.sum_us, max_us: self.max_us, buckets: self.buckets().collect() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    #[test]
    fn counts_that_cannot_be_true_are_as_many_as_there_can_be() {
        let many =
            SparseHistogram { sum_us: u64::MAX, max_us: 9, buckets: vec![(5, u64::MAX), (7, u64::MAX)] };
        let mut histogram = Histogram::new();
        histogram.merge_sparse(&many);
        let once = histogram.clone();
        histogram.merge(&once);
        assert_eq!((histogram.count(), histogram.count_over_us(0)), (u64::MAX, u64::MAX));
        assert_eq!((histogram.quantile_us(1.0), histogram.without(&once).count()), (Some(5), 0));
    }

    /// The library whose buckets these are.
    fn library(values: &[u64]) -> hdrhistogram::Histogram<u64> {
        let mut histogram = hdrhistogram::Histogram::new_with_bounds(1, MAX_US, 3).expect("are valid");
        values.iter().for_each(|us| histogram.saturating_record((*us).min(MAX_US)));
        histogram
    }

    fn ours(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|us| histogram.record(*us));
        histogram
    }

    /// Values of all sizes, and those at the bounds of buckets.
    fn value() -> impl Strategy<Value = u64> {
        let around = (0u32..33, -2i64..3).prop_map(|(bits, by)| (1u64 << bits).saturating_add_signed(by));
        prop_oneof![0u64..5000, 0u64..2_000_000, any::<u64>(), around]
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec(value(), 0..200)
    }

    proptest! {
        #[test]
        fn everything_is_as_hdrhistogram_has_it(values in values(), limit in value(), quantile in -0.1f64..1.2) {
            let (ours, library) = (ours(&values), library(&values));
            prop_assert_eq!(ours.count(), library.len());
            let recorded: Vec<_> = library
                .iter_recorded()
                .map(|step| (library.lowest_equivalent(step.value_iterated_to()), step.count_since_last_iteration()))
                .collect();
            prop_assert_eq!(ours.to_sparse().buckets, recorded);
            for quantile in [quantile, 0.0, 0.5, 0.99, 1.0] {
                let expected = (!values.is_empty()).then(|| library.value_at_quantile(quantile));
                let largest = ours.max_us;
                prop_assert_eq!(ours.quantile_us(quantile), expected.map(|us| us.min(largest)), "{}", quantile);
            }
            prop_assert_eq!(ours.min_us(), (!values.is_empty()).then(|| library.min()));
            // The end of the last bucket of all is one less to the library: the value behind it does not fit into 64 bits.
            let highest = library.highest_equivalent(limit);
            prop_assert_eq!(ours.bucket_high_us(limit), highest + u64::from(highest == u64::MAX - 1));
            prop_assert_eq!(low_us(bucket_of(limit)), library.lowest_equivalent(limit));
            let above = library.highest_equivalent(limit.min(MAX_US)) + 1;
            let over = if above > MAX_US { 0 } else { library.count_between(above, MAX_US) };
            prop_assert_eq!(ours.count_over_us(limit), over);
        }

        #[test]
        fn values_that_are_put_together_are_those_of_both_and_can_be_taken_out_again(
            one in proptest::collection::vec(0u64..MAX_US, 0..100),
            other in proptest::collection::vec(0u64..MAX_US, 0..100),
        ) {
            let mut both = ours(&one);
            both.merge(&ours(&other));
            let all = ours(&[one.clone(), other.clone()].concat());
            prop_assert_eq!(both.to_sparse(), all.to_sparse());
            let mut stored = ours(&one);
            stored.merge_sparse(&ours(&other).to_sparse());
            prop_assert_eq!((stored.to_sparse(), stored.count()), (all.to_sparse(), all.count()));
            let rest = all.without(&ours(&other));
            prop_assert_eq!(rest.to_sparse().buckets, ours(&one).to_sparse().buckets);
            prop_assert_eq!((rest.count(), rest.mean_us()), (ours(&one).count(), ours(&one).mean_us()));
            both.clear();
            prop_assert_eq!((both.count(), both.to_sparse()), (0, SparseHistogram::default()));
        }
    }
}
