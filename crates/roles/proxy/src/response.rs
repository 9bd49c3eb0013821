//! Heads of origins' responses, as they are stored and sent to clients.

use assay_cache::conditional::{Conditions, IfRange, Validators, is_updated};
use assay_cache::freshness::{Freshness, ResponseFacts};
use assay_cache::vary::Vary;
use assay_http::date::{DATE_BYTES, write_date};
use assay_http::field::Field;
use assay_http::head::{HeadError, ResponseHead};

use assay_cache::http_fields::{self, ResponseFields};
use assay_net::fields;

/// Times of a request and of the head of its response, in Unix milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct ResponseTimes {
    pub requested_ms: i64,
    pub received_ms: i64,
}

/// Head of a response, as it goes to clients.
#[derive(Debug)]
pub struct ProxyResponse {
    pub status: u16,
    pub freshness: Freshness,
    pub vary: Vary,
    /// Came with an `Age`: from another cache.
    pub has_age: bool,
    /// Input of the storing rules.
    pub facts: ResponseFacts,
    /// Status line and end-to-end fields, without `Age` and `Content-Length`.
    head: Box<[u8]>,
    /// Offset of the fields in `head`.
    fields_at: usize,
    etag: Option<Box<[u8]>>,
    last_modified_s: Option<i64>,
}

impl ProxyResponse {
    /// Reads the head of an origin's response; `name` identifies this proxy.
    pub fn from_origin(head: &ResponseHead<'_>, name: &str, times: ResponseTimes) -> Result<Self, HeadError> {
        let mut text = Vec::with_capacity(512);
        let response_fields = append_head(&mut text, head, name, || times.received_ms);
        let age_s = response_fields.age_s();
        let mut facts = response_fields.facts(head.status, age_s.unwrap_or(0));
        if response_fields.date.is_none() {
            facts.date_s = Some(times.received_ms.div_euclid(1000).max(0));
        }
        let varies = |field: &Field<'_>| field.is("vary");
        Ok(Self {
            status: head.status,
            freshness: Freshness::new(&facts, times.requested_ms, times.received_ms),
            vary: match response_fields.varies {
                true => Vary::parse(head.headers().filter(varies).map(|field| field.value)),
                false => Vary::Nothing,
            },
            has_age: age_s.is_some(),
            facts,
            fields_at: fields_at(&text),
            head: text.into_boxed_slice(),
            etag: response_fields.etag.map(Box::from),
            last_modified_s: response_fields.last_modified.and_then(http_fields::date_s),
        })
    }

    /// Sets the freshness lifetime for a response that states none, if heuristics are allowed.
    #[must_use]
    pub fn with_default_lifetime(mut self, lifetime_s: u64, times: ResponseTimes) -> Self {
        self.facts.default_lifetime_s = lifetime_s;
        self.freshness = Freshness::new(&self.facts, times.requested_ms, times.received_ms);
        self
    }

    /// Parses a status line and fields that go to clients unchanged.
    fn from_text(mut text: Vec<u8>, age_s: Option<u64>, times: ResponseTimes) -> Result<Self, HeadError> {
        text.extend_from_slice(b"\r\n");
        let (head, length) = ResponseHead::parse(&text)?.ok_or(HeadError::Syntax("the head has no end"))?;
        let facts = http_fields::response_facts(&head, age_s.unwrap_or(0));
        let values =
            |name: &'static str| head.headers().filter(move |field| field.is(name)).map(|field| field.value);
        let etag = head.header("etag").map(Box::from);
        let last_modified_s = head.header("last-modified").and_then(http_fields::date_s);
        let (status, vary) = (head.status, Vary::parse(values("vary")));
        text.truncate(length - 2);
        Ok(Self {
            status,
            freshness: Freshness::new(&facts, times.requested_ms, times.received_ms),
            vary,
            has_age: age_s.is_some(),
            facts,
            fields_at: fields_at(&text),
            head: text.into_boxed_slice(),
            etag,
            last_modified_s,
        })
    }

