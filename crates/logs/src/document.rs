//! What an analysis says, as one document. Everything that is shown anywhere is in it; its schema is
//! `docs/reference/logs.schema.json`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::class::Class;

/// Name and version of the document.
pub const SCHEMA: &str = "assay-logs/1";

/// The analysis of one or more access logs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Document {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of Assay.
    pub assay_version: String,
    /// The logs, in the order in which they were read.
    pub inputs: Vec<InputInfo>,
    /// What became of the lines.
    pub lines: Lines,
    /// The first lines that could not be read.
    pub malformed: Vec<MalformedLine>,
    /// Time of the earliest request, Unix time in milliseconds.
    pub first_unix_ms: Option<f64>,
    /// Time of the latest request.
    pub last_unix_ms: Option<f64>,
    /// All requests.
    pub all: Figures,
    /// GETs that were answered with 200.
    pub plain: Figures,
    /// Requests by what became of them.
    pub by_class: Vec<ClassFigures>,
    /// Requests in groups.
    pub groups: Vec<Grouping>,
    /// Width of a step of `time`, in milliseconds; none: the log has no times.
    pub every_ms: Option<f64>,
    /// Requests over time; steps without requests are left out.
    pub time: Vec<Step>,
    /// Requests by phase of the run; empty for a log that is not a run's.
    pub phases: Vec<Phase>,
    /// Questions of other caches.
    pub peer_queries: PeerQueries,
    /// URLs that stand out.
    pub top: Top,
    /// How many different ones there were.
    pub distinct: Distinct,
    /// What other caches would have made of the same requests.
    pub caches: Caches,
    /// What a reader should know, a sentence each.
    pub notes: Vec<String>,
    /// What robots counted against what the log says; none for a log that is not a run's.
    pub reconciliation: Option<Reconciliation>,
}

/// One log.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct InputInfo {
    /// Its name; `-` is standard input.
    pub name: String,
    /// Name of its format, or the format string.
    pub format: String,
    /// What that is.
    pub format_about: String,
    /// Share of its first lines that fit, when the format was recognised; none: it was given.
    pub recognised: Option<f64>,
    /// `gzip`, `zstd`, or none.
    pub compression: Option<String>,
    /// Bytes, uncompressed.
    pub bytes: u64,
    /// Lines.
    pub lines: u64,
    /// Lines of them that could not be read.
    pub malformed: u64,
    /// Why reading stopped before its end; none: it did not.
    pub broken: Option<String>,
}

/// What became of lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lines {
    /// All of them.
    pub read: u64,
    /// Bytes of all of them, uncompressed.
    pub bytes: u64,
    /// Requests that are counted.
    pub requests: u64,
    /// Questions of other caches.
    pub peer_queries: u64,
    /// Connections without a request.
    pub without_request: u64,
    /// Requests outside the selected time.
    pub outside: u64,
    /// Requests for URLs that were not selected: in a run's log, those that no robot sent.
    pub other_urls: u64,
    /// Empty lines, and lines that begin with `#`.
    pub empty: u64,
    /// Lines that could not be read.
    pub malformed: u64,
    /// Requests with a time before that of the line before them.
    pub backwards: u64,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MalformedLine {
    /// The log.
    pub input: String,
    /// Number of the line, from 1.
    pub line: u64,
    /// Why.
    pub reason: String,
    /// Its beginning, printable.
    pub text: String,
}

/// Counts and ratios of a group of requests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Figures {
    /// Requests.
    pub requests: u64,
    /// Bytes of their responses, as the proxy counts them.
    pub bytes: u64,
    /// Requests that this cache answered without help (joined fetches among them).
    pub local_hits: u64,
    /// Requests that a sibling cache had a response for.
    pub sibling_hits: u64,
    /// Requests that a parent cache had a response for.
    pub parent_hits: u64,
    /// Requests whose response was confirmed by the origin; no hits.
    pub revalidated: u64,
    /// Failed requests.
    pub errors: u64,
    /// Requests whose outcome the log does not say.
    pub unknown: u64,
    /// Document hit ratio: local, sibling and parent hits over requests; none: the log does not say.
    pub dhr: Option<f64>,
    /// Byte hit ratio: bytes of those over bytes; none: the log does not say.
    pub bhr: Option<f64>,
    /// Response times; none: the log does not say.
    pub response: Option<Response>,
}

/// Response times of a group.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Response {
    /// Requests with a time.
    pub count: u64,
    /// Mean in milliseconds, exact.
    pub mean_ms: f64,
    /// Median; percentiles are within 1.6 %.
    pub p50_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// 99.9th percentile.
    pub p999_ms: f64,
    /// Longest, exact.
    pub max_ms: f64,
}

