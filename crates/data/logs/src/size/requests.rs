//! Requests as compact records, 24 bytes each, and what is known of all of them together.

use std::collections::HashMap;

use assay_base::random::mix;

use crate::size::group_by::{GroupBy, LabelCollector, RequestLabels};
use crate::size::http::{Http, RequestSemantics};
use crate::size::ids::Ids;
use crate::size::large::Large;
pub use crate::size::request::{TraceRequest, UNCACHABLE};
use crate::size::sample::{Sampled, Sampler, Sampling};

/// No object is larger than this (256 TB): what says so is damaged.
pub const LARGEST_BYTES: u64 = 1 << 48;
/// Sums of bytes stay below this: what objects take beside their bodies still fits into 64 bits.
const MAX_TOTAL_BYTES: u128 = 1 << 62;

/// All requests of an input, in its order.
#[derive(Debug, Default)]
pub struct Requests {
    /// All requests, cachable or not.
    pub list: Vec<TraceRequest>,
    /// Number of distinct objects.
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
    /// HTTP semantics of each request; none: all are plain GETs for objects that never expire, and all are counted.
    pub http: Option<Http>,
    /// Client of each request, for caches side by side; empty: a single client.
    pub clients: Vec<u32>,
    /// Labels that the figures are divided by; none: nobody asked.
    pub labels: Option<RequestLabels>,
    /// Sample that these requests form; none: they are all requests of the input.
    pub sampled: Option<Sampled>,
    /// By request of a sample, whether it is for a large object, all of which are in the sample; empty: none is.
    pub large: Vec<bool>,
}

impl Requests {
    /// True if sums of all bytes fit into 64 bits.
    pub(crate) fn can_be_summed(&self) -> bool {
        let sampled = self.sampled.as_ref().map_or(0, |sampled| sampled.all.bytes);
        let of = |request: &TraceRequest| match request.object {
            UNCACHABLE => u128::from(request.sent_bytes),
            _ => u128::from(request.bytes) + u128::from(request.sent_bytes),
        };
        u128::from(sampled) + self.list.iter().map(of).sum::<u128>() < MAX_TOTAL_BYTES
    }

    /// Requests for objects without a body.
    pub fn empty(&self) -> u64 {
        let is_empty = |request: &&TraceRequest| {
            request.object != UNCACHABLE && request.bytes == 0 && request.sent_bytes == 0
        };
        self.drawn_scaled(self.list.iter().filter(is_empty).count() as u64)
    }

    /// The request is for a large object of a sample.
    #[inline]
    pub fn is_large(&self, number: usize) -> bool {
        self.large.get(number).copied().unwrap_or(false)
    }

    /// All requests of the input.
    pub fn read(&self) -> u64 {
        self.sampled.as_ref().map_or(self.list.len() as u64, |sampled| sampled.read)
    }

    /// False for a request that acts on caches and is in no figure, such as a HEAD.
    #[inline]
    pub fn is_counted(&self, number: usize) -> bool {
        self.http.as_ref().is_none_or(|http| http.semantics[number].is_counted)
    }

    /// Requests that act on caches and are in no figure.
    pub fn uncounted(&self) -> u64 {
        let semantics = self.http.iter().flat_map(|http| &http.semantics).enumerate();
        let uncounted = semantics.filter(|(_, meaning)| !meaning.is_counted);
        uncounted.map(|(number, _)| self.weight(number)).sum::<f64>().round() as u64
    }

    /// In a sample, requests from this size on are for large objects.
    fn mark_large(&mut self, from_bytes: u64) {
        let is_large = |request: &TraceRequest| request.object != UNCACHABLE && request.bytes >= from_bytes;
        self.large = self.list.iter().map(is_large).collect();
        // An empty list says the same as one of nothing but `false`.
        if !self.large.contains(&true) {
            self.large = Vec::new();
        }
        let changed =
            size_changes_in(&self.list, self.objects).map(|number| self.weight(number)).sum::<f64>();
        self.size_changes = changed.round() as u64;
    }

    /// Makes every object, and every response, count 1: some part of the input has no sizes.
    fn count_objects(&mut self) {
        for request in &mut self.list {
            request.sent_bytes = 1;
            if request.object != UNCACHABLE {
                request.bytes = 1;
            }
        }
        if let Some(sampled) = &mut self.sampled {
            sampled.count_objects();
        }
        self.size_changes = 0;
        self.largest_bytes = u64::from(self.objects > 0);
    }
}

