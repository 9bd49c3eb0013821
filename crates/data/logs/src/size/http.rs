//! What HTTP makes of requests: what each means to a cache, how long its response is fresh, and what a cache of one policy and
//! one size makes of all of them.
//!
//! A copy that has expired is validated: if the object was not modified since the copy was made, and shows when it was modified,
//! the origin confirms the copy (*validated*), which is no hit but spares the body; otherwise the object is fetched and stored
//! anew. Where RFC 9111 leaves a cache a choice, [`CacheBehaviour`] decides.
//!
//! Where responses take time, a cache makes room for one when it arrives ([`arrivals`](crate::size::arrivals)): before that it does not know how large it
//! is. A policy that knows the future is told of requests, not of arrivals, and makes room at the request ([`AllocationTime`]).

use assay_cache::behaviour::CacheBehaviour;
use assay_cache::ideal::RequestClass as CacheRequest;
use assay_cache::policy::queues::Fifo;
use assay_cache::policy::{Admission, EvictionPolicy, LookupResult, Store};

use crate::size::arrivals::Arrivals;
use crate::size::counter::{Counter, OutcomeFlags, SimulationRules, SimulationTally};
use crate::size::requests::{Requests, TraceRequest, UNCACHABLE};

/// The lifetime of a response that does not say when it expires.
pub const FOREVER_S: u32 = u32::MAX;
/// The version of an object that does not show when it was modified: no copy of it can be confirmed.
pub const NO_VALIDATOR: u32 = u32::MAX;

/// A response takes as long as all do ([`Http::response_ms`]).
pub const AS_ALL_MS: u32 = u32::MAX;

/// Semantics of a request for a cache, and of a response made at its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestSemantics {
    /// Freshness lifetime of the response, in whole seconds, or [`FOREVER_S`].
    pub life_s: u32,
    /// Version of the object, or [`NO_VALIDATOR`].
    pub version: u32,
    /// Response time of the origin, or [`AS_ALL_MS`].
    pub takes_ms: u32,
    /// Milliseconds of the request's time, beside its whole seconds.
    pub ms: u16,
    pub kind: CacheRequest,
    /// The request is in the figures.
    pub is_counted: bool,
}

impl RequestSemantics {
    /// A plain GET for an object that never expires.
    pub const PLAIN: Self = Self {
        life_s: FOREVER_S,
        version: 0,
        takes_ms: AS_ALL_MS,
        ms: 0,
        kind: CacheRequest::Get,
        is_counted: true,
    };

    pub(crate) fn at_ms(&self, request: &TraceRequest) -> u64 {
        u64::from(request.at_s) * 1000 + u64::from(self.ms)
    }

    pub(crate) fn fresh_until_ms(&self, at_ms: u64) -> u64 {
        if self.life_s == FOREVER_S { u64::MAX } else { at_ms + u64::from(self.life_s) * 1000 }
    }
}

/// HTTP semantics of all requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Http {
    /// A meaning for each request, in their order.
    pub semantics: Vec<RequestSemantics>,
    /// Behaviour where RFC 9111 leaves caches a choice.
    pub behaviour: CacheBehaviour,
    /// Response time of the origin for requests without their own. Until a response has arrived, a cache that
    /// collapses requests lets others for its object wait, and serves them from it; in others they are misses.
    pub response_ms: u64,
}

impl Http {
    /// No requests yet; responses are there at once.
    pub fn new(behaviour: CacheBehaviour) -> Self {
        Self { semantics: Vec::new(), behaviour, response_ms: 0 }
    }

    /// True if a request of this kind stores the object where it is not stored, and else requests it, as a GET does.
    pub(crate) fn acts_as_get(&self, kind: CacheRequest) -> bool {
        let behaviour = &self.behaviour;
        match kind {
            CacheRequest::Get | CacheRequest::ConditionalChanged => true,
            CacheRequest::ConditionalUnchanged => behaviour.conditional_fills,
            CacheRequest::Reload => behaviour.reload_fills,
            CacheRequest::Range => behaviour.range_fills,
            CacheRequest::Head => behaviour.head_fills,
            CacheRequest::Post => false,
        }
    }

    /// Arrival of a response from the origin.
    pub(crate) fn arrives_ms(&self, request: &TraceRequest, semantics: &RequestSemantics) -> u64 {
        let takes_ms = match semantics.takes_ms {
            AS_ALL_MS => self.response_ms,
            takes_ms => u64::from(takes_ms),
        };
        semantics.at_ms(request).saturating_add(takes_ms)
    }

    /// True if every response is there at once.
    fn is_immediate(&self) -> bool {
        self.response_ms == 0
            && self.semantics.iter().all(|semantics| matches!(semantics.takes_ms, 0 | AS_ALL_MS))
    }

