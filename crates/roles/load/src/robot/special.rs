//! Special requests, and the responses that are right for them though they are no whole objects.
//!
//! Whatever both sides know beforehand (parts, codings, faults on purpose, broken-off bodies, redirections, refusals) comes
//! from `assay_workload`; here it is put into the request, and the response is held against it. Plain xacts, nearly all, have
//! nothing of this and pass none of this code.

use assay_http::coding::{self, Accepted, GzipWriter, write_accept_encoding};
use assay_http::head::ResponseHead;
use assay_http::range::{ContentRange, boundary};
use assay_workload::Universe;
use assay_workload::mark::{ResponseMark, ResponseNote};
use assay_workload::model::{Coding, Method, RequestType};

use super::expected_body::{ExpectedBody, Representation, covers_requested};
use super::features::{RequestFeatures, ResponseKind};
use super::response_error::ResponseError;
use super::xact::Xact;
use crate::check::CheckError;
use crate::coded::{choose, gzip, longest_gzip_bytes, on_the_wire, shortest_gzip_bytes};

/// Largest object of whose coded bytes parts are compared: to code a megabyte takes a robot about 8 ms.
const MOST_CODED_BYTES: u64 = 1 << 20;

/// Steps that an xact takes at most: more redirections are a loop, and so are more challenges.
pub const MOST_STEPS: u8 = 5;

/// Draws the features of an xact of a robot of this group.
pub fn request_features(universe: &Universe, xact: &Xact, group: usize) -> Box<RequestFeatures> {
    let robots = &universe.workload().robots[group];
    let object = &xact.object;
    let content = object.id.content;
    let ranges = (xact.request_type == RequestType::Range)
        .then(|| universe.ranges(xact.id, content, object.size_bytes))
        .flatten();
    let mut accepts = Vec::new();
    write_accept_encoding(&robots.accepts.iter().copied().map(on_the_wire).collect::<Vec<_>>(), &mut accepts);
    let accepts = (!accepts.is_empty()).then_some(accepts.as_slice());
    let mut fields = Vec::new();
    if let Some(accepts) = accepts {
        line("Accept-Encoding", accepts, &mut fields);
    }
    universe.request_headers(xact.id).for_each(|(name, value)| line(name, value, &mut fields));
    let mut added = universe
        .request_headers(xact.id)
        .filter(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"))
        .map(|(_, value)| value.as_bytes())
        .peekable();
    let names_codings = added.peek().is_some();
    let accepted = Accepted::parse(accepts.into_iter().chain(added));
    // Where nothing is said, any coding is acceptable (RFC 9110, 12.5.3); but an origin that can sends the body as it is.
    let chosen = choose(universe.codings(content), &accepted, object.size_bytes, ranges.is_some());
    let takes_gzip = match accepted {
        Accepted::ANYTHING => chosen == Some(Coding::Gzip),
        _ => accepted.quality(coding::Coding::Gzip) > 0,
    };
    if let Some(body) = xact.post_body.map(|id| universe.object(id)) {
        universe.content_headers(&body).for_each(|(name, value)| line(name, value, &mut fields));
    }
    let body_bytes = xact.post_body.map_or(0, |id| universe.object(id).size_bytes);
    let lifetime = universe.lifetime(xact.id);
    Box::new(RequestFeatures {
        ranges,
        accepted,
        takes_gzip,
        names_codings,
        fields,
        fault: universe.fault(xact.id, object.id.origin),
        abort_after: universe.robot_abort(xact.id, object.size_bytes),
        origin_aborts: universe.origin_abort(xact.id, object.id.origin, object.size_bytes).is_some(),
        expects: body_bytes > 0 && universe.expects(xact.id, body_bytes),
        expires_ns: lifetime.map(|lifetime| {
            xact.due_ns.saturating_add(u64::try_from(lifetime.as_nanos()).unwrap_or(u64::MAX))
        }),
        ..RequestFeatures::default()
    })
}

fn line(name: &str, value: impl AsRef<[u8]>, out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_ref());
    out.extend_from_slice(b"\r\n");
}

