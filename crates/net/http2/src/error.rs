//! Errors of connections and streams, with the codes that tell the peer (RFC 9113, 7).

use std::fmt;

use thiserror::Error;

use crate::flood::Flood;
use crate::hpack::{HpackError, MAX_BLOCK_BYTES};
use crate::message::Malformed;

/// An error code, as RST_STREAM and GOAWAY carry it. Unknown ones are kept as they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// Not an error.
    pub const NO_ERROR: Self = Self(0x0);
    /// Against the protocol, in a way that has no code of its own.
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    /// A fault of the sender.
    pub const INTERNAL_ERROR: Self = Self(0x2);
    /// More data than the window allows.
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    /// Settings were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: Self = Self(0x4);
    /// A frame on a stream that has ended.
    pub const STREAM_CLOSED: Self = Self(0x5);
    /// A frame of an impossible length.
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    /// Nothing was done for this stream: its request may be sent again.
    pub const REFUSED_STREAM: Self = Self(0x7);
    /// The stream is no longer needed.
    pub const CANCEL: Self = Self(0x8);
    /// The header compression is out of step.
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    /// A tunnel was lost.
    pub const CONNECT_ERROR: Self = Self(0xa);
    /// The peer causes more work than it requests.
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);
    /// The transport is not secure enough.
    pub const INADEQUATE_SECURITY: Self = Self(0xc);
    /// HTTP/1.1 is needed for this request.
    pub const HTTP_1_1_REQUIRED: Self = Self(0xd);

    /// Name of the code in the RFC; none: it has none.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        NAMES.get(self.0 as usize).copied()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {:#x}", self.0),
        }
    }
}

/// Error of a connection, which must end. A GOAWAY with [`ConnectionError::code`] has been written when it is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// The client does not speak HTTP/2.
    #[error("the connection does not begin with the client preface of HTTP/2 (RFC 9113, 3.4)")]
    Preface,
    /// The first frame is not SETTINGS.
    #[error("the first frame is not SETTINGS")]
    NoSettings,
    /// A frame is longer than our settings allow, or has not the length of its type.
    #[error("a frame of type {kind:#x} has {length} bytes")]
    FrameSize {
        /// Type of the frame.
        kind: u8,
        /// Length of its payload.
        length: u32,
    },
    /// A frame is on stream 0 and must not be, or the other way round.
    #[error("a frame of type {kind:#x} is on stream {stream}")]
    WrongStream {
        /// Type of the frame.
        kind: u8,
        /// The stream that it names.
        stream: u32,
    },
    /// As much padding as payload, or more.
    #[error("the padding of a frame is as long as its payload")]
    Padding,
    /// A frame on a stream that has not been opened.
    #[error("a frame of type {kind:#x} is on stream {stream}, which is idle")]
    IdleStream {
        /// Type of the frame.
        kind: u8,
        /// The stream that it names.
        stream: u32,
    },
    /// A frame on a stream that has ended.
    #[error("a frame of type {kind:#x} is on stream {stream}, which has ended")]
    ClosedStream {
        /// Type of the frame.
        kind: u8,
        /// The stream that it names.
        stream: u32,
    },
    /// A stream is opened with a number that the peer may not use.
    #[error("stream {0} is opened, which is even or below an earlier one")]
    StreamNumber(u32),
    /// A header block is interrupted by another frame.
    #[error("a frame of type {kind:#x} interrupts the header block of stream {stream}")]
    Interrupted {
        /// Type of the frame.
        kind: u8,
        /// The stream whose header block is incomplete.
        stream: u32,
    },
    /// A CONTINUATION without a header block.
    #[error("a CONTINUATION frame continues nothing")]
    Continuation,
    /// A header block is too long.
    #[error("a header block has more than {MAX_BLOCK_BYTES} bytes")]
    BlockTooLong,
    /// A header block cannot be decoded.
    #[error("{0}")]
    Hpack(#[from] HpackError),
    /// A setting has an impossible value.
    #[error("setting {id:#x} is {value}")]
    Setting {
        /// Number of the setting.
        id: u16,
        value: u32,
    },
    /// A window grows beyond 2^31 − 1.
    #[error("the window of stream {0} grows beyond 2^31 - 1 bytes")]
    WindowOverflow(u32),
    /// More data than the connection's window allows.
    #[error("there is more data than the connection's window allows")]
    FlowControl,
    /// An update of the connection's window by nothing.
    #[error("the connection's window is updated by 0 bytes")]
    ZeroIncrement,
    /// A pushed response, which our settings forbid.
    #[error("a response is pushed, which the settings forbid")]
    Push,
    /// The peer causes more work than it requests.
    #[error("{0}")]
    Flood(#[from] Flood),
}

impl ConnectionError {
    /// The code that tells the peer.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::FrameSize { .. } => ErrorCode::FRAME_SIZE_ERROR,
            Self::ClosedStream { .. } => ErrorCode::STREAM_CLOSED,
            Self::Hpack(_) => ErrorCode::COMPRESSION_ERROR,
            Self::BlockTooLong | Self::Flood(_) => ErrorCode::ENHANCE_YOUR_CALM,
            Self::WindowOverflow(_) | Self::FlowControl => ErrorCode::FLOW_CONTROL_ERROR,
            Self::Setting { id, .. } if id == crate::settings::INITIAL_WINDOW_SIZE => {
                ErrorCode::FLOW_CONTROL_ERROR
            }
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }
}

/// Error of one stream, which must end while its connection goes on. A RST_STREAM with [`StreamError::code`] has been written when it is
/// returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum StreamError {
    /// The message is malformed.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// More data than the stream's window allows.
    #[error("there is more data than the window of the stream allows")]
    FlowControl,
    /// The stream's window grows beyond 2^31 − 1.
    #[error("the window of the stream grows beyond 2^31 - 1 bytes")]
    WindowOverflow,
    /// An update of the stream's window by nothing.
    #[error("the window of the stream is updated by 0 bytes")]
    ZeroIncrement,
    /// A frame after the end of the message.
    #[error("there are frames after the end of the message")]
    AfterEnd,
}

impl StreamError {
    /// The code that tells the peer.
    pub fn code(self) -> ErrorCode {
        match self {
            Self::Malformed(_) | Self::ZeroIncrement => ErrorCode::PROTOCOL_ERROR,
            Self::FlowControl | Self::WindowOverflow => ErrorCode::FLOW_CONTROL_ERROR,
            Self::AfterEnd => ErrorCode::STREAM_CLOSED,
        }
    }
}

/// A frame was not written: the stream has ended, by its peer, by this side, or with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("stream {0} has ended, or its message has")]
pub struct Ended(pub u32);
