//! Which robot requests which object when. The pure stream of all scheduled robots, or of a slice of them.
//!
//! Two sources are merged in order of due time: first visits of public worlds ([`crate::introductions`]), of which a slice
//! keeps those that its robots make; and each robot's own arrivals ([`crate::arrivals`]): revisits of public objects, and
//! everything in its private world. Robots with a law of their own for their intervals make first visits on these as well,
//! so every slice walks along the instants of all such robots. Everything follows from seed and schedule alone, and any
//! slice finds the same launches with the same numbers. The requests of robots with a rate are Poisson processes: those of
//! each robot, of each world, and all together.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::arrivals::{Arrival, Arrivals};
use crate::density::revisit_share;
use crate::introductions::{FirstVisit, Introductions};
use crate::launch::{Launch, LaunchDraft};
use crate::layout::{SchedulePosition, WorldContent};
use crate::mix::DirectMix;
use crate::model::{Popularity, RobotIndex};
use crate::object::{ObjectId, Space};
use crate::picker::pick_few;
use crate::popularity::{HotSet, Window};
use crate::private::PrivateWorld;
use crate::schedule::Segment;
use crate::sessions::SessionClock;
use crate::timeline::{Freeze, Timeline};
use crate::universe::Universe;
use crate::worlds::{WorldKind, Worlds};
use assay_base::random::Rng;

/// The version of how a stream follows from workload and seed. Streams of different versions request other things at other
/// times, whatever their digests say of identities. 1: first visits at nearly even distances; 2: Poisson; 3: what would be a revisit
/// where there is nothing to revisit makes the first visit.
pub const STREAM_VERSION: u32 = 3;

/// Robots of a stream: of those from `first` until before `end`, every `count`-th, starting with the `index`-th.
///
/// A process that runs robots 500 to 999 with two threads uses `Slice::of_range(500..1000, 0, 2)` and
/// `Slice::of_range(500..1000, 1, 2)`.
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
    pub const ALL: Self = Self { first: 0, end: RobotIndex::MAX, index: 0, count: 1 };

    /// One of `count` parts of all robots.
    pub fn new(index: u32, count: u32) -> Self {
        Self { index, count: count.max(1), ..Self::ALL }
    }

    /// One of `count` parts of a range of robots.
    pub fn of_range(robots: Range<RobotIndex>, index: u32, count: u32) -> Self {
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
    introductions: Introductions,
    arrivals: Arrivals,
    /// Launches so far of each robot of the slice.
    numbers: Vec<u64>,
    /// Private histories: robot of the slice by direct type of its group. Empty when nobody has private interest.
    private: Vec<PrivateWorld>,
    private_stride: usize,
    /// Hot sets: group by world. Empty when no popularity has one.
    hot: Vec<HotSet>,
    freeze_ns: u64,
    /// Sessions of all robots, whoever's slice they are in: a first visit looks for a busy one. Empty when there are none.
    clocks: Vec<Option<SessionClock>>,
}

