//! Names of fields that the encoder knows: where the static table has them, and whether their values are worth a place in
//! the dynamic one.

/// Indexing of the values of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// Put into the table: the same value is likely to come again.
    Index,
    /// Sent as they are: each message has another.
    Plain,
    /// Sent as they are, and marked for intermediaries: a guess at them must not be confirmed by a length (RFC 7541, 7.1).
    Never,
    /// Not sent: they are for one connection of HTTP/1.1.
    Drop,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) name: &'static [u8],
    /// First entry in the static table; 0: none.
    pub(super) index: usize,
    pub(super) policy: Policy,
}

const fn known(name: &'static [u8], index: usize, policy: Policy) -> Known {
    Known { name, index, policy }
}

use Policy::{Drop, Index, Never, Plain};

#[rustfmt::skip]
static KNOWN: [Known; 55] = [
    known(b"accept-charset", 15, Index), known(b"accept-encoding", 16, Index), known(b"accept-language", 17, Index),
    known(b"accept-ranges", 18, Index), known(b"accept", 19, Index), known(b"access-control-allow-origin", 20, Index),
    known(b"age", 21, Plain), known(b"allow", 22, Index), known(b"authorization", 23, Never),
    known(b"cache-control", 24, Index), known(b"content-disposition", 25, Plain), known(b"content-encoding", 26, Index),
    known(b"content-language", 27, Index), known(b"content-length", 28, Plain), known(b"content-location", 29, Plain),
    known(b"content-range", 30, Plain), known(b"content-type", 31, Index), known(b"cookie", 32, Never),
    known(b"date", 33, Index), known(b"etag", 34, Plain), known(b"expect", 35, Index), known(b"expires", 36, Plain),
    known(b"from", 37, Index), known(b"host", 38, Index), known(b"if-match", 39, Plain),
    known(b"if-modified-since", 40, Plain), known(b"if-none-match", 41, Plain), known(b"if-range", 42, Plain),
    known(b"if-unmodified-since", 43, Plain), known(b"last-modified", 44, Plain), known(b"link", 45, Plain),
    known(b"location", 46, Plain), known(b"max-forwards", 47, Index), known(b"proxy-authenticate", 48, Plain),
    known(b"proxy-authorization", 49, Never), known(b"range", 50, Plain), known(b"referer", 51, Plain),
    known(b"refresh", 52, Index), known(b"retry-after", 53, Index), known(b"server", 54, Index),
    known(b"set-cookie", 55, Never), known(b"strict-transport-security", 56, Index), known(b"user-agent", 58, Index),
    known(b"vary", 59, Index), known(b"via", 60, Index), known(b"www-authenticate", 61, Plain),
    known(b"connection", 0, Drop), known(b"proxy-connection", 0, Drop), known(b"keep-alive", 0, Drop),
    known(b"transfer-encoding", 57, Drop), known(b"upgrade", 0, Drop), known(b"content-md5", 0, Plain),
    known(b"digest", 0, Plain), known(b"content-digest", 0, Plain), known(b"priority", 0, Index),
];

/// Places of [`KNOWN`]; a power of two, and four times as many as there are names.
const SLOTS: usize = 256;
const EMPTY: u8 = u8::MAX;

static SLOT_OF: [u8; SLOTS] = {
    let mut slots = [EMPTY; SLOTS];
    let mut number = 0;
    while number < KNOWN.len() {
        let mut slot = slot(hash(0, KNOWN[number].name));
        while slots[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        slots[slot] = number as u8;
        number += 1;
    }
    slots
};

const fn slot(hash: u64) -> usize {
    (hash >> 56) as usize
}

/// Mixes bytes into a number; quick, and good enough for places that are looked at again.
#[inline]
pub(super) const fn hash(seed: u64, bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut sum = (seed ^ bytes.len() as u64).wrapping_mul(FACTOR);
    let mut rest = bytes;
    while let Some((word, behind)) = rest.split_first_chunk::<8>() {
        sum = (sum.rotate_left(23) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        rest = behind;
    }
    let (mut last, mut at) = (0, 0);
    while at < rest.len() {
        last = last << 8 | rest[at] as u64;
        at += 1;
    }
    sum = (sum.rotate_left(23) ^ last).wrapping_mul(FACTOR);
    sum ^ sum >> 29
}

/// Looks up a name in lower case, whose [`hash`] this is.
#[inline]
pub(super) fn find(name: &[u8], hash: u64) -> Option<Known> {
    let mut slot = slot(hash);
    while SLOT_OF[slot] != EMPTY {
        let known = KNOWN[usize::from(SLOT_OF[slot])];
        if known.name == name {
            return Some(known);
        }
        slot = (slot + 1) % SLOTS;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hpack::table::STATIC;

    #[test]
    fn a_name_is_where_the_static_table_has_it() {
        for known in KNOWN {
            assert_eq!(find(known.name, hash(0, known.name)).map(|found| found.index), Some(known.index));
            if let Some((name, ..)) = known.index.checked_sub(1).map(|place| STATIC[place]) {
                assert_eq!(name, known.name);
            }
        }
        let names = STATIC.iter().map(|(name, ..)| *name).filter(|name| !name.starts_with(b":"));
        for name in names {
            assert!(find(name, hash(0, name)).is_some(), "{}", String::from_utf8_lossy(name));
        }
        assert!(find(b"x-other", hash(0, b"x-other")).is_none());
    }
}