    /// Returns this response updated by a 304 (RFC 9111, 3.2 and 4.3.4).
    pub fn updated_by(&self, confirmation: &ProxyResponse, times: ResponseTimes) -> Result<Self, HeadError> {
        let newer = confirmation.fields().filter(|field| is_updated(field.name));
        let mut text = self.head[..self.fields_at].to_vec();
        for field in self.fields() {
            if !newer.clone().any(|other| other.name.eq_ignore_ascii_case(field.name)) {
                fields::append(&mut text, field.name, field.value);
            }
        }
        newer.for_each(|field| fields::append(&mut text, field.name, field.value));
        let age_s = confirmation.has_age.then_some(confirmation.facts.age_s);
        let updated = Self::from_text(text, age_s, times)?;
        let mut updated = updated.with_default_lifetime(self.facts.default_lifetime_s, times);
        // The directive may be in a hop-by-hop field, which `fields` does not have.
        updated.facts.control.no_store |= confirmation.facts.control.no_store;
        Ok(updated)
    }

    pub fn head(&self) -> &[u8] {
        &self.head
    }

    pub fn field_lines(&self) -> &[u8] {
        &self.head[self.fields_at..]
    }

    pub fn validators(&self) -> Validators<'_> {
        Validators { etag: self.etag.as_deref(), last_modified_s: self.last_modified_s }
    }

    /// Whether a request with these conditions gets a 304 instead of this response.
    pub fn is_not_modified_for(&self, conditions: &Conditions<'_>) -> bool {
        self.status == 200 && conditions.are_not_modified(&self.validators())
    }

    /// Whether the condition of `If-Range` permits parts of this response.
    pub fn allows_range(&self, condition: &IfRange<'_>) -> bool {
        condition.holds(&self.validators(), self.facts.date_s)
    }

    /// Whether the response has a content coding: parts of coded bytes are useless to a client that wants parts of the object.
    pub fn is_coded(&self) -> bool {
        self.coding().is_some()
    }

    /// Content coding, except `identity`.
    pub fn coding(&self) -> Option<&[u8]> {
        let coding = self.fields().find(|field| field.name.eq_ignore_ascii_case(b"content-encoding"));
        coding.map(|field| field.value).filter(|coding| !coding.eq_ignore_ascii_case(b"identity"))
    }

    /// Whether the peer cache reported a hit, in the last member of `Cache-Status` (RFC 9211) or of `X-Cache`.
    pub fn is_peers_hit(&self) -> bool {
        let last = |name: &[u8]| {
            let lines = self.fields().filter(|field| field.name.eq_ignore_ascii_case(name));
            let value = lines.last()?.value;
            Some(value.rsplit(|&byte| byte == b',').next().unwrap_or(value).trim_ascii())
        };
        match last(b"cache-status") {
            Some(member) => member.split(|&byte| byte == b';').any(|word| word.trim_ascii() == b"hit"),
            None => last(b"x-cache").is_some_and(|word| word.to_ascii_lowercase().starts_with(b"hit")),
        }
    }

    pub fn content_type(&self) -> Option<&str> {
        let kind = self.fields().find(|field| field.name.eq_ignore_ascii_case(b"content-type"));
        kind.and_then(|field| std::str::from_utf8(field.value).ok())
    }

    pub fn field_lines_without_type(&self) -> Vec<u8> {
        let mut lines = Vec::with_capacity(self.head.len());
        let others = self.fields().filter(|field| !field.name.eq_ignore_ascii_case(b"content-type"));
        others.for_each(|field| fields::append(&mut lines, field.name, field.value));
        lines
    }

    /// Memory used.
    pub fn weight_bytes(&self) -> usize {
        size_of::<Self>() + self.head.len() + self.etag.as_ref().map_or(0, |tag| tag.len())
    }

    fn fields(&self) -> impl Iterator<Item = FieldLine<'_>> + Clone {
        lines(self.field_lines())
    }
}

