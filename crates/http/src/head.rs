//! What does the head of a request or a reply say?
//!
//! A head is parsed where it lies, in one go; what framing needs (lengths, codings, connection options) is pulled out
//! and checked on the way, the other fields can be walked later. Strict where leniency lets two parties disagree about
//! where a message ends (RFC 9112): such a head is an error.

use std::mem::MaybeUninit;

use memchr::memchr;
use thiserror::Error;

use crate::field::{Field, Fields, decimal, list, list_has};

/// Longest head that is accepted, in bytes.
pub const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Most header fields that are accepted.
pub const MAX_HEADERS: usize = 100;

/// Why a head is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeadError {
    /// No end within [`MAX_HEAD_BYTES`].
    #[error("the head is longer than {MAX_HEAD_BYTES} bytes")]
    TooLong,
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
    /// Two different lengths.
    #[error("there are two Content-Length values and they differ")]
    ConflictingContentLength,
    /// A length and a transfer coding.
    #[error("there are both Content-Length and Transfer-Encoding")]
    LengthAndCoding,
    /// A coding other than a single `chunked`, or any in HTTP/1.0.
    #[error("Transfer-Encoding is not `chunked` alone, or stands in an HTTP/1.0 message")]
    BadTransferEncoding,
    /// A 1.1 request without `Host`, or any with two.
    #[error("a request needs exactly one Host")]
    BadHost,
}

impl HeadError {
    /// The status that a server refuses such a request with.
    pub fn status(self) -> u16 {
        match self {
            HeadError::TooLong | HeadError::TooManyHeaders => 431,
            HeadError::Version => 505,
            _ => 400,
        }
    }
}

/// Version of HTTP/1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// What a head says about the body and the connection.
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
    /// Body and connection.
    pub facts: Facts,
    block: &'b [u8],
}

/// Head of a reply.
#[derive(Debug, Clone, Copy)]
pub struct ResponseHead<'b> {
    /// Status code, three digits.
    pub status: u16,
    /// Reason phrase; may be empty.
    pub reason: &'b str,
    /// Body and connection.
    pub facts: Facts,
    block: &'b [u8],
}

impl<'b> RequestHead<'b> {
    /// Parses the head that `buf` begins with: it and its length, or none while it is not complete.
    pub fn parse(buf: &'b [u8]) -> Result<Option<(Self, usize)>, HeadError> {
        let mut slots = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut raw = httparse::Request::new(&mut []);
        let status = raw
            .parse_with_uninit_headers(buf, &mut slots)
            .map_err(refusal)?;
        let Some(length) = complete_length(buf, status)? else {
            return Ok(None);
        };
        let (Some(method), Some(target)) = (raw.method, raw.path) else {
            return Err(HeadError::Syntax("no method or target"));
        };
        let mut facts = Facts::new(raw.version);
        let (mut hosts, mut host, mut expect_continue) = (0, None, false);
        for header in raw.headers.iter() {
            match header.name.len() {
                4 if header.name.eq_ignore_ascii_case("host") => {
                    hosts += 1;
                    host = Some(header.value.trim_ascii());
                }
                6 if header.name.eq_ignore_ascii_case("expect") => {
                    expect_continue |= list_has(header.value, "100-continue");
                }
                _ => facts.take(header)?,
            }
        }
        facts.check()?;
        if hosts > 1 || (hosts == 0 && facts.version == Version::Http11) {
            return Err(HeadError::BadHost);
        }
        expect_continue &= facts.version == Version::Http11;
        Ok(Some((
            Self {
                method,
                target,
                host,
                expect_continue,
                facts,
                block: block(buf, length),
            },
            length,
        )))
    }

    /// The value of the first field of this name, whatever the case.
    pub fn header(&self, name: &str) -> Option<&'b [u8]> {
        first(self.headers(), name)
    }

    /// All fields, in order.
    pub fn headers(&self) -> Fields<'b> {
        Fields::new(self.block)
    }
}

