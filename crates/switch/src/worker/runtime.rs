//! The tasks of a worker, and what wakes them. One thread with tasks, sockets and a tick of its own.
//!
//! A runtime that serves every purpose counts references in ways that threads can share, locks what no other thread touches, and
//! makes a place for every socket that it takes away again. Here tasks are numbers in a list, nothing is shared, and a socket
//! is only made known to the system once a task has to wait for it ([`super::socket`]).

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use assay_plane::clock::monotonic_ns;
use assay_plane::gather::Lull;
use assay_plane::timer::{arm, create};
use assay_plane::watch::TICK_NS;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;
use rustix::time::TimerfdFlags;
use slab::Slab;

/// Events that are fetched at once.
const EVENTS: usize = 512;
/// Rounds of tasks that wake each other before sockets are looked at again.
const ROUNDS: u32 = 8;
/// Reads and writes of a task before it is another's turn.
const SHARE: u32 = 64;
/// The number of the event that says that another thread has something.
const CALLED: u64 = u64::MAX;
/// The number of the event that says that a tick has passed.
const TICKED: u64 = u64::MAX - 1;

/// Bytes have come, or the end.
pub const READABLE: u8 = 1;
/// There is room for bytes to go.
pub const WRITABLE: u8 = 2;
/// The end has come: from now on a read always has a response.
pub const ENDED: u8 = 4;
/// It has come with an error, which a read or a write tells.
pub const FAILED: u8 = 8;

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
    /// Reads and writes that the running task may still do.
    static LEFT: Cell<u32> = const { Cell::new(SHARE) };
}

/// What a worker's thread has of tasks and sockets.
pub struct Runtime {
    epoll: OwnedFd,
    /// Ticks: it is set anew once a tick, where a limit of each wait would be set, and taken back, with each.
    timer: OwnedFd,
    sources: RefCell<Slab<Rc<Source>>>,
    tasks: RefCell<Tasks>,
    /// Room for the tasks that are run now.
    batch: RefCell<Vec<u32>>,
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

/// A socket's place among those that the system tells of. To be given up before the socket is closed and the next events are
/// fetched.
pub struct Place {
    /// What is known of it.
    pub source: Rc<Source>,
    runtime: Rc<Runtime>,
    key: usize,
}

impl Place {
    /// Has the system tell of this socket: each time that something changes, or again and again while `again`.
    pub fn new(socket: BorrowedFd<'_>, flags: u8, again: bool) -> io::Result<Self> {
        let runtime = current()?;
        let source = Rc::new(Source { flags: Cell::new(flags), waker: RefCell::new(None) });
        let key = runtime.sources.borrow_mut().insert(Rc::clone(&source));
        let events = if again {
            EventFlags::IN
        } else {
            EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET
        };
        let place = Self { source, key, runtime };
        epoll::add(&place.runtime.epoll, socket, EventData::new_u64(key as u64), events)?;
        Ok(place)
    }

