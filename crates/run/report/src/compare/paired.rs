//! Statistics of pairs of runs: estimates, intervals, effect sizes, and Holm's correction.
//!
//! The unit is the run: a pair is one value of each of two subjects from the same repetition.

use super::student;

/// Pairs that a verdict needs: with two, one difference between differences is all that is known of chance.
pub const FEWEST_PAIRS: usize = 3;
/// Pairs that an interval needs. With two it is valid, if runs are distributed normally, and 12.7 standard errors wide to
/// either side: enough to see what a third repetition could still bring, and too little to test for a verdict.
const FEWEST_FOR_AN_INTERVAL: usize = 2;
/// Probability outside of an interval: they are of 95 %.
pub const INTERVAL_TAIL: f64 = 0.05;

/// One value of each subject from one repetition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunPair {
    /// Of the subject that the other is compared with.
    pub base: f64,
    pub other: f64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct PairedEstimate {
    pub pairs: usize,
    /// Mean of `other − base`.
    pub difference: f64,
    /// Interval of the difference; none from a single pair.
    pub interval: Option<(f64, f64)>,
    /// Geometric mean of `other ÷ base`; none unless all values are positive.
    pub ratio: Option<f64>,
    pub ratio_interval: Option<(f64, f64)>,
    /// Hedges' g: the difference in standard deviations of a subject's runs; none where they do not vary.
    pub effect: Option<f64>,
    /// The probability of a difference at least as large by chance alone; none under [`FEWEST_PAIRS`].
    pub p: Option<f64>,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation of a sample.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    libm::sqrt(squares / (values.len() - 1) as f64)
}

/// Estimates from pairs; none: there are none.
///
/// `resolution` is how closely a value can be told at all. Differences that are all alike because both values sit on the
/// same coarse scale are no proof: chance is never taken to be smaller than that scale's own rounding.
pub fn estimate(pairs: &[RunPair], resolution: f64) -> Option<PairedEstimate> {
    if pairs.is_empty() {
        return None;
    }
    let differences: Vec<f64> = pairs.iter().map(|pair| pair.other - pair.base).collect();
    let mut estimate =
        PairedEstimate { pairs: pairs.len(), difference: mean(&differences), ..PairedEstimate::default() };
    let logs: Option<Vec<f64>> = pairs
        .iter()
        .map(|pair| (pair.base > 0.0 && pair.other > 0.0).then(|| libm::log(pair.other / pair.base)))
        .collect();
    estimate.ratio = logs.as_ref().map(|logs| libm::exp(mean(logs)));
    if pairs.len() < FEWEST_FOR_AN_INTERVAL {
        return Some(estimate);
    }
    let (count, freedom) = (pairs.len() as f64, (pairs.len() - 1) as f64);
    // Two values, each rounded to a scale of this step.
    let rounding = resolution / libm::sqrt(6.0);
    let error = deviation(&differences).max(rounding) / libm::sqrt(count);
    let width = student::quantile(INTERVAL_TAIL, freedom);
    let around = |middle: f64, error: f64| (middle - width * error, middle + width * error);
    estimate.interval = Some(around(estimate.difference, error));
    if let Some(logs) = logs {
        let bases: Vec<f64> = pairs.iter().map(|pair| pair.base).collect();
        let error = deviation(&logs).max(rounding / mean(&bases)) / libm::sqrt(count);
        let (low, high) = around(mean(&logs), error);
        estimate.ratio_interval = Some((libm::exp(low), libm::exp(high)));
    }
    if pairs.len() < FEWEST_PAIRS {
        return Some(estimate);
    }
    estimate.p = Some(match estimate.difference {
        0.0 => 1.0,
        difference => student::two_sided(difference.abs() / error, freedom),
    });
    estimate.effect = hedges_g(pairs, estimate.difference);
    Some(estimate)
}

/// One value of each subject from one repetition, as far as each is known: between these two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BoundedPair {
    /// As they were seen.
    pub measured: RunPair,
    pub base: (f64, f64),
    pub other: (f64, f64),
}

/// So many pairs at most are looked at in every way that their values can lie: 2 to the power of that.
const ALL_WAYS: usize = 10;

