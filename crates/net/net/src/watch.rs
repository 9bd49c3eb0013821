//! Deadlines of connections, looked through a few times a second.
//!
//! A timer for every read and write would cost more than the reading. A connection has one deadline, which is a number in a
//! list: setting it costs nothing. All are looked at every [`TICK_NS`], and who is late is woken and told so. The numbers lie beside
//! each other: with ten thousand connections that do nothing, a look takes microseconds, and nobody else waits for it. Ending a connection takes
//! longer. Where many are late together, some are ended with each look, and the next look comes soon ([`Watch::tick`]): the requests of
//! others wait for a few of them at most.
//!
//! What a connection waits for is known as well ([`Awaits`]), and for how long, so that those that keep others out can be ended,
//! the one that has waited longest first ([`Longest`]). A peer that takes or sends a body gets a *debt*: the time that was
//! waited for it, less what its bytes are worth at the least rate ([`Deadline::set_pace`]). So one that sends a byte now and then is as late as one
//! that sends none.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

pub use longest::{Longest, Wait};

mod longest;

/// How often deadlines are looked at; none is kept more exactly than that.
pub const TICK_NS: u64 = 50_000_000;

/// How soon they are looked at again where more are late than were ended.
pub const SOON_NS: u64 = 1_000_000;

/// One is ended with a look for each so many that are late: requests of others wait for each.
const LATE_FOR_EACH: usize = 64;

/// So many are ended with one look at most: four thousand in a second, which take a tenth of a processor.
const MOST_LATE: usize = 4;

const NEVER: u64 = u64::MAX;

/// What a connection waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Awaits {
    /// Something that the peer has no part in.
    #[default]
    Other,
    /// A request that has not begun: may be sent away when all is to end.
    Request,
    /// The rest of a head, or of a handshake.
    Head,
    /// The peer, which sends a body or takes one.
    Peer,
}

/// What came of deadlines and of connections that kept others out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// Peers that were late with a head, or with sending or taking a body.
    pub slow: u64,
    /// Waits that were ended to make room for others.
    pub dismissed: u64,
}

/// The deadlines of a worker.
pub struct Watch {
    now_ns: Cell<u64>,
    /// Whoever is idle, or becomes it, is sent away.
    dismisses: Cell<bool>,
    /// The times of each, by its place.
    times: RefCell<Vec<Times>>,
    all: RefCell<Vec<Rc<Watched>>>,
    free: RefCell<Vec<usize>>,
    ended: Cell<Ended>,
}

/// Whom to wake, and why.
#[derive(Default)]
struct Watched {
    is_late: Cell<bool>,
    /// Others need its place.
    is_dismissed: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// The times of a wait; of a place that nobody has, nothing is due.
struct Times {
    due_ns: Cell<u64>,
    /// When that was set.
    set_ns: Cell<u64>,
    /// When it is to be reminded that it waits.
    remind_ns: Cell<u64>,
    /// Since when it waits for what it waits for.
    since_ns: Cell<u64>,
    /// How much of the peer's time is used up.
    debt_ns: Cell<u64>,
    /// Whose place it keeps while it waits for its peer.
    keeps: Cell<u32>,
    awaits: Cell<Awaits>,
    is_closing: Cell<bool>,
    /// It was late with the current request already: a byte that came at the same instant gives it a moment more, and it is late again.
    is_counted: Cell<bool>,
    is_stream: Cell<bool>,
}

impl Times {
    fn new() -> Self {
        let zero = || Cell::new(0);
        Self {
            due_ns: Cell::new(NEVER),
            remind_ns: Cell::new(NEVER),
            set_ns: zero(),
            since_ns: zero(),
            debt_ns: zero(),
            keeps: Cell::new(0),
            awaits: Cell::default(),
            is_closing: Cell::default(),
            is_counted: Cell::default(),
            is_stream: Cell::default(),
        }
    }

    /// For how long its peer was waited for, by an instant.
    fn waited_ns(&self, now_ns: u64) -> u64 {
        let debt_ns = if self.awaits.get() == Awaits::Peer { self.debt_ns.get() } else { 0 };
        debt_ns + now_ns.saturating_sub(self.since_ns.get())
    }

