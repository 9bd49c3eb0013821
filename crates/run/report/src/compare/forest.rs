//! Positions of ratios and their intervals on a scale that all of a page's differences share.

use serde::Serialize;

use super::document::{Comparison, Contrast, MetricRow, MetricTable};

/// Scales on which ratios are drawn: the ratio at their ends, and what stands at both ends.
const SCALES: [(f64, &str, &str); 6] = [
    (1.05, "÷ 1.05", "× 1.05"),
    (1.1, "÷ 1.1", "× 1.1"),
    (1.25, "÷ 1.25", "× 1.25"),
    (2.0, "½", "× 2"),
    (4.0, "¼", "× 4"),
    (10.0, "⅒", "× 10"),
];
/// Share of all intervals that must lie within the scale.
const ON_SCALE: f64 = 0.9;

/// The scale on which ratios are drawn.
#[derive(Clone, Copy, Serialize)]
pub struct RatioScale {
    pub octaves: f64,
    pub low: &'static str,
    pub high: &'static str,
}

/// Every contrast with the first subject, of all judged tables.
pub fn judged(comparison: &Comparison) -> impl Iterator<Item = (&MetricTable, &MetricRow, &Contrast)> {
    let tables = comparison.tables.iter().filter(|table| table.judged);
    let rows = tables.flat_map(|table| table.rows.iter().map(move |row| (table, row)));
    rows.flat_map(|(table, row)| row.contrasts.iter().map(move |contrast| (table, row, contrast)))
}

/// The smallest scale that nearly everything fits on.
pub fn scale(comparison: &Comparison) -> RatioScale {
    let ends = |(_, _, contrast): (&MetricTable, &MetricRow, &Contrast)| {
        let ratio = contrast.ratio?;
        let (low, high) = contrast.ratio_interval.unwrap_or((ratio, ratio));
        Some(low.log2().abs().max(high.log2().abs()))
    };
    let mut reach: Vec<f64> =
        judged(comparison).filter_map(ends).filter(|octaves| octaves.is_finite()).collect();
    reach.sort_by(f64::total_cmp);
    let wanted = reach.get(((reach.len() as f64 * ON_SCALE) as usize).min(reach.len().saturating_sub(1)));
    let found = SCALES.iter().find(|scale| wanted.is_none_or(|wanted| *wanted <= scale.0.log2()));
    let (end, low, high) = *found.unwrap_or(&SCALES[SCALES.len() - 1]);
    RatioScale { octaves: end.log2(), low, high }
}

/// Positions of ratio and interval on the scale, in percent.
pub fn forest(contrast: &Contrast, scale: RatioScale) -> Option<[f64; 3]> {
    let place = |ratio: f64| tenth(50.0 + 50.0 * (ratio.log2() / scale.octaves).clamp(-1.0, 1.0));
    let middle = place(contrast.ratio?);
    let (low, high) =
        contrast.ratio_interval.map_or((middle, middle), |(low, high)| (place(low), place(high)));
    Some([low, tenth(high - low), middle])
}

pub fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_drawn_on_a_logarithmic_scale_around_one() {
        let drawn = |ratio, low, high| {
            let contrast =
                Contrast { ratio: Some(ratio), ratio_interval: Some((low, high)), ..Contrast::default() };
            forest(&contrast, RatioScale { octaves: 1.0, low: "½", high: "× 2" })
        };
        assert_eq!(drawn(1.0, 0.5, 2.0), Some([0.0, 100.0, 50.0]));
        assert_eq!(drawn(16.0, 8.0, 32.0), Some([100.0, 0.0, 100.0]));
        assert_eq!(forest(&Contrast::default(), scale(&Comparison::default())), None);
    }
}
