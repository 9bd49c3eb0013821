//! Replacement policies over objects that have numbers: which object goes when another one needs room. A policy decides
//! the order and nothing else; [`Store`] counts bytes, finds hits and makes room, in the same way for every policy.
//!
//! Objects are numbered from 0 without gaps, so that everything known of an object is an element of an array: no hashing, and
//! some 20 bytes for each object. Whoever has keys numbers them first.
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
//! | [`tiny::WTinyLfu`], and [`filter::TinyLfu`] before any other | Einziger, Friedman and Manes, ACM TOS 2017 | constant, amortised |
//! | [`counts::Counted`] | LFU; LFUDA (Arlitt et al. 2000) | constant, amortised |
//! | [`ranks::Ranked`] | GDS (Cao and Irani 1997), GDSF (Cherkasova 1998) | logarithmic |
//! | [`random::Random`] | any object with the same probability | constant |
//! | [`belady::Belady`] | Belady 1966: the object whose next request is latest, which needs the future | logarithmic, to the base of 64 |
//! | [`farthest::Farthest`] | the same for objects of several sizes: the largest product of size and time to the next request, of a sample | 64 objects looked at for each that is evicted |
//!
//! [`bounds`] are no caches: they compute from a whole trace how much any cache can hit at most, and how much is possible at least.
//!
//! FIFO, LRU, Clock, SIEVE, LFU, GDSF and Belady count the misses that libCacheSim 0.3.5 counts, to the last request (`tests.rs`).
//!
//! Three definitions hold where publications leave them open: an object above the capacity is not stored; an object whose size has
//! changed is a miss, and is stored as a new one; room is made before an object is stored, except with GDSF, whose publication
//! has new objects compete with stored ones ([`Order::competes`]).

pub mod belady;
pub mod bounds;
pub mod counts;
pub mod farthest;
pub mod filter;
pub mod ghosts;
mod latest;
mod lists;
pub mod online;
pub mod queues;
pub mod random;
pub mod ranks;
pub mod replacement;
pub mod segments;
pub mod sketch;
pub mod tiny;

/// The order in which stored objects go. The store above it knows sizes and which objects are stored.
pub trait Order {
    /// A stored object was requested again.
    fn hit(&mut self, object: u32);

    /// An object that is not stored was requested and will be stored; called before room is made for it.
    fn miss(&mut self, object: u32) {
        let _ = object;
    }

    /// The object is stored now.
    fn insert(&mut self, object: u32, bytes: u64);

    /// The object that goes next, which stays until [`Order::evict`] takes it out; none: nothing is stored.
    fn next(&mut self) -> Option<u32>;

    /// Takes out the object that goes next; none: nothing is stored.
    fn evict(&mut self) -> Option<u32>;

    /// Takes out an object for another reason than room. It is stored.
    fn remove(&mut self, object: u32);

    /// True if an object that is about to be stored competes with those that are: it is stored first, and then the first in the order
    /// goes until all others have room, be it that object itself.
    fn competes(&self) -> bool {
        false
    }

    /// False if the object that goes next stays rather than make room for this one, which then is not stored.
    #[inline]
    fn yields_to(&mut self, object: u32) -> bool {
        let _ = object;
        true
    }

    /// Reads what a coming request for an object will need, and returns a number without a meaning.
    #[inline]
    fn warm(&self, object: u32) -> u64 {
        let _ = object;
        0
    }
}

impl<O: Order + ?Sized> Order for Box<O> {
    fn hit(&mut self, object: u32) {
        (**self).hit(object);
    }

    fn miss(&mut self, object: u32) {
        (**self).miss(object);
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        (**self).insert(object, bytes);
    }

    fn next(&mut self) -> Option<u32> {
        (**self).next()
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

    fn warm(&self, object: u32) -> u64 {
        (**self).warm(object)
    }
}

/// What a request met in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// The object was stored, with the same size.
    Hit,
    /// It was not, and is stored now.
    Stored,
    /// It was not, and is larger than the store.
    TooLarge,
    /// It was not, and is not admitted, or was the first to go.
    Refused,
}

