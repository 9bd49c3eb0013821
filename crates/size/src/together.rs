//! Caches that work together, as the document shows them: what they hit, who served it, and what cooperation gains.

use schemars::JsonSchema;
use serde::Serialize;

use crate::cooperate::{Hierarchy, Served, together};
use crate::document::{Figures, Points, Unit};
use crate::requests::Requests;
use crate::simulate::Counts;
use crate::spread::{FEWEST_IN_STRETCH, STRETCHES, Source};

/// What caches that work together make of the requests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Together {
    /// What the hierarchy is called.
    pub name: String,
    /// All requests of clients, whichever cache served them.
    pub figures: Figures,
    /// Requests that the cache which they entered served itself, of 1.
    pub own_dhr: Option<f64>,
    /// Requests that a sibling had.
    pub sibling_dhr: Option<f64>,
    /// Requests that a parent had, or that parent's siblings and parents.
    pub parent_dhr: Option<f64>,
    /// The same caches, none of which requests anything from another.
    pub apart: Figures,
    /// What cooperation gains over that.
    pub gained: Points,
    /// One cache with the room of all of them, for all clients.
    pub as_one: Figures,
    /// Each cache.
    pub caches: Vec<OneOf>,
}

/// One of several caches.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OneOf {
    /// Its name.
    pub name: String,
    /// Bytes that it holds.
    pub size_bytes: u64,
    /// Requests of clients.
    pub requests: u64,
    /// Those that it served itself.
    pub own_hits: u64,
    /// Those that a sibling had.
    pub sibling_hits: u64,
    /// Those that a parent had, or that parent's siblings and parents.
    pub parent_hits: u64,
    /// Requests of other caches.
    pub from_caches: u64,
    /// Those that it had.
    pub from_caches_hits: u64,
}

impl Together {
    /// Simulates them, apart, and as one.
    pub(crate) fn of(requests: &Requests, hierarchy: &Hierarchy, warm_up: usize, unit: Unit) -> Self {
        let play = |hierarchy: &Hierarchy| together(requests, hierarchy, warm_up, STRETCHES);
        let [found, apart, one] = [hierarchy, &hierarchy.apart(), &hierarchy.as_one()].map(play);
        let total = found.total();
        let all = |of: fn(&Served) -> u64| found.nodes.iter().map(of).sum::<u64>();
        let ratio = |hits| assay_measurement::ratios::ratio(hits, total.requests);
        let cache = |(node, served): (&crate::cooperate::Node, &Served)| OneOf {
            name: node.name.clone(),
            size_bytes: node.capacity_bytes,
            requests: served.requests,
            own_hits: served.own_hits,
            sibling_hits: served.sibling_hits,
            parent_hits: served.parent_hits,
            from_caches: served.from_caches,
            from_caches_hits: served.from_caches_hits,
        };
        Self {
            name: hierarchy.name.clone(),
            figures: Figures::of(&total, unit),
            own_dhr: ratio(all(|served| served.own_hits)),
            sibling_dhr: ratio(all(|served| served.sibling_hits)),
            parent_dhr: ratio(all(|served| served.parent_hits)),
            gained: gained(&found.parts, &apart.parts),
            apart: Figures::of(&apart.total(), unit),
            as_one: Figures::of(&one.total(), unit),
            caches: hierarchy.nodes.iter().zip(&found.nodes).map(cache).collect(),
        }
    }
}

/// The difference of two ratios in points, with its error from chance over time.
fn gained(more: &[Counts], less: &[Counts]) -> Points {
    let sum = |parts: &[Counts]| {
        let mut sum = Counts::default();
        parts.iter().for_each(|part| sum.add(part));
        sum
    };
    let points = |more: &Counts, less: &Counts| Some((more.dhr()? - less.dhr()?) * 100.0);
    let value = points(&sum(more), &sum(less)).unwrap_or(0.0);
    let is_long = more.iter().all(|part| part.requests >= FEWEST_IN_STRETCH);
    let parts: Option<Vec<f64>> = more.iter().zip(less).map(|(more, less)| points(more, less)).collect();
    let half = parts.filter(|_| is_long).and_then(|parts| Source::Time.half_width(value, &parts));
    Points { points: value, low: half.map(|half| value - half), high: half.map(|half| value + half) }
}
