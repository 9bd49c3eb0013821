//! Memory of the requests that origins have received lately.
//!
//! All workers share it: another attempt at a request comes on a connection of its own. It is asked only about requests
//! that a fault is meant for, and about POST.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// Most requests that are remembered; beyond that the oldest are forgotten sooner.
const MOST_REMEMBERED: usize = 1 << 16;

/// The first request of each key, with a value, for a limited time.
#[derive(Debug)]
pub struct RecentRequests<K, V> {
    remembered_ns: u64,
    requests: Mutex<Requests<K, V>>,
}

#[derive(Debug)]
struct Requests<K, V> {
    /// In the order of arrival, in nanoseconds.
    order: VecDeque<(u64, K)>,
    values: HashMap<K, V>,
}

impl<K: Copy + Eq + Hash, V: Copy> RecentRequests<K, V> {
    /// Remembers each request for `remembered_ns`.
    pub fn new(remembered_ns: u64) -> Self {
        let requests = Requests { order: VecDeque::new(), values: HashMap::new() };
        Self { remembered_ns, requests: Mutex::new(requests) }
    }

    /// Records a request with this key. The value of the one before it, if that is remembered: it stays.
    pub fn record(&self, key: K, value: V, now_ns: u64) -> Option<V> {
        // Nothing is left half done in there, whoever panicked.
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((at_ns, oldest)) = requests.order.front().copied() {
            let is_recent = now_ns.saturating_sub(at_ns) <= self.remembered_ns;
            if is_recent && requests.order.len() < MOST_REMEMBERED {
                break;
            }
            requests.order.pop_front();
            requests.values.remove(&oldest);
        }
        if let Some(before) = requests.values.get(&key) {
            return Some(*before);
        }
        requests.order.push_back((now_ns, key));
        requests.values.insert(key, value);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_is_remembered_for_as_long_as_it_is_recent() {
        let requests = RecentRequests::new(100);
        assert_eq!(requests.record('a', 7, 0), None);
        assert_eq!(requests.record('a', 8, 1), Some(7));
        assert_eq!(requests.record('b', 9, 2), None);
        assert_eq!(requests.record('a', 8, 100), Some(7));
        assert_eq!(requests.record('a', 8, 101), None);
    }

    #[test]
    fn the_memory_has_an_end() {
        let requests = RecentRequests::new(100);
        for number in 0..2 * MOST_REMEMBERED {
            assert_eq!(requests.record(number, (), 5), None);
        }
        let memory = requests.requests.lock().expect("no thread panics with it");
        assert!(memory.order.len() <= MOST_REMEMBERED && memory.values.len() == memory.order.len());
        drop(memory);
        assert_eq!(requests.record(2 * MOST_REMEMBERED - 1, (), 5), Some(()));
    }
}
