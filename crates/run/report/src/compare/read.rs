//! The cells of an experiment that count, and what each measured.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use assay_measurement::doubt::Extent;
use assay_measurement::measured::Series;
use assay_record::dir::RunDir;
use assay_record::experiment::{CellInfo, CellState, ExperimentInfo};
use assay_record::run::RunInfo;

use super::document::{ComparedRun, LeftOut};
use super::numbers::{self, Numbers};
use super::panel::{Axis, Row};
use super::scope::{self, Scope};
use super::settings::{Head, Requested};
use crate::ReportError;
use crate::tally;

/// A cell that counts.
pub struct Cell {
    /// Place of its workload, condition and subject in the experiment's lists.
    pub workload: usize,
    pub condition: usize,
    pub subject: usize,
    pub repetition: u32,
    /// Of each scope of its workload.
    pub numbers: Vec<Numbers>,
    pub rows: Vec<Row>,
    /// What its target says its version is.
    pub version: String,
    /// Its numbers have their own errors.
    pub own_errors: bool,
    /// What its requests were.
    pub requested: Requested,
    /// Its numbers are not known because of Assay or the lab, and it is here because somebody wants it nevertheless.
    pub invalid: bool,
    /// Its log of xacts, where it kept one.
    pub xacts: Option<PathBuf>,
}

/// What all cells of a workload share.
pub struct Plan {
    pub scopes: Vec<Scope>,
    pub phases: Vec<String>,
    pub axis: Axis,
    /// Digest of the stream, by repetition.
    /// Version and digest of the stream of each repetition.
    streams: BTreeMap<u32, (u32, String)>,
}

/// What counts beside runs of the same stream whose numbers are known, exactly or roughly.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Liberties {
    /// Compare runs of different streams as if they had the same.
    pub any_stream: bool,
    /// Use runs whose numbers are not known too; there are no verdicts on them.
    pub with_invalid: bool,
}

/// An experiment directory, read.
pub struct Experiment {
    pub info: ExperimentInfo,
    /// Its runs were named one by one.
    named: bool,
    pub liberties: Liberties,
    pub cells: Vec<Cell>,
    /// Of every run that could be read, also of those that do not count.
    pub heads: Vec<Head>,
    /// Every run that was given.
    pub runs: Vec<ComparedRun>,
    /// Of each workload; none: no cell of it counts.
    pub plans: Vec<Option<Plan>>,
    pub left_out: Vec<LeftOut>,
}

/// Reads `experiment.json` and every run that counts.
pub fn read(dir: &Path, liberties: Liberties) -> Result<Experiment, ReportError> {
    Ok(read_all(read_info(dir)?, Some(dir), liberties))
}

/// Reads every run of an experiment that counts; their directories are relative to its own. Without one, runs were named
/// one by one.
pub fn read_all(mut info: ExperimentInfo, dir: Option<&Path>, liberties: Liberties) -> Experiment {
    let named = dir.is_none();
    let dir = dir.unwrap_or(Path::new(""));
    let plans = info.workloads.iter().map(|_| None).collect();
    let mut cells = std::mem::take(&mut info.cells);
    // The order in which they ran is random; whose plan the others are held against must not be.
    cells.sort_by(|a, b| (a.repetition, &a.id).cmp(&(b.repetition, &b.id)));
    let mut experiment = Experiment {
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
            Err(why) => experiment.left_out.push(LeftOut {
                cell: cell.id.clone(),
                workload: cell.workload.clone(),
                subject: cell.subject.clone(),
                condition: cell.condition.clone(),
                repetition: cell.repetition,
                why,
            }),
        }
    }
    experiment.info.cells = cells;
    experiment
}

/// Where an experiment directory says what it is.
pub fn info_path(dir: &Path) -> PathBuf {
    dir.join("experiment.json")
}

/// Reads `experiment.json`.
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

/// Where a name stands in a list of the experiment.
fn place<'a>(mut names: impl Iterator<Item = &'a str>, wanted: &str, what: &str) -> Result<usize, String> {
    let found = names.position(|name| name == wanted);
    found.ok_or_else(|| format!("its {what}, {wanted}, is not among those of the experiment"))
}

