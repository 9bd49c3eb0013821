//! What does one line of an access log say?

/// One request as a proxy wrote it down. Texts are slices of the line; what a line does not say is empty, none or 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Access<'a> {
    /// When it ended or began, whichever the proxy writes down, in microseconds since 1970.
    pub time_us: Option<i64>,
    /// How long it took, in microseconds.
    pub duration_us: Option<u64>,
    /// Address of the client.
    pub client: &'a [u8],
    /// What became of it, in the proxy's own words (`TCP_MEM_HIT`, `EXPIRED`, `<CACHE>`).
    pub outcome: &'a [u8],
    /// How the proxy chose whom to ask (`SIBLING_HIT`, `HIER_DIRECT`).
    pub hierarchy: &'a [u8],
    /// Who was asked: another proxy, a server, an origin.
    pub peer: &'a [u8],
    /// How it ended, as HAProxy says it (`CD--`).
    pub termination: &'a [u8],
    /// Status of the answer; 0: none.
    pub status: u16,
    /// Bytes of the answer, as the proxy counts them.
    pub bytes: u64,
    /// Method of the request.
    pub method: &'a [u8],
    /// URL of the request, or path and query where the host stands elsewhere or nowhere.
    pub url: &'a [u8],
    /// Query of the URL, where it stands apart from the path; without its question mark.
    pub query: &'a [u8],
    /// Host of the request, where it is not part of the URL.
    pub host: &'a [u8],
    /// Content type of the answer.
    pub content_type: &'a [u8],
    /// What Assay's robots call the request (`X-Assay`), where the log has it.
    pub xact: &'a [u8],
}

impl<'a> Access<'a> {
    /// The host that was asked for, with its port, from the URL or from a field of its own; empty: not known.
    pub fn host(&self) -> &'a [u8] {
        if let Some(at) = scheme_end(self.url) {
            let rest = &self.url[at..];
            return &rest[..memchr::memchr3(b'/', b'?', b'#', rest).unwrap_or(rest.len())];
        }
        if !self.host.is_empty() || self.method != b"CONNECT" {
            return self.host;
        }
        self.url
    }
}

/// Where the host begins in an absolute URL.
fn scheme_end(url: &[u8]) -> Option<usize> {
    let head = &url[..url.len().min(16)];
    let colon = memchr::memchr(b':', head)?;
    let is_scheme = colon > 0 && head[..colon].iter().all(u8::is_ascii_alphanumeric);
    (is_scheme && url[colon..].starts_with(b"://")).then_some(colon + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(of("GET", "/x", "b.example"), "b.example");
        assert_eq!(of("GET", "/x?u=http://c/", ""), "");
        assert_eq!(of("CONNECT", "c.example:443", ""), "c.example:443");
    }
}
