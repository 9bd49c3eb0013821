//! Writing of rows to a Parquet file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::table::buffer::{ColumnBuffer, schema};
use crate::table::unfinished::{RecoveryFiles, partial_path};
use crate::table::{Cell, Column, FileError, ROWS_PER_GROUP};

/// Bytes of texts at which a row group is written, however few rows it has: those that others choose, such as URLs, may be a
/// thousand times as long as usual.
const TEXT_BYTES_PER_GROUP: usize = 16 << 20;

/// Bytes left free on a disk for what belongs to a table beside its rows, its footer above all.
const MARGIN_BYTES: u64 = 256 * 1024;

/// Bytes of rows that could not be kept beside a table at which they go into a row group, if there is room for one.
const MAX_UNWRITTEN_BYTES: usize = 16 << 20;

/// Writes rows to a Parquet file. Until [`TableWriter::finish`] the file is called `NAME.partial`.
///
/// A disk without room for more rows costs these rows, and not those before them: a row group is only begun if there is room for
/// it, since one that breaks off makes all of the file unreadable. Rows of a recoverable table stay beside it then, as long as there is
/// room for that, and come into it as soon as there is more.
pub struct TableWriter {
    path: PathBuf,
    partial: PathBuf,
    columns: Vec<Column>,
    buffers: Vec<ColumnBuffer>,
    /// Rows in the buffers, or beside the table.
    rows: usize,
    /// Bytes of the texts in them, each counted once.
    text_bytes: usize,
    rows_per_group: usize,
    /// Rows that could not be written.
    lost: u64,
    writer: SerializedFileWriter<File>,
    /// A row group broke off: no other can follow.
    is_broken: bool,
    /// Files that make the table readable before it is finished, if it is recoverable.
    recovery: Option<RecoveryFiles>,
    /// Reason for which rows are only beside the table: as a rule, no room for a row group. None: they are not.
    aside: Option<io::ErrorKind>,
}

