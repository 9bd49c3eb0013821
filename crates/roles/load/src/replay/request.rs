//! A request of a log or a list, and how it is written on the wire.

use assay_net::fields::append;

/// One request, without its time and its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayRequest {
    /// HEAD; else GET.
    pub head_only: bool,
    /// True for `https`, false for `http`.
    pub is_https: bool,
    /// Host, with its port where the URL has one.
    pub authority: Box<str>,
    pub path: Box<str>,
}

/// Reason for which an entry of a log or a list cannot be requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnusableUrl {
    /// Neither a URL with a host nor a path: `-`, `error:…`, an address to tunnel to.
    NoUrl,
    /// A path without a host.
    NoHost,
    /// The scheme is not spoken here.
    Scheme,
}

impl ReplayRequest {
    /// Reads a URL. `host` is where a path alone belongs. Bytes that a request line cannot have are percent-encoded.
    pub fn new(head_only: bool, url: &[u8], host: Option<&[u8]>) -> Result<Self, UnusableUrl> {
        let url = url.split(|byte| *byte == b'#').next().unwrap_or_default();
        let mut is_https = false;
        let (authority, path) = match split(url) {
            Some((scheme, rest)) => {
                is_https = scheme.eq_ignore_ascii_case(b"https");
                if !is_https && !scheme.eq_ignore_ascii_case(b"http") {
                    return Err(UnusableUrl::Scheme);
                }
                let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
                // What stands before an @ are names and passwords, which do not belong into a request.
                let from = rest[..end].iter().rposition(|byte| *byte == b'@').map_or(0, |at| at + 1);
                (&rest[from..end], &rest[end..])
            }
            None if url.first() == Some(&b'/') => (host.ok_or(UnusableUrl::NoHost)?, url),
            None => return Err(UnusableUrl::NoUrl),
        };
        let is_plain = |byte: &u8| byte.is_ascii_graphic();
        if authority.is_empty() || !authority.iter().all(is_plain) {
            return Err(if authority.is_empty() { UnusableUrl::NoHost } else { UnusableUrl::NoUrl });
        }
        let mut text = String::with_capacity(path.len() + 1);
        if path.first() != Some(&b'/') {
            text.push('/');
        }
        for byte in path {
            if byte.is_ascii_graphic() {
                text.push(char::from(*byte));
            } else {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
        let authority = String::from_utf8_lossy(authority).into_owned().into_boxed_str();
        Ok(Self { head_only, is_https, authority, path: text.into_boxed_str() })
    }

    pub fn method(&self) -> &'static str {
        if self.head_only { "HEAD" } else { "GET" }
    }

    pub fn url(&self) -> String {
        let scheme = if self.is_https { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority, self.path)
    }

    /// Appends the head of the request: to a forward proxy with the whole URL. `fields` are lines with their ends.
    pub fn write(&self, out: &mut Vec<u8>, forward: bool, fields: &[u8]) {
        out.extend_from_slice(self.method().as_bytes());
        out.push(b' ');
        if forward {
            out.extend_from_slice(b"http://");
            out.extend_from_slice(self.authority.as_bytes());
        }
        out.extend_from_slice(self.path.as_bytes());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        append(out, b"Host", self.authority.as_bytes());
        out.extend_from_slice(fields);
        out.extend_from_slice(b"\r\n");
    }
}

/// Scheme, and what is behind `://`.
fn split(url: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = url.iter().take(16).position(|byte| *byte == b':')?;
    let is_scheme = colon > 0 && url[..colon].iter().all(u8::is_ascii_alphanumeric);
    let rest = url[colon..].strip_prefix(b"://")?;
    is_scheme.then_some((&url[..colon], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str, host: Option<&str>) -> Result<String, UnusableUrl> {
        ReplayRequest::new(false, url.as_bytes(), host.map(str::as_bytes)).map(|request| request.url())
    }

    #[test]
    fn a_url_says_its_host_and_a_path_belongs_to_the_host_that_is_named() {
        assert_eq!(request("http://a.example:81/x?y=1#z", Some("b")).unwrap(), "http://a.example:81/x?y=1");
        assert_eq!(request("http://a.example", None).unwrap(), "http://a.example/");
        assert_eq!(request("HTTP://me:secret@a.example?q", None).unwrap(), "http://a.example/?q");
        assert_eq!(request("/x", Some("b")).unwrap(), "http://b/x");
        assert_eq!(request("/x?u=http://c/", Some("b")).unwrap(), "http://b/x?u=http://c/");
        assert_eq!(request("/x", None), Err(UnusableUrl::NoHost));
        assert_eq!(request("-", Some("b")), Err(UnusableUrl::NoUrl));
        assert_eq!(request("a.example:443", None), Err(UnusableUrl::NoUrl));
        assert_eq!(request("HTTPS://a:8443/x", None).unwrap(), "https://a:8443/x");
        assert_eq!(request("ftp://a/", None), Err(UnusableUrl::Scheme));
        assert_eq!(request("http:///x", None), Err(UnusableUrl::NoHost));
    }

    #[test]
    fn what_a_request_line_cannot_hold_is_encoded() {
        assert_eq!(request("/a b\tc\u{e9}", Some("h")).unwrap(), "http://h/a%20b%09c%C3%A9");
        assert_eq!(request("http://a b/", None), Err(UnusableUrl::NoUrl));
    }

    #[test]
    fn a_forward_proxy_is_told_the_whole_url() {
        let request = ReplayRequest::new(true, b"http://a/x", None).unwrap();
        let text = |forward| {
            let mut out = Vec::new();
            request.write(&mut out, forward, b"Accept: */*\r\n");
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(true), "HEAD http://a/x HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n");
        assert_eq!(text(false), "HEAD /x HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n");
    }
}
