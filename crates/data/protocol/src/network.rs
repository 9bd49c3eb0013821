//! Networks of addresses, and which of them may be sent requests: by an agent, and where clients name the address themselves.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A network of addresses, as in `10.0.0.0/8`; a single address is a network of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// A text that names no network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is no network: write an address like 10.1.2.3, or a network like 10.1.0.0/16")]
pub struct NotANetwork(String);

/// Loopback, private, link-local and carrier-grade networks: those of which nobody else's machine is a part.
const PRIVATE: [&str; 9] = [
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "169.254.0.0/16",
    "100.64.0.0/10",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
];

/// What is not public: on this machine or in somebody's own network, where its owner expects no requests of strangers, or no single machine at
/// all (the registries of special-purpose addresses of RFC 6890). Clouds tell a machine its secrets at such addresses (169.254.169.254,
/// 192.0.0.192, 100.100.100.200, `fd00:ec2::254`), and at one that is public by its number (168.63.129.16).
const NOT_PUBLIC: [&str; 22] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/3",
    "::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "2001:db8::/32",
    "fc00::/7",
    "fe80::/10",
    "fec0::/10",
    "ff00::/8",
];
/// IPv6 networks whose addresses lead to the IPv4 address in them (RFC 6052, 2.1; RFC 3056, 2), and the bit at which it begins.
const LEADING_TO_V4: [(&str, u32); 2] = [("64:ff9b::/96", 96), ("2002::/16", 16)];

/// Which addresses may be requested where clients name them: public ones, and others only where they were named beforehand. Who may use a
/// proxy could otherwise reach what only its machine can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destinations {
    named: Vec<Network>,
    #[serde(skip, default = "not_public")]
    not_public: Vec<Network>,
}

impl Destinations {
    /// Public addresses, and those of these networks.
    pub fn public_and(named: Vec<Network>) -> Self {
        Self { named, not_public: not_public() }
    }

    /// Whether this address may be requested.
    pub fn allow(&self, address: IpAddr) -> bool {
        let is_in = |networks: &[Network], address| networks.iter().any(|network| network.contains(address));
        if is_in(&self.named, address) {
            return true;
        }
        !is_in(&self.not_public, address) && embedded(address).is_none_or(|address| self.allow(address))
    }
}

fn not_public() -> Vec<Network> {
    NOT_PUBLIC.iter().filter_map(|text| text.parse().ok()).collect()
}

/// An address that belongs to this machine or to somebody's own network: what is sent there reaches nobody else. The unspecified address leads
/// to this machine.
pub fn is_private(address: IpAddr) -> bool {
    let address = address.to_canonical();
    address.is_unspecified() || Network::private().into_iter().any(|network| network.contains(address))
}

/// The IPv4 address that one of IPv6 leads to.
fn embedded(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(v6) = address.to_canonical() else { return None };
    let leading = LEADING_TO_V4
        .iter()
        .find(|(network, _)| network.parse::<Network>().is_ok_and(|network| network.contains(address)));
    // The 32 bits from there on.
    leading.map(|&(_, begin)| IpAddr::from(((v6.to_bits() >> (96 - begin)) as u32).to_be_bytes()))
}

impl Network {
    /// Loopback and private networks: what an agent may load if nothing else was said.
    pub fn private() -> Vec<Self> {
        PRIVATE.iter().filter_map(|text| text.parse().ok()).collect()
    }

    /// Whether an address belongs to it. An IPv4 address in IPv6 form is that address.
    pub fn contains(self, address: IpAddr) -> bool {
        let (own, own_width) = number(self.address);
        let (other, width) = number(address);
        // A shift by the whole width would overflow: a network of no bits has every address of its kind.
        let shift = u32::from(own_width - self.bits.min(own_width));
        own_width == width && (shift >= 128 || own >> shift == other >> shift)
    }

