//! Belady's MIN: the object whose next request is latest goes. It needs the future, so it is a bound and no policy of a real
//! cache: no policy has more hits if all objects have the same size. With several sizes it is not a bound.

use std::collections::VecDeque;

use super::Order;
use super::latest::Latest;

/// The next request of an object that is never requested again.
pub const NEVER: u64 = u64::MAX;
const NO_OBJECT: u32 = u32::MAX;

/// The order of next requests. [`Belady::next_is`] is called before each request.
#[derive(Debug)]
pub struct Belady {
    /// Next requests of stored objects.
    latest: Latest,
    /// The object of each of them.
    objects: Vec<u32>,
    /// The next request of an object, if it is stored.
    next_of: Vec<u64>,
    /// Objects that are never requested again, and go first, in the order of their last requests. One that has gone for another
    /// reason is passed over.
    useless: VecDeque<u32>,
    next: u64,
}

impl Belady {
    /// For objects numbered below `objects`.
    pub fn new(objects: usize) -> Self {
        Self {
            latest: Latest::default(),
            objects: Vec::new(),
            next_of: vec![0; objects],
            useless: VecDeque::new(),
            next: NEVER,
        }
    }

    /// Says when the object of the coming request will be requested next: the number of that request, or [`NEVER`].
    #[inline]
    pub fn next_is(&mut self, next: u64) {
        self.next = next;
    }

    fn leave(&mut self, object: u32) {
        let next = std::mem::replace(&mut self.next_of[object as usize], 0);
        if next != NEVER && next != 0 {
            self.latest.remove(next as usize);
        }
    }

    fn enter(&mut self, object: u32) {
        self.next_of[object as usize] = self.next;
        if self.next == NEVER {
            self.useless.push_back(object);
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

impl Order for Belady {
    fn hit(&mut self, object: u32) {
        self.leave(object);
        self.enter(object);
    }

    fn insert(&mut self, object: u32, _: u64) {
        self.enter(object);
    }

    fn next(&mut self) -> Option<u32> {
        while let Some(&object) = self.useless.front() {
            if self.next_of[object as usize] == NEVER {
                return Some(object);
            }
            self.useless.pop_front();
        }
        self.latest.latest().map(|next| self.objects[next])
    }

    fn evict(&mut self) -> Option<u32> {
        let object = self.next()?;
        if self.next_of[object as usize] == NEVER {
            self.useless.pop_front();
        }
        self.leave(object);
        Some(object)
    }

    fn remove(&mut self, object: u32) {
        self.leave(object);
    }

    #[inline]
    fn warm(&self, object: u32) -> u64 {
        self.next_of.get(object as usize).copied().unwrap_or(0)
    }
}
