//! Role of a header field in HTTP/2: found from its name and value once, when it is decoded or put into a table.

/// Role of a header field in HTTP/2 (RFC 9113, 8.2 and 8.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `:method`.
    Method,
    /// `:scheme`.
    Scheme,
    /// `:authority`.
    Authority,
    /// `:path`.
    Path,
    /// `:status`.
    Status,
    /// Another name with a colon in front.
    UnknownPseudo,
    /// `content-length`.
    ContentLength,
    /// `host`.
    Host,
    /// `cookie`.
    Cookie,
    /// `te`, which may say `trailers` and nothing else.
    Te,
    /// Not allowed in HTTP/2: `connection`, `transfer-encoding` and their like.
    ConnectionSpecific,
    /// A name with upper case or something that is no token byte, or a value with line ends, NUL, or spaces at its ends.
    Invalid,
    Regular,
}

/// Whether names of fields may have this byte in HTTP/2: token bytes without upper case.
static NAME_BYTE: [bool; 256] = {
    let others = b"!#$%&'*+-.^_`|~";
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_lowercase() || (byte as u8).is_ascii_digit();
        byte += 1;
    }
    let mut at = 0;
    while at < others.len() {
        table[others[at] as usize] = true;
        at += 1;
    }
    table
};

impl Kind {
    /// The kind of a field.
    pub fn of(name: &[u8], value: &[u8]) -> Self {
        Self::of_name(name).with(value)
    }

    /// The kind of a field whose name is of this kind, with this value.
    #[inline]
    pub(super) fn with(self, value: &[u8]) -> Self {
        if is_valid_value(value) { self } else { Kind::Invalid }
    }

    /// The kind of a name.
    #[inline]
    pub(super) fn of_name(name: &[u8]) -> Self {
        if let [b':', rest @ ..] = name {
            return match rest {
                b"method" => Kind::Method,
                b"scheme" => Kind::Scheme,
                b"authority" => Kind::Authority,
                b"path" => Kind::Path,
                b"status" => Kind::Status,
                _ => Kind::UnknownPseudo,
            };
        }
        match name {
            b"content-length" => Kind::ContentLength,
            b"host" => Kind::Host,
            b"cookie" => Kind::Cookie,
            b"te" => Kind::Te,
            b"connection" | b"proxy-connection" | b"keep-alive" | b"transfer-encoding" | b"upgrade" => {
                Kind::ConnectionSpecific
            }
            _ if is_valid_name(name) => Kind::Regular,
            _ => Kind::Invalid,
        }
    }

    /// A pseudo-header field, known or not.
    pub fn is_pseudo(self) -> bool {
        matches!(
            self,
            Kind::Method | Kind::Scheme | Kind::Authority | Kind::Path | Kind::Status | Kind::UnknownPseudo
        )
    }
}

fn is_valid_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().fold(true, |valid, &byte| valid & NAME_BYTE[usize::from(byte)])
}

#[inline]
fn is_valid_value(value: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let is_cut = has_control(value) && ends_line(value);
    !is_blank(value.first()) && !is_blank(value.last()) && !is_cut
}

/// Whether a value has a byte up to that of a line end. Eight bytes are looked at together.
#[inline]
fn has_control(value: &[u8]) -> bool {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGHEST: u64 = ONES << 7;
    // The lowest byte that is below the bound makes the subtraction borrow its highest bit; bytes from 0x80 on have it anyway.
    let is_in = |word: u64| word.wrapping_sub(ONES * (b'\r' as u64 + 1)) & !word & HIGHEST != 0;
    let (words, rest) = value.as_chunks::<8>();
    let in_words = words.iter().fold(false, |seen, &word| seen | is_in(u64::from_ne_bytes(word)));
    let in_rest = match value.last_chunk() {
        Some(&last) => is_in(u64::from_ne_bytes(last)),
        None => rest.iter().any(|&byte| byte <= b'\r'),
    };
    in_words | in_rest
}

#[cold]
fn ends_line(value: &[u8]) -> bool {
    value.iter().any(|&byte| matches!(byte, 0 | b'\n' | b'\r'))
}

#[cfg(test)]
mod tests {
    use assay_http::field::is_token_byte;

    use super::*;

    #[test]
    fn names_of_fields_are_tokens_in_lower_case() {
        for byte in 0..=255u8 {
            let allowed = is_token_byte(byte) && !byte.is_ascii_uppercase();
            assert_eq!(NAME_BYTE[usize::from(byte)], allowed, "{byte}");
        }
        assert_eq!(Kind::of(b"", b"x"), Kind::Invalid);
        assert_eq!(Kind::of(b"Host", b"x"), Kind::Invalid);
        assert_eq!(Kind::of(b"x y", b"x"), Kind::Invalid);
        assert_eq!(Kind::of(b"x-y", b"x y"), Kind::Regular);
    }

    #[test]
    fn values_have_no_line_ends_and_no_blanks_around_them() {
        for value in [&b" x"[..], b"x ", b"\tx", b"a\rb", b"a\nb", b"a\0b"] {
            assert_eq!(Kind::of(b"x", value), Kind::Invalid, "{value:?}");
        }
        for value in [&b""[..], b"x", b"a\tb", b"\xff"] {
            assert_eq!(Kind::of(b"x", value), Kind::Regular, "{value:?}");
        }
    }

    #[test]
    fn a_byte_is_valid_in_a_value_or_not_wherever_it_stands() {
        for length in 1..40 {
            for (at, byte) in (0..length).flat_map(|at| (0..=255u8).map(move |byte| (at, byte))) {
                let mut value = vec![b'x'; length];
                value[at] = byte;
                let is_at_an_end = at == 0 || at == length - 1;
                let is_valid = match byte {
                    0 | b'\n' | b'\r' => false,
                    b' ' | b'\t' => !is_at_an_end,
                    _ => true,
                };
                assert_eq!(Kind::of(b"x", &value) == Kind::Regular, is_valid, "{byte} at {at} of {length}");
            }
        }
    }
}
