//! `listeners.parquet`: work of the Collector for each target, second by second.

use std::path::Path;

use crate::table::{FileError, Table, TableWriter};
use assay_protocol::evaluation::ListenerRow;

use crate::columns::{TableSpec, rows};
use crate::dir::RunDirError;

/// A row per second and listener.
pub(crate) const LISTENERS: TableSpec = TableSpec {
    file: "listeners.parquet",
    about: "What the Collector did for each target: a row per second and listener.",
    columns: rows::columns::<ListenerRow>,
};

/// Rows per row group: half an hour of them is kept in memory, since few come in a second.
const ROWS_PER_GROUP: usize = 4096;

/// Writes rows as they come. They can be read before [`ListenerWriter::finish`], by [`read_listeners`].
pub struct ListenerWriter {
    writer: TableWriter,
}

impl ListenerWriter {
    pub fn create(path: &Path) -> Result<Self, RunDirError> {
        let writer = TableWriter::create_recoverable(path, (LISTENERS.columns)())?;
        Ok(Self { writer: writer.in_groups_of(ROWS_PER_GROUP) })
    }

    pub fn push(&mut self, row: &ListenerRow) -> Result<(), RunDirError> {
        Ok(self.writer.push(&rows::row(None, row))?)
    }

    /// Makes all rows so far readable even if this process is killed. After an error, the rest is tried again.
    pub fn keep(&mut self) -> Result<(), RunDirError> {
        Ok(self.writer.keep()?)
    }

    /// Writes the remaining rows and gives the file its name. Where there is no room, it stays as it is
    /// ([`RunDirError::is_kept`]).
    pub fn finish(self) -> Result<(), RunDirError> {
        Ok(self.writer.finish()?)
    }
}

/// Reads a whole table.
pub fn read_listeners(path: &Path) -> Result<Vec<ListenerRow>, RunDirError> {
    let table = Table::read(path, &LISTENERS.names())?;
    let rows = (0..table.rows()).map(|row| rows::read(&table, row));
    rows.collect::<Result<_, FileError>>().map_err(FileError::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some_rows() -> Vec<ListenerRow> {
        let row = |n: u32| ListenerRow {
            at_s: n,
            listener: (n % 3) as u16,
            requests: crate::table::MOST - u64::from(n),
            fetches: 1,
            replays: 2,
            joined: 3,
            validations: 4,
            bytes_in: 5,
            bytes_out: 6,
            late_max_us: 7,
        };
        (0..9).map(row).collect()
    }

    #[test]
    fn listeners_of_hours_lie_in_memory_for_a_part_of_that_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("listeners.parquet");
        let row = some_rows().remove(0);
        let rows = ROWS_PER_GROUP as u32 + 1;
        let mut writer = ListenerWriter::create(&path).unwrap();
        (0..rows).for_each(|n| writer.push(&ListenerRow { at_s: n, ..row }).unwrap());
        // Nothing was passed to the system but the whole group.
        let seen = read_listeners(&path).unwrap();
        assert_eq!(seen.len(), ROWS_PER_GROUP);
        writer.finish().unwrap();
        assert_eq!(read_listeners(&path).unwrap().len(), rows as usize);
    }

    #[test]
    fn listeners_come_back_as_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("listeners.parquet");
        let rows = some_rows();
        let mut writer = ListenerWriter::create(&path).unwrap();
        rows.iter().for_each(|row| writer.push(row).unwrap());
        writer.finish().unwrap();
        assert_eq!(read_listeners(&path).unwrap(), rows);
    }
}
