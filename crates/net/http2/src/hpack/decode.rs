//! Header blocks, decoded.

use thiserror::Error;

use super::kind::Kind;
use super::strings::Strings;
use super::table::{Dynamic, STATIC, STATIC_ENTRIES};
use super::{DEFAULT_TABLE_BYTES, integer};

/// Most changes of the table's size at the start of a block: the lowest since the last block, and the final one (RFC 7541, 4.2).
const MAX_SIZE_UPDATES: u32 = 2;

/// Undecodable header block. The table is no longer the peer's, so the connection must end (RFC 9113, 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HpackError {
    /// The block ends within a field.
    #[error("the header block ends within a field, or holds an integer over 32 bits")]
    Truncated,
    /// An index that neither table has.
    #[error("the header block refers to entry {0}, which neither table has")]
    Index(u32),
    /// A string that is not in the Huffman code.
    #[error("a string is not in the Huffman code of HPACK")]
    Huffman,
    /// A table larger than this side has allowed.
    #[error("the dynamic table is set to {seen} bytes; {allowed} are allowed")]
    TableSize {
        /// Size that the peer wants.
        seen: u32,
        /// Size that our settings allow.
        allowed: u32,
    },
    /// A change of the table's size behind a field, or too many of them.
    #[error(
        "a change of the table's size is not at the start of a block, or there are more than {MAX_SIZE_UPDATES}"
    )]
    MisplacedSizeUpdate,
    /// Our lower limit was acknowledged, and the next block does not begin by setting it.
    #[error("the dynamic table is not reduced to the acknowledged size")]
    MissingSizeUpdate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderField<'b> {
    pub name: &'b [u8],
    pub value: &'b [u8],
    /// Role in HTTP/2, and validity.
    pub kind: Kind,
    /// The peer forbids to put it into any table (RFC 7541, 7.1.3).
    pub never_indexed: bool,
}

/// Decodes the header blocks of one direction of a connection, in order.
#[derive(Debug)]
pub struct Decoder {
    table: Dynamic,
    /// Largest table that our settings allow.
    allowed: u32,
    /// The peer has acknowledged a lower limit and must say so in its next block.
    must_reduce: bool,
    names: Strings,
    values: Strings,
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(DEFAULT_TABLE_BYTES)
    }
}

