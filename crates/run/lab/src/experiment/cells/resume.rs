//! Whether an interrupted experiment can go on, and with what. Results of different versions of Assay, of a proxy, of a
//! workload or of the experiment's file are not mixed unless the user wants that.

use std::collections::BTreeMap;

use crate::error::LabError;
use crate::remote;
use assay_record::dir::RunDir;
use assay_record::experiment::{CellInfo, CellState, ExperimentInfo};

use super::{Experiment, ExperimentDir};

/// Reason why results would be mixed, a line each.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("results of different versions would be mixed:\n  {}", reasons.join("\n  "))]
pub struct MixedVersions {
    pub reasons: Vec<String>,
}

/// An experiment that goes on.
#[derive(Debug, Clone, PartialEq)]
pub struct Resumed {
    /// Head: what has no result waits.
    pub info: ExperimentInfo,
    /// Findings, a line each.
    pub notes: Vec<String>,
}

/// Differences between the experiment's file as it was and as it is, as far as results depend on it.
pub fn differences(then: &Experiment, now: &Experiment) -> Vec<String> {
    let mut found = Vec::new();
    let mut note = |what: &str, then: String, now: String| {
        if then != now {
            found.push(format!("{what} was {then} and is {now}"));
        }
    };
    let length =
        |experiment: &Experiment| experiment.rehearse.map_or("none".into(), |length| format!("{length:?}"));
    note("seed", then.seed.to_string(), now.seed.to_string());
    note("repetitions", then.repetitions.to_string(), now.repetitions.to_string());
    note("rehearse", length(then), length(now));
    note("timeout", format!("{:?}", then.timeout), format!("{:?}", now.timeout));
    note("scale-capacity", then.scale_capacity.to_string(), now.scale_capacity.to_string());
    note("private-as-public", then.private_as_public.to_string(), now.private_as_public.to_string());
    found.extend(changed("workload", &then.workloads, &now.workloads, |workload| &workload.label));
    found.extend(changed("proxy", &then.subjects, &now.subjects, |subject| &subject.label));
    found.extend(changed("condition", &then.conditions, &now.conditions, |condition| &condition.label));
    found
}

fn changed<T: PartialEq>(what: &str, then: &[T], now: &[T], label: impl Fn(&T) -> &String) -> Vec<String> {
    let by_label = |items: &'_ [T]| -> BTreeMap<String, usize> {
        items.iter().enumerate().map(|(index, item)| (label(item).clone(), index)).collect()
    };
    let (before, after) = (by_label(then), by_label(now));
    let gone = before.keys().filter(|label| !after.contains_key(*label));
    let gone = gone.map(|label| format!("the {what} `{label}` is not there any more"));
    let rest = after.iter().filter_map(|(label, index)| match before.get(label) {
        None => Some(format!("the {what} `{label}` is new")),
        Some(old) if then[*old] != now[*index] => Some(format!("the {what} `{label}` is another")),
        Some(_) => None,
    });
    gone.chain(rest).collect()
}

/// Goes on with `old`: what has a result keeps it (`redo_invalid`: if its numbers are known), what went on to its end without the
/// experiment still counts as running, all else waits. What an interrupted cell left is put aside.
pub fn resume(
    dir: &ExperimentDir,
    experiment: &Experiment,
    old: ExperimentInfo,
    redo_invalid: bool,
) -> Result<Resumed, LabError> {
    let mut notes = Vec::new();
    let mut info = super::info(experiment);
    info.started_unix_ms = old.started_unix_ms;
    info.command.clone_from(&old.command);
    for subject in &mut info.subjects {
        let before = old.subjects.iter().find(|before| before.label == subject.label);
        subject.version = before.map(|before| before.version.clone()).unwrap_or_default();
    }
    let key = |cell: &CellInfo| {
        (cell.workload.clone(), cell.subject.clone(), cell.condition.clone(), cell.repetition, cell.seed)
    };
    let mut before: BTreeMap<_, CellInfo> = old.cells.into_iter().map(|cell| (key(&cell), cell)).collect();
    for cell in &mut info.cells {
        let Some(old) = before.remove(&key(cell)) else { continue };
        *cell = old;
        match cell.state {
            // The driver judges it, as it would have been judged when it ended.
            CellState::Running if has_ended(dir, cell)? => {
                notes.push(format!(
                    "{} ended after the experiment had been interrupted, and is kept",
                    cell.id
                ));
            }
            CellState::Running => {
                notes.push(format!("{} was interrupted", cell.id));
                wait_again(dir, cell, "it was interrupted")?;
            }
            CellState::Failed => wait_again(dir, cell, "it failed before")?,
            CellState::Invalid if redo_invalid => wait_again(dir, cell, "its numbers are not known")?,
            CellState::Waiting | CellState::Done | CellState::Invalid => {}
        }
    }
    for (_, cell) in before.into_iter().filter(|(_, cell)| cell.state != CellState::Waiting) {
        notes.push(format!("{} is not part of the experiment any more", cell.id));
        dir.set_aside(&cell)?;
    }
    Ok(Resumed { info, notes })
}

