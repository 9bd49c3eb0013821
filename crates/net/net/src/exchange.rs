//! The server's side of a connection: requests are read and responses written, one after the other.
//!
//! This is the seam between a request with its response and how both lie on the wire. A [`Handler`] is given the head of a request,
//! takes its body with [`Exchange::next_part`], and responds with field lines, a [`Framing`] and parts of a body. Where a head
//! ends, how the end of a body is told and whether the connection lives on is decided here. HTTP/1.1 lies below; another version
//! of HTTP is another [`Exchange`] with the same interface.
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
use crate::connection::{Connection, Resources};
use crate::fields::{self, Received};
use crate::limits::{HEAD, LEAST_RATE, RESTING, SPARED};
use crate::memory::{self, Input};
use crate::watch::Awaits;

/// What a connection lies on.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {
    /// From now on, closing it shows the other side that something is missing.
    fn reset_on_close(&self);

    /// Its client was late with the body of a request, or with taking the response.
    fn set_late(&self) {}

    /// Its client has been at a head, or at a handshake, for long: until it is said that it is not slow any more, nothing is urgent on it.
    fn set_slow(&self, _is_slow: bool) {}

    /// Its handshake is not over: nothing can have come on it yet.
    fn is_opening(&self) -> bool {
        false
    }

    /// It carries requests of a client that speaks HTTP/2, one after the other.
    fn is_http2(&self) -> bool {
        false
    }

    /// Everything about the last request is done, and another may come on it.
    fn rest(&mut self) {}

    /// Waits until the other side has gone for certain: its connection or its stream was reset. One that only sends nothing more may
    /// still wait for what it gets; whether it does is not known before something is written, so that it has not gone.
    fn until_gone(&self) -> impl Future<Output = ()> {
        std::future::pending()
    }
}

impl Stream for TcpStream {
    fn reset_on_close(&self) {
        // Nothing more can be done if that fails.
        let _ = self.set_zero_linger();
    }

    async fn until_gone(&self) {
        // Where the system does not say, reading and writing will.
        if self.ready(Interest::ERROR).await.is_err() {
            std::future::pending().await
        }
    }
}

/// Waits for something that a client has no part in, as long as the client is there; an error: it has gone.
pub async fn unless_gone<S: Stream, T>(
    client: &Connection<S>,
    work: impl Future<Output = T>,
) -> io::Result<T> {
    tokio::select! {
        biased;
        done = work => Ok(done),
        () = until_gone(client) => Err(io::ErrorKind::ConnectionReset.into()),
    }
}

