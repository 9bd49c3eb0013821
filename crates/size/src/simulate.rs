//! What a cache of one policy and one size makes of the requests, and what an infinite one does.

pub use assay_cache::policy::Admission;
use assay_cache::policy::belady::{Belady, NEVER};
use assay_cache::policy::farthest::Farthest;
use assay_cache::policy::ghosts::{Arc, TwoQ};
use assay_cache::policy::queues::{Clock, Fifo, Lru, Sieve};
use assay_cache::policy::random::Random;
use assay_cache::policy::ranks::{Rank, Ranked};
use assay_cache::policy::segments::{S3Fifo, Slru};
use assay_cache::policy::tiny::WTinyLfu;
use assay_cache::policy::{Lookup, Order, Store};

use crate::bounds::{self, Side};
use crate::distance::{BATCH, Distances};
use crate::http;
use crate::policy::Policy;
use crate::requests::{Request, Requests, UNCACHABLE};

/// Seed of random replacement: two simulations of the same requests agree.
const RANDOM_SEED: u64 = 1;

/// Requests and hits, and the bytes of the responses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// All requests.
    pub requests: u64,
    /// Bytes of their responses.
    pub bytes: u64,
    /// Requests that the cache served.
    pub hits: u64,
    /// Bytes of their responses.
    pub hit_bytes: u64,
    /// Requests whose copy had expired, and was confirmed by the origin: no hits, but no bodies were fetched either.
    pub validated: u64,
}

impl Counts {
    #[inline]
    pub(crate) fn count(&mut self, request: &Request, is_hit: bool) {
        self.requests += 1;
        self.bytes += request.sent_bytes;
        if is_hit {
            self.hits += 1;
            self.hit_bytes += request.sent_bytes;
        }
    }

    /// Hits over requests; none: there are no requests.
    pub fn dhr(&self) -> Option<f64> {
        assay_measurement::ratios::ratio(self.hits, self.requests)
    }

    /// Bytes of hits over bytes; none: there are no bytes.
    pub fn bhr(&self) -> Option<f64> {
        assay_measurement::ratios::ratio(self.hit_bytes, self.bytes)
    }
}

/// What holds for every cache that is simulated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rules {
    /// So many requests fill the cache and are not counted.
    pub warm_up: usize,
    /// What is stored.
    pub admission: Admission,
}

impl From<usize> for Rules {
    fn from(warm_up: usize) -> Self {
        Self { warm_up, ..Self::default() }
    }
}

/// A cache of one policy and one size.
pub fn cache(requests: &Requests, policy: Policy, capacity: u64, rules: Rules) -> Counts {
    let objects = requests.objects;
    let ranked = |rank| run(requests, Ranked::new(rank, objects), capacity, rules);
    match policy {
        Policy::Lru => run(requests, Lru::new(objects), capacity, rules),
        Policy::Fifo => run(requests, Fifo::new(objects), capacity, rules),
        Policy::Clock => run(requests, Clock::new(objects), capacity, rules),
        Policy::Sieve => run(requests, Sieve::new(objects), capacity, rules),
        Policy::Slru => run(requests, Slru::new(capacity, objects), capacity, rules),
        Policy::S3Fifo => run(requests, S3Fifo::new(capacity, objects), capacity, rules),
        Policy::Lfu => ranked(Rank::Frequency),
        Policy::Lfuda => ranked(Rank::AgedFrequency),
        Policy::Gds => ranked(Rank::InverseSize),
        Policy::Gdsf => ranked(Rank::FrequencyBySize),
        Policy::Random => run(requests, Random::new(RANDOM_SEED, objects), capacity, rules),
        Policy::TwoQ => run(requests, TwoQ::new(capacity, objects), capacity, rules),
        Policy::Arc => run(requests, Arc::new(capacity, objects), capacity, rules),
        Policy::WTinyLfu => run(requests, WTinyLfu::new(capacity, objects), capacity, rules),
        Policy::Belady => {
            let tell = |order: &mut Belady, _, next| order.next_is(next);
            knowing(requests, Belady::new(objects), capacity, rules, tell)
        }
        Policy::BeladySize => {
            let order = Farthest::new(RANDOM_SEED, objects);
            knowing(requests, order, capacity, rules, Farthest::next_is)
        }
        Policy::BoundAbove => bounds::bound(requests, Side::Above, capacity, rules.warm_up),
        Policy::BoundBelow => bounds::bound(requests, Side::Below, capacity, rules.warm_up),
    }
}

