//! ICP: what caches say to each other about an object before they fetch it. The Internet Cache Protocol, version 2 (RFC
//! 2186).
//!
//! A message is one datagram: 20 bytes of header, then a payload that names the URL. A query names an object; a
//! response says hit, miss or error. Numbers are in network byte order. A response carries the number and the URL of its
//! query, so that the sender of the query can match them.

use std::net::Ipv4Addr;

use thiserror::Error;

/// The port that the protocol was given.
pub const PORT: u16 = 3130;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 20;
/// The longest message: what one datagram can hold (RFC 2186 says 16384).
pub const MOST_BYTES: usize = 16_384;
/// The longest URL that a query can carry: what is left beside the header, the sender's address and the end mark.
pub const MOST_URL_BYTES: usize = MOST_BYTES - HEADER_BYTES - 4 - 1;
const VERSION: u8 = 2;

/// Type of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// Whether the receiver has this object.
    Query,
    /// The cache has the object, which can be requested from it.
    Hit,
    /// The cache does not have the object, which may be requested from it if it is a parent.
    Miss,
    /// The query could not be understood.
    Error,
    /// An echo of a query that was sent to an origin's echo port.
    SourceEcho,
    /// The same, for caches that do not speak this protocol.
    DumbEcho,
    /// The cache does not have the object, which must not be requested from it now.
    MissNoFetch,
    /// The sender may not query this cache.
    Denied,
    /// Yes, and here it is.
    HitObject,
}

impl Opcode {
    /// Every opcode that version 2 knows.
    pub const ALL: [Opcode; 9] = [
        Opcode::Query,
        Opcode::Hit,
        Opcode::Miss,
        Opcode::Error,
        Opcode::SourceEcho,
        Opcode::DumbEcho,
        Opcode::MissNoFetch,
        Opcode::Denied,
        Opcode::HitObject,
    ];

    /// Number on the wire.
    pub fn number(self) -> u8 {
        match self {
            Opcode::Query => 1,
            Opcode::Hit => 2,
            Opcode::Miss => 3,
            Opcode::Error => 4,
            Opcode::SourceEcho => 10,
            Opcode::DumbEcho => 11,
            Opcode::MissNoFetch => 21,
            Opcode::Denied => 22,
            Opcode::HitObject => 23,
        }
    }

    fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|opcode| opcode.number() == number)
    }
}

/// Malformed datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IcpError {
    /// Too short for a header.
    #[error("the message is shorter than its header")]
    Short,
    /// Another protocol, or another version of this one.
    #[error("the message is of version {0} of the protocol, not 2")]
    Version(u8),
    /// An opcode that is reserved or unknown.
    #[error("opcode {0} is none of version 2")]
    Opcode(u8),
    /// The header says another length than arrived.
    #[error("the header says {said} bytes, and {seen} came")]
    Length {
        /// Length in the header.
        said: u16,
        seen: usize,
    },
    /// No URL that ends with a zero byte, or one that is not text.
    #[error("the payload names no URL that ends within it")]
    Url,
    /// The object that should come with it does not fit its length.
    #[error("the object's length is not that of the bytes that came with it")]
    Object,
}

/// A message, as it lies in its datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'b> {
    pub opcode: Opcode,
    /// Number of the query; its response has the same.
    pub number: u32,
    /// Flags of the query or response: see [`FLAG_HIT_OBJECT`] and [`FLAG_SOURCE_RTT`].
    pub options: u32,
    /// Data of the options: with [`FLAG_SOURCE_RTT`], the round-trip time to the origin in milliseconds.
    pub option_data: u32,
    /// The sender as it names itself; nobody relies on it.
    pub sender: Ipv4Addr,
    /// Of a query: the address that its sender gives as its own.
    pub requester: Ipv4Addr,
    pub url: &'b str,
    /// Of [`Opcode::HitObject`]: the object, as HTTP.
    pub object: &'b [u8],
}

