//! The public worlds: which there are, how first visits accrue in them, and who makes one.
//!
//! First visits by robots with a rate are arrivals of their own: in the expected number of them, S, they are a Poisson
//! process of rate 1 for each world ([`crate::points`]), whose points are given to living robots by chance. No robot needs
//! to know what another has done. Robots with a law of their own for their intervals make first visits on their own
//! instants ([`crate::introductions`]).
//!
//! Where nothing was visited yet, what would be a revisit is the first visit. When it comes is drawn for the world, and what robots
//! have of revisits before then is left out: as those are Poisson processes, the instants have the law that they would have had.

use std::collections::HashMap;

use crate::Purpose;
use crate::curve::Line;
use crate::introductions::FirstVisit;
use crate::layout::{
    GroupPart, GroupShares, Layout, SchedulePosition, WorldContent, WorldShare, delta_ns, trace_delta_ns,
};
use crate::mix::DirectMix;
use crate::model::{OriginIndex, RobotIndex};
use crate::picker::{Picker, pick_few};
use crate::schedule::Segment;
use crate::timeline::Timeline;
use crate::universe::{GroupTable, Universe};
use assay_base::random::{Rng, fold, hash};

/// Draws of a busy robot before all are looked at.
const LOOKS: u32 = 32;

/// World of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorldKind {
    Public,
    Private,
    /// The trace.
    Foreign,
}

/// All public worlds that scheduled robots request.
#[derive(Debug)]
pub(crate) struct Worlds {
    layout: Layout,
    worlds: Vec<World>,
    /// For each group and each of its direct types: the worlds by weight.
    pickers: Vec<Vec<Picker<u32>>>,
}

/// One world: an origin and a content type, or the trace.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) what: WorldContent,
    /// Start of all hashes about it.
    pub(crate) hash: u64,
    /// The process of its first visits.
    pub(crate) points: u64,
    profile: usize,
    /// Revisits by robots with a rate that would have come before one of them makes the first visit.
    opening: f64,
    /// Requests per unit of the profile.
    scale: f64,
    /// Time that a first fetch is given before others revisit.
    pub(crate) delta_ns: u64,
}

impl Worlds {
    pub(crate) fn new(universe: &Universe, timeline: &Timeline) -> Self {
        let workload = universe.workload();
        let shares = scheduled(universe).filter_map(|(group, table)| {
            Some(GroupShares {
                group,
                mix: &table.mix,
                per_second: table.mean_rate?,
                private_share: table.private_share,
                foreign_share: table.foreign_share,
                is_renewal: table.between.is_some(),
            })
        });
        let layout = Layout::new(workload, &shares.collect::<Vec<_>>(), timeline.segments());
        let mut index = HashMap::new();
        let worlds = (0..).zip(layout.worlds()).map(|(place, share): (u32, &WorldShare)| {
            index.insert(share.what, place);
            World::new(universe, share)
        });
        let worlds = worlds.collect();
        let groups = universe.groups().len();
        let mut this = Self { layout, worlds, pickers: vec![Vec::new(); groups] };
        for (group, table) in scheduled(universe) {
            let of_type = |direct: &DirectMix| {
                let world = |(origin, share): &(OriginIndex, f64)| {
                    index.get(&WorldContent::Objects(*origin, direct.content)).map(|world| (*world, *share))
                };
                Picker::new(direct.origin_shares.iter().filter_map(world))
            };
            this.pickers[group] = table.mix.direct.iter().map(of_type).collect();
        }
        this
    }

    /// The world of the trace.
    pub(crate) fn trace(&self) -> Option<u32> {
        let last = self.worlds.len().checked_sub(1)?;
        (self.worlds[last].what == WorldContent::Trace).then_some(last as u32)
    }

    pub(crate) fn worlds(&self) -> &[World] {
        &self.worlds
    }

    /// The world that `unit` falls on when a robot of a group requests one of its direct types.
    #[inline]
    pub(crate) fn pick(&self, group: usize, direct: usize, unit: f64) -> Option<u32> {
        self.pickers[group][direct].pick(unit)
    }

    /// Position at which a point of a world's process is due, searched from a segment on; none: not within the schedule.
    #[inline]
    pub(crate) fn position_of_point(
        &self,
        world: &World,
        point: f64,
        from: usize,
    ) -> Option<SchedulePosition> {
        self.layout.position_of_point(world.profile, point / world.scale, from)
    }

