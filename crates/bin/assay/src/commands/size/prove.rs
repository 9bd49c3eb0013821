//! `assay size --prove`: a workload is run through real proxies at some sizes, and what they reach is shown beside what was predicted.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use assay_base::settings::show::bytes;
use assay_lab::experiment::cells::Experiment;
use assay_lab::units;
use assay_logs::size::curve::{CurvePlan, curves};
use assay_logs::size::input::ReadOptions;
use assay_logs::size::policy::{Policy, Replacement};
use assay_logs::size::proof::{Proof, ProofCell, Ratios};
use assay_logs::size::requests::Requests;
use assay_logs::size::sample::{SampleSize, Sampling};
use assay_logs::size::simulate::{Admission, HitCounts};
use assay_measurement::ratios::HitRatio;
use assay_proxy::spec::{Chosen, Storing};
use assay_record::dir::RunDir;
use assay_record::experiment::{CellState, ExperimentInfo};
use assay_report::tally::{self, Tally};
use clap::Args;

use super::model::{self, CacheModel};
use super::workload::{self, WorkloadArgs};
use crate::commands::lab;
use crate::exit::Failure;
use crate::run_name;

/// Flags of the proof.
#[derive(Debug, Args)]
#[command(next_help_heading = "Proof")]
pub struct ProveArgs {
    /// Objects take room as in PROXY (`builtin`, or a name from `assay proxies`), and requests have the effects that they have on it
    #[arg(long = "as", value_name = "PROXY")]
    pub as_proxy: Option<String>,
    /// Run the workload, or replay the log, through these proxies, and show predicted beside measured hit ratios
    #[arg(long, value_name = "PROXY,…", value_delimiter = ',', requires = "at")]
    pub prove: Vec<String>,
    /// The sizes of their caches
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', value_parser = units::size, requires = "prove")]
    pub at: Vec<u64>,
    /// Run each combination N times, with a seed of its own each time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), default_value_t = 1, requires = "prove")]
    pub repetitions: u32,
    /// Directory of the experiment; an existing one is resumed [default: runs/size-WORKLOAD-DATE-TIME]
    #[arg(long, value_name = "DIR", requires = "prove")]
    pub dir: Option<PathBuf>,
    /// How much faster than it was a log is replayed
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, requires = "prove")]
    pub speed: f64,
    /// Look for proxy descriptions in DIR too
    #[arg(long, value_name = "DIR")]
    pub proxy_dir: Vec<PathBuf>,
}

/// Policies and admission of the proxies of a proof.
#[derive(Debug)]
pub struct ProvedPolicies {
    /// The policies of the built-in proxy.
    policies: Vec<Replacement>,
    admission: Admission,
}

impl ProvedPolicies {
    /// Policies and admission as typed; no policies: LRU. Real proxies have their own, which are taken to be LRU and
    /// everything.
    pub fn new(policies: &[Policy], admission: Admission, args: &ProveArgs) -> Result<Self, Failure> {
        let asked = policies.len();
        let mut policies: Vec<Replacement> = policies.iter().filter_map(|policy| policy.online()).collect();
        if asked == 0 {
            policies.push(Replacement::Lru);
        }
        let real = args.prove.iter().find(|proxy| !model::is_builtin(proxy));
        let has_own = policies.contains(&Replacement::Lru) && admission == Admission::All;
        match real {
            _ if args.prove.is_empty() => {}
            _ if policies.is_empty() => {
                return Err(Failure::usage(anyhow!("no cache can have a policy that knows the future"))
                    .hint("give --policy names of others to prove, like lru,sieve"));
            }
            Some(proxy) if !has_own && !args.prove.iter().any(|proxy| model::is_builtin(proxy)) => {
                return Err(Failure::usage(anyhow!(
                    "{proxy} cannot be given these policies, or an admission: what is predicted for it is LRU"
                ))
                .hint("prove them on the built-in proxy (--prove builtin), or leave them out"));
            }
            _ => {}
        }
        Ok(Self { policies, admission })
    }

    /// Policies to run a proxy with.
    pub fn storing(&self, model: &CacheModel) -> Vec<Storing> {
        if !model.is_builtin() {
            return vec![Storing::default()];
        }
        self.policies
            .iter()
            .map(|&policy| Storing { policy, admission: self.admission, ..Storing::default() })
            .collect()
    }
}

