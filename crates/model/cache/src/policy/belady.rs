//! Belady's MIN: evicts the object whose next request is latest. MIN needs the future, so no real cache can have it; it is an upper
//! bound of hits if all objects have the same size. With several sizes it is not a bound.

use std::collections::VecDeque;

use super::EvictionPolicy;
use super::bitset::MomentSet;

/// The next request of an object that is never requested again.
pub const NEVER: u64 = u64::MAX;
const NO_OBJECT: u32 = u32::MAX;

/// Evicts by next requests. [`Belady::set_next_request`] is called before each request.
#[derive(Debug)]
pub struct Belady {
    /// Next requests of stored objects.
    latest: MomentSet,
    /// The object of each next request.
    objects: Vec<u32>,
    /// Next request of each object; 0 if it is not stored.
    next_of: Vec<u64>,
    /// Objects that are never requested again, which go first, in the order of their last requests. Those that were removed meanwhile are
    /// skipped.
    never_requested: VecDeque<u32>,
    next: u64,
}

impl Belady {
    pub fn new(objects: usize) -> Self {
        Self {
            latest: MomentSet::default(),
            objects: Vec::new(),
            next_of: vec![0; objects],
            never_requested: VecDeque::new(),
            next: NEVER,
        }
    }

    /// Sets the number of the next request for the object of the coming request, or [`NEVER`].
    #[inline]
    pub fn set_next_request(&mut self, next: u64) {
        self.next = next;
    }

    fn unlink(&mut self, object: u32) {
        let next = std::mem::replace(&mut self.next_of[object as usize], 0);
        if next != NEVER && next != 0 {
            self.latest.remove(next as usize);
        }
    }

    fn link(&mut self, object: u32) {
        self.next_of[object as usize] = self.next;
        if self.next == NEVER {
            self.never_requested.push_back(object);
            return;
        }
        let next = self.next as usize;
        self.latest.insert(next);
        if next >= self.objects.len() {
            self.objects.resize((next + 1).max(self.objects.len() * 2), NO_OBJECT);
        }
        self.objects[next] = object;
    }
}

impl EvictionPolicy for Belady {
    fn hit(&mut self, object: u32) {
        self.unlink(object);
        self.link(object);
    }

    fn insert(&mut self, object: u32, _: u64) {
        self.link(object);
    }

    fn victim(&mut self) -> Option<u32> {
        while let Some(&object) = self.never_requested.front() {
            if self.next_of[object as usize] == NEVER {
                return Some(object);
            }
            self.never_requested.pop_front();
        }
        self.latest.latest().map(|next| self.objects[next])
    }

    fn evict(&mut self) -> Option<u32> {
        let object = self.victim()?;
        if self.next_of[object as usize] == NEVER {
            self.never_requested.pop_front();
        }
        self.unlink(object);
        Some(object)
    }

    fn remove(&mut self, object: u32) {
        self.unlink(object);
    }

    #[inline]
    fn prefetch(&self, object: u32) -> u64 {
        self.next_of.get(object as usize).copied().unwrap_or(0)
    }
}