fn run<O: Order>(requests: &Requests, order: O, capacity: u64, rules: Rules) -> Counts {
    if let Some(http) = &requests.http {
        return http::run(requests, http, (order, capacity), rules, |_, _| {});
    }
    let mut store = Store::new(order, capacity, requests.objects).admitting(rules.admission);
    each(requests, rules.warm_up, |_, request| store.request(request.object, request.bytes) == Lookup::Hit)
}

/// The same for an order that is told the number of each request and of the next one for its object.
fn knowing<O: Order>(
    requests: &Requests,
    order: O,
    capacity: u64,
    rules: Rules,
    tell: impl Fn(&mut O, u64, u64),
) -> Counts {
    let next = next_requests(requests);
    let before = |order: &mut O, number: usize| {
        tell(order, number as u64, if next[number] == u32::MAX { NEVER } else { u64::from(next[number]) });
    };
    if let Some(http) = &requests.http {
        return http::run(requests, http, (order, capacity), rules, before);
    }
    let mut store = Store::new(order, capacity, requests.objects).admitting(rules.admission);
    each(requests, rules.warm_up, |number, request| {
        before(store.order_mut(), number);
        store.request(request.object, request.bytes) == Lookup::Hit
    })
}

/// The number of each request's next one for the same object; 2^32 − 1: there is none.
fn next_requests(requests: &Requests) -> Vec<u32> {
    let mut later = vec![u32::MAX; requests.objects];
    let mut next = vec![u32::MAX; requests.list.len()];
    for (number, request) in requests.list.iter().enumerate().rev() {
        if let Some(later) = later.get_mut(request.object as usize) {
            next[number] = std::mem::replace(later, number as u32);
        }
    }
    next
}

/// A cache without bounds: it misses the first request of an object, and those of which the size has changed.
pub fn infinite(requests: &Requests, warm_up: usize) -> Counts {
    if let Some(http) = &requests.http {
        return http::infinite(requests, http, warm_up);
    }
    let mut stored = vec![u64::MAX; requests.objects];
    each(requests, warm_up, |_, request| {
        let stored = &mut stored[request.object as usize];
        std::mem::replace(stored, request.bytes) == request.bytes
    })
}

/// LRU caches of all these sizes, smallest first, in one pass. Exact if no object ever changes its size, none is larger than
/// the smallest of the caches, and nothing that is stored expires ([`http::keeps_one_list`]): then what a cache holds is the
/// beginning of one list for all of them.
pub fn lru_in_one_pass(requests: &Requests, sizes: &[u64], warm_up: usize) -> Vec<Counts> {
    let mut distances = Distances::new(requests.objects);
    let mut warmed = 0;
    // Hits by the smallest cache that has them; what fits into none is counted behind the last.
    let mut by_size = vec![Counts::default(); sizes.len() + 1];
    let all = each(requests, warm_up, |number, request| {
        if number >= warmed {
            let coming = requests.list[number..].iter().take(BATCH).map(|request| request.object);
            std::hint::black_box(distances.warm(coming));
            warmed = number + BATCH;
        }
        let Some(distance) = distances.request(request.object, request.bytes) else { return false };
        if number >= warm_up && requests.is_counted(number) {
            by_size[sizes.partition_point(|size| *size < distance)].count(request, true);
        }
        true
    });
    let (mut hits, mut hit_bytes) = (0, 0);
    let add_up = |counts: &Counts| {
        hits += counts.hits;
        hit_bytes += counts.hit_bytes;
        Counts { hits, hit_bytes, ..all }
    };
    by_size[..sizes.len()].iter().map(add_up).collect()
}

