//! Numbers that look random and follow from a seed or an identity: a mixer of 64-bit words, hashes made of it, and a
//! small generator.
//!
//! All of it is SplitMix64. [`finalize`] is its finaliser, a bijection of 64-bit words in which every input bit reaches
//! every output bit; [`mix`] is the generator's first number for a seed; [`fold`] and [`hash`] take words through it one
//! after another; [`Rng`] is the generator, a counter through the finaliser. The bits are the same on every machine and
//! are part of every stream, schedule and order that is drawn with them: changing them changes all of these.
//!
//! *Does not:* draw seeds from anywhere, resist somebody who makes collisions on purpose, or know what a decision is for
//! (callers say that by a number of their own: a purpose).

/// The counter's step: 2^64 over the golden ratio, odd.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Offset basis of FNV-1a.
pub const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Scatters one word over all 64 bits; a bijection. 0 stays 0, and few bits stay recognisable in sums: seeds that
/// are counted up go through [`mix`].
#[inline]
pub const fn finalize(word: u64) -> u64 {
    let mut z = word;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The first number of SplitMix64 for a seed; a bijection.
#[inline]
pub const fn mix(word: u64) -> u64 {
    finalize(word.wrapping_add(STEP))
}

/// Adds one word to a hash. Order matters: `fold(fold(h, a), b)` is not `fold(fold(h, b), a)`.
#[inline]
pub const fn fold(hash: u64, word: u64) -> u64 {
    mix(hash ^ word)
}

/// Hashes words in order, starting from a purpose, so that two decisions about one thing do not agree by chance.
#[inline]
pub fn hash(purpose: impl Into<u64>, words: &[u64]) -> u64 {
    words.iter().fold(finalize(purpose.into()), |h, w| fold(h, *w))
}

/// A hash as a number in [0, 1), with 53 bits.
#[inline]
pub const fn unit_of(hash: u64) -> f64 {
    (hash >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A hash as a number of 0 .. n; 0 when n is 0.
#[inline]
pub const fn below(hash: u64, n: u64) -> u64 {
    ((hash as u128 * n as u128) >> 64) as u64
}

/// FNV-1a of bytes behind others, whose hash is `before` ([`FNV_START`] when there are none). Tells texts apart, no more.
pub fn fnv1a(before: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(before, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Puts items into a random order (Fisher and Yates). `below` draws a number below its argument.
pub fn shuffle<T>(items: &mut [T], mut below: impl FnMut(u64) -> u64) {
    for last in (1..items.len()).rev() {
        let other = below(last as u64 + 1) as usize;
        items.swap(last, other);
    }
}

/// A small fast generator; one for each decision that needs more than one draw.
#[derive(Debug, Clone)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// Seeded by a number. Seeds that differ by multiples of [`STEP`] give one sequence, shifted: take hashes.
    #[inline]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Seeded by a purpose and an identity.
    #[inline]
    pub fn of(purpose: impl Into<u64>, words: &[u64]) -> Self {
        Self::new(hash(purpose, words))
    }

    /// The next 64 bits.
    #[inline]
    pub const fn next_u64(&mut self) -> u64 {
        let drawn = mix(self.state);
        self.state = self.state.wrapping_add(STEP);
        drawn
    }

    /// Uniform on [0, 1).
    #[inline]
    pub const fn unit(&mut self) -> f64 {
        unit_of(self.next_u64())
    }

    /// Uniform on 0 .. n; 0 when n is 0.
    #[inline]
    pub const fn below(&mut self, n: u64) -> u64 {
        below(self.next_u64(), n)
    }

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -libm::log(1.0 - self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stay_below_one_and_fill_the_interval() {
        assert_eq!(unit_of(0), 0.0);
        assert!(unit_of(u64::MAX) < 1.0);
        let mut rng = Rng::of(1u64, &[1]);
        let n = 100_000;
        let mean: f64 = (0..n).map(|_| rng.unit()).sum::<f64>() / f64::from(n);
        assert!((mean - 0.5).abs() < 4.0 * 0.2887 / f64::from(n).sqrt(), "mean {mean}");
    }

    #[test]
    fn purposes_and_order_matter() {
        assert_ne!(hash(1u64, &[1, 2]), hash(2u64, &[1, 2]));
        assert_ne!(hash(1u64, &[1, 2]), hash(1u64, &[2, 1]));
    }

    #[test]
    fn the_bits_never_change() {
        let mut rng = Rng::new(0);
        assert_eq!(rng.next_u64(), 0xe220_a839_7b1d_cdaf, "SplitMix64's published first output for seed 0");
        assert_eq!(rng.next_u64(), 0x6e78_9e6a_a1b9_65f4, "and the second");
        assert_eq!([finalize(0), mix(0), fold(1, 1)], [0, 0xe220_a839_7b1d_cdaf, 0xe220_a839_7b1d_cdaf]);
        assert_eq!(fnv1a(FNV_START, b"foobar"), 0x8594_4171_f739_67e8, "FNV-1a's published test vector");
        assert_eq!(fnv1a(fnv1a(FNV_START, b"foo"), b"bar"), fnv1a(FNV_START, b"foobar"));
    }

    #[test]
    fn below_stays_below() {
        let mut rng = Rng::new(7);
        assert_eq!(rng.below(0), 0);
        assert!((0..1000).all(|_| rng.below(3) < 3));
    }

    proptest::proptest! {
        #[test]
        fn a_shuffle_keeps_all_items_and_repeats_itself(seed: u64, length in 0usize..50) {
            let shuffled = || {
                let (mut items, mut rng): (Vec<usize>, _) = ((0..length).collect(), Rng::new(seed));
                shuffle(&mut items, |n| rng.below(n));
                items
            };
            let mut items = shuffled();
            proptest::prop_assert_eq!(&items, &shuffled());
            items.sort_unstable();
            proptest::prop_assert_eq!(items, (0..length).collect::<Vec<_>>());
        }
    }
}
