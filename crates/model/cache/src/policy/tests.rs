use std::collections::HashMap;

use assay_base::random::{Rng, mix};
use proptest::prelude::*;

use super::belady::{Belady, NEVER};
use super::belady_size::BeladySize;
use super::ghosts::{Arc, TwoQ};
use super::greedy_dual::{GreedyDual, RankFunction};
use super::lfu::{Lfu, Lfuda};
use super::queues::{Clock, Fifo, Lru, Sieve};
use super::random::Random;
use super::segments::{S3Fifo, Slru};
use super::tinylfu::TinyLfu;
use super::w_tinylfu::WTinyLfu;
use super::*;

/// Misses that libCacheSim 0.3.5 counts on [`reference`].
const EXPECTED: &str = include_str!("libcachesim.txt");

/// The same for policies that are defined otherwise there.
const NEAR: &str = include_str!("libcachesim_near.txt");

const OBJECTS: u64 = 3000;

/// 20,000 requests of 3,000 objects, a few of them popular.
fn reference() -> Vec<u32> {
    let mut rng = Rng::new(7);
    let skewed = |x: u64| ((u128::from(x).pow(3) * u128::from(OBJECTS)) >> 48) as u32;
    (0..20_000).map(|_| skewed(rng.next_u64() >> 48)).collect()
}

fn size(object: u32) -> u64 {
    100 + mix(u64::from(object)) % 9901
}

/// For each request, the number of the next one of its object.
fn next_requests(trace: &[u32]) -> Vec<u64> {
    let mut later = HashMap::new();
    let requests = trace.iter().enumerate().rev();
    let mut next: Vec<u64> =
        requests.map(|(number, object)| later.insert(*object, number as u64).unwrap_or(NEVER)).collect();
    next.reverse();
    next
}

fn misses<O: EvictionPolicy>(order: O, capacity: u64, trace: &[u32], size: &dyn Fn(u32) -> u64) -> usize {
    let mut store = Store::new(order, capacity, OBJECTS as usize);
    let missed = trace.iter().filter(|object| store.request(**object, size(**object)) != LookupResult::Hit);
    missed.count()
}

fn belady_misses(capacity: u64, trace: &[u32], size: &dyn Fn(u32) -> u64) -> usize {
    let mut store = Store::new(Belady::new(OBJECTS as usize), capacity, OBJECTS as usize);
    let requests = trace.iter().zip(next_requests(trace));
    let missed = requests.filter(|(object, next)| {
        store.order_mut().set_next_request(*next);
        store.request(**object, size(**object)) != LookupResult::Hit
    });
    missed.count()
}

fn farthest_misses(capacity: u64, trace: &[u32], size: &dyn Fn(u32) -> u64) -> usize {
    let mut store = Store::new(BeladySize::new(1, OBJECTS as usize), capacity, OBJECTS as usize);
    let requests = trace.iter().zip(next_requests(trace)).enumerate();
    let missed = requests.filter(|(now, (object, next))| {
        store.order_mut().set_next_request(*now as u64, *next);
        store.request(**object, size(**object)) != LookupResult::Hit
    });
    missed.count()
}

fn misses_of(policy: &str, capacity: u64, trace: &[u32], size: &dyn Fn(u32) -> u64) -> usize {
    let objects = OBJECTS as usize;
    match policy {
        "fifo" => misses(Fifo::new(objects), capacity, trace, size),
        "lru" => misses(Lru::new(objects), capacity, trace, size),
        "clock" => misses(Clock::new(objects), capacity, trace, size),
        "sieve" => misses(Sieve::new(objects), capacity, trace, size),
        "lfu" => misses(Lfu::new(objects), capacity, trace, size),
        "lfuda" => misses(Lfuda::new(objects), capacity, trace, size),
        "gds" => misses(GreedyDual::new(RankFunction::InverseSize, objects), capacity, trace, size),
        "gdsf" => misses(GreedyDual::new(RankFunction::FrequencyBySize, objects), capacity, trace, size),
        "slru" => misses(Slru::new(capacity, objects), capacity, trace, size),
        "s3-fifo" => misses(S3Fifo::new(capacity, objects), capacity, trace, size),
        "2q" => misses(TwoQ::new(capacity, objects), capacity, trace, size),
        "arc" => misses(Arc::new(capacity, objects), capacity, trace, size),
        "w-tinylfu" => misses(WTinyLfu::new(capacity, objects), capacity, trace, size),
        "belady-size" => farthest_misses(capacity, trace, size),
        "random" => misses(Random::new(1, objects), capacity, trace, size),
        "belady" => belady_misses(capacity, trace, size),
        other => panic!("no policy is called {other}"),
    }
}

