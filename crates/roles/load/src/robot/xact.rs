//! Xacts and pages under way.

use std::ops::{Index, IndexMut};

use assay_measurement::outcome::Outcome;
use assay_measurement::own_error::BEGUN_LATE_US;
use assay_workload::XactId;
use assay_workload::mark::RequestKind;
use assay_workload::model::{Method, RequestType};
use assay_workload::object::ObjectId;
use assay_workload::{Child, Fault, Object};
use slotmap::{SlotMap, new_key_type};

use super::features::{RequestFeatures, ResponseKind};
use super::setup::RobotSetup;
use super::worker::{ReleasedXact, RobotKey};
use crate::check::CheckedRequest;
use crate::tally::flights::{Exposure, OriginResidence};
use crate::tally::ideal::SentLookup;
use crate::tally::{Instants, OwnDelays, micros};
use assay_net::rx_timestamps::min_unread_us;

new_key_type! {
    /// Key of an xact that is under way or waits. The key of an ended xact finds nothing, even if its slot is reused.
    pub struct XactKey;
    /// Key of a page, likewise.
    pub struct PageKey;
}

/// One request with its response. Instants are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Debug)]
pub struct Xact {
    pub id: XactId,
    /// Place of its robot in this worker.
    pub robot: RobotKey,
    /// Phase it was due in.
    pub phase: u16,
    pub method: Method,
    pub request_type: RequestType,
    pub object: Object,
    /// True if the xact counts for hit ratios: a GET of type Basic for which nothing prevents a plain response.
    pub basic: bool,
    /// None for plain xacts.
    pub features: Option<Box<RequestFeatures>>,
    /// True if the object was requested before, by the stream.
    pub revisit: bool,
    /// Times that its request was written.
    pub attempts: u16,
    /// Times that the target did not act on the request.
    pub refusals: u8,
    /// Body of a POST.
    pub post_body: Option<ObjectId>,
    /// Date of `If-Modified-Since`, in seconds of the run.
    pub since_s: Option<i64>,
    /// Instant set by the schedule.
    pub due_ns: u64,
    /// Instant at which a connection slot was free.
    pub ready_ns: u64,
    /// Connect begun, or first byte written on a reused connection.
    pub sent_ns: Option<u64>,
    /// Connection established (new connections only).
    pub connected_ns: Option<u64>,
    /// TLS handshake over (new connections with TLS only).
    pub secured_ns: Option<u64>,
    /// First byte of the response.
    pub first_byte_ns: Option<u64>,
    /// Assay's delays so far.
    pub own: OwnDelays,
    /// Time for which the origin had the request, as far as that is known.
    pub at_origin: Option<OriginResidence>,
    /// Instant from which waits of the target can have delayed the xact, if that is sooner than when it was sent:
    /// others had its connection.
    pub exposed_from_ns: Option<u64>,
    /// Lookup in the ideal cache, if there was one.
    pub sent_lookup: Option<SentLookup>,
    /// The page it belongs to or is.
    pub page: Option<PageKey>,
    /// Serial of the robot's connection that carries it.
    pub connection: Option<u32>,
    /// The next one in its [`XactQueue`], which alone sets it.
    pub next: Option<XactKey>,
}

impl Xact {
    /// A plain GET of `object` that has come due, and is basic, of no page.
    pub fn new(id: XactId, robot: RobotKey, phase: u16, object: Object, due_ns: u64) -> Self {
        Self {
            id,
            robot,
            phase,
            method: Method::Get,
            request_type: RequestType::Basic,
            object,
            basic: true,
            features: None,
            revisit: false,
            attempts: 0,
            refusals: 0,
            post_body: None,
            since_s: None,
            due_ns,
            ready_ns: due_ns,
            sent_ns: None,
            connected_ns: None,
            secured_ns: None,
            first_byte_ns: None,
            own: OwnDelays::default(),
            at_origin: None,
            exposed_from_ns: None,
            sent_lookup: None,
            page: None,
            connection: None,
            next: None,
        }
    }

