//! What an analysis says, as one document. Everything that is shown anywhere is in it; its schema is
//! made from it.

use std::collections::BTreeMap;

use assay_measurement::ratios::ratio;
use schemars::JsonSchema;
use serde::Serialize;

use crate::class::Class;

/// Name and version of the document.
pub const SCHEMA: &str = "assay-logs/2";

/// The analysis of one or more access logs.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Document")]
pub struct LogsDocument {
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
    /// GETs with a 200 response; none: the log has no methods or no statuses.
    pub plain: Option<Figures>,
    /// Response times are whole multiples of this, in milliseconds: 0 stands for anything below it. None: there are none.
    pub response_resolution_ms: Option<f64>,
    /// Requests by what became of them.
    pub by_class: Vec<ClassFigures>,
    /// Requests in groups.
    pub groups: Vec<Grouping>,
    /// Width of a step of `time`, in milliseconds; none: the log has no times.
    pub every_ms: Option<f64>,
    /// Requests over time; steps without requests are left out.
    pub time: Vec<TimeStep>,
    /// The slots of every `over_time` in this document; none: the log has no times.
    pub slots: Option<Slots>,
    /// Requests by phase of the run; empty for a log that is not a run's.
    pub phases: Vec<Phase>,
    /// How requests were assigned to phases; none: there are no phases.
    pub phases_by: Option<PhasesBy>,
    /// Queries of other caches.
    pub peer_queries: PeerQueries,
    /// URLs that stand out.
    pub top: Top,
    /// URLs with a status of 400 and above; none: the log has no statuses.
    pub failed: Option<Failed>,
    /// User agents; none: the log does not have them.
    pub agents: Option<Agents>,
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
    /// What its lines do not say, and how its proxy would log it.
    pub not_logged: Vec<NotLogged>,
    /// Share of its first lines that fit, when the format was recognised; none: it was given.
    pub recognised: Option<f64>,
    /// `gzip`, `zstd`, `bzip2`, `xz`, or none.
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

/// Something that the lines of a log do not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NotLogged {
    /// What is missing: `outcome`, `duration`, `status`, `bytes`, `time`, `URL`, `user agent`, `referrer`.
    pub what: String,
    /// What is not known for that reason.
    pub unknown: String,
    /// What to add to the format, by the proxies that may have written the log; empty: that is not known.
    pub how: Vec<Notation>,
}

/// What a proxy calls a field of its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Notation {
    /// The proxy.
    pub proxy: String,
    /// The field, as its format has it.
    pub field: String,
}

/// How requests were assigned to the phases of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PhasesBy {
    /// Requests in the phase in which they were due, as their `X-Assay` says.
    pub due: u64,
    /// Requests in the phase in which the proxy logged them: their lines have no `X-Assay`.
    pub logged: u64,
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
    /// Queries of other caches.
    pub peer_queries: u64,
    /// Connections without a request.
    pub without_request: u64,
    /// Fetches of the cache from a backend, which are no requests of clients.
    pub fetches: u64,
    /// Requests outside the selected time.
    pub outside: u64,
    /// Requests for URLs that were not selected: in a run's log, those that no robot sent.
    pub other_urls: u64,
    /// Empty lines, and lines that begin with `#`.
    pub empty: u64,
    /// Lines that could not be read.
    pub malformed: u64,
    /// Last lines that are cut off: the log was still being written, or ends early. They are not malformed.
    pub cut: u64,
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
    /// Bytes of their responses, as the proxy counts them; none: the log does not say.
    pub bytes: Option<u64>,
    /// Requests that this cache served without help (joined fetches among them); none, as in all counts of outcomes: the log
    /// has no outcomes.
    pub local_hits: Option<u64>,
    /// Requests that a sibling cache had a response for.
    pub sibling_hits: Option<u64>,
    /// Requests that a parent cache had a response for.
    pub parent_hits: Option<u64>,
    /// Requests whose response was confirmed by the origin; no hits.
    pub revalidated: Option<u64>,
    /// Failed requests; in a log without outcomes, those with a status of 500 and above.
    pub errors: Option<u64>,
    /// Requests whose outcome the log does not say.
    pub unknown: u64,
    /// Document hit ratio: local, sibling and parent hits over requests whose outcome is known; none: it is of no request.
    pub dhr: Option<f64>,
    /// Byte hit ratio: bytes of those hits over bytes of those requests; none: it is not known.
    pub bhr: Option<f64>,
    /// Response times; none: the log does not say.
    pub response: Option<ResponseTimes>,
}

