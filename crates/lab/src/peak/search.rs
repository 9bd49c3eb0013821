//! Which rate is tried next? The one that the limit is as likely to lie above as below, going by all results so far
//! ([`super::belief`]); so a rate near the limit is come to again and again, from above and from below, and a step that
//! something else broke moves nothing for good. It ends when the limit is known closely enough. Pure: told what a step
//! showed, asked for the next.

use assay_record::peak::{Between, Outcome, Shift};

use super::belief::Belief;

/// The limit is found when it lies within this ratio …
const CLOSE: f64 = 1.03;
/// … with this probability …
const SURE: f64 = 0.95;
/// … and so many results near it say each, that is kept and broken.
const EACH: usize = 3;
/// Results within this ratio are near.
const NEAR: f64 = 1.03;
/// A search for more results of one kind goes this far from where the limit seems to lie.
const ASIDE: f64 = 1.01;
/// The rate grows or shrinks by no more than this at once.
const STEP: f64 = 2.0;
/// So often a rate is tried again that Assay itself may have spoiled; then it is what Assay can do here.
const SPOILED: usize = 3;
/// So many factors of two the limit may lie below the first rate, and above it.
const OCTAVES: (f64, f64) = (12.0, 24.0);
/// So often the rate is halved before it is given up, …
const MOST_HALVINGS: i32 = 10;
/// … which it is when the limit lies below the lowest rate with this probability.
const HOPELESS: f64 = 0.9;

/// What is known so far.
#[derive(Debug, Clone)]
pub struct Search {
    start: f64,
    /// Below it, a step has too few requests in it to show anything.
    lowest: f64,
    belief: Belief,
    /// Every rate that was tried and whether the promise was kept, in order.
    tried: Vec<(f64, bool)>,
    spoiled: Vec<f64>,
    /// To be tried again, as the last step may have been spoiled.
    again: Option<f64>,
}

/// Where the limit lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracket {
    /// The highest rate up to it that was kept; none: none was.
    pub kept: Option<f64>,
    /// The lowest rate above it that was broken; none: none was.
    pub broken: Option<f64>,
}

/// Two rates between which a limit lies with a probability of 95 %, in requests per second.
pub type Range = (f64, f64);

fn range_of(belief: &Belief) -> Range {
    (belief.quantile((1.0 - SURE) / 2.0), belief.quantile((1.0 + SURE) / 2.0))
}

impl Search {
    /// Begins at a rate, and goes down to `lowest`, or to where it begins if that is less.
    pub fn new(start: f64, lowest: f64) -> Self {
        let lowest = lowest.min(start).max(start / STEP.powi(MOST_HALVINGS));
        let belief = Belief::around(start, OCTAVES.0, OCTAVES.1);
        Self { start, lowest, belief, tried: Vec::new(), spoiled: Vec::new(), again: None }
    }

    /// Takes note of what a step showed. One that may be Assay's own fault is no result, until it was tried often enough;
    /// then every time counts.
    pub fn heard(&mut self, rate: f64, outcome: Outcome) {
        self.again = None;
        match outcome {
            Outcome::Kept => self.count(rate, true),
            Outcome::Broken => self.count(rate, false),
            Outcome::Invalid => {
                self.spoiled.push(rate);
                if self.is_own_limit(rate) {
                    (0..SPOILED).for_each(|_| self.count(rate, false));
                } else {
                    self.again = Some(rate);
                }
            }
        }
    }

    fn count(&mut self, rate: f64, kept: bool) {
        self.tried.push((rate, kept));
        self.belief.heard(rate, kept);
    }

    /// Rates at which Assay itself, or the machine, gave out again and again.
    pub fn is_own_limit(&self, rate: f64) -> bool {
        self.spoiled.iter().filter(|other| **other == rate).count() >= SPOILED
    }

    /// Where the limit lies, as far as results go.
    pub fn bracket(&self) -> Bracket {
        let limit = self.belief.quantile(0.5);
        let kept = self.results(true).filter(|rate| *rate <= limit).reduce(f64::max);
        let broken = self.results(false).filter(|rate| *rate > limit).reduce(f64::min);
        Bracket { kept, broken }
    }

    /// The limit lies between these with a probability of 95 %, in requests per second.
    pub fn range(&self) -> Range {
        range_of(&self.belief)
    }

    /// The limit is known closely, and has been come to from both sides.
    pub fn is_confirmed(&self) -> bool {
        self.is_close() && self.lacking().is_none()
    }

