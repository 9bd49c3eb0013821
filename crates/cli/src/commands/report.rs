//! `assay report`: the report of a directory of a run or of an experiment. Also one that was cut off.

use std::io;
use std::path::{Path, PathBuf};

use assay_compare::{self as compare, Comparison};
use assay_record::dir::{RunDir, RunDirError};
use assay_report::ReportError;
use assay_report::summary::Summary;
use assay_report::{html, terminal};
use assay_table::FileError;
use clap::Args;

use super::take_along::{TakeArgs, take_along};
use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay report runs/demo-builtin-20260102-030405
  assay report runs/demo-builtin-20260102-030405 --json -o demo.json
  assay report varnish-vs-ats              an experiment: its runs, compared
  assay report varnish-vs-ats --markdown   the same, for a pull request
  assay report runs/demo-builtin-20260102-030405 --csv demo/ --hdr demo.hlog
  assay report runs/demo-builtin-20260102-030405 --figures figures/
  assay report runs/demo-builtin-20260102-030405 --table robots | head";

/// Flags of `assay report`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReportArgs {
    /// The directory of a run or of an experiment; one that was cut off will do
    #[arg(value_name = "DIR", required_unless_present_any = ["schema", "comparison_schema"])]
    pub run_dir: Option<PathBuf>,
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// The comparison of an experiment's runs as Markdown
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Write the result to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Make no HTML report
    #[arg(long)]
    pub no_report: bool,
    /// What is taken along.
    #[command(flatten)]
    pub take: TakeArgs,
    /// Print the JSON Schema of a run's document instead
    #[arg(long, conflicts_with_all = ["run_dir", "json", "no_report"])]
    pub schema: bool,
    /// Print the JSON Schema of an experiment's document instead
    #[arg(long, conflicts_with_all = ["run_dir", "json", "markdown", "no_report", "schema"])]
    pub comparison_schema: bool,
}

/// What a result looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Words,
    /// One JSON document.
    Json,
    /// Markdown; a comparison only.
    Markdown,
}

/// Reports the directory of a run or of an experiment.
pub fn report(args: &ReportArgs) -> Result<Exit, Failure> {
    let Some(dir) = &args.run_dir else {
        let schema = if args.comparison_schema { Comparison::json_schema() } else { Summary::json_schema() };
        output::result(&output::json(&schema)?, args.output.as_deref())?;
        return Ok(Exit::Fine);
    };
    let form = match (args.json, args.markdown) {
        (true, _) => Form::Json,
        (_, true) => Form::Markdown,
        _ => Form::Words,
    };
    output::check_result(args.output.as_deref())?;
    if args.take.any() {
        args.take.check()?;
        return take_along(&args.take, dir, args.json, args.output.as_deref());
    }
    if compare::is_experiment(dir) {
        make_comparison(dir, form, !args.no_report, args.output.as_deref())?;
    } else if form == Form::Markdown {
        let why = anyhow::anyhow!(
            "{} is no experiment directory, and --markdown is for comparisons",
            dir.display()
        );
        return Err(Failure::usage(why));
    } else {
        make(dir, form, !args.no_report, args.output.as_deref())?;
    }
    Ok(Exit::Fine)
}

/// Compares the runs of an experiment, leaves `comparison.json` and (unless told not to) `comparison.html` in its
/// directory, and prints the result.
pub fn make_comparison(dir: &Path, form: Form, with_html: bool, file: Option<&Path>) -> Result<(), Failure> {
    let comparison = compare::experiment(dir).map_err(Failure::failed)?;
    let page = left(dir, || {
        comparison.write_json(dir)?;
        with_html.then(|| comparison.write_html(dir)).transpose()
    })?;
    let text = match form {
        Form::Json => comparison.to_json().map_err(Failure::failed)?,
        Form::Markdown => comparison.to_markdown(),
        Form::Words => comparison.to_terminal(page.as_deref(), &output::style(file)),
    };
    output::result(&text, file)
}

/// Summarises a run directory, writes its HTML report unless told not to, and prints the result.
pub fn make(run_dir: &Path, form: Form, with_html: bool, file: Option<&Path>) -> Result<Summary, Failure> {
    let dir = RunDir::open(run_dir).map_err(Failure::usage)?;
    let summary = Summary::from_run(&dir).map_err(Failure::failed)?;
    let page = left(run_dir, || {
        summary.write(&dir)?;
        with_html.then(|| html::write(&dir)).transpose()
    })?;
    let text = match form {
        Form::Json => summary.to_json().map_err(Failure::failed)?,
        Form::Words | Form::Markdown => terminal::render(&summary, page.as_deref(), &output::style(file)),
    };
    output::result(&text, file)?;
    Ok(summary)
}

/// What is left in `dir`, where that can be written to: the runs of others, and those that were put by, can be read all the
/// same.
fn left(
    dir: &Path,
    write: impl FnOnce() -> Result<Option<PathBuf>, ReportError>,
) -> Result<Option<PathBuf>, Failure> {
    let forbidden = |cause: &io::Error| {
        matches!(cause.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
    };
    match write() {
        Err(
            ReportError::RunDir(RunDirError::File(FileError::Write { cause, .. }))
            | ReportError::WriteComparison { cause, .. },
        ) if forbidden(&cause) => {
            output::eprint(&format!(
                "warning: {} may not be written to, so nothing is left there ({cause})\n",
                dir.display()
            ));
            Ok(None)
        }
        written => written.map_err(Failure::failed),
    }
}
