//! Frames: their heads, their flags, and how each is written (RFC 9113, 4 and 6).
//!
//! *Does not:* know streams or windows. Payloads are taken apart where they are acted on; what they have in common (padding,
//! the obsolete priority of HEADERS) is here.

use crate::error::{ConnectionError, ErrorCode};

/// Client preface (RFC 9113, 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Length of a frame's head.
pub const HEAD_BYTES: usize = 9;
/// Longest payload that every endpoint accepts, and the shortest limit that a setting may state.
pub const DEFAULT_FRAME_BYTES: u32 = 16_384;
/// Longest payload that a setting may allow.
pub const MAX_FRAME_BYTES: u32 = (1 << 24) - 1;
/// Largest window, and largest stream number.
pub const MAX_31: u32 = (1 << 31) - 1;

/// Type of a frame; those that are not named here are ignored.
pub mod kind {
    /// Payload of a message.
    pub const DATA: u8 = 0x0;
    /// A header section, or its beginning.
    pub const HEADERS: u8 = 0x1;
    pub const PRIORITY: u8 = 0x2;
    /// The end of a stream, before its message is complete.
    pub const RST_STREAM: u8 = 0x3;
    /// Settings of the sender.
    pub const SETTINGS: u8 = 0x4;
    /// A response without a request.
    pub const PUSH_PROMISE: u8 = 0x5;
    /// Whether the peer is there.
    pub const PING: u8 = 0x6;
    /// The sender takes no new streams.
    pub const GOAWAY: u8 = 0x7;
    /// More data may be sent.
    pub const WINDOW_UPDATE: u8 = 0x8;
    /// More of a header section.
    pub const CONTINUATION: u8 = 0x9;
    /// The priority of a request has changed (RFC 9218, 7.1).
    pub const PRIORITY_UPDATE: u8 = 0x10;
}

pub mod flag {
    /// The last frame of a message, of DATA and HEADERS.
    pub const END_STREAM: u8 = 0x1;
    /// Of SETTINGS and PING.
    pub const ACK: u8 = 0x1;
    /// The last frame of a header block.
    pub const END_HEADERS: u8 = 0x4;
    /// The payload is padded.
    pub const PADDED: u8 = 0x8;
    /// HEADERS begins with an obsolete priority.
    pub const PRIORITY: u8 = 0x20;
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    pub length: u32,
    pub kind: u8,
    /// Flags; what they mean depends on the type.
    pub flags: u8,
    /// Stream; 0: the connection.
    pub stream: u32,
}

impl FrameHead {
    #[inline]
    pub fn parse(bytes: &[u8; HEAD_BYTES]) -> Self {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = *bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes([s0, s1, s2, s3]) & MAX_31,
        }
    }

    /// The head as it is sent.
    #[inline]
    pub fn bytes(self) -> [u8; HEAD_BYTES] {
        let [_, a, b, c] = self.length.to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s0, s1, s2, s3]
    }

    /// Whether a flag is set.
    #[inline]
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// An error unless it is on a stream.
    #[inline]
    pub(crate) fn on_stream(self) -> Result<(), ConnectionError> {
        match self.stream {
            0 => Err(ConnectionError::WrongStream { kind: self.kind, stream: 0 }),
            _ => Ok(()),
        }
    }

    /// An error unless it is about the connection.
    pub(crate) fn on_connection(self) -> Result<(), ConnectionError> {
        match self.stream {
            0 => Ok(()),
            stream => Err(ConnectionError::WrongStream { kind: self.kind, stream }),
        }
    }

    /// An error unless its payload has this length.
    pub(crate) fn of_length(self, expected: u32) -> Result<(), ConnectionError> {
        match self.length {
            length if length == expected => Ok(()),
            length => Err(ConnectionError::FrameSize { kind: self.kind, length }),
        }
    }

    /// The header block fragment in the payload of HEADERS, without padding and priority (RFC 9113, 6.2).
    pub(crate) fn fragment(self, mut payload: &[u8]) -> Result<&[u8], ConnectionError> {
        let too_short = ConnectionError::FrameSize { kind: self.kind, length: self.length };
        let mut padding = 0;
        if self.has(flag::PADDED) {
            let (&length, rest) = payload.split_first().ok_or(too_short)?;
            (padding, payload) = (usize::from(length), rest);
        }
        if self.has(flag::PRIORITY) {
            payload = payload.get(5..).ok_or(too_short)?;
        }
        let end = payload.len().checked_sub(padding).ok_or(ConnectionError::Padding)?;
        Ok(&payload[..end])
    }
}

/// The first four bytes of a payload, as a number.
pub(crate) fn number(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&FrameHead { length: payload.len() as u32, kind, flags, stream }.bytes());
    out.extend_from_slice(payload);
}

/// Appends the acknowledgement of SETTINGS.
pub fn write_settings_ack(out: &mut Vec<u8>) {
    write(out, kind::SETTINGS, flag::ACK, 0, &[]);
}

pub fn write_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    write(out, kind::RST_STREAM, 0, stream, &code.0.to_be_bytes());
}

pub fn write_window_update(out: &mut Vec<u8>, stream: u32, bytes: u32) {
    write(out, kind::WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
}

/// Appends PING, or its acknowledgement.
pub fn write_ping(out: &mut Vec<u8>, payload: [u8; 8], is_ack: bool) {
    write(out, kind::PING, u8::from(is_ack) * flag::ACK, 0, &payload);
}

/// Appends GOAWAY: `last` is the highest stream that may have been acted on.
pub fn write_go_away(out: &mut Vec<u8>, last: u32, code: ErrorCode) {
    let mut payload = [0; 8];
    payload[..4].copy_from_slice(&last.to_be_bytes());
    payload[4..].copy_from_slice(&code.0.to_be_bytes());
    write(out, kind::GOAWAY, 0, 0, &payload);
}

/// Appends PRIORITY_UPDATE: the `priority` of a request, as its field would state it (RFC 9218, 7.1).
pub fn write_priority_update(out: &mut Vec<u8>, stream: u32, value: &[u8]) {
    let length = 4 + value.len() as u32;
    out.extend_from_slice(&FrameHead { length, kind: kind::PRIORITY_UPDATE, flags: 0, stream: 0 }.bytes());
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn padding_and_priority_are_not_part_of_a_header_block() {
        let head = |flags, length| FrameHead { length, kind: kind::HEADERS, flags, stream: 1 };
        let both = flag::PADDED | flag::PRIORITY;
        assert_eq!(head(both, 10).fragment(b"\x02\0\0\0\x03\x10ab\0\0"), Ok(&b"ab"[..]));
        assert_eq!(head(0, 2).fragment(b"ab"), Ok(&b"ab"[..]));
        assert_eq!(head(flag::PADDED, 2).fragment(b"\x01a"), Ok(&b""[..]));
        assert_eq!(head(flag::PADDED, 2).fragment(b"\x02a"), Err(ConnectionError::Padding));
        for (flags, payload) in [(flag::PADDED, &b""[..]), (flag::PRIORITY, b"abcd")] {
            let length = payload.len() as u32;
            let too_short = ConnectionError::FrameSize { kind: kind::HEADERS, length };
            assert_eq!(head(flags, length).fragment(payload), Err(too_short));
        }
    }

    proptest! {
        #[test]
        fn a_head_that_is_written_is_read_back(
            length in 0..=MAX_FRAME_BYTES, kind in any::<u8>(), flags in any::<u8>(), stream in 0..=MAX_31,
        ) {
            let head = FrameHead { length, kind, flags, stream };
            prop_assert_eq!(FrameHead::parse(&head.bytes()), head);
        }
    }
}
