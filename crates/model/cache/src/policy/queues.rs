//! Policies with one queue: FIFO, LRU, Clock, SIEVE.

use super::EvictionPolicy;
use super::lists::{Links, List};
use super::online::OnlinePolicy;

/// One queue, whose oldest object is evicted. `RENEWS`: a request makes its object the newest.
#[derive(Debug)]
pub struct Queue<const RENEWS: bool> {
    links: Links,
    queue: List,
}

/// First in, first out: requests change nothing.
pub type Fifo = Queue<false>;
/// Evicts the least recently requested object.
pub type Lru = Queue<true>;

impl<const RENEWS: bool> Queue<RENEWS> {
    pub fn new(objects: usize) -> Self {
        Self { links: Links::new(objects, ()), queue: List::EMPTY }
    }
}

impl<const RENEWS: bool> EvictionPolicy for Queue<RENEWS> {
    #[inline]
    fn hit(&mut self, object: u32) {
        if RENEWS {
            self.queue.move_to_newest(&mut self.links, object);
        }
    }

    #[inline]
    fn insert(&mut self, object: u32, _: u64) {
        self.queue.push(&mut self.links, object);
    }

    fn victim(&mut self) -> Option<u32> {
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
    fn prefetch(&self, object: u32) -> u64 {
        self.links.prefetch(object)
    }
}

/// FIFO in which an object that was requested since it was stored, or since it was last skipped, gets a second chance.
#[derive(Debug)]
pub struct Clock {
    /// True for an object that was requested.
    links: Links<bool>,
    queue: List,
}

impl Clock {
    pub fn new(objects: usize) -> Self {
        Self { links: Links::new(objects, false), queue: List::EMPTY }
    }
}

impl EvictionPolicy for Clock {
    #[inline]
    fn hit(&mut self, object: u32) {
        *self.links.data_mut(object) = true;
    }

    #[inline]
    fn insert(&mut self, object: u32, _: u64) {
        *self.links.data_mut(object) = false;
        self.queue.push(&mut self.links, object);
    }

    fn victim(&mut self) -> Option<u32> {
        loop {
            let oldest = self.queue.oldest()?;
            if !std::mem::take(self.links.data_mut(oldest)) {
                return Some(oldest);
            }
            self.queue.move_to_newest(&mut self.links, oldest);
        }
    }

    fn evict(&mut self) -> Option<u32> {
        let oldest = self.victim()?;
        self.queue.remove(&mut self.links, oldest);
        Some(oldest)
    }

    fn remove(&mut self, object: u32) {
        self.queue.remove(&mut self.links, object);
    }

    #[inline]
    fn prefetch(&self, object: u32) -> u64 {
        self.links.prefetch(object)
    }
}

/// Clock in which an object with a second chance keeps its position, and the hand continues from where it stopped.
#[derive(Debug)]
pub struct Sieve {
    /// True for an object that was requested.
    links: Links<bool>,
    queue: List,
    /// The object to be examined next; none: the oldest.
    hand: Option<u32>,
}

impl Sieve {
    pub fn new(objects: usize) -> Self {
        Self { links: Links::new(objects, false), queue: List::EMPTY, hand: None }
    }
}

impl EvictionPolicy for Sieve {
    #[inline]
    fn hit(&mut self, object: u32) {
        *self.links.data_mut(object) = true;
    }

    #[inline]
    fn insert(&mut self, object: u32, _: u64) {
        *self.links.data_mut(object) = false;
        self.queue.push(&mut self.links, object);
    }

    fn victim(&mut self) -> Option<u32> {
        let mut at = self.hand.or(self.queue.oldest())?;
        while std::mem::take(self.links.data_mut(at)) {
            // Past the newest object, the hand begins again with the oldest one.
            at = self.links.newer(at).or(self.queue.oldest())?;
        }
        self.hand = Some(at);
        Some(at)
    }

    fn evict(&mut self) -> Option<u32> {
        let at = self.victim()?;
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
    fn prefetch(&self, object: u32) -> u64 {
        self.links.prefetch(object)
    }
}

impl<const RENEWS: bool> OnlinePolicy for Queue<RENEWS> {
    fn grow(&mut self, objects: usize) {
        self.links.grow(objects, ());
    }
}

impl OnlinePolicy for Clock {
    fn grow(&mut self, objects: usize) {
        self.links.grow(objects, false);
    }
}

impl OnlinePolicy for Sieve {
    fn grow(&mut self, objects: usize) {
        self.links.grow(objects, false);
    }
}
