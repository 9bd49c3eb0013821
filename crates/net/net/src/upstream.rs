//! Connections to servers, and their responses.
//!
//! The server may be an origin, a node of a cluster, another proxy.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use assay_http::chunked::{CHUNK_END, CHUNK_HEAD_BYTES, chunk_head};
use assay_http::head::{HeadError, ResponseHead};
use assay_measurement::response_error::ResponseError;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::tls::error::{TlsError, TlsErrorKind};
use crate::tls::session::Session;

use crate::byte_stream::{ByteStream, tls_error};
use crate::connection::{Connection, Resources};
use crate::http_stream::HttpStream;
use crate::http2::{self, Pipe, UNPROCESSED};
use crate::limits::MAX_INTERIM_RESPONSES;
use crate::listen::set_socket_options;
use crate::pool::ServerSlot;
use assay_base::clock::monotonic_ns;

/// The error of 101 as the response to a request that offers no other protocol.
pub const UNREQUESTED_UPGRADE: HeadError =
    HeadError::Syntax("it changes the protocol, which nobody requested");

/// Failure to get a usable response from a server. The texts go to the client.
#[derive(Debug, Error)]
pub enum UpstreamError {
    #[error("the address of {0} is not known")]
    Unknown(String),
    /// The server has as many connections, or requests over HTTP/2, as it may have.
    #[error("as many requests wait for the server at {0} as may")]
    Full(SocketAddr),
    #[error("the server at {0} could not be reached: {1}")]
    Unreachable(SocketAddr, io::Error),
    #[error("TLS with the server at {0} failed: {1}")]
    Tls(SocketAddr, TlsError),
    #[error("the server at {0} did not respond in time")]
    TimedOut(SocketAddr),
    #[error("the server at {0} closed the connection without a response")]
    Lost(SocketAddr),
    /// The server has certainly not acted on the request, which came as the connection was ending: over HTTP/2, it says so (RFC 9113, 8.7).
    #[error("the server at {0} took no more requests on its connection")]
    Unprocessed(SocketAddr),
    #[error("the server at {0} closed the connection within the head of its response")]
    Cut(SocketAddr),
    /// The response is not HTTP, or makes no sense here.
    #[error("the response of the server at {0} is not usable: {1}")]
    BadResponse(SocketAddr, HeadError),
    /// More than [`MAX_INTERIM_RESPONSES`] interim responses.
    #[error("the server at {0} sent more than {MAX_INTERIM_RESPONSES} interim responses (1xx)")]
    EndlessInterim(SocketAddr),
}

impl UpstreamError {
    /// Status of the response to the client.
    pub fn status(&self) -> u16 {
        match self {
            UpstreamError::TimedOut(_) => 504,
            UpstreamError::Full(_) => 503,
            _ => 502,
        }
    }
}

impl From<UpstreamError> for ResponseError {
    fn from(error: UpstreamError) -> Self {
        match error {
            UpstreamError::Unknown(_) | UpstreamError::Full(_) | UpstreamError::Unreachable(..) => {
                ResponseError::Refused
            }
            UpstreamError::Tls(..) => ResponseError::Tls,
            UpstreamError::TimedOut(_) => ResponseError::TimedOut,
            UpstreamError::Lost(_) | UpstreamError::Unprocessed(_) | UpstreamError::Cut(_) => {
                ResponseError::Reset
            }
            UpstreamError::BadResponse(_, HeadError::TooLong | HeadError::TooManyHeaders)
            | UpstreamError::EndlessInterim(_) => ResponseError::TooLong,
            UpstreamError::BadResponse(..) => ResponseError::Garbage,
        }
    }
}

/// Upper bound on retries of a request that a server has not acted on, on connections that it was just ending.
pub const MAX_RETRIES: u32 = 3;

/// Limits on the time that a server may take.
#[derive(Debug, Clone, Copy)]
pub struct UpstreamTimeouts {
    /// Limit on connecting.
    pub connect: Duration,
    /// Limit on each step of a response.
    pub response: Duration,
}

/// A connection to a server. It is boxed, as each request takes it out of a [`Pool`](crate::pool::Pool) and gives it back.
pub struct Upstream {
    pub address: SocketAddr,
    pub connection: Connection<HttpStream>,
    /// Time of the first byte of the last response (`CLOCK_MONOTONIC`, nanoseconds), where [`Upstream::with_timing`] turned that on.
    pub first_byte_ns: Option<u64>,
    is_timed: bool,
    /// The last head was taken: the next bytes belong to another one.
    is_head_taken: bool,
    /// Interim responses since the last final one.
    interim_responses: u32,
    /// Slot of the server; none: its connections are not bounded.
    pub(crate) slot: Option<ServerSlot>,
}

/// The head of a response, where it lies.
#[derive(Debug, Clone, Copy)]
pub struct ReceivedHead<'i> {
    pub head: ResponseHead<'i>,
    pub bytes: &'i [u8],
    /// Bytes that follow the head.
    pub rest: &'i [u8],
}

