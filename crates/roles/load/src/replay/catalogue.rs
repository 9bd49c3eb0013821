//! Catalogue of a log: the size, status and type of each of its URLs.
//!
//! A first pass over the log notes for every URL the last response that was whole. Where the log saw none (a part, a
//! confirmation, a head alone, something broken off), what it saw is made the best of. Memory is bounded: URLs are kept as
//! hashes, and those beyond a limit have a size of their own choosing, like URLs that the log never had.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use assay_logs::access::Access;
use assay_logs::class::{self, Class};

use crate::replay::request::ReplayRequest;

/// URLs that are kept: a little over 200 MB of memory.
const MOST_URLS: usize = 7_000_000;
/// Most hosts that are listed by name.
const MOST_HOSTS: usize = 64;
/// Most content types that are kept; others have none.
const MOST_TYPES: usize = 1_000;
/// Size of a body that the log never has in full.
const UNKNOWN_BYTES: u64 = 10_000;

/// Response to a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CatalogueEntry {
    /// Size of its body.
    pub bytes: u64,
    /// Status of its response.
    pub status: u16,
    /// Place of its content type.
    kind: u16,
    /// Evidence of the line that this comes from.
    evidence: Evidence,
}

/// Evidence that a line of a log gives about its URL, from weak to strong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evidence {
    /// The URL exists.
    Mention,
    /// Part of the body.
    Part,
    /// All, but there was nothing to be had.
    Refusal,
    Whole,
}

/// All that a log has.
#[derive(Debug)]
pub struct Catalogue {
    entries: HashMap<u64, CatalogueEntry>,
    types: Vec<Box<str>>,
    hosts: BTreeSet<Box<str>>,
    most: usize,
    left_out: u64,
    /// Lines that named their host themselves.
    named: u64,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            types: vec!["application/octet-stream".into()],
            hosts: BTreeSet::new(),
            most: MOST_URLS,
            left_out: 0,
            named: 0,
        }
    }
}

/// Key of a URL, whoever writes it.
pub(crate) fn key(authority: &str, path: &str) -> u64 {
    // With and without the default port, a URL is the same (RFC 9110, 4.2.3).
    let authority = authority.strip_suffix(":80").unwrap_or(authority);
    let mut hasher = DefaultHasher::new();
    for byte in authority.bytes() {
        byte.to_ascii_lowercase().hash(&mut hasher);
    }
    path.hash(&mut hasher);
    hasher.finish()
}

impl Catalogue {
    /// Takes a line of the log, and what it requested.
    pub(crate) fn add(&mut self, request: &ReplayRequest, access: &Access<'_>) {
        self.named += u64::from(!access.host().is_empty());
        if self.hosts.len() <= MOST_HOSTS && !self.hosts.contains(&request.authority) {
            self.hosts.insert(request.authority.clone());
        }
        let key = key(&request.authority, &request.path);
        let known = self.entries.get(&key);
        if known.is_none() && self.entries.len() >= self.most {
            self.left_out += 1;
            return;
        }
        let found = entry_of_line(request.head_only, access);
        let is_better = known.is_none_or(|known| match found.evidence.cmp(&known.evidence) {
            std::cmp::Ordering::Equal if found.evidence < Evidence::Refusal => found.bytes > known.bytes,
            order => order.is_ge(),
        });
        if is_better {
            let kind = self.type_place(access.content_type);
            self.entries.insert(key, CatalogueEntry { kind, ..found });
        }
    }

    /// Takes a URL of which nothing more is known.
    pub(crate) fn mention(&mut self, request: &ReplayRequest) {
        let named = Access { host: request.authority.as_bytes(), ..Access::default() };
        self.add(request, &named);
    }

    fn type_place(&mut self, name: &[u8]) -> u16 {
        let is_usable = name.len() <= 100 && name.iter().all(|byte| matches!(byte, b' '..=b'~'));
        let Ok(name) = std::str::from_utf8(name) else { return 0 };
        if name.is_empty() || name == "-" || !is_usable || !name.contains('/') {
            return 0;
        }
        let place = self.types.iter().position(|known| **known == *name).unwrap_or_else(|| {
            if self.types.len() >= MOST_TYPES {
                return 0;
            }
            self.types.push(name.into());
            self.types.len() - 1
        });
        // There are a thousand at most.
        place as u16
    }

    /// Entry under a key; a made-up one for what is not known.
    pub(crate) fn entry(&self, key: u64) -> CatalogueEntry {
        let unknown =
            CatalogueEntry { bytes: UNKNOWN_BYTES, status: 200, kind: 0, evidence: Evidence::Mention };
        self.entries.get(&key).copied().unwrap_or(unknown)
    }

    /// True where the log has it.
    pub(crate) fn has(&self, key: u64) -> bool {
        self.entries.contains_key(&key)
    }

