//! Robots over HTTP/2: requests go out as streams of one connection for each destination.
//!
//! The choice for a request is, in this order: a connection to its destination on which the peer allows one more stream, be it
//! idle, busy or still being opened; none at all if there is one, but all its streams are taken: the request waits; else a new
//! connection. `pconn_use_lmt` counts streams, `open_conn_lmt` connections, and `pipeline_depth` does not apply.
//!
//! What the target has not acted on (REFUSED_STREAM, or a stream above the last one of a GOAWAY) is sent again at once, counted as
//! a retry, [`MOST_REFUSALS`] times at most. Other resets are errors, unless they are a fault on purpose that the target has passed on.

use std::fmt::Display;
use std::io;

use assay_http2::{ConnectionError, ErrorCode, Event, RequestHead as WireHead, Stream};
use assay_measurement::error_kind::ErrorKind;
use assay_workload::mark;

use super::connecting::write;
use super::connection::{ConnectionKey, ConnectionList, RobotConnection};
use super::features::ResponseKind;
use super::judge::HeadJudge;
use super::request::WrittenRequest;
use super::response::{FinishedResponse, ResponseReader};
use super::response_error::ResponseError;
use super::streams::StreamExchange;
use super::worker::{ReleasedXact, RobotKey, Trigger, Worker};
use super::xact::{XactKey, XactQueue};
use crate::tally::method_name;
use assay_base::clock::monotonic_ns;

/// Most times that a request is sent again because the target did not act on it. A target that allows one stream at a
/// time refuses all but one of those that a new connection begins with, as its settings are not known yet: as many as
/// that may be.
const MOST_REFUSALS: u8 = 100;

/// Event on a stream, or on its connection.
#[derive(Debug)]
enum StreamEvent {
    /// Nothing that anybody waits for.
    Nothing,
    /// All bytes are used up.
    NeedMore,
    /// More of a response.
    Progress(Stream),
    /// A response is complete, and right.
    Complete(Stream),
    /// A response is wrong.
    Invalid(Stream, ResponseError),
    /// The target ended the stream.
    Reset(Stream, ErrorCode),
    /// The target did not act on the request.
    Unprocessed(Stream),
    /// The target broke the rules of HTTP/2 on this stream.
    Broken(Stream, assay_http2::StreamError),
    /// More may be sent.
    Writable,
}

impl Worker {
    /// Submits a request of a robot that speaks HTTP/2.
    pub fn submit_on_stream(&mut self, xact_key: XactKey, trigger: &Trigger) {
        let xact = &self.xacts[xact_key];
        let robot = xact.robot;
        let destination = self.setup.route(xact.id.robot, xact.object.id.origin).destination;
        match self.connection_with_streams(robot, destination) {
            StreamCapacity::Available(connection_key) => {
                return self.send_on_stream(connection_key, xact_key, trigger);
            }
            StreamCapacity::Exhausted => return self.enqueue(xact_key, trigger),
            StreamCapacity::NoConnection => {}
        }
        let state = &self.robots[robot];
        if state.open >= self.setup.groups[usize::from(state.group)].open_limit {
            let Some(oldest) = state.idle.last else { return self.enqueue(xact_key, trigger) };
            self.close(oldest);
        }
        self.open(xact_key, XactQueue::default(), trigger);
    }

    /// Sends an xact that was under way once more: whatever the limits are, as it counts as sent.
    pub fn resubmit_on_stream(&mut self, xact_key: XactKey, trigger: &Trigger) {
        let xact = &self.xacts[xact_key];
        let destination = self.setup.route(xact.id.robot, xact.object.id.origin).destination;
        match self.connection_with_streams(xact.robot, destination) {
            StreamCapacity::Available(connection_key) => {
                self.send_on_stream(connection_key, xact_key, trigger);
            }
            StreamCapacity::Exhausted | StreamCapacity::NoConnection => {
                self.open(xact_key, XactQueue::default(), trigger);
            }
        }
    }

