//! How often keys were requested lately, in a bounded room: the sketch of TinyLFU. It may take a key for requested more often than it was,
//! never for less often, apart from halving.

use assay_base::random::mix;

/// Rows of the sketch, each with a counter of its own for a key: the lowest of them is nearest to the truth.
const ROWS: u64 = 4;
/// Most requests that are counted of a key.
const MOST_COUNTED: u8 = 15;
/// Counts are halved after so many requests for each stored object.
const SAMPLE: u64 = 10;
/// Halving costs as much as this share of the counters has requests, at most.
const SHARE: u64 = 16;

/// Counters for keys that are given as hashes.
#[derive(Debug)]
pub struct Sketch {
    counts: Vec<u8>,
    /// Counters of a row; a power of two.
    width: u64,
    since_halving: u64,
}

impl Sketch {
    /// Bytes that a sketch for so many objects takes.
    pub fn bytes_for(objects: u64) -> u64 {
        ROWS * objects.clamp(64, 1 << 24).next_power_of_two()
    }

    /// For about so many objects that are stored at a time.
    pub fn new(objects: u64) -> Self {
        let bytes = Self::bytes_for(objects);
        Self { counts: vec![0; bytes as usize], width: bytes / ROWS, since_halving: 0 }
    }

    /// How often a key was requested lately.
    pub fn of(&self, hash: u64) -> u8 {
        (0..ROWS).map(|row| self.counts[self.place(hash, row)]).min().unwrap_or(0)
    }

    /// Counts a request for a key, while so many objects are stored.
    pub fn count(&mut self, hash: u64, stored: u64) {
        let lowest = self.of(hash);
        for row in 0..ROWS {
            let place = self.place(hash, row);
            // The others count for other keys, too.
            if self.counts[place] == lowest && lowest < MOST_COUNTED {
                self.counts[place] += 1;
            }
        }
        self.since_halving += 1;
        if self.since_halving >= SAMPLE * stored.max(self.width / SHARE) {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.since_halving = 0;
        }
    }

    fn place(&self, hash: u64, row: u64) -> usize {
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
        let of = |key: u64| u64::from(sketch.of(mix(key)));
        assert!((0..1000).all(|key| of(key) >= key % 8));
        let wrong = (0..1000).filter(|key| of(*key) != key % 8).count();
        assert!(wrong < 100, "{wrong}");
    }

    #[test]
    fn counts_are_halved_and_end_at_the_most() {
        let mut sketch = Sketch::new(64);
        (0..30).for_each(|_| sketch.count(7, 4));
        assert_eq!(sketch.of(7), 15);
        (0..10).for_each(|_| sketch.count(8, 4));
        // After 40 requests with four objects stored, and again after 80.
        assert_eq!((sketch.of(7), sketch.of(8)), (7, 5));
        (0..40).for_each(|_| sketch.count(8, 4));
        assert_eq!(sketch.of(7), 3);
    }
}
