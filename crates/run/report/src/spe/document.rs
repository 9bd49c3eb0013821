//! The JSON document: what `assay spe report --json` prints and `summary.json` of an evaluation holds.
//!
//! Null says that there is nothing to measure. Fields are only ever added.

use std::collections::BTreeMap;

use assay_record::spe::{CollectorSettings, Ended, Totals, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::compare::document::Conclusion;
pub use crate::document::Percentiles;

use crate::chart::Charts;

/// Version of the document.
pub const EVALUATION_SCHEMA: &str = "assay-spe/1";

/// An evaluation of proxies on the same requests of the same clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Assay evaluation")]
pub struct Evaluation {
    /// `assay-spe/1`.
    pub schema: String,
    /// The directory.
    pub evaluation: String,
    /// Version of Assay that measured.
    pub version: String,
    /// When it began, Unix time in milliseconds.
    pub started_unix_ms: i64,
    /// How long it was, in seconds; null: its end was never written.
    pub duration_s: Option<f64>,
    /// How it ended; null: its end was never written.
    pub ended: Option<Ended>,
    /// Something is missing: its end, a table, or responses.
    pub partial: bool,
    /// Clients and proxies spoke as to a forward proxy.
    pub forward: bool,
    /// When proxies got requests: `after` the Collector's response, or `at_once`.
    pub when: String,
    /// In which order: `permuted` for each request, or `fixed`.
    pub turns: String,
    /// Seed of the order.
    pub seed: u64,
    /// How the Collector was set.
    pub collector: CollectorSettings,
    /// The conclusions, a question and a text each.
    pub verdict: Vec<Conclusion>,
    /// What a reader should know.
    pub warnings: Vec<String>,
    /// Requests of clients that are compared (tunnels are not).
    pub requests: u64,
    /// Tunnels: passed through, never compared.
    pub tunnels: u64,
    /// `direct` first, then the proxies.
    pub targets: Vec<TargetFigures>,
    /// Every two targets, request by request.
    pub differences: Vec<TargetDifference>,
    /// By place in the order in which proxies got requests.
    pub places: Vec<OrderPlace>,
    /// What was not as the Collector's response, or never came, grouped; the most frequent of each target first.
    pub differing: Vec<MismatchGroup>,
    /// What the Collector and the Multiplier counted.
    pub totals: Totals,
    /// What the page draws.
    #[serde(skip)]
    pub(crate) charts: Charts,
}

/// A number and its 95 % interval; null: too little was seen for one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Estimate")]
pub struct IntervalEstimate {
    /// The number.
    pub value: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end of the interval.
    pub high: Option<f64>,
}

/// Everything about one target.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFigures {
    /// Its label.
    pub label: String,
    /// Where it was; null: the Collector.
    pub address: Option<String>,
    /// Requests went to it over TLS.
    #[serde(default)]
    pub tls: bool,
    /// What it says it is.
    pub software: Option<String>,
    /// Its settings, where Assay started it.
    pub settings: BTreeMap<String, String>,
    /// Requests sent to it.
    pub requests: u64,
    /// Requests that were never sent to it, because too much was waiting for it.
    pub dropped: u64,
    /// Its responses that could not be compared, through Assay's own bound: the Collector had not kept what the client got. They
    /// are left out of every other figure but `requests`.
    #[serde(default)]
    pub not_kept: u64,
    /// Its responses to requests whose client left before it had its own: there is nothing to hold their times and bytes against, and they
    /// are left out of these. Of direct: such requests.
    #[serde(default)]
    pub cancelled: u64,
    /// Whole responses.
    pub delivered: u64,
    /// Whole responses relative to those of direct.
    pub delivered_ratio: Option<IntervalEstimate>,
    /// Bytes of bodies that it sent to the Multiplier.
    pub bytes_sent: u64,
    /// Those relative to the Collector's own.
    pub bytes_sent_ratio: Option<f64>,
    /// Bytes of bodies that it received from the Collector; null: nobody counted.
    pub bytes_received: Option<u64>,
    /// Those relative to what direct received: the smaller, the more came from its cache.
    pub bytes_received_ratio: Option<f64>,
    /// One minus that: the share of bandwidth that it saved; negative where it fetched more than was requested.
    pub bandwidth_saved: Option<f64>,
    /// Requests that it sent to the Collector; null: nobody counted.
    pub requests_received: Option<u64>,
    /// Those relative to direct's.
    pub requests_received_ratio: Option<f64>,
    /// One minus that: the share of requests that it answered without the Collector; negative where it sent more than came. A
    /// proxy that validates everything it has saves bytes and no requests.
    pub requests_saved: Option<f64>,
    /// Responses that were held against the Collector's.
    pub compared: u64,
    /// The share of them that was the same.
    pub matching: Option<IntervalEstimate>,
    /// The share of them that was not.
    pub not_matching: Option<IntervalEstimate>,
    /// How many of its responses got which verdict.
    pub verdicts: BTreeMap<String, u64>,
    /// How many responses did not come, by error.
    pub errors: BTreeMap<String, u64>,
    /// Response times of whole responses: connection, first byte and transfer.
    pub response_ms: ResponseTimes,
    /// Time to connect, where a connection was made.
    pub connect_ms: Percentiles,
    /// From sending the request to the first byte.
    pub first_byte_ms: Percentiles,
    /// From the first byte to the last.
    pub transfer_ms: Percentiles,
    /// How late the latest chunk was that the Collector replayed for it, in microseconds; null: nobody counted.
    pub replay_late_max_us: Option<u64>,
}

