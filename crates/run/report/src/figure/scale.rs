//! Scale of an axis: positions of values, and ticks with their labels.

use assay_base::settings::show::grouped;

/// Projection of values onto an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScaleKind {
    Linear,
    Log,
    /// Shares of requests: each mark is ten times rarer than the one before.
    Tail,
}

/// Larger numbers are no measurements.
const LARGEST: f64 = 1e18;

/// An axis with its marks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AxisScale {
    kind: ScaleKind,
    low: f64,
    high: f64,
    /// Values that are written, and how.
    pub ticks: Vec<(f64, String)>,
}

/// A value that can be drawn.
pub(super) fn drawable(value: f64) -> Option<f64> {
    (value.is_finite() && value.abs() <= LARGEST).then_some(value)
}

impl AxisScale {
    /// An axis for some values: from nought (linear), over whole decades (log). `exact` ends with the values.
    pub(super) fn new(kind: ScaleKind, values: impl Iterator<Item = f64>, marks: usize, exact: bool) -> Self {
        let values = values.filter_map(drawable).filter(|value| kind != ScaleKind::Log || *value > 0.0);
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = if kind == ScaleKind::Log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        match kind {
            ScaleKind::Linear => Self::linear(low.min(0.0), high.max(0.0), marks, exact),
            ScaleKind::Log => Self::logarithmic(low, high),
            ScaleKind::Tail => Self::tail(high),
        }
    }

    fn linear(low: f64, high: f64, marks: usize, exact: bool) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        let step = nice_step((high - low) / marks.max(1) as f64);
        let first = (low / step).floor() as i64;
        let last =
            if exact { (high / step + 1e-9).floor() as i64 } else { (high / step - 1e-9).ceil() as i64 };
        let ticks =
            (first..=last).map(|n| n as f64 * step).map(|value| (value, label(value, step))).collect();
        let (from, to) = (first as f64 * step, last as f64 * step);
        Self {
            kind: ScaleKind::Linear,
            low: from,
            high: if exact { high } else { to.max(from + step) },
            ticks,
        }
    }

    fn logarithmic(low: f64, high: f64) -> Self {
        let first = (low.log10() + 1e-9).floor() as i32;
        let last = ((high.log10() - 1e-9).ceil() as i32).max(first + 1);
        let every = ((last - first) / 7 + 1) as usize;
        let mut ticks: Vec<(f64, String)> =
            (first..=last).step_by(every).map(|n| 10f64.powi(n)).map(|value| (value, short(value))).collect();
        if last - first <= 2 {
            let between = (first..last).flat_map(|n| [2.0, 5.0].map(|part| part * 10f64.powi(n)));
            ticks.extend(between.map(|value| (value, short(value))));
            ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        Self { kind: ScaleKind::Log, low: f64::from(first), high: f64::from(last), ticks }
    }

    fn tail(highest_share: f64) -> Self {
        let most = rarity(highest_share).ceil().clamp(1.0, 6.0);
        let mut ticks = vec![(0.0, "0".to_owned()), (0.5, "50".to_owned())];
        for nines in 1..=most as usize {
            let text = match nines {
                1 => "90".to_owned(),
                2 => "99".to_owned(),
                more => format!("99.{}", "9".repeat(more - 2)),
            };
            ticks.push((1.0 - 0.1f64.powi(nines as i32), text));
        }
        Self { kind: ScaleKind::Tail, low: 0.0, high: most, ticks }
    }

    /// Position of a value: 0 at the low end, 1 at the high one; none: it cannot be drawn.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        let value = drawable(value)?;
        let at = match self.kind {
            ScaleKind::Linear => value,
            ScaleKind::Log if value > 0.0 => value.log10(),
            ScaleKind::Log => return None,
            ScaleKind::Tail => rarity(value),
        };
        let share = (at - self.low) / (self.high - self.low);
        share.is_finite().then_some(share.clamp(0.0, 1.0))
    }
}

