//! `assay report`: the report of a directory of a run or of an experiment. Also one that was cut off.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use assay_record::dir::{RunDir, RunDirError};
use assay_record::table::FileError;
use assay_report::ReportError;
use assay_report::compare;
use assay_report::summary::Summary;
use assay_report::{html, terminal};
use clap::Args;

use super::export::{ExportArgs, ExportComparisonArgs, export};
use crate::commands::schema;
use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay report runs/demo-builtin-20260102-030405
  assay report runs/demo-builtin-20260102-030405 --json -o demo.json
  assay report runs/demo-builtin-20260102-030405 -o demo.html
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
    /// Write the result to FILE, in the form that its name says: .json, .html, .md (a comparison) or .txt; `-` is standard
    /// output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Make no HTML report
    #[arg(long)]
    pub no_report: bool,
    /// What is taken along.
    #[command(flatten)]
    pub take: ExportArgs,
    /// Print the JSON Schema of a run's document instead
    #[arg(long, conflicts_with_all = ["run_dir", "json", "no_report"])]
    pub schema: bool,
    /// Print the JSON Schema of an experiment's document instead
    #[arg(long, conflicts_with_all = ["run_dir", "json", "markdown", "no_report", "schema"])]
    pub comparison_schema: bool,
}

/// Format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportForm {
    /// For people.
    Words,
    Json,
    /// Markdown; a comparison only.
    Markdown,
    /// The HTML report.
    Html,
}

impl ReportForm {
    /// The form of a result for `file`: what its name says, and where that says nothing, what the flags do. A name that says
    /// something else than the flags, or something that there is not, is refused.
    pub fn from_args(flags: Option<Self>, file: Option<&Path>) -> Result<Self, Failure> {
        let usual = flags.unwrap_or(Self::Words);
        let Some(path) = file.filter(|path| *path != Path::new("-")) else { return Ok(usual) };
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        // `result.2` is numbered, and has no ending.
        if ending.is_empty() || ending.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(usual);
        }
        let shown = path.display();
        let of_name = match ending.to_ascii_lowercase().as_str() {
            "json" => Self::Json,
            "html" | "htm" => Self::Html,
            "md" | "markdown" => Self::Markdown,
            "txt" | "text" | "log" => Self::Words,
            _ => {
                let failure = Failure::usage(anyhow!(
                    "cannot write the result to {shown}: there is no result of the form .{ending}"
                ));
                return Err(failure.hint(match ending {
                    "csv" | "parquet" | "ndjson" => {
                        "`assay report RUN --table NAME -o FILE` writes one table, `--csv DIR` and `--ndjson DIR` write all of \
                         them; a result can be .json, .html, .md (a comparison) or .txt"
                    }
                    _ => "a result can be .json, .html, .md (a comparison) or .txt",
                }));
            }
        };
        match flags {
            Some(wanted) if wanted != of_name => Err(Failure::usage(anyhow!(
                "cannot write {} to {shown}, which is named as if it were {}",
                wanted.name(),
                of_name.name()
            ))
            .hint("give the file another name, or leave the flag out: the name alone says the form")),
            _ => Ok(of_name),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Words => "text",
            Self::Json => "JSON",
            Self::Markdown => "Markdown",
            Self::Html => "HTML",
        }
    }
}

/// Reports the directory of a run or of an experiment.
pub fn report(args: &ReportArgs) -> Result<Exit, Failure> {
    let Some(dir) = &args.run_dir else {
        let kind = if args.comparison_schema { "comparison" } else { "summary" };
        output::result(&schema::of_document(kind), args.output.as_deref())?;
        return Ok(Exit::Fine);
    };
    output::check_result(args.output.as_deref())?;
    if args.take.any() {
        args.take.check()?;
        return export(&args.take, dir, args.json, args.output.as_deref());
    }
    let flags = match (args.json, args.markdown) {
        (true, _) => Some(ReportForm::Json),
        (_, true) => Some(ReportForm::Markdown),
        _ => None,
    };
    let form = ReportForm::from_args(flags, args.output.as_deref())?;
    if compare::is_experiment(dir) {
        make_comparison(dir, form, !args.no_report, args.output.as_deref(), None)?;
    } else if form == ReportForm::Markdown {
        let why = anyhow!(
            "{} is no experiment directory, and only comparisons are written as Markdown",
            dir.display()
        );
        return Err(Failure::usage(why).hint("a run can be written as .json, .html or .txt"));
    } else {
        make(dir, form, !args.no_report, args.output.as_deref())?;
    }
    Ok(Exit::Fine)
}

