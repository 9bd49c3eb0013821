//! Non-blocking sockets that need as few system calls as possible.
//!
//! A socket is registered with epoll only when a task has to wait for it: a connection that brings its request with it, gets its
//! response and closes needs no such call. Registration is edge-triggered, and the known readiness (nothing more to read, no
//! room) saves calls that would return `EAGAIN`.

use std::cell::{Cell, OnceCell};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use assay_net::exchange;
use assay_net::listen::set_socket_options;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, Shutdown, SocketFlags, SocketType, acceptfrom_with, connect, recv,
    send, shutdown, socket_with, sockopt,
};
use rustix::pipe::{SpliceFlags, splice};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::runtime::{
    ENDED, FAILED, READABLE, Registration, WRITABLE, consume_budget, count_accepted, has_budget, polls,
};

const SOCKET_FLAGS: SocketFlags = SocketFlags::NONBLOCK.union(SocketFlags::CLOEXEC);

/// Flags of `splice`: neither side blocks.
const SPLICE_FLAGS: SpliceFlags = SpliceFlags::NONBLOCK.union(SpliceFlags::MOVE);

pub struct Socket {
    /// Readiness while the socket is not registered.
    flags: Cell<u8>,
    registration: OnceCell<Registration>,
    socket: OwnedFd,
}

