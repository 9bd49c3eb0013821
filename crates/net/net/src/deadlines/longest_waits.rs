//! The longest waits, which are ended to make room for others, found without a search each time.
//!
//! With ten thousand connections a search takes a tenth of a millisecond or more, and where there is no room each new connection needs
//! one. A search therefore finds some of the longest waits, and those are ended one after the other: a wait that is not among them began
//! later, and stays behind them. One that has gone on meanwhile is passed over.

use std::time::Duration;

use super::{Deadlines, NEVER, WaitReason, WaitTimes};

/// Waits that one search finds.
const MAX_FOUND: usize = 64;

/// The longest waits among those that may be ended, as far as they are known.
#[derive(Debug, Default)]
pub struct LongestWaits {
    /// Start and position of each. The one that began first is the last.
    candidates: Vec<(u64, usize)>,
    /// The instant of a search that found all there are. Nobody has waited for longer before the next tick.
    all_found_ns: Option<u64>,
}

impl LongestWaits {
    /// Ends the longest wait for a peer that is `chosen` and has lasted for `least` at least; false: there is none. The choice must be the
    /// same each time.
    pub fn dismiss(
        &mut self,
        deadlines: &Deadlines,
        least: Duration,
        chosen: impl Fn(PeerWait) -> bool,
    ) -> bool {
        let now_ns = deadlines.now_ns.get();
        let least_ns = u64::try_from(least.as_nanos()).unwrap_or(u64::MAX);
        // One that was told already has no deadline.
        let fits = |times: &WaitTimes| {
            let (reason, held_slot, is_stream) =
                (times.reason.get(), times.held_slot.get(), times.is_stream.get());
            reason != WaitReason::Other
                && times.due_ns.get() != NEVER
                && times.waited_ns(now_ns) >= least_ns
                && chosen(PeerWait { reason, held_slot, is_stream })
        };
        loop {
            while let Some((began_ns, index)) = self.candidates.pop() {
                let is_as_it_was = |times: &WaitTimes| times.began_ns(now_ns) == began_ns && fits(times);
                if deadlines.times.borrow().get(index).is_some_and(is_as_it_was) {
                    deadlines.all.borrow()[index].is_dismissed.set(true);
                    deadlines.expire(index);
                    deadlines.count(|ended| ended.dismissed += 1);
                    return true;
                }
            }
            if self.all_found_ns == Some(now_ns) {
                return false;
            }
            self.search(deadlines, fits);
            if self.candidates.is_empty() {
                return false;
            }
        }
    }

    fn search(&mut self, deadlines: &Deadlines, fits: impl Fn(&WaitTimes) -> bool) {
        let now_ns = deadlines.now_ns.get();
        self.candidates = deadlines.select_waits(|times| fits(times).then(|| times.began_ns(now_ns)));
        self.all_found_ns = (self.candidates.len() <= MAX_FOUND).then_some(now_ns);
        if self.candidates.len() > MAX_FOUND {
            self.candidates.select_nth_unstable(MAX_FOUND);
            self.candidates.truncate(MAX_FOUND);
        }
        self.candidates.sort_unstable_by(|one, other| other.cmp(one));
    }
}

/// A wait that may be ended.
#[derive(Debug, Clone, Copy)]
pub struct PeerWait {
    pub reason: WaitReason,
    /// Key of the slot that is held meanwhile ([`super::Deadline::hold_slot`]).
    pub held_slot: u32,
    /// The wait of a stream: to end it leaves its connection.
    pub is_stream: bool,
}