const ALL: [&str; 16] = [
    "fifo",
    "lru",
    "clock",
    "sieve",
    "lfu",
    "lfuda",
    "gds",
    "gdsf",
    "slru",
    "s3-fifo",
    "2q",
    "arc",
    "w-tinylfu",
    "random",
    "belady",
    "belady-size",
];

#[test]
fn misses_equal_those_of_the_reference_simulator_to_the_last_request() {
    let trace = reference();
    let mut compared = 0;
    for line in EXPECTED.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (policy, sizes) = (words.next().unwrap(), words.next().unwrap());
        let one = |_| 1;
        let size: &dyn Fn(u32) -> u64 = if sizes == "unit" { &one } else { &size };
        for pair in words {
            let (capacity, expected) = pair.split_once(':').unwrap();
            let found = misses_of(policy, capacity.parse().unwrap(), &trace, size);
            assert_eq!(found, expected.parse::<usize>().unwrap(), "{policy} {sizes} {capacity}");
            compared += 1;
        }
    }
    assert_eq!(compared, 2 * 7 * 8, "seven policies, two kinds of sizes, eight capacities");
}

/// How many more misses there are here than in the reference, as shares of its own, by capacity.
fn differences(line: &str, trace: &[u32]) -> (String, Vec<f64>) {
    let mut words = line.split_whitespace();
    let (policy, sizes) = (words.next().unwrap(), words.next().unwrap());
    let one = |_| 1;
    let size: &dyn Fn(u32) -> u64 = if sizes == "unit" { &one } else { &size };
    let difference = |pair: &str| {
        let (capacity, expected) = pair.split_once(':').unwrap();
        let expected: f64 = expected.parse().unwrap();
        misses_of(policy, capacity.parse().unwrap(), trace, size) as f64 / expected - 1.0
    };
    (format!("{policy} {sizes}"), words.map(difference).collect())
}

#[test]
fn policies_that_are_defined_otherwise_are_near_the_reference_simulator() {
    let trace = reference();
    let mut compared = 0;
    for line in NEAR.lines().filter(|line| !line.starts_with('#')) {
        let (name, found) = differences(line, &trace);
        // How many of the smallest sizes differ for a reason that is stated, and by how much the others may.
        let (left_out, most) = match name.as_str() {
            "2q unit" => (0, 0.0),
            "2q bytes" => (0, 0.002),
            "arc unit" | "arc bytes" => (0, 0.01),
            "slru unit" | "slru bytes" => (0, 0.02),
            // Where the reference's small queue, or its window, is smaller than an object, it stores nothing.
            "s3-fifo unit" | "s3-fifo bytes" => (1, 0.02),
            "w-tinylfu unit" => (3, 0.015),
            "w-tinylfu bytes" => (4, 0.025),
            other => panic!("{other} is not compared"),
        };
        let near = &found[left_out..];
        assert!(near.iter().all(|share| share.abs() <= most), "{name} {found:?}");
        // Never more misses than where the reference stores nothing.
        assert!(found[..left_out].iter().all(|share| *share < 0.0), "{name} {found:?}");
        compared += 1;
    }
    assert_eq!(compared, 2 * 5, "five policies, two kinds of sizes");
}

#[test]
fn policies_that_have_no_reference_lie_where_their_relatives_do() {
    // Random is near FIFO, SLRU and S3-FIFO are below LRU on a skewed stream, and none is below the optimum.
    let trace = reference();
    let one = |_| 1;
    let of = |policy| misses_of(policy, 289, &trace, &one);
    assert!(of("random").abs_diff(of("fifo")) < 300, "{} {}", of("random"), of("fifo"));
    for policy in ["slru", "s3-fifo", "lfuda", "2q", "arc", "w-tinylfu"] {
        assert!(of(policy) < of("lru") && of(policy) > of("belady"), "{policy} {}", of(policy));
    }
    // With several sizes, the size of what is kept matters.
    let of = |policy| misses_of(policy, 1 << 20, &trace, &size);
    assert!(of("belady-size") < of("belady"), "{} {}", of("belady-size"), of("belady"));
}

