//! Readiness of sockets, by epoll.
//!
//! There are two epoll sets. The usual one is polled all the time. The slow one holds connections whose client is slow with a
//! head or a handshake, which cannot be served before it is complete: it is polled once a tick, a few events at a time, so that
//! nobody waits for slow clients, however many there are and however often they send a byte.

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

/// Events fetched by one call.
const EVENTS: usize = 512;
/// Slow events handled with each poll of the usual set, and again for each [`USUAL_PER_SLOW_POLL`] events of that: about 50 µs of
/// work, or a quarter of the time.
const SLOW_BATCH: usize = 8;
const USUAL_PER_SLOW_POLL: usize = 4 * SLOW_BATCH;
/// Event numbers from here on are not sockets.
pub(super) const FIRST_NON_SOCKET: u64 = u64::MAX - 1;
/// Edge-triggered interest in everything.
const CHANGES: EventFlags =
    EventFlags::IN.union(EventFlags::OUT).union(EventFlags::RDHUP).union(EventFlags::ET);

/// Bytes or an end have arrived.
pub const READABLE: u8 = 1;
pub const WRITABLE: u8 = 2;
/// The peer has closed: a read always has a result from now on.
pub const ENDED: u8 = 4;
/// The connection has failed; a read or a write returns the error.
pub const FAILED: u8 = 8;

/// A registered socket.
pub struct IoSource {
    /// Readiness flags.
    pub flags: Cell<u8>,
    waker: RefCell<Option<Waker>>,
}

impl IoSource {
    pub fn set_waker(&self, cx: &Context<'_>) {
        match &mut *self.waker.borrow_mut() {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
    }

    fn on_events(&self, events: EventFlags) {
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

pub(super) struct Reactor {
    usual: OwnedFd,
    slow: OwnedFd,
    /// A tick has passed, and the slow set may have more events.
    is_slow_due: Cell<bool>,
    sources: RefCell<Slab<Rc<IoSource>>>,
    events: RefCell<Vec<Event>>,
    slow_events: RefCell<Vec<Event>>,
}

impl Reactor {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            usual: epoll::create(CreateFlags::CLOEXEC)?,
            slow: epoll::create(CreateFlags::CLOEXEC)?,
            is_slow_due: Cell::new(false),
            sources: RefCell::default(),
            events: RefCell::new(Vec::with_capacity(EVENTS)),
            slow_events: RefCell::new(Vec::with_capacity(SLOW_BATCH)),
        })
    }

    /// Registers a descriptor that is not a socket under a number that no socket has. Edge-triggered, so nothing needs to be
    /// read.
    pub(super) fn add(&self, descriptor: &OwnedFd, number: u64) -> io::Result<()> {
        Ok(epoll::add(&self.usual, descriptor, EventData::new_u64(number), EventFlags::IN | EventFlags::ET)?)
    }

    /// Makes the slow set due.
    pub(super) fn tick(&self) {
        self.is_slow_due.set(true);
    }

    /// Polls the usual set, blocking for the first event if `waits`, and then the slow set if it is due; wakes the tasks
    /// concerned. `other` gets the numbers of non-sockets. Returns the number of events of the usual set.
    pub(super) fn poll(&self, waits: bool, mut other: impl FnMut(u64) -> io::Result<()>) -> io::Result<u32> {
        let mut events = self.events.borrow_mut();
        fetch(&self.usual, &mut events, waits)?;
        let (sources, fetched, mut happened) = (self.sources.borrow(), events.len(), 0);
        // All events are dispatched before any task runs, so that a key cannot belong to a new socket.
        for event in events.drain(..) {
            match event.data.u64() {
                number @ FIRST_NON_SOCKET.. => other(number)?,
                key => {
                    happened += 1;
                    sources.get(key as usize).inspect(|source| source.on_events(event.flags));
                }
            }
        }
        if self.is_slow_due.get() {
            self.poll_slow(&sources, 1 + fetched / USUAL_PER_SLOW_POLL)?;
        }
        Ok(happened)
    }

    fn poll_slow(&self, sources: &Slab<Rc<IoSource>>, times: usize) -> io::Result<()> {
        let mut events = self.slow_events.borrow_mut();
        for _ in 0..times {
            fetch(&self.slow, &mut events, false)?;
            self.is_slow_due.set(events.len() == SLOW_BATCH);
            for event in events.drain(..) {
                sources.get(event.data.u64() as usize).inspect(|source| source.on_events(event.flags));
            }
            if !self.is_slow_due.get() {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn is_slow_due(&self) -> bool {
        self.is_slow_due.get()
    }
}

/// Fetches events; blocks for the first if it `waits`.
fn fetch(set: &OwnedFd, events: &mut Vec<Event>, waits: bool) -> io::Result<()> {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    match epoll::wait(set, spare_capacity(events), (!waits).then_some(&at_once)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Registration of a socket. To be dropped before the socket is closed and the next events are fetched.
pub struct Registration {
    pub source: Rc<IoSource>,
    reactor: Rc<Reactor>,
    is_slow: Cell<bool>,
    key: usize,
}

impl Registration {
    /// Registers a socket: edge-triggered, or level-triggered for reading if `is_level_triggered`.
    pub fn new(socket: BorrowedFd<'_>, flags: u8, is_level_triggered: bool) -> io::Result<Self> {
        let reactor = current()?.reactor();
        let source = Rc::new(IoSource { flags: Cell::new(flags), waker: RefCell::new(None) });
        let key = reactor.sources.borrow_mut().insert(Rc::clone(&source));
        let registration = Self { source, reactor, is_slow: Cell::new(false), key };
        let events = if is_level_triggered { EventFlags::IN } else { CHANGES };
        epoll::add(&registration.reactor.usual, socket, registration.data(), events)?;
        Ok(registration)
    }

    fn data(&self) -> EventData {
        EventData::new_u64(self.key as u64)
    }

    fn set(&self, is_slow: bool) -> &OwnedFd {
        if is_slow { &self.reactor.slow } else { &self.reactor.usual }
    }

    /// Moves the socket to the slow set, or back to the usual one. Pending events are reported again. Not for level-triggered
    /// sockets.
    pub fn set_slow(&self, socket: BorrowedFd<'_>, is_slow: bool) {
        // If the system cannot register the socket, it stays where it is, which does no harm.
        if self.is_slow.get() != is_slow
            && epoll::add(self.set(is_slow), socket, self.data(), CHANGES).is_ok()
        {
            let _ = epoll::delete(self.set(!is_slow), socket);
            self.is_slow.set(is_slow);
        }
    }

    /// Deregisters a socket that stays open.
    pub fn deregister(self, socket: BorrowedFd<'_>) {
        // An error means that the socket is deregistered already.
        let _ = epoll::delete(self.set(self.is_slow.get()), socket);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.reactor.sources.borrow_mut().try_remove(self.key);
    }
}
