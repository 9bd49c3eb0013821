//! When does each phase end? Solves goals, ramps and the freeze of the working set, phase after phase.

use std::time::Duration;

use crate::curve::{Line, integrate};
use crate::density::{Densities, PerLaunch};
use crate::model::{Phase, Ramp, WorkingSet, Workload};
use crate::timeline::{Expected, Freeze, PhaseSpan, ScheduleError};
use crate::universe::living;

/// A stretch of a phase in which everything moves on straight lines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub(crate) phase: u16,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) shape: Shape,
}

/// The lines of a segment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
    pub(crate) load: Line,
    pub(crate) recurrence: Line,
    pub(crate) special: Line,
    /// Living robots of each group.
    pub(crate) alive: Vec<Line>,
    /// Launches per request of each group; the rest are embedded objects.
    pub(crate) launches: Vec<Line>,
}

/// Pieces into which a ramp of request types is cut where pages make the launch rate bend.
const SPECIAL_PIECES: u32 = 32;
const LONGEST_YEARS: f64 = 100.0;
const YEAR_S: f64 = 365.25 * 86_400.0;

/// What a goal counts, as a rate per second.
#[derive(Clone, Copy)]
enum Count {
    Requests,
    FillObjects,
    FillBytes,
}

/// The solved schedule.
pub(crate) struct Solved {
    pub(crate) spans: Vec<PhaseSpan>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) freeze: Freeze,
}

struct Solver<'a> {
    densities: &'a Densities,
    working_set: WorkingSet,
    /// Some robot is best effort; some robot has a rate.
    closed: bool,
    scheduled: bool,
    /// End of the last phase; none once one has been open.
    now_ns: Option<u64>,
    fill_objects: f64,
    freeze: Freeze,
    segments: Vec<Segment>,
}

/// A phase whose length is being sought.
struct Plan<'a> {
    phase: &'a Phase,
    densities: &'a Densities,
    /// Pieces with the places where they begin and end; the whole ramp goes from 0 to 1.
    pieces: Vec<(f64, f64, Shape)>,
    /// After the ramp.
    tail: Shape,
    /// Length of the ramp in seconds.
    ramp_s: f64,
}

/// Solves all phases of a workload that has been validated.
pub(crate) fn solve(workload: &Workload, densities: &Densities) -> Result<Solved, ScheduleError> {
    if workload.schedule.phases.is_empty() {
        return Err(ScheduleError::Empty);
    }
    let living_groups = || densities.groups.iter().filter(|g| g.count > 0);
    let mut solver = Solver {
        densities,
        working_set: workload.schedule.working_set,
        closed: living_groups().any(|g| g.per_second.is_none()),
        scheduled: living_groups().any(|g| g.per_second.is_some()),
        now_ns: Some(0),
        fill_objects: 0.0,
        freeze: Freeze::Never,
        segments: Vec::new(),
    };
    solver.freeze = solver.known_freeze()?;
    let phases = workload.schedule.phases.iter().enumerate();
    let spans = phases.map(|(index, phase)| solver.phase(index as u16, phase)).collect::<Result<_, _>>()?;
    Ok(Solved { spans, segments: solver.segments, freeze: solver.freeze })
}

impl<'a> Solver<'a> {
    /// The freeze as far as it is known before any phase.
    fn known_freeze(&self) -> Result<Freeze, ScheduleError> {
        Ok(match self.working_set {
            WorkingSet::FrozenAfter(after) => Freeze::At(after),
            WorkingSet::FrozenAtFill(_) if self.closed && self.scheduled => {
                return Err(ScheduleError::MixedFreeze);
            }
            WorkingSet::FrozenAtFill(fill_objects) if self.closed => Freeze::Live { fill_objects },
            WorkingSet::FrozenAtFill(_) | WorkingSet::Grows => Freeze::Never,
        })
    }

    fn phase(&mut self, index: u16, phase: &Phase) -> Result<PhaseSpan, ScheduleError> {
        check_factors(phase)?;
        let start_ns = self.now_ns;
        let goal = &phase.goal;
        let counts = positive(goal.transactions).is_some() || positive(goal.fill_bytes).is_some();
        let duration = goal.duration.filter(|d| !d.is_zero());
        if !counts && duration.is_none() {
            return Err(never(
                phase,
                "it has no positive goal; give it goal.duration, goal.xactions or goal.fill_size",
            ));
        }
        if phase.wait_for_freeze && matches!(self.working_set, WorkingSet::Grows) {
            return Err(never(
                phase,
                "it waits for a working set that is never frozen; call working_set_length()",
            ));
        }
        let waits_live = phase.wait_for_freeze && matches!(self.freeze, Freeze::Live { .. });
        let open = self.closed && (counts || waits_live);
        if open && self.scheduled {
            return Err(ScheduleError::Mixed { phase: phase.name.clone() });
        }
        self.now_ns = match start_ns {
            Some(start_ns) if !open => Some(self.close(index, phase, start_ns, duration)?),
            _ => None,
        };
        let since_start = |ns: Option<u64>| ns.map(Duration::from_nanos);
        let expected = (!self.closed).then(|| self.expected(index));
        Ok(PhaseSpan {
            name: phase.name.clone(),
            start: since_start(start_ns),
            end: since_start(self.now_ns),
            expected,
        })
    }

