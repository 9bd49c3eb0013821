//! Heads that look as nearly all do, read in one pass over their bytes.
//!
//! Only what is beyond doubt is taken: lines that end in CR LF, no tabs, no other control characters, nothing missing.
//! Whatever is unusual, broken or incomplete is left to the careful parser, which knows what to say about it. What is taken
//! here, that one takes as well and reads in the same way (a test holds them against each other).

/// Bytes of a word that are looked at together.
const WORD_BYTES: usize = 8;
/// The highest bit of each byte of a word.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// Whether names of fields and methods may have this byte.
static TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let others = b"!#$%&'*+-.^_`|~";
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};

/// The first line of a response.
#[derive(Debug, Clone, Copy)]
pub(super) struct StatusLine<'b> {
    /// Minor version.
    pub(super) minor: u8,
    /// Status, three digits.
    pub(super) status: u16,
    pub(super) reason: &'b str,
    /// Start of the next line.
    pub(super) end: usize,
}

/// The first line of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestLine<'b> {
    pub(super) method: &'b str,
    pub(super) target: &'b str,
    /// Minor version.
    pub(super) minor: u8,
    /// Start of the next line.
    pub(super) end: usize,
}

/// A line behind the first.
#[derive(Debug, Clone, Copy)]
pub(super) enum Line<'b> {
    /// A field: its name, and its value without spaces around it.
    Field(&'b [u8], &'b [u8]),
    /// The empty line that ends the head.
    End,
}

impl<'b> StatusLine<'b> {
    /// Reads it; none when it is not as usual.
    #[inline]
    pub(super) fn read(buf: &'b [u8]) -> Option<Self> {
        let (version, rest) = buf.split_first_chunk::<9>()?;
        let minor = match version {
            b"HTTP/1.1 " => 1,
            b"HTTP/1.0 " => 0,
            _ => return None,
        };
        let &[a, b, c, b' ', ..] = rest else { return None };
        if !(b'1'..=b'9').contains(&a) || !b.is_ascii_digit() || !c.is_ascii_digit() {
            return None;
        }
        let status = u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0');
        let begin = version.len() + 4;
        let end = line_end(buf, begin)?;
        let reason = &buf[begin..end];
        let reason = if reason.is_ascii() { std::str::from_utf8(reason).ok()? } else { return None };
        Some(Self { minor, status, reason, end: end + 2 })
    }
}

impl<'b> RequestLine<'b> {
    /// Reads it; none when it is not as usual.
    #[inline]
    pub(super) fn read(buf: &'b [u8]) -> Option<Self> {
        let method = buf.iter().position(|byte| !byte.is_ascii_uppercase()).filter(|length| *length > 0)?;
        let begin = method + 1;
        let end = first(
            buf,
            begin,
            |word| below(word, 0x21) | is_delete(word) | (word & HIGH),
            |byte| !(0x21..0x7f).contains(&byte),
        )?;
        if buf[method] != b' ' || end == begin {
            return None;
        }
        let minor = match buf[end..].first_chunk::<11>()? {
            b" HTTP/1.1\r\n" => 1,
            b" HTTP/1.0\r\n" => 0,
            _ => return None,
        };
        let text = |bytes: &'b [u8]| std::str::from_utf8(bytes).ok();
        Some(Self { method: text(&buf[..method])?, target: text(&buf[begin..end])?, minor, end: end + 11 })
    }
}

/// The line that begins at `at`, and where the next one does; none when it is not as usual.
#[inline]
pub(super) fn line(buf: &[u8], at: usize) -> Option<(Line<'_>, usize)> {
    let rest = buf.get(at..)?;
    let colon = name_end(rest)?;
    if colon == 0 || rest[colon] != b':' {
        let is_end = colon == 0 && rest.starts_with(b"\r\n");
        return is_end.then_some((Line::End, at + 2));
    }
    let end = line_end(rest, colon + 1)?;
    let mut value = &rest[colon + 1..end];
    while let [b' ', after @ ..] = value {
        value = after;
    }
    while let [before @ .., b' '] = value {
        value = before;
    }
    Some((Line::Field(&rest[..colon], value), at + end + 2))
}

