//! Single-threaded runtime of a worker: tasks, wakers, sockets and a tick.
//!
//! A general-purpose runtime counts references atomically, locks what no other thread touches, and registers and deregisters
//! every socket. Here tasks are numbers in a list, nothing is shared, and a socket is only registered once a task has to wait for
//! it ([`super::socket`]).

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
use assay_net::coalesce::ConnectionCoalescer;
use assay_net::deadlines::TICK_NS;
use assay_net::timer::{arm, create};
use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::set_current_timer_slack;
use rustix::time::TimerfdFlags;

pub use reactor::{ENDED, FAILED, READABLE, Registration, WRITABLE};
use reactor::{FIRST_NON_SOCKET, Reactor};

mod reactor;

/// Rounds of tasks that wake each other before sockets are polled again.
const ROUNDS: u32 = 8;
/// Bytes that a task may read and write before sockets are polled again: a bound on how long others wait for it.
const BUDGET_BYTES: u32 = 256 * 1024;
/// Minimum cost of a read or a write.
const MIN_COST: u32 = 4 * 1024;
/// Event number of a wake-up from another thread.
const WAKE_EVENT: u64 = FIRST_NON_SOCKET;
/// Event number of the tick.
const TICK_EVENT: u64 = FIRST_NON_SOCKET + 1;

thread_local! {
    static READY: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    static RUNTIME: RefCell<Option<Rc<Runtime>>> = const { RefCell::new(None) };
    /// Time read by the running task; 0: not read yet.
    static NOW_NS: Cell<u64> = const { Cell::new(0) };
    /// Polls of the sockets so far.
    static POLLS: Cell<u64> = const { Cell::new(0) };
    static MAX_PAUSE_NS: Cell<u64> = const { Cell::new(0) };
    /// Connections accepted since the last decision on a pause.
    static ACCEPTED: Cell<u32> = const { Cell::new(0) };
    /// Bytes that the running task may still read and write.
    static BUDGET_LEFT: Cell<u32> = const { Cell::new(BUDGET_BYTES) };
    /// The running task was refused further I/O because its budget is used up.
    static IS_EXHAUSTED: Cell<bool> = const { Cell::new(false) };
}

/// Tasks and sockets of a worker's thread.
pub struct Runtime {
    reactor: Rc<Reactor>,
    /// Tick timer: set once a tick, in place of one timeout for each wait.
    timer: OwnedFd,
    tasks: RefCell<Tasks>,
    /// Tasks of the current round; kept for its allocation.
    batch: RefCell<Vec<u32>>,
    /// Tasks without budget until sockets are polled.
    exhausted: RefCell<Vec<u32>>,
    /// Task that waits for the next tick.
    ticker: RefCell<Option<Waker>>,
    coalescer: Cell<ConnectionCoalescer>,
    /// Socket events since the last decision on a pause.
    arrived: Cell<u32>,
}

#[derive(Default)]
struct Tasks {
    all: Vec<Task>,
    free: Vec<u32>,
}

/// A task slot. Its waker outlives the task: waking the next occupant does no harm.
struct Task {
    future: Option<Pin<Box<dyn Future<Output = ()>>>>,
    waker: Waker,
    /// Budget used up: however often the task is woken, it does not run before sockets are polled.
    is_exhausted: bool,
}

/// Waker of a task. Must not be used on another thread: task numbers are per thread, so another task would be woken.
struct TaskWaker {
    task: u32,
    /// Owning thread, as identified by [`thread_key`].
    thread: usize,
}

/// Identifies the current thread by the address of its list of ready tasks.
fn thread_key(ready: &RefCell<Vec<u32>>) -> usize {
    std::ptr::from_ref(ready).addr()
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // At the end of the thread there is nothing left to run.
        let _ = READY.try_with(|ready| {
            assert_eq!(thread_key(ready), self.thread, "a task of a worker was woken on another thread");
            ready.borrow_mut().push(self.task);
        });
    }
}

/// Waker of the main task, usable from any thread.
struct MainWaker {
    is_woken: AtomicBool,
    event: OwnedFd,
}

impl Wake for MainWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::AcqRel) {
            // The counter of the eventfd cannot overflow: nobody adds that often.
            let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
        }
    }
}

