//! The cells of an experiment that count, and what each measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_measurement::doubt::Extent;
use assay_measurement::measured::Series;
use assay_record::dir::{RunDir, RunDirError};
use assay_record::experiment::{CellInfo, CellState, ExperimentInfo};
use assay_record::run::RunInfo;

use super::chart_group::{ComparisonAxis, StepRow};
use super::document::{ComparedRun, ExcludedCell};
use super::numbers::{self, MetricValues};
use super::scope::{self, Scope};
use super::settings::{RequestIdentity, RunHead};
use crate::ReportError;
use crate::document::Summary;
use crate::tally;

/// A cell that counts.
pub struct RunCell {
    /// Place of its workload, condition and subject in the experiment's lists.
    pub workload: usize,
    pub condition: usize,
    pub subject: usize,
    pub repetition: u32,
    /// Of each scope of its workload.
    pub numbers: Vec<MetricValues>,
    pub rows: Vec<StepRow>,
    /// Version that its target reported.
    pub version: String,
    /// The own errors of its numbers were recorded.
    pub own_errors: bool,
    /// Identity of its requests.
    pub requested: RequestIdentity,
    /// Not known because of Assay or the lab, and included on request.
    pub invalid: bool,
    /// Log of xacts, where it kept one.
    pub xacts: Option<PathBuf>,
}

/// Reason why the numbers of a cell do not count.
#[derive(Debug, thiserror::Error)]
enum CellError {
    #[error("it has not run yet")]
    Waiting,
    #[error("it runs now, or was cut off")]
    Running,
    #[error("its numbers are not known{}", because(.0.as_deref()))]
    Invalid(Option<String>),
    #[error("it failed{}", because(.0.as_deref()))]
    Failed(Option<String>),
    #[error("its {list}, {name}, is not among those of the experiment")]
    NotListed { list: &'static str, name: String },
    #[error("it says that it is done, and names no run directory")]
    NoRunDirectory,
    #[error("its run was cut off before its end was written")]
    CutOff,
    #[error("its numbers are not known: Assay or the lab failed in it")]
    Disturbed,
    #[error(
        "its phases ({}) are not those of the other runs of this workload ({})",
        own.join(", "),
        others.join(", ")
    )]
    Phases { own: Vec<String>, others: Vec<String> },
    #[error(
        "its stream of requests is of version {own}, those of the others of its repetition are of version {others}: another \
         Assay made it"
    )]
    StreamVersion { own: u32, others: u32 },
    #[error(
        "it was sent another stream of requests (digest {own}) than the others of its repetition ({others})"
    )]
    StreamDigest { own: String, others: String },
    #[error(transparent)]
    RunDir(#[from] RunDirError),
}

fn because(why: Option<&str>) -> String {
    why.map_or_else(String::new, |why| format!(": {why}"))
}

/// Plan that all cells of a workload share.
pub struct WorkloadPlan {
    pub scopes: Vec<Scope>,
    pub phases: Vec<String>,
    pub axis: ComparisonAxis,
    /// Version and digest of the stream of each repetition.
    streams: BTreeMap<u32, (u32, String)>,
}

/// Runs to include beside those of the same stream whose numbers are known, exactly or roughly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompareOptions {
    /// Compare runs of different streams as if they had the same.
    pub any_stream: bool,
    /// Use runs whose numbers are not known too; there are no verdicts on them.
    pub with_invalid: bool,
}

/// An experiment directory, read.
pub struct ExperimentRuns {
    pub info: ExperimentInfo,
    /// The runs were named one by one.
    named: bool,
    pub liberties: CompareOptions,
    pub cells: Vec<RunCell>,
    /// Of every run that could be read, also of those that do not count.
    pub heads: Vec<RunHead>,
    /// Every run that was given.
    pub runs: Vec<ComparedRun>,
    /// Of each workload; none: no cell of it counts.
    pub plans: Vec<Option<WorkloadPlan>>,
    pub left_out: Vec<ExcludedCell>,
}

/// Reads `experiment.json` and every run that counts.
pub fn read(dir: &Path, liberties: CompareOptions) -> Result<ExperimentRuns, ReportError> {
    Ok(read_all(read_info(dir)?, Some(dir), liberties))
}

/// Reads every run of an experiment that counts; their directories are relative to its own. Without one, runs were named
/// one by one.
pub fn read_all(mut info: ExperimentInfo, dir: Option<&Path>, liberties: CompareOptions) -> ExperimentRuns {
    let named = dir.is_none();
    let dir = dir.unwrap_or(Path::new(""));
    let plans = info.workloads.iter().map(|_| None).collect();
    let mut cells = std::mem::take(&mut info.cells);
    // The order in which they ran is random; whose plan the others are held against must not be.
    cells.sort_by(|a, b| (a.repetition, &a.id).cmp(&(b.repetition, &b.id)));
    let mut experiment = ExperimentRuns {
        info,
        named,
        liberties,
        cells: Vec::new(),
        heads: Vec::new(),
        runs: Vec::new(),
        plans,
        left_out: Vec::new(),
    };
    for cell in &cells {
        let mut run = ComparedRun {
            directory: cell
                .run
                .as_ref()
                .map_or_else(String::new, |run| dir.join(run).to_string_lossy().into_owned()),
            subject: cell.subject.clone(),
            workload: cell.workload.clone(),
            condition: cell.condition.clone(),
            repetition: cell.repetition,
            seed: cell.seed,
            invalid: cell.state == CellState::Invalid,
            ..ComparedRun::default()
        };
        let read = experiment.read_cell(dir, cell, &mut run);
        run.counts = read.is_ok();
        experiment.runs.push(run);
        match read {
            Ok(read) => experiment.cells.push(read),
            Err(error) => {
                let there = cell.run.as_ref().and_then(|run| RunDir::open(&dir.join(run)).ok());
                let there = there.and_then(|run| Summary::from_run(&run).ok());
                experiment.left_out.push(ExcludedCell {
                    cell: cell.id.clone(),
                    workload: cell.workload.clone(),
                    subject: cell.subject.clone(),
                    condition: cell.condition.clone(),
                    repetition: cell.repetition,
                    why: error.to_string(),
                    errors: there.as_ref().map_or(0, |run| run.total.errors.of(|kind| !kind.is_own())),
                    are_errors_known: cell.state == CellState::Waiting
                        || there.is_some_and(|run| !run.partial),
                });
            }
        }
    }
    experiment.info.cells = cells;
    experiment
}

