//! How rows become columns in a Parquet file.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::unfinished::{Unfinished, partial_path};
use crate::{Cell, Column, FileError, Kind, ROWS_PER_GROUP};

/// The column in the words of Parquet.
fn schema(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Uint => (Physical::INT64, Some(LogicalType::integer(64, false))),
        Kind::Int => (Physical::INT64, None),
        Kind::Float => (Physical::DOUBLE, None),
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Bool => (Physical::BOOLEAN, None),
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

struct ColumnBuffer {
    buffer: Buffer,
    /// 1 where there is a value, 0 where there is none; unused when the column is required.
    levels: Vec<i16>,
}

impl ColumnBuffer {
    fn new(kind: Kind) -> Self {
        let buffer = match kind {
            Kind::Uint | Kind::Int => Buffer::Int(Vec::new()),
            Kind::Float => Buffer::Float(Vec::new()),
            Kind::Text => Buffer::Text(Vec::new(), HashMap::new()),
            Kind::Bool => Buffer::Bool(Vec::new()),
        };
        Self { buffer, levels: Vec::new() }
    }

    fn push(&mut self, column: &Column, cell: Cell<'_>) {
        let null = matches!(cell, Cell::Null);
        debug_assert!(column.optional || !null, "{} is required", column.name);
        if column.optional {
            self.levels.push(i16::from(!null));
            if null {
                return;
            }
        }
        match (&mut self.buffer, cell) {
            (Buffer::Int(values), Cell::Uint(value)) => values.push(value.cast_signed()),
            (Buffer::Int(values), Cell::Int(value)) => values.push(value),
            (Buffer::Float(values), Cell::Float(value)) => values.push(value),
            (Buffer::Bool(values), Cell::Bool(value)) => values.push(value),
            (Buffer::Text(values, seen), Cell::Text(text)) => {
                let last = values.last().filter(|last| last.data() == text.as_bytes());
                let known = last.or_else(|| seen.get(text)).cloned();
                values.push(known.unwrap_or_else(|| {
                    let bytes = ByteArray::from(text);
                    seen.insert(text.to_owned(), bytes.clone());
                    bytes
                }));
            }
            (_, cell) => debug_assert!(false, "{} cannot hold {cell:?}", column.name),
        }
    }

    /// Bytes that its values take at most in the file.
    fn bytes(&self) -> u64 {
        let values = match &self.buffer {
            Buffer::Int(values) => 8 * values.len(),
            Buffer::Float(values) => 8 * values.len(),
            Buffer::Text(values, _) => values.iter().map(|value| 4 + value.len()).sum(),
            Buffer::Bool(values) => values.len(),
        };
        (values + self.levels.len()) as u64
    }

    fn clear(&mut self) {
        match &mut self.buffer {
            Buffer::Int(values) => values.clear(),
            Buffer::Float(values) => values.clear(),
            Buffer::Text(values, seen) => {
                values.clear();
                seen.clear();
            }
            Buffer::Bool(values) => values.clear(),
        }
        self.levels.clear();
    }

    fn write<W: std::io::Write + Send>(
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

/// Room that is left free on a disk for what belongs to a table beside its rows, its footer above all.
const MARGIN_BYTES: u64 = 256 * 1024;

/// Writes rows to a Parquet file. Until [`TableWriter::finish`] the file is called `NAME.partial`.
///
/// A disk without room for more rows costs these rows, and not those before them: a row group is only begun if there is room for
/// it, since one that breaks off makes all of the file unreadable.
pub struct TableWriter {
    path: PathBuf,
    partial: PathBuf,
    columns: Vec<Column>,
    buffers: Vec<ColumnBuffer>,
    rows: usize,
    rows_per_group: usize,
    /// Rows that could not be written.
    lost: u64,
    writer: SerializedFileWriter<File>,
    /// What makes it readable before it is finished.
    unfinished: Option<Unfinished>,
}

impl TableWriter {
    /// Begins a file of these columns.
    pub fn create(path: &Path, columns: Vec<Column>) -> Result<Self, FileError> {
        let partial = partial_path(path);
        let file = File::create(&partial).map_err(|source| FileError::write(&partial, source))?;
        let build = || -> Result<SerializedFileWriter<File>, ParquetError> {
            let fields = columns.iter().map(schema).collect::<Result<Vec<_>, _>>()?;
            let schema = Type::group_type_builder("row").with_fields(fields).build()?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_created_by(concat!("assay ", env!("CARGO_PKG_VERSION")).to_owned())
                .build();
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
        };
        let writer = build().map_err(|source| FileError::write_parquet(&partial, source))?;
        let buffers = columns.iter().map(|column| ColumnBuffer::new(column.kind)).collect();
        Ok(Self {
            path: path.to_owned(),
            partial,
            columns,
            buffers,
            rows: 0,
            rows_per_group: ROWS_PER_GROUP,
            lost: 0,
            writer,
            unfinished: None,
        })
    }

    /// Begins a file that [`Table::read`](crate::Table::read) can read before it is finished, also if its writer is killed: up to the
    /// last row before [`TableWriter::keep`] was called.
    pub fn create_recoverable(path: &Path, columns: Vec<Column>) -> Result<Self, FileError> {
        let mut table = Self::create(path, columns)?;
        table.unfinished = Some(Unfinished::create(path, &mut table.writer)?);
        Ok(table)
    }

    /// Writes a row group as soon as so many rows have come together, [`ROWS_PER_GROUP`] at most: a table that gets a row now and then
    /// would grow in memory for many hours.
    #[must_use]
    pub fn in_groups_of(mut self, rows: usize) -> Self {
        self.rows_per_group = rows.clamp(1, ROWS_PER_GROUP);
        self
    }

    /// From now on, all rows so far outlive this process, if the table is recoverable.
    pub fn keep(&mut self) {
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.write();
        }
    }

    /// Rows that could not be written so far, because the disk is full.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Adds a row; writes a row group when enough have come together. After an error, more can be added: rows that have come
    /// together are lost, and what was written before is not.
    pub fn push(&mut self, row: &[Cell<'_>]) -> Result<(), FileError> {
        debug_assert_eq!(row.len(), self.columns.len());
        for ((buffer, column), cell) in self.buffers.iter_mut().zip(&self.columns).zip(row) {
            buffer.push(column, *cell);
        }
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.push(row);
        }
        self.rows += 1;
        if self.rows >= self.rows_per_group { self.flush() } else { Ok(()) }
    }

    /// Writes the rows that have come together.
    pub fn flush(&mut self) -> Result<(), FileError> {
        // Where that is not known, it is tried.
        let free = rustix::fs::statvfs(&self.partial)
            .map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        self.flush_into(free)
    }

    /// Writes the rows that have come together, if there are so many bytes of room on the disk.
    fn flush_into(&mut self, free_bytes: u64) -> Result<(), FileError> {
        if self.rows == 0 {
            return Ok(());
        }
        let bytes: u64 = self.buffers.iter().map(ColumnBuffer::bytes).sum();
        let written = match bytes.saturating_add(MARGIN_BYTES) <= free_bytes {
            true => self.write_group(),
            false => Err(FileError::write(&self.partial, io::ErrorKind::StorageFull.into())),
        };
        if written.is_err() {
            self.lost += self.rows as u64;
        }
        if let Some(unfinished) = &mut self.unfinished {
            match written {
                Ok(()) => unfinished.add_group(&mut self.writer),
                Err(_) => unfinished.drop_rows(&self.writer),
            }
        }
        self.buffers.iter_mut().for_each(ColumnBuffer::clear);
        self.rows = 0;
        written
    }

    fn write_group(&mut self) -> Result<(), FileError> {
        let mut write = || -> Result<(), ParquetError> {
            let mut group = self.writer.next_row_group()?;
            for (buffer, column) in self.buffers.iter_mut().zip(&self.columns) {
                buffer.write(column.optional, &mut group)?;
            }
            group.close()?;
            Ok(())
        };
        write().map_err(|source| FileError::write_parquet(&self.partial, source))
    }

    /// Writes what is left and the footer, and gives the file its name; also where there is no room for what is left, which is then
    /// an error.
    pub fn finish(mut self) -> Result<(), FileError> {
        let flushed = self.flush();
        // A group that broke off keeps the file from being finished; why it did is what matters.
        let finished = self.finish_file();
        flushed.and(finished)
    }

    fn finish_file(self) -> Result<(), FileError> {
        self.writer.close().map_err(|source| FileError::write_parquet(&self.partial, source))?;
        std::fs::rename(&self.partial, &self.path).map_err(|source| FileError::write(&self.path, source))?;
        if let Some(unfinished) = self.unfinished {
            unfinished.remove();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    fn columns() -> Vec<Column> {
        vec![
            Column::new("id", Kind::Uint, ""),
            Column::optional("when", Kind::Int, ""),
            Column::new("share", Kind::Float, ""),
            Column::optional("word", Kind::Text, ""),
            Column::new("yes", Kind::Bool, ""),
        ]
    }

    #[test]
    fn rows_come_back_as_they_were_over_several_row_groups() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let count = ROWS_PER_GROUP + 10;
        let mut writer = TableWriter::create(&path, columns()).unwrap();
        for row in 0..count {
            let when = (row % 3 == 0).then_some(row as i64 - 5);
            let word = (row % 2 == 0).then_some("even");
            writer
                .push(&[
                    Cell::Uint(u64::MAX - row as u64),
                    Cell::opt_int(when),
                    Cell::Float(row as f64 / 2.0),
                    Cell::opt_text(word),
                    Cell::Bool(row % 5 == 0),
                ])
                .unwrap();
        }
        assert!(!path.exists(), "a file has its name only once it is whole");
        writer.finish().unwrap();
        assert!(!partial_path(&path).exists());

        let table = Table::read(&path, &["id", "when", "share", "word", "yes"]).unwrap();
        assert_eq!(table.rows(), count);
        for row in [0, 1, 2, 3, ROWS_PER_GROUP - 1, ROWS_PER_GROUP, count - 1] {
            assert_eq!(table.uint("id", row).unwrap(), u64::MAX - row as u64);
            assert_eq!(table.opt_int("when", row).unwrap(), (row % 3 == 0).then_some(row as i64 - 5));
            assert_eq!(table.float("share", row).unwrap(), row as f64 / 2.0);
            assert_eq!(table.opt_text("word", row).unwrap(), (row % 2 == 0).then_some("even"));
            assert_eq!(table.bool("yes", row).unwrap(), row % 5 == 0);
        }
    }

    #[test]
    fn rows_that_a_full_disk_has_no_room_for_take_no_others_with_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = TableWriter::create(&path, vec![Column::new("id", Kind::Uint, "")]).unwrap();
        let mut write = |rows: std::ops::Range<u64>, free_bytes| {
            rows.for_each(|id| writer.push(&[Cell::Uint(id)]).unwrap());
            (writer.flush_into(free_bytes).map_err(|error| error.to_string()), writer.lost())
        };
        assert_eq!(write(0..1000, u64::MAX), (Ok(()), 0));
        let (failed, lost) = write(1000..1500, MARGIN_BYTES + 500 * 8 - 1);
        assert!(lost == 500 && failed.is_err_and(|why| why.contains("t.parquet.partial")));
        assert_eq!(write(1500..2000, MARGIN_BYTES + 500 * 8), (Ok(()), 500));
        writer.finish().unwrap();
        let table = Table::read(&path, &["id"]).unwrap();
        assert_eq!((table.rows(), table.uint("id", 1000).unwrap()), (1500, 1500));
    }

    #[test]
    fn a_group_that_claims_more_rows_than_are_ever_written_is_refused_before_they_are_decoded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = TableWriter::create(&path, vec![Column::new("id", Kind::Uint, "a number")]).unwrap();
        for row in 0..=ROWS_PER_GROUP as u64 {
            // As another program could write it.
            writer.buffers[0].push(&writer.columns[0], Cell::Uint(row));
            writer.rows += 1;
        }
        writer.finish().unwrap();
        let said = Table::read(&path, &["id"]).map(|table| table.rows()).unwrap_err().to_string();
        assert!(said.contains("t.parquet") && said.contains("claims"), "{said}");
    }

    #[test]
    fn a_missing_column_and_a_broken_file_are_errors_that_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        TableWriter::create(&path, columns()).unwrap().finish().unwrap();
        let table = Table::read(&path, &["id"]).unwrap();
        assert_eq!(table.rows(), 0);
        assert!(table.uint("other", 0).unwrap_err().to_string().contains("t.parquet"));
        std::fs::write(&path, b"PAR1 not really").unwrap();
        assert!(Table::read(&path, &["id"]).is_err());
    }
}
