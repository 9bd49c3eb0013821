//! Clients' requests whose response can no longer be given to a proxy.
//!
//! Pure. An evicted recording leaves a note, so that a proxy which requests it later is not given another one in its place. Notes
//! are bounded; of dropped notes only the highest request number is kept, and any request up to that number may have been among
//! them.

use std::collections::{HashMap, VecDeque};

/// About 100 bytes each, table and queues included.
const NOTES_MAX: usize = 1 << 14;

/// Numbers of clients' requests, from the first to the last that got one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestRange {
    first: u64,
    last: u64,
}

impl RequestRange {
    pub fn single(number: u64) -> Self {
        Self { first: number, last: number }
    }

    /// Smallest range that contains both.
    pub fn union(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// Whether this request may have got the recording.
    pub fn contains(self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

/// Knowledge about a lost response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// Caches may store it: another response from the origin is as good.
    Shareable,
    /// One client's own: fetching again would give another response, and another request to the origin.
    Own,
    /// A note may have existed, and was dropped.
    Forgotten,
}

#[derive(Debug)]
pub struct LostResponses {
    by_key: HashMap<u64, VecDeque<(RequestRange, LossKind)>>,
    /// Keys in the order of their notes.
    order: VecDeque<u64>,
    max_notes: usize,
    /// Highest number of a dropped note.
    forgotten: Option<u64>,
}

impl Default for LostResponses {
    fn default() -> Self {
        Self::new(NOTES_MAX)
    }
}

impl LostResponses {
    fn new(max_notes: usize) -> Self {
        Self { by_key: HashMap::new(), order: VecDeque::new(), max_notes, forgotten: None }
    }

    /// Notes the loss of the response to these requests. `key` is a hash; keys with the same hash share their notes.
    pub fn note(&mut self, key: u64, range: RequestRange, loss: LossKind) {
        self.by_key.entry(key).or_default().push_back((range, loss));
        self.order.push_back(key);
        if self.order.len() > self.max_notes {
            self.forget();
        }
    }

    /// Knowledge about the response to a request; `None` if it is not lost.
    pub fn find(&self, key: u64, number: u64) -> Option<LossKind> {
        let noted = self.by_key.get(&key).into_iter().flatten().rev();
        let found = noted.filter(|(range, _)| range.contains(number)).map(|(_, loss)| *loss).next();
        found.or_else(|| self.forgotten.filter(|forgotten| number <= *forgotten).map(|_| LossKind::Forgotten))
    }

    /// Drops the oldest note.
    fn forget(&mut self) {
        let Some(key) = self.order.pop_front() else { return };
        let Some(notes) = self.by_key.get_mut(&key) else { return };
        let last = notes.pop_front().map(|(range, _)| range.last);
        if notes.is_empty() {
            self.by_key.remove(&key);
        }
        self.forgotten = self.forgotten.max(last);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_span_grows_and_holds_what_lies_between() {
        let range = RequestRange::single(5).union(RequestRange::single(3));
        assert_eq!((2..7).filter(|number| range.contains(*number)).collect::<Vec<_>>(), [3, 4, 5]);
    }

    proptest! {
        /// Against all that was ever noted, in a list.
        #[test]
        fn what_is_gone_is_never_taken_for_what_is_there(
            notes in prop::collection::vec((0u64..4, 0u64..40, 0u64..4, any::<bool>()), 0..40),
            max_notes in 1usize..20,
        ) {
            let mut lost = LostResponses::new(max_notes);
            for &(key, first, more, is_own) in &notes {
                let range = RequestRange::single(first).union(RequestRange::single(first + more));
                lost.note(key, range, if is_own { LossKind::Own } else { LossKind::Shareable });
            }
            let (old, kept) = notes.split_at(notes.len().saturating_sub(max_notes));
            for key in 0..4 {
                for number in 0..50 {
                    let contains = |note: &&(u64, u64, u64, bool)| {
                        note.0 == key && note.1 <= number && number <= note.1 + note.2
                    };
                    let expected = match kept.iter().rev().find(contains) {
                        Some(note) => Some(if note.3 { LossKind::Own } else { LossKind::Shareable }),
                        None => old.iter().any(|note| note.1 + note.2 >= number).then_some(LossKind::Forgotten),
                    };
                    prop_assert_eq!(lost.find(key, number), expected, "{} {}", key, number);
                }
            }
            prop_assert!(lost.order.len() <= max_notes);
            prop_assert_eq!(lost.by_key.values().map(VecDeque::len).sum::<usize>(), lost.order.len());
        }
    }
}
