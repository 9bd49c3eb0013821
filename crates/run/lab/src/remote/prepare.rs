//! Decisions and checks before a run on other machines is started.

use std::net::SocketAddr;

use super::RemoteMachines;
use crate::address::PROXY_PORT;
use crate::error::LabError;
use crate::mode::Mode;
use crate::plan::{RunPlan, TargetChoice};
use crate::prepare::{Addresses, proxies};
use crate::roles::RoleKind;

/// On other machines. Their systems choose the ports of what is ours; where the robots' requests come from is theirs to say, too.
pub(crate) fn addresses(plan: &RunPlan, remote: &dyn RemoteMachines) -> Addresses {
    let origin = SocketAddr::from((remote.address(RoleKind::Origins), 0));
    // A real proxy is told a port before it starts.
    let port = if matches!(plan.target, TargetChoice::Described(..)) { PROXY_PORT } else { 0 };
    let proxy = SocketAddr::from((remote.address(RoleKind::Proxy(0)), port));
    let target = match &plan.target {
        TargetChoice::Running { address, .. } => Some(*address),
        _ => None,
    };
    Addresses {
        net: None,
        network: None,
        origin_listen: plan.origin_listen.clone().unwrap_or(vec![origin; plan.workload.origins.len()]),
        target,
        caches: vec![proxy; usize::from(proxies(&plan.target))],
        sources: Vec::new(),
    }
}

/// Refuses what only works on one machine.
pub(crate) fn check(plan: &RunPlan) -> Result<(), LabError> {
    if plan.remote.is_none() {
        return Ok(());
    }
    let refused = match &plan.target {
        TargetChoice::Topology(_) => "a topology of caches lives on one machine",
        TargetChoice::Running { mode: Mode::Reverse, .. } if plan.origin_listen.is_none() => {
            "a reverse proxy that already runs sends requests to addresses that it was told; name them with --origin-listen"
        }
        _ if !plan.workload.files.is_empty() => {
            "files that a workload makes bodies of are not sent to agents"
        }
        _ if plan.needs_network() => "links and congestion control are made on one machine; leave them out",
        _ if plan.tls.ca.is_some() => {
            "--ca names a file of this machine for a target that already runs; leave it out"
        }
        _ if !plan.limits.is_none() => {
            "limits are set on one machine; leave --cpu-quota and --memory-limit out"
        }
        target if plan.origin_listen.is_some() && !matches!(target, TargetChoice::Running { .. }) => {
            "agents say where origins listen; leave --origin-listen out"
        }
        _ if plan.realtime || plan.trace_disk => {
            "--realtime and --trace-disk are for one machine; leave them out"
        }
        _ if !(plan.robot_cpus.is_empty() && plan.origin_cpus.is_empty() && plan.proxy_cpus.is_empty()) => {
            "processors are numbered on each machine by itself; leave --robot-cpus, --origin-cpus and --proxy-cpus out"
        }
        _ => return Ok(()),
    };
    Err(LabError::plan(format!("this run takes the machines of a fleet (--fleet), and {refused}")))
}
