//! Specs of robots and origins.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::spread::Listener;
use assay_tls::settings::{ClientTls, ServerTls};

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

/// What robots are told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RobotsSpec {
    pub universe: UniverseSpec,
    /// First and last of the robots that run here; none: all of them.
    #[serde(default)]
    pub robots: Option<(u32, u32)>,
    pub threads: u32,
    /// Processors the threads are pinned to, round robin; empty: not pinned.
    pub cpus: Vec<u32>,
    /// How closely they keep time.
    #[serde(default)]
    pub timing: Timing,
    /// What the requests are sent to.
    pub target: Target,
    /// How robots speak TLS to it; none: in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ClientTls>,
    /// Where there are several caches: which robots speak to which, in place of the one proxy of the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub listeners: Vec<Listener>,
    /// Source address of each robot address of the workload, in order of first appearance; empty or
    /// unspecified (0.0.0.0): the system chooses.
    pub sources: Vec<IpAddr>,
    /// What the target is known to do, for the ideal hit ratio.
    pub behaviour: CacheBehaviour,
    /// An xact without a complete response after this long is an error, in milliseconds.
    pub timeout_ms: u64,
    /// Every xact is recorded here as Parquet; none: not recorded.
    pub xact_log: Option<PathBuf>,
    /// The parent reports when the target waited for processors ([`crate::message::Command::Waits`]), and the times of xacts
    /// are to be joined with that.
    #[serde(default)]
    pub joins_waits: bool,
}

/// How closely a role keeps time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timing {
    /// Before a deadline, the timer is polled without sleeping for so long, in microseconds; 0: it sleeps up to the
    /// deadline. Never continuous: at least half of each wait is slept through.
    pub spin_us: u64,
    /// Worker threads run with real-time priority (`SCHED_FIFO`); one that never sleeps is made to, a twentieth of the time.
    pub realtime: bool,
    /// How long a bare timer is measured in each worker before it is ready, in milliseconds; 0: not at all.
    pub baseline_ms: u64,
    /// Workers do not watch themselves: only to measure what the watching costs.
    pub unwatched: bool,
}

/// Where robots send their requests.
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

/// What a cache does where RFC 9111 leaves it a choice; declared in the proxy's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct CacheBehaviour {
    /// False for a target that stores nothing (direct): ideal is then zero.
    pub caches: bool,
    /// A HEAD miss fetches and stores the whole object.
    pub head_fills: bool,
    /// A conditional request that misses fetches and stores the whole object, not the client's condition.
    pub conditional_fills: bool,
    /// The response to a reload replaces what is stored.
    pub reload_fills: bool,
    /// A request for parts (`Range`) that misses fetches and stores the whole object.
    pub range_fills: bool,
    /// A POST to a URL drops what is stored under it.
    pub post_invalidates: bool,
    /// A request for what is being fetched for another joins that fetch, before its response has begun.
    pub collapses: bool,
    /// Where requests are not collapsed: a response that is still arriving goes to other requests too. False: it serves no other
    /// request before it is complete.
    pub shares_arriving: bool,
    /// A 304 from the origin updates the header fields of the stored response, as RFC 9111 (4.3.4) wants it, or the cache
    /// never validates at all. Where it does not hold, a validated response keeps the id of the one it was first stored
    /// from, and looks older than it is; what is stale is then judged by what validation could have found.
    pub validation_updates: bool,
    /// A GET with `no-cache` reaches the origin, as RFC 9111 (5.2.1.4) wants it. Several products ignore the field by default;
    /// where it is not declared, a reload that is served from the store is counted as the target's behaviour, and is no error.
    pub reloads_reach_origin: bool,
}

impl Default for CacheBehaviour {
    fn default() -> Self {
        Self {
            caches: true,
            head_fills: false,
            conditional_fills: false,
            reload_fills: true,
            range_fills: false,
            post_invalidates: true,
            collapses: true,
            shares_arriving: true,
            validation_updates: false,
            reloads_reach_origin: false,
        }
    }
}

impl CacheBehaviour {
    /// From when on a response that is fetched for one request serves others.
    pub fn shares_from(&self) -> SharesFrom {
        match (self.collapses, self.shares_arriving) {
            (true, _) => SharesFrom::Sent,
            (false, true) => SharesFrom::Begun,
            (false, false) => SharesFrom::Complete,
        }
    }
}

/// From when on a response that is fetched for one request serves others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharesFrom {
    /// From when the request was sent: others join the fetch.
    Sent,
    /// From when the response has begun.
    Begun,
    /// From when the response is complete.
    Complete,
}

/// What origins are told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OriginsSpec {
    pub universe: UniverseSpec,
    pub threads: u32,
    /// Processors the threads are pinned to, round robin; empty: not pinned.
    pub cpus: Vec<u32>,
    /// How closely they keep time.
    #[serde(default)]
    pub timing: Timing,
    /// The first of the origins that listen here; 0 where all of them do.
    #[serde(default)]
    pub first: u16,
    /// Where to listen, one address per origin from `first` on, in the workload's order. Port 0 lets the system choose.
    pub listen: Vec<SocketAddr>,
    /// How origins speak TLS; none: in the clear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<ServerTls>,
}
