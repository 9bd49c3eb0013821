//! The JSON document: what `--json` prints and `summary.json` holds.
//!
//! Null says that there is nothing to measure; a number is always a number. Fields are only ever added.

use std::collections::BTreeMap;

use assay_measurement::counts::{OriginRequests, RobotRequests};
use assay_measurement::doubt::{Doubt, Reason};
use assay_measurement::error_kind::{ErrorExample, ErrorKind};
use assay_measurement::own_error::OwnInterval;
pub use assay_measurement::ratios::{HitRatio, Offload, Outcomes};
use assay_record::missing::Missing;
use assay_record::run::{BedInfo, FleetInfo, HostInfo, PlacementInfo, TargetInfo, WorkloadInfo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::cache_logs::document::{
    Agreement, CacheLogFigures, CacheSources, SourceFigures, TrafficFigures,
};
pub use crate::own::health::{
    Health, Lags, NetworkHealth, RoleHealth, StallCause, StallHealth, ThreadHealth,
};
pub use crate::percentiles::{BoundedFigure, ByClass, Percentiles};
pub use crate::require::RequirementResult;
pub use crate::special::Special;
pub use crate::under_load::{CaseUnderLoad, UnderLoad};

/// Version of the document.
pub const SUMMARY_SCHEMA: &str = "assay-summary/2";

/// A run, summarised.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Assay summary")]
pub struct Summary {
    /// `assay-summary/2`.
    pub schema: String,
    /// The run directory.
    pub run: String,
    /// Name of the workload.
    pub workload: String,
    /// What was under test: `direct`, `builtin`, a described proxy's name, or an address.
    pub proxy: String,
    /// Seed of the universe and its streams.
    pub seed: u64,
    /// Digest of the first requests of every robot; the same for every proxy and thread count.
    pub stream_digest: String,
    /// False: the run was made before own errors were recorded, and nothing is said of how well its numbers are known.
    #[serde(default)]
    pub own_errors_recorded: bool,
    /// What disturbed the machine, in a sentence; null: nothing did, as far as is known.
    #[serde(default)]
    pub disturbance: Option<String>,
    /// What the run says first: the numbers of the phases that measure.
    #[serde(default)]
    pub headline: Headline,
    /// True: the run ended before its schedule did.
    pub partial: bool,
    /// True: its end was never written, so it was killed or still goes on; then it is partial too.
    #[serde(default)]
    pub unfinished: bool,
    /// The run in words, a sentence or two each: what was tested, did it keep up, what did it save, was
    /// anything wrong, how well are the numbers known.
    pub verdict: Vec<Finding>,
    /// What was required of the run, and whether it held; empty: nothing was.
    #[serde(default)]
    pub requirements: Vec<RequirementResult>,
    /// Conformance cases that were tried beside the load; absent: none were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conform: Option<UnderLoad>,
    /// What Assay and the lab did beside the plan, worst first: serious ones, then those worth knowing.
    pub doubts: Vec<Doubt>,
    /// How well Assay itself did.
    #[serde(default)]
    pub health: Health,
    /// How much of what this machine can offer was used; null: it was never calibrated for this workload.
    #[serde(default)]
    pub calibration: Option<CalibrationUse>,
    /// What a reader should know, worst first.
    pub warnings: Vec<String>,
    /// What the run directory does not say any more, or not in words that this version knows. Numbers that need it are
    /// null or too small.
    #[serde(default)]
    pub missing: Vec<Missing>,
    /// What explains the numbers without being wrong.
    pub notes: Vec<String>,
    /// The phase whose numbers say what the target can do: the one that the workload marks as primary, else
    /// the last of those under the highest load; null: no such phase ran, or it is the only one.
    #[serde(default)]
    pub baseline: Option<String>,
    /// The whole run.
    pub total: Figures,
    /// Every phase of the schedule, in order, also those that never ran.
    pub phases: Vec<PhaseFigures>,
    /// Where several caches work together: what each did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hierarchy: Option<Hierarchy>,
    /// What the logs of the caches say, beside what robots saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_logs: Option<CacheLogFigures>,
    /// The first errors of each kind.
    pub examples: Vec<ErrorExample>,
    /// The target's own counters, as last read, in its own words.
    pub counters: BTreeMap<String, f64>,
    /// Version of Assay.
    pub assay_version: String,
    /// The command line, as typed.
    pub command: Vec<String>,
    /// Start of the schedule, Unix time in milliseconds.
    pub started_unix_ms: u64,
    /// Requests per robot that `stream_digest` covers.
    pub stream_digest_requests: u64,
    /// How the stream follows from workload and seed.
    pub stream_version: u32,
    /// More about the workload.
    pub workload_info: WorkloadInfo,
    /// More about what was under test.
    pub target: TargetInfo,
    /// The machine.
    pub host: HostInfo,
    /// Who ran where.
    pub placement: Vec<PlacementInfo>,
    /// The network that the lab made for the run, and what its links carried; null: the machine's own loopback.
    #[serde(default)]
    pub bed: Option<BedInfo>,
    /// The machines of a run that took several, and how well their clocks were known; absent: it took one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetInfo>,
}

/// What caches that work together did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hierarchy {
    /// The phase that this is about; null: the whole run.
    pub phase: Option<String>,
    /// Each cache, parents first.
    pub caches: Vec<CacheFigures>,
    /// All of them together.
    pub all: CacheFigures,
}

