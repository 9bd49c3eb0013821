//! `assay size LOG --prove`: a log is replayed through real proxies at some sizes, and what they hit is shown beside what was
//! predicted. Each replay is a process of `assay replay`, in a directory of its own; those that are complete are only read.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow};
use assay_base::settings::show::bytes;
use assay_load::replay::ReplayResults;
use assay_logs::size::input::SizeInput;
use assay_logs::size::proof::{Proof, Ratios};
use assay_logs::size::simulate::HitCounts;
use assay_proxy::spec::Storing;

use super::model::CacheModel;
use super::prove::{ProveArgs, ProvedPolicies, cell, predicted, settings};
use crate::exit::Failure;
use crate::{output, run_name};

/// File that marks a complete replay.
const RESULT: &str = "replay.json";

/// Logs to replay.
pub struct ReplayedLog<'a> {
    pub files: &'a [PathBuf],
    pub format: Option<&'a str>,
}

/// Replays what is left to be replayed, and compares. `read` reads the requests as a model stores them.
pub fn prove(
    log: &ReplayedLog<'_>,
    args: &ProveArgs,
    proved: &ProvedPolicies,
    read: impl Fn(&CacheModel) -> Result<SizeInput, Failure>,
) -> Result<Proof, Failure> {
    let models = args
        .prove
        .iter()
        .map(|proxy| CacheModel::from_description(proxy, &args.proxy_dir))
        .collect::<Result<Vec<_>, _>>()?;
    let stem = log.files.first().and_then(|file| file.file_stem()).unwrap_or_default().to_string_lossy();
    let dir = args.dir.clone().unwrap_or_else(|| run_name::fresh_experiment(&format!("size-{stem}")));
    let mut cells = Vec::new();
    for model in &models {
        let requests = read(model)?.requests;
        for storing in proved.storing(model) {
            for &size_bytes in &args.at {
                let runs = runs(log, args, model, storing, size_bytes, &dir)?;
                let measured: Vec<Ratios> = runs.iter().filter_map(ratios).collect();
                let predicted = of_replayed(&predicted(&requests, storing, size_bytes), &runs);
                cells.push(cell(model, storing, size_bytes, predicted, &measured, args.repetitions));
            }
        }
    }
    Ok(Proof { experiment: dir.display().to_string(), phases: Vec::new(), cells })
}

/// The results of all replays through a proxy.
fn runs(
    log: &ReplayedLog<'_>,
    args: &ProveArgs,
    model: &CacheModel,
    storing: Storing,
    size_bytes: u64,
    dir: &Path,
) -> Result<Vec<ReplayResults>, Failure> {
    let named = settings(storing).into_values().fold(model.name.clone(), |name, value| name + "-" + &value);
    let run = |number: u32| {
        let of = args.repetitions;
        output::say(&format!("{named} with {}, replay {number} of {of}", bytes(size_bytes)));
        let dir = dir.join(format!("{named}-{size_bytes}-{number}"));
        replayed(log, args, model, storing, size_bytes, &dir).transpose()
    };
    (1..=args.repetitions).filter_map(run).collect()
}

/// The result of a replay, which is made if it is not there; none: it failed, and said why.
fn replayed(
    log: &ReplayedLog<'_>,
    args: &ProveArgs,
    model: &CacheModel,
    storing: Storing,
    size_bytes: u64,
    dir: &Path,
) -> Result<Option<ReplayResults>, Failure> {
    // A directory without a result is of a replay that was interrupted.
    let attempts = (1..).map(|attempt| dir.join(format!("{attempt}")));
    let mut place = dir.to_owned();
    for attempt in attempts {
        let is_there = attempt.exists();
        place = attempt;
        if !is_there || place.join(RESULT).is_file() {
            break;
        }
    }
    if !place.join(RESULT).is_file() {
        let (memory, disk) = model.stores(size_bytes);
        let exe =
            std::env::current_exe().context("cannot find the program itself").map_err(Failure::failed)?;
        let mut command = Command::new(exe);
        command.arg("replay").args(log.files).args([
            "--proxy",
            &model.name,
            "--method",
            "GET",
            "--quiet",
            "--json",
        ]);
        command.args(["--memory", &format!("{memory}B"), "--disk", &format!("{disk}B")]);
        command.args(["--speed", &args.speed.to_string()]).arg("--dir").arg(&place);
        for (setting, value) in settings(storing) {
            command.args(["--set", &format!("{setting}={value}")]);
        }
        if let Some(format) = log.format {
            command.args(["--format", format]);
        }
        for proxy_dir in &args.proxy_dir {
            command.arg("--proxy-dir").arg(proxy_dir);
        }
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
        let status = status.context("cannot start a replay").map_err(Failure::failed)?;
        if status.code() == Some(105) {
            return Err(Failure::failed(anyhow!("interrupted"))
                .hint(format!("--dir {} goes on with what is left", dir.parent().unwrap_or(dir).display())));
        }
        if !status.success() {
            return Ok(None);
        }
    }
    let text = assay_base::files::text(&place.join(RESULT), assay_base::files::DOCUMENT_MAX)
        .with_context(|| format!("cannot read the result of a replay in {}", place.display()))
        .map_err(Failure::failed)?;
    let results: ReplayResults = serde_json::from_str(&text)
        .with_context(|| format!("cannot read the result of a replay in {}", place.display()))
        .map_err(Failure::failed)?;
    Ok(Some(results).filter(|results| !results.interrupted && results.proxy_ended.is_none()))
}

fn ratios(results: &ReplayResults) -> Option<Ratios> {
    let cache = results.cache.as_ref()?;
    Some(Ratios { dhr: cache.dhr?, bhr: cache.bhr? })
}

/// The predicted hits over the requests that were replayed: those with other methods than GET were not.
fn of_replayed(counts: &HitCounts, runs: &[ReplayResults]) -> Ratios {
    let mean = |of: fn(&ReplayResults) -> u64, otherwise: u64| match runs.len() as u64 {
        0 => otherwise,
        number => runs.iter().map(of).sum::<u64>() / number,
    };
    let over = |hits: u64, all: u64| if all == 0 { 0.0 } else { (hits as f64 / all as f64).min(1.0) };
    Ratios {
        dhr: over(counts.hits, mean(|run| run.responses, counts.requests)),
        bhr: over(counts.hit_bytes, mean(|run| run.body_bytes, counts.bytes)),
    }
}
