//! Transports of a connection: a socket in the clear, TLS on a socket, or an HTTP/2 stream.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use assay_net::byte_stream::{ByteStream, MIN_READ_BYTES};
use assay_net::exchange;
use assay_net::http2::Pipe;
use assay_net::tls::session::Session;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::runtime::{ENDED, READABLE, WRITABLE, consume_budget, has_budget};
use super::socket::Socket;
use crate::tls::UpstreamTls;

thread_local! {
    /// Buffer for data that should not arrive.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; MIN_READ_BYTES]);
}

pub enum Transport {
    Clear(Socket),
    Tls(Box<TlsTransport>),
    /// HTTP/2: from a client, one request after the other; to a server, one request.
    Http2(Pipe),
}

/// TLS on a socket.
pub struct TlsTransport {
    stream: ByteStream<Socket>,
    /// Plaintext bytes whose records are not all written to the socket yet; the write is not reported before.
    unflushed: Option<usize>,
}

impl Transport {
    /// TLS on a client's socket.
    pub fn tls(socket: Socket, session: Session) -> Self {
        Self::Tls(Box::new(TlsTransport { stream: ByteStream::over_tls(socket, session), unflushed: None }))
    }

    /// Connects to a server, with a TLS handshake if required.
    pub async fn connect(address: SocketAddr, tls: Option<&UpstreamTls>) -> io::Result<Self> {
        let socket = Socket::connect(address).await?;
        let Some(tls) = tls else { return Ok(Self::Clear(socket)) };
        let session = tls.client.connect(&tls.name, true).map_err(io::Error::other)?;
        let mut secured = TlsTransport { stream: ByteStream::over_tls(socket, session), unflushed: None };
        poll_fn(|cx| secured.poll_open(cx)).await?;
        Ok(Self::Tls(Box::new(secured)))
    }

    /// Whether HTTP/2 was negotiated (ALPN), or the connection is in the clear, where nothing is negotiated. To be called once.
    pub fn may_speak_http2(&mut self) -> bool {
        match self {
            Self::Tls(secured) => {
                secured.stream.take_handshake().is_some_and(|handshake| handshake.negotiated.is_http2)
            }
            Self::Clear(_) | Self::Http2(_) => true,
        }
    }

    /// Scheme that an absolute URL must have. HTTP/2 requests have none of these.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Tls(_) => "https",
            Self::Clear(_) | Self::Http2(_) => "http",
        }
    }

    /// Writes without waiting.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => socket.try_write(bytes),
            Self::Http2(pipe) => pipe.try_write(bytes),
            // A partly written record would have to wait for a next write, and there may be none.
            Self::Tls(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Writes as much as can go out together with the end of the connection ([`Socket::write_last`]).
    pub fn write_last(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => socket.write_last(bytes),
            Self::Tls(_) | Self::Http2(_) => Ok(0),
        }
    }

    /// Ready when the peer has certainly gone. A socket that is not registered yet is only registered if the wait `is_long`.
    pub fn poll_gone(&self, is_long: bool, cx: &Context<'_>) -> Poll<()> {
        match self {
            Self::Clear(socket) => socket.poll_gone(is_long, cx),
            Self::Tls(secured) => secured.socket().poll_gone(is_long, cx),
            Self::Http2(pipe) => pipe.poll_gone(cx),
        }
    }

    /// Whether no data and no end have arrived; TLS records without data may have.
    pub fn is_quiet(&mut self) -> bool {
        match self {
            Self::Clear(socket) => socket.is_quiet(),
            Self::Tls(secured) => secured.is_quiet(),
            Self::Http2(_) => false,
        }
    }
}

impl TlsTransport {
    fn socket(&self) -> &Socket {
        self.stream.socket()
    }