/// A revisit before it is known of what.
struct RevisitPick<'a> {
    group: usize,
    popularity: &'a Popularity,
    world: u32,
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
        Self {
            introductions: Introductions::new(&worlds, timeline.segments()),
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
        }
    }

    /// True while the working set grows: a launch that is due then may add an object to it.
    pub fn grows_at(&self, due: Duration) -> bool {
        due.as_nanos() < u128::from(self.freeze_ns)
    }

    /// Lower bound of the due time of the next launch, over all slices of the stream. None at the end.
    pub fn due(&self) -> Option<Duration> {
        let soonest = self.introductions.peek().into_iter().chain(self.arrivals.peek()).min();
        soonest.map(Duration::from_nanos)
    }

    /// The next launch, if it is due before a moment of the schedule. Nothing that is due later, not even of
    /// another slice, has been looked at after this: so the stream can still be told of a change of that moment.
    pub fn next_before(&mut self, moment: Duration) -> Option<Launch> {
        let moment_ns = u64::try_from(moment.as_nanos()).unwrap_or(u64::MAX);
        loop {
            let first = self.introductions.peek();
            let soonest = first.into_iter().chain(self.arrivals.peek()).min()?;
            if soonest >= moment_ns {
                return None;
            }
            if soonest >= self.freeze_ns {
                self.introductions.freeze();
            }
            let launch = if first == Some(soonest) {
                let first = self.introductions.pop(&self.worlds, self.timeline.segments())?;
                self.first_visit(&first)
            } else {
                let arrival = self.arrivals.pop(&self.universe, &self.timeline)?;
                self.own_arrival(arrival)
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
        self.introductions.retime(&self.worlds, self.timeline.segments());
    }

    /// A first visit at a point of its world's process, if its robot is ours.
    fn first_visit(&mut self, first: &FirstVisit) -> Option<Launch> {
        let &FirstVisit { due_ns, at, serial, .. } = first;
        let segment = &self.timeline.segments()[at.segment];
        let (universe, clocks) = (&self.universe, &mut self.clocks);
        let is_busy = |robot: RobotIndex| {
            let clock = clocks.get_mut(robot as usize).and_then(Option::as_mut);
            clock.is_none_or(|clock| clock.at(universe, due_ns).busy)
        };
        let robot = self.worlds.owner(&self.universe, first, segment, is_busy);
        if !self.slice.has(robot) {
            return None;
        }
        let (object, revisit) = self.introduced(first.world, serial)?;
        let number = self.count(robot);
        Some(self.complete_launch(robot, number, due_ns, at, object, revisit))
    }

    /// Object of a world's first visit with a serial, and whether it was requested before: a trace may name a URL twice.
    fn introduced(&self, world: u32, serial: u64) -> Option<(ObjectId, bool)> {
        match self.worlds.worlds()[world as usize].what {
            WorldContent::Objects(origin, content) => {
                Some((ObjectId { origin, content, space: Space::Public, serial }, false))
            }
            WorldContent::Trace => self.universe.foreign(serial),
        }
    }

    /// A robot's own arrival. Of a robot with a rate it is a revisit of a public object or of a line of the trace, or
    /// anything in its private world; of a robot with a law of its own for its intervals it is any of its requests. Robots
    /// of other slices come here for their first visits, which are counted.
    fn own_arrival(&mut self, arrival: Arrival) -> Option<Launch> {
        let Arrival { robot, due_ns, at, mut rng } = arrival;
        let rng = &mut rng;
        let universe = Arc::clone(&self.universe);
        let group = universe.group_of(robot)?;
        let table = &universe.groups()[group];
        let direct = &table.mix.direct;
        let factor = self.timeline.segments()[at.segment].shape.recurrence.at(at.u);
        let is_renewal = table.between.is_some();
        // The share of a type among a robot's own arrivals.
        let weight = |share: f64, recurrence: f64| {
            if is_renewal { share } else { share * revisit_share(recurrence, factor) }
        };
        let of_direct = |d: &DirectMix| weight(d.share, d.recurrence);
        let (of_kind, of_type, of_world) = (rng.unit(), rng.unit(), rng.unit());
        let mut kind = WorldKind::Public;
        if table.private_share > 0.0 || table.foreign_share > 0.0 {
            let share = 1.0 - table.private_share - table.foreign_share;
            let public = share * direct.iter().map(of_direct).sum::<f64>();
            let foreign = weight(table.foreign_share, table.mix.recurrence);
            let unit = of_kind * (public + table.private_share + foreign);
            if unit < table.private_share {
                kind = WorldKind::Private;
            } else if unit < table.private_share + foreign {
                kind = WorldKind::Foreign;
            }
        }
        let is_ours = self.slice.has(robot);
        let (popularity, recurrence, world) = match kind {
            WorldKind::Private if !is_ours => return None,
            WorldKind::Private => {
                let number = self.count(robot);
                let chosen = pick_few(direct.iter().map(|d| d.share), of_type)?;
                let recur = of_world < revisit_share(direct[chosen].recurrence, factor);
                let world = self.private.get_mut(self.slice.place(robot) * self.private_stride + chosen)?;
                let frozen = due_ns >= self.freeze_ns;
                let (object, revisit) = world.visit(&universe, robot, &direct[chosen], frozen, recur, rng)?;
                return Some(self.complete_launch(robot, number, due_ns, at, object, revisit));
            }
            WorldKind::Foreign => (&table.mix.popularity, table.mix.recurrence, self.worlds.trace()?),
            WorldKind::Public => {
                let chosen = pick_few(direct.iter().map(of_direct), of_type)?;
                let world = self.worlds.pick(group, chosen, of_world)?;
                (&direct[chosen].popularity, direct[chosen].recurrence, world)
            }
        };
        let is_empty = self.introductions.is_empty(world);
        if is_empty && !is_renewal {
            // Whose request is the first is drawn for the world.
            return None;
        }
        let is_first = is_renewal && (rng.unit() >= revisit_share(recurrence, factor) || is_empty);
        let segments = self.timeline.segments();
        let serial = is_first.then(|| self.introductions.add(&self.worlds, segments, world, due_ns));
        if !is_ours {
            return None;
        }
        let (object, revisit) = match serial {
            Some(serial) => self.introduced(world, serial)?,
            None => (self.public_revisit(&RevisitPick { group, popularity, world }, due_ns, at, rng)?, true),
        };
        let number = self.count(robot);
        Some(self.complete_launch(robot, number, due_ns, at, object, revisit))
    }

    fn public_revisit(
        &mut self,
        pick: &RevisitPick<'_>,
        due_ns: u64,
        at: SchedulePosition,
        rng: &mut Rng,
    ) -> Option<ObjectId> {
        let world = &self.worlds.worlds()[pick.world as usize];
        let segments = self.timeline.segments();
        let available = self.introductions.available(&self.worlds, segments, pick.world, due_ns, at.segment);
        let frozen = self.introductions.frozen(pick.world);
        let universe = &self.universe;
        let window = Window::new(available, frozen)?;
        let mut unused = HotSet::default();
        let place = pick.group * self.worlds.worlds().len() + pick.world as usize;
        let hot = self.hot.get_mut(place).unwrap_or(&mut unused);
        let picked = window.pick(pick.popularity, hot, world.hash, rng);
        let object = |serial| match world.what {
            WorldContent::Objects(origin, content) => {
                Some(ObjectId { origin, content, space: Space::Public, serial })
            }
            WorldContent::Trace => universe.foreign(serial).map(|(object, _)| object),
        };
        let preference = pick.popularity.size_preference;
        let serial =
            window.prefer(picked, preference, rng, |serial| object(serial).map(|id| universe.object(id)));
        object(serial)
    }

    /// The robot's next number.
    fn count(&mut self, robot: RobotIndex) -> u64 {
        let next = &mut self.numbers[self.slice.place(robot)];
        *next += 1;
        *next - 1
    }

    fn complete_launch(
        &mut self,
        robot: RobotIndex,
        number: u64,
        due_ns: u64,
        at: SchedulePosition,
        object: ObjectId,
        revisit: bool,
    ) -> Launch {
        let segment: &Segment = &self.timeline.segments()[at.segment];
        let special = segment.shape.special.at(at.u);
        let due = Duration::from_nanos(due_ns);
        let clock = self.clocks.get_mut(robot as usize).and_then(Option::as_mut);
        let session = clock.map_or(0, |clock| clock.at(&self.universe, due_ns).session);
        let phase = segment.phase;
        self.universe.complete_launch(&LaunchDraft {
            due,
            robot,
            number,
            phase,
            session,
            object,
            revisit,
            special,
        })
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
