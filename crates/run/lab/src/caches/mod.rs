//! The access logs of a run's caches, held against what its robots saw.
//!
//! After a run: the logs are read ([`lines`]), the lines of one request are put together across caches, and beside the robots'
//! own log of it ([`mod@join`]). What comes of it goes into the run directory; nothing is judged here.

mod join;
pub(crate) mod lines;

use std::path::Path;

use assay_logs::error::LogsError;
use assay_logs::format::{Format, FormatError};
use assay_proxy::spec::ACCESS_LOG_FORMAT;
use assay_record::caches::{CACHES_SCHEMA, CacheLogs, LogRead};
use assay_record::dir::RunDir;
use assay_record::run::RunInfo;
use assay_record::xact_log::XactLog;
use assay_workload::cache_assignment::{Share, assign_caches};

use self::join::{PeerGraph, join};
use self::lines::{LogLine, MOST_JOINED, read};
use crate::description::Description;
use crate::plan::{RunPart, RunPlan, TargetChoice};

/// Reason why the access log of a cache was not read. Causes are part of the message, and so no `source` of the error.
#[derive(Debug, thiserror::Error)]
enum CacheLogError {
    #[error("it writes none that is known of")]
    None,
    #[error("{0}")]
    Format(FormatError),
    #[error("{0}")]
    Read(LogsError),
}

/// A log of a run, and how it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LogFile {
    /// The cache; empty where there is one proxy only.
    cache: String,
    /// The file, below `proxy/`; none: it writes none.
    path: Option<String>,
    /// Format of a line.
    format: String,
}

/// Name of a built-in cache's log, in the cache's own directory below `proxy/`.
pub const BUILTIN_LOG: &str = "access.log";

/// Path of a built-in cache's log, below `proxy/`.
pub(crate) fn builtin_log(cache: &str) -> String {
    format!("{cache}/{BUILTIN_LOG}")
}

/// Reads what the caches of a run have written down, and keeps what comes of it in the run directory; what stood in the way.
pub(crate) fn keep(plan: &RunPlan, dir: &RunDir, info: &RunInfo) -> Option<String> {
    let files = log_files(plan);
    if files.is_empty() || plan.part != RunPart::Whole {
        return None;
    }
    let logs = read_logs(dir, &files, &PeerGraph::of(&info.target.caches), &home_caches(plan));
    let unread = logs.logs.iter().filter(|log| !log.unread.is_empty());
    let unread: Vec<String> =
        unread.map(|log| format!("the access log of {} was not read: {}", title(log), log.unread)).collect();
    let written = dir.write_caches(&logs).err().map(|error| error.to_string());
    let all: Vec<String> = unread.into_iter().chain(written).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn title(log: &LogRead) -> &str {
    if log.cache.is_empty() { "the proxy" } else { &log.cache }
}

/// The logs that a run leaves.
fn log_files(plan: &RunPlan) -> Vec<LogFile> {
    let described = |cache: &str, description: &Description| {
        let log = description.access_log.as_ref();
        let name = log.and_then(|log| Path::new(&log.path).file_name()).map(|name| name.to_string_lossy());
        let below = |name: std::borrow::Cow<'_, str>| match cache {
            "" => name.into_owned(),
            cache => format!("{cache}/{name}"),
        };
        LogFile {
            cache: cache.to_owned(),
            path: name.map(below),
            format: log.map(|log| log.format.clone()).unwrap_or_default(),
        }
    };
    match &plan.target {
        TargetChoice::Described(description, _) if description.access_log.is_some() => {
            vec![described("", description)]
        }
        TargetChoice::Topology(topology) => {
            let all = topology.caches.iter().map(|cache| match &cache.description {
                Some(description) => described(&cache.name, description),
                None => LogFile {
                    cache: cache.name.clone(),
                    path: Some(builtin_log(&cache.name)),
                    format: ACCESS_LOG_FORMAT.to_owned(),
                },
            });
            all.collect()
        }
        _ => Vec::new(),
    }
}

/// The place of each robot's cache; empty: there is one only.
fn home_caches(plan: &RunPlan) -> Vec<u16> {
    let TargetChoice::Topology(topology) = &plan.target else { return Vec::new() };
    let shares: Vec<&Share> = topology.caches.iter().map(|cache| &cache.robots).collect();
    // What cannot be spread was refused before.
    assign_caches(&shares, &plan.workload).unwrap_or_default()
}

/// Reads all logs of a run and puts them together.
fn read_logs(dir: &RunDir, files: &[LogFile], circle: &PeerGraph, own: &[u16]) -> CacheLogs {
    let mut logs = CacheLogs { schema: CACHES_SCHEMA.into(), ..CacheLogs::default() };
    let mut lines: Vec<LogLine> = Vec::new();
    for (place, file) in (0..).zip(files) {
        let mut log = LogRead { cache: file.cache.clone(), ..LogRead::default() };
        let read = read_log(dir, file, place, &mut lines, &mut log);
        log.unread = read.err().map(|error| error.to_string()).unwrap_or_default();
        logs.logs.push(log);
    }
    if lines.len() > MOST_JOINED {
        let why = format!("there are more than {MOST_JOINED} requests; `assay logs` reads it by itself");
        logs.logs.iter_mut().for_each(|log| log.unread.clone_from(&why));
        return logs;
    }
    let xacts = XactLog::read(&dir.xacts_path()).ok();
    logs.joined = xacts.is_some();
    join(&mut logs, circle, own, lines, xacts.unwrap_or_default());
    logs
}

fn read_log(
    dir: &RunDir,
    file: &LogFile,
    place: u16,
    lines: &mut Vec<LogLine>,
    log: &mut LogRead,
) -> Result<(), CacheLogError> {
    let Some(path) = &file.path else { return Err(CacheLogError::None) };
    let format = Format::parse(&file.format).map_err(CacheLogError::Format)?;
    read(&dir.proxy_dir().join(path), &format, place, lines, log).map_err(CacheLogError::Read)
}