/// The numbers of the requests whose object had another size than at its request before.
fn size_changes_in(list: &[TraceRequest], objects: usize) -> impl Iterator<Item = usize> {
    let mut sizes = vec![None; objects];
    let is_changed = move |(_, request): &(usize, &TraceRequest)| {
        let last = sizes.get_mut(request.object as usize);
        last.and_then(|size| size.replace(request.bytes)).is_some_and(|size| size != request.bytes)
    };
    list.iter().enumerate().filter(is_changed).map(|(number, _)| number)
}

/// Meaning of the sizes of an input.
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
pub struct RequestCollector {
    requests: Requests,
    ids: Ids,
    /// Last size by object.
    known: Vec<u64>,
    /// The size before the last change, by the key of an object that has changed.
    previous_sizes: HashMap<u64, u64>,
    /// Changes back to that size.
    size_returns: u64,
    first_s: Option<i64>,
    previous_s: i64,
    last_s: i64,
    sizes: Sizes,
    sampler: Sampler,
    large_objects: Large,
    last: LastAdded,
    labelling: Option<LabelCollector>,
    has_clients: bool,
}

/// The request that was added last.
#[derive(Debug, Clone, Copy, Default)]
struct LastAdded {
    sent_bytes: u64,
    is_uncachable: bool,
    /// The request is in the list.
    is_kept: bool,
}

impl RequestCollector {
    pub fn new(sizes: Sizes, sampling: Sampling) -> Self {
        Self {
            requests: Requests::default(),
            ids: Ids::default(),
            known: Vec::new(),
            previous_sizes: HashMap::new(),
            size_returns: 0,
            first_s: None,
            previous_s: i64::MIN,
            last_s: i64::MIN,
            sizes,
            sampler: Sampler::new(sampling),
            large_objects: if sizes == Sizes::Unknown { Large::NONE } else { Large::default() },
            last: LastAdded::default(),
            labelling: None,
            has_clients: false,
        }
    }

    /// From now on every request has a client; called before the first request.
    pub fn set_clients(&mut self) {
        self.has_clients = true;
    }

    /// Says who made the request that was added last; nothing where requests have no clients.
    pub fn set_client(&mut self, client: u32) {
        if let Some(last) = self.requests.clients.last_mut().filter(|_| self.last.is_kept) {
            *last = client;
        }
    }

    /// From now on every request has a label; called before the first request.
    pub fn set_labels(&mut self, by: GroupBy) {
        self.labelling = Some(LabelCollector::new(by));
    }

    /// Labels the request that was added last; nothing where requests have no labels.
    pub fn set_label(&mut self, text: &[u8]) {
        if let Some(labelling) = self.labelling.as_mut().filter(|_| self.last.is_kept) {
            labelling.label(text);
        }
    }

    /// From now on every request has a meaning in HTTP; those before are plain. Nothing, if they have one already.
    pub fn set_http(&mut self, http: Http) {
        if self.requests.http.is_none() {
            let semantics = vec![RequestSemantics::PLAIN; self.requests.list.len()];
            self.requests.http = Some(Http { semantics, ..http });
        }
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
        if self.sizes == Sizes::Unknown {
            self.large_objects.from_bytes = u64::MAX;
        }
    }

    /// Adds a request for the whole object with this key; time in seconds of any epoch.
    /// False: there are 2^32 − 1 objects already, and the request was left out.
    pub fn add_whole(&mut self, key: u64, bytes: u64, at_s: Option<i64>) -> bool {
        self.add_known(key, bytes, bytes, at_s)
    }