/// Settings of the built-in proxy that are not the default, by their names.
pub fn settings(storing: Storing) -> std::collections::BTreeMap<String, String> {
    let usual = Chosen::default().as_typed();
    let mut all = Chosen { storing, ..Chosen::default() }.as_typed();
    all.retain(|name, value| usual.get(name) != Some(value));
    all
}

/// Refuses what a proof cannot do, before anything is simulated.
pub fn check(workload: Option<&str>, args: &ProveArgs, own: &WorkloadArgs) -> Result<(), Failure> {
    if args.prove.is_empty() {
        return Ok(());
    }
    if !(args.speed.is_finite() && args.speed > 0.0) {
        return Err(Failure::usage(anyhow!("a log cannot be replayed {} times as fast", args.speed))
            .hint("give --speed a number above 0, like 10"));
    }
    if workload.is_some() && args.speed != 1.0 {
        return Err(Failure::usage(anyhow!("--speed is for logs"))
            .hint("--rehearse makes the schedule of a workload shorter"));
    }
    if let Some(flag) = workload.and_then(|_| own.not_for_experiments()) {
        return Err(Failure::usage(anyhow!("{flag} does not go with --prove"))
            .hint("an experiment runs a workload as it is, or rehearsed: write the change into a copy of the workload"));
    }
    if args.at.contains(&0) {
        return Err(
            Failure::usage(anyhow!("a cache of nothing holds nothing")).hint("give --at sizes like 64MB,1GB")
        );
    }
    Ok(())
}

/// Runs what is left of the experiment, and compares.
pub fn prove(
    name: &str,
    args: &ProveArgs,
    proved: &ProvedPolicies,
    own: &WorkloadArgs,
    take: SampleSize,
) -> Result<Proof, Failure> {
    let models = args
        .prove
        .iter()
        .map(|proxy| CacheModel::from_description(proxy, &args.proxy_dir))
        .collect::<Result<Vec<_>, _>>()?;
    let stem = Path::new(name).file_stem().map_or_else(|| "workload".into(), |stem| stem.to_string_lossy());
    let title = format!("size-{stem}");
    let dir = args.dir.clone().unwrap_or_else(|| run_name::fresh_experiment(&title));
    let text = experiment(name, &models, args, proved, own)?;
    let read = Experiment::read("the experiment of --prove", &title, &text).map_err(Failure::usage)?;
    let info = lab::run_in(&read, &dir, &args.proxy_dir)?;
    let mut cells = Vec::new();
    for model in &models {
        let seeds = own.planned.seed..own.planned.seed + u64::from(args.repetitions);
        let mut requests = Vec::new();
        for seed in seeds {
            let how = ReadOptions { sampling: Sampling { take, seed }, ..ReadOptions::default() };
            requests.push(workload::read_as(name, own, seed, model, how)?.requests);
        }
        for storing in proved.storing(model) {
            for &size_bytes in &args.at {
                let predicted: Vec<Ratios> = requests
                    .iter()
                    .map(|requests| predicted(requests, storing, size_bytes))
                    .map(|counts| Ratios {
                        dhr: counts.dhr().unwrap_or(0.0),
                        bhr: counts.bhr().unwrap_or(0.0),
                    })
                    .collect();
                let measured = measured(&dir, &info, &label(model, storing, size_bytes), &own.phase);
                let predicted = Ratios::mean(&predicted).unwrap_or_default();
                cells.push(cell(model, storing, size_bytes, predicted, &measured, args.repetitions));
            }
        }
    }
    Ok(Proof { experiment: dir.display().to_string(), phases: own.phase.clone(), cells })
}

