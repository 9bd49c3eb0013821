//! What of a client's request goes on to the Collector and to the proxies.
//!
//! The request line, the fields and the body as they came; `Via` and the request's number ([`number`]) are added, and what
//! belongs to one connection is left out. In front of one origin (reverse), a request that names a host by a whole URL goes
//! on with a path and that host in `Host`, as in requests to servers: no proxy can take it for one to another server. A request from a
//! tunnel that was opened goes on as one for an `http` URL with the port of the tunnel; its number says that it was for `https`.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use assay_http::field::Field;
use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, Version};
use assay_http::target::{self, Target, TargetError};
use assay_net::fields::{self, Received};

use super::board::Held;
use super::place::Place;
use crate::number;

/// What is written down about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its number, from 0, in order of arrival.
    pub number: u64,
    pub client: IpAddr,
    pub method: String,
    /// Version.
    pub version: Version,
    /// URL.
    pub url: String,
    /// It validates what the client has stored.
    pub is_validation: bool,
}

/// Why a request is not served. The texts go to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A path where a whole URL belongs.
    #[error("this is a forward proxy: a request must name the whole URL")]
    NotAbsolute,
    #[error("only http URLs are served here; others go through CONNECT")]
    Scheme,
    /// A tunnel whose request says that it has a body.
    #[error("a request for a tunnel has no body")]
    TunnelWithBody,
    /// It was here before.
    #[error(
        "the request has been here before: a proxy under test leads back to the Multiplier instead of its listener"
    )]
    Loop,
    /// Through an opened tunnel, a request to another server than that of the tunnel.
    #[error("this connection is a tunnel to another host; open one to that host")]
    Misdirected,
    /// A target, or a host, that is none.
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl Refusal {
    /// The status that says so.
    pub fn status(self) -> u16 {
        match self {
            Refusal::NotAbsolute | Refusal::TunnelWithBody => 400,
            Refusal::Scheme => 501,
            Refusal::Misdirected => 421,
            Refusal::Target(error) => error.status(),
            Refusal::Loop => 508,
        }
    }
}

