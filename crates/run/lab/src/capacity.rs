//! Needs of a plan, and resources of this machine. Reads the machine, and leaves the sums to [`crate::checks`].

use std::path::{Path, PathBuf};

use assay_host::metrics;
use assay_workload::timeline::Timeline;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::address;
use crate::checks::demand::{self, Demand, TargetDemand};
use crate::checks::machines;
use crate::checks::{self, Need, Supply, TIME_WAIT_REUSED_S, TIME_WAIT_S};
use crate::description::{Description, Store};
use crate::error::LabError;
use crate::placement::{self, Placement};
use crate::plan::{RunPart, RunPlan, TargetChoice};
use crate::prepare;

/// Everything that a plan needs of this machine, or of those that it takes, and that can run out. Nothing is started, made or
/// claimed.
pub fn resource_needs(plan: &RunPlan) -> Result<Vec<Need>, LabError> {
    let timeline = plan.timeline()?;
    let cpus = placement::available();
    let placement = prepare::place_roles(plan, &cpus)?;
    Ok(needs(plan, &timeline, &placement, &cpus))
}

/// Refuses a plan that this machine, or one of those that it takes, cannot carry. Nothing is started, made or claimed.
pub fn check_resources(plan: &RunPlan) -> Result<(), LabError> {
    let timeline = plan.timeline()?;
    let cpus = placement::available();
    let placement = prepare::place_roles(plan, &cpus)?;
    check_needs(plan, &timeline, &placement, &cpus)
}

/// The same of a plan whose parts are known.
pub(crate) fn check_needs(
    plan: &RunPlan,
    timeline: &Timeline,
    placement: &Placement,
    cpus: &[u32],
) -> Result<(), LabError> {
    // Of a part, nobody knows what the others carry.
    if plan.remote.is_none() && plan.part != RunPart::Whole {
        return Ok(());
    }
    let why = checks::refusal(&needs(plan, timeline, placement, cpus));
    why.map_or(Ok(()), |why| Err(LabError::plan(why)))
}

/// The needs of a plan whose parts are known.
pub(crate) fn needs(plan: &RunPlan, timeline: &Timeline, placement: &Placement, cpus: &[u32]) -> Vec<Need> {
    let demand = demand(plan, timeline, placement);
    match &plan.remote {
        None => checks::needs(&demand, &supply(plan, placement, cpus)),
        Some(remote) => {
            remote.carriers().iter().flat_map(|carrier| machines::needs(&demand, carrier)).collect()
        }
    }
}

fn demand(plan: &RunPlan, timeline: &Timeline, placement: &Placement) -> Demand {
    let workload = &plan.workload;
    let (connections, busiest) = demand::connections(workload, plan.timeout);
    let loads = demand::loads(timeline, !matches!(plan.target, TargetChoice::Direct));
    let expected = timeline.phases().iter().filter_map(|phase| Some((phase, phase.expected?)));
    let (mut requests, mut fill_objects, mut new_connections) = (0.0, 0.0, 0.0_f64);
    for (phase, expected) in expected {
        new_connections = new_connections.max(expected.peak_new_connections);
        // How much a phase without an end requests is for the user to decide, who stops it.
        if !phase.is_endless() {
            requests += expected.requests;
            fill_objects += expected.fill_objects;
        }
    }
    let one_for_all = plan.robot_sources.len() == 1 || prepare::system_chooses_sources(plan);
    let hosts = address::robot_hosts(workload).len();
    let sources = match plan.robot_sources.len() {
        _ if one_for_all => 1,
        0 => hosts,
        given => given.min(hosts),
    };
    let per_source = if one_for_all { connections } else { busiest };
    let direct = matches!(plan.target, TargetChoice::Direct);
    let to_one = if direct { demand::busiest_origin(workload) } else { 1.0 };
    let (cache_memory_bytes, cache_disk_bytes) = cache(plan);
    Demand {
        robots: u64::from(workload.robot_count()),
        origins: workload.origins.len() as u64,
        connections,
        connections_per_source: demand::whole(per_source as f64 * to_one),
        new_connections_per_s: new_connections,
        sources: sources as u64,
        target: target(plan, &loads, connections, placement),
        cache_memory_bytes,
        cache_disk_bytes,
        remembered_objects: if direct { 0.0 } else { fill_objects },
        length: timeline.total(),
        recorded_requests: if plan.records_xacts(requests) { requests } else { 0.0 },
        loads,
        links: [(false, &plan.network.robot_link), (true, &plan.network.origin_link)]
            .into_iter()
            .filter_map(|(is_to_origins, link)| {
                let bits_per_s = link.as_ref()?.rate_bits_per_s?;
                Some(demand::LinkRate { is_to_origins, bits_per_s })
            })
            .collect(),
    }
}

fn target(
    plan: &RunPlan,
    loads: &[demand::PhaseLoad],
    connections: u64,
    placement: &Placement,
) -> Option<TargetDemand> {
    let processes = match &plan.target {
        TargetChoice::Direct => return None,
        TargetChoice::Running { .. } => None,
        TargetChoice::Builtin(_) => Some(1),
        // At best, each has its share of the connections.
        TargetChoice::Topology(topology) => Some((topology.caches.len() as u64).max(1)),
        // At best it divides its connections among as many processes as it has processors.
        TargetChoice::Described(..) => Some((placement.proxy.len() as u64).max(1)),
    };
    let (least_upstream, likely_upstream) = demand::upstream(&plan.workload, loads, connections);
    Some(TargetDemand { name: plan.target.name(), processes, least_upstream, likely_upstream })
}

