//! What stands between the columns of a line.

use std::borrow::Cow;

pub(super) const OPENING: [char; 3] = ['(', '[', '{'];
pub(super) const CLOSING: [char; 3] = [')', ']', '}'];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Separator {
    /// A tab, a comma or a semicolon. Blanks around a field are no part of it; one in quotation marks may contain the separator, and
    /// a mark as two of them (RFC 4180).
    Byte(u8),
    /// Any number of blanks and tabs.
    Blanks,
    /// Nothing: a line is one column.
    Nothing,
}

impl Separator {
    /// All that lines may have, the surest first.
    pub const ALL: [Self; 5] =
        [Self::Byte(b'\t'), Self::Byte(b','), Self::Byte(b';'), Self::Blanks, Self::Nothing];

    /// Commas separate columns, so they cannot stand within numbers.
    pub fn is_comma(self) -> bool {
        self == Self::Byte(b',')
    }

    /// The fields of a line.
    pub fn fields(self, line: &[u8]) -> ColumnIter<'_> {
        ColumnIter { separator: self, rest: Some(line) }
    }

    /// The names of columns in a line. What is in brackets explains the name before it, and separates nothing. A separator at the end
    /// begins no column.
    pub fn names(self, line: &str) -> Vec<String> {
        let line = line.trim_matches([' ', '\r']).trim_start_matches('#').trim_matches(' ');
        let is_balanced = line.matches(OPENING).count() == line.matches(CLOSING).count();
        let mut names = if is_balanced && line.contains(OPENING) {
            self.explained_names(line)
        } else {
            let fields = self.fields(line.as_bytes());
            fields.map(|field| String::from_utf8_lossy(&field).into_owned()).collect()
        };
        if names.len() > 1 && names.last().is_some_and(String::is_empty) {
            names.pop();
        }
        names
    }

    /// The same of a line in which all brackets end.
    fn explained_names(self, line: &str) -> Vec<String> {
        let (mut names, mut depth, mut is_quoted) = (vec![String::new()], 0_usize, false);
        let mut letters = line.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '"' => is_quoted = !is_quoted,
                letter if OPENING.contains(&letter) => depth += 1,
                letter if CLOSING.contains(&letter) => depth = depth.saturating_sub(1),
                _ => {}
            }
            let next_opens = letters.peek().is_some_and(|next| OPENING.contains(next));
            let separates = depth == 0
                && !is_quoted
                && match self {
                    Self::Byte(byte) => letter == char::from(byte),
                    Self::Blanks => letter.is_ascii_whitespace() && !next_opens,
                    Self::Nothing => false,
                };
            if separates {
                names.push(String::new());
            } else if let Some(name) = names.last_mut().filter(|_| letter != '"') {
                name.push(letter);
            }
        }
        names.iter_mut().for_each(|name| *name = name.trim().to_owned());
        if self == Self::Blanks {
            names.retain(|name| !name.is_empty());
        }
        names
    }
}

/// The fields of a line, one by one.
#[derive(Debug)]
pub struct ColumnIter<'l> {
    separator: Separator,
    rest: Option<&'l [u8]>,
}

impl<'l> Iterator for ColumnIter<'l> {
    type Item = Cow<'l, [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.rest?;
        match self.separator {
            Separator::Byte(separator) => {
                let begins = line.iter().position(|byte| *byte != b' ').unwrap_or(line.len());
                if line.get(begins) == Some(&b'"') {
                    let (field, rest) = quoted(&line[begins + 1..], separator);
                    self.rest = rest;
                    return Some(field.into());
                }
                let end = memchr::memchr(separator, line);
                self.rest = end.map(|end| &line[end + 1..]);
                Some(line[..end.unwrap_or(line.len())].trim_ascii().into())
            }
            Separator::Blanks => {
                let line = line.trim_ascii_start();
                let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
                let (field, rest) = line.split_at(end);
                self.rest = Some(rest);
                (!field.is_empty()).then(|| field.into())
            }
            Separator::Nothing => {
                self.rest = None;
                Some(line.trim_ascii().into())
            }
        }
    }
}

/// A field after its first quotation mark, and what comes after the separator behind it.
fn quoted(line: &[u8], separator: u8) -> (Vec<u8>, Option<&[u8]>) {
    let (mut field, mut at) = (Vec::new(), 0);
    while at < line.len() {
        match (line[at], line.get(at + 1)) {
            (b'"', Some(b'"')) => at += 1,
            (b'"', _) => break,
            _ => {}
        }
        field.push(line[at]);
        at += 1;
    }
    let after = line.get(at + 1..).unwrap_or_default();
    (field, memchr::memchr(separator, after).map(|end| &after[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(separator: Separator, line: &str) -> Vec<String> {
        let fields = separator.fields(line.as_bytes());
        fields.map(|field| String::from_utf8(field.into_owned()).unwrap()).collect()
    }

    #[test]
    fn fields_are_told_apart_by_what_separates_them() {
        let [tab, comma, semicolon, blanks, nothing] = Separator::ALL;
        assert_eq!(fields(comma, "1, a ,,\"b,\"\"c\"\"\", \"d\""), ["1", "a", "", "b,\"c\"", "d"]);
        assert_eq!(fields(comma, "a,"), ["a", ""]);
        assert_eq!(fields(semicolon, "0,33;\"a;b\";5"), ["0,33", "a;b", "5"]);
        assert_eq!(fields(tab, "a b\t\tc"), ["a b", "", "c"]);
        assert_eq!(fields(blanks, "  1  1416\t16575 "), ["1", "1416", "16575"]);
        assert_eq!(fields(nothing, "http://a/b,c d"), ["http://a/b,c d"]);
        assert_eq!(fields(comma, "\"a,5"), ["a,5"]);
    }

    #[test]
    fn brackets_explain_the_name_before_them_and_separate_nothing() {
        let [_, comma, semicolon, blanks, _] = Separator::ALL;
        let ibm = "# timestamp (ms), op type [Put:0, Get:1], object id, object size (byte)";
        let expected = ["timestamp (ms)", "op type [Put:0, Get:1]", "object id", "object size (byte)"];
        assert_eq!(comma.names(ibm), expected);
        assert_eq!(blanks.names("# time (ms) id size (byte)"), ["time (ms)", "id", "size (byte)"]);
        assert_eq!(semicolon.names("\"time (s; exact)\";id"), ["time (s; exact)", "id"]);
        assert_eq!(comma.names("size (kb, id"), ["size (kb", "id"], "no bracket that ends");
        assert_eq!(comma.names("\"time\",id"), ["time", "id"]);
    }
}
