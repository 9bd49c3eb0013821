//! `assay open`: the report of a run, or the comparison of an experiment, in the browser.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::commands::doctor::BROWSERS;
use anyhow::{Context, anyhow};
use assay_record::dir::RunDir;
use assay_report::archive::{ArchiveEntry, ResultKind, list};
use assay_report::compare;
use assay_report::html;
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::{output, run_name};

const EXAMPLES: &str = "\
Examples:
  assay open           the report of the latest run in runs/
  assay open varnish-vs-ats
      the comparison of an experiment
  assay open --print   only the path of the page";

/// Flags of `assay open`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct OpenArgs {
    /// The directory of a run or of an experiment, or its name in `runs/` [default: the latest]
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,
    /// Print the path of the page, and start no browser
    #[arg(long)]
    pub print: bool,
}

/// Opens a page, which is made if there is none yet.
pub fn open(args: &OpenArgs) -> Result<Exit, Failure> {
    let entry = chosen(args.run.as_deref())?;
    let page = match &entry.page {
        Some(page) => page.clone(),
        None => made(&entry)?,
    };
    output::stdout(&format!("{}\n", page.display()))?;
    if args.print {
        return Ok(Exit::Fine);
    }
    let page = std::path::absolute(&page).context("cannot find the page").map_err(Failure::failed)?;
    match openers().find(|opener| shows(opener, &page)) {
        Some(_) => Ok(Exit::Fine),
        None => Err(Failure::failed(anyhow!(
            "cannot open a browser: neither BROWSER nor {} shows the page",
            BROWSERS.join(" nor ")
        ))
        .hint("open the file that is named above in a browser; it needs no network")),
    }
}

/// The run that is named, or the latest.
fn chosen(named: Option<&Path>) -> Result<ArchiveEntry, Failure> {
    let dir = Path::new(run_name::RUNS);
    let Some(named) = named else {
        let latest = list(dir).map_err(Failure::usage)?.into_iter().next();
        return latest.ok_or_else(|| {
            Failure::usage(anyhow!("there is no run in {}", dir.display()))
                .hint("name the directory of a run, or make one: assay run demo")
        });
    };
    ArchiveEntry::read(named).or_else(|| ArchiveEntry::read(&dir.join(named))).ok_or_else(|| {
        Failure::usage(anyhow!("{} is not the directory of a run or of an experiment", named.display()))
            .hint("`assay runs` lists them")
    })
}

/// Writes the page that a run without a report, or an experiment that was not compared yet, lacks.
fn made(entry: &ArchiveEntry) -> Result<PathBuf, Failure> {
    let made = match entry.kind {
        ResultKind::Run => html::write(&RunDir::open(&entry.path).map_err(Failure::usage)?),
        ResultKind::Experiment => {
            compare::experiment(&entry.path).and_then(|all| all.write_html(&entry.path))
        }
    };
    made.map_err(Failure::failed)
}

fn openers() -> impl Iterator<Item = OsString> {
    let own = std::env::var_os("BROWSER").filter(|program| !program.is_empty());
    own.into_iter().chain(BROWSERS.map(OsString::from))
}

/// Lets a program show a page; false: it is not installed, or failed. What it prints is of no interest.
fn shows(opener: &OsString, page: &Path) -> bool {
    let mut command = Command::new(opener);
    command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
