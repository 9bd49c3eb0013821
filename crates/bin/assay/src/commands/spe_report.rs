//! `assay spe report`: the report of a directory of an evaluation.

use std::path::PathBuf;

use assay_record::spe::SpeDir;
use assay_report::spe;
use clap::Args;

use super::export::{check_figures, figures_message};
use crate::commands::schema;
use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay spe report spe/evaluation-20260102-030405
  assay spe report spe/evaluation-20260102-030405 --json -o evaluation.json";

/// Flags of `assay spe report`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SpeReportArgs {
    /// The directory of an evaluation
    #[arg(value_name = "DIR", required_unless_present = "schema")]
    pub dir: Option<PathBuf>,
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write the result to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Make no HTML report
    #[arg(long)]
    pub no_report: bool,
    /// Draw every chart into DIR as SVG for a paper, with its numbers as CSV
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// Print the JSON Schema of the document instead
    #[arg(long, conflicts_with_all = ["dir", "json", "no_report"])]
    pub schema: bool,
}

/// Reports an evaluation: leaves `summary.json` and (unless told not to) `report.html` in its directory, and prints the
/// result.
pub fn report(args: &SpeReportArgs) -> Result<Exit, Failure> {
    let file = args.output.as_deref();
    let Some(path) = &args.dir else {
        output::result(&schema::of_document("spe"), file)?;
        return Ok(Exit::Fine);
    };
    output::check_result(file)?;
    output::check_directory(args.figures.as_deref())?;
    check_figures(args.figures.as_deref())?;
    let dir = SpeDir::open(path).map_err(Failure::usage)?;
    let evaluation = spe::evaluate(&dir).map_err(Failure::failed)?;
    evaluation.write_json(&dir).map_err(Failure::failed)?;
    let page =
        if args.no_report { None } else { Some(evaluation.write_html(&dir).map_err(Failure::failed)?) };
    if let Some(out) = &args.figures {
        let names = evaluation.write_figures(out).map_err(Failure::failed)?;
        output::eprint(&figures_message(&names, out));
    }
    match args.json {
        true => output::result(&evaluation.to_json().map_err(Failure::failed)?, file)?,
        false => output::drawn(file, |style| evaluation.to_terminal(page.as_deref(), style))?,
    }
    Ok(Exit::Fine)
}