    /// Instants of an xact that ends at `end_ns`; steps that it has not reached count as at that instant.
    pub fn instants(&self, end_ns: u64) -> Instants {
        Instants {
            begin: self.due_ns + u64::from(self.begun_late_us()) * 1_000,
            sent: self.sent_ns.unwrap_or(end_ns),
            first_byte: self.first_byte_ns.unwrap_or(end_ns),
            last_byte: end_ns,
        }
    }

    /// Instant from which nothing but Assay kept the request from being sent.
    #[inline]
    pub fn earliest_send_ns(&self) -> u64 {
        self.due_ns.max(self.ready_ns)
    }

    /// Time from due to the beginning of its times: Assay's lateness, up to [`BEGUN_LATE_US`].
    #[inline]
    pub fn begun_late_us(&self) -> u32 {
        let late_us = self.sent_ns.map_or(0, |sent_ns| micros(self.earliest_send_ns(), sent_ns));
        late_us.min(u64::from(BEGUN_LATE_US)) as u32
    }

    /// Begins a response, whose first bytes are read now, having lain unread for `unread_us`.
    #[inline]
    pub fn begin_response(&mut self, read_ns: u64, unread_us: u32) {
        self.first_byte_ns = Some(self.received_ns(read_ns, unread_us));
        self.own.first_us = unread_us - min_unread_us(unread_us);
    }

    /// Instant by which bytes that are read now had certainly arrived, having lain unread for `unread_us` by the
    /// kernel's timestamp: never before bytes that arrived earlier.
    #[inline]
    pub fn received_ns(&self, read_ns: u64, unread_us: u32) -> u64 {
        let received_ns = read_ns.saturating_sub(u64::from(min_unread_us(unread_us)) * 1_000);
        received_ns.max(self.first_byte_ns.or(self.sent_ns).unwrap_or(0))
    }

    /// Ends the wait for a connection at `now_ns`: later than it could have ended by as much as Assay delayed the xact
    /// that had the connection before, but by no more than the whole wait.
    pub fn make_ready(&mut self, now_ns: u64, released: Option<ReleasedXact>) {
        self.ready_ns = now_ns;
        let waited_us = u32::try_from(now_ns.saturating_sub(self.due_ns) / 1_000).unwrap_or(u32::MAX);
        self.own.before(released.map_or(0, |released| released.delayed_us.min(waited_us)));
        let exposed_from_ns = released.map_or(self.due_ns, |released| released.exposed_from_ns);
        self.exposed_from_ns = Some(exposed_from_ns.min(self.due_ns));
    }

    /// Instant from which waits of the target can have delayed the xact.
    fn first_exposure_ns(&self) -> u64 {
        self.exposed_from_ns.or(self.sent_ns).unwrap_or(self.due_ns)
    }

    /// The xact to those that wait for its connection, when the last bytes of its response lay unread for `unread_us`.
    pub fn release(&self, unread_us: u32) -> ReleasedXact {
        ReleasedXact { delayed_us: self.own.until(unread_us), exposed_from_ns: self.first_exposure_ns() }
    }

    /// Waits of the target that the xact can have met. `shares`: its connection carries others at the same time.
    pub fn exposure(&self, outcome: Option<Outcome>, body_bytes: u64, shares: bool) -> Exposure {
        let steps = self.features.as_ref().is_some_and(|features| features.steps > 0);
        let to_connect = match (self.connected_ns, self.secured_ns) {
            (None, _) => 0,
            (Some(_), None) => 1,
            // A handshake goes back and forth.
            (Some(_), Some(_)) => 3,
        };
        let needs = if shares || steps || self.exposed_from_ns.is_some() {
            Exposure::ALWAYS
        } else {
            Exposure::needs(outcome == Some(Outcome::Hit), body_bytes, to_connect)
        };
        Exposure { from_ns: self.first_exposure_ns(), at_origin: self.at_origin, needs }
    }

