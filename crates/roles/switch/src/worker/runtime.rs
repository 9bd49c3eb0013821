//! The tasks of a worker, and what wakes them. One thread with tasks, sockets and a tick of its own.
//!
//! A runtime that serves every purpose counts references in ways that threads can share, locks what no other thread touches, and
//! makes a place for every socket that it takes away again. Here tasks are numbers in a list, nothing is shared, and a socket
//! is only made known to the system once a task has to wait for it ([`super::socket`]).

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use assay_base::clock::monotonic_ns;
use assay_net::gather::Lull;
use assay_net::timer::{arm, create};
use assay_net::watch::TICK_NS;
use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::set_current_timer_slack;
use rustix::time::TimerfdFlags;

pub use sockets::{ENDED, FAILED, Place, READABLE, WRITABLE};
use sockets::{FIRST_OTHER, Sockets};

mod sockets;

/// Rounds of tasks that wake each other before sockets are looked at again.
const ROUNDS: u32 = 8;
/// Bytes that a task may read and write before sockets are looked at again. Others wait for so much work of each busy task.
const SHARE: u32 = 256 * 1024;
/// What a read or a write costs of it at least.
const LEAST_COST: u32 = 4 * 1024;
/// The number of the event that says that another thread has something.
const CALLED: u64 = FIRST_OTHER;
/// The number of the event that says that a tick has passed.
const TICKED: u64 = FIRST_OTHER + 1;

thread_local! {
    /// Tasks that are to be run.
    static READY: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    static RUNTIME: RefCell<Option<Rc<Runtime>>> = const { RefCell::new(None) };
    /// When the running task read the time; 0: it has not.
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
    /// How often sockets were looked at.
    static TURNS: Cell<u64> = const { Cell::new(0) };
    /// For how long the thread may rest at most before it waits.
    static LONGEST_REST_NS: Cell<u64> = const { Cell::new(0) };
    /// Connections that were accepted since the thread last thought of a rest.
    static ACCEPTED: Cell<u32> = const { Cell::new(0) };
    /// Bytes that the running task may still read and write.
    static LEFT: Cell<u32> = const { Cell::new(SHARE) };
    /// The running task wanted to go on, and its share was used up.
    static IS_SPENT: Cell<bool> = const { Cell::new(false) };
}

/// What a worker's thread has of tasks and sockets.
pub struct Runtime {
    sockets: Rc<Sockets>,
    /// Ticks: it is set anew once a tick, where a limit of each wait would be set, and taken back, with each.
    timer: OwnedFd,
    tasks: RefCell<Tasks>,
    /// Room for the tasks that are run now.
    batch: RefCell<Vec<u32>>,
    /// Tasks that have used up their share, until sockets were looked at.
    spent: RefCell<Vec<u32>>,
    /// Tasks that wait for the next tick.
    ticker: RefCell<Option<Waker>>,
    lull: Cell<Lull>,
    /// Sockets that something has happened to since it last thought of a rest.
    arrived: Cell<u32>,
}

#[derive(Default)]
struct Tasks {
    all: Vec<Task>,
    free: Vec<u32>,
}

/// A place for a task. Its waker outlives the task: waking whoever has the place by then does no harm.
struct Task {
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    waker: Waker,
    /// Its share is used up: whoever wakes it, it does not run before sockets were looked at.
    is_spent: bool,
}

/// Wakes a task of the thread that made it. It must not be called on another: there, another task has its number, and its own
/// would sleep on.
struct Call {
    task: u32,
    /// Which thread it is for, as [`here`] tells threads apart.
    thread: usize,
}

/// Tells this thread from all others that run: where its list of tasks lies.
fn here(ready: &RefCell<Vec<u32>>) -> usize {
    std::ptr::from_ref(ready).addr()
}

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // When the thread ends there is nothing left to run.
        let _ = READY.try_with(|ready| {
            assert_eq!(here(ready), self.thread, "a task of a worker was woken on another thread");
            ready.borrow_mut().push(self.task);
        });
    }
}

/// Wakes the first task from any thread.
struct CallFirst {
    is_called: AtomicBool,
    event: OwnedFd,
}

