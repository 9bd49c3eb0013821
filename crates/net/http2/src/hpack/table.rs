//! The static table (RFC 7541, appendix A) and the dynamic one (2.3.2).

use std::collections::VecDeque;

use super::FIELD_OVERHEAD_BYTES;
use super::kind::Kind;

/// Entries of the static table; the dynamic one is numbered from the next on.
pub(super) const STATIC_ENTRIES: usize = 61;

/// The static table, from index 1.
#[rustfmt::skip]
pub(super) static STATIC: [(&[u8], &[u8], Kind); STATIC_ENTRIES] = [
    (b":authority", b"", Kind::Authority),
    (b":method", b"GET", Kind::Method),
    (b":method", b"POST", Kind::Method),
    (b":path", b"/", Kind::Path),
    (b":path", b"/index.html", Kind::Path),
    (b":scheme", b"http", Kind::Scheme),
    (b":scheme", b"https", Kind::Scheme),
    (b":status", b"200", Kind::Status),
    (b":status", b"204", Kind::Status),
    (b":status", b"206", Kind::Status),
    (b":status", b"304", Kind::Status),
    (b":status", b"400", Kind::Status),
    (b":status", b"404", Kind::Status),
    (b":status", b"500", Kind::Status),
    (b"accept-charset", b"", Kind::Regular),
    (b"accept-encoding", b"gzip, deflate", Kind::Regular),
    (b"accept-language", b"", Kind::Regular),
    (b"accept-ranges", b"", Kind::Regular),
    (b"accept", b"", Kind::Regular),
    (b"access-control-allow-origin", b"", Kind::Regular),
    (b"age", b"", Kind::Regular),
    (b"allow", b"", Kind::Regular),
    (b"authorization", b"", Kind::Regular),
    (b"cache-control", b"", Kind::Regular),
    (b"content-disposition", b"", Kind::Regular),
    (b"content-encoding", b"", Kind::Regular),
    (b"content-language", b"", Kind::Regular),
    (b"content-length", b"", Kind::ContentLength),
    (b"content-location", b"", Kind::Regular),
    (b"content-range", b"", Kind::Regular),
    (b"content-type", b"", Kind::Regular),
    (b"cookie", b"", Kind::Cookie),
    (b"date", b"", Kind::Regular),
    (b"etag", b"", Kind::Regular),
    (b"expect", b"", Kind::Regular),
    (b"expires", b"", Kind::Regular),
    (b"from", b"", Kind::Regular),
    (b"host", b"", Kind::Host),
    (b"if-match", b"", Kind::Regular),
    (b"if-modified-since", b"", Kind::Regular),
    (b"if-none-match", b"", Kind::Regular),
    (b"if-range", b"", Kind::Regular),
    (b"if-unmodified-since", b"", Kind::Regular),
    (b"last-modified", b"", Kind::Regular),
    (b"link", b"", Kind::Regular),
    (b"location", b"", Kind::Regular),
    (b"max-forwards", b"", Kind::Regular),
    (b"proxy-authenticate", b"", Kind::Regular),
    (b"proxy-authorization", b"", Kind::Regular),
    (b"range", b"", Kind::Regular),
    (b"referer", b"", Kind::Regular),
    (b"refresh", b"", Kind::Regular),
    (b"retry-after", b"", Kind::Regular),
    (b"server", b"", Kind::Regular),
    (b"set-cookie", b"", Kind::Regular),
    (b"strict-transport-security", b"", Kind::Regular),
    (b"transfer-encoding", b"", Kind::ConnectionSpecific),
    (b"user-agent", b"", Kind::Regular),
    (b"vary", b"", Kind::Regular),
    (b"via", b"", Kind::Regular),
    (b"www-authenticate", b"", Kind::Regular),
];

/// Position of a field among the bytes of the table.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// Counted from the first byte that was ever put in.
    start: u64,
    name_bytes: u32,
    value_bytes: u32,
    /// Of the name by itself: where the field is invalid because of its value, others with this name need not be, and a name
    /// that two bytes refer to is too long to be looked at each time.
    name_kind: Kind,
    kind: Kind,
}

impl Entry {
    fn size(&self) -> usize {
        self.name_bytes as usize + self.value_bytes as usize + FIELD_OVERHEAD_BYTES
    }
}

