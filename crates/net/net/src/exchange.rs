//! The server's side of a connection: requests are read and responses written, one after the other.
//!
//! This is the seam between a request with its response and their form on the wire. A [`Handler`] is given the head of a request, takes its
//! body with [`Exchange::next_part`], and responds with field lines, a [`BodyFraming`] and parts of a body. Where a head ends, how the
//! end of a body is marked and whether the connection persists is decided here. HTTP/1.1 lies below; another version of HTTP is another
//! [`Exchange`] with the same interface.
//!
//! *Does not:* know the meaning of requests and responses, or accept connections ([`crate::listen`] does).

use std::future::{Future, poll_fn};
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use assay_http::chunked::{CHUNK_END, CHUNK_HEAD_BYTES, LAST_CHUNK, chunk_head};
use assay_http::framing::BodyFraming;
use assay_http::head::{HeadError, MAX_HEAD_BYTES, RequestHead, Version};
use assay_http::status::reason;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::TcpStream;

use crate::body::{BodyError, BodyReader, Chunk};
use crate::buffers::{self, InputBuffer};
use crate::connection::{Connection, Resources};
use crate::deadlines::WaitReason;
use crate::fields::{self, ReceivedProtocol};
use crate::limits::{EVICTION_GRACE, HEAD_TIMEOUT, MIN_BODY_RATE, NEXT_REQUEST_WAIT};

/// Transport of a connection: TCP, TLS, or a stream of HTTP/2.
pub trait Transport: AsyncRead + AsyncWrite + Unpin {
    /// Makes the end of the transport visible as premature: a reset.
    fn reset_on_close(&self);

    /// Notes that the client was late with the body of a request, or with taking the response.
    fn set_late(&self) {}

    /// Notes that the client has been sending a head, or making a handshake, for long: until it is no longer slow, nothing is urgent on the
    /// connection.
    fn set_slow(&self, _is_slow: bool) {}

    /// Whether the handshake goes on: no request can have come yet.
    fn is_handshaking(&self) -> bool {
        false
    }

    /// Whether the transport is a stream of HTTP/2, which carries requests one after the other.
    fn is_http2(&self) -> bool {
        false
    }

    /// Notes that the last request is complete: another may follow.
    fn begin_idle(&mut self) {}

    /// Waits until the other side has certainly disconnected: its connection or its stream was reset. A half-closed one may still wait for
    /// its response; whether it does is not known before something is written, so it counts as connected.
    fn wait_disconnected(&self) -> impl Future<Output = ()> {
        std::future::pending()
    }
}

impl Transport for TcpStream {
    fn reset_on_close(&self) {
        // Nothing more can be done if that fails.
        let _ = self.set_zero_linger();
    }

    async fn wait_disconnected(&self) {
        // Where the system does not say, reading and writing will.
        if self.ready(Interest::ERROR).await.is_err() {
            std::future::pending().await
        }
    }
}

/// Runs `work`, in which a client has no part, as long as the client is connected; an error: it has disconnected.
pub async fn unless_disconnected<S: Transport, T>(
    client: &Connection<S>,
    work: impl Future<Output = T>,
) -> io::Result<T> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = wait_disconnected(client) => Err(io::ErrorKind::ConnectionReset.into()),
    }
}

