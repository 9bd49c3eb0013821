//! Winners of scenarios and their margins: the table of scenarios as text.

use super::document::{Contrast, Direction, Verdict};
use super::metric::{ComparedMetric, MetricUnit};
use crate::format;

/// A cell of the table of scenarios, in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScenarioOutcome {
    /// Better than somebody, and worse than nobody.
    pub winners: Vec<String>,
    pub text: String,
    pub margin: String,
}

/// Words for a ratio from which on it is said as a multiple.
const TIMES: f64 = 2.0;

/// The verdict on `subject` against `other`, and the contrast that it comes from.
fn verdict_between<'a>(
    contrasts: &'a [Contrast],
    subject: &str,
    other: &str,
) -> Option<(Verdict, &'a Contrast)> {
    contrasts.iter().find_map(|contrast| {
        if contrast.subject == subject && contrast.base == other {
            Some((contrast.verdict, contrast))
        } else if contrast.subject == other && contrast.base == subject {
            Some((contrast.verdict.mirrored(), contrast))
        } else {
            None
        }
    })
}

/// The better performers, told from the differences between all pairs of subjects.
pub fn scenario_outcome(
    metric: &ComparedMetric,
    contrasts: &[Contrast],
    labels: &[String],
) -> ScenarioOutcome {
    let without_winner = |text: &str| ScenarioOutcome { text: text.to_owned(), ..ScenarioOutcome::default() };
    if labels.len() < 2 {
        return without_winner("nothing to compare with");
    }
    if contrasts.iter().all(|contrast| contrast.verdict == Verdict::NotEnoughRuns) {
        return without_winner(Verdict::NotEnoughRuns.label());
    }
    if contrasts
        .iter()
        .all(|contrast| matches!(contrast.verdict, Verdict::NotComparable | Verdict::NotEnoughRuns))
    {
        return without_winner(Verdict::NotComparable.label());
    }
    let others = |subject: &str, verdict: Verdict| -> Vec<&String> {
        let is = |other: &&String| {
            verdict_between(contrasts, subject, other).is_some_and(|found| found.0 == verdict)
        };
        labels.iter().filter(is).collect()
    };
    let winners: Vec<String> = labels
        .iter()
        .filter(|label| {
            others(label, Verdict::Worse).is_empty() && !others(label, Verdict::Better).is_empty()
        })
        .cloned()
        .collect();
    let [winner] = winners.as_slice() else {
        return match winners.len() {
            0 if contrasts.iter().any(|contrast| contrast.verdict == Verdict::NotEnoughRuns) => {
                without_winner(Verdict::NotEnoughRuns.label())
            }
            0 => without_winner(Verdict::NoDifferenceSeen.label()),
            _ => ScenarioOutcome { text: winners.join(" and "), winners, margin: String::new() },
        };
    };
    // By how much: against the best of those it beats.
    let beaten = others(winner, Verdict::Better);
    let distance = |other: &&&String| {
        verdict_between(contrasts, winner, other).and_then(|(_, c)| c.difference).map_or(f64::MAX, f64::abs)
    };
    let nearest = beaten.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
    let margin = nearest
        .and_then(|other| Some((verdict_between(contrasts, winner, other)?.1, other)))
        .map_or_else(String::new, |(contrast, other)| {
            let by = margin(metric, contrast, winner);
            if labels.len() > 2 && !by.is_empty() { format!("{by} than {other}") } else { by }
        });
    let text = if margin.is_empty() { winner.clone() } else { format!("{winner}, {margin}") };
    ScenarioOutcome { winners: winners.clone(), text, margin }
}

