//! One proxy in isolation: everything that it requests goes to listeners of the caller's, and to no origin besides.
//!
//! An evaluation of several proxies starts each of them so. [`IsolatedProxy`] is one alone, whose caller requests any URL
//! that it likes: as a forward proxy it has one listener, as its only parent; as a reverse proxy it has a listener for each host
//! it stands for. [`topology`] starts several that work together in the same way.
//!
//! *Does not:* stand behind the listeners, or request anything but whether it is ready.

mod certificate;
pub mod topology;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_host::metrics::ProcessorWaits;
use assay_protocol::message::Event;
use assay_proxy::spec::{Chosen, EVERY_HOST, OriginRoute, ProxySpec};
use tokio::sync::mpsc;

use crate::address::LoopbackNet;
use crate::capacity;
use crate::description::{Description, Leg, PeeringVariables, TemplateOrigin, TemplatePeer};
use crate::error::{FileError, LabError};
use crate::mode::Mode;
use crate::mode::{PeerProtocol, PeerRelation};
use crate::prepare;
use crate::process::Launch;
use crate::real_proxy::{self, RealProxy, RealProxyPlan};
use crate::roles::{Role, RoleEvent, RoleKind};
use crate::tls::missing_terminator;

pub use self::certificate::ProxyCertificate;

/// Connections that a proxy that is started is prepared for.
const CONNECTIONS: u64 = 4000;
/// Time that the built-in proxy may take to be ready.
const READY_TIMEOUT: Duration = Duration::from_secs(30);

/// A proxy under test.
#[derive(Debug, Clone)]
pub struct TestedProxy {
    /// Name in results.
    pub label: String,
    pub choice: ProxyChoice,
    /// Memory for its cache, where it is started.
    pub memory_bytes: u64,
    pub disk_bytes: u64,
}

/// Kind of a proxy under test.
#[derive(Debug, Clone)]
pub enum ProxyChoice {
    /// The one that Assay brings, and what was chosen about it.
    Builtin(Chosen),
    /// One that is started as its description says.
    Described(Box<Description>),
    /// One that runs already.
    Running(SocketAddr),
}

/// Plan of a start.
#[derive(Debug, Clone)]
pub struct IsolatedProxyPlan {
    /// The program itself, which the built-in proxy is a role of.
    pub exe: PathBuf,
    /// The proxy; one that runs already is not for this.
    pub proxy: TestedProxy,
    /// Mode in which it is addressed.
    pub mode: Mode,
    /// Clients speak HTTP/2 to it.
    pub http2: bool,
    /// Clients speak TLS to it, with a certificate of an authority that is made for it.
    pub tls: bool,
    /// Directory in which its configuration, its logs and what it says are kept.
    pub directory: PathBuf,
}

/// A proxy that runs, or several that work together. Dropped, it is killed.
#[derive(Debug)]
pub struct IsolatedProxy {
    /// Address at which it listens; of several, the one that is spoken to.
    pub address: SocketAddr,
    /// Title and version that it reports.
    pub software: String,
    // These go before the addresses do.
    started: Vec<StartedProxyEntry>,
    _net: LoopbackNet,
}

/// One that was started.
#[derive(Debug)]
struct StartedProxyEntry {
    /// Name among others; none: it is alone.
    name: Option<String>,
    body: ProxyProcess,
}

#[derive(Debug)]
enum ProxyProcess {
    /// A role of this program.
    Builtin(Role),
    /// A program of somebody else's.
    Real(Box<RealProxy>),
}

/// Addresses for one proxy and its listeners; they are reserved as long as this lives.
#[derive(Debug)]
pub struct AddressReservation(LoopbackNet);

impl AddressReservation {
    /// Takes some that are free.
    pub fn claim() -> Result<Self, LabError> {
        LoopbackNet::claim().map(Self)
    }

    /// Address of listener `place`.
    pub fn listener(&self, place: u8) -> Result<SocketAddr, LabError> {
        self.0.listener(place)
    }
}

