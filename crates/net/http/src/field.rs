//! Header fields, walked, and their lists taken apart.

use memchr::memchr;

/// One header field, borrowed from the head it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'b> {
    /// Name as sent; compare without regard to case.
    pub name: &'b [u8],
    /// Value without the white space around it.
    pub value: &'b [u8],
    /// All of its line, line end included, as sent.
    pub line: &'b [u8],
}

impl Field<'_> {
    /// True when this is the field called `name`, whatever the case.
    #[inline]
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// True when this is the field called `name`, in lower case, to those who take `_` in a name for `-`, as the environment of a CGI
    /// program does.
    #[inline]
    pub fn is_taken_for(&self, name: &str) -> bool {
        // Nearly all names are as they should be.
        self.is(name) || self.is_misspelt(name)
    }

    /// True when this is another spelling of the field called `name`, in lower case: with `_` for `-`.
    #[inline]
    pub fn is_misspelt(&self, name: &str) -> bool {
        if self.name.len() != name.len() || memchr::memchr(b'_', self.name).is_none() {
            return false;
        }
        let is_same =
            |(sent, meant): (&u8, u8)| sent.to_ascii_lowercase() == meant || (*sent == b'_' && meant == b'-');
        self.name.iter().zip(name.bytes()).all(is_same)
    }

    /// Appends the field as a line: name, colon, one space, value, CR LF.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>) {
        let length = self.name.len() + self.value.len() + 4;
        // Nearly every sender writes it like that.
        let is_usual = self.line.len() == length
            && self.line.get(self.name.len() + 1) == Some(&b' ')
            && self.line.ends_with(b"\r\n");
        if is_usual {
            return out.extend_from_slice(self.line);
        }
        out.reserve(length);
        out.extend_from_slice(self.name);
        out.extend_from_slice(b": ");
        out.extend_from_slice(self.value);
        out.extend_from_slice(b"\r\n");
    }
}

/// Walks the fields of a head that has been parsed: nothing is checked again.
#[derive(Debug, Clone)]
pub struct Fields<'b> {
    rest: &'b [u8],
    names_others: bool,
}

impl<'b> Fields<'b> {
    /// Walks lines that are known to be fields: each has a colon, and a line end. No `Connection` field names others of them.
    pub fn of_lines(lines: &'b [u8]) -> Self {
        Self::new(lines, false)
    }

    /// `block` holds complete field lines, and may end with the empty line; `names_others` as below.
    pub(crate) fn new(block: &'b [u8], names_others: bool) -> Self {
        Self { rest: block, names_others }
    }

    /// Whether a `Connection` field may name fields of this message. Hardly any does, and then no look is needed.
    pub fn names_others(&self) -> bool {
        self.names_others
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Field<'b>;

    #[inline]
    fn next(&mut self) -> Option<Field<'b>> {
        let colon = memchr(b':', self.rest)?;
        let (name, after) = (&self.rest[..colon], &self.rest[colon + 1..]);
        let end = memchr(b'\n', after).unwrap_or(after.len());
        let next = (end + 1).min(after.len());
        let line = &self.rest[..colon + 1 + next];
        self.rest = &after[next..];
        Some(Field { name, value: trim(&after[..end]), line })
    }
}

/// Whether names of fields and methods may have this byte (RFC 9110, 5.6.2).
pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Without spaces, tabs and line ends at both ends.
pub fn trim(bytes: &[u8]) -> &[u8] {
    bytes.trim_ascii()
}

/// The members of a comma-separated list: trimmed, empty ones left out. Commas within quoted strings do not
/// separate.
pub fn list(value: &[u8]) -> List<'_> {
    List { rest: value }
}

#[derive(Debug, Clone)]
pub struct List<'b> {
    rest: &'b [u8],
}

impl<'b> Iterator for List<'b> {
    type Item = &'b [u8];

    fn next(&mut self) -> Option<&'b [u8]> {
        while !self.rest.is_empty() {
            let end = end_of(self.rest, b',');
            let member = trim(&self.rest[..end]);
            self.rest = &self.rest[(end + 1).min(self.rest.len())..];
            if !member.is_empty() {
                return Some(member);
            }
        }
        None
    }
}

/// End of the first member: at a separator outside quotes, or at the end.
fn end_of(bytes: &[u8], separator: u8) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if byte == separator && !quoted => return at,
            _ => {}
        }
    }
    bytes.len()
}

/// Whether a `Connection` field names the field of this name.
pub fn is_named_in_connection(mut fields: Fields<'_>, name: &[u8]) -> bool {
    fields.any(|other| {
        other.is("connection") && tokens(other.value).any(|member| member.eq_ignore_ascii_case(name))
    })
}

/// The members of a comma-separated list of tokens: trimmed, empty ones left out. A quote is no part of a token, and hides
/// nothing.
pub fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(trim).filter(|member| !member.is_empty())
}

/// True when a list of tokens has this one, whatever the case.
pub fn has_token(value: &[u8], token: &str) -> bool {
    tokens(value).any(|member| member.eq_ignore_ascii_case(token.as_bytes()))
}

/// True when a comma-separated list has this member, whatever the case.
pub fn list_has(value: &[u8], member: &str) -> bool {
    list(value).any(|m| m.eq_ignore_ascii_case(member.as_bytes()))
}

/// The parameter of this name (whatever the case) in a value such as `type/sub; name=value; other="quoted"`, without the
/// quotes around it.
pub fn parameter<'v>(value: &'v [u8], name: &str) -> Option<&'v [u8]> {
    let mut rest = value;
    loop {
        let end = end_of(rest, b';');
        rest = rest.get(end + 1..)?;
        let one = &rest[..end_of(rest, b';')];
        let Some(equals) = memchr(b'=', one) else { continue };
        if trim(&one[..equals]).eq_ignore_ascii_case(name.as_bytes()) {
            return Some(unquoted(trim(&one[equals + 1..])));
        }
    }
}