/// Which objects are stored at all; the others pass by, and evict nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Admission {
    /// Every object that fits.
    #[default]
    All,
    /// Objects of at most so many bytes.
    UpTo(u64),
    /// Objects that were requested before, ever: those that are requested once are not stored.
    SecondRequest,
    /// Objects that were requested more often lately than what would have to go for them. That is an order's business
    /// ([`filter::TinyLfu`]); a store with another order admits everything.
    TinyLfu,
}

/// The size of an object that is not stored.
const ABSENT: u64 = u64::MAX;

/// A store of so many bytes whose contents follow from a policy.
#[derive(Debug)]
pub struct Store<O> {
    order: O,
    /// Bytes by object.
    sizes: Vec<u64>,
    capacity_bytes: u64,
    used_bytes: u64,
    evictions: u64,
    admission: Admission,
    /// Objects that were requested before; empty unless that decides on their admission.
    requested: Vec<bool>,
}

impl<O: Order> Store<O> {
    /// An empty store for objects numbered below `objects`.
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

    /// The same with another rule of what is stored; called before the first request.
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

    /// A request for an object of so many bytes: finds it, or stores it.
    ///
    /// # Panics
    /// If the object's number is not below the store's number of objects.
    #[inline]
    pub fn request(&mut self, object: u32, bytes: u64) -> Lookup {
        let stored = self.sizes[object as usize];
        if stored == bytes && stored != ABSENT {
            self.order.hit(object);
            return Lookup::Hit;
        }
        if stored != ABSENT {
            self.remove(object);
        }
        if bytes > self.capacity_bytes || bytes == ABSENT {
            return Lookup::TooLarge;
        }
        if self.admission != Admission::All && !self.admits(object, bytes) {
            return Lookup::Refused;
        }
        self.order.miss(object);
        if self.order.competes() {
            return self.compete(object, bytes);
        }
        if !self.make_room(object, bytes) {
            return Lookup::Refused;
        }
        self.insert(object, bytes);
        Lookup::Stored
    }

    #[inline]
    fn insert(&mut self, object: u32, bytes: u64) {
        self.order.insert(object, bytes);
        self.sizes[object as usize] = bytes;
        self.used_bytes += bytes;
    }

    /// Stores an object, and then makes room, if need be by taking it out again.
    fn compete(&mut self, object: u32, bytes: u64) -> Lookup {
        let room = self.capacity_bytes - bytes;
        self.order.insert(object, bytes);
        self.sizes[object as usize] = bytes;
        while self.used_bytes > room {
            if !self.order.yields_to(object) {
                self.order.remove(object);
                self.sizes[object as usize] = ABSENT;
                return Lookup::Refused;
            }
            let Some(evicted) = self.order.evict() else { break };
            let stored = std::mem::replace(&mut self.sizes[evicted as usize], ABSENT);
            if evicted == object {
                return Lookup::Refused;
            }
            self.used_bytes -= stored;
            self.evictions += 1;
        }
        self.used_bytes += bytes;
        Lookup::Stored
    }

    /// Reads what coming requests for objects will need, and returns a number without a meaning. Each of these places is likely to be
    /// in no cache of the processor; read together, they are waited for once and not one after the other.
    #[inline]
    pub fn warm(&self, objects: impl Iterator<Item = u32>) -> u64 {
        let read = |object: u32| {
            let size = self.sizes.get(object as usize).copied().unwrap_or(0);
            size.wrapping_add(self.order.warm(object))
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

    /// True if the object is stored, with whatever size.
    pub fn is_stored(&self, object: u32) -> bool {
        self.sizes[object as usize] != ABSENT
    }

    /// True if the object is stored with this size.
    #[inline]
    pub fn holds(&self, object: u32, bytes: u64) -> bool {
        self.sizes[object as usize] == bytes && bytes != ABSENT
    }

    /// The policy, for those that are told something before a request.
    pub fn order_mut(&mut self) -> &mut O {
        &mut self.order
    }

    /// Bytes of the stored objects; never more than the capacity.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Objects that went to make room, since the beginning.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Evicts objects until one of so many bytes fits; false: one of them does not yield to it.
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
