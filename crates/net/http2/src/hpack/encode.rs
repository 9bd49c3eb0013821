//! Header blocks, encoded.
//!
//! A field that the table has is one or two bytes. Values that are likely to come again are put into the table; credentials
//! never are. A name whose values were different the last few times is taken for one that has another value in each message.

use super::kind::Kind;
use super::names::{self, Policy};
use super::table::{Dynamic, STATIC_ENTRIES};
use super::{DEFAULT_TABLE_BYTES, FIELD_OVERHEAD_BYTES, huffman, integer};

/// Most places where fields, and where names, are looked up; a power of two. A table of 4096 bytes holds no more than 128 fields.
const MOST_SLOTS: usize = 128;
/// Places that there are at first, once a field is put into the table.
const FIRST_SLOTS: usize = 16;
/// Number of slots for each field in the table, as far as [`MOST_SLOTS`] allows: few fields share one.
const SLOTS_PER_FIELD: usize = 4;
/// Longest name that is put into lower case without allocating.
const USUAL_NAME_BYTES: usize = 64;
/// A name with so many different values in a row has its next ones sent as they are.
const MAX_NEW_VALUES: u16 = 3;

/// Position of a field, or a name, in the table.
#[derive(Debug, Clone, Copy, Default)]
struct TableSlot {
    /// Number of the entry, counted from 1, modulo 2^32; 0: none. What is found is compared, so that an entry of long ago with the same
    /// number does no harm.
    number: u32,
    /// Part of the hash that is kept.
    hash: u16,
    /// Of names: values in a row that were not in the table.
    new_values: u16,
}

/// Index of fields, or of names, by their hashes. Few connections have many fields in their tables, and an idle one must not take kilobytes
/// for all that there could be.
#[derive(Debug, Default)]
struct Slots(Vec<TableSlot>);

impl Slots {
    /// The place of a hash, if something with the same one is there.
    #[inline]
    fn get(&mut self, hash: u64) -> Option<&mut TableSlot> {
        let hash = short(hash);
        let place = place(hash, self.0.len());
        self.0.get_mut(place).filter(|slot| slot.hash == hash && slot.number != 0)
    }

    /// Stores an entry of this hash, in a table of so many fields.
    fn put(&mut self, fields: usize, hash: u64, slot: TableSlot) {
        let wanted = (fields * SLOTS_PER_FIELD).next_power_of_two().clamp(FIRST_SLOTS, MOST_SLOTS);
        if self.0.len() < wanted {
            self.grow(wanted);
        }
        let hash = short(hash);
        let place = place(hash, self.0.len());
        self.0[place] = TableSlot { hash, ..slot };
    }

    /// Grows the index; entries without collisions stay so.
    fn grow(&mut self, wanted: usize) {
        let before = std::mem::replace(&mut self.0, vec![TableSlot::default(); wanted]);
        for slot in before.into_iter().filter(|slot| slot.number != 0) {
            self.0[place(slot.hash, wanted)] = slot;
        }
    }
}

type NameAndValue<'t> = (&'t [u8], &'t [u8]);

/// Encodes the header blocks of one direction of a connection, in order.
#[derive(Debug)]
pub struct Encoder {
    table: Dynamic,
    /// Largest table that is used, whatever the peer allows.
    preferred: u32,
    /// Sizes to tell the peer at the start of the next block: the lowest since the last one, and the final one.
    resized: Option<(usize, usize)>,
    fields: Slots,
    names: Slots,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new(DEFAULT_TABLE_BYTES)
    }
}

impl Encoder {
    /// Encoder with a dynamic table of at most `preferred_bytes`, and of no more than the peer allows.
    pub fn new(preferred_bytes: u32) -> Self {
        let mut encoder = Self {
            table: Dynamic::new(DEFAULT_TABLE_BYTES),
            preferred: preferred_bytes,
            resized: None,
            fields: Slots::default(),
            names: Slots::default(),
        };
        if preferred_bytes < DEFAULT_TABLE_BYTES {
            encoder.set_limit(DEFAULT_TABLE_BYTES);
        }
        encoder
    }

    /// The peer's settings allow a dynamic table of `table_bytes`.
    pub fn set_limit(&mut self, table_bytes: u32) {
        let size = self.preferred.min(table_bytes) as usize;
        if size == self.table.max_size() && self.resized.is_none() {
            return;
        }
        let lowest = self.resized.map_or(size, |(lowest, _)| lowest.min(size));
        self.resized = Some((lowest, size));
        self.table.resize(size);
    }