/// A string literal.
enum Text<'b> {
    Plain(&'b [u8]),
    Coded(&'b [u8]),
}

impl Decoder {
    /// Decoder for a peer that may set its dynamic table to `table_bytes`, or to what it is at first, if that is more.
    pub fn new(table_bytes: u32) -> Self {
        Self {
            table: Dynamic::new(DEFAULT_TABLE_BYTES),
            allowed: table_bytes.max(DEFAULT_TABLE_BYTES),
            must_reduce: false,
            names: Strings::default(),
            values: Strings::default(),
        }
    }

    /// The peer has acknowledged settings with this limit of the dynamic table, in bytes.
    pub fn set_limit(&mut self, table_bytes: u32) {
        self.must_reduce = (table_bytes as usize) < self.table.max_size();
        self.allowed = table_bytes;
    }

    /// Hands each field of a complete header block to `take`, in order.
    pub fn decode(&mut self, block: &[u8], mut take: impl FnMut(HeaderField<'_>)) -> Result<(), HpackError> {
        let mut at = self.take_size_updates(block)?;
        while let Some(&first) = block.get(at) {
            at += 1;
            if first & 0x80 != 0 {
                let (index, next) = integer::read(first, 7, block, at).ok_or(HpackError::Truncated)?;
                at = next;
                let (name, value, kind) = self.field(index)?;
                take(HeaderField { name, value, kind, never_indexed: false });
            } else if first & 0x40 != 0 {
                at = self.literal(first, 6, block, at, true, &mut take)?;
            } else if first & 0x20 == 0 {
                at = self.literal(first, 4, block, at, false, &mut take)?;
            } else {
                return Err(HpackError::MisplacedSizeUpdate);
            }
        }
        Ok(())
    }

    /// Bytes of memory in which strings were decoded. They are as long as the longest ones were.
    #[inline]
    pub fn room(&self) -> usize {
        self.names.room() + self.values.room()
    }

    /// Lets go of them. The table remains.
    pub fn release(&mut self) {
        self.names.release();
        self.values.release();
    }

    fn take_size_updates(&mut self, block: &[u8]) -> Result<usize, HpackError> {
        let (mut at, mut updates) = (0, 0);
        while let Some(&first) = block.get(at).filter(|&first| first & 0xe0 == 0x20) {
            let (size, next) = integer::read(first, 5, block, at + 1).ok_or(HpackError::Truncated)?;
            updates += 1;
            if updates > MAX_SIZE_UPDATES {
                return Err(HpackError::MisplacedSizeUpdate);
            }
            if size > self.allowed {
                return Err(HpackError::TableSize { seen: size, allowed: self.allowed });
            }
            self.table.resize(size as usize);
            self.must_reduce = false;
            at = next;
        }
        match self.must_reduce {
            true => Err(HpackError::MissingSizeUpdate),
            false => Ok(at),
        }
    }

    /// The field with this index in either table.
    #[inline]
    fn field(&self, index: u32) -> Result<(&[u8], &[u8], Kind), HpackError> {
        let table_index = (index as usize).wrapping_sub(1);
        match STATIC.get(table_index) {
            Some(&field) => Ok(field),
            None => self.table.get(table_index.wrapping_sub(STATIC_ENTRIES)).ok_or(HpackError::Index(index)),
        }
    }

    /// Decodes a literal field whose name may be in a table: where the next one lies.
    fn literal(
        &mut self,
        first: u8,
        prefix_bits: u32,
        block: &[u8],
        at: usize,
        is_indexed: bool,
        take: &mut impl FnMut(HeaderField<'_>),
    ) -> Result<usize, HpackError> {
        let (index, mut at) = integer::read(first, prefix_bits, block, at).ok_or(HpackError::Truncated)?;
        let Self { table, names, values, .. } = self;
        let new_name = match index {
            0 => {
                let (name, next) = string(block, at)?;
                at = next;
                Some(text(name, names)?)
            }
            _ => None,
        };
        let (value, next) = string(block, at)?;
        let value = text(value, values)?;
        let table_index = (index as usize).wrapping_sub(1);
        let (name, name_kind) = match new_name {
            Some(name) => (name, Kind::of_name(name)),
            None => match STATIC.get(table_index) {
                Some(&(name, _, kind)) => (name, kind),
                None => table.name(table_index - STATIC_ENTRIES).ok_or(HpackError::Index(index))?,
            },
        };
        let kind = name_kind.with(value);
        take(HeaderField { name, value, kind, never_indexed: first & 0xf0 == 0x10 });
        if is_indexed {
            match new_name {
                None if table_index >= STATIC_ENTRIES => {
                    table.insert_named(table_index - STATIC_ENTRIES, value, kind)
                }
                None => table.insert(STATIC[table_index].0, value, name_kind, kind),
                Some(name) => table.insert(name, value, name_kind, kind),
            }
        }
        Ok(next)
    }
}

/// The string literal at `at`, and where the next byte lies.
#[inline]
fn string(block: &[u8], at: usize) -> Result<(Text<'_>, usize), HpackError> {
    let &first = block.get(at).ok_or(HpackError::Truncated)?;
    let (length, start) = integer::read(first, 7, block, at + 1).ok_or(HpackError::Truncated)?;
    let end = start + length as usize;
    let bytes = block.get(start..end).ok_or(HpackError::Truncated)?;
    Ok((if first & 0x80 == 0 { Text::Plain(bytes) } else { Text::Coded(bytes) }, end))
}

#[inline]
fn text<'b>(text: Text<'b>, strings: &'b mut Strings) -> Result<&'b [u8], HpackError> {
    match text {
        Text::Plain(bytes) => Ok(bytes),
        Text::Coded(coded) => strings.decode(coded).ok_or(HpackError::Huffman),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decoded(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, HpackError> {
        let mut fields = Vec::new();
        decoder.decode(block, |field| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            fields.push(format!("{}: {}", text(field.name), text(field.value)));
        })?;
        Ok(fields)
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit") as u8;
        digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    /// RFC 7541, C.3 and C.4: three requests on one connection, without the Huffman code and with it.
    #[test]
    fn the_requests_of_the_rfc_are_decoded() {
        let plain = [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ];
        let coded = [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ];
        let expected: [&[&str]; 3] = [
            &[":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"],
            &[
                ":method: GET",
                ":scheme: http",
                ":path: /",
                ":authority: www.example.com",
                "cache-control: no-cache",
            ],
            &[
                ":method: GET",
                ":scheme: https",
                ":path: /index.html",
                ":authority: www.example.com",
                "custom-key: custom-value",
            ],
        ];
        for blocks in [plain, coded] {
            let mut decoder = Decoder::default();
            for (block, expected) in blocks.iter().zip(expected) {
                assert_eq!(decoded(&mut decoder, &bytes(block)).expect("is valid"), expected);
            }
            assert_eq!((decoder.table.len(), decoder.table.inserted()), (3, 3));
        }
    }

    /// RFC 7541, C.6: responses that evict what came before, from a table of 256 bytes.
    #[test]
    fn the_responses_of_the_rfc_are_decoded_and_evict_what_it_says() {
        let blocks = [
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d \
             29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d \
             d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 \
             3d50 07",
        ];
        let date = |second| format!("date: Mon, 21 Oct 2013 20:13:{second} GMT");
        let rest = ["cache-control: private", "location: https://www.example.com"];
        let expected = [
            vec![":status: 302".into(), rest[0].into(), date(21), rest[1].into()],
            vec![":status: 307".into(), rest[0].into(), date(21), rest[1].into()],
            vec![
                ":status: 200".into(),
                rest[0].into(),
                date(22),
                rest[1].into(),
                "content-encoding: gzip".into(),
                "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1".into(),
            ],
        ];
        let mut decoder = Decoder::default();
        decoder.table.resize(256);
        for (block, expected) in blocks.iter().zip(expected) {
            assert_eq!(decoded(&mut decoder, &bytes(block)).expect("is valid"), expected);
        }
        assert_eq!((decoder.table.len(), decoder.table.inserted()), (3, 8));
        assert_eq!(decoder.table.get(0).map(|(name, ..)| name), Some(&b"set-cookie"[..]));
    }

    /// RFC 7541, C.2: one literal of each form.
    #[test]
    fn each_form_of_a_literal_is_decoded() {
        let mut decoder = Decoder::default();
        let block = bytes("040c 2f73 616d 706c 652f 7061 7468 1008 7061 7373 776f 7264 0673 6563 7265 74");
        let mut never = Vec::new();
        decoder.decode(&block, |field| never.push((field.kind, field.never_indexed))).expect("is valid");
        assert_eq!(never, [(Kind::Path, false), (Kind::Regular, true)]);
        assert_eq!(decoder.table.len(), 0);
    }

    #[test]
    fn an_index_that_no_table_has_is_refused() {
        for block in [&[0x80][..], &[0xbe], &[0x7e, 0x00], &[0x0f, 0x2f, 0x00]] {
            assert!(
                matches!(decoded(&mut Decoder::default(), block), Err(HpackError::Index(_))),
                "{block:?}"
            );
        }
    }

    #[test]
    fn the_size_of_the_table_changes_at_the_start_of_a_block_and_within_our_limit() {
        let mut decoder = Decoder::new(4096);
        assert_eq!(decoded(&mut decoder, &[0x20, 0x3f, 0xe1, 0x1f, 0x82]), Ok(vec![":method: GET".into()]));
        let misplaced = Err(HpackError::MisplacedSizeUpdate);
        assert_eq!(decoded(&mut decoder, &[0x82, 0x20]), misplaced);
        assert_eq!(decoded(&mut decoder, &[0x20, 0x20, 0x20]), misplaced);
        let too_large = Err(HpackError::TableSize { seen: 4097, allowed: 4096 });
        assert_eq!(decoded(&mut decoder, &[0x3f, 0xe2, 0x1f]), too_large);
        assert_eq!(decoded(&mut decoder, &[0x3f, 0xe1, 0x1f]), Ok(vec![]));
        decoder.set_limit(100);
        assert_eq!(decoded(&mut decoder, &[0x82]), Err(HpackError::MissingSizeUpdate));
        assert_eq!(decoded(&mut decoder, &[0x20, 0x82]), Ok(vec![":method: GET".into()]));
    }

    #[test]
    fn a_name_from_a_field_that_evicts_itself_is_still_read() {
        let mut decoder = Decoder::default();
        decoder.table.resize(64);
        decoded(&mut decoder, b"\x40\x04name\x05value").expect("is valid");
        let fields = decoded(&mut decoder, b"\x7e\x1a01234567890123456789012345").expect("is valid");
        assert_eq!(fields, ["name: 01234567890123456789012345"]);
        assert_eq!(decoder.table.get(0).map(|(name, ..)| name), Some(&b"name"[..]));
        assert_eq!(decoder.table.len(), 1);
    }

    /// Two bytes refer to a name of 4000: to look at it each time would take a peer's bytes two thousand times.
    #[test]
    fn a_name_in_the_table_is_not_looked_at_again() {
        let mut decoder = Decoder::default();
        // The wrong kind for this name shows that it is taken as it was found once.
        decoder.table.insert(b"name", b"", Kind::Invalid, Kind::Invalid);
        let mut kinds = Vec::new();
        decoder
            .decode(b"\x7e\x00\x7e\x05value\x0f\x2f\x00\xbe", |field| kinds.push(field.kind))
            .expect("is valid");
        assert_eq!(kinds, [Kind::Invalid; 4]);
    }

    #[test]
    fn a_name_is_as_valid_as_it_was_whatever_its_value_was() {
        let mut decoder = Decoder::default();
        let mut kinds = Vec::new();
        let mut take =
            |block: &[u8]| decoder.decode(block, |field| kinds.push(field.kind)).expect("is valid");
        // The value is invalid: the name is used again with another, and so is the name of that.
        take(b"\x40\x02te\x02 x\xbe\x7e\x01x\x7e\x01x");
        // The name is.
        take(b"\x40\x01X\x01x\xbe\x7e\x01x\x7e\x01x");
        // One of the static table, with an invalid value.
        take(b"\x60\x02 x\xbe\x7e\x01x");
        let (te, invalid) = (Kind::Te, Kind::Invalid);
        let expected =
            [invalid, invalid, te, te, invalid, invalid, invalid, invalid, invalid, invalid, Kind::Cookie];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn the_bytes_of_evicted_fields_do_not_pile_up() {
        let mut decoder = Decoder::default();
        for number in 0..10_000 {
            let field = format!("\x40\x04name\x7e{number:0>126}");
            decoded(&mut decoder, field.as_bytes()).expect("is valid");
            assert!(decoder.table.footprint() <= 3 * 4096, "{}", decoder.table.footprint());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_fields_or_an_error(blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..8)) {
            let mut decoder = Decoder::default();
            for block in blocks {
                let _ = decoded(&mut decoder, &block);
            }
        }
    }
}
