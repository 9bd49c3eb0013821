//! Table of all requests, written without a wait for the disk.

use std::path::Path;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use assay_record::dir::RunDirError;
use assay_record::table::{Cell, Column, ColumnKind, FileError, TableWriter};

use crate::replay::ReplayError;
use crate::replay::results::SentRequest;

/// Rows that may wait for the disk.
const MOST_WAITING: usize = 16_384;

/// A row of the table.
struct ReplayRow {
    number: u64,
    client: String,
    method: &'static str,
    url: String,
    due_us: i64,
    sent_us: i64,
    connected_us: Option<i64>,
    first_byte_us: Option<i64>,
    last_byte_us: Option<i64>,
    status: Option<u16>,
    head_bytes: u64,
    body_bytes: u64,
    error: Option<&'static str>,
    outcome: Option<&'static str>,
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("number", ColumnKind::Uint, "number of the request, in the order in which they ended"),
        Column::new("client", ColumnKind::Text, "client of the log, or connection of the list"),
        Column::new("method", ColumnKind::Text, "`GET` or `HEAD`"),
        Column::new("url", ColumnKind::Text, "URL"),
        Column::new("due_us", ColumnKind::Int, "when it was due, since the start, in microseconds"),
        Column::new("sent_us", ColumnKind::Int, "connect begun, or first byte written"),
        Column::optional("connected_us", ColumnKind::Int, "connection made; null: it was there"),
        Column::optional("first_byte_us", ColumnKind::Int, "first byte of the response"),
        Column::optional("last_byte_us", ColumnKind::Int, "last byte of the response"),
        Column::optional("status", ColumnKind::Uint, "status code"),
        Column::new("head_bytes", ColumnKind::Uint, "bytes of the response's head"),
        Column::new("body_bytes", ColumnKind::Uint, "bytes of its body"),
        Column::optional("error", ColumnKind::Text, "what went wrong"),
        Column::optional(
            "outcome",
            ColumnKind::Text,
            "with simulated origins: `hit`, `joined`, `revalidated`, `miss`, `own` (of the proxy itself), `wrong`",
        ),
    ]
}

/// Writes rows in a thread of its own.
pub(crate) struct Xacts {
    to: SyncSender<ReplayRow>,
    writing: JoinHandle<Result<(), FileError>>,
    number: u64,
    lost: u64,
}

impl Xacts {
    pub(crate) fn create(path: &Path) -> Result<Self, ReplayError> {
        let mut writer = TableWriter::create(path, columns()).map_err(RunDirError::from)?;
        let (to, rows) = sync_channel::<ReplayRow>(MOST_WAITING);
        let writing = std::thread::Builder::new().name("xacts".into()).spawn(move || {
            for row in rows {
                write(&mut writer, &row)?;
            }
            writer.finish()
        })?;
        Ok(Self { to, writing, number: 0, lost: 0 })
    }

    /// Adds a request; one that the disk has no time for is lost, and counted.
    pub(crate) fn push(&mut self, sent: &SentRequest<'_>, start_ns: u64) {
        let us = |ns: u64| (ns as i64 - start_ns as i64).div_euclid(1000);
        let result = sent.result;
        let row = ReplayRow {
            number: self.number,
            client: sent.client.to_owned(),
            method: sent.request.method(),
            url: sent.request.url(),
            due_us: us(sent.due_ns),
            sent_us: us(result.sent_ns),
            connected_us: result.connected_ns.map(us),
            first_byte_us: result.first_ns.map(us),
            last_byte_us: result.last_ns.map(us),
            status: result.status,
            head_bytes: result.head_bytes,
            body_bytes: result.body_bytes,
            error: result.error.map(|error| error.name()),
            outcome: result.cached.map(|cached| if cached.wrong { "wrong" } else { cached.outcome.name() }),
        };
        self.number += 1;
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.to.try_send(row) {
            self.lost += 1;
        }
    }

    /// Writes what is left; how many rows were lost.
    pub(crate) fn finish(self) -> Result<u64, ReplayError> {
        drop(self.to);
        match self.writing.join() {
            Ok(written) => written.map_err(RunDirError::from)?,
            Err(_) => {
                return Err(ReplayError::System(std::io::Error::other(
                    "the thread that writes ended by a fault of Assay",
                )));
            }
        }
        Ok(self.lost)
    }
}

fn write(writer: &mut TableWriter, row: &ReplayRow) -> Result<(), FileError> {
    let opt_int = |value: Option<i64>| value.map_or(Cell::Null, Cell::Int);
    writer.push(&[
        Cell::Uint(row.number),
        Cell::Text(&row.client),
        Cell::Text(row.method),
        Cell::Text(&row.url),
        Cell::Int(row.due_us),
        Cell::Int(row.sent_us),
        opt_int(row.connected_us),
        opt_int(row.first_byte_us),
        opt_int(row.last_byte_us),
        row.status.map_or(Cell::Null, |status| Cell::Uint(status.into())),
        Cell::Uint(row.head_bytes),
        Cell::Uint(row.body_bytes),
        row.error.map_or(Cell::Null, Cell::Text),
        row.outcome.map_or(Cell::Null, Cell::Text),
    ])
}
