//! A log over time. Steps of a fixed width, which becomes wider when there are too many of them.

use super::tally::{Counted, Tally};

const SECOND_US: i64 = 1_000_000;
/// Widths of steps in seconds that are chosen when none is given; each is a multiple of the one before.
const WIDTHS_S: [i64; 14] = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 604_800];
/// Steps that are kept while reading.
const STEPS: usize = 4096;
/// Steps that are shown when no width is given.
const SHOWN: usize = 120;

/// Counts by time.
#[derive(Debug)]
pub(crate) struct Series {
    width_us: i64,
    requested: bool,
    /// Number of the step and its counts, ascending.
    steps: Vec<(i64, Tally)>,
    last: usize,
    /// The width had to grow beyond the given one.
    pub widened: bool,
}

impl Series {
    pub(crate) fn new(every_us: Option<i64>) -> Self {
        Self {
            width_us: every_us.unwrap_or(SECOND_US).max(1000),
            requested: every_us.is_some(),
            steps: Vec::new(),
            last: 0,
            widened: false,
        }
    }

    #[inline]
    pub(crate) fn count(&mut self, time_us: i64, counted: Counted) {
        let number = time_us.div_euclid(self.width_us);
        if self.steps.get(self.last).is_none_or(|(last, _)| *last != number) {
            self.last = self.find(number);
        }
        self.steps[self.last].1.count(counted);
        if self.steps.len() > STEPS {
            self.widened |= self.requested;
            self.widen();
        }
    }

    fn find(&mut self, number: i64) -> usize {
        match self.steps.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(at) => at,
            Err(at) => {
                self.steps.insert(at, (number, Tally::default()));
                at
            }
        }
    }

    fn widen(&mut self) {
        let wider = WIDTHS_S.iter().map(|seconds| seconds * SECOND_US).find(|width| *width > self.width_us);
        let width = wider.filter(|_| !self.requested).unwrap_or(self.width_us * 2);
        let factor = width / self.width_us;
        let mut wide: Vec<(i64, Tally)> = Vec::new();
        for (number, tally) in self.steps.drain(..) {
            let number = number.div_euclid(factor);
            match wide.last_mut() {
                Some((last, into)) if *last == number => into.merge(&tally),
                _ => wide.push((number, tally)),
            }
        }
        (self.steps, self.width_us, self.last) = (wide, width, 0);
    }

    /// Width of a step, and the steps: when each begins, and its counts.
    pub(crate) fn finish(mut self) -> (i64, Vec<(i64, Tally)>) {
        while !self.requested && self.steps.len() > SHOWN {
            self.widen();
        }
        let width = self.width_us;
        (width, self.steps.into_iter().map(|(number, tally)| (number * width, tally)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;

    const ONE: Counted = Counted { class: Class::Hit, bytes: 1, duration_us: None };

    #[test]
    fn steps_become_wider_when_there_are_too_many_and_lose_nothing() {
        let mut series = Series::new(None);
        for second in 0..20_000 {
            series.count((second * 7_919 % 20_000) * SECOND_US, ONE);
        }
        let (width, steps) = series.finish();
        assert_eq!(width, 300 * SECOND_US);
        assert_eq!(steps.iter().map(|(_, tally)| tally.requests()).sum::<u64>(), 20_000);
        assert!(steps.iter().all(|(at, _)| at % width == 0));
    }

    #[test]
    fn a_width_that_was_requested_is_kept_as_long_as_possible() {
        let mut series = Series::new(Some(7 * SECOND_US));
        for second in 0..700 {
            series.count(second * SECOND_US, ONE);
        }
        assert!(!series.widened);
        let (width, steps) = series.finish();
        assert_eq!((width, steps.len()), (7 * SECOND_US, 100));
        let mut series = Series::new(Some(SECOND_US));
        (0..10_000).for_each(|second| series.count(second * SECOND_US, ONE));
        assert!(series.widened);
    }
}
