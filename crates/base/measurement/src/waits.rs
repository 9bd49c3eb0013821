//! Waits of a target's threads for a processor that others had, and by how much a request can have been delayed by them: waits on one side,
//! the times of a request on the other, both of one clock.
//!
//! *Does not:* watch anything, nor say which of the target's threads had to do with a request. A request gets the longest
//! waits that it can have met.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// A stretch in which whatever arrived for a thread of the target can have been delayed, because the thread had no processor.
/// Written as an array of three numbers: there are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct Wait {
    /// Earliest end of the wait, in nanoseconds of `CLOCK_MONOTONIC`: what was done before the thread had its processor cannot have been
    /// kept waiting by it.
    pub from_ns: u64,
    /// End of the effect: the thread has done all that had arrived.
    pub to_ns: u64,
    /// Upper bound on the delay, in microseconds.
    pub wait_us: u64,
}

impl From<(u64, u64, u64)> for Wait {
    fn from(numbers: (u64, u64, u64)) -> Self {
        let (from_ns, to_ns, wait_us) = numbers;
        Self { from_ns, to_ns, wait_us }
    }
}

impl From<Wait> for (u64, u64, u64) {
    fn from(wait: Wait) -> Self {
        (wait.from_ns, wait.to_ns, wait.wait_us)
    }
}

/// All waits of a target in a stretch of time: what lies in it and is not among them did not happen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitReport {
    /// Start of the stretch, in nanoseconds of `CLOCK_MONOTONIC`.
    pub from_ns: u64,
    pub until_ns: u64,
    /// The waits that were found meanwhile. They may have begun before.
    pub waits: Vec<Wait>,
}

/// The waits of the last seconds, in the order of their ends.
#[derive(Debug, Clone, Default)]
pub struct WaitTimeline {
    known: Option<(u64, u64)>,
    waits: VecDeque<Wait>,
    /// The longest stretch of them.
    longest_ns: u64,
}

impl WaitTimeline {
    /// Adds the next report. After a gap nothing is known any more of what was before it.
    pub fn add(&mut self, report: &WaitReport) {
        let begins_ns = match self.known {
            Some((from_ns, until_ns)) if report.from_ns <= until_ns => from_ns,
            _ => {
                self.waits.clear();
                report.from_ns
            }
        };
        self.known = Some((begins_ns, report.until_ns));
        for wait in &report.waits {
            self.longest_ns = self.longest_ns.max(wait.to_ns.saturating_sub(wait.from_ns));
            let place = self.waits.partition_point(|known| known.to_ns <= wait.to_ns);
            self.waits.insert(place, *wait);
        }
    }

    /// End of the known stretch; none: nothing is known.
    pub fn known_until_ns(&self) -> Option<u64> {
        self.known.map(|(_, until_ns)| until_ns)
    }

    /// Forgets what ended before this instant: nothing asks for it any more.
    pub fn forget_before(&mut self, ns: u64) {
        while self.waits.front().is_some_and(|wait| wait.to_ns < ns) {
            self.waits.pop_front();
        }
        if let Some((from_ns, until_ns)) = &mut self.known {
            *from_ns = ns.clamp(*from_ns, *until_ns);
        }
        self.longest_ns = self.waits.iter().map(|wait| wait.to_ns - wait.from_ns).max().unwrap_or(0);
    }

    /// Upper bound, in microseconds, on the delay of something that was under way between two instants, if it needed the target so often:
    /// by the longest waits that can be felt meanwhile, and by no more than it took. None: not everything is known of that time.
    pub fn delay_us(&self, from_ns: u64, to_ns: u64, needs: u32) -> Option<u64> {
        self.known.filter(|known| known.0 <= from_ns && to_ns <= known.1)?;
        let first = self.waits.partition_point(|wait| wait.to_ns < from_ns);
        let mut met = Longest::new(needs);
        for wait in self.waits.range(first..) {
            if wait.to_ns.saturating_sub(self.longest_ns) > to_ns {
                break;
            }
            if wait.from_ns <= to_ns {
                met.take(wait.wait_us);
            }
        }
        Some(met.sum_us().min(to_ns.saturating_sub(from_ns).div_ceil(1_000)))
    }
}

