//! Sockets that the system tells of, and what each is ready for.
//!
//! There are two sets of them. The usual one is looked at all the time. The other one holds connections whose client is slow with what
//! cannot be served before it is whole, a head or a handshake: it is looked at once a tick, and some of it at a time, so that however many
//! there are, and however often a byte comes on each, nobody waits for them.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::task::{Context, Waker};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use slab::Slab;

use super::current;

/// Events that are fetched at once.
const EVENTS: usize = 512;
/// So many slow ones are looked at with each look at the usual ones, and so many more for each [`USUAL_FOR_SLOW`] events of those: that work
/// takes 50 µs or so, or a quarter of the time.
const SLOW_AT_ONCE: usize = 8;
const USUAL_FOR_SLOW: usize = 4 * SLOW_AT_ONCE;
/// Numbers from here on are of what is no socket.
pub(super) const FIRST_OTHER: u64 = u64::MAX - 1;
/// What is heard of a socket that tells each change once.
const CHANGES: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

/// Bytes have come, or the end.
pub const READABLE: u8 = 1;
/// There is room for bytes to go.
pub const WRITABLE: u8 = 2;
/// The end has come: from now on a read always has a response.
pub const ENDED: u8 = 4;
/// It has come with an error, which a read or a write tells.
pub const FAILED: u8 = 8;

/// A socket that the system tells of.
pub struct Source {
    /// What it is ready for.
    pub flags: Cell<u8>,
    waker: RefCell<Option<Waker>>,
}

impl Source {
    /// The task that is to be woken when something happens.
    pub fn wake_me(&self, cx: &Context<'_>) {
        match &mut *self.waker.borrow_mut() {
            Some(known) => known.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    fn happened(&self, events: EventFlags) {
        let mut flags = self.flags.get();
        if events.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
            flags |= READABLE;
        }
        if events.intersects(EventFlags::OUT | EventFlags::HUP | EventFlags::ERR) {
            flags |= WRITABLE;
        }
        if events.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR) {
            flags |= ENDED;
        }
        if events.intersects(EventFlags::ERR) {
            flags |= FAILED;
        }
        self.flags.set(flags);
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

/// Everything that the system tells a worker of.
pub(super) struct Sockets {
    usual: OwnedFd,
    slow: OwnedFd,
    /// A tick has passed, and not all that has happened to slow ones since is known.
    is_slow_due: Cell<bool>,
    sources: RefCell<Slab<Rc<Source>>>,
    events: RefCell<Vec<Event>>,
    slow_events: RefCell<Vec<Event>>,
}

impl Sockets {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            usual: epoll::create(CreateFlags::CLOEXEC)?,
            slow: epoll::create(CreateFlags::CLOEXEC)?,
            is_slow_due: Cell::new(false),
            sources: RefCell::default(),
            events: RefCell::new(Vec::with_capacity(EVENTS)),
            slow_events: RefCell::new(Vec::with_capacity(SLOW_AT_ONCE)),
        })
    }

    /// Tells of something that is no socket, by a number that no socket has: each call, and each tick, is an event of its own, and nothing
    /// is read.
    pub(super) fn add(&self, what: &OwnedFd, number: u64) -> io::Result<()> {
        Ok(epoll::add(&self.usual, what, EventData::new_u64(number), EventFlags::IN | EventFlags::ET)?)
    }

    /// A tick has passed: it is the turn of slow ones.
    pub(super) fn tick(&self) {
        self.is_slow_due.set(true);
    }

    /// Wakes the tasks of sockets that something has happened to, the slow ones last, if it is their turn; waits for the first if it
    /// `waits`. How many of the usual ones, and the numbers of what is no socket.
    pub(super) fn look(&self, waits: bool, mut other: impl FnMut(u64) -> io::Result<()>) -> io::Result<u32> {
        let mut events = self.events.borrow_mut();
        fetch(&self.usual, &mut events, waits)?;
        let (sources, fetched, mut happened) = (self.sources.borrow(), events.len(), 0);
        // All are told before any task runs, so that a number is never that of another socket.
        for event in events.drain(..) {
            match event.data.u64() {
                number @ FIRST_OTHER.. => other(number)?,
                key => {
                    happened += 1;
                    sources.get(key as usize).inspect(|source| source.happened(event.flags));
                }
            }
        }
        if self.is_slow_due.get() {
            self.look_at_slow(&sources, 1 + fetched / USUAL_FOR_SLOW)?;
        }
        Ok(happened)
    }

    fn look_at_slow(&self, sources: &Slab<Rc<Source>>, times: usize) -> io::Result<()> {
        let mut events = self.slow_events.borrow_mut();
        for _ in 0..times {
            fetch(&self.slow, &mut events, false)?;
            self.is_slow_due.set(events.len() == SLOW_AT_ONCE);
            for event in events.drain(..) {
                sources.get(event.data.u64() as usize).inspect(|source| source.happened(event.flags));
            }
            if !self.is_slow_due.get() {
                break;
            }
        }
        Ok(())
    }

    /// Whether it is the turn of slow ones.
    pub(super) fn is_slow_due(&self) -> bool {
        self.is_slow_due.get()
    }
}

/// Fetches events, as many as there is room for; waits for the first if it `waits`.
fn fetch(set: &OwnedFd, events: &mut Vec<Event>, waits: bool) -> io::Result<()> {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match epoll::wait(set, spare_capacity(events), (!waits).then_some(&at_once)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A socket's place among those that the system tells of. To be given up before the socket is closed and the next events are
/// fetched.
pub struct Place {
    /// What is known of it.
    pub source: Rc<Source>,
    sockets: Rc<Sockets>,
    is_slow: Cell<bool>,
    key: usize,
}

impl Place {
    /// Has the system tell of this socket: each time that something changes, or again and again while `again`.
    pub fn new(socket: BorrowedFd<'_>, flags: u8, again: bool) -> io::Result<Self> {
        let sockets = current()?.sockets();
        let source = Rc::new(Source { flags: Cell::new(flags), waker: RefCell::new(None) });
        let key = sockets.sources.borrow_mut().insert(Rc::clone(&source));
        let place = Self { source, sockets, is_slow: Cell::new(false), key };
        let events = if again { EventFlags::IN } else { CHANGES };
        epoll::add(&place.sockets.usual, socket, place.data(), events)?;
        Ok(place)
    }

    fn data(&self) -> EventData {
        EventData::new_u64(self.key as u64)
    }

    fn set(&self, is_slow: bool) -> &OwnedFd {
        if is_slow { &self.sockets.slow } else { &self.sockets.usual }
    }

    /// From now on it is looked at with the slow ones, or with the usual ones again. What has happened meanwhile is told of once more. Not
    /// for one that is told of again and again.
    pub fn set_slow(&self, socket: BorrowedFd<'_>, is_slow: bool) {
        // Where the system has no room for it, it stays where it is, which does no harm.
        if self.is_slow.get() != is_slow
            && epoll::add(self.set(is_slow), socket, self.data(), CHANGES).is_ok()
        {
            let _ = epoll::delete(self.set(!is_slow), socket);
            self.is_slow.set(is_slow);
        }
    }

    /// Has the system tell of it no more, though it stays open.
    pub fn leave(self, socket: BorrowedFd<'_>) {
        // One that is not there needs no leaving.
        let _ = epoll::delete(self.set(self.is_slow.get()), socket);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.sockets.sources.borrow_mut().try_remove(self.key);
    }
}