impl Experiment {
    /// A cell that counts, or why it does not.
    fn read_cell(&mut self, dir: &Path, cell: &CellInfo, known: &mut ComparedRun) -> Result<Cell, String> {
        let said = |words: &str| match &cell.why {
            Some(why) => format!("{words}: {why}"),
            None => words.to_owned(),
        };
        match cell.state {
            CellState::Done => {}
            CellState::Invalid if self.liberties.with_invalid => {}
            CellState::Waiting => return Err("it has not run yet".to_owned()),
            CellState::Running => return Err("it runs now, or was cut off".to_owned()),
            CellState::Invalid => return Err(said("its numbers are not known")),
            CellState::Failed => return Err(said("it failed")),
        }
        let info = &self.info;
        let workload = place(info.workloads.iter().map(String::as_str), &cell.workload, "workload")?;
        let subject = place(info.subjects.iter().map(|s| s.label.as_str()), &cell.subject, "subject")?;
        let condition =
            place(info.conditions.iter().map(|c| c.label.as_str()), &cell.condition, "condition")?;
        let run = cell.run.as_ref().ok_or("it says that it is done, and names no run directory")?;
        let run = RunDir::open(&dir.join(run)).map_err(|error| error.to_string())?;
        let head = run.read_info().map_err(|error| error.to_string())?;
        known.stream_digest.clone_from(&head.stream_digest);
        self.heads.push(Head { subject, workload: cell.workload.clone(), info: head.clone() });
        if run.is_unfinished().map_err(|error| error.to_string())? {
            return Err("its run was cut off before its end was written".to_owned());
        }
        // Before own errors were recorded, whatever was serious could have moved any number.
        let invalid = match head.own_errors {
            true => head.verdict.leaves_unknown() != Extent::Nothing,
            false => head.verdict.is_disturbed(),
        };
        known.invalid |= invalid;
        if invalid && !self.liberties.with_invalid {
            return Err("its numbers are not known: Assay or the lab failed in it".to_owned());
        }
        let series = run.read_series().map_err(|error| error.to_string())?;
        let plan = self.plan(workload, cell.repetition, &head, &series)?;
        let xacts = run.xacts_path();
        let caches = run.read_caches().map_err(|error| error.to_string())?;
        Ok(Cell {
            workload,
            condition,
            subject,
            repetition: cell.repetition,
            numbers: numbers::of_run(&head, &series, caches.as_ref(), &plan.scopes),
            rows: plan.axis.rows(&series),
            requested: Requested::of(&head),
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
    ) -> Result<&Plan, String> {
        let info = &self.info;
        let lines = info.workloads.len() * info.conditions.len() * info.subjects.len();
        let names: Vec<String> = head.phases.iter().map(|phase| phase.name.clone()).collect();
        let plan = self.plans[workload].get_or_insert_with(|| Plan {
            scopes: scope::scopes(&head.phases),
            phases: names.clone(),
            axis: Axis::of(head, &tally::spans(head, series), lines),
            streams: BTreeMap::new(),
        });
        if plan.phases != names {
            return Err(format!(
                "its phases ({}) are not those of the other runs of this workload ({})",
                names.join(", "),
                plan.phases.join(", ")
            ));
        }
        if self.named {
            // Whether runs of one number can be compared is found out pair by pair.
            return Ok(plan);
        }
        let (version, digest) = head.stream();
        let (of_others, digest_of_others) =
            plan.streams.entry(repetition).or_insert_with(|| (version, digest.to_owned()));
        if *of_others != version {
            return Err(format!(
                "its stream of requests is of version {version}, those of the others of its repetition are of version \
                 {of_others}: another Assay made it"
            ));
        }
        if digest_of_others != digest {
            return Err(format!(
                "it was sent another stream of requests (digest {digest}) than the others of its repetition \
                 ({digest_of_others})"
            ));
        }
        Ok(plan)
    }
}
