//! What other caches would have made of the same requests. An ideal one without bounds, and LRU caches of given sizes, fed
//! with the log.
//!
//! When there are more objects than are kept, a sample of them is: those whose hash is below a threshold that is halved
//! whenever there are too many (SHARDS; Waldspurger and others, 2015). An LRU cache is then that much smaller too. What
//! is estimated are misses; hits are all other requests.

use assay_cache::lru::Lru;

use crate::sketch::IdentityHasher;
use crate::sketch::prehashed_map::PrehashedMap;
use std::hash::BuildHasherDefault;

/// Objects whose response differs in size by no more than this are unchanged, where heads are among the bytes.
pub const HEAD_BYTES: u64 = 512;

/// Cacheability of a response, by method and status alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cacheability {
    /// A GET whose response can be kept.
    Whole,
    /// A GET that can be served from what is kept, but whose response is not the whole object (206, 304).
    Part,
    /// Anything else: a miss in any cache.
    Never,
}

pub fn cacheability(method: &[u8], status: u16) -> Cacheability {
    match (method, status) {
        (b"GET", 200 | 203 | 300 | 301 | 308 | 404 | 410) => Cacheability::Whole,
        (b"GET", 206 | 304) => Cacheability::Part,
        _ => Cacheability::Never,
    }
}

/// Hits that a cache would have had.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct MissCounts {
    /// Misses among the sampled, each for as many as it stands for.
    misses: f64,
    miss_bytes: f64,
}

impl MissCounts {
    fn miss(&mut self, bytes: u64, weight: f64) {
        self.misses += weight;
        self.miss_bytes += bytes as f64 * weight;
    }
}

/// An LRU cache of a given size.
struct SimulatedLru {
    bytes: u64,
    lru: Lru<u64, u64, BuildHasherDefault<IdentityHasher>>,
    misses: MissCounts,
}

/// The caches, side by side.
pub struct Replay {
    limit: usize,
    /// Objects are kept whose sample value is below this; 2^32: all.
    threshold: u64,
    tolerance: u64,
    requests: u64,
    bytes: u64,
    /// Size of each object, as last seen.
    objects: PrehashedMap<u64>,
    ideal: MissCounts,
    bounded: Vec<SimulatedLru>,
}

const ALL: u64 = 1 << 32;

/// The part of a hash that decides whether its object is in the sample. Tables use the ends of it.
fn sample_value(hash: u64) -> u64 {
    (hash >> 24) & (ALL - 1)
}

/// Hits that a simulated cache would have had.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheEstimate {
    /// Size; none: without bounds.
    pub cache_bytes: Option<u64>,
    /// Requests that it would have served.
    pub hits: f64,
    /// Bytes of them.
    pub hit_bytes: f64,
    /// Standard error of `hits` from sampling, where it is known; 0 without sampling.
    pub standard_error: Option<f64>,
}

impl Replay {
    /// Caches of these sizes and an ideal one, that keep no more objects than `limit`.
    pub fn new(cache_bytes: &[u64], limit: usize) -> Self {
        let bounded = cache_bytes.iter().map(|&bytes| SimulatedLru {
            bytes,
            lru: Lru::with_hasher(bytes, BuildHasherDefault::default()).with_overhead(0),
            misses: MissCounts::default(),
        });
        Self {
            limit: limit.max(1),
            threshold: ALL,
            tolerance: 0,
            requests: 0,
            bytes: 0,
            objects: PrehashedMap::default(),
            ideal: MissCounts::default(),
            bounded: bounded.collect(),
        }
    }

    /// Says whether bytes are those of bodies alone, so that any difference is a modification.
    pub fn set_bodies_only(&mut self, bodies_only: bool) {
        self.tolerance = if bodies_only { 0 } else { HEAD_BYTES };
    }

    /// Looks where an object would be, and does nothing with it, so that it is in a processor cache when it is used.
    #[inline]
    pub fn prefetch(&self, hash: u64) -> u64 {
        self.objects.prefetch(hash)
    }

    /// Feeds a request to all caches.
    #[inline]
    pub fn request(&mut self, hash: u64, cacheability: Cacheability, bytes: u64) {
        self.requests += 1;
        self.bytes += bytes;
        if cacheability == Cacheability::Never {
            self.ideal.miss(bytes, 1.0);
            self.bounded.iter_mut().for_each(|cache| cache.misses.miss(bytes, 1.0));
            return;
        }
        if sample_value(hash) >= self.threshold {
            return;
        }
        let weight = ALL as f64 / self.threshold as f64;
        let mut size = bytes;
        let mut unchanged = true;
        match self.objects.get_mut(hash) {
            Some(known) if cacheability == Cacheability::Part || known.abs_diff(bytes) <= self.tolerance => {
                size = *known
            }
            Some(known) => {
                *known = bytes;
                unchanged = false;
                self.ideal.miss(bytes, weight);
            }
            None => {
                unchanged = false;
                self.ideal.miss(bytes, weight);
                if cacheability == Cacheability::Whole {
                    self.objects.insert(hash, bytes);
                }
            }
        }
        for cache in &mut self.bounded {
            if unchanged && cache.lru.get(&hash).is_some() {
                continue;
            }
            cache.misses.miss(bytes, weight);
            if cacheability == Cacheability::Whole && cache.lru.insert(hash, size, size).is_err() {
                // It is larger than the cache; what was there before is no more.
                cache.lru.remove(&hash);
            }
        }
        if self.objects.len() > self.limit {
            self.halve();
        }
    }