/// Classifies a response that is right though it is not an object. None: it must be the object.
pub fn classify(
    universe: &Universe,
    xact: &Xact,
    head: &ResponseHead<'_>,
    mark: Option<&ResponseMark>,
) -> Result<Option<ResponseKind>, CheckError> {
    let Some(features) = &xact.features else { return Ok(None) };
    let object = &xact.object;
    let status = head.status;
    if status >= 400 && mark.is_some_and(|mark| mark.note == Some(ResponseNote::Fault)) {
        return Ok(Some(ResponseKind::Fault));
    }
    Ok(match status {
        // The target's own response says that the origin failed.
        500..=599 if features.fault.is_some() => Some(ResponseKind::Fault),
        500..=599 if features.origin_aborts => Some(ResponseKind::OriginAborted),
        302 => {
            let location = head.header("Location").unwrap_or_default();
            let older = universe.parse_path(object.id.origin, path_of(location)).ok();
            let is_of_object = !xact.method.has_body() && mark.is_some_and(|mark| mark.key == object.key);
            let decided = universe.redirect(xact.id, xact.phase, object).filter(|_| is_of_object);
            let kind = |older| match features.steps < MOST_STEPS {
                true => ResponseKind::Redirected(older),
                false => ResponseKind::Refused,
            };
            older.filter(|older| decided == Some(*older)).map(kind)
        }
        401 if universe.auth_demand(object).is_some() => Some(ResponseKind::Refused),
        407 if !universe.is_anonymous(xact.id.robot) => Some(ResponseKind::Refused),
        417 if features.expects => Some(ResponseKind::ExpectationFailed),
        406 => {
            let offered = universe.codings(object.id.content);
            choose(offered, &features.accepted, object.size_bytes, false)
                .is_none()
                .then_some(ResponseKind::Refused)
        }
        416 if is_beyond_the_end(universe, xact, features, mark) => Some(ResponseKind::Unsatisfied),
        _ => None,
    })
}

/// Whether nothing of the parts requested is there: in the object, or in its coded bytes, which are fewer.
fn is_beyond_the_end(
    universe: &Universe,
    xact: &Xact,
    features: &RequestFeatures,
    mark: Option<&ResponseMark>,
) -> bool {
    let is_beyond = |bytes: u64| features.requested_spans(bytes).is_some_and(|spans| spans.is_empty());
    let content = xact.object.id.content;
    let may_be_coded = features.takes_gzip && universe.codings(content).contains(&Coding::Gzip);
    is_beyond(xact.object.size_bytes)
        || (may_be_coded
            && coded(universe, xact, mark.map_or(0, |mark| mark.version))
                .is_none_or(|bytes| is_beyond(bytes.len() as u64)))
}

/// True if the body is in a content coding.
pub fn is_coded(head: &ResponseHead<'_>) -> bool {
    let coding = head.header("Content-Encoding");
    coding.is_some_and(|coding| coding::Coding::from_name(coding) != Some(coding::Coding::Identity))
}

/// True if the body is in a coding that its request did not ask for.
pub fn is_in_unrequested_coding(xact: &Xact, head: &ResponseHead<'_>) -> bool {
    head.header("Content-Encoding").is_some_and(|coding| is_unrequested(coding, xact.features.as_deref()))
}

fn is_unrequested(coding: &[u8], features: Option<&RequestFeatures>) -> bool {
    match coding::Coding::from_name(coding) {
        Some(coding::Coding::Identity) => false,
        Some(coding::Coding::Gzip) => !features.is_some_and(|features| features.takes_gzip),
        None => !features.is_some_and(|features| features.names_codings),
    }
}

