//! The response of one target to one request, and whether it was what the Collector sent.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

pub use assay_measurement::response_error::ResponseError;

use crate::columns::TableSpec;
use crate::dir::RunDirError;
use crate::table::{Cell, Column, ColumnKind, FileError, Table, TableWriter};

/// What a comparison with the Collector's response came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[derive(EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// The same, by the rules.
    Ok,
    /// Another status.
    StatusCodeMismatch,
    /// A header field differs, which is named.
    HeaderMismatch,
    /// Another body.
    BodyMismatch,
    /// There was no response, or not all of it; the error says why.
    NoResponse,
    /// There is nothing to compare: a tunnel, or the Collector's response itself.
    NotCompared,
    /// Not compared, through Assay's own bound: the Collector had no room to keep what the client got until the proxy requested
    /// it, so that the proxy was given something else.
    NotKept,
    /// Never sent to it: too much was waiting for it.
    Dropped,
}

impl Verdict {
    /// Name in tables and documents.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// True where a response came and is another than the Collector's.
    pub fn is_mismatch(self) -> bool {
        matches!(self, Verdict::StatusCodeMismatch | Verdict::HeaderMismatch | Verdict::BodyMismatch)
    }
}

/// One response of one target to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseRow {
    /// Number of the request, from 0, in order of arrival.
    pub request: u64,
    /// The target that responded: index into `SpeInfo::targets`; 0 is direct.
    pub target: u16,
    /// Place among the proxies that got the request; 0: first.
    pub place: u8,
    /// Instant of sending to that target, in microseconds since the start.
    pub at_us: i64,
    /// Address of the client.
    pub client: String,
    pub method: String,
    /// `HTTP/1.1` or `HTTP/1.0`.
    pub version: String,
    pub url: String,
    /// Status of the response.
    pub status: Option<u16>,
    /// Time to connect; none: the connection was there already.
    pub connect_us: Option<i64>,
    /// From sending the request to the first byte of the response.
    pub first_byte_us: Option<i64>,
    /// From the first byte to the last.
    pub transfer_us: Option<i64>,
    /// Bytes of the response's head.
    pub head_bytes: u64,
    /// Bytes of its body, as on the wire but without chunked coding.
    pub body_bytes: u64,
    /// MD5 of the decoded body, in hexadecimal.
    pub checksum: Option<String>,
    /// Result of the comparison with the Collector's response.
    pub verdict: Verdict,
    /// Name of the header field that differs.
    pub header: Option<String>,
    /// Reason for which there is no whole response.
    pub error: Option<ResponseError>,
}

impl ResponseRow {
    /// Response time as the document has it: connection, first byte and transfer; none: there is no whole response.
    pub fn response_us(&self) -> Option<i64> {
        if self.error.is_some() {
            return None;
        }
        Some(self.connect_us.unwrap_or(0) + self.first_byte_us? + self.transfer_us.unwrap_or(0))
    }
}

