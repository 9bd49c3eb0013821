//! The Collector's own log: a line for each request at each listener, as `collector.parquet` and on request as text, in the form of
//! Squid's access log (the document's figure 11.3).
//!
//! In a thread of its own, behind a bounded channel: no response waits for the disk. What does not fit is lost, and counted.

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

use crate::collector::error::CollectorError;
use crate::drain::drain;
use crate::trouble::{Kind, Trouble};

/// Lines that may wait to be written.
const MOST_WAITING: usize = 1 << 14;
const TABLE: &str = "collector.parquet";
const TEXT: &str = "collector.log";

/// Where a response came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Came {
    /// From nowhere: the Collector's own message.
    #[default]
    Own,
    /// From the origin, for this request.
    Fetched,
    /// From a complete recording.
    Replayed,
    /// From a recording that was under way.
    Joined,
}

impl Came {
    /// Its name in the table.
    fn name(self) -> &'static str {
        match self {
            Came::Own => "own",
            Came::Fetched => "fetched",
            Came::Replayed => "replayed",
            Came::Joined => "joined",
        }
    }

    /// What Squid calls it, and where Squid says that it came from.
    fn of_squid(self, status: u16) -> (&'static str, &'static str) {
        match self {
            Came::Own => ("NONE", "NONE"),
            Came::Fetched => ("TCP_MISS", "DIRECT"),
            Came::Replayed | Came::Joined if status == 304 => ("TCP_IMS_HIT", "NONE"),
            Came::Replayed | Came::Joined => ("TCP_HIT", "NONE"),
        }
    }
}

/// What was sent in response to a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// Status; 0: nothing was sent.
    pub status: u16,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// Where it came from.
    pub came: Came,
    /// Its content type; empty: it has none.
    pub content_type: String,
}

/// A request and its response.
#[derive(Debug, Clone)]
pub struct Line {
    /// When the request came, on `CLOCK_MONOTONIC`.
    pub came_ns: u64,
    /// When the response ended.
    pub ended_ns: u64,
    pub listener: u16,
    /// The Multiplier's number of it; none: it has none.
    pub request: Option<u64>,
    pub client: IpAddr,
    pub method: String,
    /// Its URL.
    pub url: String,
    /// The host that it names.
    pub host: String,
    pub sent: Sent,
}

/// The log, from the side of connections.
pub struct Log {
    lines: SyncSender<(Line, u64)>,
    standing: Arc<Standing>,
    start_ns: Cell<u64>,
    thread: JoinHandle<Result<(), CollectorError>>,
}

#[derive(Default)]
struct Standing {
    /// Lines that were not written.
    lost: AtomicU64,
    trouble: Trouble,
}

impl Log {
    /// Begins the files, and a thread that fills them.
    pub fn start(spec: &CollectorLog) -> Result<Self, CollectorError> {
        let cannot = |cause: io::Error| CollectorError::Log { directory: spec.directory.clone(), cause };
        let table = ExchangeWriter::create(&spec.directory.join(TABLE)).map_err(CollectorError::Table)?;
        let text = spec.text.then(|| File::create(spec.directory.join(TEXT)).map(BufWriter::new));
        let text = text.transpose().map_err(cannot)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
        let standing = Arc::new(Standing::default());
        let (lines, waiting) = sync_channel(MOST_WAITING);
        let unix_offset_ns = now - i128::from(monotonic_ns());
        let directory = spec.directory.clone();
        let files = Files { table, text, directory, unix_offset_ns, standing: Arc::clone(&standing) };
        let thread = std::thread::Builder::new().name("log".into()).spawn(move || files.fill(&waiting));
        let start_ns = Cell::new(RunClock::provisional().start_ns);
        Ok(Self { lines, standing, start_ns, thread: thread.map_err(cannot)? })
    }

    /// The evaluation starts at this instant.
    pub fn starts(&self, clock: RunClock) {
        self.start_ns.set(clock.start_ns);
    }

    /// Notes a request that has its response.
    pub fn note(&self, line: Line) {
        if self.lines.try_send((line, self.start_ns.get())).is_err() {
            self.standing.lost.fetch_add(1, Relaxed);
        }
    }

    /// The next thing that went wrong and was not told.
    pub fn trouble(&self) -> Option<String> {
        self.standing.trouble.tell()
    }

    /// Writes what is left; what went wrong and was not told, and how many lines are missing.
    pub fn finish(self) -> Result<Vec<String>, CollectorError> {
        drop(self.lines);
        let panicked = |_| io::Error::other("the thread that writes the Collector's log panicked");
        self.thread.join().map_err(panicked).map_err(CollectorError::Runtime)??;
        let mut told: Vec<String> = std::iter::from_fn(|| self.standing.trouble.tell()).collect();
        let lost = self.standing.lost.load(Relaxed);
        if lost > 0 {
            told.push(format!(
                "{lost} lines of the Collector's log could not be written and are missing: the disk was too slow, or full"
            ));
        }
        Ok(told)
    }
}

/// What it writes to.
struct Files {
    table: ExchangeWriter,
    text: Option<BufWriter<File>>,
    directory: PathBuf,
    /// Nanoseconds of `CLOCK_MONOTONIC` at the beginning of 1970.
    unix_offset_ns: i128,
    standing: Arc<Standing>,
}

