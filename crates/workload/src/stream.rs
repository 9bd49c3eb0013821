//! Who asks for what, when? The pure stream of all scheduled robots, or of a slice of them.
//!
//! Two sources are merged in order of due time: slots of public worlds (first visits, see the module on worlds),
//! of which a slice keeps those that its robots own; and each robot's own Poisson arrivals (revisits of public
//! objects, and everything in its private world). Both follow from seed and schedule alone, so any slice
//! finds the same launches with the same numbers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::arrivals::Arrivals;
use crate::density::revisit_share;
use crate::launch::{Draft, Launch};
use crate::mix::DirectMix;
use crate::model::{Popularity, RobotIndex};
use crate::object::{ObjectId, Space};
use crate::picker::pick_few;
use crate::popularity::{HotSet, Window};
use crate::private::PrivateWorld;
use crate::rng::{Purpose, Rng, hash};
use crate::schedule::Segment;
use crate::sessions::SessionClock;
use crate::timeline::{Freeze, Timeline};
use crate::universe::Universe;
use crate::worlds::{Place, What, Worlds};

/// Which robots a stream is for: of those from `first` until before `end`, every `count`-th, beginning with
/// the `index`-th.
///
/// A process that runs robots 500 to 999 with two threads uses `Slice::of(500..1000, 0, 2)` and
/// `Slice::of(500..1000, 1, 2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// First robot of the range.
    pub first: RobotIndex,
    /// The robot after its last. Robots that the workload does not have are in no stream.
    pub end: RobotIndex,
    /// 0 .. count.
    pub index: u32,
    /// Number of parts of the range; at least 1.
    pub count: u32,
}

impl Slice {
    /// All robots.
    pub const ALL: Self = Self { first: 0, end: RobotIndex::MAX, index: 0, count: 1 };

    /// One of `count` parts of all robots.
    pub fn new(index: u32, count: u32) -> Self {
        Self { index, count: count.max(1), ..Self::ALL }
    }

    /// One of `count` parts of a range of robots.
    pub fn of(robots: Range<RobotIndex>, index: u32, count: u32) -> Self {
        Self { first: robots.start, end: robots.end, ..Self::new(index, count) }
    }

    /// True for robots of this slice.
    #[inline]
    pub fn has(&self, robot: RobotIndex) -> bool {
        robot >= self.first && robot < self.end && (robot - self.first) % self.count == self.index
    }

    /// A robot's place among those of the slice, counted from 0 in order of robots.
    #[inline]
    pub fn place(&self, robot: RobotIndex) -> usize {
        ((robot - self.first) / self.count) as usize
    }

    /// The robots of the slice, of so many that there are, in order.
    pub fn robots(&self, robot_count: u32) -> impl Iterator<Item = RobotIndex> + use<> {
        let Self { first, end, index, count } = *self;
        (first.saturating_add(index)..end.min(robot_count)).step_by(count as usize)
    }
}

/// The launches of a slice's scheduled robots in order of due time. Best-effort robots are not in it: see
/// [`crate::closed::ClosedRobot`].
#[derive(Debug)]
pub struct Stream {
    universe: Arc<Universe>,
    timeline: Arc<Timeline>,
    slice: Slice,
    worlds: Worlds,
    /// Next slot of each world, soonest first.
    slots: BinaryHeap<Reverse<(u64, u32)>>,
    slot_states: Vec<SlotState>,
    arrivals: Arrivals,
    /// Launches so far of each robot of the slice.
    numbers: Vec<u64>,
    /// Private histories: robot of the slice by direct type of its group. Empty when nobody has private interest.
    private: Vec<PrivateWorld>,
    private_stride: usize,
    /// Hot sets: group by world. Empty when no popularity has one.
    hot: Vec<HotSet>,
    freeze_ns: u64,
    /// Sessions of all robots, whoever's slice they are in: a slot looks for a busy one. Empty when there are none.
    clocks: Vec<Option<SessionClock>>,
}

