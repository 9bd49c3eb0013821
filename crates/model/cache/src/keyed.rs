//! A store of values under keys with an exact bound in bytes, which evicts by any policy that needs no future, and admits by any rule.
//! What a simulation says of a policy is what this store does: both use the orders of [`crate::policy`].
//!
//! Orders know objects by numbers. An object has a number while it is stored, or while the order remembers it; then the number is given
//! to another one. What an entry costs the store itself counts towards the bound, and so does what is remembered.
//!
//! Room for an object is made while it arrives, before it is stored ([`Keyed::reserve`]): that is when TinyLFU decides, and GDSF by rank.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use crate::lru::TooLarge;
use crate::policy::online::Online;
use crate::policy::replacement::Replacement;
use crate::policy::sketch::Sketch;

/// Which objects are admitted, apart from their size, which a caller knows before there is anything to store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Filter {
    #[default]
    All,
    /// Those that were requested before, not too long ago.
    SecondRequest,
    /// Those that were requested more often lately than what would have to go for them.
    TinyLfu,
}

/// Bytes for each object that an order remembers: its number and its node, its place in a table and in a queue.
const REMEMBERED_BYTES: u64 = 96;
/// A cache is taken to hold an object in so many bytes of its size, where something has to be sized beforehand.
const BYTES_PER_OBJECT: u64 = 1024;
/// The share of the bound that counting requests may take.
const COUNTING_SHARE: u64 = 8;

#[derive(Debug)]
struct Slot<V> {
    key: Rc<[u8]>,
    value: V,
    hash: u64,
    bytes: u64,
}

/// Objects that were evicted and that the order remembers, by the hash of their key.
#[derive(Debug, Default)]
struct Remembered {
    numbers: HashMap<u64, u32>,
    /// All of them, and some that are no longer remembered.
    queue: VecDeque<(u64, u32)>,
}

/// What requests showed, as far as admission needs it.
#[derive(Debug)]
enum Requested {
    All,
    Before(Seen),
    Lately(Sketch),
}

/// Keys that were requested, the latest of them: bits in two tables, of which the older one is emptied when the younger one is full.
#[derive(Debug)]
struct Seen {
    younger: Vec<u64>,
    older: Vec<u64>,
    marked: u64,
}

impl Seen {
    /// In a table of 16 bits for each object: one of 200 is taken for another one when the table is full.
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

    /// Marks a key; true: it was marked before.
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
pub struct Keyed<V> {
    places: HashMap<Rc<[u8]>, u32>,
    slots: Vec<Option<Slot<V>>>,
    free: Vec<u32>,
    order: Box<dyn Online>,
    requested: Requested,
    remembered: Remembered,
    hasher: RandomState,
    bound: u64,
    used: u64,
    reserved: u64,
    evictions: u64,
}

impl<V> Keyed<V> {
    /// An empty store of so many bytes.
    pub fn new(bound_bytes: u64, policy: Replacement, filter: Filter) -> Self {
        let most = bound_bytes / COUNTING_SHARE / Sketch::bytes_for(1);
        let objects = if most == 0 { 0 } else { bound_bytes / BYTES_PER_OBJECT };
        let requested = match filter {
            Filter::All => Requested::All,
            Filter::SecondRequest => Requested::Before(Seen::new(objects)),
            Filter::TinyLfu => Requested::Lately(Sketch::new(objects)),
        };
        let counts = u64::from(filter != Filter::All) + u64::from(policy == Replacement::WTinyLfu);
        let counting_bytes = (counts * Sketch::bytes_for(objects)).min(bound_bytes / COUNTING_SHARE);
        let bound = bound_bytes - counting_bytes;
        Self {
            places: HashMap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            order: policy.order_by_hash(bound, objects),
            requested,
            remembered: Remembered::default(),
            hasher: RandomState::new(),
            bound,
            used: 0,
            reserved: 0,
            evictions: 0,
        }
    }

