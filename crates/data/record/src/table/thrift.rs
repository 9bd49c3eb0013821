//! Walk through the compact protocol of Thrift, in which Parquet writes its footer and the head of each page, to see what it claims.
//!
//! A list of booleans says how many it has, and the library that decodes Parquet skips that many without looking for them: six bytes
//! keep it busy for seconds, and a footer has room for thousands of them; and what follows them is another footer to it than to the walk. What is
//! walked here has no booleans in lists.
//!
//! *Does not:* know what a field means: a [`Visitor`] does.
//! Source: <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>

use std::ops::RangeInclusive;

/// Upper bound on the nesting of structs and lists; Parquet has ten.
const MAX_DEPTH: u32 = 32;

/// Error of a walk through a struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThriftError {
    /// The bytes end within the struct.
    Truncated,
    /// The struct contradicts itself: a list with more elements than bytes or with booleans, a type that does not exist or that
    /// a field does not have, too many structs within each other.
    Impossible,
}

/// Receiver of what a walk finds. A path is the number of each field on the way, from the outermost struct inwards.
pub trait Visitor {
    /// A field with an integer.
    fn integer(&mut self, _path: &[i64], _value: i64) {}

    /// Whether a field may have this type. The library reads those that it knows as what they must be, whatever type they say.
    fn admits(&mut self, _path: &[i64], _kind: u8) -> bool {
        true
    }

    /// A struct in a list, before its fields.
    fn element(&mut self, _path: &[i64]) {}
}

/// Walks through the struct at the front of `bytes`; returns its length.
pub fn walk(bytes: &[u8], visitor: &mut impl Visitor) -> Result<usize, ThriftError> {
    let mut walker = Walker { bytes, at: 0, path: Vec::new(), visitor };
    walker.skip_struct(MAX_DEPTH)?;
    Ok(walker.at)
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
pub const BYTE: u8 = 3;
/// Of 16, 32 and 64 bits.
pub const INTEGERS: RangeInclusive<u8> = 4..=6;
pub const DOUBLE: u8 = 7;
pub const BINARY: u8 = 8;
pub const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
pub const STRUCT: u8 = 12;
const UUID: u8 = 13;

struct Walker<'b, V> {
    bytes: &'b [u8],
    at: usize,
    path: Vec<i64>,
    visitor: &'b mut V,
}

