//! The fields of a line, and how each is read.

use std::net::Ipv6Addr;

use super::find::is_without;
use super::time::{Clock, TimePattern, fraction_us, ticks_in_second};
use crate::access::{Access, HttpVersion, LineKind};

/// One field of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Field {
    /// Something that says nothing about caching, or less than another field.
    Skip,
    /// All that is left of the line, or nothing.
    Rest,
    /// Seconds since 1970, whole or with a fraction.
    EpochSeconds,
    EpochMillis,
    EpochMicros,
    /// Digits of the second's fraction.
    Fraction,
    /// A time in words.
    Time(TimePattern),
    /// A time that another field has too: it is only cut out.
    UnusedTime(TimePattern),
    /// A time in JSON: a number in any unit, or one of these patterns.
    AnyTime(TimeOrigin, Box<[TimePattern; 3]>),
    /// The end of the response, where the time is its beginning.
    EndTime(Box<[TimePattern; 3]>),
    Duration(DurationUnit),
    /// A part of the time that it took; the parts are added.
    DurationPart(DurationUnit),
    Client(FieldSource),
    /// An address and a port, with a colon between them.
    ClientAndPort,
    Outcome(FieldSource),
    /// The server that responded, as HAProxy says it: a server, `<CACHE>`, `<NOSRV>`.
    Server,
    /// `1` when HAProxy's cache had it.
    CacheHit,
    /// `1` or `true` when the cache had it, `0` or `false` when it had not.
    HitFlag,
    /// `true` when the cache was asked: a miss, where no [`Field::HitFlag`] of the line says otherwise.
    CacheLookup,
    /// Whether the line is a request of a client or a fetch from a backend (`Varnish:side`).
    Side,
    Status,
    /// Bytes of the response, with its head.
    Bytes,
    /// Bytes of the response's body alone.
    LineLayout,
    /// Version of HTTP of the request.
    Version,
    Method,
    Url,
    Scheme,
    Host(FieldSource),
    Path,
    /// A path without the slash before it (Akamai).
    RootlessPath,
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

/// Directness with which a field states its quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FieldSource {
    /// Used where the line has nothing more direct: `X-Forwarded-For`, the configured name of a server.
    Indirect,
    Direct,
}

/// Program that wrote a time in JSON, as far as the key says, the one that knows the request best last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimeOrigin {
    /// One that took the line on (`@timestamp`).
    Shipper,
    /// Either (`timestamp`, `date`).
    Unknown,
    /// The proxy (`time_local`, `ts`).
    Proxy,
}

/// A unit of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DurationUnit {
    /// Seconds without a fraction.
    WholeSecond,
    /// Seconds with a fraction.
    Second,
    /// Milliseconds without a fraction.
    WholeMillisecond,
    /// Milliseconds with a fraction.
    Millisecond,
    Microsecond,
    Nanosecond,
}

impl DurationUnit {
    /// Microseconds of one; a nanosecond is less than one.
    pub(crate) fn us(self) -> u64 {
        match self {
            DurationUnit::WholeSecond | DurationUnit::Second => 1_000_000,
            DurationUnit::WholeMillisecond | DurationUnit::Millisecond => 1000,
            DurationUnit::Microsecond | DurationUnit::Nanosecond => 1,
        }
    }

    /// The unit as it is written behind a number.
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            DurationUnit::WholeSecond | DurationUnit::Second => "s",
            DurationUnit::WholeMillisecond | DurationUnit::Millisecond => "ms",
            DurationUnit::Microsecond => "us",
            DurationUnit::Nanosecond => "ns",
        }
    }
}

