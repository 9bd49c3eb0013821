//! One worker: what it owns, and what it does when. The state of its robots, their launches and cuts.
//!
//! Everything here belongs to one thread. The timer wakes it for the next launch or cut, sockets wake it when bytes have
//! come; either way one `&mut Crew` does all there is to do ([`Duty`]), and nothing waits inside.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use assay_http::date::DateCache;
use assay_measurement::error_kind::{ErrorExample, ErrorKind};
use assay_measurement::health::{Stall, ThreadInterval};
use assay_measurement::interval::RobotLevels;
use assay_workload::model::{HttpVersion, RobotIndex};
use assay_workload::{Child, ClosedRobot, Slice};
use slab::Slab;
use tokio::sync::mpsc::UnboundedSender;

use super::agenda::{Agenda, Step};
use super::connection::Connection;
use super::control::Control;
use super::health::Health;
use super::log::LogQueue;
use super::memory::Memory;
use super::pool::List;
use super::sampling::{Piece, Sampler};
use super::setup::Setup;
use super::xact::{NONE, Page, Xact};
use crate::tally::Recorder;
use crate::tally::ideal::IdealNote;
use crate::tally::merge::{Cut, Handover};
use crate::watch::{self, TICK_NS};
use assay_plane::clock::{SECOND_NS, monotonic_ns};
use assay_plane::gather::Quick;
use assay_plane::sockets::{Readiness, Sockets};
use assay_plane::timer::{Duty, Ticket, Timer};

/// Every so many ticks, connections are looked through for time-outs.
const TICKS_PER_SCAN: u32 = 5;
/// Launches handled in a row before connections get their turn.
const LAUNCHES_IN_A_ROW: u32 = 64;
/// How long launches that are late already give way to them.
const BREATH_NS: u64 = 20_000;
/// Longest wait for what is under way after the last phase.
const LONGEST_DRAIN_NS: u64 = 10 * SECOND_NS;
/// The same after a stop.
const DRAIN_AFTER_STOP_NS: u64 = 2 * SECOND_NS;
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
    Thread(Box<ThreadInterval>),
    /// It stood still.
    Stall(Stall),
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

/// One robot.
#[derive(Debug)]
pub struct Robot {
    /// Its number.
    pub index: RobotIndex,
    /// Its group.
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
    /// How many.
    pub waiting: u32,
    /// Best-effort robots only.
    pub closed: Option<Box<Closed>>,
    /// What it remembers, if anything.
    pub memory: Option<Box<Memory>>,
}

