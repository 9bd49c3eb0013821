//! End-to-end fields of a head, in one pass: adjacent lines that are forwarded are copied together.
//!
//! The output equals that of `assay_net::fields::append_end_to_end`, which walks over fields one by one and serves the heads that
//! list further fields in `Connection`; nearly none do.

use assay_http::field::{Field, trim};
use assay_net::fields::{self, ReceivedProtocol};

/// A parsed head with the bytes that it was parsed from.
#[derive(Debug, Clone)]
pub struct Lines<'h> {
    pub fields: assay_http::field::Fields<'h>,
    pub received: ReceivedProtocol,
    pub raw: &'h [u8],
}

impl Lines<'_> {
    /// Appends the fields to forward, a line each, and our `Via`. Fields of this connection are left out, and those whose names
    /// `leave_out` selects (it is given no values).
    pub fn append_end_to_end(self, out: &mut Vec<u8>, name: &str, leave_out: impl Fn(&Field<'_>) -> bool) {
        if self.fields.names_others() {
            return fields::append_end_to_end(out, self.fields, self.received, name, leave_out);
        }
        append_passing(out, self.raw, leave_out);
        fields::append_via(out, self.received, name);
    }
}

fn append_passing(out: &mut Vec<u8>, raw: &[u8], leave_out: impl Fn(&Field<'_>) -> bool) {
    // Empty lines before the start line are allowed.
    let begin = raw.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(0);
    let mut at = memchr::memchr(b'\n', &raw[begin..]).map_or(raw.len(), |end| begin + end + 1);
    let mut copied = at;
    while at < raw.len() {
        let rest = &raw[at..];
        let length = memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1);
        let line = &rest[..length];
        // The empty line at the end of the head has no colon.
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { break };
        let field = Field { name: &line[..colon], value: b"", line };
        let goes_on = !fields::is_hop_by_hop(&field) && !leave_out(&field);
        if goes_on && is_usual(line, colon) {
            at += length;
            continue;
        }
        out.extend_from_slice(&raw[copied..at]);
        if goes_on {
            Field { value: trim(&line[colon + 1..]), ..field }.append(out);
        }
        at += length;
        copied = at;
    }
    out.extend_from_slice(&raw[copied..at]);
}

/// Whether a line is as nearly every sender writes it, and can be copied unchanged: a space before the value, none behind it, CR
/// LF.
fn is_usual(line: &[u8], colon: usize) -> bool {
    let [b' ', value @ .., b'\r', b'\n'] = &line[colon + 1..] else { return false };
    let is_space = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_whitespace);
    !is_space(value.first()) && !is_space(value.last())
}

#[cfg(test)]
mod tests {
    use assay_http::head::{RequestHead, Version};
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 13] = [
        "Te",
        "Host",
        "X-A",
        "Trailer",
        "upgrade",
        "CONNECTION",
        "Keep-Alive",
        "Proxy-Connection",
        "Accept",
        "Via",
        "Proxy-Authorization",
        "X-Gone",
        "X-Forwarded-For",
    ];
    const VALUES: [&str; 8] = ["a", "", "a b", "close", "x-a", "keep-alive, te", "\u{e9}", "a:b"];
    const BEFORE: [&str; 4] = [" ", "", "  ", "\t"];
    const AFTER: [&str; 4] = ["\r\n", "\n", " \r\n", "\t\n"];

    proptest! {
        #[test]
        fn all_at_once_is_the_same_as_one_by_one(
            lines in prop::collection::vec((0..13usize, 0..8usize, 0..4usize, 0..4usize), 0..12), lead in any::<bool>(),
        ) {
            let mut text = String::from(if lead { "\r\nGET / HTTP/1.0\r\n" } else { "GET / HTTP/1.0\r\n" });
            for (name, value, before, after) in lines {
                text += &format!("{}:{}{}{}", NAMES[name], BEFORE[before], VALUES[value], AFTER[after]);
            }
            text += "\r\nrest: x\r\n";
            let Ok(Some((head, length))) = RequestHead::parse(text.as_bytes()) else { return Ok(()) };
            let leave_out = |field: &Field<'_>| field.is("x-gone");
            let (mut one, mut all) = (Vec::new(), Vec::new());
            fields::append_end_to_end(&mut one, head.headers(), Version::Http10, "us", leave_out);
            let lines = Lines { fields: head.headers(), received: Version::Http10.into(), raw: &text.as_bytes()[..length] };
            lines.append_end_to_end(&mut all, "us", leave_out);
            prop_assert_eq!(String::from_utf8(one).unwrap(), String::from_utf8(all).unwrap());
        }
    }
}