    /// Begins another request of the xact, for which its response calls. That had lain unread for `unread_us`.
    pub fn begin_next_step(&mut self, unread_us: u32) {
        self.first_byte_ns = None;
        self.own.before(unread_us.saturating_add(self.own.origin_us));
        (self.own.first_us, self.own.origin_us) = (0, 0);
    }

    /// Whole milliseconds since it was sent.
    pub fn waited_ms(&self, now_ns: u64) -> u64 {
        self.sent_ns.map_or(0, |sent_ns| now_ns.saturating_sub(sent_ns) / 1_000_000)
    }

    /// The page that it requests; none for an embedded object.
    pub fn own_page(&self) -> Option<PageKey> {
        self.page.filter(|_| self.id.place == 0)
    }

    pub fn is_embedded(&self) -> bool {
        self.id.place > 0
    }

    /// Ends the wait of the request's body for 100 (Continue); false: it did not wait.
    pub fn cancel_continue_wait(&mut self) -> bool {
        self.features.as_mut().is_some_and(|features| features.continue_until_ns.take().is_some())
    }

    /// Kind of request in the mark.
    pub fn kind(&self) -> RequestKind {
        match (self.method, self.request_type) {
            (Method::Head | Method::Post | Method::Put, _) => RequestKind::Other,
            (Method::Get, RequestType::Reload) => RequestKind::Reload,
            _ if self.since_s.is_some() => RequestKind::Conditional,
            (Method::Get, RequestType::Basic) => RequestKind::Basic,
            // It would have been conditional if the object had a date.
            (
                Method::Get,
                RequestType::Ims200 | RequestType::Ims304 | RequestType::Range | RequestType::Upload,
            ) => RequestKind::Other,
        }
    }

    /// True if parts of the object are requested.
    pub fn is_for_parts(&self) -> bool {
        self.features.as_ref().is_some_and(|features| features.ranges.is_some())
    }

    /// True if the origin resets the connection, or responds with an error, on purpose: whatever the target makes of
    /// that is no error.
    pub fn has_failing_fault(&self) -> bool {
        matches!(self.fault(), Some(Fault::Reset | Fault::Expired(_) | Fault::Status(_)))
    }

    /// Fault that the origin injects if the request gets there.
    pub fn fault(&self) -> Option<Fault> {
        self.features.as_ref().and_then(|features| features.fault)
    }

    /// True if such an end shows that the xact met its fault.
    pub fn met_fault(&self, kind: ResponseKind, outcome: Option<Outcome>) -> bool {
        match self.fault() {
            Some(Fault::Status(_) | Fault::Reset | Fault::Expired(_)) => kind == ResponseKind::Fault,
            Some(Fault::SlowStart(_)) => matches!(outcome, Some(Outcome::Miss | Outcome::Revalidated)),
            Some(Fault::SlowBody { .. }) => outcome == Some(Outcome::Miss),
            None => false,
        }
    }

    /// True if the response must come from the origin.
    pub fn is_reload(&self) -> bool {
        self.request_type == RequestType::Reload
    }

    /// Facts by which the response is judged; `setup` has the declared behaviour of the target.
    pub fn requested(&self, sent_us: u64, setup: &RobotSetup) -> CheckedRequest {
        CheckedRequest {
            id: self.id,
            method: self.method,
            since_s: self.since_s,
            must_reach_origin: self.is_reload() && setup.reloads_reach_origin,
            parts: self.is_for_parts(),
            sent_us,
            clock_error_us: setup.clocks.error_us(),
            key: self.object.key,
            cachable: self.object.cachable,
            validation_updates: setup.validation_updates,
            size: self.object.size_bytes,
        }
    }
}

/// A page and its embedded objects.
#[derive(Debug)]
pub struct PageLoad {
    pub robot: RobotKey,
    /// Phase it was due in.
    pub phase: u16,
    pub due_ns: u64,
    /// The embedded objects that the robot fetches, in page order.
    pub children: Vec<Child>,
    /// Embedded objects launched or given up.
    pub launched: usize,
    /// Xacts of it that have not ended.
    pub open: u32,
    /// Something of it failed or was never requested.
    pub incomplete: bool,
}

