//! Caches that work together, led to one listener: what is requested of the one that is spoken to comes out there, whichever of
//! them sends it on.

use std::net::SocketAddr;
use std::path::PathBuf;

use assay_proxy::spec::{Chosen, ProxySpec};

use super::{Body, Ground, Led, Started, UnderTest, Which, builtin, choice, made, start_builtin};
use crate::description::{Description, Http2, Origin};
use crate::error::LabError;
use crate::member::Member;
use crate::mode::Mode;
use crate::prepare;
use crate::real::{self, RealProxy};
use crate::topology::{Cache, Topology};

/// What is started, and where.
#[derive(Debug, Clone)]
pub struct TopologyPlan {
    /// The program itself, which built-in caches are roles of.
    pub exe: PathBuf,
    pub topology: Topology,
    /// Clients speak HTTP/2 to the one that is spoken to, in clear.
    pub http2: bool,
    /// Where the configuration and the logs of each cache are kept, in a directory of its name.
    pub directory: PathBuf,
}

/// Refuses what cannot be started, or not be led.
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

/// How the cache that is spoken to speaks HTTP/2 in clear; the outer none: it does not.
pub fn http2(topology: &Topology) -> Option<Http2> {
    let place = front(topology);
    let is_queried = topology.clients(place).next().is_some();
    match topology.caches.get(place)?.description.as_ref().map_or(Some(Http2::WithHttp1), |one| one.http2)? {
        Http2::WithTls => None,
        // Other caches speak HTTP/1.1 to it.
        Http2::Only if is_queried => None,
        known => Some(known),
    }
}

impl Led {
    /// Starts all caches, parents first, and waits until they are ready; `listener` is open already.
    pub async fn start_topology(
        plan: &TopologyPlan,
        ground: Ground,
        listener: SocketAddr,
    ) -> Result<Self, LabError> {
        let topology = &plan.topology;
        check(topology)?;
        // There are 64 at most.
        let places = 0..topology.caches.len() as u8;
        let listen: Vec<SocketAddr> = places.map(|place| ground.0.cache(place)).collect::<Result<_, _>>()?;
        let front = front(topology);
        let Some(&address) = listen.get(front) else {
            return Err(LabError::plan(format!("the topology {} has no caches", topology.name)));
        };
        let mut led = Self { address, software: String::new(), started: Vec::new(), _net: ground.0 };
        let mut software = Vec::new();
        for (place, cache) in topology.caches.iter().enumerate() {
            let member = Member::of(topology, place, &listen);
            let of_cache = |error| named(&cache.name, error);
            let body = match &cache.description {
                None => {
                    software.push(format!("{}: Assay", cache.name));
                    let spec = spec(cache, member, listen[place], listener);
                    let directory = plan.directory.join(&cache.name);
                    // As above.
                    let started = start_builtin(&plan.exe, &directory, place as u16, &spec).await;
                    Body::Builtin(started.map_err(of_cache)?.0)
                }
                Some(description) => {
                    let version =
                        real::version(description).await.map_err(LabError::run).map_err(of_cache)?;
                    software.push(format!("{}: {} {version}", cache.name, description.title));
                    let has_http2 = plan.http2 && place == front;
                    let at = (listen[place], listener);
                    let started = start_real(plan, (description, cache), member, has_http2, at).await;
                    Body::Real(started.map_err(of_cache)?)
                }
            };
            led.started.push(Started { name: Some(cache.name.clone()), body });
        }
        for (one, cache) in led.started.iter_mut().zip(&topology.caches) {
            if let Body::Real(real) = &mut one.body {
                real.wait_ready().await.map_err(|error| named(&cache.name, error))?;
            }
        }
        led.software = software.join(", ");
        Ok(led)
    }
}

/// Why one of several did not start, with its name.
fn named(name: &str, error: LabError) -> LabError {
    match error {
        LabError::Run(words) => LabError::Run(format!("the cache `{name}` of the topology: {words}")),
        other => other,
    }
}

/// A built-in cache among others.
fn spec(cache: &Cache, member: Member<'_>, listen: SocketAddr, listener: SocketAddr) -> ProxySpec {
    let chosen = Chosen { storing: cache.storing, ..Chosen::default() };
    ProxySpec {
        name: cache.name.clone(),
        cooperation: member.cooperation,
        ..builtin(&alone(cache, Which::Builtin(chosen)), chosen, listen, listener)
    }
}

async fn start_real(
    plan: &TopologyPlan,
    (description, cache): (&Description, &Cache),
    member: Member<'_>,
    http2: bool,
    (listen, listener): (SocketAddr, SocketAddr),
) -> Result<Box<RealProxy>, LabError> {
    let keep = made(plan.directory.join(&cache.name))?;
    let which = Which::Described(Box::new(description.clone()));
    let origins = vec![Origin::new(0, &listener.to_string(), listener)];
    let mut choice = choice(&alone(cache, which), description, Mode::Reverse, listen, origins, keep);
    (choice.mode, choice.circle, choice.http2) = (plan.topology.mode, member.circle, http2);
    RealProxy::start(choice).await.map(Box::new)
}

/// A cache as if it stood alone.
fn alone(cache: &Cache, which: Which) -> UnderTest {
    UnderTest {
        label: cache.name.clone(),
        which,
        memory_bytes: cache.memory_bytes,
        disk_bytes: cache.disk_bytes,
    }
}