    /// Finds the end of a phase whose start is known, and adds its segments.
    fn close(
        &mut self,
        index: u16,
        phase: &Phase,
        start_ns: u64,
        duration: Option<Duration>,
    ) -> Result<u64, ScheduleError> {
        let mut plan = Plan::new(phase, self.densities);
        let goals = [
            (Count::Requests, positive(phase.goal.transactions)),
            (Count::FillBytes, positive(phase.goal.fill_bytes)),
        ];
        let mut end_s = plan.stretch(duration, &goals)?;
        for (count, goal) in goals {
            if let Some(reached) = goal.and_then(|goal| plan.reach(count, goal)) {
                end_s = end_s.min(reached);
            }
        }
        end_s = self.wait_for_freeze(&plan, start_ns, end_s)?;
        let years = (start_ns as f64 / 1e9 + end_s) / YEAR_S;
        if years.is_nan() || years > LONGEST_YEARS {
            return Err(ScheduleError::TooLong { phase: phase.name.clone(), years });
        }
        // A duration stays what it is, to the nanosecond.
        let exact = duration.filter(|d| end_s == d.as_secs_f64()).map(|d| d.as_nanos() as u64);
        let end_ns = start_ns + exact.unwrap_or_else(|| libm::round(end_s * 1e9) as u64);
        self.fill_objects += plan.sum_until(Count::FillObjects, end_s);
        plan.emit(index, start_ns, end_ns, end_s, &mut self.segments);
        Ok(end_ns)
    }

    /// Notes a freeze within the phase, and puts off its end if it waits for one.
    fn wait_for_freeze(&mut self, plan: &Plan, start_ns: u64, end_s: f64) -> Result<f64, ScheduleError> {
        let start_s = start_ns as f64 / 1e9;
        if let (WorkingSet::FrozenAtFill(cap), Freeze::Never) = (self.working_set, self.freeze) {
            let left = cap as f64 - self.fill_objects;
            match plan.reach(Count::FillObjects, left) {
                Some(at_s) if at_s <= end_s || plan.phase.wait_for_freeze => {
                    self.freeze =
                        Freeze::At(Duration::from_nanos(libm::round((start_s + at_s) * 1e9) as u64));
                    return Ok(if plan.phase.wait_for_freeze { end_s.max(at_s) } else { end_s });
                }
                None if plan.phase.wait_for_freeze => {
                    let why = "it waits for the working set to be frozen at a fill that is never reached";
                    return Err(never(plan.phase, why));
                }
                _ => {}
            }
        } else if let (Freeze::At(at), true) = (self.freeze, plan.phase.wait_for_freeze) {
            return Ok(end_s.max(at.as_secs_f64() - start_s));
        }
        Ok(end_s)
    }

    fn expected(&self, phase: u16) -> Expected {
        let mut sum = Expected::default();
        for segment in self.segments.iter().filter(|s| s.phase == phase) {
            let length_s = (segment.end_ns - segment.start_ns) as f64 / 1e9;
            segment.shape.add_expected(self.densities, length_s, &mut sum);
        }
        sum
    }
}

fn positive(goal: Option<u64>) -> Option<f64> {
    goal.filter(|goal| *goal > 0).map(|goal| goal as f64)
}

fn never(phase: &Phase, why: impl Into<String>) -> ScheduleError {
    ScheduleError::NeverEnds { phase: phase.name.clone(), why: why.into() }
}

