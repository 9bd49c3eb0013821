//! Specs of robots and origins.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use assay_cache::behaviour::CacheBehaviour;
use assay_net::tls::settings::{ClientTls, ServerTls};
use assay_workload::cache_assignment::Listener;

/// The part that robots and origins must agree on: the universe.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UniverseSpec {
    /// The compiled workload (`workload.json` in the run directory), already scaled if this is a rehearsal.
    pub workload: PathBuf,
    /// Seed of the universe and its streams.
    pub seed: u64,
    /// Tag in every path, so that URLs differ between runs against a proxy that keeps its cache.
    pub world: u32,
    /// Treat private interest as public.
    pub private_as_public: bool,
}

/// Spec of the robots' process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RobotsSpec {
    pub universe: UniverseSpec,
    /// First and last of the robots that run here; none: all of them.
    #[serde(default)]
    pub robots: Option<(u32, u32)>,
    pub threads: u32,
    /// Processors the threads are pinned to, round robin; empty: not pinned.
    pub cpus: Vec<u32>,
    #[serde(default)]
    pub timing: Timing,
    pub target: Target,
    /// TLS towards the target; none: in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ClientTls>,
    /// Caches with their robots, in place of the one proxy of the target, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<Listener>,
    /// Source address of each robot address of the workload, in order of first appearance; empty or
    /// unspecified (0.0.0.0): the system chooses.
    pub sources: Vec<IpAddr>,
    /// Declared behaviour of the target, for the ideal hit ratio.
    pub behaviour: CacheBehaviour,
    /// An xact without a complete response after this long is an error, in milliseconds.
    pub timeout_ms: u64,
    /// Every xact is recorded here as Parquet; none: not recorded.
    pub xact_log: Option<PathBuf>,
    /// The parent reports when the target waited for processors ([`assay_protocol::message::Command::Waits`]), and the times of xacts
    /// are to be joined with that.
    #[serde(default)]
    pub joins_waits: bool,
}

/// Timing of a role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// Before a deadline, the timer is polled without sleeping for so long, in microseconds; 0: it sleeps up to the
    /// deadline. Never continuous: at least half of each wait is slept through.
    pub spin_us: u64,
    /// Worker threads run with real-time priority (`SCHED_FIFO`); one that never sleeps is made to, a twentieth of the time.
    pub realtime: bool,
    /// Length of the measurement of a bare timer in each worker before it is ready, in milliseconds; 0: none.
    pub baseline_ms: u64,
    /// Workers do not watch themselves: only to measure what the watching costs.
    pub unwatched: bool,
}

/// Target of the robots' requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Target {
    /// Straight to the origins; one real address per origin of the workload, in its order.
    Direct { origins: Vec<SocketAddr> },
    /// To a reverse proxy: origin-form targets, `Host` is the origin's authority.
    Reverse { proxy: SocketAddr },
    /// To a forward proxy: absolute-form targets with the origins' real addresses as authority.
    Forward { proxy: SocketAddr, origins: Vec<SocketAddr> },
}

/// Spec of the origins' process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OriginsSpec {
    pub universe: UniverseSpec,
    pub threads: u32,
    /// Processors the threads are pinned to, round robin; empty: not pinned.
    pub cpus: Vec<u32>,
    #[serde(default)]
    pub timing: Timing,
    /// The first of the origins that listen here; 0 where all of them do.
    #[serde(default)]
    pub first: u16,
    /// Addresses to listen on, one per origin from `first` on, in the workload's order. Port 0 lets the system choose.
    pub listen: Vec<SocketAddr>,
    /// TLS of the origins; none: in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ServerTls>,
}
