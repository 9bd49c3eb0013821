//! `assay merge`: the parts of a run that were run by hand, as one run directory; those of a WebStone, as one result.

use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_record::cluster_parts;
use assay_record::dir::RunDir;
use assay_record::merge::{MergeError, MergeOptions, merge as join};
use assay_report::policies;
use clap::Args;

use super::report::{self, ReportForm};
use crate::exit::{Exit, Failure};
use crate::{output, units};

const EXAMPLES: &str = "\
Examples:
  assay merge robots-a robots-b origins -o whole
  assay merge a b c -o whole --clock-error 5ms   as measured with chrony
  assay compare whole another
  assay merge web1.json web2.json -o all.json
      the parts of `assay webstone --part` as one result";

/// Flags of `assay merge`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct MergeArgs {
    /// Directories that `assay robots` and `assay origins` made, or results of `assay webstone --part`
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    pub runs: Vec<PathBuf>,
    /// The run directory to make; of results, the file
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
    if args.runs.iter().all(|run| run.is_file()) {
        return merge_results(args);
    }
    let parts = args.runs.iter().map(|run| RunDir::open(run)).collect::<Result<Vec<_>, _>>();
    let options = MergeOptions {
        command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        clock_error: args.clock_error,
    };
    let out = join(&parts.map_err(Failure::usage)?, &args.output, &options).map_err(failed)?;
    let form = if args.json { ReportForm::Json } else { ReportForm::Words };
    report::make(out.path(), form, !args.no_report, None)?;
    Ok(Exit::Fine)
}

/// Adds up the results of clients on several machines.
fn merge_results(args: &MergeArgs) -> Result<Exit, Failure> {
    output::check_result(Some(&args.output))?;
    let named = |path: &PathBuf| -> Result<_, Failure> {
        Ok((path.display().to_string(), super::policies::read(path)?))
    };
    let parts = args.runs.iter().map(named).collect::<Result<Vec<_>, Failure>>()?;
    let whole = cluster_parts::whole(&parts).map_err(Failure::usage)?;
    let document = output::json(&policies::document(&whole, None))?;
    output::result(&document, Some(&args.output))?;
    if args.output != Path::new("-") {
        let text = match args.json {
            true => document,
            false => policies::terminal_text(&whole) + &policies::services_text(&whole),
        };
        output::stdout(&text)?;
    }
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