/// Which of its worlds a robot asks for something from.
enum Kind {
    Public,
    Private,
    Foreign,
}

/// A revisit before it is known of what.
struct Pick<'a> {
    robot: RobotIndex,
    number: u64,
    group: usize,
    popularity: &'a Popularity,
    world: u32,
}

/// The next slot of a world.
#[derive(Debug, Clone, Copy)]
struct SlotState {
    serial: u64,
    at: Place,
}

impl Stream {
    /// The stream of a slice.
    pub fn new(universe: Arc<Universe>, timeline: Arc<Timeline>, slice: Slice) -> Self {
        let worlds = Worlds::new(&universe, &timeline);
        let arrivals = Arrivals::new(&universe, &timeline, slice);
        let robots = slice.robots(universe.robot_count()).count();
        let groups = universe.groups();
        let private_stride = if groups.iter().any(|g| g.private_share > 0.0) {
            groups.iter().map(|g| g.mix.direct.len()).max().unwrap_or(0)
        } else {
            0
        };
        let has_hot = |popularity: &Popularity| popularity.hot_set_probability > 0.0;
        let hot = groups.iter().flat_map(|g| &g.mix.direct).any(|direct| has_hot(&direct.popularity))
            || groups.iter().any(|g| g.foreign_share > 0.0 && has_hot(&g.mix.popularity));
        let mut stream = Self {
            slots: BinaryHeap::with_capacity(worlds.worlds().len()),
            slot_states: Vec::with_capacity(worlds.worlds().len()),
            numbers: vec![0; robots],
            private: vec![PrivateWorld::default(); robots * private_stride],
            private_stride,
            hot: if hot { vec![HotSet::default(); groups.len() * worlds.worlds().len()] } else { Vec::new() },
            freeze_ns: freeze_ns(&timeline),
            clocks: clocks(&universe),
            universe,
            timeline,
            slice,
            worlds,
            arrivals,
        };
        stream.open_worlds();
        stream
    }

    /// Looks for the next slot of each world, from its state on.
    fn open_worlds(&mut self) {
        self.slots.clear();
        self.slot_states
            .resize(self.worlds.worlds().len(), SlotState { serial: 0, at: Place { segment: 0, u: 0.0 } });
        for (index, world) in self.worlds.worlds().iter().enumerate() {
            let state = &mut self.slot_states[index];
            if let Some(at) = self.worlds.slot(world, state.serial, 0) {
                state.at = at;
                let due_ns = self.timeline.segments()[at.segment].instant_ns(at.u);
                self.slots.push(Reverse((due_ns, index as u32)));
            }
        }
    }

    /// When the next launch of any slice of the stream may be due; this one's is not sooner. None at the end.
    pub fn due(&self) -> Option<Duration> {
        let slot = self.slots.peek().map(|Reverse((due_ns, _))| *due_ns);
        let soonest = slot.into_iter().chain(self.arrivals.peek()).min();
        soonest.map(Duration::from_nanos)
    }

