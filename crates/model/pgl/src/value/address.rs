//! Addresses and ranges of addresses, kept unexpanded: a range of a million addresses takes a few bytes.

use std::fmt;
use std::rc::Rc;

use super::pattern::{Pattern, PatternPart};

/// `lo-hi`, both inclusive; equal for a single number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Interval {
    pub low: u16,
    pub high: u16,
}

impl Interval {
    fn count(self) -> u64 {
        u64::from(self.high - self.low) + 1
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Hosts {
    V4([Interval; 4]),
    V6([Interval; 8]),
    Name(Pattern),
}

/// Text that is no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("expected an interface name before `::`")]
    NoInterface,
    #[error("expected a port from 0 to 65535 after `:`")]
    Port,
    #[error("expected `:port` or nothing after the host, found `{0}`")]
    AfterHost(String),
    #[error("expected four numbers or ranges from 0 to 255, such as 10.0.0-1.1-250")]
    Ipv4,
    #[error("expected eight hexadecimal groups between `[` and `]`, such as [2001:db8::1-ff]")]
    Ipv6,
    #[error("expected `[lo-hi]` with whole numbers")]
    Range,
    #[error("expected an address such as 10.0.0.1:80, [::1]:80 or w[1-9].host.com:80")]
    Host,
    #[error("expected nothing after a name: only IP addresses have a subnet")]
    SubnetOfName,
    #[error("expected 1 to {most} bits after `/`")]
    Subnet { most: u8 },
}

/// One address, or a sequence of addresses: `ifname::host:port/bits`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct AddrRange {
    pub interface: Option<Rc<str>>,
    pub hosts: Hosts,
    pub ports: Option<Interval>,
    pub subnet: Option<u8>,
}

impl AddrRange {
    /// Parses the text between quotes.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let bracket = text.find('[').unwrap_or(text.len());
        let (interface, rest) = match text[..bracket].find("::") {
            Some(0) => return Err(AddressError::NoInterface),
            Some(at) => (Some(text[..at].into()), &text[at + 2..]),
            None => (None, text),
        };
        let inside = rest.strip_prefix('[').and_then(|after| after.split_once(']'));
        let (hosts, after) = match inside {
            Some((groups, after)) if groups.contains(':') => (Hosts::V6(ipv6(groups)?), after),
            _ if rest.starts_with(|c: char| c.is_ascii_digit()) => {
                let end = rest.find([':', '/']).unwrap_or(rest.len());
                (Hosts::V4(ipv4(&rest[..end])?), &rest[end..])
            }
            _ => domain(rest)?,
        };
        let (port, bits) = match after.split_once('/') {
            Some((port, bits)) => (port, Some(bits)),
            None => (after, None),
        };
        let ports = match port.strip_prefix(':') {
            Some(port) => Some(interval(port, 10).ok_or(AddressError::Port)?),
            None if port.is_empty() => None,
            None => return Err(AddressError::AfterHost(port.to_owned())),
        };
        let subnet = bits.map(|bits| subnet(bits, &hosts)).transpose()?;
        Ok(Self { interface, hosts, ports, subnet })
    }

    pub fn count(&self) -> u64 {
        let ports = self.ports.map_or(1, Interval::count);
        self.host_count().saturating_mul(ports)
    }

    fn host_count(&self) -> u64 {
        let product = |parts: &[Interval]| parts.iter().fold(1_u64, |n, i| n.saturating_mul(i.count()));
        match &self.hosts {
            Hosts::V4(parts) => product(parts),
            Hosts::V6(parts) => product(parts),
            Hosts::Name(pattern) => pattern.count(),
        }
    }

    /// The address at an index below `count()`; the first component varies slowest, the port fastest.
    pub fn nth(&self, index: u64) -> AddrRange {
        let (index, ports) = match self.ports {
            Some(ports) => {
                let port = ports.low + (index % ports.count()) as u16;
                (index / ports.count(), Some(Interval { low: port, high: port }))
            }
            None => (index, None),
        };
        let hosts = match &self.hosts {
            Hosts::V4(parts) => Hosts::V4(pick(parts, index)),
            Hosts::V6(parts) => Hosts::V6(pick(parts, index)),
            Hosts::Name(pattern) => Hosts::Name(pattern.nth(index)),
        };
        AddrRange { interface: self.interface.clone(), hosts, ports, subnet: self.subnet }
    }

    pub fn iter(&self) -> impl Iterator<Item = AddrRange> + '_ {
        (0..self.count()).map(|index| self.nth(index))
    }

    /// The host as written, without brackets.
    pub fn host(&self) -> String {
        match &self.hosts {
            Hosts::V4(parts) => parts.iter().map(|i| display(*i, false)).collect::<Vec<_>>().join("."),
            Hosts::V6(parts) if self.host_count() == 1 => {
                core::net::Ipv6Addr::from(parts.map(|part| part.low)).to_string()
            }
            Hosts::V6(parts) => parts.iter().map(|i| display(*i, true)).collect::<Vec<_>>().join(":"),
            Hosts::Name(pattern) => pattern.to_string(),
        }
    }

    /// The port, if there is exactly one.
    pub fn port(&self) -> Option<u16> {
        self.ports.filter(|ports| ports.count() == 1).map(|ports| ports.low)
    }

    /// The addresses with another port, or without one.
    pub fn with_port(&self, port: Option<u16>) -> AddrRange {
        AddrRange { ports: port.map(|port| Interval { low: port, high: port }), ..self.clone() }
    }

    /// `host` or `host:port`, with brackets where IPv6 needs them.
    pub fn authority(&self) -> String {
        let host = self.host();
        let host = if matches!(self.hosts, Hosts::V6(_)) { format!("[{host}]") } else { host };
        match self.ports {
            Some(ports) => format!("{host}:{}", display(ports, false)),
            None => host,
        }
    }

    /// The four bytes of a single IPv4 address.
    pub fn octets(&self) -> Option<[u8; 4]> {
        match &self.hosts {
            Hosts::V4(parts) if self.host_count() == 1 => Some(parts.map(|part| part.low as u8)),
            _ => None,
        }
    }
}

