//! Everything that is decided and checked before anything is started.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_engine::spec::CacheBehaviour;
use assay_record::dir::RunDir;
use assay_workload::timeline::Timeline;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::address::{self, LoopbackNet};
use crate::checks::{self, Demand, Supply};
use crate::description::{Description, Store, check_capacity};
use crate::error::LabError;
use crate::host;
use crate::placement::{self, Placement};
use crate::plan::{Mode, RunPlan, TargetChoice};
use crate::process::find_program;
use crate::real;
use crate::work;

/// How long a running proxy may take to accept a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(3);

/// A plan that this machine can carry, with everything resolved.
#[derive(Debug)]
pub struct Prepared {
    /// When phases begin and end.
    pub timeline: Timeline,
    /// The run directory; it is there now.
    pub dir: RunDir,
    /// Keeps the run's loopback network its own.
    pub _net: LoopbackNet,
    /// Where origins are to listen.
    pub origin_listen: Vec<SocketAddr>,
    /// Where the target is spoken to; none: directly.
    pub target: Option<SocketAddr>,
    /// Source addresses of robots.
    pub sources: Vec<IpAddr>,
    /// What the target does where the standard leaves a choice.
    pub behaviour: CacheBehaviour,
    /// Processors of each role.
    pub placement: Placement,
    /// Processors that there are.
    pub cpus: Vec<u32>,
    /// Descriptors that a process may have.
    pub descriptors: u64,
    /// Connections that robots may open at once.
    pub connections: u64,
}

/// Checks a plan and makes the run directory; nothing else is left behind, and nothing runs.
pub fn prepare(plan: &RunPlan) -> Result<Prepared, LabError> {
    let timeline = Timeline::new(&plan.workload).map_err(|e| LabError::plan(e.to_string()))?;
    check_target(plan)?;
    let descriptors = raise_descriptor_limit();
    let net = LoopbackNet::claim()?;
    let origin_listen = origin_addresses(plan, &net)?;
    let target = match &plan.target {
        TargetChoice::Direct => None,
        TargetChoice::Builtin(_) | TargetChoice::Described(..) => Some(net.proxy()?),
        TargetChoice::Running { address, .. } => Some(*address),
    };
    let sources = source_addresses(plan, &net)?;
    let demand = demand(plan, &timeline, &sources);
    checks::check(&demand, &supply(plan, descriptors)).map_err(LabError::plan)?;
    let cpus = placement::available();
    let starts_proxy = matches!(plan.target, TargetChoice::Builtin(_) | TargetChoice::Described(..));
    let placement = placement::place(&cpus, starts_proxy, plan.pin);
    let dir = RunDir::create(&plan.run_dir).map_err(|e| LabError::plan(e.to_string()))?;
    Ok(Prepared {
        timeline,
        dir,
        _net: net,
        origin_listen,
        target,
        sources,
        behaviour: behaviour(&plan.target),
        placement,
        cpus,
        descriptors,
        connections: demand.connections,
    })
}

fn behaviour(target: &TargetChoice) -> CacheBehaviour {
    match target {
        TargetChoice::Direct => CacheBehaviour { caches: false, ..CacheBehaviour::default() },
        TargetChoice::Builtin(_) => {
            CacheBehaviour { conditional_fills: true, validation_updates: true, ..CacheBehaviour::default() }
        }
        TargetChoice::Running { .. } => CacheBehaviour::default(),
        TargetChoice::Described(description, _) => description.behaviour.into(),
    }
}

fn check_target(plan: &RunPlan) -> Result<(), LabError> {
    match &plan.target {
        TargetChoice::Direct => Ok(()),
        TargetChoice::Builtin(_) if plan.memory_bytes == 0 => Err(LabError::plan(
            "the built-in proxy keeps everything in memory, and --memory is 0; give it some, or leave the proxy out \
             with --direct",
        )),
        TargetChoice::Builtin(_) => Ok(()),
        TargetChoice::Described(description, mode) => {
            check_described(description, *mode)?;
            check_capacity(description, plan.memory_bytes, plan.disk_bytes).map_err(LabError::plan)
        }
        TargetChoice::Running { address, mode } => check_running(plan, *address, *mode),
    }
}

