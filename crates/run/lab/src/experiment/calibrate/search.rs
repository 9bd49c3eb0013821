//! The load that is tried next. The highest that is kept is looked for: doubled until one is not, then halved between, and
//! both ends tried again, so that a moment's noise does not decide.

/// Ratio of the lowest load that was not kept to the highest that was, at which the search ends.
const CONVERGED_RATIO: f64 = 1.1;
/// Factor by which the load grows and shrinks while one of the ends is not known.
const LOAD_FACTOR: f64 = 2.0;
/// The same once noise was taken for an end: it is not far.
const SMALL_LOAD_FACTOR: f64 = 1.25;
/// So often the load is halved before it is given up: with less than a thousandth of what the arithmetic allows, it is
/// not the load that is in doubt.
const MAX_HALVINGS: u32 = 10;

/// Results so far.
#[derive(Debug, Clone)]
pub struct LoadSearch {
    start: f64,
    /// Every load that was tried, in order, and whether it was kept.
    tried: Vec<(f64, bool)>,
}

/// An end of what is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SearchEnd {
    load: f64,
    /// Whether it was tried twice at least, with this result the last time and the time before.
    confirmed: bool,
}

impl LoadSearch {
    /// Begins at a load.
    pub fn new(start: f64) -> Self {
        Self { start, tried: Vec::new() }
    }

    /// Takes note of a result.
    pub fn record(&mut self, load: f64, kept: bool) {
        self.tried.push((load, kept));
    }

    /// The highest load that was kept so far.
    pub fn kept(&self) -> Option<f64> {
        self.lower().map(|end| end.load)
    }

    /// The lowest load that was not kept, above the highest that was.
    pub fn failed(&self) -> Option<f64> {
        self.upper().map(|end| end.load)
    }

    /// The next load to try; none: it is found, or there is none. With few attempts left, what is known is confirmed
    /// rather than made finer.
    pub fn next(&self, attempts_left: u32) -> Option<f64> {
        if attempts_left == 0 {
            return None;
        }
        let (lower, upper) = (self.lower(), self.upper());
        match (lower, upper) {
            (None, None) => Some(self.start),
            (None, Some(upper)) => {
                let lowest = self.start / LOAD_FACTOR.powi(MAX_HALVINGS as i32);
                (upper.load > lowest).then_some(upper.load / LOAD_FACTOR)
            }
            (Some(lower), _) if attempts_left == 1 => (!lower.confirmed).then_some(lower.load),
            (Some(lower), None) => {
                let noise = self.tried.iter().any(|(_, kept)| !kept);
                Some(lower.load * if noise { SMALL_LOAD_FACTOR } else { LOAD_FACTOR })
            }
            (Some(lower), Some(upper)) if upper.load / lower.load > CONVERGED_RATIO && attempts_left > 2 => {
                Some((lower.load * upper.load).sqrt())
            }
            (Some(_), Some(upper)) if !upper.confirmed && attempts_left > 1 => Some(upper.load),
            (Some(lower), Some(_)) => (!lower.confirmed).then_some(lower.load),
        }
    }

    /// The last result of each load decides: a load that was kept the first time and not the second is not kept.
    fn last(&self, load: f64) -> Option<SearchEnd> {
        let mut results = self.tried.iter().rev().filter(|(tried, _)| *tried == load).map(|(_, kept)| *kept);
        let last = results.next()?;
        Some(SearchEnd { load, confirmed: results.next() == Some(last) })
    }

    fn is_kept(&self, load: f64) -> bool {
        self.tried.iter().rev().find(|(tried, _)| *tried == load).is_some_and(|(_, kept)| *kept)
    }

    fn lower(&self) -> Option<SearchEnd> {
        let kept = self.tried.iter().map(|(load, _)| *load).filter(|load| self.is_kept(*load));
        let highest =
            kept.fold(None, |most: Option<f64>, load| Some(most.map_or(load, |most| most.max(load))));
        self.last(highest?)
    }

    fn upper(&self) -> Option<SearchEnd> {
        let above = self.lower().map_or(0.0, |lower| lower.load);
        let failed =
            self.tried.iter().map(|(load, _)| *load).filter(|load| *load > above && !self.is_kept(*load));
        let lowest =
            failed.fold(None, |least: Option<f64>, load| Some(least.map_or(load, |least| least.min(load))));
        self.last(lowest?)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Searches a machine that keeps every load up to `limit`, but for the attempts whose result is wrong.
    fn search(start: f64, limit: f64, attempts: u32, wrong: &[usize]) -> (LoadSearch, u32) {
        let mut search = LoadSearch::new(start);
        let mut used = 0;
        while let Some(load) = search.next(attempts - used) {
            let right = load <= limit;
            search.record(load, right != wrong.contains(&(used as usize)));
            used += 1;
        }
        (search, used)
    }

    #[test]
    fn it_doubles_then_halves_then_confirms_both_ends() {
        let (search, _) = search(1.0, 5.0, 40, &[]);
        let loads: Vec<f64> = search.tried.iter().map(|(load, _)| (load * 100.0).round() / 100.0).collect();
        assert_eq!(loads, [1.0, 2.0, 4.0, 8.0, 5.66, 4.76, 5.19, 5.19, 4.76]);
    }

    #[test]
    fn a_machine_that_keeps_nothing_is_given_up() {
        let (search, used) = search(1.0, 0.0, 100, &[]);
        assert_eq!((search.kept(), used), (None, MAX_HALVINGS + 1));
    }

    #[test]
    fn with_few_attempts_the_end_that_is_told_is_confirmed() {
        let (search, used) = search(1.0, 100.0, 3, &[]);
        assert_eq!((search.kept(), used), (Some(2.0), 3));
        assert_eq!(search.tried, [(1.0, true), (2.0, true), (2.0, true)]);
    }

    #[test]
    fn an_end_that_was_kept_by_accident_is_given_up_again() {
        let (search, _) = search(1.0, 0.9, 40, &[0]);
        assert!(search.kept().is_some_and(|load| load <= 0.9), "{search:?}");
    }

    proptest! {
        #[test]
        fn the_limit_is_found_to_a_tenth(start in 0.1..10.0_f64, factor in 0.01..100.0_f64) {
            let limit = start * factor;
            let (search, used) = search(start, limit, 60, &[]);
            let kept = search.kept().unwrap();
            prop_assert!(kept <= limit && kept * CONVERGED_RATIO * 1.0001 >= limit, "{kept} {limit}");
            prop_assert!(used < 30, "{used} attempts");
        }

        #[test]
        fn one_wrong_result_does_not_decide(
            start in 0.5..2.0_f64, factor in 0.1..20.0_f64, wrong in 0_usize..12
        ) {
            let limit = start * factor;
            let (search, used) = search(start, limit, 60, &[wrong]);
            let kept = search.kept().unwrap();
            // The last attempt of all may be the wrong one: then the load below is told.
            prop_assert!(kept <= limit * 1.0001 && kept * CONVERGED_RATIO * CONVERGED_RATIO * SMALL_LOAD_FACTOR >= limit, "{kept} {limit}");
            prop_assert!(used < 60);
        }

        #[test]
        fn noise_never_makes_it_endless(results in proptest::collection::vec(any::<bool>(), 50), attempts in 0_u32..50) {
            let mut search = LoadSearch::new(1.0);
            let mut used = 0;
            while let Some(load) = search.next(attempts - used) {
                prop_assert!(load.is_finite() && load > 0.0);
                search.record(load, results[used as usize]);
                used += 1;
            }
            prop_assert!(used <= attempts);
        }
    }
}
