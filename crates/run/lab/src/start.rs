//! The start of a run, in order. Links, origins, the target and robots, each when the one before is ready.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::machines::fleet::message::RoleSpec;
use assay_host::link::Namespace;
use assay_load::spec::{OriginsSpec, RobotsSpec, Target, Timing, UniverseSpec};
use assay_net::HEALTH_PATH;
use assay_protocol::message::Event;
use assay_proxy::spec::{OriginRoute, ProxySpec, usual_name};
use assay_record::event::{RunEvent, Stage};
use assay_record::run::PlacementInfo;
use assay_workload::cache_assignment::Listener;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cache_instance::CacheInstance;
use crate::caches;
use crate::cgroup::ControlGroup;
use crate::conformance::ConformanceRun;
use crate::description::{Description, TemplateOrigin};
use crate::error::{FileError, LabError};
use crate::http_versions::{origins_speak_http2, robots_speak_http2};
use crate::mode::Mode;
use crate::network::EmulatedNetwork;
use crate::placement;
use crate::plan::{RunPart, TargetChoice};
use crate::prepare::reachable;
use crate::probe::Endpoint;
use crate::process::Launch;
use crate::readiness::{self, Readiness, ReadinessProbe};
use crate::real_proxy::{self, RealProxy, RealProxyPlan};
use crate::roles::{Role, RoleEvent, RoleKind};
use crate::run::{READY_TIMEOUT, Session, SessionInput};
use crate::running_roles::{CounterTask, RunningRoles, StartedProxy};
use crate::tls::TlsProbe;
use crate::topology::Topology;

/// Time for which each role measures a bare timer before it is ready.
const BASELINE_MS: u64 = 250;
/// Time that a target that already runs (and origins, directly) may take to respond to a first request.
const FIRST_RESPONSE: Duration = Duration::from_secs(10);

impl Session {
    /// Starts origins, the target and robots, each when the one before is ready.
    pub(crate) async fn start_all(&mut self, running: &mut RunningRoles) -> Result<(), LabError> {
        if let Some(remote) = self.plan.remote.clone() {
            let workload = self.run_dir().join("workload.json");
            self.unless_stopped(remote.begin(&workload)).await?;
        }
        if let RunPart::Robots { .. } = self.plan.part {
            let origins = self.prepared.origin_listen.clone();
            self.start_target(running, &origins).await?;
            self.notify(RunEvent::Stage(Stage::StartingRobots));
            return self.start_robots(running, &origins).await;
        }
        self.start_links(running).await?;
        self.notify(RunEvent::Stage(Stage::StartingOrigins));
        let origins = self.start_origins(running).await?;
        if let RunPart::Origins { .. } = self.plan.part {
            return Ok(());
        }
        if let (Some(plan), Some(listen)) = (self.plan.conform.clone(), self.prepared.conformance_origin) {
            let opened = ConformanceRun::open(&plan, &self.plan.assay_version, listen);
            self.conformance = Some(self.unless_stopped(opened).await?);
        }
        self.start_target(running, &origins).await?;
        self.notify(RunEvent::Stage(Stage::StartingRobots));
        self.start_robots(running, &origins).await?;
        self.secured.forget_keys();
        Ok(())
    }

    /// Starts what carries packets between namespaces, and measures each link.
    async fn start_links(&mut self, running: &mut RunningRoles) -> Result<(), LabError> {
        let Some(spec) = self.prepared.network.as_ref().and_then(EmulatedNetwork::spec) else {
            return Ok(());
        };
        self.notify(RunEvent::Stage(Stage::TestingLinks));
        let threads = u32::try_from(spec.links.len()).unwrap_or(u32::MAX);
        // Not on the proxy's processors: what it can do is to be seen.
        let placement = &self.prepared.placement;
        let mut cpus = [placement.robots.clone(), placement.origins.clone()].concat();
        cpus.sort_unstable();
        cpus.dedup();
        running.links = Some(self.start_role(RoleKind::Links, &spec, &cpus, &[])?);
        let under_test = match &mut self.prepared.network {
            Some(network) => {
                network.release_devices();
                network.under_test()
            }
            None => Vec::new(),
        };
        self.ready(running, RoleKind::Links, cpus, threads).await?;
        for (index, link) in under_test.into_iter().enumerate() {
            let measure = async {
                let measured = tokio::task::spawn_blocking(move || link.measure()).await;
                measured.map_err(LabError::run)?.map_err(LabError::run)
            };
            let test = self.unless_stopped(measure).await?;
            if let Some(info) = self.info.bed.as_mut().and_then(|network| network.links.get_mut(index)) {
                info.test = Some(test);
            }
        }
        self.write_info()
    }