/// Waits until a client has disconnected. A wait that is short, as nearly all are, polls no socket for that
/// ([`crate::deadlines::Deadline::remind`]).
pub(crate) async fn wait_disconnected<S: Transport>(client: &Connection<S>) {
    let Connection { stream, deadline, .. } = client;
    if !stream.is_http2() {
        deadline.remind();
        poll_fn(|cx| match deadline.is_reminded() || deadline.check(cx).is_err() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
    stream.wait_disconnected().await;
}

/// Limits on the time and the size of what a client sends and takes.
#[derive(Debug, Clone, Copy)]
pub struct ClientLimits {
    /// Limit on the wait for a request.
    pub idle: Duration,
    /// Limit on the head of a request, from its first byte on.
    pub head: Duration,
    /// Limit on the wait for each part of a body.
    pub read: Duration,
    /// Limit on each write of a response.
    pub write: Duration,
    /// Longest head of a request, in bytes.
    pub head_bytes: usize,
    /// Longest target of a request, in bytes.
    pub target_bytes: usize,
    /// Lowest rate in bytes a second at which a body may be sent or taken, after the time for a part; 0: any.
    pub least_rate: u64,
}

impl ClientLimits {
    /// Limits from those of each read and each write; a head may take as long as a read, and no longer than [`HEAD_TIMEOUT`].
    pub fn new(read: Duration, write: Duration) -> Self {
        let (head_bytes, target_bytes) = (MAX_HEAD_BYTES, MAX_HEAD_BYTES);
        let least_rate = MIN_BODY_RATE;
        Self { idle: read, head: read.min(HEAD_TIMEOUT), read, write, head_bytes, target_bytes, least_rate }
    }

    /// Checks the length of an incomplete head.
    fn check_incomplete(&self, unread: &[u8]) -> Result<(), Refusal> {
        if unread.len() > self.target_bytes + METHOD_BYTES && memchr::memchr(b'\n', unread).is_none() {
            return Err(Refusal::TargetTooLong(self.target_bytes));
        }
        if unread.len() > self.head_bytes { Err(Refusal::HeadTooLong(self.head_bytes)) } else { Ok(()) }
    }
}

/// Room for the method before a target: a head that has no end yet and is longer than the limit on targets by this much has a target that
/// is too long.
const METHOD_BYTES: usize = 64;

/// Reason to refuse a request before its handler has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The head is not HTTP, or too long.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The head is longer than this server accepts.
    #[error("the head of the request is longer than the {0} bytes that are accepted here")]
    HeadTooLong(usize),
    /// The target is longer than this server accepts.
    #[error("the target of the request is longer than the {0} bytes that are accepted here")]
    TargetTooLong(usize),
    /// The head was not complete in time.
    #[error("the request did not come in time")]
    TooSlow,
}

impl Refusal {
    /// Status of the response.
    pub fn status(&self) -> u16 {
        match self {
            Refusal::Head(error) => error.status(),
            Refusal::HeadTooLong(_) => 431,
            Refusal::TargetTooLong(_) => 414,
            Refusal::TooSlow => 408,
        }
    }
}

/// A request, as far as its head goes; its body is taken from the [`Exchange`].
#[derive(Debug, Clone, Copy)]
pub struct Request<'i> {
    pub head: RequestHead<'i>,
    /// The bytes of the head.
    pub bytes: &'i [u8],
    /// The version of HTTP that the client has sent it in.
    pub received: ReceivedProtocol,
}

/// State of a connection after a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterResponse {
    /// Another request may follow, if the connection persists.
    Request,
    /// HTTP has ended: the connection belongs to the caller of [`serve`].
    Detached,
}

/// A connection from a client, and what is known of its current request.
pub struct Exchange<S = TcpStream> {
    pub connection: Connection<S>,
    /// Version of the current request.
    pub version: Version,
    /// Another request may follow.
    pub persists: bool,
    /// Part of the request is not read yet, or never will be: what follows on the connection is not another request.
    pub leaves_unread: bool,
    body: BodyReader,
    pub limits: ClientLimits,
}

/// Handles the requests of a connection.
pub trait Handler {
    type Transport: Transport;

    fn exchange(&mut self) -> &mut Exchange<Self::Transport>;

    /// Responds to a request. An error was caused by the client, or has been reported to it: the connection ends without a
    /// further response.
    fn respond(&mut self, request: &Request<'_>) -> impl Future<Output = io::Result<AfterResponse>>;

    /// Responds to a malformed request; after that the connection cannot be used. The response to a HEAD has no body.
    fn refuse(&mut self, refusal: Refusal, is_head: bool) -> impl Future<Output = io::Result<()>>;

    /// Called when a request has ended; `complete`: all of the response was written.
    fn on_request_end(&mut self, _complete: bool) {}
}

/// Serves the requests of a connection until it ends or is detached.
pub async fn serve<H: Handler>(handler: &mut H) -> io::Result<AfterResponse> {
    loop {
        let ended = match serve_request(handler).await {
            Ok(None) => return Ok(AfterResponse::Request),
            Ok(Some(next)) => Ok(next),
            Err(error) => Err(error),
        };
        // What a client does not take would stay in the system's memory for as long as it likes.
        if ended.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            let exchange = handler.exchange();
            exchange.connection.stream.reset_on_close();
            exchange.mark_late();
        }
        handler.on_request_end(ended.is_ok());
        if ended? == AfterResponse::Detached {
            return Ok(AfterResponse::Detached);
        }
        let exchange = handler.exchange();
        if !exchange.persists || exchange.leaves_unread {
            let leaves_some = exchange.leaves_unread || !exchange.connection.input.unread().is_empty();
            if leaves_some && !exchange.connection.deadline.is_dismissed() {
                Box::pin(exchange.connection.linger()).await;
            }
            return Ok(AfterResponse::Request);
        }
    }
}

