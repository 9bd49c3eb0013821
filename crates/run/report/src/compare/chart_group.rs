//! The charts of a workload under a condition as they stand on a page, their time axis, and what a run did in each of its
//! steps.

use crate::chart::{Band, Chart};
use crate::steps::{MergedTimes, Step, steps};
use crate::tally::Span;
use assay_measurement::histogram::{Histogram, SparseHistogram};
use assay_measurement::measured::Series;
use assay_measurement::ratios::HitRatio;
use assay_record::run::RunInfo;
use serde::Serialize;

/// Steps that all lines of one metric have together, so that the page stays small however many subjects there are.
const STEPS_TOGETHER: u64 = 10_000;
/// Steps that a line has at least and at most.
const STEPS: (u64, u64) = (120, 720);
/// The time axis of a workload's charts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonAxis {
    #[serde(skip)]
    pub(super) step_ms: u64,
    #[serde(skip)]
    pub(super) end_ms: u64,
    pub step_s: f64,
    pub time: Vec<f64>,
    pub phases: Vec<Band>,
}

/// Measurements of a run in one step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StepRow {
    pub offered: Option<f64>,
    pub throughput: Option<f64>,
    pub bandwidth_mbit_s: Option<f64>,
    pub response_ms: Option<f64>,
    pub hit_ms: Option<f64>,
    pub miss_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub dhr_percent: Option<f64>,
    pub bhr_percent: Option<f64>,
    pub connections: Option<f64>,
    pub origin_connections: Option<f64>,
    pub origin_throughput: Option<f64>,
    pub origin_mbit_s: Option<f64>,
    pub origin_ms: Option<f64>,
    pub cpu: Option<f64>,
    pub memory_mb: Option<f64>,
    pub disk_mb_s: Option<f64>,
}

impl ComparisonAxis {
    /// The axis of a workload, from the first of its runs; `lines` is how many of them a metric has on the whole page.
    pub fn new(info: &RunInfo, spans: &[Option<Span>], lines: usize) -> Self {
        let end_ms = spans.iter().flatten().map(|span| span.end_ms).max().unwrap_or(0);
        let most = (STEPS_TOGETHER / lines.max(1) as u64).clamp(STEPS.0, STEPS.1);
        let step_ms = end_ms.div_ceil(1000).div_ceil(most).max(1) * 1000;
        let seconds = |ms: u64| ms as f64 / 1000.0;
        let count = end_ms.div_ceil(step_ms);
        let bands = info.phases.iter().zip(spans).filter_map(|(phase, span)| {
            let span = (*span)?;
            Some(Band {
                name: phase.name.clone(),
                start: seconds(span.start_ms),
                end: seconds(span.end_ms),
                disturbed: false,
            })
        });
        Self {
            step_ms,
            end_ms,
            step_s: seconds(step_ms),
            time: (0..count).map(|index| (index as f64 + 0.5) * seconds(step_ms)).collect(),
            phases: bands.collect(),
        }
    }

    /// A run on this axis.
    pub fn rows(&self, series: &Series) -> Vec<StepRow> {
        let ruler = Histogram::new();
        steps(series, self.step_ms, self.time.len() as u64, self.end_ms)
            .iter()
            .map(|step| row(step, &ruler))
            .collect()
    }
}

fn row(step: &Step<'_>, ruler: &Histogram) -> StepRow {
    let (robots, origins) = (&step.robots, &step.origins);
    let all = MergedTimes::new(step.all.iter().copied());
    let mean_ms =
        |times: &[&SparseHistogram]| MergedTimes::new(times.iter().copied()).mean_us().map(|us| us / 1000.0);
    let percent = |ratio: HitRatio| ratio.measured.map(|share| share * 100.0);
    let level = |level: u64| (!step.lengths.is_empty()).then_some(level as f64);
    let megabits = |bytes: u64| step.per_second(bytes).map(|bytes| bytes * 8.0 / 1e6);
    let megabytes = |bytes: u64| step.per_second(bytes).map(|bytes| bytes / 1e6);
    let proxy = step.roles.get("proxy");
    StepRow {
        offered: step.per_second(robots.due),
        throughput: step.per_second(robots.completed),
        bandwidth_mbit_s: megabits(robots.wire_bytes_in),
        response_ms: all.mean_us().map(|us| us / 1000.0),
        hit_ms: mean_ms(&step.hit),
        miss_ms: mean_ms(&step.miss),
        p99_ms: all.quantile_us(0.99, ruler).map(|us| us / 1000.0),
        dhr_percent: percent(HitRatio::of_documents(robots, origins)),
        bhr_percent: percent(HitRatio::of_bytes(robots, origins)),
        connections: level(step.levels.connections),
        origin_connections: level(step.origin_connections),
        origin_throughput: step.per_second(origins.responses),
        origin_mbit_s: megabits(origins.wire_bytes_out),
        origin_ms: mean_ms(&step.origin_service),
        cpu: proxy.filter(|used| used.watched_us > 0).map(|used| used.cpu_us as f64 / used.watched_us as f64),
        memory_mb: proxy.map(|used| used.rss_bytes as f64 / f64::from(1 << 20)),
        disk_mb_s: step.store_disk_bytes.and_then(megabytes),
    }
}

/// The charts of one workload under one condition.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartGroup {
    pub title: String,
    pub axis: ComparisonAxis,
    pub charts: Vec<Chart>,
    /// Small ones, that are read side by side: one for each phase.
    pub phases: Vec<Chart>,
}