impl Wake for CallFirst {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_called.swap(true, Ordering::AcqRel) {
            // It cannot be full: nobody adds that often.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }
}

fn current() -> io::Result<Rc<Runtime>> {
    RUNTIME.with(|current| current.borrow().clone()).ok_or_else(|| io::Error::other("no worker runs here"))
}

/// A task that was started.
pub struct Started(Option<(Rc<Runtime>, u32)>);

impl Started {
    /// Ends it where it is. Not for tasks that may have ended by themselves: another may have their place.
    pub fn end(self) {
        let Some((runtime, number)) = self.0 else { return };
        let future = runtime.tasks.borrow_mut().all[number as usize].future.take();
        if future.is_some() {
            runtime.tasks.borrow_mut().free.push(number);
        }
    }
}

/// Runs a task on this thread, beside others.
pub fn spawn(future: impl Future<Output = ()> + 'static) -> Started {
    // Without a runtime no task could wait for it.
    let Ok(runtime) = current() else { return Started(None) };
    let mut tasks = runtime.tasks.borrow_mut();
    let number = tasks.free.pop().unwrap_or_else(|| {
        let number = tasks.all.len() as u32;
        let call = Call { task: number, thread: READY.with(here) };
        tasks.all.push(Task { future: None, waker: Arc::new(call).into(), is_spent: false });
        number
    });
    let task = &mut tasks.all[number as usize];
    task.future = Some(Box::pin(future));
    task.waker.wake_by_ref();
    drop(tasks);
    Started(Some((runtime, number)))
}

/// Now, in nanoseconds: the instant of the running task's first call in this turn. A turn takes microseconds.
pub fn now_ns() -> u64 {
    NOW_NS.with(|now| {
        if now.get() == 0 {
            now.set(monotonic_ns());
        }
        now.get()
    })
}

/// This thread may rest for so long before it waits, so that messages come together; 0: not at all.
pub fn may_rest(longest: Duration) {
    LONGEST_REST_NS.set(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX));
}

/// A connection was accepted.
pub fn accepted() {
    ACCEPTED.set(ACCEPTED.get().saturating_add(1));
}

/// How often this thread has looked at its sockets.
pub fn turn() -> u64 {
    TURNS.get()
}

/// Whether the running task may read or write once more; if not, it runs again once sockets were looked at.
pub fn may_go_on() -> bool {
    let may = LEFT.get() > 0;
    IS_SPENT.set(!may);
    may
}

/// The running task has read or written so many bytes.
pub fn spend(bytes: usize) {
    let cost = u32::try_from(bytes).unwrap_or(u32::MAX).max(LEAST_COST);
    LEFT.set(LEFT.get().saturating_sub(cost));
}

/// Another task runs, with a share of its own.
fn begin_task() {
    NOW_NS.set(0);
    LEFT.set(SHARE);
    IS_SPENT.set(false);
}

/// Waits for the next tick, which comes after this time ([`TICK_NS`], or less). One task may.
pub async fn tick(after_ns: u64) {
    if after_ns < TICK_NS
        && let Ok(runtime) = current()
    {
        // If it cannot be set, it comes when it would have come.
        let _ = arm(&runtime.timer, monotonic_ns() + after_ns);
    }
    let mut is_first = true;
    poll_fn(|cx| {
        if !std::mem::take(&mut is_first) {
            let is_over = current().is_ok_and(|runtime| runtime.ticker.borrow().is_none());
            return if is_over { Poll::Ready(()) } else { Poll::Pending };
        }
        if let Ok(runtime) = current() {
            *runtime.ticker.borrow_mut() = Some(cx.waker().clone());
        }
        Poll::Pending
    })
    .await;
}

/// Runs `main`, and the tasks that come of it, until `main` has ended; the others end where they are.
pub fn run<T>(main: impl Future<Output = T>) -> io::Result<T> {
    let runtime = Rc::new(Runtime {
        sockets: Rc::new(Sockets::new()?),
        timer: create(TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?,
        tasks: RefCell::default(),
        batch: RefCell::default(),
        spent: RefCell::default(),
        ticker: RefCell::new(None),
        lull: Cell::default(),
        arrived: Cell::new(0),
    });
    // Short rests would otherwise last 50 µs longer. A system that does not allow it rests longer.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let call = Arc::new(CallFirst {
        is_called: AtomicBool::new(true),
        event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
    });
    runtime.sockets.add(&call.event, CALLED)?;
    runtime.sockets.add(&runtime.timer, TICKED)?;
    arm(&runtime.timer, monotonic_ns() + TICK_NS)?;
    RUNTIME.with(|current| *current.borrow_mut() = Some(Rc::clone(&runtime)));
    let ended = runtime.run(pin!(main), &call);
    // Tasks may look for the runtime while they end.
    let tasks = std::mem::take(&mut *runtime.tasks.borrow_mut());
    drop(tasks);
    RUNTIME.with(|current| *current.borrow_mut() = None);
    READY.with(|ready| ready.borrow_mut().clear());
    ended
}