impl Field {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Field::Skip | Field::SkipList | Field::Braces | Field::Rest => "field",
            Field::EpochSeconds | Field::EpochMillis | Field::EpochMicros => "time",
            Field::Time(_) | Field::UnusedTime(_) | Field::AnyTime(..) => "time",
            Field::EndTime(_) => "end of the response",
            Field::Fraction => "fraction of the second",
            Field::Duration(_) | Field::DurationPart(_) => "duration",
            Field::Client(_) | Field::ClientAndPort => "client",
            Field::Outcome(_) | Field::CacheHit | Field::HitFlag | Field::CacheLookup => "outcome",
            Field::Server => "server",
            Field::Side => "side (`c` or `b`)",
            Field::Status => "status",
            Field::Bytes | Field::LineLayout => "number of bytes",
            Field::Version => "version of HTTP",
            Field::Method => "method",
            Field::Url | Field::HostPath => "URL",
            Field::Scheme => "scheme",
            Field::Host(_) => "host",
            Field::Path | Field::RootlessPath => "path",
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

    /// Use of the field, for people; none: it is skipped.
    pub(crate) fn purpose(&self) -> Option<&'static str> {
        match self {
            Field::Skip | Field::SkipList | Field::Braces | Field::Rest | Field::UnusedTime(_) => None,
            Field::Client(FieldSource::Indirect) => Some("client, as forwarded"),
            Field::Duration(DurationUnit::WholeSecond | DurationUnit::Second) => Some("duration in seconds"),
            Field::Duration(DurationUnit::WholeMillisecond | DurationUnit::Millisecond) => {
                Some("duration in ms")
            }
            Field::Duration(DurationUnit::Microsecond) => Some("duration in µs"),
            Field::Duration(DurationUnit::Nanosecond) => Some("duration in ns"),
            Field::DurationPart(_) => Some("part of the duration"),
            Field::LineLayout => Some("bytes of the body"),
            Field::Bytes => Some("bytes"),
            field => Some(field.name()),
        }
    }

    /// The unit of a duration.
    pub(crate) fn duration_unit(&self) -> Option<DurationUnit> {
        match self {
            Field::Duration(unit) | Field::DurationPart(unit) => Some(*unit),
            Field::EndTime(_) => Some(DurationUnit::Millisecond),
            _ => None,
        }
    }

    /// True when there is never a blank in it, whatever follows it.
    pub(crate) fn is_one_word(&self) -> bool {
        matches!(
            self,
            Field::Host(_)
                | Field::Peer
                | Field::Outcome(_)
                | Field::Server
                | Field::Hierarchy
                | Field::Client(FieldSource::Direct)
                | Field::ClientAndPort
                | Field::Xact
        )
    }

    /// True when no blank is in it where it stands last in the line.
    pub(crate) fn is_last_word(&self) -> bool {
        self.is_one_word() || self.is_url() || matches!(self, Field::Method)
    }

    /// True for an URL, or its path.
    pub(crate) fn is_url(&self) -> bool {
        matches!(self, Field::Url | Field::HostPath | Field::Path)
    }

    /// True for a list, which may have a blank behind each comma.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self, Field::PeerList | Field::SkipList | Field::Client(FieldSource::Indirect))
    }

    /// Takes what stands in the field; none: it cannot be that.
    #[inline(always)]
    pub(crate) fn take<'a>(&self, text: &'a [u8], access: &mut Access<'a>, clock: &mut Clock) -> Option<()> {
        match self {
            // Another line stands in it.
            Field::Rest if memchr::memmem::find(text, b" HTTP/").is_some() => return None,
            Field::Skip | Field::SkipList | Field::Braces | Field::Rest => {}
            // Read by those who need them.
            Field::Request(_) | Field::Cookie(_) | Field::Vary | Field::Validator => {}
            Field::Query => {
                let text = text_or_none(text);
                access.query = text.strip_prefix(b"?").unwrap_or(text);
            }
            Field::EpochSeconds => clock.epoch_us = Some(epoch_us(text)?),
            Field::EpochMillis => clock.epoch_us = Some(signed(text)?.checked_mul(1000)?),
            Field::EpochMicros => clock.epoch_us = Some(signed(text)?),
            Field::Fraction => {
                if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
                    return None;
                }
                clock.fraction_us = fraction_us(text);
            }
            // Read by its own pattern, which knows where it ends.
            Field::Time(_) | Field::UnusedTime(_) => {}
            Field::AnyTime(_, patterns) => clock.set_time(&any_time(text, patterns.as_slice())?),
            Field::EndTime(patterns) => {
                clock.end_us = any_time(text, patterns.as_slice()).and_then(|end| end.unix_us());
            }
            Field::Duration(unit) => access.duration_us = duration_us(text, *unit)?,
            Field::DurationPart(unit) => {
                let part_us = duration_us(text, *unit)?;
                clock.lacks_part |= part_us.is_none();
                let sum_us = access.duration_us.unwrap_or(0).saturating_add(part_us.unwrap_or(0));
                access.duration_us = Some(sum_us);
            }
            Field::Client(_) => access.client = client(text),
            Field::ClientAndPort => access.client = text_or_none(before_port(text)?),
            Field::Outcome(_) | Field::Server if !is_without(b'"', text) => return None,
            Field::Outcome(_) => access.outcome = text_or_none(text),
            Field::Server => (access.outcome, access.peer) = server(text),
            Field::CacheHit => match text {
                b"1" => access.outcome = b"<CACHE>",
                // A server that is named beside it says the same, and more.
                b"0" if access.outcome.is_empty() => access.outcome = b"MISS",
                _ => {}
            },
            Field::HitFlag => {
                access.outcome = match text {
                    b"1" | b"true" => b"HIT",
                    b"0" | b"false" => b"MISS",
                    _ => text_or_none(text),
                };
            }
            Field::CacheLookup if text == b"true" && access.outcome.is_empty() => access.outcome = b"MISS",
            Field::CacheLookup => {}
            Field::Side => {
                access.kind = match text {
                    b"c" => LineKind::Request,
                    b"b" => LineKind::Fetch,
                    _ => return None,
                };
            }
            Field::Status => access.status = status(text)?,
            Field::Bytes | Field::LineLayout => access.bytes = bytes(text)?,
            Field::Version => access.version = HttpVersion::parse(text).or(access.version),
            // A request line may stand beside these.
            Field::Method if is_none(text) => {}
            Field::Url | Field::Path if is_none(text) => {}
            Field::Method => access.method = text,
            Field::Url | Field::Path => access.url = text,
            Field::RootlessPath => {
                access.url = text_or_none(text);
                access.is_rootless = !text.starts_with(b"/");
            }
            Field::Host(_) => access.host = text_or_none(text),
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

