//! A store of values under keys with an exact bound in bytes, for every policy that needs no knowledge of the future and every rule of
//! admission. The store does what a simulation of the policy predicts: both use the orders of [`crate::policy`].
//!
//! Policies know objects by numbers. An object has a number while it is stored, or while the policy remembers it as a ghost; then the
//! number is given to another object. The store's own overhead for an entry counts towards the bound, and so do ghosts.
//!
//! Room for an object is made while it arrives, before it is stored ([`KeyedStore::reserve`]): that is when TinyLFU decides, and GDSF by rank.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use crate::lru::TooLarge;
use crate::policy::online::OnlinePolicy;
use crate::policy::replacement::Replacement;
use crate::policy::sketch::Sketch;

/// Rule of admission. Size limits are not part of it: callers check them before there is anything to store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AdmissionFilter {
    #[default]
    All,
    /// Objects that were requested before, not too long ago.
    SecondRequest,
    /// Objects that were recently requested more often than those that would be evicted for them.
    TinyLfu,
}

/// Bytes of a ghost: its number, its node, its slot in a table and in a queue.
const GHOST_BYTES: u64 = 96;
/// Assumed mean size of an object, for tables that are sized before anything is stored.
const BYTES_PER_OBJECT: u64 = 1024;
/// Request counters take at most one over this of the bound.
const COUNTING_SHARE: u64 = 8;

#[derive(Debug)]
struct Entry<V> {
    key: Rc<[u8]>,
    value: V,
    hash: u64,
    bytes: u64,
}

/// Evicted objects that the policy remembers, by the hash of their key.
#[derive(Debug, Default)]
struct Ghosts {
    numbers: HashMap<u64, u32>,
    /// All ghosts, and some that are no longer remembered.
    queue: VecDeque<(u64, u32)>,
}

/// Past requests, as far as admission needs them.
#[derive(Debug)]
enum RequestHistory {
    None,
    Bloom(AgingBloomFilter),
    Sketch(Sketch),
}

/// Bloom filter of recently requested keys in two generations: when the younger table is full, it becomes the older one, whose
/// keys are forgotten.
#[derive(Debug)]
struct AgingBloomFilter {
    younger: Vec<u64>,
    older: Vec<u64>,
    marked: u64,
}

impl AgingBloomFilter {
    /// 16 bits for each object: false positives are one in 200 when the table is full.
    fn new(objects: u64) -> Self {
        let words = (objects.clamp(64, 1 << 24).next_power_of_two() / 4) as usize;
        Self { younger: vec![0; words], older: vec![0; words], marked: 0 }
    }

    fn bits(&self, hash: u64) -> [(usize, u64); 3] {
        let all = self.younger.len() as u64 * 64;
        std::array::from_fn(|row| {
            let bit = assay_base::random::mix(hash.wrapping_add(row as u64)) % all;
            ((bit / 64) as usize, 1 << (bit % 64))
        })
    }

    /// Marks a key; true if it was marked before.
    fn mark(&mut self, hash: u64) -> bool {
        let bits = self.bits(hash);
        let is_in = |table: &[u64]| bits.iter().all(|(word, bit)| table[*word] & bit != 0);
        let (is_young, is_known) = (is_in(&self.younger), is_in(&self.younger) || is_in(&self.older));
        if !is_young {
            self.marked += 1;
            bits.iter().for_each(|(word, bit)| self.younger[*word] |= bit);
        }
        // A sixteenth of the bits for keys with three bits each: a fifth of all bits.
        if self.marked >= self.younger.len() as u64 * 4 {
            std::mem::swap(&mut self.younger, &mut self.older);
            self.younger.fill(0);
            self.marked = 0;
        }
        is_known
    }
}

#[derive(Debug)]
pub struct KeyedStore<V> {
    numbers_by_key: HashMap<Rc<[u8]>, u32>,
    entries: Vec<Option<Entry<V>>>,
    free: Vec<u32>,
    order: Box<dyn OnlinePolicy>,
    history: RequestHistory,
    ghosts: Ghosts,
    hasher: RandomState,
    bound: u64,
    used: u64,
    reserved: u64,
    evictions: u64,
}