    /// Bytes that an entry costs beside what it is said to weigh: its slot, its place in the table and its node in the order, twice, because
    /// all grow by doubling.
    pub fn overhead_bytes(&self) -> u64 {
        let own = size_of::<Option<Slot<V>>>() + size_of::<(Rc<[u8]>, u32)>() + 1;
        2 * (own as u64 + self.order.bytes_per_object())
    }

    /// True if an object that is refused now may be stored the next time.
    pub fn is_selective(&self) -> bool {
        self.order.competes() || !matches!(self.requested, Requested::All)
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
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

    /// The value under a key, which was requested.
    pub fn get(&mut self, key: &[u8]) -> Option<&V> {
        let object = *self.places.get(key)?;
        self.order.hit(object);
        let slot = self.slots[object as usize].as_ref()?;
        if let Requested::Lately(sketch) = &mut self.requested {
            sketch.count(slot.hash, self.places.len() as u64);
        }
        Some(&slot.value)
    }

    /// The value under a key, which nobody requested.
    pub fn peek(&self, key: &[u8]) -> Option<&V> {
        let object = *self.places.get(key)?;
        self.slots[object as usize].as_ref().map(|slot| &slot.value)
    }

    /// A request for what is not stored, and may be: counts it, and says whether it is admitted as far as that does not depend on what would
    /// have to go for it.
    pub fn admits(&mut self, key: &[u8]) -> bool {
        let hash = self.hasher.hash_one(key);
        match &mut self.requested {
            Requested::All => true,
            Requested::Before(seen) => seen.mark(hash),
            Requested::Lately(sketch) => {
                sketch.count(hash, self.places.len() as u64);
                true
            }
        }
    }

    /// Takes room for something with this key that is arriving, and evicts entries for it; false: one of them is worth more, or there
    /// is not so much room. Give it back with [`Keyed::release`].
    pub fn reserve(&mut self, key: &[u8], bytes: u64) -> bool {
        if self.check_fits(bytes).is_err() {
            return false;
        }
        let hash = self.hasher.hash_one(key);
        while self.is_full(bytes) {
            if !self.yields_to(hash) || !self.order.makes_way_for(bytes + self.overhead_bytes()) {
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

    /// Stores a value of so many bytes in place of what was under its key, and evicts others until it fits. What can never fit is
    /// refused, and nothing changes.
    pub fn insert(&mut self, key: Rc<[u8]>, value: V, bytes: u64) -> Result<(), TooLarge> {
        let bytes = bytes.saturating_add(self.overhead_bytes());
        self.check_fits(bytes)?;
        if let Some(&object) = self.places.get(&key)
            && let Some(slot) = self.slots[object as usize].as_mut().filter(|slot| slot.bytes == bytes)
        {
            // The same object with another head, say: it keeps its standing.
            slot.value = value;
            return Ok(());
        }
        self.remove(&key);
        let hash = self.hasher.hash_one(&*key);
        let object = self.number(hash);
        self.order.miss(object);
        while self.is_full(bytes) && self.evict() {}
        self.order.insert(object, bytes);
        self.used += bytes;
        self.slots[object as usize] = Some(Slot { key: Rc::clone(&key), value, hash, bytes });
        self.places.insert(key, object);
        Ok(())
    }

    /// Removes what is under a key.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        let object = self.places.remove(key)?;
        self.order.remove(object);
        self.free.push(object);
        let slot = self.slots[object as usize].take()?;
        self.used -= slot.bytes;
        Some(slot.value)
    }

    fn check_fits(&self, wanted: u64) -> Result<(), TooLarge> {
        if wanted > self.bound - self.reserved {
            return Err(TooLarge { wanted, bound: self.bound, reserved: self.reserved });
        }
        Ok(())
    }

    fn is_full(&self, bytes: u64) -> bool {
        let remembered = self.remembered.numbers.len() as u64 * REMEMBERED_BYTES;
        self.used + self.reserved + remembered + bytes > self.bound
    }

    /// True if what goes next goes for this object.
    fn yields_to(&mut self, hash: u64) -> bool {
        let Requested::Lately(sketch) = &self.requested else { return true };
        let next = self.order.next().and_then(|next| self.slots[next as usize].as_ref());
        next.is_none_or(|next| sketch.of(hash) > sketch.of(next.hash))
    }

    /// Takes out what goes next; false: nothing is stored.
    fn evict(&mut self) -> bool {
        let Some(object) = self.order.evict() else { return false };
        let Some(slot) = self.slots[object as usize].take() else { return false };
        self.places.remove(&slot.key);
        self.used -= slot.bytes;
        self.evictions += 1;
        if self.order.remembers(object) {
            self.remembered.numbers.insert(slot.hash, object);
            self.remembered.queue.push_back((slot.hash, object));
        } else {
            self.free.push(object);
        }
        // Two for each that may have come: what is no longer remembered does not stay for long.
        (0..2).for_each(|_| self.forget());
        true
    }

    /// Looks whether the object that was looked at longest ago is still remembered.
    fn forget(&mut self) {
        let Some((hash, object)) = self.remembered.queue.pop_front() else { return };
        if self.remembered.numbers.get(&hash) != Some(&object) {
            return;
        }
        if self.order.remembers(object) {
            self.remembered.queue.push_back((hash, object));
        } else {
            self.remembered.numbers.remove(&hash);
            self.free.push(object);
        }
    }

    /// A number for an object that is about to be stored: its own, if it is remembered.
    fn number(&mut self, hash: u64) -> u32 {
        if let Some(object) = self.remembered.numbers.remove(&hash) {
            return object;
        }
        let object = self.free.pop().unwrap_or_else(|| {
            let objects = (self.slots.len() * 2).max(64);
            self.free.extend((self.slots.len() as u32 + 1..objects as u32).rev());
            let first = self.slots.len() as u32;
            self.slots.resize_with(objects, || None);
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
    use crate::policy::{Lookup, Store};

    fn key(object: u32) -> Rc<[u8]> {
        object.to_be_bytes().into()
    }

    /// Hits of the store on these requests: object and size, which is always the same for an object.
    fn hits(bound: u64, policy: Replacement, requests: &[(u32, u64)]) -> Vec<bool> {
        let mut keyed = Keyed::new(bound, policy, Filter::All);
        let request = |&(object, bytes): &(u32, u64)| {
            let is_hit = keyed.get(&key(object)).is_some();
            if !is_hit {
                let bytes = bytes - keyed.overhead_bytes();
                assert!(keyed.insert(key(object), object, bytes).is_ok());
            }
            assert!(keyed.used_bytes() <= bound && keyed.len() == keyed.slots.iter().flatten().count());
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
                    requests.iter().map(|(object, bytes)| store.request(*object, *bytes) == Lookup::Hit).collect();
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
            let filter = [Filter::All, Filter::SecondRequest, Filter::TinyLfu][filter];
            let mut keyed = Keyed::new(bound, policy, filter);
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
                prop_assert_eq!(keyed.len(), keyed.slots.iter().flatten().count());
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
            let mut keyed = Keyed::new(40_000, policy, Filter::All);
            for object in 0..20_000 {
                keyed.insert(key(object), object, 700).unwrap();
            }
            assert!(keyed.slots.len() <= 256, "{name} {}", keyed.slots.len());
            assert!(keyed.remembered.queue.len() <= 256, "{name}");
        }
    }

    #[test]
    fn a_filter_lets_the_second_request_in_or_the_more_frequent_object() {
        let mut keyed: Keyed<u32> = Keyed::new(1 << 20, Replacement::Lru, Filter::SecondRequest);
        assert_eq!([1, 1, 2].map(|object| keyed.admits(&key(object))), [false, true, false]);
        // Half of the store for each.
        let mut keyed = Keyed::new(1 << 20, Replacement::Lru, Filter::TinyLfu);
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