impl Files {
    /// A disk that is full costs the lines that it has no room for, and nothing else.
    fn fill(mut self, lines: &Receiver<(Line, u64)>) -> Result<(), CollectorError> {
        drain(lines, |came| {
            match came {
                Some((line, start_ns)) => self.write(&line, start_ns),
                None => self.keep(),
            }
            ControlFlow::Continue(())
        });
        self.keep();
        self.write_rows(ExchangeWriter::flush);
        match self.table.finish() {
            // It can be read as it is.
            Err(error) if error.is_kept() => self.standing.trouble.note(Kind::Kept, &error),
            finished => finished.map_err(CollectorError::Table)?,
        }
        Ok(())
    }

    fn write_rows(&mut self, write: impl FnOnce(&mut ExchangeWriter) -> Result<(), RunDirError>) {
        let before = self.table.lost();
        let written = write(&mut self.table);
        self.standing.lost.fetch_add(self.table.lost() - before, Relaxed);
        self.standing.trouble.of_row(written);
    }

    fn write(&mut self, line: &Line, start_ns: u64) {
        self.write_rows(|table| table.push(&row(line, start_ns)));
        let ended_ms = (i128::from(line.ended_ns) + self.unix_offset_ns) / 1_000_000;
        let written = self.text.as_mut().map(|text| writeln!(text, "{}", as_squid(line, ended_ms)));
        if let Some(Err(cause)) = written {
            self.end_text(cause);
        }
    }

    /// A killed process loses nothing that was written so far.
    fn keep(&mut self) {
        self.standing.trouble.of_keeping(self.table.keep());
        if let Some(Err(cause)) = self.text.as_mut().map(BufWriter::flush) {
            self.end_text(cause);
        }
    }

    /// A text that lacks lines would look whole: it ends where it could not go on.
    fn end_text(&mut self, cause: io::Error) {
        let error = CollectorError::Log { directory: self.directory.clone(), cause };
        self.standing.trouble.note(Kind::Lost, &error);
        drop(self.text.take().map(BufWriter::into_parts));
    }
}

fn row(line: &Line, start_ns: u64) -> ExchangeRow {
    ExchangeRow {
        at_us: line.came_ns.saturating_sub(start_ns) / 1_000,
        listener: line.listener,
        request: line.request,
        client: line.client.to_string(),
        method: line.method.clone(),
        url: line.url.clone(),
        status: line.sent.status,
        came: line.sent.came.name().to_owned(),
        response_us: line.ended_ns.saturating_sub(line.came_ns) / 1_000,
        body_bytes: line.sent.body_bytes,
        content_type: line.sent.content_type.clone(),
    }
}

/// A line of Squid's native log: when it ended, milliseconds that it took, client, result and status, bytes, method, URL, user (none),
/// where it came from, content type.
fn as_squid(line: &Line, ended_ms: i128) -> String {
    let sent = &line.sent;
    let (result, from) = sent.came.of_squid(sent.status);
    let host = if sent.came == Came::Fetched { line.host.as_str() } else { "-" };
    let content_type = media_type(&sent.content_type);
    format!(
        "{}.{:03} {:6} {} {result}/{:03} {} {} {} - {from}/{host} {content_type}",
        ended_ms / 1000,
        ended_ms % 1000,
        line.ended_ns.saturating_sub(line.came_ns) / 1_000_000,
        line.client,
        sent.status,
        sent.body_bytes,
        line.method,
        line.url,
    )
}

/// The media type without its parameters. What an origin sent instead of one could look like further columns or lines.
fn media_type(content_type: &str) -> &str {
    let end = content_type.find([';', ' ', '\t']).unwrap_or(content_type.len());
    let media_type = &content_type[..end];
    let is_plain = !media_type.is_empty() && media_type.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { media_type } else { "-" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(came: Came, status: u16) -> Line {
        let sent = Sent { status, body_bytes: 13_661, came, content_type: "image/jpeg".into() };
        Line {
            came_ns: 1_000_000_000,
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
            as_squid(&line(Came::Fetched, 200), 986_185_568_949),
            "986185568.949    677 128.6.60.20 TCP_MISS/200 13661 GET http://news.bbc.co.uk/cele0.jpg - \
             DIRECT/news.bbc.co.uk image/jpeg"
        );
        assert!(as_squid(&line(Came::Joined, 200), 0).contains(" TCP_HIT/200 13661 GET "));
        assert!(as_squid(&line(Came::Replayed, 304), 0).ends_with(" - NONE/- image/jpeg"));
    }

    #[test]
    fn every_request_is_in_both_files() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::start(&CollectorLog { directory: dir.path().to_owned(), text: true }).unwrap();
        log.starts(RunClock { start_ns: 400_000_000, start_unix_s: 0 });
        (0..40).for_each(|_| log.note(line(Came::Replayed, 200)));
        log.finish().unwrap();
        let rows = assay_record::spe::read_exchanges(&dir.path().join(TABLE)).unwrap();
        assert_eq!((rows.len(), rows[0].at_us, rows[0].response_us), (40, 600_000, 677_900));
        assert_eq!((rows[0].came.as_str(), rows[0].request), ("replayed", Some(7)));
        assert_eq!(std::fs::read_to_string(dir.path().join(TEXT)).unwrap().lines().count(), 40);
    }
}
