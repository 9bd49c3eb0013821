//! Frequency sketch of TinyLFU: estimates of recent requests by key, in bounded memory. Apart from halving, an estimate may be too high,
//! but never too low.

use assay_base::random::mix;

/// Rows of the sketch, each with a counter for every key: the lowest of them is nearest to the truth.
const ROWS: u64 = 4;
/// Upper bound on the count of a key.
const MAX_COUNT: u8 = 15;
/// Counts are halved after this many requests for each stored object.
const SAMPLE: u64 = 10;
/// Counts are halved at most once in a row's width over this many requests, so that halving stays cheap.
const SHARE: u64 = 16;

#[derive(Debug)]
pub struct Sketch {
    counts: Vec<u8>,
    /// Counters of a row; a power of two.
    width: u64,
    since_halving: u64,
}

impl Sketch {
    /// Memory of a sketch for this many objects.
    pub fn bytes_for(objects: u64) -> u64 {
        ROWS * objects.clamp(64, 1 << 24).next_power_of_two()
    }

    /// A sketch for a cache that holds about this many objects.
    pub fn new(objects: u64) -> Self {
        let bytes = Self::bytes_for(objects);
        Self { counts: vec![0; bytes as usize], width: bytes / ROWS, since_halving: 0 }
    }

    /// Estimate of the recent requests for a key.
    pub fn estimate(&self, hash: u64) -> u8 {
        (0..ROWS).map(|row| self.counts[self.index(hash, row)]).min().unwrap_or(0)
    }

    /// Counts a request for a key, while `stored` objects are stored.
    pub fn count(&mut self, hash: u64, stored: u64) {
        let lowest = self.estimate(hash);
        for row in 0..ROWS {
            let index = self.index(hash, row);
            // Conservative update: a higher counter is shared with other keys.
            if self.counts[index] == lowest && lowest < MAX_COUNT {
                self.counts[index] += 1;
            }
        }
        self.since_halving += 1;
        if self.since_halving >= SAMPLE * stored.max(self.width / SHARE) {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.since_halving = 0;
        }
    }

    fn index(&self, hash: u64, row: u64) -> usize {
        let mixed = mix(hash.wrapping_add(row.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        (row * self.width + mixed % self.width) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_counted_too_low_and_others_seldom_too_high() {
        let mut sketch = Sketch::new(1024);
        for key in 0..1000u64 {
            (0..key % 8).for_each(|_| sketch.count(mix(key), 1000));
        }
        let of = |key: u64| u64::from(sketch.estimate(mix(key)));
        assert!((0..1000).all(|key| of(key) >= key % 8));
        let wrong = (0..1000).filter(|key| of(*key) != key % 8).count();
        assert!(wrong < 100, "{wrong}");
    }

    #[test]
    fn counts_are_halved_and_end_at_the_most() {
        let mut sketch = Sketch::new(64);
        (0..30).for_each(|_| sketch.count(7, 4));
        assert_eq!(sketch.estimate(7), 15);
        (0..10).for_each(|_| sketch.count(8, 4));
        // After 40 requests with four objects stored, and again after 80.
        assert_eq!((sketch.estimate(7), sketch.estimate(8)), (7, 5));
        (0..40).for_each(|_| sketch.count(8, 4));
        assert_eq!(sketch.estimate(7), 3);
    }
}