/// Body that must follow the head of a response with parts of an object, or with all of it, coded. None: the object as
/// it is.
pub fn payload(
    universe: &Universe,
    xact: &Xact,
    head: &ResponseHead<'_>,
    version: u64,
) -> Result<Option<(ResponseKind, ExpectedBody)>, ResponseError> {
    // A plain request costs no lookup: its checked bytes tell, and a wrong length makes the caller look.
    if xact.features.is_none() && (head.facts.content_length.is_some() || head.status == 304) {
        return Ok(None);
    }
    let coding = head.header("Content-Encoding");
    if coding.is_some_and(|coding| is_unrequested(coding, xact.features.as_deref())) {
        return Err(CheckError::CodingUnrequested.into());
    }
    let Some(features) = &xact.features else { return Ok(None) };
    let is_coded = coding.and_then(coding::Coding::from_name) == Some(coding::Coding::Gzip);
    let body = || universe.body(&xact.object, version);
    match (head.status, is_coded) {
        (206, true) => {
            parts(xact, features, head, coded(universe, xact, version).map(Representation::Coded)).map(Some)
        }
        (206, false) => parts(xact, features, head, Some(Representation::Object(body()))).map(Some),
        (_, true) => {
            let kind = match xact.method {
                Method::Head => coded_head(universe, xact, head, version)?,
                _ => ResponseKind::Coded,
            };
            Ok(Some((kind, ExpectedBody::gzip(body(), xact.object.size_bytes))))
        }
        (_, false) => Ok(None),
    }
}

/// Parts that must follow, of the object or of its coded bytes; `whole` is none if these are not known.
fn parts(
    xact: &Xact,
    features: &RequestFeatures,
    head: &ResponseHead<'_>,
    whole: Option<Representation>,
) -> Result<(ResponseKind, ExpectedBody), ResponseError> {
    let is_coded = !matches!(whole, Some(Representation::Object(_)));
    let content_type = head.header("Content-Type").unwrap_or_default();
    if let Some(boundary) = boundary(content_type) {
        // RFC 9110, 15.3.7.2.
        if features.ranges.as_ref().is_some_and(|ranges| ranges.parts().len() == 1) {
            return Err(CheckError::MultipartUnrequested.into());
        }
        let requested =
            whole.as_ref().and_then(|whole| features.requested_spans(whole.bytes())).unwrap_or_default();
        let kind = ResponseKind::Parts { several: true, is_checked: whole.is_some(), is_complete: true };
        return Ok((kind, ExpectedBody::parts(whole, boundary, requested)));
    }
    let range = head.header("Content-Range").and_then(ContentRange::parse);
    let Some(ContentRange::Part { span, total }) = range else {
        return Err(CheckError::NoContentRange.into());
    };
    let is_of = |whole: &Representation| total.is_none_or(|total| total == whole.bytes());
    let whole = whole.filter(is_of);
    // A target may code bodies itself, and then has other bytes; but none as many as the object has.
    if whole.is_none() && (!is_coded || total == Some(xact.object.size_bytes)) {
        return Err(CheckError::NoContentRange.into());
    }
    let bytes = whole.as_ref().map(Representation::bytes).or(total);
    let requested = bytes.and_then(|bytes| features.requested_spans(bytes)).unwrap_or_default();
    let is_complete = covers_requested(&requested, &[span])?;
    let kind = ResponseKind::Parts { several: false, is_checked: whole.is_some(), is_complete };
    Ok((kind, ExpectedBody::part(whole, span)))
}

/// Checks the length that a response to HEAD announces of a coded body: that of the origin's coded bytes, or another one that the
/// object may have in gzip, because the target may have coded it itself.
fn coded_head(
    universe: &Universe,
    xact: &Xact,
    head: &ResponseHead<'_>,
    version: u64,
) -> Result<ResponseKind, CheckError> {
    let Some(actual) = head.facts.content_length else {
        return Ok(ResponseKind::CodedHead { is_checked: true });
    };
    let object = xact.object.size_bytes;
    let is_checked = coded(universe, xact, version).is_some_and(|bytes| bytes.len() as u64 == actual);
    let is_possible = (shortest_gzip_bytes(object)..=longest_gzip_bytes(object)).contains(&actual);
    if !is_checked && (actual == object || !is_possible) {
        return Err(CheckError::CodedLength { actual, object });
    }
    Ok(ResponseKind::CodedHead { is_checked })
}

