//! A byte stream: TCP in the clear, or TLS on it.
//!
//! Callers need not know which of the two it is. It never waits: an operation that would have to ends with `WouldBlock`, as on the socket
//! itself. In the clear, each operation is the system call and one comparison; with TLS, records pass through buffers that all connections
//! of a thread share, and a connection that is idle holds none.
//!
//! # TLS
//!
//! *TLS.* `net::byte_stream::ByteStream` is one type for robots, origins, the built-in proxy and connections to servers. It never waits; an
//! operation that would wait returns `WouldBlock`, and `ByteRead::more` states whether the socket may have more. A client makes its handshake with
//! `handshake`, a server while it reads. `send_close_notify` (also when the stream is dropped) sends `close_notify`, unless `abort` was called; an
//! end without it is an error for the reader. `lab::tls` makes authority and certificates, removes keys, and refuses what a target cannot
//! do.
//!
//! *Does not:* wait for sockets ([`crate::sockets`] and tokio do), or know what the bytes mean.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd};

use crate::tls::error::{TlsError, TlsErrorKind};
use crate::tls::session::{MAX_KEPT_BYTES, NegotiatedParameters, Session, sealed_bytes};
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use crate::rx_timestamps::{RxTimestamp, recv, recv_unstamped};
use assay_base::clock::monotonic_ns;

/// Upper bound on plain text in one operation, and on records in one read, in bytes.
const MAX_OPERATION_BYTES: usize = 64 * 1024;
/// Records of a handshake up to this size wait to be sent together with the first data.
const COALESCED_BYTES: usize = 8 * 1024;

/// Smallest buffer for [`ByteStream::recv`]: a whole record must fit.
pub const MIN_READ_BYTES: usize = 2 * MAX_KEPT_BYTES;

thread_local! {
    /// Records as they come.
    static INCOMING: RefCell<Box<[u8]>> = RefCell::new(vec![0; MAX_OPERATION_BYTES].into_boxed_slice());
    /// Room for records to send, which is not cleared in between.
    static OUTGOING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Room for what comes together with the end of a handshake.
    static EARLY: RefCell<Box<[u8]>> = RefCell::new(vec![0; MAX_OPERATION_BYTES + MIN_READ_BYTES].into_boxed_slice());
    /// Plain text that is gathered before it is sealed.
    static GATHERED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A socket, of whatever library.
pub trait Descriptor: AsFd + AsRawFd {}

impl<T: AsFd + AsRawFd> Descriptor for T {}

/// A byte stream on a socket.
#[derive(Debug)]
pub struct ByteStream<T: Descriptor> {
    socket: T,
    /// None: in the clear.
    tls: Option<Box<TlsState>>,
}

/// Result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRead {
    /// Bytes; none: the other side sends no more.
    pub length: usize,
    /// Receive timestamp; none: the kernel gave none, or was not asked to.
    pub received: RxTimestamp,
    /// There may be more now. If not, the socket tells when there is.
    pub more: bool,
}

/// A handshake that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    pub negotiated: NegotiatedParameters,
    /// Start: the connection was made, or accepted.
    pub begun_ns: u64,
    /// End: data can be sent from now on.
    pub ended_ns: u64,
}

/// TLS on a socket: its session and the buffers of records.
#[derive(Debug)]
struct TlsState {
    session: Session,
    /// Records that the socket would not take yet.
    unsent: Vec<u8>,
    /// Data that came together with the end of the handshake, and that nobody has read yet: a server of HTTP/2 sends its settings at once
    /// (RFC 9113, section 3.4).
    early: Vec<u8>,
    /// Bytes that a write has accepted without reporting it yet: some of their records have not gone to the socket.
    accepted: Option<usize>,
    begun_ns: u64,
    /// None: the handshake goes on.
    ended_ns: Option<u64>,
    /// The handshake was taken by [`ByteStream::take_handshake`].
    is_reported: bool,
    /// The stream ends without `close_notify`.
    is_aborted: Cell<bool>,
}

impl<T: Descriptor> ByteStream<T> {
    /// TCP in the clear.
    #[inline]
    pub fn cleartext(socket: T) -> Self {
        Self { socket, tls: None }
    }

    /// TLS on a socket that is connected, or is being connected.
    pub fn over_tls(socket: T, session: Session) -> Self {
        let mut stream = Self::cleartext(socket);
        stream.start_tls(session);
        stream
    }