    /// Begins a header block: says how large the table is, where that has changed.
    #[inline]
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some((lowest, last)) = self.resized.take() {
            if lowest < last {
                integer::write(out, 0x20, 5, lowest);
            }
            integer::write(out, 0x20, 5, last);
        }
    }

    #[inline]
    pub fn method(&mut self, method: &[u8], out: &mut Vec<u8>) {
        match method {
            b"GET" => out.push(0x82),
            b"POST" => out.push(0x83),
            _ => self.index(2, b":method", method, out),
        }
    }

    #[inline]
    pub fn scheme(&mut self, scheme: &[u8], out: &mut Vec<u8>) {
        match scheme {
            b"http" => out.push(0x86),
            b"https" => out.push(0x87),
            _ => self.index(6, b":scheme", scheme, out),
        }
    }

    #[inline]
    pub fn authority(&mut self, authority: &[u8], out: &mut Vec<u8>) {
        self.index(1, b":authority", authority, out);
    }

    /// Appends `:path`, which is not put into the table: most requests have another.
    #[inline]
    pub fn path(&mut self, path: &[u8], out: &mut Vec<u8>) {
        match path {
            b"/" => out.push(0x84),
            _ => {
                out.push(0x04);
                string(path, out);
            }
        }
    }

    #[inline]
    pub fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        match status {
            200 => out.push(0x88),
            204 => out.push(0x89),
            206 => out.push(0x8a),
            304 => out.push(0x8b),
            400 => out.push(0x8c),
            404 => out.push(0x8d),
            500 => out.push(0x8e),
            _ => {
                let digit = |unit: u16| b'0' + (status / unit % 10) as u8;
                self.index(8, b":status", &[digit(100), digit(10), digit(1)], out);
            }
        }
    }

    /// Appends a field, with its name in lower case. Fields that HTTP/2 does not have are left out.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let mut room = [0; USUAL_NAME_BYTES];
        match room.get_mut(..name.len()) {
            Some(lower) => {
                lower.copy_from_slice(name);
                lower.make_ascii_lowercase();
                self.lower_field(lower, value, out);
            }
            None => self.lower_field(&name.to_ascii_lowercase(), value, out),
        }
    }

    /// The same of a name that is in lower case already.
    #[inline]
    pub fn lower_field(&mut self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let hash = names::hash(0, name);
        match names::find(name, hash) {
            None => self.other(name, hash, value, out),
            Some(known) => match known.policy {
                Policy::Drop => {}
                Policy::Index => self.index(known.index, known.name, value, out),
                Policy::Plain => literal(0x00, 4, known.index, known.name, value, out),
                Policy::Never => literal(0x10, 4, known.index, known.name, value, out),
            },
        }
    }

    /// Appends a field and has it in the table then. `index` is where the static table has its name; 0: nowhere.
    fn index(&mut self, index: usize, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let hash = names::hash(names::hash(0, name), value);
        if let Some(found) = self.find(hash, name, value) {
            return integer::write(out, 0x80, 7, found);
        }
        if !self.is_worth_a_place(name, value) {
            return literal(0x00, 4, index, name, value, out);
        }
        literal(0x40, 6, index, name, value, out);
        self.insert(hash, name, value);
    }

    /// Appends a field that the static table does not know, not even by name.
    fn other(&mut self, name: &[u8], name_hash: u64, value: &[u8], out: &mut Vec<u8>) {
        let hash = names::hash(name_hash, value);
        if let Some(found) = self.find(hash, name, value) {
            if let Some(slot) = self.names.get(name_hash) {
                slot.new_values = 0;
            }
            return integer::write(out, 0x80, 7, found);
        }
        let (index, seen_values) = self.find_name(name_hash, name);
        if !self.is_worth_a_place(name, value) {
            return literal(0x00, 4, index, name, value, out);
        }
        let new_values = if index == 0 { 0 } else { seen_values.saturating_add(1) };
        if new_values > MAX_NEW_VALUES {
            return literal(0x00, 4, index, name, value, out);
        }
        literal(0x40, 6, index, name, value, out);
        let number = self.insert(hash, name, value);
        self.names.put(self.table.len(), name_hash, TableSlot { number, new_values, ..TableSlot::default() });
    }

    /// A field that would drive out half of the others is not.
    fn is_worth_a_place(&self, name: &[u8], value: &[u8]) -> bool {
        2 * (name.len() + value.len() + FIELD_OVERHEAD_BYTES) <= self.table.max_size()
    }

    /// Puts a field into the table: which entry it is.
    fn insert(&mut self, hash: u64, name: &[u8], value: &[u8]) -> u32 {
        self.table.insert(name, value, Kind::Regular, Kind::Regular);
        let number = self.table.inserted() as u32;
        self.fields.put(self.table.len(), hash, TableSlot { number, ..TableSlot::default() });
        number
    }

    /// Index of a field that is in the dynamic table.
    #[inline]
    fn find(&mut self, hash: u64, name: &[u8], value: &[u8]) -> Option<usize> {
        let number = self.fields.get(hash)?.number;
        let (index, found) = self.entry(number)?;
        (found == (name, value)).then_some(index)
    }

    /// Index of a field with this name, 0: none; and how many values in a row were not in the table.
    fn find_name(&mut self, hash: u64, name: &[u8]) -> (usize, u16) {
        let Some(&mut TableSlot { number, new_values, .. }) = self.names.get(hash) else { return (0, 0) };
        match self.entry(number) {
            Some((index, (seen, _))) if seen == name => (index, new_values),
            _ => (0, 0),
        }
    }

    #[inline]
    fn entry(&self, number: u32) -> Option<(usize, NameAndValue<'_>)> {
        let place = (self.table.inserted() as u32).wrapping_sub(number) as usize;
        let (name, value, _) = self.table.get(place)?;
        Some((STATIC_ENTRIES + 1 + place, (name, value)))
    }
}

