//! What a best-effort robot requests next. A pure function of the robot, the phase and its own counts.
//!
//! A request's identity is (robot, phase, number within the phase). Whether it introduces a public object is
//! hashed from that alone, so any robot can tell of any past request whether it did: a revisit picks another
//! robot of the group and a place in a history like its own, and takes it if it was a first visit. Where none is found, as in
//! the beginning, revisits are of one object. Robots drift apart, so which request of an object comes first is for the run to tell.
//!
//! Nothing here may depend on time, so a phase's recurrence, request types and population act with the mean of
//! their ramp throughout the phase, and load does not act at all.

use std::time::Duration;

use crate::Purpose;
use crate::density::revisit_share;
use crate::launch::{Launch, LaunchDraft};
use crate::mix::DirectMix;
use crate::model::{Ramp, RobotIndex};
use crate::object::{ObjectId, Space};
use crate::picker::pick_few;
use crate::popularity::{HotSet, NEIGHBOURS, Window, smallest};
use crate::private::PrivateWorld;
use crate::universe::{GroupTable, Universe, living};
use crate::worlds::WorldKind;
use assay_base::random::{Rng, hash};

/// Numbers within a phase have this many bits in a serial.
const NUMBER_BITS: u32 = 40;
const NUMBERS: u64 = (1 << NUMBER_BITS) - 1;
/// Set in the serials of objects for revisits that find no first visit; no phase has so high a number.
const OPENING: u64 = 1 << 63;
/// Expected introductions from which on there is almost surely one.
const SURELY_INTRODUCED: f64 = 8.0;
/// Requests without a new object after which a revisit gives up.
const TRIES: u32 = 1024;

/// A type that introduces nothing counts as if it introduced this share.
const SMALLEST_SHARE: f64 = 1e-9;

/// One best-effort robot's place in its stream.
#[derive(Debug, Clone)]
pub struct ClosedRobot {
    robot: RobotIndex,
    group: usize,
    /// Requests so far in each phase up to the current one.
    counts: Vec<u64>,
    /// The factors of each of those phases, and the share of its requests that introduce a public object.
    means: Vec<PhaseMeans>,
    new_shares: Vec<f64>,
    /// Sum of the counts.
    total: u64,
    /// The sum when the working set froze.
    frozen_at: Option<u64>,
    /// Objects that the robot was expected to have introduced by then.
    frozen_introduced: Option<u64>,
    hot: HotSet,
    private: Vec<PrivateWorld>,
    /// By the group's direct types: see [`ClosedRobot::opens`].
    opened: Vec<bool>,
    phase: PhaseMeans,
}

/// The factors that act in a phase.
#[derive(Debug, Clone, Copy)]
struct PhaseMeans {
    recurrence: f64,
    special: f64,
    /// Robots of the group that are alive throughout.
    living: u32,
}

/// Intended request, before it is known whether everything that it needs exists.
struct RequestPlan {
    /// Index of the type among the group's direct types.
    chosen: usize,
    kind: WorldKind,
    recur: bool,
    /// For what remains to be drawn.
    rng: Rng,
}

impl ClosedRobot {
    /// A robot that has requested nothing yet and is in the first phase. A number that no robot has is taken
    /// for the last robot's.
    pub fn new(universe: &Universe, robot: RobotIndex) -> Self {
        let robot = robot.min(universe.robot_count().saturating_sub(1));
        let group = universe.group_of(robot).unwrap_or(0);
        let table = &universe.groups()[group];
        let types = if table.private_share > 0.0 { table.mix.direct.len() } else { 0 };
        Self {
            robot,
            group,
            counts: vec![0],
            means: vec![PhaseMeans::new(universe, table, 0)],
            new_shares: vec![PhaseMeans::new(universe, table, 0).new_share(table)],
            total: 0,
            frozen_at: None,
            frozen_introduced: None,
            hot: HotSet::default(),
            private: vec![PrivateWorld::default(); types],
            opened: vec![false; table.mix.direct.len()],
            phase: PhaseMeans::new(universe, table, 0),
        }
    }

    /// Begins a phase (its index in the schedule). Phases are entered in order; going back is ignored.
    pub fn enter_phase(&mut self, universe: &Universe, phase: u16) {
        if usize::from(phase) + 1 > self.counts.len() {
            let table = &universe.groups()[self.group];
            for entered in self.counts.len()..=usize::from(phase) {
                let means = PhaseMeans::new(universe, table, entered as u16);
                self.counts.push(0);
                self.means.push(means);
                self.new_shares.push(means.new_share(table));
                self.phase = means;
            }
        }
    }

