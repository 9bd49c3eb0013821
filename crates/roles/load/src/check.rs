//! Checks of a response: right object, right version, right bytes, as the universe says that they must be.
//!
//! Pure: heads and body slices go in, an outcome or the first thing that is [`CheckError`] comes out. One response can be
//! wrong in several ways; it counts under the first that applies, in this order:
//!
//! 1. *Malformed* (found by the parser, before this file sees anything).
//! 2. *HitOnUncachable* for what origins say in place of an object, made for another request; *WrongStatus* for a status that its
//!    origin did not send.
//! 3. *ErrorStatus*, *WrongStatus*; *WrongNotModified* for a 304 response to an unconditional request.
//! 4. *Foreign*: no id of our origins. A 304 may come without one, because RFC 9110 lets a cache leave it out.
//! 5. *WrongObject*, *WrongVersion*: what the id says.
//! 6. *WrongNotModified*: the version that is confirmed is newer than the date requested.
//! 7. *HitOnUncachable*, *WrongVariant*, *HitOnReload*, *Stale*: the response may not be served.
//! 8. *WrongLength*, *WrongBytes*, *TruncatedBody*: the body, in the order in which it arrives.
//! 9. *ExtraBytes*: what follows the end.
//!
//! *Not here:* sockets, time-outs, and what becomes of the connection.

use assay_measurement::error_kind::ErrorKind;
use assay_measurement::outcome::Outcome;
use assay_workload::mark::ResponseMark;
use assay_workload::model::Method;
use assay_workload::variants::VaryConflict;
use assay_workload::{Life, XactId};
use thiserror::Error;

use crate::cache_fields::ChangedFields;

/// Seconds after its `Expires` for which a response from the store is still let pass.
///
/// HTTP dates are whole seconds. A response made at 10.9 s carries `Date: 10` and `Expires: 20`; a cache that stores it
/// at once may count a lifetime of ten seconds from 10.9, and be right until 20.9. Both instants are therefore compared
/// as whole seconds, and one second of difference is no error.
const EXPIRY_TOLERANCE_S: i64 = 1;

/// The parts of a request that its response is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckedRequest {
    pub id: XactId,
    pub method: Method,
    /// Date of `If-Modified-Since`, in seconds since the start of the run; none: the request was not conditional.
    pub since_s: Option<i64>,
    /// The request said `no-cache`, and the target declares to pass that on.
    pub must_reach_origin: bool,
    /// Parts were requested: 206 is as good as 200.
    pub parts: bool,
    /// Instant of sending, in microseconds since the start of the run.
    pub sent_us: u64,
    /// Upper bound on the difference between an instant of an origin and the same instant of the robot, in
    /// microseconds: 0 on one machine.
    pub clock_error_us: u64,
    /// Key of the object.
    pub key: u64,
    /// The object may be stored.
    pub cachable: bool,
    /// The target writes what a 304 says into what it has stored, so an id shows when a response was last confirmed.
    pub validation_updates: bool,
    /// Size of the object in bytes.
    pub size: u64,
}

/// Facts of a response head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedHead {
    pub status: u16,
    /// Our origins' id; none: absent or unreadable.
    pub mark: Option<ResponseMark>,
    /// `Content-Length`.
    pub content_length: Option<u64>,
    /// The body is in a content coding.
    pub is_coded: bool,
    /// `Last-Modified` in seconds since the start of the run; only needed in a 304.
    pub last_modified_s: Option<i64>,
}

/// Judgement of a head: the outcome, and the body that must follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckVerdict {
    /// None: a 304 without an id does not tell.
    pub outcome: Option<Outcome>,
    /// The error of the clocks leaves open whether the response was made before the request was sent, and so which outcome it is.
    pub is_unsure: bool,
    /// A hit that only a validation allows (it had expired by what it says, or says `Vary: *`), from a target that would not show
    /// whether an origin has confirmed it.
    pub is_unconfirmed: bool,
    /// Instant by which the origin had made a response that came from the store, in microseconds since the start of the run; none: it
    /// did not come from there.
    pub stored_us: Option<u64>,
    /// The response names no request: the target fetched it without the `X-Assay` of one.
    pub is_unattributed: bool,
    /// Fields for caches that are not as the origin sent them; none: they were not compared.
    pub changed_fields: Option<ChangedFields>,
    /// Version of the object that must follow.
    pub version: u64,
    /// Body bytes that must follow; none: the response has no body.
    pub body_bytes: Option<u64>,
}

