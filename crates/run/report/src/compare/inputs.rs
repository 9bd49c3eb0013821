//! Inputs of a comparison, run by run: directories of runs, of experiments, and of many runs.

use std::path::{Path, PathBuf};

use assay_record::dir::RunDir;
use assay_record::experiment::{CellInfo, CellState, ConditionInfo, SubjectInfo};
use assay_record::run::RunInfo;

use super::read;
use crate::ReportError;

/// A directory to compare, and what its runs are to be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputDirectory {
    /// Name of its runs in tables; none: chosen by `group`.
    pub label: Option<String>,
    /// The directory of a run or of an experiment, or one that holds directories of runs.
    pub path: PathBuf,
}

/// Origin of a run among the arguments.
#[derive(Debug, Clone, PartialEq)]
pub enum RunSource {
    Alone,
    /// Among the others of a directory.
    Among,
    /// As a cell of an experiment.
    Cell {
        subject: SubjectInfo,
        condition: ConditionInfo,
    },
}

/// One run that was named.
#[derive(Debug, Clone, PartialEq)]
pub struct InputRun {
    /// Index of the argument that named the run, and the name of that directory.
    pub argument: usize,
    pub directory: String,
    pub label: Option<String>,
    pub source: RunSource,
    /// Path of its directory from the current one, and its state. Workload, subject, condition and repetition of a
    /// run that is no cell are not known yet.
    pub cell: CellInfo,
    /// None: it has no run directory (yet).
    pub head: Option<RunInfo>,
}

/// Every run that the arguments name. One that cannot be read is an error: somebody meant it.
pub fn gather(named: &[InputDirectory]) -> Result<Vec<InputRun>, ReportError> {
    let mut given = Vec::new();
    for (argument, named) in named.iter().enumerate() {
        let path = &named.path;
        let directory = name_of(path);
        let add = |source: RunSource, cell: CellInfo, head: Option<RunInfo>| InputRun {
            argument,
            directory: directory.clone(),
            label: named.label.clone(),
            source,
            cell,
            head,
        };
        if read::info_path(path).is_file() {
            given.extend(cells(path)?.into_iter().map(|(source, cell, head)| add(source, cell, head)));
            continue;
        }
        let inside = runs_inside(path);
        if inside.is_empty() {
            let (cell, head) = run(path)?;
            given.push(add(RunSource::Alone, cell, Some(head)));
        }
        for path in inside {
            let (cell, head) = run(&path)?;
            given.push(add(RunSource::Among, cell, Some(head)));
        }
    }
    Ok(given)
}

/// The last part of a path, also of `.` and of one that ends in `..`.
pub fn name_of(path: &Path) -> String {
    let whole = path.canonicalize();
    let path = whole.as_deref().unwrap_or(path);
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Directories of runs in a directory that is none itself, by name.
fn runs_inside(path: &Path) -> Vec<PathBuf> {
    let is_run = |path: &Path| path.join("run.json").is_file();
    if is_run(path) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| is_run(path)).collect();
    found.sort();
    found
}

fn run(path: &Path) -> Result<(CellInfo, RunInfo), ReportError> {
    let head = RunDir::open(path)?.read_info()?;
    let cell = CellInfo {
        id: name_of(path),
        workload: head.workload.name.clone(),
        seed: head.seed,
        state: CellState::Done,
        run: Some(path.to_string_lossy().into_owned()),
        tries: 1,
        ..CellInfo::default()
    };
    Ok((cell, head))
}

/// The cells of an experiment.
fn cells(dir: &Path) -> Result<Vec<(RunSource, CellInfo, Option<RunInfo>)>, ReportError> {
    let info = read::read_info(dir)?;
    let mut found = Vec::new();
    for mut cell in info.cells {
        let subject = info.subjects.iter().find(|subject| subject.label == cell.subject);
        let condition = info.conditions.iter().find(|condition| condition.label == cell.condition);
        let source = RunSource::Cell {
            subject: subject
                .cloned()
                .unwrap_or_else(|| SubjectInfo { label: cell.subject.clone(), ..SubjectInfo::default() }),
            condition: condition.cloned().unwrap_or_default(),
        };
        let path = cell.run.as_ref().map(|run| dir.join(run));
        // A cell that cannot be read is left out later, with its reason.
        let head =
            path.as_ref().and_then(|path| RunDir::open(path).ok()).and_then(|dir| dir.read_info().ok());
        cell.run = path.map(|path| path.to_string_lossy().into_owned());
        found.push((source, cell, head));
    }
    Ok(found)
}