/// The address of a client: the first of a forwarded list, without a port. `-` is nobody.
#[inline]
fn client(text: &[u8]) -> &[u8] {
    if is_without(b',', text) && is_without(b':', text) {
        return text_or_none(text);
    }
    let first = memchr::memchr(b',', text).map_or(text, |at| &text[..at]);
    text_or_none(without_port(first.trim_ascii()))
}

/// An address or a name without the port behind it. IPv6 with a port has brackets in some logs and none in others.
fn without_port(text: &[u8]) -> &[u8] {
    if let Some(inside) = text.strip_prefix(b"[")
        && let Some(end) = memchr::memchr(b']', inside)
    {
        return &inside[..end];
    }
    let Some(colon) = memchr::memrchr(b':', text) else { return text };
    let (address, port) = (&text[..colon], &text[colon + 1..]);
    if unsigned(port).is_none_or(|port| port > u64::from(u16::MAX)) {
        return text;
    }
    let is_ipv6 = |text: &[u8]| std::str::from_utf8(text).is_ok_and(|text| text.parse::<Ipv6Addr>().is_ok());
    let is_plain = memchr::memchr(b':', address).is_none();
    if is_plain || (!is_ipv6(text) && is_ipv6(address)) { address } else { text }
}

/// Address before a port that is always there; none: no address.
fn before_port(text: &[u8]) -> Option<&[u8]> {
    let address = match memchr::memrchr(b':', text) {
        Some(colon) if text[colon + 1..].iter().all(u8::is_ascii_digit) => &text[..colon],
        _ => text,
    };
    memchr::memchr(b' ', address).is_none().then_some(address)
}

