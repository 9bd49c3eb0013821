//! Xacts and pages under way.

use std::num::NonZeroU64;

use assay_measurement::outcome::Outcome;
use assay_measurement::own_error::BEGUN_LATE_US;
use assay_workload::XactId;
use assay_workload::mark::RequestKind;
use assay_workload::model::{Method, RequestType};
use assay_workload::object::ObjectId;
use assay_workload::{Child, Fault, Object};

use super::features::{RequestFeatures, ResponseKind};
use super::setup::RobotSetup;
use crate::check::CheckedRequest;
use crate::tally::flights::{Exposure, OriginResidence};
use crate::tally::ideal::SentLookup;
use crate::tally::{Instants, OwnDelays, micros};
use assay_net::rx_timestamps::min_unread_us;

/// No place in a slab.
pub const NONE: u32 = u32::MAX;

/// One request with its response. Instants are nanoseconds of `CLOCK_MONOTONIC`; 0: not yet.
#[derive(Debug)]
pub struct Xact {
    pub id: XactId,
    /// Place of its robot in this worker.
    pub robot: u32,
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
    pub sent_ns: u64,
    /// Connection established (new connections only).
    pub connected_ns: u64,
    /// TLS handshake over (new connections with TLS only).
    pub secured_ns: u64,
    /// First byte of the response.
    pub first_byte_ns: u64,
    /// Assay's delays so far.
    pub own: OwnDelays,
    /// Time for which the origin had the request, as far as that is known.
    pub at_origin: Option<OriginResidence>,
    /// Instant from which waits of the target can have delayed the xact, if that is sooner than when it was sent:
    /// others had its connection.
    pub since_ns: Option<NonZeroU64>,
    /// Lookup in the ideal cache, if there was one.
    pub sent_lookup: Option<SentLookup>,
    /// The page it belongs to or is; [`NONE`]: it has to do with no page.
    pub page: u32,
    /// Serial of the robot's connection that carries it.
    pub connection: Option<u32>,
    /// The next one that waits for a connection of the same robot, or that is behind it on the same connection.
    pub next: u32,
}

impl Xact {
    /// A plain GET of `object` that has come due, and is basic, of no page.
    pub fn new(id: XactId, robot: u32, phase: u16, object: Object, due_ns: u64) -> Self {
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
            refusals: 0,
            post_body: None,
            since_s: None,
            due_ns,
            ready_ns: due_ns,
            sent_ns: 0,
            connected_ns: 0,
            secured_ns: 0,
            first_byte_ns: 0,
            own: OwnDelays::default(),
            at_origin: None,
            since_ns: None,
            sent_lookup: None,
            page: NONE,
            connection: None,
            next: NONE,
        }
    }

    /// Instants of an xact that ends at `end_ns`.
    pub fn instants(&self, end_ns: u64) -> Instants {
        let begin = self.due_ns + u64::from(self.begun_late_us()) * 1_000;
        Instants { begin, sent: self.sent_ns, first_byte: self.first_byte_ns, last_byte: end_ns }
    }

    /// Instant from which nothing but Assay kept the request from being sent.
    #[inline]
    pub fn earliest_send_ns(&self) -> u64 {
        self.due_ns.max(self.ready_ns)
    }

    /// Time from due to the beginning of its times: Assay's lateness, up to [`BEGUN_LATE_US`].
    #[inline]
    pub fn begun_late_us(&self) -> u32 {
        micros(self.earliest_send_ns(), self.sent_ns).min(u64::from(BEGUN_LATE_US)) as u32
    }

    /// Begins a response, whose first bytes are read now, having lain unread for `unread_us`.
    #[inline]
    pub fn begin_response(&mut self, read_ns: u64, unread_us: u32) {
        self.first_byte_ns = self.received_ns(read_ns, unread_us);
        self.own.first_us = unread_us - min_unread_us(unread_us);
    }

    /// Instant at which bytes that are read now had come for certain, having lain unread for `unread_us` by the
    /// kernel's stamp: not before any bytes that came earlier.
    #[inline]
    pub fn received_ns(&self, read_ns: u64, unread_us: u32) -> u64 {
        let received_ns = read_ns.saturating_sub(u64::from(min_unread_us(unread_us)) * 1_000);
        received_ns.max(self.first_byte_ns.max(self.sent_ns))
    }

    /// Instant from which waits of the target can have delayed the xact.
    pub fn exposed_since_ns(&self) -> u64 {
        self.since_ns.map_or(self.sent_ns, NonZeroU64::get)
    }

    /// Waits of the target that the xact can have met. `shares`: its connection carries others at the same time.
    pub fn exposure(&self, outcome: Option<Outcome>, body_bytes: u64, shares: bool) -> Exposure {
        let steps = self.features.as_ref().is_some_and(|features| features.steps > 0);
        let to_connect = match (self.connected_ns, self.secured_ns) {
            (0, _) => 0,
            (_, 0) => 1,
            // A handshake goes back and forth.
            _ => 3,
        };
        let needs = if shares || steps || self.since_ns.is_some() {
            Exposure::ALWAYS
        } else {
            Exposure::needs(outcome == Some(Outcome::Hit), body_bytes, to_connect)
        };
        Exposure { from_ns: self.exposed_since_ns(), at_origin: self.at_origin, needs }
    }

    /// Begins another request of the xact, for which its response calls. That had lain unread for `unread_us`.
    pub fn begin_next_step(&mut self, unread_us: u32) {
        self.first_byte_ns = 0;
        self.own.before(unread_us.saturating_add(self.own.origin_us));
        (self.own.first_us, self.own.origin_us) = (0, 0);
    }

    /// True for the page itself, false for embedded objects.
    pub fn is_page(&self) -> bool {
        self.page != NONE && self.id.place == 0
    }

    pub fn is_embedded(&self) -> bool {
        self.id.place > 0
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

    /// True if a cache may keep the response: the origin sends one.
    pub fn may_fill(&self) -> bool {
        !self.method.has_body() && !self.has_failing_fault()
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
            coded: self.features.as_ref().is_some_and(|features| features.takes_gzip),
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
    /// Place of its robot in this worker.
    pub robot: u32,
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
