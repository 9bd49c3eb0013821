//! A timer that is exact to within microseconds.
//!
//! Tokio's own timers tick once a millisecond, which is more than most responses take. Here a heap of absolute deadlines
//! ([`TimerQueue`]) is driven by one `timerfd` per worker ([`Timer`]); the dispatcher is handed each due token at once
//! and can act on it directly. It counts how late it was itself ([`lag`]), and may poll before a deadline ([`spin`]).

pub mod lag;
mod queue;
pub mod spin;

use std::cell::{Cell, RefCell};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::thread::set_current_timer_slack;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use self::lag::LagRecorder;
pub use self::queue::{TimerKey, TimerQueue};
use self::spin::{Spin, SpinAction};
use crate::coalesce::{LowQuantile, ResponseCoalescer};
use crate::sockets::{Events, Readiness, Sockets};
use assay_base::clock::{SECOND_NS, monotonic_ns};

/// The timer's own key among sockets.
const TIMER_KEY: u64 = u64::MAX;

/// Handler of the events of a thread that is driven by a timer and sockets.
pub trait EventHandler<T> {
    /// Handles a token that was due at `at_ns`.
    fn on_timer(&mut self, at_ns: u64, token: T);
    /// Handles the socket of this key, which is less than [`u64::MAX`]. Returns the number of messages: several can come together on one
    /// connection of HTTP/2.
    fn on_ready(&mut self, key: u64, readiness: Readiness) -> u32;
    /// Number of requests in flight.
    fn in_flight(&self) -> u64;
    /// Estimate of the time of the quickest responses.
    fn low_response_time(&self) -> LowQuantile;
    /// Whether there is nothing more to do.
    fn is_finished(&self) -> bool;
}

/// Deadlines on `CLOCK_MONOTONIC`, kept by one `timerfd`. Lives in one thread; share it with `Rc`.
#[derive(Debug)]
pub struct Timer<T> {
    deadlines: RefCell<TimerQueue<T>>,
    descriptor: AsyncFd<OwnedFd>,
    /// Time for which the descriptor is armed.
    armed_ns: Cell<Option<u64>>,
    /// While tokens are handed out, scheduling leaves the descriptor alone: it is set once at the end.
    dispatching: Cell<bool>,
    spin: Cell<Spin>,
    account: RefCell<LagRecorder>,
}

impl<T> Timer<T> {
    /// Polls for `spin_ns` before a deadline, sleeps otherwise. Needs a tokio runtime with I/O.
    pub fn new(spin_ns: u64) -> io::Result<Self> {
        let descriptor = create(TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        // SAFETY: an `OwnedFd` that is moved in keeps naming the same open file until it is dropped with the `AsyncFd`.
        let descriptor = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?;
        Ok(Self {
            deadlines: RefCell::default(),
            descriptor,
            armed_ns: Cell::new(None),
            dispatching: Cell::new(false),
            spin: Cell::new(Spin::new(spin_ns)),
            account: RefCell::default(),
        })
    }

    /// Hands `token` to the dispatcher at `at_ns`, or at once when that has passed.
    pub fn schedule(&self, at_ns: u64, token: T) -> TimerKey {
        let ticket = self.deadlines.borrow_mut().schedule(at_ns, token);
        if !self.dispatching.get() {
            let wake_ns = self.spin.get().wake_ns(at_ns);
            if self.armed_ns.get().is_none_or(|armed| wake_ns < armed) {
                self.arm(wake_ns);
            }
        }
        ticket
    }

    /// Takes a token back; none when it has been handed out already.
    pub fn cancel(&self, ticket: TimerKey) -> Option<T> {
        self.deadlines.borrow_mut().cancel(ticket)
    }

    /// Number of tokens that are waiting.
    pub fn len(&self) -> usize {
        self.deadlines.borrow().len()
    }

    /// True when nothing is waiting.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn lag_recorder(&self) -> std::cell::RefMut<'_, LagRecorder> {
        self.account.borrow_mut()
    }

