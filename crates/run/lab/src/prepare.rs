//! Everything that is decided and checked before anything is started.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use assay_cache::behaviour::CacheBehaviour;
use assay_protocol::network::is_private;
use assay_record::dir::RunDir;
use assay_workload::cache_assignment::{Share, assign_caches};
use assay_workload::timeline::Timeline;

use crate::address::{self, LoopbackNet};
use crate::capacity;
use crate::cgroup::ControlGroup;
use crate::checks;
use crate::conformance;
use crate::description::Description;
use crate::error::LabError;
use crate::http_versions;
use crate::mode::Mode;
use crate::network::EmulatedNetwork;
use crate::placement::{self, Placement, ProxyPlacement, RequestedCpus};
use crate::plan::{MOST_SPIN, RunPart, RunPlan, TargetChoice};
use crate::process::{find_program, install_advice};
use crate::real_proxy;
use crate::realtime;
use crate::remote::prepare as remote_prepare;
use crate::tls;
use crate::topology::Topology;
use crate::watched_processes;
use crate::workdir;

/// Time that a running proxy may take to accept a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// A plan that this machine can carry, with everything resolved.
#[derive(Debug)]
pub struct Prepared {
    /// Begin and end of each phase.
    pub timeline: Timeline,
    /// The run directory; it is there now.
    pub dir: RunDir,
    /// Keeps the run's loopback network its own.
    pub _net: Option<LoopbackNet>,
    /// The network that was made for the run; none: loopback.
    pub network: Option<EmulatedNetwork>,
    /// Addresses at which origins are to listen.
    pub origin_listen: Vec<SocketAddr>,
    /// Address of the target; none: directly.
    pub target: Option<SocketAddr>,
    /// Addresses at which each proxy listens that the lab starts: one, or one for each cache.
    pub caches: Vec<SocketAddr>,
    /// Address at which the origin of conformance cases is to listen; none: it has no part in the run.
    pub conformance_origin: Option<SocketAddr>,
    /// Source addresses of robots.
    pub sources: Vec<IpAddr>,
    /// Behaviour of the target where the standard leaves a choice.
    pub behaviour: CacheBehaviour,
    /// Processors of each role.
    pub placement: Placement,
    /// Processors that there are.
    pub cpus: Vec<u32>,
    /// Descriptors that a process may have.
    pub descriptors: u64,
    /// Connections that robots may open at once.
    pub connections: u64,
    /// The first processes of a target that already runs, where they are watched.
    pub watched: Vec<u32>,
}

/// Checks a plan and makes the run directory; nothing else is left behind, and nothing runs.
pub fn prepare(plan: &RunPlan) -> Result<Prepared, LabError> {
    let timeline = plan.timeline()?;
    remote_prepare::check(plan)?;
    check_target(plan)?;
    let watched = find_watched(plan)?;
    http_versions::check(plan)?;
    tls::check(plan)?;
    conformance::check(plan)?;
    let cpus = placement::available();
    let placement = place_roles(plan, &cpus)?;
    check_timing(plan)?;
    check_limits(plan, &placement)?;
    let descriptors = capacity::raise_descriptor_limit();
    check_network(plan)?;
    capacity::check_needs(plan, &timeline, &placement, &cpus)?;
    let Addresses { net, network, origin_listen, target, caches, sources } = match &plan.remote {
        Some(remote) => remote_prepare::addresses(plan, remote.as_ref()),
        None if plan.needs_network() => addresses_in_network(plan)?,
        None => addresses_on_loopback(plan)?,
    };
    let conformance_origin = match (&plan.conform, &net) {
        (Some(_), Some(net)) => Some(net.conformance_origin()?),
        _ => None,
    };
    let dir = RunDir::create(&plan.run_dir).map_err(LabError::plan)?;
    Ok(Prepared {
        timeline,
        dir,
        _net: net,
        network,
        origin_listen,
        target,
        caches,
        conformance_origin,
        sources,
        behaviour: behaviour(&plan.target),
        placement,
        cpus,
        descriptors,
        connections: checks::demand::connections(&plan.workload, plan.timeout).0,
        watched,
    })
}

/// Checks what can be checked of a plan while nothing is made or started: that its proxy is installed, that its stores accept
/// their sizes, that its processors are there, that its limits can be set.
pub fn check(plan: &RunPlan) -> Result<(), LabError> {
    plan.timeline()?;
    remote_prepare::check(plan)?;
    check_target(plan)?;
    find_watched(plan)?;
    http_versions::check(plan)?;
    tls::check(plan)?;
    conformance::check(plan)?;
    let placement = place_roles(plan, &placement::available())?;
    check_timing(plan)?;
    check_network(plan)?;
    check_limits(plan, &placement)
}

