//! The lines of a cache's log that are requests of this run, and what they say.

use std::path::Path;

use assay_logs::class::{self, Class};
use assay_logs::error::LogsError;
use assay_logs::format::Format;
use assay_logs::read::for_each_request;
use assay_record::caches::LogRead;
use assay_workload::XactId;
use assay_workload::mark::{RequestKind, RequestMark};

/// Logs of more requests than this are not put together: all of them would have to be in memory.
pub(crate) const MOST_JOINED: usize = 4_000_000;

/// One request of a robot, as one cache wrote it down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogLine {
    pub(crate) xact: XactId,
    /// The phase that it was due in.
    pub(crate) phase: u16,
    /// A plain GET.
    pub(crate) is_basic: bool,
    /// The place of the cache.
    pub(crate) cache: u16,
    /// Outcome of it there.
    pub(crate) class: Class,
    /// The status that the cache sent.
    pub(crate) status: u16,
    /// Bytes that it sent.
    pub(crate) bytes: u64,
    /// Time that it took there.
    pub(crate) duration_us: Option<u64>,
}

/// Reads a log; queries by datagram are no requests.
pub(crate) fn read(
    path: &Path,
    format: &Format,
    cache: u16,
    lines: &mut Vec<LogLine>,
    log: &mut LogRead,
) -> Result<(), LogsError> {
    let mut foreign = 0;
    let counted = for_each_request(path, format, |access| {
        let class = class::classify(access);
        match RequestMark::parse(access.xact) {
            // Too many are too many, however many there are.
            Some(_) if lines.len() > MOST_JOINED => {}
            Some(mark) if class.is_request() => lines.push(LogLine {
                xact: mark.xact,
                phase: mark.phase,
                is_basic: mark.kind == RequestKind::Basic,
                cache,
                class,
                status: access.status,
                bytes: access.bytes,
                duration_us: access.duration_us,
            }),
            _ => foreign += 1,
        }
    })?;
    (log.lines, log.malformed, log.foreign) = (counted.lines, counted.malformed, foreign);
    Ok(())
}
