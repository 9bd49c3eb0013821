//! Heads of origins' responses, as they are recorded.

use assay_cache::conditional::{Conditions, Validators, is_updated};
use assay_cache::freshness::{Freshness, RequestControl, ResponseFacts, Reuse};
use assay_cache::http_fields;
use assay_cache::storage::{MethodClass, may_store};
use assay_cache::vary::Vary;
use assay_http::date::{DATE_BYTES, write_date};
use assay_http::field::{Fields, tokens, write_decimal};
use assay_http::framing::BodyFraming;
use assay_http::head::{HeadError, RequestHead, ResponseHead};
use assay_http::status::reason;
use assay_net::fields;

use crate::collector::client_request::NAME;
use crate::number;

/// Fields that describe a body, or how it can be requested, and are left out of a 304.
const OF_THE_BODY: [&str; 5] =
    ["content-type", "content-encoding", "content-range", "content-language", "accept-ranges"];

/// Times of a request and of the head of its response, in Unix milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct RecordedTimes {
    pub requested_ms: i64,
    pub received_ms: i64,
}

/// Request of a response, as far as the use of the response for others depends on it.
#[derive(Debug, Clone, Copy)]
pub struct RequestContext<'q> {
    /// As sent.
    pub head: RequestHead<'q>,
    /// Directives of the client.
    pub control: RequestControl,
    /// The request has credentials.
    pub is_authorised: bool,
}

#[derive(Debug)]
pub struct RecordedResponse {
    pub status: u16,
    pub framing: BodyFraming,
    /// `Content-Length`, whether or not there is a body.
    pub length: Option<u64>,
    /// Caches may store it.
    pub is_storable: bool,
    vary: Vary,
    /// Values, in the request sent, of the fields that the response varies by.
    variant: Vec<u8>,
    freshness: Freshness,
    has_validator: bool,
    age_s: Option<u64>,
    received_ms: i64,
    /// Status line and end-to-end fields, without `Age` and `Content-Length`; and fields for caches even if `Connection` lists
    /// them.
    head: Box<[u8]>,
    /// Fields for caches that `Connection` lists.
    named: Box<[u8]>,
    /// Offset of the fields in `head`.
    fields_at: usize,
    etag: Option<Box<[u8]>>,
    last_modified_s: Option<i64>,
}

impl RecordedResponse {
    /// Reads the head of an origin's response.
    pub fn new(head: &ResponseHead<'_>, context: &RequestContext<'_>, times: RecordedTimes) -> Self {
        let mut text = Vec::with_capacity(512);
        write_status_line(head.status, head.reason, &mut text);
        let fields_at = text.len();
        if head.header("date").is_none() {
            // Without a date, no downstream cache could compute an age (RFC 9110, 6.6.1).
            let mut date = [0; DATE_BYTES];
            write_date(u64::try_from(times.received_ms / 1000).unwrap_or(0), &mut date);
            fields::append(&mut text, b"Date", &date);
        }
        // A proxy must see fields for caches even if `Connection` lists them, as it does in front of the origin.
        fields::append_forwardable_except(&mut text, head.headers(), http_fields::is_cache_field, |field| {
            field.is("age") || field.is("content-length") || field.is(number::LOST)
        });
        fields::append_via(&mut text, head.facts.version.into(), NAME);
        let facts = facts_of(head);
        let values = head.headers().filter(|field| field.is("vary")).map(|field| field.value);
        let vary = Vary::parse(values);
        let class = match context.head.method {
            "GET" | "HEAD" => MethodClass::Get,
            other => MethodClass::from_method(other),
        };
        let conditions = Conditions {
            if_none_match: context.head.header("if-none-match"),
            if_modified_since_s: context.head.header("if-modified-since").and_then(http_fields::date_s),
        };
        let confirmed_conditions = if head.status == 304 { conditions } else { Conditions::default() };
        Self {
            status: head.status,
            framing: head.body(context.head.method),
            length: head.facts.content_length,
            is_storable: may_store(class, &context.control, context.is_authorised, &facts).is_ok(),
            variant: secondary(&vary, context.head.headers()),
            vary,
            freshness: Freshness::new(&facts, times.requested_ms, times.received_ms),
            has_validator: facts.has_validator,
            age_s: http_fields::age_s(head),
            received_ms: times.received_ms,
            head: text.into_boxed_slice(),
            named: http_fields::cache_fields_in_connection(head.headers())
                .collect::<Vec<_>>()
                .join(", ")
                .into_bytes()
                .into_boxed_slice(),
            fields_at,
            // A 304 without validators confirms those of the condition.
            etag: head
                .header("etag")
                .or(confirmed_conditions.if_none_match.filter(|tags| is_one_tag(tags)))
                .map(Box::from),
            last_modified_s: head
                .header("last-modified")
                .and_then(http_fields::date_s)
                .or(confirmed_conditions.if_modified_since_s),
        }
    }

