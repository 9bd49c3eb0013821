//! W-TinyLFU: a small window, and a main part that an object enters only if it was requested more often than the one it would
//! replace.

use super::EvictionPolicy;
use super::online::OnlinePolicy;
use super::segments::Segments;
use super::sketch::Sketch;

const WINDOW: usize = 0;
const PROBATION: usize = 1;
const PROTECTED: usize = 2;

/// Upper bound on the count of an object, as in a counter of four bits.
const MAX_COUNT: u8 = 15;
/// Counts are halved after this many requests for each stored object.
const SAMPLE: u64 = 10;
/// Halvings after which every count is 0.
const FORGOTTEN_AFTER: u32 = 4;

/// Recent requests by object. TinyLFU estimates them with a sketch; numbered objects have counters of their own, so that no two are
/// confused.
#[derive(Debug)]
pub(super) struct Frequencies {
    counts: Vec<u8>,
    /// Halvings already applied to each count.
    halved: Vec<u32>,
    halvings: u32,
    since_halving: u64,
}

impl Frequencies {
    pub(super) fn new(objects: usize) -> Self {
        Self { counts: vec![0; objects], halved: vec![0; objects], halvings: 0, since_halving: 0 }
    }

    fn grow(&mut self, objects: usize) {
        self.counts.resize(objects, 0);
        self.halved.resize(objects, self.halvings);
    }

    pub(super) fn estimate(&self, object: u32) -> u8 {
        let behind = self.halvings - self.halved[object as usize];
        if behind > FORGOTTEN_AFTER { 0 } else { self.counts[object as usize] >> behind }
    }

    pub(super) fn count(&mut self, object: u32, stored: u64) {
        let count = (self.estimate(object) + 1).min(MAX_COUNT);
        self.counts[object as usize] = count;
        self.halved[object as usize] = self.halvings;
        self.since_halving += 1;
        if self.since_halving >= SAMPLE * stored.max(1) {
            self.halvings += 1;
            self.since_halving = 0;
        }
    }
}

/// Counters of requests.
#[derive(Debug)]
enum RequestCounts {
    /// By number, which an object keeps.
    Numbered(Frequencies),
    /// By the hash of its key, since the number of an object that is not stored is given to another.
    Hashed { sketch: Sketch, hashes: Vec<u64> },
}

impl RequestCounts {
    fn estimate(&self, object: u32) -> u8 {
        match self {
            Self::Numbered(frequencies) => frequencies.estimate(object),
            Self::Hashed { sketch, hashes } => sketch.estimate(hashes[object as usize]),
        }
    }

    fn count(&mut self, object: u32, stored: u64) {
        match self {
            Self::Numbered(frequencies) => frequencies.count(object, stored),
            Self::Hashed { sketch, hashes } => sketch.count(hashes[object as usize], stored),
        }
    }
}

/// The window is an LRU of 1 % of the capacity; the main part is an SLRU, four fifths of it protected. An object that leaves the window
/// competes with the oldest object on probation, and the one with fewer recent requests is evicted (the one from the window if both
/// have equally many).
#[derive(Debug)]
pub struct WTinyLfu {
    segments: Segments<3>,
    counts: RequestCounts,
    window_bytes: u64,
    main_bytes: u64,
    protected_bytes: u64,
    stored: u64,
}

impl WTinyLfu {
    pub fn new(capacity_bytes: u64, objects: usize) -> Self {
        Self::with_counts(RequestCounts::Numbered(Frequencies::new(objects)), capacity_bytes, objects)
    }

    /// For objects whose numbers are reused, of which about this many are stored at a time.
    pub fn by_hash(capacity_bytes: u64, objects: u64) -> Self {
        let sketch = Sketch::new(objects);
        Self::with_counts(RequestCounts::Hashed { sketch, hashes: Vec::new() }, capacity_bytes, 0)
    }

    fn with_counts(counts: RequestCounts, capacity_bytes: u64, objects: usize) -> Self {
        let window_bytes = capacity_bytes / 100;
        let main_bytes = capacity_bytes - window_bytes;
        Self {
            segments: Segments::new(objects),
            counts,
            window_bytes,
            main_bytes,
            protected_bytes: main_bytes - main_bytes / 5,
            stored: 0,
        }
    }

    /// Moves objects that the window has no room for into the main part, while that has room.
    fn drain_window(&mut self) {
        while self.segments.bytes(WINDOW) > self.window_bytes {
            let Some((_, bytes)) = self.segments.oldest(WINDOW) else { return };
            let used_bytes = self.segments.bytes(PROBATION) + self.segments.bytes(PROTECTED);
            if bytes > self.main_bytes.saturating_sub(used_bytes) {
                return;
            }
            let Some((object, bytes)) = self.segments.pop(WINDOW) else { return };
            self.segments.push(PROBATION, object, bytes);
        }
    }
}

impl EvictionPolicy for WTinyLfu {
    fn hit(&mut self, object: u32) {
        self.counts.count(object, self.stored);
        let segment = self.segments.segment_of(object);
        let bytes = self.segments.remove(object);
        self.segments.push(if segment == WINDOW { WINDOW } else { PROTECTED }, object, bytes);
        while self.segments.bytes(PROTECTED) > self.protected_bytes {
            let Some((oldest, bytes)) = self.segments.pop(PROTECTED) else { return };
            self.segments.push(PROBATION, oldest, bytes);
        }
    }

    fn miss(&mut self, object: u32) {
        self.counts.count(object, self.stored);
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        self.segments.push(WINDOW, object, bytes);
        self.stored += 1;
        self.drain_window();
    }

    fn victim(&mut self) -> Option<u32> {
        self.drain_window();
        let victim = self.segments.oldest(PROBATION).or_else(|| self.segments.oldest(PROTECTED));
        let overflows = self.segments.bytes(WINDOW) > self.window_bytes;
        let candidate = self.segments.oldest(WINDOW).filter(|_| overflows || victim.is_none());
        let (next, _) = match (candidate, victim) {
            (Some(candidate), Some(victim)) => {
                let is_better = self.counts.estimate(candidate.0) > self.counts.estimate(victim.0);
                if is_better { victim } else { candidate }
            }
            (candidate, victim) => candidate.or(victim)?,
        };
        Some(next)
    }

    fn evict(&mut self) -> Option<u32> {
        let object = self.victim()?;
        self.remove(object);
        Some(object)
    }

    fn remove(&mut self, object: u32) {
        self.segments.remove(object);
        self.stored -= 1;
    }

    #[inline]
    fn prefetch(&self, object: u32) -> u64 {
        self.segments.prefetch(object)
    }
}

impl OnlinePolicy for WTinyLfu {
    fn grow(&mut self, objects: usize) {
        self.segments.grow(objects);
        match &mut self.counts {
            RequestCounts::Numbered(frequencies) => frequencies.grow(objects),
            RequestCounts::Hashed { hashes, .. } => hashes.resize(objects, 0),
        }
    }

    fn rename(&mut self, object: u32, hash: u64) {
        if let RequestCounts::Hashed { hashes, .. } = &mut self.counts {
            hashes[object as usize] = hash;
        }
    }

    fn bytes_per_object(&self) -> u64 {
        32
    }
}
