//! Dictionaries of structured fields (RFC 9651, 3.2), as `CDN-Cache-Control` is one.

/// The value of a member, without its parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MemberValue<'v> {
    /// Also that of a member without a value, which is true.
    Boolean(bool),
    /// A number without a fraction.
    Integer(i64),
    /// A number with a fraction.
    Decimal,
    /// Text between the quotes, as it is written.
    String(&'v [u8]),
    Token(&'v [u8]),
    Bytes,
    List,
}

/// Hands out each member's key and value in order; none: the line is no dictionary. What was handed out counts only if all of it is
/// one, and of several members of a key the last (RFC 9651, 4.2.2).
pub fn members<'v>(line: &'v [u8], mut each: impl FnMut(&'v [u8], MemberValue<'v>)) -> Option<usize> {
    let mut rest = trim_start(line).trim_ascii_end();
    let mut count = 0;
    while !rest.is_empty() {
        let (name, after_key) = key(rest)?;
        let (value, after_value) = match after_key {
            [b'=', written @ ..] => value(written)?,
            _ => (MemberValue::Boolean(true), after_key),
        };
        each(name, value);
        rest = parameters(after_value)?;
        count += 1;
        rest = trim_start(rest);
        match rest {
            [] => break,
            // A comma is followed by a member.
            [b',', more @ ..] if !trim_start(more).is_empty() => rest = trim_start(more),
            _ => return None,
        }
    }
    Some(count)
}

fn trim_start(text: &[u8]) -> &[u8] {
    split(text, |byte| matches!(byte, b' ' | b'\t')).1
}

/// A key, and what follows it.
fn key(text: &[u8]) -> Option<(&[u8], &[u8])> {
    text.first().filter(|first| first.is_ascii_lowercase() || **first == b'*')?;
    Some(split(text, |byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(byte)))
}

/// An item or a list in parentheses, and what follows it.
fn value(text: &[u8]) -> Option<(MemberValue<'_>, &[u8])> {
    let [b'(', inner @ ..] = text else { return item(text) };
    let mut rest = trim_start(inner);
    loop {
        match rest {
            [b')', rest @ ..] => return Some((MemberValue::List, rest)),
            _ => rest = parameters(item(rest)?.1)?,
        }
        let next = trim_start(rest);
        if next.len() == rest.len() && next.first() != Some(&b')') {
            return None;
        }
        rest = next;
    }
}

/// Skips the parameters of an item, of which there may be none.
fn parameters(mut text: &[u8]) -> Option<&[u8]> {
    while let [b';', rest @ ..] = text {
        text = match key(trim_start(rest))?.1 {
            [b'=', value @ ..] => item(value)?.1,
            rest => rest,
        };
    }
    Some(text)
}

/// A number, a string, a token, a Boolean or bytes, and what follows.
fn item(text: &[u8]) -> Option<(MemberValue<'_>, &[u8])> {
    match text {
        [b'?', digit @ (b'0' | b'1'), rest @ ..] => Some((MemberValue::Boolean(*digit == b'1'), rest)),
        [b'"', rest @ ..] => string(rest),
        [b':', rest @ ..] => {
            let (_, rest) = split(rest, |byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
            Some((MemberValue::Bytes, rest.strip_prefix(b":")?))
        }
        [b'-', rest @ ..] => number(rest, -1),
        [first, ..] if first.is_ascii_digit() => number(text, 1),
        [first, ..] if first.is_ascii_alphabetic() || *first == b'*' => {
            let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(byte);
            let (token, rest) = split(text, is_part);
            Some((MemberValue::Token(token), rest))
        }
        _ => None,
    }
}

/// A string behind its first quote, and what follows.
fn string(text: &[u8]) -> Option<(MemberValue<'_>, &[u8])> {
    let mut rest = text;
    loop {
        match rest {
            [b'"', after @ ..] => {
                return Some((MemberValue::String(&text[..text.len() - rest.len()]), after));
            }
            [b'\\', b'"' | b'\\', after @ ..] | [b' '..=b'!' | b'#'..=b'[' | b']'..=b'~', after @ ..] => {
                rest = after;
            }
            _ => return None,
        }
    }
}

/// A number behind its sign, and what follows.
fn number(text: &[u8], sign: i64) -> Option<(MemberValue<'_>, &[u8])> {
    let (digits, rest) = split(text, u8::is_ascii_digit);
    if let [b'.', fraction @ ..] = rest {
        let (decimals, rest) = split(fraction, u8::is_ascii_digit);
        let fits = (1..=12).contains(&digits.len()) && (1..=3).contains(&decimals.len());
        return fits.then_some((MemberValue::Decimal, rest));
    }
    if !(1..=15).contains(&digits.len()) {
        return None;
    }
    let sum = digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    Some((MemberValue::Integer(sign * sum), rest))
}

fn split(text: &[u8], is_part: impl Fn(&u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> Option<usize> {
        members(text.as_bytes(), |_, _| ())
    }

    #[test]
    fn each_member_has_a_value_of_one_type() {
        let mut found = Vec::new();
        let line = br#"a, b=?0, c=-60, d=1.5, e="x\"y";q="z", f=tok/en;n, g=:YQ==:, h=(1 2);p"#;
        assert_eq!(members(line, |key, value| found.push((key.to_vec(), value))), Some(8));
        let values = [
            MemberValue::Boolean(true),
            MemberValue::Boolean(false),
            MemberValue::Integer(-60),
            MemberValue::Decimal,
            MemberValue::String(br#"x\"y"#),
            MemberValue::Token(b"tok/en"),
            MemberValue::Bytes,
            MemberValue::List,
        ];
        for ((key, value), (name, expected)) in found.into_iter().zip((b'a'..).zip(values)) {
            assert_eq!((key, value), (vec![name], expected));
        }
    }

    #[test]
    fn members_of_a_dictionary_are_counted() {
        for (text, expected) in [
            ("", 0),
            ("  ", 0),
            ("no-store", 1),
            ("max-age=60, must-revalidate ,private;x=1", 3),
            ("a=(1 \"b\" c);q=0.5, b=:YQ==:, c=?1, d=-1.5, e=tok/en", 5),
            ("a=()", 1),
            ("private=\"X-Own, \\\"b\\\"\"", 1),
        ] {
            assert_eq!(count(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_dictionary_is_refused() {
        for text in [
            "&&",
            "max-age=60, &&",
            "a,",
            ",a",
            "a,,b",
            "Max-Age=1",
            "a=",
            "a=6x",
            "a b",
            "a=(1",
            "a=(1\"b\")",
            "a=\"b",
            "a=?2",
            "a=:x",
            "a=1.",
            "a=1.2345",
            "a=1234567890123456",
            "a;=1",
        ] {
            assert_eq!(count(text), None, "{text}");
        }
    }
}