    /// Finds a connection of the robot to a destination that goes on.
    fn connection_with_streams(&self, robot: RobotKey, destination: u16) -> StreamCapacity {
        let state = &self.robots[robot];
        let mut found = StreamCapacity::NoConnection;
        for first in [state.pipelining.first, state.idle.first] {
            for (key, connection) in self.connections.list(first) {
                if let Some(streams) = &connection.streams
                    && connection.destination == destination
                    && connection.uses_left > 0
                    && !streams.wire.is_closing()
                {
                    if streams.wire.openable() > 0 {
                        return StreamCapacity::Available(key);
                    }
                    found = StreamCapacity::Exhausted;
                }
            }
        }
        found
    }

    /// Sends a request on a new stream of a connection that has room.
    pub fn send_on_stream(&mut self, connection_key: ConnectionKey, xact_key: XactKey, trigger: &Trigger) {
        self.mark_sent(xact_key, monotonic_ns(), trigger);
        let mut output = self.network.take_output();
        self.put_request(xact_key, false, &mut output);
        let connection = &mut self.connections[connection_key];
        let is_established = connection.is_established();
        let RobotConnection { streams, uses_left, serial, is_fresh, transport, .. } = connection;
        let xact = &mut self.xacts[xact_key];
        let (Some(streams), Some(request)) = (streams, WrittenRequest::split(&output)) else { return };
        let is_first = *is_fresh && streams.load == 0;
        let may_flush = is_established && !streams.is_receiving;
        *uses_left = uses_left.saturating_sub(1);
        xact.connection = Some(*serial);
        let phase = xact.phase;
        let head = WireHead {
            method: request.method,
            scheme: if transport.is_tls() { b"https" } else { b"http" },
            authority: &self.setup.route(xact.id.robot, xact.object.id.origin).authority,
            path: request.target,
        };
        // The connection had room.
        if let Ok(stream) = streams.wire.request(&head, request.fields(), request.body.is_empty()) {
            let sent = match request.body {
                [] => 0,
                body => streams.wire.data(stream, body, true).unwrap_or(0),
            };
            streams.put(StreamExchange {
                xact: xact_key,
                stream,
                response: ResponseReader::default(),
                upload: request.body[sent..].to_vec(),
            });
        }
        self.network.put_output(output);
        self.recorder.counts(phase).on_reused_connection += u64::from(!is_first);
        self.connections.link(connection_key, ConnectionList::Pipelining, &mut self.robots);
        if may_flush {
            self.flush_streams(connection_key);
        }
    }

    /// Writes what a connection has to say, as far as the socket takes it.
    pub fn flush_streams(&mut self, connection_key: ConnectionKey) {
        let phase = self.phase();
        let RobotConnection { streams, transport, .. } = &mut self.connections[connection_key];
        let Some(streams) = streams else { return };
        if transport.has_unsent() && transport.flush().is_err() {
            // Where there is no room, the system tells when there is.
            return;
        }
        let output = streams.wire.output();
        if output.is_empty() {
            return;
        }
        // Where it fails, reading tells what has become of the connection, and what came before.
        if let Ok(written) = write(transport, output) {
            streams.wire.wrote(written);
            self.recorder.counts(phase).wire_bytes_out += written as u64;
        }
    }

    /// Handles bytes that came on a connection with streams. Returns the number of responses that came to their end.
    pub fn receive_on_streams(
        &mut self,
        connection_key: ConnectionKey,
        bytes: &[u8],
        now_ns: u64,
        trigger: &Trigger,
    ) -> u32 {
        let robot = self.connections[connection_key].robot;
        self.recorder.counts(self.schedule.phase()).wire_bytes_in += bytes.len() as u64;
        // Requests that follow from responses are only queued meanwhile: they are written together below.
        self.set_receiving(connection_key, true);
        let (mut responses, mut released) = (0, None::<ReleasedXact>);
        let mut rest = bytes;
        loop {
            match self.next_stream_event(connection_key, rest, now_ns, trigger) {
                Ok((used, event)) => {
                    rest = &rest[used..];
                    if matches!(event, StreamEvent::NeedMore) {
                        break;
                    }
                    if let Some(xact) = self.handle_event(connection_key, event, now_ns, trigger) {
                        responses += 1;
                        released = Some(released.map_or(xact, |other| other.either(xact)));
                    }
                }
                Err(error) => {
                    self.flush_streams(connection_key);
                    self.fail_connection_of_streams(connection_key, &error, now_ns, trigger);
                    return responses;
                }
            }
            // What follows from a response can close the connection.
            if !self.connections.is_open(connection_key) {
                return responses;
            }
        }
        self.fill_streams(robot, &trigger.releasing(released));
        if self.connections.is_open(connection_key) {
            self.set_receiving(connection_key, false);
            self.flush_streams(connection_key);
            self.count_streams(connection_key);
            self.idle_or_close_streams(connection_key);
        }
        responses
    }

