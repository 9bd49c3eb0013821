//! Estimates of a stream of any length in memory of a fixed size, with their errors.

pub mod distinct;
pub mod durations;
pub mod heavy_hitters;
pub(crate) mod prehashed_map;
pub mod time_counts;

use std::hash::Hasher;

/// Keys are well mixed; hashing them once more would be for nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }
}
