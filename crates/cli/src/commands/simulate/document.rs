//! What does `assay simulate --json` print? One document; docs/reference/simulate.md says what its fields mean.

use assay_record::histogram::Histogram;
use assay_simulate::{Experiment, Load};
use serde::Serialize;

use super::collect::{Point, baseline};

/// Version of the document.
const SCHEMA: &str = "assay-simulate/1";

#[derive(Debug, Serialize)]
pub struct Document<'a> {
    schema: &'static str,
    name: &'a str,
    title: &'a str,
    seed: u64,
    repetitions: u32,
    warm_up_s: f64,
    measure_s: f64,
    points: Vec<PointDocument<'a>>,
}

#[derive(Debug, Serialize)]
struct PointDocument<'a> {
    mix: &'a str,
    cluster: &'a str,
    policy: &'a str,
    clients: Option<u32>,
    rate_per_s: Option<f64>,
    answered_per_s: f64,
    answered_per_s_half_width: Option<f64>,
    answered_per_s_by_repetition: &'a [f64],
    gain: Option<f64>,
    failed: u64,
    bytes: u64,
    response_us: Times,
    services: Vec<ServiceDocument<'a>>,
    balance: BalanceDocument,
    reference_per_s: Option<f64>,
}

#[derive(Debug, Serialize)]
struct ServiceDocument<'a> {
    name: &'a str,
    response_us: Times,
}

#[derive(Debug, Serialize)]
struct Times {
    count: u64,
    mean: Option<f64>,
    p50: Option<u64>,
    p90: Option<u64>,
    p95: Option<u64>,
    p99: Option<u64>,
    max: Option<u64>,
}

#[derive(Debug, Serialize)]
struct BalanceDocument {
    processor: f64,
    disk: f64,
    in_flight: f64,
}

impl Times {
    fn of(histogram: &Histogram) -> Self {
        let at = |quantile| histogram.quantile_us(quantile);
        Self {
            count: histogram.count(),
            mean: histogram.mean_us(),
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            max: histogram.max_us(),
        }
    }
}

/// Everything that was found out.
pub fn document<'a>(name: &'a str, experiment: &'a Experiment, points: &'a [Point]) -> Document<'a> {
    let point = |point: &'a Point| {
        let service = |(place, histogram): (usize, &Option<Histogram>)| {
            let response_us = Times::of(histogram.as_ref()?);
            Some(ServiceDocument { name: &experiment.services[place].name, response_us })
        };
        let load = experiment.loads[point.cell.load];
        let balance = point.balance.average();
        PointDocument {
            mix: &experiment.mixes[point.cell.mix].label,
            cluster: &experiment.clusters[point.cell.cluster].label,
            policy: &experiment.policies[point.cell.policy].label,
            clients: if let Load::Clients(clients) = load { Some(clients) } else { None },
            rate_per_s: if let Load::Rate(per_s) = load { Some(per_s) } else { None },
            answered_per_s: point.mean_per_s(),
            answered_per_s_half_width: point.half_width(),
            answered_per_s_by_repetition: &point.per_s,
            gain: baseline(points, point)
                .map(|base| point.mean_per_s() / base.mean_per_s())
                .filter(|g| g.is_finite()),
            failed: point.failed,
            bytes: point.bytes,
            response_us: Times::of(&point.all),
            services: point.by_service.iter().enumerate().filter_map(service).collect(),
            balance: BalanceDocument {
                processor: balance.processor,
                disk: balance.disk,
                in_flight: balance.in_flight,
            },
            reference_per_s: experiment.reference(&point.cell),
        }
    };
    Document {
        schema: SCHEMA,
        name,
        title: &experiment.title,
        seed: experiment.seed,
        repetitions: experiment.repetitions,
        warm_up_s: experiment.warm_up_s,
        measure_s: experiment.measure_s,
        points: points.iter().map(point).collect(),
    }
}
