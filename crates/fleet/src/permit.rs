//! Which addresses an agent may load.

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
const PRIVATE: [&str; 8] = [
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "169.254.0.0/16",
    "100.64.0.0/10",
    "::1/128",
    "fc00::/7",
];

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
            "fd00::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(may(private), "{private}");
        }
        for public in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2001:db8::1", "::ffff:8.8.8.8", "0.0.0.0"] {
            assert!(!may(public), "{public}");
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
    fn what_is_no_network_is_refused() {
        for wrong in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "host", "10.0.0.0/x", "10.0.0.0/-1"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
        assert_eq!(network("10.1.2.3").to_string(), "10.1.2.3/32");
    }
}
