//! Curves as the document shows them: with bands, and with what follows from them and its error.

use crate::size::confidence::ErrorCause;
use crate::size::curve::{self, CurveMethod, Curves};
use crate::size::document::{
    Curve, Enough, Gain, HitFigures, LabelFigures, Point, PointMethod, Points, SampleInfo, SizeUnit,
};
use crate::size::simulate::HitCounts;

/// Distances below an infinite cache at which a size counts as enough, in points of document hit ratio.
const WITHIN_POINTS: [f64; 3] = [1.0, 2.0, 5.0];
/// Points that a policy must gain to be named.
const LEAST_GAIN_POINTS: f64 = 0.1;
const GB: f64 = (1u64 << 30) as f64;

/// Simulated curves, with what is needed to present them.
pub(crate) struct ResultView<'a> {
    pub(crate) curves: &'a Curves,
    pub(crate) unit: SizeUnit,
    pub(crate) sample: Option<SampleInfo>,
    pub(crate) names: &'a [String],
}

/// Ratio of two caches' counts, computed for the whole and for each part.
type Ratio<'a> = dyn Fn(&HitCounts, &HitCounts) -> Option<f64> + 'a;

impl ResultView<'_> {
    /// A difference of two caches' ratios in points, with its interval.
    fn difference(&self, more: &curve::Estimate, less: &curve::Estimate, scale: f64) -> Option<Points> {
        let of: &Ratio<'_> = &|more, less| Some((more.dhr()? - less.dhr()?) * 100.0 * scale);
        let points = of(&more.counts, &less.counts)?;
        let half = self.curves.half_width(points, |part| of(more.parts.get(part)?, less.parts.get(part)?));
        Some(Points { points, low: half.map(|half| points - half), high: half.map(|half| points + half) })
    }

    fn below(&self, point: &curve::CurvePoint) -> Option<Points> {
        let mut below = self.difference(&self.curves.infinite, &point.estimate, 1.0)?;
        // A cache that is never below an infinite one is so in no part either.
        below.low = below.low.map(|low| low.max(below.points.min(0.0)));
        Some(below)
    }

    /// The figures by label.
    pub(crate) fn shares(&self, estimate: &curve::Estimate) -> Vec<LabelFigures> {
        let share = |(name, counts): (&String, &HitCounts)| LabelFigures {
            name: name.clone(),
            figures: HitFigures::of(counts, self.unit),
        };
        self.names.iter().zip(&estimate.by).map(share).collect()
    }

    pub(crate) fn infinite_interval(&self) -> Option<(f64, f64)> {
        let infinite = &self.curves.infinite;
        let dhr = infinite.counts.dhr()?;
        let half = self.curves.half_width(dhr, |part| infinite.parts.get(part)?.dhr())?;
        Some(((dhr - half).max(0.0), (dhr + half).min(1.0)))
    }

    pub(crate) fn curve(&self, curve: &curve::PolicyCurve) -> Curve {
        let is_sample = self.curves.source == Some(ErrorCause::Sample);
        let band = |of: fn(&HitCounts) -> Option<f64>| {
            let halves = if is_sample { self.curves.band(curve, of) } else { None };
            move |at: usize, counts: &HitCounts| {
                let (ratio, half) = (of(counts)?, *halves.as_ref()?.get(at)?);
                Some(((ratio - half).max(0.0), (ratio + half).min(1.0)))
            }
        };
        let (documents, bytes) = (band(HitCounts::dhr), band(HitCounts::bhr));
        let next = curve.points.iter().skip(1).map(Some).chain([None]);
        let point = |(at, (point, next)): (usize, (&curve::CurvePoint, Option<&curve::CurvePoint>))| {
            let mut figures = HitFigures::of(&point.estimate.counts, self.unit);
            if self.sample.as_ref().is_some_and(|sample| point.size < sample.smallest_bytes_for_bhr) {
                figures.bhr = None;
            }
            let dhr = documents(at, &point.estimate.counts);
            let bhr = bytes(at, &point.estimate.counts).filter(|_| figures.bhr.is_some());
            let next_gb = next.filter(|_| self.unit == SizeUnit::Bytes).and_then(|next| {
                self.difference(&next.estimate, &point.estimate, GB / (next.size - point.size) as f64)
            });
            Point {
                size_bytes: point.size,
                figures,
                low: dhr.map(|(low, _)| low),
                high: dhr.map(|(_, high)| high),
                bhr_low: bhr.map(|(low, _)| low),
                bhr_high: bhr.map(|(_, high)| high),
                method: match point.method {
                    CurveMethod::OnePass => PointMethod::OnePass,
                    CurveMethod::Simulated => PointMethod::Simulated,
                },
                next_gb,
                next_gb_points: next_gb.map(|points| points.points),
                by: self.shares(&point.estimate),
            }
        };
        Curve {
            policy: curve.policy,
            enough: WITHIN_POINTS.map(|within| self.enough(curve, within)).to_vec(),
            points: curve.points.iter().zip(next).enumerate().map(point).collect(),
        }
    }

    fn enough(&self, curve: &curve::PolicyCurve, within_points: f64) -> Enough {
        let all: Vec<(u64, Points)> =
            curve.points.iter().filter_map(|point| Some((point.size, self.below(point)?))).collect();
        let curves = from_which(&all, |below| below.points <= within_points);
        let is_sure = |below: &Points| below.high.is_some_and(|high| high <= within_points);
        Enough {
            within_points,
            size_bytes: curves.map(|(size, _)| size),
            below: curves.map(|(_, below)| below),
            sure_size_bytes: from_which(&all, is_sure).map(|(size, _)| size),
        }
    }

    /// Largest gain of a realisable policy over the first one, unless chance explains it.
    pub(crate) fn best(&self) -> Option<Gain> {
        let first = self.curves.curves.first()?;
        let real = self.curves.curves.iter().skip(1).filter(|curve| curve.policy.online().is_some());
        let gains = real
            .flat_map(|curve| curve.points.iter().zip(&first.points).map(move |both| (curve.policy, both)));
        let gains = gains.filter_map(|(policy, (point, first))| {
            let gained = self.difference(&point.estimate, &first.estimate, 1.0)?;
            Some(Gain { policy, size_bytes: point.size, gained })
        });
        let best = gains.max_by(|a, b| a.gained.points.total_cmp(&b.gained.points))?;
        let is_chance = best.gained.low.is_some_and(|low| low <= 0.0);
        (best.gained.points >= LEAST_GAIN_POINTS && !is_chance).then_some(best)
    }
}

/// The first of these sizes that is near enough, and so are all larger ones: some policies hit less with more room, where objects
/// differ in size.
fn from_which(all: &[(u64, Points)], is_near: impl Fn(&Points) -> bool) -> Option<(u64, Points)> {
    let first = all.iter().rposition(|(_, below)| !is_near(below)).map_or(0, |last| last + 1);
    all.get(first).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_size_is_enough_if_a_larger_one_is_not() {
        let below = |points| Points { points, low: None, high: None };
        let all = [(1, below(9.0)), (2, below(0.0)), (3, below(14.0)), (4, below(1.0)), (5, below(0.0))];
        let near = |within: f64| from_which(&all, |below| below.points <= within).map(|(size, _)| size);
        assert_eq!(near(0.0), Some(5));
        assert_eq!(near(1.0), Some(4));
        assert_eq!(near(14.0), Some(1));
        assert_eq!(near(-1.0), None);
    }
}
