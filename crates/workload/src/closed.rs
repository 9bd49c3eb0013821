//! What does a best-effort robot ask for next? A pure function of the robot, the phase and its own counts.

use crate::launch::Launch;
use crate::model::RobotIndex;
use crate::universe::Universe;

/// One best-effort robot's place in its stream.
#[derive(Debug, Clone)]
pub struct ClosedRobot {
    robot: RobotIndex,
}

impl ClosedRobot {
    /// A robot that has asked for nothing yet and is in the first phase.
    pub fn new(universe: &Universe, robot: RobotIndex) -> Self {
        let _ = universe;
        Self { robot }
    }

    /// Begins a phase (its index in the schedule). Phases are entered in order; going back is ignored.
    pub fn enter_phase(&mut self, universe: &Universe, phase: u16) {
        let _ = (universe, phase);
    }

    /// The next request; `due` is zero, for the caller to set.
    pub fn next(&mut self, universe: &Universe) -> Launch {
        let _ = (universe, self.robot);
        unimplemented!()
    }

    /// The working set stops growing here; later calls change nothing.
    pub fn freeze(&mut self) {}

    /// Requests so far in each phase that was entered, in order.
    pub fn counts(&self) -> &[u64] {
        &[]
    }

    /// Requests that had been made when the working set froze.
    pub fn frozen_at(&self) -> Option<u64> {
        None
    }

    /// Imposes the counts of earlier phases (and of the freeze) as another run had them, and enters the phase
    /// after them.
    pub fn resume(&mut self, universe: &Universe, counts: &[u64], frozen_at: Option<u64>) {
        let _ = (universe, counts, frozen_at);
    }
}
