//! `assay lab`: run an experiment, cell by cell, go on with one that was interrupted, and compare what came out.

mod args;
mod plans;
mod show;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow};
use assay_base::settings::suggest::or_did_you_mean;
use assay_lab::LabError;
use assay_lab::experiment::cells::{
    CellVerdict, Experiment, ExperimentDir, ExperimentOutcome, ExperimentRun, differences, drive, resume,
};
use assay_record::dir::RunDir;
use assay_record::experiment::{CellInfo, CellState, ExperimentInfo};
use assay_report::compare::is_experiment;
use assay_report::headline::RunConclusion;
use assay_report::require::{Decision, RequirementResult};
use assay_report::summary::Summary;
use clap::Parser;
use tokio::sync::{mpsc, watch};

pub use self::args::LabArgs;
use self::args::LabCommand;
use self::plans::Plans;
use crate::commands::report::{self, ReportForm};
use crate::exit::{Exit, Failure};
use crate::experiments::{self, EXPERIMENTS};
use crate::file_kind::{self, FileKind};
use crate::interrupt::Interrupts;
use crate::live::{Style, cells};
use crate::{bundled, junit, leftovers, output, run_name};

/// Runs, explains or goes on with an experiment.
pub fn lab(args: &LabArgs) -> Result<Exit, Failure> {
    if let Some(LabCommand::Show(show)) = &args.command {
        return show::show(show);
    }
    let Some(file) = &args.experiment else {
        return Err(Failure::usage(anyhow!("no experiment is named")).hint("assay lab EXPERIMENT.toml"));
    };
    output::check_results(args.output.as_deref(), [args.junit.as_deref()])?;
    args.take.check()?;
    form(args)?;
    let experiment = read(file)?;
    if args.dry_run {
        return show::dry_run(file, &args.applied(experiment), args);
    }
    leftovers::clear();
    let set = prepare_experiment(args, experiment)?;
    let path = set.dir.path().to_owned();
    let is_fresh = set.fresh;
    // Nothing has run: a directory that was made for it would be in the way of the next attempt.
    let clear_away = || is_fresh.then(|| std::fs::remove_dir_all(&path));
    let plans = Plans::make(file, &set.experiment, args).inspect_err(|_| drop(clear_away()))?;
    output::say(&format!("experiment directory {}", path.display()));
    let ending = match run(args, set, plans)? {
        Ok(Some(ending)) => ending,
        Ok(None) => {
            output::say(&format!("quit at once; {}", go_on(file, &path)));
            return Ok(Exit::Interrupted);
        }
        Err(error) => {
            if !error.before_start() {
                return Err(Failure::failed(error));
            }
            drop(clear_away());
            return Err(Failure::usage(error));
        }
    };
    conclude(args, file, &path, &ending)
}

/// Runs all cells that wait.
fn run(
    args: &LabArgs,
    set: PreparedExperiment,
    plans: Plans,
) -> Result<Result<Option<ExperimentOutcome>, LabError>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the experiment")
        .map_err(Failure::failed)?;
    let experiment_run = ExperimentRun {
        experiment: &set.experiment,
        dir: set.dir,
        info: set.info,
        mix_versions: args.mix_versions,
        skip_missing: args.skip_missing,
        wait_quiet: args.wait_quiet,
        remote: args.machines.fleet.is_some(),
    };
    Ok(runtime.block_on(watched(experiment_run, plans, Style::choose(args.no_live))))
}

/// Runs an experiment in a directory, or what is left of it if it is there already, and returns how its cells stand.
pub fn run_in(
    experiment: &Experiment,
    path: &Path,
    proxy_dir: &[PathBuf],
) -> Result<ExperimentInfo, Failure> {
    let directory = path.as_os_str();
    let is_there = is_experiment(path);
    let flag = OsStr::new(if is_there { "--resume" } else { "--dir" });
    let words = [OsStr::new("lab"), path.as_os_str(), flag, directory];
    let mut args = RunCommandLine::try_parse_from(words).map_err(Failure::usage)?.args;
    args.proxy_dir = proxy_dir.to_vec();
    leftovers::clear();
    let set = prepare_experiment(&args, experiment.clone())?;
    let file = path.join("experiment.toml");
    let plans = Plans::make(&file, &set.experiment, &args)?;
    output::say(&format!("experiment directory {}", path.display()));
    match run(&args, set, plans)? {
        Ok(Some(ending)) if ending.interrupted => {
            Err(Failure::failed(anyhow!("the experiment in {} was interrupted", path.display()))
                .hint("the same command with --dir and this directory goes on with it"))
        }
        Ok(Some(ending)) => Ok(ending.info),
        Ok(None) => Err(Failure::failed(anyhow!("quit at once"))),
        Err(error) if error.before_start() => Err(Failure::usage(error)),
        Err(error) => Err(Failure::failed(error)),
    }
}

