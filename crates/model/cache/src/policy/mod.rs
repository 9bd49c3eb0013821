//! Replacement policies over numbered objects: which object is evicted when another one needs room. A policy decides
//! the order of eviction and nothing else; [`Store`] counts bytes, finds hits and makes room, in the same way for every policy.
//!
//! Objects are numbered from 0 without gaps, so that everything known of an object is an element of an array: no hashing, and
//! some 20 bytes for each object. A caller with keys numbers them first.
//!
//! | policy | source | cost of a request |
//! |---|---|---|
//! | [`queues::Fifo`] | first in, first out | constant |
//! | [`queues::Lru`] | least recently used | constant |
//! | [`queues::Clock`] | Corbató 1968, one bit for each object | constant, amortised |
//! | [`queues::Sieve`] | Zhang et al., NSDI 2024 | constant, amortised |
//! | [`segments::Slru`] | Karedla et al. 1994, four equal segments | constant, amortised |
//! | [`segments::S3Fifo`] | Yang et al., SOSP 2023 | constant, amortised |
//! | [`ghosts::TwoQ`] | Johnson and Shasha, VLDB 1994, full version | constant, amortised |
//! | [`ghosts::Arc`] | Megiddo and Modha, FAST 2003 | constant, amortised |
//! | [`w_tinylfu::WTinyLfu`], and [`tinylfu::TinyLfu`] before any other | Einziger, Friedman and Manes, ACM TOS 2017 | constant, amortised |
//! | [`lfu::LfuOrder`] | LFU; LFUDA (Arlitt et al. 2000) | constant, amortised |
//! | [`greedy_dual::GreedyDual`] | GDS (Cao and Irani 1997), GDSF (Cherkasova 1998) | logarithmic |
//! | [`random::Random`] | any object with the same probability | constant |
//! | [`belady::Belady`] | Belady 1966: the object whose next request is latest, which needs the future | logarithmic, to the base of 64 |
//! | [`belady_size::BeladySize`] | MIN for objects of several sizes: the largest product of size and time to the next request, of a sample | 64 objects compared for each eviction |
//!
//! [`bounds`] computes bounds on the optimal hits from a whole trace.
//!
//! FIFO, LRU, Clock, SIEVE, LFU, GDSF and Belady count the misses that libCacheSim 0.3.5 counts, to the last request (`tests.rs`).
//!
//! Three definitions hold where publications leave them open: an object above the capacity is not stored; an object whose size has
//! changed is a miss, and is stored as a new one; room is made before an object is stored, except with GDSF, whose publication
//! has new objects compete with stored ones ([`EvictionPolicy::competes`]).

pub mod belady;
pub mod belady_size;
mod bitset;
pub mod bounds;
pub mod ghosts;
pub mod greedy_dual;
pub mod lfu;
mod lists;
pub mod online;
pub mod queues;
pub mod random;
pub mod replacement;
pub mod segments;
pub mod sketch;
pub mod tinylfu;
pub mod w_tinylfu;

/// Order in which stored objects are evicted. The store above it knows sizes, and which objects are stored.
pub trait EvictionPolicy {
    /// A stored object was requested again.
    fn hit(&mut self, object: u32);

    /// An object that is not stored was requested and will be stored; called before room is made for it.
    fn miss(&mut self, object: u32) {
        let _ = object;
    }

    /// The object is stored now.
    fn insert(&mut self, object: u32, bytes: u64);

    /// The object that is evicted next, which stays until [`EvictionPolicy::evict`]; none if nothing is stored.
    fn victim(&mut self) -> Option<u32>;

    /// Evicts the next victim; none if nothing is stored.
    fn evict(&mut self) -> Option<u32>;

    /// Removes a stored object for another reason than room.
    fn remove(&mut self, object: u32);

    /// True if an object about to be stored competes with the stored ones: it is stored first, and then victims are evicted until all
    /// others fit, be it that object itself.
    fn competes(&self) -> bool {
        false
    }

    /// False if the next victim stays rather than make room for this object, which then is not stored.
    #[inline]
    fn yields_to(&mut self, object: u32) -> bool {
        let _ = object;
        true
    }

    /// Reads the data that a coming request for an object needs, to bring it into the processor's cache; the value has no meaning.
    #[inline]
    fn prefetch(&self, object: u32) -> u64 {
        let _ = object;
        0
    }
}

impl<O: EvictionPolicy + ?Sized> EvictionPolicy for Box<O> {
    fn hit(&mut self, object: u32) {
        (**self).hit(object);
    }

    fn miss(&mut self, object: u32) {
        (**self).miss(object);
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        (**self).insert(object, bytes);
    }

    fn victim(&mut self) -> Option<u32> {
        (**self).victim()
    }

    fn evict(&mut self) -> Option<u32> {
        (**self).evict()
    }

    fn remove(&mut self, object: u32) {
        (**self).remove(object);
    }

    fn competes(&self) -> bool {
        (**self).competes()
    }

    fn yields_to(&mut self, object: u32) -> bool {
        (**self).yields_to(object)
    }

    fn prefetch(&self, object: u32) -> u64 {
        (**self).prefetch(object)
    }
}

/// Result of a request to a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookupResult {
    /// The object was stored, with the same size.
    Hit,
    /// The object was not stored, and is now.
    Stored,
    /// The object is larger than the store.
    TooLarge,
    /// The object is not admitted, or was itself the first victim.
    Refused,
}