    fn set_receiving(&mut self, connection_key: ConnectionKey, is_receiving: bool) {
        if let Some(streams) = &mut self.connections[connection_key].streams {
            streams.is_receiving = is_receiving;
        }
    }

    /// Decodes the next event.
    fn next_stream_event(
        &mut self,
        connection_key: ConnectionKey,
        bytes: &[u8],
        now_ns: u64,
        trigger: &Trigger,
    ) -> Result<(usize, StreamEvent), ConnectionError> {
        let Self { connections, xacts, robots, setup, control, recorder, .. } = self;
        let RobotConnection { streams, robot, .. } = &mut connections[connection_key];
        let Some(streams) = streams else { return Ok((bytes.len(), StreamEvent::NeedMore)) };
        let (wire, table) = streams.split();
        let (used, event) = wire.next(bytes)?;
        let (stream, head, data, ends) = match event {
            Event::Head { stream, head, ends } => (stream, Some(head), &[][..], ends),
            Event::Data { stream, data, ends } => (stream, None, data, ends),
            Event::Trailers { stream, .. } => (stream, None, &[][..], true),
            Event::NeedMore => return Ok((used, StreamEvent::NeedMore)),
            Event::Reset { stream, code } => return Ok((used, StreamEvent::Reset(stream, code))),
            Event::Unprocessed { stream } => return Ok((used, StreamEvent::Unprocessed(stream))),
            Event::Failed { stream, error } => return Ok((used, StreamEvent::Broken(stream, error))),
            Event::Writable { .. } => return Ok((used, StreamEvent::Writable)),
            Event::Interim { stream, .. } => {
                let error =
                    table.get_mut(stream).and_then(|exchange| exchange.response.begin_interim().err());
                return Ok((
                    used,
                    error.map_or(StreamEvent::Nothing, |error| StreamEvent::Invalid(stream, error)),
                ));
            }
            Event::GoAway { .. } | Event::Pong(_) | Event::Priority { .. } => {
                return Ok((used, StreamEvent::Nothing));
            }
        };
        let Some(exchange) = table.get_mut(stream) else { return Ok((used, StreamEvent::Nothing)) };
        let xact = &mut xacts[exchange.xact];
        if xact.first_byte_ns.is_none() {
            xact.begin_response(now_ns, trigger.unread_us);
            recorder.ideal_events.extend(xact.ideal_begun(setup.shares_from, &control.clock));
        }
        let (phase, method) = (xact.phase, method_name(xact.method));
        let mut judge = HeadJudge {
            setup,
            clock: control.clock,
            now_ns,
            xact,
            memory: &mut robots[*robot].memory,
            cookies_taken: 0,
        };
        let response = &mut exchange.response;
        let before = response.body_bytes();
        let taken = match head {
            Some(head) => {
                let mark = head.field(mark::HEADER);
                response.begin(&head.as_response(), mark, method, ends, |head, mark| judge.judge(head, mark))
            }
            None => response.take_data(data, ends, setup.universe.pool()),
        };
        let cookies_taken = judge.cookies_taken;
        let counts = recorder.counts(phase);
        counts.body_bytes_in += response.body_bytes() - before;
        counts.cookies_taken += cookies_taken;
        Ok((
            used,
            match taken {
                Err(error) => StreamEvent::Invalid(stream, error),
                Ok(()) if ends => StreamEvent::Complete(stream),
                Ok(()) => StreamEvent::Progress(stream),
            },
        ))
    }

