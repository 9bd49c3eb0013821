//! Which rate is tried next? The limit lies where the fewest results would have to be wrong: results below it that say
//! broken, and results above it that say kept. It is bracketed, halved until both ends are near, and then both ends are
//! tried again, now from above and now from below, until each has stood often enough. A result that was wrong by chance
//! moves nothing for good. Pure: told what a step showed, asked for the next.

use assay_record::peak::Outcome;

/// How far both ends may be apart in the end, as a ratio.
const CLOSE: f64 = 1.02;
/// How the rate grows or shrinks while one end is not known.
const STEP: f64 = 2.0;
/// The same once there have been results on both sides: the limit is not far.
const SMALL_STEP: f64 = 1.1;
/// Results that each end must have on its side, beyond those against it.
const CONFIRMED: i32 = 3;
/// Results within this ratio of an end speak for it too.
const NEAR: f64 = 1.01;
/// So often a rate is tried again that Assay itself may have spoiled; then it is what Assay can do here.
const SPOILED: usize = 3;
/// So often the rate is halved before it is given up.
const MOST_HALVINGS: i32 = 10;

/// What is known so far.
#[derive(Debug, Clone)]
pub struct Search {
    start: f64,
    /// Every rate that was tried and whether the promise was kept, in order.
    tried: Vec<(f64, bool)>,
    spoiled: Vec<f64>,
}

/// Where the limit lies: above the one, not above the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracket {
    /// The highest rate that was kept; none: none was.
    pub kept: Option<f64>,
    /// The lowest that was not; none: all were.
    pub broken: Option<f64>,
}

impl Search {
    /// Begins at a rate.
    pub fn new(start: f64) -> Self {
        Self { start, tried: Vec::new(), spoiled: Vec::new() }
    }

    /// Takes note of what a step showed. One that may be Assay's own fault is no result, until it was tried often enough.
    pub fn heard(&mut self, rate: f64, outcome: Outcome) {
        match outcome {
            Outcome::Kept => self.tried.push((rate, true)),
            Outcome::Broken => self.tried.push((rate, false)),
            Outcome::Invalid => {
                self.spoiled.push(rate);
                if self.spoiled_at(rate) >= SPOILED {
                    self.tried.push((rate, false));
                }
            }
        }
    }

    fn spoiled_at(&self, rate: f64) -> usize {
        self.spoiled.iter().filter(|other| **other == rate).count()
    }

    /// Rates at which Assay itself, or the machine, gave out again and again.
    pub fn is_own_limit(&self, rate: f64) -> bool {
        self.spoiled_at(rate) >= SPOILED
    }

    /// Where the limit lies, as far as results go.
    pub fn bracket(&self) -> Bracket {
        let (low, high) = self.range();
        let rates = self.rates();
        Bracket { kept: low.checked_sub(1).map(|at| rates[at]), broken: rates.get(high).copied() }
    }

    /// Both ends stand.
    pub fn is_confirmed(&self) -> bool {
        let Bracket { kept: Some(kept), broken: Some(broken) } = self.bracket() else { return false };
        broken / kept <= CLOSE
            && self.support(kept, true) >= CONFIRMED
            && self.support(broken, false) >= CONFIRMED
    }

    /// The next rate to try; none: the limit is found, or there is none.
    pub fn next(&self) -> Option<f64> {
        if let Some(last) = self.spoiled.last().filter(|last| !self.is_own_limit(**last))
            && self.tried.last().is_none_or(|(rate, _)| rate != last)
        {
            return Some(*last);
        }
        let (low, high) = self.range();
        let rates = self.rates();
        if high > low {
            // Results contradict each other between the two: the middle one is asked again.
            return Some(rates[(low + high) / 2]);
        }
        let both = self.tried.iter().any(|(_, kept)| *kept) && self.tried.iter().any(|(_, kept)| !*kept);
        let step = if both { SMALL_STEP } else { STEP };
        match self.bracket() {
            Bracket { kept: None, broken: None } => Some(self.start),
            Bracket { kept: None, broken: Some(broken) } => {
                (broken > self.start / STEP.powi(MOST_HALVINGS)).then_some(broken / step)
            }
            Bracket { kept: Some(kept), broken: None } => Some(kept * step),
            Bracket { kept: Some(kept), broken: Some(broken) } if broken / kept > CLOSE => {
                Some((kept * broken).sqrt())
            }
            Bracket { kept: Some(kept), broken: Some(broken) } => self.to_confirm(kept, broken),
        }
    }

