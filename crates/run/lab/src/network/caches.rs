//! Caches with links between them: a namespace for each, and what joins it to the others and to everybody else.
//!
//! The namespace in which one proxy would live becomes a crossing: each cache is joined to it by a pair of devices without any
//! delay, and reaches robots and origins through it as before. To a cache to which it has a link it goes through that, and no
//! other way: whatever the cache itself does, and from whatever address, cannot pass the link by.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use assay_host::link::interface::{self, Tun};
use assay_host::link::route::{self, Network};
use assay_host::link::{Namespace, NetError};
use assay_record::run::NamespaceInfo;

use super::{
    EmulatedNetwork, NetworkLink, Segment, link_seed, recorded_settings, set_up_namespace, settings,
};
use crate::topology::{PeerLink, Topology};

/// Block of the target's addresses that belongs to the crossing: the last block, which no cache is in.
pub(super) const HUB: Network = Network { address: Ipv4Addr::new(10, 2, 255, 0), bits: 24 };
/// The crossing, to caches.
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 2, 255, 254);
/// Name of a cache's device to the crossing.
const TO_HUB: &str = "hub";
/// Seeds below are those of links in the row.
const FIRST_SEED: u64 = 16;

#[derive(Debug)]
pub(super) struct CacheNamespace {
    name: String,
    pub(super) namespace: Namespace,
    address: Ipv4Addr,
    settings: BTreeMap<String, String>,
}

impl CacheNamespace {
    pub(super) fn info(&self) -> NamespaceInfo {
        NamespaceInfo {
            roles: vec![format!("cache {}", self.name)],
            networks: vec![host_network(self.address).to_string()],
            settings: self.settings.clone(),
        }
    }
}

/// A network of one address.
fn host_network(address: Ipv4Addr) -> Network {
    Network { address, bits: 32 }
}

impl EmulatedNetwork {
    /// Gives each cache a namespace, and lays the links between them.
    pub(super) fn add_caches(&mut self, topology: &Topology, seed: u64) -> Result<(), NetError> {
        let settings = settings();
        for (place, cache) in (0_u8..).zip(&topology.caches) {
            let address = Segment::Target.address(0, place.saturating_add(1));
            let namespace = Namespace::new()?;
            self.attach(place, &namespace, address, &settings)?;
            let settings = recorded_settings(settings.clone());
            self.cache_namespaces.push(CacheNamespace {
                name: cache.name.clone(),
                namespace,
                address,
                settings,
            });
        }
        for (number, link) in (FIRST_SEED..).zip(&topology.links) {
            let link = self.create_link(link, link_seed(seed, number))?;
            self.links.push(link);
        }
        Ok(())
    }

    /// Joins a cache's namespace to the crossing.
    fn attach(
        &self,
        place: u8,
        cache_namespace: &Namespace,
        address: Ipv4Addr,
        settings: &[(String, String)],
    ) -> Result<(), NetError> {
        let congestion_control = &self.congestion_control;
        cache_namespace.run(|| set_up_namespace(settings))??;
        for namespace_of_roles in self
            .namespaces
            .iter()
            .filter(|namespace_of_roles| namespace_of_roles.places.contains(&Segment::Target))
        {
            namespace_of_roles.namespace.run(|| {
                let device = format!("cache-{place}");
                interface::add_veth_pair(&device, cache_namespace, TO_HUB)?;
                // Who speaks from here without choosing an address, such as a check of health, needs one.
                interface::set_address(&device, GATEWAY)?;
                route::add_direct(host_network(address), &device, congestion_control)
            })??;
        }
        cache_namespace.run(|| {
            interface::set_address(TO_HUB, address)?;
            route::add_direct(host_network(GATEWAY), TO_HUB, congestion_control)?;
            let everybody = [Segment::Robots, Segment::Target, Segment::Origins];
            everybody
                .into_iter()
                .try_for_each(|place| route::add_via(place.network(), GATEWAY, TO_HUB, congestion_control))
        })?
    }

    /// Lays a link between two caches; what one sends to the other goes through it.
    fn create_link(&self, link: &PeerLink, seed: u64) -> Result<NetworkLink, NetError> {
        let cache_namespaces = link.ends.map(|place| &self.cache_namespaces[place]);
        let device = |own: &CacheNamespace, other: &CacheNamespace, number: usize| {
            own.namespace.run(|| {
                let tun = Tun::create(&format!("peer-{number}"))?;
                tun.set_up(own.address)?;
                route::add_direct(host_network(other.address), &tun.name, &self.congestion_control)?;
                Ok(tun.descriptor)
            })?
        };
        let [one, two] = cache_namespaces;
        let devices = [device(one, two, link.ends[1])?, device(two, one, link.ends[0])?];
        Ok(NetworkLink {
            ends: cache_namespaces.map(|cache_namespace| cache_namespace.name.clone()),
            settings: link.settings,
            seed,
            namespaces: cache_namespaces.map(|cache_namespace| cache_namespace.namespace.clone()),
            addresses: cache_namespaces.map(|cache_namespace| cache_namespace.address),
            devices: Some(devices),
        })
    }
}

#[cfg(test)]
mod real_tests {
    use super::*;
    use crate::network::NetworkPlan;
    use crate::topology::{CacheDefaults, read, resolve};

    #[test]
    fn caches_reach_each_other_by_their_link_only_and_everybody_else_without() {
        if let Err(error) = assay_host::link::namespace::check_available() {
            return assay_testbed::skip(&error.to_string());
        }
        let text = "[[cache]]\nname = \"y\"\ncount = 2\nsiblings = [\"y\"]\npeer-link = \"delay=5ms\"\n";
        let usual = CacheDefaults {
            proxy: "builtin".into(),
            memory_bytes: 1 << 20,
            disk_bytes: 0,
            set: Default::default(),
        };
        let topology = resolve(&read("t.toml", "t", text, usual).unwrap(), |_| Ok(None)).unwrap();
        let network = EmulatedNetwork::build(&NetworkPlan::default(), false, Some(&topology), 1).unwrap();
        let one = &network.cache_namespaces[0].namespace;
        let (near, far) = (Segment::Robots.address(1, 1), network.cache_namespaces[1].address);
        let way = |to: Ipv4Addr| {
            one.run(|| {
                let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
                socket.connect((to, 9)).unwrap();
                socket.local_addr().unwrap().ip()
            })
            .unwrap()
        };
        assert_eq!([way(near), way(far)], [std::net::IpAddr::V4(network.cache_namespaces[0].address); 2]);
        // The crossing itself has an address to speak from.
        let hub = &network
            .namespaces
            .iter()
            .find(|namespace_of_roles| namespace_of_roles.places.contains(&Segment::Target))
            .unwrap()
            .namespace;
        let from_hub = hub.run(|| {
            let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
            socket.connect((network.cache_namespaces[0].address, 9)).unwrap();
            socket.local_addr().unwrap().ip()
        });
        assert_eq!(from_hub.unwrap(), std::net::IpAddr::V4(GATEWAY));
        // Nobody carries the link's packets, so nothing comes through it; the rest is there.
        let responses = |to: Ipv4Addr, limit_ms: u64| {
            let [every, limit] = [30, limit_ms].map(std::time::Duration::from_millis);
            let trips = assay_host::link::probe::round_trips(one, to, 3, every, limit);
            trips.unwrap().times.count()
        };
        // What comes is waited for, however busy the machine is; what must not come, for long enough.
        assert_eq!((responses(near, 30_000), responses(far, 300)), (3, 0));
        let names: Vec<String> = network.info().links.into_iter().map(|link| link.name).collect();
        assert_eq!(names, ["y1-y2"]);
    }
}