fn check_factors(phase: &Phase) -> Result<(), ScheduleError> {
    let fields: [(&'static str, Ramp, f64); 4] = [
        ("load_factor", phase.load, f64::MAX),
        ("recur_factor", phase.recurrence, f64::MAX),
        ("populus_factor", phase.population, 1.0),
        ("special_msg_factor", phase.special, 1.0),
    ];
    for (field, ramp, most) in fields {
        for seen in [ramp.begin, ramp.end] {
            if !(0.0..=most).contains(&seen) {
                return Err(ScheduleError::Factor { phase: phase.name.clone(), field, seen });
            }
        }
    }
    Ok(())
}

impl<'a> Plan<'a> {
    fn new(phase: &'a Phase, densities: &'a Densities) -> Self {
        let whole = |ramp: Ramp| Line { begin: ramp.begin, end: ramp.end };
        let alive = |count: u32| whole(phase.population).map(|p| f64::from(living(count, p)));
        let shape = |from: f64, to: f64| {
            let special = whole(phase.special).part(from, to);
            let launches = |group| special.map(|s| 1.0 / (1.0 + densities.embedded(group, s)));
            Shape {
                load: whole(phase.load).part(from, to),
                recurrence: whole(phase.recurrence).part(from, to),
                special,
                alive: densities.groups.iter().map(|g| alive(g.count).part(from, to)).collect(),
                launches: (0..densities.groups.len()).map(launches).collect(),
            }
        };
        let cuts = cuts(phase, densities);
        let pieces = cuts.windows(2).map(|pair| (pair[0], pair[1], shape(pair[0], pair[1]))).collect();
        Self { phase, densities, pieces, tail: shape(1.0, 1.0), ramp_s: 0.0 }
    }

    /// Sets the length of the ramp: the duration, else as long as the first count takes. Returns where the
    /// phase ends by that goal.
    fn stretch(
        &mut self,
        duration: Option<Duration>,
        goals: &[(Count, Option<f64>)],
    ) -> Result<f64, ScheduleError> {
        let first = goals.iter().find_map(|(count, goal)| goal.map(|goal| (*count, goal)));
        self.ramp_s = match (duration, first) {
            (Some(duration), _) => duration.as_secs_f64(),
            (None, Some((count, goal))) => {
                self.ramp_s = 1.0;
                let per_second = self.sum_until(count, 1.0);
                if per_second <= 0.0 {
                    return Err(never(self.phase, self.why_never(count)));
                }
                goal / per_second
            }
            (None, None) => return Err(never(self.phase, "it has no positive goal")),
        };
        Ok(self.ramp_s)
    }

    fn why_never(&self, count: Count) -> &'static str {
        match count {
            Count::Requests => "its goal counts transactions, and its load is zero throughout",
            Count::FillObjects | Count::FillBytes => {
                "its goal counts fill (basic first visits of cachable objects), and its load and recurrence allow none"
            }
        }
    }

    /// Seconds into the phase where a count is reached; none when it is not, even after the ramp.
    fn reach(&self, count: Count, goal: f64) -> Option<f64> {
        let mut left = goal;
        if left <= 0.0 {
            return Some(0.0);
        }
        for (from, to, shape) in &self.pieces {
            let length_s = self.ramp_s * (to - from);
            let all = length_s * shape.sum(self.densities, count, 1.0);
            if all >= left {
                let (mut low, mut high) = (0.0, 1.0);
                for _ in 0..80 {
                    let middle = (low + high) / 2.0;
                    let enough = length_s * shape.sum(self.densities, count, middle) >= left;
                    if enough { high = middle } else { low = middle }
                }
                return Some(self.ramp_s * from + length_s * high);
            }
            left -= all;
        }
        let per_second = self.tail.rate(self.densities, count, 0.0);
        (per_second > 0.0).then(|| self.ramp_s + left / per_second)
    }

    /// The count from the start of the phase until so many seconds into it.
    fn sum_until(&self, count: Count, end_s: f64) -> f64 {
        let mut sum = 0.0;
        for (from, to, shape) in &self.pieces {
            let length_s = self.ramp_s * (to - from);
            let part = ((end_s - self.ramp_s * from) / length_s).clamp(0.0, 1.0);
            sum += length_s * shape.sum(self.densities, count, part);
        }
        let after_s = (end_s - self.ramp_s).max(0.0);
        sum + after_s * self.tail.rate(self.densities, count, 0.0)
    }

    /// Adds the segments until the end of the phase.
    fn emit(&self, phase: u16, start_ns: u64, end_ns: u64, end_s: f64, segments: &mut Vec<Segment>) {
        let mut begin_ns = start_ns;
        for (from, to, shape) in &self.pieces {
            let (from_s, to_s) = (self.ramp_s * from, self.ramp_s * to);
            let stop_s = to_s.min(end_s);
            let stop_ns = (start_ns + libm::round(stop_s * 1e9) as u64).min(end_ns);
            let stop_ns = if stop_s == end_s { end_ns } else { stop_ns };
            if stop_ns > begin_ns {
                let shape = shape.part(0.0, ((stop_s - from_s) / (to_s - from_s)).clamp(0.0, 1.0));
                segments.push(Segment { phase, start_ns: begin_ns, end_ns: stop_ns, shape });
                begin_ns = stop_ns;
            }
        }
        if end_ns > begin_ns {
            segments.push(Segment { phase, start_ns: begin_ns, end_ns, shape: self.tail.clone() });
        }
    }
}

