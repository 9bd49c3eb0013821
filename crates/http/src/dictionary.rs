//! Dictionaries of structured fields (RFC 9651, 3.2): whether a line is one, as fields like `CDN-Cache-Control` have to be.

/// Members of a dictionary; none: the line is no dictionary.
pub fn members(line: &[u8]) -> Option<usize> {
    let mut rest = trim_spaces(line);
    let mut count = 0;
    while !rest.is_empty() {
        rest = key(rest)?;
        rest = match rest {
            [b'=', value @ ..] => value_end(value)?,
            _ => rest,
        };
        rest = parameters(rest)?;
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

fn trim_spaces(text: &[u8]) -> &[u8] {
    trim_start(text).trim_ascii_end()
}

fn trim_start(text: &[u8]) -> &[u8] {
    let at = text.iter().position(|byte| !matches!(byte, b' ' | b'\t')).unwrap_or(text.len());
    &text[at..]
}

/// What follows a key.
fn key(text: &[u8]) -> Option<&[u8]> {
    text.first().filter(|first| first.is_ascii_lowercase() || **first == b'*')?;
    let is_of_key = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(byte);
    Some(after(text, is_of_key))
}

/// What follows an item, or a list in parentheses.
fn value_end(text: &[u8]) -> Option<&[u8]> {
    let [b'(', inner @ ..] = text else { return bare_item(text) };
    let mut rest = trim_start(inner);
    loop {
        match rest {
            [b')', rest @ ..] => return Some(rest),
            _ => rest = parameters(bare_item(rest)?)?,
        }
        let next = trim_start(rest);
        if next.len() == rest.len() && next.first() != Some(&b')') {
            return None;
        }
        rest = next;
    }
}

/// What follows the parameters of an item, of which there may be none.
fn parameters(mut text: &[u8]) -> Option<&[u8]> {
    while let [b';', rest @ ..] = text {
        let rest = key(trim_start(rest))?;
        text = match rest {
            [b'=', value @ ..] => bare_item(value)?,
            _ => rest,
        };
    }
    Some(text)
}

/// What follows a number, a string, a token, a Boolean or bytes.
fn bare_item(text: &[u8]) -> Option<&[u8]> {
    match text {
        [b'?', b'0' | b'1', rest @ ..] => Some(rest),
        [b'"', rest @ ..] => string(rest),
        [b':', rest @ ..] => {
            let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
            after(rest, is_base64).strip_prefix(b":")
        }
        [b'-', rest @ ..] => number(rest),
        [first, ..] if first.is_ascii_digit() => number(text),
        [first, ..] if first.is_ascii_alphabetic() || *first == b'*' => {
            Some(after(text, |byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(byte)))
        }
        _ => None,
    }
}

fn string(mut text: &[u8]) -> Option<&[u8]> {
    loop {
        match text {
            [b'"', rest @ ..] => return Some(rest),
            [b'\\', b'"' | b'\\', rest @ ..] | [b' '..=b'!' | b'#'..=b'[' | b']'..=b'~', rest @ ..] => {
                text = rest
            }
            _ => return None,
        }
    }
}

fn number(text: &[u8]) -> Option<&[u8]> {
    let whole = after(text, u8::is_ascii_digit);
    let digits = text.len() - whole.len();
    let [b'.', fraction @ ..] = whole else { return (1..=15).contains(&digits).then_some(whole) };
    let rest = after(fraction, u8::is_ascii_digit);
    ((1..=12).contains(&digits) && (1..=3).contains(&(fraction.len() - rest.len()))).then_some(rest)
}

fn after(text: &[u8], is_part: impl Fn(&u8) -> bool) -> &[u8] {
    let at = text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len());
    &text[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_dictionary_are_counted() {
        for (text, count) in [
            ("", 0),
            ("  ", 0),
            ("no-store", 1),
            ("max-age=60, must-revalidate ,private;x=1", 3),
            ("a=(1 \"b\" c);q=0.5, b=:YQ==:, c=?1, d=-1.5, e=tok/en", 5),
            ("a=()", 1),
            ("private=\"X-Own, \\\"b\\\"\"", 1),
        ] {
            assert_eq!(members(text.as_bytes()), Some(count), "{text}");
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
            assert_eq!(members(text.as_bytes()), None, "{text}");
        }
    }
}
