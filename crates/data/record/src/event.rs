//! What a run tells while it goes on, to the terminal and to whoever watches from outside: the measurements and phases that roles
//! report, as they report them, and what the lab does.

use std::net::SocketAddr;
use std::path::PathBuf;

use assay_measurement::doubt::Doubt;
use assay_measurement::measured::Measured;
use assay_protocol::message::PhaseEvent;

use crate::run::{PhaseInfo, TargetInfo};

/// What is being done before the first request and after the last.
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
        /// Its name and version.
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

/// One thing that happened in a run, in the order in which the lab learned of it.
#[derive(Debug, Clone)]
pub enum RunEvent {
    /// Set-up and clearing away.
    Stage(Stage),
    /// Everybody is ready; the schedule begins in an instant.
    Started {
        phases: Vec<PhaseInfo>,
        /// What is under test.
        target: TargetInfo,
        /// Start of the schedule, Unix time in milliseconds.
        started_unix_ms: u64,
    },
    /// Something that was measured.
    Measured(Measured),
    /// How far the schedule is.
    Phase(PhaseEvent),
    /// Something outside the target went wrong; the run is invalid.
    Doubt(Box<Doubt>),
    /// Everything is stopped and written. Last event.
    Finished,
}
