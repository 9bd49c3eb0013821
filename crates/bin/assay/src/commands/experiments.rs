//! `assay experiments`: the experiments that come with Assay, and what they look like.

use anyhow::anyhow;
use assay_base::settings::suggest::or_did_you_mean;
use clap::{Args, Subcommand};

use crate::exit::{Exit, Failure};
use crate::experiments::{self, EXPERIMENTS};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay experiments
  assay lab six-proxies --rehearse 30s --skip-missing
  assay experiments show six-proxies > mine.toml
      a start for an experiment of your own
  assay experiments show siblings.pg > siblings.pg
      the workload that an experiment has beside itself";

/// Flags of `assay experiments`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ExperimentsArgs {
    /// What to do with them; without: list them
    #[command(subcommand)]
    pub what: Option<ExperimentsCommand>,
}

/// What can be done with bundled experiments.
#[derive(Debug, Subcommand)]
pub enum ExperimentsCommand {
    /// Print one as TOML, or a workload that one has beside itself
    Show {
        /// Its name
        name: String,
    },
}

/// Lists bundled experiments or prints one.
pub fn experiments(args: &ExperimentsArgs) -> Result<Exit, Failure> {
    let text = match &args.what {
        Some(ExperimentsCommand::Show { name }) => text(name)?.to_owned(),
        None => EXPERIMENTS.iter().map(|one| format!("  {:<19} {}\n", one.name, one.about)).collect(),
    };
    output::stdout(&text)?;
    Ok(Exit::Fine)
}

fn text(name: &str) -> Result<&'static str, Failure> {
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    experiments::text(stem).ok_or_else(|| {
        let near = or_did_you_mean(stem, EXPERIMENTS.iter().map(|experiment| experiment.name));
        Failure::usage(anyhow!("no bundled experiment is called {name}{near}"))
            .hint("`assay experiments` lists them")
    })
}