    /// Has the system tell of it no more, though it stays open.
    pub fn leave(self, socket: BorrowedFd<'_>) {
        // One that is not there needs no leaving.
        let _ = epoll::delete(&self.runtime.epoll, socket);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.runtime.sources.borrow_mut().try_remove(self.key);
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
        tasks.all.push(Task { future: None, waker: Arc::new(call).into() });
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

/// Whether the running task may read or write once more; if not, it is to let others go first.
pub fn may_go_on(cx: &Context<'_>) -> bool {
    LEFT.with(|left| {
        let may = left.get() > 0;
        left.set(left.get().saturating_sub(1));
        if !may {
            cx.waker().wake_by_ref();
        }
        may
    })
}

/// Waits for the next tick. One task may.
pub async fn tick() {
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
        epoll: epoll::create(CreateFlags::CLOEXEC)?,
        timer: create(TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)?,
        sources: RefCell::default(),
        tasks: RefCell::default(),
        batch: RefCell::default(),
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
    // Each call, and each tick, is an event of its own: nothing is read from either.
    let each = EventFlags::IN | EventFlags::ET;
    epoll::add(&runtime.epoll, &call.event, EventData::new_u64(CALLED), each)?;
    epoll::add(&runtime.epoll, &runtime.timer, EventData::new_u64(TICKED), each)?;
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
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let mut rounds = 0;
            while rounds < ROUNDS {
                let is_called = call.is_called.swap(false, Ordering::AcqRel);
                NOW_NS.set(0);
                if is_called && let Poll::Ready(ended) = main.as_mut().poll(&mut cx) {
                    return Ok(ended);
                }
                if !self.run_ready() && !is_called {
                    break;
                }
                rounds += 1;
            }
            let has_more = rounds == ROUNDS || READY.with(|ready| !ready.borrow().is_empty());
            self.wait(&mut events, has_more)?;
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
            let Some(task) = tasks.all.get_mut(number as usize) else { return };
            let Some(future) = task.future.take() else { return };
            (future, task.waker.clone())
        };
        NOW_NS.set(0);
        LEFT.set(SHARE);
        let mut cx = Context::from_waker(&waker);
        // A bug in what one connection does must not end the others; the panic has said what it was.
        let polled = catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut cx)));
        if matches!(polled, Ok(Poll::Pending)) {
            self.tasks.borrow_mut().all[number as usize].future = Some(future);
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
    fn wait(&self, events: &mut Vec<Event>, has_more: bool) -> io::Result<()> {
        TURNS.set(TURNS.get() + 1);
        if !has_more {
            self.rest();
        }
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        match epoll::wait(&self.epoll, spare_capacity(events), has_more.then_some(&at_once)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let sources = self.sources.borrow();
        // All are told before any task runs, so that a number is never that of another socket.
        for event in events.drain(..) {
            let (key, flags) = (event.data.u64(), event.flags);
            match key {
                CALLED => {}
                TICKED => {
                    arm(&self.timer, monotonic_ns() + TICK_NS)?;
                    if let Some(ticker) = self.ticker.borrow_mut().take() {
                        ticker.wake();
                    }
                }
                key => {
                    self.arrived.set(self.arrived.get().saturating_add(1));
                    if let Some(source) = sources.get(key as usize) {
                        source.happened(flags);
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_wake_each_other_and_end_with_the_first() {
        let order: Rc<RefCell<Vec<u32>>> = Rc::default();
        let notes = Rc::clone(&order);
        let ended = run(async move {
            let notify = Rc::new(tokio::sync::Notify::new());
            for number in [1, 2] {
                let (notify, notes) = (Rc::clone(&notify), Rc::clone(&notes));
                spawn(async move {
                    notes.borrow_mut().push(number);
                    notify.notify_one();
                });
            }
            spawn(std::future::pending());
            notify.notified().await;
            notify.notified().await;
            7
        });
        assert_eq!(ended.expect("runs"), 7);
        assert_eq!(*order.borrow(), [1, 2]);
    }

    #[test]
    fn another_thread_wakes_the_first_task_and_ticks_come_by_themselves() {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let ticked = run(async move {
            let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
            spawn(async move {
                tick().await;
                tick().await;
                std::thread::spawn(move || sender.send(5));
                let _ = told.send(());
            });
            heard.recv().await;
            receiver.recv().await
        });
        assert_eq!(ticked.expect("runs"), Some(5));
    }

    #[test]
    fn a_task_is_not_woken_on_another_thread() {
        let woken = run(async {
            let (give, mut given) = tokio::sync::mpsc::unbounded_channel();
            let task = spawn(poll_fn(move |cx| {
                let _ = give.send(cx.waker().clone());
                Poll::Pending
            }));
            let waker = given.recv().await.expect("is given");
            let woken = std::thread::spawn(move || waker.wake()).join();
            task.end();
            woken
        });
        assert!(woken.expect("runs").is_err());
    }

    #[test]
    fn a_task_that_is_ended_goes_and_its_place_is_used_again() {
        let kept = Rc::new(());
        let ended = run(async {
            let held = Rc::clone(&kept);
            let task = spawn(async move {
                let _held = held;
                std::future::pending::<()>().await;
            });
            task.end();
            let count = Rc::strong_count(&kept);
            let runtime = current().expect("runs");
            (count, runtime.tasks.borrow().free.len())
        });
        assert_eq!(ended.expect("runs"), (1, 1));
    }
}
