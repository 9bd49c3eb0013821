//! Ends of the idle times of a processor.
//!
//! A pinned thread that is woken while its processor is idle waits for no other thread: the time until it runs is the wake-up
//! latency of the processor. It waits for others only since the processor was idle last.
//!
//! *Does not:* apply to a thread that may run on several processors, which may have waited for another one.

use std::collections::VecDeque;
use std::io;

use super::records::{OUT, PerfRecords, PerfTarget, time_and_cpu};

/// `PERF_RECORD_SWITCH_CPU_WIDE`, which names the other thread too.
const RECORD_SWITCH_CPU_WIDE: u32 = 15;
/// Id of the idle thread.
const IDLE: u32 = 0;
/// Upper bound on the time between the records of a processor and of a thread for the same switch.
const APART_NS: u64 = 5_000;
/// Retention of idle ends, in nanoseconds.
const KNOWN_NS: u64 = 200_000_000;

/// Records of the idle times of a processor.
#[derive(Debug)]
pub struct IdleMonitor {
    number: u32,
    records: PerfRecords,
    ends: IdleEnds,
}

/// Ends of idle times, in order.
#[derive(Debug, Default)]
pub struct IdleEnds {
    at_ns: VecDeque<u64>,
}

impl IdleMonitor {
    /// Starts recording.
    pub fn open(number: u32) -> io::Result<Self> {
        Ok(Self {
            number,
            records: PerfRecords::open(PerfTarget::Processor(number))?,
            ends: IdleEnds::default(),
        })
    }

    pub fn number(&self) -> u32 {
        self.number
    }

    pub fn ends(&self) -> &IdleEnds {
        &self.ends
    }

    /// Reads new records, and forgets those long before `now_ns`.
    pub fn read(&mut self, now_ns: u64) {
        let Self { records, ends, .. } = self;
        // A lost record makes a wait seem longer, which is on the safe side.
        records.take(|kind, misc, record| {
            if kind == RECORD_SWITCH_CPU_WIDE {
                ends.at_ns.extend(idle_end_ns(misc, record));
            }
        });
        ends.forget(now_ns);
    }
}

impl IdleEnds {
    /// Time since the processor was idle last, at an instant when a thread got it; none if that is not known.
    pub fn since_ns(&self, at_ns: u64) -> Option<u64> {
        let later = self.at_ns.partition_point(|end_ns| *end_ns <= at_ns + APART_NS);
        let end_ns = self.at_ns.get(later.checked_sub(1)?)?;
        let since_ns = at_ns.saturating_sub(*end_ns);
        Some(if since_ns <= APART_NS { 0 } else { since_ns })
    }

    fn forget(&mut self, now_ns: u64) {
        while self.at_ns.front().is_some_and(|end_ns| end_ns + KNOWN_NS < now_ns) {
            self.at_ns.pop_front();
        }
    }
}

impl FromIterator<u64> for IdleEnds {
    fn from_iter<I: IntoIterator<Item = u64>>(at_ns: I) -> Self {
        Self { at_ns: at_ns.into_iter().collect() }
    }
}

/// End of an idle time, if the record is of a switch from the idle thread to another.
fn idle_end_ns(misc: u16, record: &[u8]) -> Option<u64> {
    let before = u32::from_ne_bytes(record.get(12..16)?.try_into().ok()?);
    let (at_ns, _) = time_and_cpu(record)?;
    (misc & OUT == 0 && before == IDLE).then_some(at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000;

    #[test]
    fn a_thread_that_follows_idleness_waited_for_nobody() {
        let ends = IdleEnds::from_iter([100 * US, 900 * US]);
        assert_eq!(ends.since_ns(101 * US), Some(0));
        assert_eq!(ends.since_ns(98 * US), Some(0), "both records are of one switch");
        assert_eq!(ends.since_ns(500 * US), Some(400 * US), "another one came between");
        assert_eq!(ends.since_ns(50 * US), None);
    }

    #[test]
    fn a_record_tells_of_idleness_only_where_a_thread_gets_the_processor_after_none() {
        let record = |before: u32| {
            let mut record = [0u8; 32];
            record[12..16].copy_from_slice(&before.to_ne_bytes());
            record[16..24].copy_from_slice(&77u64.to_ne_bytes());
            record
        };
        assert_eq!(idle_end_ns(0, &record(IDLE)), Some(77));
        assert_eq!(idle_end_ns(0, &record(4_711)), None);
        assert_eq!(idle_end_ns(OUT, &record(IDLE)), None, "it gives the processor up, and none follows");
        assert_eq!(idle_end_ns(0, &record(IDLE)[..14]), None);
    }
}
