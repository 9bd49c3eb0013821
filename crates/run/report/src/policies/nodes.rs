//! Utilisation of each node, second by second: charts for the page, comma-separated values, and measurements of nodes
//! elsewhere.

use std::fmt::Write;

use crate::chart::{Chart, ChartLine, time_chart};
use crate::compare::subject_style;
use assay_measurement::declared::Described;
use assay_record::cluster::{ClusterPoint, ClusterResult, NodeReference, NodeUse};

use super::terminal;

/// Nodes that a chart has lines for; the rest are in the comma-separated values.
const DRAWN: usize = 8;
/// Scenes with up to so many points have the charts of all of them, others those of one.
pub(super) const FEW_POINTS: usize = 3;
/// Shares are drawn in per cent, with one place.
const PERCENT: f64 = 100.0;

/// A chart of each resource under one policy and load: its measurement, name, title and subject.
const RESOURCES: [(&str, &str, &str); 3] = [
    ("processor", "Processors of nodes", "the processors of each node"),
    ("disk", "Disks of nodes", "the disks of each node"),
    ("network", "Network of nodes", "the link of each node"),
];

/// The charts of a point, on the axis of this number; `name` tells them from those of other points.
pub(super) fn charts(point: &ClusterPoint, axis: usize, name: &str) -> Vec<Chart> {
    let one = |(key, title, subject): (&str, &str, &str)| {
        let line = |(node, series): (usize, &assay_record::cluster::NodeSeries)| {
            let values = series.get(key)?.iter().map(|share| Some((share * PERCENT * 10.0).round() / 10.0));
            let subject_style = subject_style(node);
            Some(ChartLine {
                dash: subject_style.dash,
                ..ChartLine::new(format!("node {node}"), subject_style.colour, values.collect())
            })
        };
        let lines: Vec<ChartLine> =
            point.node_series.iter().take(DRAWN).enumerate().filter_map(line).collect();
        let is_used = lines.iter().flat_map(|line| line.values.iter().flatten()).any(|share| *share > 0.0);
        let (load, more) = (terminal::load(point), more(point.node_series.len()));
        let about = format!(
            "Share of {subject} that was in use in each second of the first repetition, under {} with {load}.{more}",
            point.policy
        );
        let id = format!("nodes-{key}-{axis}-{name}");
        let title = format!("{title}: {}, {load}", point.policy);
        let chart = Chart { axis, ..time_chart("nodes", id, title, "%", about, lines) };
        is_used.then_some(chart)
    };
    RESOURCES.into_iter().filter_map(one).collect()
}

/// Sentence on the nodes that a chart leaves out.
fn more(nodes: usize) -> String {
    match nodes.checked_sub(DRAWN) {
        None | Some(0) => String::new(),
        Some(more) => format!(" {more} more nodes are not drawn; --csv writes them too."),
    }
}

/// Every node, second by second, as comma-separated values.
pub fn nodes_csv(result: &ClusterResult) -> String {
    let mut text = "mix,cluster,policy,clients,rate_per_s,node,second".to_owned();
    for field in NodeUse::FIELDS {
        text.push(',');
        text.push_str(field.name);
    }
    text.push('\n');
    for point in &result.points {
        let quoted = |text: &str| assay_base::quote::csv::quoted(text);
        let place = [&point.mix, &point.cluster, &point.policy].map(|label| quoted(label)).join(",");
        let clients = point.clients.map_or(String::new(), |clients| clients.to_string());
        let rate = point.rate_per_s.map_or(String::new(), |rate| rate.to_string());
        for (node, series) in point.node_series.iter().enumerate() {
            let seconds = series.values().map(Vec::len).max().unwrap_or(0);
            for second in 0..seconds {
                // Writing to a string cannot fail.
                let _ = write!(text, "{place},{clients},{rate},{node},{second}");
                for field in NodeUse::FIELDS {
                    let value = series.get(field.name).and_then(|values| values.get(second));
                    let _ = write!(text, ",{}", value.map_or(String::new(), f64::to_string));
                }
                text.push('\n');
            }
        }
    }
    text
}

/// Nodes that were measured elsewhere, beside what they are here: a sentence each.
pub(super) fn measured(result: &ClusterResult) -> Vec<String> {
    let of = |point: &ClusterPoint| -> Vec<String> {
        let one = |there: &NodeReference| sentence(point, there);
        point.reference_nodes.iter().filter_map(one).collect()
    };
    result.points.iter().flat_map(of).collect()
}

fn sentence(point: &ClusterPoint, there: &NodeReference) -> Option<String> {
    let here = point.nodes.get(there.node as usize)?;
    let one = |name: &str, here: f64, there: Option<f64>| {
        let share = there? * PERCENT;
        Some(format!("{name} {:.1} % busy, {share:.1} % measured", here * PERCENT))
    };
    let both = [one("processors", here.processor, there.processor), one("disks", here.disk, there.disk)];
    let said = both.into_iter().flatten().collect::<Vec<_>>().join("; ");
    Some(format!("node {}, {} with {}: {said}", there.node, point.policy, terminal::load(point)))
}
