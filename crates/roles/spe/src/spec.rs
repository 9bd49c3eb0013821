//! Specs of the Multiplier and the Collector.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use assay_net::tls::settings::{AuthorityFiles, ClientTls, ServerTls};
use assay_protocol::network::Destinations;

/// Spec of the Collector.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CollectorSpec {
    /// Mark of responses in place of those that were not kept: only the Multiplier has the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lost_key: String,
    /// Listening addresses, and the clients of each. A request is counted, and a response is new, by listener: addresses of clients do not
    /// tell proxies on one machine apart.
    pub listeners: Vec<Listener>,
    /// Real servers by `Host`; others are looked up by the system.
    pub origins: Vec<Route>,
    /// Destination of requests that name no known host (reverse); none: the host that they name.
    pub default_origin: Option<SocketAddr>,
    /// TLS towards that origin; none: in the clear.
    #[serde(default)]
    pub origin_tls: Option<TlsTo>,
    /// TLS towards the origins of tunnels that the Multiplier opens; none: it opens none.
    #[serde(default)]
    pub tunnels_tls: Option<ClientTls>,
    /// Addresses that may be requested; none: all. Those of known origins are no exception.
    #[serde(default)]
    pub destinations: Option<Destinations>,
    /// Lifetime of a response that may not be cached, for listeners that have not seen it, in milliseconds.
    pub minimum_freshness_ms: u64,
    /// Recordings older than this are made anew, however fresh the response is, in milliseconds (11.3.8).
    pub maximum_age_ms: u64,
    /// Respond at the pace of the recording; false: at once (the document's control).
    pub replay: bool,
    /// Most bytes of recordings in memory, overhead included.
    pub memory_bytes: u64,
    /// Store for recordings that memory has no room for; none: they are dropped.
    pub disk: Option<DiskSpec>,
    /// Log of requests; none: not logged.
    #[serde(default)]
    pub log: Option<CollectorLog>,
    /// Processors the thread is pinned to; empty: not pinned.
    pub cpus: Vec<u32>,
}

/// The Collector's own log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectorLog {
    /// The directory of `collector.parquet`.
    pub directory: PathBuf,
    /// As text too, in the form of Squid's access log (`collector.log`).
    pub text: bool,
}

/// TLS to an origin, or to a proxy under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TlsTo {
    /// Versions offered, and certificates trusted.
    pub client: ClientTls,
    /// The authority (`host` or `host:port`) whose host the certificate is verified for.
    pub authority: String,
}

/// A listening address of the Collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listener {
    pub listen: SocketAddr,
    /// Label of the proxy under test that connects here, or `direct` for the Multiplier itself.
    pub client: String,
}

/// Real address of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// `host` or `host:port`, as clients say it.
    pub authority: String,
    pub address: SocketAddr,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskSpec {
    /// A directory of its own, emptied at the end.
    pub directory: PathBuf,
    /// Most bytes in it.
    pub bytes: u64,
}

/// Time at which requests are sent to the proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// After the Collector's response is complete, as in the document.
    After,
    /// At once: at the clients' own pace.
    AtOnce,
}

/// Order in which requests are sent to the proxies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turns {
    /// Another one for each request, from the seed.
    Permuted,
    /// As they are listed.
    Fixed,
}

/// Spec of the Multiplier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MultiplierSpec {
    /// The Collector's mark of responses in place of those that it has not kept: no proxy has it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lost_key: String,
    /// Listening address for clients.
    pub listen: SocketAddr,
    /// TLS towards clients; none: in the clear.
    #[serde(default)]
    pub tls: Option<ServerTls>,
    /// Certificate authority with which tunnels are opened; none: they go through unseen.
    #[serde(default)]
    pub intercept: Option<AuthorityFiles>,
    /// The Collector's listener for the Multiplier.
    pub collector: SocketAddr,
    /// The proxies under test.
    pub proxies: Vec<ProxyUnderTest>,
    /// Requests go to the proxies with their whole URL (forward), or with a path and `Host` (reverse).
    pub forward: bool,
    /// Time at which requests are sent to the proxies.
    pub when: When,
    pub turns: Turns,
    /// Seed of the order.
    pub seed: u64,
    /// Most requests that wait for one proxy, or are under way with it; those beyond are dropped and counted.
    pub max_waiting: u32,
    /// Timeout of a proxy's response, in milliseconds.
    pub response_timeout_ms: u64,
    /// Rules on differences to ignore (a file in TOML); none: the defaults.
    pub rules: Option<PathBuf>,
    /// Directory for responses: the SPE directory.
    pub directory: PathBuf,
    /// Write the log in the document's form too.
    pub text_log: bool,
    /// Processors the thread is pinned to; empty: not pinned.
    pub cpus: Vec<u32>,
}

/// A proxy under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProxyUnderTest {
    /// Label in results.
    pub label: String,
    pub address: SocketAddr,
    /// TLS towards the proxy; none: in the clear.
    #[serde(default)]
    pub tls: Option<TlsTo>,
}
