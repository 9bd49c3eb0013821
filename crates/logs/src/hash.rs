//! Which 64 bits stand for a text? A folded multiplication per eight bytes: the same on every machine and every
//! time, so samples by hash are too. No defence against somebody who makes collisions on purpose; what is counted
//! by hash is bounded in size all the same.

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const STEP: u64 = 0xd6e8_feb8_6659_fd93;
const LAST: u64 = 0xa076_1d64_78bd_642f;

fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ ((product >> 64) as u64)
}

/// Hash of a text.
#[inline]
pub fn hash(text: &[u8]) -> u64 {
    hash_on(SEED, text)
}

/// Hash of a text behind another one, whose hash is `before`.
#[inline]
pub fn hash_on(before: u64, text: &[u8]) -> u64 {
    let mut state = before ^ (text.len() as u64).wrapping_mul(STEP);
    let (words, rest) = text.as_chunks::<8>();
    for word in words {
        state = fold(state ^ u64::from_le_bytes(*word), STEP);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    fold(fold(state ^ u64::from_le_bytes(last), STEP) ^ SEED, LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_a_little_get_hashes_that_differ_in_half_their_bits() {
        let mut bits = 0;
        for number in 0..1000 {
            let (one, other) = (format!("http://example/{number}"), format!("http://example/{}", number + 1));
            bits += (hash(one.as_bytes()) ^ hash(other.as_bytes())).count_ones();
        }
        assert!((31_000..33_000).contains(&bits), "{bits} bits of 64,000");
    }

    #[test]
    fn length_and_place_count() {
        assert_ne!(hash(b""), hash(b"\0"));
        assert_ne!(hash(b"a\0"), hash(b"a"));
        assert_ne!(hash_on(hash(b"a"), b"b"), hash_on(hash(b"b"), b"a"));
    }
}