/// Serves one request; none: the client has no more.
async fn serve_request<H: Handler>(handler: &mut H) -> io::Result<Option<AfterResponse>> {
    let exchange = handler.exchange();
    // The head lies here while it is needed, and what follows it in the input of the connection.
    let mut input = std::mem::take(&mut exchange.connection.input);
    let mut has_begun = !input.unread().is_empty();
    // A handshake has as long as a head.
    let is_opening = exchange.connection.stream.is_handshaking();
    let has_time_of_head = has_begun || is_opening;
    if !has_begun {
        exchange.connection.stream.begin_idle();
    }
    // A stream of HTTP/2 without a request keeps nobody out: its connection has a time of its own.
    let is_http2 = exchange.connection.stream.is_http2();
    exchange.connection.deadline.set(match is_http2 {
        _ if has_time_of_head => exchange.limits.head,
        true => exchange.limits.idle.min(NEXT_REQUEST_WAIT),
        false => exchange.limits.idle,
    });
    let next = loop {
        let parsed = if has_begun { RequestHead::parse(input.unread()) } else { Ok(None) };
        let exchange = handler.exchange();
        match parsed {
            Ok(Some((_, length))) if length > exchange.limits.head_bytes => {
                let most = exchange.limits.head_bytes;
                break refuse(handler, Refusal::HeadTooLong(most), input.unread()).await;
            }
            Ok(Some((head, _))) if head.target.len() > exchange.limits.target_bytes => {
                let most = exchange.limits.target_bytes;
                break refuse(handler, Refusal::TargetTooLong(most), input.unread()).await;
            }
            Ok(Some((head, length))) => {
                exchange.connection.stream.set_slow(false);
                let (bytes, rest) = input.unread().split_at(length);
                exchange.begin(&head, rest);
                let received = exchange.received();
                break handler.respond(&Request { head, bytes, received }).await.map(Some);
            }
            Ok(None) => match exchange.limits.check_incomplete(input.unread()) {
                Ok(()) => {}
                Err(refusal) => break refuse(handler, refusal, input.unread()).await,
            },
            Err(error) => break refuse(handler, error.into(), input.unread()).await,
        }
        let awaits = match is_http2 {
            _ if has_begun || is_opening => WaitReason::Head,
            true => WaitReason::Other,
            false => WaitReason::Request,
        };
        match read_request_bytes(&mut exchange.connection, &mut input, awaits).await {
            Ok(0) => break Ok(None),
            Ok(_) if has_begun => {}
            Ok(_) => {
                has_begun = true;
                exchange.connection.deadline.set(exchange.limits.head);
            }
            Err(error) if error.kind() != io::ErrorKind::TimedOut => break Err(error),
            Err(_) if has_begun => break refuse(handler, Refusal::TooSlow, input.unread()).await,
            Err(_) => break Ok(None),
        }
    };
    input.release(&handler.exchange().connection.resources().memory);
    next
}

/// Waits for bytes of a request under the deadline as it is, and appends them to `input`. Returns the count; 0: the other side has closed.
/// The wait may be ended by others ([`crate::deadlines::Deadlines::close_idle`], [`crate::deadlines::LongestWaits`]).
pub(crate) async fn read_request_bytes<S: Transport>(
    connection: &mut Connection<S>,
    input: &mut InputBuffer,
    awaits: WaitReason,
) -> io::Result<usize> {
    connection.deadline.set_wait_reason(awaits);
    let (stream, deadline, _, memory) = connection.parts();
    let filled = poll_fn(|cx| {
        let filled = memory.poll_read(stream, cx, |bytes| {
            input.append(bytes, memory);
            bytes.len()
        });
        if filled.is_ready() {
            return filled;
        }
        if awaits == WaitReason::Head && deadline.has_lasted(EVICTION_GRACE) {
            stream.set_slow(true);
        }
        buffers::poll_deadline(deadline, cx)
    })
    .await;
    if filled.is_err() {
        connection.deadline.set_wait_reason(WaitReason::Other);
    }
    filled
}