/// Memory and disk for the cache of a target that the lab starts.
fn cache(plan: &RunPlan) -> (u64, u64) {
    let both = |description: &Description, memory: u64, disk: u64| {
        let given = |store, bytes| if description.capacity.stores.contains(&store) { bytes } else { 0 };
        (given(Store::Memory, memory), given(Store::Disk, disk))
    };
    match &plan.target {
        TargetChoice::Builtin(_) => (plan.memory_bytes, 0),
        TargetChoice::Described(description, _) => both(description, plan.memory_bytes, plan.disk_bytes),
        TargetChoice::Topology(topology) => topology
            .caches
            .iter()
            .map(|cache| match &cache.description {
                None => (cache.memory_bytes, 0),
                Some(description) => both(description, cache.memory_bytes, cache.disk_bytes),
            })
            .fold((0, 0), |(memory, disk), (more_memory, more_disk)| {
                (memory + more_memory, disk + more_disk)
            }),
        TargetChoice::Direct | TargetChoice::Running { .. } => (0, 0),
    }
}

fn supply(plan: &RunPlan, placement: &Placement, cpus: &[u32]) -> Supply {
    let work_dir = plan.temp_dir.clone().unwrap_or_else(std::env::temp_dir);
    let loopback =
        !prepare::system_chooses_sources(plan) && plan.robot_sources.iter().all(|ip| ip.is_loopback());
    let may = |named: &[u32]| if named.is_empty() { cpus.to_vec() } else { named.to_vec() };
    let (robots, origins) = (may(&placement.robots), may(&placement.origins));
    let mut both = [robots.clone(), origins.clone()].concat();
    both.sort_unstable();
    both.dedup();
    let threads = if plan.threads == 0 { u64::MAX } else { u64::from(plan.threads) };
    Supply {
        descriptors: raise_descriptor_limit(),
        ports: ports(),
        port_rest_s: port_rest_s(loopback),
        memory_bytes: metrics::memory("MemAvailable").unwrap_or(u64::MAX),
        run_dir_free_bytes: free_bytes(&plan.run_dir),
        work_dir_free_bytes: free_bytes(&work_dir),
        work_dir: work_dir.display().to_string(),
        robot_cpus: (robots.len() as u64).min(threads),
        origin_cpus: origins.len() as u64,
        shared_cpus: both.len() as u64,
    }
}

/// First and last port that connections of this machine are given.
pub fn ports() -> (u16, u16) {
    let range = metrics::read_words(metrics::PORT_RANGE).and_then(|line| parse_ports(&line));
    range.unwrap_or((32_768, 60_999))
}

/// Time for which the port of a closed connection rests here, in seconds; `loopback`: both its ends are on this machine.
pub fn port_rest_s(loopback: bool) -> f64 {
    // 1: always; 2: between loopback addresses only.
    match metrics::read_words(metrics::TW_REUSE).as_deref() {
        Some("1") => TIME_WAIT_REUSED_S,
        Some("2") if loopback => TIME_WAIT_REUSED_S,
        _ => TIME_WAIT_S,
    }
}

fn parse_ports(line: &str) -> Option<(u16, u16)> {
    let (first, last) = line.split_once(' ')?;
    Some((first.parse().ok()?, last.trim().parse().ok()?))
}

/// Free space where a path is or will be; unknown counts as plenty (the writing itself will tell).
pub fn free_bytes(path: &Path) -> u64 {
    let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from("/"));
    let there = path.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(there) {
        // A file system of the kernel's own has no blocks at all.
        Ok(stat) if stat.f_blocks > 0 => stat.f_bavail.saturating_mul(stat.f_frsize),
        _ => u64::MAX,
    }
}

/// Raises the limit on descriptors as far as it goes, and says how far that is.
pub fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // A refusal leaves the lower limit, which is what the plan is then checked against.
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::Mode;
    use crate::testing;

    #[test]
    fn a_small_plan_fits_this_machine_and_leaves_nothing_behind() {
        let plan = testing::plan();
        let needs = resource_needs(&plan).unwrap();
        assert!(needs.iter().all(|need| !need.exceeds()), "{needs:#?}");
        assert!(!plan.run_dir.exists());
    }

    #[test]
    fn the_builtin_proxys_own_descriptors_are_counted() {
        let names = |target| -> Vec<String> {
            let plan = RunPlan { target, ..testing::plan() };
            resource_needs(&plan).unwrap().into_iter().map(|need| need.name).collect()
        };
        let through = names(TargetChoice::Builtin(Mode::Reverse));
        assert!(through.iter().any(|name| name == "descriptors of the proxy (builtin)"), "{through:?}");
        let direct = names(TargetChoice::Direct);
        assert!(!direct.iter().any(|name| name.contains("the proxy")), "{direct:?}");
    }

    #[test]
    fn fewer_threads_than_processors_are_what_robots_can_use() {
        let plan = RunPlan { threads: 1, pin: false, ..testing::plan() };
        let supply = supply(&plan, &Placement::default(), &[0, 1, 2]);
        assert_eq!((supply.robot_cpus, supply.origin_cpus, supply.shared_cpus), (1, 3, 3));
    }

    #[test]
    fn port_ranges_are_read() {
        assert_eq!(parse_ports("32768 60999"), Some((32_768, 60_999)));
        assert_eq!(parse_ports("x"), None);
    }
}
