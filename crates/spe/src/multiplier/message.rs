//! What of a client's request goes on to the Collector and to the proxies?
//!
//! The request line, the fields and the body as they came; `Via` is added, and what belongs to one connection is left out.

use std::net::IpAddr;
use std::sync::Arc;

use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, Version};
use assay_plane::fields;

use super::board::Held;

/// What is written down about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its number, from 0, in order of arrival.
    pub number: u64,
    /// Who asked.
    pub client: IpAddr,
    /// Method.
    pub method: String,
    /// Version.
    pub version: Version,
    /// URL.
    pub url: String,
    /// It asks whether what the client has is still good.
    pub is_validation: bool,
}

/// Why a request is not served. The texts go to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A path where a whole URL belongs.
    #[error("this is a forward proxy: a request must name the whole URL")]
    NotAbsolute,
    /// Another scheme.
    #[error("only http URLs are served here; others go through CONNECT")]
    Scheme,
    /// It was here before.
    #[error(
        "the request has been here before: a proxy under test leads back to the Multiplier instead of its door"
    )]
    Loop,
    /// A tunnel in front of one origin.
    #[error("tunnels are not served here")]
    Tunnel,
}

impl Refusal {
    /// The status that says so.
    pub fn status(self) -> u16 {
        match self {
            Refusal::NotAbsolute => 400,
            Refusal::Scheme | Refusal::Tunnel => 501,
            Refusal::Loop => 508,
        }
    }
}

/// A request that came in, and what is to be sent on.
#[derive(Debug)]
pub struct Order {
    /// What is written down about it.
    pub about: Arc<About>,
    /// Its head without what is said of the connection, and without the empty line at its end.
    head: Vec<u8>,
    /// How its body is delimited.
    pub body: BodyFraming,
    /// It waits for a word before it sends the body.
    pub expects_continue: bool,
    /// The client wants to go on using its connection.
    pub persists: bool,
    /// The client says so in `Proxy-Connection`.
    pub old_style: bool,
}

impl Order {
    /// Of a request; `name` is ours in `Via`.
    pub fn new(
        head: &RequestHead<'_>,
        (number, client): (u64, IpAddr),
        is_forward: bool,
        name: &str,
    ) -> Result<Self, Refusal> {
        if head.method == "CONNECT" && !is_forward {
            return Err(Refusal::Tunnel);
        }
        if fields::has_passed(head.headers(), name) == Some(true) {
            return Err(Refusal::Loop);
        }
        let url = if head.method == "CONNECT" { head.target.to_owned() } else { url(head, is_forward)? };
        let conditions = ["if-modified-since", "if-none-match", "if-unmodified-since", "if-match"];
        let about = About {
            number,
            client,
            method: head.method.to_owned(),
            version: head.facts.version,
            url,
            is_validation: head.headers().any(|field| conditions.iter().any(|name| field.is(name))),
        };
        let old_style = head.facts.version == Version::Http10
            && !head.facts.keep_alive
            && head.header("proxy-connection").is_some_and(|value| value.eq_ignore_ascii_case(b"keep-alive"));
        Ok(Self {
            about: Arc::new(about),
            head: written(head, name),
            body: head.body(),
            expects_continue: head.expect_continue,
            persists: head.persists() || old_style,
            old_style,
        })
    }

    /// True where something follows the head.
    pub fn has_body(&self) -> bool {
        !matches!(self.body, BodyFraming::None | BodyFraming::Length(0))
    }

