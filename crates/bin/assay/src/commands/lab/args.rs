//! The command line of `assay lab`.

use std::path::PathBuf;
use std::time::Duration;

use assay_lab::experiment::cells::Experiment;
use assay_record::experiment::ExperimentInfo;
use assay_report::require::Requirement;
use clap::{Args, Subcommand};

use crate::commands::export::ExportComparisonArgs;
use crate::commands::machines_args::MachinesArgs;
use crate::{run_name, units};

const EXPERIMENT: &str = "Experiment";
const MACHINES: &str = "Several machines";
const AGAIN: &str = "Resuming";
const RECORD: &str = "Results";

const EXAMPLES: &str = "\
Examples:
  assay lab show compare.toml       what would it do, and for how long?
  assay lab compare.toml            run all of it, then compare
  assay lab compare.toml --rehearse 30s
      the same, every schedule squeezed into half a minute
  assay lab compare.toml --resume   go on with the last one that was interrupted
  assay lab compare.toml --fleet nats://10.0.0.1 --robots-on load
      the same on the machines of a fleet (`assay fleet`)

The first Ctrl-C ends the cell that runs, which will be run again by --resume; the second quits at once.";

/// Flags of `assay lab`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct LabArgs {
    /// Look before running.
    #[command(subcommand)]
    pub command: Option<LabCommand>,
    /// A TOML file that says what is compared, on what, and how often, or the name of a bundled experiment (`assay
    /// experiments`)
    #[arg(required = true, value_name = "EXPERIMENT")]
    pub experiment: Option<PathBuf>,

    /// Squeeze every schedule into DUR, instead of what the experiment says
    #[arg(long, value_name = "DUR", value_parser = units::duration, help_heading = EXPERIMENT)]
    pub rehearse: Option<Duration>,
    /// Run each combination N times, instead of what the experiment says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = EXPERIMENT)]
    pub repetitions: Option<u32>,
    /// Seed of the order and of the workloads, instead of what the experiment says
    #[arg(long, value_name = "N", help_heading = EXPERIMENT)]
    pub seed: Option<u64>,
    /// Repeat a cell whose headline numbers are unknown up to N times, as a whole and with a cold cache [default: 1, or what
    /// the experiment says]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100), help_heading = EXPERIMENT)]
    pub retries: Option<u32>,
    /// Before each run, wait for at most DUR until the machine is quiet, like 60s
    #[arg(long, value_name = "DUR", value_parser = units::duration, conflicts_with = "fleet", help_heading = EXPERIMENT)]
    pub wait_quiet: Option<Duration>,
    /// Try conformance cases of TOPIC (`assay conform list`), or one case, in the middle of the load, one every quarter of a second;
    /// a MUST that fails ends with exit code 99; may be given more than once
    #[arg(long, value_name = "TOPIC", help_heading = EXPERIMENT)]
    pub with_conform: Vec<String>,
    /// Leave the system's page cache alone; usually it is dropped before each cell
    #[arg(long, help_heading = EXPERIMENT)]
    pub keep_page_cache: bool,
    /// Look for proxy descriptions in DIR too; they win over bundled ones of the same name
    #[arg(long, value_name = "DIR", help_heading = EXPERIMENT)]
    pub proxy_dir: Vec<PathBuf>,
    /// What every cell must show, like 'p99(hit) < 5ms' or 'errors == 0'; may be given more than once. Cells that do not
    /// are listed at the end, with exit code 99
    #[arg(long, value_name = "REQUIREMENT", help_heading = EXPERIMENT)]
    pub require: Vec<Requirement>,
    /// Cells that this machine cannot carry (a proxy that is not installed) count as failed, and the rest runs
    #[arg(long, help_heading = EXPERIMENT)]
    pub skip_missing: bool,
    /// Print the cells in their order and how long they take; run nothing
    #[arg(long, help_heading = EXPERIMENT)]
    pub dry_run: bool,

    /// Machines.
    #[command(flatten, next_help_heading = MACHINES)]
    pub machines: MachinesArgs,

    /// Go on with the experiment in DIR (the last unfinished one in `runs/` when none is named): what has no result
    /// runs, and nothing else
    #[arg(
        long,
        value_name = "DIR",
        num_args = 0..=1,
        default_missing_value = run_name::RUNS,
        conflicts_with_all = ["dir", "new", "dry_run"],
        help_heading = AGAIN
    )]
    pub resume: Option<PathBuf>,
    /// Run cells whose numbers are not known once more, too
    #[arg(long, requires = "resume", help_heading = AGAIN)]
    pub redo_invalid: bool,
    /// Start a new experiment even if an unfinished one is in `runs/`
    #[arg(long, help_heading = AGAIN)]
    pub new: bool,
    /// Go on although Assay, a proxy, a workload, the experiment or the machines are not what they were: results get mixed
    #[arg(long, requires = "resume", help_heading = AGAIN)]
    pub mix_versions: bool,

    /// Where the experiment goes [default: runs/EXPERIMENT-DATE-TIME]
    #[arg(long, value_name = "DIR", help_heading = RECORD)]
    pub dir: Option<PathBuf>,
    /// The comparison as one JSON document
    #[arg(long, help_heading = RECORD)]
    pub json: bool,
    /// Write the comparison to FILE, in the form that its name says: .json, .md, .html or .txt; `-` is standard output
    #[arg(short, long, value_name = "FILE", help_heading = RECORD)]
    pub output: Option<PathBuf>,
    /// What is taken along.
    #[command(flatten)]
    pub take: ExportComparisonArgs,
    /// Also write how each cell ended, and what was required of it, as JUnit's XML to FILE
    #[arg(long, value_name = "FILE", help_heading = RECORD)]
    pub junit: Option<PathBuf>,
    /// A line for each cell instead of the live view
    #[arg(long, help_heading = RECORD)]
    pub no_live: bool,
}

/// What else can be done with an experiment.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// Explain an experiment: what is compared, on what, how often, for how long
    Show(ShowArgs),
}

/// Flags of `assay lab show`.
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// The experiment's file, or the name of a bundled one
    pub experiment: PathBuf,
    /// Every schedule squeezed into DUR
    #[arg(long, value_name = "DUR", value_parser = units::duration)]
    pub rehearse: Option<Duration>,
    /// Look for proxy descriptions in DIR too
    #[arg(long, value_name = "DIR")]
    pub proxy_dir: Vec<PathBuf>,
}

impl LabArgs {
    /// The experiment with what the command line says instead.
    pub fn applied(&self, experiment: Experiment) -> Experiment {
        Experiment {
            rehearse: self.rehearse.or(experiment.rehearse),
            repetitions: self.repetitions.unwrap_or(experiment.repetitions),
            seed: self.seed.unwrap_or(experiment.seed),
            retries: self.retries.unwrap_or(experiment.retries),
            drop_page_cache: experiment.drop_page_cache && !self.keep_page_cache,
            ..experiment
        }
    }
}

/// The experiment as an earlier command line had it.
pub fn as_recorded(experiment: Experiment, info: &ExperimentInfo) -> Experiment {
    let rehearse = info.rehearse_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    Experiment { rehearse, repetitions: info.repetitions, seed: info.seed, ..experiment }
}