/// What one of several caches did, as it counted itself; 0 for what it does not count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheFigures {
    /// Its name.
    pub name: String,
    /// The proxy that it is.
    pub proxy: String,
    /// Robots that speak to it.
    pub robots: u32,
    /// Requests of robots.
    pub requests: u64,
    /// Of these, answered from its own store.
    pub local_hits: u64,
    /// Share of them.
    pub local_hit_ratio: Option<f64>,
    /// Requests that a sibling's store answered.
    pub sibling_hits: u64,
    /// Share of them.
    pub sibling_hit_ratio: Option<f64>,
    /// Requests that a parent answered.
    pub parent_fetches: u64,
    /// Of these, from the parent's store.
    pub parent_hits: u64,
    /// Share of them.
    pub parent_hit_ratio: Option<f64>,
    /// Requests of other caches.
    pub requests_of_caches: u64,
    /// Of these, answered from its store.
    pub hits_for_caches: u64,
    /// Bytes of bodies that siblings sent.
    pub sibling_bytes: u64,
    /// Bytes of bodies that parents sent.
    pub parent_bytes: u64,
    /// Queries and responses by ICP.
    pub icp: IcpFigures,
}

/// Queries by ICP, and the responses to them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IcpFigures {
    /// Queries sent.
    pub sent: u64,
    /// Responses to them that came in time.
    #[serde(default)]
    pub responses: u64,
    /// Queries without a response in time.
    pub timeouts: u64,
    /// Responses to the queries of others.
    #[serde(default)]
    pub responses_sent: u64,
    /// Of these, those that said hit.
    #[serde(default)]
    pub hits_sent: u64,
    /// Caches that had said hit and then had nothing.
    pub false_hits: u64,
    /// Bytes of messages sent, queries and responses.
    #[serde(default)]
    pub bytes: u64,
    /// How long requests have waited for responses, added up; 0 where the proxy does not say.
    #[serde(default)]
    pub wait_ms: f64,
}

/// One sentence of the verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What it is about.
    pub about: Topic,
    /// How it went.
    pub mood: Mood,
    /// What was found.
    pub text: String,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// What was tested, by what.
    Test,
    /// Did it keep up?
    Speed,
    /// How much did it save?
    Savings,
    /// Was anything wrong with its responses?
    Correctness,
    /// Did it show what it had to?
    Requirements,
    /// How well are the numbers known?
    Trust,
}

/// How something went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mood {
    /// As it should.
    Good,
    /// Neither good nor bad.
    Plain,
    /// Worth a look.
    Doubtful,
    /// Wrong.
    Bad,
}

/// A phase and its numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseFigures {
    /// Name.
    pub name: String,
    /// When it began, milliseconds since the start of the run; null: it never ran.
    pub start_ms: Option<u64>,
    /// When it ended.
    pub end_ms: Option<u64>,
    /// Goal in words.
    pub goal: String,
    /// Load factor at its start and end.
    pub load: (f64, f64),
    /// Recurrence factor at its start and end.
    pub recurrence: (f64, f64),
    /// True: something serious happened in it; its numbers have intervals, or are not known.
    #[serde(default)]
    pub disturbed: bool,
    /// Reasons to doubt it that are among `doubts`, worst first, also those worth knowing.
    #[serde(default)]
    pub doubts: Vec<Reason>,
    /// Its numbers.
    #[serde(flatten)]
    pub figures: Figures,
}

