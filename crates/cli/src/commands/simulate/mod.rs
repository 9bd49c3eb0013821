//! `assay simulate`: what would a cluster do under these policies?

mod collect;
mod document;
mod table;
mod ward;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::anyhow;
use assay_simulate::{Cell, Experiment, cells, read, simulate as run_cell};
use clap::Args;

use crate::clusters::{self, CLUSTERS};
use crate::exit::{Exit, Failure};
use crate::{output, units};
use collect::{Point, Taken};

const EXAMPLES: &str = "\
Examples:
  assay simulate                                 which clusters come with Assay?
  assay simulate figure-5                        RAND, RR and CAP as Jones measured them in 2002
  assay simulate mine.toml --json                a cluster of yours; the reference says what a file can have
  assay simulate locality --ward-analysis        how large should WARD's core be?";

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
    #[arg(long)]
    pub ward_analysis: bool,
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
    /// Write the result to FILE; `-` is standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Simulates a cluster file's combinations and shows what came out.
pub fn simulate(args: &SimulateArgs) -> Result<Exit, Failure> {
    let Some(named) = &args.cluster else {
        output::stdout(&list())?;
        return Ok(Exit::Fine);
    };
    let (name, text) = source(named)?;
    if args.show {
        output::stdout(&text)?;
        return Ok(Exit::Fine);
    }
    output::check_result(args.output.as_deref())?;
    let experiment = experiment(args, named, &name, &text)?;
    let text = match (args.ward_analysis, args.json) {
        (true, false) => ward::words(&experiment),
        (true, true) => output::json(&ward::document(&experiment))?,
        (false, json) => {
            let points = points(&experiment, threads(args));
            if json {
                output::json(&document::document(&name, &experiment, &points))?
            } else {
                table::words(&experiment, &points)
            }
        }
    };
    output::result(&text, args.output.as_deref())?;
    Ok(Exit::Fine)
}

fn list() -> String {
    CLUSTERS.iter().map(|cluster| format!("  {:<11} {}\n", cluster.name, cluster.about)).collect()
}

/// What the file is called, and what is in it.
fn source(named: &str) -> Result<(String, String), Failure> {
    if let Some(bundled) = clusters::find(named) {
        return Ok((bundled.name.to_owned(), bundled.text.to_owned()));
    }
    let path = Path::new(named);
    let text = std::fs::read_to_string(path).map_err(|error| {
        let failure = anyhow::Error::new(error).context(format!("cannot read the cluster {named}"));
        Failure::usage(failure).hint("`assay simulate` lists those that come with Assay")
    })?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok((stem, text))
}

fn experiment(args: &SimulateArgs, named: &str, name: &str, text: &str) -> Result<Experiment, Failure> {
    let folder = Path::new(named).parent().unwrap_or(Path::new(""));
    // What a file extends is beside it, or comes with Assay.
    let resolver = |extended: &str| match clusters::find(extended) {
        Some(bundled) => Ok(bundled.text.to_owned()),
        None => {
            std::fs::read_to_string(folder.join(extended)).map_err(|error| format!("cannot read it: {error}"))
        }
    };
    let shown = if clusters::find(named).is_some() { format!("{name}.toml") } else { named.to_owned() };
    let mut experiment =
        read(&shown, text, &resolver).map_err(|mistake| Failure::usage(anyhow!("{mistake}")))?;
    experiment.repetitions = args.repetitions.unwrap_or(experiment.repetitions);
    experiment.seed = args.seed.unwrap_or(experiment.seed);
    if let Some(measure) = args.measure {
        experiment.measure_s = measure.as_secs_f64();
    }
    Ok(experiment)
}

fn threads(args: &SimulateArgs) -> usize {
    let own = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    args.threads.map_or_else(own, |threads| threads as usize)
}

/// Runs all cells, and puts the repetitions of each combination together.
fn points(experiment: &Experiment, threads: usize) -> Vec<Point> {
    let all: Vec<Cell> = cells(experiment);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut taken = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(cell) = all.get(place) else { break taken };
            let mut seen = Taken::new(experiment);
            run_cell(experiment, cell, &mut seen);
            taken.push((place, seen));
        }
    };
    let mut taken: Vec<(usize, Taken)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        // A worker that panicked passes its panic on.
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    taken.sort_by_key(|(place, _)| *place);
    let mut points: Vec<Point> = Vec::new();
    for (place, seen) in taken {
        let cell = all[place];
        match points.last_mut().filter(|point| point.is_of(&cell)) {
            Some(point) => point.add(&seen, experiment),
            None => points.push(Point::new(cell, &seen, experiment)),
        }
    }
    points
}
