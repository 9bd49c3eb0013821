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

use super::share::BufferShare;
use super::translate::{OutgoingMessage, append_interim, append_request, append_response};
use crate::deadlines::Deadline;
use crate::exchange;

/// The error of a request that the server has certainly not acted on.
pub const UNPROCESSED: io::ErrorKind = io::ErrorKind::ConnectionAborted;

/// Memory that a pipe keeps for its next request, at most, for each direction.
const MAX_KEPT: usize = 16 * 1024;

/// Interim responses that nobody has read, at most, in bytes. Windows do not bound heads, and a coded one is much shorter.
const MAX_INTERIM_BYTES: usize = 64 * 1024;

/// Parts of a body that are no longer than this together share a chunk while nobody has read it: each alone would take more room than it has
/// bytes.
const SMALL_CHUNK: usize = 1024;

/// The handler's end of a stream. Dropped before the messages are complete, it resets the stream.
pub struct Pipe {
    state: Rc<RefCell<StreamState>>,
    hub: Rc<PipeHub>,
}

/// State that a connection and the pipes of its streams share.
#[derive(Default)]
pub(super) struct PipeHub {
    /// Pipes that the connection has to look at.
    pub(super) dirty: RefCell<Vec<Rc<RefCell<StreamState>>>>,
    pub(super) waker: RefCell<Option<Waker>>,
    /// The connection is that of a server, which limits the time of its client.
    is_server: bool,
    /// The connection has ended: nothing more is sent.
    pub(super) is_write_closed: Cell<bool>,
    /// Number of pipes that handlers hold.
    pub(super) pipes: Cell<usize>,
    /// Unsent bytes of all pipes together.
    pub(super) kept: Rc<Cell<usize>>,
    /// Pipes whose handlers wait for another request; the last one has waited for the shortest time.
    idle: RefCell<Vec<Rc<RefCell<StreamState>>>>,
}

pub(super) struct StreamState {
    /// None: the request has not been sent.
    pub(super) stream: Option<Stream>,
    pub(super) message: OutgoingMessage,
    /// Bytes that the handler has written and that were not sent.
    pub(super) outgoing: Vec<u8>,
    /// The share of `outgoing` in the unsent bytes of the connection.
    share: BufferShare,
    /// Deadline of the client once the handler is done.
    pub(super) deadline: Option<Deadline>,
    pub(super) is_write_closed: bool,
    /// The handler has aborted: what it has written must not look complete.
    pub(super) is_aborted: bool,
    /// The client was late with the body, or with taking the response.
    pub(super) is_late: bool,
    /// The handler has dropped the pipe.
    pub(super) is_dropped: bool,
    /// Listed in [`PipeHub::dirty`].
    pub(super) is_dirty: bool,
    /// Listed among streams whose window is used up.
    pub(super) is_stalled: bool,
    /// The handler is done with the last request, and waits for another.
    pub(super) awaits_request: bool,
    /// Listed in [`PipeHub::idle`].
    is_idle: bool,
    /// Payload that was received and not given back to the stream's window.
    pub(super) unreleased: u32,
    /// Time when the request began.
    pub(super) begun_ns: u64,
    /// Number of reads of the connection by then.
    pub(super) reads_before: u64,
    /// Received bytes.
    incoming: Vec<u8>,
    /// Bytes of `incoming` that were read.
    read: usize,
    /// The incoming body is written in chunked coding.
    in_chunks: bool,
    /// Position and length of the last chunk, if nobody has read it.
    last_chunk: Option<(usize, usize)>,
    /// The response is complete: there is nothing more to read.
    pub(super) is_complete: bool,
    /// The error of the handler after the stream was reset, or its connection has ended.
    gone: Option<io::ErrorKind>,
    /// The request was HEAD (client only).
    is_head: bool,
    read_waker: Option<Waker>,
    write_waker: Option<Waker>,
    /// Waker of a handler that waits for something else, and is to know when the stream has gone.
    gone_waker: Option<Waker>,
}

impl StreamState {
    /// A request whose head has come; `ends`: it has no body.
    pub(super) fn new(stream: Stream, head: Head<'_>, ends: bool, kept: &Rc<Cell<usize>>) -> Self {
        let mut state = Self::empty(OutgoingMessage::response(false), kept);
        state.incoming.reserve(head.lines().len() + head.path().len() + 128);
        state.begin(stream, head, ends);
        state
    }

