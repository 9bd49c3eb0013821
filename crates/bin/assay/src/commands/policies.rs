//! `assay policies`: results of simulations and of clusters, as table, document and page, and one against another.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use assay_load::node::clients::ClientsOutcome;
use assay_record::cluster::{ClusterResult, SCHEMA};
use assay_report::policies;
use clap::Args;

use crate::exit::{Exit, Failure};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  assay policies live.json   the table again
  assay policies live.json --html report.html
      throughput, response times, balance and gain as a page
  assay policies live.json --against sim.json
      how far is the cluster from its simulation?";

/// Flags of `assay policies`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PoliciesArgs {
    /// A document that `assay simulate`, `assay cluster` or `assay webstone` wrote with --json
    pub result: PathBuf,
    #[command(flatten)]
    pub results: Results,
}

/// What becomes of a result.
#[derive(Debug, Args)]
pub struct Results {
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write the result to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Also write the policy report as one HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write each node second by second (processors, disks, network) to FILE, as comma-separated values
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Compare it with another result, point by point: a cluster with its simulation
    #[arg(long, value_name = "RESULT.json")]
    pub against: Option<PathBuf>,
}

/// Outcome of runs of live clients, beside their numbers.
#[derive(Debug, Default)]
pub struct LiveVerdict {
    has_fault: bool,
    /// Largest share of a run for which clients waited for a processor, of runs whose times that leaves unknown.
    waiting_share: Option<f64>,
}

impl LiveVerdict {
    /// With one more run.
    pub fn add(&mut self, outcome: &ClientsOutcome) {
        self.has_fault |= outcome.tally.has_fault();
        let unknown = outcome.waiting_share.filter(|_| outcome.leaves_unknown());
        self.waiting_share = self.waiting_share.into_iter().chain(unknown).reduce(f64::max);
    }

    /// Says what is wrong with them; the exit code.
    pub fn conclude(&self) -> Exit {
        if let Some(share) = self.waiting_share {
            output::say(&format!(
                "response times are unknown: clients waited {:.0} % of the time for a processor; use fewer, or a machine with less other work",
                share * 100.0
            ));
        }
        match (self.has_fault, self.waiting_share) {
            (true, _) => {
                output::say("more than one request in a hundred failed");
                Exit::Unmet
            }
            (false, Some(_)) => Exit::Undecided,
            (false, None) => Exit::Fine,
        }
    }
}

impl Results {
    /// Finds out before the work what could not be read or written after it.
    pub fn check(&self) -> Result<(), Failure> {
        output::check_results(self.output.as_deref(), [self.html.as_deref(), self.csv.as_deref()])?;
        self.other().map(|_| ())
    }

    fn other(&self) -> Result<Option<ClusterResult>, Failure> {
        self.against.as_deref().map(read).transpose()
    }

    /// Writes what was found out, in every form that is wanted.
    pub fn show(&self, result: &ClusterResult) -> Result<(), Failure> {
        self.show_with(result, |_| String::new())
    }

    /// The same; the table is followed by `more`.
    pub fn show_with(
        &self,
        result: &ClusterResult,
        more: impl Fn(&ClusterResult) -> String,
    ) -> Result<(), Failure> {
        let other = self.other()?;
        if let Some(path) = &self.html {
            let page = policies::page(result, other.as_ref()).map_err(Failure::failed)?;
            output::result(&page, Some(path))?;
        }
        if let Some(path) = &self.csv {
            if result.points.iter().all(|point| point.node_series.is_empty()) {
                output::eprint(
                    "note: --csv has no lines: only nodes of Assay's own are watched second by second\n",
                );
            }
            output::result(&policies::nodes_csv(result), Some(path))?;
        }
        let text = match self.json {
            true => output::json(&policies::document(result, other.as_ref()))?,
            false => {
                let off = other.as_ref().map(|other| policies::difference(result, other));
                let mut text = policies::terminal_text(result) + &more(result);
                text.extend(off.iter().map(policies::difference_text));
                text
            }
        };
        output::result(&text, self.output.as_deref())
    }
}

/// Shows a result again.
pub fn policies(args: &PoliciesArgs) -> Result<Exit, Failure> {
    args.results.check()?;
    args.results.show(&read(&args.result)?)?;
    Ok(Exit::Fine)
}

/// A result as it was written.
pub fn read(path: &Path) -> Result<ClusterResult, Failure> {
    let attempt = || format!("cannot read the result {}", path.display());
    let text = assay_base::files::bytes(path, assay_base::files::DOCUMENT_MAX)
        .with_context(attempt)
        .map_err(Failure::usage)?;
    let no_result = |failure: anyhow::Error| {
        Failure::usage(failure).hint(
            "write one with --json -o FILE of `assay simulate`, `assay cluster --run` or `assay webstone`",
        )
    };
    let document: serde_json::Value =
        serde_json::from_slice(&text).with_context(attempt).map_err(no_result)?;
    // First of all: what another version wrote may lack anything.
    match document["schema"].as_str() {
        Some(SCHEMA) => serde_json::from_value(document).with_context(attempt).map_err(no_result),
        Some(schema) => {
            Err(no_result(anyhow!("{} has schema {schema}, and {SCHEMA} is read", path.display())))
        }
        None => Err(no_result(anyhow!("{} is no result: it says no `schema`", path.display()))),
    }
}
