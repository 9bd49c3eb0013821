//! Output of a connection: requests, responses, data, and the frames about streams.

use thiserror::Error;

use super::{Connection, Side};
use crate::error::{Ended, ErrorCode};
use crate::frame::{self, FrameHead, HEAD_BYTES, MAX_31, flag, kind};
use crate::hpack::Encoder;
use crate::stream::{Body, Stream};

/// Payload of the PING whose acknowledgement shows that the peer knows of the end.
pub(super) const RETIRING: [u8; 8] = *b"retiring";

/// Pseudo-header fields of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    pub method: &'a [u8],
    /// `http` or `https`.
    pub scheme: &'a [u8],
    /// Host and port of the origin.
    pub authority: &'a [u8],
    /// Path and query; `*` for OPTIONS about the server.
    pub path: &'a [u8],
}

/// Failure to open a stream. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotOpened {
    /// As many streams are open as the peer allows: one must end first.
    #[error("as many streams are open as the peer allows")]
    Limit,
    /// No stream will be opened any more: another connection is needed.
    #[error("the connection takes no new streams")]
    Closing,
}

impl Connection {
    /// Sends a request on a new stream; `ends`: it has no body. Names of fields may have upper case, and fields that are
    /// specific to connections of HTTP/1.1 are left out.
    pub fn request<'f>(
        &mut self,
        head: &RequestHead<'_>,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
        ends: bool,
    ) -> Result<Stream, NotOpened> {
        debug_assert_eq!(self.side, Side::Client);
        if self.is_closing() {
            return Err(NotOpened::Closing);
        }
        if self.openable() == 0 {
            return Err(NotOpened::Limit);
        }
        let id = self.next_id;
        self.next_id += 2;
        let mut state = self.new_state(id, head.method == b"HEAD");
        state.sends = !ends;
        let stream = self.streams.insert(state);
        self.totals.streams += 1;
        self.flood.opened();
        self.write_section(id, ends, fields, |encoder, out| {
            encoder.method(head.method, out);
            encoder.scheme(head.scheme, out);
            encoder.authority(head.authority, out);
            encoder.path(head.path, out);
            [
                &b":method"[..],
                head.method,
                b":scheme",
                head.scheme,
                b":authority",
                head.authority,
                b":path",
                head.path,
            ]
            .iter()
            .map(|part| part.len())
            .sum()
        });
        Ok(stream)
    }

    /// Sends the head of a response, or of an interim one (1xx, `ends` false); `ends`: it has no body.
    pub fn respond<'f>(
        &mut self,
        stream: Stream,
        status: u16,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
        ends: bool,
    ) -> Result<(), Ended> {
        debug_assert_eq!(self.side, Side::Server);
        self.begin_sending(stream)?;
        self.write_section(stream.id, ends, fields, |encoder, out| {
            encoder.status(status, out);
            b":status200".len()
        });
        self.end_sending(stream, ends);
        Ok(())
    }

    /// Sends trailers, which end the message.
    pub fn trailers<'f>(
        &mut self,
        stream: Stream,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    ) -> Result<(), Ended> {
        self.begin_sending(stream)?;
        self.write_section(stream.id, true, fields, |_, _| 0);
        self.end_sending(stream, true);
        Ok(())
    }

    /// Sends as much of `data` as the windows allow: how many bytes those were. The message ends with them if all were sent
    /// and `ends` is set. What could not be sent is offered again after [`Event::Writable`](super::Event::Writable).
    pub fn data(&mut self, stream: Stream, data: &[u8], ends: bool) -> Result<usize, Ended> {
        self.begin_sending(stream)?;
        let allowed = self.sendable(stream).min(data.len());
        if allowed < data.len() {
            self.totals.stalls += 1;
        }
        let is_last = ends && allowed == data.len();
        let most = self.peer.max_frame_bytes as usize;
        let mut rest = &data[..allowed];
        loop {
            let (part, behind) = rest.split_at(rest.len().min(most));
            rest = behind;
            let ends = is_last && rest.is_empty();
            if part.is_empty() && !ends {
                break;
            }
            let flags = u8::from(ends) * flag::END_STREAM;
            let head = FrameHead { length: part.len() as u32, kind: kind::DATA, flags, stream: stream.id };
            self.out.reserve(HEAD_BYTES + part.len());
            self.out.extend_from_slice(&head.bytes());
            self.out.extend_from_slice(part);
            self.flood.sent(part.len());
            if rest.is_empty() {
                break;
            }
        }
        self.send_window -= allowed as i64;
        if let Some(state) = self.streams.get_mut(stream) {
            state.send_window -= allowed as i64;
        }
        self.end_sending(stream, is_last);
        Ok(allowed)
    }

    /// Gives back so much of a stream's window, where this side keeps data ([`Config::keeps_data`](super::Config::keeps_data)):
    /// the bytes that were used since the last time. Nothing happens on a stream that has ended.
    pub fn release(&mut self, stream: Stream, bytes: u32) {
        self.give_back_on(stream, bytes);
    }

    /// Ends a stream before its messages are complete. Nothing happens to one that has ended.
    pub fn reset(&mut self, stream: Stream, code: ErrorCode) {
        if self.streams.get(stream).is_some() {
            self.reset_stream(stream.id, code);
        }
    }

    /// Asks the peer whether it is there: [`Event::Pong`](super::Event::Pong) carries the same bytes.
    pub fn ping(&mut self, payload: [u8; 8]) {
        frame::write_ping(&mut self.out, payload, false);
    }

    /// Has the peer open no more streams, and takes those that are on their way (RFC 9113, 6.8). [`Connection::go_away`] follows by itself
    /// when they must have come: when the peer has acknowledged a PING that was sent with this. Until then the connection is not closing.
    pub fn retire(&mut self) {
        if self.refuses_above.is_none() && !std::mem::replace(&mut self.is_retiring, true) {
            frame::write_go_away(&mut self.out, MAX_31, ErrorCode::NO_ERROR);
            frame::write_ping(&mut self.out, RETIRING, false);
        }
    }

    /// Says that no new streams are taken, not even those that are on their way. Those that are open go on to their end.
    pub fn go_away(&mut self, code: ErrorCode) {
        let last = self.highest_peer_id;
        frame::write_go_away(&mut self.out, last, code);
        self.refuses_above = Some(last);
    }

    /// States anew how urgent a request is, in the form of the `priority` field (RFC 9218, 7.1).
    pub fn update_priority(&mut self, stream: Stream, value: &[u8]) {
        frame::write_priority_update(&mut self.out, stream.id, value);
    }

    fn begin_sending(&self, stream: Stream) -> Result<(), Ended> {
        match self.streams.get(stream) {
            Some(state) if state.sends => Ok(()),
            _ => Err(Ended(stream.id)),
        }
    }

    fn end_sending(&mut self, stream: Stream, ends: bool) {
        if !ends {
            return;
        }
        if let Some(state) = self.streams.get_mut(stream) {
            state.sends = false;
        }
        self.forget_if_ended(stream);
    }

    /// Writes a header section: pseudo-header fields by `begin`, which gives their length, then `fields`.
    fn write_section<'f>(
        &mut self,
        id: u32,
        ends: bool,
        fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
        begin: impl FnOnce(&mut Encoder, &mut Vec<u8>) -> usize,
    ) {
        let start = self.out.len();
        self.out.extend_from_slice(&[0; HEAD_BYTES]);
        self.encoder.begin(&mut self.out);
        let mut field_bytes = begin(&mut self.encoder, &mut self.out);
        for (name, value) in fields {
            field_bytes += name.len() + value.len();
            self.encoder.field(name, value, &mut self.out);
        }
        let length = self.out.len() - start - HEAD_BYTES;
        self.totals.fields_sent_bytes += field_bytes as u64;
        self.totals.coded_sent_bytes += length as u64;
        let end_stream = u8::from(ends) * flag::END_STREAM;
        if length <= self.peer.max_frame_bytes as usize {
            let flags = end_stream | flag::END_HEADERS;
            let head = FrameHead { length: length as u32, kind: kind::HEADERS, flags, stream: id };
            self.out[start..start + HEAD_BYTES].copy_from_slice(&head.bytes());
        } else {
            self.split_block(start, id, end_stream);
        }
    }

    /// A header block is longer than a frame may be: the rest of it goes into CONTINUATION frames.
    fn split_block(&mut self, start: usize, id: u32, end_stream: u8) {
        let block = self.out.split_off(start + HEAD_BYTES);
        self.out.truncate(start);
        let parts = block.chunks(self.peer.max_frame_bytes as usize);
        let last = parts.len() - 1;
        for (nth, part) in parts.enumerate() {
            let (kind, first) = if nth == 0 { (kind::HEADERS, end_stream) } else { (kind::CONTINUATION, 0) };
            let flags = if nth == last { first | flag::END_HEADERS } else { first };
            let head = FrameHead { length: part.len() as u32, kind, flags, stream: id };
            self.out.extend_from_slice(&head.bytes());
            self.out.extend_from_slice(part);
        }
    }

    /// Gives what was taken back to the connection's window, once that is half of it.
    #[inline]
    pub(super) fn give_back(&mut self, bytes: u32) {
        self.consumed += bytes;
        if self.consumed >= self.config.connection_window / 2 {
            frame::write_window_update(&mut self.out, 0, self.consumed);
            self.receive_window += i64::from(self.consumed);
            self.consumed = 0;
        }
    }

    /// The same of a stream, unless nothing more comes on it, or all of it may come already.
    #[inline]
    pub(super) fn give_back_on(&mut self, stream: Stream, bytes: u32) {
        let half = self.config.stream_window / 2;
        let Some(state) = self.streams.get_mut(stream) else { return };
        state.consumed += bytes;
        if state.consumed >= half && state.receives && !state.needs_no_update() {
            frame::write_window_update(&mut self.out, stream.id, state.consumed);
            state.receive_window += i64::from(state.consumed);
            state.consumed = 0;
        }
    }

    /// The head of a response says what body must follow.
    pub(super) fn body_of(status: u16, is_head: bool, content_length: Option<u64>) -> Body {
        match content_length {
            _ if is_head || matches!(status, 204 | 304) => Body::None,
            Some(length) => Body::Length(length),
            None => Body::Any,
        }
    }

    /// The peer allows more or less data on each stream than before: all windows change by the difference.
    pub(super) fn shift_windows(&mut self, before: u32, after: u32) -> Result<(), u32> {
        let difference = i64::from(after) - i64::from(before);
        for state in self.streams.states_mut() {
            state.send_window += difference;
            if state.send_window > i64::from(MAX_31) {
                return Err(state.id);
            }
        }
        Ok(())
    }
}
