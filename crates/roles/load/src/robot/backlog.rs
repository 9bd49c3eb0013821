//! Backlog at the target after Assay itself was late: requests that were held back go out in a burst, and the target,
//! which had less to do before, has more to do for a while. Requests that were not late themselves meet that.
//!
//! A delay of length D holds back as much work as the target does in D: by that much, requests in flight can have been
//! faster, and those that meet the burst slower. (A server that takes requests in the order of their arrival finishes
//! none of them later by more than the longest delay of arrivals.) So D is recorded with every request that was in flight
//! from the first delayed one on, until the burst has drained; how busy the target was is known later.
//!
//! All workers of a process share one `Backlog`, as numbers: a worker's stall disturbs what others have in flight.
//!
//! # Own delays
//!
//! For each xact a robot measures how late it was sent, how long its response lay unread (the kernel timestamps what it
//! receives, `net::rx_timestamps`; converted to `CLOCK_MONOTONIC` every 20 ms), and how late the origin was (`-d<µs>` in its
//! mark: how long the request lay unread there, and by how much its think time ended late). This file computes the effect
//! of a delay of a millisecond or more on others: no departure moves by more than the longest delay of arrivals. Xacts
//! that were held back or sent in the burst are recorded separately from those that were merely in flight, which met it
//! only if the target was busy. Up to 0.1 ms for which a response lay unread is subtracted from its times
//! (`net::rx_timestamps::min_unread_us`): the last byte counts at the kernel's timestamp. Up to 50 µs of lateness is subtracted,
//! too (`Xact::begun_late_us`): a time begins when its request was sent. An xact that can have been delayed by 50 µs or
//! more is recorded once more, with its time as seen and the least that it can have been (`Times::disturbed`).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::tally::Disturbance;

/// Shorter delays leave no burst to speak of: several requests within a millisecond are what arrivals by chance bring too.
pub const BURST_NS: u64 = 1_000_000;
/// A burst takes at least as many times the delay to be digested: a target that is half busy needs as long again.
const DRAIN_FACTOR: u64 = 2;
/// And at most as many, however many requests are in flight.
const MAX_DRAIN_FACTOR: u64 = 20;
/// A delay of at least this fraction of the last one extends it, if its effect lasts longer.
const SIMILAR_DIVISOR: u64 = 2;

/// The last two times that Assay was late, and until when each can be felt.
#[derive(Debug, Default)]
// A cache line of its own, as all workers read it with each request; processors fetch lines in pairs.
#[repr(align(128))]
pub struct Backlog {
    last: Delay,
    /// The one before: what was in flight then may still be.
    before: Delay,
}

/// A delay, and from when until when it can be felt.
#[derive(Debug, Default)]
struct Delay {
    from_ns: AtomicU64,
    until_ns: AtomicU64,
    /// Expected end of the burst. What is sent later, and is still disturbed, met a burst that lasts longer.
    drained_ns: AtomicU64,
    delay_us: AtomicU64,
    /// Requests that were sent late meanwhile.
    held_back: AtomicU64,
}

/// Running mean of the number of requests in flight.
#[derive(Debug, Clone, Copy, Default)]
pub struct InFlightBaseline {
    mean: f64,
}

impl Delay {
    fn all(&self) -> [&AtomicU64; 5] {
        [&self.from_ns, &self.until_ns, &self.drained_ns, &self.delay_us, &self.held_back]
    }

    fn set(&self, values: [u64; 5]) {
        self.all().into_iter().zip(values).for_each(|(of, value)| of.store(value, Relaxed));
    }

    fn get(&self) -> [u64; 5] {
        self.all().map(|of| of.load(Relaxed))
    }

    /// Disturbance of a request that was in flight from `sent_ns` to `now_ns`, if it can have felt this delay.
    #[inline]
    fn disturbance(&self, sent_ns: u64, now_ns: u64) -> Option<Disturbance> {
        if sent_ns > self.until_ns.load(Relaxed) || now_ns < self.from_ns.load(Relaxed) {
            return None;
        }
        let delay_us = self.delay_us.load(Relaxed).min(u64::from(u32::MAX)) as u32;
        (delay_us > 0).then(|| Disturbance {
            delay_us,
            held_back: self.held_back.load(Relaxed).min(u64::from(u32::MAX)) as u32,
            is_undrained: sent_ns > self.drained_ns.load(Relaxed),
        })
    }
}

