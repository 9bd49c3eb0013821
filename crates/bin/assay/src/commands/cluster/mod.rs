//! `assay cluster`: a cluster file's nodes as they would be on a network, virtual or real.

mod calibrate;
mod front;
mod run;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use assay_cluster::simulate::{Cell, Experiment, OfferedLoad};
use assay_load::node::ModelClock;
use assay_load::node::nodes::{NodeKind, Nodes, NodesSpec};
use assay_protocol::network::is_private;
use clap::Args;
use serde::Serialize;

use super::client_counts::{ClientCounts, client_counts};
use super::policies::Results;
use super::simulate::tell_failures_after_the_end;
use crate::clusters::{self, CLUSTERS};
use crate::exit::{Exit, Failure};
use crate::interrupt::Interrupts;
use crate::target::reachable;
use crate::{opened, output, units};

const WHAT: &str = "What";
const NODES: &str = "Nodes";
const RUN: &str = "With --run or --calibrate";
const EXAMPLES: &str = "\
Examples:
  assay cluster figure-5   its four nodes, until Ctrl-C; says where they are
  assay cluster figure-5 --switch --policy cap
      with the switch in front
  assay cluster figure-5 --run --policy rand,cap --clients '2..20 by 2' \\
    --json -o live.json
      the live twin of `assay simulate figure-5`
  assay cluster figure-5 --calibrate
      what does a node need for each service?";

/// Flags of `assay cluster`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ClusterArgs {
    /// A cluster file, or the name of a bundled one; without: list them
    pub cluster: Option<String>,
    /// The [[cluster]] of the file with this label [default: the first; with --run: all]
    #[arg(long, value_name = "LABEL", help_heading = WHAT)]
    pub label: Option<String>,
    /// The mix of the file with this label [default: the first; with --run: all]
    #[arg(long, value_name = "LABEL", help_heading = WHAT)]
    pub mix: Option<String>,
    /// These policies of the file [default: the first; with --run: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', help_heading = WHAT)]
    pub policy: Vec<String>,
    /// Put the switch in front of the nodes
    #[arg(long, help_heading = WHAT)]
    pub switch: bool,
    /// Measure: clients request the file's mixes under its loads and policies, through the switch
    #[arg(long, help_heading = WHAT)]
    pub run: bool,
    /// Find out what each node needs for each service, alone and saturated
    #[arg(long, conflicts_with_all = ["run", "switch"], help_heading = WHAT)]
    pub calibrate: bool,
    /// Where the first node listens, the others on the ports after that; port 0: any that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0", value_parser = address, help_heading = NODES)]
    pub listen: SocketAddr,
    /// Real nodes: they burn processor time and write to disk, each in a directory of its own in DIR
    #[arg(long, value_name = "DIR", help_heading = NODES)]
    pub real: Option<PathBuf>,
    /// Servers that run already, in the order of the file's nodes: none are started
    #[arg(long, value_name = "ADDRESS,…", value_delimiter = ',', value_parser = address, conflicts_with = "real", help_heading = NODES)]
    pub nodes: Vec<SocketAddr>,
    /// You may load nodes with public addresses: they are yours
    #[arg(long, help_heading = NODES)]
    pub i_own_this_target: bool,
    /// All runs so many times slower, for a machine that cannot keep up; results are as if it did not
    #[arg(long, value_name = "TIMES", default_value_t = 1.0, value_parser = slower, help_heading = NODES)]
    pub slower: f64,
    /// Numbers of clients instead of the file's loads: 8, or 2,4,8, or `2..20 by 2`
    #[arg(long, value_name = "N", value_parser = client_counts, help_heading = RUN)]
    pub clients: Option<ClientCounts>,
    /// Repetitions of each combination, instead of what the file says
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = RUN)]
    pub repetitions: Option<u32>,
    /// Time before anything is counted, instead of what the file says
    #[arg(long, value_name = "DUR", value_parser = units::duration, help_heading = RUN)]
    pub warm_up: Option<Duration>,
    /// Time in which all is counted, instead of what the file says
    #[arg(long, value_name = "DUR", value_parser = units::duration, help_heading = RUN)]
    pub measure: Option<Duration>,
    /// Seed of all that is random, instead of what the file says
    #[arg(long, value_name = "N", help_heading = RUN)]
    pub seed: Option<u64>,
    /// Without a switch: clients send requests to the nodes that the policy names, as if they were the switch
    #[arg(long, help_heading = RUN)]
    pub without_switch: bool,
    /// Do not wait for the time that the file says the switch and the network take; they are what they are
    #[arg(long, help_heading = RUN)]
    pub as_it_is: bool,
    /// Clients use their connections again
    #[arg(long, help_heading = RUN)]
    pub keep_alive: bool,
    #[command(flatten)]
    pub results: Results,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("`{text}` is no address with a port; write it like 127.0.0.1:9000"))
}

