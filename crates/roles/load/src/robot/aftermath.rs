//! What follows when Assay itself was late: requests that were held back go out in a burst, and the target, which had less
//! to do before, has more to do for a while. Requests that were not late themselves meet that.
//!
//! What is held back for a time D is as much work for the target as it does in D: that is by how much requests that were in
//! flight then can have been faster, and those that meet the burst slower. (A server that takes requests in the order in which
//! they come finishes none of them later by more than the longest delay of arrivals.) So D is recorded with every request that
//! was in flight from the first delayed one on, until the burst was digested; how busy the target was is known later.
//!
//! One of them is shared by all workers of a process, as numbers: a worker's stall disturbs what others have in flight.
//!
//! # Own delays
//!
//! *Own delays.* For each xact a robot measures how late it was sent, how long its response lay unread (the kernel timestamps what it receives,
//! `net::arrival`; converted to `CLOCK_MONOTONIC` every 20 ms), and how late the origin was (`-d<µs>` in its mark: how long the request lay
//! unread there, and by how much its think time ended late). `load::robot::aftermath` computes what a delay of a millisecond or more does to
//! others (held-back requests go out in a burst): no departure moves by more than the longest delay of arrivals. Xacts that were held back or
//! sent in the burst are recorded separately from those that were merely in flight, which met it only if the target was busy. Up to 0.1 ms that
//! a response lay unread is subtracted from its times (`net::arrival::sooner_us`): the last byte counts at the kernel's timestamp. Up to 50
//! µs of lateness is subtracted, too (`Xact::begun_late_us`): a time begins when its request was sent. An xact that can have been delayed by 50
//! µs or more is recorded once more, with its time as seen and the least that it can have been (`Times::disturbed`).

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::tally::Felt;

/// Shorter delays leave no burst to speak of: several requests within a millisecond are what arrivals by chance bring too.
pub const BURST_NS: u64 = 1_000_000;
/// A burst takes at least as many times the delay to be digested: a target that is half busy needs as long again.
const DIGESTED_AFTER: u64 = 2;
/// And at most as many, however many requests are in flight.
const LONGEST: u64 = 20;
/// A delay of this part of the last one, or more, goes on with it where it can be felt for longer.
const ALIKE: u64 = 2;

/// The last two times that Assay was late, and until when each can be felt.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Aftermath {
    last: Delay,
    /// The one before: what was in flight then may still be.
    before: Delay,
}

/// A delay, and from when until when it can be felt.
#[derive(Debug, Default)]
struct Delay {
    from_ns: AtomicU64,
    until_ns: AtomicU64,
    /// When the burst should have been digested: what is sent later meets it, if it can be felt still.
    digested_ns: AtomicU64,
    delay_us: AtomicU64,
    /// So many requests were sent late meanwhile.
    held: AtomicU64,
}

/// How many are usually in flight.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usual {
    mean: f64,
}

impl Delay {
    fn all(&self) -> [&AtomicU64; 5] {
        [&self.from_ns, &self.until_ns, &self.digested_ns, &self.delay_us, &self.held]
    }

    fn set(&self, values: [u64; 5]) {
        self.all().into_iter().zip(values).for_each(|(of, value)| of.store(value, Relaxed));
    }

    fn get(&self) -> [u64; 5] {
        self.all().map(|of| of.load(Relaxed))
    }

    /// The delay, if something that was in flight from `sent_ns` to `now_ns` can have felt it.
    #[inline]
    fn by(&self, sent_ns: u64, now_ns: u64) -> Option<Felt> {
        if sent_ns > self.until_ns.load(Relaxed) || now_ns < self.from_ns.load(Relaxed) {
            return None;
        }
        let delay_us = self.delay_us.load(Relaxed).min(u64::from(u32::MAX)) as u32;
        (delay_us > 0).then(|| Felt {
            delay_us,
            held: self.held.load(Relaxed).min(u64::from(u32::MAX)) as u32,
            is_undigested: sent_ns > self.digested_ns.load(Relaxed),
        })
    }
}

impl Aftermath {
    /// Something that should have been done at `due_ns` was done at `now_ns`: by Assay's own fault, if that is late.
    #[inline]
    pub fn note(&self, due_ns: u64, now_ns: u64) {
        if now_ns.saturating_sub(due_ns) >= BURST_NS {
            self.begin(due_ns, now_ns);
        }
    }

    /// Two workers that are late at once may lose each other's delay; the worse is noted again with its next request.
    #[cold]
    fn begin(&self, due_ns: u64, now_ns: u64) {
        let (delay_us, until_ns) = ((now_ns - due_ns) / 1_000, now_ns + DIGESTED_AFTER * (now_ns - due_ns));
        let Self { last, before } = self;
        let last_us = last.delay_us.load(Relaxed);
        let is_felt = due_ns <= last.until_ns.load(Relaxed);
        if is_felt && (until_ns <= last.until_ns.load(Relaxed) || delay_us >= last_us / ALIKE) {
            last.from_ns.fetch_min(due_ns, Relaxed);
            last.delay_us.fetch_max(delay_us, Relaxed);
            last.until_ns.fetch_max(until_ns, Relaxed);
            last.digested_ns.fetch_max(until_ns, Relaxed);
            return;
        }
        before.set(last.get());
        last.set([due_ns, until_ns, until_ns, delay_us, 0]);
    }

