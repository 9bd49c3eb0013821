//! Requests that are special, and the responses that are right for them though they are no whole objects.
//!
//! Whatever both sides know beforehand (parts, codings, faults on purpose, broken-off bodies, redirections, refusals) comes
//! from `assay_workload`; here it is put into the request, and the answer is held against it. Plain xacts, nearly all, have
//! nothing of this and pass none of this code.

use assay_http::coding::{self, write_accept_encoding};
use assay_http::head::ResponseHead;
use assay_http::range::{ContentRange, Span, boundary};
use assay_measurement::counts::RobotCounts;
use assay_role::mark::{Note, ReplyMark};
use assay_workload::model::{Coding, RequestType};
use assay_workload::object::ObjectId;
use assay_workload::{Fault, Ranges, Universe};

use super::answer::Flaw;
use super::invitation::Pause;
use super::login::Shown;
use super::payload::Payload;
use super::xact::Xact;
use crate::check::Wrong;
use crate::coded::on_the_wire;

/// Steps that an xact takes at most: more redirections are a loop, and so are more challenges.
pub const MOST_STEPS: u8 = 5;

/// What is special about an xact.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// Parts of the object that it asks for.
    pub ranges: Option<Ranges>,
    /// Codings that it accepts.
    pub accepts: Vec<coding::Coding>,
    /// Fields of its kind of robots, and of the body it carries, as lines.
    pub fields: Vec<u8>,
    /// The fault that it meets at its origin.
    pub fault: Option<Fault>,
    /// After how many bytes of the body the robot breaks off.
    pub break_off: Option<u64>,
    /// The origin breaks off the body of its answer.
    pub origin_breaks_off: bool,
    /// Redirections followed so far.
    pub steps: u8,
    /// How often it was asked who it is, and said so.
    pub challenges: u8,
    /// What its last request said of that.
    pub shown: Shown,
    /// Asks whether its body may come.
    pub expects: bool,
    /// Its body waits for the answer.
    pub pause: Pause,
    /// When it is given up; none: not of itself.
    pub expires_ns: Option<u64>,
}

