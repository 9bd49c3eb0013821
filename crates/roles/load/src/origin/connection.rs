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

use super::admit::{Arrival, Next, UnderWay, admit};
use super::closing::Closing;
use super::handshake::{count_handshake, count_tls_error};
use super::local::{Accepted, Alarm, Due, Local};
use super::pace::Pace;
use super::request::{Request, Special};
use super::response::{Response, Sending};
use super::upload::Upload;
use assay_base::clock::monotonic_ns;
use assay_net::arrival::is_delivered;
use assay_net::byte_stream::ByteStream;
use assay_net::timer::Ticket;

/// Where a connection stands.
#[derive(Debug)]
enum State {
    Between,
    /// Within the body of one.
    Body(Request, Upload),
    /// It is complete, and its think time over.
    Ready(Request),
}

/// What a connection does next.
#[derive(Debug)]
enum Step {
    Receive,
    /// Wait until this instant, then go on.
    Think(u64),
    /// Write what could not be written at once, or must not be.
    Send(Box<Sending>),
    /// Reset the connection: a fault on purpose.
    Reset,
    /// Close: everything is said.
    Close,
}

#[derive(Debug)]
pub struct Connection {
    local: Rc<Local>,
    stream: ByteStream<TcpStream>,
    /// The origin at whose address it was accepted.
    at: OriginIndex,
    /// Requests that it may still serve.
    uses_left: u64,
    /// Bytes that were read and not yet used. Mostly empty, and then without memory.
    pending: Vec<u8>,
    /// The client sends without waiting for responses.
    pipelines: bool,
    state: State,
    /// When bytes were last read, or gone on with.
    read_ns: u64,
    /// How long those had lain unread then.
    unread_us: u32,
    /// When the current request was complete.
    complete_ns: u64,
    /// Bytes read for the current request.
    request_bytes: u64,
    /// The request is one of those that an origin under load counts.
    under_way: Option<UnderWay>,
    alarm: Rc<Alarm>,
    /// Timeout of the idle connection, and the timer's ticket for it.
    idle: Option<(u64, Ticket)>,
    /// When it was last busy.
    used_ns: u64,
}

impl Connection {
    /// A connection that was just accepted.
    pub fn new(local: Rc<Local>, stream: ByteStream<TcpStream>, at: OriginIndex) -> Self {
        let Accepted { now_ns, uses_left, alarm, idle } = local.accept(at);
        Self {
            local,
            stream,
            at,
            uses_left,
            pending: Vec::new(),
            pipelines: false,
            state: State::Between,
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
            count_handshake(&self.local, &mut self.stream);
            if let Err(error) = ended {
                count_tls_error(&self.local, &self.stream, &error);
                // What is missing is to look as if it were.
                self.stream.break_off();
                self.local.tally.borrow_mut().here().counts.broken += 1;
            }
        }
    }

    /// An error is a connection that ended in the middle of something.
    async fn run(&mut self) -> io::Result<()> {
        let mut step = Step::Receive;
        loop {
            step = match step {
                Step::Receive => poll_fn(|context| self.poll_receive(context)).await?,
                Step::Think(until_ns) => {
                    self.think(until_ns).await;
                    self.go_on()
                }
                Step::Send(sending) => {
                    let closes = self.send(sending).await?;
                    if closes { Step::Close } else { self.go_on() }
                }
                Step::Reset => {
                    // Without a time to linger, closing is resetting.
                    self.stream.break_off();
                    let _ = socket2::SockRef::from(self.stream.socket()).set_linger(Some(Duration::ZERO));
                    return Ok(());
                }
                Step::Close => {
                    if self.pipelines || !self.pending.is_empty() {
                        self.linger().await;
                    }
                    return Ok(());
                }
            };
        }
    }