/// Coded bytes of an object; none: to make them would cost a robot too much.
fn coded(universe: &Universe, xact: &Xact, version: u64) -> Option<Vec<u8>> {
    let body = universe.body(&xact.object, version);
    (body.size() <= MOST_CODED_BYTES).then(|| gzip(&mut GzipWriter::new(), &body, universe.pool()))
}

/// Path of a target or a `Location`: that may have been made absolute on the way.
pub fn path_of(location: &[u8]) -> &[u8] {
    let Some(rest) = location.strip_prefix(b"http://") else { return location };
    let at = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    &rest[at..]
}

#[cfg(test)]
mod tests {
    use assay_http::range::Span;
    use assay_workload::XactId;
    use assay_workload::model::{
        BodySource, Distribution, Extent, HeaderRule, RangeSpec, Weighted, Workload,
    };
    use assay_workload::object::ObjectId;
    use assay_workload::object::Space;

    use super::*;
    use crate::origin::testing::workload;
    use crate::robot::worker::RobotKey;

    const SIZE: u64 = 30_000;

    /// An xact that requests bytes 100 to 1,099 of an object of words, and accepts gzip.
    fn of_words() -> (Universe, Xact) {
        let mut workload = workload();
        let content = &mut workload.contents[0];
        (content.body.codings, content.body.source) =
            (vec![Coding::Gzip, Coding::Identity], BodySource::Words);
        content.size_bytes = Distribution::Constant(SIZE as f64);
        let robots = &mut workload.robots[0];
        robots.accepts = vec![Coding::Gzip];
        robots.request_types = Weighted::one(RequestType::Range);
        robots.ranges =
            Weighted::one(RangeSpec::Span { first: Extent::Bytes(100), last: Some(Extent::Bytes(1099)) });
        let universe = Universe::new(workload.into(), 7, 1, Default::default()).expect("a universe");
        let id = ObjectId { origin: 0, content: 0, space: Space::Public, serial: 1 };
        let object = universe.object(id);
        let mut xact = Xact::new(XactId { robot: 0, number: 1, place: 0 }, RobotKey::FIRST, 0, object, 0);
        xact.request_type = RequestType::Range;
        xact.features = Some(request_features(&universe, &xact, 0));
        (universe, xact)
    }

    /// Judgement of a response with these fields and this body.
    fn received(
        universe: &Universe,
        xact: &Xact,
        fields: &str,
        body: &[u8],
    ) -> Result<ResponseKind, ResponseError> {
        let text = format!("HTTP/1.1 206 Partial Content\r\n{fields}\r\n");
        let (head, _) = ResponseHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        let (kind, mut payload) = payload(universe, xact, &head, 0)?.expect("is special");
        payload.feed(body, universe.pool()).and_then(|()| payload.end()).map(|()| kind)
    }

    #[test]
    fn redirections_and_challenges_that_nobody_decided_are_not_taken() {
        let (universe, xact) = of_words();
        let other = universe.object(ObjectId { serial: 2, ..xact.object.id });
        let location = format!("Location: {}\r\n\r\n", universe.path(&other));
        let redirection = ResponseHead::of_fields(302, Some(0), location.as_bytes());
        let mark = ResponseMark {
            xact: xact.id,
            key: xact.object.key,
            version: 0,
            made_us: 0,
            status: 302,
            held_us: 0,
            delay_us: 0,
            note: None,
        };
        assert_eq!(classify(&universe, &xact, &redirection, Some(&mark)), Ok(None));
        let challenge = ResponseHead::of_fields(407, Some(0), b"Proxy-Authenticate: Basic realm=x\r\n\r\n");
        assert_eq!(classify(&universe, &xact, &challenge, None), Ok(None));
    }