    /// Acts on an event; returns the xact whose response came to its end with it.
    fn handle_event(
        &mut self,
        connection_key: ConnectionKey,
        event: StreamEvent,
        now_ns: u64,
        trigger: &Trigger,
    ) -> Option<ReleasedXact> {
        let streams = self.connections[connection_key].streams.as_mut()?;
        match event {
            StreamEvent::Nothing | StreamEvent::NeedMore => {}
            StreamEvent::Writable => streams.send_uploads(),
            StreamEvent::Progress(stream) => self.on_progress(connection_key, stream, now_ns, trigger),
            StreamEvent::Complete(stream) => {
                let exchange = streams.take(stream)?;
                // The response came before all of the request was sent: the rest is not wanted.
                streams.wire.reset(stream, ErrorCode::NO_ERROR);
                let connection = &mut self.connections[connection_key];
                connection.is_fresh = false;
                let released = self.xacts[exchange.xact].release(trigger.unread_us);
                self.robots[connection.robot].delayed_behind_us = released.delayed_us;
                let response = exchange.response.finished(now_ns)?;
                self.finish_response(exchange.xact, &response, trigger);
                return Some(released);
            }
            StreamEvent::Invalid(stream, error) => {
                streams.wire.reset(stream, ErrorCode::CANCEL);
                let exchange = streams.take(stream)?;
                self.fail_exchange(&exchange, error.kind(), &error, now_ns, trigger);
            }
            StreamEvent::Unprocessed(stream) | StreamEvent::Reset(stream, ErrorCode::REFUSED_STREAM) => {
                let exchange = streams.take(stream)?;
                self.retry_exchange(&exchange, now_ns, trigger);
            }
            StreamEvent::Reset(stream, code) => {
                let exchange = streams.take(stream)?;
                self.end_by_reset(&exchange, code, now_ns, trigger);
            }
            StreamEvent::Broken(stream, error) => {
                let exchange = streams.take(stream)?;
                let detail = format!("the target breaks a rule of HTTP/2: {error}");
                self.fail_exchange(&exchange, ErrorKind::Malformed, &detail, now_ns, trigger);
            }
        }
        None
    }

    /// Handles more of a response.
    fn on_progress(&mut self, connection_key: ConnectionKey, stream: Stream, now_ns: u64, trigger: &Trigger) {
        let streams = self.connections[connection_key].streams.as_mut();
        let Some(exchange) = streams.and_then(|streams| streams.get_mut(stream)) else { return };
        let (xact_key, body_bytes) = (exchange.xact, exchange.response.body_bytes());
        // Any other response (a challenge, a redirect) is read to its end, and has no links.
        if !exchange.response.start().is_some_and(|start| start.kind.is_object()) {
            return;
        }
        if self.has_reached_abort(xact_key, body_bytes) {
            let Some(streams) = &mut self.connections[connection_key].streams else { return };
            streams.wire.reset(stream, ErrorCode::CANCEL);
            let Some(exchange) = streams.take(stream) else { return };
            return self.end_exchange_early(&exchange, ResponseKind::ClientAborted, now_ns, trigger);
        }
        let xact = &self.xacts[xact_key];
        if let Some(page) = xact.own_page() {
            self.launch_embedded(page, xact.id.number, body_bytes, now_ns, trigger);
        }
    }

    fn end_exchange_early(
        &mut self,
        exchange: &StreamExchange,
        kind: ResponseKind,
        now_ns: u64,
        trigger: &Trigger,
    ) {
        let Some(response) = exchange.response.finished(now_ns) else { return };
        self.end_early(exchange.xact, &FinishedResponse { kind, ..response }, trigger);
    }

