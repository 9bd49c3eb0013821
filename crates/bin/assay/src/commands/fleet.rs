//! `assay fleet`: the agents that are there, a fleet on one host, and a run whose coordinator has ended.

use std::time::Duration;

use anyhow::{Context, anyhow};
use assay_lab::machines::coordinator::{AgentWithClock, Fleet};
use assay_lab::machines::dev_fleet::{DevFleet, DevFleetSettings};
use assay_lab::machines::fleet::clock::AgentClock;
use assay_lab::machines::fleet::message::AgentInfo;
use clap::{Args, Subcommand};

use super::coordinating::failure;
use super::fleet_resume::{ResumeArgs, resume};
use super::login_args::LoginArgs;
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::{leftovers, output};

const EXAMPLES: &str = "\
Examples:
  assay fleet up           a server and three agents on this machine
  assay fleet --nats nats://127.0.0.1:4222
      which agents are there, what do they do, and how well are their
      clocks known?
  assay run demo --fleet nats://127.0.0.1:4222 --robots-on robots \\
    --proxy-on proxy --origins-on origins
  assay fleet resume runs/demo-builtin-20260101-120000
      go on with a run whose `assay run` was killed";

/// Flags of `assay fleet`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct FleetArgs {
    /// What to do [default: list the agents]
    #[command(subcommand)]
    pub what: Option<FleetCommand>,
    /// The NATS server that agents are connected to
    #[arg(long, value_name = "URL", default_value = "nats://127.0.0.1:4222")]
    pub nats: String,
    /// One JSON document
    #[arg(long)]
    pub json: bool,
    /// Who we are at the server.
    #[command(flatten)]
    pub login: LoginArgs,
}

/// What can be done with a fleet.
#[derive(Debug, Subcommand)]
pub enum FleetCommand {
    /// Start a NATS server and agents on this machine, until Ctrl-C
    Up(UpArgs),
    /// Go on with a run on agents whose `assay run` was killed
    Resume(ResumeArgs),
}

/// Flags of `assay fleet up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// How many agents
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub agents: u8,
    /// Port of the server on 127.0.0.1; 0: the system chooses
    #[arg(long, value_name = "PORT", default_value_t = 4222)]
    pub port: u16,
}

/// Lists agents, or starts some.
pub fn fleet(args: &FleetArgs) -> Result<Exit, Failure> {
    match &args.what {
        Some(FleetCommand::Up(up)) => {
            leftovers::clear();
            start(up)
        }
        Some(FleetCommand::Resume(args)) => resume(args),
        None => list(args),
    }
}

fn list(args: &FleetArgs) -> Result<Exit, Failure> {
    let fleet = Fleet::connect(&args.login.login(&args.nats), "assay fleet").map_err(failure)?;
    let (found, others) = fleet.discover().map_err(failure)?;
    for other in others {
        output::say(&format!("warning: {other}"));
    }
    let seen = fleet.measure(found).map_err(failure)?;
    if args.json {
        let all: Vec<_> = seen.iter().map(document).collect();
        let document = serde_json::json!({ "schema": "assay-fleet/1", "agents": all });
        output::stdout(&output::json(&document)?)?;
        return Ok(Exit::Fine);
    }
    if seen.is_empty() {
        output::eprint("no agent is connected to this server\n");
        return Ok(Exit::Fine);
    }
    output::stdout(&table(&seen))?;
    Ok(Exit::Fine)
}

/// A line for each agent, in columns.
fn table(seen: &[AgentWithClock]) -> String {
    let head = ["agent", "labels", "address", "cpus", "memory", "clock", "proxies", "now"].map(str::to_owned);
    let rows = std::iter::once(head).chain(seen.iter().map(row));
    let rows: Vec<[String; 8]> = rows.collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..8).map(width).collect();
    let line = |row: &[String; 8]| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn row(AgentWithClock { info, clock }: &AgentWithClock) -> [String; 8] {
    let list = |names: Vec<&str>| if names.is_empty() { "-".to_owned() } else { names.join(",") };
    [
        info.name.to_string(),
        list(info.labels.iter().map(|label| label.as_str()).collect()),
        info.address.to_string(),
        info.cpus.to_string(),
        assay_base::settings::show::bytes(info.memory_bytes),
        error_us(clock).map_or_else(|| "unknown".to_owned(), |error_us| format!("±{error_us} µs")),
        list(proxies(info)),
        doing(info),
    ]
}

/// The proxies that it starts: a name each, and whether it takes descriptions of others.
fn proxies(info: &AgentInfo) -> Vec<&str> {
    let names = info.proxies.iter().map(|proxy| proxy.name.as_str());
    names.chain(info.accepts_descriptions.then_some("any that a run describes")).collect()
}

fn doing(info: &AgentInfo) -> String {
    match &info.busy {
        None => "idle".to_owned(),
        Some(busy) => format!("{} in run {} of {}", busy.roles.join(", "), busy.run, busy.by),
    }
}

/// Error bound of an agent's clock, as of now.
fn error_us(clock: &AgentClock) -> Option<u64> {
    clock.now().ok().map(|offset| offset.error_ns().div_ceil(1000))
}

fn document(seen: &AgentWithClock) -> serde_json::Value {
    let AgentWithClock { info, clock } = seen;
    let offset = clock.now().ok();
    serde_json::json!({
        "name": info.name,
        "labels": info.labels,
        "version": info.version,
        "address": info.address,
        "kernel": info.kernel,
        "cpus": info.cpus,
        "memory_bytes": info.memory_bytes,
        "descriptors": info.descriptors,
        "may_load": info.may_load,
        "proxies": info.proxies,
        "accepts_descriptions": info.accepts_descriptions,
        "busy": info.busy,
        "clock": offset.map(|offset| serde_json::json!({
            "offset_ns": offset.middle_ns(),
            "error_ns": offset.error_ns(),
            "quickest_exchange_ns": clock.quickest_ns(),
        })),
    })
}

fn start(args: &UpArgs) -> Result<Exit, Failure> {
    let exe = std::env::current_exe().context("cannot find the program itself").map_err(Failure::failed)?;
    let settings = DevFleetSettings { agents: args.agents, port: args.port, exe };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start a fleet").map_err(Failure::failed)?;
    runtime.block_on(async {
        let mut interrupts =
            Interrupts::listen().context("cannot watch for Ctrl-C").map_err(Failure::failed)?;
        let starting = DevFleet::start(&settings);
        let mut up = tokio::select! {
            up = starting => up.map_err(failure)?,
            () = interrupts.next() => return Ok(Exit::Interrupted),
        };
        output::eprint(&format!(
            "{} agents are connected to {}; in another terminal:\n  assay fleet --nats {}\n  assay run demo --fleet {} --robots-on robots \
             --proxy-on proxy --origins-on origins\nCtrl-C ends them.\n",
            settings.agents, up.url, up.url, up.url
        ));
        let mut ticker = tokio::time::interval(Duration::from_millis(500));
        loop {
            tokio::select! {
                () = interrupts.next() => break,
                _ = ticker.tick() => {
                    if let Some(words) = up.agent_ended() {
                        output::say(&words);
                    }
                    if let Some(words) = up.server_ended() {
                        up.stop().await;
                        return Err(Failure::failed(anyhow!(words)));
                    }
                }
            }
        }
        up.stop().await;
        Ok(Exit::Fine)
    })
}
