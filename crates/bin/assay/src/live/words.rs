//! Figures, as they are written for people. Short, with their unit, and a dash for what is not known.

use assay_base::settings::show::count;
use assay_measurement::censored::Bounds;
use assay_measurement::histogram::Histogram;

/// `0.21 ms`, `301 ms`, `12.3 s`.
pub fn time_us(value_us: Option<u64>) -> String {
    let Some(us) = value_us else { return "–".into() };
    match us {
        0..10_000 => format!("{:.2} ms", us as f64 / 1e3),
        10_000..100_000 => format!("{:.1} ms", us as f64 / 1e3),
        100_000..10_000_000 => format!("{:.0} ms", us as f64 / 1e3),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

/// A quantile of a histogram as [`time_us`].
pub fn quantile(histogram: &Histogram, quantile: f64) -> String {
    time_us(histogram.quantile_us(quantile))
}

/// A quantile of a histogram that may not be there.
pub fn quantile_of(histogram: Option<&Histogram>, share: f64) -> String {
    time_us(histogram.and_then(|histogram| histogram.quantile_us(share)))
}

/// A figure that may be a lower bound, as [`time_us`].
pub fn bounds_us(bounds: Option<Bounds>) -> String {
    let text = time_us(bounds.map(|bounds| bounds.low_us.round() as u64));
    if bounds.is_some_and(|bounds| !bounds.is_exact()) { format!("≥ {text}") } else { text }
}

/// `54.8 %`.
pub fn percent(value: Option<f64>) -> String {
    value.map_or("–".into(), |share| format!("{:.1} %", share * 100.0))
}

/// `0:07`, `12:30`, `1:02:03`.
pub fn clock(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds / 3600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// A rate as a whole number, or with a digit when it is small.
pub fn rate(per_second: f64) -> String {
    if per_second < 10.0 { format!("{per_second:.1}") } else { count(per_second.round() as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_carry_their_unit() {
        assert_eq!(
            [Some(210), Some(30_100), Some(301_000), Some(12_345_678), None].map(time_us),
            ["0.21 ms", "30.1 ms", "301 ms", "12.3 s", "–"]
        );
        assert_eq!([7_900, 750_000, 3_723_000].map(clock), ["0:07", "12:30", "1:02:03"]);
        assert_eq!([0.44, 9.96, 399.6].map(rate), ["0.4", "10.0", "400"]);
        assert_eq!([Some(0.5484), None].map(percent), ["54.8 %", "–"]);
    }
}