    /// Hands out due tokens, each with its deadline, until it is dropped; `due` may schedule and cancel. One
    /// dispatcher per timer.
    pub async fn dispatch(&self, mut due: impl FnMut(u64, T)) -> io::Result<()> {
        self.lag_recorder().start(monotonic_ns());
        loop {
            let looked_ns = monotonic_ns();
            self.dispatch_due(looked_ns, &mut due);
            let Some(at_ns) = self.deadlines.borrow_mut().next_ns() else {
                self.wait_fired().await?;
                continue;
            };
            let now_ns = monotonic_ns();
            self.lag_recorder().record_done(looked_ns, now_ns);
            let mut spin = self.spin.get();
            let wait = spin.wait(at_ns, now_ns);
            self.spin.set(spin);
            match wait {
                // Sockets have their turn first: tokio looks at them before a task that has yielded goes on.
                SpinAction::Over | SpinAction::Poll => tokio::task::yield_now().await,
                SpinAction::Sleep(until_ns) => {
                    self.arm(until_ns);
                    self.wait_fired().await?;
                }
            }
        }
    }

    /// Dispatches without a runtime, for a thread that has nothing else to do: hands due tokens and ready sockets to `handler`, until that
    /// is finished. What is due goes before what has arrived; with many responses in flight, some are coalesced ([`ResponseCoalescer`]).
    pub fn drive(&self, sockets: &Sockets, handler: &mut impl EventHandler<T>) -> io::Result<()> {
        sockets.add(self.descriptor.get_ref(), TIMER_KEY)?;
        self.lag_recorder().start(monotonic_ns());
        // Short sleeps would otherwise last 50 µs longer. A system that does not allow it sleeps longer.
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let (mut events, mut set_to_ns) = (Events::new(), 0);
        let (mut coalescer, mut arrived) = (ResponseCoalescer::default(), 0);
        // When something was last done, by which a response can have been requested.
        let mut active_ns = 0;
        loop {
            let looked_ns = monotonic_ns();
            if self.dispatch_due(looked_ns, &mut |at_ns, token| handler.on_timer(at_ns, token)) {
                active_ns = looked_ns;
                self.lag_recorder().record_done(looked_ns, monotonic_ns());
            }
            if handler.is_finished() {
                return Ok(());
            }
            // Whatever is scheduled meanwhile is looked at before anybody sleeps.
            self.dispatching.set(true);
            for (key, readiness) in events.iter().filter(|(key, _)| *key != TIMER_KEY) {
                arrived += handler.on_ready(key, readiness);
                active_ns = looked_ns;
            }
            self.dispatching.set(false);
            let next_ns = self.deadlines.borrow_mut().next_ns();
            let now_ns = monotonic_ns();
            let mut spin = self.spin.get();
            let wait = next_ns.map(|at_ns| spin.wait(at_ns, now_ns));
            self.spin.set(spin);
            if let Some(SpinAction::Sleep(until_ns)) = wait
                && until_ns != set_to_ns
            {
                self.arm(until_ns);
                set_to_ns = until_ns;
            }
            let polls = spin.polls_for_responses(active_ns, now_ns) && handler.in_flight() > 0;
            let sleeps = !polls && !matches!(wait, Some(SpinAction::Over | SpinAction::Poll));
            // After as many events as are told at once, there are likely to be more.
            if sleeps && !events.is_full() {
                let (in_flight, quick) = (handler.in_flight(), handler.low_response_time());
                let pause_ns =
                    coalescer.pause_ns(now_ns, std::mem::take(&mut arrived), in_flight, quick, next_ns);
                if pause_ns > 0 {
                    std::thread::sleep(Duration::from_nanos(pause_ns));
                }
            }
            sockets.wait(&mut events, sleeps)?;
        }
    }

    /// Hands out all that is due at `now_ns`, and returns whether there was anything. What comes due meanwhile waits for the next round, so
    /// that a flood of deadlines does not keep the worker from its sockets.
    fn dispatch_due(&self, now_ns: u64, due: &mut impl FnMut(u64, T)) -> bool {
        self.dispatching.set(true);
        let mut is_first = true;
        loop {
            // One at a time: the callback may change what is due next.
            let next = self.deadlines.borrow_mut().pop_due(now_ns);
            let Some((at_ns, token)) = next else { break };
            if std::mem::take(&mut is_first) {
                self.lag_recorder().record_served(at_ns, now_ns);
            }
            due(at_ns, token);
        }
        self.dispatching.set(false);
        self.armed_ns.set(None);
        !is_first
    }

    // Nothing is read from the descriptor: each expiry is an event of its own, and setting it anew forgets earlier ones.
    async fn wait_fired(&self) -> io::Result<()> {
        self.descriptor.readable().await?.clear_ready();
        Ok(())
    }

