//! Header sections as messages: pseudo-header fields, and what makes a message malformed (RFC 9113, 8).
//!
//! A section is put together from decoded fields, in memory that is used again for the next. Fields other than pseudo-header
//! fields are kept as lines of HTTP/1.1, the form in which [`assay_http`] walks fields; several `cookie` fields become one.

use std::ops::Range;

use assay_http::field::{Field, Fields, decimal, is_token_byte};
use assay_http::head::{RequestHead, ResponseHead};
use thiserror::Error;

use crate::hpack::{FIELD_OVERHEAD_BYTES, HeaderField, Kind};

/// Malformed message (RFC 9113, 8.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// A pseudo-header field is missing.
    #[error("there is no {0}")]
    Missing(&'static str),
    /// A pseudo-header field comes twice, is unknown, or belongs to the other kind of message or to no trailers.
    #[error("a pseudo-header field is unknown, repeated or not allowed in this section")]
    Pseudo,
    /// A pseudo-header field comes after another field.
    #[error("a pseudo-header field comes after a regular one")]
    LatePseudo,
    /// A pseudo-header field has an impossible value.
    #[error("the value of {0} is impossible")]
    Value(&'static str),
    /// A name has upper case or no token bytes, or a value line ends or spaces around it.
    #[error("a field has an invalid name or value")]
    Field,
    /// `connection` and its like, or `te` that is not `trailers`.
    #[error("a field is specific to connections of HTTP/1.1")]
    ConnectionSpecific,
    /// `host` names another authority.
    #[error("host and :authority differ")]
    Host,
    /// No number, or two different ones.
    #[error("content-length is not one decimal number")]
    ContentLength,
    /// The body is not as long as announced.
    #[error("content-length is {announced}, and the body has {seen} bytes or more")]
    BodyLength {
        /// Length in the head.
        announced: u64,
        seen: u64,
    },
    /// A body in a message that has none: a response to HEAD, 204, 304.
    #[error("there is a body, and this response has none")]
    Body,
    /// The section is larger than our settings allow.
    #[error("the header section has more than {0} bytes")]
    TooLarge(u32),
    /// A second header section that ends nothing, or trailers behind nothing.
    #[error("a further header section is not the end of the message")]
    Trailers,
    /// DATA before the final response, or an interim response that ends the stream.
    #[error("the stream goes on or ends before the final response")]
    NoResponse,
    /// 101, which HTTP/2 does not have.
    #[error("the status is 101, which HTTP/2 does not have")]
    Switching,
}

/// Type of a header section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Request,
    Response,
    Trailers,
}

/// A header section that is put together.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// Values of pseudo-header fields.
    text: Vec<u8>,
    method: Option<Range<usize>>,
    scheme: Option<Range<usize>>,
    authority: Option<Range<usize>>,
    path: Option<Range<usize>>,
    status: Option<u16>,
    /// All other fields, a line each.
    lines: Vec<u8>,
    cookies: Vec<u8>,
    content_length: Option<u64>,
    host: Option<Range<usize>>,
    has_fields: bool,
    /// Size as RFC 9113, 6.5.2 counts it.
    size: usize,
    malformed: Option<Malformed>,
}