    /// Starts TLS on a stream in the clear: a tunnel.
    pub fn start_tls(&mut self, session: Session) {
        let secured = TlsState {
            session,
            unsent: Vec::new(),
            early: Vec::new(),
            accepted: None,
            begun_ns: monotonic_ns(),
            ended_ns: None,
            is_reported: false,
            is_aborted: Cell::new(false),
        };
        self.tls = Some(Box::new(secured));
    }

    /// Starts TLS where the other side has begun already: `early` is what it has sent.
    pub fn start_tls_begun(&mut self, session: Session, early: &[u8]) -> io::Result<()> {
        self.start_tls(session);
        let Self { socket, tls: Some(tls) } = self else { return Ok(()) };
        let mut is_data = false;
        let result = tls.session.receive(&mut early.to_vec(), &mut |_| is_data = true, &mut tls.unsent);
        // An alert says what was wrong with it.
        let _ = tls.flush(socket);
        result.and_then(|()| if is_data { Err(too_early()) } else { Ok(()) }).map_err(failed)
    }

    /// TLS if there is a session, else in the clear.
    pub fn new(socket: T, session: Option<Session>) -> Self {
        match session {
            None => Self::cleartext(socket),
            Some(session) => Self::over_tls(socket, session),
        }
    }

    #[inline]
    pub fn socket(&self) -> &T {
        &self.socket
    }

    #[inline]
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Data can be sent: there is no handshake, or it is over.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| tls.ended_ns.is_some())
    }

    /// Begins the handshake of a client, or goes on with it. Its first bytes are sent with the first data that are.
    pub fn handshake(&mut self) -> io::Result<()> {
        let Self { socket, tls: Some(tls) } = self else { return Ok(()) };
        tls.handshake(socket)
    }

    /// The handshake, once: after it is over.
    pub fn take_handshake(&mut self) -> Option<Handshake> {
        let tls = self.tls.as_mut()?;
        let ended_ns = tls.ended_ns.filter(|_| !tls.is_reported)?;
        tls.is_reported = true;
        Some(Handshake { negotiated: tls.session.negotiated()?, begun_ns: tls.begun_ns, ended_ns })
    }

    /// Reads once, into at least [`MIN_READ_BYTES`] bytes. A server makes the handshake while it reads.
    #[inline]
    pub fn recv(&mut self, into: &mut [u8]) -> io::Result<ByteRead> {
        let Self { socket, tls } = self;
        recv_on(socket, tls, into, Timestamping::Told)
    }

    /// Reads like [`Self::recv`], without a receive timestamp: a cheaper call.
    #[inline]
    pub fn recv_unstamped(&mut self, into: &mut [u8]) -> io::Result<ByteRead> {
        let Self { socket, tls } = self;
        recv_on(socket, tls, into, Timestamping::Untold)
    }

    /// Writes as much as the stream takes, and returns the count. Before the handshake is over it takes nothing.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Self { socket, tls } = self;
        match tls {
            None => Ok(send(socket, bytes, SendFlags::NOSIGNAL)?),
            Some(tls) => tls.send(socket, &[IoSlice::new(bytes)]),
        }
    }

    /// Writes several parts like [`Self::send`].
    #[inline]
    pub fn send_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let Self { socket, tls } = self;
        send_on(socket, tls, parts)
    }

    /// Records of accepted data have not been given to the socket yet.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.unsent.is_empty())
    }

    /// Sends records that the socket had no room for.
    #[inline]
    pub fn flush(&mut self) -> io::Result<()> {
        let Self { socket, tls: Some(tls) } = self else { return Ok(()) };
        tls.flush(socket)
    }

    /// The other side has sent `close_notify`, which only reading tells: the socket may not become ready for it.
    #[inline]
    pub fn has_received_close(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.session.is_closed())
    }

    /// Sends `close_notify`, as far as that can be done at once.
    pub fn send_close_notify(&mut self) {
        let Self { socket, tls: Some(tls) } = self else { return };
        tls.send_close_notify(socket);
    }

    /// Makes the end of the stream visible as premature: no `close_notify` is sent.
    pub fn abort(&self) {
        if let Some(tls) = &self.tls {
            tls.is_aborted.set(true);
        }
    }
}

