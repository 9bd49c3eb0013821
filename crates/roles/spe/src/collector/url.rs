//! Normalisation of URLs (RFC 3986, 6.2.2).
//!
//! Pure: text in, text out. Davison's thesis lost a result to `~`, which one proxy writes as `%7E`.

use assay_http::head::RequestHead;
use assay_http::target::{self, TargetError};
use thiserror::Error;

/// Reasons for which a request's target cannot be fetched. The texts go to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FetchTargetError {
    #[error(transparent)]
    Target(TargetError),
    /// https and others.
    #[error("only http URLs are fetched here; others go through a tunnel")]
    Scheme,
    #[error("the request names no host, and there is none for such requests")]
    NoHost,
}

impl From<TargetError> for FetchTargetError {
    fn from(error: TargetError) -> Self {
        match error {
            TargetError::Scheme => FetchTargetError::Scheme,
            other => FetchTargetError::Target(other),
        }
    }
}

impl FetchTargetError {
    pub fn status(self) -> u16 {
        match self {
            FetchTargetError::Target(error) => error.status(),
            FetchTargetError::NoHost => 400,
            FetchTargetError::Scheme => 501,
        }
    }
}

/// Target of a request, as sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchTarget<'b> {
    /// `host[:port]`.
    pub authority: &'b str,
    /// Path and query, or `*`; an absolute URL may have no path.
    pub path: &'b str,
    /// The scheme is https.
    pub is_secured: bool,
}

impl<'b> FetchTarget<'b> {
    /// Reads the target of a request other than CONNECT; `fallback` is the authority of a request that names none.
    pub fn from_head(head: &RequestHead<'b>, fallback: Option<&'b str>) -> Result<Self, FetchTargetError> {
        let target = target::Target::of(head)?;
        let authority = target.authority.or(fallback).ok_or(FetchTargetError::NoHost)?;
        Ok(Self { authority, path: target.path, is_secured: false })
    }

    /// Appends the path for a request to an origin.
    pub fn write_path(&self, out: &mut Vec<u8>) {
        if !self.path.starts_with(['/', '*']) {
            out.push(b'/');
        }
        out.extend_from_slice(self.path.as_bytes());
    }

    /// Scheme and default port.
    fn scheme(&self) -> (&'static str, &'static str) {
        if self.is_secured { ("https://", "443") } else { ("http://", "80") }
    }

    /// Value of `Host` for the origin. Proxies get the port of https in it, since they take the scheme for http.
    pub fn host(&self) -> &'b str {
        let without = self.authority.strip_suffix(":443").filter(|_| self.is_secured);
        without.unwrap_or(self.authority)
    }

    pub fn url(&self) -> String {
        [self.scheme().0, self.host(), self.path].concat()
    }

    /// Appends the authority in lower case, without the default port.
    pub fn write_server(&self, out: &mut Vec<u8>) {
        write_authority(self.authority, self.scheme().1, out);
    }

    /// Appends the normalised URL, common to all spellings of one resource.
    pub fn write_normalised(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.scheme().0.as_bytes());
        self.write_server(out);
        write_path_and_query(self.path, out);
    }
}

/// Appends host and port in lower case, without the default port.
pub fn write_authority(authority: &str, default_port: &str, out: &mut Vec<u8>) {
    let begin = out.len();
    let (host, port) = split_port(authority);
    write_decoded(host.as_bytes(), out);
    out[begin..].make_ascii_lowercase();
    if !port.is_empty() && port.trim_start_matches('0') != default_port {
        out.push(b':');
        out.extend_from_slice(port.as_bytes());
    }
}

/// Host and port; the port is empty if there is none.
pub fn split_port(authority: &str) -> (&str, &str) {
    let after_address = authority.rfind(']').unwrap_or(0);
    match authority[after_address..].rfind(':') {
        Some(colon) => (&authority[..after_address + colon], &authority[after_address + colon + 1..]),
        None => (authority, ""),
    }
}

