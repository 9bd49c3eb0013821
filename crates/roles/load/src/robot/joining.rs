//! Handovers of workers, held until it is known when the target waited for processors: then the times in them are joined with
//! that. The parent watches the target and reports its waits a few times a second.
//!
//! # Waits of the target
//!
//! *Waits of the target.* If the lab starts or watches the target, `host::metrics::waits` determines when its threads waited for processors that
//! others had, and how long these waits had an effect. Robots receive the waits ten times a second (`Command::Waits`, a
//! `measurement::waits::WaitReport`). Workers keep the instants of completed xacts until the next cut (`load::tally::flights`); the conductor
//! holds their handover until it has the waits up to then (`load::robot::joining`), and adds to the delays of each xact the waits that it can
//! have met. `joined` counts these xacts; the rest of a phase, where they are few, count as delayed by an unknown time.

use std::collections::VecDeque;
use std::time::Duration;

use assay_base::clock::SECOND_NS;
use assay_measurement::waits::{WaitReport, WaitTimeline};

use crate::tally::merge::Handover;

/// How long a handover is held at most. What comes later is of no use any more, and the times are recorded as they were seen.
const PATIENCE_NS: u64 = 2 * SECOND_NS;

/// What is held, and what is known of the target.
#[derive(Debug)]
pub struct Joining {
    waits: WaitTimeline,
    held: VecDeque<Held>,
    /// For how long waits are of use: no xact was sent longer ago than this, or was in line behind one that was.
    kept_ns: u64,
}

#[derive(Debug)]
struct Held {
    handover: Box<Handover>,
    /// Everything in it had ended by then.
    since_ns: u64,
}

impl Joining {
    /// For xacts that take no longer than `timeout`.
    pub fn new(timeout: Duration) -> Self {
        let kept_ns = u64::try_from(2 * timeout.as_nanos()).unwrap_or(u64::MAX).saturating_add(PATIENCE_NS);
        Self { waits: WaitTimeline::default(), held: VecDeque::new(), kept_ns }
    }

    /// Holds a handover that has just come.
    pub fn hold(&mut self, handover: Box<Handover>, now_ns: u64) {
        self.held.push_back(Held { handover, since_ns: now_ns });
    }

    /// Adds when the target waited.
    pub fn add(&mut self, report: &WaitReport) {
        self.waits.add(report);
        self.waits.forget_before(report.until_ns.saturating_sub(self.kept_ns));
    }

    /// The handover that was held for longest, joined, if enough is known for that, or will not be any more.
    pub fn next_joined(&mut self, now_ns: u64) -> Option<Handover> {
        let first = self.held.front()?;
        let is_known = self.waits.known_until_ns().is_some_and(|until_ns| until_ns >= first.since_ns);
        if !is_known && now_ns < first.since_ns + PATIENCE_NS {
            return None;
        }
        let mut handover = self.held.pop_front()?.handover;
        handover.phases.iter_mut().for_each(|(_, recorder)| recorder.join(&self.waits));
        Some(*handover)
    }

    /// How many of the held ones are the last of their worker.
    pub fn last_held(&self) -> usize {
        self.held.iter().filter(|held| held.handover.last).count()
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::interval::RobotLevels;

    use super::*;
    use crate::tally::merge::Cut;

    fn handover(number: u64, last: bool) -> Box<Handover> {
        Box::new(Handover {
            number,
            cut: Cut { from_us: 0, to_us: 1_000_000, phase: 0, ends_phase: false },
            phases: Vec::new(),
            levels: RobotLevels::default(),
            notes: Vec::new(),
            launched: Vec::new(),
            last,
        })
    }

    fn known(from_ns: u64, until_ns: u64) -> WaitReport {
        WaitReport { from_ns, until_ns, waits: Vec::new() }
    }

    #[test]
    fn a_handover_is_held_until_everything_is_known_of_its_time() {
        let mut joining = Joining::new(Duration::from_secs(1));
        joining.add(&known(0, 900));
        joining.hold(handover(0, false), 1_000);
        joining.hold(handover(1, true), 2_000);
        assert!(joining.next_joined(1_001).is_none());
        assert_eq!(joining.last_held(), 1);
        joining.add(&known(900, 1_500));
        assert_eq!(joining.next_joined(1_501).map(|handover| handover.number), Some(0));
        assert!(joining.next_joined(1_502).is_none());
        joining.add(&known(1_500, 2_000));
        assert_eq!(joining.next_joined(2_001).map(|handover| handover.number), Some(1));
        assert_eq!(joining.last_held(), 0);
    }

    #[test]
    fn nothing_is_held_for_ever() {
        let mut joining = Joining::new(Duration::from_secs(1));
        joining.hold(handover(0, true), 1_000);
        assert!(joining.next_joined(PATIENCE_NS).is_none());
        assert!(joining.next_joined(1_000 + PATIENCE_NS).is_some());
    }
}