impl<T: Descriptor> Drop for ByteStream<T> {
    #[inline]
    fn drop(&mut self) {
        if self.tls.is_some() {
            self.send_close_notify();
        }
    }
}

/// The TLS error within an error of a stream; none: it is the socket's.
pub fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref()
}

fn before_a_request() -> TlsError {
    TlsError::new(TlsErrorKind::Failed, "the server sent data before it had a request")
}

/// Data came where none may: before the handshake is over, or more than records can carry.
fn too_early() -> TlsError {
    TlsError::new(TlsErrorKind::Failed, "data came before the handshake was over")
}

fn failed(error: TlsError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Whether a read takes the kernel's receive timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timestamping {
    Told,
    Untold,
}

#[inline]
fn recv_on(
    socket: &impl Descriptor,
    tls: &mut Option<Box<TlsState>>,
    into: &mut [u8],
    when: Timestamping,
) -> io::Result<ByteRead> {
    match tls {
        None => {
            let (length, received) = recv_now(socket, into, when)?;
            Ok(ByteRead { length, received, more: length == into.len() })
        }
        Some(tls) => tls.recv(socket, into, when),
    }
}

#[inline]
fn recv_now(
    socket: &impl Descriptor,
    into: &mut [u8],
    when: Timestamping,
) -> io::Result<(usize, RxTimestamp)> {
    match when {
        Timestamping::Told => recv(socket, into),
        Timestamping::Untold => Ok((recv_unstamped(socket, into)?, None)),
    }
}

