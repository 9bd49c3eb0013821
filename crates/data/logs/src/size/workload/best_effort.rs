//! Robots that send a request when they have the response to the one before (best effort), and the phases that end at what
//! they have done.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use assay_workload::model::RobotIndex;
use assay_workload::{ClosedRobot, Freeze, Launch, SessionClock, Timeline, Universe};

use super::is_best_effort;
use super::walk::nanoseconds;

/// Requests of a launch and its embedded objects, and the objects that they introduced.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FillCounts {
    /// Requests, embedded objects among them.
    pub(super) requests: u64,
    /// Basic first visits of cachable objects.
    pub(super) objects: u64,
    pub(super) bytes: u64,
}

impl FillCounts {
    pub(super) fn add(&mut self, is_fill: bool, bytes: u64) {
        if is_fill {
            self.objects += 1;
            self.bytes += bytes;
        }
    }
}

struct BestEffortRobot {
    index: RobotIndex,
    stream: ClosedRobot,
    /// Session clock, and launches in the current busy period.
    sessions: Option<(SessionClock, u64)>,
    /// Not alive in this phase: it has no place in the heap.
    is_asleep: bool,
}

pub(super) struct BestEffortRobots {
    timeline: Arc<Timeline>,
    robots: Vec<BestEffortRobot>,
    /// Next possible launch of each robot that is alive.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    response_ns: u64,
    phase: usize,
    phase_start_ns: u64,
    /// In the phase that is on.
    in_phase: FillCounts,
    fill_objects: u64,
    is_frozen: bool,
    is_over: bool,
}

impl BestEffortRobots {
    pub(super) fn new(universe: &Universe, timeline: &Arc<Timeline>, response_ns: u64) -> Self {
        let groups = &universe.workload().robots;
        let is_best_effort = |robot: &RobotIndex| {
            universe.group_of(*robot).is_some_and(|group| is_best_effort(&groups[group].pace))
        };
        let robots: Vec<BestEffortRobot> = (0..universe.robot_count())
            .filter(is_best_effort)
            .map(|index| BestEffortRobot {
                index,
                stream: ClosedRobot::new(universe, index),
                sessions: SessionClock::new(universe, index).map(|clock| (clock, 0)),
                is_asleep: true,
            })
            .collect();
        let mut this = Self {
            timeline: Arc::clone(timeline),
            robots,
            next: BinaryHeap::new(),
            response_ns,
            phase: 0,
            phase_start_ns: 0,
            in_phase: FillCounts::default(),
            fill_objects: 0,
            is_frozen: false,
            is_over: false,
        };
        this.wake(universe, 0);
        this
    }

    /// Time of the next possible launch; none: all phases are over.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.next.peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// The next launch and its time; none: the robot whose turn it is has nothing to launch.
    pub(super) fn take(&mut self, universe: &Universe) -> Option<(Launch, u64)> {
        let Reverse((at_ns, place)) = self.next.pop()?;
        self.advance_phases(universe, at_ns);
        if self.is_over {
            self.next.clear();
            return None;
        }
        if matches!(self.timeline.freeze(), Freeze::At(at) if at_ns >= nanoseconds(at)) {
            self.freeze();
        }
        let alive = self.alive(universe);
        let robot = &mut self.robots[place as usize];
        if !universe.is_alive(robot.index, alive) {
            robot.is_asleep = true;
            return None;
        }
        let mut session = 0;
        if let Some((clock, made)) = &mut robot.sessions {
            let state = clock.at(universe, at_ns);
            if !state.busy {
                if state.until_ns < u64::MAX {
                    self.next.push(Reverse((state.until_ns, place)));
                }
                return None;
            }
            session = state.session;
            *made += 1;
            if clock.transactions(universe).is_some_and(|most| *made >= most) {
                *made = 0;
                clock.finish(universe, at_ns);
            }
        }
        let launch = robot.stream.next(universe);
        let after = self.response_ns.saturating_add(nanoseconds(universe.pause(robot.index, launch.number)));
        // A robot whose responses take no time would never let time pass.
        self.next.push(Reverse((at_ns.saturating_add(after.max(1)), place)));
        Some((Launch { due: Duration::from_nanos(at_ns), session, ..launch }, at_ns))
    }

    /// Takes note of what a launch introduced.
    pub(super) fn launched(&mut self, universe: &Universe, launch: &Launch, fill: &FillCounts) {
        self.in_phase.requests += fill.requests;
        self.in_phase.objects += fill.objects;
        self.in_phase.bytes += fill.bytes;
        self.fill_objects += fill.objects;
        if matches!(self.timeline.freeze(), Freeze::Live { fill_objects } if self.fill_objects >= fill_objects)
        {
            self.freeze();
        }
        // The launch stands for its phase's end as soon as its goal is reached.
        self.advance_phases(universe, nanoseconds(launch.due));
    }

    /// Enters the phases that have begun by now.
    fn advance_phases(&mut self, universe: &Universe, now_ns: u64) {
        while !self.is_over {
            let Some(end_ns) = self.end_ns(universe, now_ns).filter(|end_ns| *end_ns <= now_ns) else {
                return;
            };
            self.phase += 1;
            self.is_over = self.phase >= universe.workload().schedule.phases.len();
            (self.phase_start_ns, self.in_phase) = (end_ns, FillCounts::default());
            if self.is_over {
                return;
            }
            let phase = self.phase as u16;
            self.robots.iter_mut().for_each(|robot| robot.stream.enter_phase(universe, phase));
            self.wake(universe, now_ns);
        }
    }

    /// End of the current phase, as far as it is known now.
    fn end_ns(&self, universe: &Universe, now_ns: u64) -> Option<u64> {
        let span = &self.timeline.phases()[self.phase];
        if let Some(end) = span.end {
            return Some(nanoseconds(end));
        }
        let phase = &universe.workload().schedule.phases[self.phase];
        if phase.wait_for_freeze && !self.is_frozen && self.timeline.freeze() != Freeze::Never {
            return None;
        }
        let goal = &phase.goal;
        let is_reached = |have: u64, want: Option<u64>| want.is_some_and(|want| want > 0 && have >= want);
        if is_reached(self.in_phase.requests, goal.transactions)
            || is_reached(self.in_phase.bytes, goal.fill_bytes)
        {
            return Some(now_ns);
        }
        goal.duration.map(|duration| self.phase_start_ns.saturating_add(nanoseconds(duration)))
    }

    /// All robots that sleep look whether they are alive.
    fn wake(&mut self, universe: &Universe, now_ns: u64) {
        let alive = self.alive(universe);
        for (place, robot) in (0..).zip(&mut self.robots) {
            if robot.is_asleep && universe.is_alive(robot.index, alive) {
                robot.is_asleep = false;
                self.next.push(Reverse((now_ns, place)));
            }
        }
    }

    /// The share of robots that are alive in the phase that is on: its mean, as in a run.
    fn alive(&self, universe: &Universe) -> f64 {
        let phases = &universe.workload().schedule.phases;
        phases.get(self.phase).map_or(0.0, |phase| (phase.population.begin + phase.population.end) / 2.0)
    }

    fn freeze(&mut self) {
        if !self.is_frozen {
            self.is_frozen = true;
            self.robots.iter_mut().for_each(|robot| robot.stream.freeze());
        }
    }
}
