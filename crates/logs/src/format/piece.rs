//! What a format string is made of, whatever the dialect.

use super::field::Field;

/// A piece of a format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Field(Field),
    /// A field that stands in quotes if it is a text (HAProxy's `%{+Q}o`).
    Quoted(Field),
}
