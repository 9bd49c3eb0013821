//! Policies with ghosts, which are evicted objects that are remembered without their bodies: 2Q and ARC. A request for a ghost shows
//! that it was evicted too early.

use super::EvictionPolicy;
use super::online::OnlinePolicy;
use super::segments::Segments;

const ENTRY: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;

/// 2Q, full version: objects enter a FIFO queue (a quarter of the capacity); those that leave it become ghosts (half of the capacity,
/// sizes without bodies), and enter the main queue, an LRU, when they are requested again. A hit in the first queue changes nothing.
#[derive(Debug)]
pub struct TwoQ {
    segments: Segments<3>,
    entry_bytes: u64,
    ghost_bytes: u64,
    /// The object about to be stored is a ghost.
    ghost_hit: bool,
}

impl TwoQ {
    pub fn new(capacity_bytes: u64, objects: usize) -> Self {
        let (entry_bytes, ghost_bytes) = (capacity_bytes / 4, capacity_bytes / 2);
        Self { segments: Segments::new(objects), entry_bytes, ghost_bytes, ghost_hit: false }
    }

    fn evict_entry(&mut self) -> Option<u32> {
        let (object, bytes) = self.segments.pop(ENTRY)?;
        self.segments.push(GHOST, object, bytes);
        while self.segments.bytes(GHOST) > self.ghost_bytes {
            self.segments.pop(GHOST);
        }
        Some(object)
    }
}

impl EvictionPolicy for TwoQ {
    fn hit(&mut self, object: u32) {
        if self.segments.segment_of(object) == MAIN {
            let bytes = self.segments.remove(object);
            self.segments.push(MAIN, object, bytes);
        }
    }

    fn miss(&mut self, object: u32) {
        self.ghost_hit = self.segments.segment_of(object) == GHOST;
        if self.ghost_hit {
            self.segments.remove(object);
        }
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        let queue = if std::mem::take(&mut self.ghost_hit) { MAIN } else { ENTRY };
        self.segments.push(queue, object, bytes);
    }

    fn victim(&mut self) -> Option<u32> {
        let from_entry = self.segments.bytes(ENTRY) > self.entry_bytes;
        let order = if from_entry { [ENTRY, MAIN] } else { [MAIN, ENTRY] };
        order.into_iter().find_map(|queue| self.segments.oldest(queue)).map(|(object, _)| object)
    }

    fn evict(&mut self) -> Option<u32> {
        let from_entry = self.segments.bytes(ENTRY) > self.entry_bytes;
        let evicted = if from_entry { self.evict_entry() } else { None };
        evicted.or_else(|| self.segments.pop(MAIN).map(|(object, _)| object)).or_else(|| self.evict_entry())
    }

    fn remove(&mut self, object: u32) {
        self.segments.remove(object);
    }

    #[inline]
    fn prefetch(&self, object: u32) -> u64 {
        self.segments.prefetch(object)
    }
}

const ONCE: usize = 0;
const OFTEN: usize = 1;
const ONCE_GHOST: usize = 2;
const OFTEN_GHOST: usize = 3;

/// ARC: an LRU queue of objects requested once since they were stored, and one of those requested more often, each with a queue of
/// objects that left it. A request for a remembered object moves the share of its queue up, by its size times the ratio of the
/// remembered bytes. The paper has pages of one size; here all its counts are bytes.
#[derive(Debug)]
pub struct Arc {
    segments: Segments<4>,
    capacity_bytes: u64,
    /// Target size of the queue of objects requested once.
    target_bytes: u64,
    /// Ghost queue of the object about to be stored; none if it is no ghost.
    ghost_hit: Option<usize>,
}

impl Arc {
    pub fn new(capacity_bytes: u64, objects: usize) -> Self {
        Self { segments: Segments::new(objects), capacity_bytes, target_bytes: 0, ghost_hit: None }
    }

