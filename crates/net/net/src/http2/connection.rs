//! A client's connection of HTTP/2: frames in, pipes out, and what is written into those back into frames.
//!
//! Each stream has a deadline of its own: its handler's, and this file's once the handler is done. When a client lets a stream time out
//! and no other makes progress, the connection ends, as it would over HTTP/1.1.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use assay_http2::{Config, Connection as Wire, ErrorCode, Event, Stream as StreamId};

use super::pipe::{Pipe, PipeHub, StreamState};
use super::translate::SendOutcome;
use super::{MAX_PIPES, MAX_STREAMS, STREAM_WINDOW_BYTES};
use crate::buffers::poll_deadline;
use crate::connection::{Connection, Resources};
use crate::deadlines::{Deadline, Deadlines, WaitReason};
use crate::exchange::{ClientLimits, Transport};
use assay_base::clock::{SECOND_NS, monotonic_ns};

/// Bodies are not made into frames while this many bytes are unwritten.
pub(super) const MAX_UNWRITTEN: usize = 64 * 1024;
/// Nothing is read while this many bytes are unwritten: what is read may need an acknowledgement.
const MAX_UNACKNOWLEDGED: usize = 256 * 1024;
/// Bytes of a body that a stream sends before it is another's turn.
pub(super) const TURN_BYTES: usize = 16 * 1024;

/// Interval of PINGs to a client that has half-closed its connection, and has responses to come. A socket does not tell a half-closed
/// client from one that has gone; what is written to the latter fails.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// Longer than any connection waits: the waits of its streams have deadlines of their own.
const UNLIMITED: Duration = Duration::from_secs(24 * 60 * 60);

/// The status of the response to CONNECT, and to a scheme other than those of HTTP.
const NOT_IMPLEMENTED: u16 = 501;

/// Purpose of the connection's deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeadlinePurpose {
    /// Requests are in flight, and have deadlines of their own.
    Handlers,
    /// Requests are in flight, and nobody but the client can make progress: the connection can be evicted where slots are scarce.
    Client,
    Idle,
    /// The client has let a stream time out, and makes progress on no other: the connection ends.
    TimedOut,
    /// The client does not take what is sent.
    Writing,
    /// The client has half-closed its connection, and may have gone: it is probed.
    Gone,
}

/// A frame or header block that has begun ([`Wire::partial_frame`]), and the time that the client has for the rest: that of a head over HTTP/1.1.
struct PartialFrame {
    number: u64,
    deadline: Deadline,
}

struct ServerDriver<S, F> {
    connection: Connection<S>,
    limits: ClientLimits,
    start: F,
    wire: Wire,
    hub: Rc<PipeHub>,
    /// By the place of the stream.
    streams: Vec<Option<Rc<RefCell<StreamState>>>>,
    /// Streams with something to send, in turn.
    turns: VecDeque<Rc<RefCell<StreamState>>>,
    /// Streams whose window is used up.
    stalled: Vec<Rc<RefCell<StreamState>>>,
    deadline_purpose: DeadlinePurpose,
    partial_frame: Option<PartialFrame>,
    refilled_ns: u64,
    /// The client has ended its side of the connection: what it has requested in full still gets its response.
    is_half_closed: bool,
    /// The frames that were sent end with a GOAWAY for an error.
    has_failed: bool,
}

/// Serves a connection until it ends. `start` is given requests, those of one handler one after the other; it must ensure that they
/// are served concurrently. An error: the client did not take what was sent, or its connection was reset.
pub async fn serve<S: Transport>(
    connection: Connection<S>,
    limits: ClientLimits,
    start: impl FnMut(Pipe),
) -> io::Result<()> {
    let config = Config {
        max_streams: MAX_STREAMS,
        stream_window: STREAM_WINDOW_BYTES,
        connection_window: 1 << 20,
        max_section_bytes: u32::try_from(limits.head_bytes).unwrap_or(u32::MAX),
        keeps_data: true,
        ..Config::default()
    };
    connection.deadline.set_min_rate(limits.least_rate);
    // The preface is here, and had the time of a head.
    connection.deadline.set(Duration::MAX);
    let mut driver = ServerDriver {
        connection,
        limits,
        start,
        wire: Wire::server(config),
        hub: PipeHub::for_server(),
        streams: Vec::new(),
        turns: VecDeque::new(),
        stalled: Vec::new(),
        deadline_purpose: DeadlinePurpose::Handlers,
        partial_frame: None,
        refilled_ns: monotonic_ns(),
        is_half_closed: false,
        has_failed: false,
    };
    let input = std::mem::take(&mut driver.connection.input);
    driver.receive(input.unread());
    let ended = poll_fn(|context| driver.poll(context)).await;
    driver.fail_all();
    // What a client does not take would stay in the system's memory for as long as it likes.
    if ended.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
        driver.connection.stream.reset_on_close();
    }
    ended?;
    Box::pin(driver.connection.linger()).await;
    Ok(())
}

