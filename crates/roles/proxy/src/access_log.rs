//! What the proxy writes down of each request. A line, as [`ACCESS_LOG_FORMAT`] has it.
//!
//! Lines are kept until a kilobyte or some are there, or a second has passed. A file that cannot be written ends the log, and
//! nothing else: what the proxy does matters more than what it says of that.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use assay_http::head::RequestHead;
use assay_workload::mark::HEADER;

use crate::handling::{Handling, Source};
#[cfg(doc)]
use crate::spec::ACCESS_LOG_FORMAT;

const BUFFER_BYTES: usize = 1 << 16;

/// The log of a proxy.
#[derive(Debug)]
pub struct AccessLog {
    /// None: it could not be written any more.
    file: Option<BufWriter<File>>,
    line: Vec<u8>,
}

impl AccessLog {
    pub fn create(path: &Path) -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?);
        Ok(Self { file: Some(file), line: Vec::with_capacity(256) })
    }

    /// Writes what is kept.
    pub fn flush(&mut self) {
        if self.file.as_mut().is_some_and(|file| file.flush().is_err()) {
            self.file = None;
        }
    }

    /// Writes a line; `complete`: the client has got all of the response.
    pub fn write(&mut self, note: &Note, client: IpAddr, complete: bool) {
        let Some(file) = &mut self.file else { return };
        self.line.clear();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (word, route) = words(note.handling);
        let aborted = if complete { "" } else { "_ABORTED" };
        // Writing to a vector cannot fail.
        let _ = write!(
            self.line,
            "{}.{:06} {} {client} {word}{aborted}/{} {} ",
            now.as_secs(),
            now.subsec_micros(),
            note.began.elapsed().as_micros(),
            note.status,
            note.bytes
        );
        for (part, end) in [(&note.method, b' '), (&note.url, b' ')] {
            self.line.extend(part.iter().map(|byte| if byte.is_ascii_graphic() { *byte } else { b'?' }));
            self.line.push(end);
        }
        self.line.extend_from_slice(route.as_bytes());
        self.line.push(b' ');
        let xact: &[u8] = if note.xact.is_empty() { b"-" } else { &note.xact };
        self.line.extend(xact.iter().map(|byte| if byte.is_ascii_graphic() { *byte } else { b'?' }));
        self.line.push(b'\n');
        if file.write_all(&self.line).is_err() {
            self.file = None;
        }
    }
}

/// What is known of a request until it has its response.
#[derive(Debug)]
pub struct Note {
    began: Instant,
    method: Vec<u8>,
    url: Vec<u8>,
    xact: Vec<u8>,
    /// How it is handled; none: with an error of our own.
    pub handling: Option<Handling>,
    /// Status of the response; 0: there is none yet.
    pub status: u16,
    /// Bytes of its body.
    pub bytes: u64,
}

impl Note {
    /// Of a request for this URL.
    pub fn new(head: &RequestHead<'_>, url: Option<String>) -> Self {
        let xact = head.header(HEADER).unwrap_or_default();
        Self {
            began: Instant::now(),
            method: head.method.as_bytes().to_vec(),
            url: url.map_or_else(|| head.target.as_bytes().to_vec(), String::into_bytes),
            xact: xact.to_vec(),
            handling: None,
            status: 0,
            bytes: 0,
        }
    }
}

/// The outcome, and the server that the request was sent to, in Squid's terms where it has one.
fn words(handling: Option<Handling>) -> (&'static str, &'static str) {
    match handling {
        None | Some(Handling::NotRequested) => ("MISS", "NONE"),
        Some(Handling::Hit { .. }) => ("HIT", "NONE"),
        Some(Handling::OnError { .. }) => ("STALE", "DIRECT"),
        Some(Handling::Forwarded { is_confirmed, is_collapsed, source, .. }) => {
            let word = match (is_collapsed, is_confirmed) {
                (true, _) => "CF_HIT",
                (false, true) => "REVALIDATED",
                (false, false) => "MISS",
            };
            let route = match source {
                Source::Origin => "DIRECT",
                Source::Sibling => "SIBLING_HIT",
                Source::Parent => "PARENT",
            };
            (word, route)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::ACCESS_LOG_FORMAT;

    use super::*;
    use crate::handling::Why;

    #[test]
    fn a_line_says_what_became_of_a_request_whatever_stands_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let mut log = AccessLog::create(&path).unwrap();
        let text = b"GET / HTTP/1.1\r\nHost: a\r\nX-Assay: 1-2-0-3-b\r\n\r\n";
        let (head, _) = RequestHead::parse(text).unwrap().unwrap();
        let mut note = Note::new(&head, Some("http://a/\u{e9}".into()));
        (note.status, note.bytes) = (200, 7);
        note.handling = Some(Handling::Forwarded {
            why: Why::Miss,
            is_confirmed: false,
            is_stored: true,
            is_collapsed: false,
            source: Source::Sibling,
        });
        log.write(&note, IpAddr::from([127, 0, 0, 1]), true);
        (note.handling, note.xact) = (Some(Handling::Hit { ttl_s: 1 }), Vec::new());
        log.write(&note, IpAddr::from([127, 0, 0, 1]), false);
        log.flush();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(" 127.0.0.1 MISS/200 7 GET http://a/?? SIBLING_HIT 1-2-0-3-b"), "{text}");
        assert!(lines[1].ends_with(" HIT_ABORTED/200 7 GET http://a/?? NONE -"), "{text}");
        assert_eq!(lines[0].split(' ').count(), ACCESS_LOG_FORMAT.split(' ').count());
    }
}
