//! Bytes in short texts, looked at eight at a time.

/// Index of a byte. Most fields end within sixteen bytes: those are searched as two words, which costs less than a
/// call of memchr.
#[inline]
pub(super) fn find(byte: u8, text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk).filter(|_| at < 16) {
        let marks = marks(byte, word);
        if marks != 0 {
            return Some(at + (marks.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr::memchr(byte, &text[at..]).map(|found| at + found)
}

/// True for a text, mostly of a few bytes, in which a byte is not: to call for help would cost more than to look.
#[inline]
pub(super) fn is_without(byte: u8, text: &[u8]) -> bool {
    match (text.first_chunk(), text.last_chunk()) {
        (Some(first), Some(last)) if text.len() <= 16 => marks(byte, first) | marks(byte, last) == 0,
        (Some(_), _) => memchr::memchr(byte, text).is_none(),
        (None, _) => text.iter().all(|other| *other != byte),
    }
}

/// Index of the first of two bytes.
#[inline]
pub(super) fn find_either(one: u8, other: u8, text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk).filter(|_| at < 16) {
        let marks = marks(one, word) | marks(other, word);
        if marks != 0 {
            return Some(at + (marks.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr::memchr2(one, other, &text[at..]).map(|found| at + found)
}

/// A bit for a byte in a text; the lowest belongs to the first of them, those above it may belong to others.
#[inline]
fn marks(byte: u8, text: &[u8; 8]) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let apart = u64::from_le_bytes(*text) ^ (u64::from(byte) * ONES);
    apart.wrapping_sub(ONES) & !apart & (ONES << 7)
}
