//! A byte stream: TCP in the clear, or TLS on it.
//!
//! What reads and writes through this does not know which of the two it is. It never waits: an operation that would have to ends
//! with `WouldBlock`, as on the socket itself. In the clear, each operation is the system call and one comparison; with TLS, records
//! pass through buffers that all connections of a thread share, and a connection that is idle holds none.
//!
//! # TLS
//!
//! *TLS.* `net::byte_stream::ByteStream` is one type for robots, origins, the built-in proxy and connections to servers. It never waits; an
//! operation that would wait returns `WouldBlock`, and `Read::more` states whether the socket may have more. A client makes its handshake with
//! `shake_hands`, a server while it reads. `say_end` (also when the stream is dropped) sends `close_notify`, unless `break_off` was called; an
//! end without it is an error for the reader. `lab::tls` makes authority and certificates, removes keys, and refuses what a target cannot
//! do.
//!
//! *Does not:* wait for sockets ([`crate::sockets`] and tokio do), or know what the bytes mean.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd};

use crate::tls::error::{TlsError, TlsErrorKind};
use crate::tls::session::{Agreed, MOST_KEPT_BYTES, Session, sealed_bytes};
use rustix::net::{SendAncillaryBuffer, SendFlags, send, sendmsg};

use crate::arrival::{Received, recv, recv_unstamped};
use assay_base::clock::monotonic_ns;

/// Most bytes of plain text that one operation takes, and most bytes of records that one read takes.
const PIECE_BYTES: usize = 64 * 1024;
/// Bytes that wait to be sent with the next ones, instead of being sent first: the end of a handshake.
const SENT_TOGETHER: usize = 8 * 1024;

/// The least room that [`ByteStream::recv`] needs to read a whole record into.
pub const LEAST_ROOM: usize = 2 * MOST_KEPT_BYTES;

thread_local! {
    /// Records as they come.
    static INCOMING: RefCell<Box<[u8]>> = RefCell::new(vec![0; PIECE_BYTES].into_boxed_slice());
    /// Room for records to send, which is not cleared in between.
    static OUTGOING: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    /// Room for what comes together with the end of a handshake.
    static EARLY: RefCell<Box<[u8]>> = RefCell::new(vec![0; PIECE_BYTES + LEAST_ROOM].into_boxed_slice());
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
    tls: Option<Box<Secured>>,
}

/// What a read gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Bytes; none: the other side sends no more.
    pub length: usize,
    /// When the kernel received them; none: it does not tell, or was not to.
    pub received: Received,
    /// There may be more now. If not, the socket tells when there is.
    pub more: bool,
}

/// A handshake that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handshake {
    /// What both sides agreed upon.
    pub agreed: Agreed,
    /// When it began: the connection was made, or accepted.
    pub begun_ns: u64,
    /// When data could be sent.
    pub ended_ns: u64,
}

/// What TLS adds to a socket.
#[derive(Debug)]
struct Secured {
    session: Session,
    /// Records that the socket would not take yet.
    unsent: Vec<u8>,
    /// Data that came together with the end of the handshake, and that nobody has read yet: a server of HTTP/2 sends its settings at once
    /// (RFC 9113, section 3.4).
    early: Vec<u8>,
    /// Bytes that were taken, and not told to be: some records of theirs are among those that were not sent.
    claimed: Option<usize>,
    begun_ns: u64,
    /// None: the handshake goes on.
    ended_ns: Option<u64>,
    /// The handshake was told of.
    is_told: bool,
    /// Closing it shows the other side that something is missing.
    breaks_off: Cell<bool>,
}

impl<T: Descriptor> ByteStream<T> {
    /// TCP in the clear.
    #[inline]
    pub fn clear(socket: T) -> Self {
        Self { socket, tls: None }
    }

    /// TLS on a socket that is connected, or is being connected.
    pub fn secured(socket: T, session: Session) -> Self {
        let mut stream = Self::clear(socket);
        stream.secure(session);
        stream
    }

    /// TLS from now on, on what was in the clear until now: a tunnel.
    pub fn secure(&mut self, session: Session) {
        let secured = Secured {
            session,
            unsent: Vec::new(),
            early: Vec::new(),
            claimed: None,
            begun_ns: monotonic_ns(),
            ended_ns: None,
            is_told: false,
            breaks_off: Cell::new(false),
        };
        self.tls = Some(Box::new(secured));
    }