#[test]
fn an_object_above_the_capacity_is_not_stored_and_evicts_nothing() {
    let mut store = Store::new(Lru::new(3), 10, 3);
    assert_eq!([store.request(0, 4), store.request(1, 6)], [LookupResult::Stored; 2]);
    assert_eq!(store.request(2, 11), LookupResult::TooLarge);
    assert_eq!([store.request(0, 4), store.request(1, 6)], [LookupResult::Hit; 2]);
    assert_eq!((store.evictions(), store.used_bytes()), (0, 10));
}

#[test]
fn an_object_whose_size_changed_is_a_miss_and_leaves_the_old_one_behind_nowhere() {
    let mut store = Store::new(Lru::new(2), 10, 2);
    assert_eq!(
        [store.request(0, 4), store.request(0, 5), store.request(0, 5)].map(|l| l == LookupResult::Hit),
        [false, false, true]
    );
    assert_eq!(store.used_bytes(), 5);
    assert_eq!(store.request(0, 11), LookupResult::TooLarge);
    assert_eq!((store.used_bytes(), store.request(0, 5)), (0, LookupResult::Stored));
}

/// Requests of few objects with sizes, some of which change, and removals (size none).
fn requests() -> impl Strategy<Value = Vec<(u32, Option<u64>)>> {
    let size = prop_oneof![8 => (0u64..3).prop_map(Some), 1 => Just(None)];
    proptest::collection::vec((0u32..12, size), 1..300).prop_map(|list| {
        list.into_iter().map(|(o, n)| (o, n.map(|n| 1 + u64::from(o % 5) + n / 2))).collect()
    })
}

/// A policy that checks that what it evicts is what it said would go next.
struct Announced<O>(O);

impl<O: EvictionPolicy> EvictionPolicy for Announced<O> {
    fn hit(&mut self, object: u32) {
        self.0.hit(object);
    }

    fn miss(&mut self, object: u32) {
        self.0.miss(object);
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        self.0.insert(object, bytes);
    }

    fn victim(&mut self) -> Option<u32> {
        self.0.victim()
    }

    fn evict(&mut self) -> Option<u32> {
        let announced = [self.0.victim(), self.0.victim()];
        let evicted = self.0.evict();
        assert_eq!(announced, [evicted; 2]);
        evicted
    }

    fn remove(&mut self, object: u32) {
        self.0.remove(object);
    }

    fn competes(&self) -> bool {
        self.0.competes()
    }

    fn yields_to(&mut self, object: u32) -> bool {
        self.0.yields_to(object)
    }
}

/// Plays requests through a store and checks what holds for every policy.
fn check_bound<O: EvictionPolicy>(
    order: O,
    capacity: u64,
    requests: &[(u32, Option<u64>)],
) -> Result<(), TestCaseError> {
    let mut store = Store::new(Announced(order), capacity, 12);
    let mut stored: HashMap<u32, u64> = HashMap::new();
    for &(object, bytes) in requests {
        let Some(bytes) = bytes else {
            store.remove(object);
            stored.remove(&object);
            continue;
        };
        let lookup = store.request(object, bytes);
        // What was never stored with this size cannot be a hit.
        prop_assert!(lookup != LookupResult::Hit || stored.get(&object) == Some(&bytes));
        prop_assert_eq!(lookup == LookupResult::TooLarge, bytes > capacity);
        if matches!(lookup, LookupResult::TooLarge | LookupResult::Refused) {
            stored.remove(&object)
        } else {
            stored.insert(object, bytes)
        };
        prop_assert!(store.used_bytes() <= capacity);
        prop_assert_eq!(matches!(lookup, LookupResult::Hit | LookupResult::Stored), store.is_stored(object));
    }
    Ok(())
}

/// LRU as a list, newest last.
fn plain_lru(capacity: u64, requests: &[(u32, Option<u64>)]) -> Vec<bool> {
    let mut list: Vec<(u32, u64)> = Vec::new();
    let mut hits = Vec::new();
    for &(object, bytes) in requests {
        let at = list.iter().position(|(stored, _)| *stored == object);
        let before = at.map(|at| list.remove(at).1);
        let Some(bytes) = bytes else { continue };
        hits.push(before == Some(bytes));
        if bytes > capacity {
            continue;
        }
        while list.iter().map(|(_, bytes)| bytes).sum::<u64>() + bytes > capacity {
            list.remove(0);
        }
        list.push((object, bytes));
    }
    hits
}

