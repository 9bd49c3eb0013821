//! When is each public object introduced, and by whom? The public worlds and their slots.
//!
//! First visits are arrivals of their own: slot j of a world is due where the expected number of first visits
//! reaches j + h(j), h(j) in [0, 1) hashed from j. No robot needs to know what another has done.

use std::time::Duration;

use crate::curve::{Curve, Line, Poly};
use crate::density::revisit_line;
use crate::model::{ContentIndex, Distribution, OriginIndex, Pace, RobotIndex};
use crate::picker::{Picker, pick_few};
use crate::rng::{Purpose, Rng, hash, unit_of};
use crate::schedule::Segment;
use crate::timeline::{Freeze, Timeline};
use crate::universe::{GroupTable, Universe};

/// A place in the schedule: which segment, and how far into it (0 to 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Place {
    pub(crate) segment: usize,
    pub(crate) u: f64,
}

impl Segment {
    pub(crate) fn length_s(&self) -> f64 {
        (self.end_ns - self.start_ns) as f64 / 1e9
    }

    /// The instant of a place; always before the end, so that it belongs to the phase.
    #[inline]
    pub(crate) fn instant_ns(&self, u: f64) -> u64 {
        let length = self.end_ns - self.start_ns;
        self.start_ns + ((u * length as f64) as u64).min(length - 1)
    }
}

/// All public worlds that scheduled robots ask for.
#[derive(Debug)]
pub(crate) struct Worlds {
    profiles: Vec<Profile>,
    worlds: Vec<World>,
    /// For each group and each of its direct types: the worlds by weight.
    pickers: Vec<Vec<Picker<u32>>>,
}

/// One world: an origin and a content type.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) origin: OriginIndex,
    pub(crate) content: ContentIndex,
    /// Start of all hashes about it.
    pub(crate) hash: u64,
    profile: usize,
    /// First visits per unit of the profile.
    scale: f64,
    /// Time that a first fetch is given before others revisit.
    delta_ns: u64,
    /// Its size when the working set froze.
    frozen: u64,
}

/// How first visits accrue in worlds that differ in scale only.
#[derive(Debug)]
struct Profile {
    content: ContentIndex,
    sum: Curve,
    /// Groups that ask for it, with their part of its launches and its recurrence.
    parts: Vec<Part>,
}

#[derive(Debug, Clone, Copy)]
struct Part {
    group: usize,
    share: f64,
    per_second: f64,
    recurrence: f64,
}

impl Worlds {
    pub(crate) fn new(universe: &Universe, timeline: &Timeline) -> Self {
        let mut this = Self {
            profiles: Vec::new(),
            worlds: Vec::new(),
            pickers: vec![Vec::new(); universe.groups().len()],
        };
        // Shares of each (content, origin), group by group.
        let mut shares: Vec<Vec<Vec<Part>>> =
            vec![vec![Vec::new(); universe.workload().origins.len()]; universe.workload().contents.len()];
        for (group, table) in scheduled(universe) {
            let Pace::Rate { per_second } = universe.workload().robots[group].pace else { continue };
            for direct in &table.mix.direct {
                for (origin, share) in &direct.origin_shares {
                    let share = share * (1.0 - table.private_share);
                    let part = Part { group, share, per_second, recurrence: direct.recurrence };
                    shares[usize::from(direct.content)][usize::from(*origin)].push(part);
                }
            }
        }
        let mut index =
            vec![vec![None; universe.workload().origins.len()]; universe.workload().contents.len()];
        for (content, origins) in shares.into_iter().enumerate() {
            for (origin, parts) in origins.into_iter().enumerate() {
                if parts.iter().any(|part| part.share > 0.0) {
                    index[content][origin] = Some(this.worlds.len() as u32);
                    this.add(universe, timeline, content as ContentIndex, origin as OriginIndex, parts);
                }
            }
        }
        for (group, table) in scheduled(universe) {
            let of_type = |direct: &crate::mix::DirectMix| {
                let world = |(origin, share): &(OriginIndex, f64)| {
                    index[usize::from(direct.content)][usize::from(*origin)].map(|world| (world, *share))
                };
                Picker::new(direct.origin_shares.iter().filter_map(world))
            };
            this.pickers[group] = table.mix.direct.iter().map(of_type).collect();
        }
        this
    }

