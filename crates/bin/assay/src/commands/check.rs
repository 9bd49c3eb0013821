//! `assay check`: what a workload would do, and what is wrong with it.

use std::fmt::Write;
use std::time::Duration;

use assay_lab::Need;
use assay_workload::PhaseSpan;
use assay_workload::explain::shape::{Shape, shapes};
use assay_workload::model::Workload;
use clap::Args;
use serde::Serialize;

use super::{distributions, machine, schedule};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::overrides::PlannedArgs;
use crate::prepared::{PreparedWorkload, WorkloadOptions, prepare};

const EXAMPLES: &str = "\
Examples:
  assay check image.pg
  assay check image.pg --rehearse 60s         as it would be rehearsed
  assay check image.pg --stream-digest 1000   do two machines request the same?";

/// Version of the JSON document.
const SCHEMA: &str = "assay-check/1";

/// Flags of `assay check`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CheckArgs {
    /// A PGL file, `-` for standard input, or the name of a bundled workload (`assay workloads`)
    pub workload: String,
    /// What is changed about it.
    #[command(flatten)]
    pub planned: PlannedArgs,
    /// Requests of each robot that the stream digest covers [default: 100; fewer where there are more than 10,000 robots]
    #[arg(long, value_name = "N")]
    pub stream_digest: Option<u64>,
    /// Threads that compute the digest; it is the same for any number [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Option<u32>,
    /// The result as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The response as JSON.
#[derive(Debug, Serialize)]
struct CheckDocument<'a> {
    schema: &'static str,
    workload: &'a str,
    robots: u32,
    origins: Vec<&'a str>,
    scale: Option<f64>,
    seed: u64,
    stream_digest: &'a str,
    stream_digest_requests: u64,
    /// How the stream follows from workload and seed.
    stream_version: u32,
    length_s: Option<f64>,
    phases: Vec<PhaseDocument<'a>>,
    explained: &'a [String],
    /// What is really drawn from the workload's distributions.
    distributions: Vec<Shape>,
    warnings: &'a [String],
    notes: &'a [String],
    /// What a run through the built-in proxy needs of this machine.
    machine: &'a [Need],
    /// The workload as compiled (and rehearsed): what the run directory keeps as `workload.json`.
    compiled: &'a Workload,
}

/// One phase as JSON; what cannot be known before the run is null.
#[derive(Debug, Serialize)]
struct PhaseDocument<'a> {
    name: &'a str,
    start_s: Option<f64>,
    end_s: Option<f64>,
    requests: Option<f64>,
    offered_dhr: Option<f64>,
    fill_bytes: Option<f64>,
}

pub fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    let prepared = prepare(&WorkloadOptions {
        workload: &args.workload,
        include: &args.planned.include,
        rate: 1.0,
        overrides: args.planned.load.with_robots(args.planned.robots),
        rehearse: args.planned.rehearse,
        seed: args.planned.seed,
        private_as_public: args.planned.private_as_public,
        digest_requests: args.stream_digest,
        digest_later: false,
        threads: args.threads,
        remarks_on_bundled: true,
    })?;
    let needs = machine::needs(args, &prepared)?;
    let text = if args.json {
        output::json(&document(args, &prepared, &needs))?
    } else {
        output::fitted(&text(args, &prepared, &needs))
    };
    output::stdout(&text)?;
    Ok(Exit::Fine)
}

fn document<'a>(args: &CheckArgs, prepared: &'a PreparedWorkload, needs: &'a [Need]) -> CheckDocument<'a> {
    let seconds = |at: Option<Duration>| at.map(|at| at.as_secs_f64());
    let whole = |span: &'a PhaseSpan| span.expected.as_ref().filter(|_| !span.is_endless());
    let phase = |span: &'a PhaseSpan| PhaseDocument {
        name: &span.name,
        start_s: seconds(span.start),
        end_s: seconds(span.end).filter(|_| !span.is_endless()),
        requests: whole(span).map(|expected| expected.requests),
        offered_dhr: span.expected.as_ref().map(|expected| expected.offered_dhr()),
        fill_bytes: whole(span).map(|expected| expected.fill_bytes),
    };
    CheckDocument {
        schema: SCHEMA,
        workload: &prepared.workload.name,
        robots: prepared.workload.robot_count(),
        origins: prepared.workload.origins.iter().map(|origin| origin.authority.as_str()).collect(),
        scale: prepared.scale,
        seed: args.planned.seed,
        stream_digest: &prepared.stream_digest,
        stream_digest_requests: prepared.stream_digest_requests,
        stream_version: assay_workload::STREAM_VERSION,
        length_s: seconds(prepared.timeline.total()),
        phases: prepared.timeline.phases().iter().map(phase).collect(),
        explained: &prepared.explained,
        distributions: shapes(&prepared.workload),
        warnings: &prepared.warnings,
        notes: &prepared.notes,
        machine: needs,
        compiled: &prepared.workload,
    }
}

fn text(args: &CheckArgs, prepared: &PreparedWorkload, needs: &[Need]) -> String {
    let mut text = String::new();
    // Phases are in the table below.
    for line in prepared.explained.iter().filter(|line| !line.starts_with("phase ")) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    }
    text.push('\n');
    text.push_str(&schedule::text(prepared));
    text.push_str(&distributions::text(&shapes(&prepared.workload)));
    text.push_str(&machine::text(needs, prepared));
    let _ = writeln!(
        text,
        "\nstream digest {} (first {} requests of every robot, seed {})",
        prepared.stream_digest, prepared.stream_digest_requests, args.planned.seed
    );
    for note in &prepared.notes {
        let _ = writeln!(text, "note: {note}");
    }
    match prepared.warnings.len() {
        0 => {}
        1 => text.push_str("1 warning, shown above\n"),
        count => text.push_str(&format!("{count} warnings, shown above\n")),
    }
    text
}
