//! Verdicts: better, worse, no difference seen, or not enough runs. Verdicts on differences that stand in one table.

use super::document::{Contrast, Direction, Verdict};
use super::measured::MetricValue;
use super::metric::ComparedMetric;
use super::paired::{self, BoundedPair, FEWEST_PAIRS, RunPair};
use crate::format;

/// The chance that a table has even one false "better" or "worse" in it is at most this.
pub const ERROR_PROBABILITY: f64 = 0.05;

/// Said of a difference that would be sure if it stood alone.
const IN_SO_LARGE_A_TABLE: &str = "alone it would be a difference, but chance brings as much somewhere in a table this \
                                   large; more repetitions can tell";

/// Reason for a missing interval: a value without an upper bound would make it all numbers.
const NO_UPPER_END: &str = "in one of the runs, nothing bounds what Assay or the machine added to the value";

/// A pair as far as its values are known.
fn within(base: &MetricValue, other: &MetricValue) -> BoundedPair {
    let span = |number: &MetricValue| (number.own.0, number.own.1.unwrap_or(number.value));
    BoundedPair {
        measured: RunPair { base: base.value, other: other.value },
        base: span(base),
        other: span(other),
    }
}

/// A difference before the verdict on it.
pub struct ContrastTest {
    pub metric: &'static ComparedMetric,
    /// Mean of the base's runs that are in pairs.
    level: f64,
    /// No run of either side got to the end of the scale.
    none_reached: bool,
    pub contrast: Contrast,
}

impl ContrastTest {
    /// The difference between two subjects, from pairs of values of one repetition each (base first).
    pub fn new(
        metric: &'static ComparedMetric,
        base: &str,
        subject: &str,
        pairs: &[(MetricValue, MetricValue)],
        common_xacts: Option<u64>,
    ) -> Self {
        let values: Vec<BoundedPair> = pairs.iter().map(|(base, other)| within(base, other)).collect();
        let level = pairs.iter().map(|(base, _)| base.value).sum::<f64>() / pairs.len().max(1) as f64;
        let estimate = paired::estimate_within(&values, metric.resolution * level.abs());
        let judged = metric.better != Direction::Neither;
        let estimate_of = estimate.as_ref();
        let contrast = Contrast {
            subject: subject.to_owned(),
            base: base.to_owned(),
            pairs: pairs.len() as u32,
            difference: estimate_of.map(|found| found.difference),
            interval: estimate_of.and_then(|found| found.interval),
            ratio: estimate_of.and_then(|found| found.ratio),
            ratio_interval: estimate_of.and_then(|found| found.ratio_interval),
            effect_size: estimate_of.and_then(|found| found.effect),
            p: estimate_of.and_then(|found| found.p).filter(|_| judged),
            p_adjusted: None,
            may_be_more: pairs.iter().any(|(_, other)| other.at_least),
            may_be_less: pairs.iter().any(|(base, _)| base.at_least),
            common_xacts,
            within_runs: None,
            verdict: if judged { Verdict::NotEnoughRuns } else { Verdict::NotJudged },
            why: None,
        };
        let none_reached =
            !pairs.is_empty() && pairs.iter().all(|(base, other)| base.at_least && other.at_least);
        let mut case = Self { metric, level, none_reached, contrast };
        if pairs.iter().any(|(base, other)| base.own.1.is_none() || other.own.1.is_none()) {
            case.incomparable(NO_UPPER_END);
        }
        case
    }

    /// There is a difference and no verdict: the runs did not get the same requests, say.
    pub fn incomparable(&mut self, why: &str) {
        let contrast = &mut self.contrast;
        (contrast.interval, contrast.ratio_interval, contrast.effect_size, contrast.p) =
            (None, None, None, None);
        if contrast.verdict != Verdict::NotJudged {
            contrast.verdict = Verdict::NotComparable;
        }
        contrast.why = Some(why.to_owned());
    }

