//! A run from start to end.

use tokio::sync::{mpsc, watch};

use crate::error::LabError;
use crate::event::LabEvent;
use crate::plan::{RunOutcome, RunPlan};

/// Runs a plan. `stop` turning true drains the run and ends it early, marked partial; dropping the future kills
/// everything that was started.
pub async fn run(
    plan: RunPlan,
    events: mpsc::UnboundedSender<LabEvent>,
    stop: watch::Receiver<bool>,
) -> Result<RunOutcome, LabError> {
    let _ = (plan, events, stop);
    Err(LabError::run("not there yet"))
}
