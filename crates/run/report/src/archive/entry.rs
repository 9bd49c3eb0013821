//! A run or an experiment that is kept: what it was, when, how it ended, how large it is.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::headline::RunConclusion;
use crate::summary::Summary;
use assay_record::dir::RunDir;
use assay_record::experiment::{CellState, ExperimentInfo};
use serde::Serialize;

/// The head of an experiment's directory.
const EXPERIMENT: &str = "experiment.json";
/// The page of an experiment's directory.
const COMPARISON: &str = "comparison.html";

/// Type of a result directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultKind {
    Run,
    /// An experiment: its runs, and their comparison.
    Experiment,
}

/// Result of a run or an experiment, as far as its directory tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResultState {
    /// All that was required holds, and nothing is wrong; of an experiment: every cell has a result.
    Fine,
    /// A requirement or a headline number is not known, or a cell's numbers are not.
    Undecided,
    /// A requirement failed, or content was wrong; of an experiment: a cell failed.
    Failed,
    /// The target served nothing at all.
    ServedNothing,
    /// A run in which no request came to its end.
    NothingMeasured,
    /// Ended before its time, with a result up to then.
    Interrupted,
    /// In progress, or killed; an experiment: cells wait.
    Unfinished,
    /// Ended, without a summary that this version can read.
    Unknown,
}

impl ResultState {
    /// As it is shown in a list.
    pub fn label(self) -> &'static str {
        match self {
            ResultState::Fine => "fine",
            ResultState::Undecided => "undecided",
            ResultState::Failed => "failed",
            ResultState::ServedNothing => "served nothing",
            ResultState::NothingMeasured => "nothing was measured",
            ResultState::Interrupted => "interrupted",
            ResultState::Unfinished => "unfinished",
            ResultState::Unknown => "not known",
        }
    }
}

/// One that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchiveEntry {
    /// Name of its directory.
    pub name: String,
    pub path: PathBuf,
    pub kind: ResultKind,
    /// Workload and target, as in `demo through builtin`; of an experiment its name and the number of its runs.
    pub title: String,
    /// Start, Unix time in milliseconds; without a head: the last change of the directory.
    pub started_unix_ms: u64,
    pub state: ResultState,
    /// Bytes of all files in it.
    pub bytes: u64,
    /// Last write to any of its files, Unix time in milliseconds.
    pub written_unix_ms: u64,
    /// HTML report, if there is one.
    pub page: Option<PathBuf>,
}

impl ArchiveEntry {
    /// Reads a directory; none: neither a run nor an experiment.
    pub fn read(path: &Path) -> Option<Self> {
        let extent = DirectorySize::measure(path);
        let entry = Self {
            name: path.file_name()?.to_string_lossy().into_owned(),
            path: path.to_owned(),
            kind: ResultKind::Run,
            title: "a run whose head is lost".into(),
            started_unix_ms: extent.written_unix_ms,
            state: ResultState::Unknown,
            bytes: extent.bytes,
            written_unix_ms: extent.written_unix_ms,
            page: None,
        };
        if path.join(EXPERIMENT).is_file() {
            return Some(entry.of_experiment());
        }
        let dir = RunDir::open(path).ok()?;
        Some(entry.of_run(&dir))
    }

    fn of_experiment(mut self) -> Self {
        self.kind = ResultKind::Experiment;
        self.page = Some(self.path.join(COMPARISON)).filter(|page| page.is_file());
        let text = assay_base::files::bytes(&self.path.join(EXPERIMENT), assay_base::files::DOCUMENT_MAX)
            .unwrap_or_default();
        let Ok(info) = serde_json::from_slice::<ExperimentInfo>(&text) else {
            self.title = "an experiment whose head is damaged".into();
            return self;
        };
        let runs = info.cells.len();
        self.title = format!("{}, {runs} run{}", info.name, if runs == 1 { "" } else { "s" });
        self.started_unix_ms = info.started_unix_ms;
        let any = |state| info.cells.iter().any(|cell| cell.state == state);
        self.state = match info.finished {
            false => ResultState::Unfinished,
            true if any(CellState::Failed) || info.cells.iter().any(|cell| cell.fault.is_some()) => {
                ResultState::Failed
            }
            true if any(CellState::Invalid) => ResultState::Undecided,
            true => ResultState::Fine,
        };
        self
    }

    fn of_run(mut self, dir: &RunDir) -> Self {
        self.page = Some(dir.report_path()).filter(|page| page.is_file());
        let Ok(info) = dir.read_info() else { return self };
        self.title = format!("{} through {}", info.workload.name, info.target.name);
        if info.target.name == "direct" {
            self.title = format!("{}, no proxy", info.workload.name);
        }
        self.started_unix_ms = info.started_unix_ms;
        let summary = assay_base::files::bytes(&dir.summary_path(), assay_base::files::DOCUMENT_MAX).ok();
        let summary = summary.and_then(|text| serde_json::from_slice::<Summary>(&text).ok());
        self.state = match (info.finished, summary) {
            (false, _) => ResultState::Unfinished,
            (true, _) if info.verdict.partial => ResultState::Interrupted,
            (true, None) => ResultState::Unknown,
            (true, Some(summary)) => match summary.conclusion() {
                RunConclusion::Fine => ResultState::Fine,
                RunConclusion::Undecided => ResultState::Undecided,
                RunConclusion::Failed => ResultState::Failed,
                RunConclusion::ServedNothing => ResultState::ServedNothing,
                RunConclusion::NothingMeasured => ResultState::NothingMeasured,
            },
        };
        self
    }
}

