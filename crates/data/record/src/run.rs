//! `run.json`: what was run, when, with what, on what, and how it went.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::part::{JoinedInfo, PartInfo};
use assay_measurement::doubt::{Doubt, Extent};
use assay_measurement::health::Calibration;

/// Version of the run directory's layout.
pub const RUN_SCHEMA: &str = "assay-run/1";

/// The head of a run directory.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunInfo {
    /// [`RUN_SCHEMA`].
    pub schema: String,
    /// Version of Assay.
    pub assay_version: String,
    /// The command line, as typed.
    pub command: Vec<String>,
    /// Start of the schedule, Unix time in milliseconds.
    pub started_unix_ms: u64,
    /// Start of the schedule on `CLOCK_MONOTONIC`, in nanoseconds.
    pub started_monotonic_ns: u64,
    /// The workload.
    pub workload: WorkloadInfo,
    /// Seed of the universe.
    pub seed: u64,
    /// Tag in every path.
    pub world: u32,
    /// Digest of the first requests of every robot (`assay check --stream-digest`).
    pub stream_digest: String,
    /// Requests per robot that the digest covers.
    pub stream_digest_requests: u64,
    /// How the stream follows from workload and seed. Streams of different versions differ in what is due when, even where
    /// their digests are the same.
    pub stream_version: u32,
    /// Which part of a run this is; none: it is a whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartInfo>,
    /// The parts that it was joined from (`assay merge`); empty: it was recorded as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joined: Vec<JoinedInfo>,
    /// What was under test.
    pub target: TargetInfo,
    /// Who ran where.
    pub placement: Vec<PlacementInfo>,
    /// What the kernel held the proxy to; none: nothing.
    pub limits: Option<LimitsInfo>,
    /// The network that the lab made for the run; none: the machine's own loopback.
    pub bed: Option<BedInfo>,
    /// Which legs spoke TLS, and how; none: all of them spoke in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsInfo>,
    /// The machine.
    pub host: HostInfo,
    /// The machines that the roles ran on; none: all of them ran on this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetInfo>,
    /// Phases, planned and as they went.
    pub phases: Vec<PhaseInfo>,
    /// True: robots recorded by how much Assay delayed each request, so that numbers have an error of their own. False: the
    /// run was made before that was recorded.
    pub own_errors: bool,
    /// Counts at which best-effort phases ended, per phase and robot; empty for scheduled workloads.
    pub boundaries: Vec<Vec<u32>>,
    /// What this machine can offer for this workload, where that was found before.
    pub calibration: Option<Calibration>,
    /// What the run is required to show (`--require`, `require()` in the workload), as written.
    pub requirements: Vec<String>,
    /// Which try this is, from 1: the ones before were undecided (`--retries`), and the run was repeated with an empty cache.
    pub tries: u32,
    /// How it went; absent (and `finished` false) while the run goes on.
    pub verdict: RunVerdict,
    /// True once everything is written.
    pub finished: bool,
}

impl RunInfo {
    /// Identity of the stream: its version and digest.
    pub fn stream(&self) -> (u32, &str) {
        (self.stream_version, &self.stream_digest)
    }
}

/// The workload of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkloadInfo {
    /// Its name.
    pub name: String,
    /// Files it was compiled from: path as given, and SHA-like digest of the text.
    pub sources: Vec<(String, String)>,
    /// Robots.
    pub robots: u32,
    /// Origins.
    pub origins: u32,
    /// Rehearsal: what every duration and volume of the schedule was multiplied by; none: not rehearsed.
    pub scale: Option<f64>,
    /// What the command line decided instead of the workload (`--duration`, `--rate`, `--robots`,
    /// `--robot-http`, `--origin-http`); none: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overrides: Option<OverridesInfo>,
    /// Private interest was treated as public.
    pub private_as_public: bool,
    /// The working set as it follows from the schedule; none: robots wait for responses, or the schedule has no end, so it
    /// depends on the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_set: Option<PlannedWorkingSet>,
    /// The workload in words, a line each.
    pub explained: Vec<String>,
}

