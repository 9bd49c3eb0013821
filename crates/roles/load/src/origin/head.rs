//! The head of an origin's response.

use assay_http::date::DateCache;
use assay_http::field::write_decimal;
use assay_http::status::reason;
use assay_net::HEALTH_ORIGIN_PREFIX;
use assay_workload::model::HttpVersion;

use assay_workload::mark::{HEADER, ResponseMark};

use crate::cache_fields::cache_control;

/// The `Http1Connection` field of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionField {
    /// The versions of both sides say it.
    Unsaid,
    /// `Connection: keep-alive`.
    KeepAlive,
    /// `Connection: close`.
    Close,
}

/// Dates of a response about a cachable object, in Unix seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dates {
    /// `Last-Modified`.
    pub last_modified_s: Option<u64>,
    /// `Expires`.
    pub expires_s: Option<u64>,
    /// The object has no life cycle: no version of it will ever be another.
    pub never_modified: bool,
}

/// Head of a response about an object, as far as all of them have it.
#[derive(Debug, Clone, Copy)]
pub struct ObjectHead<'a> {
    /// Version of the origin.
    pub version: HttpVersion,
    pub connection: ConnectionField,
    /// `Date`, in Unix seconds.
    pub now_s: u64,
    /// Whether it may be cached.
    pub cachable: bool,
    /// Dates; sent for cachable objects only.
    pub dates: Dates,
    /// `Content-Type`.
    pub mime_type: Option<&'a str>,
    /// Size of the object.
    pub size_bytes: u64,
    /// The xact that caused the response, and its status.
    pub mark: ResponseMark,
}

/// Writers of the dates that responses carry. Each remembers the last one it wrote.
#[derive(Debug, Default)]
pub struct DateWriters {
    now: DateCache,
    last_modified: DateCache,
    expires: DateCache,
    start: CachedStart,
}

/// First lines of the last head about an object: nearly always the next has the same ones, for a second.
#[derive(Debug, Default)]
struct CachedStart {
    /// Version, what becomes of the connection, status and `Date`.
    key: Option<(HttpVersion, ConnectionField, u16, u64)>,
    text: Vec<u8>,
}

impl ObjectHead<'_> {
    /// Appends the head of a response with the whole object, or of one that it has not changed.
    pub fn write(&self, out: &mut Vec<u8>, dates: &mut DateWriters) {
        self.start(out, dates);
        self.freshness(out, dates);
        if !self.mark.not_modified() {
            if let Some(mime_type) = self.mime_type {
                out.extend_from_slice(b"Content-Type: ");
                out.extend_from_slice(mime_type.as_bytes());
                out.extend_from_slice(b"\r\n");
            }
            out.extend_from_slice(b"Content-Length: ");
            write_decimal(out, self.size_bytes);
            out.extend_from_slice(b"\r\n");
        }
        self.end(out);
    }

    /// Appends the status line, what becomes of the connection, and `Date`.
    #[inline]
    pub fn start(&self, out: &mut Vec<u8>, dates: &mut DateWriters) {
        let key = Some((self.version, self.connection, self.mark.status, self.now_s));
        if dates.start.key != key {
            let mut text = std::mem::take(&mut dates.start.text);
            text.clear();
            self.write_start(&mut text, dates);
            dates.start = CachedStart { key, text };
        }
        out.extend_from_slice(&dates.start.text);
    }

    fn write_start(&self, out: &mut Vec<u8>, dates: &mut DateWriters) {
        match self.mark.status {
            200 => start(out, self.version, b"200 OK", self.connection),
            304 => start(out, self.version, b"304 Not Modified", self.connection),
            other => {
                let mut line = Vec::with_capacity(40);
                write_decimal(&mut line, u64::from(other));
                line.push(b' ');
                line.extend_from_slice(reason(other).as_bytes());
                start(out, self.version, &line, self.connection);
            }
        }
        date(out, b"Date: ", dates.now.at(self.now_s));
    }

    /// Appends for how long the object may be kept, and how old it is.
    #[inline]
    pub fn freshness(&self, out: &mut Vec<u8>, dates: &mut DateWriters) {
        if let Some(last_modified_s) = self.dates.last_modified_s.filter(|_| self.cachable) {
            date(out, b"Last-Modified: ", dates.last_modified.at(last_modified_s));
        }
        if let Some(expires_s) = self.dates.expires_s.filter(|_| self.cachable) {
            date(out, b"Expires: ", dates.expires.at(expires_s));
        }
        out.extend_from_slice(b"Cache-Control: ");
        out.extend_from_slice(cache_control(self.cachable, self.dates.never_modified).as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    /// Appends our mark, and the end of the head.
    #[inline]
    pub fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(HEADER.as_bytes());
        out.extend_from_slice(b": ");
        self.mark.write(out);
        out.extend_from_slice(b"\r\n\r\n");
    }
}

