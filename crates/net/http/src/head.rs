//! The head of a request or a response.
//!
//! A head is parsed where it lies, in one go; what framing needs (lengths, codings, connection options) is pulled out
//! and checked on the way, the other fields can be walked later. Strict where leniency lets two parties disagree about
//! where a message ends (RFC 9112): such a head is an error.

mod quick;

use std::mem::MaybeUninit;

use memchr::memchr;
use thiserror::Error;

use self::quick::{Line, RequestLine, StatusLine};
use crate::field::{Field, Fields, decimal, has_token, tokens};

/// Longest head that is accepted, in bytes.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Upper bound on the header fields that are accepted.
pub const MAX_HEADERS: usize = 100;
/// Message for a head for which [`has_bare_line_feed`] holds.
const BARE_LINE_FEED: &str = "a line of the head ends with LF alone";

/// Malformed head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeadError {
    /// No end within [`MAX_HEAD_BYTES`].
    #[error("the head is longer than {MAX_HEAD_BYTES} bytes")]
    TooLong,
    /// The request line has no end within [`MAX_HEAD_BYTES`].
    #[error("the request line is longer than {MAX_HEAD_BYTES} bytes")]
    LineTooLong,
    /// More fields than [`MAX_HEADERS`].
    #[error("the head has more than {MAX_HEADERS} fields")]
    TooManyHeaders,
    /// Not HTTP: control characters, folded lines, white space before a colon and the like.
    #[error("the head is not HTTP/1: {0}")]
    Syntax(&'static str),
    /// A version other than 1.0 and 1.1.
    #[error("the version is neither HTTP/1.0 nor HTTP/1.1")]
    Version,
    /// `Content-Length` is not a number.
    #[error("Content-Length is not a decimal number")]
    BadContentLength,
    #[error("there are two Content-Length values and they differ")]
    ConflictingContentLength,
    /// A length and a transfer coding.
    #[error("there are both Content-Length and Transfer-Encoding")]
    LengthAndCoding,
    /// Codings whose last one is not a single `chunked`, or any in HTTP/1.0.
    #[error("Transfer-Encoding does not end with a single `chunked`, or stands in an HTTP/1.0 message")]
    BadTransferEncoding,
    /// A coding before `chunked`.
    #[error("Transfer-Encoding names a coding other than `chunked`")]
    UnknownCoding,
    /// A 1.1 request without `Host`, or any with two.
    #[error("a request needs exactly one Host")]
    BadHost,
}

impl HeadError {
    /// The status that a server refuses such a request with.
    pub fn status(self) -> u16 {
        match self {
            HeadError::TooLong | HeadError::TooManyHeaders => 431,
            HeadError::LineTooLong => 414,
            HeadError::UnknownCoding => 501,
            HeadError::Version => 505,
            _ => 400,
        }
    }
}

/// Minor version of HTTP/1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    Http10,
    Http11,
}

/// Fields of a head that decide on the body and the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Version of the message.
    pub version: Version,
    /// `Content-Length`.
    pub content_length: Option<u64>,
    /// `Transfer-Encoding: chunked`.
    pub chunked: bool,
    /// `Connection: close`.
    pub close: bool,
    /// `Connection: keep-alive`.
    pub keep_alive: bool,
    /// `Connection` says more than that: names of fields that are for this connection only.
    pub names_fields: bool,
}

/// Head of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'b> {
    /// Method, as sent: methods are case-sensitive.
    pub method: &'b str,
    /// Request target: origin form (`/path`), absolute form (`http://host/path`), `*`, or an authority.
    pub target: &'b str,
    /// Value of `Host`; none in HTTP/1.0 only.
    pub host: Option<&'b [u8]>,
    /// `Expect: 100-continue`, in HTTP/1.1 only.
    pub expect_continue: bool,
    pub facts: Facts,
    block: &'b [u8],
}

/// Head of a response.
#[derive(Debug, Clone, Copy)]
pub struct ResponseHead<'b> {
    /// Status code, three digits.
    pub status: u16,
    /// Reason phrase; may be empty.
    pub reason: &'b str,
    pub facts: Facts,
    block: &'b [u8],
}

impl<'b> RequestHead<'b> {
    /// Parses the head that `buf` begins with: it and its length, or none while it is not complete.
    pub fn parse(buf: &'b [u8]) -> Result<Option<(Self, usize)>, HeadError> {
        match Self::parse_usual(buf) {
            None => Self::parse_any(buf),
            found => Ok(found),
        }
    }

