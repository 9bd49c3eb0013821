//! One worker: the state of its robots and of what is under way, all of it for one thread alone.

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

use super::backlog::InFlightBaseline;
use super::connection::{ListEnds, RobotConnection};
use super::control::RunControl;
use super::log::XactLogQueue;
use super::memory::RobotMemory;
use super::sampling::{WorkerSample, WorkerSampler};
use super::schedule::LaunchSchedule;
use super::setup::RobotSetup;
use super::xact::{NONE, PageLoad, Xact};
use crate::monitor::SelfCheck;
use crate::tally::RobotRecorder;
use crate::tally::ideal::IdealEvent;
use crate::tally::merge::WorkerSnapshot;
use crate::tally::recorders::Recorders;
use assay_net::coalesce::LowQuantile;
use assay_net::rx_timestamps::ClockOffset;
use assay_net::sockets::Sockets;
use assay_net::timer::{Timer, TimerKey};
use assay_net::tls::client::TlsClient;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 128 * 1024;
/// Examples kept of each kind of error.
pub const EXAMPLES: u8 = 5;

/// Message of a worker to the coordinator.
#[derive(Debug)]
pub enum RobotReport {
    /// Counts of an interval.
    Snapshot(Box<WorkerSnapshot>),
    /// One of the first errors of its kind.
    Example(ErrorExample),
    /// Measurements of the worker's own thread.
    Measured(Measured),
    /// Measurements of a tenth of a second, where load adapts.
    Sample(Box<WorkerSample>),
}

/// Event of a worker's timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RobotTimerEvent {
    /// The next launch or end of an interval.
    Schedule,
    /// Shared numbers and time-outs.
    Tick,
    /// A best-effort robot tries again.
    BestEffort(u32),
    /// A request body has waited long enough on the connection with this place and name.
    ContinueTimeout(u32, u64),
    /// The xact at this place may have expired.
    Expiry(u32),
}

/// Event sources of a worker, and its checks of itself.
#[derive(Debug)]
pub struct WorkerIo {
    pub timer: Rc<Timer<RobotTimerEvent>>,
    pub sockets: Rc<Sockets>,
    pub self_check: SelfCheck,
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
    /// Idle connections, the last used first.
    pub idle: ListEnds,
    /// Busy connections that may be given more requests.
    pub pipelining: ListEnds,
    /// First of the xacts that wait for a connection, in order.
    pub waiting_first: u32,
    /// The last of them.
    pub waiting_last: u32,
    pub waiting: u32,
    /// Assay's delay, in microseconds, of the last xact that released a connection: what waits, waits longer by that.
    pub delayed_behind_us: u32,
    /// Best-effort robots only.
    pub best_effort: Option<Box<BestEffort>>,
    /// None: there is nothing to remember.
    pub memory: Option<Box<RobotMemory>>,
    /// TLS client with the sessions that it can resume; none: in the clear, or not connected yet.
    pub tls: Option<Box<TlsClient>>,
}

/// A best-effort robot's own state.
#[derive(Debug)]
pub struct BestEffort {
    pub stream: ClosedRobot,
    /// Most requests under way at a time.
    pub most: u32,
    /// Requests under way, or scheduled.
    pub busy: u32,
    /// Requests launched in this phase.
    pub launched: u32,
}

/// Position in the schedule.
#[derive(Debug)]
pub struct ScheduleState {
    /// Number of the current interval.
    pub interval_number: u64,
    pub phase: u16,
    /// Instant at which what is under way is given up; none: the schedule is not over.
    pub drain_until_ns: Option<u64>,
    /// The last interval has ended.
    pub finished: bool,
    /// The timer that is set for the next launch or end of an interval.
    pub next: Option<TimerKey>,
    /// The first launches were made.
    pub begun: bool,
    pub ticks: u32,
}