/// The only way to know is to try; nothing runs in the group, and it is gone again.
fn check_limits(plan: &RunPlan, placement: &Placement) -> Result<(), LabError> {
    if plan.limits.is_none() {
        return Ok(());
    }
    if !plan.target.is_started() {
        return Err(LabError::plan(
            "limits hold a proxy that Assay starts, and this run has none; leave them out",
        ));
    }
    ControlGroup::make(&plan.limits, &placement.proxy).map(drop)
}

pub(crate) struct Addresses {
    pub(crate) net: Option<LoopbackNet>,
    pub(crate) network: Option<EmulatedNetwork>,
    pub(crate) origin_listen: Vec<SocketAddr>,
    pub(crate) target: Option<SocketAddr>,
    pub(crate) caches: Vec<SocketAddr>,
    pub(crate) sources: Vec<IpAddr>,
}

fn addresses_on_loopback(plan: &RunPlan) -> Result<Addresses, LabError> {
    let net = LoopbackNet::claim()?;
    let origin_listen = origin_addresses(plan, &net)?;
    let caches: Vec<SocketAddr> =
        (0..proxies(&plan.target)).map(|place| net.cache(place)).collect::<Result<_, _>>()?;
    let target = match &plan.target {
        TargetChoice::Running { address, .. } => Some(*address),
        _ => caches.first().copied(),
    };
    let sources = source_addresses(plan, &net)?;
    Ok(Addresses { net: Some(net), network: None, origin_listen, target, caches, sources })
}

fn addresses_in_network(plan: &RunPlan) -> Result<Addresses, LabError> {
    let direct = plan.target == TargetChoice::Direct;
    let topology = match &plan.target {
        TargetChoice::Topology(topology) => Some(&**topology),
        _ => None,
    };
    let network = EmulatedNetwork::build(&plan.network, direct, topology, plan.seed)?;
    let origin_listen = network.origins(&plan.workload)?;
    let sources = network.robots(address::robot_hosts(&plan.workload).len())?;
    let caches: Vec<SocketAddr> = (0..proxies(&plan.target)).map(|place| network.proxy(place)).collect();
    let target = caches.first().copied();
    Ok(Addresses { net: None, network: Some(network), origin_listen, target, caches, sources })
}

/// Number of proxies that the lab starts.
pub(crate) fn proxies(target: &TargetChoice) -> u8 {
    match target {
        TargetChoice::Direct | TargetChoice::Running { .. } => 0,
        TargetChoice::Builtin(_) | TargetChoice::Described(..) => 1,
        // There are 64 at most.
        TargetChoice::Topology(topology) => topology.caches.len() as u8,
    }
}

/// Links are between what the lab starts, at addresses that it chooses.
fn check_network(plan: &RunPlan) -> Result<(), LabError> {
    let refusal = match &plan.target {
        _ if !plan.needs_network() => None,
        TargetChoice::Running { address, .. } => Some(format!(
            "the proxy at {address} already runs, and the lab cannot put it behind a link"
        )),
        _ if plan.part != RunPart::Whole => {
            Some("a part of a run lives in the machine's own network; leave links and --congestion out".into())
        }
        _ if plan.origin_listen.is_some() => {
            Some("with links, origins live in a network of the lab's and listen where it says; leave --origin-listen out".into())
        }
        _ if !plan.robot_sources.is_empty() => {
            Some("with links, robots live in a network of the lab's; leave their source addresses out".into())
        }
        _ => None,
    };
    refusal.map_or(Ok(()), |why| Err(LabError::plan(why)))
}

/// Processors of each role, as the plan has them.
pub fn place_roles(plan: &RunPlan, cpus: &[u32]) -> Result<Placement, LabError> {
    let proxy_placement = match plan.target {
        TargetChoice::Direct => ProxyPlacement::None,
        TargetChoice::Builtin(_) | TargetChoice::Described(..) | TargetChoice::Topology(_) => {
            ProxyPlacement::Started
        }
        TargetChoice::Running { .. } => ProxyPlacement::Running,
    };
    let named =
        RequestedCpus { robots: &plan.robot_cpus, origins: &plan.origin_cpus, proxy: &plan.proxy_cpus };
    // Alone on its machine, a part may have all of it.
    let pin = plan.pin && plan.part == RunPart::Whole && plan.remote.is_none();
    placement::assign(cpus, proxy_placement, pin, named).map_err(LabError::plan)
}

fn check_timing(plan: &RunPlan) -> Result<(), LabError> {
    if plan.spin > MOST_SPIN {
        return Err(LabError::plan(format!(
            "--spin {:?} would leave a processor no rest; {MOST_SPIN:?} is the most, and 50us is usually enough",
            plan.spin
        )));
    }
    match plan.realtime.then(realtime::refused).flatten() {
        Some(why) => Err(LabError::plan(why)),
        None => Ok(()),
    }
}