    /// Parses a head that looks as nearly all do; none when there is anything to think about.
    fn parse_usual(buf: &'b [u8]) -> Option<(Self, usize)> {
        let RequestLine { method, target, minor, end } = RequestLine::read(buf)?;
        let mut facts = Facts::new(Some(minor));
        let (mut host, mut expect_continue) = (None, false);
        let length = each_field(buf, end, |name, value| match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => host.replace(value).is_none(),
            6 if name.eq_ignore_ascii_case(b"expect") => {
                expect_continue |= has_token(value, "100-continue");
                true
            }
            _ => facts.take(name, value).is_ok(),
        })?;
        facts.check().ok()?;
        if host.is_none() && facts.version == Version::Http11 {
            return None;
        }
        expect_continue &= facts.version == Version::Http11;
        Some((Self { method, target, host, expect_continue, facts, block: &buf[end..length] }, length))
    }

    fn parse_any(buf: &'b [u8]) -> Result<Option<(Self, usize)>, HeadError> {
        let mut slots = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut raw = httparse::Request::new(&mut []);
        let status =
            raw.parse_with_uninit_headers(buf, &mut slots).map_err(|error| request_refusal(error, buf))?;
        let Some(length) = complete_length(buf, status)? else {
            return Ok(None);
        };
        let (Some(method), Some(target)) = (raw.method, raw.path) else {
            return Err(HeadError::Syntax("no method or target"));
        };
        if has_bare_line_feed(&buf[..length]) {
            return Err(HeadError::Syntax(BARE_LINE_FEED));
        }
        let mut facts = Facts::new(raw.version);
        let (mut hosts, mut host, mut expect_continue) = (0, None, false);
        for header in raw.headers.iter() {
            match header.name.len() {
                4 if header.name.eq_ignore_ascii_case("host") => {
                    hosts += 1;
                    host = Some(header.value.trim_ascii());
                }
                6 if header.name.eq_ignore_ascii_case("expect") => {
                    expect_continue |= has_token(header.value, "100-continue");
                }
                _ => facts.take(header.name.as_bytes(), header.value)?,
            }
        }
        facts.check()?;
        if hosts > 1 || (hosts == 0 && facts.version == Version::Http11) {
            return Err(HeadError::BadHost);
        }
        expect_continue &= facts.version == Version::Http11;
        Ok(Some((Self { method, target, host, expect_continue, facts, block: block(buf, length) }, length)))
    }

    /// The value of the first field of this name, whatever the case.
    pub fn header(&self, name: &str) -> Option<&'b [u8]> {
        first(self.headers(), name)
    }

    /// Remaining forwards by `Max-Forwards`, where that applies (RFC 9110, 7.6.2); at 0 the recipient responds itself.
    pub fn max_forwards(&self) -> Option<u64> {
        if !matches!(self.method, "OPTIONS" | "TRACE") {
            return None;
        }
        self.header("max-forwards").and_then(decimal)
    }

    /// All fields, in order.
    pub fn headers(&self) -> Fields<'b> {
        Fields::new(self.block, self.facts.names_fields)
    }
}

impl<'b> RequestHead<'b> {
    /// The head of a request that came in another form than HTTP/1, as the HTTP/1.1 head that means the same. `lines` are its
    /// fields, each with its line end, valid and without `Connection`; its body has `content_length` bytes, or any number.
    pub fn of_fields(
        method: &'b str,
        target: &'b str,
        host: Option<&'b [u8]>,
        content_length: Option<u64>,
        lines: &'b [u8],
    ) -> Self {
        let facts = Facts { content_length, ..Facts::new(Some(1)) };
        Self { method, target, host, expect_continue: false, facts, block: lines }
    }
}

/// A head, its length, and the value of a field that the caller named.
pub type Noted<'b> = (ResponseHead<'b>, usize, Option<&'b [u8]>);

impl<'b> ResponseHead<'b> {
    /// True for an interim response (1xx): the final response comes after it. Switching protocols (101) is none.
    pub fn is_interim(&self) -> bool {
        matches!(self.status, 100 | 102..=199)
    }

    /// The head of a response that came in another form than HTTP/1, as the HTTP/1.1 head that means the same. `lines` are its
    /// fields, each with its line end, valid and without `Connection`.
    pub fn of_fields(status: u16, content_length: Option<u64>, lines: &'b [u8]) -> Self {
        let facts = Facts { content_length, ..Facts::new(Some(1)) };
        Self { status, reason: "", facts, block: lines }
    }

    /// Parses the head that `buf` begins with: it and its length, or none while it is not complete.
    pub fn parse(buf: &'b [u8]) -> Result<Option<(Self, usize)>, HeadError> {
        Ok(Self::parse_noting(buf, "")?.map(|(head, length, _)| (head, length)))
    }

