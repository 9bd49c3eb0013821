//! Routes of a namespace, each with its congestion control.
//!
//! Congestion control is set by route, because a namespace can choose its default only from the machine's
//! `tcp_allowed_congestion_control`, which must not be changed. The choice of a route holds for outgoing and for accepted
//! connections. All functions act on the namespace of the calling thread.

use std::io;
use std::net::Ipv4Addr;

use crate::link::interface;
use crate::link::namespace::NetError;
use crate::link::netlink::{NESTED, NetlinkRequest};

// From the kernel's interface, linux/rtnetlink.h.
const RTM_NEWROUTE: u16 = 24;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_METRICS: u16 = 8;
const RTAX_CC_ALGO: u16 = 16;
const TABLE_MAIN: u8 = 254;
const TABLE_LOCAL: u8 = 255;
const PROTOCOL_STATIC: u8 = 4;
const SCOPE_UNIVERSE: u8 = 0;
const SCOPE_LINK: u8 = 253;
const SCOPE_HOST: u8 = 254;
const TYPE_UNICAST: u8 = 1;
const TYPE_LOCAL: u8 = 2;
/// `RTNH_F_ONLINK`: the gateway is reached through the device, whatever its address.
const ONLINK: u32 = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    pub address: Ipv4Addr,
    /// Length of the prefix.
    pub bits: u8,
}

/// Table, scope and type of a route (rtnetlink(7)).
#[derive(Clone, Copy)]
struct RouteClass {
    table: u8,
    scope: u8,
    kind: u8,
}

const LOCAL: RouteClass = RouteClass { table: TABLE_LOCAL, scope: SCOPE_HOST, kind: TYPE_LOCAL };
const DIRECT: RouteClass = RouteClass { table: TABLE_MAIN, scope: SCOPE_LINK, kind: TYPE_UNICAST };
const VIA: RouteClass = RouteClass { table: TABLE_MAIN, scope: SCOPE_UNIVERSE, kind: TYPE_UNICAST };

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Makes every address of a network local.
pub fn add_local(network: Network, congestion_control: &str) -> Result<(), NetError> {
    let added = interface::index("lo").map(|lo| add(network, lo, LOCAL, congestion_control));
    NetError::context(format!("take {network} ({congestion_control})"), added?)
}

/// Routes a network through a device.
pub fn add_direct(network: Network, device: &str, congestion_control: &str) -> Result<(), NetError> {
    let added = interface::index(device).map(|index| add(network, index, DIRECT, congestion_control));
    NetError::context(format!("send {network} through {device} ({congestion_control})"), added?)
}

/// Routes a network through a gateway behind a device.
pub fn add_via(
    network: Network,
    gateway: Ipv4Addr,
    device: &str,
    congestion_control: &str,
) -> Result<(), NetError> {
    let added = interface::index(device).map(|index| {
        let mut message = message(network, index, VIA, ONLINK, congestion_control);
        message.attribute(RTA_GATEWAY, &gateway.octets());
        message.send()
    });
    NetError::context(format!("send {network} to {gateway} through {device} ({congestion_control})"), added?)
}

fn add(network: Network, device: i32, class: RouteClass, congestion_control: &str) -> io::Result<()> {
    message(network, device, class, 0, congestion_control).send()
}

fn message(
    network: Network,
    device: i32,
    RouteClass { table, scope, kind }: RouteClass,
    flags: u32,
    congestion_control: &str,
) -> NetlinkRequest {
    let [a, b, c, d] = flags.to_ne_bytes();
    let fixed = [libc::AF_INET as u8, network.bits, 0, 0, table, PROTOCOL_STATIC, scope, kind, a, b, c, d];
    let mut message = NetlinkRequest::new(RTM_NEWROUTE, &fixed);
    message.attribute(RTA_DST, &network.address.octets());
    message.attribute(RTA_OIF, &device.to_ne_bytes());
    message.nested(RTA_METRICS | NESTED, |metrics| metrics.text(RTAX_CC_ALGO, congestion_control));
    message
}
