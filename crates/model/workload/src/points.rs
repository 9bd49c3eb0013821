//! The unit Poisson process on the half-line, as a pure function of a hash: points are found without keeping any.
//!
//! The half-line is cut into blocks. The first is [`LEAF`] long, and each later one as long as all before it together, so
//! the process has no end that would have to be known. The number of points in a block is a Poisson draw. A block is
//! halved again and again, and each time its points are divided between the halves by a binomial draw; an interval of length
//! [`LEAF`] has its points at uniform places, sorted. Every draw is hashed from the place of the block or interval it is for.
//! Conditioned on their number, the points of a Poisson process are uniform and independent: so this is the process, and
//! not an approximation of it (draws of large numbers are normal with corrections, which differ from the exact laws by
//! less than any run could show).
//!
//! A [`Walk`] gives the points in order at a constant cost each, and passes over any number of them in logarithmic time.

use assay_base::random::{Rng, fold};

/// Length of the shortest intervals, and the mean number of their points.
const LEAF: f64 = 8.0;

/// Blocks after the first; the last one ends near 10^18, where neighbouring numbers are further apart than points.
const BLOCKS: u32 = 57;

/// Binomial draws up to this number count coins.
const MOST_COINS: u64 = 4096;

/// A walk along the points, from 0 on.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    process: u64,
    /// Blocks that have been entered.
    blocks: u32,
    /// Parts that lie ahead in the block, the nearest on top.
    ahead: Vec<Interval>,
    /// Points of the interval that is being walked through, the nearest on top.
    points: Vec<f64>,
}

/// An interval of the half-line: the `index`-th of those that are 2^`level` leaves long.
#[derive(Debug, Clone, Copy)]
struct Interval {
    level: u32,
    index: u64,
    points: u64,
}

impl Walk {
    /// A walk along the process with this hash.
    pub(crate) fn new(process: u64) -> Self {
        Self { process, blocks: 0, ahead: Vec::new(), points: Vec::new() }
    }

    /// The nearest point; none beyond the last block.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<f64> {
        while self.points.is_empty() {
            let interval = self.pop()?;
            self.enter(interval);
        }
        self.points.last().copied()
    }

    /// Leaves the nearest point behind.
    #[inline]
    pub(crate) fn step(&mut self) {
        self.points.pop();
    }

    /// Leaves all points up to a place behind. Gives their number.
    #[inline]
    pub(crate) fn pass(&mut self, place: f64) -> u64 {
        let mut passed = 0;
        loop {
            while let Some(point) = self.points.last() {
                if *point > place {
                    return passed;
                }
                self.points.pop();
                passed += 1;
            }
            let Some(interval) = self.pop() else { return passed };
            if interval.end() <= place {
                passed += interval.points;
            } else if interval.begin() <= place {
                self.enter(interval);
            } else {
                self.ahead.push(interval);
                return passed;
            }
        }
    }

    /// The nearest interval or, where a block has been walked through, the next block.
    fn pop(&mut self) -> Option<Interval> {
        if let Some(interval) = self.ahead.pop() {
            return Some(interval);
        }
        if self.blocks > BLOCKS {
            return None;
        }
        let (level, index) = (self.blocks.saturating_sub(1), u64::from(self.blocks > 0));
        self.blocks += 1;
        let mut interval = Interval { level, index, points: 0 };
        interval.points = poisson(interval.length(), &mut interval.draws(self.process, PointDraw::Number));
        Some(interval)
    }

    /// Halves an interval, or finds the points of one that is not halved further.
    fn enter(&mut self, interval: Interval) {
        if interval.level > 0 {
            let left = half(interval.points, &mut interval.draws(self.process, PointDraw::LeftHalf));
            let of = |index, points| Interval { level: interval.level - 1, index, points };
            let (left, right) =
                (of(2 * interval.index, left), of(2 * interval.index + 1, interval.points - left));
            self.ahead.extend([right, left].into_iter().filter(|interval| interval.points > 0));
            return;
        }
        let begin = interval.begin();
        let mut rng = interval.draws(self.process, PointDraw::Places);
        self.points.extend((0..interval.points).map(|_| begin + LEAF * rng.unit()));
        self.points.sort_unstable_by(|a, b| b.total_cmp(a));
    }
}