/// Compares the runs of an experiment, leaves `comparison.json` and (unless told not to) `comparison.html` in its
/// directory, writes what is taken along, and prints the result.
pub fn make_comparison(
    dir: &Path,
    form: ReportForm,
    with_html: bool,
    file: Option<&Path>,
    take: Option<&ExportComparisonArgs>,
) -> Result<(), Failure> {
    let comparison = compare::experiment(dir).map_err(Failure::failed)?;
    take.map_or(Ok(()), |take| take.write(&comparison))?;
    let page = left(dir, || {
        comparison.write_json(dir)?;
        with_html.then(|| comparison.write_html(dir)).transpose()
    })?;
    let text = match form {
        ReportForm::Json => comparison.to_json().map_err(Failure::failed)?,
        ReportForm::Markdown => comparison.to_markdown(),
        ReportForm::Html => comparison.to_html().map_err(Failure::failed)?,
        ReportForm::Words => {
            return output::drawn(file, |style| comparison.to_terminal(page.as_deref(), style));
        }
    };
    output::result(&text, file)
}

/// Summarises a run directory, writes its HTML report unless told not to, and prints the result.
pub fn make(
    run_dir: &Path,
    form: ReportForm,
    with_html: bool,
    file: Option<&Path>,
) -> Result<Summary, Failure> {
    let dir = RunDir::open(run_dir).map_err(Failure::usage)?;
    let summary = Summary::from_run(&dir).map_err(Failure::failed)?;
    let page = left(run_dir, || {
        summary.write(&dir)?;
        with_html.then(|| html::write(&dir)).transpose()
    })?;
    let text = match form {
        ReportForm::Json => summary.to_json().map_err(Failure::failed)?,
        ReportForm::Html => html::page(&dir, None).map_err(Failure::failed)?,
        ReportForm::Words | ReportForm::Markdown => {
            output::drawn(file, |style| terminal::render(&summary, page.as_deref(), style))?;
            return Ok(summary);
        }
    };
    output::result(&text, file)?;
    Ok(summary)
}

/// Writes the report into `dir`, where that can be written to: runs of others, and those in an archive, can be read
/// all the same.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_says_its_form_and_flags_say_it_where_the_name_does_not() {
        let form = |flags, name: &str| {
            ReportForm::from_args(flags, Some(Path::new(name))).map_err(|why| why.error.to_string())
        };
        for (name, wanted) in [
            ("x.json", ReportForm::Json),
            ("a/x.HTML", ReportForm::Html),
            ("x.htm", ReportForm::Html),
            ("x.md", ReportForm::Markdown),
            ("x.txt", ReportForm::Words),
            ("x", ReportForm::Words),
            ("x.2", ReportForm::Words),
            ("-", ReportForm::Words),
        ] {
            assert_eq!(form(None, name), Ok(wanted), "{name}");
        }
        for name in ["x", "x.json", "-", "x.10"] {
            assert_eq!(form(Some(ReportForm::Json), name), Ok(ReportForm::Json), "{name}");
        }
        assert!(form(Some(ReportForm::Json), "x.html").unwrap_err().contains("as if it were HTML"));
        assert!(
            form(Some(ReportForm::Json), "x.txt").is_err()
                && form(Some(ReportForm::Markdown), "x.json").is_err()
        );
        for name in ["x.csv", "x.pdf", "x.xml"] {
            assert!(form(None, name).unwrap_err().contains("there is no result of the form"), "{name}");
        }
        assert_eq!(
            ReportForm::from_args(None, None).map_err(|why| why.error.to_string()),
            Ok(ReportForm::Words)
        );
    }
}