impl Runtime {
    fn run<T>(&self, mut main: Pin<&mut impl Future<Output = T>>, call: &Arc<CallFirst>) -> io::Result<T> {
        let waker = Waker::from(Arc::clone(call));
        let mut cx = Context::from_waker(&waker);
        loop {
            let mut rounds = 0;
            while rounds < ROUNDS {
                let is_called = call.is_called.swap(false, Ordering::AcqRel);
                begin_task();
                if is_called && let Poll::Ready(ended) = main.as_mut().poll(&mut cx) {
                    return Ok(ended);
                }
                if IS_SPENT.get() {
                    waker.wake_by_ref();
                }
                if !self.run_ready() && !is_called {
                    break;
                }
                rounds += 1;
            }
            let has_more = rounds == ROUNDS
                || self.sockets.is_slow_due()
                || !self.spent.borrow().is_empty()
                || READY.with(|ready| !ready.borrow().is_empty());
            self.wait(has_more)?;
            self.renew_shares();
        }
    }

    /// Sockets were looked at: those that have used up their share run again, behind those that something has happened to.
    fn renew_shares(&self) {
        let mut tasks = self.tasks.borrow_mut();
        for number in self.spent.borrow_mut().drain(..) {
            let task = &mut tasks.all[number as usize];
            task.is_spent = false;
            task.waker.wake_by_ref();
        }
    }

    /// Runs all tasks that are to be run; false: there was none.
    fn run_ready(&self) -> bool {
        let mut batch = self.batch.take();
        READY.with(|ready| std::mem::swap(&mut *ready.borrow_mut(), &mut batch));
        let any = !batch.is_empty();
        for number in batch.drain(..) {
            self.run_task(number);
        }
        self.batch.replace(batch);
        any
    }

    fn run_task(&self, number: u32) {
        let (mut future, waker) = {
            let mut tasks = self.tasks.borrow_mut();
            let Some(task) = tasks.all.get_mut(number as usize).filter(|task| !task.is_spent) else { return };
            let Some(future) = task.future.take() else { return };
            (future, task.waker.clone())
        };
        begin_task();
        let mut cx = Context::from_waker(&waker);
        // A bug in what one connection does must not end the others; the panic has said what it was.
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx)));
        if matches!(polled, Ok(Poll::Pending)) {
            let task = &mut self.tasks.borrow_mut().all[number as usize];
            task.future = Some(future);
            task.is_spent = IS_SPENT.get();
            if task.is_spent {
                self.spent.borrow_mut().push(number);
            }
        } else {
            // What it had may start others when it goes.
            drop(future);
            self.tasks.borrow_mut().free.push(number);
        }
    }

    /// Lets messages come together before the thread looks for them ([`Lull`]).
    fn rest(&self) {
        let longest_ns = LONGEST_REST_NS.get();
        let (arrived, connections) = (self.arrived.take(), ACCEPTED.take());
        if longest_ns == 0 {
            return;
        }
        let mut lull = self.lull.get();
        let rest_ns = lull.rest_ns(monotonic_ns(), arrived, connections, longest_ns);
        self.lull.set(lull);
        if rest_ns > 0 {
            std::thread::sleep(Duration::from_nanos(rest_ns));
        }
    }

    /// Waits until something happens; looks whether something has, when there is more to do.
    fn wait(&self, has_more: bool) -> io::Result<()> {
        TURNS.set(TURNS.get() + 1);
        if !has_more {
            self.rest();
        }
        let happened = self.sockets.look(!has_more, |number| {
            if number == TICKED {
                arm(&self.timer, monotonic_ns() + TICK_NS)?;
                self.sockets.tick();
                if let Some(ticker) = self.ticker.borrow_mut().take() {
                    ticker.wake();
                }
            }
            Ok(())
        })?;
        self.arrived.set(self.arrived.get().saturating_add(happened));
        Ok(())
    }

    fn sockets(&self) -> Rc<Sockets> {
        Rc::clone(&self.sockets)
    }
}

#[cfg(test)]
mod tests;
