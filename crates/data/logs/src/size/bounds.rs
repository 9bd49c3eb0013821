//! The intervals of requests, from which bounds on the hits of all caches follow (`assay_cache::policy::bounds`).
//!
//! An interval lies between two requests for one object with the same size. Where objects expire, it counts for the upper bound if any
//! response made until its begin is still fresh at its end, and for the lower bound if the cache without bounds has a hit at its end: what
//! another cache stored later expires no sooner, as an object's `Expires` never moves back. Where responses take time, they take room from their arrival
//! on: for the upper bound, an interval begins where the last response for its object has arrived.

use assay_cache::policy::bounds::{HitBound, ReuseInterval, lower_bound, upper_bound};

use crate::size::counter::{HitCounts, SimulationTally};
use crate::size::http::{self, Http, RequestSemantics};
use crate::size::requests::{Requests, TraceRequest, UNCACHABLE};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundSide {
    /// No cache hits more.
    Above,
    /// Some cache hits as much.
    Below,
}

/// The bound as figures of a cache of this capacity. Its hits and its bytes of hits need not be reached together.
pub fn bound(requests: &Requests, side: BoundSide, capacity: u64, warm_up: usize) -> SimulationTally {
    let (mut request_intervals, slots) = request_intervals(requests, side, capacity, warm_up);
    let rate = if requests.large.is_empty() { None } else { Some(requests.rate()) };
    let [drawn, large] = match side {
        BoundSide::Above => upper_bound(&mut request_intervals, slots, capacity, rate),
        BoundSide::Below => lower_bound(&mut request_intervals, slots, capacity, rate),
    };
    let counts = |HitBound { hits, hit_bytes }| HitCounts { hits, hit_bytes, ..HitCounts::default() };
    let mut parts = vec![counts(drawn), counts(large)];
    for (number, request) in requests.list.iter().enumerate().skip(warm_up) {
        if requests.is_counted(number) {
            let part = &mut parts[usize::from(requests.is_large(number))];
            part.requests += 1;
            part.bytes += request.sent_bytes;
        }
    }
    parts.truncate(if rate.is_some() { 2 } else { 1 });
    SimulationTally { parts, by: Vec::new() }
}

/// The last request that may have left an object stored.
#[derive(Debug, Clone, Copy)]
struct LastStored {
    slot: u32,
    bytes: u64,
    fresh_until_ms: u64,
    /// Arrival of the last response so far.
    arrives_ms: u64,
}

/// All intervals that end at a counted request, and how many slots there are: one for each request that a cache may serve.
fn request_intervals(
    requests: &Requests,
    side: BoundSide,
    capacity: u64,
    warm_up: usize,
) -> (Vec<ReuseInterval>, u64) {
    let http = requests.http.as_ref();
    let unbounded =
        http.filter(|_| side == BoundSide::Below).map(|http| http::hits_of_unbounded(requests, http));
    let mut last: Vec<Option<LastStored>> = vec![None; requests.objects];
    // What lies in a cache of a sample takes its room, but is as large as it is.
    let fits = |number: usize, request: &TraceRequest| match side {
        BoundSide::Above => requests.room_of(requests.size_of(number, request.bytes)) <= capacity,
        BoundSide::Below => request.bytes <= capacity,
    };
    let slot_times = http.filter(|_| side == BoundSide::Above).map(|http| slot_times(requests, http));
    // The slot after which a response takes room that was requested in one slot, for a request in another one.
    let from = |last: &LastStored, until: u32| {
        let arrived = slot_times
            .as_ref()
            .map_or(0, |slot_times| slot_times.partition_point(|at_ms| *at_ms < last.arrives_ms));
        last.slot.max(arrived.saturating_sub(1) as u32).min(until)
    };
    let (mut request_intervals, mut slot) = (Vec::new(), 0u32);
    for (number, request) in requests.list.iter().enumerate() {
        if request.object == UNCACHABLE {
            continue;
        }
        let before = last[request.object as usize];
        let at_ms = http.map_or(0, |http| http.semantics[number].at_ms(request));
        let is_possible = |last: &LastStored| {
            // A request that joins a fetch is served whether the response is fresh or not.
            let is_joined = http.is_some_and(|http| http.behaviour.collapses) && at_ms < last.arrives_ms;
            let may_be = at_ms < last.fresh_until_ms || is_joined;
            let is_fresh = unbounded.as_ref().map_or(may_be, |hits| hits[number]);
            last.bytes == request.bytes && fits(number, request) && is_fresh
        };
        if let Some(last) =
            before.filter(is_possible).filter(|_| number >= warm_up && requests.is_counted(number))
        {
            request_intervals.push(ReuseInterval {
                from: from(&last, slot),
                until: slot,
                bytes: request.bytes,
                sent_bytes: request.sent_bytes,
                is_large: requests.is_large(number),
            });
        }
        last[request.object as usize] = match http.map(|http| store_effect(http, number)) {
            Some(StoreEffect::Nothing) => None,
            Some(StoreEffect::Unchanged) => before,
            Some(StoreEffect::Stored) | None => {
                let own_ms = http.map_or(u64::MAX, |http| http.semantics[number].fresh_until_ms(at_ms));
                // Of all copies that a cache may have kept until now.
                let fresh_until_ms = before.map_or(0, |last| last.fresh_until_ms).max(own_ms);
                let own_ms = http.map_or(0, |http| http.arrives_ms(request, &http.semantics[number]));
                let arrives_ms = before.map_or(0, |last| last.arrives_ms).max(own_ms);
                Some(LastStored { slot, bytes: request.bytes, fresh_until_ms, arrives_ms })
            }
        };
        slot = slot.saturating_add(1);
    }
    (request_intervals, u64::from(slot))
}

/// By slot, the latest time until then.
fn slot_times(requests: &Requests, http: &Http) -> Vec<u64> {
    let mut latest_ms = 0;
    let numbered = requests.list.iter().zip(&http.semantics);
    let slots = numbered.filter(|(request, _)| request.object != UNCACHABLE);
    let time = |(request, semantics): (&TraceRequest, &RequestSemantics)| {
        latest_ms = semantics.at_ms(request).max(latest_ms);
        latest_ms
    };
    slots.map(time).collect()
}

/// Effect of a request on the stored object, in a cache that has room.
enum StoreEffect {
    Stored,
    Unchanged,
    Nothing,
}

fn store_effect(http: &Http, number: usize) -> StoreEffect {
    let kind = http.semantics[number].kind;
    match kind {
        assay_cache::ideal::RequestClass::Post if http.behaviour.post_invalidates => StoreEffect::Nothing,
        _ if http.may_store(kind) => StoreEffect::Stored,
        _ => StoreEffect::Unchanged,
    }
}