/// Appends the head as it goes to clients: status line and end-to-end fields, without `Age` and `Content-Length`; and collects,
/// in the same pass, the fields that matter to a cache. `received_ms` is called when there is no `Date`.
pub fn append_head<'h>(
    out: &mut Vec<u8>,
    head: &ResponseHead<'h>,
    name: &str,
    received_ms: impl FnOnce() -> i64,
) -> ResponseFields<'h> {
    out.extend_from_slice(b"HTTP/1.1 ");
    assay_http::field::write_decimal(out, u64::from(head.status));
    out.push(b' ');
    out.extend_from_slice(head.reason.as_bytes());
    out.extend_from_slice(b"\r\n");
    let mut response_fields = ResponseFields::default();
    fields::append_end_to_end(out, head.headers(), head.facts.version, name, |field| {
        response_fields.add(field);
        match field.name.len() {
            3 => field.is("age"),
            14 => field.is("content-length"),
            _ => false,
        }
    });
    if head.facts.names_fields && http_fields::connection_names_cache_field(head.headers()) {
        response_fields.hide();
    }
    if response_fields.date.is_none() {
        // Without a date, no downstream cache could compute an age (RFC 9110, 6.6.1).
        let mut date = [0; DATE_BYTES];
        write_date(u64::try_from(received_ms() / 1000).unwrap_or(0), &mut date);
        fields::append(out, b"Date", &date);
    }
    response_fields
}

/// Offset of the fields.
fn fields_at(text: &[u8]) -> usize {
    text.iter().position(|&b| b == b'\n').map_or(0, |at| at + 1)
}

/// A field of a head that we have written ourselves.
#[derive(Debug, Clone, Copy)]
struct FieldLine<'r> {
    name: &'r [u8],
    value: &'r [u8],
}

fn lines(block: &[u8]) -> impl Iterator<Item = FieldLine<'_>> + Clone {
    block.split(|&b| b == b'\n').filter_map(|line| {
        let colon = line.iter().position(|&b| b == b':')?;
        Some(FieldLine { name: &line[..colon], value: line[colon + 1..].trim_ascii() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: ResponseTimes = ResponseTimes { requested_ms: 1_000_000_000, received_ms: 1_000_000_000 };

    fn response(text: &str) -> ProxyResponse {
        let (head, _) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
        ProxyResponse::from_origin(&head, "assay", NOW).unwrap()
    }

    fn head(response: &ProxyResponse) -> &str {
        std::str::from_utf8(response.head()).unwrap()
    }

    #[test]
    fn the_head_for_clients_has_no_framing_no_age_and_a_date() {
        let response = response(
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nAge: 5\r\nX-Assay: 1\r\nCache-Control: max-age=60\r\n\
             Connection: close\r\nETag: \"a\"\r\n\r\n",
        );
        assert_eq!(
            head(&response),
            "HTTP/1.1 200 OK\r\nX-Assay: 1\r\nCache-Control: max-age=60\r\nETag: \"a\"\r\n\
             Via: 1.1 assay\r\nDate: Mon, 12 Jan 1970 13:46:40 GMT\r\n"
        );
        assert!(response.has_age);
        assert_eq!(response.freshness.age_s(NOW.received_ms), 5);
        assert_eq!(response.validators().etag, Some(&b"\"a\""[..]));
    }

    #[test]
    fn a_304_replaces_fields_keeps_the_others_and_restarts_the_age() {
        let stored = response(
            "HTTP/1.1 200 Fine\r\nDate: Mon, 12 Jan 1970 13:46:00 GMT\r\nX-Assay: old\r\nX-Kept: 1\r\n\
             Content-Type: text/a\r\nCache-Control: max-age=1\r\n\r\n",
        );
        let confirmation = response(
            "HTTP/1.1 304 Not Modified\r\nDate: Mon, 12 Jan 1970 13:46:40 GMT\r\nx-assay: new\r\n\
             Content-Type: b/b\r\nCache-Control: max-age=9\r\n\r\n",
        );
        let updated = stored.updated_by(&confirmation, NOW).unwrap();
        assert_eq!(
            head(&updated),
            "HTTP/1.1 200 Fine\r\nX-Kept: 1\r\nContent-Type: text/a\r\n\
             Date: Mon, 12 Jan 1970 13:46:40 GMT\r\nx-assay: new\r\nCache-Control: max-age=9\r\n\
             Via: 1.1 assay\r\n"
        );
        assert_eq!(updated.freshness.remaining_ms(NOW.received_ms), 9000);
        assert_eq!(updated.status, 200);
    }

    #[test]
    fn only_a_200_is_not_modified() {
        let conditions = Conditions { if_none_match: Some(b"*"), if_modified_since_s: None };
        assert!(response("HTTP/1.1 200 OK\r\n\r\n").is_not_modified_for(&conditions));
        assert!(!response("HTTP/1.1 404 No\r\n\r\n").is_not_modified_for(&conditions));
    }
}
