//! What the Collector did for each target, second by second: `doors.parquet`.

use std::path::Path;

use crate::columns::TableSpec;
use crate::dir::RunDirError;
use assay_role::evaluation::DoorRow;
use assay_table::{Cell, Column, FileError, Kind, Table, TableWriter};

/// A row per second and door.
pub(crate) const DOORS: TableSpec = TableSpec {
    file: "doors.parquet",
    about: "What the Collector did for each target: a row per second and door.",
    columns: || {
        vec![
            Column::new("at_s", Kind::Uint, "the second, since the start"),
            Column::new(
                "door",
                Kind::Uint,
                "whose door: index into `targets` of spe.json; 0: the Multiplier's",
            ),
            Column::new("requests", Kind::Uint, "requests that came in"),
            Column::new("fetches", Kind::Uint, "of these, those that made the Collector ask an origin"),
            Column::new("replays", Kind::Uint, "answered from a recording"),
            Column::new("joined", Kind::Uint, "joined a fetch that was under way"),
            Column::new("validations", Kind::Uint, "answered 304"),
            Column::new("bytes_in", Kind::Uint, "bytes of request bodies"),
            Column::new("bytes_out", Kind::Uint, "bytes of bodies sent to that door"),
            Column::new(
                "late_max_us",
                Kind::Uint,
                "how late the latest chunk of a replay was written, in microseconds",
            ),
        ]
    },
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
        let cells = [
            row.at_s.into(),
            row.door.into(),
            row.requests,
            row.fetches,
            row.replays,
            row.joined,
            row.validations,
            row.bytes_in,
            row.bytes_out,
            row.late_max_us,
        ];
        Ok(self.writer.push(&cells.map(Cell::Uint))?)
    }

    /// Writes what is left and gives the file its name.
    pub fn finish(self) -> Result<(), RunDirError> {
        Ok(self.writer.finish()?)
    }
}

/// Reads a whole table.
pub fn read_doors(path: &Path) -> Result<Vec<DoorRow>, RunDirError> {
    let table = Table::read(path, &DOORS.names())?;
    let read = |row| {
        let uint = |name: &str| table.uint(name, row);
        Ok(DoorRow {
            at_s: table.narrow("at_s", uint("at_s")?)?,
            door: table.narrow("door", uint("door")?)?,
            requests: uint("requests")?,
            fetches: uint("fetches")?,
            replays: uint("replays")?,
            joined: uint("joined")?,
            validations: uint("validations")?,
            bytes_in: uint("bytes_in")?,
            bytes_out: uint("bytes_out")?,
            late_max_us: uint("late_max_us")?,
        })
    };
    (0..table.rows()).map(read).collect::<Result<_, _>>().map_err(FileError::into)
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