/// Rule of admission. Objects that are not admitted evict nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Admission {
    /// Every object that fits.
    #[default]
    All,
    /// Objects of at most this size.
    UpTo(u64),
    /// Objects that were ever requested before: those with a single request are not stored.
    SecondRequest,
    /// Objects that were recently requested more often than those that would be evicted for them. The policy decides that
    /// ([`tinylfu::TinyLfu`]); a store with another policy admits everything.
    TinyLfu,
}

const ABSENT: u64 = u64::MAX;

/// A simulated cache, whose contents follow from a policy.
#[derive(Debug)]
pub struct Store<O> {
    order: O,
    /// Bytes by object.
    sizes: Vec<u64>,
    capacity_bytes: u64,
    used_bytes: u64,
    evictions: u64,
    admission: Admission,
    /// Objects that were requested before; empty unless admission depends on it.
    requested: Vec<bool>,
}

impl<O: EvictionPolicy> Store<O> {
    pub fn new(order: O, capacity_bytes: u64, objects: usize) -> Self {
        Self {
            order,
            sizes: vec![ABSENT; objects],
            capacity_bytes,
            used_bytes: 0,
            evictions: 0,
            admission: Admission::All,
            requested: Vec::new(),
        }
    }

    /// Sets the rule of admission; called before the first request.
    #[must_use]
    pub fn admitting(mut self, admission: Admission) -> Self {
        self.admission = admission;
        if admission == Admission::SecondRequest {
            self.requested = vec![false; self.sizes.len()];
        }
        self
    }

    fn admits(&mut self, object: u32, bytes: u64) -> bool {
        match self.admission {
            Admission::All | Admission::TinyLfu => true,
            Admission::UpTo(most) => bytes <= most,
            Admission::SecondRequest => std::mem::replace(&mut self.requested[object as usize], true),
        }
    }

    /// Requests an object of this size: finds it, or stores it.
    ///
    /// # Panics
    /// If the object's number is not below the store's number of objects.
    #[inline]
    pub fn request(&mut self, object: u32, bytes: u64) -> LookupResult {
        let stored = self.sizes[object as usize];
        if stored == bytes && stored != ABSENT {
            self.order.hit(object);
            return LookupResult::Hit;
        }
        if stored != ABSENT {
            self.remove(object);
        }
        if bytes > self.capacity_bytes || bytes == ABSENT {
            return LookupResult::TooLarge;
        }
        if self.admission != Admission::All && !self.admits(object, bytes) {
            return LookupResult::Refused;
        }
        self.order.miss(object);
        if self.order.competes() {
            return self.compete(object, bytes);
        }
        if !self.make_room(object, bytes) {
            return LookupResult::Refused;
        }
        self.insert(object, bytes);
        LookupResult::Stored
    }

    #[inline]
    fn insert(&mut self, object: u32, bytes: u64) {
        self.order.insert(object, bytes);
        self.sizes[object as usize] = bytes;
        self.used_bytes += bytes;
    }

    /// Stores an object, and then makes room, if necessary by evicting the object itself.
    fn compete(&mut self, object: u32, bytes: u64) -> LookupResult {
        let room = self.capacity_bytes - bytes;
        self.order.insert(object, bytes);
        self.sizes[object as usize] = bytes;
        while self.used_bytes > room {
            if !self.order.yields_to(object) {
                self.order.remove(object);
                self.sizes[object as usize] = ABSENT;
                return LookupResult::Refused;
            }
            let Some(evicted) = self.order.evict() else { break };
            let stored = std::mem::replace(&mut self.sizes[evicted as usize], ABSENT);
            if evicted == object {
                return LookupResult::Refused;
            }
            self.used_bytes -= stored;
            self.evictions += 1;
        }
        self.used_bytes += bytes;
        LookupResult::Stored
    }

    /// Reads the data that coming requests need; the value has no meaning. Each of these words is likely to be in no cache of the
    /// processor; read together, their latencies overlap.
    #[inline]
    pub fn prefetch(&self, objects: impl Iterator<Item = u32>) -> u64 {
        let read = |object: u32| {
            let size = self.sizes.get(object as usize).copied().unwrap_or(0);
            size.wrapping_add(self.order.prefetch(object))
        };
        objects.map(read).fold(0, u64::wrapping_add)
    }

    /// Removes an object, if it is stored.
    pub fn remove(&mut self, object: u32) {
        let stored = std::mem::replace(&mut self.sizes[object as usize], ABSENT);
        if stored != ABSENT {
            self.order.remove(object);
            self.used_bytes -= stored;
        }
    }

    /// True if the object is stored, with any size.
    pub fn is_stored(&self, object: u32) -> bool {
        self.sizes[object as usize] != ABSENT
    }

    /// True if the object is stored with this size.
    #[inline]
    pub fn holds(&self, object: u32, bytes: u64) -> bool {
        self.sizes[object as usize] == bytes && bytes != ABSENT
    }

    /// The policy, to set the next request of one that needs the future.
    pub fn order_mut(&mut self) -> &mut O {
        &mut self.order
    }

    /// Bytes of the stored objects; never more than the capacity.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Objects evicted to make room.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Evicts objects until one of this size fits; false if a victim does not yield to it.
    #[inline]
    fn make_room(&mut self, object: u32, bytes: u64) -> bool {
        while self.used_bytes > self.capacity_bytes - bytes {
            if !self.order.yields_to(object) {
                return false;
            }
            let Some(evicted) = self.order.evict() else { return true };
            let stored = std::mem::replace(&mut self.sizes[evicted as usize], ABSENT);
            self.used_bytes -= stored;
            self.evictions += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests;