    /// Adds a request that is served from the whole object with this key and size, and whose response has so many bytes. False as for
    /// [`RequestCollector::add_whole`].
    pub fn add_known(&mut self, key: u64, bytes: u64, sent_bytes: u64, at_s: Option<i64>) -> bool {
        let is_drawn = self.sampler.takes(key);
        if !is_drawn && !self.large_objects.takes(bytes) {
            self.requests.largest_bytes = self.requests.largest_bytes.max(bytes);
            self.skip(sent_bytes, at_s, false);
            return true;
        }
        let Some(object) = self.ids.number(key).filter(|object| *object != UNCACHABLE) else { return false };
        let known = self.known.get(object as usize).copied();
        let bytes = match (self.sizes, known) {
            (Sizes::Within(tolerance), Some(known)) if known.abs_diff(bytes) <= tolerance => known,
            _ => bytes,
        };
        match known {
            Some(known) if known != bytes => {
                self.requests.size_changes += 1;
                self.size_returns += u64::from(self.previous_sizes.insert(key, known) == Some(bytes));
            }
            Some(_) => {}
            None => {
                self.known.push(bytes);
                self.large_objects.taken.objects += usize::from(!is_drawn);
            }
        }
        self.known[object as usize] = bytes;
        self.large_objects.taken.requests += usize::from(!is_drawn);
        self.requests.largest_bytes = self.requests.largest_bytes.max(bytes);
        self.push(object, bytes, sent_bytes, at_s);
        true
    }

    /// Changes of size back to the size before the last change, and all changes.
    pub fn size_returns(&self) -> (u64, u64) {
        (self.size_returns, self.requests.size_changes)
    }

    /// Adds a request for the whole object with what HTTP says of it. False as for [`RequestCollector::add_whole`].
    pub fn add_with_semantics(
        &mut self,
        key: u64,
        bytes: u64,
        at_s: Option<i64>,
        meaning: RequestSemantics,
    ) -> bool {
        let was_added = self.add_whole(key, bytes, at_s);
        if was_added {
            self.set_semantics(meaning);
        }
        was_added
    }

    /// Says what HTTP says of the request that was added last; nothing where requests have no meanings.
    pub fn set_semantics(&mut self, meaning: RequestSemantics) {
        let Some(http) = &mut self.requests.http else { return };
        if !meaning.is_counted {
            self.sampler.uncount(self.last.sent_bytes, self.last.is_uncachable);
        }
        if let Some(last) = http.semantics.last_mut().filter(|_| self.last.is_kept) {
            *last = meaning;
        }
    }

    /// Adds a request that is served from the whole object, although its response is not all of it. If the object was not
    /// requested before, its size is not known, and no cache can have it.
    pub fn add_partial(&mut self, key: u64, sent_bytes: u64, at_s: Option<i64>) {
        let is_drawn = self.sampler.takes(key);
        if !is_drawn && (self.large_objects.taken.objects == 0 || self.ids.find(key).is_none()) {
            return self.skip(sent_bytes, at_s, false);
        }
        match self.ids.find(key) {
            Some(object) => {
                self.large_objects.taken.requests += usize::from(!is_drawn);
                self.push(object, self.known[object as usize], sent_bytes, at_s);
            }
            // It is drawn by its key, for the sample to have its share of such requests.
            None if self.sampler.is_on() || self.labelling.is_some() => {
                self.requests.uncachable += 1;
                self.push(UNCACHABLE, key, sent_bytes, at_s);
            }
            None => self.add_uncachable(sent_bytes, at_s),
        }
    }

    /// Adds a request that no cache may serve. In a sample it is only counted; with labels it is drawn by itself, so that the labels
    /// of the sample are those of all requests.
    pub fn add_uncachable(&mut self, sent_bytes: u64, at_s: Option<i64>) {
        self.requests.uncachable += 1;
        if self.labelling.is_none() {
            if self.sampler.is_on() {
                self.skip(sent_bytes, at_s, true);
            } else {
                self.push(UNCACHABLE, 0, sent_bytes, at_s);
            }
            return;
        }
        // There is no object to draw it by: its number is as good as a key.
        let key = mix(self.sampler.read());
        if self.sampler.takes(key) {
            self.push(UNCACHABLE, key, sent_bytes, at_s);
        } else {
            self.skip(sent_bytes, at_s, false);
        }
    }

    pub fn finish(mut self) -> Requests {
        self.requests.has_sizes = self.sizes != Sizes::Unknown;
        if !self.requests.has_sizes && self.large_objects.taken.objects > 0 {
            self.shrink_sample(true);
        }
        self.requests.objects = self.ids.len();
        self.requests.sampled = self.sampler.finish(&self.ids);
        self.requests.labels = self.labelling.map(LabelCollector::finish);
        if !self.requests.has_sizes {
            self.requests.count_objects();
        }
        if self.requests.sampled.is_some() && self.requests.has_sizes {
            self.requests.mark_large(self.large_objects.from_bytes);
        }
        self.requests.footprint_bytes = self.requests.held_bytes();
        self.requests.lasts_s = self.first_s.map(|first_s| self.last_s.abs_diff(first_s));
        self.requests
    }

