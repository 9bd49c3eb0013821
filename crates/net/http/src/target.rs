//! The resource that a request names.
//!
//! A request target comes in four forms (RFC 9112, 3.2), and `Host` beside it. What is accepted here has one meaning:
//! a host is a host, a path is a path, and nothing in either can be taken for the other.

use std::net::Ipv6Addr;

use memchr::memchr;
use thiserror::Error;

use crate::head::RequestHead;

/// Request target that cannot be served. The texts go to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Neither a path nor an absolute URL.
    #[error("the request target is neither a path nor an http URL")]
    Form,
    /// A fragment, or bytes that no URL has.
    #[error("the request target has a `#` or a character that is not ASCII")]
    Character,
    /// A host with characters that no host has.
    #[error("the host is not a host name or address with an optional port")]
    Authority,
    /// Another scheme than that of the connection.
    #[error("only http URLs are served here, and https URLs over TLS")]
    Scheme,
    /// Tunnel for CONNECT.
    #[error("tunnels are not served here")]
    Tunnel,
}

impl TargetError {
    /// Status of the response.
    pub fn status(self) -> u16 {
        match self {
            TargetError::Form | TargetError::Character | TargetError::Authority => 400,
            TargetError::Scheme | TargetError::Tunnel => 501,
        }
    }
}

/// Parsed target of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'b> {
    /// `host[:port]` as sent; none: HTTP/1.0 without `Host`.
    pub authority: Option<&'b str>,
    /// Path and query, or `*`. An absolute URL may have a query and no path, in which case the `/` is missing
    /// here.
    pub path: &'b str,
    /// The target is an absolute URL, whose authority names the destination.
    pub is_absolute: bool,
}

impl<'b> Target<'b> {
    /// Of a request in clear. `Host` must be right even where an absolute URL overrules it (RFC 9112, 3.2).
    pub fn of(head: &RequestHead<'b>) -> Result<Self, TargetError> {
        Self::of_scheme(head, "http")
    }

    /// Of a request over a connection whose scheme this is: an absolute URL with another is another resource than the path alone
    /// (RFC 9112, 3.3).
    pub fn of_scheme(head: &RequestHead<'b>, scheme: &str) -> Result<Self, TargetError> {
        if head.method == "CONNECT" {
            return Err(TargetError::Tunnel);
        }
        let authority = head.host.map(authority).transpose()?;
        if head.target.starts_with('/') || (head.target == "*" && head.method == "OPTIONS") {
            return Ok(Self { authority, path: path(head.target)?, is_absolute: false });
        }
        let target = Self::of_url_with(head.target, scheme)?;
        // The server as a whole: the last proxy sends it in the form of servers (RFC 9112, 3.2.4).
        let is_whole_server = target.path.is_empty() && head.method == "OPTIONS";
        Ok(Self { path: if is_whole_server { "*" } else { target.path }, ..target })
    }

    /// Of an absolute URL.
    pub fn of_url(url: &'b str) -> Result<Self, TargetError> {
        Self::of_url_with(url, "http")
    }

    fn of_url_with(url: &'b str, wanted: &str) -> Result<Self, TargetError> {
        let (scheme, rest) = url.split_once("://").ok_or(TargetError::Form)?;
        if !scheme.eq_ignore_ascii_case(wanted) {
            return Err(if is_scheme(scheme) { TargetError::Scheme } else { TargetError::Form });
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let authority = authority(&rest.as_bytes()[..end])?;
        Ok(Self { authority: Some(authority), path: path(&rest[end..])?, is_absolute: true })
    }

    /// Writes the name under which the response is stored: authority in lower case without the default port of the connection,
    /// and path.
    pub fn write_key(&self, fallback_authority: &str, is_secured: bool, key: &mut Vec<u8>) {
        key.clear();
        let authority = without_default_port(self.authority.unwrap_or(fallback_authority), is_secured);
        key.extend_from_slice(authority.as_bytes());
        key.make_ascii_lowercase();
        self.write_path(key);
    }

    /// The absolute URL, by which other caches are queried for it; none: its host is not known. Without the default port: not
    /// every cache takes both spellings for one (Squid does not in ICP).
    pub fn url(&self, fallback_authority: &str, is_secured: bool) -> Option<String> {
        let authority = without_default_port(self.authority.unwrap_or(fallback_authority), is_secured);
        let slash = if self.path.starts_with('/') { "" } else { "/" };
        (!authority.is_empty() && self.path != "*").then(|| format!("http://{authority}{slash}{}", self.path))
    }

    /// Writes the path as in a request to an origin.
    pub fn write_path(&self, out: &mut Vec<u8>) {
        if !self.path.starts_with(['/', '*']) {
            out.push(b'/');
        }
        out.extend_from_slice(self.path.as_bytes());
    }
}

/// Without the port that is meant anyway, by http or, over a secured connection, by https (RFC 9110, 4.2), or a colon without one.
pub fn without_default_port(authority: &str, is_secured: bool) -> &str {
    let default = if is_secured { ":443" } else { ":80" };
    authority.strip_suffix(default).or_else(|| authority.strip_suffix(':')).unwrap_or(authority)
}

/// A path and query. A fragment is never sent, so a recipient could cut it off or not; what is not ASCII could be
/// decoded or not.
fn path(text: &str) -> Result<&str, TargetError> {
    let is_plain = text.is_ascii() && memchr(b'#', text.as_bytes()).is_none();
    if is_plain { Ok(text) } else { Err(TargetError::Character) }
}

/// `host [":" port]` (RFC 3986, 3.2), without a user: only what hosts, addresses and ports are made of. With a `/` in it,
/// two different resources could share a name.
pub fn authority(bytes: &[u8]) -> Result<&str, TargetError> {
    let text = std::str::from_utf8(bytes).map_err(|_| TargetError::Authority)?;
    let after_host = match text.strip_prefix('[') {
        Some(literal) => {
            let (address, rest) = literal.split_once(']').ok_or(TargetError::Authority)?;
            address.parse::<Ipv6Addr>().map_err(|_| TargetError::Authority)?;
            rest
        }
        None => {
            let end = memchr(b':', bytes).unwrap_or(bytes.len());
            if !is_name(&bytes[..end]) {
                return Err(TargetError::Authority);
            }
            &text[end..]
        }
    };
    let is_port = |digits: &str| {
        digits.is_empty()
            || (digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok())
    };
    match after_host.strip_prefix(':') {
        None if after_host.is_empty() => Ok(text),
        Some(port) if is_port(port) => Ok(text),
        _ => Err(TargetError::Authority),
    }
}

/// Bytes of host names, beside escapes (RFC 3986, 3.2.2).
static NAME_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-._~!$&'()*+,;=";
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};

