//! A phase whose length or population was changed while it went on.
//!
//! Everything before a change must stay as it was, to the last bit: a stream that is half-way through a phase
//! goes on as if it had always known. So the lines of segments are never drawn anew; segments are cut short,
//! and others put behind them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ScheduleSolver;
use super::plan::PhasePlan;
use super::shape::{GoalCount, Segment, SegmentShape};
use super::span::Freeze;
use crate::curve::Line;
use crate::model::WorkingSet;
use crate::universe::living;

/// Adaptation of a phase with a thermostat or a script; for other phases, only the length counts. It is kept with a run, and makes another
/// run request the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Adaptation {
    /// Index of the phase.
    pub phase: u16,
    /// Length in the schedule; none: as planned.
    pub length: Option<Duration>,
    /// Shares of robots alive, each from so long after the phase began (schedule time) until the next; in order.
    pub population: Vec<(Duration, f64)>,
}

/// Length of the segments after a ramp, so that a position in one of them does not depend on the end.
const TAIL_NS: u64 = 24 * 3600 * 1_000_000_000;

/// A stretch of a phase, in nanoseconds since the phase began.
struct PhasePiece {
    begin_ns: u64,
    end_ns: u64,
    shape: SegmentShape,
}

impl ScheduleSolver<'_> {
    /// Adds the segments of an adaptive phase, and notes a freeze within it.
    pub(super) fn adapt(
        &mut self,
        plan: &PhasePlan<'_>,
        index: u16,
        start_ns: u64,
        end_ns: u64,
        population: &[(Duration, f64)],
    ) {
        let length_ns = end_ns - start_ns;
        let changes: Vec<(u64, f64)> =
            population.iter().map(|(at, share)| (nanoseconds(*at), *share)).collect();
        let first = self.segments.len();
        for piece in pieces(plan, length_ns) {
            cut(plan, piece, &changes, |begin_ns, until_ns, piece_end_ns, shape| {
                let until_ns = until_ns.min(length_ns);
                if until_ns > begin_ns {
                    self.segments.push(Segment {
                        phase: index,
                        start_ns: start_ns + begin_ns,
                        end_ns: start_ns + until_ns,
                        span_ns: piece_end_ns - begin_ns,
                        shape,
                    });
                }
            });
        }
        self.count_fill(first);
    }

    /// Counts the fill of the segments from `first` on, and where it freezes the working set.
    fn count_fill(&mut self, first: usize) {
        let densities = self.densities;
        for segment in &self.segments[first..] {
            let until = |u: f64| segment.span_s() * segment.shape.sum(densities, GoalCount::FillObjects, u);
            let all = until(segment.cut());
            if let (WorkingSet::FrozenAtFill(cap), Freeze::Never) = (self.working_set, self.freeze) {
                let left = cap as f64 - self.fill_objects;
                if left <= all {
                    let (mut low, mut high) = (0.0, segment.cut());
                    for _ in 0..80 {
                        let middle = (low + high) / 2.0;
                        if until(middle) >= left { high = middle } else { low = middle }
                    }
                    self.freeze = Freeze::At(Duration::from_nanos(segment.instant_ns(high)));
                }
            }
            self.fill_objects += all;
        }
    }
}

/// The ramp's pieces as they were planned, and as many of what follows as it takes.
fn pieces(plan: &PhasePlan<'_>, length_ns: u64) -> Vec<PhasePiece> {
    let at = |part: f64| libm::round(plan.ramp_s * part * 1e9) as u64;
    let ramp = plan.pieces.iter().map(|(from, to, shape)| PhasePiece {
        begin_ns: at(*from),
        end_ns: at(*to),
        shape: shape.clone(),
    });
    let mut pieces: Vec<_> = ramp.filter(|piece| piece.end_ns > piece.begin_ns).collect();
    let mut begin_ns = at(1.0);
    while begin_ns < length_ns {
        let end_ns = begin_ns + TAIL_NS;
        pieces.push(PhasePiece { begin_ns, end_ns, shape: plan.tail.clone() });
        begin_ns = end_ns;
    }
    pieces
}

/// Cuts a piece where the population changes, and hands on each part: where it begins and ends, and where its
/// lines end.
fn cut(
    plan: &PhasePlan<'_>,
    piece: PhasePiece,
    changes: &[(u64, f64)],
    mut part: impl FnMut(u64, u64, u64, SegmentShape),
) {
    let PhasePiece { mut begin_ns, end_ns, mut shape } = piece;
    let before = changes.iter().rev().find(|change| change.0 <= begin_ns);
    if let Some((_, share)) = before {
        set_population(plan, &mut shape, *share);
    }
    let from_ns = begin_ns;
    for (at_ns, share) in changes.iter().filter(|change| change.0 > from_ns && change.0 < end_ns) {
        // Two changes at once: the later one counts.
        if *at_ns > begin_ns {
            part(begin_ns, *at_ns, end_ns, shape.clone());
        }
        let place = (at_ns - begin_ns) as f64 / (end_ns - begin_ns) as f64;
        shape = shape.part(place, 1.0);
        set_population(plan, &mut shape, *share);
        begin_ns = *at_ns;
    }
    part(begin_ns, end_ns, end_ns, shape);
}

fn set_population(plan: &PhasePlan<'_>, shape: &mut SegmentShape, share: f64) {
    for (alive, group) in shape.alive.iter_mut().zip(&plan.densities.groups) {
        let robots = f64::from(living(group.count, share));
        *alive = Line { begin: robots, end: robots };
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
