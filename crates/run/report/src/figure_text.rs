//! Figures in sentences and in cells of tables, with how well they are known.

use assay_measurement::own_error::{Certainty, OwnInterval};

use crate::document::BoundedFigure;
use crate::format::{self, percent, time_ms};

/// A time in a sentence: `3.10 ms`, `at least 3.00 s`, `between 1.20 and 3.40 ms`, `not known`.
pub(crate) fn time(figure: BoundedFigure) -> String {
    in_words(figure, time_ms)
}

/// A figure in a sentence, in any notation of numbers.
pub(crate) fn in_words(figure: BoundedFigure, show: impl Fn(f64) -> String) -> String {
    let BoundedFigure { value: Some(value), at_least, own } = figure else { return "not known".to_owned() };
    match own.filter(|own| own.certainty == Certainty::Roughly) {
        Some(OwnInterval { low: Some(low), high: Some(high), .. }) if !at_least => {
            // Nothing is shorter than nothing.
            if is_nothing(low, high) {
                format!("at most {}", show(high))
            } else {
                between(&show(low), &show(high))
            }
        }
        Some(OwnInterval { low: Some(low), .. }) => format!("at least {}", show(low)),
        _ if at_least => format!("at least {}", show(value)),
        _ => show(value),
    }
}

/// A figure in a table: as [`format::figure_with`], but `≤ 0.43` where its lower end is nothing.
pub(crate) fn cell(figure: Option<BoundedFigure>, show: impl Fn(f64) -> String) -> String {
    let own =
        figure.filter(|figure| figure.value.is_some() && !figure.at_least).and_then(|figure| figure.own);
    match own {
        Some(OwnInterval { low: Some(low), high: Some(high), certainty: Certainty::Roughly })
            if is_nothing(low, high) =>
        {
            format!("≤ {}", show(high))
        }
        _ => format::figure_with(figure, show),
    }
}

/// Beside its upper end, the lower one is next to nothing.
fn is_nothing(low: f64, high: f64) -> bool {
    (0.0..=high / 100.0).contains(&low)
}

/// `between 1.20 and 3.40 ms`: a unit that both have stands once. One value, where both look the same.
fn between(low: &str, high: &str) -> String {
    let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
    match low.split_once(' ') {
        _ if low == high => low.to_owned(),
        Some((number, _)) if unit(low) == unit(high) => format!("between {number} and {high}"),
        _ => format!("between {low} and {high}"),
    }
}

/// ` (54.4 % ideal)`: a hit ratio in percent, as well as it is known.
pub(crate) fn ratio(figure: BoundedFigure) -> String {
    in_words(figure, |ratio| format!("{} %", percent(Some(ratio))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::number;

    #[test]
    fn figures_read_in_a_sentence_as_well_as_they_are_known() {
        let told = |value, at_least, own: Option<OwnInterval>| time(BoundedFigure { value, at_least, own });
        let own = |low, high| Some(OwnInterval::of(3.0, low, high, 0.1));
        assert_eq!(told(Some(3.0), false, None), "3.00 ms");
        assert_eq!(told(Some(3.0), false, own(2.9, Some(3.0))), "3.00 ms");
        assert_eq!(told(Some(3.0), true, own(2.9, Some(3.0))), "at least 3.00 ms");
        assert_eq!(told(Some(3.0), false, own(1.2, Some(3.4))), "between 1.20 and 3.40 ms");
        assert_eq!(told(Some(3.0), false, own(0.2, Some(3.0))), "between 200 µs and 3.00 ms");
        assert_eq!(told(Some(3.0), false, own(0.0, Some(3.0))), "at most 3.00 ms");
        assert_eq!(told(Some(3.0), true, own(1.2, Some(3.4))), "at least 1.20 ms");
        assert_eq!(told(Some(3.0), false, own(1.2, None)), "at least 1.20 ms");
        assert_eq!(told(None, false, Some(OwnInterval::UNKNOWN)), "not known");
        let in_table = |own| cell(Some(BoundedFigure { value: Some(3.0), at_least: false, own }), number);
        assert_eq!(in_table(own(0.001, Some(3.0))), "≤ 3.00");
        assert_eq!(in_table(own(1.2, Some(3.0))), "1.20–3.00");
        let own = Some(OwnInterval::of(0.5, 0.4, Some(0.6), 0.01));
        assert_eq!(
            ratio(BoundedFigure { value: Some(0.5), at_least: false, own }),
            "between 40.0 and 60.0 %"
        );
    }
}
