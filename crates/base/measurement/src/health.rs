//! Assay's own condition, second by second: each worker thread's view of itself, stalls, and the noise of the machine before the run.

use serde::{Deserialize, Serialize};

use crate::histogram::SparseHistogram;
use crate::series;

series! {
    /// One worker thread of a role in one interval.
    pub struct ThreadInterval {
        start_ms: u64 = "when the interval began, in milliseconds since the start of the run";
        length_ms: u64 = "how long it lasted, in milliseconds";
        phase: u16 = "robots: phase that was on when it ended; origins: 0";
        role: String = "`robots` or `origins`";
        thread: u32 = "number of the thread within its role";
        cpu: Option<u32> = "processor that it is pinned to; null: it is not pinned";
        cpu_us: u64 = "processor time it used, in microseconds";
        run_delay_us: u64 = "time it was ready to run and had no processor, in microseconds";
        slices: u64 = "times it was put on a processor";
        longest_lag_us: u64 = "the latest that its timer was served, in microseconds";
        accept_queue: u32 = "origins: most connections that waited to be accepted on one of its listeners";
        accept_queue_limit: u32 = "the limit of that";
    } beside {
        /// Delay of the thread's timer: the dispatcher's clock − the earliest deadline, each time it woke.
        timer_lag: SparseHistogram,
    }
}

series! {
    /// A worker thread stood still: its timer was served that late. What `cpu_us` and `run_delay_us` do not explain, the
    /// process was stopped, or the machine was.
    pub struct Stall {
        role: String = "`robots` or `origins`";
        thread: u32 = "number of the thread within its role";
        at_ms: u64 = "when it began, in milliseconds since the start of the run";
        length_us: u64 = "how long it lasted, in microseconds";
        cpu_us: u64 = "processor time that it used meanwhile, in microseconds";
        run_delay_us: u64 = "time that it was ready to run meanwhile and had no processor, in microseconds";
    }
}

series! {
    /// Delay of a bare timer on the thread's own processor before the run: the machine's own share.
    pub struct Baseline {
        role: String = "`robots` or `origins`";
        thread: u32 = "number of the thread within its role";
        cpu: Option<u32> = "processor that it is pinned to; null: it is not pinned";
        length_ms: u64 = "how long was measured, in milliseconds";
    } beside {
        /// Clock − deadline, each time the bare timer fired.
        lag: SparseHistogram,
    }
}

series! {
    /// Counters of a namespace's network stack in one interval; differences, but for levels. Without namespaces of their own, all roles are
    /// in that of the machine.
    pub struct NetworkInterval {
        start_ms: u64 = "when the interval began, in milliseconds since the start of the run";
        length_ms: u64 = "how long it lasted, in milliseconds";
        role: String = "whose namespace it is: roles, joined by `+`";
        segments_out: u64 = "TCP segments sent (`OutSegs`)";
        retransmitted: u64 = "segments sent again (`RetransSegs`)";
        listen_overflows: u64 = "connections that found a full accept queue (`ListenOverflows`)";
        listen_drops: u64 = "connection attempts dropped by listeners for any reason (`ListenDrops`)";
        backlog_drops: u64 = "segments dropped because a socket's backlog was full (`TCPBacklogDrop`)";
        receive_drops: u64 =
            "times received data was thrown away for lack of memory (`RcvPruned`, `TCPRcvQDrop`)";
        memory_pressures: u64 = "times TCP came under memory pressure (`TCPMemoryPressures`)";
        sockets: u64 = "at the end: TCP sockets in use";
        time_wait: u64 = "at the end: connections in TIME_WAIT";
        buffer_bytes: u64 = "at the end: memory of TCP buffers, in bytes";
        established: Option<u64> = "at the end: connections in ESTABLISHED (with CLOSE_WAIT where that is null)";
        syn_sent: Option<u64> = "at the end: connections in SYN_SENT";
        syn_received: Option<u64> = "at the end: connections in SYN_RECV";
        fin_wait1: Option<u64> = "at the end: connections in FIN_WAIT1";
        fin_wait2: Option<u64> = "at the end: connections in FIN_WAIT2";
        close_wait: Option<u64> = "at the end: connections in CLOSE_WAIT";
        last_ack: Option<u64> = "at the end: connections in LAST_ACK or CLOSING";
        listening: Option<u64> = "at the end: listening sockets";
    }
}

series! {
    /// Traffic of one direction of a link in one interval. Packets from before the start of the run are in an interval of no length.
    #[derive(Eq)]
    pub struct LinkInterval {
        start_ms: u64 = "when the interval began, in milliseconds since the start of the run";
        length_ms: u64 = "how long it lasted, in milliseconds";
        link: String = "its name: the roles that it joins";
        from: String = "the role that packets came from";
        packets: u64 = "packets that came to the link";
        bytes: u64 = "their bytes, IP headers included";
        delivered: u64 = "packets that came out";
        delivered_bytes: u64 = "their bytes";
        wire: u64 = "packets that were on the wire: all but those that found the queue full";
        lost: u64 = "those of them that the plan lost";
        queue_full: u64 = "packets that found the queue full";
        failed: u64 = "packets that the link could not carry for reasons of its own";
    } beside {
        /// Delay of packets beyond the one that was requested.
        lateness: SparseHistogram,
    }
}

series! {
    /// Use of one processor of this machine in one interval, by all processes.
    #[derive(Eq)]
    pub struct ProcessorInterval {
        start_ms: u64 = "when the interval began, in milliseconds since the start of the run";
        length_ms: u64 = "how long it lasted, in milliseconds";
        cpu: u32 = "its number";
        busy_us: u64 = "time that it worked, in microseconds";
        steal_us: u64 = "time that the hypervisor took from it, in microseconds";
        user_us: u64 = "of `busy_us`: programs";
        system_us: u64 = "of `busy_us`: the kernel, at the wish of programs";
        irq_us: u64 = "of `busy_us`: interrupts";
        softirq_us: u64 = "of `busy_us`: what interrupts left to do, such as the network";
        iowait_us: u64 = "time that it had nothing to do but somebody waited for a disk, in microseconds";
        idle_us: u64 = "time that it had nothing to do, in microseconds";
    }
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
    /// Why it did not go higher: a name of [`crate::doubt::Reason`], or `workload` when that requests no more.
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
