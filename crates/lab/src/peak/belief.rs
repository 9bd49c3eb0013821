//! How sure is it where a limit lies? Each place that it may have has a probability, and each step that was kept or broken
//! changes it, by how probable that result would be were the limit there. Pure.
//!
//! This is how thresholds of perception are found from answers that are partly guesses: a Bayesian search with a
//! psychometric function and lapses (Watson and Pelli, "QUEST", Perception & Psychophysics 33, 1983; Wichmann and Hill,
//! "The psychometric function", Perception & Psychophysics 63, 2001). A lapse, here, is a step below the limit that
//! something else broke.

/// Distance of two places in the logarithm of the rate.
const CELL: f64 = 0.0025;
/// Around the limit, results become the other kind over about this much of the logarithm of the rate.
const WIDTH: f64 = 0.01;
/// A step below the limit is broken by something else with this probability. On a machine that is shared such steps come
/// in rows, so it is more than their share.
const LAPSE: f64 = 0.2;
/// A step above the limit is kept with this probability: a target cannot do what it cannot do.
const LUCK: f64 = 0.005;
/// The limit is thought to be near the first rate: half as probable with every so many factors of two between them.
const NEAR_OCTAVES: f64 = 2.0;

/// Where a limit may lie.
#[derive(Debug, Clone)]
pub struct Belief {
    /// Logarithm of the lowest rate that it may be.
    first: f64,
    /// Logarithm of the probability of each place, up to a sum.
    weights: Vec<f64>,
}

impl Belief {
    /// A limit that may lie so many factors of two below and above a rate.
    pub fn around(rate: f64, octaves_below: f64, octaves_above: f64) -> Self {
        let octave = std::f64::consts::LN_2;
        let first = rate.ln() - octaves_below * octave;
        let cells = ((octaves_below + octaves_above) * octave / CELL) as usize;
        let weight = |cell: usize| {
            let octaves = (first + cell as f64 * CELL - rate.ln()).abs() / octave;
            -octaves / NEAR_OCTAVES * octave
        };
        Self { first, weights: (0..cells).map(weight).collect() }
    }

    /// Takes note of a step.
    pub fn heard(&mut self, rate: f64, kept: bool) {
        let rate = rate.ln();
        for (cell, weight) in self.weights.iter_mut().enumerate() {
            let above = (self.first + cell as f64 * CELL - rate) / WIDTH;
            let is_kept = LUCK + (1.0 - LAPSE - LUCK) / (1.0 + (-above).exp());
            *weight += if kept { is_kept } else { 1.0 - is_kept }.ln();
        }
    }

    /// The rate below which the limit lies with this probability.
    pub fn quantile(&self, share: f64) -> f64 {
        let most = self.weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let all: f64 = self.weights.iter().map(|weight| (weight - most).exp()).sum();
        let mut below = 0.0;
        let at = self.weights.iter().position(|weight| {
            below += (weight - most).exp();
            below >= share * all
        });
        (self.first + at.unwrap_or(self.weights.len()) as f64 * CELL).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_anything_is_heard_the_limit_may_be_anywhere_around_the_first_rate() {
        let belief = Belief::around(100.0, 8.0, 8.0);
        assert!((belief.quantile(0.5) / 100.0 - 1.0).abs() < 0.01);
        assert!(belief.quantile(0.025) < 10.0 && belief.quantile(0.975) > 1000.0);
    }

    #[test]
    fn one_step_that_was_kept_outweighs_one_below_it_that_was_broken() {
        let mut belief = Belief::around(100.0, 8.0, 8.0);
        belief.heard(80.0, false);
        assert!(belief.quantile(0.6) < 80.0);
        belief.heard(100.0, true);
        assert!(belief.quantile(0.05) > 90.0, "{}", belief.quantile(0.05));
    }

    #[test]
    fn what_agrees_narrows_it() {
        let mut belief = Belief::around(100.0, 8.0, 8.0);
        for _ in 0..8 {
            belief.heard(300.0, true);
            belief.heard(310.0, false);
        }
        let (low, middle, high) = (belief.quantile(0.025), belief.quantile(0.5), belief.quantile(0.975));
        assert!(295.0 < low && low < middle && middle < high && high < 318.0, "{low} {middle} {high}");
    }
}