    /// Creates the Collector's own response: for an origin that did not respond, or to a malformed request.
    pub fn failed(status: u16, received_ms: i64, length: u64) -> Self {
        let mut text = Vec::with_capacity(128);
        write_status_line(status, reason(status), &mut text);
        let fields_at = text.len();
        let mut date = [0; DATE_BYTES];
        write_date(u64::try_from(received_ms / 1000).unwrap_or(0), &mut date);
        fields::append(&mut text, b"Date", &date);
        fields::append(&mut text, b"Content-Type", b"text/plain; charset=utf-8");
        fields::append(&mut text, b"Cache-Control", b"no-store");
        Self {
            status,
            framing: BodyFraming::Length(length),
            length: Some(length),
            is_storable: false,
            vary: Vary::Nothing,
            variant: Vec::new(),
            freshness: Freshness::new(&ResponseFacts::default(), received_ms, received_ms),
            has_validator: false,
            age_s: None,
            received_ms,
            head: text.into_boxed_slice(),
            named: Box::default(),
            fields_at,
            etag: None,
            last_modified_s: None,
        }
    }

    /// Returns this response updated by a 304 (RFC 9111, 3.2 and 4.3.4).
    pub fn updated_by(
        &self,
        confirmation: &RecordedResponse,
        context: &RequestContext<'_>,
        times: RecordedTimes,
    ) -> Result<Self, HeadError> {
        let newer = lines(confirmation.fields()).filter(|(name, _)| is_updated(name));
        let mut text = self.head[..self.fields_at].to_vec();
        for (name, value) in lines(self.fields()) {
            if !newer.clone().any(|(other, _)| other.eq_ignore_ascii_case(name)) && !is(name, "via") {
                fields::append(&mut text, name, value);
            }
        }
        newer
            .clone()
            .filter(|(name, _)| !is(name, "via"))
            .for_each(|(name, value)| fields::append(&mut text, name, value));
        if let Some(age_s) = confirmation.age_s {
            fields::append_number(&mut text, "Age", age_s);
        }
        let is_renewed = |name: &[u8]| newer.clone().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let kept = tokens(&self.named).filter(|name| !is_renewed(name));
        for name in kept.chain(tokens(&confirmation.named)) {
            fields::append(&mut text, b"Connection", name);
        }
        text.extend_from_slice(b"\r\n");
        let (head, _) = ResponseHead::parse(&text)?.ok_or(HeadError::Syntax("the head has no end"))?;
        Ok(Self { framing: self.framing, length: self.length, ..Self::new(&head, context, times) })
    }

    /// Whether it may be sent to a request with these fields (`Vary`).
    pub fn suits(&self, fields: Fields<'_>) -> bool {
        match &self.vary {
            // `Vary: *` suits no other request; simultaneous ones get it all the same, like every other response that cannot be
            // shared.
            Vary::Nothing | Vary::Everything => true,
            vary => secondary(vary, fields) == self.variant,
        }
    }

    pub fn is_fresh(&self, request: &RequestControl, now_ms: i64) -> bool {
        self.is_for_all() && self.freshness.reuse(request, now_ms) == Reuse::Serve
    }

    /// Whether caches may store it, for however short a time: another response is as good.
    pub fn is_for_all(&self) -> bool {
        self.is_storable && self.vary != Vary::Everything
    }

    /// Whether the origin can confirm it.
    pub fn can_be_confirmed(&self) -> bool {
        self.status == 200 && self.is_storable && self.has_validator
    }

    /// Whether a request with these conditions gets a 304 instead.
    pub fn is_not_modified_for(&self, conditions: &Conditions<'_>) -> bool {
        matches!(self.status, 200 | 206 | 304) && conditions.are_not_modified(&self.validators())
    }

