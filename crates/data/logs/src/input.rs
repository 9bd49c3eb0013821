//! Where lines come from. Files, plain or compressed, and standard input; in pieces of a fixed size.

use std::fs::File;
use std::io::{self, BufRead, Cursor, Read};
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use bzip2::read::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;

use crate::error::LogsError;
use crate::format::prefix::{LinePrefix, write_unescaped};
use crate::hash::hash;
use crate::json_escape;

/// The longest line that is read; a longer one is counted as malformed and skipped.
pub const LINE_BYTES: usize = 65_536;
const BUFFER_BYTES: usize = 4 * LINE_BYTES;
const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";
/// Bytes that tell what is no text.
const SIGNATURE_BYTES: usize = 6;
/// Memory limit of the xz decoder: `xz -9` needs a third of it, and a header can claim gigabytes.
const XZ_MEMORY_KB: u32 = 200 * 1024;

/// A log that is being read.
pub struct Input {
    /// Name; `-` is standard input.
    pub name: String,
    /// Compression: `gzip`, `zstd`, `bzip2`, `xz`, or none.
    pub compression: Option<&'static str>,
    /// Form of a file that is no text in UTF-8: `UTF-16`, `a zip archive`. Known once its [`head`](Self::head) was
    /// read.
    pub unreadable: Option<&'static str>,
    /// NULs before lines, which were skipped: a copy leaves them where the log was truncated under it.
    pub nuls: u64,
    /// Lines end in CR alone.
    pub ends_in_cr: bool,
    /// Lines are JSON: escapes of what needs none are taken out of them.
    pub is_json: bool,
    /// Prefix that a container runtime or syslog put before each line; it is removed.
    prefix: Option<LinePrefix>,
    /// Number of prefixes that were removed.
    pub(crate) prefixes: u64,
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    /// Position up to which prefixes are removed.
    stripped_to: usize,
    /// End of the last chunk's lines in the buffer: before `from`, if escapes were removed.
    lines_end: usize,
    ended: bool,
    has_begun: bool,
    /// NULs at its beginning may never end.
    is_device: bool,
    /// Hash of the first lines as they came out of it; none: they were not looked at.
    pub(crate) head_hash: Option<u64>,
    /// In the middle of a line that is too long.
    skipping: bool,
    /// Error that ended reading early.
    pub read_error: Option<io::Error>,
    /// Bytes that came out of it.
    pub bytes: u64,
}