/// Lead of the winner: `12 % less`.
fn margin(metric: &ComparedMetric, contrast: &Contrast, winner: &str) -> String {
    let turned = contrast.subject != winner;
    let bound = if contrast.has_bounds() { "at least " } else { "" };
    let word = |more: bool| match (metric.better, metric.unit) {
        (Direction::Less, MetricUnit::Milliseconds) if !more => "shorter",
        _ if more => "more",
        _ => "less",
    };
    let ratio = contrast.ratio.map(|ratio| if turned { 1.0 / ratio } else { ratio });
    match (metric.unit, ratio, contrast.difference) {
        (MetricUnit::Share, _, Some(difference)) => {
            let points = difference.abs() * 100.0;
            let more = (difference > 0.0) != turned;
            format!("{bound}{} points {}", format::number(points), word(more))
        }
        (_, Some(ratio), _) if ratio >= TIMES => format!("{bound}{} times as much", format::number(ratio)),
        (_, Some(ratio), _) => {
            let percent = (ratio - 1.0).abs() * 100.0;
            let digits = if percent < 9.95 { 1 } else { 0 };
            format!("{bound}{percent:.digits$} % {}", word(ratio > 1.0))
        }
        (unit, None, Some(difference)) => {
            let more = (difference > 0.0) != turned;
            format!("{bound}{} {} {}", unit.show(difference.abs()), unit.name(), word(more))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::metric;

    fn contrast(base: &str, subject: &str, verdict: Verdict, ratio: f64) -> Contrast {
        Contrast {
            base: base.into(),
            subject: subject.into(),
            verdict,
            ratio: Some(ratio),
            difference: Some(ratio - 1.0),
            pairs: 5,
            ..Contrast::default()
        }
    }

    fn labels(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn text(key: &str, contrasts: &[Contrast], names: &[&str]) -> String {
        scenario_outcome(metric::named(key).unwrap(), contrasts, &labels(names)).text
    }

    #[test]
    fn of_two_the_better_is_named_with_how_much_better_it_is() {
        let two = ["varnish", "ats"];
        let one = |key, verdict, ratio| text(key, &[contrast("varnish", "ats", verdict, ratio)], &two);
        assert_eq!(one("response_mean_ms", Verdict::Better, 0.66), "ats, 34 % shorter");
        assert_eq!(one("throughput_per_s", Verdict::Worse, 0.8), "varnish, 25 % more");
        assert_eq!(one("throughput_per_s", Verdict::Worse, 0.25), "varnish, 4.00 times as much");
        assert_eq!(one("dhr", Verdict::Better, 1.052), "ats, 5.20 points more");
        assert_eq!(one("dhr", Verdict::NoDifferenceSeen, 1.0), "no difference seen");
        assert_eq!(one("dhr", Verdict::NotEnoughRuns, 1.0), "not enough runs");
        assert_eq!(text("dhr", &[], &["alone"]), "nothing to compare with");
    }

    #[test]
    fn a_difference_that_needs_more_runs_is_not_hidden_by_pairs_without_one() {
        let table = [
            contrast("a", "b", Verdict::NoDifferenceSeen, 1.0),
            contrast("a", "c", Verdict::NotEnoughRuns, 0.8),
            contrast("b", "c", Verdict::NoDifferenceSeen, 1.0),
        ];
        assert_eq!(text("throughput_per_s", &table, &["a", "b", "c"]), "not enough runs");
    }

    #[test]
    fn a_bound_is_said_to_be_one() {
        let found = Contrast { may_be_more: true, ..contrast("ats", "varnish", Verdict::Better, 2.9) };
        assert_eq!(
            text("saturation_per_s", &[found], &["ats", "varnish"]),
            "varnish, at least 2.90 times as much"
        );
    }

    #[test]
    fn of_several_a_winner_beats_somebody_and_is_beaten_by_nobody() {
        let table = [
            contrast("a", "b", Verdict::NoDifferenceSeen, 1.0),
            contrast("a", "c", Verdict::Worse, 0.9),
            contrast("b", "c", Verdict::Worse, 0.5),
        ];
        assert_eq!(text("throughput_per_s", &table, &["a", "b", "c"]), "a and b");
        let table = [
            contrast("a", "b", Verdict::Worse, 0.5),
            contrast("a", "c", Verdict::Worse, 0.8),
            contrast("b", "c", Verdict::Better, 1.6),
        ];
        assert_eq!(text("throughput_per_s", &table, &["a", "b", "c"]), "a, 25 % more than c");
    }
}
