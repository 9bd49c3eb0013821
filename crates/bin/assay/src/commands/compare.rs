//! `assay compare`: which of several runs did better, and whether something got worse by more than is allowed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use assay_report::compare::{
    self as compare, CompareOptions, Comparison, GateOutcome, InputDirectory, Tolerance,
};
use clap::Args;

use super::export::ExportComparisonArgs;
use super::report::ReportForm;
use crate::exit::{Exit, Failure};
use crate::{junit, output};

const EXAMPLES: &str = "\
Examples:
  assay compare runs/image-varnish-1 runs/image-nginx-1
  assay compare base/ head/ --tolerance 5%
      two directories, each with runs in it; a gate for CI
  assay compare base=runs/a base=runs/b head=runs/c head=runs/d
      which runs belong together, said outright
  assay compare base/ head/ --tolerance p99=10% --tolerance dhr=1pt \\
    --markdown -o comment.md
  assay compare base/ head/ --tolerance 5% --junit junit.xml
  assay compare varnish-vs-ats   an experiment: its subjects, compared

The first subject is the baseline. Runs of the same target, version and settings are repetitions of one \
subject; where all runs are of the same thing, directories are compared.

Exit codes:
  0 fine · 1 nothing could be held against the tolerance · 2 usage error
  96 with --tolerance: the numbers of a run are not known
  99 with --tolerance: something is worse by more than that";

/// Flags of `assay compare`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// Directories of runs, of experiments, or that hold directories of runs; LABEL= names their subject
    #[arg(value_name = "[LABEL=]DIR", required = true, value_parser = parse_input)]
    pub runs: Vec<InputDirectory>,
    /// How much worse than the baseline something may be: `5%` for all headline metrics and errors, `p99=10%`,
    /// `p99=2ms`, `dhr=1pt` for one metric; may be given several times
    #[arg(long, value_name = "[METRIC=]AMOUNT")]
    pub tolerance: Vec<Tolerance>,
    /// Compare runs with different requests as if they had had the same
    #[arg(long)]
    pub any_stream: bool,
    /// Show runs whose numbers are not known too, without verdicts
    #[arg(long)]
    pub with_invalid: bool,
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// The result as Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Write the result to FILE, in the form that its name says: .json, .md, .html or .txt; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write what was held against the tolerances as JUnit's XML to FILE
    #[arg(long, value_name = "FILE", requires = "tolerance")]
    pub junit: Option<PathBuf>,
    /// Write the comparison as one HTML page, which needs no network, to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// What is taken along.
    #[command(flatten)]
    pub take: ExportComparisonArgs,
}

/// `LABEL=DIR`; a directory whose name has a `=` in it is taken as it is.
fn parse_input(text: &str) -> Result<InputDirectory, String> {
    let whole = Path::new(text);
    match text.split_once('=') {
        Some((label, path)) if !whole.exists() && !label.is_empty() && !path.is_empty() => {
            Ok(InputDirectory { label: Some(label.to_owned()), path: path.into() })
        }
        _ if text.is_empty() => Err("it is empty; name a directory".to_owned()),
        _ => Ok(InputDirectory { label: None, path: whole.to_owned() }),
    }
}

/// Compares, prints, and judges.
pub fn compare(args: &CompareArgs) -> Result<Exit, Failure> {
    output::check_results(args.output.as_deref(), [args.html.as_deref(), args.junit.as_deref()])?;
    args.take.check()?;
    form(args)?;
    let liberties = CompareOptions { any_stream: args.any_stream, with_invalid: args.with_invalid };
    let command: Vec<String> =
        std::iter::once("assay".to_owned()).chain(std::env::args_os().skip(1).map(text)).collect();
    let mut comparison = compare::runs(&args.runs, liberties, &command).map_err(Failure::usage)?;
    if comparison.subjects.len() < 2 && comparison.experiment.is_empty() {
        let why = anyhow!("there is one subject only, and nothing to compare it with");
        return Err(Failure::usage(why)
            .hint("name a second directory, or say which runs belong together: base=DIR head=DIR"));
    }
    if !args.tolerance.is_empty() {
        comparison.check_tolerances(&args.tolerance);
    }
    args.take.write(&comparison)?;
    print(args, &comparison)?;
    junit::of_comparison(args.junit.as_deref(), &comparison)?;
    verdict(args, &comparison)
}

fn text(argument: impl AsRef<OsStr>) -> String {
    argument.as_ref().to_string_lossy().into_owned()
}

fn print(args: &CompareArgs, comparison: &Comparison) -> Result<(), Failure> {
    if let Some(file) = &args.html {
        let page = comparison.to_html().map_err(Failure::failed)?;
        if file == Path::new("-") {
            return output::stdout(&page);
        }
        std::fs::write(file, page)
            .with_context(|| format!("cannot write the page to {}", file.display()))
            .map_err(Failure::failed)?;
    }
    let file = args.output.as_deref();
    let result = match form(args)? {
        ReportForm::Html => comparison.to_html().map_err(Failure::failed)?,
        ReportForm::Json => comparison.to_json().map_err(Failure::failed)?,
        ReportForm::Markdown => comparison.to_markdown(),
        ReportForm::Words => {
            return output::drawn(file, |style| comparison.to_terminal(args.html.as_deref(), style));
        }
    };
    output::result(&result, file)
}

/// The form of the result.
fn form(args: &CompareArgs) -> Result<ReportForm, Failure> {
    let flags = match (args.json, args.markdown) {
        (true, _) => Some(ReportForm::Json),
        (_, true) => Some(ReportForm::Markdown),
        _ => None,
    };
    ReportForm::from_args(flags, args.output.as_deref())
}

/// Exit code of the comparison.
fn verdict(args: &CompareArgs, comparison: &Comparison) -> Result<Exit, Failure> {
    // In words it stands in the result; who reads that with another program is told here.
    let aside = args.json || args.markdown || args.output.is_some();
    let Some(gate) = &comparison.gate else {
        if comparison.is_meaningless() && aside {
            output::eprint("warning: these runs were not sent the same requests, so there are no verdicts\n");
        }
        return Ok(Exit::Fine);
    };
    if aside {
        output::say(&gate.why);
    }
    match gate.outcome {
        GateOutcome::Invalid => Ok(Exit::Undecided),
        GateOutcome::Regressed => Ok(Exit::Unmet),
        GateOutcome::Held => Ok(Exit::Fine),
        GateOutcome::NotCompared => Err(Failure::failed(anyhow!("{}", gate.why)).hint(
            "the table of what differs says why; --any-stream compares runs that were sent different requests",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_stands_before_a_directory() {
        let named = |text| super::parse_input(text).unwrap();
        assert_eq!(
            named("base=runs/a=b"),
            InputDirectory { label: Some("base".into()), path: "runs/a=b".into() }
        );
        assert_eq!(named("runs/a"), InputDirectory { label: None, path: "runs/a".into() });
        assert_eq!(named("=x"), InputDirectory { label: None, path: "=x".into() });
        assert!(super::parse_input("").is_err());
    }
}
