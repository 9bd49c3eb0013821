//! Header sections: streams that they open, responses, trailers.

use super::event::{Found, FrameResult};
use super::{Connection, OpenBlock, Side};
use crate::error::{ConnectionError, ErrorCode, StreamError};
use crate::frame::{FrameHead, flag};
use crate::hpack::{FIELD_OVERHEAD_BYTES, MAX_BLOCK_BYTES};
use crate::message::{Malformed, Place};
use crate::stream::{Body, Stream};

impl Connection {
    #[inline]
    pub(super) fn take_headers(&mut self, head: FrameHead, payload: &[u8]) -> FrameResult {
        head.on_stream()?;
        let fragment = head.fragment(payload)?;
        let ends = head.has(flag::END_STREAM);
        self.flood.block();
        if head.has(flag::END_HEADERS) {
            return self.take_section(head, fragment, ends);
        }
        self.open_block = Some(OpenBlock { stream: head.stream, ends });
        self.block.clear();
        self.block.extend_from_slice(fragment);
        Ok(None)
    }

    pub(super) fn take_continuation(&mut self, head: FrameHead, payload: &[u8]) -> FrameResult {
        let Some(OpenBlock { ends, .. }) = self.open_block else { return Err(ConnectionError::Continuation) };
        self.flood.continuation()?;
        if self.block.len() + payload.len() > MAX_BLOCK_BYTES {
            return Err(ConnectionError::BlockTooLong);
        }
        self.block.extend_from_slice(payload);
        if !head.has(flag::END_HEADERS) {
            return Ok(None);
        }
        self.open_block = None;
        let block = std::mem::take(&mut self.block);
        let outcome = self.take_section(head, &block, ends);
        self.block = block;
        outcome
    }

    /// A header section is complete. It is decoded whatever becomes of it, so that the tables stay in step.
    #[inline]
    pub(super) fn take_section(&mut self, head: FrameHead, block: &[u8], ends: bool) -> FrameResult {
        let found = self.streams.find(head.stream);
        let opens = found.is_none() && self.opens_stream(head)?;
        let has_head = found.and_then(|stream| self.streams.get(stream)).is_some_and(|state| state.has_head);
        let place = match self.side {
            _ if has_head => Place::Trailers,
            Side::Server => Place::Request,
            Side::Client => Place::Response,
        };
        let checked = self.decode(place, block)?;
        match found {
            Some(stream) => match self.take_part(stream, place, checked, ends) {
                Ok(found) => Ok(Some(found)),
                Err(error) => self.fail(stream, error),
            },
            None if opens => self.open_stream(head.stream, checked, ends),
            None => Ok(self.flood.late().map(|()| None)?),
        }
    }

    pub(super) fn decode(
        &mut self,
        place: Place,
        block: &[u8],
    ) -> Result<Result<(), Malformed>, ConnectionError> {
        let Self { section, decoder, config, .. } = self;
        section.clear();
        let mut fields = 0;
        decoder.decode(block, |field| {
            fields += 1;
            section.push(place, config.max_section_bytes, field);
        })?;
        let overhead = fields * FIELD_OVERHEAD_BYTES;
        self.totals.fields_received_bytes += (section.field_bytes() - overhead) as u64;
        self.totals.coded_received_bytes += block.len() as u64;
        Ok(section.finish(place))
    }

    /// Whether a section on a stream that is not open opens it; else it is to be passed over.
    pub(super) fn opens_stream(&mut self, head: FrameHead) -> Result<bool, ConnectionError> {
        let id = head.stream;
        if self.side == Side::Server && id > self.highest_peer_id {
            if id.is_multiple_of(2) {
                return Err(ConnectionError::StreamNumber(id));
            }
            self.highest_peer_id = id;
            return Ok(self.refuses_above.is_none());
        }
        if self.side == Side::Client && id.is_multiple_of(2) {
            return Err(ConnectionError::StreamNumber(id));
        }
        self.on_ended(head)?;
        Ok(false)
    }

    /// A request has come.
    pub(super) fn open_stream(&mut self, id: u32, checked: Result<(), Malformed>, ends: bool) -> FrameResult {
        self.totals.streams += 1;
        if self.streams.len() >= self.config.max_streams as usize {
            self.reset_stream(id, ErrorCode::REFUSED_STREAM);
            self.flood.reset()?;
            return Ok(None);
        }
        let head = self.section.head();
        let (is_head, body) =
            (head.method() == "HEAD", head.content_length().map_or(Body::Any, Body::Length));
        let mut state = self.new_state(id, is_head);
        (state.has_head, state.body, state.receives) = (true, body, !ends);
        let is_whole = if ends { checked.and_then(|()| state.finish()) } else { checked };
        let stream = self.streams.insert(state);
        self.flood.opened();
        match is_whole {
            Ok(()) => Ok(Some(Found::Head { stream, ends })),
            Err(malformed) => self.fail(stream, malformed.into()),
        }
    }

    /// A section on an open stream: a response, an interim one, or trailers.
    #[inline]
    pub(super) fn take_part(
        &mut self,
        stream: Stream,
        place: Place,
        checked: Result<(), Malformed>,
        ends: bool,
    ) -> Result<Found, StreamError> {
        let head = self.section.head();
        let (status, content_length) = (head.status(), head.content_length());
        let Some(state) = self.streams.get_mut(stream) else { return Ok(Found::Trailers { stream }) };
        if !state.receives {
            return Err(StreamError::AfterEnd);
        }
        checked?;
        if place == Place::Trailers {
            if !ends {
                return Err(Malformed::Trailers.into());
            }
            state.finish()?;
            self.end_receiving(stream);
            return Ok(Found::Trailers { stream });
        }
        if status < 200 {
            return if ends { Err(Malformed::NoResponse.into()) } else { Ok(Found::Interim { stream }) };
        }
        state.has_head = true;
        state.body = Self::body_of(status, state.is_head, content_length);
        if ends {
            state.finish()?;
            self.end_receiving(stream);
        }
        Ok(Found::Head { stream, ends })
    }

    /// A frame on a stream that is not open: an error unless it has ended and its peer cannot know yet.
    pub(super) fn on_ended(&self, head: FrameHead) -> Result<(), ConnectionError> {
        let FrameHead { kind, stream, .. } = head;
        if self.is_idle(stream) {
            return Err(ConnectionError::IdleStream { kind, stream });
        }
        let may_be_late = self.was_reset(stream)
            || self.refuses_above.is_some_and(|last| stream > last)
            || self.peer_refuses_above.is_some_and(|last| stream > last);
        if may_be_late { Ok(()) } else { Err(ConnectionError::ClosedStream { kind, stream }) }
    }

    pub(super) fn is_idle(&self, id: u32) -> bool {
        match (self.side, id % 2 == 1) {
            (Side::Client, true) => id >= self.next_id,
            (Side::Server, true) => id > self.highest_peer_id,
            // Nobody opens even ones: pushing is not allowed.
            (_, false) => true,
        }
    }
}
