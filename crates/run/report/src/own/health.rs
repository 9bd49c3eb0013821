//! Health of Assay itself, in the document: lateness, timers, stalls, processors, network.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How well Assay itself did, over the whole run. Null: it was not watched, or nothing happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Health {
    /// Robots and origins, each over all of its threads.
    pub roles: BTreeMap<String, RoleHealth>,
    /// Each of those threads.
    pub threads: Vec<ThreadHealth>,
    /// The longest time that one of them stood still; null: none did.
    pub longest_stall: Option<StallHealth>,
    /// Processor time of robots and origins, over that of all processors they may run on; 0 to 1.
    pub processor_share: Option<f64>,
    /// Share of all processors' time that the hypervisor took away, 0 to 1.
    pub stolen_share: Option<f64>,
    /// What measuring the roles and the machine took, out of one processor; null: it was not measured.
    #[serde(default)]
    pub metering_share: Option<f64>,
    /// The network stack of this machine.
    pub network: Option<NetworkHealth>,
}

/// A role over all of its threads.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RoleHealth {
    /// Robots: `sent − max(due, ready)`. Origins: how much later than asked think times ended.
    pub lateness_us: Lags,
    /// How late its threads' timers were served.
    pub timer_lag_us: Lags,
    /// How late a bare timer was on the same processors before the run.
    pub baseline_us: Lags,
    /// Times that a thread stood still (a timer lag of 10 ms or more).
    pub stalls: u64,
    /// The sum of those, in milliseconds.
    pub stalled_ms: f64,
    /// Share of a processor that a thread used, on average; 0 to 1.
    pub processor_share: Option<f64>,
    /// The same of the busiest thread in its busiest interval.
    pub processor_share_peak: Option<f64>,
    /// Share of time that a thread was ready to run and had no processor, on average; 0 to 1.
    pub run_delay_share: Option<f64>,
    /// The same of the worst thread in its worst interval.
    pub run_delay_share_peak: Option<f64>,
    /// Most open descriptors.
    pub descriptors_peak: u64,
    /// Most connections that waited to be accepted on a listener (origins).
    pub accept_queue_peak: Option<u64>,
    /// The limit of that.
    pub accept_queue_limit: Option<u64>,
}

/// A thread of a role.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThreadHealth {
    /// `robots` or `origins`.
    pub role: String,
    /// Its number within the role.
    pub thread: u64,
    /// Processor it is pinned to; null: any.
    pub cpu: Option<u64>,
    /// How late a bare timer was there before the run.
    pub baseline_us: Lags,
    /// How late its own timer was served.
    pub timer_lag_us: Lags,
    /// Share of a processor that it used, on average; 0 to 1.
    pub processor_share: Option<f64>,
    /// Share of time that it was ready to run and had no processor; 0 to 1.
    pub run_delay_share: Option<f64>,
    /// Times that it stood still.
    pub stalls: u64,
    /// The longest of those, in microseconds.
    pub longest_stall_us: Option<u64>,
}

/// A time that a thread stood still.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StallHealth {
    /// `robots` or `origins`.
    pub role: String,
    /// The thread's number within the role.
    pub thread: u64,
    /// When it began, in milliseconds since the start of the run.
    pub at_ms: u64,
    /// How long it lasted, in microseconds.
    pub length_us: u64,
    /// The phase that was on; null: none.
    pub phase: Option<String>,
    /// What the thread did meanwhile.
    pub cause: StallCause,
}

/// What a thread that stood still did meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StallCause {
    /// It was busy with something else.
    Busy,
    /// It was ready to run and had no processor.
    NoProcessor,
    /// Neither: the process, or the machine, was stopped.
    Stopped,
}

/// The network stack of this machine over the run: sums, and the highest levels at any second's end.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct NetworkHealth {
    /// TCP segments sent.
    pub segments_out: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// Connections that found a full accept queue.
    pub listen_overflows: u64,
    /// Connection attempts that listeners dropped for any reason.
    pub listen_drops: u64,
    /// Segments dropped because a socket's backlog was full.
    pub backlog_drops: u64,
    /// Times that received data was thrown away for lack of memory.
    pub receive_drops: u64,
    /// Times that TCP came under memory pressure.
    pub memory_pressures: u64,
    /// Most TCP sockets in use.
    pub sockets_peak: u64,
    /// Most connections in TIME_WAIT.
    pub time_wait_peak: u64,
    /// Most memory of TCP buffers, in bytes.
    pub buffer_bytes_peak: u64,
}

/// A distribution of lags, in microseconds; null: no values.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Lags {
    /// Number of values.
    pub count: u64,
    /// Median.
    pub p50: Option<u64>,
    /// 90 % are not longer.
    pub p90: Option<u64>,
    /// 99 % are not longer.
    pub p99: Option<u64>,
    /// 99.9 % are not longer.
    pub p999: Option<u64>,
    /// The longest.
    pub max: Option<u64>,
}
