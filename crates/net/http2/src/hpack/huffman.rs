//! The Huffman code of string literals (RFC 7541, 5.2 and appendix B).
//!
//! The code is canonical: codes of one length are consecutive, in the order of their symbols, and follow from the lengths
//! alone. Both tables below are made from [`LENGTHS`] when the crate is compiled.

use std::sync::LazyLock;

/// Bits of the code of each byte (RFC 7541, appendix B).
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
/// Longest code, in bits.
const LONGEST: usize = 30;
/// Bits that are looked up together: the codes of two digits or lower-case letters nearly always fit.
const LOOKUP_BITS: u32 = 12;
/// Most bits of padding, all of them ones (RFC 7541, 5.2).
const MAX_PADDING_BITS: u32 = 7;

/// The code of a byte.
#[derive(Debug, Clone, Copy)]
struct Code {
    bits: u32,
    length: u32,
}

/// The codes of one length.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// The first of them.
    first: u64,
    /// Start of their symbols in [`Canonical::symbols`].
    offset: usize,
    /// Number of codes.
    count: u64,
}

/// The code by lengths, and the symbols in the order of their codes.
struct Canonical {
    groups: [Group; LONGEST + 1],
    symbols: [u8; 256],
}

static CANONICAL: Canonical = canonical();
static CODES: [Code; 256] = codes();

/// Symbols with which the next [`LOOKUP_BITS`] bits begin.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// One symbol, or two.
    symbols: [u8; 2],
    /// Number of symbols; 0: the code of the first is longer than the lookup.
    count: u8,
    /// Bits of all of them, and of the first in the upper half of the byte.
    bits: u8,
}

impl Found {
    #[inline]
    fn bits(self) -> u32 {
        u32::from(self.bits & 0x0f)
    }

    #[inline]
    fn first_bits(self) -> u32 {
        u32::from(self.bits >> 4)
    }
}

static LOOKUP: LazyLock<Box<[Found; 1 << LOOKUP_BITS]>> = LazyLock::new(lookup);

const fn canonical() -> Canonical {
    let mut made =
        Canonical { groups: [Group { first: 0, offset: 0, count: 0 }; LONGEST + 1], symbols: [0; 256] };
    let (mut next, mut offset, mut length) = (0, 0, 1);
    while length <= LONGEST {
        next <<= 1;
        made.groups[length].first = next;
        made.groups[length].offset = offset;
        let mut symbol = 0;
        while symbol < 256 {
            if LENGTHS[symbol] as usize == length {
                made.symbols[offset] = symbol as u8;
                offset += 1;
                next += 1;
            }
            symbol += 1;
        }
        made.groups[length].count = next - made.groups[length].first;
        length += 1;
    }
    made
}

const fn codes() -> [Code; 256] {
    let mut codes = [Code { bits: 0, length: 0 }; 256];
    let made = canonical();
    let mut length = 1;
    while length <= LONGEST {
        let group = made.groups[length];
        let mut nth = 0;
        while nth < group.count {
            let symbol = made.symbols[group.offset + nth as usize] as usize;
            codes[symbol] = Code { bits: (group.first + nth) as u32, length: length as u32 };
            nth += 1;
        }
        length += 1;
    }
    codes
}

fn lookup() -> Box<[Found; 1 << LOOKUP_BITS]> {
    let mut table = Box::new([Found::default(); 1 << LOOKUP_BITS]);
    for (bits, found) in table.iter_mut().enumerate() {
        // Left-aligned in a word, as the decoder has them.
        let bits = (bits as u64) << (64 - LOOKUP_BITS);
        let Some((first, first_bits)) = symbol(bits, LOOKUP_BITS) else { continue };
        let first_bits_of_both = (first_bits as u8) << 4;
        *found = Found { symbols: [first, 0], count: 1, bits: first_bits_of_both | first_bits as u8 };
        if let Some((second, second_bits)) = symbol(bits << first_bits, LOOKUP_BITS - first_bits) {
            found.symbols[1] = second;
            found.count = 2;
            found.bits += second_bits as u8;
        }
    }
    table
}

/// The symbol whose code `bits` begins with (left-aligned), and the length of that code; none when it has more than `most` bits.
fn symbol(bits: u64, most: u32) -> Option<(u8, u32)> {
    for length in 1..=most.min(LONGEST as u32) {
        let group = CANONICAL.groups[length as usize];
        let code = bits >> (64 - length);
        if code.wrapping_sub(group.first) < group.count {
            return Some((CANONICAL.symbols[group.offset + (code - group.first) as usize], length));
        }
    }
    None
}

/// Number of bytes that [`encode`] appends.
#[inline]
pub fn encoded_bytes(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|&byte| usize::from(LENGTHS[usize::from(byte)])).sum();
    bits.div_ceil(8)
}

/// Appends the code of `text`.
#[inline]
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut word, mut length) = (0u64, 0u32);
    for &byte in text {
        let code = CODES[usize::from(byte)];
        word = word << code.length | u64::from(code.bits);
        length += code.length;
        if length >= 32 {
            length -= 32;
            out.extend_from_slice(&((word >> length) as u32).to_be_bytes());
        }
    }
    let padding = (8 - length % 8) % 8;
    word = word << padding | ((1 << padding) - 1);
    length += padding;
    while length > 0 {
        length -= 8;
        out.push((word >> length) as u8);
    }
}

