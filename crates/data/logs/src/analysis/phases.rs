//! Requests by phase of a run. A request belongs to the phase in which it was due, which its `X-Assay` names; where a line has
//! none, to the phase in which the proxy logged it.

use assay_workload::mark::RequestMark;

use super::tally::{GroupTally, RequestSample};
use crate::access::Access;

/// A phase of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseSpan {
    /// Number in the schedule, from 0, as in `X-Assay`.
    pub number: u16,
    pub name: String,
    /// Beginning, Unix time in microseconds.
    pub from_us: i64,
    pub to_us: i64,
}

/// Counts of the phases of a run.
#[derive(Debug)]
pub(super) struct PhaseTallies {
    pub phases: Vec<(PhaseSpan, GroupTally)>,
    /// Requests whose line names the phase in which they were due.
    pub by_due: u64,
    /// Requests that were assigned by the time in their line.
    pub by_time: u64,
}

impl PhaseTallies {
    pub(super) fn new(spans: &[PhaseSpan]) -> Self {
        let phases = spans.iter().map(|span| (span.clone(), GroupTally::default())).collect();
        Self { phases, by_due: 0, by_time: 0 }
    }

    /// True when there are phases to tell apart.
    #[inline]
    pub(super) fn any(&self) -> bool {
        !self.phases.is_empty()
    }

    pub(super) fn count(&mut self, access: &Access<'_>, counted: RequestSample) {
        let mark = RequestMark::parse(access.xact);
        let is_meant = |span: &PhaseSpan| match (mark, access.time_us) {
            (Some(mark), _) => span.number == mark.phase,
            (None, Some(time_us)) => (span.from_us..span.to_us).contains(&time_us),
            (None, None) => false,
        };
        if let Some((_, tally)) = self.phases.iter_mut().find(|(span, _)| is_meant(span)) {
            tally.count(counted);
            *(if mark.is_some() { &mut self.by_due } else { &mut self.by_time }) += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::Class;

    #[test]
    fn a_request_belongs_to_the_phase_in_which_it_was_due_and_not_to_that_of_its_line() {
        let span =
            |number, name: &str, from_us, to_us| PhaseSpan { number, name: name.into(), from_us, to_us };
        let mut phases = PhaseTallies::new(&[span(0, "fill", 0, 100), span(2, "top", 100, i64::MAX)]);
        let line = |time_us, xact| Access { time_us: Some(time_us), xact, ..Access::default() };
        let counted = RequestSample::new(Class::Hit, 1, None);
        for (time_us, xact) in [
            // Due in the first phase, logged in the second.
            (150, b"1-2-3-0-b".as_slice()),
            (50, b"1-2-3-2-b"),
            // Without the field, or with one that is none of ours, the time decides.
            (50, b""),
            (100, b"x"),
            // A phase that never began has no requests.
            (100, b"1-2-3-1-b"),
        ] {
            phases.count(&line(time_us, xact), counted);
        }
        let counts: Vec<u64> = phases.phases.iter().map(|(_, tally)| tally.requests()).collect();
        assert_eq!((counts, phases.by_due, phases.by_time), (vec![2, 2], 2, 2));
    }
}