/// Path of the head of an experiment.
pub fn info_path(dir: &Path) -> PathBuf {
    dir.join("experiment.json")
}

pub fn read_info(dir: &Path) -> Result<ExperimentInfo, ReportError> {
    let path = info_path(dir);
    let text = match assay_base::files::bytes(&path, assay_base::files::DOCUMENT_MAX) {
        Ok(text) => text,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            return Err(ReportError::NotAnExperiment { path: dir.to_owned() });
        }
        Err(cause) => return Err(ReportError::ReadExperiment { path, cause }),
    };
    serde_json::from_slice(&text)
        .map_err(|error| ReportError::DamagedExperiment { path, detail: error.to_string() })
}

/// Index of a name in a list of the experiment.
fn index_of<'a>(
    mut names: impl Iterator<Item = &'a str>,
    name: &str,
    list: &'static str,
) -> Result<usize, CellError> {
    let found = names.position(|known| known == name);
    found.ok_or_else(|| CellError::NotListed { list, name: name.to_owned() })
}

impl ExperimentRuns {
    fn read_cell(
        &mut self,
        dir: &Path,
        cell: &CellInfo,
        known: &mut ComparedRun,
    ) -> Result<RunCell, CellError> {
        match cell.state {
            CellState::Done => {}
            CellState::Invalid if self.liberties.with_invalid => {}
            CellState::Waiting => return Err(CellError::Waiting),
            CellState::Running => return Err(CellError::Running),
            CellState::Invalid => return Err(CellError::Invalid(cell.why.clone())),
            CellState::Failed => return Err(CellError::Failed(cell.why.clone())),
        }
        let info = &self.info;
        let workload = index_of(info.workloads.iter().map(String::as_str), &cell.workload, "workload")?;
        let subject = index_of(info.subjects.iter().map(|s| s.label.as_str()), &cell.subject, "subject")?;
        let condition =
            index_of(info.conditions.iter().map(|c| c.label.as_str()), &cell.condition, "condition")?;
        let run = cell.run.as_ref().ok_or(CellError::NoRunDirectory)?;
        let run = RunDir::open(&dir.join(run))?;
        let head = run.read_info()?;
        known.stream_digest.clone_from(&head.stream_digest);
        self.heads.push(RunHead { subject, workload: cell.workload.clone(), info: head.clone() });
        if run.is_unfinished()? {
            return Err(CellError::CutOff);
        }
        // Before own errors were recorded, whatever was serious could have moved any number.
        let invalid = match head.own_errors {
            true => head.verdict.leaves_unknown() != Extent::Nothing,
            false => head.verdict.is_disturbed(),
        };
        known.invalid |= invalid;
        if invalid && !self.liberties.with_invalid {
            return Err(CellError::Disturbed);
        }
        let series = run.read_series()?;
        let plan = self.plan(workload, cell.repetition, &head, &series)?;
        let xacts = run.xacts_path();
        let caches = run.read_caches()?;
        Ok(RunCell {
            workload,
            condition,
            subject,
            repetition: cell.repetition,
            numbers: numbers::metric_values(&head, &series, caches.as_ref(), &plan.scopes),
            rows: plan.axis.rows(&series),
            requested: RequestIdentity::from_run(&head),
            version: head.target.version.clone(),
            own_errors: head.own_errors,
            invalid,
            xacts: xacts.is_file().then_some(xacts),
        })
    }

    /// The plan of a workload, from its first run; or why this run cannot be held against the others.
    fn plan(
        &mut self,
        workload: usize,
        repetition: u32,
        head: &RunInfo,
        series: &Series,
    ) -> Result<&WorkloadPlan, CellError> {
        let info = &self.info;
        let lines = info.workloads.len() * info.conditions.len() * info.subjects.len();
        let names: Vec<String> = head.phases.iter().map(|phase| phase.name.clone()).collect();
        let plan = self.plans[workload].get_or_insert_with(|| WorkloadPlan {
            scopes: scope::scopes(&head.phases),
            phases: names.clone(),
            axis: ComparisonAxis::new(head, &tally::spans(head, series), lines),
            streams: BTreeMap::new(),
        });
        if plan.phases != names {
            return Err(CellError::Phases { own: names, others: plan.phases.clone() });
        }
        if self.named {
            // Whether runs of one number can be compared is found out pair by pair.
            return Ok(plan);
        }
        let (version, digest) = head.stream();
        let (of_others, digest_of_others) =
            plan.streams.entry(repetition).or_insert_with(|| (version, digest.to_owned()));
        if *of_others != version {
            return Err(CellError::StreamVersion { own: version, others: *of_others });
        }
        if digest_of_others != digest {
            return Err(CellError::StreamDigest { own: digest.to_owned(), others: digest_of_others.clone() });
        }
        Ok(plan)
    }
}
