//! A connection of HTTP/2 to a server: a pipe for each request, and what is written into those as frames.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use assay_http2::{ASSUMED_STREAMS, Config, Connection as Wire, ErrorCode, Event, Stream as StreamId};
use tokio::io::{AsyncRead, AsyncWrite};

use super::STREAM_WINDOW_BYTES;
use super::connection::{MAX_UNWRITTEN, TURN_BYTES, find};
use super::pipe::{Pipe, PipeHub, StreamState};
use super::translate::SendOutcome;
use crate::connection::{Connection, Resources};
use assay_base::clock::{SECOND_NS, monotonic_ns};

/// A request that was given up after this long, while nothing at all has come on the connection, is a sign that nothing will.
const SILENT_NS: u64 = SECOND_NS;

/// A connection to a server, for those who send requests. When this is dropped, the connection ends with its last pipe.
pub struct Http2Client {
    shared: Rc<ClientShared>,
}

/// State that a client and its connection's task share.
struct ClientShared {
    hub: Rc<PipeHub>,
    scheme: &'static str,
    /// Streams that the server allows.
    limit: Cell<u32>,
    /// No more requests are accepted.
    is_closing: Cell<bool>,
    /// Number of reads.
    reads: Cell<u64>,
    /// Time when the last request ended.
    idle_since_ns: Cell<u64>,
}

