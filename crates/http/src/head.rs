//! What does the head of a request or a reply say?
//!
//! A head is parsed where it lies, in one go; what framing needs (lengths, codings, connection options) is pulled out
//! and checked on the way, the other fields can be walked later. Strict where leniency lets two parties disagree about
//! where a message ends (RFC 9112): such a head is an error.

use std::mem::MaybeUninit;

use memchr::memchr;
use thiserror::Error;

use crate::field::{Field, Fields, decimal, has_token, tokens};

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
    /// Two different lengths.
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
        let status =
            raw.parse_with_uninit_headers(buf, &mut slots).map_err(|error| request_refusal(error, buf))?;
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
                    expect_continue |= has_token(header.value, "100-continue");
                }
                _ => facts.take(header)?,
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

    /// How often it may still be passed on, where that is said and counts (RFC 9110, 7.6.2); at 0 whoever has it answers.
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

impl<'b> ResponseHead<'b> {
    /// True for a word on the way (1xx): the reply itself comes after it. Switching protocols (101) is none.
    pub fn is_interim(&self) -> bool {
        matches!(self.status, 100 | 102..=199)
    }

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
        let Some(status) = raw.code.filter(|code| *code >= 100) else {
            return Err(HeadError::Syntax("the status code is not 100 to 999"));
        };
        let mut facts = Facts::new(raw.version);
        for header in raw.headers.iter() {
            facts.take(header)?;
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
    fn take(&mut self, header: &httparse::Header<'_>) -> Result<(), HeadError> {
        match header.name.len() {
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for option in tokens(header.value) {
                    if option.eq_ignore_ascii_case(b"close") {
                        self.close = true;
                    } else if option.eq_ignore_ascii_case(b"keep-alive") {
                        self.keep_alive = true;
                    } else {
                        self.names_fields = true;
                    }
                }
            }
            14 if header.name.eq_ignore_ascii_case("content-length") => self.take_length(header.value)?,
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                self.take_codings(header.value)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Only `chunked` is undone here. Without it at the end, nobody can tell where the message ends (RFC 9112, 6.3);
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

/// The length of a complete head; none when more bytes are needed and may come.
fn complete_length(buf: &[u8], status: httparse::Status<usize>) -> Result<Option<usize>, HeadError> {
    match status {
        httparse::Status::Complete(length) if length <= MAX_HEAD_BYTES => Ok(Some(length)),
        httparse::Status::Partial if buf.len() < MAX_HEAD_BYTES => Ok(None),
        _ if is_first_line_whole(&buf[..MAX_HEAD_BYTES.min(buf.len())]) => Err(HeadError::TooLong),
        _ => Err(HeadError::LineTooLong),
    }
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

/// What stands in the place of a version may be anything: only of a version can it be said that it is not spoken here.
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
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn request(text: &str) -> Result<Option<(RequestHead<'_>, usize)>, HeadError> {
        RequestHead::parse(text.as_bytes())
    }

    fn request_error(text: &str) -> Option<HeadError> {
        request(text).err()
    }

    #[test]
    fn a_request_gives_its_line_its_facts_and_its_fields() {
        let text = "GET http://a:1/x HTTP/1.1\r\nHost: a:1\r\nX-Assay:  1-2 \r\nExpect: 100-Continue\r\n\
                    Connection: close\r\n\r\nrest";
        let (head, length) = request(text).unwrap().unwrap();
        assert_eq!((head.method, head.target, head.facts.version), ("GET", "http://a:1/x", Version::Http11));
        assert_eq!(length, text.len() - 4);
        assert_eq!(head.host, Some(&b"a:1"[..]));
        assert_eq!(head.header("x-assay"), Some(&b"1-2"[..]));
        assert_eq!(head.header("y"), None);
        assert!(head.expect_continue && head.facts.close && !head.facts.keep_alive);
        assert_eq!(head.headers().count(), 4);
    }

    #[test]
    fn empty_lines_before_a_request_are_passed_over() {
        let text = "\r\n\nGET / HTTP/1.0\r\nA: b\r\n\r\n";
        let (head, length) = request(text).unwrap().unwrap();
        assert_eq!((head.header("a"), length), (Some(&b"b"[..]), text.len()));
    }

    #[test]
    fn only_options_and_trace_count_how_often_they_are_passed_on() {
        let left = |method: &str, value: &str| {
            let text = format!("{method} * HTTP/1.1\r\nHost: a\r\nMax-Forwards: {value}\r\n\r\n");
            request(&text).unwrap().unwrap().0.max_forwards()
        };
        assert_eq!((left("OPTIONS", "0"), left("TRACE", "7")), (Some(0), Some(7)));
        assert_eq!((left("GET", "0"), left("OPTIONS", "x")), (None, None));
    }

    #[test]
    fn a_reply_gives_its_status_and_its_facts() {
        let text = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5, 5\r\nContent-Length: 5\r\n\r\n";
        let (head, length) = ResponseHead::parse(text).unwrap().unwrap();
        assert_eq!((head.status, head.reason, length), (304, "Not Modified", text.len()));
        assert_eq!(head.facts.content_length, Some(5));
        assert!(matches!(ResponseHead::parse(b"HTTP/1.1 099 No\r\n\r\n"), Err(HeadError::Syntax(_))));
        let interim = |text: &str| ResponseHead::parse(text.as_bytes()).unwrap().unwrap().0.is_interim();
        assert!(
            interim("HTTP/1.1 100 Continue\r\n\r\n")
                && interim("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n")
        );
        assert!(!interim("HTTP/1.1 200 OK\r\n\r\n") && !interim("HTTP/1.1 101 Switch\r\n\r\n"));
        let bare = ResponseHead::parse(b"HTTP/1.0 200\r\n\r\n").unwrap().unwrap().0;
        assert_eq!((bare.status, bare.facts.version), (200, Version::Http10));
    }

    #[test]
    fn heads_that_two_parties_could_read_differently_are_refused() {
        let with = |fields: &str| request_error(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n"));
        assert_eq!(with("Content-Length: 1\r\nTransfer-Encoding: chunked"), Some(HeadError::LengthAndCoding));
        assert_eq!(with("Content-Length: 1\r\nContent-Length: 2"), Some(HeadError::ConflictingContentLength));
        assert_eq!(with("Content-Length: 1, 2"), Some(HeadError::ConflictingContentLength));
        for bad in ["", "+1", "1x", "0x10", "-1", "1 1", "1,", ",1", "1,,1", "18446744073709551616"] {
            assert_eq!(with(&format!("Content-Length: {bad}")), Some(HeadError::BadContentLength), "{bad}");
        }
        for bad in
            ["gzip", "chunked, chunked", "chunked, gzip", "xchunked", "identity", "\"chunked\"", "chunked,"]
        {
            assert_eq!(
                with(&format!("Transfer-Encoding: {bad}")),
                Some(HeadError::BadTransferEncoding),
                "{bad}"
            );
        }
        assert_eq!(with("Transfer-Encoding: gzip, chunked"), Some(HeadError::UnknownCoding));
        assert_eq!(with("Host: b"), Some(HeadError::BadHost));
        assert!(matches!(with("A: b\r\n c"), Some(HeadError::Syntax(_))), "folded line");
        assert!(matches!(with("A : b"), Some(HeadError::Syntax(_))), "white space before the colon");
        assert!(matches!(with("A: b\0c"), Some(HeadError::Syntax(_))), "control character");
        assert!(matches!(with("A: b\rc"), Some(HeadError::Syntax(_))), "bare CR");
        assert!(matches!(with(": b"), Some(HeadError::Syntax(_))), "no name");
        assert_eq!(with("Content-Length: 1, 1"), None);
        assert_eq!(with("Transfer-Encoding: CHUNKED"), None);
    }

    #[test]
    fn versions_and_hosts_must_be_right() {
        assert_eq!(request_error("GET / HTTP/1.1\r\n\r\n"), Some(HeadError::BadHost));
        assert_eq!(request_error("GET / HTTP/1.0\r\n\r\n"), None);
        assert_eq!(request_error("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), Some(HeadError::Version));
        let coded = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(request_error(coded), Some(HeadError::BadTransferEncoding));
    }

    #[test]
    fn limits_are_kept() {
        let many = "A: b\r\n".repeat(MAX_HEADERS + 1);
        let text = format!("GET / HTTP/1.0\r\n{many}\r\n");
        assert_eq!(request_error(&text), Some(HeadError::TooManyHeaders));
        let long = format!("GET /{} HTTP/1.0\r\n\r\n", "x".repeat(MAX_HEAD_BYTES));
        assert_eq!(request_error(&long), Some(HeadError::LineTooLong));
        assert_eq!(request_error(&long[..MAX_HEAD_BYTES]), Some(HeadError::LineTooLong));
        let wide = format!("GET / HTTP/1.0\r\nA: {}\r\n\r\n", "x".repeat(MAX_HEAD_BYTES));
        assert_eq!(request_error(&wide), Some(HeadError::TooLong));
        assert!(request(&long[..MAX_HEAD_BYTES - 1]).unwrap().is_none());
    }

    proptest! {
        #[test]
        fn fields_come_back_as_they_were_written(
            fields in prop::collection::vec(("X-[A-Za-z0-9]{1,12}", "[!-~]([ -~]{0,20}[!-~])?"), 0..20),
            next in "[ -~]{0,20}",
        ) {
            let mut text = "HTTP/1.1 200 OK\r\n".to_owned();
            for (name, value) in &fields {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
            text.push_str("\r\n");
            let length = text.len();
            text.push_str(&next);
            let (head, parsed) = ResponseHead::parse(text.as_bytes()).unwrap().unwrap();
            prop_assert_eq!(parsed, length);
            let back: Vec<_> = head.headers().collect();
            prop_assert_eq!(back.len(), fields.len());
            for (got, (name, value)) in back.iter().zip(&fields) {
                prop_assert_eq!(got.name, name.as_bytes());
                prop_assert_eq!(got.value, value.as_bytes());
            }
            for cut in 0..length {
                prop_assert!(ResponseHead::parse(&text.as_bytes()[..cut]).unwrap().is_none());
            }
        }

        #[test]
        fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = RequestHead::parse(&bytes);
            let _ = ResponseHead::parse(&bytes);
        }

        #[test]
        fn a_broken_head_gives_an_answer(at in 0usize..70, byte: u8) {
            let mut text = b"GET /a HTTP/1.1\r\nHost: b\r\nContent-Length: 3\r\nConnection: close\r\n\r\n".to_vec();
            let at = at % text.len();
            text[at] = byte;
            if let Ok(Some((head, length))) = RequestHead::parse(&text) {
                prop_assert!(length <= text.len());
                for field in head.headers() {
                    prop_assert!(!field.name.is_empty());
                }
            }
        }
    }
}
