//! Counts and times of one worker of the robots, and their merging into intervals.
//!
//! A worker owns a [`RobotRecorder`] for each phase that has something under way, and hands what they hold to the
//! [`merge`]r at the end of every *interval*: each full second, and each end of a phase. All workers end the same intervals, so what
//! they send for one interval adds up to the intervals of the run.

pub mod flights;
pub mod ideal;
pub mod merge;
pub mod recorders;

use std::collections::BTreeMap;

use assay_measurement::counts::RobotCounts;
use assay_measurement::error_kind::ErrorKind;
use assay_measurement::histogram::Histogram;
use assay_measurement::outcome::Outcome;
use assay_measurement::own_error::Unrecorded;
use assay_measurement::robot_times::RobotTimes;
use assay_measurement::times::{Burst, TimesRecorder};
use assay_workload::model::{Method, RequestType};
use strum::VariantArray;

use flights::{Exposure, Flight};

/// Methods in the order of [`RobotRecorder`]'s counters.
const METHODS: [Method; 4] = [Method::Get, Method::Head, Method::Post, Method::Put];
/// Request types in the order of [`RobotRecorder`]'s counters.
const TYPES: [RequestType; 6] = [
    RequestType::Basic,
    RequestType::Ims200,
    RequestType::Ims304,
    RequestType::Reload,
    RequestType::Range,
    RequestType::Upload,
];

/// Counts and times of one phase in the current interval. Nothing here allocates while it counts, except for a status code or a length of
/// time that was not seen in the second before.
#[derive(Debug, Default)]
pub struct RobotRecorder {
    /// Counts that are plain numbers; the maps in it stay empty until [`RobotRecorder::counts`].
    pub counts: RobotCounts,
    errors: [u64; ErrorKind::VARIANTS.len()],
    methods: [u64; METHODS.len()],
    types: [u64; TYPES.len()],
    status_200: u64,
    status_304: u64,
    pub times: RobotTimes<TimesRecorder, Histogram>,
    /// Xacts whose times are still to be joined with the waits of the target.
    flights: Vec<Flight>,
}

/// Assay's delays of an xact, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnDelays {
    /// Before it was sent.
    pub before_us: u32,
    /// From the connection, as it counted as sent, to the writing of the request.
    pub connected_us: u32,
    /// Time for which the first byte was perhaps there before its recorded instant.
    pub first_us: u32,
    /// Time for which the last byte was perhaps there before its recorded instant.
    pub last_us: u32,
    /// Delay by the origin.
    pub origin_us: u32,
    /// Assay held it back: it was sent late, or when a response was read late.
    pub is_held_back: bool,
    /// Delay of other xacts that could be felt while this one was in flight.
    pub disturbance: Option<Disturbance>,
}

impl OwnDelays {
    /// Adds a delay before the request was sent.
    #[inline]
    pub fn before(&mut self, us: u32) {
        self.before_us = self.before_us.saturating_add(us);
    }

    /// Delay up to the reading of the last byte, which lay unread for `unread_us`.
    pub fn until(&self, unread_us: u32) -> u32 {
        [self.connected_us, self.origin_us, unread_us].into_iter().fold(self.before_us, u32::saturating_add)
    }

    /// Sum of the delays, as long as they can be.
    #[inline]
    fn sum_us(&self) -> u64 {
        let disturbance_us = self.disturbance.map_or(0, |disturbance| disturbance.delay_us);
        [self.before_us, self.connected_us, self.last_us, self.origin_us, disturbance_us]
            .map(u64::from)
            .iter()
            .sum()
    }

    /// Delay of others as it is recorded: an xact that was held back with others met their burst.
    fn burst(&self) -> Option<Burst> {
        let Disturbance { delay_us, held_back, is_undrained } = self.disturbance?;
        let delay_us = u64::from(delay_us);
        let was_held_back = (self.is_held_back || self.before_us > 0) && held_back > 1;
        Some(if is_undrained || was_held_back { Burst::Met(delay_us) } else { Burst::Passing(delay_us) })
    }
}

/// A delay of others that could be felt by an xact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disturbance {
    /// Length: the xact can have been faster or slower by that much.
    pub delay_us: u32,
    /// Requests held back. A single one was late, and no burst.
    pub held_back: u32,
    /// The burst that followed was not digested when it should have been, and was still under way when the xact was sent.
    pub is_undrained: bool,
}

