//! State of a run that a coordinator writes down, so that another one can take the run up.
//!
//! `coordinator.json` in the run directory. Everything else that a coordinator knows of a run is in the run's stream, from its
//! first message on. The file is written before each order that it has to explain later, once a second for the clocks, and
//! removed when the run has ended.

use std::collections::BTreeMap;
use std::path::Path;

use crate::machines::fleet::clock::Offset;
use crate::machines::fleet::message::{self, PROTOCOL};
use crate::machines::fleet::name::Name;
use crate::roles::RoleKind;
use assay_record::dir::{RunDir, RunDirError};
use serde::{Deserialize, Serialize};

use super::assignment::AgentAssignment;
use crate::machines::error::FleetError;

/// Name in the run directory.
pub const FILE: &str = "coordinator.json";

/// State of a run that goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedRun {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The version of Assay whose coordinator it was.
    pub version: String,
    /// The run, as agents know it.
    pub run: Name,
    /// The server; none: its URL has a password in it, which is not written down.
    pub url: Option<String>,
    /// Time for which agents go on without a coordinator, in milliseconds.
    pub wait_ms: u64,
    pub chosen: AgentAssignment,
    /// The roles, in the order in which they were started.
    pub roles: Vec<SavedRole>,
    /// The start that roles were told; none: none was.
    pub start: Option<SavedStart>,
    /// The clocks of the machines.
    pub clocks: BTreeMap<Name, SavedClock>,
    /// Last error of the clocks that robots were told, in nanoseconds.
    pub told_ns: u64,
    /// Time at which this was written, in nanoseconds of this machine's `CLOCK_MONOTONIC`.
    pub saved_ns: u64,
    /// Times without a coordinator before, in milliseconds since its start.
    pub away_ms: Vec<(u64, u64)>,
}

/// A role of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedRole {
    pub kind: RoleKind,
    pub parts: Vec<SavedPart>,
}

/// A part of a role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPart {
    /// The machine that it runs on.
    pub machine: Name,
    pub number: u32,
    /// The most threads that it has.
    pub threads: u32,
    /// First and last of its robots; none: it has none.
    pub robots: Option<(u32, u32)>,
}

/// Time at which the schedule begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedStart {
    /// On the coordinator's `CLOCK_MONOTONIC`, in nanoseconds.
    pub monotonic_ns: u64,
    /// On its wall clock, in seconds of Unix time.
    pub unix_s: u64,
    /// All roles were told.
    pub all_told: bool,
}

/// State of the clock of one machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedClock {
    /// The offset that its start was computed with.
    pub assumed_ns: Option<i64>,
    /// The narrowest that is known of the offset at the start.
    pub at_start: Option<Offset>,
    /// The greatest distance of an instant of its from the coordinator's scale; none: not known.
    pub worst_ns: Option<u64>,
    /// Time at which the last exchange was made, and what the offset was then.
    pub last: Option<(u64, Offset)>,
    /// Wall clock beyond the coordinator's, in microseconds.
    pub wall_ahead_us: Option<i64>,
}

/// State of a coordinator that cannot be written. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error("cannot write {FILE}: {0}")]
    Encode(serde_json::Error),
    #[error("cannot write {FILE}: {0}")]
    Write(RunDirError),
}

impl SavedRun {
    /// Writes it into a run directory; a reader sees the old one or the new one.
    pub fn write(&self, run_dir: &Path) -> Result<(), SaveError> {
        let text = serde_json::to_vec_pretty(self).map_err(SaveError::Encode)?;
        let dir = RunDir::open(run_dir).map_err(SaveError::Write)?;
        dir.write_whole(&run_dir.join(FILE), &text).map_err(SaveError::Write)
    }

    pub fn read(run_dir: &Path) -> Result<Self, FleetError> {
        let path = run_dir.join(FILE);
        let text = assay_base::files::bytes(&path, assay_base::files::DOCUMENT_MAX).map_err(|e| {
            FleetError::plan(format!(
                "there is no run to take up in {}: cannot read {FILE} ({e}); runs with --fleet have it until they end",
                run_dir.display()
            ))
        })?;
        message::read(&text).map_err(|e| FleetError::plan(format!("{}: {e}", path.display())))
    }

    /// The start in nanoseconds; none: nobody was told of one.
    pub fn start_ns(&self) -> Option<u64> {
        self.start.map(|start| start.monotonic_ns)
    }

    /// An instant of this machine's clock, in milliseconds since the start.
    pub fn ms_of(&self, at_ns: u64) -> u64 {
        at_ns.saturating_sub(self.start_ns().unwrap_or(at_ns)) / 1_000_000
    }
}

/// Nothing is known yet but who takes part.
pub fn first(run: Name, version: String, url: &str, wait_ms: u64, chosen: AgentAssignment) -> SavedRun {
    SavedRun {
        protocol: PROTOCOL,
        version,
        run,
        url: Some(url.to_owned()).filter(|url| !url.contains('@')),
        wait_ms,
        chosen,
        roles: Vec::new(),
        start: None,
        clocks: BTreeMap::new(),
        told_ns: 0,
        saved_ns: 0,
        away_ms: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::agent;
    use super::*;

    fn saved(url: &str) -> SavedRun {
        let one = agent("one");
        let chosen = AgentAssignment {
            robots: vec![one.clone()],
            origins: vec![one],
            proxy: None,
            robot_count: 1,
            origin_count: 1,
        };
        first("r1".parse().unwrap(), "0.1.0".into(), url, 15_000, chosen)
    }

    #[test]
    fn what_was_written_is_read_again_and_without_a_run_there_is_nothing_to_take_up() {
        let dir = tempfile::tempdir().unwrap();
        let error = SavedRun::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("no run to take up"), "{error}");
        std::fs::write(dir.path().join("run.json"), "{}").unwrap();
        let mut one = saved("nats://127.0.0.1:4222");
        let part = SavedPart { machine: "one".parse().unwrap(), number: 0, threads: 2, robots: Some((0, 0)) };
        one.roles = vec![SavedRole { kind: RoleKind::Proxy(0), parts: vec![part] }];
        one.start = Some(SavedStart { monotonic_ns: 5_000_000, unix_s: 7, all_told: true });
        one.write(dir.path()).unwrap();
        assert_eq!(SavedRun::read(dir.path()).unwrap(), one);
        assert_eq!(one.ms_of(9_000_000), 4);
        std::fs::write(dir.path().join(FILE), r#"{"protocol": 99, "version": "9.0"}"#).unwrap();
        let error = SavedRun::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("Assay 9.0 (protocol 99)"), "{error}");
    }

    #[test]
    fn a_password_in_the_url_is_not_written_down() {
        assert_eq!(saved("nats://ann:secret@10.0.0.1:4222").url, None);
        assert!(saved("nats://10.0.0.1:4222").url.is_some());
    }
}
