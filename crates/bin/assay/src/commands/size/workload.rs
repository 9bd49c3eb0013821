//! A workload as the input of `assay size`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use assay_lab::units;
use assay_logs::size::error::SizeError;
use assay_logs::size::input::{ReadOptions, ResponseTime, SizeInput};
use assay_logs::size::workload::{self, WorkloadPlan};
use assay_workload::model::Workload;
use assay_workload::rehearse::Rehearsal;
use assay_workload::{Universe, UniverseOptions};
use clap::Args;

use super::model::CacheModel;
use crate::exit::Failure;
use crate::file_kind::{self, FileKind};
use crate::overrides::{self, PlannedArgs};
use crate::prepared::{PreparedWorkload, WorkloadOptions, prepare};

/// Requests of each robot that the digest of a simulated stream covers; it is not shown.
const DIGEST_REQUESTS: u64 = 1;

/// Flags for inputs that are workloads.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workloads")]
pub struct WorkloadArgs {
    /// As for `assay check`.
    #[command(flatten)]
    pub planned: PlannedArgs,
    /// Count only requests of these phases; those of the others act on the caches
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub phase: Vec<String>,
    /// How long a response of the origin takes. Requests for its object that come before it is there can be collapsed; a workload's
    /// embedded objects, and the next requests of best-effort robots, are requested then. `logged`: as long as the log or the trace says
    /// [default: no time; 10ms for best-effort robots]
    #[arg(long, value_name = "DUR|logged", value_parser = response_time, help_heading = "Time")]
    pub response_time: Option<ResponseTime>,
}

impl WorkloadArgs {
    /// The first of the flags that were given and change a workload in a way that experiments do not know.
    pub fn not_for_experiments(&self) -> Option<&'static str> {
        [
            ("--robots", self.planned.robots.is_some()),
            ("--duration", self.planned.load.duration.is_some()),
            ("--rate", self.planned.load.rate.is_some()),
            ("--include", !self.planned.include.is_empty()),
        ]
        .into_iter()
        .find_map(|(flag, is_given)| is_given.then_some(flag))
    }

    /// The length of the rehearsal; none: the workload is not rehearsed.
    pub fn rehearsed_length(&self) -> Result<Option<Duration>, Failure> {
        match self.planned.rehearse {
            None => Ok(None),
            Some(Rehearsal::Length(length)) => Ok(Some(length)),
            Some(Rehearsal::Share(_)) => {
                Err(Failure::usage(anyhow!("--rehearse with a share does not go with --prove"))
                    .hint("write the length of the rehearsal, like 60s"))
            }
        }
    }

    /// The first of the flags that were given, for an input that has no use for them.
    fn given(&self) -> Option<&'static str> {
        [
            ("--rehearse", self.planned.rehearse.is_some()),
            ("--robots", self.planned.robots.is_some()),
            ("--duration", self.planned.load.duration.is_some()),
            ("--rate", self.planned.load.rate.is_some()),
            ("--private-as-public", self.planned.private_as_public),
            ("--include", !self.planned.include.is_empty()),
            ("--phase", !self.phase.is_empty()),
        ]
        .into_iter()
        .find_map(|(flag, is_given)| is_given.then_some(flag))
    }
}

