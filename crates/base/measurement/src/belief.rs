//! Probability distribution of a limit. Each place has a probability, and each step changes it, by how probable what the step showed
//! would be were the limit there.
//!
//! Thresholds of perception are found in this way from responses that are partly guesses: a Bayesian search with a
//! psychometric function and lapses (Watson and Pelli, "QUEST", Perception & Psychophysics 33, 1983; Wichmann and Hill,
//! "The psychometric function", Perception & Psychophysics 63, 2001). A lapse, here, is a step below the limit that
//! something else broke. How steep the function is depends on target and promise, so several widths are thought possible,
//! and what the steps show decides between them, too.
//!
//! The limit may move while it is looked for. So there is one such belief for each *era*: the time since some step, as if
//! nothing before it had been seen. Each era has a weight, by how well it foretold what came (Adams and MacKay, "Bayesian
//! online changepoint detection", 2007).
//!
//! Kept and broken steps need no rule of their own where Assay was late: a step is [`StepResult::Doubtful`] where it was
//! broken, and lateness may have been the reason. Lateness breaks a step or it does not, and it never mends one; were it the
//! reason with probability `d`, a late step would be kept with `(1 − d) · p` and not kept with `d + (1 − d) · (1 − p)`,
//! where `p` is the probability without it. The factor `1 − d` is the same for all places, so a late step that was kept says
//! exactly what any other does, and one that was not says less than a broken one. Each step counts once, whatever it
//! showed: a doubtful one is a step that was doubtful twice, and none is tried again until it comes out kept.

/// Distance of two places in the logarithm of the rate.
const CELL_WIDTH: f64 = 0.004;
/// Around the limit, results become the other kind over about one of these, in the logarithm of the rate.
const TRANSITION_WIDTHS: [f64; 3] = [0.003, 0.01, 0.03];
/// At the limit itself a step that nothing disturbs is kept with this probability: it begins with nothing that waits, and a
/// percentile of a short time is less than that of a long one more often than not, as what is rare and slow comes in rows.
const KEPT_AT_LIMIT: f64 = 0.65;
/// A step below the limit is broken by something else with one of these probabilities: on a machine that is quiet, or on one
/// that is shared. There, such steps come in rows, so it is more than their share.
const LAPSE_RATES: [f64; 2] = [0.03, 0.25];
/// A step above the limit is kept with this probability: a target can hardly do what it cannot do.
const KEPT_ABOVE_LIMIT: f64 = 0.01;
/// Lateness that may have broken a step is the reason with this probability: nobody knows.
const LATENESS_TO_BLAME: f64 = 0.5;
/// The limit is thought to be near the first rate: half as probable with every so many factors of two between them …
const PRIOR_DECAY_OCTAVES: f64 = 2.0;
/// … and one that moved, near where it was.
const SHIFT_DECAY_OCTAVES: f64 = 0.5;
/// Probability that the limit moves between two steps.
const SHIFT_PROBABILITY: f64 = 0.005;
/// Eras of less weight are forgotten.
const MIN_ERA_WEIGHT: f64 = 1e-3;

/// No more than so many are kept, those of most weight.
const MAX_ERAS: usize = 8;
/// Eras of less weight are not heeded: each step begins one, and where a limit would be
/// that is not thought to have moved says nothing.
const MIN_HEEDED_SHARE: f64 = 0.2;

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepResult {
    /// The promise was kept.
    Kept,
    /// Broken promise, whatever Assay did meanwhile.
    Broken,
    /// Promise that was not kept, with Assay as a possible reason.
    Doubtful,
}

/// Every shape that the function may have: a width and a share of lapses.
fn shapes() -> impl Iterator<Item = (f64, f64)> {
    TRANSITION_WIDTHS.into_iter().flat_map(|width| LAPSE_RATES.into_iter().map(move |lapse| (width, lapse)))
}

/// Probabilities if only the steps since some moment count.
#[derive(Debug, Clone)]
struct Era {
    /// Number of steps that came before.
    since: usize,
    weight: f64,
    /// The probability of each place, for each shape of the function one after the other.
    places: Vec<f64>,
}

/// Probability of each place of a limit.
#[derive(Debug, Clone)]
pub struct Belief {
    /// Logarithm of the lowest rate that it may be.
    first: f64,
    cells: usize,
    eras: Vec<Era>,
    /// Number of steps that were heard of.
    observed: usize,
    /// The probability of each place where the limit may lie now.
    now: Vec<f64>,
}

