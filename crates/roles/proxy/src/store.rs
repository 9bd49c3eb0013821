//! The store: responses by key, and what is known about keys without one.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use assay_cache::keyed_store::{AdmissionFilter, KeyedStore};
use assay_cache::lru::TooLarge;
use assay_cache::policy::Admission;
use assay_cache::vary::Vary;
use assay_http::field::Fields;

use crate::response::ProxyResponse;
use crate::spec::Storing;
use assay_net::body::Chunk;

/// Cache key: authority and path.
pub type CacheKey = Rc<[u8]>;

/// Inverse of the share of the memory that one object may take.
const LARGEST_SHARE: u64 = 4;
/// Overhead of the allocator and the reference counts for each allocation.
const ALLOCATION_OVERHEAD: usize = 32;
/// Bodies whose chunks are smaller than [`SMALL_CHUNK_BYTES`] on average are stored in chunks of this size.
const STORED_CHUNK_BYTES: usize = 64 * 1024;
const SMALL_CHUNK_BYTES: usize = 4 * 1024;
/// A power of two.
const MARKS: usize = 1 << 16;

#[derive(Debug, Clone)]
pub struct StoredResponse {
    pub response: Rc<ProxyResponse>,
    pub body: Rc<[Chunk]>,
    pub length: u64,
    /// Prefetched, and not requested by a client since.
    pub is_unrequested: Cell<bool>,
}

impl StoredResponse {
    pub fn new(response: Rc<ProxyResponse>, chunks: Vec<Chunk>) -> Self {
        let length = chunks.iter().map(|chunk| chunk.len()).sum();
        let body = if chunks.len() > 1 && length / chunks.len() < SMALL_CHUNK_BYTES {
            merge_chunks(&chunks, length)
        } else {
            chunks.into()
        };
        Self { response, body, length: length as u64, is_unrequested: Cell::new(false) }
    }

    fn weight_bytes(&self) -> u64 {
        let chunks = self.body.len() * (size_of::<Chunk>() + ALLOCATION_OVERHEAD);
        let parts = size_of::<Self>() + self.response.weight_bytes() + 5 * ALLOCATION_OVERHEAD;
        self.length + (chunks + parts + vary_bytes(&self.response.vary)) as u64
    }
}

/// Memory used by field names.
fn vary_bytes(vary: &Vary) -> usize {
    vary.name_bytes() + vary.names().len() * ALLOCATION_OVERHEAD
}

/// Copies the body into larger chunks.
fn merge_chunks(chunks: &[Chunk], length: usize) -> Rc<[Chunk]> {
    let mut all = Vec::with_capacity(length);
    chunks.iter().for_each(|chunk| all.extend_from_slice(chunk));
    all.chunks(STORED_CHUNK_BYTES).map(Chunk::from).collect()
}

#[derive(Debug)]
enum StoreEntry {
    Response(Rc<StoredResponse>),
    /// Responses under this key depend on request fields; each variant has a key of its own, which includes the generation. A new
    /// generation makes the old variants unreachable.
    Varies {
        vary: Vary,
        generation: u64,
    },
}

/// Result of a lookup.
pub enum StoreLookup {
    /// A response for this request, fresh or not.
    Response(Rc<StoredResponse>),
    /// Only responses for other request fields.
    OtherVariant,
    Nothing,
}

/// Knowledge about a key beside its response; shared by all keys with the same slot.
#[derive(Debug, Clone, Copy, Default)]
struct KeyMark {
    /// Responses to fetches that began before this tick may not be stored.
    barrier: u64,
    /// Hash of a key whose last response could not be shared; 0: none.
    unshared: u64,
}

pub struct Store {
    entries: KeyedStore<StoreEntry>,
    /// Limit of a body's size by the admission setting.
    admitted_bytes: u64,
    marks: Box<[KeyMark]>,
    seed: u64,
    /// Orders fetches, reloads and invalidations.
    tick: u64,
}

