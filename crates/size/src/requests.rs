//! Requests as compact records, 24 bytes each, and what is known of all of them together.

use crate::http::{Http, Meaning};
use crate::ids::Ids;

/// The object of a request that no cache may serve.
pub const UNCACHABLE: u32 = u32::MAX;

/// A request of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Size of the object, as of this request: the room that it takes in a cache.
    pub bytes: u64,
    /// Bytes of the response to this request: fewer than the object's for a part of it.
    pub sent_bytes: u64,
    /// The object's number, or [`UNCACHABLE`].
    pub object: u32,
    /// Seconds since the first request.
    pub at_s: u32,
}

/// All requests of an input, in its order.
#[derive(Debug, Default)]
pub struct Requests {
    /// Those that caches may serve, and those that they may not.
    pub list: Vec<Request>,
    /// How many different objects they are for.
    pub objects: usize,
    /// Bytes of the different objects, each with its last size: what an infinite cache holds at the end.
    pub footprint_bytes: u64,
    /// Bytes of the largest object.
    pub largest_bytes: u64,
    /// Requests whose object had another size than at its request before.
    pub size_changes: u64,
    /// Requests that no cache may serve.
    pub uncachable: u64,
    /// Requests with a time before that of the request before them.
    pub unordered: u64,
    /// Without sizes, each object counts 1, and sizes of caches are numbers of objects.
    pub has_sizes: bool,
    /// Seconds from the first request to the last one; none: the input has no times.
    pub lasts_s: Option<u64>,
    /// What HTTP says of each request; none: all are plain GETs for objects that never expire, and all are counted.
    pub http: Option<Http>,
}

impl Requests {
    /// False for a request that acts on caches and is in no figure, such as a HEAD.
    #[inline]
    pub fn is_counted(&self, number: usize) -> bool {
        self.http.as_ref().is_none_or(|http| http.meanings[number].is_counted)
    }

    /// Requests that act on caches and are in no figure.
    pub fn uncounted(&self) -> u64 {
        let meanings = self.http.iter().flat_map(|http| &http.meanings);
        meanings.filter(|meaning| !meaning.is_counted).count() as u64
    }

    /// Objects that are requested once: none of them is ever a hit.
    pub fn requested_once(&self) -> u64 {
        let mut times = vec![0u8; self.objects];
        for request in &self.list {
            if let Some(times) = times.get_mut(request.object as usize) {
                *times = times.saturating_add(1);
            }
        }
        times.iter().filter(|times| **times == 1).count() as u64
    }
}

/// How the sizes of an input are to be understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// There are none.
    Unknown,
    /// A difference of more than so many bytes means that the object has changed; a smaller one means nothing, and the object
    /// keeps the size it had.
    Within(u64),
}

/// Collects requests one by one.
#[derive(Debug)]
pub struct Gather {
    requests: Requests,
    ids: Ids,
    /// Last size by object.
    known: Vec<u64>,
    first_s: Option<i64>,
    before_s: i64,
    last_s: i64,
    sizes: Sizes,
}

impl Gather {
    /// Nothing yet.
    pub fn new(sizes: Sizes) -> Self {
        Self {
            requests: Requests::default(),
            ids: Ids::default(),
            known: Vec::new(),
            first_s: None,
            before_s: i64::MIN,
            last_s: i64::MIN,
            sizes,
        }
    }

    /// From now on every request has a meaning in HTTP; called before the first request.
    pub fn set_http(&mut self, http: Http) {
        self.requests.http = Some(http);
    }

    /// True if a POST drops what is stored under its URL.
    pub fn post_invalidates(&self) -> bool {
        self.requests.http.as_ref().is_some_and(|http| http.behaviour.post_invalidates)
    }

    /// Says how the sizes that follow are to be understood. An input without sizes stays one.
    pub fn set_sizes(&mut self, sizes: Sizes) {
        if self.sizes != Sizes::Unknown {
            self.sizes = sizes;
        }
    }

    /// Adds a request for the whole object with this key; time in seconds of any epoch.
    /// False: there are 2^32 − 1 objects already, and the request was left out.
    pub fn whole(&mut self, key: u64, bytes: u64, at_s: Option<i64>) -> bool {
        let Some(object) = self.ids.number(key).filter(|object| *object != UNCACHABLE) else { return false };
        let known = self.known.get(object as usize).copied();
        let bytes = match (self.sizes, known) {
            (Sizes::Within(tolerance), Some(known)) if known.abs_diff(bytes) <= tolerance => known,
            _ => bytes,
        };
        match known {
            Some(known) => self.requests.size_changes += u64::from(known != bytes),
            None => self.known.push(bytes),
        }
        self.known[object as usize] = bytes;
        self.requests.largest_bytes = self.requests.largest_bytes.max(bytes);
        self.push(object, bytes, bytes, at_s);
        true
    }

    /// Adds a request for the whole object with what HTTP says of it. False as for [`Gather::whole`].
    pub fn meant(&mut self, key: u64, bytes: u64, at_s: Option<i64>, meaning: Meaning) -> bool {
        let was_added = self.whole(key, bytes, at_s);
        if was_added {
            self.mean(meaning);
        }
        was_added
    }

    /// Says what HTTP says of the request that was added last; nothing where requests have no meanings.
    pub fn mean(&mut self, meaning: Meaning) {
        let meanings = self.requests.http.as_mut().map(|http| &mut http.meanings);
        if let Some(last) = meanings.and_then(|meanings| meanings.last_mut()) {
            *last = meaning;
        }
    }