impl Backlog {
    /// Records that something due at `due_ns` was done at `now_ns`: by Assay's own fault, if that is late.
    #[inline]
    pub fn record_delay(&self, due_ns: u64, now_ns: u64) {
        if now_ns.saturating_sub(due_ns) >= BURST_NS {
            self.begin(due_ns, now_ns);
        }
    }

    /// Begins a disturbance, or prolongs the last. Two workers that are late at once may lose each other's delay; the
    /// worse is recorded again with its next request.
    #[cold]
    fn begin(&self, due_ns: u64, now_ns: u64) {
        let (delay_us, until_ns) = ((now_ns - due_ns) / 1_000, now_ns + DRAIN_FACTOR * (now_ns - due_ns));
        let Self { last, before } = self;
        let last_us = last.delay_us.load(Relaxed);
        let is_felt = due_ns <= last.until_ns.load(Relaxed);
        if is_felt && (until_ns <= last.until_ns.load(Relaxed) || delay_us >= last_us / SIMILAR_DIVISOR) {
            last.from_ns.fetch_min(due_ns, Relaxed);
            last.delay_us.fetch_max(delay_us, Relaxed);
            last.until_ns.fetch_max(until_ns, Relaxed);
            last.drained_ns.fetch_max(until_ns, Relaxed);
            return;
        }
        // A delay of another size, or a later one, is another disturbance: what was in flight then may still be.
        before.set(last.get());
        last.set([due_ns, until_ns, until_ns, delay_us, 0]);
    }

    /// Counts a request that was sent late at `now_ns`: if that was because of the last delay, it was held back with
    /// others.
    #[inline]
    pub fn count_held_back(&self, now_ns: u64) {
        if now_ns <= self.last.until_ns.load(Relaxed) {
            self.last.held_back.fetch_add(1, Relaxed);
        }
    }

    /// Delay by which a request in flight from `sent_ns` to `now_ns` can have been faster or slower.
    #[inline]
    pub fn disturbance(&self, sent_ns: u64, now_ns: u64) -> Option<Disturbance> {
        // Mostly nothing has happened for a while.
        match (self.last.disturbance(sent_ns, now_ns), self.before.disturbance(sent_ns, now_ns)) {
            (Some(one), Some(other)) => Some(Disturbance {
                delay_us: one.delay_us.max(other.delay_us),
                held_back: one.held_back.max(other.held_back),
                is_undrained: one.is_undrained || other.is_undrained,
            }),
            (one, other) => one.or(other),
        }
    }

    /// Looks whether the last burst is digested, every few milliseconds: it is not while more are in flight than usual.
    pub fn update(
        &self,
        now_ns: u64,
        next_ns: u64,
        in_flight: u64,
        in_flight_baseline: &mut InFlightBaseline,
    ) {
        let Delay { from_ns, until_ns, delay_us, .. } = &self.last;
        if now_ns > until_ns.load(Relaxed) {
            in_flight_baseline.record(in_flight);
            return;
        }
        let longest_ns = from_ns.load(Relaxed) + MAX_DRAIN_FACTOR * 1_000 * delay_us.load(Relaxed);
        if in_flight_baseline.is_exceeded_by(in_flight) && next_ns <= longest_ns {
            until_ns.fetch_max(next_ns, Relaxed);
        }
    }
}

impl InFlightBaseline {
    /// Number of updates that make up most of the mean.
    const UPDATES: f64 = 32.0;

    fn record(&mut self, in_flight: u64) {
        self.mean += (in_flight as f64 - self.mean) / Self::UPDATES;
    }

