//! One line of an access log.

/// Subject of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LineKind {
    /// A request of a client.
    #[default]
    Request,
    /// A fetch of the cache itself from a backend.
    Fetch,
    /// A connection, of whose requests the line says nothing.
    Connection,
}

/// One request as a proxy wrote it down. Texts are slices of the line; what a line does not say is empty, none or 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Access<'a> {
    pub kind: LineKind,
    /// End or beginning of the request, whichever the proxy logs, in microseconds since 1970.
    pub time_us: Option<i64>,
    pub duration_us: Option<u64>,
    /// Address of the client.
    pub client: &'a [u8],
    /// Cache outcome in the proxy's own words (`TCP_MEM_HIT`, `EXPIRED`, `<CACHE>`).
    pub outcome: &'a [u8],
    /// Hierarchy code: the choice of the upstream (`SIBLING_HIT`, `HIER_DIRECT`).
    pub hierarchy: &'a [u8],
    /// Upstream: another proxy, a server, an origin.
    pub peer: &'a [u8],
    /// HAProxy's termination state (`CD--`).
    pub termination: &'a [u8],
    /// Status of the response; 0: none.
    pub status: u16,
    /// Bytes of the response, as the proxy counts them.
    pub bytes: u64,
    /// Version of HTTP that the request came in; none: the line does not say.
    pub version: Option<HttpVersion>,
    /// Method of the request.
    pub method: &'a [u8],
    /// URL of the request, or path and query where the host stands elsewhere or nowhere.
    pub url: &'a [u8],
    /// The path lacks the slash before it.
    pub is_rootless: bool,
    /// Query of the URL, where it stands apart from the path; without its question mark.
    pub query: &'a [u8],
    /// Host of the request, where it is not part of the URL.
    pub host: &'a [u8],
    /// Scheme of the request, where it is not part of the URL.
    pub scheme: &'a [u8],
    /// Content type of the response.
    pub content_type: &'a [u8],
    /// `Cache-Control` of the response.
    pub cache_control: &'a [u8],
    /// `Expires` of the response.
    pub expires: &'a [u8],
    /// `Content-Encoding` of the response.
    pub coding: &'a [u8],
    /// `User-Agent` of the request.
    pub agent: &'a [u8],
    /// `Referer` of the request.
    pub referrer: &'a [u8],
    /// Name that Assay's robots give the request (`X-Assay`), where the log has it.
    pub xact: &'a [u8],
    /// The line itself, without what other systems put before it.
    pub line: &'a [u8],
}

/// A version of HTTP, as far as requests are sent in another way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1, or one before it.
    Http1,
    Http2,
    Http3,
}

impl HttpVersion {
    /// Reads `HTTP/2.0`, `HTTP/2`, `http/2`, `2.0` and `h2`.
    #[inline]
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let prefix = [&b"HTTP/"[..], b"http/", b"h"];
        let number = prefix.iter().find_map(|prefix| text.strip_prefix(*prefix)).unwrap_or(text);
        match number {
            [b'0' | b'1'] | [b'0' | b'1', b'.', ..] => Some(Self::Http1),
            b"2" | b"2.0" => Some(Self::Http2),
            b"3" | b"3.0" => Some(Self::Http3),
            _ => None,
        }
    }
}

impl<'a> Access<'a> {
    /// The host that was requested, from the URL or from a field of its own; empty: not known. It has its port, unless that
    /// is the one that the request's scheme has anyway (http 80, https 443): both spellings are one host.
    pub fn host(&self) -> &'a [u8] {
        let (scheme, written) = self.authority();
        strip_default_port(scheme, written)
    }

    /// True when its URL is a path, whose host stands elsewhere or nowhere.
    pub fn is_path(&self) -> bool {
        self.is_rootless || self.url.first() == Some(&b'/')
    }

    /// The scheme, and the host as it was written; both empty where the line does not say.
    pub(crate) fn authority(&self) -> (&'a [u8], &'a [u8]) {
        if let Some(found) = authority(self.url) {
            return found;
        }
        if !self.host.is_empty() || self.method != b"CONNECT" {
            return (self.scheme, self.host);
        }
        (b"", self.url)
    }
}

const SCHEME_SEPARATOR: &[u8] = b"://";
/// Schemes whose port need not be said, with that port as it is written.
const DEFAULT_PORTS: [(&[u8], &[u8]); 2] = [(b"http", b":80"), (b"https", b":443")];

