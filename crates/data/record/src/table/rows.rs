//! Rows of a table that are in no row group yet, in a file of their own (`NAME.rows`).
//!
//! It begins with the number of row groups that the rows come after (eight bytes, little-endian). Each row is the bytes of its cells,
//! behind their number (four bytes); a cell is a byte for its kind and its value, and text stands behind the number of its bytes. A row
//! that was cut off does not count.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::table::unfinished::rows_path;
use crate::table::{Cell, FileError, ROWS_PER_GROUP};

/// Bytes of rows that are collected before they are passed to the system.
const BUFFER_BYTES: usize = 64 * 1024;
/// Bytes of rows that are read at a time.
const CHUNK_BYTES: usize = 16 << 20;
/// Upper bound on the bytes of a row: its texts are bounded by what a head of HTTP may have.
const MAX_ROW_BYTES: usize = 64 << 20;
/// Bytes before the rows.
const HEAD_BYTES: u64 = 8;

/// Writer of the file. Rows that cannot be written stay in memory, and are tried again.
pub(crate) struct RowsWriter {
    file: File,
    /// Number of row groups that the file is to begin with, if it is not written yet.
    head: Option<u64>,
    /// Length of the file up to its last whole row.
    whole_bytes: u64,
    /// Rows in the file and in `unwritten`.
    rows: u64,
    unwritten: Vec<u8>,
    unwritten_rows: u64,
    /// Bytes in `unwritten` at which writing is tried.
    try_at: usize,
}

impl RowsWriter {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let file = File::create(path)?;
        let mut rows = Self {
            file,
            head: Some(0),
            whole_bytes: 0,
            rows: 0,
            unwritten: Vec::new(),
            unwritten_rows: 0,
            try_at: BUFFER_BYTES,
        };
        rows.write().map(|()| rows)
    }

    /// Drops all rows, which the row groups of the table now have: `groups` of them.
    pub(crate) fn restart(&mut self, groups: u64) {
        (self.head, self.rows, self.unwritten_rows) = (Some(groups), 0, 0);
        self.unwritten.clear();
        // What cannot be written now is tried again with the next rows.
        let _ = self.write();
    }

    /// Adds a row; returns its bytes.
    pub(crate) fn push(&mut self, row: &[Cell<'_>]) -> usize {
        let before = self.unwritten.len();
        encode(row, &mut self.unwritten);
        let bytes = self.unwritten.len() - before;
        self.rows += 1;
        self.unwritten_rows += 1;
        if self.unwritten.len() >= self.try_at {
            // A failed write is tried again; `write` reports it to those who keep rows.
            let _ = self.write();
        }
        bytes
    }

    /// Passes all rows so far to the system. After an error, they are still here.
    pub(crate) fn write(&mut self) -> io::Result<()> {
        self.try_at = self.unwritten.len() + BUFFER_BYTES;
        if let Some(groups) = self.head {
            self.file.set_len(0)?;
            self.file.write_all_at(&groups.to_le_bytes(), 0)?;
            (self.head, self.whole_bytes) = (None, HEAD_BYTES);
        }
        if let Err(cause) = self.file.write_all_at(&self.unwritten, self.whole_bytes) {
            // A part of a row would stand before the next one that is written.
            let _ = self.file.set_len(self.whole_bytes);
            return Err(cause);
        }
        self.whole_bytes += self.unwritten.len() as u64;
        self.unwritten.clear();
        self.unwritten_rows = 0;
        self.try_at = BUFFER_BYTES;
        Ok(())
    }

    /// Drops the rows that could not be written; returns their number.
    pub(crate) fn drop_unwritten(&mut self) -> u64 {
        self.unwritten.clear();
        self.try_at = BUFFER_BYTES;
        self.rows -= self.unwritten_rows;
        std::mem::take(&mut self.unwritten_rows)
    }

    /// Rows, written or not.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes of the file, written or not.
    pub(crate) fn bytes(&self) -> u64 {
        self.whole_bytes + self.unwritten.len() as u64
    }

    /// Bytes that have not been passed to the system.
    pub(crate) fn unwritten_bytes(&self) -> usize {
        self.unwritten.len()
    }
}

/// Appends a row: the bytes of its cells, behind their number.
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

/// Splits `count` bytes off the front.
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