/// Refuses plans that cannot be started, or not be isolated.
pub fn check(plan: &IsolatedProxyPlan) -> Result<(), LabError> {
    match &plan.proxy.choice {
        ProxyChoice::Running(address) => Err(LabError::plan(format!("the proxy {address} runs already"))),
        ProxyChoice::Builtin(_) if plan.proxy.memory_bytes == 0 => Err(LabError::plan(
            "the built-in proxy keeps everything in memory, and --memory is 0; give it some",
        )),
        _ if plan.tls && plan.mode == Mode::Forward => {
            Err(LabError::plan("TLS is for reverse proxies; leave --forward out"))
        }
        ProxyChoice::Builtin(_) => Ok(()),
        ProxyChoice::Described(description) => {
            prepare::check_described(description, plan.mode)?;
            if plan.tls {
                check_tls(description)?;
            }
            if !can_be_isolated(description, plan.mode) {
                return Err(LabError::plan(format!(
                    "{} cannot be led as a forward proxy: its description does not say how everything is sent through one \
                     parent, which simulated origins are to be; try it as a reverse proxy: --reverse",
                    description.title
                )));
            }
            let proxy = &plan.proxy;
            description.check_capacity(proxy.memory_bytes, proxy.disk_bytes).map_err(LabError::plan)
        }
    }
}

/// Refuses a described proxy that cannot speak TLS to clients, here.
pub fn check_tls(description: &Description) -> Result<(), LabError> {
    if !description.tls.contains(&Leg::Robots) {
        return Err(LabError::plan(format!(
            "{} cannot speak TLS to clients: its description does not say how; leave TLS out, or choose another proxy \
             (`assay proxies` lists them)",
            description.title
        )));
    }
    missing_terminator(description).map_or(Ok(()), |why| Err(LabError::plan(why)))
}

/// True where a described proxy speaks in this mode, and can be isolated in it.
pub fn supports(description: &Description, mode: Mode) -> bool {
    description.modes.contains(&mode) && can_be_isolated(description, mode)
}

/// True where everything that a proxy requests goes to its listeners.
pub fn can_be_isolated(description: &Description, mode: Mode) -> bool {
    let hierarchy = &description.hierarchy;
    mode == Mode::Reverse || hierarchy.one_parent || hierarchy.parents.contains(&PeerProtocol::Hash)
}

impl IsolatedProxy {
    /// Starts it and waits until it is ready; `listeners` are open already, each with the host (and port) it stands for.
    pub async fn start(
        plan: &IsolatedProxyPlan,
        reservation: AddressReservation,
        listeners: &[(String, SocketAddr)],
    ) -> Result<Self, LabError> {
        check(plan)?;
        let listen = reservation.0.cache(0)?;
        let Some(&(_, first)) = listeners.first() else { return Err(LabError::plan("there is no listener")) };
        let mut isolated =
            Self { address: listen, software: "Assay".to_owned(), started: Vec::new(), _net: reservation.0 };
        match &plan.proxy.choice {
            ProxyChoice::Running(_) => {}
            ProxyChoice::Builtin(chosen) => {
                let mut spec = builtin_spec(&plan.proxy, *chosen, listen, first);
                if listeners.iter().all(|(host, _)| !host.is_empty()) {
                    let route = |(host, address): &(String, SocketAddr)| OriginRoute {
                        authority: host.clone(),
                        address: *address,
                    };
                    spec.origins = listeners.iter().map(route).collect();
                }
                let certificate = certificate(plan, &[listen, first])?;
                let keys =
                    certificate.map(|certificate| certificate.for_builtin(&plan.directory)).transpose()?;
                spec.tls = keys.as_ref().map(|keys| keys.tls.clone());
                // The key is on disk until it is read.
                let (role, address) = start_builtin(&plan.exe, &plan.directory, 0, &spec).await?;
                drop(keys);
                isolated.address = address;
                isolated.started.push(StartedProxyEntry { name: None, body: ProxyProcess::Builtin(role) });
            }
            ProxyChoice::Described(description) => {
                let version = real_proxy::version(description).await.map_err(LabError::run)?;
                isolated.software = format!("{} {version}", description.title);
                let keep = create_dir(plan.directory.join("proxy"))?;
                let named = |(host, listener): &(String, SocketAddr)| match host.is_empty() {
                    true => listener.to_string(),
                    false => host.clone(),
                };
                let all = listeners.iter().enumerate();
                let origins = all
                    .map(|(index, listener)| TemplateOrigin::new(index, &named(listener), listener.1))
                    .collect();
                let mut real_plan =
                    described_plan(&plan.proxy, description, plan.mode, listen, origins, keep);
                real_plan.http2 = plan.http2;
                real_plan.tls =
                    certificate(plan, &[listen, first])?.map(|certificate| certificate.for_described());
                let mut real = Box::new(RealProxy::start(real_plan).await?);
                real.wait_ready().await?;
                isolated.started.push(StartedProxyEntry { name: None, body: ProxyProcess::Real(real) });
            }
        }
        Ok(isolated)
    }