impl fmt::Display for AddrRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(interface) = &self.interface {
            write!(f, "{interface}::")?;
        }
        f.write_str(&self.authority())?;
        self.subnet.map_or(Ok(()), |bits| write!(f, "/{bits}"))
    }
}

fn display(interval: Interval, hexadecimal: bool) -> String {
    let number = |n: u16| if hexadecimal { format!("{n:x}") } else { n.to_string() };
    if interval.low == interval.high {
        number(interval.low)
    } else {
        format!("{}-{}", number(interval.low), number(interval.high))
    }
}

/// The components at an index; the last varies fastest.
fn pick<const N: usize>(parts: &[Interval; N], mut index: u64) -> [Interval; N] {
    let mut picked = *parts;
    for part in picked.iter_mut().rev() {
        let value = part.low + (index % part.count()) as u16;
        index /= part.count();
        *part = Interval { low: value, high: value };
    }
    picked
}

fn interval(text: &str, radix: u32) -> Option<Interval> {
    let number = |part: &str| {
        let plain = !part.is_empty() && part.len() <= 5 && part.chars().all(|c| c.is_digit(radix));
        plain.then(|| u16::from_str_radix(part, radix).ok()).flatten()
    };
    let (low, high) = match text.split_once('-') {
        Some((low, high)) => (number(low)?, number(high)?),
        None => (number(text)?, number(text)?),
    };
    (low <= high).then_some(Interval { low, high })
}

fn ipv4(text: &str) -> Result<[Interval; 4], AddressError> {
    let parts: Vec<Option<Interval>> = text.split('.').map(|part| interval(part, 10)).collect();
    match parts[..] {
        [Some(a), Some(b), Some(c), Some(d)] if [a, b, c, d].iter().all(|i| i.high <= 255) => {
            Ok([a, b, c, d])
        }
        _ => Err(AddressError::Ipv4),
    }
}

fn ipv6(text: &str) -> Result<[Interval; 8], AddressError> {
    let groups = |text: &str| -> Option<Vec<Interval>> {
        if text.is_empty() { Some(vec![]) } else { text.split(':').map(|g| interval(g, 16)).collect() }
    };
    let zero = Interval { low: 0, high: 0 };
    let all = match text.split_once("::") {
        Some((head, tail)) => {
            let mut head = groups(head).ok_or(AddressError::Ipv6)?;
            let tail = groups(tail).ok_or(AddressError::Ipv6)?;
            if head.len() + tail.len() > 7 {
                return Err(AddressError::Ipv6);
            }
            head.resize(8 - tail.len(), zero);
            head.extend(tail);
            head
        }
        None => groups(text).ok_or(AddressError::Ipv6)?,
    };
    all.try_into().map_err(|_| AddressError::Ipv6)
}

