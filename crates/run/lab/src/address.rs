//! Addresses of a run: loopback addresses of its own, and never "find a free port and hope".
//!
//! A run claims a network 127.N.0.0/16 by listening on one fixed address in it; another run finds that taken
//! and claims another. Within its network a role binds addresses that nobody else uses.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use assay_workload::model::Workload;

use crate::error::LabError;
use crate::time_wait;

/// Networks that runs claim: 127.16.0.0/16 to 127.239.0.0/16; what is below is for people and services.
const FIRST_NETWORK: u64 = 16;
const NETWORKS: u64 = 224;
/// Port of the address that is the claim.
const CLAIM_PORT: u16 = 61_999;
/// First port that a proxy is offered; where another program listens on all addresses, the next ones.
pub(crate) const PROXY_PORT: u16 = 8080;
/// Port of an origin whose own port cannot be used (below 1024, or none).
const ORIGIN_PORT: u16 = 9000;
/// Number of ports that are tried.
const PORT_TRIES: u16 = 200;
/// Third byte of the first robot address; origins come before.
const ROBOT_BLOCK: usize = 64;
/// Hosts used of each 127.N.B.0/24.
pub(crate) const HOSTS_PER_BLOCK: usize = 250;

/// A loopback network that belongs to this run until it is dropped.
#[derive(Debug)]
pub struct LoopbackNet {
    second_byte: u8,
    _claim: TcpListener,
}

impl LoopbackNet {
    /// Claims one that no other run has, and where no connection of an earlier run is left, if there is one.
    pub fn claim() -> Result<Self, LabError> {
        for second_byte in
            candidates(RandomState::new().hash_one(std::process::id()), &time_wait::by_network())
        {
            let address = SocketAddr::from(([127, second_byte, 255, 254], CLAIM_PORT));
            match TcpListener::bind(address) {
                Ok(claim) => return Ok(Self { second_byte, _claim: claim }),
                Err(e) if e.kind() == io::ErrorKind::AddrInUse => {}
                Err(e) => {
                    return Err(LabError::plan(format!(
                        "cannot use loopback addresses of the run's own (tried {address}: {e}); is the loopback \
                         interface up?"
                    )));
                }
            }
        }
        Err(LabError::plan(format!(
            "all {NETWORKS} loopback networks are taken by other runs; wait for one to end"
        )))
    }

    fn address(&self, block: usize, host: usize) -> Ipv4Addr {
        // Callers keep both below 256.
        Ipv4Addr::new(127, self.second_byte, block as u8, host as u8)
    }

    /// Address at which the proxy listens; where there are several, each has an address of its own.
    pub fn cache(&self, index: u8) -> Result<SocketAddr, LabError> {
        self.free_port(self.address(0, usize::from(index) + 1), PROXY_PORT)
    }

    /// Address of a listener of the Collector.
    pub fn listener(&self, index: u8) -> Result<SocketAddr, LabError> {
        self.free_port(self.address(1, usize::from(index) + 1), ORIGIN_PORT)
    }

    /// Address at which an origin listens that is not the workload's.
    pub fn conformance_origin(&self) -> Result<SocketAddr, LabError> {
        // No origin of a workload has a host beyond those of its block.
        self.free_port(self.address(ROBOT_BLOCK - 1, HOSTS_PER_BLOCK + 1), ORIGIN_PORT)
    }

    /// Addresses at which the workload's origins listen, in its order; their own ports where those can be used.
    pub fn origins(&self, workload: &Workload) -> Result<Vec<SocketAddr>, LabError> {
        let room = ROBOT_BLOCK - 1;
        if workload.origins.len() > room * HOSTS_PER_BLOCK {
            return Err(LabError::plan(format!(
                "the workload has {} origins and there are loopback addresses for {}; give it fewer addresses",
                workload.origins.len(),
                room * HOSTS_PER_BLOCK
            )));
        }
        let origins = workload.origins.iter().enumerate();
        origins
            .map(|(index, origin)| {
                let ip = self.address(1 + index / HOSTS_PER_BLOCK, 1 + index % HOSTS_PER_BLOCK);
                self.free_port(ip, usable_port(&origin.authority))
            })
            .collect()
    }

    /// Source addresses of robots, one for each robot address of the workload, in order of first appearance.
    pub fn robots(&self, addresses: usize) -> Vec<IpAddr> {
        let room = (256 - ROBOT_BLOCK) * HOSTS_PER_BLOCK;
        let host_at = |index: usize| {
            let index = index % room;
            self.address(ROBOT_BLOCK + index / HOSTS_PER_BLOCK, 1 + index % HOSTS_PER_BLOCK)
        };
        // The last block holds the claim, but not on one of these hosts.
        (0..addresses).map(|index| IpAddr::V4(host_at(index))).collect()
    }

