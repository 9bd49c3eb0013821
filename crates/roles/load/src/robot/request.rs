//! A request on the wire.

use assay_http::date::DateCache;
use assay_workload::mark::RequestMark;
use assay_workload::model::{HttpVersion, Method};
use assay_workload::{Object, Universe};
use memchr::{memchr, memmem, memrchr};

use super::features::RequestFeatures;
use super::setup::TargetRoute;
use crate::tally::method_name;

/// `Priority` (RFC 9218) of a page. One leads to all others, and comes before most; what it embeds comes after what is
/// requested for itself (3 by default), and is of use as it arrives.
pub const PRIORITY_OF_PAGE: &[u8] = b"Priority: u=1\r\n";
/// `Priority` of an embedded object.
pub const PRIORITY_OF_EMBEDDED: &[u8] = b"Priority: u=5, i\r\n";

/// Contents of a request.
#[derive(Debug, Clone, Copy)]
pub struct OutgoingRequest<'a> {
    /// The robot and xact of the request.
    pub mark: RequestMark,
    pub method: Method,
    pub version: HttpVersion,
    pub object: &'a Object,
    /// The way to its origin.
    pub route: &'a TargetRoute,
    pub absolute: bool,
    /// Date of `If-Modified-Since`, in Unix seconds.
    pub since_unix_s: Option<u64>,
    /// `no-cache`.
    pub reload: bool,
    /// `Priority`, if the request has one.
    pub priority: Option<&'static [u8]>,
    /// The connection will not be used again.
    pub last_use: bool,
    /// More lines of the head.
    pub features: Option<&'a RequestFeatures>,
    /// Lines of the head from what the robot remembers.
    pub personal: &'a [u8],
    /// The body is not sent before a 100 response.
    pub expects: bool,
    /// Body of a POST or PUT; none: empty.
    pub post_body: Option<&'a Object>,
}

impl OutgoingRequest<'_> {
    /// Appends the request, with its body.
    pub fn write(&self, universe: &Universe, dates: &mut DateCache, out: &mut Vec<u8>) {
        match self.method {
            Method::Get => out.extend_from_slice(b"GET "),
            other => {
                out.extend_from_slice(method_name(other).as_bytes());
                out.push(b' ');
            }
        }
        write_target(universe, self.object, self.absolute.then_some(self.route), out);
        out.extend_from_slice(self.route.between(self.version));
        self.mark.write(out);
        out.extend_from_slice(b"\r\nAccept: */*\r\n");
        if let Some(since_unix_s) = self.since_unix_s {
            out.extend_from_slice(b"If-Modified-Since: ");
            out.extend_from_slice(dates.at(since_unix_s));
            out.extend_from_slice(b"\r\n");
        }
        if self.reload {
            out.extend_from_slice(b"Cache-Control: no-cache\r\nPragma: no-cache\r\n");
        }
        if let Some(priority) = self.priority {
            out.extend_from_slice(priority);
        }
        if let Some(features) = self.features {
            features.write(out);
            out.extend_from_slice(self.personal);
        }
        match (self.version, self.last_use) {
            (HttpVersion::Http11, true) => out.extend_from_slice(b"Connection: close\r\n"),
            (HttpVersion::Http10, false) => out.extend_from_slice(b"Connection: keep-alive\r\n"),
            (HttpVersion::Http11, false) | (HttpVersion::Http10, true) | (HttpVersion::Http2, _) => {}
        }
        if self.method.has_body() {
            self.describe_body(universe, out);
            match self.post_body {
                Some(object) if !self.expects => write_body(universe, object, out),
                _ => {}
            }
        } else {
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Appends the fields that describe the body of a POST, and the end of the head.
    fn describe_body(&self, universe: &Universe, out: &mut Vec<u8>) {
        let mime = self.post_body.and_then(|object| {
            universe.workload().contents[usize::from(object.id.content)].mime_type.as_deref()
        });
        if let Some(mime) = mime {
            out.extend_from_slice(b"Content-Type: ");
            out.extend_from_slice(mime.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"Content-Length: ");
        assay_http::field::write_decimal(out, self.post_body.map_or(0, |object| object.size_bytes));
        out.extend_from_slice(b"\r\n");
        if self.expects {
            out.extend_from_slice(b"Expect: 100-continue\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }
}

/// A request that [`OutgoingRequest::write`] has put together, taken apart for HTTP/2.
#[derive(Debug, Clone, Copy)]
pub struct WrittenRequest<'a> {
    pub method: &'a [u8],
    pub target: &'a [u8],
    /// Lines of the fields, each with its end.
    lines: &'a [u8],
    pub body: &'a [u8],
}

impl<'a> WrittenRequest<'a> {
    /// None: this is no request that [`OutgoingRequest::write`] has put together.
    pub fn split(request: &'a [u8]) -> Option<Self> {
        let line_end = memchr(b'\r', request)?;
        let (line, lines) = (&request[..line_end], &request[line_end + 2..]);
        let method_end = memchr(b' ', line)?;
        let target_end = memrchr(b' ', line)?;
        let head_end = memmem::find(lines, b"\r\n\r\n")?;
        Some(Self {
            method: &line[..method_end],
            target: line.get(method_end + 1..target_end)?,
            lines: &lines[..head_end + 2],
            body: &lines[head_end + 4..],
        })
    }

    /// Names and values of the fields but `Host`, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.lines;
        let field = move || {
            let end = memchr(b'\r', rest)?;
            let (line, more) = (&rest[..end], &rest[end + 2..]);
            rest = more;
            let colon = memchr(b':', line)?;
            Some((&line[..colon], line[colon + 1..].trim_ascii()))
        };
        std::iter::from_fn(field).filter(|(name, _)| !name.eq_ignore_ascii_case(b"host"))
    }
}

/// Appends the target of a request: a path, or the whole URL where requests take the `absolute` route.
pub fn write_target(universe: &Universe, object: &Object, absolute: Option<&TargetRoute>, out: &mut Vec<u8>) {
    if let Some(route) = absolute {
        out.extend_from_slice(b"http://");
        out.extend_from_slice(&route.authority);
    }
    universe.write_path(object, out);
}

/// Appends the body of a POST or PUT.
pub fn write_body(universe: &Universe, object: &Object, out: &mut Vec<u8>) {
    let body = universe.body(object, 0);
    let mut at = 0;
    while at < object.size_bytes {
        let chunk = body.chunk(universe.pool(), at, usize::MAX);
        out.extend_from_slice(chunk);
        at += chunk.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_more_fields_than_a_head_may_have_is_taken_apart_all_the_same() {
        let mut request = b"POST /a?b HTTP/1.1\r\nHost: h:1\r\n".to_vec();
        for field in 0..500 {
            request.extend_from_slice(format!("X-{field}: {}\r\n", "v: ".repeat(field)).as_bytes());
        }
        request.extend_from_slice(b"\r\na\r\n\r\nbody");
        let split = WrittenRequest::split(&request).expect("is a request");
        assert_eq!(
            (split.method, split.target, split.body),
            (&b"POST"[..], &b"/a?b"[..], &b"a\r\n\r\nbody"[..])
        );
        let fields: Vec<_> = split.fields().collect();
        assert_eq!(
            (fields.len(), fields[0], fields[2]),
            (500, (&b"X-0"[..], &b""[..]), (&b"X-2"[..], &b"v: v:"[..]))
        );
        assert!(WrittenRequest::split(b"").is_none() && WrittenRequest::split(b"GET\r\n\r\n").is_none());
    }
}
