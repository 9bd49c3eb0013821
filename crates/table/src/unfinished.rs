//! What makes a table readable while it is being written, and if its writer is killed.
//!
//! A Parquet file can be read only with its footer, which is written last. Beside the data of a table that is *recoverable*
//! (`NAME.partial`) there are two files until it is finished:
//!
//! - `NAME.footer`: the footer that would make a file of the row groups that have been written; replaced as a whole after each;
//! - `NAME.rows`: the rows that have come since, one after the other, behind the number of those row groups. A killed process loses
//!   what it had not yet passed to the system ([`Rows::write`]), and nothing before it.
//!
//! *Does not:* survive the loss of power: nothing is forced to the disk.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaDataBuilder, ParquetMetaDataWriter};
use parquet::file::writer::SerializedFileWriter;

use crate::{Cell, FileError, ROWS_PER_GROUP};

/// The name that a file has while it is being written.
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

/// Bytes of rows that are collected before they are passed to the system.
const BUFFER_BYTES: usize = 64 * 1024;

/// Keeps a table readable while it is written. It is written all the same if these files cannot be: nothing is lost then, unless the
/// writer is killed.
pub(crate) struct Unfinished {
    path: PathBuf,
    rows: Rows,
}

impl Unfinished {
    /// A table without rows, whose schema is in its footer.
    pub(crate) fn create(path: &Path, writer: &mut SerializedFileWriter<File>) -> Result<Self, FileError> {
        let rows_path = rows_path(path);
        let rows = Rows::create(&rows_path).map_err(|cause| FileError::write(&rows_path, cause))?;
        let mut unfinished = Self { path: path.to_owned(), rows };
        unfinished.write_footer(writer).map_err(|cause| FileError::write(&footer_path(path), cause))?;
        Ok(unfinished)
    }

    /// A row that is not part of a row group yet.
    pub(crate) fn push(&mut self, row: &[Cell<'_>]) {
        self.rows.push(row);
    }

    /// From now on, the rows that were pushed outlive this process.
    pub(crate) fn write(&mut self) {
        self.rows.write();
    }

    /// A row group was written that has all rows so far.
    pub(crate) fn add_group(&mut self, writer: &mut SerializedFileWriter<File>) {
        match self.write_footer(writer) {
            // Rows behind the number of before are part of the group: who is killed before this leaves no row twice.
            Ok(()) => self.rows.restart(writer.flushed_row_groups().len() as u64),
            // The footer of before stands, with the rows beside it, and no more can follow these.
            Err(_) => self.rows.is_broken = true,
        }
    }

    /// The rows so far are lost: there was no room for a row group.
    pub(crate) fn drop_rows(&mut self, writer: &SerializedFileWriter<File>) {
        self.rows.restart(writer.flushed_row_groups().len() as u64);
    }

    fn write_footer(&mut self, writer: &mut SerializedFileWriter<File>) -> io::Result<()> {
        // The footer must not speak of data that only this process has.
        writer.flush()?;
        let footer = footer(writer).map_err(io::Error::other)?;
        let footer_path = footer_path(&self.path);
        let written = partial_path(&footer_path);
        std::fs::write(&written, footer)?;
        std::fs::rename(&written, &footer_path)
    }

    /// The table is whole, and has its name.
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

/// Rows in a file of their own.
struct Rows {
    file: File,
    unwritten: Vec<u8>,
    /// A row is missing, so no more can follow.
    is_broken: bool,
}

impl Rows {
    fn create(path: &Path) -> io::Result<Self> {
        let mut rows = Self { file: File::create(path)?, unwritten: Vec::new(), is_broken: false };
        rows.try_restart(0)?;
        Ok(rows)
    }

    /// None of the rows so far; so many row groups are in the table.
    fn restart(&mut self, groups: u64) {
        self.unwritten.clear();
        self.is_broken = self.try_restart(groups).is_err();
    }

    fn try_restart(&mut self, groups: u64) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&groups.to_le_bytes())
    }