    #[test]
    fn parts_of_a_coded_body_are_those_of_its_coded_bytes() {
        let (universe, xact) = of_words();
        let coded = gzip(&mut GzipWriter::new(), &universe.body(&xact.object, 0), universe.pool());
        let length = coded.len();
        assert!((2_000..SIZE as usize).contains(&length), "{length}");
        let of = |more: &str, body: &[u8]| {
            received(&universe, &xact, &format!("Content-Encoding: gzip\r\n{more}\r\n"), body)
        };
        let one = |total: &str, body: &[u8]| of(&format!("Content-Range: bytes 100-1099/{total}"), body);
        let part = &coded[100..1100];
        let parts = |is_checked| Ok(ResponseKind::Parts { several: false, is_checked, is_complete: true });
        assert_eq!(one(&length.to_string(), part), parts(true));
        assert_eq!(one("*", part), parts(true));
        // Of a body that the target has coded itself, nobody knows the bytes.
        assert_eq!(one("25000", &[7; 1000]), parts(false));
        assert!(one("25000", &[7; 999]).is_err(), "but how many there are");
        let mut wrong = part.to_vec();
        wrong[500] ^= 1;
        assert_eq!(one(&length.to_string(), &wrong), Err(CheckError::Bytes { at: 600 }.into()));
        assert_eq!(
            one(&SIZE.to_string(), part),
            Err(CheckError::NoContentRange.into()),
            "the length of another form"
        );
        let less = of(&format!("Content-Range: bytes 101-1099/{length}"), &coded[101..1100]);
        let incomplete = ResponseKind::Parts { several: false, is_checked: true, is_complete: false };
        assert_eq!(less, Ok(incomplete));
        let other = of(&format!("Content-Range: bytes 1100-1199/{length}"), &coded[1100..1200]);
        assert_eq!(other, Err(CheckError::PartMissing { from: 100, to: 1100 }.into()));
        let mut several = Vec::new();
        let writer =
            assay_http::range::MultipartWriter { boundary: "b", mime_type: None, total: length as u64 };
        writer.part(Span { from: 100, to: 1100 }, &mut several);
        several.extend_from_slice(part);
        writer.end(&mut several);
        let kind = "Content-Type: multipart/byteranges; boundary=b";
        assert_eq!(of(kind, &several), Err(CheckError::MultipartUnrequested.into()));
    }

    #[test]
    fn parts_of_an_object_are_those_of_its_own_bytes() {
        let (universe, mut xact) = of_words();
        let whole: Vec<u8> = crate::coded::chunks(&universe.body(&xact.object, 0), universe.pool())
            .flatten()
            .copied()
            .collect();
        let range = format!("Content-Range: bytes 100-1099/{SIZE}\r\n");
        let found = received(&universe, &xact, &range, &whole[100..1100]);
        assert_eq!(found, Ok(ResponseKind::Parts { several: false, is_checked: true, is_complete: true }));
        let other = received(&universe, &xact, "Content-Range: bytes 100-1099/25000\r\n", &whole[100..1100]);
        assert_eq!(other, Err(CheckError::NoContentRange.into()));
        xact.features.as_mut().expect("is special").takes_gzip = false;
        let coded =
            received(&universe, &xact, &format!("Content-Encoding: gzip\r\n{range}"), &whole[100..1100]);
        assert_eq!(coded, Err(CheckError::CodingUnrequested.into()));
    }

