//! Events of a run in progress, for the terminal and for watchers from outside: measurements and phases as roles report them,
//! and the work of the lab.

use std::net::SocketAddr;
use std::path::PathBuf;

use assay_measurement::doubt::Doubt;
use assay_measurement::measured::Measured;
use assay_protocol::message::PhaseEvent;

use crate::run::{PhaseInfo, TargetInfo};

/// Stage of the work before the first request and after the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Plan checked, run directory made.
    Planned { run_dir: PathBuf },
    /// Links are being measured.
    TestingLinks,
    /// Origins are being started.
    StartingOrigins,
    /// The target is being started.
    StartingTarget {
        /// Name and version.
        name: String,
    },
    /// A response of the target is complete.
    TargetReady { address: SocketAddr },
    /// Robots are being started.
    StartingRobots,
    /// The user asked to stop: nothing new is sent, what is under way may finish.
    Draining,
    /// Everything is being stopped and collected.
    Collecting,
}

/// Event of a run, in the order in which the lab learned of it.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// Set-up and clearing away.
    Stage(Stage),
    /// All roles are ready; the schedule is about to begin.
    Started {
        phases: Vec<PhaseInfo>,
        /// Target under test.
        target: TargetInfo,
        /// Start of the schedule, Unix time in milliseconds.
        started_unix_ms: u64,
    },
    Measured(Measured),
    /// Progress of the schedule.
    Phase(PhaseEvent),
    /// A fault outside the target; the run is invalid.
    Doubt(Box<Doubt>),
    /// Everything is stopped and written. Last event.
    Finished,
}
