//! Routing of requests to origins.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;

pub use assay_http::target::Target;
use assay_http::target::without_default_port;

use crate::spec::{EVERY_HOST, OriginRoute};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    Address(SocketAddr),
    /// `host:port`, whose address has to be looked up.
    Name(String),
    /// No origins are configured, and the request is not an absolute URL.
    Nowhere,
}

/// Addresses of origins. If origins are listed (reverse proxy), only their addresses are ever connected to, whatever a request
/// names and in whichever form; without any (forward proxy), an absolute URL determines the origin.
#[derive(Debug)]
pub struct RoutingTable {
    /// Origin of all requests ([`EVERY_HOST`]).
    all: Option<SocketAddr>,
    by_authority: HashMap<String, SocketAddr>,
    first: Option<OriginRoute>,
    /// Clients speak TLS, so the default port is 443.
    is_secured: bool,
}

impl RoutingTable {
    pub fn new(origins: &[OriginRoute], is_secured: bool) -> Self {
        let name =
            |origin: &OriginRoute| without_default_port(&origin.authority, is_secured).to_ascii_lowercase();
        // Of two origins with the same name, the first counts.
        let by_authority = origins.iter().rev().map(|origin| (name(origin), origin.address)).collect();
        let all = origins.iter().find(|origin| origin.authority == EVERY_HOST).map(|origin| origin.address);
        let first = origins.iter().find(|origin| origin.authority != EVERY_HOST).cloned();
        Self { all, by_authority, first, is_secured }
    }

    /// Authority of a request that names none.
    pub fn fallback_authority(&self) -> &str {
        self.first.as_ref().map_or("", |origin| &origin.authority)
    }

    /// Writes the key under which the response to a request is stored.
    pub fn write_key(&self, target: &Target<'_>, key: &mut Vec<u8>) {
        target.write_key(self.fallback_authority(), self.is_secured, key);
    }

    /// URL of a request, for other caches and the access log; `None` if its host is unknown.
    pub fn url(&self, target: &Target<'_>) -> Option<String> {
        target.url(self.fallback_authority(), self.is_secured)
    }

    /// Whether the origin of a request is known: it is listed, or none is, so that each name is its own address.
    pub fn knows(&self, target: &Target<'_>) -> bool {
        let authority = target.authority.unwrap_or(self.fallback_authority());
        self.all.is_some() || self.first.is_none() || self.by_authority.contains_key(&*self.name(authority))
    }

    pub fn route(&self, target: &Target<'_>) -> Destination {
        if let Some(address) = self.all {
            return Destination::Address(address);
        }
        let authority = target.authority.unwrap_or(self.fallback_authority());
        if let Some(first) = self.first.as_ref().filter(|first| first.authority == authority) {
            return Destination::Address(first.address);
        }
        let name = self.name(authority);
        if let Some(&address) = self.by_authority.get(&*name) {
            return Destination::Address(address);
        }
        match &self.first {
            Some(first) => Destination::Address(first.address),
            None if !target.is_absolute => Destination::Nowhere,
            None => forward(&name),
        }
    }

    /// Lookup key of an origin.
    fn name<'a>(&self, authority: &'a str) -> Cow<'a, str> {
        in_lower_case(without_default_port(authority, self.is_secured))
    }
}

// Nearly every name arrives in lower case.
fn in_lower_case(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

/// Parses an authority as an address, or else as a name to look up.
fn forward(authority: &str) -> Destination {
    let after_address = authority.rfind(']').unwrap_or(0);
    let with_port = if authority[after_address..].contains(':') {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    with_port.parse().map_or(Destination::Name(with_port), Destination::Address)
}

#[cfg(test)]
mod tests {
    use assay_http::head::RequestHead;

    use super::*;

    fn routes() -> RoutingTable {
        let origin = |authority: &str, port| OriginRoute {
            authority: authority.into(),
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        };
        RoutingTable::new(&[origin("a:8000", 1), origin("B", 2)], false)
    }

    fn routed(routes: &RoutingTable, text: &str) -> Destination {
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        routes.route(&Target::of(&head).unwrap())
    }

    fn at(address: &str) -> Destination {
        Destination::Address(address.parse().unwrap())
    }

    #[test]
    fn reverse_goes_by_name_and_to_the_first_otherwise_whatever_the_form() {
        for (request, port) in [
            ("GET / HTTP/1.1\r\nHost: A:8000\r\n\r\n", 1),
            ("GET / HTTP/1.1\r\nHost: b:80\r\n\r\n", 2),
            ("GET / HTTP/1.1\r\nHost: c\r\n\r\n", 1),
            ("GET / HTTP/1.0\r\n\r\n", 1),
            ("GET http://b/ HTTP/1.1\r\nHost: x\r\n\r\n", 2),
            ("GET http://127.0.0.9:77/ HTTP/1.1\r\nHost: b\r\n\r\n", 1),
            ("GET HTTP://[::1]/ HTTP/1.1\r\nHost: x\r\n\r\n", 1),
            ("GET http://b.:80/ HTTP/1.1\r\nHost: b\r\n\r\n", 1),
            ("GET //b/x HTTP/1.1\r\nHost: a:8000\r\n\r\n", 1),
        ] {
            assert_eq!(routed(&routes(), request), at(&format!("127.0.0.1:{port}")), "{request}");
        }
        let all = OriginRoute { authority: EVERY_HOST.into(), address: "127.0.0.1:9".parse().unwrap() };
        let routes = RoutingTable::new(&[all], false);
        assert_eq!(routed(&routes, "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n"), at("127.0.0.1:9"));
        assert_eq!(routes.fallback_authority(), "");
    }

    #[test]
    fn forward_goes_where_it_is_told() {
        let none = RoutingTable::new(&[], false);
        assert_eq!(routed(&none, "GET http://127.0.0.9:77/ HTTP/1.1\r\nHost: x\r\n\r\n"), at("127.0.0.9:77"));
        assert_eq!(routed(&none, "GET http://[::1]/ HTTP/1.1\r\nHost: x\r\n\r\n"), at("[::1]:80"));
        assert_eq!(routed(&none, "GET http://127.0.0.9:/ HTTP/1.1\r\nHost: x\r\n\r\n"), at("127.0.0.9:80"));
        assert_eq!(
            routed(&none, "GET http://C/ HTTP/1.1\r\nHost: x\r\n\r\n"),
            Destination::Name("c:80".into())
        );
        assert_eq!(routed(&none, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Destination::Nowhere);
    }
}
