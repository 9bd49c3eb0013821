//! DATA frames, and the windows that they use up.

use super::event::{Found, FrameResult};
use super::{Connection, Reading};
use crate::error::{ConnectionError, StreamError};
use crate::frame::{FrameHead, flag};
use crate::message::Malformed;
use crate::stream::Stream;

impl Connection {
    /// A DATA frame begins: all of it counts for the windows, whatever becomes of it.
    pub(super) fn take_data(&mut self, head: FrameHead) -> FrameResult {
        head.on_stream()?;
        let length = i64::from(head.length);
        if length > self.receive_window {
            return Err(ConnectionError::FlowControl);
        }
        self.receive_window -= length;
        if head.has(flag::PADDED) {
            if head.length == 0 {
                return Err(ConnectionError::FrameSize { kind: head.kind, length: 0 });
            }
            self.reading = Reading::PadLength(head);
            return Ok(None);
        }
        self.begin_data(head, head.length, 0)
    }

    /// The head of a DATA frame is complete: `left` bytes of payload follow, then `padding`.
    pub(super) fn begin_data(&mut self, head: FrameHead, left: u32, padding: u32) -> FrameResult {
        let Some(stream) = self.streams.find(head.stream) else {
            self.skip(left + padding);
            self.on_ended(head)?;
            if left == 0 {
                self.flood.late()?;
            }
            return Ok(None);
        };
        let ends = head.has(flag::END_STREAM);
        if left == 0 && !ends {
            self.flood.empty()?;
        }
        if let Err(error) = self.admit_data(stream, head, left, ends) {
            self.skip(left + padding);
            return self.fail(stream, error);
        }
        // Padding, and the byte with its length, are consumed already.
        self.give_back_on(stream, head.length - left);
        match (left, ends) {
            (0, false) => {
                self.skip(padding);
                Ok(None)
            }
            (0, true) => {
                self.skip(padding);
                self.end_receiving(stream);
                Ok(Some(Found::Data { stream, bytes: 0, ends }))
            }
            _ => {
                self.reading = Reading::Data { stream, left, padding, ends };
                Ok(None)
            }
        }
    }

    /// Whether a DATA frame may stand where it does.
    pub(super) fn admit_data(
        &mut self,
        stream: Stream,
        head: FrameHead,
        left: u32,
        ends: bool,
    ) -> Result<(), StreamError> {
        let Some(state) = self.streams.get_mut(stream) else { return Ok(()) };
        if !state.receives {
            return Err(StreamError::AfterEnd);
        }
        if i64::from(head.length) > state.receive_window {
            return Err(StreamError::FlowControl);
        }
        state.receive_window -= i64::from(head.length);
        if !state.has_head {
            return Err(Malformed::NoResponse.into());
        }
        state.count_data(left.into())?;
        if ends {
            state.finish()?;
        }
        Ok(())
    }

    /// Payload of a DATA frame that was admitted.
    pub(super) fn read_data(
        &mut self,
        stream: Stream,
        left: u32,
        padding: u32,
        ends: bool,
        input: &[u8],
        used: &mut usize,
    ) -> FrameResult {
        let bytes = (input.len() - *used).min(left as usize);
        if bytes == 0 {
            return Ok(None);
        }
        *used += bytes;
        let left = left - bytes as u32;
        self.give_back(bytes as u32);
        // It may have been reset in the middle of a frame.
        let is_open = self.streams.get(stream).is_some();
        let is_end = left == 0 && ends;
        if left > 0 {
            self.reading = Reading::Data { stream, left, padding, ends };
        } else {
            self.skip(padding);
        }
        if !is_open {
            return Ok(None);
        }
        if is_end {
            self.end_receiving(stream);
        } else if !self.config.keeps_data {
            self.give_back_on(stream, bytes as u32);
        }
        Ok(Some(Found::Data { stream, bytes, ends: is_end }))
    }

    pub(super) fn end_receiving(&mut self, stream: Stream) {
        if let Some(state) = self.streams.get_mut(stream) {
            state.receives = false;
        }
        self.forget_if_ended(stream);
    }
}
