//! A second of a run on one line. For pipes, logs and terminals without colour.

use super::state::LiveState;
use assay_base::settings::show::count;

use super::words::{clock, percent, quantile, rate};

/// The last second of the run in one line, without a line end; response times and hit ratio are of the last few.
pub fn line(state: &LiveState) -> String {
    let mut parts = vec![format!("{:>6}", clock(state.now_ms))];
    let Some(phase) = state.current() else {
        parts.push(state.stage.clone());
        return parts.join("  ");
    };
    // First, so that no line is too long for them to be seen.
    parts.extend(state.own.alarms(state.now_ms));
    parts.push(state.name_and_done(phase));
    if let Some(second) = state.last_second() {
        parts.push(format!("{}/s of {}/s", rate(second.measured()), rate(second.offered())));
    }
    let recent = state.recent();
    parts.push(format!(
        "response hit p50 {} p99 {}, miss p50 {} p99 {}",
        quantile(&recent.hit, 0.5),
        quantile(&recent.hit, 0.99),
        quantile(&recent.miss, 0.5),
        quantile(&recent.miss, 0.99)
    ));
    parts.push(format!("DHR {} of ideal {}", percent(recent.dhr.measured), percent(recent.dhr.ideal)));
    if state.levels.waiting > 0 || state.unsent() > 0 {
        parts.push(format!("waiting {} unsent {}", count(state.levels.waiting), count(state.unsent())));
    }
    let errors: u64 = state.errors().iter().map(|(_, n)| n).sum();
    parts.push(format!("errors {}", count(errors)));
    parts.push(format!("late p99 {}", quantile(&recent.lateness, 0.99)));
    parts.join("  ")
}
