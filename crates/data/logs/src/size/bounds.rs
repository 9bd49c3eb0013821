//! The intervals of requests, from which bounds on the hits of all caches follow (`assay_cache::policy::bounds`).
//!
//! An interval lies between two requests for one object with the same size. Where objects expire, it counts for the upper bound if any
//! response made until its begin is still fresh at its end, and for the lower bound if the cache without bounds has a hit at its end: what
//! another cache stored later expires no sooner, as an object's `Expires` never moves back. Where responses take time, they take room from their arrival
//! on: for the upper bound, an interval begins where the last response for its object has arrived.

use assay_cache::policy::bounds::{HitBound, ReuseInterval, lower_bound, upper_bound};

use crate::size::http::{self, Http, Meaning};
use crate::size::requests::{Request, Requests, UNCACHABLE};
use crate::size::tally::{Counts, Tally};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// No cache hits more.
    Above,
    /// Some cache hits as much.
    Below,
}

/// The bound as figures of a cache of this capacity. Its hits and its bytes of hits need not be reached together.
pub fn bound(requests: &Requests, side: Side, capacity: u64, warm_up: usize) -> Tally {
    let (mut intervals, slots) = intervals(requests, side, capacity, warm_up);
    let rate = if requests.large.is_empty() { None } else { Some(requests.rate()) };
    let [drawn, large] = match side {
        Side::Above => upper_bound(&mut intervals, slots, capacity, rate),
        Side::Below => lower_bound(&mut intervals, slots, capacity, rate),
    };
    let counts = |HitBound { hits, hit_bytes }| Counts { hits, hit_bytes, ..Counts::default() };
    let mut parts = vec![counts(drawn), counts(large)];
    for (number, request) in requests.list.iter().enumerate().skip(warm_up) {
        if requests.is_counted(number) {
            let part = &mut parts[usize::from(requests.is_large(number))];
            part.requests += 1;
            part.bytes += request.sent_bytes;
        }
    }
    parts.truncate(if rate.is_some() { 2 } else { 1 });
    Tally { parts, by: Vec::new() }
}

/// The last request that may have left an object stored.
#[derive(Debug, Clone, Copy)]
struct Last {
    slot: u32,
    bytes: u64,
    fresh_until_ms: u64,
    /// When the last of all responses until now has arrived.
    arrives_ms: u64,
}

/// All intervals that end at a counted request, and how many slots there are: one for each request that a cache may serve.
fn intervals(requests: &Requests, side: Side, capacity: u64, warm_up: usize) -> (Vec<ReuseInterval>, u64) {
    let http = requests.http.as_ref();
    let unbounded = http.filter(|_| side == Side::Below).map(|http| http::hits_of_unbounded(requests, http));
    let mut last: Vec<Option<Last>> = vec![None; requests.objects];
    // What lies in a cache of a sample takes its room, but is as large as it is.
    let fits = |number: usize, request: &Request| match side {
        Side::Above => requests.room_of(requests.size_of(number, request.bytes)) <= capacity,
        Side::Below => request.bytes <= capacity,
    };
    let times = http.filter(|_| side == Side::Above).map(|http| times(requests, http));
    // The slot after which a response takes room that was requested in one slot, for a request in another one.
    let from = |last: &Last, until: u32| {
        let arrived =
            times.as_ref().map_or(0, |times| times.partition_point(|at_ms| *at_ms < last.arrives_ms));
        last.slot.max(arrived.saturating_sub(1) as u32).min(until)
    };
    let (mut intervals, mut slot) = (Vec::new(), 0u32);
    for (number, request) in requests.list.iter().enumerate() {
        if request.object == UNCACHABLE {
            continue;
        }
        let before = last[request.object as usize];
        let at_ms = http.map_or(0, |http| http.meanings[number].at_ms(request));
        let is_possible = |last: &Last| {
            // A request that joins a fetch is served whether the response is fresh or not.
            let is_joined = http.is_some_and(|http| http.behaviour.collapses) && at_ms < last.arrives_ms;
            let may_be = at_ms < last.fresh_until_ms || is_joined;
            let is_fresh = unbounded.as_ref().map_or(may_be, |hits| hits[number]);
            last.bytes == request.bytes && fits(number, request) && is_fresh
        };
        if let Some(last) =
            before.filter(is_possible).filter(|_| number >= warm_up && requests.is_counted(number))
        {
            intervals.push(ReuseInterval {
                from: from(&last, slot),
                until: slot,
                bytes: request.bytes,
                sent_bytes: request.sent_bytes,
                is_large: requests.is_large(number),
            });
        }
        last[request.object as usize] = match http.map(|http| leaves(http, number)) {
            Some(Left::Nothing) => None,
            Some(Left::Unchanged) => before,
            Some(Left::Stored) | None => {
                let own_ms = http.map_or(u64::MAX, |http| http.meanings[number].fresh_until_ms(at_ms));
                // Of all copies that a cache may have kept until now.
                let fresh_until_ms = before.map_or(0, |last| last.fresh_until_ms).max(own_ms);
                let own_ms = http.map_or(0, |http| http.arrives_ms(request, &http.meanings[number]));
                let arrives_ms = before.map_or(0, |last| last.arrives_ms).max(own_ms);
                Some(Last { slot, bytes: request.bytes, fresh_until_ms, arrives_ms })
            }
        };
        slot = slot.saturating_add(1);
    }
    (intervals, u64::from(slot))
}

/// By slot, the latest time until then.
fn times(requests: &Requests, http: &Http) -> Vec<u64> {
    let mut latest_ms = 0;
    let numbered = requests.list.iter().zip(&http.meanings);
    let slots = numbered.filter(|(request, _)| request.object != UNCACHABLE);
    let time = |(request, meaning): (&Request, &Meaning)| {
        latest_ms = meaning.at_ms(request).max(latest_ms);
        latest_ms
    };
    slots.map(time).collect()
}

/// What a request leaves of its object in a cache that has room.
enum Left {
    Stored,
    Unchanged,
    Nothing,
}

fn leaves(http: &Http, number: usize) -> Left {
    let kind = http.meanings[number].kind;
    match kind {
        assay_cache::ideal::RequestClass::Post if http.behaviour.post_invalidates => Left::Nothing,
        _ if http.may_store(kind) => Left::Stored,
        _ => Left::Unchanged,
    }
}
