//! When does a robot act of its own accord? Poisson arrivals: unit-rate exponentials in the integral of its rate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::curve::{Curve, Line, Poly};
use crate::density::revisit_line;
use crate::model::{Pace, RobotIndex};
use crate::rng::{Purpose, Rng};
use crate::schedule::Segment;
use crate::stream::Slice;
use crate::timeline::Timeline;
use crate::universe::{GroupTable, Universe};
use crate::worlds::{Place, living_part, scheduled};

/// The next own arrival of each robot of a slice, soonest first.
#[derive(Debug)]
pub(crate) struct Arrivals {
    slice: Slice,
    /// For each group: the integral of a living robot's rate of own arrivals.
    sums: Vec<Curve>,
    next: BinaryHeap<Reverse<(u64, RobotIndex)>>,
    states: Vec<State>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// Arrivals so far.
    count: u64,
    at: Place,
}

/// One arrival, with the generator that its draws come from.
pub(crate) struct Arrival {
    pub(crate) robot: RobotIndex,
    pub(crate) due_ns: u64,
    pub(crate) at: Place,
    pub(crate) rng: Rng,
}

impl Arrivals {
    pub(crate) fn new(universe: &Universe, timeline: &Timeline, slice: Slice) -> Self {
        let start = State { count: 0, at: Place { segment: 0, u: 0.0 } };
        let robots = slice.robots(universe.robot_count()).count();
        let sum = |(group, table): (usize, &GroupTable)| {
            Curve::new(timeline.segments().iter().map(|s| (rate(universe, group, table, s), s.length_s())))
        };
        let mut this = Self {
            slice,
            sums: universe.groups().iter().enumerate().map(sum).collect(),
            next: BinaryHeap::with_capacity(robots),
            states: vec![start; robots],
        };
        for (_, table) in scheduled(universe) {
            for robot in (table.first..table.first + table.count).filter(|robot| slice.has(*robot)) {
                if let Some(due_ns) = this.advance(universe, timeline, robot) {
                    this.next.push(Reverse((due_ns, robot)));
                }
            }
        }
        this
    }

    /// When the soonest arrival is due, in nanoseconds.
    pub(crate) fn peek(&self) -> Option<u64> {
        self.next.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// Takes the soonest arrival and puts the robot's next one in its place.
    pub(crate) fn take(&mut self, universe: &Universe, timeline: &Timeline) -> Option<Arrival> {
        let Reverse((due_ns, robot)) = *self.next.peek()?;
        let State { count, at } = self.states[self.slice.place(robot)];
        let mut rng = draws(universe, robot, count - 1);
        // The first draw was the time.
        rng.exponential();
        match self.advance(universe, timeline, robot) {
            Some(next_ns) => *self.next.peek_mut()? = Reverse((next_ns, robot)),
            None => {
                PeekMut::pop(self.next.peek_mut()?);
            }
        }
        Some(Arrival { robot, due_ns, at, rng })
    }

    /// Moves a robot to its next arrival; none when the schedule ends before it.
    fn advance(&mut self, universe: &Universe, timeline: &Timeline, robot: RobotIndex) -> Option<u64> {
        let group = universe.group_of(robot)?;
        let table = &universe.groups()[group];
        let rank = table.ranks[(robot - table.first) as usize];
        let sum = &self.sums[group];
        let state = &mut self.states[self.slice.place(robot)];
        let mut left = draws(universe, robot, state.count).exponential();
        state.count += 1;
        let Place { segment: first, mut u } = state.at;
        for (index, segment) in timeline.segments().iter().enumerate().skip(first) {
            let (from, to) = living_part(segment.shape.alive[group], rank);
            let from = from.max(u);
            if from < to {
                let before = sum.at(index, from);
                let here = sum.at(index, to) - before;
                if left < here {
                    let u = sum.solve(index, before + left, from, to);
                    state.at = Place { segment: index, u };
                    return Some(segment.instant_ns(u));
                }
                left -= here;
            }
            u = 0.0;
        }
        None
    }
}

fn draws(universe: &Universe, robot: RobotIndex, count: u64) -> Rng {
    Rng::of(Purpose::Arrival, &[universe.seed(), u64::from(robot), count])
}

/// Own arrivals per second of one living robot: public revisits, and everything private.
fn rate(universe: &Universe, group: usize, table: &GroupTable, segment: &Segment) -> Poly {
    let Pace::Rate { per_second } = universe.workload().robots[group].pace else { return Poly::ZERO };
    let shape = &segment.shape;
    let mut own = Line { begin: table.private_share, end: table.private_share };
    for direct in &table.mix.direct {
        let revisits = revisit_line(direct.recurrence, shape.recurrence);
        let share = direct.share * (1.0 - table.private_share);
        own.begin += share * revisits.begin;
        own.end += share * revisits.end;
    }
    Poly::constant(per_second).times(shape.load).times(shape.launches[group]).times(own)
}