pub(crate) fn behaviour(target: &TargetChoice) -> CacheBehaviour {
    match target {
        TargetChoice::Direct => {
            CacheBehaviour { caches: false, reloads_reach_origin: true, ..CacheBehaviour::default() }
        }
        TargetChoice::Builtin(_) => assay_proxy::spec::BEHAVIOUR,
        TargetChoice::Running { .. } => CacheBehaviour::default(),
        TargetChoice::Described(description, _) => description.behaviour,
        TargetChoice::Topology(topology) => topology_behaviour(topology),
    }
}

/// Of several caches, that of the one which robots speak to first; what is missed in it is looked for in others, and so two
/// robots that request one object from two caches at the same time are never told to wait for each other.
fn topology_behaviour(topology: &Topology) -> CacheBehaviour {
    let first = topology.caches.iter().find(|cache| cache.has_robots());
    let declared = first.and_then(|cache| cache.description.as_ref());
    let behaviour = declared.map_or(assay_proxy::spec::BEHAVIOUR, |description| description.behaviour);
    CacheBehaviour { collapses: behaviour.collapses && topology.caches.len() == 1, ..behaviour }
}

fn check_target(plan: &RunPlan) -> Result<(), LabError> {
    match &plan.target {
        TargetChoice::Direct if matches!(plan.part, RunPart::Robots { .. }) => {
            plan.origin_listen.iter().flatten().try_for_each(|origin| check_own(plan, *origin))
        }
        TargetChoice::Direct => Ok(()),
        TargetChoice::Builtin(_) if plan.memory_bytes == 0 => Err(LabError::plan(
            "the built-in proxy keeps everything in memory, and --memory is 0; give it some, or leave the proxy out \
             with --direct",
        )),
        TargetChoice::Builtin(_) => Ok(()),
        TargetChoice::Described(description, mode) => {
            match plan.remote {
                // Whether it is installed is for its agent to say.
                Some(_) => check_mode(description, *mode)?,
                None => check_described(description, *mode)?,
            }
            description.check_capacity(plan.memory_bytes, plan.disk_bytes).map_err(LabError::plan)
        }
        TargetChoice::Topology(topology) => {
            let shares: Vec<&Share> = topology.caches.iter().map(|cache| &cache.robots).collect();
            assign_caches(&shares, &plan.workload).map_err(LabError::plan)?;
            topology.descriptions().try_for_each(|description| check_described(description, topology.mode))
        }
        TargetChoice::Running { address, mode } => check_running(plan, *address, *mode),
    }
}

/// Refuses a proxy that this machine lacks, or that cannot be spoken to in this way.
pub fn check_described(description: &Description, mode: Mode) -> Result<(), LabError> {
    let title = &description.title;
    check_mode(description, mode)?;
    check_programs(description, title)?;
    if let Some(user) = &description.user
        && real_proxy::is_root()
        && workdir::find_user(user).is_none()
    {
        return Err(LabError::plan(format!(
            "{title} is to run as the user `{user}`, and there is none of that name; install its package, or change \
             `user` in its description"
        )));
    }
    Ok(())
}

/// Refuses a proxy that cannot be spoken to in this way.
fn check_mode(description: &Description, mode: Mode) -> Result<(), LabError> {
    let title = &description.title;
    if !description.modes.contains(&mode) {
        let modes: Vec<&str> = description.modes.iter().map(|mode| mode.name()).collect();
        let (wanted, can) = (mode.name(), modes.join(" and "));
        return Err(LabError::plan(format!("{title} is no {wanted} proxy; its description says: {can}")));
    }
    Ok(())
}

/// Refuses a proxy of which a program is not installed.
fn check_programs(description: &Description, title: &str) -> Result<(), LabError> {
    let programs = [&description.start.command, &description.version.command]
        .into_iter()
        .chain(description.prepare.iter().map(|program| &program.command))
        .chain(description.companions.iter().map(|program| &program.command))
        .chain(description.empty.iter().map(|program| &program.command))
        .chain(
            description.counters.iter().map(|source| &source.command).filter(|command| !command.is_empty()),
        )
        .filter_map(|command| command.first());
    for program in programs {
        // A program whose name is made from a template is found when it is started.
        if !program.contains("{{") && find_program(program).is_none() {
            let advice = install_advice(description.package.as_deref());
            return Err(LabError::plan(format!("{title}: `{program}` was not found; {advice}")));
        }
    }
    Ok(())
}