/// Where the ramp of a phase is cut so that everything is straight in between: where some recurrence becomes
/// certain, and, for pages, along a ramp of request types.
fn cuts(phase: &Phase, densities: &Densities) -> Vec<f64> {
    let mut cuts = vec![0.0, 1.0];
    let groups = 0..densities.groups.len();
    let rise = phase.recurrence.end - phase.recurrence.begin;
    for recurrence in groups.clone().flat_map(|g| densities.recurrences(g)).filter(|r| *r > 0.0) {
        let u = (1.0 / recurrence - phase.recurrence.begin) / rise;
        if u > 0.0 && u < 1.0 {
            cuts.push(u);
        }
    }
    if phase.special.begin != phase.special.end && groups.clone().any(|g| densities.has_pages(g)) {
        cuts.extend((1..SPECIAL_PIECES).map(|piece| f64::from(piece) / f64::from(SPECIAL_PIECES)));
    }
    cuts.sort_by(f64::total_cmp);
    cuts.dedup_by(|a, b| *a - *b < 1e-9);
    if let Some(last) = cuts.last_mut() {
        *last = 1.0;
    }
    cuts
}

impl Shape {
    fn part(&self, from: f64, to: f64) -> Self {
        let part = |line: &Line| line.part(from, to);
        Self {
            load: part(&self.load),
            recurrence: part(&self.recurrence),
            special: part(&self.special),
            alive: self.alive.iter().map(part).collect(),
            launches: self.launches.iter().map(part).collect(),
        }
    }

    /// Requests per second of one group at a place.
    fn requests(&self, densities: &Densities, group: usize, u: f64) -> f64 {
        densities.groups[group].per_second.unwrap_or(0.0) * self.load.at(u) * self.alive[group].at(u)
    }

    /// Launches per second of one group, and what each brings.
    fn launches(&self, densities: &Densities, group: usize, u: f64) -> (f64, PerLaunch) {
        let launches = self.requests(densities, group, u) * self.launches[group].at(u);
        (launches, densities.per_launch(group, self.recurrence.at(u), self.special.at(u)))
    }

    /// A count per second at a place.
    fn rate(&self, densities: &Densities, count: Count, u: f64) -> f64 {
        let of_group = |group| {
            let requests = self.requests(densities, group, u);
            if requests == 0.0 {
                return 0.0;
            }
            match count {
                Count::Requests => requests,
                Count::FillObjects => {
                    let (launches, each) = self.launches(densities, group, u);
                    launches * each.fill
                }
                Count::FillBytes => {
                    let (launches, each) = self.launches(densities, group, u);
                    launches * each.fill_bytes
                }
            }
        };
        (0..densities.groups.len()).map(of_group).sum()
    }

    /// A count from the beginning to a place, if the whole took a second.
    fn sum(&self, densities: &Densities, count: Count, until: f64) -> f64 {
        integrate(0.0, until, |u| self.rate(densities, count, u))
    }

    fn add_expected(&self, densities: &Densities, length_s: f64, sum: &mut Expected) {
        for group in 0..densities.groups.len() {
            let add = |slot: &mut f64, of: &dyn Fn(f64, &PerLaunch) -> f64| {
                *slot += length_s
                    * integrate(0.0, 1.0, |u| {
                        let (launches, each) = self.launches(densities, group, u);
                        of(launches, &each)
                    });
            };
            add(&mut sum.launches, &|launches, _| launches);
            add(&mut sum.requests, &|launches, each| launches * each.requests);
            add(&mut sum.basic, &|launches, each| launches * each.basic);
            add(&mut sum.basic_bytes, &|launches, each| launches * each.basic_bytes);
            add(&mut sum.fill_objects, &|launches, each| launches * each.fill);
            add(&mut sum.fill_bytes, &|launches, each| launches * each.fill_bytes);
            add(&mut sum.offered_hits, &|launches, each| launches * each.hits);
            add(&mut sum.offered_hit_bytes, &|launches, each| launches * each.hit_bytes);
            add(&mut sum.body_bytes, &|launches, each| launches * each.body_bytes);
        }
        for u in [0.0, self.bend(densities), 1.0] {
            let requests = |group| self.requests(densities, group, u);
            let groups = 0..densities.groups.len();
            let rate: f64 = groups.clone().map(requests).sum();
            let opened: f64 = groups.map(|g| requests(g) / densities.groups[g].connection_use).sum();
            sum.peak_request_rate = sum.peak_request_rate.max(rate);
            sum.peak_new_connections = sum.peak_new_connections.max(opened);
        }
    }

    /// The place where the request rate is largest: it is a parabola, since load and population may both move.
    fn bend(&self, densities: &Densities) -> f64 {
        let rate = |u| (0..densities.groups.len()).map(|g| self.requests(densities, g, u)).sum::<f64>();
        let (begin, middle, end) = (rate(0.0), rate(0.5), rate(1.0));
        let curvature = begin - 2.0 * middle + end;
        if curvature < 0.0 { (0.5 - (end - begin) / (4.0 * curvature)).clamp(0.0, 1.0) } else { 0.0 }
    }
}
