//! `assay doctor`: what this machine can carry and measure, what is missing, and what would fix it.
//!
//! [`facts()`] looks at the machine; [`judge()`] turns what it saw into findings, and is pure.

mod facts;
mod judge;

use std::path::Path;

use anyhow::Context;
use clap::Args;
use serde::Serialize;

pub use self::facts::BROWSERS;
use self::facts::{Facts, facts};
use self::judge::{DoctorFinding, FindingLevel, judge};
use crate::exit::{Exit, Failure};
use crate::{output, run_name};

const EXAMPLES: &str = "\
Examples:
  assay doctor
  assay doctor --json | jq '.findings[] | select(.standing != \"good\")'

It changes nothing. `assay check WORKLOAD` says what a certain workload needs, and
`assay run WORKLOAD --calibrate` measures what this machine can offer for it.";

/// Version of the JSON document.
const SCHEMA: &str = "assay-doctor/1";

/// Flags of `assay doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorArgs {
    /// The findings as one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The findings as JSON.
#[derive(Debug, Serialize)]
struct DoctorDocument {
    schema: &'static str,
    version: &'static str,
    kernel: String,
    cpu_model: String,
    processors: usize,
    findings: Vec<DoctorFinding>,
}

/// Looks at the machine and prints what it found.
pub fn doctor(args: &DoctorArgs) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot look at this machine")
        .map_err(Failure::failed)?;
    let seen = runtime.block_on(facts(Path::new(run_name::RUNS)));
    let findings = judge(&seen);
    let text = match args.json {
        true => output::json(&document(seen, findings))?,
        false => text(&seen, &findings),
    };
    output::stdout(&text)?;
    Ok(Exit::Fine)
}

fn document(seen: Facts, findings: Vec<DoctorFinding>) -> DoctorDocument {
    DoctorDocument {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        kernel: seen.kernel,
        cpu_model: seen.cpu_model,
        processors: seen.processors,
        findings,
    }
}

/// One screen: a line for each finding, and below it what would fix it.
fn text(seen: &Facts, findings: &[DoctorFinding]) -> String {
    let model = if seen.cpu_model.is_empty() { "processors of an unknown model" } else { &seen.cpu_model };
    let head = format!("Assay {} on Linux {}, {model}\n\n", env!("CARGO_PKG_VERSION"), seen.kernel);
    let line = |finding: &DoctorFinding| {
        let mark = match finding.standing {
            FindingLevel::Good => "ok",
            FindingLevel::Limited => "limited",
            FindingLevel::Missing => "missing",
        };
        let mend = finding.mend.as_ref().map(|mend| format!("{:25}→ {mend}\n", "")).unwrap_or_default();
        format!("  {mark:<8} {:<13} {}\n{mend}", finding.topic, finding.seen)
    };
    let lines: String = findings.iter().map(line).collect();
    let optimised = match cfg!(debug_assertions) {
        true => "\nThis is a build for development: what it measures says little of speed (`make build`).\n",
        false => "",
    };
    head + &lines + optimised
}
