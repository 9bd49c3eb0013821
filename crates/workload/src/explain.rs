//! What does this workload mean? In plain words, with numbers and units.

use crate::model::Workload;
use crate::timeline::Timeline;

/// A workload in plain words, a line each.
pub fn explain(workload: &Workload, timeline: &Timeline) -> Vec<String> {
    let _ = (workload, timeline);
    unimplemented!()
}