    /// Namespace of a role; none: the lab's own network.
    fn namespace(&self, kind: RoleKind) -> Option<Namespace> {
        self.prepared.network.as_ref().and_then(|network| network.namespace(kind)).cloned()
    }

    async fn start_origins(&mut self, running: &mut RunningRoles) -> Result<Vec<SocketAddr>, LabError> {
        let cpus = self.prepared.placement.origins.clone();
        let threads = placement::threads(0, &cpus, &self.prepared.cpus);
        let spec = OriginsSpec {
            universe: self.universe(),
            threads,
            cpus: cpus.clone(),
            timing: self.timing(),
            first: match self.plan.part {
                RunPart::Origins { first, .. } => first,
                RunPart::Whole | RunPart::Robots { .. } => 0,
            },
            listen: self.prepared.origin_listen.clone(),
            tls: self.secured.origins.clone(),
        };
        let spec = RoleSpec::Origins(spec);
        running.origins =
            Some(self.start_role_here_or_remotely(RoleKind::Origins, "origins", spec, &cpus, &[]).await?);
        let listening = self.ready(running, RoleKind::Origins, cpus, threads).await?;
        let (seen, wanted) = (listening.len(), self.prepared.origin_listen.len());
        if seen != wanted {
            return Err(LabError::run(format!("origins listen on {seen} addresses instead of {wanted}")));
        }
        Ok(listening.into_iter().map(reachable).collect())
    }

    async fn start_target(
        &mut self,
        running: &mut RunningRoles,
        origins: &[SocketAddr],
    ) -> Result<(), LabError> {
        match self.plan.target.clone() {
            TargetChoice::Direct => self.first_responses(origins, None).await,
            TargetChoice::Running { address, mode } => {
                self.first_responses(origins, Some((address, mode))).await
            }
            TargetChoice::Builtin(mode) => {
                self.notify(RunEvent::Stage(Stage::StartingTarget { name: "built-in proxy".into() }));
                let address = self.start_builtin(running, origins, CacheInstance::alone(&self.plan)).await?;
                let responded = self.first_responses(origins, Some((address, mode))).await;
                running.or_role_failure(responded).await
            }
            TargetChoice::Described(description, mode) if self.plan.remote.is_some() => {
                self.start_described_remotely(running, &description, mode, origins).await
            }
            TargetChoice::Described(description, mode) => {
                let version = self.version(&description).await?;
                self.info.target.version = version;
                if self.plan.tls.robots {
                    self.info.target.notes.extend(real_proxy::terminator_note(&description).await?);
                }
                let instance =
                    CacheInstance { description: Some(&description), ..CacheInstance::alone(&self.plan) };
                self.start_described(running, mode, origins, instance).await?;
                self.wait_ready(running).await
            }
            TargetChoice::Topology(topology) => self.start_topology(running, &topology, origins).await,
        }
    }

    /// Starts every cache, parents first, and waits until a request through each gets its response.
    async fn start_topology(
        &mut self,
        running: &mut RunningRoles,
        topology: &Topology,
        origins: &[SocketAddr],
    ) -> Result<(), LabError> {
        for description in topology.descriptions() {
            let version = self.version(description).await?;
            let named = self.info.target.caches.iter_mut().filter(|cache| cache.proxy == description.name);
            named.for_each(|cache| cache.version.clone_from(&version));
        }
        let mut builtins = Vec::new();
        for (index, cache) in topology.caches.iter().enumerate() {
            let instance = CacheInstance::of(topology, index, &self.prepared.caches);
            self.notify(RunEvent::Stage(Stage::StartingTarget { name: cache.name.clone() }));
            if cache.description.is_some() {
                self.start_described(running, topology.mode, origins, instance).await?;
            } else {
                builtins.push(self.start_builtin(running, origins, instance).await?);
            }
        }
        self.wait_ready(running).await?;
        for address in builtins {
            let responded = self.first_responses(origins, Some((address, topology.mode))).await;
            running.or_role_failure(responded).await?;
        }
        Ok(())
    }

