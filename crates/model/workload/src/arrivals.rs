//! When a robot acts of its own accord: after draws of its own in the integral of its rate while it is alive and busy.
//!
//! For a robot with a rate these draws are exponential, and the rate is that of what it does not introduce: its arrivals are
//! a Poisson process, and with the first visits that it is given ([`crate::introductions`]) all its requests are one. For a
//! robot with a law of its own for its intervals they are draws of that law, and the rate is that of all its requests: so all
//! of them lie on one renewal process. What such a robot introduces must be known to all, so every slice of a stream
//! follows all robots of such groups, and of the other groups its own.
//!
//! # Arrivals
//!
//! Requests of robots with a rate are Poisson. A public world's first visits are the points of a unit Poisson process in the expected
//! number of them (`workload::points`), assigned to living robots at random; the first may take the place of a revisit, since there is
//! nothing to revisit before it. Each robot's revisits, and all its requests in its private world, are separate Poisson arrivals (`workload::arrivals`). Robots with `req_inter_arrival` make first visits and
//! revisits on one renewal process; every slice of a stream walks through all of them, so that serials, which count a world's first visits in
//! due order (`workload::introductions`), are the same in every slice. The state of a stream is a position for each world and robot, and the
//! instants of the last seconds' first visits by renewal. Sizes at the freeze are counted when the walk passes it. Goals end phases where
//! expected values are reached. `STREAM_VERSION` is the version of the definition of streams; `run.json` stores it, and only streams of the
//! same version are compared.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use crate::Purpose;
use crate::curve::{Curve, Line, Poly};
use crate::density::revisit_line;
use crate::layout::SchedulePosition;
use crate::model::RobotIndex;
use crate::schedule::Segment;
use crate::sessions::{SessionClock, drawn_by_length};
use crate::stream::Slice;
use crate::timeline::Timeline;
use crate::universe::{GroupTable, Universe};
use crate::worlds::{living_part, scheduled};
use assay_base::random::Rng;

/// The next own arrival of each robot that a slice follows, soonest first.
#[derive(Debug)]
pub(crate) struct Arrivals {
    slice: Slice,
    /// For each group, which of its robots are followed, and where their states are.
    followed: Vec<FollowedRobots>,
    /// For each group: the integral of a living robot's rate of own arrivals.
    sums: Vec<Curve>,
    next: BinaryHeap<Reverse<(u64, RobotIndex)>>,
    states: Vec<ArrivalState>,
    /// Sessions of the robots that are followed. Empty when no robot has any.
    clocks: Vec<Option<SessionClock>>,
    /// As they were at the arrival before the next.
    clocks_before: Vec<Option<SessionClock>>,
}

/// The robots of one group that a slice follows.
#[derive(Debug, Clone, Copy)]
struct FollowedRobots {
    /// All of them, or those of the slice.
    all: bool,
    /// Index of the state of the first robot, and the number that robots' indices start from.
    offset: usize,
    base: usize,
}

#[derive(Debug, Clone, Copy)]
struct ArrivalState {
    /// Arrivals so far, the next one included.
    count: u64,
    /// Positions of the next arrival and of the one before.
    at: SchedulePosition,
    before: SchedulePosition,
}

/// One arrival, with the generator that its draws come from.
pub(crate) struct Arrival {
    pub(crate) robot: RobotIndex,
    pub(crate) due_ns: u64,
    pub(crate) at: SchedulePosition,
    pub(crate) rng: Rng,
}

impl Arrivals {
    pub(crate) fn new(universe: &Universe, timeline: &Timeline, slice: Slice) -> Self {
        let begin = SchedulePosition { segment: 0, u: 0.0 };
        let start = ArrivalState { count: 0, at: begin, before: begin };
        let (mut followed, mut robots) = (Vec::with_capacity(universe.groups().len()), Vec::new());
        for table in universe.groups() {
            let (all, offset) = (table.between.is_some(), robots.len());
            robots.extend(table.robots().filter(|robot| all || slice.has(*robot)));
            let first = robots.get(offset).copied().unwrap_or(table.first);
            let base = if all { first as usize } else { slice.place(first.max(slice.first)) };
            followed.push(FollowedRobots { all, offset, base });
        }
        let mut this = Self {
            slice,
            followed,
            sums: sums(universe, timeline),
            next: BinaryHeap::with_capacity(robots.len()),
            states: vec![start; robots.len()],
            clocks: Vec::new(),
            clocks_before: Vec::new(),
        };
        if universe.groups().iter().any(|group| group.session.is_some()) {
            this.clocks = robots.iter().map(|robot| SessionClock::new(universe, *robot)).collect();
            this.clocks_before = this.clocks.clone();
        }
        this.advance_all(universe, timeline);
        this
    }

    fn advance_all(&mut self, universe: &Universe, timeline: &Timeline) {
        for (group, table) in scheduled(universe) {
            let (slice, all) = (self.slice, self.followed[group].all);
            for robot in table.robots().filter(|robot| all || slice.has(*robot)) {
                if let Some(due_ns) = self.advance(universe, timeline, group, robot) {
                    self.next.push(Reverse((due_ns, robot)));
                }
            }
        }
    }

