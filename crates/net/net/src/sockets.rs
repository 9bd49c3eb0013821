//! Many sockets, and which of them are ready. For a thread that waits by itself, without tasks.
//!
//! Each socket has a key, and a wait returns the keys of those that have become ready. Edges are reported, not states:
//! the caller reads (or writes) until there is no more.
//!
//! Tokio's sockets cost a task, its waker, and a place in its driver each, and some of that for every event. A thread that
//! knows from the key alone what to do with a socket needs none of it.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Events handled at once, before deadlines have their turn.
const EVENTS: usize = 64;
/// Events of every socket: input, room to write, and either end.
const INTEREST: u32 = (libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;

/// Readiness of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readiness(u32);

impl Readiness {
    /// A connection is made, or could not be.
    #[inline]
    pub fn is_connected(self) -> bool {
        self.0 & (libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }

    /// Bytes have come, or the end.
    #[inline]
    pub fn is_readable(self) -> bool {
        self.0 & libc::EPOLLIN as u32 != 0 || self.is_ended()
    }

    /// The other side sends no more. This is reported once: whoever reads must go on to the end.
    #[inline]
    pub fn is_ended(self) -> bool {
        self.0 & (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32 != 0
    }
}

/// Events that one wait returns.
pub struct Events {
    events: [libc::epoll_event; EVENTS],
    count: usize,
}

impl Events {
    pub fn new() -> Self {
        Self { events: [libc::epoll_event { events: 0, u64: 0 }; EVENTS], count: 0 }
    }

    /// Whether there may be more events than these.
    pub fn is_full(&self) -> bool {
        self.count == EVENTS
    }

    /// Keys of the sockets that are ready, and what has happened to each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Readiness)> {
        // Fields are copied: on some machines they do not lie where their types would have them.
        self.events[..self.count].iter().map(|&event| ({ event.u64 }, Readiness(event.events)))
    }
}

impl Default for Events {
    fn default() -> Self {
        Self::new()
    }
}

/// Sockets that one thread waits for.
#[derive(Debug)]
pub struct Sockets {
    descriptor: OwnedFd,
}

impl Sockets {
    pub fn new() -> io::Result<Self> {
        // SAFETY: it takes a number.
        let descriptor = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made, and nobody else knows it.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) } })
    }

    /// Reports events of a socket by this key, until it is closed.
    pub fn add(&self, socket: &impl AsRawFd, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, socket, key)
    }

    /// Reports a socket once more if it is still ready: not all was done that it was ready for.
    pub fn rearm(&self, socket: &impl AsRawFd, key: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, socket, key)
    }

    fn control(&self, operation: libc::c_int, socket: &impl AsRawFd, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: INTEREST, u64: key };
        let descriptor = self.descriptor.as_raw_fd();
        // SAFETY: both descriptors are open, and the event lives as long as the call.
        let result = unsafe { libc::epoll_ctl(descriptor, operation, socket.as_raw_fd(), &raw mut event) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits until a socket is ready if it `sleeps`, else only polls.
    pub fn wait(&self, events: &mut Events, sleeps: bool) -> io::Result<()> {
        let timeout_ms = if sleeps { -1 } else { 0 };
        let (room, length) = (events.events.as_mut_ptr(), EVENTS as libc::c_int);
        // SAFETY: there is room for so many events, and it lives as long as the call.
        let count = unsafe { libc::epoll_wait(self.descriptor.as_raw_fd(), room, length, timeout_ms) };
        events.count = usize::try_from(count).unwrap_or(0);
        if count >= 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            error => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn told(sockets: &Sockets, sleeps: bool) -> Vec<(u64, Readiness)> {
        let mut events = Events::new();
        sockets.wait(&mut events, sleeps).expect("can wait");
        events.iter().collect()
    }

    #[test]
    fn a_socket_is_told_of_by_its_key_once_for_each_thing_that_happens() {
        let sockets = Sockets::new().expect("is made");
        let (ours, mut theirs) = UnixStream::pair().expect("is made");
        sockets.add(&ours, 7).expect("is added");
        let first = told(&sockets, true);
        assert!(matches!(first[..], [(7, what)] if what.is_connected() && !what.is_ended()), "{first:?}");
        assert_eq!(told(&sockets, false), [], "nothing new");
        theirs.write_all(b"x").expect("is written");
        assert!(matches!(told(&sockets, true)[..], [(7, what)] if !what.is_ended()));
        assert_eq!(told(&sockets, false), [], "nothing new");
        sockets.rearm(&ours, 7).expect("is known");
        assert!(matches!(told(&sockets, true)[..], [(7, what)] if what.is_readable()));
        drop(theirs);
        assert!(matches!(told(&sockets, true)[..], [(7, what)] if what.is_ended()));
        drop(ours);
        assert_eq!(told(&sockets, false), [], "what is closed is forgotten");
    }
}
