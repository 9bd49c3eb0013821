//! Buffered values of columns, and their way into a row group.

use std::collections::HashMap;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;
use parquet::schema::types::{Type, TypePtr};

use crate::table::{Cell, Column, ColumnKind};

/// Parquet schema of a column.
pub(crate) fn schema(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.kind {
        ColumnKind::Uint => (Physical::INT64, Some(LogicalType::integer(64, false))),
        ColumnKind::Int => (Physical::INT64, None),
        ColumnKind::Float => (Physical::DOUBLE, None),
        ColumnKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnKind::Bool => (Physical::BOOLEAN, None),
    };
    let repetition = if column.optional { Repetition::OPTIONAL } else { Repetition::REQUIRED };
    Type::primitive_type_builder(column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()
        .map(Arc::new)
}

/// Values of a column that have not been written yet.
enum Buffer {
    Int(Vec<i64>),
    Float(Vec<f64>),
    /// Values repeat a lot, mostly one right after the other: each distinct text is kept once per row group.
    Text(Vec<ByteArray>, HashMap<String, ByteArray>),
    Bool(Vec<bool>),
}

/// Buffered values of a column, with their definition levels.
pub(crate) struct ColumnBuffer {
    buffer: Buffer,
    /// Definition levels: 1 where there is a value, 0 where there is none; unused when the column is required.
    levels: Vec<i16>,
}

impl ColumnBuffer {
    pub(crate) fn new(kind: ColumnKind) -> Self {
        let buffer = match kind {
            ColumnKind::Uint | ColumnKind::Int => Buffer::Int(Vec::new()),
            ColumnKind::Float => Buffer::Float(Vec::new()),
            ColumnKind::Text => Buffer::Text(Vec::new(), HashMap::new()),
            ColumnKind::Bool => Buffer::Bool(Vec::new()),
        };
        Self { buffer, levels: Vec::new() }
    }

    /// Adds a value; returns the bytes of text by which the buffer grew.
    pub(crate) fn push(&mut self, column: &Column, cell: Cell<'_>) -> usize {
        let null = matches!(cell, Cell::Null);
        debug_assert!(column.optional || !null, "{} is required", column.name);
        if column.optional {
            self.levels.push(i16::from(!null));
            if null {
                return 0;
            }
        }
        match (&mut self.buffer, cell) {
            (Buffer::Int(values), Cell::Uint(value)) => values.push(value.cast_signed()),
            (Buffer::Int(values), Cell::Int(value)) => values.push(value),
            (Buffer::Float(values), Cell::Float(value)) => values.push(value),
            (Buffer::Bool(values), Cell::Bool(value)) => values.push(value),
            (Buffer::Text(values, interned), Cell::Text(text)) => {
                let last = values.last().filter(|last| last.data() == text.as_bytes());
                let known = last.or_else(|| interned.get(text)).cloned();
                let more = if known.is_none() { text.len() } else { 0 };
                values.push(known.unwrap_or_else(|| {
                    let bytes = ByteArray::from(text);
                    interned.insert(text.to_owned(), bytes.clone());
                    bytes
                }));
                return more;
            }
            (_, cell) => debug_assert!(false, "{} cannot hold {cell:?}", column.name),
        }
        0
    }

    /// Upper bound on the bytes of the values in the file.
    pub(crate) fn bytes(&self) -> u64 {
        let values = match &self.buffer {
            Buffer::Int(values) => 8 * values.len(),
            Buffer::Float(values) => 8 * values.len(),
            Buffer::Text(values, _) => values.iter().map(|value| 4 + value.len()).sum(),
            Buffer::Bool(values) => values.len(),
        };
        (values + self.levels.len()) as u64
    }

    pub(crate) fn clear(&mut self) {
        match &mut self.buffer {
            Buffer::Int(values) => values.clear(),
            Buffer::Float(values) => values.clear(),
            Buffer::Text(values, interned) => {
                values.clear();
                interned.clear();
            }
            Buffer::Bool(values) => values.clear(),
        }
        self.levels.clear();
    }

    /// Writes the values as the next column of a row group.
    pub(crate) fn write<W: std::io::Write + Send>(
        &mut self,
        optional: bool,
        group: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<(), ParquetError> {
        let Some(mut writer) = group.next_column()? else {
            return Err(ParquetError::General("fewer columns in the file than in the table".into()));
        };
        let levels = optional.then_some(self.levels.as_slice());
        match &mut self.buffer {
            Buffer::Int(values) => writer.typed::<Int64Type>().write_batch(values, levels, None)?,
            Buffer::Float(values) => writer.typed::<DoubleType>().write_batch(values, levels, None)?,
            Buffer::Bool(values) => writer.typed::<BoolType>().write_batch(values, levels, None)?,
            Buffer::Text(values, _) => writer.typed::<ByteArrayType>().write_batch(values, levels, None)?,
        };
        writer.close()
    }
}