    /// Index of the state of a robot that is followed.
    #[inline]
    fn state_index(&self, group: usize, robot: RobotIndex) -> usize {
        let FollowedRobots { all, offset, base } = self.followed[group];
        offset + if all { robot as usize } else { self.slice.place(robot) } - base
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

    /// Due time of the soonest arrival, in nanoseconds.
    pub(crate) fn peek(&self) -> Option<u64> {
        self.next.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// Takes the soonest arrival and puts the robot's next one in its place.
    pub(crate) fn pop(&mut self, universe: &Universe, timeline: &Timeline) -> Option<Arrival> {
        let Reverse((due_ns, robot)) = *self.next.peek()?;
        let group = universe.group_of(robot)?;
        let ArrivalState { count, at, .. } = self.states[self.state_index(group, robot)];
        let mut rng = draws(universe, robot, count - 1);
        // The first draw was the time.
        rng.exponential();
        match self.advance(universe, timeline, group, robot) {
            Some(next_ns) => *self.next.peek_mut()? = Reverse((next_ns, robot)),
            None => {
                PeekMut::pop(self.next.peek_mut()?);
            }
        }
        Some(Arrival { robot, due_ns, at, rng })
    }

    /// Moves a robot to its next arrival; none when the schedule ends before it.
    fn advance(
        &mut self,
        universe: &Universe,
        timeline: &Timeline,
        group: usize,
        robot: RobotIndex,
    ) -> Option<u64> {
        let table = &universe.groups()[group];
        let rank = table.ranks[(robot - table.first) as usize];
        let sum = &self.sums[group];
        let place = self.state_index(group, robot);
        let state = &mut self.states[place];
        let clock = self.clocks.get_mut(place).and_then(Option::as_mut);
        let mut left = units(universe, table, robot, state.count);
        state.before = state.at;
        if let (Some(clock), Some(before)) = (&clock, self.clocks_before.get_mut(place)) {
            *before = Some(**clock);
        }
        let mut busy = BusyPeriods { universe, clock };
        state.count += 1;
        let SchedulePosition { segment: first, mut u } = state.at;
        for (index, segment) in timeline.segments().iter().enumerate().skip(first) {
            let (from, to) = living_part(segment.shape.alive[group], rank);
            let mut from = from.max(u);
            while from < to.min(segment.cut()) {
                let (begin, end) = busy.next_busy(segment, from, to);
                let before = sum.at(index, begin);
                let here = sum.at(index, end.min(segment.cut())) - before;
                if left < here {
                    let u = sum.solve(index, before + left, begin, end);
                    state.at = SchedulePosition { segment: index, u };
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
struct BusyPeriods<'a> {
    universe: &'a Universe,
    clock: Option<&'a mut SessionClock>,
}

impl BusyPeriods<'_> {
    /// The first stretch within a part of a segment in which the robot is busy, or the end of the part.
    #[inline]
    fn next_busy(&mut self, segment: &Segment, from: f64, to: f64) -> (f64, f64) {
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

/// For each group, the integral of a living robot's own arrivals.
fn sums(universe: &Universe, timeline: &Timeline) -> Vec<Curve> {
    let sum = |(group, table): (usize, &GroupTable)| {
        Curve::new(timeline.segments().iter().map(|s| (rate(group, table, s), s.span_s(), s.cut())))
    };
    universe.groups().iter().enumerate().map(sum).collect()
}

fn draws(universe: &Universe, robot: RobotIndex, count: u64) -> Rng {
    Rng::of(Purpose::Arrival, &[universe.seed(), u64::from(robot), count])
}

/// Integral of the rate between two arrivals of a robot: 1 on average.
fn units(universe: &Universe, table: &GroupTable, robot: RobotIndex, count: u64) -> f64 {
    let exponential = draws(universe, robot, count).exponential();
    let (Some(between), Some(rate)) = (&table.between, table.rate) else { return exponential };
    let mut rng = Rng::of(Purpose::Renewal, &[universe.seed(), u64::from(robot), count]);
    let units = |rng: &mut Rng| (libm::fabs(between.sample(rng)) * rate).max(SHORTEST_UNITS);
    // The run begins somewhere within an interval, so that robots do not walk in step, and the rate is the same from the
    // start on.
    if count == 0 { drawn_by_length(&mut rng, units) * rng.unit() } else { units(&mut rng) }
}

/// A law that allows for no time at all between requests must not stop the clock.
const SHORTEST_UNITS: f64 = 1e-9;

/// Own arrivals per second of one living and busy robot: revisits, and everything private; with a law of its own for its
/// intervals, everything.
fn rate(group: usize, table: &GroupTable, segment: &Segment) -> Poly {
    let Some(per_second) = table.rate else { return Poly::ZERO };
    let shape = &segment.shape;
    let launches = Poly::constant(per_second).times(shape.load).times(shape.launches[group]);
    if table.between.is_some() {
        return launches;
    }
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
    launches.times(own)
}