impl<V> KeyedStore<V> {
    /// Creates an empty store with this bound in bytes.
    pub fn new(bound_bytes: u64, policy: Replacement, filter: AdmissionFilter) -> Self {
        let most = bound_bytes / COUNTING_SHARE / Sketch::bytes_for(1);
        let objects = if most == 0 { 0 } else { bound_bytes / BYTES_PER_OBJECT };
        let requested = match filter {
            AdmissionFilter::All => RequestHistory::None,
            AdmissionFilter::SecondRequest => RequestHistory::Bloom(AgingBloomFilter::new(objects)),
            AdmissionFilter::TinyLfu => RequestHistory::Sketch(Sketch::new(objects)),
        };
        let counts = u64::from(filter != AdmissionFilter::All) + u64::from(policy == Replacement::WTinyLfu);
        let counting_bytes = (counts * Sketch::bytes_for(objects)).min(bound_bytes / COUNTING_SHARE);
        let bound = bound_bytes - counting_bytes;
        Self {
            numbers_by_key: HashMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            order: policy.order_by_hash(bound, objects),
            history: requested,
            ghosts: Ghosts::default(),
            hasher: RandomState::new(),
            bound,
            used: 0,
            reserved: 0,
            evictions: 0,
        }
    }

    /// Bytes that an entry costs beside its own: its slot, its bucket in the table and its node in the policy, twice, because all three
    /// grow by doubling.
    pub fn overhead_bytes(&self) -> u64 {
        let own = size_of::<Option<Entry<V>>>() + size_of::<(Rc<[u8]>, u32)>() + 1;
        2 * (own as u64 + self.order.bytes_per_object())
    }

    /// True if an object that is refused now may be stored the next time.
    pub fn is_selective(&self) -> bool {
        self.order.competes() || !matches!(self.history, RequestHistory::None)
    }

    pub fn len(&self) -> usize {
        self.numbers_by_key.len()
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.numbers_by_key.is_empty()
    }

    /// The bound in bytes.
    pub fn bound_bytes(&self) -> u64 {
        self.bound
    }

    /// Bytes of the entries, overhead included. With the reserved ones never more than the bound.
    pub fn used_bytes(&self) -> u64 {
        self.used
    }

    /// Bytes reserved.
    pub fn reserved_bytes(&self) -> u64 {
        self.reserved
    }

    /// Entries dropped to make room, since the beginning.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// The value under a key; counts as a request.
    pub fn get(&mut self, key: &[u8]) -> Option<&V> {
        let object = *self.numbers_by_key.get(key)?;
        self.order.hit(object);
        let entry = self.entries[object as usize].as_ref()?;
        if let RequestHistory::Sketch(sketch) = &mut self.history {
            sketch.count(entry.hash, self.numbers_by_key.len() as u64);
        }
        Some(&entry.value)
    }

    /// The value under a key; does not count as a request.
    pub fn peek(&self, key: &[u8]) -> Option<&V> {
        let object = *self.numbers_by_key.get(key)?;
        self.entries[object as usize].as_ref().map(|entry| &entry.value)
    }

    /// Counts a request for an object that is not stored. False if the object is not admitted, whatever would be evicted for it.
    pub fn admits(&mut self, key: &[u8]) -> bool {
        let hash = self.hasher.hash_one(key);
        match &mut self.history {
            RequestHistory::None => true,
            RequestHistory::Bloom(seen) => seen.mark(hash),
            RequestHistory::Sketch(sketch) => {
                sketch.count(hash, self.numbers_by_key.len() as u64);
                true
            }
        }
    }

    /// Reserves room for an object that is arriving, and evicts entries for it. False if one of them is worth more, or the object does
    /// not fit. The room is given back with [`KeyedStore::release`].
    pub fn reserve(&mut self, key: &[u8], bytes: u64) -> bool {
        if self.check_fits(bytes).is_err() {
            return false;
        }
        let hash = self.hasher.hash_one(key);
        while self.is_full(bytes) {
            if !self.yields_to(hash) || !self.order.admits_size(bytes + self.overhead_bytes()) {
                return false;
            }
            if !self.evict() {
                break;
            }
        }
        self.reserved += bytes;
        true
    }

