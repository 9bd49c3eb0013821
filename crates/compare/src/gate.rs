//! Whether something got worse by more than is allowed. Tolerances, held against a comparison.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::document::{Comparison, Contrast, Direction, MetricRow, MetricTable, Verdict};
use super::metric::{self, Metric, Unit};
use assay_report::format;

/// What is held against a tolerance for all beside the headline metrics.
const ALSO: [&str; 1] = ["errors_share"];

/// Short names of metrics.
const SHORT: [(&str, &str); 16] = [
    ("throughput", "throughput_per_s"),
    ("mean", "response_mean_ms"),
    ("p50", "response_p50_ms"),
    ("p95", "response_p95_ms"),
    ("p99", "response_p99_ms"),
    ("hit_p99", "hit_p99_ms"),
    ("miss_p99", "miss_p99_ms"),
    ("saturation", "saturation_per_s"),
    ("offload", "offload_requests"),
    ("errors", "errors_share"),
    ("content_errors", "content_errors_share"),
    ("caching_errors", "caching_errors_share"),
    ("unsent", "unsent_share"),
    ("cpu", "cpu_us_per_request"),
    ("memory", "rss_peak_bytes"),
    ("disk", "disk_bytes_per_s"),
];

/// How much worse something may be.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tolerance {
    /// Name of the metric; null: all headline metrics and errors, but for those that are named.
    pub metric: Option<String>,
    /// The amount.
    pub amount: Amount,
}

/// How much.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// Of the first subject's level.
    Relative(f64),
    /// In the metric's own unit; for shares, a share.
    Absolute(f64),
}

/// Why a tolerance cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToleranceError {
    /// It is not of the form.
    #[error(
        "cannot read the tolerance `{0}`; write a share of the baseline (`5%`), for one metric `p99=10%`, or an amount in its unit: `p99=2ms`, `dhr=1pt` (points), `throughput=50/s`"
    )]
    Form(String),
    /// No metric is called so.
    #[error("no metric is called `{0}`; there are {1}")]
    Metric(String, String),
    /// The metric explains others and has no good direction.
    #[error("`{0}` explains other metrics: more of it is neither better nor worse")]
    Direction(String),
    /// The amount has no unit.
    #[error("an amount of `{0}` needs its unit; give a share of the baseline (`5%`), or {1}")]
    NoUnit(String, String),
    /// The amount's unit is not that of the metric.
    #[error("`{0}` is not measured in `{1}`; give a share of the baseline (`5%`), or {2}")]
    Unit(String, String, String),
}

impl std::str::FromStr for Tolerance {
    type Err = ToleranceError;

    fn from_str(text: &str) -> Result<Self, ToleranceError> {
        let (name, amount) = match text.split_once('=') {
            Some((name, amount)) => (Some(name.trim()), amount.trim()),
            None => (None, text.trim()),
        };
        let digits = amount.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(amount.len());
        let (number, unit) =
            (amount[..digits].parse::<f64>().ok().filter(|n| n.is_finite()), amount[digits..].trim());
        let Some(number) = number else { return Err(ToleranceError::Form(text.to_owned())) };
        let metric = name.map(find).transpose()?;
        let amount = match (unit, metric) {
            ("%", _) => Amount::Relative(number / 100.0),
            (unit, Some(metric)) => absolute(metric, number, unit)?,
            _ => return Err(ToleranceError::Form(text.to_owned())),
        };
        Ok(Self { metric: metric.map(|metric| metric.key.to_owned()), amount })
    }
}

fn find(name: &str) -> Result<&'static Metric, ToleranceError> {
    let key = SHORT.iter().find(|short| short.0 == name).map_or(name, |short| short.1);
    let metric = metric::named(key).ok_or_else(|| {
        let short: Vec<&str> = SHORT.iter().map(|short| short.0).collect();
        let all: Vec<&str> = metric::all()
            .filter(|metric| metric.better != Direction::Neither)
            .map(|metric| metric.key)
            .collect();
        ToleranceError::Metric(
            name.to_owned(),
            format!("{} (for short) and {}", short.join(", "), all.join(", ")),
        )
    })?;
    match metric.better {
        Direction::Neither => Err(ToleranceError::Direction(name.to_owned())),
        _ => Ok(metric),
    }
}