    /// The end that has less on its side; of two alike the one that was not tried last, so that each is come to from the
    /// other side.
    fn to_confirm(&self, kept: f64, broken: f64) -> Option<f64> {
        let (below, above) = (self.support(kept, true), self.support(broken, false));
        if below >= CONFIRMED && (above >= CONFIRMED || self.is_own_limit(broken)) {
            return None;
        }
        let last = self.tried.last().map(|(rate, _)| *rate);
        Some(match below.cmp(&above) {
            std::cmp::Ordering::Less => kept,
            std::cmp::Ordering::Greater => broken,
            std::cmp::Ordering::Equal if last == Some(kept) => broken,
            std::cmp::Ordering::Equal => kept,
        })
    }

    /// Results near a rate that say so, less those that say otherwise.
    fn support(&self, rate: f64, kept: bool) -> i32 {
        let near = self.tried.iter().filter(|(other, _)| (other / rate).max(rate / other) <= NEAR);
        near.map(|(_, result)| if *result == kept { 1 } else { -1 }).sum()
    }

    /// Rates that were tried, ascending.
    fn rates(&self) -> Vec<f64> {
        let mut rates: Vec<f64> = self.tried.iter().map(|(rate, _)| *rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        rates
    }

    /// How many rates are below the limit: the lowest and the highest number with which the fewest results are wrong.
    fn range(&self) -> (usize, usize) {
        let rates = self.rates();
        let wrong = |below: usize| {
            let limit = rates.get(below).copied().unwrap_or(f64::INFINITY);
            self.tried.iter().filter(|(rate, kept)| *kept != (*rate < limit)).count()
        };
        let all: Vec<usize> = (0..=rates.len()).map(wrong).collect();
        let fewest = all.iter().copied().min().unwrap_or(0);
        let is_best = |wrong: &usize| *wrong == fewest;
        (all.iter().position(is_best).unwrap_or(0), all.iter().rposition(is_best).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Numbers that look like chance and are the same every time.
    struct Chance(u64);

    impl Chance {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64
        }

        /// Near enough to a normal distribution.
        fn noise(&mut self) -> f64 {
            (0..12).map(|_| self.next()).sum::<f64>() - 6.0
        }
    }

    /// A token bucket: it lets `limit` requests through a second, and up to `depth` more at once. What comes in a step is
    /// not exactly what was asked for. Kept: fewer than one in a thousand is turned away.
    struct Bucket {
        limit: f64,
        depth: f64,
        tokens: f64,
        chance: Chance,
        /// Share of steps whose result something else decides.
        disturbed: f64,
    }

    impl Bucket {
        fn step(&mut self, rate: f64) -> Outcome {
            const TENTHS: usize = 100;
            let (mut turned_away, mut all) = (0.0, 0.0);
            for _ in 0..TENTHS {
                let come = rate / 10.0 + self.chance.noise() * (rate / 10.0).sqrt() * 0.2;
                self.tokens = (self.tokens + self.limit / 10.0).min(self.depth);
                let let_in = come.min(self.tokens);
                self.tokens -= let_in;
                turned_away += come - let_in;
                all += come;
            }
            let kept = turned_away < all / 1000.0;
            if self.chance.next() < self.disturbed {
                Outcome::Broken
            } else if kept {
                Outcome::Kept
            } else {
                Outcome::Broken
            }
        }
    }

    fn search(bucket: &mut Bucket, start: f64) -> (Search, usize) {
        let mut search = Search::new(start);
        let mut steps = 0;
        while let Some(rate) = search.next().filter(|_| steps < 60) {
            search.heard(rate, bucket.step(rate));
            steps += 1;
        }
        (search, steps)
    }

    #[test]
    fn a_token_bucket_of_known_limit_is_found_within_three_percent_ten_times_of_ten() {
        for seed in 0..10 {
            let limit = 700.0 + 137.0 * seed as f64;
            let mut bucket =
                Bucket { limit, depth: limit / 8.0, tokens: 0.0, chance: Chance(seed), disturbed: 0.0 };
            let (search, steps) = search(&mut bucket, 100.0);
            let found = search.bracket().kept.unwrap();
            assert!(
                (found / limit - 1.0).abs() < 0.03,
                "seed {seed}: {found} for {limit}, {:?}",
                search.tried
            );
            assert!(search.is_confirmed() && steps < 40, "seed {seed}: {steps} steps");
        }
    }

    #[test]
    fn steps_that_something_else_broke_do_not_decide() {
        for seed in 0..10 {
            let limit = 900.0 + 41.0 * seed as f64;
            let mut bucket =
                Bucket { limit, depth: limit / 8.0, tokens: 0.0, chance: Chance(seed + 99), disturbed: 0.08 };
            let (search, steps) = search(&mut bucket, 4000.0);
            let found = search.bracket().kept.unwrap();
            assert!(
                (found / limit - 1.0).abs() < 0.05,
                "seed {seed}: {found} for {limit}, {:?}",
                search.tried
            );
            assert!(steps < 60, "seed {seed}");
        }
    }

    #[test]
    fn it_doubles_halves_and_tries_both_ends_again_from_both_sides() {
        let mut search = Search::new(100.0);
        let mut rates = Vec::new();
        while let Some(rate) = search.next() {
            rates.push(rate.round());
            search.heard(rate, if rate <= 500.0 { Outcome::Kept } else { Outcome::Broken });
        }
        assert_eq!(rates[..4], [100.0, 200.0, 400.0, 800.0]);
        let (low, high) = (rates[rates.len() - 2], rates[rates.len() - 1]);
        assert!(
            low.min(high) <= 500.0 && low.max(high) > 500.0,
            "each end is come to from the other: {rates:?}"
        );
        assert!(search.is_confirmed());
    }

    #[test]
    fn a_target_that_keeps_nothing_is_given_up() {
        let mut search = Search::new(100.0);
        while let Some(rate) = search.next() {
            search.heard(rate, Outcome::Broken);
        }
        assert_eq!(search.bracket().kept, None);
        assert!(search.tried.len() < 15);
    }

    #[test]
    fn where_assay_itself_gives_out_the_search_ends_and_says_so() {
        let mut search = Search::new(100.0);
        let mut steps = 0;
        while let Some(rate) = search.next() {
            search.heard(rate, if rate < 300.0 { Outcome::Kept } else { Outcome::Invalid });
            steps += 1;
            assert!(steps < 60, "{search:?}");
        }
        let Bracket { kept: Some(kept), broken: Some(broken) } = search.bracket() else {
            panic!("{search:?}")
        };
        assert!(kept < 300.0 && broken >= 300.0 && broken / kept <= CLOSE, "{kept} {broken}");
        assert!(search.is_own_limit(broken) && !search.is_own_limit(kept));
    }

    proptest! {
        #[test]
        fn the_limit_lies_between_the_ends(start in 0.1..10.0_f64, factor in 0.01..100.0_f64) {
            let limit = start * factor;
            let mut search = Search::new(start);
            let mut steps = 0;
            while let Some(rate) = search.next() {
                search.heard(rate, if rate <= limit { Outcome::Kept } else { Outcome::Broken });
                steps += 1;
                prop_assert!(steps < 60);
            }
            let bracket = search.bracket();
            let (kept, broken) = (bracket.kept.unwrap(), bracket.broken.unwrap());
            prop_assert!(kept <= limit && limit < broken && broken / kept <= CLOSE, "{kept} {limit} {broken}");
            prop_assert!(search.is_confirmed());
        }

        #[test]
        fn whatever_comes_the_next_rate_is_a_rate(results in proptest::collection::vec(0_u8..3, 80)) {
            let mut search = Search::new(1.0);
            for result in results {
                let Some(rate) = search.next() else { break };
                prop_assert!(rate.is_finite() && rate > 0.0);
                search.heard(rate, [Outcome::Kept, Outcome::Broken, Outcome::Invalid][usize::from(result)]);
            }
        }
    }
}
