//! The clients' requests to which a proxy can no longer be given the response.
//!
//! Pure. A recording that goes leaves a note here, so that a proxy which requests it later does not get another one as
//! if that were it. Notes are bounded; of those that had to go only the highest request number is kept, and whatever is not
//! above it may have been among them.

use std::collections::{HashMap, VecDeque};

/// Most notes: some 100 bytes each, table and queues included.
const MOST_NOTES: usize = 1 << 14;

/// Numbers of clients' requests, from the first to the last that got one recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    first: u64,
    last: u64,
}

impl Span {
    pub fn of(number: u64) -> Self {
        Self { first: number, last: number }
    }

    /// Both, and what lies between.
    pub fn and(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// Whether this request may have got it.
    pub fn holds(self, number: u64) -> bool {
        (self.first..=self.last).contains(&number)
    }
}

/// What is known of a response that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    /// Caches may have it: another request to the origin gives what others would get too.
    Shared,
    /// It was one client's own: another one would be another response, and another request to the origin.
    Own,
    /// It may have been noted, and the note is gone too.
    Forgotten,
}

#[derive(Debug)]
pub struct Lost {
    by_key: HashMap<u64, VecDeque<(Span, Gone)>>,
    /// Keys in the order of their notes.
    order: VecDeque<u64>,
    most: usize,
    /// The highest number of which a note is gone.
    forgotten: Option<u64>,
}

impl Default for Lost {
    fn default() -> Self {
        Self::new(MOST_NOTES)
    }
}

impl Lost {
    fn new(most: usize) -> Self {
        Self { by_key: HashMap::new(), order: VecDeque::new(), most, forgotten: None }
    }

    /// Notes that these requests' response is gone; `key` is a hash: two keys that share one share their notes.
    pub fn note(&mut self, key: u64, span: Span, gone: Gone) {
        self.by_key.entry(key).or_default().push_back((span, gone));
        self.order.push_back(key);
        if self.order.len() > self.most {
            self.forget();
        }
    }

    /// What is known of this request's response; none: it is not gone.
    pub fn find(&self, key: u64, number: u64) -> Option<Gone> {
        let noted = self.by_key.get(&key).into_iter().flatten().rev();
        let found = noted.filter(|(span, _)| span.holds(number)).map(|(_, gone)| *gone).next();
        found.or_else(|| self.forgotten.filter(|forgotten| number <= *forgotten).map(|_| Gone::Forgotten))
    }

    /// The oldest note goes.
    fn forget(&mut self) {
        let Some(key) = self.order.pop_front() else { return };
        let Some(notes) = self.by_key.get_mut(&key) else { return };
        let gone = notes.pop_front().map(|(span, _)| span.last);
        if notes.is_empty() {
            self.by_key.remove(&key);
        }
        self.forgotten = self.forgotten.max(gone);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_span_grows_and_holds_what_lies_between() {
        let span = Span::of(5).and(Span::of(3));
        assert_eq!((2..7).filter(|number| span.holds(*number)).collect::<Vec<_>>(), [3, 4, 5]);
    }

    proptest! {
        /// Against all that was ever noted, in a list.
        #[test]
        fn what_is_gone_is_never_taken_for_what_is_there(
            notes in prop::collection::vec((0u64..4, 0u64..40, 0u64..4, any::<bool>()), 0..40),
            most in 1usize..20,
        ) {
            let mut lost = Lost::new(most);
            for &(key, first, more, is_own) in &notes {
                let span = Span::of(first).and(Span::of(first + more));
                lost.note(key, span, if is_own { Gone::Own } else { Gone::Shared });
            }
            let (old, kept) = notes.split_at(notes.len().saturating_sub(most));
            for key in 0..4 {
                for number in 0..50 {
                    let holds = |note: &&(u64, u64, u64, bool)| {
                        note.0 == key && note.1 <= number && number <= note.1 + note.2
                    };
                    let expected = match kept.iter().rev().find(holds) {
                        Some(note) => Some(if note.3 { Gone::Own } else { Gone::Shared }),
                        None => old.iter().any(|note| note.1 + note.2 >= number).then_some(Gone::Forgotten),
                    };
                    prop_assert_eq!(lost.find(key, number), expected, "{} {}", key, number);
                }
            }
            prop_assert!(lost.order.len() <= most);
            prop_assert_eq!(lost.by_key.values().map(VecDeque::len).sum::<usize>(), lost.order.len());
        }
    }
}
