//! Which resource does a request name, and which origin has it?

use std::collections::HashMap;
use std::net::SocketAddr;

use assay_http::head::RequestHead;
use thiserror::Error;

use crate::spec::OriginRoute;

/// Why a request's target cannot be served. The texts go to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Neither a path nor an absolute URL.
    #[error("the request target is neither a path nor an http URL")]
    Form,
    /// A host with characters that no host has.
    #[error("the host is not a host name or address with an optional port")]
    Authority,
    /// https and others.
    #[error("only http URLs are served here")]
    Scheme,
    /// CONNECT.
    #[error("tunnels are not served here")]
    Tunnel,
}

impl TargetError {
    /// The status that says so.
    pub fn status(self) -> u16 {
        match self {
            TargetError::Form | TargetError::Authority => 400,
            TargetError::Scheme | TargetError::Tunnel => 501,
        }
    }
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'b> {
    /// `host[:port]` as sent; none: HTTP/1.0 without `Host`.
    pub authority: Option<&'b str>,
    /// Path and query, or `*`. An absolute URL may have a query and no path, in which case the `/` is missing
    /// here.
    pub path: &'b str,
    /// It came as an absolute URL, so its authority says where to go.
    pub is_absolute: bool,
}

impl<'b> Target<'b> {
    /// Of a request.
    pub fn of(head: &RequestHead<'b>) -> Result<Self, TargetError> {
        if head.method == "CONNECT" {
            return Err(TargetError::Tunnel);
        }
        if head.target.starts_with('/') || (head.target == "*" && head.method == "OPTIONS") {
            let authority = head.host.map(authority).transpose()?;
            return Ok(Self { authority, path: head.target, is_absolute: false });
        }
        Self::of_url(head.target)
    }

    /// Of an absolute URL.
    pub fn of_url(url: &'b str) -> Result<Self, TargetError> {
        let (scheme, rest) = url.split_once("://").ok_or(TargetError::Form)?;
        if !scheme.eq_ignore_ascii_case("http") {
            return Err(TargetError::Scheme);
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let authority = authority(&rest.as_bytes()[..end])?;
        Ok(Self { authority: Some(authority), path: &rest[end..], is_absolute: true })
    }

    /// Writes the name under which the answer is stored: authority in lower case without the default port,
    /// and path.
    pub fn write_key(&self, fallback_authority: &str, key: &mut Vec<u8>) {
        key.clear();
        let authority = without_default_port(self.authority.unwrap_or(fallback_authority));
        key.extend_from_slice(authority.as_bytes());
        key.make_ascii_lowercase();
        self.write_path(key);
    }

    /// The absolute URL, by which other caches are asked for it; none: nobody knows its host. Without the default port: not
    /// every cache takes both spellings for one (Squid does not in ICP).
    pub fn url(&self, fallback_authority: &str) -> Option<String> {
        let authority = without_default_port(self.authority.unwrap_or(fallback_authority));
        let slash = if self.path.starts_with('/') { "" } else { "/" };
        (!authority.is_empty() && self.path != "*").then(|| format!("http://{authority}{slash}{}", self.path))
    }

    /// Writes the path as an origin is asked for it.
    pub fn write_path(&self, out: &mut Vec<u8>) {
        if !self.path.starts_with(['/', '*']) {
            out.push(b'/');
        }
        out.extend_from_slice(self.path.as_bytes());
    }
}

/// Only what hosts, addresses and ports are made of: with a `/` in it, two different resources could share a
/// key.
fn authority(bytes: &[u8]) -> Result<&str, TargetError> {
    let fits = |b: &u8| b.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:[]".contains(b);
    if bytes.is_empty() || !bytes.iter().all(fits) {
        return Err(TargetError::Authority);
    }
    std::str::from_utf8(bytes).map_err(|_| TargetError::Authority)
}

fn without_default_port(authority: &str) -> &str {
    authority.strip_suffix(":80").unwrap_or(authority)
}

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
    by_authority: HashMap<String, SocketAddr>,
    first: Option<OriginRoute>,
}

impl Routes {
    /// From what the proxy was told.
    pub fn new(origins: &[OriginRoute]) -> Self {
        let name = |origin: &OriginRoute| without_default_port(&origin.authority).to_ascii_lowercase();
        // The first of two that have the same name is the one that counts.
        let by_authority = origins.iter().rev().map(|origin| (name(origin), origin.address)).collect();
        Self { by_authority, first: origins.first().cloned() }
    }