    /// The next request; `due` and `session` are zero, for the caller to set.
    pub fn next(&mut self, universe: &Universe) -> Launch {
        let (serial, phase) = (self.serial(), (self.counts.len() - 1) as u16);
        let table = &universe.groups()[self.group];
        let (object, revisit) = self.choose(universe, table, serial);
        self.count();
        universe.complete_launch(&LaunchDraft {
            due: Duration::ZERO,
            robot: self.robot,
            number: serial,
            phase,
            session: 0,
            object,
            revisit,
            special: self.phase.special,
        })
    }

    /// The working set stops growing here; later calls change nothing.
    pub fn freeze(&mut self) {
        if self.frozen_at.is_none() {
            self.frozen_at = Some(self.total);
            self.frozen_introduced = Some(self.introduced());
        }
    }

    /// True until the working set is told to stop growing.
    pub fn grows(&self) -> bool {
        self.frozen_at.is_none()
    }

    /// Requests so far in each phase up to the current one, in order.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Requests that had been made when the working set froze.
    pub fn frozen_at(&self) -> Option<u64> {
        self.frozen_at
    }

    /// Imposes the counts of earlier phases (and of the freeze) as another run had them, and enters the phase
    /// after them. Only a robot that has requested nothing yet can resume.
    pub fn resume(&mut self, universe: &Universe, counts: &[u64], frozen_at: Option<u64>) {
        if self.total > 0 {
            return;
        }
        let table = &universe.groups()[self.group];
        for (phase, count) in (0..=u16::MAX).zip(counts) {
            self.enter_phase(universe, phase);
            for _ in 0..*count {
                if frozen_at == Some(self.total) {
                    self.freeze();
                }
                // Only private histories, and a group's first robot, have a memory of their own.
                if !self.private.is_empty() || self.robot == table.by_rank[0] {
                    let mut plan = self.phase.plan(universe, table, self.robot, self.serial());
                    self.private_visit(universe, table, &mut plan);
                    self.opens(table, &plan);
                }
                self.count();
            }
        }
        if frozen_at == Some(self.total) {
            self.freeze();
        }
        self.enter_phase(universe, u16::try_from(counts.len()).unwrap_or(u16::MAX));
    }

    fn count(&mut self) {
        if let Some(count) = self.counts.last_mut() {
            *count += 1;
        }
        self.total += 1;
    }

    fn serial(&self) -> u64 {
        serial_of(self.counts.len() - 1, self.counts.last().copied().unwrap_or(0))
    }

    fn choose(&mut self, universe: &Universe, table: &GroupTable, serial: u64) -> (ObjectId, bool) {
        let mut plan = self.phase.plan(universe, table, self.robot, serial);
        if let Some(visit) = self.private_visit(universe, table, &mut plan) {
            return visit;
        }
        let opens = self.opens(table, &plan);
        let revisited =
            if plan.recur && !opens { self.revisit(universe, table, &plan, serial) } else { None };
        if let Some(object) = revisited {
            return (object, true);
        }
        if plan.kind == WorldKind::Foreign
            && let Some(object) = walked(universe, self.robot, serial)
        {
            return (object, false);
        }
        let Some(direct) = table.mix.direct.get(plan.chosen) else {
            // Not in a workload that passed validation: whoever has no types has a trace.
            return (ObjectId { origin: 0, content: 0, space: Space::BestEffort(self.robot), serial }, false);
        };
        if !plan.recur {
            return (new_object(direct, Space::BestEffort(self.robot), serial, &mut plan.rng), false);
        }
        let serial = OPENING | u64::from(direct.content);
        let mut rng = Rng::of(Purpose::Closed, &[universe.seed(), u64::from(table.by_rank[0]), serial]);
        (new_object(direct, Space::BestEffort(table.by_rank[0]), serial, &mut rng), !opens)
    }

    /// True for the request that introduces the object which revisits of a type get that find no first visit: the first revisit of
    /// the group's first robot, as long as there may be nothing else.
    fn opens(&mut self, table: &GroupTable, plan: &RequestPlan) -> bool {
        let introduced = self.expected_introductions() * f64::from(self.phase.living);
        if self.robot != table.by_rank[0]
            || plan.kind != WorldKind::Public
            || !plan.recur
            || introduced >= SURELY_INTRODUCED
        {
            return false;
        }
        self.opened.get_mut(plan.chosen).is_some_and(|opened| !std::mem::replace(opened, true))
    }

    fn private_visit(
        &mut self,
        universe: &Universe,
        table: &GroupTable,
        plan: &mut RequestPlan,
    ) -> Option<(ObjectId, bool)> {
        let world = self.private.get_mut(plan.chosen).filter(|_| plan.kind == WorldKind::Private)?;
        let direct = &table.mix.direct[plan.chosen];
        let frozen = self.frozen_at.is_some();
        world.visit(universe, self.robot, direct, frozen, plan.recur, &mut plan.rng)
    }