    /// Takes note of a request that is not in the sample.
    fn skip(&mut self, sent_bytes: u64, at_s: Option<i64>, is_uncachable: bool) {
        at_s.map(|at_s| self.relative_s(at_s));
        self.sampler.count(sent_bytes, is_uncachable, self.requests.list.len());
        self.last = LastAdded { sent_bytes, is_uncachable, is_kept: false };
    }

    fn push(&mut self, object: u32, bytes: u64, sent_bytes: u64, at_s: Option<i64>) {
        let at_s = at_s.map_or(0, |at_s| self.relative_s(at_s));
        // A request that is in the sample for its key is not counted beside it.
        let is_uncachable = object == UNCACHABLE && !self.sampler.is_on() && self.labelling.is_none();
        self.sampler.count(sent_bytes, is_uncachable, self.requests.list.len());
        self.last = LastAdded { sent_bytes, is_uncachable, is_kept: true };
        self.requests.list.push(TraceRequest { bytes, sent_bytes, object, at_s });
        if let Some(http) = &mut self.requests.http {
            http.semantics.push(RequestSemantics::PLAIN);
        }
        if let Some(labelling) = &mut self.labelling {
            labelling.of.push(0);
        }
        if self.has_clients {
            self.requests.clients.push(0);
        }
        let was_on = self.sampler.is_on() || self.labelling.is_some();
        while self.sampler.is_lowered(self.requests.list.len(), self.ids.len()) {
            self.shrink_sample(was_on);
        }
        if self.large_objects.is_excess(self.ids.len(), self.requests.list.len()) {
            self.shrink_sample(was_on);
        }
    }

    /// Removes what is no longer in the sample. The first time, what no cache may serve goes too, because it has been counted.
    fn shrink_sample(&mut self, has_keys: bool) {
        let keys = self.ids.keys();
        let is_drawn: Vec<bool> = keys.iter().map(|key| self.sampler.takes(*key)).collect();
        self.large_objects.raise(&self.requests.list, &self.known, &is_drawn);
        let mut numbers = vec![UNCACHABLE; keys.len()];
        let (mut ids, mut known) = (Ids::default(), Vec::new());
        for (object, key) in keys.iter().enumerate() {
            if !is_drawn[object] && !self.large_objects.takes(self.known[object]) {
                continue;
            }
            if let Some(number) = ids.number(*key) {
                numbers[object] = number;
                known.push(self.known[object]);
            }
        }
        (self.ids, self.known) = (ids, known);
        // Number of kept requests before each index.
        let mut kept_before = Vec::with_capacity(self.requests.list.len() + 1);
        kept_before.push(0);
        let mut to = 0;
        for from in 0..self.requests.list.len() {
            let request = &mut self.requests.list[from];
            let is_kept = match numbers.get(request.object as usize) {
                Some(&UNCACHABLE) => false,
                Some(number) => {
                    let is_kept =
                        is_drawn[request.object as usize] || self.large_objects.takes(request.bytes);
                    request.object = *number;
                    is_kept
                }
                None => has_keys && self.sampler.takes(request.bytes),
            };
            if is_kept {
                self.requests.list.swap(to, from);
                if let Some(http) = &mut self.requests.http {
                    http.semantics.swap(to, from);
                }
                if let Some(labelling) = &mut self.labelling {
                    labelling.of.swap(to, from);
                }
                if self.has_clients {
                    self.requests.clients.swap(to, from);
                }
                to += 1;
            }
            kept_before.push(to as u32);
        }
        self.last.is_kept =
            kept_before.len() < 2 || kept_before[kept_before.len() - 2] < kept_before[kept_before.len() - 1];
        self.requests.list.truncate(to);
        if let Some(http) = &mut self.requests.http {
            http.semantics.truncate(to);
        }
        if let Some(labelling) = &mut self.labelling {
            labelling.of.truncate(to);
        }
        self.requests.clients.truncate(to);
        self.sampler.renumber(|index| kept_before[index] as usize);
        self.requests.size_changes = size_changes_in(&self.requests.list, self.ids.len()).count() as u64;
    }