/// Size of a directory, and the time of the last write to it.
#[derive(Debug, Clone, Copy, Default)]
struct DirectorySize {
    bytes: u64,
    written_unix_ms: u64,
}

impl DirectorySize {
    /// Of all files below a directory. What cannot be read counts as nothing; links are not followed.
    fn measure(dir: &Path) -> Self {
        let mut extent = Self::default();
        let mut open = vec![dir.to_owned()];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_dir() {
                    open.push(entry.path());
                    continue;
                }
                extent.bytes += metadata.len();
                let written = metadata.modified().map_or(0, unix_ms);
                extent.written_unix_ms = extent.written_unix_ms.max(written);
            }
        }
        extent
    }
}

fn unix_ms(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
pub mod testing {
    //! Directories of runs and experiments, as far as an archive looks at them.

    use std::path::Path;

    use assay_record::dir::RunDir;
    use assay_record::experiment::{CellInfo, ExperimentInfo};
    use assay_record::run::RunInfo;

    /// A run that ended, without a summary.
    pub fn run(parent: &Path, name: &str, started_unix_ms: u64) -> RunDir {
        let dir = RunDir::create(&parent.join(name)).unwrap();
        let mut info = RunInfo { started_unix_ms, finished: true, ..RunInfo::default() };
        (info.workload.name, info.target.name) = ("demo".into(), "builtin".into());
        dir.write_info(&info).unwrap();
        dir
    }

    /// An experiment with cells in these states.
    pub fn experiment(parent: &Path, name: &str, started_unix_ms: u64, states: &[&str]) {
        let cells = states.iter().map(|state| CellInfo {
            state: serde_json::from_value((*state).into()).unwrap(),
            ..CellInfo::default()
        });
        let info = ExperimentInfo {
            name: "six".into(),
            started_unix_ms,
            finished: !states.contains(&"waiting"),
            cells: cells.collect(),
            ..ExperimentInfo::default()
        };
        std::fs::create_dir(parent.join(name)).unwrap();
        let text = serde_json::to_string(&info).unwrap();
        std::fs::write(parent.join(name).join(super::EXPERIMENT), text).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{experiment, run};
    use super::*;

    #[test]
    fn a_run_is_named_after_what_ran_and_is_as_large_as_its_files() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = run(tmp.path(), "one", 5_000);
        let before = ArchiveEntry::read(dir.path()).unwrap();
        std::fs::write(dir.proxy_dir().join("log"), [0; 1000]).unwrap();
        let entry = ArchiveEntry::read(dir.path()).unwrap();
        assert_eq!((entry.title.as_str(), entry.kind), ("demo through builtin", ResultKind::Run));
        assert_eq!((entry.started_unix_ms, entry.state), (5_000, ResultState::Unknown));
        assert_eq!(entry.bytes, before.bytes + 1000);
        assert_eq!(entry.page, None);
        std::fs::write(dir.report_path(), "<html>").unwrap();
        assert_eq!(ArchiveEntry::read(dir.path()).unwrap().page, Some(dir.report_path()));
    }

    #[test]
    fn a_run_that_has_not_ended_is_unfinished_and_one_that_was_ended_early_interrupted() {
        let tmp = tempfile::tempdir().unwrap();
        let dir = run(tmp.path(), "one", 5_000);
        let mut info = dir.read_info().unwrap();
        info.verdict.partial = true;
        dir.write_info(&info).unwrap();
        assert_eq!(ArchiveEntry::read(dir.path()).unwrap().state, ResultState::Interrupted);
        info.finished = false;
        dir.write_info(&info).unwrap();
        assert_eq!(ArchiveEntry::read(dir.path()).unwrap().state, ResultState::Unfinished);
    }

    #[test]
    fn an_experiment_is_as_well_off_as_the_worst_of_its_cells() {
        let tmp = tempfile::tempdir().unwrap();
        for (name, states, expected) in [
            ("a", &["done", "done"][..], ResultState::Fine),
            ("b", &["done", "invalid"], ResultState::Undecided),
            ("c", &["invalid", "failed"], ResultState::Failed),
            ("d", &["done", "waiting"], ResultState::Unfinished),
        ] {
            experiment(tmp.path(), name, 1, states);
            let entry = ArchiveEntry::read(&tmp.path().join(name)).unwrap();
            assert_eq!((entry.kind, entry.state), (ResultKind::Experiment, expected), "{name}");
            assert_eq!(entry.title, "six, 2 runs");
        }
    }

    #[test]
    fn damaged_heads_are_listed_as_such() {
        let tmp = tempfile::tempdir().unwrap();
        for file in ["run.json", EXPERIMENT] {
            let dir = tmp.path().join(format!("of-{file}"));
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join(file), "{").unwrap();
            assert_eq!(ArchiveEntry::read(&dir).unwrap().state, ResultState::Unknown, "{file}");
        }
        assert_eq!(ArchiveEntry::read(tmp.path()), None);
    }
}
