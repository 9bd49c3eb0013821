//! Responses other than a whole object with 200.
//!
//! In this order: a deliberate fault, 401 (the client is not authenticated), 417 (the body is not wanted), 406 (no coding is
//! acceptable), 302 (to an older object), 304, 416 (none of the bytes requested are there), then the object or parts of it.
//! Parts are those of the identity coding; a request for parts gets that coding if it may, and else the whole object, coded.
//! `Location` is a path without host, so that it means the same origin through every kind of proxy.

use assay_http::coding::GzipWriter;
use assay_http::digest::ContentMd5;
use assay_http::range::{MultipartWriter, Span, satisfy};
use assay_measurement::counts::OriginCounts;
use assay_workload::body::Body;
use assay_workload::mark::ResponseNote;
use assay_workload::model::{AuthDemand, Coding};
use assay_workload::object::ObjectId;
use assay_workload::{Fault, Object};

use super::authentication::{Presented, presented};
use super::config::SharedOrigins;
use super::request::{OriginRequest, SpecialRequest};
use super::response_body::{BodySegment, ResponseBody, SegmentedBody};
use crate::coded::{self, chunks};

/// A request that has to be decided on.
#[derive(Debug, Clone, Copy)]
pub struct DecisionContext<'a> {
    pub shared: &'a SharedOrigins,
    pub request: &'a OriginRequest,
    pub special: &'a SpecialRequest,
    pub object: &'a Object,
    /// The client's copy is as new as the object.
    pub is_unmodified: bool,
    /// `Last-Modified` of the object, in Unix seconds, if it has one.
    pub last_modified_s: Option<u64>,
    /// Unix seconds.
    pub now_s: u64,
}

/// Kind of response that an origin decides on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OriginDecision {
    /// An error status, on purpose.
    Fault(u16),
    /// 401.
    Challenge {
        /// The password was right, the nonce too old.
        is_stale: bool,
    },
    /// 417.
    ExpectationFailed,
    /// 406.
    NotAcceptable,
    /// 302, to this object.
    Redirect(ObjectId),
    /// 304.
    NotModified,
    /// 416.
    Unsatisfied,
    /// 200.
    Whole(Coding),
    /// 206.
    Parts(Vec<Span>),
}

impl OriginDecision {
    pub fn status(&self) -> u16 {
        match self {
            OriginDecision::Fault(status) => *status,
            OriginDecision::Challenge { .. } => 401,
            OriginDecision::ExpectationFailed => 417,
            OriginDecision::NotAcceptable => 406,
            OriginDecision::Redirect(_) => 302,
            OriginDecision::NotModified => 304,
            OriginDecision::Unsatisfied => 416,
            OriginDecision::Whole(_) => 200,
            OriginDecision::Parts(_) => 206,
        }
    }

    /// True for a response that is about the object, and as fresh as the object is.
    pub fn is_of_object(&self) -> bool {
        matches!(self, OriginDecision::NotModified | OriginDecision::Whole(_) | OriginDecision::Parts(_))
    }
}

