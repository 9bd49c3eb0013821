//! Policies with several queues, each with a share of the capacity: SLRU and S3-FIFO.

use super::EvictionPolicy;
use super::lists::{Links, List};
use super::online::OnlinePolicy;

/// A queue that counts its bytes.
#[derive(Debug, Clone, Copy)]
struct Segment {
    queue: List,
    bytes: u64,
}

/// Size and segment of an object; segment N: none. Packed into eight bytes, since it lies beside two links of four bytes: a size of
/// eight bytes would double it.
#[derive(Debug, Clone, Copy)]
struct SegmentEntry {
    /// The size, whose upper part has two bytes: an object above 256 TB counts as 256 TB.
    lower: u32,
    upper: u16,
    segment: u8,
    /// A count for the policy's own use.
    count: u8,
}

/// The largest size that an entry can hold.
const LARGEST_BYTES: u64 = (1 << 48) - 1;

impl SegmentEntry {
    const fn absent(segment: u8) -> Self {
        Self { lower: 0, upper: 0, segment, count: 0 }
    }

    #[inline]
    fn bytes(self) -> u64 {
        u64::from(self.lower) | u64::from(self.upper) << u32::BITS
    }

    /// Sets the size, and returns it as it is stored.
    #[inline]
    fn set_bytes(&mut self, bytes: u64) -> u64 {
        let bytes = bytes.min(LARGEST_BYTES);
        (self.lower, self.upper) = (bytes as u32, (bytes >> u32::BITS) as u16);
        bytes
    }
}

/// Segments and the objects in them. All segments share one node for each object.
#[derive(Debug)]
pub(super) struct Segments<const N: usize> {
    links: Links<SegmentEntry>,
    segments: [Segment; N],
}

impl<const N: usize> Segments<N> {
    pub(super) fn new(objects: usize) -> Self {
        Self {
            links: Links::new(objects, SegmentEntry::absent(N as u8)),
            segments: [Segment { queue: List::EMPTY, bytes: 0 }; N],
        }
    }

    pub(super) fn grow(&mut self, objects: usize) {
        self.links.grow(objects, SegmentEntry::absent(N as u8));
    }

    pub(super) fn is_in(&self, object: u32, segments: &[usize]) -> bool {
        segments.contains(&self.segment_of(object))
    }

    #[inline]
    pub(super) fn segment_of(&self, object: u32) -> usize {
        usize::from(self.links.data(object).segment)
    }

    /// The size of an object that is in a segment.
    #[inline]
    pub(super) fn size(&self, object: u32) -> u64 {
        self.links.data(object).bytes()
    }

    /// The count of an object, which only the policy changes.
    #[inline]
    pub(super) fn count_mut(&mut self, object: u32) -> &mut u8 {
        &mut self.links.data_mut(object).count
    }

    #[inline]
    pub(super) fn bytes(&self, segment: usize) -> u64 {
        self.segments[segment].bytes
    }

    #[inline]
    pub(super) fn push(&mut self, segment: usize, object: u32, bytes: u64) {
        let entry = self.links.data_mut(object);
        entry.segment = segment as u8;
        let bytes = entry.set_bytes(bytes);
        self.segments[segment].bytes += bytes;
        self.segments[segment].queue.push(&mut self.links, object);
    }

    /// Removes an object from its segment, if it is in one, and returns its size.
    #[inline]
    pub(super) fn remove(&mut self, object: u32) -> u64 {
        let entry = self.links.data_mut(object);
        let bytes = entry.bytes();
        let segment = std::mem::replace(&mut entry.segment, N as u8);
        if let Some(segment) = self.segments.get_mut(usize::from(segment)) {
            segment.queue.remove(&mut self.links, object);
            segment.bytes -= bytes;
        }
        bytes
    }

    /// The oldest object of a segment and its size.
    #[inline]
    pub(super) fn oldest(&self, segment: usize) -> Option<(u32, u64)> {
        let oldest = self.segments[segment].queue.oldest()?;
        Some((oldest, self.size(oldest)))
    }

    /// Removes the oldest object of a segment, and returns its number and size.
    #[inline]
    pub(super) fn pop(&mut self, segment: usize) -> Option<(u32, u64)> {
        let oldest = self.segments[segment].queue.oldest()?;
        Some((oldest, self.remove(oldest)))
    }

    #[inline]
    pub(super) fn prefetch(&self, object: u32) -> u64 {
        self.links.prefetch(object)
    }
}

const SLRU_SEGMENTS: usize = 4;

/// Segmented LRU: an object enters the lowest of four equal segments, and each hit moves it one segment up. Objects that a segment
/// has no room for move to the one below; the oldest object of the lowest segment that is not empty is evicted.
#[derive(Debug)]
pub struct Slru {
    segments: Segments<SLRU_SEGMENTS>,
    /// Bytes of each segment above the lowest one, which takes the rest.
    share_bytes: u64,
}

impl Slru {
    pub fn new(capacity_bytes: u64, objects: usize) -> Self {
        Self { segments: Segments::new(objects), share_bytes: capacity_bytes / SLRU_SEGMENTS as u64 }
    }
}

impl EvictionPolicy for Slru {
    fn hit(&mut self, object: u32) {
        let upper = (self.segments.segment_of(object) + 1).min(SLRU_SEGMENTS - 1);
        let bytes = self.segments.remove(object);
        self.segments.push(upper, object, bytes);
        for segment in (1..=upper).rev() {
            while self.segments.bytes(segment) > self.share_bytes {
                let Some((oldest, bytes)) = self.segments.pop(segment) else { break };
                self.segments.push(segment - 1, oldest, bytes);
            }
        }
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        self.segments.push(0, object, bytes);
    }

