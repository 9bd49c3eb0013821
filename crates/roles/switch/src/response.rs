//! Response heads for clients, rewritten from those of servers; and responses of the switch itself.

use std::cell::Cell;

use assay_http::date::DATE_BYTES;
use assay_http::field::{Field, write_decimal};
use assay_http::framing::BodyFraming;
use assay_http::head::ResponseHead;
use assay_http::status::reason;
use assay_net::fields;

use crate::lines::Lines;
use crate::orca;

/// Properties of a response that its head determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResponseFacts {
    pub status: u16,
    pub from_server: BodyFraming,
    /// Framing of the body that the client receives.
    pub to_client: BodyFraming,
    /// The server's connection can be reused.
    pub server_persists: bool,
    /// The client's connection stays open.
    pub client_persists: bool,
}

/// Properties of the request that affect its response.
#[derive(Debug, Clone, Copy)]
pub struct ResponseContext {
    pub is_head: bool,
    pub is_11: bool,
    /// The client's connection may persist.
    pub persists: bool,
}

/// Appends the head for the client; `raw` is what `head` was parsed from. A response without a `Date` gets that of `now` (RFC
/// 9110, 6.6.1).
pub fn append(
    out: &mut Vec<u8>,
    head: &ResponseHead<'_>,
    raw: &[u8],
    context: ResponseContext,
    name: &str,
    now: impl FnOnce() -> [u8; DATE_BYTES],
) -> ResponseFacts {
    let method = if context.is_head { "HEAD" } else { "GET" };
    let from_server = head.body(method);
    let to_client = match from_server {
        BodyFraming::Chunked | BodyFraming::UntilClose if context.is_11 => BodyFraming::Chunked,
        BodyFraming::Chunked | BodyFraming::UntilClose => BodyFraming::UntilClose,
        framing => framing,
    };
    let client_persists = context.persists && to_client != BodyFraming::UntilClose;
    append_status(out, head.status, head.reason);
    let is_dated = Cell::new(false);
    let replaced = |field: &Field<'_>| match field.name.len() {
        4 if field.is("date") => {
            is_dated.set(true);
            false
        }
        14 => field.is("content-length"),
        21 => field.is(orca::FIELD),
        _ => false,
    };
    let lines = Lines { fields: head.headers(), received: head.facts.version.into(), raw };
    lines.append_end_to_end(out, name, replaced);
    if !is_dated.get() {
        fields::append(out, b"Date", &now());
    }
    match to_client {
        // A HEAD or 304 states the length that a GET would have had; a 204 must not.
        BodyFraming::None => {
            if let (Some(bytes), true) = (head.facts.content_length, context.is_head || head.status == 304) {
                append_length(out, bytes);
            }
        }
        BodyFraming::Length(bytes) => append_length(out, bytes),
        BodyFraming::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        BodyFraming::UntilClose => {}
    }
    append_end(out, context.is_11, client_persists);
    ResponseFacts {
        status: head.status,
        from_server,
        to_client,
        server_persists: head.persists(method),
        client_persists,
    }
}

/// Appends a response of the switch itself, with `why` as its body.
pub fn append_own(out: &mut Vec<u8>, status: u16, why: &str, date: &[u8], context: ResponseContext) {
    append_status(out, status, reason(status));
    fields::append(out, b"Date", date);
    if status == 503 {
        fields::append(out, b"Retry-After", b"1");
    }
    if status == 200 {
        fields::append(out, b"Allow", b"GET, HEAD, POST, PUT, DELETE, OPTIONS");
    } else {
        fields::append(out, b"Content-Type", b"text/plain; charset=utf-8");
    }
    let length = if why.is_empty() { 0 } else { why.len() as u64 + 1 };
    append_length(out, length);
    append_end(out, context.is_11, context.persists);
    if !context.is_head && !why.is_empty() {
        out.extend_from_slice(why.as_bytes());
        out.push(b'\n');
    }
}