impl Upstream {
    fn new(stream: HttpStream, address: SocketAddr, resources: &Rc<Resources>) -> Box<Self> {
        Box::new(Self {
            address,
            connection: Connection::new(stream, resources),
            first_byte_ns: None,
            is_timed: false,
            is_head_taken: false,
            interim_responses: 0,
            slot: None,
        })
    }

    /// One request on a connection of HTTP/2.
    pub(crate) fn from_pipe(pipe: Pipe, address: SocketAddr, resources: &Rc<Resources>) -> Box<Self> {
        Self::new(HttpStream::Http2(pipe, Some(address)), address, resources)
    }

    /// Whether this is one request on a connection of HTTP/2: the server says if it has not acted on it.
    pub fn is_http2(&self) -> bool {
        matches!(self.connection.stream, HttpStream::Http2(..))
    }

    /// Converts a connection on which nothing was sent to one of HTTP/2, with the future that drives it.
    pub(crate) fn into_http2(
        mut self,
    ) -> Result<(http2::Http2Client, impl Future<Output = io::Result<()>>), UpstreamError> {
        let mut is_secured = false;
        if let Some(stream) = self.connection.stream.socket()
            && stream.is_tls()
        {
            is_secured = true;
            if !stream.take_handshake().is_some_and(|handshake| handshake.negotiated.is_http2) {
                let cause = "it does not agree on HTTP/2 (ALPN)";
                let error = TlsError::new(TlsErrorKind::NoCommonParameters, cause);
                return Err(UpstreamError::Tls(self.address, error));
            }
        }
        Ok(http2::Http2Client::new(self.connection, is_secured))
    }

    /// Opens a connection in the clear.
    pub async fn connect(
        address: SocketAddr,
        timeouts: UpstreamTimeouts,
        resources: &Rc<Resources>,
    ) -> Result<Box<Self>, UpstreamError> {
        Self::open(address, None, timeouts, resources).await
    }

    /// Opens a connection, with TLS if there is a session for it.
    pub async fn open(
        address: SocketAddr,
        session: Option<Session>,
        timeouts: UpstreamTimeouts,
        resources: &Rc<Resources>,
    ) -> Result<Box<Self>, UpstreamError> {
        match timeout(timeouts.connect, TcpStream::connect(address)).await {
            Err(_) => Err(UpstreamError::TimedOut(address)),
            Ok(Err(error)) => Err(UpstreamError::Unreachable(address, error)),
            Ok(Ok(stream)) => {
                set_socket_options(&stream).map_err(|error| UpstreamError::Unreachable(address, error))?;
                let is_secured = session.is_some();
                let stream = HttpStream::Socket(ByteStream::new(stream, session));
                let mut upstream = Self::new(stream, address, resources);
                if is_secured {
                    Box::pin(upstream.shake_hands(timeouts)).await?;
                }
                Ok(upstream)
            }
        }
    }

    /// Starts TLS on a connection that leads through a tunnel in the clear.
    pub async fn secure(
        &mut self,
        session: Session,
        timeouts: UpstreamTimeouts,
    ) -> Result<(), UpstreamError> {
        if !self.connection.input.unread().is_empty() {
            let early = "the server sent data before it had a request";
            return Err(UpstreamError::Tls(self.address, TlsError::new(TlsErrorKind::Failed, early)));
        }
        if let Some(stream) = self.connection.stream.socket() {
            stream.start_tls(session);
        }
        Box::pin(self.shake_hands(timeouts)).await
    }

    async fn shake_hands(&mut self, timeouts: UpstreamTimeouts) -> Result<(), UpstreamError> {
        let address = self.address;
        let Some(stream) = self.connection.stream.socket() else { return Ok(()) };
        let open = timeout(timeouts.connect, stream.wait_open()).await;
        let failed = |error: io::Error| {
            let other = || TlsError::new(TlsErrorKind::Failed, error.to_string());
            UpstreamError::Tls(address, tls_error(&error).cloned().unwrap_or_else(other))
        };
        open.map_err(|_| UpstreamError::TimedOut(address))?.map_err(failed)
    }

    /// Records the time of the first byte of each response.
    #[must_use]
    pub fn with_timing(mut self: Box<Self>) -> Box<Self> {
        self.is_timed = true;
        self
    }

    /// Whether an idle connection can carry another request: bytes or an end make it useless.
    pub fn is_quiet(&mut self) -> bool {
        self.connection.stream.is_quiet()
    }

    /// Sends parts of a request.
    pub async fn send(&mut self, parts: &[&[u8]], timeouts: UpstreamTimeouts) -> Result<(), UpstreamError> {
        let sent = self.connection.write_all(parts.iter().copied(), timeouts.response).await;
        sent.map_err(|error| self.error_from(&error))
    }

    /// Sends a part of a request's body, in chunked coding or as it is; the end of the coding is
    /// [`assay_http::chunked::LAST_CHUNK`].
    pub async fn send_part(
        &mut self,
        part: &[u8],
        is_chunked: bool,
        timeouts: UpstreamTimeouts,
    ) -> Result<(), UpstreamError> {
        let mut buffer = [0; CHUNK_HEAD_BYTES];
        let (size, end): (&[u8], &[u8]) =
            if is_chunked { (chunk_head(part.len() as u64, &mut buffer), CHUNK_END) } else { (&[], &[]) };
        self.send(&[size, part, end], timeouts).await
    }

