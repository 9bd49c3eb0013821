//! The fields of a line, and how each is read.

use super::time::{Clock, TimePattern, fraction_us};
use crate::access::{Access, Version};

/// One field of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    /// Something that says nothing about caching.
    Skip,
    /// Seconds since 1970, whole or with a fraction.
    EpochSeconds,
    /// Milliseconds since 1970.
    EpochMillis,
    /// Microseconds since 1970.
    EpochMicros,
    /// Digits of the second's fraction.
    Fraction,
    /// A time in words.
    Time(TimePattern),
    /// How long it took.
    DurationUs,
    DurationMs,
    DurationSeconds,
    Client,
    /// An address and a port, with a colon between them.
    ClientAndPort,
    Outcome,
    /// The server that responded, as HAProxy says it: a server, `<CACHE>`, `<NOSRV>`.
    Server,
    /// `1` when HAProxy's cache had it.
    CacheHit,
    Status,
    /// Bytes of the response, with its head.
    Bytes,
    /// Bytes of the response's body alone.
    Body,
    /// Version of HTTP of the request.
    Version,
    Method,
    Url,
    Scheme,
    Host,
    Path,
    /// A query that stands apart from the path. Right behind the path it is a part of that.
    Query,
    /// Host and path with nothing between them.
    HostPath,
    /// `GET /path HTTP/1.1`.
    RequestLine,
    ContentType,
    /// `Cache-Control` of the response.
    CacheControl,
    /// `Expires` of the response.
    Expires,
    /// `Content-Encoding` of the response.
    Coding,
    /// `User-Agent` of the request.
    Agent,
    /// `Referer` of the request.
    Referrer,
    /// Another header field of the request; its name in lower case.
    Request(Box<str>),
    /// A cookie of the request, by its name.
    Cookie(Box<str>),
    /// `Vary` of the response.
    Vary,
    /// `ETag` or `Last-Modified` of the response.
    Validator,
    /// `X-Assay` of the request.
    Xact,
    Hierarchy,
    Peer,
    /// HAProxy's word for how a session ended.
    Termination,
    /// Headers in braces, or nothing at all (HAProxy).
    Braces,
    /// A list that nginx writes, with blanks after its commas; the last of it is meant.
    PeerList,
    SkipList,
}