    /// Gives back reserved room.
    pub fn release(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.reserved, "more released than reserved");
        self.reserved = self.reserved.saturating_sub(bytes);
    }

    /// Stores a value in place of the one under its key, and evicts others until it fits. If it can never fit, nothing changes.
    pub fn insert(&mut self, key: Rc<[u8]>, value: V, bytes: u64) -> Result<(), TooLarge> {
        let bytes = bytes.saturating_add(self.overhead_bytes());
        self.check_fits(bytes)?;
        if let Some(&object) = self.numbers_by_key.get(&key)
            && let Some(entry) = self.entries[object as usize].as_mut().filter(|entry| entry.bytes == bytes)
        {
            // The same object, with another head for example: its rank in the policy stays.
            entry.value = value;
            return Ok(());
        }
        self.remove(&key);
        let hash = self.hasher.hash_one(&*key);
        let object = self.assign_number(hash);
        self.order.miss(object);
        while self.is_full(bytes) && self.evict() {}
        self.order.insert(object, bytes);
        self.used += bytes;
        self.entries[object as usize] = Some(Entry { key: Rc::clone(&key), value, hash, bytes });
        self.numbers_by_key.insert(key, object);
        Ok(())
    }

    /// Removes what is under a key.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        let object = self.numbers_by_key.remove(key)?;
        self.order.remove(object);
        self.free.push(object);
        let entry = self.entries[object as usize].take()?;
        self.used -= entry.bytes;
        Some(entry.value)
    }

    fn check_fits(&self, wanted: u64) -> Result<(), TooLarge> {
        if wanted > self.bound - self.reserved {
            return Err(TooLarge { wanted, bound: self.bound, reserved: self.reserved });
        }
        Ok(())
    }

    fn is_full(&self, bytes: u64) -> bool {
        let remembered = self.ghosts.numbers.len() as u64 * GHOST_BYTES;
        self.used + self.reserved + remembered + bytes > self.bound
    }

    /// True if the next victim was requested less often than this object.
    fn yields_to(&mut self, hash: u64) -> bool {
        let RequestHistory::Sketch(sketch) = &self.history else { return true };
        let next = self.order.victim().and_then(|next| self.entries[next as usize].as_ref());
        next.is_none_or(|next| sketch.estimate(hash) > sketch.estimate(next.hash))
    }

    /// Evicts the next victim; false if nothing is stored.
    fn evict(&mut self) -> bool {
        let Some(object) = self.order.evict() else { return false };
        let Some(entry) = self.entries[object as usize].take() else { return false };
        self.numbers_by_key.remove(&entry.key);
        self.used -= entry.bytes;
        self.evictions += 1;
        if self.order.remembers(object) {
            self.ghosts.numbers.insert(entry.hash, object);
            self.ghosts.queue.push_back((entry.hash, object));
        } else {
            self.free.push(object);
        }
        // An eviction adds one ghost at most; two checks for each keep the queue from growing.
        (0..2).for_each(|_| self.check_oldest_ghost());
        true
    }

    /// Drops the ghost that was checked longest ago, if the policy no longer remembers it.
    fn check_oldest_ghost(&mut self) {
        let Some((hash, object)) = self.ghosts.queue.pop_front() else { return };
        if self.ghosts.numbers.get(&hash) != Some(&object) {
            return;
        }
        if self.order.remembers(object) {
            self.ghosts.queue.push_back((hash, object));
        } else {
            self.ghosts.numbers.remove(&hash);
            self.free.push(object);
        }
    }

    /// Number for an object that is about to be stored: its old one, if it is a ghost.
    fn assign_number(&mut self, hash: u64) -> u32 {
        if let Some(object) = self.ghosts.numbers.remove(&hash) {
            return object;
        }
        let object = self.free.pop().unwrap_or_else(|| {
            let objects = (self.entries.len() * 2).max(64);
            self.free.extend((self.entries.len() as u32 + 1..objects as u32).rev());
            let first = self.entries.len() as u32;
            self.entries.resize_with(objects, || None);
            self.order.grow(objects);
            first
        });
        self.order.rename(object, hash);
        object
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::policy::{LookupResult, Store};

    fn key(object: u32) -> Rc<[u8]> {
        object.to_be_bytes().into()
    }

    /// Hits of the store on these requests: object and size, which is always the same for an object.
    fn hits(bound: u64, policy: Replacement, requests: &[(u32, u64)]) -> Vec<bool> {
        let mut keyed = KeyedStore::new(bound, policy, AdmissionFilter::All);
        let request = |&(object, bytes): &(u32, u64)| {
            let is_hit = keyed.get(&key(object)).is_some();
            if !is_hit {
                let bytes = bytes - keyed.overhead_bytes();
                assert!(keyed.insert(key(object), object, bytes).is_ok());
            }
            assert!(keyed.used_bytes() <= bound && keyed.len() == keyed.entries.iter().flatten().count());
            is_hit
        };
        requests.iter().map(request).collect()
    }

    proptest! {
        #[test]
        fn it_hits_what_a_simulation_of_the_policy_hits(
            draws in proptest::collection::vec(0u32..40, 1..400), room in 4u64..60
        ) {
            let requests: Vec<(u32, u64)> =
                draws.iter().map(|object| (*object, 10_000 + 1000 * u64::from(object % 5))).collect();
            for (policy, name) in Replacement::ALL {
                // A policy that counts by hash has no room for that, and would not count exactly.
                if policy == Replacement::WTinyLfu || policy == Replacement::Gdsf {
                    continue;
                }
                let bound = room * 10_000;
                let mut store = Store::new(policy.order(bound, 40), bound, 40);
                let expected: Vec<bool> =
                    requests.iter().map(|(object, bytes)| store.request(*object, *bytes) == LookupResult::Hit).collect();
                let found = hits(bound, policy, &requests);
                // What is remembered takes room here, up to a hundredth.
                let differ = found.iter().zip(&expected).filter(|(a, b)| a != b).count();
                let remembers = ["s3-fifo", "2q", "arc"].contains(&name);
                prop_assert!(differ == 0 || remembers && differ * 4 <= requests.len(), "{name}: {differ}");
            }
        }

        #[test]
        fn the_bound_holds_and_what_is_stored_is_what_was_put_there(
            bound in 0u64..20_000,
            ops in proptest::collection::vec((0u8..8, 0u32..30, 0u64..3000), 1..300),
            policy in 0usize..14, filter in 0usize..3,
        ) {
            let policy = Replacement::ALL[policy].0;
            let filter = [AdmissionFilter::All, AdmissionFilter::SecondRequest, AdmissionFilter::TinyLfu][filter];
            let mut keyed = KeyedStore::new(bound, policy, filter);
            let mut reserved = 0;
            for (op, object, bytes) in ops {
                match op {
                    0..4 if keyed.admits(&key(object)) && keyed.reserve(&key(object), bytes) => {
                        keyed.release(bytes);
                        let _ = keyed.insert(key(object), object, bytes);
                    }
                    4 | 5 => prop_assert!(keyed.get(&key(object)).is_none_or(|value| *value == object)),
                    6 => prop_assert!(keyed.remove(&key(object)).is_none_or(|value| value == object)),
                    7 if reserved == 0 && keyed.reserve(&key(object), bytes) => reserved = bytes,
                    7 => keyed.release(std::mem::take(&mut reserved)),
                    _ => {}
                }
                prop_assert!(keyed.used_bytes() + keyed.reserved_bytes() <= bound);
                prop_assert_eq!(keyed.len(), keyed.entries.iter().flatten().count());
            }
        }
    }

    #[test]
    fn every_policy_has_a_name_and_is_found_by_it() {
        for (policy, name) in Replacement::ALL {
            assert_eq!((Replacement::from_name(name), policy.name()), (Some(policy), name));
        }
        assert_eq!(Replacement::from_name("lru-2"), None);
    }

    #[test]
    fn numbers_are_used_again_and_what_is_remembered_is_forgotten() {
        for (policy, name) in Replacement::ALL {
            let mut keyed = KeyedStore::new(40_000, policy, AdmissionFilter::All);
            for object in 0..20_000 {
                keyed.insert(key(object), object, 700).unwrap();
            }
            assert!(keyed.entries.len() <= 256, "{name} {}", keyed.entries.len());
            assert!(keyed.ghosts.queue.len() <= 256, "{name}");
        }
    }

    #[test]
    fn a_filter_lets_the_second_request_in_or_the_more_frequent_object() {
        let mut keyed: KeyedStore<u32> =
            KeyedStore::new(1 << 20, Replacement::Lru, AdmissionFilter::SecondRequest);
        assert_eq!([1, 1, 2].map(|object| keyed.admits(&key(object))), [false, true, false]);
        // Half of the store for each.
        let mut keyed = KeyedStore::new(1 << 20, Replacement::Lru, AdmissionFilter::TinyLfu);
        let bytes = keyed.bound_bytes() / 2 - keyed.overhead_bytes();
        let mut request = |object: u32| {
            if keyed.get(&key(object)).is_some() {
                return "hit";
            }
            if !keyed.admits(&key(object)) || !keyed.reserve(&key(object), bytes) {
                return "refused";
            }
            keyed.release(bytes);
            keyed.insert(key(object), object, bytes).map_or("too large", |()| "stored")
        };
        let found = [1, 2, 1, 2, 3, 3, 3, 1].map(&mut request);
        assert_eq!(found, ["stored", "stored", "hit", "hit", "refused", "refused", "stored", "stored"]);
    }
}
