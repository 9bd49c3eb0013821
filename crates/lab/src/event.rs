//! What a run tells while it goes on.

use std::net::SocketAddr;
use std::path::PathBuf;

use assay_measurement::adapted::Adapted;
use assay_measurement::doubt::Doubt;
use assay_measurement::error_kind::ErrorExample;
use assay_measurement::health::{Baseline, NetworkInterval, Stall, ThreadInterval};
use assay_measurement::interval::{HostInterval, OriginInterval, RobotInterval};
use assay_record::run::{PhaseInfo, TargetInfo};
use assay_role::message::ProxyCounters;

/// What is being done before the first request and after the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// Plan checked, run directory made.
    Planned {
        /// The run directory.
        run_dir: PathBuf,
    },
    /// Links are being measured.
    TestingLinks,
    /// Origins are being started.
    StartingOrigins,
    /// The target is being started.
    StartingTarget {
        /// Its name and version.
        name: String,
    },
    /// The target responded to a request.
    TargetReady {
        /// Where it listens.
        address: SocketAddr,
    },
    /// Robots are being started.
    StartingRobots,
    /// The user requested a stop: nothing new is sent, what is under way may finish.
    Draining,
    /// Everything is being stopped and collected.
    Collecting,
}

/// One thing that happened in a run, in the order in which the lab learned of it.
#[derive(Debug, Clone)]
pub enum LabEvent {
    /// Set-up and clearing away.
    Stage(Stage),
    /// Everybody is ready; the schedule begins in an instant.
    Started {
        /// The planned phases.
        phases: Vec<PhaseInfo>,
        /// What is under test.
        target: TargetInfo,
        /// Start of the schedule, Unix time in milliseconds.
        started_unix_ms: u64,
    },
    /// Robots' measurements of an interval.
    Robots(Box<RobotInterval>),
    /// Origins' measurements of an interval.
    Origins(Box<OriginInterval>),
    /// What a role, the proxy or the machine used in an interval.
    Host(Box<HostInterval>),
    /// How a worker thread of robots or origins did in an interval.
    Thread(Box<ThreadInterval>),
    /// A worker thread stood still.
    Stall(Stall),
    /// How quiet a worker's processor was before the run.
    Baseline(Box<Baseline>),
    /// What the network stack counted in an interval.
    Network(Box<NetworkInterval>),
    /// The target's own counters, cumulative.
    Proxy {
        /// Milliseconds since the start of the run.
        at_ms: u64,
        /// Counters; what the target does not count is 0.
        counters: ProxyCounters,
    },
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
        /// Milliseconds since the start of the run.
        at_ms: u64,
    },
    /// How far a best-effort phase with a count goal is, 0 to 1.
    Progress {
        /// Index of the phase.
        phase: u16,
        /// 0 to 1.
        done: f64,
    },
    /// What was decided about load that adapts.
    Adapted(Box<Adapted>),
    /// One of the first errors of its kind.
    Example(ErrorExample),
    /// Something outside the target went wrong; the run is invalid.
    Doubt(Box<Doubt>),
    /// Everything is stopped and written. Last event.
    Finished,
}
