//! Deadlines of connections, looked through a few times a second.
//!
//! A timer for every read and write would cost more than the reading. A connection has one deadline, which is a number in a
//! list: setting it costs nothing. All are looked at every [`TICK_NS`], and who is late is woken and told so. The numbers lie beside
//! each other: with ten thousand connections that do nothing, a look takes microseconds, and nobody else waits for it.
//!
//! What a connection waits for is known as well ([`Awaits`]), and for how long, so that those that keep others out can be ended,
//! the one that has waited longest first ([`Watch::dismiss`]). A peer that takes or sends a body gets a *debt*: the time that was
//! waited for it, less what its bytes are worth at the least rate ([`Deadline::set_pace`]). So one that sends a byte now and then is as late as one
//! that sends none.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

/// How often deadlines are looked at; none is kept more exactly than that.
pub const TICK_NS: u64 = 50_000_000;

/// Nobody is late.
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
    /// Since when it waits for what it waits for.
    since_ns: Cell<u64>,
    /// How much of the peer's time is used up.
    debt_ns: Cell<u64>,
    /// Whose place it keeps while it waits for its peer.
    keeps: Cell<u32>,
    awaits: Cell<Awaits>,
}

impl Times {
    fn new() -> Self {
        let zero = || Cell::new(0);
        Self {
            due_ns: Cell::new(NEVER),
            since_ns: zero(),
            debt_ns: zero(),
            keeps: Cell::new(0),
            awaits: Cell::default(),
        }
    }

    /// For how long its peer was waited for, by an instant.
    fn waited_ns(&self, now_ns: u64) -> u64 {
        let debt_ns = if self.awaits.get() == Awaits::Peer { self.debt_ns.get() } else { 0 };
        debt_ns + now_ns.saturating_sub(self.since_ns.get())
    }

    /// It may take so long from now on, less what is owed.
    fn allow(&self, limit: Duration, owed_ns: u64, now_ns: u64) {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX).saturating_sub(owed_ns);
        // What is known of now may be a tick old.
        self.due_ns.set(now_ns.saturating_add(limit_ns).saturating_add(TICK_NS));
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
    /// At an instant.
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

    /// Another wait.
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

    /// Looks through all deadlines; to be called every [`TICK_NS`]. When it is called late, the thread was kept from running,
    /// and could not have seen what came meanwhile: that time counts against nobody.
    pub fn tick(&self, now_ns: u64) {
        let since_ns = now_ns.saturating_sub(self.now_ns.replace(now_ns));
        let lost_ns = since_ns.saturating_sub(2 * TICK_NS);
        let mut late = Vec::new();
        for (place, times) in self.times.borrow().iter().enumerate() {
            let due_ns = &times.due_ns;
            if lost_ns > 0 {
                due_ns.set(due_ns.get().saturating_add(lost_ns));
                // A client owes what it was waited for, not what this thread was.
                times.since_ns.set(times.since_ns.get().saturating_add(lost_ns));
            }
            if due_ns.get() <= now_ns {
                late.push(place);
                if matches!(times.awaits.get(), Awaits::Head | Awaits::Peer) {
                    self.count(|ended| ended.slow += 1);
                }
            }
        }
        late.into_iter().for_each(|place| self.expire(place));
    }

    /// Ends all waits for a request that has not begun, now and from now on.
    pub fn dismiss_idle(&self) {
        self.dismisses.set(true);
        let is_idle = |times: &Times| times.awaits.get() == Awaits::Request;
        let found: Vec<(u64, usize)> = self.waits(is_idle);
        found.into_iter().for_each(|(_, place)| self.expire(place));
    }

    /// Ends waits for a peer to make room for others: `most` of those that `chosen` says, by what they wait for and whose place they
    /// keep, and that have waited for `least` at least; the longest first. How many.
    pub fn dismiss(&self, most: usize, least: Duration, chosen: impl Fn(Awaits, u32) -> bool) -> usize {
        let now_ns = self.now_ns.get();
        let least_ns = u64::try_from(least.as_nanos()).unwrap_or(u64::MAX);
        // One that was told already has no deadline.
        let mut found = self.waits(|times| {
            let awaits = times.awaits.get();
            awaits != Awaits::Other
                && times.due_ns.get() != NEVER
                && times.waited_ns(now_ns) >= least_ns
                && chosen(awaits, times.keeps.get())
        });
        if found.len() > most {
            found.select_nth_unstable_by(most, |own, other| other.cmp(own));
            found.truncate(most);
        }
        for (_, place) in &found {
            self.all.borrow()[*place].is_dismissed.set(true);
            self.expire(*place);
        }
        self.count(|ended| ended.dismissed += found.len() as u64);
        found.len()
    }

