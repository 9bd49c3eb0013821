//! Measures how often the band of a sample contains the whole true curve: several kinds of traces, many samples of each.
//!
//!     size_coverage [SEEDS] [FIRST] [KIND]     100 samples of each kind, with seeds from 1000 on, unless told otherwise
//!
//! Prints for each kind and policy in how many samples the whole curve lies in its band (`curve`: documents, bytes), and at which share
//! of the sizes a single point lies in it. The traces do not depend on the seed of the sample.

use std::io;

use assay_base::random::{Rng, mix};
use assay_cache::policy::Admission;
use assay_size::curve::{Curves, Plan, curves, usual_sizes};
use assay_size::policy::Policy;
use assay_size::requests::{Gather, Requests, Sizes};
use assay_size::sample::{Sampling, Take};
use assay_size::simulate::Counts;

/// A request: key and bytes; no key: no cache may serve it.
type Trace = Vec<(Option<u64>, u64)>;

const REQUESTS: usize = 60_000;
const OBJECTS: usize = 12_000;
const RATE: f64 = 0.1;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let (seeds, first) = (number(0, 100u64), number(1, 1000));
    let policies: Vec<Policy> = ["lru", "fifo", "s3-fifo", "gdsf"]
        .iter()
        .map(|name| Policy::parse(name).map_err(io::Error::other))
        .collect::<Result<_, _>>()?;
    println!(
        "| trace | policy | documents: curve | point | bytes: curve | point |\n|---|---|--:|--:|--:|--:|"
    );
    for (name, trace) in kinds() {
        if arguments.get(2).is_none_or(|kind| name.contains(kind.as_str())) {
            measure(name, &trace, &policies, first..first + seeds);
        }
    }
    Ok(())
}

/// The traces, each with what it is called.
fn kinds() -> Vec<(&'static str, Trace)> {
    let log_normal =
        |sigma: f64| move |object: u64| (8000.0 * (sigma * normal(object)).exp()).max(50.0) as u64;
    let equal = |_| 1000;
    // Three in a thousand objects have 1,000 times the size of the others.
    let few_large =
        |object: u64| 2000 + object % 97 + if mix(object ^ 5).is_multiple_of(333) { 2_000_000 } else { 0 };
    let pareto = |object: u64| ((1000.0 / unit(object).powf(1.0 / 1.1)) as u64).min(1 << 30);
    vec![
        ("Zipf 0.7, log-normal sizes", zipf(0.7, log_normal(1.0))),
        ("Zipf 0.9, log-normal sizes, wide", zipf(0.9, log_normal(2.0))),
        ("Zipf 1.1, log-normal sizes", zipf(1.1, log_normal(1.0))),
        ("Zipf 0.8, equal sizes", zipf(0.8, equal)),
        ("Zipf 1.3, equal sizes", zipf(1.3, equal)),
        ("Zipf 0.9, Pareto sizes (1.1)", zipf(0.9, pareto)),
        ("Zipf 0.8, few large objects", zipf(0.8, few_large)),
        ("log", log()),
    ]
}

/// What is popular changes, a tenth cannot be cached, a twentieth is requested once, and some objects change their size.
fn log() -> Trace {
    let draw = drawing(0.9);
    let mut rng = Rng::new(29);
    let request = |number: usize| {
        let drift = (number / 6000 * 400) as u64;
        match rng.below(20) {
            0 | 1 => (None, 700),
            2 => (Some(1 << 40 | number as u64), 1000 + rng.below(20_000)),
            _ => {
                let object = draw(&mut rng) + drift;
                let version = if object.is_multiple_of(50) { number as u64 / 9000 } else { 0 };
                let bytes = (6000.0 * (1.6 * normal(object)).exp()).max(50.0) as u64;
                (Some(object), bytes + version)
            }
        }
    };
    (0..REQUESTS).map(request).collect()
}

fn zipf(exponent: f64, bytes: impl Fn(u64) -> u64) -> Trace {
    let draw = drawing(exponent);
    let mut rng = Rng::new(11);
    (0..REQUESTS).map(|_| draw(&mut rng)).map(|object| (Some(object), bytes(object))).collect()
}

