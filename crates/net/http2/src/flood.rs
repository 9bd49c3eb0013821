//! Bounds on what a peer can make this side do without requesting anything.
//!
//! Each kind of frame that costs its sender nothing is counted, and so are the streams that came to their regular end. More of
//! the former than a bound, beyond one for each of the latter, end the connection with ENHANCE_YOUR_CALM. There is no clock here:
//! [`Counters::refill`] begins to count anew, and is called once a second by whoever has one.

use thiserror::Error;

/// Streams reset by the peer in a second, beyond those that it let end (rapid reset).
pub const MAX_RESETS: u32 = 200;
/// PING frames, SETTINGS frames, frames of unknown type or of obsolete priorities, and header sections and empty frames on streams
/// that have ended in a second, together.
pub const MAX_CONTROL_FRAMES: u32 = 1000;
/// DATA frames without payload that end nothing, in a second.
pub const MAX_EMPTY_FRAMES: u32 = 200;
/// WINDOW_UPDATE frames in a second, beyond those that are to be expected for what was sent: whoever enlarges windows as it likes
/// sends a few for each stream.
pub const MAX_WINDOW_UPDATES: u32 = 1000;
/// Bytes of DATA for which an update is to be expected, besides those of the frame. Some peers give back what was read on the stream
/// and on the connection with each read; 512 bytes are the smallest buffer in use, so that there are two for these.
const UPDATE_BYTES: usize = 256;
/// Updates to be expected for each DATA frame however short it is, and for each stream that is opened: one for the stream, and one
/// for the connection.
const PAIR_OF_UPDATES: u32 = 2;
/// Upper bound on the updates expected at a time: for 64 MiB of data that a peer reads in the smallest pieces, or gigabytes in usual
/// ones. Without a bound, a long download would allow for a long flood.
const MAX_UPDATES: u32 = (64 << 20) / UPDATE_BYTES as u32;
/// CONTINUATION frames of one header block.
pub const MAX_CONTINUATIONS: u32 = 32;
/// Messages in a second that were malformed, beyond those that were not.
pub const MAX_MALFORMED: u32 = 200;
/// Acknowledgements of PING and SETTINGS frames that the peer has not let go out, however long that takes: one that requests them
/// and reads nothing would have all of them kept (RFC 9113, 10.5).
pub const MAX_PENDING: u32 = 1000;

/// Frames that may still come on a stream that this side has reset, for as long as its peer does not know: an interim response, a
/// response, trailers, and an empty DATA frame.
const LATE_FRAMES: u32 = 4;
/// Upper bound on the late frames expected at a time: there is no need to remember more than the connection does of such streams.
const MAX_LATE_FRAMES: u32 = 1024;

/// Kind of flood.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Flood {
    /// Streams are opened and reset.
    #[error("the peer reset more than {MAX_RESETS} streams in a second, beyond those that ended")]
    Resets,
    /// Frames about the connection.
    #[error(
        "the peer sent more than {MAX_CONTROL_FRAMES} frames in a second that are PING, SETTINGS, unknown, or on ended streams"
    )]
    Control,
    /// Empty DATA frames.
    #[error("the peer sent more than {MAX_EMPTY_FRAMES} empty DATA frames in a second")]
    Empty,
    /// Windows are enlarged in small steps.
    #[error(
        "the peer sent more than {MAX_WINDOW_UPDATES} WINDOW_UPDATE frames in a second, beyond those for the data that it was sent"
    )]
    WindowUpdates,
    /// Pieces of a header block.
    #[error("a header block has more than {MAX_CONTINUATIONS} CONTINUATION frames")]
    Continuations,
    /// Acknowledgements that are not read.
    #[error(
        "the peer requested more than {MAX_PENDING} acknowledgements of PING and SETTINGS frames, and read none of them"
    )]
    Pending,
    #[error(
        "the peer sent more than {MAX_MALFORMED} malformed messages in a second, beyond those that ended"
    )]
    Malformed,
}

/// Counts since the last refill.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    resets: u32,
    control: u32,
    empty: u32,
    malformed: u32,
    /// Beyond those that were expected.
    updates: u32,
    /// Streams that came to their regular end.
    ended: u32,
    /// Of the current header block.
    continuations: u32,
    /// Acknowledgements since all of the output had gone out.
    pending: u32,
    /// Frames that may still come on streams that this side has reset. Not of this second alone: how long they take is unknown.
    late: u32,
    /// WINDOW_UPDATE frames that are to be expected for what was sent, in whatever second they come.
    expected_updates: u32,
}

impl Counters {
    pub(crate) fn refill(&mut self) {
        let Self { continuations, pending, late, expected_updates, .. } = *self;
        *self = Self { continuations, pending, late, expected_updates, ..Self::default() };
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

    /// Counts a stream that this side has reset.
    pub(crate) fn has_reset(&mut self) {
        self.late = (self.late + LATE_FRAMES).min(MAX_LATE_FRAMES);
    }

    /// A frame on a stream that has ended, of which nothing is used.
    pub(crate) fn late(&mut self) -> Result<(), Flood> {
        match self.late.checked_sub(1) {
            Some(rest) => self.late = rest,
            None => self.control()?,
        }
        Ok(())
    }

    /// Counts an acknowledgement that is about to be kept until it goes out.
    pub(crate) fn acknowledges(&mut self) -> Result<(), Flood> {
        self.pending += 1;
        bound(self.pending, MAX_PENDING, Flood::Pending)
    }

    /// All of the output has gone out.
    #[inline]
    pub(crate) fn drained(&mut self) {
        self.pending = 0;
    }

    /// A stream was opened, by either side.
    #[inline]
    pub(crate) fn opened(&mut self) {
        self.sent(0);
    }

    /// Records a sent DATA frame of `bytes` bytes, which the peer will return to the window.
    #[inline]
    pub(crate) fn sent(&mut self, bytes: usize) {
        let more = PAIR_OF_UPDATES + (bytes / UPDATE_BYTES) as u32;
        self.expected_updates = (self.expected_updates + more).min(MAX_UPDATES);
    }

    pub(crate) fn window_update(&mut self) -> Result<(), Flood> {
        match self.expected_updates.checked_sub(1) {
            Some(rest) => self.expected_updates = rest,
            None => {
                self.updates += 1;
                bound(self.updates, MAX_WINDOW_UPDATES, Flood::WindowUpdates)?;
            }
        }
        Ok(())
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
