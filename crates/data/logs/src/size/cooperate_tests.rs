//! Caches that work together: what each hits, and what is where when.

use super::*;
use crate::size::http_testing::{any_requests, gathered};
use crate::size::policy::Policy;
use crate::size::simulate::cache;
use assay_cache::behaviour::CacheBehaviour;

fn single(capacity_bytes: u64) -> Hierarchy {
    Hierarchy::layers(&[capacity_bytes], 1, Layout::BODIES)
}

proptest::proptest! {
    #[test]
    fn one_cache_hits_what_its_policy_hits_and_caches_of_nothing_before_it_hit_nothing(
        list in any_requests(), capacity in 0u64..140, response_ms in 0u64..4000, collapses: bool
    ) {
        let mut requests = gathered(CacheBehaviour { collapses, ..USUAL }, &list);
        requests.http.as_mut().unwrap().response_ms = if response_ms < 1000 { 0 } else { response_ms };
        let alone = simulate_hierarchy(&requests, &single(capacity), 3, 4).total();
        for (policy, _) in Replacement::ALL {
            let by_itself = cache(&requests, Policy::Online(policy), capacity, 3.into());
            let alone = simulate_hierarchy(&requests, &Hierarchy { policy, ..single(capacity) }, 3, 4).total();
            proptest::prop_assert_eq!(HitCounts { validated: 0, collapsible: 0, ..by_itself }, alone, "{:?}", policy);
        }
        let behind = Hierarchy::layers(&[0, 0, capacity], 3, Layout::BODIES);
        let found = simulate_hierarchy(&requests, &behind, 3, 4);
        proptest::prop_assert_eq!(found.total().requests, alone.requests);
        proptest::prop_assert!(found.nodes[..3].iter().all(|node| node.own_hits == 0));
    }

    #[test]
    fn siblings_with_room_for_everything_hit_what_one_cache_hits(list in any_requests()) {
        // Plain requests only: others act on the cache that they enter, and on no other.
        let list: Vec<_> = list.into_iter().map(|(key, later, _, _, _)| (key, later, 7, false, 9)).collect();
        let mut requests = gathered(USUAL, &list);
        requests.clients = (0..requests.list.len() as u32).map(|number| number % 5).collect();
        let mut siblings = Hierarchy::layers(&[1 << 20], 3, Layout::BODIES);
        for (place, node) in siblings.nodes.iter_mut().enumerate() {
            node.siblings = (0..3).filter(|other| *other != place).collect();
        }
        let found = simulate_hierarchy(&requests, &siblings, 0, 1);
        let one = simulate_hierarchy(&requests, &siblings.as_one(), 0, 1);
        proptest::prop_assert_eq!(found.total(), one.total());
        let apart = simulate_hierarchy(&requests, &siblings.apart(), 0, 1).total();
        let gained: u64 = found.nodes.iter().map(|node| node.sibling_hits).sum();
        proptest::prop_assert_eq!(apart.hits + gained, found.total().hits);
    }
}

/// Requests of objects of ten bytes by clients in turn, without an end of their lifetimes.
fn plain(keys: &[u64], clients: &[u32]) -> Requests {
    let list: Vec<_> = keys.iter().map(|key| (*key, 1, 7, false, 9)).collect();
    let mut requests = gathered(USUAL, &list);
    requests.clients = clients.to_vec();
    requests
}

#[test]
fn a_cache_makes_room_for_a_response_when_it_arrives() {
    // Room for one object, and responses that take five seconds. The second object is requested at 7 s.
    let at = [(1, 0), (1, 4), (1, 6), (2, 7), (1, 8), (1, 13), (2, 14), (1, 19)];
    let list: Vec<_> = at.iter().map(|(key, at_s)| (*key, *at_s, RequestSemantics::PLAIN)).collect();
    let hits = |behaviour, response_ms| {
        let mut requests = crate::size::http_testing::requests(behaviour, &list);
        requests.http.as_mut().unwrap().response_ms = response_ms;
        simulate_hierarchy(&requests, &single(10), 0, 1).total().hits
    };
    let alone = CacheBehaviour { collapses: false, ..USUAL };
    // At 6 and 8 s; the second object at 14 s, and at 19 s the first, which was fetched again at 13 s.
    assert_eq!(hits(alone, 5000), 4);
    // At 4, 6 and 13 s.
    assert_eq!(hits(alone, 0), 3);
    // A cache that collapses requests serves the one at 4 s as well.
    assert_eq!(hits(USUAL, 5000), 5);
}

#[test]
fn what_is_dropped_on_its_way_is_not_stored_and_what_is_fetched_anew_replaces_it() {
    let get = |life_s| RequestSemantics { life_s, version: NO_VALIDATOR, ..RequestSemantics::PLAIN };
    let post = RequestSemantics { kind: CacheRequest::Post, is_counted: false, ..RequestSemantics::PLAIN };
    let list = [
        (1, 0, get(9)),
        (1, 1, post),
        (1, 6, get(9)),
        (1, 12, get(9)),
        (1, 16, get(9)),
        (1, 18, get(9)),
        (1, 22, get(9)),
    ];
    let behaviour = CacheBehaviour { collapses: false, ..USUAL };
    let mut requests = crate::size::http_testing::requests(behaviour, &list);
    requests.http.as_mut().unwrap().response_ms = 5000;
    // What was fetched at 6 s is there at 12, and has expired at 16; what comes then is there at 22.
    assert_eq!(simulate_hierarchy(&requests, &single(10), 0, 1).total().hits, 2);
}

#[test]
fn what_a_sibling_gives_is_stored_unless_it_is_proxy_only() {
    let requests = plain(&[1, 1, 1], &[0, 1, 1]);
    let mut pair = Hierarchy::layers(&[100], 2, Layout::BODIES);
    (pair.nodes[0].siblings, pair.nodes[1].siblings) = (vec![1], vec![0]);
    let served = |pair: &Hierarchy| simulate_hierarchy(&requests, pair, 0, 1).nodes[1];
    assert_eq!((served(&pair).sibling_hits, served(&pair).own_hits), (1, 1));
    pair.nodes[1].proxy_only = true;
    assert_eq!((served(&pair).sibling_hits, served(&pair).own_hits), (2, 0));
}

#[test]
fn a_cache_may_have_a_policy_and_an_admission_of_its_own() {
    // Of a cache for two objects: the first is requested often, the others once each.
    let requests = plain(&[1, 1, 1, 2, 3, 1, 4, 5, 1], &[0; 9]);
    let hits = |policy, admission| {
        let mut one = single(20);
        (one.nodes[0].policy, one.nodes[0].admission) = (policy, admission);
        simulate_hierarchy(&requests, &one, 0, 1).total().hits
    };
    assert_eq!([hits(None, Admission::All), hits(Some(Replacement::Lfu), Admission::All)], [2, 4]);
    assert_eq!([hits(None, Admission::TinyLfu), hits(None, Admission::SecondRequest)], [4, 3]);
}

#[test]
fn a_parent_is_filled_by_its_children_and_serves_them() {
    let requests = plain(&[1, 1, 2, 2], &[0, 1, 1, 1]);
    let found = simulate_hierarchy(&requests, &Hierarchy::layers(&[100, 100], 2, Layout::BODIES), 0, 1);
    assert_eq!((found.nodes[1].parent_hits, found.nodes[1].own_hits), (1, 1));
    assert_eq!(
        (found.nodes[2].from_caches, found.nodes[2].from_caches_hits, found.nodes[2].requests),
        (3, 1, 0)
    );
    assert_eq!((found.total().hits, found.total().requests), (2, 4));
}
