//! What is stored under which name, and what is known about names under which nothing is stored.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;

use assay_cache::keyed_store::{AdmissionFilter, KeyedStore};
use assay_cache::lru::TooLarge;
use assay_cache::policy::Admission;
use assay_cache::vary::Vary;
use assay_http::field::Fields;

use crate::response::Response;
use crate::spec::Storing;
use assay_net::body::Chunk;

/// Name of a resource: authority and path.
pub type Key = Rc<[u8]>;

/// The share of the memory that one object may take.
const LARGEST_SHARE: u64 = 4;
/// What the allocator and the reference counts add to each separately allocated part, in bytes.
const ALLOCATION_OVERHEAD: usize = 32;
/// Chunks of a stored body are brought to about this size when they are much smaller.
const STORED_CHUNK_BYTES: usize = 64 * 1024;
const SMALL_CHUNK_BYTES: usize = 4 * 1024;
/// Slots of the table of marks; a power of two.
const MARKS: usize = 1 << 16;

/// A complete stored response.
#[derive(Debug, Clone)]
pub struct Stored {
    pub response: Rc<Response>,
    pub body: Rc<[Chunk]>,
    /// Bytes of the body.
    pub length: u64,
    /// It was prefetched, and no client has requested it since.
    pub is_unrequested: Cell<bool>,
}