/// True for an IPv4 address, or a name, with a port behind it; none: it may be an IPv6 address.
pub(crate) fn has_port(client: &[u8]) -> Option<bool> {
    match client.iter().filter(|byte| **byte == b':').count() {
        0 => Some(false),
        1 => Some(without_port(client).len() < client.len()),
        _ => None,
    }
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

#[inline]
fn signed(text: &[u8]) -> Option<i64> {
    match text.strip_prefix(b"-") {
        Some(rest) => Some(-unsigned(rest)?.cast_signed()),
        None => Some(unsigned(text)?.cast_signed()),
    }
}

/// A number in two parts: digits, and those behind its point.
#[inline]
fn decimal(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &b""[..]),
    };
    fraction.iter().all(u8::is_ascii_digit).then_some((whole, fraction))
}

/// An instant since 1970 in microseconds. Its digits say what it counts, whatever the field is called.
#[inline]
pub(crate) fn epoch_us(text: &[u8]) -> Option<i64> {
    let (whole, fraction) = decimal(text)?;
    match ticks_in_second(whole.len())? {
        1 => signed(whole)?.checked_mul(1_000_000)?.checked_add(fraction_us(fraction)),
        1000 => signed(whole)?.checked_mul(1000)?.checked_add(fraction_us(fraction) / 1000),
        1_000_000 => signed(whole),
        1_000_000_000 => signed(&whole[..whole.len() - 3]),
        // Since 1601: no log has it.
        _ => None,
    }
}

pub(super) fn any_time(text: &[u8], patterns: &[TimePattern]) -> Option<Clock> {
    if text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.') {
        return Some(Clock::at(epoch_us(text)?));
    }
    patterns.iter().find_map(|pattern| {
        let mut clock = Clock::default();
        let rest = pattern.read(text, &mut clock)?;
        rest.is_empty().then_some(clock)
    })
}

/// A duration; `-` and what is negative are none. HAProxy puts a `+` before one that was written before the end. A fraction of a unit
/// that has none is a sign of another unit, or of another field.
#[inline(always)]
fn duration_us(text: &[u8], unit: DurationUnit) -> Option<Option<u64>> {
    if is_none(text) {
        return Some(None);
    }
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let (whole, fraction) = match unit {
        DurationUnit::Second => decimal(text.strip_suffix(b"s").unwrap_or(text))?,
        DurationUnit::WholeSecond | DurationUnit::Millisecond => decimal(text)?,
        DurationUnit::WholeMillisecond | DurationUnit::Microsecond | DurationUnit::Nanosecond => {
            (text, &b""[..])
        }
    };
    if whole.first() == Some(&b'-') {
        return signed(whole).map(|_| None);
    }
    let whole = unsigned(whole)?;
    if unit == DurationUnit::Nanosecond {
        return Some(Some(whole / 1000));
    }
    let whole_us = whole.checked_mul(unit.us());
    if fraction.is_empty() {
        return Some(whole_us);
    }
    let part_us = fraction_us(fraction).unsigned_abs() * unit.us() / 1_000_000;
    Some(whole_us.and_then(|whole_us| whole_us.checked_add(part_us)))
}

#[inline]
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

/// Splits a request line. Text that is none (a TLS greeting, say) becomes a URL without a method: the line counts all
/// the same. Values from fields of their own take precedence.
#[inline(always)]
fn request_line<'a>(text: &'a [u8], access: &mut Access<'a>) {
    let method =
        text.iter().take_while(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_')).count();
    if method == 0 || text.get(method) != Some(&b' ') {
        if access.url.is_empty() {
            access.url = text_or_none(text);
        }
        return;
    }
    let rest = text[method + 1..].trim_ascii_end();
    let end = memchr::memrchr(b' ', rest)
        .filter(|at| rest[at + 1..].starts_with(b"HTTP/") || &rest[at + 1..] == b"-");
    if access.method.is_empty() {
        access.method = &text[..method];
    }
    if access.url.is_empty() {
        access.url = text_or_none(&rest[..end.unwrap_or(rest.len())]);
    }
    if let Some(at) = end.filter(|_| access.version.is_none()) {
        access.version = HttpVersion::parse(&rest[at + 1..]);
    }
}