    /// Position at which a revisit makes a world's first visit if nothing else has; none: not within the schedule.
    pub(crate) fn position_of_opening(&self, world: &World) -> Option<SchedulePosition> {
        self.layout.position_of_revisit(world.profile, world.opening / world.scale)
    }

    /// The expected number of a world's points until an instant. `near` is a segment to look from.
    #[inline]
    pub(crate) fn expected_points(
        &self,
        world: &World,
        segments: &[Segment],
        at_ns: u64,
        near: usize,
    ) -> f64 {
        world.scale * self.layout.points(world.profile, segments, at_ns, near)
    }

    /// The robot that makes a first visit: one of the living, and busy if any is. `is_busy` is called for groups with sessions only.
    #[inline]
    pub(crate) fn owner(
        &self,
        universe: &Universe,
        first: &FirstVisit,
        segment: &Segment,
        mut is_busy: impl FnMut(RobotIndex) -> bool,
    ) -> RobotIndex {
        let (world, at) = (&self.worlds[first.world as usize], first.at);
        let mut rng = Rng::of(Purpose::Owner, &[world.hash, first.serial]);
        let parts = self.layout.parts_of(world.profile);
        let shape = &segment.shape;
        let factor = shape.recurrence.at(at.u);
        let weight = |part: &GroupPart| {
            if part.is_renewal {
                return 0.0;
            }
            let revisits = crate::density::revisit_share(part.recurrence, factor);
            let launches = shape.alive[part.group].at(at.u) * shape.launches[part.group].at(at.u);
            part.per_second * part.share * launches * if first.is_opening { revisits } else { 1.0 - revisits }
        };
        let chosen = match parts {
            [_] => 0,
            parts => pick_few(parts.iter().map(weight), rng.unit()).unwrap_or(0),
        };
        let group = parts[chosen].group;
        let table = &universe.groups()[group];
        let living = (libm::round(shape.alive[group].at(at.u)) as u64).clamp(1, u64::from(table.count));
        let place = rng.below(living);
        let first = table.by_rank[place as usize];
        if table.session.is_none() || is_busy(first) {
            return first;
        }
        let drawn =
            (0..LOOKS).map(|_| table.by_rank[rng.below(living) as usize]).find(|robot| is_busy(*robot));
        // Hardly anybody is busy: whoever is, looked for from a random place on.
        let mut others = (0..living).map(|step| table.by_rank[((place + step) % living) as usize]);
        drawn.or_else(|| others.find(|robot| is_busy(*robot))).unwrap_or(first)
    }
}

/// Set a world's process, and its opening, apart from what else is hashed from the world. The numbers are arbitrary and must stay.
const POINTS: u64 = 0x706f_6973;
const OPENING: u64 = 0x6f70_656e;

impl World {
    fn new(universe: &Universe, share: &WorldShare) -> Self {
        let (workload, seed) = (universe.workload(), universe.seed());
        let (hash, delta_ns) = match share.what {
            WorldContent::Objects(origin, content) => {
                let words = [seed, u64::from(content), u64::from(origin)];
                (hash(Purpose::World, &words), delta_ns(workload, origin))
            }
            WorldContent::Trace => (hash(Purpose::World, &[seed]), trace_delta_ns(workload)),
        };
        let WorldShare { what, profile, scale } = *share;
        let opening = Rng::new(fold(hash, OPENING)).exponential();
        Self { what, hash, points: fold(hash, POINTS), opening, profile, scale, delta_ns }
    }
}

/// Groups with a rate and robots.
pub(crate) fn scheduled(universe: &Universe) -> impl Iterator<Item = (usize, &GroupTable)> {
    universe.groups().iter().enumerate().filter(|(_, table)| table.count > 0 && table.mean_rate.is_some())
}

/// The part of a segment in which the robot of a rank is alive: where the line of living robots is nearer to
/// its rank + 1 than to its rank.
#[inline]
pub(crate) fn living_part(alive: Line, rank: u32) -> (f64, f64) {
    let (needed, slope) = (f64::from(rank) + 0.5, alive.end - alive.begin);
    if slope == 0.0 {
        return if alive.begin >= needed { (0.0, 1.0) } else { (1.0, 1.0) };
    }
    let crossing = ((needed - alive.begin) / slope).clamp(0.0, 1.0);
    if slope > 0.0 { (crossing, 1.0) } else { (0.0, crossing) }
}
