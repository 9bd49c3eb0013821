//! What is to be expected of each phase: the integrals of its rates, and what changes while there is nothing to revisit yet.
//!
//! The first request in a public world is a first visit, also where it would have been a revisit. Where S requests are expected, there
//! was none yet with probability e^-S. A robot's first request in its private world never is a revisit. A trace that has been walked through
//! begins again, with nothing new in it. All three are known in advance, so the offered ratios stated here are those of the
//! stream itself, but for chance.

use std::collections::HashSet;

use super::shape::{Segment, SegmentShape};
use super::span::{Expected, WorkingSetSize};
use crate::curve::integrate;
use crate::density::{Densities, LaunchTarget, ObjectTotals, PerLaunch, revisit_share};
use crate::layout::{GroupShares, Layout, WorldContent};
use crate::model::{Pace, Workload};

/// Input of all expectations.
struct Account<'a> {
    workload: &'a Workload,
    densities: &'a Densities,
    segments: &'a [Segment],
}

/// Expected numbers of each phase, and the size of the working set at an instant.
pub(super) fn expected(
    workload: &Workload,
    densities: &Densities,
    segments: &[Segment],
    phases: usize,
    frozen_ns: u64,
) -> (Vec<Expected>, WorkingSetSize) {
    let mut sums = vec![Expected::default(); phases];
    for segment in segments {
        segment.add(densities, &mut sums[usize::from(segment.phase)]);
    }
    let account = Account { workload, densities, segments };
    let mut size = account.public(&mut sums, frozen_ns);
    for group in 0..densities.groups.len() {
        account.private(group, &mut sums, frozen_ns, &mut size);
    }
    (sums, size)
}