/// Draws for an interval. The numbers are arbitrary and must stay.
#[derive(Debug, Clone, Copy)]
#[repr(u64)]
enum PointDraw {
    /// Number of points in a block.
    Number = 1,
    /// Number of points in the left half of an interval.
    LeftHalf = 2,
    /// Positions of the points in an interval that is not halved further.
    Places = 3,
}

impl Interval {
    fn length(self) -> f64 {
        LEAF * (1u64 << self.level) as f64
    }

    fn begin(self) -> f64 {
        self.length() * self.index as f64
    }

    fn end(self) -> f64 {
        self.length() * (self.index + 1) as f64
    }

    fn draws(self, process: u64, draw: PointDraw) -> Rng {
        Rng::new(fold(fold(process, draw as u64 | u64::from(self.level) << 8), self.index))
    }
}

/// A Poisson draw.
fn poisson(mean: f64, rng: &mut Rng) -> u64 {
    const LARGEST_INVERTED: f64 = 512.0;
    if mean > LARGEST_INVERTED {
        // Cornish and Fisher's expansion; skewness is 1/√mean, excess kurtosis 1/mean.
        let z = normal(rng);
        let skewed = (z * z - 1.0) / (6.0 * libm::sqrt(mean));
        let tailed = (z * z * z - 3.0 * z) / (24.0 * mean) - (2.0 * z * z * z - 5.0 * z) / (36.0 * mean);
        return rounded(mean, mean, z + skewed + tailed);
    }
    let (unit, mut count) = (rng.unit(), 0u64);
    let mut chance = libm::exp(-mean);
    let mut below = chance;
    // What is left beyond the last number that changes the sum is less than rounding.
    while unit >= below && chance > 0.0 {
        count += 1;
        chance *= mean / count as f64;
        below += chance;
    }
    count
}

/// Number of `n` points in the left half: a binomial draw with probability 1/2.
#[inline]
fn half(n: u64, rng: &mut Rng) -> u64 {
    if n > MOST_COINS {
        let z = normal(rng);
        let mean = n as f64 / 2.0;
        let tailed = -(z * z * z - 3.0 * z) / (12.0 * n as f64);
        return rounded(mean, mean / 2.0, z + tailed).min(n);
    }
    let words: u32 = (0..n / 64).map(|_| rng.next_u64().count_ones()).sum();
    let rest = rng.next_u64() & ((1 << (n % 64)) - 1);
    u64::from(words + rest.count_ones())
}

/// The whole number nearest to a normal value. Rounding adds 1/12 to the variance, which is taken off before.
fn rounded(mean: f64, variance: f64, deviations: f64) -> u64 {
    let value = mean + libm::sqrt(variance - 1.0 / 12.0) * deviations;
    libm::round(value.max(0.0)) as u64
}

