//! Caches that work together, in isolation, with one listener behind them: what is requested of the one that is spoken to comes out there, whichever of
//! them sends it on.

use std::net::SocketAddr;
use std::path::PathBuf;

use assay_proxy::spec::{Chosen, ProxySpec};

use super::{
    AddressReservation, IsolatedProxy, ProxyChoice, ProxyProcess, StartedProxyEntry, TestedProxy,
    builtin_spec, create_dir, described_plan, start_builtin,
};
use crate::cache_instance::CacheInstance;
use crate::description::{Description, Http2Support, TemplateOrigin};
use crate::error::{Cause, LabError};
use crate::mode::Mode;
use crate::prepare;
use crate::real_proxy::{self, RealProxy};
use crate::topology::{Cache, Topology};

/// Plan of a start.
#[derive(Debug, Clone)]
pub struct IsolatedTopologyPlan {
    /// The program itself, which built-in caches are roles of.
    pub exe: PathBuf,
    pub topology: Topology,
    /// Clients speak HTTP/2 to the one that is spoken to, in clear.
    pub http2: bool,
    /// Directory in which the configuration and the logs of each cache are kept, in a directory of its name.
    pub directory: PathBuf,
}

/// Refuses plans that cannot be started, or not be isolated.
pub fn check(topology: &Topology) -> Result<(), LabError> {
    if !topology.links.is_empty() {
        return Err(LabError::plan(format!(
            "the topology {} has links between its caches, which only a run puts there; leave `peer-link` out",
            topology.name
        )));
    }
    topology.descriptions().try_for_each(|description| prepare::check_described(description, topology.mode))
}

/// The place of the cache that is spoken to: the first that gets robots of its own.
pub fn front(topology: &Topology) -> usize {
    topology.caches.iter().position(Cache::has_robots).unwrap_or_default()
}

/// Versions of HTTP in clear of the cache that is addressed; the outer none: it does not.
pub fn http2(topology: &Topology) -> Option<Http2Support> {
    let place = front(topology);
    let is_queried = topology.clients(place).next().is_some();
    match topology
        .caches
        .get(place)?
        .description
        .as_ref()
        .map_or(Some(Http2Support::WithHttp1), |entry| entry.http2)?
    {
        Http2Support::WithTls => None,
        // Other caches speak HTTP/1.1 to it.
        Http2Support::Only if is_queried => None,
        known => Some(known),
    }
}

impl IsolatedProxy {
    /// Starts all caches, parents first, and waits until they are ready; `listener` is open already.
    pub async fn start_topology(
        plan: &IsolatedTopologyPlan,
        reservation: AddressReservation,
        listener: SocketAddr,
    ) -> Result<Self, LabError> {
        let topology = &plan.topology;
        check(topology)?;
        // There are 64 at most.
        let places = 0..topology.caches.len() as u8;
        let listen: Vec<SocketAddr> =
            places.map(|place| reservation.0.cache(place)).collect::<Result<_, _>>()?;
        let front = front(topology);
        let Some(&address) = listen.get(front) else {
            return Err(LabError::plan(format!("the topology {} has no caches", topology.name)));
        };
        let mut isolated =
            Self { address, software: String::new(), started: Vec::new(), _net: reservation.0 };
        let mut software = Vec::new();
        for (place, cache) in topology.caches.iter().enumerate() {
            let member = CacheInstance::of(topology, place, &listen);
            let with_cache_name = |error| named(&cache.name, error);
            let body = match &cache.description {
                None => {
                    software.push(format!("{}: Assay", cache.name));
                    let spec = builtin_cache_spec(cache, member, listen[place], listener);
                    let directory = plan.directory.join(&cache.name);
                    // As above.
                    let started = start_builtin(&plan.exe, &directory, place as u16, &spec).await;
                    ProxyProcess::Builtin(started.map_err(with_cache_name)?.0)
                }
                Some(description) => {
                    let version = real_proxy::version(description)
                        .await
                        .map_err(LabError::run)
                        .map_err(with_cache_name)?;
                    software.push(format!("{}: {} {version}", cache.name, description.title));
                    let has_http2 = plan.http2 && place == front;
                    let started =
                        start_real(plan, description, cache, member, has_http2, listen[place], listener)
                            .await;
                    ProxyProcess::Real(started.map_err(with_cache_name)?)
                }
            };
            isolated.started.push(StartedProxyEntry { name: Some(cache.name.clone()), body });
        }
        for (entry, cache) in isolated.started.iter_mut().zip(&topology.caches) {
            if let ProxyProcess::Real(real) = &mut entry.body {
                real.wait_ready().await.map_err(|error| named(&cache.name, error))?;
            }
        }
        isolated.software = software.join(", ");
        Ok(isolated)
    }
}

/// Failure of one of several caches to start.
#[derive(Debug, thiserror::Error)]
#[error("the cache `{name}` of the topology: {cause}")]
struct CacheStartError {
    name: String,
    cause: Cause,
}

/// Adds the name of a cache to the reason why it did not start.
fn named(name: &str, error: LabError) -> LabError {
    match error {
        LabError::Run(cause) => LabError::run(CacheStartError { name: name.to_owned(), cause }),
        other => other,
    }
}

/// A built-in cache among others.
fn builtin_cache_spec(
    cache: &Cache,
    member: CacheInstance<'_>,
    listen: SocketAddr,
    listener: SocketAddr,
) -> ProxySpec {
    let chosen = Chosen { storing: cache.storing, ..Chosen::default() };
    ProxySpec {
        name: cache.name.clone(),
        cooperation: member.cooperation,
        ..builtin_spec(&tested_cache(cache, ProxyChoice::Builtin(chosen)), chosen, listen, listener)
    }
}

async fn start_real(
    plan: &IsolatedTopologyPlan,
    description: &Description,
    cache: &Cache,
    member: CacheInstance<'_>,
    http2: bool,
    listen: SocketAddr,
    listener: SocketAddr,
) -> Result<Box<RealProxy>, LabError> {
    let keep = create_dir(plan.directory.join(&cache.name))?;
    let choice = ProxyChoice::Described(Box::new(description.clone()));
    let origins = vec![TemplateOrigin::new(0, &listener.to_string(), listener)];
    let mut real_plan =
        described_plan(&tested_cache(cache, choice), description, Mode::Reverse, listen, origins, keep);
    (real_plan.mode, real_plan.peering, real_plan.http2) = (plan.topology.mode, member.peering, http2);
    RealProxy::start(real_plan).await.map(Box::new)
}

/// A cache as if it stood alone.
fn tested_cache(cache: &Cache, choice: ProxyChoice) -> TestedProxy {
    TestedProxy {
        label: cache.name.clone(),
        choice,
        memory_bytes: cache.memory_bytes,
        disk_bytes: cache.disk_bytes,
    }
}