/// Counts the requests after the warm-up; `is_hit` sees all those that a cache may serve.
#[inline]
fn each(requests: &Requests, warm_up: usize, mut is_hit: impl FnMut(usize, &Request) -> bool) -> Counts {
    let mut counts = Counts::default();
    for (number, request) in requests.list.iter().enumerate() {
        let is_hit = request.object != UNCACHABLE && is_hit(number, request);
        if number >= warm_up && requests.is_counted(number) {
            counts.count(request, is_hit);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::{Gather, Sizes};
    use proptest::test_runner::TestCaseError;

    fn requests(draws: &[(u64, u8)], changing: bool) -> Requests {
        let mut gather = Gather::new(Sizes::Within(0));
        for &(key, kind) in draws {
            let bytes = 1 + key % 7 + if changing { u64::from(kind / 5) } else { 0 };
            match kind {
                0 => gather.uncachable(bytes, None),
                1 => gather.part(key, 1, None),
                _ => assert!(gather.whole(key, bytes, None)),
            }
        }
        gather.finish()
    }

    /// No cache is above the upper bound.
    fn prop_assert_below(policy: Policy, counts: &Counts, above: &Counts) -> Result<(), TestCaseError> {
        proptest::prop_assert!(counts.hits <= above.hits, "{policy:?} {counts:?} {above:?}");
        proptest::prop_assert!(counts.hit_bytes <= above.hit_bytes, "{policy:?} {counts:?} {above:?}");
        Ok(())
    }

    proptest::proptest! {
        #[test]
        fn one_pass_gives_what_a_cache_of_each_size_gives(
            draws in proptest::collection::vec((0u64..40, 0u8..12), 1..400), warm_up in 0usize..50
        ) {
            let requests = requests(&draws, false);
            let sizes = [7, 8, 15, 40, 90, 1000];
            let singly = sizes.map(|size| cache(&requests, Policy::Lru, size, warm_up.into()));
            proptest::prop_assert_eq!(lru_in_one_pass(&requests, &sizes, warm_up), singly);
        }

        #[test]
        fn no_cache_hits_more_than_an_infinite_one_and_a_huge_one_hits_as_much(
            draws in proptest::collection::vec((0u64..30, 0u8..12), 1..300), capacity in 0u64..100
        ) {
            let requests = requests(&draws, true);
            let most = infinite(&requests, 0);
            let above = cache(&requests, Policy::BoundAbove, capacity, 0.into());
            for policy in Policy::ALL {
                let counts = cache(&requests, policy, capacity, 0.into());
                prop_assert_below(policy, &counts, &above)?;
                proptest::prop_assert!(counts.hits <= most.hits && counts.requests == draws.len() as u64);
                proptest::prop_assert_eq!(cache(&requests, policy, u64::MAX / 2, 0.into()), most, "{:?}", policy);
            }
        }
    }

    #[test]
    fn requests_of_the_warm_up_fill_the_cache_and_are_not_counted() {
        let requests = requests(&[(1, 9), (2, 9), (1, 9), (2, 0), (3, 9)], false);
        let counts = cache(&requests, Policy::Lru, 100, 2.into());
        assert_eq!((counts.requests, counts.hits), (3, 1));
        assert_eq!((counts.dhr(), counts.bhr()), (Some(1.0 / 3.0), Some(2.0 / 9.0)));
        assert_eq!(infinite(&requests, 2), counts);
        assert_eq!(cache(&requests, Policy::Lru, 100, 9.into()).dhr(), None);
    }

    #[test]
    fn what_is_not_admitted_passes_by_and_evicts_nothing() {
        let list = [(1, 9), (20, 9), (1, 9), (20, 9), (1, 9), (2, 9), (1, 9)];
        let requests = requests(&list, false);
        let hits = |admission| cache(&requests, Policy::Lru, 9, Rules { admission, warm_up: 0 }).hits;
        // Objects of 2, 7 and 3 bytes.
        assert_eq!(hits(Admission::All), 4);
        assert_eq!(hits(Admission::UpTo(6)), 3);
        assert_eq!(hits(Admission::SecondRequest), 2);
    }
}
