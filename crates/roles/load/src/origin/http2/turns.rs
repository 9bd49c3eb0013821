//! Bodies of several streams on one connection: a frame of each in turn, as far as windows, pace and socket take them.

use std::io::IoSlice;

use assay_base::clock::monotonic_ns;
use assay_http2::{ErrorCode, Stream};

use super::{Http2Connection, StreamStage, find};
use crate::origin::response_body::SLICES;

/// Output beyond which no more body is put behind it, and nothing more is read that would need a response.
pub(super) const OUTPUT_BYTES: usize = 128 * 1024;
/// Body bytes of one stream before others get their turn: one frame.
const TURN_BYTES: u64 = 16 * 1024;

impl Http2Connection {
    /// Whether a body could go on now.
    pub(super) fn has_turns(&self) -> bool {
        self.wire.output().len() < OUTPUT_BYTES
            && self.turns.iter().any(|stream| {
                let stream_request = self.streams.get(stream.place as usize).and_then(Option::as_ref);
                stream_request.is_some_and(|stream_request| match &stream_request.stage {
                    StreamStage::StreamResponse(sending) => {
                        sending.resume_ns == 0 && self.wire.sendable(*stream) > 0
                    }
                    _ => false,
                })
            })
    }

    /// Puts bodies into the output, a frame of each in turn, as far as windows and the socket take them.
    pub(super) fn send_turns(&mut self) {
        let mut blocked = 0;
        while self.wire.output().len() < OUTPUT_BYTES && blocked < self.turns.len() {
            let Some(stream) = self.turns.pop_front() else { return };
            match self.send_turn(stream) {
                TurnResult::Done => {}
                TurnResult::More => {
                    self.turns.push_back(stream);
                    blocked = 0;
                }
                TurnResult::Blocked => {
                    self.turns.push_back(stream);
                    blocked += 1;
                }
            }
        }
    }

    fn send_turn(&mut self, stream: Stream) -> TurnResult {
        let Some(stream_request) = find(&mut self.streams, stream) else { return TurnResult::Done };
        let complete_ns = stream_request.complete_ns;
        let StreamStage::StreamResponse(sending) = &mut stream_request.stage else { return TurnResult::Done };
        let pool = self.worker.shared.universe.pool();
        let outgoing = sending.response.outgoing(&sending.head);
        let (length, is_aborted) = (outgoing.len(), sending.response.is_aborted());
        let allowed = match &sending.pace {
            Some(pace) => pace.allowed(monotonic_ns()).clamp(sending.at, length),
            None => length,
        };
        let before = sending.at;
        let mut slices = [IoSlice::new(&[]); SLICES];
        let filled = outgoing.slices(pool, before, (allowed - before).min(TURN_BYTES), &mut slices);
        for slice in &slices[..filled] {
            let ends = sending.at + slice.len() as u64 == length && !is_aborted;
            let Ok(sent) = self.wire.data(stream, slice, ends) else { break };
            sending.at += sent as u64;
            if sent < slice.len() {
                break;
            }
        }
        if sending.at == length {
            if is_aborted {
                self.wire.reset(stream, ErrorCode::INTERNAL_ERROR);
            }
            self.used_ns = sending.response.sent(&self.worker, complete_ns, sending.head.len(), length, 0);
            self.take(stream);
            return TurnResult::Done;
        }
        if !self.wire.is_open(stream) {
            self.take(stream);
            return TurnResult::Done;
        }
        if let Some(pace) = &sending.pace
            && sending.at >= allowed
            && sending.resume_ns == 0
        {
            let due_ns = pace.due_ns(sending.at, length);
            sending.resume_ns = due_ns;
            self.wake_at(due_ns);
            return TurnResult::Blocked;
        }
        if sending.at > before { TurnResult::More } else { TurnResult::Blocked }
    }
}

/// Result of a turn.
enum TurnResult {
    /// The response is complete, or its stream has ended.
    Done,
    /// A frame went out.
    More,
    /// A window, or the pace, kept it back.
    Blocked,
}
