//! Interfaces of a namespace (loopback, TUN devices, veth pairs) and settings of its network stack.
//!
//! All functions act on the namespace of the calling thread ([`crate::link::Namespace::run`]).

use std::fs::{File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::link::namespace::{Namespace, NetError, check};
use crate::link::netlink::{NESTED, NetlinkRequest};

// From the kernel's interface, linux/rtnetlink.h, linux/if_link.h and linux/veth.h.
const RTM_NEWLINK: u16 = 16;
const LINK_HEADER_BYTES: usize = 16;
const IFLA_IFNAME: u16 = 3;
const IFLA_LINKINFO: u16 = 18;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;

/// MTU of links, as on Ethernet.
pub const MTU: u16 = 1500;
/// Transmit queue of a TUN device, in packets: long enough that losses are the model's, not the device's.
const DEVICE_QUEUE: libc::c_int = 10_000;

/// A TUN device, which the kernel removes with the last copy of its descriptor.
#[derive(Debug)]
pub struct Tun {
    /// Reads packets that were sent into the device; writes packets that arrive from it.
    pub descriptor: OwnedFd,
    /// Name in its namespace.
    pub name: String,
}

impl Tun {
    /// Creates a device, which is down.
    pub fn create(name: &str) -> Result<Self, NetError> {
        let action = format!("make the TUN device {name}");
        let created = || {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
                .open("/dev/net/tun")?;
            let mut request = request(name)?;
            // No packet information, no offloads: one packet of at most the MTU each time.
            request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
            // SAFETY: the request is a whole ifreq that outlives the call.
            check(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
            Ok(file)
        };
        let file = NetError::context(action, created())?;
        Ok(Self { descriptor: OwnedFd::from(file), name: name.into() })
    }

    /// Sets the address, and brings the device up.
    pub fn set_up(&self, address: Ipv4Addr) -> Result<(), NetError> {
        let admin = admin()?;
        let set = |call, fill: &dyn Fn(&mut libc::ifreq)| {
            let mut request = request(&self.name)?;
            fill(&mut request);
            ioctl(&admin, call, &mut request)
        };
        let configured = || {
            set(libc::SIOCSIFMTU, &|request| request.ifr_ifru.ifru_mtu = libc::c_int::from(MTU))?;
            // `ifr_qlen` and `ifr_mtu` are the same member of the union.
            set(libc::SIOCSIFTXQLEN, &|request| request.ifr_ifru.ifru_mtu = DEVICE_QUEUE)?;
            set(libc::SIOCSIFADDR, &|request| request.ifr_ifru.ifru_addr = socket_address(address))?;
            set_up(&admin, &self.name)
        };
        NetError::context(format!("bring {} up with {address}", self.name), configured())
    }
}

/// Joins the namespace of the calling thread and another by a veth pair, which adds no delay. Both ends are up, without an
/// address.
pub fn add_veth_pair(here: &str, there: &Namespace, there_name: &str) -> Result<(), NetError> {
    let mut message = NetlinkRequest::new(RTM_NEWLINK, &[0; LINK_HEADER_BYTES]);
    message.text(IFLA_IFNAME, here);
    message.nested(IFLA_LINKINFO | NESTED, |info| {
        info.text(IFLA_INFO_KIND, "veth");
        info.nested(IFLA_INFO_DATA | NESTED, |data| {
            data.nested(VETH_INFO_PEER | NESTED, |peer| {
                peer.raw(&[0; LINK_HEADER_BYTES]);
                peer.text(IFLA_IFNAME, there_name);
                peer.attribute(IFLA_NET_NS_FD, &there.raw().to_ne_bytes());
            });
        });
    });
    let action = format!("join two namespaces by {here} and {there_name}");
    NetError::context(action.clone(), message.send())?;
    NetError::context(action, set_up(&admin()?, here))?;
    there.run(|| NetError::context(format!("bring {there_name} up"), set_up(&admin()?, there_name)))?
}

/// Sets the address of a device, with a netmask of 32 bits.
pub fn set_address(name: &str, address: Ipv4Addr) -> Result<(), NetError> {
    let admin = admin()?;
    let set = |call, value: Ipv4Addr| {
        let mut request = request(name)?;
        request.ifr_ifru.ifru_addr = socket_address(value);
        ioctl(&admin, call, &mut request)
    };
    let configured =
        set(libc::SIOCSIFADDR, address).and_then(|()| set(libc::SIOCSIFNETMASK, Ipv4Addr::BROADCAST));
    NetError::context(format!("give {name} the address {address}"), configured)
}

/// Brings the loopback interface up.
pub fn loopback_up() -> Result<(), NetError> {
    NetError::context("bring the loopback interface up", set_up(&admin()?, "lo"))
}

/// Index of an interface.
pub fn index(name: &str) -> Result<i32, NetError> {
    let found = || {
        let mut request = request(name)?;
        ioctl(&admin_socket()?, libc::SIOCGIFINDEX, &mut request)?;
        // SAFETY: the kernel has filled in the index, and every bit pattern of it is a value.
        Ok(unsafe { request.ifr_ifru.ifru_ifindex })
    };
    NetError::context(format!("find the interface {name}"), found())
}

/// Sets a sysctl, such as `net/ipv4/tcp_rmem`.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), NetError> {
    let written = std::fs::write(format!("/proc/sys/{name}"), value);
    NetError::context(format!("set {} to {value}", name.replace('/', ".")), written)
}

/// Reads a sysctl.
pub fn sysctl(name: &str) -> Result<String, NetError> {
    let read = std::fs::read_to_string(format!("/proc/sys/{name}"));
    let text = NetError::context(format!("read {}", name.replace('/', ".")), read)?;
    Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Packets dropped at the transmit queues of the namespace's devices (all but loopback), because the forwarder was too slow.
pub fn transmit_drops() -> u64 {
    std::fs::read_to_string("/proc/thread-self/net/dev").map_or(0, |text| parse_transmit_drops(&text))
}

fn parse_transmit_drops(text: &str) -> u64 {
    let one = |line: &str| {
        let (name, counters) = line.split_once(':')?;
        // Eight columns of received traffic, then bytes, packets, errors and drops of sent traffic.
        let dropped = counters.split_whitespace().nth(11)?.parse::<u64>().ok()?;
        (name.trim() != "lo").then_some(dropped)
    };
    text.lines().filter_map(one).sum()
}

fn set_up(admin: &File, name: &str) -> io::Result<()> {
    let mut request = request(name)?;
    ioctl(admin, libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: the kernel has filled in the flags, and every bit pattern of them is a value.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    ioctl(admin, libc::SIOCSIFFLAGS, &mut request)
}

fn admin() -> Result<File, NetError> {
    NetError::context("open a socket", admin_socket())
}

/// A socket for ioctls on the interfaces of this namespace.
fn admin_socket() -> io::Result<File> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)?;
    Ok(File::from(OwnedFd::from(socket)))
}

fn request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zeroes is a valid ifreq: an empty name and a union of plain numbers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is too long for an interface"));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

fn ioctl(admin: &File, call: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: the request is a whole ifreq that outlives the call, which is what these calls take.
    check(unsafe { libc::ioctl(admin.as_raw_fd(), call as _, std::ptr::from_mut(request)) })
}

fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    // Port (two bytes), then the address.
    for (to, from) in data[2..6].iter_mut().zip(address.octets()) {
        *to = from as libc::c_char;
    }
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data: data }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_devices_dropped_on_their_way_out_is_found() {
        let text = "Inter-|   Receive                          |  Transmit\n \
                    face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs drop fifo\n\
                    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n \
                    link: 1 2 3 4 5 6 7 8 9 10 11 34 13 14 15 16\n";
        assert_eq!(parse_transmit_drops(text), 34);
        assert_eq!(parse_transmit_drops("odd: 1 2\nmore"), 0);
    }
}