impl CheckVerdict {
    /// Verdict on a response that does not say which object it is of.
    pub const NOT_OF_OBJECT: Self = Self {
        outcome: None,
        is_unsure: false,
        is_unconfirmed: false,
        stored_us: None,
        is_unattributed: false,
        changed_fields: None,
        version: 0,
        body_bytes: None,
    };
}

/// Error of a response, with actual and expected values.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckError {
    /// A status that this request cannot have.
    #[error("status {actual} instead of {}", if *.conditional { "200 or 304" } else { "200" })]
    Status { actual: u16, conditional: bool },
    /// The response is an origin's, by its id, and its status is not.
    #[error("status {actual}, but the origin sent {origin}")]
    StatusChanged { actual: u16, origin: u16 },
    #[error("status {status} without {field}, so no client can respond to it")]
    NoChallenge { status: u16, field: &'static str },
    /// The origin has asked for credentials, and the robot has the right ones.
    #[error(
        "status 401 of the origin to a robot that has the right password: its credentials were lost or changed on the way, or with Digest the method or URL that they are for"
    )]
    CredentialsLost,
    #[error("status 304, but the request was not conditional")]
    NotModifiedUnrequested,
    /// 304, though the object is newer than the date requested; none: each of its versions is.
    #[error("{}", not_modified_since(*.modified_s, *.since_s))]
    NotModifiedSince { modified_s: Option<i64>, since_s: i64 },
    /// No id of our origins.
    #[error(
        "no X-Assay of our origins in the response (a target that drops response fields that it does not know has to pass this one on)"
    )]
    NoMark,
    #[error("object {actual:016x} instead of {expected:016x}")]
    Object { actual: u64, expected: u64 },
    #[error("version {actual}; when the response was made, version {expected} was current")]
    Version { actual: u64, expected: u64 },
    /// A response from the future.
    #[error("the response says it was made at {made_us} µs of the run, and it arrived at {now_us} µs")]
    MadeLater { made_us: u64, now_us: u64 },
    /// Served from the store, or shared, though it may not be stored.
    #[error(
        "the response was made for another request at {made_us} µs (this one was sent at {sent_us} µs), but {}",
        if .method.has_body() { "a request with a body must reach the origin" } else { "the object may not be stored" }
    )]
    Stored { made_us: u64, sent_us: u64, method: Method },
    /// What an origin says in place of an object (an error, a challenge, a redirection) says `no-store`.
    #[error(
        "the {status} of an origin was made for another request at {made_us} µs (this one was sent at {sent_us} µs), but may not be stored"
    )]
    StoredRefusal { status: u16, made_us: u64, sent_us: u64 },
    /// A stored response that `Vary` keeps from this request.
    #[error("{0}")]
    Variant(Box<VaryConflict>),
    /// A reload that did not reach the origin.
    #[error("the response to a reload sent at {sent_us} µs was made before, at {made_us} µs")]
    ReloadStored { made_us: u64, sent_us: u64 },
    #[error(
        "served from the store to a request sent at {sent_s}, but it expired at {expires_s} (seconds of the run)"
    )]
    Expired { expires_s: i64, sent_s: i64 },
    #[error("{actual} bytes instead of {expected}")]
    Length { actual: u64, expected: u64 },
    /// `Content-Length` of a response to HEAD that the object cannot have in gzip.
    #[error("Content-Length {actual} in gzip, of an object that has {object} bytes without it")]
    CodedLength { actual: u64, object: u64 },
    /// More body than the object has.
    #[error("more bytes than the object's {expected}")]
    Longer { expected: u64 },
    #[error("in a coding that the request did not ask for")]
    CodingUnrequested,
    #[error("status 206 without a Content-Range that fits the object")]
    NoContentRange,
    #[error("a body of several parts, but one range was requested")]
    MultipartUnrequested,
    /// No byte of a part that was requested and is there; `to` is exclusive.
    #[error("none of bytes {from} to {}, which were requested", .to - 1)]
    PartMissing { from: u64, to: u64 },
    /// Position of the first byte that is not the object's.
    #[error("body byte {at} is not the object's")]
    Bytes { at: u64 },
    #[error("{}", truncated(*actual, *expected))]
    Truncated { actual: u64, expected: u64 },
}