fn check_described(description: &Description, mode: Mode) -> Result<(), LabError> {
    let title = &description.title;
    if !description.modes.contains(&mode) {
        let modes: Vec<&str> = description.modes.iter().map(|mode| mode.name()).collect();
        let (wanted, can) = (mode.name(), modes.join(" and "));
        return Err(LabError::plan(format!("{title} is no {wanted} proxy; its description says: {can}")));
    }
    let programs = [&description.start.command, &description.version.command]
        .into_iter()
        .chain(description.prepare.iter().map(|program| &program.command))
        .chain(description.companions.iter().map(|program| &program.command))
        .chain(
            description.counters.iter().map(|source| &source.command).filter(|command| !command.is_empty()),
        )
        .filter_map(|command| command.first());
    for program in programs {
        // A program whose name is made from a template is found when it is started.
        if !program.contains("{{") && find_program(program).is_none() {
            let package = description.package.as_deref();
            let advice = package.map_or_else(
                || "install it, or correct the path in the description".to_owned(),
                |package| format!("install it: apt-get install {package}"),
            );
            return Err(LabError::plan(format!("{title}: `{program}` was not found; {advice}")));
        }
    }
    if let Some(user) = &description.user
        && real::is_root()
        && work::find_user(user).is_none()
    {
        return Err(LabError::plan(format!(
            "{title} is to run as the user `{user}`, and there is none of that name; install its package, or change \
             `user` in its description"
        )));
    }
    Ok(())
}

fn check_running(plan: &RunPlan, address: SocketAddr, mode: Mode) -> Result<(), LabError> {
    if !address::is_private(address.ip()) && !plan.own_target {
        return Err(LabError::plan(format!(
            "{address} is a public address; a workload is an attack on whoever did not ask for it. If the target is \
             yours, say so with --i-own-this-target"
        )));
    }
    if !is_local(address.ip()) {
        let unreachable = match &plan.origin_listen {
            None => true,
            Some(listen) => listen.iter().any(|origin| origin.ip().is_loopback()),
        };
        if unreachable {
            return Err(LabError::plan(format!(
                "the proxy {address} is on another machine and cannot reach origins on loopback addresses; say where \
                 origins listen with an address of this machine that it can reach"
            )));
        }
        let unspecified = plan.origin_listen.iter().flatten().any(|origin| origin.ip().is_unspecified());
        if unspecified && mode == Mode::Forward {
            return Err(LabError::plan(
                "a forward proxy is told the origins' addresses, and 0.0.0.0 is none; name one of this machine's",
            ));
        }
    }
    TcpStream::connect_timeout(&address, CONNECT_PATIENCE).map(drop).map_err(|e| {
        LabError::plan(format!(
            "no proxy answers at {address}: {e}; is it running, and is the address right?"
        ))
    })
}

/// True for an address of this machine.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || TcpListener::bind((ip, 0)).is_ok()
}

fn origin_addresses(plan: &RunPlan, net: &LoopbackNet) -> Result<Vec<SocketAddr>, LabError> {
    let Some(listen) = &plan.origin_listen else { return net.origins(&plan.workload) };
    let (given, wanted) = (listen.len(), plan.workload.origins.len());
    if given != wanted {
        return Err(LabError::plan(format!(
            "{given} addresses were given for origins to listen on, and the workload has {wanted} origins; give \
             {wanted}"
        )));
    }
    match listen.iter().find_map(|address| address::cannot_listen(*address)) {
        Some(why) => Err(LabError::plan(format!("origins: {why}"))),
        None => Ok(listen.clone()),
    }
}

/// Where an origin that listens there is reached from this machine.
pub fn reachable(listening: SocketAddr) -> SocketAddr {
    if listening.ip().is_unspecified() {
        SocketAddr::from((Ipv4Addr::LOCALHOST, listening.port()))
    } else {
        listening
    }
}

