//! A request on the wire.

use assay_http::date::DateCache;
use assay_workload::mark::RequestMark;
use assay_workload::model::{HttpVersion, Method};
use assay_workload::{Object, Universe};

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
