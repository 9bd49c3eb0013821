//! What the ideal cache is told of an xact after it was sent.
//!
//! Where requests join fetches, only what came to nothing: the ideal cache took it as stored when it was sent. Where they
//! do not, also when the response was there for others: when the kernel had it, not when robots came to read it, which on a busy
//! machine is later than the target has had it for a while. And of each basic xact, what it got: ideal is of the same xacts and
//! bytes as what is measured.

use super::extras::Ending;
use super::xact::Xact;
use crate::tally::ideal::{Counted, IdealNote};
use assay_cache::behaviour::SharesFrom;
use assay_protocol::clock::RunClock;

impl Xact {
    /// Its response has begun.
    pub fn begun(&self, shares_from: SharesFrom, clock: &RunClock) -> Option<IdealNote> {
        let is_told = shares_from == SharesFrom::Begun;
        if is_told { self.arrived(clock, self.first_byte_ns, self.own.first_us) } else { None }
    }

    /// It has ended without an error; its last bytes had lain unread for so long.
    pub fn ended(
        &self,
        ending: Ending,
        shares_from: SharesFrom,
        clock: &RunClock,
        (now_ns, unread_us): (u64, u32),
    ) -> Option<IdealNote> {
        match ending {
            // A request that is aborted, or for parts beyond the end, leaves the object where a cache put it.
            Ending::Object
            | Ending::Parts { .. }
            | Ending::Coded
            | Ending::Unsatisfied
            | Ending::BrokenOff => {
                let is_told = shares_from == SharesFrom::Complete;
                if is_told { self.arrived(clock, now_ns, unread_us) } else { None }
            }
            Ending::Redirected(_)
            | Ending::Refused
            | Ending::Challenged
            | Ending::Uninvited
            | Ending::Fault
            | Ending::BreaksOff => self.failed(clock, now_ns),
        }
    }

    /// It came to nothing.
    pub fn failed(&self, clock: &RunClock, now_ns: u64) -> Option<IdealNote> {
        let at_us = clock.since_start_us(now_ns);
        self.noted.map(|request| IdealNote::Failed { request, at_us })
    }

    /// It is over, and got so many bytes of its object's body; none: not the object. Only basic xacts count.
    pub fn settled(&self, body_bytes: Option<u64>, clock: &RunClock, now_ns: u64) -> Option<IdealNote> {
        if !self.basic || self.noted.is_none() {
            return None;
        }
        let counted = body_bytes.map(|body_bytes| Counted { phase: self.phase, body_bytes });
        Some(IdealNote::Ended { xact: self.id, at_us: clock.since_start_us(now_ns), counted })
    }

    fn arrived(&self, clock: &RunClock, read_ns: u64, unread_us: u32) -> Option<IdealNote> {
        let at_us = clock.since_start_us(read_ns).saturating_sub(u64::from(unread_us));
        self.noted.map(|request| IdealNote::Arrived { request, at_us: at_us.max(request.sent_us) })
    }
}

#[cfg(test)]
mod tests {
    use assay_workload::Object;
    use assay_workload::XactId;
    use assay_workload::object::{ObjectId, Space};

    use super::*;
    use crate::tally::ideal::Noted;

    const CLOCK: RunClock = RunClock { start_ns: 0, start_unix_s: 0 };
    const REQUEST: Noted = Noted { key: 7, sent_us: 10 };

    fn xact(noted: Option<Noted>) -> Xact {
        let id = ObjectId { origin: 0, content: 0, space: Space::Public, serial: 0 };
        let object = Object { id, key: 7, size_bytes: 10, cachable: true, checksum: false };
        let id = XactId { robot: 0, number: 0, place: 0 };
        Xact { noted, first_byte_ns: 20_000, ..Xact::new(id, 0, 0, object, 0) }
    }

    /// What is told of an xact that was sent at 10, began at 20 and ended at 30.
    fn told(shares_from: SharesFrom, ending: Ending) -> Vec<IdealNote> {
        let xact = xact(Some(REQUEST));
        let begun = xact.begun(shares_from, &CLOCK);
        begun.into_iter().chain(xact.ended(ending, shares_from, &CLOCK, (30_000, 0))).collect()
    }

    #[test]
    fn an_arrival_is_told_once_and_only_where_requests_are_not_collapsed() {
        let at = |at_us| vec![IdealNote::Arrived { request: REQUEST, at_us }];
        let parts = Ending::Parts { several: true, is_checked: true };
        for ending in [Ending::Object, Ending::Coded, Ending::BrokenOff, parts] {
            assert_eq!(told(SharesFrom::Sent, ending), []);
            assert_eq!(told(SharesFrom::Begun, ending), at(20));
            assert_eq!(told(SharesFrom::Complete, ending), at(30));
        }
    }

    #[test]
    fn a_response_is_there_for_others_when_the_kernel_has_it_and_not_when_it_is_read() {
        let at = |at_us| Some(IdealNote::Arrived { request: REQUEST, at_us });
        let mut xact = xact(Some(REQUEST));
        let ended = |unread_us| xact.ended(Ending::Object, SharesFrom::Complete, &CLOCK, (30_000, unread_us));
        assert_eq!([ended(12), ended(25)], [at(18), at(10)], "never before it was requested");
        xact.own.first_us = 6;
        assert_eq!(xact.begun(SharesFrom::Begun, &CLOCK), at(14));
    }

    #[test]
    fn what_came_to_nothing_is_told_everywhere() {
        let failed = IdealNote::Failed { request: REQUEST, at_us: 30 };
        for ending in [Ending::Refused, Ending::Fault, Ending::BreaksOff] {
            assert_eq!(told(SharesFrom::Sent, ending), [failed]);
            assert_eq!(told(SharesFrom::Complete, ending), [failed]);
            assert_eq!(told(SharesFrom::Begun, ending).last(), Some(&failed));
        }
    }

    #[test]
    fn nothing_is_told_of_what_the_ideal_cache_does_not_know() {
        let xact = xact(None);
        assert_eq!(xact.failed(&CLOCK, 30_000), None);
        assert_eq!(xact.begun(SharesFrom::Begun, &CLOCK), None);
        assert_eq!(xact.ended(Ending::Object, SharesFrom::Complete, &CLOCK, (30_000, 0)), None);
    }
}
