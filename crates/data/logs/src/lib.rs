//! Access logs of caching proxies: what they say of hits, misses, peers, times and URLs.
//!
//! [`mod@format`] compiles the format strings that proxies themselves are configured with (Squid, Traffic Server, varnishncsa,
//! nginx, HAProxy, Apache httpd, and Assay's own descriptions), and recognises their defaults. [`input`] reads plain and
//! compressed logs. [`analysis`] adds lines up in one pass and in memory that does not grow with the log ([`sketch`],
//! [`replay`]); [`document`] is what comes of it, [`terminal`] shows it, [`sheet()`] hands it on for a page,
//! and [`table`] keeps it as columns. [`mod@read`] hands on line by line. [`run`] holds the log of a run against what its robots counted.
//! [`size`] says how large a cache must be, from logs, traces and workloads.
//!
//! # How a line is read
//!
//! A line of a log becomes an `Access`: slices, no copies. Which of several fields says a quantity is decided once, where the format is compiled
//! (`format::choice`); JSON lines are read by their keys (`format::json`). What is no text in UTF-8 is known to `logs::input` alone, for traces too. The meaning of a proxy's result code (`TCP_MEM_HIT`, `EXPIRED`,
//! `<CACHE>`) is defined in one place, `logs::class`; a hit of a sibling or a parent is recognised by the hierarchy code. An analysis reads
//! every line once and its memory does not grow with the log: estimates are marked as such, with their error. DHR and BHR of a log are hits
//! over *all* requests of clients, because a log does not identify basic ones; queries of other caches (ICP, HTCP) are not requests.
//!
//! *Does not:* follow a log that is being written, judge a proxy, or send a request. Parsers take bytes and touch nothing
//! else.

pub mod access;
pub mod agent;
pub mod analysis;
pub mod class;
pub mod document;
pub mod error;
mod explain;
pub mod format;
pub mod hash;
pub mod input;
mod json_escape;
mod log_set;
mod not_logged;
pub mod read;
pub mod referrer;
pub mod remarks;
pub mod replay;
pub mod run;
mod sheet;
pub mod size;
pub mod sketch;
pub mod table;
pub mod terminal;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use analysis::{Analyser, AnalysisOptions};
use document::LogsDocument;
use error::LogsError;
pub use explain::explain;
use format::prefix::LinePrefix;
use format::{DetectError, DetectedFormats, Format, FormatTracker, SAMPLE_LINES, detect};
use input::Input;
pub use sheet::sheet;

pub use analysis::printable;
pub use log_set::{ReadSet, for_each_access};

/// Analyses logs. Files of a rotated set may come in any order: they are read in the order of their first requests.
/// Without a format that of each is recognised.
pub fn analyse(
    names: &[PathBuf],
    format: Option<&Format>,
    options: AnalysisOptions,
) -> Result<LogsDocument, LogsError> {
    let mut files = Vec::new();
    for name in names {
        files.extend(input::expand(name)?);
    }
    let files = by_first_request(without_duplicates(files), format)?;
    let mut analyser = Analyser::new(options);
    for path in &files {
        let mut input = Input::open(path)?;
        match detect_format(&mut input, format)? {
            Some(recognised) => analyser.read(&mut input, &recognised, format.is_some()),
            None if files.len() == 1 => return Err(LogsError::Empty { name: input.name }),
            // A set that was just rotated begins with an empty file.
            None => {}
        }
    }
    let document = analyser.finish();
    let lines = &document.lines;
    // Lines that were read and not counted are lines that could be read.
    if let Some(first) = document.malformed.first()
        && lines.malformed + lines.empty + lines.cut == lines.read
    {
        return Err(LogsError::NoLine {
            name: first.input.clone(),
            lines: lines.read - lines.empty,
            format: document.inputs.first().map(|input| input.format.clone()).unwrap_or_default(),
            line: first.line,
            text: first.text.clone(),
            why: first.reason.clone(),
        });
    }
    Ok(document)
}

/// Files without those that are named a second time, by another path or a pattern: their requests would count twice.
fn without_duplicates(files: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    files
        .into_iter()
        .filter(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())))
        .collect()
}