/// The instants of a completed xact, in nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instants {
    /// Due time, and a moment later if Assay sent it a moment later (`Xact::begun_late_us`).
    pub begin: u64,
    /// Connect begun, or first byte written on a reused connection.
    pub sent: u64,
    /// First byte of the response: when the kernel had it, as far as that is certain.
    pub first_byte: u64,
    /// Last byte of the response, likewise.
    pub last_byte: u64,
}

/// A completed xact, as it is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletedXact {
    pub method: Method,
    pub request_type: RequestType,
    /// True if the xact counts for hit ratios.
    pub basic: bool,
    /// None: the connection was lost before one came, as it was to be.
    pub status: Option<u16>,
    pub outcome: Option<Outcome>,
    pub body_bytes: u64,
    pub at: Instants,
    pub own: OwnDelays,
    /// Time for which its last byte lay unread, in microseconds.
    pub unread_us: u32,
    /// Waits of the target that the xact can have met; none: its times are not joined with waits.
    pub exposure: Option<Exposure>,
}

/// Whether a request is *basic*: a GET of type Basic.
pub fn is_basic(method: Method, request_type: RequestType) -> bool {
    method == Method::Get && request_type == RequestType::Basic
}

/// Shortest delay, in microseconds, from which an xact with this outcome is recorded as disturbed.
#[inline]
fn disturbed_from_us(outcome: Option<Outcome>, at: &Instants) -> u64 {
    let unrecorded = match outcome {
        Some(Outcome::Hit) => Unrecorded::ByTime,
        _ => Unrecorded::Fixed,
    };
    unrecorded.recorded_from_us(micros(at.sent, at.first_byte))
}

/// Records the times of an xact that completed; `waited_us`: by how much waits of the target for processors can have delayed it.
fn record(
    times: &mut TimesRecorder,
    outcome: Option<Outcome>,
    at: &Instants,
    own: &OwnDelays,
    waited_us: u64,
) {
    let response_us = micros(at.begin, at.last_byte);
    let (service_us, ttfb_us) = (micros(at.sent, at.last_byte), micros(at.sent, at.first_byte));
    if own.sum_us() + waited_us < disturbed_from_us(outcome, at) {
        times.record_response(response_us);
        times.record_after_sent(service_us, ttfb_us);
        return;
    }
    let [before, first, last, after_sent] =
        [own.before_us, own.first_us, own.last_us, own.origin_us.saturating_add(own.connected_us)]
            .map(u64::from);
    let after_sent = after_sent + waited_us;
    let seen_and_least = |seen: u64, delay: u64| [seen, seen.saturating_sub(delay)];
    times.record_disturbed(
        seen_and_least(response_us, before + last + after_sent),
        seen_and_least(service_us, last + after_sent),
        seen_and_least(ttfb_us, first + after_sent),
        own.burst(),
    );
}

/// Microseconds from one instant in nanoseconds to a later one, rounded.
pub fn micros(from_ns: u64, to_ns: u64) -> u64 {
    (to_ns.saturating_sub(from_ns) + 500) / 1_000
}

