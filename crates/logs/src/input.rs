//! Where lines come from. Files, plain or compressed, and standard input; in pieces of a fixed size.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

use crate::error::LogsError;

/// The longest line that is read; a longer one is counted as malformed and skipped.
pub const LINE_BYTES: usize = 65_536;
const BUFFER_BYTES: usize = 4 * LINE_BYTES;

/// A log that is being read.
pub struct Input {
    /// Its name, `-` for standard input.
    pub name: String,
    /// How it is compressed: `gzip`, `zstd`, or none.
    pub compression: Option<&'static str>,
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    ended: bool,
    /// In the middle of a line that is too long.
    skipping: bool,
    /// Why reading stopped before the end.
    pub broken: Option<io::Error>,
    /// Bytes that came out of it.
    pub bytes: u64,
}

/// Whole lines, or the beginning of one that is too long.
pub enum Piece<'a> {
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
}

impl Input {
    /// Opens a file; `-` is standard input. What it begins with says how it is compressed.
    pub fn open(path: &Path) -> Result<Self, LogsError> {
        let read = |source| LogsError::Read { path: path.to_owned(), source };
        if path == Path::new("-") {
            return Self::new("-".into(), Box::new(io::stdin().lock())).map_err(read);
        }
        let file = File::open(path).map_err(read)?;
        Self::new(path.display().to_string(), Box::new(file)).map_err(read)
    }

    /// Reads from anything.
    pub fn new(name: String, mut reader: Box<dyn Read>) -> io::Result<Self> {
        let mut head = [0; 4];
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
            [0x28, 0xb5, 0x2f, 0xfd] => (Some("zstd"), Box::new(zstd::stream::read::Decoder::new(whole)?)),
            _ => (None, whole),
        };
        Ok(Self {
            name,
            compression,
            reader,
            buffer: vec![0; BUFFER_BYTES],
            from: 0,
            to: 0,
            ended: false,
            skipping: false,
            broken: None,
            bytes: 0,
        })
    }

    /// Its first lines, up to [`LINE_BYTES`], which are read again later.
    pub fn head(&mut self) -> &[u8] {
        while self.to < LINE_BYTES && !self.ended {
            self.fill();
        }
        &self.buffer[self.from..self.to]
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
    pub fn next_piece(&mut self) -> Option<Piece<'_>> {
        loop {
            let waiting = &self.buffer[self.from..self.to];
            if self.skipping {
                let end = memchr::memchr(b'\n', waiting);
                self.from = end.map_or(self.to, |at| self.from + at + 1);
                self.skipping = end.is_none();
            } else if let Some(end) = memchr::memrchr(b'\n', waiting) {
                let lines = self.from..self.from + end + 1;
                self.from = lines.end;
                return Some(Piece::Lines(&self.buffer[lines]));
            } else if waiting.len() == self.buffer.len() {
                self.skipping = true;
                let head = self.from..self.from + 256;
                self.from = self.to;
                return Some(Piece::TooLong(&self.buffer[head]));
            } else if self.ended {
                let lines = self.from..self.to;
                self.from = self.to;
                let cut = self.broken.is_some();
                return (!lines.is_empty()).then(|| Piece::Unended { line: &self.buffer[lines], cut });
            }
            if self.ended && self.from == self.to {
                return None;
            }
            if !self.ended {
                self.fill();
            }
        }
    }

    fn fill(&mut self) {
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        if self.to == self.buffer.len() {
            return;
        }
        match self.reader.read(&mut self.buffer[self.to..]) {
            Ok(0) => self.ended = true,
            Ok(more) => {
                self.to += more;
                self.bytes += more as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // What came before is good: a compressed log that is still being written ends like this.
            Err(error) => {
                self.ended = true;
                self.broken = Some(error);
            }
        }
    }
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
        .filter(|entry| entry.file_name().to_str().is_some_and(|own| fits(name.as_bytes(), own.as_bytes())))
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    if files.is_empty() { Err(none()) } else { Ok(files) }
}

/// True when a name fits a pattern.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.first(), name.first()) {
        (None, None) => true,
        (Some(b'*'), _) => fits(&pattern[1..], name) || (!name.is_empty() && fits(pattern, &name[1..])),
        (Some(b'?'), Some(_)) => fits(&pattern[1..], &name[1..]),
        (Some(one), Some(other)) => one == other && fits(&pattern[1..], &name[1..]),
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
        while let Some(piece) = input.next_piece() {
            match piece {
                Piece::Unended { line, .. } => lines.push(line.to_vec()),
                Piece::Lines(text) => {
                    let text = text.strip_suffix(b"\n").unwrap_or(text);
                    lines.extend(text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
                }
                Piece::TooLong(_) => long += 1,
            }
        }
        (lines, long, input.broken)
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
        let (lines, _, broken) = lines(whole[..whole.len() / 2].to_vec());
        assert!(lines.len() > 100, "{}", lines.len());
        assert!(broken.is_some());
    }

    #[test]
    fn patterns_fit_names() {
        assert!(fits(b"access.log*", b"access.log.2.gz") && fits(b"a?c", b"abc") && fits(b"*", b""));
        assert!(!fits(b"access.log.?", b"access.log") && !fits(b"*.gz", b"a.zst"));
    }
}
