//! The JSON document of a comparison: what `comparison.json` holds.
//!
//! Null says that there is nothing to measure or to say; a number is always a number. Fields are only ever added.

use std::collections::BTreeMap;

use assay_record::experiment::ConditionInfo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chart_group::ChartGroup;
use super::gate::Gate;
pub use super::metric::{Direction, MetricGroup};
use crate::document::Mood;

/// Version of the document.
pub const COMPARISON_SCHEMA: &str = "assay-comparison/1";

/// The runs of an experiment, or runs that were named, compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Assay comparison")]
pub struct Comparison {
    /// `assay-comparison/1`.
    pub schema: String,
    /// Name of the experiment.
    pub name: String,
    /// What it is to find out.
    pub title: String,
    /// The experiment directory; empty: runs were named one by one.
    pub experiment: String,
    /// Version of Assay that ran it.
    pub assay_version: String,
    /// Its command line, as typed.
    pub command: Vec<String>,
    /// When it was begun, Unix time in milliseconds.
    pub started_unix_ms: u64,
    /// False: some cells have not been tried yet.
    pub finished: bool,
    /// Length of each run's schedule in seconds, where it was squeezed.
    pub rehearse_s: Option<f64>,
    /// Repetitions that were requested.
    pub repetitions: u32,
    /// Seed of the experiment.
    pub seed: u64,
    /// The chance that a table has even one false "better" or "worse" in it is at most this.
    pub error_probability: f64,
    /// Runs that a verdict needs, of each subject.
    pub fewest_runs: u32,
    /// What was compared; the first is what the others are compared with.
    pub subjects: Vec<Subject>,
    /// What all subjects met alike.
    pub conditions: Vec<ConditionInfo>,
    /// Workloads.
    pub workloads: Vec<String>,
    /// What differs between the subjects.
    pub differences: Vec<SettingDifference>,
    /// Why some or all of it cannot be compared: their requests differ. Such differences have no verdict.
    #[serde(default)]
    pub incomparable: Vec<String>,
    /// The comparison in words.
    pub verdict: Vec<Conclusion>,
    /// What came of holding tolerances against it; null: there were none.
    #[serde(default)]
    pub gate: Option<Gate>,
    /// Every run that was given, those that are left out among them.
    #[serde(default)]
    pub runs: Vec<ComparedRun>,
    /// The better performer of each scenario. All verdicts in it, between any two subjects, hold together.
    pub scenarios: Vec<Scenario>,
    /// Every metric of every phase. The verdicts of a table hold together, but for those that are the scenarios'.
    pub tables: Vec<MetricTable>,
    /// Cells whose numbers do not count, and why.
    pub left_out: Vec<ExcludedCell>,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// What the page's charts show; not part of the document.
    #[serde(skip)]
    #[schemars(skip)]
    pub chart_groups: Vec<ChartGroup>,
}

/// A proxy with its settings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Subject {
    /// What it is called.
    pub label: String,
    /// The proxy.
    pub proxy: String,
    /// Its versions, as its runs say; more than one: its runs are of different things.
    pub versions: Vec<String>,
    /// Settings by name.
    pub settings: BTreeMap<String, String>,
    /// Runs of it that count.
    pub runs: u32,
}

/// A run that was given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedRun {
    /// Its directory.
    pub directory: String,
    /// Subject.
    pub subject: String,
    /// Workload.
    pub workload: String,
    /// Condition.
    pub condition: String,
    /// Repetition: runs of one number are a pair.
    pub repetition: u32,
    /// Seed.
    pub seed: u64,
    /// Digest of its stream of requests.
    pub stream_digest: String,
    /// Its numbers count.
    pub counts: bool,
    /// Its numbers are not known, because of Assay or the lab.
    pub invalid: bool,
}

/// A setting in which subjects differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SettingDifference {
    /// Its name.
    pub name: String,
    /// What it is for each subject, in their order; null: not set.
    pub values: Vec<Option<String>>,
    /// What it does to the comparison.
    #[serde(default)]
    pub weight: Weight,
}

/// What a difference between settings does to a comparison.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Their requests differ: it makes the comparison meaningless.
    Meaningless,
    /// It is what is compared.
    #[default]
    Compared,
    /// It could have shaped the numbers beside what is compared.
    Matters,
}

/// A question about the comparison, and its conclusion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conclusion {
    /// The question.
    pub question: String,
    /// How it went.
    pub mood: Mood,
    /// The conclusion.
    pub text: String,
}

/// A workload under a condition, in a phase that it is judged by: a row of the first table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// What the row is called.
    pub name: String,
    /// Workload.
    pub workload: String,
    /// Condition.
    pub condition: String,
    /// Phase, or `whole run`.
    pub scope: String,
    /// A cell per headline metric that anybody measured.
    pub cells: Vec<ScenarioCell>,
}

/// Who did better in one metric of one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioCell {
    /// Name of the metric.
    pub metric: String,
    /// Heading of its column.
    pub heading: String,
    /// The better performers: one, or several that cannot be told apart; empty: none could be told from any other.
    pub winners: Vec<String>,
    /// The same in words, and by how much.
    pub text: String,
    /// By how much, in short: `12 % less`; empty where nobody won.
    pub margin: String,
    /// Between all pairs of subjects.
    pub contrasts: Vec<Contrast>,
}