    /// The first port from `wanted` on that can be bound. It is this run's address, so a port that is free
    /// stays so unless somebody binds it on all addresses.
    fn free_port(&self, ip: Ipv4Addr, wanted: u16) -> Result<SocketAddr, LabError> {
        let mut last = None;
        for port in wanted..wanted.saturating_add(PORT_TRIES) {
            let address = SocketAddr::from((ip, port));
            match TcpListener::bind(address) {
                Ok(_) => return Ok(address),
                Err(e) => last = Some(e),
            }
        }
        let last = last.map_or_else(|| "no port was tried".into(), |e| e.to_string());
        Err(LabError::plan(format!(
            "cannot listen on {ip}, ports {wanted} to {}: {last}",
            wanted.saturating_add(PORT_TRIES - 1)
        )))
    }
}

/// The second bytes of all networks, in the order in which they are tried: from a random one on, those with the fewest
/// connections in TIME_WAIT first. An address and port of such a connection cannot be used for another one yet.
fn candidates(random: u64, resting: &[u32; 256]) -> Vec<u8> {
    // Both fit: the sum is below 240.
    let network = |step| (FIRST_NETWORK + (random % NETWORKS + step) % NETWORKS) as u8;
    let mut all: Vec<u8> = (0..NETWORKS).map(network).collect();
    all.sort_by_key(|second_byte| resting[usize::from(*second_byte)]);
    all
}

/// The port of an authority when a process without rights can bind it, else a common one.
pub(crate) fn usable_port(authority: &str) -> u16 {
    let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    port.filter(|port| (1024..=u16::MAX - PORT_TRIES).contains(port)).unwrap_or(ORIGIN_PORT)
}

/// The different robot addresses of a workload, in order of first appearance.
pub fn robot_hosts(workload: &Workload) -> Vec<&str> {
    let mut seen = std::collections::HashSet::new();
    let all = workload.robots.iter().flat_map(|group| &group.addresses).map(|address| address.host.as_str());
    all.filter(|host| seen.insert(*host)).collect()
}

/// Says why an address given by the user cannot be listened on; none when it can.
pub fn cannot_listen(address: SocketAddr) -> Option<String> {
    let error = TcpListener::bind(address).err()?;
    let advice = assay_net::listen::advice(&error);
    Some(format!("cannot listen on {address}: {error}; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_never_share_a_network() {
        let (one, two) = (LoopbackNet::claim().unwrap(), LoopbackNet::claim().unwrap());
        assert_ne!(one.second_byte, two.second_byte);
    }

    #[test]
    fn networks_without_connections_of_earlier_runs_are_tried_first() {
        let mut resting = [0; 256];
        let free = candidates(300, &resting);
        (resting[usize::from(free[0])], resting[usize::from(free[2])]) = (7, 9);
        let busy = candidates(300, &resting);
        assert_eq!(busy[..2], [free[1], free[3]]);
        assert_eq!(busy[busy.len() - 2..], [free[0], free[2]]);
        let different: std::collections::BTreeSet<u8> = busy.into_iter().collect();
        assert_eq!((different.first(), different.last(), different.len()), (Some(&16), Some(&239), 224));
    }

    #[test]
    fn no_address_is_given_twice() {
        let net = LoopbackNet::claim().unwrap();
        let robots = net.robots((256 - ROBOT_BLOCK) * HOSTS_PER_BLOCK);
        let different: std::collections::HashSet<_> = robots.iter().collect();
        assert_eq!(different.len(), robots.len());
        assert!(!different.contains(&IpAddr::V4(net.address(0, 1))));
        assert!(!different.contains(&IpAddr::V4(net.address(255, 254))));
    }

    #[test]
    fn a_port_that_is_taken_is_passed_over() {
        let net = LoopbackNet::claim().unwrap();
        let first = net.cache(0).unwrap();
        let _held = TcpListener::bind(first).unwrap();
        assert_ne!(net.cache(0).unwrap(), first);
        assert!(cannot_listen(first).unwrap().contains("something listens there already"));
    }

    #[test]
    fn origins_keep_their_port_where_it_can_be_used() {
        assert_eq!(usable_port("192.168.0.2:9100"), 9100);
        assert_eq!(usable_port("www.example:80"), ORIGIN_PORT);
        assert_eq!(usable_port("www.example"), ORIGIN_PORT);
        assert_eq!(usable_port("www.example:65500"), ORIGIN_PORT);
    }
}