/// The flags of `assay lab` by themselves.
#[derive(Debug, Parser)]
struct RunCommandLine {
    #[command(flatten)]
    args: LabArgs,
}

/// Reads an experiment's file, or a bundled experiment.
fn read(file: &Path) -> Result<Experiment, Failure> {
    let named = file.to_string_lossy();
    if let Some(bundled) = experiments::find(&named) {
        let shown = format!("{}{named}.toml", bundled::INSIDE);
        return Experiment::read(&shown, bundled.name, bundled.text).map_err(Failure::usage);
    }
    if let Some(other) = file_kind::from_name(&named).filter(|kind| *kind != FileKind::Experiment) {
        return Err(other.refused(&named, FileKind::Experiment));
    }
    let text = assay_base::files::text(file, assay_base::files::SETTINGS_MAX).map_err(|error| {
        let meant = or_did_you_mean(&named, EXPERIMENTS.iter().map(|experiment| experiment.name));
        Failure::usage(anyhow!("cannot read the experiment {named}: {error}{meant}")).hint(
            "an experiment is a TOML file, or the name of a bundled one: `assay experiments` lists them",
        )
    })?;
    let name = file.file_stem().map_or_else(|| "experiment".into(), |stem| stem.to_string_lossy());
    Experiment::read(&file.display().to_string(), &name, &text).map_err(Failure::usage)
}

/// An experiment that can begin, or go on.
struct PreparedExperiment {
    experiment: Experiment,
    dir: ExperimentDir,
    info: ExperimentInfo,
    /// The directory was made just now.
    fresh: bool,
}

fn prepare_experiment(args: &LabArgs, experiment: Experiment) -> Result<PreparedExperiment, Failure> {
    if let Some(named) = &args.resume {
        return resumed(args, experiment, named);
    }
    let unfinished = ExperimentDir::unfinished(Path::new(run_name::RUNS), &experiment.name);
    if let (Some((path, info)), None, false) = (unfinished.last(), &args.dir, args.new) {
        let open = info.cells.iter().filter(|cell| is_open(cell.state)).count();
        let (path, all) = (path.display(), info.cells.len());
        return Err(Failure::usage(anyhow!(
            "{path} holds this experiment, and {open} of its {all} cells wait"
        ))
        .hint(format!("go on with it: --resume {path}; or begin anew: --new")));
    }
    let experiment = args.applied(experiment);
    let mut info = assay_lab::experiment::cells::info(&experiment);
    info.command = command_line();
    info.started_unix_ms = now_unix_ms();
    let path = args.dir.clone().unwrap_or_else(|| run_name::fresh_experiment(&experiment.name));
    let dir = ExperimentDir::create(&path, &experiment, &info).map_err(Failure::usage)?;
    Ok(PreparedExperiment { experiment, dir, info, fresh: true })
}

fn is_open(state: CellState) -> bool {
    !matches!(state, CellState::Done | CellState::Invalid)
}

/// Goes on with an experiment, if nothing that results depend on has changed (or that is wanted).
fn resumed(args: &LabArgs, experiment: Experiment, named: &Path) -> Result<PreparedExperiment, Failure> {
    // An experiment, or the directory in which its latest is.
    let inner = ExperimentDir::unfinished(named, &experiment.name).pop();
    if inner.is_none() && !is_experiment(named) {
        let (named, name) = (named.display(), &experiment.name);
        return Err(Failure::usage(anyhow!("{named} holds no unfinished experiment called {name}"))
            .hint("name its directory: --resume DIR; or begin it: leave --resume out"));
    }
    let path = inner.map_or_else(|| named.to_owned(), |(path, _)| path);
    let path = path.as_path();
    let (dir, info, source) = ExperimentDir::open(path).map_err(Failure::usage)?;
    let then = Experiment::read("experiment.toml", &info.name, &source).map_err(Failure::usage)?;
    let mut changed = differences(&then, &experiment);
    let recorded = args::as_recorded(experiment, &info);
    let experiment = args.applied(recorded.clone());
    changed.extend(differences(&recorded, &experiment));
    if !changed.is_empty() && !args.mix_versions {
        let what = changed.join("\n  ");
        return Err(Failure::usage(anyhow!(
            "{} was begun with another version of this experiment:\n  {what}",
            path.display()
        ))
        .hint("begin anew (--new), or go on all the same and mix the results (--mix-versions)"));
    }
    let resumed = resume(&dir, &experiment, info, args.redo_invalid).map_err(Failure::usage)?;
    resumed.notes.iter().chain(&changed).for_each(|note| output::say(&format!("note: {note}")));
    Ok(PreparedExperiment { experiment, dir, info: resumed.info, fresh: false })
}

