//! Policies, measured on live nodes. The combinations of a cluster file, one after the other, as a simulation would run
//! them.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use assay_cluster::dispatch::Moment;
use assay_cluster::simulate::{Cell, Experiment, cells, policy_config};
use assay_load::node::ModelClock;
use assay_load::node::clients::{ClientShare, ClientsSpec, ClientsTarget, run_unless as request};
use assay_load::node::node_monitor::NodeMonitor;
use assay_load::node::nodes::{Nodes, NodesSpec};
use assay_measurement::histogram::Histogram;
use assay_record::cluster::{Origin, Tally};
use tokio::sync::watch;

use super::{ClusterArgs, front, kind};
use crate::commands::policies::LiveVerdict;
use crate::commands::simulate::collect;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

/// Nodes whose responses come later than this on average, in the model's time, shape what is measured: clients and the switch wake
/// as late, so a request loses some five times as much.
const LATE_MS: f64 = 0.1;
/// A client gives a request up after this.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Measures every combination.
pub fn run(args: &ClusterArgs, name: &str, experiment: &Experiment) -> Result<Exit, Failure> {
    let all = cells(experiment);
    let stop = interrupt::noticed().context("cannot watch for Ctrl-C").map_err(Failure::failed)?;
    let (mut taken, mut latest_ms, mut verdict) = (Vec::new(), 0.0_f64, LiveVerdict::default());
    for (number, cell) in all.iter().enumerate() {
        let labels = collect::labels(experiment, cell);
        let load = match (labels.clients, labels.rate_per_s) {
            (Some(clients), _) => format!("{clients} clients"),
            (None, rate) => format!("{}/s", rate.unwrap_or(0.0)),
        };
        let Some((tally, late_us)) =
            measure(args, experiment, cell, number == 0, &mut verdict, stop.clone())?
        else {
            break;
        };
        let late_ms = late_us.mean_us().map(|us| us / 1e3);
        latest_ms = late_ms.unwrap_or(0.0).max(latest_ms);
        output::eprint(&format!(
            "{}/{}: {}, {}, {}, {load}: {:.1} responses/s, {} failed{}\n",
            number + 1,
            all.len(),
            labels.mix,
            labels.cluster,
            labels.policy,
            tally.count() as f64 / experiment.measure_s,
            tally.failures(),
            late_ms.map_or(String::new(), |ms| format!(", nodes {ms:.2} ms late"))
        ));
        taken.push((*cell, tally));
    }
    if latest_ms / args.slower > LATE_MS {
        output::eprint(&format!(
            "doubtful: this machine let nodes respond {latest_ms:.2} ms late on average; leave it alone, or try --slower {:.0}\n",
            (latest_ms / LATE_MS).ceil()
        ));
    }
    let complete = taken.len() == all.len();
    if !complete && taken.is_empty() {
        output::eprint("interrupted before the first run was complete; nothing was measured\n");
        return Ok(Exit::Interrupted);
    }
    args.results.show(&collect::result(name, experiment, Origin::Measured, &taken))?;
    if !complete {
        output::eprint("interrupted; runs that were complete are told\n");
        return Ok(Exit::Interrupted);
    }
    Ok(verdict.conclude())
}

/// Fresh nodes, a fresh switch, and clients, for one repetition, which may be the first of all; none: it was interrupted.
fn measure(
    args: &ClusterArgs,
    experiment: &Experiment,
    cell: &Cell,
    is_first: bool,
    verdict: &mut LiveVerdict,
    mut stop: watch::Receiver<bool>,
) -> Result<Option<(Tally, Histogram)>, Failure> {
    let (mix, cluster) = (&experiment.mixes[cell.mix], &experiment.clusters[cell.cluster]);
    let seed = experiment.seed.wrapping_add(u64::from(cell.repetition));
    let clock = ModelClock::now_at(args.slower);
    let nodes = match args.nodes.is_empty() {
        true => {
            let spec = NodesSpec::new(experiment, cluster, mix, args.listen, kind(args), clock);
            Some(Nodes::start(spec).map_err(Failure::failed)?)
        }
        false => None,
    };
    let addresses: Vec<SocketAddr> =
        nodes.as_ref().map_or(args.nodes.clone(), |nodes| nodes.addresses().to_vec());
    let watched = if nodes.is_none() { watch(&addresses, clock, is_first)? } else { None };
    let chosen = &experiment.policies[cell.policy].choice;
    let mut switch = None;
    let target = if args.without_switch {
        let weights = cluster.nodes().map(|group| group.weight);
        ClientsTarget::Nodes {
            servers: addresses.iter().copied().zip(weights).collect(),
            policy: policy_config(experiment, mix, cluster, chosen),
            retries: experiment.switch.retries,
            reports_every_s: chosen.wants_reports().then_some(experiment.switch.reports_every_s),
        }
    } else {
        let front = front::start(args, experiment, cell, &addresses)?;
        ClientsTarget::One(switch.insert(front).address)
    };
    let spec = ClientsSpec {
        services: experiment.services.clone(),
        weights: mix.weights.clone(),
        seed,
        load: experiment.loads[cell.load],
        share: ClientShare::ALL,
        target,
        host: Some("cluster".into()),
        keep_alive: args.keep_alive,
        warm_up_s: experiment.warm_up_s,
        measure_s: experiment.measure_s,
        surroundings: (!args.as_it_is).then(|| experiment.switch_under(&experiment.policies[cell.policy])),
        check_sizes: true,
        timeout: TIMEOUT,
        clock,
    };
    let outcome = request(spec, interrupt::requested(&mut stop)).map_err(Failure::failed)?;
    drop(switch);
    let Some(outcome) = outcome else { return Ok(None) };
    for (kind, count) in &outcome.failures {
        output::say(&format!("  {count} × {kind}"));
    }
    verdict.add(&outcome);
    let mut tally = outcome.tally;
    let counted = Moment::from_secs(experiment.warm_up_s)
        ..=Moment::from_secs(experiment.warm_up_s + experiment.measure_s);
    let mut late_us = Histogram::new();
    // The first of them looks back on some of the warm-up.
    let looks = nodes.iter().flat_map(Nodes::samples).chain(watched.iter().flat_map(NodeMonitor::samples));
    for look in looks.filter(|look| counted.contains(&look.at)) {
        tally.sampled(look.nodes);
        late_us.merge(&look.late_us);
    }
    Ok(Some((tally, late_us)))
}

/// Watches nodes that somebody else started, if they say how busy they are.
fn watch(
    addresses: &[SocketAddr],
    clock: ModelClock,
    is_first: bool,
) -> Result<Option<NodeMonitor>, Failure> {
    let watched = NodeMonitor::start(addresses.to_vec(), clock).map_err(Failure::failed)?;
    if let (Err(silent), true) = (&watched, is_first) {
        output::eprint(&format!(
            "nodes are not watched: {silent} does not say at /assay/state how busy it is, as nodes of `assay cluster` do\n"
        ));
    }
    Ok(watched.ok())
}