fn slower(text: &str) -> Result<f64, String> {
    let times = text.parse::<f64>().ok().filter(|times| (0.1..=1000.0).contains(times));
    times.ok_or_else(|| format!("`{text}` is no number from 0.1 to 1000"))
}

/// Starts nodes, measures them, or calibrates one.
pub fn cluster(args: &ClusterArgs) -> Result<Exit, Failure> {
    let Some(named) = &args.cluster else {
        let list = CLUSTERS.iter().map(|cluster| format!("  {:<11} {}\n", cluster.name, cluster.about));
        output::stdout(&list.collect::<String>())?;
        return Ok(Exit::Fine);
    };
    let (name, text) = clusters::source(named)?;
    let mut experiment = clusters::experiment(named, &name, &text)?;
    choose(args, &mut experiment)?;
    check_nodes(args, &experiment)?;
    check_forwarding(args, &experiment)?;
    check_flags(args)?;
    args.results.check()?;
    tell_opened(args);
    match (args.run, args.calibrate) {
        (true, _) => run::run(args, &name, &experiment),
        (_, true) => calibrate::calibrate(args, &experiment),
        _ => serve(args, &experiment),
    }
}

/// Says what is open to other machines.
fn tell_opened(args: &ClusterArgs) {
    let has_switch = !args.calibrate && if args.run { !args.without_switch } else { args.switch };
    let what = match (args.nodes.is_empty(), has_switch) {
        (true, true) => "its nodes and its switch",
        (true, false) => "its nodes",
        (false, true) => "its switch",
        (false, false) => return,
    };
    opened::print_notice(&[args.listen], &format!("load {what}, on this port and the next"), "--listen");
}