impl<V: Visitor> Walker<'_, V> {
    fn byte(&mut self) -> Result<u8, ThriftError> {
        let byte = *self.bytes.get(self.at).ok_or(ThriftError::Truncated)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip_bytes(&mut self, count: u64) -> Result<(), ThriftError> {
        let left = (self.bytes.len() - self.at) as u64;
        if count > left {
            return Err(ThriftError::Truncated);
        }
        self.at += count as usize;
        Ok(())
    }

    fn unsigned(&mut self) -> Result<u64, ThriftError> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(ThriftError::Impossible)
    }

    /// Zigzag: 0, -1, 1, -2 and so on are 0, 1, 2, 3.
    fn integer(&mut self) -> Result<i64, ThriftError> {
        let coded = self.unsigned()?;
        Ok((coded >> 1).cast_signed() ^ -(coded & 1).cast_signed())
    }

    /// Increment of the next field's number over the one before (0: its number follows), and its type; none: the struct ends.
    fn field(&mut self) -> Result<Option<(u8, u8)>, ThriftError> {
        let head = self.byte()?;
        Ok((head & 0x0f != 0).then_some((head >> 4, head & 0x0f)))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Result<(), ThriftError> {
        let depth = depth.checked_sub(1).ok_or(ThriftError::Impossible)?;
        match kind {
            // The type of a field is its value.
            TRUE | FALSE => Ok(()),
            BYTE => self.skip_bytes(1),
            kind if INTEGERS.contains(&kind) => {
                let value = self.integer()?;
                self.visitor.integer(&self.path, value);
                Ok(())
            }
            DOUBLE => self.skip_bytes(8),
            BINARY => {
                let length = self.unsigned()?;
                self.skip_bytes(length)
            }
            LIST | SET => self.skip_list(depth),
            MAP => self.skip_map(depth),
            STRUCT => self.skip_struct(depth),
            UUID => self.skip_bytes(16),
            _ => Err(ThriftError::Impossible),
        }
    }

    fn skip_struct(&mut self, depth: u32) -> Result<(), ThriftError> {
        let mut number = 0i64;
        while let Some((delta, kind)) = self.field()? {
            number = if delta == 0 { self.integer()? } else { number.wrapping_add(delta.into()) };
            self.path.push(number);
            // The library takes the lower 16 bits of a number for the whole.
            if i16::try_from(number).is_err() || !self.visitor.admits(&self.path, kind) {
                return Err(ThriftError::Impossible);
            }
            self.skip(kind, depth)?;
            self.path.pop();
        }
        Ok(())
    }

    fn skip_list(&mut self, depth: u32) -> Result<(), ThriftError> {
        let head = self.byte()?;
        let count = if head >> 4 == 15 { self.unsigned()? } else { u64::from(head >> 4) };
        self.check_count(count)?;
        (0..count).try_for_each(|_| self.skip_element(head & 0x0f, depth))
    }

    fn skip_map(&mut self, depth: u32) -> Result<(), ThriftError> {
        let count = self.unsigned()?;
        if count == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        self.check_count(count.saturating_mul(2))?;
        (0..count).try_for_each(|_| {
            self.skip_element(kinds >> 4, depth)?;
            self.skip_element(kinds & 0x0f, depth)
        })
    }

    /// Each element takes at least one byte; the library looks for none where it skips booleans.
    fn check_count(&self, count: u64) -> Result<(), ThriftError> {
        if count > (self.bytes.len() - self.at) as u64 { Err(ThriftError::Impossible) } else { Ok(()) }
    }

    fn skip_element(&mut self, kind: u8, depth: u32) -> Result<(), ThriftError> {
        match kind {
            TRUE | FALSE => Err(ThriftError::Impossible),
            // Within a list, an integer is no field.
            kind if INTEGERS.contains(&kind) => self.unsigned().map(drop),
            kind => {
                if kind == STRUCT {
                    self.visitor.element(&self.path);
                }
                self.skip(kind, depth)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Default, Debug, PartialEq)]
    struct Seen {
        integers: Vec<(Vec<i64>, i64)>,
        elements: Vec<Vec<i64>>,
    }

    impl Visitor for Seen {
        fn integer(&mut self, path: &[i64], value: i64) {
            self.integers.push((path.to_vec(), value));
        }

        fn element(&mut self, path: &[i64]) {
            self.elements.push(path.to_vec());
        }
    }

    fn walked(bytes: &[u8]) -> (Result<usize, ThriftError>, Seen) {
        let mut seen = Seen::default();
        (walk(bytes, &mut seen), seen)
    }

    #[test]
    fn integers_are_told_with_the_numbers_of_their_fields() {
        // 1: i32 -2; 3: struct { 1: i32 7 }; 20 (its number follows): i64 150; end; a byte of what follows.
        let bytes = [0x15, 0x03, 0x2c, 0x15, 0x0e, 0x00, 0x06, 0x28, 0xac, 0x02, 0x00, 0xff];
        let integers = vec![(vec![1], -2), (vec![3, 1], 7), (vec![20], 150)];
        assert_eq!(walked(&bytes), (Ok(11), Seen { integers, elements: Vec::new() }));
        for end in 0..11 {
            assert_eq!(walked(&bytes[..end]).0, Err(ThriftError::Truncated), "{end}");
        }
    }

    #[test]
    fn structs_in_lists_are_told_and_integers_in_them_are_not_those_of_fields() {
        // 4: list of two structs { 1: list of a struct {} and 2: list of the integers 1 and 2 }, { 1: i32 7 }.
        let bytes = [0x49, 0x2c, 0x19, 0x1c, 0x00, 0x19, 0x25, 0x02, 0x04, 0x00, 0x15, 0x0e, 0x00, 0x00];
        let elements = vec![vec![4], vec![4, 1], vec![4]];
        assert_eq!(walked(&bytes), (Ok(14), Seen { integers: vec![(vec![4, 1], 7)], elements }));
    }

    #[test]
    fn a_list_has_no_more_elements_than_there_are_bytes() {
        // 1: list of 2^31 bytes, of 3 bytes, of 16 of which 15 are there.
        assert_eq!(walked(&[0x19, 0xf3, 0x80, 0x80, 0x80, 0x80, 0x08, 0x00]).0, Err(ThriftError::Impossible));
        assert_eq!(walked(&[0x19, 0x33, 1, 2, 1, 0x00]).0, Ok(6));
        assert_eq!(walked(&[&[0x19, 0xf3, 0x10][..], &[1; 15]].concat()).0, Err(ThriftError::Impossible));
        // 1: map of 2^31 bytes to bytes.
        assert_eq!(walked(&[0x1b, 0x80, 0x80, 0x80, 0x80, 0x08, 0x33, 0x00]).0, Err(ThriftError::Impossible));
        assert_eq!(walked(&[0x1b, 0x00, 0x00]).0, Ok(3));
    }

    #[test]
    fn what_the_library_would_take_for_other_bytes_is_refused() {
        // 1: list, set and map of booleans, of which the library skips none; lists without any are alike to both.
        for bytes in [&[0x19, 0x11, 1, 0x00][..], &[0x1a, 0x12, 1, 0x00], &[0x1b, 1, 0x31, 1, 1, 0x00]] {
            assert_eq!(walked(bytes).0, Err(ThriftError::Impossible), "{bytes:?}");
        }
        assert_eq!(walked(&[0x19, 0x01, 0x00]).0, Ok(3));
        // 32,767 and 65,538, of which the library sees 2; 32,767 and one more.
        assert_eq!(walked(&[0x05, 0xfe, 0xff, 0x03, 0x00, 0x00]).0, Ok(6));
        assert_eq!(walked(&[0x05, 0x84, 0x80, 0x08, 0x00, 0x00]).0, Err(ThriftError::Impossible));
        assert_eq!(walked(&[0x05, 0xfe, 0xff, 0x03, 0x00, 0x15, 0x00, 0x00]).0, Err(ThriftError::Impossible));
    }

    #[test]
    fn structs_within_each_other_and_types_that_there_are_not_are_refused() {
        assert_eq!(walked(&[0x1c; 40]).0, Err(ThriftError::Impossible));
        assert_eq!(walked(&[0x1e, 0x00]).0, Err(ThriftError::Impossible));
        assert_eq!(walked(&[[0x15].as_slice(), &[0x80; 11]].concat()).0, Err(ThriftError::Impossible));
    }

    proptest! {
        #[test]
        fn whatever_the_bytes_are_the_walk_ends_within_them(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(length) = walked(&bytes).0 {
                prop_assert!(length <= bytes.len());
            }
        }
    }
}
