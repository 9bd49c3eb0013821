//! Features of special xacts: what the request demands beyond an object, faults and aborts on purpose, and kinds of
//! responses.

use assay_http::coding::Accepted;
use assay_http::range::Span;
use assay_measurement::counts::RobotCounts;
use assay_workload::object::ObjectId;
use assay_workload::{Fault, Ranges};

use super::login::SentCredentials;
use crate::check::CheckVerdict;

/// Features of an xact that plain ones do not have.
#[derive(Debug, Clone, Default)]
pub struct RequestFeatures {
    /// Parts of the object that it requests.
    pub ranges: Option<Ranges>,
    /// Codings that its request accepts.
    pub accepted: Accepted,
    /// A gzip body is right for it.
    pub takes_gzip: bool,
    /// The workload adds an `Accept-Encoding`, which may name codings that robots do not know.
    pub names_codings: bool,
    /// Fields of its kind of robots, and of the body it carries, as lines.
    pub fields: Vec<u8>,
    /// The fault that it meets at its origin.
    pub fault: Option<Fault>,
    /// After how many bytes of the body the robot breaks off.
    pub abort_after: Option<u64>,
    /// The origin breaks off the body of its response.
    pub origin_aborts: bool,
    /// Redirections followed so far.
    pub steps: u8,
    /// Challenges that it has responded to with credentials.
    pub challenges: u8,
    /// The credentials of its last request.
    pub sent_credentials: SentCredentials,
    /// The request sends `Expect: 100-continue`.
    pub expects: bool,
    /// While the body of the request waits for 100 (Continue): when it is sent without.
    pub continue_until_ns: Option<u64>,
    /// End of the xact's lifetime, if it has one.
    pub expires_ns: Option<u64>,
}

impl RequestFeatures {
    /// Counts an xact that ended like this.
    pub fn count(&self, kind: ResponseKind, verdict: &CheckVerdict, counts: &mut RobotCounts) {
        match kind {
            ResponseKind::Object => {}
            ResponseKind::Parts { several, is_checked, is_complete } => {
                counts.parts += 1;
                counts.incomplete_parts += u64::from(!is_complete);
                counts.multiparts += u64::from(several);
                counts.unchecked_parts += u64::from(!is_checked);
            }
            ResponseKind::Coded => counts.coded += 1,
            ResponseKind::CodedHead { is_checked } => counts.unchecked_lengths += u64::from(!is_checked),
            ResponseKind::Unsatisfied => counts.unsatisfied += 1,
            ResponseKind::Redirected(_) | ResponseKind::Challenged | ResponseKind::ExpectationFailed => {}
            ResponseKind::Refused => counts.refused += 1,
            ResponseKind::Fault => counts.faults_passed += 1,
            ResponseKind::OriginAborted => counts.broken_off_by_origin += 1,
            ResponseKind::ClientAborted => counts.broken_off += 1,
        }
        counts.redirected += u64::from(self.steps > 0);
        counts.logged_in += u64::from(self.challenges > 0 && kind != ResponseKind::Refused);
        if self.fault.is_some() && kind.is_object() {
            // An origin injects no fault into a request that does not name itself.
            match verdict.is_unattributed {
                true => counts.faults_omitted += 1,
                false => counts.faults_hidden += 1,
            }
        }
    }

    /// Appends the fields that it adds to the request, a line each.
    pub fn write(&self, out: &mut Vec<u8>) {
        if let Some(ranges) = &self.ranges {
            out.extend_from_slice(b"Range: ");
            ranges.write(out);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(&self.fields);
    }

    /// Requested spans that an object of this size has; none: no parts were requested.
    pub fn requested_spans(&self, size_bytes: u64) -> Option<Vec<Span>> {
        let ranges = self.ranges.as_ref()?;
        let span = |(first, last): (u64, u64)| Span { from: first, to: last + 1 };
        Some(ranges.parts().iter().filter_map(|part| part.resolve(size_bytes)).map(span).collect())
    }
}

/// Meaning of a response for its xact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseKind {
    /// The object, or 304.
    Object,
    Parts {
        several: bool,
        /// The bytes that they are of are known.
        is_checked: bool,
        /// All that was requested, as far as it is there.
        is_complete: bool,
    },
    /// The object, coded.
    Coded,
    /// Head of the object, coded.
    CodedHead {
        /// The length that it announces, if any, is that of the origin's coded bytes.
        is_checked: bool,
    },
    /// None of the parts is there (416), which is right.
    Unsatisfied,
    /// The object is at another URL.
    Redirected(ObjectId),
    /// The origin (or the target) demands authentication, and the robot has no credentials for it; or there is no coding that is
    /// accepted; or the robot follows no more redirections.
    Refused,
    /// The robot is challenged, and has credentials.
    Challenged,
    /// The expectation is refused (417): the request is sent again without `Expect`.
    ExpectationFailed,
    /// The injected fault arrived as intended.
    Fault,
    /// The origin aborts the body on purpose, and has announced after how many bytes.
    OriginAborted,
    /// The robot has had enough of it, on purpose.
    ClientAborted,
}

impl ResponseKind {
    /// True if the xact got what it requested.
    pub fn is_object(self) -> bool {
        matches!(
            self,
            ResponseKind::Object
                | ResponseKind::Parts { .. }
                | ResponseKind::Coded
                | ResponseKind::CodedHead { .. }
        )
    }
}