impl Store {
    pub fn new(memory_bytes: u64, storing: Storing) -> Self {
        let (filter, admitted_bytes) = match storing.admission {
            Admission::All => (AdmissionFilter::All, u64::MAX),
            Admission::UpTo(bytes) => (AdmissionFilter::All, bytes),
            Admission::SecondRequest => (AdmissionFilter::SecondRequest, u64::MAX),
            Admission::TinyLfu => (AdmissionFilter::TinyLfu, u64::MAX),
        };
        Self {
            entries: KeyedStore::new(memory_bytes, storing.policy, filter),
            admitted_bytes,
            marks: vec![KeyMark::default(); MARKS].into_boxed_slice(),
            seed: RandomState::new().hash_one(0),
            tick: 0,
        }
    }

    /// Looks up a response to a request with these fields.
    pub fn find(&mut self, key: &[u8], fields: Fields<'_>) -> StoreLookup {
        let variant = match self.entries.get(key) {
            None => return StoreLookup::Nothing,
            Some(StoreEntry::Response(stored)) => return StoreLookup::Response(Rc::clone(stored)),
            Some(StoreEntry::Varies { vary, generation }) => variant_key(key, *generation, vary, fields),
        };
        match self.entries.get(&variant[..]) {
            Some(StoreEntry::Response(stored)) => StoreLookup::Response(Rc::clone(stored)),
            _ => StoreLookup::OtherVariant,
        }
    }

    /// Looks up a response that does not vary, without counting as a use of it.
    pub fn peek(&self, key: &[u8]) -> Option<&StoredResponse> {
        match self.entries.peek(key)? {
            StoreEntry::Response(stored) => Some(stored),
            StoreEntry::Varies { .. } => None,
        }
    }

    /// Stores a response to a request with these fields, unless something newer is known since tick `began`. A response that is
    /// too large is not stored, but what it should have replaced is removed.
    pub fn insert(&mut self, key: &CacheKey, fields: Fields<'_>, stored: StoredResponse, began: u64) {
        if began < self.mark(key).barrier {
            return;
        }
        self.mark(key).barrier = began;
        let inserted = match stored.response.vary.clone() {
            Vary::Nothing => self.insert_entry(Rc::clone(key), stored),
            // Suits no other request.
            Vary::Everything => return self.remove(key),
            vary => self.insert_variant(key, vary, fields, stored),
        };
        if inserted.is_err() {
            self.remove(key);
        }
    }

    fn insert_variant(
        &mut self,
        key: &CacheKey,
        vary: Vary,
        fields: Fields<'_>,
        stored: StoredResponse,
    ) -> Result<(), TooLarge> {
        let generation = match self.entries.get(&key[..]) {
            Some(StoreEntry::Varies { vary: known, generation }) if *known == vary => *generation,
            _ => {
                self.tick += 1;
                let bytes = (key.len() + 2 * ALLOCATION_OVERHEAD + 256 + vary_bytes(&vary)) as u64;
                let entry = StoreEntry::Varies { vary: vary.clone(), generation: self.tick };
                self.entries.insert(Rc::clone(key), entry, bytes)?;
                self.tick
            }
        };
        self.insert_entry(variant_key(key, generation, &vary, fields).into(), stored)
    }

    fn insert_entry(&mut self, key: CacheKey, stored: StoredResponse) -> Result<(), TooLarge> {
        let bytes = stored.weight_bytes() + key.len() as u64;
        self.entries.insert(key, StoreEntry::Response(Rc::new(stored)), bytes)
    }

    /// Removes everything under a key.
    pub fn remove(&mut self, key: &[u8]) {
        self.entries.remove(key);
    }

    /// Removes everything under a key, and keeps fetches under way for it from being stored.
    pub fn invalidate(&mut self, key: &[u8]) {
        let tick = self.next_tick();
        self.mark(key).barrier = tick;
        self.remove(key);
    }

    /// Keeps responses to fetches that began before this tick from being stored under this key.
    pub fn set_barrier(&mut self, key: &[u8], tick: u64) {
        self.mark(key).barrier = tick;
    }