    fn victim(&mut self) -> Option<u32> {
        (0..SLRU_SEGMENTS).find_map(|segment| self.segments.oldest(segment)).map(|(object, _)| object)
    }

    fn evict(&mut self) -> Option<u32> {
        (0..SLRU_SEGMENTS).find_map(|segment| self.segments.pop(segment)).map(|(object, _)| object)
    }

    fn remove(&mut self, object: u32) {
        self.segments.remove(object);
    }

    #[inline]
    fn prefetch(&self, object: u32) -> u64 {
        self.segments.prefetch(object)
    }
}

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOST: usize = 2;
/// Upper bound on the count of an object.
const MAX_COUNT: u8 = 3;
/// Requests beyond the first after which an object of the small queue enters the main one.
const PROMOTED_FROM: u8 = 2;

/// S3-FIFO: a small queue (a tenth of the capacity) from which objects with two or more further requests enter the main queue,
/// and a ghost queue (nine tenths, sizes without bodies) of those that left the small queue. A ghost enters the main queue
/// at once; an object of the main queue gets another chance for each counted request.
///
/// An object that is larger than the small queue is stored there all the same: the queues share the capacity, and only the order
/// of eviction depends on their shares.
#[derive(Debug)]
pub struct S3Fifo {
    /// Counts are requests since an object was stored.
    segments: Segments<3>,
    main_bytes: u64,
    /// The object about to be stored is a ghost.
    ghost_hit: bool,
    /// Whether the next victim is taken from the small queue, if that is decided.
    from_small: Option<bool>,
}

impl S3Fifo {
    pub fn new(capacity_bytes: u64, objects: usize) -> Self {
        Self {
            segments: Segments::new(objects),
            main_bytes: capacity_bytes - capacity_bytes / 10,
            ghost_hit: false,
            from_small: None,
        }
    }

    /// Next victim of the small queue; objects before it move to the main one.
    fn next_of_small(&mut self) -> Option<u32> {
        while let Some((object, bytes)) = self.segments.oldest(SMALL) {
            let requests = self.segments.count_mut(object);
            if *requests < PROMOTED_FROM {
                return Some(object);
            }
            *requests = 0;
            self.segments.remove(object);
            self.segments.push(MAIN, object, bytes);
        }
        None
    }

    fn next_of_main(&mut self) -> Option<u32> {
        loop {
            let (object, bytes) = self.segments.oldest(MAIN)?;
            let requests = self.segments.count_mut(object);
            if *requests == 0 {
                return Some(object);
            }
            *requests -= 1;
            self.segments.remove(object);
            self.segments.push(MAIN, object, bytes);
        }
    }
}

impl EvictionPolicy for S3Fifo {
    #[inline]
    fn hit(&mut self, object: u32) {
        let requests = self.segments.count_mut(object);
        *requests = (*requests + 1).min(MAX_COUNT);
    }

    fn miss(&mut self, object: u32) {
        self.ghost_hit = self.segments.segment_of(object) == GHOST;
        if self.ghost_hit {
            self.segments.remove(object);
        }
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        *self.segments.count_mut(object) = 0;
        let queue = if std::mem::take(&mut self.ghost_hit) { MAIN } else { SMALL };
        self.segments.push(queue, object, bytes);
    }

    fn victim(&mut self) -> Option<u32> {
        let is_main_full = self.segments.bytes(MAIN) > self.main_bytes;
        let from_small = *self.from_small.get_or_insert(!is_main_full);
        let next = if from_small { self.next_of_small() } else { None };
        next.or_else(|| self.next_of_main()).or_else(|| self.next_of_small())
    }

    fn evict(&mut self) -> Option<u32> {
        let object = self.victim()?;
        self.from_small = None;
        let is_small = self.segments.segment_of(object) == SMALL;
        let bytes = self.segments.remove(object);
        if is_small {
            self.segments.push(GHOST, object, bytes);
            while self.segments.bytes(GHOST) > self.main_bytes {
                self.segments.pop(GHOST);
            }
        }
        Some(object)
    }

    fn remove(&mut self, object: u32) {
        self.segments.remove(object);
    }

    #[inline]
    fn prefetch(&self, object: u32) -> u64 {
        self.segments.prefetch(object)
    }
}

impl OnlinePolicy for Slru {
    fn grow(&mut self, objects: usize) {
        self.segments.grow(objects);
    }
}

impl OnlinePolicy for S3Fifo {
    fn grow(&mut self, objects: usize) {
        self.segments.grow(objects);
    }

    fn remembers(&self, object: u32) -> bool {
        self.segments.is_in(object, &[GHOST])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_as_small_as_its_links_and_keeps_any_size_of_a_real_object() {
        assert_eq!(size_of::<SegmentEntry>(), 8);
        let mut entry = SegmentEntry::absent(3);
        for bytes in [0, 1, u64::from(u32::MAX), 1 << 40, LARGEST_BYTES] {
            assert_eq!((entry.set_bytes(bytes), entry.bytes()), (bytes, bytes));
        }
        assert_eq!((entry.set_bytes(u64::MAX), entry.bytes()), (LARGEST_BYTES, LARGEST_BYTES));
        // What is counted is what is kept, so that a segment is empty when nothing is in it.
        let mut segments: Segments<1> = Segments::new(1);
        segments.push(0, 0, u64::MAX);
        assert_eq!((segments.remove(0), segments.bytes(0)), (LARGEST_BYTES, 0));
    }
}