/// Whole lines, or the beginning of one that is too long.
pub enum LineChunk<'a> {
    /// Lines, each with its end.
    Lines(&'a [u8]),
    /// The last line of a log, which has no end.
    Unended {
        /// The line, or the part of it that is there.
        line: &'a [u8],
        /// The log breaks off here for certain: reading stopped before its end.
        cut: bool,
    },
    /// The beginning of a line that is too long; the rest of it is skipped.
    TooLong(&'a [u8]),
    /// A line with NULs in it: parts of two lines stand in one.
    Torn(&'a [u8]),
}

impl Input {
    /// Opens a file; `-` is standard input. What it begins with says how it is compressed.
    pub fn open(path: &Path) -> Result<Self, LogsError> {
        let read = |source| LogsError::Read { path: path.to_owned(), source };
        if path == Path::new("-") {
            return Self::new("-".into(), Box::new(io::stdin().lock())).map_err(read);
        }
        let file = File::open(path).map_err(read)?;
        let is_device = file.metadata().is_ok_and(|file| file.file_type().is_char_device());
        let input = Self::new(path.display().to_string(), Box::new(file)).map_err(read)?;
        Ok(Self { is_device, ..input })
    }

    /// Data available on standard input, up to 8 KB. It is read again later.
    pub fn beginning_of_standard_input() -> io::Result<Self> {
        let waiting = io::stdin().lock().fill_buf()?.to_vec();
        Self::new("-".into(), Box::new(Cursor::new(waiting)))
    }
    pub fn new(name: String, mut reader: Box<dyn Read>) -> io::Result<Self> {
        let mut head = [0; 6];
        let mut length = 0;
        while length < head.len() {
            match reader.read(&mut head[length..])? {
                0 => break,
                more => length += more,
            }
        }
        let whole = Box::new(Cursor::new(head[..length].to_vec()).chain(reader));
        let (compression, reader): (_, Box<dyn Read>) = match &head {
            [0x1f, 0x8b, ..] => (Some("gzip"), Box::new(MultiGzDecoder::new(whole))),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                (Some("zstd"), Box::new(zstd::stream::read::Decoder::new(whole)?))
            }
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => (Some("bzip2"), Box::new(MultiBzDecoder::new(whole))),
            [0xfd, b'7', b'z', b'X', b'Z', 0] => {
                (Some("xz"), Box::new(XzReader::new_mem_limit(whole, true, XZ_MEMORY_KB)))
            }
            _ => (None, whole),
        };
        Ok(Self {
            name,
            compression,
            unreadable: None,
            nuls: 0,
            ends_in_cr: false,
            is_json: false,
            prefix: None,
            prefixes: 0,
            reader,
            buffer: vec![0; BUFFER_BYTES],
            from: 0,
            to: 0,
            stripped_to: 0,
            lines_end: 0,
            ended: false,
            has_begun: false,
            is_device: false,
            head_hash: None,
            skipping: false,
            read_error: None,
            bytes: 0,
        })
    }

    /// First lines, up to [`LINE_BYTES`], which are read again later.
    pub fn head(&mut self) -> &[u8] {
        while self.to - self.from < LINE_BYTES && !self.ended {
            self.fill();
            if !self.has_begun && (self.to >= SIGNATURE_BYTES || self.ended) {
                self.has_begun = true;
                let head = &self.buffer[..self.to];
                self.unreadable = other_format(head);
                self.from += if head.starts_with(UTF8_BOM) { UTF8_BOM.len() } else { 0 };
            }
            if self.has_begun {
                self.skip_nuls();
            }
            if self.is_device && self.nuls > BUFFER_BYTES as u64 {
                self.unreadable = Some("a device that gives NULs");
                self.ended = true;
            }
        }
        let head = &mut self.buffer[self.from..self.to];
        if !head.contains(&b'\n') && head.contains(&b'\r') {
            self.ends_in_cr = true;
            cr_to_lf(head);
        }
        let head = &self.buffer[self.from..self.to];
        self.head_hash.get_or_insert_with(|| hash(&head[..head.len().min(LINE_BYTES)]));
        head
    }

    /// Takes such heads out of all lines from now on.
    pub(crate) fn strip_prefixes(&mut self, prefix: LinePrefix) {
        self.prefix = Some(prefix);
        self.stripped_to = self.from;
        self.strip_line_prefixes();
    }

    /// Keeps them, after all: the lines that are there are these.
    pub(crate) fn restore_prefixes(&mut self, raw: &[u8]) {
        (self.prefix, self.prefixes) = (None, 0);
        self.to = self.from + raw.len();
        self.buffer[self.from..self.to].copy_from_slice(raw);
    }

    pub(crate) fn prefix(&self) -> Option<LinePrefix> {
        self.prefix
    }

    /// Takes the heads out of the lines that are there, and joins those that are parts of one. Where parts were joined, empty lines follow:
    /// the numbers of lines stay.
    fn strip_line_prefixes(&mut self) {
        let Some(prefix) = self.prefix else { return };
        let is_full = self.to - self.from == self.buffer.len();
        let raw = &self.buffer[self.stripped_to..self.to];
        let whole = if self.ended { raw.len() } else { memchr::memrchr(b'\n', raw).map_or(0, |at| at + 1) };
        let mut end = whole;
        // The rest of the last line may not be there yet.
        while !self.ended && end > 0 {
            let begin = memchr::memrchr(b'\n', &raw[..end - 1]).map_or(0, |at| at + 1);
            if !prefix.body(&raw[begin..end - 1]).is_some_and(|body| body.is_part) {
                break;
            }
            end = begin;
        }
        end = self.stripped_to + if end == 0 && is_full { whole } else { end };
        let (mut read, mut write) = (self.stripped_to, self.stripped_to);
        // The stream of parts that were written, and how many.
        let (mut parts_are_errors, mut parts) = (false, 0);
        while read < end {
            let line_end = memchr::memchr(b'\n', &self.buffer[read..end]).map_or(end, |at| read + at);
            let body = prefix.body(&self.buffer[read..line_end]);
            if parts > 0 && body.as_ref().is_none_or(|body| body.is_error != parts_are_errors) {
                write = self.end_line(write, parts);
                parts = 0;
            }
            let is_part = body.as_ref().is_some_and(|body| body.is_part) && line_end + 1 < end;
            match body {
                Some(body) => {
                    self.prefixes += 1;
                    parts_are_errors = body.is_error;
                    let range = read + body.range.start..read + body.range.end;
                    if prefix == LinePrefix::Docker {
                        write = write_unescaped(&mut self.buffer, range, write);
                    } else {
                        self.buffer.copy_within(range.clone(), write);
                        write += range.len();
                    }
                }
                None => {
                    self.buffer.copy_within(read..line_end, write);
                    write += line_end - read;
                }
            }
            if is_part {
                parts += 1;
            } else if line_end < end {
                write = self.end_line(write, parts + 1);
                parts = 0;
            }
            read = line_end + 1;
        }
        self.buffer.copy_within(end..self.to, write);
        self.to -= end - write;
        self.stripped_to = write;
    }

    /// Ends a line that was of so many; where the next one begins.
    fn end_line(&mut self, at: usize, lines: usize) -> usize {
        self.buffer[at..at + lines].fill(b'\n');
        at + lines
    }

    /// Skips NULs before the line that comes next.
    fn skip_nuls(&mut self) {
        let waiting = &self.buffer[self.from..self.to];
        if waiting.first() == Some(&0) {
            let nuls = waiting.iter().position(|byte| *byte != 0).unwrap_or(waiting.len());
            self.from += nuls;
            self.nuls += nuls as u64;
        }
    }

    /// The next bytes, for a format without lines; none at the end.
    pub fn next_bytes(&mut self) -> Option<&[u8]> {
        while self.from == self.to && !self.ended {
            self.fill();
        }
        let bytes = self.from..self.to;
        self.from = self.to;
        (!bytes.is_empty()).then(|| &self.buffer[bytes])
    }

    /// The next lines; none at the end.
    pub fn next_chunk(&mut self) -> Option<LineChunk<'_>> {
        loop {
            if !self.skipping {
                self.skip_nuls();
            }
            let mut ready = self.to;
            if self.prefix.is_some() && !self.skipping {
                self.strip_line_prefixes();
                ready = self.stripped_to;
            }
            let waiting = &self.buffer[self.from..ready];
            if self.skipping {
                let end = memchr::memchr(b'\n', waiting);
                self.from = end.map_or(self.to, |at| self.from + at + 1);
                self.stripped_to = self.from;
                self.skipping = end.is_none();
            } else if let Some(end) = memchr::memrchr(b'\n', waiting) {
                let whole = self.from..self.from + end + 1;
                let text = &self.buffer[whole.clone()];
                if memchr::memchr(0, text).is_none() {
                    self.from = whole.end;
                    return Some(LineChunk::Lines(self.unescaped(whole)));
                }
                let lines = match first_line_with_nul(text) {
                    Some(line) if line.start == 0 => {
                        let line = self.from..self.from + line.end;
                        self.from = line.end;
                        return Some(LineChunk::Torn(&self.buffer[line]));
                    }
                    Some(line) => whole.start..whole.start + line.start,
                    None => whole,
                };
                self.from = lines.end;
                self.nuls += nuls_before_lines(&self.buffer[lines.clone()]);
                return Some(LineChunk::Lines(self.unescaped(lines)));
            } else if self.to - self.from == self.buffer.len() {
                self.skipping = true;
                let head = self.from..self.from + 256;
                self.from = self.to;
                return Some(LineChunk::TooLong(&self.buffer[head]));
            } else if self.ended {
                let lines = self.from..self.to;
                self.from = self.to;
                let cut = self.read_error.is_some();
                return (!lines.is_empty()).then(|| LineChunk::Unended { line: self.unescaped(lines), cut });
            }
            if self.ended && self.from == self.to {
                return None;
            }
            if !self.ended {
                self.fill();
            }
        }
    }

    /// Takes back the end of the last piece, to be read again with as many lines behind it as there is room for.
    pub(crate) fn unread(&mut self, bytes: usize) {
        let lines = self.lines_end - bytes..self.lines_end;
        self.nuls -= nuls_before_lines(&self.buffer[lines.clone()]);
        self.from -= bytes;
        self.buffer.copy_within(lines, self.from);
        while self.to - self.from < self.buffer.len() && !self.ended {
            self.fill();
        }
    }

    /// Lines of the buffer; those of JSON without escapes, but for the ones that JSON needs.
    fn unescaped(&mut self, lines: Range<usize>) -> &[u8] {
        let text = &mut self.buffer[lines.clone()];
        let length = if self.is_json { json_escape::decode(text) } else { text.len() };
        self.lines_end = lines.start + length;
        &self.buffer[lines.start..self.lines_end]
    }

    fn fill(&mut self) {
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.stripped_to = self.stripped_to.saturating_sub(self.from);
            self.from = 0;
        }
        if self.to == self.buffer.len() {
            return;
        }
        match self.reader.read(&mut self.buffer[self.to..]) {
            Ok(0) => self.ended = true,
            Ok(more) => {
                if self.ends_in_cr {
                    cr_to_lf(&mut self.buffer[self.to..self.to + more]);
                }
                self.to += more;
                self.bytes += more as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // What came before is good: a compressed log that is still being written ends like this.
            Err(error) => {
                self.ended = true;
                self.read_error = Some(error);
            }
        }
    }
}

