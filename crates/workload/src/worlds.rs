//! The public worlds: which there are, how first visits accrue in them, and who makes one.
//!
//! First visits by robots with a rate are arrivals of their own: in the expected number of them, S, they are a Poisson
//! process of rate 1 for each world ([`crate::points`]), whose points are given to living robots by chance. No robot needs
//! to know what another has done. Robots with a law of their own for their intervals make first visits on their own
//! instants ([`crate::introductions`]).

use std::collections::HashMap;
use std::time::Duration;

use crate::Purpose;
use crate::curve::{Curve, Line, Poly};
use crate::density::revisit_line;
use crate::mix::{DirectMix, GroupMix};
use crate::model::{ContentIndex, Distribution, OriginIndex, RobotIndex, Workload};
use crate::picker::{Picker, pick_few};
use crate::schedule::Segment;
use crate::timeline::Timeline;
use crate::universe::{GroupTable, Universe};
use assay_random::{Rng, fold, hash};

/// A place in the schedule: which segment, and how far into it (0 to 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub(crate) segment: usize,
    pub(crate) u: f64,
}

/// Draws of a busy robot before all are looked at.
const LOOKS: u32 = 32;

/// All public worlds that scheduled robots ask for.
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
    pub(crate) what: What,
    /// Start of all hashes about it.
    pub(crate) hash: u64,
    /// The process of its first visits.
    pub(crate) points: u64,
    profile: usize,
    /// First visits per unit of the profile.
    scale: f64,
    /// Time that a first fetch is given before others revisit.
    pub(crate) delta_ns: u64,
}

/// Which worlds there are, and how first visits accrue in them: of a workload alone, whatever the seed.
#[derive(Debug)]
pub(crate) struct Layout {
    profiles: Vec<Profile>,
    worlds: Vec<WorldShare>,
}

/// One world's part in its profile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorldShare {
    pub(crate) what: What,
    profile: usize,
    /// First visits per unit of the profile.
    pub(crate) scale: f64,
}

/// How often a group asks for what.
#[derive(Debug)]
pub(crate) struct GroupShares<'a> {
    pub(crate) group: usize,
    pub(crate) mix: &'a GroupMix,
    /// Requests of a living robot, on average over busy and idle periods.
    pub(crate) per_second: f64,
    pub(crate) private_share: f64,
    pub(crate) foreign_share: f64,
    /// Its robots make all requests at intervals of a law of their own.
    pub(crate) is_renewal: bool,
}

/// What a world consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum What {
    /// Objects of one type at one origin.
    Objects(OriginIndex, ContentIndex),
    /// The lines of the trace, in order and round again.
    Trace,
}

impl What {
    fn content(self) -> Option<ContentIndex> {
        match self {
            Self::Objects(_, content) => Some(content),
            Self::Trace => None,
        }
    }
}

/// How first visits accrue in worlds that differ in scale only.
#[derive(Debug)]
struct Profile {
    content: Option<ContentIndex>,
    /// The expected number of first visits, and of those that are points of the world's process.
    sum: Curve,
    points: Curve,
    /// Groups that ask for it, with their part of its launches and its recurrence.
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) group: usize,
    pub(crate) share: f64,
    /// Of a living robot, on average over its busy and idle periods.
    per_second: f64,
    pub(crate) recurrence: f64,
    is_renewal: bool,
}

