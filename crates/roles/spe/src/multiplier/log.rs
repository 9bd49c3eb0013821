//! Where what was measured goes: into `responses.parquet`, and on request into a text log in the document's form.
//!
//! In a thread of its own, behind a bounded channel: no response waits for the disk.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_base::clock::monotonic_ns;
use assay_http::date::{DATE_BYTES, write_date};
use assay_record::dir::RunDirError;
use assay_record::spe::{ResponseRow, ResponseWriter};

use super::board::{Entry, Measured, ToWrite};
use super::error::MultiplierError;
use super::message::version_name;
use crate::drain::drain;
use crate::trouble::{Kind, Trouble};

/// Entries that may wait to be written.
const MOST_WAITING: usize = 1 << 16;
const TABLE: &str = "responses.parquet";
const TEXT: &str = "responses.log";

pub struct Writer {
    thread: JoinHandle<Result<(), MultiplierError>>,
    standing: Arc<Standing>,
}

#[derive(Default)]
struct Standing {
    /// What was not written.
    lost: Arc<AtomicU64>,
    trouble: Trouble,
}

/// What it writes to.
struct Files {
    table: ResponseWriter,
    text: Option<BufWriter<File>>,
    text_path: PathBuf,
    /// Names of the proxies.
    labels: Vec<String>,
    /// Nanoseconds of `CLOCK_MONOTONIC` at the beginning of 1970.
    unix_offset_ns: i128,
    standing: Arc<Standing>,
}

impl Writer {
    /// Begins the files in a directory, and a thread that fills them until they are told that
    /// it was all.
    pub fn start(
        directory: &Path,
        with_text: bool,
        labels: Vec<String>,
    ) -> Result<(Self, SyncSender<ToWrite>), MultiplierError> {
        let text_path = directory.join(TEXT);
        let text = with_text.then(|| File::create(&text_path).map(BufWriter::new)).transpose();
        let text = text.map_err(|cause| MultiplierError::Log { path: text_path.clone(), cause })?;
        let table = ResponseWriter::create(&directory.join(TABLE)).map_err(MultiplierError::Table)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
        let unix_offset_ns = now - i128::from(monotonic_ns());
        let standing = Arc::new(Standing::default());
        let files = Files { table, text, text_path, labels, unix_offset_ns, standing: Arc::clone(&standing) };
        let (sender, entries) = sync_channel(MOST_WAITING);
        let thread = std::thread::Builder::new()
            .name("responses".into())
            .spawn(move || files.fill(&entries))
            .map_err(MultiplierError::Start)?;
        Ok((Self { thread, standing }, sender))
    }

    /// Counts what is not written.
    pub fn lost(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.standing.lost)
    }

    /// The next thing that went wrong and was not told.
    pub fn trouble(&self) -> Option<String> {
        self.standing.trouble.tell()
    }

    /// Waits until everything is written; what went wrong and was not told. It must have been told that it was all.
    pub fn finish(self) -> Result<Vec<String>, MultiplierError> {
        self.thread.join().map_err(|_| MultiplierError::Panicked)??;
        Ok(std::iter::from_fn(|| self.standing.trouble.tell()).collect())
    }
}

impl Files {
    /// A disk that is full costs what it has no room for, and nothing else: clients and proxies go on, and so does this.
    fn fill(mut self, entries: &Receiver<ToWrite>) -> Result<(), MultiplierError> {
        drain(entries, |came| match came {
            Some(ToWrite::Entry { entry, start_ns }) => {
                self.write(|table| table.push(&row(&entry, start_ns)));
                if let Err(cause) = self.say(&entry) {
                    self.end_text(cause);
                }
                ControlFlow::Continue(())
            }
            Some(ToWrite::End) => ControlFlow::Break(()),
            None => {
                self.keep();
                ControlFlow::Continue(())
            }
        });
        self.keep();
        self.write(ResponseWriter::flush);
        match self.table.finish() {
            // It can be read as it is.
            Err(error) if error.is_kept() => self.standing.trouble.note(Kind::Kept, &error),
            finished => finished.map_err(MultiplierError::Table)?,
        }
        Ok(())
    }

