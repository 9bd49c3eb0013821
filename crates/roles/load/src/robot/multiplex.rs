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
use std::net::SocketAddr;

use assay_http::head::{RequestHead, ResponseHead};
use assay_http2::{ConnectionError, ErrorCode, Event, RequestHead as WireHead, Stream};
use assay_measurement::error_kind::ErrorKind;
use assay_workload::mark;

use super::connecting::write;
use super::connection::{ConnectionList, RobotConnection};
use super::features::ResponseKind;
use super::judge::HeadJudge;
use super::response::{ResponseReader, ResponseStart};
use super::response_error::ResponseError;
use super::streams::StreamExchange;
use super::worker::Worker;
use super::xact::NONE;
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
    MergedInterval(Stream),
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
    pub fn submit_on_stream(&mut self, place: u32) {
        let xact = &self.xacts[place as usize];
        let (robot, destination) =
            (xact.robot, self.setup.route(xact.id.robot, xact.object.id.origin).destination);
        let state = &self.robots[robot as usize];
        match self.connection_with_streams(robot, destination) {
            StreamCapacity::Available(slot) => self.send_on_stream(slot, place),
            StreamCapacity::Exhausted => self.enqueue(place),
            StreamCapacity::NoConnection
                if state.open < self.setup.groups[usize::from(state.group)].open_limit =>
            {
                self.open(place, NONE);
            }
            StreamCapacity::NoConnection => match state.idle.last {
                NONE => self.enqueue(place),
                oldest => {
                    self.close(oldest);
                    self.open(place, NONE);
                }
            },
        }
    }

    /// Sends an xact that was under way once more: whatever the limits are, as it counts as sent.
    pub fn resubmit_on_stream(&mut self, place: u32) {
        let xact = &self.xacts[place as usize];
        let (robot, destination) =
            (xact.robot, self.setup.route(xact.id.robot, xact.object.id.origin).destination);
        match self.connection_with_streams(robot, destination) {
            StreamCapacity::Available(slot) => self.send_on_stream(slot, place),
            StreamCapacity::Exhausted | StreamCapacity::NoConnection => self.open(place, NONE),
        }
    }

    /// Finds a connection of the robot to a destination that goes on.
    fn connection_with_streams(&self, robot: u32, destination: u16) -> StreamCapacity {
        let state = &self.robots[robot as usize];
        let mut found = StreamCapacity::NoConnection;
        for mut slot in [state.pipelining.first, state.idle.first] {
            while slot != NONE {
                let RobotConnection { destination: other, uses_left, streams, link, .. } =
                    &self.connections[slot as usize];
                if let Some(streams) = streams
                    && *other == destination
                    && *uses_left > 0
                    && !streams.wire.is_closing()
                {
                    if streams.wire.openable() > 0 {
                        return StreamCapacity::Available(slot);
                    }
                    found = StreamCapacity::Exhausted;
                }
                slot = link.next;
            }
        }
        found
    }

    /// Sends a request on a new stream of a connection that has room.
    pub fn send_on_stream(&mut self, slot: u32, place: u32) {
        self.mark_sent(place, monotonic_ns());
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        self.put_request(place, false, &mut scratch);
        let is_established = self.connections[slot as usize].is_established();
        let RobotConnection { streams, uses_left, serial, is_fresh, transport, .. } =
            &mut self.connections[slot as usize];
        let xact = &mut self.xacts[place as usize];
        let Some(streams) = streams else { return };
        let is_first = *is_fresh && streams.load == 0;
        let may_flush = is_established && !streams.is_receiving;
        *uses_left = uses_left.saturating_sub(1);
        xact.connection = Some(*serial);
        let phase = xact.phase;
        // Our own head can be read, and the connection had room.
        if let Ok(Some((head, length))) = RequestHead::parse(&scratch) {
            let body = &scratch[length..];
            let wire_head = WireHead {
                method: head.method.as_bytes(),
                scheme: if transport.is_tls() { b"https" } else { b"http" },
                authority: head.host.unwrap_or_default(),
                path: head.target.as_bytes(),
            };
            let fields = head.headers().filter(|field| !field.is("host"));
            let fields = fields.map(|field| (field.name, field.value));
            if let Ok(stream) = streams.wire.request(&wire_head, fields, body.is_empty()) {
                let sent = match body {
                    [] => 0,
                    _ => streams.wire.data(stream, body, true).unwrap_or(0),
                };
                let upload = body[sent..].to_vec();
                streams.put(StreamExchange {
                    xact: place,
                    stream,
                    response: ResponseReader::default(),
                    upload,
                });
            }
        }
        self.scratch = scratch;
        self.recorder(phase).counts.on_reused_connection += u64::from(!is_first);
        self.link(slot, ConnectionList::Pipelining);
        if may_flush {
            self.flush_streams(slot);
        }
    }

    /// Writes what a connection has to say, as far as the socket takes it.
    pub fn flush_streams(&mut self, slot: u32) {
        let phase = self.phase();
        let RobotConnection { streams, transport, .. } = &mut self.connections[slot as usize];
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
            self.recorder(phase).counts.wire_bytes_out += written as u64;
        }
    }

    /// Notes the end of a handshake that was noticed `unnoticed_us` late with all requests of the connection.
    pub fn note_connected(&mut self, slot: u32, now_ns: u64, unnoticed_us: u32) {
        let RobotConnection { streams, .. } = &self.connections[slot as usize];
        for exchange in streams.iter().flat_map(|streams| streams.iter()) {
            let xact = &mut self.xacts[exchange.xact as usize];
            xact.connected_ns = now_ns;
            xact.own.connected_us = xact.own.connected_us.saturating_add(unnoticed_us);
        }
    }

    /// Fails all xacts that waited for a connection, which could not be made. `fail` is called for each, with the
    /// address.
    pub fn fail_streams_to_open(&mut self, slot: u32, mut fail: impl FnMut(&mut Self, u32, SocketAddr)) {
        let Some(streams) = &mut self.connections[slot as usize].streams else { return };
        let all = streams.take_all();
        self.close(slot);
        for exchange in all {
            let xact = &self.xacts[exchange.xact as usize];
            let address = self.setup.route(xact.id.robot, xact.object.id.origin).address;
            fail(self, exchange.xact, address);
        }
    }

    /// Handles bytes that came on a connection with streams.
    pub fn receive_on_streams(&mut self, slot: u32, bytes: &[u8], now_ns: u64) {
        let id = self.connections[slot as usize].id;
        let robot = self.connections[slot as usize].robot;
        let phase = self.phase();
        self.recorder(phase).counts.wire_bytes_in += bytes.len() as u64;
        // Requests that follow from responses are only queued meanwhile: they are written together below.
        self.set_receiving(slot, true);
        let mut rest = bytes;
        loop {
            match self.next_stream_event(slot, rest, now_ns) {
                Ok((used, event)) => {
                    rest = &rest[used..];
                    if matches!(event, StreamEvent::NeedMore) {
                        break;
                    }
                    self.handle_event(slot, event, now_ns);
                }
                Err(error) => {
                    self.flush_streams(slot);
                    return self.fail_connection_of_streams(slot, &error, now_ns);
                }
            }
            // What follows from a response can close the connection.
            if !self.is_open(slot, id) {
                return;
            }
        }
        self.fill_streams(robot);
        if self.is_open(slot, id) {
            self.set_receiving(slot, false);
            self.flush_streams(slot);
            self.count_streams(slot);
            self.idle_or_close_streams(slot, id);
        }
    }

    fn set_receiving(&mut self, slot: u32, is_receiving: bool) {
        if let Some(streams) = &mut self.connections[slot as usize].streams {
            streams.is_receiving = is_receiving;
        }
    }

    /// Decodes the next event.
    fn next_stream_event(
        &mut self,
        slot: u32,
        bytes: &[u8],
        now_ns: u64,
    ) -> Result<(usize, StreamEvent), ConnectionError> {
        let Self { connections, xacts, robots, setup, control, ideal_events, recorders, unread_us, .. } =
            self;
        let RobotConnection { streams, robot, .. } = &mut connections[slot as usize];
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
        let xact = &mut xacts[exchange.xact as usize];
        if xact.first_byte_ns == 0 {
            xact.begin_response(now_ns, *unread_us);
            ideal_events.extend(xact.ideal_begun(setup.shares_from, &control.clock));
        }
        let (phase, method) = (xact.phase, method_name(xact.method));
        let mut judge = HeadJudge {
            setup,
            clock: control.clock,
            now_ns,
            xact,
            memory: &mut robots[*robot as usize].memory,
            cookies_taken: 0,
        };
        let response = &mut exchange.response;
        let before = response.body_bytes();
        let taken = match head {
            Some(head) => {
                let head_lines = ResponseHead::of_fields(head.status(), head.content_length(), head.lines());
                let mark = head.field(mark::HEADER);
                response.begin(&head_lines, mark, method, ends, |head, mark| judge.judge(head, mark))
            }
            None => response.take_data(data, ends, setup.universe.pool()),
        };
        let cookies_taken = judge.cookies_taken;
        let counts = &mut recorders.recorder(phase).counts;
        counts.body_bytes_in += response.body_bytes() - before;
        counts.cookies_taken += cookies_taken;
        Ok((
            used,
            match taken {
                Err(error) => StreamEvent::Invalid(stream, error),
                Ok(()) if ends => StreamEvent::MergedInterval(stream),
                Ok(()) => StreamEvent::Progress(stream),
            },
        ))
    }

    fn handle_event(&mut self, slot: u32, event: StreamEvent, now_ns: u64) {
        let Some(streams) = &mut self.connections[slot as usize].streams else { return };
        match event {
            StreamEvent::Nothing | StreamEvent::NeedMore => {}
            StreamEvent::Writable => streams.send_uploads(),
            StreamEvent::Progress(stream) => self.on_progress(slot, stream, now_ns),
            StreamEvent::MergedInterval(stream) => {
                let Some(exchange) = streams.take(stream) else { return };
                self.responses_on_streams += 1;
                // The response came before all of the request was sent: the rest is not wanted.
                streams.wire.reset(stream, ErrorCode::NO_ERROR);
                let connection = &mut self.connections[slot as usize];
                connection.is_fresh = false;
                let robot = connection.robot;
                self.freed_late_us = self.delayed_us(exchange.xact);
                self.robots[robot as usize].delayed_behind_us = self.freed_late_us;
                self.freed_since_ns = self.xacts[exchange.xact as usize].exposed_since_ns();
                self.finish_on_stream(&exchange, now_ns);
                (self.freed_late_us, self.freed_since_ns) = (0, 0);
            }
            StreamEvent::Invalid(stream, error) => {
                streams.wire.reset(stream, ErrorCode::CANCEL);
                let Some(exchange) = streams.take(stream) else { return };
                self.fail_exchange(&exchange, error.kind(), &error, now_ns);
            }
            StreamEvent::Unprocessed(stream) | StreamEvent::Reset(stream, ErrorCode::REFUSED_STREAM) => {
                let Some(exchange) = streams.take(stream) else { return };
                self.retry_exchange(&exchange, now_ns);
            }
            StreamEvent::Reset(stream, code) => {
                let Some(exchange) = streams.take(stream) else { return };
                self.end_by_reset(&exchange, code, now_ns);
            }
            StreamEvent::Broken(stream, error) => {
                let Some(exchange) = streams.take(stream) else { return };
                let detail = format!("the target breaks a rule of HTTP/2: {error}");
                self.fail_exchange(&exchange, ErrorKind::Malformed, &detail, now_ns);
            }
        }
    }

    /// Handles more of a response.
    fn on_progress(&mut self, slot: u32, stream: Stream, now_ns: u64) {
        let streams = self.connections[slot as usize].streams.as_mut();
        let Some(exchange) = streams.and_then(|streams| streams.get_mut(stream)) else { return };
        let (place, body_bytes) = (exchange.xact, exchange.response.body_bytes());
        // Any other response (a challenge, a redirect) is read to its end, and has no links.
        if !exchange.response.start().is_some_and(|start| start.kind.is_object()) {
            return;
        }
        if self.has_reached_abort(place, body_bytes) {
            let Some(streams) = &mut self.connections[slot as usize].streams else { return };
            streams.wire.reset(stream, ErrorCode::CANCEL);
            let Some(exchange) = streams.take(stream) else { return };
            return self.end_exchange_early(&exchange, ResponseKind::ClientAborted, now_ns);
        }
        let xact = &self.xacts[place as usize];
        if xact.is_page() {
            let (page, number) = (xact.page, xact.id.number);
            self.launch_embedded(page, number, body_bytes, now_ns);
        }
    }

    fn finish_on_stream(&mut self, exchange: &StreamExchange, now_ns: u64) {
        let Some(start) = exchange.response.start().cloned() else { return };
        self.finish_response(exchange.xact, &start, exchange.response.body_bytes(), now_ns);
    }

    fn end_exchange_early(&mut self, exchange: &StreamExchange, kind: ResponseKind, now_ns: u64) {
        let Some(start) = exchange.response.start().cloned() else { return };
        let start = ResponseStart { kind, ..start };
        self.end_early(exchange.xact, &start, exchange.response.body_bytes(), now_ns);
    }

    /// Ends an exchange whose stream the target reset before its response was complete.
    fn end_by_reset(&mut self, exchange: &StreamExchange, code: ErrorCode, now_ns: u64) {
        if self.xacts[exchange.xact as usize].has_failing_fault() {
            return self.end_with_fault(exchange.xact, now_ns);
        }
        match exchange.response.start() {
            Some(start) if start.origin_aborts => {
                self.end_exchange_early(exchange, ResponseKind::OriginAborted, now_ns)
            }
            Some(_) => {
                let detail = format!("the target reset the stream within the body ({code})");
                self.fail_exchange(exchange, ErrorKind::TruncatedBody, &detail, now_ns);
            }
            None => {
                let detail = format!("the target reset the stream without a response ({code})");
                self.fail_exchange(exchange, ErrorKind::StreamReset, &detail, now_ns);
            }
        }
    }

    /// Sends a request again that the target did not act on, unless that has happened too often. A target that never
    /// acts on anything would keep its robots busy with that alone.
    fn retry_exchange(&mut self, exchange: &StreamExchange, now_ns: u64) {
        let xact = &mut self.xacts[exchange.xact as usize];
        let phase = xact.phase;
        xact.refusals = xact.refusals.saturating_add(1);
        if xact.refusals > MOST_REFUSALS {
            let detail = "the target did not act on the request, however often it was sent";
            return self.fail_exchange(exchange, ErrorKind::StreamReset, &detail, now_ns);
        }
        self.recorder(phase).counts.retries += 1;
        self.resubmit_on_stream(exchange.xact);
    }

    fn fail_exchange(
        &mut self,
        exchange: &StreamExchange,
        kind: ErrorKind,
        detail: &dyn Display,
        now_ns: u64,
    ) {
        let status = exchange.response.start().map(|start| start.status);
        self.fail(exchange.xact, kind, detail, (exchange.response.body_bytes(), status), now_ns);
    }

    /// Fails all exchanges of a connection on which the target breaks the rules of HTTP/2: nothing on it can be relied
    /// on any more.
    fn fail_connection_of_streams(&mut self, slot: u32, error: &ConnectionError, now_ns: u64) {
        let robot = self.connections[slot as usize].robot;
        self.count_streams(slot);
        let Some(streams) = &mut self.connections[slot as usize].streams else { return };
        let all = streams.take_all();
        self.close(slot);
        let detail = format!("the target breaks a rule of HTTP/2: {error}");
        for exchange in &all {
            self.fail_exchange(exchange, ErrorKind::Malformed, &detail, now_ns);
        }
        self.fill_streams(robot);
    }

    /// Ends a connection with streams, which was closed by the other side, or broke. Requests without a response are
    /// sent again if the connection had carried others before, as it may have been closed while they were on their way.
    pub fn end_streams(&mut self, slot: u32, broken: Option<&io::Error>, now_ns: u64) {
        let RobotConnection { robot, is_fresh, .. } = self.connections[slot as usize];
        self.count_streams(slot);
        let Some(streams) = &mut self.connections[slot as usize].streams else { return };
        let is_over = streams.wire.is_closing();
        let all = streams.take_all();
        self.close(slot);
        for exchange in &all {
            let has_begun = self.xacts[exchange.xact as usize].first_byte_ns != 0;
            if self.xacts[exchange.xact as usize].has_failing_fault() {
                self.end_with_fault(exchange.xact, now_ns);
            } else if !has_begun && !is_fresh && !is_over {
                self.retry_exchange(exchange, now_ns);
            } else if exchange.response.start().is_some_and(|start| start.origin_aborts) {
                self.end_exchange_early(exchange, ResponseKind::OriginAborted, now_ns);
            } else {
                let kind = if has_begun { ErrorKind::TruncatedBody } else { ErrorKind::ConnectionLost };
                match broken {
                    Some(error) => self.fail_exchange(exchange, kind, error, now_ns),
                    None => {
                        let detail = "the target closed the connection before the response was complete";
                        self.fail_exchange(exchange, kind, &detail, now_ns);
                    }
                }
            }
        }
        self.fill_streams(robot);
    }

    /// Gives free streams of a robot to its queue.
    pub fn fill_streams(&mut self, robot: u32) {
        loop {
            let state = &self.robots[robot as usize];
            let first = state.waiting_first;
            if first == NONE {
                return;
            }
            let xact = &self.xacts[first as usize];
            let destination = self.setup.route(xact.id.robot, xact.object.id.origin).destination;
            let may_open = state.open < self.setup.groups[usize::from(state.group)].open_limit;
            let found = self.connection_with_streams(robot, destination);
            if matches!(found, StreamCapacity::Exhausted)
                || (matches!(found, StreamCapacity::NoConnection) && !may_open)
            {
                return;
            }
            let Some(place) = self.pop_waiting(robot) else { return };
            self.make_ready(place);
            match found {
                StreamCapacity::Available(slot) => self.send_on_stream(slot, place),
                StreamCapacity::Exhausted | StreamCapacity::NoConnection => self.open(place, NONE),
            }
        }
    }

    /// Leaves a connection that carries nothing idle, or closes it if it is over.
    fn idle_or_close_streams(&mut self, slot: u32, id: u64) {
        if !self.is_open(slot, id) {
            return;
        }
        let RobotConnection { streams, uses_left, robot, .. } = &self.connections[slot as usize];
        let Some(streams) = streams.as_ref().filter(|streams| streams.load == 0) else { return };
        if *uses_left == 0 || streams.wire.is_closing() {
            let robot = *robot;
            self.close(slot);
            self.fill_streams(robot);
        } else if self.connections[slot as usize].link.list != Some(ConnectionList::Idle) {
            self.link_idle(slot);
        }
    }

    /// Gives up what takes too long; all of it, if there is no limit.
    pub fn time_out_streams(&mut self, slot: u32, late: impl Fn(&Self, u32) -> bool, now_ns: u64) {
        let id = self.connections[slot as usize].id;
        let robot = self.connections[slot as usize].robot;
        let Some(streams) = &self.connections[slot as usize].streams else { return };
        let late: Vec<Stream> = streams
            .iter()
            .filter(|exchange| late(self, exchange.xact))
            .map(|exchange| exchange.stream)
            .collect();
        for stream in late {
            let Some(connection) = self.connections.get_mut(slot as usize).filter(|one| one.id == id) else {
                return;
            };
            let Some(streams) = &mut connection.streams else { return };
            streams.wire.reset(stream, ErrorCode::CANCEL);
            let Some(exchange) = streams.take(stream) else { continue };
            let waited_ms = now_ns.saturating_sub(self.xacts[exchange.xact as usize].sent_ns) / 1_000_000;
            let detail = match exchange.response.start() {
                None => format!("no response after {waited_ms} ms"),
                Some(_) => format!("{} body bytes after {waited_ms} ms", exchange.response.body_bytes()),
            };
            self.fail_exchange(&exchange, ErrorKind::TimedOut, &detail, now_ns);
        }
        if self.is_open(slot, id) {
            self.flush_streams(slot);
            self.fill_streams(robot);
            self.idle_or_close_streams(slot, id);
        }
    }

    /// Counts what has happened on the wire.
    pub fn count_streams(&mut self, slot: u32) {
        let phase = self.phase();
        let Self { connections, recorders, .. } = self;
        if let Some(streams) = &mut connections[slot as usize].streams {
            streams.count(&mut recorders.recorder(phase).counts);
        }
    }
}

/// Stream capacity of a robot's connections to one destination.
#[derive(Debug, Clone, Copy)]
enum StreamCapacity {
    Available(u32),
    /// The connection to its destination takes no more streams now.
    Exhausted,
    /// There is no connection to its destination that goes on.
    NoConnection,
}
