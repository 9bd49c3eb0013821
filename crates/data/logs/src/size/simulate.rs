//! What a cache of one policy and one size makes of the requests, and what an infinite one does.

pub use assay_cache::policy::Admission;
use assay_cache::policy::belady::{Belady, NEVER};
use assay_cache::policy::belady_size::BeladySize;
use assay_cache::policy::ghosts::{Arc, TwoQ};
use assay_cache::policy::greedy_dual::{GreedyDual, RankFunction};
use assay_cache::policy::lfu::{Lfu, Lfuda};
use assay_cache::policy::queues::{Clock, Fifo, Lru, Sieve};
use assay_cache::policy::random::Random;
use assay_cache::policy::replacement::Replacement;
use assay_cache::policy::segments::{S3Fifo, Slru};
use assay_cache::policy::tinylfu::TinyLfu;
use assay_cache::policy::w_tinylfu::WTinyLfu;
use assay_cache::policy::{EvictionPolicy, LookupResult, Store};

use crate::size::bounds::{self, BoundSide};
use crate::size::counter::{Counter, OutcomeFlags};
pub use crate::size::counter::{HitCounts, SimulationRules, SimulationTally};
use crate::size::distance::{BATCH, ReuseDistances, StoredSize};
use crate::size::http::{self, AllocationTime, CacheSpec};
use crate::size::policy::Policy;
use crate::size::requests::{Requests, TraceRequest, UNCACHABLE};

/// Seed of random replacement: two simulations of the same requests agree.
const RANDOM_SEED: u64 = 1;

/// A cache of one policy and one size.
pub fn cache(requests: &Requests, policy: Policy, capacity: u64, rules: SimulationRules) -> HitCounts {
    tally(requests, policy, capacity, rules).total()
}

/// The same in parts.
pub fn tally(requests: &Requests, policy: Policy, capacity: u64, rules: SimulationRules) -> SimulationTally {
    if rules.admission == Admission::TinyLfu {
        return filtered(requests, policy, capacity, rules);
    }
    let objects = requests.objects;
    match policy {
        Policy::Online(policy) => unfiltered(requests, policy, capacity, rules),
        Policy::Belady => {
            let announce = |order: &mut Belady, _, next| order.set_next_request(next);
            offline(requests, Belady::new(objects), capacity, rules, announce)
        }
        Policy::BeladySize => {
            let order = BeladySize::new(RANDOM_SEED, objects).with_shares(requests.shares());
            offline(requests, order, capacity, rules, BeladySize::set_next_request)
        }
        Policy::BoundAbove => bounds::bound(requests, BoundSide::Above, capacity, rules.warm_up),
        Policy::BoundBelow => bounds::bound(requests, BoundSide::Below, capacity, rules.warm_up),
    }
}

/// The same of a real cache's policy, each with code of its own: none is called through a table.
fn unfiltered(
    requests: &Requests,
    policy: Replacement,
    capacity: u64,
    rules: SimulationRules,
) -> SimulationTally {
    let objects = requests.objects;
    let ranked =
        |rank| run(requests, GreedyDual::new(rank, objects).with_shares(requests.shares()), capacity, rules);
    match policy {
        Replacement::Lru => run(requests, Lru::new(objects), capacity, rules),
        Replacement::Fifo => run(requests, Fifo::new(objects), capacity, rules),
        Replacement::Clock => run(requests, Clock::new(objects), capacity, rules),
        Replacement::Sieve => run(requests, Sieve::new(objects), capacity, rules),
        Replacement::Slru => run(requests, Slru::new(capacity, objects), capacity, rules),
        Replacement::S3Fifo => run(requests, S3Fifo::new(capacity, objects), capacity, rules),
        Replacement::Lfu => run(requests, Lfu::new(objects), capacity, rules),
        Replacement::Lfuda => run(requests, Lfuda::new(objects), capacity, rules),
        Replacement::Gds => ranked(RankFunction::InverseSize),
        Replacement::Gdsf => ranked(RankFunction::FrequencyBySize),
        Replacement::Random => run(requests, Random::new(RANDOM_SEED, objects), capacity, rules),
        Replacement::TwoQ => run(requests, TwoQ::new(capacity, objects), capacity, rules),
        Replacement::Arc => run(requests, Arc::new(capacity, objects), capacity, rules),
        Replacement::WTinyLfu => run(requests, WTinyLfu::new(capacity, objects), capacity, rules),
    }
}