/// The same as [`estimate`], and what holds for all values that the pairs can have had: the intervals together, and the
/// largest probability.
///
/// Limits of an interval and the statistic of the test, as functions of the differences, have their extremes at the ends of
/// these (the limits are concave and convex, and where the mean difference has one sign, the statistic is quasi-concave).
/// With more than ten pairs, only the cases are looked at in which all differences lie at one end, or those do that are
/// above the mean and the others at the other.
pub fn estimate_within(pairs: &[BoundedPair], resolution: f64) -> Option<PairedEstimate> {
    let measured: Vec<RunPair> = pairs.iter().map(|pair| pair.measured).collect();
    let mut all = estimate(&measured, resolution)?;
    if pairs.iter().all(|pair| pair.base.0 == pair.base.1 && pair.other.0 == pair.other.1) {
        return Some(all);
    }
    let less = |pair: &BoundedPair| RunPair { base: pair.base.1, other: pair.other.0 };
    let more = |pair: &BoundedPair| RunPair { base: pair.base.0, other: pair.other.1 };
    let difference = |pair: &RunPair| pair.other - pair.base;
    let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut include = |is_more: &dyn Fn(usize) -> bool| {
        let ends: Vec<RunPair> = pairs
            .iter()
            .enumerate()
            .map(|(at, pair)| if is_more(at) { more(pair) } else { less(pair) })
            .collect();
        let Some(found) = estimate(&ends, resolution) else { return };
        least = least.min(found.difference);
        most = most.max(found.difference);
        all.interval = hull(all.interval, found.interval);
        all.ratio_interval = hull(all.ratio_interval, found.ratio_interval);
        all.p = all.p.zip(found.p).map(|(one, other)| one.max(other));
    };
    if pairs.len() <= ALL_WAYS {
        (0u32..1 << pairs.len()).for_each(|ways| include(&|at| ways & (1 << at) != 0));
    } else {
        let mean = all.difference;
        include(&|_| false);
        include(&|_| true);
        include(&|at| difference(&measured[at]) > mean);
        include(&|at| difference(&measured[at]) <= mean);
    }
    // Somewhere between the ends there is no difference at all.
    if least <= 0.0 && 0.0 <= most {
        all.p = all.p.map(|_| 1.0);
    }
    Some(all)
}

/// The smallest interval that holds two.
fn hull(one: Option<(f64, f64)>, other: Option<(f64, f64)>) -> Option<(f64, f64)> {
    one.zip(other).map(|(one, other)| (one.0.min(other.0), one.1.max(other.1)))
}

/// The difference over the mean standard deviation of both subjects' runs, its bias taken off. Unlike the difference
/// over the deviation of differences it does not grow because runs were paired, and can be held against other studies.
fn hedges_g(pairs: &[RunPair], difference: f64) -> Option<f64> {
    let base: Vec<f64> = pairs.iter().map(|pair| pair.base).collect();
    let other: Vec<f64> = pairs.iter().map(|pair| pair.other).collect();
    let (one, two) = (deviation(&base), deviation(&other));
    let common = libm::sqrt((one * one + two * two) / 2.0);
    // Runs that differ by less than the last digits of a number do not vary.
    let level = base.iter().chain(&other).fold(0.0, |most: f64, value| most.max(value.abs()));
    (common > level * 1e-12)
        .then(|| difference / common * student::hedges_correction((pairs.len() - 1) as f64))
}

