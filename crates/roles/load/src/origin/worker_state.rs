//! State that the connections of one worker share.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use assay_http::coding::GzipWriter;
use assay_workload::model::OriginIndex;
use tokio::net::TcpStream;

use super::config::SharedOrigins;
use super::head::DateWriters;
use super::request::OriginRequest;
use super::tally::{OriginSnapshot, OriginTally, RequestError};
use assay_base::clock::monotonic_ns;
use assay_net::byte_stream::{ByteStream, tls_error};
use assay_net::rx_timestamps::ClockOffset;
use assay_net::timer::{Timer, TimerKey};
use assay_protocol::clock::RunClock;

/// Upper bound on the bytes read from a socket at once.
const INPUT_BYTES: usize = 64 * 1024;
/// Room for a head, and more.
const OUTPUT_BYTES: usize = 16 * 1024;

/// Event of a worker's timer.
#[derive(Debug)]
pub enum OriginTimerEvent {
    /// The end of a second of the run.
    SecondEnd,
    /// The worker checks itself.
    Tick,
    /// The end of a think time.
    Think(Rc<TaskAlarm>),
    /// A connection may have been idle for too long.
    Idle(Rc<TaskAlarm>),
}

/// Way from the timer's dispatcher to a connection's task.
#[derive(Debug, Default)]
pub struct TaskAlarm {
    think: Cell<bool>,
    idle: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl TaskAlarm {
    /// Wakes the task at the end of a think time.
    pub fn fire_think(&self) {
        self.think.set(true);
        self.wake();
    }

    /// Wakes the task after an idle timeout.
    pub fn fire_idle(&self) {
        self.idle.set(true);
        self.wake();
    }

    /// Clears the end of a think time; true if there was one.
    pub fn take_think(&self) -> bool {
        self.think.replace(false)
    }

    /// Clears an idle timeout; true if there was one.
    #[inline]
    pub fn take_idle(&self) -> bool {
        self.idle.replace(false)
    }

    /// Registers the task to wake. A task keeps its waker, so mostly nothing is copied.
    #[inline]
    pub fn listen(&self, context: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
    }

    fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

/// State of one worker, shared by its connections. Buffers are used between two waits only, so one of each is enough.
#[derive(Debug)]
pub struct WorkerState {
    /// The universe and the origins.
    pub shared: Arc<SharedOrigins>,
    /// Clock of the run; provisional before the start.
    pub clock: Cell<RunClock>,
    /// Think times, idle timeouts and ends of seconds.
    pub timer: Timer<OriginTimerEvent>,
    pub tally: RefCell<OriginTally>,
    /// Bytes as they were read.
    pub input: RefCell<Box<[u8]>>,
    /// The head that is being written.
    pub output: RefCell<Vec<u8>>,
    pub dates: RefCell<DateWriters>,
    /// Codes bodies; made when the first one is coded.
    pub gzip: RefCell<Option<GzipWriter>>,
    pub open: Cell<u64>,
    /// Connections accepted so far.
    pub accepted: Cell<u64>,
    /// Offset between the kernel's timestamps and `CLOCK_MONOTONIC`.
    pub arrivals: Cell<ClockOffset>,
    /// Number of the current interval.
    second: Cell<u64>,
}

/// Initial state of a connection, in either version of HTTP.
#[derive(Debug)]
pub struct AcceptedConnection {
    pub now_ns: u64,
    /// Requests that it may serve.
    pub uses_left: u64,
    pub alarm: Rc<TaskAlarm>,
    /// Timeout of the idle connection, and the timer's ticket for it.
    pub idle: Option<(u64, TimerKey)>,
}

impl WorkerState {
    /// Must be called within the worker's runtime.
    pub fn new(shared: Arc<SharedOrigins>, spin_ns: u64) -> io::Result<Self> {
        let phases = shared.universe.workload().schedule.phases.len();
        Ok(Self {
            shared,
            clock: Cell::new(RunClock::provisional()),
            timer: Timer::new(spin_ns)?,
            tally: RefCell::new(OriginTally::new(phases)),
            input: RefCell::new(vec![0; INPUT_BYTES].into()),
            output: RefCell::new(Vec::with_capacity(OUTPUT_BYTES)),
            dates: RefCell::default(),
            gzip: RefCell::default(),
            open: Cell::new(0),
            accepted: Cell::new(0),
            arrivals: Cell::new(ClockOffset::measure()),
            second: Cell::new(0),
        })
    }

    /// Counts an error of a request that came at `at_ns`.
    #[cold]
    pub fn count_error(&self, request: &OriginRequest, error: &RequestError, at_ns: u64) {
        let at_ms = self.clock.get().since_start_us(at_ns) / 1000;
        self.tally.borrow_mut().count_error(&self.shared.universe, request, error, at_ms);
    }

    /// Counts a connection that the origin at this address accepted, and begins to wait for its first request.
    pub fn accept(&self, origin: OriginIndex) -> AcceptedConnection {
        let now_ns = monotonic_ns();
        let number = self.accepted.get();
        self.accepted.set(number + 1);
        self.open.set(self.open.get() + 1);
        self.tally.borrow_mut().current_recorder().counts.connections_opened += 1;
        let config = self.shared.configs.get(origin);
        let (uses_left, idle_ns) = config.map_or((1, None), |config| (config.uses(number), config.idle_ns));
        let alarm = Rc::new(TaskAlarm::default());
        let idle = idle_ns.map(|idle_ns| {
            let due = OriginTimerEvent::Idle(Rc::clone(&alarm));
            (idle_ns, self.timer.schedule(now_ns.saturating_add(idle_ns), due))
        });
        AcceptedConnection { now_ns, uses_left, alarm, idle }
    }

    /// Counts a connection that is closed.
    pub fn note_closed(&self) {
        self.open.set(self.open.get() - 1);
        self.tally.borrow_mut().current_recorder().counts.connections_closed += 1;
    }

    /// Waits for an instant.
    pub async fn sleep_until(&self, at_ns: u64) {
        let alarm = Rc::new(TaskAlarm::default());
        self.timer.schedule(at_ns, OriginTimerEvent::Think(Rc::clone(&alarm)));
        poll_fn(|context| {
            alarm.listen(context);
            if alarm.take_think() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Starts the run: what came before does not count.
    pub fn start(&self, clock: RunClock) {
        self.clock.set(clock);
        self.tally.borrow_mut().reset();
        self.second.set(0);
        self.schedule_second();
    }

    /// Ends a second, and takes its counts.
    pub fn end_second(&self) -> OriginSnapshot {
        let snapshot = self.snapshot((self.second.get() + 1) * 1000, false);
        self.second.set(self.second.get() + 1);
        self.schedule_second();
        snapshot
    }

    /// Ends the run, and takes the counts since the last second.
    pub fn end_run(&self) -> OriginSnapshot {
        let now_ms = self.clock.get().since_start_us(monotonic_ns()) / 1000;
        self.snapshot(now_ms.max(self.second.get() * 1000), true)
    }

    fn snapshot(&self, end_ms: u64, last: bool) -> OriginSnapshot {
        let mut tally = self.tally.borrow_mut();
        let (phases, examples, current) = (tally.take_phases(), tally.take_examples(), tally.current());
        OriginSnapshot {
            number: self.second.get(),
            end_ms,
            phases,
            examples,
            current,
            connections: self.open.get(),
            last,
        }
    }

    fn schedule_second(&self) {
        let end_ns = self.clock.get().start_ns + (self.second.get() + 1) * assay_base::clock::SECOND_NS;
        self.timer.schedule(end_ns, OriginTimerEvent::SecondEnd);
    }
}

/// Counts the handshake of a connection, once: after it is over.
#[cold]
pub(super) fn count_handshake(worker: &WorkerState, stream: &mut ByteStream<TcpStream>) {
    let Some(handshake) = stream.take_handshake() else { return };
    let mut tally = worker.tally.borrow_mut();
    let counts = &mut tally.current_recorder().counts;
    let session = if handshake.negotiated.resumed { &mut counts.tls_resumed } else { &mut counts.tls_full };
    *session += 1;
}

/// Counts an error of TLS, and a handshake that came to no end.
pub(super) fn count_tls_error(worker: &WorkerState, stream: &ByteStream<TcpStream>, error: &io::Error) {
    if tls_error(error).is_some() || !stream.is_open() {
        worker.tally.borrow_mut().current_recorder().counts.tls_failed += 1;
    }
}
