//! A log over time. Steps of a fixed width, which becomes wider when there are too many of them.

use strum::VariantArray;

use super::tally::{GroupTally, RequestSample};
use crate::{agent, referrer};

const SECOND_US: i64 = 1_000_000;
/// Widths of steps in seconds that are chosen when none is given; each is a multiple of the one before.
const WIDTHS_S: [i64; 14] = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 604_800];
/// Steps that are kept while reading.
const MAX_STEPS: usize = 4096;
/// Steps that are shown when no width is given.
const SHOWN_STEPS: usize = 120;

/// First digits of statuses: 0 for none, 6 for everything that begins with another one.
pub(crate) const STATUSES: usize = 7;

/// The place of a status among them.
pub(super) fn status_class(status: u16) -> u8 {
    (status / 100).min(STATUSES as u16 - 1) as u8
}

#[derive(Debug, Clone, Default)]
pub(crate) struct StepCounts {
    pub tally: GroupTally,
    pub by_status: [u64; STATUSES],
    pub by_agent: [u64; agent::AgentKind::VARIANTS.len()],
    pub by_referrer: [u64; referrer::ReferrerKind::VARIANTS.len()],
}

impl StepCounts {
    #[inline]
    fn count(&mut self, counted: RequestSample, marks: StepMarks) {
        self.tally.count(counted);
        self.by_status[usize::from(marks.status_class)] += 1;
        if let Some(kind) = marks.agent {
            self.by_agent[kind as usize] += 1;
        }
        if let Some(kind) = marks.referrer {
            self.by_referrer[kind as usize] += 1;
        }
    }

    fn merge(&mut self, other: &StepCounts) {
        let add =
            |into: &mut [u64], from: &[u64]| into.iter_mut().zip(from).for_each(|(into, from)| *into += from);
        self.tally.merge(&other.tally);
        add(&mut self.by_status, &other.by_status);
        add(&mut self.by_agent, &other.by_agent);
        add(&mut self.by_referrer, &other.by_referrer);
    }
}

/// Further properties of a request; none: the format does not state them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StepMarks {
    /// Place of its status's first digit, below [`STATUSES`].
    pub status_class: u8,
    pub agent: Option<agent::AgentKind>,
    pub referrer: Option<referrer::ReferrerKind>,
}

#[derive(Debug)]
pub(crate) struct StepSeries {
    width_us: i64,
    requested: bool,
    /// Number of the step and its counts, ascending.
    steps: Vec<(i64, StepCounts)>,
    last: usize,
    /// The width had to grow beyond the given one.
    pub widened: bool,
}

impl StepSeries {
    pub(crate) fn new(every_us: Option<i64>) -> Self {
        Self {
            width_us: every_us.unwrap_or(SECOND_US).max(1000),
            requested: every_us.is_some(),
            steps: Vec::new(),
            last: 0,
            widened: false,
        }
    }

    #[inline]
    pub(crate) fn count(&mut self, time_us: i64, counted: RequestSample, marks: StepMarks) {
        let number = time_us.div_euclid(self.width_us);
        if self.steps.get(self.last).is_none_or(|(last, _)| *last != number) {
            self.last = self.find(number);
        }
        self.steps[self.last].1.count(counted, marks);
        if self.steps.len() > MAX_STEPS {
            self.widened |= self.requested;
            self.widen();
        }
    }

    fn find(&mut self, number: i64) -> usize {
        match self.steps.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(at) => at,
            Err(at) => {
                self.steps.insert(at, (number, StepCounts::default()));
                at
            }
        }
    }

    fn widen(&mut self) {
        let wider = WIDTHS_S.iter().map(|seconds| seconds * SECOND_US).find(|width| *width > self.width_us);
        let width = wider.filter(|_| !self.requested).unwrap_or(self.width_us * 2);
        let factor = width / self.width_us;
        let mut wide: Vec<(i64, StepCounts)> = Vec::new();
        for (number, step) in self.steps.drain(..) {
            let number = number.div_euclid(factor);
            match wide.last_mut() {
                Some((last, into)) if *last == number => into.merge(&step),
                _ => wide.push((number, step)),
            }
        }
        (self.steps, self.width_us, self.last) = (wide, width, 0);
    }

    /// Width of a step, and the steps: when each begins, and its counts.
    pub(crate) fn finish(&mut self) -> (i64, Vec<(i64, StepCounts)>) {
        while !self.requested && self.steps.len() > SHOWN_STEPS {
            self.widen();
        }
        let width = self.width_us;
        (
            width,
            std::mem::take(&mut self.steps)
                .into_iter()
                .map(|(number, step)| (number * width, step))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;

    fn one() -> RequestSample {
        RequestSample::new(Class::Hit, 1, None)
    }

    #[test]
    fn steps_become_wider_when_there_are_too_many_and_lose_nothing() {
        let mut series = StepSeries::new(None);
        for second in 0..20_000 {
            series.count((second * 7_919 % 20_000) * SECOND_US, one(), StepMarks::default());
        }
        let (width, steps) = series.finish();
        assert_eq!(width, 300 * SECOND_US);
        assert_eq!(steps.iter().map(|(_, step)| step.tally.requests()).sum::<u64>(), 20_000);
        assert!(steps.iter().all(|(at, _)| at % width == 0));
    }

    #[test]
    fn a_width_that_was_requested_is_kept_as_long_as_possible() {
        let mut series = StepSeries::new(Some(7 * SECOND_US));
        for second in 0..700 {
            series.count(second * SECOND_US, one(), StepMarks::default());
        }
        assert!(!series.widened);
        let (width, steps) = series.finish();
        assert_eq!((width, steps.len()), (7 * SECOND_US, 100));
        let mut series = StepSeries::new(Some(SECOND_US));
        (0..10_000).for_each(|second| series.count(second * SECOND_US, one(), StepMarks::default()));
        assert!(series.widened);
    }
}