    /// The object of some past first visit.
    fn revisit(
        &mut self,
        universe: &Universe,
        table: &GroupTable,
        wanted: &RequestPlan,
        serial: u64,
    ) -> Option<ObjectId> {
        let window = Window::new(self.introduced(), self.frozen_introduced)?;
        let popularity = match wanted.kind {
            WorldKind::Foreign => &table.mix.popularity,
            WorldKind::Public | WorldKind::Private => &table.mix.direct[wanted.chosen].popularity,
        };
        let mut rng = Rng::of(Purpose::ClosedRevisit, &[universe.seed(), u64::from(self.robot), serial]);
        let world = hash(Purpose::HotSet, &[universe.seed(), u64::from(table.first)]);
        for _ in 0..TRIES {
            let other = table.by_rank[rng.below(u64::from(self.phase.living)) as usize];
            let index = window.pick(popularity, &mut self.hot, world, &mut rng);
            let (phase, number) = self.place_of(index, rng.unit())?;
            let means = self.means[phase];
            let serial = serial_of(phase, number);
            let mut plan = means.plan(universe, table, other, serial);
            let was_new = !plan.recur && plan.kind == wanted.kind;
            let accepts = |plan: &RequestPlan| match plan.kind {
                WorldKind::Foreign => 1.0,
                WorldKind::Public | WorldKind::Private => self.phase.acceptance(&means, table, plan.chosen),
            };
            if was_new && rng.unit() < accepts(&plan) {
                if plan.kind == WorldKind::Foreign {
                    return walked(universe, other, serial);
                }
                let picked = PickedVisit { robot: other, means: &means, chosen: plan.chosen, serial };
                let preferred = picked.prefer(universe, table, &mut rng);
                if preferred != serial {
                    return means.introduced_by(universe, table, other, preferred).map(|(object, _)| object);
                }
                let direct = &table.mix.direct[plan.chosen];
                return Some(new_object(direct, Space::BestEffort(other), serial, &mut plan.rng));
            }
        }
        None
    }

    /// Objects that this robot is expected to have introduced. The working set is counted in these, not in
    /// requests: a phase of nothing but revisits must not push out what there is to revisit.
    fn introduced(&self) -> u64 {
        self.expected_introductions().ceil() as u64
    }

    fn expected_introductions(&self) -> f64 {
        self.counts.iter().zip(&self.new_shares).map(|(count, share)| *count as f64 * share).sum()
    }

    /// Phase and number of a request that may have introduced the object with this index, counted from the
    /// first; `unit` chooses among those that come into question.
    fn place_of(&self, index: u64, unit: f64) -> Option<(usize, u64)> {
        let mut left = index as f64 + unit;
        let mut last = None;
        for (phase, (&count, &share)) in self.counts.iter().zip(&self.new_shares).enumerate() {
            let introduced = count as f64 * share;
            if introduced > 0.0 {
                if left < introduced {
                    return Some((phase, ((left / share) as u64).min(count - 1)));
                }
                last = Some((phase, count - 1));
            }
            left -= introduced;
        }
        last
    }
}

/// A first visit that a revisit picked.
struct PickedVisit<'a> {
    robot: RobotIndex,
    means: &'a PhaseMeans,
    /// Index of its type among the group's direct types.
    chosen: usize,
    serial: u64,
}

impl PickedVisit<'_> {
    /// Serial of the first visit to revisit instead: the same, or that of the smallest cachable object of its type among those that the
    /// robot introduced around it.
    fn prefer(&self, universe: &Universe, table: &GroupTable, rng: &mut Rng) -> u64 {
        let Self { robot, means, serial, .. } = *self;
        let share = table.mix.direct[self.chosen].popularity.size_preference;
        if share <= 0.0 || rng.unit() >= share {
            return serial;
        }
        let number = serial & NUMBERS;
        let (low, high) = (serial - number.min(NEIGHBOURS), serial + NEIGHBOURS.min(NUMBERS - number));
        smallest(low..=high, |serial| {
            let (object, chosen) = means.introduced_by(universe, table, robot, serial)?;
            (chosen == self.chosen).then(|| universe.object(object))
        })
        .unwrap_or(serial)
    }
}

/// An object that a robot introduced before its request with a serial, if the first draw finds one.
pub(crate) fn older(universe: &Universe, robot: RobotIndex, serial: u64, rng: &mut Rng) -> Option<ObjectId> {
    if serial & OPENING != 0 {
        return None;
    }
    let (phase, number) = (serial >> NUMBER_BITS, serial & NUMBERS);
    let table = &universe.groups()[universe.group_of(robot)?];
    let means = PhaseMeans::new(universe, table, phase as u16);
    let serial = serial_of(phase as usize, if number > 0 { rng.below(number) } else { return None });
    means.introduced_by(universe, table, robot, serial).map(|(object, _)| object)
}

