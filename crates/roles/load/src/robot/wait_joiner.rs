//! Joining of snapshots with the target's waits for processors.
//!
//! # Waits of the target
//!
//! If the lab starts or watches the target, `host::metrics::waits` determines when its threads waited for processors that
//! others had, and how long these waits had an effect. Robots receive the waits ten times a second (`Command::Waits`, a
//! `measurement::waits::WaitReport`). Workers keep the instants of completed xacts until the end of the interval
//! (`load::tally::flights`); the coordinator holds their snapshots until it has the waits up to then, and adds to the
//! delays of each xact the waits that it can have met. `joined` counts these xacts; the rest of a phase, where they are
//! few, count as delayed by an unknown time.

use std::collections::VecDeque;
use std::time::Duration;

use assay_base::clock::SECOND_NS;
use assay_measurement::waits::{WaitReport, WaitTimeline};

use crate::tally::merge::WorkerSnapshot;

/// Longest time for which a snapshot is held. Waits that come later are of no use any more, and the times are recorded
/// without them.
const MAX_HOLD_NS: u64 = 2 * SECOND_NS;

/// Held snapshots, and the known waits of the target.
#[derive(Debug)]
pub struct WaitJoiner {
    waits: WaitTimeline,
    held: VecDeque<HeldSnapshot>,
    /// For how long waits are of use: no xact was sent longer ago than this, or was in line behind one that was.
    kept_ns: u64,
}

#[derive(Debug)]
struct HeldSnapshot {
    snapshot: Box<WorkerSnapshot>,
    /// Everything in it had ended by then.
    since_ns: u64,
}

impl WaitJoiner {
    /// For xacts that take no longer than `timeout`.
    pub fn new(timeout: Duration) -> Self {
        let kept_ns = u64::try_from(2 * timeout.as_nanos()).unwrap_or(u64::MAX).saturating_add(MAX_HOLD_NS);
        Self { waits: WaitTimeline::default(), held: VecDeque::new(), kept_ns }
    }

    /// Holds a snapshot that has just come.
    pub fn hold(&mut self, snapshot: Box<WorkerSnapshot>, now_ns: u64) {
        self.held.push_back(HeldSnapshot { snapshot, since_ns: now_ns });
    }

    /// Adds when the target waited.
    pub fn add(&mut self, report: &WaitReport) {
        self.waits.add(report);
        self.waits.forget_before(report.until_ns.saturating_sub(self.kept_ns));
    }

    /// Takes the snapshot that was held for longest, joined, if enough is known for that, or will not be any more.
    pub fn next_joined(&mut self, now_ns: u64) -> Option<WorkerSnapshot> {
        let first = self.held.front()?;
        let is_known = self.waits.known_until_ns().is_some_and(|until_ns| until_ns >= first.since_ns);
        if !is_known && now_ns < first.since_ns + MAX_HOLD_NS {
            return None;
        }
        let mut snapshot = self.held.pop_front()?.snapshot;
        snapshot.phases.iter_mut().for_each(|(_, recorder)| recorder.join(&self.waits));
        Some(*snapshot)
    }

    /// Number of held snapshots that are the last of their worker.
    pub fn last_held(&self) -> usize {
        self.held.iter().filter(|held| held.snapshot.last).count()
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::interval::RobotLevels;

    use super::*;
    use crate::tally::merge::IntervalEnd;

    fn snapshot(number: u64, last: bool) -> Box<WorkerSnapshot> {
        Box::new(WorkerSnapshot {
            number,
            interval_end: IntervalEnd { from_us: 0, to_us: 1_000_000, phase: 0, ends_phase: false },
            phases: Vec::new(),
            levels: RobotLevels::default(),
            ideal_events: Vec::new(),
            launched: Vec::new(),
            last,
        })
    }

    fn known(from_ns: u64, until_ns: u64) -> WaitReport {
        WaitReport { from_ns, until_ns, waits: Vec::new() }
    }

    #[test]
    fn a_handover_is_held_until_everything_is_known_of_its_time() {
        let mut wait_joiner = WaitJoiner::new(Duration::from_secs(1));
        wait_joiner.add(&known(0, 900));
        wait_joiner.hold(snapshot(0, false), 1_000);
        wait_joiner.hold(snapshot(1, true), 2_000);
        assert!(wait_joiner.next_joined(1_001).is_none());
        assert_eq!(wait_joiner.last_held(), 1);
        wait_joiner.add(&known(900, 1_500));
        assert_eq!(wait_joiner.next_joined(1_501).map(|snapshot| snapshot.number), Some(0));
        assert!(wait_joiner.next_joined(1_502).is_none());
        wait_joiner.add(&known(1_500, 2_000));
        assert_eq!(wait_joiner.next_joined(2_001).map(|snapshot| snapshot.number), Some(1));
        assert_eq!(wait_joiner.last_held(), 0);
    }

    #[test]
    fn nothing_is_held_for_ever() {
        let mut wait_joiner = WaitJoiner::new(Duration::from_secs(1));
        wait_joiner.hold(snapshot(0, true), 1_000);
        assert!(wait_joiner.next_joined(MAX_HOLD_NS).is_none());
        assert!(wait_joiner.next_joined(1_000 + MAX_HOLD_NS).is_some());
    }
}