    /// For how long those have waited that fit, and where they are.
    fn waits(&self, fits: impl Fn(&Times) -> bool) -> Vec<(u64, usize)> {
        let (times, now_ns) = (self.times.borrow(), self.now_ns.get());
        let fitting = times.iter().enumerate().filter(|(_, times)| fits(times));
        fitting.map(|(place, times)| (times.waited_ns(now_ns), place)).collect()
    }

    fn count(&self, add: impl FnOnce(&mut Ended)) {
        let mut ended = self.ended.get();
        add(&mut ended);
        self.ended.set(ended);
    }

    fn expire(&self, place: usize) {
        self.times.borrow()[place].due_ns.set(NEVER);
        let watched = Rc::clone(&self.all.borrow()[place]);
        watched.is_late.set(true);
        let waker = watched.waker.borrow_mut().take();
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

    /// The peer is a client. It has to send and take bodies at so many bytes a second at least, after the time that it may take for
    /// a part; 0: at any rate.
    pub fn set_pace(&self, bytes_per_s: u64) {
        self.per_byte_ns.set(Some(1_000_000_000u64.checked_div(bytes_per_s).unwrap_or(0)));
    }

    /// The peer owes nothing: another request begins.
    pub fn forgive(&self) {
        self.with(|times, _| times.debt_ns.set(0));
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
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn who_is_late_is_told_and_others_are_not() {
        let watch = Rc::new(Watch::new(0));
        let (first, second) = (watch.enter(), watch.enter());
        let mut cx = Context::from_waker(Waker::noop());
        first.set(Duration::from_millis(100));
        second.set(Duration::from_secs(100));
        assert!(first.check(&mut cx).is_ok());
        watch.tick(100_000_000);
        assert!(first.check(&mut cx).is_ok(), "a tick is allowed for");
        watch.tick(150_000_000);
        assert!(first.check(&mut cx).is_err() && second.check(&mut cx).is_ok());
        first.set(Duration::from_secs(1));
        assert!(first.check(&mut cx).is_ok(), "a new deadline");
    }

    #[test]
    fn time_in_which_nobody_looked_counts_against_nobody() {
        let watch = Rc::new(Watch::new(0));
        let deadline = watch.enter();
        let mut cx = Context::from_waker(Waker::noop());
        deadline.set(Duration::from_millis(300));
        watch.tick(10_000_000_000);
        assert!(deadline.check(&mut cx).is_ok());
        watch.tick(10_100_000_000);
        watch.tick(10_200_000_000);
        assert!(deadline.check(&mut cx).is_ok());
        watch.tick(10_300_000_000);
        assert!(deadline.check(&mut cx).is_err());
    }

    #[test]
    fn leaving_keeps_the_places_of_the_others() {
        let watch = Rc::new(Watch::new(0));
        let mut all: Vec<Deadline> = (0..5).map(|_| watch.enter()).collect();
        all.remove(1);
        all.remove(0);
        all[2].set_awaits(Awaits::Request);
        watch.dismiss_idle();
        let mut cx = Context::from_waker(Waker::noop());
        let late: Vec<bool> = all.iter().map(|one| one.check(&mut cx).is_err()).collect();
        assert_eq!(late, [false, false, true]);
        let entered = [watch.enter(), watch.enter()];
        assert!(entered.iter().all(|one| one.check(&mut cx).is_ok()), "another's place is a new one's");
        drop((all, entered));
        assert_eq!((watch.free.borrow().len(), watch.all.borrow().len()), (5, 5));
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn who_sends_a_byte_now_and_then_is_as_late_as_who_sends_none() {
        let watch = Rc::new(Watch::new(0));
        let all: Vec<Deadline> = (0..3).map(|_| watch.enter()).collect();
        all.iter().for_each(|one| one.set_pace(100));
        let mut cx = Context::from_waker(Waker::noop());
        let mut late_s = [0; 3];
        for second in 0..60 {
            // For nine tenths of each second they are waited for, and for the rest their server is.
            all.iter().for_each(|one| one.await_peer(Duration::from_secs(10)));
            (1..=18).for_each(|step| watch.tick(second * SECOND + step * TICK_NS));
            for ((one, bytes), late_s) in all.iter().zip([0, 1, 100]).zip(&mut late_s) {
                if one.check(&mut cx).is_err() && *late_s == 0 {
                    *late_s = second;
                }
                one.earn(bytes);
                one.set(Duration::from_secs(100));
            }
            (19..=20).for_each(|step| watch.tick(second * SECOND + step * TICK_NS));
        }
        assert_eq!(late_s, [11, 11, 0], "the last owes nothing");
        assert!(watch.ended().slow > 0);
    }

    #[test]
    fn a_client_does_not_owe_the_time_in_which_nobody_looked() {
        let watch = Rc::new(Watch::new(0));
        let client = watch.enter();
        client.set_pace(100);
        client.await_peer(Duration::from_secs(10));
        watch.tick(60 * SECOND);
        client.earn(0);
        client.await_peer(Duration::from_secs(10));
        let mut cx = Context::from_waker(Waker::noop());
        (1..=190).for_each(|step| watch.tick(60 * SECOND + step * TICK_NS));
        assert!(client.check(&mut cx).is_ok(), "it has kept a server waiting for 9.5 s");
        (191..=202).for_each(|step| watch.tick(60 * SECOND + step * TICK_NS));
        assert!(client.check(&mut cx).is_err());
    }

    #[test]
    fn those_that_have_waited_longest_make_room_and_nobody_who_has_just_begun() {
        let watch = Rc::new(Watch::new(0));
        let all: Vec<Deadline> = (0..6).map(|_| watch.enter()).collect();
        all.iter().for_each(|one| one.set_pace(100));
        let mut cx = Context::from_waker(Waker::noop());
        for (second, one) in all.iter().enumerate() {
            (1..=20).for_each(|step| watch.tick(second as u64 * SECOND + step * TICK_NS));
            one.set(Duration::from_secs(100));
            match second {
                0 => one.set_awaits(Awaits::Other),
                1 => one.set_awaits(Awaits::Request),
                2 => one.set_awaits(Awaits::Head),
                _ => {
                    one.keep(second as u32);
                    one.await_peer(Duration::from_secs(100));
                }
            }
        }
        let mut late = || all.iter().map(|one| u8::from(one.check(&mut cx).is_err())).collect::<Vec<u8>>();
        let second = Duration::from_secs(1);
        assert_eq!(watch.dismiss(9, second, |awaits, keeps| awaits == Awaits::Peer && keeps == 4), 1);
        assert_eq!(late(), [0, 0, 0, 0, 1, 0]);
        assert_eq!(watch.dismiss(2, second, |_, _| true), 2);
        assert_eq!(late(), [0, 1, 1, 0, 1, 0]);
        assert_eq!(
            watch.dismiss(9, second, |_, _| true),
            1,
            "the last has begun just now, and the first waits for no peer"
        );
        assert_eq!(late(), [0, 1, 1, 1, 1, 0]);
        assert_eq!(watch.ended(), Ended { slow: 0, dismissed: 4 });
    }

    #[test]
    fn late_heads_and_bodies_are_counted_and_idle_connections_are_not() {
        let watch = Rc::new(Watch::new(0));
        let all: Vec<Deadline> = (0..4).map(|_| watch.enter()).collect();
        all.iter().for_each(|one| one.set_pace(100));
        all.iter().for_each(|one| one.set(Duration::from_millis(100)));
        all[0].set_awaits(Awaits::Request);
        all[1].set_awaits(Awaits::Head);
        all[2].await_peer(Duration::from_millis(100));
        (1..9).for_each(|tick| watch.tick(tick * TICK_NS));
        assert_eq!(watch.ended(), Ended { slow: 2, dismissed: 0 });
    }
}