impl Section {
    /// Begins the next one.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.lines.clear();
        self.cookies.clear();
        (self.method, self.scheme, self.authority, self.path) = (None, None, None, None);
        (self.status, self.content_length, self.host, self.malformed) = (None, None, None, None);
        (self.has_fields, self.size) = (false, 0);
    }

    /// Bytes of memory that it takes, which is as much as the longest one took.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.text.capacity() + self.lines.capacity() + self.cookies.capacity()
    }

    /// Bytes of names and values so far.
    pub(crate) fn field_bytes(&self) -> usize {
        self.size
    }

    /// Takes a field. Nothing more is kept of a section that is malformed or has more than `most` bytes.
    #[inline]
    pub(crate) fn push(&mut self, place: Place, most: u32, field: HeaderField<'_>) {
        self.size += field.name.len() + field.value.len() + FIELD_OVERHEAD_BYTES;
        if self.malformed.is_some() {
            return;
        }
        if self.size > most as usize {
            self.malformed = Some(Malformed::TooLarge(most));
        } else if let Err(malformed) = self.take(place, field) {
            self.malformed = Some(malformed);
        }
    }

    #[inline]
    fn take(&mut self, place: Place, field: HeaderField<'_>) -> Result<(), Malformed> {
        match field.kind {
            Kind::Regular => {}
            Kind::Invalid => return Err(Malformed::Field),
            Kind::ConnectionSpecific => return Err(Malformed::ConnectionSpecific),
            Kind::Te if field.value == b"trailers" => {}
            Kind::Te => return Err(Malformed::ConnectionSpecific),
            Kind::ContentLength => {
                let length = decimal(field.value).ok_or(Malformed::ContentLength)?;
                if self.content_length.replace(length).is_some_and(|other| other != length) {
                    return Err(Malformed::ContentLength);
                }
            }
            Kind::Cookie => {
                self.has_fields = true;
                if !self.cookies.is_empty() {
                    self.cookies.extend_from_slice(b"; ");
                }
                self.cookies.extend_from_slice(field.value);
                return Ok(());
            }
            Kind::Host => {
                let start = self.lines.len() + b"host: ".len();
                if self.host.replace(start..start + field.value.len()).is_some() {
                    return Err(Malformed::Host);
                }
            }
            _ => return self.take_pseudo(place, field),
        }
        self.has_fields = true;
        append_line(&mut self.lines, field.name, field.value);
        Ok(())
    }

    fn take_pseudo(&mut self, place: Place, field: HeaderField<'_>) -> Result<(), Malformed> {
        if self.has_fields {
            return Err(Malformed::LatePseudo);
        }
        let (slot, name, is_possible): (_, _, fn(&[u8]) -> bool) = match (place, field.kind) {
            (Place::Request, Kind::Method) => (&mut self.method, ":method", is_token),
            (Place::Request, Kind::Scheme) => (&mut self.scheme, ":scheme", is_token),
            (Place::Request, Kind::Authority) => (&mut self.authority, ":authority", is_graphic),
            (Place::Request, Kind::Path) => (&mut self.path, ":path", is_graphic),
            (Place::Response, Kind::Status) => {
                let status = status(field.value).ok_or(Malformed::Value(":status"))?;
                return if self.status.replace(status).is_some() { Err(Malformed::Pseudo) } else { Ok(()) };
            }
            _ => return Err(Malformed::Pseudo),
        };
        if !is_possible(field.value) {
            return Err(Malformed::Value(name));
        }
        let start = self.text.len();
        self.text.extend_from_slice(field.value);
        if slot.replace(start..self.text.len()).is_some() {
            return Err(Malformed::Pseudo);
        }
        Ok(())
    }

    /// The section is complete: checks what must be there.
    pub(crate) fn finish(&mut self, place: Place) -> Result<(), Malformed> {
        if let Some(malformed) = self.malformed {
            return Err(malformed);
        }
        if !self.cookies.is_empty() {
            append_line(&mut self.lines, b"cookie", &self.cookies);
        }
        match place {
            Place::Request => self.check_request(),
            Place::Response if self.status.is_none() => Err(Malformed::Missing(":status")),
            Place::Response if self.status == Some(101) => Err(Malformed::Switching),
            Place::Response | Place::Trailers => Ok(()),
        }
    }

    fn check_request(&self) -> Result<(), Malformed> {
        if self.method.is_none() {
            return Err(Malformed::Missing(":method"));
        }
        if self.head().method() == "CONNECT" {
            return match (&self.scheme, &self.path, &self.authority) {
                (None, None, Some(_)) => Ok(()),
                (None, None, None) => Err(Malformed::Missing(":authority")),
                _ => Err(Malformed::Pseudo),
            };
        }
        if self.scheme.is_none() {
            return Err(Malformed::Missing(":scheme"));
        }
        match self.head().path().as_bytes() {
            [b'/', ..] | b"*" => {}
            b"" => return Err(Malformed::Missing(":path")),
            _ => return Err(Malformed::Value(":path")),
        }
        match (self.head().authority(), &self.host) {
            (Some(authority), Some(host)) if !authority.eq_ignore_ascii_case(&self.lines[host.clone()]) => {
                Err(Malformed::Host)
            }
            _ => Ok(()),
        }
    }

    #[inline]
    pub(crate) fn head(&self) -> Head<'_> {
        Head { section: self }
    }
}

