//! Request heads for servers, rewritten from those of clients; and the reasons for refusing some.

use std::net::SocketAddr;

use assay_http::field::{Field, decimal, write_decimal};
use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, Version};
use assay_http::target::{self, TargetError};
use assay_net::{exchange, fields};
use thiserror::Error;

use crate::config::SwitchLimits;
use crate::forwarded::ClientPeer;
use crate::lines::Lines;

/// Reasons for refusing a request. The texts go to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RequestRefusal {
    /// Head that is not HTTP, is too long, or did not come in time.
    #[error(transparent)]
    Early(#[from] exchange::Refusal),
    #[error("the request has more than the {0} fields that are accepted here")]
    TooManyFields(u32),
    #[error("the body of the request is longer than the {0} bytes that are accepted here")]
    BodyTooLong(u64),
    #[error("TRACE would show what the switch adds to requests, and is not passed on")]
    Trace,
    #[error("{0}")]
    Target(#[from] TargetError),
    /// Body that did not come in time.
    #[error("the request did not come in time")]
    TooSlow,
    #[error("the chunked coding of the request's body is broken")]
    BadChunk,
}

impl RequestRefusal {
    pub fn status(self) -> u16 {
        match self {
            RequestRefusal::Early(refusal) => refusal.status(),
            RequestRefusal::TooManyFields(_) => 431,
            RequestRefusal::BodyTooLong(_) => 413,
            RequestRefusal::Target(error) => error.status(),
            RequestRefusal::Trace => 501,
            RequestRefusal::BadChunk => 400,
            RequestRefusal::TooSlow => 408,
        }
    }
}

/// Properties of a request that its head determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestFacts {
    /// The response to a `HEAD` has no body.
    pub is_head: bool,
    /// Idempotent and without a body.
    pub can_repeat: bool,
    pub body: BodyFraming,
    pub expects_continue: bool,
    pub is_11: bool,
    /// The client's connection may persist.
    pub persists: bool,
    /// The response is the switch's own (`OPTIONS` with `Max-Forwards: 0`).
    pub is_for_switch: bool,
}

/// Target of a request in origin form, and the host that the request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OriginFormTarget<'h> {
    /// Path and query, or `*`. An absolute URL may have a query and no path, in which case the `/` is missing here.
    pub path: &'h str,
    /// From an absolute URL, else from `Host`.
    pub host: Option<&'h [u8]>,
}

/// Resolves the target of a request that came over `scheme` (RFC 9112, 3.2 and 3.3).
pub fn target<'h>(head: &RequestHead<'h>, scheme: &str) -> Result<OriginFormTarget<'h>, RequestRefusal> {
    if head.method == "TRACE" {
        return Err(RequestRefusal::Trace);
    }
    let target = target::Target::of_scheme(head, scheme)?;
    Ok(OriginFormTarget {
        path: if target.path.is_empty() { "/" } else { target.path },
        host: target.authority.map(str::as_bytes),
    })
}

/// Reads the properties of a request, and enforces limits.
pub fn facts(head: &RequestHead<'_>, limits: &SwitchLimits) -> Result<RequestFacts, RequestRefusal> {
    // The parser rejects more than a hundred fields.
    if limits.head_fields < 100 && head.headers().count() > limits.head_fields as usize {
        return Err(RequestRefusal::TooManyFields(limits.head_fields));
    }
    let body = head.body();
    if let (BodyFraming::Length(bytes), Some(most)) = (body, limits.body_bytes)
        && bytes > most
    {
        return Err(RequestRefusal::BodyTooLong(most));
    }
    let has_body = !matches!(body, BodyFraming::None | BodyFraming::Length(0));
    let is_idempotent = matches!(head.method, "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE");
    let is_for_switch = head.method == "OPTIONS"
        && head.header("max-forwards").and_then(decimal).is_some_and(|left| left == 0);
    Ok(RequestFacts {
        is_head: head.method == "HEAD",
        can_repeat: is_idempotent && !has_body,
        body,
        expects_continue: head.expect_continue && has_body,
        is_11: head.facts.version == Version::Http11,
        persists: head.persists(),
        is_for_switch,
    })
}

