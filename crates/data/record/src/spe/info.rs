//! `spe.json`: targets, settings and totals of an evaluation.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of `spe.json`.
pub const SCHEMA: u32 = 1;

/// `spe.json`: written at the start, and again with every change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SpeInfo {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Version of Assay.
    pub version: String,
    /// When it began, Unix time in milliseconds.
    pub started_unix_ms: i64,
    /// When and how it ended; none: it goes on, or was cut off.
    pub ended: Option<Ended>,
    /// Seed of the order in which proxies get requests.
    pub seed: u64,
    /// Clients and proxies speak as to a forward proxy; false: as to a server.
    pub forward: bool,
    /// Tunnels were opened, so that requests for `https` URLs could be compared.
    pub intercept: bool,
    /// When proxies get requests: `after`, `at_once`.
    pub when: String,
    /// In which order: `permuted`, `fixed`.
    pub turns: String,
    /// The targets: `direct` first, then the proxies.
    pub targets: Vec<EvaluationTarget>,
    /// How the Collector was set.
    pub collector: CollectorSettings,
    /// What came of it in all.
    pub totals: Totals,
}

/// When and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    /// Milliseconds since the start.
    pub at_ms: u64,
    /// How.
    pub how: How,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// As it should: its time, or the requests it was to last for, were over.
    Finished,
    /// Somebody ended it.
    Interrupted,
    /// It could not go on, and why.
    Failed(String),
}

/// A target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EvaluationTarget {
    /// What it is called in results.
    pub label: String,
    /// Where it is; none: the Collector.
    pub address: Option<String>,
    /// Requests go to it over TLS.
    pub tls: bool,
    /// What it says it is, with its version; none: nobody knows.
    pub software: Option<String>,
    /// Its settings, by name, where Assay started it.
    pub settings: BTreeMap<String, String>,
}

/// How the Collector was set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CollectorSettings {
    /// How long a response that may not be cached is kept for those who have not seen it, in milliseconds.
    pub minimum_freshness_ms: u64,
    /// Age after which a recording is made anew, in milliseconds.
    pub maximum_age_ms: u64,
    /// Responses come at the pace of the recording.
    pub replay: bool,
    /// Most bytes of recordings in memory.
    pub memory_bytes: u64,
    /// Most bytes of recordings on disk.
    pub disk_bytes: u64,
}

/// What came of it in all. A number that nobody has told is 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Totals {
    /// Connections of clients.
    pub clients: u64,
    /// Requests of clients.
    pub requests: u64,
    /// Tunnels (CONNECT) among them, which are never compared themselves.
    pub connects: u64,
    /// Tunnels that were opened (`--intercept`): their requests are among `requests`.
    pub tunnels_opened: u64,
    /// Tunnels that were not, because the client did not accept the certificate: it does not trust the authority, or accepts only
    /// the server's own certificate.
    pub tunnels_certificate_refused: u64,
    /// Tunnels that were not, because the client named another server (SNI) than that of the tunnel, or none.
    pub tunnels_name_refused: u64,
    /// Tunnels that were not, because the client did not speak TLS.
    pub tunnels_not_tls: u64,
    /// Tunnels that were not, because there was no version of TLS, cipher suite or application protocol in common.
    pub tunnels_no_common_parameters: u64,
    /// Tunnels that were not, because the client left during the handshake, or did not complete it in time.
    pub tunnels_failed: u64,
    /// Requests that could not be understood and were refused.
    pub refused: u64,
    /// Requests that got 503, because as many were under way as may be, or as many tunnels; not among `refused`.
    pub no_room: u64,
    /// Clients that took too long with a request or a response; their connections were ended.
    pub slow_clients: u64,
    /// Connections of clients that were ended to make room for others.
    pub dismissed_clients: u64,
    /// Connections of proxies at the Collector that were ended to make room for others of the same proxy.
    pub dismissed_connections: u64,
    /// Requests whose client left before it had its response.
    pub client_gone: u64,
    /// Requests that were never sent to a target, because too much was waiting for it; one number per target.
    pub dropped: Vec<u64>,
    /// Requests without a response from a target when the evaluation ended; one number per target.
    pub waiting: Vec<u64>,
    /// Responses that are missing from responses.parquet, because the disk was too slow.
    pub responses_lost: u64,
    /// Requests that the Collector sent to origins.
    pub origin_requests: u64,
    /// Fetches that failed.
    pub origin_errors: u64,
    /// Fetches and tunnels that the Collector did not make, because it may request nothing at their addresses: clients got 403.
    pub not_allowed: u64,
    /// Responses that the Collector broke off, because the response of a client would have had to wait for them; whoever asked
    /// is not to blame for what it then lacks.
    pub given_up: u64,
    /// Recordings that the Collector could not keep until every proxy had requested them: what a proxy gets instead is not
    /// compared (`NOT_KEPT`).
    pub not_kept: u64,
    /// Requests that the Collector sent to origins once more for a proxy, because of that; among `origin_requests`.
    pub repeated: u64,
    /// Recordings that were thrown away to make room.
    pub evictions: u64,
    /// Recordings held at the end.
    pub recordings: u64,
    /// Their bytes, overhead included.
    pub stored_bytes: u64,
    /// Most resident memory of the Collector and the Multiplier together, in bytes.
    pub peak_memory_bytes: u64,
    /// For how long threads had no processor.
    pub waits: Waits,
}

/// For how long threads were ready to run and waited for a processor, each process's added up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Waits {
    /// Since the evaluation began, in microseconds.
    pub passed_us: u64,
    /// Those of the Multiplier and the Collector.
    pub own_us: u64,
    /// Those of each target; 0: it was not started here.
    pub targets_us: Vec<u64>,
}

impl Waits {
    /// The largest share of the time for which threads waited that the requests to one target need.
    pub fn share(&self) -> f64 {
        let worst_us = self.targets_us.iter().max().copied().unwrap_or(0);
        self.share_of(self.own_us + worst_us)
    }

    /// Share of the time that so many microseconds are.
    pub fn share_of(&self, waited_us: u64) -> f64 {
        waited_us as f64 / self.passed_us.max(1) as f64
    }
}