/// A header section: the head of a request or a response, or trailers.
#[derive(Debug, Clone, Copy)]
pub struct Head<'s> {
    section: &'s Section,
}

impl<'s> Head<'s> {
    /// `:method` of a request; else empty.
    pub fn method(self) -> &'s str {
        self.text(self.section.method.as_ref())
    }

    /// `:scheme` of a request; empty where there is none (CONNECT).
    pub fn scheme(self) -> &'s str {
        self.text(self.section.scheme.as_ref())
    }

    /// `:path` of a request, with its query; empty where there is none (CONNECT).
    pub fn path(self) -> &'s str {
        self.text(self.section.path.as_ref())
    }

    /// `:authority` of a request.
    pub fn authority(self) -> Option<&'s [u8]> {
        let range = self.section.authority.clone()?;
        Some(&self.section.text[range])
    }

    /// `:authority` of a request, or `host` where that is missing (RFC 9113, 8.3.1).
    pub fn host(self) -> Option<&'s [u8]> {
        self.authority().or_else(|| Some(&self.section.lines[self.section.host.clone()?]))
    }

    /// `:status` of a response; else 0.
    pub fn status(self) -> u16 {
        self.section.status.unwrap_or(0)
    }

    /// `content-length`.
    pub fn content_length(self) -> Option<u64> {
        self.section.content_length
    }

    /// All fields but pseudo-header fields, as lines of HTTP/1.1, each with its line end; no empty line at the end.
    pub fn lines(self) -> &'s [u8] {
        &self.section.lines
    }

    /// The head of a request as the HTTP/1.1 head that means the same.
    pub fn as_request(self) -> RequestHead<'s> {
        RequestHead::of_fields(self.method(), self.path(), self.host(), self.content_length(), self.lines())
    }

    /// The head of a response as the HTTP/1.1 head that means the same.
    pub fn as_response(self) -> ResponseHead<'s> {
        ResponseHead::of_fields(self.status(), self.content_length(), self.lines())
    }

    /// All fields but pseudo-header fields, one by one.
    pub fn fields(self) -> Fields<'s> {
        Fields::of_lines(&self.section.lines)
    }

    /// The value of the first field of this name.
    pub fn field(self, name: &str) -> Option<&'s [u8]> {
        self.fields().find(|field: &Field<'_>| field.is(name)).map(|field| field.value)
    }

    fn text(self, range: Option<&Range<usize>>) -> &'s str {
        let bytes = range.map_or(&b""[..], |range| &self.section.text[range.clone()]);
        // Only ASCII was taken.
        std::str::from_utf8(bytes).unwrap_or("")
    }
}

#[inline]
fn append_line(lines: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    lines.reserve(name.len() + value.len() + 4);
    lines.extend_from_slice(name);
    lines.extend_from_slice(b": ");
    lines.extend_from_slice(value);
    lines.extend_from_slice(b"\r\n");
}

fn is_token(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().all(|&byte| is_token_byte(byte))
}

/// Something visible, without spaces.
fn is_graphic(value: &[u8]) -> bool {
    !value.is_empty() && value.iter().fold(true, |graphic, byte| graphic & byte.is_ascii_graphic())
}