/// A best-effort robot's own state.
#[derive(Debug)]
pub struct Closed {
    /// Its stream.
    pub stream: ClosedRobot,
    /// It has something under way, or will try again by itself.
    pub busy: bool,
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
    next: Option<Ticket>,
    begun: bool,
    ticks: u32,
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
    pub recorders: Vec<Option<Box<Recorder>>>,
    /// Levels now.
    pub levels: RobotLevels,
    /// Notes for the ideal cache since the last cut.
    pub notes: Vec<IdealNote>,
    /// Where we are in the schedule.
    pub clockwork: Clockwork,
    /// Everything is read into this.
    pub buffer: Box<[u8]>,
    /// Requests are put together here.
    pub scratch: Vec<u8>,
    /// Dates in requests.
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
    /// Within what time its quickest answers come.
    pub quick: Quick,
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
            recorders: (0..phases).map(|_| None).collect(),
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
            reports,
            setup,
            control,
        }
    }

    /// Counts of a phase since the last cut.
    #[inline]
    pub fn recorder(&mut self, phase: u16) -> &mut Recorder {
        self.recorders[usize::from(phase)].get_or_insert_default()
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

    /// Sets the first alarms. Call once, before the start.
    pub fn wind_up(&mut self) {
        self.wake_at(self.control.clock.start_ns);
        self.timer.schedule(self.control.clock.start_ns, Alarm::Tick);
    }

    /// Sets the alarm for the next launch or cut; there is only one.
    fn wake_at(&mut self, at_ns: u64) {
        let ticket = self.timer.schedule(at_ns, Alarm::Next);
        if let Some(earlier) = self.clockwork.next.replace(ticket) {
            self.timer.cancel(earlier);
        }
    }

    /// Makes all cuts and launches that are due, in order.
    fn catch_up(&mut self) {
        if !self.clockwork.begun {
            self.clockwork.begun = true;
            self.launch_in_windows();
            self.launch_all_closed();
        }
        let mut handled = 0;
        while !self.clockwork.finished {
            let now_ns = monotonic_ns();
            self.hear_changes();
            match self.agenda.step(now_ns, self.phase_end_ns()) {
                Step::Wait(until_ns) => return self.wake_at(until_ns),
                Step::Cut(at_ns) => self.cut(at_ns),
                Step::Launch(launch, due_ns) => {
                    self.launch(&launch, due_ns);
                    handled += 1;
                    if handled == LAUNCHES_IN_A_ROW {
                        return self.wake_at(now_ns + BREATH_NS);
                    }
                }
            }
        }
    }

    /// Takes in the changes of load that were announced since; true if there are any. To be called after the clock
    /// was read, and before anything is done with that.
    fn hear_changes(&mut self) -> bool {
        let Some(seen) = self.agenda.announced() else { return false };
        let changes = self.control.changes_after(seen);
        let are_any = !changes.is_empty();
        changes.into_iter().for_each(|change| self.agenda.announce(change));
        are_any
    }

    /// When the phase that is on ends; none, once nothing new is launched.
    fn phase_end_ns(&self) -> Option<u64> {
        (!self.is_draining()).then(|| self.control.end_ns(self.phase()))
    }

    /// Ends the interval, and the phase if it ends here.
    fn cut(&mut self, at_ns: u64) {
        let phase = self.phase();
        let ends_phase = !self.is_draining() && at_ns >= self.control.end_ns(phase);
        if !ends_phase {
            self.hand_over(at_ns, false, Vec::new(), false);
            return;
        }
        self.cancel_phase(phase, at_ns);
        let launched = self.take_launched();
        if self.control.is_over(phase, at_ns) {
            let longest_ns = if self.control.is_stopping() { DRAIN_AFTER_STOP_NS } else { LONGEST_DRAIN_NS };
            let drain_ns = longest_ns.min(self.setup.timeout.as_nanos() as u64);
            self.clockwork.drain_until_ns = Some(at_ns.max(monotonic_ns()) + drain_ns);
            self.hand_over(at_ns, true, launched, false);
            self.finish_if_drained();
            return;
        }
        self.hand_over(at_ns, true, launched, false);
        self.clockwork.phase += 1;
        self.enter_phase();
        self.launch_all_closed();
    }

    /// Hands over what was counted since the last cut.
    fn hand_over(&mut self, at_ns: u64, ends_phase: bool, launched: Vec<(RobotIndex, u32)>, last: bool) {
        self.sample_counts(true);
        let clock = self.control.clock;
        let cut = Cut {
            from_us: clock.since_start_us(self.agenda.last_cut_ns()),
            to_us: clock.since_start_us(at_ns),
            phase: self.phase(),
            ends_phase,
        };
        if let Some(log) = &mut self.log {
            let dropped = log.flush();
            if dropped > 0 {
                self.recorder(cut.phase).counts.dropped_samples += dropped;
            }
        }
        let taken = self.recorders.iter_mut().enumerate();
        let phases = taken.filter_map(|(phase, slot)| Some((phase as u16, slot.take()?))).collect();
        let handover = Handover {
            number: self.clockwork.cut_number,
            cut,
            phases,
            levels: self.levels,
            notes: std::mem::take(&mut self.notes),
            launched,
            last,
        };
        self.clockwork.cut_number += 1;
        self.agenda.cut_made(at_ns);
        // First: with the last handover, everything has been said.
        self.hand_over_health(monotonic_ns());
        self.report(Report::Handover(Box::new(handover)));
    }

    /// Looks at itself, at the shared numbers, and now and then for what has timed out.
    fn tick(&mut self, at_ns: u64) {
        if self.clockwork.finished {
            return;
        }
        let now_ns = monotonic_ns();
        self.look_at_itself(now_ns);
        self.timer.schedule(watch::next_tick_ns(at_ns, now_ns), Alarm::Tick);
        // The end of a phase may have become known since the alarm for the next cut was set.
        let changes = self.hear_changes();
        let end_ns = self.phase_end_ns();
        if changes || self.agenda.next_cut_ns(end_ns) <= now_ns + 2 * TICK_NS {
            let next_ns = self.agenda.next_ns(now_ns, end_ns);
            self.wake_at(next_ns);
        }
        self.hand_over_sample(now_ns);
        let alive = self.control.alive();
        if alive != self.alive {
            self.alive = alive;
            self.launch_all_closed();
        }
        if self.control.is_frozen() {
            self.freeze();
        }
        self.clockwork.ticks += 1;
        if self.clockwork.ticks.is_multiple_of(TICKS_PER_SCAN) {
            self.scan(now_ns);
        }
        self.finish_if_drained();
    }

    /// The working set of best-effort robots stops growing. Repeating it changes nothing.
    fn freeze(&mut self) {
        for closed in self.robots.iter_mut().filter_map(|robot| robot.closed.as_mut()) {
            closed.stream.freeze();
        }
    }

    /// After the schedule: makes the last cut once nothing is under way any more, or that has lasted too long.
    fn finish_if_drained(&mut self) {
        let Some(until_ns) = self.clockwork.drain_until_ns else { return };
        let now_ns = monotonic_ns();
        if self.clockwork.finished || (self.levels.in_flight > 0 && now_ns < until_ns) {
            return;
        }
        self.time_out_all(now_ns);
        self.close_all();
        self.clockwork.finished = true;
        self.hand_over(now_ns, false, Vec::new(), true);
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

    fn enter_phase(&mut self) {
        let phase = self.phase();
        self.progress(|progress| {
            progress.ended.store(0, Relaxed);
            progress.fill_bytes.store(0, Relaxed);
            progress.phase.store(u64::from(phase), Relaxed);
        });
        self.sample_anew();
        let universe = self.setup.universe.clone();
        for closed in self.robots.iter_mut().filter_map(|robot| robot.closed.as_mut()) {
            closed.stream.enter_phase(&universe, phase);
        }
    }

    /// Requests that each best-effort robot launched in the phase that ends.
    fn take_launched(&mut self) -> Vec<(RobotIndex, u32)> {
        let closed = |robot: &mut Robot| {
            let index = robot.index;
            robot.closed.as_mut().map(|closed| (index, std::mem::take(&mut closed.launched)))
        };
        self.robots.iter_mut().filter_map(closed).collect()
    }
}

impl Duty<Alarm> for Crew {
    fn ring(&mut self, at_ns: u64, alarm: Alarm) {
        match alarm {
            Alarm::Next => self.catch_up(),
            Alarm::Tick => self.tick(at_ns),
            Alarm::Robot(place) => self.launch_closed(place),
            Alarm::Body(slot, id) => self.wait_no_longer(slot, id),
            Alarm::Expiry(place) => self.expire(place),
        }
    }

    #[inline]
    fn ready(&mut self, key: u64, readiness: Readiness) {
        self.serve_socket(key, readiness);
    }

    fn under_way(&self) -> u64 {
        self.levels.in_flight
    }

    fn quick(&self) -> Quick {
        self.quick
    }

    fn is_over(&self) -> bool {
        self.clockwork.finished
    }
}

fn make_robots(setup: &Setup, slice: Slice) -> Vec<Robot> {
    let universe = &setup.universe;
    let mine = (0..universe.robot_count()).filter(|&robot| slice.has(robot));
    mine.filter_map(|index| {
        let group = universe.group_of(index)?;
        let closed = setup.groups[group].best_effort.then(|| {
            Box::new(Closed { stream: ClosedRobot::new(universe, index), busy: false, launched: 0 })
        });
        Some(Robot {
            index,
            group: group as u16,
            version: setup.version_of(index, &universe.workload().robots[group]),
            open: 0,
            connections: 0,
            idle: List::EMPTY,
            pipelining: List::EMPTY,
            waiting_first: NONE,
            waiting_last: NONE,
            waiting: 0,
            closed,
            memory: Memory::of(universe, index),
        })
    })
    .collect()
}
