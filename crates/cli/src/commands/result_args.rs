//! The flags of all commands that run something. Where the result goes, and how it is watched.

use std::path::PathBuf;

use assay_report::require::Requirement;
use clap::Args;

use crate::watching::WatchArgs;

/// Flags of `assay run`, `assay robots` and `assay origins` alike.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Results")]
pub struct ResultArgs {
    /// Where the run directory goes [default: runs/WORKLOAD-PROXY-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write the result to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Make no HTML report (`assay report RUN_DIR` makes it later)
    #[arg(long)]
    pub no_report: bool,
    /// A line a second instead of the live view
    #[arg(long)]
    pub no_live: bool,
    /// What the run must show, like 'p99(hit) < 5ms', 'top1.dhr > 0.55' or 'errors == 0'; may be given more than once. One
    /// that fails ends with exit code 99
    #[arg(long, value_name = "REQUIREMENT")]
    pub require: Vec<Requirement>,
    /// End the run as soon as a requirement has failed for good
    #[arg(long)]
    pub stop_on_failure: bool,
    /// Who else may watch.
    #[command(flatten)]
    pub watch: WatchArgs,
}
