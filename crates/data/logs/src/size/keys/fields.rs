//! The header fields and the cookies of a request, as far as its line in a log has them.

use crate::access::Access;
use crate::format::{ExtraField, Format};

/// The name of the field that holds all cookies.
pub(super) const COOKIE: &str = "cookie";

/// Fields and cookies of a request in its line, and the fields by which its response varies.
#[derive(Debug, Default)]
pub struct RequestFields<'a> {
    /// Header fields by name (in lower case), sorted by it.
    pub(super) fields: Vec<(&'a str, &'a [u8])>,
    /// Cookies by name, in the order of the line.
    pub(super) cookies: Vec<(&'a [u8], &'a [u8])>,
    /// `Vary` of the response; empty: it has none, or the log does not have it.
    pub(super) vary: &'a [u8],
    /// Validator of the response; empty likewise.
    pub(super) validator: &'a [u8],
}

impl<'a> RequestFields<'a> {
    /// Reads a line once more.
    pub fn of(access: &Access<'a>, format: &'a Format) -> Self {
        let mut found = Self::default();
        // Some logs have a cookie by itself and in the field with all of them.
        let mut single = Vec::new();
        format.each_extra(access.line, |extra, value| match extra {
            ExtraField::Request(name) => {
                if name == COOKIE {
                    found.cookies.extend(cookies(value));
                }
                found.fields.push((name, value));
            }
            ExtraField::Cookie(name) => single.push((name.as_bytes(), value)),
            ExtraField::Vary => found.vary = value,
            ExtraField::Validator => found.validator = value,
        });
        for (name, value) in single {
            if found.cookies.iter().all(|(known, _)| *known != name) {
                found.cookies.push((name, value));
            }
        }
        found.fields.sort_unstable_by_key(|(name, _)| *name);
        found
    }
}

/// The cookies of a field, by name and value. Programs that may not write blanks write `+`.
fn cookies(field: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let parts = field.split(|byte| *byte == b';').map(|part| {
        let from = part.iter().position(|byte| !matches!(byte, b' ' | b'+')).unwrap_or(part.len());
        part[from..].trim_ascii_end()
    });
    parts.filter(|part| !part.is_empty()).map(|part| {
        let name = part.iter().position(|byte| *byte == b'=').unwrap_or(part.len());
        (&part[..name], part.get(name + 1..).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_told_apart_whatever_stands_between_them() {
        let expected: [(&[u8], &[u8]); 3] = [(b"sid", b"7=7"), (b"lang", b"en"), (b"seen", b"")];
        for field in ["sid=7=7; lang=en; seen", "sid=7=7;lang=en;;seen=", "sid=7=7;+lang=en;+seen; "] {
            assert!(cookies(field.as_bytes()).eq(expected), "{field}");
        }
        assert_eq!(cookies(b"").count(), 0);
    }

    #[test]
    fn fields_come_sorted_and_a_cookie_that_is_logged_twice_once() {
        let format = Format::parse(
            "$msec $status $request_uri \"$http_cookie\" $cookie_b $cookie_c \"$http_accept_language\" \"$http_accept\"",
        );
        let (format, mut access) = (format.unwrap(), Access::default());
        format.read(b"1 200 /a \"a=1; b=2\" 2 3 \"en\" \"-\"", &mut access).unwrap();
        let fields = RequestFields::of(&access, &format);
        let expected: [(&str, &[u8]); 2] = [("accept-language", b"en"), ("cookie", b"a=1; b=2")];
        assert_eq!(fields.fields, expected);
        let expected: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")];
        assert_eq!(fields.cookies, expected);
    }
}
