//! How well Assay itself did in a second. What each worker thread saw of itself, where it stood still, and how quiet the
//! machine was before the run.

use serde::{Deserialize, Serialize};

use crate::histogram::SparseHistogram;

/// One worker thread of a role in one interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
    /// Index of the phase that was on when it ended (robots; origins report 0 and are matched by time).
    pub phase: u16,
    /// `robots` or `origins`.
    pub role: String,
    /// Number of the thread within its role.
    pub thread: u32,
    /// Processor it is pinned to; none: not pinned.
    pub cpu: Option<u32>,
    /// Processor time it used, in microseconds.
    pub cpu_us: u64,
    /// Time it was ready to run and waited for a processor, in microseconds.
    pub run_delay_us: u64,
    /// Times it was put on a processor.
    pub slices: u64,
    /// How late its timer was served: the dispatcher's clock − the earliest deadline, each time it woke.
    pub timer_lag: SparseHistogram,
    /// The longest of those, in microseconds.
    pub longest_lag_us: u64,
    /// Most connections that waited to be accepted on one of its listeners (origins).
    pub accept_queue: u32,
    /// The limit of that.
    pub accept_queue_limit: u32,
}

/// A worker thread stood still: its timer was served that late.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stall {
    /// `robots` or `origins`.
    pub role: String,
    /// Number of the thread within its role.
    pub thread: u32,
    /// When it began, in milliseconds since the start of the run.
    pub at_ms: u64,
    /// How long it lasted, in microseconds.
    pub length_us: u64,
    /// Processor time that the thread used meanwhile, in microseconds: it was busy with itself.
    pub cpu_us: u64,
    /// Time that it was ready to run meanwhile and had no processor, in microseconds. What neither explains, the
    /// process was stopped, or the machine was.
    pub run_delay_us: u64,
}

/// How late a bare timer was on the thread's own processor before the run: what the machine itself adds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Baseline {
    /// `robots` or `origins`.
    pub role: String,
    /// Number of the thread within its role.
    pub thread: u32,
    /// Processor it is pinned to; none: not pinned.
    pub cpu: Option<u32>,
    /// How long was measured, in milliseconds.
    pub length_ms: u64,
    /// Clock − deadline, each time the bare timer fired.
    pub lag: SparseHistogram,
}

/// What the network stack of a namespace counted in one interval; differences, but for levels. Without namespaces of their
/// own, all roles are in that of the machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
    /// Whose namespace it is: roles, joined by `+`.
    pub role: String,
    /// TCP segments sent (`OutSegs`).
    pub segments_out: u64,
    /// Segments sent again (`RetransSegs`).
    pub retransmitted: u64,
    /// Connections that found a full accept queue (`ListenOverflows`).
    pub listen_overflows: u64,
    /// Connection attempts dropped by listeners for any reason (`ListenDrops`).
    pub listen_drops: u64,
    /// Segments dropped because a socket's backlog was full (`TCPBacklogDrop`).
    pub backlog_drops: u64,
    /// Times received data was thrown away for lack of memory (`RcvPruned`, `TCPRcvQDrop`).
    pub receive_drops: u64,
    /// Times TCP came under memory pressure (`TCPMemoryPressures`).
    pub memory_pressures: u64,
    /// Level: TCP sockets in use.
    pub sockets: u64,
    /// Level: connections in TIME_WAIT.
    pub time_wait: u64,
    /// Level: memory of TCP buffers, in bytes.
    pub buffer_bytes: u64,
    /// Level: connections in ESTABLISHED (with CLOSE_WAIT where that was not counted).
    pub established: Option<u64>,
    /// Level: connections in SYN_SENT.
    pub syn_sent: Option<u64>,
    /// Level: connections in SYN_RECV.
    pub syn_received: Option<u64>,
    /// Level: connections in FIN_WAIT1.
    pub fin_wait1: Option<u64>,
    /// Level: connections in FIN_WAIT2.
    pub fin_wait2: Option<u64>,
    /// Level: connections in CLOSE_WAIT.
    pub close_wait: Option<u64>,
    /// Level: connections in LAST_ACK or CLOSING.
    pub last_ack: Option<u64>,
    /// Level: listening sockets.
    pub listening: Option<u64>,
}

/// What one direction of a link carried in one interval. What came before the start of the run is an interval of no length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// How long it lasted; 0: everything before the start.
    pub length_ms: u64,
    /// The link's name.
    pub link: String,
    /// The end that packets came from.
    pub from: String,
    /// Packets that came to the link.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// Packets that came out.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets that were on the wire: all but those that found the queue full.
    pub wire: u64,
    /// Those of them that the plan lost.
    pub lost: u64,
    /// Packets that found the queue full.
    pub queue_full: u64,
    /// Packets that the link could not carry for reasons of its own.
    pub failed: u64,
    /// How late packets came out, beside what was asked for.
    pub lateness: SparseHistogram,
}

/// What one processor of this machine did in one interval, for whomever.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessorInterval {
    /// Milliseconds since the start of the run at which the interval began.
    pub start_ms: u64,
    /// How long it lasted.
    pub length_ms: u64,
    /// Its number.
    pub cpu: u32,
    /// Time that it worked (user, system, interrupts), in microseconds.
    pub busy_us: u64,
    /// Time that the hypervisor took from it, in microseconds.
    pub steal_us: u64,
    /// Of the time that it worked: programs.
    pub user_us: u64,
    /// Of the time that it worked: the kernel, at the wish of programs.
    pub system_us: u64,
    /// Of the time that it worked: interrupts.
    pub irq_us: u64,
    /// Of the time that it worked: what interrupts left to do, such as the network.
    pub softirq_us: u64,
    /// Time that it had nothing to do but somebody waited for a disk, in microseconds.
    pub iowait_us: u64,
    /// Time that it had nothing to do, in microseconds.
    pub idle_us: u64,
}

/// What this machine could offer for a workload without a proxy, straight from robots to origins.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct Calibration {
    /// [`Calibration::SCHEMA`].
    pub schema: String,
    /// Version of Assay.
    pub assay_version: String,
    /// Which workload, placement and machine it is good for: equal keys can be compared.
    pub key: String,
    /// When it was made, Unix time in milliseconds.
    pub made_unix_ms: u64,
    /// The highest rate that was kept, in requests per second.
    pub requests_per_s: f64,
    /// Body bytes per second at that rate.
    pub body_bytes_per_s: f64,
    /// Processor time of robots and of origins per request at that rate, in microseconds.
    pub robots_cpu_us_per_request: f64,
    /// The same of origins.
    pub origins_cpu_us_per_request: f64,
    /// Why it did not go higher: a name of [`crate::doubt::Reason`], or `workload` when that asks for no more.
    pub limit: String,
    /// The same in words, with figures.
    pub limit_seen: String,
    /// The steps, in the order they were tried.
    pub steps: Vec<CalibrationStep>,
}

impl Calibration {
    /// Version of the document.
    pub const SCHEMA: &'static str = "assay-calibration/1";
}

/// One rate that was tried.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default)]
pub struct CalibrationStep {
    /// Load as a multiple of the workload's peak; 0: best effort, as fast as it goes.
    pub load: f64,
    /// Requests due per second; 0: best effort.
    pub offered_per_s: f64,
    /// Requests completed per second.
    pub completed_per_s: f64,
    /// 99th percentile of lateness, in microseconds.
    pub lateness_p99_us: u64,
    /// It was kept: no reason to doubt it.
    pub kept: bool,
    /// Why not, in words.
    pub why: String,
}