impl<S: Transport, F: FnMut(Pipe)> ServerDriver<S, F> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self.hub.waker.borrow_mut() {
            Some(known) => known.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        let (mut lacks_progress, mut is_late) = (false, false);
        loop {
            // Before streams that end leave room to others, and are told why: both would look like progress.
            lacks_progress |= self.lacks_progress();
            self.handle_dirty();
            is_late |= self.send();
            let is_blocked = self.poll_write(context)?.is_pending();
            let is_written = self.wire.output().is_empty();
            if is_written && !self.turns.is_empty() {
                continue;
            }
            let is_last = self.is_half_closed || self.wire.is_closing();
            if self.has_failed || (is_written && is_last && self.wire.open_streams() == 0) {
                return Poll::Ready(Ok(()));
            }
            let has_timed_out = is_late && (lacks_progress || self.wire.open_streams() == 0);
            self.set_deadline(is_blocked, has_timed_out);
            if !self.is_half_closed && self.wire.output().len() < MAX_UNACKNOWLEDGED {
                match self.poll_read(context) {
                    Poll::Ready(Ok(true)) => {
                        (lacks_progress, is_late) = (false, false);
                        continue;
                    }
                    Poll::Ready(Ok(false)) => {
                        self.end_input();
                        continue;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {}
                }
            }
            if self.end_late(context) {
                is_late = true;
                continue;
            }
            let is_overdue = |partial: &PartialFrame| partial.deadline.check(context).is_err();
            if self.deadline_purpose == DeadlinePurpose::TimedOut
                || self.partial_frame.as_ref().is_some_and(is_overdue)
            {
                return self.go_away(context);
            }
            return match poll_deadline(&self.connection.deadline, context) {
                Poll::Ready(Err(_)) if self.deadline_purpose == DeadlinePurpose::Gone => {
                    self.wire.ping([0; 8]);
                    self.connection.deadline.set(PROBE_INTERVAL);
                    continue;
                }
                Poll::Ready(Err(_)) if self.deadline_purpose == DeadlinePurpose::Idle => {
                    self.go_away(context)
                }
                waited => waited,
            };
        }
    }

    /// Ends the connection with a GOAWAY. An error: the socket has no room for that, as the client has not taken what was sent before.
    fn go_away(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.go_away(ErrorCode::NO_ERROR);
        if self.poll_write(context)?.is_pending() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Ready(Ok(()))
    }

    /// Writes pending frames.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.wire.output().is_empty() {
            let stream = Pin::new(&mut self.connection.stream);
            let Poll::Ready(written) = stream.poll_write(context, self.wire.output()) else {
                return Poll::Pending;
            };
            let written = written?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.wire.wrote(written);
            if self.deadline_purpose == DeadlinePurpose::Writing {
                self.earn(written);
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once, and handles the frames; false: the client sends no more.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let resources: Rc<Resources> = Rc::clone(self.connection.resources());
        let mut bytes = resources.memory.get();
        let read = resources.memory.poll_read(&mut self.connection.stream, context, |read| {
            bytes.extend_from_slice(read);
        });
        let read = read.map(|read| {
            read.map(|()| {
                let is_there = !bytes.is_empty();
                self.receive(&bytes);
                is_there
            })
        });
        resources.memory.put(bytes);
        read
    }

