//! Events of a connection.

use crate::error::{ConnectionError, ErrorCode, StreamError};
use crate::message::Head;
use crate::stream::Stream;

/// Result of [`Connection::next`](super::Connection::next).
#[derive(Debug)]
pub enum Event<'e> {
    /// All input is used up.
    NeedMore,
    /// The head of a request, or of a final response; `ends`: there is no body.
    Head {
        stream: Stream,
        head: Head<'e>,
        /// The message is complete.
        ends: bool,
    },
    /// An interim response (1xx): the final one comes after it.
    Interim { stream: Stream, head: Head<'e> },
    /// Payload of a message. Its windows are given back by themselves.
    Data {
        stream: Stream,
        /// The bytes; empty at the end of a message only.
        data: &'e [u8],
        /// The message is complete.
        ends: bool,
    },
    /// Trailers: the message is complete.
    Trailers { stream: Stream, head: Head<'e> },
    /// The peer has ended a stream before its messages were complete. With REFUSED_STREAM, nothing was done for the request.
    Reset { stream: Stream, code: ErrorCode },
    /// A stream that this side has reset because of an error on it. One that was refused when it was opened has no place: only its number
    /// is meant.
    Failed { stream: Stream, error: StreamError },
    /// The peer takes no new streams. [`Event::Unprocessed`] follows for each open stream on which it will do nothing.
    GoAway {
        /// Highest stream that it may have acted on.
        last: u32,
        code: ErrorCode,
    },
    /// Nothing was done for the request of this stream, which has ended: it may be sent again, on another connection.
    Unprocessed { stream: Stream },
    /// More data may be sent on one stream, or on all.
    Writable {
        /// The stream; none: any.
        stream: Option<Stream>,
    },
    /// The peer is there: the bytes of our PING.
    Pong([u8; 8]),
    /// A client states anew how urgent one of its requests is (RFC 9218, 7.1).
    Priority {
        /// The stream of that request, which may have ended, or not yet begun.
        id: u32,
        /// The value, in the form of the `priority` field.
        value: &'e [u8],
    },
}

/// An [`Event`] before anything is borrowed for it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found {
    Head {
        stream: Stream,
        ends: bool,
    },
    Interim {
        stream: Stream,
    },
    Trailers {
        stream: Stream,
    },
    /// Data at the end of the used input.
    Data {
        stream: Stream,
        bytes: usize,
        ends: bool,
    },
    Reset {
        stream: Stream,
        code: ErrorCode,
    },
    Failed {
        stream: Stream,
        error: StreamError,
    },
    GoAway {
        last: u32,
        code: ErrorCode,
    },
    Unprocessed {
        stream: Stream,
    },
    Writable {
        stream: Option<Stream>,
    },
    Pong([u8; 8]),
    /// The value is in `block`.
    Priority {
        id: u32,
    },
}

/// Result of a frame: an event, or none.
pub(super) type FrameResult = Result<Option<Found>, ConnectionError>;