/// In a query: the response may bring the object along.
pub const FLAG_HIT_OBJECT: u32 = 0x8000_0000;
/// In a query: the response shall say how far away the origin is.
pub const FLAG_SOURCE_RTT: u32 = 0x4000_0000;

impl<'b> Message<'b> {
    /// A query for a URL.
    pub fn query(number: u32, url: &'b str) -> Self {
        Self {
            opcode: Opcode::Query,
            number,
            options: 0,
            option_data: 0,
            sender: Ipv4Addr::UNSPECIFIED,
            requester: Ipv4Addr::UNSPECIFIED,
            url,
            object: &[],
        }
    }

    /// The response to a query.
    pub fn response(&self, opcode: Opcode) -> Message<'b> {
        Message { opcode, ..Message::query(self.number, self.url) }
    }

    pub fn parse(datagram: &'b [u8]) -> Result<Self, IcpError> {
        let header: &[u8; HEADER_BYTES] = datagram.first_chunk().ok_or(IcpError::Short)?;
        if header[1] != VERSION {
            return Err(IcpError::Version(header[1]));
        }
        let opcode = Opcode::of(header[0]).ok_or(IcpError::Opcode(header[0]))?;
        let said = u16::from_be_bytes([header[2], header[3]]);
        if usize::from(said) != datagram.len() {
            return Err(IcpError::Length { said, seen: datagram.len() });
        }
        let word = |at: usize| [header[at], header[at + 1], header[at + 2], header[at + 3]];
        let mut payload = &datagram[HEADER_BYTES..];
        let mut requester = Ipv4Addr::UNSPECIFIED;
        if opcode == Opcode::Query {
            let (address, rest) = payload.split_first_chunk::<4>().ok_or(IcpError::Url)?;
            (requester, payload) = (Ipv4Addr::from(*address), rest);
        }
        let end = payload.iter().position(|&byte| byte == 0).ok_or(IcpError::Url)?;
        let url = std::str::from_utf8(&payload[..end]).map_err(|_| IcpError::Url)?;
        let object = match opcode {
            Opcode::HitObject => object(&payload[end + 1..])?,
            _ => &[],
        };
        Ok(Self {
            opcode,
            number: u32::from_be_bytes(word(4)),
            options: u32::from_be_bytes(word(8)),
            option_data: u32::from_be_bytes(word(12)),
            sender: Ipv4Addr::from(word(16)),
            requester,
            url,
            object,
        })
    }

    /// Writes the message, in place of what is in `out`. False, and nothing written: it is too long for a datagram, or its
    /// URL holds a zero byte.
    #[must_use]
    pub fn write(&self, out: &mut Vec<u8>) -> bool {
        out.clear();
        let with_requester = self.opcode == Opcode::Query;
        let object = if self.opcode == Opcode::HitObject { 2 + self.object.len() } else { 0 };
        let length = HEADER_BYTES + if with_requester { 4 } else { 0 } + self.url.len() + 1 + object;
        let fits = u16::try_from(length).ok().filter(|_| length <= MOST_BYTES);
        let Some(length) = fits.filter(|_| !self.url.as_bytes().contains(&0)) else { return false };
        out.extend_from_slice(&[self.opcode.number(), VERSION]);
        out.extend_from_slice(&length.to_be_bytes());
        for word in [self.number, self.options, self.option_data] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        out.extend_from_slice(&self.sender.octets());
        if with_requester {
            out.extend_from_slice(&self.requester.octets());
        }
        out.extend_from_slice(self.url.as_bytes());
        out.push(0);
        if self.opcode == Opcode::HitObject {
            // It fits: the whole message does.
            let bytes = u16::try_from(self.object.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&bytes.to_be_bytes());
            out.extend_from_slice(self.object);
        }
        true
    }
}

