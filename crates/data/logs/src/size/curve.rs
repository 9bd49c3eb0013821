//! Curves: what caches of one policy and many sizes make of the requests.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_cache::policy::Admission;

use crate::size::confidence::{ErrorCause, FEWEST_IN_STRETCH, STRETCHES};
use crate::size::http;
use crate::size::policy::Policy;
use crate::size::requests::Requests;
use crate::size::sample::{HALVES, Sampled, WarmUp};
use crate::size::sample_part::SamplePart;
use crate::size::simulate::{self, HitCounts, SimulationRules, SimulationTally};

/// Sizes from a 1,024th of all objects on.
const SMALLEST: u64 = 1024;

/// Method by which a point was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CurveMethod {
    /// With all other sizes in one pass, from reuse distances.
    OnePass,
    /// A cache of this size was simulated.
    Simulated,
}

/// Figures of a cache on all requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Estimate {
    /// Figures; those of a sample are scaled to all requests.
    pub counts: HitCounts,
    /// The same of each half of a sample, or of each stretch of time; empty: they are not known.
    pub parts: Vec<HitCounts>,
    /// Figures by label; empty: requests have no labels, or the figures are not known.
    pub by: Vec<HitCounts>,
}

/// One size of a curve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurvePoint {
    /// Size of the cache, in bytes; in objects if the requests have no sizes.
    pub size: u64,
    pub estimate: Estimate,
    pub method: CurveMethod,
}

/// The sizes of one policy, smallest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyCurve {
    pub policy: Policy,
    pub points: Vec<CurvePoint>,
}

#[derive(Debug, Clone, Copy)]
pub struct CurvePlan<'a> {
    pub policies: &'a [Policy],
    /// In ascending order.
    pub sizes: &'a [u64],
    /// Share of the requests that fill the caches and are not counted.
    pub warm_up: f64,
    pub admission: Admission,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curves {
    /// A cache without bounds.
    pub infinite: Estimate,
    /// A curve for each policy.
    pub curves: Vec<PolicyCurve>,
    /// Requests that filled the caches.
    pub warm_up: u64,
    /// Cause of the differences among parts; none: there are no parts.
    pub source: Option<ErrorCause>,
}

/// Ratio of some counts; none: it is not known.
pub type RatioOf = fn(&HitCounts) -> Option<f64>;

impl Curves {
    /// Half the width of the interval of a number that is computed from the figures of some caches: from its value, and for one part
    /// after another.
    pub fn half_width(&self, value: f64, of_part: impl Fn(usize) -> Option<f64>) -> Option<f64> {
        let parts: Option<Vec<f64>> = (0..self.infinite.parts.len()).map(of_part).collect();
        self.source?.half_width(value, &parts?)
    }

    /// Half the widths of a band around a curve, a value for each of its points.
    pub fn band(&self, curve: &PolicyCurve, of: RatioOf) -> Option<Vec<f64>> {
        let values = |point: &CurvePoint| {
            let parts: Option<Vec<f64>> = point.estimate.parts.iter().map(of).collect();
            Some((of(&point.estimate.counts)?, parts?))
        };
        let points: Option<Vec<(f64, Vec<f64>)>> = curve.points.iter().map(values).collect();
        self.source?.band(&points?)
    }
}

/// Two sizes for each doubling, 2^k and 3 · 2^(k−1), from a 1,024th of all objects until all of them fit.
pub fn usual_sizes(footprint: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    let mut size = (footprint / SMALLEST).max(1).next_power_of_two();
    loop {
        for size in [size, size + size / 2] {
            if sizes.last() != Some(&size) {
                sizes.push(size);
            }
            if size >= footprint {
                return sizes;
            }
        }
        let Some(double) = size.checked_mul(2) else { return sizes };
        size = double;
    }
}

/// Curves of all policies at all sizes, with as many threads as there are processors. The result does not depend on their
/// number.
pub fn curves(requests: &Requests, plan: &CurvePlan<'_>) -> Curves {
    match &requests.sampled {
        Some(sampled) => of_sample(requests, sampled, plan),
        None => of_all(requests, plan),
    }
}