fn absolute(metric: &Metric, number: f64, unit: &str) -> Result<Amount, ToleranceError> {
    let units: &[(&str, f64)] = match metric.unit {
        Unit::Milliseconds => &[("ms", 1.0), ("s", 1000.0), ("us", 0.001), ("µs", 0.001)],
        Unit::Microseconds => &[("us", 1.0), ("µs", 1.0), ("ms", 1000.0)],
        Unit::PerSecond => &[("/s", 1.0)],
        Unit::Share => &[("pt", 0.01)],
        Unit::Bytes => &[("MB", 1_048_576.0), ("KB", 1024.0), ("GB", 1_073_741_824.0)],
        Unit::BytesPerSecond => &[("MB/s", 1_048_576.0), ("KB/s", 1024.0)],
        Unit::Processors => &[],
    };
    match units.iter().find(|known| known.0 == unit) {
        Some((_, scale)) => Ok(Amount::Absolute(number * scale)),
        None => {
            let known: Vec<&str> = units.iter().map(|known| known.0).collect();
            let known = if known.is_empty() { "nothing else".to_owned() } else { known.join(", ") };
            Err(match unit {
                "" => ToleranceError::NoUnit(metric.key.to_owned(), known),
                unit => ToleranceError::Unit(metric.key.to_owned(), unit.to_owned(), known),
            })
        }
    }
}

/// What came of holding tolerances against a comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// The tolerances.
    pub tolerances: Vec<Tolerance>,
    /// All in all.
    pub outcome: Outcome,
    /// Why that, in a sentence.
    pub why: String,
    /// Every difference that was held against a tolerance, in the stretches that subjects are judged by.
    pub checks: Vec<Check>,
}

/// What came of it, all in all. The first that applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Runs are invalid: their numbers are no gate.
    Invalid,
    /// Something that should be compared could not be.
    #[default]
    NotCompared,
    /// Something is worse by more than its tolerance.
    Regressed,
    /// Nothing is.
    Held,
}

/// One difference and its tolerance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Workload.
    pub workload: String,
    /// Condition.
    pub condition: String,
    /// Phase, or `whole run`.
    pub scope: String,
    /// Name of the metric, with its unit.
    pub metric: String,
    /// What it is called.
    pub title: String,
    /// Who is held against the tolerance.
    pub subject: String,
    /// Against whom.
    pub base: String,
    /// How much worse it may be, in the metric's unit.
    pub allowed: f64,
    /// How much worse it is (negative: better); null: not compared.
    pub worse_by: Option<f64>,
    /// The 95 % interval of that; null: there are too few runs for one.
    pub interval: Option<(f64, f64)>,
    /// What came of it.
    pub outcome: CheckOutcome,
}

/// What came of one tolerance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckOutcome {
    /// Worse by more than the tolerance: the whole interval lies beyond it or, without one, the difference does.
    Regressed,
    /// Within the tolerance: the whole interval is or, without one, the difference.
    Held,
    /// The interval reaches to both sides of the tolerance, and more runs would tell; or times are lower bounds, and what is
    /// known of them does not say on which side they are.
    NotShown,
    /// There is nothing to compare.
    NotCompared,
}

/// Holds tolerances against every judged stretch of a comparison.
pub fn hold(comparison: &Comparison, tolerances: &[Tolerance]) -> Gate {
    let checks: Vec<Check> = comparison
        .tables
        .iter()
        .filter(|table| table.judged)
        .flat_map(|table| table.rows.iter().map(move |row| (table, row)))
        .flat_map(|(table, row)| {
            let tolerance = tolerance_of(row, tolerances);
            tolerance.into_iter().flat_map(move |tolerance| {
                row.contrasts.iter().map(move |contrast| check(table, row, contrast, tolerance))
            })
        })
        .collect();
    let (outcome, why) = outcome(comparison, tolerances, &checks);
    Gate { tolerances: tolerances.to_vec(), outcome, why, checks }
}

/// The tolerance of a metric: its own, or else that for all, if it is one of those.
fn tolerance_of<'a>(row: &MetricRow, tolerances: &'a [Tolerance]) -> Option<&'a Tolerance> {
    let own = tolerances.iter().rev().find(|tolerance| tolerance.metric.as_deref() == Some(&row.metric));
    let of_all = metric::named(&row.metric).is_some_and(|m| m.heading.is_some())
        || ALSO.contains(&row.metric.as_str());
    own.or_else(|| tolerances.iter().rev().find(|tolerance| of_all && tolerance.metric.is_none()))
}