    async fn start_builtin(
        &mut self,
        running: &mut RunningRoles,
        origins: &[SocketAddr],
        instance: CacheInstance<'_>,
    ) -> Result<SocketAddr, LabError> {
        let cpus = self.prepared.placement.proxy.clone();
        let listen = self.cache_address(instance.index)?;
        let chosen = instance.chosen;
        let spec = ProxySpec {
            name: instance.name.map_or_else(usual_name, str::to_owned),
            listen,
            threads: 1,
            cpus: cpus.clone(),
            memory_bytes: instance.memory_bytes,
            // What is stale is only served where an origin allows it.
            stale_if_error_s: 0,
            origins: self.routes(origins),
            access_log: self.builtin_log_path(instance.name)?,
            cooperation: instance.cooperation,
            prefetch: chosen.prefetch,
            storing: chosen.storing,
            tls: self.secured.listen.clone(),
            origin_tls: self.secured.upstream.clone(),
            origin_http2: origins_speak_http2(&self.plan.workload),
        };
        let procs_files = self.limit(running, &cpus)?;
        let file = instance.name.map_or_else(|| "proxy".to_owned(), |name| format!("proxy-{name}"));
        let kind = RoleKind::Proxy(instance.index);
        let spec = RoleSpec::Builtin(spec);
        let role = self.start_role_here_or_remotely(kind, &file, spec, &cpus, &procs_files).await?;
        running.proxies.push(StartedProxy::Role(Box::new(role)));
        let listening = self.ready(running, kind, cpus, 1).await?;
        let address = listening.first().copied().unwrap_or(listen);
        if self.plan.remote.is_some() {
            self.target_is_at(address);
        }
        Ok(address)
    }

    /// Access log of a built-in cache among several; one that stands alone does not.
    fn builtin_log_path(&self, name: Option<&str>) -> Result<Option<PathBuf>, LabError> {
        let Some(name) = name else { return Ok(None) };
        let path = self.run_dir().join("proxy").join(caches::builtin_log(name));
        let directory = path.parent().unwrap_or(&path);
        std::fs::create_dir_all(directory).map_err(|e| LabError::run(FileError::make(directory, e)))?;
        Ok(Some(path))
    }

    /// The version that a real proxy reports; announced as an event.
    async fn version(&self, description: &Description) -> Result<String, LabError> {
        let version = real_proxy::version(description).await.map_err(LabError::run)?;
        let name = format!("{} {version}", description.title);
        self.notify(RunEvent::Stage(Stage::StartingTarget { name }));
        Ok(version)
    }

    /// Hosts of the origins, each with its address.
    pub(crate) fn routes(&self, origins: &[SocketAddr]) -> Vec<OriginRoute> {
        let authorities = self.plan.workload.origins.iter().map(|origin| origin.authority.clone());
        let both = authorities.zip(origins.iter().copied()).chain(self.conformance_origin());
        both.map(|(authority, address)| OriginRoute { authority, address }).collect()
    }