impl RobotRecorder {
    /// Empty recorder with as much room for times as this one has.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self {
            times: self.times.map(TimesRecorder::emptied, Histogram::emptied),
            flights: Vec::with_capacity(self.flights.len()),
            ..Self::default()
        }
    }

    /// Counts an xact that got its response without error.
    pub fn completed(&mut self, xact: &CompletedXact) {
        self.counts.completed += 1;
        self.methods[xact.method as usize] += 1;
        self.types[xact.request_type as usize] += 1;
        match xact.status {
            None => {}
            Some(200) => self.status_200 += 1,
            Some(304) => self.status_304 += 1,
            Some(other) => *self.counts.by_status.entry(other).or_default() += 1,
        }
        if xact.basic {
            let counts = &mut self.counts;
            counts.basic += 1;
            counts.basic_bytes += xact.body_bytes;
            let (number, bytes) = match xact.outcome {
                Some(Outcome::Hit) => (&mut counts.hits, &mut counts.hit_bytes),
                Some(Outcome::Collapsed) => (&mut counts.collapsed, &mut counts.collapsed_bytes),
                Some(Outcome::Revalidated) => (&mut counts.revalidated, &mut counts.revalidated_bytes),
                // A basic xact never gets a 304, the only response that may not tell.
                Some(Outcome::Miss) | None => (&mut counts.misses, &mut counts.miss_bytes),
            };
            *number += 1;
            *bytes += xact.body_bytes;
        }
        if xact.request_type == RequestType::Reload && xact.outcome == Some(Outcome::Hit) {
            self.counts.reloads_from_store += 1;
        }
        let (outcome, at, own) = (xact.outcome, xact.at, xact.own);
        match xact.exposure {
            Some(exposure) => self.keep(Flight { outcome, at, own, exposure }),
            None => record(self.times.outcome_mut(outcome), outcome, &at, &own, 0),
        }
        self.times.unread.record(u64::from(xact.unread_us));
    }

    pub fn error(&mut self, kind: ErrorKind) {
        self.errors[kind as usize] += 1;
    }

    /// Counts an xact that was never sent, and its wait, of which `delayed_us` were Assay's.
    pub fn unsent(&mut self, waited_us: u64, delayed_us: u64) {
        self.counts.unsent += 1;
        self.times.unsent_wait.record(waited_us);
        self.times.unsent_least.record(waited_us.saturating_sub(delayed_us));
    }

    /// Counts the wait of an xact that was given up at `at.last_byte`, of which `delayed_us` were Assay's. One that was
    /// not sent has no times from there on.
    pub fn gave_up(&mut self, at: &Instants, was_sent: bool, delayed_us: u64) {
        let times = &mut self.times.timed_out;
        times.record_response_delayed(micros(at.begin, at.last_byte), delayed_us);
        if was_sent {
            times.record_after_sent(micros(at.sent, at.last_byte), micros(at.sent, at.first_byte));
        }
    }

    /// All counts, with their maps.
    pub fn counts(&self) -> RobotCounts {
        let mut counts = self.counts.clone();
        counts.errors =
            ErrorKind::VARIANTS.iter().copied().zip(self.errors).filter(|&(_, n)| n > 0).collect();
        counts.by_method = named(METHODS.map(method_name), self.methods);
        counts.by_type = named(TYPES.map(type_name), self.types);
        for (status, number) in [(200, self.status_200), (304, self.status_304)] {
            if number > 0 {
                *counts.by_status.entry(status).or_default() += number;
            }
        }
        counts
    }

    /// Adds all that another has counted.
    pub fn merge(&mut self, other: &RobotRecorder) {
        self.counts.merge(&other.counts);
        add(&mut self.errors, &other.errors);
        add(&mut self.methods, &other.methods);
        add(&mut self.types, &other.types);
        self.status_200 += other.status_200;
        self.status_304 += other.status_304;
        self.times.add(&other.times, TimesRecorder::merge, Histogram::merge);
        self.flights.extend_from_slice(&other.flights);
    }

    /// Number of xacts that have ended in an error.
    pub fn error_total(&self) -> u64 {
        self.errors.iter().sum()
    }
}

fn add<const N: usize>(into: &mut [u64; N], from: &[u64; N]) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into += from);
}

fn named<const N: usize>(names: [&str; N], numbers: [u64; N]) -> BTreeMap<String, u64> {
    names.into_iter().zip(numbers).filter(|&(_, n)| n > 0).map(|(name, n)| (name.to_owned(), n)).collect()
}

/// Name of a method in requests and records.
pub fn method_name(method: Method) -> &'static str {
    match method {
        Method::Get => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
    }
}

