//! Caches that work together, as the document shows them: what they hit, who served it, and what cooperation gains.

use schemars::JsonSchema;
use serde::Serialize;

use crate::size::confidence::{ErrorCause, FEWEST_IN_STRETCH, STRETCHES};
use crate::size::cooperate::{self, Hierarchy, NodeCounts, simulate_hierarchy};
use crate::size::document::{HitFigures, Points, SizeUnit};
use crate::size::policy::Policy;
use crate::size::requests::Requests;
use crate::size::sample::{HALVES, RequestTotals, WarmUp};
use crate::size::sample_part::SamplePart;
use crate::size::simulate::HitCounts;

/// What caches that work together make of the requests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Together")]
pub struct Cooperation {
    /// What the hierarchy is called.
    pub name: String,
    /// Replacement policy of the caches that have none of their own.
    pub policy: Policy,
    /// All requests of clients, whichever cache served them.
    pub figures: HitFigures,
    /// Requests that the cache which they entered served itself, of 1.
    pub own_dhr: Option<f64>,
    /// Requests that a sibling had.
    pub sibling_dhr: Option<f64>,
    /// Requests that a parent had, or that parent's siblings and parents.
    pub parent_dhr: Option<f64>,
    /// The same caches, none of which requests anything from another.
    pub apart: HitFigures,
    /// What cooperation gains over that.
    pub gained: Points,
    /// One cache with the room of all of them, for all clients.
    pub as_one: HitFigures,
    /// Each cache.
    pub caches: Vec<CooperatingCache>,
}

/// One of several caches.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "OneOf")]
pub struct CooperatingCache {
    /// Its name.
    pub name: String,
    /// Its replacement policy.
    pub policy: Policy,
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

/// Requests that a hierarchy is simulated with: all, or a sample.
struct HierarchyRun<'a> {
    requests: &'a Requests,
    /// So many of the simulated requests are not counted.
    warm_up: usize,
    /// All requests after the warm-up; none: these are all.
    of: Option<RequestTotals>,
    parts: usize,
}

impl HierarchyRun<'_> {
    /// Simulates the caches, with figures scaled to all requests.
    fn run(&self, hierarchy: &Hierarchy) -> cooperate::HierarchyResult {
        let mut found = simulate_hierarchy(self.requests, hierarchy, self.warm_up, self.parts);
        if let Some(all) = &self.of {
            found.parts = vec![all.estimate(&found.drawn_and_large(), self.requests.rate())];
        }
        found
    }
}

impl Cooperation {
    /// Simulates them, apart, and as one; `share` of the requests fill the caches.
    pub(crate) fn of(requests: &Requests, hierarchy: &Hierarchy, share: f64, unit: SizeUnit) -> Self {
        let (apart, one) = (hierarchy.apart(), hierarchy.as_one());
        let sample = requests.sampled.as_ref().map(|sampled| {
            let warm_up = sampled.warm_up(share);
            let part = SamplePart { half: None, only_drawn: false };
            (sampled, warm_up, requests.part_of_sample(sampled, part, warm_up.kept).0)
        });
        let (input, without) = match &sample {
            None => {
                let warm_up = (requests.list.len() as f64 * share) as usize;
                (HierarchyRun { requests, warm_up, of: None, parts: STRETCHES }, None)
            }
            Some((sampled, WarmUp { kept, after, .. }, all)) => {
                let input = HierarchyRun { requests: all, warm_up: *kept, of: Some(*after), parts: 1 };
                (input, Some((*sampled, *kept, *after)))
            }
        };
        let [found, apart_found, one_found] = [hierarchy, &apart, &one].map(|caches| input.run(caches));
        let gained = match without {
            None => gained(ErrorCause::Time, &found.parts, &apart_found.parts, None),
            Some((sampled, kept, after)) => {
                let of_half = |half: usize| {
                    let part = SamplePart { half: Some(half), only_drawn: false };
                    let (input, warm_up) = requests.part_of_sample(sampled, part, kept);
                    let input = HierarchyRun { requests: &input, warm_up, of: Some(after), parts: 1 };
                    [hierarchy, &apart].map(|caches| input.run(caches).total())
                };
                let halves: Vec<[HitCounts; 2]> = (0..HALVES).map(of_half).collect();
                let [more, less] = [0, 1].map(|which| halves.iter().map(|of| of[which]).collect::<Vec<_>>());
                gained(ErrorCause::Sample, &more, &less, Some([found.total(), apart_found.total()]))
            }
        };
        let total = found.total();
        let all = |of: fn(&NodeCounts) -> u64| found.nodes.iter().map(of).sum::<u64>();
        let ratio = |hits| assay_measurement::ratios::ratio(hits, total.requests);
        let (siblings, parents) = (all(|served| served.sibling_hits), all(|served| served.parent_hits));
        let cache = |(node, served): (&crate::size::cooperate::CacheNode, &NodeCounts)| CooperatingCache {
            name: node.name.clone(),
            policy: Policy::Online(hierarchy.policy_of(node)),
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
            policy: Policy::Online(hierarchy.policy),
            figures: HitFigures::of(&total, unit),
            own_dhr: ratio(total.hits.saturating_sub(siblings + parents)),
            sibling_dhr: ratio(siblings),
            parent_dhr: ratio(parents),
            gained,
            apart: HitFigures::of(&apart_found.total(), unit),
            as_one: HitFigures::of(&one_found.total(), unit),
            caches: hierarchy.nodes.iter().zip(&found.nodes).map(cache).collect(),
        }
    }
}

/// The difference of two ratios in points, with its error: from chance over time, where the parts are stretches, or that of a sample, where
/// each is without a part of it.
fn gained(
    source: ErrorCause,
    more: &[HitCounts],
    less: &[HitCounts],
    whole: Option<[HitCounts; 2]>,
) -> Points {
    let sum = |parts: &[HitCounts]| {
        let mut sum = HitCounts::default();
        parts.iter().for_each(|part| sum.add(part));
        sum
    };
    let points = |more: &HitCounts, less: &HitCounts| Some((more.dhr()? - less.dhr()?) * 100.0);
    let [all, apart] = whole.unwrap_or_else(|| [sum(more), sum(less)]);
    let value = points(&all, &apart).unwrap_or(0.0);
    let is_long = source == ErrorCause::Sample || more.iter().all(|part| part.requests >= FEWEST_IN_STRETCH);
    let parts: Option<Vec<f64>> = more.iter().zip(less).map(|(more, less)| points(more, less)).collect();
    let half = parts.filter(|_| is_long).and_then(|parts| source.half_width(value, &parts));
    Points { points: value, low: half.map(|half| value - half), high: half.map(|half| value + half) }
}