impl Field {
    /// Name for people.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Field::Skip | Field::SkipList | Field::Braces => "field",
            Field::EpochSeconds | Field::EpochMillis | Field::EpochMicros | Field::Time(_) => "time",
            Field::Fraction => "fraction of the second",
            Field::DurationUs | Field::DurationMs | Field::DurationSeconds => "duration",
            Field::Client | Field::ClientAndPort => "client",
            Field::Outcome | Field::CacheHit => "outcome",
            Field::Server => "server",
            Field::Status => "status",
            Field::Bytes | Field::Body => "number of bytes",
            Field::Version => "version of HTTP",
            Field::Method => "method",
            Field::Url | Field::HostPath => "URL",
            Field::Scheme => "scheme",
            Field::Host => "host",
            Field::Path => "path",
            Field::Query => "query",
            Field::RequestLine => "request line",
            Field::ContentType => "content type",
            Field::CacheControl => "Cache-Control",
            Field::Expires => "Expires",
            Field::Coding => "content coding",
            Field::Agent => "user agent",
            Field::Referrer => "referrer",
            Field::Request(_) => "field of the request",
            Field::Cookie(_) => "cookie",
            Field::Vary => "Vary",
            Field::Validator => "validator",
            Field::Xact => "name of a request",
            Field::Hierarchy => "hierarchy code",
            Field::Peer | Field::PeerList => "peer",
            Field::Termination => "termination state",
        }
    }

    /// The unit of a duration in microseconds.
    pub(crate) fn duration_unit_us(&self) -> Option<u64> {
        match self {
            Field::DurationUs => Some(1),
            Field::DurationMs => Some(1000),
            Field::DurationSeconds => Some(1_000_000),
            _ => None,
        }
    }

    /// True when there is never a blank in it.
    pub(crate) fn is_one_word(&self) -> bool {
        matches!(
            self,
            Field::Url
                | Field::HostPath
                | Field::Path
                | Field::Peer
                | Field::Outcome
                | Field::Client
                | Field::Xact
        )
    }

    /// Takes what stands in the field; none: it cannot be that.
    #[inline]
    pub(crate) fn take<'a>(&self, text: &'a [u8], access: &mut Access<'a>, clock: &mut Clock) -> Option<()> {
        match self {
            Field::Skip | Field::SkipList | Field::Braces => {}
            // Read by those who need them.
            Field::Request(_) | Field::Cookie(_) | Field::Vary | Field::Validator => {}
            Field::Query => {
                let text = text_or_none(text);
                access.query = text.strip_prefix(b"?").unwrap_or(text);
            }
            Field::EpochSeconds => clock.epoch_us = Some(seconds_us(text)?),
            Field::EpochMillis => clock.epoch_us = Some(signed(text)?.checked_mul(1000)?),
            Field::EpochMicros => clock.epoch_us = Some(signed(text)?),
            Field::Fraction => {
                if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
                    return None;
                }
                clock.fraction_us = fraction_us(text);
            }
            // Read by its own pattern, which knows where it ends.
            Field::Time(_) => {}
            Field::DurationUs => access.duration_us = duration(text, 1)?,
            Field::DurationMs => access.duration_us = duration(text, 1000)?,
            Field::DurationSeconds => {
                access.duration_us = if is_none(text) { None } else { u64::try_from(seconds_us(text)?).ok() };
            }
            Field::Client => access.client = text,
            Field::ClientAndPort => access.client = address(text)?,
            Field::Outcome | Field::Server if memchr::memchr(b'"', text).is_some() => return None,
            Field::Outcome => access.outcome = text_or_none(text),
            Field::Server => (access.outcome, access.peer) = server(text),
            Field::CacheHit => match text {
                b"1" => access.outcome = b"<CACHE>",
                // A server that is named beside it says the same, and more.
                b"0" if access.outcome.is_empty() => access.outcome = b"MISS",
                _ => {}
            },
            Field::Status => access.status = status(text)?,
            Field::Bytes | Field::Body => access.bytes = bytes(text)?,
            Field::Version => access.version = Version::of(text),
            Field::Method => access.method = text_or_none(text),
            Field::Url | Field::Path => access.url = text,
            Field::Host => access.host = text_or_none(text),
            Field::Scheme => access.scheme = text_or_none(text),
            Field::HostPath => {
                let at = memchr::memchr(b'/', text).unwrap_or(text.len());
                (access.host, access.url) = text.split_at(at);
            }
            Field::RequestLine => request_line(text, access),
            Field::ContentType => access.content_type = text_or_none(text),
            Field::CacheControl => access.cache_control = text_or_none(text),
            Field::Expires => access.expires = text_or_none(text),
            Field::Coding => access.coding = text_or_none(text),
            Field::Agent => access.agent = text_or_none(text),
            Field::Referrer => access.referrer = text_or_none(text),
            // A list that goes on: it is something else that stands there.
            Field::Xact if text.ends_with(b",") => return None,
            Field::Xact => access.xact = text_or_none(text),
            Field::Hierarchy => access.hierarchy = text_or_none(text),
            Field::Peer => access.peer = text_or_none(text),
            Field::PeerList => access.peer = text_or_none(last_of_list(text)),
            Field::Termination => access.termination = text,
        }
        Some(())
    }
}

/// An address without its port.
fn address(text: &[u8]) -> Option<&[u8]> {
    let (address, port) = text.split_at(memchr::memrchr(b':', text)?);
    let plausible = port[1..].iter().all(u8::is_ascii_digit) && !address.contains(&b' ');
    plausible.then_some(address)
}

fn is_none(text: &[u8]) -> bool {
    text.is_empty() || text == b"-"
}

fn text_or_none(text: &[u8]) -> &[u8] {
    if text == b"-" { b"" } else { text }
}

/// A whole number without a sign.
#[inline]
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    text.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| value * 10 + u64::from(digit))
    })
}

fn signed(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(rest) => Some(-unsigned(rest)?.cast_signed()),
        None => Some(unsigned(text)?.cast_signed()),
    }
}

/// Seconds, whole or with a fraction, in microseconds.
fn seconds_us(text: &[u8]) -> Option<i64> {
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &b""[..]),
    };
    if !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    signed(whole)?.checked_mul(1_000_000)?.checked_add(fraction_us(fraction))
}