fn check(table: &MetricTable, row: &MetricRow, contrast: &Contrast, tolerance: &Tolerance) -> Check {
    let level = row.values.first().and_then(|values| values.mean).unwrap_or(0.0).abs();
    let allowed = match tolerance.amount {
        Amount::Relative(share) => share * level,
        Amount::Absolute(amount) => amount,
    };
    // What is not worth a verdict is no regression either, unless the metric was named.
    let least = if tolerance.metric.is_none() { row.worth_mentioning.unwrap_or(0.0) } else { 0.0 };
    let allowed = allowed.max(least);
    let comparable = contrast.verdict != Verdict::NotComparable;
    let turn = if row.better == Direction::More { -1.0 } else { 1.0 };
    let worse_by = contrast.difference.filter(|_| comparable).map(|difference| difference * turn);
    let interval = contrast.interval.filter(|_| comparable).map(|(low, high)| {
        let (one, two) = (low * turn, high * turn);
        (one.min(two), one.max(two))
    });
    let outcome = match (worse_by, interval) {
        (None, _) => CheckOutcome::NotCompared,
        (_, Some((low, _))) if low > allowed => CheckOutcome::Regressed,
        (_, Some((_, high))) if high > allowed => CheckOutcome::NotShown,
        (Some(worse), None) if worse > allowed => CheckOutcome::Regressed,
        _ => CheckOutcome::Held,
    };
    // Of times, what is known to be so long at least may be longer. (A saturation point counts as what was offered.)
    let is_open = row.better == Direction::Less
        && match outcome {
            CheckOutcome::Regressed => contrast.may_be_less,
            CheckOutcome::Held => contrast.may_be_more,
            CheckOutcome::NotShown | CheckOutcome::NotCompared => false,
        };
    let outcome = if is_open { CheckOutcome::NotShown } else { outcome };
    Check {
        workload: table.workload.clone(),
        condition: table.condition.clone(),
        scope: table.scope.clone(),
        metric: row.metric.clone(),
        title: row.title.clone(),
        subject: contrast.subject.clone(),
        base: contrast.base.clone(),
        allowed,
        worse_by,
        interval,
        outcome,
    }
}

