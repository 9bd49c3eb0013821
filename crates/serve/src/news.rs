//! What a watcher is told while a run goes on. What the lab tells everybody, in the words of the record.

use std::path::PathBuf;

use assay_measurement::adapted::Adapted;
use assay_measurement::doubt::Doubt;
use assay_measurement::health::{NetworkInterval, Stall, ThreadInterval};
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval};
use assay_record::run::{PhaseInfo, TargetInfo};
use assay_role::message::ProxyCounters;

/// Where a run is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stage {
    /// Before its first request.
    #[default]
    Preparing,
    /// The schedule goes on.
    Running,
    /// Stopping was requested: what is under way may finish.
    Draining,
    /// Everything is being stopped and collected.
    Collecting,
    /// Everything is stopped and written.
    Finished,
}

impl Stage {
    /// All of them, in their order.
    pub const ALL: [Stage; 5] =
        [Stage::Preparing, Stage::Running, Stage::Draining, Stage::Collecting, Stage::Finished];

    /// Its name as a label.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Preparing => "preparing",
            Stage::Running => "running",
            Stage::Draining => "draining",
            Stage::Collecting => "collecting",
            Stage::Finished => "finished",
        }
    }
}

/// One thing that happened.
#[derive(Debug, Clone)]
pub enum News {
    /// The run directory is there.
    Planned(PathBuf),
    /// The run has come to another stage.
    Stage(Stage),
    /// Everybody is ready.
    Started {
        /// The planned phases.
        phases: Vec<PhaseInfo>,
        /// What is under test.
        target: Box<TargetInfo>,
        /// Start of the schedule, Unix time in milliseconds.
        started_unix_ms: u64,
    },
    /// Robots' measurements of an interval.
    Robots(Box<RobotInterval>),
    /// Origins' measurements of an interval.
    Origins(Box<OriginInterval>),
    /// What a role, the proxy or the machine used in an interval.
    Host(Box<HostInterval>),
    /// How a worker thread did in an interval.
    Thread(Box<ThreadInterval>),
    /// A worker thread stood still.
    Stall(Stall),
    /// What the network stack counted in an interval.
    Network(Box<NetworkInterval>),
    /// The target's own counters, cumulative.
    Proxy(Box<ProxyCounters>),
    /// A phase began.
    PhaseBegan {
        /// Its index.
        phase: u16,
        /// Milliseconds since the start of the run.
        at_ms: u64,
    },
    /// A phase ended.
    PhaseEnded {
        /// Its index.
        phase: u16,
    },
    /// How far a best-effort phase is, 0 to 1.
    Progress {
        /// Its index.
        phase: u16,
        /// 0 to 1.
        done: f64,
    },
    /// What was decided about load that adapts.
    Adapted(Box<Adapted>),
    /// Something outside the target went wrong, or is worth knowing.
    Doubt(Box<Doubt>),
}