    /// True if a request of this kind may leave a response stored, or make a stored one fresh again.
    pub(crate) fn may_store(&self, kind: CacheRequest) -> bool {
        kind == CacheRequest::ConditionalUnchanged || self.acts_as_get(kind)
    }
}

/// Time at which a cache allocates room for a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllocationTime {
    Request,
    Arrival,
}

/// A copy, stored or on its way.
#[derive(Debug, Clone, Copy, Default)]
struct StoredCopy {
    fresh_until_ms: u64,
    /// Arrival, from which on other requests find the copy.
    arrives_ms: u64,
    bytes: u64,
    version: u32,
    /// The arrival that it comes with; 0: it is not on its way.
    arrival: u32,
}

/// Result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LookupOutcome {
    Hit,
    /// The response to another request for the object is on its way: a hit of a cache that collapses requests, else a miss.
    Collapsible,
    Validated,
    Missed,
}

/// Policy and room of a simulated cache.
pub(crate) struct CacheSpec<O> {
    pub(crate) policy: O,
    pub(crate) capacity: u64,
    pub(crate) allocation: AllocationTime,
}

/// A cache that obeys lifetimes.
struct SimulatedCache<'a, O> {
    http: &'a Http,
    store: Store<O>,
    capacity: u64,
    allocation: AllocationTime,
    copies: Vec<StoredCopy>,
    arrivals: Arrivals,
    /// Requests that found a copy that had expired.
    stale: u64,
}

/// Plays all requests through a cache; `before` tells its policy of the coming request.
pub(crate) fn run<O: EvictionPolicy>(
    requests: &Requests,
    http: &Http,
    cache: CacheSpec<O>,
    rules: SimulationRules,
    before: impl FnMut(&mut O, usize),
) -> SimulationTally {
    simulate(requests, http, cache, rules, before).0
}

/// Figures of a cache without bounds.
pub(crate) fn infinite(requests: &Requests, http: &Http, rules: SimulationRules) -> SimulationTally {
    unbounded(requests, http, rules).0
}

/// True if LRU caches of all sizes hold the beginning of one list, as far as HTTP decides: nothing that is stored ever expires
/// or is dropped, and whatever is requested is stored. A smaller cache's copies are never older than those of one without bounds.
pub fn keeps_one_list(requests: &Requests) -> bool {
    let Some(http) = &requests.http else { return true };
    http.is_immediate()
        && http.semantics.iter().all(|semantics| http.acts_as_get(semantics.kind))
        && unbounded(requests, http, SimulationRules::default()).1 == 0
}

/// Hits of a cache without bounds, by request.
pub(crate) fn hits_of_unbounded(requests: &Requests, http: &Http) -> Vec<bool> {
    let mut hits = Vec::with_capacity(requests.list.len());
    let cache = without_bounds(requests);
    replay(requests, http, cache, Admission::All, |_, _| {}, |_, outcome| hits.push(is_hit(http, outcome)));
    hits
}

fn without_bounds(requests: &Requests) -> CacheSpec<Fifo> {
    let policy = Fifo::new(requests.objects);
    CacheSpec { policy, capacity: u64::MAX - 1, allocation: AllocationTime::Arrival }
}

fn is_hit(http: &Http, outcome: LookupOutcome) -> bool {
    outcome == LookupOutcome::Hit || outcome == LookupOutcome::Collapsible && http.behaviour.collapses
}

fn unbounded(requests: &Requests, http: &Http, rules: SimulationRules) -> (SimulationTally, u64) {
    let cache = without_bounds(requests);
    simulate(requests, http, cache, SimulationRules { admission: Admission::All, ..rules }, |_, _| {})
}

fn simulate<O: EvictionPolicy>(
    requests: &Requests,
    http: &Http,
    cache: CacheSpec<O>,
    rules: SimulationRules,
    before: impl FnMut(&mut O, usize),
) -> (SimulationTally, u64) {
    let mut counter = Counter::new(requests, rules);
    let stale = replay(requests, http, cache, rules.admission, before, |number, outcome| {
        counter.enter(number);
        if number >= rules.warm_up && http.semantics[number].is_counted {
            let request = &requests.list[number];
            let flags = OutcomeFlags {
                is_validated: outcome == LookupOutcome::Validated,
                is_collapsible: outcome == LookupOutcome::Collapsible,
            };
            counter.count(number, request, is_hit(http, outcome), flags);
        }
    });
    (counter.finish(), stale)
}