impl Belief {
    /// A limit that may lie so many factors of two below and above a rate.
    pub fn around(rate: f64, octaves_below: f64, octaves_above: f64) -> Self {
        let octave = std::f64::consts::LN_2;
        let first = rate.ln() - octaves_below * octave;
        let cells = ((octaves_below + octaves_above) * octave / CELL_WIDTH) as usize;
        let mut belief = Self { first, cells, eras: Vec::new(), observed: 0, now: Vec::new() };
        let places = belief.near(rate, PRIOR_DECAY_OCTAVES);
        belief.eras.push(Era { since: 0, weight: 1.0, places });
        belief.combine_eras();
        belief
    }

    /// Places near a rate: half as probable with every so many factors of two between them.
    fn near(&self, rate: f64, octaves: f64) -> Vec<f64> {
        let weight = |cell: usize| (-(self.at(cell) - rate.ln()).abs() / octaves).exp();
        let once: Vec<f64> = (0..self.cells).map(weight).collect();
        let all = once.iter().sum::<f64>() * shapes().count() as f64;
        let once: Vec<f64> = once.iter().map(|weight| weight / all).collect();
        once.repeat(shapes().count())
    }

    /// Logarithm of the rate at a place.
    fn at(&self, cell: usize) -> f64 {
        self.first + cell as f64 * CELL_WIDTH
    }

    /// Takes note of a step.
    pub fn observe(&mut self, rate: f64, result: StepResult) {
        let likelihood = self.likelihood(rate.ln(), result);
        for era in &mut self.eras {
            let mut foretold = 0.0;
            for (place, likelihood) in era.places.iter_mut().zip(&likelihood) {
                *place *= likelihood;
                foretold += *place;
            }
            era.places.iter_mut().for_each(|place| *place /= foretold);
            era.weight *= foretold;
        }
        let all: f64 = self.eras.iter().map(|era| era.weight).sum();
        self.eras.iter_mut().for_each(|era| era.weight *= (1.0 - SHIFT_PROBABILITY) / all);
        self.eras.retain(|era| era.weight > MIN_ERA_WEIGHT);
        self.eras.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        self.eras.truncate(MAX_ERAS);
        self.observed += 1;
        self.combine_eras();
        let places = self.near(self.quantile(0.5), SHIFT_DECAY_OCTAVES);
        self.eras.push(Era { since: self.observed, weight: SHIFT_PROBABILITY, places });
    }

    /// Likelihood of a step's result for each place and shape.
    fn likelihood(&self, rate: f64, result: StepResult) -> Vec<f64> {
        let at_limit = (KEPT_AT_LIMIT / (1.0 - KEPT_AT_LIMIT)).ln();
        let mut all = Vec::with_capacity(shapes().count() * self.cells);
        for (width, lapse) in shapes() {
            for cell in 0..self.cells {
                let above = (self.at(cell) - rate) / width + at_limit;
                let kept = KEPT_ABOVE_LIMIT + (1.0 - lapse - KEPT_ABOVE_LIMIT) * logistic(above);
                all.push(match result {
                    StepResult::Kept => kept,
                    StepResult::Broken => 1.0 - kept,
                    StepResult::Doubtful => LATENESS_TO_BLAME + (1.0 - LATENESS_TO_BLAME) * (1.0 - kept),
                });
            }
        }
        all
    }

    /// Takes all eras together.
    fn combine_eras(&mut self) {
        let mut now = vec![0.0; self.cells];
        let all: f64 = self.eras.iter().map(|era| era.weight).sum();
        for era in self.eras.iter().filter(|era| era.weight >= MIN_HEEDED_SHARE * all) {
            for places in era.places.chunks(self.cells) {
                now.iter_mut().zip(places).for_each(|(now, place)| *now += era.weight * place);
            }
        }
        self.now = now;
    }

    /// The rate below which the limit lies now with this probability.
    pub fn quantile(&self, share: f64) -> f64 {
        let wanted = share * self.now.iter().sum::<f64>();
        let mut below = 0.0;
        for (cell, place) in self.now.iter().enumerate() {
            if below + place >= wanted && *place > 0.0 {
                // A place stands for all that is nearer to it than to its neighbours.
                return (self.at(cell) + CELL_WIDTH * ((wanted - below) / place - 0.5)).exp();
            }
            below += place;
        }
        self.at(self.cells).exp()
    }