    /// Whether only the client could make progress, and has not for the longest time that any of its streams has.
    fn lacks_progress(&self) -> bool {
        let steps = self.streams.iter().flatten().map(|state| match state.borrow().awaits_body() {
            true => self.limits.read,
            false => self.limits.write,
        });
        self.deadline_purpose == DeadlinePurpose::Client
            && steps.max().is_some_and(|step| self.connection.deadline.has_lasted(step))
    }

    /// Sets the deadline when its purpose has changed.
    fn set_deadline(&mut self, is_blocked: bool, has_timed_out: bool) {
        let wait_for_client = || self.streams.iter().flatten().all(|state| state.borrow().waits_for_peer());
        let purpose = match self.wire.open_streams() {
            _ if is_blocked => DeadlinePurpose::Writing,
            _ if has_timed_out => DeadlinePurpose::TimedOut,
            0 => DeadlinePurpose::Idle,
            _ if self.is_half_closed => DeadlinePurpose::Gone,
            _ if wait_for_client() => DeadlinePurpose::Client,
            _ => DeadlinePurpose::Handlers,
        };
        if purpose == self.deadline_purpose {
            return;
        }
        self.deadline_purpose = purpose;
        let deadline = &self.connection.deadline;
        let (limit, reason) = match purpose {
            DeadlinePurpose::Writing => return deadline.await_peer(self.limits.write),
            DeadlinePurpose::Client => return deadline.await_peer(UNLIMITED),
            DeadlinePurpose::Idle => (self.limits.idle, WaitReason::Request),
            DeadlinePurpose::TimedOut => return,
            DeadlinePurpose::Gone => (PROBE_INTERVAL, WaitReason::Other),
            DeadlinePurpose::Handlers => (Duration::MAX, WaitReason::Other),
        };
        deadline.set(limit);
        deadline.set_wait_reason(reason);
        if purpose == DeadlinePurpose::Idle {
            deadline.clear_debt();
        }
    }

    /// Credits the client with bytes of bodies that it has sent or taken: they make up for some of the time that it was waited for.
    fn earn(&self, bytes: usize) {
        let deadline = &self.connection.deadline;
        deadline.credit(bytes as u64);
        match self.deadline_purpose {
            DeadlinePurpose::Writing => deadline.await_peer(self.limits.write),
            DeadlinePurpose::Client => deadline.await_peer(UNLIMITED),
            _ => {}
        }
    }

    /// Cancels streams whose client is late in opening their window; false if there are none.
    fn end_late(&mut self, context: &mut Context<'_>) -> bool {
        let mut late = Vec::new();
        for state in &self.stalled {
            let state = state.borrow();
            let is_late = state.deadline.as_ref().is_some_and(|deadline| deadline.check(context).is_err());
            late.extend(state.stream.filter(|_| is_late));
        }
        late.iter().for_each(|stream| self.cancel(*stream));
        !late.is_empty()
    }

