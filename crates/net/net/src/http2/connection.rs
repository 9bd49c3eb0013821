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

use super::pipe::{Hub, Pipe, State};
use super::response::Sent;
use super::{MOST_PIPES, MOST_STREAMS, STREAM_WINDOW_BYTES};
use crate::connection::{Connection, Resources};
use crate::exchange::{ClientLimits, Stream};
use crate::memory::wait;
use crate::watch::{Awaits, Deadline, Watch};
use assay_base::clock::{SECOND_NS, monotonic_ns};

/// No more of bodies is made into frames while so many bytes have not been written.
pub(super) const MOST_UNWRITTEN: usize = 64 * 1024;
/// Nothing is read while so many bytes have not been written: what is read may need an acknowledgement.
const MOST_UNANSWERED: usize = 256 * 1024;
/// What a stream sends of its body before it is another's turn.
pub(super) const TURN_BYTES: usize = 16 * 1024;

/// How often a client that sends nothing more, and has responses to come, is asked whether it is there. A socket does not tell a
/// client that only ends its own side from one that has gone; what is written to the latter fails.
const PROBE: Duration = Duration::from_secs(1);

/// Longer than any connection waits: what its streams wait for has deadlines of its own.
const LONG: Duration = Duration::from_secs(24 * 60 * 60);

/// The status of the response to CONNECT, and to a scheme other than those of HTTP.
const NOT_IMPLEMENTED: u16 = 501;

/// What the deadline of the connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    /// Requests are under way: they have deadlines of their own.
    Handlers,
    /// They are, and nobody but the client can go on with any of them: they keep others out if places are scarce.
    Client,
    Idle,
    /// The client has let one time out, and goes on with no other: the connection ends.
    TimedOut,
    /// The client does not take what is sent.
    Writing,
    /// It sends nothing more, and may have gone: it is asked.
    Gone,
}

/// A frame or header block that has begun ([`Wire::partial_frame`]), and the time that the client has for the rest: that of a head over HTTP/1.1.
struct PartialFrame {
    number: u64,
    deadline: Deadline,
}

struct Served<S, F> {
    connection: Connection<S>,
    limits: ClientLimits,
    start: F,
    wire: Wire,
    hub: Rc<Hub>,
    /// By the place of their stream.
    streams: Vec<Option<Rc<RefCell<State>>>>,
    /// Those with something to send, in turn.
    turns: VecDeque<Rc<RefCell<State>>>,
    /// Those whose window is used up.
    stalled: Vec<Rc<RefCell<State>>>,
    patience: Patience,
    partial_frame: Option<PartialFrame>,
    refilled_ns: u64,
    /// The client has ended its side of the connection: what it has requested in full still gets its response.
    is_half_closed: bool,
    /// The frames that were sent end with a GOAWAY for an error.
    has_failed: bool,
}

/// Serves a connection until it ends. `start` is given requests, those of one handler one after the other; it has to see to it that they
/// are served beside others. An error: the client did not take what was sent, or its connection was reset.
pub async fn serve<S: Stream>(
    connection: Connection<S>,
    limits: ClientLimits,
    start: impl FnMut(Pipe),
) -> io::Result<()> {
    let config = Config {
        max_streams: MOST_STREAMS,
        stream_window: STREAM_WINDOW_BYTES,
        connection_window: 1 << 20,
        max_section_bytes: u32::try_from(limits.head_bytes).unwrap_or(u32::MAX),
        keeps_data: true,
        ..Config::default()
    };
    connection.deadline.set_pace(limits.least_rate);
    // The preface is here, and had the time of a head.
    connection.deadline.set(Duration::MAX);
    let mut served = Served {
        connection,
        limits,
        start,
        wire: Wire::server(config),
        hub: Hub::of_server(),
        streams: Vec::new(),
        turns: VecDeque::new(),
        stalled: Vec::new(),
        patience: Patience::Handlers,
        partial_frame: None,
        refilled_ns: monotonic_ns(),
        is_half_closed: false,
        has_failed: false,
    };
    let input = std::mem::take(&mut served.connection.input);
    served.take(input.unread());
    let ended = poll_fn(|context| served.poll(context)).await;
    served.let_go();
    // What a client does not take would stay in the system's memory for as long as it likes.
    if ended.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
        served.connection.stream.reset_on_close();
    }
    ended?;
    Box::pin(served.connection.linger()).await;
    Ok(())
}

