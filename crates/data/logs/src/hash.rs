//! 64 bits that stand for a text. A folded multiplication per sixteen bytes: the same on every machine and every time, so
//! samples by hash are too. No defence against somebody who makes collisions on purpose; what is counted by hash is bounded
//! in size all the same.

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
    let mut rest = text;
    while let Some((word, more)) = rest.split_first_chunk::<16>() {
        let word = u128::from_le_bytes(*word);
        state = fold(word as u64 ^ LAST, (word >> 64) as u64 ^ state);
        rest = more;
    }
    if let Some((word, more)) = rest.split_first_chunk::<8>() {
        state = fold(state ^ u64::from_le_bytes(*word), STEP);
        rest = more;
    }
    fold(fold(state ^ read_tail(rest), STEP) ^ SEED, LAST)
}

/// Up to seven bytes as a number. Their count is known from the length of the whole.
#[inline]
fn read_tail(text: &[u8]) -> u64 {
    match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << 32
        }
        _ if text.is_empty() => 0,
        _ => {
            let at = |place: usize| u64::from(text[place]);
            at(0) | at(text.len() / 2) << 8 | at(text.len() - 1) << 16
        }
    }
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
