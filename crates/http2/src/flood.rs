//! Bounds on what a peer can make this side do without requesting anything.
//!
//! Each kind of frame that costs its sender nothing is counted, and so are the streams that came to their regular end. More of
//! the former than a bound, beyond one for each of the latter, end the connection with ENHANCE_YOUR_CALM. There is no clock here:
//! [`Counters::refill`] begins to count anew, and is called once a second by whoever has one.

use thiserror::Error;

/// Streams reset by the peer in a second, beyond those that it let end (rapid reset).
pub const MAX_RESETS: u32 = 200;
/// PING frames, SETTINGS frames, and frames of unknown type or of obsolete priorities in a second, together.
pub const MAX_CONTROL_FRAMES: u32 = 1000;
/// DATA frames without payload that end nothing, in a second.
pub const MAX_EMPTY_FRAMES: u32 = 200;
/// CONTINUATION frames of one header block.
pub const MAX_CONTINUATIONS: u32 = 32;
/// Messages in a second that were malformed, beyond those that were not.
pub const MAX_MALFORMED: u32 = 200;
/// Acknowledgements of PING and SETTINGS frames that the peer has not let go out, however long that takes: one that requests them
/// and reads nothing would have all of them kept (RFC 9113, 10.5).
pub const MAX_PENDING: u32 = 1000;

/// What a peer sends too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Flood {
    /// Streams are opened and reset.
    #[error("the peer reset more than {MAX_RESETS} streams in a second, beyond those that ended")]
    Resets,
    /// Frames about the connection.
    #[error("the peer sent more than {MAX_CONTROL_FRAMES} PING, SETTINGS and unknown frames in a second")]
    Control,
    /// Empty frames.
    #[error("the peer sent more than {MAX_EMPTY_FRAMES} empty DATA frames in a second")]
    Empty,
    /// Pieces of a header block.
    #[error("a header block has more than {MAX_CONTINUATIONS} CONTINUATION frames")]
    Continuations,
    /// Acknowledgements that are not read.
    #[error(
        "the peer requested more than {MAX_PENDING} acknowledgements of PING and SETTINGS frames, and read none of them"
    )]
    Pending,
    /// Malformed messages.
    #[error(
        "the peer sent more than {MAX_MALFORMED} malformed messages in a second, beyond those that ended"
    )]
    Malformed,
}

/// What was counted since the last refill.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    resets: u32,
    control: u32,
    empty: u32,
    malformed: u32,
    /// Streams that came to their regular end.
    ended: u32,
    /// Of the current header block.
    continuations: u32,
    /// Acknowledgements since all of the output had gone out.
    pending: u32,
}

impl Counters {
    /// Counts anew.
    pub(crate) fn refill(&mut self) {
        *self = Self { continuations: self.continuations, pending: self.pending, ..Self::default() };
    }

    /// A stream came to its regular end.
    #[inline]
    pub(crate) fn ended(&mut self) {
        self.ended = self.ended.saturating_add(1);
    }

    pub(crate) fn reset(&mut self) -> Result<(), Flood> {
        self.resets += 1;
        bound(self.resets, MAX_RESETS.saturating_add(self.ended), Flood::Resets)
    }

    pub(crate) fn control(&mut self) -> Result<(), Flood> {
        self.control += 1;
        bound(self.control, MAX_CONTROL_FRAMES, Flood::Control)
    }

    /// One more acknowledgement is about to be kept until it goes out.
    pub(crate) fn acknowledges(&mut self) -> Result<(), Flood> {
        self.pending += 1;
        bound(self.pending, MAX_PENDING, Flood::Pending)
    }

    /// All of the output has gone out.
    #[inline]
    pub(crate) fn drained(&mut self) {
        self.pending = 0;
    }

    pub(crate) fn empty(&mut self) -> Result<(), Flood> {
        self.empty += 1;
        bound(self.empty, MAX_EMPTY_FRAMES, Flood::Empty)
    }

    pub(crate) fn malformed(&mut self) -> Result<(), Flood> {
        self.malformed += 1;
        bound(self.malformed, MAX_MALFORMED.saturating_add(self.ended), Flood::Malformed)
    }

    /// A header block begins.
    #[inline]
    pub(crate) fn block(&mut self) {
        self.continuations = 0;
    }

    pub(crate) fn continuation(&mut self) -> Result<(), Flood> {
        self.continuations += 1;
        bound(self.continuations, MAX_CONTINUATIONS, Flood::Continuations)
    }
}

fn bound(count: u32, most: u32, flood: Flood) -> Result<(), Flood> {
    if count > most { Err(flood) } else { Ok(()) }
}
