//! How long a phase takes until it reaches one of its goals.

use std::time::Duration;

use super::error::ScheduleError;
use super::shape::{GoalCount, Segment, SegmentShape};
use crate::curve::Line;
use crate::density::Densities;
use crate::model::{Phase, Ramp};
use crate::universe::living;

/// Pieces into which a ramp of request types is cut where pages make the launch rate bend.
const SPECIAL_PIECES: u32 = 32;

/// A phase whose length is being sought.
pub(super) struct PhasePlan<'a> {
    pub(super) phase: &'a Phase,
    pub(super) densities: &'a Densities,
    /// Pieces with the places where they begin and end; the whole ramp goes from 0 to 1.
    pub(super) pieces: Vec<(f64, f64, SegmentShape)>,
    pub(super) tail: SegmentShape,
    /// Length of the ramp in seconds.
    pub(super) ramp_s: f64,
}

impl<'a> PhasePlan<'a> {
    pub(super) fn new(phase: &'a Phase, densities: &'a Densities) -> Self {
        let whole = |ramp: Ramp| Line { begin: ramp.begin, end: ramp.end };
        let alive = |count: u32| whole(phase.population).map(|p| f64::from(living(count, p)));
        let shape = |from: f64, to: f64| {
            let special = whole(phase.special).part(from, to);
            let launches = |group| special.map(|s| 1.0 / (1.0 + densities.embedded(group, s)));
            SegmentShape {
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
    pub(super) fn stretch(
        &mut self,
        duration: Option<Duration>,
        goals: &[(GoalCount, Option<f64>)],
    ) -> Result<f64, ScheduleError> {
        let first = goals.iter().find_map(|(count, goal)| goal.map(|goal| (*count, goal)));
        self.ramp_s = match (duration, first) {
            (Some(duration), _) => duration.as_secs_f64(),
            (None, Some((count, goal))) => {
                self.ramp_s = 1.0;
                let per_second = self.sum_until(count, 1.0);
                if per_second <= 0.0 {
                    return Err(ScheduleError::never(self.phase, self.why_never(count)));
                }
                goal / per_second
            }
            (None, None) => return Err(ScheduleError::never(self.phase, "it has no positive goal")),
        };
        Ok(self.ramp_s)
    }

    fn why_never(&self, count: GoalCount) -> &'static str {
        match count {
            GoalCount::Requests => "its goal counts transactions, and its load is zero throughout",
            GoalCount::FillObjects | GoalCount::FillBytes => {
                "its goal counts fill (basic first visits of cachable objects), and its load and recurrence allow none"
            }
        }
    }

    /// Seconds into the phase where a count is reached; none when it is not, even after the ramp.
    pub(super) fn reach(&self, count: GoalCount, goal: f64) -> Option<f64> {
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
    pub(super) fn sum_until(&self, count: GoalCount, end_s: f64) -> f64 {
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
    pub(super) fn emit(
        &self,
        phase: u16,
        start_ns: u64,
        end_ns: u64,
        end_s: f64,
        segments: &mut Vec<Segment>,
    ) {
        let mut begin_ns = start_ns;
        for (from, to, shape) in &self.pieces {
            let (from_s, to_s) = (self.ramp_s * from, self.ramp_s * to);
            let stop_s = to_s.min(end_s);
            let stop_ns = (start_ns + libm::round(stop_s * 1e9) as u64).min(end_ns);
            let stop_ns = if stop_s == end_s { end_ns } else { stop_ns };
            if stop_ns > begin_ns {
                let shape = shape.part(0.0, ((stop_s - from_s) / (to_s - from_s)).clamp(0.0, 1.0));
                let span_ns = stop_ns - begin_ns;
                segments.push(Segment { phase, start_ns: begin_ns, end_ns: stop_ns, span_ns, shape });
                begin_ns = stop_ns;
            }
        }
        if end_ns > begin_ns {
            let span_ns = end_ns - begin_ns;
            segments.push(Segment { phase, start_ns: begin_ns, end_ns, span_ns, shape: self.tail.clone() });
        }
    }
}

/// Positions at which the ramp of a phase is cut so that everything is straight in between: where some recurrence becomes certain, and, for
/// pages, along a ramp of request types.
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
