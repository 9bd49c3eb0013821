//! Requirements, watched while a run goes on. Listens to it and tells how every requirement stands.

use std::sync::Arc;
use std::time::Duration;

use assay_measurement::measured::Measured;
use assay_protocol::message::PhaseEvent;
use assay_record::event::RunEvent;
use assay_report::require::{Requirement, RequirementState, RequirementStatus, RequirementTracker};
use tokio::sync::watch;

use crate::listeners::EventReceiver;

/// Interval at which the states of requirements are computed.
const LOOK: Duration = Duration::from_millis(500);

/// States of all requirements, in their order; empty before the start, and where nothing is required.
pub type RequirementStatuses = Arc<Vec<RequirementStatus>>;

/// Channel of the states.
pub fn channel() -> (watch::Sender<RequirementStatuses>, watch::Receiver<RequirementStatuses>) {
    watch::channel(RequirementStatuses::default())
}

/// Listens to a run until it ends, and tells how its requirements stand whenever that changes.
pub async fn listen(
    mut heard: EventReceiver,
    required: Vec<Requirement>,
    told: watch::Sender<RequirementStatuses>,
) {
    if required.is_empty() {
        return;
    }
    let mut watched = None;
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            event = heard.recv() => match event {
                Some(event) => take(&mut watched, &required, &event),
                None => return,
            },
            _ = look.tick() => {
                let Some(watched) = &watched else { continue };
                let now: RequirementStatuses = Arc::new(RequirementTracker::statuses(watched));
                told.send_if_modified(|before| {
                    let changed = *before != now;
                    *before = now;
                    changed
                });
            }
        }
    }
}

fn take(watched: &mut Option<RequirementTracker>, required: &[Requirement], event: &RunEvent) {
    if let RunEvent::Started { phases, .. } = event {
        *watched = Some(RequirementTracker::new(required, phases));
    }
    let Some(watched) = watched else { return };
    match event {
        RunEvent::Measured(Measured::Robots(interval)) => watched.add_robots(interval),
        RunEvent::Measured(Measured::Origins(interval)) => watched.add_origins(interval),
        RunEvent::Phase(PhaseEvent::Began { phase, at_ms }) => watched.phase_began(*phase, *at_ms),
        RunEvent::Phase(PhaseEvent::Ended { phase, at_ms, .. }) => watched.phase_ended(*phase, *at_ms),
        _ => {}
    }
}

/// Waits until a requirement has failed, whatever is still to come; gives it in words. Never ends when none does.
pub async fn failed(mut told: watch::Receiver<RequirementStatuses>) -> String {
    loop {
        let first =
            told.borrow_and_update().iter().find(|one| one.state == RequirementState::Failed).cloned();
        if let Some(one) = first {
            return format!("{} ({})", one.text, one.seen);
        }
        if told.changed().await.is_err() {
            // The run has ended, and how is known from its record.
            return std::future::pending().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::error_kind::ErrorKind;
    use assay_measurement::interval::RobotInterval;
    use assay_record::run::{PhaseInfo, TargetInfo};

    use super::*;
    use crate::listeners::Listeners;

    #[test]
    fn the_first_error_fails_a_run_that_may_have_none() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut listeners = Listeners::default();
            let (sender, told) = channel();
            let required = vec!["errors == 0".parse().unwrap()];
            let listening = listen(listeners.join(), required, sender);
            let phases = vec![PhaseInfo { name: "top".into(), ..PhaseInfo::default() }];
            let target = TargetInfo::default();
            listeners.send(RunEvent::Started { phases, target, started_unix_ms: 0 });
            let mut interval = RobotInterval { length_ms: 1000, ..RobotInterval::default() };
            interval.counts.due = 1;
            interval.counts.errors.insert(ErrorKind::Stale, 1);
            listeners.send(RunEvent::Measured(Measured::Robots(interval.into())));
            let words = tokio::select! {
                () = listening => unreachable!("somebody still tells"),
                words = failed(told) => words,
            };
            assert_eq!(words, "errors == 0 (1)");
        });
    }
}