impl Stored {
    /// From a head and the parts of a body.
    pub fn new(response: Rc<Response>, chunks: Vec<Chunk>) -> Self {
        let length = chunks.iter().map(|chunk| chunk.len()).sum();
        let body = if chunks.len() > 1 && length / chunks.len() < SMALL_CHUNK_BYTES {
            join(&chunks, length)
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

/// Bytes of memory that the names of fields take.
fn vary_bytes(vary: &Vary) -> usize {
    vary.name_bytes() + vary.names().len() * ALLOCATION_OVERHEAD
}

/// The same bytes in larger pieces.
fn join(chunks: &[Chunk], length: usize) -> Rc<[Chunk]> {
    let mut all = Vec::with_capacity(length);
    chunks.iter().for_each(|chunk| all.extend_from_slice(chunk));
    all.chunks(STORED_CHUNK_BYTES).map(Chunk::from).collect()
}

#[derive(Debug)]
enum Entry {
    Response(Rc<Stored>),
    /// Responses under this name depend on request fields; they are stored under names of their own, which hold
    /// this number. A new number makes the old ones unreachable.
    Varies {
        vary: Vary,
        generation: u64,
    },
}

/// What a lookup found.
pub enum Found {
    /// A response for this request, fresh or not.
    Response(Rc<Stored>),
    /// Responses for the same resource, but other request fields.
    OtherVariant,
    Nothing,
}

/// What is known about a name beside what is stored; shared by all names with the same slot.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    /// Fetches that began before this tick may not be stored.
    barrier: u64,
    /// Hash of a name whose last response could not be shared; zero: none.
    unshared: u64,
}

pub struct Store {
    kept: KeyedStore<Entry>,
    /// Most bytes of a body that is stored, by choice.
    admitted_bytes: u64,
    marks: Box<[Mark]>,
    seed: u64,
    /// Counts fetches, reloads and invalidations, so that they have an order.
    tick: u64,
}

impl Store {
    /// An empty store of so many bytes, in which this is stored.
    pub fn new(memory_bytes: u64, storing: Storing) -> Self {
        let (filter, admitted_bytes) = match storing.admission {
            Admission::All => (AdmissionFilter::All, u64::MAX),
            Admission::UpTo(bytes) => (AdmissionFilter::All, bytes),
            Admission::SecondRequest => (AdmissionFilter::SecondRequest, u64::MAX),
            Admission::TinyLfu => (AdmissionFilter::TinyLfu, u64::MAX),
        };
        Self {
            kept: KeyedStore::new(memory_bytes, storing.policy, filter),
            admitted_bytes,
            marks: vec![Mark::default(); MARKS].into_boxed_slice(),
            seed: RandomState::new().hash_one(0),
            tick: 0,
        }
    }

    /// Looks for a response to a request with these fields.
    pub fn find(&mut self, key: &[u8], fields: Fields<'_>) -> Found {
        let variant = match self.kept.get(key) {
            None => return Found::Nothing,
            Some(Entry::Response(stored)) => return Found::Response(Rc::clone(stored)),
            Some(Entry::Varies { vary, generation }) => variant_key(key, *generation, vary, fields),
        };
        match self.kept.get(&variant[..]) {
            Some(Entry::Response(stored)) => Found::Response(Rc::clone(stored)),
            _ => Found::OtherVariant,
        }
    }

    /// What is stored for all requests alike under this name, without counting as a use of it.
    pub fn peek(&self, key: &[u8]) -> Option<&Stored> {
        match self.kept.peek(key)? {
            Entry::Response(stored) => Some(stored),
            Entry::Varies { .. } => None,
        }
    }

    /// Stores a response to a request with these fields, unless something newer is known since `began`, its
    /// tick. What is too large replaces nothing, but what it should have replaced goes.
    pub fn insert(&mut self, key: &Key, fields: Fields<'_>, stored: Stored, began: u64) {
        if began < self.mark(key).barrier {
            return;
        }
        self.mark(key).barrier = began;
        let inserted = match stored.response.vary.clone() {
            Vary::Nothing => self.insert_entry(Rc::clone(key), stored),
            // It suits no other request.
            Vary::Everything => return self.remove(key),
            vary => self.insert_variant(key, vary, fields, stored),
        };
        if inserted.is_err() {
            self.remove(key);
        }
    }

    fn insert_variant(
        &mut self,
        key: &Key,
        vary: Vary,
        fields: Fields<'_>,
        stored: Stored,
    ) -> Result<(), TooLarge> {
        let generation = match self.kept.get(&key[..]) {
            Some(Entry::Varies { vary: known, generation }) if *known == vary => *generation,
            _ => {
                self.tick += 1;
                let bytes = (key.len() + 2 * ALLOCATION_OVERHEAD + 256 + vary_bytes(&vary)) as u64;
                let entry = Entry::Varies { vary: vary.clone(), generation: self.tick };
                self.kept.insert(Rc::clone(key), entry, bytes)?;
                self.tick
            }
        };
        self.insert_entry(variant_key(key, generation, &vary, fields).into(), stored)
    }

    fn insert_entry(&mut self, key: Key, stored: Stored) -> Result<(), TooLarge> {
        let bytes = stored.weight_bytes() + key.len() as u64;
        self.kept.insert(key, Entry::Response(Rc::new(stored)), bytes)
    }

    /// Drops everything under a name.
    pub fn remove(&mut self, key: &[u8]) {
        self.kept.remove(key);
    }

    /// Drops everything under a name, and what is being fetched for it now will not be stored.
    pub fn invalidate(&mut self, key: &[u8]) {
        let tick = self.next_tick();
        self.mark(key).barrier = tick;
        self.remove(key);
    }

    /// What began before this tick will not be stored under this name.
    pub fn outdate(&mut self, key: &[u8], tick: u64) {
        self.mark(key).barrier = tick;
    }

    /// A number larger than all before.
    pub fn next_tick(&mut self) -> u64 {
        self.tick += 1;
        self.tick
    }

    /// Whether the last response under this name could not be shared, so that waiting for another's fetch is in
    /// vain. What is known of authorised requests says nothing about others, which may be for something else.
    pub fn is_unshared(&mut self, key: &[u8], is_authorised: bool) -> bool {
        let hash = self.hash(key);
        self.mark(key).unshared == of_requests(hash, is_authorised)
    }

    /// Notes whether a response under this name could be shared.
    pub fn note_shared(&mut self, key: &[u8], is_authorised: bool, is_shared: bool) {
        let hash = of_requests(self.hash(key), is_authorised);
        let mark = self.mark(key);
        if !is_shared {
            mark.unshared = hash;
        } else if mark.unshared == hash {
            mark.unshared = 0;
        }
    }

    /// Most body bytes that an object may have to be stored.
    pub fn largest_bytes(&self) -> u64 {
        self.admitted_bytes.min(self.kept.bound_bytes() / LARGEST_SHARE)
    }

    /// Counts a request for what is not stored and may be; false: by the rule of admission, it will not be.
    pub fn admits(&mut self, key: &[u8]) -> bool {
        self.kept.admits(key)
    }

    /// True if there is such a rule, and what it refuses may be admitted the next time.
    pub fn is_selective(&self) -> bool {
        self.kept.is_selective()
    }

    /// Takes room for body bytes that are arriving; false: there is none for this object.
    pub fn reserve(&mut self, key: &[u8], bytes: u64) -> bool {
        self.kept.reserve(key, bytes)
    }

    pub fn release(&mut self, bytes: u64) {
        self.kept.release(bytes);
    }

    pub fn objects(&self) -> u64 {
        self.kept.len() as u64
    }

    /// Bytes stored or reserved, overhead included.
    pub fn stored_bytes(&self) -> u64 {
        self.kept.used_bytes() + self.kept.reserved_bytes()
    }

    /// Entries dropped to make room.
    pub fn evictions(&self) -> u64 {
        self.kept.evictions()
    }

    fn mark(&mut self, key: &[u8]) -> &mut Mark {
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

/// The hash of a name for authorised requests, and that for others.
fn of_requests(hash: u64, is_authorised: bool) -> u64 {
    if is_authorised { (!hash).max(1) } else { hash }
}

/// A mark that hits another name costs a fetch that could have been joined, and nothing else: this need not be more than quick,
/// with a seed that nobody knows.
fn mixed(hash: u64, word: u64) -> u64 {
    // The fractional part of the golden ratio.
    let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
    (product as u64) ^ ((product >> 64) as u64)
}

/// Neither hosts nor paths hold a line end, so no resource has such a name.
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
    use crate::response::Times;

    fn stored(fields: &str, body: &[u8]) -> Stored {
        let text = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        let (head, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        let times = Times { requested_ms: 0, received_ms: 0 };
        Stored::new(Rc::new(Response::from_origin(&head, "assay", times).unwrap()), vec![Chunk::from(body)])
    }

    fn fields(text: &str) -> Fields<'static> {
        let text = format!("GET / HTTP/1.0\r\n{text}\r\n").leak();
        RequestHead::parse(text.as_bytes()).unwrap().unwrap().0.headers()
    }

    fn body(found: Found) -> Option<Vec<u8>> {
        match found {
            Found::Response(stored) => Some(stored.body.concat()),
            _ => None,
        }
    }

    fn key(name: &str) -> Key {
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
        assert!(matches!(store.find(b"a/", fields("")), Found::OtherVariant));
        store.invalidate(b"a/");
        store.insert(&key("a/"), en.clone(), stored(vary, b"again"), 1000);
        assert_eq!(body(store.find(b"a/", en)).unwrap(), b"again");
        assert!(matches!(store.find(b"a/", de), Found::OtherVariant));
    }

    #[test]
    fn what_began_before_an_invalidation_or_a_newer_response_is_not_stored() {
        let mut store = Store::new(1 << 20, Storing::default());
        let early = store.next_tick();
        store.invalidate(b"a/");
        store.insert(&key("a/"), fields(""), stored("", b"old"), early);
        assert!(matches!(store.find(b"a/", fields("")), Found::Nothing));
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
            store.note_shared(b"a/", authorised, false);
            assert!(store.is_unshared(b"a/", authorised) && !store.is_unshared(b"a/", !authorised));
            assert!(!store.is_unshared(b"b/", authorised));
            store.note_shared(b"a/", authorised, true);
            assert!(!store.is_unshared(b"a/", authorised));
        }
    }

    #[test]
    fn many_small_parts_of_a_body_are_joined() {
        let response = stored("", b"").response;
        let parts: Vec<Chunk> = (0..40_000u32).map(|i| Chunk::from(i.to_be_bytes())).collect();
        let whole = parts.concat();
        let stored = Stored::new(response, parts);
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
