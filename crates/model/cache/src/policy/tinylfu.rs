//! Admission by TinyLFU before any policy: an object replaces another only if it was recently requested more often.

use super::EvictionPolicy;
use super::w_tinylfu::Frequencies;

/// TinyLFU before a policy that names victims. Where a new object needs the room of several, it is compared with one after the other,
/// and those that were requested less often are evicted, until there is room or one of them stays.
///
/// The policy learns of an object only when it is admitted: a refused object leaves the policy unchanged.
#[derive(Debug)]
pub struct TinyLfu<O> {
    order: O,
    frequencies: Frequencies,
    stored: u64,
    /// Object about to be stored, of which the policy does not know yet.
    pending: Option<u32>,
}

impl<O: EvictionPolicy> TinyLfu<O> {
    pub fn new(order: O, objects: usize) -> Self {
        Self { order, frequencies: Frequencies::new(objects), stored: 0, pending: None }
    }

    /// The policy behind, to set the next request of one that needs the future.
    pub fn order_mut(&mut self) -> &mut O {
        &mut self.order
    }

    fn admit(&mut self) {
        if let Some(object) = self.pending.take() {
            self.order.miss(object);
        }
    }
}

impl<O: EvictionPolicy> EvictionPolicy for TinyLfu<O> {
    fn hit(&mut self, object: u32) {
        self.frequencies.count(object, self.stored);
        self.order.hit(object);
    }

    fn miss(&mut self, object: u32) {
        self.frequencies.count(object, self.stored);
        self.pending = Some(object);
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        self.admit();
        self.order.insert(object, bytes);
        self.stored += 1;
    }

    fn victim(&mut self) -> Option<u32> {
        self.order.victim()
    }

    fn evict(&mut self) -> Option<u32> {
        self.admit();
        let object = self.order.evict()?;
        self.stored -= 1;
        Some(object)
    }

    fn remove(&mut self, object: u32) {
        self.order.remove(object);
        self.stored -= 1;
    }

    fn competes(&self) -> bool {
        self.order.competes()
    }

    fn yields_to(&mut self, object: u32) -> bool {
        self.order
            .victim()
            .is_none_or(|next| self.frequencies.estimate(object) > self.frequencies.estimate(next))
    }

    #[inline]
    fn prefetch(&self, object: u32) -> u64 {
        self.order.prefetch(object)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::policy::greedy_dual::{GreedyDual, RankFunction};
    use crate::policy::queues::Lru;
    use crate::policy::segments::S3Fifo;
    use crate::policy::{LookupResult, Store};

    /// LRU behind TinyLFU, written so that it is plainly right.
    fn plain(capacity: u64, requests: &[(u32, u64)]) -> Vec<bool> {
        let mut list: Vec<(u32, u64)> = Vec::new();
        let (mut counts, mut since): (HashMap<u32, u32>, usize) = (HashMap::new(), 0);
        let mut hits = Vec::new();
        for &(object, bytes) in requests {
            let at = list.iter().position(|(stored, _)| *stored == object);
            let is_hit = at.is_some_and(|at| list[at].1 == bytes);
            hits.push(is_hit);
            if !is_hit && let Some(at) = at {
                list.remove(at);
            }
            if bytes > capacity {
                continue;
            }
            let count = counts.entry(object).or_default();
            *count = (*count + 1).min(15);
            since += 1;
            if since >= 10 * list.len().max(1) {
                counts.values_mut().for_each(|count| *count /= 2);
                since = 0;
            }
            if let Some(at) = at.filter(|_| is_hit) {
                let renewed = list.remove(at);
                list.push(renewed);
                continue;
            }
            let used = |list: &[(u32, u64)]| list.iter().map(|(_, bytes)| bytes).sum::<u64>();
            let of = |object: u32| counts.get(&object).copied().unwrap_or(0);
            while used(&list) + bytes > capacity && of(object) > of(list[0].0) {
                list.remove(0);
            }
            if used(&list) + bytes <= capacity {
                list.push((object, bytes));
            }
        }
        hits
    }

    fn hits<O: EvictionPolicy>(order: O, capacity: u64, requests: &[(u32, u64)]) -> Vec<bool> {
        let mut store = Store::new(TinyLfu::new(order, 12), capacity, 12);
        requests.iter().map(|(object, bytes)| store.request(*object, *bytes) == LookupResult::Hit).collect()
    }

    #[test]
    fn an_object_that_was_requested_less_often_evicts_nothing_and_one_that_was_more_often_does() {
        let mut store = Store::new(TinyLfu::new(Lru::new(4), 4), 2, 4);
        for object in [0, 0, 1, 1] {
            store.request(object, 1);
        }
        assert_eq!([store.request(2, 1), store.request(2, 1)], [LookupResult::Refused; 2]);
        assert_eq!((store.request(2, 1), store.evictions()), (LookupResult::Stored, 1));
        assert!(!store.is_stored(0) && store.is_stored(1));
    }

    #[test]
    fn what_is_refused_is_not_stored_by_a_policy_in_which_it_competes() {
        let ranked = GreedyDual::new(RankFunction::FrequencyBySize, 3);
        let mut store = Store::new(TinyLfu::new(ranked, 3), 10, 3);
        for _ in 0..3 {
            store.request(0, 10);
        }
        // Its rank is above that of the stored object, which is much larger.
        assert_eq!((store.request(1, 1), store.used_bytes()), (LookupResult::Refused, 10));
        assert!(store.is_stored(0) && !store.is_stored(1));
    }

    #[test]
    fn a_refused_object_is_still_known_to_the_ghosts_of_a_policy() {
        let mut store = Store::new(TinyLfu::new(S3Fifo::new(10, 4), 4), 10, 4);
        // The small queue evicts 0 for 1, which was requested more often, and remembers it.
        for object in [0, 1] {
            store.request(object, 6);
        }
        assert_eq!(store.request(1, 6), LookupResult::Stored);
        assert_eq!(store.request(1, 6), LookupResult::Hit);
        // It is refused twice, and then stored in the main queue.
        assert_eq!([store.request(0, 6), store.request(0, 6)], [LookupResult::Refused; 2]);
        assert_eq!(store.request(0, 6), LookupResult::Stored);
        assert_eq!(store.order_mut().order_mut().evict(), Some(0));
    }

    proptest! {
        #[test]
        fn lru_behind_it_hits_what_its_definition_says(
            requests in proptest::collection::vec((0u32..12, 0u64..4), 1..400), capacity in 0u64..40
        ) {
            // One of four requests is for another version of the object.
            let requests: Vec<_> =
                requests.into_iter().map(|(object, n)| (object, 1 + u64::from(object % 5) + n / 3)).collect();
            prop_assert_eq!(hits(Lru::new(12), capacity, &requests), plain(capacity, &requests));
        }
    }
}
