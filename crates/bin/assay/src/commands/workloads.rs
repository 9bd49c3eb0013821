//! `assay workloads`: the workloads that come with Assay, and what they look like.

use anyhow::anyhow;
use assay_base::settings::suggest::or_did_you_mean;
use clap::{Args, Subcommand};

use crate::bundled::{self, SHELVES};
use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay workloads
  assay workloads show demo > mine.pg   a start for a workload of your own";

/// Flags of `assay workloads`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WorkloadsArgs {
    /// What to do with them; without: list them
    #[command(subcommand)]
    pub what: Option<WorkloadsCommand>,
}

/// What can be done with bundled workloads.
#[derive(Debug, Subcommand)]
pub enum WorkloadsCommand {
    /// Print one as PGL source text
    Show {
        /// Its name
        name: String,
    },
}

/// Lists bundled workloads or prints one.
pub fn workloads(args: &WorkloadsArgs) -> Result<Exit, Failure> {
    let text = match &args.what {
        Some(WorkloadsCommand::Show { name }) => text(name)?,
        None => list(),
    };
    output::stdout(&text)?;
    Ok(Exit::Fine)
}

fn list() -> String {
    let group = |group: &bundled::BundledGroup| {
        let lines =
            group.workloads.iter().map(|workload| format!("  {:<14} {}\n", workload.name, workload.about));
        format!("{}\n{}", group.title, lines.collect::<String>())
    };
    SHELVES.iter().map(group).collect::<Vec<_>>().join("\n")
}

/// A bundled workload, or a file that workloads include.
fn text(name: &str) -> Result<String, Failure> {
    let included = || assay_pgl::bundled(name).map(str::to_owned);
    bundled::find(name).map(|workload| workload.text.to_owned()).or_else(included).ok_or_else(|| {
        let hint = match name.strip_suffix(".pg").and_then(bundled::find) {
            Some(meant) => format!("it is called {} here", meant.name),
            None => "`assay workloads` lists them".into(),
        };
        let near = or_did_you_mean(name, bundled::all().map(|workload| workload.name));
        Failure::usage(anyhow!("no bundled workload is called {name}{near}")).hint(hint)
    })
}
