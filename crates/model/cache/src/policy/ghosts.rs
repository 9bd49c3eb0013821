//! Policies that remember what they evicted: 2Q and ARC. A remembered object takes no room, and shows when it is requested again
//! that it went too early.

use super::Order;
use super::online::Online;
use super::segments::Segments;

const ENTRY: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;

/// 2Q, full version: objects enter a FIFO queue (a quarter of the capacity); what leaves it is remembered (half of the capacity, sizes
/// without bodies), and enters the main queue, an LRU, when it is requested again. A hit in the first queue changes nothing.
#[derive(Debug)]
pub struct TwoQ {
    segments: Segments<3>,
    entry_bytes: u64,
    ghost_bytes: u64,
    /// The object about to be stored was remembered.
    known: bool,
}

impl TwoQ {
    /// For objects numbered below `objects`.
    pub fn new(capacity_bytes: u64, objects: usize) -> Self {
        let (entry_bytes, ghost_bytes) = (capacity_bytes / 4, capacity_bytes / 2);
        Self { segments: Segments::new(objects), entry_bytes, ghost_bytes, known: false }
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

impl Order for TwoQ {
    fn hit(&mut self, object: u32) {
        if self.segments.of(object) == MAIN {
            let bytes = self.segments.take(object);
            self.segments.push(MAIN, object, bytes);
        }
    }

    fn miss(&mut self, object: u32) {
        self.known = self.segments.of(object) == GHOST;
        if self.known {
            self.segments.take(object);
        }
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        let queue = if std::mem::take(&mut self.known) { MAIN } else { ENTRY };
        self.segments.push(queue, object, bytes);
    }

    fn next(&mut self) -> Option<u32> {
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
        self.segments.take(object);
    }

    #[inline]
    fn warm(&self, object: u32) -> u64 {
        self.segments.warm(object)
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
    /// Bytes that the queue of objects requested once should have.
    target_bytes: u64,
    /// Where the object about to be stored was remembered; none: nowhere.
    known: Option<usize>,
}

impl Arc {
    /// For objects numbered below `objects`.
    pub fn new(capacity_bytes: u64, objects: usize) -> Self {
        Self { segments: Segments::new(objects), capacity_bytes, target_bytes: 0, known: None }
    }

    /// The queue of which the oldest object goes next; none: both are empty.
    fn next_queue(&self) -> Option<usize> {
        let once_bytes = self.segments.bytes(ONCE);
        let is_at_target = once_bytes == self.target_bytes && self.known == Some(OFTEN_GHOST);
        let from_once = once_bytes > self.target_bytes || (is_at_target && once_bytes > 0);
        let order = if from_once { [ONCE, OFTEN] } else { [OFTEN, ONCE] };
        order.into_iter().find(|queue| self.segments.oldest(*queue).is_some())
    }

    fn move_to_ghosts(&mut self, queue: usize) -> Option<u32> {
        let (object, bytes) = self.segments.pop(queue)?;
        self.segments.push(queue + ONCE_GHOST, object, bytes);
        Some(object)
    }

    /// By how much a request for a remembered object of this size moves the target.
    fn step(&self, bytes: u64, own: usize, other: usize) -> u64 {
        let (own, other) = (self.segments.bytes(own).max(1), self.segments.bytes(other));
        bytes.max(u64::try_from(u128::from(bytes) * u128::from(other) / u128::from(own)).unwrap_or(u64::MAX))
    }

    /// Forgets the oldest of the remembered objects, so that each pair of queues has its room.
    fn forget(&mut self) {
        let bytes = |this: &Self, segments: &[usize]| -> u128 {
            segments.iter().map(|segment| u128::from(this.segments.bytes(*segment))).sum()
        };
        let room = u128::from(self.capacity_bytes);
        while bytes(self, &[ONCE, ONCE_GHOST]) > room && self.segments.pop(ONCE_GHOST).is_some() {}
        let all = [ONCE, OFTEN, ONCE_GHOST, OFTEN_GHOST];
        while bytes(self, &all) > 2 * room && self.segments.pop(OFTEN_GHOST).is_some() {}
    }
}

impl Order for Arc {
    fn hit(&mut self, object: u32) {
        let bytes = self.segments.take(object);
        self.segments.push(OFTEN, object, bytes);
    }

    fn miss(&mut self, object: u32) {
        let remembered = self.segments.of(object);
        self.known = [ONCE_GHOST, OFTEN_GHOST].contains(&remembered).then_some(remembered);
        match self.known {
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
        self.segments.take(object);
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        let queue = if self.known.take().is_some() { OFTEN } else { ONCE };
        self.segments.push(queue, object, bytes);
        self.forget();
    }

    fn next(&mut self) -> Option<u32> {
        self.next_queue().and_then(|queue| self.segments.oldest(queue)).map(|(object, _)| object)
    }

    fn evict(&mut self) -> Option<u32> {
        self.next_queue().and_then(|queue| self.move_to_ghosts(queue))
    }

    fn remove(&mut self, object: u32) {
        self.segments.take(object);
    }

    #[inline]
    fn warm(&self, object: u32) -> u64 {
        self.segments.warm(object)
    }
}

impl Online for TwoQ {
    fn grow(&mut self, objects: usize) {
        self.segments.grow(objects);
    }

    fn remembers(&self, object: u32) -> bool {
        self.segments.is_in(object, &[GHOST])
    }
}

impl Online for Arc {
    fn grow(&mut self, objects: usize) {
        self.segments.grow(objects);
    }

    fn remembers(&self, object: u32) -> bool {
        self.segments.is_in(object, &[ONCE_GHOST, OFTEN_GHOST])
    }
}
