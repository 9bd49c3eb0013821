//! Flags by which `assay run` takes machines of a fleet.

use std::sync::Arc;

use anyhow::anyhow;
use assay_fleet::name::Name;
use assay_lab::{RunPlan, TargetChoice};
use assay_machines::coordinator::Fleet;
use assay_machines::coordinator::choice::{Labels, Needs, choose};
use assay_machines::coordinator::run::Coordinator;
use clap::Args;

use super::fleet::{failure, host};
use super::login_args::LoginArgs;
use crate::exit::Failure;
use crate::output;

/// Which machines take which part.
#[derive(Debug, Clone, Default, Args)]
pub struct MachinesArgs {
    /// Run on the agents that are connected to this NATS server (`assay agent`), in place of this machine
    #[arg(long, value_name = "URL", conflicts_with_all = ["calibrate", "find_peak", "retries"])]
    pub fleet: Option<String>,
    /// Robots run on the agents with this label or name, divided by processors [default: all]
    #[arg(long, value_name = "LABEL", requires = "fleet")]
    pub robots_on: Option<Name>,
    /// Origins run on the agents with this label or name [default: all]
    #[arg(long, value_name = "LABEL", requires = "fleet")]
    pub origins_on: Option<Name>,
    /// The proxy runs on the first agent with this label or name that has it [default: the first of all]
    #[arg(long, value_name = "LABEL", requires = "fleet")]
    pub proxy_on: Option<Name>,
    /// Who we are at the server.
    #[command(flatten)]
    pub login: LoginArgs,
}

impl MachinesArgs {
    /// Finds the machines of a run, if it takes any. Nothing is started on them.
    pub fn take(&self, plan: &mut RunPlan) -> Result<(), Failure> {
        let Some(url) = &self.fleet else { return Ok(()) };
        let fleet = Fleet::connect(&self.login.login(url), "assay run").map_err(failure)?;
        let (found, others) = fleet.discover().map_err(failure)?;
        for other in others {
            output::eprint(&format!("warning: {other}\n"));
        }
        let labels = Labels {
            robots: self.robots_on.clone(),
            origins: self.origins_on.clone(),
            proxy: self.proxy_on.clone(),
        };
        let described = match &plan.target {
            TargetChoice::Described(description, _) => Some(description.name.as_str()),
            _ => None,
        };
        let needs = Needs {
            robots: plan.workload.robot_count(),
            origins: u32::try_from(plan.workload.origins.len()).unwrap_or(u32::MAX),
            proxy: plan.target.is_started(),
            described,
            version: env!("CARGO_PKG_VERSION"),
        };
        let chosen = choose(&found, &labels, needs).map_err(failure)?;
        if plan.xact_log && chosen.robots.len() > 1 {
            return Err(Failure::usage(anyhow!(
                "--xact-log keeps one log, and the robots of this run are on {} machines",
                chosen.robots.len()
            ))
            .hint("name one of them with --robots-on, or leave --xact-log out"));
        }
        if chosen.robots.len() > 1 {
            plan.warnings.push(
                "robots are on several machines, so the ideal hit ratio is not known: each machine's ideal cache would know the \
                 requests of its own robots only"
                    .into(),
            );
        }
        let by = format!("{}@{}", user(), host());
        let run = run_name(plan);
        plan.elsewhere =
            Some(Arc::new(Coordinator::new(fleet, chosen, run, by, env!("CARGO_PKG_VERSION").to_owned())));
        Ok(())
    }
}

/// A name for the run that no other has: when, and which process.
fn run_name(plan: &RunPlan) -> Name {
    let name = plan.run_dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let short: String = name.chars().take(20).collect();
    let own = format!("{}-{:x}{:x}", short, std::process::id(), plan.world);
    let fallback = || Name::nearest(&format!("run-{:x}", std::process::id()));
    // The second is a name whatever the numbers are.
    Name::nearest(&own).or_else(fallback).unwrap_or_else(|| unreachable!("letters and digits are a name"))
}

fn user() -> String {
    std::env::var("USER").unwrap_or_else(|_| "somebody".to_owned())
}