    fn add(
        &mut self,
        universe: &Universe,
        timeline: &Timeline,
        content: ContentIndex,
        origin: OriginIndex,
        mut parts: Vec<Part>,
    ) {
        let scale: f64 = parts.iter().map(|part| part.share).sum();
        parts.iter_mut().for_each(|part| part.share /= scale);
        let alike = |profile: &Profile| {
            profile.content == content
                && profile.parts.len() == parts.len()
                && profile
                    .parts
                    .iter()
                    .zip(&parts)
                    .all(|(a, b)| a.group == b.group && (a.share - b.share).abs() < 1e-12)
        };
        let profile = self.profiles.iter().position(alike).unwrap_or_else(|| {
            self.profiles.push(Profile { content, sum: sum_of(&parts, timeline.segments()), parts });
            self.profiles.len() - 1
        });
        let hash = hash(Purpose::Slot, &[universe.seed(), u64::from(content), u64::from(origin)]);
        let mut world =
            World { origin, content, hash, profile, scale, delta_ns: delta_ns(universe, origin), frozen: 0 };
        if let Freeze::At(at) = timeline.freeze() {
            let at_ns = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
            world.frozen = self.introduced(&world, timeline.segments(), at_ns, 0);
        }
        self.worlds.push(world);
    }

    pub(crate) fn worlds(&self) -> &[World] {
        &self.worlds
    }

    /// The world that `unit` falls on when a robot of a group asks for one of its direct types.
    #[inline]
    pub(crate) fn pick(&self, group: usize, direct: usize, unit: f64) -> Option<u32> {
        self.pickers[group][direct].pick(unit)
    }

    /// Where a slot of a world is due, looking from a segment on; none after the end of the schedule.
    #[inline]
    pub(crate) fn slot(&self, world: &World, serial: u64, from: usize) -> Option<Place> {
        let shift = unit_of(crate::rng::fold(world.hash, serial));
        let value = (serial as f64 + shift) / world.scale;
        self.profiles[world.profile].sum.reach(value, from).map(|(segment, u)| Place { segment, u })
    }

    /// The robot that makes the first visit of a slot.
    #[inline]
    pub(crate) fn owner(
        &self,
        universe: &Universe,
        world: &World,
        serial: u64,
        at: Place,
        segment: &Segment,
    ) -> RobotIndex {
        let mut rng = Rng::of(Purpose::Owner, &[world.hash, serial]);
        let parts = &self.profiles[world.profile].parts;
        let shape = &segment.shape;
        let factor = shape.recurrence.at(at.u);
        let weight = |part: &Part| {
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
        table.by_rank[rng.below(living) as usize]
    }

    /// Number of serials that may be revisited at an instant, and the size of a frozen window.
    #[inline]
    pub(crate) fn available(&self, world: &World, segments: &[Segment], now_ns: u64, segment: usize) -> u64 {
        match now_ns.checked_sub(world.delta_ns) {
            Some(then_ns) => self.introduced(world, segments, then_ns, segment),
            None => 0,
        }
    }

    /// Number of whole first visits expected until an instant. `near` is a segment to look from.
    fn introduced(&self, world: &World, segments: &[Segment], at_ns: u64, near: usize) -> u64 {
        let mut segment = near;
        while segment > 0 && segments.get(segment).is_none_or(|s| s.start_ns > at_ns) {
            segment -= 1;
        }
        while segments.get(segment).is_some_and(|s| s.end_ns <= at_ns) {
            segment += 1;
        }
        let u = segments
            .get(segment)
            .map_or(0.0, |s| (at_ns - s.start_ns) as f64 / (s.end_ns - s.start_ns) as f64);
        (world.scale * self.profiles[world.profile].sum.at(segment, u)) as u64
    }

    /// The size of a world's window once the working set has been frozen.
    pub(crate) fn frozen(&self, world: &World) -> u64 {
        world.frozen
    }
}

/// The sum of first visits of a profile over all segments.
fn sum_of(parts: &[Part], segments: &[Segment]) -> Curve {
    let rate = |segment: &Segment| {
        let shape = &segment.shape;
        let of_part = |part: &Part| {
            Poly::constant(part.per_second * part.share)
                .times(shape.load)
                .times(shape.alive[part.group])
                .times(shape.launches[part.group])
                .times(revisit_line(part.recurrence, shape.recurrence).map(|revisits| 1.0 - revisits))
        };
        parts.iter().map(of_part).fold(Poly::ZERO, |sum, part| sum.plus(&part))
    };
    Curve::new(segments.iter().map(|segment| (rate(segment), segment.length_s())))
}

/// Groups with a rate and robots.
pub(crate) fn scheduled(universe: &Universe) -> impl Iterator<Item = (usize, &GroupTable)> {
    let has_rate = |group: usize| matches!(universe.workload().robots[group].pace, Pace::Rate { .. });
    universe.groups().iter().enumerate().filter(move |(group, table)| table.count > 0 && has_rate(*group))
}

/// Enough for a first fetch to finish: a second, or the origin's mean think time and four deviations.
fn delta_ns(universe: &Universe, origin: OriginIndex) -> u64 {
    let workload = universe.workload();
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