fn status(value: &[u8]) -> Option<u16> {
    let &[a, b, c] = value else { return None };
    let valid = (b'1'..=b'9').contains(&a) && b.is_ascii_digit() && c.is_ascii_digit();
    valid.then(|| u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(place: Place, fields: &[(&str, &str)]) -> Result<Section, Malformed> {
        let mut section = Section::default();
        for (name, value) in fields {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            let kind = Kind::of(name, value);
            section.push(place, 1000, HeaderField { name, value, kind, never_indexed: false });
        }
        section.finish(place).map(|()| section)
    }

    fn request(more: &[(&str, &str)]) -> Result<Section, Malformed> {
        let usual = [(":method", "GET"), (":scheme", "http"), (":path", "/a"), (":authority", "h:1")];
        section(Place::Request, &[&usual, more].concat())
    }

    #[test]
    fn a_request_is_what_its_fields_say() {
        let section =
            request(&[("host", "H:1"), ("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("te", "trailers")]);
        let section = section.expect("is valid");
        let head = section.head();
        assert_eq!((head.method(), head.scheme(), head.path()), ("GET", "http", "/a"));
        assert_eq!(head.authority(), Some(&b"h:1"[..]));
        assert_eq!(head.lines(), b"host: H:1\r\nx: y\r\nte: trailers\r\ncookie: a=1; b=2\r\n");
        assert_eq!(head.field("Cookie"), Some(&b"a=1; b=2"[..]));
    }

    #[test]
    fn malformed_requests_are_told_apart() {
        for (fields, malformed) in [
            (&[("Upper", "x")][..], Malformed::Field),
            (&[("x", " y")], Malformed::Field),
            (&[("connection", "close")], Malformed::ConnectionSpecific),
            (&[("te", "gzip")], Malformed::ConnectionSpecific),
            (&[("transfer-encoding", "chunked")], Malformed::ConnectionSpecific),
            (&[(":path", "/b")], Malformed::Pseudo),
            (&[(":status", "200")], Malformed::Pseudo),
            (&[(":other", "x")], Malformed::Pseudo),
            (&[("x", "y"), (":protocol", "x")], Malformed::LatePseudo),
            (&[("host", "other")], Malformed::Host),
            (&[("content-length", "1"), ("content-length", "2")], Malformed::ContentLength),
            (&[("content-length", "+1")], Malformed::ContentLength),
        ] {
            assert_eq!(request(fields).err(), Some(malformed), "{fields:?}");
        }
        assert_eq!(request(&[("x", &"y".repeat(1000))]).err(), Some(Malformed::TooLarge(1000)));
        for (fields, malformed) in [
            (&[(":scheme", "http"), (":path", "/")][..], Malformed::Missing(":method")),
            (&[(":method", "GET"), (":path", "/")], Malformed::Missing(":scheme")),
            (&[(":method", "GET"), (":scheme", "http")], Malformed::Missing(":path")),
            (&[(":method", "GET"), (":scheme", "http"), (":path", "")], Malformed::Value(":path")),
            (&[(":method", "GET"), (":scheme", "http"), (":path", "a")], Malformed::Value(":path")),
            (&[(":method", "G T")], Malformed::Value(":method")),
            (&[(":method", "CONNECT")], Malformed::Missing(":authority")),
            (&[(":method", "CONNECT"), (":authority", "h:1"), (":path", "/")], Malformed::Pseudo),
        ] {
            assert_eq!(section(Place::Request, fields).err(), Some(malformed), "{fields:?}");
        }
        assert!(section(Place::Request, &[(":method", "CONNECT"), (":authority", "h:1")]).is_ok());
    }

    #[test]
    fn a_response_has_one_status_and_trailers_have_none() {
        let response = |status| section(Place::Response, &[(":status", status), ("x", "y")]);
        assert_eq!(response("204").expect("is valid").head().status(), 204);
        for status in ["20", "2000", "099", "2x0", ""] {
            assert_eq!(response(status).err(), Some(Malformed::Value(":status")), "{status}");
        }
        assert_eq!(response("101").err(), Some(Malformed::Switching));
        assert_eq!(section(Place::Response, &[]).err(), Some(Malformed::Missing(":status")));
        assert_eq!(section(Place::Trailers, &[(":status", "200")]).err(), Some(Malformed::Pseudo));
        assert!(section(Place::Trailers, &[("x", "y")]).is_ok());
    }
}
