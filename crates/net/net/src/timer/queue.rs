//! A priority queue of deadlines, each with a token, from which tokens can be cancelled.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Below this many deadlines, cancelled ones are left where they are until they come due.
const SMALL_HEAP: usize = 1024;

/// Key of a scheduled token; stays unique when its slot is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerKey {
    slot: u32,
    generation: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct QueueEntry {
    at_ns: u64,
    /// First scheduled, first served, among equal deadlines.
    order: u64,
    slot: u32,
    generation: u32,
}

#[derive(Debug)]
struct TokenSlot<T> {
    generation: u32,
    token: Option<T>,
}

/// A heap of deadlines, each with a token. Pure: time is an argument.
#[derive(Debug)]
pub struct TimerQueue<T> {
    heap: BinaryHeap<Reverse<QueueEntry>>,
    slots: Vec<TokenSlot<T>>,
    free: Vec<u32>,
    order: u64,
}

impl<T> Default for TimerQueue<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), order: 0 }
    }
}

impl<T> TimerQueue<T> {
    /// Adds a token that is due at `at_ns`.
    pub fn schedule(&mut self, at_ns: u64, token: T) -> TimerKey {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(TokenSlot { generation: 0, token: None });
                (self.slots.len() - 1) as u32
            }
        };
        let entry = &mut self.slots[slot as usize];
        entry.token = Some(token);
        let generation = entry.generation;
        self.order += 1;
        self.heap.push(Reverse(QueueEntry { at_ns, order: self.order, slot, generation }));
        TimerKey { slot, generation }
    }

    /// Takes a token back; none when it has come due (or was taken back) already.
    pub fn cancel(&mut self, ticket: TimerKey) -> Option<T> {
        let token = self.take(ticket.slot, ticket.generation);
        if self.heap.len() > SMALL_HEAP && self.heap.len() > 2 * self.len() {
            let slots = &self.slots;
            self.heap.retain(|Reverse(entry)| is_live(slots, entry));
        }
        token
    }

    /// The token with the earliest deadline, when that is not after `now_ns`, and the deadline.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<(u64, T)> {
        while self.next_ns()? <= now_ns {
            let Reverse(entry) = self.heap.pop()?;
            if let Some(token) = self.take(entry.slot, entry.generation) {
                return Some((entry.at_ns, token));
            }
        }
        None
    }

    pub fn next_ns(&mut self) -> Option<u64> {
        while let Some(Reverse(entry)) = self.heap.peek() {
            if is_live(&self.slots, entry) {
                return Some(entry.at_ns);
            }
            self.heap.pop();
        }
        None
    }

    /// Number of tokens that are waiting.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True when nothing is waiting.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn take(&mut self, slot: u32, generation: u32) -> Option<T> {
        let entry = self.slots.get_mut(slot as usize).filter(|entry| entry.generation == generation)?;
        let token = entry.token.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(slot);
        Some(token)
    }
}

fn is_live<T>(slots: &[TokenSlot<T>], entry: &QueueEntry) -> bool {
    slots[entry.slot as usize].generation == entry.generation
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_come_due_in_order_and_equal_deadlines_in_order_of_scheduling() {
        let mut deadlines = TimerQueue::default();
        for (at_ns, token) in [(20, 'c'), (10, 'a'), (20, 'd'), (10, 'b')] {
            deadlines.schedule(at_ns, token);
        }
        assert_eq!(deadlines.pop_due(9), None);
        let due: String = std::iter::from_fn(|| deadlines.pop_due(20)).map(|(_, token)| token).collect();
        assert_eq!(due, "abcd");
        assert!(deadlines.is_empty());
    }

    #[test]
    fn a_ticket_is_good_for_one_token_only() {
        let mut deadlines = TimerQueue::default();
        let first = deadlines.schedule(1, 'a');
        assert_eq!(deadlines.cancel(first), Some('a'));
        let second = deadlines.schedule(1, 'b');
        assert_eq!(deadlines.cancel(first), None, "its place is used by another now");
        assert_eq!(deadlines.pop_due(1), Some((1, 'b')));
        assert_eq!(deadlines.cancel(second), None, "came due");
    }

    #[test]
    fn cancelled_deadlines_do_not_pile_up() {
        let mut deadlines = TimerQueue::default();
        deadlines.schedule(u64::MAX, 0);
        for i in 0..100_000 {
            let ticket = deadlines.schedule(1_000_000, i);
            deadlines.cancel(ticket);
        }
        assert!(deadlines.heap.len() <= SMALL_HEAP + 1, "{}", deadlines.heap.len());
        assert!(deadlines.slots.len() <= 2);
    }

    proptest! {
        #[test]
        fn it_does_what_a_sorted_map_does(steps in prop::collection::vec((0u8..4, 0u64..50), 0..200)) {
            let mut deadlines = TimerQueue::default();
            let mut model = BTreeMap::new();
            let mut tickets = Vec::new();
            for (number, (what, value)) in steps.into_iter().enumerate() {
                match what {
                    0 | 1 => {
                        tickets.push((deadlines.schedule(value, number), (value, number)));
                        model.insert((value, number), ());
                    }
                    2 if !tickets.is_empty() => {
                        let (ticket, key) = tickets[value as usize % tickets.len()];
                        let there = model.remove(&key).is_some();
                        prop_assert_eq!(deadlines.cancel(ticket), there.then_some(key.1));
                    }
                    _ => {
                        let first = model.first_key_value().map(|(key, ())| *key).filter(|key| key.0 <= value);
                        prop_assert_eq!(deadlines.pop_due(value), first);
                        first.map(|key| model.remove(&key));
                    }
                }
                prop_assert_eq!(deadlines.len(), model.len());
                prop_assert_eq!(deadlines.next_ns(), model.keys().next().map(|key| key.0));
            }
        }
    }
}
