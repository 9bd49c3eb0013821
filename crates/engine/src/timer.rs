//! When is something due, to within microseconds?
//!
//! Tokio's own timers tick once a millisecond, which is more than most answers take. Here a heap of absolute deadlines
//! ([`Deadlines`]) is driven by one `timerfd` per worker ([`Timer`]); the dispatcher is handed each due token at once
//! and can act on it directly.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::clock::{SECOND_NS, monotonic_ns};

/// Below this many deadlines, cancelled ones are left where they are until they come due.
const SMALL_HEAP: usize = 1024;

/// Names one scheduled token; stays unique when its place is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket {
    slot: u32,
    generation: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at_ns: u64,
    /// First scheduled, first served, among equal deadlines.
    order: u64,
    slot: u32,
    generation: u32,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    token: Option<T>,
}

/// A heap of deadlines, each with a token. Pure: time is an argument.
#[derive(Debug)]
pub struct Deadlines<T> {
    heap: BinaryHeap<Reverse<Entry>>,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    order: u64,
}

impl<T> Default for Deadlines<T> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), slots: Vec::new(), free: Vec::new(), order: 0 }
    }
}

impl<T> Deadlines<T> {
    /// Adds a token that is due at `at_ns`.
    pub fn schedule(&mut self, at_ns: u64, token: T) -> Ticket {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(Slot { generation: 0, token: None });
                (self.slots.len() - 1) as u32
            }
        };
        let place = &mut self.slots[slot as usize];
        place.token = Some(token);
        let generation = place.generation;
        self.order += 1;
        self.heap.push(Reverse(Entry { at_ns, order: self.order, slot, generation }));
        Ticket { slot, generation }
    }

    /// Takes a token back; none when it has come due (or was taken back) already.
    pub fn cancel(&mut self, ticket: Ticket) -> Option<T> {
        let token = self.take(ticket.slot, ticket.generation);
        if self.heap.len() > SMALL_HEAP && self.heap.len() > 2 * self.len() {
            let slots = &self.slots;
            self.heap.retain(|Reverse(entry)| is_live(slots, entry));
        }
        token
    }

    /// The token with the earliest deadline, when that is not after `now_ns`, and the deadline.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<(u64, T)> {
        while self.next_ns()? <= now_ns {
            let Reverse(entry) = self.heap.pop()?;
            if let Some(token) = self.take(entry.slot, entry.generation) {
                return Some((entry.at_ns, token));
            }
        }
        None
    }

    /// The earliest deadline.
    pub fn next_ns(&mut self) -> Option<u64> {
        while let Some(Reverse(entry)) = self.heap.peek() {
            if is_live(&self.slots, entry) {
                return Some(entry.at_ns);
            }
            self.heap.pop();
        }
        None
    }

    /// Number of tokens that are waiting.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// True when nothing is waiting.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn take(&mut self, slot: u32, generation: u32) -> Option<T> {
        let place = self.slots.get_mut(slot as usize).filter(|place| place.generation == generation)?;
        let token = place.token.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(slot);
        Some(token)
    }
}

fn is_live<T>(slots: &[Slot<T>], entry: &Entry) -> bool {
    slots[entry.slot as usize].generation == entry.generation
}

/// Deadlines on `CLOCK_MONOTONIC`, kept by one `timerfd`. Lives in one thread; share it with `Rc`.
#[derive(Debug)]
pub struct Timer<T> {
    deadlines: RefCell<Deadlines<T>>,
    descriptor: AsyncFd<OwnedFd>,
    /// The deadline that the descriptor is set to.
    armed_ns: Cell<Option<u64>>,
    /// While tokens are handed out, scheduling leaves the descriptor alone: it is set once at the end.
    dispatching: Cell<bool>,
}

impl<T> Timer<T> {
    /// Needs a tokio runtime with I/O.
    pub fn new() -> io::Result<Self> {
        let descriptor =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?;
        // SAFETY: an `OwnedFd` that is moved in keeps naming the same open file until it is dropped with the `AsyncFd`.
        let descriptor = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?;
        Ok(Self {
            deadlines: RefCell::default(),
            descriptor,
            armed_ns: Cell::new(None),
            dispatching: Cell::new(false),
        })
    }

    /// Hands `token` to the dispatcher at `at_ns`, or at once when that has passed.
    pub fn schedule(&self, at_ns: u64, token: T) -> Ticket {
        let ticket = self.deadlines.borrow_mut().schedule(at_ns, token);
        if !self.dispatching.get() && self.armed_ns.get().is_none_or(|armed| at_ns < armed) {
            self.arm(at_ns);
        }
        ticket
    }

