use proptest::prelude::{Just, prop_oneof};

use super::*;
use crate::size::http_testing::{any_requests, draw, requests};
use crate::size::policy::Policy;
use crate::size::simulate::{self, lru_in_one_pass};

fn get(life_s: u32, version: u32) -> RequestSemantics {
    RequestSemantics { life_s, version, ..RequestSemantics::PLAIN }
}

fn of(kind: CacheRequest) -> RequestSemantics {
    RequestSemantics { kind, is_counted: false, ..RequestSemantics::PLAIN }
}

/// Hits and validations of an infinite cache.
fn figures(behaviour: CacheBehaviour, list: &[(u64, i64, RequestSemantics)]) -> (u64, u64) {
    let counts = simulate::infinite(&requests(behaviour, list), 0.into()).total();
    (counts.hits, counts.validated)
}

#[test]
fn a_copy_is_a_hit_until_it_expires_and_is_then_confirmed_or_fetched_anew() {
    let fresh = [(1, 0, get(5, 0)), (1, 4, get(5, 0))];
    assert_eq!(figures(USUAL, &fresh), (1, 0));
    let confirmed = [(1, 0, get(5, 0)), (1, 5, get(5, 0)), (1, 9, get(5, 0))];
    assert_eq!(figures(USUAL, &confirmed), (1, 1), "a validation makes the copy fresh again");
    let modified = [(1, 0, get(5, 0)), (1, 5, get(5, 1)), (1, 9, get(5, 1))];
    assert_eq!(figures(USUAL, &modified), (1, 0));
    let silent = [(1, 0, get(5, NO_VALIDATOR)), (1, 5, get(5, NO_VALIDATOR))];
    assert_eq!(figures(USUAL, &silent), (0, 0), "without a date nothing is confirmed");
}

#[test]
fn other_requests_act_on_the_cache_as_it_is_declared_and_are_not_counted() {
    let after = |kind, behaviour| {
        let list = [(1, 0, of(kind)), (1, 1, get(FOREVER_S, 0))];
        let counts = simulate::infinite(&requests(behaviour, &list), 0.into()).total();
        assert_eq!(counts.requests, 1, "{kind:?}");
        counts.hits
    };
    let none = CacheBehaviour { conditional_fills: false, reload_fills: false, range_fills: false, ..USUAL };
    for kind in [CacheRequest::ConditionalUnchanged, CacheRequest::Reload, CacheRequest::Range] {
        assert_eq!((after(kind, USUAL), after(kind, none)), (1, 0), "{kind:?}");
    }
    assert_eq!((after(CacheRequest::ConditionalChanged, none), after(CacheRequest::Head, USUAL)), (1, 0));
    let dropped = [(1, 0, get(FOREVER_S, 0)), (1, 1, of(CacheRequest::Post)), (1, 2, get(FOREVER_S, 0))];
    assert_eq!(figures(USUAL, &dropped).0, 0);
    assert_eq!(figures(CacheBehaviour { post_invalidates: false, ..USUAL }, &dropped).0, 1);
}

#[test]
fn a_cache_that_does_not_collapse_requests_has_a_response_only_when_it_has_arrived() {
    let behaviour = CacheBehaviour { collapses: false, ..USUAL };
    let list: Vec<_> = [0, 0, 1, 2].map(|at_s| (1, at_s, RequestSemantics::PLAIN)).to_vec();
    let mut requests = requests(behaviour, &list);
    requests.http.as_mut().unwrap().response_ms = 1500;
    assert!(!keeps_one_list(&requests));
    assert_eq!(simulate::infinite(&requests, 0.into()).total().hits, 1);
    requests.http.as_mut().unwrap().behaviour = USUAL;
    assert_eq!(simulate::infinite(&requests, 0.into()).total().hits, 3);
}

#[test]
fn a_response_that_takes_time_takes_room_when_it_arrives() {
    // Objects of ten bytes in a cache of ten: 1 is stored, 2 comes and takes its room at 2.5 s.
    let list: Vec<_> = [(1, 0), (2, 1), (1, 2), (2, 3), (1, 3)]
        .map(|(key, at_s)| (key, at_s, RequestSemantics::PLAIN))
        .to_vec();
    for behaviour in [USUAL, CacheBehaviour { collapses: false, ..USUAL }] {
        let mut requests = requests(behaviour, &list);
        let http = requests.http.as_mut().unwrap();
        http.semantics.iter_mut().for_each(|semantics| semantics.takes_ms = 1500);
        http.semantics[0].takes_ms = 500;
        let hits: Vec<u64> = [Policy::LRU, Policy::Belady]
            .map(|policy| simulate::cache(&requests, policy, 10, 0.into()).hits)
            .to_vec();
        // Room at the request, as for policies that know the future, has 1 evicted at 1 s.
        assert_eq!(hits[0], 2, "1 at 2 s, 2 at 3 s");
        assert!(hits[1] <= simulate::cache(&requests, Policy::BoundAbove, 10, 0.into()).hits);
    }
}

proptest::proptest! {
    #[test]
    fn an_infinite_cache_hits_what_the_ideal_cache_of_a_run_hits(list in any_requests()) {
        use assay_cache::ideal::{FOREVER, IdealCache, Lookup};
        let list = draw(&list);
        let mut ideal = IdealCache::new(USUAL);
        let mut hits = 0;
        for (key, at_s, semantics) in &list {
            let at_ms = *at_s as u32 * 1000;
            let fresh_until_ms = if semantics.life_s == FOREVER_S { FOREVER } else { at_ms + semantics.life_s * 1000 };
            let lookup = Lookup {
                key: *key, object: *key, request: semantics.kind, cachable: true, at_us: u64::from(at_ms) * 1000, fresh_until_ms,
            };
            hits += u64::from(ideal.lookup(lookup) && semantics.is_counted);
        }
        proptest::prop_assert_eq!(figures(USUAL, &list).0, hits);
    }

    #[test]
    fn no_policy_is_above_the_upper_bound_and_one_pass_is_exact_where_it_may_be_used(
        list in any_requests(), capacity in 0u64..140, response_ms in prop_oneof![Just(0u64), 1u64..5000], collapses: bool
    ) {
        let mut requests = requests(CacheBehaviour { collapses, ..USUAL }, &draw(&list));
        requests.http.as_mut().unwrap().response_ms = response_ms;
        // Not what the cache without bounds hits: one that has evicted a copy has a fresher one later.
        let above = simulate::cache(&requests, Policy::BoundAbove, capacity, 3.into());
        for policy in Policy::ALL {
            let counts = simulate::cache(&requests, policy, capacity, 3.into());
            proptest::prop_assert!(counts.hits <= above.hits, "{:?} {:?} {:?}", policy, counts, above);
        }
        if capacity >= 10 && keeps_one_list(&requests) {
            let single = simulate::cache(&requests, Policy::LRU, capacity, 3.into());
            proptest::prop_assert_eq!(lru_in_one_pass(&requests, &[capacity], 3.into())[0].total(), single);
        }
    }
}
