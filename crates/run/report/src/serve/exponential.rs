//! Exponential buckets of times.
//!
//! Prometheus' native histograms and OpenTelemetry's exponential ones have the same bounds: powers of 2^(1/2^scale). A bucket
//! is here known by Prometheus' index, which names its upper bound: bucket *i* holds what is above 2^((i−1)/16) and not above
//! 2^(i/16) seconds. OpenTelemetry counts from the lower one: its index is less by one.
//!
//! *The error.* A bucket is 4.4 % wide, so a quantile that is read as the middle of one is off by 2.2 % at most. Assay's own
//! histograms are 0.1 % fine, and each of their buckets goes as a whole to where its middle lies: a time within 0.05 % of a
//! bound may be counted on its other side. Counts and sums are exact.

/// Buckets double every 2^4 = 16: Prometheus' schema, OpenTelemetry's scale.
pub const SCALE: i32 = 4;
/// Shorter times than this, in seconds, are zero: half of the microsecond that Assay counts in.
pub const ZERO_THRESHOLD_S: f64 = 5e-7;

/// Upper bounds of the classic buckets, in seconds, for those who do not know native ones.
pub const CLASSIC_BOUNDS_S: [f64; 21] = [
    1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0, 20.0, 60.0,
];

/// The index of the bucket of a time; none: it counts as zero.
pub fn index(seconds: f64) -> Option<i32> {
    (seconds > ZERO_THRESHOLD_S).then(|| (seconds.log2() * f64::from(1 << SCALE)).ceil() as i32)
}

/// The upper bound of a bucket, in seconds; that of the bucket before is its lower one.
pub fn upper_bound_s(index: i32) -> f64 {
    (f64::from(index) / f64::from(1 << SCALE)).exp2()
}

/// Neighbouring buckets, all of which stand in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Index of the first.
    pub first: i32,
    pub counts: Vec<u64>,
}

/// Empty buckets between two full ones that are written rather than skipped: a new span costs more.
const GAP_WRITTEN: i32 = 2;

/// Full buckets, ascending, as spans.
pub fn spans(buckets: impl IntoIterator<Item = (i32, u64)>) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (index, count) in buckets {
        if let Some(last) = spans.last_mut() {
            let gap = index - (last.first + last.counts.len() as i32);
            if gap <= GAP_WRITTEN {
                last.counts.extend((0..gap).map(|_| 0));
                last.counts.push(count);
                continue;
            }
        }
        spans.push(Span { first: index, counts: vec![count] });
    }
    spans
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_belong_to_the_bucket_below_them() {
        assert_eq!(index(1.0), Some(0));
        assert_eq!(index(1.0001), Some(1));
        assert_eq!(index(0.5), Some(-16));
        assert_eq!(index(2.0), Some(16));
        assert_eq!(index(0.0), None);
        assert!((upper_bound_s(16) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn short_gaps_are_written_and_long_ones_skipped() {
        let spans = spans([(-3, 5), (-2, 1), (1, 7), (9, 2)]);
        assert_eq!(
            spans,
            [Span { first: -3, counts: vec![5, 1, 0, 0, 7] }, Span { first: 9, counts: vec![2] }]
        );
    }

    proptest! {
        #[test]
        fn every_time_lies_in_its_bucket(us in 1u64..3_600_000_000) {
            let seconds = us as f64 / 1e6;
            let index = index(seconds).unwrap();
            prop_assert!(seconds <= upper_bound_s(index) * (1.0 + 1e-12));
            prop_assert!(seconds > upper_bound_s(index - 1) * (1.0 - 1e-12));
        }

        #[test]
        fn spans_hold_exactly_what_went_in(buckets in prop::collection::btree_map(-400i32..400, 1u64..1000, 0..60)) {
            let mut found = std::collections::BTreeMap::new();
            for span in spans(buckets.clone()) {
                for (index, count) in (span.first..).zip(span.counts).filter(|(_, count)| *count > 0) {
                    prop_assert!(found.insert(index, count).is_none());
                }
            }
            prop_assert_eq!(found, buckets);
        }
    }
}