    /// Begins another request, for a handler that is done with the last one.
    pub(super) fn begin(&mut self, stream: Stream, head: Head<'_>, ends: bool) {
        self.stream = Some(stream);
        self.message = OutgoingMessage::response(head.method() == "HEAD");
        (self.unreleased, self.read, self.is_complete, self.is_late) = (0, 0, false, false);
        (self.deadline, self.last_chunk) = (None, None);
        self.incoming.clear();
        self.outgoing.clear();
        self.note_outgoing();
        self.in_chunks = append_request(&mut self.incoming, head, ends);
        self.wake_reader();
    }

    /// A request that is about to be written.
    pub(super) fn for_request(
        scheme: &'static str,
        begun_ns: u64,
        reads_before: u64,
        kept: &Rc<Cell<usize>>,
    ) -> Self {
        Self { begun_ns, reads_before, ..Self::empty(OutgoingMessage::request(scheme), kept) }
    }

    fn empty(message: OutgoingMessage, kept: &Rc<Cell<usize>>) -> Self {
        Self {
            stream: None,
            message,
            outgoing: Vec::new(),
            share: BufferShare::new(kept),
            deadline: None,
            is_write_closed: false,
            is_aborted: false,
            is_late: false,
            is_dropped: false,
            is_dirty: false,
            is_stalled: false,
            awaits_request: false,
            is_idle: false,
            unreleased: 0,
            begun_ns: 0,
            reads_before: 0,
            incoming: Vec::new(),
            read: 0,
            in_chunks: false,
            last_chunk: None,
            is_complete: false,
            gone: None,
            is_head: false,
            read_waker: None,
            write_waker: None,
            gone_waker: None,
        }
    }

    /// Takes the head of a response; `ends`: it has no body.
    pub(super) fn take_response(&mut self, head: Head<'_>, ends: bool) {
        self.in_chunks = append_response(&mut self.incoming, head, self.is_head, ends);
        if ends {
            self.end();
        } else {
            self.wake_reader();
        }
    }

    /// Takes the head of an interim response; false: more are unread than may be.
    pub(super) fn take_interim(&mut self, head: Head<'_>) -> bool {
        append_interim(&mut self.incoming, head);
        self.wake_reader();
        self.incoming.len() - self.read <= MAX_INTERIM_BYTES
    }

