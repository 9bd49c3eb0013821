//! `assay spe`: several proxies behind the same clients at once.

use clap::{Args, Subcommand};

use super::spe_report::{self, SpeReportArgs};
use crate::exit::{Exit, Failure};

/// Flags of `assay spe`.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub struct SpeArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: SpeCommand,
}

/// What can be done with an evaluation.
#[derive(Debug, Subcommand)]
pub enum SpeCommand {
    /// Make summary and HTML report from the directory of an evaluation
    Report(SpeReportArgs),
}

/// Does it.
pub fn spe(args: &SpeArgs) -> Result<Exit, Failure> {
    match &args.command {
        SpeCommand::Report(report) => spe_report::report(report),
    }
}