    /// When that would have begun, had it waited for nothing else since.
    fn began_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.waited_ns(now_ns))
    }

    /// Its lateness is the peer's, and not counted yet.
    fn is_slow(&self) -> bool {
        matches!(self.awaits.get(), Awaits::Head | Awaits::Peer) && !self.is_closing.get()
    }

    /// It may take so long from now on, less what is owed.
    fn allow(&self, limit: Duration, owed_ns: u64, now_ns: u64) {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX).saturating_sub(owed_ns);
        // What is known of now may be a tick old.
        self.due_ns.set(now_ns.saturating_add(limit_ns).saturating_add(TICK_NS));
        self.set_ns.set(now_ns);
    }

    /// The peer is waited for no longer: what that took is owed.
    fn settle(&self, now_ns: u64) {
        if self.awaits.get() == Awaits::Peer {
            let waited_ns = now_ns.saturating_sub(self.since_ns.get());
            self.debt_ns.set(self.debt_ns.get() + waited_ns);
            self.awaits.set(Awaits::Other);
        }
    }
}

impl Watch {
    pub fn new(now_ns: u64) -> Self {
        Self {
            now_ns: Cell::new(now_ns),
            dismisses: Cell::new(false),
            times: RefCell::default(),
            all: RefCell::default(),
            free: RefCell::default(),
            ended: Cell::default(),
        }
    }

    pub fn enter(self: &Rc<Self>) -> Deadline {
        let watched = Rc::new(Watched::default());
        let mut all = self.all.borrow_mut();
        let mut times = self.times.borrow_mut();
        let place = match self.free.borrow_mut().pop() {
            Some(place) => {
                (all[place], times[place]) = (Rc::clone(&watched), Times::new());
                place
            }
            None => {
                all.push(Rc::clone(&watched));
                times.push(Times::new());
                all.len() - 1
            }
        };
        Deadline { watch: Rc::clone(self), watched, place, per_byte_ns: Cell::new(None) }
    }

    /// How many were late or ended so far.
    pub fn ended(&self) -> Ended {
        self.ended.get()
    }

    /// Looks through all deadlines, and ends a few that are late, [`MOST_LATE`] at most. Gives the time until it is to be called again: [`TICK_NS`],
    /// or [`SOON_NS`] while more are late. When it is called later than that, the thread was kept from running, and could not have
    /// seen what came meanwhile: that time counts against nobody.
    pub fn tick(&self, now_ns: u64) -> u64 {
        let since_ns = now_ns.saturating_sub(self.now_ns.replace(now_ns));
        let lost_ns = since_ns.saturating_sub(2 * TICK_NS);
        let mut late = Vec::new();
        for (place, times) in self.times.borrow().iter().enumerate() {
            let due_ns = &times.due_ns;
            if lost_ns > 0 {
                due_ns.set(due_ns.get().saturating_add(lost_ns));
                // A client owes what it was waited for, not what this thread was.
                times.since_ns.set(times.since_ns.get().saturating_add(lost_ns));
                times.set_ns.set(times.set_ns.get().saturating_add(lost_ns));
            }
            if due_ns.get() <= now_ns {
                late.push(place);
            }
            if times.remind_ns.get() <= now_ns {
                times.remind_ns.set(NEVER);
                self.wake(place);
            }
        }
        let ended = late.len().div_ceil(LATE_FOR_EACH).min(MOST_LATE);
        let next_ns = if late.len() > ended { SOON_NS } else { TICK_NS };
        late.truncate(ended);
        for place in late {
            let times = self.times.borrow();
            if times[place].is_slow() && !times[place].is_counted.replace(true) {
                self.count(|ended| ended.slow += 1);
            }
            self.expire(place);
        }
        next_ns
    }

    /// Ends all waits for a request that has not begun, now and from now on.
    pub fn dismiss_idle(&self) {
        self.dismisses.set(true);
        let idle = self.waits(|times| (times.awaits.get() == Awaits::Request).then_some(()));
        idle.into_iter().for_each(|((), place)| self.expire(place));
    }

    /// What is of interest of each wait, and where it is.
    fn waits<T>(&self, of: impl Fn(&Times) -> Option<T>) -> Vec<(T, usize)> {
        let times = self.times.borrow();
        times.iter().enumerate().filter_map(|(place, times)| Some((of(times)?, place))).collect()
    }

    fn count(&self, add: impl FnOnce(&mut Ended)) {
        let mut ended = self.ended.get();
        add(&mut ended);
        self.ended.set(ended);
    }

    fn expire(&self, place: usize) {
        self.times.borrow()[place].due_ns.set(NEVER);
        self.all.borrow()[place].is_late.set(true);
        self.wake(place);
    }