/// Everything that is under way or waits.
#[derive(Debug, Default)]
pub struct Xacts {
    xacts: SlotMap<XactKey, Xact>,
    /// Pages of which an xact has not ended.
    pages: SlotMap<PageKey, PageLoad>,
    /// Vectors of pages that have ended: pages come at the rate of launches.
    spare_children: Vec<Vec<Child>>,
}

impl Xacts {
    pub fn insert(&mut self, xact: Xact) -> XactKey {
        self.xacts.insert(xact)
    }

    /// None: the xact has ended.
    pub fn get(&self, key: XactKey) -> Option<&Xact> {
        self.xacts.get(key)
    }

    /// None: the xact has ended.
    pub fn get_mut(&mut self, key: XactKey) -> Option<&mut Xact> {
        self.xacts.get_mut(key)
    }

    /// Ends an xact. None: it has ended before.
    pub fn remove(&mut self, key: XactKey) -> Option<Xact> {
        self.xacts.remove(key)
    }

    /// An empty vector for the embedded objects of a page.
    pub fn take_children(&mut self) -> Vec<Child> {
        self.spare_children.pop().unwrap_or_default()
    }

    pub fn open_page(&mut self, page: PageLoad) -> PageKey {
        self.pages.insert(page)
    }

    /// None: the page has ended.
    pub fn page_mut(&mut self, key: PageKey) -> Option<&mut PageLoad> {
        self.pages.get_mut(key)
    }

    /// Pages of a phase.
    pub fn pages_of(&self, phase: u16) -> Vec<PageKey> {
        self.pages.iter().filter(|(_, page)| page.phase == phase).map(|(key, _)| key).collect()
    }

    /// Counts an xact of a page as ended. The page, without its children, if that was the last.
    pub fn leave_page(&mut self, key: PageKey, incomplete: bool) -> Option<PageLoad> {
        let page = self.pages.get_mut(key)?;
        page.open -= 1;
        page.incomplete |= incomplete;
        if page.open > 0 {
            return None;
        }
        let mut page = self.pages.remove(key)?;
        let mut children = std::mem::take(&mut page.children);
        children.clear();
        self.spare_children.push(children);
        Some(page)
    }
}

impl Index<XactKey> for Xacts {
    type Output = Xact;

    #[inline]
    fn index(&self, key: XactKey) -> &Xact {
        &self.xacts[key]
    }
}

impl IndexMut<XactKey> for Xacts {
    #[inline]
    fn index_mut(&mut self, key: XactKey) -> &mut Xact {
        &mut self.xacts[key]
    }
}

/// Xacts in the order of their turns: those that wait for a connection of their robot, or those behind the first on a
/// connection. Linked through the xacts: nothing is allocated, and an xact stands in one queue at most.
#[derive(Debug, Default)]
pub struct XactQueue {
    first: Option<XactKey>,
    last: Option<XactKey>,
    length: u32,
}

impl XactQueue {
    pub fn len(&self) -> u32 {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub fn first(&self) -> Option<XactKey> {
        self.first
    }

    pub fn push(&mut self, key: XactKey, xacts: &mut Xacts) {
        match self.last.replace(key) {
            None => self.first = Some(key),
            Some(last) => xacts[last].next = Some(key),
        }
        self.length += 1;
    }

    pub fn pop(&mut self, xacts: &mut Xacts) -> Option<XactKey> {
        let key = self.first?;
        self.first = xacts[key].next.take();
        if self.first.is_none() {
            self.last = None;
        }
        self.length -= 1;
        Some(key)
    }

    /// Takes an xact out, wherever it stands. False: it is in another queue.
    pub fn remove(&mut self, key: XactKey, xacts: &mut Xacts) -> bool {
        let mut before = None;
        let mut at = self.first;
        while at != Some(key) {
            let Some(other) = at else { return false };
            (before, at) = (at, xacts[other].next);
        }
        let next = xacts[key].next.take();
        match before {
            None => self.first = next,
            Some(before) => xacts[before].next = next,
        }
        if next.is_none() {
            self.last = before;
        }
        self.length -= 1;
        true
    }

    pub fn iter<'a>(&self, xacts: &'a Xacts) -> impl Iterator<Item = &'a Xact> {
        std::iter::successors(self.first.map(|key| &xacts[key]), |xact| xact.next.map(|key| &xacts[key]))
    }
}