/// A host without the port that its scheme has anyway.
#[inline]
pub(crate) fn strip_default_port<'a>(scheme: &[u8], host: &'a [u8]) -> &'a [u8] {
    let usual = DEFAULT_PORTS.iter().find(|(known, _)| scheme.eq_ignore_ascii_case(known));
    usual.and_then(|(_, port)| host.strip_suffix(*port)).unwrap_or(host)
}

/// The scheme and the host of an absolute URL.
#[inline]
pub(crate) fn authority(url: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = scheme_end(url)?;
    let rest = &url[colon + SCHEME_SEPARATOR.len()..];
    let end = memchr::memchr3(b'/', b'?', b'#', rest).unwrap_or(rest.len());
    let host = &rest[..end];
    let host = if host.last() == Some(&b'-') { strip_no_path_mark(host) } else { host };
    Some((&url[..colon], host))
}

/// Balancers of AWS write `http://host:80-` for a request that names no path.
#[cold]
fn strip_no_path_mark(host: &[u8]) -> &[u8] {
    let with_port = &host[..host.len() - 1];
    let digits = with_port.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let has_port = digits > 0 && with_port[..with_port.len() - digits].ends_with(b":");
    if has_port { with_port } else { host }
}

/// End of the scheme of an absolute URL.
fn scheme_end(url: &[u8]) -> Option<usize> {
    let head = &url[..url.len().min(16)];
    let colon = memchr::memchr(b':', head)?;
    let is_scheme = colon > 0 && head[..colon].iter().all(u8::is_ascii_alphanumeric);
    (is_scheme && url[colon..].starts_with(SCHEME_SEPARATOR)).then_some(colon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_read_as_any_log_writes_it() {
        for (texts, version) in [
            (["HTTP/1.1", "http/1.1", "1.1", "HTTP/0.9"], Some(HttpVersion::Http1)),
            (["HTTP/2.0", "http/2", "2.0", "h2"], Some(HttpVersion::Http2)),
            (["HTTP/3.0", "HTTP/3", "3.0", "h3"], Some(HttpVersion::Http3)),
            (["", "-", "HTTP/", "HTTP/20"], None),
        ] {
            for text in texts {
                assert_eq!(HttpVersion::parse(text.as_bytes()), version, "{text}");
            }
        }
    }

    #[test]
    fn the_host_comes_from_the_url_or_from_its_own_field() {
        let of = |method: &'static str, url: &'static str, host: &'static str| {
            let access = Access {
                method: method.as_bytes(),
                url: url.as_bytes(),
                host: host.as_bytes(),
                ..Access::default()
            };
            String::from_utf8(access.host().to_vec()).unwrap()
        };
        assert_eq!(of("GET", "http://a.example:81/x?y=http://b/", "other"), "a.example:81");
        assert_eq!(of("GET", "http://a.example?x", ""), "a.example");
        assert_eq!(of("-", "http://lb-1.example:80-", ""), "lb-1.example");
        assert_eq!(of("GET", "http://a-/", ""), "a-");
        assert_eq!(of("GET", "/x", "b.example"), "b.example");
        assert_eq!(of("GET", "/x?u=http://c/", ""), "");
        assert_eq!(of("CONNECT", "c.example:443", ""), "c.example:443");
    }

    #[test]
    fn a_port_is_left_out_where_the_scheme_says_that_it_is_the_usual_one() {
        let of = |scheme: &'static str, url: &'static str, host: &'static str| {
            let access = Access {
                method: b"GET",
                url: url.as_bytes(),
                scheme: scheme.as_bytes(),
                host: host.as_bytes(),
                ..Access::default()
            };
            String::from_utf8(access.host().to_vec()).unwrap()
        };
        for (scheme, url, host, expected) in [
            ("", "http://h:80/x", "", "h"),
            ("", "HTTPS://h:443/x", "", "h"),
            ("", "https://[::1]:443", "", "[::1]"),
            ("", "http://[2001::80]/", "", "[2001::80]"),
            // The other scheme's port is a port of its own, and so is one that only ends like it.
            ("", "http://h:443/x", "", "h:443"),
            ("", "https://h:80/x", "", "h:80"),
            ("", "http://h:8080/x", "", "h:8080"),
            ("", "http://h:180/x", "", "h:180"),
            ("", "ftp://h:80/x", "", "h:80"),
            // A scheme in a field of its own is as good as one in the URL; without any, nothing is known.
            ("https", "/x", "h:443", "h"),
            ("http", "/x", "h:443", "h:443"),
            ("", "/x", "h:443", "h:443"),
            ("", "/x", "h:80", "h:80"),
        ] {
            assert_eq!(of(scheme, url, host), expected, "{scheme} {url} {host}");
        }
    }
}
