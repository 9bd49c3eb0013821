//! A hierarchical bit set of moments that finds the latest: a bit for each moment, a bit for each word of 64 that has one, and so on.
//! A million moments take 128 KB, which fits into a processor's cache; a heap of them would not.

const BITS: usize = u64::BITS as usize;

/// Moments are numbers below some 2^32; the set grows to the largest.
#[derive(Debug, Default)]
pub(super) struct MomentSet {
    /// The moments, then one bit for each word of the level below that is not 0; the last level has one word.
    levels: Vec<Vec<u64>>,
}

impl MomentSet {
    pub(super) fn insert(&mut self, moment: usize) {
        if moment >= self.levels.first().map_or(0, |lowest| lowest.len() * BITS) {
            self.grow(moment);
        }
        let mut at = moment;
        for level in &mut self.levels {
            let word = &mut level[at / BITS];
            let was_empty = *word == 0;
            *word |= 1 << (at % BITS);
            if !was_empty {
                break;
            }
            at /= BITS;
        }
    }

    /// Removes a moment that is in the set.
    pub(super) fn remove(&mut self, moment: usize) {
        let mut at = moment;
        for level in &mut self.levels {
            let word = &mut level[at / BITS];
            *word &= !(1 << (at % BITS));
            if *word != 0 {
                break;
            }
            at /= BITS;
        }
    }

    /// The latest moment; none if the set is empty.
    pub(super) fn latest(&self) -> Option<usize> {
        let mut at = 0;
        for level in self.levels.iter().rev() {
            let word = level[at];
            if word == 0 {
                return None;
            }
            at = at * BITS + (BITS - 1 - word.leading_zeros() as usize);
        }
        (!self.levels.is_empty()).then_some(at)
    }

    /// Grows to hold a moment, at least by doubling.
    fn grow(&mut self, moment: usize) {
        let words = self.levels.first().map_or(0, |lowest| lowest.len() * 2).max(moment / BITS + 1);
        let mut lowest = self.levels.drain(..).next().unwrap_or_default();
        lowest.resize(words, 0);
        self.levels.push(lowest);
        while let Some(below) = self.levels.last().filter(|below| below.len() > 1) {
            let bits =
                |words: &[u64]| words.iter().rev().fold(0, |bits, word| (bits << 1) | u64::from(*word != 0));
            let above = below.chunks(BITS).map(bits).collect();
            self.levels.push(above);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    proptest::proptest! {
        #[test]
        fn the_latest_moment_is_that_of_an_ordered_set(
            steps in proptest::collection::vec((proptest::bool::ANY, 0usize..20_000), 1..400)
        ) {
            let (mut latest, mut set) = (MomentSet::default(), BTreeSet::new());
            for (is_new, moment) in steps {
                let known = set.range(..=moment).next_back().copied();
                match known.filter(|_| !is_new) {
                    Some(known) => {
                        latest.remove(known);
                        set.remove(&known);
                    }
                    None => {
                        latest.insert(moment);
                        set.insert(moment);
                    }
                }
                proptest::prop_assert_eq!(latest.latest(), set.last().copied());
            }
        }
    }
}