    /// Handles bytes that were read.
    fn receive(&mut self, bytes: &[u8]) {
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.refilled_ns) >= SECOND_NS {
            self.refilled_ns = now_ns;
            self.wire.refill();
        }
        self.receive_frames(bytes);
        self.set_frame_deadline();
    }

    /// Sets the deadline of a partial frame or header block.
    fn set_frame_deadline(&mut self) {
        let number = self.wire.partial_frame();
        if number == self.partial_frame.as_ref().map(|partial| partial.number) {
            return;
        }
        self.partial_frame = number.map(|number| {
            let deadline = self.connection.resources().deadlines.register();
            deadline.set(self.limits.head);
            // Where requests are under way, others wait for them, too.
            if self.wire.open_streams() == 0 {
                deadline.set_wait_reason(WaitReason::Head);
            }
            PartialFrame { number, deadline }
        });
    }

    fn receive_frames(&mut self, bytes: &[u8]) {
        let (mut rest, mut payload) = (bytes, 0);
        loop {
            let (used, event) = match self.wire.next(rest) {
                Ok(next) => next,
                Err(error) => {
                    self.has_failed = true;
                    self.connection.resources().refusals.count_connection_error(error);
                    return;
                }
            };
            rest = &rest[used..];
            let is_progress = !matches!(event, Event::NeedMore | Event::Pong(_) | Event::Priority { .. });
            if is_progress && self.deadline_purpose == DeadlinePurpose::Client {
                self.connection.deadline.await_peer(UNLIMITED);
            }
            match event {
                Event::NeedMore => break,
                // A tunnel is no request of HTTP/1.1 with a body: its bytes would be taken for chunks. Another scheme is another resource
                // (RFC 9110, 4.2.3), and HTTP/1.1 would not tell it behind this.
                Event::Head { stream, head, .. } if head.method() == "CONNECT" || !is_http(head.scheme()) => {
                    // One that has ended needs no response.
                    let _ = self.wire.respond(stream, NOT_IMPLEMENTED, std::iter::empty(), true);
                    self.wire.reset(stream, ErrorCode::NO_ERROR);
                    self.connection.resources().refusals.count_not_served();
                }
                Event::Head { stream, head, ends } => {
                    if let Some(state) = self.hub.take_free() {
                        state.borrow_mut().begin(stream, head, ends);
                        self.keep(stream, state);
                    } else {
                        let state = StreamState::new(stream, head, ends, &self.hub.kept);
                        self.begin(stream, Rc::new(RefCell::new(state)));
                    }
                }
                Event::Data { stream, data, ends } => {
                    payload += data.len();
                    if let Some(state) = find(&self.streams, stream) {
                        state.borrow_mut().take_data(data, ends);
                    }
                }
                Event::Trailers { stream, .. } => {
                    if let Some(state) = find(&self.streams, stream) {
                        state.borrow_mut().end_body();
                    }
                }
                Event::Reset { stream, .. } => self.remove_stream(stream),
                Event::Failed { stream, error } => {
                    self.remove_stream(stream);
                    self.connection.resources().refusals.count_stream_error(error);
                }
                Event::Writable { .. } => {
                    for state in self.stalled.drain(..) {
                        state.borrow_mut().is_stalled = false;
                        self.turns.push_back(state);
                    }
                }
                Event::Interim { .. }
                | Event::GoAway { .. }
                | Event::Unprocessed { .. }
                | Event::Pong(_)
                | Event::Priority { .. } => {}
            }
        }
        if payload > 0 {
            self.earn(payload);
        }
    }

    /// Starts a handler for a request for which none is free.
    fn begin(&mut self, stream: StreamId, state: Rc<RefCell<StreamState>>) {
        if self.hub.pipes.get() >= MAX_PIPES {
            self.wire.reset(stream, ErrorCode::REFUSED_STREAM);
            self.connection.resources().refusals.count_too_many();
            return;
        }
        let pipe = Pipe::new(&state, &self.hub);
        self.keep(stream, state);
        (self.start)(pipe);
    }

    fn keep(&mut self, stream: StreamId, state: Rc<RefCell<StreamState>>) {
        let index = stream.place as usize;
        if self.streams.len() <= index {
            self.streams.resize_with(index + 1, || None);
        }
        self.streams[index] = Some(state);
    }

    /// Ends the input. A request of which the end is missing has failed, and so has a response that needs a window which cannot be opened
    /// any more; all others go on.
    fn end_input(&mut self) {
        self.is_half_closed = true;
        let open: Vec<StreamId> =
            self.streams.iter().flatten().filter_map(|state| state.borrow().stream).collect();
        for stream in open {
            if self.wire.receives(stream) {
                self.cancel(stream);
            }
        }
        for state in std::mem::take(&mut self.stalled) {
            let stream = state.borrow().stream;
            stream.into_iter().for_each(|stream| self.cancel(stream));
        }
    }

    /// Ends a stream that cannot be completed.
    fn cancel(&mut self, stream: StreamId) {
        self.remove_stream(stream);
        self.wire.reset(stream, ErrorCode::CANCEL);
    }

    /// Removes a stream that was reset.
    fn remove_stream(&mut self, stream: StreamId) {
        if let Some(state) = find(&self.streams, stream) {
            state.borrow_mut().fail();
            self.stalled.retain(|other| !Rc::ptr_eq(other, state));
            self.streams[stream.place as usize] = None;
        }
    }

    /// Handles the streams that their pipes have marked dirty.
    fn handle_dirty(&mut self) {
        let touched = std::mem::take(&mut *self.hub.dirty.borrow_mut());
        for state in touched {
            let mut it = state.borrow_mut();
            it.is_dirty = false;
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

    /// Sends parts of responses, each stream in turn; true: one has ended with which its client was late.
    fn send(&mut self) -> bool {
        let mut is_late = false;
        while self.wire.output().len() < MAX_UNWRITTEN {
            let Some(state) = self.turns.pop_front() else { break };
            let mut it = state.borrow_mut();
            let it = &mut *it;
            let Some(stream) = it.stream.filter(|stream| self.wire.is_open(*stream)) else { continue };
            if it.message.is_complete() {
                continue;
            }
            let sent = match it.is_aborted {
                true => SendOutcome::Broken,
                false => {
                    let (to, written) = (&mut it.stream, &mut it.outgoing);
                    it.message.send(&mut self.wire, to, written, it.is_write_closed, TURN_BYTES)
                }
            };
            is_late |= it.is_late && matches!(sent, SendOutcome::Complete | SendOutcome::Broken);
            let sent_bytes = it.note_outgoing();
            // Where the socket is full, what it takes of that counts.
            if sent_bytes > 0 && self.deadline_purpose != DeadlinePurpose::Writing {
                self.earn(sent_bytes);
            }
            keep_time(
                it,
                sent == SendOutcome::Stalled,
                sent_bytes,
                &self.limits,
                &self.connection.resources().deadlines,
            );
            match sent {
                SendOutcome::All => it.wake_writer(),
                SendOutcome::Some => {
                    it.wake_writer();
                    self.turns.push_back(Rc::clone(&state));
                }
                SendOutcome::Stalled if self.is_half_closed => {
                    it.fail();
                    self.streams[stream.place as usize] = None;
                    self.wire.reset(stream, ErrorCode::CANCEL);
                }
                SendOutcome::Stalled if it.is_stalled => {}
                SendOutcome::Stalled => {
                    it.is_stalled = true;
                    // What was sent has left room: the time of the handler's next step begins now, not after that of this one.
                    it.wake_writer();
                    self.stalled.push(Rc::clone(&state));
                }
                SendOutcome::Complete => {
                    it.end();
                    self.hub.note_free(&state, it);
                    self.streams[stream.place as usize] = None;
                    // What is left of the request is not needed (RFC 9113, 8.1).
                    self.wire.reset(stream, ErrorCode::NO_ERROR);
                }
                SendOutcome::Broken | SendOutcome::NoStream | SendOutcome::Closing => {
                    it.fail();
                    self.streams[stream.place as usize] = None;
                    self.wire.reset(stream, ErrorCode::INTERNAL_ERROR);
                }
            }
        }
        is_late
    }

    /// Fails all requests when the connection has ended.
    fn fail_all(&mut self) {
        self.hub.end();
        for state in self.streams.drain(..).flatten() {
            state.borrow_mut().fail();
        }
    }
}

/// Runs the deadline of a stream whose client does not open its window after the handler is done. The client's debt is that of HTTP/1.1:
/// frames that open no window, or a little of it, do not make up for the wait. While the handler still writes, it has the deadline itself.
fn keep_time(
    state: &mut StreamState,
    is_stalled: bool,
    sent_bytes: usize,
    limits: &ClientLimits,
    watch: &Rc<Deadlines>,
) {
    if state.deadline.is_none() && !(is_stalled && state.is_handler_done()) {
        return;
    }
    let deadline = state.deadline.get_or_insert_with(|| {
        let deadline = watch.register();
        deadline.set_min_rate(limits.least_rate);
        deadline.mark_stream();
        deadline
    });
    if sent_bytes > 0 {
        deadline.credit(sent_bytes as u64);
    }
    if !is_stalled {
        // It is another stream's turn, or the socket is full: that time is kept for the whole connection.
        deadline.set(Duration::MAX);
    } else if !deadline.awaits_peer() {
        deadline.await_peer(limits.write);
    }
}

fn is_http(scheme: &str) -> bool {
    ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
}

pub(super) fn find(
    streams: &[Option<Rc<RefCell<StreamState>>>],
    stream: StreamId,
) -> Option<&Rc<RefCell<StreamState>>> {
    let state = streams.get(stream.place as usize)?.as_ref()?;
    (state.borrow().stream == Some(stream)).then_some(state)
}