    /// Seconds since the first request; those before it count as simultaneous with it.
    fn relative_s(&mut self, at_s: i64) -> u32 {
        let first_s = *self.first_s.get_or_insert(at_s);
        self.requests.unordered += u64::from(at_s < self.previous_s);
        (self.previous_s, self.last_s) = (at_s, self.last_s.max(at_s));
        u32::try_from(at_s.saturating_sub(first_s).max(0)).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(sizes: Sizes, given: &[(u64, u64)]) -> (Vec<u64>, Requests) {
        let mut collector = RequestCollector::new(sizes, Sampling::default());
        for (key, bytes) in given {
            assert!(collector.add_whole(*key, *bytes, None));
        }
        let requests = collector.finish();
        (requests.list.iter().map(|request| request.bytes).collect(), requests)
    }

    #[test]
    fn a_change_of_size_counts_unless_it_is_within_the_tolerance() {
        let given = [(7, 500), (8, 20), (7, 510), (7, 511), (8, 20)];
        let (found, requests) = sizes(Sizes::Within(0), &given);
        assert_eq!((found, requests.size_changes), (vec![500, 20, 510, 511, 20], 2));
        let mut collector = RequestCollector::new(Sizes::Within(0), Sampling::default());
        [5, 9, 5, 9, 9, 7, 5].iter().for_each(|bytes| assert!(collector.add_whole(1, *bytes, None)));
        assert_eq!(collector.size_returns(), (2, 5));
        assert_eq!((requests.objects, requests.footprint_bytes, requests.largest_bytes), (2, 531, 511));
        let (found, requests) = sizes(Sizes::Within(10), &given);
        assert_eq!((found, requests.size_changes), (vec![500, 20, 500, 511, 20], 1));
        let (found, requests) = sizes(Sizes::Unknown, &given);
        assert_eq!((found, requests.size_changes, requests.footprint_bytes), (vec![1; 5], 0, 2));
        assert!(!requests.has_sizes && requests.largest_bytes == 1);
    }

    #[test]
    fn where_a_part_of_the_input_has_no_sizes_all_objects_count_one() {
        let mut collector = RequestCollector::new(Sizes::Within(0), Sampling::default());
        collector.add_whole(1, 500, None);
        collector.set_sizes(Sizes::Unknown);
        collector.add_whole(2, 0, None);
        collector.set_sizes(Sizes::Within(0));
        collector.add_whole(1, 700, None);
        let requests = collector.finish();
        assert!(requests.list.iter().all(|request| (request.bytes, request.sent_bytes) == (1, 1)));
        assert_eq!((requests.has_sizes, requests.size_changes, requests.footprint_bytes), (false, 0, 2));
    }

    #[test]
    fn a_part_takes_the_room_of_its_object_and_sends_its_own_bytes() {
        let mut collector = RequestCollector::new(Sizes::Within(0), Sampling::default());
        collector.add_partial(7, 3, None);
        collector.add_whole(7, 50, None);
        collector.add_partial(7, 3, None);
        collector.add_uncachable(9, None);
        let requests = collector.finish();
        let found: Vec<_> = requests.list.iter().map(|r| (r.object, r.bytes, r.sent_bytes)).collect();
        assert_eq!(found, [(UNCACHABLE, 0, 3), (0, 50, 50), (0, 50, 3), (UNCACHABLE, 0, 9)]);
        assert_eq!((requests.uncachable, requests.objects, requests.requested_once()), (2, 1, (0, 0)));
    }

    #[test]
    fn times_count_from_the_first_request_and_disorder_is_counted() {
        let mut collector = RequestCollector::new(Sizes::Unknown, Sampling::default());
        for at_s in [100, 103, 101, 99, 103] {
            collector.add_whole(1, 9, Some(at_s));
        }
        let requests = collector.finish();
        let times: Vec<u32> = requests.list.iter().map(|request| request.at_s).collect();
        assert_eq!((times, requests.unordered, requests.lasts_s), (vec![0, 3, 1, 0, 3], 2, Some(3)));
    }
}