/// Refuses flags that would do nothing: those of a measurement without one, and servers that nobody sends requests to.
fn check_flags(args: &ClusterArgs) -> Result<(), Failure> {
    let results = &args.results;
    let of_runs = [
        ("--without-switch", args.without_switch),
        ("--keep-alive", args.keep_alive),
        ("--html", results.html.is_some()),
        ("--csv", results.csv.is_some()),
        ("--against", results.against.is_some()),
    ];
    let of_measurements = [
        ("--clients", args.clients.is_some()),
        ("--repetitions", args.repetitions.is_some()),
        ("--warm-up", args.warm_up.is_some()),
        ("--measure", args.measure.is_some()),
    ];
    let given =
        |flags: &[(&'static str, bool)]| flags.iter().find(|(_, is_given)| *is_given).map(|(flag, _)| *flag);
    let refuse = |flag: &str, needed: &str| {
        let failure = anyhow!("{flag} does nothing without {needed}");
        Err(Failure::usage(failure).hint(format!("add {needed}, or leave {flag} out")))
    };
    if let (Some(flag), false) = (given(&of_runs), args.run) {
        return refuse(flag, "--run");
    }
    if let (Some(flag), false) = (given(&of_measurements), args.run || args.calibrate) {
        return refuse(flag, "--run or --calibrate");
    }
    let is_any_loaded = args.run || args.calibrate || args.switch;
    if !is_any_loaded && !args.nodes.is_empty() {
        return refuse("--nodes", "--switch, --run or --calibrate");
    }
    Ok(())
}

/// Keeps the selected parts of the experiment only.
fn choose(args: &ClusterArgs, experiment: &mut Experiment) -> Result<(), Failure> {
    if let Some(label) = &args.label {
        only(&mut experiment.clusters, "cluster", label, |cluster| &cluster.label)?;
    }
    if let Some(label) = &args.mix {
        only(&mut experiment.mixes, "mix", label, |mix| &mix.label)?;
    }
    if !args.policy.is_empty() {
        let mut chosen = Vec::new();
        for label in &args.policy {
            let mut all = experiment.policies.clone();
            only(&mut all, "policy", label, |policy| &policy.label)?;
            chosen.append(&mut all);
        }
        experiment.policies = chosen;
    }
    if let Some(ClientCounts(clients)) = &args.clients {
        experiment.loads = clients.iter().map(|clients| OfferedLoad::Clients(*clients)).collect();
    }
    experiment.repetitions = args.repetitions.unwrap_or(experiment.repetitions);
    experiment.seed = args.seed.unwrap_or(experiment.seed);
    experiment.warm_up_s = args.warm_up.map_or(experiment.warm_up_s, |time| time.as_secs_f64());
    experiment.measure_s = args.measure.map_or(experiment.measure_s, |time| time.as_secs_f64());
    if args.run {
        tell_failures_after_the_end(experiment);
    }
    if args.as_it_is {
        experiment.switch.link_bits_per_s = None;
    }
    Ok(())
}

fn only<T>(all: &mut Vec<T>, what: &str, label: &str, of: impl Fn(&T) -> &String) -> Result<(), Failure> {
    let names: Vec<String> = all.iter().map(|one| of(one).clone()).collect();
    all.retain(|one| of(one) == label);
    match all.is_empty() {
        false => Ok(()),
        true => {
            Err(Failure::usage(anyhow!("the file has no {what} `{label}`; it has: {}", names.join(", "))))
        }
    }
}

/// Servers that run already must be as many as the file has nodes, and may get requests.
fn check_nodes(args: &ClusterArgs, experiment: &Experiment) -> Result<(), Failure> {
    if let (Some(public), false) =
        (args.nodes.iter().find(|node| !is_private(node.ip())), args.i_own_this_target)
    {
        let failure = anyhow!("{public} is a public address");
        return Err(Failure::usage(failure).hint("if it is yours, say so with --i-own-this-target"));
    }
    let (given, cluster) = (args.nodes.len(), &experiment.clusters[0]);
    let nodes = cluster.nodes().count();
    if given > 0 && !args.calibrate && (given != nodes || experiment.clusters.len() > 1) {
        let failure = anyhow!("{given} servers are named, and {} has {nodes} nodes", cluster.label);
        return Err(Failure::usage(failure).hint("name as many, and choose a cluster with --label"));
    }
    let measured = args.nodes.iter().filter(|_| args.run || args.calibrate);
    measured.copied().try_for_each(reachable)
}

/// A live switch passes responses on: that they go past it can only be simulated.
fn check_forwarding(args: &ClusterArgs, experiment: &Experiment) -> Result<(), Failure> {
    let used = match (args.run, args.switch) {
        (true, _) => experiment.policies.len(),
        (false, true) => 1,
        (false, false) => 0,
    };
    let passed =
        experiment.policies.iter().take(used).find(|policy| experiment.switch_under(policy).direct_return);
    passed.map_or(Ok(()), |policy| {
        let failure = anyhow!("policy `{}`: responses cannot go past a live switch", policy.label);
        Err(Failure::usage(failure).hint("hand-off is simulated only; name the other policies with --policy"))
    })
}

/// Kind of the nodes.
fn kind(args: &ClusterArgs) -> NodeKind {
    args.real.clone().map_or(NodeKind::Virtual, NodeKind::Real)
}

/// The nodes of the file's first cluster.
fn start(args: &ClusterArgs, experiment: &Experiment) -> Result<Nodes, Failure> {
    let (cluster, mix) = (&experiment.clusters[0], &experiment.mixes[0]);
    let clock = ModelClock::now_at(args.slower);
    let spec = NodesSpec::new(experiment, cluster, mix, args.listen, kind(args), clock);
    Nodes::start(spec).map_err(Failure::usage)
}

/// Addresses of the front and the nodes.
#[derive(Debug, Serialize)]
struct ClusterAddresses {
    nodes: Vec<SocketAddr>,
    switch: Option<SocketAddr>,
}

/// Runs nodes until it is interrupted.
fn serve(args: &ClusterArgs, experiment: &Experiment) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot wait for an interrupt")
        .map_err(Failure::failed)?;
    // Before it is said that all is there: whoever reads that may send one at once.
    let guard = runtime.enter();
    let mut interrupts = Interrupts::listen().map_err(Failure::failed)?;
    drop(guard);
    let own = if args.nodes.is_empty() { Some(start(args, experiment)?) } else { None };
    let nodes = own.as_ref().map_or(args.nodes.clone(), |nodes| nodes.addresses().to_vec());
    let first = Cell { mix: 0, cluster: 0, load: 0, policy: 0, repetition: 0 };
    let switch = if args.switch { Some(front::start(args, experiment, &first, &nodes)?) } else { None };
    let places = ClusterAddresses { switch: switch.as_ref().map(|switch| switch.address), nodes };
    let text = match args.results.json {
        true => output::json(&places)?,
        false => text(&places),
    };
    output::result(&text, args.results.output.as_deref())?;
    runtime.block_on(interrupts.next());
    Ok(Exit::Fine)
}

fn text(places: &ClusterAddresses) -> String {
    let node = |(number, address): (usize, &SocketAddr)| format!("node {number:<4} http://{address}\n");
    let mut text: String = places.nodes.iter().enumerate().map(node).collect();
    text.extend(places.switch.map(|address| format!("switch    http://{address}\n")));
    text
}