/// End of the field name at the start of the bytes.
#[inline]
fn name_end(bytes: &[u8]) -> Option<usize> {
    let mut at = first(bytes, 0, is_unusual, |byte| !byte.is_ascii_alphabetic() && byte != b'-')?;
    // Digits and signs are rare.
    while TOKEN[usize::from(*bytes.get(at)?)] {
        at += 1;
    }
    Some(at)
}

/// Position of the CR LF of a line that has no other control character from `from` on.
#[inline]
fn line_end(bytes: &[u8], from: usize) -> Option<usize> {
    let end = first(bytes, from, |word| below(word, 0x20) | is_delete(word), |byte| byte.is_ascii_control())?;
    bytes[end..].starts_with(b"\r\n").then_some(end)
}

/// The first byte from `from` on of the kind that `marks` marks by its highest bit in a word, lowest byte first, and `is`
/// knows by itself.
#[inline]
fn first(bytes: &[u8], from: usize, marks: impl Fn(u64) -> u64, is: impl Fn(u8) -> bool) -> Option<usize> {
    let mut at = from;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<WORD_BYTES>()) {
        let marked = marks(u64::from_le_bytes(*word));
        if marked != 0 {
            return Some(at + (marked.trailing_zeros() / 8) as usize);
        }
        at += WORD_BYTES;
    }
    bytes.get(at..)?.iter().position(|byte| is(*byte)).map(|found| at + found)
}

/// Marks the bytes that are less than `limit`, which is at most 128. A mark above another may be wrong, the lowest is right.
#[inline]
const fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(all(limit)) & !word & HIGH
}

/// Marks the bytes that are 127, in the same way.
#[inline]
const fn is_delete(word: u64) -> u64 {
    below(word ^ all(0x7f), 1)
}

/// Marks the bytes that are neither letters nor dashes.
#[inline]
const fn is_unusual(word: u64) -> u64 {
    let (letters, dashes) = (word | all(0x20), word ^ all(b'-'));
    // Below 128, a sum has its highest bit from a certain byte on: from `a`, and above `z`.
    let is_letter = letters.wrapping_add(all(0x80 - b'a')) & !letters.wrapping_add(all(0x7f - b'z'));
    let is_dash = !dashes.wrapping_add(all(0x7f));
    (!(is_letter | is_dash) | word) & HIGH
}

/// The same byte eight times.
#[inline]
const fn all(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; WORD_BYTES])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_shows_its_first_control_character() {
        for place in 0..WORD_BYTES {
            for byte in 0..=255u8 {
                let mut bytes = *b"abc d:~\xff";
                bytes[place] = byte;
                let found = first(&bytes, 0, |word| below(word, 0x20) | is_delete(word), |_| false);
                assert_eq!(found, byte.is_ascii_control().then_some(place), "{byte} at {place}");
            }
        }
    }

    #[test]
    fn a_word_shows_where_a_name_has_something_unusual() {
        for place in 0..WORD_BYTES {
            for byte in 0..=255u8 {
                let mut bytes = *b"Abz-ZaQ-";
                bytes[place] = byte;
                let is_usual = byte.is_ascii_alphabetic() || byte == b'-';
                assert_eq!(
                    first(&bytes, 0, is_unusual, |_| false),
                    (!is_usual).then_some(place),
                    "{byte} at {place}"
                );
            }
        }
    }

    #[test]
    fn lines_are_read_or_left_alone() {
        let field = |text: &'static str| match line(text.as_bytes(), 0) {
            Some((Line::Field(name, value), next)) => Some((name, value, next)),
            _ => None,
        };
        assert_eq!(field("A-b: c d \r\n\r\n"), Some((&b"A-b"[..], &b"c d"[..], 11)));
        assert_eq!(field("A:\r\n"), Some((&b"A"[..], &b""[..], 4)));
        assert!(matches!(line(b"\r\n", 0), Some((Line::End, 2))));
        for unusual in [
            "A: b\n",
            "A:\tb\r\n",
            "A : b\r\n",
            ": b\r\n",
            " A: b\r\n",
            "A: b\rc\r\n",
            "A: b",
            "\n",
            "A: b\r",
        ] {
            assert!(line(unusual.as_bytes(), 0).is_none(), "{unusual:?}");
        }
    }
}