    async fn start_described(
        &mut self,
        running: &mut RunningRoles,
        mode: Mode,
        origins: &[SocketAddr],
        instance: CacheInstance<'_>,
    ) -> Result<(), LabError> {
        let Some(description) = instance.description.cloned() else { return Ok(()) };
        let cpus = self.prepared.placement.proxy.clone();
        let cpu_count = placement::threads(0, &cpus, &self.prepared.cpus);
        let kept = self.run_dir().join("proxy");
        let keep = instance.name.map_or_else(|| kept.clone(), |name| kept.join(name));
        let choice = RealProxyPlan {
            description,
            mode,
            http2: robots_speak_http2(&self.plan.workload),
            origin_http2: origins_speak_http2(&self.plan.workload),
            listen: self.cache_address(instance.index)?,
            origins: self.named_origins(origins),
            memory_bytes: instance.memory_bytes,
            disk_bytes: instance.disk_bytes,
            cpus: cpus.clone(),
            procs_files: self.limit(running, &cpus)?,
            cpu_count,
            helper_cpus: self.prepared.placement.robots.clone(),
            descriptors: self.prepared.descriptors,
            connections: self.prepared.connections,
            peering: instance.peering,
            tls: self.secured.proxy.clone(),
            keep: keep.clone(),
            namespace: self.namespace(RoleKind::Proxy(instance.index)),
            requested_from: self.namespace(RoleKind::Robots),
            temp: self.plan.temp_dir.clone(),
        };
        if keep != kept {
            std::fs::create_dir_all(&keep).map_err(|e| LabError::run(FileError::make(&keep, e)))?;
        }
        let proxy = Box::new(self.unless_stopped(RealProxy::start(choice)).await?);
        running.proxies.push(StartedProxy::Real { proxy, counters: None, keep });
        Ok(())
    }

    /// Waits for every real proxy, and begins to read what it counts.
    async fn wait_ready(&mut self, running: &mut RunningRoles) -> Result<(), LabError> {
        let sender = running.counted.sender();
        for (index, started) in (0..).zip(&mut running.proxies) {
            let StartedProxy::Real { proxy, counters, .. } = started else { continue };
            self.unless_stopped(proxy.wait_ready()).await?;
            let listen = self.cache_address(index)?;
            let reader = proxy.counter_reader();
            self.record_placement(PlacementInfo {
                role: "proxy".into(),
                pid: proxy.pids().first().copied().unwrap_or(0),
                cpus: self.prepared.placement.proxy.clone(),
                threads: 0,
                listening: vec![listen.to_string()],
            });
            self.notify(RunEvent::Stage(Stage::TargetReady { address: listen }));
            if reader.has_sources() {
                *counters = Some(CounterTask::spawn(reader, index, sender.clone()));
            }
        }
        Ok(())
    }

    /// Makes the control group that holds the proxy to its limits, if it has any; gives its `cgroup.procs` files.
    fn limit(&mut self, running: &mut RunningRoles, cpus: &[u32]) -> Result<Vec<PathBuf>, LabError> {
        if self.plan.limits.is_none() {
            return Ok(Vec::new());
        }
        // One group for all: what they use together is limited.
        let group = match &mut running.limits {
            Some(group) => group,
            none => none.insert(ControlGroup::make(&self.plan.limits, cpus)?),
        };
        self.info.limits = Some(group.info());
        Ok(group.procs_files())
    }

    async fn start_robots(
        &mut self,
        running: &mut RunningRoles,
        origins: &[SocketAddr],
    ) -> Result<(), LabError> {
        let cpus = self.prepared.placement.robots.clone();
        let threads = placement::threads(self.plan.threads, &cpus, &self.prepared.cpus);
        let origins = origins.to_vec();
        let target = match (self.plan.target.mode(), self.prepared.target) {
            (Some(Mode::Forward), Some(proxy)) => Target::Forward { proxy, origins },
            (_, Some(proxy)) => Target::Reverse { proxy },
            (_, None) => Target::Direct { origins },
        };
        let spec = RobotsSpec {
            universe: self.universe(),
            robots: match self.plan.part {
                RunPart::Robots { first, last } => Some((first, last)),
                // Machines divide them among themselves.
                RunPart::Whole if self.plan.remote.is_some() => {
                    self.plan.workload.robot_count().checked_sub(1).map(|last| (0, last))
                }
                RunPart::Whole | RunPart::Origins { .. } => None,
            },
            threads,
            cpus: cpus.clone(),
            timing: self.timing(),
            target,
            tls: self.secured.robots.clone(),
            listeners: self.listeners(),
            sources: self.prepared.sources.clone(),
            behaviour: self.prepared.behaviour,
            timeout_ms: u64::try_from(self.plan.timeout.as_millis()).unwrap_or(u64::MAX),
            xact_log: self
                .plan
                .records_xacts(self.expected_requests())
                .then(|| self.run_dir().join("xacts.parquet")),
            joins_waits: self.watches_target(),
        };
        let spec = RoleSpec::Robots(spec);
        running.robots =
            Some(self.start_role_here_or_remotely(RoleKind::Robots, "robots", spec, &cpus, &[]).await?);
        self.ready(running, RoleKind::Robots, cpus, threads).await.map(drop)
    }

