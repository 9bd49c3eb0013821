//! Strings with numeric ranges in them, kept as they are written.

use std::fmt;

use assay_base::random::{finalize, fold};

/// Part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Piece {
    Text(String),
    /// A number from `low` to `high`, written with at least `width` digits.
    Range {
        low: u64,
        high: u64,
        width: usize,
    },
    /// Users number `low` to `high` of those that `credentials()` makes up for a realm.
    Users {
        low: u64,
        high: u64,
        realm: String,
    },
}

impl Piece {
    /// `lo-hi`, as it stands between brackets.
    pub fn range(inside: &str) -> Option<Piece> {
        let (low, high) = inside.split_once('-')?;
        let number = |part: &str| {
            let plain = !part.is_empty() && part.len() <= 15 && part.bytes().all(|b| b.is_ascii_digit());
            plain.then(|| part.parse::<u64>().ok()).flatten()
        };
        let width = if low.starts_with('0') && low.len() > 1 { low.len() } else { 0 };
        let (low, high) = (number(low)?, number(high)?);
        (low <= high).then_some(Piece::Range { low, high, width })
    }

    fn count(&self) -> u64 {
        match self {
            Piece::Text(_) => 1,
            Piece::Range { low, high, .. } | Piece::Users { low, high, .. } => high - low + 1,
        }
    }
}

/// `user:password` of a user that is made up.
fn user(number: u64, realm: &str) -> String {
    let start = finalize(realm.bytes().fold(number, |hash, byte| fold(hash, u64::from(byte))));
    format!("user{number}_{:08x}@{realm}:pw{:08x}x", start >> 32, start & 0xffff_ffff)
}

/// A string, or many in a row: the last range varies fastest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Pattern {
    pieces: Vec<Piece>,
}

impl Pattern {
    /// Of pieces, in order.
    pub fn new(pieces: Vec<Piece>) -> Self {
        let pieces =
            pieces.into_iter().filter(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()));
        Self { pieces: pieces.collect() }
    }

    pub fn plain(text: impl Into<String>) -> Self {
        Self::new(vec![Piece::Text(text.into())])
    }

    /// The realm and number of users, when it is all that `credentials()` made up for it.
    pub fn made_users(&self) -> Option<(&str, u64)> {
        match self.pieces.as_slice() {
            [Piece::Users { low: 1, high, realm }] => Some((realm, *high)),
            _ => None,
        }
    }

    /// True for the empty string.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub fn count(&self) -> u64 {
        self.pieces.iter().fold(1, |n: u64, piece| n.saturating_mul(piece.count()))
    }

    /// The string at a place below `count()`.
    pub fn nth(&self, mut index: u64) -> Pattern {
        let mut parts: Vec<String> = Vec::with_capacity(self.pieces.len());
        for piece in self.pieces.iter().rev() {
            parts.push(match piece {
                Piece::Text(text) => text.clone(),
                Piece::Range { low, width, .. } => {
                    let value = low + index % piece.count();
                    index /= piece.count();
                    format!("{value:0width$}")
                }
                Piece::Users { low, realm, .. } => {
                    let number = low + index % piece.count();
                    index /= piece.count();
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
        self.pieces.iter().try_for_each(|piece| match piece {
            Piece::Text(text) => f.write_str(text),
            Piece::Range { low, high, width } => write!(f, "[{low:0width$}-{high}]"),
            Piece::Users { low, high, realm } => write!(f, "user[{low}-{high}]@{realm}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_multiply_and_the_last_varies_fastest() {
        let pattern = Pattern::new(vec![
            Piece::Text("u".into()),
            Piece::range("1-1000").unwrap(),
            Piece::Text("x".into()),
            Piece::range("1-2").unwrap(),
        ]);
        assert_eq!(pattern.count(), 2000);
        assert_eq!(pattern.nth(0).to_string(), "u1x1");
        assert_eq!(pattern.nth(3).to_string(), "u2x2");
        assert_eq!(pattern.to_string(), "u[1-1000]x[1-2]");
    }

    #[test]
    fn leading_zeros_keep_their_width() {
        let pattern = Pattern::new(vec![Piece::range("008-010").unwrap()]);
        assert_eq!([0, 1, 2].map(|n| pattern.nth(n).to_string()), ["008", "009", "010"]);
    }

    #[test]
    fn lists_and_backward_ranges_are_no_ranges() {
        for inside in ["1,2", "3-1", "1", "", "a-b", "1-", "-1", "1-9999999999999999"] {
            assert_eq!(Piece::range(inside), None, "{inside}");
        }
    }
}