/// What the client takes us for.
#[derive(Debug, Clone, Copy)]
pub enum Role<'r> {
    Proxy,
    /// The server, over a connection of this scheme.
    Server(&'r str),
    /// The server that its tunnel leads to.
    Tunnel(&'r Place),
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
    /// It waits for 100 before it sends the body.
    pub expects_continue: bool,
    /// The client wants to go on using its connection.
    pub persists: bool,
    /// The client says so in `Proxy-Connection`.
    pub old_style: bool,
}

impl Order {
    /// Of a request that was received in this version of HTTP; `name` is ours in `Via`.
    pub fn new(
        (head, received): (&RequestHead<'_>, Received),
        (number, client): (u64, IpAddr),
        role: Role<'_>,
        name: &str,
    ) -> Result<Self, Refusal> {
        let requested = match role {
            Role::Server(scheme) => Requested::of_server(head, scheme)?,
            Role::Proxy => Requested::of_proxy(head)?,
            Role::Tunnel(place) => Requested::of_opened(head, place)?,
        };
        let number = (number, matches!(role, Role::Tunnel(_)));
        if fields::has_passed(head.headers(), name) == Some(true) {
            return Err(Refusal::Loop);
        }
        let conditions = ["if-modified-since", "if-none-match", "if-unmodified-since", "if-match"];
        let about = About {
            number: number.0,
            client,
            method: head.method.to_owned(),
            version: head.facts.version,
            url: requested.url,
            is_validation: head.headers().any(|field| conditions.iter().any(|name| field.is(name))),
        };
        let old_style = head.facts.version == Version::Http10
            && !head.facts.keep_alive
            && head.header("proxy-connection").is_some_and(|value| value.eq_ignore_ascii_case(b"keep-alive"));
        Ok(Self {
            about: Arc::new(about),
            head: written((head, received), (&requested.target, requested.host), name, number),
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
    pub head: Vec<u8>,
    /// Its body, chunked coding included.
    pub body: Vec<u8>,
    /// The connection may be kept.
    pub persists: bool,
    /// The room that the body takes up; held only to be given back with this.
    pub _room: Option<Held>,
}

fn written(
    (head, received): (&RequestHead<'_>, Received),
    (target, host): (&str, Option<&str>),
    name: &str,
    (number, is_secured): (u64, bool),
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    for part in [head.method, " ", target, " ", version_name(head.facts.version), "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    if let Some(host) = host {
        fields::append(&mut out, b"Host", host.as_bytes());
    }
    let ours = |field: &Field<'_>| {
        ["content-length", "expect", number::REQUEST].iter().any(|name| field.is(name))
            || field.is("host")
            || (head.max_forwards().is_some() && field.is("max-forwards"))
    };
    fields::append_end_to_end(&mut out, head.headers(), (received, name), ours);
    number::append(&mut out, number, is_secured);
    if let Some(left) = head.max_forwards() {
        fields::append_number(&mut out, "Max-Forwards", left.saturating_sub(1));
    }
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

/// The request's target, and how it is sent on.
struct Requested<'b> {
    /// The whole URL; of a tunnel, where it leads.
    url: String,
    target: Cow<'b, str>,
    /// What `Host` is to be; none: there is none, in HTTP/1.0.
    host: Option<&'b str>,
}

impl<'b> Requested<'b> {
    /// Of a forward proxy: a whole URL, or a tunnel. Its host is the URL's, whatever `Host` says (RFC 9112, 3.2.2).
    fn of_proxy(head: &RequestHead<'b>) -> Result<Self, Refusal> {
        if head.method == "CONNECT" {
            return Self::of_tunnel(head);
        }
        let requested = Target::of(head).map_err(|error| match error {
            TargetError::Scheme => Refusal::Scheme,
            other => Refusal::Target(other),
        })?;
        if !requested.is_absolute {
            return Err(Refusal::NotAbsolute);
        }
        Ok(Self { url: head.target.to_owned(), target: head.target.into(), host: requested.authority })
    }

    /// What follows its head belongs to the tunnel, so nothing may say that it is a body (RFC 9110, 9.3.6).
    fn of_tunnel(head: &RequestHead<'b>) -> Result<Self, Refusal> {
        if !matches!(head.body(), BodyFraming::None) {
            return Err(Refusal::TunnelWithBody);
        }
        head.host.map(target::authority).transpose()?;
        let place = target::authority(head.target.as_bytes())?;
        Ok(Self { url: place.to_owned(), target: place.into(), host: Some(place) })
    }

    /// Of the server of an opened tunnel. It has a certificate for that host alone, so a request for another is not its own
    /// (RFC 9110, 7.4).
    fn of_opened(head: &RequestHead<'b>, place: &'b Place) -> Result<Self, Refusal> {
        let requested = Target::of_scheme(head, "https")?;
        if requested.authority.is_some_and(|authority| !place.is(authority)) {
            return Err(Refusal::Misdirected);
        }
        let mut path = Vec::with_capacity(requested.path.len() + 1);
        requested.write_path(&mut path);
        let path = String::from_utf8_lossy(&path);
        let authority = place.authority();
        // A proxy gets a request for the server as a whole without a path (RFC 9112, 3.2.4).
        let of_proxies = if path == "*" { "" } else { &*path };
        Ok(Self {
            url: format!("https://{}{path}", place.in_urls()),
            target: format!("http://{authority}{of_proxies}").into(),
            host: Some(authority),
        })
    }

    /// Of a server, over a connection whose scheme this is.
    fn of_server(head: &RequestHead<'b>, scheme: &str) -> Result<Self, Refusal> {
        let requested = Target::of_scheme(head, scheme)?;
        let mut path = Vec::with_capacity(requested.path.len() + 1);
        requested.write_path(&mut path);
        let path = String::from_utf8_lossy(&path).into_owned();
        let url = match (requested.is_absolute, requested.authority) {
            (true, _) => head.target.to_owned(),
            (false, host) => format!("http://{}{path}", host.unwrap_or("-")),
        };
        Ok(Self { url, target: path.into(), host: requested.authority })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(text: &str, is_forward: bool) -> Result<Order, Refusal> {
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        order_in(head.facts.version.into(), &head, is_forward)
    }

    fn order_in(received: Received, head: &RequestHead<'_>, is_forward: bool) -> Result<Order, Refusal> {
        let role = if is_forward { Role::Proxy } else { Role::Server("http") };
        Order::new((head, received), (3, IpAddr::from([192, 0, 2, 1])), role, "me-1")
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
            "GET http://a/~x?y HTTP/1.0\r\nHost: a\r\nReferer: http://a/\r\nVia: 1.0 me-1\r\nX-Assay-Request: 3\r\n\
             Connection: keep-alive\r\n\r\n"
        );
        assert_eq!(order.about.url, "http://a/~x?y");
        assert!(order.persists && order.old_style && !order.about.is_validation);
    }

    #[test]
    fn via_names_http_2_where_the_request_was_received_in_it() {
        let (head, _) = RequestHead::parse(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n").unwrap().unwrap();
        let order = order_in(Received::Http2, &head, false).unwrap();
        let sent = text(order.for_proxies());
        assert!(sent.starts_with("GET /x HTTP/1.1\r\n") && sent.contains("\r\nVia: 2.0 me-1\r\n"), "{sent}");
    }

    #[test]
    fn how_often_it_may_still_be_passed_on_is_counted_down() {
        let options = "OPTIONS * HTTP/1.1\r\nHost: a\r\nMax-Forwards: 3\r\n\r\n";
        let sent = text(order(options, false).unwrap().for_proxies());
        assert!(sent.contains("Max-Forwards: 2\r\n") && !sent.contains("Max-Forwards: 3"), "{sent}");
        let get = "GET / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 3\r\n\r\n";
        assert!(text(order(get, false).unwrap().for_proxies()).contains("Max-Forwards: 3\r\n"));
    }

    #[test]
    fn a_host_that_is_none_is_refused_in_front_of_an_origin() {
        for host in ["a:b", "a:99999", "[::1", "a/b", "u@a"] {
            let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert!(matches!(order(&text, false), Err(Refusal::Target(_))), "{host}");
        }
    }

    #[test]
    fn what_the_client_does_with_its_connection_holds_for_those_to_proxies_only() {
        let order =
            order("GET /x HTTP/1.1\r\nHost: a:1\r\nConnection: close\r\nIf-None-Match: \"a\"\r\n\r\n", false)
                .unwrap();
        assert!(
            text(order.for_proxies())
                .ends_with("Via: 1.1 me-1\r\nX-Assay-Request: 3\r\nConnection: close\r\n\r\n")
        );
        assert!(text(order.for_collector()).ends_with("Via: 1.1 me-1\r\nX-Assay-Request: 3\r\n\r\n"));
        assert_eq!((order.about.url.as_str(), order.about.is_validation), ("http://a:1/x", true));
    }

    #[test]
    fn a_body_is_delimited_as_it_was_and_goes_to_the_collector_first() {
        let post = "POST /x HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3, 3\r\n\r\n";
        let order = order(post, false).unwrap();
        let proxies = text(order.for_proxies());
        assert!(proxies.contains("Content-Length: 3\r\n") && !proxies.contains("Expect"));
        assert!(text(order.for_collector()).contains("Expect: 100-continue\r\n"));
        assert!(order.has_body());
    }

    #[test]
    fn in_front_of_an_origin_a_whole_url_becomes_a_path_and_a_host() {
        for (target, line, url) in [
            ("http://b/x?y", "GET /x?y HTTP/1.1\r\nHost: b\r\n", "http://b/x?y"),
            ("HTTP://b.:81", "GET / HTTP/1.1\r\nHost: b.:81\r\n", "HTTP://b.:81"),
            ("http://[::1]?q", "GET /?q HTTP/1.1\r\nHost: [::1]\r\n", "http://[::1]?q"),
            ("//b/x", "GET //b/x HTTP/1.1\r\nHost: a\r\n", "http://a//b/x"),
        ] {
            let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nX-Assay-Request: 9\r\n\r\n");
            let order = order(&request, false).unwrap();
            let sent = text(order.for_proxies());
            assert!(sent.starts_with(line), "{sent}");
            assert_eq!(sent.matches("Host: ").count(), 1);
            assert!(
                sent.contains("X-Assay-Request: 3\r\n") && !sent.contains("X-Assay-Request: 9"),
                "{sent}"
            );
            assert_eq!((text(order.for_collector()), order.about.url.as_str()), (sent, url));
        }
        for target in ["http://u@b/", "b:80", "http:/b/", "http:///x", "ftp://b/"] {
            assert!(order(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"), false).is_err(), "{target}");
        }
        assert!(order("GET / HTTP/1.1\r\nHost: u@b\r\n\r\n", false).is_err());
    }

    #[test]
    fn a_whole_url_to_a_server_has_the_scheme_of_the_connection() {
        let request = "GET https://b/x HTTP/1.1\r\nHost: a\r\n\r\n";
        let (head, _) = RequestHead::parse(request.as_bytes()).unwrap().unwrap();
        let came = || (&head, head.facts.version.into());
        let by = |scheme| Order::new(came(), (3, IpAddr::from([192, 0, 2, 1])), Role::Server(scheme), "me-1");
        let sent = text(by("https").unwrap().for_proxies());
        assert!(sent.starts_with("GET /x HTTP/1.1\r\nHost: b\r\n"), "{sent}");
        assert!(by("http").is_err());
    }

    #[test]
    fn a_forward_proxy_sends_the_host_of_the_url_and_refuses_what_has_none() {
        for (target, host) in [("http://b/x?y", "b"), ("HTTP://b.:81", "b.:81"), ("http://[::1]?q", "[::1]")]
        {
            let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: Host\r\n\r\n");
            let sent = text(order(&request, true).unwrap().for_proxies());
            assert!(sent.starts_with(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nVia")), "{sent}");
        }
        for target in ["http://u@b/", "http:///x", "http://b:x/", "http://b/#f", "http://b/\u{e9}", "b:80"] {
            let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
            assert!(matches!(order(&request, true), Err(Refusal::Target(_))), "{target}");
        }
        assert!(order("GET http://b/ HTTP/1.1\r\nHost: u@b\r\n\r\n", true).is_err());
    }

    #[test]
    fn a_tunnel_leads_to_a_host_and_has_no_body() {
        let connect = |target: &str, fields: &str| {
            order(&format!("CONNECT {target} HTTP/1.1\r\nHost: else\r\n{fields}\r\n"), true)
        };
        let sent = text(connect("b:443", "").unwrap().for_collector());
        assert!(sent.starts_with("CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\nVia"), "{sent}");
        for target in ["/x", "http://b/x", "u@b:443", "b:x"] {
            assert!(matches!(connect(target, ""), Err(Refusal::Target(_))), "{target}");
        }
        for fields in ["Content-Length: 3\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n"] {
            assert_eq!(connect("b:443", fields).unwrap_err(), Refusal::TunnelWithBody, "{fields}");
        }
    }

    #[test]
    fn a_request_from_an_opened_tunnel_goes_on_for_its_host_and_no_other() {
        let of = |text: &str, place: &str| {
            let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
            let came = (&head, head.facts.version.into());
            Order::new(came, (3, IpAddr::from([192, 0, 2, 1])), Role::Tunnel(&Place::of(place)), "me-1")
        };
        for (line, host, place, sent_line, url) in [
            ("GET /x?y", "B", "b:443", "GET http://b:443/x?y", "https://b/x?y"),
            ("GET https://b:443?y", "b", "b", "GET http://b:443/?y", "https://b/?y"),
            ("GET /x", "b:8443", "b:8443", "GET http://b:8443/x", "https://b:8443/x"),
            ("GET /x", "[::1]", "[::1]:443", "GET http://[::1]:443/x", "https://[::1]/x"),
            ("OPTIONS *", "b", "b:443", "OPTIONS http://b:443", "https://b*"),
        ] {
            let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\nX-Assay-Request: 9\r\n\r\n");
            let order = of(&request, place).unwrap();
            let sent = text(order.for_proxies());
            let port = if place.contains("8443") { 8443 } else { 443 };
            let host = if place.starts_with('[') { "[::1]" } else { "b" };
            let start = format!("{sent_line} HTTP/1.1\r\nHost: {host}:{port}\r\nVia: 1.1 me-1\r\n");
            assert!(sent.starts_with(&start), "{sent}");
            assert!(sent.contains("X-Assay-Request: 3-https\r\n") && !sent.contains(": 9"), "{sent}");
            assert_eq!((text(order.for_collector()), order.about.url.as_str()), (sent, url));
        }
        for host in ["c", "b:80", "b:8443"] {
            let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(of(&request, "b:443").unwrap_err(), Refusal::Misdirected, "{host}");
        }
        let within = "GET http://b/ HTTP/1.1\r\nHost: b\r\n\r\n";
        assert_eq!(of(within, "b:443").unwrap_err(), TargetError::Scheme.into());
        let tunnel = "CONNECT c:443 HTTP/1.1\r\nHost: c\r\n\r\n";
        assert_eq!(of(tunnel, "b:443").unwrap_err(), TargetError::Tunnel.into());
        assert!(of("GET / HTTP/1.0\r\n\r\n", "b:443").is_ok(), "it needs no Host");
    }

    #[test]
    fn what_cannot_be_served_is_refused_with_a_reason() {
        let refused = |text: &str, is_forward| order(text, is_forward).unwrap_err();
        assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\n\r\n", true), Refusal::NotAbsolute);
        assert_eq!(refused("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", true), Refusal::Scheme);
        assert_eq!(refused("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", false), TargetError::Tunnel.into());
        assert_eq!(
            refused("GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 x, 1.1 me-1\r\n\r\n", false),
            Refusal::Loop
        );
        assert!(order("GET /?u=http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", false).is_ok());
    }
}