/// One worker's robots and everything that is under way.
#[derive(Debug)]
pub struct Worker {
    pub setup: Arc<RobotSetup>,
    pub control: Arc<RunControl>,
    /// Share of the robots that belongs to this worker.
    pub slice: Slice,
    /// Robots of the slice, in order.
    pub robots: Vec<Robot>,
    /// Under way or waiting.
    pub xacts: Slab<Xact>,
    /// Pages of which something is under way or waiting.
    pub pages: Slab<PageLoad>,
    /// Open or being opened.
    pub connections: Slab<RobotConnection>,
    /// Connections made so far; names them.
    pub connection_serial: u64,
    /// Counts of each phase in the current interval.
    pub recorders: Recorders,
    pub levels: RobotLevels,
    /// Events for the ideal cache in the current interval.
    pub ideal_events: Vec<IdealEvent>,
    pub schedule_state: ScheduleState,
    /// Everything is read into this.
    pub buffer: Box<[u8]>,
    /// Requests are put together here.
    pub scratch: Vec<u8>,
    pub dates: DateCache,
    /// Vectors of pages that have ended.
    pub spare_children: Vec<Vec<Child>>,
    /// Measurements for load that adapts.
    pub sampler: Option<WorkerSampler>,
    /// Share of best-effort robots alive; none: as the phase says.
    pub alive: Option<f64>,
    /// The xact log, when there is one.
    pub log: Option<XactLogQueue>,
    /// Examples sent of each kind.
    pub examples: [u8; ErrorKind::ALL.len()],
    /// The timer of this worker.
    pub timer: Rc<Timer<RobotTimerEvent>>,
    /// The sockets of its connections.
    pub sockets: Rc<Sockets>,
    pub self_check: SelfCheck,
    pub schedule: LaunchSchedule,
    /// The time within which its quickest responses come.
    pub quick: LowQuantile,
    /// Offset between the kernel's timestamps and `CLOCK_MONOTONIC`.
    pub arrivals: ClockOffset,
    /// Time for which the bytes being handled lay unread, in microseconds; 0 while there are none.
    pub unread_us: u32,
    /// Assay's delay of the xact whose connection is being released, in microseconds; 0 while there is none.
    pub freed_late_us: u32,
    /// Instant from which waits of the target can have delayed that xact, in nanoseconds of `CLOCK_MONOTONIC`; 0 while
    /// there is none.
    pub freed_since_ns: u64,
    /// Responses that came to their end on the streams of the connection that is being read.
    pub responses_on_streams: u32,
    pub in_flight_baseline: InFlightBaseline,
    reports: UnboundedSender<RobotReport>,
}

impl Worker {
    /// The robots of `slice`, and their stream.
    pub fn new(
        setup: Arc<RobotSetup>,
        control: Arc<RunControl>,
        slice: Slice,
        mut schedule: LaunchSchedule,
        log: Option<XactLogQueue>,
        reports: UnboundedSender<RobotReport>,
        io: WorkerIo,
    ) -> Self {
        let robots = make_robots(&setup, slice);
        schedule.start_at(control.clock.start_ns);
        let phases = setup.timeline.phases().len();
        let schedule_state = ScheduleState {
            interval_number: 0,
            phase: 0,
            drain_until_ns: None,
            finished: false,
            next: None,
            begun: false,
            ticks: 0,
        };
        Self {
            schedule,
            slice,
            robots,
            xacts: Slab::new(),
            pages: Slab::new(),
            connections: Slab::new(),
            connection_serial: 0,
            recorders: Recorders::new(phases),
            levels: RobotLevels::default(),
            ideal_events: Vec::new(),
            schedule_state,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            scratch: Vec::with_capacity(4096),
            dates: DateCache::default(),
            spare_children: Vec::new(),
            sampler: setup.adapts.then(WorkerSampler::default),
            alive: None,
            log,
            examples: [0; ErrorKind::ALL.len()],
            timer: io.timer,
            sockets: io.sockets,
            self_check: io.self_check,
            quick: LowQuantile::default(),
            arrivals: ClockOffset::measure(),
            unread_us: 0,
            freed_late_us: 0,
            freed_since_ns: 0,
            responses_on_streams: 0,
            in_flight_baseline: InFlightBaseline::default(),
            reports,
            setup,
            control,
        }
    }

    /// Counts of a phase in the current interval.
    #[inline]
    pub fn recorder(&mut self, phase: u16) -> &mut RobotRecorder {
        self.recorders.recorder(phase)
    }

    pub fn phase(&self) -> u16 {
        self.schedule_state.phase
    }

    /// True once nothing new is launched.
    pub fn is_draining(&self) -> bool {
        self.schedule_state.drain_until_ns.is_some()
    }

    /// Place of a robot among this worker's.
    pub fn place_of(&self, robot: RobotIndex) -> u32 {
        self.slice.place(robot) as u32
    }

    /// Tells the coordinator; if it is gone, so will this process be.
    pub fn report(&self, report: RobotReport) {
        let _ = self.reports.send(report);
    }

    /// Adds to what other threads see of this worker's progress.
    pub fn progress(&self, add: impl FnOnce(&super::control::WorkerProgress)) {
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

fn make_robots(setup: &RobotSetup, slice: Slice) -> Vec<Robot> {
    let universe = &setup.universe;
    let mine = (0..universe.robot_count()).filter(|&robot| slice.has(robot));
    mine.filter_map(|index| {
        let group = universe.group_of(index)?;
        let version = setup.version_of(index, &universe.workload().robots[group]);
        let most = if version == HttpVersion::Http2 { setup.groups[group].streams } else { 1 };
        let best_effort = setup.groups[group].best_effort.then(|| {
            Box::new(BestEffort { stream: ClosedRobot::new(universe, index), most, busy: 0, launched: 0 })
        });
        Some(Robot {
            index,
            group: group as u16,
            version,
            open: 0,
            connections: 0,
            idle: ListEnds::EMPTY,
            pipelining: ListEnds::EMPTY,
            waiting_first: NONE,
            waiting_last: NONE,
            waiting: 0,
            delayed_behind_us: 0,
            best_effort,
            memory: RobotMemory::initial(universe, index),
            tls: None,
        })
    })
    .collect()
}
