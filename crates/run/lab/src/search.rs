//! The search for the highest rate at which a target keeps a promise, from steps of which each was kept or broken.
//!
//! [`Search`] says which rate to try next and where the limit lies; [`assay_measurement::belief`] is the probability of each place that the
//! limit may have. The next rate is the one that the limit is as likely to lie above as below, going by all results so far; so a rate
//! near the limit is come to again and again, from above and from below, and a step that something else broke moves nothing for good.
//! The search ends when the limit is known closely enough.
//!
//! *Does not:* send a request, measure a step or decide what it showed (that is [`peak`](crate::experiment::peak)).

use assay_record::peak::{Between, Shift};

use assay_measurement::belief::{Belief, StepResult};

/// The limit is found when it lies within this ratio …
const CONVERGED_RATIO: f64 = 1.045;
/// … with this probability …
const CONVERGED_PROBABILITY: f64 = 0.95;
/// … and so many results near it say each, that is kept and broken, …
const MIN_RESULTS_PER_SIDE: usize = 3;
/// … of both of which one is among the last so many: a limit that fell would not be kept any more, one that rose not broken.
const FRESH_RESULTS: usize = 3;
/// From this ratio on, steps are longer.
const LONG_STEP_RATIO: f64 = 1.15;
/// … unless so many in a row were all kept or all not.
const SAME_SIDE_RUN: usize = 4;
/// Probability from which on a shift of the limit is suspected, and not yet reported.
const SHIFT_SUSPECTED_PROBABILITY: f64 = 0.3;
/// Results within this ratio are near.
const NEAR_RATIO: f64 = 1.03;
/// Results within this ratio are about the same rate: chance moves what comes in a step by as much.
const SAME_RATE_RATIO: f64 = 1.005;
/// A search for more results of one kind goes this far from where the limit seems to lie.
const PROBE_OFFSET_RATIO: f64 = 1.01;
/// The rate grows or shrinks by no more than this at once.
const MAX_RATE_CHANGE: f64 = 2.0;
/// So many doubtful results near the limit, where broken ones are wanting, and it is what can be told here.
const MIN_DOUBTFUL_RESULTS: usize = 6;
/// So many results on either side must contradict the other's, if the limit is to have moved: one may be an accident.
const MIN_CONTRADICTIONS: usize = 2;
/// So many factors of two the limit may lie below the first rate, and above it.
const PRIOR_OCTAVES: (f64, f64) = (11.0, 16.0);
/// So often the lowest rate is tried: once, something else may have been the reason.
const LOWEST_RATE_TRIES: usize = 2;
/// So often the rate is halved before it is given up, …
const MAX_HALVINGS: i32 = 10;
/// … which it is when the limit lies below the lowest rate with this probability.
const GIVE_UP_PROBABILITY: f64 = 0.9;

/// Results so far.
#[derive(Debug, Clone)]
pub struct Search {
    start: f64,
    /// Below it, a step has too few requests in it to show anything.
    lowest: f64,
    belief: Belief,
    /// Every rate that was offered and what that showed, in order.
    tried: Vec<(f64, StepResult)>,
}

/// Bracket of the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bracket {
    /// The highest rate up to it that was kept, more often than not; none: none was.
    pub kept: Option<f64>,
    /// The lowest rate above it that was broken; none: none was.
    pub broken: Option<f64>,
}

/// Two rates between which a limit lies with a probability of 95 %, in requests per second.
pub type Range = (f64, f64);

/// No target follows the function of [`assay_measurement::belief`] exactly: for a range that is right 19 times of 20, one of 98 % is taken.
const INTERVAL_PROBABILITY: f64 = 0.98;

fn range_of(belief: &Belief) -> Range {
    (belief.quantile((1.0 - INTERVAL_PROBABILITY) / 2.0), belief.quantile((1.0 + INTERVAL_PROBABILITY) / 2.0))
}

