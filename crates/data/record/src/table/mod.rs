//! Tables on disk: rows of named columns of five kinds, as Parquet files.
//!
//! Plain columns need no Arrow. Rows are collected and written as a row group when there are enough of them, so memory stays
//! bounded; a file has its name only once it is whole. A table that is written for hours can be recoverable: then it can be read before that,
//! also if its writer is killed. What is in a file that somebody else wrote, or that was damaged, ends
//! in an error that names the file.
//!
//! *Does not:* know what is in a table (that is [`columns`](crate::columns)).

mod buffer;
mod claims;
mod error;
mod format;
mod read;
mod rows;
mod thrift;
mod unfinished;
mod write;

pub use error::{Claim, FileError};
pub use read::{IntegerColumn, MOST, Table, columns_of};
pub use unfinished::{is_readable, is_unfinished, partial_path};
pub use write::TableWriter;

/// Rows per row group.
pub const ROWS_PER_GROUP: usize = 65_536;

/// Type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// Unsigned 64-bit integer.
    Uint,
    /// Signed 64-bit integer.
    Int,
    Float,
    /// UTF-8.
    Text,
    Bool,
}

/// A column: its name, type and meaning.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    pub kind: ColumnKind,
    pub optional: bool,
    /// One sentence for the reference page.
    pub about: &'static str,
}

impl Column {
    /// A column that has a value in every row.
    pub const fn new(name: &'static str, kind: ColumnKind, about: &'static str) -> Self {
        Self { name, kind, optional: false, about }
    }

    /// A column whose values may be null.
    pub const fn optional(name: &'static str, kind: ColumnKind, about: &'static str) -> Self {
        Self { name, kind, optional: true, about }
    }

    /// Name of the type on the reference page.
    pub fn kind_name(&self) -> &'static str {
        match (self.kind, self.optional) {
            (ColumnKind::Uint, false) => "uint64",
            (ColumnKind::Uint, true) => "uint64 or null",
            (ColumnKind::Int, false) => "int64",
            (ColumnKind::Int, true) => "int64 or null",
            (ColumnKind::Float, false) => "double",
            (ColumnKind::Float, true) => "double or null",
            (ColumnKind::Text, false) => "text",
            (ColumnKind::Text, true) => "text or null",
            (ColumnKind::Bool, false) => "boolean",
            (ColumnKind::Bool, true) => "boolean or null",
        }
    }
}

/// One value of a row, in the order of the table's columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    Null,
    Uint(u64),
    Int(i64),
    Float(f64),
    Text(&'a str),
    Bool(bool),
}

impl<'a> Cell<'a> {
    /// A value, or null.
    pub fn opt_int(value: Option<i64>) -> Self {
        value.map_or(Cell::Null, Cell::Int)
    }

    /// A value, or null.
    pub fn opt_uint(value: Option<u64>) -> Self {
        value.map_or(Cell::Null, Cell::Uint)
    }

    /// A value, or null.
    pub fn opt_text(value: Option<&'a str>) -> Self {
        value.map_or(Cell::Null, Cell::Text)
    }
}