    /// Ends an exchange whose stream the target reset before its response was complete.
    fn end_by_reset(&mut self, exchange: &StreamExchange, code: ErrorCode, now_ns: u64, trigger: &Trigger) {
        if self.xacts[exchange.xact].has_failing_fault() {
            return self.end_with_fault(exchange.xact, now_ns, trigger);
        }
        match exchange.response.start() {
            Some(start) if start.origin_aborts => {
                self.end_exchange_early(exchange, ResponseKind::OriginAborted, now_ns, trigger);
            }
            Some(_) => {
                let detail = format!("the target reset the stream within the body ({code})");
                self.fail_exchange(exchange, ErrorKind::TruncatedBody, &detail, now_ns, trigger);
            }
            None => {
                let detail = format!("the target reset the stream without a response ({code})");
                self.fail_exchange(exchange, ErrorKind::StreamReset, &detail, now_ns, trigger);
            }
        }
    }

    /// Sends a request again that the target did not act on, unless that has happened too often. A target that never
    /// acts on anything would keep its robots busy with that alone.
    fn retry_exchange(&mut self, exchange: &StreamExchange, now_ns: u64, trigger: &Trigger) {
        let xact = &mut self.xacts[exchange.xact];
        xact.refusals = xact.refusals.saturating_add(1);
        if xact.refusals > MOST_REFUSALS {
            let detail = "the target did not act on the request, however often it was sent";
            return self.fail_exchange(exchange, ErrorKind::StreamReset, &detail, now_ns, trigger);
        }
        self.recorder.counts(xact.phase).retries += 1;
        self.resubmit_on_stream(exchange.xact, trigger);
    }

    fn fail_exchange(
        &mut self,
        exchange: &StreamExchange,
        kind: ErrorKind,
        detail: &dyn Display,
        now_ns: u64,
        trigger: &Trigger,
    ) {
        self.fail(exchange.xact, kind, detail, exchange.response.received(), now_ns, trigger);
    }

    /// Fails all exchanges of a connection on which the target breaks the rules of HTTP/2: nothing on it can be relied
    /// on any more.
    fn fail_connection_of_streams(
        &mut self,
        connection_key: ConnectionKey,
        error: &ConnectionError,
        now_ns: u64,
        trigger: &Trigger,
    ) {
        let robot = self.connections[connection_key].robot;
        self.count_streams(connection_key);
        let Some(streams) = &mut self.connections[connection_key].streams else { return };
        let all = streams.take_all();
        self.close(connection_key);
        let detail = format!("the target breaks a rule of HTTP/2: {error}");
        for exchange in &all {
            self.fail_exchange(exchange, ErrorKind::Malformed, &detail, now_ns, trigger);
        }
        self.fill_streams(robot, trigger);
    }

    /// Ends a connection with streams, which was closed by the other side, or broke. Requests without a response are
    /// sent again if the connection had carried others before, as it may have been closed while they were on their way.
    pub fn end_streams(&mut self, connection_key: ConnectionKey, broken: Option<&io::Error>, now_ns: u64) {
        let trigger = &Trigger::UNDELAYED;
        let RobotConnection { robot, is_fresh, .. } = self.connections[connection_key];
        self.count_streams(connection_key);
        let Some(streams) = &mut self.connections[connection_key].streams else { return };
        let is_over = streams.wire.is_closing();
        let all = streams.take_all();
        self.close(connection_key);
        for exchange in &all {
            let xact = &self.xacts[exchange.xact];
            let has_begun = xact.first_byte_ns.is_some();
            if xact.has_failing_fault() {
                self.end_with_fault(exchange.xact, now_ns, trigger);
            } else if !has_begun && !is_fresh && !is_over {
                self.retry_exchange(exchange, now_ns, trigger);
            } else if exchange.response.start().is_some_and(|start| start.origin_aborts) {
                self.end_exchange_early(exchange, ResponseKind::OriginAborted, now_ns, trigger);
            } else {
                let kind = if has_begun { ErrorKind::TruncatedBody } else { ErrorKind::ConnectionLost };
                let detail: &dyn Display = match broken {
                    Some(error) => error,
                    None => &"the target closed the connection before the response was complete",
                };
                self.fail_exchange(exchange, kind, detail, now_ns, trigger);
            }
        }
        self.fill_streams(robot, trigger);
    }