/// How large the working set is expected to be when it is frozen, or at the end of the schedule if it never is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PlannedWorkingSet {
    /// Objects, embedded ones included.
    pub objects: u64,
    /// Their body bytes, before any coding.
    pub bytes: u64,
    /// When it is frozen, in milliseconds of the schedule; none: never.
    pub frozen_ms: Option<u64>,
}

/// Length, rate, number of robots and versions of HTTP that the command line decided; each none: as the workload says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OverridesInfo {
    /// Length of the one phase of constant full load that took the place of the schedule, in seconds.
    pub duration_s: Option<f64>,
    /// Requests per second of all robots together where the load was highest.
    pub rate_per_s: Option<f64>,
    /// Robots of all kinds together.
    pub robots: Option<u32>,
    /// Version of HTTP that all robots spoke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub robot_http: Option<String>,
    /// Version of HTTP that all origins spoke.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin_http: Option<String>,
    /// Requests that each best-effort robot had under way at a time over HTTP/2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u32>,
    /// Requests said how urgent they were (RFC 9218).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub priorities: bool,
}

/// Which legs of a run spoke TLS, and what robots and origins offered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TlsInfo {
    /// Between robots and the target (or origins, directly).
    pub robots: bool,
    /// Between the target (or robots, directly) and origins.
    pub origins: bool,
    /// Versions, as in `1.2-1.3`.
    pub versions: String,
    /// Cipher suites; empty: all that are implemented.
    pub ciphers: Vec<String>,
    /// How the keys of certificates were made: `p256`, `p384` or `rsa2048`.
    pub key: String,
    /// Probability that a robot's new connection offered to resume an earlier session.
    pub resumption: f64,
    /// Robots verified the certificates that they were shown.
    pub verified: bool,
}

impl TlsInfo {
    /// `none`, `robots`, `origins` or `both`, as in experiments.
    pub fn legs(&self) -> &'static str {
        match (self.robots, self.origins) {
            (false, false) => "none",
            (true, false) => "robots",
            (false, true) => "origins",
            (true, true) => "both",
        }
    }
}

/// What was under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TargetInfo {
    /// `direct`, `builtin`, a described proxy's name, or an address.
    pub name: String,
    /// What it says its version is.
    pub version: String,
    /// `direct`, `reverse` or `forward`.
    pub mode: String,
    /// Where it listens.
    pub address: String,
    /// Memory it was given for its cache, in bytes.
    pub memory_bytes: Option<u64>,
    /// Disk it was given for its cache, in bytes.
    pub disk_bytes: Option<u64>,
    /// Its own settings, by name: those that were chosen, and the defaults of all others.
    pub settings: BTreeMap<String, String>,
    /// Declared behaviour that explains hit ratios, a sentence each.
    pub notes: Vec<String>,
    /// Where several caches work together: each of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<CacheInfo>,
}

/// One of several caches that work together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CacheInfo {
    /// Its name.
    pub name: String,
    /// The proxy: a description's name, or `builtin`.
    pub proxy: String,
    /// What it says its version is.
    pub version: String,
    /// Where it listens.
    pub address: String,
    /// Memory for its cache, in bytes.
    pub memory_bytes: Option<u64>,
    /// Disk for its cache, in bytes.
    pub disk_bytes: Option<u64>,
    /// Its own settings, by name.
    pub settings: BTreeMap<String, String>,
    /// Robots that speak to it.
    pub robots: u32,
    /// Caches that it queries.
    pub peers: Vec<PeerInfo>,
    /// What siblings give is not stored here too.
    pub proxy_only: bool,
    /// It sends no requests to origins itself.
    pub never_direct: bool,
}

