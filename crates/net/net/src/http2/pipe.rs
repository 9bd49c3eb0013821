//! A stream of HTTP/2 as a byte stream: what comes is read from it as a message of HTTP/1.1, and what goes out is written to it as
//! one. In a server, requests come and responses go; in a client it is the other way round.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use assay_http::chunked::{CHUNK_END, CHUNK_HEAD_BYTES, LAST_CHUNK, chunk_head};
use assay_http2::{Head, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::response::{Outgoing, append_interim, append_request, append_response};
use super::share::Share;
use crate::exchange;
use crate::watch::Deadline;

/// The error of a request that the server has certainly not acted on.
pub const UNPROCESSED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// Memory that a pipe keeps for its next request, at most, for each direction.
const MOST_KEPT: usize = 16 * 1024;

/// Interim responses that nobody has read, at most, in bytes. Windows do not bound heads, and a coded one is much shorter.
const MOST_INTERIM: usize = 64 * 1024;

/// Parts of a body that are no longer than this together share a chunk while nobody has read it: each alone would take more room than it has
/// bytes.
const SMALL_CHUNK: usize = 1024;

/// The handler's end of a stream. Dropped before the messages are complete, it resets the stream.
pub struct Pipe {
    state: Rc<RefCell<State>>,
    hub: Rc<Hub>,
}

/// What a connection and the pipes of its streams share.
#[derive(Default)]
pub(super) struct Hub {
    /// Pipes that something happened to.
    pub(super) touched: RefCell<Vec<Rc<RefCell<State>>>>,
    pub(super) waker: RefCell<Option<Waker>>,
    /// The connection is that of a client, and keeps the time that it is waited for.
    is_server: bool,
    /// The connection has ended: what has not been sent never will be.
    pub(super) is_over: Cell<bool>,
    /// Pipes that handlers still have.
    pub(super) pipes: Cell<usize>,
    /// What all of them keep that cannot be sent yet, in bytes.
    pub(super) kept: Rc<Cell<usize>>,
    /// Those whose handlers wait for another request; the last one has waited for the shortest time.
    idle: RefCell<Vec<Rc<RefCell<State>>>>,
}

pub(super) struct State {
    /// None: its request has not been sent.
    pub(super) stream: Option<Stream>,
    pub(super) message: Outgoing,
    /// What the handler has written and was not sent.
    pub(super) outgoing: Vec<u8>,
    /// So much of that is counted.
    share: Share,
    /// The time that a client has for it when its handler is done with it.
    pub(super) deadline: Option<Deadline>,
    /// The handler writes nothing more.
    pub(super) is_over: bool,
    /// The handler has broken off: what it has written must not look complete.
    pub(super) is_broken: bool,
    /// Its client was late with the body, or with taking the response.
    pub(super) is_late: bool,
    /// The handler has let go of it.
    pub(super) is_dropped: bool,
    /// It is among those that something happened to.
    pub(super) is_touched: bool,
    /// It is among those whose window is used up.
    pub(super) is_stalled: bool,
    /// The handler is done with the last request, and waits for another.
    pub(super) is_resting: bool,
    /// It is among those that may get another.
    is_idle: bool,
    /// Payload that was handed to the handler or waits for it, and was not given back to the stream's window.
    pub(super) held: u32,
    /// When it began, and how often the connection had been read by then.
    pub(super) begun: (u64, u64),
    /// What has come and was not read.
    incoming: Vec<u8>,
    /// So much of it was read.
    read: usize,
    /// The body that comes is written in chunks.
    in_chunks: bool,
    /// Where the last chunk begins, and how long it is, if nobody has read it.
    last_chunk: Option<(usize, usize)>,
    /// There is nothing more to read: the response is complete.
    pub(super) is_ended: bool,
    /// The stream was reset, or its connection has ended: what that is for its handler.
    gone: Option<io::ErrorKind>,
    /// The request was HEAD: of a client alone.
    is_head: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Who waits for something else, and is to know when the stream has gone.
    parting: Option<Waker>,
}

impl State {
    /// A request whose head has come; `ends`: it has no body.
    pub(super) fn new(stream: Stream, head: Head<'_>, ends: bool, kept: &Rc<Cell<usize>>) -> Self {
        let mut state = Self::empty(Outgoing::response(false), kept);
        state.incoming.reserve(head.lines().len() + head.path().len() + 128);
        state.begin(stream, head, ends);
        state
    }

    /// The same of another request, for a handler that is done with the last one.
    pub(super) fn begin(&mut self, stream: Stream, head: Head<'_>, ends: bool) {
        self.stream = Some(stream);
        self.message = Outgoing::response(head.method() == "HEAD");
        (self.held, self.read, self.is_ended, self.is_late) = (0, 0, false, false);
        (self.deadline, self.last_chunk) = (None, None);
        self.incoming.clear();
        self.outgoing.clear();
        self.note_outgoing();
        self.in_chunks = append_request(&mut self.incoming, head, ends);
        self.wake_reader();
    }

    /// A request that is about to be written, on a connection that was read so often.
    pub(super) fn of_request(scheme: &'static str, begun: (u64, u64), kept: &Rc<Cell<usize>>) -> Self {
        Self { begun, ..Self::empty(Outgoing::request(scheme), kept) }
    }

    fn empty(message: Outgoing, kept: &Rc<Cell<usize>>) -> Self {
        Self {
            stream: None,
            message,
            outgoing: Vec::new(),
            share: Share::of(kept),
            deadline: None,
            is_over: false,
            is_broken: false,
            is_late: false,
            is_dropped: false,
            is_touched: false,
            is_stalled: false,
            is_resting: false,
            is_idle: false,
            held: 0,
            begun: (0, 0),
            incoming: Vec::new(),
            read: 0,
            in_chunks: false,
            last_chunk: None,
            is_ended: false,
            gone: None,
            is_head: false,
            reader: None,
            writer: None,
            parting: None,
        }
    }

    /// The head of the response has come; `ends`: it has no body.
    pub(super) fn take_response(&mut self, head: Head<'_>, ends: bool) {
        self.in_chunks = append_response(&mut self.incoming, head, self.is_head, ends);
        if ends {
            self.end();
        } else {
            self.wake_reader();
        }
    }

    /// The head of an interim response has come; false: these are more than may wait to be read.
    pub(super) fn take_interim(&mut self, head: Head<'_>) -> bool {
        append_interim(&mut self.incoming, head);
        self.wake_reader();
        self.incoming.len() - self.read <= MOST_INTERIM
    }

    /// A part of the body has come.
    pub(super) fn take_data(&mut self, data: &[u8], ends: bool) {
        self.held = self.held.saturating_add(data.len() as u32);
        if self.in_chunks && !data.is_empty() {
            self.append_chunk(data);
        } else {
            self.incoming.extend_from_slice(data);
        }
        if ends {
            self.end_body();
        }
        self.wake_reader();
    }

    /// A part of a body, in a chunk of its own or in the last one.
    fn append_chunk(&mut self, data: &[u8]) {
        let (mut room, mut room_before) = ([0; CHUNK_HEAD_BYTES], [0; CHUNK_HEAD_BYTES]);
        match self.last_chunk.filter(|(_, before)| before + data.len() <= SMALL_CHUNK) {
            Some((at, before)) => {
                let length = before + data.len();
                self.incoming.truncate(self.incoming.len() - CHUNK_END.len());
                self.incoming.extend_from_slice(data);
                let replaced = at..at + chunk_head(before as u64, &mut room_before).len();
                self.incoming.splice(replaced, chunk_head(length as u64, &mut room).iter().copied());
                self.last_chunk = Some((at, length));
            }
            None => {
                self.last_chunk = Some((self.incoming.len(), data.len()));
                self.incoming.extend_from_slice(chunk_head(data.len() as u64, &mut room));
                self.incoming.extend_from_slice(data);
            }
        }
        self.incoming.extend_from_slice(CHUNK_END);
    }

    /// The body that comes is complete.
    pub(super) fn end_body(&mut self) {
        if std::mem::take(&mut self.in_chunks) {
            self.incoming.extend_from_slice(LAST_CHUNK);
        }
        self.wake_reader();
    }

    /// All that has come was read.
    pub(super) fn is_read(&self) -> bool {
        self.read == self.incoming.len()
    }

    /// The response is complete: the handler of a server is free for another request when it is done, and that of a client reads the
    /// end of its connection next.
    pub(super) fn end(&mut self) {
        self.is_ended = true;
        if !self.is_free() {
            self.wake_reader();
            self.wake_writer();
        }
    }

    /// Another request may be given to the handler.
    fn is_free(&self) -> bool {
        let is_done = self.is_resting && self.is_ended && self.is_read();
        let is_lost = self.is_over || self.is_broken || self.is_stalled || self.gone.is_some();
        is_done && !is_lost
    }

    /// The stream was reset, or its connection has ended.
    pub(super) fn go(&mut self) {
        self.go_as(io::ErrorKind::ConnectionReset);
    }

    /// Nothing was done for the request: it may be sent again, whatever it is.
    pub(super) fn go_unprocessed(&mut self) {
        self.go_as(UNPROCESSED);
    }

    /// A server has reset the stream, or ended the connection: what it sent before is read first, as from a connection of HTTP/1.1. Its head
    /// may have come at once with the reset, and says whose response is cut off.
    pub(super) fn break_off(&mut self) {
        let sent = (std::mem::take(&mut self.incoming), self.read);
        self.go();
        (self.incoming, self.read) = sent;
    }

    fn go_as(&mut self, kind: io::ErrorKind) {
        self.gone = Some(kind);
        (self.incoming, self.outgoing, self.read) = (Vec::new(), Vec::new(), 0);
        (self.deadline, self.last_chunk) = (None, None);
        self.note_outgoing();
        self.wake_reader();
        self.wake_writer();
        if let Some(waker) = self.parting.take() {
            waker.wake();
        }
    }

    /// Counts what it keeps now; how much of it has gone.
    pub(super) fn note_outgoing(&mut self) -> usize {
        self.share.set(self.outgoing.len() + self.message.kept_bytes())
    }

    /// The handler has written all, or has gone on to wait for another request.
    pub(super) fn is_left(&self) -> bool {
        self.is_over || self.is_resting
    }

    /// Nothing but the peer can go on with it: it has to open the window, to take what was written, or to send.
    pub(super) fn waits_for_peer(&self) -> bool {
        (self.is_stalled && self.is_left()) || self.awaits_body() || self.writer.is_some()
    }

    /// The peer has to send. Who responds early reads no more, and does not say so.
    pub(super) fn awaits_body(&self) -> bool {
        self.reader.is_some() && !self.message.has_begun()
    }

    /// The handler may write on.
    pub(super) fn wake_writer(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }

    fn wake_reader(&mut self) {
        if let Some(waker) = self.reader.take() {
            waker.wake();
        }
    }
}

/// Empties a buffer, and keeps its memory for what is put into it next unless that is much.
fn spare(buffer: &mut Vec<u8>) {
    if buffer.capacity() > MOST_KEPT {
        *buffer = Vec::new();
    }
    buffer.clear();
}

impl Hub {
    pub(super) fn of_server() -> Rc<Self> {
        Rc::new(Self { is_server: true, ..Self::default() })
    }

    /// Takes note of a pipe that is free for another request, if it is.
    pub(super) fn note_free(&self, pipe: &Rc<RefCell<State>>, state: &mut State) -> bool {
        let is_free = !self.is_over.get() && state.is_free();
        if is_free && !std::mem::replace(&mut state.is_idle, true) {
            spare(&mut state.outgoing);
            self.idle.borrow_mut().push(Rc::clone(pipe));
        }
        is_free
    }

    /// A pipe whose handler waits for another request; none: there is none.
    pub(super) fn take_free(&self) -> Option<Rc<RefCell<State>>> {
        let pipe = self.idle.borrow_mut().pop()?;
        pipe.borrow_mut().is_idle = false;
        Some(pipe)
    }

    /// The connection has ended: handlers that wait for another request read the end of theirs.
    pub(super) fn end(&self) {
        self.is_over.set(true);
        for pipe in self.idle.take() {
            let mut state = pipe.borrow_mut();
            state.is_idle = false;
            state.wake_reader();
        }
    }

    /// Has the connection look at a stream.
    fn touch(&self, pipe: &Rc<RefCell<State>>, state: &mut State) {
        if std::mem::replace(&mut state.is_touched, true) {
            return;
        }
        self.touched.borrow_mut().push(Rc::clone(pipe));
        self.wake();
    }

    /// Has the connection look at what it waits for.
    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

impl Pipe {
    pub(super) fn new(state: &Rc<RefCell<State>>, hub: &Rc<Hub>) -> Self {
        hub.pipes.set(hub.pipes.get() + 1);
        Self { state: Rc::clone(state), hub: Rc::clone(hub) }
    }

    /// Writes what there is room for.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state.borrow_mut();
        match self.gone(&state) {
            Some(UNPROCESSED) => return Err(UNPROCESSED.into()),
            None if !state.is_over => {}
            _ => return Err(io::ErrorKind::BrokenPipe.into()),
        }
        let count = bytes.len().min(state.share.room());
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // What follows a complete response is not sent.
        if !state.is_ended {
            if state.stream.is_none() && state.outgoing.is_empty() {
                state.is_head = bytes.starts_with(b"HEAD ");
            }
            state.outgoing.extend_from_slice(&bytes[..count]);
            state.note_outgoing();
            self.hub.touch(&self.state, &mut state);
        }
        Ok(count)
    }

    /// Why nothing comes or goes any more.
    fn gone(&self, state: &State) -> Option<io::ErrorKind> {
        let is_unsent = self.hub.is_over.get() && state.stream.is_none();
        state.gone.or(is_unsent.then_some(UNPROCESSED))
    }

    /// Ready when the stream was reset, or its connection has ended.
    pub fn poll_gone(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if self.gone(&state).is_some() {
            return Poll::Ready(());
        }
        state.parting = Some(context.waker().clone());
        Poll::Pending
    }

    fn write_no_more(&self) {
        let mut state = self.state.borrow_mut();
        state.is_over = true;
        self.hub.touch(&self.state, &mut state);
    }
}

impl exchange::Stream for Pipe {
    fn reset_on_close(&self) {
        self.state.borrow_mut().is_broken = true;
    }

    fn set_late(&self) {
        self.state.borrow_mut().is_late = true;
    }

    fn rest(&mut self) {
        self.state.borrow_mut().is_resting = true;
    }

    fn is_http2(&self) -> bool {
        true
    }

    async fn until_gone(&self) {
        poll_fn(|context| self.poll_gone(context)).await
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.state.borrow_mut();
        let unread = &state.incoming[state.read..];
        let count = unread.len().min(room.remaining());
        if count > 0 {
            room.put_slice(&unread[..count]);
            state.read += count;
            state.last_chunk = None;
            state.is_resting = false;
            if state.is_read() {
                spare(&mut state.incoming);
                state.read = 0;
                if state.held > 0 {
                    self.hub.touch(&self.state, &mut state);
                }
            }
            return Poll::Ready(Ok(()));
        }
        if state.is_ended && !self.hub.note_free(&self.state, &mut state) {
            return Poll::Ready(Ok(()));
        }
        if let Some(kind) = self.gone(&state) {
            return Poll::Ready(Err(kind.into()));
        }
        // From now on, the client is waited for.
        if self.hub.is_server && state.reader.is_none() && !state.is_resting {
            self.hub.wake();
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.state.borrow_mut().writer = Some(context.waker().clone());
                Poll::Pending
            }
            written => Poll::Ready(written),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut total = 0;
        for part in parts {
            match self.try_write(part) {
                Ok(count) => total += count,
                Err(error) if total == 0 && error.kind() == io::ErrorKind::WouldBlock => {
                    self.state.borrow_mut().writer = Some(context.waker().clone());
                    return Poll::Pending;
                }
                Err(error) if total == 0 => return Poll::Ready(Err(error)),
                Err(_) => break,
            }
        }
        Poll::Ready(Ok(total))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write_no_more();
        Poll::Ready(Ok(()))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.hub.pipes.set(self.hub.pipes.get() - 1);
        let mut state = self.state.borrow_mut();
        state.is_dropped = true;
        if std::mem::take(&mut state.is_idle) {
            self.hub.idle.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.state));
        }
        drop(state);
        self.write_no_more();
    }
}