/// The fields that were sent before, the newest first.
///
/// Their bytes lie one behind the other in one piece of memory. What was evicted stays in front of them until as much again
/// has gathered, so that each byte is moved once at most.
#[derive(Debug, Default)]
pub(super) struct Dynamic {
    entries: VecDeque<Entry>,
    bytes: Vec<u8>,
    /// Number of the first byte in `bytes`.
    base: u64,
    /// Size as RFC 7541, 4.1 counts it.
    size: usize,
    max_size: usize,
    /// Entries that were ever put in.
    inserted: u64,
}

impl Dynamic {
    pub(super) fn new(max_size: u32) -> Self {
        Self { max_size: max_size as usize, ..Self::default() }
    }

    pub(super) fn max_size(&self) -> usize {
        self.max_size
    }

    /// Entries that are in it.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Entries that were ever put in: the number of the newest one, counted from 1.
    pub(super) fn inserted(&self) -> u64 {
        self.inserted
    }

    /// The field at `index`, counted from 0, the newest: name, value, kind.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<(&[u8], &[u8], Kind)> {
        let entry = self.entries.get(index)?;
        let start = (entry.start - self.base) as usize;
        let middle = start + entry.name_bytes as usize;
        let end = middle + entry.value_bytes as usize;
        Some((&self.bytes[start..middle], &self.bytes[middle..end], entry.kind))
    }

    /// The name of the field at `index`, and the kind that fields of this name have if their value is valid.
    pub(super) fn name(&self, index: usize) -> Option<(&[u8], Kind)> {
        let entry = self.entries.get(index)?;
        let start = (entry.start - self.base) as usize;
        Some((&self.bytes[start..start + entry.name_bytes as usize], entry.name_kind))
    }

    /// Puts a field in, at place 0, with the kind of its name and its own. Evicts older ones as needed; a field that is larger
    /// than the table only empties it.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8], name_kind: Kind, kind: Kind) {
        self.compact();
        if self.admit(name.len(), value.len()) {
            self.bytes.extend_from_slice(name);
            self.append(name.len(), value, name_kind, kind);
        }
    }

    /// The same with the name of the field at `index`.
    pub(super) fn insert_named(&mut self, index: usize, value: &[u8], kind: Kind) {
        let Some(entry) = self.entries.get(index).copied() else { return };
        self.compact();
        let start = (entry.start - self.base) as usize;
        let name_bytes = entry.name_bytes as usize;
        // Eviction forgets an entry and leaves its bytes, so the name can be read behind it (RFC 7541, 4.4).
        if self.admit(name_bytes, value.len()) {
            self.bytes.extend_from_within(start..start + name_bytes);
            self.append(name_bytes, value, entry.name_kind, kind);
        }
    }

    /// The table has another limit from now on.
    pub(super) fn resize(&mut self, max_size: usize) {
        self.max_size = max_size;
        self.evict(0);
    }

    /// Bytes of memory that its fields take.
    #[cfg(test)]
    pub(super) fn footprint(&self) -> usize {
        self.bytes.capacity()
    }

    fn append(&mut self, name_bytes: usize, value: &[u8], name_kind: Kind, kind: Kind) {
        self.bytes.extend_from_slice(value);
        let bytes = name_bytes + value.len();
        let entry = Entry {
            start: self.base + (self.bytes.len() - bytes) as u64,
            name_bytes: name_bytes as u32,
            value_bytes: value.len() as u32,
            name_kind,
            kind,
        };
        self.size += entry.size();
        self.inserted += 1;
        self.entries.push_front(entry);
    }

    /// Makes room for a field; false when there can be none.
    fn admit(&mut self, name_bytes: usize, value_bytes: usize) -> bool {
        let size = name_bytes + value_bytes + FIELD_OVERHEAD_BYTES;
        self.evict(size);
        size <= self.max_size
    }

    fn evict(&mut self, needed: usize) {
        while self.size + needed > self.max_size {
            let Some(entry) = self.entries.pop_back() else { return };
            self.size -= entry.size();
        }
        if self.entries.is_empty() && needed == 0 {
            self.base += self.bytes.len() as u64;
            self.bytes.clear();
        }
    }

    /// Lets go of the bytes of evicted fields, once they are more than the table may hold.
    fn compact(&mut self) {
        let oldest = self.entries.back().map_or(self.base + self.bytes.len() as u64, |entry| entry.start);
        let unused = (oldest - self.base) as usize;
        if unused > self.max_size {
            self.bytes.copy_within(unused.., 0);
            self.bytes.truncate(self.bytes.len() - unused);
            self.base = oldest;
        }
    }
}