/// Draws objects by Zipf's law.
fn drawing(exponent: f64) -> impl Fn(&mut Rng) -> u64 {
    let mut sums = Vec::with_capacity(OBJECTS);
    let mut sum = 0.0;
    for rank in 1..=OBJECTS {
        sum += (rank as f64).powf(-exponent);
        sums.push(sum);
    }
    move |rng| {
        let drawn = rng.unit() * sum;
        sums.partition_point(|sum| *sum < drawn) as u64
    }
}

/// A number from 0 to 1 that belongs to an object.
fn unit(object: u64) -> f64 {
    (mix(object ^ 0x51ee) >> 11) as f64 / (1u64 << 53) as f64 + 1e-9
}

fn normal(object: u64) -> f64 {
    let angle = 2.0 * std::f64::consts::PI * unit(mix(object));
    (-2.0 * unit(object).ln()).max(0.0).sqrt() * angle.cos()
}

fn gathered(trace: &Trace, take: Take, seed: u64) -> Requests {
    let mut gather = Gather::new(Sizes::Within(0), Sampling { take, seed });
    for (key, bytes) in trace {
        match key {
            Some(key) => assert!(gather.whole(mix(*key), *bytes, None), "too many objects"),
            None => gather.uncachable(*bytes, None),
        }
    }
    gather.finish()
}

fn plan<'a>(policies: &'a [Policy], sizes: &'a [u64]) -> Plan<'a> {
    Plan { policies, sizes, warm_up: 0.0, admission: Admission::All }
}

fn measure(name: &str, trace: &Trace, policies: &[Policy], seeds: std::ops::Range<u64>) {
    let all = gathered(trace, Take::All, 0);
    let sizes = usual_sizes(all.footprint_bytes);
    let truth = curves(&all, &plan(policies, &sizes));
    let ratios: [fn(&Counts) -> Option<f64>; 2] = [Counts::dhr, Counts::bhr];
    // Curves within, points within, points: by policy and ratio.
    let mut within = vec![[[0u64; 3]; 2]; policies.len()];
    let (count, mut least) = (seeds.end - seeds.start, [0; 2]);
    for seed in seeds {
        let sample = gathered(trace, Take::Share(RATE), seed);
        let (documents, bytes) = sample.smallest_known(Admission::All);
        let known: Vec<u64> = sizes.iter().copied().filter(|size| *size >= documents).collect();
        let found = curves(&sample, &plan(policies, &known));
        for (which, from) in [documents, bytes].into_iter().enumerate() {
            least[which] += from;
            for (policy, within) in within.iter_mut().enumerate() {
                let points = inside(&found, &truth, policy, ratios[which], from);
                let inside = points.iter().filter(|is_inside| **is_inside).count();
                within[which][0] += u64::from(inside == points.len());
                within[which][1] += inside as u64;
                within[which][2] += points.len() as u64;
            }
        }
    }
    for (policy, within) in policies.iter().zip(&within) {
        let cells = within.map(|[curves, inside, points]| {
            format!(
                "{:.0} % | {:.1} %",
                100.0 * curves as f64 / count as f64,
                100.0 * inside as f64 / points.max(1) as f64
            )
        });
        println!("| {name} | `{}` | {} |", policy.name(), cells.join(" | "));
    }
    let shares = least.map(|least| 100.0 * least as f64 / count as f64 / all.footprint_bytes as f64);
    let points = within[0].map(|of| of[2] as f64 / count as f64);
    eprintln!(
        "{name}: from {:.2} and {:.2} % of the bytes on, {:.1} and {:.1} sizes",
        shares[0], shares[1], points[0], points[1]
    );
}

/// Whether each point of the true curve is in the band.
fn inside(
    found: &Curves,
    truth: &Curves,
    policy: usize,
    of: fn(&Counts) -> Option<f64>,
    from: u64,
) -> Vec<bool> {
    let (curve, truth) = (&found.curves[policy], &truth.curves[policy]);
    let halves = found.band(curve, of).unwrap_or_default();
    let points = curve.points.iter().zip(halves).filter(|(point, _)| point.size >= from);
    let is_inside = |(point, half): (&assay_size::curve::Point, f64)| {
        let true_point = truth.points.iter().find(|other| other.size == point.size)?;
        Some((of(&point.estimate.counts)? - of(&true_point.estimate.counts)?).abs() <= half)
    };
    points.filter_map(is_inside).collect()
}