    pub fn validators(&self) -> Validators<'_> {
        Validators { etag: self.etag.as_deref(), last_modified_s: self.last_modified_s }
    }

    /// Appends the conditions that revalidate this response.
    pub fn write_conditions(&self, out: &mut Vec<u8>) {
        if let Some(etag) = &self.etag {
            fields::append(out, b"If-None-Match", etag);
        }
        if let Some(seconds) = self.last_modified_s.and_then(|s| u64::try_from(s).ok()) {
            let mut date = [0; DATE_BYTES];
            write_date(seconds, &mut date);
            fields::append(out, b"If-Modified-Since", &date);
        }
    }

    /// Value of `Age`: the received one, plus the time since; `None` for a new response.
    pub fn age_s(&self, now_ms: i64) -> Option<u64> {
        let here_s = now_ms.saturating_sub(self.received_ms).max(0).unsigned_abs() / 1000;
        (self.age_s.is_some() || here_s > 0).then(|| self.age_s.unwrap_or(0) + here_s)
    }

    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Names of its fields that `Connection` lists too, as a list.
    pub fn named(&self) -> &[u8] {
        &self.named
    }

    pub fn content_type(&self) -> Option<&[u8]> {
        lines(self.fields()).find(|(name, _)| is(name, "content-type")).map(|(_, value)| value)
    }

    /// Appends the head of a 304 that confirms it.
    pub fn write_not_modified(&self, out: &mut Vec<u8>) {
        write_status_line(304, "Not Modified", out);
        for (name, value) in lines(self.fields()) {
            if !OF_THE_BODY.iter().any(|described| is(name, described)) {
                fields::append(out, name, value);
            }
        }
    }

    /// Memory used.
    pub fn weight_bytes(&self) -> usize {
        size_of::<Self>()
            + self.head.len()
            + self.named.len()
            + self.variant.len()
            + self.etag.as_ref().map_or(0, |tag| tag.len())
    }

    fn fields(&self) -> &[u8] {
        &self.head[self.fields_at..]
    }
}

