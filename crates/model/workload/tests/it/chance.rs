//! Statistical tests with a stated chance to fail though nothing is wrong: about one in a million each, if
//! their seeds were drawn anew. Seeds are fixed, so they fail always or never.

use std::collections::HashMap;
use std::hash::Hash;

use assay_base::random::{hash, unit_of};
use assay_workload::Purpose;

/// Deviations of a normal variable that one in a million exceeds on one side.
const DEVIATIONS: f64 = 4.75;

/// Panics if counts are not what they are expected to be, by the chi-square test. Cells that expect little
/// are put together. `free` of the cells may vary: one less than there are if the counts add up to what was
/// expected.
pub fn assert_counts(what: &str, cells: &[(f64, f64)], free: usize) {
    let (mut sum, mut rest, mut used) = (0.0, (0.0, 0.0), 0);
    for (seen, expected) in cells {
        assert!(*expected > 0.0 || *seen == 0.0, "{what}: {seen} where nothing can be");
        if *expected < 10.0 {
            rest = (rest.0 + seen, rest.1 + expected);
            continue;
        }
        used += 1;
        sum += (seen - expected) * (seen - expected) / expected;
    }
    if rest.1 >= 10.0 {
        used += 1;
        sum += (rest.0 - rest.1) * (rest.0 - rest.1) / rest.1;
    }
    let k = (free + used - cells.len().min(free + used)).max(1).min(used.max(1)) as f64;
    // Wilson and Hilferty: the cube root is nearly normal.
    let z = ((sum / k).cbrt() - (1.0 - 2.0 / (9.0 * k))) / (2.0 / (9.0 * k)).sqrt();
    assert!(z < DEVIATIONS, "{what}: chi-square {sum:.1} with {k} degrees of freedom: {cells:?}");
}

/// Panics if values do not follow a distribution, by the test of Kolmogorov and Smirnov. `below` gives the
/// chance of a value to be at most so large; for whole numbers it is called with whole numbers.
pub fn assert_follows(what: &str, values: &mut [f64], below: impl Fn(f64) -> f64) {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let mut worst: (f64, f64) = (0.0, 0.0);
    for (index, value) in values.iter().enumerate() {
        // Where values repeat, only the last of them tells how many are at most so large.
        if values.get(index + 1) == Some(value) {
            continue;
        }
        let apart = ((index + 1) as f64 / n - below(*value)).abs();
        if apart > worst.0 {
            worst = (apart, *value);
        }
    }
    let bound = ((2e6f64).ln() / (2.0 * n)).sqrt();
    assert!(worst.0 < bound, "{what}: {} apart at {}, at most {bound} of {n} values", worst.0, worst.1);
}

/// Panics if the number of places in windows of a length, from 0 to `total`, scatters otherwise than a Poisson count. Places
/// are in order; so many of them are expected per unit of length.
pub fn assert_dispersion(what: &str, places: &[f64], per_unit: f64, window: f64, total: f64) {
    let windows = (total / window).floor() as usize;
    let mut counts = vec![0.0; windows];
    for place in places {
        if let Some(count) = counts.get_mut((place / window) as usize) {
            *count += 1.0;
        }
    }
    let mean = per_unit * window;
    let variance = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / windows as f64;
    let dispersion = variance / mean;
    // The fourth central moment of a Poisson count is m + 3 m².
    let error = ((2.0 + 1.0 / mean) / windows as f64).sqrt();
    // A sum of few squares is skewed: Wilson and Hilferty's cube root makes it nearly normal.
    let free = 2.0 / (error * error);
    let z = (dispersion.cbrt() - (1.0 - 2.0 / (9.0 * free))) / (2.0 / (9.0 * free)).sqrt();
    assert!(z.abs() < DEVIATIONS, "{what}: variance over mean of {windows} counts is {dispersion}, z {z:.1}");
}

/// A ratio of sums over things that come in clusters (all requests for one object are alike).
#[derive(Debug)]
pub struct ClusterRatio<K> {
    clusters: HashMap<K, (f64, f64)>,
}

impl<K> Default for ClusterRatio<K> {
    fn default() -> Self {
        Self { clusters: HashMap::new() }
    }
}

impl<K: Eq + Hash> ClusterRatio<K> {
    /// Adds to both sums in a cluster.
    pub fn add(&mut self, cluster: K, part: f64, whole: f64) {
        let sums = self.clusters.entry(cluster).or_default();
        sums.0 += part;
        sums.1 += whole;
    }

    fn sums(&self) -> (f64, f64) {
        self.clusters.values().fold((0.0, 0.0), |sum, c| (sum.0 + c.0, sum.1 + c.1))
    }

    /// Panics if the ratio is not what was stated, by as many of its standard errors as one in a million
    /// exceeds (and a little for sizes with long tails). Without many clusters nothing can be told.
    pub fn assert_is(&self, what: &str, stated: f64) {
        assert!(self.clusters.len() > 300, "{what}: {} clusters are too few", self.clusters.len());
        let (part, whole) = self.sums();
        let miss = |(part, whole): &(f64, f64)| part - stated * whole;
        let square: f64 = self.clusters.values().map(|c| miss(c) * miss(c)).sum();
        let error = square.sqrt() / whole;
        let apart = (part / whole - stated).abs();
        assert!(
            apart <= 1.2 * DEVIATIONS * error + 1e-9,
            "{what}: {} seen, {stated} stated, standard error {error}",
            part / whole
        );
    }
}

#[test]
#[should_panic(expected = "chi-square")]
fn wrong_shares_are_found() {
    assert_counts("shares", &[(5300.0, 5000.0), (4700.0, 5000.0)], 1);
}

#[test]
#[should_panic(expected = "variance over mean")]
fn arrivals_at_even_distances_are_found() {
    let places: Vec<f64> =
        (0..1000u32).map(|i| f64::from(i) + unit_of(hash(Purpose::Other, &[u64::from(i)]))).collect();
    assert_dispersion("one in each unit", &places, 1.0, 10.0, 1000.0);
}

#[test]
#[should_panic(expected = "apart at")]
fn a_wrong_distribution_is_found() {
    let mut values: Vec<f64> = (0..10_000).map(|i| (f64::from(i) / 10_000.0).powf(1.15)).collect();
    assert_follows("uniform", &mut values, |x| x);
}

#[test]
#[should_panic(expected = "stated")]
fn a_wrong_ratio_is_found() {
    let mut ratio = ClusterRatio::default();
    (0..10_000u32).for_each(|i| ratio.add(i, f64::from(u8::from(i % 2 == 0)), 1.0));
    ratio.assert_is("half", 0.53);
}
