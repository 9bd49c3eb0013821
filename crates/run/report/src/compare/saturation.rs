//! The offered rate from which on the target no longer kept up.
//!
//! Looked for where the load rises, second by second. It is reached where for three seconds running either
//! - less than 95 % of what came due was completed in each, and what is missing over the three is more than chance alone
//!   leaves over (three standard deviations of a Poisson count), or
//! - the mean response time of each was more than five times that of the calm beginning, and at least 20 ms above it.
//!
//! A target that got through without either has *not reached* it: then the point is at least the highest rate offered.

use super::measured::MetricValue;

/// Seconds in a row that must fall short.
const RUNNING: usize = 3;
/// Completed over offered, under which a second falls short.
const KEPT_UP: f64 = 0.95;
/// Deficit that chance can explain, in standard deviations.
const CHANCE: f64 = 3.0;
/// Times the calm response time.
const SHARP: f64 = 5.0;
/// And so much more than it, in microseconds.
const SHARP_US: f64 = 20_000.0;
/// A load that rises by less is taken for constant.
const RISE: f64 = 1.05;
/// The calm beginning: this part of the seconds, and at least [`RUNNING`].
const CALM_PART: usize = 4;

/// Counts of a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LoadSecond {
    pub length_ms: u64,
    pub offered: u64,
    pub completed: u64,
    pub response_sum_us: u64,
    pub responses: u64,
}

impl LoadSecond {
    fn rate(&self) -> f64 {
        self.offered as f64 * 1000.0 / self.length_ms.max(1) as f64
    }

    fn falls_short(&self) -> bool {
        self.offered > 0 && (self.completed as f64) < self.offered as f64 * KEPT_UP
    }

    fn response_us(&self) -> Option<f64> {
        (self.responses > 0).then(|| self.response_sum_us as f64 / self.responses as f64)
    }
}

/// Whether this load factor, at the start and end of a phase, rises.
pub fn rises(start: f64, end: f64) -> bool {
    end > start * RISE && end > 0.0
}

/// The saturation point of seconds under rising load, in requests offered per second; none: there are too few.
pub fn find(seconds: &[LoadSecond]) -> Option<MetricValue> {
    if seconds.len() < 2 * RUNNING {
        return None;
    }
    let calm = calm_us(seconds);
    let offered =
        |window: &[LoadSecond]| window.iter().map(LoadSecond::rate).sum::<f64>() / window.len() as f64;
    let reached = seconds.windows(RUNNING).find(|window| fell_behind(window) || turned_slow(window, calm));
    Some(match reached {
        Some(window) => MetricValue::exact(offered(window)),
        None => {
            let highest = seconds.windows(RUNNING).map(offered).fold(0.0, f64::max);
            MetricValue::at_least(highest)
        }
    })
}

fn fell_behind(window: &[LoadSecond]) -> bool {
    let offered: u64 = window.iter().map(|second| second.offered).sum();
    let completed: u64 = window.iter().map(|second| second.completed).sum();
    let missing = offered.saturating_sub(completed) as f64;
    window.iter().all(LoadSecond::falls_short) && missing > CHANCE * (offered as f64).sqrt()
}

fn turned_slow(window: &[LoadSecond], calm: Option<f64>) -> bool {
    let Some(calm) = calm else { return false };
    let slow = |us: f64| us > calm * SHARP && us > calm + SHARP_US;
    window.iter().all(|second| second.response_us().is_some_and(slow))
}

/// The median response time of the beginning.
fn calm_us(seconds: &[LoadSecond]) -> Option<f64> {
    let first = seconds.len().div_ceil(CALM_PART).max(RUNNING);
    let mut times: Vec<f64> = seconds.iter().take(first).filter_map(LoadSecond::response_us).collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A ramp to 1000 per second in 100 seconds; the target completes at most `most` and responds in `us`.
    fn ramp(most: u64, us: impl Fn(u64) -> u64) -> Vec<LoadSecond> {
        (1..=100)
            .map(|step| {
                let offered = step * 10;
                let completed = offered.min(most);
                LoadSecond {
                    length_ms: 1000,
                    offered,
                    completed,
                    response_sum_us: completed * us(offered),
                    responses: completed,
                }
            })
            .collect()
    }

    #[test]
    fn a_target_that_falls_behind_is_saturated_where_it_begins_to() {
        let found = find(&ramp(500, |_| 1000)).unwrap();
        assert!(!found.at_least);
        // 95 % of 530 is more than 500; three seconds of it are more than chance a little later.
        assert!((530.0..620.0).contains(&found.value), "{found:?}");
    }

    #[test]
    fn a_target_that_turns_slow_is_saturated_though_it_completes_all() {
        let found = find(&ramp(u64::MAX, |rate| if rate > 700 { 80_000 } else { 3000 })).unwrap();
        assert_eq!(found, MetricValue::exact(720.0));
        let fast = find(&ramp(u64::MAX, |rate| if rate > 700 { 9_000 } else { 300 })).unwrap();
        assert!(fast.at_least, "30 times slower, and still under 10 ms");
    }

    #[test]
    fn a_target_that_keeps_up_has_not_reached_it() {
        assert_eq!(find(&ramp(u64::MAX, |_| 1000)), Some(MetricValue::at_least(990.0)));
        assert_eq!(find(&[]), None);
        assert!(rises(0.1, 1.0) && !rises(1.0, 1.0) && !rises(1.0, 0.0) && rises(0.0, 0.5));
    }

    #[test]
    fn one_bad_moment_is_no_saturation() {
        let mut seconds = ramp(u64::MAX, |_| 1000);
        seconds[50].completed = 10;
        seconds[51].completed = 100;
        assert!(find(&seconds).unwrap().at_least);
    }

    proptest! {
        /// Requests that are still under way at a second's end are no shortfall: 300 ms of them come and go by chance.
        #[test]
        fn chance_alone_saturates_nothing(noise in prop::collection::vec(-1.0..1.0f64, 101)) {
            let mut seconds = ramp(u64::MAX, |_| 300_000);
            let mut under_way = 0.0;
            for (second, noise) in seconds.iter_mut().zip(noise) {
                let next = second.offered as f64 * 0.3 + noise * (second.offered as f64 * 0.3).sqrt();
                second.completed = (second.offered as f64 + under_way - next).max(0.0) as u64;
                under_way = next;
            }
            prop_assert!(find(&seconds).unwrap().at_least);
        }

        #[test]
        fn the_point_lies_within_what_was_offered(most in 20u64..2000) {
            let found = find(&ramp(most, |_| 1000)).unwrap();
            prop_assert!((10.0..=1000.0).contains(&found.value));
            prop_assert!(found.at_least == (found.value == 990.0) || most > 850, "{:?}", found);
        }
    }
}