    pub(crate) fn type_of(&self, entry: CatalogueEntry) -> &str {
        self.types.get(usize::from(entry.kind)).map_or("application/octet-stream", |name| name)
    }

    /// Number of known URLs.
    pub fn urls(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Lines whose URLs it had no room for.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// True where the log itself names the hosts of its requests.
    pub fn names_hosts(&self) -> bool {
        self.named > 0
    }

    /// The hosts; none: there are too many to tell apart.
    pub fn hosts(&self) -> Option<Vec<String>> {
        let names = || self.hosts.iter().map(|host| host.to_string()).collect();
        (self.hosts.len() <= MOST_HOSTS).then(names)
    }
}

impl CatalogueEntry {
    /// True if a cache may keep the response.
    pub fn is_storable(self) -> bool {
        // Statuses that are cacheable by default (RFC 9110, 15.1).
        matches!(self.status, 200 | 203 | 300 | 301 | 308 | 404 | 410)
    }
}

/// Entry by one line; its type is found elsewhere.
fn entry_of_line(head_only: bool, access: &Access<'_>) -> CatalogueEntry {
    let was_broken = class::classify(access) == Class::Error && access.status < 400;
    let (evidence, status, bytes) = match access.status {
        0..200 | 304 => (Evidence::Mention, 200, UNKNOWN_BYTES),
        status if head_only => (Evidence::Mention, status, if status == 200 { UNKNOWN_BYTES } else { 0 }),
        206 => (Evidence::Part, 200, access.bytes),
        200 if was_broken => (Evidence::Part, 200, access.bytes),
        200 => (Evidence::Whole, 200, access.bytes),
        204 => (Evidence::Refusal, 204, 0),
        status => (Evidence::Refusal, status.min(599), access.bytes),
    };
    CatalogueEntry { bytes, status, kind: 0, evidence }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(lines: &[(&str, u16, u64)]) -> CatalogueEntry {
        let mut catalogue = Catalogue::default();
        let request = |head_only| ReplayRequest::new(head_only, b"http://a.example/x", None).unwrap();
        for &(method, status, bytes) in lines {
            let access = Access { status, bytes, content_type: b"text/css", ..Access::default() };
            catalogue.add(&request(method == "HEAD"), &access);
        }
        assert_eq!(catalogue.urls(), 1);
        let entry = catalogue.entry(key("A.example:80", "/x"));
        assert_eq!(catalogue.type_of(entry), "text/css");
        entry
    }

    #[test]
    fn a_url_is_what_the_last_whole_response_was() {
        for (lines, status, bytes) in [
            (&[("GET", 200, 7), ("GET", 200, 9), ("GET", 304, 0), ("GET", 206, 99)][..], 200, 9),
            (&[("GET", 404, 7), ("GET", 200, 9), ("GET", 404, 5)], 200, 9),
            (&[("GET", 404, 7), ("GET", 410, 5), ("GET", 206, 99)], 410, 5),
            (&[("GET", 206, 7), ("GET", 206, 99), ("GET", 206, 8)], 200, 99),
            (&[("GET", 304, 0)], 200, UNKNOWN_BYTES),
            (&[("HEAD", 200, 0), ("GET", 304, 300)], 200, UNKNOWN_BYTES),
            (&[("HEAD", 404, 0)], 404, 0),
            (&[("GET", 0, 12), ("GET", 503, 6)], 503, 6),
        ] {
            let found = noted(lines);
            assert_eq!((found.status, found.bytes), (status, bytes), "{lines:?}");
        }
    }

    #[test]
    fn what_there_is_no_room_for_is_something_all_the_same() {
        let mut catalogue = Catalogue { most: 1, ..Catalogue::default() };
        for path in ["/1", "/2", "/2"] {
            let access = Access { status: 200, bytes: 5, ..Access::default() };
            catalogue.add(&ReplayRequest::new(false, path.as_bytes(), Some(b"h")).unwrap(), &access);
        }
        assert_eq!((catalogue.urls(), catalogue.left_out(), catalogue.names_hosts()), (1, 2, false));
        let other = catalogue.entry(key("h", "/2"));
        assert_eq!((other.bytes, other.status, other.is_storable()), (UNKNOWN_BYTES, 200, true));
        assert_eq!(catalogue.type_of(other), "application/octet-stream");
    }

    #[test]
    fn hosts_are_told_apart_until_there_are_too_many() {
        let mut catalogue = Catalogue::default();
        for number in 0..MOST_HOSTS {
            catalogue
                .mention(&ReplayRequest::new(false, b"/", Some(format!("h{number}").as_bytes())).unwrap());
        }
        assert_eq!(catalogue.hosts().map(|hosts| hosts.len()), Some(MOST_HOSTS));
        for host in [b"more", b"most"] {
            catalogue.mention(&ReplayRequest::new(false, b"/", Some(host)).unwrap());
        }
        assert!(catalogue.hosts().is_none());
    }
}
