//! One worker: its robots and everything that is under way, all of it for one thread alone.
//!
//! The state lies in five parts, each of which keeps its own order: the [`ScheduleState`] (what is launched next), the
//! [`Xacts`], the [`Connections`], the [`Recorder`] (what is measured) and the [`Network`] (timer and sockets). Methods
//! of [`Worker`] are the transitions that touch several of them; each takes the [`Trigger`] that it follows from.

use std::ops::{Index, IndexMut};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use assay_workload::model::{HttpVersion, RobotIndex};
use assay_workload::{ClosedRobot, Slice};

use super::connection::{ConnectionKey, ListEnds};
use super::control::{RunControl, WorkerProgress};
use super::events::ScheduleState;
use super::log::XactLogQueue;
use super::memory::RobotMemory;
use super::network::Network;
use super::pool::Connections;
use super::recorder::{Recorder, RobotReport};
use super::schedule::LaunchSchedule;
use super::setup::RobotSetup;
use super::xact::{XactKey, XactQueue, Xacts};
use assay_net::tls::client::TlsClient;
use tokio::sync::mpsc::UnboundedSender;

/// Event of a worker's timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RobotTimerEvent {
    /// The next launch or end of an interval.
    Schedule,
    /// Shared numbers and time-outs.
    Tick,
    /// A best-effort robot tries again.
    BestEffort(RobotKey),
    /// A request body has waited long enough on this connection.
    ContinueTimeout(ConnectionKey),
    /// The xact may have expired.
    Expiry(XactKey),
}

/// What a worker acts on, with the delays that it passes on to what it does.
#[derive(Debug, Clone, Copy)]
pub struct Trigger {
    /// Time for which the received bytes lay unread, in microseconds; 0 for a timer.
    pub unread_us: u32,
    /// The xact whose connection or stream has become free.
    pub released: Option<ReleasedXact>,
}

/// An xact that is over, as far as it concerns one that waited for its connection or stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReleasedXact {
    /// Assay's delay of it, in microseconds.
    pub delayed_us: u32,
    /// Instant from which waits of the target can have delayed it, in nanoseconds of `CLOCK_MONOTONIC`.
    pub exposed_from_ns: u64,
}

impl Trigger {
    /// Nothing lay unread: a timer, or a socket that can be written to.
    pub const UNDELAYED: Trigger = Trigger::bytes(0);

    /// Trigger by bytes that lay unread for `unread_us` microseconds.
    pub const fn bytes(unread_us: u32) -> Self {
        Self { unread_us, released: None }
    }

    /// The same, for what follows from the release of a connection.
    pub fn releasing(&self, released: Option<ReleasedXact>) -> Self {
        Self { released, ..*self }
    }
}

impl ReleasedXact {
    /// Bound for one that waited for either of two.
    pub fn either(self, other: ReleasedXact) -> ReleasedXact {
        ReleasedXact {
            delayed_us: self.delayed_us.max(other.delayed_us),
            exposed_from_ns: self.exposed_from_ns.min(other.exposed_from_ns),
        }
    }
}

/// Key of a robot among those of its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RobotKey(u32);

/// The robots of one worker, in order.
#[derive(Debug)]
pub struct Robots {
    slice: Slice,
    robots: Vec<Robot>,
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
    /// Xacts that wait for a connection.
    pub waiting: XactQueue,
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
    /// Limit of concurrent requests.
    pub most: u32,
    /// Requests under way, or scheduled.
    pub busy: u32,
    /// Requests launched in this phase.
    pub launched: u32,
}

/// One worker's robots and everything that is under way.
#[derive(Debug)]
pub struct Worker {
    pub setup: Arc<RobotSetup>,
    pub control: Arc<RunControl>,
    pub robots: Robots,
    pub schedule: ScheduleState,
    pub xacts: Xacts,
    pub connections: Connections,
    pub recorder: Recorder,
    pub network: Network,
}

impl Worker {
    /// The robots of `slice`, and their stream.
    pub fn new(
        setup: Arc<RobotSetup>,
        control: Arc<RunControl>,
        slice: Slice,
        launches: LaunchSchedule,
        log: Option<XactLogQueue>,
        reports: UnboundedSender<RobotReport>,
        network: Network,
    ) -> Self {
        Self {
            robots: Robots::new(&setup, slice),
            schedule: ScheduleState::new(launches, control.clock.start_ns),
            xacts: Xacts::default(),
            connections: Connections::default(),
            recorder: Recorder::new(setup.clone(), control.clock, log, reports),
            network,
            setup,
            control,
        }
    }

    pub fn phase(&self) -> u16 {
        self.schedule.phase()
    }

    /// What other threads see of this worker's progress.
    pub fn progress(&self) -> &WorkerProgress {
        self.control.progress(self.robots.slice.index as usize)
    }

    /// Counts an xact that has ended.
    pub fn count_ended(&self, phase: u16) {
        if phase == self.phase() && self.control.is_open(phase) {
            let ended = &self.progress().ended;
            ended.store(ended.load(Relaxed) + 1, Relaxed);
        }
    }

    /// Counts the fill that is due.
    pub fn count_fill(&self, phase: u16, bytes: u64) {
        let WorkerProgress { fill_objects, fill_bytes, .. } = self.progress();
        fill_objects.store(fill_objects.load(Relaxed) + 1, Relaxed);
        if phase == self.phase() {
            fill_bytes.store(fill_bytes.load(Relaxed) + bytes, Relaxed);
        }
    }
}

impl Robots {
    fn new(setup: &RobotSetup, slice: Slice) -> Self {
        let universe = &setup.universe;
        let robot = |index| {
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
                idle: ListEnds::default(),
                pipelining: ListEnds::default(),
                waiting: XactQueue::default(),
                delayed_behind_us: 0,
                best_effort,
                memory: RobotMemory::initial(universe, index),
                tls: None,
            })
        };
        let mine = (0..universe.robot_count()).filter(|&index| slice.has(index));
        Self { slice, robots: mine.filter_map(robot).collect() }
    }

    /// Key of a robot of this worker.
    pub fn key_of(&self, index: RobotIndex) -> RobotKey {
        RobotKey(self.slice.place(index) as u32)
    }

    pub fn keys(&self) -> impl Iterator<Item = RobotKey> + use<> {
        (0..self.robots.len() as u32).map(RobotKey)
    }

    /// Best-effort robots, with the state that only they have.
    pub fn best_effort_mut(&mut self) -> impl Iterator<Item = (RobotIndex, &mut BestEffort)> {
        self.robots.iter_mut().filter_map(|robot| Some((robot.index, robot.best_effort.as_deref_mut()?)))
    }
}

impl Index<RobotKey> for Robots {
    type Output = Robot;

    #[inline]
    fn index(&self, RobotKey(at): RobotKey) -> &Robot {
        &self.robots[at as usize]
    }
}

impl IndexMut<RobotKey> for Robots {
    #[inline]
    fn index_mut(&mut self, RobotKey(at): RobotKey) -> &mut Robot {
        &mut self.robots[at as usize]
    }
}

#[cfg(test)]
impl RobotKey {
    pub const FIRST: RobotKey = RobotKey(0);
}
