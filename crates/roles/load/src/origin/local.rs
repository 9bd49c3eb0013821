//! What the connections of one worker share.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use assay_http::coding::GzipWriter;
use assay_workload::model::OriginIndex;

use super::head::DateWriters;
use super::site::World;
use super::tally::{Handover, Tally};
use assay_base::clock::monotonic_ns;
use assay_net::arrival::Arrivals;
use assay_net::timer::{Ticket, Timer};
use assay_protocol::clock::RunClock;

/// Most bytes taken from a socket at once.
const INPUT_BYTES: usize = 64 * 1024;
/// Room for a head, and more.
const OUTPUT_BYTES: usize = 16 * 1024;

/// What a worker's timer is set for.
#[derive(Debug)]
pub enum Due {
    /// The end of a second of the run.
    Cut,
    /// The worker looks at itself.
    Tick,
    /// The end of a think time.
    Think(Rc<Alarm>),
    /// A connection may have been idle for too long.
    Idle(Rc<Alarm>),
}

/// How the timer's dispatcher reaches a connection's task.
#[derive(Debug, Default)]
pub struct Alarm {
    think: Cell<bool>,
    idle: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Alarm {
    /// A think time is over.
    pub fn ring_think(&self) {
        self.think.set(true);
        self.wake();
    }

    /// An idle timeout has passed.
    pub fn ring_idle(&self) {
        self.idle.set(true);
        self.wake();
    }

    /// Takes note of a think time that is over.
    pub fn take_think(&self) -> bool {
        self.think.replace(false)
    }

    /// Takes note of an idle timeout that has passed.
    #[inline]
    pub fn take_idle(&self) -> bool {
        self.idle.replace(false)
    }

    /// Whom to wake. A task keeps its waker, so mostly nothing is copied.
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

/// What the connections of one worker share. Buffers are used between two waits only, so one of each is enough.
#[derive(Debug)]
pub struct Local {
    /// The universe and the origins.
    pub world: Arc<World>,
    /// When the run started.
    pub clock: Cell<RunClock>,
    /// Think times, idle timeouts and cuts.
    pub timer: Timer<Due>,
    pub tally: RefCell<Tally>,
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
    /// What tells how long requests lay unread.
    pub arrivals: Cell<Arrivals>,
    /// Number of the next cut.
    cut: Cell<u64>,
}

/// What a connection begins with, whatever is spoken on it.
#[derive(Debug)]
pub struct Accepted {
    pub now_ns: u64,
    /// Requests that it may serve.
    pub uses_left: u64,
    /// What rings for it.
    pub alarm: Rc<Alarm>,
    /// Timeout of the idle connection, and the timer's ticket for it.
    pub idle: Option<(u64, Ticket)>,
}

impl Local {
    /// For one worker. Needs its runtime.
    pub fn new(world: Arc<World>, spin_ns: u64) -> io::Result<Self> {
        let phases = world.universe.workload().schedule.phases.len();
        Ok(Self {
            world,
            clock: Cell::new(RunClock::provisional()),
            timer: Timer::new(spin_ns)?,
            tally: RefCell::new(Tally::new(phases)),
            input: RefCell::new(vec![0; INPUT_BYTES].into()),
            output: RefCell::new(Vec::with_capacity(OUTPUT_BYTES)),
            dates: RefCell::default(),
            gzip: RefCell::default(),
            open: Cell::new(0),
            accepted: Cell::new(0),
            arrivals: Cell::new(Arrivals::measure()),
            cut: Cell::new(0),
        })
    }

    /// Counts a connection that the origin at this address accepted, and begins to wait for its first request.
    pub fn accept(&self, at: OriginIndex) -> Accepted {
        let now_ns = monotonic_ns();
        let number = self.accepted.get();
        self.accepted.set(number + 1);
        self.open.set(self.open.get() + 1);
        self.tally.borrow_mut().here().counts.connections_opened += 1;
        let site = self.world.sites.get(at);
        let (uses_left, idle_ns) = site.map_or((1, None), |site| (site.uses(number), site.idle_ns));
        let alarm = Rc::new(Alarm::default());
        let idle = idle_ns.map(|idle_ns| {
            let due = Due::Idle(Rc::clone(&alarm));
            (idle_ns, self.timer.schedule(now_ns.saturating_add(idle_ns), due))
        });
        Accepted { now_ns, uses_left, alarm, idle }
    }

    /// Counts a connection that is closed.
    pub fn note_closed(&self) {
        self.open.set(self.open.get() - 1);
        self.tally.borrow_mut().here().counts.connections_closed += 1;
    }

    /// Waits for an instant.
    pub async fn sleep_until(&self, at_ns: u64) {
        let alarm = Rc::new(Alarm::default());
        self.timer.schedule(at_ns, Due::Think(Rc::clone(&alarm)));
        poll_fn(|context| {
            alarm.listen(context);
            if alarm.take_think() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// The run starts: what came before does not count.
    pub fn start(&self, clock: RunClock) {
        self.clock.set(clock);
        self.tally.borrow_mut().reset();
        self.cut.set(0);
        self.schedule_cut();
    }

    /// The end of a second: what was counted in it.
    pub fn cut(&self) -> Handover {
        let handover = self.handover((self.cut.get() + 1) * 1000, false);
        self.cut.set(self.cut.get() + 1);
        self.schedule_cut();
        handover
    }

    /// The end of the run: what was counted since the last cut.
    pub fn last_cut(&self) -> Handover {
        let now_ms = self.clock.get().since_start_us(monotonic_ns()) / 1000;
        self.handover(now_ms.max(self.cut.get() * 1000), true)
    }

    fn handover(&self, end_ms: u64, last: bool) -> Handover {
        let mut tally = self.tally.borrow_mut();
        let (phases, examples, current) = (tally.cut(), tally.take_examples(), tally.current());
        Handover {
            number: self.cut.get(),
            end_ms,
            phases,
            examples,
            current,
            connections: self.open.get(),
            last,
        }
    }

    fn schedule_cut(&self) {
        let end_ns = self.clock.get().start_ns + (self.cut.get() + 1) * assay_base::clock::SECOND_NS;
        self.timer.schedule(end_ns, Due::Cut);
    }
}