impl<S: Stream, F: FnMut(Pipe)> Served<S, F> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self.hub.waker.borrow_mut() {
            Some(known) => known.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        let (mut lacks_progress, mut is_late) = (false, false);
        loop {
            // Before streams that end leave room to others, and are told why: both would look like progress.
            lacks_progress |= self.lacks_progress();
            self.look();
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
            self.set_patience(is_blocked, has_timed_out);
            if !self.is_half_closed && self.wire.output().len() < MOST_UNANSWERED {
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
            if self.patience == Patience::TimedOut || self.partial_frame.as_ref().is_some_and(is_overdue) {
                return self.go_away(context);
            }
            return match wait(&self.connection.deadline, context) {
                Poll::Ready(Err(_)) if self.patience == Patience::Gone => {
                    self.wire.ping([0; 8]);
                    self.connection.deadline.set(PROBE);
                    continue;
                }
                Poll::Ready(Err(_)) if self.patience == Patience::Idle => self.go_away(context),
                waited => waited,
            };
        }
    }

    /// Ends it with a GOAWAY. An error: the socket has no room for that, as the client has not taken what was sent before.
    fn go_away(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.wire.go_away(ErrorCode::NO_ERROR);
        if self.poll_write(context)?.is_pending() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Poll::Ready(Ok(()))
    }

    /// Writes what there is.
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
            if self.patience == Patience::Writing {
                self.earn(written);
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once, and acts on it; false: the client sends no more.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let resources: Rc<Resources> = Rc::clone(self.connection.resources());
        let mut bytes = resources.memory.take();
        let read = resources.memory.poll_read(&mut self.connection.stream, context, |read| {
            bytes.extend_from_slice(read);
        });
        let read = read.map(|read| {
            read.map(|()| {
                let is_there = !bytes.is_empty();
                self.take(&bytes);
                is_there
            })
        });
        resources.memory.give(bytes);
        read
    }

    /// Nobody but the client could go on, and it has not for the whole time that it has for any of the streams.
    fn lacks_progress(&self) -> bool {
        let steps = self.streams.iter().flatten().map(|state| match state.borrow().awaits_body() {
            true => self.limits.read,
            false => self.limits.write,
        });
        self.patience == Patience::Client
            && steps.max().is_some_and(|step| self.connection.deadline.has_lasted(step))
    }

    /// Sets the deadline when what is waited for has changed.
    fn set_patience(&mut self, is_blocked: bool, has_timed_out: bool) {
        let wait_for_client = || self.streams.iter().flatten().all(|state| state.borrow().waits_for_peer());
        let patience = match self.wire.open_streams() {
            _ if is_blocked => Patience::Writing,
            _ if has_timed_out => Patience::TimedOut,
            0 => Patience::Idle,
            _ if self.is_half_closed => Patience::Gone,
            _ if wait_for_client() => Patience::Client,
            _ => Patience::Handlers,
        };
        if patience == self.patience {
            return;
        }
        self.patience = patience;
        let deadline = &self.connection.deadline;
        let (limit, awaits) = match patience {
            Patience::Writing => return deadline.await_peer(self.limits.write),
            Patience::Client => return deadline.await_peer(LONG),
            Patience::Idle => (self.limits.idle, Awaits::Request),
            Patience::TimedOut => return,
            Patience::Gone => (PROBE, Awaits::Other),
            Patience::Handlers => (Duration::MAX, Awaits::Other),
        };
        deadline.set(limit);
        deadline.set_awaits(awaits);
        if patience == Patience::Idle {
            deadline.forgive();
        }
    }

    /// The client has sent or taken so many bytes of bodies: they make up for some of the time that it was waited for.
    fn earn(&self, bytes: usize) {
        let deadline = &self.connection.deadline;
        deadline.earn(bytes as u64);
        match self.patience {
            Patience::Writing => deadline.await_peer(self.limits.write),
            Patience::Client => deadline.await_peer(LONG),
            _ => {}
        }
    }

    /// Gives up streams whose clients are late with opening their windows; false: there are none.
    fn end_late(&mut self, context: &mut Context<'_>) -> bool {
        let mut late = Vec::new();
        for state in &self.stalled {
            let state = state.borrow();
            let is_late = state.deadline.as_ref().is_some_and(|deadline| deadline.check(context).is_err());
            late.extend(state.stream.filter(|_| is_late));
        }
        late.iter().for_each(|stream| self.give_up(*stream));
        !late.is_empty()
    }