impl Search {
    /// Begins at a rate, and goes down to `lowest`, or to where it begins if that is less.
    pub fn new(start: f64, lowest: f64) -> Self {
        let lowest = lowest.min(start).max(start / MAX_RATE_CHANGE.powi(MAX_HALVINGS));
        let belief = Belief::around(start, PRIOR_OCTAVES.0, PRIOR_OCTAVES.1);
        Self { start, lowest, belief, tried: Vec::new() }
    }

    /// Takes note of what a step showed. Every step counts, once.
    pub fn observe(&mut self, rate: f64, result: StepResult) {
        self.tried.push((rate, result));
        self.belief.observe(rate, result);
    }

    /// Results since the limit is where it is.
    fn recent(&self) -> &[(f64, StepResult)] {
        &self.tried[self.belief.since()..]
    }

    fn results(&self, wanted: StepResult) -> impl Iterator<Item = f64> {
        self.recent().iter().filter(move |(_, result)| *result == wanted).map(|(rate, _)| *rate)
    }

    /// Number of results between two rates that were kept, and of those that were not.
    fn between(&self, low: f64, high: f64) -> (usize, usize) {
        let there = || self.recent().iter().filter(|(rate, _)| low <= *rate && *rate <= high);
        let kept = there().filter(|(_, result)| *result == StepResult::Kept).count();
        (kept, there().count() - kept)
    }

    /// Bracket of the limit by the results alone.
    pub fn bracket(&self) -> Bracket {
        let limit = self.belief.quantile(0.5);
        let is_kept = |rate: &f64| {
            // What was not kept at a higher rate does not speak against this one.
            let (kept, not) = self.between(rate / SAME_RATE_RATIO, *rate);
            *rate <= limit && kept > not
        };
        let is_broken = |rate: &f64| {
            let (kept, not) = self.between(*rate, rate * SAME_RATE_RATIO);
            *rate > limit && not >= kept
        };
        Bracket {
            kept: self.results(StepResult::Kept).filter(is_kept).reduce(f64::max),
            broken: self.results(StepResult::Broken).filter(is_broken).reduce(f64::min),
        }
    }

    /// The limit lies between these with a probability of 95 % at least, in requests per second. What is told of as the
    /// highest rate that was kept and the lowest that was broken lies within.
    pub fn range(&self) -> Range {
        let (low, high) = range_of(&self.belief);
        let Bracket { kept, broken } = self.bracket();
        (kept.map_or(low, |kept| low.min(kept)), broken.map_or(high, |broken| high.max(broken)))
    }

    /// The limit is known closely, and has been come to from both sides.
    pub fn is_confirmed(&self) -> bool {
        self.is_narrow(CONVERGED_RATIO) && self.missing_side().is_none()
    }

    /// Whether rates above the limit that was found were not kept, but only while Assay may have been the reason: the target may
    /// do more.
    pub fn is_own_limit(&self) -> bool {
        let limit = self.belief.quantile(0.5);
        let not_kept = |wanted| {
            self.results(wanted)
                .filter(|rate| *rate > limit / NEAR_RATIO && *rate <= limit * NEAR_RATIO)
                .count()
        };
        let is_hopeless = self.is_hopeless() && self.results(StepResult::Broken).next().is_none();
        is_hopeless
            || self.is_narrow(CONVERGED_RATIO)
                && not_kept(StepResult::Broken) < MIN_RESULTS_PER_SIDE
                && not_kept(StepResult::Doubtful) >= MIN_DOUBTFUL_RESULTS
    }

    /// Nothing was kept, and what could be lies below where a step shows anything.
    fn is_hopeless(&self) -> bool {
        let at_lowest = self.tried.iter().filter(|(rate, _)| *rate <= self.lowest * NEAR_RATIO).count();
        at_lowest >= LOWEST_RATE_TRIES
            && self.results(StepResult::Kept).next().is_none()
            && self.belief.quantile(GIVE_UP_PROBABILITY) < self.lowest
    }