    /// A killed process loses nothing that was written so far.
    fn keep(&mut self) {
        self.standing.trouble.of_keeping(self.table.keep());
        if let Some(Err(cause)) = self.text.as_mut().map(BufWriter::flush) {
            self.end_text(cause);
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut ResponseWriter) -> Result<(), RunDirError>) {
        let before = self.table.lost();
        let written = write(&mut self.table);
        self.standing.lost.fetch_add(self.table.lost() - before, Relaxed);
        self.standing.trouble.of_row(written);
    }

    /// A text that lacks lines would look whole: it ends where it could not go on.
    fn end_text(&mut self, cause: io::Error) {
        let error = MultiplierError::Log { path: self.text_path.clone(), cause };
        self.standing.trouble.note(Kind::Lost, &error);
        // What is buffered cannot be written either.
        drop(self.text.take().map(BufWriter::into_parts));
    }

    fn say(&mut self, entry: &Entry) -> io::Result<()> {
        let Some(text) = &mut self.text else { return Ok(()) };
        let name = match entry.target {
            0 => "Collector",
            proxy => self.labels.get(usize::from(proxy) - 1).map_or("?", String::as_str),
        };
        let ended_ns = entry.measured.sent_ns + entry.measured.response_ns();
        let unix_s = (i128::from(ended_ns) + self.unix_offset_ns) / 1_000_000_000;
        writeln!(text, "{}", line(entry, name, u64::try_from(unix_s).unwrap_or(0), std::process::id()))
    }
}

fn row(entry: &Entry, start_ns: u64) -> ResponseRow {
    let (about, measured) = (&entry.about, &entry.measured);
    let us = |ns: Option<u64>| ns.map(|ns| i64::try_from(ns / 1_000).unwrap_or(i64::MAX));
    ResponseRow {
        request: about.number,
        target: entry.target,
        place: entry.place,
        at_us: (measured.sent_ns as i64).wrapping_sub(start_ns as i64).div_euclid(1_000),
        client: about.client.to_string(),
        method: about.method.clone(),
        version: version_name(about.version).into(),
        url: about.url.clone(),
        status: measured.status,
        connect_us: us(measured.connect_ns),
        first_byte_us: us(measured.first_byte_ns),
        transfer_us: us(measured.transfer_ns),
        head_bytes: measured.head_bytes,
        body_bytes: measured.body_bytes,
        checksum: entry.checksum.clone(),
        verdict: entry.verdict,
        header: entry.header.clone(),
        error: measured.error,
    }
}

/// A line in the form of the document's figure 11.2, all on one line: when (UTC), who, initial latency and transfer time in
/// `seconds:microseconds`, size, what validation came to, client, whether it was a validation, version, method, URL.
fn line(entry: &Entry, name: &str, unix_s: u64, pid: u32) -> String {
    let (about, measured) = (&entry.about, &entry.measured);
    let validation = if about.is_validation { "validation" } else { "non-validation" };
    format!(
        "{}:(pid={pid}):RESULT: {name}: {} {} {} {{{}}} {} {validation} {} {} {}",
        stamp(unix_s),
        latency(measured),
        split(measured.transfer_ns.unwrap_or(0)),
        measured.body_bytes,
        result(entry),
        about.client,
        version_name(about.version),
        about.method,
        about.url,
    )
}

/// `200,200,OK,`; the Collector's own response is held against nothing.
fn result(entry: &Entry) -> String {
    if entry.target == 0 {
        return "DUMMY,".into();
    }
    let status = |status: Option<u16>| status.map_or("-".into(), |status| status.to_string());
    let name = entry.verdict.name();
    let more = entry.header.clone().or(entry.measured.error.map(|error| error.name().to_owned()));
    let more = more.map_or(String::new(), |more| format!("{more},"));
    format!("{},{},{name},{more}", status(entry.direct_status), status(entry.measured.status))
}

