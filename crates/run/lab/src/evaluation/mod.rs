//! A simultaneous evaluation from start to end: the Collector, the proxies under test, the Multiplier, and what they leave.
//!
//! [`run()`] starts them in this order, each when the one before is ready, so that a proxy finds its listener open and a client
//! finds everybody there. It writes `spe.json` and `listeners.parquet` from what roles report, and leaves nothing running however
//! it ends. A proxy that ends by itself ends nothing else: its responses are missing, and that is its result.
//!
//! *Does not:* serve or compare anything (that is `assay-spe`).

mod check;
mod plan;
mod start;
mod supervisor;

use tokio::sync::{mpsc, watch};

use crate::LabError;
use supervisor::Evaluation;

/// Looks for what stands in the way of a plan, before anything is started.
pub use check::check;
pub use plan::{LISTENERS, SpeEvent, SpeOutcome, SpePlan, SpeProgress};

/// Evaluates until the plan's time is over or `stop` turns true; dropping the future kills everything that was started.
/// Call it on a runtime whose threads outlive it.
pub async fn run(
    plan: SpePlan,
    events: mpsc::UnboundedSender<SpeEvent>,
    stop: watch::Receiver<bool>,
) -> Result<SpeOutcome, LabError> {
    check(&plan)?;
    let mut evaluation = Evaluation::begin(plan, events)?;
    let ended = evaluation.drive(stop).await;
    evaluation.finish(ended).await
}
