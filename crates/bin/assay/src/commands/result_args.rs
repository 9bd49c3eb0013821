//! The flags of all commands that run something. Where the result goes, and how it is watched.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use assay_measurement::error_kind::ErrorKind;
use assay_report::require::{Requirement, RequirementError};
use clap::Args;
use strum::VariantArray;

use super::report::ReportForm;
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
    /// Accept up to N wrong responses of a kind, like stale=5 (any number without N), each of which otherwise fails the run; may be
    /// given more than once
    #[arg(long, value_name = "KIND[=N]", value_parser = allowance)]
    pub allow: Vec<Requirement>,
    /// End the run as soon as a requirement has failed for good
    #[arg(long)]
    pub stop_on_failure: bool,
    /// Who else may watch.
    #[command(flatten)]
    pub watch: WatchArgs,
}

/// `stale=5` as a requirement of the whole run.
fn allowance(text: &str) -> Result<Requirement, String> {
    let (name, most) = text.split_once('=').map_or((text, None), |(name, most)| (name, Some(most)));
    let kinds = || ErrorKind::VARIANTS.iter().filter(|kind| kind.is_wrong_content());
    if !kinds().any(|kind| kind.name() == name) {
        let names: Vec<&str> = kinds().map(|kind| kind.name()).collect();
        return Err(format!(
            "`{name}` is not a kind of wrong response; expected one of {}",
            names.join(", ")
        ));
    }
    let limit = match most {
        None => ">= 0".to_owned(),
        Some(most) => {
            let most: u64 = most
                .parse()
                .map_err(|_| format!("`{most}` is not a number of responses; write it like stale=5"))?;
            format!("<= {most}")
        }
    };
    format!("run.errors({name}) {limit}").parse().map_err(|error: RequirementError| error.to_string())
}

impl ResultArgs {
    /// The form of the result; refuses a file's name that says none of those which there are.
    pub fn form(&self) -> Result<ReportForm, Failure> {
        match ReportForm::from_args(self.json.then_some(ReportForm::Json), self.output.as_deref())? {
            ReportForm::Markdown => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_is_a_requirement_of_the_whole_run() {
        let text = |text| allowance(text).map(|requirement| requirement.text().to_owned());
        assert_eq!(text("stale=5").as_deref(), Ok("run.errors(stale) <= 5"));
        assert_eq!(text("truncated_body").as_deref(), Ok("run.errors(truncated_body) >= 0"));
        for wrong in ["", "stale=", "stale=x", "stale=-1", "timed_out=5", "errors"] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
    }
}