/// A cache that another queries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PeerInfo {
    /// Its name.
    pub name: String,
    /// `sibling` or `parent`.
    pub relation: String,
    /// `icp`, `htcp`, `digest` or `hash`.
    pub protocol: String,
}

/// One role and where it ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PlacementInfo {
    /// `robots`, `origins` or `proxy`.
    pub role: String,
    /// Process.
    pub pid: u32,
    /// Processors it was pinned to; empty: any.
    pub cpus: Vec<u32>,
    /// Threads.
    pub threads: u32,
    /// Where it listens.
    pub listening: Vec<String>,
}

/// What the processes of the proxy could use together, and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LimitsInfo {
    /// Processor time, in processors.
    pub cpu_quota: Option<f64>,
    /// Memory, page cache included.
    pub memory_bytes: Option<u64>,
    /// Processors; empty: any.
    pub cpus: Vec<u32>,
    /// What held it to that.
    pub how: String,
    /// How long its processes, added up, had work and no processor time left.
    pub throttled_us: Option<u64>,
    /// The most memory that was used at once.
    pub memory_peak_bytes: Option<u64>,
    /// Processes that the kernel ended for want of memory.
    pub killed_for_memory: Option<u64>,
}

/// A network that the lab made for a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BedInfo {
    /// TCP congestion control of all connections between roles.
    pub congestion_control: String,
    /// Network namespaces, from robots to origins.
    pub namespaces: Vec<NamespaceInfo>,
    /// Links between them.
    pub links: Vec<LinkInfo>,
}

/// One network namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NamespaceInfo {
    /// Roles that live in it.
    pub roles: Vec<String>,
    /// Networks whose addresses are all its own.
    pub networks: Vec<String>,
    /// Settings of its network stack.
    pub settings: BTreeMap<String, String>,
}

/// One link, and what it was measured to do before the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkInfo {
    /// The roles that it joins.
    pub name: String,
    /// What it was told to do, as `--robot-link` has it.
    pub settings: String,
    /// What carries its packets: `user space` or `netem`.
    pub carried_by: String,
    /// Seed of its losses and jitter.
    pub seed: u64,
    /// What was measured before the run; none: it did not come to that.
    pub test: Option<LinkTest>,
    /// What each direction carried, test and run together.
    pub directions: Vec<LinkTotals>,
}

/// What a link was measured to do before a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkTest {
    /// Small packets sent to measure round trips.
    pub packets_sent: u64,
    /// How many of them came back.
    pub packets_back: u64,
    /// Round trip that the settings request, in microseconds.
    pub expected_round_trip_us: u64,
    /// Median of the measured ones.
    pub round_trip_p50_us: u64,
    /// 99th percentile of the measured ones.
    pub round_trip_p99_us: u64,
    /// Bits per second that came through of more, in each direction; empty: no rate was requested.
    pub rates_bits_per_s: Vec<f64>,
    /// Congestion control seen at both ends of a connection over it.
    pub congestion_control: Vec<String>,
}

/// What one direction of a link carried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkTotals {
    /// The role that packets came from.
    pub from: String,
    /// Packets that came to the link.
    pub packets: u64,
    /// Packets that were on the wire: all but those that found the queue full.
    pub wire: u64,
    /// Packets that were lost on it.
    pub lost: u64,
    /// Packets that the plan loses among so many; equal to `lost`, or the run is invalid.
    pub planned_lost: u64,
    /// Packets that found the queue full.
    pub queue_full: u64,
    /// Packets that the link could not carry for reasons of its own.
    pub failed: u64,
    /// Median of how late packets came out, in microseconds.
    pub lateness_p50_us: u64,
    /// 99th percentile of that.
    pub lateness_p99_us: u64,
}