    /// Whether all of it is private: it lies in one of [`Network::private`].
    pub fn is_private(self) -> bool {
        Self::private().into_iter().any(|network| network.bits <= self.bits && network.contains(self.address))
    }
}

/// An address as a number, and its width in bits.
fn number(address: IpAddr) -> (u128, u8) {
    match address.to_canonical() {
        IpAddr::V4(v4) => (u128::from(v4.to_bits()), 32),
        IpAddr::V6(v6) => (v6.to_bits(), 128),
    }
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let wrong = || NotANetwork(text.chars().take(100).collect());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let address = address.to_canonical();
        let width = number(address).1;
        let bits = bits.unwrap_or(width);
        if bits > width { Err(wrong()) } else { Ok(Self { address, bits }) }
    }
}

impl TryFrom<String> for Network {
    type Error = NotANetwork;

    fn try_from(text: String) -> Result<Self, NotANetwork> {
        text.parse()
    }
}

impl From<Network> for String {
    fn from(network: Network) -> String {
        network.to_string()
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn private_addresses_are_permitted_and_public_ones_are_not() {
        let may = |text: &str| Network::private().into_iter().any(|network| network.contains(address(text)));
        for private in [
            "127.3.4.5",
            "10.9.9.9",
            "172.31.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "::1",
            "169.254.1.1",
            "fd00::1",
            "fe80::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(may(private) && is_private(address(private)), "{private}");
        }
        for public in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2001:db8::1", "::ffff:8.8.8.8", "0.0.0.0"] {
            assert!(!may(public), "{public}");
            assert_eq!(is_private(address(public)), public == "0.0.0.0", "that one is this machine");
        }
    }

    #[test]
    fn a_network_is_private_only_if_all_of_it_is() {
        assert!(network("10.1.0.0/16").is_private() && network("10.0.0.0/8").is_private());
        assert!(!network("10.0.0.0/7").is_private() && !network("0.0.0.0/0").is_private());
        assert!(!network("::/0").is_private() && !network("8.8.8.8").is_private());
        assert!(
            network("0.0.0.0/0").contains(address("1.2.3.4"))
                && !network("0.0.0.0/0").contains(address("::1"))
        );
        assert!(network("::/0").contains(address("2001:db8::1")));
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_like_it() {
        let has = |text: &str, other: &str| network(text).contains(address(other));
        assert!(has("10.1.0.0/16", "10.1.255.3") && !has("10.1.0.0/16", "10.2.0.0"));
        assert!(has("2001:db8::/32", "2001:db8:1::5") && !has("::1", "::2"));
        assert!(has("127.0.0.1", "127.0.0.1") && !has("127.0.0.1", "127.0.0.2"));
    }

    #[test]
    fn only_public_addresses_and_those_that_were_named_may_be_requested() {
        let destinations = Destinations::public_and(vec![network("10.1.0.0/16"), network("127.0.0.5")]);
        for allowed in [
            "8.8.8.8",
            "::ffff:8.8.8.8",
            "2606:4700::1",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "10.1.2.3",
            "::ffff:10.1.2.3",
            "64:ff9b::a01:203",
            "127.0.0.5",
        ] {
            assert!(destinations.allow(address(allowed)), "{allowed}");
        }
        for refused in [
            "0.0.0.0",
            "0.1.2.3",
            "10.2.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "168.63.129.16",
            "169.254.169.254",
            "172.31.0.1",
            "192.0.0.192",
            "192.168.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
        ] {
            assert!(!destinations.allow(address(refused)), "{refused}");
        }
    }

    #[test]
    fn every_network_of_the_lists_is_one() {
        assert_eq!((not_public().len(), Network::private().len()), (NOT_PUBLIC.len(), PRIVATE.len()));
        assert!(LEADING_TO_V4.iter().all(|(text, _)| text.parse::<Network>().is_ok()));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "host", "10.0.0.0/x", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
        assert_eq!(network("10.1.2.3").to_string(), "10.1.2.3/32");
    }
}
