//! `assay simulate`: what a cluster would do under several policies.

pub mod collect;
mod ward;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context;
use assay_cluster::simulate::{Cell, Experiment, cells, simulate as run_cell};
use assay_record::cluster::{ClusterResult, Origin, Tally};
use clap::Args;

use super::policies::Results;
use crate::clusters::{self, CLUSTERS};
use crate::exit::{Exit, Failure};
use crate::{interrupt, output, units};
use collect::RepetitionResult;

const EXAMPLES: &str = "\
Examples:
  assay simulate            which clusters come with Assay?
  assay simulate figure-5   RAND, RR and CAP as Jones measured them in 2002
  assay simulate mine.toml --json
      a cluster of yours; the reference says what a file can have
  assay simulate locality --ward-analysis
      how large should WARD's core be?";

/// Flags of `assay simulate`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct SimulateArgs {
    /// A cluster file, or the name of a bundled one; without: list them
    pub cluster: Option<String>,
    /// Print a bundled cluster file, as a start for one of your own
    #[arg(long, requires = "cluster")]
    pub show: bool,
    /// Repetitions of each combination, instead of what the file says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: Option<u32>,
    /// Simulated time that is counted in each, instead of what the file says
    #[arg(long, value_name = "DUR", value_parser = units::duration)]
    pub measure: Option<Duration>,
    /// Seed of all that is random, instead of what the file says
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Threads that simulate; results are the same for any number [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// Simulate nothing; compute for each mix and cluster which documents should be WARD's core
    #[arg(long, conflicts_with_all = ["html", "csv", "against"])]
    pub ward_analysis: bool,
    #[command(flatten)]
    pub results: Results,
}

/// Simulates a cluster file's combinations and shows what came out.
pub fn simulate(args: &SimulateArgs) -> Result<Exit, Failure> {
    let Some(named) = &args.cluster else {
        output::stdout(&list())?;
        return Ok(Exit::Fine);
    };
    let (name, text) = clusters::source(named)?;
    if args.show {
        output::stdout(&text)?;
        return Ok(Exit::Fine);
    }
    args.results.check()?;
    interrupt::ends_with("interrupted; nothing is kept of the simulation\n")
        .context("cannot watch for Ctrl-C")
        .map_err(Failure::failed)?;
    let experiment = experiment(args, named, &name, &text)?;
    if args.ward_analysis {
        let text = match args.results.json {
            false => ward::text(&experiment),
            true => output::json(&ward::document(&experiment))?,
        };
        output::result(&text, args.results.output.as_deref())?;
        return Ok(Exit::Fine);
    }
    args.results.show(&result(&name, &experiment, threads(args)))?;
    Ok(Exit::Fine)
}

fn list() -> String {
    CLUSTERS.iter().map(|cluster| format!("  {:<11} {}\n", cluster.name, cluster.about)).collect()
}

fn experiment(args: &SimulateArgs, named: &str, name: &str, text: &str) -> Result<Experiment, Failure> {
    let mut experiment = clusters::experiment(named, name, text)?;
    experiment.repetitions = args.repetitions.unwrap_or(experiment.repetitions);
    experiment.seed = args.seed.unwrap_or(experiment.seed);
    if let Some(measure) = args.measure {
        experiment.measure_s = measure.as_secs_f64();
        tell_failures_after_the_end(&experiment);
    }
    Ok(experiment)
}

/// A measurement that is shorter than the file says may end before nodes fail that the file lets fail.
pub fn tell_failures_after_the_end(experiment: &Experiment) {
    for failure in experiment.failures_after_the_end() {
        let (node, at_s) = (failure.node.0, failure.at_s);
        output::eprint(&format!(
            "note: node {node} does not fail: the measurement ends before {at_s} s, when it would\n"
        ));
    }
}

fn threads(args: &SimulateArgs) -> usize {
    let own = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    args.threads.map_or_else(own, |threads| threads as usize)
}

/// Runs all cells, and puts the repetitions of each combination together.
fn result(name: &str, experiment: &Experiment, threads: usize) -> ClusterResult {
    let all: Vec<Cell> = cells(experiment);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut taken = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(cell) = all.get(place) else { break taken };
            let mut seen = RepetitionResult::default();
            run_cell(experiment, cell, &mut seen);
            taken.push((place, seen.0));
        }
    };
    let mut taken: Vec<(usize, Tally)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        // A worker that panicked passes its panic on.
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    taken.sort_by_key(|(place, _)| *place);
    let taken: Vec<(Cell, Tally)> = taken.into_iter().map(|(place, tally)| (all[place], tally)).collect();
    collect::result(name, experiment, Origin::Simulated, &taken)
}