/// Plays all requests through a cache; how many of them found a copy that had expired.
fn replay<O: EvictionPolicy>(
    requests: &Requests,
    http: &Http,
    CacheSpec { policy, capacity, allocation }: CacheSpec<O>,
    admission: Admission,
    mut before: impl FnMut(&mut O, usize),
    mut after: impl FnMut(usize, LookupOutcome),
) -> u64 {
    let store = Store::new(policy, capacity, requests.objects).admitting(admission);
    let copies = vec![StoredCopy::default(); requests.objects];
    let mut cache =
        SimulatedCache { http, store, capacity, allocation, copies, arrivals: Arrivals::default(), stale: 0 };
    for (number, (request, semantics)) in requests.list.iter().zip(&http.semantics).enumerate() {
        cache.arrive(semantics.at_ms(request));
        let outcome = if request.object == UNCACHABLE {
            LookupOutcome::Missed
        } else {
            before(cache.store.order_mut(), number);
            cache.request(request, semantics)
        };
        after(number, outcome);
    }
    cache.stale
}

impl<O: EvictionPolicy> SimulatedCache<'_, O> {
    /// Stores what has arrived by this time.
    fn arrive(&mut self, at_ms: u64) {
        while let Some(arrival) = self.arrivals.next_until(at_ms) {
            let copy = self.copies[arrival.object as usize];
            // Another one may have come in its place, or the object was dropped.
            if copy.arrival == arrival.number {
                self.store_copy(arrival.object, copy);
            }
        }
    }

    fn request(&mut self, request: &TraceRequest, semantics: &RequestSemantics) -> LookupOutcome {
        let (object, bytes, at_ms) = (request.object, request.bytes, semantics.at_ms(request));
        let copy = self.copies[object as usize];
        let is_coming = copy.arrival != 0 && copy.bytes == bytes;
        // A copy of another size is of another version of the object: it is not used.
        let is_stored = copy.arrival == 0 && self.store.holds(object, bytes);
        match semantics.kind {
            CacheRequest::Post => {
                if self.http.behaviour.post_invalidates {
                    self.store.remove(object);
                    self.copies[object as usize].arrival = 0;
                }
                return LookupOutcome::Missed;
            }
            CacheRequest::Reload => {
                if self.http.behaviour.reload_fills {
                    self.fetch(request, semantics, at_ms);
                }
                return LookupOutcome::Missed;
            }
            // Whether a request that is collapsed counts as a hit is decided by `is_hit`.
            _ if is_coming => return LookupOutcome::Collapsible,
            // Room was made at the request, so the copy is in the store before its response is.
            _ if is_stored && at_ms < copy.arrives_ms => {
                if self.http.behaviour.collapses {
                    self.store.request(object, bytes);
                }
                return LookupOutcome::Collapsible;
            }
            _ if is_stored && at_ms < copy.fresh_until_ms => {
                self.store.request(object, bytes);
                return LookupOutcome::Hit;
            }
            _ => {}
        }
        self.stale += u64::from(is_stored);
        // A stored copy has expired here: a fresh one was a hit above.
        let is_current = is_stored && copy.version == semantics.version && semantics.version != NO_VALIDATOR;
        let is_validation = semantics.kind == CacheRequest::ConditionalUnchanged && is_stored;
        if !self.http.acts_as_get(semantics.kind) && !is_validation {
            return LookupOutcome::Missed;
        }
        if is_current {
            self.store.request(object, bytes);
            self.copies[object as usize].fresh_until_ms = semantics.fresh_until_ms(at_ms);
            return LookupOutcome::Validated;
        }
        self.fetch(request, semantics, at_ms);
        LookupOutcome::Missed
    }

    /// Stores a response that is made now, as soon as there is to be room for it.
    fn fetch(&mut self, request: &TraceRequest, semantics: &RequestSemantics, at_ms: u64) {
        let mut copy = StoredCopy {
            fresh_until_ms: semantics.fresh_until_ms(at_ms),
            arrives_ms: self.http.arrives_ms(request, semantics),
            bytes: request.bytes,
            version: semantics.version,
            arrival: 0,
        };
        // A response that is larger than the cache is refused at once, and drops what is stored of its object.
        let waits = self.allocation == AllocationTime::Arrival && copy.arrives_ms > at_ms;
        if waits && request.bytes <= self.capacity {
            copy.arrival = self.arrivals.send(copy.arrives_ms, 0, request.object, request.bytes);
            self.copies[request.object as usize] = copy;
        } else {
            self.store_copy(request.object, copy);
        }
    }

    /// Makes room for a response and stores it; what is stored of its object goes first.
    fn store_copy(&mut self, object: u32, copy: StoredCopy) {
        self.store.remove(object);
        self.copies[object as usize].arrival = 0;
        if self.store.request(object, copy.bytes) == LookupResult::Stored {
            self.copies[object as usize] = StoredCopy { arrival: 0, ..copy };
        }
    }
}

/// Behaviour of the built-in proxy and of most caches: requests that find nothing make the cache fetch and store the
/// whole object.
pub const USUAL: CacheBehaviour =
    CacheBehaviour { conditional_fills: true, range_fills: true, ..CacheBehaviour::PLAIN };

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