#[cfg(test)]
mod tests {
    use assay_http::chunked::{Decoder, Piece};
    use proptest::prelude::*;

    use super::*;

    fn decoded(mut coded: &[u8]) -> Vec<u8> {
        let (mut decoder, mut body) = (Decoder::new(), Vec::new());
        while !decoder.is_done() {
            let (piece, used) = decoder.next(coded).expect("is chunked");
            if let Piece::Data(data) = piece {
                body.extend_from_slice(data);
            }
            coded = &coded[used..];
        }
        assert!(coded.is_empty());
        body
    }

    proptest! {
        /// Whatever frames bring it, and whenever it is read, a body in chunks is that body, and takes little more room.
        #[test]
        fn a_body_in_chunks_is_what_came(parts in prop::collection::vec((1usize..40, any::<bool>()), 1..200)) {
            let mut state = State::empty(Outgoing::response(false), &Rc::default());
            state.in_chunks = true;
            let (mut body, mut coded) = (Vec::new(), Vec::new());
            for (number, (length, is_read)) in parts.iter().enumerate() {
                let data = vec![number as u8; length * length];
                state.take_data(&data, false);
                body.extend_from_slice(&data);
                if *is_read {
                    coded.append(&mut state.incoming);
                    state.last_chunk = None;
                }
            }
            state.end_body();
            coded.append(&mut state.incoming);
            prop_assert_eq!(decoded(&coded), body);
        }
    }

    #[test]
    fn bytes_that_come_one_by_one_take_little_more_room_than_they_are() {
        let mut state = State::empty(Outgoing::response(false), &Rc::default());
        state.in_chunks = true;
        (0..100_000).for_each(|_| state.take_data(b"x", false));
        assert!(state.incoming.len() < 101_000, "{}", state.incoming.len());
    }
}
