//! Recoverable tables: readable while they are being written, and after their writer was killed.
//!
//! A Parquet file can be read only with its footer, which is written last. Beside the data of a table that is *recoverable*
//! (`NAME.partial`) there are two files until it is finished:
//!
//! - `NAME.footer`: the footer that would make a file of the row groups that have been written; replaced as a whole after each;
//! - `NAME.rows`: the rows that have come since (see `rows`). A killed process loses what it had not yet passed to the system
//!   ([`RecoveryFiles::write`]), and nothing before it.
//!
//! Where a disk has no room for a row group, its rows stay there.
//!
//! *Does not:* survive the loss of power: nothing is forced to the disk.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaDataBuilder, ParquetMetaDataWriter};
use parquet::file::writer::SerializedFileWriter;

use crate::table::rows::{RowsReader, RowsWriter};
use crate::table::{Cell, FileError};

/// Name of a file while it is being written.
pub fn partial_path(path: &Path) -> PathBuf {
    with_ending(path, ".partial")
}

/// The footer for what has been written of a table.
pub(crate) fn footer_path(path: &Path) -> PathBuf {
    with_ending(path, ".footer")
}

/// The rows that are not part of a row group yet.
pub(crate) fn rows_path(path: &Path) -> PathBuf {
    with_ending(path, ".rows")
}

/// True if rows of this table can be read: it is finished, or what has been written of it can be recovered.
pub fn is_readable(path: &Path) -> bool {
    path.is_file() || is_unfinished(path)
}