/// The same behind TinyLFU. Bounds are of any cache, with whatever admission.
fn filtered(requests: &Requests, policy: Policy, capacity: u64, rules: SimulationRules) -> SimulationTally {
    let objects = requests.objects;
    match policy {
        Policy::Online(policy) => {
            let order = policy.order_by_shares(capacity, objects, requests.shares());
            run(requests, TinyLfu::new(order, objects), capacity, rules)
        }
        Policy::Belady => {
            let order = TinyLfu::new(Belady::new(objects), objects);
            let announce = |order: &mut TinyLfu<Belady>, _, next| order.order_mut().set_next_request(next);
            offline(requests, order, capacity, rules, announce)
        }
        Policy::BeladySize => {
            let order = BeladySize::new(RANDOM_SEED, objects).with_shares(requests.shares());
            let order = TinyLfu::new(order, objects);
            let announce =
                |order: &mut TinyLfu<BeladySize>, now, next| order.order_mut().set_next_request(now, next);
            offline(requests, order, capacity, rules, announce)
        }
        Policy::BoundAbove | Policy::BoundBelow => {
            tally(requests, policy, capacity, SimulationRules { admission: Admission::All, ..rules })
        }
    }
}

fn run<O: EvictionPolicy>(
    requests: &Requests,
    order: O,
    capacity: u64,
    rules: SimulationRules,
) -> SimulationTally {
    if let Some(http) = &requests.http {
        let cache = CacheSpec { policy: order, capacity, allocation: AllocationTime::Arrival };
        return http::run(requests, http, cache, rules, |_, _| {});
    }
    let mut store = Store::new(order, capacity, requests.objects).admitting(rules.admission);
    let mut prefetched = 0;
    count_hits(requests, rules, |number, request| {
        prefetch(&store, requests, number, &mut prefetched);
        store.request(request.object, request.bytes) == LookupResult::Hit
    })
}

/// Reads what the next requests need of a store, as soon as all that were read for have been made.
#[inline]
fn prefetch<O: EvictionPolicy>(store: &Store<O>, requests: &Requests, number: usize, prefetched: &mut usize) {
    if number >= *prefetched {
        let coming = requests.list[number..].iter().take(BATCH).map(|request| request.object);
        std::hint::black_box(store.prefetch(coming));
        *prefetched = number + BATCH;
    }
}

/// The same for an order that is told the number of each request and of the next one for its object.
fn offline<O: EvictionPolicy>(
    requests: &Requests,
    order: O,
    capacity: u64,
    rules: SimulationRules,
    announce: impl Fn(&mut O, u64, u64),
) -> SimulationTally {
    let next = next_requests(requests);
    let before = |order: &mut O, number: usize| {
        announce(
            order,
            number as u64,
            if next[number] == u32::MAX { NEVER } else { u64::from(next[number]) },
        );
    };
    if let Some(http) = &requests.http {
        let cache = CacheSpec { policy: order, capacity, allocation: AllocationTime::Request };
        return http::run(requests, http, cache, rules, before);
    }
    let mut store = Store::new(order, capacity, requests.objects).admitting(rules.admission);
    let mut prefetched = 0;
    count_hits(requests, rules, |number, request| {
        prefetch(&store, requests, number, &mut prefetched);
        before(store.order_mut(), number);
        store.request(request.object, request.bytes) == LookupResult::Hit
    })
}