async fn refuse<H: Handler>(
    handler: &mut H,
    refusal: Refusal,
    unread: &[u8],
) -> io::Result<Option<AfterResponse>> {
    handler.exchange().close_after_response();
    Box::pin(handler.refuse(refusal, unread.starts_with(b"HEAD ")))
        .await
        .map(|()| Some(AfterResponse::Request))
}

impl<S: Transport> Exchange<S> {
    pub fn new(stream: S, resources: &Rc<Resources>, limits: ClientLimits) -> Self {
        Self::with_connection(Connection::new(stream, resources), limits)
    }

    /// An exchange on a connection with input that may have been read already.
    pub fn with_connection(connection: Connection<S>, limits: ClientLimits) -> Self {
        connection.deadline.set_min_rate(limits.least_rate);
        if connection.stream.is_http2() {
            connection.deadline.mark_stream();
        }
        Self {
            connection,
            version: Version::Http11,
            persists: true,
            leaves_unread: false,
            body: BodyReader::new(BodyFraming::None),
            limits,
        }
    }

    /// Begins a request, which is followed by `rest`.
    fn begin(&mut self, head: &RequestHead<'_>, rest: &[u8]) {
        self.version = head.facts.version;
        self.persists = head.persists();
        self.body = BodyReader::new(head.body());
        self.leaves_unread = !self.body.is_done();
        self.connection.deadline.set_wait_reason(WaitReason::Other);
        self.connection.deadline.clear_debt();
        if !rest.is_empty() {
            let memory = &self.connection.resources().clone().memory;
            self.connection.input.append(rest, memory);
        }
    }

    /// The version of HTTP that the client has sent its request in.
    fn received(&self) -> ReceivedProtocol {
        if self.connection.stream.is_http2() { ReceivedProtocol::Http2 } else { self.version.into() }
    }

    /// Ends the connection with this response: the rest of the request is not read.
    pub fn close_after_response(&mut self) {
        (self.persists, self.leaves_unread) = (false, true);
    }

    /// Whether the client understands interim responses.
    pub fn accepts_interim(&self) -> bool {
        self.version == Version::Http11
    }

    /// The next part of the request's body; none when it is complete. Nothing is lost when the future is dropped.
    pub async fn next_part(&mut self) -> Result<Option<Chunk>, BodyError> {
        let part = self.body.next(&mut self.connection, self.limits.read).await;
        if matches!(&part, Err(BodyError::Io(error)) if error.kind() == io::ErrorKind::TimedOut) {
            self.mark_late();
        }
        let part = part?;
        self.leaves_unread = !self.body.is_done();
        Ok(part)
    }

    /// Marks the client as late. Where others needed its slot, it may have had less than its full time, and is not marked.
    pub fn mark_late(&self) {
        if !self.connection.deadline.is_dismissed() {
            self.connection.stream.set_late();
        }
    }

    /// All of the request's body was read, or it has none.
    pub fn is_body_read(&self) -> bool {
        self.body.is_done()
    }

    /// Framing for this client of a body of this length, if the length is known.
    pub fn framing(&self, status: u16, length: Option<u64>) -> BodyFraming {
        match (length, self.version) {
            _ if matches!(status, 204 | 304) => BodyFraming::None,
            (Some(bytes), _) => BodyFraming::Length(bytes),
            (None, Version::Http11) => BodyFraming::Chunked,
            (None, Version::Http10) => BodyFraming::UntilClose,
        }
    }

    /// Framing for this client of a body that arrives in this framing.
    pub fn framing_for(&self, status: u16, body: BodyFraming) -> BodyFraming {
        match body {
            BodyFraming::None => BodyFraming::None,
            BodyFraming::Length(bytes) => self.framing(status, Some(bytes)),
            BodyFraming::Chunked | BodyFraming::UntilClose => self.framing(status, None),
        }
    }

    /// Appends the fields of this connection, and the empty line that ends the head. A connection ends with a response whose
    /// request was not read to its end. A response without a body that states the length of one (to HEAD) has that field already.
    pub fn append_framing(&mut self, out: &mut Vec<u8>, framing: BodyFraming) {
        self.append_framing_with(out, b"", framing);
    }