fn source_addresses(plan: &RunPlan, net: &LoopbackNet) -> Result<Vec<IpAddr>, LabError> {
    let wanted = address::robot_hosts(&plan.workload).len();
    if !plan.robot_sources.is_empty() {
        for source in &plan.robot_sources {
            if let Err(e) = TcpListener::bind((*source, 0)) {
                return Err(LabError::plan(format!(
                    "robots cannot use the source address {source}: {e}; name an address of this machine"
                )));
            }
        }
        return Ok(plan.robot_sources.iter().copied().cycle().take(wanted).collect());
    }
    let elsewhere =
        matches!(plan.target, TargetChoice::Running { address, .. } if !address.ip().is_loopback());
    let direct_elsewhere = matches!(plan.target, TargetChoice::Direct)
        && plan.origin_listen.iter().flatten().any(|origin| !reachable(*origin).ip().is_loopback());
    let v6 = matches!(plan.target, TargetChoice::Running { address, .. } if address.is_ipv6());
    Ok(if elsewhere || direct_elsewhere || v6 { Vec::new() } else { net.robots(wanted) })
}

fn demand(plan: &RunPlan, timeline: &Timeline, sources: &[IpAddr]) -> Demand {
    let (connections, busiest) = checks::connections(&plan.workload, plan.timeout);
    let expected = timeline.phases().iter().filter_map(|phase| phase.expected);
    let (mut requests, mut new_connections) = (0.0, 0.0_f64);
    for phase in expected {
        requests += phase.requests;
        new_connections = new_connections.max(phase.peak_new_connections);
    }
    let distinct: std::collections::HashSet<&IpAddr> = sources.iter().collect();
    let one_for_all = plan.robot_sources.len() == 1 || sources.is_empty();
    let (memory, disk) = match &plan.target {
        TargetChoice::Builtin(_) => (plan.memory_bytes, 0),
        TargetChoice::Described(description, _) => {
            let has = |store| description.capacity.stores.contains(&store);
            (
                if has(Store::Memory) { plan.memory_bytes } else { 0 },
                if has(Store::Disk) { plan.disk_bytes } else { 0 },
            )
        }
        TargetChoice::Direct | TargetChoice::Running { .. } => (0, 0),
    };
    Demand {
        connections,
        connections_per_source: if one_for_all { connections } else { busiest },
        new_connections_per_s: new_connections,
        sources: (distinct.len() as u64).max(1),
        cache_memory_bytes: memory,
        cache_disk_bytes: disk,
        length: timeline.total(),
        recorded_requests: if plan.xact_log { requests } else { 0.0 },
    }
}

fn supply(plan: &RunPlan, descriptors: u64) -> Supply {
    let work_dir = plan.temp_dir.clone().unwrap_or_else(std::env::temp_dir);
    let range = host::read_line(host::PORT_RANGE).and_then(|line| parse_ports(&line));
    Supply {
        descriptors,
        ports: range.unwrap_or((32_768, 60_999)),
        reuses_ports: host::read_line(host::TW_REUSE).is_some_and(|reuse| reuse != "0"),
        memory_bytes: host::memory("MemAvailable").unwrap_or(u64::MAX),
        run_dir_free_bytes: free_bytes(&plan.run_dir),
        work_dir_free_bytes: free_bytes(&work_dir),
        work_dir: work_dir.display().to_string(),
    }
}

fn parse_ports(line: &str) -> Option<(u16, u16)> {
    let (first, last) = line.split_once(' ')?;
    Some((first.parse().ok()?, last.trim().parse().ok()?))
}

/// Free space where a path is or will be; unknown counts as plenty (the writing itself will tell).
fn free_bytes(path: &Path) -> u64 {
    let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from("/"));
    let there = path.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(there) {
        // A file system of the kernel's own has no blocks at all.
        Ok(stat) if stat.f_blocks > 0 => stat.f_bavail.saturating_mul(stat.f_frsize),
        _ => u64::MAX,
    }
}

