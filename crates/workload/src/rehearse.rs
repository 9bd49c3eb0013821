//! How is a schedule made shorter without making it another? Every duration, volume and count is scaled alike.

use std::time::Duration;

use crate::model::Workload;
use crate::timeline::ScheduleError;

/// The workload with a schedule that takes `total`, and the scale that was used.
pub fn rehearse(workload: &Workload, total: Duration) -> Result<(Workload, f64), ScheduleError> {
    let _ = (workload, total);
    unimplemented!()
}
