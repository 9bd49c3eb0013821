//! A log, read line by line, for callers that need each request itself.

use std::path::Path;

use crate::access::Access;
use crate::error::LogsError;
use crate::format::{self, DetectedFormats, Format, FormatTracker};
use crate::input::{Input, LINE_BYTES, LineChunk};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lines that are not empty and no remarks.
    pub lines: u64,
    /// Of these, lines that could not be read.
    pub malformed: u64,
}

/// Hands every request of a log to `take`, in the order of its lines. Lines that cannot be read are counted and skipped.
pub fn for_each_request(
    path: &Path,
    format: &Format,
    mut take: impl FnMut(&Access<'_>),
) -> Result<LineCounts, LogsError> {
    let mut input = Input::open(path)?;
    let mut read = LineCounts::default();
    let mut current = FormatTracker::new(&DetectedFormats::given(format));
    while let Some(chunk) = input.next_chunk() {
        let (LineChunk::Lines(text) | LineChunk::Unended { line: text, .. }) = chunk else {
            read.lines += 1;
            read.malformed += 1;
            continue;
        };
        let mut rest = text;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let line = format::trim(&rest[..end]);
            rest = rest.get(end + 1..).unwrap_or_default();
            if line.is_empty() || (line[0] == b'#' && current.read_remark(line).is_ok()) {
                continue;
            }
            read.lines += 1;
            let mut access = Access::default();
            if line.len() <= LINE_BYTES && current.read(line, &mut access).is_ok() {
                take(&access);
            } else {
                read.malformed += 1;
            }
        }
    }
    match input.read_error.take() {
        Some(source) => Err(LogsError::Read { path: path.to_owned(), source }),
        None => Ok(read),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class::{self, Class};

    #[test]
    fn every_line_is_handed_on_with_the_name_of_its_request_and_broken_ones_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let text = "# remark\n1.5 3 a TCP_MEM_HIT/200 156 GET http://a/ 4-2-0-1-b\n\nrubbish\n\
                    2.5 4 a TCP_MISS/200 156 GET http://b/ -\n";
        std::fs::write(&path, text).unwrap();
        let format =
            Format::parse("{time-s} {duration-ms} {client} {outcome}/{status} {bytes} {method} {url} {xact}");
        let mut found = Vec::new();
        let read = for_each_request(&path, &format.unwrap(), |access| {
            found.push((access.xact.to_vec(), class::classify(access)));
        });
        assert_eq!(read.unwrap(), LineCounts { lines: 3, malformed: 1 });
        assert_eq!(found, [(b"4-2-0-1-b".to_vec(), Class::MemoryHit), (Vec::new(), Class::Miss)]);
    }
}
