//! How something went over time. Counts in at most 64 slots, whose width doubles when they no longer reach: 256 bytes,
//! however long the log is.
//!
//! Slots are aligned to the epoch, so those of several courses fall together exactly once all are equally wide.

/// Slots of a course.
pub const SLOTS: usize = 64;
const SECOND_US: i64 = 1_000_000;

#[derive(Debug, Clone, Default)]
pub struct TimeCounts {
    /// Width of a slot in seconds, as a power of two.
    log2_s: u32,
    /// Number of the first slot: its beginning over its width.
    first: i64,
    /// Empty until something is counted.
    counts: Vec<u32>,
}

/// Slots that several courses share when they are shown side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeGrid {
    log2_s: u32,
    first: i64,
    pub slots: usize,
}

impl TimeCounts {
    /// Counts one in a second of Unix time.
    #[inline]
    pub fn count(&mut self, second: i64) {
        let slot = (second >> self.log2_s).wrapping_sub(self.first);
        let at = usize::try_from(slot).ok().filter(|at| *at < self.counts.len());
        let at = at.unwrap_or_else(|| self.make_room(second));
        self.counts[at] = self.counts[at].saturating_add(1);
    }

    /// Makes room for a second; the place of its slot.
    #[cold]
    fn make_room(&mut self, second: i64) -> usize {
        let used = |counts: &[u32]| counts.iter().rposition(|count| *count > 0).unwrap_or(0) as i64;
        let (mut from, mut to) =
            (self.first << self.log2_s, (self.first + used(&self.counts)) << self.log2_s);
        if self.counts.is_empty() {
            (from, to) = (second, second);
        }
        let grid = TimeGrid::starting(from.min(second), to.max(second), self.log2_s);
        let mut counts = vec![0; SLOTS];
        self.fold_onto(grid, |at, count| counts[at] += count);
        (self.log2_s, self.first, self.counts) = (grid.log2_s, grid.first, counts);
        ((second >> grid.log2_s) - grid.first) as usize
    }

    /// Hands over the slot of a grid and the count for each slot that has any.
    fn fold_onto(&self, grid: TimeGrid, mut add: impl FnMut(usize, u32)) {
        let fold = grid.log2_s - self.log2_s;
        for (at, count) in (0i64..).zip(&self.counts).filter(|(_, count)| **count > 0) {
            add((((self.first + at) >> fold) - grid.first) as usize, *count);
        }
    }

    /// The counts on a grid that covers all that was counted.
    pub fn resample(&self, grid: TimeGrid) -> Vec<u64> {
        let mut counts = vec![0; grid.slots];
        self.fold_onto(grid, |at, count| counts[at] += u64::from(count));
        counts
    }
}

impl TimeGrid {
    /// The grid for all courses of a log with these first and last times.
    pub fn covering(first_us: i64, last_us: i64) -> Self {
        Self::starting(first_us.div_euclid(SECOND_US), last_us.div_euclid(SECOND_US), 0)
    }

    /// The finest one from `log2_s` on that reaches from one second to another.
    fn starting(from: i64, to: i64, mut log2_s: u32) -> Self {
        while (to >> log2_s) - (from >> log2_s) >= SLOTS as i64 {
            log2_s += 1;
        }
        let first = from >> log2_s;
        Self { log2_s, first, slots: ((to >> log2_s) - first) as usize + 1 }
    }

    /// Beginning, Unix time in seconds.
    pub fn from_s(self) -> i64 {
        self.first << self.log2_s
    }

    /// Width of a slot in seconds.
    pub fn every_s(self) -> i64 {
        1 << self.log2_s
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn counts_are_those_of_a_map_whatever_the_order_of_times(
            seconds in proptest::collection::vec(-5_000i64..5_000, 1..200), far in 0i64..4_000_000_000,
        ) {
            let mut seconds = seconds;
            seconds.push(far);
            let mut course = TimeCounts::default();
            seconds.iter().for_each(|second| course.count(*second));
            let (first, last) = (*seconds.iter().min().unwrap(), *seconds.iter().max().unwrap());
            let grid = TimeGrid::covering(first * SECOND_US, last * SECOND_US);
            let mut expected = vec![0; grid.slots];
            for second in &seconds {
                expected[((second - grid.from_s()) / grid.every_s()) as usize] += 1;
            }
            prop_assert_eq!(course.resample(grid), expected);
            prop_assert!(grid.slots <= SLOTS);
        }
    }

    #[test]
    fn what_lasts_a_minute_is_kept_by_the_second() {
        let mut course = TimeCounts::default();
        (100..160).for_each(|second| course.count(second));
        let grid = TimeGrid::covering(100 * SECOND_US, 159 * SECOND_US);
        assert_eq!((grid.every_s(), grid.from_s(), course.resample(grid)), (1, 100, vec![1; 60]));
    }

    #[test]
    fn times_at_both_ends_of_what_numbers_hold_are_counted() {
        let mut course = TimeCounts::default();
        [i64::MIN, 0, i64::MAX].into_iter().for_each(|us| course.count(us.div_euclid(SECOND_US)));
        let counts = course.resample(TimeGrid::covering(i64::MIN, i64::MAX));
        assert_eq!(counts.iter().sum::<u64>(), 3);
    }
}
