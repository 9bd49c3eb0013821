//! `experiment.json`: which cells an experiment has, how each ended, and where its run directory is.
//!
//! An experiment is workloads × subjects × conditions × repetitions. A *subject* is a proxy with its settings; a
//! *condition* is what all subjects meet alike (links, processors, limits). A *cell* is one run of that product.
//! Cells of one repetition and workload have the same seed, so all subjects get the very same stream.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the experiment directory's layout.
pub const EXPERIMENT_SCHEMA: &str = "assay-experiment/1";

/// The head of an experiment directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ExperimentInfo {
    /// [`EXPERIMENT_SCHEMA`].
    pub schema: String,
    /// Its name: that of its file.
    pub name: String,
    /// A sentence that says what it is to find out.
    pub title: String,
    /// Version of Assay.
    pub assay_version: String,
    /// The command line, as typed.
    pub command: Vec<String>,
    /// When it was begun, Unix time in milliseconds.
    pub started_unix_ms: u64,
    /// Seed of the order of cells; repetition *r* (from 1) runs its workloads with seed + *r* − 1.
    pub seed: u64,
    /// Length of each run's schedule, in seconds, where it was squeezed.
    pub rehearse_s: Option<f64>,
    /// Repetitions of each combination.
    pub repetitions: u32,
    /// Workloads, in the order of the file.
    pub workloads: Vec<String>,
    /// Subjects, in the order of the file; the first is what the others are compared with.
    pub subjects: Vec<SubjectInfo>,
    /// Conditions, in the order of the file.
    pub conditions: Vec<ConditionInfo>,
    /// Every cell, in the order in which they run.
    pub cells: Vec<CellInfo>,
    /// True once every cell was tried.
    pub finished: bool,
}

/// A proxy with its settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SubjectInfo {
    /// What it is called in tables.
    pub label: String,
    /// The proxy: a description's name, `builtin` or `direct`.
    pub proxy: String,
    /// What it says its version is; empty until a cell of it has run.
    pub version: String,
    /// Settings by name, as written in the experiment.
    pub settings: BTreeMap<String, String>,
}

/// What all subjects meet alike.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ConditionInfo {
    /// What it is called in tables; `plain` when the experiment names none.
    pub label: String,
    /// What it sets, by name, as written in the experiment.
    pub settings: BTreeMap<String, String>,
}

/// One run of an experiment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CellInfo {
    /// Its name, and that of its directory.
    pub id: String,
    /// Name of its workload, as in [`ExperimentInfo::workloads`].
    pub workload: String,
    /// Label of its subject.
    pub subject: String,
    /// Label of its condition.
    pub condition: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Seed of its workload.
    pub seed: u64,
    /// How it stands.
    pub state: CellState,
    /// Why it failed, or why its numbers are not to be trusted: the last words.
    pub why: Option<String>,
    /// What its target did wrong, whatever was required of it: responses that were wrong or did not come. Its numbers stand.
    pub fault: Option<String>,
    /// Its run directory, relative to the experiment's; none until it has been tried.
    pub run: Option<String>,
    /// How often it was tried.
    pub tries: u32,
}

/// How a cell stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// Not tried yet, or interrupted.
    #[default]
    Waiting,
    /// Runs now (or Assay was killed while it did).
    Running,
    /// Ended, and its numbers can be trusted.
    Done,
    /// Ended, but Assay or the lab could have shaped its numbers.
    Invalid,
    /// Did not end as it should: the proxy died, say.
    Failed,
}
