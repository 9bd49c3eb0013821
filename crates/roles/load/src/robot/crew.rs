//! One worker: what it owns, all of it for one thread alone. The state of its robots and of what is under way.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use assay_http::date::DateCache;
use assay_measurement::error_kind::{ErrorExample, ErrorKind};
use assay_measurement::interval::RobotLevels;
use assay_measurement::measured::Measured;
use assay_workload::model::{HttpVersion, RobotIndex};
use assay_workload::{Child, ClosedRobot, Slice};
use slab::Slab;
use tokio::sync::mpsc::UnboundedSender;

use super::aftermath::Usual;
use super::agenda::Agenda;
use super::connection::{Connection, List};
use super::control::Control;
use super::log::LogQueue;
use super::memory::Memory;
use super::sampling::{Piece, Sampler};
use super::setup::Setup;
use super::xact::{NONE, Page, Xact};
use crate::tally::Recorder;
use crate::tally::ideal::IdealNote;
use crate::tally::merge::Handover;
use crate::tally::recorders::Recorders;
use crate::watch::Watch;
use assay_net::arrival::Arrivals;
use assay_net::gather::Quick;
use assay_net::sockets::Sockets;
use assay_net::timer::{Ticket, Timer};
use assay_net::tls::client::Client;
use assay_net::worker::Breather;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 128 * 1024;
/// Examples kept of each kind of error.
pub const EXAMPLES: u8 = 5;

/// What a worker tells the conductor.
#[derive(Debug)]
pub enum Report {
    /// Counts at a cut.
    Handover(Box<Handover>),
    /// One of the first errors of its kind.
    Example(ErrorExample),
    /// What it saw of itself.
    Measured(Measured),
    /// What it measured in a tenth of a second, where load adapts.
    Piece(Box<Piece>),
}

/// What the timer wakes a worker for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alarm {
    /// The next launch or cut.
    Next,
    /// Shared numbers and time-outs.
    Tick,
    /// A best-effort robot tries again.
    Robot(u32),
    /// A request body has waited long enough on the connection with this place and name.
    Body(u32, u64),
    /// The xact at this place may have expired.
    Expiry(u32),
}

/// What a worker has to do with itself.
#[derive(Debug)]
pub struct Health {
    /// None: it does not watch itself.
    pub watch: Option<Watch>,
    /// Keeps a real-time thread from shutting others out.
    pub breather: Breather,
}

#[derive(Debug)]
pub struct Robot {
    pub index: RobotIndex,
    pub group: u16,
    /// The version of HTTP it speaks.
    pub version: HttpVersion,
    /// Connections it has open or is opening.
    pub open: u32,
    /// Connections it has opened so far.
    pub connections: u32,
    /// Its idle connections, the last used first.
    pub idle: List,
    /// Its busy ones that may be given more requests.
    pub pipelining: List,
    /// Its xacts that wait for a connection, in order.
    pub waiting_first: u32,
    /// The last of them.
    pub waiting_last: u32,
    pub waiting: u32,
    /// By how much Assay had delayed the xact that let one of its connections go last, in microseconds: what waits, waits longer by that.
    pub held_up_us: u32,
    /// Best-effort robots only.
    pub closed: Option<Box<Closed>>,
    /// What it remembers, if anything.
    pub memory: Option<Box<Memory>>,
    /// How it speaks TLS, with the sessions that it can resume; none: in the clear, or it has not connected yet.
    pub tls: Option<Box<Client>>,
}

/// A best-effort robot's own state.
#[derive(Debug)]
pub struct Closed {
    pub stream: ClosedRobot,
    /// How many requests it may have under way at a time.
    pub most: u32,
    /// How many it has under way, or will try again by itself.
    pub busy: u32,
    /// Requests launched in this phase.
    pub launched: u32,
}

/// What goes on in time.
#[derive(Debug)]
pub struct Clockwork {
    /// Number of the next cut.
    pub cut_number: u64,
    /// The phase that is on.
    pub phase: u16,
    /// When what is under way is given up; none: the schedule is not over.
    pub drain_until_ns: Option<u64>,
    /// The last cut was made.
    pub finished: bool,
    /// The alarm that is set for the next launch or cut.
    pub next: Option<Ticket>,
    /// The first launches were made.
    pub begun: bool,
    pub ticks: u32,
}

