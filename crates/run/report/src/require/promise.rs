//! A promise: several requirements in one text, `p99 < 50ms, errors < 0.1%`, checked against a stretch of a run.

use std::str::FromStr;

use assay_measurement::measured::Series;
use assay_measurement::own_error::Certainty;
use assay_record::peak::{Check, StepOutcome};
use assay_record::run::RunInfo;

use super::{Decision, Requirement, RequirementError};
use crate::estimate::FigureEstimate;
use crate::tally::{self, Span, Tally};

/// Requirements that must hold at every moment of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Promise {
    parts: Vec<Requirement>,
}

impl FromStr for Promise {
    type Err = RequirementError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split(',').map(str::parse::<Requirement>).collect::<Result<Vec<_>, _>>()?;
        for part in &parts {
            // It is about a stretch, and no phase of the workload's own is run.
            part.check_no_phase()?;
        }
        Ok(Self { parts })
    }
}

impl Promise {
    /// Parts of the promise, as they were written.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(Requirement::text)
    }

    /// Holds a run against it, over all of its phases together: each part is kept if it holds for every value that its number can
    /// have had, broken if it does for none, and undecided in between. What cannot be measured does not hold.
    pub fn check(&self, run: &RunInfo, series: &Series) -> Vec<Check> {
        let spans = tally::spans(run, series);
        let parts = Tally::of_phases(run, series, &spans, &[]);
        let tally = Tally::of_some(parts.iter().take(spans.len()));
        let length_s = tally.span.map(Span::length_s);
        let one = |part: &Requirement| checked(part, part.metric.read(&tally, length_s));
        self.parts.iter().map(one).collect()
    }
}

fn checked(part: &Requirement, stated: Option<FigureEstimate>) -> Check {
    let outcome = match stated.map(|stated| part.decide(&stated)) {
        Some(Decision::Held) => StepOutcome::Kept,
        Some(Decision::Undecided) => StepOutcome::Undecided,
        Some(Decision::Failed | Decision::TooEarly) | None => StepOutcome::Broken,
    };
    let in_unit = stated.map(|stated| stated.map(|value| part.metric.in_unit(value)));
    let known = in_unit.filter(|stated| stated.own.certainty != Certainty::Unknown);
    Check {
        text: part.text().to_owned(),
        seen: part.value_text(stated),
        outcome,
        value: known.map(|stated| stated.value),
        low: known.and_then(|stated| stated.own.low),
        high: known.and_then(|stated| stated.own.high),
        limit: part.metric.in_unit(part.limit),
        unit: part.metric.unit().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::doubt::{Doubt, Reason};
    use assay_measurement::histogram::Histogram;
    use assay_measurement::interval::RobotInterval;
    use assay_record::run::PhaseInfo;

    use super::*;

    /// A second of a hundred requests that took so long.
    fn second(phase: u16, us: u64) -> RobotInterval {
        let mut times = Histogram::new();
        (0..100).for_each(|_| times.record(us));
        let mut interval = RobotInterval { length_ms: 1000, phase, ..RobotInterval::default() };
        interval.start_ms = u64::from(phase) * 5000;
        interval.counts.completed = 100;
        interval.counts.sent = 100;
        interval.counts.due = 100;
        interval.times.miss.response = times.to_sparse();
        interval
    }

    /// What a promise comes to in seconds like these, each a phase of its own.
    fn checks(promise: &str, seconds: Vec<RobotInterval>, doubts: Vec<Doubt>) -> Vec<Check> {
        let phase = |second: &RobotInterval| PhaseInfo {
            start_ms: Some(second.start_ms),
            end_ms: Some(second.start_ms + 1000),
            expected_requests: Some(100.0),
            ..PhaseInfo::default()
        };
        let phases = seconds.iter().map(phase).collect();
        let mut run = RunInfo { phases, own_errors: true, ..RunInfo::default() };
        run.verdict.doubts = doubts;
        let promise: Promise = promise.parse().unwrap();
        promise.check(&run, &Series { robots: seconds, ..Series::default() })
    }

    #[test]
    fn every_part_of_a_promise_is_held_against_all_phases_together() {
        let outcomes = |us| -> Vec<StepOutcome> {
            let seconds = vec![second(0, us), second(1, us)];
            let checks = checks("p99 < 50ms, errors < 0.1%,rate >= 90", seconds, Vec::new());
            checks.iter().map(|check| check.outcome).collect()
        };
        assert_eq!(outcomes(20_000), [StepOutcome::Kept; 3]);
        assert_eq!(outcomes(60_000), [StepOutcome::Broken, StepOutcome::Kept, StepOutcome::Kept]);
        let nothing = &checks("p99 < 50ms", Vec::new(), Vec::new())[0];
        assert!(nothing.outcome == StepOutcome::Broken && nothing.value.is_none(), "nothing to measure");
        let check = &checks("p99 < 50ms", vec![second(0, 20_000)], Vec::new())[0];
        assert_eq!((check.limit, check.unit.as_str(), check.outcome), (50.0, "ms", StepOutcome::Kept));
        assert!((check.value.unwrap() - 20.0).abs() < 0.2, "{check:?}");
    }

    #[test]
    fn what_can_be_on_either_side_of_the_limit_or_is_unknown_is_undecided() {
        let lost = |count| {
            let mut second = second(0, 20_000);
            // Assay came to these too late: they may have taken any time.
            second.counts.unsent_late = count;
            second
        };
        let of = |second, doubts| checks("p99 < 50ms", vec![second], doubts)[0].clone();
        assert_eq!(of(lost(0), Vec::new()).outcome, StepOutcome::Kept);
        let open = of(lost(20), Vec::new());
        assert!(open.outcome == StepOutcome::Undecided && open.high.is_none(), "{open:?}");
        let gone = of(lost(0), vec![Doubt::serious(Reason::RoleFailed, "gone")]);
        assert!(
            gone.outcome == StepOutcome::Undecided && gone.value.is_none() && gone.seen == "?",
            "{gone:?}"
        );
    }

    #[test]
    fn a_promise_is_about_no_phase_and_its_faults_are_explained() {
        for wrong in ["", "p99 < 50ms,", "top1.p99 < 5ms", "p99 < 5ms; errors < 1"] {
            assert!(wrong.parse::<Promise>().is_err(), "{wrong}");
        }
    }
}
