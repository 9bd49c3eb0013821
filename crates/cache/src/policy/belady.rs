//! Belady's MIN: the object whose next request is latest goes. It needs the future, so it is a bound and no policy of a real
//! cache: no policy has more hits if all objects have the same size. With several sizes it is not a bound.

use super::Order;
use super::ranks::{Heap, Key};

/// The next request of an object that is never requested again.
pub const NEVER: u64 = u64::MAX;

/// The order of next requests. [`Belady::next_is`] is called before each request.
#[derive(Debug)]
pub struct Belady {
    heap: Heap,
    next: u64,
    now: u64,
}

impl Belady {
    /// For objects numbered below `objects`.
    pub fn new(objects: usize) -> Self {
        Self { heap: Heap::new(objects), next: NEVER, now: 0 }
    }

    /// Says when the object of the coming request will be requested next: the number of that request, or [`NEVER`].
    #[inline]
    pub fn next_is(&mut self, next: u64) {
        self.next = next;
    }

    /// The latest next request is the lowest rank. Numbers of requests are exact as floats up to 2^53.
    fn key(&mut self) -> Key {
        self.now += 1;
        let rank = if self.next == NEVER { f64::NEG_INFINITY } else { -(self.next as f64) };
        Key { rank, stamp: self.now }
    }
}

impl Order for Belady {
    fn hit(&mut self, object: u32) {
        let key = self.key();
        self.heap.change(object, key);
    }

    fn insert(&mut self, object: u32, _: u64) {
        let key = self.key();
        self.heap.push(object, key);
    }

    fn evict(&mut self) -> Option<u32> {
        self.heap.pop().map(|(_, object)| object)
    }

    fn remove(&mut self, object: u32) {
        self.heap.remove(object);
    }
}