/// The field for a request's header field of this name (in lower case).
pub(super) fn request_field(name: &str) -> Field {
    match name {
        "host" => Field::Host(FieldSource::Direct),
        "user-agent" => Field::Agent,
        "referer" => Field::Referrer,
        "x-forwarded-for" | "true-client-ip" | "cf-connecting-ip" | "x-real-ip" => {
            Field::Client(FieldSource::Indirect)
        }
        name if is_field_name(name) => Field::Request(name.into()),
        _ => Field::Skip,
    }
}

fn is_field_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

/// The field for a response's header field of this name, where it says anything here.
pub(super) fn response_field(name: &str) -> Option<Field> {
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

/// The same for a response as the proxy itself sent it, which may say what its cache did.
pub(super) fn sent_response_field(name: &str) -> Option<Field> {
    match name {
        "x-cache" | "x-cache-status" | "cache-status" => Some(Field::Outcome(FieldSource::Indirect)),
        name => response_field(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_read_in_whatever_unit_its_digits_show() {
        assert_eq!(epoch_us(b"1.5"), Some(1_500_000));
        assert_eq!(epoch_us(b"1795207212.865"), Some(1_795_207_212_865_000));
        assert_eq!(epoch_us(b"1795207212865"), Some(1_795_207_212_865_000));
        assert_eq!(epoch_us(b"1795207212865.25"), Some(1_795_207_212_865_250));
        assert_eq!(epoch_us(b"1795207212865000"), Some(1_795_207_212_865_000));
        assert_eq!(epoch_us(b"1795207212865000123"), Some(1_795_207_212_865_000));
        for wrong in ["", ".", "1.x", "x", "1e3", "128166372003061629", "99999999999999999999"] {
            assert_eq!(epoch_us(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_duration_that_was_not_measured_is_none_and_no_error() {
        assert_eq!(duration_us(b"-", DurationUnit::Millisecond), Some(None));
        assert_eq!(duration_us(b"-1", DurationUnit::WholeMillisecond), Some(None));
        assert_eq!(duration_us(b"-0.5", DurationUnit::Second), Some(None));
        assert_eq!(duration_us(b"+12", DurationUnit::Millisecond), Some(Some(12_000)));
        assert_eq!(duration_us(b"12ms", DurationUnit::Millisecond), None);
    }

    #[test]
    fn a_duration_is_read_in_every_unit() {
        assert_eq!(duration_us(b"0.0000019", DurationUnit::Second), Some(Some(1)));
        assert_eq!(duration_us(b"2", DurationUnit::WholeSecond), Some(Some(2_000_000)));
        assert_eq!(duration_us(b"1.25", DurationUnit::Millisecond), Some(Some(1250)));
        assert_eq!(duration_us(b"136000999", DurationUnit::Nanosecond), Some(Some(136_000)));
        assert_eq!(duration_us(b"0.057", DurationUnit::Microsecond), None);
        assert_eq!(duration_us(b"1782900004.156", DurationUnit::WholeMillisecond), None);
    }

    #[test]
    fn a_client_is_an_address_without_port_and_the_first_of_a_list() {
        for (text, expected) in [
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.1:64171", "192.0.2.1"),
            ("203.0.113.1, 10.0.0.1", "203.0.113.1"),
            ("203.0.113.1:80,10.0.0.1", "203.0.113.1"),
            ("2001:db8:3::f:64171", "2001:db8:3::f"),
            ("2001:db8:3::f", "2001:db8:3::f"),
            ("2001:db8:1:2:3:4:5:6:443", "2001:db8:1:2:3:4:5:6"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("a.example:80", "a.example"),
            ("-", ""),
            ("-:22222", ""),
            ("-, 10.0.0.1", ""),
            ("unix:", "unix:"),
            ("", ""),
        ] {
            assert_eq!(String::from_utf8_lossy(client(text.as_bytes())), expected, "{text}");
        }
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
        assert_eq!(of("GET /a -"), ("GET", "/a"));
        assert_eq!(of("-"), ("", ""));
        assert_eq!(of("- - -"), ("-", ""));
        assert_eq!(of("- - - "), ("-", ""));
        assert_eq!(of("\\x16\\x03"), ("", "\\x16\\x03"));
        assert_eq!(of("GET"), ("", "GET"));
    }
}
