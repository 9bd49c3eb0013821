//! Flags by which `assay run` and `assay lab` take machines of a fleet, for one run after the other.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use assay_lab::machines::agent::MOST_WAIT;
use assay_lab::machines::coordinator::Fleet;
use assay_lab::machines::coordinator::assignment::{AgentLabels, AgentNeeds, WantedProxy, choose};
use assay_lab::machines::coordinator::run::{Coordinator, ProxyOrder};
use assay_lab::machines::fleet::message::{AgentInfo, WatchOrder};
use assay_lab::machines::fleet::name::Name;
use assay_lab::run_info::digest;
use assay_lab::{RunPlan, TargetChoice};
use clap::Args;

use super::coordinating::{coordinator_name, failure};
use super::login_args::LoginArgs;
use crate::exit::Failure;
use crate::{output, units};

/// Longest wait for agents that have not yet ended their part in an earlier run of this command.
const UNTIL_FREE: Duration = Duration::from_secs(30);
/// Default time for which agents go on without a coordinator. A network that is cut for less costs nothing.
const USUAL_WAIT: Duration = Duration::from_secs(15);
/// Pause before they are looked at again.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Which machines take which part.
#[derive(Debug, Clone, Default, Args)]
pub struct MachinesArgs {
    /// Run on the agents that are connected to this NATS server (`assay agent`), in place of this machine
    #[arg(long, value_name = "URL")]
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
    /// Should this command be killed, agents go on for DUR before they end their roles (15s to 1h): within that time, `assay fleet
    /// resume RUN_DIR` takes the run up [default: 15s]
    #[arg(long, value_name = "DUR", requires = "fleet", value_parser = wait)]
    pub agents_wait: Option<Duration>,
    /// Who we are at the server.
    #[command(flatten)]
    pub login: LoginArgs,
}

fn wait(text: &str) -> Result<Duration, String> {
    let wait = units::duration(text).map_err(|error| error.to_string())?;
    match (USUAL_WAIT..=MOST_WAIT).contains(&wait) {
        true => Ok(wait),
        false => Err("agents wait for 15s at least, and for 1h at most".to_owned()),
    }
}

impl MachinesArgs {
    /// Connects to the server of a fleet, if one is named. `command` is who connects, for the server's list.
    pub fn connect(&self, command: &str) -> Result<Option<Machines>, Failure> {
        let Some(url) = &self.fleet else { return Ok(None) };
        let fleet = Arc::new(Fleet::connect(&self.login.login(url), command).map_err(failure)?);
        let labels = AgentLabels {
            robots: self.robots_on.clone(),
            origins: self.origins_on.clone(),
            proxy: self.proxy_on.clone(),
        };
        let wait = self.agents_wait.unwrap_or(USUAL_WAIT);
        Ok(Some(Machines { fleet, labels, wait, taken: RefCell::default() }))
    }
}

/// The machines of a fleet.
#[derive(Debug)]
pub struct Machines {
    fleet: Arc<Fleet>,
    labels: AgentLabels,
    wait: Duration,
    /// The runs that machines were found for so far.
    taken: RefCell<BTreeSet<Name>>,
}

impl Machines {
    /// Finds the machines of a run. Nothing is started on them.
    pub fn take(&self, plan: &mut RunPlan) -> Result<(), Failure> {
        let running = match &plan.target {
            TargetChoice::Running { address, .. } => Some(*address),
            _ => None,
        };
        if plan.watched.is_some() && running.is_some() && self.labels.proxy.is_none() {
            return Err(Failure::usage(anyhow!(
                "the machine is not known on which the processes of --watch run"
            ))
            .hint("name the agent there with --proxy-on"));
        }
        let found = self.found()?;
        let described = match &plan.target {
            TargetChoice::Described(description, _) => Some((description, digest(&description.source))),
            _ => None,
        };
        let wanted = described
            .as_ref()
            .map(|(wanted, digest)| WantedProxy { name: &wanted.name, description: digest });
        let needs = AgentNeeds {
            robots: plan.workload.robot_count(),
            origins: u32::try_from(plan.workload.origins.len()).unwrap_or(u32::MAX),
            // One that runs already is on a machine of the fleet only where that is said.
            proxy: plan.target.is_started() || (running.is_some() && self.labels.proxy.is_some()),
            described: wanted,
            version: env!("CARGO_PKG_VERSION"),
        };
        let chosen = choose(&found, &self.labels, needs).map_err(failure)?;
        if plan.xact_log && chosen.robots.len() > 1 {
            return Err(Failure::usage(anyhow!(
                "--xact-log keeps one log, and the robots of this run are on {} machines",
                chosen.robots.len()
            ))
            .hint("name one of them with --robots-on, or leave --xact-log out"));
        }
        let warning = "robots are on several machines, so the ideal hit ratio is not known: each machine's ideal cache would know \
                       the requests of its own robots only";
        if chosen.robots.len() > 1 && !plan.warnings.iter().any(|known| known == warning) {
            plan.warnings.push(warning.to_owned());
        }
        let run = run_name(plan, self.taken.borrow().len());
        self.taken.borrow_mut().insert(run.clone());
        let processes = plan.watched.as_ref().map(|watched| watched.processes.to_string());
        let store = plan.watched.as_ref().and_then(|watched| watched.store.clone());
        let watch = running.map(|address| WatchOrder { processes, address, store });
        let is_installed = |info: &AgentInfo| wanted.is_none_or(|wanted| wanted.is_installed(info));
        let is_sent = chosen.proxy.as_ref().is_some_and(|info| !is_installed(info));
        let description = described.as_ref().filter(|_| is_sent).map(|(wanted, _)| wanted.source.clone());
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let coordinator = Coordinator::new(
            self.fleet.clone(),
            chosen,
            run,
            coordinator_name(),
            version,
            self.wait,
            ProxyOrder { watch, description },
        );
        plan.remote = Some(Arc::new(coordinator));
        Ok(())
    }

    /// Agents that are present. Waits for those that still take part in an earlier run of this command.
    fn found(&self) -> Result<Vec<AgentInfo>, Failure> {
        let deadline = Instant::now() + UNTIL_FREE;
        loop {
            let (found, others) = self.fleet.discover().map_err(failure)?;
            let is_ours = |info: &AgentInfo| {
                info.busy.as_ref().is_some_and(|busy| self.taken.borrow().contains(&busy.run))
            };
            if found.iter().any(is_ours) && Instant::now() < deadline {
                std::thread::sleep(LOOK_EVERY);
                continue;
            }
            // Once is enough.
            if self.taken.borrow().is_empty() {
                others.iter().for_each(|other| output::say(&format!("warning: {other}")));
            }
            return Ok(found);
        }
    }
}

/// A name for the run that no other has: when, which process, and how many it had before.
fn run_name(plan: &RunPlan, before: usize) -> Name {
    let name = plan.run_dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let short: String = name.chars().take(20).collect();
    let own = format!("{}-{:x}{:x}-{before}", short, std::process::id(), plan.world);
    let fallback = || Name::nearest(&format!("run-{:x}-{before}", std::process::id()));
    // The second is a name whatever the numbers are.
    Name::nearest(&own).or_else(fallback).unwrap_or_else(|| unreachable!("letters and digits are a name"))
}
