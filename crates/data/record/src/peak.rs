//! The result of the search for the highest rate at which a target keeps a promise. `peak.json` of a run directory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

/// Name of the file in a run directory.
pub const FILE: &str = "peak.json";

/// What became of a step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum StepOutcome {
    /// The promise was kept, whatever Assay and the machine did: every part of it holds everywhere in the interval of its number.
    #[default]
    Kept,
    /// It was broken, whatever they did: a part of it holds nowhere in that interval.
    Broken,
    /// In between; or the target was not given the load.
    Undecided,
}

impl StepOutcome {
    /// In a word.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A part of the promise, as a step showed it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Check {
    /// As it was written.
    pub text: String,
    /// What was seen, in words.
    pub seen: String,
    /// What became of it.
    pub outcome: StepOutcome,
    /// What was measured, in `unit`; none: nothing, or it is not known.
    pub value: Option<f64>,
    /// Whatever Assay and the machine did, it was not below this; none: not known.
    pub low: Option<f64>,
    /// … and not above this; none: nothing bounds it.
    pub high: Option<f64>,
    /// What it is compared with.
    pub limit: f64,
    /// `ms`, `ratio` (0 to 1), `per_second` or `count`.
    pub unit: String,
}

/// A stretch of constant rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Step {
    /// Rate that was requested, requests per second.
    pub rate_per_s: f64,
    /// When its measurement began, in milliseconds since the start of the run.
    pub from_ms: u64,
    /// When it ended.
    pub to_ms: u64,
    /// Requests that came due, per second.
    pub offered_per_s: f64,
    /// Requests that completed, per second.
    pub completed_per_s: f64,
    /// Errors over requests that ended.
    pub error_share: f64,
    /// Mean response time, from when a request was due; one that timed out or was never sent counts as long as it had
    /// waited. None: there was none.
    pub mean_ms: Option<f64>,
    /// Its median.
    pub p50_ms: Option<f64>,
    /// Its 99th percentile.
    pub p99_ms: Option<f64>,
    /// The most that robots and origins were late in the seconds that were judged, together.
    pub late_ms: f64,
    /// Which repetition this is of a step that was undecided; 0: none.
    pub repeats: u32,
    /// What became of it.
    pub outcome: StepOutcome,
    /// The parts of the promise.
    pub checks: Vec<Check>,
    /// Why it was not kept; empty: it was.
    pub why: String,
}

/// Something that could have been the limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Suspect {
    /// `assay`, `processor`, `disk`, `link`, `connections` or `target`.
    pub name: String,
    /// How much of it was used, 0 to 1; none: that cannot be said.
    pub used: Option<f64>,
    /// It was used up.
    pub is_full: bool,
    /// What was seen, in words.
    pub seen: String,
}

/// Where a limit lay by the first results, and by the rest, which do not agree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Shift {
    /// How many steps the first ones are.
    pub results_before: usize,
    /// By these.
    pub early: Between,
    /// By the rest.
    pub late: Between,
}

/// Rates between which a limit lies with a probability of 95 %, in requests per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Between {
    /// It is above this; none: nothing was kept.
    pub low: Option<f64>,
    /// It is below this; none: nothing was broken.
    pub high: Option<f64>,
}

/// The result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Peak {
    /// [`Peak::SCHEMA`].
    pub schema: String,
    /// Version of Assay.
    pub assay_version: String,
    /// Name of the workload.
    pub workload: String,
    /// Name of the target.
    pub target: String,
    /// The promise, part by part.
    pub promise: Vec<String>,
    /// The highest rate at which it was kept more often than not, as requests came due, per second; none: at no rate.
    pub peak_per_s: Option<f64>,
    /// The lowest rate above that at which it was broken; none: at no rate that was tried.
    pub broken_per_s: Option<f64>,
    /// The limit lies between this, in requests per second, and the next with a probability of 95 % at least, going by all
    /// steps; where it moved, that is the limit of the latter part. `peak_per_s` and `broken_per_s` lie within. None: no step
    /// says.
    pub low_per_s: Option<f64>,
    /// … and below this.
    pub high_per_s: Option<f64>,
    /// These two are near each other, and the limit was come to from above and from below.
    pub is_confirmed: bool,
    /// What was not kept above the peak is undecided: Assay or the machine may have been the reason, and the target may do more.
    pub is_own_limit: bool,
    /// The limit moved while it was looked for; none: fewer than two results on either side, or hardly more, speak for that.
    pub shift: Option<Shift>,
    /// Why the search ended, a sentence.
    pub ended: String,
    /// What was used up first, at the lowest rate that was not kept; the most likely first.
    pub suspects: Vec<Suspect>,
    /// Everything that was tried, in order.
    pub steps: Vec<Step>,
    /// Seconds at a constant rate before the first step.
    pub warm_s: f64,
    /// Length of a step in seconds.
    pub step_s: f64,
}

impl Peak {
    /// Name and version of this document.
    pub const SCHEMA: &'static str = "assay-peak/1";
}