/// Without the quotes around it, if there are any. What is escaped within them is left as it is.
pub fn unquoted(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(value)
}

/// All numbers of two decimal digits, one after another.
static PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut value = 0;
    while value < 100 {
        pairs[2 * value] = b'0' + (value / 10) as u8;
        pairs[2 * value + 1] = b'0' + (value % 10) as u8;
        value += 1;
    }
    pairs
};

/// Appends a number in decimal digits.
#[inline]
pub fn write_decimal(out: &mut Vec<u8>, value: u64) {
    if value < 10 {
        return out.push(b'0' + value as u8);
    }
    write_long_decimal(out, value);
}

/// The same of a number of two digits and more.
fn write_long_decimal(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    while value >= 10 {
        let pair = 2 * (value % 100) as usize;
        value /= 100;
        at -= 2;
        digits[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if value > 0 {
        at -= 1;
        digits[at] = b'0' + value as u8;
    }
    out.extend_from_slice(&digits[at..]);
}

/// So many decimal digits always fit a number of 64 bits.
const SAFE_DIGITS: usize = 19;

/// A number of decimal digits and nothing else; none when it is empty, has other bytes or does not fit.
pub fn decimal(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    if bytes.len() <= SAFE_DIGITS {
        let mut sum = 0;
        for byte in bytes {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            sum = sum * 10 + u64::from(digit);
        }
        return Some(sum);
    }
    bytes.iter().try_fold(0u64, |sum, &b| {
        let digit = b.checked_sub(b'0').filter(|d| *d <= 9)?;
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_for_another_whatever_its_case_and_its_dashes() {
        let is_taken = |name: &str| {
            Field { name: name.as_bytes(), value: b"", line: b"" }.is_taken_for("x-forwarded-for")
        };
        for name in ["x-forwarded-for", "X-Forwarded-For", "X_Forwarded_For", "x-FORWARDED_for"] {
            assert!(is_taken(name), "{name}");
        }
        for name in
            ["x-forwarded-fo", "x-forwarded-for-", "x.forwarded.for", "xxforwarded-for", "-_forwarded-for"]
        {
            assert!(!is_taken(name), "{name}");
        }
    }

    #[test]
    fn fields_are_walked_in_order_and_trimmed() {
        let all: Vec<_> = Fields::new(b"Host: a:80\r\nX:\t 1 \r\nEmpty:\r\n\r\n", false).collect();
        assert_eq!(all.len(), 3);
        assert!(all[0].is("host"));
        assert_eq!(all[0].value, b"a:80");
        assert_eq!(all[1].value, b"1");
        assert_eq!(all[2].value, b"");
    }

    #[test]
    fn a_field_is_written_in_one_way_however_it_came() {
        for line in [
            "A: b\r\n",
            "A:b\r\n",
            "A:  b\r\n",
            "A:\tb\r\n",
            "A: b\n",
            "A:  b\n",
            "A:b \r\n",
            "A: b \n",
            "A: b",
        ] {
            let field = Fields::new(line.as_bytes(), false).next().unwrap();
            let mut out = Vec::new();
            field.append(&mut out);
            assert_eq!(out, b"A: b\r\n", "{line:?}");
        }
        let mut out = Vec::new();
        Fields::new(b"A:\n", false).for_each(|field| field.append(&mut out));
        assert_eq!(out, b"A: \r\n");
    }

    #[test]
    fn a_list_is_split_at_commas_outside_quotes() {
        let all: Vec<_> = list(b" a ,, b=\"x,\\\"y\" ,c").collect();
        assert_eq!(all, [&b"a"[..], b"b=\"x,\\\"y\"", b"c"]);
        assert!(list_has(b"Keep-Alive, CLOSE", "close"));
        assert!(!list_has(b"closed", "close"));
    }

    #[test]
    fn a_token_cannot_hide_behind_a_quote() {
        assert_eq!(tokens(b" a ,, \"b , c").collect::<Vec<_>>(), [&b"a"[..], b"\"b", b"c"]);
        assert!(has_token(b"\"x, Close", "close") && !has_token(b"\"close\"", "close"));
    }

    #[test]
    fn a_parameter_is_found_outside_quotes() {
        let value = b"a/b; x=\"c; name=no\" ; NAME = \"yes\"; last=1";
        assert_eq!(parameter(value, "name"), Some(&b"yes"[..]));
        assert_eq!(parameter(value, "last"), Some(&b"1"[..]));
        assert_eq!(parameter(value, "c"), None);
        assert_eq!(parameter(b"a/b;;", "a"), None);
    }

    #[test]
    fn a_number_that_is_written_is_read_back() {
        for value in [0, 9, 10, 12_345, u64::MAX] {
            let mut out = Vec::new();
            write_decimal(&mut out, value);
            assert_eq!((out.as_slice(), decimal(&out)), (value.to_string().as_bytes(), Some(value)));
        }
    }

    #[test]
    fn a_decimal_number_is_digits_only_and_fits() {
        assert_eq!(decimal(b"0012"), Some(12));
        assert_eq!(decimal(b"18446744073709551615"), Some(u64::MAX));
        for bad in [&b""[..], b"+1", b"1 ", b"-1", b"0x1", b"18446744073709551616"] {
            assert_eq!(decimal(bad), None, "{bad:?}");
        }
    }
}
