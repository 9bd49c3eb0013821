//! Asynchronous I/O on a byte stream, over tokio's sockets.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

use super::{ByteRead, ByteStream, MIN_READ_BYTES, Timestamping, TlsState, recv_on, send_on};
use crate::exchange::Transport;

thread_local! {
    /// Room for data that should not come.
    static QUIET: RefCell<Vec<u8>> = RefCell::new(vec![0; MIN_READ_BYTES]);
}

impl ByteStream<TcpStream> {
    /// Reads once, as soon as there is something. If there is no more now, tokio's readiness is cleared, which saves the call that would
    /// find nothing.
    pub fn poll_recv(&mut self, context: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<ByteRead>> {
        self.poll_recv_when(context, into, Timestamping::Told)
    }

    #[inline]
    fn poll_recv_when(
        &mut self,
        context: &mut Context<'_>,
        into: &mut [u8],
        when: Timestamping,
    ) -> Poll<io::Result<ByteRead>> {
        let Self { socket, tls } = self;
        loop {
            if let Some(tls) = tls
                && !tls.unsent.is_empty()
            {
                // What cannot be sent yet does not keep anything from being read.
                let _ = poll_flush(socket, tls, context)?;
            }
            if let Some(tls) = tls
                && !tls.early.is_empty()
            {
                return Poll::Ready(Ok(tls.take_early(into)));
            }
            ready!(socket.poll_read_ready(context))?;
            let mut last = None;
            let read = socket.try_io(Interest::READABLE, || {
                let read = recv_on(socket, tls, into, when)?;
                if read.more || read.length == 0 {
                    return Ok(read);
                }
                last = Some(read);
                Err(io::ErrorKind::WouldBlock.into())
            });
            match (read, last) {
                (_, Some(read)) => return Poll::Ready(Ok(read)),
                (Err(error), None) if error.kind() == io::ErrorKind::WouldBlock => {}
                (read, None) => return Poll::Ready(read),
            }
        }
    }

    /// Writes as much as the stream takes now; 0: it would have to wait.
    #[inline]
    pub fn try_send_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let Self { socket, tls } = self;
        match socket.try_io(Interest::WRITABLE, || send_on(socket, tls, parts)) {
            Ok(0) => Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            written => written,
        }
    }

    /// Writes what the socket takes at once. With TLS that is nothing: records of which the socket takes a part would wait for a
    /// next write, and there may be none.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.tls {
            None => self.socket.try_write(bytes),
            Some(_) => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Whether an idle stream can carry another request: data or an end make it useless. What belongs to TLS alone may come.
    pub fn is_reusable(&mut self) -> bool {
        let Self { socket, tls } = self;
        let read = match tls {
            None => socket.try_read(&mut [0]).map(drop),
            Some(tls) if !tls.early.is_empty() => Ok(()),
            Some(tls) => QUIET.with_borrow_mut(|buffer| {
                socket.try_io(Interest::READABLE, || tls.recv(socket, buffer, Timestamping::Untold)).map(drop)
            }),
        };
        matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Waits until all records are with the socket.
    pub async fn flush_all(&mut self) -> io::Result<()> {
        let Self { socket, tls: Some(tls) } = self else { return Ok(()) };
        std::future::poll_fn(|context| poll_flush(socket, tls, context)).await
    }

    /// Waits until the handshake of a client is over.
    pub async fn wait_open(&mut self) -> io::Result<()> {
        let Self { socket, tls: Some(tls) } = self else { return Ok(()) };
        loop {
            match socket.try_io(Interest::READABLE, || tls.handshake(socket)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                ended => return ended,
            }
            // The first bytes are sent without having read any.
            match tls.handshake(socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                ended => return ended,
            }
            let interest = match tls.unsent.is_empty() {
                true => Interest::READABLE,
                false => Interest::READABLE | Interest::WRITABLE,
            };
            socket.ready(interest).await?;
        }
    }
}

fn poll_flush(socket: &TcpStream, tls: &mut TlsState, context: &mut Context<'_>) -> Poll<io::Result<()>> {
    while !tls.unsent.is_empty() {
        ready!(socket.poll_write_ready(context))?;
        match socket.try_io(Interest::WRITABLE, || tls.flush(socket)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return Poll::Ready(done),
        }
    }
    Poll::Ready(Ok(()))
}

impl AsyncRead for ByteStream<TcpStream> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.tls.is_none() {
            return Pin::new(&mut this.socket).poll_read(context, buffer);
        }
        if buffer.remaining() < MIN_READ_BYTES {
            let why = "a read needs room for a record of TLS";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let read = ready!(this.poll_recv_when(context, buffer.initialize_unfilled(), Timestamping::Untold))?;
        buffer.advance(read.length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ByteStream<TcpStream> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match this.tls {
            None => Pin::new(&mut this.socket).poll_write(context, bytes),
            Some(_) => this.poll_seal(context, &[IoSlice::new(bytes)]),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        match this.tls {
            None => Pin::new(&mut this.socket).poll_write_vectored(context, parts),
            Some(_) => this.poll_seal(context, parts),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self { socket, tls: Some(tls) } => poll_flush(socket, tls, context),
            Self { tls: None, .. } => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(tls) = &mut this.tls {
            ready!(poll_flush(&this.socket, tls, context))?;
            tls.send_close_notify(&this.socket);
        }
        Pin::new(&mut this.socket).poll_shutdown(context)
    }
}

impl ByteStream<TcpStream> {
    /// Writes, and reports it only when the socket has what was accepted before: whoever writes all and then closes loses nothing but what
    /// the last write took.
    fn poll_seal(&mut self, context: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let Self { socket, tls: Some(tls) } = self else { return Poll::Ready(Ok(0)) };
        let written = match tls.accepted.take() {
            Some(written) => written,
            None => loop {
                ready!(socket.poll_write_ready(context))?;
                match socket.try_io(Interest::WRITABLE, || tls.send(socket, parts)) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    written => break written?,
                }
            },
        };
        match poll_flush(socket, tls, context) {
            Poll::Ready(flushed) => Poll::Ready(flushed.map(|()| written)),
            Poll::Pending => {
                // Polled again with the same bytes, it says how many of them are written.
                tls.accepted = Some(written);
                Poll::Pending
            }
        }
    }
}

impl Transport for ByteStream<TcpStream> {
    fn reset_on_close(&self) {
        self.abort();
        self.socket.reset_on_close();
    }

    async fn wait_disconnected(&self) {
        self.socket.wait_disconnected().await;
    }
}