/// Parses a domain name with ranges; returns it with the rest of the text.
fn domain(text: &str) -> Result<(Hosts, &str), AddressError> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || "-_.*".contains(c))).unwrap_or(rest.len());
        parts.push(PatternPart::Text(rest[..end].to_owned()));
        rest = &rest[end..];
        let Some((inside, after)) = rest.strip_prefix('[').and_then(|after| after.split_once(']')) else {
            break;
        };
        parts.push(PatternPart::range(inside).ok_or(AddressError::Range)?);
        rest = after;
    }
    let pattern = Pattern::new(parts);
    if pattern.is_empty() { Err(AddressError::Host) } else { Ok((Hosts::Name(pattern), rest)) }
}

fn subnet(bits: &str, hosts: &Hosts) -> Result<u8, AddressError> {
    let most = match hosts {
        Hosts::V4(_) => 32,
        Hosts::V6(_) => 128,
        Hosts::Name(_) => return Err(AddressError::SubnetOfName),
    };
    bits.parse().ok().filter(|bits| (1..=most).contains(bits)).ok_or(AddressError::Subnet { most })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<String> {
        AddrRange::parse(text).unwrap().iter().map(|a| a.authority()).collect()
    }

    #[test]
    fn the_first_component_varies_slowest_and_the_port_fastest() {
        let range = AddrRange::parse("10.0.0-1.1-3:80-81").unwrap();
        assert_eq!(range.count(), 12);
        assert_eq!(all("10.0.0-1.1-3:80-81")[..3], ["10.0.0.1:80", "10.0.0.1:81", "10.0.0.2:80"]);
        assert_eq!(range.nth(11).authority(), "10.0.1.3:81");
    }

    #[test]
    fn every_part_but_the_host_is_optional() {
        let full = AddrRange::parse("lo0::10.1.2.3:80/22").unwrap();
        assert_eq!(full.interface.as_deref(), Some("lo0"));
        assert_eq!((full.port(), full.subnet), (Some(80), Some(22)));
        assert_eq!(full.to_string(), "lo0::10.1.2.3:80/22");
        assert_eq!(AddrRange::parse("10.1.2.3").unwrap().port(), None);
    }

    #[test]
    fn ipv6_stands_in_brackets_and_counts_in_hexadecimal() {
        assert_eq!(all("[2001:db8::f-10]:80"), ["[2001:db8::f]:80", "[2001:db8::10]:80"]);
        let full = AddrRange::parse("eth0::[2001:db8::1]:80/64").unwrap();
        assert_eq!(full.to_string(), "eth0::[2001:db8::1]:80/64");
    }

    #[test]
    fn names_have_bracketed_ranges_and_may_have_dashes() {
        assert_eq!(all("w[9-10].my-host.com:80"), ["w9.my-host.com:80", "w10.my-host.com:80"]);
        assert_eq!(all("*.bench.tst:80"), ["*.bench.tst:80"]);
    }

    #[test]
    fn a_million_addresses_are_counted_without_being_made() {
        assert_eq!(AddrRange::parse("10.0-255.0-255.0-255").unwrap().count(), 1 << 24);
        assert_eq!(AddrRange::parse("[0-ffff:0-ffff:0-ffff:0-ffff:0-ffff::1]").unwrap().count(), u64::MAX);
    }

    #[test]
    fn broken_addresses_say_what_was_expected() {
        for text in [
            "",
            "10.0.0",
            "10.0.0.256",
            "10.0.0.3-1",
            "10.0.0.1:99999",
            "10.0.0.1/33",
            "[::1",
            "[1::2::3]",
            "a.b/8",
            "::1.2.3.4",
            "10.0.0.1:80x",
            "[::1]/0",
            "a b",
            "[x-y].com",
            "10.0.0.1:",
            "[1:2:3:4:5:6:7:8:9]",
        ] {
            assert!(AddrRange::parse(text).is_err(), "{text}");
        }
    }
}