    /// The next launch, if it is due before a moment of the schedule. Nothing that is due later, not even of
    /// another slice, has been looked at after this: so the stream can still be told of a change of that moment.
    pub fn next_before(&mut self, moment: Duration) -> Option<Launch> {
        let moment_ns = u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX);
        loop {
            let slot = self.slots.peek().map(|Reverse((due_ns, _))| *due_ns);
            let arrival = self.arrivals.peek();
            let soonest = slot.into_iter().chain(arrival).min()?;
            if soonest >= moment_ns {
                return None;
            }
            let launch = if slot == Some(soonest) {
                let (due_ns, world, state) = self.take_slot()?;
                self.first_visit(due_ns, world, state)
            } else {
                let mut arrival = self.arrivals.take(&self.universe, &self.timeline)?;
                self.own_arrival(arrival.robot, arrival.due_ns, arrival.at, &mut arrival.rng)
            };
            if launch.is_some() {
                return launch;
            }
        }
    }

    /// Goes on with another timeline, which must be the same as the one before up to what the stream has
    /// given so far: a change of a phase's length or population that was announced ahead. All slices of a
    /// stream must do so alike.
    pub fn retime(&mut self, timeline: Arc<Timeline>) {
        self.worlds = Worlds::new(&self.universe, &timeline);
        self.freeze_ns = freeze_ns(&timeline);
        self.arrivals.retime(&self.universe, &timeline);
        self.timeline = timeline;
        self.open_worlds();
    }

    /// Takes the soonest slot and puts the world's next one in its place.
    fn take_slot(&mut self) -> Option<(u64, u32, SlotState)> {
        let mut top = self.slots.peek_mut()?;
        let Reverse((due_ns, index)) = *top;
        let (world, state) = (&self.worlds.worlds()[index as usize], &mut self.slot_states[index as usize]);
        let taken = *state;
        state.serial += 1;
        match self.worlds.slot(world, state.serial, taken.at.segment) {
            Some(at) => {
                state.at = at;
                *top = Reverse((self.timeline.segments()[at.segment].instant_ns(at.u), index));
            }
            None => {
                PeekMut::pop(top);
            }
        }
        Some((due_ns, index, taken))
    }

    /// The first visit of a slot, if its owner is ours.
    fn first_visit(&mut self, due_ns: u64, world: u32, state: SlotState) -> Option<Launch> {
        let world = &self.worlds.worlds()[world as usize];
        let segment = &self.timeline.segments()[state.at.segment];
        let (universe, clocks) = (&self.universe, &mut self.clocks);
        let is_busy = |robot: RobotIndex| {
            let clock = clocks.get_mut(robot as usize).and_then(Option::as_mut);
            clock.is_none_or(|clock| clock.at(universe, due_ns).busy)
        };
        let robot = self.worlds.owner(&self.universe, (world, state.serial), state.at, segment, is_busy);
        if !self.slice.has(robot) {
            return None;
        }
        let (object, revisit) = match world.what {
            What::Objects(origin, content) => {
                (ObjectId { origin, content, space: Space::Public, serial: state.serial }, false)
            }
            What::Trace => self.universe.foreign(state.serial)?,
        };
        let number = self.count(robot);
        Some(self.dress(robot, number, due_ns, state.at, object, revisit))
    }

    /// A robot's own arrival: a revisit of a public object or of a line of the trace, or anything in its
    /// private world.
    fn own_arrival(&mut self, robot: RobotIndex, due_ns: u64, at: Place, rng: &mut Rng) -> Option<Launch> {
        let universe = Arc::clone(&self.universe);
        let group = universe.group_of(robot)?;
        let table = &universe.groups()[group];
        let direct = &table.mix.direct;
        let factor = self.timeline.segments()[at.segment].shape.recurrence.at(at.u);
        let revisits = |d: &DirectMix| d.share * revisit_share(d.recurrence, factor);
        let (of_kind, of_type, of_world) = (rng.unit(), rng.unit(), rng.unit());
        let mut kind = Kind::Public;
        if table.private_share > 0.0 || table.foreign_share > 0.0 {
            let share = 1.0 - table.private_share - table.foreign_share;
            let public = share * direct.iter().map(revisits).sum::<f64>();
            let foreign = table.foreign_share * revisit_share(table.mix.recurrence, factor);
            let unit = of_kind * (public + table.private_share + foreign);
            if unit < table.private_share {
                kind = Kind::Private;
            } else if unit < table.private_share + foreign {
                kind = Kind::Foreign;
            }
        }
        let number = self.count(robot);
        let (object, revisit) = match kind {
            Kind::Private => {
                let chosen = pick_few(direct.iter().map(|d| d.share), of_type)?;
                let recur = of_world < revisit_share(direct[chosen].recurrence, factor);
                let world = self.private.get_mut(self.slice.place(robot) * self.private_stride + chosen)?;
                let frozen = due_ns >= self.freeze_ns;
                world.visit(&universe, (robot, &direct[chosen]), frozen, recur, rng)?
            }
            Kind::Foreign => {
                let world = self.worlds.trace()?;
                let pick = Pick { robot, number, group, popularity: &table.mix.popularity, world };
                self.public_revisit(&pick, due_ns, at, rng)?
            }
            Kind::Public => {
                let chosen = pick_few(direct.iter().map(revisits), of_type)?;
                let world = self.worlds.pick(group, chosen, of_world)?;
                let pick = Pick { robot, number, group, popularity: &direct[chosen].popularity, world };
                self.public_revisit(&pick, due_ns, at, rng)?
            }
        };
        Some(self.dress(robot, number, due_ns, at, object, revisit))
    }

    fn public_revisit(
        &mut self,
        pick: &Pick<'_>,
        due_ns: u64,
        at: Place,
        rng: &mut Rng,
    ) -> Option<(ObjectId, bool)> {
        let world = &self.worlds.worlds()[pick.world as usize];
        let available = self.worlds.available(world, self.timeline.segments(), due_ns, at.segment);
        let frozen = (due_ns >= self.freeze_ns).then(|| self.worlds.frozen(world));
        let universe = &self.universe;
        let Some(window) = Window::new(available, frozen) else {
            return match world.what {
                What::Objects(origin, content) => {
                    let space = Space::Once(pick.robot);
                    Some((ObjectId { origin, content, space, serial: pick.number }, false))
                }
                // The trace has no objects but its own: any of them.
                What::Trace => {
                    let words = [universe.seed(), u64::from(pick.robot), pick.number];
                    let line = hash(Purpose::Foreign, &words) >> 32;
                    universe.foreign(line).map(|(object, _)| (object, false))
                }
            };
        };
        let mut unused = HotSet::default();
        let place = pick.group * self.worlds.worlds().len() + pick.world as usize;
        let hot = self.hot.get_mut(place).unwrap_or(&mut unused);
        let picked = window.pick(pick.popularity, hot, world.hash, rng);
        let object = |serial| match world.what {
            What::Objects(origin, content) => {
                Some(ObjectId { origin, content, space: Space::Public, serial })
            }
            What::Trace => universe.foreign(serial).map(|(object, _)| object),
        };
        let preference = pick.popularity.size_preference;
        let serial =
            window.prefer(picked, preference, rng, |serial| object(serial).map(|id| universe.object(id)));
        object(serial).map(|object| (object, true))
    }

    /// The robot's next number.
    fn count(&mut self, robot: RobotIndex) -> u64 {
        let next = &mut self.numbers[self.slice.place(robot)];
        *next += 1;
        *next - 1
    }

    fn dress(
        &mut self,
        robot: RobotIndex,
        number: u64,
        due_ns: u64,
        at: Place,
        object: ObjectId,
        revisit: bool,
    ) -> Launch {
        let segment: &Segment = &self.timeline.segments()[at.segment];
        let special = segment.shape.special.at(at.u);
        let due = Duration::from_nanos(due_ns);
        let clock = self.clocks.get_mut(robot as usize).and_then(Option::as_mut);
        let session = clock.map_or(0, |clock| clock.at(&self.universe, due_ns).session);
        let phase = segment.phase;
        self.universe.dress(&Draft { due, robot, number, phase, session, object, revisit, special })
    }
}

fn freeze_ns(timeline: &Timeline) -> u64 {
    match timeline.freeze() {
        Freeze::At(at) => u64::try_from(at.as_nanos()).unwrap_or(u64::MAX),
        Freeze::Never | Freeze::Live { .. } => u64::MAX,
    }
}

/// A clock for each robot that has sessions; nothing when no robot has.
fn clocks(universe: &Universe) -> Vec<Option<SessionClock>> {
    if universe.groups().iter().all(|group| group.session.is_none()) {
        return Vec::new();
    }
    (0..universe.robot_count()).map(|robot| SessionClock::new(universe, robot)).collect()
}

impl Iterator for Stream {
    type Item = Launch;

    fn next(&mut self) -> Option<Launch> {
        self.next_before(Duration::MAX)
    }
}