    fn is_exceeded_by(self, in_flight: u64) -> bool {
        in_flight as f64 > self.mean + 2.0 * self.mean.sqrt() + 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Backlog {
        fn delay_us(&self, sent_ns: u64, now_ns: u64) -> u32 {
            self.disturbance(sent_ns, now_ns).map_or(0, |disturbance| disturbance.delay_us)
        }
    }

    const MS: u64 = 1_000_000;
    const START: u64 = 100_000 * MS;

    #[test]
    fn what_was_in_flight_during_a_delay_or_soon_after_it_is_disturbed_and_nothing_else() {
        let backlog = Backlog::default();
        assert_eq!(backlog.delay_us(START, START + 10 * MS), 0, "nothing has happened");
        backlog.begin(START, START + 50 * MS);
        let disturbed = |sent_ms: i64, ended_ms: i64| {
            let at = |ms: i64| START.saturating_add_signed(ms * MS as i64);
            backlog.delay_us(at(sent_ms), at(ended_ms))
        };
        assert_eq!(disturbed(-20, -1), 0, "ended before");
        assert_eq!(disturbed(-20, 1), 50_000, "was in flight when it began");
        assert_eq!(disturbed(100, 120), 50_000, "meets the burst");
        assert_eq!(disturbed(151, 170), 0, "is sent when the burst is digested");
    }

    #[test]
    fn a_burst_lasts_while_more_are_in_flight_than_usual_but_not_for_ever() {
        let (backlog, mut in_flight_baseline) = (Backlog::default(), InFlightBaseline::default());
        for _ in 0..200 {
            backlog.update(START, START + 20 * MS, 10, &mut in_flight_baseline);
        }
        backlog.begin(START, START + 50 * MS);
        let mut now_ns = START + 50 * MS;
        while now_ns < START + 5_000 * MS {
            let in_flight = if now_ns < START + 400 * MS { 80 } else { 11 };
            backlog.update(now_ns, now_ns + 20 * MS, in_flight, &mut in_flight_baseline);
            now_ns += 20 * MS;
        }
        assert_eq!(backlog.delay_us(START + 390 * MS, now_ns), 50_000);
        let is_undrained = |sent_ms: u64| {
            backlog.disturbance(START + sent_ms * MS, now_ns).map(|disturbance| disturbance.is_undrained)
        };
        assert_eq!(
            [100, 390].map(is_undrained),
            [Some(false), Some(true)],
            "still there when it should be over"
        );
        assert_eq!(backlog.delay_us(START + 440 * MS, now_ns), 0);
        backlog.begin(now_ns, now_ns + 10 * MS);
        for _ in 0..1_000 {
            backlog.update(now_ns, now_ns + 20 * MS, 1_000, &mut in_flight_baseline);
            now_ns += 20 * MS;
        }
        assert_eq!(backlog.delay_us(now_ns - 19_000 * MS, now_ns), 0, "twenty times the delay is enough");
    }

    #[test]
    fn small_delays_after_a_large_one_do_not_keep_it_alive() {
        let backlog = Backlog::default();
        backlog.begin(START, START + 2_000 * MS);
        // The large one is felt until 6 s. One small delay after another follows, each within the last.
        let mut due_ns = START + 2_100 * MS;
        while due_ns < START + 9_000 * MS {
            backlog.record_delay(due_ns, due_ns + 3 * MS);
            due_ns += 5 * MS;
        }
        assert_eq!(backlog.delay_us(START + 5_000 * MS, START + 5_100 * MS), 2_000_000);
        assert_eq!(backlog.delay_us(START + 8_000 * MS, START + 8_010 * MS), 3_000);
        assert_eq!(backlog.delay_us(START + 1_000 * MS, START + 8_010 * MS), 2_000_000, "was in flight then");
    }

    #[test]
    fn delays_alike_are_one_disturbance_and_a_later_one_is_another() {
        let backlog = Backlog::default();
        backlog.begin(START, START + 50 * MS);
        backlog.begin(START + 140 * MS, START + 180 * MS);
        assert_eq!(backlog.delay_us(START + 250 * MS, START + 251 * MS), 50_000);
        let later = START + 5_000 * MS;
        backlog.begin(later, later + 2 * MS);
        assert_eq!(backlog.delay_us(later, later + MS), 2_000);
    }

    #[test]
    fn requests_that_are_held_back_by_one_delay_are_counted() {
        let backlog = Backlog::default();
        backlog.count_held_back(START);
        backlog.begin(START, START + 2 * MS);
        let held_back = |at_ms: u64| {
            backlog
                .disturbance(START + at_ms * MS, START + at_ms * MS)
                .map(|disturbance| disturbance.held_back)
        };
        assert_eq!(held_back(2), Some(0));
        backlog.count_held_back(START + 2 * MS);
        backlog.count_held_back(START + 2 * MS);
        assert_eq!(held_back(2), Some(2));
        backlog.count_held_back(START + 50 * MS);
        assert_eq!(held_back(2), Some(2), "late for another reason");
        backlog.begin(START + 100 * MS, START + 102 * MS);
        assert_eq!([held_back(2), held_back(102)], [Some(2), Some(0)]);
    }

    #[test]
    fn a_moment_is_no_burst() {
        let backlog = Backlog::default();
        backlog.record_delay(START, START + MS - 1);
        backlog.record_delay(START + MS, START);
        assert_eq!(backlog.delay_us(START, START + MS), 0);
        backlog.record_delay(START, START + MS);
        assert_eq!(backlog.delay_us(START, START + MS), 1_000);
    }
}