fn current() -> io::Result<Rc<Runtime>> {
    RUNTIME.with(|current| current.borrow().clone()).ok_or_else(|| io::Error::other("no worker runs here"))
}

pub struct TaskHandle(Option<(Rc<Runtime>, u32)>);

impl TaskHandle {
    /// Drops the task. Only for tasks that cannot have ended by themselves: their slot may have a new occupant.
    pub fn abort(self) {
        let Some((runtime, number)) = self.0 else { return };
        let future = runtime.tasks.borrow_mut().all[number as usize].future.take();
        if future.is_some() {
            runtime.tasks.borrow_mut().free.push(number);
        }
    }
}

/// Runs a task on this thread, beside others.
pub fn spawn(future: impl Future<Output = ()> + 'static) -> TaskHandle {
    // Outside a runtime nothing would run the task.
    let Ok(runtime) = current() else { return TaskHandle(None) };
    let mut tasks = runtime.tasks.borrow_mut();
    let number = tasks.free.pop().unwrap_or_else(|| {
        let number = tasks.all.len() as u32;
        let main_waker = TaskWaker { task: number, thread: READY.with(thread_key) };
        tasks.all.push(Task { future: None, waker: Arc::new(main_waker).into(), is_exhausted: false });
        number
    });
    let task = &mut tasks.all[number as usize];
    task.future = Some(Box::pin(future));
    task.waker.wake_by_ref();
    drop(tasks);
    TaskHandle(Some((runtime, number)))
}

/// Current time in nanoseconds, read once per turn of a task. A turn takes microseconds.
pub fn now_ns() -> u64 {
    NOW_NS.with(|now| {
        if now.get() == 0 {
            now.set(monotonic_ns());
        }
        now.get()
    })
}

/// Sets how long this thread may pause before it waits, so that several events come together; 0: never.
pub fn set_max_pause(longest: Duration) {
    MAX_PAUSE_NS.set(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX));
}

pub fn count_accepted() {
    ACCEPTED.set(ACCEPTED.get().saturating_add(1));
}

/// Polls of this thread's sockets so far.
pub fn polls() -> u64 {
    POLLS.get()
}

/// Whether the running task may do more I/O; if not, it runs again after the next poll.
pub fn has_budget() -> bool {
    let may = BUDGET_LEFT.get() > 0;
    IS_EXHAUSTED.set(!may);
    may
}

/// Charges a read or a write of `bytes` to the running task.
pub fn consume_budget(bytes: usize) {
    let cost = u32::try_from(bytes).unwrap_or(u32::MAX).max(MIN_COST);
    BUDGET_LEFT.set(BUDGET_LEFT.get().saturating_sub(cost));
}

/// Starts the turn of a task, with a full budget.
fn reset_budget() {
    NOW_NS.set(0);
    BUDGET_LEFT.set(BUDGET_BYTES);
    IS_EXHAUSTED.set(false);
}