#[cfg(test)]
mod tests {
    use assay_workload::object::Space;
    use proptest::prelude::*;

    use super::*;

    fn xact(number: u64) -> Xact {
        let id = ObjectId { origin: 0, content: 0, space: Space::Public, serial: 0 };
        let object = Object { id, key: 7, size_bytes: 10, cachable: true, checksum: false };
        Xact::new(XactId { robot: 0, number, place: 0 }, RobotKey::FIRST, 0, object, 0)
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push,
        Pop,
        /// Of the one at this position, counted round.
        Remove(usize),
    }

    proptest! {
        #[test]
        fn a_queue_gives_back_what_was_put_in_in_order_but_for_what_was_taken_out(
            steps in proptest::collection::vec(
                prop_oneof![Just(Step::Push), Just(Step::Pop), (0usize..9).prop_map(Step::Remove)], 0..60),
        ) {
            let (mut xacts, mut queue, mut model) = (Xacts::default(), XactQueue::default(), Vec::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Push => {
                        let key = xacts.insert(xact(number as u64));
                        queue.push(key, &mut xacts);
                        model.push(key);
                    }
                    Step::Pop => {
                        let first = (!model.is_empty()).then(|| model.remove(0));
                        prop_assert_eq!(queue.pop(&mut xacts), first);
                    }
                    Step::Remove(at) if !model.is_empty() => {
                        let key = model.remove(at % model.len());
                        prop_assert!(queue.remove(key, &mut xacts));
                        prop_assert!(!queue.remove(key, &mut xacts));
                    }
                    Step::Remove(_) => {}
                }
                let numbers: Vec<u64> = queue.iter(&xacts).map(|xact| xact.id.number).collect();
                prop_assert_eq!(numbers, model.iter().map(|key| xacts[*key].id.number).collect::<Vec<_>>());
                prop_assert_eq!((queue.len() as usize, queue.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!(queue.first(), model.first().copied());
            }
        }
    }

    #[test]
    fn a_wait_is_assays_by_as_much_as_it_delayed_whoever_was_before_but_not_by_more_than_the_wait() {
        let before = ReleasedXact { delayed_us: 3_000, exposed_from_ns: 7 };
        let waited = |released, until_ns| {
            let mut xact = Xact { due_ns: 1_000_000, ..xact(1) };
            xact.make_ready(until_ns, released);
            (xact.own.before_us, xact.exposed_from_ns)
        };
        assert_eq!(waited(Some(before), 6_000_000), (3_000, Some(7)));
        assert_eq!(waited(Some(before), 2_000_000), (1_000, Some(7)));
        assert_eq!(waited(None, 6_000_000), (0, Some(1_000_000)));
        // It can have waited for either of two: the worse is the bound.
        let other = ReleasedXact { delayed_us: 9, exposed_from_ns: 3 };
        assert_eq!(before.either(other), ReleasedXact { delayed_us: 3_000, exposed_from_ns: 3 });
    }

    #[test]
    fn the_key_of_an_xact_that_has_ended_does_not_find_the_next_one() {
        let mut xacts = Xacts::default();
        let first = xacts.insert(xact(1));
        xacts.remove(first);
        let second = xacts.insert(xact(2));
        assert!(xacts.get(first).is_none() && xacts.remove(first).is_none());
        assert_eq!(xacts[second].id.number, 2);
    }
}
