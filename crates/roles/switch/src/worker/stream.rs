//! What a connection lies on: a socket in the clear, TLS on a socket, or a stream of HTTP/2.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use assay_net::byte_stream::{ByteStream, LEAST_ROOM};
use assay_net::exchange;
use assay_net::http2::Pipe;
use assay_net::tls::session::Session;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::runtime::{ENDED, READABLE, WRITABLE, may_go_on, spend};
use super::socket::Socket;
use crate::secure::ToServer;

thread_local! {
    /// Room for data that should not come.
    static QUIET: RefCell<Vec<u8>> = RefCell::new(vec![0; LEAST_ROOM]);
}

pub enum Stream {
    Clear(Socket),
    /// With TLS.
    Secured(Box<Secured>),
    /// Requests on a connection of HTTP/2: from a client, one after the other, or one to a server.
    Http2(Pipe),
}

/// TLS on a socket.
pub struct Secured {
    stream: ByteStream<Socket>,
    /// Bytes that were taken, and not told to be: some of their records have not gone to the socket.
    claimed: Option<usize>,
}

impl Stream {
    /// TLS on a client's socket.
    pub fn secured(socket: Socket, session: Session) -> Self {
        Self::Secured(Box::new(Secured { stream: ByteStream::secured(socket, session), claimed: None }))
    }

    /// Connects to a server, and makes the handshake if it speaks TLS.
    pub async fn connect(address: SocketAddr, tls: Option<&ToServer>) -> io::Result<Self> {
        let socket = Socket::connect(address).await?;
        let Some(tls) = tls else { return Ok(Self::Clear(socket)) };
        let session = tls.client.connect(&tls.name, true).map_err(io::Error::other)?;
        let mut secured = Secured { stream: ByteStream::secured(socket, session), claimed: None };
        poll_fn(|cx| secured.poll_open(cx)).await?;
        Ok(Self::Secured(Box::new(secured)))
    }

    /// Both sides have agreed on HTTP/2 (ALPN), or speak in the clear, where nothing is agreed on. To be called once.
    pub fn may_speak_http2(&mut self) -> bool {
        match self {
            Self::Secured(secured) => {
                secured.stream.take_handshake().is_some_and(|handshake| handshake.agreed.is_http2)
            }
            Self::Clear(_) | Self::Http2(_) => true,
        }
    }

    /// What the scheme of an absolute URL must be. Requests of HTTP/2 have none of these.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Secured(_) => "https",
            Self::Clear(_) | Self::Http2(_) => "http",
        }
    }

    /// Writes what there is room for now.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => socket.try_write(bytes),
            Self::Http2(pipe) => pipe.try_write(bytes),
            // Records of which the socket takes a part would wait for a next write, and there may be none.
            Self::Secured(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Writes as much as can go out together with the end of the connection ([`Socket::write_last`]).
    pub fn write_last(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Clear(socket) => socket.write_last(bytes),
            Self::Secured(_) | Self::Http2(_) => Ok(0),
        }
    }

    /// Ready when the other side has gone for certain. Of a socket that the system does not tell of yet, it is known only if the wait is
    /// long enough to be worth it.
    pub fn poll_gone(&self, is_long: bool, cx: &Context<'_>) -> Poll<()> {
        match self {
            Self::Clear(socket) => socket.poll_gone(is_long, cx),
            Self::Secured(secured) => secured.socket().poll_gone(is_long, cx),
            Self::Http2(pipe) => pipe.poll_gone(cx),
        }
    }

    /// Nothing has come, and not the end; what belongs to TLS alone may have.
    pub fn is_quiet(&mut self) -> bool {
        match self {
            Self::Clear(socket) => socket.is_quiet(),
            Self::Secured(secured) => secured.is_quiet(),
            Self::Http2(_) => false,
        }
    }
}

impl Secured {
    fn socket(&self) -> &Socket {
        self.stream.socket()
    }

    /// Nothing can be read for now. Once the end has come, a read always has a result: the next one is tried at once.
    fn has_more(&self) -> bool {
        let has_ended = self.socket().has(ENDED);
        if !has_ended {
            self.socket().clear(READABLE);
        }
        has_ended
    }

    /// Makes the handshake of a client.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.stream.shake_hands() {
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

    /// Gives the socket all that it was not given.
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

    fn poll_read(&mut self, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !may_go_on() {
            return Poll::Pending;
        }
        // The client may wait for the end of the handshake.
        if let Poll::Ready(Err(error)) = self.poll_flush(cx) {
            return Poll::Ready(Err(error));
        }
        while self.socket().has(READABLE) {
            match self.stream.recv_unstamped(room.initialize_unfilled()) {
                Ok(read) => {
                    if !read.more && read.length > 0 {
                        self.has_more();
                    }
                    spend(read.length);
                    room.advance(read.length);
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

    /// Writes, and says so only when the socket has all records of it.
    fn poll_write(&mut self, cx: &Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if !may_go_on() {
            return Poll::Pending;
        }
        while self.claimed.is_none() {
            if !self.socket().has(WRITABLE) {
                return self.socket().wait(cx);
            }
            match self.stream.send_parts(parts) {
                Ok(count) => {
                    spend(count);
                    self.claimed = Some(count);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.socket().clear(WRITABLE),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        match self.poll_flush(cx) {
            Poll::Ready(flushed) => Poll::Ready(flushed.map(|()| self.claimed.take().unwrap_or(0))),
            Poll::Pending => Poll::Pending,
        }
    }

    fn is_quiet(&mut self) -> bool {
        while self.socket().has(READABLE) {
            let read = QUIET.with_borrow_mut(|room| self.stream.recv_unstamped(room));
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

impl exchange::Stream for Stream {
    fn reset_on_close(&self) {
        match self {
            Self::Clear(socket) => socket.reset_on_close(),
            Self::Secured(secured) => {
                secured.stream.break_off();
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
            Self::Secured(secured) => secured.socket().set_slow(is_slow),
            Self::Http2(_) => {}
        }
    }

    fn is_opening(&self) -> bool {
        matches!(self, Self::Secured(secured) if !secured.stream.is_open())
    }

    fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(_))
    }

    fn rest(&mut self) {
        if let Self::Http2(pipe) = self {
            pipe.rest();
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_read(cx, room),
            Self::Secured(secured) => secured.poll_read(cx, room),
            Self::Http2(pipe) => Pin::new(pipe).poll_read(cx, room),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_write(cx, bytes),
            Self::Secured(secured) => secured.poll_write(cx, &[IoSlice::new(bytes)]),
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
            Self::Secured(secured) => secured.poll_write(cx, parts),
            Self::Http2(pipe) => Pin::new(pipe).poll_write_vectored(cx, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Secured(secured) => secured.poll_flush(cx),
            Self::Clear(_) | Self::Http2(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Clear(socket) => Pin::new(socket).poll_shutdown(cx),
            Self::Secured(secured) => {
                if let Poll::Ready(Ok(())) = secured.poll_flush(cx) {
                    secured.stream.say_end();
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
