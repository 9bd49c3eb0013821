//! The lines of a whole set of logs, read one by one in the order of its files, until it is enough.

use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::access::{Access, LineKind};
use crate::document::MalformedLine;
use crate::error::LogsError;
use crate::format::{DetectedFormats, Format, FormatTracker, trim};
use crate::input::{Input, LineChunk};
use crate::remarks::Remarks;
use crate::{by_first_request, detect_format, excerpt, input, without_duplicates};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadSet {
    /// Lines that hold something, comments not among them.
    pub lines: u64,
    /// Lines that are not of the format.
    pub malformed: u64,
    /// Files, in the order in which they were read.
    pub files: Vec<PathBuf>,
    /// Name of the format of the last of them.
    pub format: String,
    /// The first line that could not be read.
    pub first_malformed: Option<MalformedLine>,
    pub remarks: Remarks,
    /// Files that could not be read to their ends, and why: a compressed log that is still being written ends like this. What comes before
    /// that was handed over.
    pub broken: Vec<(PathBuf, String)>,
}

/// Hands over every request of a client in these logs that can be read, with the format it is written in, until it is told to stop.
/// Files of a rotated set may come in any order: they are read in the order of their first requests. Without a format
/// that of each is recognised. A file is read in pieces, whatever its size.
pub fn for_each_access(
    names: &[PathBuf],
    format: Option<&Format>,
    mut each: impl FnMut(&Access<'_>, &Format) -> ControlFlow<()>,
) -> Result<ReadSet, LogsError> {
    let mut files = Vec::new();
    for name in names {
        files.extend(input::expand(name)?);
    }
    let files = by_first_request(without_duplicates(files), format)?;
    let mut read = ReadSet::default();
    for path in &files {
        let mut input = Input::open(path)?;
        let Some(recognised) = detect_format(&mut input, format)? else {
            if files.len() == 1 {
                return Err(LogsError::Empty { name: input.name });
            }
            continue;
        };
        read.format.clone_from(&recognised.format.name);
        let flow = read_file(&mut input, &recognised, &mut read, &mut each);
        read.broken.extend(input.read_error.map(|why| (path.clone(), why.to_string())));
        read.files.push(path.clone());
        if flow.is_break() {
            return Ok(read);
        }
    }
    if let Some(first) = read.first_malformed.as_ref().filter(|_| read.malformed == read.lines) {
        return Err(LogsError::NoLine {
            name: first.input.clone(),
            lines: read.lines,
            format: read.format,
            line: first.line,
            text: first.text.clone(),
            why: first.reason.clone(),
        });
    }
    Ok(read)
}

fn read_file(
    input: &mut Input,
    recognised: &DetectedFormats,
    read: &mut ReadSet,
    each: &mut impl FnMut(&Access<'_>, &Format) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut current = FormatTracker::new(recognised);
    let name = input.name.clone();
    let mut number = 0;
    let mut flow = ControlFlow::Continue(());
    while flow.is_continue()
        && let Some(chunk) = input.next_chunk()
    {
        // Of a line that was cut, the end of a number may be missing.
        let text = match chunk {
            LineChunk::Lines(text) | LineChunk::Unended { line: text, cut: false } => text,
            LineChunk::Unended { line, cut: true } | LineChunk::TooLong(line) | LineChunk::Torn(line) => {
                number += 1;
                read.lines += 1;
                read.malformed(&name, number, line, || "it is cut off, too long, or has NULs in it".into());
                continue;
            }
        };
        let mut rest = text;
        while !rest.is_empty() && flow.is_continue() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let (line, ahead) = (trim(&rest[..end]), rest);
            let mut access = Access::default();
            let is_remark = line.is_empty() || (line[0] == b'#' && current.read_remark(line).is_ok());
            if !is_remark {
                match current.read(line, &mut access) {
                    Ok(()) => flow = read.hand_over(&access, current.format(), each),
                    Err(_) if current.should_reread(ahead) => break,
                    Err(wrong) => read.malformed(&name, number + 1, line, || current.explain(wrong.as_ref())),
                }
                read.lines += 1;
            }
            number += 1;
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        if !rest.is_empty() && flow.is_continue() {
            let back = rest.len();
            input.unread(back);
            input.is_json |= current.format().is_json();
        }
    }
    read.remarks.add(input, &current);
    flow
}

impl ReadSet {
    fn hand_over(
        &mut self,
        access: &Access<'_>,
        format: &Format,
        each: &mut impl FnMut(&Access<'_>, &Format) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match access.kind {
            LineKind::Request => return each(access, format),
            LineKind::Fetch => self.remarks.fetches += 1,
            LineKind::Connection => self.remarks.connections += 1,
        }
        ControlFlow::Continue(())
    }

    fn malformed(&mut self, input: &str, line: u64, text: &[u8], reason: impl FnOnce() -> String) {
        self.malformed += 1;
        if self.first_malformed.is_none() {
            let (input, text) = (input.to_owned(), excerpt(text));
            self.first_malformed = Some(MalformedLine { input, line, reason: reason(), text });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_in_the_order_of_a_rotated_set_until_it_is_enough() {
        let tmp = tempfile::tempdir().unwrap();
        let line = |second: u32, path: &str| {
            format!("192.0.2.7 - - [10/Oct/2025:13:55:{second:02} +0000] \"GET {path} HTTP/1.1\" 200 5\n")
        };
        let (old, new) = (tmp.path().join("access.log.1"), tmp.path().join("access.log"));
        std::fs::write(&new, line(40, "/c") + &line(41, "/d")).unwrap();
        std::fs::write(&old, line(30, "/a") + "nonsense\n" + &line(31, "/b")).unwrap();
        let read = |most: usize| {
            let mut seen = Vec::new();
            let read = for_each_access(&[new.clone(), old.clone()], None, |access, _| {
                seen.push(String::from_utf8(access.url.to_vec()).unwrap());
                if seen.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            (seen.concat(), read.unwrap())
        };
        let (seen, counted) = read(9);
        assert_eq!((seen.as_str(), counted.lines, counted.malformed), ("/a/b/c/d", 5, 1));
        assert_eq!(counted.files, [old.clone(), new.clone()]);
        assert_eq!(read(3).0, "/a/b/c");
    }

    #[test]
    fn lines_before_the_place_where_a_compressed_log_breaks_off_are_handed_over() {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("access.log.zst");
        let line = |number: u32| {
            format!("192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] \"GET /{number} HTTP/1.1\" 200 {number}\n")
        };
        // A second frame, of which the end is missing, and a line that continues in it.
        let first: String = (0..99).map(line).collect();
        let (first, last) = (first + &line(12345), line(7));
        let coded = |text: &str| zstd::stream::encode_all(text.as_bytes(), 1).unwrap();
        let second = coded(&last);
        std::fs::write(&file, [&coded(&first[..first.len() - 3])[..], &second[..second.len() / 2]].concat())
            .unwrap();
        let mut seen = 0;
        let read = for_each_access(std::slice::from_ref(&file), None, |_, _| {
            seen += 1;
            ControlFlow::Continue(())
        });
        let read = read.unwrap();
        assert_eq!((seen, read.lines, read.malformed), (99, 100, 1), "a line without its end is not trusted");
        assert_eq!(read.broken.iter().map(|(path, _)| path).collect::<Vec<_>>(), [&file]);
    }

    #[test]
    fn a_log_that_names_its_fields_is_read_by_these() {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("u_ex.log");
        let text = "#Software: Microsoft Internet Information Services 8.5\r\n#Version: 1.0\r\n\
                    #Fields: date time s-ip cs-method cs-uri-stem cs-uri-query c-ip cs(User-Agent) sc-status sc-bytes time-taken\r\n\
                    2025-10-10 13:55:36 10.0.0.1 GET /a - 192.0.2.7 Mozilla/5.0+(X11) 200 512 15\r\n\
                    2025-10-10 13:55:37 10.0.0.1 HEAD /b x=1&y=2 192.0.2.8 \"quoted agent\" 404 0 3\r\n";
        std::fs::write(&file, text).unwrap();
        let mut seen = Vec::new();
        let read = for_each_access(&[file], None, |access, _| {
            let texts = [access.method, access.url, access.query, access.client];
            let [method, url, query, client] = texts.map(|text| String::from_utf8_lossy(text).into_owned());
            seen.push((access.time_us, method, url, query, client, access.status, access.bytes));
            ControlFlow::Continue(())
        });
        let read = read.unwrap();
        assert_eq!((read.lines, read.malformed, read.format.as_str()), (2, 0, "w3c"));
        let at = 1_760_104_536_000_000;
        let row = |at, method: &str, url: &str, query: &str, client: &str, status, bytes| {
            (Some(at), method.into(), url.into(), query.into(), client.into(), status, bytes)
        };
        assert_eq!(seen[0], row(at, "GET", "/a", "", "192.0.2.7", 200, 512));
        assert_eq!(seen[1], row(at + 1_000_000, "HEAD", "/b", "x=1&y=2", "192.0.2.8", 404, 0));
    }
}
