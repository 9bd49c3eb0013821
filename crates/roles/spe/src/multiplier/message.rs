//! Requests as they are sent to the Collector and to the proxies.
//!
//! The request line, the fields and the body are forwarded as received; `Via` and the request's number ([`number`]) are added,
//! and hop-by-hop fields are removed. In front of one origin (reverse), a request with an absolute URL is forwarded with a path
//! and the host in `Host`, as in requests to servers: no proxy can take it for a request to another server. A request from an
//! intercepted tunnel is forwarded as one for an `http` URL with the port of the tunnel; its number carries the scheme `https`.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use assay_http::field::Field;
use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, Version};
use assay_http::target::{self, Target, TargetError};
use assay_net::fields::{self, ReceivedProtocol};

use super::shared_state::HeldBody;
use super::tunnel_target::TunnelTarget;
use crate::number;

/// Properties of a request that are logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestSummary {
    /// From 0, in order of arrival.
    pub number: u64,
    pub client: IpAddr,
    pub method: String,
    pub version: Version,
    pub url: String,
    /// The client validates a stored response.
    pub is_validation: bool,
}

/// Reasons for refusing a request. The texts go to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MultiplierRefusal {
    #[error("this is a forward proxy: a request must name the whole URL")]
    NotAbsolute,
    #[error("only http URLs are served here; others go through CONNECT")]
    Scheme,
    #[error("a request for a tunnel has no body")]
    TunnelWithBody,
    #[error(
        "the request has been here before: a proxy under test leads back to the Multiplier instead of its listener"
    )]
    Loop,
    /// Through an intercepted tunnel, a request to another server than that of the tunnel.
    #[error("this connection is a tunnel to another host; open one to that host")]
    Misdirected,
    #[error(transparent)]
    Target(#[from] TargetError),
}

impl MultiplierRefusal {
    pub fn status(self) -> u16 {
        match self {
            MultiplierRefusal::NotAbsolute | MultiplierRefusal::TunnelWithBody => 400,
            MultiplierRefusal::Scheme => 501,
            MultiplierRefusal::Misdirected => 421,
            MultiplierRefusal::Target(error) => error.status(),
            MultiplierRefusal::Loop => 508,
        }
    }
}