    fn expected_requests(&self) -> f64 {
        let phases = self.prepared.timeline.phases().iter();
        phases.filter_map(|phase| phase.expected.as_ref()).map(|expected| expected.requests).sum()
    }

    fn timing(&self) -> Timing {
        Timing {
            spin_us: u64::try_from(self.plan.spin.as_micros()).unwrap_or(u64::MAX),
            realtime: self.plan.realtime,
            baseline_ms: BASELINE_MS,
            unwatched: false,
        }
    }

    fn universe(&self) -> UniverseSpec {
        UniverseSpec {
            workload: self.run_dir().join("workload.json"),
            seed: self.plan.seed,
            world: self.plan.world,
            private_as_public: self.plan.private_as_public,
        }
    }

    fn named_origins(&self, addresses: &[SocketAddr]) -> Vec<TemplateOrigin> {
        let authorities = self.plan.workload.origins.iter().map(|origin| origin.authority.clone());
        let both = authorities.zip(addresses.iter().copied()).chain(self.conformance_origin()).enumerate();
        both.map(|(index, (authority, address))| TemplateOrigin::new(index, &authority, address)).collect()
    }

    /// The origin of conformance cases, which the target has behind it beside those of the workload.
    fn conformance_origin(&self) -> Option<(String, SocketAddr)> {
        self.conformance.as_ref().map(|cases| (cases.origin.to_string(), cases.origin))
    }

    /// Address at which the proxy at a place listens.
    pub(crate) fn cache_address(&self, index: u16) -> Result<SocketAddr, LabError> {
        let address = self.prepared.caches.get(usize::from(index)).copied();
        address.ok_or_else(|| LabError::run("the plan has no address for its target"))
    }

    /// Assignment of robots to several caches.
    fn listeners(&self) -> Vec<Listener> {
        let TargetChoice::Topology(topology) = &self.plan.target else { return Vec::new() };
        let caches = topology.caches.iter().zip(&self.prepared.caches);
        caches.map(|(cache, proxy)| Listener { proxy: *proxy, robots: cache.robots.clone() }).collect()
    }

    /// Writes a role's spec and starts it.
    fn start_role<S: serde::Serialize>(
        &self,
        kind: RoleKind,
        spec: &S,
        cpus: &[u32],
        procs_files: &[PathBuf],
    ) -> Result<Role, LabError> {
        self.start_role_as(kind, kind.name(), spec, cpus, procs_files)
    }

    /// The same, with a name of its own for its files.
    pub(crate) fn start_role_as<S: serde::Serialize>(
        &self,
        kind: RoleKind,
        file: &str,
        spec: &S,
        cpus: &[u32],
        procs_files: &[PathBuf],
    ) -> Result<Role, LabError> {
        let roles: PathBuf = self.run_dir().join("roles");
        let path = roles.join(format!("{file}.json"));
        let cannot = |e: std::io::Error| LabError::run(FileError::write(&path, e));
        let text = serde_json::to_vec_pretty(spec).map_err(|e| cannot(e.into()))?;
        std::fs::write(&path, text).map_err(cannot)?;
        let output = roles.join(format!("{file}.log"));
        let devices = self
            .prepared
            .network
            .as_ref()
            .and_then(EmulatedNetwork::spec)
            .filter(|_| kind == RoleKind::Links);
        let launch = Launch {
            program: self.plan.exe.clone().into(),
            arguments: vec!["role".into(), kind.name().into(), path.clone().into()],
            environment: Default::default(),
            directory: &roles,
            cpus,
            piped: true,
            output: &output,
            group: None,
            procs_files,
            namespace: self.namespace(kind),
            inherit: devices.iter().flat_map(|spec| &spec.links).flat_map(|link| link.devices).collect(),
        };
        Role::start(kind, launch, self.role_events.clone())
    }

