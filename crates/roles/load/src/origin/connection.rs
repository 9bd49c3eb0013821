//! One connection of an origin.
//!
//! A task per connection, without a buffer while it is idle: it reads into the worker's buffer, responds to requests that are
//! complete there at once, and keeps only what is left over. Requests are handled one after the other, in order.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use assay_http::head::RequestHead;
use assay_workload::Fault;
use assay_workload::model::OriginIndex;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::accept_request::{ActiveRequest, NextAction, RequestArrival, accept_request};
use super::body_pacer::BodyPacer;
use super::lingering_close::LingeringClose;
use super::request::{OriginRequest, SpecialRequest};
use super::response::{UnsentResponse, WrittenResponse};
use super::upload::UploadCheck;
use super::worker_state::{AcceptedConnection, OriginTimerEvent, TaskAlarm, WorkerState};
use super::worker_state::{count_handshake, count_tls_error};
use assay_base::clock::monotonic_ns;
use assay_net::byte_stream::ByteStream;
use assay_net::rx_timestamps::is_delivered;
use assay_net::timer::TimerKey;

/// Position of a connection in its sequence of requests.
#[derive(Debug)]
enum ConnectionState {
    Between,
    /// Within the body of one.
    Body(OriginRequest, UploadCheck),
    /// A request is complete, and its think time over.
    Ready(OriginRequest),
}

/// Next action of a connection.
#[derive(Debug)]
enum ConnectionStep {
    Receive,
    /// Wait until this instant, then go on.
    Think(u64),
    /// Write what could not be written at once, or must not be.
    Send(Box<UnsentResponse>),
    /// Reset the connection: a fault on purpose.
    Reset,
    Close,
}

#[derive(Debug)]
pub struct Http1Connection {
    worker: Rc<WorkerState>,
    stream: ByteStream<TcpStream>,
    /// The origin at whose address it was accepted.
    at: OriginIndex,
    /// Requests that it may still serve.
    uses_left: u64,
    /// Bytes that were read and not yet used. Mostly empty, and then without memory.
    pending: Vec<u8>,
    /// The client sends without waiting for responses.
    pipelines: bool,
    state: ConnectionState,
    /// Instant at which bytes were last read, or resumed.
    read_ns: u64,
    /// Time for which those had lain unread then.
    unread_us: u32,
    /// Instant at which the current request was complete.
    complete_ns: u64,
    /// Bytes read for the current request.
    request_bytes: u64,
    /// The request is one of those that an origin under load counts.
    under_way: Option<ActiveRequest>,
    alarm: Rc<TaskAlarm>,
    /// Timeout of the idle connection, and the timer's ticket for it.
    idle: Option<(u64, TimerKey)>,
    /// Instant of the last response.
    used_ns: u64,
}

impl Http1Connection {
    /// For a connection that was just accepted.
    pub fn new(worker: Rc<WorkerState>, stream: ByteStream<TcpStream>, at: OriginIndex) -> Self {
        let AcceptedConnection { now_ns, uses_left, alarm, idle } = worker.accept(at);
        Self {
            worker,
            stream,
            at,
            uses_left,
            pending: Vec::new(),
            pipelines: false,
            state: ConnectionState::Between,
            read_ns: now_ns,
            unread_us: 0,
            complete_ns: now_ns,
            request_bytes: 0,
            under_way: None,
            alarm,
            idle,
            used_ns: now_ns,
        }
    }

    /// Serves it to its end.
    #[allow(clippy::manual_async_fn, reason = "the task of an `async fn` would hold the connection twice")]
    pub fn serve(mut self) -> impl Future<Output = ()> {
        async move {
            let ended = self.run().await;
            count_handshake(&self.worker, &mut self.stream);
            if let Err(error) = ended {
                count_tls_error(&self.worker, &self.stream, &error);
                // What is missing is to look as if it were.
                self.stream.abort();
                self.worker.tally.borrow_mut().current_recorder().counts.broken += 1;
            }
        }
    }

    /// Runs the connection; an error if it ended in the middle of something.
    async fn run(&mut self) -> io::Result<()> {
        let mut step = ConnectionStep::Receive;
        loop {
            step = match step {
                ConnectionStep::Receive => poll_fn(|context| self.poll_receive(context)).await?,
                ConnectionStep::Think(until_ns) => {
                    self.think(until_ns).await;
                    self.resume_pending()
                }
                ConnectionStep::Send(sending) => {
                    let closes = self.send(sending).await?;
                    if closes { ConnectionStep::Close } else { self.resume_pending() }
                }
                ConnectionStep::Reset => {
                    // Without a time to linger, closing is resetting.
                    self.stream.abort();
                    let _ = socket2::SockRef::from(self.stream.socket()).set_linger(Some(Duration::ZERO));
                    return Ok(());
                }
                ConnectionStep::Close => {
                    if self.pipelines || !self.pending.is_empty() {
                        self.linger().await;
                    }
                    return Ok(());
                }
            };
        }
    }

