//! Whether a promise was kept in a stretch of a run. Several requirements in one text, `p99 < 50ms, errors < 0.1%`, held
//! against what was measured meanwhile.

use std::str::FromStr;

use assay_measurement::interval::{OriginInterval, RobotInterval};
use assay_record::peak::Check;

use super::{Decision, Requirement, RequirementError};
use crate::tally::Tally;

/// What must hold at every moment that is looked at.
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
            part.check_phase(std::iter::empty())?;
        }
        Ok(Self { parts })
    }
}

impl Promise {
    /// Its parts, as they were written.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(Requirement::text)
    }

    /// Holds the intervals of a stretch of `length_s` seconds against it. What cannot be measured does not hold.
    pub fn check<'a>(
        &self,
        robots: impl IntoIterator<Item = &'a RobotInterval>,
        origins: impl IntoIterator<Item = &'a OriginInterval>,
        length_s: f64,
    ) -> Vec<Check> {
        let mut tally = Tally::default();
        robots.into_iter().for_each(|interval| tally.add_robots(interval));
        origins.into_iter().for_each(|interval| tally.add_origins(interval));
        let one = |part: &Requirement| {
            let value = part.metric.read(&tally, Some(length_s));
            Check {
                text: part.text().to_owned(),
                seen: part.words(value),
                held: value.is_some_and(|value| part.decide(&value) == Decision::Held),
            }
        };
        self.parts.iter().map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::histogram::Histogram;

    use super::*;

    fn interval(completed: u64, us: u64) -> RobotInterval {
        let mut times = Histogram::new();
        (0..completed).for_each(|_| times.record(us));
        let mut interval = RobotInterval { length_ms: 1000, ..RobotInterval::default() };
        interval.counts.completed = completed;
        interval.counts.sent = completed;
        interval.counts.due = completed;
        interval.miss.response = times.to_sparse();
        interval
    }

    #[test]
    fn every_part_of_a_promise_is_held_against_the_stretch() {
        let promise: Promise = "p99 < 50ms, errors < 0.1%,rate >= 90".parse().unwrap();
        let parts: Vec<_> = promise.parts().collect();
        assert_eq!(parts, ["p99 < 50ms", "errors < 0.1%", "rate >= 90"]);
        let held = |us, length_s| -> Vec<bool> {
            let intervals = [interval(100, us), interval(100, us)];
            promise.check(&intervals, [], length_s).iter().map(|check| check.held).collect()
        };
        assert_eq!(held(20_000, 2.0), [true, true, true]);
        assert_eq!(held(60_000, 2.0), [false, true, true]);
        assert_eq!(held(20_000, 4.0), [true, true, false]);
        assert!(!promise.check([], [], 1.0)[0].held, "nothing to measure");
    }

    #[test]
    fn a_promise_is_about_no_phase_and_its_faults_are_explained() {
        for wrong in ["", "p99 < 50ms,", "top1.p99 < 5ms", "p99 < 5ms; errors < 1"] {
            assert!(wrong.parse::<Promise>().is_err(), "{wrong}");
        }
    }
}