    /// Takes a part of the body.
    pub(super) fn take_data(&mut self, data: &[u8], ends: bool) {
        self.unreleased = self.unreleased.saturating_add(data.len() as u32);
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

    /// Appends a part of a body, in a chunk of its own or in the last one.
    fn append_chunk(&mut self, data: &[u8]) {
        let (mut buffer, mut buffer_before) = ([0; CHUNK_HEAD_BYTES], [0; CHUNK_HEAD_BYTES]);
        match self.last_chunk.filter(|(_, before)| before + data.len() <= SMALL_CHUNK) {
            Some((at, before)) => {
                let length = before + data.len();
                self.incoming.truncate(self.incoming.len() - CHUNK_END.len());
                self.incoming.extend_from_slice(data);
                let replaced = at..at + chunk_head(before as u64, &mut buffer_before).len();
                self.incoming.splice(replaced, chunk_head(length as u64, &mut buffer).iter().copied());
                self.last_chunk = Some((at, length));
            }
            None => {
                self.last_chunk = Some((self.incoming.len(), data.len()));
                self.incoming.extend_from_slice(chunk_head(data.len() as u64, &mut buffer));
                self.incoming.extend_from_slice(data);
            }
        }
        self.incoming.extend_from_slice(CHUNK_END);
    }

    /// Ends the incoming body.
    pub(super) fn end_body(&mut self) {
        if std::mem::take(&mut self.in_chunks) {
            self.incoming.extend_from_slice(LAST_CHUNK);
        }
        self.wake_reader();
    }

    /// Whether all input was read.
    pub(super) fn is_read(&self) -> bool {
        self.read == self.incoming.len()
    }

    /// Completes the response: the handler of a server is free for another request when it is done, and that of a client reads the end of
    /// its connection next.
    pub(super) fn end(&mut self) {
        self.is_complete = true;
        if !self.is_free() {
            self.wake_reader();
            self.wake_writer();
        }
    }

    /// Whether another request may be given to the handler.
    fn is_free(&self) -> bool {
        let is_done = self.awaits_request && self.is_complete && self.is_read();
        let is_lost = self.is_write_closed || self.is_aborted || self.is_stalled || self.gone.is_some();
        is_done && !is_lost
    }

    /// Fails the stream, which was reset, or whose connection has ended.
    pub(super) fn fail(&mut self) {
        self.fail_with(io::ErrorKind::ConnectionReset);
    }

    /// Fails a request that was not processed: it may be sent again, whatever it is.
    pub(super) fn fail_unprocessed(&mut self) {
        self.fail_with(UNPROCESSED);
    }

    /// Fails the stream after its input: a server has reset it, or ended the connection, and what it sent before is read first, as from a
    /// connection of HTTP/1.1. Its head may have come at once with the reset, and says whose response is cut off.
    pub(super) fn fail_after_input(&mut self) {
        let sent = (std::mem::take(&mut self.incoming), self.read);
        self.fail();
        (self.incoming, self.read) = sent;
    }

    fn fail_with(&mut self, kind: io::ErrorKind) {
        self.gone = Some(kind);
        (self.incoming, self.outgoing, self.read) = (Vec::new(), Vec::new(), 0);
        (self.deadline, self.last_chunk) = (None, None);
        self.note_outgoing();
        self.wake_reader();
        self.wake_writer();
        if let Some(waker) = self.gone_waker.take() {
            waker.wake();
        }
    }

    /// Updates the count of unsent bytes, and returns by how much it fell.
    pub(super) fn note_outgoing(&mut self) -> usize {
        self.share.set(self.outgoing.len() + self.message.kept_bytes())
    }

    /// Whether the handler has written all, or waits for another request.
    pub(super) fn is_handler_done(&self) -> bool {
        self.is_write_closed || self.awaits_request
    }

    /// Whether only the peer can make progress: it has to open the window, to take what was written, or to send.
    pub(super) fn waits_for_peer(&self) -> bool {
        (self.is_stalled && self.is_handler_done()) || self.awaits_body() || self.write_waker.is_some()
    }

    /// Whether the peer has to send. A handler that responds early reads no more, and does not say so.
    pub(super) fn awaits_body(&self) -> bool {
        self.read_waker.is_some() && !self.message.has_begun()
    }

    /// Wakes the writing handler.
    pub(super) fn wake_writer(&mut self) {
        if let Some(waker) = self.write_waker.take() {
            waker.wake();
        }
    }

    fn wake_reader(&mut self) {
        if let Some(waker) = self.read_waker.take() {
            waker.wake();
        }
    }
}

/// Empties a buffer, and keeps its memory for what is put into it next unless that is much.
fn spare(buffer: &mut Vec<u8>) {
    if buffer.capacity() > MAX_KEPT {
        *buffer = Vec::new();
    }
    buffer.clear();
}

impl PipeHub {
    pub(super) fn for_server() -> Rc<Self> {
        Rc::new(Self { is_server: true, ..Self::default() })
    }

    /// Lists a pipe as free for another request, if it is.
    pub(super) fn note_free(&self, pipe: &Rc<RefCell<StreamState>>, state: &mut StreamState) -> bool {
        let is_free = !self.is_write_closed.get() && state.is_free();
        if is_free && !std::mem::replace(&mut state.is_idle, true) {
            spare(&mut state.outgoing);
            self.idle.borrow_mut().push(Rc::clone(pipe));
        }
        is_free
    }

    /// A pipe whose handler waits for another request; none: there is none.
    pub(super) fn take_free(&self) -> Option<Rc<RefCell<StreamState>>> {
        let pipe = self.idle.borrow_mut().pop()?;
        pipe.borrow_mut().is_idle = false;
        Some(pipe)
    }

    /// Ends the connection: handlers that wait for another request read the end of theirs.
    pub(super) fn end(&self) {
        self.is_write_closed.set(true);
        for pipe in self.idle.take() {
            let mut state = pipe.borrow_mut();
            state.is_idle = false;
            state.wake_reader();
        }
    }

    /// Marks a stream for the connection to look at.
    fn mark_dirty(&self, pipe: &Rc<RefCell<StreamState>>, state: &mut StreamState) {
        if std::mem::replace(&mut state.is_dirty, true) {
            return;
        }
        self.dirty.borrow_mut().push(Rc::clone(pipe));
        self.wake();
    }

