//! The transport of a connection for roles that speak both versions of HTTP: a socket, or a stream of HTTP/2.

use std::future::Future;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::spawn_local;

use crate::byte_stream::{ByteStream, Handshake};
use crate::connection::{Connection, Resources};
use crate::exchange::{ClientLimits, Exchange, Transport};
use crate::http2::{self, Pipe};

/// Transport of a connection to a client or to a server.
pub enum HttpStream {
    /// A connection of HTTP/1, in the clear or with TLS.
    Socket(ByteStream<TcpStream>),
    /// Requests of HTTP/2 that come one after the other, and where the other side is.
    Http2(Pipe, Option<SocketAddr>),
}

/// Serves a client in the version of HTTP that it begins with, until it ends: `serve` gets its connection, or the requests of HTTP/2 as
/// connections of their own. Errors are the client's own doing, or were reported to it: they are of no further interest.
pub async fn serve_client<F: Future<Output = ()> + 'static>(
    stream: ByteStream<TcpStream>,
    resources: &Rc<Resources>,
    limits: ClientLimits,
    serve: impl FnMut(Exchange<HttpStream>) -> F,
) {
    serve_connection(Connection::new(HttpStream::Socket(stream), resources), limits, serve).await;
}

/// Serves a client like [`serve_client`], on a connection with input that may have been read already.
pub async fn serve_connection<F: Future<Output = ()> + 'static>(
    mut connection: Connection<HttpStream>,
    limits: ClientLimits,
    mut serve: impl FnMut(Exchange<HttpStream>) -> F,
) {
    let peer = connection.stream.address();
    let resources = Rc::clone(connection.resources());
    match http2::has_preface(&mut connection, &limits).await {
        Ok(true) => {
            let start = |pipe| {
                let stream = HttpStream::Http2(pipe, peer);
                spawn_local(serve(Exchange::new(stream, &resources, limits)));
            };
            drop(http2::serve(connection, limits, start).await);
        }
        Ok(false) => serve(Exchange::with_connection(connection, limits)).await,
        // The client has gone, or has said nothing for too long.
        Err(_) => {}
    }
}

impl HttpStream {
    /// Address of the other side; none where the system does not say.
    pub fn peer(&self) -> Option<IpAddr> {
        self.address().map(|address| address.ip())
    }

    fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::Socket(stream) => stream.socket().peer_addr().ok(),
            Self::Http2(_, address) => *address,
        }
    }

    /// Scheme that an absolute URL must have. Requests of HTTP/2 have none of these.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Socket(stream) if stream.is_tls() => "https",
            Self::Socket(_) | Self::Http2(..) => "http",
        }
    }

    /// The connection, if it is one of HTTP/1.
    pub fn socket(&mut self) -> Option<&mut ByteStream<TcpStream>> {
        match self {
            Self::Socket(stream) => Some(stream),
            Self::Http2(..) => None,
        }
    }

    /// The handshake, once: after it is over.
    pub fn take_handshake(&mut self) -> Option<Handshake> {
        self.socket()?.take_handshake()
    }

    /// Something has come, or the end; never on a stream of HTTP/2, which is not waited for without a request.
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Socket(stream) => stream.socket().readable().await,
            Self::Http2(..) => std::future::pending().await,
        }
    }

    /// Whether an idle connection can carry another request. A stream of HTTP/2 has one request only, and is never kept.
    pub fn is_quiet(&mut self) -> bool {
        self.socket().is_some_and(ByteStream::is_reusable)
    }

    /// Writes what there is room for now.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket(stream) => stream.try_write(bytes),
            Self::Http2(pipe, _) => pipe.try_write(bytes),
        }
    }
}

impl Transport for HttpStream {
    fn reset_on_close(&self) {
        match self {
            Self::Socket(stream) => stream.reset_on_close(),
            Self::Http2(pipe, _) => pipe.reset_on_close(),
        }
    }

    fn set_late(&self) {
        if let Self::Http2(pipe, _) = self {
            pipe.set_late();
        }
    }

    fn is_handshaking(&self) -> bool {
        matches!(self, Self::Socket(stream) if !stream.is_open())
    }

    fn is_http2(&self) -> bool {
        matches!(self, Self::Http2(..))
    }

    fn begin_idle(&mut self) {
        if let Self::Http2(pipe, _) = self {
            pipe.begin_idle();
        }
    }

    async fn wait_disconnected(&self) {
        match self {
            Self::Socket(stream) => stream.wait_disconnected().await,
            Self::Http2(pipe, _) => pipe.wait_disconnected().await,
        }
    }
}

impl AsyncRead for HttpStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Http2(pipe, _) => Pin::new(pipe).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for HttpStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Socket(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Http2(pipe, _) => Pin::new(pipe).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Socket(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Self::Http2(pipe, _) => Pin::new(pipe).poll_write_vectored(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(stream) => Pin::new(stream).poll_flush(context),
            Self::Http2(pipe, _) => Pin::new(pipe).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Socket(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Http2(pipe, _) => Pin::new(pipe).poll_shutdown(context),
        }
    }
}