/// Requests of one class.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClassFigures {
    /// The class.
    pub class: Class,
    /// Its name for people.
    pub name: String,
    /// Its figures.
    pub figures: Figures,
    /// Distribution of its response times: lower edge of a bucket in milliseconds, and requests in it.
    pub distribution: Vec<(f64, u64)>,
}

/// One way to group requests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Grouping {
    /// `outcome`, `hierarchy`, `peer`, `content-type`, `size`, `status`, `method` or `host` (without the port that the
    /// request's scheme has anyway: 80 of http, 443 of https).
    pub by: String,
    /// Title for people.
    pub title: String,
    /// The groups, those with most requests first (sizes and statuses in their own order).
    pub groups: Vec<Group>,
    /// Most requests that a group that is not shown, or is shown without its beginning, can miss; 0: all is exact.
    pub error_requests: u64,
}

/// One group of requests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Group {
    /// What its requests have in common.
    pub name: String,
    /// Its figures.
    pub figures: Figures,
}

/// One step in time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// When it began, Unix time in milliseconds.
    pub from_unix_ms: f64,
    /// Its figures.
    pub figures: Figures,
}

/// One phase of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// When it began, Unix time in milliseconds.
    pub from_unix_ms: f64,
    /// When it ended.
    pub to_unix_ms: f64,
    /// Its figures.
    pub figures: Figures,
}

/// Questions of other caches (ICP, HTCP), which are no requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PeerQueries {
    /// Answered with a hit.
    pub hits: u64,
    /// Answered with anything else.
    pub misses: u64,
    /// Bytes of responses.
    pub bytes: u64,
}

/// URLs that stand out.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Top {
    /// Those requested most.
    pub by_requests: Vec<TopUrl>,
    /// Those with most bytes.
    pub by_bytes: Vec<TopUrl>,
    /// Those that missed most.
    pub by_misses: Vec<TopUrl>,
    /// A URL that is not listed can have had so many requests at most, for want of memory; 0: all is exact.
    pub floor_requests: u64,
    /// The same for bytes.
    pub floor_bytes: u64,
    /// The same for misses.
    pub floor_misses: u64,
}

/// One URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TopUrl {
    /// The URL, cut when it is long.
    pub url: String,
    /// Requests: at least these.
    pub requests: u64,
    /// Bytes: at least these.
    pub bytes: u64,
    /// Requests that were no hit: at least these.
    pub misses: u64,
    /// So many requests more it can have been.
    pub requests_error: u64,
    /// So many bytes more.
    pub bytes_error: u64,
    /// So many misses more.
    pub misses_error: u64,
}

/// How many different ones there were.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Distinct {
    /// URLs.
    pub urls: Count,
    /// Hosts.
    pub hosts: Count,
    /// Clients.
    pub clients: Count,
}

/// A count that may be an estimate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Count {
    /// The count.
    pub count: f64,
    /// Its standard error, relative to it; 0: it is exact.
    pub standard_error: f64,
}

/// What other caches would have made of the same requests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Caches {
    /// The caches, the ideal one first.
    pub caches: Vec<Cache>,
    /// Share of the objects that were followed; 1: all.
    pub sampling_rate: f64,
    /// Objects that were followed.
    pub objects: u64,
    /// What was taken for granted, a sentence each.
    pub assumptions: Vec<String>,
}

/// One cache.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Cache {
    /// `ideal` or `lru`.
    pub kind: String,
    /// Its size; none: without bounds.
    pub size_bytes: Option<u64>,
    /// Its document hit ratio over all requests.
    pub dhr: Option<f64>,
    /// Its byte hit ratio over all bytes.
    pub bhr: Option<f64>,
    /// Standard error of its document hit ratio from sampling; 0: exact; none: not known.
    pub dhr_standard_error: Option<f64>,
}

/// What robots counted against what the log says.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Reconciliation {
    /// Counts side by side.
    pub rows: Vec<Reconciled>,
    /// Why they may differ, a sentence each.
    pub why: Vec<String>,
}

/// One count from both sides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Reconciled {
    /// What is counted.
    pub what: String,
    /// What robots (or origins) counted.
    pub run: f64,
    /// What the log says.
    pub log: f64,
    /// What the difference comes from.
    pub why: String,
}

impl Document {
    /// The schema of this document.
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(Document)
    }

    /// The document as text.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}