    /// Acts on bytes that were read.
    fn take(&mut self, bytes: &[u8]) {
        let now_ns = monotonic_ns();
        if now_ns.saturating_sub(self.refilled_ns) >= SECOND_NS {
            self.refilled_ns = now_ns;
            self.wire.refill();
        }
        self.take_frames(bytes);
        self.set_frame_deadline();
    }

    /// Begins to wait for the rest of what has begun to come.
    fn set_frame_deadline(&mut self) {
        let number = self.wire.partial_frame();
        if number == self.partial_frame.as_ref().map(|partial| partial.number) {
            return;
        }
        self.partial_frame = number.map(|number| {
            let deadline = self.connection.resources().watch.enter();
            deadline.set(self.limits.head);
            // Where requests are under way, others wait for them, too.
            if self.wire.open_streams() == 0 {
                deadline.set_awaits(Awaits::Head);
            }
            PartialFrame { number, deadline }
        });
    }

    fn take_frames(&mut self, bytes: &[u8]) {
        let (mut rest, mut payload) = (bytes, 0);
        loop {
            let (used, event) = match self.wire.next(rest) {
                Ok(next) => next,
                Err(error) => {
                    self.has_failed = true;
                    self.connection.resources().refused.ends(error);
                    return;
                }
            };
            rest = &rest[used..];
            let is_progress = !matches!(event, Event::NeedMore | Event::Pong(_) | Event::Priority { .. });
            if is_progress && self.patience == Patience::Client {
                self.connection.deadline.await_peer(LONG);
            }
            match event {
                Event::NeedMore => break,
                // A tunnel is no request of HTTP/1.1 with a body: its bytes would be taken for chunks. Another scheme is another resource
                // (RFC 9110, 4.2.3), and HTTP/1.1 would not tell it behind this.
                Event::Head { stream, head, .. } if head.method() == "CONNECT" || !is_http(head.scheme()) => {
                    // One that has ended needs no response.
                    let _ = self.wire.respond(stream, NOT_IMPLEMENTED, std::iter::empty(), true);
                    self.wire.reset(stream, ErrorCode::NO_ERROR);
                    self.connection.resources().refused.is_not_served();
                }
                Event::Head { stream, head, ends } => {
                    if let Some(state) = self.hub.take_free() {
                        state.borrow_mut().begin(stream, head, ends);
                        self.keep(stream, state);
                    } else {
                        let state = State::new(stream, head, ends, &self.hub.kept);
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
                Event::Reset { stream, .. } => self.lose(stream),
                Event::Failed { stream, error } => {
                    self.lose(stream);
                    self.connection.resources().refused.fails(error);
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

    /// A request has begun, and no handler is free for it.
    fn begin(&mut self, stream: StreamId, state: Rc<RefCell<State>>) {
        if self.hub.pipes.get() >= MOST_PIPES {
            self.wire.reset(stream, ErrorCode::REFUSED_STREAM);
            self.connection.resources().refused.is_too_many();
            return;
        }
        let pipe = Pipe::new(&state, &self.hub);
        self.keep(stream, state);
        (self.start)(pipe);
    }

    fn keep(&mut self, stream: StreamId, state: Rc<RefCell<State>>) {
        let place = stream.place as usize;
        if self.streams.len() <= place {
            self.streams.resize_with(place + 1, || None);
        }
        self.streams[place] = Some(state);
    }

    /// The client sends nothing more. A request of which the end is missing has failed, and so has a response that needs a window
    /// which cannot be opened any more; all others go on.
    fn end_input(&mut self) {
        self.is_half_closed = true;
        let open: Vec<StreamId> =
            self.streams.iter().flatten().filter_map(|state| state.borrow().stream).collect();
        for stream in open {
            if self.wire.receives(stream) {
                self.give_up(stream);
            }
        }
        for state in std::mem::take(&mut self.stalled) {
            let stream = state.borrow().stream;
            stream.into_iter().for_each(|stream| self.give_up(stream));
        }
    }

    /// Ends a stream that cannot be completed.
    fn give_up(&mut self, stream: StreamId) {
        self.lose(stream);
        self.wire.reset(stream, ErrorCode::CANCEL);
    }

    /// A stream was reset.
    fn lose(&mut self, stream: StreamId) {
        if let Some(state) = find(&self.streams, stream) {
            state.borrow_mut().go();
            self.stalled.retain(|other| !Rc::ptr_eq(other, state));
            self.streams[stream.place as usize] = None;
        }
    }

    /// Looks at the streams that something happened to.
    fn look(&mut self) {
        let touched = std::mem::take(&mut *self.hub.touched.borrow_mut());
        for state in touched {
            let mut it = state.borrow_mut();
            it.is_touched = false;
            if it.is_read()
                && it.held > 0
                && let Some(stream) = it.stream
            {
                let held = std::mem::take(&mut it.held);
                self.wire.release(stream, held);
            }
            drop(it);
            self.turns.push_back(state);
        }
    }

    /// Sends of responses what can be sent, each stream in turn; true: one has ended with which its client was late.
    fn send(&mut self) -> bool {
        let mut is_late = false;
        while self.wire.output().len() < MOST_UNWRITTEN {
            let Some(state) = self.turns.pop_front() else { break };
            let mut it = state.borrow_mut();
            let it = &mut *it;
            let Some(stream) = it.stream.filter(|stream| self.wire.is_open(*stream)) else { continue };
            if it.message.is_complete() {
                continue;
            }
            let sent = match it.is_broken {
                true => Sent::Broken,
                false => {
                    let (to, written) = (&mut it.stream, &mut it.outgoing);
                    it.message.send(&mut self.wire, to, written, it.is_over, TURN_BYTES)
                }
            };
            is_late |= it.is_late && matches!(sent, Sent::Complete | Sent::Broken);
            let sent_bytes = it.note_outgoing();
            // Where the socket is full, what it takes of that counts.
            if sent_bytes > 0 && self.patience != Patience::Writing {
                self.earn(sent_bytes);
            }
            keep_time(
                it,
                sent == Sent::Stalled,
                sent_bytes,
                &self.limits,
                &self.connection.resources().watch,
            );
            match sent {
                Sent::All => it.wake_writer(),
                Sent::Some => {
                    it.wake_writer();
                    self.turns.push_back(Rc::clone(&state));
                }
                Sent::Stalled if self.is_half_closed => {
                    it.go();
                    self.streams[stream.place as usize] = None;
                    self.wire.reset(stream, ErrorCode::CANCEL);
                }
                Sent::Stalled if it.is_stalled => {}
                Sent::Stalled => {
                    it.is_stalled = true;
                    // What was sent has left room: the time of the handler's next step begins now, not after that of this one.
                    it.wake_writer();
                    self.stalled.push(Rc::clone(&state));
                }
                Sent::Complete => {
                    it.end();
                    self.hub.note_free(&state, it);
                    self.streams[stream.place as usize] = None;
                    // What is left of the request is not needed (RFC 9113, 8.1).
                    self.wire.reset(stream, ErrorCode::NO_ERROR);
                }
                Sent::Broken | Sent::NoStream | Sent::Closing => {
                    it.go();
                    self.streams[stream.place as usize] = None;
                    self.wire.reset(stream, ErrorCode::INTERNAL_ERROR);
                }
            }
        }
        is_late
    }

    /// The connection has ended: so have all requests that are under way.
    fn let_go(&mut self) {
        self.hub.end();
        for state in self.streams.drain(..).flatten() {
            state.borrow_mut().go();
        }
    }
}

/// Keeps the time of a client that does not open the window of a stream whose handler is done with it. It owes as over HTTP/1.1: frames that
/// open no window, or a little of it, do not make up for what it was waited for. While the handler still writes, it keeps that time itself.
fn keep_time(
    state: &mut State,
    is_stalled: bool,
    sent_bytes: usize,
    limits: &ClientLimits,
    watch: &Rc<Watch>,
) {
    if state.deadline.is_none() && !(is_stalled && state.is_left()) {
        return;
    }
    let deadline = state.deadline.get_or_insert_with(|| {
        let deadline = watch.enter();
        deadline.set_pace(limits.least_rate);
        deadline.set_stream();
        deadline
    });
    if sent_bytes > 0 {
        deadline.earn(sent_bytes as u64);
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

pub(super) fn find(streams: &[Option<Rc<RefCell<State>>>], stream: StreamId) -> Option<&Rc<RefCell<State>>> {
    let state = streams.get(stream.place as usize)?.as_ref()?;
    (state.borrow().stream == Some(stream)).then_some(state)
}