/// How much of what this machine can offer for this workload without a proxy a run used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CalibrationUse {
    /// Highest rate of responses of a phase, over the calibrated rate: 0.23 is 23 %; null: no response came.
    pub share: Option<f64>,
    /// That phase.
    pub phase: Option<String>,
    /// Its responses per second.
    pub rate: Option<f64>,
    /// The calibrated rate, in requests per second.
    pub requests_per_s: f64,
    /// Body bytes per second at that rate.
    pub body_bytes_per_s: f64,
    /// When it was found, Unix time in milliseconds.
    pub made_unix_ms: u64,
    /// By which version of Assay.
    pub assay_version: String,
    /// Why it was no higher: the name of a reason, or `workload`.
    pub limit: String,
    /// The same in words, with figures.
    pub limit_seen: String,
}

/// The numbers that a run is made for: those of the phases that measure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Headline {
    /// The phases that measure: those that the workload marks as primary, else those of constant full load that are in its
    /// statistics, else all that ran.
    pub phases: Vec<String>,
    /// Their numbers, together; null: none of them ran.
    pub figures: Option<Figures>,
    /// Names of the headline numbers that are known within a tenth (`dhr`, `bhr`, `rate`, `errors`, `p50(hit)`,
    /// `p50(miss)`).
    pub known: Vec<String>,
    /// Those that are known within an interval that is wider.
    pub roughly: Vec<String>,
    /// Those that are not known because of Assay or the lab.
    pub unknown: Vec<String>,
}

/// The numbers of a phase or of the whole run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figures {
    /// Actual length, in seconds; null: it never ran.
    pub duration_s: Option<f64>,
    /// What became of its requests.
    #[serde(flatten)]
    pub counts: RobotRequests,
    /// Sum of the identities that came due, in hexadecimal; the same for every proxy.
    pub due_digest: String,
    /// Requests per second.
    pub rate: Rate,
    /// Document hit ratio.
    pub dhr: HitRatio,
    /// Byte hit ratio.
    pub bhr: HitRatio,
    /// What the origins were spared.
    pub offload: Offload,
    /// Where the responses of basic xacts came from.
    pub outcomes: Outcomes,
    /// Last byte − due.
    pub response_time_ms: ByClass,
    /// Last byte − sent.
    pub service_time_ms: ByClass,
    /// First byte − sent.
    pub ttfb_ms: ByClass,
    /// What Assay itself added before sending.
    pub lateness_us: Lateness,
    /// TLS handshakes of robots: from the connection until a request could be sent, the robot's own work included.
    #[serde(default)]
    pub handshake_ms: Percentiles,
    /// TLS handshakes of robots by version and cipher suite.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub by_tls: BTreeMap<String, u64>,
    /// Responses whose `Cache-Control`, `Expires` or `Last-Modified` was not as the origin sent it, by field; of those
    /// compared (`special.compared_fields`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changed_fields: BTreeMap<String, u64>,
    /// Errors.
    pub errors: Errors,
    /// Traffic.
    pub bandwidth_mbit_s: Bandwidth,
    /// Connections.
    pub connections: Connections,
    /// Most requests that waited for a connection at any second's end.
    pub waiting_peak: u64,
    /// Most requests under way at any second's end.
    pub in_flight_peak: u64,
    /// Processor time per request, in microseconds, by role; a role that was not watched is left out.
    pub cpu_us_per_request: BTreeMap<String, Option<f64>>,
    /// What processes used, by role (`host`: the whole machine).
    pub resources: BTreeMap<String, Resources>,
    /// The disk that the proxy's files are on; null: it has none, or is not the lab's.
    #[serde(default)]
    pub disk: Option<Disk>,
    /// The origins' side.
    pub origins: OriginFigures,
    /// Completed xacts by method.
    pub by_method: BTreeMap<String, u64>,
    /// Completed xacts by request type.
    pub by_type: BTreeMap<String, u64>,
    /// Completed xacts by status code.
    pub by_status: BTreeMap<String, u64>,
    /// Requests that are more than a plain GET.
    #[serde(default)]
    pub special: Special,
    /// The own error of numbers that are no times, by name (`rate.measured`, `dhr.measured`): within which interval each
    /// lies, whatever Assay and the lab did. What is not here cannot have been touched by them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own: BTreeMap<String, OwnInterval>,
}

impl Figures {
    /// The figure of this name that is no time, such as `rate.measured`, with its own error; none: nothing to measure, or no
    /// such name.
    pub fn figure(&self, name: &str) -> Option<BoundedFigure> {
        let value = match name {
            "rate.measured" => self.rate.measured,
            "dhr.measured" => self.dhr.measured,
            "bhr.measured" => self.bhr.measured,
            "offload.requests" => self.offload.requests,
            "offload.bytes" => self.offload.bytes,
            _ => None,
        };
        let own = self.own.get(name).copied();
        (value.is_some() || own.is_some()).then_some(BoundedFigure { value, at_least: false, own })
    }
}

