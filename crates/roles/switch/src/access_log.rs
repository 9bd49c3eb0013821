//! Access log of the switch, one line per request.
//!
//! `combined` and `common` are the formats of Apache httpd. `switch` is `combined` followed by the class, the server, and the
//! microseconds until a server was selected, until the response began, and in total.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use crate::config::{AccessLogSettings, LogFormat};

/// Buffered bytes at which lines are written out; otherwise they are written once a second.
const FLUSH_BYTES: usize = 64 * 1024;

/// A request, for the log.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    pub client: &'a str,
    /// End of the response.
    pub at_unix_s: u64,
    /// Method, target and version, as sent.
    pub request: &'a [u8],
    /// The status of the response.
    pub status: u16,
    /// Bytes of its body.
    pub bytes: u64,
    /// `Referer`.
    pub referer: &'a [u8],
    /// `User-Agent`.
    pub agent: &'a [u8],
    pub class: &'a str,
    /// `None` for responses of the switch itself.
    pub server: Option<&'a str>,
    /// Microseconds until a server was selected, until the response began, and in total.
    pub times_us: [u64; 3],
}

#[derive(Debug)]
pub struct AccessLogWriter {
    file: File,
    format: LogFormat,
    lines: Vec<u8>,
    /// The last line written is incomplete.
    is_torn: bool,
}

impl AccessLogWriter {
    /// Opens a log for appending, and creates it if it is missing.
    pub fn open(log: &AccessLogSettings) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(&log.file)?;
        Ok(Self { file, format: log.format, lines: Vec::new(), is_torn: false })
    }

    /// Buffers a line; returns whether the buffer should be flushed.
    #[must_use]
    pub fn add(&mut self, line: &Line<'_>) -> bool {
        append(&mut self.lines, self.format, line);
        self.lines.len() >= FLUSH_BYTES
    }

    /// Writes out the buffer and returns the number of lines lost. A full disk costs lines, not requests.
    #[must_use]
    pub fn flush(&mut self) -> u64 {
        if self.lines.is_empty() {
            return 0;
        }
        let (written, is_torn) = write(&mut self.file, &self.lines, self.is_torn);
        self.is_torn = is_torn;
        let lost = memchr::memchr_iter(b'\n', &self.lines[written..]).count() as u64;
        self.lines.clear();
        lost
    }
}

/// Writes as much of `lines` as possible, after a line end if the last line on disk is torn. Returns the bytes written and
/// whether the last line is torn now.
fn write(to: &mut impl Write, lines: &[u8], mut is_torn: bool) -> (usize, bool) {
    if is_torn && to.write_all(b"\n").is_err() {
        return (0, true);
    }
    is_torn = false;
    let mut written = 0;
    while written < lines.len() {
        match to.write(&lines[written..]) {
            Ok(count @ 1..) => {
                written += count;
                is_torn = lines[written - 1] != b'\n';
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
        }
    }
    (written, is_torn)
}

fn append(out: &mut Vec<u8>, format: LogFormat, line: &Line<'_>) {
    out.extend_from_slice(line.client.as_bytes());
    out.extend_from_slice(b" - - [");
    append_time(out, line.at_unix_s);
    out.extend_from_slice(b"] \"");
    append_quoted(out, line.request);
    // Writing to a vector does not fail.
    let _ = write!(out, "\" {} {}", line.status, line.bytes);
    if format != LogFormat::Common {
        for text in [line.referer, line.agent] {
            out.extend_from_slice(b" \"");
            append_quoted(out, if text.is_empty() { b"-" } else { text });
            out.push(b'"');
        }
    }
    if format == LogFormat::Switch {
        let [queue, first, all] = line.times_us;
        let server = line.server.unwrap_or("-");
        let _ = write!(out, " {} {server} {queue} {first} {all}", line.class);
    }
    out.push(b'\n');
}

/// Formats as `10/Oct/2000:13:55:36 +0000`, from the date as HTTP writes it.
fn append_time(out: &mut Vec<u8>, unix_s: u64) {
    let mut date = [0; assay_http::date::DATE_BYTES];
    assay_http::date::write_date(unix_s, &mut date);
    // "Sun, 06 Nov 1994 08:49:37 GMT"
    for (part, after) in [(5..7, b'/'), (8..11, b'/'), (12..16, b':'), (17..25, b' ')] {
        out.extend_from_slice(&date[part]);
        out.push(after);
    }
    out.extend_from_slice(b"+0000");
}

/// Escapes like httpd what could end a field or a line.
fn append_quoted(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b' '..=b'~' => out.push(byte),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(format: LogFormat) -> String {
        let mut out = Vec::new();
        let line = Line {
            client: "192.0.2.1",
            at_unix_s: 784_111_777,
            request: b"GET /a\"b HTTP/1.1",
            status: 200,
            bytes: 12,
            referer: b"",
            agent: b"x\xff",
            class: "disk",
            server: Some("a"),
            times_us: [1, 20, 300],
        };
        append(&mut out, format, &line);
        String::from_utf8(out).expect("text")
    }

    /// Takes so many bytes, and then no more.
    struct Small(Vec<u8>, usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.1);
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0.extend_from_slice(&bytes[..count]);
            self.1 -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_that_is_torn_by_a_full_disk_tears_no_other() {
        let mut disk = Small(Vec::new(), 6);
        assert_eq!(write(&mut disk, b"one\ntwo\n", false), (6, true));
        assert_eq!(write(&mut disk, b"three\n", true), (0, true));
        disk.1 = 100;
        assert_eq!(write(&mut disk, b"four\n", true), (5, false));
        assert_eq!(String::from_utf8_lossy(&disk.0), "one\ntw\nfour\n");
    }

    #[test]
    fn lines_are_httpds_with_what_the_switch_knows_behind() {
        let common = r#"192.0.2.1 - - [06/Nov/1994:08:49:37 +0000] "GET /a\"b HTTP/1.1" 200 12"#;
        assert_eq!(line(LogFormat::Common), format!("{common}\n"));
        assert_eq!(line(LogFormat::Combined), format!("{common} \"-\" \"x\\xff\"\n"));
        assert_eq!(line(LogFormat::Switch), format!("{common} \"-\" \"x\\xff\" disk a 1 20 300\n"));
    }
}