    /// Wakes the connection's task.
    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

impl Pipe {
    pub(super) fn new(state: &Rc<RefCell<StreamState>>, hub: &Rc<PipeHub>) -> Self {
        hub.pipes.set(hub.pipes.get() + 1);
        Self { state: Rc::clone(state), hub: Rc::clone(hub) }
    }

    /// Writes what there is room for.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state.borrow_mut();
        match self.failure(&state) {
            Some(UNPROCESSED) => return Err(UNPROCESSED.into()),
            None if !state.is_write_closed => {}
            _ => return Err(io::ErrorKind::BrokenPipe.into()),
        }
        let count = bytes.len().min(state.share.room());
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        // What follows a complete response is not sent.
        if !state.is_complete {
            if state.stream.is_none() && state.outgoing.is_empty() {
                state.is_head = bytes.starts_with(b"HEAD ");
            }
            state.outgoing.extend_from_slice(&bytes[..count]);
            state.note_outgoing();
            self.hub.mark_dirty(&self.state, &mut state);
        }
        Ok(count)
    }

    /// The error after which nothing is sent or received.
    fn failure(&self, state: &StreamState) -> Option<io::ErrorKind> {
        let is_unsent = self.hub.is_write_closed.get() && state.stream.is_none();
        state.gone.or(is_unsent.then_some(UNPROCESSED))
    }

    /// Ready when the stream was reset, or its connection has ended.
    pub fn poll_gone(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.state.borrow_mut();
        if self.failure(&state).is_some() {
            return Poll::Ready(());
        }
        state.gone_waker = Some(context.waker().clone());
        Poll::Pending
    }

    fn close_write(&self) {
        let mut state = self.state.borrow_mut();
        state.is_write_closed = true;
        self.hub.mark_dirty(&self.state, &mut state);
    }
}

impl exchange::Transport for Pipe {
    fn reset_on_close(&self) {
        self.state.borrow_mut().is_aborted = true;
    }

    fn set_late(&self) {
        self.state.borrow_mut().is_late = true;
    }

    fn begin_idle(&mut self) {
        self.state.borrow_mut().awaits_request = true;
    }

    fn is_http2(&self) -> bool {
        true
    }

    async fn wait_disconnected(&self) {
        poll_fn(|context| self.poll_gone(context)).await
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.state.borrow_mut();
        let unread = &state.incoming[state.read..];
        let count = unread.len().min(buffer.remaining());
        if count > 0 {
            buffer.put_slice(&unread[..count]);
            state.read += count;
            state.last_chunk = None;
            state.awaits_request = false;
            if state.is_read() {
                spare(&mut state.incoming);
                state.read = 0;
                if state.unreleased > 0 {
                    self.hub.mark_dirty(&self.state, &mut state);
                }
            }
            return Poll::Ready(Ok(()));
        }
        if state.is_complete && !self.hub.note_free(&self.state, &mut state) {
            return Poll::Ready(Ok(()));
        }
        if let Some(kind) = self.failure(&state) {
            return Poll::Ready(Err(kind.into()));
        }
        // From now on, the client is waited for.
        if self.hub.is_server && state.read_waker.is_none() && !state.awaits_request {
            self.hub.wake();
        }
        state.read_waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.state.borrow_mut().write_waker = Some(context.waker().clone());
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
                    self.state.borrow_mut().write_waker = Some(context.waker().clone());
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
        self.close_write();
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
        self.close_write();
    }
}

#[cfg(test)]
mod tests {
    use assay_http::framing::{BodyDecoder, BodyFraming};
    use proptest::prelude::*;

    use super::*;

    fn decoded(coded: &[u8]) -> Vec<u8> {
        let (mut decoder, mut content) = (BodyDecoder::new(BodyFraming::Chunked), Vec::new());
        let used = decoder.decode_into(coded, &mut content);
        assert_eq!((used, decoder.is_done()), (Ok(coded.len()), true));
        content
    }

    proptest! {
        /// Whatever frames bring it, and whenever it is read, a body in chunks is that body, and takes little more room.
        #[test]
        fn a_body_in_chunks_is_what_came(parts in prop::collection::vec((1usize..40, any::<bool>()), 1..200)) {
            let mut state = StreamState::empty(OutgoingMessage::response(false), &Rc::default());
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
        let mut state = StreamState::empty(OutgoingMessage::response(false), &Rc::default());
        state.in_chunks = true;
        (0..100_000).for_each(|_| state.take_data(b"x", false));
        assert!(state.incoming.len() < 101_000, "{}", state.incoming.len());
    }
}