    /// Waits for the first byte of a response.
    pub async fn wait_response(&mut self, limit: Duration) -> Result<(), UpstreamError> {
        if !self.connection.input.unread().is_empty() {
            return Ok(());
        }
        match self.connection.fill(limit).await {
            Ok(0) => Err(UpstreamError::Lost(self.address)),
            Ok(_) => Ok(()),
            Err(error) => Err(self.error_from(&error)),
        }
    }

    /// Waits for the head of a response, interim or final, of which `take` takes what is needed: then it is used up. Nothing is
    /// lost when the future is dropped.
    pub async fn head<T>(
        &mut self,
        limit: Duration,
        take: impl FnOnce(ReceivedHead<'_>) -> T,
    ) -> Result<T, UpstreamError> {
        if std::mem::take(&mut self.is_head_taken) {
            self.first_byte_ns = None;
        }
        loop {
            let unread = self.connection.input.unread();
            if self.is_timed && self.first_byte_ns.is_none() && !unread.is_empty() {
                self.first_byte_ns = Some(monotonic_ns());
            }
            let parsed = if unread.is_empty() { Ok(None) } else { ResponseHead::parse(unread) };
            match parsed {
                Err(error) => return Err(UpstreamError::BadResponse(self.address, error)),
                Ok(Some((head, length))) => {
                    let (bytes, rest) = unread.split_at(length);
                    let is_interim = head.is_interim();
                    let taken = take(ReceivedHead { head, bytes, rest });
                    self.connection.input.consume(length);
                    self.is_head_taken = true;
                    self.interim_responses = if is_interim { self.interim_responses + 1 } else { 0 };
                    if self.interim_responses > MAX_INTERIM_RESPONSES {
                        return Err(UpstreamError::EndlessInterim(self.address));
                    }
                    return Ok(taken);
                }
                Ok(None) => {}
            }
            match self.connection.fill(limit).await {
                Ok(0) if self.connection.input.unread().is_empty() => {
                    return Err(UpstreamError::Lost(self.address));
                }
                Ok(0) => return Err(UpstreamError::Cut(self.address)),
                Ok(_) => {}
                Err(error) => return Err(self.error_from(&error)),
            }
        }
    }

    /// Waits for the head of the final response, as [`Upstream::head`] does, and skips interim ones.
    pub async fn final_head<T>(
        &mut self,
        limit: Duration,
        take: impl FnOnce(ReceivedHead<'_>) -> T,
    ) -> Result<T, UpstreamError> {
        self.final_head_after(limit, |_| (), take).await
    }

    /// Waits for the head of the final response, as [`Upstream::head`] does; `interim` sees those before it. Requests do not offer
    /// another protocol: 101 is an error.
    pub async fn final_head_after<T>(
        &mut self,
        limit: Duration,
        interim: impl Fn(&ResponseHead<'_>),
        take: impl FnOnce(ReceivedHead<'_>) -> T,
    ) -> Result<T, UpstreamError> {
        let mut take = Some(take);
        loop {
            let taken = self.head(limit, |received| match received.head.status {
                101 => Err(UNREQUESTED_UPGRADE),
                _ if received.head.is_interim() => {
                    interim(&received.head);
                    Ok(None)
                }
                _ => Ok(take.take().map(|take| take(received))),
            });
            match taken.await? {
                Ok(Some(taken)) => return Ok(taken),
                Ok(None) => {}
                Err(error) => return Err(UpstreamError::BadResponse(self.address, error)),
            }
        }
    }

    /// Sends a request without a body and waits for the head of the final response.
    pub(crate) async fn attempt<T>(
        &mut self,
        request: &[u8],
        timeouts: UpstreamTimeouts,
        interim: impl Fn(&ResponseHead<'_>),
        take: impl FnOnce(ReceivedHead<'_>) -> T,
    ) -> Result<T, UpstreamError> {
        self.send(&[request], timeouts).await?;
        self.final_head_after(timeouts.response, interim, take).await
    }

    /// Classifies an error of the connection before a response.
    pub fn error_from(&self, error: &io::Error) -> UpstreamError {
        match error.kind() {
            io::ErrorKind::TimedOut => UpstreamError::TimedOut(self.address),
            UNPROCESSED if self.is_http2() => UpstreamError::Unprocessed(self.address),
            // An end without `close_notify` before a response cuts nothing off.
            _ => match tls_error(error).filter(|error| error.kind != TlsErrorKind::Truncated) {
                Some(error) => UpstreamError::Tls(self.address, error.clone()),
                None => UpstreamError::Lost(self.address),
            },
        }
    }
}

/// The address of `host:port`, looked up by the system.
pub async fn resolve(name: &str, timeouts: UpstreamTimeouts) -> Result<SocketAddr, UpstreamError> {
    let addresses = timeout(timeouts.connect, tokio::net::lookup_host(name)).await;
    let first = addresses.ok().and_then(Result::ok).and_then(|mut addresses| addresses.next());
    first.ok_or_else(|| UpstreamError::Unknown(name.to_owned()))
}
