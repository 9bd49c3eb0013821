//! Strings with numeric ranges, kept unexpanded.

use std::fmt;

use assay_base::random::{finalize, fold};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum PatternPart {
    Text(String),
    /// A number from `low` to `high`, written with at least `width` digits.
    Range {
        low: u64,
        high: u64,
        width: usize,
    },
    /// Users `low` to `high` of those that `credentials()` generates for a realm.
    Users {
        low: u64,
        high: u64,
        realm: String,
    },
}

impl PatternPart {
    /// Parses `lo-hi`, the text between brackets.
    pub fn range(inside: &str) -> Option<PatternPart> {
        let (low, high) = inside.split_once('-')?;
        let number = |part: &str| {
            let plain = !part.is_empty() && part.len() <= 15 && part.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| part.parse::<u64>().ok()).flatten()
        };
        let width = if low.starts_with('0') && low.len() > 1 { low.len() } else { 0 };
        let (low, high) = (number(low)?, number(high)?);
        (low <= high).then_some(PatternPart::Range { low, high, width })
    }

    fn count(&self) -> u64 {
        match self {
            PatternPart::Text(_) => 1,
            PatternPart::Range { low, high, .. } | PatternPart::Users { low, high, .. } => high - low + 1,
        }
    }
}

/// `user:password` of a generated user.
fn user(number: u64, realm: &str) -> String {
    let start = finalize(realm.bytes().fold(number, |hash, byte| fold(hash, u64::from(byte))));
    format!("user{number}_{:08x}@{realm}:pw{:08x}x", start >> 32, start & 0xffff_ffff)
}

/// One string, or a sequence of strings in which the last range varies fastest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Pattern {
    parts: Vec<PatternPart>,
}

impl Pattern {
    pub fn new(parts: Vec<PatternPart>) -> Self {
        let parts =
            parts.into_iter().filter(|part| !matches!(part, PatternPart::Text(text) if text.is_empty()));
        Self { parts: parts.collect() }
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(vec![PatternPart::Text(text.into())])
    }

    /// Realm and number of users, for the pattern of a call of `credentials()`.
    pub fn generated_users(&self) -> Option<(&str, u64)> {
        match self.parts.as_slice() {
            [PatternPart::Users { low: 1, high, realm }] => Some((realm, *high)),
            _ => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn count(&self) -> u64 {
        self.parts.iter().fold(1, |n: u64, part| n.saturating_mul(part.count()))
    }

    /// The string at an index below `count()`.
    pub fn nth(&self, mut index: u64) -> Pattern {
        let mut parts: Vec<String> = Vec::with_capacity(self.parts.len());
        for part in self.parts.iter().rev() {
            parts.push(match part {
                PatternPart::Text(text) => text.clone(),
                PatternPart::Range { low, width, .. } => {
                    let value = low + index % part.count();
                    index /= part.count();
                    format!("{value:0width$}")
                }
                PatternPart::Users { low, realm, .. } => {
                    let number = low + index % part.count();
                    index /= part.count();
                    user(number, realm)
                }
            });
        }
        parts.reverse();
        Pattern::plain(parts.concat())
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            PatternPart::Text(text) => f.write_str(text),
            PatternPart::Range { low, high, width } => write!(f, "[{low:0width$}-{high}]"),
            PatternPart::Users { low, high, realm } => write!(f, "user[{low}-{high}]@{realm}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_multiply_and_the_last_varies_fastest() {
        let pattern = Pattern::new(vec![
            PatternPart::Text("u".into()),
            PatternPart::range("1-1000").unwrap(),
            PatternPart::Text("x".into()),
            PatternPart::range("1-2").unwrap(),
        ]);
        assert_eq!(pattern.count(), 2000);
        assert_eq!(pattern.nth(0).to_string(), "u1x1");
        assert_eq!(pattern.nth(3).to_string(), "u2x2");
        assert_eq!(pattern.to_string(), "u[1-1000]x[1-2]");
    }

    #[test]
    fn leading_zeros_keep_their_width() {
        let pattern = Pattern::new(vec![PatternPart::range("008-010").unwrap()]);
        assert_eq!([0, 1, 2].map(|n| pattern.nth(n).to_string()), ["008", "009", "010"]);
    }

    #[test]
    fn lists_and_backward_ranges_are_no_ranges() {
        for inside in ["1,2", "3-1", "1", "", "a-b", "1-", "-1", "1-9999999999999999"] {
            assert_eq!(PatternPart::range(inside), None, "{inside}");
        }
    }
}
