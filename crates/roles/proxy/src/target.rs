//! The origin that has what a request names.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;

pub use assay_http::target::Target;
use assay_http::target::without_default_port;

use crate::spec::{EVERY_HOST, OriginRoute};

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    Address(SocketAddr),
    /// To `host:port`, whose address has to be looked up.
    Name(String),
    /// Nowhere: no origins are configured, and the request is not an absolute URL.
    Nowhere,
}

/// Which origin is where. Where origins are listed (reverse), nothing but their addresses is ever connected to, whatever a
/// request names and in which form; without any (forward), a whole URL says where to go.
#[derive(Debug)]
pub struct Routes {
    /// Everything goes there, whatever it names.
    all: Option<SocketAddr>,
    by_authority: HashMap<String, SocketAddr>,
    first: Option<OriginRoute>,
    /// Clients speak TLS: the port that a name without one means is another.
    is_secured: bool,
}

impl Routes {
    /// From what the proxy was told.
    pub fn new(origins: &[OriginRoute], is_secured: bool) -> Self {
        let name =
            |origin: &OriginRoute| without_default_port(&origin.authority, is_secured).to_ascii_lowercase();
        // The first of two that have the same name is the one that counts.
        let by_authority = origins.iter().rev().map(|origin| (name(origin), origin.address)).collect();
        let all = origins.iter().find(|origin| origin.authority == EVERY_HOST).map(|origin| origin.address);
        let first = origins.iter().find(|origin| origin.authority != EVERY_HOST).cloned();
        Self { all, by_authority, first, is_secured }
    }

    /// What stands for the host of a request that names none.
    pub fn fallback_authority(&self) -> &str {
        self.first.as_ref().map_or("", |origin| &origin.authority)
    }

    /// Writes the name under which the response to a request is stored.
    pub fn write_key(&self, target: &Target<'_>, key: &mut Vec<u8>) {
        target.write_key(self.fallback_authority(), self.is_secured, key);
    }

    /// The URL that a request names, for other caches and the access log; none: its host is not known.
    pub fn url(&self, target: &Target<'_>) -> Option<String> {
        target.url(self.fallback_authority(), self.is_secured)
    }

    /// Whether the host of a request has a place: it was listed, or none was, so that each is where it says.
    pub fn knows(&self, target: &Target<'_>) -> bool {
        let authority = target.authority.unwrap_or(self.fallback_authority());
        self.all.is_some() || self.first.is_none() || self.by_authority.contains_key(&*self.name(authority))
    }

    /// Where this request goes.
    pub fn route(&self, target: &Target<'_>) -> Route {
        if let Some(address) = self.all {
            return Route::Address(address);
        }
        let authority = target.authority.unwrap_or(self.fallback_authority());
        if let Some(first) = self.first.as_ref().filter(|first| first.authority == authority) {
            return Route::Address(first.address);
        }
        let name = self.name(authority);
        if let Some(&address) = self.by_authority.get(&*name) {
            return Route::Address(address);
        }
        match &self.first {
            Some(first) => Route::Address(first.address),
            None if !target.is_absolute => Route::Nowhere,
            None => forward(&name),
        }
    }

    /// By which an origin is found.
    fn name<'a>(&self, authority: &'a str) -> Cow<'a, str> {
        in_lower_case(without_default_port(authority, self.is_secured))
    }
}

/// Nearly every name comes in lower case.
fn in_lower_case(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

/// The address that an authority is, or the name to look up.
fn forward(authority: &str) -> Route {
    let after_address = authority.rfind(']').unwrap_or(0);
    let with_port = if authority[after_address..].contains(':') {
        authority.to_owned()
    } else {
        format!("{authority}:80")
    };
    with_port.parse().map_or(Route::Name(with_port), Route::Address)
}

#[cfg(test)]
mod tests {
    use assay_http::head::RequestHead;

    use super::*;

    fn routes() -> Routes {
        let origin = |authority: &str, port| OriginRoute {
            authority: authority.into(),
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        };
        Routes::new(&[origin("a:8000", 1), origin("B", 2)], false)
    }

    fn routed(routes: &Routes, text: &str) -> Route {
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        routes.route(&Target::of(&head).unwrap())
    }

    fn at(address: &str) -> Route {
        Route::Address(address.parse().unwrap())
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
        let routes = Routes::new(&[all], false);
        assert_eq!(routed(&routes, "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n"), at("127.0.0.1:9"));
        assert_eq!(routes.fallback_authority(), "");
    }

    #[test]
    fn forward_goes_where_it_is_told() {
        let none = Routes::new(&[], false);
        assert_eq!(routed(&none, "GET http://127.0.0.9:77/ HTTP/1.1\r\nHost: x\r\n\r\n"), at("127.0.0.9:77"));
        assert_eq!(routed(&none, "GET http://[::1]/ HTTP/1.1\r\nHost: x\r\n\r\n"), at("[::1]:80"));
        assert_eq!(routed(&none, "GET http://127.0.0.9:/ HTTP/1.1\r\nHost: x\r\n\r\n"), at("127.0.0.9:80"));
        assert_eq!(routed(&none, "GET http://C/ HTTP/1.1\r\nHost: x\r\n\r\n"), Route::Name("c:80".into()));
        assert_eq!(routed(&none, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"), Route::Nowhere);
    }
}