/// The initial latency holds the connection.
fn latency(measured: &Measured) -> String {
    split(measured.connect_ns.unwrap_or(0) + measured.first_byte_ns.unwrap_or(0))
}

fn split(ns: u64) -> String {
    format!("{}:{}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

/// `Wed Jun 20 02:10:11 2001`.
fn stamp(unix_s: u64) -> String {
    let mut date = [0; DATE_BYTES];
    write_date(unix_s, &mut date);
    let text = String::from_utf8_lossy(&date);
    // `Wed, 20 Jun 2001 02:10:11 GMT`
    let words: Vec<&str> = text.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    match words[..] {
        [weekday, day, month, year, time, _] => format!("{weekday} {month} {day} {time} {year}"),
        _ => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use assay_http::head::Version;
    use assay_record::spe::{ResponseError, Verdict};

    use super::super::message::About;
    use super::*;

    fn entry(target: u16, verdict: Verdict) -> Entry {
        let about = About {
            number: 4,
            client: IpAddr::from([192, 168, 0, 2]),
            method: "GET".into(),
            version: Version::Http10,
            url: "http://www.cs.rutgers.edu/".into(),
            is_validation: false,
        };
        let measured = Measured {
            sent_ns: 7_000_000,
            status: Some(200),
            connect_ns: Some(1_000_000_000),
            first_byte_ns: Some(180_157_000),
            transfer_ns: Some(3_868_000),
            head_bytes: 100,
            body_bytes: 5083,
            error: None,
        };
        let (place, checksum, header) = (1, None, None);
        Entry {
            about: about.into(),
            target,
            place,
            measured,
            checksum,
            verdict,
            header,
            direct_status: Some(200),
        }
    }

    #[test]
    fn a_line_has_the_form_of_the_documents_figure() {
        assert_eq!(
            line(&entry(2, Verdict::Ok), "Proxy-2", 993_003_011, 4630),
            "Wed Jun 20 02:10:11 2001:(pid=4630):RESULT: Proxy-2: 1:180157 0:3868 5083 {200,200,OK,} 192.168.0.2 \
             non-validation HTTP/1.0 GET http://www.cs.rutgers.edu/"
        );
        assert!(line(&entry(0, Verdict::NotCompared), "Collector", 0, 1).contains(" 5083 {DUMMY,} "));
        let header = Entry { header: Some("ETag".into()), ..entry(1, Verdict::HeaderMismatch) };
        assert!(line(&header, "a", 0, 1).contains("{200,200,HEADER_MISMATCH,ETag,}"));
        let mut lost = entry(1, Verdict::NoResponse);
        (lost.measured.status, lost.measured.error) = (None, Some(ResponseError::Reset));
        assert!(line(&lost, "a", 0, 1).contains("{200,-,NO_ANSWER,reset,}"));
    }

    #[test]
    fn what_was_measured_is_found_in_both_files() {
        let dir = tempfile::tempdir().unwrap();
        let (writer, sender) = Writer::start(dir.path(), true, vec!["a".into(), "b".into()]).unwrap();
        sender.send(ToWrite::Entry { entry: Box::new(entry(2, Verdict::Ok)), start_ns: 5_000_000 }).unwrap();
        sender.send(ToWrite::End).unwrap();
        writer.finish().unwrap();
        let rows = assay_record::spe::read_responses(&dir.path().join(TABLE)).unwrap();
        assert_eq!((rows.len(), rows[0].at_us, rows[0].connect_us), (1, 2000, Some(1_000_000)));
        assert!(std::fs::read_to_string(dir.path().join(TEXT)).unwrap().contains(":RESULT: b: 1:180157 "));
    }
}
