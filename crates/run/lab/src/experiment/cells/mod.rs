//! Experiments: which proxies are compared, on what, under which conditions, how often, and in which order.
//!
//! An [`Experiment`] is read from a TOML file (`docs/reference/experiments.md`): workloads × subjects × conditions ×
//! repetitions. [`cells`] puts its cells in order; [`drive()`] runs them, one after the other, into an
//! [`ExperimentDir`], and can go on where it was interrupted.
//!
//! # Experiments
//!
//! *Subjects, conditions, cells.* An experiment is workloads × subjects × conditions × repetitions. A *subject* is a proxy with
//! its settings; a *condition* applies to all subjects alike: links, congestion control, processors, quotas. One run of the
//! product is a *cell*, and has a run directory like any other run. Repetition *r* runs with seed + *r* − 1, the same for all
//! subjects, so cells of one repetition have exactly the same stream and are compared in pairs.
//! `record::experiment::ExperimentInfo` (`experiment.json`) is what `lab::experiment` writes and `report` reads:
//!
//! ```text
//! EXPERIMENT DIR/   experiment.json · experiment.toml (as given) · cells/<cell>/ (run directories) · failed/<cell>-<try>/
//!                   comparison.json · comparison.html
//! ```
//!
//! *Driving.* `lab::experiment::cells` reads the file, orders the cells and runs them one by one; `assay` makes the plan of each, from the
//! same arguments as `assay run`. `experiment.json` is written as a whole after every step, so that it always has the state of each
//! cell: one that is `running` and has no process was interrupted. The limits of a proxy are enforced by a control group of its run.
//!
//! *Does not:* compile a workload (whoever calls [`drive()`] makes the plan of each cell), or compare what came out
//! (that is `assay-report`).

mod abort_policy;
mod cooldown;
mod directory;
mod drive;
mod order;
mod read;
mod resume;

use assay_workload::model::HttpVersion;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use assay_record::experiment::{ConditionInfo, SubjectInfo};

pub use assay_workload::overrides::multiply_rate;
pub use directory::ExperimentDir;
pub use drive::{
    CellActivity, CellEvent, CellVerdict, ExperimentOutcome, ExperimentRun, drive, expected, planned,
};
pub use order::{cells, info, world};
pub use resume::{MixedVersions, Resumed, differences, resume};

use crate::cgroup::Limits;
use crate::mode::Mode;
use crate::topology::{CacheChoice, CacheDefaults, TopologyChoice};
use crate::units::LinkChoice;

/// An experiment that cannot be read.
pub use assay_base::settings::Mistake as ExperimentError;

/// Experiment as its file describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// File's name, without folder and ending.
    pub name: String,
    /// The file as it was read.
    pub source: String,
    /// A sentence that says what it is to find out.
    pub title: String,
    pub workloads: Vec<WorkloadChoice>,
    /// Proxies to compare; the first is what the others are held against.
    pub subjects: Vec<Subject>,
    /// Conditions that apply to all of them alike.
    pub conditions: Vec<Condition>,
    /// Runs of each combination.
    pub repetitions: u32,
    /// Seed of the order, and of the workloads.
    pub seed: u64,
    /// Length that each schedule is squeezed into.
    pub rehearse: Option<Duration>,
    /// A rehearsal shrinks memory and disk too.
    pub scale_capacity: bool,
    /// A response that takes longer is an error.
    pub timeout: Duration,
    /// Longest wait for connections of the last cell to be gone.
    pub cool_down: Duration,
    /// Number of repetitions of a cell whose headline numbers are unknown, as a whole and with a cold cache.
    pub retries: u32,
    /// Take private worlds for public ones, as Web Polygraph does since 3.6.
    pub private_as_public: bool,
    /// Drop the system's page cache before each cell, where that is allowed.
    pub drop_page_cache: bool,
    /// Requirements on every cell, as written.
    pub requirements: Vec<String>,
    pub xact_log: bool,
}

