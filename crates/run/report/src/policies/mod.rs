//! Comparison of a web switch's policies: throughput over load with intervals, response times, balance between nodes,
//! and the gain over the first policy: from results of a simulation or of a cluster, in the same form.
//!
//! Intervals are Student's, 95 %, between repetitions; a gain is taken repetition by repetition, because in each of them all
//! policies got the same requests.

mod charts;
mod difference;
mod html;
mod nodes;
mod terminal;

use std::fmt;

use assay_record::cluster::{ClusterPoint, ClusterResult};
use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::student;

pub use difference::{ResultDifference, difference};
pub use html::page;
pub use nodes::nodes_csv;
pub use terminal::{difference_text, services_text, terminal_text};

/// An interval leaves out so much.
const TAIL: f64 = 0.05;

/// A mean over repetitions, and half of its interval's width.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanEstimate {
    pub mean: f64,
    /// Half of the width of its 95 % interval; none with a single repetition.
    pub half_width: Option<f64>,
    /// The standard deviation of single repetitions; none with one.
    pub deviation: Option<f64>,
}

impl MeanEstimate {
    /// Of values of repetitions; none of none.
    pub fn from_values(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let deviation = (values.len() > 1).then(|| {
            let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
            (squares / (count - 1.0)).sqrt()
        });
        let half_width =
            deviation.map(|deviation| student::quantile(TAIL, count - 1.0) * deviation / count.sqrt());
        Some(Self { mean, half_width, deviation })
    }

    /// The ends of the interval; the mean twice where there is none.
    pub fn ends(&self) -> (f64, f64) {
        let half = self.half_width.unwrap_or(0.0);
        (self.mean - half, self.mean + half)
    }
}

/// The point of the first policy under the same load.
pub fn baseline<'r>(result: &'r ClusterResult, of: &ClusterPoint) -> Option<&'r ClusterPoint> {
    result.points.iter().find(|point| point.is_beside(of))
}

/// Responses a second over those of the first policy, as a ratio; none for the first policy itself.
pub fn gain(result: &ClusterResult, point: &ClusterPoint) -> Option<MeanEstimate> {
    let base = baseline(result, point).filter(|base| base.policy != point.policy)?;
    let (own, first) = (&point.responses_per_s_by_repetition, &base.responses_per_s_by_repetition);
    let ratios: Vec<f64> = own.iter().zip(first).map(|(own, first)| own / first).collect();
    let interval = MeanEstimate::from_values(&ratios)?;
    // The ratio of the means is what the means beside it give; the interval is that of single repetitions.
    Some(MeanEstimate { mean: point.mean_per_s() / base.mean_per_s(), ..interval })
        .filter(|gain| gain.mean.is_finite())
}

/// Gain of a policy over the first one under the same load, as parts: here, and where both were measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredGain {
    /// Gain in this result.
    pub here: f64,
    /// As it was measured.
    pub measured: f64,
}

impl MeasuredGain {
    /// Here less as it was measured: 0.01 is a percentage point. Responses a second of two policies can each be a few per cent
    /// off, and the gain of one over the other, which is a few per cent itself, by a multiple of what it is.
    pub fn off(&self) -> f64 {
        self.here - self.measured
    }
}

/// The gain of a point, where its policy and the first one were both measured; none for the first policy itself.
pub fn measured_gain(result: &ClusterResult, point: &ClusterPoint) -> Option<MeasuredGain> {
    let here = gain(result, point)?.mean - 1.0;
    let measured = point.reference_per_s? / baseline(result, point)?.reference_per_s? - 1.0;
    measured.is_finite().then_some(MeasuredGain { here, measured })
}

/// A result with what follows from it: what `--json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct PoliciesDocument<'r> {
    schema: &'r str,
    origin: assay_record::cluster::Origin,
    name: &'r str,
    title: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    extends: Option<&'r str>,
    /// Which part of a measurement it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<assay_record::cluster_parts::Part>,
    seed: u64,
    repetitions: u32,
    warm_up_s: f64,
    measure_s: f64,
    points: Vec<PointDocument<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<ResultDifference>,
}

