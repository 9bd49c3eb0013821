//! Ratios of counts. Each is computed by one function, which the summary, metrics, requirements, charts and the live view
//! call, so that all of them mean the same by it.
//!
//! # Definitions
//!
//! *Basic* xact: a GET of type Basic. *Offered*: basic revisits of cachable objects over basic xacts that came due. *Measured*:
//! (hits + collapsed − those that the origin validated) over completed basic xacts. *Ideal*: the hits of an infinite cache with the
//! target's declared behaviour on the same completed basic xacts. Its model also processes all other requests, whole objects and
//! parts, and the targets of redirections. If the target collapses requests, an object is in the model's cache from when the first
//! request for it was sent; otherwise, from when the first robot that requested it saw the response begin (`shares-arriving`) or
//! end. This is the robots' view: the proxy may have it a little sooner (its response is still on the way) or later (it fetches all
//! of an object for a part of it). If a robot aborts, the proxy is assumed to complete the fetch and store the object; a body that
//! an origin cuts off, a refusal and an injected fault leave nothing in the cache.
//!
//! *Bytes* of hit ratios are of one kind: body bytes as they are sent, including any coding. Measured and ideal count the bytes that
//! robots received, for the same xacts. Offered counts the bytes that the origin would send, which is a pure function of workload,
//! seed, group, type and size (`load::coded::CodedSizes`): before the start, robots and origins code up to 64 objects (or 1 MB) of
//! each type that is sent coded, for each doubling of size, and apply the resulting ratio to all others of such a size; validations
//! that origins report are counted with the same sizes. Sums over some hundred requests are accurate within 0.5 %. This costs some tens of
//! milliseconds a type before the start, and then a table lookup; a workload without codings has no table.
//!
//! *Times* by class are times by outcome, of all xacts, basic or not: *hit*, *miss*, and *other* (collapsed, revalidated, unknown). A request
//! that was never sent or timed out is an *open wait* (`measurement::censored`): the headline figures (`all`) include it with the time that it
//! waited, and a figure is a lower bound (`at_least`, ≥) if counting open waits as infinite gives another value. A requirement is met only if
//! it is met for all values that the figure could have. `completed` excludes open waits.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counts::{OriginCounts, RobotCounts};
use crate::validations;

/// A part of a whole; none: there is no whole.
pub fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A hit ratio, 0 to 1, of basic xacts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HitRatio {
    /// Revisits of cachable objects: known from the stream alone.
    pub offered: Option<f64>,
    /// What an infinite cache with the target's declared behaviour would have hit of the requests sent.
    pub ideal: Option<f64>,
    /// What the target hit.
    pub measured: Option<f64>,
}

impl HitRatio {
    /// Document hit ratio. A hit that the origin says it validated is none.
    pub fn of_documents(robots: &RobotCounts, origins: &OriginCounts) -> Self {
        let hits = robots.hits + robots.collapsed - validations::hidden(robots, origins);
        Self {
            offered: ratio(robots.offered_hits, robots.due_basic),
            ideal: ratio(robots.ideal_hits, robots.ideal_basic),
            measured: ratio(hits, robots.basic),
        }
    }

    pub fn of_bytes(robots: &RobotCounts, origins: &OriginCounts) -> Self {
        let bytes = robots.hit_bytes + robots.collapsed_bytes - validations::hidden_bytes(robots, origins);
        Self {
            offered: ratio(robots.offered_hit_bytes, robots.due_basic_bytes),
            ideal: ratio(robots.ideal_hit_bytes, robots.ideal_basic_bytes),
            measured: ratio(bytes, robots.basic_bytes),
        }
    }

    /// The same with each number changed.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        let Self { offered, ideal, measured } = self;
        Self { offered: offered.map(&change), ideal: ideal.map(&change), measured: measured.map(&change) }
    }
}

/// 1 − at the origins ÷ at the robots; negative when the target sends more requests than it gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Offload {
    /// Of requests.
    pub requests: Option<f64>,
    /// Of body bytes.
    pub bytes: Option<f64>,
}

impl Offload {
    /// Offload of the origins.
    pub fn of(robots: &RobotCounts, origins: &OriginCounts) -> Self {
        let spared = |origin, client| ratio(origin, client).map(|share| 1.0 - share);
        Self {
            requests: spared(origins.requests, robots.sent),
            bytes: spared(origins.body_bytes_out, robots.body_bytes_in),
        }
    }

    /// The same with each number changed.
    #[must_use]
    pub fn map(self, change: impl Fn(f64) -> f64) -> Self {
        Self { requests: self.requests.map(&change), bytes: self.bytes.map(&change) }
    }
}

/// Where the responses of completed basic xacts came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    /// From the store.
    pub hit: u64,
    /// With another request's fetch.
    pub collapsed: u64,
    /// From the store, after the origin confirmed it.
    pub revalidated: u64,
    /// By the origin.
    pub miss: u64,
}

impl Outcomes {
    /// A hit that the origin says it validated counts as revalidated, whatever its response showed.
    pub fn of(robots: &RobotCounts, origins: &OriginCounts) -> Self {
        let hidden = validations::hidden(robots, origins);
        let from_hits = hidden.min(robots.hits);
        Self {
            hit: robots.hits - from_hits,
            collapsed: robots.collapsed - (hidden - from_hits),
            revalidated: robots.revalidated + hidden,
            miss: robots.misses,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_no_ratio() {
        let (robots, origins) = (RobotCounts::default(), OriginCounts::default());
        assert_eq!(HitRatio::of_documents(&robots, &origins), HitRatio::default());
        assert_eq!(HitRatio::of_bytes(&robots, &origins), HitRatio::default());
        assert_eq!(Offload::of(&robots, &origins), Offload::default());
    }

    #[test]
    fn hits_that_the_origin_validated_are_none() {
        let robots = RobotCounts { basic: 10, hits: 1, collapsed: 3, misses: 6, ..RobotCounts::default() };
        let origins = OriginCounts { validated_basic: 2, ..OriginCounts::default() };
        assert_eq!(HitRatio::of_documents(&robots, &origins).measured, Some(0.2));
        let outcomes = Outcomes { hit: 0, collapsed: 2, revalidated: 2, miss: 6 };
        assert_eq!(Outcomes::of(&robots, &origins), outcomes);
    }

    #[test]
    fn a_target_that_sends_more_requests_than_it_gets_has_negative_offload() {
        let robots = RobotCounts { sent: 100, ..RobotCounts::default() };
        let origins = OriginCounts { requests: 150, ..OriginCounts::default() };
        assert_eq!(Offload::of(&robots, &origins), Offload { requests: Some(-0.5), bytes: None });
    }
}