/// Requests per second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Due.
    pub offered: Option<f64>,
    /// Completed without error.
    pub measured: Option<f64>,
}

/// `sent − max(due, ready)`, in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lateness {
    /// Median.
    pub p50: Option<u64>,
    /// 99 % are not later.
    pub p99: Option<u64>,
    /// The latest.
    pub max: Option<u64>,
}

/// Xacts that ended in an error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Errors {
    /// All.
    pub total: u64,
    /// By class; classes that did not occur are left out.
    pub by_kind: BTreeMap<ErrorKind, u64>,
}

impl Errors {
    /// Number of errors of the kinds that are `wanted`.
    pub fn of(&self, wanted: impl Fn(ErrorKind) -> bool) -> u64 {
        self.by_kind.iter().filter(|(kind, _)| wanted(**kind)).map(|(_, number)| number).sum()
    }
}

/// Traffic in megabits (10⁶) per second, heads included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bandwidth {
    /// To the robots.
    pub client_in: Option<f64>,
    /// From the robots.
    pub client_out: Option<f64>,
    /// To the origins.
    pub origin_in: Option<f64>,
    /// From the origins.
    pub origin_out: Option<f64>,
}

/// Connections on both sides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Connections {
    /// Opened by the robots.
    pub client_opened: u64,
    /// Most that robots held open at any second's end.
    pub client_peak: u64,
    /// Accepted by the origins.
    pub origin_opened: u64,
    /// Most that origins held open at any second's end.
    pub origin_peak: u64,
}

/// What processes used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resources {
    /// Mean number of processors used.
    pub cpu_cores: Option<f64>,
    /// Largest resident memory, in bytes.
    pub rss_peak_bytes: u64,
    /// Mean number of threads that were ready to run and had no processor.
    pub starved_threads: Option<f64>,
    /// Most open descriptors.
    pub descriptors_peak: u64,
    /// Mean number of processors that the hypervisor took away (`host` only).
    pub stolen_cores: Option<f64>,
    /// Of the processors used: in programs; null: it was not told apart.
    #[serde(default)]
    pub user_cores: Option<f64>,
    /// Of the processors used: in the kernel, for them.
    #[serde(default)]
    pub system_cores: Option<f64>,
    /// Largest memory with shared pages counted in parts (PSS), in bytes; null: it was not added up.
    #[serde(default)]
    pub pss_peak_bytes: Option<u64>,
    /// Largest page cache, in bytes: of the role's control group where it has one, of the machine (`host`).
    #[serde(default)]
    pub cache_peak_bytes: Option<u64>,
    /// Times per second that a thread gave up its processor because it had to wait; null: not counted.
    #[serde(default)]
    pub voluntary_switches_per_s: Option<f64>,
    /// Times per second that a processor was taken from a thread; null: not counted.
    #[serde(default)]
    pub involuntary_switches_per_s: Option<f64>,
    /// Bytes read from disks for it; null: the kernel does not tell.
    #[serde(default)]
    pub disk_read_bytes: Option<u64>,
    /// Bytes of its that were or will be written to disks; null: the kernel does not tell.
    #[serde(default)]
    pub disk_written_bytes: Option<u64>,
}

/// The disk that the proxy's files are on: what it did, for whomever.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disk {
    /// The kernel's name of it.
    pub device: String,
    /// Megabytes (2²⁰) read per second.
    pub read_mb_s: f64,
    /// Megabytes written per second.
    pub written_mb_s: f64,
    /// Reads per second.
    pub reads_per_s: f64,
    /// Writes per second.
    pub writes_per_s: f64,
    /// Part of the time in which it had something to do.
    pub busy_share: f64,
    /// Mean number of requests in it.
    pub queue: f64,
    /// What was asked of it, one by one; null: it was not traced.
    pub seeks: Option<Seeks>,
}

/// Where requests to a disk went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Seeks {
    /// Requests.
    pub requests: u64,
    /// Part of them that began where the one before had ended.
    pub sequential_share: f64,
    /// Half of the distances are no longer, in megabytes (to a factor of two).
    pub p50_mb: Option<f64>,
    /// Nine in ten are no longer.
    pub p90_mb: Option<f64>,
    /// Requests that could not be traced.
    pub lost: u64,
}

/// The origins' side.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OriginFigures {
    /// What they counted.
    #[serde(flatten)]
    pub counts: OriginRequests,
    /// Requests per second.
    pub rate: Option<f64>,
    /// Response written − request complete, think time included.
    pub service_time_ms: Percentiles,
    /// How much later than asked think times ended.
    pub lateness_us: Lateness,
}