/// A prediction beside what was measured.
pub fn cell(
    model: &CacheModel,
    storing: Storing,
    size_bytes: u64,
    predicted: Ratios,
    measured: &[Ratios],
    repetitions: u32,
) -> ProofCell {
    let each = || measured.iter().map(|ratios| ratios.dhr);
    let range = (each().fold(f64::INFINITY, f64::min), each().fold(f64::NEG_INFINITY, f64::max));
    ProofCell {
        proxy: model.name.clone(),
        policy: Policy::Online(storing.policy),
        size_bytes,
        overhead_bytes: model.layout.overhead_bytes,
        unit_bytes: model.layout.unit_bytes,
        filled_percent: model.layout.filled_percent,
        predicted,
        measured: Ratios::mean(measured),
        measured_dhr_range: (!measured.is_empty()).then_some(range),
        runs: measured.len() as u32,
        repetitions,
    }
}

/// Hit ratios predicted for a cache of this size.
pub fn predicted(requests: &Requests, storing: Storing, size_bytes: u64) -> HitCounts {
    let (policies, sizes) = ([Policy::Online(storing.policy)], [size_bytes]);
    let plan = CurvePlan { policies: &policies, sizes: &sizes, warm_up: 0.0, admission: storing.admission };
    curves(requests, &plan).curves[0].points[0].estimate.counts
}

fn label(model: &CacheModel, storing: Storing, size_bytes: u64) -> String {
    let settings = settings(storing).into_values().map(|value| format!("{value}, "));
    format!("{}, {}{}", model.name, settings.collect::<String>(), bytes(size_bytes))
}

/// The experiment as a file says it: each proxy at each size.
fn experiment(
    name: &str,
    models: &[CacheModel],
    args: &ProveArgs,
    proved: &ProvedPolicies,
    own: &WorkloadArgs,
) -> Result<String, Failure> {
    // A string in JSON is one in TOML.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    // Paths in an experiment are relative to its own file.
    let path = Path::new(name);
    let workload = if path.is_file() {
        std::fs::canonicalize(path).map_err(Failure::usage)?.display().to_string()
    } else {
        name.to_owned()
    };
    let mut text = format!(
        "title = {}\nrepetitions = {}\nseed = {}\nprivate-as-public = {}\n",
        quoted(&format!("Predicted and measured hit ratios of {name}")),
        args.repetitions,
        own.planned.seed,
        own.planned.private_as_public,
    );
    if let Some(rehearse) = own.rehearsed_length()? {
        text.push_str(&format!("rehearse = \"{}ms\"\n", rehearse.as_millis()));
    }
    text.push_str(&format!("\n[[workload]]\nname = {}\nlabel = \"workload\"\n", quoted(&workload)));
    for model in models {
        for storing in proved.storing(model) {
            for &size_bytes in &args.at {
                let (memory, disk) = model.stores(size_bytes);
                text.push_str(&format!(
                    "\n[[proxy]]\nname = {}\nlabel = {}\nmemory = \"{memory}B\"\ndisk = \"{disk}B\"\n",
                    quoted(&model.name),
                    quoted(&label(model, storing, size_bytes)),
                ));
                for (setting, value) in settings(storing) {
                    text.push_str(&format!("set.{setting} = {}\n", quoted(&value)));
                }
            }
        }
    }
    Ok(text)
}

/// Hit ratios of the runs of a proxy that ended.
fn measured(dir: &Path, info: &ExperimentInfo, subject: &str, phases: &[String]) -> Vec<Ratios> {
    let ended = |state| matches!(state, CellState::Done | CellState::Invalid);
    let cells = info.cells.iter().filter(|cell| cell.subject == subject && ended(cell.state));
    cells.filter_map(|cell| of_run(&dir.join(cell.run.as_ref()?), phases)).collect()
}

fn of_run(dir: &Path, phases: &[String]) -> Option<Ratios> {
    let there = RunDir::open(dir).ok()?.read_partial().ok()?;
    let spans = tally::spans(&there.info, &there.series);
    let parts = Tally::of_phases(&there.info, &there.series, &spans, &there.missing);
    let names = there.info.phases.iter().map(|phase| &phase.name);
    let wanted = parts.iter().zip(names).filter(|(_, name)| phases.is_empty() || phases.contains(name));
    let all = Tally::of_some(wanted.map(|(part, _)| part));
    let ratio = |of: fn(&_, &_) -> HitRatio| of(&all.robots, &all.origins).measured;
    Some(Ratios { dhr: ratio(HitRatio::of_documents)?, bhr: ratio(HitRatio::of_bytes)? })
}
