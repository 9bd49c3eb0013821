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
use assay_workload::mark::Note;
use assay_workload::model::{AuthDemand, Coding};
use assay_workload::object::ObjectId;
use assay_workload::{Fault, Object};

use super::password::{Shown, shown};
use super::payload::{Payload, Piece, Pieces};
use super::request::{Request, Special};
use super::site::World;
use crate::coded::{self, chunks};

/// A request that has to be decided on.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    pub world: &'a World,
    pub request: &'a Request,
    /// What is special about it.
    pub special: &'a Special,
    pub object: &'a Object,
    /// The client's copy is as new as the object.
    pub is_unmodified: bool,
    /// When the object was modified, in Unix seconds, if it says so.
    pub last_modified_s: Option<u64>,
    /// Unix seconds.
    pub now_s: u64,
}

/// What the response is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// An error status, on purpose.
    Fault(u16),
    /// 401.
    Challenge {
        /// The password was right, the nonce too old.
        is_stale: bool,
    },
    /// 417.
    Unwanted,
    /// 406.
    Unacceptable,
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

impl Verdict {
    pub fn status(&self) -> u16 {
        match self {
            Verdict::Fault(status) => *status,
            Verdict::Challenge { .. } => 401,
            Verdict::Unwanted => 417,
            Verdict::Unacceptable => 406,
            Verdict::Redirect(_) => 302,
            Verdict::NotModified => 304,
            Verdict::Unsatisfied => 416,
            Verdict::Whole(_) => 200,
            Verdict::Parts(_) => 206,
        }
    }

    /// True for a response that is about the object, and may be kept as long as that says.
    pub fn is_of_object(&self) -> bool {
        matches!(self, Verdict::NotModified | Verdict::Whole(_) | Verdict::Parts(_))
    }
}