    fn decide(&mut self, p_adjusted: Option<f64>) {
        self.contrast.p_adjusted = p_adjusted;
        let (Some(p), Some(difference)) = (p_adjusted, self.contrast.difference) else {
            if self.contrast.verdict == Verdict::NotEnoughRuns {
                self.contrast.why = Some(too_few(self.contrast.pairs));
            }
            return;
        };
        let worth = self.metric.worth.at(self.level);
        let unit = self.metric.unit;
        let mentioned = difference.abs() >= worth;
        let more_is_better = self.metric.better == Direction::More;
        // A lower bound that is larger is larger indeed; one that is smaller need not be.
        let is_open = if difference > 0.0 { self.contrast.may_be_less } else { self.contrast.may_be_more };
        (self.contrast.verdict, self.contrast.why) = if p <= ERROR_PROBABILITY && mentioned && is_open {
            (Verdict::NoDifferenceSeen, Some(LEFT_OPEN.to_owned()))
        } else if p <= ERROR_PROBABILITY && mentioned {
            let better = (difference > 0.0) == more_is_better;
            (if better { Verdict::Better } else { Verdict::Worse }, None)
        } else {
            let alone = self.contrast.p.is_some_and(|p| p <= ERROR_PROBABILITY) && mentioned;
            if self.none_reached {
                (Verdict::NoDifferenceSeen, Some("neither was brought to it".to_owned()))
            } else if p <= ERROR_PROBABILITY {
                let why = format!("smaller than is worth mentioning, {} {}", unit.show(worth), unit.name());
                (Verdict::NoDifferenceSeen, Some(why))
            } else if alone {
                // A difference is seen: to say that none is would be as wrong as to call it sure.
                (Verdict::NotEnoughRuns, Some(IN_SO_LARGE_A_TABLE.to_owned()))
            } else {
                (Verdict::NoDifferenceSeen, None)
            }
        };
    }
}

/// Reason why a significant difference has no verdict.
const LEFT_OPEN: &str = "the smaller value is a lower bound, and could be more";

fn too_few(pairs: u32) -> String {
    let seen = match pairs {
        0 => "no repetition has a run of both that counts".to_owned(),
        1 => "one repetition has a run of both that counts".to_owned(),
        n => format!("{} repetitions have a run of both that counts", format::count(u64::from(n))),
    };
    format!("{seen}; it takes {FEWEST_PAIRS} to tell a difference from how much runs differ anyway")
}

/// Gives the verdicts of a table: they hold together (Holm). Returns how many there are.
pub fn decide<'a>(table: impl Iterator<Item = &'a mut ContrastTest>) -> u32 {
    let mut cases: Vec<&mut ContrastTest> = table.collect();
    let tested: Vec<f64> = cases.iter().filter_map(|case| case.contrast.p).collect();
    let mut adjusted = paired::holm(&tested).into_iter();
    for case in &mut cases {
        let p = case.contrast.p.and_then(|_| adjusted.next());
        case.decide(p);
    }
    tested.len() as u32
}

#[cfg(test)]
mod tests {
    use assay_base::random::Rng;

    use super::*;
    use crate::compare::metric;

    fn normal(dice: &mut Rng) -> f64 {
        let radius = libm::sqrt(2.0 * dice.exponential());
        radius * libm::cos(2.0 * std::f64::consts::PI * dice.unit())
    }

    /// A table of all metrics, as runs of two subjects would fill it: values vary from run to run by 5 %, what the
    /// stream brings hits both alike, metrics go together, and some of the noise is skewed as times are.
    fn table(dice: &mut Rng, repetitions: usize, factor: f64) -> Vec<ContrastTest> {
        let streams: Vec<f64> = (0..repetitions).map(|_| normal(dice)).collect();
        let runs: Vec<[f64; 2]> = (0..repetitions).map(|_| [normal(dice), normal(dice)]).collect();
        metric::all()
            .map(|metric| {
                let mut value = |repetition: usize, side: usize, factor: f64| {
                    let noise = 0.6 * runs[repetition][side] + 0.8 * normal(dice);
                    let value = factor * 1e6 * libm::exp(0.05 * (streams[repetition] + noise));
                    MetricValue::exact(value)
                };
                let pairs: Vec<_> =
                    (0..repetitions).map(|r| (value(r, 0, 1.0), value(r, 1, factor))).collect();
                ContrastTest::new(metric, "one", "other", &pairs, None)
            })
            .collect()
    }