impl CheckError {
    /// Class that the error is counted under.
    pub fn kind(&self) -> ErrorKind {
        match self {
            CheckError::Status { actual: 400..=599, .. } => ErrorKind::ErrorStatus,
            CheckError::Status { .. }
            | CheckError::StatusChanged { .. }
            | CheckError::NoChallenge { .. }
            | CheckError::CredentialsLost => ErrorKind::WrongStatus,
            CheckError::NotModifiedUnrequested | CheckError::NotModifiedSince { .. } => {
                ErrorKind::WrongNotModified
            }
            CheckError::NoMark => ErrorKind::Foreign,
            CheckError::CodingUnrequested => ErrorKind::UnrequestedCoding,
            CheckError::NoContentRange | CheckError::MultipartUnrequested => ErrorKind::Malformed,
            CheckError::Object { .. } => ErrorKind::WrongObject,
            CheckError::Version { .. } | CheckError::MadeLater { .. } => ErrorKind::WrongVersion,
            CheckError::Stored { .. } | CheckError::StoredRefusal { .. } => ErrorKind::HitOnUncachable,
            CheckError::Variant(_) => ErrorKind::WrongVariant,
            CheckError::ReloadStored { .. } => ErrorKind::HitOnReload,
            CheckError::Expired { .. } => ErrorKind::Stale,
            CheckError::Length { .. }
            | CheckError::CodedLength { .. }
            | CheckError::Longer { .. }
            | CheckError::PartMissing { .. } => ErrorKind::WrongLength,
            CheckError::Bytes { .. } => ErrorKind::WrongBytes,
            CheckError::Truncated { .. } => ErrorKind::TruncatedBody,
        }
    }
}

fn truncated(actual: u64, expected: u64) -> String {
    match actual == expected {
        true => {
            format!("the connection was closed after {actual} body bytes, before the end of the last chunk")
        }
        false => format!("the connection was closed after {actual} of {expected} body bytes"),
    }
}

fn not_modified_since(modified_s: Option<i64>, since_s: i64) -> String {
    match modified_s {
        Some(modified_s) => format!(
            "304 for a version modified at {modified_s}; the request was for one newer than {since_s} (seconds of the run)"
        ),
        None => format!("304, but no version of the object is as old as {since_s} (seconds of the run)"),
    }
}