fn serial_of(phase: usize, number: u64) -> u64 {
    (phase as u64) << NUMBER_BITS | number
}

/// The object of the trace that a robot's own walk has reached at a request. Each phase begins elsewhere.
fn walked(universe: &Universe, robot: RobotIndex, serial: u64) -> Option<ObjectId> {
    let (phase, number) = (serial >> NUMBER_BITS, serial & NUMBERS);
    universe.walked(robot, number + phase * PHASE_STRIDE)
}

/// Lines between the places where a walk is in two phases; a prime.
const PHASE_STRIDE: u64 = 1_000_003;

/// The object that a request introduces; the same wherever it is computed.
fn new_object(direct: &DirectMix, space: Space, serial: u64, rng: &mut Rng) -> ObjectId {
    // Types that robots request have an origin that holds them.
    let origin = direct.origins.pick(rng.unit()).unwrap_or_default();
    ObjectId { origin, content: direct.content, space, serial }
}

impl PhaseMeans {
    fn new(universe: &Universe, table: &GroupTable, phase: u16) -> Self {
        let mean = |ramp: Ramp| (ramp.begin + ramp.end) / 2.0;
        match universe.workload().schedule.phases.get(usize::from(phase)) {
            Some(phase) => Self {
                recurrence: mean(phase.recurrence),
                special: mean(phase.special),
                living: living(table.count, phase.population.begin.min(phase.population.end)),
            },
            None => Self { recurrence: 1.0, special: 1.0, living: table.count },
        }
    }

    /// Intended request of a robot.
    fn plan(&self, universe: &Universe, table: &GroupTable, robot: RobotIndex, serial: u64) -> RequestPlan {
        let mut rng = Rng::of(Purpose::Closed, &[universe.seed(), u64::from(robot), serial]);
        let (of_kind, of_type, of_recurrence) = (rng.unit(), rng.unit(), rng.unit());
        let direct = &table.mix.direct;
        let chosen = pick_few(direct.iter().map(|d| d.share), of_type).unwrap_or(0);
        if of_kind >= table.private_share && of_kind < table.private_share + table.foreign_share {
            let recur = of_recurrence < revisit_share(table.mix.recurrence, self.recurrence);
            return RequestPlan { chosen, kind: WorldKind::Foreign, recur, rng };
        }
        let kind = if of_kind < table.private_share { WorldKind::Private } else { WorldKind::Public };
        let recurrence = direct.get(chosen).map_or(0.0, |direct| direct.recurrence);
        let recur = of_recurrence < revisit_share(recurrence, self.recurrence);
        RequestPlan { chosen, kind, recur, rng }
    }

    /// The public object that a request of a robot introduces, and which of the group's types it is of; none
    /// when it introduces none.
    fn introduced_by(
        &self,
        universe: &Universe,
        table: &GroupTable,
        robot: RobotIndex,
        serial: u64,
    ) -> Option<(ObjectId, usize)> {
        let mut plan = self.plan(universe, table, robot, serial);
        let was_new = plan.kind == WorldKind::Public && !plan.recur;
        was_new.then(|| {
            let direct = &table.mix.direct[plan.chosen];
            (new_object(direct, Space::BestEffort(robot), serial, &mut plan.rng), plan.chosen)
        })
    }

    /// The share of a robot's requests that introduce a public object or a line of the trace.
    fn new_share(&self, table: &GroupTable) -> f64 {
        let new =
            |direct: &DirectMix| direct.share * (1.0 - revisit_share(direct.recurrence, self.recurrence));
        let public = 1.0 - table.private_share - table.foreign_share;
        public * table.mix.direct.iter().map(new).sum::<f64>()
            + table.foreign_share * (1.0 - revisit_share(table.mix.recurrence, self.recurrence))
    }

    /// Probability that a first visit of a type, made in a phase with the factors `then`, is accepted for a revisit now, so that types with
    /// a recurrence of their own get their share of revisits: revisits of the type now over its introductions then, relative to the type for
    /// which this ratio is highest.
    fn acceptance(&self, then: &PhaseMeans, table: &GroupTable, chosen: usize) -> f64 {
        let ratio = |direct: &DirectMix| {
            let introduced = 1.0 - revisit_share(direct.recurrence, then.recurrence);
            revisit_share(direct.recurrence, self.recurrence) / introduced.max(SMALLEST_SHARE)
        };
        let best = table.mix.direct.iter().map(ratio).fold(0.0, f64::max);
        if best > 0.0 { ratio(&table.mix.direct[chosen]) / best } else { 0.0 }
    }
}