    fn false_verdicts(repetitions: usize, tables: u64) -> u64 {
        let wrong = (0..tables).filter(|seed| {
            let mut cases = table(&mut Rng::new(seed << 20), repetitions, 1.0);
            decide(cases.iter_mut());
            cases.iter().any(|case| matches!(case.contrast.verdict, Verdict::Better | Verdict::Worse))
        });
        wrong.count() as u64
    }

    #[test]
    fn a_subject_against_itself_has_false_verdicts_no_more_often_than_the_stated_probability() {
        for repetitions in [3, 5, 10] {
            let tables = 200;
            let wrong = false_verdicts(repetitions, tables) as f64;
            let expected = tables as f64 * ERROR_PROBABILITY;
            // Three standard deviations of a binomial count.
            let most = expected + 3.0 * libm::sqrt(expected * (1.0 - ERROR_PROBABILITY));
            assert!(
                wrong <= most,
                "{wrong} of {tables} tables with {repetitions} repetitions, at most {most}"
            );
        }
    }

    #[test]
    fn without_the_correction_most_tables_would_have_a_false_verdict() {
        let tables = 200;
        let wrong = (0..tables).filter(|seed: &u64| {
            let cases = table(&mut Rng::new(seed << 20), 10, 1.0);
            cases.iter().any(|case| case.contrast.p.is_some_and(|p| p <= ERROR_PROBABILITY))
        });
        assert!(wrong.count() > 60, "the test above tests something");
    }

    #[test]
    fn a_large_difference_is_found_in_nearly_every_metric_and_in_its_direction() {
        let (mut found, mut all) = (0, 0);
        for seed in 0..100 {
            let mut cases = table(&mut Rng::new(seed << 20), 10, 1.3);
            decide(cases.iter_mut());
            for case in &cases {
                let expected = match case.metric.better {
                    Direction::More => Verdict::Better,
                    Direction::Less => Verdict::Worse,
                    Direction::Neither => {
                        assert_eq!(case.contrast.verdict, Verdict::NotJudged);
                        continue;
                    }
                };
                all += 1;
                found += u32::from(case.contrast.verdict == expected);
                let wrong = matches!(case.contrast.verdict, Verdict::Better | Verdict::Worse);
                assert!(!wrong || case.contrast.verdict == expected);
            }
        }
        assert!(f64::from(found) > 0.97 * f64::from(all), "{found} of {all}");
    }

    fn exact(value: f64) -> MetricValue {
        MetricValue::exact(value)
    }

    fn verdict(key: &str, pairs: &[(MetricValue, MetricValue)]) -> Contrast {
        let mut case = ContrastTest::new(metric::named(key).unwrap(), "one", "other", pairs, None);
        decide(std::iter::once(&mut case));
        case.contrast
    }

    #[test]
    fn two_runs_are_not_enough_and_the_verdict_says_why() {
        let found = verdict("dhr", &[(exact(0.4), exact(0.8)), (exact(0.4), exact(0.8))]);
        assert_eq!(found.verdict, Verdict::NotEnoughRuns);
        assert!(found.why.unwrap().starts_with("2 repetitions have"), "says how many there are");
        assert!((found.difference.unwrap() - 0.4).abs() < 1e-12, "the difference itself is not kept back");
        let none = verdict("dhr", &[]);
        assert_eq!((none.verdict, none.difference), (Verdict::NotEnoughRuns, None));
    }