fn of_all(requests: &Requests, plan: &CurvePlan<'_>) -> Curves {
    let warm_up = (requests.list.len() as f64 * plan.warm_up) as usize;
    let rules = SimulationRules { warm_up, admission: plan.admission, parts: STRETCHES };
    let infinite = simulate::infinite(requests, rules);
    let is_long = infinite.parts.iter().all(|part| part.requests >= FEWEST_IN_STRETCH);
    let source = is_long.then_some(ErrorCause::Time);
    let estimate = |tally: SimulationTally| {
        let counts = tally.total();
        // A bound is known as a whole only.
        let parts = if is_long && tally.parts.len() == STRETCHES { tally.parts } else { Vec::new() };
        Estimate { counts, parts, by: tally.by }
    };
    let found = simulated(requests, plan.policies, plan.sizes, rules);
    let points = |points: Vec<(u64, CurveMethod, SimulationTally)>| {
        let point = |(size, method, tally)| CurvePoint { size, estimate: estimate(tally), method };
        points.into_iter().map(point).collect()
    };
    let curves =
        plan.policies.iter().zip(found).map(|(&policy, found)| PolicyCurve { policy, points: points(found) });
    Curves { curves: curves.collect(), warm_up: warm_up as u64, source, infinite: estimate(infinite) }
}

fn of_sample(requests: &Requests, sampled: &Sampled, plan: &CurvePlan<'_>) -> Curves {
    let WarmUp { kept, read, after } = sampled.warm_up(plan.warm_up);
    let labels = requests.labels.as_ref().map_or(0, |labels| labels.names.len());
    // What is admitted by its size is told by the room that it takes, which must be the same for all then.
    let only_drawn = matches!(plan.admission, Admission::UpTo(_));
    let simulate = |half: Option<usize>| {
        let (part, warm_up) = requests.part_of_sample(sampled, SamplePart { half, only_drawn }, kept);
        let requests = part.with_rooms();
        let rules = SimulationRules { warm_up, admission: requests.admission_of(plan.admission), parts: 1 };
        let of = |tally: SimulationTally| {
            let counts = after.estimate(&tally.drawn_and_large(), requests.rate());
            Estimate { counts, parts: Vec::new(), by: tally.by_over(labels, requests.rate()) }
        };
        let infinite = of(simulate::infinite(&requests, rules));
        let found = simulated(&requests, plan.policies, plan.sizes, rules).into_iter();
        let points =
            found.map(|points| points.into_iter().map(|(_, method, tally)| (method, of(tally))).collect());
        (infinite, points.collect::<Vec<Vec<(CurveMethod, Estimate)>>>())
    };
    let (mut infinite, mut all) = simulate(None);
    for half in 0..HALVES {
        let (of_half, found) = simulate(Some(half));
        infinite.parts.push(of_half.counts);
        for (of_all, of_half) in all.iter_mut().flatten().zip(found.into_iter().flatten()) {
            of_all.1.parts.push(of_half.1.counts);
        }
    }
    let curve = |(&policy, points): (&Policy, Vec<(CurveMethod, Estimate)>)| {
        let points = plan.sizes.iter().zip(points);
        PolicyCurve {
            policy,
            points: points.map(|(&size, (method, estimate))| CurvePoint { size, estimate, method }).collect(),
        }
    };
    Curves {
        infinite,
        curves: plan.policies.iter().zip(all).map(curve).collect(),
        warm_up: read,
        source: Some(ErrorCause::Sample),
    }
}