    /// Takes a token back; none when it has been handed out already.
    pub fn cancel(&self, ticket: Ticket) -> Option<T> {
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

    /// Hands out due tokens, each with its deadline, until it is dropped; `due` may schedule and cancel. One
    /// dispatcher per timer.
    pub async fn dispatch(&self, mut due: impl FnMut(u64, T)) -> io::Result<()> {
        loop {
            // What comes due meanwhile waits for the next round, so that a flood of deadlines does not keep the
            // worker from its sockets.
            let now_ns = monotonic_ns();
            self.dispatching.set(true);
            loop {
                // One at a time: the callback may change what is due next.
                let next = self.deadlines.borrow_mut().pop_due(now_ns);
                let Some((at_ns, token)) = next else { break };
                due(at_ns, token);
            }
            self.dispatching.set(false);
            self.armed_ns.set(None);
            let next_ns = self.deadlines.borrow_mut().next_ns();
            match next_ns {
                Some(at_ns) if at_ns <= monotonic_ns() => tokio::task::yield_now().await,
                Some(at_ns) => self.wait(at_ns).await?,
                None => self.fired().await?,
            }
        }
    }

    async fn wait(&self, at_ns: u64) -> io::Result<()> {
        self.arm(at_ns);
        self.fired().await
    }

    /// Nothing is read from the descriptor: each expiry is an event of its own, and setting it anew forgets earlier ones.
    async fn fired(&self) -> io::Result<()> {
        self.descriptor.readable().await?.clear_ready();
        Ok(())
    }

    fn arm(&self, at_ns: u64) {
        self.armed_ns.set(Some(at_ns));
        // An instant of zero would switch the timer off.
        let at_ns = at_ns.max(1);
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec { tv_sec: (at_ns / SECOND_NS) as i64, tv_nsec: (at_ns % SECOND_NS) as _ };
        let setting = Itimerspec { it_interval: zero, it_value: value };
        timerfd_settime(self.descriptor.get_ref(), TimerfdTimerFlags::ABSTIME, &setting)
            .expect("the descriptor is a timer and the instant is valid");
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tokens_come_due_in_order_and_equal_deadlines_in_order_of_scheduling() {
        let mut deadlines = Deadlines::default();
        for (at_ns, token) in [(20, 'c'), (10, 'a'), (20, 'd'), (10, 'b')] {
            deadlines.schedule(at_ns, token);
        }
        assert_eq!(deadlines.pop_due(9), None);
        let due: String = std::iter::from_fn(|| deadlines.pop_due(20)).map(|(_, token)| token).collect();
        assert_eq!(due, "abcd");
        assert!(deadlines.is_empty());
    }

    #[test]
    fn a_ticket_is_good_for_one_token_only() {
        let mut deadlines = Deadlines::default();
        let first = deadlines.schedule(1, 'a');
        assert_eq!(deadlines.cancel(first), Some('a'));
        let second = deadlines.schedule(1, 'b');
        assert_eq!(deadlines.cancel(first), None, "its place is used by another now");
        assert_eq!(deadlines.pop_due(1), Some((1, 'b')));
        assert_eq!(deadlines.cancel(second), None, "came due");
    }

    #[test]
    fn cancelled_deadlines_do_not_pile_up() {
        let mut deadlines = Deadlines::default();
        deadlines.schedule(u64::MAX, 0);
        for i in 0..100_000 {
            let ticket = deadlines.schedule(1_000_000, i);
            deadlines.cancel(ticket);
        }
        assert!(deadlines.heap.len() <= SMALL_HEAP + 1, "{}", deadlines.heap.len());
        assert!(deadlines.slots.len() <= 2);
    }

    proptest! {
        #[test]
        fn it_does_what_a_sorted_map_does(steps in prop::collection::vec((0u8..4, 0u64..50), 0..200)) {
            let mut deadlines = Deadlines::default();
            let mut model = BTreeMap::new();
            let mut tickets = Vec::new();
            for (number, (what, value)) in steps.into_iter().enumerate() {
                match what {
                    0 | 1 => {
                        tickets.push((deadlines.schedule(value, number), (value, number)));
                        model.insert((value, number), ());
                    }
                    2 if !tickets.is_empty() => {
                        let (ticket, key) = tickets[value as usize % tickets.len()];
                        let there = model.remove(&key).is_some();
                        prop_assert_eq!(deadlines.cancel(ticket), there.then_some(key.1));
                    }
                    _ => {
                        let first = model.first_key_value().map(|(key, ())| *key).filter(|key| key.0 <= value);
                        prop_assert_eq!(deadlines.pop_due(value), first);
                        first.map(|key| model.remove(&key));
                    }
                }
                prop_assert_eq!(deadlines.len(), model.len());
                prop_assert_eq!(deadlines.next_ns(), model.keys().next().map(|key| key.0));
            }
        }
    }

    #[test]
    fn the_dispatcher_hands_out_what_is_due_and_what_is_scheduled_meanwhile() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("starts");
        let order = runtime.block_on(async {
            let timer = Rc::new(Timer::new().expect("a timer"));
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
        });
        assert_eq!(order, [1, 2, 3, 4]);
    }
}
