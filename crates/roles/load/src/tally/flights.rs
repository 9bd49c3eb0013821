//! Completed xacts whose times are still to be joined with the target's waits for processors.
//!
//! These become known a moment after the xacts end. So a worker keeps what is needed of each and hands it over with its
//! counts; the coordinator joins both, outside of the path of requests.

use assay_measurement::outcome::Outcome;
use assay_measurement::robot_times::RobotTimes;
use assay_measurement::times::TimesRecorder;
use assay_measurement::waits::WaitTimeline;

use super::{Instants, OwnDelays, RobotRecorder, disturbed_from_us, record};

/// As much of a body as the kernel takes at once, at least, in bytes.
const AT_ONCE: u64 = 65_536;

/// Time in which the target can have kept an xact waiting, and the number of its chances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exposure {
    /// Beginning, in nanoseconds of `CLOCK_MONOTONIC`: when the xact was sent; if it had to wait for a connection, when
    /// the xact was sent that had it before.
    pub from_ns: u64,
    /// Time for which the origin had the request, and the target nothing to do for it.
    pub at_origin: Option<OriginResidence>,
    /// Number of arrivals at the target for the xact: that often, a thread of the target can have been kept from
    /// dealing with it. [`Exposure::ALWAYS`]: all the time.
    pub needs: u32,
}

/// Time for which an origin had a request, in nanoseconds of `CLOCK_MONOTONIC`: from its last byte until the response
/// was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OriginResidence {
    /// The request was complete.
    pub from_ns: u64,
    /// The response was made.
    pub until_ns: u64,
}

impl Exposure {
    /// The xact shared its way with others, and each of their needs is one of its own.
    pub const ALWAYS: u32 = u32::MAX;

    /// Number of arrivals for an xact that goes its own way: the request; where the origin has a part in it, the
    /// beginning and the end of its response too; on each side whatever of a body does not fit into what the kernel
    /// holds; and the connection, if it is a new one.
    pub fn needs(is_hit: bool, body_bytes: u64, steps_to_connect: u32) -> u32 {
        let parts = u32::try_from(body_bytes / AT_ONCE).unwrap_or(u32::MAX);
        let needs = if is_hit { parts.saturating_add(1) } else { parts.saturating_mul(2).saturating_add(3) };
        needs.saturating_add(steps_to_connect)
    }
}

impl Exposure {
    /// Longest delay, in microseconds, by which waits of the target can have moved the end of an xact to `end_ns`;
    /// none: not everything is known of its time. Waits that were over while the origin had it count only if they could
    /// be felt before or after that, and neither way to nor from the origin can have been delayed by more than it took.
    fn delay_us(&self, waits: &WaitTimeline, end_ns: u64) -> Option<u64> {
        let Some(residence) = self.at_origin else {
            return waits.delay_us(self.from_ns, end_ns, self.needs);
        };
        let from_ns = residence.from_ns.clamp(self.from_ns, end_ns.max(self.from_ns));
        let until_ns = residence.until_ns.clamp(from_ns, end_ns.max(from_ns));
        let to_origin_us = waits.delay_us(self.from_ns, from_ns, self.needs)?;
        Some(to_origin_us + waits.delay_us(until_ns, end_ns, self.needs)?)
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    pub(super) outcome: Option<Outcome>,
    pub(super) at: Instants,
    pub(super) own: OwnDelays,
    pub(super) exposure: Exposure,
}

impl Flight {
    /// True if the times were recorded at the end of the xact, as those of one that was not disturbed.
    fn is_recorded(&self) -> bool {
        self.own.sum_us() < disturbed_from_us(self.outcome, &self.at)
    }
}

impl RobotRecorder {
    /// Keeps an xact until it can be joined. One that was not disturbed so far, as nearly all, is recorded as such.
    #[inline]
    pub(super) fn keep(&mut self, flight: Flight) {
        if flight.is_recorded() {
            record(self.times.outcome_mut(flight.outcome), flight.outcome, &flight.at, &flight.own, 0);
        }
        self.flights.push(flight);
    }

    /// Joins the xacts that were kept with the waits of the target: those that can have met some are recorded as disturbed.
    pub fn join(&mut self, waits: &WaitTimeline) {
        let flights = std::mem::take(&mut self.flights);
        let mut recorded = RobotTimes::<Option<Box<TimesRecorder>>, ()>::default();
        for flight in flights {
            let Flight { outcome, at, own, exposure } = flight;
            let waited_us = exposure.delay_us(waits, at.last_byte);
            self.counts.joined += u64::from(waited_us.is_some());
            let waited_us = waited_us.unwrap_or(0);
            if flight.is_recorded() {
                if own.sum_us() + waited_us < disturbed_from_us(outcome, &at) {
                    continue;
                }
                let taken_back = recorded.outcome_mut(outcome).get_or_insert_default();
                record(taken_back, outcome, &at, &own, 0);
            }
            record(self.times.outcome_mut(outcome), outcome, &at, &own, waited_us);
        }
        let take_back = |times: &mut TimesRecorder, recorded: &Option<Box<TimesRecorder>>| {
            recorded.iter().for_each(|recorded| times.take_back(recorded));
        };
        self.times.add(&recorded, take_back, |_, ()| {});
    }
}

#[cfg(test)]
mod tests {
    use assay_measurement::waits::{Wait, WaitReport};
    use assay_workload::model::{Method, RequestType};

    use super::*;
    use crate::tally::CompletedXact;

    const MS: u64 = 1_000_000;