/// A row for each response of each target.
pub(crate) const RESPONSES: TableSpec = TableSpec {
    file: "responses.parquet",
    about: "A row for each response of each target, `direct` among them: that is the response that the client got. Rows are in \
            the order in which responses ended. Response time is `connect_us` (if any) + `first_byte_us` + `transfer_us`.",
    columns: || {
        vec![
            Column::new("request", ColumnKind::Uint, "number of the request, from 0, in order of arrival"),
            Column::new("target", ColumnKind::Uint, "index into `targets` of spe.json; 0: direct"),
            Column::new(
                "place",
                ColumnKind::Uint,
                "place in the order in which the proxies got the request; 0: first",
            ),
            Column::new(
                "at_us",
                ColumnKind::Int,
                "when it was sent to that target, since the start, in microseconds",
            ),
            Column::new("client", ColumnKind::Text, "address of the client"),
            Column::new("method", ColumnKind::Text, "method of the request"),
            Column::new("version", ColumnKind::Text, "`HTTP/1.1` or `HTTP/1.0`"),
            Column::new("url", ColumnKind::Text, "URL of the request"),
            Column::optional("status", ColumnKind::Uint, "status code; null: there was no response"),
            Column::optional(
                "connect_us",
                ColumnKind::Int,
                "time to connect; null: the connection was there already",
            ),
            Column::optional(
                "first_byte_us",
                ColumnKind::Int,
                "from sending the request to the response's first byte; null with a status: sent before its turn, and since when it was served is not known",
            ),
            Column::optional("transfer_us", ColumnKind::Int, "from the first byte to the last"),
            Column::new("head_bytes", ColumnKind::Uint, "bytes of the response's head"),
            Column::new(
                "body_bytes",
                ColumnKind::Uint,
                "bytes of its body, content coding included, chunked coding not",
            ),
            Column::optional("checksum", ColumnKind::Text, "MD5 of the decoded body, in hexadecimal"),
            Column::new(
                "verdict",
                ColumnKind::Text,
                "`OK`, `STATUS_CODE_MISMATCH`, `HEADER_MISMATCH`, `BODY_MISMATCH`, `NO_RESPONSE` (`error` says why), \
                 `NOT_COMPARED` (a tunnel, or the direct response itself), `NOT_KEPT` (not compared: the Collector had no room to \
                 keep what the client got until the proxy requested it) or `DROPPED` (never asked: too much was waiting)",
            ),
            Column::optional("header", ColumnKind::Text, "name of the header field that differs"),
            Column::optional(
                "error",
                ColumnKind::Text,
                "`refused`, `reset`, `timed_out`, `garbage`, `truncated`, `too_long`, `client_gone` or `tls`",
            ),
        ]
    },
};

/// Writes responses as they end. Memory is bounded by one row group (about 64,000 rows). The file is called
/// `NAME.partial` until [`ResponseWriter::finish`].
pub struct ResponseWriter {
    writer: TableWriter,
}

impl ResponseWriter {
    pub fn create(path: &Path) -> Result<Self, RunDirError> {
        Ok(Self { writer: TableWriter::create_recoverable(path, (RESPONSES.columns)())? })
    }

    /// Adds a response. Every 64,000 rows this compresses and writes them, which takes some tens of milliseconds: call
    /// it from a thread that has time.
    pub fn push(&mut self, row: &ResponseRow) -> Result<(), RunDirError> {
        Ok(self.writer.push(&[
            Cell::Uint(row.request),
            Cell::Uint(row.target.into()),
            Cell::Uint(row.place.into()),
            Cell::Int(row.at_us),
            Cell::Text(&row.client),
            Cell::Text(&row.method),
            Cell::Text(&row.version),
            Cell::Text(&row.url),
            Cell::opt_uint(row.status.map(u64::from)),
            Cell::opt_int(row.connect_us),
            Cell::opt_int(row.first_byte_us),
            Cell::opt_int(row.transfer_us),
            Cell::Uint(row.head_bytes),
            Cell::Uint(row.body_bytes),
            Cell::opt_text(row.checksum.as_deref()),
            Cell::Text(row.verdict.name()),
            Cell::opt_text(row.header.as_deref()),
            Cell::opt_text(row.error.map(ResponseError::name)),
        ])?)
    }

    /// Writes the rows so far.
    pub fn flush(&mut self) -> Result<(), RunDirError> {
        Ok(self.writer.flush()?)
    }

