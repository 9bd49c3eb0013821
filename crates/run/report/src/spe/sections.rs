//! Intervals of means and percentiles, if neighbouring requests are alike.
//!
//! *Sectioning*: the values, in the order of their requests, are cut into stretches of the same length. Each gives the
//! number once more; how far these are from the whole's, by Student's t, is its interval. Stretches are long against what
//! makes neighbours alike (a burst, a slow origin), so this holds where a formula for independent values would promise too
//! much. Nothing is random here: the same directory gives the same interval.

use super::document::IntervalEstimate;
use crate::compare::student;

/// Stretches at most; more would be short, and know little of what lasts longer.
const MOST: usize = 20;
/// Stretches at least, for an interval.
const FEWEST: usize = 5;
/// Probability outside of an interval: they are of 95 %.
const TAIL: f64 = 0.05;
/// The normal distribution leaves out as much beyond this.
const NORMAL: f64 = 1.959_964;

/// The mean, in the unit of the values.
pub(super) fn mean(values: &[f64]) -> Option<IntervalEstimate> {
    sectioned(values, 20, TAIL, average)
}

/// Means whose intervals hold *all together* with 95 %: who looks for one among several that is not 0 would find it by chance
/// more often than that, the more often the more there are. What the intervals leave out is shared out among them
/// (Bonferroni), so this holds however the groups depend on each other.
pub(super) fn means_together(groups: &[&[f64]]) -> Vec<Option<IntervalEstimate>> {
    let tail = TAIL / groups.len().max(1) as f64;
    groups.iter().map(|values| sectioned(values, 20, tail, average)).collect()
}

fn average(stretch: &mut [f64]) -> f64 {
    stretch.iter().sum::<f64>() / stretch.len() as f64
}

/// A percentile: the smallest value that at least this share does not exceed.
pub(super) fn quantile(values: &[f64], share: f64) -> Option<IntervalEstimate> {
    // A stretch must hold some values beyond the percentile.
    let least = (10.0 / (1.0 - share)).ceil() as usize;
    sectioned(values, least, TAIL, |stretch| {
        let rank = (stretch.len() as f64 * share).ceil() as usize;
        let rank = rank.clamp(1, stretch.len()) - 1;
        *stretch.select_nth_unstable_by(rank, f64::total_cmp).1
    })
}

/// `of` the whole, with the interval that its stretches give, which leaves out `tail`; each of them has at least `least` values.
fn sectioned(
    values: &[f64],
    least: usize,
    tail: f64,
    of: impl Fn(&mut [f64]) -> f64,
) -> Option<IntervalEstimate> {
    if values.is_empty() {
        return None;
    }
    // Sorting a stretch would destroy the order that the others are cut by.
    let mut sample = values.to_vec();
    let value = of(&mut sample);
    let count = (values.len() / least.max(1)).min(MOST);
    if count < FEWEST {
        return Some(IntervalEstimate { value, low: None, high: None });
    }
    let mut squares = 0.0;
    for index in 0..count {
        let (from, to) = (values.len() * index / count, values.len() * (index + 1) / count);
        let stretch = &mut sample[from..to];
        stretch.copy_from_slice(&values[from..to]);
        let distance = of(stretch) - value;
        squares += distance * distance;
    }
    let error = libm::sqrt(squares / (count - 1) as f64 / count as f64);
    let width = student::quantile(tail, (count - 1) as f64) * error;
    Some(IntervalEstimate { value, low: Some(value - width), high: Some(value + width) })
}

/// A share of independent cases, with Wilson's interval; none: there are no cases.
pub(super) fn share(part: u64, whole: u64) -> Option<IntervalEstimate> {
    if whole == 0 {
        return None;
    }
    let (count, value) = (whole as f64, part as f64 / whole as f64);
    let z2 = NORMAL * NORMAL / count;
    let middle = (value + z2 / 2.0) / (1.0 + z2);
    let inside = (value * (1.0 - value) / count + z2 / count / 4.0).max(0.0);
    let width = NORMAL * libm::sqrt(inside) / (1.0 + z2);
    // At the ends the interval ends there, whatever rounding makes of it.
    let low = if part == 0 { 0.0 } else { (middle - width).max(0.0) };
    let high = if part >= whole { 1.0 } else { (middle + width).min(1.0) };
    Some(IntervalEstimate { value, low: Some(low), high: Some(high) })
}