    /// Limits by the first results, and by the rest, if these do not agree: then it is another one now,
    /// because the target's state or the machine's speed has changed.
    pub fn shift(&self) -> Option<Shift> {
        let results_before = self.belief.since();
        let (first, rest) = self.tried.split_at(results_before);
        let (early, late) = (self.by(first), self.by(rest));
        let contradict = |results: &[(f64, StepResult)], other: Between| {
            let speaks = |(rate, result): &&(f64, StepResult)| match result {
                StepResult::Kept => other.high.is_some_and(|high| *rate > high),
                StepResult::Broken => other.low.is_some_and(|low| *rate < low),
                StepResult::Doubtful => false,
            };
            results.iter().filter(speaks).count()
        };
        let is_told = self.belief.moved() >= CONVERGED_PROBABILITY
            && contradict(first, late) >= MIN_CONTRADICTIONS
            && contradict(rest, early) >= MIN_CONTRADICTIONS;
        is_told.then_some(Shift { results_before, early, late })
    }

    /// Something speaks for a limit that moved, but not enough to tell of it.
    pub fn may_have_moved(&self) -> bool {
        self.belief.moved() >= SHIFT_SUSPECTED_PROBABILITY && self.shift().is_none()
    }

    /// Limit by some results alone.
    fn by(&self, results: &[(f64, StepResult)]) -> Between {
        let mut belief = Belief::around(self.start, PRIOR_OCTAVES.0, PRIOR_OCTAVES.1);
        results.iter().for_each(|(rate, result)| belief.observe(*rate, *result));
        let (low, high) = range_of(&belief);
        let has = |wanted: StepResult| results.iter().any(|(_, result)| *result == wanted);
        Between { low: has(StepResult::Kept).then_some(low), high: has(StepResult::Broken).then_some(high) }
    }

    /// The limit is known well enough for longer steps to be worth their time.
    pub fn is_near(&self) -> bool {
        let last = self.tried.iter().rev().take(SAME_SIDE_RUN);
        let kept = last.filter(|(_, result)| *result == StepResult::Kept).count();
        // Where all go the same way, it may have moved.
        self.is_narrow(LONG_STEP_RATIO) && (1..SAME_SIDE_RUN).contains(&kept)
    }

    fn is_narrow(&self, ratio: f64) -> bool {
        let (low, high) = range_of(&self.belief);
        high / low <= ratio
    }

    /// The kind of result of which there are not enough near the limit: kept (`true`) or broken.
    fn missing_side(&self) -> Option<bool> {
        let limit = self.belief.quantile(0.5);
        let near = |wanted: bool| {
            let is_near = move |(rate, result): &(f64, StepResult)| match result {
                StepResult::Kept => {
                    wanted && *rate <= limit * PROBE_OFFSET_RATIO && limit / rate <= NEAR_RATIO
                }
                StepResult::Broken => {
                    !wanted && *rate >= limit / PROBE_OFFSET_RATIO && rate / limit <= NEAR_RATIO
                }
                StepResult::Doubtful => false,
            };
            let all = self.recent().iter().enumerate().filter(move |(_, result)| is_near(result));
            let last = all.clone().map(|(index, _)| index).next_back();
            let is_fresh = last.is_some_and(|last| last + FRESH_RESULTS >= self.recent().len());
            (all.count(), is_fresh)
        };
        let ((kept, is_kept_fresh), (broken, is_broken_fresh)) = (near(true), near(false));
        if kept.min(broken) < MIN_RESULTS_PER_SIDE {
            return Some(kept < broken);
        }
        if !is_kept_fresh || !is_broken_fresh {
            return Some(!is_kept_fresh);
        }
        if (SHIFT_SUSPECTED_PROBABILITY..CONVERGED_PROBABILITY).contains(&self.belief.moved()) {
            return Some(self.tried.last().is_none_or(|(_, result)| *result != StepResult::Kept));
        }
        // What is told of as kept and broken may lie further apart than the limit's places.
        let (low, high) = self.range();
        (high / low > CONVERGED_RATIO).then_some(limit / low > high / limit)
    }