/// Response times in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Times")]
pub struct ResponseTimes {
    /// How many there are.
    pub count: u64,
    /// Mean.
    pub mean: Option<IntervalEstimate>,
    /// Median.
    pub p50: Option<IntervalEstimate>,
    /// 90th percentile.
    pub p90: Option<IntervalEstimate>,
    /// 95th percentile.
    pub p95: Option<IntervalEstimate>,
    /// 99th percentile.
    pub p99: Option<IntervalEstimate>,
    /// The longest.
    pub max: Option<f64>,
}

/// Two targets, paired by request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Difference")]
pub struct TargetDifference {
    /// Which.
    pub target: String,
    /// Compared with which.
    pub base: String,
    /// Requests that both responded to in full.
    pub pairs: u64,
    /// Mean of `target − base`, in milliseconds.
    pub mean_ms: Option<IntervalEstimate>,
    /// Median of `target − base`, in milliseconds.
    pub median_ms: Option<IntervalEstimate>,
    /// Mean of the absolute difference, in milliseconds.
    pub mean_absolute_ms: Option<IntervalEstimate>,
    /// The share of requests to which the target responded faster.
    pub faster: Option<IntervalEstimate>,
}

/// What this place came to, over all proxies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Place")]
pub struct OrderPlace {
    /// 0: first.
    pub place: u8,
    /// Whole responses.
    pub count: u64,
    /// Mean response time, in milliseconds.
    pub mean_ms: f64,
    /// Mean of what each response took more than its own proxy's mean, and more than the other responses to the same request,
    /// in milliseconds: what the place alone does. The intervals of all places hold together with 95 %. Null where the order
    /// is fixed, because it cannot be told from the proxies then.
    pub effect_ms: Option<IntervalEstimate>,
}

/// One way to differ from the Collector's response, or not to respond.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Differing")]
pub struct MismatchGroup {
    /// Whose responses.
    pub target: String,
    /// Which verdict.
    pub verdict: Verdict,
    /// What exactly: the header field, `200 → 404` (the Collector's status and the proxy's), or the error.
    pub what: String,
    /// How many.
    pub count: u64,
    /// The share of the target's requests.
    pub share: f64,
    /// The first of them.
    pub examples: Vec<MismatchExample>,
}

/// A request whose response differed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Example")]
pub struct MismatchExample {
    /// Number of the request.
    pub request: u64,
    /// Method.
    pub method: String,
    /// URL, cut where it is long.
    pub url: String,
    /// Status of the Collector's response.
    pub direct_status: Option<u16>,
    /// Status of the proxy's.
    pub status: Option<u16>,
    /// When it got the request, in microseconds since the start.
    pub at_us: i64,
}