/// The format of a log; none when it is empty. One of which nothing could be read is not.
fn detect_format(input: &mut Input, format: Option<&Format>) -> Result<Option<DetectedFormats>, LogsError> {
    let name = input.name.clone();
    input.head();
    if let Some(what) = input.unreadable {
        return Err(LogsError::Unreadable { name, what });
    }
    if let Some(format) = format {
        return Ok(Some(use_format(input, format)));
    }
    let head = input.head();
    if head.iter().all(u8::is_ascii_whitespace) {
        return match input.read_error.take() {
            Some(source) => Err(LogsError::Read { path: name.into(), source }),
            None => Ok(None),
        };
    }
    let recognised = detect_behind_prefixes(input);
    let head = input.head();
    let recognised = recognised.map_err(|why| {
        let is_line = |line: &&[u8]| !line.is_empty() && line[0] != b'#';
        let first = head.split(|byte| *byte == b'\n').map(format::trim).find(is_line).unwrap_or_default();
        LogsError::Unrecognised { name, line: excerpt(first), why }
    })?;
    input.is_json = recognised.format.is_json();
    Ok(Some(recognised))
}

/// The formats of lines, behind the heads that nearly all of them have, if they are known there.
fn detect_behind_prefixes(input: &mut Input) -> Result<DetectedFormats, DetectError> {
    let Some(prefix) = LinePrefix::of(&sample(input.head())) else { return detect(input.head()) };
    let raw = input.head().to_vec();
    input.strip_prefixes(prefix);
    let behind = detect(input.head());
    if behind.is_ok() {
        return behind;
    }
    let with = detect(&raw);
    if with.is_ok() {
        input.restore_prefixes(&raw);
    }
    with.or(behind)
}

/// A format that somebody gave, for lines without their heads unless it reads more of them with these.
fn use_format(input: &mut Input, format: &Format) -> DetectedFormats {
    let read = |text: &[u8]| {
        let can_read =
            |line: &&&[u8]| format::read_line(format, line, &mut access::Access::default()).is_ok();
        sample(text).iter().filter(can_read).count()
    };
    if let Some(prefix) = LinePrefix::of(&sample(input.head())) {
        let raw = input.head().to_vec();
        input.strip_prefixes(prefix);
        if read(input.head()) < read(&raw) {
            input.restore_prefixes(&raw);
        }
    }
    DetectedFormats::given(&format.clone().with_ports(&sample(input.head())))
}

/// The first lines of a text.
fn sample(text: &[u8]) -> Vec<&[u8]> {
    text.split(|byte| *byte == b'\n').map(format::trim).take(SAMPLE_LINES).collect()
}

/// The beginning of a line, for a message.
fn excerpt(line: &[u8]) -> String {
    // What is no text is longer when it is written as such.
    analysis::printable(&line[..line.len().min(160)]).chars().take(160).collect()
}

/// Files by the time of their first request; those without one, and standard input, last.
fn by_first_request(files: Vec<PathBuf>, format: Option<&Format>) -> Result<Vec<PathBuf>, LogsError> {
    if files.len() < 2 {
        return Ok(files);
    }
    let mut dated = Vec::with_capacity(files.len());
    for path in files {
        let first = if path == Path::new("-") { None } else { first_time(&path, format)? };
        dated.push((first.unwrap_or(i64::MAX), path));
    }
    dated.sort();
    Ok(dated.into_iter().map(|(_, path)| path).collect())
}

fn first_time(path: &Path, format: Option<&Format>) -> Result<Option<i64>, LogsError> {
    let mut input = Input::open(path)?;
    let Some(recognised) = detect_format(&mut input, format)? else { return Ok(None) };
    let mut current = FormatTracker::new(&recognised);
    let time = |line: &[u8]| {
        let (line, mut access) = (format::trim(line), access::Access::default());
        if line.first().is_none_or(|byte| *byte == b'#') {
            // Lines after one that cannot be used cannot be read.
            let _ = current.read_remark(line);
            return None;
        }
        current.read(line, &mut access).ok()?;
        access.time_us
    };
    Ok(input.head().split(|byte| *byte == b'\n').find_map(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_log_of_which_nothing_can_be_read_is_not_called_empty() {
        let input =
            |bytes: &[u8]| Input::new("a.gz".into(), Box::new(std::io::Cursor::new(bytes.to_vec()))).unwrap();
        let corrupt = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xff\xff\xff\xff\xff\xff\xff\xff";
        assert!(
            matches!(detect_format(&mut input(corrupt), None), Err(LogsError::Read { path, .. }) if path.ends_with("a.gz"))
        );
        assert!(matches!(detect_format(&mut input(b""), None), Ok(None)));
    }
}
