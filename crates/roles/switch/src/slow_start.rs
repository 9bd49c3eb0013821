//! Slow start: the weight of a server that has just come up.
//!
//! A server that comes up has cold caches; policies that use weights give it its full share step by step.

use std::time::Duration;

/// Share of the weight at the beginning.
pub const LEAST_SHARE: f64 = 0.1;
/// Steps from [`LEAST_SHARE`] to the full weight.
pub const STEPS: u32 = 20;

/// Weight of a server that has been up for `up`: grows evenly, in [`STEPS`] steps, to `weight`.
pub fn weight_after(weight: f64, up: Duration, slow_start: Option<Duration>) -> f64 {
    let Some(all) = slow_start.filter(|all| up < *all) else { return weight };
    let step = (up.as_secs_f64() / all.as_secs_f64() * f64::from(STEPS)).floor();
    weight * (LEAST_SHARE + (1.0 - LEAST_SHARE) * step / f64::from(STEPS))
}

/// Time until the weight changes next; `None` at the full weight.
pub fn next_change(up: Duration, slow_start: Option<Duration>) -> Option<Duration> {
    let all = slow_start.filter(|all| up < *all)?;
    let step = (up.as_secs_f64() / all.as_secs_f64() * f64::from(STEPS)).floor();
    let next = all.mul_f64((step + 1.0) / f64::from(STEPS));
    // Never zero, so that a wait for it makes progress.
    Some(next.saturating_sub(up).max(Duration::from_millis(1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn it_begins_with_a_tenth_and_ends_with_all() {
        let slow = Some(Duration::from_secs(20));
        let at = |seconds| weight_after(2.0, Duration::from_secs_f64(seconds), slow);
        assert!((at(0.0) - 0.2).abs() < 1e-9 && (at(10.0) - 1.1).abs() < 1e-9);
        assert_eq!((at(20.0), at(1e6)), (2.0, 2.0));
        assert_eq!(weight_after(3.0, Duration::ZERO, None), 3.0);
        assert_eq!(next_change(Duration::ZERO, slow), Some(Duration::from_secs(1)));
        assert_eq!(next_change(Duration::from_secs(20), slow), None);
    }

    proptest! {
        #[test]
        fn weights_only_grow_and_waiting_for_changes_ends(up_ms in 0u64..30_000, later_ms in 0u64..30_000) {
            let slow = Some(Duration::from_secs(20));
            let weight = |ms| weight_after(1.0, Duration::from_millis(ms), slow);
            prop_assert!(weight(up_ms) <= weight(up_ms + later_ms));
            let (mut up, mut changes) = (Duration::ZERO, 0);
            while let Some(wait) = next_change(up, slow) {
                up += wait;
                changes += 1;
                prop_assert!(changes <= 2 * STEPS);
            }
        }
    }
}