/// Appends a whole response that is about no object: never to be stored, and without our mark, so that a robot does not take it
/// for the response to its request.
pub fn write_plain(
    out: &mut Vec<u8>,
    version: HttpVersion,
    status: u16,
    connection: ConnectionField,
    now_s: u64,
    with_body: bool,
    dates: &mut DateWriters,
) {
    let (line, body): (&[u8], &[u8]) = match status {
        404 => (b"404 Not Found", b"no object of this universe\n"),
        405 => (b"405 Method Not Allowed", b"only GET, HEAD, POST and PUT\n"),
        414 => (b"414 URI Too Long", b"the request line is too long\n"),
        431 => (b"431 Request Header Fields Too Large", b"the head is too large\n"),
        501 => (b"501 Not Implemented", b"no coding but chunked\n"),
        505 => (b"505 HTTP Version Not Supported", b"only HTTP/1.0 and HTTP/1.1\n"),
        _ => (b"400 Bad Request", b"not a request of HTTP/1.0 or HTTP/1.1\n"),
    };
    start(out, version, line, connection);
    date(out, b"Date: ", dates.now.at(now_s));
    if status == 405 {
        out.extend_from_slice(b"Allow: GET, HEAD, POST, PUT\r\n");
    }
    write_text(out, body, with_body);
}

/// Writes a response to a health check: it names the origin that responds, so that one that a proxy mixed up is recognised.
pub fn write_health(
    out: &mut Vec<u8>,
    version: HttpVersion,
    connection: ConnectionField,
    now_s: u64,
    authority: &[u8],
    with_body: bool,
    dates: &mut DateWriters,
) {
    start(out, version, b"200 OK", connection);
    date(out, b"Date: ", dates.now.at(now_s));
    let body = [b"ok\n", HEALTH_ORIGIN_PREFIX.as_bytes(), authority, b"\n"].concat();
    write_text(out, &body, with_body);
}

fn write_text(out: &mut Vec<u8>, body: &[u8], with_body: bool) {
    out.extend_from_slice(b"Cache-Control: no-store\r\nContent-Type: text/plain\r\nContent-Length: ");
    write_decimal(out, body.len() as u64);
    out.extend_from_slice(b"\r\n\r\n");
    if with_body {
        out.extend_from_slice(body);
    }
}

fn start(out: &mut Vec<u8>, version: HttpVersion, status: &[u8], connection: ConnectionField) {
    out.extend_from_slice(match version {
        HttpVersion::Http10 => b"HTTP/1.0 ",
        // In HTTP/2 the head becomes fields.
        HttpVersion::Http11 | HttpVersion::Http2 => b"HTTP/1.1 ",
    });
    out.extend_from_slice(status);
    out.extend_from_slice(match connection {
        ConnectionField::Unsaid => b"\r\n",
        ConnectionField::KeepAlive => b"\r\nConnection: keep-alive\r\n",
        ConnectionField::Close => b"\r\nConnection: close\r\n",
    });
}