    /// Eras of which something has been seen.
    fn seen(&self) -> impl Iterator<Item = &Era> {
        self.eras.iter().filter(|era| era.since < self.observed.max(1))
    }

    /// Number of steps that came before the limit was where it is, most probably.
    pub fn since(&self) -> usize {
        self.seen().max_by(|a, b| a.weight.total_cmp(&b.weight)).map_or(0, |era| era.since)
    }

    /// The probability that the limit is not where it was at the first step.
    pub fn moved(&self) -> f64 {
        let all: f64 = self.seen().map(|era| era.weight).sum();
        self.seen().filter(|era| era.since > 0).map(|era| era.weight).sum::<f64>() / all
    }
}

/// 1 / (1 + e^−x). Beyond 40 the exact value is 1 or nothing within the last bit of what it is added to, and most places are
/// that far from any rate: the exponential function is most of what a step costs.
fn logistic(x: f64) -> f64 {
    match x {
        x if x > 40.0 => 1.0,
        x if x < -40.0 => 0.0,
        x => 1.0 / (1.0 + (-x).exp()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(steps: &[(f64, StepResult)]) -> Belief {
        let mut belief = Belief::around(100.0, 8.0, 8.0);
        steps.iter().for_each(|(rate, result)| belief.observe(*rate, *result));
        belief
    }

    #[test]
    fn before_anything_is_heard_the_limit_may_be_anywhere_around_the_first_rate() {
        let belief = observed(&[]);
        assert!((belief.quantile(0.5) / 100.0 - 1.0).abs() < 0.01);
        assert!(belief.quantile(0.025) < 10.0 && belief.quantile(0.975) > 1000.0);
    }

    #[test]
    fn one_step_that_was_kept_outweighs_one_below_it_that_was_broken() {
        let belief = observed(&[(80.0, StepResult::Broken)]);
        assert!(belief.quantile(0.6) < 80.0);
        let belief = observed(&[(80.0, StepResult::Broken), (100.0, StepResult::Kept)]);
        assert!(belief.quantile(0.1) > 90.0, "{}", belief.quantile(0.1));
    }

    #[test]
    fn what_agrees_narrows_it() {
        let belief = observed(&[(300.0, StepResult::Kept), (310.0, StepResult::Broken)].repeat(8));
        let (low, middle, high) = (belief.quantile(0.025), belief.quantile(0.5), belief.quantile(0.975));
        assert!(290.0 < low && low < middle && middle < high && high < 320.0, "{low} {middle} {high}");
        assert!(belief.moved() < 0.05 && belief.since() == 0);
    }

    /// The posterior of one limit and one width, from Bayes' rule for each place by itself.
    #[test]
    fn a_doubtful_step_says_less_than_a_broken_one_and_a_kept_one_says_the_same_however_late_assay_was() {
        let belief = observed(&[]);
        // The last shape is that with lapses of a quarter.
        let ratio = |result| {
            let likelihood = belief.likelihood(100.0_f64.ln(), result);
            let last = likelihood.len() - belief.cells;
            likelihood[likelihood.len() - 1] / likelihood[last]
        };
        // Far above and far below the rate, with what the constants say.
        let (below, above) = (0.75_f64, 0.01);
        assert!((ratio(StepResult::Kept) - below / above).abs() < 1e-9);
        assert!((ratio(StepResult::Broken) - (1.0 - below) / (1.0 - above)).abs() < 1e-9);
        let late = |kept: f64| 1.0 - 0.5 * kept;
        assert!((ratio(StepResult::Doubtful) - late(below) / late(above)).abs() < 1e-9);
        // The share of late steps that lateness breaks falls out of the ratio for a kept one.
        assert!((ratio(StepResult::Kept) - (0.5 * below) / (0.5 * above)).abs() < 1e-9);
    }

    #[test]
    fn a_limit_that_fell_is_known_after_some_steps_and_not_after_one() {
        let early = [(300.0, StepResult::Kept), (310.0, StepResult::Broken)].repeat(5);
        let late =
            [(295.0, StepResult::Broken), (270.0, StepResult::Broken), (200.0, StepResult::Kept)].repeat(4);
        assert!(observed(&[&early[..], &late[..2]].concat()).moved() < 0.5);
        let belief = observed(&[&early[..], &late[..]].concat());
        assert!(
            belief.moved() > 0.99 && belief.since().abs_diff(10) <= 1,
            "{} {}",
            belief.moved(),
            belief.since()
        );
        assert!(belief.quantile(0.95) < 280.0);
    }
}