fn append_status(out: &mut Vec<u8>, status: u16, reason: &str) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, u64::from(status));
    out.push(b' ');
    out.extend_from_slice(reason.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn append_length(out: &mut Vec<u8>, bytes: u64) {
    out.extend_from_slice(b"Content-Length: ");
    write_decimal(out, bytes);
    out.extend_from_slice(b"\r\n");
}

/// Ends the head, with a `Connection` field where the version does not imply it.
fn append_end(out: &mut Vec<u8>, is_11: bool, persists: bool) {
    match (is_11, persists) {
        (true, true) => {}
        (false, true) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
        (_, false) => out.extend_from_slice(b"Connection: close\r\n"),
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUESTED: ResponseContext = ResponseContext { is_head: false, is_11: true, persists: true };

    fn sent(text: &str, context: ResponseContext) -> (String, ResponseFacts) {
        let (head, length) = ResponseHead::parse(text.as_bytes()).expect("is HTTP").expect("is complete");
        let mut out = Vec::new();
        let now = || *b"Thu, 01 Jan 1970 00:00:09 GMT";
        let facts = append(&mut out, &head, &text.as_bytes()[..length], context, "sw", now);
        (String::from_utf8(out).expect("text"), facts)
    }

    #[test]
    fn a_response_goes_on_without_what_was_for_this_connection() {
        let text = "HTTP/1.1 200 Fine\r\nContent-Length: 3\r\nConnection: close\r\nX-One: 1\r\nDate: x\r\n\
                    endpoint-load-metrics: TEXT cpu_utilization=1\r\n\r\n";
        let (out, facts) = sent(text, REQUESTED);
        assert_eq!(
            out,
            "HTTP/1.1 200 Fine\r\nX-One: 1\r\nDate: x\r\nVia: 1.1 sw\r\nContent-Length: 3\r\n\r\n"
        );
        assert!(!facts.server_persists && facts.client_persists);
    }

    #[test]
    fn a_response_without_date_gets_one_whether_or_not_connection_names_fields() {
        for connection in ["", "Connection: X-One\r\n"] {
            let (out, _) = sent(&format!("HTTP/1.1 200 OK\r\n{connection}X-One: 1\r\n\r\n"), REQUESTED);
            assert!(out.contains("\r\nDate: Thu, 01 Jan 1970 00:00:09 GMT\r\n"), "{out}");
        }
    }

    #[test]
    fn bodies_without_length_go_on_in_chunks_or_until_the_end() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let (out, facts) = sent(chunked, REQUESTED);
        assert!(out.contains("Transfer-Encoding: chunked\r\n") && facts.to_client == BodyFraming::Chunked);
        let old = ResponseContext { is_11: false, ..REQUESTED };
        let (out, facts) = sent(chunked, old);
        assert!(out.ends_with("Connection: close\r\n\r\n") && !facts.client_persists);
        let (_, facts) = sent("HTTP/1.0 200 OK\r\n\r\n", REQUESTED);
        assert_eq!((facts.from_server, facts.to_client), (BodyFraming::UntilClose, BodyFraming::Chunked));
        let (out, _) = sent("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n", old);
        assert!(out.ends_with("Content-Length: 1\r\nConnection: keep-alive\r\n\r\n"));
    }

    #[test]
    fn responses_without_body_say_their_length_only_where_they_may() {
        let head = ResponseContext { is_head: true, ..REQUESTED };
        let length = |text: &str, context| {
            let (out, facts) = sent(text, context);
            assert_eq!(facts.to_client, BodyFraming::None);
            out.contains("Content-Length: 9")
        };
        assert!(length("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", head));
        assert!(length("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", REQUESTED));
        assert!(!length("HTTP/1.1 204 No Content\r\nContent-Length: 9\r\n\r\n", REQUESTED));
    }

    #[test]
    fn the_switch_says_why() {
        let mut out = Vec::new();
        append_own(&mut out, 503, "no room", b"now", REQUESTED);
        let text = String::from_utf8(out).expect("text");
        assert!(
            text.starts_with("HTTP/1.1 503 Service Unavailable\r\nDate: now\r\nRetry-After: 1\r\n"),
            "{text}"
        );
        assert!(text.ends_with("Content-Length: 8\r\n\r\nno room\n"), "{text}");
    }
}