    /// The same where the other side has begun with it already: `early` is what it has sent.
    pub fn secure_begun(&mut self, session: Session, early: &[u8]) -> io::Result<()> {
        self.secure(session);
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
            None => Self::clear(socket),
            Some(session) => Self::secured(socket, session),
        }
    }

    /// What it lies on.
    #[inline]
    pub fn socket(&self) -> &T {
        &self.socket
    }

    /// It is TLS.
    #[inline]
    pub fn is_secured(&self) -> bool {
        self.tls.is_some()
    }

    /// Data can be sent: there is no handshake, or it is over.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.tls.as_ref().is_none_or(|tls| tls.ended_ns.is_some())
    }

    /// Begins the handshake of a client, or goes on with it. Its first bytes are sent with the first data that are.
    pub fn shake_hands(&mut self) -> io::Result<()> {
        let Self { socket, tls: Some(tls) } = self else { return Ok(()) };
        tls.shake_hands(socket)
    }

    /// The handshake, once: after it is over.
    pub fn take_handshake(&mut self) -> Option<Handshake> {
        let tls = self.tls.as_mut()?;
        let ended_ns = tls.ended_ns.filter(|_| !tls.is_told)?;
        tls.is_told = true;
        Some(Handshake { agreed: tls.session.agreed()?, begun_ns: tls.begun_ns, ended_ns })
    }

    /// Reads once, into at least [`LEAST_ROOM`] bytes. A server makes the handshake while it reads.
    #[inline]
    pub fn recv(&mut self, into: &mut [u8]) -> io::Result<Read> {
        let Self { socket, tls } = self;
        recv_on(socket, tls, into, When::Told)
    }

    /// The same for those who need not know when it came: a cheaper call.
    #[inline]
    pub fn recv_unstamped(&mut self, into: &mut [u8]) -> io::Result<Read> {
        let Self { socket, tls } = self;
        recv_on(socket, tls, into, When::Untold)
    }

    /// Writes as much as it takes; how much. Before the handshake is over it takes nothing.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Self { socket, tls } = self;
        match tls {
            None => Ok(send(socket, bytes, SendFlags::NOSIGNAL)?),
            Some(tls) => tls.send(socket, &[IoSlice::new(bytes)]),
        }
    }

    /// The same with several parts.
    #[inline]
    pub fn send_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let Self { socket, tls } = self;
        send_on(socket, tls, parts)
    }

    /// Some of what it took has not been given to the socket yet.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.unsent.is_empty())
    }

    /// Gives the socket what it had no room for.
    #[inline]
    pub fn flush(&mut self) -> io::Result<()> {
        let Self { socket, tls: Some(tls) } = self else { return Ok(()) };
        tls.flush(socket)
    }

    /// The other side has said that it sends nothing more, which only reading tells: the socket may have nothing to tell of.
    #[inline]
    pub fn has_heard_end(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.session.is_closed())
    }

    /// Tells the other side that nothing more is sent, as far as that can be done at once.
    pub fn say_end(&mut self) {
        let Self { socket, tls: Some(tls) } = self else { return };
        tls.say_end(socket);
    }

    /// From now on, closing it shows the other side that something is missing: there is no `close_notify`.
    pub fn break_off(&self) {
        if let Some(tls) = &self.tls {
            tls.breaks_off.set(true);
        }
    }
}

impl<T: Descriptor> Drop for ByteStream<T> {
    #[inline]
    fn drop(&mut self) {
        if self.tls.is_some() {
            self.say_end();
        }
    }
}

/// What TLS has against an error of a stream; none: it is the socket's.
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

/// Whether the kernel is to tell when it received what is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    Told,
    Untold,
}

#[inline]
fn recv_on(
    socket: &impl Descriptor,
    tls: &mut Option<Box<Secured>>,
    into: &mut [u8],
    when: When,
) -> io::Result<Read> {
    match tls {
        None => {
            let (length, received) = recv_now(socket, into, when)?;
            Ok(Read { length, received, more: length == into.len() })
        }
        Some(tls) => tls.recv(socket, into, when),
    }
}

#[inline]
fn recv_now(socket: &impl Descriptor, into: &mut [u8], when: When) -> io::Result<(usize, Received)> {
    match when {
        When::Told => recv(socket, into),
        When::Untold => Ok((recv_unstamped(socket, into)?, None)),
    }
}

