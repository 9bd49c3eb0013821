//! Difference between two results, point by point: a cluster and its simulation, say.

use assay_record::cluster::{ClusterPoint, ClusterResult};
use schemars::JsonSchema;
use serde::Serialize;

/// One result against another.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Against")]
pub struct ResultDifference {
    /// What the other is called.
    pub name: String,
    /// Points that both have.
    pub points: Vec<PointDifference>,
    /// How far they are apart on average, as a part.
    pub average: Option<f64>,
    /// How far at most.
    pub most: Option<f64>,
}

/// A point of both.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Off")]
pub struct PointDifference {
    /// What was requested.
    pub mix: String,
    /// On which nodes.
    pub cluster: String,
    /// Under which policy.
    pub policy: String,
    /// Clients in a closed loop, if it was one.
    pub clients: Option<u32>,
    /// Requests offered in a second, if it was an open loop.
    pub rate_per_s: Option<f64>,
    /// Responses a second here.
    pub responses_per_s: f64,
    /// Responses a second there.
    pub other_per_s: f64,
    /// Here over there, less 1.
    pub off: f64,
}

/// Holds a result against another.
pub fn difference(result: &ClusterResult, other: &ClusterResult) -> ResultDifference {
    let beside = |point: &ClusterPoint| {
        let same = |there: &&ClusterPoint| there.is_beside(point) && there.policy == point.policy;
        let there = other.points.iter().find(same)?;
        let (here_per_s, other_per_s) = (point.mean_per_s(), there.mean_per_s());
        (other_per_s > 0.0).then(|| PointDifference {
            mix: point.mix.clone(),
            cluster: point.cluster.clone(),
            policy: point.policy.clone(),
            clients: point.clients,
            rate_per_s: point.rate_per_s,
            responses_per_s: here_per_s,
            other_per_s,
            off: here_per_s / other_per_s - 1.0,
        })
    };
    let points: Vec<PointDifference> = result.points.iter().filter_map(beside).collect();
    let sizes = || points.iter().map(|point| point.off.abs());
    let average = (!points.is_empty()).then(|| sizes().sum::<f64>() / points.len() as f64);
    let most = sizes().reduce(f64::max);
    ResultDifference { name: other.name.clone(), average, most, points }
}
