//! Simulated LRU against Che's approximation of it (Che, Tung and Wang, IEEE JSAC 2002), which knows the popularities and no requests.

use assay_base::random::Rng;
use assay_logs::size::policy::Policy;
use assay_logs::size::requests::{RequestCollector, Requests, Sizes};
use assay_logs::size::sample::Sampling;
use assay_logs::size::simulate::{cache, lru_in_one_pass};

const OBJECTS: usize = 2000;
const REQUESTS: usize = 300_000;
/// They fill the caches.
const WARM_UP: usize = 60_000;

/// Probabilities by Zipf's law.
fn popularities(exponent: f64) -> Vec<f64> {
    let weights: Vec<f64> = (1..=OBJECTS).map(|rank| (rank as f64).powf(-exponent)).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

fn drawn(popularities: &[f64]) -> Requests {
    let sums: Vec<f64> = popularities
        .iter()
        .scan(0.0, |sum, popularity| {
            *sum += popularity;
            Some(*sum)
        })
        .collect();
    let mut rng = Rng::new(3);
    let mut collector = RequestCollector::new(Sizes::Within(0), Sampling::default());
    for _ in 0..REQUESTS {
        let unit = rng.unit();
        collector.add_whole(sums.partition_point(|sum| *sum < unit).min(OBJECTS - 1) as u64, 1, None);
    }
    collector.finish()
}

/// The hit ratio of an LRU cache of so many objects: an object is in it if it was requested within the time in which as many different
/// objects are requested as there is room for.
fn che(popularities: &[f64], room: f64) -> f64 {
    let stored = |time: f64| popularities.iter().map(|p| 1.0 - (-p * time).exp()).sum::<f64>();
    let (mut low, mut high) = (0.0, 1e12);
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if stored(middle) < room { low = middle } else { high = middle }
    }
    popularities.iter().map(|p| p * (1.0 - (-p * low).exp())).sum()
}

#[test]
fn lru_is_within_a_point_of_ches_approximation() {
    for exponent in [0.6, 0.9, 1.2] {
        let popularities = popularities(exponent);
        let requests = drawn(&popularities);
        let sizes = [20, 100, 400, 1200];
        let curve = lru_in_one_pass(&requests, &sizes, WARM_UP.into());
        for (size, tally) in sizes.into_iter().zip(curve) {
            let (found, expected) = (tally.total().dhr().unwrap(), che(&popularities, size as f64));
            assert!(
                (found - expected).abs() < 0.01,
                "exponent {exponent}, {size} objects: {found} and {expected}"
            );
            assert_eq!(tally.total(), cache(&requests, Policy::LRU, size, WARM_UP.into()));
        }
    }
}