impl<'b> ResponseHead<'b> {
    /// Parses the head that `buf` begins with: it and its length, or none while it is not complete.
    pub fn parse(buf: &'b [u8]) -> Result<Option<(Self, usize)>, HeadError> {
        let mut slots = [const { MaybeUninit::uninit() }; MAX_HEADERS];
        let mut raw = httparse::Response::new(&mut []);
        let status = httparse::ParserConfig::default()
            .parse_response_with_uninit_headers(&mut raw, buf, &mut slots)
            .map_err(refusal)?;
        let Some(length) = complete_length(buf, status)? else {
            return Ok(None);
        };
        let Some(status) = raw.code else {
            return Err(HeadError::Syntax("no status code"));
        };
        let mut facts = Facts::new(raw.version);
        for header in raw.headers.iter() {
            facts.take(header)?;
        }
        facts.check()?;
        let reason = raw.reason.unwrap_or("");
        Ok(Some((
            Self {
                status,
                reason,
                facts,
                block: block(buf, length),
            },
            length,
        )))
    }

    /// The value of the first field of this name, whatever the case.
    pub fn header(&self, name: &str) -> Option<&'b [u8]> {
        first(self.headers(), name)
    }

    /// All fields, in order.
    pub fn headers(&self) -> Fields<'b> {
        Fields::new(self.block)
    }
}

impl Facts {
    fn new(minor: Option<u8>) -> Self {
        let version = if minor == Some(1) {
            Version::Http11
        } else {
            Version::Http10
        };
        Self {
            version,
            content_length: None,
            chunked: false,
            close: false,
            keep_alive: false,
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
    fn take(&mut self, header: &httparse::Header<'_>) -> Result<(), HeadError> {
        match header.name.len() {
            10 if header.name.eq_ignore_ascii_case("connection") => {
                self.close |= list_has(header.value, "close");
                self.keep_alive |= list_has(header.value, "keep-alive");
            }
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                self.take_length(header.value)?
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                let alone =
                    !self.chunked && header.value.trim_ascii().eq_ignore_ascii_case(b"chunked");
                if !alone {
                    return Err(HeadError::BadTransferEncoding);
                }
                self.chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// The same length may be said more than once, in one field or in several (RFC 9112, 6.3).
    fn take_length(&mut self, value: &[u8]) -> Result<(), HeadError> {
        let mut members = list(value).peekable();
        if members.peek().is_none() {
            return Err(HeadError::BadContentLength);
        }
        for member in members {
            let length = decimal(member).ok_or(HeadError::BadContentLength)?;
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

/// The length of a complete head; none when more bytes are needed and may come.
fn complete_length(
    buf: &[u8],
    status: httparse::Status<usize>,
) -> Result<Option<usize>, HeadError> {
    match status {
        httparse::Status::Complete(length) if length <= MAX_HEAD_BYTES => Ok(Some(length)),
        httparse::Status::Partial if buf.len() < MAX_HEAD_BYTES => Ok(None),
        _ => Err(HeadError::TooLong),
    }
}

/// The field lines of a complete head.
fn block(buf: &[u8], length: usize) -> &[u8] {
    // Empty lines before the start line are allowed, and skipped by the parser too.
    let begin = buf
        .iter()
        .position(|b| !matches!(b, b'\r' | b'\n'))
        .unwrap_or(0);
    let start_line = memchr(b'\n', &buf[begin..length]).map_or(length, |at| begin + at + 1);
    &buf[start_line..length]
}

fn first<'b>(mut fields: Fields<'b>, name: &str) -> Option<&'b [u8]> {
    fields
        .find(|field: &Field<'_>| field.is(name))
        .map(|field| field.value)
}

fn refusal(error: httparse::Error) -> HeadError {
    match error {
        httparse::Error::TooManyHeaders => HeadError::TooManyHeaders,
        httparse::Error::Version => HeadError::Version,
        httparse::Error::HeaderName => {
            HeadError::Syntax("a field name has a character that it may not have")
        }
        httparse::Error::HeaderValue => HeadError::Syntax("a field value has a control character"),
        httparse::Error::NewLine => HeadError::Syntax("a line does not end as it must"),
        httparse::Error::Status => HeadError::Syntax("the status line is broken"),
        httparse::Error::Token => HeadError::Syntax("the start line is broken"),
    }
}