    /// The queue whose oldest object is evicted next; none if both are empty.
    fn next_queue(&self) -> Option<usize> {
        let once_bytes = self.segments.bytes(ONCE);
        let is_at_target = once_bytes == self.target_bytes && self.ghost_hit == Some(OFTEN_GHOST);
        let from_once = once_bytes > self.target_bytes || (is_at_target && once_bytes > 0);
        let order = if from_once { [ONCE, OFTEN] } else { [OFTEN, ONCE] };
        order.into_iter().find(|queue| self.segments.oldest(*queue).is_some())
    }

    fn move_to_ghosts(&mut self, queue: usize) -> Option<u32> {
        let (object, bytes) = self.segments.pop(queue)?;
        self.segments.push(queue + ONCE_GHOST, object, bytes);
        Some(object)
    }

    /// Change of the target by a request for a ghost of this size.
    fn step(&self, bytes: u64, own: usize, other: usize) -> u64 {
        let (own, other) = (self.segments.bytes(own).max(1), self.segments.bytes(other));
        bytes.max(u64::try_from(u128::from(bytes) * u128::from(other) / u128::from(own)).unwrap_or(u64::MAX))
    }

    /// Drops the oldest ghosts, so that each pair of queues keeps within its capacity.
    fn trim_ghosts(&mut self) {
        let bytes = |this: &Self, segments: &[usize]| -> u128 {
            segments.iter().map(|segment| u128::from(this.segments.bytes(*segment))).sum()
        };
        let room = u128::from(self.capacity_bytes);
        while bytes(self, &[ONCE, ONCE_GHOST]) > room && self.segments.pop(ONCE_GHOST).is_some() {}
        let all = [ONCE, OFTEN, ONCE_GHOST, OFTEN_GHOST];
        while bytes(self, &all) > 2 * room && self.segments.pop(OFTEN_GHOST).is_some() {}
    }
}

impl EvictionPolicy for Arc {
    fn hit(&mut self, object: u32) {
        let bytes = self.segments.remove(object);
        self.segments.push(OFTEN, object, bytes);
    }

    fn miss(&mut self, object: u32) {
        let remembered = self.segments.segment_of(object);
        self.ghost_hit = [ONCE_GHOST, OFTEN_GHOST].contains(&remembered).then_some(remembered);
        match self.ghost_hit {
            Some(ONCE_GHOST) => {
                let step = self.step(self.segments.size(object), ONCE_GHOST, OFTEN_GHOST);
                self.target_bytes = self.target_bytes.saturating_add(step).min(self.capacity_bytes);
            }
            Some(_) => {
                let step = self.step(self.segments.size(object), OFTEN_GHOST, ONCE_GHOST);
                self.target_bytes = self.target_bytes.saturating_sub(step);
            }
            None => return,
        }
        self.segments.remove(object);
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        let queue = if self.ghost_hit.take().is_some() { OFTEN } else { ONCE };
        self.segments.push(queue, object, bytes);
        self.trim_ghosts();
    }

    fn victim(&mut self) -> Option<u32> {
        self.next_queue().and_then(|queue| self.segments.oldest(queue)).map(|(object, _)| object)
    }

    fn evict(&mut self) -> Option<u32> {
        self.next_queue().and_then(|queue| self.move_to_ghosts(queue))
    }

    fn remove(&mut self, object: u32) {
        self.segments.remove(object);
    }

    #[inline]
    fn prefetch(&self, object: u32) -> u64 {
        self.segments.prefetch(object)
    }
}

impl OnlinePolicy for TwoQ {
    fn grow(&mut self, objects: usize) {
        self.segments.grow(objects);
    }

    fn remembers(&self, object: u32) -> bool {
        self.segments.is_in(object, &[GHOST])
    }
}

impl OnlinePolicy for Arc {
    fn grow(&mut self, objects: usize) {
        self.segments.grow(objects);
    }

    fn remembers(&self, object: u32) -> bool {
        self.segments.is_in(object, &[ONCE_GHOST, OFTEN_GHOST])
    }
}
