//! Instant, within its second, of a request that is known to the second only.
//!
//! Requests of the same second are spread evenly over it, in the order of their lines: the first of *k* at its beginning,
//! each other a *k*-th of a second later. So no second has more than its own, and none begins with a burst that never was.

use std::collections::VecDeque;

use super::order::LogEntry;

const SECOND_US: i64 = 1_000_000;
/// Number of stamps that decide whether they are whole seconds.
const LOOKED_AT: usize = 1000;
/// Requests of a second that are held; more of them follow at its end.
const MOST_HELD: usize = 100_000;

/// Spreads entries that come in the order of their times.
#[derive(Default)]
pub(super) struct SecondSpreader {
    /// Entries of one second, or of the beginning of the log.
    held: Vec<LogEntry>,
    /// Stamps are whole seconds; none: not decided yet.
    whole: Option<bool>,
    /// The instant of the latest entry that went out.
    last_us: Option<i64>,
}

impl SecondSpreader {
    /// Takes an entry; earlier ones whose instants are known now go to `out`, with these in microseconds.
    pub(super) fn push(&mut self, entry: LogEntry, out: &mut VecDeque<(i64, LogEntry)>) {
        match self.whole {
            None => {
                self.held.push(entry);
                if self.held.len() >= LOOKED_AT {
                    self.decide(out);
                }
            }
            Some(false) => self.emit(entry.at_us, entry, out),
            Some(true) => {
                let other = self.held.first().is_some_and(|first| first.at_us != entry.at_us);
                if other || self.held.len() >= MOST_HELD {
                    self.flush(out);
                }
                self.held.push(entry);
            }
        }
    }

    /// Passes on all entries that are held.
    pub(super) fn finish(&mut self, out: &mut VecDeque<(i64, LogEntry)>) {
        if self.whole.is_none() {
            self.decide(out);
        }
        self.flush(out);
    }

    fn decide(&mut self, out: &mut VecDeque<(i64, LogEntry)>) {
        let whole = self.held.iter().all(|entry| entry.at_us.rem_euclid(SECOND_US) == 0);
        self.whole = Some(whole);
        for entry in std::mem::take(&mut self.held) {
            self.push(entry, out);
        }
    }

    fn flush(&mut self, out: &mut VecDeque<(i64, LogEntry)>) {
        let held = std::mem::take(&mut self.held);
        let count = held.len() as i64;
        for (place, entry) in held.into_iter().enumerate() {
            let at_us = entry.at_us.saturating_add(SECOND_US * place as i64 / count);
            self.emit(at_us, entry, out);
        }
    }

    fn emit(&mut self, at_us: i64, entry: LogEntry, out: &mut VecDeque<(i64, LogEntry)>) {
        // Where a line stood too far from its place, it goes at once.
        let at_us = self.last_us.map_or(at_us, |last_us| last_us.max(at_us));
        self.last_us = Some(at_us);
        out.push_back((at_us, entry));
    }
}
