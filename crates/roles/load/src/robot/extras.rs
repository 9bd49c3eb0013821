//! What may be special about an xact: what its request demands beyond an object, what is in store for it on purpose, and
//! how it may end.

use assay_http::coding::Accepted;
use assay_http::range::Span;
use assay_measurement::counts::RobotCounts;
use assay_workload::object::ObjectId;
use assay_workload::{Fault, Ranges};

use super::login::Shown;

/// What is special about an xact.
#[derive(Debug, Clone, Default)]
pub struct Extras {
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
    pub break_off: Option<u64>,
    /// The origin breaks off the body of its response.
    pub origin_breaks_off: bool,
    /// Redirections followed so far.
    pub steps: u8,
    /// Challenges that it has responded to with credentials.
    pub challenges: u8,
    /// The credentials of its last request.
    pub shown: Shown,
    /// It sends `Expect: 100-continue`.
    pub expects: bool,
    /// Its body waits for the response.
    pub pause: Pause,
    /// When it is given up; none: not of itself.
    pub expires_ns: Option<u64>,
}

impl Extras {
    /// Counts an xact that ended like this.
    pub fn count(&self, ending: Ending, counts: &mut RobotCounts) {
        match ending {
            Ending::Object => {}
            Ending::Parts { several, is_checked } => {
                counts.parts += 1;
                counts.multiparts += u64::from(several);
                counts.unchecked_parts += u64::from(!is_checked);
            }
            Ending::Coded => counts.coded += 1,
            Ending::Unsatisfied => counts.unsatisfied += 1,
            Ending::Redirected(_) | Ending::Challenged | Ending::Uninvited => {}
            Ending::Refused => counts.refused += 1,
            Ending::Fault => counts.faults_passed += 1,
            Ending::BreaksOff => counts.broken_off_by_origin += 1,
            Ending::BrokenOff => counts.broken_off += 1,
        }
        counts.redirected += u64::from(self.steps > 0);
        counts.logged_in += u64::from(self.challenges > 0 && ending != Ending::Refused);
        counts.faults_hidden += u64::from(self.fault.is_some() && ending.is_object());
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

    /// The parts requested that an object of this size has; none: no parts were requested.
    pub fn wanted(&self, size_bytes: u64) -> Option<Vec<Span>> {
        let ranges = self.ranges.as_ref()?;
        let span = |(first, last): (u64, u64)| Span { from: first, to: last + 1 };
        Some(ranges.parts().iter().filter_map(|part| part.resolve(size_bytes)).map(span).collect())
    }
}

/// What a response means for its xact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The object, or 304.
    Object,
    Parts {
        several: bool,
        /// The bytes that they are of are known.
        is_checked: bool,
    },
    /// The object, coded.
    Coded,
    /// None of the parts is there (416), which is right.
    Unsatisfied,
    /// It is somewhere else.
    Redirected(ObjectId),
    /// The origin (or the target) demands authentication, and the robot has no credentials for it; or there is no coding that is
    /// accepted.
    Refused,
    /// The robot is challenged, and has credentials.
    Challenged,
    /// The expectation is refused (417): the request is sent again without `Expect`.
    Uninvited,
    /// The fault on purpose came through.
    Fault,
    /// The body ends early on purpose: the origin has said after how many bytes.
    BreaksOff,
    /// The robot has had enough of it, on purpose.
    BrokenOff,
}

impl Ending {
    /// The xact got what it requested.
    pub fn is_object(self) -> bool {
        matches!(self, Ending::Object | Ending::Parts { .. } | Ending::Coded)
    }
}

/// How long robots wait for 100: as long as common clients do.
const PATIENCE_NS: u64 = 1_000_000_000;

/// What a request body waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pause {
    #[default]
    None,
    /// For 100, until this instant.
    Waiting {
        /// Of `CLOCK_MONOTONIC`, in nanoseconds.
        until_ns: u64,
    },
}

impl Pause {
    /// Of a body whose head is sent now.
    pub fn begin(now_ns: u64) -> Self {
        Pause::Waiting { until_ns: now_ns.saturating_add(PATIENCE_NS) }
    }
}