    pub fn next_tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }

    /// Whether the last response under this key could not be shared, so that waiting for another request's fetch is in vain.
    /// Authorised and other requests are distinguished.
    pub fn is_unshared(&mut self, key: &[u8], is_authorised: bool) -> bool {
        let hash = self.hash(key);
        self.mark(key).unshared == hash_for(hash, is_authorised)
    }

    /// Records whether a response under this key could be shared.
    pub fn record_shared(&mut self, key: &[u8], is_authorised: bool, is_shared: bool) {
        let hash = hash_for(self.hash(key), is_authorised);
        let mark = self.mark(key);
        if !is_shared {
            mark.unshared = hash;
        } else if mark.unshared == hash {
            mark.unshared = 0;
        }
    }

    /// Upper bound on the body of a stored object.
    pub fn largest_bytes(&self) -> u64 {
        self.admitted_bytes.min(self.entries.bound_bytes() / LARGEST_SHARE)
    }

    /// Counts a request for an object that is not stored; false if the admission filter refuses it.
    pub fn admits(&mut self, key: &[u8]) -> bool {
        self.entries.admits(key)
    }

    /// Whether an admission filter is used, which may admit the next time what it refuses now.
    pub fn is_selective(&self) -> bool {
        self.entries.is_selective()
    }

    /// Reserves memory for body bytes that are arriving; false if there is none for this object.
    pub fn reserve(&mut self, key: &[u8], bytes: u64) -> bool {
        self.entries.reserve(key, bytes)
    }

    pub fn release(&mut self, bytes: u64) {
        self.entries.release(bytes);
    }

    pub fn objects(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Bytes stored or reserved, overhead included.
    pub fn stored_bytes(&self) -> u64 {
        self.entries.used_bytes() + self.entries.reserved_bytes()
    }

    pub fn evictions(&self) -> u64 {
        self.entries.evictions()
    }

    fn mark(&mut self, key: &[u8]) -> &mut KeyMark {
        let at = self.hash(key) as usize % MARKS;
        &mut self.marks[at]
    }

    fn hash(&self, key: &[u8]) -> u64 {
        let mut hash = self.seed;
        let (words, rest) = key.as_chunks::<8>();
        for word in words {
            hash = mixed(hash, u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let hash = mixed(hash, u64::from_le_bytes(last));
        mixed(hash, key.len() as u64).max(1)
    }
}

/// Distinguishes authorised requests from others.
fn hash_for(hash: u64, is_authorised: bool) -> u64 {
    if is_authorised { (!hash).max(1) } else { hash }
}

// A fast hash with a secret seed suffices: a collision costs a fetch that could have been joined, and nothing else.
fn mixed(hash: u64, word: u64) -> u64 {
    // The fractional part of the golden ratio.
    let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
    (product as u64) ^ ((product >> 64) as u64)
}

// A line end occurs neither in hosts nor in paths, so no resource has such a key.
fn variant_key(key: &[u8], generation: u64, vary: &Vary, fields: Fields<'_>) -> Vec<u8> {
    let secondary = vary.secondary_key(fields.map(|field| (field.name, field.value)));
    let mut variant = Vec::with_capacity(key.len() + 9 + secondary.len());
    variant.extend_from_slice(key);
    variant.push(b'\n');
    variant.extend_from_slice(&generation.to_be_bytes());
    variant.extend_from_slice(&secondary);
    variant
}

#[cfg(test)]
mod tests {
    use assay_cache::policy::replacement::Replacement;
    use assay_http::head::{RequestHead, ResponseHead};
    use proptest::prelude::*;

    use super::*;
    use crate::response::ResponseTimes;

    fn stored(fields: &str, body: &[u8]) -> StoredResponse {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let (head, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        let times = ResponseTimes { requested_ms: 0, received_ms: 0 };
        StoredResponse::new(
            Rc::new(ProxyResponse::from_origin(&head, "assay", times).unwrap()),
            vec![Chunk::from(body)],
        )
    }

    fn fields(text: &str) -> Fields<'static> {
        let text = format!("GET / HTTP/1.0\r\n{text}\r\n").leak();
        RequestHead::parse(text.as_bytes()).unwrap().unwrap().0.headers()
    }

    fn body(found: StoreLookup) -> Option<Vec<u8>> {
        match found {
            StoreLookup::Response(stored) => Some(stored.body.concat()),
            _ => None,
        }
    }

    fn key(name: &str) -> CacheKey {
        name.as_bytes().into()
    }

    #[test]
    fn variants_are_told_apart_and_go_together() {
        let mut store = Store::new(1 << 20, Storing::default());
        let (en, de) = (fields("Accept-Language: en\r\n"), fields("Accept-Language: de\r\n"));
        let vary = "Vary: accept-language\r\n";
        store.insert(&key("a/"), en.clone(), stored(vary, b"hello"), 1);
        store.insert(&key("a/"), de.clone(), stored(vary, b"hallo"), 2);
        assert_eq!(body(store.find(b"a/", en.clone())).unwrap(), b"hello");
        assert_eq!(body(store.find(b"a/", de.clone())).unwrap(), b"hallo");
        assert!(matches!(store.find(b"a/", fields("")), StoreLookup::OtherVariant));
        store.invalidate(b"a/");
        store.insert(&key("a/"), en.clone(), stored(vary, b"again"), 1000);
        assert_eq!(body(store.find(b"a/", en)).unwrap(), b"again");
        assert!(matches!(store.find(b"a/", de), StoreLookup::OtherVariant));
    }

    #[test]
    fn what_began_before_an_invalidation_or_a_newer_response_is_not_stored() {
        let mut store = Store::new(1 << 20, Storing::default());
        let early = store.next_tick();
        store.invalidate(b"a/");
        store.insert(&key("a/"), fields(""), stored("", b"old"), early);
        assert!(matches!(store.find(b"a/", fields("")), StoreLookup::Nothing));
        let (slow, fast) = (store.next_tick(), store.next_tick());
        store.insert(&key("a/"), fields(""), stored("", b"new"), fast);
        store.insert(&key("a/"), fields(""), stored("", b"old"), slow);
        assert_eq!(body(store.find(b"a/", fields(""))).unwrap(), b"new");
    }

    #[test]
    fn what_varies_by_everything_is_not_stored() {
        let mut store = Store::new(1 << 20, Storing::default());
        store.insert(&key("a/"), fields(""), stored("", b"old"), 1);
        store.insert(&key("a/"), fields(""), stored("Vary: *\r\n", b"new"), 2);
        assert_eq!(store.objects(), 0);
    }

    #[test]
    fn names_of_fields_that_a_response_varies_by_count_towards_the_bound() {
        let mut store = Store::new(1 << 20, Storing::default());
        let names: String = (0..100).map(|name| format!("{name:0500},")).collect();
        store.insert(&key("a/"), fields(""), stored(&format!("Vary: {names}\r\n"), b""), 1);
        // The field itself, and its names with the response and with what tells its variants apart.
        assert!(store.stored_bytes() > 150_000, "{}", store.stored_bytes());
    }

    #[test]
    fn names_whose_responses_cannot_be_shared_are_remembered_until_one_can() {
        let mut store = Store::new(1 << 20, Storing::default());
        for authorised in [false, true] {
            store.record_shared(b"a/", authorised, false);
            assert!(store.is_unshared(b"a/", authorised) && !store.is_unshared(b"a/", !authorised));
            assert!(!store.is_unshared(b"b/", authorised));
            store.record_shared(b"a/", authorised, true);
            assert!(!store.is_unshared(b"a/", authorised));
        }
    }

    #[test]
    fn many_small_parts_of_a_body_are_joined() {
        let response = stored("", b"").response;
        let parts: Vec<Chunk> = (0..40_000u32).map(|i| Chunk::from(i.to_be_bytes())).collect();
        let whole = parts.concat();
        let stored = StoredResponse::new(response, parts);
        assert_eq!(stored.body.len(), 3);
        assert_eq!(stored.body.concat(), whole);
    }

    proptest! {
        #[test]
        fn the_bound_is_never_exceeded(
            bound in 0u64..200_000, policy in 0usize..Replacement::ALL.len(),
            sizes in proptest::collection::vec((0u8..30, 0usize..60_000, any::<bool>(), 0u64..70_000), 1..60),
        ) {
            let mut store = Store::new(bound, Storing { policy: Replacement::ALL[policy].0, ..Storing::default() });
            let mut reserved = 0;
            for (name, size, varies, reserve) in sizes {
                let tick = store.next_tick();
                let vary = if varies { "Vary: accept\r\n" } else { "" };
                let (key, requested) = (key(&format!("h/{name}")), fields("Accept: a\r\n"));
                store.insert(&key, requested, stored(vary, &vec![0; size]), tick);
                prop_assert!(store.stored_bytes() <= bound);
                if reserve % 3 == 0 {
                    store.release(std::mem::take(&mut reserved));
                } else if store.reserve(&key, reserve) {
                    reserved += reserve;
                }
                prop_assert!(store.stored_bytes() <= bound);
            }
        }
    }
}