impl Extras {
    /// Counts an xact that ended like this.
    pub fn count(&self, ending: Ending, counts: &mut RobotCounts) {
        match ending {
            Ending::Object => {}
            Ending::Parts { several } => {
                counts.parts += 1;
                counts.multiparts += u64::from(several);
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
}

impl Ending {
    /// The xact got what it asked for.
    pub fn is_object(self) -> bool {
        matches!(self, Ending::Object | Ending::Parts { .. } | Ending::Coded)
    }
}

/// What an answer means for its xact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The object, or word that it has not changed.
    Object,
    /// Parts of it.
    Parts {
        /// More than one.
        several: bool,
    },
    /// The object, coded.
    Coded,
    /// None of the parts is there (416), which is right.
    Unsatisfied,
    /// It is somewhere else.
    Redirected(ObjectId),
    /// The origin (or the target) wants to know who asks, and the robot cannot prove it; or there is no coding that is
    /// accepted.
    Refused,
    /// The robot is asked who it is, and can say it.
    Challenged,
    /// The body that was asked about is not wanted: the request is made without asking.
    Uninvited,
    /// The fault on purpose came through.
    Fault,
    /// The body ends early on purpose: the origin has said after how many bytes.
    BreaksOff,
    /// The robot has had enough of it, on purpose.
    BrokenOff,
}

impl Extras {
    /// What is special about an xact of a robot of this group.
    pub fn of(universe: &Universe, xact: &Xact, group: usize) -> Box<Self> {
        let robots = &universe.workload().robots[group];
        let object = &xact.object;
        let accepts = robots.accepts.iter().copied().map(on_the_wire);
        let ranges = (xact.request_type == RequestType::Range)
            .then(|| universe.ranges(xact.id, object.id.content, object.size_bytes))
            .flatten();
        let mut fields = Vec::new();
        universe.request_headers(xact.id).for_each(|(name, value)| line(name, value, &mut fields));
        if let Some(body) = xact.post_body.map(|id| universe.object(id)) {
            universe.content_headers(&body).for_each(|(name, value)| line(name, value, &mut fields));
        }
        let body_bytes = xact.post_body.map_or(0, |id| universe.object(id).size_bytes);
        let lifetime = universe.lifetime(xact.id);
        Box::new(Self {
            ranges,
            accepts: accepts.collect(),
            fields,
            fault: universe.fault(xact.id, object.id.origin),
            break_off: universe.robot_abort(xact.id, object.size_bytes),
            origin_breaks_off: universe.origin_abort(xact.id, object.id.origin, object.size_bytes).is_some(),
            expects: body_bytes > 0 && universe.expects(xact.id, body_bytes),
            expires_ns: lifetime.map(|lifetime| {
                xact.due_ns.saturating_add(u64::try_from(lifetime.as_nanos()).unwrap_or(u64::MAX))
            }),
            ..Self::default()
        })
    }

    /// Appends the fields that it adds to the request, a line each.
    pub fn write(&self, out: &mut Vec<u8>) {
        if let Some(ranges) = &self.ranges {
            out.extend_from_slice(b"Range: ");
            ranges.write(out);
            out.extend_from_slice(b"\r\n");
        }
        if !self.accepts.is_empty() {
            out.extend_from_slice(b"Accept-Encoding: ");
            write_accept_encoding(&self.accepts, out);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(&self.fields);
    }
}

fn line(name: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// An answer that is right though it is not an object: what it means. None: it must be the object.
pub fn settle(
    universe: &Universe,
    xact: &Xact,
    head: &ResponseHead<'_>,
    mark: Option<&ReplyMark>,
) -> Result<Option<Ending>, Wrong> {
    let Some(extras) = &xact.extras else { return Ok(None) };
    let object = &xact.object;
    let status = head.status;
    if status >= 400 && mark.is_some_and(|mark| mark.note == Some(Note::Fault)) {
        return Ok(Some(Ending::Fault));
    }
    Ok(match status {
        // The target says in its own words that the origin failed.
        500..=599 if extras.fault.is_some() => Some(Ending::Fault),
        500..=599 if extras.origin_breaks_off => Some(Ending::BreaksOff),
        302 => {
            let location = head.header("Location").unwrap_or_default();
            let older = universe.parse_path(object.id.origin, path_of(location)).ok();
            let may = !xact.method.has_body() && extras.steps < MOST_STEPS;
            older.filter(|older| may && is_older(older, &object.id)).map(Ending::Redirected)
        }
        401 if universe.auth_demand(object).is_some() => Some(Ending::Refused),
        407 => Some(Ending::Refused),
        417 if extras.expects => Some(Ending::Uninvited),
        406 if universe.coding(object.id.content, |coding| extras.takes(coding)).is_none() => {
            Some(Ending::Refused)
        }
        416 if extras.wanted(object.size_bytes).is_some_and(|spans| spans.is_empty()) => {
            Some(Ending::Unsatisfied)
        }
        _ => None,
    })
}

/// The body that must follow the head of an answer with parts of an object, or with all of it, coded. None: as it is.
pub fn payload(
    universe: &Universe,
    xact: &Xact,
    head: &ResponseHead<'_>,
    version: u64,
) -> Result<Option<(Ending, Payload)>, Flaw> {
    let Some(extras) = &xact.extras else { return Ok(None) };
    let size = xact.object.size_bytes;
    let body = || universe.body(&xact.object, version);
    if head.status == 206 {
        let wanted = extras.wanted(size).unwrap_or_default();
        let kind = head.header("Content-Type").unwrap_or_default();
        if let Some(boundary) = boundary(kind) {
            return Ok(Some((Ending::Parts { several: true }, Payload::parts(body(), boundary, wanted))));
        }
        let range = head.header("Content-Range").and_then(ContentRange::parse);
        let span = match range {
            Some(ContentRange::Part { span, total }) if total.is_none_or(|total| total == size) => span,
            _ => return Err(Wrong::NoContentRange.into()),
        };
        return match wanted.iter().find(|span_wanted| !covers(&span, span_wanted)) {
            None => Ok(Some((Ending::Parts { several: false }, Payload::part(body(), span)))),
            Some(missing) => Err(Wrong::PartMissing { from: missing.from, to: missing.to }.into()),
        };
    }
    match head.header("Content-Encoding") {
        Some(name) if name.eq_ignore_ascii_case(b"gzip") => {
            if extras.accepts.contains(&coding::Coding::Gzip) {
                Ok(Some((Ending::Coded, Payload::gzip(body(), size))))
            } else {
                Err(Wrong::CodingUnasked.into())
            }
        }
        _ => Ok(None),
    }
}

impl Extras {
    /// The parts asked for that an object of this size has; none: no parts were asked for.
    fn wanted(&self, size_bytes: u64) -> Option<Vec<Span>> {
        let ranges = self.ranges.as_ref()?;
        let span = |(first, last): (u64, u64)| Span { from: first, to: last + 1 };
        Some(ranges.parts().iter().filter_map(|part| part.resolve(size_bytes)).map(span).collect())
    }

    fn takes(&self, coding: Coding) -> bool {
        match coding {
            Coding::Identity => true,
            Coding::Gzip => self.accepts.contains(&coding::Coding::Gzip),
        }
    }
}

fn covers(span: &Span, wanted: &Span) -> bool {
    span.from <= wanted.from && wanted.to <= span.to
}

/// A redirection leads to an object of the same origin and type that is older.
fn is_older(older: &ObjectId, id: &ObjectId) -> bool {
    older.origin == id.origin && older.content == id.content && older != id
}

/// The path of a target or a `Location`: that may have been made absolute on the way.
pub fn path_of(location: &[u8]) -> &[u8] {
    let Some(rest) = location.strip_prefix(b"http://") else { return location };
    let at = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    &rest[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_means_the_same_with_and_without_a_host() {
        for (location, path) in
            [("/w1/x", "/w1/x"), ("http://a:80/w1/x", "/w1/x"), ("http://a:80", ""), ("", "")]
        {
            assert_eq!(path_of(location.as_bytes()), path.as_bytes(), "{location}");
        }
    }
}
