//! The ideal cache: whether a cache that never forgets would have served a request. The ideal hit ratio is counted here.
//!
//! The ideal cache has room for everything and follows RFC 9111 with the choices that the target declares.
//! It gets every request in the order in which requests were sent. One that collapses requests fills at
//! the instant of sending: a second request joins the fetch that is under way, which counts as a hit. One that does
//! not fills when the response arrives ([`IdealCache::complete_fetch`]). A fetch that failed is reverted with
//! [`IdealCache::undo_fill`].
//!
//! It holds a response for each variant of an object that the origin's `Vary` tells apart (RFC 9111, 4.1): those have keys of their own.
//!
//! A response costs a key and eight bytes, one of several variants four times as much. Expired responses are dropped whenever the table
//! would have to grow. A fetch in progress costs an entry of its own until it completes or fails.

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use crate::behaviour::CacheBehaviour;

/// Class of a request, as a cache distinguishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestClass {
    /// A plain GET.
    Get,
    /// A GET with a condition that the current version does not meet: the origin sends the object.
    ConditionalChanged,
    /// A GET with a condition that the current version meets: the origin sends a 304.
    ConditionalUnchanged,
    /// A GET that must reach the origin.
    Reload,
    /// A GET for parts of the object.
    Range,
    /// HEAD.
    Head,
    /// POST.
    Post,
}

/// One request, at the instant at which it takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookup {
    /// The response that the request selects: the object, or one of its variants. Must be well mixed (it is its own hash).
    pub key: u64,
    /// The object: what a POST drops, with all of its variants.
    pub object: u64,
    pub request: RequestClass,
    /// The object may be stored.
    pub cachable: bool,
    /// Microseconds from the start of the run to the sending of the request (a POST: to its response).
    pub at_us: u64,
    /// End of the freshness of a response made now, in milliseconds since the start of the run; [`FOREVER`] without
    /// `Expires`.
    pub fresh_until_ms: u32,
}

/// Freshness of a response without `Expires`, which the ideal cache keeps for the whole run.
pub const FOREVER: u32 = u32::MAX;

/// One stored response.
#[derive(Debug, Clone, Copy)]
struct StoredResponse {
    fresh_until_ms: u32,
    /// Low bits of the instant of the request that filled it; names the fill for [`IdealCache::undo_fill`].
    stamp: u32,
}

/// Keys are hashes already, so they are used as they are.
#[derive(Debug, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}

/// An infinite cache that forgets only what has expired.
#[derive(Debug)]
pub struct IdealCache {
    behaviour: CacheBehaviour,
    responses: HashMap<u64, StoredResponse, BuildHasherDefault<IdentityHasher>>,
    /// Variants among them: object and key.
    variants: BTreeSet<(u64, u64)>,
    /// Fetches in progress that no other request joins, by key and instant of sending.
    pending: HashMap<(u64, u64), Lookup>,
}

impl IdealCache {
    pub fn new(behaviour: CacheBehaviour) -> Self {
        Self { behaviour, responses: HashMap::default(), variants: BTreeSet::new(), pending: HashMap::new() }
    }

    /// Processes a request; true if it would have been served without the origin.
    ///
    /// Requests must come in the order of `at_us`. The result counts as a hit or a miss for plain GETs only.
    pub fn lookup(&mut self, lookup: Lookup) -> bool {
        if !self.behaviour.caches || !lookup.cachable {
            return false;
        }
        if lookup.request == RequestClass::Post {
            if self.behaviour.post_invalidates {
                self.drop_object(lookup.object);
            }
            return false;
        }
        let stored = self.responses.get(&lookup.key).copied();
        let fresh = stored.filter(|stored| is_fresh(stored.fresh_until_ms, lookup.at_us));
        if self.fills(lookup.request, stored.is_some(), fresh.is_some()) {
            self.fetch(lookup, fresh);
        }
        fresh.is_some()
    }