/// A combination, with what follows from its repetitions.
#[derive(Debug, Serialize, JsonSchema)]
struct PointDocument<'r> {
    /// Responses a second: the mean over repetitions.
    responses_per_s: f64,
    /// Half of the width of its 95 % interval; null with one repetition.
    responses_per_s_half_width: Option<f64>,
    /// Standard deviation between repetitions; null with one.
    responses_per_s_deviation: Option<f64>,
    /// Over the first policy under the same load, as a ratio; null for that policy.
    gain: Option<f64>,
    /// Half of the width of the interval of the repetitions' own ratios.
    gain_half_width: Option<f64>,
    /// The gain that was measured elsewhere, as a ratio.
    reference_gain: Option<f64>,
    /// The gain here less that one.
    gain_off: Option<f64>,
    /// Bodies of responses, in millions of bits a second.
    megabits_per_s: f64,
    #[serde(flatten)]
    point: &'r ClusterPoint,
}

/// The schema of what `--json` prints.
pub fn json_schema() -> serde_json::Value {
    schemars::schema_for!(PoliciesDocument<'_>).to_value()
}

/// The document of a result; and how far it is from another, if there is one.
pub fn document<'r>(result: &'r ClusterResult, other: Option<&ClusterResult>) -> PoliciesDocument<'r> {
    let point = |point: &'r ClusterPoint| {
        let gain = gain(result, point);
        let measured = measured_gain(result, point);
        let measured_per_s = MeanEstimate::from_values(&point.responses_per_s_by_repetition);
        let half_width = measured_per_s.and_then(|estimate| estimate.half_width);
        let deviation = measured_per_s.and_then(|estimate| estimate.deviation);
        PointDocument {
            responses_per_s: point.mean_per_s(),
            responses_per_s_half_width: half_width,
            responses_per_s_deviation: deviation,
            megabits_per_s: megabits_per_s(result, point),
            gain: gain.map(|gain| gain.mean),
            gain_half_width: gain.and_then(|gain| gain.half_width),
            reference_gain: measured.map(|gain| gain.measured + 1.0),
            gain_off: measured.map(|gain| gain.off()),
            point,
        }
    };
    PoliciesDocument {
        schema: &result.schema,
        origin: result.origin,
        name: &result.name,
        title: &result.title,
        extends: result.extends.as_deref(),
        part: result.part,
        seed: result.seed,
        repetitions: result.repetitions,
        warm_up_s: result.warm_up_s,
        measure_s: result.measure_s,
        points: result.points.iter().map(point).collect(),
        against: other.map(|other| difference(result, other)),
    }
}

/// Response bodies, in millions of bits a second.
pub fn megabits_per_s(result: &ClusterResult, point: &ClusterPoint) -> f64 {
    let seconds = result.measure_s * point.responses_per_s_by_repetition.len().max(1) as f64;
    if seconds > 0.0 { point.bytes as f64 * 8.0 / 1e6 / seconds } else { 0.0 }
}

/// Labels in the order in which they come first.
fn distinct<'r>(labels: impl Iterator<Item = &'r str>) -> Vec<&'r str> {
    let mut found: Vec<&str> = Vec::new();
    for label in labels {
        if !found.contains(&label) {
            found.push(label);
        }
    }
    found
}

/// A mix of requests on a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MixOnCluster<'r> {
    mix: &'r str,
    cluster: &'r str,
}

impl fmt::Display for MixOnCluster<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.mix, self.cluster)
    }
}

/// Mixes on clusters, in the order in which they come first.
fn mixes(result: &ClusterResult) -> Vec<MixOnCluster<'_>> {
    let mut found = Vec::new();
    for point in &result.points {
        let mix = MixOnCluster { mix: &point.mix, cluster: &point.cluster };
        if !found.contains(&mix) {
            found.push(mix);
        }
    }
    found
}

/// The points of a mix on a cluster.
fn points_of<'r>(result: &'r ClusterResult, mix: MixOnCluster<'r>) -> impl Iterator<Item = &'r ClusterPoint> {
    result.points.iter().filter(move |point| point.mix == mix.mix && point.cluster == mix.cluster)
}

#[cfg(test)]
mod tests;
