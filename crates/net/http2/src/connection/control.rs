//! Frames about the connection and about the fate of streams.

use super::event::{Found, FrameResult};
use super::send::RETIRING;
use super::{Connection, Side};
use crate::error::{ConnectionError, ErrorCode, StreamError};
use crate::frame::{self, FrameHead, MAX_31, flag};
use crate::settings;
use crate::stream::Stream;

impl Connection {
    pub(super) fn take_window_update(&mut self, head: FrameHead, payload: &[u8]) -> FrameResult {
        head.of_length(4)?;
        self.flood.window_update()?;
        let bytes = frame::number(payload) & MAX_31;
        if head.stream == 0 {
            if bytes == 0 {
                return Err(ConnectionError::ZeroIncrement);
            }
            self.send_window += i64::from(bytes);
            if self.send_window > i64::from(MAX_31) {
                return Err(ConnectionError::WindowOverflow(0));
            }
            return Ok(Some(Found::Writable { stream: None }));
        }
        let Some(stream) = self.streams.find(head.stream) else {
            return match self.is_idle(head.stream) {
                true => Err(ConnectionError::IdleStream { kind: head.kind, stream: head.stream }),
                // It may come for as long as the peer does not know the end (RFC 9113, 5.1).
                false => Ok(None),
            };
        };
        let Some(state) = self.streams.get_mut(stream) else { return Ok(None) };
        if bytes == 0 {
            return self.fail(stream, StreamError::ZeroIncrement);
        }
        state.send_window += i64::from(bytes);
        if state.send_window > i64::from(MAX_31) {
            return self.fail(stream, StreamError::WindowOverflow);
        }
        Ok(state.sends.then_some(Found::Writable { stream: Some(stream) }))
    }

    pub(super) fn take_settings(&mut self, head: FrameHead, payload: &[u8]) -> FrameResult {
        head.on_connection()?;
        self.flood.control()?;
        if settings::is_ack(head)? {
            // A limit below the default holds from now on.
            self.decoder.set_limit(self.config.table_bytes);
            return Ok(None);
        }
        if !self.has_peer_settings {
            self.has_peer_settings = true;
            // Without a limit among them, there is none.
            self.peer.max_streams = u32::MAX;
        }
        let before = self.peer;
        self.peer.apply(payload)?;
        if self.side == Side::Client && settings::allows_push(payload) {
            return Err(ConnectionError::Setting { id: settings::ENABLE_PUSH, value: 1 });
        }
        self.shift_windows(before.window_bytes, self.peer.window_bytes)
            .map_err(ConnectionError::WindowOverflow)?;
        self.encoder.set_limit(self.peer.header_table_bytes);
        self.flood.acknowledges()?;
        frame::write_settings_ack(&mut self.out);
        Ok(Some(Found::Writable { stream: None }))
    }

    pub(super) fn take_reset(&mut self, head: FrameHead, payload: &[u8]) -> FrameResult {
        head.on_stream()?;
        head.of_length(4)?;
        let Some(stream) = self.streams.find(head.stream) else {
            return match self.is_idle(head.stream) {
                true => Err(ConnectionError::IdleStream { kind: head.kind, stream: head.stream }),
                false => Ok(self.flood.control().map(|()| None)?),
            };
        };
        self.streams.remove(stream);
        self.totals.resets_received += 1;
        // A server that resets streams costs its client nothing.
        if self.side == Side::Server {
            self.flood.reset()?;
        }
        Ok(Some(Found::Reset { stream, code: ErrorCode(frame::number(payload)) }))
    }

    pub(super) fn take_ping(&mut self, head: FrameHead, payload: &[u8]) -> FrameResult {
        head.on_connection()?;
        head.of_length(8)?;
        self.flood.control()?;
        let Some(&payload) = payload.first_chunk() else { return Ok(None) };
        if head.has(flag::ACK) {
            if self.is_retiring && payload == RETIRING {
                self.is_retiring = false;
                self.go_away(ErrorCode::NO_ERROR);
                return Ok(None);
            }
            return Ok(Some(Found::Pong(payload)));
        }
        self.flood.acknowledges()?;
        frame::write_ping(&mut self.out, payload, true);
        Ok(None)
    }

    pub(super) fn take_go_away(&mut self, head: FrameHead, payload: &[u8]) -> FrameResult {
        head.on_connection()?;
        if head.length < 8 {
            return Err(ConnectionError::FrameSize { kind: head.kind, length: head.length });
        }
        self.flood.control()?;
        let last = frame::number(payload) & MAX_31;
        self.totals.goaways_received += 1;
        // A later one must not raise the number (RFC 9113, 6.8).
        self.peer_refuses_above = Some(self.peer_refuses_above.map_or(last, |before| before.min(last)));
        Ok(Some(Found::GoAway { last, code: ErrorCode(frame::number(&payload[4..])) }))
    }

    pub(super) fn take_priority_update(&mut self, head: FrameHead, payload: &[u8]) -> FrameResult {
        head.on_connection()?;
        self.flood.control()?;
        let Some((id, value)) = payload.split_first_chunk::<4>() else {
            return Err(ConnectionError::FrameSize { kind: head.kind, length: head.length });
        };
        let id = u32::from_be_bytes(*id) & MAX_31;
        if self.side == Side::Client || id == 0 {
            return Err(ConnectionError::WrongStream { kind: head.kind, stream: id });
        }
        self.block.clear();
        self.block.extend_from_slice(value);
        Ok(Some(Found::Priority { id }))
    }

    /// Ends a stream because of an error on it.
    pub(super) fn fail(&mut self, stream: Stream, error: StreamError) -> FrameResult {
        self.reset_stream(stream.id, error.code());
        self.flood.malformed()?;
        Ok(Some(Found::Failed { stream, error }))
    }
}