/// Waits until a client has gone. A wait that is short, as nearly all are, asks no socket for that ([`crate::watch::Deadline::remind`]).
pub(crate) async fn until_gone<S: Stream>(client: &Connection<S>) {
    let Connection { stream, deadline, .. } = client;
    if !stream.is_http2() {
        deadline.remind();
        poll_fn(|cx| match deadline.is_reminded() || deadline.check(cx).is_err() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
    stream.until_gone().await;
}

/// How long a client may take.
#[derive(Debug, Clone, Copy)]
pub struct ClientLimits {
    /// Until a request begins.
    pub idle: Duration,
    /// For the head of a request, from its first byte on.
    pub head: Duration,
    /// For each part of a body.
    pub read: Duration,
    /// For each step of taking a response.
    pub write: Duration,
    /// Longest head of a request, in bytes.
    pub head_bytes: usize,
    /// Longest target of a request, in bytes.
    pub target_bytes: usize,
    /// Least bytes of a body that it has to send or take in a second, after the time for a part; 0: any.
    pub least_rate: u64,
}

impl ClientLimits {
    /// So long for each step that is read, and so long for each step that is written; a head may take as long as a step, and no
    /// longer than [`HEAD`].
    pub fn new(read: Duration, write: Duration) -> Self {
        let (head_bytes, target_bytes) = (MAX_HEAD_BYTES, MAX_HEAD_BYTES);
        let least_rate = LEAST_RATE;
        Self { idle: read, head: read.min(HEAD), read, write, head_bytes, target_bytes, least_rate }
    }

    /// A request may go on with so many bytes of which the head is not complete.
    fn allow(&self, unread: &[u8]) -> Result<(), Refusal> {
        if unread.len() > self.target_bytes + METHOD_BYTES && memchr::memchr(b'\n', unread).is_none() {
            return Err(Refusal::TargetTooLong(self.target_bytes));
        }
        if unread.len() > self.head_bytes { Err(Refusal::HeadTooLong(self.head_bytes)) } else { Ok(()) }
    }
}

/// A target that is too long is told from a head without end once it is so much too long: the method is before it.
const METHOD_BYTES: usize = 64;

/// Why a request is refused before its handler has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Its head is not HTTP, or too long.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// Its head is longer than this server takes.
    #[error("the head of the request is longer than the {0} bytes that are accepted here")]
    HeadTooLong(usize),
    /// So is its target.
    #[error("the target of the request is longer than the {0} bytes that are accepted here")]
    TargetTooLong(usize),
    /// It began and did not end.
    #[error("the request did not come in time")]
    TooSlow,
}

impl Refusal {
    /// The status that tells the client.
    pub fn status(&self) -> u16 {
        match self {
            Refusal::Head(error) => error.status(),
            Refusal::HeadTooLong(_) => 431,
            Refusal::TargetTooLong(_) => 414,
            Refusal::TooSlow => 408,
        }
    }
}

/// How the end of a response is told to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// There is no body, but one of this length would be.
    Described(u64),
    /// So many bytes.
    Length(u64),
    Chunked,
    /// The connection ends with it.
    UntilClose,
}

/// A request, as far as its head goes; its body is taken from the [`Exchange`].
#[derive(Debug, Clone, Copy)]
pub struct Request<'i> {
    pub head: RequestHead<'i>,
    /// The bytes of the head.
    pub bytes: &'i [u8],
    /// The version of HTTP that the client has sent it in.
    pub received: Received,
}

/// What follows a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The next one, if the connection lives on.
    Request,
    /// No HTTP: the caller of [`serve`] has the connection for itself.
    Detached,
}

/// A connection from a client, and what is known of its current request.
pub struct Exchange<S = TcpStream> {
    pub connection: Connection<S>,
    /// What the client speaks.
    pub version: Version,
    /// Another request may follow.
    pub persists: bool,
    /// Some of the request is not read yet, or never will be: what follows on the connection is not another request.
    pub leaves_unread: bool,
    /// The request has a body that is still to be read.
    body: BodyReader,
    /// How long the client may take.
    pub limits: ClientLimits,
}

/// Handles the requests of a connection.
pub trait Handler {
    /// What the connection lies on.
    type Stream: Stream;

    fn exchange(&mut self) -> &mut Exchange<Self::Stream>;

    /// Responds to a request. An error was caused by the client, or has been reported to it: the connection ends without a
    /// further response.
    fn respond(&mut self, request: &Request<'_>) -> impl Future<Output = io::Result<Next>>;

    /// Responds to a malformed request; after that the connection cannot be used. The response to a HEAD has no body.
    fn refuse(&mut self, refusal: Refusal, is_head: bool) -> impl Future<Output = io::Result<()>>;

    /// A request has ended; `complete`: all of the response was written.
    fn ended(&mut self, _complete: bool) {}
}

/// Serves the requests of a connection until it ends or is detached.
pub async fn serve<H: Handler>(handler: &mut H) -> io::Result<Next> {
    loop {
        let ended = match turn(handler).await {
            Ok(None) => return Ok(Next::Request),
            Ok(Some(next)) => Ok(next),
            Err(error) => Err(error),
        };
        // What a client does not take would stay in the system's memory for as long as it likes.
        if ended.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            let exchange = handler.exchange();
            exchange.connection.stream.reset_on_close();
            exchange.note_late();
        }
        handler.ended(ended.is_ok());
        if ended? == Next::Detached {
            return Ok(Next::Detached);
        }
        let exchange = handler.exchange();
        if !exchange.persists || exchange.leaves_unread {
            let leaves_some = exchange.leaves_unread || !exchange.connection.input.unread().is_empty();
            if leaves_some && !exchange.connection.deadline.is_dismissed() {
                Box::pin(exchange.connection.linger()).await;
            }
            return Ok(Next::Request);
        }
    }
}