/// Greedy-Dual-Size-Frequency by a search through all objects: hits. A new object is among those that may go.
fn plain_gdsf(capacity: u64, requests: &[(u32, Option<u64>)]) -> Vec<bool> {
    let mut stored: HashMap<u32, (u64, f64, f64, usize)> = HashMap::new();
    let (mut age, mut hits) = (0.0, Vec::new());
    for (now, &(object, bytes)) in requests.iter().enumerate() {
        let before = stored.remove(&object);
        let Some(bytes) = bytes else { continue };
        let known = before.filter(|(size, ..)| *size == bytes);
        hits.push(known.is_some());
        if bytes > capacity {
            continue;
        }
        let requests = known.map_or(1.0, |(_, requests, ..)| requests + 1.0);
        stored.insert(object, (bytes, requests, age + requests * 1e6 / bytes as f64, now));
        while stored.values().map(|(size, ..)| size).sum::<u64>() > capacity {
            let lower =
                |a: &(u32, f64, usize), b: &(u32, f64, usize)| a.1.total_cmp(&b.1).then(a.2.cmp(&b.2));
            let ranks = stored.iter().map(|(object, (_, _, rank, stamp))| (*object, *rank, *stamp));
            let (evicted, rank, _) = ranks.min_by(lower).unwrap();
            stored.remove(&evicted);
            age = rank;
        }
    }
    hits
}

/// LFU and LFUDA by a search through all objects: hits.
fn plain_counted(ages: bool, capacity: u64, requests: &[(u32, Option<u64>)]) -> Vec<bool> {
    let mut stored: HashMap<u32, (u64, u32, u32, usize)> = HashMap::new();
    let (mut age, mut hits) = (0, Vec::new());
    for (now, &(object, bytes)) in requests.iter().enumerate() {
        let before = stored.remove(&object);
        let Some(bytes) = bytes else { continue };
        let known = before.filter(|(size, ..)| *size == bytes);
        hits.push(known.is_some());
        if bytes > capacity {
            continue;
        }
        while known.is_none() && stored.values().map(|(size, ..)| size).sum::<u64>() + bytes > capacity {
            let (&evicted, &(_, _, count, _)) =
                stored.iter().min_by_key(|(_, (_, _, count, stamp))| (*count, *stamp)).unwrap();
            stored.remove(&evicted);
            age = if ages { count } else { 0 };
        }
        let requests = known.map_or(1, |(_, requests, ..)| requests + 1);
        stored.insert(object, (bytes, requests, age + requests, now));
    }
    hits
}

/// The hits of a store, request by request.
fn hits<O: EvictionPolicy>(order: O, capacity: u64, requests: &[(u32, Option<u64>)]) -> Vec<bool> {
    let mut store = Store::new(order, capacity, 12);
    let mut hits = Vec::new();
    for &(object, bytes) in requests {
        match bytes {
            Some(bytes) => hits.push(store.request(object, bytes) == LookupResult::Hit),
            None => store.remove(object),
        }
    }
    hits
}

/// ARC as its paper states it, for objects of one size: hits.
fn plain_arc(capacity: usize, trace: &[u32]) -> Vec<bool> {
    // Oldest first: once, often, and what left them.
    let [mut once, mut often, mut once_left, mut often_left]: [Vec<u32>; 4] = Default::default();
    let (mut target, mut hits) = (0usize, Vec::new());
    for &object in trace {
        let take = |list: &mut Vec<u32>| {
            list.iter().position(|other| *other == object).map(|at| list.remove(at)).is_some()
        };
        let is_stored = take(&mut once) || take(&mut often);
        hits.push(is_stored);
        if is_stored {
            often.push(object);
            continue;
        }
        let (was_once, was_often) = (once_left.contains(&object), often_left.contains(&object));
        if was_once {
            target = capacity.min(target + (often_left.len() / once_left.len()).max(1));
        } else if was_often {
            target -= target.min((once_left.len() / often_left.len()).max(1));
        }
        let mut replace = |once: &mut Vec<u32>, once_left: &mut Vec<u32>, often_left: &mut Vec<u32>| {
            if !once.is_empty() && (once.len() > target || (was_often && once.len() == target)) {
                once_left.push(once.remove(0));
            } else if !often.is_empty() {
                often_left.push(often.remove(0));
            }
        };
        if was_once || was_often {
            replace(&mut once, &mut once_left, &mut often_left);
            once_left.retain(|other| *other != object);
            often_left.retain(|other| *other != object);
            often.push(object);
            continue;
        }
        if once.len() + once_left.len() == capacity {
            if once.len() < capacity {
                once_left.remove(0);
                replace(&mut once, &mut once_left, &mut often_left);
            } else {
                once.remove(0);
            }
        } else if once.len() + once_left.len() + often_left.len() + often.len() >= capacity {
            let often_stored = often.len();
            let mut replace = |once: &mut Vec<u32>, once_left: &mut Vec<u32>, often_left: &mut Vec<u32>| {
                if !once.is_empty() && once.len() > target {
                    once_left.push(once.remove(0));
                } else if !often.is_empty() {
                    often_left.push(often.remove(0));
                }
            };
            if once.len() + once_left.len() + often_left.len() + often_stored == 2 * capacity {
                often_left.remove(0);
            }
            replace(&mut once, &mut once_left, &mut often_left);
        }
        once.push(object);
    }
    hits
}