    /// Gives free streams of a robot to its queue.
    pub fn fill_streams(&mut self, robot: RobotKey, trigger: &Trigger) {
        loop {
            let state = &self.robots[robot];
            let Some(first) = state.waiting.first() else { return };
            let xact = &self.xacts[first];
            let destination = self.setup.route(xact.id.robot, xact.object.id.origin).destination;
            let may_open = state.open < self.setup.groups[usize::from(state.group)].open_limit;
            let connection_key = match self.connection_with_streams(robot, destination) {
                StreamCapacity::Available(connection_key) => Some(connection_key),
                StreamCapacity::NoConnection if may_open => None,
                StreamCapacity::Exhausted | StreamCapacity::NoConnection => return,
            };
            let Some(xact_key) = self.pop_waiting(robot) else { return };
            self.xacts[xact_key].make_ready(monotonic_ns(), trigger.released);
            match connection_key {
                Some(connection_key) => self.send_on_stream(connection_key, xact_key, trigger),
                None => self.open(xact_key, XactQueue::default(), trigger),
            }
        }
    }

    /// Leaves a connection that carries nothing idle, or closes it if it is over.
    fn idle_or_close_streams(&mut self, connection_key: ConnectionKey) {
        let Some(RobotConnection { streams, uses_left, robot, link, .. }) =
            self.connections.get(connection_key)
        else {
            return;
        };
        let Some(streams) = streams.as_ref().filter(|streams| streams.load == 0) else { return };
        if *uses_left == 0 || streams.wire.is_closing() {
            let robot = *robot;
            self.close(connection_key);
            self.fill_streams(robot, &Trigger::UNDELAYED);
        } else if link.list != Some(ConnectionList::Idle) {
            self.link_idle(connection_key);
        }
    }

    /// Gives up what takes too long; all of it, if there is no limit.
    pub fn time_out_streams(
        &mut self,
        connection_key: ConnectionKey,
        is_late: impl Fn(&Self, XactKey) -> bool,
        now_ns: u64,
    ) {
        let trigger = &Trigger::UNDELAYED;
        let RobotConnection { streams, robot, .. } = &self.connections[connection_key];
        let (Some(streams), robot) = (streams, *robot) else { return };
        let late = streams.iter().filter(|exchange| is_late(self, exchange.xact));
        let late: Vec<Stream> = late.map(|exchange| exchange.stream).collect();
        for stream in late {
            let Some(connection) = self.connections.get_mut(connection_key) else { return };
            let Some(streams) = &mut connection.streams else { return };
            streams.wire.reset(stream, ErrorCode::CANCEL);
            let Some(exchange) = streams.take(stream) else { continue };
            let waited_ms = self.xacts[exchange.xact].waited_ms(now_ns);
            let received = exchange.response.received();
            let detail = match received.status {
                None => format!("no response after {waited_ms} ms"),
                Some(_) => format!("{} body bytes after {waited_ms} ms", received.body_bytes),
            };
            self.fail_exchange(&exchange, ErrorKind::TimedOut, &detail, now_ns, trigger);
        }
        if self.connections.is_open(connection_key) {
            self.flush_streams(connection_key);
            self.fill_streams(robot, trigger);
            self.idle_or_close_streams(connection_key);
        }
    }

    /// Counts what has happened on the wire.
    pub fn count_streams(&mut self, connection_key: ConnectionKey) {
        if let Some(streams) = &mut self.connections[connection_key].streams {
            streams.count(self.recorder.counts(self.schedule.phase()));
        }
    }
}

/// Stream capacity of a robot's connections to one destination.
#[derive(Debug, Clone, Copy)]
enum StreamCapacity {
    Available(ConnectionKey),
    /// The connection to its destination takes no more streams now.
    Exhausted,
    /// There is no connection to its destination that goes on.
    NoConnection,
}
