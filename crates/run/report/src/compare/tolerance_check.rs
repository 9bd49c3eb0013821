//! Check of a comparison against tolerances: whether something got worse by more than is allowed.

use assay_base::settings::show::series;

use crate::format;

use super::document::{Comparison, Contrast, Direction, MetricRow, MetricTable, Verdict};
use super::gate::{Amount, CheckOutcome, Gate, GateCheck, GateOutcome, Tolerance};
use super::paired::FEWEST_PAIRS;
use super::{metric, text};

/// Metrics to which a tolerance for all applies beside the headline metrics.
const ALSO: [&str; 1] = ["errors_share"];

/// Holds tolerances against every judged stretch of a comparison.
pub fn check_tolerances(comparison: &Comparison, tolerances: &[Tolerance]) -> Gate {
    let checks: Vec<GateCheck> = comparison
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

fn check(table: &MetricTable, row: &MetricRow, contrast: &Contrast, tolerance: &Tolerance) -> GateCheck {
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
    // From two repetitions there is an interval, so wide that it would hold any regression to be undecided.
    let tested = contrast.pairs as usize >= FEWEST_PAIRS;
    let interval = contrast.interval.filter(|_| comparable && tested).map(|(low, high)| {
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
    GateCheck {
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

fn outcome(comparison: &Comparison, tolerances: &[Tolerance], checks: &[GateCheck]) -> (GateOutcome, String) {
    let invalid = comparison.runs.iter().filter(|run| run.invalid).count();
    if invalid > 0 {
        let are = if invalid == 1 { "run are" } else { "runs are" };
        let why = format!(
            "The numbers of {invalid} {are} not known because of Assay or the lab, so nothing is held against the \
             tolerance."
        );
        return (GateOutcome::Invalid, why);
    }
    let compared = |wanted: &dyn Fn(&GateCheck) -> bool| {
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
    let regressed: Vec<&GateCheck> =
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
        return (GateOutcome::Regressed, why);
    }
    let left_out = comparison.left_out.iter().filter(|run| run.errors > 0 || !run.are_errors_known).count();
    if left_out > 0 {
        let runs = text::plural(left_out, "run is", "runs are");
        let why = format!(
            "{runs} left out in which something was wrong, or may have been: nothing is known about a regression."
        );
        return (GateOutcome::Invalid, why);
    }
    if comparison.subjects.len() < 2 || !missing.is_empty() {
        let what = if missing.is_empty() {
            "There is one subject only".to_owned()
        } else {
            format!("Nothing could be compared of {}", series(&missing))
        };
        return (GateOutcome::NotCompared, format!("{what}, so nothing is known about a regression."));
    }
    let judged = comparison.tables.iter().filter(|table| table.judged).flat_map(|table| &table.rows);
    let held = judged.filter(|row| tolerance_of(row, tolerances).is_some());
    let is_unknown = |contrast: &&Contrast| contrast.verdict == Verdict::NotComparable && contrast.pairs > 0;
    let unknown = held.flat_map(|row| &row.contrasts).filter(is_unknown).count();
    let open = unknown + checks.iter().filter(|check| check.outcome == CheckOutcome::NotShown).count();
    let plain =
        checks.iter().filter(|check| check.outcome == CheckOutcome::Held && check.interval.is_none()).count();
    let mut why = "Nothing is worse by more than the tolerance, as far as these runs show.".to_owned();
    if open > 0 {
        why.push_str(&format!(
            " For {open} of {} this is not shown: the interval reaches beyond it, and more repetitions would tell, or times are \
             lower bounds, or values are not known.",
            format::count(checks.len() as u64)
        ));
    }
    if plain > 0 {
        why.push_str(" Without enough repetitions for intervals, plain differences were held against it.");
    }
    (GateOutcome::Held, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::document::{MetricGroup, Subject, Values};

    fn tolerance(text: &str) -> Tolerance {
        text.parse().unwrap()
    }

    fn comparison(better: Direction, difference: f64, interval: Option<(f64, f64)>) -> Comparison {
        let contrast = Contrast {
            subject: "head".into(),
            base: "base".into(),
            pairs: FEWEST_PAIRS as u32,
            difference: Some(difference),
            interval,
            ..Contrast::default()
        };
        let key = if better == Direction::More { "throughput_per_s" } else { "response_mean_ms" };
        let row = MetricRow {
            metric: key.into(),
            title: "It".into(),
            group: MetricGroup::Speed,
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

    fn came_of(
        better: Direction,
        difference: f64,
        interval: Option<(f64, f64)>,
    ) -> (GateOutcome, CheckOutcome) {
        let gate = check_tolerances(&comparison(better, difference, interval), &[tolerance("5%")]);
        (gate.outcome, gate.checks[0].outcome)
    }

    #[test]
    fn with_repetitions_the_whole_interval_must_lie_beyond_the_tolerance() {
        use Direction::{Less, More};
        let regressed = (GateOutcome::Regressed, CheckOutcome::Regressed);
        assert_eq!(came_of(Less, 9.0, Some((5.5, 12.5))), regressed);
        assert_eq!(came_of(Less, 9.0, Some((4.5, 13.5))), (GateOutcome::Held, CheckOutcome::NotShown));
        assert_eq!(came_of(Less, 1.0, Some((-2.0, 4.0))), (GateOutcome::Held, CheckOutcome::Held));
        assert_eq!(came_of(More, -9.0, Some((-12.5, -5.5))), regressed, "less of what should be more");
        assert_eq!(
            came_of(More, 9.0, Some((5.5, 12.5))),
            (GateOutcome::Held, CheckOutcome::Held),
            "better is never worse"
        );
    }

    #[test]
    fn the_interval_of_two_repetitions_does_not_excuse_a_regression() {
        let mut two = comparison(Direction::More, -10.0, Some((-70.0, 50.0)));
        two.tables[0].rows[0].contrasts[0].pairs = 2;
        let gate = check_tolerances(&two, &[tolerance("5%")]);
        assert_eq!((gate.outcome, gate.checks[0].outcome), (GateOutcome::Regressed, CheckOutcome::Regressed));
        assert_eq!(gate.checks[0].interval, None);
    }

    #[test]
    fn without_an_interval_the_plain_difference_counts_and_that_is_said() {
        assert_eq!(came_of(Direction::Less, 5.1, None), (GateOutcome::Regressed, CheckOutcome::Regressed));
        assert_eq!(came_of(Direction::Less, 4.9, None), (GateOutcome::Held, CheckOutcome::Held));
        let gate = check_tolerances(&comparison(Direction::Less, 9.0, None), &[tolerance("5%")]);
        assert!(gate.why.contains("chance may have brought"), "{}", gate.why);
    }

    #[test]
    fn a_named_metric_has_its_own_tolerance_and_without_one_for_all_no_other_is_held() {
        let found = comparison(Direction::Less, 9.0, None);
        assert_eq!(
            check_tolerances(&found, &[tolerance("5%"), tolerance("mean=10%")]).outcome,
            GateOutcome::Held
        );
        let gate = check_tolerances(&found, &[tolerance("p99=5%")]);
        assert_eq!((gate.outcome, gate.checks.len()), (GateOutcome::NotCompared, 0));
        assert!(gate.why.contains("response_p99_ms"), "{}", gate.why);
        let tiny = comparison(Direction::Less, 0.4, None);
        assert_eq!(
            check_tolerances(&tiny, &[tolerance("0%")]).outcome,
            GateOutcome::Held,
            "not worth mentioning"
        );
        assert_eq!(check_tolerances(&tiny, &[tolerance("mean=0%")]).outcome, GateOutcome::Regressed);
    }

    #[test]
    fn a_metric_that_is_not_known_beside_others_that_are_is_counted_as_not_shown() {
        let mut found = comparison(Direction::Less, 1.0, Some((-2.0, 4.0)));
        let unknown = comparison(Direction::More, -90.0, None).tables.remove(0).rows.remove(0);
        found.tables[0].rows.push(unknown);
        let contrast = &mut found.tables[0].rows[1].contrasts[0];
        (contrast.verdict, contrast.pairs) = (Verdict::NotComparable, 3);
        let gate = check_tolerances(&found, &[tolerance("5%")]);
        assert_eq!((gate.outcome, gate.checks.len()), (GateOutcome::Held, 2));
        assert!(gate.why.contains("For 1 of 2"), "{}", gate.why);
    }

    #[test]
    fn numbers_that_are_not_known_and_what_cannot_be_compared_are_never_a_pass() {
        let mut found = comparison(Direction::Less, 0.0, None);
        found.tables[0].rows[0].contrasts[0].verdict = Verdict::NotComparable;
        assert_eq!(check_tolerances(&found, &[tolerance("5%")]).outcome, GateOutcome::NotCompared);
        let mut found = comparison(Direction::Less, 50.0, None);
        found.runs.push(crate::compare::document::ComparedRun { invalid: true, ..Default::default() });
        assert_eq!(check_tolerances(&found, &[tolerance("5%")]).outcome, GateOutcome::Invalid);
        assert_eq!(
            check_tolerances(&Comparison::default(), &[tolerance("5%")]).outcome,
            GateOutcome::NotCompared
        );
    }
}