    /// Where the limit lay by the first results, and by the rest, if these do not agree: then it is another one now,
    /// because the target's state or the machine's speed has changed.
    pub fn shift(&self) -> Option<Shift> {
        // Nobody knows when it moved.
        let cuts = [1, 2, 3].map(|quarters| self.tried.len() * quarters / 4);
        cuts.into_iter().find_map(|results_before| {
            let (early, late) = self.tried.split_at(results_before);
            let (early, late) = (self.by(early), self.by(late));
            let is_below =
                |one: Between, other: Between| one.high.zip(other.low).is_some_and(|(high, low)| high < low);
            let is_apart = is_below(early, late) || is_below(late, early);
            is_apart.then_some(Shift { results_before, early, late })
        })
    }

    /// Where the limit lies by some results alone.
    fn by(&self, results: &[(f64, bool)]) -> Between {
        let mut belief = Belief::around(self.start, OCTAVES.0, OCTAVES.1);
        results.iter().for_each(|(rate, kept)| belief.heard(*rate, *kept));
        let (low, high) = range_of(&belief);
        let has = |wanted: bool| results.iter().any(|(_, kept)| *kept == wanted);
        Between { low: has(true).then_some(low), high: has(false).then_some(high) }
    }

    fn is_close(&self) -> bool {
        let (low, high) = self.range();
        high / low <= CLOSE
    }

    /// The kind of result of which there are not enough near the limit.
    fn lacking(&self) -> Option<bool> {
        let limit = self.belief.quantile(0.5);
        let kept = self.results(true).filter(|rate| *rate <= limit && limit / rate <= NEAR).count();
        let broken = self.results(false).filter(|rate| *rate > limit && rate / limit <= NEAR).count();
        (kept.min(broken) < EACH).then_some(kept < broken)
    }

    fn results(&self, wanted: bool) -> impl Iterator<Item = f64> {
        self.tried.iter().filter(move |(_, kept)| *kept == wanted).map(|(rate, _)| *rate)
    }

    /// The next rate to try; none: the limit is found, or there is none.
    pub fn next(&self) -> Option<f64> {
        if self.again.is_some() {
            return self.again;
        }
        let Some(least) = self.tried.iter().map(|(rate, _)| *rate).reduce(f64::min) else {
            return Some(self.start);
        };
        let most = self.results(true).reduce(f64::max);
        if most.is_none() && self.belief.quantile(HOPELESS) < self.lowest {
            return None;
        }
        let limit = self.belief.quantile(0.5);
        let rate = match self.is_close().then(|| self.lacking()) {
            None => limit,
            Some(None) => return None,
            Some(Some(true)) => limit / ASIDE,
            Some(Some(false)) => limit * ASIDE,
        };
        // What was broken is tried again before anything beyond it is.
        let broken = self.results(false).filter(|rate| most.is_none_or(|most| *rate > most)).reduce(f64::min);
        let highest = broken.unwrap_or(f64::INFINITY).min(most.map_or(self.start, |most| most * STEP));
        Some(rate.min(highest).max(least / STEP).max(self.lowest))
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
        /// Share of steps with which something else begins to disturb …
        disturbed: f64,
        /// … so many more.
        in_a_row: u32,
        left: u32,
    }

