//! One proxy that is led to listeners of the caller's for everything, and to no origin besides.
//!
//! An evaluation of several proxies starts each of them so. [`Led`] is one alone, and the caller that drives it requests any URL
//! that it likes: as a forward proxy it has one listener, as its only parent; as a reverse proxy it has a listener for each host
//! it stands for. [`topology`] starts several that work together in the same way.
//!
//! *Does not:* stand behind the listeners, or request anything but whether it is ready.

mod certified;
pub mod topology;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assay_host::metrics::ProcessorWaits;
use assay_protocol::message::Event;
use assay_proxy::spec::{Chosen, EVERY_HOST, OriginRoute, ProxySpec};
use tokio::sync::mpsc;

use crate::address::LoopbackNet;
use crate::arithmetic;
use crate::description::{Circle, Description, Leg, Origin, Peer};
use crate::error::LabError;
use crate::mode::Mode;
use crate::mode::{Protocol, Relation};
use crate::prepare;
use crate::process::Launch;
use crate::real::{self, Choice, RealProxy};
use crate::roles::{Role, RoleKind, Said};
use crate::secure::missing_terminator;

pub use self::certified::Certified;

/// Connections that a proxy that is started is prepared for.
const CONNECTIONS: u64 = 4000;
/// How long the built-in proxy may take to be ready.
const READY_PATIENCE: Duration = Duration::from_secs(30);

/// A proxy under test.
#[derive(Debug, Clone)]
pub struct UnderTest {
    /// What it is called in results.
    pub label: String,
    pub which: Which,
    /// Memory for its cache, where it is started.
    pub memory_bytes: u64,
    pub disk_bytes: u64,
}

/// What a proxy under test is.
#[derive(Debug, Clone)]
pub enum Which {
    /// The one that Assay brings, and what was chosen about it.
    Builtin(Chosen),
    /// One that is started as its description says.
    Described(Box<Description>),
    /// One that runs already.
    Running(SocketAddr),
}

/// What is started, and where.
#[derive(Debug, Clone)]
pub struct LedPlan {
    /// The program itself, which the built-in proxy is a role of.
    pub exe: PathBuf,
    /// The proxy; one that runs already is not for this.
    pub proxy: UnderTest,
    /// How it is spoken to.
    pub mode: Mode,
    /// Clients speak HTTP/2 to it.
    pub http2: bool,
    /// Clients speak TLS to it, with a certificate of an authority that is made for it.
    pub tls: bool,
    /// Where its configuration, its logs and what it says are kept.
    pub directory: PathBuf,
}

/// A proxy that runs, or several that work together. Dropped, it is killed.
#[derive(Debug)]
pub struct Led {
    /// Where it listens; of several, the one that is spoken to.
    pub address: SocketAddr,
    /// What it says it is.
    pub software: String,
    // These go before the addresses do.
    started: Vec<Started>,
    _net: LoopbackNet,
}

/// One that was started.
#[derive(Debug)]
struct Started {
    /// What it is called among others; none: it is alone.
    name: Option<String>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// A role of this program.
    Builtin(Role),
    /// A program of somebody else's.
    Real(Box<RealProxy>),
}

/// Addresses for one proxy and its listeners; they are reserved as long as this lives.
#[derive(Debug)]
pub struct Ground(LoopbackNet);

impl Ground {
    /// Takes some that are free.
    pub fn claim() -> Result<Self, LabError> {
        LoopbackNet::claim().map(Self)
    }

    /// Where listener `place` may be.
    pub fn listener(&self, place: u8) -> Result<SocketAddr, LabError> {
        self.0.listener(place)
    }
}