/// The sum of the longest of some waits.
#[derive(Debug)]
struct Longest {
    most: usize,
    waits_us: Vec<u64>,
}

impl Longest {
    fn new(most: u32) -> Self {
        Self { most: most as usize, waits_us: Vec::new() }
    }

    fn take(&mut self, wait_us: u64) {
        let place = self.waits_us.partition_point(|longer| *longer >= wait_us);
        if place < self.most {
            self.waits_us.truncate(self.most - 1);
            self.waits_us.insert(place, wait_us);
        }
    }

    fn sum_us(&self) -> u64 {
        self.waits_us.iter().copied().fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn wait(from_ms: u64, to_ms: u64, wait_us: u64) -> Wait {
        Wait { from_ns: from_ms * MS, to_ns: to_ms * MS, wait_us }
    }

    fn timeline(until_ms: u64, waits: Vec<Wait>) -> WaitTimeline {
        let mut timeline = WaitTimeline::default();
        timeline.add(&WaitReport { from_ns: 0, until_ns: until_ms * MS, waits });
        timeline
    }

    #[test]
    fn a_request_gets_the_longest_waits_that_it_can_have_met_and_no_other() {
        let timeline = timeline(100, vec![wait(10, 13, 3_000), wait(20, 22, 2_000), wait(21, 29, 900)]);
        let delay = |from_ms: u64, to_ms: u64, needs| timeline.delay_us(from_ms * MS, to_ms * MS, needs);
        assert_eq!(delay(14, 19, 9), Some(0), "none of them can be felt then");
        assert_eq!(delay(5, 50, 1), Some(3_000));
        assert_eq!(delay(5, 50, 2), Some(5_000));
        assert_eq!(delay(5, 50, 9), Some(5_900));
        assert_eq!(delay(23, 50, 9), Some(900));
        assert_eq!(timeline.delay_us(12 * MS, 12 * MS + 200_000, 1), Some(200), "not by more than it took");
    }

    #[test]
    fn nothing_is_said_of_times_of_which_not_everything_is_known() {
        let mut timeline = timeline(100, vec![wait(10, 13, 3_000)]);
        assert_eq!(timeline.delay_us(90 * MS, 101 * MS, 1), None);
        timeline.add(&WaitReport { from_ns: 100 * MS, until_ns: 200 * MS, waits: vec![] });
        assert_eq!(timeline.delay_us(90 * MS, 101 * MS, 1), Some(0));
        timeline.forget_before(50 * MS);
        assert_eq!(timeline.delay_us(40 * MS, 101 * MS, 1), None);
        timeline.add(&WaitReport { from_ns: 300 * MS, until_ns: 400 * MS, waits: vec![] });
        assert_eq!(timeline.delay_us(90 * MS, 101 * MS, 1), None, "before a gap");
        assert_eq!(timeline.delay_us(310 * MS, 320 * MS, 1), Some(0));
        assert_eq!(WaitTimeline::default().delay_us(0, 1, 1), None);
    }

    proptest! {
        #[test]
        fn the_waits_are_found_wherever_they_lie(
            waits in prop::collection::vec((0u64..1_000, 0u64..300, 0u64..500), 0..40),
            flight in (0u64..1_000, 0u64..1_000),
            needs in 1u32..6,
        ) {
            let waits: Vec<Wait> =
                waits.iter().map(|(from, length, us)| wait(*from, from + length, *us)).collect();
            let (from_ns, to_ns) = (flight.0 * MS, (flight.0 + flight.1) * MS);
            let mut met: Vec<u64> = waits
                .iter()
                .filter(|wait| wait.from_ns <= to_ns && from_ns <= wait.to_ns)
                .map(|wait| wait.wait_us)
                .collect();
            met.sort_unstable_by(|one, other| other.cmp(one));
            let longest: u64 = met.iter().take(needs as usize).sum();
            let delay = timeline(3_000, waits).delay_us(from_ns, to_ns, needs);
            prop_assert_eq!(delay, Some(longest.min(flight.1 * 1_000)));
        }
    }
}