    /// The same, and the value of the first field of this name, as [`ResponseHead::header`] gives it: whoever always wants
    /// one field saves looking for it.
    #[inline]
    pub fn parse_noting(buf: &'b [u8], name: &str) -> Result<Option<Noted<'b>>, HeadError> {
        if let Some(found) = Self::parse_usual(buf, name) {
            return Ok(Some(found));
        }
        Ok(Self::parse_any(buf)?.map(|(head, length)| (head, length, head.header(name))))
    }

    /// Parses a head that looks as nearly all do; none when there is anything to think about.
    #[inline]
    fn parse_usual(buf: &'b [u8], noted: &str) -> Option<(Self, usize, Option<&'b [u8]>)> {
        let StatusLine { minor, status, reason, end } = StatusLine::read(buf)?;
        let (mut facts, mut found) = (Facts::new(Some(minor)), None);
        let length = each_field(buf, end, |name, value| {
            if name.len() == noted.len() && found.is_none() && name.eq_ignore_ascii_case(noted.as_bytes()) {
                found = Some(value);
            }
            facts.take(name, value).is_ok()
        })?;
        facts.check().ok()?;
        Some((Self { status, reason, facts, block: &buf[end..length] }, length, found))
    }

    fn parse_any(buf: &'b [u8]) -> Result<Option<(Self, usize)>, HeadError> {
        let mut slots = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut raw = httparse::Response::new(&mut []);
        let status = httparse::ParserConfig::default()
            .parse_response_with_uninit_headers(&mut raw, buf, &mut slots)
            .map_err(refusal)?;
        let Some(length) = complete_length(buf, status)? else {
            return Ok(None);
        };
        let Some(status) = raw.code.filter(|code| *code >= 100) else {
            return Err(HeadError::Syntax("the status code is not 100 to 999"));
        };
        if has_bare_line_feed(&buf[..length]) {
            return Err(HeadError::Syntax(BARE_LINE_FEED));
        }
        let mut facts = Facts::new(raw.version);
        for header in raw.headers.iter() {
            facts.take(header.name.as_bytes(), header.value)?;
        }
        facts.check()?;
        let reason = raw.reason.unwrap_or("");
        Ok(Some((Self { status, reason, facts, block: block(buf, length) }, length)))
    }

    /// The value of the first field of this name, whatever the case.
    pub fn header(&self, name: &str) -> Option<&'b [u8]> {
        first(self.headers(), name)
    }

    /// All fields, in order.
    pub fn headers(&self) -> Fields<'b> {
        Fields::new(self.block, self.facts.names_fields)
    }
}

impl Facts {
    fn new(minor: Option<u8>) -> Self {
        let version = if minor == Some(1) { Version::Http11 } else { Version::Http10 };
        Self {
            version,
            content_length: None,
            chunked: false,
            close: false,
            keep_alive: false,
            names_fields: false,
        }
    }

    /// Whether the sender of this message lets the connection live on after it (RFC 9112, 9.3).
    pub fn persists(&self) -> bool {
        match self.version {
            Version::Http11 => !self.close,
            Version::Http10 => self.keep_alive && !self.close,
        }
    }

    #[inline]
    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        match name.len() {
            10 if name.eq_ignore_ascii_case(b"connection") => {
                self.take_options(value);
                Ok(())
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => self.take_length(value),
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => self.take_codings(value),
            _ => Ok(()),
        }
    }

    fn take_options(&mut self, value: &[u8]) {
        match value {
            b"keep-alive" => self.keep_alive = true,
            b"close" => self.close = true,
            _ => {
                for option in tokens(value) {
                    if option.eq_ignore_ascii_case(b"close") {
                        self.close = true;
                    } else if option.eq_ignore_ascii_case(b"keep-alive") {
                        self.keep_alive = true;
                    } else {
                        self.names_fields = true;
                    }
                }
            }
        }
    }

    /// Only `chunked` is undone here. Without it at the end, the end of the message is unknown (RFC 9112, 6.3);
    /// what stands before it is merely not understood (6.1).
    fn take_codings(&mut self, value: &[u8]) -> Result<(), HeadError> {
        let is_chunked = |coding: &[u8]| coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
        if self.chunked {
            return Err(HeadError::BadTransferEncoding);
        }
        let mut codings = value.rsplit(|&byte| byte == b',');
        self.chunked = codings.next().is_some_and(is_chunked);
        match codings.next() {
            None if self.chunked => Ok(()),
            Some(before) if self.chunked && !is_chunked(before) && !codings.any(is_chunked) => {
                Err(HeadError::UnknownCoding)
            }
            _ => Err(HeadError::BadTransferEncoding),
        }
    }