    /// Message on its end, if it ended by itself; of several, the first that did.
    pub async fn exit_message(&mut self) -> Option<String> {
        for entry in &mut self.started {
            let words = match &mut entry.body {
                ProxyProcess::Real(real) => real.exit_message(),
                ProxyProcess::Builtin(role) => {
                    if role.has_ended() {
                        Some(role.exit_summary().await)
                    } else {
                        None
                    }
                }
            };
            if let Some(words) = words {
                return Some(entry.named(&words));
            }
        }
        None
    }

    /// Message on its processes that were killed or crashed, while it went on; none did.
    pub fn crashes(&self) -> Option<String> {
        let crash_message = |entry: &StartedProxyEntry| match &entry.body {
            ProxyProcess::Real(real) => real.crashes().map(|words| entry.named(&words)),
            ProxyProcess::Builtin(_) => None,
        };
        let all: Vec<String> = self.started.iter().filter_map(crash_message).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// For how long its threads wait for a processor from now on.
    pub fn processor_waits(&self) -> ProcessorWaits {
        let pids = self.started.iter().flat_map(|entry| match &entry.body {
            ProxyProcess::Real(real) => real.pids(),
            ProxyProcess::Builtin(role) => role.pid().into_iter().collect(),
        });
        ProcessorWaits::new(pids.collect())
    }

    /// Ends it; of several, those first that send requests to others.
    pub async fn stop(mut self) {
        while let Some(entry) = self.started.pop() {
            match entry.body {
                ProxyProcess::Builtin(mut role) => {
                    role.end().await;
                }
                ProxyProcess::Real(real) => {
                    real.settle().await;
                    real.stop(None).await;
                }
            }
        }
    }
}

impl StartedProxyEntry {
    /// Words about it, with its name where there are several.
    fn named(&self, words: &str) -> String {
        self.name.as_ref().map_or_else(|| words.to_owned(), |name| format!("{name}: {words}"))
    }
}

/// A certificate for these addresses, where clients speak TLS.
fn certificate(
    plan: &IsolatedProxyPlan,
    addresses: &[SocketAddr],
) -> Result<Option<ProxyCertificate>, LabError> {
    let names: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
    plan.tls.then(|| ProxyCertificate::new(&names)).transpose()
}

/// Starts the built-in proxy and waits until it listens: where.
async fn start_builtin(
    exe: &Path,
    directory: &Path,
    place: u16,
    spec: &ProxySpec,
) -> Result<(Role, SocketAddr), LabError> {
    let (events, mut inbox) = mpsc::unbounded_channel();
    let mut role = start_role(exe, directory, RoleKind::Proxy(place), "proxy", spec, events)?;
    let deadline = tokio::time::Instant::now() + READY_TIMEOUT;
    let address = loop {
        match tokio::time::timeout_at(deadline, inbox.recv()).await {
            Ok(Some((_, RoleEvent::Event(event)))) => {
                if let Event::Ready { listening } = *event {
                    break listening.first().copied().unwrap_or(spec.listen);
                }
            }
            Ok(Some((_, RoleEvent::Malformed(words)))) => {
                return Err(LabError::assay(format!("the proxy said what is no event: {words}")));
            }
            Ok(Some((_, RoleEvent::Ended)) | None) | Err(_) => {
                let words = role.exit_summary().await;
                return Err(LabError::run(format!("the proxy did not start: {words}")));
            }
        }
    };
    // It goes on reporting, and must not find its receiver gone.
    tokio::spawn(async move { while inbox.recv().await.is_some() {} });
    Ok((role, address))
}

/// A directory, once it is there.
fn create_dir(directory: PathBuf) -> Result<PathBuf, LabError> {
    std::fs::create_dir_all(&directory).map_err(|e| LabError::run(FileError::make(&directory, e)))?;
    Ok(directory)
}

/// The built-in proxy with one listener behind it.
pub fn builtin_spec(
    proxy: &TestedProxy,
    chosen: Chosen,
    listen: SocketAddr,
    listener: SocketAddr,
) -> ProxySpec {
    ProxySpec {
        name: format!("assay-{}", proxy.label),
        listen,
        threads: 1,
        cpus: Vec::new(),
        memory_bytes: proxy.memory_bytes,
        stale_if_error_s: 0,
        origins: vec![OriginRoute { authority: EVERY_HOST.into(), address: listener }],
        cooperation: None,
        access_log: None,
        prefetch: chosen.prefetch,
        storing: chosen.storing,
        tls: None,
        origin_tls: None,
        origin_http2: false,
    }
}

/// A described proxy with these listeners behind it.
pub fn described_plan(
    proxy: &TestedProxy,
    description: &Description,
    mode: Mode,
    listen: SocketAddr,
    listeners: Vec<TemplateOrigin>,
    keep: PathBuf,
) -> RealProxyPlan {
    let cpu_count = std::thread::available_parallelism().map_or(1, usize::from);
    let peering =
        listeners.first().filter(|_| mode == Mode::Forward).map(|listener| peering(&proxy.label, listener));
    RealProxyPlan {
        description: description.clone(),
        mode,
        http2: false,
        origin_http2: false,
        listen,
        origins: listeners,
        memory_bytes: proxy.memory_bytes,
        disk_bytes: proxy.disk_bytes,
        cpus: Vec::new(),
        cpu_count: u32::try_from(cpu_count).unwrap_or(1),
        procs_files: Vec::new(),
        helper_cpus: Vec::new(),
        descriptors: capacity::raise_descriptor_limit(),
        connections: CONNECTIONS,
        peering,
        tls: None,
        keep,
        namespace: None,
        requested_from: None,
        temp: None,
    }
}

/// Everything goes through the listener, as through the one parent.
fn peering(name: &str, listener: &TemplateOrigin) -> PeeringVariables {
    PeeringVariables {
        name: name.to_owned(),
        peers: vec![TemplatePeer {
            name: "collector".into(),
            relation: PeerRelation::Parent,
            protocol: PeerProtocol::Hash,
            ip: listener.ip.clone(),
            port: listener.port,
        }],
        never_direct: true,
        ..PeeringVariables::default()
    }
}

/// Starts a process of ours; what it was told and what it says on standard error lie under `directory`.
pub fn start_role<S: serde::Serialize>(
    exe: &Path,
    directory: &Path,
    kind: RoleKind,
    file: &str,
    spec: &S,
    events: mpsc::UnboundedSender<(RoleKind, RoleEvent)>,
) -> Result<Role, LabError> {
    let roles = directory.join("roles");
    let path = roles.join(format!("{file}.json"));
    let cannot = |e: std::io::Error| LabError::run(FileError::write(&path, e));
    std::fs::create_dir_all(&roles).map_err(cannot)?;
    let text = serde_json::to_vec_pretty(spec).map_err(|e| cannot(e.into()))?;
    std::fs::write(&path, text).map_err(cannot)?;
    let launch = Launch {
        program: exe.into(),
        arguments: vec!["role".into(), kind.name().into(), path.clone().into()],
        environment: Default::default(),
        directory: &roles,
        cpus: &[],
        piped: true,
        output: &roles.join(format!("{file}.log")),
        group: None,
        procs_files: &[],
        namespace: None,
        inherit: Vec::new(),
    };
    Role::start(kind, launch, events)
}
