//! Ratios of counts. Each is computed by one function, which the summary, metrics, requirements, charts and the live view
//! call, so that all of them mean the same by it.

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

    /// Byte hit ratio.
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
    /// What the origins were spared.
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