fn outcome(comparison: &Comparison, tolerances: &[Tolerance], checks: &[Check]) -> (Outcome, String) {
    let invalid = comparison.runs.iter().filter(|run| run.invalid).count();
    if invalid > 0 {
        let are = if invalid == 1 { "run is" } else { "runs are" };
        let why = format!(
            "{invalid} {are} invalid: Assay or the lab could have shaped the numbers, so nothing is held against the \
             tolerance."
        );
        return (Outcome::Invalid, why);
    }
    let compared = |wanted: &dyn Fn(&Check) -> bool| {
        checks.iter().any(|check| check.outcome != CheckOutcome::NotCompared && wanted(check))
    };
    let subjects = comparison.subjects.iter().skip(1).map(|subject| subject.label.clone());
    let missing: Vec<String> = subjects
        .filter(|label| !compared(&|check| check.subject == *label))
        .chain(
            tolerances
                .iter()
                .filter_map(|tolerance| tolerance.metric.clone())
                .filter(|key| !compared(&|check| check.metric == *key)),
        )
        .collect();
    let regressed: Vec<&Check> =
        checks.iter().filter(|check| check.outcome == CheckOutcome::Regressed).collect();
    if !regressed.is_empty() {
        let mut names: Vec<String> = Vec::new();
        for check in &regressed {
            if !names.contains(&check.title) {
                names.push(check.title.clone());
            }
        }
        let weak = regressed.iter().filter(|check| check.interval.is_none()).count();
        let weaker = match weak {
            0 => "",
            _ => {
                " Without enough repetitions for an interval this is the plain difference, which chance may have brought."
            }
        };
        let why = format!("Worse by more than the tolerance: {}.{weaker}", names.join("; "));
        return (Outcome::Regressed, why);
    }
    if comparison.subjects.len() < 2 || !missing.is_empty() {
        let what = if missing.is_empty() {
            "There is one subject only".to_owned()
        } else {
            format!("Nothing could be compared of {}", super::words::list(&missing))
        };
        return (Outcome::NotCompared, format!("{what}, so nothing is known about a regression."));
    }
    let open = checks.iter().filter(|check| check.outcome == CheckOutcome::NotShown).count();
    let plain =
        checks.iter().filter(|check| check.outcome == CheckOutcome::Held && check.interval.is_none()).count();
    let mut why = "Nothing is worse by more than the tolerance, as far as these runs show.".to_owned();
    if open > 0 {
        why.push_str(&format!(
            " For {open} of {} this is not shown: the interval reaches beyond it, and more repetitions would tell, or times are \
             lower bounds.",
            format::count(checks.len() as u64)
        ));
    }
    if plain > 0 {
        why.push_str(" Without enough repetitions for intervals, plain differences were held against it.");
    }
    (Outcome::Held, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Group, Subject, Values};

    fn tolerance(text: &str) -> Tolerance {
        text.parse().unwrap()
    }

    #[test]
    fn tolerances_are_shares_of_the_baseline_or_amounts_in_the_metrics_unit() {
        assert_eq!(tolerance("5%"), Tolerance { metric: None, amount: Amount::Relative(0.05) });
        let p99 = Some("response_p99_ms".to_owned());
        assert_eq!(tolerance("p99=10 %"), Tolerance { metric: p99.clone(), amount: Amount::Relative(0.1) });
        assert_eq!(
            tolerance("response_p99_ms=2s"),
            Tolerance { metric: p99, amount: Amount::Absolute(2000.0) }
        );
        assert_eq!(tolerance("dhr=1pt").amount, Amount::Absolute(0.01));
        for wrong in ["", "5", "-5%", "p99", "p99=", "5ms", "nothing=5%", "dhr_ideal=1%", "dhr=2ms", "p99=%"]
        {
            let said = wrong.parse::<Tolerance>().unwrap_err().to_string();
            assert!(said.contains('`'), "{wrong}: {said}");
        }
    }

    fn comparison(better: Direction, difference: f64, interval: Option<(f64, f64)>) -> Comparison {
        let contrast = Contrast {
            subject: "head".into(),
            base: "base".into(),
            difference: Some(difference),
            interval,
            ..Contrast::default()
        };
        let key = if better == Direction::More { "throughput_per_s" } else { "response_mean_ms" };
        let row = MetricRow {
            metric: key.into(),
            title: "It".into(),
            group: Group::Speed,
            better,
            worth_mentioning: Some(0.5),
            headline: true,
            values: vec![Values { mean: Some(100.0), ..Values::default() }, Values::default()],
            contrasts: vec![contrast],
        };
        let table = MetricTable {
            workload: "w".into(),
            condition: "plain".into(),
            scope: "top".into(),
            phases: vec![],
            judged: true,
            tests: 1,
            rows: vec![row],
            errors: Default::default(),
        };
        let subject = |label: &str| Subject { label: label.into(), ..Subject::default() };
        Comparison {
            subjects: vec![subject("base"), subject("head")],
            tables: vec![table],
            ..Comparison::default()
        }
    }

    fn came_of(better: Direction, difference: f64, interval: Option<(f64, f64)>) -> (Outcome, CheckOutcome) {
        let gate = hold(&comparison(better, difference, interval), &[tolerance("5%")]);
        (gate.outcome, gate.checks[0].outcome)
    }

    #[test]
    fn with_repetitions_the_whole_interval_must_lie_beyond_the_tolerance() {
        use Direction::{Less, More};
        let regressed = (Outcome::Regressed, CheckOutcome::Regressed);
        assert_eq!(came_of(Less, 9.0, Some((5.5, 12.5))), regressed);
        assert_eq!(came_of(Less, 9.0, Some((4.5, 13.5))), (Outcome::Held, CheckOutcome::NotShown));
        assert_eq!(came_of(Less, 1.0, Some((-2.0, 4.0))), (Outcome::Held, CheckOutcome::Held));
        assert_eq!(came_of(More, -9.0, Some((-12.5, -5.5))), regressed, "less of what should be more");
        assert_eq!(
            came_of(More, 9.0, Some((5.5, 12.5))),
            (Outcome::Held, CheckOutcome::Held),
            "better is never worse"
        );
    }

    #[test]
    fn without_an_interval_the_plain_difference_counts_and_that_is_said() {
        assert_eq!(came_of(Direction::Less, 5.1, None), (Outcome::Regressed, CheckOutcome::Regressed));
        assert_eq!(came_of(Direction::Less, 4.9, None), (Outcome::Held, CheckOutcome::Held));
        let gate = hold(&comparison(Direction::Less, 9.0, None), &[tolerance("5%")]);
        assert!(gate.why.contains("chance may have brought"), "{}", gate.why);
    }

    #[test]
    fn a_named_metric_has_its_own_tolerance_and_without_one_for_all_no_other_is_held() {
        let found = comparison(Direction::Less, 9.0, None);
        assert_eq!(hold(&found, &[tolerance("5%"), tolerance("mean=10%")]).outcome, Outcome::Held);
        let gate = hold(&found, &[tolerance("p99=5%")]);
        assert_eq!((gate.outcome, gate.checks.len()), (Outcome::NotCompared, 0));
        assert!(gate.why.contains("response_p99_ms"), "{}", gate.why);
        let tiny = comparison(Direction::Less, 0.4, None);
        assert_eq!(hold(&tiny, &[tolerance("0%")]).outcome, Outcome::Held, "not worth mentioning");
        assert_eq!(hold(&tiny, &[tolerance("mean=0%")]).outcome, Outcome::Regressed);
    }

    #[test]
    fn invalid_runs_and_what_cannot_be_compared_are_never_a_pass() {
        let mut found = comparison(Direction::Less, 0.0, None);
        found.tables[0].rows[0].contrasts[0].verdict = Verdict::NotComparable;
        assert_eq!(hold(&found, &[tolerance("5%")]).outcome, Outcome::NotCompared);
        let mut found = comparison(Direction::Less, 50.0, None);
        found.runs.push(crate::document::ComparedRun { invalid: true, ..Default::default() });
        assert_eq!(hold(&found, &[tolerance("5%")]).outcome, Outcome::Invalid);
        assert_eq!(hold(&Comparison::default(), &[tolerance("5%")]).outcome, Outcome::NotCompared);
    }
}