/// Decodes a row of `count` cells. None: it is no such row.
fn decode(mut row: &[u8], count: usize) -> Option<Vec<Cell<'_>>> {
    let mut cells = Vec::with_capacity(count);
    while let Some([kind]) = take_array(&mut row) {
        if cells.len() == count {
            return None;
        }
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
    (cells.len() == count).then_some(cells)
}

/// Decodes the whole rows at the front, one row group of them at most; returns them and their bytes. None: a whole row does not
/// have so many cells.
fn decode_some(bytes: &[u8], cells: usize) -> Option<(Vec<Vec<Cell<'_>>>, usize)> {
    let (mut rows, mut left) = (Vec::new(), bytes);
    while rows.len() < ROWS_PER_GROUP {
        let mut next = left;
        let Some(row) = take_length(&mut next).and_then(|length| take(&mut next, length)) else { break };
        rows.push(decode(row, cells)?);
        left = next;
    }
    Some((rows, bytes.len() - left.len()))
}

/// Reader of the file.
pub(crate) struct RowsReader {
    path: PathBuf,
    file: File,
    groups: u64,
    /// Bytes that were read and not yet decoded.
    read: Vec<u8>,
}

impl RowsReader {
    /// Opens the file and reads what is usually all of it. To be called before the footer is read: a row group that is written
    /// in between has these rows, and the number of row groups shows it.
    pub(crate) fn open(table: &Path) -> Result<Self, FileError> {
        let path = rows_path(table);
        let mut file = assay_base::files::open(&path).map_err(|cause| FileError::read(&path, cause))?;
        let mut head = Vec::new();
        let cannot = |cause| FileError::read(&path, cause);
        file.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(cannot)?;
        // Killed between its making and its first bytes, it has no rows.
        let groups = take_array(&mut head.as_slice()).map_or(u64::MAX, u64::from_le_bytes);
        let mut reader = Self { path, file, groups, read: Vec::new() };
        reader.read_more(CHUNK_BYTES)?;
        Ok(reader)
    }

    /// Reads until there are `bytes` bytes, or the file ends; true if there are new ones.
    fn read_more(&mut self, bytes: usize) -> Result<bool, FileError> {
        let more = bytes.saturating_sub(self.read.len()) as u64;
        let read = self.file.by_ref().take(more).read_to_end(&mut self.read);
        read.map(|new| new > 0).map_err(|cause| FileError::read(&self.path, cause))
    }

    /// Whether the writer has restarted the file. It does so before it adds any other row: what was read until then is valid.
    fn is_restarted(&self) -> bool {
        let mut head = [0; HEAD_BYTES as usize];
        let read = self.file.read_exact_at(&mut head, 0);
        read.is_err() || u64::from_le_bytes(head) != self.groups
    }