    /// The next rate to try; none: the limit is found, or there is none.
    pub fn next(&self) -> Option<f64> {
        let Some(least) = self.tried.iter().map(|(rate, _)| *rate).reduce(f64::min) else {
            return Some(self.start);
        };
        if self.is_hopeless() || self.is_own_limit() {
            return None;
        }
        let most = self.results(StepResult::Kept).reduce(f64::max);
        let limit = self.belief.quantile(0.5);
        let rate = match self.is_narrow(CONVERGED_RATIO).then(|| self.missing_side()) {
            // A little beside it, so that a sharp limit has clear results on both sides.
            None if self.tried.last().is_some_and(|(_, result)| *result == StepResult::Kept) => {
                limit * PROBE_OFFSET_RATIO
            }
            None => limit / PROBE_OFFSET_RATIO,
            Some(None) => return None,
            Some(Some(true)) => limit / PROBE_OFFSET_RATIO,
            Some(Some(false)) => limit * PROBE_OFFSET_RATIO,
        };
        // What was not kept is tried again before anything far beyond it is.
        let not_kept =
            self.recent().iter().filter(|(_, result)| *result != StepResult::Kept).map(|(rate, _)| *rate);
        let not_kept = not_kept.filter(|rate| most.is_none_or(|most| *rate > most)).reduce(f64::min);
        let highest = not_kept
            .map_or(f64::INFINITY, |rate| rate * PROBE_OFFSET_RATIO)
            .min(most.map_or(self.start, |most| most * MAX_RATE_CHANGE));
        Some(rate.min(highest).max(least / MAX_RATE_CHANGE).max(self.lowest))
    }
}

#[cfg(test)]
mod tests {
    use assay_base::random::Rng;
    use proptest::prelude::*;

    use super::*;

    /// Near enough to a normal distribution.
    fn noise(chance: &mut Rng) -> f64 {
        (0..12).map(|_| chance.unit()).sum::<f64>() - 6.0
    }

    /// A token bucket: it lets `limit` requests through a second, and up to `depth` more at once. The rate that comes in a step
    /// is not exactly the requested one. Kept: fewer than one in a thousand is turned away.
    struct Bucket {
        limit: f64,
        depth: f64,
        tokens: f64,
        chance: Rng,
        /// Share of steps with which something else begins to disturb …
        disturbed: f64,
        /// … so many more.
        in_a_row: u32,
        left: u32,
    }

    impl Bucket {
        fn new(limit: f64, seed: u64) -> Self {
            let depth = limit / 8.0;
            Self { limit, depth, tokens: 0.0, chance: Rng::new(seed), disturbed: 0.0, in_a_row: 0, left: 0 }
        }

        fn step(&mut self, rate: f64) -> StepResult {
            const TENTHS: usize = 100;
            let (mut turned_away, mut all) = (0.0, 0.0);
            for _ in 0..TENTHS {
                let come = rate / 10.0 + noise(&mut self.chance) * (rate / 10.0).sqrt() * 0.2;
                self.tokens = (self.tokens + self.limit / 10.0).min(self.depth);
                let let_in = come.min(self.tokens);
                self.tokens -= let_in;
                turned_away += come - let_in;
                all += come;
            }
            let kept = turned_away < all / 1000.0;
            if self.left > 0 {
                self.left -= 1;
                StepResult::Broken
            } else if self.chance.unit() < self.disturbed {
                self.left = self.in_a_row;
                StepResult::Broken
            } else if kept {
                StepResult::Kept
            } else {
                StepResult::Broken
            }
        }
    }