    /// Responses that could not be written, because the disk is full.
    pub fn lost(&self) -> u64 {
        self.writer.lost()
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

/// Calls `each` with every row, in order; one row group (65,536 rows) is in memory at a time.
pub fn for_each_response<E: From<RunDirError>>(
    path: &Path,
    mut each: impl FnMut(ResponseRow) -> Result<(), E>,
) -> Result<(), E> {
    let mut outcome = Ok(());
    Table::read_in_groups(path, &RESPONSES.names(), |group| {
        for row in 0..group.rows() {
            if outcome.is_err() {
                break;
            }
            outcome = each(read_row(group, row)?);
        }
        Ok::<_, RunDirError>(())
    })?;
    outcome
}

/// Reads a whole table into memory.
pub fn read_responses(path: &Path) -> Result<Vec<ResponseRow>, RunDirError> {
    let mut rows = Vec::new();
    for_each_response(path, |row| {
        rows.push(row);
        Ok::<_, RunDirError>(())
    })?;
    Ok(rows)
}

fn read_row(table: &Table, row: usize) -> Result<ResponseRow, FileError> {
    let text = |name: &str| table.text(name, row).map(str::to_owned);
    let opt_text = |name: &str| table.opt_text(name, row);
    let verdict = table.text("verdict", row)?;
    let error = opt_text("error")?;
    Ok(ResponseRow {
        request: table.uint("request", row)?,
        target: table.narrow("target", table.uint("target", row)?)?,
        place: table.narrow("place", table.uint("place", row)?)?,
        at_us: table.int("at_us", row)?,
        client: text("client")?,
        method: text("method")?,
        version: text("version")?,
        url: text("url")?,
        status: table.opt_uint("status", row)?.map(|value| table.narrow("status", value)).transpose()?,
        connect_us: table.opt_int("connect_us", row)?,
        first_byte_us: table.opt_int("first_byte_us", row)?,
        transfer_us: table.opt_int("transfer_us", row)?,
        head_bytes: table.count("head_bytes", row)?,
        body_bytes: table.count("body_bytes", row)?,
        checksum: opt_text("checksum")?.map(str::to_owned),
        verdict: verdict.parse().map_err(|_| table.unknown("verdict", verdict))?,
        header: opt_text("header")?.map(str::to_owned),
        error: error.map(|name| name.parse().map_err(|_| table.unknown("error", name))).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(request: u64) -> ResponseRow {
        let responded = !request.is_multiple_of(3);
        ResponseRow {
            request,
            target: (request % 4) as u16,
            place: 2,
            at_us: request as i64 * 10,
            client: "192.0.2.1".into(),
            method: "GET".into(),
            version: "HTTP/1.1".into(),
            url: format!("http://a.example/{request}"),
            status: responded.then_some(200),
            connect_us: request.is_multiple_of(2).then_some(5),
            first_byte_us: responded.then_some(100),
            transfer_us: responded.then_some(7),
            head_bytes: 200,
            body_bytes: request,
            checksum: responded.then(|| format!("{request:032x}")),
            verdict: if responded { Verdict::VARIANTS[request as usize % 4] } else { Verdict::NoResponse },
            header: (request % 4 == 2).then(|| "content-type".into()),
            error: (!responded)
                .then(|| ResponseError::VARIANTS[request as usize % ResponseError::VARIANTS.len()]),
        }
    }

    #[test]
    fn responses_come_back_as_they_were() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("responses.parquet");
        let mut writer = ResponseWriter::create(&path).unwrap();
        let rows: Vec<ResponseRow> = (0..50).map(row).collect();
        rows.iter().for_each(|row| writer.push(row).unwrap());
        assert!(!path.exists(), "it has its name only once it is whole");
        writer.finish().unwrap();
        assert_eq!(read_responses(&path).unwrap(), rows);
    }

    #[test]
    fn a_response_time_is_connection_first_byte_and_transfer() {
        let whole = row(4);
        assert_eq!(whole.response_us(), Some(112));
        assert_eq!(row(5).response_us(), Some(107), "the connection was there already");
        assert_eq!(row(6).response_us(), None, "there is no whole response");
    }

    #[test]
    fn every_verdict_and_error_is_found_by_its_name() {
        for verdict in Verdict::VARIANTS {
            assert_eq!(verdict.name().parse(), Ok(*verdict));
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.name());
        }
        for error in ResponseError::VARIANTS {
            assert_eq!(error.name().parse(), Ok(*error));
            assert_eq!(serde_json::to_value(error).unwrap(), error.name());
        }
        assert!("ok".parse::<Verdict>().is_err());
    }
}
