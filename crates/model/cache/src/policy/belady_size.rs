//! Belady's MIN for objects of several sizes: evicts the object with the largest product of size and time to its next request. The
//! policy needs the future, so no real cache can have it; nor is it a bound, since the best schedule is hard to find.

use assay_base::random::Rng;

use super::EvictionPolicy;
use super::belady::NEVER;

/// Size of the random sample of which the victim is the worst.
const SAMPLE: u64 = 64;

/// Evicts an object that is never requested again, otherwise the worst of a random sample. [`BeladySize::set_next_request`] is called
/// before each request. The same seed and requests give the same evictions.
#[derive(Debug)]
pub struct BeladySize {
    stored: Vec<u32>,
    /// Index of each object in `stored`.
    positions: Vec<u32>,
    /// Next request and size by object.
    next_and_size: Vec<(u64, u64)>,
    /// Objects that are never requested again; some may have been removed.
    never_requested: Vec<u32>,
    rng: Rng,
    now: u64,
    next: u64,
    /// The next victim, if a sample has been drawn.
    drawn: Option<u32>,
    /// Share of its bytes that counts as the size of each object; empty: all bytes.
    shares: Vec<f32>,
}

impl BeladySize {
    pub fn new(seed: u64, objects: usize) -> Self {
        Self {
            stored: Vec::new(),
            positions: vec![u32::MAX; objects],
            next_and_size: vec![(NEVER, 0); objects],
            never_requested: Vec::new(),
            rng: Rng::new(seed),
            now: 0,
            next: NEVER,
            drawn: None,
            shares: Vec::new(),
        }
    }

    /// Sets the share of its bytes that counts as the size of each object: in the simulation of a sample, an object takes more room than
    /// its size.
    #[must_use]
    pub fn with_shares(self, shares: Vec<f32>) -> Self {
        Self { shares, ..self }
    }

    /// Sets the number of the coming request, and of the next one for the same object ([`NEVER`] if there is none).
    #[inline]
    pub fn set_next_request(&mut self, now: u64, next: u64) {
        (self.now, self.next) = (now, next);
    }

    fn record_next(&mut self, object: u32, bytes: u64) {
        self.next_and_size[object as usize] = (self.next, bytes);
        if self.next == NEVER {
            self.never_requested.push(object);
        }
    }

    fn is_stored(&self, object: u32) -> bool {
        self.positions[object as usize] != u32::MAX
    }

    fn cost(&self, object: u32) -> u128 {
        let (next, bytes) = self.next_and_size[object as usize];
        u128::from(next.saturating_sub(self.now)) * u128::from(bytes.max(1))
    }

    fn draw(&mut self) -> Option<u32> {
        let count = self.stored.len() as u64;
        if count <= SAMPLE {
            self.stored.iter().copied().max_by_key(|object| self.cost(*object))
        } else {
            let drawn: [u32; SAMPLE as usize] =
                std::array::from_fn(|_| self.stored[self.rng.below(count) as usize]);
            drawn.into_iter().max_by_key(|object| self.cost(*object))
        }
    }
}

impl EvictionPolicy for BeladySize {
    fn hit(&mut self, object: u32) {
        let (_, bytes) = self.next_and_size[object as usize];
        self.record_next(object, bytes);
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        self.positions[object as usize] = self.stored.len() as u32;
        self.stored.push(object);
        let share = self.shares.get(object as usize);
        self.record_next(object, share.map_or(bytes, |share| (bytes as f64 * f64::from(*share)) as u64));
    }

    fn victim(&mut self) -> Option<u32> {
        while let Some(&object) = self.never_requested.last() {
            if self.is_stored(object) && self.next_and_size[object as usize].0 == NEVER {
                return Some(object);
            }
            self.never_requested.pop();
        }
        if self.drawn.is_none() {
            self.drawn = self.draw();
        }
        self.drawn
    }

    fn evict(&mut self) -> Option<u32> {
        let object = self.victim()?;
        self.remove(object);
        Some(object)
    }

    fn remove(&mut self, object: u32) {
        self.drawn = self.drawn.filter(|drawn| *drawn != object);
        let at = std::mem::replace(&mut self.positions[object as usize], u32::MAX) as usize;
        self.stored.swap_remove(at);
        if let Some(&moved) = self.stored.get(at) {
            self.positions[moved as usize] = at as u32;
        }
    }
}