    fn push(&mut self, row: &[Cell<'_>]) {
        if self.is_broken {
            return;
        }
        encode(row, &mut self.unwritten);
        if self.unwritten.len() >= BUFFER_BYTES {
            self.write();
        }
    }

    fn write(&mut self) {
        self.is_broken |= self.file.write_all(&self.unwritten).is_err();
        self.unwritten.clear();
    }
}

/// Appends a row: the bytes of its cells, behind their number. A cell is a byte for its kind and its value, little-endian; text stands behind the number of its bytes.
fn encode(row: &[Cell<'_>], into: &mut Vec<u8>) {
    let start = into.len();
    into.extend([0; 4]);
    for cell in row {
        match cell {
            Cell::Null => into.push(0),
            Cell::Uint(value) => {
                into.push(1);
                into.extend(value.to_le_bytes());
            }
            Cell::Int(value) => {
                into.push(2);
                into.extend(value.to_le_bytes());
            }
            Cell::Float(value) => {
                into.push(3);
                into.extend(value.to_le_bytes());
            }
            Cell::Text(text) => {
                into.push(4);
                into.extend((text.len() as u32).to_le_bytes());
                into.extend(text.as_bytes());
            }
            Cell::Bool(value) => into.extend([5, u8::from(*value)]),
        }
    }
    let bytes = (into.len() - start - 4) as u32;
    into[start..start + 4].copy_from_slice(&bytes.to_le_bytes());
}

/// Takes so many bytes off the front.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn take_array<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    take(bytes, N)?.try_into().ok()
}

fn take_length(bytes: &mut &[u8]) -> Option<usize> {
    take_array(bytes).map(|length| u32::from_le_bytes(length) as usize)
}

/// What a row consists of. None: it is no row.
fn decode(mut row: &[u8]) -> Option<Vec<Cell<'_>>> {
    let mut cells = Vec::new();
    while let Some([kind]) = take_array(&mut row) {
        cells.push(match kind {
            0 => Cell::Null,
            1 => Cell::Uint(u64::from_le_bytes(take_array(&mut row)?)),
            2 => Cell::Int(i64::from_le_bytes(take_array(&mut row)?)),
            3 => Cell::Float(f64::from_le_bytes(take_array(&mut row)?)),
            4 => {
                let length = take_length(&mut row)?;
                Cell::Text(std::str::from_utf8(take(&mut row, length)?).ok()?)
            }
            5 => Cell::Bool(take_array::<1>(&mut row)? != [0]),
            _ => return None,
        });
    }
    Some(cells)
}

/// All rows, each of so many cells. One whose end has not been written is left out; none: one is whole, and no such row.
fn decode_all(mut bytes: &[u8], cells: usize) -> Option<Vec<Vec<Cell<'_>>>> {
    let mut rows = Vec::new();
    while let Some(row) = take_length(&mut bytes).and_then(|length| take(&mut bytes, length)) {
        rows.push(decode(row).filter(|row| row.len() == cells && rows.len() < ROWS_PER_GROUP)?);
    }
    Some(rows)
}

/// The rows of a table that are in none of its row groups, as they lie in their file.
pub(crate) struct Recovered {
    path: PathBuf,
    groups: u64,
    bytes: Vec<u8>,
}

impl Recovered {
    /// Reads them. To be called before the footer is read: a row group that is written in between has these rows, and its number says
    /// so.
    pub(crate) fn read(table: &Path) -> Result<Self, FileError> {
        let path = rows_path(table);
        let all = std::fs::read(&path).map_err(|cause| FileError::read(&path, cause))?;
        let mut bytes = all.as_slice();
        // Killed between its making and its first bytes, it has no rows.
        let groups = take_array(&mut bytes).map_or(u64::MAX, u64::from_le_bytes);
        let bytes = bytes.to_vec();
        Ok(Self { path, groups, bytes })
    }

    /// Those that are whole, beside a footer of so many row groups; each has so many cells.
    pub(crate) fn rows(&self, groups: usize, cells: usize) -> Result<Vec<Vec<Cell<'_>>>, FileError> {
        let bytes = if self.groups == groups as u64 { self.bytes.as_slice() } else { &[] };
        decode_all(bytes, cells).ok_or_else(|| FileError::damaged(&self.path, "a row in it is none"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Column, Kind, Table, TableWriter};

    fn columns() -> Vec<Column> {
        vec![
            Column::new("id", Kind::Uint, ""),
            Column::optional("when", Kind::Int, ""),
            Column::new("share", Kind::Float, ""),
            Column::optional("word", Kind::Text, ""),
            Column::new("yes", Kind::Bool, ""),
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
            writer.keep();
            assert!(is_unfinished(&path) && is_readable(&path));
            check(&path, count);
        }
        // As if it had been killed: what was not kept is lost, and nothing else.
        push(&mut writer, count..count + 5);
        std::mem::forget(writer);
        check(&path, count);
        assert_eq!(crate::columns_of(&path).unwrap().len(), NAMES.len());
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
        writer.keep();
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
        writer.keep();
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
        writer.keep();
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

    fn cell() -> impl Strategy<Value = (u8, u64, f64, String)> {
        (0u8..6, any::<u64>(), any::<f64>(), ".{0,40}")
    }

    fn as_cell((kind, number, float, text): &(u8, u64, f64, String)) -> Cell<'_> {
        match kind {
            0 => Cell::Null,
            1 => Cell::Uint(*number),
            2 => Cell::Int(number.cast_signed()),
            3 => Cell::Float(*float),
            4 => Cell::Text(text),
            _ => Cell::Bool(number % 2 == 0),
        }
    }

    proptest! {
        #[test]
        fn cells_come_back_as_they_were(rows in prop::collection::vec(prop::collection::vec(cell(), 4), 0..9)) {
            let rows: Vec<Vec<Cell<'_>>> = rows.iter().map(|row| row.iter().map(as_cell).collect()).collect();
            let mut bytes = Vec::new();
            rows.iter().for_each(|row| encode(row, &mut bytes));
            prop_assert_eq!(decode_all(&bytes, 5), rows.is_empty().then(Vec::new));
            prop_assert_eq!(decode_all(&bytes, 4), Some(rows));
        }

        #[test]
        fn bytes_that_nobody_encoded_are_rows_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(rows) = decode_all(&bytes, 2) {
                prop_assert!(rows.iter().all(|row| row.len() == 2));
            }
        }
    }
}