/// True if the table is being written, or its writer was killed, and its rows can be read.
pub fn is_unfinished(path: &Path) -> bool {
    !path.is_file() && footer_path(path).is_file()
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Keeps a table readable while it is written.
pub(crate) struct RecoveryFiles {
    path: PathBuf,
    rows: RowsWriter,
    /// Rows at the front that are in row groups which the footer does not list yet.
    in_groups: u64,
}

impl RecoveryFiles {
    /// Creates the files of a table without rows; the footer has its schema.
    pub(crate) fn create(path: &Path, writer: &mut SerializedFileWriter<File>) -> Result<Self, FileError> {
        let rows_path = rows_path(path);
        let rows = RowsWriter::create(&rows_path).map_err(|cause| FileError::write(&rows_path, cause))?;
        let mut recovery = Self { path: path.to_owned(), rows, in_groups: 0 };
        recovery.write_footer(writer).map_err(|cause| FileError::write(&footer_path(path), cause))?;
        Ok(recovery)
    }

    /// Adds a row that is in no row group yet; returns its bytes.
    pub(crate) fn push(&mut self, row: &[Cell<'_>]) -> usize {
        self.rows.push(row)
    }

    /// Passes all rows to the system, so that they outlive this process. After an error, the rest is tried again.
    pub(crate) fn write(&mut self) -> Result<(), FileError> {
        self.rows.write().map_err(|cause| FileError::write(&rows_path(&self.path), cause))
    }

    /// Bytes of rows that would be lost with this process.
    pub(crate) fn unwritten_bytes(&self) -> usize {
        self.rows.unwritten_bytes()
    }

    /// Replaces the footer after row groups were written that have all rows so far.
    pub(crate) fn add_groups(&mut self, writer: &mut SerializedFileWriter<File>) {
        match self.write_footer(writer) {
            // Until then, the old number in the rows file differs from the footer: a process killed here leaves no row twice.
            Ok(()) => {
                self.rows.restart(writer.flushed_row_groups().len() as u64);
                self.in_groups = 0;
            }
            // The old footer stands, with the rows beside it.
            Err(_) => self.in_groups = self.rows.rows(),
        }
    }

    /// Leaves the rows so far in their file, because there is no room for a row group. Returns the number of those that are lost
    /// because the file has no room either.
    pub(crate) fn set_aside(&mut self) -> u64 {
        match self.rows.write() {
            Ok(()) => 0,
            Err(_) => {
                let waiting = self.aside().0;
                self.rows.drop_unwritten();
                // Of those that were dropped, some may be in row groups whose footer could not be written.
                self.in_groups = self.in_groups.min(self.rows.rows());
                waiting - self.aside().0
            }
        }
    }

    /// Rows that are in no row group, and bytes of the file that they are in.
    pub(crate) fn aside(&self) -> (u64, u64) {
        (self.rows.rows() - self.in_groups, self.rows.bytes())
    }

    /// Reads the rows that are in no row group back, many at a time, each of `cells` cells; `each` puts them into row groups.
    pub(crate) fn take_back(
        &mut self,
        cells: usize,
        mut each: impl FnMut(&[Vec<Cell<'_>>]) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        self.write()?;
        let mut passed = 0;
        let in_groups = &mut self.in_groups;
        RowsReader::open(&self.path)?.for_each_anyway(cells, |rows| {
            let known =
                usize::try_from(*in_groups - passed).map_or(rows.len(), |known| known.min(rows.len()));
            passed += known as u64;
            if known < rows.len() {
                each(&rows[known..])?;
                *in_groups += (rows.len() - known) as u64;
                passed = *in_groups;
            }
            Ok(())
        })
    }

    fn write_footer(&mut self, writer: &mut SerializedFileWriter<File>) -> io::Result<()> {
        // The footer must not refer to data that only this process has.
        writer.flush()?;
        let footer = footer(writer).map_err(io::Error::other)?;
        let footer_path = footer_path(&self.path);
        let written = partial_path(&footer_path);
        std::fs::write(&written, footer)?;
        std::fs::rename(&written, &footer_path)
    }

    /// Removes the files of a table that is whole and has its name.
    pub(crate) fn remove(self) {
        // What cannot be removed is passed over by readers: the table is there.
        let _ = std::fs::remove_file(footer_path(&self.path));
        let _ = std::fs::remove_file(rows_path(&self.path));
    }
}

fn footer(writer: &SerializedFileWriter<File>) -> Result<Vec<u8>, ParquetError> {
    let groups = writer.flushed_row_groups();
    let file = FileMetaData::new(
        writer.properties().writer_version().as_num(),
        groups.iter().map(parquet::file::metadata::RowGroupMetaData::num_rows).sum(),
        Some(writer.properties().created_by().to_owned()),
        None,
        std::sync::Arc::new(writer.schema_descr().clone()),
        None,
    );
    let metadata = ParquetMetaDataBuilder::new(file).set_row_groups(groups.to_vec()).build();
    let mut bytes = Vec::new();
    ParquetMetaDataWriter::new(&mut bytes, &metadata).finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{Column, ColumnKind, ROWS_PER_GROUP, Table, TableWriter};

    fn columns() -> Vec<Column> {
        vec![
            Column::new("id", ColumnKind::Uint, ""),
            Column::optional("when", ColumnKind::Int, ""),
            Column::new("share", ColumnKind::Float, ""),
            Column::optional("word", ColumnKind::Text, ""),
            Column::new("yes", ColumnKind::Bool, ""),
        ]
    }

    const NAMES: [&str; 5] = ["id", "when", "share", "word", "yes"];

    fn push(writer: &mut TableWriter, ids: std::ops::Range<u64>) {
        for id in ids {
            let word = if id % 2 == 0 { Cell::Text("even") } else { Cell::Null };
            let row = [
                Cell::Uint(u64::MAX - id),
                Cell::opt_int(Some(-7)),
                Cell::Float(0.5),
                word,
                Cell::Bool(id % 5 == 0),
            ];
            writer.push(&row).unwrap();
        }
    }

    /// All rows, in their order, as [`push`] made them.
    fn check(path: &Path, count: u64) {
        let table = Table::read(path, &NAMES).unwrap();
        assert_eq!(table.rows() as u64, count);
        for id in 0..count {
            let row = id as usize;
            assert_eq!(table.uint("id", row).unwrap(), u64::MAX - id);
            assert_eq!(table.opt_int("when", row).unwrap(), Some(-7));
            assert_eq!(table.float("share", row).unwrap(), 0.5);
            assert_eq!(table.opt_text("word", row).unwrap(), (id % 2 == 0).then_some("even"));
            assert_eq!(table.bool("yes", row).unwrap(), id % 5 == 0);
        }
        let mut in_groups = 0;
        Table::read_in_groups(path, &["id"], |part| {
            in_groups += part.rows() as u64;
            Ok::<_, FileError>(())
        })
        .unwrap();
        assert_eq!(in_groups, count);
    }

    #[test]
    fn rows_can_be_read_up_to_the_last_one_that_was_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        assert!(!is_readable(&path));
        let mut writer = TableWriter::create_recoverable(&path, columns()).unwrap();
        check(&path, 0);
        let group = ROWS_PER_GROUP as u64;
        let mut count = 0;
        for next in [10, 12, group, group + 1, 2 * group + 100] {
            push(&mut writer, count..next);
            count = next;
            writer.keep().unwrap();
            assert!(is_unfinished(&path) && is_readable(&path));
            check(&path, count);
        }
        // As if it had been killed: what was not kept is lost, and nothing else.
        push(&mut writer, count..count + 5);
        std::mem::forget(writer);
        check(&path, count);
        assert_eq!(crate::table::columns_of(&path).unwrap().len(), NAMES.len());
    }

    #[test]
    fn rows_in_groups_whose_footer_cannot_be_written_are_not_counted_as_lost_with_those_after_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let rows = RowsWriter::create(&rows_path(&path)).unwrap();
        let mut recovery = RecoveryFiles { path: path.clone(), rows, in_groups: 0 };
        recovery.rows.fill_disk(&rows_path(&path));
        let push = |recovery: &mut RecoveryFiles, count: u64| {
            for id in 0..count {
                recovery.push(&[Cell::Uint(id)]);
            }
        };
        push(&mut recovery, 10);
        recovery.in_groups = 10;
        push(&mut recovery, 5);
        assert_eq!((recovery.set_aside(), recovery.aside().0), (5, 0));
    }

    #[test]
    fn a_finished_table_leaves_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = TableWriter::create_recoverable(&path, columns()).unwrap();
        push(&mut writer, 0..100);
        writer.finish().unwrap();
        check(&path, 100);
        assert!(!is_unfinished(&path));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn rows_of_a_group_that_was_written_are_not_counted_twice() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = TableWriter::create_recoverable(&path, columns()).unwrap();
        push(&mut writer, 0..1_000);
        writer.keep().unwrap();
        let rows_before = std::fs::read(rows_path(&path)).unwrap();
        writer.flush().unwrap();
        // Killed after the footer was replaced, and before the rows were.
        std::fs::write(rows_path(&path), rows_before).unwrap();
        check(&path, 1_000);
    }

    #[test]
    fn a_row_that_was_changed_is_an_error_that_names_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = TableWriter::create_recoverable(&path, columns()).unwrap();
        push(&mut writer, 0..3);
        writer.keep().unwrap();
        let mut all = std::fs::read(rows_path(&path)).unwrap();
        all[12] = 99;
        std::fs::write(rows_path(&path), all).unwrap();
        let said = Table::read(&path, &NAMES).err().unwrap().to_string();
        assert!(said.contains("t.parquet.rows"), "{said}");
        std::fs::write(footer_path(&path), b"PAR1 not really").unwrap();
        let said = Table::read(&path, &NAMES).err().unwrap().to_string();
        assert!(said.contains("t.parquet.footer"), "{said}");
    }

    #[test]
    fn a_row_that_was_cut_is_left_out_wherever_it_was_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.parquet");
        let mut writer = TableWriter::create_recoverable(&path, columns()).unwrap();
        push(&mut writer, 0..3);
        writer.keep().unwrap();
        let all = std::fs::read(rows_path(&path)).unwrap();
        let ends: Vec<usize> = (0..=3).map(|rows| 8 + bytes_of(rows)).collect();
        assert_eq!(ends[3], all.len());
        for length in 0..all.len() {
            std::fs::write(rows_path(&path), &all[..length]).unwrap();
            check(&path, ends[1..].iter().filter(|end| **end <= length).count() as u64);
        }
    }

    fn bytes_of(rows: u64) -> usize {
        // Id, when, share: nine bytes each; yes: two; a word of four letters: nine, or one for none.
        (0..rows).map(|id| 4 + 3 * 9 + 2 + if id % 2 == 0 { 9 } else { 1 }).sum()
    }
}