/// Name of a request type in records.
pub fn type_name(request_type: RequestType) -> &'static str {
    match request_type {
        RequestType::Basic => "basic",
        RequestType::Ims200 => "ims200",
        RequestType::Ims304 => "ims304",
        RequestType::Reload => "reload",
        RequestType::Range => "range",
        RequestType::Upload => "upload",
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::times::TimesSum;

    use super::*;

    fn sum(times: &TimesRecorder) -> TimesSum {
        let mut sum = TimesSum::default();
        sum.add(&times.to_times());
        sum
    }

    fn completed(outcome: Option<Outcome>, request_type: RequestType) -> CompletedXact {
        let at = Instants { begin: 0, sent: 100_000, first_byte: 300_000, last_byte: 900_000 };
        let basic = is_basic(Method::Get, request_type);
        let own = OwnDelays::default();
        CompletedXact {
            method: Method::Get,
            request_type,
            basic,
            status: Some(200),
            outcome,
            body_bytes: 10,
            at,
            own,
            unread_us: 0,
            exposure: None,
        }
    }

    #[test]
    fn counters_stand_where_their_names_do() {
        for (at, kind) in ErrorKind::VARIANTS.iter().enumerate() {
            assert_eq!(*kind as usize, at, "{kind}");
        }
        for (at, method) in METHODS.into_iter().enumerate() {
            assert_eq!(method as usize, at);
        }
        for (at, request_type) in TYPES.into_iter().enumerate() {
            assert_eq!(request_type as usize, at);
        }
        // Records are read back by these names.
        assert_eq!(METHODS.map(method_name), assay_measurement::xact::METHODS);
        assert_eq!(TYPES.map(type_name), assay_measurement::xact::TYPES);
    }

    #[test]
    fn each_outcome_of_a_basic_xact_has_its_own_count() {
        let mut recorder = RobotRecorder::default();
        for outcome in [Outcome::Hit, Outcome::Hit, Outcome::Collapsed, Outcome::Revalidated, Outcome::Miss] {
            recorder.completed(&completed(Some(outcome), RequestType::Basic));
        }
        let counts = recorder.counts();
        assert_eq!(
            [counts.basic, counts.hits, counts.collapsed, counts.revalidated, counts.misses],
            [5, 2, 1, 1, 1]
        );
        assert_eq!([counts.basic_bytes, counts.hit_bytes, counts.miss_bytes], [50, 20, 10]);
    }

    #[test]
    fn every_xact_is_timed_under_its_outcome_whether_it_is_basic_or_not() {
        let mut recorder = RobotRecorder::default();
        let (basic, conditional) = (RequestType::Basic, RequestType::Ims200);
        recorder.completed(&completed(Some(Outcome::Hit), basic));
        recorder.completed(&completed(Some(Outcome::Hit), conditional));
        let head = completed(Some(Outcome::Hit), basic);
        recorder.completed(&CompletedXact { method: Method::Head, basic: false, ..head });
        recorder.completed(&completed(Some(Outcome::Miss), basic));
        recorder.completed(&completed(Some(Outcome::Miss), conditional));
        recorder.completed(&completed(Some(Outcome::Collapsed), basic));
        recorder.completed(&completed(Some(Outcome::Revalidated), basic));
        recorder.completed(&completed(None, RequestType::Ims304));
        let timed = [&recorder.times.hit, &recorder.times.miss, &recorder.times.other]
            .map(|class| sum(class).response.count());
        assert_eq!(timed, [3, 2, 3]);
        let counts = recorder.counts();
        assert_eq!((counts.basic, counts.hits, counts.misses), (4, 1, 1), "counts stay those of basic xacts");
        assert_eq!(counts.completed, timed.iter().sum::<u64>());
    }

    #[test]
    fn a_wait_that_was_given_up_counts_from_where_it_had_come() {
        let (mut recorder, end) = (RobotRecorder::default(), 5_000_000);
        let given_up = |sent, first_byte| Instants { begin: 1_000_000, sent, first_byte, last_byte: end };
        recorder.gave_up(&given_up(end, end), false, 0);
        recorder.gave_up(&given_up(2_000_000, end), true, 0);
        recorder.gave_up(&given_up(2_000_000, 2_500_000), true, 0);
        let waits = sum(&recorder.times.timed_out);
        let [response, service, ttfb] =
            [waits.response, waits.service, waits.ttfb].map(|waits| (waits.count(), waits.mean_us()));
        assert_eq!(response, (3, Some(4000.0)));
        assert_eq!(service, (2, Some(3000.0)));
        assert_eq!(ttfb, (2, Some((3000.0 + 500.0) / 2.0)));
        assert_eq!(
            sum(&recorder.times.miss).response.count() + sum(&recorder.times.other).response.count(),
            0
        );
    }

    #[test]
    fn a_wait_without_an_end_can_have_been_shorter_by_what_assay_delayed_it() {
        let mut recorder = RobotRecorder::default();
        recorder.unsent(4_000, 3_000);
        recorder.unsent(4_000, 5_000);
        assert_eq!(recorder.counts.unsent, 2);
        assert_eq!(recorder.times.unsent_wait.to_sparse().sum_us, 8_000);
        assert_eq!(recorder.times.unsent_least.to_sparse().sum_us, 1_000);
        let end = 5_000_000;
        let at = Instants { begin: 1_000_000, sent: end, first_byte: end, last_byte: end };
        recorder.gave_up(&at, false, 3_000);
        let times = recorder.times.timed_out.to_times();
        assert_eq!(times.response.sum_us, 4_000);
        let disturbed = times.disturbed.response;
        assert_eq!((disturbed.seen.sum_us, disturbed.least.sum_us), (4_000, 1_000));
    }

    #[test]
    fn response_time_counts_from_due_and_service_time_from_sent() {
        let mut recorder = RobotRecorder::default();
        recorder.completed(&completed(Some(Outcome::Miss), RequestType::Basic));
        let times = sum(&recorder.times.miss);
        assert_eq!(
            [times.response, times.service, times.ttfb].map(|of| of.max_us().unwrap()),
            [900, 800, 200]
        );
    }

    #[test]
    fn a_delayed_xact_is_recorded_with_the_least_that_it_can_have_been() {
        let one = |own: OwnDelays| {
            let mut recorder = RobotRecorder::default();
            recorder.completed(&CompletedXact { own, ..completed(Some(Outcome::Miss), RequestType::Basic) });
            let disturbed = recorder.times.miss.to_times().disturbed;
            [disturbed.response, disturbed.service, disturbed.ttfb]
                .map(|of| [of.seen.sum_us, of.least.sum_us])
        };
        // Seen: 900 from due, 800 from sent, 200 to the first byte.
        let none = OwnDelays::default();
        assert_eq!(
            one(OwnDelays { before_us: 30, last_us: 19, ..none }),
            [[0; 2]; 3],
            "too little to matter"
        );
        assert_eq!(
            one(OwnDelays { before_us: 100, first_us: 40, last_us: 70, ..none }),
            [[900, 730], [800, 730], [200, 160]]
        );
        assert_eq!(one(OwnDelays { origin_us: 60, ..none }), [[900, 840], [800, 740], [200, 140]]);
        let passing = OwnDelays {
            disturbance: Some(Disturbance { delay_us: 300, held_back: 1, is_undrained: false }),
            ..none
        };
        assert_eq!(one(passing), [[900, 900], [800, 800], [200, 200]]);
        let in_burst = OwnDelays {
            disturbance: Some(Disturbance { delay_us: 500, held_back: 1, is_undrained: true }),
            ..none
        };
        let alone = OwnDelays { before_us: 200, ..passing };
        let with_others = Disturbance { delay_us: 700, held_back: 2, is_undrained: false };
        let held_back = OwnDelays { disturbance: Some(with_others), ..alone };
        let mut recorder = RobotRecorder::default();
        // Nor was one late that was sent when a response had been read late, with others.
        let after_reading = OwnDelays { before_us: 0, is_held_back: true, ..held_back };
        for own in [passing, in_burst, alone, held_back, after_reading] {
            recorder.completed(&CompletedXact { own, ..completed(Some(Outcome::Hit), RequestType::Basic) });
        }
        let disturbed = recorder.times.hit.to_times().disturbed;
        let seen = [disturbed.aftermath.sum_us, disturbed.passing.sum_us];
        assert_eq!(
            seen,
            [500 + 700 + 700, 300 + 300],
            "it stands by itself; one that was late alone met no burst"
        );
    }

    #[test]
    fn merging_adds_up() {
        let (mut a, mut b) = (RobotRecorder::default(), RobotRecorder::default());
        a.completed(&completed(Some(Outcome::Hit), RequestType::Basic));
        a.error(ErrorKind::Stale);
        b.completed(&completed(Some(Outcome::Hit), RequestType::Reload));
        b.error(ErrorKind::Stale);
        b.times.lateness.record(7);
        b.counts.due_digest = u64::MAX;
        a.counts.due_digest = 2;
        a.merge(&b);
        let counts = a.counts();
        assert_eq!(counts.errors, BTreeMap::from([(ErrorKind::Stale, 2)]));
        assert_eq!(counts.by_type, BTreeMap::from([("basic".to_owned(), 1), ("reload".to_owned(), 1)]));
        assert_eq!(counts.by_status, BTreeMap::from([(200, 2)]));
        assert_eq!((counts.completed, counts.due_digest, a.times.lateness.count()), (2, 1, 1));
    }
}