    /// Adds a request that is served from the whole object, although its response is not all of it. If the object was not
    /// requested before, its size is not known, and no cache can have it.
    pub fn part(&mut self, key: u64, sent_bytes: u64, at_s: Option<i64>) {
        match self.ids.find(key) {
            Some(object) => self.push(object, self.known[object as usize], sent_bytes, at_s),
            None => self.uncachable(sent_bytes, at_s),
        }
    }

    /// Adds a request that no cache may serve.
    pub fn uncachable(&mut self, sent_bytes: u64, at_s: Option<i64>) {
        self.requests.uncachable += 1;
        self.push(UNCACHABLE, 0, sent_bytes, at_s);
    }

    /// All of them.
    pub fn finish(mut self) -> Requests {
        self.requests.objects = self.ids.len();
        self.requests.has_sizes = self.sizes != Sizes::Unknown;
        if !self.requests.has_sizes {
            self.count_objects();
        }
        self.requests.footprint_bytes = self.known.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
        self.requests.lasts_s = self.first_s.map(|first_s| self.last_s.abs_diff(first_s));
        self.requests
    }

    /// Makes every object, and every response, count 1: some part of the input has no sizes.
    fn count_objects(&mut self) {
        for request in &mut self.requests.list {
            (request.bytes, request.sent_bytes) = (1, 1);
        }
        self.known.fill(1);
        self.requests.size_changes = 0;
        self.requests.largest_bytes = self.known.first().copied().unwrap_or_default();
    }

    fn push(&mut self, object: u32, bytes: u64, sent_bytes: u64, at_s: Option<i64>) {
        let at_s = at_s.map_or(0, |at_s| self.clock(at_s));
        self.requests.list.push(Request { bytes, sent_bytes, object, at_s });
        if let Some(http) = &mut self.requests.http {
            http.meanings.push(Meaning::PLAIN);
        }
    }

    /// Seconds since the first request; those before it count as simultaneous with it.
    fn clock(&mut self, at_s: i64) -> u32 {
        let first_s = *self.first_s.get_or_insert(at_s);
        self.requests.unordered += u64::from(at_s < self.before_s);
        (self.before_s, self.last_s) = (at_s, self.last_s.max(at_s));
        u32::try_from(at_s.saturating_sub(first_s).max(0)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(sizes: Sizes, given: &[(u64, u64)]) -> (Vec<u64>, Requests) {
        let mut gather = Gather::new(sizes);
        for (key, bytes) in given {
            assert!(gather.whole(*key, *bytes, None));
        }
        let requests = gather.finish();
        (requests.list.iter().map(|request| request.bytes).collect(), requests)
    }

    #[test]
    fn a_change_of_size_counts_unless_it_is_within_the_tolerance() {
        let given = [(7, 500), (8, 20), (7, 510), (7, 511), (8, 20)];
        let (found, requests) = sizes(Sizes::Within(0), &given);
        assert_eq!((found, requests.size_changes), (vec![500, 20, 510, 511, 20], 2));
        assert_eq!((requests.objects, requests.footprint_bytes, requests.largest_bytes), (2, 531, 511));
        let (found, requests) = sizes(Sizes::Within(10), &given);
        assert_eq!((found, requests.size_changes), (vec![500, 20, 500, 511, 20], 1));
        let (found, requests) = sizes(Sizes::Unknown, &given);
        assert_eq!((found, requests.size_changes, requests.footprint_bytes), (vec![1; 5], 0, 2));
        assert!(!requests.has_sizes && requests.largest_bytes == 1);
    }

    #[test]
    fn where_a_part_of_the_input_has_no_sizes_all_objects_count_one() {
        let mut gather = Gather::new(Sizes::Within(0));
        gather.whole(1, 500, None);
        gather.set_sizes(Sizes::Unknown);
        gather.whole(2, 0, None);
        gather.set_sizes(Sizes::Within(0));
        gather.whole(1, 700, None);
        let requests = gather.finish();
        assert!(requests.list.iter().all(|request| (request.bytes, request.sent_bytes) == (1, 1)));
        assert_eq!((requests.has_sizes, requests.size_changes, requests.footprint_bytes), (false, 0, 2));
    }

    #[test]
    fn a_part_takes_the_room_of_its_object_and_sends_its_own_bytes() {
        let mut gather = Gather::new(Sizes::Within(0));
        gather.part(7, 3, None);
        gather.whole(7, 50, None);
        gather.part(7, 3, None);
        gather.uncachable(9, None);
        let requests = gather.finish();
        let found: Vec<_> = requests.list.iter().map(|r| (r.object, r.bytes, r.sent_bytes)).collect();
        assert_eq!(found, [(UNCACHABLE, 0, 3), (0, 50, 50), (0, 50, 3), (UNCACHABLE, 0, 9)]);
        assert_eq!((requests.uncachable, requests.objects, requests.requested_once()), (2, 1, 0));
    }

    #[test]
    fn times_count_from_the_first_request_and_disorder_is_counted() {
        let mut gather = Gather::new(Sizes::Unknown);
        for at_s in [100, 103, 101, 99, 103] {
            gather.whole(1, 9, Some(at_s));
        }
        let requests = gather.finish();
        let times: Vec<u32> = requests.list.iter().map(|request| request.at_s).collect();
        assert_eq!((times, requests.unordered, requests.lasts_s), (vec![0, 3, 1, 0, 3], 2, Some(3)));
    }
}