    /// Whether the response of the origin will be stored.
    fn fills(&self, request: RequestClass, is_stored: bool, is_fresh: bool) -> bool {
        let behaviour = &self.behaviour;
        match request {
            // The origin responds with the whole object, whether the condition was the client's or the cache's.
            RequestClass::Get | RequestClass::ConditionalChanged => !is_fresh,
            // A 304 that passes by confirms a copy that has expired (RFC 9111, 4.3.4).
            RequestClass::ConditionalUnchanged => !is_fresh && (behaviour.conditional_fills || is_stored),
            RequestClass::Range => !is_fresh && behaviour.range_fills,
            RequestClass::Head => !is_fresh && behaviour.head_fills,
            RequestClass::Reload => behaviour.reload_fills,
            RequestClass::Post => false,
        }
    }

    /// Records a fetch; `older` is a copy that is still fresh.
    fn fetch(&mut self, lookup: Lookup, older: Option<StoredResponse>) {
        if !self.behaviour.collapses {
            self.pending.insert((lookup.key, lookup.at_us), lookup);
            return;
        }
        // If a reload fails, the older copy is still there: its stamp stays, so it cannot be undone.
        let stamp = older.map_or(stamp(lookup.at_us), |older| older.stamp);
        self.store(lookup, stamp, lookup.at_us);
    }

    /// Makes the response to a request that was sent at `sent_us` available from `now_us` on. No effect with a cache that collapses
    /// requests, or for a request that caused no fetch.
    pub fn complete_fetch(&mut self, key: u64, sent_us: u64, now_us: u64) {
        if let Some(lookup) = self.pending.remove(&(key, sent_us)) {
            self.store(lookup, stamp(sent_us), now_us);
        }
    }

    /// Reverts the fill of a request that failed; no effect if the request filled nothing.
    pub fn undo_fill(&mut self, key: u64, at_us: u64) {
        if self.pending.remove(&(key, at_us)).is_some() {
            return;
        }
        if self.responses.get(&key).is_some_and(|stored| stored.stamp == stamp(at_us)) {
            self.responses.remove(&key);
        }
    }

    /// Responses stored, fresh or not.
    pub fn len(&self) -> usize {
        self.responses.len()
    }

    /// True when nothing is stored.
    pub fn is_empty(&self) -> bool {
        self.responses.is_empty()
    }

    fn store(&mut self, lookup: Lookup, stamp: u32, now_us: u64) {
        let Lookup { key, object, fresh_until_ms, .. } = lookup;
        let responses = &mut self.responses;
        if responses.len() == responses.capacity() {
            responses.retain(|_, stored| is_fresh(stored.fresh_until_ms, now_us));
            self.variants.retain(|(_, key)| responses.contains_key(key));
        }
        responses.insert(key, StoredResponse { fresh_until_ms, stamp });
        if key != object {
            self.variants.insert((object, key));
        }
    }

    fn drop_object(&mut self, object: u64) {
        self.responses.remove(&object);
        let variants = self.variants.range((object, 0)..=(object, u64::MAX)).copied();
        for variant in variants.collect::<Vec<_>>() {
            self.responses.remove(&variant.1);
            self.variants.remove(&variant);
        }
    }
}

/// Low bits suffice: two fills of one object exactly a multiple of 71 minutes apart, to the microsecond, do not occur.
fn stamp(at_us: u64) -> u32 {
    at_us as u32
}