    /// Reads once, and responds to complete requests.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<ConnectionStep>> {
        if self.idle.is_some() {
            self.alarm.listen(context);
            if self.alarm.take_idle() && self.is_idle_for_too_long() {
                return Poll::Ready(self.end());
            }
        }
        let worker = Rc::clone(&self.worker);
        let mut input = worker.input.borrow_mut();
        let (bytes, received) = match ready!(self.stream.poll_recv(context, &mut input)) {
            Ok(read) if read.length > 0 => (&input[..read.length], read.received),
            Err(error) if !self.stream.is_open() => return Poll::Ready(Err(error)),
            // A client that is done may reset an idle connection as well as close it.
            _ => return Poll::Ready(self.end()),
        };
        if self.stream.is_tls() {
            count_handshake(&self.worker, &mut self.stream);
        }
        self.read_ns = monotonic_ns();
        self.unread_us = worker.arrivals.get().unread_us(received, self.read_ns);
        if self.pending.is_empty() {
            let (used, step) = self.advance(bytes);
            self.pending.extend_from_slice(&bytes[used..]);
            return Poll::Ready(Ok(step));
        }
        self.pending.extend_from_slice(bytes);
        Poll::Ready(Ok(self.advance_pending()))
    }

    /// Ends the connection, whose client is gone or was idle for too long: an error when that is in the middle of a
    /// request.
    fn end(&self) -> io::Result<ConnectionStep> {
        match self.state {
            ConnectionState::Between if self.pending.is_empty() => Ok(ConnectionStep::Close),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Goes on with what has been read already.
    fn resume_pending(&mut self) -> ConnectionStep {
        self.read_ns = monotonic_ns();
        self.advance_pending()
    }

    fn advance_pending(&mut self) -> ConnectionStep {
        let pending = std::mem::take(&mut self.pending);
        let (used, step) = self.advance(&pending);
        if used < pending.len() {
            self.pending = pending;
            self.pending.drain(..used);
        }
        step
    }

    /// Takes requests from `input` and responds to them until something must be waited for: how many bytes are used
    /// up, and what is next.
    fn advance(&mut self, input: &[u8]) -> (usize, ConnectionStep) {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let step = match std::mem::replace(&mut self.state, ConnectionState::Between) {
                ConnectionState::Between => self.take_head(rest, &mut used),
                ConnectionState::Body(request, upload) => self.take_body(request, upload, rest, &mut used),
                ConnectionState::Ready(request) => self.respond(request),
            };
            if let Some(step) = step {
                return (used, step);
            }
        }
    }

    fn take_head(&mut self, input: &[u8], used: &mut usize) -> Option<ConnectionStep> {
        let blank = empty_lines(input);
        *used += blank;
        let input = &input[blank..];
        if input.is_empty() {
            return Some(ConnectionStep::Receive);
        }
        // A second head in one read: this client does not wait for responses.
        self.pipelines |= *used > blank;
        let (head, length) = match RequestHead::parse(input) {
            Ok(Some(parsed)) => parsed,
            Ok(None) => return Some(ConnectionStep::Receive),
            Err(error) => return Some(self.refuse(error.status(), input.starts_with(b"HEAD "))),
        };
        *used += length;
        self.request_bytes = length as u64;
        let mut request = match OriginRequest::read(&self.worker.shared, self.at, &head) {
            Ok(request) => request,
            Err(error) => return Some(self.refuse(error.status(), head.method == "HEAD")),
        };
        let Some(upload) = UploadCheck::new(&self.worker.shared.universe, &request, head.body()) else {
            return self.complete(request);
        };
        if head.expect_continue {
            if self.is_body_refused(&request) {
                request.special.get_or_insert_with(Box::<SpecialRequest>::default).is_body_refused = true;
                // Nobody can tell whether the body comes all the same: nothing is read after this.
                self.pipelines = true;
                return self.complete(request);
            }
            if length == input.len() && !self.say_continue(&request) {
                return Some(ConnectionStep::Close);
            }
        }
        self.state = ConnectionState::Body(request, upload);
        None
    }

    /// True for a request whose body is refused: a share of those that are announced with `Expect`.
    fn is_body_refused(&self, request: &OriginRequest) -> bool {
        request.is_for_object() && !self.worker.shared.universe.body_allowed(request.xact(), request.origin)
    }

    /// Sends 100 to a client that waits for it. That response is short enough to be written at once, or the client does
    /// not read at all.
    fn say_continue(&mut self, request: &OriginRequest) -> bool {
        const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
        let mut tally = self.worker.tally.borrow_mut();
        let phase = request.phase(&tally);
        tally.recorder(phase).counts.continued += 1;
        let sent = self.stream.try_send_parts(&[io::IoSlice::new(CONTINUE)]);
        sent.is_ok_and(|written| written == CONTINUE.len())
    }

    /// Takes what has come of a request body.
    fn take_body(
        &mut self,
        request: OriginRequest,
        mut upload: UploadCheck,
        input: &[u8],
        used: &mut usize,
    ) -> Option<ConnectionStep> {
        let Ok(taken) = upload.take(self.worker.shared.universe.pool(), input) else {
            return Some(self.refuse(400, request.head_only()));
        };
        *used += taken;
        self.request_bytes += taken as u64;
        if upload.is_complete() {
            if let Some(error) = upload.error() {
                self.worker.count_error(&request, &error, self.read_ns);
            }
            return self.complete(request);
        }
        self.state = ConnectionState::Body(request, upload);
        Some(ConnectionStep::Receive)
    }

    /// Counts a complete request, and begins its think time.
    fn complete(&mut self, mut request: OriginRequest) -> Option<ConnectionStep> {
        self.complete_ns = self.read_ns;
        let arrival =
            RequestArrival { at_ns: self.read_ns, unread_us: self.unread_us, bytes: self.request_bytes };
        let next = accept_request(&self.worker, &mut request, arrival, &mut self.under_way);
        match next {
            NextAction::Reset => Some(ConnectionStep::Reset),
            NextAction::Think { until_ns } => {
                self.state = ConnectionState::Ready(request);
                Some(ConnectionStep::Think(until_ns))
            }
            NextAction::Respond => {
                self.state = ConnectionState::Ready(request);
                None
            }
        }
    }

    /// Responds to a complete request; none: the response is complete, and the next request may come.
    fn respond(&mut self, request: OriginRequest) -> Option<ConnectionStep> {
        if request.special.as_ref().is_some_and(|special| matches!(special.fault, Some(Fault::Expired(_)))) {
            return Some(ConnectionStep::Reset);
        }
        self.uses_left = self.uses_left.saturating_sub(1);
        let may_persist =
            self.uses_left > 0 && !request.special.as_ref().is_some_and(|special| special.is_body_refused);
        let worker = Rc::clone(&self.worker);
        let mut output = worker.output.borrow_mut();
        output.clear();
        // When it was read, or when its think time ended: a moment ago.
        let response = WrittenResponse::write(&worker, request, self.read_ns, may_persist, &mut output);
        self.begin(response, &output)
    }

    /// Writes as much as the socket takes; none: all of it, and the next request may come.
    fn begin(&mut self, response: WrittenResponse, head: &[u8]) -> Option<ConnectionStep> {
        if response.bytes_per_s().is_some() {
            return Some(ConnectionStep::Send(Box::new(UnsentResponse {
                response,
                head: head.into(),
                written: 0,
            })));
        }
        let outgoing = response.outgoing(head);
        let length = outgoing.len();
        match outgoing.try_write(&mut self.stream, self.worker.shared.universe.pool(), 0, length) {
            Ok(written) if written == length && !self.stream.has_unsent() => {
                let closes = response.closes;
                self.used_ns = response.sent(&self.worker, self.complete_ns, head.len(), length, length);
                response.written(&self.worker, self.read_ns, self.used_ns);
                self.under_way = None;
                closes.then_some(ConnectionStep::Close)
            }
            Ok(written) => {
                response.written(&self.worker, self.read_ns, monotonic_ns());
                Some(ConnectionStep::Send(Box::new(UnsentResponse { response, head: head.into(), written })))
            }
            Err(_) => {
                self.worker.tally.borrow_mut().current_recorder().counts.broken += 1;
                Some(ConnectionStep::Close)
            }
        }
    }

    /// Writes the rest as the socket takes it; true if the connection ends then.
    async fn send(&mut self, mut sending: Box<UnsentResponse>) -> io::Result<bool> {
        let outgoing = sending.response.outgoing(&sending.head);
        let pace = sending.response.bytes_per_s().map(|bytes_per_s| BodyPacer {
            begun_ns: monotonic_ns(),
            head_bytes: sending.head.len() as u64,
            bytes_per_s,
        });
        let length = outgoing.len();
        while sending.written < length {
            let to = pace.as_ref().map_or(length, |pace| pace.allowed(monotonic_ns()).min(length));
            if let Some(pace) = pace.as_ref().filter(|_| to <= sending.written) {
                self.wait(pace.due_ns(sending.written, length)).await;
                continue;
            }
            self.stream.socket().writable().await?;
            let pool = self.worker.shared.universe.pool();
            sending.written += outgoing.try_write(&mut self.stream, pool, sending.written, to)?;
        }
        self.stream.flush_all().await?;
        let closes = sending.response.closes;
        self.used_ns =
            sending.response.sent(&self.worker, self.complete_ns, sending.head.len(), length, length);
        self.under_way = None;
        Ok(closes)
    }

    /// Refuses what is not HTTP, or names nothing that could be here, and ends the connection: nobody can tell where the next
    /// request begins.
    fn refuse(&mut self, status: u16, head_only: bool) -> ConnectionStep {
        let worker = Rc::clone(&self.worker);
        worker.tally.borrow_mut().current_recorder().counts.refused += 1;
        let mut output = worker.output.borrow_mut();
        output.clear();
        let response = WrittenResponse::write_refusal(&worker, self.at, status, head_only, &mut output);
        // The client is likely to be sending still.
        self.pipelines = true;
        self.begin(response, &output).unwrap_or(ConnectionStep::Close)
    }

    async fn think(&mut self, until_ns: u64) {
        self.wait(until_ns).await;
        let late_us = monotonic_ns().saturating_sub(until_ns) / 1000;
        let mut tally = self.worker.tally.borrow_mut();
        if let ConnectionState::Ready(request) = &mut self.state {
            request.delay_us = request.delay_us.saturating_add(u32::try_from(late_us).unwrap_or(u32::MAX));
            let phase = request.phase(&tally);
            tally.recorder(phase).lateness.record(late_us);
        }
    }

    /// Waits for the worker's timer.
    async fn wait(&self, until_ns: u64) {
        self.worker.timer.schedule(until_ns, OriginTimerEvent::Think(Rc::clone(&self.alarm)));
        poll_fn(|context| {
            self.alarm.listen(context);
            if self.alarm.take_think() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn is_idle_for_too_long(&mut self) -> bool {
        let Some((idle_ns, ticket)) = &mut self.idle else { return false };
        let end_ns = self.used_ns.saturating_add(*idle_ns);
        if monotonic_ns() >= end_ns {
            return true;
        }
        *ticket = self.worker.timer.schedule(end_ns, OriginTimerEvent::Idle(Rc::clone(&self.alarm)));
        false
    }

    /// Says that nothing more comes, and reads on until the client has ended its side as well.
    async fn linger(&mut self) {
        if self.stream.shutdown().await.is_err() {
            return;
        }
        self.cancel_idle();
        self.alarm.take_idle();
        let (mut closing, first_ns) = LingeringClose::begin(monotonic_ns());
        self.set_alarm(first_ns);
        poll_fn(|context| {
            self.alarm.listen(context);
            loop {
                if self.alarm.take_idle() {
                    let is_delivered = is_delivered(self.stream.socket());
                    let Some(next_ns) = closing.check(is_delivered, monotonic_ns()) else {
                        return Poll::Ready(());
                    };
                    self.set_alarm(next_ns);
                }
                let mut input = self.worker.input.borrow_mut();
                if !ready!(self.stream.poll_recv(context, &mut input)).is_ok_and(|read| read.length > 0) {
                    return Poll::Ready(());
                }
            }
        })
        .await;
    }

    /// Has the alarm ring at a time.
    fn set_alarm(&mut self, at_ns: u64) {
        let due = OriginTimerEvent::Idle(Rc::clone(&self.alarm));
        self.idle = Some((0, self.worker.timer.schedule(at_ns, due)));
    }

    fn cancel_idle(&mut self) {
        if let Some((_, ticket)) = self.idle.take() {
            self.worker.timer.cancel(ticket);
        }
    }
}

/// Bytes of the empty lines that come first: some clients send one after a body (RFC 9112, 2.2). A CR or an LF alone is none, and
/// is refused with the head that it belongs to.
fn empty_lines(input: &[u8]) -> usize {
    2 * input.chunks_exact(2).take_while(|line| *line == b"\r\n").count()
}

impl Drop for Http1Connection {
    fn drop(&mut self) {
        self.cancel_idle();
        self.worker.note_closed();
    }
}