fn command_line() -> Vec<String> {
    std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect()
}

fn now_unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// Drives an experiment with its live view; Ctrl-C once ends it well (some), twice at once (none).
async fn watched(
    experiment_run: ExperimentRun<'_>,
    plans: Plans,
    style: Style,
) -> Result<Option<ExperimentOutcome>, LabError> {
    let mut interrupts =
        Interrupts::listen().map_err(|error| LabError::run(format!("cannot watch for Ctrl-C: {error}")))?;
    let (sender, events) = mpsc::unbounded_channel();
    let (stop_sender, stop) = watch::channel(false);
    let (key_sender, mut keys) = mpsc::unbounded_channel();
    let title = experiment_run.experiment.name.clone();
    let work = drive(experiment_run, |cell| plans.plan(cell), judgement, sender, stop);
    let both = async { tokio::join!(work, cells::watch(events, &title, style, key_sender)).0 };
    tokio::pin!(both);
    let mut requested_before = false;
    loop {
        tokio::select! {
            result = &mut both => return result.map(Some),
            // A key only requests a clean end; Ctrl-C is there for any other.
            Some(()) = keys.recv() => {
                requested_before = true;
                let _ = stop_sender.send(true);
            }
            () = interrupts.next() => {
                if requested_before {
                    return Ok(None);
                }
                requested_before = true;
                // The receiver is gone when it has just ended; then there is nothing to stop.
                let _ = stop_sender.send(true);
            }
        }
    }
}

/// Verdict on a run. Without any number all are unknown, whatever is known of how many there were.
fn judgement(run_dir: &Path) -> Option<CellVerdict> {
    let summary = Summary::from_run(&RunDir::open(run_dir).ok()?).ok()?;
    Some(match summary.conclusion() {
        RunConclusion::ServedNothing => CellVerdict::ServedNothing,
        RunConclusion::NothingMeasured => CellVerdict::Measured {
            unknown: vec!["all numbers, because no request came to its end".to_owned()],
            fault: None,
        },
        RunConclusion::Fine | RunConclusion::Undecided | RunConclusion::Failed => {
            let fault = summary.fault();
            CellVerdict::Measured { unknown: summary.headline.unknown, fault }
        }
    })
}

fn go_on(file: &Path, dir: &Path) -> String {
    format!("go on with: assay lab {} --resume {}", file.display(), dir.display())
}

/// Says how the cells stand, compares what there is, and gives the exit code.
fn conclude(args: &LabArgs, file: &Path, dir: &Path, ending: &ExperimentOutcome) -> Result<Exit, Failure> {
    let info = &ending.info;
    let count = |state| info.cells.iter().filter(|cell| cell.state == state).count();
    let (failed, invalid) = (count(CellState::Failed), count(CellState::Invalid));
    output::eprint(&show::standing(info));
    if ending.interrupted {
        output::say(&format!("interrupted; {}", go_on(file, dir)));
    }
    if info.cells.iter().any(|cell| cell.state != CellState::Waiting) {
        compare(args, dir)?;
    }
    if let Some(words) = &ending.abort_reason {
        output::say(words);
        if !info.finished {
            output::say(&format!("the remaining cells were not run; {}", go_on(file, dir)));
        }
    }
    if failed > 0 && !ending.interrupted {
        output::eprint(&format!(
            "what failed runs again, alone, with: assay lab {} --resume {}\n",
            file.display(),
            dir.display()
        ));
    }
    if invalid > 0 && !ending.interrupted {
        output::eprint(&format!(
            "what is not known runs again, alone, with: assay lab {} --resume {} --redo-invalid\n",
            file.display(),
            dir.display()
        ));
    }
    let judged = judged(dir, info);
    junit::of_experiment(args.junit.as_deref(), info, &judged)?;
    let mut unmet: Vec<String> = info.cells.iter().filter_map(fault).collect();
    let [not_met, undecided] = not_held(&judged);
    unmet.extend(not_met);
    unmet.iter().chain(&undecided).for_each(|line| output::say(line));
    let unknown = invalid + undecided.len() + usize::from(ending.abort_reason.is_some());
    Ok(exit(ending.interrupted, failed, unmet.len(), unknown))
}

