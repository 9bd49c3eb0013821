//! What follows when Assay itself was late: requests that were held back go out in a burst, and the target, which had less
//! to do before, has more to do for a while. Requests that were not late themselves meet that.
//!
//! What is held back for a time D is as much work for the target as it does in D: that is by how much requests that were in
//! flight then can have been faster, and those that meet the burst slower. (A server that takes requests in the order in which
//! they come finishes none of them later by more than the longest delay of arrivals.) So D is recorded with every request that
//! was in flight from the first delayed one on, until the burst was digested; how busy the target was is known later.
//!
//! One of them is shared by all workers of a process, as numbers: a worker's stall disturbs what others have in flight.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Shorter delays leave no burst to speak of: several requests within a millisecond are what arrivals by chance bring too.
pub const BURST_NS: u64 = 1_000_000;
/// A burst takes at least as many times the delay to be digested: a target that is half busy needs as long again.
const DIGESTED_AFTER: u64 = 2;
/// And at most as many, however many requests are in flight.
const LONGEST: u64 = 20;
/// One delay follows from another within this time, or is a disturbance of its own.
const APART_NS: u64 = 1_000_000_000;

/// The last time that Assay was late, and until when it can be felt.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Aftermath {
    from_ns: AtomicU64,
    until_ns: AtomicU64,
    delay_us: AtomicU64,
}

/// How many are usually in flight.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usual {
    mean: f64,
}

impl Aftermath {
    /// Something that should have been done at `due_ns` was done at `now_ns`, by Assay's own fault.
    #[cold]
    pub fn begin(&self, due_ns: u64, now_ns: u64) {
        let delay_ns = now_ns.saturating_sub(due_ns);
        let goes_on = due_ns <= self.until_ns.load(Relaxed).saturating_add(APART_NS);
        if goes_on {
            self.from_ns.fetch_min(due_ns, Relaxed);
            self.delay_us.fetch_max(delay_ns / 1_000, Relaxed);
        } else {
            self.from_ns.store(due_ns, Relaxed);
            self.delay_us.store(delay_ns / 1_000, Relaxed);
        }
        self.until_ns.fetch_max(now_ns + DIGESTED_AFTER * delay_ns, Relaxed);
    }

    /// By how much, in microseconds, something that was in flight from `sent_ns` to `now_ns` can have been faster or slower.
    #[inline]
    pub fn delay_us(&self, sent_ns: u64, now_ns: u64) -> u64 {
        // Mostly nothing has happened for a while.
        if sent_ns > self.until_ns.load(Relaxed) || now_ns < self.from_ns.load(Relaxed) {
            return 0;
        }
        self.delay_us.load(Relaxed)
    }

    /// Looks whether the burst is digested, every few milliseconds: it is not while more are in flight than usual.
    pub fn look(&self, now_ns: u64, next_ns: u64, in_flight: u64, usual: &mut Usual) {
        let (from_ns, until_ns) = (self.from_ns.load(Relaxed), self.until_ns.load(Relaxed));
        if now_ns > until_ns {
            usual.note(in_flight);
            return;
        }
        let longest_ns = from_ns + LONGEST * 1_000 * self.delay_us.load(Relaxed);
        if usual.is_exceeded_by(in_flight) && next_ns <= longest_ns {
            self.until_ns.fetch_max(next_ns, Relaxed);
        }
    }
}

impl Usual {
    /// About so many of the last looks count.
    const LOOKS: f64 = 32.0;

    fn note(&mut self, in_flight: u64) {
        self.mean += (in_flight as f64 - self.mean) / Self::LOOKS;
    }

    fn is_exceeded_by(self, in_flight: u64) -> bool {
        in_flight as f64 > self.mean + 2.0 * self.mean.sqrt() + 1.0
    }
}

/// For how long, by now, something has been overdue, if that is long enough for a burst; in nanoseconds.
#[inline]
pub fn burst_ns(due_ns: u64, now_ns: u64) -> Option<u64> {
    now_ns.checked_sub(due_ns).filter(|late_ns| *late_ns >= BURST_NS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const START: u64 = 100_000 * MS;

    #[test]
    fn what_was_in_flight_during_a_delay_or_soon_after_it_is_disturbed_and_nothing_else() {
        let aftermath = Aftermath::default();
        assert_eq!(aftermath.delay_us(START, START + 10 * MS), 0, "nothing has happened");
        aftermath.begin(START, START + 50 * MS);
        let disturbed = |sent_ms: i64, ended_ms: i64| {
            let at = |ms: i64| START.saturating_add_signed(ms * MS as i64);
            aftermath.delay_us(at(sent_ms), at(ended_ms))
        };
        assert_eq!(disturbed(-20, -1), 0, "ended before");
        assert_eq!(disturbed(-20, 1), 50_000, "was in flight when it began");
        assert_eq!(disturbed(100, 120), 50_000, "meets the burst");
        assert_eq!(disturbed(151, 170), 0, "is sent when the burst is digested");
    }

    #[test]
    fn a_burst_lasts_while_more_are_in_flight_than_usual_but_not_for_ever() {
        let (aftermath, mut usual) = (Aftermath::default(), Usual::default());
        for _ in 0..200 {
            aftermath.look(START, START + 20 * MS, 10, &mut usual);
        }
        aftermath.begin(START, START + 50 * MS);
        let mut now_ns = START + 50 * MS;
        while now_ns < START + 5_000 * MS {
            let in_flight = if now_ns < START + 400 * MS { 80 } else { 11 };
            aftermath.look(now_ns, now_ns + 20 * MS, in_flight, &mut usual);
            now_ns += 20 * MS;
        }
        assert_eq!(aftermath.delay_us(START + 390 * MS, now_ns), 50_000);
        assert_eq!(aftermath.delay_us(START + 440 * MS, now_ns), 0);
        aftermath.begin(now_ns, now_ns + 10 * MS);
        for _ in 0..1_000 {
            aftermath.look(now_ns, now_ns + 20 * MS, 1_000, &mut usual);
            now_ns += 20 * MS;
        }
        assert_eq!(aftermath.delay_us(now_ns - 19_000 * MS, now_ns), 0, "twenty times the delay is enough");
    }

    #[test]
    fn a_delay_soon_after_another_is_of_the_same_disturbance_and_a_later_one_is_not() {
        let aftermath = Aftermath::default();
        aftermath.begin(START, START + 50 * MS);
        aftermath.begin(START + 200 * MS, START + 202 * MS);
        assert_eq!(aftermath.delay_us(START + 10 * MS, START + 60 * MS), 50_000);
        let later = START + 5_000 * MS;
        aftermath.begin(later, later + 2 * MS);
        assert_eq!(aftermath.delay_us(later, later + MS), 2_000);
    }

    #[test]
    fn a_moment_is_no_burst() {
        assert_eq!(burst_ns(START, START + MS - 1), None);
        assert_eq!(burst_ns(START, START + MS), Some(MS));
        assert_eq!(burst_ns(START + MS, START), None);
    }
}
