//! Two namespaces joined by a link, for tests and the example.

use std::net::Ipv4Addr;

use assay_host::link::interface::{self, Tun};
use assay_host::link::route::{self, Network};
use assay_host::link::{Forwarder, LinkSettings, Namespace};

pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 1, 255, 1);
pub const THERE: Ipv4Addr = Ipv4Addr::new(10, 2, 255, 1);

pub struct LinkedNamespaces {
    pub here: Namespace,
    pub there: Namespace,
    pub link: Forwarder,
}

/// Two namespaces joined by a link; none where this user may not have them.
pub fn link_namespaces(link: &str, seed: u64, congestion_control: &str) -> Option<LinkedNamespaces> {
    if let Err(error) = assay_host::link::namespace::check_available() {
        assay_testbed::skip(&error.to_string());
        return None;
    }
    let settings: LinkSettings = link.parse().unwrap();
    let [here, there] = [Namespace::new().unwrap(), Namespace::new().unwrap()];
    let network = |address: Ipv4Addr| {
        let [a, b, ..] = address.octets();
        Network { address: Ipv4Addr::new(a, b, 0, 0), bits: 16 }
    };
    let end = |namespace: &Namespace, own: Ipv4Addr, other: Ipv4Addr| {
        let furnish = || {
            interface::set_sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
            interface::loopback_up()?;
            let tun = Tun::create("link")?;
            tun.set_up(own)?;
            route::add_local(network(own), congestion_control)?;
            route::add_direct(network(other), "link", congestion_control)?;
            Ok::<_, assay_host::link::NetError>(tun.descriptor)
        };
        namespace.run(furnish).unwrap().unwrap()
    };
    let ends = [end(&here, HERE, THERE), end(&there, THERE, HERE)];
    let link = Forwarder::start(ends, &settings, seed).unwrap();
    Some(LinkedNamespaces { here, there, link })
}