/// The number of each request's next one for the same object; 2^32 − 1: there is none.
fn next_requests(requests: &Requests) -> Vec<u32> {
    let mut later = vec![u32::MAX; requests.objects];
    let mut next = vec![u32::MAX; requests.list.len()];
    // Backwards, the last request seen for an object is the next one in time.
    for (number, request) in requests.list.iter().enumerate().rev() {
        if let Some(later) = later.get_mut(request.object as usize) {
            next[number] = std::mem::replace(later, number as u32);
        }
    }
    next
}

/// A cache without bounds: it misses the first request of an object, and those of which the size has changed.
pub fn infinite(requests: &Requests, rules: SimulationRules) -> SimulationTally {
    if let Some(http) = &requests.http {
        return http::infinite(requests, http, rules);
    }
    let mut stored = vec![u64::MAX; requests.objects];
    count_hits(requests, rules, |_, request| {
        let stored = &mut stored[request.object as usize];
        std::mem::replace(stored, request.bytes) == request.bytes
    })
}

/// LRU caches of all these sizes, smallest first, in one pass. Exact if no object ever changes its size, none is larger than
/// the smallest of the caches, and nothing that is stored expires ([`http::keeps_one_list`]): then what a cache holds is the
/// beginning of one list for all of them. In a sample, what lies between two requests counts with its room, and the object itself
/// with its size.
pub fn lru_in_one_pass(requests: &Requests, sizes: &[u64], rules: SimulationRules) -> Vec<SimulationTally> {
    let largest = match requests.sampled {
        None => requests.largest_bytes,
        Some(_) => requests.list.iter().map(|request| request.bytes).max().unwrap_or(0),
    };
    // Half as many bytes per size leave twice as many of them in a cache line.
    if largest <= u64::from(u32::MAX) {
        by_distances::<u32>(requests, sizes, rules)
    } else {
        by_distances::<u64>(requests, sizes, rules)
    }
}

fn by_distances<S: StoredSize>(
    requests: &Requests,
    sizes: &[u64],
    rules: SimulationRules,
) -> Vec<SimulationTally> {
    let mut distances = ReuseDistances::<S>::new(requests.objects);
    let mut prefetched = 0;
    let unit = requests.sampled.as_ref().map(|sampled| sampled.unit);
    let whole = |distance: u64, own: u64, number: usize| match unit {
        None => distance,
        Some(unit) => (distance - own) / unit + requests.size_of(number, own),
    };
    let index = SizeIndex::new(sizes);
    let mut part = Counter::new(requests, rules);
    let [mut in_parts, mut by_label] = part.rows().map(|rows| HitsBySize::new(sizes.len(), rows));
    let all = count_hits(requests, rules, |number, request| {
        if number >= prefetched {
            let coming = requests.list[number..].iter().take(BATCH).map(|request| request.object);
            std::hint::black_box(distances.prefetch(coming));
            prefetched = number + BATCH;
        }
        let Some(distance) = distances.request(request.object, request.bytes) else { return false };
        if number >= rules.warm_up && requests.is_counted(number) {
            part.enter(number);
            let size = index.first_that_holds(whole(distance, request.bytes, number));
            in_parts.count(part.part(), size, request);
            if let Some(row) = part.row(number) {
                by_label.count(row, size, request);
            }
        }
        true
    });
    let tally =
        |size| SimulationTally { parts: in_parts.up_to(size, &all.parts), by: by_label.up_to(size, &all.by) };
    (0..sizes.len()).map(tally).collect()
}

/// Sizes in ascending order, of which the first that holds so many bytes is found in a few steps: usual sizes double in two steps,
/// and a search by halves would be predicted wrongly half of the time at each of its steps.
struct SizeIndex<'a> {
    sizes: &'a [u64],
    /// By the number of binary digits, how many sizes have fewer.
    below: [u32; u64::BITS as usize + 1],
}

