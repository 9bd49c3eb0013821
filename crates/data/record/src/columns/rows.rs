//! Columns of declared types, and the conversion of values to rows and back.

use crate::table::{Cell, Column, ColumnKind, FileError, Table};
use assay_measurement::declared::{Described, Kind as Declared, Value};

/// Columns that hold any number of 64 bits: they are never added up as counts are.
const DIGESTS: [&str; 1] = ["due_digest"];

/// The columns of a type, one for each field.
pub(crate) fn columns<T: Described>() -> Vec<Column> {
    let column = |name, kind, about| match kind {
        Declared::Uint => Column::new(name, ColumnKind::Uint, about),
        Declared::OptionalUint => Column::optional(name, ColumnKind::Uint, about),
        Declared::Float => Column::new(name, ColumnKind::Float, about),
        Declared::Text => Column::new(name, ColumnKind::Text, about),
    };
    T::FIELDS.iter().map(|field| column(field.name, field.kind, field.meaning)).collect()
}

/// A row: the number by which other tables reference it, if any, and its values.
pub(crate) fn row<T: Described>(number: Option<u64>, item: &T) -> Vec<Cell<'_>> {
    number.map(Cell::Uint).into_iter().chain(cells(item)).collect()
}

/// The values of an item, in the order of its columns.
pub(crate) fn cells<T: Described>(item: &T) -> impl Iterator<Item = Cell<'_>> {
    T::FIELDS.iter().map(|field| match (field.get)(item) {
        Value::Uint(number) => Cell::Uint(number),
        Value::Float(number) => Cell::Float(number),
        Value::Text(text) => Cell::Text(text),
        Value::None => Cell::Null,
    })
}

/// Reads a row; histograms and maps come from other tables. A column that the file lacks was added after it was written, and its
/// field keeps its default; except for columns of time, without which a row means nothing.
pub(crate) fn read<T: Described>(table: &Table, row: usize) -> Result<T, FileError> {
    let mut item = T::default();
    for field in T::FIELDS {
        let name = field.name;
        if !table.has(name) && !["start_ms", "length_ms", "at_ms"].contains(&name) {
            continue;
        }
        let value = match field.kind {
            Declared::Uint if DIGESTS.contains(&name) => Value::Uint(table.uint(name, row)?),
            Declared::Uint => Value::Uint(table.count(name, row)?),
            Declared::OptionalUint if table.opt_uint(name, row)?.is_none() => Value::None,
            Declared::OptionalUint => Value::Uint(table.count(name, row)?),
            Declared::Float => Value::Float(table.float(name, row)?),
            Declared::Text => Value::Text(table.text(name, row)?),
        };
        if !(field.set)(&mut item, value) {
            return Err(match value {
                Value::Text(text) => table.unknown(name, text),
                Value::Uint(number) => table.out_of_range(name, number),
                Value::Float(_) | Value::None => table.unknown(name, "a value of another kind"),
            });
        }
    }
    Ok(item)
}
