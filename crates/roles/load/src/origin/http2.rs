//! One connection of an origin over HTTP/2.
//!
//! A task per connection, as over HTTP/1.1: it reads into the worker's buffer and responds at once to what needs no time. Each
//! stream is a request with its own think time, fault and pace. Bodies go out in turns, a frame each, and no further ahead than
//! the socket takes them ([`turns`]).
//!
//! *Does not:* speak HTTP/1.1, or upgrade from it: clients must know that it is HTTP/2 (RFC 9113, 3.3).

mod shutdown;
mod turns;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use assay_http::framing::BodyFraming;
use assay_http::head::ResponseHead;
use assay_http2::{Config, Connection as Wire, ErrorCode, Event, Stream, Totals};
use assay_workload::Fault;
use assay_workload::model::OriginIndex;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;

use super::accept_request::{ActiveRequest, NextAction, RequestArrival, accept_request};
use super::body_pacer::BodyPacer;
use super::lingering_close::LingeringClose;
use super::request::{OriginRequest, SpecialRequest};
use super::response::{WrittenResponse, is_written_late};
use super::upload::UploadCheck;
use super::worker_state::{AcceptedConnection, OriginTimerEvent, TaskAlarm, WorkerState};
use super::worker_state::{count_handshake, count_tls_error};
use assay_base::clock::{SECOND_NS, monotonic_ns};
use assay_net::byte_stream::ByteStream;
use assay_net::timer::TimerKey;
use turns::OUTPUT_BYTES;

/// Streams that a client may have open.
const MAX_STREAMS: u32 = 256;

/// Progress of a request on its stream.
#[derive(Debug)]
enum StreamStage {
    /// The body of the request comes.
    Body(OriginRequest, UploadCheck),
    /// The origin thinks until then.
    Thinking(OriginRequest, u64),
    /// The response goes out.
    StreamResponse(Box<StreamResponse>),
}

/// A response that the windows or the socket did not take at once, or must not be given at once.
#[derive(Debug)]
struct StreamResponse {
    response: WrittenResponse,
    /// Head in the form of HTTP/1.1, and the start of the body.
    head: Box<[u8]>,
    /// Bytes of that and of the body that are sent.
    at: u64,
    pace: Option<BodyPacer>,
    /// Instant before which the body must not go on; 0: there is none.
    resume_ns: u64,
}

/// A request with its response.
#[derive(Debug)]
struct StreamRequest {
    stream: Stream,
    stage: StreamStage,
    complete_ns: u64,
    /// The request is one of those that an origin under load counts.
    under_way: Option<ActiveRequest>,
}

#[derive(Debug)]
pub struct Http2Connection {
    worker: Rc<WorkerState>,
    transport: ByteStream<TcpStream>,
    /// The origin at whose address it was accepted.
    at: OriginIndex,
    wire: Wire,
    /// Requests by the places of their streams.
    streams: Vec<Option<StreamRequest>>,
    load: u32,
    /// Streams whose bodies go out, in the order of their turns.
    turns: VecDeque<Stream>,
    /// Requests that it may still serve.
    uses_left: u64,
    /// Several requests have been under way on it at once.
    is_shared: bool,
    /// Instant at which bytes were last read, and the time for which they had lain unread then.
    read_ns: u64,
    unread_us: u32,
    alarm: Rc<TaskAlarm>,
    /// Timeout of the idle connection, and the timer's ticket for it.
    idle: Option<(u64, TimerKey)>,
    /// Instant of the last response.
    used_ns: u64,
    refilled_ns: u64,
    counted: Totals,
    /// Lingering close: what the client still sends is passed over.
    closing: Option<LingeringClose>,
    /// The client has ended its side of the connection: what it has requested in full still gets its response.
    is_half_closed: bool,
    /// Instants of the responses whose heads are not written yet.
    unwritten_ns: Vec<u64>,
}

