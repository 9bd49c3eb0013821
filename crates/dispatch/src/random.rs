//! How does chance come out of a seed? A small generator (SplitMix64) and its mixer as a hash.

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Mixes the bits of a word so that each depends on all.
pub(crate) const fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(STEP);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Draws that follow from a seed.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: mix(seed) }
    }

    pub(crate) const fn next(&mut self) -> u64 {
        let drawn = mix(self.state);
        self.state = self.state.wrapping_add(STEP);
        drawn
    }

    /// Uniform on 0 .. n; 0 when n is 0.
    pub(crate) const fn below(&mut self, n: usize) -> usize {
        ((self.next() as u128 * n as u128) >> 64) as usize
    }

    /// Two different numbers of 0 .. n, for n of at least 2.
    pub(crate) const fn pair_below(&mut self, n: usize) -> (usize, usize) {
        let first = self.below(n);
        let second = self.below(n - 1);
        (first, if second >= first { second + 1 } else { second })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_differ_and_every_number_comes() {
        let mut random = Random::new(1);
        let mut seen = [0u32; 5];
        for _ in 0..10_000 {
            let (one, other) = random.pair_below(5);
            assert_ne!(one, other);
            seen[one] += 1;
            seen[other] += 1;
        }
        assert!(seen.iter().all(|count| (3_700..4_300).contains(count)), "{seen:?}");
    }
}