    /// A hit of 10 ms that was sent a millisecond after it was due.
    fn hit(due_ms: u64, own: OwnDelays) -> CompletedXact {
        let sent = (due_ms + 1) * MS;
        CompletedXact {
            method: Method::Get,
            request_type: RequestType::Basic,
            basic: true,
            status: Some(200),
            outcome: Some(Outcome::Hit),
            body_bytes: 10,
            at: Instants { begin: due_ms * MS, sent, first_byte: sent + 5 * MS, last_byte: sent + 9 * MS },
            own,
            unread_us: 0,
            exposure: Some(Exposure { from_ns: sent, at_origin: None, needs: 1 }),
        }
    }

    fn waits(until_ms: u64, waits: &[(u64, u64, u64)]) -> WaitTimeline {
        let wait = |&(from, to, wait_us)| Wait { from_ns: from * MS, to_ns: to * MS, wait_us };
        let mut timeline = WaitTimeline::default();
        timeline.add(&WaitReport {
            from_ns: 0,
            until_ns: until_ms * MS,
            waits: waits.iter().map(wait).collect(),
        });
        timeline
    }

    #[test]
    fn only_those_that_can_have_met_a_wait_are_recorded_as_disturbed() {
        let mut recorder = RobotRecorder::default();
        for due_ms in [100, 200, 300] {
            recorder.completed(&hit(due_ms, OwnDelays::default()));
        }
        recorder.join(&waits(1_000, &[(150, 160, 5_000), (205, 206, 4_000), (208, 209, 30)]));
        let times = recorder.times.hit.to_times();
        assert_eq!((times.response.count(), times.response.sum_us), (3, 30_000));
        let disturbed = &times.disturbed;
        assert_eq!((disturbed.response.seen.sum_us, disturbed.response.least.sum_us), (10_000, 6_000));
        assert_eq!((disturbed.service.seen.sum_us, disturbed.service.least.sum_us), (9_000, 5_000));
        assert_eq!((disturbed.ttfb.seen.sum_us, disturbed.ttfb.least.sum_us), (5_000, 1_000));
        assert_eq!((recorder.counts.joined, recorder.counts.completed), (3, 3));
    }

    #[test]
    fn waits_while_the_origin_had_a_request_do_not_count() {
        let mut recorder = RobotRecorder::default();
        let miss = |due_ms: u64, residence: [u64; 2]| {
            let mut miss = hit(due_ms, OwnDelays::default());
            miss.outcome = Some(Outcome::Miss);
            (miss.at.first_byte, miss.at.last_byte) = ((due_ms + 49) * MS, (due_ms + 50) * MS);
            let at_origin = Some(OriginResidence { from_ns: residence[0] * MS, until_ns: residence[1] * MS });
            miss.exposure = Some(Exposure { at_origin, needs: 3, ..miss.exposure.expect("is exposed") });
            miss
        };
        recorder.completed(&miss(100, [102, 142]));
        // One leg was delayed by all that it took, which is 2 ms; the other by a wait that goes on.
        recorder.completed(&miss(200, [203, 243]));
        // What an origin says is not believed beyond the times of the request.
        recorder.completed(&miss(300, [0, u64::MAX / MS]));
        recorder
            .join(&waits(1_000, &[(103, 140, 9_000), (202, 210, 9_000), (242, 244, 500), (310, 320, 7_000)]));
        let times = recorder.times.miss.to_times();
        assert_eq!((times.response.count(), times.response.sum_us), (3, 150_000));
        let disturbed = &times.disturbed.response;
        assert_eq!((disturbed.seen.sum_us, disturbed.least.sum_us), (50_000, 50_000 - 2_000 - 500));
        assert_eq!(recorder.counts.joined, 3);
    }

    #[test]
    fn waits_are_added_to_what_assay_itself_delayed() {
        let mut recorder = RobotRecorder::default();
        recorder.completed(&hit(100, OwnDelays { before_us: 700, ..OwnDelays::default() }));
        recorder.completed(&hit(200, OwnDelays { before_us: 30, ..OwnDelays::default() }));
        assert_eq!(
            recorder.times.hit.to_times().response.count(),
            1,
            "the disturbed one is recorded once, when joined"
        );
        recorder.join(&waits(1_000, &[(105, 106, 2_000), (205, 206, 25)]));
        let times = recorder.times.hit.to_times();
        assert_eq!(times.response.count(), 2);
        assert_eq!(times.disturbed.response.seen.sum_us, 20_000, "two little delays are one that counts");
        assert_eq!(times.disturbed.response.least.sum_us, 10_000 - 2_700 + 10_000 - 55);
    }

    #[test]
    fn what_nobody_watched_is_recorded_as_it_was_and_not_counted_as_joined() {
        let mut recorder = RobotRecorder::default();
        recorder.completed(&hit(100, OwnDelays::default()));
        recorder.completed(&hit(100, OwnDelays { before_us: 700, ..OwnDelays::default() }));
        recorder.join(&waits(105, &[]));
        let times = recorder.times.hit.to_times();
        assert_eq!((recorder.counts.joined, times.response.count()), (0, 2));
        assert_eq!(times.disturbed.response.least.sum_us, 9_300);
    }

    #[test]
    fn more_arrives_for_what_the_origin_sends_for_large_bodies_and_for_new_connections() {
        assert_eq!(Exposure::needs(true, 1_000, 0), 1);
        assert_eq!(Exposure::needs(true, 200_000, 1), 5);
        assert_eq!(Exposure::needs(false, 1_000, 0), 3);
        assert_eq!(Exposure::needs(false, 200_000, 3), 12);
        assert_eq!(Exposure::needs(false, u64::MAX, 3), Exposure::ALWAYS);
    }
}
