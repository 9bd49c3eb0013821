//! What a format string is made of, whatever the dialect.

use super::field::Field;

/// A piece of a format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Literal(String),
    Field {
        field: Field,
        /// The field as the format writes it: `$status`.
        word: String,
        /// Whether the field stands in quotes if it is a text (HAProxy's `%{+Q}o`).
        quoted: bool,
    },
}

impl Token {
    pub(super) fn field(field: Field, word: impl Into<String>) -> Self {
        Self::Field { field, word: word.into(), quoted: false }
    }

    /// The field; none for a literal.
    pub(super) fn as_field(&self) -> Option<&Field> {
        match self {
            Self::Literal(_) => None,
            Self::Field { field, .. } => Some(field),
        }
    }

    /// The piece as the format writes it.
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Literal(text) => text,
            Self::Field { word, .. } => word,
        }
    }

    pub(super) fn quoted(field: Field, word: impl Into<String>) -> Self {
        Self::Field { field, word: word.into(), quoted: true }
    }
}

/// The part of a format string between what was left at one point and what is left now.
pub(super) fn consumed<'f>(before: &'f str, rest: &str) -> &'f str {
    &before[..before.len() - rest.len()]
}