/// One worker's robots and everything that is under way.
#[derive(Debug)]
pub struct Crew {
    /// What does not change.
    pub setup: Arc<Setup>,
    /// What all threads share.
    pub control: Arc<Control>,
    /// Which robots are its own.
    pub slice: Slice,
    /// Its robots, in order.
    pub robots: Vec<Robot>,
    /// Under way or waiting.
    pub xacts: Slab<Xact>,
    /// Of which something is under way or waiting.
    pub pages: Slab<Page>,
    /// Open or being opened.
    pub connections: Slab<Connection>,
    /// Connections made so far; names them.
    pub connection_serial: u64,
    /// Counts of each phase since the last cut.
    pub recorders: Recorders,
    pub levels: RobotLevels,
    /// Notes for the ideal cache since the last cut.
    pub notes: Vec<IdealNote>,
    /// Where we are in the schedule.
    pub clockwork: Clockwork,
    /// Everything is read into this.
    pub buffer: Box<[u8]>,
    /// Requests are put together here.
    pub scratch: Vec<u8>,
    pub dates: DateCache,
    /// Vectors of pages that have ended.
    pub spare_children: Vec<Vec<Child>>,
    /// What it measures where load adapts.
    pub sampler: Option<Sampler>,
    /// Share of best-effort robots alive; none: as the phase says.
    pub alive: Option<f64>,
    /// The xact log, when there is one.
    pub log: Option<LogQueue>,
    /// Examples sent of each kind.
    pub examples: [u8; ErrorKind::ALL.len()],
    /// The timer of this worker.
    pub timer: Rc<Timer<Alarm>>,
    /// The sockets of its connections.
    pub sockets: Rc<Sockets>,
    /// What it knows of itself.
    pub health: Health,
    /// What it has to do next, and where the schedule is.
    pub agenda: Agenda,
    /// The time within which its quickest responses come.
    pub quick: Quick,
    /// What tells how long responses lay unread.
    pub arrivals: Arrivals,
    /// How long what is being dealt with lay unread, in microseconds; 0 while nothing is.
    pub unread_us: u32,
    /// By how much Assay delayed the xact whose connection is being let go, in microseconds; 0 while none is.
    pub freed_late_us: u32,
    /// From when on waits of the target can have delayed that xact, in nanoseconds of `CLOCK_MONOTONIC`; 0 while there is none.
    pub freed_since_ns: u64,
    /// Responses that came to their end on the streams of the connection that is being read.
    pub responses_on_streams: u32,
    /// How many requests are usually in flight.
    pub usual: Usual,
    reports: UnboundedSender<Report>,
}

impl Crew {
    /// The robots of `slice`, and their stream.
    pub fn new(
        setup: Arc<Setup>,
        control: Arc<Control>,
        (slice, mut agenda): (Slice, Agenda),
        log: Option<LogQueue>,
        reports: UnboundedSender<Report>,
        (timer, sockets, health): (Rc<Timer<Alarm>>, Rc<Sockets>, Health),
    ) -> Self {
        let robots = make_robots(&setup, slice);
        agenda.start_at(control.clock.start_ns);
        let phases = setup.timeline.phases().len();
        let clockwork = Clockwork {
            cut_number: 0,
            phase: 0,
            drain_until_ns: None,
            finished: false,
            next: None,
            begun: false,
            ticks: 0,
        };
        Self {
            agenda,
            slice,
            robots,
            xacts: Slab::new(),
            pages: Slab::new(),
            connections: Slab::new(),
            connection_serial: 0,
            recorders: Recorders::new(phases),
            levels: RobotLevels::default(),
            notes: Vec::new(),
            clockwork,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            scratch: Vec::with_capacity(4096),
            dates: DateCache::default(),
            spare_children: Vec::new(),
            sampler: setup.adapts.then(Sampler::default),
            alive: None,
            log,
            examples: [0; ErrorKind::ALL.len()],
            timer,
            sockets,
            health,
            quick: Quick::default(),
            arrivals: Arrivals::measure(),
            unread_us: 0,
            freed_late_us: 0,
            freed_since_ns: 0,
            responses_on_streams: 0,
            usual: Usual::default(),
            reports,
            setup,
            control,
        }
    }

    /// Counts of a phase since the last cut.
    #[inline]
    pub fn recorder(&mut self, phase: u16) -> &mut Recorder {
        self.recorders.of(phase)
    }

    /// The phase that is on.
    pub fn phase(&self) -> u16 {
        self.clockwork.phase
    }

    /// True once nothing new is launched.
    pub fn is_draining(&self) -> bool {
        self.clockwork.drain_until_ns.is_some()
    }

    /// Place of a robot among this worker's.
    pub fn place_of(&self, robot: RobotIndex) -> u32 {
        self.slice.place(robot) as u32
    }

    /// Tells the conductor; if it is gone, so will this process be.
    pub fn report(&self, report: Report) {
        let _ = self.reports.send(report);
    }

    /// Adds to what other threads see of this worker's progress.
    pub fn progress(&self, add: impl FnOnce(&super::control::Progress)) {
        add(self.control.progress(self.slice.index as usize));
    }

    /// Counts an xact that has ended.
    pub fn count_ended(&self, phase: u16) {
        if phase == self.phase() && self.control.is_open(phase) {
            self.progress(|progress| {
                progress.ended.store(progress.ended.load(Relaxed) + 1, Relaxed);
            });
        }
    }

    /// Counts fill that came due.
    pub fn count_fill(&self, phase: u16, bytes: u64) {
        self.progress(|progress| {
            progress.fill_objects.store(progress.fill_objects.load(Relaxed) + 1, Relaxed);
            if phase == self.phase() {
                progress.fill_bytes.store(progress.fill_bytes.load(Relaxed) + bytes, Relaxed);
            }
        });
    }
}

fn make_robots(setup: &Setup, slice: Slice) -> Vec<Robot> {
    let universe = &setup.universe;
    let mine = (0..universe.robot_count()).filter(|&robot| slice.has(robot));
    mine.filter_map(|index| {
        let group = universe.group_of(index)?;
        let version = setup.version_of(index, &universe.workload().robots[group]);
        let most = if version == HttpVersion::Http2 { setup.groups[group].streams } else { 1 };
        let closed = setup.groups[group].best_effort.then(|| {
            Box::new(Closed { stream: ClosedRobot::new(universe, index), most, busy: 0, launched: 0 })
        });
        Some(Robot {
            index,
            group: group as u16,
            version,
            open: 0,
            connections: 0,
            idle: List::EMPTY,
            pipelining: List::EMPTY,
            waiting_first: NONE,
            waiting_last: NONE,
            waiting: 0,
            held_up_us: 0,
            closed,
            memory: Memory::of(universe, index),
            tls: None,
        })
    })
    .collect()
}