    /// Appends the fields of this connection like [`Self::append_framing`], with these options in `Connection`: the members of a list, or
    /// nothing.
    pub fn append_framing_with(&mut self, out: &mut Vec<u8>, named: &[u8], framing: BodyFraming) {
        self.persists &= !self.leaves_unread;
        match framing {
            BodyFraming::None => {}
            BodyFraming::Length(bytes) => fields::append_number(out, "Content-Length", bytes),
            BodyFraming::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            BodyFraming::UntilClose => self.persists = false,
        }
        let connection: &[u8] = match (self.persists, self.version) {
            (false, _) => b"Connection: close\r\n\r\n",
            (true, Version::Http10) => b"Connection: keep-alive\r\n\r\n",
            (true, Version::Http11) => b"\r\n",
        };
        if named.is_empty() {
            return out.extend_from_slice(connection);
        }
        let option = connection.strip_suffix(b"\r\n\r\n").map(|option| [option, b", "].concat());
        out.extend_from_slice(option.as_deref().unwrap_or(b"Connection: "));
        out.extend_from_slice(named);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Responds as the final recipient of a request whose Max-Forwards is 0 (RFC 9110, 7.6.2). A trace would only show what the client has
    /// just sent.
    pub async fn respond_as_final_recipient(&mut self, method: &str) -> io::Result<u16> {
        if !self.is_body_read() {
            self.close_after_response();
        }
        let (status, lines, text): (u16, &[u8], &str) = match method {
            "OPTIONS" => (200, b"Allow: GET, HEAD, POST, PUT, DELETE, OPTIONS\r\n", ""),
            _ => (501, b"", "a trace is passed on, or gets no other response\n"),
        };
        self.send_text(status, lines, text, false).await?;
        Ok(status)
    }

    /// Sends 100 (Continue), so that the client sends the body of its request.
    pub async fn send_continue(&mut self) -> io::Result<()> {
        self.write(&[b"HTTP/1.1 100 Continue\r\n\r\n"]).await
    }

    /// Sends a response with a text of our own and these field lines.
    pub async fn send_text(
        &mut self,
        status: u16,
        lines: &[u8],
        text: &str,
        is_head: bool,
    ) -> io::Result<()> {
        let mut head = Vec::with_capacity(128 + lines.len());
        head.extend_from_slice(b"HTTP/1.1 ");
        assay_http::field::write_decimal(&mut head, u64::from(status));
        head.push(b' ');
        head.extend_from_slice(reason(status).as_bytes());
        head.extend_from_slice(b"\r\nContent-Type: text/plain; charset=utf-8\r\n");
        head.extend_from_slice(lines);
        self.append_framing(&mut head, BodyFraming::Length(text.len() as u64));
        self.write(&[&head, if is_head { &[] } else { text.as_bytes() }]).await
    }

    /// Writes parts, in as few steps as the connection takes.
    pub fn write(&mut self, parts: &[&[u8]]) -> impl Future<Output = io::Result<()>> {
        self.connection.write_all(parts.iter().copied(), self.limits.write)
    }

    /// Writes parts and the chunks behind them, in as few steps as the connection takes.
    pub fn write_chunks<'p>(
        &mut self,
        parts: &'p [&'p [u8]],
        chunks: &'p [Chunk],
    ) -> impl Future<Output = io::Result<()>> {
        let chunks = chunks.iter().map(|chunk| &chunk[..]);
        self.connection.write_all(parts.iter().copied().chain(chunks), self.limits.write)
    }

    /// Writes parts of a body behind a head, delimited as this client needs it.
    pub async fn write_body(
        &mut self,
        head: &[&[u8]],
        chunks: &[Chunk],
        framing: BodyFraming,
        is_last: bool,
    ) -> io::Result<()> {
        if framing != BodyFraming::Chunked {
            return self.write_chunks(head, chunks).await;
        }
        let bytes: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        let mut room = [0; CHUNK_HEAD_BYTES];
        let (size_line, line_end): (&[u8], &[u8]) =
            if bytes > 0 { (chunk_head(bytes as u64, &mut room), CHUNK_END) } else { (&[], &[]) };
        let last = if is_last { LAST_CHUNK } else { &[] };
        let before = head.iter().copied().chain([size_line]);
        let parts = before.chain(chunks.iter().map(|chunk| &chunk[..])).chain([line_end, last]);
        self.connection.write_all(parts, self.limits.write).await
    }

    /// Aborts a response whose body broke off. The client must see that, so the connection ends: where that would look like the end of the
    /// body, it is reset.
    pub fn abort(&self, framing: BodyFraming) -> io::Error {
        if framing == BodyFraming::UntilClose {
            self.connection.stream.reset_on_close();
        }
        io::Error::new(io::ErrorKind::UnexpectedEof, "the body of the response broke off")
    }
}

#[cfg(test)]
mod tests;