    /// Waits until a role is ready, and notes where it is.
    pub(crate) async fn ready(
        &mut self,
        running: &mut RunningRoles,
        kind: RoleKind,
        cpus: Vec<u32>,
        threads: u32,
    ) -> Result<Vec<SocketAddr>, LabError> {
        let deadline = Instant::now() + READY_TIMEOUT;
        loop {
            let input = tokio::time::timeout_at(deadline, self.next_input()).await;
            match input {
                Ok(SessionInput::Stop) => return Err(LabError::Interrupted),
                Ok(SessionInput::Role(from, RoleEvent::Event(event))) => {
                    let listening = match *event {
                        Event::Ready { listening } if from == kind => listening,
                        other => {
                            self.handle_event(from, other)?;
                            continue;
                        }
                    };
                    let pid = running.role(kind).and_then(|role| role.pid()).unwrap_or(0);
                    let named = listening.iter().map(ToString::to_string).collect();
                    self.record_placement(PlacementInfo {
                        role: kind.name().into(),
                        pid,
                        cpus,
                        threads,
                        listening: named,
                    });
                    return Ok(listening);
                }
                Ok(SessionInput::Role(from, RoleEvent::Ended)) => {
                    return Err(LabError::run(format!(
                        "{} did not start: {}",
                        from.name(),
                        running.exit_summary(from).await
                    )));
                }
                Ok(SessionInput::Role(..)) => {}
                Err(_) => {
                    let name = kind.name();
                    return Err(LabError::run(format!("{name} were not ready within {READY_TIMEOUT:?}")));
                }
            }
        }
    }

    /// One request for each origin must get a 200 response: through the target, or directly.
    async fn first_responses(
        &mut self,
        addresses: &[SocketAddr],
        target: Option<(SocketAddr, Mode)>,
    ) -> Result<(), LabError> {
        if self.plan.remote.is_some() {
            // This machine takes no part, and need not reach those that do.
            return Ok(());
        }
        // Requests to a proxy that stands for the origins carry their names, whether or not we know where they are.
        let named = match target {
            Some((proxy, Mode::Reverse)) if addresses.is_empty() => {
                vec![proxy; self.plan.workload.origins.len()]
            }
            _ => addresses.to_vec(),
        };
        let origins = self.named_origins(&named);
        let requested: Vec<_> = origins.iter().zip(named).collect();
        let from = self.namespace(RoleKind::Robots);
        let client = self.secured.probe.clone();
        let request_all = async {
            for &(origin, address) in readiness::order(&requested) {
                let (proxy, mode) = target.unwrap_or((address, Mode::Reverse));
                let tls =
                    client.as_ref().map(|client| TlsProbe::new(client, &origin.authority)).transpose()?;
                let proxy = Endpoint { address: proxy, tls: tls.as_ref() };
                let requested =
                    ReadinessProbe { from: from.as_ref(), proxy, mode, origin, path: HEALTH_PATH };
                let deadline = Instant::now() + FIRST_RESPONSE;
                loop {
                    let seen = match readiness::attempt(requested).await {
                        Readiness::Ready => break,
                        Readiness::NotYet(seen) => seen,
                        Readiness::Untrusted(seen) => {
                            return Err(real_proxy::no_response(proxy.address, mode, origin, &seen));
                        }
                        Readiness::Other(other) => {
                            let what = readiness::mixed_up(requested, &other, &origins);
                            return Err(LabError::run(format!("{}: {what}", proxy.address)));
                        }
                    };
                    if Instant::now() >= deadline {
                        return Err(real_proxy::no_response(proxy.address, mode, origin, &seen));
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
            Ok(())
        };
        let mut stop = self.stop_signal();
        tokio::select! {
            responded = request_all => responded?,
            () = stopped(&mut stop) => return Err(LabError::Interrupted),
        }
        if let Some((address, _)) = target {
            self.notify(RunEvent::Stage(Stage::TargetReady { address }));
        }
        Ok(())
    }

    /// Does something that takes a while, unless the user stops the run first.
    pub(crate) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, LabError>>,
    ) -> Result<T, LabError> {
        let mut stop = self.stop_signal();
        tokio::select! {
            done = work => done,
            () = stopped(&mut stop) => Err(LabError::Interrupted),
        }
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        // Whoever could have stopped the run is gone.
        std::future::pending().await
    }
}