impl Socket {
    fn new(socket: OwnedFd, flags: u8) -> Self {
        Self { flags: Cell::new(flags), registration: OnceCell::new(), socket }
    }

    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::STREAM, SOCKET_FLAGS, None)?;
        set_socket_options(&socket)?;
        let stream = Self::new(socket, 0);
        let begun = connect(&stream.socket, &address);
        // Registered in any case: the close of an idle connection must be noticed.
        stream.register()?;
        match begun {
            Ok(()) => stream.set(WRITABLE),
            Err(Errno::INPROGRESS) => {
                poll_fn(|cx| if stream.has(WRITABLE) { Poll::Ready(Ok(())) } else { stream.wait(cx) })
                    .await?;
                // A connection that was established has no error to fetch.
                if stream.has(ENDED) {
                    sockopt::socket_error(&stream.socket)??;
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(stream)
    }

    fn flags(&self) -> &Cell<u8> {
        self.registration.get().map_or(&self.flags, |registration| &registration.source.flags)
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags().get() & flag != 0
    }

    fn set(&self, flag: u8) {
        let flags = self.flags();
        flags.set(flags.get() | flag);
    }

    /// Clears a readiness flag: nothing more to read, or no more room.
    pub(super) fn clear(&self, flag: u8) {
        let flags = self.flags();
        flags.set(flags.get() & !flag);
    }

    fn register(&self) -> io::Result<&Registration> {
        if let Some(registration) = self.registration.get() {
            return Ok(registration);
        }
        // Existing readiness is reported at once.
        let registration = Registration::new(self.socket.as_fd(), self.flags.get(), false)?;
        Ok(self.registration.get_or_init(|| registration))
    }

    /// Registers this task to be woken on events.
    pub(super) fn wait<T>(&self, cx: &Context<'_>) -> Poll<io::Result<T>> {
        match self.register() {
            Ok(registration) => {
                registration.source.set_waker(cx);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn read_now(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let size = buffer.len();
        loop {
            match recv(&self.socket, &mut *buffer, RecvFlags::empty()) {
                // A short read: nothing more for now, and epoll reports the next bytes. An end is reported once only, so its flag
                // stays.
                Ok((_, count @ 1..)) => {
                    if count < size && !self.has(ENDED) {
                        self.clear(READABLE);
                    }
                    return Ok(count);
                }
                Ok((_, _)) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(error) => {
                    if error == Errno::AGAIN {
                        self.clear(READABLE);
                    }
                    return Err(error);
                }
            }
        }
    }

    fn write_now(
        &self,
        mut write: impl FnMut(BorrowedFd<'_>) -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        loop {
            match write(self.socket.as_fd()) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.clear(WRITABLE);
                    return Err(Errno::AGAIN);
                }
                other => return other,
            }
        }
    }

    fn poll_write_with(
        &self,
        cx: &Context<'_>,
        mut write: impl FnMut(BorrowedFd<'_>) -> Result<usize, Errno>,
    ) -> Poll<io::Result<usize>> {
        if !has_budget() {
            return Poll::Pending;
        }
        if self.has(WRITABLE) {
            match self.write_now(&mut write) {
                Err(Errno::AGAIN) => {}
                other => {
                    consume_budget(other.unwrap_or(0));
                    return Poll::Ready(other.map_err(io::Error::from));
                }
            }
        }
        self.wait(cx)
    }

    /// Writes once, as much as there is room for.
    pub fn poll_send(&self, bytes: &[u8], cx: &Context<'_>) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |socket| send(socket, bytes, SendFlags::NOSIGNAL))
    }

    /// Moves received bytes into an empty pipe, in the kernel; 0 at the end of the stream.
    pub fn poll_splice(&self, pipe: &OwnedFd, most: usize, cx: &Context<'_>) -> Poll<Result<usize, Errno>> {
        if !has_budget() {
            return Poll::Pending;
        }
        while self.has(READABLE) {
            match splice(&self.socket, None, pipe, None, most, SPLICE_FLAGS) {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => self.clear(READABLE),
                other => {
                    consume_budget(other.unwrap_or(0));
                    return Poll::Ready(other);
                }
            }
        }
        self.wait::<usize>(cx).map_err(|_| Errno::IO)
    }

    /// Moves bytes from a pipe to the peer, in the kernel; returns how many.
    pub fn poll_splice_from(
        &self,
        pipe: &OwnedFd,
        count: usize,
        cx: &Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |socket| splice(pipe, None, socket, None, count, SPLICE_FLAGS))
    }

    /// Whether a short read was the last: the peer has closed, and a further read would return 0.
    pub fn is_drained(&self) -> bool {
        self.flags().get() & (ENDED | FAILED) == ENDED
    }

    /// Closes the sending side.
    pub fn shut_writing(&self) -> io::Result<()> {
        match shutdown(&self.socket, Shutdown::Write) {
            // The peer has gone meanwhile.
            Ok(()) | Err(Errno::NOTCONN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes without waiting.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        if !self.has(WRITABLE) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.write_now(|socket| send(socket, bytes, SendFlags::NOSIGNAL)).map_err(io::Error::from)
    }

    /// Writes without waiting, as the last thing before the socket is dropped: data and FIN go out in one packet instead of two.
    /// Only for a peer that sends nothing more: unread input would turn the close into a reset, which discards the data.
    pub fn write_last(&self, bytes: &[u8]) -> io::Result<usize> {
        if !self.has(WRITABLE) {
            return Ok(0);
        }
        match self.write_now(|socket| send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::MORE)) {
            Err(Errno::AGAIN) => Ok(0),
            other => Ok(other?),
        }
    }

    /// Ready when the connection was reset. Not when the peer only closes its sending side: it may wait for its response. The
    /// reset is only noticed if the socket is registered, which `registers` asks for.
    pub fn poll_gone(&self, registers: bool, cx: &Context<'_>) -> Poll<()> {
        if self.has(FAILED) {
            return Poll::Ready(());
        }
        if registers || self.registration.get().is_some() {
            // Without a registration, the next write notices it.
            let _: Poll<io::Result<()>> = self.wait(cx);
        }
        Poll::Pending
    }

    /// Whether no bytes and no end have arrived. Needs no system call unless something has.
    pub fn is_quiet(&self) -> bool {
        !self.has(READABLE) || matches!(self.read_now(&mut [0]), Err(Errno::AGAIN))
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl exchange::Transport for Socket {
    fn reset_on_close(&self) {
        // Without the option the close is an ordinary one.
        let _ = sockopt::set_socket_linger(&self.socket, Some(Duration::ZERO));
    }

    fn set_slow(&self, is_slow: bool) {
        self.registration.get().inspect(|registration| registration.set_slow(self.socket.as_fd(), is_slow));
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !has_budget() {
            return Poll::Pending;
        }
        if self.has(READABLE) {
            match self.read_now(buffer.initialize_unfilled()) {
                Ok(count) => {
                    consume_budget(count);
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(Errno::AGAIN) => {}
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
        self.wait(cx)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |socket| send(socket, bytes, SendFlags::NOSIGNAL))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(cx, |socket| rustix::io::writev(socket, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(shutdown(&self.socket, Shutdown::Write).map_err(io::Error::from))
    }
}

pub struct WorkerListener {
    registration: Option<Registration>,
    /// Connections arrive so fast that an `accept` that finds none costs less than an event for each.
    is_busy: bool,
    /// Connections accepted since an `accept` found none.
    accepted: u32,
    /// Poll in which the last event arrived.
    notified_poll: u64,
    socket: TcpListener,
}

impl WorkerListener {
    pub fn new(socket: TcpListener) -> Self {
        Self { registration: None, is_busy: false, accepted: 0, notified_poll: 0, socket }
    }

    /// Stops accepting, and deregisters the socket.
    pub fn pause(&mut self) {
        if let Some(registration) = self.registration.take() {
            registration.deregister(self.socket.as_fd());
        }
    }

    /// Accepts a connection that is waiting already.
    pub fn try_accept(&self) -> io::Result<(Socket, SocketAddr)> {
        let (socket, peer) = acceptfrom_with(&self.socket, SOCKET_FLAGS)?;
        let peer = peer.ok_or(Errno::AFNOSUPPORT).and_then(SocketAddr::try_from)?;
        // The request may be here already, so both flags are set. `TCP_NODELAY` is inherited from the listener.
        Ok((Socket::new(socket, READABLE | WRITABLE), peer))
    }

    pub fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(Socket, SocketAddr)>> {
        let source = match &self.registration {
            Some(registration) => &registration.source,
            None => &self.registration.insert(Registration::new(self.socket.as_fd(), 0, true)?).source,
        };
        source.set_waker(cx);
        if source.flags.get() & READABLE == 0 || !has_budget() {
            return Poll::Pending;
        }
        if !self.is_busy {
            // One connection is waiting for certain; level-triggered epoll reports further ones.
            source.flags.set(0);
            self.is_busy = polls() == self.notified_poll + 1;
            (self.notified_poll, self.accepted) = (polls(), 0);
        }
        let accepted = self.try_accept();
        consume_budget(0);
        match &accepted {
            Ok(_) => {
                self.accepted += 1;
                count_accepted();
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.is_busy = self.accepted > 1;
                self.accepted = 0;
                if let Some(registration) = &self.registration {
                    registration.source.flags.set(0);
                }
                return Poll::Pending;
            }
            Err(_) => {}
        }
        Poll::Ready(accepted)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::runtime::{run, set_max_pause, spawn};
    use super::*;

    fn listener() -> (TcpListener, SocketAddr) {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        socket.set_nonblocking(true).expect("a socket");
        let address = socket.local_addr().expect("is bound");
        (socket, address)
    }

    /// Sends back what comes on each connection, until its end.
    async fn echo(mut listener: WorkerListener) {
        loop {
            let (mut stream, _) = poll_fn(|cx| listener.poll_accept(cx)).await.expect("a connection");
            spawn(async move {
                let mut buffer = [0; 3000];
                while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                    stream.write_all(&buffer[..count]).await.expect("is read");
                }
            });
        }
    }

    #[test]
    fn many_connections_are_accepted_and_echoed_whole() {
        let (socket, address) = listener();
        let echoed = run(async move {
            spawn(echo(WorkerListener::new(socket)));
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            let all: Vec<u8> = (0..300_000u32).map(|number| number as u8).collect();
            for _ in 0..20 {
                let (all, sender) = (all.clone(), sender.clone());
                spawn(async move {
                    let stream = Socket::connect(address).await.expect("connects");
                    let (mut from, mut to) = tokio::io::split(stream);
                    let mut back = Vec::new();
                    // In one task, as everywhere: a socket wakes one.
                    let send = async {
                        to.write_all(&all).await.expect("is read");
                        to.shutdown().await.expect("ends");
                    };
                    let (_, read) = tokio::join!(send, from.read_to_end(&mut back));
                    read.expect("comes back");
                    let _ = sender.send(back == all);
                });
            }
            let mut good = 0;
            for _ in 0..20 {
                good += u32::from(receiver.recv().await == Some(true));
            }
            good
        });
        assert_eq!(echoed.expect("runs"), 20);
    }

    #[test]
    fn connections_that_come_and_go_are_all_served_by_a_worker_that_rests() {
        const CLIENTS: usize = 8;
        let (socket, address) = listener();
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let request = move || -> io::Result<Vec<u8>> {
            let mut client = TcpStream::connect(address)?;
            client.write_all(b"question")?;
            client.shutdown(std::net::Shutdown::Write)?;
            let mut all = Vec::new();
            client.read_to_end(&mut all).map(|_| all)
        };
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    (0..40).for_each(|_| assert_eq!(request().expect("a response"), b"question"));
                    sender.send(()).expect("is heard");
                })
            })
            .collect();
        let served = run(async move {
            set_max_pause(Duration::from_micros(50));
            spawn(echo(WorkerListener::new(socket)));
            for _ in 0..CLIENTS {
                receiver.recv().await.expect("a client that was served");
            }
        });
        served.expect("runs");
        clients.into_iter().for_each(|client| client.join().expect("no panic"));
    }

    #[test]
    fn an_idle_connection_is_quiet_until_it_ends() {
        let (socket, address) = listener();
        let seen = run(async move {
            let mut listener = WorkerListener::new(socket);
            let stream = Socket::connect(address).await.expect("connects");
            let (mut peer, _) = poll_fn(|cx| listener.poll_accept(cx)).await.expect("a connection");
            let before = stream.is_quiet();
            peer.write_all(b"x").await.expect("is read");
            drop(peer);
            let mut stream = stream;
            let mut buffer = [0; 10];
            let count = stream.read(&mut buffer).await.expect("a byte");
            // The end has come with it, or comes; a read waits for it.
            let end = stream.read(&mut buffer).await.expect("the end");
            (before, count, end, stream.is_quiet())
        });
        assert_eq!(seen.expect("runs"), (true, 1, 0, false));
    }

    #[test]
    fn the_last_bytes_arrive_with_the_end() {
        let (socket, address) = listener();
        let client = std::thread::spawn(move || {
            let mut client = TcpStream::connect(address).expect("connects");
            client.write_all(b"q").expect("is read");
            let mut all = String::new();
            client.read_to_string(&mut all).map(|_| all)
        });
        let sent = run(async move {
            let mut listener = WorkerListener::new(socket);
            let (mut stream, _) = poll_fn(|cx| listener.poll_accept(cx)).await.expect("a connection");
            let mut buffer = [0; 10];
            let count = stream.read(&mut buffer).await.expect("a byte");
            (count, stream.write_last(b"answer").expect("has room"))
        });
        assert_eq!(sent.expect("runs"), (1, 6));
        assert_eq!(client.join().expect("no panic").expect("a response"), "answer");
    }

    #[test]
    fn a_connection_that_nobody_accepts_is_an_error() {
        let (socket, address) = listener();
        drop(socket);
        let refused = run(Socket::connect(address)).expect("runs");
        assert_eq!(refused.map(drop).map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionRefused));
    }
}