impl<'a> SizeIndex<'a> {
    fn new(sizes: &'a [u64]) -> Self {
        let below =
            std::array::from_fn(|digits| sizes.partition_point(|size| Self::digits(*size) < digits) as u32);
        Self { sizes, below }
    }

    fn digits(bytes: u64) -> usize {
        (u64::BITS - bytes.leading_zeros()) as usize
    }

    /// The place of the smallest size of at least so many bytes; behind the last: there is none.
    #[inline]
    fn first_that_holds(&self, bytes: u64) -> usize {
        let begin = self.below[Self::digits(bytes)] as usize;
        begin + self.sizes[begin..].iter().take_while(|size| **size < bytes).count()
    }
}

/// Hits by the smallest cache that has them, in rows of any kind; what fits into none is counted behind the last size.
struct HitsBySize {
    sizes: usize,
    hits: Vec<Hits>,
}

/// Hits and the bytes of their responses.
#[derive(Clone, Copy, Default)]
struct Hits {
    hits: u64,
    bytes: u64,
}

impl HitsBySize {
    fn new(sizes: usize, rows: usize) -> Self {
        Self { sizes, hits: vec![Hits::default(); rows * (sizes + 1)] }
    }

    #[inline]
    fn count(&mut self, row: usize, size: usize, request: &TraceRequest) {
        let hits = &mut self.hits[row * (self.sizes + 1) + size];
        hits.hits += 1;
        hits.bytes += request.sent_bytes;
    }

    /// The rows of one size, with the requests that each has.
    fn up_to(&self, size: usize, all: &[HitCounts]) -> Vec<HitCounts> {
        let rows = self.hits.chunks(self.sizes + 1).zip(all);
        let row = |(hits, all): (&[Hits], &HitCounts)| {
            // Every larger cache has the hits of a smaller one: LRU keeps one list.
            let up_to = &hits[..=size];
            HitCounts {
                hits: up_to.iter().map(|hits| hits.hits).sum(),
                hit_bytes: up_to.iter().map(|hits| hits.bytes).sum(),
                ..*all
            }
        };
        rows.map(row).collect()
    }
}