    fn search(bucket: &mut Bucket, start: f64) -> (Search, usize) {
        let mut search = Search::new(start, 0.0);
        let mut steps = 0;
        while let Some(rate) = search.next().filter(|_| steps < 60) {
            search.observe(rate, bucket.step(rate));
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
                search.observe(rate, if kept { StepResult::Kept } else { StepResult::Broken });
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
            search.observe(rate, if rate <= 500.0 { StepResult::Kept } else { StepResult::Broken });
        }
        assert_eq!(rates[..4], [100.0, 200.0, 400.0, 800.0]);
        let near = |is_near: fn(f64) -> bool| rates.iter().filter(|rate| is_near(**rate)).count();
        assert!(near(|rate| (485.0..=500.0).contains(&rate)) >= MIN_RESULTS_PER_SIDE, "{rates:?}");
        assert!(near(|rate| rate > 500.0 && rate < 515.0) >= MIN_RESULTS_PER_SIDE, "{rates:?}");
        let (low, high) = search.range();
        assert!(low < 500.0 && 500.0 < high && search.is_confirmed(), "{low} {high}");
    }

    #[test]
    fn a_limit_that_moves_while_it_is_looked_for_is_told() {
        for (later, is_told) in [(1500.0, true), (1630.0, false), (1900.0, true)] {
            let mut search = Search::new(1000.0, 20.0);
            let mut steps = 0;
            while let Some(rate) = search.next().filter(|_| steps < 80) {
                let limit = if steps < 14 { 1630.0 } else { later };
                search.observe(rate, if rate <= limit { StepResult::Kept } else { StepResult::Broken });
                steps += 1;
            }
            assert_eq!(search.shift().is_some(), is_told, "{later}: {:?} {:?}", search.shift(), search.tried);
        }
    }

    #[test]
    fn a_rate_that_was_broken_twice_and_kept_once_is_not_told_of_as_kept() {
        for not in [StepResult::Broken, StepResult::Doubtful] {
            let mut search = Search::new(100.0, 0.0);
            let results = [(90.0, StepResult::Kept), (100.0, not), (100.0, not), (100.0, StepResult::Kept)];
            results.iter().for_each(|(rate, result)| search.observe(*rate, *result));
            // Whatever follows: above and below it, nothing speaks against it.
            for _ in 0..4 {
                search.observe(104.0, StepResult::Kept);
                search.observe(106.0, StepResult::Broken);
            }
            assert_eq!(search.bracket().kept, Some(104.0));
            let without: Vec<_> = results.into_iter().take(3).collect();
            let mut search = Search::new(100.0, 0.0);
            without.iter().for_each(|(rate, result)| search.observe(*rate, *result));
            search.observe(100.0, StepResult::Kept);
            assert_ne!(search.bracket().kept, Some(100.0), "{not:?}");
        }
    }

    #[test]
    fn what_is_told_of_lies_within_the_interval_at_every_moment() {
        for seed in 0..20 {
            let mut bucket = Bucket { disturbed: 0.2, ..Bucket::new(1000.0, seed) };
            let mut search = Search::new(400.0, 0.0);
            while let Some(rate) = search.next().filter(|_| search.tried.len() < 60) {
                search.observe(rate, bucket.step(rate));
                let (low, high) = search.range();
                let Bracket { kept, broken } = search.bracket();
                let all = [kept, broken].into_iter().flatten();
                assert!(
                    all.into_iter().all(|rate| low <= rate && rate <= high),
                    "{low} {kept:?} {broken:?} {high}"
                );
            }
        }
    }

    #[test]
    fn one_result_that_contradicts_the_others_is_no_limit_that_moved() {
        for (rate, odd) in [(900.0, StepResult::Broken), (1100.0, StepResult::Kept)] {
            for at in 0..24 {
                let mut search = Search::new(1000.0, 0.0);
                for step in 0..24 {
                    let (usual, result) =
                        if step % 2 == 0 { (990.0, StepResult::Kept) } else { (1010.0, StepResult::Broken) };
                    let (rate, result) = if step == at { (rate, odd) } else { (usual, result) };
                    search.observe(rate, result);
                }
                assert_eq!(search.shift(), None, "{rate} {odd:?} at {at}");
            }
        }
    }

