//! Access log of the proxy, a line per request in the format [`ACCESS_LOG_FORMAT`].
//!
//! Lines are buffered for up to a second. A file that cannot be written ends the log, and nothing else: serving requests matters
//! more than logging them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use assay_http::head::RequestHead;
use assay_workload::mark::HEADER;

use crate::cache_status::{CacheStatus, ResponseSource};
#[cfg(doc)]
use crate::spec::ACCESS_LOG_FORMAT;

const BUFFER_BYTES: usize = 1 << 16;

#[derive(Debug)]
pub struct AccessLog {
    /// `None` after a failed write.
    file: Option<BufWriter<File>>,
    line: Vec<u8>,
}

impl AccessLog {
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?);
        Ok(Self { file: Some(file), line: Vec::with_capacity(256) })
    }

    /// Writes out buffered lines.
    pub fn flush(&mut self) {
        if self.file.as_mut().is_some_and(|file| file.flush().is_err()) {
            self.file = None;
        }
    }

    /// Writes a line; `complete`: the client received the whole response.
    pub fn write(&mut self, entry: &LogEntry, client: IpAddr, complete: bool) {
        let Some(file) = &mut self.file else { return };
        self.line.clear();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (result_code, hierarchy_code) = result_codes(entry.cache_status);
        let aborted = if complete { "" } else { "_ABORTED" };
        // Writing to a vector cannot fail.
        let _ = write!(
            self.line,
            "{}.{:06} {} {client} {result_code}{aborted}/{} {} ",
            now.as_secs(),
            now.subsec_micros(),
            entry.began.elapsed().as_micros(),
            entry.status,
            entry.bytes
        );
        for (part, end) in [(&entry.method, b' '), (&entry.url, b' ')] {
            self.line.extend(part.iter().map(|byte| if byte.is_ascii_graphic() { *byte } else { b'?' }));
            self.line.push(end);
        }
        self.line.extend_from_slice(hierarchy_code.as_bytes());
        self.line.push(b' ');
        let xact: &[u8] = if entry.xact.is_empty() { b"-" } else { &entry.xact };
        self.line.extend(xact.iter().map(|byte| if byte.is_ascii_graphic() { *byte } else { b'?' }));
        self.line.push(b'\n');
        if file.write_all(&self.line).is_err() {
            self.file = None;
        }
    }
}

/// Log entry of a request under way.
#[derive(Debug)]
pub struct LogEntry {
    began: Instant,
    method: Vec<u8>,
    url: Vec<u8>,
    xact: Vec<u8>,
    /// `None` for errors of our own.
    pub cache_status: Option<CacheStatus>,
    /// 0: no response yet.
    pub status: u16,
    pub bytes: u64,
}

impl LogEntry {
    /// Starts an entry; without `url`, the target is logged as received.
    pub fn new(head: &RequestHead<'_>, url: Option<String>) -> Self {
        let xact = head.header(HEADER).unwrap_or_default();
        Self {
            began: Instant::now(),
            method: head.method.as_bytes().to_vec(),
            url: url.map_or_else(|| head.target.as_bytes().to_vec(), String::into_bytes),
            xact: xact.to_vec(),
            cache_status: None,
            status: 0,
            bytes: 0,
        }
    }
}

/// Result code and hierarchy code, in Squid's terms where it has one.
fn result_codes(cache_status: Option<CacheStatus>) -> (&'static str, &'static str) {
    match cache_status {
        None | Some(CacheStatus::NotForwarded) => ("MISS", "NONE"),
        Some(CacheStatus::Hit { .. }) => ("HIT", "NONE"),
        Some(CacheStatus::StaleOnError { .. }) => ("STALE", "DIRECT"),
        Some(CacheStatus::Forwarded { is_confirmed, is_collapsed, source, .. }) => {
            let result_code = match (is_collapsed, is_confirmed) {
                (true, _) => "CF_HIT",
                (false, true) => "REVALIDATED",
                (false, false) => "MISS",
            };
            let hierarchy_code = match source {
                ResponseSource::Origin => "DIRECT",
                ResponseSource::Sibling => "SIBLING_HIT",
                ResponseSource::Parent => "PARENT",
            };
            (result_code, hierarchy_code)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::ACCESS_LOG_FORMAT;

    use super::*;
    use crate::cache_status::ForwardReason;

    #[test]
    fn a_line_says_what_became_of_a_request_whatever_stands_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let mut log = AccessLog::create(&path).unwrap();
        let text = b"GET / HTTP/1.1\r\nHost: a\r\nX-Assay: 1-2-0-3-b\r\n\r\n";
        let (head, _) = RequestHead::parse(text).unwrap().unwrap();
        let mut entry = LogEntry::new(&head, Some("http://a/\u{e9}".into()));
        (entry.status, entry.bytes) = (200, 7);
        entry.cache_status = Some(CacheStatus::Forwarded {
            reason: ForwardReason::Miss,
            is_confirmed: false,
            is_stored: true,
            is_collapsed: false,
            source: ResponseSource::Sibling,
        });
        log.write(&entry, IpAddr::from([127, 0, 0, 1]), true);
        (entry.cache_status, entry.xact) = (Some(CacheStatus::Hit { ttl_s: 1 }), Vec::new());
        log.write(&entry, IpAddr::from([127, 0, 0, 1]), false);
        log.flush();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(" 127.0.0.1 MISS/200 7 GET http://a/?? SIBLING_HIT 1-2-0-3-b"), "{text}");
        assert!(lines[1].ends_with(" HIT_ABORTED/200 7 GET http://a/?? NONE -"), "{text}");
        assert_eq!(lines[0].split(' ').count(), ACCESS_LOG_FORMAT.split(' ').count());
    }
}