fn write_status_line(status: u16, reason: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn secondary(vary: &Vary, fields: Fields<'_>) -> Vec<u8> {
    vary.secondary_key(fields.map(|field| (field.name, field.value)))
}

fn is(name: &[u8], other: &str) -> bool {
    name.eq_ignore_ascii_case(other.as_bytes())
}

fn is_one_tag(tags: &[u8]) -> bool {
    let tag = tags.strip_prefix(b"W/").unwrap_or(tags);
    tag.len() >= 2 && tag.starts_with(b"\"") && memchr::memchr(b'"', &tag[1..]) == Some(tag.len() - 2)
}

/// Names and values of the field lines of a head that we have written ourselves.
fn lines(block: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> + Clone {
    block.split(|&b| b == b'\n').filter_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// Input of the storing rules.
fn facts_of(head: &ResponseHead<'_>) -> ResponseFacts {
    // Parts and confirmations have keys of their own here, so they are as fresh as a 200.
    let status = if matches!(head.status, 206 | 304) { 200 } else { head.status };
    ResponseFacts { status, ..http_fields::response_facts(head, http_fields::age_s(head).unwrap_or(0)) }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub const NOW: RecordedTimes = RecordedTimes { requested_ms: 1_000_000_000, received_ms: 1_000_000_000 };

    pub fn request(fields: &str) -> RequestHead<'static> {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").leak();
        RequestHead::parse(text.as_bytes()).unwrap().unwrap().0
    }

    pub fn response_to(fields: &str, text: &str) -> RecordedResponse {
        let (head, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        let context = RequestContext {
            head: request(fields),
            control: RequestControl::default(),
            is_authorised: false,
        };
        RecordedResponse::new(&head, &context, NOW)
    }

    fn response(text: &str) -> RecordedResponse {
        response_to("", text)
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_head_for_others_has_no_framing_no_age_and_a_date() {
        let response = response(
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nAge: 5\r\nX-Assay-Lost: 1\r\nConnection: close\r\nETag: \"a\"\r\n\
             Cache-Control: max-age=60\r\n\r\n",
        );
        assert_eq!(
            text(response.head()),
            "HTTP/1.1 200 OK\r\nDate: Mon, 12 Jan 1970 13:46:40 GMT\r\nETag: \"a\"\r\n\
             Cache-Control: max-age=60\r\nVia: 1.1 assay-collector\r\n"
        );
        let plain = RequestControl::default();
        assert!(response.is_fresh(&plain, NOW.received_ms + 54_000));
        assert!(!response.is_fresh(&plain, NOW.received_ms + 55_000));
        assert_eq!(response.age_s(NOW.received_ms + 2_500), Some(7));
        assert!(response.can_be_confirmed());
    }

    #[test]
    fn age_is_told_only_when_there_is_one() {
        let response = response("HTTP/1.1 200 OK\r\n\r\n");
        assert_eq!(response.age_s(NOW.received_ms + 999), None);
        assert_eq!(response.age_s(NOW.received_ms + 1_000), Some(1));
    }

    #[test]
    fn what_may_not_be_cached_is_never_fresh() {
        let plain = RequestControl::default();
        for fields in [
            "Cache-Control: no-store, max-age=5",
            "Cache-Control: private",
            "Set-Cookie: a",
            "Vary: *\r\nCache-Control: max-age=5",
        ] {
            let response = response(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n"));
            assert!(!response.is_fresh(&plain, NOW.received_ms), "{fields}");
        }
    }

    #[test]
    fn negotiated_responses_suit_requests_that_negotiate_alike() {
        let varies =
            response_to("Accept-Encoding: gzip\r\n", "HTTP/1.1 200 OK\r\nVary: accept-encoding\r\n\r\n");
        assert!(varies.suits(request("accept-encoding: gzip\r\n").headers()));
        assert!(!varies.suits(request("").headers()));
        assert!(response("HTTP/1.1 200 OK\r\nVary: *\r\n\r\n").suits(request("").headers()));
    }

    #[test]
    fn a_304_confirms_what_it_names_or_what_the_request_named() {
        let requested = "If-None-Match: \"a\"\r\nIf-Modified-Since: Thu, 01 Jan 1970 00:00:10 GMT\r\n";
        let silent = response_to(requested, "HTTP/1.1 304 Not Modified\r\n\r\n");
        let by_tag = |tag| Conditions { if_none_match: Some(tag), if_modified_since_s: None };
        let by_date = |s| Conditions { if_none_match: None, if_modified_since_s: Some(s) };
        assert!(silent.is_not_modified_for(&by_tag(b"W/\"a\"")));
        assert!(!silent.is_not_modified_for(&by_tag(b"\"b\"")));
        assert!(silent.is_not_modified_for(&by_date(10)) && !silent.is_not_modified_for(&by_date(9)));
        let several = response_to("If-None-Match: \"a\", \"b\"\r\n", "HTTP/1.1 304 Not Modified\r\n\r\n");
        assert!(!several.is_not_modified_for(&by_tag(b"\"a\"")), "which of them is not known");
        let naming = response_to("If-None-Match: \"a\", \"b\"\r\n", "HTTP/1.1 304 x\r\nETag: \"b\"\r\n\r\n");
        assert!(naming.is_not_modified_for(&by_tag(b"\"b\"")));
    }

    #[test]
    fn a_confirmation_renews_fields_and_age_and_keeps_what_describes_the_body() {
        let stored = response(
            "HTTP/1.1 200 Fine\r\nDate: Mon, 12 Jan 1970 13:46:00 GMT\r\nContent-Type: a/b\r\n\
             Accept-Ranges: bytes\r\nContent-Length: 7\r\nCache-Control: max-age=1\r\n\r\n",
        );
        let confirmation =
            response("HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=9\r\nContent-Type: x/y\r\n\r\n");
        let context =
            RequestContext { head: request(""), control: RequestControl::default(), is_authorised: false };
        let renewed = stored.updated_by(&confirmation, &context, NOW).unwrap();
        assert_eq!((renewed.status, renewed.length), (200, Some(7)));
        assert!(renewed.is_fresh(&RequestControl::default(), NOW.received_ms + 8_000));
        assert_eq!(
            text(renewed.head()),
            "HTTP/1.1 200 Fine\r\nContent-Type: a/b\r\nAccept-Ranges: bytes\r\n\
             Date: Mon, 12 Jan 1970 13:46:40 GMT\r\nCache-Control: max-age=9\r\nVia: 1.1 assay-collector\r\n"
        );
        let mut not_modified = Vec::new();
        renewed.write_not_modified(&mut not_modified);
        assert!(text(&not_modified).starts_with("HTTP/1.1 304 Not Modified\r\nDate"));
        assert!(!text(&not_modified).contains("a/b") && !text(&not_modified).contains("bytes"));
    }
}