/// Raises the limit on descriptors as far as it goes, and says how far that is.
fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // A refusal leaves the lower limit, which is what the plan is then checked against.
    let _ = setrlimit(Resource::Nofile, raised);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    fn running(address: &str, mode: Mode) -> RunPlan {
        let target = TargetChoice::Running { address: address.parse().unwrap(), mode };
        RunPlan { target, ..testing::plan() }
    }

    fn refused(plan: &RunPlan) -> String {
        let error = prepare(plan).unwrap_err();
        assert!(error.before_start(), "{error}");
        error.to_string()
    }

    #[test]
    fn public_addresses_need_a_word_from_the_user() {
        let plan = running("8.8.8.8:80", Mode::Reverse);
        assert!(refused(&plan).contains("--i-own-this-target"));
    }

    #[test]
    fn a_proxy_elsewhere_needs_origins_that_it_can_reach() {
        let plan = running("10.255.255.1:80", Mode::Reverse);
        assert!(refused(&plan).contains("cannot reach origins on loopback"));
    }

    #[test]
    fn a_proxy_that_is_not_there_is_found_missing_before_the_start() {
        let net = LoopbackNet::claim().unwrap();
        let plan = running(&net.proxy().unwrap().to_string(), Mode::Reverse);
        assert!(refused(&plan).contains("no proxy answers at"));
        assert!(!plan.run_dir.exists());
    }

    #[test]
    fn an_empty_schedule_is_refused() {
        let mut plan = testing::plan();
        plan.workload.schedule.phases.clear();
        assert!(refused(&plan).contains("schedule is empty"));
    }

    #[test]
    fn origins_must_have_an_address_each_that_is_free() {
        let net = LoopbackNet::claim().unwrap();
        let address = net.proxy().unwrap();
        let _taken = TcpListener::bind(address).unwrap();
        let plan = RunPlan { origin_listen: Some(vec![address]), ..testing::plan() };
        assert!(refused(&plan).contains("something listens there already"));
        let plan = RunPlan { origin_listen: Some(vec![]), ..testing::plan() };
        assert!(refused(&plan).contains("give 1"));
    }

    #[test]
    fn a_run_directory_with_something_in_it_is_refused() {
        let mut plan = testing::plan();
        let used = tempfile::tempdir().unwrap();
        std::fs::write(used.path().join("precious"), "x").unwrap();
        plan.run_dir = used.path().to_owned();
        assert!(refused(&plan).contains("is not empty"));
    }

    #[test]
    fn a_proxy_that_is_not_installed_names_its_package() {
        let mut description = crate::find("varnish", &[]).unwrap();
        description.start.command[0] = "varnishd-of-another-world".into();
        let target = TargetChoice::Described(Box::new(description.clone()), Mode::Reverse);
        let message = refused(&RunPlan { target, ..testing::plan() });
        assert!(message.contains("apt-get install varnish"), "{message}");
        let target = TargetChoice::Described(Box::new(description), Mode::Forward);
        assert!(refused(&RunPlan { target, ..testing::plan() }).contains("no forward proxy"));
    }

    #[test]
    fn a_proxy_whose_only_store_is_given_nothing_is_refused() {
        let builtin = RunPlan { memory_bytes: 0, ..testing::plan() };
        assert!(refused(&builtin).contains("--direct"));
        let mut nginx = crate::find("nginx", &[]).unwrap();
        // It need not be installed for this.
        (nginx.user, nginx.start.command) = (None, vec!["/bin/sh".into()]);
        let target = TargetChoice::Described(Box::new(nginx), Mode::Reverse);
        let message = refused(&RunPlan { target, disk_bytes: 0, ..testing::plan() });
        assert!(message.contains("give it at least --disk 8MB"), "{message}");
    }

    #[test]
    fn a_good_plan_has_everything_resolved() {
        let plan = testing::plan();
        let prepared = prepare(&plan).unwrap();
        assert_eq!((prepared.origin_listen.len(), prepared.sources.len()), (1, 1));
        assert!(prepared.target.is_some() && prepared.behaviour.caches);
        assert!(plan.run_dir.is_dir());
        std::fs::remove_dir_all(&plan.run_dir).unwrap();
    }

    #[test]
    fn port_ranges_are_read() {
        assert_eq!(parse_ports("32768 60999"), Some((32_768, 60_999)));
        assert_eq!(parse_ports("x"), None);
    }
}