impl Http2Connection {
    /// For a connection that was just accepted.
    pub fn new(worker: Rc<WorkerState>, transport: ByteStream<TcpStream>, at: OriginIndex) -> Self {
        let AcceptedConnection { now_ns, uses_left, alarm, idle } = worker.accept(at);
        let _ = transport.socket().set_nodelay(true);
        Self {
            worker,
            transport,
            at,
            wire: Wire::server(Config { max_streams: MAX_STREAMS, ..Config::default() }),
            streams: Vec::new(),
            load: 0,
            turns: VecDeque::new(),
            uses_left,
            is_shared: false,
            read_ns: now_ns,
            unread_us: 0,
            alarm,
            idle,
            used_ns: now_ns,
            refilled_ns: now_ns,
            counted: Totals::default(),
            closing: None,
            is_half_closed: false,
            unwritten_ns: Vec::new(),
        }
    }

    /// Serves it to its end.
    pub async fn serve(mut self) {
        let ended = poll_fn(|context| self.poll(context)).await;
        if let Err(error) = &ended {
            count_tls_error(&self.worker, &self.transport, error);
        }
        if ended.is_err() || self.load > 0 {
            self.worker.tally.borrow_mut().current_recorder().counts.broken += 1;
        }
    }

    /// Does all that can be done now.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.alarm.listen(context);
        loop {
            if self.alarm.take_think() {
                self.resume();
            }
            if self.alarm.take_idle() {
                if self.closing.is_some() {
                    if self.is_linger_over() {
                        return Poll::Ready(Ok(()));
                    }
                } else if self.is_idle_for_too_long() {
                    if !self.transport.is_open() {
                        // Nothing can be said before the handshake is over.
                        return Poll::Ready(Ok(()));
                    }
                    // Where this thread was kept from running, what came meanwhile was not read.
                    let has_come = self.load > 0 && self.poll_input(context)?.is_ready();
                    if !has_come || self.is_idle_for_too_long() {
                        self.abandon();
                        self.wire.go_away(ErrorCode::NO_ERROR);
                    }
                }
            }
            self.retire_if_used_up();
            self.send_turns();
            let is_written = match self.poll_write(context) {
                Poll::Ready(written) => {
                    written?;
                    true
                }
                Poll::Pending => false,
            };
            if is_written && self.has_turns() {
                continue;
            }
            // What is requested by who takes no responses would be kept for ever.
            if !is_written && self.wire.output().len() >= OUTPUT_BYTES {
                return Poll::Pending;
            }
            if self.is_half_closed {
                let is_over = is_written && !self.is_busy();
                return if is_over { Poll::Ready(Ok(())) } else { Poll::Pending };
            }
            if is_written && self.load == 0 && self.wire.is_closing() && self.closing.is_none() {
                self.linger()?;
            }
            match self.poll_input(context) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false)) if self.is_half_closed => {}
                Poll::Ready(Ok(false)) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                // What rang meanwhile has woken this task, or will.
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Writes what there is; ready when there is nothing left. Nothing is written before the handshake of TLS is over, which
    /// reading goes on with.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.transport.is_open() {
            return Poll::Pending;
        }
        while !self.wire.output().is_empty() {
            if self.transport.socket().poll_write_ready(context)?.is_pending() {
                return Poll::Pending;
            }
            match self.transport.try_send_parts(&[io::IoSlice::new(self.wire.output())]) {
                Ok(0) => {}
                Ok(bytes) => {
                    self.wire.wrote(bytes);
                    self.count_written(bytes);
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Pin::new(&mut self.transport).poll_flush(context)
    }

    /// Counts bytes that were written, and the responses among them that were written late. Heads are ahead of bodies: all of
    /// them are taken to be among these bytes.
    fn count_written(&mut self, bytes: usize) {
        let mut tally = self.worker.tally.borrow_mut();
        let counts = &mut tally.current_recorder().counts;
        counts.wire_bytes_out += bytes as u64;
        if !self.unwritten_ns.is_empty() {
            let now_ns = monotonic_ns();
            let late = |made_ns: &u64| is_written_late(*made_ns, now_ns);
            counts.written_late += self.unwritten_ns.drain(..).filter(late).count() as u64;
        }
    }

    /// True while an origin thinks, or paces a body. Where windows alone keep bodies back, a client that has ended its
    /// side cannot open them.
    fn is_busy(&self) -> bool {
        self.streams.iter().flatten().any(|stream_request| match &stream_request.stage {
            StreamStage::Body(..) => false,
            StreamStage::Thinking(..) => true,
            StreamStage::StreamResponse(sending) => sending.resume_ns > 0,
        })
    }

    /// Reads once, and acts on it; false: the client is done.
    fn poll_input(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let worker = Rc::clone(&self.worker);
        let mut input = worker.input.borrow_mut();
        let (length, received) = match std::task::ready!(self.transport.poll_recv(context, &mut input)) {
            Ok(read) if read.length > 0 => (read.length, read.received),
            Err(error) if !self.transport.is_open() => return Poll::Ready(Err(error)),
            Ok(_) if self.load > 0 && self.closing.is_none() => {
                self.is_half_closed = true;
                return Poll::Ready(Ok(false));
            }
            // A client that is done may reset an idle connection as well as close it.
            _ => return Poll::Ready(Ok(false)),
        };
        if self.transport.is_tls() {
            count_handshake(&self.worker, &mut self.transport);
        }
        self.read_ns = monotonic_ns();
        self.unread_us = worker.arrivals.get().unread_us(received, self.read_ns);
        worker.tally.borrow_mut().current_recorder().counts.wire_bytes_in += length as u64;
        if self.read_ns.saturating_sub(self.refilled_ns) >= SECOND_NS {
            self.refilled_ns = self.read_ns;
            self.wire.refill();
        }
        let is_http2 = self.take_input(&input[..length]);
        self.count();
        if !is_http2 {
            worker.tally.borrow_mut().current_recorder().counts.refused += 1;
            // The GOAWAY says why, if the client still reads.
            let _ = self.poll_write(context);
            self.load = 0;
            return Poll::Ready(Ok(false));
        }
        Poll::Ready(Ok(true))
    }

    /// Acts on bytes that were read; false: they are not HTTP/2.
    fn take_input(&mut self, input: &[u8]) -> bool {
        let (mut rest, mut heads) = (input, 0);
        loop {
            let Ok((used, event)) = self.wire.next(rest) else { return false };
            rest = &rest[used..];
            match event {
                Event::NeedMore => return true,
                Event::Head { stream, head, ends } => {
                    heads += 1;
                    self.is_shared |= heads > 1 || self.load > 0;
                    match OriginRequest::read(&self.worker.shared, self.at, &head.as_request()) {
                        Ok(request) => self.begin(stream, request, ends),
                        Err(error) => self.refuse(stream, error.status()),
                    }
                }
                Event::Data { stream, data, ends } => {
                    let universe = &self.worker.shared.universe;
                    if let Some(StreamRequest { stage: StreamStage::Body(_, upload), .. }) =
                        find(&mut self.streams, stream)
                    {
                        // Frames have no chunked coding that could be wrong.
                        let _ = upload.take(universe.pool(), data);
                    }
                    if ends {
                        self.end_body(stream);
                    }
                }
                Event::Trailers { stream, .. } => self.end_body(stream),
                Event::Reset { stream, .. } | Event::Failed { stream, .. } => {
                    if self.take(stream).is_some() {
                        self.worker.tally.borrow_mut().current_recorder().counts.broken += 1;
                    }
                }
                Event::Interim { .. }
                | Event::GoAway { .. }
                | Event::Unprocessed { .. }
                | Event::Writable { .. }
                | Event::Pong(_)
                | Event::Priority { .. } => {}
            }
        }
    }

    /// Begins a request whose head has come.
    fn begin(&mut self, stream: Stream, request: OriginRequest, ends: bool) {
        // The end of the stream is the end of the body (RFC 9113, 8.1.1); a length that was announced is checked below this.
        let framing = if ends { BodyFraming::None } else { BodyFraming::UntilClose };
        match UploadCheck::new(&self.worker.shared.universe, &request, framing) {
            Some(upload) if !ends => self.put(stream, StreamStage::Body(request, upload), None),
            upload => {
                self.complete(stream, request, upload);
            }
        }
    }

    /// Ends a request body.
    fn end_body(&mut self, stream: Stream) {
        let Some(stream_request) = self.take(stream) else { return };
        let StreamStage::Body(request, upload) = stream_request.stage else { return };
        self.complete(stream, request, Some(upload));
    }

    /// Accepts a complete request; none: it has no body that could be compared.
    fn complete(&mut self, stream: Stream, mut request: OriginRequest, upload: Option<UploadCheck>) {
        if let Some(error) = upload.and_then(|upload| upload.error()) {
            self.worker.count_error(&request, &error, self.read_ns);
        }
        let arrival = RequestArrival { at_ns: self.read_ns, unread_us: self.unread_us, bytes: 0 };
        let mut under_way = None;
        let complete_ns = self.read_ns;
        match accept_request(&self.worker, &mut request, arrival, &mut under_way) {
            NextAction::Reset => self.wire.reset(stream, ErrorCode::INTERNAL_ERROR),
            NextAction::Respond => self.respond(stream, request, complete_ns, under_way),
            NextAction::Think { until_ns } => {
                self.put(stream, StreamStage::Thinking(request, until_ns), under_way);
                self.wake_at(until_ns);
            }
        }
    }

    /// Sends the response to a request, or begins to.
    fn respond(
        &mut self,
        stream: Stream,
        request: OriginRequest,
        complete_ns: u64,
        under_way: Option<ActiveRequest>,
    ) {
        let special = request.special.as_ref();
        if special.is_some_and(|special| matches!(special.fault, Some(Fault::Expired(_)))) {
            return self.wire.reset(stream, ErrorCode::INTERNAL_ERROR);
        }
        let bytes_per_s = special.and_then(|special| SpecialRequest::bytes_per_s(special));
        self.uses_left = self.uses_left.saturating_sub(1);
        let worker = Rc::clone(&self.worker);
        let mut output = worker.output.borrow_mut();
        output.clear();
        let made_ns = monotonic_ns();
        let response = WrittenResponse::write(&worker, request, made_ns, true, &mut output);
        self.unwritten_ns.push(made_ns);
        self.send(stream, response, &output, complete_ns, bytes_per_s, under_way);
    }

    /// Responds to what names nothing that could be here.
    fn refuse(&mut self, stream: Stream, status: u16) {
        let worker = Rc::clone(&self.worker);
        worker.tally.borrow_mut().current_recorder().counts.refused += 1;
        let mut output = worker.output.borrow_mut();
        output.clear();
        let response = WrittenResponse::write_refusal(&worker, self.at, status, false, &mut output);
        self.send(stream, response, &output, self.read_ns, None, None);
    }

    /// Sends a response whose head, with the start of the body, is in `output`.
    fn send(
        &mut self,
        stream: Stream,
        response: WrittenResponse,
        output: &[u8],
        complete_ns: u64,
        bytes_per_s: Option<f64>,
        under_way: Option<ActiveRequest>,
    ) {
        // Our own head can be read.
        let Ok(Some((head, head_bytes))) = ResponseHead::parse(output) else { return };
        let length = response.outgoing(output).len();
        let ends = length == head_bytes as u64 && !response.is_aborted();
        let fields = head.headers().map(|field| (field.name, field.value));
        if self.wire.respond(stream, head.status, fields, ends).is_err() {
            return;
        }
        let mut at = head_bytes as u64;
        if bytes_per_s.is_none() && length == output.len() as u64 && !response.is_aborted() && !ends {
            let body = &output[head_bytes..];
            at += self.wire.data(stream, body, true).unwrap_or(0) as u64;
        }
        if at == length && !response.is_aborted() {
            self.used_ns = response.sent(&self.worker, complete_ns, output.len(), length, 0);
            return;
        }
        let pace = bytes_per_s.map(|bytes_per_s| BodyPacer {
            begun_ns: monotonic_ns(),
            head_bytes: output.len() as u64,
            bytes_per_s,
        });
        let sending = StreamResponse { response, head: output.into(), at, pace, resume_ns: 0 };
        self.insert_at(stream, StreamStage::StreamResponse(Box::new(sending)), complete_ns, under_way);
        self.turns.push_back(stream);
    }

    /// Goes on with what was due.
    fn resume(&mut self) {
        let now_ns = monotonic_ns();
        for place in 0..self.streams.len() {
            let Some(stream_request) = &mut self.streams[place] else { continue };
            let stream = stream_request.stream;
            match &mut stream_request.stage {
                StreamStage::StreamResponse(sending) if sending.resume_ns <= now_ns => sending.resume_ns = 0,
                StreamStage::Thinking(_, until_ns) if *until_ns <= now_ns => {
                    let until_ns = *until_ns;
                    self.end_thinking(stream, now_ns.saturating_sub(until_ns) / 1000);
                }
                _ => {}
            }
        }
    }

    fn end_thinking(&mut self, stream: Stream, late_us: u64) {
        let Some(StreamRequest { stage, complete_ns, under_way, .. }) = self.take(stream) else { return };
        let StreamStage::Thinking(mut request, _) = stage else { return };
        request.delay_us = request.delay_us.saturating_add(u32::try_from(late_us).unwrap_or(u32::MAX));
        {
            let mut tally = self.worker.tally.borrow_mut();
            let phase = request.phase(&tally);
            tally.recorder(phase).lateness.record(late_us);
        }
        self.respond(stream, request, complete_ns, under_way);
    }

    fn wake_at(&self, at_ns: u64) {
        self.worker.timer.schedule(at_ns, OriginTimerEvent::Think(Rc::clone(&self.alarm)));
    }

    fn put(&mut self, stream: Stream, stage: StreamStage, under_way: Option<ActiveRequest>) {
        self.insert_at(stream, stage, self.read_ns, under_way);
    }

    fn insert_at(
        &mut self,
        stream: Stream,
        stage: StreamStage,
        complete_ns: u64,
        under_way: Option<ActiveRequest>,
    ) {
        let place = stream.place as usize;
        if self.streams.len() <= place {
            // Most connections have one request at a time: no room for four at once, which a vector would begin with.
            if self.streams.capacity() == 0 {
                self.streams.reserve_exact(place + 1);
            }
            self.streams.resize_with(place + 1, || None);
        }
        let before = self.streams[place].replace(StreamRequest { stream, stage, complete_ns, under_way });
        self.load += u32::from(before.is_none());
    }

    fn take(&mut self, stream: Stream) -> Option<StreamRequest> {
        let slot = self.streams.get_mut(stream.place as usize)?;
        let stream_request = slot.take_if(|stream_request| stream_request.stream == stream)?;
        self.load -= 1;
        Some(stream_request)
    }

    /// Adds what has happened on the wire since the last time.
    fn count(&mut self) {
        let (now, before) = (self.wire.totals(), self.counted);
        self.counted = now;
        let mut tally = self.worker.tally.borrow_mut();
        let counts = &mut tally.current_recorder().counts;
        counts.streams_opened += now.streams - before.streams;
        counts.streams_reset += now.resets_received - before.resets_received;
        counts.flow_stalls += now.stalls - before.stalls;
        counts.field_bytes_out += now.fields_sent_bytes - before.fields_sent_bytes;
        counts.coded_field_bytes_out += now.coded_sent_bytes - before.coded_sent_bytes;
        counts.field_bytes_in += now.fields_received_bytes - before.fields_received_bytes;
        counts.coded_field_bytes_in += now.coded_received_bytes - before.coded_received_bytes;
    }
}

fn find(streams: &mut [Option<StreamRequest>], stream: Stream) -> Option<&mut StreamRequest> {
    streams.get_mut(stream.place as usize)?.as_mut().filter(|stream_request| stream_request.stream == stream)
}

impl Drop for Http2Connection {
    fn drop(&mut self) {
        if let Some((_, ticket)) = self.idle.take() {
            self.worker.timer.cancel(ticket);
        }
        self.count();
        self.worker.note_closed();
    }
}