    /// Keeps half of the objects from here on.
    fn halve(&mut self) {
        while self.objects.len() > self.limit && self.threshold > 1 {
            self.threshold /= 2;
            let threshold = self.threshold;
            self.objects.retain(|hash, _| sample_value(hash) < threshold);
            for cache in &mut self.bounded {
                let gone: Vec<u64> = cache
                    .lru
                    .iter()
                    .map(|(hash, _)| *hash)
                    .filter(|hash| sample_value(*hash) >= threshold)
                    .collect();
                for hash in &gone {
                    cache.lru.remove(hash);
                }
                cache.lru.set_bound((cache.bytes as f64 * threshold as f64 / ALL as f64) as u64);
            }
        }
    }

    /// The share of objects that was followed to the end.
    pub fn rate(&self) -> f64 {
        self.threshold as f64 / ALL as f64
    }

    /// Objects that are followed.
    pub fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Requests that were fed.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Hits of each cache, the ideal one first.
    pub fn estimates(&self) -> Vec<CacheEstimate> {
        let rate = self.rate();
        let of = |misses: &MissCounts, cache_bytes| CacheEstimate {
            cache_bytes,
            hits: (self.requests as f64 - misses.misses).clamp(0.0, self.requests as f64),
            hit_bytes: (self.bytes as f64 - misses.miss_bytes).clamp(0.0, self.bytes as f64),
            standard_error: match cache_bytes {
                _ if rate == 1.0 => Some(0.0),
                // An object misses about once, so what is sampled is a Poisson sample of misses.
                None => Some((self.objects.len() as f64 * (1.0 - rate)).sqrt() / rate),
                Some(_) => None,
            },
        };
        let bounded = self.bounded.iter().map(|cache| of(&cache.misses, Some(cache.bytes)));
        std::iter::once(of(&self.ideal, None)).chain(bounded).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hash;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn key(object: u64) -> u64 {
        hash(&object.to_le_bytes())
    }

    /// The same caches, written so that they are plainly right.
    fn plain(stream: &[(u64, u64)], bound: Option<u64>) -> usize {
        let (mut order, mut last): (Vec<(u64, u64)>, HashMap<u64, u64>) = (Vec::new(), HashMap::new());
        let mut hits = 0;
        for &(object, size) in stream {
            let unchanged = last.insert(object, size) == Some(size);
            let at = order.iter().position(|(known, _)| *known == object);
            let had = at.map(|at| order.remove(at)).is_some();
            hits += usize::from(had && unchanged);
            if bound.is_none_or(|bound| size <= bound) {
                order.insert(0, (object, size));
            }
            while bound.is_some_and(|bound| order.iter().map(|(_, size)| size).sum::<u64>() > bound) {
                order.pop();
            }
        }
        hits
    }

    proptest! {
        #[test]
        fn without_sampling_the_caches_do_what_plain_ones_do(
            stream in proptest::collection::vec((0u64..30, 1u64..4), 1..400), bound in 1u64..60,
        ) {
            let mut replay = Replay::new(&[bound], 1000);
            replay.set_bodies_only(true);
            stream.iter().for_each(|(object, size)| replay.request(key(*object), Cacheability::Whole, *size));
            let estimates = replay.estimates();
            prop_assert_eq!(estimates[0].hits as usize, plain(&stream, None));
            prop_assert_eq!(estimates[1].hits as usize, plain(&stream, Some(bound)));
        }
    }

    #[test]
    fn a_sample_comes_close_to_all_objects() {
        let stream: Vec<u64> = (0..400_000u64).map(|n| key(n) % 100_000 * (key(n + 7) % 100) / 100).collect();
        let bound = 10_000 * 1000;
        let (mut all, mut some) = (Replay::new(&[bound], usize::MAX), Replay::new(&[bound], 8000));
        for object in stream {
            all.request(key(object), Cacheability::Whole, 1000);
            some.request(key(object), Cacheability::Whole, 1000);
        }
        assert_eq!(all.rate(), 1.0);
        assert!(some.rate() < 0.2 && some.objects() <= 8000);
        for (exact, estimate) in all.estimates().iter().zip(some.estimates()) {
            let off = (exact.hits - estimate.hits).abs() / 400_000.0;
            assert!(off < 0.02, "{exact:?} {estimate:?}");
        }
    }

    #[test]
    fn parts_and_confirmations_hit_what_is_there_and_store_nothing() {
        let mut replay = Replay::new(&[100], 10);
        for (object, cacheability, bytes) in [
            (1, Cacheability::Part, 5),
            (1, Cacheability::Whole, 50),
            (1, Cacheability::Part, 5),
            (2, Cacheability::Never, 1),
            (1, Cacheability::Whole, 50),
        ] {
            replay.request(key(object), cacheability, bytes);
        }
        assert!(replay.estimates().iter().all(|estimates| estimates.hits == 2.0), "{:?}", replay.estimates());
    }
}