#[inline]
fn send_on(
    socket: &impl Descriptor,
    tls: &mut Option<Box<Secured>>,
    parts: &[IoSlice<'_>],
) -> io::Result<usize> {
    match (tls, parts) {
        (None, [one]) => Ok(send(socket, one, SendFlags::NOSIGNAL)?),
        (None, all) => Ok(sendmsg(socket, all, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?),
        (Some(tls), parts) => tls.send(socket, parts),
    }
}

impl Secured {
    fn shake_hands(&mut self, socket: &impl Descriptor) -> io::Result<()> {
        if self.ended_ns.is_none() && self.unsent.is_empty() {
            self.session.begin(&mut self.unsent).map_err(failed)?;
        }
        self.flush(socket)?;
        while self.ended_ns.is_none() {
            let (read, length) = EARLY.with_borrow_mut(|room| {
                let (read, length) = self.read(socket, PIECE_BYTES, room, When::Untold)?;
                self.early.extend_from_slice(&room[..read.length]);
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
        let is_http2 = self.session.agreed().is_some_and(|agreed| agreed.is_http2);
        if self.early.is_empty() || is_http2 { Ok(()) } else { Err(failed(before_a_request())) }
    }

    #[cold]
    fn over(&self) -> io::Result<Read> {
        Ok(Read { length: 0, received: None, more: false })
    }

    fn recv(&mut self, socket: &impl Descriptor, into: &mut [u8], when: When) -> io::Result<Read> {
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
            let most = into.len().saturating_sub(self.session.kept_bytes()).min(PIECE_BYTES);
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
    fn take_early(&mut self, into: &mut [u8]) -> Read {
        let length = self.early.len().min(into.len());
        into[..length].copy_from_slice(&self.early[..length]);
        self.early.drain(..length);
        // The socket does not tell of what was read from it before.
        Read { length, received: None, more: true }
    }

    /// Reads at most so many bytes of records, and puts what they carry into `into`; gives that, and how many bytes were read.
    fn read(
        &mut self,
        socket: &impl Descriptor,
        most: usize,
        into: &mut [u8],
        when: When,
    ) -> io::Result<(Read, usize)> {
        let was_open = self.session.is_open();
        let (length, count, received, result) = INCOMING.with_borrow_mut(|incoming| {
            let (count, received) = recv_now(socket, &mut incoming[..most], when)?;
            let mut length = 0;
            let mut fits = true;
            let mut plain = |plain: &[u8]| match into.get_mut(length..length + plain.len()) {
                Some(room) => {
                    room.copy_from_slice(plain);
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
        Ok((Read { length, received, more }, count))
    }

    fn send(&mut self, socket: &impl Descriptor, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.ended_ns.is_none() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.unsent.len() > SENT_TOGETHER {
            self.flush(socket)?;
        }
        match parts {
            [] => Ok(0),
            [first, rest @ ..] if first.len() >= PIECE_BYTES || rest.is_empty() => {
                self.seal(socket, &first[..first.len().min(PIECE_BYTES)])
            }
            parts => GATHERED.with_borrow_mut(|gathered| {
                gathered.clear();
                for part in parts {
                    let room = PIECE_BYTES - gathered.len();
                    gathered.extend_from_slice(&part[..part.len().min(room)]);
                }
                self.seal(socket, gathered)
            }),
        }
    }

    /// Seals bytes and gives the socket as much of the records as it takes.
    fn seal(&mut self, socket: &impl Descriptor, plain: &[u8]) -> io::Result<usize> {
        OUTGOING.with_borrow_mut(|room| {
            let most = sealed_bytes(plain.len());
            if room.len() < most {
                room.resize(most, 0);
            }
            let sealed = self.session.seal_into(plain, room, &mut self.unsent).map_err(failed)?;
            if self.unsent.is_empty() {
                self.give(socket, &room[..sealed])?;
            } else {
                let mut out = std::mem::take(&mut self.unsent);
                out.extend_from_slice(&room[..sealed]);
                self.give(socket, &out)?;
            }
            Ok(plain.len())
        })
    }

    /// Gives the socket as much as it takes, and keeps the rest.
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

    fn say_end(&mut self, socket: &impl Descriptor) {
        // Said once; and not in the middle of something.
        if self.breaks_off.replace(true) || self.ended_ns.is_none() || !self.unsent.is_empty() {
            return;
        }
        self.session.close(&mut self.unsent);
        // The other side may be gone; then nobody waits for it.
        let _ = self.flush(socket);
    }
}

#[cfg(test)]
mod tests;
mod tokios;
