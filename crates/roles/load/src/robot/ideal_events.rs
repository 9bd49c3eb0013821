//! Events of an xact for the ideal cache, after its request was sent.
//!
//! Where requests join fetches, only what came to nothing: the ideal cache took it as stored when it was sent. Where they
//! do not, also when the response was there for others: when the kernel had it, not when robots came to read it, which on a busy
//! machine is later than the target has had it for a while. And of each basic xact, what it got: ideal is of the same xacts and
//! bytes as what is measured.

use super::features::ResponseKind;
use super::xact::Xact;
use crate::tally::ideal::{IdealEvent, ReceivedBody};
use assay_cache::behaviour::SharesFrom;
use assay_protocol::clock::RunClock;

impl Xact {
    /// Event of a response that has begun.
    pub fn ideal_begun(&self, shares_from: SharesFrom, clock: &RunClock) -> Option<IdealEvent> {
        let is_told = shares_from == SharesFrom::Begun;
        if is_told { self.ideal_arrived(clock, self.first_byte_ns?, self.own.first_us) } else { None }
    }

    /// Event of an xact that ended without an error. The last bytes of its response had lain unread for `unread_us`.
    pub fn ideal_ended(
        &self,
        kind: ResponseKind,
        shares_from: SharesFrom,
        clock: &RunClock,
        now_ns: u64,
        unread_us: u32,
    ) -> Option<IdealEvent> {
        match kind {
            // A request that is aborted, or for parts beyond the end, leaves the object where a cache put it.
            ResponseKind::Object
            | ResponseKind::Parts { .. }
            | ResponseKind::Coded
            | ResponseKind::CodedHead { .. }
            | ResponseKind::Unsatisfied
            | ResponseKind::ClientAborted => {
                let is_told = shares_from == SharesFrom::Complete;
                if is_told { self.ideal_arrived(clock, now_ns, unread_us) } else { None }
            }
            ResponseKind::Redirected(_)
            | ResponseKind::Refused
            | ResponseKind::Challenged
            | ResponseKind::ExpectationFailed
            | ResponseKind::Fault
            | ResponseKind::OriginAborted => self.ideal_failed(clock, now_ns),
        }
    }

    /// Event of a request that came to nothing.
    pub fn ideal_failed(&self, clock: &RunClock, now_ns: u64) -> Option<IdealEvent> {
        let at_us = clock.since_start_us(now_ns);
        self.sent_lookup.map(|request| IdealEvent::Failed { request, at_us })
    }

    /// Event of the end of an xact that was noted as sent; `counted`: a basic one that got its object.
    pub fn ideal_settled(
        &self,
        counted: Option<ReceivedBody>,
        clock: &RunClock,
        now_ns: u64,
    ) -> Option<IdealEvent> {
        let is_noted = self.sent_lookup.is_some() || self.method.has_body();
        is_noted.then(|| IdealEvent::Ended { xact: self.id, at_us: clock.since_start_us(now_ns), counted })
    }

    fn ideal_arrived(&self, clock: &RunClock, read_ns: u64, unread_us: u32) -> Option<IdealEvent> {
        let at_us = clock.since_start_us(read_ns).saturating_sub(u64::from(unread_us));
        self.sent_lookup.map(|request| IdealEvent::Arrived { request, at_us: at_us.max(request.sent_us) })
    }
}

#[cfg(test)]
mod tests {
    use assay_workload::Object;
    use assay_workload::XactId;
    use assay_workload::object::{ObjectId, Space};

    use super::*;
    use crate::robot::worker::RobotKey;
    use crate::tally::ideal::SentLookup;

    const CLOCK: RunClock = RunClock { start_ns: 0, start_unix_s: 0 };
    const REQUEST: SentLookup = SentLookup { key: 7, sent_us: 10 };

    fn xact(sent_lookup: Option<SentLookup>) -> Xact {
        let id = ObjectId { origin: 0, content: 0, space: Space::Public, serial: 0 };
        let object = Object { id, key: 7, size_bytes: 10, cachable: true, checksum: false };
        let id = XactId { robot: 0, number: 0, place: 0 };
        Xact { sent_lookup, first_byte_ns: Some(20_000), ..Xact::new(id, RobotKey::FIRST, 0, object, 0) }
    }

    /// Events of an xact that was sent at 10, began at 20 and ended at 30.
    fn told(shares_from: SharesFrom, kind: ResponseKind) -> Vec<IdealEvent> {
        let xact = xact(Some(REQUEST));
        let begun = xact.ideal_begun(shares_from, &CLOCK);
        begun.into_iter().chain(xact.ideal_ended(kind, shares_from, &CLOCK, 30_000, 0)).collect()
    }

    #[test]
    fn an_arrival_is_told_once_and_only_where_requests_are_not_collapsed() {
        let at = |at_us| vec![IdealEvent::Arrived { request: REQUEST, at_us }];
        let parts = ResponseKind::Parts { several: true, is_checked: true, is_complete: true };
        for kind in [ResponseKind::Object, ResponseKind::Coded, ResponseKind::ClientAborted, parts] {
            assert_eq!(told(SharesFrom::Sent, kind), []);
            assert_eq!(told(SharesFrom::Begun, kind), at(20));
            assert_eq!(told(SharesFrom::Complete, kind), at(30));
        }
    }

    #[test]
    fn a_response_is_there_for_others_when_the_kernel_has_it_and_not_when_it_is_read() {
        let at = |at_us| Some(IdealEvent::Arrived { request: REQUEST, at_us });
        let mut xact = xact(Some(REQUEST));
        let ended = |unread_us| {
            xact.ideal_ended(ResponseKind::Object, SharesFrom::Complete, &CLOCK, 30_000, unread_us)
        };
        assert_eq!([ended(12), ended(25)], [at(18), at(10)], "never before it was requested");
        xact.own.first_us = 6;
        assert_eq!(xact.ideal_begun(SharesFrom::Begun, &CLOCK), at(14));
    }

    #[test]
    fn what_came_to_nothing_is_told_everywhere() {
        let failed = IdealEvent::Failed { request: REQUEST, at_us: 30 };
        for kind in [ResponseKind::Refused, ResponseKind::Fault, ResponseKind::OriginAborted] {
            assert_eq!(told(SharesFrom::Sent, kind), [failed]);
            assert_eq!(told(SharesFrom::Complete, kind), [failed]);
            assert_eq!(told(SharesFrom::Begun, kind).last(), Some(&failed));
        }
    }

    #[test]
    fn nothing_is_told_of_what_the_ideal_cache_does_not_know() {
        let xact = xact(None);
        assert_eq!(xact.ideal_failed(&CLOCK, 30_000), None);
        assert_eq!(xact.ideal_begun(SharesFrom::Begun, &CLOCK), None);
        assert_eq!(xact.ideal_ended(ResponseKind::Object, SharesFrom::Complete, &CLOCK, 30_000, 0), None);
    }
}
