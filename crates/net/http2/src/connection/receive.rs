//! Frames from bytes, however they arrive.

use super::event::{Event, Found, FrameResult};
use super::{Connection, KEPT_BYTES, OpenBlock, Reading, Side};
use crate::error::ConnectionError;
use crate::frame::{self, DEFAULT_FRAME_BYTES, FrameHead, HEAD_BYTES, PREFACE, flag, kind};
use crate::message::Section;

impl Connection {
    /// Reads on: how many bytes of `input` are used up, and what was found. To be called again with the rest until it needs
    /// more; the stream and the windows are up to date whenever it returns. After an error the connection must end, when
    /// what is in [`Connection::output`] (a GOAWAY with the reason) is written.
    pub fn next<'e>(&'e mut self, input: &'e [u8]) -> Result<(usize, Event<'e>), ConnectionError> {
        let mut used = 0;
        let found = loop {
            match self.advance(input, &mut used) {
                Ok(Some(found)) => break Some(found),
                Ok(None) if used == input.len() => break None,
                Ok(None) => {}
                Err(error) => {
                    frame::write_go_away(&mut self.out, self.highest_peer_id, error.code());
                    self.refuses_above = Some(self.highest_peer_id);
                    return Err(error);
                }
            }
        };
        let event = match found {
            None => {
                self.release_room();
                Event::NeedMore
            }
            Some(Found::Head { stream, ends }) => Event::Head { stream, head: self.section.head(), ends },
            Some(Found::Interim { stream }) => Event::Interim { stream, head: self.section.head() },
            Some(Found::Trailers { stream }) => Event::Trailers { stream, head: self.section.head() },
            Some(Found::Data { stream, bytes, ends }) => {
                Event::Data { stream, data: &input[used - bytes..used], ends }
            }
            Some(Found::Reset { stream, code }) => Event::Reset { stream, code },
            Some(Found::Failed { stream, error }) => Event::Failed { stream, error },
            Some(Found::GoAway { last, code }) => Event::GoAway { last, code },
            Some(Found::Unprocessed { stream }) => Event::Unprocessed { stream },
            Some(Found::Writable { stream }) => Event::Writable { stream },
            Some(Found::Pong(payload)) => Event::Pong(payload),
            Some(Found::Priority { id }) => Event::Priority { id, value: &self.block },
        };
        Ok((used, event))
    }

    /// Bytes of memory that reading takes, which grow with the longest header section.
    #[inline]
    pub(super) fn room(&self) -> usize {
        self.partial.capacity() + self.block.capacity() + self.section.room() + self.decoder.room()
    }

    /// Lets go of what a long section took, when nothing that was found in it is borrowed any more.
    #[inline]
    fn release_room(&mut self) {
        if self.room() > KEPT_BYTES {
            self.let_go();
        }
    }

    #[cold]
    fn let_go(&mut self) {
        self.section = Section::default();
        self.decoder.release();
        // Parts of frames and blocks of which more is to come remain.
        if self.partial.is_empty() {
            self.partial = Vec::new();
        }
        if self.open_block.is_none() {
            self.block = Vec::new();
        }
    }

    /// One step: part of a frame, or a frame.
    #[inline]
    fn advance(&mut self, input: &[u8], used: &mut usize) -> FrameResult {
        match self.reading {
            Reading::Head => self.read_head(input, used),
            Reading::Payload(head) => self.read_payload(head, input, used),
            Reading::Data { stream, left, padding, ends } => {
                Ok(self.read_data(stream, left, padding, ends, input, used)?)
            }
            Reading::PadLength(head) => {
                let Some(&padding) = input.get(*used) else { return Ok(None) };
                *used += 1;
                let left = (head.length - 1).checked_sub(padding.into()).ok_or(ConnectionError::Padding)?;
                self.give_back(1);
                self.begin_data(head, left, padding.into())
            }
            Reading::Skip(left) => {
                let bytes = (input.len() - *used).min(left as usize);
                *used += bytes;
                self.give_back(bytes as u32);
                self.skip(left - bytes as u32);
                Ok(None)
            }
            Reading::Preface(seen) => {
                let rest = &PREFACE[seen..];
                let bytes = (input.len() - *used).min(rest.len());
                if input[*used..*used + bytes] != rest[..bytes] {
                    return Err(ConnectionError::Preface);
                }
                *used += bytes;
                self.reading =
                    if bytes == rest.len() { Reading::Head } else { Reading::Preface(seen + bytes) };
                Ok(None)
            }
        }
    }

    pub(super) fn skip(&mut self, left: u32) {
        self.reading = if left > 0 { Reading::Skip(left) } else { Reading::Head };
    }

    /// Reads the head of a frame. Streams above the last one of a GOAWAY are told first.
    #[inline]
    fn read_head(&mut self, input: &[u8], used: &mut usize) -> FrameResult {
        if let Some(last) = self.peer_refuses_above
            && let Some(stream) = self.streams.above(last).filter(|_| self.side == Side::Client)
        {
            self.streams.remove(stream);
            return Ok(Some(Found::Unprocessed { stream }));
        }
        let rest = &input[*used..];
        let head = match rest.first_chunk::<HEAD_BYTES>() {
            Some(bytes) if self.partial.is_empty() => {
                *used += HEAD_BYTES;
                FrameHead::parse(bytes)
            }
            _ => {
                let bytes = (HEAD_BYTES - self.partial.len()).min(rest.len());
                self.partial.extend_from_slice(&rest[..bytes]);
                *used += bytes;
                let Some(bytes) = self.partial.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
                let head = FrameHead::parse(bytes);
                self.partial.clear();
                head
            }
        };
        self.check_head(head)?;
        self.frames += u64::from(head.kind == kind::DATA);
        match head.kind {
            kind::DATA => self.take_data(head),
            // There is nothing to wait for.
            _ if head.length == 0 => self.take_frame(head, &[]),
            _ => {
                self.reading = Reading::Payload(head);
                Ok(None)
            }
        }
    }

    /// Checks the rules of all frames.
    fn check_head(&mut self, head: FrameHead) -> Result<(), ConnectionError> {
        if head.length > DEFAULT_FRAME_BYTES {
            return Err(ConnectionError::FrameSize { kind: head.kind, length: head.length });
        }
        if !self.has_peer_settings && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            return Err(ConnectionError::NoSettings);
        }
        match self.open_block {
            Some(OpenBlock { stream, .. }) if head.kind != kind::CONTINUATION || head.stream != stream => {
                Err(ConnectionError::Interrupted { kind: head.kind, stream })
            }
            _ => Ok(()),
        }
    }

    /// Reads the payload of a frame that is acted on as a whole: where it lies, if all of it is there.
    #[inline]
    fn read_payload(&mut self, head: FrameHead, input: &[u8], used: &mut usize) -> FrameResult {
        let rest = &input[*used..];
        let length = head.length as usize;
        if self.partial.is_empty()
            && let Some(payload) = rest.get(..length)
        {
            *used += length;
            self.reading = Reading::Head;
            return self.take_frame(head, payload);
        }
        let bytes = (length - self.partial.len()).min(rest.len());
        self.partial.extend_from_slice(&rest[..bytes]);
        *used += bytes;
        if self.partial.len() < length {
            return Ok(None);
        }
        self.reading = Reading::Head;
        let mut payload = std::mem::take(&mut self.partial);
        let outcome = self.take_frame(head, &payload);
        payload.clear();
        self.partial = payload;
        outcome
    }

    #[inline]
    fn take_frame(&mut self, head: FrameHead, payload: &[u8]) -> FrameResult {
        let is_of_block = matches!(head.kind, kind::HEADERS | kind::CONTINUATION);
        self.frames += u64::from(!is_of_block || head.has(flag::END_HEADERS));
        match head.kind {
            kind::HEADERS => self.take_headers(head, payload),
            kind::CONTINUATION => self.take_continuation(head, payload),
            kind::WINDOW_UPDATE => self.take_window_update(head, payload),
            kind::SETTINGS => self.take_settings(head, payload),
            kind::RST_STREAM => self.take_reset(head, payload),
            kind::PING => self.take_ping(head, payload),
            kind::GOAWAY => self.take_go_away(head, payload),
            kind::PUSH_PROMISE => Err(ConnectionError::Push),
            kind::PRIORITY_UPDATE => self.take_priority_update(head, payload),
            kind::PRIORITY => {
                head.on_stream()?;
                self.flood.control()?;
                match head.length {
                    5 => Ok(None),
                    // A stream error by the RFC; nobody sends this frame but to see what happens.
                    length => Err(ConnectionError::FrameSize { kind: head.kind, length }),
                }
            }
            _ => {
                self.flood.control()?;
                Ok(None)
            }
        }
    }
}