/// Appends the head for the server: hop-by-hop fields are removed, the framing is rewritten, and the client's address is added.
pub fn append(
    out: &mut Vec<u8>,
    exchange::Request { head, bytes: raw, received }: &exchange::Request<'_>,
    target: OriginFormTarget<'_>,
    facts: RequestFacts,
    peer: &ClientPeer,
    name: &str,
    own: SocketAddr,
) {
    out.extend_from_slice(head.method.as_bytes());
    out.push(b' ');
    if target.path.starts_with('?') {
        out.push(b'/');
    }
    out.extend_from_slice(target.path.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    // Only HTTP/1.0 clients may leave `Host` out; servers want one.
    match target.host {
        Some(host) => fields::append(out, b"Host", host),
        None => fields::append(out, b"Host", own.to_string().as_bytes()),
    }
    let replaced = |field: &Field<'_>| match field.name.len() {
        4 => field.is("host"),
        6 => field.is("expect") && !facts.expects_continue,
        12 => field.is_taken_for("max-forwards") && head.method == "OPTIONS",
        14 => field.is("content-length"),
        _ => peer.replaces(field),
    };
    let lines = Lines { fields: head.headers(), received: *received, raw };
    lines.append_end_to_end(out, name, replaced);
    peer.append(out, head.headers(), target.host);
    if head.method == "OPTIONS"
        && let Some(left) = head.header("max-forwards").and_then(decimal)
    {
        fields::append_number(out, "Max-Forwards", left.saturating_sub(1));
    }
    match facts.body {
        BodyFraming::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        BodyFraming::Length(bytes) => {
            out.extend_from_slice(b"Content-Length: ");
            write_decimal(out, bytes);
            out.extend_from_slice(b"\r\n");
        }
        BodyFraming::None | BodyFraming::UntilClose => {}
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use assay_net::fields::ReceivedProtocol;

    use super::*;

    fn sent(text: &str) -> Result<(String, RequestFacts), RequestRefusal> {
        sent_in(text, None)
    }

    /// The same for a request that was received in this version; none: the one that it names.
    fn sent_in(
        text: &str,
        received: Option<ReceivedProtocol>,
    ) -> Result<(String, RequestFacts), RequestRefusal> {
        let limits = SwitchLimits { body_bytes: Some(10), ..SwitchLimits::default() };
        let parsed = RequestHead::parse(text.as_bytes()).map_err(exchange::Refusal::from)?;
        let (head, length) = parsed.expect("is complete");
        let target = target(&head, "http")?;
        let facts = facts(&head, &limits)?;
        let peer = ClientPeer::new("192.0.2.1:5".parse().expect("an address"), "sw", &[], false);
        let mut out = Vec::new();
        let received = received.unwrap_or(head.facts.version.into());
        let request = exchange::Request { head, bytes: &text.as_bytes()[..length], received };
        append(&mut out, &request, target, facts, &peer, "sw", ([127, 0, 0, 1], 80).into());
        Ok((String::from_utf8(out).expect("text"), facts))
    }

    #[test]
    fn a_request_goes_on_without_what_was_for_this_connection() {
        let text = "GET /a?b HTTP/1.1\r\nHost: a\r\nConnection: close, X-One\r\nX-One: 1\r\nAccept: */*\r\n\
                    Expect: 100-continue\r\nX-Forwarded-For: 9.9.9.9\r\n\r\n";
        let (out, facts) = sent(text).expect("goes on");
        assert_eq!(
            out,
            "GET /a?b HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nVia: 1.1 sw\r\nX-Forwarded-For: 192.0.2.1\r\n\
             X-Forwarded-Proto: http\r\nForwarded: for=192.0.2.1;by=\"_sw\";proto=http;host=\"a\"\r\n\r\n"
        );
        assert!(facts.can_repeat && !facts.persists && !facts.expects_continue);
    }

    #[test]
    fn the_length_of_a_body_is_written_once_and_only_what_can_be_repeated_is() {
        let with = |method: &str, fields: &str| {
            sent(&format!("{method} / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")).expect("goes on")
        };
        let (out, facts) =
            with("PUT", "Content-Length: 5, 5\r\nContent-Length: 5\r\nExpect: 100-continue\r\n");
        assert_eq!(out.matches("Content-Length: 5\r\n").count(), 1);
        assert!(out.contains("Expect: 100-continue") && facts.expects_continue && !facts.can_repeat);
        assert!(with("POST", "Transfer-Encoding: chunked\r\n").0.contains("Transfer-Encoding: chunked\r\n"));
        assert!(with("DELETE", "Content-Length: 0\r\n").1.can_repeat);
        assert!(!with("POST", "Content-Length: 0\r\n").1.can_repeat);
        assert!(!with("PURGE", "").1.can_repeat, "nobody knows what it does");
    }

    #[test]
    fn a_url_becomes_a_path_and_its_host_counts() {
        let get = |target: &str| sent(&format!("GET {target} HTTP/1.1\r\nHost: other\r\n\r\n"));
        let (out, _) = get("HTTP://a.example:81/x?y").expect("goes on");
        assert!(
            out.starts_with("GET /x?y HTTP/1.1\r\nHost: a.example:81\r\n") && !out.contains("other"),
            "{out}"
        );
        assert!(get("http://a").expect("goes on").0.starts_with("GET / HTTP/1.1\r\nHost: a\r\n"));
        assert!(get("http://a?x").expect("goes on").0.starts_with("GET /?x HTTP/1.1\r\nHost: a\r\n"));
        for bad in ["http://", "http://u@a/", "ftp://a/", "a:80", "/a#b", "*"] {
            assert!(matches!(get(bad), Err(RequestRefusal::Target(_))), "{bad}");
        }
        let (out, _) = sent("GET /x HTTP/1.0\r\n\r\n").expect("goes on");
        assert!(out.contains("Host: 127.0.0.1:80\r\n") && out.contains("Via: 1.0 sw\r\n"));
    }

    #[test]
    fn via_names_the_version_of_the_client_also_where_that_is_http_2() {
        for more in ["", "Connection: x-one\r\n"] {
            let text = format!("GET /x HTTP/1.1\r\nHost: a\r\n{more}\r\n");
            let (out, _) = sent_in(&text, Some(ReceivedProtocol::Http2)).expect("goes on");
            assert!(out.contains("\r\nVia: 2.0 sw\r\n"), "{out}");
        }
    }

    #[test]
    fn refusals_have_the_right_status() {
        let status = |text: &str| sent(text).expect_err("is refused").status();
        assert_eq!(status("CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"), 501);
        assert_eq!(status("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"), 501);
        assert_eq!(status("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n"), 413);
        assert_eq!(status("GET / HTTP/3.0\r\nHost: a\r\n\r\n"), 505);
    }

    #[test]
    fn options_go_on_so_many_times_and_no_more() {
        let options = |left: &str| {
            sent(&format!("OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: {left}\r\n\r\n")).expect("goes on")
        };
        assert!(options("3").0.contains("Max-Forwards: 2\r\n") && !options("3").1.is_for_switch);
        assert!(options("0").1.is_for_switch);
    }
}