    fn wake(&self, place: usize) {
        let waker = self.all.borrow()[place].waker.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// A connection's own deadline. Everything that its task waits for is under it.
pub struct Deadline {
    watch: Rc<Watch>,
    watched: Rc<Watched>,
    place: usize,
    /// What a byte of the peer is worth at the least rate, 0: there is none; none: the peer is no client.
    per_byte_ns: Cell<Option<u64>>,
}

impl Deadline {
    /// From now on it may take so long, whatever it waits for.
    pub fn set(&self, limit: Duration) {
        self.with(|times, now_ns| {
            times.settle(now_ns);
            times.allow(limit, 0, now_ns);
        });
        self.watched.is_late.set(false);
    }

    fn with<T>(&self, act: impl FnOnce(&Times, u64) -> T) -> T {
        act(&self.watch.times.borrow()[self.place], self.watch.now_ns.get())
    }

    /// Whether so much time has passed since it was set, to within a tick.
    pub fn has_lasted(&self, least: Duration) -> bool {
        self.with(|times, now_ns| u128::from(now_ns.saturating_sub(times.set_ns.get())) >= least.as_nanos())
    }

    /// A wait begins that is short as a rule. Should it last for a tick or two, it is woken once: what costs something, and is of use in
    /// a long wait only, can be left until then ([`Self::is_reminded`]).
    pub fn remind(&self) {
        self.with(|times, now_ns| times.remind_ns.set(now_ns.saturating_add(TICK_NS + TICK_NS / 2)));
    }

    /// The wait has lasted, or nobody wanted to be told.
    pub fn is_reminded(&self) -> bool {
        self.with(|times, _| times.remind_ns.get() == NEVER)
    }

    /// The peer is a client. It has to send and take bodies at so many bytes a second at least, after the time that it may take for
    /// a part; 0: at any rate.
    pub fn set_pace(&self, bytes_per_s: u64) {
        self.per_byte_ns.set(Some(1_000_000_000u64.checked_div(bytes_per_s).unwrap_or(0)));
    }

    /// It is that of a stream, and not of a whole connection.
    pub fn set_stream(&self) {
        self.with(|times, _| times.is_stream.set(true));
    }

    /// The peer owes nothing: another request begins.
    pub fn forgive(&self) {
        self.with(|times, _| {
            times.debt_ns.set(0);
            times.is_counted.set(false);
        });
    }

    /// The peer has had its last response, and only its end is waited for: it owes nothing, and being late is no fault of it any more.
    pub fn set_closing(&self) {
        self.with(|times, now_ns| {
            times.settle(now_ns);
            times.is_closing.set(true);
        });
        self.forgive();
    }

    /// From now on the peer is waited for, for so long at most, less what it owes if it is a client.
    pub fn await_peer(&self, limit: Duration) {
        let Some(per_byte_ns) = self.per_byte_ns.get() else { return self.set(limit) };
        self.with(|times, now_ns| {
            times.settle(now_ns);
            times.allow(limit, if per_byte_ns > 0 { times.debt_ns.get() } else { 0 }, now_ns);
            times.awaits.set(Awaits::Peer);
            times.since_ns.set(now_ns);
        });
        self.watched.is_late.set(false);
    }

    /// The peer, a client, is waited for.
    pub fn awaits_peer(&self) -> bool {
        self.with(|times, _| times.awaits.get() == Awaits::Peer)
    }

    /// The peer has sent or taken so many bytes.
    pub fn earn(&self, bytes: u64) {
        self.with(|times, now_ns| {
            times.settle(now_ns);
            if times.debt_ns.get() > 0 {
                let worth_ns = bytes.saturating_mul(self.per_byte_ns.get().unwrap_or(0));
                times.debt_ns.set(times.debt_ns.get().saturating_sub(worth_ns));
            }
        });
    }

    /// While it waits for its peer, it keeps this one's place.
    pub fn keep(&self, whose: u32) {
        self.with(|times, _| times.keeps.set(whose));
    }

    /// What it waits for, if that is not a body. A head is waited for since its request is.
    pub fn set_awaits(&self, awaits: Awaits) {
        self.with(|times, now_ns| {
            let is_waiting = matches!(times.awaits.replace(awaits), Awaits::Request | Awaits::Head);
            if !is_waiting && awaits != Awaits::Other {
                times.since_ns.set(now_ns);
            }
        });
        if awaits == Awaits::Request && self.watch.dismisses.get() {
            self.watched.is_late.set(true);
        }
    }

    /// It was ended to make room for others, who wait for it to go.
    pub fn is_dismissed(&self) -> bool {
        self.watched.is_dismissed.get()
    }

    /// To be called before a task goes to sleep: an error when it is too late.
    pub fn check(&self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.watched.is_late.get() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let mut waker = self.watched.waker.borrow_mut();
        match &mut *waker {
            Some(known) => known.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Ok(())
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.watch.times.borrow_mut()[self.place] = Times::new();
        self.watch.free.borrow_mut().push(self.place);
    }
}

#[cfg(test)]
mod tests;