proptest! {
    #[test]
    fn arc_hits_what_its_paper_says_where_all_sizes_are_equal(
        trace in proptest::collection::vec(0u32..12, 1..400), capacity in 1u64..8
    ) {
        let requests: Vec<_> = trace.iter().map(|object| (*object, Some(1))).collect();
        prop_assert_eq!(hits(Arc::new(capacity, 12), capacity, &requests), plain_arc(capacity as usize, &trace));
    }

    #[test]
    fn gdsf_hits_what_its_definition_says(requests in requests(), capacity in 0u64..40) {
        let ranked = GreedyDual::new(RankFunction::FrequencyBySize, 12);
        prop_assert_eq!(hits(ranked, capacity, &requests), plain_gdsf(capacity, &requests));
    }

    #[test]
    fn lfu_and_lfuda_hit_what_their_definitions_say(requests in requests(), capacity in 0u64..40) {
        prop_assert_eq!(hits(Lfu::new(12), capacity, &requests), plain_counted(false, capacity, &requests));
        prop_assert_eq!(hits(Lfuda::new(12), capacity, &requests), plain_counted(true, capacity, &requests));
    }

    #[test]
    fn every_policy_keeps_the_bound_and_hits_only_what_was_stored(
        requests in requests(), capacity in 0u64..40
    ) {
        check_bound(Fifo::new(12), capacity, &requests)?;
        check_bound(Lru::new(12), capacity, &requests)?;
        check_bound(Clock::new(12), capacity, &requests)?;
        check_bound(Sieve::new(12), capacity, &requests)?;
        check_bound(Lfu::new(12), capacity, &requests)?;
        check_bound(Lfuda::new(12), capacity, &requests)?;
        for rank in [RankFunction::InverseSize, RankFunction::FrequencyBySize] {
            check_bound(GreedyDual::new(rank, 12), capacity, &requests)?;
        }
        check_bound(Slru::new(capacity, 12), capacity, &requests)?;
        check_bound(S3Fifo::new(capacity, 12), capacity, &requests)?;
        check_bound(TwoQ::new(capacity, 12), capacity, &requests)?;
        check_bound(Arc::new(capacity, 12), capacity, &requests)?;
        check_bound(WTinyLfu::new(capacity, 12), capacity, &requests)?;
        check_bound(BeladySize::new(3, 12), capacity, &requests)?;
        check_bound(Random::new(3, 12), capacity, &requests)?;
        check_bound(Belady::new(12), capacity, &requests)?;
        check_bound(TinyLfu::new(Clock::new(12), 12), capacity, &requests)?;
        check_bound(TinyLfu::new(GreedyDual::new(RankFunction::FrequencyBySize, 12), 12), capacity, &requests)?;
    }

    #[test]
    fn lru_hits_what_a_plain_list_hits(requests in requests(), capacity in 0u64..40) {
        prop_assert_eq!(hits(Lru::new(12), capacity, &requests), plain_lru(capacity, &requests));
    }

    #[test]
    fn no_policy_hits_more_than_belady_where_all_sizes_are_equal(
        trace in proptest::collection::vec(0u32..30, 1..400), capacity in 1u64..20
    ) {
        let one = |_| 1;
        let least = misses_of("belady", capacity, &trace, &one);
        // GDSF does not store what would be the first to go. Belady stores everything, and that may cost it a hit.
        for policy in ALL.into_iter().filter(|policy| *policy != "gdsf") {
            prop_assert!(misses_of(policy, capacity, &trace, &one) >= least, "{}", policy);
        }
    }
}
