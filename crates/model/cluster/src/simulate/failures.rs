//! Parses a `[[failure]]` of a cluster file: a node that exists fails before the simulation ends.

use std::time::Duration;

use crate::dispatch::ServerId;
use assay_base::settings::{Fields, Mistake, Value};

use crate::simulate::experiment::{Cluster, NodeFailure};
use crate::simulate::read::{MOST_NODES, seconds};

/// Fields of a failure.
pub(crate) const KNOWN: [&str; 3] = ["node", "at", "lasts"];

/// Parses a failure; the simulation ends after `end_s`.
pub(crate) fn read(fields: &Fields<'_>, clusters: &[Cluster], end_s: f64) -> Result<NodeFailure, Mistake> {
    Ok(NodeFailure {
        node: node(&fields.need("node", "its number, from 0")?, clusters)?,
        at_s: begin(&fields.need("at", "when it fails, like 20s")?, end_s)?,
        lasts_s: fields.get("lasts").map(|value| seconds(&value)).transpose()?,
    })
}

/// A node that some of the clusters have; the others are simulated without this failure.
fn node(value: &Value<'_>, clusters: &[Cluster]) -> Result<ServerId, Mistake> {
    let number = value.whole(0, MOST_NODES)?;
    let most = clusters.iter().map(Cluster::size).max().unwrap_or(0);
    if number < most {
        return Ok(ServerId(number as u32));
    }
    let last = most.saturating_sub(1);
    Err(value.wrong(&format!("there is no node {number}; the last node of the largest cluster is {last}")))
}

fn begin(value: &Value<'_>, end_s: f64) -> Result<f64, Mistake> {
    let at_s = seconds(value)?;
    if at_s < end_s {
        return Ok(at_s);
    }
    // Durations are written as cluster files have them, like 90s.
    let end = Duration::try_from_secs_f64(end_s).unwrap_or(Duration::MAX);
    Err(value.wrong(&format!(
        "the simulation has ended by then: `warm-up` and `measure` are {end:?} together; take an earlier time, or a longer `measure`"
    )))
}