/// Decodes `coded` into `text`, whose contents it replaces; none when that is no text in this code: a symbol that does not exist
/// (EOS), or padding that is too long or holds a zero.
pub fn decode<'t>(coded: &[u8], text: &'t mut Vec<u8>) -> Option<&'t [u8]> {
    let table = &**LOOKUP;
    // The shortest code has five bits; two symbols are written at once.
    let room = coded.len() * 8 / 5 + 2;
    if text.len() < room {
        text.resize(room, 0);
    }
    let text = &mut text[..];
    let (mut written, mut at) = (0, 0);
    // Bits that are left, from the highest down, and how many.
    let (mut word, mut left) = (0u64, 0u32);
    loop {
        let next = match coded.get(at..at + 8) {
            Some(next) => u64::from_be_bytes(next.try_into().ok()?),
            None => last_bytes(coded, at),
        };
        // Bits behind the last whole byte are in the word already then: reading that byte once more changes none of them.
        word |= next >> left;
        let whole = ((63 - left) / 8).min((coded.len() - at) as u32);
        at += whole as usize;
        left += 8 * whole;
        while left >= LOOKUP_BITS {
            let found = table[(word >> (64 - LOOKUP_BITS)) as usize];
            if found.count > 0 {
                text[written..written + 2].copy_from_slice(&found.symbols);
                written += usize::from(found.count);
                word <<= found.bits();
                left -= found.bits();
                continue;
            }
            if left < LONGEST as u32 && at < coded.len() {
                break;
            }
            let (one, bits) = symbol(word, left.min(LONGEST as u32))?;
            text[written] = one;
            written += 1;
            word <<= bits;
            left -= bits;
        }
        if at == coded.len() {
            break;
        }
    }
    // Behind the end, bits are ones as in padding: no code of the lookup ends in them by mistake, as it would be too long.
    word |= u64::MAX >> left;
    while left > 0 {
        if left <= MAX_PADDING_BITS && word >> (64 - left) == (1 << left) - 1 {
            break;
        }
        let found = table[(word >> (64 - LOOKUP_BITS)) as usize];
        if found.count == 0 || found.first_bits() > left {
            return None;
        }
        text[written] = found.symbols[0];
        written += 1;
        word <<= found.first_bits();
        left -= found.first_bits();
    }
    Some(&text[..written])
}

/// The bytes from `at` on, fewer than eight, from the highest down.
#[inline]
fn last_bytes(coded: &[u8], at: usize) -> u64 {
    let rest = &coded[at..];
    match coded.last_chunk() {
        Some(&last) if !rest.is_empty() => u64::from_be_bytes(last) << (64 - 8 * rest.len()),
        _ => rest.iter().rev().fold(0, |word, &byte| word >> 8 | u64::from(byte) << 56),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(text, &mut out);
        out
    }

    #[test]
    fn the_examples_of_the_rfc_are_coded_as_it_codes_them() {
        // RFC 7541, C.4.1, C.4.2, C.6.1.
        for (text, coded) in [
            (
                &b"www.example.com"[..],
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff][..],
            ),
            (b"no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            (b"private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
            (b"302", &[0x64, 0x02]),
        ] {
            assert_eq!(encoded(text), coded);
            assert_eq!(encoded_bytes(text), coded.len());
            assert_eq!(decode(coded, &mut Vec::new()), Some(text));
        }
    }

    #[test]
    fn the_code_is_complete_but_for_the_end_of_the_string() {
        // Kraft's sum over all bytes leaves exactly the code of EOS, which has 30 bits.
        let sum: u64 = LENGTHS.iter().map(|&length| 1u64 << (LONGEST - usize::from(length))).sum();
        assert_eq!(sum, (1 << LONGEST) - 1);
        let last = CANONICAL.groups[LONGEST];
        assert_eq!(last.first + last.count, (1 << LONGEST) - 1);
    }

    #[test]
    fn padding_is_ones_and_shorter_than_a_byte() {
        let text = &mut Vec::new();
        assert_eq!(decode(&[0x1f], text), Some(&b"a"[..]));
        assert_eq!(decode(&[0x18], text), None, "zeros");
        assert_eq!(decode(&[0x1f, 0xff], text), None, "eleven ones");
        assert_eq!(decode(&[0xff], text), None, "eight ones");
        assert_eq!(decode(&[0xff, 0xff, 0xff, 0xff], text), None, "the end of the string");
        assert_eq!(
            decode(&[0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], text),
            None,
            "and in a long one"
        );
        assert_eq!(decode(&[], text), Some(&b""[..]));
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(text in proptest::collection::vec(any::<u8>(), 0..80)) {
            let coded = encoded(&text);
            prop_assert_eq!(encoded_bytes(&text), coded.len());
            let decoded = &mut Vec::new();
            prop_assert_eq!(decode(&coded, decoded), Some(&text[..]));
        }

        #[test]
        fn text_that_is_decoded_has_one_code(coded in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(text) = decode(&coded, &mut Vec::new()) {
                prop_assert_eq!(encoded(text), coded);
            }
        }
    }
}
