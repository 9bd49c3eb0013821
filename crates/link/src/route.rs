//! Which addresses are a namespace's own, which are behind a device, and by which congestion control they are spoken to.
//!
//! Congestion control is an attribute of routes here: the kernel lets a namespace choose its default only from
//! `tcp_allowed_congestion_control` of the machine, which is not ours to change. A route's choice holds for connections that
//! are made and for those that are accepted. Everything here acts on the namespace of the calling thread.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{FromRawFd, OwnedFd};

use crate::interface;
use crate::namespace::{NetError, check};

// From the kernel's interface, linux/rtnetlink.h and linux/netlink.h.
const RTM_NEWROUTE: u16 = 24;
const REQUEST_ACK_CREATE: u16 = 0x1 | 0x4 | 0x400;
const NLMSG_ERROR: u16 = 2;
const HEADER_BYTES: usize = 16;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_METRICS: u16 = 8;
const RTAX_CC_ALGO: u16 = 16;
const NLA_F_NESTED: u16 = 0x8000;
const TABLE_MAIN: u8 = 254;
const TABLE_LOCAL: u8 = 255;
const PROTOCOL_STATIC: u8 = 4;
const SCOPE_LINK: u8 = 253;
const SCOPE_HOST: u8 = 254;
const TYPE_UNICAST: u8 = 1;
const TYPE_LOCAL: u8 = 2;

/// A network: an address and how many of its bits say which network it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// Its first address.
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

fn add(network: Network, device: i32, kind: (u8, u8, u8), congestion_control: &str) -> io::Result<()> {
    // SAFETY: a plain system call; the descriptor it returns is owned by nobody else.
    let socket = unsafe {
        let socket = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::NETLINK_ROUTE);
        check(socket)?;
        OwnedFd::from_raw_fd(socket)
    };
    let message = message(network, device, kind, congestion_control);
    rustix::io::write(&socket, &message)?;
    let mut answer = [0_u8; 1024];
    let length = rustix::io::read(&socket, &mut answer)?;
    parse_answer(&answer[..length])
}

fn message(
    network: Network,
    device: i32,
    (table, scope, kind): (u8, u8, u8),
    congestion_control: &str,
) -> Vec<u8> {
    let mut body = vec![libc::AF_INET as u8, network.bits, 0, 0, table, PROTOCOL_STATIC, scope, kind];
    body.extend(0_u32.to_ne_bytes());
    attribute(&mut body, RTA_DST, &network.address.octets());
    attribute(&mut body, RTA_OIF, &device.to_ne_bytes());
    let mut metrics = Vec::new();
    let name: Vec<u8> = congestion_control.bytes().chain([0]).collect();
    attribute(&mut metrics, RTAX_CC_ALGO, &name);
    attribute(&mut body, RTA_METRICS | NLA_F_NESTED, &metrics);
    // Callers' names are short: the whole is far below 64 KiB.
    let length = (HEADER_BYTES + body.len()) as u32;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(RTM_NEWROUTE.to_ne_bytes());
    message.extend(REQUEST_ACK_CREATE.to_ne_bytes());
    message.extend(1_u32.to_ne_bytes());
    message.extend(0_u32.to_ne_bytes());
    message.extend(body);
    message
}

fn attribute(into: &mut Vec<u8>, kind: u16, value: &[u8]) {
    into.extend((value.len() as u16 + 4).to_ne_bytes());
    into.extend(kind.to_ne_bytes());
    into.extend(value);
    into.resize(into.len().next_multiple_of(4), 0);
}

/// The kernel answers with an error number, which is 0 when all went well.
fn parse_answer(answer: &[u8]) -> io::Result<()> {
    let odd = || io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer makes no sense");
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let error = answer.get(HEADER_BYTES..HEADER_BYTES + 4).and_then(|bytes| bytes.try_into().ok());
    match (kind, error.map(i32::from_ne_bytes)) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(error)) => Err(io::Error::from_raw_os_error(error.saturating_neg())),
        _ => Err(odd()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_as_long_as_they_say_and_aligned() {
        let network = Network { address: Ipv4Addr::new(10, 1, 0, 0), bits: 16 };
        for name in ["bbr", "cubic", "reno"] {
            let message = message(network, 7, (TABLE_MAIN, SCOPE_LINK, TYPE_UNICAST), name);
            let said = u32::from_ne_bytes(message[..4].try_into().unwrap());
            assert_eq!(said as usize, message.len());
            assert!(message.len().is_multiple_of(4));
        }
    }

    #[test]
    fn answers_are_good_bad_or_odd() {
        let answer = |error: i32| {
            let mut bytes = vec![0; 4];
            bytes.extend(NLMSG_ERROR.to_ne_bytes());
            bytes.resize(HEADER_BYTES, 0);
            bytes.extend(error.to_ne_bytes());
            bytes
        };
        assert!(parse_answer(&answer(0)).is_ok());
        assert_eq!(parse_answer(&answer(-libc::EEXIST)).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(parse_answer(&answer(i32::MIN)).is_err());
        assert!(parse_answer(b"short").is_err());
    }
}
