//! Buckets of times: exponential ones for OpenTelemetry, a list of bounds for Prometheus' text.
//!
//! An exponential bucket is known by the index of its upper bound: bucket *i* holds what is above 2^((i−1)/16) and not above
//! 2^(i/16) seconds. OpenTelemetry counts from the lower bound: its index is less by one.
//!
//! *The error.* An exponential bucket is 4.4 % wide, so a quantile that is read as its middle is off by 2.2 % at most. Assay's own
//! histograms are 0.1 % fine, and each of their buckets goes as a whole to where its middle lies: a time within 0.05 % of a
//! bound may be counted on its other side. Counts and sums are exact.

/// Sixteen (2^4) buckets double a time: OpenTelemetry's scale.
pub const SCALE: i32 = 4;
/// Shorter times than this, in seconds, are zero: half of the microsecond that Assay counts in.
pub const ZERO_THRESHOLD_S: f64 = 5e-7;

/// Upper bounds of the buckets in Prometheus' text, in seconds: six a decade, at most two thirds apart.
pub const CLASSIC_BOUNDS_S: [f64; 41] = [
    1e-5, 1.5e-5, 2e-5, 3e-5, 5e-5, 7e-5, 1e-4, 1.5e-4, 2e-4, 3e-4, 5e-4, 7e-4, 1e-3, 1.5e-3, 2e-3, 3e-3,
    5e-3, 7e-3, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0,
    7.0, 10.0, 15.0, 20.0, 30.0, 60.0,
];

/// The index of the bucket of a time; none: it counts as zero.
pub fn index(seconds: f64) -> Option<i32> {
    (seconds > ZERO_THRESHOLD_S).then(|| (seconds.log2() * f64::from(1 << SCALE)).ceil() as i32)
}

/// The upper bound of a bucket, in seconds; that of the bucket before is its lower one.
pub fn upper_bound_s(index: i32) -> f64 {
    (f64::from(index) / f64::from(1 << SCALE)).exp2()
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

    proptest! {
        #[test]
        fn every_time_lies_in_its_bucket(us in 1u64..3_600_000_000) {
            let seconds = us as f64 / 1e6;
            let index = index(seconds).unwrap();
            prop_assert!(seconds <= upper_bound_s(index) * (1.0 + 1e-12));
            prop_assert!(seconds > upper_bound_s(index - 1) * (1.0 - 1e-12));
        }
    }
}
