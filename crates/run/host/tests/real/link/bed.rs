//! Two namespaces joined by a link, for tests and for the measurement.

use std::net::Ipv4Addr;

use assay_host::link::interface::{self, Tun};
use assay_host::link::route::{self, Network};
use assay_host::link::{Forwarder, LinkSettings, Namespace};

pub const HERE: Ipv4Addr = Ipv4Addr::new(10, 1, 255, 1);
pub const THERE: Ipv4Addr = Ipv4Addr::new(10, 2, 255, 1);

pub struct Bed {
    pub here: Namespace,
    pub there: Namespace,
    pub link: Forwarder,
}

/// Two namespaces joined by a link; none where this user may not have them.
pub fn bed(link: &str, seed: u64, congestion_control: &str) -> Option<Bed> {
    if let Some(why) = assay_host::link::namespace::refused() {
        assay_testbed::skip(&why);
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
            interface::set("net/ipv6/conf/default/disable_ipv6", "1")?;
            interface::loopback_up()?;
            let tun = Tun::create("link")?;
            tun.up(own)?;
            route::own(network(own), congestion_control)?;
            route::through(network(other), "link", congestion_control)?;
            Ok::<_, assay_host::link::NetError>(tun.descriptor)
        };
        namespace.run(furnish).unwrap().unwrap()
    };
    let ends = [end(&here, HERE, THERE), end(&there, THERE, HERE)];
    let link = Forwarder::start(ends, &settings, seed).unwrap();
    Some(Bed { here, there, link })
}