impl Account<'_> {
    /// Takes from each public world the revisit that makes its first visit. Gives the size of the public working set.
    fn public(&self, sums: &mut [Expected], frozen_ns: u64) -> WorkingSetSize {
        let mut size = WorkingSetSize::default();
        let groups = self.densities.groups.iter().enumerate().filter(|(_, group)| group.count > 0);
        let shares = groups.filter_map(|(index, group)| {
            Some(GroupShares {
                group: index,
                mix: &group.mix,
                per_second: group.per_second?,
                private_share: group.private_share,
                foreign_share: group.foreign_share,
                is_renewal: matches!(self.workload.robots[index].pace, Pace::Renewal(_)),
            })
        });
        let shares: Vec<_> = shares.collect();
        let layout = Layout::new(self.workload, &shares, self.segments);
        for (index, world) in layout.worlds().iter().enumerate() {
            let visits = layout.visits(index, self.segments, frozen_ns);
            match world.what {
                WorldContent::Objects(_, content) => size.add(visits, self.densities.with_embedded(content)),
                WorldContent::Trace => {
                    let lines = self.workload.foreign.len() as f64;
                    let numbered = visits * self.numbered_lines();
                    let urls = numbered + visits.min(lines) * (1.0 - self.numbered_lines());
                    size.add(urls, ObjectTotals { objects: 1.0, bytes: self.densities.mean_line() });
                }
            }
            let empty = |at_ns: u64| libm::exp(-layout.requests(index, self.segments, at_ns));
            let stretches = self.stretches_until_filled(&layout, index, frozen_ns);
            for part in layout.parts(index) {
                let target = match world.what {
                    WorldContent::Objects(_, content) => {
                        let direct = &self.densities.groups[part.group].mix.direct;
                        direct.iter().position(|d| d.content == content).map(LaunchTarget::Direct)
                    }
                    WorldContent::Trace => Some(LaunchTarget::Trace),
                };
                let Some(target) = target else { continue };
                let share = part.share * world.scale;
                let lost = |factor, at_ns| share * revisit_share(part.recurrence, factor) * empty(at_ns);
                for (from_ns, until_ns) in stretches.iter().copied() {
                    let opened = self.exchange(part.group, target, from_ns, until_ns, lost, sums);
                    match world.what {
                        WorldContent::Objects(_, content) if until_ns <= frozen_ns => {
                            size.add(opened, self.densities.with_embedded(content));
                        }
                        _ => {}
                    }
                }
                for ((from_ns, until_ns), seen) in self.known_lines(&layout, index, world.what) {
                    let news = |factor, _| -share * (1.0 - revisit_share(part.recurrence, factor)) * seen;
                    self.exchange(part.group, target, from_ns, until_ns, news, sums);
                }
            }
        }
        size
    }

    /// Stretches of time until a world has something to revisit almost surely, short enough for the chance that it has
    /// nothing to be smooth in each. None begins before the freeze and ends after it.
    fn stretches_until_filled(&self, layout: &Layout, world: usize, frozen_ns: u64) -> Vec<(u64, u64)> {
        const REQUESTS: [f64; 7] = [0.25, 0.75, 1.5, 3.0, 6.0, 12.0, 30.0];
        let reached = |requests: f64| {
            let place = layout.reach_requests(world, requests);
            place.map_or(u64::MAX, |place| self.segments[place.segment].instant_ns(place.u))
        };
        let mut ends_ns: Vec<u64> = REQUESTS.map(reached).to_vec();
        let last_ns = ends_ns[REQUESTS.len() - 1];
        ends_ns.push(frozen_ns.min(last_ns));
        ends_ns.sort_unstable();
        ends_ns
            .iter()
            .scan(0, |from_ns, end_ns| Some((std::mem::replace(from_ns, *end_ns), *end_ns)))
            .collect()
    }

    /// The share of the trace's lines whose URL is another with each visit.
    fn numbered_lines(&self) -> f64 {
        let lines = &self.workload.foreign;
        lines.iter().filter(|url| url.is_numbered()).count() as f64 / lines.len().max(1) as f64
    }

    /// Intervals of time in which a trace names URLs again, with the share of the lines reached in them that were there before. After the last
    /// line, all are whose URLs have no number.
    fn known_lines(&self, layout: &Layout, world: usize, what: WorldContent) -> Vec<((u64, u64), f64)> {
        const STRETCHES: usize = 64;
        if what != WorldContent::Trace {
            return Vec::new();
        }
        let trace = &self.workload.foreign;
        let mut urls = HashSet::new();
        let (mut at_ns, mut line) = (0, 0);
        let mut stretches = Vec::with_capacity(STRETCHES + 1);
        for lines in trace.chunks(trace.len().div_ceil(STRETCHES)) {
            line += lines.len();
            let plain = lines.iter().filter(|url| !url.is_numbered());
            let known = plain.filter(|url| !urls.insert((url.origin, url.path.as_str()))).count();
            let end = layout.reach(world, line as f64);
            let end_ns = end.map_or(u64::MAX, |place| self.segments[place.segment].instant_ns(place.u));
            stretches.push(((at_ns, end_ns), known as f64 / lines.len() as f64));
            at_ns = end_ns;
        }
        stretches.push(((at_ns, u64::MAX), 1.0 - self.numbered_lines()));
        stretches
    }

    /// Makes a part of a group's launches first visits that were counted as revisits (or, where the part is
    /// negative, the other way round) between two instants. `part` gives it for a recurrence factor and an instant. Gives the
    /// number of these launches.
    fn exchange(
        &self,
        group: usize,
        target: LaunchTarget,
        from_ns: u64,
        until_ns: u64,
        part: impl Fn(f64, u64) -> f64,
        sums: &mut [Expected],
    ) -> f64 {
        let mut exchanged = 0.0;
        for segment in self.segments {
            if segment.end_ns <= from_ns || segment.start_ns >= until_ns {
                continue;
            }
            let cut = segment.cut();
            let from = segment.place_of(from_ns).clamp(0.0, cut);
            let until = segment.place_of(until_ns).clamp(0.0, cut);
            let shape = &segment.shape;
            let sum = &mut sums[usize::from(segment.phase)];
            let launches = |u| {
                let launches = shape.requests(self.densities, group, u) * shape.launches[group].at(u);
                launches * part(shape.recurrence.at(u), segment.instant_ns(u))
            };
            sum.integrate(segment.span_s(), from, until, |u| {
                (launches(u), self.densities.new_for_revisit(group, target, shape.special.at(u)))
            });
            exchanged += segment.span_s() * integrate(from, until.max(from), launches);
        }
        exchanged
    }

    /// Takes from each robot's private worlds the first request, if it would have been a revisit. Adds what
    /// is in them to the working set.
    fn private(&self, group: usize, sums: &mut [Expected], frozen_ns: u64, size: &mut WorkingSetSize) {
        const STEPS: u32 = 64;
        let density = &self.densities.groups[group];
        let Some(per_second) = density.per_second.filter(|_| density.private_share > 0.0) else { return };
        for (index, direct) in density.mix.direct.iter().enumerate() {
            // Robots that were alive at any time, and those among them that have requested nothing yet.
            let (mut ever, mut fresh) = (0.0, 0.0);
            for segment in self.segments {
                let (shape, cut) = (&segment.shape, segment.cut());
                for step in 0..STEPS {
                    let (from, until) = (
                        cut * f64::from(step) / f64::from(STEPS),
                        cut * f64::from(step + 1) / f64::from(STEPS),
                    );
                    let u = (from + until) / 2.0;
                    let alive = shape.alive[group].at(u);
                    if alive > ever {
                        fresh += alive - ever;
                        ever = alive;
                    }
                    if ever <= 0.0 {
                        continue;
                    }
                    let rate = per_second * shape.load.at(u) * shape.launches[group].at(u);
                    let requested =
                        rate * density.private_share * direct.share * (until - from) * segment.span_s();
                    let first = fresh * -libm::expm1(-requested * alive / ever);
                    fresh -= first;
                    let revisits = revisit_share(direct.recurrence, shape.recurrence.at(u));
                    let lost = first * revisits;
                    if segment.instant_ns(u) < frozen_ns {
                        let new = requested * alive * (1.0 - revisits) + lost;
                        size.add(new, self.densities.with_embedded(direct.content));
                    }
                    let target = LaunchTarget::Direct(index);
                    let each = self.densities.new_for_revisit(group, target, shape.special.at(u));
                    sums[usize::from(segment.phase)].add(lost, &each);
                }
            }
        }
    }
}