fn write_path_and_query(path: &str, out: &mut Vec<u8>) {
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (path, None),
    };
    if path == "*" {
        out.push(b'*');
    } else {
        let begin = out.len();
        write_decoded(path.as_bytes(), out);
        remove_dot_segments(out, begin);
    }
    if let Some(query) = query {
        out.push(b'?');
        write_decoded(query.as_bytes(), out);
    }
}

/// Appends with unreserved characters decoded, and the hexadecimal digits of other escapes in upper case.
fn write_decoded(text: &[u8], out: &mut Vec<u8>) {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match escape(&text[at..]) {
            Some(meant) if is_unreserved(meant) => out.push(meant),
            Some(_) => {
                out.push(b'%');
                out.extend(text[at + 1..at + 3].iter().map(u8::to_ascii_uppercase));
            }
            None => {
                out.push(byte);
                at += 1;
                continue;
            }
        }
        at += 3;
    }
}

/// Byte encoded by the escape at the beginning of the text.
fn escape(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Removes `.` and `..` segments from the path that `text` has from `begin` on (RFC 3986, 5.2.4), in place: the result is never
/// longer. The path is at least `/` afterwards.
fn remove_dot_segments(text: &mut Vec<u8>, begin: usize) {
    if text.get(begin) != Some(&b'/') {
        text.insert(begin, b'/');
    }
    let (mut read, mut write) = (begin, begin);
    while read < text.len() {
        // A segment: its slash, and what follows up to the next one.
        let end = text[read + 1..].iter().position(|&b| b == b'/').map_or(text.len(), |at| read + 1 + at);
        let is_last = end == text.len();
        match &text[read + 1..end] {
            b"." => {}
            b".." => {
                write = text[begin..write].iter().rposition(|&b| b == b'/').map_or(begin, |at| begin + at)
            }
            _ => {
                text.copy_within(read..end, write);
                write += end - read;
                read = end;
                continue;
            }
        }
        if is_last {
            // "/a/." is the directory "/a/".
            text[write] = b'/';
            write += 1;
        }
        read = end;
    }
    text.truncate(write);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn normalised(url: &str) -> Result<String, FetchTargetError> {
        let text = format!("GET {url} HTTP/1.1\r\nHost: Given:80\r\n\r\n");
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        let mut out = Vec::new();
        FetchTarget::from_head(&head, None)?.write_normalised(&mut out);
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn spellings_of_one_resource_become_one() {
        for same in [
            "http://a/~joe/%C3%A9?q=%7e&x=%2f",
            "HTTP://A:80/%7Ejoe/%c3%a9?q=~&x=%2F",
            "http://a:/b/../%7ejoe/./%c3%A9?q=~&x=%2f",
            "http://%41/%2E%2e/~joe/%c3%A9?q=~&x=%2f",
        ] {
            assert_eq!(normalised(same).unwrap(), "http://a/~joe/%C3%A9?q=~&x=%2F", "{same}");
        }
        assert_eq!(normalised("/x").unwrap(), "http://given/x");
        assert_eq!(normalised("http://a").unwrap(), "http://a/");
        assert_eq!(normalised("http://a?q").unwrap(), "http://a/?q");
        assert_eq!(normalised("http://[::1]:80/").unwrap(), "http://[::1]/");
        assert_eq!(normalised("http://[::1]:81/").unwrap(), "http://[::1]:81/");
    }

    #[test]
    fn a_request_through_an_opened_tunnel_is_for_another_resource_than_one_in_the_clear() {
        let of = |authority| FetchTarget { authority, path: "/x", is_secured: true };
        let normalised = |target: FetchTarget<'_>| {
            let mut out = Vec::new();
            target.write_normalised(&mut out);
            String::from_utf8(out).unwrap()
        };
        for same in ["A:443", "a", "a:0443"] {
            assert_eq!(normalised(of(same)), "https://a/x", "{same}");
        }
        assert_eq!(normalised(of("a:80")), "https://a:80/x");
        assert_eq!(normalised(FetchTarget { is_secured: false, ..of("a:443") }), "http://a:443/x");
        assert_eq!((of("a:443").host(), of("a:8443").host()), ("a", "a:8443"));
        assert_eq!(of("a:443").url(), "https://a/x");
    }

    #[test]
    fn what_may_differ_stays_apart() {
        for (one, other) in [
            ("http://a/x", "http://a/X"),
            ("http://a/x", "http://a/x?"),
            ("http://a/x/y", "http://a/x%2Fy"),
            ("http://a/x?a=/../b", "http://a/b"),
            ("http://a/x", "http://a:8080/x"),
            ("http://a/x", "http://a//x"),
            ("http://a/50%", "http://a/50%25"),
        ] {
            assert_ne!(normalised(one).unwrap(), normalised(other).unwrap(), "{one} {other}");
        }
    }

    #[test]
    fn dots_are_removed_as_the_examples_of_the_standard_say() {
        for (path, clean) in [
            ("/a/b/c/./../../g", "/a/g"),
            ("/a/b/.", "/a/b/"),
            ("/a/b/..", "/a/"),
            ("/..", "/"),
            ("/../../g", "/g"),
            ("/g.", "/g."),
            ("/..g", "/..g"),
            ("/a/./b/", "/a/b/"),
            ("/a//../b", "/a/b"),
            ("//", "//"),
        ] {
            assert_eq!(normalised(&format!("http://h{path}")).unwrap(), format!("http://h{clean}"), "{path}");
        }
    }

    #[test]
    fn targets_that_could_be_taken_for_others_are_refused() {
        assert_eq!(normalised("x"), Err(FetchTargetError::Target(TargetError::Form)));
        assert_eq!(normalised("https://a/"), Err(FetchTargetError::Scheme));
        assert_eq!(normalised("http://u@b/"), Err(FetchTargetError::Target(TargetError::Authority)));
        assert_eq!(normalised("http://b/#x"), Err(FetchTargetError::Target(TargetError::Character)));
        let (head, _) = RequestHead::parse(b"GET / HTTP/1.0\r\n\r\n").unwrap().unwrap();
        assert_eq!(FetchTarget::from_head(&head, None), Err(FetchTargetError::NoHost));
        assert_eq!(FetchTarget::from_head(&head, Some("a")).unwrap().authority, "a");
    }

    proptest! {
        #[test]
        fn a_normalised_url_is_its_own_normal_form(path in "(/|\\.|a|%2e|%7E|%2f|%|\\?|B|~|é){0,24}") {
            let path: String = path.chars().map(|c| if c.is_ascii() { c.to_string() } else { "%C3%A9".into() }).collect();
            let once = normalised(&format!("http://h/{path}")).unwrap();
            prop_assert_eq!(normalised(&once).unwrap(), once.clone());
            let (path, _) = once["http://h".len()..].split_once('?').unwrap_or((&once["http://h".len()..], ""));
            prop_assert!(path.starts_with('/'));
            prop_assert!(!path.split('/').any(|segment| segment == "." || segment == ".."), "{}", path);
        }

        #[test]
        fn escaping_what_needs_no_escape_changes_nothing(path in "[a-zA-Z0-9._~-]{1,12}", mask in any::<u16>()) {
            let escaped: String = path.bytes().enumerate()
                .map(|(i, b)| if mask >> (i % 16) & 1 == 1 { format!("%{b:02x}") } else { char::from(b).to_string() })
                .collect();
            prop_assert_eq!(normalised(&format!("http://h/{escaped}")), normalised(&format!("http://h/{path}")));
        }

        #[test]
        fn no_target_panics(target in "[!-~]{1,40}") {
            let _ = normalised(&target);
        }
    }
}
