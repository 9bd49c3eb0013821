//! Deadlines of connections, looked through a few times a second.
//!
//! A timer for every read and write would cost more than the reading. A connection has one deadline, which is a number in a
//! cell: setting it costs nothing. All are looked at every [`TICK_NS`], and who is late is woken and told so.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

/// How often deadlines are looked at; none is kept more exactly than that.
pub const TICK_NS: u64 = 50_000_000;

/// The deadlines of a worker.
pub struct Watch {
    now_ns: Cell<u64>,
    /// Whoever is idle, or becomes it, is sent away.
    dismisses: Cell<bool>,
    all: RefCell<Vec<Rc<Watched>>>,
}

/// The deadline of a wait.
pub struct Watched {
    due_ns: Cell<u64>,
    is_late: Cell<bool>,
    /// Waits for a request that has not begun: may be sent away when all is to end.
    is_idle: Cell<bool>,
    waker: RefCell<Option<Waker>>,
    place: Cell<usize>,
}

impl Watch {
    /// At an instant.
    pub fn new(now_ns: u64) -> Self {
        Self { now_ns: Cell::new(now_ns), dismisses: Cell::new(false), all: RefCell::default() }
    }

    /// Another wait.
    pub fn enter(self: &Rc<Self>) -> Deadline {
        let mut all = self.all.borrow_mut();
        let watched = Rc::new(Watched {
            due_ns: Cell::new(u64::MAX),
            is_late: Cell::new(false),
            is_idle: Cell::new(false),
            waker: RefCell::new(None),
            place: Cell::new(all.len()),
        });
        all.push(Rc::clone(&watched));
        Deadline { watch: Rc::clone(self), watched }
    }

    /// Looks through all deadlines; to be called every [`TICK_NS`]. When it is called late, the thread was kept from running,
    /// and could not have seen what came meanwhile: that time counts against nobody.
    pub fn tick(&self, now_ns: u64) {
        let since_ns = now_ns.saturating_sub(self.now_ns.replace(now_ns));
        let lost_ns = since_ns.saturating_sub(2 * TICK_NS);
        for watched in self.all.borrow().iter() {
            watched.due_ns.set(watched.due_ns.get().saturating_add(lost_ns));
            if watched.due_ns.get() <= now_ns {
                watched.expire();
            }
        }
    }

    /// Ends all waits for a request that has not begun, now and from now on.
    pub fn dismiss_idle(&self) {
        self.dismisses.set(true);
        self.all.borrow().iter().filter(|watched| watched.is_idle.get()).for_each(|watched| watched.expire());
    }
}

impl Watched {
    fn expire(&self) {
        self.is_late.set(true);
        self.due_ns.set(u64::MAX);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// A connection's own deadline. Everything that its task waits for is under it.
pub struct Deadline {
    watch: Rc<Watch>,
    watched: Rc<Watched>,
}

impl Deadline {
    /// From now on it may take so long.
    pub fn set(&self, limit: Duration) {
        let limit_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        // What is known of now may be a tick old.
        let due_ns = self.watch.now_ns.get().saturating_add(limit_ns).saturating_add(TICK_NS);
        self.watched.due_ns.set(due_ns);
        self.watched.is_late.set(false);
    }

    /// Whether it waits for a request that has not begun.
    pub fn set_idle(&self, is_idle: bool) {
        self.watched.is_idle.set(is_idle);
        if is_idle && self.watch.dismisses.get() {
            self.watched.is_late.set(true);
        }
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
        let mut all = self.watch.all.borrow_mut();
        let place = self.watched.place.get();
        all.swap_remove(place);
        if let Some(moved) = all.get(place) {
            moved.place.set(place);
        }
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
        all[2].set_idle(true);
        watch.dismiss_idle();
        let mut cx = Context::from_waker(Waker::noop());
        let late: Vec<bool> = all.iter().map(|one| one.check(&mut cx).is_err()).collect();
        assert_eq!(late, [false, false, true]);
        drop(all);
        assert!(watch.all.borrow().is_empty());
    }
}