/// Refuses what cannot be started, or not be led.
pub fn check(plan: &LedPlan) -> Result<(), LabError> {
    match &plan.proxy.which {
        Which::Running(address) => Err(LabError::plan(format!("the proxy {address} runs already"))),
        Which::Builtin(_) if plan.proxy.memory_bytes == 0 => Err(LabError::plan(
            "the built-in proxy keeps everything in memory, and --memory is 0; give it some",
        )),
        _ if plan.tls && plan.mode == Mode::Forward => {
            Err(LabError::plan("TLS is for reverse proxies; leave --forward out"))
        }
        Which::Builtin(_) => Ok(()),
        Which::Described(description) => {
            prepare::check_described(description, plan.mode)?;
            if plan.tls {
                check_tls(description)?;
            }
            if !can_be_led(description, plan.mode) {
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

/// True where a described proxy speaks in this mode, and can be led to listeners in it.
pub fn leads(description: &Description, mode: Mode) -> bool {
    description.modes.contains(&mode) && can_be_led(description, mode)
}

/// True where everything that a proxy requests goes to its listeners.
pub fn can_be_led(description: &Description, mode: Mode) -> bool {
    let hierarchy = &description.hierarchy;
    mode == Mode::Reverse || hierarchy.one_parent || hierarchy.parents.contains(&Protocol::Hash)
}

impl Led {
    /// Starts it and waits until it is ready; `listeners` are open already, each with the host (and port) it stands for.
    pub async fn start(
        plan: &LedPlan,
        ground: Ground,
        listeners: &[(String, SocketAddr)],
    ) -> Result<Self, LabError> {
        check(plan)?;
        let listen = ground.0.cache(0)?;
        let Some(&(_, first)) = listeners.first() else { return Err(LabError::plan("there is no listener")) };
        let mut led =
            Self { address: listen, software: "Assay".to_owned(), started: Vec::new(), _net: ground.0 };
        match &plan.proxy.which {
            Which::Running(_) => {}
            Which::Builtin(chosen) => {
                let mut spec = builtin(&plan.proxy, *chosen, listen, first);
                if listeners.iter().all(|(host, _)| !host.is_empty()) {
                    let route = |(host, address): &(String, SocketAddr)| OriginRoute {
                        authority: host.clone(),
                        address: *address,
                    };
                    spec.origins = listeners.iter().map(route).collect();
                }
                let certified = certified(plan, &[listen, first])?;
                let keys = certified.map(|certified| certified.for_builtin(&plan.directory)).transpose()?;
                spec.tls = keys.as_ref().map(|keys| keys.tls.clone());
                // The key is on disk until it is read.
                let (role, address) = start_builtin(&plan.exe, &plan.directory, 0, &spec).await?;
                drop(keys);
                led.address = address;
                led.started.push(Started { name: None, body: Body::Builtin(role) });
            }
            Which::Described(description) => {
                let version = real::version(description).await.map_err(LabError::run)?;
                led.software = format!("{} {version}", description.title);
                let keep = made(plan.directory.join("proxy"))?;
                let named = |(host, listener): &(String, SocketAddr)| match host.is_empty() {
                    true => listener.to_string(),
                    false => host.clone(),
                };
                let all = listeners.iter().enumerate();
                let origins =
                    all.map(|(index, listener)| Origin::new(index, &named(listener), listener.1)).collect();
                let mut choice = choice(&plan.proxy, description, plan.mode, listen, origins, keep);
                choice.http2 = plan.http2;
                choice.tls = certified(plan, &[listen, first])?.map(|certified| certified.for_described());
                let mut real = Box::new(RealProxy::start(choice).await?);
                real.wait_ready().await?;
                led.started.push(Started { name: None, body: Body::Real(real) });
            }
        }
        Ok(led)
    }

    /// How it ended, if it did by itself; of several, the first that did.
    pub async fn died(&mut self) -> Option<String> {
        for one in &mut self.started {
            let words = match &mut one.body {
                Body::Real(real) => real.died(),
                Body::Builtin(role) => {
                    if role.has_ended() {
                        Some(role.obituary().await)
                    } else {
                        None
                    }
                }
            };
            if let Some(words) = words {
                return Some(one.said(&words));
            }
        }
        None
    }

    /// What its logs tell of processes of it that were killed or crashed, while it went on; none did.
    pub fn deaths(&self) -> Option<String> {
        let told = |one: &Started| match &one.body {
            Body::Real(real) => real.deaths().map(|words| one.said(&words)),
            Body::Builtin(_) => None,
        };
        let all: Vec<String> = self.started.iter().filter_map(told).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// For how long its threads wait for a processor from now on.
    pub fn processor_waits(&self) -> ProcessorWaits {
        let pids = self.started.iter().flat_map(|one| match &one.body {
            Body::Real(real) => real.pids(),
            Body::Builtin(role) => role.pid().into_iter().collect(),
        });
        ProcessorWaits::of(pids.collect())
    }

    /// Ends it; of several, those first that send requests to others.
    pub async fn stop(mut self) {
        while let Some(one) = self.started.pop() {
            match one.body {
                Body::Builtin(mut role) => {
                    role.end().await;
                }
                Body::Real(real) => {
                    real.settle().await;
                    real.stop(None).await;
                }
            }
        }
    }
}

impl Started {
    /// Words about it, with its name where there are several.
    fn said(&self, words: &str) -> String {
        self.name.as_ref().map_or_else(|| words.to_owned(), |name| format!("{name}: {words}"))
    }
}

/// A certificate for these addresses, where clients speak TLS.
fn certified(plan: &LedPlan, addresses: &[SocketAddr]) -> Result<Option<Certified>, LabError> {
    let names: Vec<String> = addresses.iter().map(|address| address.ip().to_string()).collect();
    plan.tls.then(|| Certified::new(&names)).transpose()
}

/// Starts the built-in proxy and waits until it listens: where.
async fn start_builtin(
    exe: &Path,
    directory: &Path,
    place: u16,
    spec: &ProxySpec,
) -> Result<(Role, SocketAddr), LabError> {
    let (said, mut heard) = mpsc::unbounded_channel();
    let mut role = start_role(exe, directory, RoleKind::Proxy(place), "proxy", spec, said)?;
    let deadline = tokio::time::Instant::now() + READY_PATIENCE;
    let address = loop {
        match tokio::time::timeout_at(deadline, heard.recv()).await {
            Ok(Some((_, Said::Event(event)))) => {
                if let Event::Ready { listening } = *event {
                    break listening.first().copied().unwrap_or(spec.listen);
                }
            }
            Ok(Some((_, Said::Nonsense(words)))) => {
                return Err(LabError::Assay(format!("the proxy said what is no event: {words}")));
            }
            Ok(Some((_, Said::Ended)) | None) | Err(_) => {
                let words = role.obituary().await;
                return Err(LabError::run(format!("the proxy did not start: {words}")));
            }
        }
    };
    // It goes on reporting, and must not find its receiver gone.
    tokio::spawn(async move { while heard.recv().await.is_some() {} });
    Ok((role, address))
}

/// A directory, once it is there.
fn made(directory: PathBuf) -> Result<PathBuf, LabError> {
    let cannot = |e| LabError::run(format!("cannot make {}: {e}", directory.display()));
    std::fs::create_dir_all(&directory).map_err(cannot)?;
    Ok(directory)
}

/// The built-in proxy with one listener behind it.
pub fn builtin(proxy: &UnderTest, chosen: Chosen, listen: SocketAddr, listener: SocketAddr) -> ProxySpec {
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
pub fn choice(
    proxy: &UnderTest,
    description: &Description,
    mode: Mode,
    listen: SocketAddr,
    listeners: Vec<Origin>,
    keep: PathBuf,
) -> Choice {
    let cpu_count = std::thread::available_parallelism().map_or(1, usize::from);
    let circle =
        listeners.first().filter(|_| mode == Mode::Forward).map(|listener| circle(&proxy.label, listener));
    Choice {
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
        descriptors: arithmetic::raise_descriptor_limit(),
        connections: CONNECTIONS,
        circle,
        tls: None,
        keep,
        namespace: None,
        requested_from: None,
        temp: None,
    }
}

/// Everything goes through the listener, as through the one parent.
fn circle(name: &str, listener: &Origin) -> Circle {
    Circle {
        name: name.to_owned(),
        peers: vec![Peer {
            name: "collector".into(),
            relation: Relation::Parent,
            protocol: Protocol::Hash,
            ip: listener.ip.clone(),
            port: listener.port,
        }],
        never_direct: true,
        ..Circle::default()
    }
}

/// Starts a process of ours; what it was told and what it says on standard error lie under `directory`.
pub fn start_role<S: serde::Serialize>(
    exe: &Path,
    directory: &Path,
    kind: RoleKind,
    file: &str,
    spec: &S,
    said: mpsc::UnboundedSender<(RoleKind, Said)>,
) -> Result<Role, LabError> {
    let roles = directory.join("roles");
    let path = roles.join(format!("{file}.json"));
    let cannot = |e: &dyn std::fmt::Display| LabError::run(format!("cannot write {}: {e}", path.display()));
    std::fs::create_dir_all(&roles).map_err(|e| cannot(&e))?;
    let text = serde_json::to_vec_pretty(spec).map_err(|e| cannot(&e))?;
    std::fs::write(&path, text).map_err(|e| cannot(&e))?;
    let launch = Launch {
        program: exe.into(),
        arguments: vec!["role".into(), kind.name().into(), path.clone().into()],
        environment: Default::default(),
        directory: &roles,
        cpus: &[],
        talks: true,
        output: &roles.join(format!("{file}.log")),
        group: None,
        procs_files: &[],
        namespace: None,
        inherit: Vec::new(),
    };
    Role::start(kind, launch, said)
}