    #[test]
    fn what_would_be_a_difference_alone_is_in_a_large_table_one_that_needs_more_runs() {
        let pairs = |step: f64| -> Vec<_> {
            let run = |n: u8| (exact(0.5), exact(0.5 + step + 0.01 * f64::from(n % 3)));
            (0..3).map(run).collect()
        };
        let case =
            |step| ContrastTest::new(metric::named("dhr").unwrap(), "one", "other", &pairs(step), None);
        let mut table: Vec<ContrastTest> =
            std::iter::once(case(0.04)).chain((0..99).map(|_| case(-0.01))).collect();
        decide(table.iter_mut());
        let found = &table[0].contrast;
        assert!(found.p.is_some_and(|p| p <= ERROR_PROBABILITY), "{found:?}");
        assert_eq!(found.verdict, Verdict::NotEnoughRuns);
        assert_eq!(found.why.as_deref(), Some(IN_SO_LARGE_A_TABLE));
        assert_eq!(table[1].contrast.verdict, Verdict::NoDifferenceSeen);
    }

    #[test]
    fn a_sure_but_tiny_difference_is_not_worth_a_verdict() {
        let pairs: Vec<_> = (0..10).map(|n| (exact(0.5), exact(0.5003 + f64::from(n) * 1e-6))).collect();
        let found = verdict("dhr", &pairs);
        assert_eq!(found.verdict, Verdict::NoDifferenceSeen);
        assert!(found.p_adjusted.unwrap() < ERROR_PROBABILITY && found.why.unwrap().contains("0.500 %"));
    }

    #[test]
    fn a_saturation_point_that_was_not_reached_counts_as_the_highest_rate_offered() {
        let beyond = MetricValue::at_least;
        let both: Vec<_> = (0..4).map(|_| (beyond(1600.0), beyond(1600.0))).collect();
        let found = verdict("saturation_per_s", &both);
        assert_eq!(found.verdict, Verdict::NoDifferenceSeen);
        assert_eq!(found.why.as_deref(), Some("neither was brought to it"));
        let one: Vec<_> = [520.0, 560.0, 530.0, 550.0].map(|seen| (exact(seen), beyond(1600.0))).into();
        let found = verdict("saturation_per_s", &one);
        assert_eq!((found.verdict, found.has_bounds()), (Verdict::Better, true));
    }

    #[test]
    fn a_value_without_an_upper_end_leaves_the_difference_unknown() {
        let mut pairs: Vec<_> = [52.0, 56.0, 53.0, 55.0].map(|ms| (exact(ms), exact(ms * 10.0))).into();
        assert_eq!(verdict("response_p99_ms", &pairs).verdict, Verdict::Worse);
        pairs[2].1.own.1 = None;
        let found = verdict("response_p99_ms", &pairs);
        assert_eq!((found.verdict, found.why.as_deref()), (Verdict::NotComparable, Some(NO_UPPER_END)));
        assert_eq!((found.interval, found.ratio_interval, found.p), (None, None, None));
        assert!((found.difference.unwrap() - 486.0).abs() < 1e-9, "what was seen is not kept back");
    }

    #[test]
    fn what_is_only_known_to_be_at_least_so_long_is_never_called_shorter() {
        // So many times what the other side took; whether the base's, and the subject's, are lower bounds.
        let of = |base: f64, other: f64, base_open: bool, other_open: bool| {
            let pair = |ms: f64| {
                let number = |value, at_least| MetricValue { at_least, ..MetricValue::exact(value) };
                (number(base * ms, base_open), number(other * ms, other_open))
            };
            let pairs: Vec<_> = [52.0, 56.0, 53.0, 55.0].map(pair).into();
            verdict("response_p99_ms", &pairs)
        };
        assert_eq!(of(10.0, 1.0, false, false).verdict, Verdict::Better);
        assert_eq!(of(10.0, 1.0, true, false).verdict, Verdict::Better, "the base took at least so long");
        let open = of(10.0, 1.0, false, true);
        assert_eq!((open.verdict, open.why.as_deref()), (Verdict::NoDifferenceSeen, Some(LEFT_OPEN)));
        assert_eq!(of(1.0, 10.0, false, true).verdict, Verdict::Worse);
        assert_eq!(of(1.0, 10.0, true, false).verdict, Verdict::NoDifferenceSeen);
    }
}
