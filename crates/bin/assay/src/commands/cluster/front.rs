//! The front of the nodes: a switch with the cluster file's policy and classes, or clients that choose a node
//! themselves.

use std::collections::HashSet;
use std::fmt::Write;
use std::net::SocketAddr;

use anyhow::anyhow;
use assay_cluster::dispatch::PolicyConfig;
use assay_cluster::simulate::{Cell, Experiment, Service, document_of, path_of, policy_config};
use assay_net::HEALTH_PATH;
use assay_switch::Switch;
use assay_switch::target_hash::hash_target;

use super::ClusterArgs;
use crate::exit::Failure;

/// A switch that runs until this is dropped.
pub struct Front {
    pub address: SocketAddr,
    _switch: Switch,
}

/// Starts a switch in front of these nodes, with the cell's policy.
pub fn start(
    args: &ClusterArgs,
    experiment: &Experiment,
    cell: &Cell,
    nodes: &[SocketAddr],
) -> Result<Front, Failure> {
    let text = switch_file(args, experiment, cell, nodes);
    let mut config = assay_switch::read("switch.toml", &text)
        .map_err(|mistake| Failure::failed(anyhow!("the switch's settings are not its own: {mistake}")))?;
    let (mix, cluster) = (&experiment.mixes[cell.mix], &experiment.clusters[cell.cluster]);
    let chosen = match policy_config(experiment, mix, cluster, &experiment.policies[cell.policy].choice) {
        PolicyConfig::Ward(core) => PolicyConfig::Ward(as_the_switch_knows(experiment, &core)),
        other => other,
    };
    for group in &mut config.groups {
        group.policy = chosen.with_time_scale(args.slower);
    }
    let switch = Switch::start(config).map_err(Failure::failed)?;
    let address = switch.addresses().first().copied();
    let address = address.ok_or_else(|| Failure::failed(anyhow!("the switch listens nowhere")))?;
    Ok(Front { address, _switch: switch })
}

/// Configuration of a switch, as text.
fn switch_file(args: &ClusterArgs, experiment: &Experiment, cell: &Cell, nodes: &[SocketAddr]) -> String {
    let port = match args.listen.port() {
        0 => 0,
        first => first.saturating_add(u16::try_from(nodes.len()).unwrap_or(u16::MAX)),
    };
    let listen = SocketAddr::new(args.listen.ip(), port);
    let spec = &experiment.switch_under(&experiment.policies[cell.policy]);
    // Whole numbers of a file end here.
    let seed = experiment.seed.wrapping_add(u64::from(cell.repetition)) & (u64::MAX >> 1);
    let mut text = format!("listen = \"{listen}\"\nretries = {}\nseed = {}\n", spec.retries, seed);
    if !spec.sees_requests {
        text.push_str("mode = \"tcp\"\npolicy = \"rr\"\n");
    }
    if experiment.policies[cell.policy].choice.wants_reports() {
        // Writing to a string cannot fail.
        let _ =
            writeln!(text, "state-interval = \"{}ms\"", (spec.reports_every_s * args.slower * 1e3).max(1.0));
    }
    text.push_str(match spec.sees_requests {
        true => "[timeouts]\nresponse = \"1h\"\n",
        false => "[timeouts]\ntunnel = \"1h\"\n",
    });
    if !experiment.failures.is_empty() {
        let every_ms = (spec.notices_after_s * args.slower * 1e3).max(1.0);
        let _ = writeln!(
            text,
            "[health]\npath = \"{HEALTH_PATH}\"\ninterval = \"{every_ms}ms\"\nrise = 1\nfall = 1"
        );
    }
    for (number, (address, group)) in nodes.iter().zip(experiment.clusters[cell.cluster].nodes()).enumerate()
    {
        let weight = group.weight;
        let _ = writeln!(
            text,
            "[[server]]\nname = \"node-{number}\"\naddress = \"{address}\"\nweight = {weight:?}\nconnections = 100000"
        );
    }
    // One class is all there is, and needs no words; layer 4 knows no classes.
    if !spec.sees_requests {
        return text;
    }
    for class in 0..experiment.classes.len() * usize::from(experiment.classes.len() > 1) {
        let own = experiment.services.iter().filter(|service| usize::from(service.class.0) == class);
        let mut prefixes: Vec<String> = own.flat_map(prefixes).collect();
        if prefixes.is_empty() {
            prefixes.push("/assay/nobody/".into());
        }
        let _ = writeln!(text, "[[class]]\nname = \"class-{class}\"\nprefix = {prefixes:?}");
    }
    text
}

/// Prefixes of the paths of a service, and of no other's.
fn prefixes(service: &Service) -> Vec<String> {
    let file = service.path.split('?').next().unwrap_or_default();
    match (service.documents, file.rsplit_once('.')) {
        (2.., Some((stem, _))) => vec![file.to_owned(), format!("{stem}-")],
        _ => vec![file.to_owned()],
    }
}

/// Documents under the numbers that the switch gives to paths.
fn as_the_switch_knows(experiment: &Experiment, core: &[u64]) -> Vec<u64> {
    let core: HashSet<u64> = core.iter().copied().collect();
    let all = experiment.services.iter().enumerate().flat_map(|(place, service)| {
        (0..service.documents).map(move |number| (document_of(place, number), service, number))
    });
    all.filter(|(hash, ..)| core.contains(hash))
        .map(|(_, service, number)| hash_target(path_of(service, number).as_bytes()))
        .collect()
}
