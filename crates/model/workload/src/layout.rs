//! Which public worlds a workload has, and how requests accrue in them: the same whatever the seed.

use std::time::Duration;

use crate::curve::{Curve, Poly};
use crate::density::revisit_line;
use crate::mix::GroupMix;
use crate::model::{ContentIndex, Distribution, OriginIndex, Workload};
use crate::schedule::Segment;

/// A position in the schedule: the segment, and the part of it that has passed (0 to 1).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SchedulePosition {
    pub(crate) segment: usize,
    pub(crate) u: f64,
}

/// Public worlds and their requests: a function of the workload alone, whatever the seed.
#[derive(Debug)]
pub(crate) struct Layout {
    profiles: Vec<RequestProfile>,
    worlds: Vec<WorldShare>,
}

/// One world's part in its profile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorldShare {
    pub(crate) what: WorldContent,
    /// Index of its profile in the layout.
    pub(crate) profile: usize,
    /// Requests per unit of the profile.
    pub(crate) scale: f64,
}

/// Request rates and shares of a group.
#[derive(Debug)]
pub(crate) struct GroupShares<'a> {
    pub(crate) group: usize,
    pub(crate) mix: &'a GroupMix,
    /// Requests of a living robot, on average over busy and idle periods.
    pub(crate) per_second: f64,
    pub(crate) private_share: f64,
    pub(crate) foreign_share: f64,
    /// All requests of its robots are at intervals of a law of their own.
    pub(crate) is_renewal: bool,
}

/// Contents of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WorldContent {
    /// Objects of one type at one origin.
    Objects(OriginIndex, ContentIndex),
    /// The lines of the trace, in order and round again.
    Trace,
}

impl WorldContent {
    fn content(self) -> Option<ContentIndex> {
        match self {
            Self::Objects(_, content) => Some(content),
            Self::Trace => None,
        }
    }
}