/// A duration in units of so many microseconds; `-` and what is negative are none. HAProxy puts a `+` before one
/// that was written before the end.
fn duration(text: &[u8], unit_us: u64) -> Option<Option<u64>> {
    if is_none(text) {
        return Some(None);
    }
    let value = signed(text.strip_prefix(b"+").unwrap_or(text))?;
    Some(u64::try_from(value).ok().and_then(|value| value.checked_mul(unit_us)))
}

fn bytes(text: &[u8]) -> Option<u64> {
    if text == b"-" {
        return Some(0);
    }
    unsigned(text.strip_prefix(b"+").unwrap_or(text))
}

fn status(text: &[u8]) -> Option<u16> {
    if text == b"-" || text == b"-1" {
        return Some(0);
    }
    let status = unsigned(text)?;
    (status < 1000).then_some(status as u16)
}

/// A server is what HAProxy passes a miss to; everything else that can respond has a name in angle brackets.
fn server(text: &[u8]) -> (&[u8], &[u8]) {
    match text.first() {
        Some(b'<') => (text, b""),
        _ if is_none(text) => (b"", b""),
        _ => (b"MISS", text),
    }
}

fn last_of_list(text: &[u8]) -> &[u8] {
    let at = text.iter().rposition(|byte| *byte == b' ').map_or(0, |at| at + 1);
    &text[at..]
}

/// What is no request line (a TLS greeting, say) becomes an URL without a method: the line is a line all the same.
fn request_line<'a>(text: &'a [u8], access: &mut Access<'a>) {
    let method =
        text.iter().take_while(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_')).count();
    if method == 0 || text.get(method) != Some(&b' ') {
        access.url = text_or_none(text);
        return;
    }
    access.method = &text[..method];
    let rest = &text[method + 1..];
    let end = memchr::memrchr(b' ', rest).filter(|at| rest[at + 1..].starts_with(b"HTTP/"));
    access.url = &rest[..end.unwrap_or(rest.len())];
    access.version = end.and_then(|at| Version::of(&rest[at + 1..]));
}

/// The field for a request's header field of this name (in lower case).
pub(super) fn of_header(name: &str) -> Field {
    match name {
        "host" => Field::Host,
        "user-agent" => Field::Agent,
        "referer" => Field::Referrer,
        name if is_field_name(name) => Field::Request(name.into()),
        _ => Field::Skip,
    }
}

fn is_field_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// The field for a response's header field of this name, where it says anything here.
pub(super) fn of_response_header(name: &str) -> Option<Field> {
    match name {
        "content-type" => Some(Field::ContentType),
        "cache-control" => Some(Field::CacheControl),
        "expires" => Some(Field::Expires),
        "content-encoding" => Some(Field::Coding),
        "vary" => Some(Field::Vary),
        "etag" | "last-modified" => Some(Field::Validator),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_with_a_fraction_become_microseconds() {
        assert_eq!(seconds_us(b"1.5"), Some(1_500_000));
        assert_eq!(seconds_us(b"1795207212.865"), Some(1_795_207_212_865_000));
        assert_eq!(seconds_us(b"0.0000019"), Some(1));
        for wrong in ["", ".", "1.x", "x", "1e3", "99999999999999999999"] {
            assert_eq!(seconds_us(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_duration_that_was_not_measured_is_none_and_no_error() {
        assert_eq!(duration(b"-", 1000), Some(None));
        assert_eq!(duration(b"-1", 1000), Some(None));
        assert_eq!(duration(b"+12", 1000), Some(Some(12_000)));
        assert_eq!(duration(b"12ms", 1000), None);
    }

    #[test]
    fn a_request_line_gives_method_and_url_whatever_is_in_it() {
        let of = |text: &'static str| {
            let mut access = Access::default();
            request_line(text.as_bytes(), &mut access);
            (std::str::from_utf8(access.method).unwrap(), std::str::from_utf8(access.url).unwrap())
        };
        assert_eq!(of("GET /a b HTTP/1.1"), ("GET", "/a b"));
        assert_eq!(of("GET /a"), ("GET", "/a"));
        assert_eq!(of("-"), ("", ""));
        assert_eq!(of("\\x16\\x03"), ("", "\\x16\\x03"));
        assert_eq!(of("GET"), ("", "GET"));
    }
}
