//! Deadlines of connections, checked a few times a second.
//!
//! A timer for every read and write would cost more than the reading. A connection has one deadline, which is a number in a list: setting
//! it costs nothing. All are checked every [`TICK_NS`], and connections that are late are woken. The numbers lie beside each other: with
//! ten thousand connections that do nothing, a check takes microseconds, and nobody else waits for it. Ending a connection takes longer.
//! Where many are late together, some are ended with each check, and the next check comes soon ([`Deadlines::tick`]): the requests of
//! others wait for a few of them at most.
//!
//! The reason for a connection's wait is known as well ([`WaitReason`]), and its length, so that the longest wait can be ended where
//! connections are scarce ([`LongestWaits`]). A peer that takes or sends a body gets a *debt*: the time that was waited for it, less what
//! its bytes are worth at the least rate ([`Deadline::set_min_rate`]). So one that sends a byte now and then is as late as one that sends
//! none.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

pub use longest_waits::{LongestWaits, PeerWait};

mod longest_waits;

/// Interval between checks of deadlines, and so their precision.
pub const TICK_NS: u64 = 50_000_000;

/// Interval before the next check where more are late than were ended.
pub const SHORT_TICK_NS: u64 = 1_000_000;

/// Late connections for each one that a check ends: requests of others wait meanwhile.
const LATE_PER_EXPIRY: usize = 64;

/// Connections that one check ends at most: four thousand in a second, which take a tenth of a processor.
const MAX_EXPIRIES: usize = 4;

const NEVER: u64 = u64::MAX;

/// Reason for the wait of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WaitReason {
    /// Work in which the peer has no part.
    #[default]
    Other,
    /// A request that has not begun: the wait can be ended at shutdown.
    Request,
    /// The rest of a head, or of a handshake.
    Head,
    /// The peer, which sends a body or takes one.
    Peer,
}

/// Counts of waits that were ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeadlineCounts {
    /// Peers that were late with a head, or with sending or taking a body.
    pub slow: u64,
    /// Waits that were ended to make room for others.
    pub dismissed: u64,
}

/// The deadlines of a worker.
pub struct Deadlines {
    now_ns: Cell<u64>,
    /// Waits for a request end at once: a shutdown.
    closes_idle: Cell<bool>,
    times: RefCell<Vec<WaitTimes>>,
    all: RefCell<Vec<Rc<Waiter>>>,
    free: RefCell<Vec<usize>>,
    ended: Cell<DeadlineCounts>,
}

/// The task to wake, and the reason.
#[derive(Default)]
struct Waiter {
    is_late: Cell<bool>,
    /// Evicted for others.
    is_dismissed: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// The times of a wait; in an unused slot, nothing is due.
struct WaitTimes {
    due_ns: Cell<u64>,
    /// Time when `due_ns` was set.
    set_ns: Cell<u64>,
    /// Time of the reminder.
    remind_ns: Cell<u64>,
    /// Start of the current wait.
    since_ns: Cell<u64>,
    /// Time that the peer has used up.
    debt_ns: Cell<u64>,
    /// Key of the slot that is held while the peer is waited for.
    held_slot: Cell<u32>,
    reason: Cell<WaitReason>,
    is_closing: Cell<bool>,
    /// Lateness with the current request was counted: a byte that came at the same instant gives the peer a moment more, and it is late
    /// again.
    is_late_counted: Cell<bool>,
    is_stream: Cell<bool>,
}

impl WaitTimes {
    fn new() -> Self {
        let zero = || Cell::new(0);
        Self {
            due_ns: Cell::new(NEVER),
            remind_ns: Cell::new(NEVER),
            set_ns: zero(),
            since_ns: zero(),
            debt_ns: zero(),
            held_slot: Cell::new(0),
            reason: Cell::default(),
            is_closing: Cell::default(),
            is_late_counted: Cell::default(),
            is_stream: Cell::default(),
        }
    }

    /// Length of the wait for the peer at an instant.
    fn waited_ns(&self, now_ns: u64) -> u64 {
        let debt_ns = if self.reason.get() == WaitReason::Peer { self.debt_ns.get() } else { 0 };
        debt_ns + now_ns.saturating_sub(self.since_ns.get())
    }

    /// Start of the wait, as if nothing else had been waited for since.
    fn began_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.waited_ns(now_ns))
    }

    /// Whether lateness is the peer's.
    fn is_slow(&self) -> bool {
        matches!(self.reason.get(), WaitReason::Head | WaitReason::Peer) && !self.is_closing.get()
    }

    /// Sets the deadline to `limit` from now, less the debt.
    fn set_due(&self, limit: Duration, owed_ns: u64, now_ns: u64) {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX).saturating_sub(owed_ns);
        // What is known of now may be a tick old.
        self.due_ns.set(now_ns.saturating_add(limit_ns).saturating_add(TICK_NS));
        self.set_ns.set(now_ns);
    }

    /// Ends a wait for the peer, and adds its length to the debt.
    fn end_peer_wait(&self, now_ns: u64) {
        if self.reason.get() == WaitReason::Peer {
            let waited_ns = now_ns.saturating_sub(self.since_ns.get());
            self.debt_ns.set(self.debt_ns.get() + waited_ns);
            self.reason.set(WaitReason::Other);
        }
    }
}