/// The machine a run was made on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostInfo {
    /// Kernel release.
    pub kernel: String,
    /// Processors online.
    pub cpus: u32,
    /// Model name of the first.
    pub cpu_model: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Limit on open descriptors of a process.
    pub descriptor_limit: u64,
    /// Which monotonic clock it has: the identity of the kernel's boot and of the time namespace. Runs of one clock share its
    /// scale. Empty: not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub clock: String,
    /// Facts that can change numbers: congestion control, port range and the like.
    pub settings: BTreeMap<String, String>,
}

/// The machines of a run that took several, and how well their clocks were known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FleetInfo {
    /// Each of them.
    pub machines: Vec<FleetMachine>,
    /// How far apart the first and the last of them can have started, in microseconds.
    pub start_spread_us: Option<u64>,
    /// By how much an instant of one of them can differ from the same instant of another during the run, in microseconds.
    pub clock_error_us: Option<u64>,
    /// When the run had no coordinator, in milliseconds since its start, first and last; empty: it had one all the time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub away_ms: Vec<(u64, u64)>,
}

/// A machine that roles of a run ran on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FleetMachine {
    /// The name of its agent.
    pub name: String,
    /// Labels that its agent carries.
    pub labels: Vec<String>,
    /// Where others reach it.
    pub address: String,
    /// Kernel release.
    pub kernel: String,
    /// Processors that the agent may use.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Roles that ran there.
    pub roles: Vec<String>,
    /// First and last of the robots that ran there; none: none did.
    pub robots: Option<(u32, u32)>,
    /// What its clock was assumed to show beyond the coordinator's when it was told the start, in nanoseconds.
    pub offset_ns: i64,
    /// How far off the start it can have started, in microseconds; none: not known.
    pub start_error_us: Option<u64>,
    /// How far an instant that it reported can be from the coordinator's scale, at worst, in microseconds; none: not known.
    pub clock_error_us: Option<u64>,
    /// How long the quickest exchange with its clock was on its way, both ways together, in microseconds.
    pub quickest_exchange_us: Option<u64>,
    /// How far its wall clock was from the coordinator's when the run began, in microseconds; positive: ahead.
    pub wall_clock_ahead_us: Option<i64>,
    /// When it was lost, in milliseconds since the start of the run; none: it was there to the end.
    pub lost_at_ms: Option<u64>,
}

/// A phase, planned and as it went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PhaseInfo {
    /// Name.
    pub name: String,
    /// Planned start, milliseconds since the start of the run; none when it depends on best-effort robots.
    pub planned_start_ms: Option<u64>,
    /// Planned end.
    pub planned_end_ms: Option<u64>,
    /// Actual start; none: never began.
    pub start_ms: Option<u64>,
    /// Actual end; none: never ended.
    pub end_ms: Option<u64>,
    /// Goal in words.
    pub goal: String,
    /// Load factor at start and end.
    pub load: (f64, f64),
    /// Recurrence factor at start and end.
    pub recurrence: (f64, f64),
    /// Requests that are to be expected; none: that depends on what happens, or this is a part of a run.
    pub expected_requests: Option<f64>,
    /// The workload wants it in the statistics.
    pub log_stats: bool,
    /// The workload wants to be judged by it.
    pub primary: bool,
    /// Something serious happened in it: its numbers have intervals, or are not known.
    pub disturbed: bool,
}

/// How the run went.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunVerdict {
    /// True: it was interrupted.
    pub partial: bool,
    /// What Assay and the lab did beside the plan, worst first: serious ones, then those worth knowing.
    pub doubts: Vec<Doubt>,
    /// What else a reader should know of the workload and the target, worst first.
    pub warnings: Vec<String>,
}

impl RunVerdict {
    /// Whether something serious happened: some numbers have intervals, or are not known.
    pub fn is_disturbed(&self) -> bool {
        self.doubts.iter().any(|doubt| doubt.serious)
    }

    /// Extent of the numbers that are not known in some phase.
    pub fn leaves_unknown(&self) -> Extent {
        self.doubts.iter().map(Doubt::leaves_unknown).max().unwrap_or_default()
    }
}