fn check_running(plan: &RunPlan, address: SocketAddr, mode: Mode) -> Result<(), LabError> {
    check_own(plan, address)?;
    if plan.remote.is_some() {
        // This machine need not reach it; agents say what they may load.
        return Ok(());
    }
    if !is_local(address.ip()) && plan.part == RunPart::Whole {
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
    TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map(drop).map_err(|e| {
        LabError::plan(format!(
            "no proxy accepts connections at {address}: {e}; is it running, and is the address right?"
        ))
    })
}

/// The first processes of what is to be watched.
fn find_watched(plan: &RunPlan) -> Result<Vec<u32>, LabError> {
    let Some(watched) = &plan.watched else { return Ok(Vec::new()) };
    let TargetChoice::Running { address, .. } = &plan.target else {
        let why = match plan.target {
            TargetChoice::Direct => "there is no proxy to watch",
            _ => "what the lab starts itself is always watched; leave --watch out",
        };
        return Err(LabError::plan(why));
    };
    if plan.remote.is_some() {
        // They are found where they are.
        return Ok(Vec::new());
    }
    if !is_local(address.ip()) {
        return Err(LabError::plan(format!(
            "the proxy {address} is on another machine, and processes can be watched on this one only; leave --watch out"
        )));
    }
    watched_processes::find(&watched.processes, *address).map_err(LabError::plan)
}

/// A public address must be the user's.
fn check_own(plan: &RunPlan, address: SocketAddr) -> Result<(), LabError> {
    if !is_private(address.ip()) && !plan.own_target {
        return Err(LabError::plan(format!(
            "{address} is a public address; a workload is an attack on anyone who has not agreed to it. If the target is \
             yours, say so with --i-own-this-target"
        )));
    }
    Ok(())
}

/// True for an address of this machine.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || ip.is_unspecified() || TcpListener::bind((ip, 0)).is_ok()
}

fn origin_addresses(plan: &RunPlan, net: &LoopbackNet) -> Result<Vec<SocketAddr>, LabError> {
    if let RunPart::Robots { .. } = plan.part {
        return Ok(plan.origin_listen.clone().unwrap_or_default());
    }
    let Some(listen) = &plan.origin_listen else { return net.origins(&plan.workload) };
    let wanted = match plan.part {
        RunPart::Origins { first, last, .. } => usize::from(last.saturating_sub(first)) + 1,
        RunPart::Whole | RunPart::Robots { .. } => plan.workload.origins.len(),
    };
    let given = listen.len();
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

/// Address at which an origin that listens there is reached from this machine.
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
    Ok(if system_chooses_sources(plan) { Vec::new() } else { net.robots(wanted) })
}

/// True where the robots' destination is not an IPv4 loopback address, and they were given no source addresses.
pub(crate) fn system_chooses_sources(plan: &RunPlan) -> bool {
    let remote = |ip: IpAddr| !ip.is_loopback() || ip.is_ipv6();
    plan.robot_sources.is_empty()
        && match &plan.target {
            TargetChoice::Running { address, .. } => remote(address.ip()),
            TargetChoice::Direct => {
                plan.origin_listen.iter().flatten().any(|origin| !reachable(*origin).ip().is_loopback())
            }
            TargetChoice::Builtin(_) | TargetChoice::Described(..) | TargetChoice::Topology(_) => false,
        }
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
        let plan = running(&net.cache(0).unwrap().to_string(), Mode::Reverse);
        assert!(refused(&plan).contains("no proxy accepts connections at"));
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
        let address = net.cache(0).unwrap();
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
        nginx.user = None;
        for command in [&mut nginx.start.command, &mut nginx.version.command] {
            *command = vec!["/bin/sh".into()];
        }
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
    fn what_the_lab_did_not_start_cannot_be_put_behind_a_link() {
        let net = LoopbackNet::claim().unwrap();
        let address = net.cache(0).unwrap();
        let _proxy = TcpListener::bind(address).unwrap();
        let network = crate::network::NetworkPlan {
            robot_link: Some("delay=1ms".parse().unwrap()),
            ..Default::default()
        };
        let plan = RunPlan { network: network.clone(), ..running(&address.to_string(), Mode::Reverse) };
        assert!(refused(&plan).contains("already runs"));
        let plan = RunPlan { network, origin_listen: Some(vec![address]), ..testing::plan() };
        assert!(refused(&plan).contains("leave --origin-listen out"));
    }

    #[test]
    fn processors_that_are_not_there_and_endless_spinning_are_refused() {
        let nowhere = RunPlan { robot_cpus: vec![4095], ..testing::plan() };
        assert!(refused(&nowhere).contains("--robot-cpus names processor 4095"));
        let endless = RunPlan { spin: Duration::from_millis(2), ..testing::plan() };
        assert!(refused(&endless).contains("--spin 2ms"));
    }
}
