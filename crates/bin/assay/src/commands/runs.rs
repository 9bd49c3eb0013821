//! `assay runs`: what is in `runs/`, and the removal of what is no longer needed.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::anyhow;
use assay_base::quote::line::{line, path};
use assay_base::settings::show::bytes;
use assay_report::archive::selection::{AgeLimits, may_go_on, select_old};
use assay_report::archive::{ArchiveEntry, list, remove};
use assay_report::calendar::Utc;
use clap::{Args, Subcommand};
use serde::Serialize;

use crate::exit::{Exit, Failure};
use crate::{output, run_name, units};

const EXAMPLES: &str = "\
Examples:
  assay runs
  assay runs remove runs/demo-builtin-20260102-030405
  assay runs remove --older 30d --keep 10 --dry-run
      what began more than 30 days ago and is not among the ten latest";

/// Version of the JSON document.
const SCHEMA: &str = "assay-runs/1";

/// Flags of `assay runs`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct RunsArgs {
    /// What to do with them; without: list them
    #[command(subcommand)]
    pub what: Option<RunsCommand>,
    /// The directory in which they are
    #[arg(long, value_name = "DIR", default_value = run_name::RUNS)]
    pub dir: PathBuf,
    /// The list as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// What can be done with runs.
#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// Remove runs and experiments: those that are named, or old ones
    Remove(RemoveArgs),
}

/// Flags of `assay runs remove`.
#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Directories of runs or experiments, or their names in `runs/`
    #[arg(value_name = "RUN", conflicts_with_all = ["older", "keep"], required_unless_present_any = ["older", "keep"])]
    pub runs: Vec<PathBuf>,
    /// Those that began more than DUR ago, like 30d
    #[arg(long, value_name = "DUR", value_parser = units::duration)]
    pub older: Option<Duration>,
    /// Those that are not among the N latest
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// The directory in which they are
    #[arg(long, value_name = "DIR", default_value = run_name::RUNS)]
    pub dir: PathBuf,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// The list as JSON.
#[derive(Debug, Serialize)]
struct RunsDocument {
    schema: &'static str,
    runs: Vec<ArchiveEntry>,
}

/// Lists or removes runs.
pub fn runs(args: &RunsArgs) -> Result<Exit, Failure> {
    if let Some(RunsCommand::Remove(remove)) = &args.what {
        return remove_some(remove);
    }
    let entries = list(&args.dir).map_err(Failure::usage)?;
    let text = match args.json {
        true => output::json(&RunsDocument { schema: SCHEMA, runs: entries })?,
        false if entries.is_empty() => {
            format!("no runs in {}; `assay run demo` makes one\n", args.dir.display())
        }
        false => table(&entries),
    };
    output::stdout(&text)?;
    Ok(Exit::Fine)
}

/// A line for each, and their number and size.
fn table(entries: &[ArchiveEntry]) -> String {
    // Titles are of workloads and targets: as many characters as before, none of which ends a line.
    let width = entries.iter().map(|entry| entry.title.chars().count()).max().unwrap_or(0);
    let row = |entry: &ArchiveEntry| {
        let (when, size, verdict) = (when(entry.started_unix_ms), bytes(entry.bytes), entry.state.label());
        format!("{when}  {:<width$}  {verdict:<14}  {size:>7}  {}\n", line(&entry.title), path(&entry.path))
    };
    let lines: String = entries.iter().map(row).collect();
    let total = bytes(entries.iter().map(|entry| entry.bytes).sum());
    format!("{lines}{}, {total} in all (times in UTC)\n", counted(entries.len()))
}

fn counted(number: usize) -> String {
    format!("{number} run{} and experiments", if number == 1 { "" } else { "s" }).replacen(
        "1 run and experiments",
        "1 run or experiment",
        1,
    )
}

fn when(unix_ms: u64) -> String {
    let Utc { year, month, day, hour, minute, .. } = Utc::from_unix_s(unix_ms / 1000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

fn now_unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

fn remove_some(args: &RemoveArgs) -> Result<Exit, Failure> {
    let entries = list(&args.dir).map_err(Failure::usage)?;
    let age = AgeLimits { older_than: args.older, keep: args.keep };
    let chosen: Vec<ArchiveEntry> = match args.runs.as_slice() {
        [] => select_old(&entries, age, now_unix_ms()).into_iter().cloned().collect(),
        // All are looked up before the first is removed: a mistake in one of the names leaves everything as it is.
        named => named.iter().map(|name| find(name, &args.dir)).collect::<Result<_, _>>()?,
    };
    for entry in &chosen {
        if args.dry_run {
            output::stdout(&format!("would remove {}\n", path(&entry.path)))?;
            continue;
        }
        remove(&entry.path).map_err(Failure::failed)?;
        output::stdout(&format!("removed {}\n", path(&entry.path)))?;
    }
    let freed = bytes(chosen.iter().map(|entry| entry.bytes).sum());
    let would = if args.dry_run { "would be " } else { "" };
    output::stdout(&format!("{}: {freed} {would}freed\n", counted(chosen.len())))?;
    Ok(Exit::Fine)
}

/// The run at a path, or of that name in the directory of runs. One that may still go on is refused.
pub fn find(named: &Path, dir: &Path) -> Result<ArchiveEntry, Failure> {
    let inner = dir.join(named);
    let found = ArchiveEntry::read(named).or_else(|| ArchiveEntry::read(&inner));
    let Some(entry) = found else {
        return Err(Failure::usage(anyhow!(
            "{} is not the directory of a run or of an experiment",
            named.display()
        ))
        .hint("`assay runs` lists them"));
    };
    if may_go_on(&entry, now_unix_ms()) {
        return Err(Failure::usage(anyhow!(
            "{} may still be in progress: it has not ended, and was written to within the last minute",
            entry.path.display()
        ))
        .hint("wait until it has ended, or stop it"));
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_several_are_counted() {
        assert_eq!(counted(0), "0 runs and experiments");
        assert_eq!(counted(1), "1 run or experiment");
        assert_eq!(counted(21), "21 runs and experiments");
    }

    #[test]
    fn a_time_is_written_to_the_minute() {
        assert_eq!(when(1_767_323_045_000), "2026-01-02 03:04");
    }
}