/// Counts the requests after the warm-up; `is_hit` sees all those that a cache may serve.
#[inline]
fn count_hits(
    requests: &Requests,
    rules: SimulationRules,
    mut is_hit: impl FnMut(usize, &TraceRequest) -> bool,
) -> SimulationTally {
    let mut counter = Counter::new(requests, rules);
    for (number, request) in requests.list.iter().enumerate() {
        let is_hit = request.object != UNCACHABLE && is_hit(number, request);
        counter.enter(number);
        if number >= rules.warm_up && requests.is_counted(number) {
            counter.count(number, request, is_hit, OutcomeFlags::default());
        }
    }
    counter.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::requests::{RequestCollector, Sizes};
    use crate::size::sample::Sampling;
    use proptest::test_runner::TestCaseError;

    fn requests(draws: &[(u64, u8)], changing: bool) -> Requests {
        let mut collector = RequestCollector::new(Sizes::Within(0), Sampling::default());
        for &(key, kind) in draws {
            let bytes = 1 + key % 7 + if changing { u64::from(kind / 5) } else { 0 };
            match kind {
                0 => collector.add_uncachable(bytes, None),
                1 => collector.add_partial(key, 1, None),
                _ => assert!(collector.add_whole(key, bytes, None)),
            }
        }
        collector.finish()
    }

    fn totals(tallies: Vec<SimulationTally>) -> Vec<HitCounts> {
        tallies.iter().map(SimulationTally::total).collect()
    }

    /// No cache is above the upper bound.
    fn prop_assert_below(policy: Policy, counts: &HitCounts, above: &HitCounts) -> Result<(), TestCaseError> {
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
            let singly = sizes.map(|size| cache(&requests, Policy::LRU, size, warm_up.into()));
            proptest::prop_assert_eq!(totals(lru_in_one_pass(&requests, &sizes, warm_up.into())), singly);
        }

        #[test]
        fn no_cache_hits_more_than_an_infinite_one_and_a_huge_one_hits_as_much(
            draws in proptest::collection::vec((0u64..30, 0u8..12), 1..300), capacity in 0u64..100
        ) {
            let requests = requests(&draws, true);
            let most = infinite(&requests, 0.into()).total();
            let above = cache(&requests, Policy::BoundAbove, capacity, 0.into());
            for policy in Policy::ALL {
                let filter = SimulationRules { admission: Admission::TinyLfu, ..SimulationRules::default() };
                prop_assert_below(policy, &cache(&requests, policy, capacity, filter), &above)?;
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
        let counts = cache(&requests, Policy::LRU, 100, 2.into());
        assert_eq!((counts.requests, counts.hits), (3, 1));
        assert_eq!((counts.dhr(), counts.bhr()), (Some(1.0 / 3.0), Some(2.0 / 9.0)));
        assert_eq!(infinite(&requests, 2.into()).total(), counts);
        assert_eq!(cache(&requests, Policy::LRU, 100, 9.into()).dhr(), None);
    }

    #[test]
    fn parts_are_of_one_length_and_add_up_in_every_way_of_counting() {
        let draws: Vec<(u64, u8)> = (0..103).map(|n| (n * n % 11, (n % 7 + 1) as u8)).collect();
        let requests = requests(&draws, false);
        let rules = SimulationRules { warm_up: 3, parts: 4, ..SimulationRules::default() };
        let simulated = tally(&requests, Policy::LRU, 20, rules);
        assert_eq!(simulated.parts.iter().map(|part| part.requests).collect::<Vec<_>>(), [25; 4]);
        assert_eq!(simulated.total(), cache(&requests, Policy::LRU, 20, 3.into()));
        assert_eq!(lru_in_one_pass(&requests, &[20], rules)[0].parts, simulated.parts);
        assert_ne!(simulated.parts[0], simulated.parts[3]);
        let few = SimulationRules { warm_up: 101, parts: 4, ..rules };
        assert_eq!(
            tally(&requests, Policy::LRU, 20, few).parts.iter().map(|part| part.requests).sum::<u64>(),
            2
        );
    }

    #[test]
    fn parts_have_the_same_number_of_counted_requests_wherever_these_are() {
        let mut collector = RequestCollector::new(Sizes::Within(0), Sampling::default());
        collector.set_http(http::Http::new(http::USUAL));
        for number in 0..100u64 {
            // Only the last forty are in the figures.
            let meaning =
                http::RequestSemantics { is_counted: number >= 60, ..http::RequestSemantics::PLAIN };
            assert!(collector.add_with_semantics(number % 7, 5, None, meaning));
        }
        let requests = collector.finish();
        let rules = SimulationRules { parts: 4, ..SimulationRules::default() };
        for tally in
            [tally(&requests, Policy::LRU, 20, rules), lru_in_one_pass(&requests, &[20], rules).remove(0)]
        {
            assert_eq!(tally.parts.iter().map(|part| part.requests).collect::<Vec<_>>(), [10; 4]);
        }
        assert_eq!(
            infinite(&requests, rules).parts.iter().map(|part| part.hits).collect::<Vec<_>>(),
            [10; 4]
        );
    }

    #[test]
    fn what_is_not_admitted_passes_by_and_evicts_nothing() {
        let list = [(1, 9), (20, 9), (1, 9), (20, 9), (1, 9), (2, 9), (1, 9), (20, 9)];
        let requests = requests(&list, false);
        let hits = |admission| {
            cache(&requests, Policy::LRU, 9, SimulationRules { admission, ..SimulationRules::default() }).hits
        };
        // Objects of 2, 7 and 3 bytes.
        assert_eq!(hits(Admission::All), 4);
        assert_eq!(hits(Admission::UpTo(6)), 3);
        assert_eq!(hits(Admission::SecondRequest), 3);
        assert_eq!(hits(Admission::TinyLfu), 5);
    }
}
