//! Belady's idea for objects of several sizes: the object with the largest product of size and time to its next request goes. It
//! needs the future, so it is no policy of a real cache; nor is it a bound, since the best schedule is hard to find.

use assay_base::random::Rng;

use super::Order;
use super::belady::NEVER;

/// Objects that are looked at for each one that is evicted.
const SAMPLE: u64 = 64;

/// The order. [`Farthest::next_is`] is called before each request. What is never requested again goes first; otherwise the worst of a
/// random sample. The same seed and requests give the same evictions.
#[derive(Debug)]
pub struct Farthest {
    stored: Vec<u32>,
    /// Where each stored object is in `stored`.
    places: Vec<u32>,
    /// Next request and size by object.
    known: Vec<(u64, u64)>,
    /// Objects that are never requested again, unless they have gone since.
    useless: Vec<u32>,
    rng: Rng,
    now: u64,
    next: u64,
    /// What goes next, if a sample has been drawn.
    drawn: Option<u32>,
    /// By object, the share of its bytes that counts as its size; empty: all of them.
    shares: Vec<f32>,
}

impl Farthest {
    /// For objects numbered below `objects`.
    pub fn new(seed: u64, objects: usize) -> Self {
        Self {
            stored: Vec::new(),
            places: vec![u32::MAX; objects],
            known: vec![(NEVER, 0); objects],
            useless: Vec::new(),
            rng: Rng::new(seed),
            now: 0,
            next: NEVER,
            drawn: None,
            shares: Vec::new(),
        }
    }

    /// The same where these shares of their bytes are the sizes of objects: in the simulation of a sample, the room of an object is more than
    /// its size.
    #[must_use]
    pub fn with_shares(self, shares: Vec<f32>) -> Self {
        Self { shares, ..self }
    }

    /// Says which request is coming, and which is the next one for the same object, or [`NEVER`].
    #[inline]
    pub fn next_is(&mut self, now: u64, next: u64) {
        (self.now, self.next) = (now, next);
    }

    fn note(&mut self, object: u32, bytes: u64) {
        self.known[object as usize] = (self.next, bytes);
        if self.next == NEVER {
            self.useless.push(object);
        }
    }

    fn is_stored(&self, object: u32) -> bool {
        self.places[object as usize] != u32::MAX
    }

    fn cost(&self, object: u32) -> u128 {
        let (next, bytes) = self.known[object as usize];
        u128::from(next.saturating_sub(self.now)) * u128::from(bytes.max(1))
    }

    /// The worst of a random sample.
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

impl Order for Farthest {
    fn hit(&mut self, object: u32) {
        let (_, bytes) = self.known[object as usize];
        self.note(object, bytes);
    }

    fn insert(&mut self, object: u32, bytes: u64) {
        self.places[object as usize] = self.stored.len() as u32;
        self.stored.push(object);
        let share = self.shares.get(object as usize);
        self.note(object, share.map_or(bytes, |share| (bytes as f64 * f64::from(*share)) as u64));
    }

    fn next(&mut self) -> Option<u32> {
        while let Some(&object) = self.useless.last() {
            if self.is_stored(object) && self.known[object as usize].0 == NEVER {
                return Some(object);
            }
            self.useless.pop();
        }
        if self.drawn.is_none() {
            self.drawn = self.draw();
        }
        self.drawn
    }

    fn evict(&mut self) -> Option<u32> {
        let object = self.next()?;
        self.remove(object);
        Some(object)
    }

    fn remove(&mut self, object: u32) {
        self.drawn = self.drawn.filter(|drawn| *drawn != object);
        let at = std::mem::replace(&mut self.places[object as usize], u32::MAX) as usize;
        self.stored.swap_remove(at);
        if let Some(&moved) = self.stored.get(at) {
            self.places[moved as usize] = at as u32;
        }
    }
}