    /// As the Collector is sent it: over a connection that is kept, whatever the client does with its own.
    pub fn for_collector(&self) -> Vec<u8> {
        let mut head = self.head.clone();
        if self.about.version == Version::Http10 {
            head.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        if self.expects_continue {
            head.extend_from_slice(b"Expect: 100-continue\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    /// As the proxies are sent it: whether the connection is kept is up to the client.
    pub fn for_proxies(&self) -> Vec<u8> {
        let mut head = self.head.clone();
        head.extend_from_slice(match (self.about.version, self.persists) {
            (Version::Http10, true) => &b"Connection: keep-alive\r\n"[..],
            (Version::Http11, false) => b"Connection: close\r\n",
            _ => b"",
        });
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// A request as the proxies are sent it.
#[derive(Debug)]
pub struct Message {
    /// What is written down about it.
    pub about: Arc<About>,
    /// Its head.
    pub head: Vec<u8>,
    /// Its body, chunked coding included.
    pub body: Vec<u8>,
    /// The connection may be kept.
    pub persists: bool,
    /// The room that the body takes up; held only to be given back with this.
    pub _room: Option<Held>,
}

fn written(head: &RequestHead<'_>, name: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(head.method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(head.target.as_bytes());
    out.extend_from_slice(b" ");
    out.extend_from_slice(version_name(head.facts.version).as_bytes());
    out.extend_from_slice(b"\r\n");
    let ours = |field: &assay_http::field::Field<'_>| field.is("content-length") || field.is("expect");
    fields::append_end_to_end(&mut out, head.headers(), (head.facts.version, name), ours);
    match head.body() {
        BodyFraming::Length(bytes) => fields::append_number(&mut out, "Content-Length", bytes),
        BodyFraming::Chunked => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        BodyFraming::None | BodyFraming::UntilClose => {}
    }
    out
}

/// `HTTP/1.1` or `HTTP/1.0`.
pub fn version_name(version: Version) -> &'static str {
    match version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    }
}

fn url(head: &RequestHead<'_>, is_forward: bool) -> Result<String, Refusal> {
    match head.target.split_once("://") {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") => Ok(head.target.to_owned()),
        Some((scheme, _)) if !scheme.starts_with('/') => Err(Refusal::Scheme),
        _ if is_forward => Err(Refusal::NotAbsolute),
        _ => {
            let host = String::from_utf8_lossy(head.host.unwrap_or(b"-"));
            Ok(format!("http://{host}{}", head.target))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(text: &str, is_forward: bool) -> Result<Order, Refusal> {
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        Order::new(&head, (3, IpAddr::from([192, 0, 2, 1])), is_forward, "me-1")
    }

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_request_goes_on_as_it_came_with_via_added() {
        let request = "GET http://a/~x?y HTTP/1.0\r\nReferer: http://a/\r\nProxy-Connection: Keep-Alive\r\nHost: a\r\n\r\n";
        let order = order(request, true).unwrap();
        assert_eq!(
            text(order.for_proxies()),
            "GET http://a/~x?y HTTP/1.0\r\nReferer: http://a/\r\nHost: a\r\nVia: 1.0 me-1\r\nConnection: keep-alive\r\n\r\n"
        );
        assert_eq!(order.about.url, "http://a/~x?y");
        assert!(order.persists && order.old_style && !order.about.is_validation);
    }

    #[test]
    fn what_the_client_does_with_its_connection_holds_for_those_to_proxies_only() {
        let order =
            order("GET /x HTTP/1.1\r\nHost: a:1\r\nConnection: close\r\nIf-None-Match: \"a\"\r\n\r\n", false)
                .unwrap();
        assert!(text(order.for_proxies()).ends_with("Via: 1.1 me-1\r\nConnection: close\r\n\r\n"));
        assert!(text(order.for_collector()).ends_with("Via: 1.1 me-1\r\n\r\n"));
        assert_eq!((order.about.url.as_str(), order.about.is_validation), ("http://a:1/x", true));
    }

    #[test]
    fn a_body_is_delimited_as_it_was_and_only_the_collector_is_asked_first() {
        let post = "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3, 3\r\n\r\n";
        let order = order(post, false).unwrap();
        let proxies = text(order.for_proxies());
        assert!(proxies.contains("Content-Length: 3\r\n") && !proxies.contains("Expect"));
        assert!(text(order.for_collector()).contains("Expect: 100-continue\r\n"));
        assert!(order.has_body());
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_a_reason() {
        let refused = |text: &str, is_forward| order(text, is_forward).unwrap_err();
        assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\n\r\n", true), Refusal::NotAbsolute);
        assert_eq!(refused("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", true), Refusal::Scheme);
        assert_eq!(refused("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", false), Refusal::Tunnel);
        assert_eq!(
            refused("GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 x, 1.1 me-1\r\n\r\n", false),
            Refusal::Loop
        );
        assert!(order("GET /?u=http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", false).is_ok());
    }
}
