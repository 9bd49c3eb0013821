//! Requests that are special, and the responses that are right for them though they are no whole objects.
//!
//! Whatever both sides know beforehand (parts, codings, faults on purpose, broken-off bodies, redirections, refusals) comes
//! from `assay_workload`; here it is put into the request, and the response is held against it. Plain xacts, nearly all, have
//! nothing of this and pass none of this code.

use assay_http::coding;
use assay_http::head::ResponseHead;
use assay_http::range::{ContentRange, Span, boundary};
use assay_role::mark::{Note, ResponseMark};
use assay_workload::Universe;
use assay_workload::model::RequestType;
use assay_workload::object::ObjectId;

use super::extras::{Ending, Extras};
use super::flaw::Flaw;
use super::payload::Payload;
use super::xact::Xact;
use crate::check::Wrong;
use crate::coded::on_the_wire;

/// Steps that an xact takes at most: more redirections are a loop, and so are more challenges.
pub const MOST_STEPS: u8 = 5;

/// What is special about an xact of a robot of this group.
pub fn extras(universe: &Universe, xact: &Xact, group: usize) -> Box<Extras> {
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
    Box::new(Extras {
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
        ..Extras::default()
    })
}

fn line(name: &str, value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// A response that is right though it is not an object: what it means. None: it must be the object.
pub fn settle(
    universe: &Universe,
    xact: &Xact,
    head: &ResponseHead<'_>,
    mark: Option<&ResponseMark>,
) -> Result<Option<Ending>, Wrong> {
    let Some(extras) = &xact.extras else { return Ok(None) };
    let object = &xact.object;
    let status = head.status;
    if status >= 400 && mark.is_some_and(|mark| mark.note == Some(Note::Fault)) {
        return Ok(Some(Ending::Fault));
    }
    Ok(match status {
        // The target's own response says that the origin failed.
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

/// The body that must follow the head of a response with parts of an object, or with all of it, coded. None: as it is.
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
                Err(Wrong::CodingUnrequested.into())
            }
        }
        _ => Ok(None),
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
