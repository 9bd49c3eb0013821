//! What the Collector did for each target, second by second: `doors.parquet`.

use std::path::Path;

use assay_role::evaluation::DoorRow;
use assay_table::{FileError, Table, TableWriter};

use crate::columns::{TableSpec, rows};
use crate::dir::RunDirError;

/// A row per second and door.
pub(crate) const DOORS: TableSpec = TableSpec {
    file: "doors.parquet",
    about: "What the Collector did for each target: a row per second and door.",
    columns: rows::columns::<DoorRow>,
};

/// Writes rows as they come.
pub struct DoorWriter {
    writer: TableWriter,
}

impl DoorWriter {
    /// Begins a table.
    pub fn create(path: &Path) -> Result<Self, RunDirError> {
        Ok(Self { writer: TableWriter::create(path, (DOORS.columns)())? })
    }

    /// Adds a row.
    pub fn push(&mut self, row: &DoorRow) -> Result<(), RunDirError> {
        Ok(self.writer.push(&rows::row(None, row))?)
    }

    /// Writes what is left and gives the file its name.
    pub fn finish(self) -> Result<(), RunDirError> {
        Ok(self.writer.finish()?)
    }
}

/// Reads a whole table.
pub fn read_doors(path: &Path) -> Result<Vec<DoorRow>, RunDirError> {
    let table = Table::read(path, &DOORS.names())?;
    let rows = (0..table.rows()).map(|row| rows::read(&table, row));
    rows.collect::<Result<_, FileError>>().map_err(FileError::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_come_back_as_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("doors.parquet");
        let rows: Vec<DoorRow> = (0u32..9)
            .map(|n| DoorRow {
                at_s: n,
                door: (n % 3) as u16,
                requests: u64::MAX - u64::from(n),
                fetches: 1,
                replays: 2,
                joined: 3,
                validations: 4,
                bytes_in: 5,
                bytes_out: 6,
                late_max_us: 7,
            })
            .collect();
        let mut writer = DoorWriter::create(&path).unwrap();
        rows.iter().for_each(|row| writer.push(row).unwrap());
        writer.finish().unwrap();
        assert_eq!(read_doors(&path).unwrap(), rows);
    }
}
