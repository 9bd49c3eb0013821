//! String literals in the Huffman code, with a memory of those that came before.
//!
//! Many peers put nearly every field of every message into the code anew (nginx does), although the strings are mostly those of the message
//! before. To compare one with what is remembered takes a small part of what decoding takes. The memory begins when a connection has
//! brought some strings, so that idle connections have none, and is bounded: what is remembered depends on nothing but the strings.

use super::huffman;

/// Number of strings that are decoded before the memory begins.
const BEGINS_AFTER: u32 = 64;
/// Number of strings that are remembered, each in the one slot that its bytes give it.
const PLACES: usize = 16;
/// Shorter ones are decoded as quickly.
const SHORTEST_BYTES: usize = 4;
/// Longer ones are not remembered: they rarely come twice, and take room.
const LONGEST_BYTES: usize = 64;

/// Decodes strings of one kind (names or values) of a connection.
#[derive(Debug, Default)]
pub struct Strings {
    /// Buffer for a string that is not remembered.
    room: Vec<u8>,
    seen: u32,
    known: Option<Box<[Known; PLACES]>>,
}

/// A string that was decoded: its code, and behind it its text.
#[derive(Debug, Default)]
struct Known {
    coded_bytes: usize,
    both: Vec<u8>,
}

impl Strings {
    /// Bytes of memory that decoding took, beyond what is remembered.
    #[inline]
    pub fn room(&self) -> usize {
        self.room.capacity()
    }

    /// Lets go of them.
    pub fn release(&mut self) {
        self.room = Vec::new();
    }

    /// The text of a string in the code; none where [`huffman::decode`] gives none.
    #[inline]
    pub fn decode(&mut self, coded: &[u8]) -> Option<&[u8]> {
        if self.seen < BEGINS_AFTER {
            self.seen += 1;
            if self.seen == BEGINS_AFTER {
                self.known = Some(Box::default());
            }
        }
        let Self { room, known, .. } = self;
        let (Some(known), Some(place)) = (known, place(coded)) else {
            return huffman::decode(coded, room);
        };
        let known = &mut known[place];
        if known.coded_bytes != coded.len() || known.both[..known.coded_bytes] != *coded {
            let text = huffman::decode(coded, room)?;
            known.coded_bytes = coded.len();
            known.both.clear();
            known.both.extend_from_slice(coded);
            known.both.extend_from_slice(text);
        }
        Some(&known.both[known.coded_bytes..])
    }
}

/// Slot of a string; none: it is not remembered.
#[inline]
fn place(coded: &[u8]) -> Option<usize> {
    if coded.len() > LONGEST_BYTES {
        return None;
    }
    let first: &[u8; SHORTEST_BYTES] = coded.first_chunk()?;
    let last: &[u8; SHORTEST_BYTES] = coded.last_chunk()?;
    let mixed = u32::from_le_bytes(*first).rotate_left(7) ^ u32::from_le_bytes(*last) ^ coded.len() as u32;
    // Multiplied by the golden ratio, the highest bits depend on all others (Knuth, The Art of Computer Programming, 6.4).
    Some((mixed.wrapping_mul(0x9e37_79b9) >> (32 - PLACES.ilog2())) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nothing_is_remembered_before_a_connection_has_brought_some_strings_and_little_after() {
        let mut strings = Strings::default();
        let mut coded = Vec::new();
        huffman::encode(b"text/html", &mut coded);
        for number in 1..BEGINS_AFTER {
            assert!(strings.known.is_none());
            assert_eq!(strings.decode(&coded), Some(&b"text/html"[..]), "{number}");
        }
        for number in 0..10_000 {
            coded.clear();
            huffman::encode(number.to_string().repeat(6).as_bytes(), &mut coded);
            strings.decode(&coded).unwrap();
        }
        let known = strings.known.unwrap();
        let bytes: usize = known.iter().map(|known| known.both.capacity()).sum();
        assert!(bytes <= PLACES * 4 * LONGEST_BYTES, "{bytes}");
        assert!(known.iter().all(|known| known.coded_bytes <= LONGEST_BYTES));
    }

    proptest! {
        #[test]
        fn a_string_is_decoded_alike_whatever_came_before(
            strings in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..12), 1..8),
            order in proptest::collection::vec(any::<proptest::sample::Index>(), 200..300),
        ) {
            let mut decoder = Strings::default();
            for index in order {
                let coded = index.get(&strings);
                let room = &mut Vec::new();
                prop_assert_eq!(decoder.decode(coded), huffman::decode(coded, room));
            }
        }

        #[test]
        fn texts_are_decoded_alike_whatever_came_before(
            texts in proptest::collection::vec("[ -~]{0,90}", 1..8),
            order in proptest::collection::vec(any::<proptest::sample::Index>(), 200..300),
        ) {
            let mut decoder = Strings::default();
            let mut coded = Vec::new();
            for index in order {
                let text = index.get(&texts).as_bytes();
                coded.clear();
                huffman::encode(text, &mut coded);
                prop_assert_eq!(decoder.decode(&coded), Some(text));
            }
        }
    }
}
