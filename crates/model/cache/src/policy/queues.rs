//! Policies with one queue: FIFO, LRU, Clock, SIEVE.

use super::Order;
use super::lists::{Links, List};
use super::online::Online;

/// One queue, of which the oldest object goes. `RENEWS`: a request makes its object the newest.
#[derive(Debug)]
pub struct Queue<const RENEWS: bool> {
    links: Links,
    queue: List,
}

/// First in, first out: requests change nothing.
pub type Fifo = Queue<false>;
/// The object that was requested longest ago goes.
pub type Lru = Queue<true>;

impl<const RENEWS: bool> Queue<RENEWS> {
    /// For objects numbered below `objects`.
    pub fn new(objects: usize) -> Self {
        Self { links: Links::new(objects, ()), queue: List::EMPTY }
    }
}

impl<const RENEWS: bool> Order for Queue<RENEWS> {
    #[inline]
    fn hit(&mut self, object: u32) {
        if RENEWS {
            self.queue.renew(&mut self.links, object);
        }
    }

    #[inline]
    fn insert(&mut self, object: u32, _: u64) {
        self.queue.push(&mut self.links, object);
    }

    fn next(&mut self) -> Option<u32> {
        self.queue.oldest()
    }

    #[inline]
    fn evict(&mut self) -> Option<u32> {
        self.queue.pop(&mut self.links)
    }

    fn remove(&mut self, object: u32) {
        self.queue.remove(&mut self.links, object);
    }

    #[inline]
    fn warm(&self, object: u32) -> u64 {
        self.links.warm(object)
    }
}

/// FIFO in which an object that was requested since it was stored, or since it was last passed over, gets another turn.
#[derive(Debug)]
pub struct Clock {
    /// True of an object that was requested.
    links: Links<bool>,
    queue: List,
}

impl Clock {
    /// For objects numbered below `objects`.
    pub fn new(objects: usize) -> Self {
        Self { links: Links::new(objects, false), queue: List::EMPTY }
    }
}

impl Order for Clock {
    #[inline]
    fn hit(&mut self, object: u32) {
        *self.links.known_mut(object) = true;
    }

    #[inline]
    fn insert(&mut self, object: u32, _: u64) {
        *self.links.known_mut(object) = false;
        self.queue.push(&mut self.links, object);
    }

    fn next(&mut self) -> Option<u32> {
        loop {
            let oldest = self.queue.oldest()?;
            if !std::mem::take(self.links.known_mut(oldest)) {
                return Some(oldest);
            }
            self.queue.renew(&mut self.links, oldest);
        }
    }

    fn evict(&mut self) -> Option<u32> {
        let oldest = self.next()?;
        self.queue.remove(&mut self.links, oldest);
        Some(oldest)
    }

    fn remove(&mut self, object: u32) {
        self.queue.remove(&mut self.links, object);
    }

    #[inline]
    fn warm(&self, object: u32) -> u64 {
        self.links.warm(object)
    }
}

/// As Clock, but an object that gets another turn keeps its place, and the hand goes on from where it stopped.
#[derive(Debug)]
pub struct Sieve {
    /// True of an object that was requested.
    links: Links<bool>,
    queue: List,
    /// The object to be looked at next; none: the oldest.
    hand: Option<u32>,
}

impl Sieve {
    /// For objects numbered below `objects`.
    pub fn new(objects: usize) -> Self {
        Self { links: Links::new(objects, false), queue: List::EMPTY, hand: None }
    }
}

impl Order for Sieve {
    #[inline]
    fn hit(&mut self, object: u32) {
        *self.links.known_mut(object) = true;
    }

    #[inline]
    fn insert(&mut self, object: u32, _: u64) {
        *self.links.known_mut(object) = false;
        self.queue.push(&mut self.links, object);
    }

    fn next(&mut self) -> Option<u32> {
        let mut at = self.hand.or(self.queue.oldest())?;
        while std::mem::take(self.links.known_mut(at)) {
            // Past the newest object, the hand begins again with the oldest one.
            at = self.links.newer(at).or(self.queue.oldest())?;
        }
        self.hand = Some(at);
        Some(at)
    }

    fn evict(&mut self) -> Option<u32> {
        let at = self.next()?;
        self.hand = self.links.newer(at);
        self.queue.remove(&mut self.links, at);
        Some(at)
    }

    fn remove(&mut self, object: u32) {
        if self.hand == Some(object) {
            self.hand = self.links.newer(object);
        }
        self.queue.remove(&mut self.links, object);
    }

    #[inline]
    fn warm(&self, object: u32) -> u64 {
        self.links.warm(object)
    }
}

impl<const RENEWS: bool> Online for Queue<RENEWS> {
    fn grow(&mut self, objects: usize) {
        self.links.grow(objects, ());
    }
}

impl Online for Clock {
    fn grow(&mut self, objects: usize) {
        self.links.grow(objects, false);
    }
}

impl Online for Sieve {
    fn grow(&mut self, objects: usize) {
        self.links.grow(objects, false);
    }
}