/// Rarity of a share in powers of ten: 0.99 is 2.
fn rarity(share: f64) -> f64 {
    -(1.0 - share).max(1e-6).log10()
}

/// 1, 2, 2.5 or 5 times a power of ten, and no less than `least`.
fn nice_step(least: f64) -> f64 {
    let power = 10f64.powf(least.max(1e-12).log10().floor());
    // A quarter of ten would want another digit.
    let factors = if power >= 10.0 { [1.0, 2.0, 2.5, 5.0] } else { [1.0, 2.0, 5.0, 5.0] };
    let factor = factors.into_iter().find(|factor| factor * power >= least * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// A mark with as many digits as its step has.
fn label(value: f64, step: f64) -> String {
    let value = if value.abs() < step / 1e6 { 0.0 } else { value };
    for (unit, suffix) in [(1e9, "G"), (1e6, "M")] {
        if step >= unit / 10.0 {
            return if value == 0.0 {
                "0".into()
            } else {
                format!("{}{suffix}", plain(value / unit, step / unit))
            };
        }
    }
    plain(value, step)
}

fn plain(value: f64, step: f64) -> String {
    let digits = (-(step.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.digits$}");
    grouped(&text.replace('-', "−"))
}

/// A mark of a logarithmic axis.
fn short(value: f64) -> String {
    if (1e-3..1e6).contains(&value) { label(value, value.min(1.0)) } else { format!("{value:e}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(scale: &AxisScale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, text)| text.as_str()).collect()
    }

    #[test]
    fn marks_are_round_numbers_and_the_axis_holds_every_value() {
        let scale = AxisScale::new(ScaleKind::Linear, [0.0, 1734.0].into_iter(), 5, false);
        assert_eq!(words(&scale), ["0", "500", "1,000", "1,500", "2,000"]);
        assert_eq!(scale.position(2000.0), Some(1.0));
        let scale = AxisScale::new(ScaleKind::Linear, [-0.3, 0.4].into_iter(), 4, false);
        assert_eq!(words(&scale), ["−0.4", "−0.2", "0.0", "0.2", "0.4"]);
        let scale = AxisScale::new(ScaleKind::Linear, [9.4e6].into_iter(), 5, false);
        assert_eq!(words(&scale), ["0", "2M", "4M", "6M", "8M", "10M"]);
        let scale = AxisScale::new(ScaleKind::Linear, [3600.0 / 60.0].into_iter(), 6, true);
        assert_eq!(scale.position(60.0), Some(1.0));
    }

    #[test]
    fn a_logarithmic_axis_has_whole_decades_and_no_place_for_nought() {
        let scale = AxisScale::new(ScaleKind::Log, [0.2, 0.0, 4500.0].into_iter(), 5, false);
        assert_eq!(words(&scale), ["0.1", "1", "10", "100", "1,000", "10,000"]);
        assert_eq!(scale.position(0.0), None);
        assert_eq!(scale.position(0.1), Some(0.0));
    }

    #[test]
    fn each_mark_of_a_tail_is_ten_times_rarer() {
        let scale = AxisScale::new(ScaleKind::Tail, [0.0, 0.999].into_iter(), 5, false);
        assert_eq!(words(&scale), ["0", "50", "90", "99", "99.9"]);
        assert!((scale.position(0.9).unwrap() - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn an_axis_of_nothing_is_still_an_axis() {
        for kind in [ScaleKind::Linear, ScaleKind::Log, ScaleKind::Tail] {
            for value in [f64::NAN, f64::INFINITY, 0.0, -5.0, f64::MAX, f64::MIN_POSITIVE] {
                let scale = AxisScale::new(kind, [value].into_iter(), 5, false);
                assert!(scale.ticks.len() < 40, "{kind:?} {value}: {:?}", scale.ticks.len());
                assert!(scale.position(value).is_none_or(|place| (0.0..=1.0).contains(&place)));
            }
        }
    }
}
