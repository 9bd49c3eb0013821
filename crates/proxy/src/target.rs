//! Which origin has what a request names?

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;

pub use assay_http::target::Target;
use assay_http::target::without_default_port;

use crate::spec::{EVERY_HOST, OriginRoute};

/// Where a request goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// To this address.
    Address(SocketAddr),
    /// To `host:port`, whose address has to be looked up.
    Name(String),
    /// Nowhere: no origins are configured, and the request is not an absolute URL.
    Nowhere,
}

/// Which origin is where.
#[derive(Debug)]
pub struct Routes {
    /// Everything goes there, whatever it names.
    all: Option<SocketAddr>,
    by_authority: HashMap<String, SocketAddr>,
    first: Option<OriginRoute>,
}

impl Routes {
    /// From what the proxy was told.
    pub fn new(origins: &[OriginRoute]) -> Self {
        let name = |origin: &OriginRoute| without_default_port(&origin.authority).to_ascii_lowercase();
        // The first of two that have the same name is the one that counts.
        let by_authority = origins.iter().rev().map(|origin| (name(origin), origin.address)).collect();
        let all = origins.iter().find(|origin| origin.authority == EVERY_HOST).map(|origin| origin.address);
        let first = origins.iter().find(|origin| origin.authority != EVERY_HOST).cloned();
        Self { all, by_authority, first }
    }

    /// What stands for the host of a request that names none.
    pub fn fallback_authority(&self) -> &str {
        self.first.as_ref().map_or("", |origin| &origin.authority)
    }

    /// Whether the host of a request is one that was named.
    pub fn knows(&self, target: &Target<'_>) -> bool {
        let authority = target.authority.unwrap_or(self.fallback_authority());
        self.all.is_some()
            || self.by_authority.contains_key(&without_default_port(authority).to_ascii_lowercase())
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
        let name = in_lower_case(without_default_port(authority));
        if let Some(&address) = self.by_authority.get(&*name) {
            return Route::Address(address);
        }
        match &self.first {
            Some(first) if !target.is_absolute => Route::Address(first.address),
            None if !target.is_absolute => Route::Nowhere,
            _ => forward(&name),
        }
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
        Routes::new(&[origin("a:8000", 1), origin("B", 2)])
    }

    fn port(text: &str) -> Option<u16> {
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        match routes().route(&Target::of(&head).unwrap()) {
            Route::Address(address) => Some(address.port()),
            _ => None,
        }
    }

    #[test]
    fn reverse_goes_by_host_and_to_the_first_otherwise_forward_goes_where_it_is_told() {
        assert_eq!(port("GET / HTTP/1.1\r\nHost: A:8000\r\n\r\n"), Some(1));
        assert_eq!(port("GET / HTTP/1.1\r\nHost: b:80\r\n\r\n"), Some(2));
        assert_eq!(port("GET / HTTP/1.1\r\nHost: c\r\n\r\n"), Some(1));
        assert_eq!(port("GET / HTTP/1.0\r\n\r\n"), Some(1));
        assert_eq!(port("GET http://b/ HTTP/1.1\r\nHost: x\r\n\r\n"), Some(2));
        assert_eq!(port("GET http://127.0.0.9:77/ HTTP/1.1\r\nHost: x\r\n\r\n"), Some(77));
        assert_eq!(port("GET http://[::1]/ HTTP/1.1\r\nHost: x\r\n\r\n"), Some(80));
        assert_eq!(forward("c"), Route::Name("c:80".into()));
        let all = OriginRoute { authority: EVERY_HOST.into(), address: "127.0.0.1:9".parse().unwrap() };
        let routes = Routes::new(&[all]);
        let target = Target { authority: Some("a"), path: "/", is_absolute: true };
        assert_eq!(routes.route(&target), Route::Address("127.0.0.1:9".parse().unwrap()));
        assert_eq!(routes.fallback_authority(), "");
        let none = Routes::new(&[]);
        let target = Target { authority: Some("a"), path: "/", is_absolute: false };
        assert_eq!(none.route(&target), Route::Nowhere);
    }
}