/// Figures of caches of each policy and each size, in the order of policies and sizes.
fn simulated(
    requests: &Requests,
    policies: &[Policy],
    sizes: &[u64],
    rules: SimulationRules,
) -> Vec<Vec<(u64, CurveMethod, SimulationTally)>> {
    // Below this size, LRU's contents are not the beginning of one list, because some object bypasses the cache.
    let simulated = match requests.size_changes {
        0 if rules.admission == Admission::All && http::keeps_one_list(requests) => {
            sizes.partition_point(|size| *size < requests.largest_bytes)
        }
        _ => sizes.len(),
    };
    let in_one_pass = |policy| if policy == Policy::LRU { simulated } else { sizes.len() };
    let mut tasks: Vec<(usize, usize)> = policies
        .iter()
        .enumerate()
        .flat_map(|(number, &policy)| (0..in_one_pass(policy)).map(move |size| (number, size)))
        .collect();
    let lru = policies.iter().position(|policy| *policy == Policy::LRU);
    if let Some(lru) = lru.filter(|_| simulated < sizes.len()) {
        tasks.insert(0, (lru, sizes.len()));
    }
    let found = Mutex::new(vec![Vec::with_capacity(sizes.len()); policies.len()]);
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(&(policy, at)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let points = match sizes.get(at) {
                Some(&size) => {
                    let tally = simulate::tally(requests, policies[policy], requests.room_of(size), rules);
                    vec![(size, CurveMethod::Simulated, tally)]
                }
                None => one_pass(requests, &sizes[simulated..], rules),
            };
            let mut found = found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            found[policy].extend(points);
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        for _ in 1..threads.min(tasks.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut found = found.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    found.iter_mut().for_each(|points| points.sort_unstable_by_key(|(size, ..)| *size));
    found
}

fn one_pass(
    requests: &Requests,
    sizes: &[u64],
    rules: SimulationRules,
) -> Vec<(u64, CurveMethod, SimulationTally)> {
    let tallies = simulate::lru_in_one_pass(requests, sizes, rules);
    sizes.iter().zip(tallies).map(|(&size, tally)| (size, CurveMethod::OnePass, tally)).collect()
}

impl CurvePoint {
    /// By how many points (hundredths) its document hit ratio is below that of an infinite cache.
    pub fn below(&self, infinite: &Estimate) -> Option<f64> {
        Some((infinite.counts.dhr()? - self.estimate.counts.dhr()?) * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::requests::{RequestCollector, Sizes};
    use crate::size::sample::Sampling;

    #[test]
    fn usual_sizes_double_in_two_steps_until_everything_fits() {
        assert_eq!(
            usual_sizes(5000),
            [
                4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072,
                4096, 6144
            ]
        );
        assert_eq!([usual_sizes(0), usual_sizes(1)], [[1], [1]]);
        assert_eq!(usual_sizes(3), [1, 2, 3]);
        assert!(usual_sizes(u64::MAX).len() < 60);
    }

    #[test]
    fn curves_hold_every_size_once_in_order_and_say_how_each_was_computed() {
        let mut collector = RequestCollector::new(Sizes::Within(0), Sampling::default());
        for number in 0..2000u64 {
            collector.add_whole(number * number % 97, 1 + number * number % 97, None);
        }
        let requests = collector.finish();
        let sizes = [10, 50, 100, 5000];
        let policies = [Policy::FIFO, Policy::LRU];
        let plan = CurvePlan { policies: &policies, sizes: &sizes, warm_up: 0.05, admission: Admission::All };
        let found = curves(&requests, &plan);
        for curve in &found.curves {
            let points: Vec<u64> = curve.points.iter().map(|point| point.size).collect();
            assert_eq!(points, sizes);
            for point in &curve.points {
                let alone = simulate::cache(&requests, curve.policy, point.size, 100.into());
                assert_eq!(point.estimate.counts, alone, "{:?} {}", curve.policy, point.size);
            }
        }
        let methods: Vec<CurveMethod> = found.curves[1].points.iter().map(|point| point.method).collect();
        // The largest object has 97 bytes: caches of 10 and 50 cannot hold it.
        assert_eq!(
            methods,
            [CurveMethod::Simulated, CurveMethod::Simulated, CurveMethod::OnePass, CurveMethod::OnePass]
        );
        assert_eq!((found.warm_up, found.source), (100, Some(ErrorCause::Time)));
        assert_eq!(found.curves[1].points[3].below(&found.infinite), Some(0.0));
        assert!(found.curves[1].points[0].below(&found.infinite) > Some(0.5));
    }
}