    /// What stands for the host of a request that names none.
    pub fn fallback_authority(&self) -> &str {
        self.first.as_ref().map_or("", |origin| &origin.authority)
    }

    /// Where this request goes.
    pub fn route(&self, target: &Target<'_>) -> Route {
        let authority = target.authority.unwrap_or(self.fallback_authority());
        let name = without_default_port(authority).to_ascii_lowercase();
        if let Some(&address) = self.by_authority.get(&name) {
            return Route::Address(address);
        }
        match &self.first {
            Some(first) if !target.is_absolute => Route::Address(first.address),
            None if !target.is_absolute => Route::Nowhere,
            _ => forward(&name),
        }
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
    use super::*;

    fn target(text: &str) -> Result<(Option<String>, String, bool), TargetError> {
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        let target = Target::of(&head)?;
        let mut path = Vec::new();
        target.write_path(&mut path);
        let path = String::from_utf8(path).unwrap();
        Ok((target.authority.map(str::to_owned), path, target.is_absolute))
    }

    fn key(text: &str) -> String {
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        let mut key = Vec::new();
        Target::of(&head).unwrap().write_key("first", &mut key);
        String::from_utf8(key).unwrap()
    }

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
    fn paths_and_absolute_urls_are_understood() {
        let ok = |authority: &str, path: &str, absolute| Ok((Some(authority.into()), path.into(), absolute));
        assert_eq!(target("GET /x?y HTTP/1.1\r\nHost: a:1\r\n\r\n"), ok("a:1", "/x?y", false));
        assert_eq!(target("GET HTTP://b/x HTTP/1.1\r\nHost: a\r\n\r\n"), ok("b", "/x", true));
        assert_eq!(target("GET http://b?q HTTP/1.1\r\nHost: a\r\n\r\n"), ok("b", "/?q", true));
        assert_eq!(target("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"), ok("a", "*", false));
        assert_eq!(target("GET / HTTP/1.0\r\n\r\n"), Ok((None, "/".into(), false)));
    }

    #[test]
    fn targets_that_could_be_taken_for_others_are_refused() {
        assert_eq!(target("GET x HTTP/1.1\r\nHost: a\r\n\r\n"), Err(TargetError::Form));
        assert_eq!(target("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), Err(TargetError::Form));
        assert_eq!(target("GET /c HTTP/1.1\r\nHost: a/b\r\n\r\n"), Err(TargetError::Authority));
        assert_eq!(target("GET http://u@b/ HTTP/1.1\r\nHost: a\r\n\r\n"), Err(TargetError::Authority));
        assert_eq!(target("GET / HTTP/1.1\r\nHost:\r\n\r\n"), Err(TargetError::Authority));
        assert_eq!(target("GET https://b/ HTTP/1.1\r\nHost: a\r\n\r\n"), Err(TargetError::Scheme));
        assert_eq!(target("CONNECT b:443 HTTP/1.1\r\nHost: b\r\n\r\n"), Err(TargetError::Tunnel));
    }

    #[test]
    fn one_resource_has_one_key_however_it_is_named() {
        let keys =
            ["GET /X HTTP/1.1\r\nHost: A:80\r\n\r\n", "GET http://a/X HTTP/1.1\r\nHost: other\r\n\r\n"];
        assert_eq!(keys.map(key), ["a/X", "a/X"]);
        assert_eq!(key("GET /X HTTP/1.0\r\n\r\n"), "first/X");
    }

    #[test]
    fn other_caches_are_asked_without_the_default_port() {
        let url = |authority, path| Target { authority, path, is_absolute: false }.url("first:80");
        assert_eq!(url(Some("a:80"), "/x").as_deref(), Some("http://a/x"));
        assert_eq!(url(Some("a:8080"), "?q").as_deref(), Some("http://a:8080/?q"));
        assert_eq!(url(None, "/").as_deref(), Some("http://first/"));
        assert_eq!(url(Some("a"), "*"), None);
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
        let none = Routes::new(&[]);
        let target = Target { authority: Some("a"), path: "/", is_absolute: false };
        assert_eq!(none.route(&target), Route::Nowhere);
    }
}