/// Judges the head of a response that arrived at `now_us`.
///
/// `life_at` gives the object's life at a second of the run; `vary_conflict`, by which field `Vary` keeps the response to the
/// request of an xact from this one.
pub fn judge_head(
    requested: &CheckedRequest,
    response: &ReceivedHead,
    now_us: u64,
    life_at: impl Fn(i64) -> Life,
    vary_conflict: impl FnOnce(XactId) -> Option<VaryConflict>,
) -> Result<CheckVerdict, CheckError> {
    let not_modified = match (response.status, requested.since_s) {
        // A proxy that transforms what it passes on says 203 (RFC 9110, 15.3.4); the bytes are checked.
        (200 | 203, _) => None,
        (206, _) if requested.parts => None,
        (304, Some(since_s)) => Some(since_s),
        (304, None) => return Err(CheckError::NotModifiedUnrequested),
        (actual, since_s) => {
            return Err(match response.mark {
                Some(mark) if mark.status != actual => {
                    CheckError::StatusChanged { actual, origin: mark.status }
                }
                _ => CheckError::Status { actual, conditional: since_s.is_some() },
            });
        }
    };
    let mark = match (response.mark, not_modified) {
        (Some(mark), _) => mark,
        (None, None) => return Err(CheckError::NoMark),
        (None, Some(since_s)) => return judge_bare_304(response, since_s, &life_at(0)),
    };
    if mark.key != requested.key {
        return Err(CheckError::Object { actual: mark.key, expected: requested.key });
    }
    if mark.made_us > now_us.saturating_add(requested.clock_error_us) {
        return Err(CheckError::MadeLater { made_us: mark.made_us, now_us });
    }
    let life = life_at(second(mark.made_us));
    if mark.version != life.version {
        return Err(CheckError::Version { actual: mark.version, expected: life.version });
    }
    if let (Some(since_s), Some(modified_s)) = (not_modified, life.last_modified_s)
        && modified_s > since_s
    {
        return Err(CheckError::NotModifiedSince { modified_s: Some(modified_s), since_s });
    }
    let outcome = outcome(requested, &mark);
    judge_serving(requested, &mark, outcome)?;
    let conflict = match outcome {
        Outcome::Hit | Outcome::Collapsed => vary_conflict(mark.xact),
        _ => None,
    };
    let varies_by_all = match conflict {
        Some(conflict) if conflict.field != "*" || requested.validation_updates => {
            return Err(CheckError::Variant(Box::new(conflict)));
        }
        conflict => conflict.is_some(),
    };
    // What may have been sent a little sooner by the origin's clock is not stale for certain.
    let sent_us = requested.sent_us.saturating_sub(requested.clock_error_us);
    let has_expired = outcome == Outcome::Hit
        && is_unconfirmed(&life, second(sent_us), requested.validation_updates, life_at)?;
    let body_bytes = (not_modified.is_none() && requested.method != Method::Head).then_some(requested.size);
    // Of a 304, too, it is that of the object (RFC 9110, 8.6).
    if matches!(response.status, 200 | 203 | 304)
        // How many bytes a coded body has, only decoding it tells.
        && !response.is_coded
        && let Some(actual) = response.content_length
        && actual != requested.size
    {
        return Err(CheckError::Length { actual, expected: requested.size });
    }
    let is_unsure =
        mark.xact != requested.id && mark.made_us.abs_diff(requested.sent_us) < requested.clock_error_us;
    Ok(CheckVerdict {
        outcome: Some(outcome),
        is_unsure,
        is_unconfirmed: has_expired || varies_by_all,
        stored_us: (outcome == Outcome::Hit).then_some(mark.made_us.saturating_add(requested.clock_error_us)),
        is_unattributed: mark.xact == XactId::NOBODY,
        changed_fields: None,
        version: mark.version,
        body_bytes,
    })
}

fn second(us: u64) -> i64 {
    (us / 1_000_000) as i64
}

/// Outcome by the ids of request and response.
fn outcome(requested: &CheckedRequest, mark: &ResponseMark) -> Outcome {
    if mark.xact == requested.id {
        match mark.not_modified() && requested.since_s.is_none() {
            true => Outcome::Revalidated,
            false => Outcome::Miss,
        }
    } else if mark.xact == XactId::NOBODY {
        // A proxy that drops the id from requests: whose fetch it was is not known, and unless it was surely made before,
        // most likely it was this one's.
        match mark.made_us.saturating_add(requested.clock_error_us) < requested.sent_us {
            true => Outcome::Hit,
            false => Outcome::Miss,
        }
    } else if mark.made_us < requested.sent_us {
        Outcome::Hit
    } else {
        Outcome::Collapsed
    }
}

/// Whether a response that came about this way may be served to this request.
fn judge_serving(
    requested: &CheckedRequest,
    mark: &ResponseMark,
    outcome: Outcome,
) -> Result<(), CheckError> {
    let (made_us, sent_us) = (mark.made_us, requested.sent_us);
    if outcome != Outcome::Miss && (!requested.cachable || requested.method.has_body()) {
        return Err(CheckError::Stored { made_us, sent_us, method: requested.method });
    }
    // Within the error of the clocks, it may have been fetched for this one.
    let is_surely_before = made_us.saturating_add(requested.clock_error_us) < sent_us;
    if outcome == Outcome::Hit && requested.must_reach_origin && is_surely_before {
        return Err(CheckError::ReloadStored { made_us, sent_us });
    }
    Ok(())
}

