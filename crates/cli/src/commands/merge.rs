//! `assay merge`: the parts of a run that were run by hand, as one run directory.

use std::path::PathBuf;
use std::time::Duration;

use assay_record::dir::RunDir;
use assay_record::merge::{MergeError, Wish, merge as join};
use clap::Args;

use super::report::{self, Form};
use crate::exit::{Exit, Failure};
use crate::units;

const EXAMPLES: &str = "\
Examples:
  assay merge robots-a robots-b origins -o whole
  assay merge a b c -o whole --clock-error 5ms   as measured with chrony
  assay compare whole another";

/// Flags of `assay merge`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// Directories that `assay robots` and `assay origins` made
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    pub runs: Vec<PathBuf>,
    /// The run directory to make
    #[arg(short, long = "output", value_name = "DIR")]
    pub output: PathBuf,
    /// How far the clocks of the parts' machines are apart at most [default: not known, unless it is one machine]
    #[arg(long, value_name = "DUR", value_parser = units::duration)]
    pub clock_error: Option<Duration>,
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Make no HTML report
    #[arg(long)]
    pub no_report: bool,
}

/// Joins parts, and reports the whole.
pub fn merge(args: &MergeArgs) -> Result<Exit, Failure> {
    let parts = args.runs.iter().map(|run| RunDir::open(run)).collect::<Result<Vec<_>, _>>();
    let wish = Wish {
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        clock_error: args.clock_error,
    };
    let out = join(&parts.map_err(Failure::usage)?, &args.output, &wish).map_err(failed)?;
    let form = if args.json { Form::Json } else { Form::Words };
    report::make(out.path(), form, !args.no_report, None)?;
    Ok(Exit::Fine)
}

/// Parts that do not belong together are the user's to choose; a disk that is full is not.
fn failed(error: MergeError) -> Failure {
    use assay_record::dir::RunDirError::File;
    match error {
        MergeError::Dir(File(_)) => Failure::failed(error),
        _ => Failure::usage(error),
    }
}