    /// A request was sent late at `now_ns`: if that was because of the last delay, it was held back with others.
    #[inline]
    pub fn hold(&self, now_ns: u64) {
        if now_ns <= self.last.until_ns.load(Relaxed) {
            self.last.held.fetch_add(1, Relaxed);
        }
    }

    /// By how much something that was in flight from `sent_ns` to `now_ns` can have been faster or slower.
    #[inline]
    pub fn felt(&self, sent_ns: u64, now_ns: u64) -> Option<Felt> {
        // Mostly nothing has happened for a while.
        match (self.last.by(sent_ns, now_ns), self.before.by(sent_ns, now_ns)) {
            (Some(one), Some(other)) => Some(Felt {
                delay_us: one.delay_us.max(other.delay_us),
                held: one.held.max(other.held),
                is_undigested: one.is_undigested || other.is_undigested,
            }),
            (one, other) => one.or(other),
        }
    }

    /// Looks whether the last burst is digested, every few milliseconds: it is not while more are in flight than usual.
    pub fn look(&self, now_ns: u64, next_ns: u64, in_flight: u64, usual: &mut Usual) {
        let Delay { from_ns, until_ns, delay_us, .. } = &self.last;
        if now_ns > until_ns.load(Relaxed) {
            usual.note(in_flight);
            return;
        }
        let longest_ns = from_ns.load(Relaxed) + LONGEST * 1_000 * delay_us.load(Relaxed);
        if usual.is_exceeded_by(in_flight) && next_ns <= longest_ns {
            until_ns.fetch_max(next_ns, Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

    impl Aftermath {
        fn delay_us(&self, sent_ns: u64, now_ns: u64) -> u32 {
            self.felt(sent_ns, now_ns).map_or(0, |felt| felt.delay_us)
        }
    }

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
        let is_undigested =
            |sent_ms: u64| aftermath.felt(START + sent_ms * MS, now_ns).map(|felt| felt.is_undigested);
        assert_eq!(
            [100, 390].map(is_undigested),
            [Some(false), Some(true)],
            "still there when it should be over"
        );
        assert_eq!(aftermath.delay_us(START + 440 * MS, now_ns), 0);
        aftermath.begin(now_ns, now_ns + 10 * MS);
        for _ in 0..1_000 {
            aftermath.look(now_ns, now_ns + 20 * MS, 1_000, &mut usual);
            now_ns += 20 * MS;
        }
        assert_eq!(aftermath.delay_us(now_ns - 19_000 * MS, now_ns), 0, "twenty times the delay is enough");
    }

    #[test]
    fn small_delays_after_a_large_one_do_not_keep_it_alive() {
        let aftermath = Aftermath::default();
        aftermath.begin(START, START + 2_000 * MS);
        // The large one is felt until 6 s. One small delay after another follows, each within the last.
        let mut due_ns = START + 2_100 * MS;
        while due_ns < START + 9_000 * MS {
            aftermath.note(due_ns, due_ns + 3 * MS);
            due_ns += 5 * MS;
        }
        assert_eq!(aftermath.delay_us(START + 5_000 * MS, START + 5_100 * MS), 2_000_000);
        assert_eq!(aftermath.delay_us(START + 8_000 * MS, START + 8_010 * MS), 3_000);
        assert_eq!(
            aftermath.delay_us(START + 1_000 * MS, START + 8_010 * MS),
            2_000_000,
            "was in flight then"
        );
    }

    #[test]
    fn delays_alike_are_one_disturbance_and_a_later_one_is_another() {
        let aftermath = Aftermath::default();
        aftermath.begin(START, START + 50 * MS);
        aftermath.begin(START + 140 * MS, START + 180 * MS);
        assert_eq!(aftermath.delay_us(START + 250 * MS, START + 251 * MS), 50_000);
        let later = START + 5_000 * MS;
        aftermath.begin(later, later + 2 * MS);
        assert_eq!(aftermath.delay_us(later, later + MS), 2_000);
    }

    #[test]
    fn requests_that_are_held_back_by_one_delay_are_counted() {
        let aftermath = Aftermath::default();
        aftermath.hold(START);
        aftermath.begin(START, START + 2 * MS);
        let held = |at_ms: u64| aftermath.felt(START + at_ms * MS, START + at_ms * MS).map(|felt| felt.held);
        assert_eq!(held(2), Some(0));
        aftermath.hold(START + 2 * MS);
        aftermath.hold(START + 2 * MS);
        assert_eq!(held(2), Some(2));
        aftermath.hold(START + 50 * MS);
        assert_eq!(held(2), Some(2), "late for another reason");
        aftermath.begin(START + 100 * MS, START + 102 * MS);
        assert_eq!([held(2), held(102)], [Some(2), Some(0)]);
    }

    #[test]
    fn a_moment_is_no_burst() {
        let aftermath = Aftermath::default();
        aftermath.note(START, START + MS - 1);
        aftermath.note(START + MS, START);
        assert_eq!(aftermath.delay_us(START, START + MS), 0);
        aftermath.note(START, START + MS);
        assert_eq!(aftermath.delay_us(START, START + MS), 1_000);
    }
}
