//! The plan of an experiment, and the state of one, as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use assay_lab::TargetChoice;
use assay_lab::experiment::cells::{Experiment, cells, expected};
use assay_lab::topology::draw;
use assay_record::experiment::{CellInfo, CellState, ExperimentInfo};

use super::args::{LabArgs, ShowArgs};
use super::plans::Plans;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::units::show_duration;

pub fn show(args: &ShowArgs) -> Result<Exit, Failure> {
    let mut experiment = super::read(&args.experiment)?;
    experiment.rehearse = args.rehearse.or(experiment.rehearse);
    let mut plans = Plans::without_workloads(&args.experiment, &experiment, &args.proxy_dir);
    let lengths = lengths(&mut plans, &experiment)?;
    let cells = cells(&experiment);
    let refused = refused(&plans, &cells);
    let drawn = drawn(&plans, &cells);
    output::stdout(&(text(&experiment, &lengths, &drawn) + &outlook(&cells, &lengths, &refused)))?;
    Ok(Exit::Fine)
}

/// `assay lab --dry-run`: the cells in their order.
pub fn dry_run(file: &Path, experiment: &Experiment, args: &LabArgs) -> Result<Exit, Failure> {
    let mut plans = Plans::without_workloads(file, experiment, &args.proxy_dir);
    let lengths = lengths(&mut plans, experiment)?;
    let cells = cells(experiment);
    let mut text = String::new();
    let width = cells.iter().map(|cell| cell.id.chars().count()).max().unwrap_or(0);
    for (index, cell) in cells.iter().enumerate() {
        let length = lengths.get(&cell.workload).copied().unwrap_or_default();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>4}  {:width$}  seed {}  {}",
            index + 1,
            cell.id,
            cell.seed,
            show_duration(length)
        );
    }
    let refused = refused(&plans, &cells);
    output::stdout(&(text + &outlook(&cells, &lengths, &refused)))?;
    Ok(if refused.is_empty() || args.skip_missing { Exit::Fine } else { Exit::Usage })
}

/// Length of each workload's schedule. (Also compiles them for the first repetition.)
fn lengths(plans: &mut Plans, experiment: &Experiment) -> Result<BTreeMap<String, Duration>, Failure> {
    let mut lengths = BTreeMap::new();
    for workload in &experiment.workloads {
        let length = plans.compile(&workload.label, experiment.seed)?;
        lengths.insert(workload.label.clone(), length.unwrap_or_default());
    }
    Ok(lengths)
}

/// Demands that this machine cannot meet, a line each.
fn refused(plans: &Plans, cells: &[CellInfo]) -> BTreeSet<String> {
    let first = cells.iter().filter(|cell| cell.repetition == 1);
    let checked = first.filter_map(|cell| {
        let error = plans.plan(cell).and_then(|plan| assay_lab::check(&plan)).err()?;
        Some(format!("{}: {error}", cell.subject))
    });
    checked.collect()
}

/// The caches of each subject that has several, drawn, by its label.
fn drawn(plans: &Plans, cells: &[CellInfo]) -> BTreeMap<String, String> {
    let plans = cells.iter().filter(|cell| cell.repetition == 1).map(|cell| (cell, plans.plan(cell)));
    let drawn = plans.filter_map(|(cell, plan)| match plan.ok()?.target {
        TargetChoice::Topology(topology) => Some((cell.subject.clone(), draw(&topology))),
        _ => None,
    });
    drawn.collect()
}

fn outlook(cells: &[CellInfo], lengths: &BTreeMap<String, Duration>, refused: &BTreeSet<String>) -> String {
    let length = show_duration(expected(cells, lengths));
    let mut text = format!("\n{} cells, about {length} in all\n", cells.len());
    for line in refused {
        text += &format!("this machine cannot carry {line}\n");
    }
    text
}

fn text(
    experiment: &Experiment,
    lengths: &BTreeMap<String, Duration>,
    drawn: &BTreeMap<String, String>,
) -> String {
    let mut text = String::new();
    if !experiment.title.is_empty() {
        text += &format!("{}\n\n", experiment.title);
    }
    text += "workloads\n";
    for workload in &experiment.workloads {
        let length = lengths.get(&workload.label).copied().unwrap_or_default();
        text += &format!("  {}: {}\n", workload.label, show_duration(length));
    }
    text += "proxies (the others are held against the first)\n";
    for subject in &experiment.subjects {
        text += &format!("  {}: {}{}\n", subject.label, subject.proxy, settings(&subject.written));
        for line in drawn.get(&subject.label).iter().flat_map(|drawn| drawn.lines()) {
            text += &format!("      {line}\n");
        }
    }
    text += "conditions\n";
    for condition in &experiment.conditions {
        text += &format!("  {}{}\n", condition.label, settings(&condition.written));
    }
    let times = |n: u32| if n == 1 { "once".into() } else { format!("{n} times") };
    let order = "in an order shuffled anew for each repetition";
    text += &format!("each {}, {order} (seed {})\n", times(experiment.repetitions), experiment.seed);
    if let Some(length) = experiment.rehearse {
        text += &format!("rehearsed: every schedule squeezed into {}\n", show_duration(length));
    }
    text
}

fn settings(written: &BTreeMap<String, String>) -> String {
    written.iter().map(|(name, value)| format!(", {name} {value}")).collect()
}

/// Number of cells by state, and the last message of those that failed.
pub fn standing(info: &ExperimentInfo) -> String {
    let states = [
        (CellState::Done, "done"),
        (CellState::Invalid, "not known"),
        (CellState::Failed, "failed"),
        (CellState::Waiting, "waiting"),
    ];
    let count = |state| info.cells.iter().filter(|cell| cell.state == state).count();
    let counts = states.iter().map(|(state, name)| (count(*state), name)).filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, name)| format!("{count} {name}")).collect();
    let mut text = format!("{} cells: {}\n", info.cells.len(), counts.join(", "));
    for cell in info.cells.iter().filter(|cell| cell.state == CellState::Failed) {
        let why = cell.why.as_deref().unwrap_or("no reason is known").replace('\n', "\n    ");
        text += &format!("  {} failed: {why}\n", cell.id);
    }
    text
}