#[inline]
fn send_on(
    socket: &impl Descriptor,
    tls: &mut Option<Box<TlsState>>,
    parts: &[IoSlice<'_>],
) -> io::Result<usize> {
    match (tls, parts) {
        (None, [one]) => Ok(send(socket, one, SendFlags::NOSIGNAL)?),
        (None, all) => Ok(sendmsg(socket, all, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?),
        (Some(tls), parts) => tls.send(socket, parts),
    }
}

impl TlsState {
    fn handshake(&mut self, socket: &impl Descriptor) -> io::Result<()> {
        if self.ended_ns.is_none() && self.unsent.is_empty() {
            self.session.begin(&mut self.unsent).map_err(failed)?;
        }
        self.flush(socket)?;
        while self.ended_ns.is_none() {
            let (read, length) = EARLY.with_borrow_mut(|buffer| {
                let (read, length) = self.read(socket, MAX_OPERATION_BYTES, buffer, Timestamping::Untold)?;
                self.early.extend_from_slice(&buffer[..read.length]);
                Ok::<_, io::Error>((read, length))
            })?;
            if length == 0 {
                return Err(failed(TlsError::truncated(true)));
            }
            if self.ended_ns.is_none() {
                self.flush(socket)?;
                if !read.more {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
            }
        }
        // A server of HTTP/1.1 has nothing to send yet: it would be taken for the response to the first request.
        let is_http2 = self.session.negotiated().is_some_and(|negotiated| negotiated.is_http2);
        if self.early.is_empty() || is_http2 { Ok(()) } else { Err(failed(before_a_request())) }
    }

    #[cold]
    fn over(&self) -> io::Result<ByteRead> {
        Ok(ByteRead { length: 0, received: None, more: false })
    }

    fn recv(
        &mut self,
        socket: &impl Descriptor,
        into: &mut [u8],
        when: Timestamping,
    ) -> io::Result<ByteRead> {
        if !self.unsent.is_empty() {
            // The other side may wait for it: the end of the handshake, where no data went with it.
            let _ = self.flush(socket);
        }
        if !self.early.is_empty() {
            return Ok(self.take_early(into));
        }
        loop {
            if self.session.is_closed() {
                return self.over();
            }
            let most = into.len().saturating_sub(self.session.kept_bytes()).min(MAX_OPERATION_BYTES);
            if most == 0 {
                return Err(io::Error::new(io::ErrorKind::InvalidInput, "no room for a record of TLS"));
            }
            let (read, length) = self.read(socket, most, into, when)?;
            if length == 0 {
                self.session.end().map_err(failed)?;
                return self.over();
            }
            if read.length > 0 {
                return Ok(read);
            }
            if !read.more {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    #[cold]
    fn take_early(&mut self, into: &mut [u8]) -> ByteRead {
        let length = self.early.len().min(into.len());
        into[..length].copy_from_slice(&self.early[..length]);
        self.early.drain(..length);
        // The socket does not tell of what was read from it before.
        ByteRead { length, received: None, more: true }
    }

    /// Reads at most `most` bytes of records, and decrypts them into `into`. Returns the read and the bytes that came from the socket.
    fn read(
        &mut self,
        socket: &impl Descriptor,
        most: usize,
        into: &mut [u8],
        when: Timestamping,
    ) -> io::Result<(ByteRead, usize)> {
        let was_open = self.session.is_open();
        let (length, count, received, result) = INCOMING.with_borrow_mut(|incoming| {
            let (count, received) = recv_now(socket, &mut incoming[..most], when)?;
            let mut length = 0;
            let mut fits = true;
            let mut plain = |plain: &[u8]| match into.get_mut(length..length + plain.len()) {
                Some(buffer) => {
                    buffer.copy_from_slice(plain);
                    length += plain.len();
                }
                None => fits = false,
            };
            let result = self.session.receive(&mut incoming[..count], &mut plain, &mut self.unsent);
            // There is room for all that records can carry, except where nothing may come yet.
            let result = result.and_then(|()| if fits { Ok(()) } else { Err(too_early()) });
            Ok::<_, io::Error>((length, count, received, result))
        })?;
        if !was_open && (self.session.is_open() || self.session.is_closed()) && self.ended_ns.is_none() {
            self.ended_ns = Some(monotonic_ns());
        } else if !self.unsent.is_empty() {
            // Tickets, acknowledgements of new keys, alerts: if the socket has no room, they go with what is sent next.
            let _ = self.flush(socket);
        }
        result.map_err(failed)?;
        let more = count == most || self.session.is_closed();
        Ok((ByteRead { length, received, more }, count))
    }

    fn send(&mut self, socket: &impl Descriptor, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.ended_ns.is_none() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.unsent.len() > COALESCED_BYTES {
            self.flush(socket)?;
        }
        match parts {
            [] => Ok(0),
            [first, rest @ ..] if first.len() >= MAX_OPERATION_BYTES || rest.is_empty() => {
                self.seal(socket, &first[..first.len().min(MAX_OPERATION_BYTES)])
            }
            parts => GATHERED.with_borrow_mut(|gathered| {
                gathered.clear();
                for part in parts {
                    let remaining = MAX_OPERATION_BYTES - gathered.len();
                    gathered.extend_from_slice(&part[..part.len().min(remaining)]);
                }
                self.seal(socket, gathered)
            }),
        }
    }

    /// Seals bytes and gives the socket as much of the records as it takes.
    fn seal(&mut self, socket: &impl Descriptor, plain: &[u8]) -> io::Result<usize> {
        OUTGOING.with_borrow_mut(|buffer| {
            let most = sealed_bytes(plain.len());
            if buffer.len() < most {
                buffer.resize(most, 0);
            }
            let sealed = self.session.seal_into(plain, buffer, &mut self.unsent).map_err(failed)?;
            if self.unsent.is_empty() {
                self.give(socket, &buffer[..sealed])?;
            } else {
                let mut out = std::mem::take(&mut self.unsent);
                out.extend_from_slice(&buffer[..sealed]);
                self.give(socket, &out)?;
            }
            Ok(plain.len())
        })
    }

    /// Sends records, and keeps those that the socket does not take.
    fn give(&mut self, socket: &impl Descriptor, out: &[u8]) -> io::Result<()> {
        let sent = match send(socket, out, SendFlags::NOSIGNAL) {
            Ok(sent) => sent,
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => 0,
            Err(error) => return Err(error.into()),
        };
        self.unsent.extend_from_slice(&out[sent..]);
        Ok(())
    }

    fn flush(&mut self, socket: &impl Descriptor) -> io::Result<()> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let out = std::mem::take(&mut self.unsent);
        self.give(socket, &out)?;
        if self.unsent.is_empty() { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
    }

    fn send_close_notify(&mut self, socket: &impl Descriptor) {
        // Said once; and not in the middle of something.
        if self.is_aborted.replace(true) || self.ended_ns.is_none() || !self.unsent.is_empty() {
            return;
        }
        self.session.close(&mut self.unsent);
        // The other side may be gone; then nobody waits for it.
        let _ = self.flush(socket);
    }
}

mod async_io;
#[cfg(test)]
mod tests;
