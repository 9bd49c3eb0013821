//! Whose wait is ended to make room for others: the one that has lasted longest, found without a search each time.
//!
//! With ten thousand connections a search takes a tenth of a millisecond or more, and where there is no room each new connection needs
//! one. A search therefore finds some of the longest waits, and those are ended one after the other: a wait that is not among them began
//! later, and stays behind them. One that has gone on meanwhile is passed over.

use std::time::Duration;

use super::{Awaits, NEVER, Times, Watch};

/// So many are found with one search.
const FOUND_AT_ONCE: usize = 64;

/// The waits that have lasted longest among those that somebody may end, as far as they are known.
#[derive(Debug, Default)]
pub struct Longest {
    /// When each began, and its place. The one that began first is the last.
    found: Vec<(u64, usize)>,
    /// The instant of a search that found all there are. Nobody has waited for longer before the next tick.
    all_found_ns: Option<u64>,
}

impl Longest {
    /// Ends the longest wait for a peer that is `chosen` and has lasted for `least` at least. False: there is none. What is chosen must
    /// be the same each time.
    pub fn dismiss(&mut self, watch: &Watch, least: Duration, chosen: impl Fn(Wait) -> bool) -> bool {
        let now_ns = watch.now_ns.get();
        let least_ns = u64::try_from(least.as_nanos()).unwrap_or(u64::MAX);
        // One that was told already has no deadline.
        let fits = |times: &Times| {
            let (awaits, keeps, is_stream) = (times.awaits.get(), times.keeps.get(), times.is_stream.get());
            awaits != Awaits::Other
                && times.due_ns.get() != NEVER
                && times.waited_ns(now_ns) >= least_ns
                && chosen(Wait { awaits, keeps, is_stream })
        };
        loop {
            while let Some((began_ns, place)) = self.found.pop() {
                let is_as_it_was = |times: &Times| times.began_ns(now_ns) == began_ns && fits(times);
                if watch.times.borrow().get(place).is_some_and(is_as_it_was) {
                    watch.all.borrow()[place].is_dismissed.set(true);
                    watch.expire(place);
                    watch.count(|ended| ended.dismissed += 1);
                    return true;
                }
            }
            if self.all_found_ns == Some(now_ns) {
                return false;
            }
            self.search(watch, fits);
            if self.found.is_empty() {
                return false;
            }
        }
    }

    fn search(&mut self, watch: &Watch, fits: impl Fn(&Times) -> bool) {
        let now_ns = watch.now_ns.get();
        self.found = watch.waits(|times| fits(times).then(|| times.began_ns(now_ns)));
        self.all_found_ns = (self.found.len() <= FOUND_AT_ONCE).then_some(now_ns);
        if self.found.len() > FOUND_AT_ONCE {
            self.found.select_nth_unstable(FOUND_AT_ONCE);
            self.found.truncate(FOUND_AT_ONCE);
        }
        self.found.sort_unstable_by(|one, other| other.cmp(one));
    }
}

/// A wait, for those who choose whom to end.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// What is waited for.
    pub awaits: Awaits,
    /// Whose place is kept meanwhile ([`super::Deadline::keep`]).
    pub keeps: u32,
    /// It is that of a stream: to end it leaves its connection.
    pub is_stream: bool,
}