    /// Reads once, and responds to complete requests.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Step>> {
        if self.idle.is_some() {
            self.alarm.listen(context);
            if self.alarm.take_idle() && self.is_idle_for_too_long() {
                return Poll::Ready(self.end());
            }
        }
        let local = Rc::clone(&self.local);
        let mut input = local.input.borrow_mut();
        let (bytes, received) = match ready!(self.stream.poll_recv(context, &mut input)) {
            Ok(read) if read.length > 0 => (&input[..read.length], read.received),
            Err(error) if !self.stream.is_open() => return Poll::Ready(Err(error)),
            // A client that is done may reset an idle connection as well as close it.
            _ => return Poll::Ready(self.end()),
        };
        if self.stream.is_secured() {
            count_handshake(&self.local, &mut self.stream);
        }
        self.read_ns = monotonic_ns();
        self.unread_us = local.arrivals.get().unread_us(received, self.read_ns);
        if self.pending.is_empty() {
            let (used, step) = self.advance(bytes);
            self.pending.extend_from_slice(&bytes[used..]);
            return Poll::Ready(Ok(step));
        }
        self.pending.extend_from_slice(bytes);
        Poll::Ready(Ok(self.advance_pending()))
    }

    /// The client is gone, or idle for too long: an error when that is in the middle of a request.
    fn end(&self) -> io::Result<Step> {
        match self.state {
            State::Between if self.pending.is_empty() => Ok(Step::Close),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Goes on with what has been read already.
    fn go_on(&mut self) -> Step {
        self.read_ns = monotonic_ns();
        self.advance_pending()
    }

    fn advance_pending(&mut self) -> Step {
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
    fn advance(&mut self, input: &[u8]) -> (usize, Step) {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            let step = match std::mem::replace(&mut self.state, State::Between) {
                State::Between => self.take_head(rest, &mut used),
                State::Body(request, upload) => self.take_body(request, upload, rest, &mut used),
                State::Ready(request) => self.respond(request),
            };
            if let Some(step) = step {
                return (used, step);
            }
        }
    }

    fn take_head(&mut self, input: &[u8], used: &mut usize) -> Option<Step> {
        let blank = empty_lines(input);
        *used += blank;
        let input = &input[blank..];
        if input.is_empty() {
            return Some(Step::Receive);
        }
        self.pipelines |= *used > blank;
        let (head, length) = match RequestHead::parse(input) {
            Ok(Some(parsed)) => parsed,
            Ok(None) => return Some(Step::Receive),
            Err(error) => return Some(self.refuse(error.status(), input.starts_with(b"HEAD "))),
        };
        *used += length;
        self.request_bytes = length as u64;
        let mut request = match Request::read(&self.local.world, self.at, &head) {
            Ok(request) => request,
            Err(error) => return Some(self.refuse(error.status(), head.method == "HEAD")),
        };
        let Some(upload) = Upload::new(&self.local.world.universe, &request, head.body()) else {
            return self.complete(request);
        };
        if head.expect_continue {
            if self.is_unwanted(&request) {
                request.special.get_or_insert_with(Box::<Special>::default).is_unwanted = true;
                // Nobody can tell whether the body comes all the same: nothing is read after this.
                self.pipelines = true;
                return self.complete(request);
            }
            if length == input.len() && !self.say_continue(&request) {
                return Some(Step::Close);
            }
        }
        self.state = State::Body(request, upload);
        None
    }

    /// The origin refuses this request's body: a share of those that are announced with `Expect`.
    fn is_unwanted(&self, request: &Request) -> bool {
        request.is_for_object() && !self.local.world.universe.body_allowed(request.xact(), request.origin)
    }

    /// The client waits for 100 before it sends the body. That response is short enough to be written at once, or the
    /// client does not read at all.
    fn say_continue(&mut self, request: &Request) -> bool {
        const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
        let mut tally = self.local.tally.borrow_mut();
        let phase = request.phase(&tally);
        tally.of(phase).counts.continued += 1;
        let sent = self.stream.try_send_parts(&[io::IoSlice::new(CONTINUE)]);
        sent.is_ok_and(|written| written == CONTINUE.len())
    }

    /// Takes what has come of a request body.
    fn take_body(
        &mut self,
        request: Request,
        mut upload: Upload,
        input: &[u8],
        used: &mut usize,
    ) -> Option<Step> {
        let Ok((taken, is_complete)) = upload.take(self.local.world.universe.pool(), input) else {
            return Some(self.refuse(400, request.head_only()));
        };
        *used += taken;
        self.request_bytes += taken as u64;
        if is_complete {
            if let Some(wrong) = upload.wrong() {
                let now_ms = self.local.clock.get().since_start_us(self.read_ns) / 1000;
                self.local.tally.borrow_mut().wrong_upload(
                    &self.local.world.universe,
                    &request,
                    &wrong,
                    now_ms,
                );
            }
            return self.complete(request);
        }
        self.state = State::Body(request, upload);
        Some(Step::Receive)
    }

    /// The request is complete: counts it, and lets the origin think.
    fn complete(&mut self, mut request: Request) -> Option<Step> {
        self.complete_ns = self.read_ns;
        let arrival = Arrival { at_ns: self.read_ns, unread_us: self.unread_us, bytes: self.request_bytes };
        let next = admit(&self.local, &mut request, arrival, &mut self.under_way);
        match next {
            Next::Reset => Some(Step::Reset),
            Next::Think { until_ns } => {
                self.state = State::Ready(request);
                Some(Step::Think(until_ns))
            }
            Next::Respond => {
                self.state = State::Ready(request);
                None
            }
        }
    }

    /// Responds to a complete request; none: the response is complete, and the next request may come.
    fn respond(&mut self, request: Request) -> Option<Step> {
        if request.special.as_ref().is_some_and(|special| matches!(special.fault, Some(Fault::Expired(_)))) {
            return Some(Step::Reset);
        }
        self.uses_left = self.uses_left.saturating_sub(1);
        let may_persist =
            self.uses_left > 0 && !request.special.as_ref().is_some_and(|special| special.is_unwanted);
        let local = Rc::clone(&self.local);
        let mut output = local.output.borrow_mut();
        output.clear();
        // When it was read, or when its think time ended: a moment ago.
        let response = Response::write(&local, request, self.read_ns, may_persist, &mut output);
        self.begin(response, &output)
    }

    /// Writes as much as the socket takes; none: all of it, and the next request may come.
    fn begin(&mut self, response: Response, head: &[u8]) -> Option<Step> {
        if response.bytes_per_s().is_some() {
            return Some(Step::Send(Box::new(Sending { response, head: head.into(), written: 0 })));
        }
        let outgoing = response.outgoing(head);
        let length = outgoing.len();
        match outgoing.try_write(&mut self.stream, self.local.world.universe.pool(), 0, length) {
            Ok(written) if written == length && !self.stream.has_unsent() => {
                let closes = response.closes;
                self.used_ns = response.sent(&self.local, self.complete_ns, head.len(), length, length);
                response.written(&self.local, self.read_ns, self.used_ns);
                self.under_way = None;
                closes.then_some(Step::Close)
            }
            Ok(written) => {
                response.written(&self.local, self.read_ns, monotonic_ns());
                Some(Step::Send(Box::new(Sending { response, head: head.into(), written })))
            }
            Err(_) => {
                self.local.tally.borrow_mut().here().counts.broken += 1;
                Some(Step::Close)
            }
        }
    }

    /// Writes the rest as the socket takes it; tells whether the connection ends then.
    async fn send(&mut self, mut sending: Box<Sending>) -> io::Result<bool> {
        let outgoing = sending.response.outgoing(&sending.head);
        let pace = sending.response.bytes_per_s().map(|bytes_per_s| Pace {
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
            let pool = self.local.world.universe.pool();
            sending.written += outgoing.try_write(&mut self.stream, pool, sending.written, to)?;
        }
        self.stream.flush_all().await?;
        let closes = sending.response.closes;
        self.used_ns =
            sending.response.sent(&self.local, self.complete_ns, sending.head.len(), length, length);
        self.under_way = None;
        Ok(closes)
    }

    /// Refuses what is not HTTP, or names nothing that could be here, and ends the connection: nobody can tell where the next
    /// request begins.
    fn refuse(&mut self, status: u16, head_only: bool) -> Step {
        let local = Rc::clone(&self.local);
        local.tally.borrow_mut().here().counts.refused += 1;
        let mut output = local.output.borrow_mut();
        output.clear();
        let response = Response::write_refusal(&local, self.at, (status, head_only), &mut output);
        // The client is likely to be sending still.
        self.pipelines = true;
        self.begin(response, &output).unwrap_or(Step::Close)
    }

    async fn think(&mut self, until_ns: u64) {
        self.wait(until_ns).await;
        let late_us = monotonic_ns().saturating_sub(until_ns) / 1000;
        let mut tally = self.local.tally.borrow_mut();
        if let State::Ready(request) = &mut self.state {
            request.delay_us = request.delay_us.saturating_add(u32::try_from(late_us).unwrap_or(u32::MAX));
            let phase = request.phase(&tally);
            tally.of(phase).lateness.record(late_us);
        }
    }

    /// Until the worker's timer says that it is time.
    async fn wait(&self, until_ns: u64) {
        self.local.timer.schedule(until_ns, Due::Think(Rc::clone(&self.alarm)));
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
        *ticket = self.local.timer.schedule(end_ns, Due::Idle(Rc::clone(&self.alarm)));
        false
    }

    /// Says that nothing more comes, and reads on until the client has ended its side as well.
    async fn linger(&mut self) {
        if self.stream.shutdown().await.is_err() {
            return;
        }
        self.cancel_idle();
        self.alarm.take_idle();
        let (mut closing, first_ns) = Closing::begin(monotonic_ns());
        self.look_at(first_ns);
        poll_fn(|context| {
            self.alarm.listen(context);
            loop {
                if self.alarm.take_idle() {
                    let is_delivered = is_delivered(self.stream.socket());
                    let Some(next_ns) = closing.look(is_delivered, monotonic_ns()) else {
                        return Poll::Ready(());
                    };
                    self.look_at(next_ns);
                }
                let mut input = self.local.input.borrow_mut();
                if !ready!(self.stream.poll_recv(context, &mut input)).is_ok_and(|read| read.length > 0) {
                    return Poll::Ready(());
                }
            }
        })
        .await;
    }

    /// Has the alarm ring at a time.
    fn look_at(&mut self, at_ns: u64) {
        let due = Due::Idle(Rc::clone(&self.alarm));
        self.idle = Some((0, self.local.timer.schedule(at_ns, due)));
    }

    fn cancel_idle(&mut self) {
        if let Some((_, ticket)) = self.idle.take() {
            self.local.timer.cancel(ticket);
        }
    }
}

/// Bytes of the empty lines that come first: some clients send one after a body (RFC 9112, 2.2). A CR or an LF alone is none, and
/// is refused with the head that it belongs to.
fn empty_lines(input: &[u8]) -> usize {
    2 * input.chunks_exact(2).take_while(|line| *line == b"\r\n").count()
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.cancel_idle();
        self.local.note_closed();
    }
}