impl TableWriter {
    /// Creates a file with these columns.
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
            text_bytes: 0,
            rows_per_group: ROWS_PER_GROUP,
            lost: 0,
            writer,
            is_broken: false,
            recovery: None,
            aside: None,
        })
    }

    /// Creates a file that [`Table::read`](crate::table::Table::read) can read before it is finished, also if its writer is
    /// killed: up to the last row before [`TableWriter::keep`] was called.
    pub fn create_recoverable(path: &Path, columns: Vec<Column>) -> Result<Self, FileError> {
        let mut table = Self::create(path, columns)?;
        table.recovery = Some(RecoveryFiles::create(path, &mut table.writer)?);
        Ok(table)
    }

    /// Writes a row group of every `rows` rows, [`ROWS_PER_GROUP`] at most: a table that gets a row now and then would grow in
    /// memory for many hours.
    #[must_use]
    pub fn in_groups_of(mut self, rows: usize) -> Self {
        self.rows_per_group = rows.clamp(1, ROWS_PER_GROUP);
        self
    }

    /// Makes all rows so far outlive this process, if the table is recoverable. After an error, the rest is tried again.
    pub fn keep(&mut self) -> Result<(), FileError> {
        self.recovery.as_mut().map_or(Ok(()), RecoveryFiles::write)
    }

    /// Rows that could not be written so far, because the disk is full.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Adds a row; writes a row group when enough have come together. After an error, more can be added: rows that have come
    /// together are lost, or kept ([`FileError::Kept`]), and what was written before is not lost.
    pub fn push(&mut self, row: &[Cell<'_>]) -> Result<(), FileError> {
        debug_assert_eq!(row.len(), self.columns.len());
        let kept_bytes = self.recovery.as_mut().map_or(0, |recovery| recovery.push(row));
        if self.aside.is_some() {
            self.text_bytes += kept_bytes;
        } else {
            self.buffer(row);
        }
        self.rows += 1;
        let unwritten = self.recovery.as_ref().map_or(0, RecoveryFiles::unwritten_bytes);
        let is_enough = self.rows >= self.rows_per_group
            || self.text_bytes >= TEXT_BYTES_PER_GROUP
            || unwritten >= MAX_UNWRITTEN_BYTES;
        if is_enough { self.flush() } else { Ok(()) }
    }

    fn buffer(&mut self, row: &[Cell<'_>]) {
        for ((buffer, column), cell) in self.buffers.iter_mut().zip(&self.columns).zip(row) {
            self.text_bytes += buffer.push(column, *cell);
        }
    }

    /// Writes the rows so far.
    pub fn flush(&mut self) -> Result<(), FileError> {
        // Where free space is not known, writing is tried.
        let free = rustix::fs::statvfs(&self.partial)
            .map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        self.flush_into(free)
    }

    /// Writes the rows so far, if the disk has room for them in `free_bytes`.
    fn flush_into(&mut self, free_bytes: u64) -> Result<(), FileError> {
        if self.rows == 0 && self.aside.is_none() {
            return Ok(());
        }
        let rows = self.rows as u64;
        let written = match self.aside {
            None => self.write_buffers(free_bytes),
            Some(_) => self.take_back(free_bytes),
        };
        self.clear();
        let Err(cause) = written else { return Ok(()) };
        let Some(recovery) = &mut self.recovery else {
            self.lost += rows;
            return Err(cause);
        };
        let lost = recovery.set_aside();
        self.lost += lost;
        let was_aside = self.aside.replace(cause.kind()).is_some();
        match (lost, was_aside) {
            (0, true) => Ok(()),
            (0, false) => Err(self.kept(cause.kind())),
            _ => Err(cause),
        }
    }

    fn clear(&mut self) {
        self.buffers.iter_mut().for_each(ColumnBuffer::clear);
        (self.rows, self.text_bytes) = (0, 0);
    }

    fn kept(&self, cause: io::ErrorKind) -> FileError {
        let rows = self.recovery.as_ref().map_or(0, |recovery| recovery.aside().0);
        FileError::Kept { path: self.path.clone(), rows, cause }
    }

    /// Refuses to begin a row group of up to `bytes` bytes where there is no room for it.
    fn check_room(&self, bytes: u64, free_bytes: u64) -> Result<(), FileError> {
        if bytes.saturating_add(MARGIN_BYTES) <= free_bytes && !self.is_broken {
            return Ok(());
        }
        Err(FileError::write(&self.partial, io::ErrorKind::StorageFull.into()))
    }

    fn write_buffers(&mut self, free_bytes: u64) -> Result<(), FileError> {
        self.check_room(self.buffers.iter().map(ColumnBuffer::bytes).sum(), free_bytes)?;
        self.write_group()?;
        if let Some(recovery) = &mut self.recovery {
            recovery.add_groups(&mut self.writer);
        }
        Ok(())
    }

    /// Writes the rows that are only beside the table into row groups.
    fn take_back(&mut self, free_bytes: u64) -> Result<(), FileError> {
        let Some(mut recovery) = self.recovery.take() else { return Ok(()) };
        let room = self.check_room(recovery.aside().1, free_bytes);
        let taken = room.and_then(|()| {
            recovery.take_back(self.columns.len(), |rows| {
                self.clear();
                rows.iter().for_each(|row| self.buffer(row));
                self.write_group()
            })
        });
        if taken.is_ok() {
            recovery.add_groups(&mut self.writer);
            self.aside = None;
        }
        self.recovery = Some(recovery);
        taken
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
        let written = write().map_err(|source| FileError::write_parquet(&self.partial, source));
        self.is_broken |= written.is_err();
        written
    }

    /// Writes the remaining rows and the footer, and gives the file its name; also where there is no room for these rows, which
    /// is then an error. A recoverable table stays unfinished where there is no room ([`FileError::Kept`]), and can be read as
    /// it is.
    pub fn finish(mut self) -> Result<(), FileError> {
        let flushed = self.flush();
        if let Some(cause) = self.aside {
            return flushed.and(Err(self.kept(cause)));
        }
        // A group that broke off keeps the file from being finished; why it did is what matters.
        let finished = self.finish_file();
        flushed.and(finished)
    }

    fn finish_file(mut self) -> Result<(), FileError> {
        let closed = self.writer.finish().map_err(|source| FileError::write_parquet(&self.partial, source));
        if let Err(cause) = closed {
            return Err(if self.recovery.is_some() { self.kept(cause.kind()) } else { cause });
        }
        std::fs::rename(&self.partial, &self.path).map_err(|source| FileError::write(&self.path, source))?;
        if let Some(recovery) = self.recovery {
            recovery.remove();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{ColumnKind, Table};

    fn columns() -> Vec<Column> {
        vec![
            Column::new("id", ColumnKind::Uint, ""),
            Column::optional("when", ColumnKind::Int, ""),
            Column::new("share", ColumnKind::Float, ""),
            Column::optional("word", ColumnKind::Text, ""),
            Column::new("yes", ColumnKind::Bool, ""),
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
    fn long_texts_are_written_before_they_fill_the_memory_and_repeated_ones_are_not_counted_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = TableWriter::create(&path, vec![Column::new("word", ColumnKind::Text, "")]).unwrap();
        let text = |row: usize| format!("{row:060000}");
        let kept = |writer: &TableWriter| writer.buffers.iter().map(ColumnBuffer::bytes).sum::<u64>();
        for row in 0..700 {
            writer.push(&[Cell::Text(&text(row))]).unwrap();
            assert!(kept(&writer) < TEXT_BYTES_PER_GROUP as u64 + 60_004, "{row}: {} bytes", kept(&writer));
        }
        assert_eq!(writer.writer.flushed_row_groups().len(), 2);
        (0..700).for_each(|_| writer.push(&[Cell::Text(&text(1))]).unwrap());
        assert_eq!(writer.writer.flushed_row_groups().len(), 2);
        writer.finish().unwrap();
        let table = Table::read(&path, &["word"]).unwrap();
        assert_eq!(table.rows(), 1400);
        for (row, word) in [(0, 0), (279, 279), (280, 280), (699, 699), (700, 1), (1399, 1)] {
            assert_eq!(table.text("word", row).unwrap(), text(word), "{row}");
        }
    }

    #[test]
    fn rows_that_a_full_disk_has_no_room_for_take_no_others_with_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = TableWriter::create(&path, vec![Column::new("id", ColumnKind::Uint, "")]).unwrap();
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

    /// A recoverable table, and what becomes of so many rows more with so many bytes of room.
    fn recoverable(path: &Path) -> TableWriter {
        TableWriter::create_recoverable(path, vec![Column::new("id", ColumnKind::Uint, "")]).unwrap()
    }

    fn write(writer: &mut TableWriter, rows: std::ops::Range<u64>, free_bytes: u64) -> Result<(), String> {
        rows.for_each(|id| writer.push(&[Cell::Uint(id)]).unwrap());
        writer.flush_into(free_bytes).map_err(|error| error.to_string())
    }

    fn ids(path: &Path) -> Vec<u64> {
        let table = Table::read(path, &["id"]).unwrap();
        (0..table.rows()).map(|row| table.uint("id", row).unwrap()).collect()
    }

    #[test]
    fn rows_of_a_recoverable_table_that_a_full_disk_has_no_room_for_stay_beside_it_and_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = recoverable(&path);
        write(&mut writer, 0..1000, u64::MAX).unwrap();
        let said = write(&mut writer, 1000..1500, 0).unwrap_err();
        assert!(said.contains("t.parquet.rows") && said.contains("500 rows"), "{said}");
        // That is said once.
        write(&mut writer, 1500..1700, 0).unwrap();
        assert!(ids(&path).into_iter().eq(0..1700));
        writer.push(&[Cell::Uint(1700)]).unwrap();
        writer.keep().unwrap();
        assert_eq!((writer.lost(), writer.buffers[0].bytes()), (0, 0), "they take no memory");
        assert!(ids(&path).into_iter().eq(0..1701));
        drop(writer);
        assert!(ids(&path).into_iter().eq(0..1701), "as if it had been killed");
    }

    #[test]
    fn rows_beside_a_table_come_into_it_as_soon_as_there_is_room() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = recoverable(&path);
        write(&mut writer, 0..10, 0).unwrap_err();
        let group = ROWS_PER_GROUP as u64;
        write(&mut writer, 10..group - 10, 0).unwrap();
        write(&mut writer, group - 10..group + 30, u64::MAX).unwrap();
        assert!(writer.aside.is_none() && writer.writer.flushed_row_groups().len() == 2);
        assert!(ids(&path).into_iter().eq(0..group + 30));
        write(&mut writer, group + 30..group + 40, u64::MAX).unwrap();
        writer.finish().unwrap();
        assert!(path.exists() && ids(&path).into_iter().eq(0..group + 40));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn long_texts_beside_a_table_come_into_it_before_they_fill_the_memory() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let columns = vec![Column::new("word", ColumnKind::Text, "")];
        let mut writer = TableWriter::create_recoverable(&path, columns).unwrap();
        writer.push(&[Cell::Text("first")]).unwrap();
        writer.flush_into(0).unwrap_err();
        let long = "x".repeat(60_000);
        for row in 0..=TEXT_BYTES_PER_GROUP / long.len() {
            assert!(writer.aside.is_some(), "{row}");
            writer.push(&[Cell::Text(&long)]).unwrap();
            writer.keep().unwrap();
        }
        assert!(writer.aside.is_none(), "there is room again");
        writer.finish().unwrap();
        assert_eq!(Table::read(&path, &["word"]).unwrap().rows(), TEXT_BYTES_PER_GROUP / long.len() + 2);
    }

    #[test]
    fn a_table_without_room_at_its_end_stays_unfinished_and_is_read_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = recoverable(&path);
        write(&mut writer, 0..10, u64::MAX).unwrap();
        write(&mut writer, 10..20, 0).unwrap_err();
        // No other row group can follow one that broke off.
        writer.is_broken = true;
        let error = writer.finish().unwrap_err();
        assert!(error.is_kept() && !path.exists(), "{error}");
        assert!(ids(&path).into_iter().eq(0..20));
    }

    #[test]
    fn rows_whose_footer_could_not_be_written_are_read_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = recoverable(&path);
        write(&mut writer, 0..10, u64::MAX).unwrap();
        // A folder of the name that the next footer has until it is whole: it cannot be written.
        let in_the_way = partial_path(&crate::table::unfinished::footer_path(&path));
        std::fs::create_dir(&in_the_way).unwrap();
        write(&mut writer, 10..20, u64::MAX).unwrap();
        writer.keep().unwrap();
        assert!(ids(&path).into_iter().eq(0..20), "the footer of before, and the rows");
        write(&mut writer, 20..30, 0).unwrap_err();
        assert!(ids(&path).into_iter().eq(0..30));
        std::fs::remove_dir(&in_the_way).unwrap();
        write(&mut writer, 30..40, u64::MAX).unwrap();
        assert!(writer.aside.is_none() && ids(&path).into_iter().eq(0..40));
        writer.finish().unwrap();
        assert!(ids(&path).into_iter().eq(0..40));
    }

    #[test]
    fn a_group_that_claims_more_rows_than_are_ever_written_is_refused_before_they_are_decoded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer =
            TableWriter::create(&path, vec![Column::new("id", ColumnKind::Uint, "a number")]).unwrap();
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