/// Form of a file by its signature, unless it is text in UTF-8.
fn other_format(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => "UTF-32",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "UTF-16",
        [1..=255, 0, 1..=255, 0, 1..=255, 0, ..] => "UTF-16LE",
        [0, 1..=255, 0, 1..=255, 0, 1..=255, ..] => "UTF-16BE",
        [b'P', b'K', 3, 4, ..] => "a zip archive",
        [0x04, 0x22, 0x4d, 0x18, ..] => "compressed with lz4",
        [b'P', b'A', b'R', b'1', ..] => "a Parquet file",
        _ => return None,
    })
}

/// Ends lines as they are expected to end.
fn cr_to_lf(text: &mut [u8]) {
    text.iter_mut().filter(|byte| **byte == b'\r').for_each(|byte| *byte = b'\n');
}

/// The first line with NULs in it, with its end.
fn first_line_with_nul(text: &[u8]) -> Option<Range<usize>> {
    let mut start = 0;
    text.split_inclusive(|byte| *byte == b'\n').find_map(|line| {
        let range = start..start + line.len();
        start = range.end;
        memchr::memchr(0, crate::format::trim(line)).map(|_| range)
    })
}

fn nuls_before_lines(text: &[u8]) -> u64 {
    let nuls = |line: &[u8]| line.iter().take_while(|byte| **byte == 0).count() as u64;
    text.split(|byte| *byte == b'\n').map(nuls).sum()
}

