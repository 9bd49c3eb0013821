//! Numbers as people read them.

pub use assay_base::settings::show::{bytes, count, number};

use assay_measurement::own_error::{Certainty, OwnInterval};

use crate::calendar::Utc;
use crate::document::BoundedFigure;

/// Shown where there is nothing to measure.
pub const NOTHING: &str = "–";

/// [`number`], or a dash.
pub fn opt_number(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), number)
}

/// Shown where nothing is known because of Assay or the lab.
pub const UNKNOWN: &str = "?";

/// A figure that may be a lower bound, known roughly, or not known: `54.3`, `≥ 2,759`, `1.20–3.40`, `?`.
pub fn figure(figure: Option<BoundedFigure>) -> String {
    figure_with(figure, number)
}

/// The same in another notation of numbers, which may have a unit.
pub fn figure_with(figure: Option<BoundedFigure>, show: impl Fn(f64) -> String) -> String {
    let Some(BoundedFigure { value, at_least, own }) = figure else { return NOTHING.to_owned() };
    let Some(value) = value else { return UNKNOWN.to_owned() };
    let bound = if at_least { "≥ " } else { "" };
    match own {
        Some(OwnInterval { low: Some(low), high, certainty: Certainty::Roughly }) => match high {
            Some(high) if !at_least => between(&show(low), &show(high)),
            _ => format!("≥ {}", show(low)),
        },
        _ => format!("{bound}{}", show(value)),
    }
}

/// `1.20–3.40 ms`: the unit stands once where both have the same; one value where both look the same.
fn between(low: &str, high: &str) -> String {
    match (low.split_once(' '), high.split_once(' ')) {
        _ if low == high => low.to_owned(),
        (Some((low, of_low)), Some((high, of_high))) if of_low == of_high => {
            format!("{low}–{high} {of_high}")
        }
        _ => format!("{low}–{high}"),
    }
}

/// A ratio in percent with one decimal: `54.3`.
pub fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| NOTHING.to_owned(), |ratio| format!("{:.1}", ratio * 100.0))
}

/// A share in percent with as many digits as it needs to be seen: `0.02 %`.
pub fn share(part: u64, whole: u64) -> String {
    let percent = if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 };
    match percent {
        0.0 => "0 %".to_owned(),
        p if p < 0.01 => "less than 0.01 %".to_owned(),
        p if p < 1.0 => format!("{p:.2} %"),
        p if p < 99.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// A time given in milliseconds, in the unit that suits it: `420 µs`, `3.10 ms`, `1.20 s`.
pub fn time_ms(ms: f64) -> String {
    if ms < 1.0 {
        format!("{:.0} µs", ms * 1000.0)
    } else if ms < 999.5 {
        format!("{} ms", number(ms))
    } else {
        format!("{} s", number(ms / 1000.0))
    }
}

/// Seconds: `850 ms`, `60.0 s`, `12 min 5 s`, `3 h 20 min`.
pub fn duration_s(seconds: f64) -> String {
    if seconds < 1.0 {
        return time_ms(seconds * 1000.0);
    }
    if seconds < 120.0 {
        return format!("{} s", number(seconds));
    }
    let whole = seconds.round() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole % 3600 / 60, whole % 60);
    match (hours, minutes, rest) {
        (0, minutes, 0) => format!("{minutes} min"),
        (0, minutes, rest) => format!("{minutes} min {rest} s"),
        (hours, 0, _) => format!("{hours} h"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

/// Unix milliseconds as a date and time in UTC: `2026-01-31 13:05:09 UTC`.
pub fn date(unix_ms: u64) -> String {
    let Utc { year, month, day, hour, minute, second } = Utc::from_unix_s(unix_ms / 1000);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// A time within the run: `12.3 s`, from three minutes on as a clock: `1:02:03`.
pub fn moment_ms(ms: u64) -> String {
    let seconds = ms / 1000;
    let (hours, minutes, rest) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    match hours {
        _ if seconds < 180 => format!("{:.1} s", ms as f64 / 1000.0),
        0 => format!("{minutes}:{rest:02}"),
        hours => format!("{hours}:{minutes:02}:{rest:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_one_decimal() {
        assert_eq!(percent(Some(0.5432)), "54.3");
        assert_eq!(percent(None), "–");
    }

    #[test]
    fn a_figure_shows_how_well_it_is_known() {
        let shown = |value, at_least, own: Option<OwnInterval>| {
            figure_with(Some(BoundedFigure { value, at_least, own }), time_ms)
        };
        let own = |low, high| Some(OwnInterval::of(3.0, low, high, 0.1));
        assert_eq!(shown(Some(3.0), false, None), "3.00 ms");
        assert_eq!(shown(Some(3.0), false, own(2.9, Some(3.0))), "3.00 ms");
        assert_eq!(shown(Some(3.0), false, own(1.2, Some(3.0))), "1.20–3.00 ms");
        assert_eq!(shown(Some(3.0), false, own(0.2, Some(3.0))), "200 µs–3.00 ms");
        assert_eq!(shown(Some(3.0), false, own(1.2, None)), "≥ 1.20 ms");
        assert_eq!(shown(Some(3.0), true, own(1.2, Some(3.0))), "≥ 1.20 ms");
        assert_eq!(shown(None, false, Some(OwnInterval::UNKNOWN)), "?");
        assert_eq!(figure(None), "–");
    }

    #[test]
    fn units_suit_the_size() {
        assert_eq!(time_ms(0.42), "420 µs");
        assert_eq!(time_ms(3.1), "3.10 ms");
        assert_eq!(time_ms(1200.0), "1.20 s");
        assert_eq!(duration_s(60.0), "60.0 s");
        assert_eq!(duration_s(725.0), "12 min 5 s");
        assert_eq!(duration_s(12_000.0), "3 h 20 min");
        assert_eq!(share(1, 1_000_000), "less than 0.01 %");
        assert_eq!(share(5, 1000), "0.50 %");
    }

    #[test]
    fn moments_of_a_long_run_are_a_clock() {
        assert_eq!(moment_ms(12_340), "12.3 s");
        assert_eq!(moment_ms(179_900), "179.9 s");
        assert_eq!(moment_ms(754_000), "12:34");
        assert_eq!(moment_ms(3_723_000), "1:02:03");
        assert_eq!(date(1_769_864_709_000), "2026-01-31 13:05:09 UTC");
    }
}