/// Judges the status of a response that names its origin. What an origin sends in place of an object, such as an error or a challenge,
/// says `no-store` and is passed on as it is; an object may be confirmed, cut into parts or transformed on the way.
pub fn judge_status(requested: &CheckedRequest, actual: u16, mark: &ResponseMark) -> Result<(), CheckError> {
    if !mark.is_of_object() && matches!(outcome(requested, mark), Outcome::Hit | Outcome::Collapsed) {
        let ResponseMark { status, made_us, .. } = *mark;
        return Err(CheckError::StoredRefusal { status, made_us, sent_us: requested.sent_us });
    }
    // Whether 416 is right, the parts requested tell.
    let is_of_object = mark.is_of_object() && (actual < 400 || actual == 416);
    match actual == mark.status || is_of_object {
        true => Ok(()),
        false => Err(CheckError::StatusChanged { actual, origin: mark.status }),
    }
}

/// Whether a stored response that is served to a request sent at `sent_s` has expired since its origin made it, with `life`,
/// and may have been confirmed. An error: it was not.
///
/// A target that does not write a 304 into what it has stored (some widely used ones do not) may have had the response
/// confirmed long after it was made, and nothing in it says so. It is stale for certain only if even a confirmation in
/// the last second of its version would have run out: after that, the origin would have sent the next version.
fn is_unconfirmed(
    life: &Life,
    sent_s: i64,
    validation_updates: bool,
    life_at: impl Fn(i64) -> Life,
) -> Result<bool, CheckError> {
    let expired = |expires_s: Option<i64>| expires_s.filter(|at_s| sent_s > at_s + EXPIRY_TOLERANCE_S);
    let Some(expires_s) = expired(life.expires_s) else { return Ok(false) };
    if validation_updates {
        return Err(CheckError::Expired { expires_s, sent_s });
    }
    let next_s = life.next_modified_s.filter(|next_s| *next_s <= sent_s);
    match next_s.and_then(|next_s| expired(life_at(next_s - 1).expires_s)) {
        Some(expires_s) => Err(CheckError::Expired { expires_s, sent_s }),
        None => Ok(true),
    }
}

/// Judges a 304 without an id: right if the version it shows, or else any version that can be stored, is old enough.
/// `first` is the object's life at the start of the run: no cache of ours has an older version.
fn judge_bare_304(response: &ReceivedHead, since_s: i64, first: &Life) -> Result<CheckVerdict, CheckError> {
    let verdict = CheckVerdict::NOT_OF_OBJECT;
    match (response.last_modified_s, first.last_modified_s) {
        (Some(shown_s), _) if shown_s > since_s => {
            Err(CheckError::NotModifiedSince { modified_s: Some(shown_s), since_s })
        }
        (None, Some(oldest_s)) if oldest_s > since_s => {
            Err(CheckError::NotModifiedSince { modified_s: None, since_s })
        }
        _ => Ok(verdict),
    }
}

/// Judges a body as it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyCheck {
    expected: u64,
    received: u64,
}

impl BodyCheck {
    /// For a body that must have `expected` bytes.
    pub fn new(expected: u64) -> Self {
        Self { expected, received: 0 }
    }

    /// Body bytes so far.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Takes the next bytes; `compare` gives the position of the first that is not the object's.
    #[inline]
    pub fn feed(
        &mut self,
        bytes: &[u8],
        compare: impl FnOnce(u64, &[u8]) -> Result<(), u64>,
    ) -> Result<(), CheckError> {
        let from = self.received;
        self.received += bytes.len() as u64;
        let inside = self.expected.saturating_sub(from).min(bytes.len() as u64) as usize;
        compare(from, &bytes[..inside]).map_err(|at| CheckError::Bytes { at })?;
        if self.received > self.expected {
            return Err(CheckError::Longer { expected: self.expected });
        }
        Ok(())
    }

    /// Checks the length, once the framing says that the body is complete.
    pub fn end(&self) -> Result<(), CheckError> {
        match self.received == self.expected {
            true => Ok(()),
            false => Err(CheckError::Length { actual: self.received, expected: self.expected }),
        }
    }

    /// Error of a body that the end of its connection cut off.
    pub fn cut_off(&self) -> CheckError {
        CheckError::Truncated { actual: self.received, expected: self.expected }
    }
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
