//! Log of responses: `responses.parquet`, and optionally a text log in the format of the thesis.
//!
//! Written by a thread of its own behind a bounded channel: no response waits for the disk.

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

use super::error::MultiplierError;
use super::measurement::Measurement;
use super::message::version_name;
use super::shared_state::{LogCommand, ResponseEntry};
use crate::log_writer::drain;
use crate::log_writer::{WriteFaultKind, WriteFaults};

/// Capacity of the channel.
const QUEUE_MAX: usize = 1 << 16;
const TABLE: &str = "responses.parquet";
const TEXT: &str = "responses.log";

pub struct ResponseLog {
    thread: JoinHandle<Result<(), MultiplierError>>,
    log_state: Arc<ResponseLogState>,
}

#[derive(Default)]
struct ResponseLogState {
    /// Entries that were not written.
    lost: Arc<AtomicU64>,
    faults: WriteFaults,
}

struct ResponseLogFiles {
    table: ResponseWriter,
    text: Option<BufWriter<File>>,
    text_path: PathBuf,
    /// Names of the proxies.
    labels: Vec<String>,
    /// Unix time at zero of `CLOCK_MONOTONIC`.
    unix_offset_ns: i128,
    log_state: Arc<ResponseLogState>,
}

impl ResponseLog {
    /// Creates the files, and starts the thread that fills them until [`LogCommand::End`].
    pub fn start(
        directory: &Path,
        with_text: bool,
        labels: Vec<String>,
    ) -> Result<(Self, SyncSender<LogCommand>), MultiplierError> {
        let text_path = directory.join(TEXT);
        let text = with_text.then(|| File::create(&text_path).map(BufWriter::new)).transpose();
        let text = text.map_err(|cause| MultiplierError::Log { path: text_path.clone(), cause })?;
        let table = ResponseWriter::create(&directory.join(TABLE)).map_err(MultiplierError::Table)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i128);
        let unix_offset_ns = now - i128::from(monotonic_ns());
        let log_state = Arc::new(ResponseLogState::default());
        let files = ResponseLogFiles {
            table,
            text,
            text_path,
            labels,
            unix_offset_ns,
            log_state: Arc::clone(&log_state),
        };
        let (sender, entries) = sync_channel(QUEUE_MAX);
        let thread = std::thread::Builder::new()
            .name("responses".into())
            .spawn(move || files.fill(&entries))
            .map_err(MultiplierError::Start)?;
        Ok((Self { thread, log_state }, sender))
    }

    /// Counter of entries that were not written.
    pub fn lost(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.log_state.lost)
    }

    /// Next fault that has not been reported.
    pub fn next_fault(&self) -> Option<String> {
        self.log_state.faults.next_unreported()
    }

    /// Waits for the end of the thread, which must have been requested, and returns unreported faults.
    pub fn finish(self) -> Result<Vec<String>, MultiplierError> {
        self.thread.join().map_err(|_| MultiplierError::Panicked)??;
        Ok(std::iter::from_fn(|| self.log_state.faults.next_unreported()).collect())
    }
}

impl ResponseLogFiles {
    /// Writes entries until the end. A full disk costs the entries that it has no room for, and nothing else.
    fn fill(mut self, entries: &Receiver<LogCommand>) -> Result<(), MultiplierError> {
        drain(entries, |received| match received {
            Some(LogCommand::Entry { entry, start_ns }) => {
                self.write(|table| table.push(&row(&entry, start_ns)));
                if let Err(cause) = self.write_text(&entry) {
                    self.end_text(cause);
                }
                ControlFlow::Continue(())
            }
            Some(LogCommand::End) => ControlFlow::Break(()),
            None => {
                self.keep();
                ControlFlow::Continue(())
            }
        });
        self.keep();
        self.write(ResponseWriter::flush);
        match self.table.finish() {
            // The table is readable as it is.
            Err(error) if error.is_kept() => self.log_state.faults.record(WriteFaultKind::Kept, &error),
            finished => finished.map_err(MultiplierError::Table)?,
        }
        Ok(())
    }

    /// Makes written entries safe against a kill of the process.
    fn keep(&mut self) {
        self.log_state.faults.record_keeping(self.table.keep());
        if let Some(Err(cause)) = self.text.as_mut().map(BufWriter::flush) {
            self.end_text(cause);
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut ResponseWriter) -> Result<(), RunDirError>) {
        let before = self.table.lost();
        let written = write(&mut self.table);
        self.log_state.lost.fetch_add(self.table.lost() - before, Relaxed);
        self.log_state.faults.record_row(written);
    }

    /// Ends the text log: with lines missing it would look whole.
    fn end_text(&mut self, cause: io::Error) {
        let error = MultiplierError::Log { path: self.text_path.clone(), cause };
        self.log_state.faults.record(WriteFaultKind::Lost, &error);
        // The buffer cannot be written either.
        drop(self.text.take().map(BufWriter::into_parts));
    }

    fn write_text(&mut self, entry: &ResponseEntry) -> io::Result<()> {
        let Some(text) = &mut self.text else { return Ok(()) };
        let name = match entry.target {
            0 => "Collector",
            proxy => self.labels.get(usize::from(proxy) - 1).map_or("?", String::as_str),
        };
        let unix_s = (i128::from(entry.measurement.ended_ns()) + self.unix_offset_ns) / 1_000_000_000;
        writeln!(text, "{}", format_line(entry, name, u64::try_from(unix_s).unwrap_or(0), std::process::id()))
    }
}