    #[test]
    fn a_coding_that_nobody_requested_is_wrong_and_one_that_the_origin_alone_has_is_right() {
        let outcome = |offered: &[Coding], accepts: &[Coding], added: Option<&str>| {
            let (universe, mut xact) = of_words();
            let mut workload = Workload::clone(universe.workload());
            workload.contents[0].body.codings = offered.to_vec();
            workload.robots[0].accepts = accepts.to_vec();
            let rule = |value: &str| HeaderRule {
                fields: vec![("accept-encoding".into(), value.into())],
                probability: 1.0,
            };
            workload.robots[0].headers = added.map(rule).into_iter().collect();
            let universe = Universe::new(workload.into(), 7, 1, Default::default()).expect("a universe");
            xact.request_type = RequestType::Basic;
            xact.features = Some(request_features(&universe, &xact, 0));
            let text = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n";
            let (head, _) = ResponseHead::parse(text).expect("is HTTP").expect("is complete");
            payload(&universe, &xact, &head, 0).map(|found| found.expect("is special").0)
        };
        let unrequested = Err(CheckError::CodingUnrequested.into());
        let (gzip, identity) = (Coding::Gzip, Coding::Identity);
        assert_eq!(outcome(&[gzip, identity], &[gzip], None), Ok(ResponseKind::Coded));
        assert_eq!(outcome(&[gzip, identity], &[identity], None), unrequested);
        assert_eq!(
            outcome(&[gzip, identity], &[], None),
            unrequested,
            "the origin would have sent it as it is"
        );
        assert_eq!(outcome(&[gzip], &[], None), Ok(ResponseKind::Coded), "there is nothing else");
        assert_eq!(outcome(&[gzip, identity], &[], Some("gzip;q=0.5")), Ok(ResponseKind::Coded));
        assert_eq!(outcome(&[gzip], &[], Some("gzip;q=0")), unrequested);
    }

    #[test]
    fn a_head_announces_no_length_that_the_object_cannot_have_in_gzip() {
        let (universe, mut xact) = of_words();
        xact.method = Method::Head;
        let coded = coded(&universe, &xact, 0).expect("is small").len() as u64;
        let judge = |length: &str| {
            let text = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n{length}\r\n");
            let (head, _) = ResponseHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
            payload(&universe, &xact, &head, 0).map(|found| found.expect("is special").0)
        };
        let of = |bytes: u64| judge(&format!("Content-Length: {bytes}\r\n"));
        let right = |is_checked| Ok(ResponseKind::CodedHead { is_checked });
        assert_eq!([judge(""), of(coded)], [right(true), right(true)]);
        assert_eq!([of(coded - 1), of(25_000)], [right(false), right(false)], "the target may code it again");
        for actual in [0, 7, 30, SIZE, 10_000_000] {
            assert_eq!(of(actual), Err(CheckError::CodedLength { actual, object: SIZE }.into()));
        }
    }

    #[test]
    fn a_plain_request_asks_for_no_coding_at_all() {
        let (universe, mut xact) = of_words();
        xact.features = None;
        let of = |coding: &str| {
            let text = format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: {coding}\r\n\r\n"
            );
            let (head, _) = ResponseHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
            (is_in_unrequested_coding(&xact, &head), payload(&universe, &xact, &head, 0).is_err())
        };
        assert_eq!(["gzip", "br", "identity"].map(of), [(true, true), (true, true), (false, false)]);
        let unchanged = b"HTTP/1.1 304 Not Modified\r\nContent-Encoding: gzip\r\n\r\n";
        let (head, _) = ResponseHead::parse(unchanged).expect("is HTTP").expect("is complete");
        assert!(payload(&universe, &xact, &head, 0).is_ok(), "no body comes");
    }

    #[test]
    fn a_location_means_the_same_with_and_without_a_host() {
        for (location, path) in
            [("/w1/x", "/w1/x"), ("http://a:80/w1/x", "/w1/x"), ("http://a:80", ""), ("", "")]
        {
            assert_eq!(path_of(location.as_bytes()), path.as_bytes(), "{location}");
        }
    }
}
