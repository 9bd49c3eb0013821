//! Responses that are on their way to caches. A cache makes room for a response when it arrives, not when it is requested: what is on its way
//! takes no room yet, which is much where origins take long.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A response that arrives at a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrival {
    pub(crate) at_ms: u64,
    /// Stands for it; of several at once, those that were requested first arrive first.
    pub(crate) number: u32,
    /// Place of the cache.
    pub(crate) cache: usize,
    pub(crate) object: u32,
    /// The room that it takes.
    pub(crate) room: u64,
}

/// Responses in transit, in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    heap: BinaryHeap<Reverse<Arrival>>,
    last: u32,
}

impl Arrivals {
    /// Sends a response on its way; a number above 0 that stands for it.
    pub(crate) fn send(&mut self, at_ms: u64, cache: usize, object: u32, room: u64) -> u32 {
        self.last = self.last.checked_add(1).unwrap_or(1);
        let number = self.last;
        self.heap.push(Reverse(Arrival { at_ms, number, cache, object, room }));
        number
    }

    /// The next one that has arrived by this time.
    pub(crate) fn next_until(&mut self, at_ms: u64) -> Option<Arrival> {
        let Reverse(first) = self.heap.peek()?;
        if first.at_ms > at_ms {
            return None;
        }
        self.heap.pop().map(|Reverse(arrival)| arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_arrive_in_the_order_of_their_times_and_then_of_their_requests() {
        let mut arrivals = Arrivals::default();
        for (at_ms, object) in [(30, 1), (10, 2), (30, 3), (20, 4)] {
            arrivals.send(at_ms, 0, object, 9);
        }
        let mut until = |at_ms| {
            std::iter::from_fn(|| arrivals.next_until(at_ms))
                .map(|arrival| arrival.object)
                .collect::<Vec<_>>()
        };
        assert_eq!([until(9), until(20), until(29), until(30)], [vec![], vec![2, 4], vec![], vec![1, 3]]);
    }
}
