//! The Collector's own log, a row for each request at each listener: `collector.parquet`.

use std::path::Path;

use crate::table::{FileError, Table, TableWriter};
pub use assay_protocol::evaluation::ExchangeRow;

use crate::columns::{TableSpec, rows};
use crate::dir::RunDirError;

/// A row per request.
pub(crate) const EXCHANGES: TableSpec = TableSpec {
    file: "collector.parquet",
    about: "The Collector's own log: a row for each request at each listener, in the order in which responses ended. Tunnels are \
            not in it.",
    columns: rows::columns::<ExchangeRow>,
};

/// Writes rows as they come. They can be read before [`ExchangeWriter::finish`], by [`read_exchanges`].
pub struct ExchangeWriter {
    writer: TableWriter,
}

impl ExchangeWriter {
    pub fn create(path: &Path) -> Result<Self, RunDirError> {
        Ok(Self { writer: TableWriter::create_recoverable(path, (EXCHANGES.columns)())? })
    }

    /// Adds a row. Now and then this compresses and writes: call it from a thread that has time.
    pub fn push(&mut self, row: &ExchangeRow) -> Result<(), RunDirError> {
        Ok(self.writer.push(&rows::row(None, row))?)
    }

    /// Rows that could not be written, because the disk is full.
    pub fn lost(&self) -> u64 {
        self.writer.lost()
    }

    /// Writes the rows so far.
    pub fn flush(&mut self) -> Result<(), RunDirError> {
        Ok(self.writer.flush()?)
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
pub fn read_exchanges(path: &Path) -> Result<Vec<ExchangeRow>, RunDirError> {
    let table = Table::read(path, &EXCHANGES.names())?;
    let rows = (0..table.rows()).map(|row| rows::read(&table, row));
    rows.collect::<Result<_, FileError>>().map_err(FileError::into)
}