/// Whether a cell that ran when the experiment was killed has gone on to its end: its run was taken up (`assay fleet resume`), or had
/// just ended.
fn has_ended(dir: &ExperimentDir, cell: &CellInfo) -> Result<bool, LabError> {
    let run_dir = dir.path().join(ExperimentDir::cell(&cell.id));
    if let Ok(None) = remote::lock_run_dir(&run_dir) {
        return Err(LabError::plan(format!(
            "the run in {} still goes on; wait for its end",
            run_dir.display()
        )));
    }
    let head = RunDir::open(&run_dir).and_then(|run| run.read_info());
    Ok(head.is_ok_and(|head| head.finished && !head.verdict.partial))
}

fn wait_again(dir: &ExperimentDir, cell: &mut CellInfo, why: &str) -> Result<(), LabError> {
    if let Some(aside) = dir.set_aside(cell)? {
        cell.run = Some(aside);
    }
    (cell.state, cell.why) = (CellState::Waiting, Some(why.to_owned()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use assay_record::run::{RUN_SCHEMA, RunInfo, RunVerdict};

    use super::*;

    const TEXT: &str = "workloads = [\"demo\"]\nrepetitions = 2\n[[proxy]]\nname = \"builtin\"\nmemory = \"64MB\"\n\
                        [[proxy]]\nname = \"direct\"\n";

    fn read(text: &str) -> Experiment {
        Experiment::read("x.toml", "x", text).unwrap()
    }

    #[test]
    fn what_results_depend_on_makes_a_difference_and_words_do_not() {
        assert_eq!(
            differences(&read(TEXT), &read(&format!("# new\ntitle = \"x\"\nretries = 3\n{TEXT}"))),
            [""; 0]
        );
        let changed = TEXT.replace("64MB", "65MB").replace("= 2", "= 3").replace("\"direct\"", "\"squid\"");
        assert_eq!(
            differences(&read(TEXT), &read(&changed)),
            [
                "repetitions was 2 and is 3",
                "the proxy `direct` is not there any more",
                "the proxy `builtin` is another",
                "the proxy `squid` is new",
            ]
        );
    }

    /// An experiment of which one cell is done, one was interrupted, one failed and of one the numbers are not known; each left a directory.
    fn half_done(temp: &std::path::Path) -> (Experiment, ExperimentInfo, ExperimentDir) {
        let experiment = read(TEXT);
        let mut info = super::super::info(&experiment);
        let dir = ExperimentDir::create(&temp.join("x"), &experiment, &info).unwrap();
        let states = [CellState::Done, CellState::Running, CellState::Failed, CellState::Invalid];
        for (cell, state) in info.cells.iter_mut().zip(states) {
            (cell.state, cell.tries) = (state, 1);
            std::fs::create_dir(dir.path().join(ExperimentDir::cell(&cell.id))).unwrap();
        }
        info.subjects[0].version = "7".into();
        (experiment, info, dir)
    }

    #[test]
    fn only_what_waits_failed_or_was_interrupted_runs_again() {
        let temp = tempfile::tempdir().unwrap();
        let (experiment, info, dir) = half_done(temp.path());
        let resumed = resume(&dir, &experiment, info.clone(), false).unwrap();
        let states: Vec<_> = resumed.info.cells.iter().map(|cell| cell.state).collect();
        let waiting = CellState::Waiting;
        assert_eq!(states, [CellState::Done, waiting, waiting, CellState::Invalid]);
        assert_eq!(resumed.notes, [format!("{} was interrupted", info.cells[1].id)]);
        assert_eq!(resumed.info.subjects[0].version, "7");
        let left = std::fs::read_dir(dir.path().join("cells")).unwrap().count();
        assert_eq!(left, 2, "what was interrupted or failed is put aside");
    }

    #[test]
    fn what_went_on_to_its_end_is_judged_and_not_run_again() {
        let temp = tempfile::tempdir().unwrap();
        let (experiment, info, dir) = half_done(temp.path());
        let run_dir = dir.path().join(ExperimentDir::cell(&info.cells[1].id));
        let state = |head: &RunInfo| {
            let text = serde_json::to_vec(head).unwrap();
            std::fs::write(run_dir.join("run.json"), text).unwrap();
            resume(&dir, &experiment, info.clone(), false).map(|resumed| resumed.info.cells[1].state)
        };
        let whole = RunInfo { schema: RUN_SCHEMA.into(), finished: true, ..RunInfo::default() };
        assert_eq!(state(&whole).unwrap(), CellState::Running);
        let held = remote::lock_run_dir(&run_dir).unwrap();
        assert!(state(&whole).unwrap_err().to_string().contains("still goes on"));
        drop(held);
        let verdict = RunVerdict { partial: true, ..RunVerdict::default() };
        assert_eq!(state(&RunInfo { verdict, ..whole }).unwrap(), CellState::Waiting);
    }

    #[test]
    fn cells_of_unknown_numbers_run_again_where_that_is_wanted() {
        let temp = tempfile::tempdir().unwrap();
        let (experiment, info, dir) = half_done(temp.path());
        let resumed = resume(&dir, &experiment, info, true).unwrap();
        let states: Vec<_> = resumed.info.cells.iter().map(|cell| cell.state).collect();
        let waiting = CellState::Waiting;
        assert_eq!(states, [CellState::Done, waiting, waiting, waiting]);
        assert_eq!(std::fs::read_dir(dir.path().join("cells")).unwrap().count(), 1);
    }
}