/// Waits for the next tick, after `after_ns` or [`TICK_NS`], whichever is less. Only one task may.
pub async fn tick(after_ns: u64) {
    if after_ns < TICK_NS
        && let Ok(runtime) = current()
    {
        // If the timer cannot be set, the tick comes at its usual time.
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

/// Runs `main`, and the tasks that it spawns, until `main` has ended; the others are dropped.
pub fn run<T>(main: impl Future<Output = T>) -> io::Result<T> {
    let runtime = Rc::new(Runtime {
        reactor: Rc::new(Reactor::new()?),
        timer: create(TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?,
        tasks: RefCell::default(),
        batch: RefCell::default(),
        exhausted: RefCell::default(),
        ticker: RefCell::new(None),
        coalescer: Cell::default(),
        arrived: Cell::new(0),
    });
    // The default slack would lengthen short pauses by 50 µs. Where this is not permitted, they are longer.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let main_waker = Arc::new(MainWaker {
        is_woken: AtomicBool::new(true),
        event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
    });
    runtime.reactor.add(&main_waker.event, WAKE_EVENT)?;
    runtime.reactor.add(&runtime.timer, TICK_EVENT)?;
    arm(&runtime.timer, monotonic_ns() + TICK_NS)?;
    RUNTIME.with(|current| *current.borrow_mut() = Some(Rc::clone(&runtime)));
    let ended = runtime.run(pin!(main), &main_waker);
    // Tasks may look for the runtime while they are dropped.
    let tasks = std::mem::take(&mut *runtime.tasks.borrow_mut());
    drop(tasks);
    RUNTIME.with(|current| *current.borrow_mut() = None);
    READY.with(|ready| ready.borrow_mut().clear());
    ended
}

impl Runtime {
    fn run<T>(
        &self,
        mut main: Pin<&mut impl Future<Output = T>>,
        main_waker: &Arc<MainWaker>,
    ) -> io::Result<T> {
        let waker = Waker::from(Arc::clone(main_waker));
        let mut cx = Context::from_waker(&waker);
        loop {
            let mut rounds = 0;
            while rounds < ROUNDS {
                let is_woken = main_waker.is_woken.swap(false, Ordering::AcqRel);
                reset_budget();
                if is_woken && let Poll::Ready(ended) = main.as_mut().poll(&mut cx) {
                    return Ok(ended);
                }
                if IS_EXHAUSTED.get() {
                    waker.wake_by_ref();
                }
                if !self.run_ready() && !is_woken {
                    break;
                }
                rounds += 1;
            }
            let has_more = rounds == ROUNDS
                || self.reactor.is_slow_due()
                || !self.exhausted.borrow().is_empty()
                || READY.with(|ready| !ready.borrow().is_empty());
            self.wait(has_more)?;
            self.renew_budgets();
        }
    }

    /// Sockets were polled: tasks without budget get a new one, and run behind those that just got events.
    fn renew_budgets(&self) {
        let mut tasks = self.tasks.borrow_mut();
        for number in self.exhausted.borrow_mut().drain(..) {
            let task = &mut tasks.all[number as usize];
            task.is_exhausted = false;
            task.waker.wake_by_ref();
        }
    }

    /// Runs all ready tasks; returns whether there was any.
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
            let Some(task) = tasks.all.get_mut(number as usize).filter(|task| !task.is_exhausted) else {
                return;
            };
            let Some(future) = task.future.take() else { return };
            (future, task.waker.clone())
        };
        reset_budget();
        let mut cx = Context::from_waker(&waker);
        // A bug in the code of one connection must not end the others; the panic hook has printed the panic.
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx)));
        if matches!(polled, Ok(Poll::Pending)) {
            let task = &mut self.tasks.borrow_mut().all[number as usize];
            task.future = Some(future);
            task.is_exhausted = IS_EXHAUSTED.get();
            if task.is_exhausted {
                self.exhausted.borrow_mut().push(number);
            }
        } else {
            // Dropping the future may spawn other tasks.
            drop(future);
            self.tasks.borrow_mut().free.push(number);
        }
    }

    /// Lets events come together before the thread polls for them ([`ConnectionCoalescer`]).
    fn pause(&self) {
        let max_pause_ns = MAX_PAUSE_NS.get();
        let (arrived, connections) = (self.arrived.take(), ACCEPTED.take());
        if max_pause_ns == 0 {
            return;
        }
        let mut coalescer = self.coalescer.get();
        let pause_ns = coalescer.pause_ns(monotonic_ns(), arrived, connections, max_pause_ns);
        self.coalescer.set(coalescer);
        if pause_ns > 0 {
            std::thread::sleep(Duration::from_nanos(pause_ns));
        }
    }

    /// Polls sockets; blocks unless there is more to do.
    fn wait(&self, has_more: bool) -> io::Result<()> {
        POLLS.set(POLLS.get() + 1);
        if !has_more {
            self.pause();
        }
        let happened = self.reactor.poll(!has_more, |number| {
            if number == TICK_EVENT {
                arm(&self.timer, monotonic_ns() + TICK_NS)?;
                self.reactor.tick();
                if let Some(ticker) = self.ticker.borrow_mut().take() {
                    ticker.wake();
                }
            }
            Ok(())
        })?;
        self.arrived.set(self.arrived.get().saturating_add(happened));
        Ok(())
    }

    fn reactor(&self) -> Rc<Reactor> {
        Rc::clone(&self.reactor)
    }
}

#[cfg(test)]
mod tests;
