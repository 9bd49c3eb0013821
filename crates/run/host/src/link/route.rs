//! Which addresses are a namespace's own, which are behind a device, and by which congestion control they are spoken to.
//!
//! Congestion control is an attribute of routes here: the kernel lets a namespace choose its default only from
//! `tcp_allowed_congestion_control` of the machine, which is not ours to change. A route's choice holds for connections that
//! are made and for those that are accepted. Everything here acts on the namespace of the calling thread.

use std::io;
use std::net::Ipv4Addr;

use crate::link::interface;
use crate::link::namespace::NetError;
use crate::link::netlink::{Message, NESTED};

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
/// The gateway is behind the device, whatever addresses say.
const ONLINK: u32 = 4;

/// A network: an address and how many of its bits say which network it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    pub address: Ipv4Addr,
    /// Bits of it that are the network's.
    pub bits: u8,
}

impl std::fmt::Display for Network {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// Makes every address of a network this namespace's own.
pub fn own(network: Network, congestion_control: &str) -> Result<(), NetError> {
    let added = interface::index("lo")
        .map(|lo| add(network, lo, (TABLE_LOCAL, SCOPE_HOST, TYPE_LOCAL), congestion_control));
    NetError::because(format!("take {network} ({congestion_control})"), added?)
}

/// Says that a network is behind a device.
pub fn through(network: Network, device: &str, congestion_control: &str) -> Result<(), NetError> {
    let added = interface::index(device)
        .map(|index| add(network, index, (TABLE_MAIN, SCOPE_LINK, TYPE_UNICAST), congestion_control));
    NetError::because(format!("send {network} through {device} ({congestion_control})"), added?)
}

/// Says that a network is behind an address, which is behind a device.
pub fn via(
    network: Network,
    gateway: Ipv4Addr,
    device: &str,
    congestion_control: &str,
) -> Result<(), NetError> {
    let added = interface::index(device).map(|index| {
        let mut message =
            message(network, index, (TABLE_MAIN, SCOPE_UNIVERSE, TYPE_UNICAST), ONLINK, congestion_control);
        message.attribute(RTA_GATEWAY, &gateway.octets());
        message.send()
    });
    NetError::because(format!("send {network} to {gateway} through {device} ({congestion_control})"), added?)
}

fn add(network: Network, device: i32, kind: (u8, u8, u8), congestion_control: &str) -> io::Result<()> {
    message(network, device, kind, 0, congestion_control).send()
}

fn message(
    network: Network,
    device: i32,
    (table, scope, kind): (u8, u8, u8),
    flags: u32,
    congestion_control: &str,
) -> Message {
    let [a, b, c, d] = flags.to_ne_bytes();
    let fixed = [libc::AF_INET as u8, network.bits, 0, 0, table, PROTOCOL_STATIC, scope, kind, a, b, c, d];
    let mut message = Message::new(RTM_NEWROUTE, &fixed);
    message.attribute(RTA_DST, &network.address.octets());
    message.attribute(RTA_OIF, &device.to_ne_bytes());
    message.nested(RTA_METRICS | NESTED, |metrics| metrics.text(RTAX_CC_ALGO, congestion_control));
    message
}