/// Holm's correction: probabilities that can each be held against the same bound, such that the chance of even one
/// false finding among them all stays under it, however they depend on each other. In the order they were given.
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..probabilities.len()).collect();
    order.sort_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
    let mut adjusted = vec![1.0; probabilities.len()];
    let mut largest: f64 = 0.0;
    for (rank, index) in order.into_iter().enumerate() {
        let remaining = (probabilities.len() - rank) as f64;
        largest = largest.max((probabilities[index] * remaining).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pairs(base: &[f64], other: &[f64]) -> Vec<RunPair> {
        base.iter().zip(other).map(|(&base, &other)| RunPair { base, other }).collect()
    }

    fn within(pairs: &[RunPair], error: f64) -> Vec<BoundedPair> {
        pairs
            .iter()
            .map(|&measured| BoundedPair {
                measured,
                base: (measured.base - error, measured.base),
                other: (measured.other - error, measured.other),
            })
            .collect()
    }

    proptest! {
        #[test]
        fn what_is_said_within_intervals_holds_for_every_value_in_them(
            values in prop::collection::vec((1.0..9.0f64, 1.0..9.0f64, 0.0..1.0f64, 0.0..1.0f64), 3..7),
            error in 0.0..2.0f64,
        ) {
            let measured: Vec<RunPair> = values.iter().map(|v| RunPair { base: v.0 + 2.0, other: v.1 + 2.0 }).collect();
            let found = estimate_within(&within(&measured, error), 0.0).unwrap();
            let truth: Vec<RunPair> = values
                .iter()
                .map(|v| RunPair { base: v.0 + 2.0 - error * v.2, other: v.1 + 2.0 - error * v.3 })
                .collect();
            let truth = estimate(&truth, 0.0).unwrap();
            let (all, one) = (found.interval.unwrap(), truth.interval.unwrap());
            prop_assert!(all.0 <= one.0 + 1e-9 && one.1 <= all.1 + 1e-9, "{all:?} {one:?}");
            prop_assert!(found.p.unwrap() >= truth.p.unwrap() - 1e-9, "{found:?} {truth:?}");
        }
    }

    #[test]
    fn a_difference_as_large_as_what_is_not_known_is_none() {
        let measured = pairs(&[10.0, 10.1, 9.9, 10.0], &[12.0, 12.1, 11.9, 12.0]);
        assert!(estimate(&measured, 0.0).unwrap().p.unwrap() < 1e-3);
        assert!(estimate_within(&within(&measured, 0.1), 0.0).unwrap().p.unwrap() < 0.01);
        assert_eq!(estimate_within(&within(&measured, 2.5), 0.0).unwrap().p, Some(1.0));
    }

    /// The ten patients of Student's paper of 1908: hours of sleep gained with two drugs.
    const SLEEP: ([f64; 10], [f64; 10]) = (
        [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
        [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
    );

    #[test]
    fn students_own_example_comes_out_as_it_is_known() {
        let found = estimate(&pairs(&SLEEP.0, &SLEEP.1), 0.0).unwrap();
        assert!((found.difference - 1.58).abs() < 1e-12);
        let (low, high) = found.interval.unwrap();
        assert!((low - 0.700_114).abs() < 1e-5 && (high - 2.459_886).abs() < 1e-5, "{low} {high}");
        assert!((found.p.unwrap() - 0.002_833).abs() < 1e-6, "{:?}", found.p);
        assert_eq!(found.ratio, None, "some values are not positive");
        // 1.58 over the root of the mean of both variances (3.2006 and 4.0090), times 0.9139 for 9 degrees of freedom.
        assert!((found.effect.unwrap() - 0.7605).abs() < 1e-3, "{:?}", found.effect);
    }

    #[test]
    fn one_pair_has_a_difference_and_two_an_interval_but_neither_is_tested() {
        assert_eq!(estimate(&[], 0.0), None);
        let one = estimate(&pairs(&[1.0], &[2.0]), 0.0).unwrap();
        assert_eq!((one.difference, one.interval, one.p), (1.0, None, None));
        let two = estimate(&pairs(&[1.0, 2.0], &[2.0, 4.0]), 0.0).unwrap();
        assert_eq!((two.difference, two.p, two.effect), (1.5, None, None));
        assert!((two.ratio.unwrap() - 2.0).abs() < 1e-12);
        // Differences of 1 and 2: a standard error of 0.5, and Student's factor for one degree of freedom, 12.706.
        let (low, high) = two.interval.unwrap();
        assert!((low - (1.5 - 6.353)).abs() < 1e-3 && (high - (1.5 + 6.353)).abs() < 1e-3, "{low} {high}");
    }

    #[test]
    fn differences_that_are_all_alike_are_no_proof_beyond_the_scale_they_sit_on() {
        let same = pairs(&[10.0; 4], &[11.0; 4]);
        assert_eq!(estimate(&same, 0.0).unwrap().p, Some(0.0));
        let coarse = estimate(&same, 5.0).unwrap();
        assert!(coarse.p.unwrap() > 0.3, "{coarse:?}");
        let (low, high) = coarse.interval.unwrap();
        assert!(low < 0.0 && high > 2.0);
        assert_eq!(coarse.effect, None, "they do not vary");
    }

    #[test]
    fn holm_corrects_as_by_hand() {
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    fn values() -> impl Strategy<Value = Vec<(f64, f64)>> {
        prop::collection::vec((0.001..1e6f64, 0.001..1e6f64), 3..30)
    }

    proptest! {
        #[test]
        fn turning_the_pairs_around_turns_the_result_around(values in values()) {
            let there: Vec<RunPair> = values.iter().map(|&(base, other)| RunPair { base, other }).collect();
            let back: Vec<RunPair> = values.iter().map(|&(other, base)| RunPair { base, other }).collect();
            let (one, two) = (estimate(&there, 0.0).unwrap(), estimate(&back, 0.0).unwrap());
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs().max(b.abs()));
            prop_assert!(near(one.difference, -two.difference));
            prop_assert!(near(one.p.unwrap(), two.p.unwrap()));
            prop_assert!(near(one.interval.unwrap().0, -two.interval.unwrap().1));
            prop_assert!(near(libm::log(one.ratio.unwrap()), -libm::log(two.ratio.unwrap())));
            prop_assert!(near(one.effect.unwrap_or(0.0), -two.effect.unwrap_or(0.0)));
        }

        #[test]
        fn the_interval_leaves_zero_out_exactly_when_the_probability_is_under_its_tail(values in values()) {
            let pairs: Vec<RunPair> = values.iter().map(|&(base, other)| RunPair { base, other }).collect();
            let found = estimate(&pairs, 0.0).unwrap();
            let (low, high) = found.interval.unwrap();
            let p = found.p.unwrap();
            prop_assume!((p - INTERVAL_TAIL).abs() > 1e-9);
            prop_assert_eq!(p < INTERVAL_TAIL, low > 0.0 || high < 0.0);
            let (low, high) = found.ratio_interval.unwrap();
            prop_assert!(low <= found.ratio.unwrap() && found.ratio.unwrap() <= high);
        }

        #[test]
        fn another_unit_changes_neither_probability_nor_ratio_nor_effect(values in values(), unit in 0.001..1e4f64) {
            let pairs: Vec<RunPair> = values.iter().map(|&(base, other)| RunPair { base, other }).collect();
            let scaled: Vec<RunPair> =
                pairs.iter().map(|pair| RunPair { base: pair.base * unit, other: pair.other * unit }).collect();
            let (one, two) = (estimate(&pairs, 0.0).unwrap(), estimate(&scaled, 0.0).unwrap());
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * (1e-6 + a.abs().max(b.abs()));
            prop_assert!(near(one.p.unwrap(), two.p.unwrap()));
            prop_assert!(near(one.ratio.unwrap(), two.ratio.unwrap()));
            prop_assert!(near(one.effect.unwrap(), two.effect.unwrap()));
        }

        #[test]
        fn holm_keeps_the_order_and_stays_between_the_plain_value_and_bonferroni(
            probabilities in prop::collection::vec(0.0..1.0f64, 1..40),
        ) {
            let adjusted = holm(&probabilities);
            for (index, p) in probabilities.iter().enumerate() {
                let most = (p * probabilities.len() as f64).min(1.0);
                prop_assert!(adjusted[index] >= *p && adjusted[index] <= most.max(adjusted[index].min(1.0)));
                for (other, q) in probabilities.iter().enumerate() {
                    prop_assert!(p > q || adjusted[index] <= adjusted[other]);
                }
            }
            let smallest = (0..probabilities.len()).min_by(|a, b| probabilities[*a].total_cmp(&probabilities[*b]));
            let smallest = smallest.unwrap();
            let bonferroni = (probabilities[smallest] * probabilities.len() as f64).min(1.0);
            prop_assert!((adjusted[smallest] - bonferroni).abs() < 1e-12);
        }
    }
}
