//! What the built-in proxy is told before it starts.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// What the built-in caching proxy is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProxySpec {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Worker threads (one store for all of them is not promised; today one).
    pub threads: u32,
    /// Processors the threads are pinned to, round robin; empty: not pinned.
    pub cpus: Vec<u32>,
    /// Bound on the memory store, in bytes, overhead per object included.
    pub memory_bytes: u64,
    /// How stale a reply may be served when its origin fails and the reply says nothing about that (`stale-if-error`),
    /// in seconds; 0: not at all.
    #[serde(default)]
    pub stale_if_error_s: u64,
    /// Reverse: which `Host` goes to which real origin. A `Host` that is not listed goes to the first; an
    /// absolute-form request (forward) goes to the authority it names.
    pub origins: Vec<OriginRoute>,
}

/// One origin behind the proxy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OriginRoute {
    /// `host:port` as clients say it.
    pub authority: String,
    /// Its real address.
    pub address: SocketAddr,
}
