//! What a cache of one policy and one size makes of the requests, and what an infinite one does.

use assay_cache::policy::belady::{Belady, NEVER};
use assay_cache::policy::queues::{Clock, Fifo, Lru, Sieve};
use assay_cache::policy::random::Random;
use assay_cache::policy::ranks::{Rank, Ranked};
use assay_cache::policy::segments::{S3Fifo, Slru};
use assay_cache::policy::{Lookup, Order, Store};

use crate::distance::{BATCH, Distances};
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
}

impl Counts {
    #[inline]
    fn count(&mut self, request: &Request, is_hit: bool) {
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

/// A cache of one policy and one size. The first `warm_up` requests fill it and are not counted.
pub fn cache(requests: &Requests, policy: Policy, capacity: u64, warm_up: usize) -> Counts {
    let objects = requests.objects;
    let ranked = |rank| run(requests, Ranked::new(rank, objects), capacity, warm_up);
    match policy {
        Policy::Lru => run(requests, Lru::new(objects), capacity, warm_up),
        Policy::Fifo => run(requests, Fifo::new(objects), capacity, warm_up),
        Policy::Clock => run(requests, Clock::new(objects), capacity, warm_up),
        Policy::Sieve => run(requests, Sieve::new(objects), capacity, warm_up),
        Policy::Slru => run(requests, Slru::new(capacity, objects), capacity, warm_up),
        Policy::S3Fifo => run(requests, S3Fifo::new(capacity, objects), capacity, warm_up),
        Policy::Lfu => ranked(Rank::Frequency),
        Policy::Lfuda => ranked(Rank::AgedFrequency),
        Policy::Gds => ranked(Rank::InverseSize),
        Policy::Gdsf => ranked(Rank::FrequencyBySize),
        Policy::Random => run(requests, Random::new(RANDOM_SEED, objects), capacity, warm_up),
        Policy::Belady => belady(requests, capacity, warm_up),
    }
}

fn run<O: Order>(requests: &Requests, order: O, capacity: u64, warm_up: usize) -> Counts {
    let mut store = Store::new(order, capacity, requests.objects);
    each(requests, warm_up, |_, request| store.request(request.object, request.bytes) == Lookup::Hit)
}

fn belady(requests: &Requests, capacity: u64, warm_up: usize) -> Counts {
    let next = next_requests(requests);
    let mut store = Store::new(Belady::new(requests.objects), capacity, requests.objects);
    each(requests, warm_up, |number, request| {
        store.order_mut().next_is(if next[number] == u32::MAX { NEVER } else { u64::from(next[number]) });
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
    let mut stored = vec![u64::MAX; requests.objects];
    each(requests, warm_up, |_, request| {
        let stored = &mut stored[request.object as usize];
        std::mem::replace(stored, request.bytes) == request.bytes
    })
}

/// LRU caches of all these sizes, smallest first, in one pass. Exact if no object ever changes its size and none is larger than
/// the smallest of the caches: then what a cache holds is the beginning of one list for all of them.
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
        if number >= warm_up {
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
        if number >= warm_up {
            counts.count(request, is_hit);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::{Gather, Sizes};

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

    proptest::proptest! {
        #[test]
        fn one_pass_gives_what_a_cache_of_each_size_gives(
            draws in proptest::collection::vec((0u64..40, 0u8..12), 1..400), warm_up in 0usize..50
        ) {
            let requests = requests(&draws, false);
            let sizes = [7, 8, 15, 40, 90, 1000];
            let singly = sizes.map(|size| cache(&requests, Policy::Lru, size, warm_up));
            proptest::prop_assert_eq!(lru_in_one_pass(&requests, &sizes, warm_up), singly);
        }

        #[test]
        fn no_cache_hits_more_than_an_infinite_one_and_a_huge_one_hits_as_much(
            draws in proptest::collection::vec((0u64..30, 0u8..12), 1..300), capacity in 0u64..100
        ) {
            let requests = requests(&draws, true);
            let most = infinite(&requests, 0);
            for policy in Policy::ALL {
                let counts = cache(&requests, policy, capacity, 0);
                proptest::prop_assert!(counts.hits <= most.hits && counts.requests == draws.len() as u64);
                proptest::prop_assert_eq!(cache(&requests, policy, u64::MAX / 2, 0), most, "{:?}", policy);
            }
        }
    }

    #[test]
    fn requests_of_the_warm_up_fill_the_cache_and_are_not_counted() {
        let requests = requests(&[(1, 9), (2, 9), (1, 9), (2, 0), (3, 9)], false);
        let counts = cache(&requests, Policy::Lru, 100, 2);
        assert_eq!((counts.requests, counts.hits), (3, 1));
        assert_eq!((counts.dhr(), counts.bhr()), (Some(1.0 / 3.0), Some(2.0 / 9.0)));
        assert_eq!(infinite(&requests, 2), counts);
        assert_eq!(cache(&requests, Policy::Lru, 100, 9).dhr(), None);
    }
}
