//! First visits of all public worlds in the order in which they are due, and how many of a world's objects may be
//! revisited at an instant.
//!
//! A serial is the number of first visits that a world has had before. Robots with a rate make theirs where the world's
//! Poisson process has a point ([`crate::points`]); robots with a law of their own for their intervals make theirs on their
//! own instants, which every slice of a stream walks along for all of them ([`crate::arrivals`]). The first one may take the place
//! of a revisit, as there is nothing to revisit before. So all slices meet all first visits in one order, and give them the same serials.

use std::cmp::Reverse;
use std::collections::binary_heap::PeekMut;
use std::collections::{BinaryHeap, VecDeque};

use crate::layout::SchedulePosition;
use crate::points::Walk;
use crate::schedule::Segment;
use crate::worlds::{World, Worlds};

/// Progress of a stream in the first visits of all worlds.
#[derive(Debug)]
pub(crate) struct Introductions {
    /// The next point of each world's process: when it is due, and the world. Soonest first.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    states: Vec<WorldState>,
    /// Whether the sizes at the freeze have been noted.
    frozen: bool,
}

/// Progress of a stream in the first visits of one world.
#[derive(Debug)]
struct WorldState {
    /// From the next point on, and where that is due.
    ahead: Walk,
    at: SchedulePosition,
    /// The next first visit is no point, but takes the place of a revisit.
    is_opening: bool,
    /// First visits so far: the serial of the next one.
    made: u64,
    /// Size of the world when the working set froze.
    frozen: u64,
    /// From the first point on that may not be revisited yet, and the points before it.
    behind: Walk,
    passed: u64,
    /// First visits that are no points: when those were that may not be revisited yet, and the number of the others.
    recent: VecDeque<u64>,
    settled: u64,
}

/// A first visit that is due.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstVisit {
    pub(crate) due_ns: u64,
    pub(crate) at: SchedulePosition,
    pub(crate) world: u32,
    pub(crate) serial: u64,
    /// The visit takes the place of a revisit.
    pub(crate) is_opening: bool,
}

impl Introductions {
    pub(crate) fn new(worlds: &Worlds, segments: &[Segment]) -> Self {
        let state = |world: &World| WorldState {
            ahead: Walk::new(world.points),
            at: SchedulePosition { segment: 0, u: 0.0 },
            is_opening: false,
            made: 0,
            frozen: 0,
            behind: Walk::new(world.points),
            passed: 0,
            recent: VecDeque::new(),
            settled: 0,
        };
        let states = worlds.worlds().iter().map(state).collect();
        let mut this = Self { next: BinaryHeap::with_capacity(worlds.worlds().len()), states, frozen: false };
        this.retime(worlds, segments);
        this
    }

    /// Goes on with another schedule, which is the same as the one before up to the last first visit that was taken. Points
    /// stay where they are; when they are due may change.
    pub(crate) fn retime(&mut self, worlds: &Worlds, segments: &[Segment]) {
        self.next.clear();
        (0..worlds.worlds().len() as u32).for_each(|index| self.look_ahead(worlds, segments, index));
    }

    fn look_ahead(&mut self, worlds: &Worlds, segments: &[Segment], index: u32) {
        let (world, state) = (&worlds.worlds()[index as usize], &mut self.states[index as usize]);
        if let Some(due_ns) = state.find(worlds, world, segments, 0) {
            self.next.push(Reverse((due_ns, index)));
        }
    }

    /// Due time of the soonest point.
    #[inline]
    pub(crate) fn peek(&self) -> Option<u64> {
        self.next.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// Takes the soonest point and puts the next one of its world in its place.
    #[inline]
    pub(crate) fn pop(&mut self, worlds: &Worlds, segments: &[Segment]) -> Option<FirstVisit> {
        let mut top = self.next.peek_mut()?;
        let Reverse((due_ns, index)) = *top;
        let (world, state) = (&worlds.worlds()[index as usize], &mut self.states[index as usize]);
        let is_opening = state.is_opening;
        let taken = FirstVisit { due_ns, at: state.at, world: index, serial: state.made, is_opening };
        state.made += 1;
        if is_opening {
            state.recent.push_back(due_ns);
        } else {
            state.ahead.step();
        }
        match state.find(worlds, world, segments, taken.at.segment) {
            Some(due_ns) => *top = Reverse((due_ns, index)),
            None => {
                PeekMut::pop(top);
            }
        }
        Some(taken)
    }

    /// Adds a first visit on a robot's own instant. Gives its serial.
    pub(crate) fn add(&mut self, worlds: &Worlds, segments: &[Segment], index: u32, due_ns: u64) -> u64 {
        let state = &mut self.states[index as usize];
        state.recent.push_back(due_ns);
        state.made += 1;
        let serial = state.made - 1;
        if state.is_opening {
            // There is something to revisit now.
            self.next.retain(|Reverse((_, world))| *world != index);
            self.look_ahead(worlds, segments, index);
        }
        serial
    }

    /// True if nothing in a world was visited yet.
    pub(crate) fn is_empty(&self, world: u32) -> bool {
        self.states[world as usize].made == 0
    }

    /// Notes how large all worlds are, if they have not been noted: what comes next is due after the freeze.
    #[inline]
    pub(crate) fn freeze(&mut self) {
        if !self.frozen {
            self.frozen = true;
            self.states.iter_mut().for_each(|state| state.frozen = state.made);
        }
    }

    /// The size of a world when the working set froze; none: it has not.
    pub(crate) fn frozen(&self, world: u32) -> Option<u64> {
        self.frozen.then(|| self.states[world as usize].frozen)
    }

    /// The number of serials that may be revisited at an instant, which is in a segment or behind it: those whose first fetch has
    /// had its time; all, if there are none such yet. Instants must be taken in order.
    #[inline]
    pub(crate) fn available(
        &mut self,
        worlds: &Worlds,
        segments: &[Segment],
        index: u32,
        now_ns: u64,
        segment: usize,
    ) -> u64 {
        let (world, state) = (&worlds.worlds()[index as usize], &mut self.states[index as usize]);
        let Some(then_ns) = now_ns.checked_sub(world.delta_ns) else { return state.made };
        state.passed += state.behind.pass(worlds.expected_points(world, segments, then_ns, segment));
        while state.recent.front().is_some_and(|instant_ns| *instant_ns <= then_ns) {
            state.recent.pop_front();
            state.settled += 1;
        }
        match state.passed + state.settled {
            0 => state.made,
            fetched => fetched,
        }
    }
}

impl WorldState {
    /// Finds when the next first visit is due, looking from a segment on; none: not within the schedule.
    #[inline]
    fn find(&mut self, worlds: &Worlds, world: &World, segments: &[Segment], from: usize) -> Option<u64> {
        let instant_ns = |at: &SchedulePosition| segments[at.segment].instant_ns(at.u);
        let point = self.ahead.peek().and_then(|point| worlds.position_of_point(world, point, from));
        let opening = if self.made == 0 { worlds.position_of_opening(world) } else { None };
        let due = |place: &Option<SchedulePosition>| place.as_ref().map_or(u64::MAX, instant_ns);
        self.is_opening = due(&opening) < due(&point);
        self.at = if self.is_opening { opening? } else { point? };
        Some(instant_ns(&self.at))
    }
}
