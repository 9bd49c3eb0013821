//! The size of WARD's core. The ward-analysis of every mix on every cluster.

use std::fmt::Write;

use assay_cluster::dispatch::policies::ward_analysis::{CoreCost, WardAnalysis, analyse};
use assay_cluster::simulate::{Experiment, HAND_OVER_S, PolicySpec, document_demands, ward_costs};
use serde::Serialize;

/// Version of the document.
const SCHEMA: &str = "assay-ward-analysis/1";

#[derive(Debug, Serialize)]
pub struct WardDocument<'a> {
    schema: &'static str,
    analyses: Vec<NodeCount<'a>>,
}

#[derive(Debug, Serialize)]
struct NodeCount<'a> {
    mix: &'a str,
    cluster: &'a str,
    hand_over_s: f64,
    best: WardSum,
    no_core: WardSum,
    full_core: WardSum,
}

/// A core and what it costs, for a million requests.
#[derive(Debug, Serialize)]
struct WardSum {
    core_documents: usize,
    core_bytes: u64,
    partitioned_documents: usize,
    hand_over_s: f64,
    disk_s: f64,
    load_s: f64,
}

impl From<CoreCost> for WardSum {
    fn from(cost: CoreCost) -> Self {
        Self {
            core_documents: cost.core_documents,
            core_bytes: cost.core_bytes,
            partitioned_documents: cost.partitioned_documents,
            hand_over_s: cost.hand_over_s,
            disk_s: cost.disk_s,
            load_s: cost.load_s,
        }
    }
}

fn all(experiment: &Experiment) -> Vec<(&str, &str, f64, WardAnalysis)> {
    let said = experiment.policies.iter().find_map(|policy| match policy.choice {
        PolicySpec::Ward { hand_over_s } => Some(hand_over_s),
        _ => None,
    });
    let hand_over_s = said.unwrap_or(HAND_OVER_S);
    let mut found = Vec::new();
    for mix in &experiment.mixes {
        for cluster in &experiment.clusters {
            if let Some(costs) = ward_costs(cluster, hand_over_s) {
                let analysis = analyse(&document_demands(experiment, mix), &costs);
                found.push((mix.label.as_str(), cluster.label.as_str(), hand_over_s, analysis));
            }
        }
    }
    found
}

pub fn document(experiment: &Experiment) -> WardDocument<'_> {
    let one = |(mix, cluster, hand_over_s, analysis): (_, _, _, WardAnalysis)| NodeCount {
        mix,
        cluster,
        hand_over_s,
        best: analysis.best.into(),
        no_core: analysis.no_core.into(),
        full_core: analysis.full_core.into(),
    };
    WardDocument { schema: SCHEMA, analyses: all(experiment).into_iter().map(one).collect() }
}

/// For people.
pub fn text(experiment: &Experiment) -> String {
    let mut text =
        String::from("What a million requests would cost, in seconds of hand-over, disk and loading.\n");
    for (mix, cluster, hand_over_s, analysis) in all(experiment) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{mix}, {cluster}; a hand-over costs {:.0} µs", hand_over_s * 1e6);
        let _ = writeln!(
            text,
            "{:<14} {:>9} {:>9} {:>11} {:>10} {:>10} {:>10}",
            "", "documents", "core MB", "partitioned", "hand-over", "disk", "loading"
        );
        let rows = [
            ("best core", analysis.best),
            ("no core", analysis.no_core),
            ("largest core", analysis.full_core),
        ];
        for (name, cost) in rows {
            let _ = writeln!(
                text,
                "{name:<14} {:>9} {:>9.1} {:>11} {:>10.1} {:>10.1} {:>10.1}",
                cost.core_documents,
                cost.core_bytes as f64 / f64::from(1 << 20),
                cost.partitioned_documents,
                cost.hand_over_s,
                cost.disk_s,
                cost.load_s
            );
        }
    }
    text
}