    /// Whether another read has a result although nothing is readable for now: after an end it always does.
    fn has_more(&self) -> bool {
        let has_ended = self.socket().has(ENDED);
        if !has_ended {
            self.socket().clear(READABLE);
        }
        has_ended
    }

    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.stream.handshake() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.stream.has_unsent() {
                        self.socket().clear(WRITABLE);
                    }
                    if !self.has_more() {
                        return self.socket().wait(cx);
                    }
                }
                ended => return Poll::Ready(ended),
            }
        }
    }

    /// Writes all pending records to the socket.
    fn poll_flush(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        while self.stream.has_unsent() {
            if !self.socket().has(WRITABLE) {
                return self.socket().wait(cx);
            }
            match self.stream.flush() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.socket().clear(WRITABLE),
                done => return Poll::Ready(done),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !has_budget() {
            return Poll::Pending;
        }
        // The client may wait for the end of the handshake.
        if let Poll::Ready(Err(error)) = self.poll_flush(cx) {
            return Poll::Ready(Err(error));
        }
        while self.socket().has(READABLE) {
            match self.stream.recv_unstamped(buffer.initialize_unfilled()) {
                Ok(read) => {
                    if !read.more && read.length > 0 {
                        self.has_more();
                    }
                    consume_budget(read.length);
                    buffer.advance(read.length);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.has_more() {
                        break;
                    }
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if self.stream.has_unsent() {
            self.socket().clear(WRITABLE);
        }
        self.socket().wait(cx)
    }

    /// Writes, and completes only when the socket has all records of the data.
    fn poll_write(&mut self, cx: &Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if !has_budget() {
            return Poll::Pending;
        }
        while self.unflushed.is_none() {
            if !self.socket().has(WRITABLE) {
                return self.socket().wait(cx);
            }
            match self.stream.send_parts(parts) {
                Ok(count) => {
                    consume_budget(count);
                    self.unflushed = Some(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.socket().clear(WRITABLE),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        match self.poll_flush(cx) {
            Poll::Ready(flushed) => Poll::Ready(flushed.map(|()| self.unflushed.take().unwrap_or(0))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_quiet(&mut self) -> bool {
        while self.socket().has(READABLE) {
            let read = SCRATCH.with_borrow_mut(|buffer| self.stream.recv_unstamped(buffer));
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.has_more() {
                        return false;
                    }
                }
                _ => return false,
            }
        }
        true
    }
}

impl exchange::Transport for Transport {
    fn reset_on_close(&self) {
        match self {
            Self::Clear(socket) => socket.reset_on_close(),
            Self::Tls(secured) => {
                secured.stream.abort();
                secured.socket().reset_on_close();
            }
            Self::Http2(pipe) => pipe.reset_on_close(),
        }
    }

    fn set_late(&self) {
        if let Self::Http2(pipe) = self {
            pipe.set_late();
        }
    }

    fn set_slow(&self, is_slow: bool) {
        match self {
            Self::Clear(socket) => socket.set_slow(is_slow),
            Self::Tls(secured) => secured.socket().set_slow(is_slow),
            Self::Http2(_) => {}
        }
    }

    fn is_handshaking(&self) -> bool {
        matches!(self, Self::Tls(secured) if !secured.stream.is_open())
    }

    fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    fn begin_idle(&mut self) {
        if let Self::Http2(pipe) = self {
            pipe.begin_idle();
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_read(cx, buffer),
            Self::Tls(secured) => secured.poll_read(cx, buffer),
            Self::Http2(pipe) => Pin::new(pipe).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Tls(secured) => secured.poll_write(cx, &[IoSlice::new(bytes)]),
            Self::Http2(pipe) => Pin::new(pipe).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_write_vectored(cx, parts),
            Self::Tls(secured) => secured.poll_write(cx, parts),
            Self::Http2(pipe) => Pin::new(pipe).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tls(secured) => secured.poll_flush(cx),
            Self::Clear(_) | Self::Http2(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Tls(secured) => {
                if let Poll::Ready(Ok(())) = secured.poll_flush(cx) {
                    secured.stream.send_close_notify();
                }
                shutdown(secured.socket())
            }
            Self::Http2(pipe) => Pin::new(pipe).poll_shutdown(cx),
        }
    }
}

fn shutdown(socket: &Socket) -> Poll<io::Result<()>> {
    let ended = rustix::net::shutdown(socket, rustix::net::Shutdown::Write);
    Poll::Ready(ended.map_err(io::Error::from))
}