/// Fault of the target of a cell, in a line.
fn fault(cell: &CellInfo) -> Option<String> {
    Some(format!("{}: {}", cell.id, cell.fault.as_ref()?))
}

/// The exit code, by cells that failed, requirements that were not met and faults of targets, and what is not known. What did not hold did
/// not, whatever else is unknown.
fn exit(interrupted: bool, failed: usize, unmet: usize, unknown: usize) -> Exit {
    match (interrupted, failed, unmet, unknown) {
        (true, ..) => Exit::Interrupted,
        (_, 1.., ..) => Exit::Failed,
        (_, _, 1.., _) => Exit::Unmet,
        (.., 1..) => Exit::Undecided,
        _ => Exit::Fine,
    }
}

/// Requirements of cells that are done, with their results, by the name of the cell.
fn judged(dir: &Path, info: &ExperimentInfo) -> Vec<(String, Vec<RequirementResult>)> {
    let done = info.cells.iter().filter(|cell| cell.state == CellState::Done);
    let judged = done.filter_map(|cell| {
        let run = RunDir::open(&dir.join(cell.run.as_ref()?)).ok()?;
        // Most have none, and a summary takes its time.
        let required = run.read_info().is_ok_and(|info| !info.requirements.is_empty())
            || run.path().join(assay_lab::conformance::FILE).is_file();
        let summary = required.then(|| Summary::from_run(&run).ok()).flatten()?;
        Some((cell.id.clone(), summary.requirements))
    });
    judged.collect()
}

/// Requirements that did not hold, and those that could not be decided, a line each.
fn not_held(judged: &[(String, Vec<RequirementResult>)]) -> [Vec<String>; 2] {
    let lines = |wanted: Decision, what: &str| {
        let of_cell = |(cell, judged): &(String, Vec<RequirementResult>)| {
            let chosen = judged.iter().filter(|one| one.decision == Some(wanted));
            let line =
                |one: &RequirementResult| format!("{cell}: requirement {what}: {} ({})", one.text, one.seen);
            chosen.map(line).collect::<Vec<_>>()
        };
        judged.iter().flat_map(of_cell).collect()
    };
    [lines(Decision::Failed, "failed"), lines(Decision::Undecided, "undecided")]
}

/// The form of the comparison, where it goes to the user.
fn form(args: &LabArgs) -> Result<ReportForm, Failure> {
    ReportForm::from_args(args.json.then_some(ReportForm::Json), args.output.as_deref())
}

/// Compares the cells that are done: tables on the terminal, a page and a document in the experiment's directory.
fn compare(args: &LabArgs, dir: &Path) -> Result<(), Failure> {
    report::make_comparison(dir, form(args)?, true, args.output.as_deref(), Some(&args.take))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_that_is_not_met_comes_before_what_is_unknown_and_behind_what_failed() {
        assert!(matches!(exit(false, 0, 0, 0), Exit::Fine));
        assert!(matches!(exit(false, 0, 0, 1), Exit::Undecided));
        assert!(matches!(exit(false, 0, 1, 1), Exit::Unmet));
        assert!(matches!(exit(false, 1, 1, 1), Exit::Failed));
        assert!(matches!(exit(true, 1, 1, 1), Exit::Interrupted));
    }

    #[test]
    fn requirements_that_failed_or_are_undecided_are_told_apart_by_cell() {
        let one = |decision| RequirementResult {
            text: "t".into(),
            decision: Some(decision),
            ..RequirementResult::default()
        };
        let cell = |name: &str, decision| (name.to_owned(), vec![one(decision)]);
        let [failed, undecided] = not_held(&[
            cell("a", Decision::Held),
            cell("b", Decision::Failed),
            cell("c", Decision::Undecided),
        ]);
        assert!(failed.len() == 1 && failed[0].starts_with("b: requirement failed"), "{failed:?}");
        assert!(
            undecided.len() == 1 && undecided[0].starts_with("c: requirement undecided"),
            "{undecided:?}"
        );
    }
}