/// A name of a host (or an IPv4 address), and not none.
fn is_name(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        rest = match after {
            after if NAME_BYTES[usize::from(*first)] => after,
            [high, low, after @ ..]
                if *first == b'%' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                after
            }
            _ => return false,
        };
    }
    !bytes.is_empty()
}

fn is_scheme(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphabetic()) && text.bytes().all(fits)
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
        Target::of(&head).unwrap().write_key("first", false, &mut key);
        String::from_utf8(key).unwrap()
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
    fn an_absolute_url_has_the_scheme_of_its_connection() {
        let over_tls = |text: &str| {
            let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
            Target::of_scheme(&head, "https").map(|target| target.path.to_owned())
        };
        assert_eq!(over_tls("GET HTTPS://b/x HTTP/1.1\r\nHost: a\r\n\r\n"), Ok("/x".to_owned()));
        assert_eq!(over_tls("GET /x HTTP/1.1\r\nHost: a\r\n\r\n"), Ok("/x".to_owned()));
        assert_eq!(over_tls("GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n"), Err(TargetError::Scheme));
    }

    #[test]
    fn targets_that_could_be_taken_for_others_are_refused() {
        assert_eq!(target("GET x HTTP/1.1\r\nHost: a\r\n\r\n"), Err(TargetError::Form));
        assert_eq!(target("GET * HTTP/1.1\r\nHost: a\r\n\r\n"), Err(TargetError::Form));
        assert_eq!(target("GET /c HTTP/1.1\r\nHost: a/b\r\n\r\n"), Err(TargetError::Authority));
        assert_eq!(target("GET http://u@b/ HTTP/1.1\r\nHost: a\r\n\r\n"), Err(TargetError::Authority));
        assert_eq!(target("GET http://b/ HTTP/1.1\r\nHost: a/b\r\n\r\n"), Err(TargetError::Authority));
        assert_eq!(target("GET / HTTP/1.1\r\nHost:\r\n\r\n"), Err(TargetError::Authority));
        assert_eq!(target("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"), Err(TargetError::Character));
        assert_eq!(target("GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n"), Err(TargetError::Character));
        assert_eq!(target("GET https://b/ HTTP/1.1\r\nHost: a\r\n\r\n"), Err(TargetError::Scheme));
        assert_eq!(target("CONNECT b:443 HTTP/1.1\r\nHost: b\r\n\r\n"), Err(TargetError::Tunnel));
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_an_optional_port() {
        for good in
            ["a", "A.b-c", "a:", "a:80", "127.0.0.1:1", "[::1]", "[1::2]:65535", "a%20b", "a,b", "xn--a_b"]
        {
            assert_eq!(authority(good.as_bytes()), Ok(good), "{good}");
        }
        for bad in [
            "", ":80", "a:b", "a:1:2", "a:65536", "a:+1", "a b", "a/b", "u@a", "a#b", "a?b", "a\\b", "[::1",
            "[::1]1", "[a]", "::1", "a%2", "a%zz", "\u{e9}", "a\"", "[::1%1]",
        ] {
            assert_eq!(authority(bad.as_bytes()), Err(TargetError::Authority), "{bad}");
        }
    }

    #[test]
    fn one_resource_has_one_key_however_it_is_named() {
        let keys =
            ["GET /X HTTP/1.1\r\nHost: A:80\r\n\r\n", "GET http://a/X HTTP/1.1\r\nHost: other\r\n\r\n"];
        assert_eq!(keys.map(key), ["a/X", "a/X"]);
        assert_eq!(key("GET /X HTTP/1.0\r\n\r\n"), "first/X");
        assert_eq!(key("GET /X HTTP/1.1\r\nHost: a:\r\n\r\n"), "a/X");
    }

    #[test]
    fn the_default_port_is_that_of_the_connection() {
        assert_eq!(
            ["a:80", "a:443", "a:", "[::1]:80"].map(|a| without_default_port(a, false)),
            ["a", "a:443", "a", "[::1]"]
        );
        assert_eq!(
            ["a:80", "a:443", "a:", "[::443]"].map(|a| without_default_port(a, true)),
            ["a:80", "a", "a", "[::443]"]
        );
    }

    #[test]
    fn urls_for_other_caches_leave_out_the_default_port() {
        let url = |authority, path| Target { authority, path, is_absolute: false }.url("first:80", false);
        assert_eq!(url(Some("a:80"), "/x").as_deref(), Some("http://a/x"));
        assert_eq!(url(Some("a:8080"), "?q").as_deref(), Some("http://a:8080/?q"));
        assert_eq!(url(None, "/").as_deref(), Some("http://first/"));
        assert_eq!(url(Some("a"), "*"), None);
    }
}