    #[test]
    fn a_target_that_keeps_nothing_is_given_up() {
        let mut search = Search::new(100.0, 0.0);
        while let Some(rate) = search.next() {
            search.observe(rate, StepResult::Broken);
        }
        assert_eq!(search.bracket().kept, None);
        assert!(search.tried.len() < 15);
    }

    #[test]
    fn no_rate_is_tried_that_would_show_nothing() {
        let mut search = Search::new(100.0, 20.0);
        while let Some(rate) = search.next() {
            assert!(rate >= 20.0);
            search.observe(rate, StepResult::Broken);
        }
        assert_eq!(search.bracket(), Bracket { kept: None, broken: Some(20.0) });
        assert_eq!(Search::new(5.0, 20.0).next(), Some(5.0), "a lower rate is used if it is the start");
    }

    #[test]
    fn where_assay_itself_may_have_been_the_reason_the_search_ends_and_says_so() {
        let mut search = Search::new(100.0, 0.0);
        let mut steps = 0;
        while let Some(rate) = search.next() {
            search.observe(rate, if rate < 300.0 { StepResult::Kept } else { StepResult::Doubtful });
            steps += 1;
            assert!(steps < 100, "{search:?}");
        }
        let Bracket { kept: Some(kept), broken: None } = search.bracket() else { panic!("{search:?}") };
        assert!((290.0..300.0).contains(&kept) && search.is_own_limit() && !search.is_confirmed(), "{kept}");
        let mut search = Search::new(100.0, 20.0);
        while let Some(rate) = search.next() {
            search.observe(rate, StepResult::Doubtful);
        }
        assert!(search.is_own_limit(), "nothing was kept, and nothing was surely broken");
    }

    #[test]
    fn a_search_in_which_half_of_what_is_not_kept_is_doubtful_ends_all_the_same() {
        let (mut search, mut not) = (Search::new(100.0, 0.0), StepResult::Broken);
        while let Some(rate) = search.next() {
            search.observe(rate, if rate <= 300.0 { StepResult::Kept } else { not });
            if rate > 300.0 {
                not = if not == StepResult::Broken { StepResult::Doubtful } else { StepResult::Broken };
            }
            assert!(search.tried.len() < 60, "{search:?}");
        }
        let (low, high) = search.range();
        assert!(
            low <= 300.0 && 300.0 <= high && search.is_confirmed() && !search.is_own_limit(),
            "{low} {high}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_limit_lies_between_the_ends(start in 0.1..10.0_f64, factor in 0.01..100.0_f64) {
            let limit = start * factor;
            let mut search = Search::new(start, 0.0);
            let mut steps = 0;
            while let Some(rate) = search.next() {
                search.observe(rate, if rate <= limit { StepResult::Kept } else { StepResult::Broken });
                steps += 1;
                prop_assert!(steps < 60);
            }
            let bracket = search.bracket();
            let (kept, broken) = (bracket.kept.unwrap(), bracket.broken.unwrap());
            prop_assert!(kept <= limit && limit < broken && broken / kept <= CONVERGED_RATIO, "{kept} {limit} {broken}");
            prop_assert!(search.is_confirmed());
        }

        #[test]
        fn whatever_comes_the_next_rate_is_a_rate(results in proptest::collection::vec(0_u8..3, 12)) {
            let mut search = Search::new(1.0, 0.0);
            for result in results {
                let Some(rate) = search.next() else { break };
                prop_assert!(rate.is_finite() && rate > 0.0);
                search.observe(rate, [StepResult::Kept, StepResult::Broken, StepResult::Doubtful][usize::from(result)]);
                let (low, high) = search.range();
                prop_assert!(low.is_finite() && high.is_finite() && low <= high);
            }
        }
    }
}