    impl Bucket {
        fn new(limit: f64, seed: u64) -> Self {
            let depth = limit / 8.0;
            Self { limit, depth, tokens: 0.0, chance: Chance(seed), disturbed: 0.0, in_a_row: 0, left: 0 }
        }

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
            if self.left > 0 {
                self.left -= 1;
                Outcome::Broken
            } else if self.chance.next() < self.disturbed {
                self.left = self.in_a_row;
                Outcome::Broken
            } else if kept {
                Outcome::Kept
            } else {
                Outcome::Broken
            }
        }
    }

    fn search(bucket: &mut Bucket, start: f64) -> (Search, usize) {
        let mut search = Search::new(start, 0.0);
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
            let mut bucket = Bucket::new(limit, seed);
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
        for (in_a_row, disturbed) in [(0, 0.15), (1, 0.1), (2, 0.05)] {
            for seed in 0..10 {
                let limit = 900.0 + 41.0 * seed as f64;
                let mut bucket = Bucket { disturbed, in_a_row, ..Bucket::new(limit, seed + 99) };
                let (search, steps) = search(&mut bucket, 4000.0);
                let found = search.bracket().kept.unwrap();
                assert!(
                    (found / limit - 1.0).abs() < 0.04,
                    "seed {seed}, rows of {in_a_row}: {found} for {limit}, {:?}",
                    search.tried
                );
                assert!(steps < 60, "seed {seed}");
            }
        }
    }

    #[test]
    fn a_first_step_that_something_else_broke_is_soon_made_good() {
        for first in 0..4 {
            let mut search = Search::new(1000.0, 20.0);
            let mut steps = 0;
            while let Some(rate) = search.next() {
                let kept = rate <= 1630.0 && !(first..first + 2).contains(&steps);
                search.heard(rate, if kept { Outcome::Kept } else { Outcome::Broken });
                steps += 1;
            }
            let Bracket { kept: Some(kept), .. } = search.bracket() else { panic!("{search:?}") };
            assert!((kept / 1630.0 - 1.0).abs() < 0.02 && steps < 35, "{first}: {kept}, {:?}", search.tried);
        }
    }

    #[test]
    fn it_doubles_and_ends_when_the_limit_has_been_come_to_from_both_sides() {
        let mut search = Search::new(100.0, 0.0);
        let mut rates = Vec::new();
        while let Some(rate) = search.next() {
            rates.push(rate);
            search.heard(rate, if rate <= 500.0 { Outcome::Kept } else { Outcome::Broken });
        }
        assert_eq!(rates[..4], [100.0, 200.0, 400.0, 800.0]);
        let near = |is_near: fn(f64) -> bool| rates.iter().filter(|rate| is_near(**rate)).count();
        assert!(near(|rate| (485.0..=500.0).contains(&rate)) >= EACH, "{rates:?}");
        assert!(near(|rate| rate > 500.0 && rate < 515.0) >= EACH, "{rates:?}");
        let (low, high) = search.range();
        assert!(low < 500.0 && 500.0 < high && search.is_confirmed(), "{low} {high}");
    }

    #[test]
    fn a_limit_that_moves_while_it_is_looked_for_is_told() {
        for (later, is_told) in [(1500.0, true), (1630.0, false), (1900.0, true)] {
            let mut search = Search::new(1000.0, 20.0);
            let mut steps = 0;
            while let Some(rate) = search.next().filter(|_| steps < 40) {
                let limit = if steps < 14 { 1630.0 } else { later };
                search.heard(rate, if rate <= limit { Outcome::Kept } else { Outcome::Broken });
                steps += 1;
            }
            assert_eq!(search.shift().is_some(), is_told, "{later}: {:?} {:?}", search.shift(), search.tried);
        }
    }

    #[test]
    fn a_step_that_was_spoiled_is_tried_again_and_no_more_once_it_counts() {
        let mut search = Search::new(100.0, 0.0);
        search.heard(100.0, Outcome::Invalid);
        assert_eq!(search.next(), Some(100.0));
        search.heard(100.0, Outcome::Kept);
        assert_eq!(search.next(), Some(200.0));
        search.heard(200.0, Outcome::Kept);
        assert_eq!(search.next(), Some(400.0));
    }

    #[test]
    fn a_target_that_keeps_nothing_is_given_up() {
        let mut search = Search::new(100.0, 0.0);
        while let Some(rate) = search.next() {
            search.heard(rate, Outcome::Broken);
        }
        assert_eq!(search.bracket().kept, None);
        assert!(search.tried.len() < 15);
    }

    #[test]
    fn no_rate_is_tried_that_would_show_nothing() {
        let mut search = Search::new(100.0, 20.0);
        while let Some(rate) = search.next() {
            assert!(rate >= 20.0);
            search.heard(rate, Outcome::Broken);
        }
        assert_eq!(search.bracket(), Bracket { kept: None, broken: Some(20.0) });
        assert_eq!(Search::new(5.0, 20.0).next(), Some(5.0), "who asks for less gets it");
    }

    #[test]
    fn where_assay_itself_gives_out_the_search_ends_and_says_so() {
        let mut search = Search::new(100.0, 0.0);
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
            let mut search = Search::new(start, 0.0);
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
            let mut search = Search::new(1.0, 0.0);
            for result in results {
                let Some(rate) = search.next() else { break };
                prop_assert!(rate.is_finite() && rate > 0.0);
                search.heard(rate, [Outcome::Kept, Outcome::Broken, Outcome::Invalid][usize::from(result)]);
            }
        }
    }
}
