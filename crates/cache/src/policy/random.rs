//! Random replacement: any stored object goes, with the same probability.

use assay_random::Rng;

use super::Order;

/// The order of a generator. The same seed and requests give the same evictions.
#[derive(Debug)]
pub struct Random {
    stored: Vec<u32>,
    /// Where each stored object is in `stored`.
    places: Vec<u32>,
    rng: Rng,
}

impl Random {
    /// For objects numbered below `objects`.
    pub fn new(seed: u64, objects: usize) -> Self {
        Self { stored: Vec::new(), places: vec![0; objects], rng: Rng::new(seed) }
    }
}

impl Order for Random {
    #[inline]
    fn hit(&mut self, _: u32) {}

    fn insert(&mut self, object: u32, _: u64) {
        self.places[object as usize] = self.stored.len() as u32;
        self.stored.push(object);
    }

    fn evict(&mut self) -> Option<u32> {
        if self.stored.is_empty() {
            return None;
        }
        let at = self.rng.below(self.stored.len() as u64) as usize;
        let object = self.stored[at];
        self.remove(object);
        Some(object)
    }

    fn remove(&mut self, object: u32) {
        let at = self.places[object as usize] as usize;
        self.stored.swap_remove(at);
        if let Some(&moved) = self.stored.get(at) {
            self.places[moved as usize] = at as u32;
        }
    }
}