/// A workload of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadChoice {
    /// Name in tables.
    pub label: String,
    /// A bundled workload's name, or a file (relative to the experiment's).
    pub workload: String,
    /// Factor of every rate.
    pub rate: f64,
}

/// A proxy with its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    /// Name in tables.
    pub label: String,
    /// `builtin`, `direct`, a description's name, or the file of one (relative to the experiment's).
    pub proxy: String,
    /// Mode in which it is addressed; none: its first way.
    pub mode: Option<Mode>,
    /// Memory for its cache.
    pub memory_bytes: u64,
    /// Disk for its cache.
    pub disk_bytes: u64,
    /// Settings that its description names.
    pub set: BTreeMap<String, String>,
    /// Several caches that work together; each is what the subject is where it does not say otherwise. None: one proxy.
    pub caches: Vec<CacheChoice>,
    /// All of this as written.
    pub written: BTreeMap<String, String>,
}

/// Condition that applies to all subjects alike.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Condition {
    /// Name in tables.
    pub label: String,
    /// Limits of the proxy's processes.
    pub limits: Limits,
    /// Processors of the proxy; empty: chosen.
    pub proxy_cpus: Vec<u32>,
    /// The link between robots and the proxy; none: as the workload says.
    pub robot_link: Option<LinkChoice>,
    /// The link between the proxy and the origins, likewise.
    pub origin_link: Option<LinkChoice>,
    /// Whether robots speak TLS to the proxy; none: as the workload says.
    pub robot_tls: Option<bool>,
    /// Whether origins speak TLS.
    pub origin_tls: Option<bool>,
    /// The version of HTTP that robots speak; none: as the workload says.
    pub robot_http: Option<HttpVersion>,
    /// The version that origins speak, likewise.
    pub origin_http: Option<HttpVersion>,
    /// Requests that a best-effort robot has under way at a time over HTTP/2; none: one.
    pub streams: Option<u32>,
    /// Requests say how urgent they are (RFC 9218).
    pub priorities: bool,
    /// TCP congestion control of all connections between roles; none: the system's.
    pub congestion: Option<String>,
    /// All of this as written.
    pub written: BTreeMap<String, String>,
}

impl Experiment {
    /// Reads one; `file` names it in messages, `name` is what it is called.
    pub fn read(file: &str, name: &str, text: &str) -> Result<Self, ExperimentError> {
        read::read(file, name, text)
    }

    /// The subject of a label.
    pub fn subject(&self, label: &str) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.label == label)
    }

    /// The condition of a label.
    pub fn condition(&self, label: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.label == label)
    }

    /// The workload of a label.
    pub fn workload(&self, label: &str) -> Option<&WorkloadChoice> {
        self.workloads.iter().find(|workload| workload.label == label)
    }
}

impl Subject {
    /// The caches that it is, where it is several.
    pub fn topology(&self) -> Option<TopologyChoice> {
        let usual = CacheDefaults {
            proxy: self.proxy.clone(),
            memory_bytes: self.memory_bytes,
            disk_bytes: self.disk_bytes,
            set: self.set.clone(),
        };
        let caches = self.caches.clone();
        (!caches.is_empty()).then(|| TopologyChoice {
            name: self.label.clone(),
            mode: self.mode,
            usual,
            caches,
        })
    }

    fn info(&self) -> SubjectInfo {
        let (label, proxy) = (self.label.clone(), self.proxy.clone());
        SubjectInfo { label, proxy, version: String::new(), settings: self.written.clone() }
    }
}

impl Condition {
    fn info(&self) -> ConditionInfo {
        ConditionInfo { label: self.label.clone(), settings: self.written.clone() }
    }
}

/// A file named in an experiment, as seen from here: below the folder that the experiment is in.
pub fn beside(experiment: &std::path::Path, named: &str) -> PathBuf {
    experiment.parent().unwrap_or(std::path::Path::new("")).join(named)
}