fn row(entry: &ResponseEntry, start_ns: u64) -> ResponseRow {
    let (summary, measurement) = (&entry.summary, &entry.measurement);
    let us = |ns: Option<u64>| ns.map(|ns| i64::try_from(ns / 1_000).unwrap_or(i64::MAX));
    ResponseRow {
        request: summary.number,
        target: entry.target,
        place: entry.position,
        at_us: (measurement.sent_ns as i64).wrapping_sub(start_ns as i64).div_euclid(1_000),
        client: summary.client.to_string(),
        method: summary.method.clone(),
        version: version_name(summary.version).into(),
        url: summary.url.clone(),
        status: measurement.status,
        connect_us: us(measurement.connect_ns),
        first_byte_us: us(measurement.first_byte_ns),
        transfer_us: us(measurement.transfer_ns),
        head_bytes: measurement.head_bytes,
        body_bytes: measurement.body_bytes,
        checksum: entry.checksum.clone(),
        verdict: entry.verdict,
        header: entry.header.clone(),
        error: measurement.error,
    }
}

/// Formats a line as in figure 11.2 of the thesis: time (UTC), target, initial latency and transfer time in
/// `seconds:microseconds`, size, result of the comparison, client, whether it was a validation, version, method, URL.
fn format_line(entry: &ResponseEntry, name: &str, unix_s: u64, pid: u32) -> String {
    let (summary, measurement) = (&entry.summary, &entry.measurement);
    let validation = if summary.is_validation { "validation" } else { "non-validation" };
    format!(
        "{}:(pid={pid}):RESULT: {name}: {} {} {} {{{}}} {} {validation} {} {} {}",
        stamp(unix_s),
        latency(measurement),
        split(measurement.transfer_ns.unwrap_or(0)),
        measurement.body_bytes,
        result(entry),
        summary.client,
        version_name(summary.version),
        summary.method,
        summary.url,
    )
}

/// Formats as `200,200,OK,`; the Collector's own response is compared with nothing.
fn result(entry: &ResponseEntry) -> String {
    if entry.target == 0 {
        return "DUMMY,".into();
    }
    let status = |status: Option<u16>| status.map_or("-".into(), |status| status.to_string());
    let name = entry.verdict.name();
    let more = entry.header.clone().or(entry.measurement.error.map(|error| error.name().to_owned()));
    let more = more.map_or(String::new(), |more| format!("{more},"));
    format!("{},{},{name},{more}", status(entry.direct_status), status(entry.measurement.status))
}

/// Initial latency, which includes connecting.
fn latency(measurement: &Measurement) -> String {
    split(measurement.connect_ns.unwrap_or(0) + measurement.first_byte_ns.unwrap_or(0))
}

fn split(ns: u64) -> String {
    format!("{}:{}", ns / 1_000_000_000, ns % 1_000_000_000 / 1_000)
}

/// Formats as `Wed Jun 20 02:10:11 2001`.
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

    use super::super::message::RequestSummary;
    use super::*;

    fn entry(target: u16, verdict: Verdict) -> ResponseEntry {
        let summary = RequestSummary {
            number: 4,
            client: IpAddr::from([192, 168, 0, 2]),
            method: "GET".into(),
            version: Version::Http10,
            url: "http://www.cs.rutgers.edu/".into(),
            is_validation: false,
        };
        let measurement = Measurement {
            sent_ns: 7_000_000,
            status: Some(200),
            connect_ns: Some(1_000_000_000),
            first_byte_ns: Some(180_157_000),
            transfer_ns: Some(3_868_000),
            head_bytes: 100,
            body_bytes: 5083,
            error: None,
        };
        let (position, checksum, header) = (1, None, None);
        ResponseEntry {
            summary: summary.into(),
            target,
            position,
            measurement,
            checksum,
            verdict,
            header,
            direct_status: Some(200),
        }
    }

    #[test]
    fn a_line_has_the_form_of_the_documents_figure() {
        assert_eq!(
            format_line(&entry(2, Verdict::Ok), "Proxy-2", 993_003_011, 4630),
            "Wed Jun 20 02:10:11 2001:(pid=4630):RESULT: Proxy-2: 1:180157 0:3868 5083 {200,200,OK,} 192.168.0.2 \
             non-validation HTTP/1.0 GET http://www.cs.rutgers.edu/"
        );
        assert!(format_line(&entry(0, Verdict::NotCompared), "Collector", 0, 1).contains(" 5083 {DUMMY,} "));
        let header = ResponseEntry { header: Some("ETag".into()), ..entry(1, Verdict::HeaderMismatch) };
        assert!(format_line(&header, "a", 0, 1).contains("{200,200,HEADER_MISMATCH,ETag,}"));
        let mut lost = entry(1, Verdict::NoResponse);
        (lost.measurement.status, lost.measurement.error) = (None, Some(ResponseError::Reset));
        assert!(format_line(&lost, "a", 0, 1).contains("{200,-,NO_RESPONSE,reset,}"));
    }

    #[test]
    fn what_was_measured_is_found_in_both_files() {
        let dir = tempfile::tempdir().unwrap();
        let (writer, sender) = ResponseLog::start(dir.path(), true, vec!["a".into(), "b".into()]).unwrap();
        sender
            .send(LogCommand::Entry { entry: Box::new(entry(2, Verdict::Ok)), start_ns: 5_000_000 })
            .unwrap();
        sender.send(LogCommand::End).unwrap();
        writer.finish().unwrap();
        let rows = assay_record::spe::read_responses(&dir.path().join(TABLE)).unwrap();
        assert_eq!((rows.len(), rows[0].at_us, rows[0].connect_us), (1, 2000, Some(1_000_000)));
        assert!(std::fs::read_to_string(dir.path().join(TEXT)).unwrap().contains(":RESULT: b: 1:180157 "));
    }
}