impl Deadlines {
    pub fn new(now_ns: u64) -> Self {
        Self {
            now_ns: Cell::new(now_ns),
            closes_idle: Cell::new(false),
            times: RefCell::default(),
            all: RefCell::default(),
            free: RefCell::default(),
            ended: Cell::default(),
        }
    }

    pub fn register(self: &Rc<Self>) -> Deadline {
        let waiter = Rc::new(Waiter::default());
        let mut all = self.all.borrow_mut();
        let mut times = self.times.borrow_mut();
        let index = match self.free.borrow_mut().pop() {
            Some(index) => {
                (all[index], times[index]) = (Rc::clone(&waiter), WaitTimes::new());
                index
            }
            None => {
                all.push(Rc::clone(&waiter));
                times.push(WaitTimes::new());
                all.len() - 1
            }
        };
        Deadline { deadlines: Rc::clone(self), waiter, index, per_byte_ns: Cell::new(None) }
    }

    pub fn counts(&self) -> DeadlineCounts {
        self.ended.get()
    }

    /// Checks all deadlines, and ends a few waits that are late, [`MAX_EXPIRIES`] at most. Returns the time until the next call:
    /// [`TICK_NS`], or [`SHORT_TICK_NS`] while more are late. When it is called later than that, the thread was kept from running, and
    /// could not have seen what came meanwhile: that time counts against nobody.
    pub fn tick(&self, now_ns: u64) -> u64 {
        let since_ns = now_ns.saturating_sub(self.now_ns.replace(now_ns));
        let lost_ns = since_ns.saturating_sub(2 * TICK_NS);
        let mut late = Vec::new();
        for (index, times) in self.times.borrow().iter().enumerate() {
            let due_ns = &times.due_ns;
            if lost_ns > 0 {
                due_ns.set(due_ns.get().saturating_add(lost_ns));
                // A client owes what it was waited for, not what this thread was.
                times.since_ns.set(times.since_ns.get().saturating_add(lost_ns));
                times.set_ns.set(times.set_ns.get().saturating_add(lost_ns));
            }
            if due_ns.get() <= now_ns {
                late.push(index);
            }
            if times.remind_ns.get() <= now_ns {
                times.remind_ns.set(NEVER);
                self.wake(index);
            }
        }
        let ended = late.len().div_ceil(LATE_PER_EXPIRY).min(MAX_EXPIRIES);
        let next_ns = if late.len() > ended { SHORT_TICK_NS } else { TICK_NS };
        late.truncate(ended);
        for index in late {
            let times = self.times.borrow();
            if times[index].is_slow() && !times[index].is_late_counted.replace(true) {
                self.count(|ended| ended.slow += 1);
            }
            self.expire(index);
        }
        next_ns
    }

    /// Ends all waits for a request that has not begun, present and future.
    pub fn close_idle(&self) {
        self.closes_idle.set(true);
        let idle = self.select_waits(|times| (times.reason.get() == WaitReason::Request).then_some(()));
        idle.into_iter().for_each(|((), index)| self.expire(index));
    }

    /// Selected waits with their positions.
    fn select_waits<T>(&self, of: impl Fn(&WaitTimes) -> Option<T>) -> Vec<(T, usize)> {
        let times = self.times.borrow();
        times.iter().enumerate().filter_map(|(index, times)| Some((of(times)?, index))).collect()
    }

    fn count(&self, add: impl FnOnce(&mut DeadlineCounts)) {
        let mut ended = self.ended.get();
        add(&mut ended);
        self.ended.set(ended);
    }

    fn expire(&self, index: usize) {
        self.times.borrow()[index].due_ns.set(NEVER);
        self.all.borrow()[index].is_late.set(true);
        self.wake(index);
    }

