//! The opt-in log of every xact, as Parquet.

use std::path::Path;

use crate::columns::XACTS;
use crate::dir::RunDirError;
use crate::table::{Cell, FileError, Table, TableWriter};
use assay_measurement::outcome::Outcome;
use assay_measurement::planned_fault::PlannedFault;
use assay_measurement::xact::{METHODS, TYPES, XactRow};

/// Writes xacts as they end. Memory is bounded by one row group (about 64,000 rows).
///
/// The file is called `NAME.partial` until [`XactLog::finish`]: a log without its end cannot be read.
pub struct XactLog {
    writer: TableWriter,
}

impl XactLog {
    pub fn create(path: &Path) -> Result<Self, RunDirError> {
        Ok(Self { writer: TableWriter::create(path, (XACTS.columns)())? })
    }

    /// Adds an xact. Every 64,000 rows this compresses and writes them, which takes some tens of
    /// milliseconds: call it from a thread that has time.
    pub fn push(&mut self, row: &XactRow) -> Result<(), RunDirError> {
        Ok(self.writer.push(&[
            Cell::Uint(row.robot.into()),
            Cell::Uint(row.number),
            Cell::Uint(row.place.into()),
            Cell::Uint(row.phase.into()),
            Cell::Text(row.method),
            Cell::Text(row.request_type),
            Cell::Uint(row.object),
            Cell::Uint(row.content.into()),
            Cell::Bool(row.cachable),
            Cell::Bool(row.revisit),
            Cell::Int(row.due_us),
            Cell::opt_int(row.ready_us),
            Cell::opt_int(row.sent_us),
            Cell::opt_int(row.connected_us),
            Cell::opt_int(row.secured_us),
            Cell::opt_int(row.first_byte_us),
            Cell::opt_int(row.last_byte_us),
            Cell::opt_text(row.outcome.map(Outcome::name)),
            Cell::opt_text(row.error.map(|kind| kind.name())),
            Cell::opt_uint(row.status.map(u64::from)),
            Cell::Uint(row.body_bytes),
            Cell::opt_uint(row.connection.map(u64::from)),
            Cell::opt_text(row.fault.map(PlannedFault::name)),
            Cell::Bool(row.fault_met),
        ])?)
    }

    /// Writes what is left and gives the file its name.
    pub fn finish(self) -> Result<(), RunDirError> {
        Ok(self.writer.finish()?)
    }

    /// Reads a whole log into memory, in the order in which it was written.
    pub fn read(path: &Path) -> Result<Vec<XactRow>, RunDirError> {
        let table = Table::read(path, &XACTS.names())?;
        Ok((0..table.rows()).map(|row| read_row(&table, row)).collect::<Result<_, _>>()?)
    }
}

fn read_row(table: &Table, row: usize) -> Result<XactRow, FileError> {
    let narrow16 = |name| table.narrow::<u16>(name, table.uint(name, row)?);
    let one_of = |name: &str, known: &[&'static str]| -> Result<&'static str, FileError> {
        let text = table.text(name, row)?;
        known.iter().find(|&&word| word == text).copied().ok_or_else(|| table.unknown(name, text))
    };
    let known = |name: &str| table.opt_text(name, row);
    Ok(XactRow {
        robot: table.narrow("robot", table.uint("robot", row)?)?,
        number: table.uint("number", row)?,
        place: narrow16("place")?,
        phase: narrow16("phase")?,
        method: one_of("method", &METHODS)?,
        request_type: one_of("type", &TYPES)?,
        object: table.uint("object", row)?,
        content: narrow16("content")?,
        cachable: table.bool("cachable", row)?,
        revisit: table.bool("revisit", row)?,
        due_us: table.int("due_us", row)?,
        ready_us: table.opt_int("ready_us", row)?,
        sent_us: table.opt_int("sent_us", row)?,
        connected_us: table.opt_int("connected_us", row)?,
        secured_us: table.opt_int("secured_us", row)?,
        first_byte_us: table.opt_int("first_byte_us", row)?,
        last_byte_us: table.opt_int("last_byte_us", row)?,
        outcome: known("outcome")?
            .map(|name| name.parse().map_err(|_| table.unknown("outcome", name)))
            .transpose()?,
        error: known("error")?
            .map(|name| name.parse().map_err(|_| table.unknown("error", name)))
            .transpose()?,
        status: table.opt_uint("status", row)?.map(|v| table.narrow("status", v)).transpose()?,
        body_bytes: table.count("body_bytes", row)?,
        connection: table.opt_uint("connection", row)?.map(|v| table.narrow("connection", v)).transpose()?,
        fault: known("fault")?
            .map(|name| name.parse().map_err(|_| table.unknown("fault", name)))
            .transpose()?,
        fault_met: table.bool("fault_met", row)?,
    })
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;
    use crate::table::{ROWS_PER_GROUP, partial_path};
    use assay_measurement::error_kind::ErrorKind;

    fn row(number: u64) -> XactRow {
        let sent = number.is_multiple_of(2).then_some(number as i64 + 7);
        XactRow {
            robot: 3,
            number,
            place: 1,
            phase: 2,
            method: METHODS[number as usize % METHODS.len()],
            request_type: TYPES[number as usize % TYPES.len()],
            object: u64::MAX - number,
            content: 4,
            cachable: true,
            revisit: number.is_multiple_of(3),
            due_us: number as i64,
            ready_us: Some(number as i64 + 1),
            sent_us: sent,
            connected_us: None,
            secured_us: None,
            first_byte_us: sent,
            last_byte_us: sent,
            outcome: sent.map(|_| Outcome::Collapsed),
            error: (sent.is_none()).then_some(ErrorKind::WrongBytes),
            status: sent.map(|_| 200),
            body_bytes: number * 10,
            connection: sent.map(|_| 9),
            fault: PlannedFault::VARIANTS.get(number as usize % 7).copied(),
            fault_met: number.is_multiple_of(3),
        }
    }

    #[test]
    fn every_method_and_type_that_robots_have_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("xacts.parquet");
        let mut log = XactLog::create(&path).unwrap();
        let methods = ["GET", "HEAD", "POST", "PUT"].map(|method| XactRow { method, ..row(1) });
        let types = ["basic", "ims200", "ims304", "reload", "range", "upload"];
        let types = types.map(|request_type| XactRow { request_type, ..row(2) });
        let rows: Vec<XactRow> = methods.into_iter().chain(types).collect();
        rows.iter().for_each(|row| log.push(row).unwrap());
        log.finish().unwrap();
        assert_eq!(XactLog::read(&path).unwrap(), rows);
    }

    #[test]
    fn xacts_come_back_as_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("xacts.parquet");
        let mut log = XactLog::create(&path).unwrap();
        let rows: Vec<XactRow> = (0..ROWS_PER_GROUP as u64 + 3).map(row).collect();
        rows.iter().for_each(|row| log.push(row).unwrap());
        assert!(partial_path(&path).exists() && !path.exists());
        log.finish().unwrap();
        assert_eq!(XactLog::read(&path).unwrap(), rows);
    }
}