impl<'a> DecisionContext<'a> {
    /// Authentication that the origin demands, if it does.
    pub fn demand(&self) -> Option<&'a AuthDemand> {
        self.shared.universe.auth_demand(self.object)
    }

    /// Decides, and counts what was decided.
    pub fn judge(&self, counts: &mut OriginCounts) -> OriginDecision {
        let decision = self.refusal(counts).unwrap_or_else(|| self.content());
        match &decision {
            OriginDecision::Fault(_) => counts.fault_statuses += 1,
            OriginDecision::Challenge { .. } => counts.challenges += 1,
            OriginDecision::ExpectationFailed => counts.expectations_refused += 1,
            OriginDecision::NotAcceptable => counts.unacceptable += 1,
            OriginDecision::Redirect(_) => counts.redirects += 1,
            OriginDecision::Unsatisfied => counts.unsatisfied += 1,
            OriginDecision::Whole(coding) => counts.coded += u64::from(*coding != Coding::Identity),
            OriginDecision::Parts(spans) => {
                counts.ranges += 1;
                counts.multiparts += u64::from(spans.len() > 1);
            }
            OriginDecision::NotModified => {}
        }
        decision
    }

    /// Reason for which the object is neither sent nor confirmed.
    fn refusal(&self, counts: &mut OriginCounts) -> Option<OriginDecision> {
        if let Some(Fault::Status(status)) = self.special.fault {
            return Some(OriginDecision::Fault(status));
        }
        if let Some(demand) = self.demand() {
            match presented(self.shared, demand, self.special, self.request.method, self.now_s) {
                Presented::Proven => counts.authenticated += 1,
                Presented::Stale => return Some(OriginDecision::Challenge { is_stale: true }),
                Presented::Nothing => return Some(OriginDecision::Challenge { is_stale: false }),
                Presented::Wrong => {
                    counts.wrong_credentials += 1;
                    return Some(OriginDecision::Challenge { is_stale: false });
                }
            }
        }
        if self.special.is_body_refused {
            return Some(OriginDecision::ExpectationFailed);
        }
        if self.coding().is_none() {
            return Some(OriginDecision::NotAcceptable);
        }
        let phase = self.request.mark.map_or(0, |mark| mark.phase);
        let may_redirect = !self.request.method.has_body();
        let older = may_redirect
            .then(|| self.shared.universe.redirect(self.request.xact(), phase, self.object))
            .flatten();
        older.map(OriginDecision::Redirect)
    }

    fn content(&self) -> OriginDecision {
        if self.is_unmodified {
            return OriginDecision::NotModified;
        }
        // A coding was found acceptable before.
        let coding = self.coding().unwrap_or(Coding::Identity);
        let dated = self.special.if_range_s.is_none_or(|date_s| self.last_modified_s == Some(date_s));
        if coding != Coding::Identity || self.special.ranges.is_empty() || !dated {
            return OriginDecision::Whole(coding);
        }
        let spans = satisfy(&self.special.ranges, self.object.size_bytes);
        if spans.is_empty() { OriginDecision::Unsatisfied } else { OriginDecision::Parts(spans) }
    }

    /// Coding of the response; none: the client accepts none that there is.
    fn coding(&self) -> Option<Coding> {
        let offered = self.shared.universe.codings(self.object.id.content);
        let for_parts = !self.special.ranges.is_empty();
        coded::choose(offered, &self.special.accepted, self.object.size_bytes, for_parts)
    }

    /// Note that announces a fault or an abort, and the bytes of the body after which the response is aborted.
    pub fn note(&self, decision: &OriginDecision, body_bytes: u64) -> (Option<ResponseNote>, Option<u64>) {
        if self.special.fault.is_some() {
            return (Some(ResponseNote::Fault), None);
        }
        let has_body = matches!(decision, OriginDecision::Whole(_) | OriginDecision::Parts(_))
            && !self.request.head_only();
        let abort_after = has_body
            .then(|| self.shared.universe.origin_abort(self.request.xact(), self.request.origin, body_bytes))
            .flatten();
        (abort_after.map(ResponseNote::BreaksOff), abort_after)
    }

    /// Body of the response to a GET, and its digest where the object is sent with one.
    pub fn payload(
        &self,
        decision: &OriginDecision,
        version: u64,
        gzip: &mut Option<GzipWriter>,
    ) -> (ResponseBody, Option<[u8; 16]>) {
        let universe = &self.shared.universe;
        let pool = universe.pool();
        let body = || universe.body(self.object, version);
        match decision {
            OriginDecision::Whole(Coding::Identity) => {
                let body = body();
                let digest = self.object.checksum.then(|| digest(chunks(&body, pool)));
                (ResponseBody::Whole { body, copied: 0 }, digest)
            }
            OriginDecision::Whole(Coding::Gzip) => {
                let coded = coded::gzip(gzip.get_or_insert_default(), &body(), pool);
                let digest = self.object.checksum.then(|| digest([&coded[..]]));
                (ResponseBody::bytes(coded), digest)
            }
            OriginDecision::Parts(spans) => (self.parts(body(), spans), None),
            OriginDecision::NotModified | OriginDecision::Unsatisfied | OriginDecision::Redirect(_) => {
                (ResponseBody::Nothing, None)
            }
            OriginDecision::Fault(_)
            | OriginDecision::Challenge { .. }
            | OriginDecision::ExpectationFailed
            | OriginDecision::NotAcceptable => (ResponseBody::bytes(explanation(decision).into()), None),
        }
    }

    fn parts(&self, body: Body, spans: &[Span]) -> ResponseBody {
        if let [span] = spans {
            return ResponseBody::Segments(Box::new(SegmentedBody {
                body: Some(body),
                segments: vec![BodySegment::OfBody(*span)],
            }));
        }
        let boundary = self.boundary();
        let writer = self.multipart(&boundary);
        let mut segments = Vec::with_capacity(2 * spans.len() + 1);
        for span in spans {
            let mut head = Vec::new();
            writer.part(*span, &mut head);
            segments.extend([BodySegment::Bytes(head), BodySegment::OfBody(*span)]);
        }
        let mut end = Vec::new();
        writer.end(&mut end);
        segments.push(BodySegment::Bytes(end));
        ResponseBody::Segments(Box::new(SegmentedBody { body: Some(body), segments }))
    }

    /// Boundary between the parts of this object: it occurs in a body by a chance of one in 2^100 only.
    pub fn boundary(&self) -> String {
        format!("assay-{:016x}", self.object.key)
    }

    /// Writes the parts of this object.
    pub fn multipart<'b>(&'b self, boundary: &'b str) -> MultipartWriter<'b> {
        MultipartWriter { boundary, mime_type: self.mime_type(), total: self.object.size_bytes }
    }

    /// `Content-Type` of the object.
    pub fn mime_type(&self) -> Option<&str> {
        self.shared.universe.workload().contents[usize::from(self.object.id.content)].mime_type.as_deref()
    }
}

fn digest<'b>(chunks: impl IntoIterator<Item = &'b [u8]>) -> [u8; 16] {
    let mut digest = ContentMd5::new();
    chunks.into_iter().for_each(|chunk| digest.update(chunk));
    digest.finish()
}

fn explanation(decision: &OriginDecision) -> &'static str {
    match decision {
        OriginDecision::Challenge { .. } => "who asks must be known\n",
        OriginDecision::ExpectationFailed => "this body is not wanted\n",
        OriginDecision::NotAcceptable => "not in a coding that was requested\n",
        _ => "a fault on purpose\n",
    }
}
