//! Log of the Collector: a row for each request at each listener, in `collector.parquet` and optionally as text in the format of
//! Squid's access log (figure 11.3 of the thesis).
//!
//! Written by a thread of its own behind a bounded channel: no response waits for the disk. Rows that do not fit are lost, and
//! counted.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::spec::CollectorLog;
use assay_base::clock::monotonic_ns;
use assay_protocol::clock::RunClock;
use assay_protocol::evaluation::ExchangeRow;
use assay_record::dir::RunDirError;
use assay_record::spe::ExchangeWriter;
use strum::IntoStaticStr;

use crate::collector::error::CollectorError;
use crate::log_writer::drain;
use crate::log_writer::{WriteFaultKind, WriteFaults};

/// Capacity of the channel.
const QUEUE_MAX: usize = 1 << 14;
const TABLE: &str = "collector.parquet";
const TEXT: &str = "collector.log";

/// Source of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ServedFrom {
    /// The Collector's own message.
    #[default]
    Own,
    /// The origin, for this request.
    Fetched,
    /// A complete recording.
    Replayed,
    /// A recording under way.
    Joined,
}

impl ServedFrom {
    /// Name in the table.
    fn name(self) -> &'static str {
        self.into()
    }

    /// Squid's result and hierarchy codes.
    fn squid_codes(self, status: Option<u16>) -> (&'static str, &'static str) {
        match self {
            ServedFrom::Own => ("NONE", "NONE"),
            ServedFrom::Fetched => ("TCP_MISS", "DIRECT"),
            ServedFrom::Replayed | ServedFrom::Joined if status == Some(304) => ("TCP_IMS_HIT", "NONE"),
            ServedFrom::Replayed | ServedFrom::Joined => ("TCP_HIT", "NONE"),
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SentResponse {
    /// None: nothing was sent.
    pub status: Option<u16>,
    pub body_bytes: u64,
    pub served_from: ServedFrom,
    /// Empty if unknown.
    pub content_type: String,
}

/// A logged request and its response.
#[derive(Debug, Clone)]
pub struct ExchangeEntry {
    /// `CLOCK_MONOTONIC`.
    pub arrived_ns: u64,
    pub ended_ns: u64,
    pub listener: u16,
    /// Number given by the Multiplier.
    pub request: Option<u64>,
    pub client: IpAddr,
    pub method: String,
    pub url: String,
    pub host: String,
    pub sent: SentResponse,
}

/// Sending end of the log.
pub struct ExchangeLog {
    entries: SyncSender<(ExchangeEntry, u64)>,
    state: Arc<ExchangeLogState>,
    start_ns: Cell<u64>,
    thread: JoinHandle<Result<(), CollectorError>>,
}

#[derive(Default)]
struct ExchangeLogState {
    /// Rows that were not written.
    lost: AtomicU64,
    faults: WriteFaults,
}

impl ExchangeLog {
    /// Creates the files, and starts the thread that writes them.
    pub fn start(spec: &CollectorLog) -> Result<Self, CollectorError> {
        let cannot = |cause: io::Error| CollectorError::Log { directory: spec.directory.clone(), cause };
        let table = ExchangeWriter::create(&spec.directory.join(TABLE)).map_err(CollectorError::Table)?;
        let text = spec.text.then(|| File::create(spec.directory.join(TEXT)).map(BufWriter::new));
        let text = text.transpose().map_err(cannot)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
        let state = Arc::new(ExchangeLogState::default());
        let (entries, waiting) = sync_channel(QUEUE_MAX);
        let unix_offset_ns = now - i128::from(monotonic_ns());
        let directory = spec.directory.clone();
        let files = ExchangeLogFiles { table, text, directory, unix_offset_ns, state: Arc::clone(&state) };
        let thread = std::thread::Builder::new().name("log".into()).spawn(move || files.fill(&waiting));
        let start_ns = Cell::new(RunClock::provisional().start_ns);
        Ok(Self { entries, state, start_ns, thread: thread.map_err(cannot)? })
    }

    /// Sets the start of the evaluation.
    pub fn starts(&self, clock: RunClock) {
        self.start_ns.set(clock.start_ns);
    }

    /// Logs a request with its response.
    pub fn note(&self, entry: ExchangeEntry) {
        if self.entries.try_send((entry, self.start_ns.get())).is_err() {
            self.state.lost.fetch_add(1, Relaxed);
        }
    }

    /// Next fault that has not been reported.
    pub fn next_fault(&self) -> Option<String> {
        self.state.faults.next_unreported()
    }

    /// Writes the remaining rows. Returns unreported faults, among them the number of missing rows.
    pub fn finish(self) -> Result<Vec<String>, CollectorError> {
        drop(self.entries);
        let panicked = |_| io::Error::other("the thread that writes the Collector's log panicked");
        self.thread.join().map_err(panicked).map_err(CollectorError::Runtime)??;
        let mut faults: Vec<String> = std::iter::from_fn(|| self.state.faults.next_unreported()).collect();
        let lost = self.state.lost.load(Relaxed);
        if lost > 0 {
            faults.push(format!(
                "{lost} lines of the Collector's log could not be written and are missing: the disk was too slow, or full"
            ));
        }
        Ok(faults)
    }
}

struct ExchangeLogFiles {
    table: ExchangeWriter,
    text: Option<BufWriter<File>>,
    directory: PathBuf,
    /// Unix time at zero of `CLOCK_MONOTONIC`.
    unix_offset_ns: i128,
    state: Arc<ExchangeLogState>,
}

impl ExchangeLogFiles {
    /// Writes rows until the channel is closed. A full disk costs the rows that it has no room for, and nothing else.
    fn fill(mut self, entries: &Receiver<(ExchangeEntry, u64)>) -> Result<(), CollectorError> {
        drain(entries, |received| {
            match received {
                Some((entry, start_ns)) => self.write(&entry, start_ns),
                None => self.keep(),
            }
            ControlFlow::Continue(())
        });
        self.keep();
        self.write_rows(ExchangeWriter::flush);
        match self.table.finish() {
            // The table is readable as it is.
            Err(error) if error.is_kept() => self.state.faults.record(WriteFaultKind::Kept, &error),
            finished => finished.map_err(CollectorError::Table)?,
        }
        Ok(())
    }

    fn write_rows(&mut self, write: impl FnOnce(&mut ExchangeWriter) -> Result<(), RunDirError>) {
        let before = self.table.lost();
        let written = write(&mut self.table);
        self.state.lost.fetch_add(self.table.lost() - before, Relaxed);
        self.state.faults.record_row(written);
    }

    fn write(&mut self, entry: &ExchangeEntry, start_ns: u64) {
        self.write_rows(|table| table.push(&row(entry, start_ns)));
        let ended_ms = (i128::from(entry.ended_ns) + self.unix_offset_ns) / 1_000_000;
        let written = self.text.as_mut().map(|text| writeln!(text, "{}", squid_line(entry, ended_ms)));
        if let Some(Err(cause)) = written {
            self.end_text(cause);
        }
    }

    /// Makes written rows safe against a kill of the process.
    fn keep(&mut self) {
        self.state.faults.record_keeping(self.table.keep());
        if let Some(Err(cause)) = self.text.as_mut().map(BufWriter::flush) {
            self.end_text(cause);
        }
    }

    /// Ends the text log: with lines missing it would look whole.
    fn end_text(&mut self, cause: io::Error) {
        let error = CollectorError::Log { directory: self.directory.clone(), cause };
        self.state.faults.record(WriteFaultKind::Lost, &error);
        drop(self.text.take().map(BufWriter::into_parts));
    }
}

fn row(entry: &ExchangeEntry, start_ns: u64) -> ExchangeRow {
    ExchangeRow {
        at_us: entry.arrived_ns.saturating_sub(start_ns) / 1_000,
        listener: entry.listener,
        request: entry.request,
        client: entry.client.to_string(),
        method: entry.method.clone(),
        url: entry.url.clone(),
        status: entry.sent.status,
        source: entry.sent.served_from.name().to_owned(),
        response_us: entry.ended_ns.saturating_sub(entry.arrived_ns) / 1_000,
        body_bytes: entry.sent.body_bytes,
        content_type: entry.sent.content_type.clone(),
    }
}

/// Formats a line of Squid's native log: end, duration in milliseconds, client, result/status, bytes, method, URL, user (none),
/// hierarchy, content type.
fn squid_line(entry: &ExchangeEntry, ended_ms: i128) -> String {
    let sent = &entry.sent;
    let (result, from) = sent.served_from.squid_codes(sent.status);
    let host = if sent.served_from == ServedFrom::Fetched { entry.host.as_str() } else { "-" };
    let content_type = media_type(&sent.content_type);
    format!(
        "{}.{:03} {:6} {} {result}/{:03} {} {} {} - {from}/{host} {content_type}",
        ended_ms / 1000,
        ended_ms % 1000,
        entry.ended_ns.saturating_sub(entry.arrived_ns) / 1_000_000,
        entry.client,
        sent.status.unwrap_or(0),
        sent.body_bytes,
        entry.method,
        entry.url,
    )
}

/// Media type without parameters; `-` for values that could look like further columns or lines.
fn media_type(content_type: &str) -> &str {
    let end = content_type.find([';', ' ', '\t']).unwrap_or(content_type.len());
    let media_type = &content_type[..end];
    let is_plain = !media_type.is_empty() && media_type.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { media_type } else { "-" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(served_from: ServedFrom, status: impl Into<Option<u16>>) -> ExchangeEntry {
        let status = status.into();
        let sent =
            SentResponse { status, body_bytes: 13_661, served_from, content_type: "image/jpeg".into() };
        ExchangeEntry {
            arrived_ns: 1_000_000_000,
            ended_ns: 1_677_900_000,
            listener: 2,
            request: Some(7),
            client: IpAddr::from([128, 6, 60, 20]),
            method: "GET".into(),
            url: "http://news.bbc.co.uk/cele0.jpg".into(),
            host: "news.bbc.co.uk".into(),
            sent,
        }
    }

    #[test]
    fn a_content_type_is_one_column_whatever_the_origin_sent() {
        for (sent, written) in [
            ("text/html; charset=utf-8", "text/html"),
            ("text/html TCP_HIT/200", "text/html"),
            ("a\n1.0 2 ::1", "-"),
            ("\u{1b}[2J", "-"),
            ("; x", "-"),
            ("", "-"),
        ] {
            assert_eq!(media_type(sent), written, "{sent:?}");
        }
    }

    #[test]
    fn a_line_has_the_form_of_the_documents_figure() {
        assert_eq!(
            squid_line(&entry(ServedFrom::Fetched, 200), 986_185_568_949),
            "986185568.949    677 128.6.60.20 TCP_MISS/200 13661 GET http://news.bbc.co.uk/cele0.jpg - \
             DIRECT/news.bbc.co.uk image/jpeg"
        );
        assert!(squid_line(&entry(ServedFrom::Joined, 200), 0).contains(" TCP_HIT/200 13661 GET "));
        assert!(
            squid_line(&entry(ServedFrom::Own, None), 0).contains(" NONE/000 13661 GET "),
            "as Squid has it"
        );
        assert!(squid_line(&entry(ServedFrom::Replayed, 304), 0).ends_with(" - NONE/- image/jpeg"));
    }

    #[test]
    fn every_request_is_in_both_files() {
        let dir = tempfile::tempdir().unwrap();
        let log = ExchangeLog::start(&CollectorLog { directory: dir.path().to_owned(), text: true }).unwrap();
        log.starts(RunClock { start_ns: 400_000_000, start_unix_s: 0 });
        (0..39).for_each(|_| log.note(entry(ServedFrom::Replayed, 200)));
        log.note(entry(ServedFrom::Own, None));
        log.finish().unwrap();
        let rows = assay_record::spe::read_exchanges(&dir.path().join(TABLE)).unwrap();
        assert_eq!((rows.len(), rows[0].at_us, rows[0].response_us), (40, 600_000, 677_900));
        assert_eq!((rows[0].source.as_str(), rows[0].request), ("replayed", Some(7)));
        assert_eq!([rows[0].status, rows[39].status], [Some(200), None]);
        assert_eq!(std::fs::read_to_string(dir.path().join(TEXT)).unwrap().lines().count(), 40);
    }
}