/// Part of a hash that is kept: of its upper half, which is mixed best.
fn short(hash: u64) -> u16 {
    (hash >> 32) as u16
}

/// The place of a hash among so many.
fn place(hash: u16, slots: usize) -> usize {
    usize::from(hash) & slots.saturating_sub(1)
}

/// Appends a literal whose name has this index, or is written out.
#[inline]
fn literal(first: u8, prefix_bits: u32, index: usize, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    integer::write(out, first, prefix_bits, index);
    if index == 0 {
        string(name, out);
    }
    string(value, out);
}

/// Appends a string, in the Huffman code where that is shorter.
#[inline]
fn string(text: &[u8], out: &mut Vec<u8>) {
    let coded_bytes = huffman::encoded_bytes(text);
    if coded_bytes < text.len() {
        integer::write(out, 0x80, 7, coded_bytes);
        huffman::encode(text, out);
    } else {
        integer::write(out, 0x00, 7, text.len());
        out.extend_from_slice(text);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hpack::decode::Decoder;

    type Owned = (Vec<u8>, Vec<u8>);

    fn decoded(decoder: &mut Decoder, block: &[u8]) -> Vec<Owned> {
        let mut fields = Vec::new();
        decoder
            .decode(block, |field| fields.push((field.name.to_vec(), field.value.to_vec())))
            .expect("our own blocks are valid");
        fields
    }

    fn encoded(encoder: &mut Encoder, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for (name, value) in fields {
            encoder.field(name.as_bytes(), value.as_bytes(), &mut out);
        }
        out
    }

    #[test]
    fn the_requests_of_the_rfc_are_encoded_as_it_encodes_them() {
        // RFC 7541, C.4.1 and C.4.2.
        let (mut encoder, mut out) = (Encoder::default(), Vec::new());
        let mut request = |fields: &[(&str, &str)], out: &mut Vec<u8>| {
            out.clear();
            encoder.method(b"GET", out);
            encoder.scheme(b"http", out);
            encoder.path(b"/", out);
            encoder.authority(b"www.example.com", out);
            fields.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes(), out));
        };
        request(&[], &mut out);
        let host = [0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(out, [&[0x82, 0x86, 0x84, 0x41][..], &host].concat());
        request(&[("Cache-Control", "no-cache")], &mut out);
        assert_eq!(out, [0x82, 0x86, 0x84, 0xbe, 0x58, 0x86, 0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]);
    }

    #[test]
    fn a_field_that_comes_again_is_one_byte() {
        let mut encoder = Encoder::default();
        let fields = [("X-Custom", "the same"), ("User-Agent", "Robot"), ("accept", "*/*")];
        encoded(&mut encoder, &fields);
        assert_eq!(encoded(&mut encoder, &fields).len(), 3);
    }

    #[test]
    fn values_that_are_always_new_do_not_drive_others_out() {
        let mut encoder = Encoder::default();
        encoded(&mut encoder, &[("user-agent", "Robot")]);
        for number in 0..10_000 {
            encoded(&mut encoder, &[("x-number", &number.to_string())]);
        }
        assert!(encoder.table.inserted() < 10, "{}", encoder.table.inserted());
        assert_eq!(encoded(&mut encoder, &[("user-agent", "Robot")]).len(), 1);
    }

    #[test]
    fn places_are_made_as_the_table_fills_and_what_was_put_in_before_is_found_still() {
        let mut encoder = Encoder::default();
        assert_eq!(encoder.fields.0.len() + encoder.names.0.len(), 0, "nothing was sent");
        encoded(&mut encoder, &[("user-agent", "Robot"), ("accept", "*/*")]);
        assert_eq!((encoder.fields.0.len(), encoder.names.0.len()), (FIRST_SLOTS, 0));
        let (mut slots, mut lengths) = (Slots::default(), Vec::new());
        for number in 1..=100 {
            slots.put(
                number,
                (number as u64) << 32,
                TableSlot { number: number as u32, ..TableSlot::default() },
            );
            lengths.push(slots.0.len());
            for earlier in 1..=number as u32 {
                let found = slots.get(u64::from(earlier) << 32).map(|slot| slot.number);
                assert_eq!(found, Some(earlier), "after {number}");
            }
        }
        lengths.dedup();
        assert_eq!(lengths, [FIRST_SLOTS, 32, 64, MOST_SLOTS]);
    }

    #[test]
    fn credentials_are_never_put_into_a_table() {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        for name in ["Authorization", "proxy-authorization", "Cookie", "Set-Cookie"] {
            let block = encoded(&mut encoder, &[(name, "secret")]);
            let mut never = Vec::new();
            decoder.decode(&block, |field| never.push(field.never_indexed)).expect("is valid");
            assert_eq!(never, [true], "{name}");
        }
        assert_eq!(encoder.table.inserted(), 0);
    }

    #[test]
    fn fields_of_the_connection_are_left_out() {
        let fields = [
            ("Connection", "close"),
            ("Transfer-Encoding", "chunked"),
            ("Keep-Alive", "x"),
            ("Upgrade", "x"),
        ];
        assert!(encoded(&mut Encoder::default(), &fields).is_empty());
    }

    #[test]
    fn a_change_of_the_table_is_said_at_the_start_of_the_next_block() {
        let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
        let fields = [("x-a", "b")];
        decoded(&mut decoder, &encoded(&mut encoder, &fields));
        encoder.set_limit(0);
        encoder.set_limit(1 << 20);
        let block = encoded(&mut encoder, &fields);
        assert_eq!(block[..4], [0x20, 0x3f, 0xe1, 0x1f], "0, then 4096");
        assert_eq!(decoded(&mut decoder, &block), [(b"x-a".to_vec(), b"b".to_vec())]);
        encoder.set_limit(0);
        for _ in 0..2 {
            let block = encoded(&mut encoder, &fields);
            assert_eq!(decoded(&mut decoder, &block), [(b"x-a".to_vec(), b"b".to_vec())]);
        }
        assert_eq!(encoder.table.len(), 0);
    }

    fn field() -> impl Strategy<Value = (String, String)> {
        let name = prop_oneof![
            prop::sample::select(vec!["accept", "cookie", "date", "x-a", "x-b", "etag", "via"])
                .prop_map(str::to_owned),
            "[a-z-]{1,70}",
        ];
        (name, prop_oneof!["[ -~]{0,40}", "[ab]{1,2}"])
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            sections in proptest::collection::vec(proptest::collection::vec(field(), 0..12), 1..20),
            limits in proptest::collection::vec(0u32..5000, 1..20),
        ) {
            let (mut encoder, mut decoder) = (Encoder::default(), Decoder::default());
            for (section, limit) in sections.iter().zip(limits.iter().cycle()) {
                if limit % 3 == 0 {
                    encoder.set_limit(*limit);
                }
                let fields: Vec<(&str, &str)> = section.iter().map(|(name, value)| (&**name, &**value)).collect();
                let block = encoded(&mut encoder, &fields);
                let dropped = ["connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"];
                let expected: Vec<Owned> = section
                    .iter()
                    .filter(|(name, _)| !dropped.contains(&&**name))
                    .map(|(name, value)| (name.clone().into_bytes(), value.clone().into_bytes()))
                    .collect();
                prop_assert_eq!(decoded(&mut decoder, &block), expected);
            }
        }
    }
}
