//! Fields of a message that are forwarded (RFC 9110, 7.6).

use assay_http::field::{Field, Fields, is_named_in_connection, write_decimal};
use assay_http::head::Version;

/// Received-protocol of a message, as `Via` names it. Above the wire a request of HTTP/2 looks like one of HTTP/1.1, so its head does not
/// say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceivedProtocol {
    Http1(Version),
    Http2,
}

impl ReceivedProtocol {
    /// The protocol-version of RFC 9110, 7.6.3. HTTP/2 has no minor version, which is written as 0 (RFC 9110, 2.5).
    #[inline]
    pub fn version(self) -> &'static str {
        match self {
            Self::Http1(Version::Http10) => "1.0",
            Self::Http1(Version::Http11) => "1.1",
            Self::Http2 => "2.0",
        }
    }
}

impl From<Version> for ReceivedProtocol {
    fn from(version: Version) -> Self {
        Self::Http1(version)
    }
}

/// Whether a field is for one connection only, whatever `Connection` says (RFC 9110, 7.6.1).
#[inline]
pub fn is_hop_by_hop(field: &Field<'_>) -> bool {
    match field.name.len() {
        2 => field.is("te"),
        7 => field.is("trailer") || field.is("upgrade"),
        10 => field.is("connection") || field.is("keep-alive"),
        // Under another spelling, it would say where the body ends.
        14 => field.is_misspelt("content-length"),
        16 => field.is("proxy-connection"),
        17 => field.is_taken_for("transfer-encoding"),
        19 => field.is("proxy-authorization"),
        _ => false,
    }
}

/// Appends the end-to-end fields, a line each ([`append_forwardable`]), and our own `Via`: the version that the message was received in,
/// and our name.
pub fn append_end_to_end<'b>(
    out: &mut Vec<u8>,
    fields: Fields<'b>,
    received: impl Into<ReceivedProtocol>,
    name: &str,
    leave_out: impl FnMut(&Field<'b>) -> bool,
) {
    append_forwardable(out, fields, leave_out);
    append_via(out, received.into(), name);
}

/// Appends `Via`: the version that the message was received in, and our name.
#[inline]
pub fn append_via(out: &mut Vec<u8>, received: ReceivedProtocol, name: &str) {
    out.extend_from_slice(b"Via: ");
    out.extend_from_slice(received.version().as_bytes());
    out.push(b' ');
    append_line_end(out, name.as_bytes());
}

/// Appends the fields to forward, a line each: not those of this connection, nor those that the sender names in `Connection`, nor those
/// that `leave_out` picks, which sees all the others.
pub fn append_forwardable<'b>(
    out: &mut Vec<u8>,
    fields: Fields<'b>,
    leave_out: impl FnMut(&Field<'b>) -> bool,
) {
    append_forwardable_except(out, fields, |_| false, leave_out);
}

/// Appends fields like [`append_forwardable`], and also those that the sender names in `Connection` and whose names `is_kept` picks. The
/// next recipient must be told that they are named there.
pub fn append_forwardable_except<'b>(
    out: &mut Vec<u8>,
    fields: Fields<'b>,
    is_kept: impl Fn(&[u8]) -> bool,
    mut leave_out: impl FnMut(&Field<'b>) -> bool,
) {
    for field in fields.clone() {
        let for_this_hop = is_hop_by_hop(&field)
            || (fields.names_others()
                && is_named_in_connection(fields.clone(), field.name)
                && !is_kept(field.name));
        if !for_this_hop && !leave_out(&field) {
            field.append(out);
        }
    }
}

/// Appends one field line.
pub fn append(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    append_line_end(out, value);
}

/// Appends a field line with a number.
pub fn append_number(out: &mut Vec<u8>, name: &str, value: u64) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    write_decimal(out, value);
    out.extend_from_slice(b"\r\n");
}

fn append_line_end(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Whether `Via` contains a proxy of this name (RFC 9110, 7.6.3); none: there is no `Via`.
pub fn via_contains(fields: Fields<'_>, name: &str) -> Option<bool> {
    let mut via = fields.filter(|field| field.is("via")).peekable();
    via.peek()?;
    let is_named = |received: &[u8]| {
        let mut words = received.split(|byte| byte.is_ascii_whitespace()).filter(|word| !word.is_empty());
        words.nth(1).is_some_and(|by| by.eq_ignore_ascii_case(name.as_bytes()))
    };
    Some(via.any(|field| field.value.split(|&byte| byte == b',').any(is_named)))
}

#[cfg(test)]
mod tests {
    use assay_http::head::RequestHead;

    use super::*;

    #[test]
    fn fields_of_the_connection_stay_behind_and_via_is_added() {
        let text = "GET / HTTP/1.1\r\nHost: a\r\nX-One: 1\r\nConnection: close, X-Mine\r\nx-mine: 2\r\n\
                    TE: trailers\r\nVia: 1.0 other\r\nUpgrade: h2c\r\nKeep-Alive: 5\r\nTrailer: X-Sum\r\n\
                    Proxy-Connection: close\r\nProxy-Authorization: Basic eDp5\r\n\r\n";
        let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
        let mut out = Vec::new();
        append_end_to_end(&mut out, head.headers(), head.facts.version, "assay", |field| field.is("host"));
        assert_eq!(String::from_utf8(out).unwrap(), "X-One: 1\r\nVia: 1.0 other\r\nVia: 1.1 assay\r\n");
    }

    #[test]
    fn via_names_the_version_that_a_message_was_received_in() {
        for (received, line) in [
            (ReceivedProtocol::from(Version::Http10), "Via: 1.0 us\r\n"),
            (ReceivedProtocol::from(Version::Http11), "Via: 1.1 us\r\n"),
            (ReceivedProtocol::Http2, "Via: 2.0 us\r\n"),
        ] {
            let mut out = Vec::new();
            append_end_to_end(&mut out, Fields::of_lines(b""), received, "us", |_| false);
            assert_eq!(String::from_utf8(out).unwrap(), line);
        }
    }

    #[test]
    fn who_has_passed_a_message_on_is_found_among_all_who_did() {
        let passed = |via: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{via}\r\n");
            let (head, _) = RequestHead::parse(text.as_bytes()).unwrap().unwrap();
            via_contains(head.headers(), "two")
        };
        assert_eq!(passed(""), None);
        assert_eq!(passed("Via: 1.1 one, HTTP/1.1 three (x)\r\n"), Some(false));
        assert_eq!(passed("Via: 1.1 one,1.0  TWO (comment)\r\nVia: 1.1 three\r\n"), Some(true));
        assert_eq!(passed("Via: two\r\n"), Some(false));
    }

    #[test]
    fn numbers_are_written_in_decimal() {
        for value in [0, 7, 10, 18_446_744_073_709_551_615] {
            let mut out = Vec::new();
            write_decimal(&mut out, value);
            assert_eq!(out, value.to_string().as_bytes());
        }
    }
}