/// Accrual of requests in worlds that differ in scale only.
#[derive(Debug)]
struct RequestProfile {
    content: Option<ContentIndex>,
    /// The expected number of first visits, and of those that are points of the world's process.
    sum: Curve,
    points: Curve,
    /// The expected number of all requests, and of revisits by robots with a rate.
    requests: Curve,
    revisits: Curve,
    /// Groups that request it, with their part of its launches and its recurrence.
    parts: Vec<GroupPart>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupPart {
    pub(crate) group: usize,
    pub(crate) share: f64,
    /// Of a living robot, on average over its busy and idle periods.
    pub(crate) per_second: f64,
    pub(crate) recurrence: f64,
    pub(crate) is_renewal: bool,
}

impl Layout {
    pub(crate) fn new(workload: &Workload, groups: &[GroupShares<'_>], segments: &[Segment]) -> Self {
        let mut this = Self { profiles: Vec::new(), worlds: Vec::new() };
        // Shares of each (content, origin), group by group.
        let mut shares: Vec<Vec<Vec<GroupPart>>> =
            vec![vec![Vec::new(); workload.origins.len()]; workload.contents.len()];
        let mut trace = Vec::new();
        for of in groups {
            let (group, per_second, is_renewal) = (of.group, of.per_second, of.is_renewal);
            for direct in &of.mix.direct {
                for (origin, share) in &direct.origin_shares {
                    let share = share * (1.0 - of.private_share - of.foreign_share);
                    let part =
                        GroupPart { group, share, per_second, recurrence: direct.recurrence, is_renewal };
                    shares[usize::from(direct.content)][usize::from(*origin)].push(part);
                }
            }
            if of.foreign_share > 0.0 {
                let recurrence = of.mix.recurrence;
                trace.push(GroupPart { group, share: of.foreign_share, per_second, recurrence, is_renewal });
            }
        }
        for (content, origins) in shares.into_iter().enumerate() {
            for (origin, parts) in origins.into_iter().enumerate() {
                this.add(
                    WorldContent::Objects(origin as OriginIndex, content as ContentIndex),
                    parts,
                    segments,
                );
            }
        }
        this.add(WorldContent::Trace, trace, segments);
        this
    }

    /// Adds a world, if any group requests it.
    fn add(&mut self, what: WorldContent, mut parts: Vec<GroupPart>, segments: &[Segment]) {
        let scale: f64 = parts.iter().map(|part| part.share).sum();
        if !parts.iter().any(|part| part.share > 0.0) {
            return;
        }
        parts.iter_mut().for_each(|part| part.share /= scale);
        let alike = |profile: &RequestProfile| {
            profile.content == what.content()
                && profile.parts.len() == parts.len()
                && profile
                    .parts
                    .iter()
                    .zip(&parts)
                    .all(|(a, b)| a.group == b.group && (a.share - b.share).abs() < 1e-12)
        };
        let profile = self.profiles.iter().position(alike).unwrap_or_else(|| {
            let with_rate = parts.iter().filter(|part| !part.is_renewal);
            self.profiles.push(RequestProfile {
                content: what.content(),
                sum: sum_of(parts.iter(), segments, |revisits| 1.0 - revisits),
                points: sum_of(with_rate.clone(), segments, |revisits| 1.0 - revisits),
                requests: sum_of(parts.iter(), segments, |_| 1.0),
                revisits: sum_of(with_rate, segments, |revisits| revisits),
                parts,
            });
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

    /// Requests for a world that are expected until an instant.
    pub(crate) fn requests(&self, world: usize, segments: &[Segment], at_ns: u64) -> f64 {
        let WorldShare { profile, scale, .. } = self.worlds[world];
        scale * at_instant(&self.profiles[profile].requests, segments, at_ns, 0)
    }

    /// The groups that request a world, with their shares of its scale.
    pub(crate) fn parts(&self, world: usize) -> &[GroupPart] {
        self.parts_of(self.worlds[world].profile)
    }

    /// The groups that request the worlds of a profile, with their shares of its scale.
    #[inline]
    pub(crate) fn parts_of(&self, profile: usize) -> &[GroupPart] {
        &self.profiles[profile].parts
    }

    /// The expected number of points of a profile until an instant. `near` is a segment to look from.
    #[inline]
    pub(crate) fn points(&self, profile: usize, segments: &[Segment], at_ns: u64, near: usize) -> f64 {
        at_instant(&self.profiles[profile].points, segments, at_ns, near)
    }

    /// Position at which this many points of a profile are reached, searched from a segment on; none: not within the schedule.
    #[inline]
    pub(crate) fn position_of_point(
        &self,
        profile: usize,
        points: f64,
        from: usize,
    ) -> Option<SchedulePosition> {
        self.profiles[profile].points.reach(points, from).map(|(segment, u)| SchedulePosition { segment, u })
    }

    /// Position at which this many revisits by robots with a rate are reached; none: not within the schedule.
    pub(crate) fn position_of_revisit(&self, profile: usize, revisits: f64) -> Option<SchedulePosition> {
        self.profiles[profile].revisits.reach(revisits, 0).map(|(segment, u)| SchedulePosition { segment, u })
    }

    /// Position at which this many requests for a world are reached; none: never.
    pub(crate) fn reach_requests(&self, world: usize, requests: f64) -> Option<SchedulePosition> {
        let WorldShare { profile, scale, .. } = self.worlds[world];
        let place = self.profiles[profile].requests.reach(requests / scale, 0);
        place.map(|(segment, u)| SchedulePosition { segment, u })
    }

    /// Position at which this many first visits of a world are reached; none: never.
    pub(crate) fn reach(&self, world: usize, visits: f64) -> Option<SchedulePosition> {
        let WorldShare { profile, scale, .. } = self.worlds[world];
        self.profiles[profile]
            .sum
            .reach(visits / scale, 0)
            .map(|(segment, u)| SchedulePosition { segment, u })
    }
}

/// Time that a first fetch of what a trace names is given.
pub(crate) fn trace_delta_ns(workload: &Workload) -> u64 {
    workload.foreign.iter().map(|url| delta_ns(workload, url.origin)).max().unwrap_or(0)
}

/// Enough for a first fetch to finish: a second, or the origin's mean think time and four deviations.
pub(crate) fn delta_ns(workload: &Workload, origin: OriginIndex) -> u64 {
    let server = &workload.servers[usize::from(workload.origins[usize::from(origin)].server)];
    let think_s =
        server.think_s.as_ref().map_or(0.0, |think: &Distribution| think.mean() + 4.0 * think.deviation());
    let delta = Duration::try_from_secs_f64(think_s.max(1.0)).unwrap_or(Duration::from_secs(1));
    u64::try_from(delta.as_nanos()).unwrap_or(u64::MAX)
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

/// The sum of requests by the robots of some parts over all segments. `share` gives the part that counts from the share of revisits.
fn sum_of<'a>(
    parts: impl Iterator<Item = &'a GroupPart> + Clone,
    segments: &[Segment],
    share: impl Fn(f64) -> f64,
) -> Curve {
    let rate = |segment: &Segment| {
        let shape = &segment.shape;
        let of_part = |part: &GroupPart| {
            Poly::constant(part.per_second * part.share)
                .times(shape.load)
                .times(shape.alive[part.group])
                .times(shape.launches[part.group])
                .times(revisit_line(part.recurrence, shape.recurrence).map(&share))
        };
        parts.clone().map(of_part).fold(Poly::ZERO, |sum, part| sum.plus(&part))
    };
    Curve::new(segments.iter().map(|segment| (rate(segment), segment.span_s(), segment.cut())))
}