/// Every metric of one workload under one condition in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricTable {
    /// Workload.
    pub workload: String,
    /// Condition.
    pub condition: String,
    /// Phase, or `whole run`.
    pub scope: String,
    /// Phases that it covers.
    pub phases: Vec<String>,
    /// It is a row of the first table.
    pub judged: bool,
    /// Verdicts that hold together here: those of the first table are counted there.
    pub tests: u32,
    /// A row per metric that anybody measured.
    pub rows: Vec<MetricRow>,
    /// Errors by kind: mean number per run, by subject in their order. Counts, without a verdict.
    pub errors: BTreeMap<String, Vec<Option<f64>>>,
}

/// A metric and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricRow {
    /// Name, with its unit.
    pub metric: String,
    /// What it is called.
    pub title: String,
    /// What it is about.
    pub group: MetricGroup,
    /// Which direction is good.
    pub better: Direction,
    /// Smallest difference that is worth mentioning, in the metric's unit, at the first subject's level; null where
    /// there is no verdict.
    pub worth_mentioning: Option<f64>,
    /// Its verdicts are those of the first table.
    pub headline: bool,
    /// Of each subject, in their order.
    pub values: Vec<Values>,
    /// Each other subject against the first.
    pub contrasts: Vec<Contrast>,
}

/// A subject's values of a metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Values {
    /// Of each run that counts, in the order of repetitions.
    pub runs: Vec<f64>,
    /// Their mean; null: there are none.
    pub mean: Option<f64>,
    /// Their standard deviation; null under two.
    pub deviation: Option<f64>,
    /// At least one of them is a lower bound (a saturation point that was not reached, a percentile that requests without an
    /// end leave open).
    pub at_least: bool,
}

/// One subject against another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contrast {
    /// Who is judged.
    pub subject: String,
    /// Against whom.
    pub base: String,
    /// Pairs of runs of the same repetition.
    pub pairs: u32,
    /// Mean of subject − base; null: no pair has both.
    pub difference: Option<f64>,
    /// Its 95 % interval, of this difference alone.
    pub interval: Option<(f64, f64)>,
    /// Geometric mean of subject ÷ base.
    pub ratio: Option<f64>,
    /// Its 95 % interval.
    pub ratio_interval: Option<(f64, f64)>,
    /// Hedges' g: the difference in standard deviations of a subject's runs.
    pub effect_size: Option<f64>,
    /// The chance of such a difference where there is none.
    pub p: Option<f64>,
    /// The same, corrected for all verdicts of the table (Holm).
    pub p_adjusted: Option<f64>,
    /// A value of the subject is a lower bound: the difference could be more than it is.
    pub may_be_more: bool,
    /// A value of the base is a lower bound: the difference could be less than it is.
    pub may_be_less: bool,
    /// Xacts that both runs completed, where pairs were made by request.
    pub common_xacts: Option<u64>,
    /// Of one pair of runs that both logged their xacts: how exactly these two runs are told apart; says nothing about
    /// what other runs of the same subjects would bring.
    #[serde(default)]
    pub within_runs: Option<WithinRuns>,
    /// The verdict on the subject.
    pub verdict: Verdict,
    /// Why it is not another one.
    pub why: Option<String>,
}

impl Contrast {
    /// Some values are lower bounds.
    pub fn has_bounds(&self) -> bool {
        self.may_be_more || self.may_be_less
    }
}

/// The difference between two runs, request by request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WithinRuns {
    /// Stretches of time that the requests were put together by, since neighbours go together.
    pub stretches: u32,
    /// 95 % interval of the mean difference, over those stretches, in the metric's unit.
    pub interval: (f64, f64),
}

/// What can be said of a subject against another.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is better.
    Better,
    /// It is worse.
    Worse,
    /// The runs do not show a difference that is worth mentioning; that is no proof that there is none.
    NoDifferenceSeen,
    /// There are too few runs to tell a difference from chance.
    #[default]
    NotEnoughRuns,
    /// The metric explains others and is not judged.
    NotJudged,
    /// The requests of the runs differ, or their numbers are not known.
    NotComparable,
}

impl Verdict {
    /// As it is said.
    pub fn label(self) -> &'static str {
        match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoDifferenceSeen => "no difference seen",
            Verdict::NotEnoughRuns => "not enough runs",
            Verdict::NotJudged => "",
            Verdict::NotComparable => "not comparable",
        }
    }

    /// The same of the other side.
    pub fn mirrored(self) -> Self {
        match self {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            other => other,
        }
    }
}

/// A cell whose numbers do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "LeftOut")]
pub struct ExcludedCell {
    /// Its name.
    pub cell: String,
    /// Workload.
    pub workload: String,
    /// Subject.
    pub subject: String,
    /// Condition.
    pub condition: String,
    /// Repetition.
    pub repetition: u32,
    /// Why.
    pub why: String,
    /// Errors of its target in what can be read of it.
    pub errors: u64,
    /// All of it can be read, so there are no more.
    pub are_errors_known: bool,
}