/// The files that a name stands for: itself, or all that fit a pattern with `*` and `?` in its last part.
pub fn expand(pattern: &Path) -> Result<Vec<PathBuf>, LogsError> {
    let none = || LogsError::NoFile { pattern: pattern.to_owned() };
    if pattern == Path::new("-") || pattern.exists() {
        return Ok(vec![pattern.to_owned()]);
    }
    let name = pattern.file_name().and_then(|name| name.to_str()).ok_or_else(none)?;
    if !name.contains(['*', '?']) {
        return Err(none());
    }
    let folder = pattern.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries =
        std::fs::read_dir(folder).map_err(|source| LogsError::Read { path: folder.to_owned(), source })?;
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| {
            entry.file_name().to_str().is_some_and(|own| matches_glob(name.as_bytes(), own.as_bytes()))
        })
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    if files.is_empty() { Err(none()) } else { Ok(files) }
}

/// True when a name fits a pattern.
fn matches_glob(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.first(), name.first()) {
        (None, None) => true,
        (Some(b'*'), _) => {
            matches_glob(&pattern[1..], name) || (!name.is_empty() && matches_glob(pattern, &name[1..]))
        }
        (Some(b'?'), Some(_)) => matches_glob(&pattern[1..], &name[1..]),
        (Some(one), Some(other)) => one == other && matches_glob(&pattern[1..], &name[1..]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines(bytes: Vec<u8>) -> (Vec<Vec<u8>>, usize, Option<io::Error>) {
        let mut input = Input::new("test".into(), Box::new(Cursor::new(bytes))).unwrap();
        let (mut lines, mut long) = (Vec::new(), 0);
        while let Some(chunk) = input.next_chunk() {
            match chunk {
                LineChunk::Unended { line, .. } => lines.push(line.to_vec()),
                LineChunk::Lines(text) => {
                    let text = text.strip_suffix(b"\n").unwrap_or(text);
                    lines.extend(text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
                }
                LineChunk::TooLong(_) | LineChunk::Torn(_) => long += 1,
            }
        }
        (lines, long, input.read_error)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn lines_are_the_same_plain_or_compressed_in_several_parts() {
        let (one, other) = (b"a\nb\n".repeat(70_000), b"c\n\nd".to_vec());
        let whole = [one.clone(), other.clone()].concat();
        let expected = lines(whole).0;
        assert_eq!(expected.len(), 140_003);
        assert_eq!(lines([gzip(&one), gzip(&other)].concat()).0, expected);
        let zstd = |text: &[u8]| zstd::stream::encode_all(text, 1).unwrap();
        assert_eq!(lines([zstd(&one), zstd(&other)].concat()).0, expected);
        assert_eq!(lines(Vec::new()).0.len(), 0);
    }

    #[test]
    fn lines_are_the_same_from_bzip2_and_xz_in_several_parts() {
        let (one, other) = (b"a\nb\n".repeat(70_000), b"c\n\nd".to_vec());
        let expected = lines([one.clone(), other.clone()].concat()).0;
        let bzip2 = |text: &[u8]| {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(lines([bzip2(&one), bzip2(&other)].concat()).0, expected);
        let xz = |text: &[u8]| {
            let options = lzma_rust2::XzOptions::with_preset(1);
            let mut encoder = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        assert_eq!(lines([xz(&one), xz(&other)].concat()).0, expected);
    }

    #[test]
    fn nuls_before_a_line_are_skipped_and_counted_whatever_their_number() {
        for nuls in [1, 100, 70_000, 270_000, 3 * BUFFER_BYTES + 7] {
            let hole = vec![0; nuls];
            let input = |text: Vec<u8>| Input::new("test".into(), Box::new(Cursor::new(text))).unwrap();
            let mut read = input([&hole[..], b"one\n", &hole[..], b"two\n", &hole[..]].concat());
            let mut found = Vec::new();
            read.head();
            while let Some(chunk) = read.next_chunk() {
                let LineChunk::Lines(text) = chunk else { panic!("{nuls}") };
                found
                    .extend(text.split(|byte| *byte == b'\n').map(|line| crate::format::trim(line).to_vec()));
            }
            found.retain(|line| !line.is_empty());
            assert_eq!(found, [b"one".to_vec(), b"two".to_vec()], "{nuls}");
            assert_eq!(read.nuls, 3 * nuls as u64);
        }
    }

    #[test]
    fn what_is_no_text_in_utf_8_is_named() {
        for (head, expected) in [
            (&b"\xff\xfei\0d\0\n\0"[..], Some("UTF-16")),
            (b"\xfe\xff\0i\0d", Some("UTF-16")),
            (b"i\0d\0,\0s\0", Some("UTF-16LE")),
            (b"\0i\0d\0,\0s", Some("UTF-16BE")),
            (b"\xff\xfe\0\0i\0\0\0", Some("UTF-32")),
            (b"PK\x03\x04 and more", Some("a zip archive")),
            (b"\xef\xbb\xbfid,size\n", None),
            (b"\0\0\0id,size\n", None),
            (b"a\n", None),
            (b"", None),
        ] {
            let mut input = Input::new("test".into(), Box::new(Cursor::new(head.to_vec()))).unwrap();
            input.head();
            assert_eq!(input.unreadable, expected, "{head:?}");
        }
    }

    #[test]
    fn a_device_that_gives_nuls_for_ever_is_named() {
        let mut input = Input::open(Path::new("/dev/zero")).unwrap();
        assert!(input.head().is_empty());
        assert_eq!(input.unreadable, Some("a device that gives NULs"));
    }

    #[test]
    fn lines_that_end_in_cr_alone_are_lines() {
        let mut input = Input::new("test".into(), Box::new(Cursor::new(b"a\rb\r".repeat(90_000)))).unwrap();
        assert!(input.head().starts_with(b"a\nb\n") && input.ends_in_cr);
        let mut count = 0;
        while let Some(LineChunk::Lines(text)) = input.next_chunk() {
            count += text.iter().filter(|byte| **byte == b'\n').count();
        }
        assert_eq!(count, 180_000);
    }

    #[test]
    fn escapes_are_taken_out_of_json_alone() {
        let text = br#"{"url":"\/a\u0026b"}"#;
        for (is_json, expected) in [(true, &br#"{"url":"/a&b"}"#[..]), (false, text)] {
            let mut input =
                Input::new("test".into(), Box::new(Cursor::new([text, &b"\n"[..]].concat()))).unwrap();
            input.is_json = is_json;
            let Some(LineChunk::Lines(line)) = input.next_chunk() else { panic!() };
            assert_eq!(String::from_utf8_lossy(line.trim_ascii_end()), String::from_utf8_lossy(expected));
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_ones_around_it_are_not() {
        let mut text = b"before\n".to_vec();
        text.extend(vec![b'x'; 3 * BUFFER_BYTES]);
        text.extend(b"\nafter\n");
        let (lines, long, _) = lines(text);
        assert_eq!((lines, long), (vec![b"before".to_vec(), b"after".to_vec()], 1));
    }

    #[test]
    fn a_compressed_log_that_is_cut_off_gives_what_it_has() {
        let whole = gzip(&b"some line that is there\n".repeat(10_000));
        let (lines, _, read_error) = lines(whole[..whole.len() / 2].to_vec());
        assert!(lines.len() > 100, "{}", lines.len());
        assert!(read_error.is_some());
    }

    /// Bytes that come in pieces of different lengths.
    struct Pieces {
        bytes: Vec<u8>,
        lengths: Vec<usize>,
        from: usize,
        reads: usize,
    }

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.lengths[self.reads % self.lengths.len()]
                .min(buffer.len())
                .min(self.bytes.len() - self.from);
            buffer[..length].copy_from_slice(&self.bytes[self.from..self.from + length]);
            (self.from, self.reads) = (self.from + length, self.reads + 1);
            Ok(length)
        }
    }

    /// Lines without their heads, by a plainer way.
    fn without_prefixes(raw: &[u8], prefix: LinePrefix) -> Vec<Vec<u8>> {
        let mut found: Vec<Vec<u8>> = Vec::new();
        // The stream of the parts at the end, and how many there are.
        let mut open: Option<(bool, usize)> = None;
        for line in
            raw.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line))
        {
            let body = prefix.body(line);
            let mut text = line.to_vec();
            if let Some(body) = &body {
                let end = if prefix == LinePrefix::Docker {
                    write_unescaped(&mut text, body.range.clone(), 0)
                } else {
                    0
                };
                text = if prefix == LinePrefix::Docker {
                    text[..end].to_vec()
                } else {
                    line[body.range.clone()].to_vec()
                };
            }
            let joins =
                body.as_ref().zip(open).is_some_and(|(body, (is_error, _))| body.is_error == is_error);
            match (joins, open) {
                (true, _) => found.last_mut().unwrap().extend(text),
                (false, Some((_, parts))) => {
                    found.extend(vec![Vec::new(); parts - 1]);
                    found.push(text);
                }
                (false, None) => found.push(text),
            }
            let parts = if joins { open.unwrap().1 } else { 0 };
            open = match body {
                Some(body) if body.is_part => Some((body.is_error, parts + 1)),
                _ => {
                    found.extend(vec![Vec::new(); parts]);
                    None
                }
            };
        }
        found
    }

    proptest::proptest! {
        #[test]
        fn heads_are_taken_out_however_the_bytes_come(
            kinds in proptest::collection::vec((0usize..8, 0usize..300), 1..400),
            lengths in proptest::collection::vec(1usize..9000, 1..9),
            is_docker in proptest::bool::ANY, has_end in proptest::bool::ANY, back in 0usize..400,
        ) {
            let prefix = if is_docker { LinePrefix::Docker } else { LinePrefix::Cri };
            let mut raw = Vec::new();
            for (kind, length) in kinds {
                let text = "ab c".repeat(length);
                let stream = ["stdout", "stderr"][kind % 2];
                let line = match (kind / 2, is_docker) {
                    (0, false) => format!("2026-01-02T03:04:05.6Z {stream} F {text}"),
                    (1, false) => format!("2026-01-02T03:04:05.6Z {stream} P {text}\r"),
                    (0, true) => format!("{{\"log\":\"{text}\\\"\\u00e9\\n\",\"stream\":\"{stream}\"}}"),
                    (1, true) => format!("{{\"log\":\"{text}\",\"stream\":\"{stream}\"}}"),
                    (2, _) => text,
                    _ => String::new(),
                };
                raw.extend(line.into_bytes());
                raw.push(b'\n');
            }
            if !has_end {
                raw.pop();
            }
            let expected = without_prefixes(&raw, prefix);
            let pieces = Pieces { bytes: raw, lengths, from: 0, reads: 0 };
            let mut input = Input::new("test".into(), Box::new(pieces)).unwrap();
            input.head();
            input.strip_prefixes(prefix);
            let (mut found, mut is_first) = (Vec::new(), true);
            while let Some(chunk) = input.next_chunk() {
                let (LineChunk::Lines(text) | LineChunk::Unended { line: text, .. }) = chunk else { panic!("of no other kind") };
                // Some of the first lines are taken back, and come again.
                let kept = text.split_inclusive(|byte| *byte == b'\n').take(if is_first { back } else { usize::MAX });
                let kept: usize = kept.map(<[u8]>::len).sum();
                let rest = text.len() - kept;
                let text = &text[..kept];
                found.extend(text.split_inclusive(|byte| *byte == b'\n').map(|line| {
                    line.strip_suffix(b"\n").unwrap_or(line).to_vec()
                }));
                is_first = false;
                if rest > 0 {
                    input.unread(rest);
                }
            }
            // Empty lines at the end keep the numbers of lines that do not come.
            let trimmed = |mut lines: Vec<Vec<u8>>| {
                while lines.last().is_some_and(Vec::is_empty) {
                    lines.pop();
                }
                lines
            };
            proptest::prop_assert_eq!(trimmed(found), trimmed(expected));
        }
    }

    #[test]
    fn patterns_fit_names() {
        assert!(
            matches_glob(b"access.log*", b"access.log.2.gz")
                && matches_glob(b"a?c", b"abc")
                && matches_glob(b"*", b"")
        );
        assert!(!matches_glob(b"access.log.?", b"access.log") && !matches_glob(b"*.gz", b"a.zst"));
    }
}