/// Reads `100ms` or `logged`.
fn response_time(text: &str) -> Result<ResponseTime, String> {
    if text == "logged" {
        return Ok(ResponseTime::Logged);
    }
    let time = units::duration(text).map_err(|error| error.to_string())?;
    Ok(ResponseTime::Ms(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
}

/// The workload among the inputs; none: they are logs or traces.
pub fn named_workload(files: &[PathBuf], args: &WorkloadArgs) -> Result<Option<String>, Failure> {
    let is_workload = |file: &Path| {
        let is_source = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("pg"));
        is_source || file.to_str().and_then(file_kind::from_name) == Some(FileKind::Workload)
    };
    match files.iter().find(|file| is_workload(file)) {
        Some(workload) if files.len() == 1 => Ok(Some(workload.display().to_string())),
        Some(workload) => Err(Failure::usage(anyhow!(
            "cannot simulate the workload {} together with other inputs",
            workload.display()
        ))
        .hint("simulate them one after the other")),
        None => match args.given() {
            None => Ok(None),
            Some(flag) => Err(Failure::usage(anyhow!("{flag} is for workloads, and the input is none"))
                .hint("a workload is a file whose name ends in .pg, or one that `assay workloads` lists")),
        },
    }
}

/// The requests of a workload, as they act on a proxy.
pub fn read(
    name: &str,
    args: &WorkloadArgs,
    model: &CacheModel,
    how: ReadOptions,
) -> Result<SizeInput, Failure> {
    read_as(name, args, args.planned.seed, model, how)
}

/// The same with another seed.
pub fn read_as(
    name: &str,
    args: &WorkloadArgs,
    seed: u64,
    model: &CacheModel,
    how: ReadOptions,
) -> Result<SizeInput, Failure> {
    let prepared = prepare(&wish(name, args, seed))?;
    let options = UniverseOptions { private_as_public: args.planned.private_as_public };
    // The world's tag is in paths only.
    let universe = Universe::new(Arc::clone(&prepared.workload), seed, 0, options).map_err(Failure::usage)?;
    let response = match args.response_time {
        None => None,
        Some(ResponseTime::Ms(ms)) => Some(Duration::from_millis(ms)),
        Some(ResponseTime::Logged) => {
            return Err(Failure::usage(anyhow!(
                "{name} is a workload, which has no log that says how long responses took"
            ))
            .hint("write how long they take, like --response-time 100ms"));
        }
    };
    let plan = WorkloadPlan {
        name,
        universe: Arc::new(universe),
        timeline: Arc::clone(&prepared.timeline),
        behaviour: model.behaviour,
        response,
        phases: &args.phase,
        how,
    };
    let mut read = workload::read(&plan).map_err(failure)?;
    read.requests.lay_out(model.layout);
    read.notes.extend(remarks(&prepared));
    Ok(read)
}

pub fn compiled(name: &str, args: &WorkloadArgs) -> Result<Arc<Workload>, Failure> {
    Ok(prepare(&wish(name, args, args.planned.seed))?.workload)
}

fn wish<'a>(name: &'a str, args: &'a WorkloadArgs, seed: u64) -> WorkloadOptions<'a> {
    WorkloadOptions {
        workload: name,
        include: &args.planned.include,
        rate: 1.0,
        overrides: args.planned.load.with_robots(args.planned.robots),
        rehearse: args.planned.rehearse,
        seed,
        private_as_public: args.planned.private_as_public,
        digest_requests: Some(DIGEST_REQUESTS),
        digest_later: false,
        threads: None,
        remarks_on_bundled: false,
    }
}

/// Changes to the workload, a sentence each.
fn remarks(prepared: &PreparedWorkload) -> Vec<String> {
    let rehearsed = prepared.scale.map(|scale| {
        format!(
            "The schedule is rehearsed at {:.3} % of its length: there are fewer objects, and less is needed to hold them.",
            scale * 100.0
        )
    });
    let changed = overrides::in_words(&prepared.overrides).map(|changes| {
        let (first, rest) = changes.split_at(1);
        format!("{}{rest}.", first.to_uppercase())
    });
    rehearsed.into_iter().chain(changed).collect()
}

fn failure(error: SizeError) -> Failure {
    let hint = match &error {
        SizeError::Endless { .. } => Some("give it one: --duration 10m"),
        SizeError::ClassOfWorkload => Some("divide them by host or type"),
        SizeError::MixedRobots { .. } => {
            Some("give all robots a rate, or end the phases after a time: --duration 10m")
        }
        _ => None,
    };
    match hint {
        Some(hint) => Failure::usage(error).hint(hint),
        None => Failure::usage(error),
    }
}