    /// The same length may be said more than once, in one field or in several (RFC 9112, 6.3), and each must be one.
    fn take_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        if self.content_length.is_none()
            && let Some(length) = decimal(value)
        {
            self.content_length = Some(length);
            return Ok(());
        }
        for member in value.split(|&byte| byte == b',') {
            let length = decimal(member.trim_ascii()).ok_or(HeadError::BadContentLength)?;
            if self.content_length.is_some_and(|other| other != length) {
                return Err(HeadError::ConflictingContentLength);
            }
            self.content_length = Some(length);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), HeadError> {
        match (self.chunked, self.content_length, self.version) {
            (true, Some(_), _) => Err(HeadError::LengthAndCoding),
            (true, None, Version::Http10) => Err(HeadError::BadTransferEncoding),
            _ => Ok(()),
        }
    }
}

/// Hands all fields from `at` on to `take`, as long as that is content: the length of the head; none when it is not complete
/// or there is anything to think about.
#[inline]
fn each_field<'b>(
    buf: &'b [u8],
    mut at: usize,
    mut take: impl FnMut(&'b [u8], &'b [u8]) -> bool,
) -> Option<usize> {
    for _ in 0..=MAX_HEADERS {
        let (line, next) = quick::line(buf, at)?;
        match line {
            Line::Field(name, value) if take(name, value) => at = next,
            Line::Field(..) => return None,
            Line::End => return Some(next).filter(|length| *length <= MAX_HEAD_BYTES),
        }
    }
    None
}

/// The length of a complete head; none when more bytes are needed and may come.
fn complete_length(buf: &[u8], status: httparse::Status<usize>) -> Result<Option<usize>, HeadError> {
    match status {
        httparse::Status::Complete(length) if length <= MAX_HEAD_BYTES => Ok(Some(length)),
        httparse::Status::Partial if buf.len() < MAX_HEAD_BYTES => Ok(None),
        _ if is_first_line_whole(&buf[..MAX_HEAD_BYTES.min(buf.len())]) => Err(HeadError::TooLong),
        _ => Err(HeadError::LineTooLong),
    }
}

/// Whether a line of a head, or one before it, ends without CR. A recipient may take such an end for one, or not (RFC 9112, 2.2): a
/// field behind it is a field for one and part of a value for another.
fn has_bare_line_feed(head: &[u8]) -> bool {
    memchr::memchr_iter(b'\n', head).any(|at| at == 0 || head[at - 1] != b'\r')
}

fn is_first_line_whole(buf: &[u8]) -> bool {
    let begin = buf.iter().position(|b| !matches!(b, b'\r' | b'\n'));
    begin.is_some_and(|begin| memchr(b'\n', &buf[begin..]).is_some())
}

/// The field lines of a complete head.
fn block(buf: &[u8], length: usize) -> &[u8] {
    // Empty lines before the start line are allowed, and skipped by the parser too.
    let begin = buf.iter().position(|b| !matches!(b, b'\r' | b'\n')).unwrap_or(0);
    let start_line = memchr(b'\n', &buf[begin..length]).map_or(length, |at| begin + at + 1);
    &buf[start_line..length]
}

fn first<'b>(mut fields: Fields<'b>, name: &str) -> Option<&'b [u8]> {
    fields.find(|field: &Field<'_>| field.is(name)).map(|field| field.value)
}

// Anything may stand in the place of a version: only of a version can it be said that it is not supported.
fn request_refusal(error: httparse::Error, buf: &[u8]) -> HeadError {
    let line = buf.trim_ascii_start().split(|&byte| byte == b'\n').next().unwrap_or(buf);
    let mut words = line.trim_ascii_end().splitn(3, |&byte| byte == b' ').skip(2);
    match (error, words.next()) {
        (httparse::Error::Version, Some([b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'])) => {
            HeadError::Version
        }
        (httparse::Error::Version, _) => refusal(httparse::Error::Token),
        _ => refusal(error),
    }
}

fn refusal(error: httparse::Error) -> HeadError {
    match error {
        httparse::Error::TooManyHeaders => HeadError::TooManyHeaders,
        httparse::Error::Version => HeadError::Version,
        httparse::Error::HeaderName => HeadError::Syntax("a field name has a character that it may not have"),
        httparse::Error::HeaderValue => HeadError::Syntax("a field value has a control character"),
        httparse::Error::NewLine => HeadError::Syntax("a line does not end as it must"),
        httparse::Error::Status => HeadError::Syntax("the status line is broken"),
        httparse::Error::Token => HeadError::Syntax("the start line is broken"),
    }
}

#[cfg(test)]
mod tests;
