//! Ratios and points as text.

/// A ratio in percent.
pub(crate) fn percent(ratio: Option<f64>) -> String {
    ratio.map_or("?".into(), |ratio| format!("{:.1} %", ratio * 100.0))
}

/// A difference in points, with its sign.
pub(crate) fn signed(points: f64) -> String {
    format!("{points:+.1}")
}

/// Distance of a measured ratio from another one.
pub(crate) fn points_apart(points: f64) -> String {
    let which = if points < 0.0 { "lower" } else { "higher" };
    format!("{:.1} points {which}", points.abs())
}
