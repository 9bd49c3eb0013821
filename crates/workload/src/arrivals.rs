//! When does a robot act of its own accord? Poisson arrivals: unit-rate exponentials in the integral of its
//! rate while it is alive and busy; or draws of a law of its own in their place.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::curve::{Curve, Line, Poly};
use crate::density::revisit_line;
use crate::model::RobotIndex;
use crate::rng::{Purpose, Rng};
use crate::schedule::Segment;
use crate::sessions::SessionClock;
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
    /// Sessions of the slice's robots. Empty when no robot has any.
    clocks: Vec<Option<SessionClock>>,
    /// As they were at the arrival before the next.
    clocks_before: Vec<Option<SessionClock>>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// Arrivals so far, the next one included.
    count: u64,
    /// Where the next one is, and where the one before it was.
    at: Place,
    before: Place,
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
        let begin = Place { segment: 0, u: 0.0 };
        let start = State { count: 0, at: begin, before: begin };
        let robots = slice.robots(universe.robot_count()).count();
        let mut this = Self {
            slice,
            sums: sums(universe, timeline),
            next: BinaryHeap::with_capacity(robots),
            states: vec![start; robots],
            clocks: Vec::new(),
            clocks_before: Vec::new(),
        };
        if universe.groups().iter().any(|group| group.session.is_some()) {
            let robots = slice.robots(universe.robot_count());
            this.clocks = robots.map(|robot| SessionClock::new(universe, robot)).collect();
            this.clocks_before = this.clocks.clone();
        }
        this.advance_all(universe, timeline);
        this
    }

    fn advance_all(&mut self, universe: &Universe, timeline: &Timeline) {
        for (_, table) in scheduled(universe) {
            let slice = self.slice;
            for robot in (table.first..table.first + table.count).filter(|robot| slice.has(*robot)) {
                if let Some(due_ns) = self.advance(universe, timeline, robot) {
                    self.next.push(Reverse((due_ns, robot)));
                }
            }
        }
    }

    /// Goes on with another timeline, which is the same as the one before up to the last arrival that was taken.
    pub(crate) fn retime(&mut self, universe: &Universe, timeline: &Timeline) {
        self.sums = sums(universe, timeline);
        self.next.clear();
        for state in &mut self.states {
            state.at = state.before;
            state.count = state.count.saturating_sub(1);
        }
        self.clocks.clone_from(&self.clocks_before);
        self.advance_all(universe, timeline);
    }

    /// When the soonest arrival is due, in nanoseconds.
    pub(crate) fn peek(&self) -> Option<u64> {
        self.next.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// Takes the soonest arrival and puts the robot's next one in its place.
    pub(crate) fn take(&mut self, universe: &Universe, timeline: &Timeline) -> Option<Arrival> {
        let Reverse((due_ns, robot)) = *self.next.peek()?;
        let State { count, at, .. } = self.states[self.slice.place(robot)];
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
        let place = self.slice.place(robot);
        let state = &mut self.states[place];
        let clock = self.clocks.get_mut(place).and_then(Option::as_mut);
        let mut left = units(universe, table, robot, state.count);
        state.before = state.at;
        if let (Some(clock), Some(before)) = (&clock, self.clocks_before.get_mut(place)) {
            *before = Some(**clock);
        }
        let mut awake = Awake { universe, clock };
        state.count += 1;
        let Place { segment: first, mut u } = state.at;
        for (index, segment) in timeline.segments().iter().enumerate().skip(first) {
            let (from, to) = living_part(segment.shape.alive[group], rank);
            let mut from = from.max(u);
            while from < to.min(segment.cut()) {
                let (begin, end) = awake.part(segment, from, to);
                let before = sum.at(index, begin);
                let here = sum.at(index, end.min(segment.cut())) - before;
                if left < here {
                    let u = sum.solve(index, before + left, begin, end);
                    state.at = Place { segment: index, u };
                    return Some(segment.instant_ns(u));
                }
                left -= here;
                from = end;
            }
            u = 0.0;
        }
        None
    }
}

/// The busy periods of a robot, if it has sessions.
struct Awake<'a> {
    universe: &'a Universe,
    clock: Option<&'a mut SessionClock>,
}

impl Awake<'_> {
    /// The first stretch within a part of a segment in which the robot is busy, or the end of the part.
    #[inline]
    fn part(&mut self, segment: &Segment, from: f64, to: f64) -> (f64, f64) {
        let Some(clock) = &mut self.clock else { return (from, to) };
        let state = clock.at(self.universe, segment.instant_ns(from));
        let change = segment.place_of(state.until_ns).clamp(from, to);
        if state.busy {
            // Rounding must not keep the walk where it is.
            return (from, if change > from { change } else { to.min(from + 1e-12) });
        }
        if change >= to {
            return (to, to);
        }
        let next = clock.at(self.universe, state.until_ns);
        (change, segment.place_of(next.until_ns).clamp(change, to))
    }
}

/// For each group, the integral of a living robot's own requests.
fn sums(universe: &Universe, timeline: &Timeline) -> Vec<Curve> {
    let sum = |(group, table): (usize, &GroupTable)| {
        Curve::new(timeline.segments().iter().map(|s| (rate(group, table, s), s.span_s(), s.cut())))
    };
    universe.groups().iter().enumerate().map(sum).collect()
}

fn draws(universe: &Universe, robot: RobotIndex, count: u64) -> Rng {
    Rng::of(Purpose::Arrival, &[universe.seed(), u64::from(robot), count])
}

/// How much of its own requests' integrated rate lies between two arrivals of a robot: 1 on average.
fn units(universe: &Universe, table: &GroupTable, robot: RobotIndex, count: u64) -> f64 {
    let exponential = draws(universe, robot, count).exponential();
    let (Some(between), Some(rate)) = (&table.between, table.rate) else { return exponential };
    let mut rng = Rng::of(Purpose::Renewal, &[universe.seed(), u64::from(robot), count]);
    let units = (libm::fabs(between.sample(&mut rng)) * rate).max(SHORTEST_UNITS);
    // Robots with a fixed interval are not to walk in step: the run begins somewhere within the first.
    if count == 0 { units * rng.unit() } else { units }
}

/// A law that allows for no time at all between requests must not stop the clock.
const SHORTEST_UNITS: f64 = 1e-9;

/// Own arrivals per second of one living and busy robot: revisits, and everything private.
fn rate(group: usize, table: &GroupTable, segment: &Segment) -> Poly {
    let Some(per_second) = table.rate else { return Poly::ZERO };
    let shape = &segment.shape;
    let mut own = Line { begin: table.private_share, end: table.private_share };
    let mut add = |share: f64, recurrence: f64| {
        let revisits = revisit_line(recurrence, shape.recurrence);
        own.begin += share * revisits.begin;
        own.end += share * revisits.end;
    };
    for direct in &table.mix.direct {
        add(direct.share * (1.0 - table.private_share - table.foreign_share), direct.recurrence);
    }
    if table.foreign_share > 0.0 {
        add(table.foreign_share, table.mix.recurrence);
    }
    Poly::constant(per_second).times(shape.load).times(shape.launches[group]).times(own)
}
