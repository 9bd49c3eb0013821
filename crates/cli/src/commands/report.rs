//! `assay report`: what does a run directory say? Also one of a run that was cut off.

use std::path::{Path, PathBuf};

use assay_record::dir::RunDir;
use assay_report::summary::Summary;
use assay_report::{html, terminal};
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay report runs/demo-builtin-20260102-030405
  assay report runs/demo-builtin-20260102-030405 --json -o demo.json";

/// Flags of `assay report`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// The run directory; one of a run that was cut off will do
    #[arg(required_unless_present = "schema")]
    pub run_dir: Option<PathBuf>,
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write the result to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Make no HTML report
    #[arg(long)]
    pub no_report: bool,
    /// Print the JSON Schema of the document instead
    #[arg(long, conflicts_with_all = ["run_dir", "json", "no_report"])]
    pub schema: bool,
}

/// What a result looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Words,
    /// One JSON document.
    Json,
}

/// Reports a run directory.
pub fn report(args: &ReportArgs) -> Result<Exit, Failure> {
    let Some(run_dir) = &args.run_dir else {
        output::result(&output::json(&Summary::json_schema())?, args.output.as_deref())?;
        return Ok(Exit::Fine);
    };
    let form = if args.json { Form::Json } else { Form::Words };
    make(run_dir, form, !args.no_report, args.output.as_deref())?;
    Ok(Exit::Fine)
}

/// Summarises a run directory, writes its HTML report unless told not to, and prints the result.
pub fn make(run_dir: &Path, form: Form, with_html: bool, file: Option<&Path>) -> Result<(), Failure> {
    let dir = RunDir::open(run_dir).map_err(Failure::usage)?;
    let summary = Summary::from_run(&dir).map_err(Failure::failed)?;
    summary.write(&dir).map_err(Failure::failed)?;
    let page = if with_html { Some(html::write(&dir).map_err(Failure::failed)?) } else { None };
    let text = match form {
        Form::Json => summary.to_json().map_err(Failure::failed)?,
        Form::Words => terminal::render(&summary, page.as_deref(), &output::style(file)),
    };
    output::result(&text, file)
}