impl ClientShared {
    fn close(&self) {
        self.is_closing.set(true);
        if let Some(waker) = &*self.hub.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

impl Http2Client {
    /// Takes over a connection on which nothing was sent. The future drives it until it ends, and has to run beside the requests.
    pub fn new<S: AsyncRead + AsyncWrite + Unpin>(
        connection: Connection<S>,
        is_secured: bool,
    ) -> (Self, impl Future<Output = io::Result<()>>) {
        let shared = Rc::new(ClientShared {
            hub: Rc::default(),
            scheme: if is_secured { "https" } else { "http" },
            limit: Cell::new(ASSUMED_STREAMS),
            is_closing: Cell::new(false),
            reads: Cell::new(0),
            idle_since_ns: Cell::new(monotonic_ns()),
        });
        let config = Config {
            stream_window: STREAM_WINDOW_BYTES,
            connection_window: 1 << 20,
            keeps_data: true,
            ..Config::default()
        };
        let driver = ClientDriver {
            connection,
            wire: Wire::client(config),
            shared: Rc::clone(&shared),
            streams: Vec::new(),
            turns: VecDeque::new(),
            stalled: Vec::new(),
            waiting: Vec::new(),
            refilled_ns: monotonic_ns(),
            has_failed: false,
            unwritable: None,
        };
        (Self { shared }, driver.run())
    }

    /// A stream for one request; none: the connection takes no more now.
    pub fn pipe(&self) -> Option<Pipe> {
        let ClientShared { hub, limit, is_closing, reads, scheme, .. } = &*self.shared;
        if is_closing.get() || hub.pipes.get() >= limit.get() as usize {
            return None;
        }
        let state = StreamState::for_request(scheme, monotonic_ns(), reads.get(), &hub.kept);
        Some(Pipe::new(&Rc::new(RefCell::new(state)), hub))
    }

    /// Whether no more requests are accepted.
    pub fn is_closing(&self) -> bool {
        self.shared.is_closing.get()
    }

    /// Start of the idle time (`CLOCK_MONOTONIC`, nanoseconds); none: there is a request.
    pub fn idle_since_ns(&self) -> Option<u64> {
        (self.shared.hub.pipes.get() == 0).then(|| self.shared.idle_since_ns.get())
    }
}

impl Drop for Http2Client {
    fn drop(&mut self) {
        self.shared.close();
    }
}

struct ClientDriver<S> {
    connection: Connection<S>,
    wire: Wire,
    shared: Rc<ClientShared>,
    /// By the place of the stream.
    streams: Vec<Option<Rc<RefCell<StreamState>>>>,
    /// Streams with something to send, in turn.
    turns: VecDeque<Rc<RefCell<StreamState>>>,
    /// Streams whose window is used up.
    stalled: Vec<Rc<RefCell<StreamState>>>,
    /// Requests that wait until the server allows a stream.
    waiting: Vec<Rc<RefCell<StreamState>>>,
    refilled_ns: u64,
    has_failed: bool,
    /// The error after which nothing can be written.
    unwritable: Option<io::Error>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> ClientDriver<S> {
    async fn run(mut self) -> io::Result<()> {
        let ended = poll_fn(|context| self.poll(context)).await;
        self.shared.is_closing.set(true);
        self.shared.hub.is_write_closed.set(true);
        self.fail_all();
        ended
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self.shared.hub.waker.borrow_mut() {
            Some(known) => known.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        if let Some(error) = self.unwritable.take() {
            return self.read_rest(error, context);
        }
        loop {
            self.handle_dirty();
            self.send();
            let is_blocked = match self.poll_write(context) {
                Poll::Ready(Err(error)) => return self.read_rest(error, context),
                written => written.is_pending(),
            };
            if !is_blocked && !self.turns.is_empty() {
                continue;
            }
            if self.wire.is_closing() {
                self.shared.is_closing.set(true);
            }
            let is_left = self.shared.is_closing.get() && self.shared.hub.pipes.get() == 0;
            if self.has_failed || (is_left && !is_blocked) {
                return Poll::Ready(Ok(()));
            }
            match self.poll_read(context) {
                Poll::Ready(Ok(true)) => {}
                // The server sends nothing more: no response can be completed.
                Poll::Ready(Ok(false)) => return Poll::Ready(Ok(())),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Reads the rest after a failed write: the server has closed the connection, but what it sent before says which requests it has
    /// responded to, and which it has not acted on.
    fn read_rest(&mut self, error: io::Error, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shared.is_closing.set(true);
        while !self.has_failed && self.shared.hub.pipes.get() > 0 {
            match self.poll_read(context) {
                Poll::Ready(Ok(true)) => {}
                Poll::Ready(Ok(false) | Err(_)) => break,
                Poll::Pending => {
                    self.unwritable = Some(error);
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Err(error))
    }

    /// Writes pending frames.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.wire.output().is_empty() {
            let stream = Pin::new(&mut self.connection.stream);
            let Poll::Ready(written) = stream.poll_write(context, self.wire.output()) else {
                return Poll::Pending;
            };
            match written? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.wire.wrote(written),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once, and handles the frames; false: the server sends no more.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let resources: Rc<Resources> = Rc::clone(self.connection.resources());
        let mut bytes = resources.memory.get();
        let read = resources.memory.poll_read(&mut self.connection.stream, context, |read| {
            bytes.extend_from_slice(read);
        });
        let read = read.map(|read| {
            read.map(|()| {
                self.shared.reads.set(self.shared.reads.get() + 1);
                let is_there = !bytes.is_empty();
                self.receive(&bytes);
                is_there
            })
        });
        resources.memory.put(bytes);
        read
    }

    /// Handles bytes that were read.
    fn receive(&mut self, bytes: &[u8]) {
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.refilled_ns) >= SECOND_NS {
            self.refilled_ns = now_ns;
            self.wire.refill();
        }
        let mut rest = bytes;
        loop {
            let Ok((used, event)) = self.wire.next(rest) else {
                self.has_failed = true;
                return;
            };
            rest = &rest[used..];
            let streams = &self.streams;
            match event {
                Event::NeedMore => break,
                Event::Head { stream, head, ends } => {
                    with(streams, stream, |state| state.take_response(head, ends));
                }
                Event::Interim { stream, head } => {
                    let mut is_too_much = false;
                    with(streams, stream, |state| is_too_much = !state.take_interim(head));
                    if is_too_much {
                        self.remove_stream(stream, StreamState::fail);
                        self.wire.reset(stream, ErrorCode::ENHANCE_YOUR_CALM);
                    }
                }
                Event::Data { stream, data, ends } => with(streams, stream, |state| {
                    state.take_data(data, ends);
                    if ends {
                        state.end();
                    }
                }),
                Event::Trailers { stream, .. } => with(streams, stream, |state| {
                    state.end_body();
                    state.end();
                }),
                Event::Unprocessed { stream } | Event::Reset { stream, code: ErrorCode::REFUSED_STREAM } => {
                    self.remove_stream(stream, StreamState::fail_unprocessed);
                }
                Event::Reset { stream, .. } => self.remove_stream(stream, StreamState::fail_after_input),
                Event::Failed { stream, .. } => self.remove_stream(stream, StreamState::fail),
                Event::Writable { .. } => {
                    for state in self.stalled.drain(..) {
                        state.borrow_mut().is_stalled = false;
                        self.turns.push_back(state);
                    }
                }
                Event::GoAway { .. } | Event::Pong(_) | Event::Priority { .. } => {}
            }
        }
        let limit = self.wire.peer_settings().max_streams;
        self.shared.limit.set(limit);
        // Streams may have ended.
        self.turns.extend(self.waiting.drain(..));
    }

    /// Removes a stream that was reset. A response that was complete before stays one: the server does not want the rest of the request.
    fn remove_stream(&mut self, stream: StreamId, fail: impl FnOnce(&mut StreamState)) {
        let Some(state) = find(&self.streams, stream) else { return };
        let is_ended = state.borrow().is_complete;
        if !is_ended {
            fail(&mut state.borrow_mut());
        }
        self.stalled.retain(|other| !Rc::ptr_eq(other, state));
        self.streams[stream.place as usize] = None;
    }

    /// Handles the streams that their pipes have marked dirty.
    fn handle_dirty(&mut self) {
        let touched = std::mem::take(&mut *self.shared.hub.dirty.borrow_mut());
        for state in touched {
            let mut it = state.borrow_mut();
            it.is_dirty = false;
            if it.is_dropped {
                drop(it);
                self.on_pipe_dropped(&state);
                continue;
            }
            if it.is_read()
                && it.unreleased > 0
                && let Some(stream) = it.stream
            {
                let held = std::mem::take(&mut it.unreleased);
                self.wire.release(stream, held);
            }
            drop(it);
            self.turns.push_back(state);
        }
    }

    /// Handles a dropped pipe: what is missing of its messages is not wanted.
    fn on_pipe_dropped(&mut self, state: &Rc<RefCell<StreamState>>) {
        let (stream, is_ended, begun_ns, reads_before) = {
            let it = state.borrow();
            (it.stream, it.is_complete, it.begun_ns, it.reads_before)
        };
        let is_it = |other: &Rc<RefCell<StreamState>>| Rc::ptr_eq(other, state);
        self.turns.retain(|other| !is_it(other));
        self.stalled.retain(|other| !is_it(other));
        self.waiting.retain(|other| !is_it(other));
        if let Some(stream) = stream
            && find(&self.streams, stream).is_some_and(is_it)
        {
            let code = if is_ended { ErrorCode::NO_ERROR } else { ErrorCode::CANCEL };
            self.wire.reset(stream, code);
            self.streams[stream.place as usize] = None;
            let now_ns = monotonic_ns();
            let is_silent =
                reads_before == self.shared.reads.get() && now_ns.saturating_sub(begun_ns) >= SILENT_NS;
            if is_silent && !is_ended {
                self.shared.is_closing.set(true);
            }
        }
        if self.shared.hub.pipes.get() == 0 {
            self.shared.idle_since_ns.set(monotonic_ns());
        }
    }

    /// Sends parts of requests, each stream in turn.
    fn send(&mut self) {
        while self.wire.output().len() < MAX_UNWRITTEN {
            let Some(state) = self.turns.pop_front() else { return };
            let mut it = state.borrow_mut();
            let it = &mut *it;
            let is_open = it.stream.is_none_or(|stream| self.wire.is_open(stream));
            if it.message.is_complete() || it.is_complete || !is_open {
                continue;
            }
            let was_sent = it.stream.is_some();
            let (to, written) = (&mut it.stream, &mut it.outgoing);
            let sent = it.message.send(&mut self.wire, to, written, it.is_write_closed, TURN_BYTES);
            it.note_outgoing();
            if let Some(stream) = it.stream.filter(|_| !was_sent) {
                let index = stream.place as usize;
                if self.streams.len() <= index {
                    self.streams.resize_with(index + 1, || None);
                }
                self.streams[index] = Some(Rc::clone(&state));
            }
            match sent {
                SendOutcome::All | SendOutcome::Complete => it.wake_writer(),
                SendOutcome::Some => {
                    it.wake_writer();
                    self.turns.push_back(Rc::clone(&state));
                }
                SendOutcome::Stalled if it.is_stalled => {}
                SendOutcome::Stalled => {
                    it.is_stalled = true;
                    self.stalled.push(Rc::clone(&state));
                }
                SendOutcome::NoStream => self.waiting.push(Rc::clone(&state)),
                SendOutcome::Closing => it.fail_unprocessed(),
                SendOutcome::Broken => {
                    it.fail();
                    if let Some(stream) = it.stream {
                        self.wire.reset(stream, ErrorCode::INTERNAL_ERROR);
                        self.streams[stream.place as usize] = None;
                    }
                }
            }
        }
    }

    /// Fails all requests when the connection has ended. Those that have not been sent can be sent elsewhere.
    fn fail_all(&mut self) {
        for state in self.streams.drain(..).flatten() {
            let mut it = state.borrow_mut();
            if !it.is_complete {
                it.fail_after_input();
            }
        }
        self.handle_dirty();
        for state in self.turns.drain(..).chain(self.waiting.drain(..)) {
            let mut it = state.borrow_mut();
            if it.stream.is_none() {
                it.fail_unprocessed();
            }
        }
    }
}

fn with(streams: &[Option<Rc<RefCell<StreamState>>>], stream: StreamId, act: impl FnOnce(&mut StreamState)) {
    if let Some(state) = find(streams, stream) {
        act(&mut state.borrow_mut());
    }
}
