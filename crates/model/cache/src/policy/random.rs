//! Random replacement: evicts any stored object, with the same probability.

use assay_base::random::Rng;

use super::EvictionPolicy;
use super::online::OnlinePolicy;

/// The same seed and requests give the same evictions.
#[derive(Debug)]
pub struct Random {
    stored: Vec<u32>,
    /// Index of each object in `stored`.
    positions: Vec<u32>,
    rng: Rng,
    /// The next victim, if it has been drawn.
    drawn: Option<u32>,
}

impl Random {
    pub fn new(seed: u64, objects: usize) -> Self {
        Self { stored: Vec::new(), positions: vec![0; objects], rng: Rng::new(seed), drawn: None }
    }
}

impl EvictionPolicy for Random {
    #[inline]
    fn hit(&mut self, _: u32) {}

    fn insert(&mut self, object: u32, _: u64) {
        self.positions[object as usize] = self.stored.len() as u32;
        self.stored.push(object);
    }

    fn victim(&mut self) -> Option<u32> {
        if self.drawn.is_none() && !self.stored.is_empty() {
            let at = self.rng.below(self.stored.len() as u64) as usize;
            self.drawn = Some(self.stored[at]);
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
        let at = self.positions[object as usize] as usize;
        self.stored.swap_remove(at);
        if let Some(&moved) = self.stored.get(at) {
            self.positions[moved as usize] = at as u32;
        }
    }
}

impl OnlinePolicy for Random {
    fn grow(&mut self, objects: usize) {
        self.positions.resize(objects, 0);
    }
}