/// A standard normal draw, by Box and Muller.
fn normal(rng: &mut Rng) -> f64 {
    let radius = libm::sqrt(2.0 * rng.exponential());
    radius * libm::cos(std::f64::consts::TAU * rng.unit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

    use super::*;

    /// Panics if counts do not follow a law, by the chi-square test at one in a million (Wilson and Hilferty's normal
    /// approximation). `chance` gives the probability of each number from 0 on.
    fn assert_law(counts: &[u64], chance: impl Fn(u64) -> f64) {
        let draws = counts.len() as f64;
        let largest = *counts.iter().max().unwrap();
        let mut seen = vec![0.0; largest as usize + 1];
        counts.iter().for_each(|count| seen[*count as usize] += 1.0);
        let (mut square, mut cells, mut rest) = (0.0, 0.0, (0.0, draws));
        let mut cell = (0.0, 0.0);
        for (number, seen) in (0..).zip(seen) {
            cell = (cell.0 + seen, cell.1 + draws * chance(number));
            if cell.1 >= 10.0 && rest.1 - cell.1 >= 10.0 {
                square += (cell.0 - cell.1) * (cell.0 - cell.1) / cell.1;
                cells += 1.0;
                rest = (rest.0 + cell.0, rest.1 - cell.1);
                cell = (0.0, 0.0);
            }
        }
        let last = draws - rest.0;
        square += (last - rest.1) * (last - rest.1) / rest.1;
        let z = ((square / cells).cbrt() - (1.0 - 2.0 / (9.0 * cells))) / (2.0 / (9.0 * cells)).sqrt();
        assert!(cells >= 1.0 && z < 4.75, "chi-square {square:.1} with {cells} degrees of freedom");
    }

    /// ln n!, by adding up.
    fn log_factorials(most: u64) -> Vec<f64> {
        let mut sum = 0.0;
        (0..=most)
            .map(|n| {
                sum += (n.max(1) as f64).ln();
                sum
            })
            .collect()
    }

    fn poisson_law(mean: f64, most: u64) -> impl Fn(u64) -> f64 {
        let logs = log_factorials(most);
        move |n| (n as f64 * mean.ln() - mean - logs[n as usize]).exp()
    }

    fn counts(draws: u64, mut draw: impl FnMut(&mut Rng) -> u64) -> Vec<u64> {
        (0..draws).map(|index| draw(&mut Rng::new(fold(3, index)))).collect()
    }

    #[test]
    fn large_poisson_draws_follow_their_law() {
        for mean in [8.0, 512.0, 1024.0, 8192.0] {
            assert_law(&counts(100_000, |rng| poisson(mean, rng)), poisson_law(mean, 20_000));
        }
    }

    #[test]
    fn halves_follow_the_binomial_law() {
        for n in [1, 63, 64, 65, 1000, 4096, 4097, 10_000] {
            let logs = log_factorials(n);
            let chance = |k: u64| {
                (logs[n as usize] - logs[k as usize] - logs[(n - k) as usize] - n as f64 * 2f64.ln()).exp()
            };
            assert_law(&counts(100_000, |rng| half(n, rng)), chance);
        }
    }

    #[test]
    fn counts_in_windows_are_poisson_near_and_far() {
        for from in [0.0, 1e6, 1e12] {
            for window in [0.3, 1.0, 7.0, 50.0] {
                let mut walk = Walk::new(11);
                walk.pass(from);
                let windows: Vec<_> =
                    (1..=10_000).map(|index| walk.pass(from + window * f64::from(index))).collect();
                assert_law(&windows, poisson_law(window, 1000));
            }
        }
    }

    #[test]
    fn as_many_points_are_passed_as_the_place_says() {
        // The deviation of a Poisson count is the root of its mean; 6 of them.
        for place in [1e3, 1e6, 1e9, 1e12, 1e15] {
            for process in 0..20 {
                let apart = Walk::new(process).pass(place) as f64 - place;
                assert!(apart.abs() < 6.0 * place.sqrt(), "process {process}: {apart} at {place}");
            }
        }
    }

    #[test]
    fn a_walk_ends_where_numbers_are_too_far_apart() {
        let mut walk = Walk::new(1);
        assert!(walk.pass(f64::MAX) > 1 << 59);
        assert_eq!(walk.peek(), None);
    }

    #[test]
    fn points_never_change() {
        let mut walk = Walk::new(0);
        let points: Vec<String> = (0..4)
            .map(|_| {
                let point = walk.peek().unwrap();
                walk.step();
                format!("{point:.6}")
            })
            .collect();
        assert_eq!(points, ["0.171434", "0.367979", "2.638576", "4.140184"]);
    }

    proptest! {
        #[test]
        fn passing_counts_the_points_that_stepping_meets(
            process in any::<u64>(), mut places in prop::collection::vec(0.0f64..5000.0, 1..20),
        ) {
            places.sort_by(f64::total_cmp);
            let (mut passing, mut stepping) = (Walk::new(process), Walk::new(process));
            let mut last = 0.0;
            for place in places {
                let mut met = 0;
                while let Some(point) = stepping.peek().filter(|point| *point <= place) {
                    prop_assert!(point >= last, "points come in order");
                    last = point;
                    stepping.step();
                    met += 1;
                }
                prop_assert_eq!(passing.pass(place), met);
            }
        }
    }
}
