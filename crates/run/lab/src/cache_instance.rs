//! One proxy of a run: its capacity, and its peers.

use std::net::SocketAddr;

use assay_proxy::spec;
use strum::VariantArray;

use crate::description::{Description, ICP_PORT, PeeringVariables, TemplatePeer};
use crate::mode::{PeerProtocol, PeerRelation};
use crate::plan::RunPlan;
use crate::topology::Topology;

/// Time for which the built-in proxy waits for responses to ICP queries. Squid is told the same (`icp_query_timeout`).
const ICP_TIMEOUT_MS: u64 = 2000;

/// One of the proxies of a run.
pub(crate) struct CacheInstance<'p> {
    /// Index among them.
    pub(crate) index: u16,
    /// Name; none: it is alone.
    pub(crate) name: Option<&'p str>,
    /// Description by which it is driven; none: it is the built-in one.
    pub(crate) description: Option<&'p Description>,
    /// Memory for its cache.
    pub(crate) memory_bytes: u64,
    /// Disk for its cache.
    pub(crate) disk_bytes: u64,
    /// Peers of a described one.
    pub(crate) peering: Option<PeeringVariables>,
    /// Peers of the built-in one.
    pub(crate) cooperation: Option<spec::Cooperation>,
    /// Settings of the built-in one.
    pub(crate) chosen: spec::Chosen,
}

impl<'p> CacheInstance<'p> {
    /// The only one.
    pub(crate) fn alone(plan: &RunPlan) -> Self {
        Self {
            index: 0,
            name: None,
            description: None,
            memory_bytes: plan.memory_bytes,
            disk_bytes: plan.disk_bytes,
            peering: None,
            cooperation: None,
            chosen: plan.chosen(),
        }
    }

    /// One of several, which listen at these addresses.
    pub(crate) fn of(topology: &'p Topology, index: usize, listen: &[SocketAddr]) -> Self {
        let cache = &topology.caches[index];
        let description = cache.description.as_ref();
        Self {
            // A topology has no more than 64.
            index: index as u16,
            name: Some(&cache.name),
            description,
            memory_bytes: cache.memory_bytes,
            disk_bytes: cache.disk_bytes,
            peering: description.is_some().then(|| peering(topology, index, listen)),
            cooperation: description.is_none().then(|| cooperation(topology, index, listen)),
            chosen: spec::Chosen { storing: cache.storing, ..spec::Chosen::default() },
        }
    }
}

fn peering(topology: &Topology, index: usize, listen: &[SocketAddr]) -> PeeringVariables {
    let cache = &topology.caches[index];
    let peers = cache.peers.iter().map(|bond| TemplatePeer {
        name: topology.caches[bond.to].name.clone(),
        relation: bond.relation,
        protocol: bond.protocol,
        ip: listen[bond.to].ip().to_string(),
        port: listen[bond.to].port(),
    });
    let serves = PeerProtocol::VARIANTS.iter().copied().filter(|protocol| topology.serves(index, *protocol));
    PeeringVariables {
        name: cache.name.clone(),
        peers: peers.collect(),
        clients: topology.clients(index).map(|client| listen[client].ip().to_string()).collect(),
        // A cache that sends ICP queries needs a port for the responses.
        serves: serves.collect(),
        proxy_only: cache.proxy_only,
        never_direct: cache.never_direct,
    }
}

fn cooperation(topology: &Topology, index: usize, listen: &[SocketAddr]) -> spec::Cooperation {
    let cache = &topology.caches[index];
    let icp = |index: usize| SocketAddr::new(listen[index].ip(), ICP_PORT);
    let peers = cache.peers.iter().map(|bond| spec::Peer {
        name: topology.caches[bond.to].name.clone(),
        relation: match bond.relation {
            PeerRelation::Sibling => spec::Relation::Sibling,
            PeerRelation::Parent => spec::Relation::Parent,
        },
        http: listen[bond.to],
        icp: (bond.protocol == PeerProtocol::Icp).then(|| icp(bond.to)),
    });
    let speaks = topology.serves(index, PeerProtocol::Icp)
        || cache.peers.iter().any(|bond| bond.protocol == PeerProtocol::Icp);
    spec::Cooperation {
        icp: speaks.then(|| icp(index)),
        clients: topology.clients(index).map(|client| listen[client].ip()).collect(),
        peers: peers.collect(),
        timeout_ms: ICP_TIMEOUT_MS,
        delay_ms: u64::try_from(cache.peer_delay.as_millis()).unwrap_or(u64::MAX),
        proxy_only: cache.proxy_only,
        never_direct: cache.never_direct,
    }
}