fn date(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_http::framing::BodyFraming;
    use assay_http::head::ResponseHead;
    use assay_workload::XactId;

    const NOW_S: u64 = 784_111_777;

    fn head(cachable: bool, not_modified: bool) -> ObjectHead<'static> {
        let xact = XactId { robot: 1, number: 2, place: 0 };
        ObjectHead {
            version: HttpVersion::Http11,
            connection: ConnectionField::Unsaid,
            now_s: NOW_S,
            cachable,
            dates: Dates {
                last_modified_s: Some(NOW_S - 1),
                expires_s: Some(NOW_S + 60),
                never_modified: false,
            },
            mime_type: Some("image/gif"),
            size_bytes: 4321,
            mark: ResponseMark {
                xact,
                key: 3,
                version: 4,
                made_us: 5,
                status: if not_modified { 304 } else { 200 },
                held_us: 0,
                delay_us: 0,
                note: None,
            },
        }
    }

    fn written(head: &ObjectHead<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        head.write(&mut out, &mut DateWriters::default());
        out
    }

    #[test]
    fn a_cachable_object_carries_its_dates_and_may_be_stored() {
        let text = written(&head(true, false));
        let (parsed, length) = ResponseHead::parse(&text).expect("is HTTP").expect("is complete");
        assert_eq!((parsed.status, length), (200, text.len()));
        for (name, value) in [
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("last-modified", "Sun, 06 Nov 1994 08:49:36 GMT"),
            ("expires", "Sun, 06 Nov 1994 08:50:37 GMT"),
            ("cache-control", "public"),
            ("content-type", "image/gif"),
            ("x-assay", "1-2-0-0000000000000003-4-5-200"),
        ] {
            assert_eq!(parsed.header(name), Some(value.as_bytes()), "{name}");
        }
        assert_eq!(parsed.body("GET"), BodyFraming::Length(4321));
        assert!(parsed.header("etag").is_none() && parsed.header("age").is_none());
    }

    #[test]
    fn an_object_without_a_life_cycle_may_be_kept_for_a_year() {
        let dates = Dates { never_modified: true, ..Dates::default() };
        let text = written(&ObjectHead { dates, ..head(true, false) });
        let (parsed, _) = ResponseHead::parse(&text).expect("is HTTP").expect("is complete");
        assert_eq!(parsed.header("cache-control"), Some(&b"public, max-age=31536000"[..]));
        assert!(parsed.header("last-modified").is_none() && parsed.header("expires").is_none());
    }

    #[test]
    fn an_object_that_may_not_be_stored_shows_no_dates() {
        let text = written(&head(false, false));
        let (parsed, _) = ResponseHead::parse(&text).expect("is HTTP").expect("is complete");
        assert_eq!(parsed.header("cache-control"), Some(&b"private, no-cache, no-store"[..]));
        assert!(parsed.header("last-modified").is_none() && parsed.header("expires").is_none());
    }

    #[test]
    fn a_304_names_no_length_and_no_type() {
        let text = written(&head(true, true));
        let (parsed, _) = ResponseHead::parse(&text).expect("is HTTP").expect("is complete");
        assert_eq!(parsed.status, 304);
        assert!(parsed.header("content-length").is_none() && parsed.header("content-type").is_none());
        assert!(parsed.header("expires").is_some());
        assert_eq!(parsed.header("x-assay"), Some(&b"1-2-0-0000000000000003-4-5-304"[..]));
    }

    #[test]
    fn plain_responses_are_never_stored_and_carry_no_mark() {
        for status in [400, 404, 405, 431, 505] {
            let mut out = Vec::new();
            let dates = &mut DateWriters::default();
            write_plain(&mut out, HttpVersion::Http10, status, ConnectionField::Close, NOW_S, true, dates);
            let (parsed, length) = ResponseHead::parse(&out).expect("is HTTP").expect("is complete");
            assert_eq!(parsed.status, status);
            assert_eq!(parsed.body("GET"), BodyFraming::Length((out.len() - length) as u64));
            assert_eq!(parsed.header("cache-control"), Some(&b"no-store"[..]));
            assert!(parsed.header("x-assay").is_none() && !parsed.persists("GET"));
        }
    }

    #[test]
    fn a_health_check_names_the_origin_and_is_never_stored() {
        for with_body in [true, false] {
            let mut out = Vec::new();
            let dates = &mut DateWriters::default();
            let (version, connection) = (HttpVersion::Http11, ConnectionField::Unsaid);
            write_health(&mut out, version, connection, NOW_S, b"a.example:81", with_body, dates);
            let (parsed, length) = ResponseHead::parse(&out).expect("is HTTP").expect("is complete");
            let body: &[u8] = b"ok\norigin a.example:81\n";
            assert_eq!((parsed.status, parsed.header("cache-control")), (200, Some(&b"no-store"[..])));
            assert_eq!(parsed.body("GET"), BodyFraming::Length(body.len() as u64));
            assert_eq!(&out[length..], if with_body { body } else { b"" });
        }
    }
}
