//! Memory of injected faults that requests have met.
//!
//! A fault on purpose is there once: a second attempt at the same request within ten seconds gets a correct response, so
//! that a retry by a proxy succeeds. All workers share the memory, since a second attempt
//! comes on a connection of its own. It is looked up only for requests that a fault is meant for.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use assay_base::clock::SECOND_NS;
use assay_workload::XactId;

/// Time for which a first attempt is remembered.
const REMEMBERED_NS: u64 = 10 * SECOND_NS;
/// Most attempts that are remembered; beyond that the oldest are forgotten sooner.
const MOST_REMEMBERED: usize = 1 << 16;

/// Place of an attempt among those at the same request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultAttempt {
    /// The first: it meets the fault.
    First,
    /// Another attempt at the same request.
    Again,
    /// A later step of the same xact, for another object.
    NextStep,
}

/// Requests that met a fault in the last ten seconds.
#[derive(Debug, Default)]
pub struct FaultHistory {
    recent: Mutex<RecentAttempts>,
}

#[derive(Debug, Default)]
struct RecentAttempts {
    /// In the order of time.
    order: VecDeque<(u64, XactId)>,
    /// The object that was requested.
    keys: HashMap<XactId, u64>,
}

impl FaultHistory {
    /// Records a request for the object with this key, which a fault is meant for.
    pub fn record(&self, xact: XactId, key: u64, now_ns: u64) -> FaultAttempt {
        // Nothing is left half done in there, whoever panicked.
        self.recent.lock().unwrap_or_else(PoisonError::into_inner).record(xact, key, now_ns)
    }
}

impl RecentAttempts {
    fn record(&mut self, xact: XactId, key: u64, now_ns: u64) -> FaultAttempt {
        while let Some((at_ns, oldest)) = self.order.front().copied() {
            if now_ns.saturating_sub(at_ns) <= REMEMBERED_NS && self.order.len() < MOST_REMEMBERED {
                break;
            }
            self.order.pop_front();
            self.keys.remove(&oldest);
        }
        match self.keys.get(&xact) {
            Some(before) if *before == key => FaultAttempt::Again,
            Some(_) => FaultAttempt::NextStep,
            None => {
                self.order.push_back((now_ns, xact));
                self.keys.insert(xact, key);
                FaultAttempt::First
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn xact(number: u64) -> XactId {
        XactId { robot: 1, number, place: 0 }
    }

    #[test]
    fn a_second_attempt_is_known_for_ten_seconds() {
        let fault_history = FaultHistory::default();
        assert_eq!(fault_history.record(xact(1), 7, 0), FaultAttempt::First);
        assert_eq!(fault_history.record(xact(1), 7, 1), FaultAttempt::Again);
        assert_eq!(fault_history.record(xact(2), 7, 2), FaultAttempt::First);
        assert_eq!(fault_history.record(xact(1), 8, REMEMBERED_NS), FaultAttempt::NextStep);
        assert_eq!(fault_history.record(xact(1), 7, REMEMBERED_NS + 1), FaultAttempt::First);
    }

    #[test]
    fn the_memory_has_an_end() {
        let mut recent = RecentAttempts::default();
        for number in 0..2 * MOST_REMEMBERED as u64 {
            assert_eq!(recent.record(xact(number), 1, 5), FaultAttempt::First);
        }
        assert!(recent.order.len() <= MOST_REMEMBERED && recent.keys.len() == recent.order.len());
        assert_eq!(recent.record(xact(2 * MOST_REMEMBERED as u64 - 1), 1, 5), FaultAttempt::Again);
    }
}
