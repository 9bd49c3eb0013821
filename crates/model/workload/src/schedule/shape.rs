//! What goes on in a stretch of a phase. Lines for load, population and the like, and the rates that follow from them.

use crate::curve::{Line, integrate};
use crate::density::{Densities, PerLaunch};

/// Quantity that a goal counts, as a rate per second.
#[derive(Clone, Copy)]
pub(super) enum GoalCount {
    Requests,
    FillObjects,
    FillBytes,
}

/// A stretch of a phase in which everything moves on straight lines.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Segment {
    pub(crate) phase: u16,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    /// End of the lines, from the start. Later than the end of the segment if it was cut short; positions in it stay the same.
    pub(crate) span_ns: u64,
    pub(crate) shape: SegmentShape,
}

impl Segment {
    /// Length of the lines in seconds.
    pub(crate) fn span_s(&self) -> f64 {
        self.span_ns as f64 / 1e9
    }

    /// The place of its end: 1 unless it was cut short.
    #[inline]
    pub(crate) fn cut(&self) -> f64 {
        let length = self.end_ns - self.start_ns;
        if length == self.span_ns { 1.0 } else { length as f64 / self.span_ns as f64 }
    }

    /// The place of an instant; outside of 0 to 1 when it is not within.
    #[inline]
    pub(crate) fn place_of(&self, instant_ns: u64) -> f64 {
        (instant_ns as f64 - self.start_ns as f64) / self.span_ns as f64
    }

    /// The instant of a place; always before the end, so that it belongs to the phase.
    #[inline]
    pub(crate) fn instant_ns(&self, u: f64) -> u64 {
        let length = self.end_ns - self.start_ns;
        self.start_ns + ((u * self.span_ns as f64) as u64).min(length - 1)
    }
}

/// The lines of a segment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SegmentShape {
    pub(crate) load: Line,
    pub(crate) recurrence: Line,
    pub(crate) special: Line,
    /// Living robots of each group.
    pub(crate) alive: Vec<Line>,
    /// Launches per request of each group; the rest are embedded objects.
    pub(crate) launches: Vec<Line>,
}

impl SegmentShape {
    pub(super) fn part(&self, from: f64, to: f64) -> Self {
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
    pub(super) fn requests(&self, densities: &Densities, group: usize, u: f64) -> f64 {
        densities.groups[group].per_second.unwrap_or(0.0) * self.load.at(u) * self.alive[group].at(u)
    }

    /// Launches per second of one group, and what each brings.
    pub(super) fn launches(&self, densities: &Densities, group: usize, u: f64) -> (f64, PerLaunch) {
        let launches = self.requests(densities, group, u) * self.launches[group].at(u);
        (launches, densities.per_launch(group, self.recurrence.at(u), self.special.at(u)))
    }

    /// A count per second at a place.
    pub(super) fn rate(&self, densities: &Densities, count: GoalCount, u: f64) -> f64 {
        let of_group = |group| {
            let requests = self.requests(densities, group, u);
            if requests == 0.0 {
                return 0.0;
            }
            match count {
                GoalCount::Requests => requests,
                GoalCount::FillObjects => {
                    let (launches, each) = self.launches(densities, group, u);
                    launches * each.fill
                }
                GoalCount::FillBytes => {
                    let (launches, each) = self.launches(densities, group, u);
                    launches * each.fill_bytes
                }
            }
        };
        (0..densities.groups.len()).map(of_group).sum()
    }

    /// A count from the beginning to a place, if the whole took a second.
    pub(super) fn sum(&self, densities: &Densities, count: GoalCount, until: f64) -> f64 {
        integrate(0.0, until, |u| self.rate(densities, count, u))
    }
}