impl Layout {
    pub(crate) fn new(workload: &Workload, groups: &[GroupShares<'_>], segments: &[Segment]) -> Self {
        let mut this = Self { profiles: Vec::new(), worlds: Vec::new() };
        // Shares of each (content, origin), group by group.
        let mut shares: Vec<Vec<Vec<Part>>> =
            vec![vec![Vec::new(); workload.origins.len()]; workload.contents.len()];
        let mut trace = Vec::new();
        for of in groups {
            let (group, per_second, is_renewal) = (of.group, of.per_second, of.is_renewal);
            for direct in &of.mix.direct {
                for (origin, share) in &direct.origin_shares {
                    let share = share * (1.0 - of.private_share - of.foreign_share);
                    let part = Part { group, share, per_second, recurrence: direct.recurrence, is_renewal };
                    shares[usize::from(direct.content)][usize::from(*origin)].push(part);
                }
            }
            if of.foreign_share > 0.0 {
                let recurrence = of.mix.recurrence;
                trace.push(Part { group, share: of.foreign_share, per_second, recurrence, is_renewal });
            }
        }
        for (content, origins) in shares.into_iter().enumerate() {
            for (origin, parts) in origins.into_iter().enumerate() {
                this.add(What::Objects(origin as OriginIndex, content as ContentIndex), parts, segments);
            }
        }
        this.add(What::Trace, trace, segments);
        this
    }

    /// Adds a world, if anybody asks for it.
    fn add(&mut self, what: What, mut parts: Vec<Part>, segments: &[Segment]) {
        let scale: f64 = parts.iter().map(|part| part.share).sum();
        if !parts.iter().any(|part| part.share > 0.0) {
            return;
        }
        parts.iter_mut().for_each(|part| part.share /= scale);
        let alike = |profile: &Profile| {
            profile.content == what.content()
                && profile.parts.len() == parts.len()
                && profile
                    .parts
                    .iter()
                    .zip(&parts)
                    .all(|(a, b)| a.group == b.group && (a.share - b.share).abs() < 1e-12)
        };
        let profile = self.profiles.iter().position(alike).unwrap_or_else(|| {
            let sum = sum_of(parts.iter(), segments);
            let points = sum_of(parts.iter().filter(|part| !part.is_renewal), segments);
            self.profiles.push(Profile { content: what.content(), sum, points, parts });
            self.profiles.len() - 1
        });
        self.worlds.push(WorldShare { what, profile, scale });
    }

    pub(crate) fn worlds(&self) -> &[WorldShare] {
        &self.worlds
    }

    /// First visits of a world that are expected until an instant.
    pub(crate) fn visits(&self, world: usize, segments: &[Segment], at_ns: u64) -> f64 {
        let WorldShare { profile, scale, .. } = self.worlds[world];
        scale * at_instant(&self.profiles[profile].sum, segments, at_ns, 0)
    }

    /// The groups that ask for a world, with their shares of its scale.
    pub(crate) fn parts(&self, world: usize) -> &[Part] {
        &self.profiles[self.worlds[world].profile].parts
    }

    /// Where so many first visits of a world are reached; none: never.
    pub(crate) fn reach(&self, world: usize, visits: f64) -> Option<Place> {
        let WorldShare { profile, scale, .. } = self.worlds[world];
        self.profiles[profile].sum.reach(visits / scale, 0).map(|(segment, u)| Place { segment, u })
    }
}

/// Time that a first fetch of what a trace names is given.
pub(crate) fn trace_delta_ns(workload: &Workload) -> u64 {
    workload.foreign.iter().map(|url| delta_ns(workload, url.origin)).max().unwrap_or(0)
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
        let worlds = (0..).zip(&layout.worlds).map(|(place, share): (u32, &WorldShare)| {
            index.insert(share.what, place);
            World::new(universe, share)
        });
        let worlds = worlds.collect();
        let groups = universe.groups().len();
        let mut this = Self { layout, worlds, pickers: vec![Vec::new(); groups] };
        for (group, table) in scheduled(universe) {
            let of_type = |direct: &DirectMix| {
                let world = |(origin, share): &(OriginIndex, f64)| {
                    index.get(&What::Objects(*origin, direct.content)).map(|world| (*world, *share))
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
        (self.worlds[last].what == What::Trace).then_some(last as u32)
    }

    pub(crate) fn worlds(&self) -> &[World] {
        &self.worlds
    }

    /// The world that `unit` falls on when a robot of a group asks for one of its direct types.
    #[inline]
    pub(crate) fn pick(&self, group: usize, direct: usize, unit: f64) -> Option<u32> {
        self.pickers[group][direct].pick(unit)
    }

    /// Where a point of a world's process is due, looking from a segment on; none: not within the schedule.
    #[inline]
    pub(crate) fn place_of_point(&self, world: &World, point: f64, from: usize) -> Option<Place> {
        let points = &self.layout.profiles[world.profile].points;
        points.reach(point / world.scale, from).map(|(segment, u)| Place { segment, u })
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
        world.scale * at_instant(&self.layout.profiles[world.profile].points, segments, at_ns, near)
    }

    /// The robot that makes the first visit at a point: one of the living, and busy if any is. `is_busy` is
    /// asked of groups with sessions only.
    #[inline]
    pub(crate) fn owner(
        &self,
        universe: &Universe,
        (world, serial): (&World, u64),
        at: Place,
        segment: &Segment,
        mut is_busy: impl FnMut(RobotIndex) -> bool,
    ) -> RobotIndex {
        let mut rng = Rng::of(Purpose::Owner, &[world.hash, serial]);
        let parts = &self.layout.profiles[world.profile].parts;
        let shape = &segment.shape;
        let factor = shape.recurrence.at(at.u);
        let weight = |part: &Part| {
            if part.is_renewal {
                return 0.0;
            }
            let revisits = crate::density::revisit_share(part.recurrence, factor);
            let launches = shape.alive[part.group].at(at.u) * shape.launches[part.group].at(at.u);
            part.per_second * part.share * launches * (1.0 - revisits)
        };
        let chosen = match parts.as_slice() {
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

/// Sets a world's process apart from what else is hashed from the world. The number is arbitrary and must stay.
const POINTS: u64 = 0x706f_6973;

impl World {
    fn new(universe: &Universe, share: &WorldShare) -> Self {
        let (workload, seed) = (universe.workload(), universe.seed());
        let (hash, delta_ns) = match share.what {
            What::Objects(origin, content) => {
                let words = [seed, u64::from(content), u64::from(origin)];
                (hash(Purpose::World, &words), delta_ns(workload, origin))
            }
            What::Trace => (hash(Purpose::World, &[seed]), trace_delta_ns(workload)),
        };
        let WorldShare { what, profile, scale } = *share;
        Self { what, hash, points: fold(hash, POINTS), profile, scale, delta_ns }
    }
}

/// A sum over all segments at an instant. `near` is a segment to look from.
#[inline]
fn at_instant(sum: &Curve, segments: &[Segment], at_ns: u64, near: usize) -> f64 {
    let mut segment = near;
    while segment > 0 && segments.get(segment).is_none_or(|s| s.start_ns > at_ns) {
        segment -= 1;
    }
    while segments.get(segment).is_some_and(|s| s.end_ns <= at_ns) {
        segment += 1;
    }
    let u = segments.get(segment).map_or(0.0, |s| (at_ns - s.start_ns) as f64 / s.span_ns as f64);
    sum.at(segment, u)
}

/// The sum of first visits by the robots of some parts over all segments.
fn sum_of<'a>(parts: impl Iterator<Item = &'a Part> + Clone, segments: &[Segment]) -> Curve {
    let rate = |segment: &Segment| {
        let shape = &segment.shape;
        let of_part = |part: &Part| {
            Poly::constant(part.per_second * part.share)
                .times(shape.load)
                .times(shape.alive[part.group])
                .times(shape.launches[part.group])
                .times(revisit_line(part.recurrence, shape.recurrence).map(|revisits| 1.0 - revisits))
        };
        parts.clone().map(of_part).fold(Poly::ZERO, |sum, part| sum.plus(&part))
    };
    Curve::new(segments.iter().map(|segment| (rate(segment), segment.span_s(), segment.cut())))
}

/// Groups with a rate and robots.
pub(crate) fn scheduled(universe: &Universe) -> impl Iterator<Item = (usize, &GroupTable)> {
    universe.groups().iter().enumerate().filter(|(_, table)| table.count > 0 && table.mean_rate.is_some())
}

/// Enough for a first fetch to finish: a second, or the origin's mean think time and four deviations.
pub(crate) fn delta_ns(workload: &Workload, origin: OriginIndex) -> u64 {
    let server = &workload.servers[usize::from(workload.origins[usize::from(origin)].server)];
    let think_s =
        server.think_s.as_ref().map_or(0.0, |think: &Distribution| think.mean() + 4.0 * think.deviation());
    let delta = Duration::try_from_secs_f64(think_s.max(1.0)).unwrap_or(Duration::from_secs(1));
    u64::try_from(delta.as_nanos()).unwrap_or(u64::MAX)
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