impl<'a> Case<'a> {
    /// The authentication that an origin demands; none: it demands none.
    pub fn demand(&self) -> Option<&'a AuthDemand> {
        self.world.universe.auth_demand(self.object)
    }

    /// Decides, and counts what was decided.
    pub fn judge(&self, counts: &mut OriginCounts) -> Verdict {
        let verdict = self.refusal(counts).unwrap_or_else(|| self.content());
        match &verdict {
            Verdict::Fault(_) => counts.fault_statuses += 1,
            Verdict::Challenge { .. } => counts.challenges += 1,
            Verdict::Unwanted => counts.expectations_refused += 1,
            Verdict::Unacceptable => counts.unacceptable += 1,
            Verdict::Redirect(_) => counts.redirects += 1,
            Verdict::Unsatisfied => counts.unsatisfied += 1,
            Verdict::Whole(coding) => counts.coded += u64::from(*coding != Coding::Identity),
            Verdict::Parts(spans) => {
                counts.ranges += 1;
                counts.multiparts += u64::from(spans.len() > 1);
            }
            Verdict::NotModified => {}
        }
        verdict
    }

    /// Why the object is not sent, nor confirmed.
    fn refusal(&self, counts: &mut OriginCounts) -> Option<Verdict> {
        if let Some(Fault::Status(status)) = self.special.fault {
            return Some(Verdict::Fault(status));
        }
        if let Some(demand) = self.demand() {
            match shown(self.world, demand, self.special, self.request.method, self.now_s) {
                Shown::Proven => counts.authenticated += 1,
                Shown::Stale => return Some(Verdict::Challenge { is_stale: true }),
                Shown::Nothing => return Some(Verdict::Challenge { is_stale: false }),
                Shown::Wrong => {
                    counts.wrong_credentials += 1;
                    return Some(Verdict::Challenge { is_stale: false });
                }
            }
        }
        if self.special.is_unwanted {
            return Some(Verdict::Unwanted);
        }
        if self.coding().is_none() {
            return Some(Verdict::Unacceptable);
        }
        let phase = self.request.mark.map_or(0, |mark| mark.phase);
        let may_redirect = !self.request.method.has_body();
        let older = may_redirect
            .then(|| self.world.universe.redirect(self.request.xact(), phase, self.object))
            .flatten();
        older.map(Verdict::Redirect)
    }

    fn content(&self) -> Verdict {
        if self.is_unmodified {
            return Verdict::NotModified;
        }
        // A coding was found acceptable before.
        let coding = self.coding().unwrap_or(Coding::Identity);
        let dated = self.special.if_range_s.is_none_or(|date_s| self.last_modified_s == Some(date_s));
        if coding != Coding::Identity || self.special.ranges.is_empty() || !dated {
            return Verdict::Whole(coding);
        }
        let spans = satisfy(&self.special.ranges, self.object.size_bytes);
        if spans.is_empty() { Verdict::Unsatisfied } else { Verdict::Parts(spans) }
    }

    /// The coding of the response; none: the client takes none that there is.
    fn coding(&self) -> Option<Coding> {
        let offered = self.world.universe.codings(self.object.id.content);
        let for_parts = !self.special.ranges.is_empty();
        coded::choose(offered, &self.special.accepted, self.object.size_bytes, for_parts)
    }

    /// What is told beforehand about the response, and after how many bytes of its body it is broken off.
    pub fn note(&self, verdict: &Verdict, body_bytes: u64) -> (Option<Note>, Option<u64>) {
        if self.special.fault.is_some() {
            return (Some(Note::Fault), None);
        }
        let has_body = matches!(verdict, Verdict::Whole(_) | Verdict::Parts(_)) && !self.request.head_only();
        let cut = has_body
            .then(|| self.world.universe.origin_abort(self.request.xact(), self.request.origin, body_bytes))
            .flatten();
        (cut.map(Note::BreaksOff), cut)
    }

    /// The bytes of the response to a GET, and their digest where the object is sent with one.
    pub fn payload(
        &self,
        verdict: &Verdict,
        version: u64,
        gzip: &mut Option<GzipWriter>,
    ) -> (Payload, Option<[u8; 16]>) {
        let universe = &self.world.universe;
        let pool = universe.pool();
        let body = || universe.body(self.object, version);
        match verdict {
            Verdict::Whole(Coding::Identity) => {
                let body = body();
                let digest = self.object.checksum.then(|| digest(chunks(&body, pool)));
                (Payload::Whole { body, copied: 0 }, digest)
            }
            Verdict::Whole(Coding::Gzip) => {
                let coded = coded::gzip(gzip.get_or_insert_default(), &body(), pool);
                let digest = self.object.checksum.then(|| digest([&coded[..]]));
                (Payload::bytes(coded), digest)
            }
            Verdict::Parts(spans) => (self.parts(body(), spans), None),
            Verdict::NotModified | Verdict::Unsatisfied | Verdict::Redirect(_) => (Payload::Nothing, None),
            Verdict::Fault(_) | Verdict::Challenge { .. } | Verdict::Unwanted | Verdict::Unacceptable => {
                (Payload::bytes(explanation(verdict).into()), None)
            }
        }
    }

    fn parts(&self, body: Body, spans: &[Span]) -> Payload {
        if let [span] = spans {
            return Payload::Pieces(Box::new(Pieces {
                body: Some(body),
                pieces: vec![Piece::OfBody(*span)],
            }));
        }
        let boundary = self.boundary();
        let writer = self.multipart(&boundary);
        let mut pieces = Vec::with_capacity(2 * spans.len() + 1);
        for span in spans {
            let mut head = Vec::new();
            writer.part(*span, &mut head);
            pieces.extend([Piece::Bytes(head), Piece::OfBody(*span)]);
        }
        let mut end = Vec::new();
        writer.end(&mut end);
        pieces.push(Piece::Bytes(end));
        Payload::Pieces(Box::new(Pieces { body: Some(body), pieces }))
    }

    /// What stands between the parts of this object: nothing that occurs in a body but by a chance of one in 2^100.
    pub fn boundary(&self) -> String {
        format!("assay-{:016x}", self.object.key)
    }

    /// Writes the parts of this object.
    pub fn multipart<'b>(&'b self, boundary: &'b str) -> MultipartWriter<'b> {
        MultipartWriter { boundary, mime_type: self.mime_type(), total: self.object.size_bytes }
    }

    /// `Content-Type` of the object.
    pub fn mime_type(&self) -> Option<&str> {
        self.world.universe.workload().contents[usize::from(self.object.id.content)].mime_type.as_deref()
    }
}

fn digest<'b>(chunks: impl IntoIterator<Item = &'b [u8]>) -> [u8; 16] {
    let mut digest = ContentMd5::new();
    chunks.into_iter().for_each(|chunk| digest.update(chunk));
    digest.finish()
}

fn explanation(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Challenge { .. } => "who asks must be known\n",
        Verdict::Unwanted => "this body is not wanted\n",
        Verdict::Unacceptable => "not in a coding that was requested\n",
        _ => "a fault on purpose\n",
    }
}