impl Segment {
    /// Adds what is expected of it.
    fn add(&self, densities: &Densities, sum: &mut Expected) {
        let (shape, cut) = (&self.shape, self.cut());
        for group in 0..densities.groups.len() {
            sum.integrate(self.span_s(), 0.0, cut, |u| shape.launches(densities, group, u));
            sum.launches += self.span_s() * integrate(0.0, cut, |u| shape.launches(densities, group, u).0);
        }
        for u in [0.0, shape.bend(densities).min(cut), cut] {
            let requests = |group| shape.requests(densities, group, u);
            let groups = 0..densities.groups.len();
            let rate: f64 = groups.clone().map(requests).sum();
            let opened: f64 = groups.map(|g| requests(g) / densities.groups[g].connection_use).sum();
            sum.peak_request_rate = sum.peak_request_rate.max(rate);
            sum.peak_new_connections = sum.peak_new_connections.max(opened);
        }
    }
}

impl WorkingSetSize {
    /// Adds things with the number of objects and bytes of each.
    fn add(&mut self, things: f64, each: ObjectTotals) {
        self.objects += things * each.objects;
        self.bytes += things * each.bytes;
    }
}

impl Expected {
    /// Adds so many launches with what each brings; the launches themselves are not counted.
    fn add(&mut self, launches: f64, each: &PerLaunch) {
        self.requests += launches * each.requests;
        self.basic += launches * each.basic;
        self.basic_bytes += launches * each.basic_bytes;
        self.fill_objects += launches * each.fill;
        self.fill_bytes += launches * each.fill_bytes;
        self.offered_hits += launches * each.hits;
        self.offered_hit_bytes += launches * each.hit_bytes;
        self.body_bytes += launches * each.body_bytes;
    }

    /// Adds launches per second, and what each brings, over a part of a segment.
    fn integrate(&mut self, span_s: f64, from: f64, until: f64, of: impl Fn(f64) -> (f64, PerLaunch)) {
        if until <= from {
            return;
        }
        let mut sum = Self::default();
        for (u, weight) in crate::curve::points(from, until) {
            let (launches, each) = of(u);
            sum.add(weight * launches, &each);
        }
        let fields = [
            (&mut self.requests, sum.requests),
            (&mut self.basic, sum.basic),
            (&mut self.basic_bytes, sum.basic_bytes),
            (&mut self.fill_objects, sum.fill_objects),
            (&mut self.fill_bytes, sum.fill_bytes),
            (&mut self.offered_hits, sum.offered_hits),
            (&mut self.offered_hit_bytes, sum.offered_hit_bytes),
            (&mut self.body_bytes, sum.body_bytes),
        ];
        fields.into_iter().for_each(|(field, sum)| *field += span_s * sum);
    }
}

impl SegmentShape {
    /// The place where the request rate is largest: it is a parabola, since load and population may both move.
    fn bend(&self, densities: &Densities) -> f64 {
        let rate = |u| (0..densities.groups.len()).map(|g| self.requests(densities, g, u)).sum::<f64>();
        let (begin, middle, end) = (rate(0.0), rate(0.5), rate(1.0));
        let curvature = begin - 2.0 * middle + end;
        if curvature < 0.0 { (0.5 - (end - begin) / (4.0 * curvature)).clamp(0.0, 1.0) } else { 0.0 }
    }
}