/// One request and its response; none: the client has no more.
async fn turn<H: Handler>(handler: &mut H) -> io::Result<Option<Next>> {
    let exchange = handler.exchange();
    // The head lies here while it is needed, and what follows it in the input of the connection.
    let mut input = std::mem::take(&mut exchange.connection.input);
    let mut has_begun = !input.unread().is_empty();
    // A handshake has as long as a head.
    let is_opening = exchange.connection.stream.is_opening();
    let has_time_of_head = has_begun || is_opening;
    if !has_begun {
        exchange.connection.stream.rest();
    }
    // A stream of HTTP/2 without a request keeps nobody out: its connection has a time of its own.
    let is_http2 = exchange.connection.stream.is_http2();
    exchange.connection.deadline.set(match is_http2 {
        _ if has_time_of_head => exchange.limits.head,
        true => exchange.limits.idle.min(RESTING),
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
            Ok(None) => match exchange.limits.allow(input.unread()) {
                Ok(()) => {}
                Err(refusal) => break refuse(handler, refusal, input.unread()).await,
            },
            Err(error) => break refuse(handler, error.into(), input.unread()).await,
        }
        let awaits = match is_http2 {
            _ if has_begun || is_opening => Awaits::Head,
            true => Awaits::Other,
            false => Awaits::Request,
        };
        match wait(&mut exchange.connection, &mut input, awaits).await {
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

/// Waits for bytes of a request under the deadline as it is, and adds them to `input`; how many (none: the other side has closed). It may
/// be sent away meanwhile ([`crate::watch::Watch::dismiss_idle`], [`crate::watch::Longest`]).
pub(crate) async fn wait<S: Stream>(
    connection: &mut Connection<S>,
    input: &mut Input,
    awaits: Awaits,
) -> io::Result<usize> {
    connection.deadline.set_awaits(awaits);
    let (stream, deadline, _, memory) = connection.parts();
    let filled = poll_fn(|cx| {
        let filled = memory.poll_read(stream, cx, |bytes| {
            input.append(bytes, memory);
            bytes.len()
        });
        if filled.is_ready() {
            return filled;
        }
        if awaits == Awaits::Head && deadline.has_lasted(SPARED) {
            stream.set_slow(true);
        }
        memory::wait(deadline, cx)
    })
    .await;
    if filled.is_err() {
        connection.deadline.set_awaits(Awaits::Other);
    }
    filled
}

async fn refuse<H: Handler>(handler: &mut H, refusal: Refusal, unread: &[u8]) -> io::Result<Option<Next>> {
    handler.exchange().give_up();
    Box::pin(handler.refuse(refusal, unread.starts_with(b"HEAD "))).await.map(|()| Some(Next::Request))
}

impl<S: Stream> Exchange<S> {
    pub fn new(stream: S, resources: &Rc<Resources>, limits: ClientLimits) -> Self {
        Self::of(Connection::new(stream, resources), limits)
    }

    /// On a connection of which something may have been read.
    pub fn of(connection: Connection<S>, limits: ClientLimits) -> Self {
        connection.deadline.set_pace(limits.least_rate);
        if connection.stream.is_http2() {
            connection.deadline.set_stream();
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

    /// The next response is to this request, which is followed by `rest`.
    fn begin(&mut self, head: &RequestHead<'_>, rest: &[u8]) {
        self.version = head.facts.version;
        self.persists = head.persists();
        self.body = BodyReader::new(head.body());
        self.leaves_unread = !self.body.is_done();
        self.connection.deadline.set_awaits(Awaits::Other);
        self.connection.deadline.forgive();
        if !rest.is_empty() {
            let memory = &self.connection.resources().clone().memory;
            self.connection.input.append(rest, memory);
        }
    }

    /// The version of HTTP that the client has sent its request in.
    fn received(&self) -> Received {
        if self.connection.stream.is_http2() { Received::Http2 } else { self.version.into() }
    }

    /// The connection ends with this response: what is left of the request is not read.
    pub fn give_up(&mut self) {
        (self.persists, self.leaves_unread) = (false, true);
    }

    /// Whether the client understands interim responses.
    pub fn takes_interim(&self) -> bool {
        self.version == Version::Http11
    }

    /// The next part of the request's body; none when it is complete. Nothing is lost when the future is dropped.
    pub async fn next_part(&mut self) -> Result<Option<Chunk>, BodyError> {
        let part = self.body.next(&mut self.connection, self.limits.read).await;
        if matches!(&part, Err(BodyError::Io(error)) if error.kind() == io::ErrorKind::TimedOut) {
            self.note_late();
        }
        let part = part?;
        self.leaves_unread = !self.body.is_done();
        Ok(part)
    }

    /// Its client has had all the time that there is for a step: where others needed the place, it may have had less.
    pub fn note_late(&self) {
        if !self.connection.deadline.is_dismissed() {
            self.connection.stream.set_late();
        }
    }

    /// All of the request's body was read, or it has none.
    pub fn is_read(&self) -> bool {
        self.body.is_done()
    }

    /// How a body of this length, if it is known, is delimited for this client.
    pub fn framing(&self, status: u16, length: Option<u64>) -> Framing {
        match (length, self.version) {
            _ if matches!(status, 204 | 304) => Framing::None,
            (Some(bytes), _) => Framing::Length(bytes),
            (None, Version::Http11) => Framing::Chunked,
            (None, Version::Http10) => Framing::UntilClose,
        }
    }

    /// How a body that comes like this is delimited for this client.
    pub fn framing_of(&self, status: u16, body: BodyFraming) -> Framing {
        match body {
            BodyFraming::None => Framing::None,
            BodyFraming::Length(bytes) => self.framing(status, Some(bytes)),
            BodyFraming::Chunked | BodyFraming::UntilClose => self.framing(status, None),
        }
    }

    /// Appends the fields of this connection, and the empty line that ends the head. A connection ends with a response whose
    /// request was not read to its end.
    pub fn append_framing(&mut self, out: &mut Vec<u8>, framing: Framing) {
        self.append_framing_with(out, b"", framing);
    }

    /// The same, with these names of fields in `Connection`: the members of a list, or nothing.
    pub fn append_framing_with(&mut self, out: &mut Vec<u8>, named: &[u8], framing: Framing) {
        self.persists &= !self.leaves_unread;
        match framing {
            Framing::None => {}
            Framing::Described(bytes) | Framing::Length(bytes) => {
                fields::append_number(out, "Content-Length", bytes);
            }
            Framing::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
            Framing::UntilClose => self.persists = false,
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

    /// Responds to a request that may not be passed on (RFC 9110, 7.6.2). A trace would only show what the client has just sent.
    pub async fn respond_as_last(&mut self, method: &str) -> io::Result<u16> {
        if !self.is_read() {
            self.give_up();
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
        self.append_framing(&mut head, Framing::Length(text.len() as u64));
        self.write(&[&head, if is_head { &[] } else { text.as_bytes() }]).await
    }

    /// Writes parts, in as few steps as the connection takes.
    pub fn write(&mut self, parts: &[&[u8]]) -> impl Future<Output = io::Result<()>> {
        self.connection.write_all(parts.iter().copied(), self.limits.write)
    }

    /// Writes parts and the chunks behind them, in as few steps as the connection takes.
    pub fn write_with<'p>(
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
        framing: Framing,
        is_last: bool,
    ) -> io::Result<()> {
        if framing != Framing::Chunked {
            return self.write_with(head, chunks).await;
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

    /// The body broke off after its head was sent. The client must see that, so the connection ends: where that would look like
    /// the end of the body, it is reset.
    pub fn break_off(&self, framing: Framing) -> io::Error {
        if framing == Framing::UntilClose {
            self.connection.stream.reset_on_close();
        }
        io::Error::new(io::ErrorKind::UnexpectedEof, "the body of the response broke off")
    }
}

#[cfg(test)]
mod tests;