/// Kind of server that the client takes the Multiplier for.
#[derive(Debug, Clone, Copy)]
pub enum ServerRole<'r> {
    Proxy,
    /// The origin, over a connection of this scheme.
    Server(&'r str),
    /// The server that its tunnel leads to.
    Tunnel(&'r TunnelTarget),
}

/// A received request, as far as it is forwarded.
#[derive(Debug)]
pub struct ReceivedRequest {
    pub summary: Arc<RequestSummary>,
    /// Head without hop-by-hop fields and without the empty line at its end.
    head: Vec<u8>,
    pub body: BodyFraming,
    pub expects_continue: bool,
    /// The client's connection may persist.
    pub persists: bool,
    /// Requested by the client with `Proxy-Connection`.
    pub old_style: bool,
}

impl ReceivedRequest {
    /// Reads a request; `name` is ours in `Via`.
    pub fn new(
        head: &RequestHead<'_>,
        received: ReceivedProtocol,
        number: u64,
        client: IpAddr,
        role: ServerRole<'_>,
        name: &str,
    ) -> Result<Self, MultiplierRefusal> {
        let forwarded_target = match role {
            ServerRole::Server(scheme) => ForwardedTarget::for_server(head, scheme)?,
            ServerRole::Proxy => ForwardedTarget::for_proxy(head)?,
            ServerRole::Tunnel(tunnel_target) => ForwardedTarget::for_intercepted(head, tunnel_target)?,
        };
        let is_https = matches!(role, ServerRole::Tunnel(_));
        if fields::via_contains(head.headers(), name) == Some(true) {
            return Err(MultiplierRefusal::Loop);
        }
        let conditions = ["if-modified-since", "if-none-match", "if-unmodified-since", "if-match"];
        let summary = RequestSummary {
            number,
            client,
            method: head.method.to_owned(),
            version: head.facts.version,
            url: forwarded_target.url,
            is_validation: head.headers().any(|field| conditions.iter().any(|name| field.is(name))),
        };
        let old_style = head.facts.version == Version::Http10
            && !head.facts.keep_alive
            && head.header("proxy-connection").is_some_and(|value| value.eq_ignore_ascii_case(b"keep-alive"));
        Ok(Self {
            summary: Arc::new(summary),
            head: write_head(
                head,
                received,
                &forwarded_target.target,
                forwarded_target.host,
                name,
                number,
                is_https,
            ),
            body: head.body(),
            expects_continue: head.expect_continue,
            persists: head.persists() || old_style,
            old_style,
        })
    }

    pub fn has_body(&self) -> bool {
        !matches!(self.body, BodyFraming::None | BodyFraming::Length(0))
    }

    /// Head for the Collector, over a persistent connection whatever the client does with its own.
    pub fn for_collector(&self) -> Vec<u8> {
        let mut head = self.head.clone();
        if self.summary.version == Version::Http10 {
            head.extend_from_slice(b"Connection: keep-alive\r\n");
        }
        if self.expects_continue {
            head.extend_from_slice(b"Expect: 100-continue\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    /// Head for the proxies; whether the connection persists is up to the client.
    pub fn for_proxies(&self) -> Vec<u8> {
        let mut head = self.head.clone();
        head.extend_from_slice(match (self.summary.version, self.persists) {
            (Version::Http10, true) => &b"Connection: keep-alive\r\n"[..],
            (Version::Http11, false) => b"Connection: close\r\n",
            _ => b"",
        });
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// A request as it is sent to the proxies.
#[derive(Debug)]
pub struct ProxyMessage {
    pub summary: Arc<RequestSummary>,
    pub head: Vec<u8>,
    /// Body with its chunked coding.
    pub body: Vec<u8>,
    /// The connection may persist.
    pub persists: bool,
    /// Memory of the body, held only to be released with it.
    pub _held: Option<HeldBody>,
}

fn write_head(
    head: &RequestHead<'_>,
    received: ReceivedProtocol,
    target: &str,
    host: Option<&str>,
    name: &str,
    number: u64,
    is_https: bool,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    for part in [head.method, " ", target, " ", version_name(head.facts.version), "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    if let Some(host) = host {
        fields::append(&mut out, b"Host", host.as_bytes());
    }
    let is_own = |field: &Field<'_>| {
        ["content-length", "expect", number::REQUEST].iter().any(|name| field.is(name))
            || field.is("host")
            || (head.max_forwards().is_some() && field.is("max-forwards"))
    };
    fields::append_end_to_end(&mut out, head.headers(), received, name, is_own);
    number::append(&mut out, number, is_https);
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

pub fn version_name(version: Version) -> &'static str {
    match version {
        Version::Http10 => "HTTP/1.0",
        Version::Http11 => "HTTP/1.1",
    }
}

/// Target of a request, and its forwarded form.
struct ForwardedTarget<'b> {
    /// Absolute URL; for a tunnel, its target.
    url: String,
    target: Cow<'b, str>,
    /// Value of `Host`; `None`: no field, in HTTP/1.0.
    host: Option<&'b str>,
}

impl<'b> ForwardedTarget<'b> {
    /// Target of a request to a forward proxy: an absolute URL, or a tunnel. The URL's host takes precedence over `Host` (RFC
    /// 9112, 3.2.2).
    fn for_proxy(head: &RequestHead<'b>) -> Result<Self, MultiplierRefusal> {
        if head.method == "CONNECT" {
            return Self::for_tunnel(head);
        }
        let target = Target::of(head).map_err(|error| match error {
            TargetError::Scheme => MultiplierRefusal::Scheme,
            other => MultiplierRefusal::Target(other),
        })?;
        if !target.is_absolute {
            return Err(MultiplierRefusal::NotAbsolute);
        }
        Ok(Self { url: head.target.to_owned(), target: head.target.into(), host: target.authority })
    }

    /// Target of a CONNECT. Bytes after its head belong to the tunnel, so it must not announce a body (RFC 9110, 9.3.6).
    fn for_tunnel(head: &RequestHead<'b>) -> Result<Self, MultiplierRefusal> {
        if !matches!(head.body(), BodyFraming::None) {
            return Err(MultiplierRefusal::TunnelWithBody);
        }
        head.host.map(target::authority).transpose()?;
        let tunnel_target = target::authority(head.target.as_bytes())?;
        Ok(Self { url: tunnel_target.to_owned(), target: tunnel_target.into(), host: Some(tunnel_target) })
    }

    /// Target of a request inside an intercepted tunnel. The certificate is for that host alone, so a request for another is
    /// misdirected (RFC 9110, 7.4).
    fn for_intercepted(
        head: &RequestHead<'b>,
        tunnel_target: &'b TunnelTarget,
    ) -> Result<Self, MultiplierRefusal> {
        let target = Target::of_scheme(head, "https")?;
        if target.authority.is_some_and(|authority| !tunnel_target.matches(authority)) {
            return Err(MultiplierRefusal::Misdirected);
        }
        let mut path = Vec::with_capacity(target.path.len() + 1);
        target.write_path(&mut path);
        let path = String::from_utf8_lossy(&path);
        let authority = tunnel_target.authority();
        // For a proxy, a request for the server as a whole has no path (RFC 9112, 3.2.4).
        let proxy_path = if path == "*" { "" } else { &*path };
        Ok(Self {
            url: format!("https://{}{path}", tunnel_target.url_authority()),
            target: format!("http://{authority}{proxy_path}").into(),
            host: Some(authority),
        })
    }

    /// Target of a request to an origin, over a connection of this scheme.
    fn for_server(head: &RequestHead<'b>, scheme: &str) -> Result<Self, MultiplierRefusal> {
        let target = Target::of_scheme(head, scheme)?;
        let mut path = Vec::with_capacity(target.path.len() + 1);
        target.write_path(&mut path);
        let path = String::from_utf8_lossy(&path).into_owned();
        let url = match (target.is_absolute, target.authority) {
            (true, _) => head.target.to_owned(),
            (false, host) => format!("http://{}{path}", host.unwrap_or("-")),
        };
        Ok(Self { url, target: path.into(), host: target.authority })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(text: &str, is_forward: bool) -> Result<ReceivedRequest, MultiplierRefusal> {
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        received_in(head.facts.version.into(), &head, is_forward)
    }

    fn received_in(
        received: ReceivedProtocol,
        head: &RequestHead<'_>,
        is_forward: bool,
    ) -> Result<ReceivedRequest, MultiplierRefusal> {
        let role = if is_forward { ServerRole::Proxy } else { ServerRole::Server("http") };
        ReceivedRequest::new(head, received, 3, IpAddr::from([192, 0, 2, 1]), role, "me-1")
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
        assert_eq!(order.summary.url, "http://a/~x?y");
        assert!(order.persists && order.old_style && !order.summary.is_validation);
    }

    #[test]
    fn via_names_http_2_where_the_request_was_received_in_it() {
        let (head, _) = RequestHead::parse(b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n").unwrap().unwrap();
        let order = received_in(ReceivedProtocol::Http2, &head, false).unwrap();
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
            assert!(matches!(order(&text, false), Err(MultiplierRefusal::Target(_))), "{host}");
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
        assert_eq!((order.summary.url.as_str(), order.summary.is_validation), ("http://a:1/x", true));
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
        for (target, load, url) in [
            ("http://b/x?y", "GET /x?y HTTP/1.1\r\nHost: b\r\n", "http://b/x?y"),
            ("HTTP://b.:81", "GET / HTTP/1.1\r\nHost: b.:81\r\n", "HTTP://b.:81"),
            ("http://[::1]?q", "GET /?q HTTP/1.1\r\nHost: [::1]\r\n", "http://[::1]?q"),
            ("//b/x", "GET //b/x HTTP/1.1\r\nHost: a\r\n", "http://a//b/x"),
        ] {
            let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nX-Assay-Request: 9\r\n\r\n");
            let order = order(&request, false).unwrap();
            let sent = text(order.for_proxies());
            assert!(sent.starts_with(load), "{sent}");
            assert_eq!(sent.matches("Host: ").count(), 1);
            assert!(
                sent.contains("X-Assay-Request: 3\r\n") && !sent.contains("X-Assay-Request: 9"),
                "{sent}"
            );
            assert_eq!((text(order.for_collector()), order.summary.url.as_str()), (sent, url));
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
        let by = |scheme| {
            ReceivedRequest::new(
                &head,
                head.facts.version.into(),
                3,
                IpAddr::from([192, 0, 2, 1]),
                ServerRole::Server(scheme),
                "me-1",
            )
        };
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
            assert!(matches!(order(&request, true), Err(MultiplierRefusal::Target(_))), "{target}");
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
            assert!(matches!(connect(target, ""), Err(MultiplierRefusal::Target(_))), "{target}");
        }
        for fields in ["Content-Length: 3\r\n", "Content-Length: 0\r\n", "Transfer-Encoding: chunked\r\n"] {
            assert_eq!(connect("b:443", fields).unwrap_err(), MultiplierRefusal::TunnelWithBody, "{fields}");
        }
    }

    #[test]
    fn a_request_from_an_opened_tunnel_goes_on_for_its_host_and_no_other() {
        let of = |text: &str, tunnel_target: &str| {
            let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
            ReceivedRequest::new(
                &head,
                head.facts.version.into(),
                3,
                IpAddr::from([192, 0, 2, 1]),
                ServerRole::Tunnel(&TunnelTarget::new(tunnel_target)),
                "me-1",
            )
        };
        for (line, host, tunnel_target, sent_line, url) in [
            ("GET /x?y", "B", "b:443", "GET http://b:443/x?y", "https://b/x?y"),
            ("GET https://b:443?y", "b", "b", "GET http://b:443/?y", "https://b/?y"),
            ("GET /x", "b:8443", "b:8443", "GET http://b:8443/x", "https://b:8443/x"),
            ("GET /x", "[::1]", "[::1]:443", "GET http://[::1]:443/x", "https://[::1]/x"),
            ("OPTIONS *", "b", "b:443", "OPTIONS http://b:443", "https://b*"),
        ] {
            let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\nX-Assay-Request: 9\r\n\r\n");
            let order = of(&request, tunnel_target).unwrap();
            let sent = text(order.for_proxies());
            let port = if tunnel_target.contains("8443") { 8443 } else { 443 };
            let host = if tunnel_target.starts_with('[') { "[::1]" } else { "b" };
            let start = format!("{sent_line} HTTP/1.1\r\nHost: {host}:{port}\r\nVia: 1.1 me-1\r\n");
            assert!(sent.starts_with(&start), "{sent}");
            assert!(sent.contains("X-Assay-Request: 3-https\r\n") && !sent.contains(": 9"), "{sent}");
            assert_eq!((text(order.for_collector()), order.summary.url.as_str()), (sent, url));
        }
        for host in ["c", "b:80", "b:8443"] {
            let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(of(&request, "b:443").unwrap_err(), MultiplierRefusal::Misdirected, "{host}");
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
        assert_eq!(refused("GET / HTTP/1.1\r\nHost: a\r\n\r\n", true), MultiplierRefusal::NotAbsolute);
        assert_eq!(refused("GET https://a/ HTTP/1.1\r\nHost: a\r\n\r\n", true), MultiplierRefusal::Scheme);
        assert_eq!(refused("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", false), TargetError::Tunnel.into());
        assert_eq!(
            refused("GET / HTTP/1.1\r\nHost: a\r\nVia: 1.1 x, 1.1 me-1\r\n\r\n", false),
            MultiplierRefusal::Loop
        );
        assert!(order("GET /?u=http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", false).is_ok());
    }
}
