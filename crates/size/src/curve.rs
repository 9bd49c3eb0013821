//! Curves: what caches of one policy and many sizes make of the requests.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use assay_cache::policy::Admission;

use crate::http;
use crate::policy::Policy;
use crate::requests::Requests;
use crate::simulate::{self, Counts, Rules};

/// Sizes from a 1,024th of all objects on.
const SMALLEST: u64 = 1024;

/// How a point was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// With all other sizes in one pass, from reuse distances.
    OnePass,
    /// A cache of this size was simulated.
    Simulated,
}

/// One size of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Size of the cache, in bytes; in objects if the requests have no sizes.
    pub size: u64,
    /// What it made of the requests.
    pub counts: Counts,
    /// How that was computed.
    pub method: Method,
}

/// The sizes of one policy, smallest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Curve {
    /// The policy.
    pub policy: Policy,
    /// Its points.
    pub points: Vec<Point>,
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
/// number. Sizes are in ascending order.
pub fn curves(requests: &Requests, policies: &[Policy], sizes: &[u64], rules: Rules) -> Vec<Curve> {
    // Below this size, LRU's contents are not the beginning of one list, because some object bypasses the cache.
    let simulated = match requests.size_changes {
        0 if rules.admission == Admission::All && http::keeps_one_list(requests) => {
            sizes.partition_point(|size| *size < requests.largest_bytes)
        }
        _ => sizes.len(),
    };
    let in_one_pass = |policy| if policy == Policy::Lru { simulated } else { sizes.len() };
    let mut tasks: Vec<(Policy, usize)> = policies
        .iter()
        .flat_map(|&policy| (0..in_one_pass(policy)).map(move |size| (policy, size)))
        .collect();
    if policies.contains(&Policy::Lru) && simulated < sizes.len() {
        tasks.insert(0, (Policy::Lru, sizes.len()));
    }
    let found = Mutex::new(Vec::with_capacity(policies.len() * sizes.len()));
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(&(policy, at)) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let points = match sizes.get(at) {
                Some(&size) => {
                    let counts = simulate::cache(requests, policy, size, rules);
                    vec![Point { size, counts, method: Method::Simulated }]
                }
                None => one_pass(requests, &sizes[simulated..], rules.warm_up),
            };
            let mut found = found.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            found.extend(points.into_iter().map(|point| (policy, point)));
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        for _ in 1..threads.min(tasks.len()) {
            scope.spawn(work);
        }
        work();
    });
    let found = found.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    policies.iter().map(|&policy| curve(policy, &found)).collect()
}

fn one_pass(requests: &Requests, sizes: &[u64], warm_up: usize) -> Vec<Point> {
    let counts = simulate::lru_in_one_pass(requests, sizes, warm_up);
    let points = sizes.iter().zip(counts);
    points.map(|(&size, counts)| Point { size, counts, method: Method::OnePass }).collect()
}

fn curve(policy: Policy, found: &[(Policy, Point)]) -> Curve {
    let own = found.iter().filter(|(of, _)| *of == policy);
    let mut points: Vec<Point> = own.map(|(_, point)| *point).collect();
    points.sort_unstable_by_key(|point| point.size);
    Curve { policy, points }
}

impl Curve {
    /// The smallest of its sizes whose document hit ratio is at most so many points (hundredths) below that of an infinite cache.
    pub fn enough(&self, infinite: &Counts, points: f64) -> Option<&Point> {
        let most = infinite.dhr()?;
        self.points.iter().find(|point| point.counts.dhr().is_some_and(|dhr| (most - dhr) * 100.0 <= points))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::requests::{Gather, Sizes};

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
        let mut gather = Gather::new(Sizes::Within(0));
        for number in 0..2000u64 {
            gather.whole(number * number % 97, 1 + number * number % 97, None);
        }
        let requests = gather.finish();
        let sizes = [10, 50, 100, 5000];
        let found = curves(&requests, &[Policy::Fifo, Policy::Lru], &sizes, 100.into());
        for curve in &found {
            let points: Vec<u64> = curve.points.iter().map(|point| point.size).collect();
            assert_eq!(points, sizes);
            for point in &curve.points {
                let alone = simulate::cache(&requests, curve.policy, point.size, 100.into());
                assert_eq!(point.counts, alone, "{:?} {}", curve.policy, point.size);
            }
        }
        let methods: Vec<Method> = found[1].points.iter().map(|point| point.method).collect();
        // The largest object has 97 bytes: caches of 10 and 50 cannot hold it.
        assert_eq!(methods, [Method::Simulated, Method::Simulated, Method::OnePass, Method::OnePass]);
        let infinite = simulate::infinite(&requests, 100);
        let sizes_for = |points| found[1].enough(&infinite, points).map(|point| point.size);
        assert_eq!((sizes_for(0.0), sizes_for(100.0)), (Some(5000), Some(10)));
    }
}