impl Figures {
    /// A count of outcomes over the requests whose outcome is known, as the document hit ratio is: its parts add up to it.
    pub fn share_of_known(&self, part: Option<u64>) -> Option<f64> {
        ratio(part?, self.requests.saturating_sub(self.unknown))
    }
}

/// Response times of a group.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Response")]
pub struct ResponseTimes {
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
    /// `outcome`, `hierarchy`, `peer`, `content-type`, `size`, `status`, `method`, `host` (without the port that the
    /// request's scheme has anyway: 80 of http, 443 of https), `agent-kind`, `agent`, `referrer-kind` or `referrer`.
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
    /// Requests in each of the document's `slots`; none: they are not counted over time.
    pub over_time: Option<Vec<u64>>,
}

/// Slots of time that counts `over_time` share.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Slots {
    /// When the first begins, Unix time in milliseconds.
    pub from_unix_ms: f64,
    /// Width of each, in milliseconds.
    pub every_ms: f64,
    /// How much of each the log covers, in milliseconds: the first and the last are often not complete.
    pub covered_ms: Vec<f64>,
}

/// One step in time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Step")]
pub struct TimeStep {
    /// When it began, Unix time in milliseconds.
    pub from_unix_ms: f64,
    /// How much of it the log covers, in milliseconds: the first and the last step are often not complete.
    pub covered_ms: f64,
    /// Its figures.
    pub figures: Figures,
    /// Requests by first digit of the status (`2xx`; `none`: no response); those that there were.
    pub by_status: BTreeMap<String, u64>,
    /// Requests by kind of user agent; empty when the log does not have it.
    pub by_agent_kind: BTreeMap<String, u64>,
    /// Requests by kind of referrer; empty when the log does not have it.
    pub by_referrer_kind: BTreeMap<String, u64>,
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

/// Queries of other caches (ICP, HTCP), which are no requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PeerQueries {
    /// Those whose response is a hit.
    pub hits: u64,
    /// All others.
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
    /// Those that were fetched most; empty when the log has no outcomes.
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
    /// Requests that were fetched (class `miss`): at least these; none: the log has no outcomes.
    pub misses: Option<u64>,
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
    /// URLs; none, as in all of these: the log does not have them.
    pub urls: Option<Count>,
    /// Hosts.
    pub hosts: Option<Count>,
    /// Clients.
    pub clients: Option<Count>,
    /// Texts of user agents.
    pub agents: Option<Count>,
    /// Referring sites.
    pub referring_sites: Option<Count>,
}

/// URLs with a status of 400 and above.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Failed {
    /// By status, ascending.
    pub by_status: Vec<FailedStatus>,
    /// A URL that is not listed can have had so many requests with one status at most, for want of memory; 0: all is exact.
    pub floor_requests: u64,
}

/// Requests with one status.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FailedStatus {
    /// The status.
    pub status: u16,
    /// All requests with it.
    pub requests: u64,
    /// URLs with most of them.
    pub urls: Vec<FailedUrl>,
}

/// One URL that got such a status.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FailedUrl {
    /// The URL, cut when it is long.
    pub url: String,
    /// Requests for it with this status: at least these.
    pub requests: u64,
    /// So many requests more it can have been.
    pub requests_error: u64,
    /// These requests in each of the document's `slots`; none: the log has no times.
    pub over_time: Option<Vec<u64>>,
}

/// User agents: what clients say they are, which nobody verifies.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Agents {
    /// Rules that tell bots, tools and browsers apart.
    pub rules: usize,
    /// The texts that most requests have.
    pub top: Vec<TopAgent>,
    /// Those of them that no rule knows.
    pub unknown: Vec<TopAgent>,
    /// A text that is not listed can have had so many requests at most, for want of memory; 0: all is exact.
    pub floor_requests: u64,
}

/// One text of a user agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TopAgent {
    /// The text, cut when it is long.
    pub text: String,
    /// `browser`, `bot`, `tool` or `unknown`.
    pub kind: String,
    /// What the rules call it.
    pub name: String,
    /// Requests: at least these.
    pub requests: u64,
    /// So many requests more it can have been.
    pub requests_error: u64,
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
    /// The caches, the ideal one first; empty when the log lacks URLs, methods or statuses. LRU caches need sizes, too.
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

impl LogsDocument {
    /// The schema of this document.
    pub fn json_schema() -> serde_json::Value {
        schemars::schema_for!(LogsDocument).to_value()
    }

    /// The document as text.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}
