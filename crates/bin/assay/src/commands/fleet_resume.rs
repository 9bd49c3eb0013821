//! `assay fleet resume`: takes up a run on agents whose coordinator has ended.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow};
use assay_lab::machines::coordinator::Fleet;
use assay_lab::machines::coordinator::run::Coordinator;
use assay_lab::machines::coordinator::saved::SavedRun;
use clap::Args;

use super::coordinating::{coordinator_name, failure};
use super::login_args::LoginArgs;
use super::result_args::ResultArgs;
use crate::commands::run::perform;
use crate::exit::{Exit, Failure};
use crate::leftovers;

/// Flags of `assay fleet resume`.
#[derive(Debug, Args)]
pub struct ResumeArgs {
    /// The directory of the run
    #[arg(value_name = "RUN_DIR")]
    pub run_dir: PathBuf,
    /// The NATS server of the run [default: the one that it was begun with]
    #[arg(long, value_name = "URL")]
    pub nats: Option<String>,
    /// Who we are at the server.
    #[command(flatten)]
    pub login: LoginArgs,
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write the result to FILE, in the form that its name says (.json, .html or .txt); `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Make no HTML report (`assay report RUN_DIR` makes it later)
    #[arg(long)]
    pub no_report: bool,
    /// A line a second instead of the live view
    #[arg(long)]
    pub no_live: bool,
}

/// Takes a run up, and goes on as `assay run` would have done.
pub fn resume(args: &ResumeArgs) -> Result<Exit, Failure> {
    let results = ResultArgs {
        json: args.json,
        output: args.output.clone(),
        no_report: args.no_report,
        no_live: args.no_live,
        ..ResultArgs::default()
    };
    results.check()?;
    leftovers::clear();
    let exe = std::env::current_exe().context("cannot find the program itself").map_err(Failure::failed)?;
    let run_dir =
        std::path::absolute(&args.run_dir).context("cannot find RUN_DIR").map_err(Failure::usage)?;
    let mut plan = assay_lab::remote::plan_of(&run_dir, exe).map_err(Failure::usage)?;
    if plan.command.iter().any(|word| word.starts_with("--find-peak")) {
        return Err(Failure::usage(anyhow!(
            "the run was a search for a limit, and what its next step would have been ended with its coordinator; start it anew"
        )));
    }
    let saved = SavedRun::read(&run_dir).map_err(failure)?;
    let url = args.nats.clone().or_else(|| saved.url.clone()).ok_or_else(|| {
        Failure::usage(anyhow!(
            "the URL of the run's server was not written down, since it has a password in it"
        ))
        .hint("name it with --nats")
    })?;
    let fleet = Arc::new(Fleet::connect(&args.login.login(&url), "assay fleet resume").map_err(failure)?);
    let coordinator =
        Coordinator::resume(fleet, &run_dir, saved, coordinator_name(), env!("CARGO_PKG_VERSION"));
    plan.remote = Some(Arc::new(coordinator.map_err(failure)?));
    perform(plan, &results, 0, None)
}