fn is_fresh(fresh_until_ms: u32, now_us: u64) -> bool {
    fresh_until_ms == FOREVER || now_us < u64::from(fresh_until_ms) * 1_000
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn lookup(key: u64, request: RequestClass, at_us: u64) -> Lookup {
        Lookup { key, object: key, request, cachable: true, at_us, fresh_until_ms: FOREVER }
    }

    /// One for a variant of object 7.
    fn variant(key: u64, request: RequestClass, at_us: u64) -> Lookup {
        Lookup { object: 7, ..lookup(key, request, at_us) }
    }

    /// Runs requests for one object a microsecond apart and says which would have hit.
    fn hits(behaviour: CacheBehaviour, requests: &[RequestClass]) -> Vec<bool> {
        let mut cache = IdealCache::new(behaviour);
        requests
            .iter()
            .enumerate()
            .map(|(at, &request)| cache.lookup(lookup(7, request, at as u64)))
            .collect()
    }

    use RequestClass::{ConditionalChanged, ConditionalUnchanged, Get, Head, Post, Range, Reload};

    #[test]
    fn a_second_get_hits() {
        assert_eq!(hits(CacheBehaviour::PLAIN, &[Get, Get, Get]), [false, true, true]);
    }

    #[test]
    fn a_target_that_does_not_cache_never_hits() {
        assert_eq!(
            hits(CacheBehaviour { caches: false, ..CacheBehaviour::PLAIN }, &[Get, Get]),
            [false, false]
        );
    }

    #[test]
    fn what_may_not_be_stored_never_hits() {
        let mut cache = IdealCache::new(CacheBehaviour::PLAIN);
        let private = Lookup { cachable: false, ..lookup(1, Get, 0) };
        assert!(!cache.lookup(private) && !cache.lookup(private));
        assert!(cache.is_empty());
    }

    #[test]
    fn what_has_expired_is_fetched_again() {
        let mut cache = IdealCache::new(CacheBehaviour::PLAIN);
        let at = |s: u64| Lookup { fresh_until_ms: (s as u32 + 10) * 1_000, ..lookup(1, Get, s * 1_000_000) };
        assert_eq!([0, 9, 10, 19, 20].map(|s| cache.lookup(at(s))), [false, true, false, true, false]);
    }

    #[test]
    fn a_response_that_is_stale_at_birth_is_no_help() {
        let mut cache = IdealCache::new(CacheBehaviour::PLAIN);
        let at = |us| Lookup { fresh_until_ms: 5_000, ..lookup(1, Get, us) };
        assert!(!cache.lookup(at(6_000_000)));
        assert!(!cache.lookup(at(6_000_001)));
    }

    #[test]
    fn a_head_fills_only_where_declared() {
        assert_eq!(hits(CacheBehaviour::PLAIN, &[Head, Get]), [false, false]);
        assert_eq!(
            hits(CacheBehaviour { head_fills: true, ..CacheBehaviour::PLAIN }, &[Head, Get]),
            [false, true]
        );
    }

    #[test]
    fn a_request_for_parts_fills_only_where_declared_and_never_empties() {
        assert_eq!(hits(CacheBehaviour::PLAIN, &[Range, Get, Range, Get]), [false, false, true, true]);
        assert_eq!(
            hits(CacheBehaviour { range_fills: true, ..CacheBehaviour::PLAIN }, &[Range, Get]),
            [false, true]
        );
    }

    #[test]
    fn without_collapsing_only_complete_responses_are_shared() {
        let mut cache = IdealCache::new(CacheBehaviour { collapses: false, ..CacheBehaviour::PLAIN });
        assert!(!cache.lookup(lookup(1, Get, 10)) && !cache.lookup(lookup(1, Get, 20)));
        cache.complete_fetch(1, 20, 25);
        assert!(cache.lookup(lookup(1, Get, 30)), "whichever came first");
        cache.undo_fill(1, 10);
        assert!(cache.lookup(lookup(1, Get, 40)), "the failure of one says nothing of the other");
        cache.complete_fetch(1, 30, 45);
        cache.complete_fetch(1, 10, 50);
        assert!(
            cache.lookup(lookup(1, Get, 60)),
            "what fetched nothing, or failed, changes nothing when it ends"
        );
        assert!(cache.pending.is_empty());
    }

    #[test]
    fn what_broke_off_after_it_was_there_is_taken_back() {
        let mut cache = IdealCache::new(CacheBehaviour { collapses: false, ..CacheBehaviour::PLAIN });
        cache.lookup(lookup(1, Get, 10));
        cache.complete_fetch(1, 10, 15);
        assert!(cache.lookup(lookup(1, Get, 20)));
        cache.undo_fill(1, 10);
        assert!(!cache.lookup(lookup(1, Get, 30)));
    }

    #[test]
    fn a_reload_without_collapsing_leaves_the_older_copy_until_it_arrives() {
        let mut cache = IdealCache::new(CacheBehaviour { collapses: false, ..CacheBehaviour::PLAIN });
        cache.lookup(Lookup { fresh_until_ms: 1, ..lookup(1, Get, 10) });
        cache.complete_fetch(1, 10, 20);
        cache.lookup(lookup(1, Reload, 30));
        assert!(cache.lookup(lookup(1, Get, 40)));
        cache.complete_fetch(1, 30, 50);
        assert!(cache.lookup(lookup(1, Get, 5_000)), "the newer copy is fresh for longer");
    }

    #[test]
    fn a_confirming_conditional_request_fills_only_where_declared() {
        assert_eq!(hits(CacheBehaviour::PLAIN, &[ConditionalUnchanged, Get]), [false, false]);
        let fills = CacheBehaviour { conditional_fills: true, ..CacheBehaviour::PLAIN };
        assert_eq!(hits(fills, &[ConditionalUnchanged, Get]), [false, true]);
        assert_eq!(hits(CacheBehaviour::PLAIN, &[ConditionalChanged, Get]), [false, true]);
    }

    #[test]
    fn a_304_that_passes_by_confirms_an_expired_copy() {
        let mut cache = IdealCache::new(CacheBehaviour::PLAIN);
        let at = |request, s: u64| Lookup {
            fresh_until_ms: (s as u32 + 10) * 1_000,
            ..lookup(1, request, s * 1_000_000)
        };
        cache.lookup(at(Get, 0));
        cache.lookup(at(ConditionalUnchanged, 15));
        assert!(cache.lookup(at(Get, 20)));
    }

    #[test]
    fn a_reload_fills_only_where_declared_and_never_empties() {
        assert_eq!(hits(CacheBehaviour::PLAIN, &[Reload, Get]), [false, true]);
        let keeps = CacheBehaviour { reload_fills: false, ..CacheBehaviour::PLAIN };
        assert_eq!(hits(keeps, &[Reload, Get, Reload, Get]), [false, false, true, true]);
    }

    #[test]
    fn each_variant_is_fetched_and_a_post_drops_them_all() {
        for collapses in [true, false] {
            let mut cache = IdealCache::new(CacheBehaviour { collapses, ..CacheBehaviour::PLAIN });
            let mut hit = |key, at_us| {
                let is_hit = cache.lookup(variant(key, Get, at_us));
                cache.complete_fetch(key, at_us, at_us + 1);
                is_hit
            };
            assert_eq!(
                [(1, 10), (2, 20), (1, 30), (2, 40), (8, 50)].map(|(k, t)| hit(k, t)),
                [false, false, true, true, false]
            );
            cache.lookup(lookup(9, Get, 60));
            cache.complete_fetch(9, 60, 61);
            cache.lookup(lookup(7, Post, 70));
            assert_eq!([1, 2, 8].map(|key| cache.lookup(variant(key, Get, 80))), [false; 3]);
            assert!(cache.lookup(lookup(9, Get, 80)), "another object is left alone");
        }
    }

    #[test]
    fn a_post_drops_the_object_only_where_declared() {
        assert_eq!(hits(CacheBehaviour::PLAIN, &[Get, Post, Get]), [false, false, false]);
        assert_eq!(
            hits(CacheBehaviour { post_invalidates: false, ..CacheBehaviour::PLAIN }, &[Get, Post, Get]),
            [false, false, true]
        );
    }

    #[test]
    fn a_failed_fetch_is_taken_back_and_only_that() {
        let mut cache = IdealCache::new(CacheBehaviour::PLAIN);
        cache.lookup(lookup(1, Get, 10));
        cache.undo_fill(1, 11);
        assert!(cache.lookup(lookup(1, Get, 20)), "a request that filled nothing takes nothing back");
        cache.undo_fill(1, 10);
        assert!(!cache.lookup(lookup(1, Get, 30)));
    }

    #[test]
    fn a_failed_reload_leaves_the_older_copy() {
        let mut cache = IdealCache::new(CacheBehaviour::PLAIN);
        cache.lookup(lookup(1, Get, 10));
        cache.lookup(lookup(1, Reload, 20));
        cache.undo_fill(1, 20);
        assert!(cache.lookup(lookup(1, Get, 30)));
    }

    #[test]
    fn expired_objects_do_not_pile_up() {
        let mut cache = IdealCache::new(CacheBehaviour::PLAIN);
        for key in 0..100_000u64 {
            let at_us = key * 1_000;
            cache.lookup(Lookup {
                fresh_until_ms: (at_us / 1_000) as u32 + 1_000,
                ..lookup(key.wrapping_mul(0x9E37_79B9_7F4A_7C15), Get, at_us)
            });
        }
        assert!(cache.len() < 5_000, "{} objects for 1,000 that are fresh", cache.len());
    }

    fn any_request() -> impl Strategy<Value = RequestClass> {
        prop_oneof![
            4 => Just(Get),
            1 => Just(ConditionalChanged),
            1 => Just(ConditionalUnchanged),
            1 => Just(Reload),
            1 => Just(Range),
            1 => Just(Head),
            1 => Just(Post),
        ]
    }

    proptest! {
        #[test]
        fn gets_of_objects_that_stay_fresh_hit_all_but_the_first_time(
            keys in proptest::collection::vec(0u64..50, 0..500)
        ) {
            let mut cache = IdealCache::new(CacheBehaviour::PLAIN);
            let hits = keys.iter().enumerate().filter(|&(at, &key)| cache.lookup(lookup(key, Get, at as u64))).count();
            let distinct: HashSet<_> = keys.iter().collect();
            prop_assert_eq!(hits, keys.len() - distinct.len());
        }

        #[test]
        fn there_are_never_more_hits_than_revisits(
            requests in proptest::collection::vec((0u64..30, any_request(), any::<bool>(), 1u32..20), 0..400),
            flags in any::<[bool; 7]>(),
        ) {
            let [caches, head_fills, conditional_fills, reload_fills, range_fills, post_invalidates, collapses] = flags;
            let mut cache = IdealCache::new(CacheBehaviour {
                caches, head_fills, conditional_fills, reload_fills, range_fills, post_invalidates, collapses,
                ..CacheBehaviour::PLAIN
            });
            let mut hits = 0;
            let mut seen = HashSet::new();
            for (at, &(key, request, fails, life_s)) in requests.iter().enumerate() {
                let at_us = at as u64 * 100_000;
                let fresh_until_ms = (at_us / 1_000) as u32 + life_s * 1_000;
                // Every third object may not be stored.
                let cachable = key % 3 != 0;
                let hit = cache.lookup(Lookup { key, object: key, request, cachable, at_us, fresh_until_ms });
                prop_assert!(!hit || (cachable && caches && seen.contains(&key)));
                hits += usize::from(hit);
                seen.insert(key);
                if fails {
                    cache.undo_fill(key, at_us);
                } else {
                    cache.complete_fetch(key, at_us, at_us + 1);
                }
            }
            prop_assert!(cache.pending.is_empty());
            let cachable = requests.iter().filter(|(key, ..)| key % 3 != 0);
            let distinct: HashSet<_> = cachable.clone().map(|(key, ..)| key).collect();
            prop_assert!(hits <= cachable.count() - distinct.len());
        }
    }
}
