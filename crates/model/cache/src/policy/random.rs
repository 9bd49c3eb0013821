//! Random replacement: any stored object goes, with the same probability.

use assay_base::random::Rng;

use super::Order;
use super::online::Online;

/// The order of a generator. The same seed and requests give the same evictions.
#[derive(Debug)]
pub struct Random {
    stored: Vec<u32>,
    /// Where each stored object is in `stored`.
    places: Vec<u32>,
    rng: Rng,
    /// What goes next, if it has been drawn.
    drawn: Option<u32>,
}

impl Random {
    /// For objects numbered below `objects`.
    pub fn new(seed: u64, objects: usize) -> Self {
        Self { stored: Vec::new(), places: vec![0; objects], rng: Rng::new(seed), drawn: None }
    }
}

impl Order for Random {
    #[inline]
    fn hit(&mut self, _: u32) {}

    fn insert(&mut self, object: u32, _: u64) {
        self.places[object as usize] = self.stored.len() as u32;
        self.stored.push(object);
    }

    fn next(&mut self) -> Option<u32> {
        if self.drawn.is_none() && !self.stored.is_empty() {
            let at = self.rng.below(self.stored.len() as u64) as usize;
            self.drawn = Some(self.stored[at]);
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
        let at = self.places[object as usize] as usize;
        self.stored.swap_remove(at);
        if let Some(&moved) = self.stored.get(at) {
            self.places[moved as usize] = at as u32;
        }
    }
}

impl Online for Random {
    fn grow(&mut self, objects: usize) {
        self.places.resize(objects, 0);
    }
}