    /// Calls `each` with the whole rows, many at a time and each of `cells` cells, if they come after `groups` row groups.
    pub(crate) fn for_each<E: From<FileError>>(
        self,
        groups: usize,
        cells: usize,
        each: impl FnMut(&[Vec<Cell<'_>>]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.groups == groups as u64 { self.for_each_anyway(cells, each) } else { Ok(()) }
    }

    /// The same, whatever the number of row groups.
    pub(crate) fn for_each_anyway<E: From<FileError>>(
        mut self,
        cells: usize,
        mut each: impl FnMut(&[Vec<Cell<'_>>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut wanted = CHUNK_BYTES;
        loop {
            let read = std::mem::take(&mut self.read);
            let decoded = decode_some(&read, cells);
            let (rows, taken) =
                decoded.ok_or_else(|| FileError::damaged(&self.path, "a row in it is none"))?;
            if !rows.is_empty() {
                each(&rows)?;
                wanted = CHUNK_BYTES;
            } else if wanted >= MAX_ROW_BYTES {
                return Err(FileError::damaged(&self.path, "a row in it is longer than any").into());
            } else {
                // The next row may be longer than what was read.
                wanted *= 2;
            }
            self.read = read[taken..].to_vec();
            let is_all = !self.read_more(wanted)? && (rows.len() < ROWS_PER_GROUP || self.read.is_empty());
            if is_all {
                return Ok(());
            }
            if self.is_restarted() {
                let why = "it was written anew while it was read; read it again";
                return Err(FileError::damaged(&self.path, why).into());
            }
        }
    }
}

#[cfg(test)]
impl RowsWriter {
    /// Makes every write fail, as on a disk without room.
    pub(crate) fn fill_disk(&mut self, path: &Path) {
        self.file = assay_base::files::open(path).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    fn all_of(table: &Path, groups: usize) -> Result<Vec<u64>, FileError> {
        let mut all = Vec::new();
        RowsReader::open(table)?.for_each(groups, 2, |rows| {
            all.extend(rows.iter().map(|row| if let Cell::Uint(id) = row[0] { id } else { u64::MAX }));
            Ok::<_, FileError>(())
        })?;
        Ok(all)
    }

    #[test]
    fn more_rows_than_are_read_at_once_come_back_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("t.parquet");
        let mut file = RowsWriter::create(&rows_path(&table)).unwrap();
        // Those of one group by their number, then those of more than one chunk by their length, and one longer than a chunk.
        let short = ROWS_PER_GROUP as u64 + 3;
        for id in 0..short {
            file.push(&[Cell::Uint(id), Cell::Null]);
        }
        let long = "x".repeat(1 << 20);
        for id in short..short + 40 {
            file.push(&[Cell::Uint(id), Cell::Text(&long)]);
        }
        let longest = "y".repeat(CHUNK_BYTES + 1);
        file.push(&[Cell::Uint(short + 40), Cell::Text(&longest)]);
        file.write().unwrap();
        assert_eq!(file.rows(), short + 41);
        assert!(all_of(&table, 0).unwrap().into_iter().eq(0..short + 41));
        assert!(all_of(&table, 1).unwrap().is_empty(), "they come after another footer");
        file.restart(1);
        assert!(all_of(&table, 1).unwrap().is_empty());
    }

    #[test]
    fn a_row_that_claims_to_be_longer_than_any_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("t.parquet");
        let mut bytes = 0u64.to_le_bytes().to_vec();
        bytes.extend(u32::MAX.to_le_bytes());
        bytes.resize(MAX_ROW_BYTES + 100, 0);
        std::fs::write(rows_path(&table), bytes).unwrap();
        let said = all_of(&table, 0).unwrap_err().to_string();
        assert!(said.contains("longer than any"), "{said}");
    }

    #[test]
    fn what_could_not_be_written_is_tried_again_or_dropped_and_leaves_no_part_of_a_row() {
        let dir = tempfile::tempdir().unwrap();
        let table = dir.path().join("t.parquet");
        let mut file = RowsWriter::create(&rows_path(&table)).unwrap();
        file.push(&[Cell::Uint(1), Cell::Null]);
        file.write().unwrap();
        // A file that can only be read stands for a disk without room.
        let writable = std::mem::replace(&mut file.file, File::open(rows_path(&table)).unwrap());
        file.push(&[Cell::Uint(2), Cell::Null]);
        assert!(file.write().is_err());
        let unwritable = std::mem::replace(&mut file.file, writable);
        file.push(&[Cell::Uint(3), Cell::Null]);
        file.write().unwrap();
        assert_eq!(all_of(&table, 0).unwrap(), [1, 2, 3]);
        let writable = std::mem::replace(&mut file.file, unwritable);
        file.push(&[Cell::Uint(4), Cell::Null]);
        assert!(file.write().is_err());
        assert_eq!((file.drop_unwritten(), file.rows()), (1, 3));
        file.file = writable;
        file.push(&[Cell::Uint(5), Cell::Null]);
        file.write().unwrap();
        assert_eq!(all_of(&table, 0).unwrap(), [1, 2, 3, 5]);
    }

    proptest! {
        #[test]
        fn cells_come_back_as_they_were(rows in prop::collection::vec(prop::collection::vec(cell(), 4), 0..9)) {
            let rows: Vec<Vec<Cell<'_>>> = rows.iter().map(|row| row.iter().map(as_cell).collect()).collect();
            let mut bytes = Vec::new();
            rows.iter().for_each(|row| encode(row, &mut bytes));
            for other in [3, 5] {
                prop_assert_eq!(decode_some(&bytes, other), rows.is_empty().then_some((Vec::new(), 0)));
            }
            let length = bytes.len();
            prop_assert_eq!(decode_some(&bytes, 4), Some((rows, length)));
        }

        #[test]
        fn bytes_that_nobody_encoded_are_rows_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some((rows, taken)) = decode_some(&bytes, 2) {
                prop_assert!(taken <= bytes.len() && rows.iter().all(|row| row.len() == 2));
            }
        }
    }
}