fn object(after_url: &[u8]) -> Result<&[u8], IcpError> {
    let (length, bytes) = after_url.split_first_chunk::<2>().ok_or(IcpError::Object)?;
    if usize::from(u16::from_be_bytes(*length)) == bytes.len() { Ok(bytes) } else { Err(IcpError::Object) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A query as Squid 5 sends it: number 7, for `http://a/x`.
    const QUERY: &[u8] = b"\x01\x02\x00\x23\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\
        \x7f\x00\x00\x02http://a/x\x00";

    #[test]
    fn a_query_is_read_and_its_response_has_its_number() {
        let query = Message::parse(QUERY).unwrap();
        assert_eq!((query.opcode, query.number, query.url), (Opcode::Query, 7, "http://a/x"));
        assert_eq!(query.requester, Ipv4Addr::new(127, 0, 0, 2));
        let mut response = Vec::new();
        assert!(query.response(Opcode::Hit).write(&mut response));
        assert_eq!(&response[..8], b"\x02\x02\x00\x1f\x00\x00\x00\x07");
        assert_eq!(&response[HEADER_BYTES..], b"http://a/x\0");
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_reason() {
        let changed = |at: usize, to: u8| {
            let mut datagram = QUERY.to_vec();
            datagram[at] = to;
            datagram
        };
        assert_eq!(Message::parse(&QUERY[..19]), Err(IcpError::Short));
        assert_eq!(Message::parse(&changed(1, 3)), Err(IcpError::Version(3)));
        assert_eq!(Message::parse(&changed(0, 5)), Err(IcpError::Opcode(5)));
        assert_eq!(Message::parse(&changed(3, 0x24)), Err(IcpError::Length { said: 0x24, seen: 0x23 }));
        assert_eq!(Message::parse(&changed(34, b'y')), Err(IcpError::Url));
        assert_eq!(Message::parse(&changed(30, 0xff)), Err(IcpError::Url));
    }

    #[test]
    fn what_no_datagram_can_carry_is_not_written() {
        let mut out = Vec::new();
        assert!(!Message::query(1, "http://a/\0").write(&mut out));
        assert!(!Message::query(1, &"u".repeat(MOST_URL_BYTES + 1)).write(&mut out));
        assert!(out.is_empty());
        assert!(Message::query(1, &"u".repeat(MOST_URL_BYTES)).write(&mut out));
        assert_eq!(out.len(), MOST_BYTES);
    }

    proptest! {
        #[test]
        fn every_message_is_read_back_as_it_was_written(
            opcode in proptest::sample::select(&Opcode::ALL[..]),
            words in any::<[u32; 3]>(),
            addresses in any::<[u32; 2]>(),
            url in "[^\0]{0,300}",
            object in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let message = Message {
                opcode,
                number: words[0],
                options: words[1],
                option_data: words[2],
                sender: Ipv4Addr::from(addresses[0]),
                requester: if opcode == Opcode::Query { Ipv4Addr::from(addresses[1]) } else { Ipv4Addr::UNSPECIFIED },
                url: &url,
                object: if opcode == Opcode::HitObject { &object } else { &[] },
            };
            let mut datagram = Vec::new();
            prop_assert!(message.write(&mut datagram));
            prop_assert_eq!(Message::parse(&datagram), Ok(message));
        }

        #[test]
        fn whatever_is_read_is_written_the_same_again(
            opcode in any::<u8>(),
            rest in proptest::collection::vec(any::<u8>(), 0..64),
            is_sound in any::<bool>(),
        ) {
            let mut datagram = [&[opcode, 2, 0, 0], &rest[..]].concat();
            if is_sound {
                datagram.push(0);
                let length = datagram.len() as u16;
                datagram[2..4].copy_from_slice(&length.to_be_bytes());
            }
            if let Ok(message) = Message::parse(&datagram) {
                let mut again = Vec::new();
                prop_assert!(message.write(&mut again));
                // Bytes behind the URL of a response mean nothing, and are not kept.
                prop_assert_eq!(&again[4..], &datagram[4..again.len()]);
            }
        }
    }
}
