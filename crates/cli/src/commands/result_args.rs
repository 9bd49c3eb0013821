//! The flags of all commands that run something. Where the result goes, and how it is watched.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use assay_report::require::Requirement;
use clap::Args;

use super::report::Form;
use crate::exit::Failure;
use crate::output;
use crate::watching::WatchArgs;

/// Flags of `assay run`, `assay robots` and `assay origins` alike.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Results")]
pub struct ResultArgs {
    /// Where the run directory goes [default: runs/WORKLOAD-PROXY-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write the result to FILE, in the form that its name says (.json, .html or .txt); `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write what was required of the run, and what came of it, as JUnit's XML to FILE
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
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

impl ResultArgs {
    /// The form of the result; refuses a file's name that says none of those which there are.
    pub fn form(&self) -> Result<Form, Failure> {
        match Form::of(self.json.then_some(Form::Json), self.output.as_deref())? {
            Form::Markdown => {
                let file = self.output.as_deref().unwrap_or(Path::new("-")).display();
                let why = anyhow!(
                    "cannot write the result to {file}: a run has none in Markdown, which is for comparisons"
                );
                Err(Failure::usage(why).hint("name the file .json, .html or .txt"))
            }
            form => Ok(form),
        }
    }

    /// True if the result is text on standard output.
    pub fn shows_words(&self) -> bool {
        !self.json && self.output.is_none()
    }

    /// Finds out before the run that its result could not be written.
    pub fn check(&self) -> Result<(), Failure> {
        output::check_results(self.output.as_deref(), [self.junit.as_deref()])?;
        self.form().map(|_| ())
    }
}