/// In another unit, rounded to what people read.
pub(super) fn scaled(estimate: IntervalEstimate, factor: f64, digits: i32) -> IntervalEstimate {
    let of = |value: f64| crate::figures::round(value * factor, digits);
    IntervalEstimate { value: of(estimate.value), low: estimate.low.map(of), high: estimate.high.map(of) }
}

#[cfg(test)]
pub mod tests {
    use assay_base::random::{STEP, finalize, unit_of};

    use super::*;

    /// Numbers between 0 and 1 that look random.
    pub fn uniform(seed: u64) -> impl Iterator<Item = f64> {
        (1u64..).map(move |n| {
            unit_of(finalize(seed.wrapping_mul(STEP).wrapping_add(n.wrapping_mul(0xbf58_476d_1ce4_e5b9))))
        })
    }

    fn holds(estimate: IntervalEstimate, truth: f64) -> bool {
        estimate.low.is_some_and(|low| low <= truth) && estimate.high.is_some_and(|high| truth <= high)
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_truth() {
        let (mut means, mut medians) = (0, 0);
        for seed in 0..400 {
            let values: Vec<f64> = uniform(seed).take(1000).map(|u| -libm::log1p(-u)).collect();
            means += u32::from(holds(mean(&values).unwrap(), 1.0));
            medians += u32::from(holds(quantile(&values, 0.5).unwrap(), std::f64::consts::LN_2));
        }
        assert!((368..=396).contains(&means), "{means} of 400");
        assert!((368..=396).contains(&medians), "{medians} of 400");
    }

    #[test]
    fn one_of_three_means_is_not_0_by_chance_as_seldom_as_one_alone() {
        let (mut together, mut each) = (0, 0);
        for seed in 0..400 {
            let mut random = uniform(seed);
            let groups: Vec<Vec<f64>> =
                (0..3).map(|_| random.by_ref().take(300).map(|u| -libm::log1p(-u) - 1.0).collect()).collect();
            let slices: Vec<&[f64]> = groups.iter().map(Vec::as_slice).collect();
            together +=
                u32::from(means_together(&slices).into_iter().flatten().any(|mean| !holds(mean, 0.0)));
            each += u32::from(groups.iter().any(|group| !holds(mean(group).unwrap(), 0.0)));
        }
        assert!(together <= 33, "{together} of 400");
        assert!(each > 2 * together, "one by one, it is {each} of 400");
    }

    #[test]
    fn neighbours_that_are_alike_do_not_make_it_surer() {
        let independent: Vec<f64> = uniform(7).take(2000).collect();
        let alike: Vec<f64> = uniform(7).take(100).flat_map(|value| [value; 20]).collect();
        let width = |values: &[f64]| {
            let found = mean(values).unwrap();
            found.high.unwrap() - found.low.unwrap()
        };
        assert!(width(&alike) > 2.0 * width(&independent));
    }

    #[test]
    fn few_values_have_no_interval_and_none_have_no_number() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[1.0, 2.0]), Some(IntervalEstimate { value: 1.5, low: None, high: None }));
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5).unwrap().value, 2.0);
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.99).unwrap().value, 3.0);
    }

    #[test]
    fn a_share_stays_between_nothing_and_all() {
        let all = share(50, 50).unwrap();
        assert!(all.value == 1.0 && all.high == Some(1.0) && all.low.unwrap() > 0.9);
        let none = share(0, 50).unwrap();
        assert!(none.low == Some(0.0) && none.high.unwrap() < 0.1);
        assert_eq!(share(0, 0), None);
    }
}