    fn wake(&self, index: usize) {
        let waker = self.all.borrow()[index].waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Deadline of a connection, which applies to everything that its task waits for.
pub struct Deadline {
    deadlines: Rc<Deadlines>,
    waiter: Rc<Waiter>,
    index: usize,
    /// Credit for a byte at the lowest rate, in nanoseconds; 0: there is no such rate; none: the peer is no client.
    per_byte_ns: Cell<Option<u64>>,
}

impl Deadline {
    /// Sets the deadline, whatever is waited for.
    pub fn set(&self, limit: Duration) {
        self.with(|times, now_ns| {
            times.end_peer_wait(now_ns);
            times.set_due(limit, 0, now_ns);
        });
        self.waiter.is_late.set(false);
    }

    fn with<T>(&self, act: impl FnOnce(&WaitTimes, u64) -> T) -> T {
        act(&self.deadlines.times.borrow()[self.index], self.deadlines.now_ns.get())
    }

    /// Whether so much time has passed since the deadline was set, to within a tick.
    pub fn has_lasted(&self, least: Duration) -> bool {
        self.with(|times, now_ns| u128::from(now_ns.saturating_sub(times.set_ns.get())) >= least.as_nanos())
    }

    /// Sets a reminder for a wait that is short as a rule. Should it last for a tick or two, the task is woken once: what costs something,
    /// and is of use in a long wait only, can be left until then ([`Self::is_reminded`]).
    pub fn remind(&self) {
        self.with(|times, now_ns| times.remind_ns.set(now_ns.saturating_add(TICK_NS + TICK_NS / 2)));
    }

    /// The reminder has passed, or was not set.
    pub fn is_reminded(&self) -> bool {
        self.with(|times, _| times.remind_ns.get() == NEVER)
    }

    /// Sets the lowest rate, in bytes a second, at which the peer, a client, has to send and take bodies, after the time that it may take
    /// for a part; 0: any rate.
    pub fn set_min_rate(&self, bytes_per_s: u64) {
        self.per_byte_ns.set(Some(1_000_000_000u64.checked_div(bytes_per_s).unwrap_or(0)));
    }

    /// Marks the deadline as that of a stream, and not of a whole connection.
    pub fn mark_stream(&self) {
        self.with(|times, _| times.is_stream.set(true));
    }

    /// Clears the debt of the peer: another request begins.
    pub fn clear_debt(&self) {
        self.with(|times, _| {
            times.debt_ns.set(0);
            times.is_late_counted.set(false);
        });
    }

    /// Marks the connection as closing. The peer has had its last response: it owes nothing, and being late is no fault of it any more.
    pub fn set_closing(&self) {
        self.with(|times, now_ns| {
            times.end_peer_wait(now_ns);
            times.is_closing.set(true);
        });
        self.clear_debt();
    }

    /// Begins a wait for the peer, of at most `limit`, less its debt if it is a client.
    pub fn await_peer(&self, limit: Duration) {
        let Some(per_byte_ns) = self.per_byte_ns.get() else { return self.set(limit) };
        self.with(|times, now_ns| {
            times.end_peer_wait(now_ns);
            times.set_due(limit, if per_byte_ns > 0 { times.debt_ns.get() } else { 0 }, now_ns);
            times.reason.set(WaitReason::Peer);
            times.since_ns.set(now_ns);
        });
        self.waiter.is_late.set(false);
    }

    /// Whether the peer is waited for.
    pub fn awaits_peer(&self) -> bool {
        self.with(|times, _| times.reason.get() == WaitReason::Peer)
    }

    /// Credits the peer with bytes that it has sent or taken.
    pub fn credit(&self, bytes: u64) {
        self.with(|times, now_ns| {
            times.end_peer_wait(now_ns);
            if times.debt_ns.get() > 0 {
                let worth_ns = bytes.saturating_mul(self.per_byte_ns.get().unwrap_or(0));
                times.debt_ns.set(times.debt_ns.get().saturating_sub(worth_ns));
            }
        });
    }

    /// Sets the key of the slot that is held while the peer is waited for.
    pub fn hold_slot(&self, whose: u32) {
        self.with(|times, _| times.held_slot.set(whose));
    }

    /// Sets the reason for a wait other than for a body. The wait for a head counts from the wait for its request.
    pub fn set_wait_reason(&self, reason: WaitReason) {
        self.with(|times, now_ns| {
            let is_waiting = matches!(times.reason.replace(reason), WaitReason::Request | WaitReason::Head);
            if !is_waiting && reason != WaitReason::Other {
                times.since_ns.set(now_ns);
            }
        });
        if reason == WaitReason::Request && self.deadlines.closes_idle.get() {
            self.waiter.is_late.set(true);
        }
    }

    /// Whether the wait was ended to make room for others.
    pub fn is_dismissed(&self) -> bool {
        self.waiter.is_dismissed.get()
    }

    /// Registers the task before it goes to sleep; an error: the deadline has passed.
    pub fn check(&self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.waiter.is_late.get() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut waker = self.waiter.waker.borrow_mut();
        match &mut *waker {
            Some(known) => known.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Ok(())
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.deadlines.times.borrow_mut()[self.index] = WaitTimes::new();
        self.deadlines.free.borrow_mut().push(self.index);
    }
}

#[cfg(test)]
mod tests;