    fn arm(&self, at_ns: u64) {
        self.armed_ns.set(Some(at_ns));
        arm(self.descriptor.get_ref(), at_ns).expect("the descriptor is a timer and the instant is valid");
    }
}

/// A timer on `CLOCK_MONOTONIC` that is not set.
pub fn create(flags: TimerfdFlags) -> io::Result<OwnedFd> {
    Ok(timerfd_create(TimerfdClockId::Monotonic, flags)?)
}

/// Sets a timer to fire once at an instant.
pub fn arm(descriptor: &OwnedFd, at_ns: u64) -> io::Result<()> {
    // An instant of zero would switch the timer off.
    let at_ns = at_ns.max(1);
    let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
    let value = Timespec { tv_sec: (at_ns / SECOND_NS) as i64, tv_nsec: (at_ns % SECOND_NS) as _ };
    let setting = Itimerspec { it_interval: zero, it_value: value };
    timerfd_settime(descriptor, TimerfdTimerFlags::ABSTIME, &setting)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    /// Order in which a timer hands out five tokens, one of which is taken back.
    fn dispatch_due(spin_ns: u64) -> Vec<u32> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("starts");
        runtime.block_on(async {
            let timer = Rc::new(Timer::new(spin_ns).expect("a timer"));
            let (order, now) = (RefCell::new(Vec::new()), monotonic_ns());
            timer.schedule(now + 2_000_000, 3);
            timer.schedule(now + 1_000_000, 2);
            timer.schedule(now.saturating_sub(1), 1);
            let cancelled = timer.schedule(now + 1_500_000, 9);
            assert_eq!(timer.cancel(cancelled), Some(9));
            let done = tokio::sync::Notify::new();
            let dispatch = timer.dispatch(|at_ns, token| {
                assert!(at_ns <= monotonic_ns(), "never early");
                order.borrow_mut().push(token);
                match token {
                    3 => drop(timer.schedule(at_ns + 500_000, 4)),
                    4 => done.notify_one(),
                    _ => {}
                }
            });
            tokio::select! {
                ended = dispatch => panic!("{ended:?}"),
                () = done.notified() => {}
            }
            order.into_inner()
        })
    }

    #[test]
    fn the_dispatcher_hands_out_what_is_due_and_what_is_scheduled_meanwhile() {
        assert_eq!(dispatch_due(0), [1, 2, 3, 4]);
    }

    #[test]
    fn a_dispatcher_that_polls_is_not_early_either() {
        assert_eq!(dispatch_due(300_000), [1, 2, 3, 4]);
        assert_eq!(dispatch_due(u64::MAX), [1, 2, 3, 4]);
    }

    #[test]
    fn a_dispatcher_that_did_not_come_back_knows_how_long() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("starts");
        runtime.block_on(async {
            let timer = Timer::new(0).expect("a timer");
            let now = monotonic_ns();
            timer.lag_recorder().begin(now);
            timer.schedule(now, 1);
            let done = tokio::sync::Notify::new();
            let dispatch = timer.dispatch(|_, token| match token {
                1 => {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    timer.schedule(monotonic_ns() + 1_000_000, 2);
                }
                _ => done.notify_one(),
            });
            tokio::select! {
                ended = dispatch => panic!("{ended:?}"),
                () = done.notified() => {}
            }
            let stalls = timer.lag_recorder().take_stalls();
            assert!(stalls.iter().any(|stall| stall.length_ns() >= 20_000_000), "{stalls:?}");
        });
    }

    /// The dispatcher must begin to wait within a millisecond.
    mod real_tests {
        use super::*;

        #[test]
        fn a_dispatcher_that_was_kept_from_its_work_knows_how_long() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("starts");
            runtime.block_on(async {
                let timer = Timer::new(0).expect("a timer");
                let now = monotonic_ns();
                timer.lag_recorder().begin(now);
                timer.schedule(now + 1_000_000, ());
                let done = tokio::sync::Notify::new();
                let keep = async {
                    while monotonic_ns() < now + 21_000_000 {}
                    done.notified().await;
                };
                tokio::select! {
                    biased;
                    ended = timer.dispatch(|_, ()| done.notify_one()) => panic!("{ended:?}"),
                    () = keep => {}
                }
                let stalls = timer.lag_recorder().take_stalls();
                assert_eq!((stalls.len(), stalls[0].from_ns), (1, now + 1_000_000));
                assert!(stalls[0].length_ns() >= 20_000_000);
            });
        }
    }
}
